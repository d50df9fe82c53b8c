"""The trials of degraded explanations and of random masks, on tables and networks whose answers are known."""

import math

import matplotlib.pyplot as plt
import pandas as pd
import pytest
import torch

from faithlab import segments, stats
from faithlab.metrics import METRICS
from faithlab.metrics.fidelity import fidelities
from faithlab.metrics.robustness import advise
from faithlab.scores import Scores
from faithlab.task import Task
from faithstudy import claims, plots, published
from faithstudy.trials import comparisons, degraded, masking, tasks

LEVELS, SEEDS, SIZES = (0.0, 0.5, 1.0), (3, 4), (0.25, 0.5, 0.75)
TRIAL = {"levels": LEVELS, "seeds": SEEDS}
FOUR = {name: METRICS[name].given(sizes=SIZES) for name in ("Fid+", "Fid-", "FFid+", "FFid-")}


def table(quality, *, images=150, datasets=("d",), hits=False, noise=0.3) -> Scores:
    """Scores of the four metrics: `quality` of a metric is what it loses for each share of noise that is absent."""
    g = torch.Generator().manual_seed(0)
    found = []
    for dataset in datasets:
        of_image = torch.rand(images, 1, generator=g)
        for name in FOUR:
            for level in LEVELS:
                for seed in SEEDS if level else (None,):
                    values = of_image + noise * torch.randn(images, len(SIZES), generator=g)
                    values = values + FOUR[name].better * quality[name] * (1 - level)
                    labels = {"dataset": dataset, "network": "n", "explainer": "e", "metric": name}
                    labels |= {"level": level or None, "noise_seed": seed}
                    values = values > 0.5 if hits else values
                    found.append(Scores.of(values, images=range(images), sizes=SIZES, **labels))
    return Scores.concat(found)


RIGHT = dict.fromkeys(FOUR, 1.0)


def test_each_data_set_is_a_trial_of_its_own():
    both = table(RIGHT, datasets=("a", "b"))
    measured = degraded.correlations(both, FOUR, by=("dataset", "explainer"), **TRIAL)
    keys = ["level", "comparison", "metric"]
    for name in ("a", "b"):
        alone = degraded.correlations(both.where(dataset=name), FOUR, **TRIAL).set_index(keys)
        here = measured[measured["dataset"] == name].set_index(keys)
        assert here[["mean", "low", "high"]].equals(alone[["mean", "low", "high"]])
    ideal = {"MoRF vs GT": -1, "LeRF vs GT": 1, "MoRF vs LeRF": -1}
    macro = measured[measured["level"] == "macro_correlation"]
    assert macro["mean"].tolist() == pytest.approx(macro["comparison"].map(ideal).tolist())


def test_intervals_of_few_inputs_end_where_correlations_do():
    few = degraded.correlations(table(dict.fromkeys(FOUR, 0.1), images=12), FOUR, **TRIAL)
    ranks = few["level"] == "micro_rank"
    assert few[~ranks][["low", "high"]].abs().max().max() == 1
    assert few[ranks][["low", "high"]].melt()["value"].between(1, 2).all()


def test_reach_is_the_area_between_the_best_and_the_worst():
    reached = degraded.reach(table(RIGHT | {"FFid+": -0.5}, noise=0.0), FOUR, levels=LEVELS)
    assert float(reached["Fid+"]) == pytest.approx(1)
    assert float(reached["Fid-"]) == pytest.approx(1)
    assert float(reached["FFid+"]) == pytest.approx(-0.5)


def test_a_metric_that_scores_all_the_same_tells_none_apart():
    scores = table(RIGHT | {"FFid-": 0.0}, noise=0.0)
    assert degraded.told_apart(scores, metric="Fid+", **TRIAL).tolist() == [[True] * 3] * 2
    assert not degraded.told_apart(scores, metric="FFid-", **TRIAL).any()


class First(torch.nn.Module):
    """Says class 1 where the first feature is there."""

    def forward(self, x):
        return torch.stack([torch.full_like(x[:, 0], 0.5), x[:, 0]], 1)


