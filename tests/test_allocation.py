"""Fewer forwards for the same area: designs and estimates against the closed form of the tier classifier."""

import pytest
import torch

from faithlab import masks, stats
from faithlab.metrics import tiers
from faithlab.metrics.fidelity import fidelity
from faithstudy.trials import allocation

SIZES = torch.tensor([0.1, 0.2, 0.4, 0.7, 0.9], dtype=torch.float64)
WEIGHTS = allocation.weights(SIZES)
TIERS = [4, 6, 10]
OPTIONS = {"alpha": 0.5, "cap": 0.3}
RUNS = 800


def response(kept):
    return (kept * torch.tensor([1.0, 0.4, 0.1], dtype=torch.float64)).sum(-1) / 7.4


CLOSED_FORM = tiers.expected_fidelity(TIERS, response, SIZES, **OPTIONS)


def runs(images: int, seed: int = 0, spread: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """FFid+ of images that differ, a subset a size, [runs, images, K]; and how each of them differs, [runs, images].

    An image answers with a multiple of the tier classifier that is 1 on average: their mean is its closed form.
    """
    generator = torch.Generator().manual_seed(seed)
    tier = torch.repeat_interleave(torch.arange(len(TIERS)), torch.tensor(TIERS)).repeat(RUNS * images, 1)
    drawn = {"draws": 1, "seed": seed, "subset": masks.remove_apart_from_top}
    found = fidelity(tiers.scorer(tier, response), -tier.float(), SIZES, **drawn, **OPTIONS).value
    multiple = 1 + spread * (torch.rand(RUNS, images, generator=generator, dtype=torch.float64) - 0.5)
    return multiple[..., None] * found.unflatten(0, (RUNS, images)), multiple


def unbiased(estimates: list[stats.MonteCarlo], truth: float) -> None:
    """The mean over runs is the truth, and the reported error is their spread."""
    values, errors = (torch.stack(of) for of in zip(*estimates, strict=True))
    assert abs(float(values.mean()) - truth) <= 4 * float(values.std()) / len(values) ** 0.5
    assert float((errors**2).mean().sqrt()) == pytest.approx(float(values.std()), rel=0.12)


def test_weights_are_those_of_the_area():
    curves = torch.rand(3, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(curves @ WEIGHTS, stats.auc(curves, SIZES))
    assert float(WEIGHTS.sum()) == pytest.approx(1)


@pytest.mark.parametrize("images", [3, 20, 37])
def test_each_image_has_each_size_with_its_weight_and_each_size_its_share_of_images(images):
    found = torch.stack([allocation.sizes_in_turn(seed, images, WEIGHTS) for seed in range(RUNS)])
    for k, weight in enumerate(WEIGHTS.tolist()):
        count = (found == k).sum(1)
        assert int(count.max() - count.min()) <= 1
        assert abs(float((found == k)[:, 0].double().mean()) - weight) < 4 * (weight * (1 - weight) / RUNS) ** 0.5
    assert (allocation.sizes_in_turn(7, images, WEIGHTS) == found[7]).all()


def test_one_size_an_image_in_turn_is_unbiased_and_errs_less_than_at_random():
    curves, _ = runs(20, spread=0.4)
    generator = torch.Generator().manual_seed(1)
    in_turn, at_random = [], []
    for seed, curve in enumerate(curves):
        at = allocation.sizes_in_turn(seed, 20, WEIGHTS)
        in_turn.append(allocation.in_turn(curve.gather(1, at[:, None])[:, 0], at, WEIGHTS))
        at = torch.multinomial(WEIGHTS, 20, replacement=True, generator=generator)
        at_random.append(curve.gather(1, at[:, None])[:, 0].mean())
    unbiased(in_turn, float(CLOSED_FORM @ WEIGHTS))
    spread = torch.stack([one.value for one in in_turn]).std()
    assert float(spread) < 0.8 * float(torch.stack(at_random).std())


def test_subsets_in_opposite_pairs_have_the_law_of_others_and_differ_within_a_pair():
    features, images, draws = 8, torch.arange(3), torch.arange(1500)
    order = torch.stack([torch.randperm(features, generator=torch.Generator().manual_seed(i)) for i in range(3)])
    counts, removals = torch.tensor([4, 6, 8]), torch.tensor([2, 3, 2])
    drawn = {"images": images, "draws": draws}
    keep = allocation.remove_in_opposite_pairs(order, counts, removals, seed=5, **drawn)
    assert keep.shape == (3, 1500, 3, features)
    removed = (~keep).gather(-1, order[:, None, None].expand_as(keep)).double()  # by relevance
    for k, (s, m) in enumerate(zip(counts.tolist(), removals.tolist(), strict=True)):
        assert (removed[:, :, k].sum(-1) == m).all()
        assert not removed[:, :, k, s:].any()
        each, pairs = removed[:, :, k, :s].flatten(0, 1), m * (m - 1) / (s * (s - 1))
        assert (each.mean(0) - m / s).abs().max() < 4 * (0.25 / len(each)) ** 0.5
        together = each.T @ each / len(each)  # uniform over subsets: every two are as often removed together
        assert (together[~torch.eye(s, dtype=torch.bool)] - pairs).abs().max() < 4 * (0.25 / len(each)) ** 0.5
    first, second = removed[:, :, 0, :4], removed[:, :, 1, :4]
    assert float((first * second).mean()) < 0.4 * float(first.mean() * second.mean())  # hardly ever the same feature
    again = allocation.remove_in_opposite_pairs(order[1:], counts, removals, seed=5, images=images[1:], draws=draws[7:])
    assert (again == keep[1:, 7:]).all()


def test_subsets_in_opposite_pairs_are_unbiased_and_err_less_where_answers_add_up():
    tier = torch.repeat_interleave(torch.arange(len(TIERS)), torch.tensor(TIERS)).repeat(4000, 1)

    def area(subset):
        drawn = {"draws": 1, "seed": 3, "subset": subset}
        return fidelity(tiers.scorer(tier, response), -tier.float(), SIZES, **drawn, **OPTIONS).value @ WEIGHTS

    opposite, apart = area(allocation.remove_in_opposite_pairs), area(masks.remove_apart_from_top)
    assert abs(float(opposite.mean() - CLOSED_FORM @ WEIGHTS)) <= 4 * float(opposite.std()) / 4000**0.5
    assert float(opposite.var()) < 0.9 * float(apart.var())


def test_the_estimate_with_a_control_is_unbiased_and_errs_less_than_without():
    curves, multiple = runs(40, seed=2)
    areas, few = curves @ WEIGHTS, 8
    found = [
        allocation.controlled(area[:few], control[:few], control[few:])
        for area, control in zip(areas, multiple, strict=True)
    ]
    values = torch.stack([one.value for one in found])
    truth = float(CLOSED_FORM @ WEIGHTS)
    assert abs(float(values.mean()) - truth) <= 4 * float(values.std()) / RUNS**0.5
    assert float(values.std()) < 0.8 * float(areas[:, :few].mean(1).std())


def test_the_error_of_the_estimate_with_a_control_is_its_spread():
    curves, multiple = runs(120, seed=3)
    areas, few = curves @ WEIGHTS, 30
    unbiased(
        [allocation.controlled(a[:few], c[:few], c[few:]) for a, c in zip(areas, multiple, strict=True)],
        float(CLOSED_FORM @ WEIGHTS),
    )


def test_a_control_that_does_not_vary_leaves_the_mean():
    values = torch.arange(6, dtype=torch.float64)
    found = allocation.controlled(values, torch.ones(6).double(), torch.ones(9).double())
    assert float(found.value) == 2.5


def test_components_are_those_that_the_answers_are_made_of():
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    draws, images, count = 3, 20_000, len(SIZES)
    curve = torch.tensor([0.0, 1.0, 2.0, 1.0, 0.0], dtype=torch.float64)  # the same for all images
    answers = curve + normal(images, 1) + 0.5 * normal(draws, images, count)
    found = allocation.components(answers, WEIGHTS)
    area = float(curve @ WEIGHTS)
    assert found["images"] == pytest.approx(1, rel=0.05)
    assert found["subsets"] == pytest.approx(0.25, rel=0.05)
    assert found["sizes"] == pytest.approx(float((curve - area) ** 2 @ WEIGHTS), rel=0.05)
    assert found["area, between draws"] == pytest.approx(0.25 * float((WEIGHTS**2).sum()), rel=0.05)
    assert found["images, at a size"] == pytest.approx(1.25, rel=0.05)  # the curve is no part of it
