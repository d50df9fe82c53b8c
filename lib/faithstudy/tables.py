"""Tables for the book: what a paper prints beside what was measured."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import torch
from pandas.io.formats.style import Styler

from faithlab import stats
from faithlab.scores import Scores
from faithlab.stats import Estimate
from faithlab.stats.samples import Function, Statistic
from faithstudy import numbers, published
from faithstudy.display_names import named
from faithstudy.trials.comparisons import in_one_sign

PRINTED = "published"
"""The source whose numbers are a paper's; the other one is called "measured"."""
RULES = {
    False: "its interval overlaps none of the others'",
    True: "the interval of its paired difference from each of the others excludes 0",
}
"""When a number is surely the best: without and with paired differences."""
LEVELS = {name: name.replace("_", " ") for name in ("macro_correlation", "micro_correlation", "micro_rank")}
"""The levels of `faithstudy.trials.degraded.correlations`, in words."""


Sources = Mapping[str, pd.DataFrame | None] | pd.DataFrame
Apart = Callable[[dict, dict], Estimate]
"""One row less another on the same inputs."""


def side_by_side(
    sources: Sources,
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    order: Sequence[str] = (),
    digits: int = 2,
    cell: Callable[[dict], Any] | None = None,
) -> pd.DataFrame:
    """The same quantity as it is published and as it was measured, in adjacent columns.

    Args:
        sources: by the name of their column; each tidy, with `rows`, `columns`, `mean`, optionally `low` and `high`,
            `std`, `missing`. A source that is None or empty has no column. One table alone has no header with its name.
        rows: columns that make the table's rows, in the order of their first appearance.
        columns: columns that make the table's column groups.
        order: values that come first, in this order, in whichever column they are; of a value that is there twice the
            first place counts.
        digits: after the point.
        cell: makes the cell of a row; None: text "mean [low, high]" or "mean ± std", with the number of missing values
            where there are any, and "–" where there is no value.
    """
    make, alone = cell or (lambda row: _text(row, digits)), isinstance(sources, pd.DataFrame)
    parts = [
        frame.assign(source=name, cell=[make(row) for row in frame.to_dict("records")])
        for name, frame in ({"": sources} if alone else sources).items()
        if frame is not None and len(frame)
    ]
    tidy = pd.concat([part[[*rows, *columns, "source", "cell"]] for part in parts], ignore_index=True)
    for key in [*rows, *columns, "source"]:
        there = dict.fromkeys(tidy[key])
        first = dict.fromkeys(name for name in order if name in there)
        tidy[key] = pd.Categorical(tidy[key], [*(first | there)], ordered=True)
    table = tidy.pivot(index=list(rows), columns=[*columns, "source"], values="cell").sort_index().sort_index(axis=1)
    table.index.names, table.columns.names = [None] * table.index.nlevels, [None] * table.columns.nlevels
    table = table.droplevel(-1, axis=1) if alone else table
    return table if cell else table.fillna("–")


def compared(sources: Sources, digits: int = 2, **layout: Sequence[str]) -> Styler:
    """`side_by_side` as the book shows it; its arguments. What is surely the best by `marked` is bold."""
    table = side_by_side(sources, digits=digits, **layout)
    frames = [sources] if isinstance(sources, pd.DataFrame) else [f for f in sources.values() if f is not None]
    paired = [f["paired"].eq(True).any() for f in frames if "best" in f and "low" in f]
    if not paired:
        return styled(table)
    best = side_by_side(sources, cell=lambda row: row.get("best", False), **layout)
    return styled(table, best.eq(True), RULES[all(paired)])


