"""What pages without a notebook show is what the tables of a build hold."""

import json
import re

import judged
import pandas as pd
import pytest
import scoreboard
import torch

from faithlab.metrics import METRICS
from faithlab.scores import Scores
from faithstudy import paths, published, records
from faithstudy.claims import CONTRADICTED, REPRODUCED, UNTESTED
from faithstudy.trials import recommendations


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A build of three pages with claims, of which one has no verdict page."""
    monkeypatch.setenv("FAITHLAB_ROOT", str(tmp_path))
    monkeypatch.delenv("FAITHLAB_BUILD", raising=False)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks/profiles.yml").touch()
    for part in ("saco", "trace"):
        (tmp_path / "book" / part).mkdir(parents=True)
        (tmp_path / "book" / part / "verdict.md").touch()
    (tmp_path / "book/caveats.yml").write_text("saco: [{badge: Small, says: It is small.}]\n")
    (tmp_path / "book/choices.yml").write_text("saco: {unit: SaCo, measured: []}\n")
    (tmp_path / "book/alike.yml").write_text("saco: [{says: The same, claims: {b: on b, a: on a}}]\n")
    (tmp_path / "book/asked.yml").write_text("- {question: 'Is it so?', claim: a, means: It is.}\n")
    (tmp_path / "book/_toc.yml").write_text("root: book/home\nparts: [{chapters: [{file: notebooks/saco/one}]}]\n")
    run(paths.results("template", "study"), [("t", "Template", REPRODUCED)])
    run(paths.results("saco/one", "study"), [("a", "SaCo", REPRODUCED), ("b", "SaCo", CONTRADICTED)])
    run(paths.results("trace/two", "study"), [("c", "TRACE", UNTESTED)])
    return tmp_path / "build/study/results"


def run(folder, claims):
    folder.mkdir(parents=True)
    table = pd.DataFrame(claims, columns=["id", "paper", "verdict"])
    table = table.assign(where="Table 1", claim="Claim " + table["id"] + ".", evidence="Evidence " + table["id"])
    table.to_csv(folder / "claims.csv", index=False)
    (folder / "provenance.json").write_text(json.dumps({"notebook": folder.name, "parameters": {}}))


def written(results, target):
    pages = [judged.page(results / name, name) for name in ("saco/one", "trace/two", "template")]
    scoreboard.write(results, target, pages, target / "forest")
    return {path.name: path.read_text(encoding="utf-8") for path in target.glob("*.md")}


def test_claims_of_papers_with_a_verdict_page_are_counted_and_shown(results, tmp_path):
    text = written(results, tmp_path / "out")
    rows = [line.split(" | ")[0] for line in text["claims.md"].splitlines() if line.startswith("| [")]
    listed = ["| [SaCo](saco/verdict)", "| [TRACE](trace/verdict)"]
    assert rows == listed * 2, "what has no page for its verdict is not counted"
    assert re.findall(r"{#claim-(\w)", text["claims-saco.md"]) == ["a", "b"]
    assert "## The same" in text["claims-saco.md"]
    assert "Small: It is small." in text["claims-saco.md"]
    assert 'href="saco/verdict.html#claim-a"' in text["asked.md"]
    assert "sizes.md" not in text, "no such table"
    assert (tmp_path / "out/law.svg").is_file()
    assert text["choices-saco.md"].startswith("No page of this book measures")


def save(folder, name, rows):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def test_recorded_runs_are_listed_with_what_they_came_from(results):
    folder = paths.recorded("trace/two", "study")
    folder.mkdir(parents=True)
    about = {"dataset": "digits test", "network": "CNN", "metric": "MoRF"}
    Scores.of(torch.rand(3), images=[0, 1, 2], **about).save(folder / "scores.parquet")
    told = {"notebook": "trace/two", "seconds": 5400, "date": "2026-11-21T18:40:01", "commit": "0123456789abc"}
    said, _, head, _, row = scoreboard._recorded([told | {"gpu": None, "cpu": "a processor"}]).splitlines()
    assert said == "1 runs took 1.5 hours in all."
    assert head == "| Page | Rows | kB | Minutes | Date | Commit | Ran on |"
    cells = row.strip("| ").split(" | ")
    assert cells[:2] == ["[trace/two](../notebooks/trace/two)", "3"]
    assert cells[3:] == ["90", "2026-11-21", "`012345678`", "a processor"]
    assert "No run" in scoreboard._recorded([])


def test_accuracies_under_masks_stand_below_the_published_ones(tmp_path, monkeypatch):
    row = {"dataset": "CIFAR-100", "architecture": "ResNet", "model": "original", "masked_fraction": 0.1}
    monkeypatch.setattr(scoreboard.published, "load", lambda name: pd.DataFrame([row | {"accuracy": 0.5}]))
    own = {"dataset": "mine", "architecture": "ResNet", "network": "original", "masked": 0.1, "accuracy": 0.7}
    assert scoreboard._robustness(save(tmp_path, "robustness", [own])).splitlines()[2:] == [
        "| ResNet | measured | mine | original | 70.0 % |",
        "| ResNet | published | CIFAR-100 | original | 50.0 % |",
    ]


def test_rates_of_each_page_have_the_printed_ones_in_brackets(tmp_path):
    row = {"dataset": "digits", "model": "ResNet-18", "condition": "normal", "explainer": "IG"}
    rows = [row | {"measure": name, "mean": mean} for name, mean in (("ReCo", 0.3), ("ReCo_printed", 0.4))]
    (line,) = scoreboard._rates(save(tmp_path / "normal", "rates", rows)).splitlines()[2:]
    assert line == "| [normal](../../notebooks/reco-mege/normal) | digits | ResNet-18 | 0.30 (0.40) |"


def test_the_answer_counts_a_negative_correlation_as_right_where_it_should_be_negative(tmp_path):
    rows = [
        (metric, "SG", comparison, "macro_correlation", value, value - 0.1, value + 0.2)
        for metric, value in (("F-Fidelity", -0.6), ("Blind", float("nan")))
        for comparison in ("MoRF vs GT", "LeRF vs GT")
    ]
    columns = ["metric", "explainer", "comparison", "level", "mean", "low", "high"]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "correlations.csv", index=False)
    figure = scoreboard._answer(tmp_path / "correlations.csv")
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["SG, MoRF vs GT", "SG, LeRF vs GT"]
    assert {label.get_text() for label in figure.axes[0].get_xticklabels()} == {"F-Fidelity", "Blind"}
    shown = [text.get_text() for text in figure.axes[0].texts]
    assert {"0.60\n[0.40,\n0.70]", "−0.60\n[−0.70,\n−0.40]"} <= set(shown)


def test_registered_metrics_are_listed_with_how_they_are_asked():
    lines = scoreboard._metrics().splitlines()
    (saco,) = [line for line in lines if line.startswith("| SaCo |")]
    assert saco == "| SaCo |  | probability | original | mean |  | higher | 0 | 1 | 11 | Wu et al. 2024, Algorithm 1 |"
    assert len(lines) == 2 + len(METRICS)
    assert len({line.count("|") for line in lines}) == 1


def row(metric, trial, verdict, kind="images"):
    known = {"metric": metric, "trial": trial, "verdict": verdict, "kind": kind, "size": "all images", "images": 20}
    return known | {"T": -0.001, "home": metric == "B"}


def test_a_table_says_what_to_use_for_each_kind_of_network(tmp_path):
    rows = [
        row(metric, trial, verdict, kind)
        for kind in ("images", "text")
        for metric, of in (("A", ("passed", "open")), ("B", ("passed", "passed")), ("C", ("failed", "passed")))
        for trial, verdict in zip(("Order", "Chance"), of, strict=True)
        if (kind, metric) not in (("text", "A"), ("text", "B"))
    ]
    trust, costs = save(tmp_path, "trust", rows), {"A": 10.0, "B": 20.0, "C": 30.0}
    price = [{"kind": kind, "metric": m, "forwards": of} for kind in ("images", "text") for m, of in costs.items()]
    save(tmp_path, "price", [of | {"each": 1.0, "images_low": 1, "images_high": 2} for of in price])
    lines = scoreboard._examined(trust).splitlines()
    assert lines[2] == "| images | **B** | Order, Chance | A |", "B passes more, A is cheaper, C fails one"
    assert lines[3] == "| text | none: each fails a trial, or misses one that it must pass | – | – |"


def test_the_matrix_opens_one_kind_and_puts_first_what_fails_least(tmp_path):
    rows = [row("A", "Order", "failed"), row("B", "Order", "open"), row("C", "Order", "does not apply")]
    rows += [row("A", "Order", "passed", "text"), row("B", "Order", "does not apply", "text")]
    first, second = scoreboard._matrix(save(tmp_path, "trust", rows)).split("<details")[1:]
    assert [" open>" in of.partition("<summary>")[0] for of in (first, second)] == [True, False]
    assert first.index('<th scope="row">B') < first.index('<th scope="row">A')
    assert '<th scope="row">C' not in first, "no trial applies to it"
    assert '<td class="open home" data-label="Order"><b aria-hidden="true">?</b>' in first, "a phone has no columns"
    assert '<span class="sr-only">open</span> 0.00</td>' in first
    usable = len(recommendations.usable(pd.DataFrame([row("A", "Order", "passed", "text")])))
    assert f"<summary>text: {usable} of 1 metrics pass what they must and fail none</summary>" in second


def test_sizes_are_shown_with_their_intervals_or_refused(tmp_path):
    rows = [(0.1, "oracle", 0.1, 0.09, 0.11), (0.2, "oracle", 0.2, 0.2, 0.2), (0.2, "SG-SQ", None, None, None)]
    named = [dict(zip(("share", "attribution", "size", "low", "high"), of, strict=True)) for of in rows]
    lines = scoreboard._sizes(save(tmp_path, "sizes", named)).splitlines()
    assert lines[2:] == ["| 0.10 | 0.10 [0.09, 0.11] | – |", "| 0.20 | 0.20 [0.20, 0.20] | no size |"]


def test_simulated_error_rates_are_summed_up_over_the_claims(tmp_path):
    def rates(claim, runs, reproduced, partly):
        others = {"mostly fails": 0, "refuted in part": 0}
        return {"claim": claim, "runs": runs, "reproduced": reproduced, "partly": partly} | others

    save(tmp_path / "one", "error_rates", [rates("a", 300, 3, 30), rates("exempt", 0, 0, 0)])
    save(tmp_path / "two", "error_rates", [rates("b", 300, 9, 0)])
    save(tmp_path / "old", "error_rates", [{"claim": "c", "runs": 300, "reproduced": 99, "partly": 99}])
    text = scoreboard._simulated(tmp_path)
    assert "On the tables of 2 claims, 300 studies" in text
    assert "*reproduced* in 2.0%, and in 3.0% for the claim `b`" in text
    assert "No claim" in scoreboard._simulated(tmp_path / "none")


def test_where_roar_itself_differs_from_print_it_is_said():
    """The sentence on ROAR's own order is typed: print and the record have to say it, too."""
    text = (paths.root() / "book/asked.yml").read_text(encoding="utf-8")
    assert "the paper's ROAR has the order right" in text
    assert "here it has it the wrong way round" in text
    pick = {"level": "macro_correlation", "comparison": "MoRF vs GT", "explainer": "SG-SQ"}
    printed = published.load("ffidelity_correlations")
    kept = records.recorded("f-fidelity/images", "correlations").frame
    of = {}
    for name, table in (("print", printed[printed["table"] == 1]), ("here", kept)):
        rows = table[(table[list(pick)] == pd.Series(pick)).all(axis=1)]
        of[name] = -rows.groupby("metric")["mean"].mean()  # most relevant first: -1 is the right order
    assert 0 < of["print"]["ROAR"] < of["print"]["F-Fidelity"]
    assert of["here"]["ROAR"] < 0 < of["here"]["F-Fidelity"]


def test_where_f_fidelity_does_worse_than_plain_removal_the_guideline_says_so():
    """Its sentence is typed: the record of the findings has to say it, too, away from F-Fidelity's own trial."""
    text = (paths.root() / "book/f-fidelity/guideline.md").read_text(encoding="utf-8")
    assert "by other papers' trials F-Fidelity can do worse than plain removal" in text
    away = records.recorded("across/rivals", "away").frame
    rows = away[away["pair"].isin(["FFid+ > Fid+", "FFid- > Fid-"]) & (away["trial"] != "Order")]
    assert (rows["high"] < 0).any()
