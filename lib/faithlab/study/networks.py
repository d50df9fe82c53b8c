"""Networks that several notebooks ask; they pass the same numbers here, so that these are trained once.

F-Fidelity compares a pair: one trained as usual, and the same one used to missing features. SaCo explains a small
Vision Transformer.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from faithlab.scores import Scores
from faithlab.stats import Estimate, summary
from faithlab.study.parameters import rule, written
from faithlab.study.tables import share
from faithlab.zoo.training import Recipe

RESNET9 = Recipe(
    data="cifar10",
    model="resnet9",
    model_options={"width": 16},
    epochs=30,
    rate=0.01,
    decay=0.01,
    optimiser="adamw",
    augment=True,
    precision="bfloat16",
)
"""The network of the pages about images; it ships."""

VIT = dataclasses.replace(
    RESNET9,
    model="vit",
    model_options={"dim": 64, "depth": 6, "heads": 4, "patch": 4},
    epochs=40,
    rate=0.002,
    decay=0.05,
)
"""The small Vision Transformer; it ships."""

BILSTM = Recipe(
    data="japanese-vowels",
    model="bilstm",
    model_options={"classes": 9, "channels": 12, "width": 32, "layers": 2},
    epochs=30,
    rate=0.01,
    decay=0.01,
    optimiser="adamw",
    batch=16,
)
"""The LSTM that the pages about time series begin with."""

LSTM = Recipe(
    data="rotten-tomatoes",
    data_options={"length": 32, "words": 8000},
    model="lstm",
    model_options={"words": 8000, "dim": 64, "hidden": 64},
    epochs=3,
    rate=0.005,
    decay=1e-5,
)
"""The LSTM that the pages about texts begin with."""

TUNED = {
    "resnet9": {"epochs": 5, "rate": 0.002},
    "vit": {"epochs": 10, "rate": 0.0005},
    "bilstm": {"epochs": 15, "rate": 0.003, "data_options": {"unit": "step"}},
    "lstm": {"epochs": 1, "rate": 0.002},
}
"""By network: how its fine-tuning on random masks differs from its training."""


def changed(recipe: Recipe, changes: Mapping[str, Any]) -> Recipe:
    """A recipe with other choices; of options of the data and the network only those named change.

    Args:
        recipe: to start from.
        changes: fields of `faithlab.zoo.training.Recipe`, by name.

    Raises:
        ValueError: a recipe has no such field, or it cannot be this.
    """
    fields = {field.name for field in dataclasses.fields(recipe)}
    if unknown := sorted(set(changes) - fields):
        raise ValueError(f"a recipe has no {', '.join(unknown)}; it has {', '.join(sorted(fields))}")
    for name, value in changes.items():
        try:
            changes = {**changes, name: rule(name, getattr(recipe, name)).checked(value)}
        except ValueError as error:
            raise ValueError(f"{name} of a recipe: expected {error}, but got {written(value)}") from None
    merged = {
        name: getattr(recipe, name) | changes[name] for name in ("data_options", "model_options") if name in changes
    }
    return dataclasses.replace(recipe, **{**changes, **merged})


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
    """
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
    return [changed(VIT, {**parameters["training"], "seed": seed}) for seed in parameters["training_seeds"]]


WEAK = 0.6
"""A network that recognises less than this share of its test images is called weak on its page."""


def introduced(recognised: Scores, images: int, recorded: Scores | None = None) -> str:
    """Sentences for a page: how many test images each network recognises, and what it is that it explains.

    Args:
        recognised: of `faithlab.trials.transformers.subjects`.
        images: how many are explained.
        recorded: the same of the recorded run.
    """

    def each(table: Scores) -> dict[str, Estimate]:
        of = summary(table, ("network", "training_seed"))
        names = [cell["network"] for cell, _ in of]
        return {
            cell["network"] + f" (seed {cell['training_seed']})" * (names.count(cell["network"]) > 1): e
            for cell, e in of
        }

    found = each(recognised)
    text = "; ".join(f"**{name}** recognises **{share(e)}** of {e.images} test images" for name, e in found.items())
    text += f". The first {images} test images are explained, for the class that the network predicts."
    if any(e.value < WEAK for e in found.values()):
        text += (
            f" Less than {WEAK:.0%} is a weak network. Read what follows as a statement about such a network: more "
            "training (`training={epochs: 20}`) or the paper's networks (the `paper` profile) may change it."
        )
    if recorded is not None:
        of = "; ".join(f"{name} {share(e)}" for name, e in each(recorded).items())
        text += f" Where numbers of a *recorded* run stand beside, its networks recognise: {of}."
    return text


def each(
    architectures: Mapping[str, tuple[str, dict, str]], training_seeds: Sequence[int], *, classes: int, **options: Any
) -> dict[tuple[str, int], Recipe]:
    """A recipe for every architecture and training seed.

    Args:
        architectures: by the name that tables have for it: a network of the zoo, its options, and a layer of it.
        training_seeds: each is a network of its own.
        classes: of the data.
        **options: of all recipes, see `faithlab.zoo.training.Recipe`.
    """
    return {
        (name, seed): Recipe(model=model, model_options=own | {"classes": classes}, seed=seed, **options)
        for name, (model, own, _) in architectures.items()
        for seed in training_seeds
    }
