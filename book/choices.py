"""What a choice that a paper leaves open changes, where a page of the study has measured it; largest first."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import judged
import pandas as pd
import words

from faithlab import stats
from faithlab.metrics import METRICS
from faithlab.scores import Scores
from faithstudy import tables

STATISTICS = {name: METRICS[name].summary for name in ("ReCo", "MeGe")}
"""What a long table is asked for in place of the mean, by the name in `choices.yml`."""


def ranked(results: Path, unit: str, measured: Sequence[Mapping[str, Any]]) -> str:
    """The effects of a paper's choices, the largest first: in each unit what is told from none, then what is not.

    Args:
        results: the results of a build, in which a larger recorded run takes the place of a page's table.
        unit: of the effects of choices that name none of their own.
        measured: as in `choices.yml`.
    """
    rows, lacking = [], []
    for choice in measured:
        found = list(_effects(results, choice))
        rows += [row | {"unit": choice.get("unit", unit)} for row in found]
        if not found:
            lacking.append(choice.get("says", choice["page"]) if not _each(choice) else choice["page"])
    if not rows:
        return "No page of this build measures what the choices below do to the result.\n"
    every = pd.DataFrame(rows)
    known = every["low"].notna() & every["high"].notna()
    certain = (every["low"] > 0) | (every["high"] < 0)
    text = ""
    for of, own in every[~every["alone"]].groupby("unit", sort=False):
        told, untold = own[certain[own.index]], own[~certain[own.index]]
        if len(told):
            text += _table(f"In {of}", "the largest change first", told)
        if len(untold):
            text += _table(f"In {of}" if told.empty else "In the same", "not told from none", untold)
    if not certain.any():
        text = f"No choice that was measured changes the result beyond its noise.\n\n{text}"
    for (choice, of, page), own in every[every["alone"]].groupby(["choice", "unit", "page"], sort=False):
        ends = " to ".join(f"{v:+.2g}" for v in dict.fromkeys((own["mean"].min(), own["mean"].max())))
        about = f"{len(own)} cases of [](../../notebooks/{page})"
        text += f"Without an interval, in {of}: {choice}, {ends.replace('-', '−')} ({about}).\n\n"
    if lacking:
        text += f"Not measured in this build: {'; '.join(lacking)}.\n\n"
    brackets = "In brackets: 95 % intervals over images, each by itself, for the networks at hand."
    return text + (brackets if bool(known.any()) else "") + "\n"


def _table(unit: str, what: str, rows: pd.DataFrame) -> str:
    """Effects in one unit as a table, the largest first; a choice that all its rows share is said once, above it."""
    rows = rows.sort_values("mean", key=abs, ascending=False, kind="stable")
    shared = len(rows) > 1 and len(set(rows["choice"])) == 1 and rows["names"].map(bool).all()
    head = f"{unit}, {rows['choice'].iloc[0]}" if shared else unit
    lines = [
        f"| {', '.join([*(() if shared else (row['choice'],)), *row['names']])} | {_interval(row)} "
        f"| [](../../notebooks/{row['page']}) |"
        for row in rows.to_dict("records")
    ]
    top = f"| {'Where' if shared else 'Choice'} | Change | Measured in |\n|---|--:|---|\n"
    return f"{head}, {what}:\n\n{top}" + "\n".join(lines) + "\n\n"


def _effects(results: Path, choice: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of choice, names (what else tells them apart), page, mean, low, high; none without such a table or rows."""
    folder = results / choice["page"]
    path = next((p for p in (folder / f"{choice['table']}{end}" for end in (".csv", ".parquet")) if p.is_file()), None)
    if path is None:
        return
    kept = judged.better(folder, choice["page"], choice["table"])
    table = kept.frame if kept else pd.read_csv(path) if path.suffix == ".csv" else Scores.load(path)
    if isinstance(table, Scores):
        own = _of_scores(table, choice)
    else:
        own = _of_columns(table, choice) if "with" in choice else _of_changes(table, choice)
    for names, found in own:
        says = choice.get("says")
        first, *others = names if says is None else [says[names[0]], *names[1:]] if _each(choice) else [says, *names]
        others = [words.plain(words.label(name)) for name in others]
        numbers = {key: found[key] for key in ("mean", "low", "high")}
        alone = not isinstance(table, Scores) and "with" in choice
        yield {"choice": first, "names": others, "page": choice["page"], "alone": alone} | numbers


def _each(choice: Mapping[str, Any]) -> bool:
    """Whether `says` says of every name of a table what choice it is."""
    return isinstance(choice.get("says"), Mapping)


def _of_columns(table: pd.DataFrame, choice: Mapping[str, Any]) -> Iterator[tuple[list[str], Mapping[str, float]]]:
    """Differences of rows of a summary, which have no interval of their own."""
    table = _rows(table, choice).set_index(choice["names"])
    one, other = (_rows(table, {"rows": choice[which]})["mean"] for which in ("with", "against"))
    for names, value in (one - other).dropna().items():
        yield [*names], {"mean": value, "low": float("nan"), "high": float("nan")}


def _of_changes(table: pd.DataFrame, choice: Mapping[str, Any]) -> Iterator[tuple[list[str], Mapping[str, float]]]:
    for row in _rows(table, choice).to_dict("records"):
        yield [row[name] for name in choice["names"]], row


def _rows(table: pd.DataFrame, choice: Mapping[str, Any]) -> pd.DataFrame:
    for name, value in choice.get("rows", {}).items():
        table = table[table[name] == value]
    return table


def _of_scores(table: Scores, choice: Mapping[str, Any]) -> Iterator[tuple[list[str], Mapping[str, float]]]:
    labels, each = choice.get("rows", {}), choice.get("each", [])
    try:
        one, other = (table.where(**{**labels, **choice[which]}) for which in ("with", "against"))
    except ValueError:  # the parameters of the run were others
        return
    for values in product(*(one.labels(name) for name in each)):
        own = dict(zip(each, values, strict=True))
        here = [[b.labels for b in t if all(b.labels.get(n) == v for n, v in own.items())] for t in (one, other)]
        shared = {name: [b.get(name) for b in here[0]] for name in ("network", "explainer")}
        shared = {n: [v for v in dict.fromkeys(a) if v in [b.get(n) for b in here[1]]] for n, a in shared.items()}
        given = {name: of for name, of in shared.items() if name not in {**labels, **choice["with"], **own}}
        if not all(given.values()) or not all(here):
            continue
        both = Scores.concat(t.where(**own, **given) for t in (one, other))
        cells = [choice["with"], choice["against"]]
        options = {"explainer": given["explainer"]} if "explainer" in given else {}
        of = STATISTICS.get(choice.get("statistic"), stats.mean)
        found = stats.paired(both, *cells, of=of, **options, **labels, **own)
        yield [value.split(" test")[0].removesuffix(" train") for value in values], tables.interval(found)


def _interval(row: Mapping[str, float]) -> str:
    text = "{mean:+.2g} [{low:+.2g}, {high:+.2g}]" if math.isfinite(row["low"]) else "{mean:+.2g} (no interval)"
    return re.sub(r"[+-]0(?![.\d])", "0", words.plain(text.format(**row))).replace("-", "−")
