"""Which of two explainers a metric calls the more faithful one, with as few forwards as that takes.

`decide` asks a metric about blocks of images and stops when the interval of the difference excludes zero; the rule is
`faithlab.stats.sequential.until_decided`, which is put to recorded scores. The two meet
the same images with the same random subsets, so that what they share cancels.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from faithlab import rng, segments, stats, validation
from faithlab.metrics import METRICS, Metric
from faithlab.stats import sequential
from faithlab.task import Remembered, Task

Explainer = str | Callable[..., Tensor]
Explained = Tensor | Explainer | tuple[Explainer, Mapping[str, Any]]
"""Attributions [B, F], or an explainer of `faithlab.explainers`, with its options where it has some."""

UNDECIDED = "undecided"


@dataclass(frozen=True)
class Look:
    """What was known after so many images.

    Attributes:
        images: asked about so far, without those whose difference is not defined.
        forwards: masked inputs that the networks were asked about so far, for both explainers.
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
class Decision:
    """The answer of `decide`.

    Attributes:
        verdict: the name of the more faithful explainer, or "undecided".
        names: of the two explainers.
        looks: after each block; the last one is the answer. The intervals of all looks cover together.
        missing: images that were asked about but left out, because the metric is not defined there.
    """

    verdict: str
    names: tuple[str, str]
    looks: tuple[Look, ...]
    missing: int

    @property
    def value(self) -> float:
        """The mean difference, positive where the first explainer is the more faithful one."""
        return self.looks[-1].value

    @property
    def low(self) -> float:
        """The lower end of its interval."""
        return self.looks[-1].low

    @property
    def high(self) -> float:
        """The upper end of its interval."""
        return self.looks[-1].high

    @property
    def images(self) -> int:
        """Images asked about, without missing ones."""
        return self.looks[-1].images

    @property
    def forwards(self) -> int:
        """Masked inputs that the networks were asked about."""
        return self.looks[-1].forwards

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
    """Ask a metric about more and more images until it tells two explainers apart, or the budget ends.

    The mean difference of an image's metrics is judged after blocks of images, in random order. Its intervals
    at all looks cover together with 1 - level (`faithlab.stats.sequential.bounds`): where explainers do not differ, one
    of them is called better with a probability of about `level`, however often it was looked. Only images that are
    asked about are explained.

    The interval is Student's, and speaks of images like these. How far that probability is kept was simulated with
    2000 comparisons of explainers that do not differ, 600 images at most, looks that grow by 1.5 and a level of 5 %
    (`tests/test_decide.py` simulates half as many): 5 % ended with a verdict where the differences were normal, 4 %
    where they were those of shares of 19 hits, and 8 % where they were as skewed as an exponential law. So skewed
    differences are called more often than the level says: where one image in a hundred decides, take a larger first
    look. The middle of the interval is, after an early stop, on average farther from zero than the truth, as after
    every rule that stops at a clear difference. A metric with random draws needs few of them here: ask
    `metric.given(draws=1)`, and for more images.

    Args:
        metric: of `faithlab.metrics`, or its name; one that summarises images by their mean or area.
        task: the inputs and networks; its images are the most that can be asked about.
        explainer_a: the first explainer, or its attributions of all inputs [B, F].
        explainer_b: the second.
        names: what to call them; None: the names of the explainers, "a" and "b" where they have none.
        budget: masked inputs to ask about at most, for both explainers together; None: as many as the images need.
        level: the probability of a false verdict.
        first: images at the first look.
        growth: each look has so many times the images of the one before.
        seed: of the images' order.

    Raises:
        KeyError: no such metric or explainer.
        ValueError: a metric that does not apply, or has no mean over images; attributions of another shape; fewer
            images than the first look, or a budget that does not pay for it; names that are not two different ones.
    """
    metric = METRICS[metric] if isinstance(metric, str) else metric
    given = (explainer_a, explainer_b)
    names = _names(given, names)
    for name in names:
        if why := metric.obstacle(task, name):
            raise ValueError(f"the metric does not apply: {why}")
    if metric.summary not in (stats.mean, stats.area):
        raise ValueError(
            "expected a metric whose images are summarised by their mean or area, of which a difference can be judged "
            "after any number of them; compare this one with faithlab.stats.estimate"
        )
    for name, one in zip(names, given, strict=True):
        if isinstance(one, Tensor) and (one.ndim != 2 or len(one) != len(task.x)):
            raise ValueError(
                f"{name}: expected an attribution for each of the {len(task.x)} inputs, [{len(task.x)}, "
                f"features], but got {tuple(one.shape)}"
            )
    looks = sequential.looks(first, _most(metric, task, budget, first), growth)
    nobody = torch.zeros(1, dtype=torch.int64)
    order = rng.permutations(seed, nobody, nobody, len(task.x)).flatten()[: looks[-1]].to(task.x.device)
    forwards = []

    def differences() -> Iterator[Tensor]:
        for start, stop in itertools.pairwise([0, *looks]):
            part = task.part(order[start:stop])
            maps = [_attribution(one, part, order[start:stop]) for one in given]
            values, asked = _asked(metric, part, maps, names)
            forwards.append(asked)
            yield (values[0] - values[1]).double().cpu() * metric.better

    means = sequential.until_decided(differences(), looks, level)
    spent = itertools.accumulate(forwards)
    found = [Look(m.images, asked, m.value, m.low, m.high) for m, asked in zip(means, spent, strict=True)]
    verdict = names[0] if found[-1].low > 0 else names[1] if found[-1].high < 0 else UNDECIDED
    return Decision(verdict, names, tuple(found), means[-1].missing)


