"""TRACE's study: shares with a scale, a plain search that finds the same and is slower, verdicts from numbers."""

import math

import pandas as pd
import pytest
import torch

from faithlab import engine, search, segments
from faithlab.metrics import trajectory
from faithlab.study import claims, trace
from faithlab.study.claims import FAILED, PARTLY, REPRODUCED, UNTESTED
from faithlab.zoo import models
from faithlab.zoo.sets import ImageSet

PATCHES = segments.patches(8, 8, 2)


def network(width: int = 4, classes: int = 3, name: str = "cnn3") -> torch.nn.Module:
    torch.manual_seed(0)
    return models.build(name, classes=classes, width=width).eval()


def inputs(count: int = 3, side: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(count, 3, side, side, generator=generator), torch.arange(count) % 3


# The attainable share


def additive(weights: torch.Tensor):
    """A score whose features add up, so that its best order is that of the weights."""

    def score(keep, images=None):
        if images is None:
            return (keep * weights[:, None]).sum(-1)
        return (keep * weights[images]).sum(-1)

    return score


def test_the_share_of_the_best_order_is_one_and_of_its_reverse_minus_one():
    weights = torch.tensor([[0.1, 0.5, 0.2, 0.15], [0.3, 0.0, 0.1, 0.05]])
    found = trace.attainable(additive(weights), {"best": weights, "worst": -weights}, steps=50)
    found = found.set_index("explainer")
    assert found.loc["best", ["mean", "low", "high"]].tolist() == pytest.approx([1] * 3, abs=1e-6)
    assert found.loc["worst", ["mean", "low", "high"]].tolist() == pytest.approx([-1] * 3, abs=1e-6)
    assert (found["missing"] == 0).all()
    assert (found["count"] == 2).all()


def test_the_share_is_the_mean_of_the_ratios_with_an_interval_around_it():
    measured = pd.DataFrame({"explainer": "a", "image": range(4), "difference": [1.0, 2.0, 0.0, 5.0]})
    (share,) = trace.shares(measured, torch.tensor([2.0, 2.0, 4.0, 0.0])).itertuples()
    assert share.mean == pytest.approx(0.5)
    assert 0 <= share.low < 0.5 < share.high <= 1
    assert (share.missing, share.count) == (1, 4)  # no order beats chance on the last image
    (same,) = trace.shares(measured.sample(frac=1, random_state=0), torch.tensor([2.0, 2.0, 4.0, 0.0])).itertuples()
    assert same == share


def test_of_a_constant_model_no_share_exists():
    found = trace.attainable(additive(torch.zeros(2, 4)), {"any": torch.rand(2, 4)}, steps=5)
    assert found[["mean", "low", "high"]].isna().all(axis=None)
    assert found["missing"].item() == 2


def test_scores_are_those_of_the_metric():
    model, (x, y) = network(), inputs()
    score = engine.scorer(model, x, y, segments=PATCHES)
    attribution = torch.randn(3, 16)
    found = trace.scores(score, {"a": trajectory.trajectory(attribution)})
    assert found["difference"].tolist() == pytest.approx(trajectory.lerf_minus_morf(score, attribution).tolist())
    assert found["morf"].tolist() == pytest.approx(trajectory.morf(score, attribution).tolist())
    assert found["lerf"].tolist() == pytest.approx(trajectory.lerf(score, attribution).tolist())


# Searches


def test_a_shorter_schedule_runs_through_the_same_temperatures():
    for steps in (100, 5000, 20000):
        for readout, first in (("p", 0.1), ("y", 2.0)):
            options = trace.steps_of(steps, readout)
            assert options["temperature"] == first
            assert options["cooling"] ** steps == pytest.approx(0.999**5000)
    assert trace.steps_of(5000)["cooling"] == pytest.approx(0.999)


def test_trace_is_no_worse_than_greedy_search():
    model, (x, y) = network(), inputs()
    score = engine.scorer(model, x, y, segments=PATCHES)
    greedy = search.greedy(score, 3, 16, objective="Le")
    both = trajectory.curves(score, greedy.order)
    # The same subsets in other batches: up to rounding.
    assert (trace.trace(score, 3, 16, steps=30).value >= (both.lerf - both.morf).sum(1) - 1e-4).all()
    assert (trace.trace(score, 3, 16, steps=30, objective="Le").value >= greedy.value - 1e-4).all()


def test_the_plain_search_finds_what_the_engine_finds():
    model, (x, y) = network(), inputs()
    order = search.random_orders(torch.arange(3), 16, seed=0)[:, 0]
    plain, one_by_one = (
        trace.plain_annealing(model, x, y, PATCHES, order, steps=40, rows=rows, seed=2) for rows in (None, 1)
    )
    torch.testing.assert_close(one_by_one, plain, atol=1e-5, rtol=0)
    found = search.anneal(engine.scorer(model, x, y, segments=PATCHES), order, steps=40, seed=2)
    torch.testing.assert_close(plain, found.value, atol=1e-4, rtol=0)


def test_the_engine_asks_less_than_the_plain_search():
    (x, y), cells = inputs(32, side=32), segments.patches(32, 32, 4)
    sure = network(16, name="strided")
    with torch.no_grad():
        for parameter in list(sure.parameters())[-2:]:  # weights and biases of the classes
            parameter.mul_(100)
    speed = trace.speed(
        sure,
        x,
        y,
        cells,
        search.random_orders(torch.arange(32), 64, seed=0)[:, 0],
        steps=6,
        plain_images=1,
        plain_steps=12,
        precision=engine.native_precision(),
    ).set_index(["search", "readout"])
    # A search that asks all 2 (t + 1) subsets, and one that asks a third of them: whole batches gain the rest.
    assert (speed.loc[["one by one", "plain"], "forwards_per_proposal"] == 130).all()
    assert speed.loc[("engine", "y"), "forwards_per_proposal"] == pytest.approx(130 / 3, rel=0.1)
    # Of a probability it is known when nothing can be gained any more.
    assert speed.loc[("engine", "p"), "forwards_per_proposal"] < speed.loc[("engine", "y"), "forwards_per_proposal"]
    # How fast that is, a page measures: beside other work no ratio of times is sure.
    assert speed.loc[("plain", "p"), "times_plain"] == 1
    assert (speed["times_plain"] > 0).all()


def test_of_one_step_nothing_is_left_to_time():
    (x, y), order = inputs(), torch.arange(16).expand(3, -1)
    options = {"plain_images": 1, "plain_steps": 1, "precision": torch.float32}
    with pytest.raises(ValueError, match="at least two steps, of which the first warms up, but got 1"):
        trace.speed(network(), x, y, PATCHES, order, steps=1, **options)


# Images and explanations


def test_recognised_images_are_the_first_that_the_network_gets_right():
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 2, bias=False))
    with torch.no_grad():
        model[1].weight.copy_(torch.tensor([[-1.0], [1.0]]).expand(2, 48))  # class 1 is bright
    bright = torch.tensor([0, 1, 1, 0, 1, 1])
    labels = torch.tensor([0, 1, 0, 0, 1, 0])
    pictures = (bright.view(-1, 1, 1, 1) * 255).expand(-1, 3, 4, 4).to(torch.uint8).contiguous()
    data = ImageSet(pictures, labels, ("dark", "bright"), mean=(0.5,) * 3, std=(0.5,) * 3)
    chosen = trace.recognised(model, data, 3, rows=2)
    assert chosen.labels.tolist() == [0, 1, 0]
    assert torch.equal(chosen.inputs, data.inputs[[0, 1, 3]])
    assert len(trace.recognised(model, data, 100)) == 4
    with pytest.raises(ValueError, match="recognises none of 2 images"):
        trace.recognised(model, data.take(torch.tensor([2, 5])), 1)


