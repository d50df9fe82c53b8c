"""The registry: every metric is asked with its own output, reference and network, and what is shared is asked once."""

import contextlib
import dataclasses
import functools
import math
import os
import pickle
import subprocess
import sys

import numpy as np
import pandas
import pytest
import torch
from torch import nn

from faithlab import baselines, engine, masks, metrics, segments, stats
from faithlab.metrics import METRICS, Metric, evaluate, families, obstacles, register
from faithlab.metrics.deletion import curve
from faithlab.metrics.mufidelity import mu_fidelity
from faithlab.metrics.saco import saco
from faithlab.outputs import correct, probability
from faithlab.task import Task

FEATURES = 12


def network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(FEATURES, 16), nn.ReLU(), nn.Linear(16, 3)).eval()


@pytest.fixture
def task() -> Task:
    x = 1 + torch.randn(5, FEATURES, generator=torch.Generator().manual_seed(3))
    model = network(0)
    own = baselines.NAMED | {"perturbed": baselines.given(x.flip(1).clone())}
    return Task(
        model,
        x,
        model(x).argmax(1),
        torch.arange(FEATURES),
        dataset="noise test",
        network="MLP",
        training_seed=7,
        images=torch.tensor([3, 5, 8, 13, 21]),
        tuned=network(1),
        retrained={"IG": network(2)},
        baselines=own,
    )


@pytest.fixture
def attributions() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(4)
    return {name: torch.rand(5, FEATURES, generator=generator) for name in ("IG", "saliency")}


@pytest.fixture
def registry(monkeypatch):
    """A copy of METRICS that a test may change."""
    monkeypatch.setattr(metrics, "METRICS", dict(METRICS))
    return metrics.METRICS


def cheap(metric: Metric) -> Metric:
    """With few draws, where it draws."""
    return metric.given(draws=4) if "draws" in metric._arguments else metric


ONE_NETWORK = {name: cheap(metric) for name, metric in METRICS.items() if metric.needs == "one network"}


def test_the_metrics_of_the_five_papers_are_there():
    named = {"Fid", "RFid", "FFid", "ROAR"}
    expected = {f"{name}{sign}" for name in named for sign in "+-"}
    expected |= {"MoRF", "LeRF", "LeRF - MoRF", "Insertion", "AUC", "AOPC", "LOdds", "Comp.", "SaCo"}
    expected |= {"Few-class Fidelity", "µFidelity", "S_avg", "MeGe", "ReCo"}
    assert expected <= set(METRICS)


@pytest.mark.parametrize("name", METRICS)
def test_what_is_declared_is_consistent(name):
    metric = METRICS[name]
    assert metric.source
    assert metric.better in (1, -1)
    if metric.ideal is not None and metric.chance is not None:
        assert (metric.ideal - metric.chance) * metric.better > 0
    if metric.direction and metric.sizes:
        assert metric.better == (1 if metric.direction == "MoRF" else -1), "losses: + shall be high, - low"


def test_a_family_has_one_metric_for_each_direction():
    for members in families(METRICS).values():
        ways = [METRICS[name].direction for name in members]
        assert len(members) == 1 or sorted(ways) == ["LeRF", "MoRF"]


@pytest.mark.parametrize(
    ("name", "asked"),
    {
        "Fid+": 20,  # 19 sizes and the whole input
        "FFid-": 1 + 19 * 50,
        "SaCo": 11,
        "AOPC": 11,
        "MoRF": 101,
        "LeRF - MoRF": 202,
        "Few-class Fidelity": 202,
        "µFidelity": 100,
    }.items(),
)
def test_forwards_are_counted(name, asked):
    assert METRICS[name].forward_passes(100) == asked


