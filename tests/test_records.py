"""Recorded tables: a page shows them where it may, and a build measures their first inputs again."""

import json
import re
import types
from dataclasses import dataclass, replace

import jupytext
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from faithlab.scores import Scores
from faithstudy import claims, paths, profiles, provenance, records, slices
from faithstudy import run as results
from faithstudy.records import BFLOAT16, FLOAT32, compared

SCRIPT = """
# %% tags=["parameters"]
profile = "study"
images = 40
draws = 2

# %%
import torch
from faithlab import masks
from faithlab.metrics import METRICS
from faithstudy import plots
from faithstudy.run import Run

run = Run("part/one", globals())

# %%
asked = {"SaCo": METRICS["SaCo"]}


def ask(task):
    return task.scores(asked, images, draws)


scores = run.table("scores", ask, chosen)

# %%
shape = masks.order
sizes = run.table("sizes", lambda: shape(scores))
plots.show("a sentence")
"""


def table(values: torch.Tensor, explainer: str = "a", **labels) -> Scores:
    own = {"dataset": "d", "network": "n", "metric": "SaCo", "explainer": explainer} | labels
    return Scores.of(values, images=labels.pop("images", range(len(values))), **own)


def scores(shift: float = 0.0) -> Scores:
    """Two explainers on 40 images, one better by about 1."""
    g = torch.Generator().manual_seed(0)
    image = torch.randn(40, generator=g)
    better = image + 1 + 0.1 * torch.rand(40, generator=g) + shift
    return table(better) + table(image, "b")


@dataclass
class Images:
    """Some of the images of `scores`, as a task hands them out."""

    places: torch.Tensor
    all: Scores

    @property
    def x(self):
        return self.places

    def part(self, places):
        return replace(self, places=self.places[places])

    def rows(self) -> Scores:
        return Scores(replace(b, images=b.images[self.places], values=b.values[self.places]) for b in self.all)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with a page, `part/one`, whose scores are recorded, with a claim."""
    (tmp_path / "notebooks/part").mkdir(parents=True)
    (tmp_path / "notebooks/part/one.py").write_text(SCRIPT)
    (tmp_path / "notebooks/profiles.yml").write_text("part/one: {quick: {images: 8}}\n")
    (tmp_path / "book").mkdir()
    (tmp_path / "book/_toc.yml").write_text("root: notebooks/part/one\n")
    monkeypatch.setenv("FAITHLAB_ROOT", str(tmp_path))
    monkeypatch.delenv("FAITHLAB_BUILD", raising=False)
    monkeypatch.setattr(results, "display", lambda shown: print(shown.data))
    monkeypatch.setattr(slices.dependencies, "listed", lambda files: "\n".join(f"{'0' * 16}  {file}" for file in files))
    monkeypatch.setenv("FAITHLAB_RECORD", "all")
    page(scores())
    monkeypatch.delenv("FAITHLAB_RECORD")
    assert records.main(["promote", "part/one"]) == 0
    return tmp_path


def code_of() -> str:
    """The hash of the page's code, as the pipeline has it."""
    return provenance.digest(provenance.cells(jupytext.read(paths.script("part/one"))))


def started(given=(), **changes) -> results.Run:
    values = {"profile": "study", "images": 40, "draws": 2} | changes
    known = provenance.identity("part/one", values, code_of(), provenance.library())
    with provenance.announced("part/one", known | {"given": [*given]}):
        return results.Run("part/one", values)


def page(measured: Scores, given=(), **how) -> types.SimpleNamespace:
    """Run the page on a machine that measures these scores."""
    changes = {name: how.pop(name) for name in ("images", "draws", "profile") if name in how}
    run, asked = started(given, **changes), []

    def ask(task):
        asked.append(len(task.x))
        return task.rows()

    found = run.table("scores", ask, [Images(torch.arange(40), measured)], **how)
    verdict = run.claim("c", "Table 1", "a is better.", [claims.better(found, {"explainer": "a"}, {"explainer": "b"})])
    run.finish()
    about = json.loads((run.folder / "provenance.json").read_text())
    return types.SimpleNamespace(run=run, found=found, asked=asked, verdict=verdict.outcome, about=about)


def values(of: Scores) -> torch.Tensor:
    return torch.cat([block.values for block in of])


def test_a_page_shows_the_recorded_table_and_measures_its_first_inputs_again(repository):
    shown = page(scores())
    assert values(shown.found).equal(values(scores()))
    assert shown.asked == [4]
    assert shown.about["again"] == {"scores": "4 of 40 inputs, 0 of 8 numbers differ"}
    assert shown.about["recorded"]["date"]
    assert page(scores(5)).asked == [], "the rows are remembered until the code changes"


@pytest.mark.parametrize(
    ("how", "folder"),
    [({"images": 39}, "study+images=39"), ({"given": ["images"]}, "study+images=40"), ({"profile": "quick"}, "quick")],
)
def test_a_run_of_ones_own_shows_what_it_measured(repository, how, folder, capsys):
    how = {"images": 8} | how if how.get("profile") else how
    own = page(scores(7), **how)
    assert values(own.found).equal(values(scores(7)))
    assert own.asked == [40]
    assert own.run.folder == paths.results("part/one", folder)
    assert own.about["again"] == {}
    assert f"Your run** ({folder})" in capsys.readouterr().out


