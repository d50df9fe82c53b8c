"""Profiles, runs and their results: what is shown of a profile is that profile, and files are whole or not there."""

import hashlib
import json
import re
import runpy
import shutil
import subprocess
import time

import jupytext
import nbformat
import pandas as pd
import pytest
import torch

import faithlab
from faithlab import stats
from faithlab.scores import Scores
from faithstudy import claims, execute, paths, profiles, provenance, records
from faithstudy import run as results
from faithstudy.diagnostics import Reason

SCRIPT = """
# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% tags=["parameters"]
profile = "study"
images: int = 64
levels = (0.1, 0.2)
data = "digits"
"""


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with one notebook, `part/one`."""
    (tmp_path / "notebooks/part").mkdir(parents=True)
    (tmp_path / "notebooks/part/one.py").write_text(SCRIPT.lstrip())
    (tmp_path / "notebooks/profiles.yml").write_text("part/one: {data: [digits], smoke: {images: 8}, paper: {}}\n")
    monkeypatch.setenv("FAITHLAB_ROOT", str(tmp_path))
    monkeypatch.delenv("FAITHLAB_BUILD", raising=False)
    return tmp_path


FRAME = pd.DataFrame({"metric": ["a", "b"], "value": [0.1, 1 / 3]})


DEFAULTS = {"profile": "study", "images": 64, "levels": (0.1, 0.2), "data": "digits"}


def code_of() -> str:
    """The hash of the page's code, as the pipeline has it."""
    return provenance.digest(provenance.cells(jupytext.read(paths.script("part/one"))))


def by_hand(**changes) -> results.Run:
    """A run that the pipeline knows nothing of; nor does anybody know what code ran."""
    return results.Run("part/one", DEFAULTS | {"levels": [0.1, 0.2], "other": 1} | changes)


def started(**changes) -> results.Run:
    """A run as the pipeline starts it."""
    known = provenance.identity("part/one", changes, code_of(), provenance.library())
    with provenance.announced("part/one", known):
        return by_hand(**changes)


def finished(table="scores", frame=None, **changes) -> results.Run:
    """A finished run of the pipeline, with the page that `study.execute` writes."""
    run = started(**changes)
    run.save(FRAME if frame is None else frame, table)
    run.finish()
    page = jupytext.read(paths.script("part/one"))
    page.metadata["faithlab"] = provenance.page_identity(json.loads((run.folder / "provenance.json").read_text()))
    paths.write(paths.executed("part/one", run.profile), nbformat.writes(page))
    return run


def test_a_profile_is_the_defaults_with_its_changes(repository):
    assert profiles.defaults("part/one") == DEFAULTS
    assert profiles.resolve("part/one", "smoke")["images"] == 8
    assert profiles.resolve("part/one", "smoke", {"images": 9})["images"] == 9
    assert profiles.needs("part/one") == profiles.Needs(data=("digits",))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"image": 3}, "Did you mean 'images'.*Known: images, levels, data"),
        ({"profile": "paper"}, "no parameter 'profile'"),
    ],
)
def test_a_parameter_that_a_notebook_does_not_have_is_an_error(repository, overrides, message):
    with pytest.raises(ValueError, match=message):
        profiles.resolve("part/one", "study", overrides)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("images: int = 64", "images = 8 * 8", "of lines such as  images = 64 .*: malformed node"),
        ('profile = "study"', "", "and  profile = .*: 'profile'"),
        ('tags=["parameters"]', "", "needs one cell tagged .*: not enough values"),
    ],
)
def test_a_parameters_cell_that_cannot_be_read_is_an_error(repository, old, new, message):
    script = repository / "notebooks/part/one.py"
    script.write_text(script.read_text().replace(old, new))
    with pytest.raises(ValueError, match=message):
        profiles.defaults("part/one")