@pytest.mark.parametrize("name", ONE_NETWORK)
def test_a_metric_asks_with_its_own_readout_reference_and_network(task, attributions, name):
    metric = ONE_NETWORK[name]
    model = {"original": task.model, "fine-tuned": task.tuned, "retrained": task.retrained["IG"]}
    score = engine.scorer(
        model[metric.network],
        task.x,
        task.target,
        segments=task.segments,
        baseline=task.baselines[metric.baseline],
        output=metric.output,
    )
    options = {"images": task.images} if "images" in metric._arguments else {}
    sizes = () if metric.sizes is None else (torch.tensor(metric.sizes, dtype=torch.float64),)
    expected = metric.compute(score, attributions["IG"], *sizes, **options)
    expected = expected.value if isinstance(expected, stats.MonteCarlo) else expected
    found = metric(task, attributions["IG"], explainer="IG")
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_saco_does_not_depend_on_whose_score_is_at_hand(task, attributions):
    """Fed by hand with another metric's score it gives another number, and says nothing."""
    right = METRICS["SaCo"](task, attributions["IG"])
    of_fidelity = task.score(correct, "zero", "fine-tuned")
    assert not torch.allclose(saco(of_fidelity, attributions["IG"]), right, equal_nan=True)
    own = engine.scorer(
        task.model,
        task.x,
        task.target,
        segments=task.segments,
        baseline=baselines.mean,
        output=probability,
    )
    torch.testing.assert_close(saco(own, attributions["IG"]), right)


def test_evaluate_gives_what_each_metric_gives_alone(task, attributions):
    scores = evaluate(ONE_NETWORK, task, attributions)
    for explainer, attribution in attributions.items():
        for name, metric in ONE_NETWORK.items():
            if metric.obstacle(task, explainer):
                continue
            rows = list(scores.where(metric=name, explainer=explainer))
            assert len(rows) == 1
            alone = metric(task, attribution, explainer=explainer).float()
            torch.testing.assert_close(rows[0].values, alone.view(5, -1), rtol=1e-4, atol=1e-5, equal_nan=True)
            assert rows[0].images.tolist() == [3, 5, 8, 13, 21]
            assert rows[0].sizes == metric.sizes


def test_rows_say_what_they_are(task, attributions):
    scores = evaluate({"Fid-": METRICS["Fid-"]}, task, attributions, variant="shuffled", level=0.2, noise_seed=1)
    for block, explainer in zip(scores, attributions, strict=True):
        assert block.labels == {
            "dataset": "noise test",
            "network": "MLP",
            "training_seed": 7,
            "explainer": explainer,
            "variant": "shuffled",
            "level": 0.2,
            "noise_seed": 1,
            "metric": "Fid-",
            "reference": "zero",
            "direction": "LeRF",
        }


def test_what_does_not_apply_has_no_row_and_a_reason(task, attributions):
    scores = evaluate(METRICS | {"SaCo": METRICS["SaCo"]}, task, {"saliency": attributions["saliency"]})
    assert "ROAR+" not in scores.labels("metric")
    why = obstacles(METRICS, task, {"saliency": attributions["saliency"]})
    assert why["saliency", "ROAR+"] == "no network retrained for saliency"
    assert why["saliency", "ReCo"] == "it needs cross-trained networks"
    with pytest.raises(ValueError, match=r"no metric applies: .*'ROAR\+'.*: 'no network retrained for saliency'"):
        evaluate({"ROAR+": METRICS["ROAR+"]}, task, {"saliency": attributions["saliency"]})
    with pytest.raises(ValueError, match="does not apply: no network retrained"):
        METRICS["ROAR+"](task, attributions["IG"])


def forwards(monkeypatch, ask) -> int:
    """Masked inputs that the engine is asked about."""
    count, scorer = 0, engine.scorer

    def counted(*given, **options):
        score = scorer(*given, **options)

        def asked(keep, images=None):
            nonlocal count
            count += keep[..., 0].numel()
            return score(keep, images)

        asked.classes, asked.holds = score.classes, score.holds
        return asked

    monkeypatch.setattr(engine, "scorer", counted)
    ask()
    monkeypatch.undo()
    return count


def test_equal_masks_are_asked_once(monkeypatch, task, attributions):
    """One clean forward, one deletion curve for AUC, AOPC and LOdds, one trajectory for MoRF, LeRF and insertion."""
    one = {"IG": attributions["IG"]}
    deletion = {name: METRICS[name] for name in ("AUC", "AOPC", "LOdds")}
    # 11 steps each, the same ones; of 12 features two of them round to the same count for nobody.
    assert forwards(monkeypatch, lambda: evaluate(deletion, task, one)) == 5 * 11
    along = {name: METRICS[name] for name in ("MoRF", "LeRF", "LeRF - MoRF", "Insertion")}
    # Removing k from either end, and all or nothing of both.
    assert forwards(monkeypatch, lambda: evaluate(along, task, one)) <= 5 * 2 * (FEATURES + 1)
    alone = sum(forwards(monkeypatch, lambda m=m: evaluate({"m": m}, task, one)) for m in ONE_NETWORK.values())
    assert forwards(monkeypatch, lambda: evaluate(ONE_NETWORK, task, one)) < 0.8 * alone


