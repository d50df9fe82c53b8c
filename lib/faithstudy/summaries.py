"""The sentence that answers a page's title, where several pages ask the same question."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import torch

from faithlab import stats
from faithlab.scores import Scores
from faithlab.stats import Estimate
from faithlab.stats.samples import Statistic, difference
from faithstudy import numbers, tables
from faithstudy.display_names import SETS
from faithstudy.trials import comparisons

FAMILIES = {"Fid": "Fidelity", "ROAR": "ROAR", "RFid": "R-Fidelity", "FFid": "F-Fidelity"}
CELL = ("dataset", "network", "explainer")


def listed(words: Sequence[str]) -> str:
    """Words with an "and" before the last."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def of_each(found: Mapping[str, float], digits: int = 2) -> str:
    """A number of each of several, with its name behind it, for a sentence."""
    return listed([f"{numbers.number(value, digits)} ({name})" for name, value in found.items()])


def mean_of(scores: Scores, cells: Sequence[Mapping[str, Any]], of: Statistic, **labels: Any) -> Estimate:
    """The mean of a statistic over cells, which may be of several networks and data sets."""
    share = torch.full((1, len(cells)), 1 / len(cells), dtype=torch.float64)
    return stats.estimate(scores, of, cells=cells, contrasts=share, **labels)


def unlike_print(correlations: pd.DataFrame, printed: pd.DataFrame) -> str:
    """Which of the rivals' correlations surely have another sign here than in print, in words.

    Args:
        correlations: of `faithstudy.trials.degraded.correlations`.
        printed: the paper's.
    """
    return (
        "A lead can be reproduced where the rivals' own numbers are not. Macro correlations, as shares of the ideal, "
        f"that surely have another sign here than in print: {comparisons.reversed_here(printed, correlations)}."
    )


def mean_step(family: str, levels: Sequence[float], seeds: Sequence[int]) -> Statistic:
    """The mean step of the areas from one level of noise to the next, in standard deviations: MoRF and LeRF."""
    morf, lerf = (_one_way(family, way, levels, seeds) for way in "+-")
    own = len(morf.over)

    def step(*samples):
        return (morf.function(*samples[:own]) + lerf.function(*samples[own:])) / 2

    return Statistic(step, morf.over + lerf.over, "mean step (standard deviations)")


def _one_way(family: str, way: str, *noise: Sequence, **how: bool) -> Statistic:
    """The mean step of one metric of a family: under MoRF (+) or LeRF (-)."""
    of = stats.mean_step(*noise, better=1 if way == "+" else -1, **how)
    return replace(of, over=tuple({"metric": f"{family}{way}", **own} for own in of.over))


def best_order(known: Scores, levels: Sequence[float], seeds: Sequence[int], without: Collection[str] = ()) -> str:
    """Which of F-Fidelity's metrics rank degraded explanations best, by their areas, MoRF and LeRF taken together.

    A metric is ahead of another where the interval of the difference on the same inputs lies above 0. Where one is
    ahead of all, it is also said which are ahead of it at single sizes under LeRF.

    Args:
        known: of `faithstudy.trials.degraded.degraded`.
        levels: of noise.
        seeds: of the noise.
        without: data sets that are left out, unless there are no others.
    """
    if kept := [name for name in known.labels("dataset") if name not in without]:
        known = known.where(dataset=kept)
    cells = [dict(zip(CELL, of, strict=True)) for of in dict.fromkeys(tuple(b.labels[k] for k in CELL) for b in known)]
    share, noise = partial(mean_of, known, cells), (levels, seeds)
    of = {name: mean_step(f, *noise) for f, name in FAMILIES.items() if f"{f}+" in known.labels("metric")}
    found = {name: share(statistic) for name, statistic in of.items()}
    order = sorted(found, key=lambda name: -float(found[name].value.nan_to_num(-math.inf)))
    said = {name: f"{name} {tables.number(found[name])}" for name in order}
    behind = [name for name in order[1:] if bool(share(difference(of[order[0]], of[name])).low > 0)]
    level = [said[name] for name in order if name not in behind]
    text = f"**{listed(level)}** " + ("are not clearly apart" if len(level) > 1 else "ranks them best")
    if behind:
        text += f", ahead of {listed([said[name] for name in behind])}"
    lost = []
    if len(level) == 1:
        there = {name: f for f, name in FAMILIES.items() if name in of and f"{f}-" in known.labels("metric")}
        lerf = {name: _one_way(f, "-", *noise, micro=True) for name, f in there.items()}
        leads = {name: share(difference(lerf[name], lerf[order[0]])) for name in behind if name in lerf}
        lost = [f"{name} by {tables.number(lead)}" for name, lead in leads.items() if bool(lead.low > 0)]
    sets = listed([SETS.get(name, name) for name in (d.split()[0] for d in known.labels("dataset"))])
    whom = f"{found[order[0]].images:,} inputs of {sets}; {'; '.join(listed(known.labels(k)) for k in CELL[1:])}"
    return (
        f"{text}: the mean step of a metric's areas from one share of noise to the next "
        f"(standard deviations over inputs; below 0: the wrong way), mean of MoRF and LeRF "
        f"over {len(cells)} case{'s' * (len(cells) > 1)} "
        f"({whom})." + f" Least relevant first and at single sizes it is behind {listed(lost)}." * bool(lost)
    )
