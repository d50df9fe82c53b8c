"""The explanation size read off Monte-Carlo curves of classifiers whose size is known."""

import math

import numpy as np
import pytest
import scipy.stats
import torch

from faithlab import masks
from faithlab.metrics import tiers
from faithlab.metrics.fidelity import fidelity
from faithlab.metrics.size import Setting, explanation_size, readings, removed

F = 200
STEP = 0.025
FRACTIONS = torch.arange(1, 31, dtype=torch.float64) * STEP
SETTINGS = [
    *(Setting(0.5, cap) for cap in (0.025, 0.05, 0.1, 0.15, 0.2)),
    *(Setting(alpha, 0.1) for alpha in (0.3, 0.4, 0.75, 1.0)),
]


def monte_carlo(sizes, response, seed=0, images=64, draws=10):
    """FFid+ curves [images, settings, sizes] of a tier classifier, a perfect ranking and random places of the tiers."""
    generator = torch.Generator().manual_seed(seed)
    tier = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    tier = torch.stack([tier[torch.randperm(F, generator=generator)] for _ in range(images)])
    score = tiers.scorer(tier, response)
    return torch.stack(
        [
            fidelity(score, -tier.float(), FRACTIONS, alpha=s.alpha, cap=s.cap, draws=draws, seed=seed).value
            for s in SETTINGS
        ],
        dim=1,
    )


def exactly(sizes, response):
    """The same curves without Monte-Carlo error, for one image."""
    curves = [tiers.expected_fidelity(sizes, response, FRACTIONS, alpha=s.alpha, cap=s.cap) for s in SETTINGS]
    return torch.stack(curves)[None]


def random_classifier(seed: int):
    """An explanation of 10 to 80 features, a background without influence, or a weak tier before it."""
    generator = torch.Generator().manual_seed(seed)

    def uniform(low: float, high: float) -> float:
        return low + (high - low) * torch.rand(1, generator=generator).item()

    c, middle = 5 * int(uniform(2, 17)), uniform(0.3, 0.8)
    second, weak = (5 * int(uniform(2, 13)), uniform(0, 0.1)) if seed % 8 >= 4 else (0, 0.0)
    shape = [
        lambda share: share,
        lambda share: share**2,
        lambda share: share.sqrt(),
        lambda share: (8 * (share - middle)).sigmoid(),
    ][seed % 4]

    def response(kept):
        return (1 - weak) * shape(kept[..., 0] / c) + weak * kept[..., 1] / max(second, 1)

    return ([c, second, F - c - second] if second else [c, F - c]), response


@pytest.mark.parametrize("seed", range(32))
def test_the_size_is_exact_to_one_step_of_the_grid_and_the_interval_holds_it(seed):
    sizes, response = random_classifier(seed)
    size = explanation_size(monte_carlo(sizes, response, seed), FRACTIONS, SETTINGS, F)
    truth, tolerance = sizes[0] / F, STEP + 1e-9
    assert abs(size.fraction - truth) <= tolerance
    assert size.low <= size.fraction <= size.high
    if len(sizes) == 2:
        assert size.fraction == pytest.approx(truth)
        assert size.low - 1e-9 <= truth <= size.high + 1e-9
    else:  # the weak tier is no pure background: the interval is honest about the images, not about the model
        assert size.low - tolerance <= truth <= size.high + tolerance


@pytest.mark.parametrize("c", [10, 35, 60, 90])
def test_the_curves_without_noise_give_the_size_and_no_misfit_there(c):
    curves = exactly([c, F - c], lambda kept: kept[..., 0] / c)
    size = explanation_size(curves, FRACTIONS, SETTINGS, F, resamples=0)
    assert size.fraction == pytest.approx(c / F)
    assert math.isnan(size.low)
    assert math.isnan(size.high)
    true = (size.candidates - c / F).abs() < 1e-9
    assert 0 <= size.residuals[true].item() < 1e-7
    assert size.residuals[~true].min() > 1e-4