def test_options_are_those_of_the_metric():
    metric = METRICS["FFid+"].given(sizes=[0.1, 0.5], draws=2, cap=0.3)
    assert metric.sizes == (0.1, 0.5)
    assert metric.network == "fine-tuned"
    assert metric.forward_passes(100) == 1 + 2 * 2


@pytest.mark.parametrize("name", ["Fid+", "Fid-", "RFid+", "AUC", "AOPC", "LOdds", "Comp.", "MoRF", "LeRF", "SaCo"])
@pytest.mark.parametrize("what", ["direction", "images", "present", "score", "attribution", "draw"])
def test_what_is_no_option_of_a_metric_is_not_given(name, what):
    """It would change what the metric says of itself, or be overwritten by the task's, and not what it asks."""
    has = ", ".join(METRICS[name].options) or "none"
    with pytest.raises(TypeError, match=f"^{what}: nothing that this metric can be given; it has options {has};"):
        METRICS[name].given(**{what: "LeRF"})


@pytest.mark.parametrize(("name", "sizes"), [("SaCo", [0.1]), ("µFidelity", [0.1]), ("Fid+", None)])
def test_whether_a_metric_has_sizes_is_a_matter_of_its_function(name, sizes):
    with pytest.raises(TypeError, match=r"^sizes: nothing"):
        METRICS[name].given(sizes=sizes)
    with pytest.raises(TypeError, match=r"^fractions: nothing"):
        METRICS["Fid+"].given(fractions=[0.1])


def test_what_a_metric_says_of_itself_is_given_with_its_function(task, attributions):
    other = METRICS["AOPC"].given(compute=METRICS["Comp."].compute, direction="LeRF", better=-1)
    assert other.direction == "LeRF"
    torch.testing.assert_close(other(task, attributions["IG"]), METRICS["Comp."](task, attributions["IG"]))
    with pytest.raises(ValueError, match="'morf', not in"):
        METRICS["AOPC"].given(compute=METRICS["Comp."].compute, direction="morf")


@pytest.mark.parametrize("label", ["reference", "metric", "explainer", "direction", "images", "pairs", "colour"])
def test_a_label_that_says_what_is_asked_is_not_given(task, attributions, label):
    with pytest.raises(ValueError, match=f"^{label}: no label to be given"):
        evaluate({"AOPC": METRICS["AOPC"]}, task, attributions, **{label: "blur"})


@pytest.mark.parametrize(
    ("declared", "error", "message"),
    [
        ({"better": 0}, ValueError, "0, not in"),
        ({"network": "tuned"}, ValueError, "'tuned', not in"),
        ({"sizes": [2.0]}, ValueError, "expected sizes between 0 and 1"),
    ],
)
def test_a_wrong_declaration_is_refused(declared, error, message):
    with pytest.raises(error, match=message):
        Metric(lambda score, attribution: attribution[:, 0], **{"source": "me"} | declared)


@pytest.mark.parametrize(
    ("ask", "came"),
    [
        (lambda score, a: a, r"torch.float32 \(5, 12\)"),
        (lambda score, a: [0.0] * 5, "<class 'list'>"),
        (lambda score, a: a.argmax(1), "torch.int64"),
        (lambda score, a: stats.MonteCarlo(a[:, 0], 0.1), ".* and <class 'float'>"),
    ],
)
def test_a_metric_that_answers_something_else_is_refused_and_named(task, attributions, ask, came):
    with pytest.raises(ValueError, match=rf"expected .* scores .*\(5,\), but the metric gave {came}"):
        Metric(ask, source="me")(task, attributions["IG"])
    with pytest.raises(ValueError, match=r"^the metric 'mine' fails: expected .* scores"):
        evaluate({"SaCo": METRICS["SaCo"], "mine": Metric(ask, source="me")}, task, attributions)


