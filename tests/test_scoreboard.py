"""What the book says as a whole is what its notebooks have measured."""

import functools
import json
import re
import shutil
import subprocess
from pathlib import Path

import judged
import pandas as pd
import pytest
import reader
import scoreboard
import torch
from faithstudy.regression import NOT_COMPARED

from faithlab.metrics import METRICS
from faithlab.scores import Scores
from faithstudy import paths
from faithstudy.claims import CONTRADICTED, PARTLY, REPRODUCED, UNTESTED
from faithstudy.run import Recorded, recorded_runs
from faithstudy.trials import examination


@pytest.fixture(scope="module", autouse=True)
def made_once():
    """What no result changes: the table of metrics, for which each is asked, and the figure of the law."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((scoreboard, "_metrics"), (scoreboard.plots, "law")):
            patch.setattr(module, name, functools.cache(getattr(module, name)))
        yield


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A build of two pages, and what is recorded of them: the first in another profile, the second in the same."""
    monkeypatch.setenv("FAITHLAB_ROOT", str(tmp_path))
    monkeypatch.delenv("FAITHLAB_BUILD", raising=False)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks/profiles.yml").touch()
    (tmp_path / "book").mkdir()
    (tmp_path / "book/caveats.yml").write_text("saco: [{badge: Small, says: It is small.}]\n")
    (tmp_path / "book/choices.yml").write_text("saco: {unit: SaCo, measured: []}\n")
    (tmp_path / "book/alike.yml").write_text("saco: [{says: The same, claims: {b: on b, gone: not here, a: on a}}]\n")
    (tmp_path / "book/asked.yml").write_text("[]\n")
    (tmp_path / "book/_toc.yml").write_text(
        "root: book/home\nparts: [{chapters: [{file: notebooks/saco/one}, {file: notebooks/trace/two}]}]\n"
    )
    for part in ("saco", "trace"):
        (tmp_path / "book" / part).mkdir()
        (tmp_path / "book" / part / "verdict.md").touch()
    run(paths.results("template", "quick"), "quick", [("t", "Template", REPRODUCED)])
    run(paths.results("saco/one", "quick"), "quick", [("a", "SaCo", REPRODUCED), ("b", "SaCo", CONTRADICTED)])
    run(paths.results("trace/two", "quick"), "quick", [("c", "TRACE", UNTESTED)])
    # The recorded run knows one claim less, and its claims come in another order.
    run(paths.recorded("saco/one", "study"), "study", [("z", "SaCo", REPRODUCED), ("a", "SaCo", PARTLY)])
    run(paths.recorded("trace/two", "quick"), "quick", [("c", "TRACE", REPRODUCED)], notebook_sha256="ab" * 32)
    return tmp_path / "build/quick/results"


def run(folder, profile, claims, **more):
    folder.mkdir(parents=True)
    table = pd.DataFrame(claims, columns=["id", "paper", "verdict"])
    table = table.assign(where="Table 1", claim="Claim " + table["id"], evidence=profile + " " + table["id"])
    table["hold"] = {"quick": 1, "study": 3}.get(profile, 2)
    table.to_csv(folder / "claims.csv", index=False)
    provenance = {
        "notebook": folder.relative_to(folder.parents[1]).as_posix(),
        "profile": profile,
        "date": "2026-11-21T18:40:01+00:00",
        "commit": "0123456789abcdef",
        "dirty": False,
        "gpu": None,
        "cpu": "a processor",
        "parameters": {"images": 32, "texts": 8, "draws": 2},
        "seconds": 100.0,
        "tables": {"claims": {"rows": len(table)}},
    } | more
    (folder / "provenance.json").write_text(json.dumps(provenance))


def test_the_worst_simulated_case_is_told():
    about = {"network": "simulated", "images": range(50)}
    scores = Scores.concat(
        Scores.of(torch.arange(50) >= wrong, dataset=case, metric=metric, **about)
        for case, metric, wrong in (("a", "named", 0), ("b", "named", 20), ("c", "refused", 0))
    )
    text = scoreboard._goals(scores, "recorded, study")
    assert (
        "An explanation that has an end is given a size in 60% [45%, 74%] of the studies in the worst case of 2, *b*."
        in text
    )
    assert "nine of ten in 1 of 2 cases" in text
    assert "A ranking without an end is refused in every study, in all 1 cases." in text
    assert "holds the true one" not in text, "nothing was named, so that no interval was asked"


