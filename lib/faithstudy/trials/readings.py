"""Readings of the long table of the examination beside its trials: of metrics, of pairs of them, of one explainer."""

import itertools
from collections.abc import Mapping

import pandas as pd
from torch import Tensor

from faithlab import stats
from faithlab.metrics import Metric
from faithlab.scores import Scores
from faithlab.stats import Sample, Statistic
from faithstudy.trials.adversarial import SEARCHED
from faithstudy.trials.chance import RANDOM
from faithstudy.trials.concordance import cells, turned


def agreement(scores: Scores, metrics: Mapping[str, Metric]) -> pd.DataFrame:
    """Do metrics rank the explainers of an image alike? `faithlab.stats.explainers_ranked`, for every pair.

    Args:
        scores: of `examine`.
        metrics: by name; those that were not asked are left out.

    Returns:
        Tidy: metric, other (later in the alphabet), correlation, low, high.
    """
    table = turned(scores, metrics)
    native = [b for b in table if b.labels.get("reference") == metrics[b.labels["metric"]].baseline]
    table = Scores([b for b in native if not any(b.labels.get(k) for k in ("variant", "draw", "noise_seed"))])
    names = sorted({*metrics} & {*table.labels("metric")})
    explainers, rows = table.labels("explainer"), []
    for one, other in itertools.combinations(names, 2):
        ranked = stats.explainers_ranked([(one, other)], explainers, dict.fromkeys(names, 1))
        rows.append((one, other, *(float(x) for x in stats.estimate(table, ranked).pooled)))
    return pd.DataFrame(rows, columns=["metric", "other", "correlation", "low", "high"])


def report(scores: Scores, metrics: Mapping[str, Metric], explainer: str) -> pd.DataFrame:
    """The card of one explainer: what each metric says of it, how far it is to the best order, and to the best rival.

    Args:
        scores: of `examine`.
        metrics: by name.
        explainer: whose card.

    Returns:
        Tidy: metric, score, score_low, score_high (the metric's own numbers turned so that higher is better),
        attainable, attainable_low, attainable_high (0 a random order, 1 what the search of Gaming found; missing where
        there was none), rival (the best other explainer), ahead, ahead_low, ahead_high (of it, on the same images).
    """

    def part(of: Sample, random: Sample, top: Sample) -> Tensor:
        return (of.mean() - random.mean()) / (top.mean() - random.mean())

    def interval(name: str, of: stats.Estimate | None) -> dict[str, float]:
        ends = [float("nan")] * 3 if of is None else [float(x) for x in of.pooled]
        return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))

    table, rows = turned(scores, metrics), []
    for name, metric in metrics.items():
        base, found = cells(name, table, metric)
        own, rivals = ([b for b in base if (b["explainer"] == explainer) is its] for its in (True, False))
        if not own or not rivals:
            continue
        rival = max(rivals, key=lambda cell: float(stats.estimate(table, **cell).value))
        ends = own + found(explainer=RANDOM, variant=None)[:1] + found(variant=SEARCHED, explainer=name)
        share = stats.estimate(table, Statistic(part, tuple(ends), "part")) if len(ends) == 3 else None
        row = {"metric": name, **interval("score", stats.estimate(table, **own[0])), **interval("attainable", share)}
        ahead = interval("ahead", stats.estimate(table, cells=[*own, rival], contrasts=[[1, -1]]))
        rows.append(row | {"rival": rival["explainer"], **ahead})
    return pd.DataFrame(rows)
