"""`estimate`: the one bootstrap and the one interval of the study.

Images are crossed with networks, explainers, metrics, baselines, sizes, seeds of noise and draws: a resample is one
vector of image weights, shared by everything, so that pairs stay paired. Networks are fixed and count equally: the
value is the mean of the networks' own, and the interval speaks of these networks on other images.

Which interval (`METHODS`), decided by simulation (tests/test_coverage.py):

- from 100 images on the percentiles of the bootstrap, at tails widened by Student's factor sqrt(n / (n - 1)) t / z
  (Hesterberg, 2015, "expanded percentile"), which lifts the coverage of a mean of 100 by half a percent;
  Where a resample is worse than its table by more than a quarter of the standard error on average (the largest of many
  rates, ReCo), they are moved back by twice this bias (Efron and Tibshirani, 1993, section 10.3). ReCo itself is then
  covered by 83 % of the intervals with 100 images (73 % without), 88 % with 300 (84 %): judge its differences, whose
  biases cancel and which are covered by 96 %;
- below, Student's interval on the jackknife's pseudo-values, which for a mean is Student's own; not for a statistic
  that moves in steps, see `Statistic`, which has the bootstrap's;
- for a rate of hits Clopper and Pearson's, below 100 images and wherever fewer than `RARE` images are on the rarer
  side. It never errs more often than it says; Wilson's would call a rate of a half exceeded at four hits of four, which
  chance gives once in sixteen. The number
  of independent trials is about p (1 - p) / (standard error)^2, between the images and all their hits;
- for a paired difference of two such rates, under the same condition on the images that differ, Wald's interval with
  one more image for and one against (Bonett and Price, 2012);
- where all images are alike, but the statistic is bounded: of a mean, as far as the share of other images can reach of
  which n images show none (1 - 0.025^(1 / n)); of an order of means at its bound, the value itself, if every resample
  of the bootstrap has it, because then each pair of means is more than three standard errors apart;
- none where all images are alike and no such rule knows more: a sample without spread does not tell how far the next
  image would be. The ends are NaN, and a claim is undecided there;
- no interval reaches beyond the bounds of a statistic that has some, as the mean of hits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import scipy.special
import torch
from torch import Tensor

from faithlab import rng
from faithlab.scores import Label, Scores
from faithlab.stats.samples import Function, Gathered, Labels, Statistic, area, gather, mean, statistic

TAIL = 0.025
FEW = 100
"""Below this number of images the bootstrap is not used."""
RARE = 20
"""A rate with fewer images than this on its rarer side is near 0 or 1."""
BIASED = 0.25
"""A bias of less than this share of the standard error is left alone."""
_IN_CACHE = 1 << 16
"""So many numbers are drawn at once: more go through memory at every step."""
METHODS = ("bootstrap", "Student", "Clopper and Pearson", "Bonett and Price", "none", "bounds")


class Interval(NamedTuple):
    """Values and the ends of their intervals, tensors of one shape; NaN ends: no interval."""

    value: Tensor
    low: Tensor
    high: Tensor

    def shifted(self, by: Tensor) -> "Interval":
        """All moved by the same amount."""
        return Interval(self.value + by, self.low + by, self.high + by)


@dataclass(frozen=True)
class Estimate:
    """A statistic with its 95 % interval over images.

    Shapes: [contrasts] or [contrasts, K]; without the first dimension where neither cells nor contrasts were given.

    Attributes:
        pooled: the networks' mean.
        each: every network's own, with a first dimension for networks.
        between: the networks' mean with Student's interval over networks; no ends where there is one network.
        networks: their names.
        datasets: the data sets' names.
        images: number of images; of several data sets, all together.
        images_each: of every network.
        missing: of every network, images (of pairs: rows) left out because a score is absent or NaN.
        undefined: resamples in which the statistic is undefined; with more than 5 % of them there is no interval.
        method: where each pooled interval comes from, as numbers of `METHODS`.
        limits: the least and the largest value of each contrast, [contrasts]; None: not known.
    """

    pooled: Interval
    each: Interval
    between: Interval
    networks: tuple[str, ...]
    datasets: tuple[str, ...]
    images: int
    images_each: tuple[int, ...]
    missing: tuple[int, ...]
    undefined: int
    method: Tensor
    limits: tuple[Tensor, Tensor] | None = None

    @property
    def value(self) -> Tensor:
        """The pooled value."""
        return self.pooled.value

    @property
    def low(self) -> Tensor:
        """The lower end of the pooled interval."""
        return self.pooled.low

    @property
    def high(self) -> Tensor:
        """The upper end of the pooled interval."""
        return self.pooled.high

    @property
    def shown(self) -> Interval:
        """The pooled interval as a reader gets it: not beyond what the statistic can be. What is judged is `pooled`."""
        return self.cut(self.pooled)

    def cut(self, interval: Interval) -> Interval:
        """An interval of this estimate, pooled or of each network, within its limits.

        Nothing is called certain by it: where a cut would leave no width, there is no interval.
        """
        if self.limits is None:
            return interval
        value = self.value
        least, most = (end.reshape(-1, *[1] * (value.ndim - 1)) if value.ndim else end for end in self.limits)
        low, high = interval.low.clamp(least, most), interval.high.clamp(least, most)
        lost = (low == high) & (interval.low < interval.high)
        return Interval(interval.value, *(torch.where(lost, torch.nan, end) for end in (low, high)))

    @property
    def quantile(self) -> float:
        """Student's quantile that a half of these intervals has of standard errors."""
        return -float(scipy.special.stdtrit(self._freedom, TAIL))

    def outside(self, times: Tensor) -> Tensor:
        """The share outside each end of an interval that is so many times as wide, by Student's law."""
        return torch.as_tensor(scipy.special.stdtr(self._freedom, -self.quantile * times.numpy()))

    @property
    def _freedom(self) -> int:
        return max(1, min(self.images_each) - 1)

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        if self.value.numel() != 1:
            return f"{self.value.numel()} values of {self.images} images"
        value, low, high = (float(x.flatten()[0]) for x in self.pooled)
        return f"{value:.3g} (no interval)" if low != low else f"{value:.3g} [{low:.3g}, {high:.3g}]"


