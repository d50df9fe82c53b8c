"""Claims on verdict pages and in boxes: the paper's order, the number that decides, marks where they belong."""

import dataclasses
import inspect
import math
import re

import forest
import judged
import pandas as pd
import pytest

from faithstudy import claims
from faithstudy.claims import CONTRADICTED, PARTLY, REPRODUCED, UNDECIDED, UNTESTED, evidence


def row(part, value, low=math.nan, high=math.nan, **more):
    """A row of a table of parts, claimed above 0."""
    known = {"claim": "c", "part": part, "kind": "above", "outcome": "holds", "contrast": "x", "network": "pooled"}
    known |= {"datasets": "digits test", "reason": "", "printed": math.nan, "images": 20, "missing": 0, "needed": 2}
    return known | {"claimed_low": 0.0, "claimed_high": math.inf, "premise": False, "value": value} | {
        "low": low, "high": high
    } | more  # fmt: skip


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


def marks(html, kind):
    """Where the marks of a kind stand, in per cent."""
    return [float(x) for x in re.findall(rf'<i class="{kind}"[^>]*style="left:([\d.]+)%', html)]


@pytest.mark.parametrize(
    "wheres",
    [
        ["Abstract", "Section 2", "Section 10.1", "Appendix A", "Appendix D.2", "Appendix D.10", "beyond the paper"],
        ["Table 1", "Tables 2 and 3", "Section 5.2, Table 3", "Table 4", "Section 6, appendix A"],  # 1: before 5.2
        ["Section 3, Figure 2", "Figure 3", "Section 4", "Table 8, appendix D.2"],
        ["Section 2", "Theorem 3.1", "Section 4"],
        ["Abstract, Table 7", "Section 5", "Section 6, Table 7", "Table 8"],  # the abstract has no tables
    ],
)
def test_claims_stand_in_the_papers_order(wheres):
    claims = pd.DataFrame({"where": wheres})
    for given in (claims, claims.iloc[::-1]):
        assert list(judged.ordered(given)["where"]) == wheres


def test_claims_of_one_place_keep_their_order():
    claims = pd.DataFrame({"where": ["Section 5", "Table 1, section 5", "Section 5"], "id": ["b", "c", "a"]})
    assert list(judged.ordered(claims)["id"]) == ["b", "a", "c"]


def test_a_part_is_judged_by_the_contrast_that_decides_it(parts):
    assert forest.deciding(parts[parts["part"] == "steps"])["contrast"] == "2 - 3"
    below = parts[parts["part"] == "steps"].assign(claimed_low=-math.inf, claimed_high=0.0, outcome="fails")
    assert forest.deciding(below)["contrast"] == "1 - 2"
    assert "2 comparisons, 1 on the other side, the surest to fail “1” less “2”" in forest.plot(below, below.iloc[:0])


@pytest.mark.parametrize(("verdict", "outcome", "turn"), [(REPRODUCED, "holds", 1), (CONTRADICTED, "fails", -1)])
def test_where_all_parts_agree_the_least_sure_speaks(verdict, outcome, turn):
    """It is a matter of the interval, not of the value: 0.5 is nearer to the bar than 0.2, by half of its own."""
    ends = {"first": (0.9, 0.8, 1.0), "second": (0.5, 0.05, 0.95), "third": (0.2, 0.19, 0.21)}
    ends = {name: (of[0] * turn, *sorted((of[1] * turn, of[2] * turn))) for name, of in ends.items()}
    parts = pd.DataFrame([row(name, *of, outcome=outcome) for name, of in ends.items()])
    assert forest.speaking(verdict, parts)["part"].tolist() == ["second"]
    counted = pd.DataFrame([row("all", 5, kind="counted", outcome=outcome)])
    assert forest.speaking(verdict, pd.concat([parts, counted]))["part"].tolist() == ["first"], (
        "a count has no interval"
    )