def test_a_name_of_the_library_is_taken_and_ones_own_is_registered_again(registry):
    """A registration cell runs again after an edit (deeppavlov/DeepPavlov#262, blei-lab/edward#70)."""
    with pytest.raises(ValueError, match=r"there is a metric 'SaCo' already, of .*metrics"):
        register("SaCo", METRICS["AOPC"])
    register("Mine", METRICS["SaCo"])
    with pytest.warns(UserWarning, match="'Mine' is registered again and replaces the earlier one"):
        register("Mine", METRICS["AOPC"])
    assert registry["Mine"].compute is METRICS["AOPC"].compute


def test_metrics_and_their_scores_go_to_another_process(task, attributions):
    sent = pickle.loads(pickle.dumps(METRICS))
    assert {name: m.given(compute=len) for name, m in sent.items()} == {
        name: m.given(compute=len) for name, m in METRICS.items()
    }
    table = evaluate({"AUC": sent["AUC"]}, task, attributions)
    expected = evaluate({"AUC": METRICS["AUC"]}, task, attributions).frame()
    pandas.testing.assert_frame_equal(pickle.loads(pickle.dumps(table)).frame(), expected)


@pytest.mark.parametrize("features", [2, 4, 9])
def test_of_few_features_the_other_metrics_are_evaluated(features):
    """Iris, short series, a grid of 3 x 3 (Quantus#324, Quantus#215, deel-ai/xplique#91)."""
    model, x = nn.Linear(features, 3), torch.rand(6, features, generator=torch.Generator().manual_seed(0))
    few = Task(model, x, model(x).argmax(1).detach(), torch.arange(features))
    with pytest.warns(UserWarning, match=f"SaCo: it compares 10 groups, but the inputs have {features} features"):
        scores = evaluate(METRICS, few, {"mine": x})
    assert ("mine", "SaCo") in obstacles(METRICS, few, {"mine": x})
    assert {"AOPC", "Fid+", "MoRF", "µFidelity"} <= set(scores.labels("metric"))
    assert "SaCo" in evaluate({"SaCo": METRICS["SaCo"].given(groups=2)}, few, {"mine": x}).labels("metric")


def test_a_score_that_is_infinite_makes_its_metric_nan_and_no_other(task, attributions):
    """The log-odds of a probability of 1 (Quantus#122, Quantus#324: an evaluation stops at one metric)."""

    def sure(logits, target):
        return probability(logits, target) / 0

    asked = {"sure": METRICS["Fid+"].given(output=sure), "SaCo": METRICS["SaCo"]}
    asked["infinite"] = Metric(lambda score, attribution: attribution[:, 0] / 0, source="me")
    with pytest.warns(UserWarning, match=r"sure: the score is NaN or infinite.*infinite: the metric gave"):
        scores = evaluate(asked, task, attributions)
    assert scores.where(metric="sure").missing == 2 * 5 * 19
    assert scores.where(metric="infinite").missing == 2 * 5
    assert scores.where(metric="SaCo").missing == 0
    with pytest.raises(ValueError, match="NaN or infinite"):
        asked["sure"](task, attributions["IG"])


MINE = '''
import torch

from faithlab import masks
from faithlab.metrics import register


def worst(score, attribution):
    """What the most relevant feature alone costs."""
    order = masks.order(attribution)
    keep = masks.remove_top(order, torch.tensor([0, 1]))
    answers = score(keep)
    return (answers[:, 0] - answers[:, 1]).double()


register("Worst", worst, source="a reader", chance=0.0)
'''


def test_a_readers_file_is_loaded(tmp_path, python):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "other.py").write_text(MINE.replace("Worst", "Worse"))
    both = os.pathsep.join([str(tmp_path / "mine.py"), str(tmp_path / "other.py")])
    code = "from faithlab.metrics import METRICS; print(list(METRICS)[-2:], METRICS['Worst'].forward_passes(9))"
    ran = subprocess.run([python, "-c", code], env=os.environ | {metrics.FILES: both}, capture_output=True, text=True)
    assert ran.stdout.strip() == "['Worst', 'Worse'] 2", ran.stderr
    ran = subprocess.run(
        [python, "-c", code], env=os.environ | {metrics.FILES: "nowhere.py"}, capture_output=True, text=True
    )
    assert "FileNotFoundError" in ran.stderr
    assert "nowhere.py" in ran.stderr


