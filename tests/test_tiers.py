"""The tier classifier: its closed form against every subset, FFid+ against its closed form, and Theorem 1."""

import itertools
from typing import NamedTuple

import pytest
import torch

import literal
from faithlab import masks
from faithlab.metrics import tiers
from faithlab.metrics.fidelity import fidelity


class Case(NamedTuple):
    """A tier classifier and a setting of FFid+."""

    sizes: list[int]
    response: tiers.Response
    alpha: float
    cap: float | None


def random_case(seed: int) -> Case:
    """2 to 4 tiers of random sizes and falling influence, a linear, saturating or threshold-like response."""
    generator = torch.Generator().manual_seed(seed)

    def among(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (1,), generator=generator))

    sizes = [among(1, 9) for _ in range(among(2, 4))]
    influence = torch.rand(len(sizes), generator=generator, dtype=torch.float64).sort(descending=True).values
    total = (influence * torch.tensor(sizes)).sum()
    shape = [lambda r: r, lambda r: r.sqrt(), lambda r: (12 * r - 6).sigmoid()][seed % 3]
    return Case(
        sizes,
        lambda kept: shape((kept * influence).sum(-1) / total),
        alpha=among(1, 10) / 10,
        cap=None if seed % 4 == 0 else among(1, 12) / 20,
    )


def shuffled(sizes: list[int], images: int, seed: int = 0) -> torch.Tensor:
    """Each image has its tiers in places of its own: [images, F]."""
    generator = torch.Generator().manual_seed(seed)
    tier = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    return torch.stack([tier[torch.randperm(len(tier), generator=generator)] for _ in range(images)])


def every_size(features: int) -> torch.Tensor:
    return torch.arange(features + 1, dtype=torch.float64) / features


@pytest.mark.parametrize("sizes", [(2, 3), (1, 1, 4), (3, 2, 2), (1, 2, 1, 3)])
@pytest.mark.parametrize(("alpha", "cap"), [(0.5, None), (0.5, 0.3), (0.8, 0.45), (1.0, None), (1.0, 0.6), (0.0, 0.5)])
def test_the_closed_form_is_the_mean_over_every_subset(sizes, alpha, cap):
    features = sum(sizes)
    influence = [1.0, 0.6, 0.25, 0.1][: len(sizes)]

    def answer(kept) -> float:
        return sum(w * k**0.7 for w, k in zip(influence, kept, strict=True))

    def response(kept):
        return (kept**0.7 * torch.tensor(influence, dtype=torch.float64)).sum(-1)

    tier = [t for t, size in enumerate(sizes) for _ in range(size)]
    expected = [literal.expected_ffid(tier, answer, s, alpha, cap) for s in range(features + 1)]
    got = tiers.expected_fidelity(sizes, response, every_size(features), alpha=alpha, cap=cap)
    assert got.tolist() == pytest.approx(expected, abs=1e-12)


def test_the_score_counts_what_is_kept_of_each_tier():
    tier = torch.tensor([[0, 1, 1, 2], [2, 0, 1, 0]])
    keep = torch.tensor([[[1, 1, 0, 1], [0, 0, 0, 0]], [[1, 1, 0, 1], [1, 1, 1, 1]]]).bool()
    score = tiers.scorer(tier, lambda kept: (kept * torch.tensor([100.0, 10.0, 1.0])).sum(-1))
    assert score(keep).tolist() == [[111, 0], [201, 211]]


