"""A question has one answer, other numbers like it say how they differ, and claims that are alike stand together."""

import math
import re

import asked
import forest
import judged
import pandas as pd
import pytest
import torch
import yaml

from faithlab.scores import Scores
from faithstudy import paths, published
from faithstudy.claims import REPRODUCED, UNDECIDED
from faithstudy.records import recorded

QUESTION = {
    "question": "Is A better?",
    "short": "A is better",
    "claim": "one",
    "most": 2,
    "contrasts": r"A[+-] - B[+-]",
    "means": "It is a difference.",
    "unsure": "Not [there](notebooks/x/y).",
    "others": {"two": "other data"},
    "besides": ["[Home](book/home) is no number."],
}


def page(name, claim, rows, verdict=REPRODUCED):
    known = {"claim": claim, "kind": "better", "premise": False, "outcome": "holds", "printed": math.nan}
    known |= {"images": 40, "datasets": "digits test", "claimed_low": 0.0, "claimed_high": math.inf}
    parts = pd.DataFrame([known | row for row in rows])
    parts = pd.concat([parts.assign(network="pooled"), parts.assign(network="CNN")], ignore_index=True)
    row = {"id": claim, "paper": "SaCo", "verdict": verdict, "claim": "A > B.", "best": "study", "counted": False}
    return judged.Page(name, pd.DataFrame([row]), parts, parts.iloc[:0], {}, {})


@pytest.fixture
def pages():
    one = [{"part": p, "contrast": "A+ - B+", "value": v, "low": v - 0.1, "high": v + 0.1} for p, v in (("u", 1.0),)]
    one[0]["printed"] = 0.25
    two = [{"part": "p", "contrast": "A- - B-", "value": 0.5, "low": -0.5, "high": 1.5}]
    three = [{"part": "p", "contrast": "A+ - C+", "value": 0.7, "low": 0.5, "high": 0.9}]
    return [page("a", "one", one), page("b", "two", two, UNDECIDED), page("c", "three", three)]


def test_the_answer_has_its_number_what_it_rests_on_and_one_link(pages):
    text = asked.answers(pages, [QUESTION])
    assert text.startswith("## Is A better?\n")
    interval = "95&nbsp;% interval 0.9 to 1.1 (printed: 0.25)."
    assert f"Yes: A is better, for u by <strong>1</strong> (at most 2), {interval}" in text
    assert "the recorded run, profile study, on 40 inputs of digits test and 1 network (CNN)" in text
    assert "More images would hardly change it; another network might." in text
    assert set(re.findall('href="([^"]*)"', text)) == {"saco/verdict.html#claim-one"}
    assert "[there](../notebooks/x/y)" in text
    assert "0.5" not in text, "the numbers of other claims stand below the claim"


CELL = {"dataset": "digits test", "network": "CNN", "explainer": "u"}


def degraded(metric, explainer, falls):
    """Scores of explanations made worse twice, all images alike but for a little noise."""
    noise = torch.linspace(-0.01, 0.01, 100)
    about = {"dataset": "digits test", "network": "CNN", "metric": metric, "explainer": explainer}
    levels = [{}, {"level": 0.5, "noise_seed": 0}, {"level": 1.0, "noise_seed": 0}]
    return [Scores.of(noise - falls * k, images=range(100), **about, **level) for k, level in enumerate(levels)]


