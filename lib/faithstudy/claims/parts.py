"""The kinds of parts that a claim has, as declarations on a long table.

A part is one or more contrasts (linear combinations of a statistic of cells) and a claimed side, an open range in which
all of them shall lie. One part per cell that the claim's sentence quantifies over: "for every explainer" is one each;
"the best", "falls with every step", "in the right order" are one, with all contrasts inside.

What a claim says, the part, its contrasts and their side:

    above, below                              above, below   x                            beyond the bar
    better than                               better         x - y, paired                above 0 (below, where
    the best of K                             best           x - y_j, every rival j       less is better)
    falls with every step, in the right order in_order       adjacent, paired             above 0
    falls, has the right sign                 trend          the slope, paired            above 0
    hardly, does not depend, equal            within         x, or x - y, signed          within the margin
    as well as, no worse than                 no_worse       x - y, paired                above minus the margin
    weak, about 0.2                           agrees         x                            the printed range, wider
    always, never, exactly                    counted        none: a fact is counted
    takes at least, at most so many times     timed          none: its interval over the turns of a run is given
    some, most                                some, most     those of several parts, one or more than half of them
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from faithlab.metrics import METRICS
from faithlab.scores import Label, Scores
from faithlab.stats import Estimate, Statistic, area, mean
from faithlab.stats.intervals import intervals, resampled
from faithlab.stats.samples import Function, Gathered, Labels, gather, statistic

INFINITY = float("inf")
PAIRED = ("better", "best", "in_order", "trend")
"""Kinds that compare cells, so that under chance the cells of an image can change places."""


@dataclass(frozen=True)
class Part:
    """One thing that a claim says; make one with the functions below.

    Attributes:
        name: for a reader.
        kind: the function that made it.
        low: the claimed side is above this,
        high: and below this.
        contrasts: what each contrast compares.
        gathered: the rows it is judged by; None for a counted fact.
        matrix: [contrasts, cells].
        cells: the labels of each cell,
        labels: and those of all.
        printed: of each contrast, what the paper's own numbers give; NaN where it prints none.
        size_margin: an interval within it of the printed number agrees in size; NaN: none is declared.
        reason: of the margin, or of the count.
        premise: whether the claim cannot be tested where this fails.
        needed: how many of the contrasts must lie on the claimed side; None: all.
        table: the long table that the rows are from.
        count: of a counted fact, how many cases are as claimed.
        cases: of how many.
        untold: of a counted fact, whether it cannot be told.
    """

    name: str
    kind: str
    low: float = -INFINITY
    high: float = INFINITY
    contrasts: tuple[str, ...] = ()
    gathered: Gathered | None = field(default=None, repr=False)
    matrix: Tensor | None = field(default=None, repr=False)
    cells: tuple[Labels, ...] = field(default=(), repr=False)
    labels: Labels = field(default_factory=dict, repr=False)
    printed: tuple[float, ...] = ()
    size_margin: float = math.nan
    reason: str = ""
    premise: bool = False
    needed: int | None = None
    table: Scores | None = field(default=None, repr=False)
    count: int = 0
    cases: int = 0
    untold: bool = False

    @cached_property
    def resampled(self) -> Tensor:
        """The statistic under all resamples, see `faithlab.stats.intervals.resampled`."""
        return resampled(self.gathered)

    @cached_property
    def estimate(self) -> Estimate:
        """The contrasts with their intervals."""
        return intervals(self.gathered, self.resampled, self.matrix)

    def on(self, table: Scores) -> "Part":
        """The same part of another table, such as the same one read from its file. A counted fact stays as it is."""
        if self.gathered is None:
            return self
        return replace(self, table=table, gathered=gather(table, self.gathered.statistic, self.cells, self.labels))

    def same_rows(self, other: "Part") -> bool:
        """Whether the same part of another table is judged by the same numbers."""
        if self.gathered is None:
            return True
        own, others = (
            [of.values.nan_to_num(math.inf) for n in part.gathered.rows for c in n for of in c]
            for part in (self, other)
        )
        return len(own) == len(others) and all(map(torch.equal, own, others))

    @property
    def printed_holds(self) -> bool | None:
        """Whether the paper's own numbers lie on the claimed side; None where it does not print them all."""
        if not self.printed or any(value != value for value in self.printed):
            return None
        held = sum(self.low < value < self.high for value in self.printed)
        return held >= (len(self.printed) if self.needed is None else self.needed)


