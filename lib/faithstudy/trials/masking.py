"""How a network bears random masks (F-Fidelity, section 5.4, Table 8): before anybody asks an explanation.

Metrics that remove features ask a network about inputs that it was not trained on. What random masks cost it is what
they would suffer from, and where they cost nothing there is nothing to cure.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from faithlab import segments, stats
from faithlab.metrics.robustness import advise, robustness
from faithlab.outputs import correct
from faithlab.scores import Scores
from faithlab.stats import Sample, Statistic
from faithlab.task import Network, Task


def masked(
    task: Task,
    shares: Sequence[float],
    *,
    draws: int = 1,
    seed: int = 0,
    networks: Sequence[Network] = ("original", "fine-tuned"),
    explainer: str = "random",
) -> Scores:
    """Whether networks still recognise each input when a random share of its features is removed.

    Args:
        task: the inputs and networks.
        shares: of the features, increasing; 0 is the whole input.
        draws: random masks of each input.
        seed: of the masks.
        networks: which of the task's are asked.
        explainer: what tables call the masks.

    Returns:
        The long table: metric "accuracy", the shares as sizes, networks named "<the task's> original" and so on.
    """
    at = torch.tensor(shares, dtype=torch.float64)
    shape = (len(task.x), segments.count(task.segments))
    options = {"images": task.images, "present": task.present}
    tables = []
    for asked in networks:
        score = task.score(correct, network=asked)
        for draw in range(draws):
            hits = robustness(score, shape, at, seed=seed + draw, **options).bool()
            labels = {**task.labels, "network": f"{task.network} {asked}", "draw": draw}
            labels |= {"metric": "accuracy", "explainer": explainer, "reference": "zero"}
            tables.append(Scores.of(hits, images=task.images, sizes=at, **labels))
    return Scores.concat(tables)


def at(share: float) -> Statistic:
    """The statistic of `masked`: the accuracy with this share of the features masked."""
    return Statistic(lambda sample: _accuracy(sample, share), name="accuracy", within=(0.0, 1.0))


def lost(share: float) -> Callable[[Sample], Tensor]:
    """The statistic of `masked`: the accuracy that masks of this share cost."""
    return lambda sample: _accuracy(sample, 0.0) - _accuracy(sample, share)


def accuracies(scores: Scores) -> pd.DataFrame:
    """The accuracy at every share, for a reader: dataset, network, explainer, masked, accuracy, low, high."""
    rows = [
        (*cell.values(), *point)
        for cell, found in stats.summary(scores, ("dataset", "network", "explainer"))
        for point in zip(scores.blocks[0].sizes, *(x.tolist() for x in found.pooled), strict=True)
    ]
    return pd.DataFrame(rows, columns=["dataset", "network", "explainer", "masked", "accuracy", "low", "high"])


def by_architecture(scores: Scores, names: Mapping[str, str]) -> pd.DataFrame:
    """`accuracies` with data sets by other names, and "CNN fine-tuned" as architecture and network."""
    found = accuracies(scores).replace({"dataset": dict(names)})
    found[["architecture", "network"]] = found["network"].str.rsplit(" ", n=1, expand=True)
    return found


def advised(scores: Scores, by: Sequence[str] = ("dataset", "network", "explainer"), **how: Any) -> pd.DataFrame:
    """Which fidelity metric the masks that a network bears warrant: the labels `by`, and `Advice` in columns.

    Args:
        scores: of `masked`. Masks and training seeds of the same labels are averaged for each input.
        by: the labels whose combinations are wanted.
        **how: as in `faithlab.metrics.robustness.advise`.
    """
    rows = []
    for values in dict.fromkeys(tuple(block.labels[name] for name in by) for block in scores):
        cell = dict(zip(by, values, strict=True))
        blocks = scores.where(**cell).blocks
        hits = torch.stack([block.values.double() for block in blocks]).mean(0)
        rows.append(cell | advise(hits, blocks[0].sizes, **how)._asdict())
    return pd.DataFrame(rows)


def printed(paper: pd.DataFrame, dataset: str, architecture: str) -> pd.DataFrame:
    """The accuracies of the paper's Table 8: fine-tuned and original by share, 0 to 0.1; NaN where it prints nothing.

    Args:
        paper: of `faithstudy.published`, "ffidelity_robustness".
        dataset: as the paper calls it.
        architecture: as the paper calls it.
    """
    chosen = paper[(paper["dataset"] == dataset) & (paper["architecture"] == architecture)]
    table = chosen.pivot(index="model", columns="masked_fraction", values="accuracy")
    return table.reindex(index=["fine-tuned", "original"], columns=[0.0, 0.05, 0.1])


def _accuracy(sample: Sample, share: float) -> Tensor:
    places = (sample.sizes - share).abs().lt(1e-9).nonzero()
    if not len(places):
        raise ValueError(f"{share}: not among the masked shares, {sample.sizes.tolist()}")
    return sample.mean()[:, places[0, 0]]
