"""What an edit makes stale: the notebooks that it reaches, and no other."""

import os
import re
from pathlib import Path

import pytest

from faithlab.metrics import METRICS
from faithlab.scores import Scores
from faithstudy import dependencies, provenance, records
from faithstudy import paths as places

PAGES = places.pages()


def test_a_notebook_depends_on_what_it_imports_and_on_what_that_imports():
    files = dependencies.inputs("saco/relations")
    assert "lib/faithlab/metrics/saco.py" in files
    assert "lib/faithlab/engine.py" in files
    assert "lib/faithlab/explainers/__init__.py" in files, "a package runs before its modules"
    assert re.search(r"^torch \d", dependencies.notebook("saco/relations", {}), re.MULTILINE)
    assert "lib/faithstudy/execute.py" not in files
    assert "data/published/saco_metric_correlation.csv" in files
    assert "data/published/saco_groups.csv" not in files


def test_a_notebook_depends_on_the_modules_of_its_metrics():
    asked = 0
    for name in set(PAGES) - {"across/rivals"}:  # which reads the scores of the examination
        folder = places.root() / "data/results/study" / name
        tables = [records.recorded(name, table.stem).frame for table in records.tables_in(folder)]
        columns = [of.labels("metric") if isinstance(of, Scores) else of.get("metric", ()) for of in tables]
        used = [METRICS[of].compute for of in set().union(*columns) if of in METRICS]
        wanted = {getattr(compute, "func", compute).__module__ for compute in used}
        assert wanted <= dependencies.modules(places.script(name)), name
        asked += len(wanted)
    assert asked > 30 or not (places.root() / "data/results").is_dir()


def test_modules_import_the_families_of_the_metrics_that_they_name():
    named = {}
    for module in dependencies.graph().modules:
        if module.startswith("faithstudy.") and not module.endswith("slices"):
            text = (places.root() / dependencies.files([module])[0]).read_text(encoding="utf-8")
            named[module] = re.findall(r'METRICS\["([^"]+)"\]', text)
    assert named["faithstudy.trials.sizes"]
    for module, metrics in named.items():
        families = {getattr(METRICS[of].compute, "func", METRICS[of].compute).__module__ for of in metrics}
        assert families <= dependencies.reached([module]), module


def test_a_notebook_takes_the_metrics_that_its_parameters_name(tmp_path):
    (tmp_path / "page.py").write_text("from faithlab.metrics import METRICS\nMETRICS[name]\n")
    assert "faithlab.metrics.saco" not in dependencies.modules(tmp_path / "page.py")
    assert "faithlab.metrics.saco" in dependencies.modules(tmp_path / "page.py", {"name": "SaCo"})
    (tmp_path / "page.py").write_text("from faithlab.metrics import METRICS\nlist(METRICS)\n")
    assert {*dependencies.registering()} <= dependencies.modules(tmp_path / "page.py")


def test_a_notebook_depends_on_shipped_networks_of_its_data_alone():
    assert [file for file in dependencies.inputs("f-fidelity/images") if file.startswith("data/networks/cifar10-")]
    assert not [file for file in dependencies.inputs("template") if "networks/cifar10-" in file]


def test_recorded_tables_are_those_of_the_page():
    files = {name: [file for file in dependencies.inputs(name) if file.startswith("data/results/")] for name in PAGES}
    for name, recorded in files.items():
        others = [file for file in recorded if f"/{name}/" not in file]
        script = places.script(name).read_text(encoding="utf-8")
        asked = ["/".join(Path(file).parts[3:-1]) in script for file in others]
        assert "all_provenance(" in script or all(asked)
    assert any(files.values()) or not (places.root() / "data/results").is_dir()


def test_a_readers_metrics_are_an_input(monkeypatch):
    monkeypatch.setenv("FAITHLAB_METRICS", "/somewhere/mine.py")
    assert "/somewhere/mine.py" in dependencies.inputs("template")


