"""Statistics of the long table under weighted images.

A statistic is asked with `Sample`s: rows of scores and a matrix of image weights, one row of weights per resample. It
answers for all resamples at once. Most are functions of weighted means (`mean`, `area`, `mege`); `youden` and
`association` look at the rows.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from faithlab.scores import LABELS, Block, Label, Scores
from faithlab.stats.ranks import auc, pearson, rank

Labels = Mapping[str, Label | Sequence[Label]]

NETWORK = ("network", "training_seed")
AVERAGED = ("noise_seed", "draw")
"""Labels over which an image's scores are averaged without being asked; all others must be chosen or listed."""


@dataclass(frozen=True)
class Sample:
    """The scores of one cell on one network, under R weightings of the images.

    Attributes:
        values: [rows, K] float64.
        images: [rows] int64, the column of `weights` that each row belongs to; None: one row per column, in order.
        weights: [R, images] float64, not negative.
        sizes: [K] float64, or None where K is 1.
        beside: one of several samples, whose means have 30 binary digits, so that rounding tells no two of them apart.
    """

    values: Tensor
    images: Tensor | None
    weights: Tensor
    sizes: Tensor | None
    beside: bool = False

    def mean(self) -> Tensor:
        """The mean over the rows, each with its image's weight: [R, K], or [R] without sizes. NaN without rows."""
        values, count = self.values, None
        if self.images is not None:
            empty = values.new_zeros(self.weights.shape[1], values.shape[1])
            values, count = empty.index_add(0, self.images, values), self.images.bincount(minlength=len(empty))
        total = self.weights.sum(1) if count is None else self.weights @ count.double()
        mean = self.weights @ values / total[:, None]
        if self.beside:
            mean = mean.view(torch.int64).add(1 << 21).bitwise_and(-(1 << 22)).view(torch.float64)
        return mean if self.sizes is not None else mean[:, 0]

    def rows(self) -> Tensor:
        """The weights of the rows, [R, rows]."""
        return self.weights if self.images is None else self.weights[:, self.images]


Function = Callable[..., Tensor]
"""Samples -> [R] or [R, K]."""


@dataclass(frozen=True)
class Statistic:
    """A function of one or more samples.

    Attributes:
        function: samples -> [R] or [R, K].
        over: the labels of each sample, in the order of the function's arguments.
        name: for a reader.
        difference: it is a difference of two statistics of one kind, so that their biases cancel.
        steps: it moves in steps, as the order of means does. To leave out one image then moves it rarely and says
            little, so that its interval is the bootstrap's with few images too.
        bounds: the least and the largest value that it can have; None: not known. Of an order of means they are reached
            only where no two means are equal.
        within: where `bounds` are not given, the least and the largest value all the same: they cut what is shown of an
            interval, and nothing that is judged.
    """

    function: Function
    over: tuple[Labels, ...] = ({},)
    name: str = ""
    difference: bool = False
    steps: bool = False
    bounds: tuple[float, float] | None = None
    within: tuple[float, float] | None = None


def statistic(given: "Statistic | Function") -> Statistic:
    """A statistic of one sample, where a function is given."""
    if isinstance(given, Statistic):
        return given
    name = getattr(given, "__name__", "statistic").replace("_", " ")
    return Statistic(given, name=name, within=_WITHIN.get(given))


def mean(sample: Sample) -> Tensor:
    """The mean score; a curve where the scores have sizes."""
    return sample.mean()


def area(sample: Sample) -> Tensor:
    """The area under the mean curve, divided by the range of the sizes: the mean of the images' areas.

    Of one size it is the score there.
    """
    return replace(sample, values=_area(sample.values, sample.sizes)[:, None], sizes=None, beside=False).mean()


def _area(values: Tensor, sizes: Tensor | None) -> Tensor:
    return values[:, 0] if len(sizes) == 1 else auc(values, sizes)


def mege(same: Sample) -> Tensor:
    """MeGe (Fel and Vigouroux, 2020, eq. 8) of the distances S=."""
    return 1 / (1 + same.mean())


_PIECE = 4096
"""Distances, in their order, whose rates under sixteen resamples stay in a processor's cache."""


