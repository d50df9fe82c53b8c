"""Ranks, correlations and areas; and `estimate`, the one bootstrap and the one interval of the study."""

from faithlab.stats.intervals import Estimate, Interval, estimate, summary
from faithlab.stats.ranks import MonteCarlo, auc, bootstrap, pearson, rank, spearman
from faithlab.stats.samples import (
    Sample,
    Statistic,
    agreement,
    area,
    association,
    found_order,
    mean,
    mege,
    micro_rank,
    pairs_in_order,
    ranked_alike,
    same_order,
    told_apart,
    youden,
)

__all__ = [
    "Estimate",
    "Interval",
    "MonteCarlo",
    "Sample",
    "Statistic",
    "agreement",
    "area",
    "association",
    "auc",
    "bootstrap",
    "estimate",
    "found_order",
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
    "told_apart",
    "youden",
]
