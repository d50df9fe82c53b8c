"""The verdicts on Few-class Fidelity follow from the tables, and missing numbers are never a verdict."""

import math

import pandas as pd
import pytest

from faithlab.study import claims, few_class, published
from faithlab.study.claims import FAILED, PARTLY, REPRODUCED, UNTESTED


def verdicts(of_page, **tables) -> dict[str, str]:
    return claims.judge(of_page, tables).set_index("id")["verdict"].to_dict()


def winners(fallback: dict[str, float], blur: dict[str, float]) -> pd.DataFrame:
    """100 images of each task, of which these shares fall back."""
    rows = [(t, i < 100 * fallback[t], i < 100 * blur[t]) for t in fallback for i in range(100)]
    return pd.DataFrame(rows, columns=["task", "fallback", "blur_fallback"])


def stand_ins(optimised, others, novelty, fixed) -> pd.DataFrame:
    """U and how well it can be told, of the optimised reference and of all others, in two tasks."""
    rows = []
    for task in ("a", "b"):
        for reference in ("black", "white", "mean", "blur", "optimised"):
            own = reference == "optimised"
            rows.append((task, reference, 0.05, optimised if own else others, novelty if own else fixed))
    return pd.DataFrame(rows, columns=["task", "reference", "delta", "uncertainty", "detectability"])


@pytest.mark.parametrize(
    ("found", "blur", "unsure", "told", "expected"),
    [
        ({"a": 0.02, "b": 0.0}, {"a": 0.3, "b": 0.1}, (0.04, 0.3), (0.6, 0.9), (REPRODUCED,) * 4),
        ({"a": 0.02, "b": 0.3}, {"a": 0.3, "b": 0.3}, (0.06, 0.3), (0.9, 0.9), (PARTLY, PARTLY, PARTLY, FAILED)),
        ({"a": 0.1, "b": 0.3}, {"a": 0.1, "b": 0.3}, (0.3, 0.04), (1.0, 0.9), (FAILED, FAILED, FAILED, FAILED)),
        (
            {"a": 0.0, "b": 0.0},
            {"a": 0.3, "b": 0.1},
            (math.nan, 0.3),
            (math.nan, 0.9),
            (REPRODUCED,) * 2 + (UNTESTED,) * 2,
        ),
    ],
)
def test_perturbations_are_judged_in_both_tasks(found, blur, unsure, told, expected):
    judged = verdicts(few_class.PERTURBATIONS, winners=winners(found, blur), references=stand_ins(*unsure, *told))
    assert tuple(judged.values()) == expected


def printed(*numbers: int) -> pd.DataFrame:
    """The paper's own tables as if they were measured."""
    names = {"few-class fidelity": "fidelity", "object localisation IoU": "iou", "Dice": "dice"}
    table = published.load("fewclass_scores")
    table = table[table["table"].isin(numbers)].replace({"measure": names})
    return table.rename(columns={"model": "network", "value": "mean"})[
        ["network", "explainer", "refinement", "measure", "mean"]
    ]


def test_the_papers_own_numbers_say_what_the_paper_says_of_photographs():
    judged = verdicts(few_class.NATURAL, summary=printed(1, 3))
    assert judged == {
        "fc-sg": REPRODUCED,
        "fc-eg": REPRODUCED,
        "fc-bp": REPRODUCED,
        "fc-random-natural": PARTLY,  # in Table 1 BP + XRAI of DenseNet-121 is below its Random
        "fc-xrai-iou": REPRODUCED,
        "fc-alignment-natural": REPRODUCED,
    }


def test_the_papers_own_numbers_say_what_the_paper_says_of_ct():
    assert set(verdicts(few_class.MASKS, summary=printed(2, 4)).values()) == {REPRODUCED}


def opposite_of(*numbers: int) -> pd.DataFrame:
    """Fidelity turned round, alignment as it was."""
    table = printed(*numbers)
    return table.assign(mean=(1 - table["mean"]).where(table["measure"] == "fidelity", table["mean"]))


def test_the_opposite_is_not_reproduced():
    natural = verdicts(few_class.NATURAL, summary=opposite_of(1, 3))
    assert {claim for claim, found in natural.items() if found == REPRODUCED} == {"fc-xrai-iou"}  # of alignment alone
    masks = verdicts(few_class.MASKS, summary=opposite_of(2, 4))
    assert {claim for claim, found in masks.items() if found == REPRODUCED} == {"fc-convergence"}  # both turned round


@pytest.mark.parametrize(("page", "numbers"), [(few_class.NATURAL, (1, 3)), (few_class.MASKS, (2, 4))])
@pytest.mark.parametrize("lost", ["everything", "one explainer"])
def test_missing_numbers_are_no_verdict(page, numbers, lost):
    table = printed(*numbers)
    gone = table["explainer"].isin(["EG"] if lost == "one explainer" else few_class.EXPLAINERS)
    judged = verdicts(page, summary=table.assign(mean=table["mean"].mask(gone)))
    assert set(judged.values()) == {UNTESTED}


@pytest.mark.parametrize(("page", "numbers"), [(few_class.NATURAL, (1, 3)), (few_class.MASKS, (2, 4))])
def test_ids_are_unique_and_evidence_has_numbers(page, numbers):
    judged = claims.judge(page, {"summary": printed(*numbers)})
    assert judged["id"].is_unique
    assert judged["evidence"].str.contains(r"\d").all()


def test_all_ids_of_the_paper_are_unique():
    ids = [claim.id for page in (few_class.PERTURBATIONS, few_class.NATURAL, few_class.MASKS) for claim in page]
    assert len(ids) == len(set(ids)) == 14


def test_differences_from_random_are_paired():
    scores = pd.DataFrame(
        [
            ("n", e, r, i, value)
            for (e, r), values in {
                ("BP", "none"): (0.6, 0.9, 0.3),
                ("BP", "SG"): (0.7, 1.0, 0.4),
                ("Random", "none"): (0.5, 0.8, 0.2),
            }.items()
            for i, value in enumerate(values)
        ],
        columns=["network", "explainer", "refinement", "image", "fidelity"],
    )
    found = few_class.above_random(scores).set_index("refinement")
    assert found["difference"].tolist() == pytest.approx([0.1, 0.2])
    assert found["error"].tolist() == pytest.approx([0, 0], abs=1e-12)  # the same on every image


def test_what_is_below_random_is_named_with_its_error():
    rows = [("n", "BP", "none", 0.1, 0.01), ("n", "EG", "SG2", -0.03, 0.01), ("n", "EG", "none", -0.01, 0.01)]
    apart = pd.DataFrame(rows, columns=["network", "explainer", "refinement", "difference", "error"])
    assert few_class.lower(apart) == (
        "Below Random on the same images are 2 of 3: EG + SG² (−0.030 ± 0.010), EG (−0.010 ± 0.010); 1 of them by more "
        "than two standard errors."
    )
    assert few_class.lower(apart[:1]) == "Below Random on the same images is none of 1."


@pytest.mark.parametrize(("shift", "expected"), [(1, 1.0), (-1, -1.0)])
def test_correlation_over_images_is_per_explainer(shift, expected):
    rows = [("n", e, "none", i, i / 9, shift * i / 9 + k) for k, e in enumerate(("BP", "EG")) for i in range(9)]
    scores = pd.DataFrame(rows, columns=["network", "explainer", "refinement", "image", "fidelity", "iou"])
    assert few_class.over_images(scores, "iou")["correlation"].tolist() == pytest.approx([expected, expected])
