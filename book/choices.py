"""What a choice that a paper leaves open changes, where a page of the study has measured it; largest first."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import judged
import pandas as pd
import torch

from faithlab import stats
from faithlab.scores import Scores
from faithlab.study import tables


def ranked(results: Path, unit: str, measured: Sequence[Mapping[str, Any]]) -> str:
    """The measured effects of a paper's choices as a table, the largest first, and what cannot be told from none.

    Args:
        results: the results of a build, in which a larger recorded run takes the place of a page's table.
        unit: of the effects.
        measured: as in `choices.yml`.
    """
    rows, lacking = [], []
    for choice in measured:
        found = list(_effects(results, choice))
        rows += found
        if not found:
            lacking.append(choice.get("says", choice["page"]))
    if not rows:
        return "No page of this build measures what the choices below do to the result.\n"
    every = pd.DataFrame(rows)
    certain = (every["low"] > 0) | (every["high"] < 0)
    sure = every[certain].sort_values("mean", key=abs, ascending=False, kind="stable")
    text = "No choice that was measured changes the result beyond its noise.\n"
    if len(sure):
        lines = [
            f"| {', '.join([row['choice'], *row['names']])} | {_interval(row)} | [](../../notebooks/{row['page']}) |"
            for row in sure.to_dict("records")
        ]
        text = f"In {unit}, the largest change first:\n\n| Choice | Change | Measured in |\n|---|--:|---|\n"
        text += "\n".join(lines) + "\n"
    others = every[~certain].groupby("choice", sort=False)["names"].agg(list)
    if len(others):
        said = (f"{name} ({', '.join(map(' '.join, own))})" if any(own) else name for name, own in others.items())
        text += f"\nNot told from none: {'; '.join(said)}.\n"
    if lacking:
        text += f"\nNot measured in this build: {'; '.join(lacking)}.\n"
    return text + "\nIn brackets: 95 % intervals over images, each by itself, for the networks at hand.\n"


def _effects(results: Path, choice: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of choice, names (what else tells them apart), page, mean, low, high; none without such a table or rows."""
    folder = results / choice["page"]
    path = next((p for p in (folder / f"{choice['table']}{end}" for end in (".csv", ".parquet")) if p.is_file()), None)
    if path is None:
        return
    kept = judged.better(folder, choice["page"], choice["table"])
    table = kept.frame if kept else pd.read_csv(path) if path.suffix == ".csv" else Scores.load(path)
    own = _of_scores(table, choice) if isinstance(table, Scores) else _of_changes(table, choice)
    for names, found in own:
        first, *others = [choice["says"], *names] if "says" in choice else names
        numbers = {key: found[key] for key in ("mean", "low", "high")}
        yield {"choice": first, "names": others, "page": choice["page"]} | numbers


def _of_changes(table: pd.DataFrame, choice: Mapping[str, Any]) -> Iterator[tuple[list[str], Mapping[str, float]]]:
    for name, value in choice.get("rows", {}).items():
        table = table[table[name] == value]
    for row in table.to_dict("records"):
        yield [row[name] for name in choice["names"]], row


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
        found = stats.estimate(both, cells=cells, contrasts=torch.tensor([[1.0, -1.0]]), **options, **labels, **own)
        yield [value.split(" test")[0] for value in values], tables.interval(found)


def _interval(row: Mapping[str, float]) -> str:
    return "{mean:+.2g} [{low:+.2g}, {high:+.2g}]".format(**row).replace("-", "−")
