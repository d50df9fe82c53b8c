"""ROAR: RemOve And Retrain (Hooker, Erhan, Kindermans, Kim, 2019), as F-Fidelity compares itself with it.

One network is retrained for each explainer. Whenever it sees a training example, the example lacks the features that
the explainer calls most relevant, a share of them drawn uniformly from 0 to 1. The metric is then plain Fidelity on the
retrained network. Here meet explainers and training, which do not know each other.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from faithlab import masks
from faithlab.engine import native_precision
from faithlab.explainers import explain
from faithstudy.data import datasets
from faithstudy.data.sets import LabelledSet
from faithstudy.networks import shipped, training
from faithstudy.trials.tasks import Chosen, with_options


def recipe(original: training.Recipe, parameters: Mapping[str, Any]) -> training.Recipe:
    """How the networks of an original are retrained, from the parameters of a page."""
    chosen = {name: parameters[f"roar_{name}"] for name in ("epochs", "rate", "limit")}
    return dataclasses.replace(original, **chosen, start=None if parameters["roar_fresh"] else original)


def recipes(
    recipe: training.Recipe, explained: training.Recipe, explainers: Mapping[str, Chosen]
) -> dict[str, training.Recipe]:
    """What the networks of every explainer are trained by, see `networks`."""
    return {
        name: dataclasses.replace(recipe, orders=_named(recipe, explained, *chosen))
        for name, chosen in with_options(explainers).items()
    }


def networks(
    recipe: training.Recipe, explained: training.Recipe, explainers: Mapping[str, Chosen]
) -> dict[str, nn.Module]:
    """The retrained network of every explainer, see `faithlab.task.Task.retrained`.

    Training is stored epoch by epoch: a killed run goes on from there. For a network that ships nothing is explained.
    """
    wanted = recipes(recipe, explained, explainers)
    for name, (explainer, options) in with_options(explainers).items():
        if shipped.find(wanted[name].key()) is None:
            ordered(recipe, explained, explainer, **options)
    return {name: training.trained(of) for name, of in wanted.items()}


def ordered(recipe: training.Recipe, explained: training.Recipe, explainer: str, **options) -> str:
    """Explain the training examples of a recipe, store the orders of their features, and return their name.

    They are stored block by block: a killed run goes on from there.

    Args:
        recipe: how to train. The training examples are explained in its precision, where the device computes
            it natively, else in float32.
        explained: the recipe of the network whose explanations are taken.
        explainer: its name in `faithlab.explainers`.
        **options: of the explainer.
    """
    data = _explained(recipe)
    network = training.trained(explained)
    orders = _named(recipe, explained, explainer, options)
    # Where bfloat16 is not native it is imitated, which takes some thirty times as long.
    native = native_precision(next(network.parameters()).device) is torch.bfloat16
    precision = recipe.precision if native else "float32"
    training.keep_orders(orders, lambda block: _order(explainer, network, data, block, precision, options), len(data))
    return orders


def _explained(recipe: training.Recipe) -> LabelledSet:
    """The examples whose features are put in order."""
    return datasets.load(recipe.data, "train", **recipe.data_options).take(slice(recipe.limit))


def _named(recipe: training.Recipe, explained: training.Recipe, explainer: str, options: dict) -> str:
    """The name of the orders; arguments as in `ordered`. A recipe of another `version` has orders of its own."""
    # The recipe's data options are among the options: they may decide what the features are.
    chosen = [explained.key(), explainer, options | recipe.data_options, len(_explained(recipe)), recipe.precision]
    about = json.dumps(chosen + [recipe.version] * (recipe.version > 1), sort_keys=True)
    return f"{explained.key()}-{explainer}-{hashlib.sha256(about.encode()).hexdigest()[:16]}"


def _order(
    explainer: str, network: nn.Module, data: LabelledSet, block: slice, precision: str, options: dict
) -> Tensor:
    """The features of some examples from most to least relevant, [n, F]."""
    device = next(network.parameters()).device
    x, y = data.model_inputs(block).to(device), data.labels[block].to(device)
    present = data.present(block)
    present = None if present is None else present.to(device)
    identities = torch.arange(block.start, block.stop, device=device)
    with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
        attribution = explain(explainer, network, x, y, data.features(), images=identities, **options)
    return masks.order(attribution, present)