def youden(same: Sample, different: Sample) -> Tensor:
    """ReCo with balanced rates (Fel and Vigouroux, 2020, eq. 7): the largest TPR + TNR - 1 over all thresholds.

    NaN where a resample has no row of one kind. `faithlab.metrics.consistency.reco` is the same without weights.
    """
    if not len(same.values) or not len(different.values):
        return same.weights.new_full((len(same.weights),), torch.nan)
    values = torch.cat([same.values, different.values]).flatten()
    values, order = values.sort()
    edge = torch.cat([values[1:] != values[:-1], values.new_ones(1, dtype=torch.bool)])  # no threshold between ties
    low, high = (torch.arange(len(of.values)) if of.images is None else of.images for of in (same, different))
    images = same.weights.shape[1]
    place = torch.cat([low, high + images])[order]  # of the weight of each value, the two side by side
    totals = [of.weights @ rows.bincount(minlength=images).double() for of, rows in ((same, low), (different, high))]
    pieces = [
        (of, None if bool(last.all()) else last.nonzero()[:, 0])
        for of, last in zip(place.split(_PIECE), edge.split(_PIECE), strict=True)
    ]
    answers = []
    some = (numbers.split(16) for numbers in (same.weights, different.weights, *totals))
    for one, other, up, down in zip(*some, strict=True):
        own = one.new_empty(2 * images, len(one))  # [images of both, R]: a value's weights lie side by side
        torch.div(one.T, up, out=own[:images])
        torch.div(other.T, -down, out=own[images:])
        best = so_far = own.new_zeros(own.shape[1])  # a threshold below all distances has rates 0 and 1
        for of, last in pieces:
            above = own.index_select(0, of)
            above[0] += so_far
            above.cumsum_(0)
            so_far = above[-1]
            at = above if last is None else above.index_select(0, last)
            best = torch.maximum(best, at.amax(0)) if len(at) else best
        answers.append(best)
    return torch.cat(answers)


def association(x: Sample, y: Sample) -> Tensor:
    """Spearman's correlation over the images between two scores of each; NaN where one is constant."""
    return _associations([(x, y)])[0]


_KNOWN: dict[tuple[bytes, ...], Tensor] = {}
"""Correlations under resamples, by their samples and weights: a page needs the same ones for several claims."""


def _digest(numbers: Tensor) -> bytes:
    return hashlib.blake2b(numbers.contiguous().numpy(), digest_size=16).digest()


def _associations(pairs: Sequence[tuple[Sample, Sample]]) -> Tensor:
    """Spearman's correlation over the images between the two scores of each pair, [pairs, R]."""
    if any(of.images is not None or of.sizes is not None for pair in pairs for of in pair):
        raise ValueError("the correlation over images needs one score of each kind for an image")
    weights = _digest(pairs[0][0].weights)
    keys = [(weights, _digest(x.values), _digest(y.values)) for x, y in pairs]
    if len(_KNOWN) > 512:
        _KNOWN.clear()
    if new := {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in _KNOWN}:
        _KNOWN.update(zip(new, _correlated(list(new.values())), strict=True))
    return torch.stack([_KNOWN[key] for key in keys])


def _correlated(pairs: Sequence[tuple[Sample, Sample]]) -> Tensor:
    """What `_associations` computes anew."""
    samples = list({id(sample): sample for pair in pairs for sample in pair}.values())
    every = samples[0].weights
    there = every.sum(0).nonzero()[:, 0]  # a simulation draws some images never
    scores = torch.stack([sample.values[there, 0] for sample in samples])  # [samples, n]
    ordered, order = scores.sort()
    ends = [torch.searchsorted(ordered, scores, right=right) for right in (False, True)]
    answers = []
    for weights in every.split(64):  # bounds memory
        own = weights.T.index_select(0, there)  # [n, R]: a value's weights lie side by side
        total = own.sum(0)
        below = own.new_zeros(len(own) + 1, own.shape[1])
        ranks = {}
        for sample, by_score, first, last in zip(samples, order, *ends, strict=True):
            torch.cumsum(own.index_select(0, by_score), 0, out=below[1:])
            # Twice the mean rank of a value in a sample that has each as often as its weight; their mean is total.
            twice = below.index_select(0, first).add_(below.index_select(0, last)).sub_(total)
            ranks[id(sample)] = twice, twice * own
        squares = {of: (twice * weighted).sum(0) for of, (twice, weighted) in ranks.items()}
        spread = torch.stack([squares[id(x)] * squares[id(y)] for x, y in pairs])
        products = torch.stack([(ranks[id(x)][0] * ranks[id(y)][1]).sum(0) for x, y in pairs])
        answers.append(torch.where(spread > 16e-9 * total**6, products / spread.sqrt(), torch.nan))
    return torch.cat(answers, 1)


def ranked_alike(*samples: Sample) -> Tensor:
    """Spearman's correlation between two halves of the means: of the first K samples and of the last K.

    The agreement of two metrics on the order of K explainers. At its bounds a bootstrap does not cover it: show it, and
    judge contrasts.
    """
    means = torch.stack([sample.mean() for sample in samples], -1)
    half = len(samples) // 2
    return pearson(rank(means[..., :half]), rank(means[..., half:]))


