"""The price of a decision: how many images and forwards a metric needs to tell explanations apart that differ.

The pairs are those of Order and Chance: each explanation and the one with noise, each and a random order.
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

import pandas as pd
import torch
from torch import Tensor

from faithlab import stats
from faithlab.metrics import Metric
from faithlab.scores import Scores
from faithlab.stats import Sample, Statistic
from faithstudy.trials.chance import RANDOM
from faithstudy.trials.concordance import Cell, cells, turned
from faithstudy.trials.noise_order import SHUFFLED

POWER = 2.80
"""Standard errors at which a 95 % interval excludes zero four times in five: 1.96 + 0.84."""


def effect(pairs: Sequence[tuple[Cell, Cell]]) -> Statistic:
    """The mean difference of pairs of cells over its standard deviation, the mean over the pairs."""

    def mean_effect(*samples: Sample) -> Tensor:
        found = []
        for one, other in zip(samples[::2], samples[1::2], strict=True):
            difference = dataclasses.replace(one, values=one.values - other.values)
            spread = dataclasses.replace(one, values=difference.values**2).mean() - difference.mean() ** 2
            found.append(difference.mean() / spread.clamp(min=1e-24).sqrt())
        return torch.stack(found).mean(0)

    return Statistic(mean_effect, tuple(itertools.chain(*pairs)), "effect")


def price(scores: Scores, metrics: Mapping[str, Metric], features: int, level: float = 0.4) -> pd.DataFrame:
    """What it costs to tell explanations apart that differ: forwards, and what n images can show.

    The pairs: each explanation and the one with this share of noise, each and a random order. Their effect is the mean
    difference over its standard deviation. Images with a power of 80 % follow from it, and forwards from these.

    Args:
        scores: of `examine`.
        metrics: by name.
        features: of an input.
        level: share of noise.

    Returns:
        Tidy: metric, each (forwards for one explanation of one image), effect, low, high, images, images_low,
        images_high, forwards (of both explanations of a pair; infinite where the metric finds no effect), and
        shows_10, shows_100, shows_1000: the smallest difference that so many images show, as a part of the distance of
        an explanation from a random order.
    """
    table, rows = turned(scores, metrics), []
    for name, metric in metrics.items():
        base, found = cells(name, table, metric)
        noisy = {cell["explainer"]: cell for cell in found(variant=SHUFFLED, level=level)}
        against = [(cell, random) for cell in base for random in found(explainer=RANDOM, variant=None)[:1]]
        every = [(cell, noisy[cell["explainer"]]) for cell in base if cell["explainer"] in noisy] + against
        if not every:
            continue
        value, low, high = (float(x) for x in stats.estimate(table, effect(every)).pooled)
        images = [(POWER / e) ** 2 if e > 0 else float("inf") for e in (value, high, low)]
        each = metric.forward_passes(features)
        # A difference of POWER standard deviations / sqrt(n), in distances: their ratio is the effect.
        far = stats.estimate(table, effect(against)).value
        shows = [POWER / n**0.5 / float(far) if far > 0 else float("inf") for n in (10, 100, 1000)]
        forwards = 2 * each * images[0] if each else 0.0  # a metric that asks nothing costs nothing
        rows.append((name, each, value, low, high, *images, forwards, *shows))
    columns = ["metric", "each", "effect", "low", "high", "images", "images_low", "images_high", "forwards"]
    return pd.DataFrame(rows, columns=[*columns, "shows_10", "shows_100", "shows_1000"])