def test_the_interval_widens_where_the_images_disagree():
    half = [monte_carlo([c, F - c], lambda kept, c=c: kept[..., 0] / c, images=16) for c in (30, 60)]
    mixed = explanation_size(torch.cat(half), FRACTIONS, SETTINGS, F)
    assert mixed.low < mixed.high
    assert 0.15 <= mixed.low <= mixed.fraction <= mixed.high <= 0.3
    same = explanation_size(half[0], FRACTIONS, SETTINGS, F)
    assert same.low == same.high == pytest.approx(0.15)


def test_other_candidates_are_other_answers():
    curves = monte_carlo([50, 150], lambda kept: kept[..., 0] / 50)
    fine = torch.arange(40, 61, dtype=torch.float64) / F
    assert explanation_size(curves, FRACTIONS, SETTINGS, F, candidates=fine).fraction == pytest.approx(0.25, abs=0.01)
    coarse = explanation_size(curves, FRACTIONS, SETTINGS, F, candidates=torch.tensor([0.1, 0.5]))
    assert coarse.residuals.shape == coarse.candidates.shape == (2,)
    assert coarse.residuals.min() > 0.005  # neither explains the curves, and the misfit says so


def test_the_same_seed_gives_the_same_interval():
    curves = monte_carlo([30, 170], lambda kept: (kept[..., 0] / 30) ** 2, images=8, draws=2)
    one, same = (explanation_size(curves, FRACTIONS, SETTINGS, F, seed=3) for _ in range(2))
    assert one[:3] == same[:3]


@pytest.mark.parametrize("level", [0.0, -0.2], ids=["zero", "below"])
def test_curves_that_never_leave_zero_have_no_size(level):
    size = explanation_size(torch.full((4, len(SETTINGS), 30), level), FRACTIONS, SETTINGS, F)
    assert all(map(math.isnan, size[:3]))


def test_resamples_in_which_nothing_is_lost_have_no_vote():
    # One image of 20 loses anything: a resample misses it with probability (19 / 20)^20 = 0.36, and has no size then.
    loss = tiers.expected_fidelity([40, 160], lambda kept: kept[..., 0] / 40, FRACTIONS, alpha=0.5, cap=0.1)
    curves = torch.zeros(20, 1, 30, dtype=torch.float64)
    curves[7, 0] = loss
    size = explanation_size(curves, FRACTIONS, [Setting(0.5, 0.1)], F)
    assert size[:3] == pytest.approx((0.2, 0.2, 0.2))


def test_the_expected_number_removed_is_the_mean_of_the_hypergeometric_law():
    counts, number = masks.counts(FRACTIONS, F), np.arange(41)
    for setting in SETTINGS:
        removals = masks.removals(counts, F, *setting)
        expected = [
            number @ scipy.stats.hypergeom.pmf(number, s, min(s, 40), m)
            for s, m in zip(counts.tolist(), removals.tolist(), strict=True)
        ]
        assert removed(counts, removals, 40).tolist() == pytest.approx(expected)
    assert removed(torch.tensor([0]), torch.tensor([0]), 40).tolist() == [0]


def test_readings_are_the_grids_own_to_within_half_a_step_and_follow_the_weights():
    """Of one set of curves the reading lies by the candidate that `explanation_size` picks; of many, row by row."""
    candidates = torch.arange(2, 31, dtype=torch.float64) * 0.02
    curves = torch.cat([exactly([size, F - size], lambda kept, size=size: kept[..., 0] / size) for size in (30, 50)])
    found = readings(curves, FRACTIONS, SETTINGS, F, candidates)
    for size, curve, read in zip((30, 50), curves, found, strict=True):
        grid = explanation_size(curve[None], FRACTIONS, SETTINGS, F, candidates=candidates, resamples=0).fraction
        assert abs(float(read) - grid) <= 0.01 + 1e-9
        assert float(read) == pytest.approx(size / F, abs=0.01)
    assert readings(curves.flip(0), FRACTIONS, SETTINGS, F, candidates).tolist() == found.flip(0).tolist()


def test_readings_of_curves_without_a_loss_or_with_a_hole_are_missing():
    candidates = torch.arange(2, 31, dtype=torch.float64) * 0.02
    curves = exactly([40, F - 40], lambda kept: kept[..., 0] / 40).repeat(3, 1, 1)
    curves[1], curves[2, 0, 0] = 0, math.nan
    assert readings(curves, FRACTIONS, SETTINGS, F, candidates).isnan().tolist() == [False, True, True]
