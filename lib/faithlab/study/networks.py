"""The pair of networks that F-Fidelity compares: one trained as usual, and the same one used to missing features.

Several notebooks ask the same networks. They pass the same numbers here, so that these are trained once.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from faithlab.zoo.training import Recipe


def pair(
    data: str,
    model: str,
    model_options: dict,
    *,
    epochs: int,
    tuning_epochs: int,
    rate: float,
    tuning_rate: float,
    decay: float,
    schedule: str,
    train_limit: int | None,
    beta: float,
    precision: str,
    seed: int,
    augment: bool = True,
) -> dict[str, Recipe]:
    """Return the recipes "original" and "fine-tuned" (F-Fidelity, eq. 5); see `faithlab.zoo.training.Recipe`.

    Args:
        data: a data set.
        model: a network, with its `model_options`.
        model_options: of the network.
        epochs: of training.
        tuning_epochs: of fine-tuning on random masks.
        rate: peak learning rate of training.
        tuning_rate: of fine-tuning.
        decay: weight decay of both.
        schedule: of both.
        train_limit: training examples; None: all.
        beta: largest share of the features that fine-tuning removes, as a fraction.
        precision: of both.
        seed: of both.
        augment: images: shift and mirror them.
    """
    original = Recipe(
        data=data,
        model=model,
        model_options=model_options,
        epochs=epochs,
        rate=rate,
        decay=decay,
        schedule=schedule,
        limit=train_limit,
        augment=augment,
        precision=precision,
        seed=seed,
    )
    tuned = dataclasses.replace(original, epochs=tuning_epochs, rate=tuning_rate, mask_share=beta, start=original)
    return {"original": original, "fine-tuned": tuned}


def resnets(parameters: Mapping[str, Any]) -> list[Recipe]:
    """The pair of ResNet-9s that the pages about images compare, from the parameters of any of them."""
    chosen = ("epochs", "tuning_epochs", "rate", "tuning_rate", "decay", "schedule", "train_limit", "beta", "precision")
    options = {key: parameters[key] for key in (*chosen, "seed")}
    return list(pair(parameters["data"], "resnet9", {"width": parameters["width"]}, **options).values())


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
