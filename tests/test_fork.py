"""The guide to forks, executed: what it says to type works, and what is added appears where it says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import torch

from faithlab.study import examine, kinds, parameters, places, profiles
from faithlab.zoo import models

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "book/fork.md").read_text(encoding="utf-8")


def snippets(language: str) -> list[str]:
    """The guide's blocks of a language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, flags=re.DOTALL)


def snippet(language: str, holding: str) -> str:
    (found,) = [block for block in snippets(language) if holding in block]
    return found


@pytest.fixture
def at_hand() -> dict:
    """What the guide calls yours: a model, inputs and labels."""
    torch.manual_seed(0)
    model = models.build("resnet9", width=2).eval()
    return {"model": model, "x": torch.randn(3, 3, 32, 32), "y": torch.tensor([1, 2, 3])}


def test_metrics_are_put_to_a_model_of_yours(at_hand, capsys):
    exec(snippet("python", "print(METRICS["), at_hand)
    shown = capsys.readouterr().out
    assert shown.startswith("tensor([")
    METRICS = at_hand["METRICS"]
    at_hand["METRICS"] = {name: METRICS[name] for name in ("SaCo", "AOPC", "FFid+")}  # all of them take minutes here
    exec(snippet("python", "print(stats.estimate("), at_hand)
    estimate, why = capsys.readouterr().out.splitlines()
    assert re.match(r"-?\d[\d.]* \[", estimate)
    assert why == "no network that was fine-tuned on random masks"


def test_the_size_of_an_explanation_of_yours_is_read_or_refused(at_hand, capsys):
    exec(snippet("python", "print(METRICS["), at_hand)
    capsys.readouterr()
    exec(snippet("python", "figures.explanation_size("), at_hand)
    said = capsys.readouterr().out
    assert re.match(r"no size: [a-z]|0\.\d\d \[", said)
    assert at_hand["size"].rows == 50
    panels = at_hand["figure"].axes
    assert [axes.get_title() for axes in panels[:2]] == ["image", "explanation"]
    assert panels[2].lines, "the curves"


def test_metrics_are_examined_with_a_model_of_yours(at_hand, capsys):
    exec(snippet("python", "print(METRICS["), at_hand)
    exec(snippet("python", "trials.examine("), at_hand)
    shown = capsys.readouterr().out
    assert "Own model" in shown
    assert "forwards" in shown, "its price, too"
    rows = at_hand["examined"].trust.set_index(["trial", "size"])
    assert len(rows) == 14
    assert "magnitudes" in rows.loc[("Gaming", "all images"), "why"]
    assert rows.loc[("Truth", "all images"), "T"] > 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_is_examined_by_one_command_has_a_page_and_a_row(clone):
    (clone / "my_metrics.py").write_text(snippet("python", "# my_metrics.py"))
    line, *_ = snippet("bash", "make examine").splitlines()
    small = [*line.split(), "VENV=none", "PROFILE=smoke"]
    said = command(*small, folder=clone)
    page, row = (Path(re.search(rf"{what}: (.*)", said)[1]) for what in ("The page", "Its row, as JSON"))
    assert "first_feature" in page.read_text(encoding="utf-8")
    found = json.loads(row.read_text(encoding="utf-8"))["metric"]
    assert found["name"] == "first_feature"
    assert {trial["trial"] for trial in found["trials"]} >= {"Order", "Chance", "Truth", "Own model"}
    wrong = clone / "wrong.py"
    wrong.write_text("def mine(score, attribution):\n    return attribution\n")
    environment = os.environ | {"PYTHONPATH": str(clone / "lib"), "FAITHLAB_ROOT": str(clone)}
    words = [sys.executable, "-m", "faithlab.study.examine", "--metric", f"{wrong}:mine"]
    ran = subprocess.run(words, cwd=clone, env=environment, capture_output=True, text=True)
    assert ran.returncode == 2
    assert "the metric 'mine' fails on a random explanation of two inputs: expected a number for each" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_network_of_yours_and_its_inputs_are_what_the_guide_says(tmp_path):
    (tmp_path / "my_network.py").write_text(snippet("python", "# my_network.py"))
    *_, line = snippet("bash", "make examine").splitlines()
    given = {word.split("=")[0].lower(): f"{tmp_path}/{word.split('=')[1]}" for word in line.split()[2:]}
    found = kinds.yours(**given, parameters={**profiles.resolve("across/examination"), "images": 8})
    assert found.subject.x.shape == (8, 1, 16, 16)
    assert found.right[0].images == 8
    examine.check(**given)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_network_of_yours_has_a_page_and_its_rows(clone):
    (clone / "my_network.py").write_text(snippet("python", "# my_network.py"))
    *_, line = snippet("bash", "make examine").splitlines()
    said = command(*line.split(), "VENV=none", "PROFILE=smoke", folder=clone)
    page, row = (Path(re.search(rf"{what}: (.*)", said)[1]) for what in ("The page", "Its row, as JSON"))
    assert "network of yours" in page.read_text(encoding="utf-8")
    found = json.loads(row.read_text(encoding="utf-8"))["model"]
    assert found["name"] == "network"
    assert {of["metric"] for of in found["trials"] if of["verdict"] != "does not apply"} >= {"SaCo", "Fid+"}
    assert {of["kind"] for of in found["trials"]} == {"yours"}


