"""Distances between explanations: against scipy and scikit-image one pair at a time, and where known on paper."""

import math

import numpy as np
import pytest
import scipy.stats
import torch
from scipy.optimize import linprog
from skimage.metrics import structural_similarity

from faithlab.metrics import distance
from faithlab.metrics.distance import DISTANCES, dice, l1, l2, spearman, ssim, wasserstein

GENERATOR = torch.Generator().manual_seed(0)


def maps(*leading: int, side: tuple[int, int] = (14, 13)) -> torch.Tensor:
    """Signed maps with ties."""
    return torch.randn(*leading, *side, generator=GENERATOR).mul(4).round().div(4)


def pairs():
    for a, b in zip(maps(6), maps(6), strict=True):
        yield a, b, a.double().numpy(), b.double().numpy()


def test_spearman_is_scipys():
    for a, b, x, y in pairs():
        assert spearman(a, b).item() == pytest.approx(1 - abs(scipy.stats.spearmanr(x.ravel(), y.ravel()).statistic))


def test_ssim_is_scikit_images():
    for a, b, x, y in pairs():
        span = max(x.max(), y.max()) - min(x.min(), y.min())
        options = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False}
        assert ssim(a, b).item() == pytest.approx(1 - structural_similarity(x, y, data_range=span, **options))
        assert ssim(a, b, span=3.0).item() == pytest.approx(1 - structural_similarity(x, y, data_range=3.0, **options))


def test_dice_l1_and_l2_are_their_definitions():
    for a, b, x, y in pairs():
        one, other = ({i for i, v in enumerate(m.ravel()) if v > 0.5 * m.max()} for m in (x, y))
        assert dice(a, b).item() == pytest.approx(1 - 2 * len(one & other) / (len(one) + len(other)))
        assert l1(a, b).item() == pytest.approx(abs(x - y).sum())
        assert l2(a, b).item() == pytest.approx(math.sqrt(((x - y) ** 2).sum()))


def test_wasserstein_is_scipys_along_each_direction():
    for a, b, x, y in pairs():
        rows, columns = np.indices(x.shape)
        slices = []
        for angle in (np.arange(16) + 0.5) * np.pi / 16:
            place = (rows * np.sin(angle) + columns * np.cos(angle)).ravel()
            slices.append(scipy.stats.wasserstein_distance(place, place, abs(x).ravel(), abs(y).ravel()))
        assert wasserstein(a, b).item() == pytest.approx(np.mean(slices) * np.pi / 2)


def exact_wasserstein(x: np.ndarray, y: np.ndarray) -> float:
    """The optimal transport plan in the plane, as a linear program."""
    x, y = abs(x).ravel() / abs(x).sum(), abs(y).ravel() / abs(y).sum()
    places = np.argwhere(np.ones((6, 6)))
    cost = np.linalg.norm(places[:, None] - places[None], axis=-1)
    n = len(places)
    marginals = np.concatenate([np.kron(np.eye(n), np.ones((1, n))), np.kron(np.ones((1, n)), np.eye(n))])
    return linprog(cost.ravel(), A_eq=marginals, b_eq=np.concatenate([x, y])).fun


def test_the_sliced_wasserstein_distance_follows_the_exact_one():
    a, b = maps(12, side=(6, 6)).abs() ** 2, maps(12, side=(6, 6)).abs() ** 2
    a[6:, :, 3:], b[6:, :, :3] = 0, 0  # half of the pairs are far apart
    ours = wasserstein(a, b)
    exact = torch.tensor([exact_wasserstein(x.numpy(), y.numpy()) for x, y in zip(a, b, strict=True)])
    assert bool((ours <= exact * math.pi / 2 + 1e-9).all())
    assert bool((ours >= 0.5 * exact).all())
    assert scipy.stats.spearmanr(ours, exact).statistic > 0.9


@pytest.mark.parametrize("shift", [(0, 1), (3, 0), (2, 5)])
def test_a_shifted_map_is_as_far_as_it_was_shifted(shift):
    a = torch.zeros(20, 20)
    a[4:9, 5:8] = torch.rand(5, 3, generator=GENERATOR) + 0.1
    assert wasserstein(a, a.roll(shift, (0, 1))).item() == pytest.approx(math.hypot(*shift), rel=0.01)


@pytest.mark.parametrize("name", DISTANCES)
def test_every_distance_is_zero_for_equal_maps_symmetric_and_batched(name):
    of = DISTANCES[name]
    a, b = maps(3, 4), maps(3, 4)
    both = of(a, b)
    assert both.shape == (3, 4)
    assert both.dtype == torch.float64
    assert torch.allclose(both, of(b, a))
    assert bool((of(a, a).abs() < 1e-9).all())
    assert bool((both > 0).all())
    one_by_one = [[of(x, y).item() for x, y in zip(p, q, strict=True)] for p, q in zip(a, b, strict=True)]
    assert torch.allclose(both, torch.tensor(one_by_one, dtype=torch.float64), rtol=0, atol=1e-12)
    assert torch.allclose(of(a, b[0]), torch.stack([of(x, b[0]) for x in a]))  # leading dimensions broadcast


@pytest.mark.parametrize("name", ["1-Wasserstein", "Spearman", "Dice"])
def test_a_map_of_zeros_has_no_such_distance(name):
    zeros, other = torch.zeros(2, 14, 14), torch.rand(2, 14, 14, generator=GENERATOR)
    assert bool(DISTANCES[name](zeros, zeros).isnan().all())
    if name != "Dice":  # nothing in common with an area is a distance
        assert bool(DISTANCES[name](zeros, other).isnan().all())


@pytest.mark.gpu
@pytest.mark.parametrize("name", DISTANCES)
def test_a_gpu_gives_the_same(name):
    a, b = maps(2, 3), maps(2, 3)
    assert torch.allclose(DISTANCES[name](a.cuda(), b.cuda()).cpu(), DISTANCES[name](a, b), rtol=0, atol=1e-9)


def test_the_paper_names_six_candidates():
    assert list(distance.DISTANCES) == ["1-Wasserstein", "Dice", "Spearman", "SSIM", "ℓ1", "ℓ2"]