def test_claims_are_counted_by_paper_and_verdict(results, tmp_path):
    scoreboard.write(results, tmp_path / "out")
    text = (tmp_path / "out/claims.md").read_text()
    said = "2 claims: 1 contradicted, 1 partly. They say 1 different thing</p>"
    assert f'<a href="saco/verdict.html"><strong>SaCo</strong></a> {said}' in text
    assert '<a href="trace/verdict.html"><strong>TRACE</strong></a> 1 claim: 1 not tested</p>' in text
    assert text.count("faithlab-paper") == 2, "what has no page for its verdict is not counted"
    tile = '<a class="faithlab-tile partly" href="saco/verdict.html#claim-a" title="partly: Claim a"'
    assert text.count(tile) == 1


def test_the_verdict_is_that_of_the_best_run_and_this_build_stands_beside(results, tmp_path):
    scoreboard.write(results, tmp_path / "out")
    second, first = (tmp_path / "out/claims-saco.md").read_text().split("{#claim-")[1:]  # as they are declared alike
    assert first.startswith("a .faithlab-claim}\n**◐ partly** Claim a\n\n")
    assert "<dt>Recorded, study</dt><dd>study a</dd><dt>This build</dt><dd>✓ reproduced. quick a</dd>" in first
    assert '<a href="../../notebooks/saco/one.html">saco/one</a>' in first
    assert "<code>make notebook NAME=saco/one PROFILE=study</code>" in first
    assert "<dt>Bear in mind</dt><dd>Small: It is small.</dd>" in first
    assert second.startswith(
        "b .faithlab-claim}\n**✗ contradicted** Claim b\n\n"
    )  # which the recorded run does not know
    assert "<dt>Evidence</dt><dd>quick b</dd>" in second
    assert "<code>make notebook NAME=saco/one</code>" in second
    assert "Recorded" not in (tmp_path / "out/claims-trace.md").read_text()
    # A build of a larger profile than the recorded run's is the best evidence itself.
    provenance = results / "saco/one/provenance.json"
    provenance.write_text(provenance.read_text().replace('"quick"', '"paper"'))
    scoreboard.write(results, tmp_path / "larger")
    assert "a .faithlab-claim}\n**✓ reproduced** Claim a" in (tmp_path / "larger/claims-saco.md").read_text()


def test_numbers_are_the_recorded_runs_and_words_todays(results, tmp_path):
    def parts(folder, part, values, **more):
        frame = pd.DataFrame({"value": values, "contrast": [f"x - {k}" for k in range(len(values))]})
        known = {
            "claim": "a",
            "part": part,
            "kind": "within",
            "premise": False,
            "outcome": "holds",
            "network": "pooled",
        }
        known |= {"low": frame["value"] - 0.01, "high": frame["value"] + 0.01, "claimed_low": -0.1, "claimed_high": 0.1}
        known |= {"printed": [0.0] * (len(values) - 1) + [0.5], "images": 900, "missing": 0, "datasets": "digits test"}
        frame = frame.assign(**known | more)
        frame = pd.concat([frame, frame.assign(network="ViT")])
        frame.to_csv(folder / "parts.csv", index=False)
        told = json.loads((folder / "provenance.json").read_text())
        told["tables"]["parts"] = {"rows": len(frame)}
        (folder / "provenance.json").write_text(json.dumps(told))

    build, record = results / "saco/one", paths.recorded("saco/one", "study")
    parts(build, "one", [0.05, 0.0], reason="today's", unit="simulated study")
    parts(record, "one", [0.02, 0.03], reason="yesterday's")
    found = judged.page(build, "saco/one")
    # Counts are of the recorded parts; of the claim that the record lacks they are the build's. All stay whole numbers.
    assert found.claims.set_index("id")["hold"].map(repr).to_dict() == {"a": "1", "b": "1"}
    parts(record, "one", [0.02, 0.03], reason="yesterday's", images=5)
    few = judged.page(build, "saco/one")
    assert set(few.parts["outcome"]) == {"open"}, "by the rule of today"
    assert few.claims.set_index("id").loc["a", ["hold", "open"]].tolist() == [0, 1]
    parts(record, "one", [0.02, 0.03], reason="yesterday's")
    assert found.parts["value"].tolist() == 2 * [0.02, 0.03]
    assert set(found.parts["reason"]) == {"today's"}
    evidence = found.claims.set_index("id").loc["a", "evidence"]
    assert "On ViT, 900 simulated studies of digits test" in evidence
    assert "do not satisfy 1 part: one" in evidence, "all contrasts are needed, and one printed number is outside"
    # Of another margin the reason is the recorded one; where a part held without a contrast, the others were enough.
    parts(record, "one", [0.02, 0.3], reason="yesterday's", claimed_high=0.2)
    found = judged.page(build, "saco/one")
    assert set(found.parts["reason"]) == {"yesterday's"}
    assert set(found.parts["needed"]) == {1}
    assert "do not satisfy" not in found.claims.set_index("id").loc["a", "evidence"]


