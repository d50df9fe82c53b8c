"""Concordance: how often a metric finds what is known to be better, with its interval and what follows from it.

A test of metrics compares cells of the long table, rows of a metric with given labels::

    T = (pairs in the right order - pairs in the wrong one) / pairs        1 ideal, 0 chance, -1 always wrong

so that a tie counts one half of a right one. An undefined score is a tie, and is counted. T has two sizes. *All images*
compares means over the images: can the mean be trusted? *One image* compares the scores of a single image, and is
averaged over them: can the number of an image be trusted?
"""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from faithlab import rng, stats
from faithlab.metrics import Metric, evaluate
from faithlab.scores import Block, Label, Scores
from faithlab.stats import Sample, Statistic
from faithlab.task import Task
from faithstudy.claims.verdicts import LEAST

SIZES = ("all images", "one image")
"""Whose scores are compared: means over the images, or those of a single one."""

PASSED, FAILED, OPEN, NONE = "passed", "failed", "open", "does not apply"
PASS, FAIL = 0.8, 0.5

HALVES = 16
"""Ways to cut the images into halves."""

FEW = 20
"""With fewer images no interval is drawn where resamples do not differ."""

SINGLE = Statistic(stats.mean, name="T", bounds=(-1.0, 1.0))
"""T of single images: the mean of those of `of_images`."""

NETWORK = ("dataset", "network", "training_seed")
CELL = ("metric", "explainer", "reference", "variant", "level", "noise_seed", "draw")

Cell = Mapping[str, Label]
"""The labels of what is compared."""


@dataclass(frozen=True)
class Question:
    """A comparison of cells.

    Attributes:
        cells: labels of what is compared.
        kernel: T of the scores of the cells, [..., cells], higher is better -> [...].
        halves: the kernel compares two groups of cells, evaluated on two halves of the images.
    """

    cells: tuple[Cell, ...]
    kernel: Callable[[Tensor], Tensor]
    halves: bool = False

    def statistic(self) -> Statistic:
        """T of all images."""

        def of_means(*samples: Sample) -> Tensor:
            return self.kernel(torch.stack([sample.mean() for sample in samples], -1))

        def of_halves(*samples: Sample) -> Tensor:
            values = torch.stack([sample.values[:, 0] for sample in samples], -1)  # [images, cells]
            chosen = rng.uniform(0, torch.arange(HALVES), torch.zeros(1, dtype=torch.int64), len(values))[:, 0]
            first = (stats.rank(chosen) <= len(values) / 2).double()  # [HALVES, images]
            group, found = values.shape[1] // 2, []
            for half in first:
                parts = [samples[0].weights * half, samples[0].weights * (1 - half)]
                both = [w @ v / w.sum(1, keepdim=True) for w, v in zip(parts, values.split(group, 1), strict=True)]
                found.append(self.kernel(torch.cat(both, -1)))
            return torch.stack(found).nanmean(0)

        return Statistic(of_halves if self.halves else of_means, self.cells, "T", steps=True)


def signs(differences: Tensor) -> Tensor:
    """1, 0 or -1; what is undefined, or differs by rounding alone, is a tie."""
    return differences.nan_to_num(nan=0.0).round(decimals=9).sign()


def ranked(pairs: Sequence[tuple[Cell, Cell]], weights: Sequence[float] | None = None) -> Question | None:
    """The question whether the first cell of each pair is better; None: there are no pairs.

    Args:
        pairs: of cells.
        weights: of the pairs, which add up to 1; None: all count the same.
    """
    if not pairs:
        return None
    cells = [dict(cell) for cell in dict.fromkeys(tuple(cell.items()) for pair in pairs for cell in pair)]
    better, worse = ([cells.index(pair[k]) for pair in pairs] for k in (0, 1))
    weight = torch.tensor([1 / len(pairs)] * len(pairs) if weights is None else weights, dtype=torch.float64)
    return Question(tuple(cells), lambda values: signs(values[..., better] - values[..., worse]) @ weight)


def alike(groups: Sequence[Sequence[Cell]], halves: bool = False) -> Question | None:
    """The question whether groups of cells rank their members alike: pairs of members, in pairs of groups.

    None: there is one group, or one member.
    """
    if len(groups) < 2 or len(groups[0]) < 2:
        return None
    one, other = zip(*itertools.combinations(range(len(groups[0])), 2), strict=True)

    def kernel(values: Tensor) -> Tensor:
        grouped = values.unflatten(-1, (len(groups), -1))
        order = signs(grouped[..., list(one)] - grouped[..., list(other)])  # [..., groups, pairs]
        pairs = itertools.combinations(range(len(groups)), 2)
        return torch.stack([(order[..., a, :] * order[..., b, :]).mean(-1) for a, b in pairs]).mean(0)

    return Question(tuple(itertools.chain(*groups)), kernel, halves)


def ask(metrics: Mapping[str, Metric], task: Task, rows: Sequence[tuple[Cell, Tensor]]) -> Scores:
    """Metrics of attributions, each with labels of its own; equal masks are evaluated once."""
    found = evaluate(metrics, task, {str(k): attribution for k, (_, attribution) in enumerate(rows)})
    return Scores(dataclasses.replace(b, labels={**b.labels, **rows[int(b.labels["explainer"])][0]}) for b in found)


