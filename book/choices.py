"""What a choice that a paper leaves open changes, where a page of the study has measured it; largest first."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import judged
import pandas as pd

from faithlab import stats
from faithlab.metrics import METRICS
from faithlab.scores import Scores
from faithlab.study import tables

STATISTICS = {name: METRICS[name].summary for name in ("ReCo", "MeGe")}
"""What a long table is asked for in place of the mean, by the name in `choices.yml`."""


def ranked(results: Path, unit: str, measured: Sequence[Mapping[str, Any]]) -> str:
    """The effects of a paper's choices, a table for each unit, the largest first, and what is not told from none.

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
            lacking.append(choice.get("says", choice["page"]))
    if not rows:
        return "No page of this build measures what the choices below do to the result.\n"
    every = pd.DataFrame(rows)
    known = every["low"].notna() & every["high"].notna()
    certain = (every["low"] > 0) | (every["high"] < 0)
    text = ""
    for of, own in every[certain].groupby("unit", sort=False):
        lines = [
            f"| {', '.join([row['choice'], *row['names']])} | {_interval(row)} | [](../../notebooks/{row['page']}) |"
            for row in own.sort_values("mean", key=abs, ascending=False, kind="stable").to_dict("records")
        ]
        text += f"In {of}, the largest change first:\n\n| Choice | Change | Measured in |\n|---|--:|---|\n"
        text += "\n".join(lines) + "\n\n"
    text = text or "No choice that was measured changes the result beyond its noise.\n\n"
    for (choice, of, page), own in every[every["alone"]].groupby(["choice", "unit", "page"], sort=False):
        ends = " to ".join(f"{v:+.2g}" for v in dict.fromkeys((own["mean"].min(), own["mean"].max())))
        about = f"{len(own)} cases of [](../../notebooks/{page})"
        text += f"Without an interval, in {of}: {choice}, {ends.replace('-', '−')} ({about}).\n\n"
    others = every[~certain & ~every["alone"]].groupby(["choice", "unit"], sort=False)["names"].agg(list)
    said = []
    for (choice, of), own in others.items():
        about = [f"{of}: "] if of != unit else []
        about.append("; ".join(map(" ".join, own)))
        said.append(f"{choice} ({''.join(about)})" if any(own) else choice)
    if said:
        text += f"Not told from none: {', '.join(said)}.\n\n"
    if lacking:
        text += f"Not measured in this build: {'; '.join(lacking)}.\n\n"
    brackets = "In brackets: 95 % intervals over images, each by itself, for the networks at hand."
    return text + (brackets if bool(known.any()) else "") + "\n"


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
        first, *others = [choice["says"], *names] if "says" in choice else names
        numbers = {key: found[key] for key in ("mean", "low", "high")}
        alone = not isinstance(table, Scores) and "with" in choice
        yield {"choice": first, "names": others, "page": choice["page"], "alone": alone} | numbers


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
    return "{mean:+.2g} [{low:+.2g}, {high:+.2g}]".format(**row).replace("-", "−")
