"""Several kinds of network examined together, the order without a ranking inside the noise, and their figures."""

import dataclasses
import functools
import math
from types import SimpleNamespace

import jupytext
import pandas as pd
import pytest
import torch

from faithlab.metrics import METRICS
from faithlab.scores import Scores
from faithlab.task import Task
from faithstudy import paths, plots, records, tables
from faithstudy.trials import concordance, examination, recommendations, truth
from faithstudy.trials.concordance import NONE
from faithstudy.trials.truth import ORACLE


class Linear(torch.nn.Module):
    """Two logits, of weights that differ with the sign."""

    def __init__(self, sign=1):
        super().__init__()
        self.layer = torch.nn.Linear(12, 2, bias=False)
        weights = torch.arange(12.0) / 8 * sign
        self.layer.weight.data = torch.stack([-weights, weights])

    def forward(self, x):
        return self.layer(x.flatten(1))


NAMES = ("LeRF - MoRF", "Fid+", "FFid+", "MeGe")
METRICS_ASKED = {n: METRICS[n].given(sizes=(0.25, 0.5)) if METRICS[n].sizes else METRICS[n] for n in NAMES}
EXPLAINERS = {"IxG": "input-x-gradient", "gradient": "gradient"}


def task(network, seed=0, tuned=False):
    x = torch.randn(8, 1, 3, 4, generator=torch.Generator().manual_seed(seed))
    model = Linear(1 - 2 * (seed % 2))
    made = Task(model, x, torch.ones(8, dtype=torch.int64), torch.arange(12).view(3, 4), "given", network, seed)
    return dataclasses.replace(made, tuned=model) if tuned else made


OPTIONS = {"budget": 300, "gamed": 2, "levels": (0.0, 0.5, 1.0)}
STEPS = {}


def kept(step, make):
    STEPS[step] = make()
    return STEPS[step]


@functools.cache
def examined():
    kinds = {
        "one": [(task("a", tuned=True), EXPLAINERS)],
        "two": [(task("b"), EXPLAINERS), (task("b", 1, tuned=True), EXPLAINERS)],
    }
    found = examination.examine_kinds(METRICS_ASKED, kinds, truth=[truth.closed_form(8)], kept=kept, **OPTIONS)
    return kinds, found


def test_every_network_is_a_step_that_may_be_kept():
    kinds, found = examined()
    assert list(STEPS) == ["truth 0", "one 0", "two 0", "two 1"]
    options = {"truth": [truth.closed_form(8)], "kept": lambda step, make: STEPS[step]}
    again = examination.examine_kinds(METRICS_ASKED, kinds, **options, **OPTIONS)
    for kind, of in found.items():
        pd.testing.assert_frame_equal(again[kind].trust, of.trust)


def test_a_kind_of_one_network_is_what_examine_says_of_it():
    kinds, found = examined()
    alone = examination.examine(METRICS_ASKED, *kinds["one"][0], truth=[truth.closed_form(8)], **OPTIONS)
    pd.testing.assert_frame_equal(found["one"].trust, alone.trust)


def test_some_scores_of_few_inputs_and_the_obstacles_give_the_same_again():
    kinds, found = examined()
    whole, explainers = kinds["one"][0]
    few = {"truth": truth.closed_form(8), "levels": OPTIONS["levels"][:2]}
    again = examination.sampled(METRICS_ASKED, whole.part(torch.arange(3)), explainers, **few)
    agreement = records.compared(again, found["one"].scores, records.FLOAT32)
    assert {block.labels.get("variant") for block in again} == {None, "shuffled", ORACLE}
    assert (len(agreement.differing), agreement.values > 100) == (0, True)
    judged = examination.trust(found["one"].scores, METRICS_ASKED, examination.obstacles_in(found["one"].trust))
    pd.testing.assert_frame_equal(judged, found["one"].trust)


def test_the_networks_of_a_kind_count_equally_and_truth_stands_in_each_kind():
    _, found = examined()
    rows = {kind: of.trust.set_index(["trial", "metric", "size"]).sort_index() for kind, of in found.items()}
    apart = [
        examination.trust(found["two"].scores.where(training_seed=[s]), METRICS_ASKED).set_index(
            ["trial", "metric", "size"]
        )
        for s in (0, 1)
    ]
    key = ("Order", "Fid+", "one image")
    assert rows["two"].loc[key, "T"] == pytest.approx(sum(of.loc[key, "T"] for of in apart) / 2)
    for name in ("Fid+", "LeRF - MoRF"):
        truths = [of.loc[("Truth", name, "all images"), "T"] for of in rows.values()]
        assert truths[0] == truths[1]


