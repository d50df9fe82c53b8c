"""Why a claim is not reproduced: what the reason may be, what tells it, and what that says."""

import dataclasses
import math
from collections.abc import Callable
from functools import partial

import pandas as pd
from pandas.io.formats.style import Styler

from faithlab.stats import Estimate
from faithstudy import numbers, tables
from faithstudy.claims.verdicts import LEAST

ANSWERS = {"yes": "yes, {}", "no": "no, not {}", "open": "open: {}?"}
"""All of the interval lies on the side that the question means, on the other, or it holds the bar; and in words."""
FEW = f"open: fewer than {LEAST} inputs"
"""Such an answer is open whatever its interval."""
LOOKS = "dataframe faithlab-text faithlab-reasons"
"""The classes of their table in the book's style sheet."""
FOUND = "found (inputs)"
NUMBER = partial(tables.number, digits=3)


@dataclasses.dataclass(frozen=True)
class Reason:
    """A possible reason, as a question that an estimate answers. Just one of `above`, `below` and `within` is given.

    Attributes:
        question: what the reason may be, such as "Is the bound too loose?".
        asked: what tells it, such as "gap of the optimum from the bound".
        found: the answer. Of a single network, or of one contrast; a table of a run that has no such rows has None.
        above: yes where all of the interval lies above this.
        below: yes where all of it lies below this.
        within: yes where all of it is no farther from 0 than this.
        said: how the number is shown.
    """

    question: str
    asked: str
    found: Estimate | None
    above: float | None = None
    below: float | None = None
    within: float | None = None
    said: Callable[[Estimate], str] = NUMBER

    def __post_init__(self) -> None:
        if sum(bar is not None for bar in (self.above, self.below, self.within)) != 1:
            raise ValueError(f"{self.question!r} needs one bar of above, below and within, and no other")

    @property
    def few(self) -> bool:
        """Whether a network was asked about fewer inputs than decide a part of a claim."""
        return self.found is not None and min(self.found.images_each) < LEAST

    @property
    def answer(self) -> str:
        """One of `ANSWERS`; of few inputs it is open."""
        if self.found is None or self.few:
            return "open"
        _, low, high = map(float, self.found.pooled)  # of one image there is none, and nothing below holds
        if self.within is not None:
            least, most = -self.within, self.within
        else:
            least, most = (self.above, math.inf) if self.below is None else (-math.inf, self.below)
        if least < low and high < most:
            return "yes"
        return "no" if high < least or most < low or low == high in (least, most) else "open"

    @property
    def bar(self) -> str:
        """The bar in words."""
        name, at = next((k, v) for k in ("above", "below", "within") if (v := getattr(self, k)) is not None)
        said = self.said(self.found) if self.found else ""
        unit = next((of for of in ("%", "points") if of in said), None)
        shown = numbers.number(at) if unit is None else f"{numbers.number(100 * at)}\u00a0{unit}"
        return f"within ±{shown}" if name == "within" else f"{name} {shown}"


def frame(*reasons: Reason) -> pd.DataFrame:
    """What may be the reason, what tells it, what was found, and the answer, a row each, in words.

    Args:
        *reasons: the rows; those of one question stand together.
    """
    rows, first = [], {reason.question: k for k, reason in reversed([*enumerate(reasons)])}
    for reason in sorted(reasons, key=lambda reason: first[reason.question]):
        said = "not asked in that run"
        if reason.found is not None:
            said = f"{reason.said(reason.found)} ({reason.found.images:,})"
        answer = FEW if reason.few else ANSWERS[reason.answer].format(reason.bar)
        rows.append({"question": reason.question, "what tells": reason.asked, FOUND: said, "answer": answer})
    return pd.DataFrame(rows)


def once(rows: pd.DataFrame) -> pd.DataFrame:
    """A `frame` as it is read: of the same question only the first row names it."""
    return rows.assign(question=rows["question"].where(rows["question"].ne(rows["question"].shift()), ""))


def table(*reasons: Reason) -> Styler:
    """A `frame` as a page shows it; its arguments. With `faithstudy.run.Run.why` the book shows it, too."""
    return tables.prose(once(frame(*reasons))).set_table_attributes(f'class="{LOOKS}"')
