"""Verdicts follow from the measured tables, and missing numbers are never a verdict."""

import math

import pandas as pd
import pytest

from faithlab.study import claims, f_fidelity
from faithlab.study.claims import FAILED, PARTLY, REPRODUCED, UNTESTED, Claim
from faithlab.study.trials import IDEAL

METRICS = ("Fidelity", "R-Fidelity", "F-Fidelity")
LEVELS = ("macro_correlation", "micro_correlation", "micro_rank")


def correlations(value) -> pd.DataFrame:
    """A table of correlations; `value` (explainer, level, comparison, metric) -> mean."""
    rows = [
        (e, level, c, m, value(e, level, c, m))
        for e in ("SG-SQ", "GradCAM")
        for level in LEVELS
        for c in IDEAL
        for m in METRICS
    ]
    return pd.DataFrame(rows, columns=["explainer", "level", "comparison", "metric", "mean"])


def as_the_paper_says(explainer, level, comparison, metric):
    """F-Fidelity is ideal, the others only under LeRF."""
    if level == "micro_rank":
        return 1.0 if metric == "F-Fidelity" else 2.0
    return float(IDEAL[comparison]) if metric == "F-Fidelity" or comparison == "LeRF vs GT" else 0.3


def verdicts(list_of_claims, **tables) -> dict[str, str]:
    return claims.judge(list_of_claims, tables).set_index("id")["verdict"].to_dict()


def test_what_the_paper_says_is_reproduced():
    judged = verdicts(f_fidelity.IMAGES, correlations=correlations(as_the_paper_says))
    assert set(judged.values()) == {REPRODUCED}


def test_the_opposite_is_not():
    opposite = correlations(lambda e, level, c, m: 4.0 if m == "F-Fidelity" and level == "micro_rank" else -IDEAL[c])
    judged = verdicts(f_fidelity.IMAGES, correlations=opposite)
    assert set(judged.values()) == {FAILED}


def test_a_claim_about_two_explainers_that_holds_for_one_is_partly_reproduced():
    def only_sg_sq(explainer, level, comparison, metric):
        right = as_the_paper_says(explainer, level, comparison, metric)
        return right if explainer == "SG-SQ" else {"Fidelity": -1.0}.get(metric, 0.3)

    assert verdicts(f_fidelity.IMAGES, correlations=correlations(only_sg_sq))["ff-ood"] == PARTLY


def test_missing_correlations_leave_a_claim_untested():
    judged = verdicts(f_fidelity.IMAGES, correlations=correlations(lambda *cell: math.nan))
    assert set(judged.values()) == {UNTESTED}


def sizes(oracle, real) -> pd.DataFrame:
    shares = [0.1, 0.15, 0.2, 0.25, 0.3]
    return pd.DataFrame(
        [("oracle", s, s * (1 + o)) for s, o in zip(shares, oracle, strict=True)]
        + [("gradcam", s, s * (1 + r)) for s, r in zip(shares, real, strict=True)],
        columns=["attribution", "share", "size"],
    )


@pytest.mark.parametrize(
    ("oracle", "verdict"),
    [
        ([0, 0.1, -0.14, 0.149, 0], REPRODUCED),
        ([0, 0.1, -0.14, 0.16, 0], REPRODUCED),  # one of five may miss
        ([0, 0.1, -0.14, 0.16, math.nan], PARTLY),  # a missing size misses
        ([0.2] * 5, FAILED),
        ([math.nan] * 5, UNTESTED),
    ],
)
def test_sizes_are_judged_by_15_percent(oracle, verdict):
    theorem = pd.DataFrame({"measured": [0.1, 0.2], "exact": [0.1, 0.21], "error": [0.0, 0.003]})
    judged = verdicts(f_fidelity.SIZE, sizes=sizes(oracle, [0.5] * 5), theorem=theorem)
    assert judged == {"ff-theorem-1": REPRODUCED, "ff-size": verdict, "ff-size-real": FAILED}


def test_a_miss_of_more_than_four_standard_errors_breaks_the_theorem():
    theorem = pd.DataFrame({"measured": [0.1, 0.2], "exact": [0.1, 0.21], "error": [0.0, 0.002]})
    assert verdicts(f_fidelity.SIZE, sizes=sizes([0] * 5, [0] * 5), theorem=theorem)["ff-theorem-1"] == PARTLY


def test_a_verdict_that_does_not_exist_is_an_error():
    with pytest.raises(ValueError, match=r"claim x: expected one of reproduced, .*, but its test gave 'maybe'"):
        claims.judge([Claim("x", "P", "1", "All is well.", lambda tables: ("maybe", ""))], {})


def test_ids_are_unique():
    ids = [claim.id for claim in f_fidelity.IMAGES + f_fidelity.SIZE]
    assert len(ids) == len(set(ids))
