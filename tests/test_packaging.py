"""The package, its lock, its conda environment and its notebooks say the same thing."""

import importlib
import itertools
import json
import pkgutil
import re
import tomllib
from pathlib import Path

import jupytext
import nbformat
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import faithlab
import faithstudy
from faithstudy import paths as places

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
UNLOCKED = ("cluster",)  # installed where there is a cluster
NOTEBOOKS = places.notebooks()


def requirements() -> dict[str, Requirement]:
    """Direct dependencies of the package and of its extras that are locked, by name."""
    extras = [lines for extra, lines in PROJECT["optional-dependencies"].items() if extra not in UNLOCKED]
    lines = itertools.chain(PROJECT["dependencies"], *extras)
    return {canonicalize_name(r.name): r for r in map(Requirement, lines)}


def locked() -> dict[str, list[str]]:
    """Versions in the lock by name; there is more than one where a version depends on the platform."""
    found = {}
    for name, version in re.findall(r"^([\w.-]+)==([\w.+!]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE):
        found.setdefault(canonicalize_name(name), []).append(version)
    return found


def modules() -> list[str]:
    """Every public module of the package."""
    names = [m.name for p in (faithlab, faithstudy) for m in pkgutil.walk_packages(p.__path__, f"{p.__name__}.")]
    return [name for name in names if not name.split(".")[-1].startswith("_")]


@pytest.mark.parametrize("name", sorted(requirements()))
def test_a_direct_dependency_is_locked_within_its_bounds(name):
    versions = locked().get(name)
    assert versions, f"{name} is not in requirements.lock: make lock"
    assert all(version in requirements()[name].specifier for version in versions)


def test_every_dependency_states_its_reason():
    in_list = False
    for line in (ROOT / "pyproject.toml").read_text().splitlines():
        if re.match(r"(dependencies|explainers|study|book|cluster|peers|test)\s*=\s*\[", line):
            in_list = True
        elif line.startswith("]"):
            in_list = False
        elif in_list and line.strip().startswith('"'):
            assert re.search(r'",\s*#\s*\w+', line), f"why is this needed? {line.strip()}"


def test_every_cap_states_what_is_beyond_it():
    text = (ROOT / "pyproject.toml").read_text()
    for name, requirement in requirements().items():
        for bound in requirement.specifier:
            if bound.operator in {"<", "<=", "==", "~="}:
                reason = re.search(rf'"{re.escape(str(requirement.name))}[^"]*",\s*# (.*)', text)[1]
                assert re.search(rf"\b{re.escape(bound.version)}(\.x)?\b", reason), f"why not beyond {name}{bound}?"


def test_conda_brings_python_alone_and_the_lock_the_rest():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    assert all(isinstance(line, str) for line in environment["dependencies"]), "pip resolves anew, without the lock"
    python, *tools = environment["dependencies"]
    assert tools == ["pip", "make"]
    version = python.removeprefix("python=")
    assert f"{version}.99" in SpecifierSet(PROJECT["requires-python"])
    cpu = (ROOT / "requirements-cpu.lock").read_text()
    assert all(f"python_full_version == '{version}.*'" in line for line in cpu.splitlines() if "==" in line)


def test_there_is_one_opencv():
    assert [name for name in locked() if "opencv" in name] == ["opencv-python-headless"]


def test_the_container_has_what_the_two_commands_need():
    text = (ROOT / ".binder/Dockerfile").read_text().replace("\\\n", " ")
    lines = re.findall(r"^([A-Z]+) (.*)", text, re.MULTILINE)
    (base,) = [words for name, words in lines if name == "FROM"]
    assert re.match(r"python:3\.12(\.\d+)?-", base), "the Python of requirements-cpu.lock and of environment.yml"
    run = " ".join(words for name, words in lines if name == "RUN")
    assert all(tool in run for tool in ("chromium", "git", "make environment"))
    names = [name for name, _ in lines]
    user, made = names.index("USER"), [words.endswith("make environment") for _, words in lines].index(True)
    assert names.index("COPY") < user < made, "what the reader runs is the reader's own"
    settings = dict(words.split("=", 1) for name, words in lines if name == "ENV" and words.count("=") == 1)
    assert settings["VENV"].startswith("${HOME}/")
    assert not settings["VENV"].startswith("${HOME}/faithlab"), "a dev container lays the repository over it"
    assert settings["PATH"].startswith("${VENV}/bin:"), "Binder starts the jupyter and the python3 that come first"
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^environment: \$\(READY\)", makefile, re.MULTILINE)
    assert re.search(r"^VENV \?=", makefile, re.MULTILINE)
    dev = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    assert (ROOT / ".devcontainer" / dev["build"]["dockerfile"]).resolve() == ROOT / ".binder/Dockerfile"
    (user,) = [words.removeprefix("NB_USER=") for name, words in lines if name == "ARG" and "NB_USER" in words]
    assert dev["workspaceFolder"] == f"/home/{user}/faithlab"


@pytest.mark.parametrize("name", modules())
def test_a_module_imports_and_says_what_it_is(name):
    module = importlib.import_module(name)
    assert (module.__doc__ or "").strip(), f"{name} has no docstring"


def test_every_module_is_in_the_reference_pages():
    pages = "\n".join(page.read_text() for page in (ROOT / "book" / "api").glob("*.md"))
    documented = re.findall(r"automodule:: (\S+)", pages)
    empty = {"faithstudy.data", "faithstudy", "faithstudy.networks"}  # packages that only hold modules
    assert sorted(documented) == sorted(set(modules()) - empty)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_and_its_script_are_one_document(name):
    script = jupytext.read(ROOT / "notebooks" / f"{name}.py")
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    assert script.metadata["kernelspec"]["name"] == notebook.metadata["kernelspec"]["name"] == "python3"

    def content(document):
        return [(c.cell_type, c.source, c.metadata.get("tags", []), c.metadata.get("mystnb")) for c in document.cells]

    assert content(script) == content(notebook), "run: make sync"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_committed_notebook_has_no_outputs(name):
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    assert not any(cell.outputs or cell.execution_count for cell in code), "run: make sync"


def test_every_notebook_is_in_the_book_and_every_entry_exists():
    contents = (ROOT / "book" / "_toc.yml").read_text()
    files = re.findall(r"(?:file|root): (\S+)", contents)
    assert sorted(f for f in files if f.startswith("notebooks/")) == [f"notebooks/{name}" for name in NOTEBOOKS]
    missing = [f for f in files if not list(ROOT.glob(f"{f}.md")) and f.removeprefix("notebooks/") not in NOTEBOOKS]
    assert not missing


def test_profiles_name_only_notebooks_that_exist():
    entries = yaml.safe_load((ROOT / "notebooks" / "profiles.yml").read_text())
    assert set(entries) <= set(NOTEBOOKS)


def test_nothing_names_a_folder_of_somebody_s_machine():
    private = re.compile(r"/(work|farm|home|Users|root|opt)/\w+")
    names = [
        ".binder/Dockerfile",
        "Makefile",
        "Snakefile",
        "README.md",
        "_config.yml",
        "environment.yml",
        ".ci/run",
        "pyproject.toml",
    ]
    paths = [ROOT / name for name in names] + [
        path
        for folder in ("lib", "book", "notebooks", "tests", ".github")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".ipynb", ".md", ".yml", ".css", ".svg"} and "__pycache__" not in path.parts
    ]
    assert not [f"{path}: {found[0]}" for path in paths if (found := private.search(path.read_text()))]