def test_a_changed_claim_is_shown_as_it_was_judged_and_its_page_says_so(results, tmp_path):
    build, record = results / "saco/one", paths.recorded("saco/one", "study")
    assert reader.caveats(judged.page(build, "saco/one"), {}) == []
    claims = pd.read_csv(build / "claims.csv")
    claims.replace({"Claim a": "A bolder claim"}).to_csv(build / "claims.csv", index=False)
    page = judged.page(build, "saco/one")
    assert page.claims.set_index("id")["claim"].to_dict() == {"a": "Claim a", "b": "Claim b"}
    ((badge, says),) = reader.caveats(page, {})
    assert (badge, "“Claim a”." in says, "Claim b" in says) == (judged.CHANGED, True, False)
    claims.to_csv(build / "claims.csv", index=False)
    about = {
        "claim": "a",
        "part": "one",
        "kind": "within",
        "network": ["pooled", "ViT"],
        "outcome": "holds",
        "value": 0.0,
    }
    about |= {"low": -0.01, "high": 0.01, "claimed_low": -0.1, "images": 9, "datasets": "digits", "missing": 0}
    for now, changed in ((0.1, ""), (0.2, "bars")):
        pd.DataFrame(about | {"claimed_high": now}).to_csv(build / "parts.csv", index=False)
        pd.DataFrame(about | {"claimed_high": 0.1}).to_csv(record / "parts.csv", index=False)
        told = json.loads((record / "provenance.json").read_text())
        told["tables"]["parts"] = {"rows": 2}
        (record / "provenance.json").write_text(json.dumps(told))
        page = judged.page(build, "saco/one")
        assert page.claims.set_index("id").loc["a", "changed"] == changed
        assert bool(reader.caveats(page, {})) == bool(changed)
        scoreboard.write(results, tmp_path / "out")
        text = (tmp_path / "out/claims-saco.md").read_text()
        assert text.count(judged.CHANGED) == bool(changed)
        ends = [text.index(f">#claim-{name}</a>") for name in "ba"]  # the last that is said of each
        assert not changed or ends[0] < text.index(judged.CHANGED) < ends[1], "at a alone"


def test_only_the_changed_one_of_the_claims_of_a_record_is_told(results, tmp_path):
    build, record = results / "saco/one", paths.recorded("saco/one", "study")
    shutil.rmtree(record)
    # The record knows the claim beside the changed one, too, and that of another page of the paper.
    run(record, "study", [("b", "SaCo", REPRODUCED), ("a", "SaCo", PARTLY)], tables={"claims": {}, "parts": {}})
    run(results / "saco/two", "quick", [("d", "SaCo", REPRODUCED)])
    run(paths.recorded("saco/two", "study"), "study", [("d", "SaCo", REPRODUCED)])
    about = {"part": "one", "kind": "within", "outcome": "holds", "value": 0.0, "low": -0.01, "high": 0.01}
    about |= {"claimed_low": -0.1, "claimed_high": 0.1, "images": 9, "datasets": "digits", "missing": 0}
    parts = pd.DataFrame({"claim": ["a", "a", "b", "b"], "network": 2 * ["pooled", "ViT"], **about})
    parts.to_csv(record / "parts.csv", index=False)
    claims = pd.read_csv(build / "claims.csv")
    bolder, wider = claims.replace({"Claim a": "A bolder claim"}), parts.copy()
    of_fewer = claims.replace({"Claim a": "Claim a (asked of 1 of 6 networks: digits)"})
    wider.loc[wider["claim"] == "a", "claimed_high"] = 0.2
    for now, bars, told in (
        (claims, parts, []),
        (bolder, parts, ["a"]),
        (claims, wider, ["a"]),
        (of_fewer, parts, []),
    ):
        now.to_csv(build / "claims.csv", index=False)
        bars.to_csv(build / "parts.csv", index=False)
        scoreboard.write(results, tmp_path / "out")
        each = dict(re.findall(r"(?s){#claim-(\w) (.*?)</details>", (tmp_path / "out/claims-saco.md").read_text()))
        assert set(each) == {"a", "b", "d"}
        assert [name for name, text in each.items() if judged.CHANGED in text] == told
        assert reader.caveats(judged.page(results / "saco/two", "saco/two"), {}) == []