def estimate(
    table: Scores,
    of: Statistic | Function = mean,
    *,
    cells: Sequence[Labels] | None = None,
    contrasts: Tensor | None = None,
    resamples: int = 1000,
    seed: int = 0,
    **labels: Label | Sequence[Label],
) -> Estimate:
    """A statistic of the long table, over networks and for each, with 95 % intervals over images.

    An image counts for a network if it has a score in every cell (pairs stay paired); the others are counted as
    missing. The networks are all that have rows: every training seed is one. A cell that chooses its network itself is
    compared across networks.

    Args:
        table: the scores.
        of: `mean`, `area`, any function of a `Sample`, or a `Statistic` of several.
        cells: the labels of each cell; None: a single one.
        contrasts: [contrasts, cells], the wanted linear combinations of the cells' statistics; None: each cell.
        resamples: of the bootstrap, at least 1000.
        seed: of the resamples; numbers come from a counter, so that they are the same on every machine.
        **labels: labels of all cells, a value or a list to average over.

    Raises:
        ValueError: fewer than 1000 resamples, contrasts that do not fit the cells, and what `gather` raises.
    """
    if resamples < 1000:
        raise ValueError(f"expected at least 1000 resamples, but got {resamples}")
    single = cells is None and contrasts is None
    gathered = gather(table, statistic(of), [{}] if cells is None else list(cells), labels)
    found = intervals(gathered, resampled(gathered, resamples, seed), contrasts)
    if not single:
        return found
    pooled, each, between = (
        Interval(*(x.squeeze(d) for x in i)) for d, i in ((0, found.pooled), (1, found.each), (0, found.between))
    )
    limits = found.limits and tuple(end.squeeze(0) for end in found.limits)
    return replace(found, pooled=pooled, each=each, between=between, method=found.method.squeeze(0), limits=limits)


def paired(
    table: Scores, one: Labels, other: Labels, of: Statistic | Function = mean, **labels: Label | Sequence[Label]
) -> Estimate:
    """The statistic of one cell less that of another, on the same inputs; a contrast of `estimate`, [1].

    Args:
        table: the scores.
        one: labels of a cell.
        other: labels of the other.
        of: the statistic.
        **labels: labels of both.
    """
    return estimate(table, of, cells=[one, other], contrasts=torch.tensor([[1.0, -1.0]]), **labels)


def resampled(gathered: Gathered, resamples: int = 1000, seed: int = 0) -> Tensor:
    """The statistic of the images as they are and of every resample: [networks, 1 + R, cells, ...].

    Args:
        gathered: the rows.
        resamples: of the bootstrap.
        seed: of the bootstrap.
    """
    return gathered(weights(gathered, resamples, seed))


