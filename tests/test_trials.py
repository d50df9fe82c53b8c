"""The trial of degraded explainers, on a score whose answer is known, and the tables that the book shows of it."""

import pandas as pd
import pytest
import torch

from faithlab.metrics.fidelity import remaining
from faithlab.study import tables, trials

FRACTIONS = torch.tensor([0.1, 0.3, 0.5, 0.7, 0.9], dtype=torch.float64)
SHARES = [0.0, 0.5, 1.0]
WEIGHTS = torch.rand(40, 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def score(keep):
    """The kept share of each image's weight: the weights themselves are the perfect explanation."""
    return torch.einsum("bmf,bf->bm", keep.double(), WEIGHTS / WEIGHTS.sum(1, keepdim=True))


def honest(attribution):
    return remaining(score, attribution, FRACTIONS), remaining(score, attribution, FRACTIONS, direction="LeRF")


def blind(attribution):
    """A metric that never looks at the explanation."""
    return honest(torch.zeros_like(attribution))


@pytest.fixture(scope="module")
def curves() -> pd.DataFrame:
    metrics = {"honest": honest, "blind": blind}
    return trials.degraded_curves(metrics, {"weights": WEIGHTS}, SHARES, FRACTIONS, seeds=[3, 4])


def test_every_metric_share_seed_direction_and_size_is_there_once(curves):
    keys = ["explainer", "metric", "share", "seed", "direction", "fraction"]
    assert len(curves) == 2 * 3 * 2 * 2 * 5
    assert not curves.duplicated(keys).any()


def test_curves_are_the_means_of_the_metric(curves):
    morf, lerf = honest(WEIGHTS)
    undegraded = curves[(curves["metric"] == "honest") & (curves["share"] == 0) & (curves["seed"] == 4)]
    for direction, expected in (("MoRF", morf), ("LeRF", lerf)):
        measured = undegraded[undegraded["direction"] == direction]
        assert measured["value"].tolist() == pytest.approx(expected.value.mean(0).tolist())


def test_an_honest_metric_is_ideal_and_a_blind_one_has_no_correlation(curves):
    judged = trials.correlations(curves).set_index(["level", "comparison", "metric"])
    for comparison, ideal in trials.IDEAL.items():
        assert judged.loc[("macro_correlation", comparison, "honest"), "mean"] == pytest.approx(ideal)
        assert judged.loc[("micro_correlation", comparison, "honest"), "mean"] == pytest.approx(ideal)
        assert judged.loc[("micro_rank", comparison, "honest"), "mean"] == 1
        for level, count in (("macro_correlation", 2), ("micro_correlation", 10), ("micro_rank", 10)):
            row = judged.loc[(level, comparison, "blind")]
            assert pd.isna(row["mean"])
            assert row["missing"] == row["count"] == count


def test_noise_is_drawn_anew_for_every_seed(curves):
    noisy = curves[(curves["metric"] == "honest") & (curves["share"] == 0.5)]
    by_seed = noisy.pivot(index=["direction", "fraction"], columns="seed", values="value")
    assert (by_seed[3] != by_seed[4]).all()


def test_the_tables_columns_are_its_sources_and_missing_values_are_counted():
    measured = pd.DataFrame(
        {"row": ["a", "b"], "column": "x", "mean": [-0.5, float("nan")], "std": [0.25, float("nan")], "missing": [2, 3]}
    )
    printed = pd.DataFrame({"row": ["a", "c"], "column": "x", "mean": [-1.0, 0.125]})
    table = tables.side_by_side(
        {"published": printed, "recorded": None, "this build": measured}, rows=["row"], columns=["column"]
    )
    assert list(table.columns) == [("x", "published"), ("x", "this build")]
    assert table.loc["a"].tolist() == ["−1.00", "−0.50 ± 0.25 (2 missing)"]
    assert table.loc["b"].tolist() == ["–", "none (3 missing)"]
    assert table.loc["c"].tolist() == ["0.12", "–"]


def test_the_order_of_a_table_can_be_given():
    frame = pd.DataFrame({"row": ["a", "b", "c"], "column": "x", "mean": [1.0, 2.0, 3.0]})
    table = tables.side_by_side({"here": frame}, rows=["row"], columns=["column"], order=["c", "a", "nowhere"])
    assert list(table.index) == ["c", "a", "b"]


def test_the_papers_metrics_are_one_function_on_three_networks():
    """Each network counts how often it is asked; what it is asked about are the masks of its metric."""
    removed = {}

    def network(name):
        def answer(keep):
            removed.setdefault(name, []).append((~keep).sum(-1).max().item())
            return keep.double().mean(-1)

        return answer

    metrics = trials.fidelities(
        network("original"), network("tuned"), network("retrained"), FRACTIONS, alpha=0.5, beta=0.1, draws=2
    )
    assert tuple(metrics) == trials.ORDER
    for metric in metrics.values():
        metric(WEIGHTS)
    features = WEIGHTS.shape[1]
    assert max(removed["retrained"]) == 0.9 * features
    assert max(removed["original"]) == 0.9 * features
    assert max(removed["tuned"]) == 0.1 * features
    without = trials.fidelities(score, score, None, FRACTIONS, alpha=0.5, beta=0.1, draws=2)
    assert tuple(without) == ("Fidelity", "R-Fidelity", "F-Fidelity")
    # R-Fidelity removes half of what Fidelity removes.
    plain, half = (without[name](WEIGHTS)[0].value for name in ("Fidelity", "R-Fidelity"))
    assert (half > plain).all()
