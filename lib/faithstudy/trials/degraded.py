"""Explanations made worse by a known amount (F-Fidelity, section 5): does a metric find their order?

One good explanation is degraded by known shares of noise, so that the order of the degraded explainers is known: the
less noise, the better.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from tqdm import tqdm

from faithlab import stats
from faithlab.metrics import METRICS, Metric, evaluate, families
from faithlab.scores import Scores
from faithlab.task import Task
from faithstudy.claims import Part, better, in_order
from faithstudy.trials import noise_order
from faithstudy.trials.comparisons import ALONE, COMPARISONS


def degraded(
    metrics: Mapping[str, Metric],
    task: Task,
    attributions: Mapping[str, Tensor],
    *,
    levels: Sequence[float],
    seeds: Sequence[int],
) -> Scores:
    """Every metric of every explanation, as it is and degraded.

    Args:
        metrics: by name.
        task: the inputs and networks.
        attributions: by explainer, [B, F].
        levels: shares of the features whose scores are permuted among themselves; 0 is the explanation as it is, which
            is always measured, and once for all seeds.
        seeds: of the noise.

    Returns:
        The long table; degraded explanations have the variant "shuffled", their level and noise seed.
    """
    tables = [evaluate(metrics, task, attributions)]
    for level, seed in tqdm([(r, s) for r in levels if r for s in seeds], desc="degraded explainers", mininterval=5):
        noisy = {labels["explainer"]: of for labels, of in noise_order.rows(task, attributions, [level], [seed])}
        tables.append(evaluate(metrics, task, noisy, variant=noise_order.SHUFFLED, level=level, noise_seed=seed))
    return Scores.concat(tables)


def correlations(
    scores: Scores,
    metrics: Mapping[str, Metric],
    *,
    levels: Sequence[float],
    seeds: Sequence[int],
    by: Sequence[str] = ("explainer",),
    **labels: Any,
) -> pd.DataFrame:
    """The paper's tables 1 to 7: rank correlations of each family of metrics with the true order, and its micro rank.

    They speak of the accuracy that remains, as the paper does; a Fid is what of it is lost.

    Args:
        scores: of `degraded`.
        metrics: by name. Those that come in both directions are compared as the paper does, others with the truth.
        levels: as in `degraded`.
        seeds: as in `degraded`.
        by: the labels of each trial, such as data set, network and explainer; each has its own inputs and interval.
        **labels: of the rows.

    Returns:
        Tidy: the labels named by `by`, level (macro_correlation, micro_correlation, micro_rank), comparison, metric
        (the family), mean, low, high. No mean where a correlation does not exist at any size.
    """
    both = {family: members for family, members in families(metrics).items() if len(members) == 2}
    named = {family: {metrics[name].direction: name for name in members} for family, members in both.items()}
    alone = {name: metric for name, metric in metrics.items() if not any(name in members for members in both.values())}
    asked = [(family, of, comparison) for family, of in named.items() for comparison in COMPARISONS]
    rows = []
    for family, of, comparison in [*asked, *((name, name, ALONE) for name in alone)]:
        if comparison == ALONE:
            sign, of_level = alone[family].better, partial(stats.found_order, levels, seeds, metric=family)
        elif comparison == "MoRF vs LeRF":
            # What is lost of one and the same accuracy: two signs that cancel.
            sign, of_level = 1, partial(stats.same_order, of["MoRF"], of["LeRF"], levels, seeds)
        else:
            name = of[comparison[:4]]
            sign, of_level = -1, partial(stats.found_order, levels, seeds, metric=name)
        found = {f"{m}_correlation": (sign, of_level(micro=m == "micro")) for m in ("macro", "micro")}
        if comparison in COMPARISONS[:2]:
            better = {each[comparison[:4]]: metrics[each[comparison[:4]]].better for each in named.values()}
            found["micro_rank"] = (1, stats.micro_rank(name, better, levels, seeds))
        for level, (sign, statistic) in found.items():
            # Few inputs have intervals that end where there are no correlations, or ranks.
            ends = (1, len(named)) if level == "micro_rank" else (-1, 1)
            for trial, of_trial in stats.summary(scores, by, statistic, **labels):
                value, low, high = (float((sign * x).clamp(*ends)) for x in of_trial.pooled)
                rows.append((*trial.values(), level, comparison, family, value, *sorted((low, high))))
    return pd.DataFrame(rows, columns=[*by, "level", "comparison", "metric", "mean", "low", "high"])


def reach(
    scores: Scores, metrics: Mapping[str, Metric], *, levels: Sequence[float], **labels: Any
) -> dict[str, stats.Estimate]:
    """How much there is to tell apart: by how much each metric finds the explanation better than the most degraded.

    Args:
        scores: of `degraded`.
        metrics: by name; what summarises each over images is compared, of curves the area.
        levels: as in `degraded`.
        **labels: of the rows.
    """
    return {
        name: changed(scores, {name: metric.better}, other=levels[-1], of=metric.summary, **labels)
        for name, metric in metrics.items()
    }


def changed(
    scores: Scores,
    weights: Mapping[str, float],
    one: float | None = None,
    other: float | None = None,
    *,
    of: stats.Statistic | Callable[..., Tensor] = stats.area,
    **labels: Any,
) -> stats.Estimate:
    """By how much noise changes metrics.

    Args:
        scores: of `degraded`.
        weights: of each metric's change, such as -1 for one that falls with noise.
        one: the share of noise that the change begins at; None: no noise.
        other: that it ends at; None: the largest.
        of: what summarises each metric over inputs.
        **labels: of the rows.
    """
    other = max(scores.labels("level")) if other is None else other
    asked = [({"metric": m, "level": level}, w * s) for m, w in weights.items() for level, s in ((one, 1), (other, -1))]
    cells, contrast = zip(*asked, strict=True)
    return stats.estimate(scores, of, cells=cells, contrasts=torch.tensor([contrast], dtype=torch.float64), **labels)


def least_step(scores: Scores, weights: Mapping[str, float], **labels: Any) -> tuple[str, stats.Estimate]:
    """The step from one share of noise to the next that is least sure: which it is, in words, and its change.

    It is the nearest to no change, measured by half of its own interval, as a claim names the least sure comparison.

    Args:
        scores: of `degraded`.
        weights: as in `changed`.
        **labels: of the rows.
    """
    levels = [None, *sorted(scores.labels("level"))]
    steps = {step: changed(scores, weights, *step, **labels) for step in itertools.pairwise(levels)}

    def sureness(of: stats.Estimate) -> float:
        half = float(of.high - of.low) / 2
        return float(of) / half if half > 0 else float(of)

    (low, high), least = min(steps.items(), key=lambda step: sureness(step[1]))
    return f"from {100 * (low or 0):g} to {100 * high:g} % of noise", least


def why_unordered(scores: Scores, **labels: Any) -> dict[tuple[str, str], stats.Estimate]:
    """What may keep F-Fidelity from finding the order of the degraded explanations.

    Is the order wrong, or are single steps so small that these inputs cannot tell? And what makes them small, the cap
    or the fine-tuned network? At the largest size R-Fidelity and F-Fidelity remove equally many features under LeRF:
    what they differ in there is the network.

    Args:
        scores: of `degraded`, with R-Fidelity and F-Fidelity in both directions.
        **labels: of the rows.

    Returns:
        By question and by what tells it, each turned so that above 0 is yes.
    """
    told = {}
    for way, direction, side in (("+", "MoRF", 1), ("-", "LeRF", -1)):
        own, more = {f"FFid{way}": side}, {f"RFid{way}": side, f"FFid{way}": -side}
        worse, (step, least) = f"{direction}: how much worse the area is", least_step(scores, own, **labels)
        told["Does all noise make the area worse?", f"{worse} with all noise"] = changed(scores, own, **labels)
        told["Is the least sure step clear?", f"{worse} {step}"] = least
        than = f"{worse} with all noise, R-Fidelity − F-Fidelity"
        told["Would R-Fidelity see more?", than] = changed(scores, more, **labels)
    than = "LeRF: how much worse the largest size is with all noise, R-Fidelity − F-Fidelity"
    told["Would the network alone do that?", than] = changed(scores, more, of=lambda s: s.mean()[:, -1], **labels)
    return told


def ordered(
    scores: Scores, metric: str, levels: Sequence[float], *, part: Callable[..., Part] = in_order, **how: Any
) -> Part:
    """Part of a claim: every step of noise makes the area of a metric worse.

    Args:
        scores: of `degraded`.
        metric: its name.
        levels: as in `degraded`.
        part: `faithstudy.claims.in_order`, or `faithstudy.claims.trend`, where noise need not do so at every step.
        **how: as in `faithstudy.claims.above`.
    """
    order = [level or None for level in levels]
    return part(scores, "level", order, of=stats.area, metric=metric, rises=METRICS[metric].better < 0, **how)


def ahead(
    scores: Scores,
    one: str,
    other: str,
    *,
    levels: Sequence[float],
    seeds: Sequence[int],
    micro: bool = False,
    part: Callable[..., Part] = better,
    **how: Any,
) -> Part:
    """Part of a claim: the mean step of a metric from one level of noise to the next is larger than that of another.

    Args:
        scores: of `degraded`.
        one: a metric.
        other: one of the same direction.
        levels: as in `degraded`.
        seeds: as in `degraded`.
        micro: at single sizes; else by the areas.
        part: `faithstudy.claims.better`, or `faithstudy.claims.no_worse` with its margin and reason.
        **how: as in `faithstudy.claims.above`.
    """
    of = stats.mean_step(levels, seeds, micro=micro, better=METRICS[one].better)
    return part(scores, {"metric": one}, {"metric": other}, of=of, **how)


def told_apart(scores: Scores, *, metric: str, levels: Sequence[float], seeds: Sequence[int], **labels: Any) -> Tensor:
    """Whether a metric gives two of the degraded explanations different scores, at each size and seed of the noise.

    Where it does not, its micro correlation does not exist. This counts what happened on these inputs: there is no
    interval.

    Returns:
        [seeds, sizes] bool.
    """

    def curve(level: float, seed: int) -> Tensor:
        rows = scores.where(metric=metric, level=level or None, noise_seed=seed if level else None, **labels)
        return torch.cat([block.values for block in rows]).double().mean(0)

    means = torch.stack([torch.stack([curve(r, s) for r in levels]) for s in seeds]).round(decimals=9)
    return (means != means[:, :1]).any(1)