@pytest.mark.parametrize("name", paths.notebooks())
def test_the_parameters_of_every_page_are_what_jupytext_reads(name):
    (cell,) = (of for of in jupytext.read(paths.script(name)).cells if "parameters" in of.metadata.get("tags", []))
    names = {}
    exec(cell.source, names)
    found = profiles.defaults(name)
    assert found == {key: names[key] for key in names if key not in ("__builtins__", "__annotations__")}


def test_a_misspelt_key_or_profile_or_notebook_is_an_error(repository):
    (repository / "notebooks/profiles.yml").write_text("part/one: {quik: {images: 8}}\n")
    with pytest.raises(ValueError, match="'quik' was unexpected"):
        profiles.resolve("part/one")
    (repository / "notebooks/profiles.yml").write_text("")
    with pytest.raises(ValueError, match="Known: smoke, quick, study, paper"):
        profiles.resolve("part/one", "large")
    with pytest.raises(FileNotFoundError, match="There are: part/one"):
        profiles.defaults("part/two")


def test_a_changed_parameter_gets_a_folder_of_its_own(repository):
    def folder(run):
        run.save(FRAME, "scores")
        run.finish()
        return run.folder.relative_to(repository / "build").as_posix()

    assert folder(started()) == "study/results/part/one"
    assert folder(started(images=32)) == "study+images=32/results/part/one"
    long = folder(started(levels=list(range(100)))).split("/")[0]
    assert len(long) <= 80
    assert long.startswith("study+levels=_0.0_1.0_")
    with pytest.raises(KeyError):
        results.Run("part/one", {"profile": "study", "images": 64})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"data": "/tmp/a.py:f"}, {"data": "/tmp/a.py_f"}),
        ({"data": "_tmp_a"}, {"data": "/tmp/a"}),
        ({"levels": [0.1, 0.3]}, {"levels": [0.1, -0.3]}),
        ({"levels": [1.0] * 40 + [-1.0]}, {"levels": [1.0] * 40 + [2.0]}),
        ({"data": "a/" + "b" * 90}, {"data": "a:" + "b" * 90}),
        ({"images": 3, "data": "x"}, {"images": 3, "data": "x+by-hand"}),
        ({"data": "a+more=b"}, {"data": "a", "more": "b"}),
        ({"data": "3"}, {"data": 3}),
        ({"data": "None"}, {"data": None}),
        ({"data": ""}, {"data": "_"}),
    ],
)
def test_runs_with_other_parameters_have_other_folders(repository, monkeypatch, one, other):
    def label(changed):
        monkeypatch.setattr(profiles, "resolve", lambda *_: {})  # also of parameters that may be more than texts
        return profiles.label("part/one", "study", changed, changed)

    labels = [label(one), label(other)]
    assert labels[0] != labels[1]
    assert f"{labels[0]}+by-hand" != labels[1]
    assert all(re.fullmatch(r"study\+[\w.+=-]{1,74}", name) for name in labels)


def test_the_folder_of_plain_values_is_named_after_them_alone(repository):
    def label(**changed):
        return profiles.label("part/one", "study", DEFAULTS | changed)

    assert label() == "study"
    assert label(images=4, data="cifar10-cats_2.v1") == "study+images=4+data=cifar10-cats_2.v1"
    assert label(levels=[0.1, 0.3]) == label(levels=(0.1, 0.3)), "the same to a notebook"
    assert re.fullmatch(r"study\+levels=_0.1_0.3_-[0-9a-f]{8}", label(levels=[0.1, 0.3]))


def test_only_the_pipeline_writes_the_folder_of_a_profile(repository, capsys):
    kept = finished()
    before = {path.name: path.read_bytes() for path in kept.folder.iterdir()}
    run = by_hand()
    run.save(FRAME.assign(value=[5, 6]), "scores")
    stamp = run.finish()
    assert run.folder == repository / "build/study+by-hand/results/part/one"
    assert str(run.folder) in capsys.readouterr().out
    assert "run by hand" in repr(stamp)
    assert f"`{run.folder / 'scores.csv'}`" in stamp._repr_markdown_()
    assert "result:" not in stamp._repr_markdown_()
    assert {path.name: path.read_bytes() for path in kept.folder.iterdir()} == before


