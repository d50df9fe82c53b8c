"""Claims on verdict pages and in boxes: the number that decides, one estimate a row, plots that show it."""

import math
import re

import forest
import judged
import pandas as pd
import pytest

from faithstudy import paths
from faithstudy.claims import CONTRADICTED, PARTLY, REPRODUCED, UNDECIDED, UNTESTED, VERDICTS
from faithstudy.claims.verdicts import MOSTLY_FAILS, NOT_KNOWN, OWN, REFUTED_IN_PART, SIZES, YES


def row(part, value, low=math.nan, high=math.nan, **more):
    """A row of a table of parts, claimed above 0."""
    known = {"claim": "c", "part": part, "kind": "above", "outcome": "holds", "contrast": "x", "network": "pooled"}
    known |= {"datasets": "digits test", "reason": "", "printed": math.nan, "images": 20, "needed": 2, "unit": "input"}
    known |= {"claimed_low": 0.0, "claimed_high": math.inf, "premise": False}
    return known | {"value": value, "low": low, "high": high} | more


@pytest.fixture
def parts():
    return pd.DataFrame(
        [
            row("is it right", 0.9, 0.8, 1.0, premise=True, claimed_low=0.5),
            row("first", 0.3, 0.1, 0.5, printed=0.2),
            row("first", 0.3, network="ResNet-9"),
            row("first", 0.4, network="CNN"),
            row("steps", 0.2, 0.1, 0.3, outcome="open", contrast="1 - 2"),
            row("steps", -0.1, -0.2, 0.1, outcome="open", contrast="2 - 3"),
            row("always", 5, kind="counted", claimed_low=-math.inf, images=6, outcome="fails"),
        ]
    )


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        (REPRODUCED, "first: 0.30 [0.10, 0.50] (claimed: above 0; 20 inputs)."),
        (OWN[REPRODUCED], "first: 0.30 [0.10, 0.50] (claimed: above 0; 20 inputs)."),
        (UNDECIDED, "steps, 2 - 3: −0.10 [−0.20, 0.10] (claimed: above 0; 20 inputs)."),
        (MOSTLY_FAILS, "always: 5 of 6 cases (claimed: all cases)."),
        (REFUTED_IN_PART, "always: 5 of 6 cases (claimed: all cases)."),
        (PARTLY, "always: 5 of 6 cases (claimed: all cases)."),
        (CONTRADICTED, "always: 5 of 6 cases (claimed: all cases)."),
        (UNTESTED, "is it right: 0.90 [0.80, 1.00] (claimed: above 0.5; 20 inputs)."),
    ],
)
def test_the_sentence_has_the_number_that_decides(parts, verdict, said):
    text = forest.sentence(pd.Series({"claim": "A < B.", "verdict": verdict}), parts)
    counts = " (1 of 3 parts holds, 1 open, 1 fails; 2 of 3 comparisons are on the claimed side)"
    counts = "" if verdict in (REPRODUCED, OWN[REPRODUCED]) else counts
    assert text == f"“A &lt; B”: <strong>{verdict}</strong>{counts}. {said}"


def test_a_claim_that_our_data_do_not_test_says_why(parts):
    text = forest.sentence(pd.Series({"claim": "A.", "verdict": UNTESTED, "untested": "the data are scans"}), parts)
    assert text.endswith("1 fails; 2 of 3 comparisons are on the claimed side). the data are scans.")


def test_of_several_comparisons_the_one_that_decides_is_named(parts):
    open_ = parts[parts["part"] == "steps"]
    assert forest.decisive(UNDECIDED, open_).startswith("steps, 2 - 3: −0.10 [−0.20, 0.10]")


def test_a_claim_without_parts_still_has_its_verdict(parts):
    assert forest.sentence(pd.Series({"claim": "A.", "verdict": REPRODUCED}), parts.iloc[:0]).endswith("</strong>.")


def test_one_case_is_not_counted_but_said():
    one = pd.Series(row("so", 1, kind="counted", images=1))
    assert [forest.measured(one.replace("holds", of)) for of in ("holds", "fails")] == ["as claimed", "not as claimed"]


def cells(html):
    rows = [re.findall(r"<t[hd]>(.*?)</t[hd]>", text) for text in re.split("<tr", html)[1:]]
    return [dict(zip(rows[0], of, strict=True)) for of in rows[1:]]


