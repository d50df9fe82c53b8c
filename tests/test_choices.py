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


def test_what_changes_most_comes_first_and_noise_last(results):
    text = choices.ranked(results, "SaCo", [CHANGES])
    assert text.startswith("In SaCo:")
    assert re.findall(r"^\| (s.*?) \| (.*?) \| \[\]\(../../notebooks/paper/page\)", text, re.MULTILINE) == [
        ("subset, IG", "−0.30 [−0.40, −0.20]"),
        ("sizes, IG", "+0.100 [+0.050, +0.150]"),
        ("subset, Random", "+0.50 [−0.10, +1.10]"),
        ("subset, EP", "+0.2"),
    ]


def test_a_choice_that_a_table_names_in_short_is_said_in_words(results):
    says = {"sizes": "sizes end at 100 %", "subset": "one draw"}
    assert "| one draw, IG | −0.30 [" in choices.ranked(results, "SaCo", [CHANGES | {"says": says}])
    with pytest.raises(KeyError, match="subset"):
        choices.ranked(results, "SaCo", [CHANGES | {"says": {"sizes": "sizes end at 100 %"}}])


def test_each_unit_has_a_table_of_its_own_and_what_a_build_lacks_is_left_out(results):
    absent = SIGNS | {"page": "paper/other"}
    text = choices.ranked(results, "shares", [SIGNS | {"unit": "SaCo"}, CHANGES, CHANGES | {"unit": "SaCo"}, absent])
    first, second = text.split("In shares:")
    assert "signs kept" in first
    assert "signs kept" not in second
    nothing = choices.ranked(results, "SaCo", [SIGNS | {"rows": {"metric": "none"}}])
    assert nothing.count("\n") == 1, "one sentence"


def test_small_changes_are_shown_without_powers_of_ten(results):
    path = results / "paper/page/changes.csv"
    pd.read_csv(path).assign(mean=3e-5, low=0.0, high=6e-5).to_csv(path, index=False)
    assert "+0.000030 [0.000000, +0.000060]" in choices.ranked(results, "SaCo", [CHANGES])


def test_a_change_in_the_long_table_is_that_of_the_same_images_and_explainers(results):
    text = choices.ranked(results, "SaCo", [SIGNS, CHANGES])
    (first,) = re.findall(r"^\| signs kept, digits \| (.*?) \[(.*?), (.*?)\]", text, re.MULTILINE)
    value, low, high = (float(number.replace("−", "-")) for number in first)
    assert value == pytest.approx(-0.5), "of IG alone: EP has no signs"
    assert low < value < high < 0
    assert text.index("signs kept") < text.index("subset, IG") < text.index("sizes, IG")


def test_a_statistic_of_the_long_table_is_not_its_mean(results):
    far = torch.linspace(0, 1, 20, dtype=torch.float64)
    labels = {"images": range(20), "dataset": "digits train", "network": "a", "explainer": "IG"}
    scores = Scores.of(far, metric="S=", **labels) + Scores.of(far, metric="S≠", **labels)
    for metric, shift in (("S=", 0.0), ("S≠", 0.5)):
        scores += Scores.of(far + shift, metric=metric, variant="signed", **labels)
    scores.save(results / "paper/page/scores.parquet")
    apart = {**SIGNS, "rows": {}, "statistic": "ReCo", "each": ["dataset", "explainer"]}
    text = choices.ranked(results, "ReCo", [apart])
    assert "| signs kept, digits, IG | +0.50 [" in text, "from wholly mixed to half apart"


def test_declared_choices_name_pages_and_tables_that_they_save():
    pages = paths.pages()
    for paper in PAPERS.values():
        for choice in paper["measured"]:
            assert choice["page"] in pages
            assert f'"{choice["table"]}"' in paths.script(choice["page"]).read_text(encoding="utf-8")


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