def agreement(one: Labels, other: Labels, by: str, values: Sequence[Label]) -> Statistic:
    """Spearman's correlation between the means of two kinds of rows over the values of a label: `ranked_alike`.

    Args:
        one: labels of one kind of rows, such as a metric or a network.
        other: of the other.
        by: what is ranked, such as "explainer".
        values: its values.
    """
    over = [{by: value, **labels} for labels in (one, other) for value in values]
    return Statistic(ranked_alike, tuple(over), "rank correlation", within=(-1.0, 1.0))


def like_numbers(by: str, numbers: Mapping[Label, float], **labels: Label) -> Statistic:
    """Spearman's correlation between the means of the values of a label and fixed numbers, such as printed ones.

    Args:
        by: what is ranked, such as "explainer".
        numbers: by its values.
        **labels: of the rows.
    """
    fixed = rank(torch.tensor([*numbers.values()], dtype=torch.float64))

    def correlation(*samples: Sample) -> Tensor:
        means = torch.stack([sample.mean() for sample in samples], -1)
        return pearson(rank(means), fixed.to(means.device).expand_as(means))

    over = tuple({by: value, **labels} for value in numbers)
    return Statistic(correlation, over, "rank correlation", steps=True, bounds=(-1.0, 1.0))


def settled(by: str, values: Sequence[Label], **labels: Label) -> Statistic:
    """Spearman's correlation between the means of every second image and those of the other images.

    How far the images settle an order: where two networks agree less than each with itself on half of its images, more
    images would not make them agree.

    Args:
        by: what is ranked, such as "explainer".
        values: its values.
        **labels: of the rows.
    """

    def correlation(*samples: Sample) -> Tensor:
        second = torch.arange(samples[0].weights.shape[1]) % 2
        one, other = (
            torch.stack([replace(s, weights=s.weights * half, beside=False).mean() for s in samples], -1)
            for half in (second, 1 - second)
        )
        return pearson(rank(one), rank(other))

    over = tuple({by: value, **labels} for value in values)
    return Statistic(correlation, over, "rank correlation of halves", bounds=(-1.0, 1.0))


def spread(by: str, values: Sequence[Label]) -> Statistic:
    """How far the means of the values of a label are from each other: their standard deviation, of n - 1.

    Args:
        by: such as "explainer".
        values: its values.
    """

    def deviation(*samples: Sample) -> Tensor:
        return torch.stack([sample.mean() for sample in samples], -1).std(-1)

    return Statistic(deviation, tuple({by: value} for value in values), "standard deviation of means")


def told_apart(one: Sample, other: Sample) -> Tensor:
    """The chance that a score of the second kind is above one of the first, ties half: the AUROC.

    0.5: they cannot be told apart.
    """
    if one.sizes is not None or other.sizes is not None:
        raise ValueError("scores at several sizes cannot be told apart as one; choose their area or a single size")
    x, y = one.values[:, 0], other.values[:, 0]
    above = (y[:, None] > x).double() + 0.5 * (y[:, None] == x).double()  # [rows of other, rows of one]
    own, rival = one.rows(), other.rows()
    return ((rival @ above) * own).sum(1) / (own.sum(1) * rival.sum(1))


def _degraded(levels: Sequence[float], seeds: Sequence[int], **labels: Label) -> list[dict[str, Label]]:
    """Labels of explanations degraded more and more, for each seed of the noise; level 0 is the explanation itself."""
    return [
        {"level": level or None, "noise_seed": seed if level else None, **labels} for seed in seeds for level in levels
    ]


def _means(samples: Sequence[Sample], levels: int, micro: bool) -> Tensor:
    """The mean scores [R, seeds, sizes, levels]; macro: their areas, as one size. Equal ones are equal bit by bit."""
    if not micro and samples[0].sizes is not None:
        samples = [replace(s, values=_area(s.values, s.sizes)[:, None], sizes=None, beside=False) for s in samples]
    first = samples[0]
    if all(sample.images is None and sample.weights is first.weights for sample in samples):  # in one product
        values = torch.stack([sample.values for sample in samples], -1)  # [images, sizes, samples]
        means = (first.weights @ values.flatten(1) / first.weights.sum(1, keepdim=True)).unflatten(1, values.shape[1:])
    else:
        each = [m if m.ndim == 2 else m[:, None] for m in (sample.mean() for sample in samples)]
        means = torch.stack(each, -1)
    return means.round(decimals=9).unflatten(-1, (-1, levels)).movedim(2, 1)