def above(table: Scores, bar: float, **how: Any) -> Part:
    """The statistic is above a bar.

    Args:
        table: the long table.
        bar: the bar.
        **how: what all kinds take. `of`: the statistic, see `faithlab.stats.estimate`; where it is not given, the mean.
            `name`: for a reader; else the labels. `printed`: the paper's own number. `size_margin`: how far from that a
            number still agrees in size; else half of the claimed range, if it has two ends. All others are labels.
    """
    return _part("above", table, [{}], [[1]], bar, INFINITY, **how)


def below(table: Scores, bar: float, **how: Any) -> Part:
    """The statistic is below a bar; arguments as in `above`."""
    return _part("below", table, [{}], [[1]], -INFINITY, bar, **how)


def better(table: Scores, x: Labels, y: Labels, *, less: bool | None = None, **how: Any) -> Part:
    """The statistic of x is better than that of y on the same images.

    Args:
        table: the long table.
        x: labels of the rows that shall be better.
        y: labels of those that they are compared with.
        less: whether less is better; None: as the one metric of the rows is registered, where its mean or area is
            compared, else False. Rows that hold another number of a metric, such as its T, need less=False.
        **how: as in `above`; `printed` are the paper's numbers of x and y, labels are those of both.
    """
    return _part("better", table, [x, y], _signed([[1, -1]], _less(less, table, [x, y], **how)), 0, INFINITY, **how)


def best(
    table: Scores,
    by: str,
    winner: Label,
    *,
    rivals: Sequence[Label] | None = None,
    less: bool | None = None,
    name: str | None = None,
    printed: Mapping[Label, float] | None = None,
    **how: Any,
) -> Part:
    """The statistic of one is better than that of every rival on the same images.

    Args:
        table: the long table.
        by: the label that tells them apart, such as "explainer".
        winner: its value that shall be best.
        rivals: the other values; None: all others among the rows.
        less: whether less is better, as in `better`.
        name: for a reader.
        printed: the paper's numbers, by value of the label.
        **how: as in `above`.
    """
    others = [value for value in _values(table, by, **how) if value != winner] if rivals is None else list(rivals)
    if not others or winner in others:
        raise ValueError(f"expected rivals of {by} {winner!r}, but got {others}")
    cells = [{by: value} for value in (winner, *others)]
    matrix = torch.cat([torch.ones(len(others), 1), -torch.eye(len(others))], 1)
    less = _less(less, table, cells, **how)
    if printed is not None and not any(value in printed for value in (winner, *others)):
        raise ValueError(f"numbers are printed of {by} {list(printed)}, but {winner!r} is compared with {others}")
    how["printed"] = None if printed is None else [printed.get(value, torch.nan) for value in (winner, *others)]
    how["name"] = name or f"{winner} is best"
    return _part("best", table, cells, _signed(matrix, less), 0, INFINITY, **how)


def in_order(table: Scores, by: str, order: Sequence[Label] | None = None, *, rises: bool = False, **how: Any) -> Part:
    """The statistic falls from each value of a label to the next, on the same images.

    Args:
        table: the long table.
        by: the label, such as "level".
        order: its values; None: from the smallest to the largest, where it does not apply (nothing is degraded) first.
        rises: it rises instead.
        **how: as in `above`; `printed` are the paper's numbers in this order.
    """
    if order is None:
        order = sorted(_values(table, by, **how), key=lambda value: (value is not None, value))
    steps = torch.eye(len(order))
    return _ordered("in_order", table, by, order, _signed(steps[:-1] - steps[1:], rises), how)


