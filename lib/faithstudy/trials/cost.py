"""What does a piece of work cost: its wall time, beside that of the bare forwards that it needs?

The speed of a machine drifts. So what is compared runs in turn, and ratios are taken within a turn.
"""

import math
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.special
import torch
from torch import Tensor, nn

from faithlab.stats import Estimate, Sample, Statistic, auc
from faithlab.stats.samples import Labels
from faithstudy import numbers
from faithstudy.claims.verdicts import LEVEL

Work = Callable[[], object]


def seconds(work: Work) -> float:
    """Wall time of a function call, the device's queue included."""
    for waits in (True, False):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        if waits:
            start = time.perf_counter()
            work()
    return time.perf_counter() - start


def in_turn(
    jobs: Mapping[Hashable, Work], repeats: int, names: Sequence[str] = ("what",), *, warm: bool = True
) -> pd.DataFrame:
    """The wall time of every piece of work in every round: the parts of its name, "repeat" from 1, "seconds".

    Args:
        jobs: the work, by name, or by the parts of its name.
        repeats: rounds that are reported.
        names: what the parts are called.
        warm: with one round before them that is not.
    """
    rows = []
    for number in range(1 - warm, repeats + 1):
        for what, job in jobs.items():
            rows.append((*(what if isinstance(what, tuple) else [what]), number, seconds(job)))
    found = pd.DataFrame(rows, columns=[*names, "repeat", "seconds"])
    return found[found["repeat"] > 0].reset_index(drop=True)


@torch.inference_mode()
def forwards(network: nn.Module, batch: Tensor, count: int) -> None:
    """So many inputs, those of a batch again and again, and nothing else: the floor of all work that asks as many."""
    for start in range(0, count, len(batch)):
        network(batch[: count - start])