def test_all_explainers_of_table_1_and_a_random_one():
    model, (x, y) = network(), inputs()
    options = {"RISE": {"samples": 4, "cells": 2}, "EP": {"steps": 1, "cells": 2}, "IBA": {"steps": 1, "samples": 1}}
    found = trace.explained(model, x, y, PATCHES, options=options)
    assert list(found) == [*trace.EXPLAINERS, "Random"]
    assert all(a.shape == (3, 16) and a.isfinite().all() for a in found.values())


# Verdicts


def verdicts(list_of_claims, **tables) -> dict[str, str]:
    return claims.judge(list_of_claims, tables).set_index("id")["verdict"].to_dict()


def test_ids_are_unique():
    ids = [c.id for value in vars(trace).values() if isinstance(value, list) for c in value]
    assert len(ids) == len(set(ids)) > 10


def scored(reference="zero", **values) -> pd.DataFrame:
    rows = [(name.replace("_", "-"), i, v) for name, v in values.items() for i in range(2)]
    return pd.DataFrame(rows, columns=["explainer", "image", "difference"]).assign(reference=reference)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"TRACE_p": 9, "Greedy_Le": 8, "IG": 5}, (REPRODUCED, REPRODUCED)),
        ({"TRACE_p": 9, "Greedy_Le": 4, "IG": 5}, (REPRODUCED, FAILED)),
        ({"TRACE_p": 9, "TRACE_y": 4, "Greedy_Le": 8, "IG": 5}, (PARTLY, REPRODUCED)),
        ({"TRACE_p": 4, "Greedy_Le": 4, "IG": 5}, (FAILED, FAILED)),
        ({"TRACE_p": math.nan, "Greedy_Le": 4, "IG": 5}, (UNTESTED, FAILED)),
    ],
)
def test_every_explainer_is_to_be_beaten_everywhere(values, expected):
    found = verdicts(trace.NETWORKS, scores=scored(**values))
    assert tuple(found.values()) == expected
    two = pd.concat([scored(**values), scored("blur", TRACE_p=1, Greedy_Le=1, IG=5)])
    assert set(verdicts(trace.NETWORKS, scores=two).values()).isdisjoint({REPRODUCED})


def test_the_random_order_is_no_rival():
    found = verdicts(trace.NETWORKS, scores=scored(TRACE_p=3, Greedy_Le=3, IG=2, Random=9))
    assert set(found.values()) == {REPRODUCED}