def test_what_came_out_for_the_other_direction_is_said_whichever_way_it_came_out(pages, tmp_path):
    pages[0].claims["page"], pages[0].claims["best"] = "a", ""
    pages[0].parts["part"] = "u"
    (tmp_path / "a").mkdir()
    (tmp_path / "a/provenance.json").write_text('{"profile": "quick"}')
    question = QUESTION | {
        "other_ways": [
            {"says": "The least relevant first", "metrics": ["A-", "B-"]},
            {"says": "Elsewhere, the other sign", "metrics": ["A-", "B-"], "page": "b", "better": 1, "micro": True},
            {"says": "Not built", "metrics": ["A-", "B-"], "page": "c"},
        ]
    }
    for (mine, rival), said in {
        (-1, 1): "for u yes, 2 [2, 2]",
        (1, -1): "for u the reverse, −2 [−2, −2]",
        (1, 1): "for u no difference, 0 (no interval)",
    }.items():
        rows = degraded("A-", "u", mine) + degraded("B-", "u", rival)
        Scores.concat(rows).save(tmp_path / "a/scores.parquet")
        assert f" The least relevant first: {said}." in asked.answers(pages, [question], tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    Scores.concat(degraded("A-", "u", -1) + degraded("B-", "u", 1)).save(tmp_path / "b/scores.parquet")
    found = asked.answers(pages, [question], tmp_path)
    assert re.search(r" Elsewhere, the other sign \(\d+ inputs\): for u the reverse, −2 \[−2, −2\]\.\n", found)
    assert "Not built" not in found
    assert "The least relevant" not in asked.answers(pages, [question])


def test_sizes_that_a_page_has_for_another_question_are_left_out():
    rows = Scores.of(torch.tensor([[0.1, 0.2, 9.0]]), images=[0], sizes=(0.5, 0.9, 1.0), metric="A", **CELL)
    (block,) = asked._below(rows, 1)
    assert block.sizes == (0.5, 0.9)
    assert block.values[0].tolist() == pytest.approx([0.1, 0.2])


def test_an_answer_that_is_open_says_so(pages):
    text = asked.answers(pages, [QUESTION | {"claim": "two"}])
    assert "It is not known: A is better, for p by <strong>0.5</strong>" in text
    assert "More images might change it; another network might." in text


def test_other_numbers_stand_below_the_claim_with_how_they_differ(pages):
    found = asked.related(pages, [QUESTION])
    assert list(found) == ["one"]
    rows = re.findall("<tr><td>(.*?)</tr>", found["one"])
    assert len(rows) == 1, "A against C is no such number, and the claim's own are above"
    assert rows[0].startswith("Other data. ")
    assert "0.5 [−0.5, 1.5]" in rows[0]
    assert "- [Home](../../book/home) is no number." in found["one"]


def test_what_is_said_below_a_claim_is_markdown_of_its_own(pages, monkeypatch):
    monkeypatch.setattr(judged, "grouped", lambda claims: [judged.Group("", claims.assign(own=""))])
    monkeypatch.setattr(forest, "grouped", judged.grouped)
    pages[0].claims["where"], pages[0].claims["page"] = "Table 1", "a"
    pages[0].claims[["evidence", "built", "built_verdict"]] = "", "", REPRODUCED
    pages[0].parts[["reason", "judged_at", "needed"]] = "", 0.95, 1
    text = forest.verdicts(pages[:1], "SaCo", related={"one": "**It** is.\n"})
    assert "</div>\n\n**It** is.\n\n<details" in text


def test_a_number_like_the_answer_of_which_nothing_is_said_is_an_error(pages):
    with pytest.raises(ValueError, match=r"how they differ, got nothing: \['two'\]"):
        asked.related(pages, [QUESTION | {"others": {}}])


def test_a_question_whose_claim_is_not_in_the_build_is_left_out(pages):
    assert asked.answers(pages[1:], [QUESTION]) == ""
    assert asked.related(pages[1:], [QUESTION]) == {}


def written() -> set[str]:
    """The ids of all claims of all notebooks."""
    text = "".join(path.read_text() for path in (paths.root() / "notebooks").rglob("*.py"))
    return set(re.findall(r"""["']([a-z]+-[a-z0-9-]+)["']""", text))


def test_what_is_declared_is_a_claim_of_a_notebook():
    alike = yaml.safe_load((paths.root() / "book/alike.yml").read_text())
    groups = [group["claims"] for of in alike.values() for group in of]
    names = [name for group in groups for name in group]
    assert set(names) <= written()
    assert len(names) == len(set(names)), "a claim stands in one group"
    assert all(len(group) > 1 for group in groups)
    assert {name for of in asked.declared() for name in (of["claim"], *of["others"])} <= written()


def claims(*ids, **more):
    table = pd.DataFrame({"id": ids, "paper": "SaCo", "verdict": REPRODUCED, "claim": ids})
    return table.assign(where=[f"Section {k + 1}" for k in range(len(ids))], **more)


ALIKE = [{"says": "The same", "claims": {"d": "on d", "b": "on b"}}, {"says": "Gone", "claims": {"c": "c", "x": "x"}}]


def test_claims_that_are_alike_stand_at_the_place_of_the_first_and_none_is_lost():
    groups = judged.grouped(claims("a", "b", "c", "d"), ALIKE)
    assert [(group.says, list(group.claims["id"])) for group in groups] == [
        ("", ["a"]),
        ("The same", ["d", "b"]),
        ("", ["c"]),  # the other is not in the build
    ]
    assert list(groups[1].claims["own"]) == ["on d", "on b"]


def test_what_is_counted_has_a_sign_of_its_own():
    estimated, counted = (forest.tiles(claims("a", counted=is_so), "") for is_so in (False, True))
    assert 'class="faithlab-tile reproduced"' in estimated
    assert 'class="faithlab-tile reproduced counted"' in counted
    assert ">✓<" in estimated
    assert ">#✓<" in counted
    assert 'aria-label="reproduced, counted and not estimated: a"' in counted
    assert "#✓" in forest.badge(REPRODUCED, "x", counted=True)


def test_where_roar_itself_differs_from_print_it_is_said():
    """The sentence on ROAR's own order is typed: print and the recorded run have to say it, too."""
    assert (
        "the paper's ROAR has the order right, too, though less well than F-Fidelity; here it has it the wrong way"
        in (asked.declared()[0]["means"])
    )
    pick = {"level": "macro_correlation", "comparison": "MoRF vs GT", "explainer": "SG-SQ"}
    printed = published.load("ffidelity_correlations")
    kept = recorded("f-fidelity/images", "correlations").frame
    of = {}
    for name, table in (("print", printed[printed["table"] == 1]), ("here", kept)):
        rows = table[(table[list(pick)] == pd.Series(pick)).all(axis=1)]
        of[name] = -rows.groupby("metric")["mean"].mean()  # most relevant first: -1 is the right order
    assert 0 < of["print"]["ROAR"] < of["print"]["F-Fidelity"]
    assert of["here"]["ROAR"] < 0 < of["here"]["F-Fidelity"]


def test_where_f_fidelity_does_worse_than_plain_removal_the_guideline_says_so():
    """Its sentence is typed: the recorded run of the findings has to say it, too, away from F-Fidelity's own trial."""
    text = (paths.root() / "book/f-fidelity/guideline.md").read_text(encoding="utf-8")
    assert "by other papers' trials F-Fidelity can do worse than plain removal" in text
    away = recorded("across/rivals", "away").frame
    rows = away[away["pair"].isin(["FFid+ > Fid+", "FFid- > Fid-"]) & (away["trial"] != "Order")]
    assert (rows["high"] < 0).any()