def weights(
    gathered: Gathered, resamples: int = 1000, seed: int = 0, picks: Sequence[Tensor] | None = None
) -> list[Tensor]:
    """Of each data set, how often each image is in the table and in every resample: [1 + R, images].

    The resamples are the bootstrap's from `FEW` images on, below the jackknife's, one for each image.

    Args:
        gathered: the rows.
        resamples: of the bootstrap.
        seed: of the bootstrap.
        picks: for simulations: of each data set, the images [n] that a new data set of the same size consists of.
    """
    if _few(gathered):
        return _jackknife(gathered.images, picks)
    return _bootstrap(gathered.images, resamples, seed, picks)


def _few(gathered: Gathered) -> bool:
    """Whether the jackknife is used: of the network and data set that has the fewest images."""
    return not gathered.statistic.steps and int(gathered.counts.min()) < FEW


def intervals(gathered: Gathered, values: Tensor, contrasts: Tensor | None = None) -> Estimate:
    """The estimate of linear combinations of the cells.

    Args:
        gathered: the rows.
        values: [networks, 1 + R, cells, ...] from `resampled`.
        contrasts: as in `estimate`.
    """
    cells = values.shape[2]
    matrix = torch.eye(cells) if contrasts is None else torch.as_tensor(contrasts)
    matrix = matrix.double()
    if matrix.shape[1:] != (cells,):
        raise ValueError(f"expected contrasts [contrasts, {cells}], a column a cell, but got {tuple(matrix.shape)}")
    counts = torch.cat([torch.tensor([gathered.images]), gathered.counts])  # [all and networks, data sets]
    few = _few(gathered)
    scale = values[:, 0].abs().nan_to_num(0).amax()
    values = torch.einsum("qc,urc...->urq...", matrix, values)
    values = torch.cat([values.mean(0, keepdim=True), values])
    point, replicates = values[:, 0], values[:, 1:]
    n = counts.amin(1).double().reshape(-1, *[1] * (point.ndim - 1))
    n[0] = n.min()  # the networks count equally, so that the one with fewest images says how sure their mean is
    if few:
        # Removing an image that a network does not have changes nothing there, and adds nothing.
        factor = torch.cat(
            [((c - 1) / c)[:, None].expand(-1, m) for c, m in zip(counts.T, gathered.images, strict=True)], 1
        )
        deviations = (replicates - point[:, None]) ** 2 * factor.reshape(*factor.shape, *[1] * (point.ndim - 1))
        error = deviations.sum(1).sqrt()
        error = torch.where(n > 1, error, torch.nan)
        half = error * _t(n - 1)
        low, high = point - half, point + half
        undefined = int(replicates[0].isnan().flatten(1).any(1).sum())
        method = torch.full(point.shape, METHODS.index("Student"))
    else:
        tails = torch.special.ndtr(-_t(n - 1) * (n / (n - 1)).sqrt()).flatten()
        low, high = torch.stack([_ends(r, float(t)) for r, t in zip(replicates, tails, strict=True)], 1)
        error = _nan_std(replicates) * (n / (n - 1)).sqrt()
        bias = replicates.nanmean(1) - point
        alone = (matrix.sum(1) != 0).reshape(1, -1, *[1] * (point.ndim - 2))  # in a comparison biases cancel
        # Of what moves in steps, resamples are nearer to chance than the table, and the table is no better for it.
        alone &= not gathered.statistic.difference and not gathered.statistic.steps
        shift = torch.where(alone & (bias.abs() > BIASED * error), 2 * bias, 0)
        low, high = low - shift, high - shift
        lost = replicates.isnan()
        undefined = int(lost[0].flatten(1).any(1).sum())
        low, high = (torch.where(lost.double().mean(1) > 0.05, torch.nan, end) for end in (low, high))
        # Where resamples are all worse than their table, as for orders at single sizes, the value would lie outside.
        low, high = (
            torch.where(end.isnan(), end, bound(end, point))
            for end, bound in ((low, torch.minimum), (high, torch.maximum))
        )
        method = torch.full(point.shape, METHODS.index("bootstrap"))
    alike = (replicates - point[:, None]).abs().nan_to_num(0).amax(1) <= 1e-12 * scale
    low, high = (torch.where(alike, torch.nan, end) for end in (low, high))
    if gathered.hits and gathered.statistic.function is mean and len(gathered.statistic.over) == 1:
        error = torch.where(alike, 0, error)
        hits = torch.full((len(point),), gathered.repeats, dtype=torch.float64)
        hits[0] *= len(gathered.networks)
        hits = hits.reshape(n.shape)
        ones = (matrix == 1).sum(1), (matrix == -1).sum(1), (matrix != 0).sum(1)
        rate = ((ones[0] == 1) & (ones[2] == 1)).reshape(1, -1, *[1] * (point.ndim - 2))
        pair = ((ones[0] == 1) & (ones[1] == 1) & (ones[2] == 2)).reshape(rate.shape) & (gathered.repeats == 1)
        rules = (
            (rate, n * point.minimum(1 - point), _rate(point, error, n, hits), "Clopper and Pearson"),
            (pair, _squares(point, error, n), _one_more_each(point, error, n), "Bonett and Price"),
        )
        for applies, informative, (own_low, own_high), name in rules:
            here = applies & (few | (informative < RARE)) & ~own_low.isnan()
            low, high = torch.where(here, own_low, low), torch.where(here, own_high, high)
            method = torch.where(here, METHODS.index(name), method)
    bounds = _bounds(gathered, matrix)
    if bounds is not None:
        least, most = (end.reshape(1, -1, *[1] * (point.ndim - 2)) for end in bounds)
        if gathered.statistic.function is mean:
            unseen = 1 - TAIL ** (1 / n)
            known = alike, point - unseen * (point - least), point + unseen * (most - point)
        else:
            known = alike & ((point - least).minimum(most - point) <= 1e-9) & (not few), point, point
        here = known[0] & low.isnan()
        low, high = torch.where(here, known[1], low), torch.where(here, known[2], high)
        method = torch.where(here, METHODS.index("bounds"), method)
        low, high = low.maximum(least), high.minimum(most)  # NaN stays
    method = torch.where(low.isnan(), METHODS.index("none"), method)
    networks = len(gathered.networks)
    spread = point[1:].std(0) / networks**0.5 if networks > 1 else torch.full_like(point[0], torch.nan)
    half = spread * (-float(scipy.special.stdtrit(networks - 1, TAIL)) if networks > 1 else torch.nan)
    return Estimate(
        Interval(point[0], low[0], high[0]),
        Interval(point[1:], low[1:], high[1:]),
        Interval(point[0], point[0] - half, point[0] + half),
        gathered.networks,
        gathered.datasets,
        sum(gathered.images),
        tuple(gathered.counts.sum(1).tolist()),
        gathered.missing,
        undefined,
        method[0],
        bounds or _bounds(gathered, matrix, _within(gathered)),
    )