def test_a_copy_of_the_template_says_of_itself_what_is_true():
    template = places.script("template").read_text(encoding="utf-8")
    copy, *_ = snippet("bash", "sed s/template/mine/").splitlines()
    assert copy.split()[:2] == ["sed", "s/template/mine/"]
    lines = template.splitlines()
    changed = [line for line in lines if "template" in line]
    for line in changed:
        assert line.count("template") == 1, "sed changes the first of a line"
        assert line.startswith(("run = Run(", "# %%", '        "template-ig"')), "what is said changes with the name"


def test_the_guides_folder_is_that_of_its_command():
    (line,) = [line for line in snippet("bash", "make notebook NAME=").splitlines() if line.startswith("make")]
    name, given = re.match(r'make notebook NAME=(\S+) PARAMS="(.*)"', line).groups()
    changed = parameters.given([pair.split("=", 1) for pair in given.split()])
    label = profiles.label(name, "quick", profiles.resolve(name, "quick", changed))
    assert f"`build/{label}`" in GUIDE


def test_an_explainer_is_there_by_its_name(at_hand):
    from faithlab import explainers, segments

    exec(snippet("python", "gradient-squared"), at_hand)
    try:
        found = explainers.explain(
            "gradient-squared", at_hand["model"], at_hand["x"], at_hand["y"], segments.pixels(32, 32)
        )
        assert found.shape == (3, 1024)
        assert bool((found >= 0).all())
    finally:
        del explainers._EXPLAINERS["gradient-squared"]


def command(*words: str, folder: Path, **environment: str) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    outside = {
        key: value for key, value in os.environ.items() if not key.startswith(("FAITHLAB_B", "FAITHLAB_R", "MAKE"))
    }
    known = {"PATH": path, "PYTHONPATH": str(folder / "lib"), "FAITHLAB_ROOT": str(folder)}
    ran = subprocess.run(words, cwd=folder, env=outside | known | environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    return ran.stdout + ran.stderr


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_metric_is_one_file_and_passes_the_tests_of_all(clone):
    text = snippet("python", "# my_metrics.py")
    assert len(text.splitlines()) <= 25
    (clone / "my_metrics.py").write_text(text)
    export, tests = snippet("bash", "FAITHLAB_METRICS").splitlines()
    said = command("bash", "-c", f"{export}\n{tests}", folder=clone)
    assert int(re.search(r"(\d+) passed", said)[1]) >= 2


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_copy_of_the_template_becomes_a_page_with_all_that_was_added(clone):
    (clone / "my_metrics.py").write_text(snippet("python", "# my_metrics.py"))
    additions = {
        "explainers/gradient.py": "gradient-squared",
        "zoo/models.py": "def perceptron",
        "zoo/datasets.py": "def stripes",
    }
    for name, added in additions.items():
        path = clone / "lib/faithlab" / name
        # The guide's imports are what such a file has already.
        body = snippet("python", added).split("\n\n\n", 1)[1]
        path.write_text(path.read_text(encoding="utf-8") + "\n\n" + body, encoding="utf-8")
    copy, *_ = snippet("bash", "sed s/template/mine/").splitlines()
    command("bash", "-c", copy, folder=clone)
    command("make", "VENV=none", "sync", folder=clone)
    assert (clone / "notebooks/mine.ipynb").is_file()
    page = clone / "notebooks/mine.py"
    text = page.read_text(encoding="utf-8")
    assert text.count('model="cnn3", model_options={"channels": 1}') == 1
    text = text.replace(
        'data="mnist", model="cnn3", model_options={"channels": 1}', 'data="stripes", model="perceptron"'
    )
    text = text.replace(
        '["saliency", "integrated-gradients", "gradcam", "random"]', '["gradient-squared", "integrated-gradients"]'
    )
    page.write_text(text, encoding="utf-8")
    profiles = clone / "notebooks/profiles.yml"
    profiles.write_text(profiles.read_text() + "\nmine:\n  smoke: {train: 500, images: 16}\n")
    (clone / "book/_toc.yml").write_text(
        "format: jb-book\nroot: notebooks/template\nchapters:\n  - file: notebooks/mine\n  - file: book/evidence\n"
    )
    metrics = str(clone / "my_metrics.py")
    command(
        *("make", "VENV=none", "notebook", "NAME=template", "PROFILE=smoke"), folder=clone, FAITHLAB_METRICS=metrics
    )
    command(*("make", "VENV=none", "notebook", "NAME=mine", "PROFILE=smoke"), folder=clone, FAITHLAB_METRICS=metrics)
    executed = nbformat.read(clone / "build/smoke/executed/mine.ipynb", as_version=4)
    shown = "".join(str(output) for cell in executed.cells for output in cell.get("outputs", []))
    assert "First feature" in shown, "a reader's metric is asked by itself"
    assert "gradient-squared" in shown
    used = json.loads((clone / "build/smoke/results/mine/provenance.json").read_text())["networks"]
    assert [network["name"] for network in used if network["name"].startswith("stripes-perceptron-")]
    claims = (clone / "build/smoke/results/mine/claims.csv").read_text()
    assert "mine-ig" in claims
    command(sys.executable, "book/build.py", "--profile", "smoke", folder=clone, FAITHLAB_METRICS=metrics)
    html = (clone / "build/smoke/html/notebooks/mine.html").read_text(encoding="utf-8")
    assert 'id="mine-curves"' in html
    assert places.script("template").is_file()
