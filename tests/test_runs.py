"""Profiles, runs and their results: what is shown of a profile is that profile, and files are whole or not there."""

import json

import pandas as pd
import pytest

from faithlab.study import places, profiles, results

SCRIPT = """
# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% tags=["parameters"]
profile = "quick"
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


DEFAULTS = {"profile": "quick", "images": 64, "levels": (0.1, 0.2), "data": "digits"}


def started(**changes) -> results.Run:
    return results.Run("part/one", DEFAULTS | {"levels": [0.1, 0.2], "other": 1} | changes)


def test_a_profile_is_the_defaults_with_its_changes(repository):
    assert profiles.defaults("part/one") == DEFAULTS
    assert profiles.resolve("part/one", "smoke")["images"] == 8
    assert profiles.resolve("part/one", "smoke", {"images": 9})["images"] == 9
    assert profiles.needs("part/one") == profiles.Needs(data=("digits",))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [({"image": 3}, "Did you mean 'images'.*Known: images, levels, data"), ({"profile": "paper"}, "--profile")],
)
def test_a_parameter_that_a_notebook_does_not_have_is_an_error(repository, overrides, message):
    with pytest.raises(ValueError, match=message):
        profiles.resolve("part/one", "quick", overrides)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("images: int = 64", "images = 8 * 8", "line 2 of it is:  images = 8 \\* 8"),
        ('profile = "quick"', "", "needs the line  profile"),
        ('tags=["parameters"]', "", "it has 0"),
    ],
)
def test_a_parameters_cell_that_cannot_be_read_is_an_error(repository, old, new, message):
    script = repository / "notebooks/part/one.py"
    script.write_text(script.read_text().replace(old, new))
    with pytest.raises(ValueError, match=message):
        profiles.defaults("part/one")


def test_a_misspelt_key_or_profile_or_notebook_is_an_error(repository):
    (repository / "notebooks/profiles.yml").write_text("part/one: {quik: {images: 8}}\n")
    with pytest.raises(ValueError, match="unknown quik"):
        profiles.resolve("part/one")
    with pytest.raises(ValueError, match="Known: smoke, quick, long, paper"):
        profiles.resolve("part/one", "large")
    with pytest.raises(FileNotFoundError, match="There are: part/one"):
        profiles.defaults("part/two")


def test_a_changed_parameter_gets_a_folder_of_its_own(repository):
    assert started().folder == repository / "build/quick/results/part/one"
    assert started(images=32).folder == repository / "build/quick+images=32/results/part/one"
    long = started(levels=list(range(100))).folder.relative_to(repository / "build").parts[0]
    assert len(long) <= 80
    assert long.startswith("quick+levels=_0.0_1.0_")
    with pytest.raises(KeyError):
        results.Run("part/one", {"profile": "quick", "images": 64})


def test_tables_come_back_as_they_were_saved(repository):
    run = started()
    run.save(FRAME, "scores")
    run.save(FRAME.set_index("metric"), "indexed")
    run.finish()
    for table in ("scores", "indexed"):
        pd.testing.assert_frame_equal(results.read("part/one", table, "quick"), FRAME, check_exact=True)
    assert results.read("part/one", "scores", "paper") is None
    with pytest.raises(ValueError, match="'none' is empty"):
        run.save(FRAME.head(0), "none")


def test_a_finished_run_leaves_no_table_of_an_earlier_one(repository):
    run = started()
    run.save(FRAME, "old")
    run.finish()
    again = started()
    again.save(FRAME, "new")
    assert (again.folder / "old.csv").exists()  # kept until the new run is whole
    again.finish()
    assert sorted(path.name for path in again.folder.iterdir()) == ["new.csv", "provenance.json"]


def test_the_stamp_shows_parameters_and_links_to_tables(repository):
    run = started(data="<64>")
    run.save(FRAME, "scores")
    stamp = run.finish()
    page = stamp._repr_html_()
    assert 'href="../../results/part/one/scores.csv"' in page
    assert "<code>data=&lt;64&gt;</code>" in page
    assert repr(stamp).startswith("Provenance: quick profile · ")
    assert "no commit" in repr(stamp)  # the folder of this test has no history
    with pytest.raises(KeyError, match="not 'score'"):
        run.download("score")


def test_promoted_results_are_found_and_paper_comes_before_quick(repository):
    assert results.recorded("part/one", "scores") is None
    for profile, frame in [("quick", FRAME), ("paper", FRAME.assign(value=[1.5, 2.5]))]:
        run = started(profile=profile)
        run.save(frame, "scores")
        run.finish()
        assert results.main(["promote", "--profile", profile, "part/one"]) == 0
        found = results.recorded("part/one", "scores")
        assert found.profile == found.provenance["profile"] == profile
        pd.testing.assert_frame_equal(found.frame, frame)
    assert results.main(["promote", "part/two"]) == 1


def test_a_crash_while_writing_leaves_the_old_file(repository, monkeypatch):
    path = repository / "build/file.json"
    places.write(path, json.dumps("old"))

    def crash(*arguments):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", crash)
    with pytest.raises(OSError, match="disk full"):
        places.write(path, json.dumps("new"))
    assert json.loads(path.read_text()) == "old"
    assert list(path.parent.iterdir()) == [path]


def test_a_missing_repository_is_an_error_that_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("FAITHLAB_ROOT", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="Set FAITHLAB_ROOT"):
        places.root()
