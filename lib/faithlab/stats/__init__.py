"""Ranks, correlations and areas; and `estimate`, the one bootstrap and the one interval of the study."""

from faithlab.stats.intervals import Estimate, Interval, estimate, exact, paired, summary
from faithlab.stats.ranks import MonteCarlo, auc, bootstrap, kappa, pearson, rank, spearman
from faithlab.stats.samples import (
    Sample,
    Statistic,
    agreement,
    area,
    association,
    difference,
    explainers_ranked,
    found_order,
    images_ranked,
    like_numbers,
    mean,
    mean_step,
    mege,
    micro_rank,
    ranked_alike,
    same_order,
    settled,
    spread,
    told_apart,
    youden,
)
