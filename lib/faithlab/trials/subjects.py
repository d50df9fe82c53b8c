"""One way to choose what is explained, and to explain it: from a recipe to a subject and its attributions."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from faithlab import references
from faithlab.engine import native_precision
from faithlab.explainers import Explainer, explain
from faithlab.subject import Subject
from faithlab.zoo import datasets, training
from faithlab.zoo.sets import LabelledSet

Chosen = str | Explainer | tuple[str | Explainer, Mapping[str, Any]]
"""An explainer of `faithlab.explainers`, with its options where it has some."""


def subject(
    recipe: training.Recipe,
    images: int | Tensor,
    *,
    tuned: training.Recipe | None = None,
    name: str | None = None,
    about: Literal["label", "prediction"] = "label",
    precision: Literal["bfloat16", "float32"] = "float32",
    data: LabelledSet | None = None,
    features: Tensor | None = None,
) -> Subject:
    """The network of a recipe with examples of its test split.

    Args:
        recipe: of the network, trained where it is not there.
        images: the first so many examples, or the positions of those wanted.
        tuned: the recipe of the network fine-tuned on random masks.
        name: what tables call the network; None: the model of the recipe.
        about: the class that everything is about: the label, or what the network predicts.
        precision: of forwards; bfloat16 only where the device computes it natively.
        data: the test split; None: the recipe's own.
        features: a segment map, see `faithlab.segments`; None: the smallest features of the data.
    """
    data = datasets.load(recipe.data, "test", **recipe.data_options) if data is None else data
    places = torch.arange(min(images, len(data))) if isinstance(images, int) else images
    model = training.trained(recipe)
    device = next(model.parameters()).device
    x, present = data.model_inputs(places).to(device), data.present(places)
    target = data.labels[places].to(device) if about == "label" else training.logits(model, x).argmax(1)
    token = partial(references.token, identity=data.ABSENT)
    return Subject(
        model,
        x,
        target,
        data.features() if features is None else features,
        dataset=f"{recipe.data} test",
        network=name or recipe.model,
        training_seed=recipe.seed,
        images=places,
        present=None if present is None else present.to(device),
        tuned=None if tuned is None else training.trained(tuned),
        references=references.NAMED if x.is_floating_point() else dict.fromkeys(references.NAMED, token),
        precision=native_precision(device) if precision == "bfloat16" else torch.float32,
    )


def attributions(subject: Subject, explainers: Mapping[str, Chosen], *, rows: int = 128) -> dict[str, Tensor]:
    """Explanations of a subject's target by explainer, [B, F] each, made by the network that is explained.

    Args:
        subject: what to explain.
        explainers: what tables call them, and what they are.
        rows: inputs explained at once.
    """
    found = {}
    for name, chosen in explainers.items():
        explainer, options = chosen if isinstance(chosen, tuple) else (chosen, {})
        asked = (explainer, subject.model, subject.x, subject.target, subject.segments)
        found[name] = explain(*asked, images=subject.images, rows=rows, **options)
    return found


def recognised(recipes: Sequence[training.Recipe], count: int, data: LabelledSet) -> Tensor:
    """The places of the first examples that every network gets right, as Few-class Fidelity (section 4.1) chooses them.

    Args:
        recipes: of the networks.
        count: how many examples.
        data: the test split.

    Raises:
        ValueError: there are fewer such examples.
    """
    right = torch.ones(len(data), dtype=torch.bool)
    for recipe in recipes:
        model = training.trained(recipe)
        x = data.model_inputs().to(next(model.parameters()).device)
        right &= training.logits(model, x).argmax(1).cpu() == data.labels
    if int(right.sum()) < count:
        raise ValueError(f"all networks are right on {int(right.sum())} of {len(data)} examples, fewer than {count}")
    return right.nonzero().flatten()[:count]


def recognised(
    network: training.Recipe | nn.Module, count: int, data: LabelledSet | None = None, *, rows: int = 64
) -> Tensor:
    """The positions of the first examples that a network gets right, [n] with n at most `count`.

    Args:
        network: its recipe, or the network itself with `data`.
        count: how many; fewer where there are no more.
        data: the examples; None: the test split of the recipe.
        rows: examples that are asked about at once.

    Raises:
        ValueError: the network gets none of them right.
    """
    if isinstance(network, training.Recipe):
        data = datasets.load(network.data, "test", **network.data_options) if data is None else data
        network = training.trained(network)
    found: list[int] = []
    for part in torch.arange(len(data)).split(rows):
        right = training.logits(network, data.model_inputs(part)).argmax(1).cpu() == data.labels[part]
        found += part[right].tolist()
        if len(found) >= count:
            break
    if not found:
        raise ValueError(f"the network recognises none of {len(data)} examples, so that there is nothing to explain")
    return torch.tensor(found[:count])
