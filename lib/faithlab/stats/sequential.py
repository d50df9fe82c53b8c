"""Looking at growing data several times, without erring more often than when looking once.

Who looks after every block of images and stops at the first interval of 95 % that excludes zero errs in far more than
5 % of the cases where there is nothing to be found. A group-sequential test spends its error rate over the looks (Lan
and DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70, 1983) and has a wider interval at each:
the intervals of all looks cover together (Jennison and Turnbull, "Interim analyses: the repeated confidence interval
approach", Journal of the Royal Statistical Society B 51, 1989), whatever made one stop.
"""

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.optimize
import scipy.special
import torch
from torch import Tensor

FIRST = 32
"""Images at the first look, where nobody says how many."""

GROWTH = 1.25
"""How many times the images of a look the next one has, where nobody says it."""

_GRID = 401
"""Points at which the density between two bounds is known; twice as many change the bounds by less than 1e-4."""


def looks(first: int, last: int, growth: float) -> list[int]:
    """Return the numbers of images to look at, from `first` to `last`, each about `growth` times the one before."""
    found = [first]
    while found[-1] < last:
        found.append(max(found[-1] + 1, round(found[-1] * growth)))
    return [n for n in found[:-1] if n * growth**0.5 < last] + [last]  # no look right before the last


@dataclass(frozen=True)
class Mean:
    """A mean with its interval after a look.

    Attributes:
        images: seen so far, without those that are undefined.
        missing: seen so far, and undefined.
        value: the mean.
        low: lower end of its interval; NaN: all images are alike, which leaves it unknown.
        high: upper end.
    """

    images: int
    missing: int
    value: float
    low: float
    high: float

    @property
    def decided(self) -> bool:
        """True where the interval excludes zero."""
        return self.low > 0 or self.high < 0


def until_decided(blocks: Iterable[Tensor], looks: Sequence[int], level: float = 0.05) -> list[Mean]:
    """Look at a mean again and again as images come, and stop at the first interval that excludes zero.

    Args:
        blocks: one number of each image that comes between a look and the one before, [images] floating; NaN:
            undefined. They are taken one by one, and none after the interval has excluded zero.
        looks: how many images have come at each look, as of `looks`; the last is the most.
        level: the probability that one of the intervals misses the truth.

    Returns:
        What was known at each look; the last is the answer, which may be that nothing is decided.
    """
    seen, found = [], []
    for block, images, bound in zip(blocks, looks, bounds(looks, level), strict=False):
        seen.append(block.double())
        known = torch.cat(seen)
        known = known[~known.isnan()]
        half = bound * float(known.std()) / len(known) ** 0.5 if len(known) > 1 else math.nan
        half = half or math.nan  # images without spread do not tell how far the next one would be
        value = float(known.mean())
        found.append(Mean(len(known), images - len(known), value, value - half, value + half))
        if found[-1].decided:
            break
    return found


def bounds(images: Sequence[int], level: float = 0.05) -> np.ndarray:
    """Return half-widths of the intervals at several looks, in standard errors, that cover together with 1 - level.

    After a share t of the images, level * sqrt(t) is spent (Kim and DeMets, "Design and analysis of group sequential
    tests based on the type I error spending rate function", Biometrika 74, 1987). Chosen by simulation, with looks from
    32 to 2000 images that grow by 1.25, among this one, those like O'Brien-Fleming's and Pocock's, equal shares for
    every look, and asymptotic confidence sequences (Waudby-Smith et al., Annals of Statistics 52, 2024). Images until
    an effect of 0.2 standard deviations is found: 246, 508, 258, 222, 265; power for one of 0.06 (without looks: 0.76):
    0.63, 0.74, 0.67, 0.58, 0.34. Large effects are found early, and little is lost for small ones.

    For a mean whose spread is estimated, Student's quantile takes the place of the normal one of the same tail
    (Jennison and Turnbull, "Group Sequential Methods", 2000, section 4.4).

    Args:
        images: how many are there at each look, increasing; the last is the most that will be asked.
        level: how often at least one of the intervals misses the truth.

    Returns:
        [looks], for means of so many images.

    Raises:
        ValueError: looks that do not increase or have fewer than two images; a level outside (0, 1).
    """
    return _bounds(tuple(images), level).copy()


def false_verdicts(
    differences: Tensor, looks: Sequence[int], bounds: np.ndarray, tables: int = 2000, seed: int = 0
) -> float:
    """Return how often a rule decides where there is nothing to be found: what is compared changes places at random.

    Args:
        differences: [images], of each image; their signs are drawn anew for every table.
        looks: how many images have come at each look, the last all of them.
        bounds: half-widths of the intervals at the looks, in standard errors, such as those of `bounds`.
        tables: how many are drawn.
        seed: of the signs.

    Returns:
        The share of the tables in which an interval excludes zero at some look.
    """
    n, gaps = np.array(looks), differences.numpy()
    signed = np.random.default_rng(seed).choice([-1.0, 1.0], (tables, len(gaps))) * gaps
    mean, square = (np.cumsum(x, 1)[:, n - 1] / n for x in (signed, signed**2))
    distance = np.abs(mean) / np.sqrt((square - mean**2) / (n - 1))
    return float((distance > bounds).any(1).mean())


@functools.lru_cache(maxsize=32)
def _bounds(images: tuple[int, ...], level: float) -> np.ndarray:
    n = np.asarray(images, dtype=float)
    if not 0 < level < 1:
        raise ValueError(f"expected a level between 0 and 1, but got {level}")
    shares = np.diff(level * (n / n[-1]) ** 0.5, prepend=0)
    tails = [shares[0] / 2]
    edge = -scipy.special.ndtri(tails[0]) * n[0] ** 0.5
    # Of the sum of n numbers of variance 1, the density where no bound was crossed before.
    sums = np.linspace(-edge, edge, _GRID)
    density = _normal(sums, n[0] ** 0.5)
    for before, now, share in zip(n, n[1:], shares[1:], strict=False):
        step = (now - before) ** 0.5
        mass = density * _weights(sums)

        def excess(z: float, mass=mass, sums=sums, now=now, step=step, share=share) -> float:
            return 2 * mass @ scipy.special.ndtr((sums - z * now**0.5) / step) - share

        z = scipy.optimize.brentq(excess, 0, 40)
        tails.append(scipy.special.ndtr(-z))
        edge = z * now**0.5
        new = np.linspace(-edge, edge, _GRID)
        density = _normal(new[:, None] - sums, step) @ mass
        sums = new
    return -scipy.special.stdtrit(n - 1, np.array(tails))


def _normal(x: np.ndarray, deviation: float) -> np.ndarray:
    return np.exp(-0.5 * (x / deviation) ** 2) / (deviation * (2 * np.pi) ** 0.5)


def _weights(points: np.ndarray) -> np.ndarray:
    """Simpson's rule."""
    weights = np.full(len(points), 2.0)
    weights[1::2] = 4
    weights[[0, -1]] = 1
    return weights * (points[1] - points[0]) / 3