def test_whether_a_claim_is_counted_is_read_off_the_parts_that_are_shown(results):
    build, record = results / "saco/one", paths.recorded("saco/one", "study")
    told = json.loads((record / "provenance.json").read_text())
    told["tables"]["parts"] = {"rows": 2}
    (record / "provenance.json").write_text(json.dumps(told))
    about = {"claim": "a", "part": "one", "network": ["pooled", "ViT"], "outcome": "holds", "value": 1.0, "missing": 0}
    about |= {"low": 1.0, "high": 1.0, "claimed_low": 0.0, "claimed_high": 2.0, "images": 9, "datasets": "digits"}
    for here, there in (("within", "counted"), ("counted", "within")):
        ours = pd.DataFrame(about | {"kind": here})
        ours.to_csv(build / "parts.csv", index=False)
        pd.DataFrame(about | {"kind": there}).to_csv(record / "parts.csv", index=False)
        found = judged.page(build, "saco/one").claims.set_index("id")["counted"]
        assert found["a"] == (there == "counted"), "the record's, which is shown"
        assert not found["b"], "it has no part"
        pd.concat([ours, ours.assign(claim="b")]).to_csv(build / "parts.csv", index=False)
        found = judged.page(build, "saco/one").claims.set_index("id")["counted"]
        assert found.to_dict() == {"a": there == "counted", "b": here == "counted"}, "the record does not know b"


def test_a_claim_that_only_a_larger_run_judges_is_shown_while_the_page_makes_it(results, tmp_path):
    record = paths.recorded("saco/one", "study")
    claims = pd.read_csv(record / "claims.csv")
    alone = pd.concat([claims.head(1).assign(id=of, claim=f"Claim {of}") for of in ("a-long-one", "not-made-now")])
    pd.concat([claims, alone]).to_csv(record / "claims.csv", index=False)
    told = json.loads((record / "provenance.json").read_text())
    told["tables"]["claims"] = {"rows": len(claims) + len(alone)}
    (record / "provenance.json").write_text(json.dumps(told))
    script = tmp_path / "notebooks/saco/one.py"
    script.parent.mkdir(exist_ok=True)
    script.write_text('if False:\n    run.claim(\n        "a-long-one",\n')
    found = judged.page(results / "saco/one", "saco/one").claims.set_index("id")
    assert list(found.index) == ["a", "b", "a-long-one"]
    assert (found.loc["a-long-one", "best"], found.loc["a-long-one", "built_verdict"]) == ("study", "")
    scoreboard.write(results, tmp_path / "out")
    text = (tmp_path / "out/claims-saco.md").read_text()
    assert "Claim not-made-now" not in text
    assert "<dd>It does not ask what this claim is judged on.</dd>" in text


def test_pages_that_a_build_does_not_compare_are_named(tmp_path, results):
    scoreboard.write(results, tmp_path / "out")
    text = (tmp_path / "out/not-compared.md").read_text()
    named = re.findall(r'<a href="\.\./notebooks/(\S+)\.html">', text)
    assert sorted(named) == sorted(NOT_COMPARED)
    assert all((Path(__file__).parents[1] / f"notebooks/{name}.py").is_file() for name in named)


def test_recorded_runs_are_listed_with_what_they_came_from(results, tmp_path):
    scoreboard.write(results, tmp_path / "out")
    said, _, head, _, first, second = (tmp_path / "out/recorded.md").read_text().splitlines()
    assert said.startswith("2 recorded runs took 0.1 hours in all; ")
    assert head == "| Page, profile | Networks | Inputs | Minutes | Cores | Date | Commit, notebook | Ran on |"
    assert first == (
        "| [saco/one](../notebooks/saco/one), study | – | 32 images + 8 texts | 2 | – | 2026-11-21"
        " | `012345678`, made before notebooks were hashed | a processor |"
    )
    assert "`012345678`, `ababababa` |" in second


def test_recorded_runs_count_all_kinds_of_inputs_networks_cores_and_hours(results, tmp_path):
    counted = {"vehicles": 400, "photographs": 300, "ones": 50, "one_draws": 100, "draws": 4, "seed": 0}
    named = {"images": 20, "photographs": "a-folder", "folder_limit": 5000, "photographs_judged": 500}
    used = [{"kind": "network", "name": "a"}, {"kind": "network", "name": "a"}, {"kind": "pretrained", "name": "b"}]
    used += [{"kind": "orders", "name": "c"}]
    runs = [
        {
            "notebook": name,
            "profile": "study",
            "date": "2026-11-21T18:40:01+00:00",
            "commit": "0123456789",
            "seconds": s,
        }
        | {"dirty": False, "gpu": None, "cpu": "a processor", "notebook_sha256": "ab" * 32, "parameters": given, **more}
        for name, given, s, more in (
            ("saco/one", counted, 5400, {"networks": used, "cores": 2}),
            ("trace/two", named, 3600, {"networks": [], "cores": 16}),
            ("template", {"compared": ["a 3"]}, 0, {}),
        )
    ]
    folder = paths.recorded("template", "study")
    folder.mkdir(parents=True)
    for metric, images in (("SaCo", [0, 1, 2]), ("MoRF", [1, 2, 3])):
        kept = Scores.of(torch.rand(3), images=images, dataset="digits test", network="CNN", metric=metric)
        kept.save(folder / f"{metric}.parquet")
    said, _, _, _, *rows = scoreboard._recorded(runs).splitlines()
    assert said.startswith("3 recorded runs took 2.5 hours in all, on machines of 2 or 16 cores; ")
    cells = [row.split(" | ") for row in rows]
    assert [row[1] for row in cells] == ["2", "0", "–"], "each network once, and nothing that is none"
    assert [row[2] for row in cells] == ["400 vehicles + 300 photographs", "20 images + 500 photographs", "4 inputs"]
    assert [row[4] for row in cells] == ["2", "16", "–"]
    assert "No run" in scoreboard._recorded([])


