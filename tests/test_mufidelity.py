"""muFidelity and stability: against the literal definitions, and on models that know them on paper."""

import math

import pytest
import scipy.stats
import torch

import literal
from faithlab.metrics.distance import l2, spearman
from faithlab.metrics.mufidelity import mu_fidelity
from faithlab.metrics.stability import average_stability, neighbours

GENERATOR = torch.Generator().manual_seed(0)
B, F = 5, 20
WEIGHTS = torch.randn(B, F, generator=GENERATOR)


def linear(keep: torch.Tensor) -> torch.Tensor:
    return (keep * WEIGHTS[:, None]).sum(-1)


def curved(keep: torch.Tensor) -> torch.Tensor:
    return linear(keep).sigmoid()


@pytest.mark.parametrize("share", [0.15, 0.5, 0.225])  # 0.225 of 20 is 4.5, and less in float32
def test_mu_fidelity_is_the_literal_one(share):
    attribution = torch.randn(B, F, generator=GENERATOR)
    attribution[3] = 2.0  # every subset has the same sum
    found = mu_fidelity(curved, attribution, share, draws=12, seed=7, images=torch.arange(B) + 40)
    for image in range(B):

        def ask(kept, image=image):
            keep = torch.zeros(B, 1, F, dtype=torch.bool)
            keep[image, 0, list(kept)] = True
            return curved(keep)[image, 0].item()

        expected = literal.mu_fidelity(ask, attribution[image].tolist(), share, draws=12, seed=7, image=image + 40)
        assert found[image].item() == pytest.approx(expected, abs=1e-5, nan_ok=True)
    assert bool(found[3].isnan())


def test_the_weights_of_a_linear_model_score_one():
    assert torch.allclose(mu_fidelity(linear, WEIGHTS), torch.ones(B, dtype=torch.float64))
    assert torch.allclose(mu_fidelity(linear, -3 * WEIGHTS + 1), -torch.ones(B, dtype=torch.float64))


def test_a_random_attribution_scores_about_zero():
    attribution = torch.randn(B, 200, F, generator=GENERATOR)
    found = mu_fidelity(linear, attribution, draws=200)
    assert found.shape == (B, 200)
    assert bool((found.mean(1).abs() < 0.1).all())


def test_several_explainers_are_one_question_to_the_model():
    asked = []

    def counting(keep):
        asked.append(keep.shape[1])
        return curved(keep)

    several = torch.randn(B, 3, F, generator=GENERATOR)
    together = mu_fidelity(counting, several, draws=30)
    assert sum(asked) == 30
    for a in range(3):
        torch.testing.assert_close(together[:, a], mu_fidelity(curved, several[:, a], draws=30), atol=1e-6, rtol=0)


def test_the_result_does_not_depend_on_the_memory_at_hand(monkeypatch):
    whole = mu_fidelity(curved, WEIGHTS, draws=30)
    monkeypatch.setattr("faithlab.masks.BUDGET", 1)
    assert torch.allclose(mu_fidelity(curved, WEIGHTS, draws=30), whole, rtol=0, atol=1e-6)  # sums in float32


# Stability


@pytest.mark.parametrize("norm", ["l1", "max"])
def test_neighbours_are_uniform_in_the_ball(norm):
    x = torch.zeros(1, 2, dtype=torch.float64)
    steps = neighbours(x, 0.5, 40_000, norm=norm)[0]
    size = steps.abs().sum(1) if norm == "l1" else steps.abs().amax(1)
    assert bool((size <= 0.5).all())
    # In the plane the share of a ball within half its radius is a quarter: (size / r)^2 is uniform.
    assert scipy.stats.kstest((size / 0.5) ** 2, "uniform").pvalue > 1e-4
    # And no direction is preferred: each of the four quadrants, and both sides of its diagonal, hold an eighth.
    sector = 4 * (steps[:, 0] > 0) + 2 * (steps[:, 1] > 0) + (steps[:, 0].abs() > steps[:, 1].abs())
    assert scipy.stats.chisquare(sector.bincount(minlength=8)).pvalue > 1e-4


def test_an_images_neighbours_are_its_own_in_any_batch():
    x = torch.rand(4, 1, 3, 3, generator=GENERATOR)
    whole = neighbours(x, 0.1, 6, images=torch.tensor([5, 6, 7, 8]))
    assert whole.shape == (4, 6, 1, 3, 3)
    assert torch.equal(neighbours(x[2:], 0.1, 6, images=torch.tensor([7, 8])), whole[2:])
    assert torch.equal(neighbours(x, 0.1, 2, images=torch.tensor([5, 6, 7, 8])), whole[:, :2])
    assert not torch.equal(neighbours(x, 0.1, 6, seed=1), neighbours(x, 0.1, 6))
    assert torch.equal(neighbours(x, 0.0, 2), x[:, None].expand(4, 2, 1, 3, 3))


def test_average_stability_is_the_mean_distance():
    explained, around = torch.rand(3, 4, 4, generator=GENERATOR), torch.rand(3, 7, 4, 4, generator=GENERATOR)
    around[1, 2] = 0.5  # a constant map has no rank correlation
    found = average_stability(explained, around, spearman)
    for i in (0, 2):
        expected = [
            1 - abs(scipy.stats.spearmanr(explained[i].flatten(), around[i, n].flatten()).statistic) for n in range(7)
        ]
        assert found[i].item() == pytest.approx(sum(expected) / 7)
    assert math.isnan(found[1])
    assert average_stability(explained, explained[:, None].expand(3, 7, 4, 4), l2).tolist() == [0, 0, 0]