def test_a_number_that_differs_fails_the_build_and_is_kept(repository):
    with pytest.raises(
        ValueError,
        match=r"of the recorded table scores, 4 of 8 numbers are others.*, of SaCo.*part/one/differing",
    ):
        page(scores(2))
    assert "measured again" in pd.read_csv(records.differing("part/one") / "scores.csv")


def test_numbers_that_change_a_verdict_fail_the_build(repository):
    wide = records.Rounding(near=0.05, few=1, shift=1e9)
    with pytest.raises(ValueError, match="c is supported; by the numbers measured here, not supported"):
        page(scores(-1000), rounding=wide)


def test_what_cannot_be_measured_again_says_why(repository):
    shown = page(scores(9), again="search")
    assert (shown.asked, shown.about["again"]) == ([], {"scores": "search"})


def test_a_page_that_says_other_parameters_than_its_record_is_an_error(repository):
    script = repository / "notebooks/part/one.py"
    script.write_text(SCRIPT.replace("draws = 2", "draws = 3"))
    with pytest.raises(ValueError, match=r"'scores' was recorded with another draws than.*make record NAME=part/one"):
        page(scores(), draws=3)


def test_a_table_that_is_not_recorded_is_measured_and_says_so(repository):
    run = started()
    found = run.table("more", lambda: pd.DataFrame({"a": [0.5]}, index=pd.Index(["x"], name="row")))
    pd.testing.assert_frame_equal(found, pd.DataFrame({"row": ["x"], "a": [0.5]}))
    run.finish()
    assert json.loads((run.folder / "provenance.json").read_text())["again"] == {"more": "not recorded"}


def test_a_changed_digit_of_a_recorded_table_is_found(repository):
    path = paths.recorded("part/one", "study") / "scores.parquet"
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.write_bytes(content)
    with pytest.raises(
        ValueError, match=r"scores is not the one that the run saved\. To restore the record: git checkout"
    ):
        page(scores())


def test_one_table_is_recorded_and_the_others_stay(repository, monkeypatch):
    monkeypatch.setenv("FAITHLAB_RECORD", "more")
    run = started()
    kept = run.table("scores", lambda task: task.rows(), [Images(torch.arange(40), scores(3))])
    assert values(kept).equal(values(scores()))
    run.table("more", lambda: pd.DataFrame({"a": [0.5]}))
    run.finish()
    before = records.provenance("part/one")
    records.promote("part/one")
    after = records.provenance("part/one")
    assert after["tables"]["scores"] == before["tables"]["scores"]
    assert after["date"] == before["date"]
    assert after["tables"]["more"]["date"]
    monkeypatch.delenv("FAITHLAB_RECORD")
    assert records.recorded("part/one", "more").frame.equals(pd.DataFrame({"a": [0.5]}))


def test_a_killed_record_finds_its_blocks_made(repository, monkeypatch):
    monkeypatch.setenv("FAITHLAB_RECORD", "all")
    monkeypatch.setattr(results.profiles, "needs", lambda name: profiles.Needs(parts={"study": 4}))
    asked = []

    def ask(task):
        asked.append(len(task.x))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return task.rows()

    tasks = [Images(torch.arange(40), scores())]
    with pytest.raises(KeyboardInterrupt):
        started().table("scores", ask, tasks)
    found = started().table("scores", ask, tasks)
    assert asked == [10, 10, 10, 10, 10], "two blocks were found"
    assert values(found).sort().values.equal(values(scores()).sort().values)


# The same numbers again


def test_equal_rows_agree_and_all_of_a_table_may_be_measured_again():
    found = compared(scores(), scores(), FLOAT32)
    assert (found.inputs, found.of, found.values, len(found.differing), found.shift) == (40, 40, 80, 0, 0)
    assert found.holds


@pytest.mark.parametrize(("rows", "holds"), [(2, True), (6, False)])
def test_a_few_answers_may_be_turned_by_rounding(rows, holds):
    again = scores()
    again.blocks[0].values[:rows] += 0.6
    found = compared(again, scores(), FLOAT32)
    assert len(found.differing) == rows
    assert found.holds is holds
    assert found.differing[["recorded", "measured again"]].notna().all(axis=None)


def test_means_that_move_together_are_no_rounding():
    small = 0.02 * float(values(scores()).max() - values(scores()).min())
    found = compared(scores(small), scores(), BFLOAT16)
    assert len(found.differing) == 0
    assert not replace(found, rounding=FLOAT32).holds


def test_rows_that_the_record_lacks_differ():
    again = scores() + table(torch.zeros(9), "c")
    found = compared(again, scores(), FLOAT32)
    assert len(found.differing) == 9
    assert not found.holds