def test_a_row_has_one_estimate_each_networks_own_and_what_is_published(parts):
    found = cells(forest.numbers(parts))
    assert list(found[1]) == ["part", "contrast", "outcome", "measured", "ResNet-9", "CNN", "published", "claimed"]
    first = found[1]
    assert (first["measured"], first["published"], first["claimed"]) == ("0.30 [0.10, 0.50]", "0.2", "above 0")
    assert (first["ResNet-9"], first["CNN"]) == ("0.30", "0.40"), "as many digits as the estimate"
    assert [of["part"] for of in found] == ["premise: is it right", "first", "steps", "", "always"]
    assert found[-1]["measured"] == "5 of 6 cases"


def test_many_networks_share_a_column(parts):
    first = parts[parts["part"] == "first"]
    many = pd.concat([first.iloc[:1], *(first.iloc[1:2].assign(network=f"net {k}") for k in range(forest.FEW + 1))])
    (found,) = cells(forest.numbers(many))
    assert found["networks"].startswith("net 0 0.30; net 1 0.30")


def drawn(parts):
    figure = forest.figure([("", parts)])
    labels = [[text.get_text() for text in axes.get_yticklabels()] for axes in figure.axes]
    return figure, dict(zip(map(tuple, labels), figure.axes, strict=True))


def test_marks_stand_where_their_numbers_are_on_the_axis_of_their_side(parts):
    _, panels = drawn(parts)
    axes = panels["first", "steps: 1 - 2", "steps: 2 - 3"]
    dots = [(line.get_marker(), *line.get_xdata()) for line in axes.lines if line.get_marker() != "None"]
    assert ("o", 0.3) in dots
    assert ("o", 0.3, 0.4) in dots, "each network"
    assert ("D", 0.2) in dots, "published"
    assert axes.texts[0].get_text() == "0.30 [0.10, 0.50]"
    (side,) = axes.patches
    assert side.get_x() == pytest.approx(0), "shaded from the bar on"
    assert ("is it right",) not in panels, "a premise that holds"
    failing = parts.assign(outcome=parts["outcome"].where(~parts["premise"], "fails"))
    assert ("is it right",) in drawn(failing)[1], "another bar, another axis"
    assert all("always" not in label for of in panels for label in of), "what is counted has no interval"
    assert forest.figure([("", parts[parts["kind"] == "counted"])]) is None


def test_what_is_ten_times_as_wide_has_an_axis_of_its_own():
    wide, alike, narrow = row("wide", 2, 1, 3), row("alike", 0.5, 0.4, 0.6), row("narrow", 0.1, 0.05, 0.15)
    _, panels = drawn(pd.DataFrame([wide, alike, narrow]))
    assert set(panels) == {("wide",), ("alike", "narrow")}


def test_a_claim_with_many_contrasts_has_a_line_for_each_part_and_what_fails_first():
    rows = [row(f"part {k}", 0.2, 0.1, 0.3, contrast=f"{n}") for k in range(forest.ROWS + 6) for n in range(2)]
    rows += [row("last", -0.2, -0.3, -0.1, outcome="fails")]
    (_, own), *_ = forest.shown([("", pd.DataFrame(rows))])
    assert len(own) == forest.ROWS
    assert own["part"].iloc[0] == "last"


def page(parts, reasons=None):
    claims = [{"id": "c", "paper": "SaCo", "where": "Table 1", "claim": "It is so.", "evidence": "1 of 4 parts holds."}]
    reasons = pd.DataFrame(columns=["question", "claim"]) if reasons is None else reasons
    claims = pd.DataFrame(claims).assign(verdict=PARTLY, page="saco/one", follows="", blind="")
    return judged.Page("saco/one", claims, parts, reasons, {"parameters": {}})


