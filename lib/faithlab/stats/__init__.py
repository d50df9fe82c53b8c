"""Ranks, correlations and areas; and `estimate`, the one bootstrap and the one interval of the study."""

from faithlab.stats.intervals import Estimate, Interval, estimate, summary
from faithlab.stats.ranks import MonteCarlo, auc, bootstrap, pearson, rank, spearman
from faithlab.stats.samples import (
    Sample,
    Statistic,
    area,
    association,
    difference,
    explainers_ranked,
    found_order,
    images_ranked,
    mean,
    mege,
    micro_rank,
    pairs_in_order,
    ranked_alike,
    same_order,
    youden,
)

__all__ = [
    "Estimate",
    "Interval",
    "MonteCarlo",
    "Sample",
    "Statistic",
    "area",
    "association",
    "auc",
    "bootstrap",
    "difference",
    "estimate",
    "explainers_ranked",
    "found_order",
    "images_ranked",
    "mean",
    "mege",
    "micro_rank",
    "pairs_in_order",
    "pearson",
    "rank",
    "ranked_alike",
    "same_order",
    "spearman",
    "summary",
    "youden",
]