def test_an_undefined_number_is_missing_and_counted(task):
    constant = {"flat": torch.zeros(5, FEATURES)}
    scores = evaluate({"SaCo": METRICS["SaCo"], "AOPC": METRICS["AOPC"]}, task, constant)
    assert scores.missing == 5
    assert all(math.isnan(value) for value in scores.where(metric="SaCo").frame()["value"])


def test_exact_metrics_ask_in_float32(task, attributions, monkeypatch):
    half = dataclasses.replace(task, precision=torch.bfloat16)
    seen, scorer = {}, engine.scorer

    def noted(*given, precision=None, output=None, **options):
        seen[output] = precision
        return scorer(*given, precision=precision, output=output, **options)

    monkeypatch.setattr(engine, "scorer", noted)
    METRICS["SaCo"](half, attributions["IG"])
    METRICS["Fid+"](half, attributions["IG"])
    assert seen == {probability: torch.float32, correct: torch.bfloat16}


def test_the_deletion_metrics_are_the_papers_formulas(task, attributions):
    score = task.score(probability, "mean", exact=True)
    left = curve(score, attributions["IG"])
    torch.testing.assert_close(METRICS["AOPC"](task, attributions["IG"]), (left[:, :1] - left).mean(1))


# What metrics share


def in_place(score, attribution):
    attribution.neg_()
    return attribution[:, 0]


def test_what_a_metric_changes_in_place_stays_its_own(task, attributions):
    before = attributions["IG"].clone()
    asked = {"in place": Metric(in_place, source="me"), "SaCo": METRICS["SaCo"]}
    scores = evaluate(asked, task, {"IG": attributions["IG"]})
    assert torch.equal(attributions["IG"], before)
    (row,) = scores.where(metric="SaCo")
    torch.testing.assert_close(row.values[:, 0], METRICS["SaCo"](task, before).float())


def both_readouts(ask) -> dict[str, Metric]:
    """Twins with other outputs, which share what they ask."""
    return {name: Metric(ask, source="me", output=of) for name, of in (("p", probability), ("hit", correct))}


@pytest.mark.parametrize("changed", [lambda keep: keep[:2], lambda keep: keep.float(), lambda keep: keep.byte()])
def test_a_wrong_mask_is_the_same_error_alone_and_shared(task, attributions, changed):
    def ask(score, attribution):
        score(torch.ones(5, 1, FEATURES, dtype=torch.bool))
        return score(changed(torch.ones(5, 1, FEATURES, dtype=torch.bool)))[:, 0]

    said = []
    for asked in ({"p": both_readouts(ask)["p"]}, both_readouts(ask)):
        with pytest.raises(ValueError, match=r"'p' fails: expected boolean keep-masks \(5, 1, 12\)") as error:
            evaluate(asked, task, attributions)
        said.append(str(error.value))
    assert said[0] == said[1]


def test_pairs_of_masks_and_inputs_are_answered_alone_and_shared(task, attributions):
    """score(keep [R, F], images [R]) -> [R], as `faithlab.engine.Score` says."""

    def ask(score, attribution):
        images = torch.tensor([4, 0, 1, 2, 3, 3])
        answers = score(attribution[images] > 0.5, images)
        return answers[1:].double()

    asked = both_readouts(ask)
    alone = {name: metric(task, attributions["IG"]) for name, metric in asked.items()}
    shared = evaluate(asked, task, {"IG": attributions["IG"]})
    for name in asked:
        (row,) = shared.where(metric=name)
        torch.testing.assert_close(row.values[:, 0].double(), alone[name].double())
    assert len(alone["p"].unique()) > 1


# What an input has not


@pytest.fixture
def padded(task) -> Task:
    """Inputs that have 12, 8, 12, 6 and 9 of the features, not the first ones alone."""
    has = torch.tensor([12, 8, 12, 6, 9])[:, None]
    return dataclasses.replace(task, present=((torch.arange(FEATURES) * 5) % FEATURES) < has)