def found_order(
    levels: Sequence[float],
    seeds: Sequence[int] = (0,),
    *,
    micro: bool = False,
    each_size: bool = False,
    ranks: bool = True,
    **labels: Label,
) -> Statistic:
    """Spearman's correlation between a metric's scores of degraded explanations and their quality (F-Fidelity, 5.1).

    1 where less noise always scores higher. The mean over seeds of the noise, and over sizes (`micro`), or of the areas
    (macro). A correlation that does not exist, because all levels score the same, is left out of the mean; NaN where
    none exists. At its bounds a bootstrap does not cover it: show it, and judge contrasts, or `mean_step`.

    Args:
        levels: shares of noise, from none (0) upwards.
        seeds: of the noise.
        micro: rank at each size, not the areas.
        each_size: the correlation of every size, not their mean.
        ranks: False correlates the scores themselves (Pearson). Levels that score nearly alike change places by chance,
            which a rank correlation feels and this one hardly: it needs fewer images.
        **labels: of the scores, such as the metric.
    """

    def correlation(*samples: Sample) -> Tensor:
        means = _means(samples, len(levels), micro)
        quality = torch.arange(len(levels), 0, -1, dtype=torch.float64).expand_as(means)
        found = pearson(rank(means) if ranks else means, quality)  # [R, seeds, sizes]
        return found.nanmean(1) if each_size else found.flatten(1).nanmean(1)

    over = tuple(_degraded(levels, seeds, **labels))
    return Statistic(correlation, over, f"{'micro' if micro else 'macro'} correlation", bounds=(-1.0, 1.0))


def same_order(
    one: str,
    other: str,
    levels: Sequence[float],
    seeds: Sequence[int] = (0,),
    *,
    micro: bool = False,
    ranks: bool = True,
) -> Statistic:
    """Spearman's correlation between two metrics' scores of degraded explanations; arguments as in `found_order`."""

    def correlation(*samples: Sample) -> Tensor:
        half = len(samples) // 2
        a, b = (_means(part, len(levels), micro) for part in (samples[:half], samples[half:]))
        return pearson(*((rank(a), rank(b)) if ranks else (a, b))).flatten(1).nanmean(1)

    over = (*_degraded(levels, seeds, metric=one), *_degraded(levels, seeds, metric=other))
    name = f"{'micro' if micro else 'macro'} correlation of {one} and {other}"
    return Statistic(correlation, over, name, within=(-1.0, 1.0))


def mean_step(
    levels: Sequence[float], seeds: Sequence[int] = (0,), *, micro: bool = False, better: int = 1
) -> Statistic:
    """The mean change of a metric from one level of noise to the next, in standard deviations over inputs.

    Above 0 where more noise scores worse. It is the mean of the paired differences divided by their standard deviation:
    more inputs make its interval narrower and do not move it, as they do move the share of neighbouring means in the
    right order. The draws of a metric move it: fewer of them are noisier, and the step is smaller. A step that
    changes no input's score is 0. The mean over steps, seeds of the noise, and sizes or of the areas, as in
    `found_order`.

    Args:
        levels: shares of noise, from none (0) upwards.
        seeds: of the noise.
        micro: at each size, not of the areas.
        better: -1 for a metric that is lower where the explanation is better.
    """

    def step(*samples: Sample) -> Tensor:
        weights = samples[0].weights
        scores = torch.stack([_of_images(sample, micro) for sample in samples], -1)  # [images, sizes, samples]
        change = scores.unflatten(-1, (-1, len(levels))).diff(dim=-1).round(decimals=9).flatten(1)
        known = weights * ~change.isnan().any(1)
        known = known / known.sum(1, keepdim=True)
        mean, square = known @ change.nan_to_num(), known @ change.nan_to_num().square()
        spread = (square - mean.square()).clamp(min=0).sqrt()
        spread[spread <= 1e-9 * mean.abs()] = torch.nan  # all inputs change alike
        return -better * torch.where(mean.abs() < 1e-12, 0.0, mean / spread).mean(1)

    return Statistic(step, tuple(_degraded(levels, seeds)), "mean step (standard deviations)")


def _of_images(sample: Sample, micro: bool) -> Tensor:
    """The score of every image, the mean of its rows, [images, sizes], or its area as one size; NaN without rows."""
    values = sample.values if micro or sample.sizes is None else _area(sample.values, sample.sizes)[:, None]
    if sample.images is None:
        return values
    total = values.new_zeros(sample.weights.shape[1], values.shape[1]).index_add(0, sample.images, values)
    return total / sample.images.bincount(minlength=len(total))[:, None]