def test_a_metric_applies_to_a_kind_where_it_applies_to_one_of_its_networks():
    _, found = examined()
    assert ("FFid+", "Order") not in found["two"].obstacles, "one of them has a fine-tuned companion"
    assert ("MeGe", "Order") in found["two"].obstacles


def test_the_long_table_of_all_kinds_has_truth_once():
    _, found = examined()
    table = examination.joined({kind: of.scores for kind, of in found.items()})
    oracles = [b for b in table if b.labels.get("variant") == ORACLE and b.labels["metric"] == "Fid+"]
    own = [b for b in found["one"].scores if b.labels.get("variant") == ORACLE and b.labels["metric"] == "Fid+"]
    assert len(oracles) == len(own) > 0
    assert len(table) == sum(len(of.scores) for of in found.values()) - sum(
        len(b.images) for b in found["two"].scores if b.labels.get("variant") == ORACLE
    )
    assert {b.labels["network"] for b in table} == {"a", "b", "closed form"}
    assert isinstance(table, Scores)


def test_what_an_interval_does_not_tell_apart_is_tied():
    names, value = ["a", "b", "c", "d"], [1.0, 2.0, 6.0, 4.0]
    low, high = [0.5, 1.0, 5.0, 3.5], [3.0, 9.0, 7.0, 5.5]
    # b overlaps a; d does not, and c overlaps d.
    assert recommendations.places(names, low, high, value) == {"a": 0, "b": 0, "d": 1, "c": 1}
    inf = float("inf")
    assert recommendations.places(["a", "b"], [1, inf], [inf, inf], [2, inf]) == {"a": 0, "b": 0}
    assert recommendations.places([], [], [], []) == {}


def test_advice_puts_what_fails_nothing_first_and_what_costs_alike_in_one_place():
    def row(metric, trial, verdict, size="all images", kind="k"):
        return {"kind": kind, "metric": metric, "trial": trial, "size": size, "verdict": verdict}

    trust = pd.DataFrame(
        [
            row("dear", "Order", "passed"),
            row("dear", "Gaming", "open"),
            row("bad", "Order", "failed"),
            row("bad", "Chance", "passed"),
            row("cheap", "Order", "open"),
            row("cheap", "Chance", "passed"),
            row("unknown", "Order", "open"),
            row("unknown", "Truth", "passed"),  # on a network of its own
            row("unknown", "Repeat", "passed"),  # which asks the same twice
            *(row(name, "Truth", "passed") for name in ("dear", "bad", "cheap", "near")),
            row("blind", "Order", "passed"),  # as a number that never asks the network may
            row("blind", "Truth", "open"),
            row("unknown", "Stand-in", "passed"),
            row("cheap", "Gaming", "failed", "one image"),  # of single images: another question
            row("near", "Order", "passed"),
            row("near", "Chance", "passed"),
            row("absent", "Order", "does not apply"),
            row("bad", "Order", "passed", kind="other"),
        ]
    )
    costs = {"dear": (50, 90), "bad": (1, 2), "cheap": (5, 20), "near": (10, 30)}
    price = pd.DataFrame(
        [
            {"kind": kind, "metric": name, "each": 2, "images_low": low, "images_high": high, "forwards": low + high}
            for kind in ("k", "other")
            for name, (low, high) in costs.items()
        ]
    )
    found = recommendations.advice(trust, price)
    assert list(found.columns) == ["kind", "metric", "place", "passed", "failed", "open"]
    own = found[found["kind"] == "k"].set_index("metric")
    assert list(own.index) == ["cheap", "near", "dear", "bad", "unknown", "blind"]
    assert math.isnan(own.loc["blind", "place"])
    assert math.isnan(own.loc["unknown", "place"])
    assert own.loc["unknown", "failed"] == ""
    assert own["place"].tolist()[:3] == [0, 0, 1]
    assert math.isnan(own.loc["bad", "place"])
    assert own.loc["near", ["place", "passed", "failed", "open"]].tolist() == [0, "Truth, Order, Chance", "", ""]
    assert own.loc["dear", ["passed", "open"]].tolist() == ["Order, Truth", "Gaming"]
    assert own.loc["bad", "failed"] == "Order"
    assert found.loc[found["kind"] == "other", ["metric", "place"]].to_numpy().tolist() == [["bad", 0.0]]


def test_numbers_that_never_ask_the_network_pass_some_trials_and_not_truth():
    # Home, the examination and the findings say so in words.
    found = records.recorded("across/controls", "trust").frame.query("size == 'all images'")
    passed = {*found.loc[found["verdict"] == "passed", "trial"]}
    assert {"Order", "Chance", "Own model"} <= passed
    assert recommendations.BUILT not in passed
    assert recommendations.BUILT in {*found.loc[found["verdict"] != "does not apply", "trial"]}
    assert recommendations.usable(found[found["kind"] == found["kind"].iloc[0]]) == []