def marked(
    frame: pd.DataFrame,
    within: Sequence[str],
    better: int | Mapping[str, int] = 1,
    apart: Apart | None = None,
    aside: Sequence[str] = (),
) -> pd.DataFrame:
    """A table that says which of its numbers is surely the best of its rivals, for `compared`.

    Args:
        frame: tidy, with `mean`, and `low` and `high` where there are intervals.
        within: the columns in which rivals agree.
        better: 1 where higher is better, -1 where lower is; or this for each value of the column `metric`.
        apart: one row less another on the same inputs; None: the best is one whose own interval overlaps no rival's.
        aside: explainers that are no rivals, such as a control that has the best number by its making.

    Returns:
        The table with `best`, and `paired`, by which of `RULES` that is judged.
    """
    best = [False] * len(frame)
    known = pd.DataFrame({"low": math.nan, "high": math.nan, **frame, "place": range(len(frame))})
    known = known[~known["explainer"].isin(aside)] if aside else known
    for _, of in known.dropna(subset="mean").groupby(list(within), sort=False, dropna=False):
        sign = better if isinstance(better, int) else better[of["metric"].iloc[0]]
        first, *others = of.sort_values("mean", ascending=sign < 0).to_dict("records")
        if apart:
            leads = [apart(first, other) for other in others]
            leads = [float(lead.low) if sign > 0 else -float(lead.high) for lead in leads]
        else:
            leads = [first["low"] - o["high"] if sign > 0 else o["low"] - first["high"] for o in others]
        best[first["place"]] = len(others) > 0 and all(lead > 0 for lead in leads)
    return frame.assign(best=best, paired=apart is not None)


def paired(scores: Scores, labels: Sequence[str], of: Statistic | Function = stats.mean, **common: Any) -> Apart:
    """What `marked` needs to judge by paired differences.

    Args:
        scores: the long table.
        labels: the columns of a row that are its labels.
        of: the statistic.
        **common: labels of all.
    """
    return lambda one, other: stats.paired(
        scores, {name: one[name] for name in labels}, {name: other[name] for name in labels}, of, **common
    )


def correlations(
    sources: Mapping[str, pd.DataFrame | None],
    level: str,
    *,
    columns: Sequence[str] = ("explainer",),
    sets: Mapping[str, str] | None = None,
    **chosen: Any,
) -> Styler:
    """One level of `faithstudy.trials.degraded.correlations`, published and measured.

    Correlations stand in one sign, as shares of the ideal: 1 is the right order in every comparison.

    Args:
        sources: by the name of their column; each such a table, or None.
        level: macro_correlation, micro_correlation or micro_rank.
        columns: what makes the groups of columns.
        sets: what data sets are called here, by their name in a source; rows of others are left out. None: as there.
        **chosen: values of other columns, such as network="LSTM" or explainer=["IG", "SG-SQ"].
    """
    of_level = _chosen(sources, {"level": level, **chosen})
    if sets is not None:
        of_level = {
            k: of.assign(dataset=of["dataset"].map(sets)).dropna(subset="dataset") for k, of in of_level.items()
        }
    within, better = ["comparison", *columns], -1 if level == "micro_rank" else 1
    of_level = {name: marked(in_one_sign(of), within, better) for name, of in of_level.items()}
    order = ("Fidelity", "ROAR", "R-Fidelity", "F-Fidelity")
    return compared(of_level, rows=["comparison", "metric"], columns=list(columns), order=order)


