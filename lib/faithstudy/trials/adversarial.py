"""Gaming (TRACE, section 5.2, asks it of its own metrics): is what a metric likes best liked by the others too?

For each input an order of the features is searched for that the metric likes, with a fixed budget of forwards. The
search knows nothing of the metric but its values, so that it takes any metric that sees only the order; where the
objective is MoRF, LeRF or LeRF - MoRF, `faithlab.search` finds better ones with more questions.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from faithlab import masks, rng, stats, validation
from faithlab.metrics import Metric
from faithlab.task import Task

FEATURES = 32
"""Of the input that tells how a metric asks."""
PAIRS = 4
"""Opposite proposals of one step of the search."""
LEAST = 2 * PAIRS + 1
"""With fewer questions there is no search."""


def sees_only_order(metric: Metric) -> bool:
    """Whether a metric asks and says the same of two attributions that differ in nothing but their magnitudes."""
    return _asked(metric, lambda a: a) == _asked(metric, lambda a: a**3)


def cuts(metric: Metric) -> bool:
    """Whether a metric asks only what is left when the order is cut in two, as deletion and insertion do."""
    keep, _ = _asked(metric, lambda a: a)
    ranked = torch.tensor(keep, dtype=torch.int8).view(-1, FEATURES)[:, masks.order(_probe())[0]]
    changes = (ranked.diff(dim=1) != 0).sum(1)
    return bool((changes <= 1).all() and (changes == 1).any())


def draws_numbers(metric: Metric) -> bool:
    """Whether a metric asks otherwise with another `seed`."""
    return metric.takes("seed") and _asked(metric, lambda a: a) != _asked(metric.given(seed=1), lambda a: a)


def kin(metric: Metric) -> tuple[str, str]:
    """What metrics are one family that has one vote: those that cut the order of the same network, else its own."""
    return ("cuts of the order", metric.network) if cuts(metric) else (metric.family or repr(metric.compute), "")


part = Task.part
"""The inputs of a task at some places, which may be there more than once."""


def _probe() -> Tensor:
    return rng.uniform(0, torch.tensor([0]), torch.tensor([0]), FEATURES)[:, 0] + 0.1


def _asked(metric: Metric, turned: Callable[[Tensor], Tensor]) -> tuple[list, list]:
    """The masks that a metric asks about on one input whose answers are random, and what it says."""
    seen: list[Tensor] = []
    weights = rng.uniform(1, torch.tensor([0]), torch.tensor([0]), FEATURES)[0, 0]

    def score(keep: Tensor, positions: Tensor | None = None) -> Tensor:
        seen.append(keep.reshape(-1, FEATURES))
        return ((keep.double() @ weights) / weights.sum()).float()

    score.classes = 2
    x = torch.zeros(1, FEATURES, dtype=torch.float32)
    task = Task(torch.nn.Identity(), x, torch.zeros(1, dtype=torch.int64), torch.arange(FEATURES))
    value = metric.measure(score, task, turned(_probe())).value
    return torch.cat(seen).tolist() if seen else [], value.double().nan_to_num(nan=-1e9).flatten().tolist()


def oriented(metric: Metric, values: Tensor, sizes: tuple[float, ...] | None = None) -> Tensor:
    """One number of each image, higher is more faithful: the area of a curve, turned; float64 [B]."""
    values = values.double()
    if sizes is not None:
        values = stats.auc(values, torch.tensor(sizes, dtype=torch.float64)) if len(sizes) > 1 else values[:, 0]
    return metric.better * values.reshape(len(values))


def questions(metric: Metric, features: int, budget: int) -> int:
    """How many orders a budget of forwards asks the metric about."""
    return budget // max(1, metric.forward_passes(features))


def search(metric: Metric, task: Task, start: Tensor, *, budget: int, seed: int = 0) -> Tensor:
    """An order that a metric likes better, as an attribution of ranks, [B, F].

    An evolution strategy with opposite pairs of proposals (Salimans et al., 2017): the ranks are moved at random, and
    then in the direction in which the metric rises. The best of all that was asked is kept, the start among it.

    Args:
        metric: that sees only the order.
        task: the inputs and networks.
        start: [B, F] where the search starts, such as the explanation that the metric likes best.
        budget: forwards for each input.
        seed: of the proposals, which belong to the image and the step.

    Raises:
        ValueError: the budget asks about fewer than `LEAST` orders, and what the metric raises.
    """
    validation.attribution(start)
    B, F = start.shape
    steps = (questions(metric, F, budget) - 1) // (2 * PAIRS)
    if not steps:
        each = metric.forward_passes(F)
        raise ValueError(
            f"a search asks about {LEAST} orders or more, of {each} forwards each, but the budget is {budget}; give "
            f"it {LEAST * each}"
        )
    every = task.part(torch.arange(B).repeat(2 * PAIRS))  # all proposals of a step are asked together
    score = every.score(metric.output, metric.baseline, metric.network, exact=metric.exact)

    def liked(ranks: Tensor) -> Tensor:
        found = oriented(metric, metric.measure(score, every, stats.rank(ranks.flatten(0, 1))).value, metric.sizes)
        return found.nan_to_num(nan=-torch.inf).unflatten(0, (-1, B))

    middle = (stats.rank(start.double()) - (F + 1) / 2) / F  # [-1/2, 1/2]
    best, height = middle, liked(middle.expand(2 * PAIRS, -1, -1))[0]
    for step in range(steps):
        number = torch.arange(step * PAIRS, (step + 1) * PAIRS)
        moves = rng.normal(seed, task.images, number, F).to(middle).transpose(0, 1) / 4  # [PAIRS, B, F]
        proposals = torch.cat([middle + moves, middle - moves])
        found = liked(proposals)
        up, down = found.chunk(2)
        slope = ((up - down).sign().nan_to_num(0)[..., None] * moves).sum(0)
        for ranks, value in zip(proposals, found, strict=True):
            best = torch.where((value > height)[:, None], ranks, best)
            height = torch.maximum(height, value)
        middle = (best + middle) / 2 + slope / PAIRS
        middle = (stats.rank(middle) - (F + 1) / 2) / F
    return stats.rank(best)
