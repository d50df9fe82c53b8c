"""The guide to one's own model, explanation and metric, executed from top to bottom: what it says is what comes."""

import json
import re
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
import torch
import yaml

from faithlab import explainers, metrics
from faithlab.task import Task
from faithstudy import architectures, examine, profiles
from faithstudy.trials import checks
from guides import ROOT, command, guide

GUIDE = guide("bring-your-own")
QUARTER = {"160, 160, 16": "40, 40, 4", "160, 160": "40, 40", "25600": "1600", "ones(16, 16)": "ones(4, 4)"}
"""Pictures of a quarter of the side with as many patches: nearly all the time of the page goes into its forwards."""


def quartered(text: str) -> str:
    """What the guide says, of smaller pictures."""
    for whole, quarter in QUARTER.items():
        text = text.replace(whole, quarter)
    return text


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> dict:
    """The page's names after its snippets have run in order on smaller pictures, and what each printed, "said".

    A block that begins with the name of a file is that file, as its reader saves it.
    """
    names, said = {}, []
    with pytest.MonkeyPatch.context() as patch:
        for registry in ("_PLACES", "_LOADED"):
            patch.setattr(metrics, registry, dict(getattr(metrics, registry)))
        patch.setattr(sys, "path", list(sys.path))
        patch.chdir(tmp_path_factory.mktemp("reader"))
        for block in GUIDE.all("python"):
            if file := re.match(r"# (\w+\.py)\n", block):
                Path(file[1]).write_text(block)
                continue
            with redirect_stdout(shown := StringIO()):
                exec(quartered(block), names)
            said.append(shown.getvalue())
        added = metrics.METRICS.pop("First feature")
    return names | {"said": said, "First feature": added}


def test_the_shortest_example_is_first_short_and_prints_a_number_for_each_image(page):
    first = GUIDE.all("python")[0]
    assert first.index("import timm") == 0
    assert len([line for line in first.splitlines() if line.strip()]) <= 15
    wide = [line for block in [first, *GUIDE.all("text")] for line in block.splitlines() if len(line) > 80]
    assert not wide, "the page cuts them"
    assert page["said"][0].startswith("tensor([")
    assert page["METRICS"]["SaCo"](page["task"], page["saliency"]).shape == (16,)


def test_photographs_are_as_the_model_takes_them(page):
    assert page["pictures"].shape == (2, 3, 160, 160)
    assert page["x"].shape == (16, 3, 40, 40)


def test_a_metric_asked_as_defined_is_high_and_by_hand_it_is_as_if_by_chance(page):
    defined, by_hand = (float(number) for number in re.findall(r"tensor\((-?[\d.]+)", page["said"][3]))
    assert defined > 0.9
    assert abs(by_hand) < 0.4


def test_the_long_table_has_every_metric_and_its_control(page):
    assert len(page["scores"].labels("metric")) == len(page["cheap"]) == 4
    assert page["scores"].labels("explainer") == ["mine", "saliency", "chance"]
    *_, mine, saliency, chance, why = page["said"][4].splitlines()
    assert mine.startswith("mine 1 ")
    assert re.match(r"saliency -?\d[\d.e-]* \[", saliency)
    assert re.match(r"chance -?\d[\d.e-]* \[", chance)
    assert why == "no network that was fine-tuned on random masks"


def test_what_follows_from_the_images_is_a_verdict(page):
    mine, saliency = re.findall(r"^(\w+): The one part", page["said"][5], re.MULTILINE)
    assert (mine, saliency) == ("reproduced", "undecided")
    assert "16 inputs" in page["said"][5]


def test_the_errors_that_the_page_shows_are_those_that_come(page):
    shown = [quartered(" ".join(block.split())) for block in GUIDE.all("text")]
    asked = re.findall(r'`(METRICS\["SaCo"\](?:\(task, heat[^`]*|\.given\(group=20\)))`', GUIDE.text)
    assert len(asked) == len(shown) == 3
    for call, message in zip(asked, shown, strict=True):
        with pytest.raises((ValueError, TypeError)) as came:
            eval(call, page)
        assert str(came.value) == message, call


def test_other_settings_are_taken_where_they_are_named(page):
    (call,) = re.findall(r'`(METRICS\["SaCo"\]\.given\(baseline[^`]*)`', GUIDE.text)
    assert eval(call, page).baseline == "zero"


def test_a_metric_of_yours_is_there_when_its_file_is_loaded(page):
    assert page["said"][6].startswith("tensor([")
    assert page["First feature"].source == "me, 2026"
    assert "First feature" not in metrics.METRICS, "of this page alone"


def test_metrics_are_examined_with_a_model_of_yours(page):
    assert "Own model" in page["said"][7]
    assert "forwards" in page["said"][7], "its price, too"
    rows = page["examined"].trust.set_index(["trial", "size"])
    assert len(rows) == 14
    assert rows.loc[("Truth", "all images"), "T"] > 0


def test_the_size_of_an_explanation_of_yours_is_read_or_refused(page):
    assert re.match(r"no size: [a-z]|0\.\d\d \[", page["said"][8])
    assert page["size"].rows == 20
    *pictures, curves = page["figure"].axes
    assert [axes.get_title() for axes in pictures[:2]] == ["image", "explanation"]
    assert curves.lines


def test_labels_and_numbers_are_read_as_what_they_are(page):
    x, label, effects = (page[name] for name in ("songs", "label", "contributions"))
    for read, model, order, said in (
        (torch.sigmoid, page["genres"], effects, page["said"][9]),
        (torch.clone, page["prices"], page["effects"], page["said"][10]),
    ):
        inputs, place = (x, label) if model is page["genres"] else (page["houses"], page["first"])
        total = read(model(inputs).gather(1, place[:, None]))
        for feature in order.argsort(1, descending=True).T:
            inputs = inputs.scatter(1, feature[:, None], 0)
            total = total + read(model(inputs).gather(1, place[:, None]))
        assert float(re.search(r"tensor\(\[(-?[\d.]+)", said)[1]) == pytest.approx(total[0].item(), abs=1e-3)