def test_what_a_readers_metrics_import_of_the_library_is_an_input(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("import other\n")
    (tmp_path / "other.py").write_text("from faithstudy.trials import plateaus\n")
    assert "lib/faithstudy/trials/plateaus.py" not in dependencies.inputs("saco/settings")
    monkeypatch.setenv("FAITHLAB_METRICS", f"{tmp_path}/mine.py")
    assert "lib/faithstudy/trials/plateaus.py" in dependencies.inputs("saco/settings")


@pytest.mark.parametrize(
    "line", ["from faithlab import trials\ntrials.examine", "from faithstudy.trials import examine"]
)
def test_what_is_imported_when_it_is_asked_for_is_reached(line, tmp_path):
    (tmp_path / "page.py").write_text(f"{line}\n")
    assert "faithstudy.trials.examination" in dependencies.modules(tmp_path / "page.py")


def test_files_that_parameters_name_are_inputs(tmp_path):
    metric, folder = tmp_path / "mine.py", tmp_path / "photographs"
    (folder / "cats").mkdir(parents=True)
    given = {"metric": f"{metric}:score", "data_options": {"path": str(folder)}, "networks": [["a", "x" * 5000]]}
    found = []
    for path, text in [(metric, "1"), (metric, "2"), (folder / "cats/1.png", "1"), (folder / "cats/1.png", "23")]:
        path.write_text(text)
        found.append((dependencies.notebook("template", given), dependencies.networks("template", given)))
    for texts in zip(*found, strict=True):
        assert len(set(texts)) == 4, "the file is edited, the folder gets one, and another content"
    assert (dependencies.notebook("template", given), dependencies.networks("template", given)) == found[-1]
    (folder / "cats/gone.png").symlink_to(tmp_path / "nowhere")
    assert dependencies.notebook("template", given) == found[-1][0]


@pytest.fixture
def own(tmp_path) -> Path:
    """A reader's own metric, which imports a module and a package beside it; there is another module."""
    files = {
        "mine.py": "import numpy\nfrom helper import weigh\n\ndef score():\n    from parts import first\n",
        "helper.py": "import parts.second as second\n\ndef weigh():\n    return 1\n",
        "parts/__init__.py": "",
        "parts/first.py": "from . import third\nfrom .fourth import four\n",
        "parts/second.py": "import helper, mine\n",
        "parts/third.py": "",
        "parts/fourth.py": "four = 4\n",
        "parts/other.py": "",
        "other.py": "import helper\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_what_a_readers_own_file_imports_is_an_input(own, monkeypatch):
    given = {"metric": f"{own}/mine.py:score"}

    def asked():
        with monkeypatch.context() as patch:
            patch.setenv("FAITHLAB_METRICS", f"{own}/mine.py")
            registered = provenance.library(), dependencies.notebook("template", {})
        return provenance.identity("a", given, "", "")["run"], dependencies.notebook("template", given), *registered

    for file in sorted(own.rglob("*.py")):
        before = asked()
        file.write_text(file.read_text() + "# edited\n")
        alike = [old == new for old, new in zip(before, asked(), strict=True)]
        assert alike == [file.name == "other.py"] * 4, file


def test_a_readers_own_file_may_be_any_text(own, monkeypatch):
    (own / "parts/second.py").write_text("no Python")
    names = ["helper.py", "__init__.py", "first.py", "fourth.py", "third.py"]
    assert [path.name for path in provenance.neighbours(own / "mine.py")] == names
    (own / "helper.py").write_bytes(b"\0\xff")
    assert provenance.named({"metric": f"{own}/helper.py", "data": f"{own}/nowhere.py"})
    monkeypatch.chdir(own)
    assert [line.split()[1] for line in provenance.named({"metric": "mine.py:score"})] == [
        "mine.py",
        "parts/__init__.py",
        "parts/first.py",
        "parts/fourth.py",
        "parts/third.py",
    ]


def test_docstrings_comments_and_layout_of_modules_do_not_count(tmp_path, monkeypatch):
    monkeypatch.setenv("FAITHLAB_ROOT", str(tmp_path))
    files = {
        "notebooks/profiles.yml": "",
        "lib/a.py": 'def f(x: int):\n    """Doc."""\n    return x  # why\nA = 1\n"""Of A."""',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    before = dependencies.listed(["lib/a.py"]), dependencies.listed(["lib/a.py"], docstrings=True)
    (tmp_path / "lib/a.py").write_text('def f(\n    x: int,\n):\n    """Docs."""\n    return x\nA = 1\n')
    after = dependencies.listed(["lib/a.py"]), dependencies.listed(["lib/a.py"], docstrings=True)
    assert (before[0] == after[0], before[1] == after[1]) == (True, False)
    (tmp_path / "lib/a.py").write_text("def f(x: int):\n    return x\nA = 2\n")
    assert dependencies.listed(["lib/a.py"]) != after[0]


def test_an_edit_reaches_the_pages_that_use_it_and_no_other(clone, monkeypatch):
    monkeypatch.setenv("FAITHLAB_ROOT", str(clone))
    before = {name: dependencies.notebook(name, {}) for name in PAGES}

    def reached(*edits: tuple[str, str, str]) -> set[str]:
        paths = [clone / name for name, _, _ in edits]
        texts, times = [path.read_text(encoding="utf-8") for path in paths], [os.stat(path) for path in paths]
        for path, text, (_, old, new) in zip(paths, texts, edits, strict=True):
            assert old in text
            path.write_text(text.replace(old, new, 1), encoding="utf-8")
        found = {name for name in PAGES if dependencies.notebook(name, {}) != before[name]}
        for path, text, time in zip(paths, texts, times, strict=True):
            path.write_text(text, encoding="utf-8")
            assert os.stat(path).st_mtime_ns != time.st_mtime_ns
        return found

    # A claim's sentence: its own page.
    assert reached(("notebooks/f-fidelity/images.py", "Under LeRF every", "Under LeRF each")) == {"f-fidelity/images"}
    # A metric: the pages that name it, or all metrics.
    metric = reached(("lib/faithlab/metrics/saco.py", "return ", "return 0 or "))
    assert {"saco/relations", "cost/saco", "across/examination"} <= metric
    assert not {name for name in metric if name.startswith(("f-fidelity/", "trace/", "reco-mege/"))}
    assert metric == {name for name in PAGES if "lib/faithlab/metrics/saco.py" in dependencies.inputs(name)}
    # A trial: the pages that put metrics to it. Its docstring, and how a run is started: none.
    trial = reached(("lib/faithstudy/trials/degraded.py", "return ", "return 0 or "))
    assert "f-fidelity/images" in trial
    assert not {name for name in trial if name.startswith("reco-mege/")}
    assert not reached(
        ("lib/faithstudy/trials/degraded.py", '"""Explanations made worse', '"""Explanations, worse'),
        ("lib/faithstudy/execute.py", "return ", "return 0 or "),
    )  # and what was edited before, and taken back, is as it was


def test_the_style_of_figures_is_an_input_of_pages_that_draw():
    style = "lib/faithstudy/faithstudy.mplstyle"
    assert style in dependencies.inputs("template")
    assert style in dependencies.listed([style])