def test_a_run_of_a_commit_that_is_not_here_says_so(results, tmp_path):
    def git(*words):
        named = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
        ran = subprocess.run(["git", "-C", str(tmp_path), *named, *words], check=True, capture_output=True, text=True)
        return ran.stdout.strip()

    (run, other) = runs = recorded_runs()
    assert "history" not in scoreboard._recorded(runs), "a folder without a history cannot tell"
    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "--message", "one")
    here = run | {"commit": git("rev-parse", "HEAD")}
    said, _, _, _, first, second = scoreboard._recorded([here, other]).splitlines()
    assert "Of the runs, 1 names a commit that is not in the history" in said
    assert "not in the history" not in first
    assert "`, not in the history" in second


def test_the_long_tables_are_a_data_set_with_its_dictionary(results, tmp_path):
    runs = [{"notebook": "trace/two", "profile": "study"}]
    assert "No run" in scoreboard._measurements(runs)
    folder = paths.recorded("trace/two", "study")
    scores = Scores.of(torch.rand(3), images=[0, 1, 2], dataset="digits test", network="CNN", metric="MoRF")
    folder.mkdir(parents=True, exist_ok=True)
    scores.save(folder / "the_scores.parquet")
    said, _, _, _, row = scoreboard._measurements(runs).splitlines()
    assert said.startswith("3 rows in 1 files, ")
    page, rows, _, file = row.strip("| ").split(" | ")
    assert (page, rows) == ("[trace/two](../notebooks/trace/two), the scores", "3")
    kept = paths.root() / "data/results" / file.strip("`")
    described = [line.split("`")[1] for line in scoreboard._columns().splitlines()[2:]]
    assert described == list(pd.read_parquet(kept).columns)


def save(folder, name, rows):
    pd.DataFrame(rows).to_csv(folder / f"{name}.csv", index=False)
    told = json.loads((folder / "provenance.json").read_text())
    told["tables"][name] = {"rows": len(rows)}
    (folder / "provenance.json").write_text(json.dumps(told))


@pytest.fixture
def published_table(monkeypatch):
    """One number of Table 8 in place of all."""
    row = {"dataset": "CIFAR-100", "architecture": "ResNet", "model": "original", "masked_fraction": 0.1}
    monkeypatch.setattr(scoreboard.published, "load", lambda name: pd.DataFrame([row | {"accuracy": 0.5}]))


def test_accuracies_under_masks_are_those_of_the_best_run_which_is_named(results, tmp_path, published_table):
    def accuracies(folder, profile, architecture, accuracy):
        run(folder, profile, [])
        row = {"dataset": "mine", "architecture": architecture, "network": "original", "masked": 0.1}
        save(folder, "robustness", [row | {"accuracy": accuracy}])

    accuracies(paths.results("f-fidelity/robustness", "quick"), "quick", "ResNet", 0.6)
    accuracies(paths.recorded("f-fidelity/robustness", "study"), "study", "ResNet", 0.7)
    accuracies(paths.results("f-fidelity/text", "quick"), "quick", "LSTM", 0.8)
    # Of the build's own profile: this build is as good.
    accuracies(paths.recorded("f-fidelity/text", "quick"), "quick", "LSTM", 0.9)
    scoreboard.write(results, tmp_path / "out")
    said = (tmp_path / "out/robustness.md").read_text()
    assert re.sub("<[^>]*>", "", said).splitlines()[2:-2] == [
        "| recorded (study) | mine | ResNet | original | 70.0% |",
        "| published | CIFAR-100 | ResNet | original | 50.0% |",
        "| this build | mine | LSTM | original | 80.0% |",
    ]
    typed = {"recorded": "70.0%", "printed": "50.0%", "built": "80.0%"}
    assert all(f'<span class="faithlab-{look}">{number}</span>' in said for look, number in typed.items())