def test_recommended_is_what_passes_most_of_those_that_can_be_paid():
    def row(metric, kind="k", place=0.0, passed="Order", forwards=10.0, most=10.0):
        facts = {"kind": kind, "metric": metric, "place": place, "passed": passed}
        return facts | {"forwards": forwards, "each": 1.0, "images_high": most / 2}

    rows = [
        row("few"),
        row("most", passed="Order, Chance", forwards=30.0),
        row("as many", passed="Order, Chance", forwards=40.0),
        row("built", passed="Order, Truth", forwards=1.0),  # on a network of its own
        row("unsure", passed="Order, Chance, Repeat", most=101.0),
        row("other: library", passed="Order, Chance, Repeat"),
        row("fails", place=float("nan"), passed="Order, Chance, Repeat"),
        row("dear", kind="poor", most=200.0),
    ]
    both = pd.DataFrame(rows)
    advice, price = both[["kind", "metric", "place", "passed"]], both.drop(columns=["place", "passed"])
    assert recommendations.recommended(advice, price, 100) == {"k": "most"}
    assert recommendations.recommended(advice, price, 200) == {"k": "unsure", "poor": "dear"}
    assert recommendations.recommended(advice, price, 1) == {}


def test_a_page_tells_what_fails_of_the_kinds_on_which_it_was_asked():
    """By the page's own cell: there is no function to call."""
    (cell,) = [of for of in jupytext.read(paths.script("across/findings")).cells if "put_to = " in of.source]
    rows = [
        ("ours", "Order", ["failed", "failed", "passed"]),
        ("a library: theirs", "Order", ["failed", "open", NONE]),  # a kind on which it is not asked has a row, too
        ("never asked", "Order", [NONE, NONE, NONE]),
        ("ours", "Stand-in", ["failed", "passed", NONE]),  # nor has every trial a meaning on every kind
    ]
    kinds = ("one", "two", "three")
    trust = pd.DataFrame(
        {"kind": kind, "metric": metric, "trial": trial, "size": concordance.SIZES[0], "verdict": verdict}
        for metric, trial, verdicts in rows
        for kind, verdict in zip(kinds, verdicts, strict=True)
    )
    costs = {"each": 2, "images_low": 1, "images_high": 2, "forwards": 4}
    price = trust[["kind", "metric"]].drop_duplicates().assign(**costs)
    names = {
        "concordance": concordance,
        "examination": examination,
        "tables": tables,
        "run": SimpleNamespace(save=lambda frame, table: None),
    }
    names |= {"trust": trust, "advice": recommendations.advice(trust, price)}
    exec(cell.source, names)
    said = {"Order": "ours (2 of 3), a library: theirs (1 of 2)", "Stand-in": "ours (1 of 2)"}
    assert names["counts"].to_dict() == said


# Figures


def trust_table() -> pd.DataFrame:
    rows = [
        (kind, metric, trial, "all images", T, T - 0.1, T + 0.1, verdict, metric == "B" and trial == "Chance")
        for kind in ("one", "two")
        for metric, trial, T, verdict in [
            ("B", "Order", 0.9, "passed"),
            ("B", "Chance", 0.6, "open"),
            ("A", "Order", 0.2, "failed"),
            ("A", "Chance", float("nan"), "does not apply"),
            ("C", "Order", 0.6, "open"),
            ("C", "Chance", 0.9, "passed"),
        ]
    ]
    columns = ["kind", "metric", "trial", "size", "T", "low", "high", "verdict", "home"]
    return pd.DataFrame(rows, columns=columns)


def test_the_matrix_has_a_panel_for_each_kind_and_a_line_between_those_that_differ():
    figure = plots.matrix(trust_table())
    panels = figure.axes
    assert [axes.get_title() for axes in panels] == ["one", "two"]
    assert [t.get_text() for t in panels[0].get_yticklabels()] == ["B", "C", "A"]
    _, lines = panels[0].collections
    assert [float(segment[0][1]) for segment in lines.get_segments()] == [2], "B and C are equal"
    shown = [t.get_text() for t in panels[1].texts]
    assert shown == ["✓", "", "", "✓", "✗"], "narrow cells have no room for numbers"
    alone = plots.matrix(trust_table().query("kind == 'one'").drop(columns="kind"))
    assert next(t.get_text() for t in alone.axes[0].texts) == "✓ 0.90"
