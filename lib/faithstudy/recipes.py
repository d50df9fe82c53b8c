"""Networks that several notebooks evaluate; they pass the same numbers here, so that these are trained once.

F-Fidelity compares a pair: one trained as usual, and the same one used to missing features. SaCo explains a small
Vision Transformer, and a larger one.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from faithlab.scores import Scores
from faithlab.stats import summary
from faithstudy.networks import models
from faithstudy.networks.training import Recipe
from faithstudy.parameters import checked
from faithstudy.tables import share

# The training of most of these networks.
_USUAL = {"epochs": 30, "rate": 0.01, "decay": 0.01, "optimiser": "adamw"}

RESNET9 = Recipe("cifar10", "resnet9", **_USUAL, model_options={"width": 16}, augment=True, precision="bfloat16")
"""The network of the pages about images; it ships."""

_VIT_SIZE = {"dim": 64, "depth": 6, "heads": 4, "patch": 4}
VIT = dataclasses.replace(RESNET9, model="vit", model_options=_VIT_SIZE, epochs=40, rate=0.002, decay=0.05)
"""The small Vision Transformer; it ships."""

VIT_SMALL = dataclasses.replace(RESNET9, model="vit_small", model_options={}, epochs=2, rate=0.002, batch=32)
"""A Vision Transformer of others' weights, see `faithstudy.networks.vit_small`; what is trained of it ships."""

_OF_OTHERS = {"vit-small-patch14": VIT_SMALL}


def of_others(weights: str) -> Recipe:
    """A network of others' weights, by what these are called where they are fetched, see `faithstudy.weights`.

    Raises:
        ValueError: none is known by this name.
    """
    if weights not in _OF_OTHERS:
        raise ValueError(f"no network of others' weights is called {weights!r}; there are {', '.join(_OF_OTHERS)}")
    return _OF_OTHERS[weights]


_BILSTM_SIZE = {"classes": 9, "channels": 12, "width": 32, "layers": 2}
BILSTM = Recipe("japanese-vowels", "bilstm", **_USUAL, model_options=_BILSTM_SIZE, batch=16)
"""The LSTM that the pages about time series begin with."""

_LSTM_SIZE = {"words": 8000, "dim": 64, "hidden": 64}
_REVIEWS = {"length": 32, "words": 8000}
LSTM = Recipe("rotten-tomatoes", "lstm", 3, _REVIEWS, _LSTM_SIZE, rate=0.005, decay=1e-5)
"""The LSTM that the pages about texts begin with."""

TUNED = {
    "resnet9": {"epochs": 5, "rate": 0.002},
    "vit": {"epochs": 10, "rate": 0.0005},
    "bilstm": {"epochs": 15, "rate": 0.003, "data_options": {"unit": "step"}},
    "lstm": {"epochs": 1, "rate": 0.002},
}
"""By network: how its fine-tuning on random masks differs from its training."""


RECIPES = {recipe.model: recipe for recipe in (RESNET9, VIT, BILSTM, LSTM)}
"""By network: how it is trained."""

_PLAIN = Recipe(data="", model="", epochs=1)
_UNTOLD = {"mask_channels": (1,), "fold": ((0, 2),), "orders": ("name",), "start": (_PLAIN,)}
"""By field: a value of the type that no default tells."""

_ELSEWHERE = {
    "seed": "the seed of both networks, on a page training_seeds or seed",
    "mask_share": "beta",
    "start": "the original network",
    "model": "the original network",
}
"""By field that `tuning` does not change: what it follows from. `training` changes all but the first."""


def changed(recipe: Recipe, changes: Mapping[str, Any]) -> Recipe:
    """A recipe with other choices.

    Of the options of the data and the network only those named change, unless it is other data or another network.

    Args:
        recipe: to start from.
        changes: fields of `faithstudy.networks.training.Recipe`, by name.

    Raises:
        ValueError: a recipe has no such field, or it cannot be this; there are no such network or options.
    """
    if not isinstance(changes, Mapping):
        raise ValueError(f"expected fields of a recipe, such as {{'epochs': 5}}, but got {changes!r}")
    if unknown := sorted(str(name) for name in changes if name not in vars(recipe)):
        raise ValueError(f"a recipe has no {', '.join(unknown)}; it has {', '.join(sorted(vars(recipe)))}")
    found = {}
    for name, value in changes.items():
        try:
            found[name] = checked(value, (getattr(recipe, name), getattr(_PLAIN, name), *_UNTOLD.get(name, ())))
        except ValueError as error:
            raise ValueError(f"{name} of a recipe must be {error}") from None
    for name, of in {"data_options": "data", "model_options": "model"}.items():
        kept = {} if found.get(of, getattr(recipe, of)) != getattr(recipe, of) else getattr(recipe, name)
        found[name] = kept | found.get(name, {})
    if found.get("fold"):
        found["fold"] = tuple(found["fold"])
    made = dataclasses.replace(recipe, **found)
    if {"model", "model_options"} & changes.keys():
        try:
            with torch.device("meta"):  # its shapes alone
                models.build(made.model, **made.model_options)
        except Exception as error:  # whatever its own layers say
            said = " ".join(str(error).split()) or type(error).__name__
            raise ValueError(f"a recipe cannot have {made.model} with {made.model_options}: {said}") from error
    return made