def test_a_verdict_page_has_a_list_then_each_claim_with_its_plot_and_folded_numbers(parts, tmp_path):
    twice = pd.DataFrame({"question": ["Too small?", "Too small?"], "answer": ["yes", "no"], "claim": "c"})
    text = forest.verdicts([page(parts, twice)], "SaCo", tmp_path, lambda page: [("Small", "It is small.")])
    assert "**1 claims: 1 partly.**" in text
    assert "| ◐ | [It is so.](#claim-c) | partly | 1 of 3 parts holds, 1 open, 1 fails; 2 of 3 comparisons" in text
    assert "{#claim-c .faithlab-claim}\n**◐ partly.** It is so. 1 of 4 parts holds." in text
    assert 'src="../../forest/c.svg"' in text
    assert (tmp_path / "c.svg").is_file()
    assert "<dd>Small: It is small.</dd>" in text
    assert "<code>make notebook NAME=saco/one</code>" in text
    assert text.count("Too small?") == 1, "each question once"
    assert text.count("0.30 [0.10, 0.50]") == 1


def test_claims_that_are_alike_share_a_heading_and_a_plot_and_none_is_lost(parts, tmp_path):
    claims = pd.DataFrame({"id": ["a", "b", "c"], "paper": "SaCo"})
    alike = [{"says": "The same", "claims": {"c": "on c", "a": "on a", "gone": "not here"}}]
    (says, first), (alone, second) = judged.grouped(claims, alike)
    assert (says, list(first["id"]), list(first["own"])) == ("The same", ["a", "c"], ["on a", "on c"])
    assert (alone, list(second["id"])) == ("", ["b"])


@pytest.fixture
def scored():
    """Five claims of two papers, of which two are left out of sums."""
    claims = pd.DataFrame({"paper": ["SaCo", "SaCo", "SaCo", "TRACE", "TRACE"]})
    claims = claims.assign(verdict=[REPRODUCED, PARTLY, REPRODUCED, REPRODUCED, REPRODUCED], stable=[0.5, 0, 0.1, 1, 1])
    claims = claims.assign(follows=["", "", "", "an identity", ""], blind=["", "", "", "", "a fixed map"])
    sizes = dict(zip(SIZES, (1, 2, 0), strict=True))
    return claims.assign(generalises=[YES, "", NOT_KNOWN, YES, YES], **sizes)


def test_the_scoreboard_counts_verdicts_by_paper_and_leaves_out_what_had_to_come_out_so(scored):
    verdicts, _, beside = forest.overview(scored).partition("*Left out*")
    lines = verdicts.splitlines()
    assert lines[0].startswith(
        "| Paper | Claims | ✓ reproduced | ◐ partly | ◔ mostly fails | ⊘ refuted in part | ✗ contr"
    )
    assert lines[2:4] == [
        "| [SaCo](saco/verdict) | 3 | 2 | 1 | 0 | 0 | 0 | 0 | 0 | 0 |",
        "| [TRACE](trace/verdict) | 2 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 2 |",
    ]
    head, _, saco, trace = beside.splitlines()[-4:]
    assert "| Other trainings: yes | Other trainings: not known |" in head
    assert "A random order does in over 25%" in head
    assert saco == "| [SaCo](saco/verdict) | 2 | 1 | 1 | 0 | 1 | 2 | 4 | 0 |"
    assert trace == "| [TRACE](trace/verdict) | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |"
    assert forest.counted(scored) == "2 reproduced, 1 partly, 2 true by construction or passed by a blind control"


def test_a_reproduced_claim_is_listed_with_what_keeps_it_from_saying_more(scored, parts):
    said = forest.beside(scored.iloc[0], parts, [(forest.LOOKED, "It was open.")])
    assert said == (
        "printed numbers: 1 agrees in size, 2 compatible, not precise; over other trainings: yes; "
        "a random order satisfies it in 50%; after a first look"
    )
    assert forest.beside(scored.iloc[3], parts).startswith("true by construction; ")
    assert forest.beside(scored.iloc[1], parts).startswith("1 of 3 parts holds")


def test_every_verdict_has_a_sign_and_a_look():
    looks = {
        verdict: re.search(r'faithlab-badge (\w+)"><span aria-hidden="true">(.)<', forest.badge(verdict)).groups()
        for verdict in VERDICTS
    }
    css = (paths.root() / "book/_static/faithlab.css").read_text(encoding="utf-8")
    assert all(f".{look} {{" in css for look, _ in looks.values())
    assert looks[OWN[CONTRADICTED]] == looks[CONTRADICTED] == ("fails", "✗")
    assert looks[OWN[REPRODUCED]] == looks[REPRODUCED] == ("holds", "✓")
