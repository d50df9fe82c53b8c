"""Every notebook runs in the smoke profile and leaves tables and a provenance that say what was run."""

import ast
import json
import re
from datetime import datetime
from pathlib import Path

import nbformat
import pandas as pd
import papermill
import pytest
import scipy.stats
from PIL import Image

from faithlab.scores import Scores
from faithstudy import dependencies, execute, paths, profiles, records, run
from faithstudy.claims.parts import PAIRED
from faithstudy.data import datasets, imagenet

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.usefixtures("kernel_starts_warm")]

REQUIRED = {
    "notebook": str,
    "profile": str,
    "parameters": dict,
    "tables": dict,
    "date": str,
    "seconds": float,
    "commit": (str, type(None)),
    "dirty": (bool, type(None)),
    "run": str,
    "notebook_sha256": str,
    "code_sha256": str,
    "pipeline": bool,
    "networks": list,
    "python": str,
    "versions": dict,
    "cpu": str,
    "cores": int,
    "threads": int,
    "gpu": (str, type(None)),
    "peak_memory_mb": int,
    "system": str,
}


SIMULATED, GATE = 14, 5
"""An error rate of 5 % gives so many or more of 14 simulated studies in one of 2300 cases, one of 50 % in nine of ten.
Those of the records, of 300 studies each, are looked at more closely below."""
JUDGES_RECORDS = "across/rivals"
"""Its claims are about the tables of recorded runs in every profile, so that its record has their error rates."""


OF_FOLDER = {
    "f-fidelity/explainers": (
        (14, 16),
        {"more_photographs": 2, "photographs_judged": 1},
        {"imagenet-folder test": 2},
    ),
    "trace/networks": (
        (14, 16),
        {"photographs_judged": 1, "deletion_photographs": 1},
        {"imagenet-folder test": 1},
    ),
    "few-class-fidelity/photographs": (
        (7,),
        {},
        {"imagenet-folder, vehicles": 1, "imagenet-folder, superclasses": 1},
    ),
}
"""Pages that run with a folder of photographs: which of the shipped ones lie there, what differs from smoke, and how
many are judged of each of its data sets. Without a folder `quick` runs them."""


def photographs(folder, chosen):
    """A folder with some of the photographs that every installation has."""
    shipped = datasets.load("imagenet-foolbox", "test")
    folder.mkdir()
    for i in chosen:
        name = f"{imagenet.wordnet_ids()[int(shipped.labels[i])]}_{i}.png"
        Image.fromarray(shipped.inputs[i].permute(1, 2, 0).numpy()).save(folder / name)
    return str(folder)


NOTES = """
import os, sys

def _note(event, arguments, log=os.open({log!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)):
    if event == "open" and isinstance(arguments[0], str):
        os.write(log, os.path.abspath(arguments[0]).encode() + b"\\n")

sys.addaudithook(_note)
"""
"""What IPython runs before a page: it notes each file that Python opens."""
ALWAYS = ("notebooks/profiles.yml", "book/_toc.yml", "data/published/SHA256SUMS")
"""Files of the repository that pages open, and whose other lines are no inputs."""


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """Gives the files of the repository that the pages of a test have opened; of the library, what they imported."""
    startup, log = tmp_path / "ipython/profile_default/startup", tmp_path / "opened"
    startup.mkdir(parents=True)
    (startup / "notes.py").write_text(NOTES.format(log=str(log)))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))

    def ask() -> set[str]:
        files = {Path(line) for line in log.read_text().splitlines()}
        inside = {
            file.relative_to(paths.root()) for file in files if file.is_relative_to(paths.root()) and file.is_file()
        }
        inside = {file for file in inside if not file.parts[0].startswith(".")}  # an environment may lie there
        compiled = [file for file in inside if file.parent.name == "__pycache__"]
        imported = {f"{file.parents[1].as_posix()}/{file.name.partition('.')[0]}.py" for file in compiled}
        # A run hashes all sources of the library at its end.
        return imported | {file.as_posix() for file in inside if file.parts[0] != "lib"}

    return ask


def figure_of(cell):
    """What a page says about the figure that a cell shows."""
    return cell.metadata.get("mystnb", {}).get("figure")


def ends_in_an_expression(cell):
    """Whether a cell would show something; it may be nothing where a run has no example."""
    return isinstance(ast.parse(cell.source).body[-1], ast.Expr)


