"""Ranks, correlations and areas; and `estimate`, the one bootstrap and the one interval of the study."""

from faithlab.stats.intervals import Estimate, Interval, estimate, summary
from faithlab.stats.ranks import MonteCarlo, auc, bootstrap, pearson, rank, spearman
from faithlab.stats.samples import Sample, Statistic, area, association, mean, mege, ranked_alike, youden

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
    "estimate",
    "mean",
    "mege",
    "pearson",
    "rank",
    "ranked_alike",
    "spearman",
    "summary",
    "youden",
]