def test_box_plot_and_evidence_name_the_same_comparison_of_what_is_open():
    """The smallest value is not the least sure one, nor is the first part."""
    far = row("first", 0.2, -0.2, 0.6, outcome="open", contrast="")
    smallest = row("rivals", 0.1, -0.11, 0.31, outcome="open", contrast="a - b")
    nearest = row("rivals", 0.3, -0.9, 1.5, outcome="open", contrast="a - c")
    sure = row("rivals", 0.05, 0.04, 0.06, outcome="open", contrast="a - d")
    parts = pd.DataFrame([far, smallest, nearest, sure])
    parts = pd.concat([parts, parts.assign(network="ResNet-9")], ignore_index=True).assign(images_needed=90)
    said = "Open is 'rivals', in 2 of 3 comparisons, the least sure a − c: 0.3 [−0.9, 1.5]"
    assert said in evidence(parts[parts["part"] == "rivals"])
    assert "The least sure of 2 open parts is 'rivals', in 2 of 3 comparisons, the least sure a − c" in evidence(parts)
    assert "rivals, a − c: <strong>0.3</strong>" in forest.sentence(
        pd.Series({"claim": "A.", "verdict": UNDECIDED}), parts
    )
    assert "the least sure a − c: 0.3" in forest.plot(parts, parts.iloc[:0])


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        (
            REPRODUCED,
            "first: <strong>0.3</strong>, 95&nbsp;% interval 0.1 to 0.5 (printed: 0.2); the claim asks for above 0.",
        ),
        (UNDECIDED, "always, in 5 of 6 cases."),  # what fails is known, whatever the rest may be
        (PARTLY, "always, in 5 of 6 cases."),
        (CONTRADICTED, "always, in 5 of 6 cases."),
        (
            UNTESTED,
            "is it right: <strong>0.9</strong>, 95&nbsp;% interval 0.8 to 1; the claim asks for above 0.5.",
        ),
    ],
)
def test_the_sentence_has_the_number_that_speaks_for_the_verdict(parts, verdict, said):
    text = forest.sentence(pd.Series({"claim": "A < B.", "verdict": verdict}), parts)
    shown = "partly reproduced" if verdict == PARTLY else verdict
    assert f"<strong>{shown}</strong> (of 3 parts 1 holds, 1 fails, 1 is open): " in text
    assert text.endswith(said)
    assert text.startswith("“A &lt; B”")


def test_where_more_parts_fail_than_hold_it_is_said(parts):
    fails = parts[parts["part"] == "first"].assign(part="second", outcome="fails")
    text = forest.sentence(pd.Series({"claim": "A.", "verdict": PARTLY}), pd.concat([parts, fails]))
    said = "<strong>partly reproduced</strong>, and <strong>more of its parts fail than hold</strong>"
    assert f"{said} (of 4 parts 1 holds" in text


def test_an_open_part_that_looks_decided_says_why_and_does_not_speak_for_the_claim(parts):
    looks = parts[parts["part"] == "first"].assign(part="looks", outcome="open", judged_at=0.99)
    text = forest.sentence(pd.Series({"claim": "A.", "verdict": UNDECIDED}), looks)
    assert text.endswith("above 0; as one of several it is judged at 99.00%, and there it is open.")
    assert "it is judged at 99.00%" in forest.plot(looks, looks.iloc[:0])
    apart = looks.assign(judged_at=0.95)
    assert forest.stricter(apart.iloc[0]) == "; open, because not every network's own estimate lies there"
    assert forest.stricter(apart.iloc[0], 3) == "; the part has 3 comparisons, judged together, and is open"
    assert forest.stricter(apart.iloc[0].replace("open", "holds")) == ""
    assert forest.stricter(looks.assign(fewest=5.0).iloc[0], 3) == "; of fewer than 6 inputs it is open"
    assert "99.00%" in forest.stricter(looks.assign(fewest=6.0).iloc[0])
    both = pd.concat([looks, parts[parts["part"] == "steps"].assign(outcome="open", judged_at=0.99)])
    text = forest.sentence(pd.Series({"claim": "A.", "verdict": UNDECIDED}), both)
    assert "steps, “2” less “3”" in text
    assert "99.00%" not in text


def test_of_the_undecided_those_are_counted_of_which_parts_fail_and_none_holds():
    outcomes = {"hold": [0, 1, 1], "depend": [0, 0, 0], "fail": [2, 1, 0]}
    claims = pd.DataFrame({"verdict": ["undecided", "undecided", "reproduced"], **outcomes})
    said = "1 reproduced, 2 undecided (1 of them with parts that fail and none that holds)"
    assert forest.counted_verdicts(claims) == said
    assert forest.counted_verdicts(claims[1:]) == "1 reproduced, 1 undecided"
    assert forest.counted_verdicts(claims[["verdict"]]) == "1 reproduced, 2 undecided"