@pytest.fixture
def task() -> Task:
    labels = {"dataset": "d", "network": "n", "training_seed": 0}
    x, y = torch.ones(40, 4), torch.ones(40, dtype=torch.int64)
    return Task(First(), x, y, segments.values(1, 4).flatten(), tuned=First(), **labels)


def test_masks_cost_what_they_remove(task):
    scores = masking.masked(task, (0.0, 0.25, 1.0), draws=30, seed=1)
    own = {"network": "n original"}
    assert float(stats.estimate(scores, masking.at(0.0), **own)) == 1
    assert float(stats.estimate(scores, masking.lost(1.0), **own)) == 1
    # One of four features is removed: the one that counts in a quarter of the cases.
    assert float(stats.estimate(scores, masking.lost(0.25), **own)) == pytest.approx(0.25, abs=0.06)
    found = masking.accuracies(scores)
    assert set(found["network"]) == {"n original", "n fine-tuned"}
    assert found["masked"].tolist() == [0.0, 0.25, 1.0] * 2
    with pytest.raises(ValueError, match=r"0\.5: not among the masked shares, \[0\.0, 0\.25, 1\.0\]"):
        stats.estimate(scores, masking.lost(0.5), **own)


def test_published_masks_cost_what_table_8_says():
    at = masking.printed(published.load("ffidelity_robustness"), "Boiler", "LSTM")
    assert (at[0.0] - at[0.1])["original"] == pytest.approx(0.1861)
    assert at.index.tolist() == ["fine-tuned", "original"]
    nothing = masking.printed(published.load("ffidelity_robustness"), "PAM", "LSTM")
    assert nothing.shape == at.shape
    assert nothing.isna().all(axis=None)


def test_what_masks_warrant_is_the_advice_on_the_mean_of_masks_and_networks():
    g = torch.Generator().manual_seed(0)
    shares, about = torch.tensor([0.0, 0.3, 0.5], dtype=torch.float64), {"dataset": "d", "metric": "accuracy"}
    bears = [torch.rand(400, 3, generator=g) > torch.tensor([0.0, 0.0, lost]) for lost in (0.01, 0.3)]
    fails = torch.rand(400, 3, generator=g) > torch.tensor([0.0, 0.4, 0.6])
    asked = [("n", 0, bears[0]), ("n", 1, bears[1]), ("other", 0, fails)]
    scores = Scores.concat(
        Scores.of(hits, images=range(400), sizes=shares, network=n, training_seed=seed, explainer="random", **about)
        for n, seed, hits in asked
    )
    found = masking.advised(scores, beta=0.1)
    assert found[["network", "bearable", "metric"]].to_numpy().tolist() == [
        ["n", 0.3, "R-Fidelity"],
        ["other", 0.0, "F-Fidelity"],
    ]
    assert found["reason"][0] == advise(torch.stack(bears).double().mean(0), shares, beta=0.1).reason
    each = masking.advised(scores, ("network", "training_seed"), beta=0.1)
    assert each["metric"].tolist() == ["Fidelity", "R-Fidelity", "F-Fidelity"]


def test_chosen_inputs_are_spread_over_a_sorted_set():
    assert tasks.evenly(torch.arange(10, 20), 4).tolist() == [10, 13, 16, 19]
    assert tasks.evenly(torch.arange(3), 8).tolist() == [0, 1, 2]


def declared(scores) -> dict[str, claims.Part]:
    """The parts that the pages of degraded explanations declare."""
    falls = {"by": "level", "order": [level or None for level in LEVELS], "of": stats.area}
    up, down = (stats.mean_step(LEVELS, SEEDS, micro=True, better=b) for b in (1, -1))
    macro = stats.mean_step(LEVELS, SEEDS, better=-1)
    return {
        "every step": claims.in_order(scores, metric="FFid-", rises=True, **falls),
        "trend": claims.trend(scores, metric="Fid+", **falls),
        "best": claims.best(scores, "metric", "FFid+", rivals=["Fid+"], of=up),
        "better": claims.better(scores, {"metric": "FFid-"}, {"metric": "Fid-"}, of=macro),
        "better at single sizes": claims.better(scores, {"metric": "FFid-"}, {"metric": "Fid-"}, of=down),
        "as well": claims.no_worse(scores, {"metric": "Fid+"}, {"metric": "FFid+"}, margin=0.5, reason="x", of=up),
    }


