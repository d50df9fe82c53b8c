"""The registry: every metric is asked with its own readout, reference and network, and what is shared is asked once."""

import dataclasses
import math
import os
import subprocess
import sys

import pytest
import torch
from torch import nn

from faithlab import engine, metrics, references, stats
from faithlab.metrics import METRICS, Metric, evaluate, families, obstacles, register
from faithlab.metrics.deletion import curve
from faithlab.metrics.saco import saco
from faithlab.readouts import hit, probability
from faithlab.subject import Subject

FEATURES = 12


def network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(FEATURES, 16), nn.ReLU(), nn.Linear(16, 3)).eval()


@pytest.fixture
def subject() -> Subject:
    x = 1 + torch.randn(5, FEATURES, generator=torch.Generator().manual_seed(3))
    model = network(0)
    own = references.NAMED | {"perturbed": references.given(x.flip(1).clone())}
    return Subject(
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
        references=own,
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
    assert METRICS[name].forwards(100) == asked


@pytest.mark.parametrize("name", ONE_NETWORK)
def test_a_metric_asks_with_its_own_readout_reference_and_network(subject, attributions, name):
    metric = ONE_NETWORK[name]
    model = {"original": subject.model, "fine-tuned": subject.tuned, "retrained": subject.retrained["IG"]}
    score = engine.scorer(
        model[metric.network],
        subject.x,
        subject.target,
        segments=subject.segments,
        reference=subject.references[metric.reference],
        readout=metric.readout,
    )
    options = {"images": subject.images} if "images" in metric._arguments else {}
    sizes = () if metric.sizes is None else (torch.tensor(metric.sizes, dtype=torch.float64),)
    expected = metric.ask(score, attributions["IG"], *sizes, **options)
    expected = expected.value if isinstance(expected, stats.MonteCarlo) else expected
    found = metric(subject, attributions["IG"], explainer="IG")
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_saco_does_not_depend_on_whose_score_is_at_hand(subject, attributions):
    """Fed by hand with another metric's score it gives another number, and says nothing."""
    right = METRICS["SaCo"](subject, attributions["IG"])
    of_fidelity = subject.score(hit, "zero", "fine-tuned")
    assert not torch.allclose(saco(of_fidelity, attributions["IG"]), right, equal_nan=True)
    own = engine.scorer(
        subject.model,
        subject.x,
        subject.target,
        segments=subject.segments,
        reference=references.mean,
        readout=probability,
    )
    torch.testing.assert_close(saco(own, attributions["IG"]), right)


def test_evaluate_gives_what_each_metric_gives_alone(subject, attributions):
    scores = evaluate(ONE_NETWORK, subject, attributions)
    for explainer, attribution in attributions.items():
        for name, metric in ONE_NETWORK.items():
            if metric.obstacle(subject, explainer):
                continue
            rows = list(scores.where(metric=name, explainer=explainer))
            assert len(rows) == 1
            alone = metric(subject, attribution, explainer=explainer).float()
            torch.testing.assert_close(rows[0].values, alone.view(5, -1), rtol=1e-4, atol=1e-5, equal_nan=True)
            assert rows[0].images.tolist() == [3, 5, 8, 13, 21]
            assert rows[0].sizes == metric.sizes


def test_rows_say_what_they_are(subject, attributions):
    scores = evaluate({"Fid-": METRICS["Fid-"]}, subject, attributions, variant="shuffled", level=0.2, noise_seed=1)
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


def test_what_does_not_apply_has_no_row_and_a_reason(subject, attributions):
    scores = evaluate(METRICS | {"SaCo": METRICS["SaCo"]}, subject, {"saliency": attributions["saliency"]})
    assert "ROAR+" not in scores.labels("metric")
    why = obstacles(METRICS, subject, {"saliency": attributions["saliency"]})
    assert why["saliency", "ROAR+"] == "no network retrained for saliency"
    assert why["saliency", "ReCo"] == "it needs cross-trained networks"
    with pytest.raises(ValueError, match=r"no metric applies: ROAR\+: no network retrained for saliency"):
        evaluate({"ROAR+": METRICS["ROAR+"]}, subject, {"saliency": attributions["saliency"]})
    with pytest.raises(ValueError, match="does not apply: no network retrained"):
        METRICS["ROAR+"](subject, attributions["IG"])


def forwards(monkeypatch, ask) -> int:
    """Masked inputs that the engine is asked about."""
    count, scorer = 0, engine.scorer

    def counted(*given, **options):
        score = scorer(*given, **options)

        def asked(keep, images=None):
            nonlocal count
            count += keep[..., 0].numel()
            return score(keep, images)

        asked.classes = score.classes
        return asked

    monkeypatch.setattr(engine, "scorer", counted)
    ask()
    monkeypatch.undo()
    return count


def test_equal_masks_are_asked_once(monkeypatch, subject, attributions):
    """One clean forward, one deletion curve for AUC, AOPC and LOdds, one trajectory for MoRF, LeRF and insertion."""
    one = {"IG": attributions["IG"]}
    deletion = {name: METRICS[name] for name in ("AUC", "AOPC", "LOdds")}
    # 11 steps each, the same ones; of 12 features two of them round to the same count for nobody.
    assert forwards(monkeypatch, lambda: evaluate(deletion, subject, one)) == 5 * 11
    along = {name: METRICS[name] for name in ("MoRF", "LeRF", "LeRF - MoRF", "Insertion")}
    # Removing k from either end, and all or nothing of both.
    assert forwards(monkeypatch, lambda: evaluate(along, subject, one)) <= 5 * 2 * (FEATURES + 1)
    alone = sum(forwards(monkeypatch, lambda m=m: evaluate({"m": m}, subject, one)) for m in ONE_NETWORK.values())
    assert forwards(monkeypatch, lambda: evaluate(ONE_NETWORK, subject, one)) < 0.8 * alone


def test_options_are_those_of_the_metric():
    metric = METRICS["FFid+"].given(sizes=[0.1, 0.5], draws=2, cap=0.3)
    assert metric.sizes == (0.1, 0.5)
    assert metric.network == "fine-tuned"
    assert metric.forwards(100) == 1 + 2 * 2
    with pytest.raises(TypeError, match="groups: neither an attribute of a metric nor an argument of this one"):
        METRICS["FFid+"].given(groups=3)
    with pytest.raises(TypeError, match=r"draw: neither .* which has groups, ratio"):
        METRICS["SaCo"].given(draw=3)


@pytest.mark.parametrize(
    ("declared", "error", "message"),
    [
        ({"better": 0}, ValueError, "expected better = 1"),
        ({"source": " "}, ValueError, "expected where the metric is defined"),
        ({"readout": "hit"}, TypeError, "expected functions"),
    ],
)
def test_a_wrong_declaration_is_refused(declared, error, message):
    with pytest.raises(error, match=message):
        Metric(lambda score, attribution: attribution[:, 0], **{"source": "me"} | declared)


@pytest.mark.parametrize(
    ("ask", "came"),
    [
        (lambda score, a: a, r"\(5, 12\)"),
        (lambda score, a: a.sum(), r"\(\)"),
        (lambda score, a: [0.0] * 5, "list"),
    ],
)
def test_a_metric_that_answers_something_else_is_refused(subject, attributions, ask, came):
    with pytest.raises(ValueError, match=f"expected a number for each of the 5 explanations.*{came}"):
        Metric(ask, source="me")(subject, attributions["IG"])


def test_a_name_is_registered_once(registry):
    register("Mine", lambda score, attribution: attribution[:, 0], source="me")
    with pytest.raises(ValueError, match="there is a metric 'Mine' already"):
        register("Mine", METRICS["SaCo"])


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


def test_a_readers_file_is_loaded(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "other.py").write_text(MINE.replace("Worst", "Worse"))
    both = os.pathsep.join([str(tmp_path / "mine.py"), str(tmp_path / "other.py")])
    code = "from faithlab.metrics import METRICS; print(list(METRICS)[-2:], METRICS['Worst'].forwards(9))"
    ran = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {metrics.FILES: both}, capture_output=True, text=True
    )
    assert ran.stdout.strip() == "['Worst', 'Worse'] 2", ran.stderr
    ran = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {metrics.FILES: "nowhere.py"}, capture_output=True, text=True
    )
    assert "FAITHLAB_METRICS names nowhere.py, which is no file" in ran.stderr


def test_an_undefined_number_is_missing_and_counted(subject):
    constant = {"flat": torch.zeros(5, FEATURES)}
    scores = evaluate({"SaCo": METRICS["SaCo"], "AOPC": METRICS["AOPC"]}, subject, constant)
    assert scores.missing == 5
    assert all(math.isnan(value) for value in scores.where(metric="SaCo").frame()["value"])


def test_exact_metrics_ask_in_float32(subject, attributions, monkeypatch):
    half = dataclasses.replace(subject, precision=torch.bfloat16)
    seen, scorer = {}, engine.scorer

    def noted(*given, precision=None, readout=None, **options):
        seen[readout] = precision
        return scorer(*given, precision=precision, readout=readout, **options)

    monkeypatch.setattr(engine, "scorer", noted)
    METRICS["SaCo"](half, attributions["IG"])
    METRICS["Fid+"](half, attributions["IG"])
    assert seen == {probability: torch.float32, hit: torch.bfloat16}


def test_the_deletion_metrics_are_the_papers_formulas(subject, attributions):
    score = subject.score(probability, "mean", exact=True)
    left = curve(score, attributions["IG"])
    torch.testing.assert_close(METRICS["AOPC"](subject, attributions["IG"]), (left[:, :1] - left).mean(1))