def trend(table: Scores, by: str, order: Sequence[Label], *, rises: bool = False, **how: Any) -> Part:
    """The statistic falls over the values of a label as a whole, by the least-squares line through their places.

    Args:
        table: the long table.
        by: the label, such as "level".
        order: its values, evenly spaced.
        rises: it rises instead.
        **how: as in `in_order`.
    """
    places = torch.linspace(1, -1, len(order), dtype=torch.float64)
    slope = (places / places.square().sum() * 2)[None]  # the change from the first value to the last
    part = _ordered("trend", table, by, order, _signed(slope, rises), how)
    return replace(part, contrasts=("first - last, on the line",))


def _ordered(kind: str, table: Scores, by: str, order: Sequence[Label], matrix: Tensor, how: Mapping[str, Any]) -> Part:
    if len(set(order)) != len(order) or len(order) < 2:
        raise ValueError(f"expected two or more different values of {by}, but got {list(order)}")
    return _part(kind, table, [{by: value} for value in order], matrix, 0, INFINITY, **how)


def within(
    table: Scores, x: Labels, y: Labels | None = None, *, margin: float, reason: str, about: float = 0.0, **how: Any
) -> Part:
    """The difference x - y is within a margin of 0 on the same images; or x alone within a margin of `about`.

    Args:
        table: the long table.
        x: labels of the rows.
        y: labels of those that they are compared with; None: with `about`.
        margin: half of the range that counts as no difference.
        reason: why this margin: the paper's word, or ours, declared before the run that it judges.
        about: the number that x shall be near, where there is no y.
        **how: as in `above`; `printed` are the paper's numbers, of x, or of x and y.
    """
    _check_margin(margin, reason)
    if y is not None and about:
        raise ValueError(f"a difference is compared with 0, not about {about}; leave out either y or about")
    cells, matrix = ([x], [[1]]) if y is None else ([x, y], [[1, -1]])
    return _part("within", table, cells, matrix, about - margin, about + margin, reason, **how)


def no_worse(
    table: Scores, x: Labels, y: Labels, *, margin: float, reason: str, less: bool | None = None, **how: Any
) -> Part:
    """The statistic of x is not by a margin worse than that of y on the same images; it may be any amount better.

    Args:
        table: the long table.
        x: labels of the rows that shall be as good.
        y: labels of those that they are compared with.
        margin: how much worse still counts as no worse.
        reason: why this margin, as in `within`.
        less: whether less is better, as in `better`.
        **how: as in `better`.
    """
    _check_margin(margin, reason)
    matrix = _signed([[1, -1]], _less(less, table, [x, y], **how))
    return _part("no_worse", table, [x, y], matrix, -margin, INFINITY, reason, **how)


def agrees(table: Scores, printed: float | tuple[float, float], *, margin: float, reason: str, **how: Any) -> Part:
    """The statistic lies in the range that the paper prints, widened by a margin.

    Args:
        table: the long table.
        printed: a number, or the ends of a range.
        margin: how far outside the printed range still agrees.
        reason: why this margin.
        **how: as in `above`.
    """
    _check_margin(margin, reason)
    low, high = printed if isinstance(printed, tuple | list) else (printed, printed)
    if not low <= high:
        raise ValueError(f"expected a range from its lower to its upper end, but got {low} to {high}")
    how["printed"] = (low + high) / 2
    return _part("agrees", table, [{}], [[1]], low - margin, high + margin, reason, **how)


