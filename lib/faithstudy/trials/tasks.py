"""One way to choose what is explained, and to explain it: from a network to a task and its attributions."""

import logging
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from faithlab import baselines
from faithlab.engine import native_precision
from faithlab.explainers import Explainer, explain
from faithlab.task import Task
from faithstudy.data import datasets
from faithstudy.data.sets import LabelledSet
from faithstudy.networks import origins, training

_log = logging.getLogger(__name__)

Network = training.Recipe | nn.Module

Chosen = str | Explainer | tuple[str | Explainer, Mapping[str, Any]]
"""An explainer of `faithlab.explainers`, with its options where it has some."""


def task(
    network: Network,
    images: int | Tensor,
    *,
    tuned: training.Recipe | None = None,
    name: str | None = None,
    dataset: str | None = None,
    about: Literal["label", "prediction"] = "label",
    precision: Literal["bfloat16", "float32"] = "float32",
    data: LabelledSet | None = None,
    features: Tensor | None = None,
) -> Task:
    """A network with examples of the test split of its data.

    Args:
        network: its recipe, by which it is trained where it is not there; or itself, with `data`, `dataset` and `name`.
        images: the first so many examples, or the positions of those wanted; where there are fewer, a warning says
            so.
        tuned: the recipe of the network fine-tuned on random masks.
        name: what tables call the network; None: the model of the recipe.
        dataset: what tables call the data; None: those of the recipe, and that it is their test split.
        about: the class that everything is about: the label, or what the network predicts.
        precision: of forwards, see `dtype`.
        data: the test split; None: the recipe's own.
        features: a segment map, see `faithlab.segments`; None: the smallest features of the data.
    """
    model, seed = network, None
    if isinstance(network, training.Recipe):
        data = datasets.load(network.data, "test", **network.data_options) if data is None else data
        name, dataset = name or network.model, dataset or f"{network.data} test"
        model, seed = training.trained(network), network.seed
    if isinstance(images, int) and images > len(data):
        _say_that_there_are_fewer(dataset, images, len(data))
    places = torch.arange(min(images, len(data))) if isinstance(images, int) else images
    device = next(model.parameters()).device
    x, present = data.model_inputs(places).to(device), data.present(places)
    target = data.labels[places].to(device) if about == "label" else training.logits(model, x).argmax(1)
    token = partial(baselines.token, identity=data.ABSENT)
    return Task(
        model,
        x,
        target,
        data.features() if features is None else features,
        dataset=dataset,
        network=name,
        training_seed=seed,
        images=places,
        present=None if present is None else present.to(device),
        tuned=None if tuned is None else training.trained(tuned),
        baselines=baselines.NAMED if x.is_floating_point() else dict.fromkeys(baselines.NAMED, token),
        precision=dtype(precision, device),
    )


def dtype(precision: Literal["bfloat16", "float32"], device: torch.device | str = "cpu") -> torch.dtype:
    """The precision of a page's forwards on a device, noted for its provenance.

    Pages of series, texts and digits take float32 on every machine: bfloat16 would save little there. It is taken only
    where the device computes it natively; imitated, it takes some thirty times as long.
    """
    found = native_precision(device) if precision == "bfloat16" else torch.float32
    origins.PRECISIONS.add(str(found).removeprefix("torch."))
    return found


@cache
def _say_that_there_are_fewer(dataset: str, asked: int, there: int) -> None:
    _log.warning("%d examples are asked for, but %s has %d: all of them are taken", asked, dataset, there)


def evenly(places: Tensor, most: int) -> Tensor:
    """At most so many of some positions, evenly spaced: data sets may be sorted by class."""
    return places[torch.linspace(0, len(places) - 1, min(most, len(places)), dtype=torch.float64).round().long()]


def with_options(explainers: Mapping[str, Chosen]) -> dict[str, tuple[str | Explainer, Mapping[str, Any]]]:
    """Explainers by name, each with its options, which may be none."""
    return {name: of if isinstance(of, tuple) else (of, {}) for name, of in explainers.items()}


def attributions(task: Task, explainers: Mapping[str, Chosen], *, batch_size: int = 128) -> dict[str, Tensor]:
    """Explanations of a task's target by explainer, [B, F] each, made by the network that is explained.

    Args:
        task: what to explain.
        explainers: what tables call them, and what they are.
        batch_size: inputs explained at once.
    """
    asked, how = (task.model, task.x, task.target, task.segments), {"images": task.images, "batch_size": batch_size}
    return {name: explain(of, *asked, **how, **options) for name, (of, options) in with_options(explainers).items()}


def recognised(
    networks: Network | Sequence[Network],
    count: int,
    data: LabelledSet | None = None,
    *,
    least: int = 1,
    batch_size: int = 64,
) -> Tensor:
    """The positions of the first examples that every network gets right, [n] with n at most `count`.

    Args:
        networks: recipes, or networks themselves with `data`.
        count: how many; fewer where there are no more.
        data: the examples; None: the test split of the first recipe.
        least: so many are needed.
        batch_size: examples that are asked about at once.

    Raises:
        ValueError: there are fewer than `least`.
    """
    several = list(networks) if isinstance(networks, Sequence) else [networks]
    first = several[0]
    data = datasets.load(first.data, "test", **first.data_options) if data is None else data
    several = [training.trained(n) if isinstance(n, training.Recipe) else n for n in several]
    found: list[int] = []
    for part in torch.arange(len(data)).split(batch_size):
        x, labels = data.model_inputs(part), data.labels[part]
        right = torch.stack([training.logits(network, x).argmax(1).cpu() == labels for network in several]).all(0)
        found += part[right].tolist()
        if len(found) >= count:
            break
    if len(found) < least:
        raise ValueError(f"the networks recognise {len(found)} of {len(data)} examples, but {least} are needed")
    return torch.tensor(found[:count])
