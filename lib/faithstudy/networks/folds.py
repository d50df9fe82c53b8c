"""Networks that were each trained on another part of the data (ReCo and MeGe, section 3.3), and the paper's recipes.

A training set is cut into k blocks; network i is trained on all of them but block i.
"""

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from faithlab import masks
from faithstudy.networks import training
from faithstudy.networks.training import Recipe


def folds(recipe: Recipe, k: int) -> list[Recipe]:
    """The k recipes of a cross-training: recipe i leaves out block i, and starts from weights of its own."""
    return [dataclasses.replace(recipe, fold=(i, k), seed=recipe.seed + i) for i in range(k)]


def comparable(recipe: Recipe, k: int, *, tolerance: float, attempts: int = 3) -> list[Recipe]:
    """The folds of a recipe, trained until they are comparable: one that is too far from their median starts anew.

    Args:
        recipe: without a fold.
        k: number of folds.
        tolerance: largest distance of an accuracy on the whole test split from the median of all.
        attempts: how often a fold is trained at most, each time from other weights.

    Raises:
        RuntimeError: some folds are still too far from the others.
    """
    recipes = folds(recipe, k)
    if tolerance >= 1:  # no two accuracies are farther apart
        return recipes
    accuracies = [training.accuracy_of(fold) for fold in recipes]
    for attempt in range(1, attempts + 1):
        middle = statistics.median(accuracies)
        outside = [i for i, accuracy in enumerate(accuracies) if abs(accuracy - middle) > tolerance]
        if not outside:
            return recipes
        if attempt < attempts:
            for i in outside:
                recipes[i] = dataclasses.replace(recipes[i], seed=recipes[i].seed + k)
                accuracies[i] = training.accuracy_of(recipes[i])
    raise RuntimeError(
        f"the {k} folds of {recipe.data}, {recipe.model} are not comparable after {attempts} attempts: accuracies "
        f"{', '.join(f'{a:.1%}' for a in accuracies)}, allowed {tolerance:.1%} around their median; "
        "train longer or on more examples, or raise the tolerance"
    )


def unseen(recipes: Sequence[Recipe], examples: Tensor, count: int) -> Tensor:
    """The one network that was not trained on each example, int64 [B].

    Asked of what each recipe sees, not of how the folds were made.

    Args:
        recipes: of the k networks.
        examples: [B] positions in the training split, within the limit that all folds share.
        count: examples in the training split.
    """
    trained_on = torch.stack([torch.isin(examples, training.seen(recipe, count)) for recipe in recipes])  # [k, B]
    return (~trained_on).long().argmax(0)


# The networks of the paper's appendix A.3


class _Task(NamedTuple):
    name: str  # as the paper writes it
    examples: int  # in the training split
    channels: int
    side: int
    classes: int
    filters: int  # base filters of ResNet-18
    dropout: float = 0.25


TASKS = {
    "cifar10": _Task("CIFAR-10", 50_000, 3, 32, 10, 32),
    "cifar100": _Task("CIFAR-100", 50_000, 3, 32, 100, 32),
    "eurosat": _Task("EuroSAT", 21_600, 3, 64, 10, 46),
    "fashion-mnist": _Task("Fashion-MNIST", 60_000, 1, 28, 10, 26, 0.4),
}

Parameters = Mapping[str, Any]
"""Those of a notebook, from its parameters cell and profile."""


def resnet(data: str, parameters: Parameters, seed: int = 0) -> Recipe:
    """ResNet-18 for a data set; `width` None is the paper's. Inputs are intensities from 0 to 1, so that 0 is black."""
    task = TASKS[data]
    own = {name: parameters[name] for name in ("epochs", "rate", "decay", "batch", "precision")}
    options = {"classes": task.classes, "channels": task.channels, "width": parameters["width"] or task.filters}
    options["dropout"] = task.dropout
    known = {"data_options": {"standardised": False}, "model_options": options, "limit": parameters["train_limit"]}
    return Recipe(data, "resnet18", **own, **known, seed=seed)


def lipschitz(data: str, parameters: Parameters, seed: int = 0) -> Recipe:
    """The 1-Lipschitz network of Table 6, in float32: low precision would break its bound."""
    task, plain = TASKS[data], resnet(data, parameters, seed)
    options = {"classes": task.classes, "channels": task.channels, "size": task.side}
    options |= {name: parameters[f"lipschitz_{name}"] for name in ("width", "scale")}
    own = {"epochs": parameters["lipschitz_epochs"], "precision": "float32"}
    return dataclasses.replace(plain, model="lipschitz", model_options=options, **own)


def unbounded(data: str, parameters: Parameters, seed: int = 0) -> Recipe:
    """The layers of the 1-Lipschitz network without its bound, trained in the same way, but not for as long."""
    bounded = lipschitz(data, parameters, seed)
    options = {name: value for name, value in bounded.model_options.items() if name != "scale"}
    return dataclasses.replace(bounded, model="unbounded", model_options=options, epochs=parameters["unbounded_epochs"])


def conditions(data: str, parameters: Parameters, seed: int = 0) -> dict[tuple[str | None, float | None], Recipe]:
    """Normal training and the degradations that need training of their own, by variant and level.

    Where the data are limited, epochs are added so that the number of steps stays the same.
    """
    normal = resnet(data, parameters, seed)
    found = {(None, None): normal}
    for share in parameters["switched"]:
        found["switched", share] = dataclasses.replace(normal, switched=share)
    for share in parameters["limited"]:
        limit = int(masks.counts([share], normal.limit or TASKS[data].examples))
        found["limited", share] = dataclasses.replace(normal, limit=limit, epochs=round(normal.epochs / share))
    return found


def _all(recipes: Sequence[Recipe], parameters: Parameters) -> list[Recipe]:
    return [fold for recipe in recipes for fold in folds(recipe, parameters["folds"])]


def normal(parameters: Parameters) -> list[Recipe]:
    """All networks of the page on normal models, fold after fold of each."""
    chosen = [resnet(data, parameters, seed) for data in parameters["sets"] for seed in parameters["training_seeds"]]
    return _all(chosen, parameters)


def degraded(parameters: Parameters) -> list[Recipe]:
    """All networks of the page on degraded models, fold after fold of each."""
    chosen = [
        recipe
        for data in parameters["sets"]
        for seed in parameters["training_seeds"]
        for (variant, _), recipe in conditions(data, parameters, seed).items()
        if variant is None or data in parameters["retrained"]
    ]
    return _all(chosen, parameters)


def right_method(parameters: Parameters) -> list[Recipe]:
    """All networks of the page on the right method for the right model, fold after fold of each."""
    data, makers = parameters["data"], (resnet, lipschitz, unbounded)[: 3 if parameters["unbounded_epochs"] else 2]
    chosen = [make(data, parameters, s) for s in parameters["training_seeds"] for make in makers]
    return _all(chosen, parameters)
