"""A metric alone needs torch and little else; what needs more says what to install."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from faithlab.study import places, reach

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
ABSENT = "import sys\nsys.modules.update(dict.fromkeys({absent!r}))\n"
"""To import what is None is an error, as if it were not installed."""
ASKED = """
import torch
from faithlab import claims, engine, search, segments, stats
from faithlab.metrics import METRICS, evaluate
from faithlab.subject import Subject

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 3)).eval()
x = torch.rand(4, 3, 4, 4)
subject = Subject(model, x, model(x).argmax(1), segments.patches(4, 4, 2))
table = evaluate({"LeRF - MoRF": METRICS["LeRF - MoRF"]}, subject, {"mine": torch.rand(4, 4)})
print(len(table))
"""
MODULES = {"scikit-image": "skimage", "pillow": "PIL", "deel-torchlip": "deel", "pyyaml": "yaml"}
MODULES |= {"grad-cam": "pytorch_grad_cam", "opencv-python-headless": "cv2"}


def beyond(*extras: str) -> set[str]:
    """Modules of extras, by default of those that hold parts of the library."""
    given = PROJECT["optional-dependencies"]
    names = [Requirement(line).name for extra in extras or ("explainers", "study") for line in given[extra]]
    return {MODULES.get(name, name.replace("-", "_")) for name in names}


def run(source: str, absent: set[str]) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", ABSENT.format(absent=absent) + source], capture_output=True, text=True)


def test_a_metric_is_asked_without_any_extra():
    done = run(ASKED, beyond())
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "4"


@pytest.mark.parametrize(
    ("module", "absent", "extra"),
    [
        ("explainers", "captum", "explainers"),
        ("zoo.training", "deel", "explainers,study"),
        ("study", "seaborn", "explainers,study"),
    ],
)
def test_what_needs_an_extra_says_which(module, absent, extra):
    done = run(f"import faithlab.{module}", {absent})
    assert done.returncode
    assert f"needs {absent}, which is not installed: pip install 'faithlab[{extra}]'" in done.stderr


def test_what_a_notebook_imports_comes_with_the_study():
    reached = set().union(*(reach.modules(places.script(name)) for name in places.notebooks()))
    asked = sorted(name for name in reached if name.startswith("faithlab"))
    assert "faithlab.study.results" in asked
    # What runs the cells is there, in a notebook.
    done = run("".join(f"import {name}\n" for name in asked), beyond("book", "peers") - {"ipykernel"})
    assert done.returncode == 0, done.stderr[-2000:]