def test_the_pipeline_says_once_that_it_runs_a_notebook(repository):
    known = provenance.identity("part/one", {}, code_of(), provenance.library())
    with provenance.announced("part/one", known):
        run, nested = by_hand(), by_hand()  # the second as in a process that the notebook starts
    for each in (nested, run):
        each.save(FRAME, "scores")
        each.finish()
    assert run.folder == repository / "build/study/results/part/one"
    assert nested.folder == repository / "build/study+by-hand/results/part/one"


def test_a_copy_that_kept_the_name_of_its_origin_is_an_error(repository):
    with (
        provenance.announced("part/mine", {"run": "1"}),
        pytest.raises(ValueError, match=r'notebooks/part/mine.py says Run\("part/one", .* Run\("part/mine"'),
    ):
        by_hand()


def test_a_run_that_fails_leaves_the_tables_of_the_last_one(repository):
    finished()
    again = started()
    again.save(FRAME.assign(value=[5, 6]), "scores")
    assert results.page_faults("part/one", "study") == []
    pd.testing.assert_frame_equal(pd.read_csv(again.folder / "scores.csv").assign(value=FRAME["value"]), FRAME)
    third = started()
    third.save(FRAME, "new")
    third.finish()
    assert sorted(path.name for path in third.folder.iterdir()) == ["new.csv", "provenance.json"]


def test_a_killed_run_finds_its_steps_made_and_another_does_not(repository, tmp_path):
    asked = []

    def step(run, answer):
        return run.kept("a step", lambda: asked.append(answer) or {"of": answer})

    run = started()
    assert step(run, 1) == {"of": 1}
    assert step(started(), 2) == {"of": 1}, "the same run again"
    (kept,) = run.folder.glob("*.step")
    content = kept.read_bytes()
    for broken in (
        content[:5],
        b"",
        content[:-2] + bytes([content[-2] ^ 1]) + content[-1:],
    ):  # a full disk, a flipped bit
        kept.write_bytes(broken)
        assert step(started(), 3) == {"of": 3}
    assert step(started(data="others"), 4) == {"of": 4}, "other parameters"
    stale = kept.with_name("0-0.step")
    stale.write_bytes(b"of another run")
    again = started()
    assert not stale.exists()
    assert step(again, 5) == {"of": 3}
    again.save(FRAME, "scores")
    again.finish()
    assert not list(again.folder.glob("*.step"))
    assert not list(run.folder.glob("*.step"))
    assert step(by_hand(), 6) == {"of": 6}
    assert asked == [1, 3, 3, 3, 4, 6]


def test_a_name_is_that_of_one_step_and_of_one_table(repository):
    run = started()
    assert run.kept("a step", lambda: 1) == 1
    with pytest.raises(ValueError, match="two steps are called 'a step'"):
        run.kept("a step", lambda: 2)
    run.save(FRAME, "scores")
    with pytest.raises(ValueError, match="two tables are called 'scores'"):
        run.save(FRAME, "scores")
    run = by_hand()  # where a cell may run again
    assert [run.kept("a step", lambda x=x: x) for x in (1, 2)] == [1, 2]


def test_a_run_says_where_the_steps_that_it_finds_were_made_and_counts_their_time(repository, monkeypatch):
    here = provenance.machine()
    monkeypatch.setattr(provenance, "machine", lambda: here | {"gpu": "a GPU"})
    started().kept("a step", lambda: time.sleep(1))
    monkeypatch.setattr(provenance, "machine", lambda: here)
    again = started()
    again.kept("a step", lambda: None)
    again.kept("another", lambda: None)
    again.save(FRAME, "scores")
    assert f"on {here['cpu']}, a GPU" in repr(again.finish())
    record = json.loads((again.folder / "provenance.json").read_text())
    assert record["steps_made_on"] == ["a GPU"]
    assert record["seconds"] >= 1
    last = started()
    last.save(FRAME, "scores")
    last.finish()
    record = json.loads((last.folder / "provenance.json").read_text())
    assert record["steps_made_on"] == []