def test_parts_of_claims_are_those_that_are_written_out():
    scores = table({"Fid+": 0.05, "Fid-": 0.02, "FFid+": 0.08, "FFid-": 0.03})  # apart, but not surely
    as_well = {"part": claims.no_worse, "margin": 0.5, "reason": "x"}
    short = {
        "every step": degraded.ordered(scores, "FFid-", LEVELS),
        "trend": degraded.ordered(scores, "Fid+", LEVELS, part=claims.trend),
        "better": degraded.ahead(scores, "FFid-", "Fid-", **TRIAL),
        "better at single sizes": degraded.ahead(scores, "FFid-", "Fid-", **TRIAL, micro=True),
        "as well": degraded.ahead(scores, "Fid+", "FFid+", **TRIAL, micro=True, **as_well),
    }
    literal = declared(scores)
    for name, part in short.items():
        assert (part.kind, part.name, part.low) == (literal[name].kind, literal[name].name, literal[name].low)
        torch.testing.assert_close(part.estimate.pooled, literal[name].estimate.pooled)
        assert float(part.estimate.value[0]) != 0


@pytest.mark.slow
@pytest.mark.parametrize("name", declared(table(RIGHT)))
@pytest.mark.parametrize("images", [40, 150])
def test_chance_rarely_passes_a_claim_of_these_pages(name, images):
    """Scores without an order, as hits, and levels that change places: 5 % of 150 runs is 7, and 14 in one of 100."""
    part = declared(table(dict.fromkeys(FOUR, 0.05), images=images, hits=True))[name]
    rates = claims.error_rate(claims.Claim("x", "Table 3", "x", [part]), 150)
    assert rates.reproduced < 14, str(rates)


def test_the_metrics_of_a_page_are_those_of_its_parameters():
    page = {"size_step": 0.25, "alpha": 0.4, "beta": 0.2, "draws": 3, "seed": 5}
    found = fidelities(("Fid", "FFid"), **page)
    assert list(found) == ["Fid+", "FFid+", "Fid-", "FFid-"]
    drawn = {"alpha": 0.4, "cap": 0.2, "draws": 3, "seed": 5}
    for name, own in (("Fid+", {}), ("FFid-", drawn)):
        expected = METRICS[name].given(sizes=SIZES, **own)
        assert (found[name].sizes, found[name].compute.keywords) == (expected.sizes, expected.compute.keywords)
    assert set(fidelities(**page)) == {f + way for f in ("Fid", "ROAR", "RFid", "FFid") for way in "+-"}


def test_in_one_sign_the_right_order_is_1_and_ranks_stay():
    rows = [
        ("macro_correlation", "MoRF vs GT", -0.9, -1.0, -0.7),
        ("macro_correlation", "LeRF vs GT", 0.8, 0.6, 0.9),
        ("micro_correlation", "MoRF vs LeRF", 0.2, -0.1, math.nan),
        ("micro_rank", "MoRF vs GT", 1.5, 1.2, 1.9),
        ("macro_correlation", "share of the ideal", -0.3, -0.4, -0.2),
    ]
    table_ = pd.DataFrame(rows, columns=["level", "comparison", "mean", "low", "high"])
    found = comparisons.in_one_sign(table_)
    assert found["mean"].tolist() == [0.9, 0.8, -0.2, 1.5, -0.3]
    assert found[["low", "high"]].to_numpy()[[0, 1, 3, 4]].tolist() == [
        [0.7, 1.0],
        [0.6, 0.9],
        [1.2, 1.9],
        [-0.4, -0.2],
    ]
    assert comparisons.in_one_sign(table_.drop(columns=["low", "high"]))["mean"].tolist() == found["mean"].tolist()
    assert comparisons.in_one_sign(table_.query("level == 'none'")).empty


