"""Choices that papers leave open, ranked by what they change in made tables."""

import json
import re

import choices
import pandas as pd
import pytest
import torch
import words
import yaml

from faithlab.scores import Scores
from faithstudy import paths

ROOT = paths.root()
PAPERS = yaml.safe_load((ROOT / "book/choices.yml").read_text(encoding="utf-8"))
CHANGES = {"page": "paper/page", "table": "changes", "rows": {"of": "change"}, "names": ["difference", "explainer"]}
SIGNS = {
    "says": "signs kept",
    "page": "paper/page",
    "table": "scores",
    "rows": {"metric": "SaCo"},
    "with": {"variant": "signed"},
    "against": {"variant": None},
    "each": ["dataset"],
}


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A build of one page: changes in a table, and the scores of two explainers, one of them with its signs, too."""
    monkeypatch.setenv("FAITHLAB_ROOT", str(tmp_path))
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks/profiles.yml").touch()
    folder = tmp_path / "results/paper/page"
    folder.mkdir(parents=True)
    (folder / "provenance.json").write_text(json.dumps({"profile": "quick"}))
    rows = [
        ("sizes", "IG", "change", 0.1, 0.05, 0.15),
        ("subset", "IG", "change", -0.3, -0.4, -0.2),
        ("subset", "Random", "change", 0.5, -0.1, 1.1),
        ("subset", "EP", "change", 0.2, float("nan"), float("nan")),
        ("subset", "IG", "value", 0.9, 0.8, 1.0),
    ]
    columns = ["difference", "explainer", "of", "mean", "low", "high"]
    pd.DataFrame(rows, columns=columns).to_csv(folder / "changes.csv", index=False)
    noise = torch.linspace(-0.1, 0.1, 20, dtype=torch.float64)
    labels = {"images": range(20), "dataset": "digits test", "network": "a", "metric": "SaCo"}
    scores = Scores.of(noise, explainer="IG", **labels) + Scores.of(noise + 5, explainer="EP", **labels)
    scores += Scores.of(noise.flip(0) - 0.5, explainer="IG", variant="signed", **labels)
    scores.save(folder / "scores.parquet")
    return tmp_path / "results"


def test_what_changes_most_comes_first_and_noise_is_not_ranked(results):
    text = choices.ranked(results, "SaCo", [CHANGES])
    assert text.startswith("In SaCo, the largest change first:")
    assert re.findall(r"^\| (s.*?) \| (.*?) \|", text, re.MULTILINE) == [
        ("subset, IG", "−0.3 [−0.4, −0.2]"),
        ("sizes, IG", "+0.1 [+0.05, +0.15]"),
    ]
    assert "[](../../notebooks/paper/page)" in text
    untold = text[text.index("In the same, subset, not told from none:") :]
    assert re.findall(r"^\| (\w+) \| (.*?) \|", untold, re.MULTILINE) == [
        ("Where", "Change"),
        ("Random", "+0.5 [−0.1, +1.1]"),
        ("EP", "+0.2 (no interval)"),
    ]


def test_a_choice_that_a_table_names_in_short_is_said_in_words(results):
    says = {"sizes": "sizes end at 100 %", "subset": "one draw"}
    text = choices.ranked(results, "SaCo", [CHANGES | {"says": says}])
    assert "| one draw, IG | −0.3 [−0.4, −0.2] |" in text
    assert "In the same, one draw, not told from none:" in text
    with pytest.raises(KeyError, match="subset"):
        choices.ranked(results, "SaCo", [CHANGES | {"says": {"sizes": "sizes end at 100 %"}}])
    absent = CHANGES | {"says": says, "page": "paper/other"}
    assert "Not measured in this build: paper/other." in choices.ranked(results, "SaCo", [CHANGES, absent])


def test_small_changes_are_shown_without_powers_of_ten(results):
    path = results / "paper/page/changes.csv"
    pd.read_csv(path).assign(mean=3e-5, low=0.0, high=6e-5).to_csv(path, index=False)
    assert "+0.00003 [0, +0.00006]" in choices.ranked(results, "SaCo", [CHANGES])


def test_a_change_in_the_long_table_is_that_of_the_same_images_and_explainers(results):
    text = choices.ranked(results, "SaCo", [SIGNS, CHANGES])
    (first,) = re.findall(r"^\| signs kept, digits \| (.*?) \[(.*?), (.*?)\]", text, re.MULTILINE)
    value, low, high = (float(number.replace("−", "-")) for number in first)
    assert value == pytest.approx(-0.5), "of IG alone: EP has no signs"
    assert low < value < high < 0
    assert text.index("signs kept") < text.index("subset, IG") < text.index("sizes, IG")


RATES = {
    "says": "printed rates",
    "unit": "ReCo",
    "page": "paper/page",
    "table": "rates",
    "rows": {"condition": "normal"},
    "names": ["explainer"],
    "with": {"measure": "printed"},
    "against": {"measure": "ReCo"},
}


def test_each_unit_has_a_table_of_its_own(results):
    text = choices.ranked(results, "shares", [SIGNS | {"unit": "SaCo"}, CHANGES, CHANGES | {"unit": "SaCo"}])
    first, second = text.split("In shares, the largest change first:")
    assert re.findall(r"^\| ([^,|]+),", first, re.MULTILINE) == ["signs kept", "subset", "sizes"]
    assert re.findall(r"^\| ([^,|]+),", second, re.MULTILINE) == ["subset", "sizes"]
    assert text.count("In the same, subset, not told from none:") == 2, "once in each unit"


def test_differences_of_a_summary_have_no_interval_and_are_not_ranked(results):
    rows = [("IG", "ReCo", 0.5), ("IG", "printed", 0.25), ("EP", "ReCo", 0.2), ("EP", "printed", 0.9)]
    frame = pd.DataFrame(rows, columns=["explainer", "measure", "mean"]).assign(condition="normal")
    other = frame.assign(condition="noise", mean=9.0)
    pd.concat([frame, other]).to_csv(results / "paper/page/rates.csv", index=False)
    text = choices.ranked(results, "SaCo", [RATES])
    assert "Without an interval, in ReCo: printed rates, −0.25 to +0.7 (2 cases of" in text
    assert "|" not in text, "no table"
    assert "In brackets" not in text
    assert "not told from none" not in text


def test_a_statistic_of_the_long_table_is_not_its_mean(results):
    far = torch.linspace(0, 1, 20, dtype=torch.float64)
    labels = {"images": range(20), "dataset": "digits train", "network": "a", "explainer": "IG"}
    scores = Scores.of(far, metric="S=", **labels) + Scores.of(far, metric="S≠", **labels)
    for metric, shift in (("S=", 0.0), ("S≠", 0.5)):
        scores += Scores.of(far + shift, metric=metric, variant="signed", **labels)
    scores.save(results / "paper/page/scores.parquet")
    apart = {**SIGNS, "rows": {}, "statistic": "ReCo", "each": ["dataset", "explainer"]}
    text = choices.ranked(results, "ReCo", [apart])
    assert "| signs kept, digits, IG | +0.5 [" in text, "from wholly mixed to half apart"


def test_what_a_build_lacks_is_said(results):
    other = SIGNS | {"says": "another metric", "rows": {"metric": "none"}}
    absent = SIGNS | {"says": "another page", "page": "paper/other"}
    text = choices.ranked(results, "SaCo", [CHANGES, other, absent])
    assert "Not measured in this build: another metric; another page." in text
    assert choices.ranked(results, "SaCo", [other]).count("\n") == 1, "one sentence"


def test_a_larger_recorded_run_takes_the_place_of_the_build(results, monkeypatch):
    frame = pd.read_csv(results / "paper/page/changes.csv").assign(mean=7.0, low=6.0, high=8.0)
    kept = choices.judged.Recorded(frame, "study", {})
    monkeypatch.setattr(choices.judged, "recorded", lambda page, table: kept)
    assert "+7 [+6, +8]" in choices.ranked(results, "SaCo", [CHANGES])


def test_declared_choices_name_pages_and_tables_that_they_save():
    pages = paths.pages()
    for paper in PAPERS.values():
        for choice in paper["measured"]:
            assert choice["page"] in pages
            assert f'"{choice["table"]}")' in paths.script(choice["page"]).read_text(encoding="utf-8")


def test_every_page_of_deviations_begins_with_what_was_measured():
    pages = list((ROOT / "book").glob("*/deviations.md"))
    assert {page.parent.name for page in pages} == set(PAPERS)
    for page in pages:
        sections = page.read_text(encoding="utf-8").split("\n## ")
        assert f"_measured/choices-{page.parent.name}.md" in sections[1]


@pytest.mark.parametrize("paper", PAPERS)
def test_choices_of_the_recorded_runs_are_said_in_words(paper):
    text = choices.ranked(ROOT / "data/results/study", **PAPERS[paper])
    assert words.plain(text) == text
    for name in ("random top", "exact number", "nan", "told from none: "):
        assert name not in text
