"""The papers' claims, and what the measured tables say of each.

A claim is a sentence of a paper with a test on tidy results. A notebook judges its claims and saves the verdicts as a
table of its run; the scoreboard of the book is all these tables.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

REPRODUCED, PARTLY, FAILED, UNTESTED = "reproduced", "partly reproduced", "not reproduced", "not tested"
VERDICTS = (REPRODUCED, PARTLY, FAILED, UNTESTED)

Test = Callable[[Mapping[str, pd.DataFrame]], tuple[str, str]]
"""The measured tables by name -> a verdict, and the numbers it rests on as a sentence."""


@dataclass(frozen=True)
class Claim:
    """A claim of a paper.

    Attributes:
        id: short, unique, stable.
        paper: its name in the book.
        where: section, table or figure of the paper.
        sentence: the claim in our words.
        test: what decides it.
    """

    id: str
    paper: str
    where: str
    sentence: str
    test: Test


def judge(claims: list[Claim], tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """A verdict for every claim: columns id, paper, where, claim, verdict, evidence.

    Raises:
        ValueError: a test gave a verdict that is none of `VERDICTS`.
    """
    rows = []
    for claim in claims:
        verdict, evidence = claim.test(tables)
        if verdict not in VERDICTS:
            raise ValueError(f"claim {claim.id}: expected one of {', '.join(VERDICTS)}, but its test gave {verdict!r}")
        rows.append((claim.id, claim.paper, claim.where, claim.sentence, verdict, evidence))
    return pd.DataFrame(rows, columns=["id", "paper", "where", "claim", "verdict", "evidence"])


def verdict(passed: Iterable[bool], measured: Iterable[float]) -> str:
    """The verdict of several tests together: all passed, some, or none. A test on a missing number is none.

    Args:
        passed: of each test.
        measured: the numbers that the tests look at.
    """
    passed = list(passed)
    if not passed or any(pd.isna(value) for value in measured):
        return UNTESTED
    return REPRODUCED if all(passed) else PARTLY if any(passed) else FAILED