def test_undecided_says_what_is_settled_where_a_part_fails(parts):
    claim = pd.Series({"claim": "A.", "verdict": UNDECIDED})
    failing = parts[parts["part"].isin(["is it right", "steps", "always"])]
    assert forest.sentence(claim, failing).endswith(f"in 5 of 6 cases. {forest.SETTLED}")
    assert forest.SETTLED not in forest.sentence(claim, parts[parts["part"] == "steps"])
    assert forest.SETTLED not in forest.sentence(claim.replace(UNDECIDED, CONTRADICTED), failing)
    unsure = failing.assign(outcome=failing["outcome"].where(~failing["premise"], "open"))
    assert forest.SETTLED not in forest.sentence(claim, unsure), "it may come out as not tested"


def test_a_claim_without_parts_still_has_its_verdict(parts):
    text = forest.sentence(pd.Series({"claim": "A.", "verdict": REPRODUCED}), parts.iloc[:0])
    assert text == "“A” is <strong>reproduced</strong>."


def test_marks_stand_where_their_numbers_are_on_the_scale_of_their_side(parts):
    html = forest.plot(parts, parts.iloc[:0])
    first = html[html.index("first</div>") : html.index("steps</div>")]
    (printed,), (at,) = marks(first, "printed"), marks(first, "at ")
    (bar,) = marks(first, "bar")
    networks = marks(first, "net")
    # Equal distances of numbers are equal distances on the page: 0, 0.2, 0.3, 0.4.
    step = (printed - bar) / 2
    assert step > 0
    assert [at - bar, *(n - bar for n in networks)] == pytest.approx([3 * step, 3 * step, 4 * step], abs=0.3)
    assert "0.3 [0.1, 0.5]; printed 0.2" in first
    assert "2 comparisons, the least sure “2” less “3”: −0.1 [−0.2, 0.1]" in html
    assert html.index("always") < html.index("premise: is it right"), "premises come last"
    assert '<i class="count" style="width:83.3%">' in html


def test_this_build_stands_beside_the_recorded_run(parts):
    built = parts[parts["part"] == "first"].assign(value=0.25, low=0.2, high=0.3)
    html = forest.plot(parts, built)
    assert html.count('class="at built"') == 1
    assert (
        '<span class="faithlab-printed">printed 0.2</span>; <span class="faithlab-built">this build 0.25 [0.2, 0.3]<'
        in html
    )
    without = built.assign(high=0.28)
    assert "[0.2, 0.28], which does not hold the recorded number" in forest.plot(parts, without)


def test_what_is_printed_far_away_stands_at_the_edge_and_leaves_room_for_ours(parts):
    part = parts[parts["part"] == "first"].assign(printed=50.0)
    html = forest.plot(part, part.iloc[:0])
    assert '<i class="printed beyond" style="left:100.0%' in html
    (at,), (bar,) = marks(html, "at "), marks(html, "bar")
    assert at - bar > 30


def test_a_number_is_one_that_a_reader_knows():
    assert [forest.number(x) for x in (0.12345, -0.5, -0.0, 12345.6, 563)] == ["0.123", "−0.5", "0", "12,346", "563"]
    assert forest.number(-1.73e-18) == "0"
    assert [forest.number(x) for x in (-2.56e-05, 3.91e-06, 999.7)] == ["−0.000026", "0.000004", "1,000"]


def test_what_could_not_be_measured_is_none_and_has_no_mark(parts):
    lost = parts[parts["part"] == "first"].assign(value=math.nan, low=math.nan, high=math.nan)
    html = forest.plot(lost, lost.iloc[:0])
    assert "none; printed 0.2" in html
    assert marks(html, "at ") == []
    assert "nan" not in html
    assert "nan" not in forest.sentence(pd.Series({"claim": "A.", "verdict": UNDECIDED}), lost)


def test_what_was_counted_is_said_in_box_and_evidence(parts):
    counted = parts[parts["network"] != "pooled"].assign(unit="simulated study", images_needed=900)
    cases = [counted.assign(part=name, datasets=name, network=of) for name in "abcde" for of in ("pooled", "made up")]
    made_up = pd.concat(cases, ignore_index=True).assign(outcome="open", low=-1.0, high=1.0)
    assert forest.spoken_of(made_up)["inputs"] == "20 simulated studies of each of 5: a, b, c, d and 1 more"
    comma = made_up.assign(datasets=made_up["datasets"].replace("b", "b, bent"))
    assert forest.spoken_of(comma)["inputs"] == "20 simulated studies of each of 5: a; b, bent; c; d and 1 more"
    assert "On made up, 20 simulated studies of a, b, c, d and e." in evidence(made_up)
    assert ", about 900 simulated studies would decide the claim." in evidence(made_up)
    assert "1 simulated study of" in forest.spoken_of(made_up.assign(images=1))["inputs"]