def test_rates_are_those_of_the_best_run_of_each_page_which_is_named(results, tmp_path):
    def rates(folder, profile, reco, printed):
        run(folder, profile, [])
        row = {"dataset": "digits", "model": "ResNet-18", "condition": "normal", "explainer": "IG"}
        measured = (("ReCo", reco), ("ReCo_printed", printed))
        save(folder, "rates", [row | {"measure": measure, "mean": mean} for measure, mean in measured])

    rates(paths.results("reco-mege/normal", "quick"), "quick", 0.1, 0.2)
    rates(paths.recorded("reco-mege/normal", "study"), "study", 0.3, 0.4)
    rates(paths.results("reco-mege/degraded", "quick"), "quick", 0.5, 0.6)
    scoreboard.write(results, tmp_path / "out")
    degraded, normal = (tmp_path / "out/reco-rates.md").read_text().splitlines()[2:]
    named = "[degraded](../../notebooks/reco-mege/degraded)"
    assert degraded == f"| {named} | this build | digits, ResNet-18 | 0.50<br>0.60 |"
    assert normal.endswith("| recorded (study) | digits, ResNet-18 | 0.30<br>0.40 |")


@pytest.fixture
def correlations() -> pd.DataFrame:
    rows = [
        (metric, "SG", comparison, "macro_correlation", value, value - 0.1, value + 0.2)
        for metric, value in (("F-Fidelity", -0.6), ("Fidelity", 0.5), ("My metric", 0.3), ("Blind", float("nan")))
        for comparison in ("MoRF vs GT", "LeRF vs GT")
    ]
    return pd.DataFrame(rows, columns=["metric", "explainer", "comparison", "level", "mean", "low", "high"])


def test_the_answer_counts_a_negative_correlation_as_right_where_it_should_be_negative(correlations):
    figure = scoreboard._answer(correlations)
    rows = [label.get_text().replace("\n", " ") for label in figure.axes[0].get_yticklabels()]
    assert rows == ["MoRF vs GT", "LeRF vs GT"]
    assert [t.get_text() for t in figure.axes[0].texts].count("SG") == 1  # beside its rows
    names = [label.get_text().replace("\n", "") for label in figure.axes[0].get_xticklabels()]
    shown = {(t.get_position()[0], t.get_position()[1]): t.get_text() for t in figure.axes[0].texts}
    at = {(name, y): shown[x + 0.5, y + 0.5] for x, name in enumerate(names) for y in range(2)}
    assert at["F-Fidelity", 0] == "0.60\n[0.40,\n0.70]"
    assert at["F-Fidelity", 1] == "−0.60\n[−0.70,\n−0.40]"


def test_every_metric_is_in_the_answer_by_itself(correlations):
    figure = scoreboard._answer(correlations)
    names = [label.get_text().replace("\n", "") for label in figure.axes[0].get_xticklabels()]
    assert set(names) == {"F-Fidelity", "Fidelity", "My metric", "Blind"}
    assert sum(text.get_text() == "none" for text in figure.axes[0].texts) == 2


def test_registered_metrics_are_listed_with_how_they_are_asked(results, tmp_path):
    scoreboard.write(results, tmp_path / "out")
    lines = (tmp_path / "out/metrics.md").read_text().splitlines()
    (saco,) = [line for line in lines if line.startswith("| SaCo |")]
    assert saco == "| SaCo |  | probability | original | mean |  | higher | 0 | 1 | 11 | Wu et al. 2024, Algorithm 1 |"
    assert len(lines) == 2 + len(METRICS)
    assert len({line.count("|") for line in lines}) == 1


def test_the_examination_in_words_says_on_how_many_images_it_rests():
    def row(metric, trial, verdict, images, size="all images"):
        return {"metric": metric, "trial": trial, "size": size, "verdict": verdict, "images": images}

    rows = [
        row("A", "Order", "passed", 20),
        row("A", "Truth", "passed", 40),
        row("B", "Order", "failed", 20),
        row("B", "Truth", "does not apply", float("nan")),
        row("A", "Order", "passed", 20, "one image"),
        row("B", "Order", "open", 20, "one image"),
    ]
    price = pd.DataFrame(
        {"metric": ["B", "A"], "forwards": [10.0, 20.0], "each": 1.0, "images_low": 1, "images_high": 2}
    )
    text = scoreboard._examined(pd.DataFrame(rows), price)
    assert "about 20 images" in text
    # Order is passed; so is Truth, which says nothing of this network; five trials could not be put to it.
    assert (
        f"**A**. 1 of 2 metrics passes {scoreboard.TELLING} and fails none: A (1 passed, 0 open, 5 not), "
        "cheapest first. 1 fail one." in text
    )
    assert "Order: 1 of the 2 metrics that can be put to it" in text
    assert "it could try 1 of the 1 metrics named above, and 1 of the 1 in bold" in text
    assert "By its number for one *single* input 1 of 2 metrics passes Order" in text

    elsewhere = [row("A", "Truth", "passed", 40), row("A", "Order", "open", 20), *rows[2:]]
    text = scoreboard._examined(pd.DataFrame(elsewhere), price)
    assert f"None of 2 metrics passes {scoreboard.TELLING} and fails none. 1 fail one, and of 1" in text