def test_the_id_of_a_run_counts_the_content_of_a_readers_files(tmp_path):
    metric, data, folder = tmp_path / "mine.py", tmp_path / "x.npz", tmp_path / "photographs"
    folder.mkdir()
    parameters = {"metric": f"{metric}:score", "options": {"of": [str(data)]}, "path": str(folder), "n": 3}

    def run():
        return provenance.identity("a", parameters, "", "")["run"]

    found = [run()]
    for path, text in [(metric, "1"), (data, "1"), (metric, "2"), (folder / "1.png", "1"), (data, "2")]:
        path.write_text(text)
        found.append(run())
    assert len(set(found)) == 6
    assert run() == found[-1]


def test_the_readers_files_of_a_run_are_part_of_its_provenance(repository, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("import helper\n")
    (tmp_path / "helper.py").write_text("")
    (tmp_path / "metrics.py").write_text("")
    monkeypatch.setenv("FAITHLAB_METRICS", str(tmp_path / "metrics.py"))
    run = started(data=f"{tmp_path}/mine.py:score")
    (tmp_path / "helper.py").write_text("changed = 'while it ran'\n")
    run.save(FRAME, "scores")
    run.finish()
    empty = hashlib.sha256().hexdigest()
    found = json.loads((run.folder / "provenance.json").read_text())["own_files"]
    assert [line.split()[1] for line in found] == [f"{tmp_path}/{name}.py" for name in ("helper", "metrics", "mine")]
    assert [line.split()[0] == empty for line in found] == [True, True, False]


def test_tables_come_back_as_they_were_saved(repository):
    run = started()
    run.save(FRAME, "scores")
    run.save(FRAME.set_index("metric"), "indexed")
    run.finish()
    for table in ("scores", "indexed"):
        saved = pd.read_csv(repository / f"build/study/results/part/one/{table}.csv")
        pd.testing.assert_frame_equal(saved, FRAME, check_exact=True)
    with pytest.raises(ValueError, match="'none' is empty"):
        run.save(FRAME.head(0), "none")


def test_a_finished_run_leaves_no_table_of_an_earlier_one(repository):
    old = finished("old")
    assert (old.folder / "old.csv").exists()
    again = started()
    again.save(FRAME, "new")
    assert (old.folder / "old.csv").exists()  # kept until the new run is whole
    again.finish()
    assert sorted(path.name for path in again.folder.iterdir()) == ["new.csv", "provenance.json"]
    assert not again.folder.with_name("unfinished").exists()


RUNS = """
# %%
import pandas as pd
from faithstudy.run import Run

run = Run("part/one", globals())
run.save(pd.DataFrame({"value": [images]}), "scores")

# %%
run.finish()
"""


def committed(repository, *patterns) -> None:
    """Make the repository one of git, with everything committed."""
    (repository / ".gitignore").write_text("build/\n")
    for command in ("init -q", "add -A", "-c user.name=n -c user.email=e commit -qm one"):
        subprocess.run(["git", "-C", str(repository), *command.split()], check=True)


def test_a_run_by_hand_has_a_folder_of_its_own_and_no_identity(repository):
    script = repository / "notebooks/part/one.py"
    script.write_text(script.read_text() + RUNS)
    committed(repository)
    runpy.run_path(str(script))
    (found,) = (repository / "build").glob("study*")
    assert found.name == "study+by-hand"
    record = json.loads((found / "results/part/one/provenance.json").read_text())
    assert (record["run"], record["notebook_sha256"], record["pipeline"]) == (None, None, False)


def test_what_a_build_makes_is_no_difference_from_the_commit_but_another_file_is(repository, monkeypatch):
    committed(repository)
    monkeypatch.setenv("FAITHLAB_BUILD", "elsewhere")
    (repository / "elsewhere").mkdir()
    (repository / "elsewhere" / "made.csv").write_text("made")
    assert provenance.commit()[1] is False
    (repository / "other.csv").write_text("by hand")
    assert provenance.commit()[1] is True


def test_a_run_of_another_library_than_the_repositorys_is_dirty(repository, capsys):
    (repository / "lib/faithlab").mkdir(parents=True)
    (repository / "lib/faithlab/scores.py").write_text("")
    committed(repository)

    def dirty(run):
        run.save(FRAME, "scores")
        run.finish()
        return json.loads((run.folder / "provenance.json").read_text())["dirty"]

    assert dirty(started())
    assert not capsys.readouterr().err, "the pipeline says it"
    assert dirty(by_hand())
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"The library that runs is not the one of this repository: {faithlab.__file__}"
    shutil.rmtree(repository / ".git")
    assert dirty(started()), "nor is it that of an exported tree"


@pytest.mark.slow
def test_the_pipeline_says_that_it_runs_another_library(repository, capsys, kernel_starts_warm):
    script = repository / "notebooks/part/one.py"
    script.write_text(script.read_text() + RUNS)
    (repository / "lib/faithlab").mkdir(parents=True)
    page = execute.execute("part/one")
    said = f"not the one of this repository: {faithlab.__file__}"
    assert capsys.readouterr().err.count(said) == 1
    assert said not in page.read_text(), "a page has no paths"
    assert json.loads((paths.results("part/one", "study") / "provenance.json").read_text())["dirty"]


def test_the_id_of_a_run_is_that_of_its_code_and_parameters():
    def run(name="a", parameters=(), notebook=("x = 1",), code="0"):
        return provenance.identity(name, dict(parameters), provenance.digest(list(notebook)), code)["run"]

    changed = [run("b"), run(parameters={"x": 1}), run(notebook=["x = 2"]), run(notebook=["x =", "1"]), run(code="1")]
    assert len({run(), *changed}) == 6
    assert run(parameters={"x": 1, "y": (1,)}) == run(parameters={"y": [1], "x": 1})


def test_the_hash_of_a_notebook_is_that_of_its_code(repository):
    script = repository / "notebooks/part/one.py"
    before = code_of()
    script.write_text(script.read_text() + "\n# %% [markdown]\n# More words.\n")
    assert code_of() == before
    executed = jupytext.read(script)
    injected = nbformat.v4.new_code_cell("images = 3", metadata={"tags": ["injected-parameters"]})
    executed.cells.append(injected)
    assert provenance.digest(provenance.cells(executed)) == before


def test_the_networks_of_a_run_are_part_of_its_provenance(repository, monkeypatch):
    alike = {"kind": "network", "commit": "abcdef0123", "dirty": False, "torch": "2.14.1", "device": "cpu"}
    used = [
        {"name": "mnist-<a>", **alike},
        {"kind": "pretrained", "name": "resnet", "source": "timm 1"},
        {"name": "mnist-b", **alike},
        {"name": "c", **alike, "commit": "", "dirty": None},
    ]
    monkeypatch.setattr(results.origins, "used", lambda: used)
    run = started()
    run.save(FRAME, "scores")
    page = run.finish()._repr_markdown_()
    assert json.loads((run.folder / "provenance.json").read_text())["networks"] == used
    assert "- **Networks**: `mnist-<a> (abcdef012)`, `resnet (timm 1)`, `mnist-b (abcdef012)`, `c ()`" in page


def test_the_stamp_says_what_was_measured_again_and_when_the_record_was_made(repository):
    run = started()
    run.save(FRAME, "scores")
    stamp = run.finish()
    assert stamp.again() == ("", ""), "nothing is recorded"
    recorded = {"date": "2026-01-02T03:04:05", "commit": "abcdef0123456", "dirty": False, "seconds": 3720.0}
    files = {"scores": "scores.parquet", "trained": "trained.csv", "claims": "claims.csv"}
    recorded |= {"cpu": "old", "gpu": None, "networks": []}
    tables = {table: {"file": file} for table, file in files.items()}
    again = {"scores": "8 of 1,000 inputs, 0 of 656 numbers differ", "trained": "training"}
    about = stamp.provenance | {"again": again, "tables": tables, "recorded": recorded | {"gpu": None, "networks": []}}
    page = results.Stamp(about, [])._repr_markdown_()
    said = "Measured again here: scores 8 of 1,000 inputs, 0 of 656 numbers differ; verdicts unchanged."
    assert page.startswith(f"{said}\n")
    assert "differ; trained not (training)\n" in page
    assert "2026-01-02 · commit abcdef012 · 1 h 2 min on old" in page
    about["again"] = again | {"claims": "1 of 1 rows, 2 of 3 numbers differ"}
    assert "numbers differ; claims 1 of 1 rows, 2 of 3 numbers differ;" in results.Stamp(about, []).again()[0]


def edit_table(repository):
    path = paths.results("part/one", "study") / "scores.csv"
    path.write_text(path.read_text().replace("0.1", "0.2"))


def add_table(repository):
    (paths.results("part/one", "study") / "other.csv").write_text("a\n1\n")


def take_table(repository):
    (paths.results("part/one", "study") / "scores.csv").unlink()


def other_run(repository):
    run = started(images=65)  # as a run with other code would: same folder, another id
    run._label = "study"
    run.save(FRAME, "scores")
    run.finish()


def same_run_again(repository):
    run = started()
    run.save(FRAME.assign(value=[5, 6]), "scores")
    run.finish()


def take_page(repository):
    paths.executed("part/one", "study").unlink()


def take_provenance(repository):
    (paths.results("part/one", "study") / "provenance.json").unlink()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (edit_table, "the table scores is not the one that the run saved"),
        (add_table, "the table other is not the one that the run saved"),
        (take_table, "the table scores is not the one that the run saved"),
        (other_run, "the page and its tables are of different runs"),
        (same_run_again, "the page and its tables are of different runs"),
        (take_page, "there is no executed page"),
        (take_provenance, "the run did not finish"),
    ],
)
def test_pages_and_tables_that_do_not_belong_together_are_found(repository, change, message):
    finished()
    assert results.page_faults("part/one", "study") == []
    change(repository)
    (fault,) = results.page_faults("part/one", "study")[:1]
    assert pd.Series([fault]).str.contains(message).all()