def cells(name: str, scores: Scores, metric: Metric) -> tuple[list[dict[str, Label]], Callable[..., list]]:
    """The cells of a metric's explanations as they are, and a function that finds its others.

    The function takes labels; a reference of None is any. Without a reference and a draw they are the metric's own.
    """
    mine = [dict(zip(CELL, map(b.labels.get, CELL), strict=True)) for b in scores if b.labels["metric"] == name]
    mine = [dict(labels) for labels in dict.fromkeys(tuple(cell.items()) for cell in mine)]

    def found(**labels: Label) -> list[dict[str, Label]]:
        wanted = {"reference": metric.baseline, "draw": None, **labels}
        if wanted["reference"] is None:
            del wanted["reference"]
        return [cell for cell in mine if has(cell, wanted)]

    return found(variant=None, noise_seed=None), found


def has(labels: Cell, wanted: Cell) -> bool:
    """Whether labels have these values; None: they do not have the label."""
    return all(labels.get(name) == value for name, value in wanted.items())


def oriented(metric: Metric, values: Tensor, sizes: tuple[float, ...] | None = None) -> Tensor:
    """One number of each image, higher is more faithful: the area of a curve, turned; float64 [B]."""
    values = values.double()
    if sizes is not None:
        values = stats.auc(values, torch.tensor(sizes, dtype=torch.float64)) if len(sizes) > 1 else values[:, 0]
    return metric.better * values.reshape(len(values))


def turned(scores: Scores, metrics: Mapping[str, Metric]) -> Scores:
    """One score for each row, higher is more faithful: curves become their areas. Metrics that are not given go."""
    found = []
    for block in scores:
        if metric := metrics.get(block.labels["metric"]):
            values = oriented(metric, block.values, block.sizes).float()[:, None]
            found.append(dataclasses.replace(block, values=values, sizes=None, errors=None))
    return Scores(found)


def judged(asked: Question, table: Scores, size: str = SIZES[0]) -> tuple[float, float, float, int, int]:
    """T with the ends of its interval, the images, and on how many of them a score is undefined.

    Of fewer images of a network than `faithstudy.claims.verdicts.LEAST`, the interval is all that T can be.

    Args:
        asked: the question.
        table: of `turned`.
        size: of `SIZES`.
    """
    found = each(asked.cells, table)
    table = Scores(b for b in table if any(has(b.labels, network) for network, *_ in found))
    count = sum(len(images) for _, images, _ in found)
    undefined = sum(int(values.isnan().any(1).sum()) for *_, values in found)
    if size == "one image" or undefined == count:
        of = stats.estimate(of_images(asked, table), SINGLE)
    else:
        of = stats.estimate(table, asked.statistic())
    value, low, high = (float(x) for x in of.pooled)
    if low != low:  # no resample changes the order of a pair of means, or every image says the same
        sure = size == "all images" and undefined < count and of.images >= FEW
        low, high = (value, value) if sure else _of_equals(value, of.images)
    if min(of.images_each) < LEAST:  # they decide nothing
        low, high = -1.0, 1.0
    return value, max(-1.0, low), min(1.0, high), of.images, undefined


def _of_equals(value: float, images: int) -> tuple[float, float]:
    """The interval of a rate where all images have the same T: it knows that there are few of them."""
    low, high = stats.exact(torch.tensor((value + 1) / 2, dtype=torch.float64), torch.tensor(images))
    return 2 * float(low) - 1, 2 * float(high) - 1


def of_images(asked: Question, table: Scores) -> Scores:
    """T of every single image, as rows of the metric "T": the lowest are the images that show where a metric is wrong.

    Args:
        asked: the question.
        table: of `turned`.
    """
    return Scores.concat(
        Scores.of(asked.kernel(values).float(), images=images, metric="T", **network)
        for network, images, values in each(asked.cells, table)
    )


def each(cells: Sequence[Cell], table: Scores) -> list[tuple[dict[str, Label], Tensor, Tensor]]:
    """Of every network that has all cells: its labels, images with a score in all, scores [images, cells]."""
    blocks: dict[tuple, list[Block]] = {}
    for block in table:
        blocks.setdefault(tuple(map(block.labels.get, CELL)), []).append(block)
    of_cells = [blocks[tuple(cell[name] for name in CELL)] for cell in cells]
    found = []
    for network in ({name: block.labels.get(name) for name in NETWORK} for block in of_cells[0]):
        own = [block for of_cell in of_cells for block in of_cell if has(block.labels, network)]
        if len(own) < len(cells):  # a trial may apply to some networks of a kind
            continue
        images = own[0].images
        for block in own[1:]:
            images = images[torch.isin(images, block.images)]
        columns = [_of_images(block, images) for block in own]
        found.append((network, images, torch.stack(columns, 1).double()))
    return found


def _of_images(block: Block, images: Tensor) -> Tensor:
    """The first scores of some images of a block, whose images are different."""
    ordered, places = block.images.sort()
    return block.values[places[torch.searchsorted(ordered, images)], 0]


def verdict(low: float, high: float) -> str:
    """Passed where the interval lies above 0.8, failed where it lies below 0.5; else open."""
    return PASSED if low > PASS else FAILED if high < FAIL else OPEN
