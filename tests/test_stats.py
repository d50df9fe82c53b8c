"""Ranks, correlations and areas are scipy's; where they are undefined they are NaN."""

import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

from faithlab import stats
from faithlab.stats import MonteCarlo

# Few different values, so that ties are the rule.
rows = st.lists(st.integers(-3, 3).map(float), min_size=2, max_size=12)


@given(rows)
def test_rank_is_scipys_average_rank(values):
    assert stats.rank(torch.tensor(values)).tolist() == scipy.stats.rankdata(values).tolist()


def test_ranks_are_along_the_last_dimension_of_a_batch():
    values = torch.randint(5, (3, 4, 9), generator=torch.Generator().manual_seed(0))
    assert stats.rank(values).tolist() == scipy.stats.rankdata(values.numpy(), axis=-1).tolist()
    assert stats.rank(values.transpose(0, 2)).shape == (9, 4, 3)


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0, float("inf"), float("nan")]), min_size=1, max_size=12))
def test_nan_stays_nan_and_does_not_move_the_other_ranks(values):
    ranks = scipy.stats.rankdata(values, nan_policy="omit")
    torch.testing.assert_close(stats.rank(torch.tensor(values)), torch.from_numpy(ranks), equal_nan=True)


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=12))
def test_spearman_is_scipys_and_nan_only_where_a_side_is_constant(pairs):
    a, b = (torch.tensor(side, dtype=torch.float32) for side in zip(*pairs, strict=True))
    got = stats.spearman(a, b)
    if len(a.unique()) == 1 or len(b.unique()) == 1:
        assert got.isnan()
    else:
        assert got.item() == pytest.approx(scipy.stats.spearmanr(a, b).statistic, abs=1e-12)


def test_spearman_of_a_batch_is_row_by_row():
    a, b = torch.randn(2, 5, 20, generator=torch.Generator().manual_seed(0))
    expected = [scipy.stats.spearmanr(p, q).statistic for p, q in zip(a, b, strict=True)]
    assert stats.spearman(a, b).tolist() == pytest.approx(expected, abs=1e-12)


JUDGED = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=20)


@given(JUDGED)
def test_kappa_is_agreement_beyond_that_of_every_pair_of_judgements(judged):
    one, other = zip(*judged, strict=True)
    agreed = sum(a == b for a, b in judged) / len(judged)
    chance = sum(a == b for a in one for b in other) / len(judged) ** 2
    expected = 1.0 if chance == 1 else (agreed - chance) / (1 - chance)
    assert stats.kappa(torch.tensor(one), torch.tensor(other)) == pytest.approx(expected, abs=1e-9)


def test_spearman_with_a_nan_is_nan():
    assert stats.spearman(torch.tensor([1.0, torch.nan, 3.0]), torch.tensor([1.0, 2.0, 3.0])).isnan()


def test_equal_and_opposite_orders_are_exactly_one_and_minus_one():
    a = torch.randn(11, generator=torch.Generator().manual_seed(0))
    assert stats.spearman(a, a.exp()).item() == pytest.approx(1, abs=1e-15)
    assert stats.spearman(a, -(a**3)).item() == pytest.approx(-1, abs=1e-15)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_pearson_is_scipys_at_any_scale(dtype, scale):
    a, b = torch.randn(2, 30, generator=torch.Generator().manual_seed(0), dtype=dtype) * scale
    assert stats.pearson(a, b).item() == pytest.approx(scipy.stats.pearsonr(a.double(), b.double()).statistic, abs=1e-9)


@pytest.mark.parametrize("value", [0.1, 0.3, 100_000.1])
@pytest.mark.parametrize("count", [3, 7, 10])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_pearson_of_a_constant_is_nan_even_where_its_mean_is_rounded(value, count, dtype):
    constant, other = torch.full((count,), value, dtype=dtype), torch.arange(count).to(dtype)
    assert stats.pearson(constant, other).isnan()
    assert stats.pearson(other, constant).isnan()


def test_auc_is_the_mean_height_by_trapezoids():
    at = torch.tensor([0.1, 0.2, 0.5], dtype=torch.float64)
    # (0.1 * (1 + 3) / 2 + 0.3 * (3 + 5) / 2) / 0.4
    assert stats.auc(torch.tensor([1.0, 3.0, 5.0], dtype=torch.float64), at).item() == pytest.approx(3.5)
    curves = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = scipy.integrate.trapezoid(curves.numpy(), at.numpy(), axis=-1) / 0.4
    assert stats.auc(curves, at).tolist() == pytest.approx(expected.tolist())


def test_bootstrap_counts_how_often_each_example_was_picked():
    weights = stats.bootstrap(50, 2000, torch.Generator().manual_seed(0))
    assert weights.shape == (2000, 50)
    assert (weights.sum(1) == 50).all()
    assert torch.equal(weights, weights.round())
    # The count of one example is binomial (50, 1/50): variance 0.98.
    assert weights.var(0).mean().item() == pytest.approx(0.98, rel=0.05)
    assert torch.equal(weights, stats.bootstrap(50, 2000, torch.Generator().manual_seed(0)))


def test_the_error_of_a_mean_of_independent_estimates_adds_in_squares():
    estimate = MonteCarlo(torch.tensor([[1.0, 2.0], [3.0, 6.0]]), torch.tensor([[3.0, 0.0], [4.0, 2.0]]))
    mean = estimate.mean()
    assert mean.value.tolist() == [2, 4]
    assert mean.error.tolist() == [2.5, 1.0]  # sqrt(9 + 16) / 2, sqrt(0 + 4) / 2
    assert estimate.mean(1).value.tolist() == [1.5, 4.5]
