"""Explanations made worse by a known amount (F-Fidelity, section 5): does a metric find their order?

One good explanation is degraded by known shares of noise, so that the order of the degraded explainers is known: the
less noise, the better.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from torch import Tensor
from tqdm import tqdm

from faithlab import stats
from faithlab.explainers.degrade import degrade
from faithlab.metrics import METRICS, Metric, evaluate, families
from faithlab.scores import Scores
from faithlab.subject import Subject


def degraded(
    metrics: Mapping[str, Metric],
    subject: Subject,
    attributions: Mapping[str, Tensor],
    *,
    levels: Sequence[float],
    seeds: Sequence[int],
) -> Scores:
    """Every metric of every explanation, as it is and degraded.

    Args:
        metrics: by name.
        subject: the inputs and networks.
        attributions: by explainer, [B, F].
        levels: shares of the features whose scores are permuted among themselves; 0 is the explanation as it is, which
            is always measured, and once for all seeds.
        seeds: of the noise.

    Returns:
        The long table; degraded explanations have the variant "shuffled", their level and noise seed.
    """
    tables = [evaluate(metrics, subject, attributions)]
    for level, seed in tqdm([(r, s) for r in levels if r for s in seeds], desc="degraded explainers", mininterval=5):
        noisy = {
            explainer: degrade(attribution, level, seed=seed, images=subject.images, present=subject.present)
            for explainer, attribution in attributions.items()
        }
        tables.append(evaluate(metrics, subject, noisy, variant="shuffled", level=level, noise_seed=seed))
    return Scores.concat(tables)


COMPARISONS = ("MoRF vs GT", "LeRF vs GT", "MoRF vs LeRF")
"""What F-Fidelity compares: the accuracy that remains without the most, or the least, relevant features with the true
order (GT), and with each other. The ideal correlations are -1, 1 and -1."""

IDEAL = dict(zip(COMPARISONS, (-1, 1, -1), strict=True))
"""The correlation of a metric that ranks rightly, by comparison."""


def correlations(
    scores: Scores, metrics: Mapping[str, Metric], *, levels: Sequence[float], seeds: Sequence[int], **labels: Any
) -> pd.DataFrame:
    """The paper's tables 1 to 7: rank correlations of each family of metrics with the true order, and its micro rank.

    They speak of the accuracy that remains, as the paper does; a Fid is what of it is lost.

    Args:
        scores: of `degraded`.
        metrics: those that come in both directions, by name.
        levels: as in `degraded`.
        seeds: as in `degraded`.
        **labels: of the rows, where the table has more than one data set or the like.

    Returns:
        Tidy: explainer, level (macro_correlation, micro_correlation, micro_rank), comparison, metric (the family),
        mean, low, high. No mean where a correlation does not exist at any size.
    """
    named = {
        family: {metrics[name].direction: name for name in members}
        for family, members in families(metrics).items()
        if all(metrics[name].direction for name in members)
    }
    table = scores.where(**labels) if labels else scores
    explainers = [{"explainer": explainer} for explainer in table.labels("explainer")]
    rows = []
    for family, of in named.items():
        for comparison in COMPARISONS:
            if comparison == "MoRF vs LeRF":
                # What is lost of one and the same accuracy: two signs that cancel.
                found = {
                    f"{m}_correlation": (1, stats.same_order(of["MoRF"], of["LeRF"], levels, seeds, micro=m == "micro"))
                    for m in ("macro", "micro")
                }
            else:
                name = of[comparison[:4]]
                better = {each[comparison[:4]]: metrics[each[comparison[:4]]].better for each in named.values()}
                found = {
                    f"{m}_correlation": (-1, stats.found_order(levels, seeds, metric=name, micro=m == "micro"))
                    for m in ("macro", "micro")
                }
                found["micro_rank"] = (1, stats.micro_rank(name, better, levels, seeds))
            for level, (sign, statistic) in found.items():
                e = stats.estimate(table, statistic, cells=explainers)
                rows += [
                    (cell["explainer"], level, comparison, family, sign * value, *sorted((sign * low, sign * high)))
                    for cell, value, low, high in zip(explainers, *(x.tolist() for x in e.pooled), strict=True)
                ]
    return pd.DataFrame(rows, columns=["explainer", "level", "comparison", "metric", "mean", "low", "high"])


def printed(
    paper: pd.DataFrame, explainer: str, level: str, metrics: Sequence[str] = ("FFid+", "Fid+", "ROAR+", "RFid+")
) -> dict[str, float] | list[float]:
    """What the paper's tables print under MoRF, turned so that higher is better: NaN where they print nothing.

    Args:
        paper: of `faithlab.study.published`, "ffidelity_correlations".
        explainer: as the paper calls it.
        level: macro_correlation or micro_correlation.
        metrics: by name; a list where others than all four are wanted.
    """
    chosen = paper[
        (paper["explainer"] == explainer) & (paper["level"] == level) & (paper["comparison"] == "MoRF vs GT")
    ]
    means = -chosen.groupby("metric")["mean"].mean()
    found = {name: float(means.get(METRICS[name].family, float("nan"))) for name in metrics}
    return found if isinstance(metrics, tuple) else list(found.values())