def pair(
    recipe: Recipe, seed: int, *, beta: float = 0.1, training: Mapping[str, Any] = {}, tuning: Mapping[str, Any] = {}
) -> dict[str, Recipe]:
    """The recipes "original" and "fine-tuned": the same network used to random masks (F-Fidelity, eq. 5).

    Args:
        recipe: of the original, such as `RESNET9`.
        seed: of both.
        beta: largest share of the features that fine-tuning removes, as a fraction.
        training: what differs in both, see `changed`.
        tuning: what differs in fine-tuning, besides `TUNED`.

    Raises:
        ValueError: as `changed`; training or tuning set what the other arguments do.
    """
    for changes, fixed in ((training, ("seed",)), (tuning, _ELSEWHERE)):
        changed(recipe, changes)  # what is no mapping says so, before it is merged with another
        for name in (name for name in fixed if name in changes):
            raise ValueError(f"{name} of a recipe is set elsewhere: it follows from {_ELSEWHERE[name]}")
    original = changed(recipe, {**training, "seed": seed})
    own = {**TUNED[recipe.model], **tuning, "mask_share": beta, "start": original}
    return {"original": original, "fine-tuned": changed(original, own)}


def pairs(recipe: Recipe, parameters: Mapping[str, Any]) -> list[dict[str, Recipe]]:
    """A `pair` for each training seed, from the parameters of a page."""
    options = {name: parameters[name] for name in ("beta", "training", "tuning")}
    return [pair(recipe, seed, **options) for seed in parameters["training_seeds"]]


def resnets(parameters: Mapping[str, Any]) -> list[Recipe]:
    """The networks that the pages about images compare, from the parameters of any of them."""
    return [recipe for both in pairs(RESNET9, parameters) for recipe in both.values()]


def vits(parameters: Mapping[str, Any]) -> list[Recipe]:
    """The small Vision Transformer of the pages about SaCo, one for each training seed, from the parameters of any."""
    return [pair(VIT, seed, training=parameters["training"])["original"] for seed in parameters["training_seeds"]]


WEAK = 0.6
"""A network that recognises less than this share of its test images is called weak on its page."""


def introduced(recognised: Scores, images: int) -> str:
    """Sentences for a page: how many test images each network recognises, and what it is that it explains.

    Args:
        recognised: of `faithstudy.trials.transformers.tasks`.
        images: how many are explained.
    """
    found = summary(recognised, ("network", "training_seed"))
    names = [cell["network"] for cell, _ in found]
    told = [f" (seed {cell['training_seed']})" if names.count(cell["network"]) > 1 else "" for cell, _ in found]
    text = "; ".join(
        f"**{name}{seed}** recognises **{share(e)}** of {e.images} test images"
        for name, seed, (_, e) in zip(names, told, found, strict=True)
    )
    text += f". The first {images} test images are explained, for the class that the network predicts."
    if any(e.value < WEAK for _, e in found):
        text += (
            f" Less than {WEAK:.0%} is a weak network. Read what follows as a statement about such a network: more "
            "training (`training={epochs: 20}`) or the paper's networks (the `paper` profile) may change it."
        )
    return text


def each(
    architectures: Mapping[str, tuple[str, dict, str]], training_seeds: Sequence[int], *, classes: int, **options: Any
) -> dict[tuple[str, int], Recipe]:
    """A recipe for every architecture and training seed.

    Args:
        architectures: by the name that tables have for it: a network of the zoo, its options, and a layer of it.
        training_seeds: each is a network of its own.
        classes: of the data.
        **options: of all recipes, see `faithstudy.networks.training.Recipe`.
    """
    return {
        (name, seed): Recipe(model=model, model_options=own | {"classes": classes}, seed=seed, **options)
        for name, (model, own, _) in architectures.items()
        for seed in training_seeds
    }