def test_a_metric_that_does_not_know_which_features_are_there_is_not_asked_where_some_are_not(
    task, padded, attributions, monkeypatch
):
    def first(score, attribution):
        return score(masks.order(attribution)[:, None] > 0)[:, 0]

    asked = {"unaware": Metric(first, source="a test"), "MoRF": METRICS["MoRF"]}
    given = {"IG": attributions["IG"]}
    why = obstacles(asked, padded, given)
    assert [*why] == [("IG", "unaware")]
    assert "let it take `present`" in why["IG", "unaware"]
    with pytest.warns(UserWarning, match="unaware: its function has no argument"):
        assert evaluate(asked, padded, given).labels("metric") == ["MoRF"]
    with pytest.raises(ValueError, match="does not apply: its function has no argument `present`"):
        asked["unaware"](padded, given["IG"])
    monkeypatch.setattr(metrics, "METRICS", asked)
    monkeypatch.setattr(metrics, "_PLACES", dict.fromkeys(asked, "mine.py"))
    monkeypatch.setattr(metrics, "_LOADED", {"mine.py": None})
    with pytest.warns(UserWarning, match="unaware does not apply here and is left out: its function has no argument"):
        assert [*metrics.own(task, padded)] == ["MoRF"]
    whole = dataclasses.replace(task, present=torch.ones_like(padded.present))
    assert [*metrics.own(task, whole)] == [*asked]
    for unpadded in (task, whole):
        assert not obstacles(asked, unpadded, given)
        assert evaluate(asked, unpadded, given).labels("metric") == ["unaware", "MoRF"]


@pytest.mark.parametrize("name", ONE_NETWORK)
def test_attributions_of_absent_features_change_nothing(padded, attributions, name):
    metric, given = ONE_NETWORK[name], attributions["IG"]
    if not metric.takes("present"):
        pytest.skip("it is asked about inputs that have all features only")
    expected = metric(padded, given, explainer="IG")
    for absent in (-9.0, 9.0):
        other = given.where(padded.present, absent)
        assert torch.equal(metric(padded, other, explainer="IG").nan_to_num(7), expected.nan_to_num(7))


# Of fewer features other subsets are drawn.
@pytest.mark.parametrize(
    "name", [n for n, m in ONE_NETWORK.items() if n != "µFidelity" and m.family[1:] != "-Fidelity"]
)
def test_absent_features_are_never_removed(padded, attributions, name):
    """An input's number is that of the same input without the places of what it has not."""
    metric, place = ONE_NETWORK[name], 3
    if not metric.takes("present"):
        pytest.skip("it is asked about inputs that have all features only")
    metric = metric.given(groups=4) if "groups" in metric.options else metric
    there = padded.present[place]
    model, tuned, retrained = (
        Shorter(m, padded.x[place], there).eval() for m in (padded.model, padded.tuned, network(2))
    )
    left = dataclasses.replace(
        padded,
        model=model,
        tuned=tuned,
        retrained={"IG": retrained},
        x=padded.x[place : place + 1, there],
        target=padded.target[place : place + 1],
        images=padded.images[place : place + 1],
        segments=torch.arange(6),
        present=None,
        baselines={name: lambda x: torch.full_like(x, 0.5) for name in padded.baselines},
    )
    same = dataclasses.replace(padded, baselines=dict.fromkeys(padded.baselines, lambda x: torch.full_like(x, 0.5)))
    found = metric(same, attributions["IG"], explainer="IG")[place]
    expected = metric(left, attributions["IG"][place : place + 1, there], explainer="IG")[0]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6, equal_nan=True)


class Shorter(nn.Module):
    """A network that is asked about elements of one of its inputs; the others stay."""

    def __init__(self, whole: nn.Module, x: torch.Tensor, there: torch.Tensor):
        super().__init__()
        self.whole = whole
        self.register_buffer("x", x.clone())
        self.register_buffer("places", there.nonzero().flatten())

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        return self.whole(self.x.to(given).repeat(len(given), 1).index_copy(1, self.places, given))


def test_subsets_of_what_an_input_has_are_of_the_right_size(padded, attributions):
    seen = []

    def score(keep):
        seen.append(keep)
        return keep.double().mean(-1)

    mu_fidelity(score, attributions["IG"], 0.25, draws=6, present=padded.present)
    removed = ~torch.cat(seen, 1)
    assert not bool((removed & ~padded.present[:, None]).any())
    assert removed.sum(-1).unique(dim=1).flatten().tolist() == [3, 2, 3, 2, 2]
    few = torch.arange(FEATURES).expand(5, -1) < torch.tensor([12, 1, 2, 2, 12])[:, None]
    value = mu_fidelity(linear, attributions["IG"], 0.2, draws=20, present=few)
    assert value.isnan().tolist() == [False, True, True, True, False]