def micro_rank(of: str, better: Mapping[str, int], levels: Sequence[float], seeds: Sequence[int] = (0,)) -> Statistic:
    """The rank of a metric among metrics by how well it finds the order of degraded explanations at each size.

    1 is best, equal metrics share the better rank; the mean over seeds of the noise and sizes (F-Fidelity, 5.1).

    Args:
        of: the metric.
        better: of all metrics, 1 or -1: whether higher is better.
        levels: shares of noise, from none (0) upwards.
        seeds: of the noise.
    """

    def rank_of(*samples: Sample) -> Tensor:
        each = len(samples) // len(better)
        means = torch.stack([_means(samples[m * each : (m + 1) * each], len(levels), True) for m in range(len(better))])
        signs = torch.tensor(list(better.values()), dtype=torch.float64).view(-1, 1, 1, 1)
        quality = torch.arange(len(levels), 0, -1, dtype=torch.float64).expand_as(means)
        found = (signs * pearson(rank(means), quality)).round(decimals=9)  # [metrics, R, seeds, sizes]
        own = found[list(better).index(of)]
        place = 1 + (found > own).double().sum(0)
        return torch.where(own.isnan(), torch.nan, place).flatten(1).nanmean(1)

    over = [labels for name in better for labels in _degraded(levels, seeds, metric=name)]
    return Statistic(rank_of, tuple(over), f"micro rank of {of}")


def difference(one: Statistic, other: Statistic, name: str = "") -> Statistic:
    """One statistic minus another, of the same images."""
    own = len(one.over)

    def minus(*samples: Sample) -> Tensor:
        return one.function(*samples[:own]) - other.function(*samples[own:])

    both = one.bounds and other.bounds
    return Statistic(
        minus,
        (*one.over, *other.over),
        name or f"{one.name} - {other.name}",
        steps=one.steps or other.steps,
        bounds=(one.bounds[0] - other.bounds[1], one.bounds[1] - other.bounds[0]) if both else None,
    )


def _of_pairs(
    pairs: Sequence[tuple[str, str]], explainers: Sequence[str]
) -> tuple[tuple[dict[str, Label], ...], list[str]]:
    metrics = list(dict.fromkeys(metric for pair in pairs for metric in pair))
    return tuple({"metric": m, "explainer": e} for e in explainers for m in metrics), metrics


def images_ranked(
    pairs: Sequence[tuple[str, str]],
    explainers: Sequence[str],
    better: Mapping[str, int],
    *,
    absolute: bool = False,
) -> Statistic:
    """Do metrics rank the images alike? Spearman's correlation over the images, the mean over explainers and pairs.

    That is the reading of SaCo's Figure 2. Of n images without any relation the mean magnitude is about 0.8 / sqrt(n),
    not 0. A correlation that does not exist, because a metric says the same of all images, is left out.

    Args:
        pairs: of metrics.
        explainers: each of them is held fixed in turn.
        better: of every metric, 1 or -1: they are turned so that higher is better.
        absolute: of each correlation the magnitude.
    """
    over, metrics = _of_pairs(pairs, explainers)

    def correlation(*samples: Sample) -> Tensor:
        found = []
        for start in range(0, len(samples), len(metrics)):
            own = dict(zip(metrics, samples[start : start + len(metrics)], strict=True))
            each = _associations([(own[a], own[b]) for a, b in pairs])
            found += [better[a] * better[b] * r for (a, b), r in zip(pairs, each, strict=True)]
        return (torch.stack(found).abs() if absolute else torch.stack(found)).nanmean(0)

    return Statistic(correlation, over, "correlation over images", within=(0.0 if absolute else -1.0, 1.0))


def explainers_ranked(
    pairs: Sequence[tuple[str, str]], explainers: Sequence[str], better: Mapping[str, int]
) -> Statistic:
    """Do metrics rank the explainers of an image alike? Spearman's over them, the mean over images and pairs.

    Correlations that do not exist are left out; arguments as in `images_ranked`.
    """
    over, metrics = _of_pairs(pairs, explainers)

    def correlation(*samples: Sample) -> Tensor:
        values = torch.stack([sample.values[:, 0] for sample in samples], 1)
        values = values.unflatten(1, (len(explainers), len(metrics))).transpose(1, 2)  # [images, metrics, explainers]
        ranks = dict(zip(metrics, rank(values).unbind(1), strict=True))
        found = torch.stack([better[a] * better[b] * pearson(ranks[a], ranks[b]) for a, b in pairs]).nanmean(0)
        there = ~found.isnan()
        weights = samples[0].weights[:, there]
        return weights @ found[there] / weights.sum(1)

    return Statistic(correlation, over, "correlation over explainers", within=(-1.0, 1.0))


