"""faithlab needs torch and little else, but for its explainers; what needs more says what to install."""

import pkgutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import faithlab
from faithstudy import dependencies, paths

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
FORKS = """
import os
import sys

import torch

for number, (source, absent) in enumerate({asked!r}):
    child = os.fork()
    if not child:
        for own, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(name + str(number), os.O_WRONLY | os.O_CREAT), own)
        # To import what is None is an error, as if it were not installed.
        loaded = [name for name in sys.modules if name.partition(".")[0] in absent]
        sys.modules.update(dict.fromkeys([*absent, *loaded]))
        exec(source, {{"__name__": "__main__"}})
        sys.stdout.flush()
        os._exit(0)  # to free all that is loaded takes half a second
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    open("code" + str(number), "w").write(str(code))
"""
ASKED = """
import torch
from faithlab import engine, search, segments, stats
from faithlab.metrics import METRICS, evaluate
from faithlab.task import Task

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 3)).eval()
x = torch.rand(4, 3, 4, 4)
task = Task(model, x, model(x).argmax(1), segments.patches(4, 4, 2))
table = evaluate({"LeRF - MoRF": METRICS["LeRF - MoRF"]}, task, {"mine": torch.rand(4, 4)})
print(len(table))
"""
MODULES = {"scikit-image": "skimage", "pillow": "PIL", "deel-torchlip": "deel", "pyyaml": "yaml"}
MODULES |= {"grad-cam": "pytorch_grad_cam", "opencv-python-headless": "cv2"}


def beyond(*extras: str) -> set[str]:
    """Modules of extras, by default of those that hold parts of the library."""
    given = PROJECT["optional-dependencies"]
    names = [Requirement(line).name for extra in extras or ("explainers", "study") for line in given[extra]]
    return {MODULES.get(name, name.replace("-", "_")) for name in names}


MISSING = {
    ("faithlab.explainers", "captum"): "explainers",
    ("faithstudy.networks", "deel"): "explainers,study",
    ("faithstudy.claims", "seaborn"): "explainers,study",
}
"""By module and by what is absent: the extras that it asks for."""


@pytest.fixture(scope="module")
def done(tmp_path_factory, python) -> dict[object, subprocess.CompletedProcess]:
    """How these sources end: each in a process of its own, a fork of one that has loaded torch, which all need."""
    reached = set().union(*(dependencies.modules(paths.script(name)) for name in paths.notebooks()))
    imports = sorted(name for name in reached if name.startswith("faith"))
    assert "faithstudy.run" in imports
    library = [found.name for found in pkgutil.walk_packages(faithlab.__path__, "faithlab.")]
    thin = [f"import {name}\n" for name in library if not name.startswith("faithlab.explainers")]
    asked = {key: (f"import {key[0]}", {key[1]}) for key in MISSING} | {
        "a metric": ("".join(thin) + ASKED, beyond()),
        # What runs the cells is there, in a notebook.
        "all notebooks": ("".join(f"import {name}\n" for name in imports), beyond("book", "peers") - {"ipykernel"}),
    }
    folder = tmp_path_factory.mktemp("done")
    subprocess.run([python, "-c", FORKS.format(asked=[*asked.values()])], cwd=folder, check=True)
    said = [[(folder / f"{of}{number}").read_text() for of in ("code", "out", "err")] for number in range(len(asked))]
    return {
        key: subprocess.CompletedProcess([], int(code), out, err)
        for key, (code, out, err) in zip(asked, said, strict=True)
    }


def test_the_base_dependencies_are_those_of_the_library():
    names = {Requirement(line).name for line in PROJECT["dependencies"]}
    assert names == {"torch", "numpy", "scipy", "pandas", "pyarrow", "tqdm"}


def test_faithlab_but_its_explainers_needs_no_extra(done):
    found = done["a metric"]
    assert found.returncode == 0, found.stderr[-2000:]
    assert found.stdout.strip() == "4"


@pytest.mark.parametrize("what", MISSING)
def test_what_needs_an_extra_says_which(what, done):
    _, absent = what
    assert done[what].returncode
    assert f"needs {absent}, which is not installed: pip install 'faithlab[{MISSING[what]}]'" in done[what].stderr


def test_what_a_notebook_imports_comes_with_the_study(done):
    found = done["all notebooks"]
    assert found.returncode == 0, found.stderr[-2000:]
