"""Decide which of two explainers a metric calls the more faithful one, with as few forward passes as that takes.

`decide` evaluates a metric on blocks of images and stops when the interval of the difference excludes zero; the rule is
`faithlab.stats.sequential.until_decided`. The two meet the same images with the same random subsets, so that what they
share cancels.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from faithlab import rng, segments, stats
from faithlab.metrics import METRICS, Metric, check_attribution
from faithlab.stats import sequential
from faithlab.task import Remembered, Task

Explainer = str | Callable[..., Tensor]
Explained = Tensor | Explainer | tuple[Explainer, Mapping[str, Any]]
"""Attributions [B, F], or an explainer of `faithlab.explainers`, with its options where it has some."""

UNDECIDED = "undecided"


@dataclass(frozen=True)
class Look:
    """The mean difference after so many images.

    Attributes:
        images: evaluated so far, without those whose difference is not defined.
        forwards: masked inputs that the networks were evaluated on so far, for both explainers.
        value: mean difference, positive where the first explainer is the more faithful one.
        low: lower end of its interval; NaN: all images are alike, which leaves it unknown.
        high: upper end.
    """

    images: int
    forwards: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Decision(Look):
    """The result of `decide`: the last look, and how it was reached.

    Attributes:
        verdict: the name of the more faithful explainer, or "undecided".
        names: of the two explainers.
        looks: after each block. The intervals of all looks cover together.
        missing: images that were evaluated but left out, because the metric is not defined there.
    """

    verdict: str
    names: tuple[str, str]
    looks: tuple[Look, ...]
    missing: int

    def frame(self) -> pd.DataFrame:
        """One row per look."""
        return pd.DataFrame(self.looks)

    def __str__(self) -> str:
        told = self.verdict if self.verdict == UNDECIDED else f"{self.verdict} is more faithful"
        return (
            f"{told}: {self.names[0]} - {self.names[1]} = {self.value:.3g} [{self.low:.3g}, {self.high:.3g}], "
            f"{self.images} images, {self.forwards:,} forwards"
        )


def decide(
    metric: Metric | str,
    task: Task,
    explainer_a: Explained,
    explainer_b: Explained,
    *,
    names: tuple[str, str] | None = None,
    budget: int | None = None,
    level: float = 0.05,
    first: int = sequential.FIRST,
    growth: float = sequential.GROWTH,
    seed: int = 0,
) -> Decision:
    """Evaluate a metric on more and more images until it tells two explainers apart, or the budget ends.

    The mean difference of an image's metrics is judged after blocks of images, in random order. Its intervals
    at all looks cover together with 1 - level (`faithlab.stats.sequential.bounds`): where explainers do not differ, one
    of them is called better with a probability of about `level`, however often it was looked. Only images that are
    evaluated are explained.

    The interval is Student's, and speaks of images like these. How far that probability is kept was simulated with
    2000 comparisons of explainers that do not differ, 600 images at most, looks that grow by 1.5 and a level of 5 %
    (`tests/test_decide.py` simulates half as many): 5 % ended with a verdict where the differences were normal, 4 %
    where they were those of shares of 19 hits, and 8 % where they were as skewed as an exponential law. So skewed
    differences are called more often than the level says: where one image in a hundred decides, take a larger first
    look. The middle of the interval is, after an early stop, on average farther from zero than the truth, as after
    every rule that stops at a clear difference. A metric with random draws needs few of them here: use
    `metric.given(draws=1)`, and more images.

    Args:
        metric: of `faithlab.metrics`, or its name; one that summarises images by their mean or area.
        task: the inputs and networks; its images are the most that can be evaluated.
        explainer_a: the first explainer, or its attributions of all inputs [B, F].
        explainer_b: the second.
        names: what to call them; None: the names of the explainers, "a" and "b" where they have none.
        budget: masked inputs to evaluate at most, for both explainers together; None: as many as the images need.
        level: the probability of a false verdict.
        first: images at the first look.
        growth: each look has so many times the images of the one before.
        seed: of the images' order.

    Raises:
        KeyError: no such metric or explainer.
        ValueError: a metric that does not apply, or has no mean over images; attributions that do not fit the task;
            fewer images than the first look, or a budget that does not pay for it; names that are not two different
            ones.
    """
    metric = METRICS[metric] if isinstance(metric, str) else metric
    given = (explainer_a, explainer_b)
    names = _names(given) if names is None else tuple(names)
    if len({*names, UNDECIDED}) != 3:
        raise ValueError(f'expected two different names, neither of them "{UNDECIDED}", but got {names!r}')
    if why := next(filter(None, (metric.obstacle(task, name) for name in names)), None):
        raise ValueError(f"the metric does not apply: {why}")
    if metric.summary not in (stats.mean, stats.area):
        raise ValueError("expected a metric summarised by its mean or area; compare this one with stats.estimate")
    for name, one in zip(names, given, strict=True):
        if not _is_explainer(one):
            check_attribution(task, one, f"attribution {name!r} (or an explainer)")
    most = len(task.x)
    if budget is not None:
        most = min(most, budget // (2 * metric.forward_passes(segments.count_of(task.segments, task.x))))
    if most < first:
        raise ValueError(f"expected images for the first look, {first}, but {most} are given and within the budget")
    looks = sequential.looks(first, most, growth)
    nobody = torch.zeros(1, dtype=torch.int64)
    order = rng.permutations(seed, nobody, nobody, len(task.x)).flatten()[: looks[-1]].to(task.x.device)
    forwards = []

    def differences() -> Iterator[Tensor]:
        for start, stop in itertools.pairwise([0, *looks]):
            part = task.part(order[start:stop])
            maps = [_attribution(one, part, order[start:stop]) for one in given]
            values, passes = _evaluated(metric, part, maps, names)
            forwards.append(passes)
            yield (values[0] - values[1]).cpu() * metric.better

    means = sequential.until_decided(differences(), looks, level)
    spent = itertools.accumulate(forwards)
    found = [Look(m.images, passes, m.value, m.low, m.high) for m, passes in zip(means, spent, strict=True)]
    verdict = names[0] if found[-1].low > 0 else names[1] if found[-1].high < 0 else UNDECIDED
    return Decision(**vars(found[-1]), verdict=verdict, names=names, looks=tuple(found), missing=means[-1].missing)


def _is_explainer(one: Explained) -> bool:
    return isinstance(one, str) or callable(one) or (isinstance(one, tuple) and isinstance(one[-1], Mapping))


def _names(given: tuple[Explained, Explained]) -> tuple[str, str]:
    own = [one[0] if isinstance(one, tuple) else one for one in given]
    names = tuple(one if isinstance(one, str) else other for one, other in zip(own, "ab", strict=True))
    return names if names[0] != names[1] else ("a", "b")


def _attribution(one: Explained, part: Task, places: Tensor) -> Tensor:
    if isinstance(one, Tensor):
        return one[places.to(one.device)]
    name, options = one if isinstance(one, tuple) else (one, {})
    from faithlab.explainers import explain  # needs an extra, which attributions do not

    return explain(name, part.model, part.x, part.target, part.segments, images=part.images, **options)


def _evaluated(metric: Metric, part: Task, maps: list[Tensor], names: tuple[str, str]) -> tuple[list[Tensor], int]:
    """An image's number for each explainer, [B], and the masked inputs that they took; equal masks count once."""

    def score(name: str) -> Remembered:
        options = {"explainer": name, "exact": metric.exact}
        return Remembered(part.score((metric.output,), metric.baseline, metric.network, **options), 1)

    scores = {name: score(name) for name in (names if metric.network == "retrained" else names[:1])}
    values = []
    for name, own in zip(names, maps, strict=True):
        value = metric.measure(scores.get(name, scores[names[0]]).of(0), part, own).value.double()
        value = value.reshape(len(value), -1)
        if metric.summary is stats.mean or value.shape[1] == 1:
            values.append(value.mean(1))
        else:
            values.append(stats.auc(value, torch.tensor(metric.sizes, dtype=torch.float64, device=value.device)))
    return values, sum(of.asked for of in scores.values())