_WITHIN: Mapping[Function, tuple[float, float]] = {
    mege: (0.0, 1.0),
    youden: (0.0, 1.0),
    association: (-1.0, 1.0),
    told_apart: (0.0, 1.0),
}
"""Functions whose least and largest value are known, see `Statistic.within`."""

_OF_AN_IMAGE: Mapping[Function, Callable[[Tensor, Tensor | None], Tensor]] = {
    mean: lambda values, sizes: values[:, 0] if sizes is None else values,
    area: _area,
}
"""Statistics that are the weighted mean of a number of each image: all cells are one matrix product."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of one cell on one network: `values` [rows, K], `images` as in `Sample`, the data set's number."""

    values: Tensor
    images: Tensor | None
    dataset: int


@dataclass(frozen=True)
class Gathered:
    """What an estimate looks at: for every network and every cell the rows of each of the statistic's samples.

    Attributes:
        rows: by network, cell, argument of the statistic.
        networks: names of the networks.
        datasets: names of the data sets.
        images: of each data set, the number of those that count for some network.
        kept: by network and data set, the columns of the images that count there.
        missing: by network, how many of its images, or pairs, were left out: a score is NaN or, of images, absent.
        sizes: [K] or None.
        hits: whether all scores are 0 or 1.
        repeats: how many scores make the value of one image.
    """

    statistic: Statistic
    rows: tuple[tuple[tuple[Rows, ...], ...], ...]
    networks: tuple[str, ...]
    datasets: tuple[str, ...]
    images: tuple[int, ...]
    kept: tuple[tuple[Tensor, ...], ...]
    missing: tuple[int, ...]
    sizes: Tensor | None
    hits: bool
    repeats: int

    @property
    def counts(self) -> Tensor:
        """How many images count, [networks, data sets]."""
        return torch.tensor([[len(kept) for kept in network] for network in self.kept])

    def __call__(self, weights: Sequence[Tensor]) -> Tensor:
        """The statistic of every network and cell: [networks, R, cells] or [networks, R, cells, K].

        Args:
            weights: of each data set, [R, images].
        """
        answers = []
        of_image = _OF_AN_IMAGE.get(self.statistic.function) if len(self.statistic.over) == 1 else None
        for network, kept in zip(self.rows, self.kept, strict=True):
            own = [w if len(k) == w.shape[1] else w[:, k] for w, k in zip(weights, kept, strict=True)]
            if of_image is not None and len(own) == 1 and network[0][0].images is None:
                values = torch.stack(
                    [of_image(cell[0].values, self.sizes) for cell in network], 1
                )  # [images, cells, ...]
                means = own[0] @ values.flatten(1) / own[0].sum(1, keepdim=True)
                answers.append(means.unflatten(1, values.shape[1:]))
                continue
            rows = {r for cell in network for r in cell}
            count = Counter(r.dataset for r in rows if r.images is None)
            beside = {r: r.images is None and count[r.dataset] > 1 for r in rows}
            samples = {r: Sample(r.values, r.images, own[r.dataset], self.sizes, beside[r]) for r in rows}
            cells = [self.statistic.function(*(samples[r] for r in cell)) for cell in network]
            answers.append(torch.stack(cells, 1))
        return torch.stack(answers)

    def permuted(self, orders: Tensor) -> "Gathered":
        """The cells of every image in other orders, the same for all networks and samples; those of each order in turn.

        Args:
            orders: [images, orders, cells] int64; what was in cell c of image i goes to cell orders[i, o, c].
        """
        rows = []
        for network, (kept,) in zip(self.rows, self.kept, strict=True):
            own, columns = orders[kept], []
            for argument in zip(*network, strict=True):  # one sample of the statistic in every cell
                if argument[0].images is None:
                    values = torch.stack([r.values for r in argument], 1)  # [images, cells, K]
                    values = values[:, None].expand(-1, orders.shape[1], -1, -1)
                    moved = values.scatter(2, own[..., None].expand_as(values), values).flatten(1, 2).unbind(1)
                    columns.append([Rows(v, None, 0) for v in moved])
                    continue
                # Rows with pairs: an image may have another number of them in each cell.
                values, images = torch.cat([r.values for r in argument]), torch.cat([r.images for r in argument])
                cells = torch.arange(len(argument)).repeat_interleave(torch.tensor([len(r.values) for r in argument]))
                there = [target == c for target in own[images, :, cells].unbind(1) for c in range(len(argument))]
                columns.append([Rows(values[here], images[here], 0) for here in there])
            rows.append(tuple(zip(*columns, strict=True)))
        return replace(self, rows=tuple(rows))