def of_optimality(*, annealing=0.001, greedy=0.02, early=(0.9, 0.8), ahead=0.01, difference=0.0):
    gaps = [
        (readout, objective, name, gap)
        for readout in "py"
        for objective in ("Mo", "Le", "Le-Mo")
        for name, gap in (("annealing", annealing), ("greedy", greedy))
    ]
    searches = [
        (name, step, share)
        for name, share in zip(("annealing from greedy-Le", "annealing"), early, strict=True)
        for step in (0, 10, 100)
    ]
    neighbours = [("swap", 0.99, 0.0, 0.0), ("block reverse", 0.99 - ahead, ahead, 0.001)]
    return {
        "gaps": pd.DataFrame(gaps, columns=["readout", "objective", "search", "gap"]),
        "searches": pd.DataFrame(searches, columns=["search", "step", "share"]),
        "neighbours": pd.DataFrame(neighbours, columns=["neighbour", "share", "swap_ahead", "error"]),
        "insertion": pd.DataFrame({"difference": [0.0, difference]}),
    }


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({}, [REPRODUCED] * 5),
        (
            {"annealing": 0.03, "early": (0.7, 0.8), "ahead": -0.01, "difference": 0.1},
            [FAILED] * 5,
        ),
        ({"ahead": 0.001}, [REPRODUCED] * 3 + [PARTLY, REPRODUCED]),  # within two standard errors
        (dict.fromkeys(("annealing", "ahead", "difference"), math.nan), [UNTESTED] * 2 + [REPRODUCED] + [UNTESTED] * 2),
    ],
)
def test_optimality_is_judged_by_gaps_and_leads(numbers, expected):
    assert list(verdicts(trace.OPTIMALITY, **of_optimality(**numbers)).values()) == expected


def of_settings(*, references=(10, 10.5), own=(9, 8), mo=(0.9, 0.1), le=0.8, both=0.9, patches=(0.3, 0.2, 0.1)):
    scores = pd.concat([scored(r, TRACE_p=v, IG=1) for r, v in zip(("zero", "blur"), references, strict=True)])
    readouts = [
        ("zero", measured, f"TRACE-{name}", own[0] if name == measured else own[1])
        for measured in "py"
        for name in "py"
    ]
    criteria = [
        *((t, "TRACE-Mo", "LeRF", share) for t, share in zip((16, 64), mo, strict=True)),
        *((t, "TRACE-Le", "MoRF", le) for t in (16, 64)),
        *((t, "TRACE-Le-Mo", criterion, both) for t in (16, 64) for criterion in ("MoRF", "LeRF")),
    ]
    deletion = [
        (side, reference, removed, value)
        for side, left, gap in zip((8, 4, 1), patches, (0.1, 0.2, 0.3), strict=True)
        for reference, value in (("zero", left), ("blur", left + gap))
        for removed in (0.0, 0.5)
    ]
    return {
        "scores": scores,
        "readouts": pd.DataFrame(readouts, columns=["reference", "measured", "explainer", "difference"]),
        "criteria": pd.DataFrame(criteria, columns=["patches", "trace", "criterion", "share"]),
        "random_deletion": pd.DataFrame(deletion, columns=["patch", "reference", "removed", "probability"]),
    }


def test_settings_as_the_paper_says():
    assert set(verdicts(trace.SETTINGS, **of_settings()).values()) == {REPRODUCED}


@pytest.mark.parametrize(
    ("numbers", "claim", "verdict"),
    [
        ({"references": (10, 12)}, "tr-references", PARTLY),
        ({"references": (10, 13)}, "tr-references", FAILED),
        ({"own": (8, 9)}, "tr-own-readout", FAILED),
        ({"mo": (0.9, 0.6)}, "tr-criteria", PARTLY),
        ({"mo": (0.9, 0.9)}, "tr-criteria", FAILED),
        ({"both": 0.5}, "tr-combined", FAILED),
        ({"mo": (0.5, 0.1)}, "tr-coarse-mo", PARTLY),
        ({"patches": (0.1, 0.2, 0.3)}, "tr-random-deletion", FAILED),
        ({"patches": (0.3, 0.1, 0.2)}, "tr-random-deletion", PARTLY),
        ({"references": (10, math.nan)}, "tr-references", UNTESTED),
    ],
)
def test_a_setting_that_differs_from_the_paper(numbers, claim, verdict):
    assert verdicts(trace.SETTINGS, **of_settings(**numbers))[claim] == verdict


@pytest.mark.parametrize(
    ("highest", "verdict"), [(0.9, REPRODUCED), (0.83, PARTLY), (0.8, FAILED), (math.nan, UNTESTED)]
)
def test_the_answer_rises_when_unimportant_features_go(highest, verdict):
    curve = pd.DataFrame(
        {"explainer": "TRACE-p", "direction": "LeRF", "removed": range(3), "probability": [0.8, highest, 0.1]}
    )
    found = verdicts(trace.EXPLAINERS_CLAIMS, curves=curve, scores=scored(TRACE_p=3, Greedy_Le=3, IG=2))
    assert found["tr-rises"] == verdict