def test_degraded_curves_are_those_of_one_direction():
    scores = table(RIGHT, noise=0.0)
    look = {"size": "size", "lost": "accuracy"}
    default, lerf = (plots.degraded_curves(scores, FOUR, **look, **way) for way in ({}, {"direction": "LeRF"}))
    assert [axes.get_title() for axes in default.axes] == ["Fid+", "FFid+"]
    assert [axes.get_title() for axes in lerf.axes] == ["Fid-", "FFid-"]
    for figure, sign in ((default, 1), (lerf, -1)):  # the explanation as it is: the most is lost, or the least
        for axes in figure.axes:
            means = [line.get_ydata().mean() for line in axes.lines]
            assert means == sorted(means, reverse=sign > 0)
    with pytest.raises(ValueError, match=r"removes features under LeRF; there are Fid\+$"):
        plots.degraded_curves(scores, {"Fid+": FOUR["Fid+"]}, **look, direction="LeRF")


def test_by_how_much_noise_changes_a_metric_is_what_it_lost():
    scores = table({"Fid+": 1.0, "Fid-": 1.0, "FFid+": 0.5, "FFid-": 0.5}, noise=0.0)
    side = FOUR["Fid+"].better
    assert float(degraded.changed(scores, {"Fid+": side})) == pytest.approx(1)
    assert float(degraded.changed(scores, {"Fid+": side}, None, 0.5)) == pytest.approx(0.5)
    assert float(degraded.changed(scores, {"Fid+": side}, 0.5, 1.0)) == pytest.approx(0.5)
    assert float(degraded.changed(scores, {"Fid+": side, "FFid+": -side})) == pytest.approx(0.5)
    last = degraded.changed(scores, {"Fid-": FOUR["Fid-"].better}, of=lambda sample: sample.mean()[:, -1])
    assert (float(last), last.images) == (pytest.approx(1), 150)
    with pytest.raises(ValueError, match="explainer"):
        degraded.changed(scores, {"Fid+": side}, explainer="nobody")


def test_the_least_step_of_noise_is_found_and_named():
    steep, other = (table(dict.fromkeys(FOUR, quality), noise=0.0) for quality in (1.0, 0.4))
    bent = steep.where(level=[None, 1.0]) + other.where(level=0.5)  # 1, then 0.2, then 0
    name, least = degraded.least_step(bent, {"Fid+": FOUR["Fid+"].better})
    assert (name, float(least)) == ("from 50 to 100 % of noise", pytest.approx(0.2))
    name, least = degraded.least_step(steep.where(level=[None, 1.0]), {"Fid+": FOUR["Fid+"].better})
    assert (name, float(least)) == ("from 0 to 100 % of noise", pytest.approx(1))
    unsure = bent.where(level=[0.5, 1.0]) + table(RIGHT, noise=5.0).where(level=[None])
    name, least = degraded.least_step(unsure, {"Fid+": FOUR["Fid+"].better})
    assert name == "from 0 to 50 % of noise", "it is larger than the step of 0.2, which is sure"
    assert float(least) > 0.4


def test_a_series_is_drawn_over_the_relevance_of_its_steps():
    shown = torch.arange(12.0).view(6, 2)
    _, axes = plt.subplots()
    plots.series(axes, shown, torch.tensor([4.0, -1, 2, 0, 9, 9]))
    assert [line.get_ydata().tolist() for line in axes.lines] == shown.T.tolist()
    assert len({(line.get_linestyle(), line.get_color()) for line in axes.lines}) == 2
    assert axes.images[0].get_array().tolist() == [[4.0, 0, 2, 0, 9, 9]]
    assert axes.get_xlim() == (-0.5, 5.5)