@pytest.mark.parametrize(
    ("part", "value", "outcome", "said", "cell"),
    [
        ("Fid+ cannot at some size", 0, "fails", "Fid+ cannot at some size: no, it is not so.", "no"),
        ("a is below b", 1, "holds", "a is below b: yes, it is so.", "yes"),
        (
            "a: 4.5 [4.36, 4.66] times",
            0,
            "fails",
            "a: 4.5 [4.36, 4.66] times, which is not as claimed.",
            "not as claimed",
        ),
        ("a: 5.14 [5.01, 5.28] times", 1, "holds", "a: 5.14 [5.01, 5.28] times, which is as claimed.", "as claimed"),
        ("a - b: 102 [87.8, 117] times", 0, "open", "a − b: 102 [87.8, 117] times, which is open.", "open"),
    ],
)
def test_one_case_is_not_counted_but_said(part, value, outcome, said, cell):
    parts = pd.DataFrame([row(part, value, kind="counted", images=1, outcome=outcome)])
    verdict = {"fails": CONTRADICTED, "holds": REPRODUCED, "open": UNDECIDED}[outcome]
    assert forest.sentence(pd.Series({"claim": "A.", "verdict": verdict}), parts).endswith(f": {said}")
    html = forest.plot(parts, parts)
    assert f'{cell}; <span class="faithlab-built">this build {cell}<' in html
    assert "of 1" not in html


def test_still_is_said_once():
    parts = pd.DataFrame([row("a", 0.1, -1, 1, outcome="open")])
    said = [
        forest.sentence(pd.Series({"claim": text, "verdict": UNDECIDED}), parts)
        for text in ("A.", "Still, A.", "A still is.")
    ]
    assert ["is still <strong>" in text for text in said] == [True, False, False]


def test_networks_are_told_by_name_each_once(parts):
    labels = {"ResNet-9": "ResNet-9, 64 features, logit", "CNN": "fine-tuned"}
    of = parts.assign(network=parts["network"].replace(labels), datasets="cifar10 test")
    run = {"networks": [{"kind": "network", "name": "cifar10-resnet9-ab"}]}
    assert forest.spoken_of(of, run) == {"networks": "ResNet-9", "inputs": "20 inputs of CIFAR-10 test"}


def test_what_is_not_there_is_not_spoken_of(parts):
    assert forest.spoken_of(parts) == {"networks": "ResNet-9, CNN", "inputs": "20 inputs of digits test"}
    assert forest.spoken_of(parts[parts["kind"] == "counted"]) == {}


def test_inputs_are_counted_as_the_evidence_counts_them(parts):
    of_network = parts.assign(images=parts["images"].where(parts["network"] == "pooled", 7))
    assert forest.spoken_of(of_network)["inputs"] == "20 inputs of digits test"


@pytest.mark.parametrize(("low", "high", "shown"), [(0.4, 0.6, 2), (0.45, 0.5, 1), (0.02, 0.5, 1), (0.01, 0.99, 0)])
def test_labels_of_an_axis_do_not_overlap(low, high, shown):
    bar = pd.Series({"claimed_low": low, "claimed_high": high})
    assert forest._axis(bar, (0.0, 1.0)).count('<span style="left:') == shown


def test_every_kind_of_part_is_said_in_words():
    makers = {
        name for name in claims.parts.__dict__ if inspect.isfunction(getattr(claims.parts, name)) and name[0] != "_"
    }
    own = {name for name in makers if getattr(claims.parts, name).__module__ == "faithstudy.claims.parts"}
    assert own - {"premise", "some", "most", "timed"} == set(forest.TESTS)  # a timed part is a counted one


def test_of_a_part_for_which_most_are_enough_a_contrast_speaks_that_is_as_claimed(parts):
    steps = parts[parts["part"] == "steps"]
    clear, unclear = steps.iloc[0], steps.iloc[0].to_dict() | {"value": 0.15, "low": -0.1, "contrast": "0 - 1"}
    most = pd.concat([steps, pd.DataFrame([unclear])], ignore_index=True).assign(outcome="holds", needed=1)
    found = "<strong>0.2</strong>, 95&nbsp;% interval 0.1 to 0.3; the claim asks for above 0 in 1 of 3 comparisons."
    assert forest.deciding(most)["contrast"] == clear["contrast"] == "1 - 2"
    text = forest.sentence(pd.Series({"claim": "A.", "verdict": REPRODUCED}), most)
    assert text.endswith(f"steps, “1” less “2”: {found}")
    shown = forest.plot(most, most.iloc[:0])
    assert "3 comparisons, 1 holds, 1 is enough, the least sure of those that hold “1” less “2”" in shown


