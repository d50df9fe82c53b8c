"""ReCo and MeGe against their literal definitions, and on sets of distances whose scores are known on paper."""

import math

import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import literal
from faithlab.metrics.consistency import mege, reco, reco_auc, sweep, to_unseen
from faithlab.metrics.distance import spearman

GENERATOR = torch.Generator().manual_seed(0)
# Few different values, so that ties within and between the sets are common.
DISTANCES = st.lists(st.integers(0, 12).map(lambda n: n / 12), min_size=1, max_size=12)


def some(*size: int) -> torch.Tensor:
    return torch.rand(*size, generator=GENERATOR, dtype=torch.float64)


# Against the literal definitions


@given(DISTANCES, DISTANCES)
def test_every_score_is_the_literal_one(same, different):
    a, b = torch.tensor(same, dtype=torch.float64), torch.tensor(different, dtype=torch.float64)
    assert mege(a) == pytest.approx(literal.mege(same))
    assert reco(a, b) == pytest.approx(literal.reco(same, different))
    assert reco_auc(a, b) == pytest.approx(literal.reco_auc(same, different), abs=1e-12)
    assert reco_auc(a, b, "printed") == pytest.approx(literal.reco_auc(same, different, printed=True), abs=1e-12)
    if len({*same, *different}) > 1:
        assert reco(a, b, "printed") == pytest.approx(literal.reco(same, different, printed=True))
    else:
        assert math.isnan(reco(a, b, "printed"))  # no threshold has anything on both sides


@given(DISTANCES, DISTANCES)
def test_balanced_reco_is_scipys_one_sided_kolmogorov_smirnov_distance(same, different):
    a, b = torch.tensor(same, dtype=torch.float64), torch.tensor(different, dtype=torch.float64)
    assert reco(a, b) == pytest.approx(scipy.stats.ks_2samp(same, different, alternative="greater").statistic)
    assert reco(a.sqrt(), b.sqrt()) == pytest.approx(reco(a, b))  # any increasing transformation of the distance


@given(DISTANCES, DISTANCES)
def test_the_balanced_area_is_the_difference_of_the_means(same, different):
    a, b = torch.tensor(same, dtype=torch.float64), torch.tensor(different, dtype=torch.float64)
    assert reco_auc(a, b) == pytest.approx((b.mean() - a.mean()).item(), abs=1e-12)


def test_distances_do_not_depend_on_how_many_examples_are_measured_at_once():
    maps, own = torch.rand(3, 20, 4, 4, generator=GENERATOR), torch.randint(3, (20,), generator=GENERATOR)
    whole = to_unseen(maps, own, spearman)
    parts = [to_unseen(maps[:, i : i + 3], own[i : i + 3], spearman) for i in range(0, 20, 3)]
    assert torch.equal(whole, torch.cat(parts))
    assert whole.shape == (20, 3)
    assert bool((whole.gather(1, own[:, None]).abs() < 1e-12).all())  # the unseen model and itself


# Known on paper


def test_perfect_separation_scores_one_and_its_reverse_zero():
    near, far = 0.4 * some(30), 0.6 + 0.4 * some(7)
    for rates in ("balanced", "printed"):
        assert reco(near, far, rates) == 1
    assert reco(far, near) == 0
    assert reco(torch.tensor([0.1]), torch.tensor([0.9])) == 1
    assert reco(near, near) == 0


def test_a_random_explanation_scores_zero_with_balanced_rates_only():
    same, different = some(20_000), torch.cat([some(1_999), torch.ones(1)])
    chance = 0.63 * math.sqrt(1 / 20_000 + 1 / 2_000)
    assert 0 <= reco(same, different) < 4 * chance
    assert abs(reco_auc(same, different)) < 4 * chance
    assert reco(same, different, "printed") > 0.8  # above all others but the last lies S!= alone, below it 0.91 of S=


def test_identical_explanations_have_the_highest_mege():
    assert mege(torch.zeros(5)) == 1
    assert mege(torch.ones(5)) == 0.5
    assert mege(torch.tensor([0.0, 1.0, 2.0])) == 0.5


def test_every_rate_is_a_step_between_two_neighbouring_distances():
    at = sweep(torch.tensor([0.1, 0.3]), torch.tensor([0.2, 0.4]))
    assert at.below.tolist() == pytest.approx([0.1, 0.2, 0.3])
    assert at.above.tolist() == pytest.approx([0.2, 0.3, 0.4])
    assert at.tpr.tolist() == [0.5, 0.5, 1]
    assert at.tnr.tolist() == [1, 0.5, 0.5]
    at = sweep(torch.tensor([0.1, 0.3]), torch.tensor([0.2, 0.4]), "printed")
    assert at.tpr.tolist() == pytest.approx([1, 1 / 2, 2 / 3])
    assert at.tnr.tolist() == pytest.approx([2 / 3, 1 / 2, 1])


# Missing values and bad input


def test_an_empty_set_is_a_missing_score():
    none, some_distances = torch.zeros(0), torch.tensor([0.2, 0.4])
    assert math.isnan(mege(none))
    for rates in ("balanced", "printed"):
        for pair in ((some_distances, none), (none, some_distances), (none, none)):
            assert math.isnan(reco(*pair, rates))
            assert math.isnan(reco_auc(*pair, rates))


# Cost


class Made(TorchDispatchMode):
    """Counts the elements of everything that is computed: work that no clock and no other process can blur."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **kwargs or {})
        self.elements += sum(part.numel() for part in tree_leaves(found) if isinstance(part, torch.Tensor))
        return found


def test_the_sweep_of_every_threshold_is_no_loop_over_them():
    def work(n: int) -> int:
        same, different = some(n), some(n)
        with Made() as made:
            reco(same, different)
        return made.elements

    # Quadratic work would make 256 times as many.
    assert work(16_000) < 20 * work(1_000)
