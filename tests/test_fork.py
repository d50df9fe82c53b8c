"""The guide to forks, executed: what it says to type works, and what is added appears where it says."""

import json
import re

import nbformat
import pytest

from faithstudy import parameters, paths, profiles
from guides import command, guide

GUIDE, OWN = guide("fork"), guide("bring-your-own")


def test_a_copy_of_the_template_says_of_itself_what_is_true():
    template = paths.script("template").read_text(encoding="utf-8")
    copy, *_ = GUIDE.holding("bash", "sed s/template/mine/").splitlines()
    assert copy.split()[:2] == ["sed", "s/template/mine/"]
    lines = template.splitlines()
    changed = [line for line in lines if "template" in line]
    for line in changed:
        assert line.count("template") == 1, "sed changes the first of a line"
        assert line.startswith(("run = Run(", "# %%", '        "template-ig"')), "what is said changes with the name"


def test_the_guides_folder_is_that_of_its_command():
    (line,) = [line for line in GUIDE.holding("bash", "make notebook NAME=").splitlines() if line.startswith("make")]
    name, given = re.match(r'make notebook NAME=(\S+) PARAMS="(.*)"', line).groups()
    changed = parameters.given([pair.split("=", 1) for pair in given.split()])
    label = profiles.label(name, "quick", profiles.resolve(name, "quick", changed))
    assert f"`build/{label}`" in GUIDE.text


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_copy_of_the_template_becomes_a_page_with_all_that_was_added(clone, python, programs):
    (clone / "my_metrics.py").write_text(OWN.holding("python", "# my_metrics.py"))
    library = clone / "lib/faithlab"
    (library / "explainers/my_explainer.py").write_text(OWN.holding("python", "# my_explainer.py"))
    for name, added in {"networks/models.py": "def perceptron", "data/datasets.py": "def stripes"}.items():
        path = clone / "lib/faithstudy" / name
        # The guide's imports are what such a file has already.
        body = GUIDE.holding("python", added).split("\n\n\n", 1)[1]
        path.write_text(path.read_text(encoding="utf-8") + "\n\n" + body, encoding="utf-8")
    copy, *_ = GUIDE.holding("bash", "sed s/template/mine/").splitlines()
    command("bash", "-c", copy, folder=clone)
    command("make", "VENV=none", "sync", folder=clone, **programs)
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
    (clone / "book/_toc.yml").write_text("format: jb-book\nroot: book/evidence\nchapters:\n  - file: notebooks/mine\n")
    own = programs | {"FAITHLAB_METRICS": str(clone / "my_metrics.py")}
    command(*("make", "VENV=none", "notebook", "NAME=mine", "PROFILE=smoke"), folder=clone, **own)
    executed = nbformat.read(clone / "build/smoke/executed/mine.ipynb", as_version=4)
    shown = "".join(str(output) for cell in executed.cells for output in cell.get("outputs", []))
    assert "First feature" in shown, "a reader's metric is asked by itself"
    assert "gradient-squared" in shown
    used = json.loads((clone / "build/smoke/results/mine/provenance.json").read_text())["networks"]
    assert [network["name"] for network in used if network["name"].startswith("stripes-perceptron-")]
    claims = (clone / "build/smoke/results/mine/claims.csv").read_text()
    assert "mine-ig" in claims
    command(python, "book/build.py", "--profile", "smoke", folder=clone, **own)
    html = (clone / "build/smoke/html/notebooks/mine.html").read_text(encoding="utf-8")
    assert 'id="mine-curves"' in html
    (clone / "my_metrics.py").rename(library / "metrics/my_metrics.py")
    command(python, "-c", "from faithlab.metrics import METRICS; METRICS['First feature']", folder=clone)