def gather(table: Scores, of: Statistic, cells: Sequence[Labels], labels: Labels) -> Gathered:
    """The rows of every cell on every network, with the images that all cells of a network have.

    Args:
        table: the long table.
        of: the statistic.
        cells: the labels of each cell.
        labels: labels of all cells.

    Raises:
        ValueError: a cell that leaves a label open, several data sets in one cell, a network without rows of a cell,
            other rows (draws, seeds, averaged labels) than the networks before, different sizes.
    """
    wanted = [[_merged(labels, cell, own) for own in of.over] for cell in cells]
    chosen = {name for cell in wanted for sample in cell for name in sample} - set(labels)
    free = [name for name in NETWORK if name not in chosen]
    blocks = [[table.where(**sample).blocks for sample in cell] for cell in wanted]
    every = [b for cell in blocks for sample in cell for b in sample]
    for cell, found in zip(wanted, blocks, strict=True):
        for sample, own in zip(cell, found, strict=True):
            _check_open(sample, own, free)
    sizes = {b.sizes for b in every}
    if len(sizes) > 1:
        raise ValueError(f"the rows have different sizes: {' and '.join(map(str, sizes))}; choose those of one kind")
    (sizes,) = sizes
    datasets = tuple(dict.fromkeys(b.labels["dataset"] for b in every))
    images = [torch.cat([b.images for b in every if b.labels["dataset"] == name]).unique() for name in datasets]
    units = list(dict.fromkeys(tuple(b.labels.get(name) for name in free) for b in every))
    names = _names(free, units, every)
    rows, kept, missing, repeats, alike = [], [], [], 1, {}
    for unit, name in zip(units, names, strict=True):
        own = [
            [[b for b in sample if tuple(b.labels.get(n) for n in free) == unit] for sample in cell] for cell in blocks
        ]
        for c, (cell, found) in enumerate(zip(wanted, own, strict=True)):
            for s, (_, there) in enumerate(zip(cell, found, strict=True)):
                # Else the mean over a list, over draws or seeds would be one of other things in each network.
                kinds = {_kind(b, free) for b in there}
                if other := kinds ^ alike.setdefault((c, s), kinds):
                    raise ValueError(f"{name} and {names[0]} differ in the rows {_text(dict(min(other, key=str)))}")
        repeats = max(repeats, *(len(sample) for cell in own for sample in cell))
        one, columns, lost = _of_network(own, datasets, images)
        rows.append(one)
        kept.append(columns)
        missing.append(lost)
    # An image that counts for no network is none: intervals follow from how many there are.
    used = [torch.cat(columns).unique() for columns in zip(*kept, strict=True)]
    kept = [tuple(map(torch.searchsorted, used, columns)) for columns in kept]
    return Gathered(
        of,
        tuple(rows),
        tuple(names),
        datasets,
        tuple(map(len, used)),
        tuple(kept),
        tuple(missing),
        None if sizes is None else torch.tensor(sizes, dtype=torch.float64),
        all(b.hits for b in every),
        repeats,
    )


def _kind(block: Block, free: Sequence[str]) -> frozenset[tuple[str, Label]]:
    """What a block holds, besides which network and data set it is of."""
    return frozenset((n, v) for n, v in block.labels.items() if n not in (*free, "dataset", "direction", "part"))


def _merged(*labels: Labels) -> dict[str, Label | Sequence[Label]]:
    merged: dict[str, Label | Sequence[Label]] = {}
    for some in labels:
        for name, value in some.items():
            if merged.get(name, value) != value:
                raise ValueError(f"{name} is chosen twice: {merged[name]!r} and {value!r}")
            merged[name] = value
    return merged


def _check_open(sample: Labels, blocks: Sequence[Block], free: Sequence[str]) -> None:
    """An image's value is a mean over draws and seeds of noise, over nothing else that nobody asked for."""
    for name in LABELS:
        found = list(dict.fromkeys(b.labels.get(name) for b in blocks))
        listed = isinstance(sample.get(name), list | tuple | set)
        if len(found) > 1 and name not in free and name not in AVERAGED and (not listed or name == "dataset"):
            raise ValueError(f"{_text(sample) or 'the table'} has rows of several {name}s: choose one of {found}")


def _text(labels: Labels) -> str:
    return ", ".join(f"{name} {value}" for name, value in labels.items())