def test_an_explainer_of_yours_is_there_by_its_name(page):
    exec(GUIDE.holding("python", "# my_explainer.py"), {})
    try:
        names = {name: page[name] for name in ("model", "x", "y", "patches")}
        (call,) = re.findall(r'`(explain\("gradient-squared"[^`]*)`', GUIDE.text)
        found = eval(call, names | {"explain": explainers.explain})
        assert found.shape == (16, 100)
        assert bool((found >= 0).all())
    finally:
        del explainers._EXPLAINERS["gradient-squared"]


def test_the_page_is_in_the_book_and_found_by_its_headings():
    toc = yaml.safe_load((ROOT / "book/_toc.yml").read_text(encoding="utf-8"))
    assert {"file": "book/bring-your-own"} in [c for part in toc["parts"] for c in part["chapters"]]
    headings = " ".join(re.findall(r"^#+ (.*)", GUIDE.text, re.MULTILINE)).lower()
    assert all(word in headings for word in ("own metric", "own explainer", "timm", "add", "heat map"))
    (entries,) = re.findall(r"^```{index} (.*)\n```$", GUIDE.text, re.MULTILINE)  # the search puts these first
    assert {"! own metric", "! own model", "! timm", "! add"} <= set(entries.split(", "))
    for leads in ("book/home.md", "book/path.md", "book/fork.md", "README.md"):
        assert "bring-your-own" in (ROOT / leads).read_text(encoding="utf-8"), leads


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_is_examined_by_one_command_has_a_page_and_rows(clone, programs):
    """The guide's commands for a metric and for a network, as one: they are arguments of the same."""
    for file in ("my_metrics.py", "my_network.py"):
        (clone / file).write_text(GUIDE.holding("python", f"# {file}"))
    (metric, *_), (*_, network) = (GUIDE.holding("bash", "make examine").splitlines() for _ in range(2))
    small = [*metric.split(), *network.split()[2:], "VENV=none", "PROFILE=smoke"]
    said = command(*small, folder=clone, **programs)
    page, row = (Path(re.search(rf"{what}: (.*)", said)[1]) for what in ("The page", "Its row, as JSON"))
    shown, found = page.read_text(encoding="utf-8"), json.loads(row.read_text(encoding="utf-8"))
    assert "first_feature" in shown
    assert found["metric"]["name"] == "first_feature"
    assert {trial["trial"] for trial in found["metric"]["trials"]} >= {"Order", "Chance", "Truth", "Own model"}
    assert "network of yours" in shown
    own = found["model"]
    assert own["name"] == "network"
    assert {of["metric"] for of in own["trials"] if of["verdict"] != "does not apply"} >= {"SaCo", "Fid+"}
    assert {of["kind"] for of in own["trials"]} == {"yours"}


def test_what_is_wrong_with_a_metric_is_said_before_the_page_is_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(examine.execute, "execute", lambda *_, **__: pytest.fail("it runs"))
    wrong = tmp_path / "wrong.py"
    wrong.write_text("def mine(score, attribution):\n    return attribution\n")
    assert examine.main(["--metric", f"{wrong}:mine"]) == 2
    said = capsys.readouterr().err
    assert ":mine fails on two inputs of a ResNet-9 on CIFAR-10; squares of pixels: expected" in said


def test_a_network_of_yours_and_its_inputs_are_what_the_guide_says(tmp_path):
    (tmp_path / "my_network.py").write_text(GUIDE.holding("python", "# my_network.py"))
    *_, line = GUIDE.holding("bash", "make examine").splitlines()
    given = {word.split("=")[0].lower(): f"{tmp_path}/{word.split('=')[1]}" for word in line.split()[2:]}
    found = architectures.yours(**given, parameters={**profiles.resolve("across/examination"), "images": 8})
    assert found.task.x.shape == (8, 1, 16, 16)
    assert found.right()[0].images == 8
    architectures.check(profiles.resolve("across/examination"), **given)


def test_a_metric_with_settings_is_examined_with_them(tmp_path):
    (tmp_path / "my_lower_metric.py").write_text(GUIDE.holding("python", "# my_lower_metric.py"))
    named = f"{tmp_path}/my_lower_metric.py:mine"
    architectures.check({**profiles.resolve("across/examination"), "networks": ["resnet9 0"]}, metric=named)
    found = checks.yours(named, "metric")
    assert (found.better, found.baseline) == (-1, "mean")
    x = torch.rand(6, 1, 4, 4)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 2)).requires_grad_(False)
    model[1].weight.copy_(torch.stack([torch.arange(16.0), -torch.arange(16.0)]) / 100)
    task = Task(model, x, torch.zeros(6, dtype=torch.int64), torch.arange(16).view(4, 4))
    right = (x - x.mean((2, 3), keepdim=True)).flatten(1) * torch.arange(16.0)
    assert (found(task, right) < found(task, -right)).all(), "lower is better"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_metric_is_one_file_and_passes_the_tests_of_all(clone, programs):
    text = GUIDE.holding("python", "# my_metrics.py")
    assert len(text.splitlines()) <= 25
    (clone / "my_metrics.py").write_text(text)
    export, tests = GUIDE.holding("bash", "FAITHLAB_METRICS").splitlines()
    said = command("bash", "-c", f"{export}\n{tests}", folder=clone, **programs)
    assert int(re.search(r"(\d+) passed", said)[1]) >= 2