def test_the_stamp_shows_parameters_and_links_to_tables(repository):
    run = started(data="<64>")
    run.save(FRAME, "scores")
    stamp = run.finish()
    page = stamp._repr_markdown_()
    assert "[scores.csv](result:../../results/part/one/scores.csv)" in page
    assert "`data=<64>`" in page
    assert repr(stamp).startswith("Provenance: study profile · ")
    assert "no commit" in repr(stamp)  # the folder of this test has no history
    with pytest.raises(KeyError, match="'score'"):
        run.download("score")


def test_a_crash_while_writing_leaves_the_old_file(repository, monkeypatch):
    path = repository / "build/file.json"
    paths.write(path, json.dumps("old"))

    def crash(*arguments):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", crash)
    with pytest.raises(OSError, match="disk full"):
        paths.write(path, json.dumps("new"))
    assert json.loads(path.read_text()) == "old"
    assert list(path.parent.iterdir()) == [path]


def test_a_missing_repository_is_an_error_that_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("FAITHLAB_ROOT", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="set FAITHLAB_ROOT"):
        paths.root()


# Scores and claims


def scores(shift: float = 0.0) -> Scores:
    """Two explainers on 120 images, one better by 1."""
    g = torch.Generator().manual_seed(0)
    image = torch.randn(120, generator=g)
    return Scores.concat(
        Scores.of(image + own + shift, images=range(120), dataset="d", network="n", metric="SaCo", explainer=explainer)
        for explainer, own in (("a", 1 + torch.rand(120, generator=g)), ("b", torch.zeros(120)))
    )