def counted(name: str, as_claimed: Tensor | Sequence[bool], *, reason: str = "") -> Part:
    """A deterministic fact of every case: always, never, exactly. It holds in all cases or fails.

    Args:
        name: for a reader.
        as_claimed: of every case, whether it is as the claim says.
        reason: how it was counted.

    Raises:
        ValueError: no case, or something else than true and false.
    """
    cases = torch.as_tensor(as_claimed).flatten()
    if not len(cases):
        raise ValueError(f"{name}: expected at least one case, but got none")
    if cases.dtype != torch.bool:
        raise ValueError(f"{name}: expected true or false for every case, but got {cases.dtype}")
    return Part(name, "counted", reason=reason, count=int(cases.sum()), cases=len(cases))


def timed(
    name: str, interval: tuple[float, float], *, at_least: float = -INFINITY, at_most: float = INFINITY, reason: str
) -> Part:
    """A ratio of wall times is at least, or at most, so much: one counted case, open where its interval has both sides.

    Times are no scores of inputs: their interval is over the turns of one run, and whoever has taken them makes it, at
    the level that as many parts ask for.

    Args:
        name: for a reader, with the ratio.
        interval: its ends; NaN: not known.
        at_least: the ratio is at least this,
        at_most: and at most this.
        reason: what the interval is over.

    Raises:
        ValueError: no bar.
    """
    if not at_least < at_most or (at_least == -INFINITY and at_most == INFINITY):
        raise ValueError(f"{name}: expected a bar, but the claimed side is from {at_least} to {at_most}")
    low, high = interval
    inside, outside = at_least <= low and high <= at_most, high < at_least or low > at_most
    return Part(name, "counted", reason=reason, count=int(inside), cases=1, untold=not inside and not outside)


def premise(part: Part) -> Part:
    """The same part as a premise: where it fails, the claim is not tested."""
    return replace(part, premise=True)


def some(parts: Sequence[Part], name: str) -> Part:
    """At least one of several parts: one clear case is enough, none must be possible for it to fail.

    Args:
        parts: of one kind, on one table, with one statistic and one bar.
        name: for a reader.

    Raises:
        ValueError: parts that differ in these, or none.
    """
    return _joined(parts, name, 1)


