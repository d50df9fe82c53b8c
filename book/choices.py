"""How much a choice that a paper leaves open changes the result, where a page has measured it; largest first."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import words

from faithlab import stats
from faithlab.metrics import METRICS
from faithlab.scores import Scores
from faithstudy import tables
from faithstudy.numbers import interval

STATISTICS = {name: METRICS[name].summary for name in ("ReCo", "MeGe")}
"""Statistics in place of the mean, by their name in `choices.yml`."""


def ranked(results: Path, unit: str, measured: Sequence[Mapping[str, Any]]) -> str:
    """The effects of a paper's choices, in Markdown: those told from none first, then by size.

    Args:
        results: the tables of a build.
        unit: of the effects of choices that name none of their own.
        measured: as in `choices.yml`.
    """
    rows = []
    for choice in measured:
        for names, found in _effects(results, choice):
            says = choice.get("says", "")
            first, *others = [says[names[0]], *names[1:]] if isinstance(says, Mapping) else [says, *names]
            others = [words.plain(words.label(name)) for name in others]
            rows.append({"choice": ", ".join(filter(None, [first, *others])), "page": choice["page"], **found})
            rows[-1] |= {"unit": choice.get("unit", unit)}
    if not rows:
        return "No page of this book measures what the choices below do to the result.\n"
    every = pd.DataFrame(rows).sort_values("mean", key=abs, ascending=False, kind="stable")
    text = ""
    for of, own in every.groupby("unit", sort=False):
        told = ((own["low"] > 0) | (own["high"] < 0)).sort_values(ascending=False, kind="stable")
        text += f"In {of}:\n\n" + words.markdown(
            {
                "Choice": row["choice"],
                "Change": interval(row["mean"], row["low"], row["high"], plus=True),
                "Measured in": f"[](../../notebooks/{row['page']})",
            }
            for _, row in own.loc[told.index].iterrows()
        )
        text += "\n"
    return text + "In brackets: 95 % intervals over inputs, each by itself, for the networks at hand.\n"


def _effects(results: Path, choice: Mapping[str, Any]) -> Iterator[tuple[list[str], dict[str, float]]]:
    """What tells the effects of a choice apart, and mean, low and high of each; none without such a table or rows."""
    path = results / choice["page"] / choice["table"]
    if path.with_suffix(".parquet").is_file():
        yield from _of_scores(Scores.load(path.with_suffix(".parquet")), choice)
    elif path.with_suffix(".csv").is_file():
        table = pd.read_csv(path.with_suffix(".csv"))
        for name, value in choice.get("rows", {}).items():
            table = table[table[name] == value]
        for row in table.to_dict("records"):
            yield [row[name] for name in choice["names"]], {end: row[end] for end in ("mean", "low", "high")}


def _of_scores(table: Scores, choice: Mapping[str, Any]) -> Iterator[tuple[list[str], dict[str, float]]]:
    labels, each = choice.get("rows", {}), choice.get("each", [])
    try:
        one, other = (table.where(**{**labels, **choice[which]}) for which in ("with", "against"))
    except ValueError:  # a run of other parameters has no such rows
        return
    for values in product(*(one.labels(name) for name in each)):
        own = dict(zip(each, values, strict=True))
        here = [[b.labels for b in t if all(b.labels.get(n) == v for n, v in own.items())] for t in (one, other)]
        shared = {
            name: [v for v in dict.fromkeys(b.get(name) for b in here[0]) if v in [b.get(name) for b in here[1]]]
            for name in ("network", "explainer")
        }
        given = {name: of for name, of in shared.items() if name not in {**labels, **choice["with"], **own}}
        if not all(given.values()) or not all(here):
            continue
        both = Scores.concat(t.where(**own, **given) for t in (one, other))
        options = {"explainer": given["explainer"]} if "explainer" in given else {}
        of = STATISTICS.get(choice.get("statistic"), stats.mean)
        found = tables.interval(
            stats.paired(both, choice["with"], choice["against"], of=of, **options, **labels, **own)
        )
        if math.isfinite(found["mean"]):
            names = [value.split(" test")[0].removesuffix(" train") for value in values]
            yield names, {end: found[end] for end in ("mean", "low", "high")}