def test_only_sizes_that_both_have_are_compared():
    both = torch.rand(5, 3, generator=torch.Generator().manual_seed(0))
    kept = Scores.of(both, images=range(5), sizes=(0.1, 0.2, 0.3), dataset="d", network="n", metric="m")
    again = Scores.of(both[:2, 1:], images=range(2), sizes=(0.2, 0.3), dataset="d", network="n", metric="m")
    found = compared(again, kept, FLOAT32)
    assert (found.values, len(found.differing)) == (4, 0)
    other = Scores.of(both[:2, :1], images=range(2), sizes=(0.5,), dataset="d", network="n", metric="m")
    assert len(compared(other, kept, FLOAT32).differing) == 2


@given(st.sets(st.integers(0, 39), min_size=1), st.sampled_from([-1.0, 0.001, 0.3]))
def test_numbers_that_differ_take_their_places(places, shift):
    places = torch.tensor(sorted(places))
    again = Images(places, scores(shift)).rows()
    patched = compared(again, scores(), FLOAT32).patched
    expected, changed = scores(), scores(shift)
    for block, other in zip(expected, changed, strict=True):
        far = (block.values - other.values).abs() > FLOAT32.near * float(
            values(scores()).max() - values(scores()).min()
        )
        block.values[places] = torch.where(far, other.values, block.values)[places]
    assert values(patched).equal(values(expected))


def test_other_tables_are_compared_by_the_columns_without_fractions():
    kept = pd.DataFrame({"name": ["a", "b", "c"], "image": [0, 1, 2], "size": [0.2, 0.4, 1.0], "said": ["x", "y", "z"]})
    found = compared(kept.iloc[[2, 0]].assign(size=[1.0, 0.5]), kept, FLOAT32)
    assert (found.inputs, found.of, found.values, len(found.differing)) == (2, 3, 2, 1)
    assert found.patched["size"].tolist() == [0.5, 0.4, 1.0]
    assert len(compared(kept.assign(said="other"), kept, FLOAT32).differing) == 3


@given(st.integers(1, 200), st.integers(0, 10**6))
def test_the_inputs_that_are_measured_again_are_the_first_and_a_block(inputs, rotation):
    places = records.first_and_one_more(inputs, rotation)
    assert len(set(places)) == len(places) <= 4
    assert list(places[:2]) == list(range(min(2, inputs)))
    assert max(places) < inputs


def test_every_input_has_its_turn():
    turns = {place for rotation in range(100) for place in records.first_and_one_more(101, rotation)}
    assert turns == set(range(101))


# What a table rests on


def keys(change=lambda text: text) -> dict[str, str]:
    script = paths.script("part/one")
    script.write_text(change(SCRIPT))
    return {name: slices.key("part/one", name, metrics) for name, metrics in TABLES.items()}


TABLES = {"scores": ["SaCo"], "sizes": []}


@pytest.mark.parametrize(
    ("old", "new", "stale"),
    [
        ("a sentence", "another", []),
        ("from faithstudy import plots", "from faithstudy import plots, tables", []),
        ("# %%\nasked", "# %% [markdown]\n# Text.\n\n# %%\nasked", []),
        ("images = 40", "images = 41", ["scores", "sizes"]),
        ("images, draws)", "images, 3)", ["scores", "sizes"]),
        ('{"SaCo": METRICS["SaCo"]}', '{"SaCo": METRICS["AOPC"]}', ["scores", "sizes"]),
        ("shape(scores)", "shape(-scores)", ["sizes"]),
        ("masks.order", "masks.ranks", ["sizes"]),
        ("shape = masks.order", "shape = masks.order\nfor chosen in (1, 2):\n    shape = chosen", ["sizes"]),
        ("asked = {", "asked = {}\nasked |= {", ["scores", "sizes"]),
        ("\n\ndef ask", "\nasked['AOPC'] = 1\n\n\ndef ask", ["scores", "sizes"]),
    ],
)
def test_an_edit_of_a_page_makes_stale_what_it_reaches(repository, old, new, stale):
    before, after = keys(), keys(lambda text: text.replace(old, new))
    assert [name for name in TABLES if before[name] != after[name]] == stale


def test_a_metric_counts_for_the_tables_that_have_it(repository, monkeypatch):
    keys()
    files = {}
    for name in ("SaCo", "AOPC", "SaCo, K = 16"):
        monkeypatch.setattr(slices.dependencies, "listed", lambda given, name=name: files.update({name: {*given}}))
        slices.key("part/one", "scores", [name])
    assert files["SaCo"] - files["AOPC"] == {"lib/faithlab/metrics/saco.py"}
    assert files["SaCo, K = 16"] == files["SaCo"]
    assert "lib/faithlab/engine.py" in files["AOPC"]


def test_a_table_takes_the_parameters_that_its_statements_read(repository):
    keys()
    assert slices.parameters_of("part/one", "scores", {"images": 1, "draws": 1, "other": 1}) == {"images", "draws"}
    keys(lambda text: re.sub(r"images, draws\)", "run.parameters)", text))
    assert slices.parameters_of("part/one", "scores", {"images": 1, "other": 1}) == {"images", "other"}