def test_what_fails_is_seen_first_and_premises_that_hold_come_last():
    parts = pd.DataFrame(
        [
            row("premise that holds", 0.9, 0.8, 1.0, premise=True),
            row("holds", 0.3, 0.1, 0.5),
            row("premise that fails", -0.9, -1.0, -0.8, premise=True, outcome="fails"),
            row("fails", -0.3, -0.5, -0.1, outcome="fails"),
        ]
    )
    text = forest.plot(parts, parts.iloc[:0])
    names = re.findall(r"</b> (?:premise: )?([^<]+)</div>", text)
    assert names == ["fails", "premise that fails", "holds", "premise that holds"]
    assert re.findall(r"</b> ([^<]+)</div>", forest.plot(parts, parts.iloc[:0], {"holds"})) == ["holds"]


def test_of_many_parts_every_outcome_is_in_the_open():
    parts = pd.DataFrame(
        [row(f"fails {k}", -0.3, -0.5, -0.1, outcome="fails") for k in range(10)]
        + [row(f"holds {k}", 0.3, 0.1, 0.5) for k in range(3)]
        + [row("open", 0.1, -0.1, 0.3, outcome="open")]
    )
    shown = forest.in_the_open(parts)
    assert len(shown) == forest.ROWS
    assert {"holds 0", "holds 1", "holds 2", "open", "fails 0", "fails 3"} <= shown
    few = parts.iloc[:3]
    assert forest.in_the_open(few) == {"fails 0", "fails 1", "fails 2"}


def test_what_is_ten_times_as_wide_has_a_scale_of_its_own():
    """Probabilities and logits on one axis would leave dots of the former."""
    rows = [
        row("p, one", 0.2, 0.1, 0.3),
        row("y, one", 7.0, 1.0, 13.0),
        row("p, two", 0.4, -0.1, 0.9),
        row("y, two", 4.0, 3.0, 5.0),
        row("cases", 3, kind="counted", images=6),
    ]
    parts = pd.DataFrame(rows)
    html = forest.plot(parts, parts.iloc[:0])
    assert html.count('"part axis"') == 2
    names = re.findall(r'class="name"><b.*?</b> (.*?)</div>', html)
    assert names == ["p, one", "p, two", "y, one", "y, two", "cases"], "those on one scale stand together"
    near = pd.DataFrame([*rows[:1], row("y, near", 1.0, 0.2, 2.0)])
    assert forest.plot(near, near.iloc[:0]).count('"part axis"') == 1


def test_tiles_have_the_number_that_speaks_for_their_claim(parts):
    claims = pd.DataFrame({"id": ["c", "d"], "paper": "SaCo", "where": "", "claim": "A.", "verdict": [REPRODUCED] * 2})
    page = judged.Page("saco/one", claims, parts, parts.iloc[:0], {}, {})
    numbers = forest.deciding_numbers([page])
    assert numbers == {"c": "first: 0.3 [0.1, 0.5]"}
    assert forest.tiles(claims, "", numbers).count(' data-number="first: 0.3 [0.1, 0.5]"') == 1
    assert "data-number" not in forest.tiles(claims, "")
    failing = dataclasses.replace(page, claims=claims.assign(verdict=CONTRADICTED))
    assert forest.deciding_numbers([failing]) == {"c": "always, in 5 of 6 cases"}


def test_a_claim_that_is_not_reproduced_says_why_with_each_question_once(parts):
    about = {"paper": "SaCo", "page": "saco/one", "where": "Table 1", "claim": "It holds.", "evidence": "None."}
    about |= {"best": "", "built_verdict": "", "built": "", "changed": "", "images_needed": math.nan}
    parts = parts.assign(judged_at=0.05)
    asked = {"claim": "c", "what tells": "a < b", "found (inputs, run)": "0.1 (5, recorded)", "answer": "yes, above 0"}
    asked = pd.DataFrame(
        [{"question": "Too few?", **asked}] * 2 + [{"question": "Too new?", **asked, "claim": "other"}]
    )
    for verdict, shown in ((UNDECIDED, 1), (REPRODUCED, 0)):
        claims = pd.DataFrame([{"id": "c", "verdict": verdict, **about}])
        page = judged.Page("saco/one", claims, parts, parts.iloc[:0], {}, {}, asked)
        html = forest.verdicts([page], "SaCo")
        assert html.count("<summary>Why?</summary>") == shown
        assert (html.count("Too few?"), html.count("a &lt; b"), "Too new?" in html) == (shown, 2 * shown, False)