@pytest.mark.parametrize("name", paths.notebooks())
def test_a_notebook_runs(name, tmp_path, monkeypatch, opened):
    monkeypatch.setenv("FAITHLAB_BUILD", str(tmp_path / "build"))
    if name != JUDGES_RECORDS:
        monkeypatch.setenv(run.RATES, str(SIMULATED))
    chosen, fewer, asked = OF_FOLDER.get(name, ((), {}, {}))
    overrides = fewer | ({"folder": photographs(tmp_path / "photographs", chosen)} if chosen else {})
    parameters = profiles.resolve(name, "smoke", overrides)
    label = profiles.label(name, "smoke", parameters)
    executed = nbformat.read(execute.execute(name, "smoke", overrides=overrides), as_version=4)
    declared = {f"notebooks/{name}.py", *ALWAYS, *dependencies.inputs(name)}
    # All families of metrics are loaded, and those that a page names are its inputs.
    loaded = dependencies.files(dependencies.reached(dependencies.graph().find_children("faithlab.metrics")))
    undeclared = opened() - declared - {*loaded}
    undeclared = {file for file in undeclared if not file.endswith(".safetensors")}  # a .json has its hash
    assert undeclared == set(), "an edit of these would not make the page stale"

    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code if cell.source.strip())
    shown = [cell for cell in code if {"answer", "headline"} & {*cell.metadata.get("tags", [])} or figure_of(cell)]
    assert all(cell.outputs or ends_in_an_expression(cell) for cell in shown), "nothing that is in an `if` is shown"
    (injected,) = [cell for cell in code if "injected-parameters" in cell.metadata.get("tags", [])]
    assert 'profile = "smoke"' in injected.source
    assert "papermill" not in executed.metadata

    folder = paths.results(name, label)
    provenance = json.loads((folder / "provenance.json").read_text())
    for key, kind in REQUIRED.items():
        assert isinstance(provenance[key], kind), key
    assert provenance["pipeline"]
    assert run.page_faults(name, label) == []
    assert provenance["parameters"] | {"profile": "smoke"} == json.loads(json.dumps(parameters))
    assert all(provenance["versions"].values())
    assert datetime.fromisoformat(provenance["date"]).tzinfo

    tables = {path.stem: pd.read_csv(path) for path in folder.glob("*.csv")}
    scores = {path.stem: Scores.load(path) for path in folder.glob("*.parquet")}
    assert set(tables) | set(scores) == set(provenance["tables"]) != set()
    for table, rows in {**tables, **scores}.items():
        assert len(rows) == provenance["tables"][table]["rows"] > 0
    for table, frame in tables.items():
        # What is not printed, and what needs no more images, stands in no part; a size that is refused says why.
        if "refusal" in frame:
            frame = frame[frame["refusal"].isna()].drop(columns="refusal")
        empty = frame.columns[frame.isna().all()] if len(frame) else []
        assert table in ("claims", "parts", "error_rates") or not len(empty), (
            f"nothing but NaN in {', '.join(empty)} of {table}"
        )
    if "error_rates" in tables:  # under chance, on the claim's own table, as small as it is here
        rates = tables["error_rates"].set_index("claim")
        assert list(rates.index) == list(tables["claims"]["id"])
        # In fewer than six images cells change places in too few ways: of four, all favour the same one in sixteen.
        # Images that are drawn anew of six spread too little: the gate would fail in 0.5 % of such claims, of
        # 12 images in 0.1 %.
        parts = tables["parts"][~tables["parts"]["premise"]]
        several = (
            parts.get("datasets", pd.Series("", parts.index)).astype(str).str.contains(",")
        )  # none of counted facts
        redrawn = set(parts["claim"][~parts["kind"].isin(PAIRED) | several])
        least = rates.index.map(lambda claim: 12 if claim in redrawn else 6)
        often = rates["reproduced"][(rates["reproduced"] >= GATE) & (rates["images"] >= least)]
        assert often.empty, f"chance alone is called reproduced in so many of {SIMULATED}: {often.to_dict()}"
    for table, frame in scores.items():
        assert any(block.hits or bool(block.values.isfinite().any()) for block in frame), f"no score in {table}"
    if asked:
        photographs_of_a_folder_are_data_of_their_own_and_what_is_judged(scores["scores"], tables["parts"], asked)


def photographs_of_a_folder_are_data_of_their_own_and_what_is_judged(scores, parts, asked):
    beside = scores.where(dataset="imagenet-foolbox test").labels("explainer")
    for dataset, images in asked.items():
        own = scores.where(dataset=dataset)
        assert set(own.labels("explainer")) >= set(beside)
        assert {len(block.images) for block in own if block.labels["explainer"] != "TRACE-p"} == {images}
    judged = {dataset for listed in parts["datasets"] for dataset in scores.labels("dataset") if dataset in listed}
    assert set(asked) <= judged
    assert "imagenet-foolbox test" not in judged


@pytest.mark.parametrize("name", paths.notebooks())
def test_chance_rarely_reproduces_a_recorded_claim(name):
    kept = records.recorded(name, "error_rates")
    assert kept or name != JUDGES_RECORDS
    if name == JUDGES_RECORDS:
        judged = records.recorded("across/examination", "trust")
        assert kept.provenance["date"] > judged.provenance["date"], "it is about an older examination: record it, too"
    if kept:
        # A correlation of two orders is moved to its bar by adding to it, which such a number cannot do: the spread of
        # one of 0.36 is not that of one of 0.6. Its verdict is not "reproduced", and the page on evidence names it.
        verdicts = records.recorded(name, "claims").frame.set_index("id")["verdict"]
        odd = verdicts.get("fc-convergence") != "reproduced"
        known = kept.frame[kept.frame["claim"] != "fc-convergence"] if odd else kept.frame
        gate = scipy.stats.binom.isf(1 / 1500, known["runs"].astype(int), 0.05)
        often = known[known["reproduced"] > gate]
        assert often.empty, f"chance alone is called reproduced too often: {often.to_dict('records')}"


def test_the_committed_pair_runs_from_anywhere_with_papermill_alone(tmp_path, monkeypatch, kernel_starts_warm):
    monkeypatch.setenv("FAITHLAB_BUILD", str(tmp_path / "build"))
    monkeypatch.chdir(tmp_path)
    notebook = paths.root() / "notebooks" / "template.ipynb"
    small = {"explainers": ["random"], "train": 500, "images": 8}
    papermill.execute_notebook(notebook, "out.ipynb", parameters=small, progress_bar=False)
    # Not the profile's parameters and not the pipeline, so not in the profile's folder.
    (folder,) = (tmp_path / "build").glob("study*")
    assert re.fullmatch(r"study\+explainers=_random_\+train=500\+images=8-[0-9a-f]{8}\+by-hand", folder.name)
    assert str(folder) in Path("out.ipynb").read_text()
    assert len(Scores.load(folder / "results/template/scores.parquet")) == 8
