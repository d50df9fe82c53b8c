"""Explanations of neighbouring inputs (ReCo and MeGe, eq. 2): does an explanation move when the input hardly does?"""

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from faithlab.explainers import explain
from faithlab.metrics import Metric, stability
from faithlab.scores import Scores
from faithlab.task import Task
from faithstudy.trials.tasks import Chosen, with_options


def neighbours(
    metrics: Mapping[str, Metric],
    task: Task,
    explainers: Mapping[str, Chosen],
    maps: Mapping[str, Tensor],
    *,
    radius: float,
    count: int,
    norm: Literal["l1", "max"] = "l1",
    seed: int = 0,
    **labels: Any,
) -> Scores:
    """What metrics of neighbours say of every explanation, by its absolute relevance.

    An explainer that draws random numbers draws them anew for each neighbour, as it would if it were asked again.

    Args:
        metrics: by name; those that do not need neighbours do not apply, and have no rows.
        task: the inputs and the network.
        explainers: what tables call them, and what they are.
        maps: their explanations of the inputs, of `faithstudy.trials.tasks.attributions`.
        radius: of the neighbourhood, in the unit of the inputs.
        count: neighbours of each input.
        norm: of the ball they are drawn from, see `faithlab.metrics.stability.neighbours`.
        seed: of the neighbours.
        **labels: of all rows, see `faithlab.scores.LABELS`.

    Raises:
        ValueError: no metric applies, and what `faithlab.metrics.stability.neighbours` raises.
    """
    asked = {name: metric for name, metric in metrics.items() if metric.needs == "neighbours"}
    if not asked:
        raise ValueError(f"no metric applies: none of {', '.join(metrics) or 'those given'} is about neighbours")
    B, shape = len(task.x), task.x.shape[-2:]
    around = stability.neighbours(task.x, radius, count, norm=norm, seed=seed, images=task.images)
    # Identities of their own, below those of all inputs, whichever others are asked about.
    again = ~((task.images.cpu()[:, None] << 20) + torch.arange(count)).flatten()
    target = task.target.repeat_interleave(count)
    tables = []
    for explainer, (function, options) in with_options(explainers).items():
        moved = explain(function, task.model, around.flatten(0, 1), target, task.segments, images=again, **options)
        both = maps[explainer].abs().view(B, *shape), moved.abs().view(B, count, *shape)
        for name, metric in asked.items():
            about = {**task.labels, "metric": name, "explainer": explainer, **labels}
            tables.append(Scores.of(metric.compute(*both), images=task.images, **about))
    return Scores.concat(tables)
