"""Random attribution (SaCo, section 5.2): what does a metric say of an explanation that knows nothing?

Every feature gets a random score, without a look at the network. What a metric says of it is the chance level of that
metric on these inputs, and an explanation is worth something by a metric where it is better than that.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
from torch import Tensor
from tqdm import tqdm

from faithlab import stats
from faithlab.metrics import Metric, evaluate
from faithlab.scores import Scores
from faithlab.task import Task
from faithstudy.trials.tasks import attributions as explained

RANDOM = "Random"
"""What tables call the random explanation."""


def rows(task: Task, seeds: Sequence[int]) -> list[tuple[dict, Tensor]]:
    """Labels and attributions: a random explanation of each seed, [B, F]."""
    random = {seed: explained(task, {RANDOM: ("random", {"seed": seed})})[RANDOM] for seed in seeds}
    return [({"explainer": RANDOM, "noise_seed": seed}, of) for seed, of in random.items()]


def pairs(base: Sequence[dict], found: Callable[..., list[dict]]) -> list[tuple[dict, dict]]:
    """Each explanation and each random one; arguments of `faithstudy.trials.concordance.cells`."""
    return [(own, random) for own in base for random in found(explainer=RANDOM, variant=None)]


def chance(
    metrics: Mapping[str, Metric], task: Task, attributions: Mapping[str, Tensor], *, seeds: Sequence[int]
) -> Scores:
    """Every metric of every explanation, and of random ones.

    Args:
        metrics: by name.
        task: the inputs and networks.
        attributions: by explainer, [B, F].
        seeds: of the random explanations.

    Returns:
        The long table; random explanations have the explainer `RANDOM` and a noise seed, over which estimates average.
    """
    tables = [evaluate(metrics, task, attributions)]
    for labels, random in tqdm(rows(task, seeds), desc="random explanations", mininterval=5):
        tables.append(evaluate(metrics, task, {RANDOM: random}, noise_seed=labels["noise_seed"]))
    return Scores.concat(tables)


def against(scores: Scores, metrics: Mapping[str, Metric], **labels: Any) -> pd.DataFrame:
    """How much better each explanation is than a random one of the same image.

    Args:
        scores: of `chance`.
        metrics: by name.
        **labels: of the rows, where the table has more than one data set or the like.

    Returns:
        Tidy: explainer, metric, mean (positive: better), low, high, missing. An interval above 0 is better than
        chance, one below 0 is worse.
    """
    rows = []
    for explainer in scores.where(**labels).labels("explainer"):
        if explainer == RANDOM:
            continue
        for name, metric in metrics.items():
            cells = [{"explainer": explainer}, {"explainer": RANDOM}]
            contrast = [[metric.better, -metric.better]]
            e = stats.estimate(scores, metric.summary, cells=cells, contrasts=contrast, metric=name, **labels)
            value, low, high = (float(x[0]) for x in e.pooled)
            rows.append((explainer, name, value, low, high, sum(e.missing)))
    return pd.DataFrame(rows, columns=["explainer", "metric", "mean", "low", "high", "missing"])
