"""Verdicts follow from the measured tables, and missing numbers are never a verdict."""

import math

import pandas as pd
import pytest

from faithlab.study import claims, f_fidelity
from faithlab.study.claims import FAILED, PARTLY, REPRODUCED, UNTESTED, Claim
from faithlab.study.trials import IDEAL

METRICS = ("Fidelity", "ROAR", "R-Fidelity", "F-Fidelity")
LEVELS = ("macro_correlation", "micro_correlation", "micro_rank")


def verdicts(list_of_claims, **tables) -> dict[str, str]:
    return claims.judge(list_of_claims, tables).set_index("id")["verdict"].to_dict()


def test_a_verdict_that_does_not_exist_is_an_error():
    with pytest.raises(ValueError, match=r"claim x: expected one of reproduced, .*, but its test gave 'maybe'"):
        claims.judge([Claim("x", "P", "1", "All is well.", lambda tables: ("maybe", ""))], {})


def test_ids_are_unique():
    of_module = [value for value in vars(f_fidelity).values() if isinstance(value, list)]
    ids = [claim.id for of_page in of_module for claim in of_page]
    assert len(ids) == len(set(ids)) > 0


def of_texts(reached, rank=1.0, lost=0.02) -> dict[str, pd.DataFrame]:
    """Correlations that reach a part of the ideal, and robustness, on text; `reached` by metric."""
    rows = [
        ("SST2", architecture, level, c, m, rank if level == "micro_rank" else IDEAL[c] * value)
        for architecture in ("LSTM", "Transformer")
        for level in LEVELS
        for c in IDEAL
        for m, value in reached.items()
    ]
    columns = ["dataset", "architecture", "level", "comparison", "metric", "mean"]
    masking = [
        ("SST2", a, "original", share, 0.8 - lost * share * 10) for a in ("LSTM", "Transformer") for share in (0, 0.1)
    ]
    return {
        "correlations": pd.DataFrame(rows, columns=columns),
        "robustness": pd.DataFrame(masking, columns=["dataset", "architecture", "network", "masked", "accuracy"]),
    }


TEXT_CLAIMS = ("ff-text-order", "ff-text-ood", "ff-text-transformer", "ff-text-robust")


@pytest.mark.parametrize(
    ("reached", "lost", "expected"),
    [
        ((1.0, 1.0, 1.0), 0.02, (REPRODUCED,) * 4),
        ((0.5, 0.95, 1.0), 0.1, (PARTLY, FAILED, REPRODUCED, FAILED)),
        ((0.85, 0.8, 0.7), 0.02, (FAILED, REPRODUCED, PARTLY, REPRODUCED)),  # worse correlations, equal ranks
        ((math.nan, 1.0, 1.0), math.nan, (UNTESTED,) * 4),
    ],
)
def test_text_is_judged_by_both_networks(reached, lost, expected):
    metrics = dict(zip(("Fidelity", "R-Fidelity", "F-Fidelity"), reached, strict=True))
    judged = verdicts(f_fidelity.TEXT, **of_texts(metrics, lost=lost))
    assert judged == dict(zip(TEXT_CLAIMS, expected, strict=True))