def linear(keep: torch.Tensor) -> torch.Tensor:
    return keep.double() @ torch.linspace(0.1, 1, FEATURES, dtype=torch.float64) ** 2


# Whose fault it is


def test_a_metric_that_fails_among_others_is_named(task, attributions):
    wrong = Metric(lambda score, attribution: {}["nothing"], source="me")
    with pytest.raises(ValueError, match=r"^the metric 'mine' fails: KeyError: 'nothing'"):
        evaluate({"SaCo": METRICS["SaCo"], "mine": wrong}, task, attributions)


@pytest.fixture(params=[torch.bfloat16, torch.float64], ids=str)
def another_default(request):
    """Another default dtype of torch's, to be set while something is asked."""

    @contextlib.contextmanager
    def set_it():
        torch.set_default_dtype(request.param)
        try:
            yield
        finally:
            torch.set_default_dtype(torch.float32)

    return set_it


def test_no_score_depends_on_the_default_precision(task, attributions, another_default):
    expected = evaluate(ONE_NETWORK, task, attributions).frame()
    with another_default():
        got = evaluate(ONE_NETWORK, dataclasses.replace(task), attributions).frame()
    pandas.testing.assert_frame_equal(got, expected, check_exact=True)


def test_no_estimate_depends_on_the_default_precision(task, attributions, another_default):
    table = evaluate({"Fid+": ONE_NETWORK["Fid+"]}, task, attributions)
    ask = functools.partial(stats.estimate, table, stats.area, cells=[{"explainer": "IG"}, {"explainer": "saliency"}])
    expected = ask()
    with another_default():
        got = ask()
    for numbers, of in ((got.pooled, expected.pooled), (got.each, expected.each)):
        for name in ("value", "low", "high"):
            torch.testing.assert_close(getattr(numbers, name), getattr(of, name), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("part", [slice(None), slice(3)], ids=["features", "inputs"])
def test_explanations_of_other_inputs_or_features_are_an_error(task, attributions, part):
    other = attributions["IG"][part] if part.stop else attributions["IG"][:, :-1]
    said = rf"^expected attribution 'IG' \(5, 12\), but got \({len(other)}, {other.shape[1]}\)"
    with pytest.raises(ValueError, match=said):
        evaluate({"SaCo": METRICS["SaCo"]}, task, {"IG": other})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"attributions": {"second": torch.zeros(5, 2)}}, r"expected attribution 'second' \(5, 12\)"),
        ({"labels": {"variant": 3}}, "variant: expected a text"),
        ({"attributions": {"": torch.zeros(5, 12)}}, "explainer: expected a text"),
        ({"images": torch.zeros(5, dtype=torch.int64)}, "are there more than once"),
        ({"images": torch.arange(5) + 2**31}, "integers of 32 bits"),
    ],
)
def test_what_no_table_can_hold_is_refused_before_anything_is_asked(task, attributions, wrong, said):
    asked = []
    metric = Metric(lambda score, a: asked.append(len(a)) or a[:, 0], source="this test")
    given = dataclasses.replace(task, images=wrong.get("images", task.images))
    with pytest.raises(ValueError, match=said):
        evaluate({"m": metric}, given, attributions | wrong.get("attributions", {}), **wrong.get("labels", {}))
    assert not asked


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.needs != "one network"])
def test_forwards_are_those_of_an_explanation_of_one_network(name):
    with pytest.raises(ValueError, match=f"this one needs {METRICS[name].needs}"):
        METRICS[name].forward_passes(12)


# Registration


def test_what_is_declared_beside_a_whole_metric_holds(registry):
    register("Other", METRICS["SaCo"], better=-1, source="q", groups=4)
    assert (METRICS["SaCo"].better, registry["Other"].better, registry["Other"].source) == (1, -1, "q")
    assert registry["Other"].forward_passes(9) == 1 + 4
    with pytest.raises(TypeError, match="direction: nothing"):
        register("Another", METRICS["SaCo"], direction="LeRF")
    assert "Another" not in registry


@pytest.fixture
def at_home(registry, monkeypatch):
    """Files that a test loads are forgotten after it."""
    monkeypatch.setattr(metrics, "_PLACES", dict(metrics._PLACES))
    monkeypatch.setattr(metrics, "_LOADED", dict(metrics._LOADED))
    monkeypatch.setattr(sys, "path", list(sys.path))
    return registry