def _bounds(
    gathered: Gathered, matrix: Tensor, within: tuple[float, float] | None = None
) -> tuple[Tensor, Tensor] | None:
    """The least and the largest value of each contrast, [contrasts]; None: not known."""
    bounds = within or gathered.statistic.bounds
    if gathered.hits and gathered.statistic.function is mean:
        bounds = (0.0, 1.0)
    if bounds is None:
        return None
    up, down = matrix.clamp(min=0).sum(1), matrix.clamp(max=0).sum(1)
    # An end may be infinite, and no part of a contrast times that is none.
    least, most = ([torch.where(part == 0, 0.0, part * end) for part in (up, down)] for end in bounds)
    return least[0] + most[1], most[0] + least[1]


def _within(gathered: Gathered) -> tuple[float, float] | None:
    """Between which values the statistic lies, where that only cuts what is shown."""
    return (0.0, 1.0) if gathered.hits and gathered.statistic.function is area else gathered.statistic.within


def _t(freedom: Tensor) -> Tensor:
    """Student's 97.5 % quantile."""
    return -torch.from_numpy(scipy.special.stdtrit(freedom.clamp(min=1).numpy(), TAIL))


def _ends(values: Tensor, tail: float) -> Tensor:
    """Lower and upper quantile along the first dimension, without NaN: [2, ...]."""
    ends = torch.tensor([tail, 1 - tail], dtype=values.dtype)
    return (values.nanquantile if values.isnan().any() else values.quantile)(ends, dim=0)


def _nan_std(values: Tensor) -> Tensor:
    """Standard deviation along the second dimension, without NaN."""
    centre = values.nanmean(1, keepdim=True)
    return ((values - centre) ** 2).nanmean(1).sqrt()


