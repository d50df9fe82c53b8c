"""The price of a decision: how many images and forwards a metric needs to tell explanations apart that differ.

The pairs are those of Order and Chance: each explanation and the one with noise, each and a random order.
"""

import dataclasses
import itertools
import math
import statistics
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from faithlab import rng, stats
from faithlab.metrics import Metric
from faithlab.scores import Scores
from faithlab.stats import Sample, Statistic, sequential
from faithstudy.trials.chance import RANDOM
from faithstudy.trials.concordance import Cell, cells, turned
from faithstudy.trials.concordance import each as of_networks
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
        pairs, against = _told_apart(name, table, metric, level)
        if not (every := pairs + against):
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


def until_decided(scores: Scores, metrics: Mapping[str, Metric], level: float = 0.4) -> pd.DataFrame:
    """What it did cost to tell explanations apart: the images until the rule of `faithlab.decide` had decided.

    The pairs are those of `price`, on each network by itself. Their images come in random order, and after 32 of them
    (after all, where there are fewer), and then after every quarter more, the interval of the mean difference is looked
    at, until it excludes zero. Nothing is asked: these are scores that are there. `price` says beforehand what it
    takes on average; this is what was found in one run.

    Args:
        scores: of `examine`.
        metrics: by name.
        level: share of noise.

    Returns:
        Tidy: metric, images (the median over the pairs until the better one is told from the worse; infinite where that
        is not so for more than half of them), pairs (times networks), told (how many were told apart rightly),
        wrong (the worse one was called better), of (the most images that a pair has).
    """
    table, rows, nobody = turned(scores, metrics), [], torch.zeros(1, dtype=torch.int64)
    for name, metric in metrics.items():
        ends, most = [], 0
        for better, worse in itertools.chain(*_told_apart(name, table, metric, level)):
            for *_, values in of_networks((better, worse), table):
                difference = values[:, 0] - values[:, 1]
                count = len(difference)
                if count < 2:
                    continue  # there is no interval
                looks = sequential.looks(min(sequential.FIRST, count), count, sequential.GROWTH)
                order = rng.permutations(0, nobody, nobody, count).flatten()
                blocks = difference[order].split(np.diff(looks, prepend=0).tolist())
                ends.append(sequential.until_decided(blocks, looks)[-1])
                most = max(most, count)
        if ends:
            images = [end.images + end.missing if end.low > 0 else math.inf for end in ends]
            told, wrong = sum(end.low > 0 for end in ends), sum(end.high < 0 for end in ends)
            rows.append((name, statistics.median(images), len(ends), told, wrong, most))
    return pd.DataFrame(rows, columns=["metric", "images", "pairs", "told", "wrong", "of"])


def lost_to_noise(scores: Scores, metrics: Mapping[str, Metric], level: float = 1.0) -> pd.DataFrame:
    """What noise costs the score of a single input: the explanation as it is, less the same one with noise in it.

    Args:
        scores: of `examine`.
        metrics: by name; those that were not asked of noise have no row.
        level: share of noise.

    Returns:
        By metric: effect (the mean over inputs, explainers and networks, in standard deviations over them), same (share
        of the scores that noise does not change) and noisy (the mean score with noise; higher is better).
    """
    table, rows = turned(scores, metrics), {}
    for name, metric in metrics.items():
        pairs, _ = _told_apart(name, table, metric, level)
        lost = [of[:, 0] - of[:, 1] for pair in pairs for *_, of in of_networks(pair, table)]
        if lost:
            lost = torch.cat(lost).numpy()
            noisy = torch.cat([b.values for _, worse in pairs for b in table.where(**worse)]).double().nanmean()
            effect = np.nanmean(lost) / max(np.nanstd(lost), 1e-12)
            rows[name] = {"effect": effect, "same": (lost == 0).mean(), "noisy": float(noisy)}
    return pd.DataFrame.from_dict(rows, orient="index", columns=["effect", "same", "noisy"])


def _told_apart(name: str, scores: Scores, metric: Metric, level: float) -> tuple[list, list]:
    """Pairs of the labels of a better and a worse explanation: itself and one with noise, itself and a random order."""
    base, found = cells(name, scores, metric)
    noisy = {b["explainer"]: b for b in found(variant=SHUFFLED, level=level)}
    random = found(explainer=RANDOM, variant=None)[:1]
    return [(b, noisy[b["explainer"]]) for b in base if b["explainer"] in noisy], [(b, r) for b in base for r in random]