def test_of_several_kinds_of_networks_a_table_says_first_what_to_use():
    own = {"size": "all images", "images": 20}
    rows = [
        {"metric": metric, "trial": trial, "verdict": verdict, "kind": kind, **own}
        for kind in ("convolutional", "transformer")
        for metric, of in (("A", ("passed", "open")), ("B", ("passed", "passed")), ("C", ("failed", "passed")))
        for trial, verdict in zip(TRIALS, of, strict=True)
    ]
    price = pd.DataFrame(
        {"kind": kind, "metric": name, "forwards": forwards, "each": 1.0, "images_low": 1, "images_high": 2}
        for kind in ("convolutional", "transformer")
        for name, forwards in (("A", 10.0), ("B", 20.0), ("C", 30.0))
    )
    text = scoreboard._examined(pd.DataFrame(rows), price)
    head, _, first, second = text.splitlines()[:4]
    assert head == "| Network | Use | Or, cheapest first: trials passed / open / not put to it |", "as wide as a phone"
    never = "not put to Own model, Gaming, Stand-in, Repeat"
    said = f"| convolutional | **B**: passes Order, Chance; {never} | A 1 / 1 / 4 |"
    assert first == said, "B passes more, A is cheaper, C fails one"
    assert second.startswith("| transformer | **B**: ")
    assert text.index("dropdown") < text.index("- *convolutional*: **B**. 2 of 3 metrics pass")


def test_what_other_libraries_have_is_among_the_others_to_use():
    own = {"size": "all images", "images": 20, "kind": "images, transformer", "verdict": "passed"}
    names = ("A", "a library: B")
    rows = [{"metric": name, "trial": trial, **own} for name in names for trial in TRIALS]
    other = [row | {"kind": "text, LSTM"} for row in rows if row["metric"] == "A"]
    price = pd.DataFrame(
        {"kind": kind, "metric": name, "forwards": 10.0, "each": 1.0, "images_low": 1, "images_high": 2}
        for kind in ("images, transformer", "text, LSTM")
        for name in names
    )
    first, last, *_ = scoreboard._examined(pd.DataFrame(rows + other), price).splitlines()[2:]
    link = f'<a href="{scoreboard.FAULTS}">a library: B</a>'
    assert first.startswith("| images, transformer | **A**: passes Order, Chance; not put to ")
    assert first.endswith(f"| of other libraries, not taken: {link} 2 / 0 / 4 |")
    assert last.endswith("| none |")


def test_sizes_say_which_true_share_they_miss():
    rows = [(0.1, "oracle", 0.1, 0.09, 0.11), (0.2, "oracle", 0.2, 0.2, 0.2), (0.2, "SG-SQ", None, None, None)]
    sizes = pd.DataFrame(rows, columns=["share", "attribution", "size", "low", "high"])
    assert "Every interval holds the true share." in scoreboard._sizes(sizes)
    text = scoreboard._sizes(sizes.assign(high=[0.08, 0.2, None]))
    assert "The true share is missed by oracle at 0.10 (its interval ends at 0.08). " in text
    text = scoreboard._sizes(sizes.assign(low=[0.13, 0.2, None], high=[0.15, 0.2, None]))
    assert "missed by oracle at 0.10 (its interval begins at 0.13). " in text


def test_single_sizes_stand_with_how_many_hold_the_known_one(results):
    folder = results / "f-fidelity/explanation-size"
    run(folder, "quick", [])
    each = [
        ("oracle", 0.2, 0.19, 0.21),
        ("oracle", 0.2, 0.25, 0.3),
        ("SG-SQ", 0.1, 0.08, 0.12),
        ("SG-SQ", None, None, None),
    ]
    save(folder, "each", [dict(zip(("explainer", "size", "low", "high"), of, strict=True)) for of in each])
    save(folder, "sizes", [{"share": 0.2, "attribution": "oracle"}])
    text = scoreboard._ones(results)
    digits = "| [digits](../notebooks/f-fidelity/explanation-size)"
    assert f"{digits} | truth | 2 of 2 | 0.20 | 1 of 2 |" in text
    assert f"{digits} | SG-SQ | 1 of 2 | 0.10 | 0 of 1 |" in text


