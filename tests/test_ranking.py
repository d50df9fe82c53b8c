"""Macro and micro correlations and ranks against loops of scipy, and against cases worked by hand."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import literal
from faithlab.metrics import ranking

NAN = math.nan
FRACTIONS = [0.05, 0.1, 0.3, 0.5]
curves = st.lists(st.lists(st.integers(0, 4).map(lambda n: n / 4), min_size=4, max_size=4), min_size=2, max_size=7)


def double(rows):
    return torch.tensor(rows, dtype=torch.float64)


@given(curves, st.randoms(use_true_random=False))
def test_correlations_with_the_truth_are_loops_of_scipys_spearman(rows, random):
    truth = random.sample(range(len(rows)), len(rows))
    micro = ranking.micro_correlations(double(rows), double(truth))
    assert micro.tolist() == pytest.approx(literal.micro_correlations(rows, truth), abs=1e-12, nan_ok=True)
    # Heights and positions that are sums of halves and quarters: areas equal on paper are equal to the last bit.
    exact = [0.0, 0.25, 0.5, 1.0]
    macro = ranking.macro_correlation(double(rows), double(truth), double(exact))
    assert macro == pytest.approx(literal.macro_correlation(rows, truth, exact), abs=1e-12, nan_ok=True)


@given(curves, st.randoms(use_true_random=False))
def test_two_metrics_are_compared_as_a_metric_with_the_truth(rows, random):
    # On a grid: differences below 1e-9 are rounding to a rank, see the test of equal areas.
    other = [[random.randrange(1000) / 1000 for _ in FRACTIONS] for _ in rows]
    micro = ranking.micro_correlations(double(rows), double(other))
    columns = list(zip(*other, strict=True))
    expected = [literal.micro_correlations(rows, column)[k] for k, column in enumerate(columns)]
    assert micro.tolist() == pytest.approx(expected, abs=1e-12, nan_ok=True)
    exact = [0.0, 0.25, 0.5, 1.0]
    areas = [literal.area(curve, exact) for curve in other]
    macro = ranking.macro_correlation(double(rows), double(other), double(exact))
    assert macro == pytest.approx(literal.macro_correlation(rows, areas, exact), abs=1e-12, nan_ok=True)


def test_the_ideal_metrics_have_the_ideal_correlations():
    # The better of three explainers loses more accuracy without its top features, and less without the others.
    truth = double([0, 1, 2])
    morf = double([[0.9, 0.8], [0.6, 0.5], [0.3, 0.1]])
    lerf = double([[0.3, 0.1], [0.6, 0.5], [0.9, 0.8]])
    at = double([0.1, 0.2])
    for one, other, ideal in ((morf, truth, -1), (lerf, truth, 1), (morf, lerf, -1)):
        assert ranking.macro_correlation(one, other, at) == pytest.approx(ideal)
        assert ranking.micro_correlations(one, other).tolist() == pytest.approx([ideal] * 2)


def test_one_exchange_among_four_costs_a_fifth():
    # 1 - 6 * (1 + 1) / (4 * 15) = 0.8, then with all reversed -1.
    micro = ranking.micro_correlations(double([[1, 4], [3, 3], [2, 2], [4, 1]]), double([1, 2, 3, 4]))
    assert micro.tolist() == pytest.approx([0.8, -1.0])


def test_a_constant_column_is_missing_and_never_zero():
    micro = ranking.micro_correlations(double([[0.1, 0.5], [0.1, 0.4], [0.1, 0.3]]), double([1, 2, 3]))
    assert micro.isnan().tolist() == [True, False]
    assert ranking.spread(micro) == (pytest.approx(-1.0), 0.0, 1)  # not the mean of -1 and 0
    assert math.isnan(ranking.macro_correlation(double([[1, 1], [1, 1]]), double([1, 2]), double([0.1, 0.2])))


def test_spread_is_the_mean_and_the_population_deviation_of_what_is_there():
    spread = ranking.spread(double([1.0, NAN, -1.0, NAN, 0.0]))
    assert spread.mean == 0
    assert spread.std == pytest.approx(math.sqrt(2 / 3))
    assert spread.missing == 2


def test_the_spread_of_nothing_is_nan():
    mean, std, missing = ranking.spread(double([NAN, NAN]))
    assert math.isnan(mean)
    assert math.isnan(std)
    assert missing == 2


@given(
    st.lists(st.lists(st.sampled_from([-1.0, -0.4, 0.0, 0.8, NAN]), min_size=3, max_size=3), min_size=1, max_size=5),
    st.sampled_from([-1.0, 1.0]),
)
def test_micro_rank_counts_the_metrics_that_are_nearer_to_the_ideal(correlations, ideal):
    ranks = ranking.micro_rank(double(correlations), ideal)
    expected = double(literal.micro_rank(correlations, ideal))
    torch.testing.assert_close(ranks, expected, equal_nan=True)


def test_micro_rank_by_hand():
    correlations = double([[-1.0, -0.9, 0.3], [-1.0, -1.0, NAN], [-0.2, 0.5, -0.3]])
    assert ranking.micro_rank(correlations, -1.0).nan_to_num(0).tolist() == [[1, 2, 2], [1, 1, 0], [3, 3, 1]]
    assert ranking.micro_rank(correlations, +1.0).nan_to_num(0).tolist() == [[2, 2, 1], [2, 3, 0], [1, 1, 2]]


def test_equal_correlations_that_were_rounded_apart_share_a_rank():
    assert ranking.micro_rank(double([[1.0], [1.0 - 1e-15]]), 1.0).tolist() == [[1], [1]]


def test_areas_that_are_equal_on_paper_are_a_tie():
    # 0.1 + 0.2 is 0.30000000000000004: the first two areas are equal on paper, not to the last bit.
    curves = double([[0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2], [0.9, 0.9]])
    assert ranking.macro_correlation(curves, double([0, 0, 1]), double([0.1, 0.2])) == pytest.approx(1)
    assert ranking.micro_correlations(curves, double([0, 0, 1])).tolist() == pytest.approx([1, 1])