def _names(free: Sequence[str], units: Sequence[tuple[Label, ...]], blocks: Sequence[Block]) -> list[str]:
    """Names of the networks: with the seed only where it tells two apart."""
    if "network" not in free:
        fixed = " and ".join(dict.fromkeys(str(b.labels["network"]) for b in blocks))
        if "training_seed" not in free or len(units) == 1:
            return [fixed] * len(units)
        return [f"{fixed} (seed {unit[-1]})" for unit in units]
    plain = [str(unit[0]) for unit in units]
    return [
        f"{name} (seed {unit[1]})" if plain.count(name) > 1 else name for name, unit in zip(plain, units, strict=True)
    ]


def _of_network(
    cells: list[list[list[Block]]], datasets: Sequence[str], images: Sequence[Tensor]
) -> tuple[tuple[tuple[Rows, ...], ...], tuple[Tensor, ...], int]:
    """Rows of one network, the columns of its images, and how many were left out."""
    paired = cells[0][0][0].pairs is not None
    if any((b.pairs is not None) != paired for cell in cells for sample in cell for b in sample):
        raise ValueError("some of the rows have pairs and others do not: they are no rows of one statistic")
    tensors = [[_pairs(s, datasets, images) if paired else _aligned(s, datasets, images) for s in c] for c in cells]
    kept, missing = [], 0
    if paired:
        tensors, missing = _without_missing(tensors)
    for d, everything in enumerate(images):
        there = (
            torch.zeros(len(everything), dtype=torch.bool) if paired else torch.ones(len(everything), dtype=torch.bool)
        )
        for values, columns, own in (sample for cell in tensors for sample in cell):
            if own == d and paired:
                there[columns] = True  # which pairs an image has is a result, so that absence is none
            elif own == d:
                there &= ~values.isnan().any(1)
        if not there.any():
            raise ValueError(f"no image of {datasets[d]} has a score in every cell; {len(there)} were looked at")
        kept.append(there.nonzero().flatten())
        looked = [b.images for c in cells for s in c for b in s if b.labels["dataset"] == datasets[d]]
        missing += 0 if paired else len(torch.cat(looked).unique()) - int(there.sum())
    result = []
    for cell in tensors:
        samples = []
        for values, columns, own in cell:
            if paired:
                samples.append(Rows(values, torch.searchsorted(kept[own], columns), own))
            else:
                samples.append(Rows(values[kept[own]], None, own))
        result.append(tuple(samples))
    return tuple(result), tuple(kept), missing


def _aligned(blocks: list[Block], datasets: Sequence[str], images: Sequence[Tensor]) -> tuple[Tensor, None, int]:
    """Mean over blocks for every image of the data set, [images, K]; NaN where one of them is absent or NaN."""
    own = datasets.index(blocks[0].labels["dataset"])
    total = torch.zeros(len(images[own]), blocks[0].values.shape[1], dtype=torch.float64)
    for block in blocks:
        values = block.values.double()
        if not torch.equal(block.images, images[own]):
            placed = torch.full_like(total, torch.nan)
            placed[torch.searchsorted(images[own], block.images)] = values
            values = placed
        total += values
    return total / len(blocks), None, own


def _pairs(
    blocks: list[Block], datasets: Sequence[str], images: Sequence[Tensor]
) -> tuple[Tensor, Tensor, int, Tensor]:
    """All rows [rows, K], the columns of their images [rows], the data set, and a number for each image and pair."""
    own = datasets.index(blocks[0].labels["dataset"])
    columns = torch.cat([torch.searchsorted(images[own], b.images) for b in blocks])
    before = sum(map(len, images[:own]))  # images and pairs are integers of 32 bits
    return (
        torch.cat([b.values.double() for b in blocks]),
        columns,
        own,
        (before + columns) * 2**32 + torch.cat([b.pairs for b in blocks]),
    )


def _without_missing(cells: list[list[tuple[Tensor, Tensor, int, Tensor]]]) -> tuple[list, int]:
    """The rows of `_pairs` without those that are NaN, in all cells of the same sample; how many pairs those are.

    Which pairs an image has is a result, so that a row that is absent from one cell stays in the others.
    """
    left, missing = [[] for _ in cells], 0
    for sample in zip(*cells, strict=True):
        lost = torch.cat([pairs[values.isnan().any(1)] for values, _, _, pairs in sample]).unique()
        missing += len(lost)
        for own, (values, columns, dataset, pairs) in zip(left, sample, strict=True):
            known = ~torch.isin(pairs, lost) if len(lost) else slice(None)
            own.append((values[known], columns[known], dataset))
    return left, missing