def test_simulated_error_rates_are_summed_up_over_the_recorded_claims():
    def rates(claim, runs, reproduced, partly):
        return {"claim": claim, "runs": runs, "reproduced": reproduced, "partly": partly}

    tables = [[rates("a", 300, 3, 30), rates("exempt", 0, 0, 0)], [rates("b", 300, 9, 0)]]
    claims = pd.DataFrame({"id": ["b", "a"], "paper": ["SaCo", "Beyond SaCo"], "claim": ["It is so.", "It goes on."]})
    text = scoreboard._simulated([pd.DataFrame(rows) for rows in tables], claims)
    assert "tables of 2 claims (1 of them on no paper's list), 300 studies" in text
    link = f'<a href="saco/verdict.html#{judged.anchor("b")}">“It is so”</a>'
    assert f"*reproduced* in 2.0%, and in 3.0% for the claim {link}" in text
    assert "*partly* in 5.0%, and in 10.0% for the claim “It goes on”" in text, "its paper has no page of verdicts"
    assert "No recorded run" in scoreboard._simulated([], claims)


TRIALS = ("Order", "Chance")


def test_the_recorded_matrix_says_on_what_it_rests():
    rows = [
        {
            "metric": "A",
            "trial": "Order",
            "size": "all images",
            "verdict": "passed",
            "T": 0.9,
            "low": -0.1,
            "high": 1.0,
            "home": False,
            "kind": kind,
        }
        for kind in ("one", "two")
    ]
    parameters = {"networks": ["x 0", "x 1", "y 0"], "images": 50}
    text = scoreboard.recorded_matrix(Recorded(pd.DataFrame(rows), "study", {"parameters": parameters}))
    assert "profile *study*: 3 networks of 2 kinds, at most 50 inputs of each" in text
    assert text.count("<table") == 2
    assert text.count("0.90<br><small>−0.10–1.00</small>") == 2
    assert "Gaming" not in text.partition("**This build**")[2]
    rows.append(rows[0] | {"trial": "Gaming", "verdict": "failed"})
    text = scoreboard.recorded_matrix(Recorded(pd.DataFrame(rows), "study", {"parameters": parameters}))
    assert "More fails *Gaming*, which it asks of 2 inputs" in text


def test_the_matrix_names_what_it_leaves_out_and_puts_first_what_fails_least():
    def row(metric, trial, verdict, home):
        return {"metric": metric, "trial": trial, "size": "all images", "verdict": verdict, "home": home, "T": -0.001}

    said = {"A": ("failed", "passed"), "B": ("open", "passed"), "C": ("does not apply",) * 2}
    rows = [row(name, trial, v, name == "B") for name, of in said.items() for trial, v in zip(TRIALS, of, strict=True)]
    trust = pd.DataFrame(rows)
    text = scoreboard._matrix(trust)
    assert "<details" not in text
    assert text.index('<th scope="row">B') < text.index('<th scope="row">A')
    assert '<td class="open home" data-label="Order"><b aria-hidden="true">?</b>' in text, "a phone has no columns"
    assert '<span class="sr-only">open</span> 0.00</td>' in text
    assert text.endswith("No trial applies to C.\n")


def test_the_matrix_opens_one_kind_and_says_of_the_others_what_they_come_to():
    def row(metric, trial, verdict, kind):
        return {"metric": metric, "trial": trial, "size": "all images", "verdict": verdict, "home": False, "T": 0.9} | {
            "kind": kind
        }

    rows = [row("A", "Order", "passed", "images"), row("B", "Order", "failed", "images")]
    rows += [row("A", "Order", "open", "text"), row("A", examination.BUILT, "passed", "text")]
    rows += [row("B", "Order", "does not apply", "text")]
    first, second = scoreboard._matrix(pd.DataFrame(rows)).split("<details")[1:]
    assert " open>" in first.partition("<summary>")[0]
    assert " open>" not in second.partition("<summary>")[0]
    said = f"<summary>images: 1 of 2 metrics fails none and passes {scoreboard.TELLING}</summary>"
    assert said in first
    # What it passed is about a network of its own, and B, which nothing could be asked about, is left out.
    said = f"<summary>text: 0 of 1 metrics fail none and pass {scoreboard.TELLING}</summary>"
    assert said in second
    assert '<th scope="row">B' not in second


def test_a_counted_fact_names_the_networks_and_data_of_its_page_and_a_time_its_machine(tmp_path):
    about = {"network": "resnet9", "dataset": "cifar10 test", "metric": "SaCo"}
    Scores.of(torch.rand(3), images=[0, 1, 2], **about).save(tmp_path / "scores.parquet")
    run_of = {"notebook": "saco/one", "gpu": None, "cpu": "a processor"}
    assert judged.counted_on(tmp_path, run_of) == " The page's tables are of ResNet-9 and CIFAR-10 test."
    timed = judged.counted_on(tmp_path, run_of | {"notebook": "cost/one"})
    assert timed.endswith("CIFAR-10 test. Times are of a processor.")
    (tmp_path / "scores.parquet").unlink()
    assert judged.counted_on(tmp_path, run_of) == ""