def measures(scores: Scores, by: Sequence[str], of: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Several summaries below each other, as `side_by_side` takes them, told apart by a column `measure`.

    Args:
        scores: a long table.
        by: the columns that tell the rows of each summary apart.
        of: what each measure is called, and the further arguments of its `summary`.
    """
    return pd.concat([summary(scores, by, **asked).assign(measure=name) for name, asked in of.items()])


def share(estimate: Estimate) -> str:
    """An estimate in percent with its interval, for a sentence."""
    return numbers.interval(*(100 * float(x) for x in estimate.shown), 1, unit=" %")


def points(estimate: Estimate) -> str:
    """A difference of two shares in percentage points with its interval, for a sentence."""
    return share(estimate).replace(" %", " percentage points", 1)


def number(estimate: Estimate, digits: int = 2) -> str:
    """An estimate of one number with its interval, for a sentence."""
    return numbers.interval(*(float(x.flatten()[0]) for x in estimate.shown), digits)


def estimates(
    rows: Mapping[str, Mapping[str, Any]],
    columns: Mapping[str, Mapping[str, Any]],
    of: Scores | Callable[[dict[str, Any]], Estimate],
    digits: int = 2,
    **labels: Any,
) -> Styler:
    """Estimates with their intervals, one for each row and column.

    Args:
        rows: their names and labels.
        columns: their names and labels.
        of: the estimate of the labels of a row and a column; or a long table, whose means are shown, or what else the
            row or the column asks `faithlab.stats.estimate` for as its `of`.
        digits: after the point.
        **labels: of all rows of the long table.
    """
    ask = (lambda own: stats.estimate(of, **labels, **own)) if isinstance(of, Scores) else of
    cells = {name: [number(ask({**row, **own}), digits) for row in rows.values()] for name, own in columns.items()}
    return styled(pd.DataFrame(cells, index=list(rows)))


def differences(
    scores: Scores, pairs: Sequence[tuple[str, str]], columns: Mapping[str, Mapping[str, Any]], digits: int = 3
) -> Styler:
    """How far one explainer is above another on the same inputs, with the interval: a row for each pair.

    Args:
        scores: the long table.
        pairs: of explainers.
        columns: their names and labels.
        digits: after the point.
    """
    contrast = torch.tensor([[1.0, -1.0]])
    cells = {f"{one} − {other}": [{"explainer": one}, {"explainer": other}] for one, other in pairs}
    rows = {name: {"cells": own, "contrasts": contrast} for name, own in cells.items()}
    return estimates(rows, columns, scores, digits)


def refined(
    sources: Mapping[str, pd.DataFrame],
    apart: Mapping[str, Apart],
    accuracies: Mapping[str, float],
    digits: int = 2,
    **chosen: Any,
) -> Styler:
    """Explainers by refinements as Few-class Fidelity prints them, published and measured.

    The networks stand below it with their accuracies.

    Args:
        sources: by name: of `faithstudy.trials.refined.printed` and `table`.
        apart: by the same names, one row less another on the same images, which says what is surely the best.
        accuracies: of the study's networks, as shares.
        digits: after the point.
        **chosen: values of columns, so that one metric is left: `model`, a network of the paper; `network`, one of the
            study, or None: the paper's stands alone.
    """
    left, within = _chosen(sources, chosen), ["network", "metric", "refinement"]
    left = {name: marked(of, within, 1, apart[name]) if name in apart and len(of) else of for name, of in left.items()}
    order = ("none", "XRAI", "SG", "SG²")
    shown = compared(left, rows=["explainer"], columns=["refinement"], order=order, digits=digits)
    model, network = chosen["model"], chosen["network"]
    printed = published.load("fewclass_accuracy").set_index("model").loc[model, "accuracy"]
    said = f"{model} ({PRINTED}): accuracy {printed:.1%}"
    said += f"; {network} (measured): accuracy {accuracies[network]:.1%}" if network in accuracies else ""
    return noted(shown, said)


def _chosen(sources: Mapping[str, pd.DataFrame | None], chosen: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """The rows of each source with some values; a column that it does not have is left alone."""
    left = {name: frame for name, frame in sources.items() if frame is not None}
    for column, value in chosen.items():
        values = value if isinstance(value, list) else [value]
        left = {name: of[of[column].isin(values)] if column in of else of for name, of in left.items()}
    return left


def robustness(paper: pd.DataFrame, measured: pd.DataFrame, digits: int = 2) -> Styler:
    """F-Fidelity's Table 8: accuracies with a share of the features masked, the paper's rows above those measured.

    Args:
        paper: of `faithstudy.published`, "ffidelity_robustness", of one data set.
        measured: of `faithstudy.trials.masking.by_architecture`.
        digits: after the point.
    """
    paper = paper.rename(columns={"model": "network", "masked_fraction": "masked"})
    sources = {PRINTED: paper, "measured": measured}
    shown = pd.concat([of.assign(dataset=of["dataset"] + f" ({name})") for name, of in sources.items()])
    shown = shown.assign(mean=shown["accuracy"], masked=shown["masked"].map("{:.0%} masked".format))
    return compared(shown, rows=["dataset", "architecture", "network"], columns=["masked"], digits=digits)


MANY = 6
"""Columns, with those of names, that a page shows beside each other; a table of more has a look of its own."""
FEW = 4
"""Rows of a table of many columns that a phone shows as lists, one below the other."""


def noted(shown: Styler, says: str) -> Styler:
    """A table with one more note before those that it has.

    Args:
        shown: of `styled`.
        says: the note, without the full stop at its end.
    """
    return shown.set_caption(f"{says}. {shown.caption or ''}".strip())


def styled(table: pd.DataFrame, best: pd.DataFrame | None = None, rule: str = "") -> Styler:
    """A table of numbers as the book shows it: merged headers in words, its look in the book's style sheet.

    Where there is no room an interval stands below its number, whole. In a table of more than `MANY` columns it is
    smaller, and the names of its rows stay in view where it is scrolled; one of at most `FEW` rows is a list on a
    phone. Columns of what is published have a type of their own.

    Args:
        table: the numbers.
        best: which of them are bold.
        rule: when they are.
    """
    table = table.rename(LEVELS, axis=0).rename(LEVELS, axis=1)
    classes = pd.DataFrame("", table.index, table.columns)
    classes.loc[:, table.columns.get_level_values(-1) == PRINTED] = "faithlab-printed"
    style = _escaped(table.map(_together))
    if best is not None:
        classes = classes.where(~best.to_numpy(), classes + " faithlab-best")
        style = noted(style, f"Bold: the best of its rivals, where {rule}" + "; here none" * (not best.any(axis=None)))
    looks = " ".join(_looks(table, table.index.nlevels))
    return style.set_td_classes(classes).set_table_attributes(f'class="{looks}"')


def prose(frame: pd.DataFrame) -> Styler:
    """A table of sentences as the book shows it: text in lines, no index; many columns and few rows as in `styled`.

    Data sets and networks have the names that a reader knows.
    """
    frame = frame.map(lambda cell: named(cell) if isinstance(cell, str) else cell)
    looks = [look for look in _looks(frame, 0) if look != "faithlab-many"]
    return _escaped(frame).hide(axis="index").set_table_attributes(f'class="{" ".join([*looks, "faithlab-text"])}"')


def _escaped(table: pd.DataFrame) -> Styler:
    """A table whose names and cells hold no HTML."""
    style = table.style.format(escape="html")
    return style.format_index(escape="html", axis=0).format_index(escape="html", axis=1)


def _looks(table: pd.DataFrame, names: int) -> list[str]:
    """The classes of a table with so many columns of names."""
    if names + len(table.columns) <= MANY:
        return ["dataframe"]
    return ["dataframe", "faithlab-few" if len(table) <= FEW else "faithlab-many"]


def _together(cell: Any) -> Any:
    """A cell whose interval, or spread, is never broken within."""
    if not isinstance(cell, str):
        return cell
    return re.sub(r"(?<=\[)[^\]]*(?=\])|(?<=±) ", lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), cell)


def _text(row: Mapping, digits: int) -> str:
    """One cell."""
    missing = f"{int(row['missing'])} missing" if row.get("missing") else ""
    if pd.isna(row["mean"]):
        return f"none ({missing})" if missing else "–"
    text = numbers.interval(row["mean"], row.get("low", math.nan), row.get("high", math.nan), digits)
    text += "" if pd.isna(row.get("std", math.nan)) else f" ± {numbers.number(row['std'], digits)}"
    return text + f" ({missing})" * bool(missing)


def interval(estimate: Estimate) -> dict[str, float]:
    """One number as columns: mean, low, high (NaN: no interval), missing (images left out of networks), images."""
    value, low, high = (float(x) for x in estimate.shown)
    return {"mean": value, "low": low, "high": high, "missing": sum(estimate.missing), "images": estimate.images}


def summary(scores: Scores, by: Sequence[str], of: Statistic | Function = stats.mean, **labels: Any) -> pd.DataFrame:
    """`faithlab.stats.summary` as a table: the labels `by` and those of `interval`, a row for each combination."""
    return pd.DataFrame([{**cell, **interval(e)} for cell, e in stats.summary(scores, by, of, **labels)])