@pytest.fixture
def paper(monkeypatch):
    monkeypatch.setitem(paths.PAPERS, "part", "A paper")


def better(table: Scores):
    return claims.better(table, {"explainer": "a"}, {"explainer": "b"})


def test_scores_are_saved_whole_and_found_again(repository):
    run = finished("scores", scores())
    assert [path.name for path in run.folder.glob("scores*")] == ["scores.parquet"]
    kept = Scores.load(run.folder / "scores.parquet")
    assert kept.labels("part") == ["part/one"]
    assert kept.where(explainer="a").blocks[0].values.equal(scores().where(explainer="a").blocks[0].values)
    record = json.loads((run.folder / "provenance.json").read_text())
    assert record["tables"]["scores"]["rows"] == 240
    (run.folder / "scores.parquet").write_bytes(b"another")
    assert records.faults(run.folder) == ["the table scores is not the one that the run saved"]


def test_a_claim_is_judged_and_saved_with_what_it_rests_on(repository, paper):
    run, table = started(), scores()
    run.save(table, "scores")
    verdict = run.claim("c1", "Table 1", "a is better than b.", [better(table)])
    assert verdict.outcome == claims.REPRODUCED
    assert "**Reproduced.**" in verdict._repr_markdown_()
    run.finish()
    saved = pd.read_csv(run.folder / "claims.csv")
    assert saved.loc[0, ["id", "paper", "verdict"]].tolist() == ["c1", "A paper", "reproduced"]
    parts = pd.read_csv(run.folder / "parts.csv")
    assert parts["network"].tolist() == ["pooled", "n"]
    assert parts["value"][0] == pytest.approx(verdict.judged[0].part.estimate.value.item())


