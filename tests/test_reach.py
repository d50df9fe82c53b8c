"""What an edit makes stale: the notebooks that it reaches, and no other."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from faithlab.study import places, profiles, reach

PAGES = places.pages()


def test_a_notebook_depends_on_what_it_imports_and_on_what_that_imports():
    files = reach.inputs("saco/relations")
    assert "lib/faithlab/metrics/saco.py" in files
    assert "lib/faithlab/engine.py" in files
    assert "lib/faithlab/explainers/__init__.py" in files, "a package runs before its modules"
    assert "requirements.lock" in files
    assert "lib/faithlab/study/execute.py" not in files
    assert "data/published/saco_metric_correlation.csv" in files
    assert "data/published/saco_groups.csv" not in files


def test_a_notebook_depends_on_shipped_networks_of_its_data_alone():
    assert [file for file in reach.inputs("f-fidelity/images") if file.startswith("data/networks/cifar10-")]
    assert not [file for file in reach.inputs("template") if "networks/cifar10-" in file]


def test_recorded_tables_are_those_of_the_page(tmp_path, monkeypatch):
    files = [file for name in PAGES for file in reach.inputs(name) if file.startswith("data/results")]
    for name in PAGES:
        others = [file for file in reach.inputs(name) if file.startswith("data/results/") and f"/{name}/" not in file]
        script = places.script(name).read_text(encoding="utf-8")
        assert all("/".join(Path(file).parts[3:-1]) in script for file in others)
    assert files or not (places.root() / "data/results").is_dir()


def test_a_readers_metrics_are_an_input(monkeypatch):
    monkeypatch.setenv(reach.FILES, "/somewhere/mine.py")
    assert "/somewhere/mine.py" in reach.inputs("template")


@pytest.fixture
def built(clone) -> Path:
    """A clone in which everything is up to date, as far as times tell."""
    build = clone / "build"
    outputs = [build / "quick/html/index.html"]
    for name in PAGES:
        outputs += [build / f"quick/executed/{name}.ipynb", build / f"quick/results/{name}/provenance.json"]
        needs = profiles.needs(name)
        outputs += [build / "data" / data for data in needs.data]
        parts = needs.jobs.get("quick", 0)
        outputs += [build / f"quick/trained/{name}/{part}-of-{parts}" for part in range(parts)]
    old = 1_700_000_000
    for path in [path for path in clone.rglob("*") if path.is_file()]:
        os.utime(path, (old, old))
    for step, path in enumerate(sorted(outputs, key=lambda path: ("html" in path.parts, "executed" in str(path)))):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (old + 10 + step,) * 2)
    for name in PAGES:  # both outputs of a notebook are of one time, after the networks
        for path in (build / f"quick/executed/{name}.ipynb", build / f"quick/results/{name}/provenance.json"):
            os.utime(path, (old + 5000,) * 2)
    os.utime(outputs[0], (old + 9000,) * 2)
    return clone


def stale(clone: Path) -> set[str]:
    """The notebooks that Snakemake wants to run."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("FAITHLAB_", "MAKE"))}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    known = {"PATH": path, "PYTHONPATH": str(clone / "lib"), "FAITHLAB_ROOT": str(clone)}
    ran = subprocess.run(
        ["snakemake", "-n", "--cores", "2", "--config", "profile=quick"],
        cwd=clone,
        env=environment | known,
        capture_output=True,
        text=True,
    )
    said = ran.stdout + ran.stderr
    assert ran.returncode == 0, said[-3000:]
    return set(re.findall(r"notebook (\S+) \(quick", said))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_edit_makes_stale_what_it_reaches(built):
    assert stale(built) == set()

    def edited(name: str, old: str, new: str) -> set[str]:
        path = built / name
        before, times = path.read_text(encoding="utf-8"), os.stat(path)
        assert old in before
        path.write_text(before.replace(old, new, 1), encoding="utf-8")
        found = stale(built)
        path.write_text(before, encoding="utf-8")
        os.utime(path, (times.st_atime, times.st_mtime))
        return found

    # A claim's sentence: its own page.
    assert edited("notebooks/f-fidelity/images.py", "Under LeRF every metric", "Under LeRF each metric") == {
        "f-fidelity/images"
    }
    # A metric: every page that imports the registry, which is not every page.
    metric = edited("lib/faithlab/metrics/saco.py", "SaCo", "SaCo!")
    assert {"saco/relations", "f-fidelity/images", "template"} <= metric
    assert metric == {name for name in PAGES if "lib/faithlab/metrics/saco.py" in reach.inputs(name)}
    # A trial's docstring: the pages that put metrics to it.
    trial = edited(
        "lib/faithlab/trials/degraded.py", '"""Explanations made worse', '"""Explanations that are made worse'
    )
    assert "f-fidelity/images" in trial
    assert not {name for name in trial if name.startswith("reco-mege/")}
    # A recorded table: its own page.
    recorded = sorted((built / "data/results").rglob("claims.csv"))
    for path in recorded[:1]:
        page = "/".join(path.relative_to(built / "data/results").parts[1:-1])
        assert edited(path.relative_to(built).as_posix(), ",", ";") == {page}
    # How a run is started: none.
    assert edited("lib/faithlab/study/execute.py", "def ", "def  ") == set()