def most(parts: Sequence[Part], name: str) -> Part:
    """More than half of several parts; arguments and errors as in `some`."""
    return _joined(parts, name, len(parts) // 2 + 1)


def _joined(parts: Sequence[Part], name: str, needed: int) -> Part:
    """Several parts as the contrasts of one, of the images that all of them have."""
    if not parts or any(part.gathered is None or len(part.contrasts) != 1 for part in parts):
        raise ValueError(f"{name}: expected parts with one contrast each, but got {len(parts)} parts of other kinds")
    first = parts[0]
    for part in parts:
        alike = part.gathered.statistic == first.gathered.statistic and part.table is first.table
        if not alike or (part.kind, part.low, part.high) != (first.kind, first.low, first.high):
            raise ValueError(f"{name}: {part.name!r} is of another kind, table, statistic or bar than {first.name!r}")
    common = {key: value for key, value in first.labels.items() if all(p.labels.get(key) == value for p in parts)}
    own = [[{k: v for k, v in {**p.labels, **cell}.items() if k not in common} for cell in p.cells] for p in parts]
    every = [cell for of in own for cell in of]
    cells = [cell for k, cell in enumerate(every) if cell not in every[:k]]
    matrix = torch.zeros(len(parts), len(cells), dtype=torch.float64)
    for row, part, of in zip(matrix, parts, own, strict=True):
        for cell, weight in zip(of, part.matrix[0], strict=True):
            row[cells.index(cell)] += weight
    bar, statistic = (first.low, first.high, first.reason), first.gathered.statistic
    joined = _part(first.kind, first.table, cells, matrix, *bar, of=statistic, name=name, **common)
    printed = tuple(value for part in parts for value in part.printed)
    printed = printed if len(printed) == len(parts) else ()
    return replace(joined, printed=printed, needed=needed)


def _check_margin(margin: float, reason: str) -> None:
    if not 0 < margin < INFINITY or not reason.strip():
        raise ValueError(f"expected a finite margin above 0 and the reason for it, but got {margin} and {reason!r}")


def _less(less: bool | None, table: Scores, cells: Sequence[Labels], *, of: Any = mean, **how: Any) -> bool:
    """Whether less is better: as told, else as the metric of the rows is registered."""
    if less is not None or of not in (mean, area):
        return bool(less)
    names = {name for cell in cells for name in _values(table, "metric", **{**how, **cell})}
    return len(names) == 1 and next(iter(names)) in METRICS and METRICS[names.pop()].better == -1


def _signed(matrix: Tensor | Sequence[Sequence[float]], negative: bool) -> Tensor:
    matrix = torch.as_tensor(matrix, dtype=torch.float64)
    return -matrix if negative else matrix


def _values(table: Scores, by: str, *, of: Statistic | Function = mean, **how: Any) -> list[Label]:
    """The values of a label among the rows that the statistic looks at."""
    labels = {key: value for key, value in how.items() if key not in ("name", "printed", "size_margin")}
    found = [b for own in statistic(of).over for b in table.where(**{**labels, **own})]
    return list(dict.fromkeys(b.labels.get(by) for b in found))


def _named(value: Label | Sequence[Label]) -> str:
    """What a label, or the several that a cell averages over, is called in a contrast."""
    if isinstance(value, list | tuple | set):
        return f"mean of {', '.join(map(_named, value))}"
    return "none" if value is None else str(value)


def _part(
    kind: str,
    table: Scores,
    cells: Sequence[Labels],
    matrix: Tensor | Sequence[Sequence[float]],
    low: float,
    high: float,
    reason: str = "",
    /,  # a label of one of these names is a label, which the table refuses
    *,
    of: Statistic | Function = mean,
    name: str | None = None,
    printed: float | Sequence[float] | None = None,
    size_margin: float = math.nan,
    **labels: Label | Sequence[Label],
) -> Part:
    matrix = torch.as_tensor(matrix, dtype=torch.float64)
    if not low < high or not (math.isfinite(low) or math.isfinite(high)):
        raise ValueError(f"{name or kind}: expected a number as the bar, but the claimed side is from {low} to {high}")
    own = [" ".join(map(_named, cell.values())) or "x" for cell in cells]
    contrasts = tuple(
        " - ".join(own[c] for c in sorted(row.nonzero().flatten().tolist(), key=lambda c, row=row: -float(row[c])))
        for row in matrix
    )
    if name is None:
        texts = [str(value) for value in labels.values() if not isinstance(value, list | tuple | set)]
        name = ", ".join([*texts, *(contrasts if len(contrasts) == 1 and own != ["x"] else [])]) or kind
    if printed is not None:
        numbers = torch.as_tensor(printed, dtype=torch.float64).reshape(-1)
        if len(numbers) != len(cells):
            raise ValueError(
                f"{name}: expected {len(cells)} printed numbers, one for each cell, but got {len(numbers)}"
            )
        # A rival without a printed number leaves the contrasts of the others alone.
        printed = torch.stack([(row[row != 0] * numbers[row != 0]).sum() for row in matrix]).tolist()
    gathered = gather(table, statistic(of), cells, labels)
    if gathered([torch.ones(1, n).double() for n in gathered.images]).ndim > 3:
        raise ValueError(
            f"{name}: the statistic gives a curve or several numbers; choose its `area`, or another number"
        )
    if math.isnan(size_margin) and math.isfinite(high - low):
        size_margin = (high - low) / 2
    own = {
        "size_margin": size_margin,
        "gathered": gathered,
        "matrix": matrix,
        "cells": tuple(cells),
        "labels": dict(labels),
        "table": table,
    }
    return Part(name, kind, low, high, contrasts, printed=tuple(printed or ()), reason=reason, **own)
