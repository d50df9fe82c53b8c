"""What the pages on searches search: a network by name, so many features of so many inputs, an output, and how long."""

import dataclasses
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, NamedTuple

from faithlab import segments
from faithlab.outputs import logit, probability
from faithlab.task import Task
from faithstudy import profiles, recipes
from faithstudy.data import datasets
from faithstudy.networks import folds, pretrained
from faithstudy.networks.training import Recipe
from faithstudy.trials import tasks

OUTPUTS = {"p": probability, "y": logit}
"""By the paper's suffixes."""

PHOTOGRAPHS = "imagenet-foolbox"
"""The data set that the networks of other makers are asked about."""

_NAMES = {"resnet9": "ResNet-9", "resnet18": "ResNet-18", "vit": "ViT", "lstm": "text", "bilstm": "series"}
_NAMES["efficientnet-lite0"] = "Lite0"


class Case(NamedTuple):
    """What searches are compared on; in a notebook's parameters a line, such as "resnet9 16 p 24 900 210"."""

    network: str
    """Of `faithstudy.recipes.RECIPES`; resnet18, of clothes in 28 x 28 pixels; or one that others trained."""
    features: int
    """Of an input: square patches of an image, else the input's own."""
    output: str
    """p: the probability of the class; y: its logit."""
    inputs: int
    """That the network recognises."""
    most: int
    """Forwards for each input."""
    moves: int
    """Proposals of annealing: about as many as `most` pays for."""

    @property
    def maker(self) -> str:
        """The network as tables and figures call it."""
        return _NAMES.get(self.network, self.network)

    @property
    def called(self) -> str:
        """The network that is asked in this way: each counts as a network of its own."""
        return f"{self.maker}, {self.features} features, {OUTPUTS[self.output].__name__}"


def cases(lines: Collection[str]) -> list[Case]:
    """The cases of a notebook's parameter.

    Raises:
        ValueError: there is none; a line is none; two ask the same.
    """
    found = []
    for line in lines:
        words = [int(word) if word.isdecimal() else word for word in line.split()]
        kinds = [type(word) for word in words]
        if kinds != [str, int, str, int, int, int] or words[2] not in OUTPUTS or 0 in words:
            raise ValueError(
                f"expected a network, features, p or y, inputs, forwards for each and proposals of annealing, such as "
                f"'resnet9 16 p 24 900 210', but got {line!r}"
            )
        found.append(Case(*words))
    if len({case.called for case in found}) < max(1, len(found)):
        raise ValueError(f"expected lines of which no two ask the same of a network, but got {[*lines]}")
    return found


def task(
    case: Case,
    *,
    photographed: Collection[str] = (),
    training: Mapping[str, Any] | None = None,
    passed_over: int = 0,
    photographs_passed_over: int = 0,
    precision: str = "float32",
) -> Task:
    """The network of a case with inputs that it recognises.

    Args:
        case: which.
        photographed: networks that others trained, which are asked about `PHOTOGRAPHS`.
        training: what differs from the recipe of ResNet-9, see `faithstudy.recipes.changed`.
        passed_over: of the inputs that a network recognises the first, which are not asked about.
        photographs_passed_over: of photographs.
        precision: see `faithstudy.trials.tasks.task`.

    Raises:
        ValueError: there is no such network; the input has another number of features; the network recognises fewer
            inputs than the case asks for.
    """
    first, about, batch_size = passed_over, {}, 64
    if case.network in photographed:
        network, first, batch_size = pretrained.load(case.network), photographs_passed_over, 16
        about = {"data": datasets.load(PHOTOGRAPHS, "test"), "dataset": f"{PHOTOGRAPHS} test"}
    elif recipe := _recipes().get(case.network):
        network = recipes.changed(recipe, (training or {}) if case.network == "resnet9" else {})
    else:
        raise ValueError(
            f"there is no network {case.network}: expected one of {', '.join(_recipes())}, or of those that others "
            f"trained, which photograph_networks has to name (now {', '.join(photographed) or 'none'})"
        )
    least = first + case.inputs
    places = tasks.recognised(network, least, about.get("data"), least=least, batch_size=batch_size)[first:]
    found = tasks.task(network, places, name=case.called, precision=precision, **about)
    if found.x.ndim == 4:
        size = found.x.shape[-2:]
        found = dataclasses.replace(found, segments=segments.patches(*size, size[-1] // round(case.features**0.5)))
    if (features := segments.count(found.segments)) != case.features:
        raise ValueError(f"{case.network} has {features} features, not {case.features}")
    return found


@cache
def _recipes() -> dict[str, Recipe]:
    return recipes.RECIPES | {"resnet18": folds.normal(profiles.defaults("reco-mege/normal"))[0]}