MODERN = """
from __future__ import annotations

from dataclasses import dataclass

from beside_it import worst
from faithlab.metrics import register


@dataclass
class Settings:
    steps: int = 1


register("Modern", worst, source="a reader")
"""


def test_a_file_may_have_what_a_script_may_have(at_home, tmp_path):
    (tmp_path / "modern.py").write_text(MODERN)
    (tmp_path / "beside_it.py").write_text(MINE.split("\n\n\nregister(")[0])
    metrics.load(tmp_path / "modern.py")
    assert at_home["Modern"].forward_passes(9) == 2
    assert list(metrics.own())[-1:] == ["Modern"]


def test_a_file_runs_once_and_again_after_an_edit(at_home, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE + "\nregister('Other', worst, source='a reader')\n")
    monkeypatch.chdir(tmp_path)
    first = metrics.load("mine.py")
    assert first is metrics.load(tmp_path / ".." / tmp_path.name / "mine.py")
    (tmp_path / "mine.py").write_text(MINE.replace("chance=0.0", "chance=1.0"))
    assert metrics.load("mine.py") is not first
    assert at_home["Worst"].chance == 1
    assert list(metrics.own()) == ["Worst"]


def test_a_file_that_does_not_run_says_which_it_is_and_leaves_nothing(at_home, tmp_path):
    for name in ("first.py", "second.py"):
        (tmp_path / name).write_text(MINE)
    metrics.load(tmp_path / "first.py")
    with pytest.raises(ValueError, match=r"second\.py does not run: .* metric 'Worst' already, of .*first\.py; choose"):
        metrics.load(tmp_path / "second.py")
    (tmp_path / "second.py").write_text(MINE.replace("Worst", "Worse") + "\n1 / 0\n")
    with pytest.raises(ValueError, match=r"second\.py does not run: ZeroDivisionError"):
        metrics.load(tmp_path / "second.py")
    assert "Worse" not in at_home


@pytest.mark.parametrize("metric", [saco, mu_fidelity], ids=["SaCo", "MuFidelity"])
def test_what_is_asked_of_an_attribution_with_a_gradient_has_none(metric):
    attribution = torch.rand(2, 12, generator=torch.Generator().manual_seed(0))
    weights = attribution.flip(1)

    def score(keep):
        return (keep * weights[:, None]).sum(-1)

    found = metric(score, attribution.clone().requires_grad_())
    assert not found.requires_grad
    assert torch.equal(found, metric(score, attribution))


@pytest.mark.parametrize("kind", [np.int8, np.uint8, lambda n: torch.tensor(n, dtype=torch.uint8)])
def test_a_small_whole_number_of_groups_is_that_number(kind):
    attribution = torch.rand(3, 300, generator=torch.Generator().manual_seed(0))

    def score(keep, positions=None):
        return keep.float().mean(-1)

    expected = METRICS["SaCo"].compute(score, attribution, groups=100)
    assert not expected.isnan().any()
    torch.testing.assert_close(METRICS["SaCo"].compute(score, attribution, groups=kind(100)), expected)


@pytest.mark.parametrize("name", ["Fid+", "Fid-", "AUC", "AOPC", "LOdds", "Comp.", "SaCo"])
def test_an_explanation_may_lie_in_memory_in_any_order(name):
    x = torch.rand(3, 1, 4, 5, generator=torch.Generator().manual_seed(0))
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(20, 3)).eval()
    task = Task(model, x, torch.tensor([0, 1, 2]), segments.pixels(4, 5))
    turned = torch.rand(20, 3, generator=torch.Generator().manual_seed(1)).t()
    metric = METRICS[name]
    torch.testing.assert_close(metric(task, turned), metric(task, turned.contiguous()), equal_nan=True)


def test_a_share_in_half_precision_is_an_error():
    with pytest.raises(ValueError, match="cap between 0 and 1, in float64 or float32"):
        METRICS["FFid+"].given(cap=np.float16(0.35)).compute(None, torch.rand(2, 9), torch.tensor([0.5]))


def test_an_explanation_in_any_order_with_a_nan_says_so():
    broken = torch.rand(12, 3)
    broken[2, 1] = torch.nan
    with pytest.raises(ValueError, match=r"the attribution of images \[1\] holds NaN"):
        METRICS["SaCo"].compute(None, broken.t())