@dataclass(frozen=True)
class Ratio:
    """A positive ratio with its interval; from 0 to infinity where that is not known.

    Attributes:
        value: the ratio.
        low: lower end.
        high: upper end.
    """

    value: float
    low: float = 0.0
    high: float = math.inf

    @classmethod
    def over_turns(cls, ratios: Sequence[float], parts: int = 1) -> "Ratio":
        """The geometric mean of the ratios of several turns, with Student's interval of their logarithms.

        Args:
            ratios: one of each turn; a single one has no interval.
            parts: how many ratios a claim makes a part of: each is judged at its share of the error rate, by
                Bonferroni's inequality; 1: the interval is that of 95 %.
        """
        logs = np.log(np.asarray(ratios, dtype=float))
        if len(logs) < 2:
            return cls(float(np.exp(logs.mean())))
        half = -scipy.special.stdtrit(len(logs) - 1, LEVEL / parts) * logs.std(ddof=1) / len(logs) ** 0.5
        return cls(*(float(np.exp(logs.mean() + by)) for by in (0, -half, half)))

    @classmethod
    def of(cls, estimate: Estimate) -> "Ratio":
        """An estimate of one number that cannot be negative."""
        value, low, high = (float(end.flatten()[0]) for end in estimate.pooled)
        return cls(value) if math.isnan(low) else cls(value, max(low, 0.0), high)

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the interval."""
        return self.low, self.high

    def over(self, other: "Ratio") -> "Ratio":
        """This one divided by another that was measured apart from it.

        Of logarithms, the distances from the values to the ends are added in squares (MOVER; Zou and Donner,
        "Construction of confidence limits about effect measures", Statistics in Medicine 27, 2008).
        """
        with np.errstate(divide="ignore"):
            (mine, low, high), (its, its_low, its_high) = (np.log([r.value, r.low, r.high]) for r in (self, other))
        below, above = math.hypot(mine - low, its_high - its), math.hypot(high - mine, its - its_low)
        return Ratio(*(float(np.exp(mine - its + by)) for by in (0, -below, above)))

    def __str__(self) -> str:
        if self.low > 0 and self.high < math.inf:
            return numbers.interval(self.value, *self.ends)
        return f"{numbers.number(self.value)} (no interval)"


REACHED, OUT_OF_REACH, LOST, MISSED, OPEN = "reached", "out of reach", "lost on the way", "missed", "open"


def against(aim: float, found: Ratio, possible: Ratio) -> str:
    """Whether so many times faster was reached, and if not, whether it could have been.

    Args:
        aim: how many times faster it should be.
        found: how many times faster it is.
        possible: how many times faster it would be if it took no longer than its bare forwards.

    Returns:
        "reached"; "out of reach", where even bare forwards are too slow; "lost on the way", where they are fast enough;
        "missed", where the intervals do not tell which; "open", where they do not even tell that.
    """
    if found.low >= aim:
        return REACHED
    if possible.high < aim:
        return OUT_OF_REACH
    if found.high >= aim:
        return OPEN
    return LOST if possible.low >= aim else MISSED


def components(answers: Tensor, weights: Tensor) -> Mapping[str, float]:
    """The variance of a single answer, split into what it varies with; unbiased, so that a small one may be negative.

    Args:
        answers: [draws, images, K], two draws or more.
        weights: [K], what each size counts in the area under the curve; they add up to 1.

    Returns:
        "images": of the areas; "sizes": within an image; "subsets": of one size of an image; "area, between draws":
        of an image's area.
    """
    mean, subsets = answers.mean(0), answers.var(0)  # [images, K]
    area, within = mean @ weights, (answers @ weights).var(0).mean()
    between_sizes = ((mean - area[:, None]) ** 2 @ weights).mean()
    # What is left of the subsets in these means of few.
    between_sizes -= (subsets @ (weights - weights**2)).mean() / len(answers)
    return {
        "images": float(area.var() - within / len(answers)),
        "sizes": float(between_sizes),
        "subsets": float((subsets @ weights).mean()),
        "area, between draws": float(within),
    }


def images_for_fewer_draws(over: Sequence[Labels], published: int, explainers: int = 1) -> Statistic:
    """How many times the images one draw needs, for an interval of a mean area as wide as that of so many draws.

    With v_b between images and v_w between the draws of an image that is (v_b + v_w) / (v_b + v_w / N).

    Args:
        over: the labels of each draw; of two explainers, whose difference is asked for, first all draws of the one.
        published: draws N.
        explainers: 1, or 2 for the difference of two on the same draws.
    """

    def factor(*samples: Sample) -> Tensor:
        areas = torch.stack([auc(sample.values, sample.sizes) for sample in samples])
        areas = areas.unflatten(0, (explainers, -1))  # [explainers, draws, images]
        draws = areas[0] if explainers == 1 else areas[0] - areas[1]
        weights = samples[0].weights
        total = weights.sum(1)
        within = weights @ draws.var(0) / total
        centre = weights @ draws.mean(0) / total
        spread = (weights @ draws.mean(0) ** 2 / total - centre**2) * total / (total - 1)
        between = (spread - within / len(draws)).clamp(min=0)
        return (between + within) / (between + within / published)

    return Statistic(factor, tuple(over), "times the images")


def share_of_forwards(draws: int, published: int, explainers: Sequence[str] = ()) -> Statistic:
    """The forwards of `images_for_fewer_draws` as a share of those of the published draws.

    Args:
        draws: how many draws there are, with the labels 0, 1, ...
        published: draws N.
        explainers: the two whose difference is asked for; none: of one explainer.
    """
    over = [{"draw": draw} for draw in range(draws)]
    over = [{"explainer": e} | draw for e in explainers for draw in over] or over
    images = images_for_fewer_draws(over, published, len(explainers) or 1)
    return Statistic(lambda *samples: images.function(*samples) / published, images.over, "share of the forwards")


def times_fewer_forwards(one: Labels, other: Labels, price: float) -> Statistic:
    """How many times fewer forwards another way of asking takes, for an interval of a mean as wide.

    As many images are needed as their variance asks for. So it is the price times the ratio of the variances.

    Args:
        one: the labels of a way of asking.
        other: those of the other.
        price: forwards for an image by the one, over those by the other.
    """

    def spread(sample: Sample) -> Tensor:
        weights = sample.weights / sample.weights.sum(1, keepdim=True)
        return (weights @ sample.values**2 - (weights @ sample.values) ** 2)[:, 0]

    return Statistic(lambda a, b: price * spread(a) / spread(b), (one, other), "times fewer forwards")