@pytest.mark.parametrize("seed", range(40))
def test_ffid_of_a_tier_classifier_is_its_closed_form(seed):
    case, images, draws = random_case(seed), 20, 80
    options = {"alpha": case.alpha, "cap": case.cap}
    features = sum(case.sizes)
    fractions = every_size(features)[1:]
    tier = shuffled(case.sizes, images, seed)
    estimate = fidelity(tiers.scorer(tier, case.response), -tier.float(), fractions, draws=draws, seed=seed, **options)
    expected = tiers.expected_fidelity(case.sizes, case.response, fractions, **options)
    # Its exact spread, from the closed form of the squared answer: Var(a) = E(a^2) - E(a)^2.
    full = case.response(torch.tensor(case.sizes, dtype=torch.float64))
    square = full**2 - tiers.expected_fidelity(case.sizes, lambda k: case.response(k) ** 2, fractions, **options)
    deviation = (square - (full - expected) ** 2).clamp(min=0).sqrt()
    error = (estimate.value.mean(0) - expected).abs()
    assert (error <= 4 * deviation / (images * draws) ** 0.5 + 1e-6).all()
    # And the reported error is that spread: the variance of n = 1600 numbers is known to some percent.
    reported, true = estimate.mean().error, deviation / (images * draws) ** 0.5
    torch.testing.assert_close(reported, true, rtol=0.15, atol=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_one_draw_of_many_images_is_unbiased_too(seed):
    """One subset a size, of its own, and as many images as there were images and draws."""
    case, images = random_case(seed), 1600
    options = {"alpha": case.alpha, "cap": case.cap}
    fractions = every_size(sum(case.sizes))[1:]
    tier = shuffled(case.sizes, images, seed)
    score = tiers.scorer(tier, case.response)
    apart = {"draws": 1, "seed": seed, "subset": masks.remove_apart_from_top}
    found = fidelity(score, -tier.float(), fractions, **apart, **options).value
    expected = tiers.expected_fidelity(case.sizes, case.response, fractions, **options)
    at_sizes, area = found.mean(0) - expected, found.mean(1) - expected.mean()
    assert (at_sizes.abs() <= 4.5 * found.std(0) / images**0.5 + 1e-6).all()
    assert area.mean().abs() <= 4.5 * area.std() / images**0.5 + 1e-6
    # And it errs less than with one subset for all sizes, which err together.
    together = fidelity(score, -tier.float(), fractions, **(apart | {"subset": masks.remove_from_top}), **options).value
    assert area.var() <= together.mean(1).var() * 1.1


# Theorem 1. With c features in the first tier and the knee k = beta F / alpha from which on the cap holds, the proof
# (appendix B) shows: FFid+ does not fall up to c, since all that is removed is of the first tier and ever more of it;
# from k on it does not rise, since equally many are removed of a mix that gets ever weaker. So it turns at c if k <= c,
# and between c and k otherwise: the turn is the explanation size only where beta < alpha c / F (appendix D.8).

INFLUENCE = torch.tensor([1.0, 0.4, 0.1], dtype=torch.float64)
SIZES = [12, 8, 20]
F, C = sum(SIZES), SIZES[0]
RESPONSES = {
    "linear": lambda kept: (kept * INFLUENCE).sum(-1),
    "concave": lambda kept: (kept * INFLUENCE).sum(-1).sqrt(),
    "logistic": lambda kept: ((kept * INFLUENCE).sum(-1) - 10).sigmoid(),
    # The lexicographic order itself: any feature of a tier outweighs all of the tiers below it.
    "lexicographic": lambda kept: (kept * torch.tensor([9.0 * 21, 21.0, 1.0], dtype=torch.float64)).sum(-1) ** 1.5,
}
responses = pytest.mark.parametrize("response", RESPONSES.values(), ids=RESPONSES.keys())
SETTINGS = list(itertools.product((0.25, 0.5, 1.0), (0.05, 0.1, 0.2, 0.4)))


@responses
@pytest.mark.parametrize(("alpha", "cap"), SETTINGS)
def test_ffid_does_not_fall_up_to_the_first_tiers_size_nor_rise_from_the_caps_knee_on(response, alpha, cap):
    curve = tiers.expected_fidelity(SIZES, response, every_size(F), alpha=alpha, cap=cap)
    steps = curve.diff()
    tolerance = 1e-12 * curve.abs().max()
    assert (steps[:C] >= -tolerance).all()
    removals = masks.removals(torch.arange(F + 1), F, alpha, cap)
    knee = int((removals == removals.max()).nonzero()[0])
    assert (steps[knee:] <= tolerance).all()


@responses
@pytest.mark.parametrize(("alpha", "cap"), [(a, b) for a, b in SETTINGS if b * F / a <= C])
def test_where_the_cap_holds_early_ffid_turns_exactly_at_the_first_tiers_size(response, alpha, cap):
    curve = tiers.expected_fidelity(SIZES, response, every_size(F), alpha=alpha, cap=cap)
    highest = (curve >= curve.max() * (1 - 1e-12)).nonzero().flatten()
    assert highest[-1] == C  # the plateau between the two knees ends here
    assert (curve[C:].diff() < 0).all()


def test_where_the_cap_holds_late_ffid_turns_at_the_caps_knee_instead():
    # Two tiers, a linear response: alpha * c of the tier are removed from c on, up to s = beta F / alpha = 32.
    curve = tiers.expected_fidelity([C, F - C], lambda kept: kept[..., 0], every_size(F), alpha=0.25, cap=0.2)
    whole = torch.arange(0, F + 1, 4)  # where alpha * s is a whole number
    expected = torch.tensor([min(0.25 * s, 8) * min(s, C) / max(s, 1) for s in whole.tolist()], dtype=torch.float64)
    torch.testing.assert_close(curve[whole], expected)
    assert curve[whole].tolist()[3:9] == pytest.approx([3.0] * 6)  # s = 12 ... 32
    assert (curve[32:].diff() < 0).all()