@lru_cache(maxsize=8)
def _indices(count: int, resamples: int, seed: int) -> Tensor:
    """Which of `count` images each resample picks, [resamples, count] int64."""
    picks = torch.empty(resamples, count, dtype=torch.int64)
    rows = max(1, _IN_CACHE // count)
    for of, some in zip(torch.arange(resamples).split(rows), picks.split(rows), strict=True):
        some.copy_(rng.uniform(seed, of, torch.zeros(1, dtype=torch.int64), count)[:, 0].mul_(count))  # rounds down
    return picks


@lru_cache(maxsize=4)
def _plain_bootstrap(count: int, resamples: int, seed: int) -> Tensor:
    """The picks of all images as weights, after a first row of ones: [1 + resamples, count]."""
    return torch.cat([torch.ones(1, count, dtype=torch.float64), _counts(_indices(count, resamples, seed), count)])


def _counts(indices: Tensor, count: int) -> Tensor:
    """How often each image was picked: [R, count] float64."""
    ones = torch.ones(indices.shape, dtype=torch.float64)
    return torch.zeros(len(indices), count, dtype=torch.float64).scatter_add_(1, indices, ones)


def _bootstrap(counts: Sequence[int], resamples: int, seed: int, picks: Sequence[Tensor] | None) -> list[Tensor]:
    """Of each data set, weights [1 + resamples, images]; the first row is the data set itself."""
    if picks is None:
        return [_plain_bootstrap(n, resamples, seed + d) for d, n in enumerate(counts)]
    return [
        _counts(torch.cat([p[None], p[_indices(n, resamples, seed + d)]]), n)
        for d, (n, p) in enumerate(zip(counts, picks, strict=True))
    ]


def _jackknife(counts: Sequence[int], picks: Sequence[Tensor] | None) -> list[Tensor]:
    """As `_bootstrap`, with one image less in every row, through all data sets in turn: [1 + all images, images]."""
    weights, before, everything = [], 1, sum(counts)
    for d, n in enumerate(counts):
        p = torch.arange(n) if picks is None else picks[d]
        full = _counts(p[None], n).repeat(1 + everything, 1)
        full[before + torch.arange(n), p] -= 1
        before += n
        weights.append(full)
    return weights


def exact(rate: Tensor, trials: Tensor) -> tuple[Tensor, Tensor]:
    """Clopper and Pearson's 95 % interval of a rate, also of a broken number of trials (Korn and Graubard, 1998)."""
    rate, trials = rate.double(), torch.as_tensor(trials, dtype=torch.float64)
    hits, misses = (rate * trials).numpy(), ((1 - rate) * trials).numpy()
    low = torch.as_tensor(scipy.special.betaincinv(hits, misses + 1, TAIL))
    high = torch.as_tensor(scipy.special.betaincinv(hits + 1, misses, 1 - TAIL))
    return torch.where(rate <= 0, 0.0, low), torch.where(rate >= 1, 1.0, high)


def _rate(p: Tensor, error: Tensor, n: Tensor, hits: Tensor) -> tuple[Tensor, Tensor]:
    """The exact interval of a rate; `hits` is how many hits an image has at most."""
    # Variance over that of n independent trials. One image more in favour of no gain: few say little.
    share = (n * n * error**2 + 1) / (n * p * (1 - p) + 1)
    trials = (n / share).clamp(min=n, max=n * hits)
    return exact(p.clamp(0, 1), trials)


def _squares(difference: Tensor, error: Tensor, n: Tensor) -> Tensor:
    """The sum of the images' squared differences; of single hits, how many images differ."""
    return n * (n - 1) * error**2 + n * difference**2


def _one_more_each(difference: Tensor, error: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
    """Wald's interval with one more image at +1 and one at -1, and Student's quantile: four of four are no proof."""
    centre = n * difference / (n + 2)
    variance = (_squares(difference, error, n) + 2) / (n + 2) - centre**2
    half = _t(n + 1) * (variance / (n + 2)).clamp(min=0).sqrt()
    return centre - half, centre + half


def summary(
    table: Scores, by: Sequence[str], of: Statistic | Function = mean, **labels: Any
) -> list[tuple[Mapping[str, Label], Estimate]]:
    """An estimate for every combination of labels that the table has, each on its own images.

    Args:
        table: the scores.
        by: the labels whose combinations are wanted.
        of: the statistic.
        **labels: as in `estimate`.

    Returns:
        The combinations in order of appearance, and their estimates.
    """
    chosen = table.where(**labels) if labels else table
    combinations = dict.fromkeys(tuple(b.labels.get(name) for name in by) for b in chosen)
    cells = [dict(zip(by, values, strict=True)) for values in combinations]
    return [(cell, estimate(chosen, of, **cell)) for cell in cells]
