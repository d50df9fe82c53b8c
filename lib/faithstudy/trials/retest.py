"""Repeat: the test-retest reliability of a metric.

Two halves of the images, with other random draws, rank explainers alike; of a single image, other draws do.
"""

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from faithlab.metrics import Metric, evaluate
from faithlab.scores import Scores
from faithlab.task import Task
from faithstudy.trials import adversarial
from faithstudy.trials.other_libraries import Peer

OTHER_DRAW = 1
"""The draw of the scores with other random numbers."""


def other_draws(metrics: Mapping[str, Metric], task: Task, attributions: Mapping[str, Tensor]) -> list[Scores]:
    """The same explanations with other random numbers, for metrics that draw some by an argument `seed`."""
    own = {name: m for name, m in metrics.items() if not isinstance(m, Peer)}
    drawn = {name: m.given(seed=1) for name, m in own.items() if adversarial.draws_numbers(m)}
    return [evaluate(drawn, task, attributions, draw=OTHER_DRAW)] if drawn else []


def groups(base: Sequence[dict], found: Callable[..., list[dict]]) -> list[list[dict]]:
    """Explanations as they are, and with the other draws; arguments of `faithstudy.trials.concordance.cells`."""
    return [list(base), [{**own, "draw": OTHER_DRAW} for own in base] if found(draw=OTHER_DRAW) else list(base)]