def _names(given: tuple[Explained, Explained], names: tuple[str, str] | None) -> tuple[str, str]:
    if names is None:
        own = [one[0] if isinstance(one, tuple) else one for one in given]
        names = tuple(one if isinstance(one, str) else other for one, other in zip(own, "ab", strict=True))
        names = names if names[0] != names[1] else ("a", "b")
    if len(names) != 2 or names[0] == names[1] or UNDECIDED in names:
        raise ValueError(f'expected two different names, neither of them "{UNDECIDED}", but got {names!r}')
    return tuple(names)


def _most(metric: Metric, task: Task, budget: int | None, first: int) -> int:
    """Images that can be asked about."""
    most = len(task.x)
    if budget is not None:
        validation.whole("budget, masked inputs to ask about,", budget, 1)
        features = segments.count_of(task.segments, task.x)
        most = min(most, budget // (2 * metric.forward_passes(features)))
    if most < first:
        paid = "" if budget is None else f", and the budget of {budget} forwards for {most} images"
        raise ValueError(
            f"expected images for the first look, {first} of them, but there are {len(task.x)}{paid}; give more, or "
            "a smaller `first`"
        )
    return most


def _attribution(one: Explained, part: Task, places: Tensor) -> Tensor:
    if isinstance(one, Tensor):
        return one[places.to(one.device)]
    name, options = one if isinstance(one, tuple) else (one, {})
    from faithlab.explainers import explain  # needs an extra, which attributions do not

    return explain(name, part.model, part.x, part.target, part.segments, images=part.images, **options)


def _asked(metric: Metric, part: Task, maps: list[Tensor], names: tuple[str, str]) -> tuple[list[Tensor], int]:
    """An image's number for each explainer, [B], and how many forwards they took; equal masks are asked once."""

    def score(name: str) -> Remembered:
        options = {"explainer": name, "exact": metric.exact}
        return Remembered(part.score((metric.output,), metric.baseline, metric.network, **options), 1)

    shared = metric.network != "retrained"
    scores = [score(names[0])] * 2 if shared else [score(name) for name in names]
    values = [
        _number(metric, metric.measure(score.of(0), part, own).value) for score, own in zip(scores, maps, strict=True)
    ]
    return values, scores[0].asked + (0 if shared else scores[1].asked)


def _number(metric: Metric, values: Tensor) -> Tensor:
    values = values.double().reshape(len(values), -1)
    if metric.summary is stats.mean or values.shape[1] == 1:
        return values.mean(1)
    return stats.auc(values, torch.tensor(metric.sizes, dtype=torch.float64, device=values.device))