def test_a_claim_may_not_rest_on_what_nobody_can_recompute(repository, paper):
    run, table = started(), scores()
    with pytest.raises(ValueError, match="'a - b' of 'c1' looks at scores that were not saved"):
        run.claim("c1", "Table 1", "a is better than b.", [better(table)])
    run.save(table, "scores")
    with pytest.raises(ValueError, match="were not saved; save the whole table"):
        run.claim("c1", "Table 1", "a is better than b.", [better(table.where(explainer=["a", "b"]))])
    run.claim("c1", "Table 1", "a is better than b.", [better(table)])
    with pytest.raises(ValueError, match="'c1' was judged before"):
        run.claim("c1", "Table 1", "a is better than b.", [better(table)])


def test_reasons_are_saved_with_the_claims_that_they_are_about(repository, paper):
    run, table = started(), scores()
    run.save(table, "scores")
    run.claim("c1", "Table 1", "a is better than b.", [better(table)])
    gap = stats.paired(table, {"explainer": "a"}, {"explainer": "b"})
    asked = Reason("Too close?", "a − b", gap, within=100.0), Reason("Turned?", "a − b", gap, below=0.0)
    with pytest.raises(ValueError, match="no claim 'c2' was judged above; there are c1"):
        run.why("c2", *asked)
    assert "Too close?" in run.why("c1", *asked).to_html()
    run.finish()
    saved = pd.read_csv(run.folder / "reasons.csv")
    assert saved["claim"].tolist() == ["c1", "c1"]
    assert saved["answer"].tolist() == ["yes, within ±100", "no, not below 0"]


def test_counted_facts_need_no_table(repository, paper):
    run = started()
    run.claim("c2", "Theorem 1", "It never falls.", [claims.counted("never falls", [True, True])], paper="Another")
    run.finish()
    saved = pd.read_csv(run.folder / "claims.csv")
    assert saved.loc[0, ["paper", "verdict", "hold"]].tolist() == ["Another", "reproduced", 1]
