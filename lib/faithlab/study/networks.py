"""Networks that several notebooks ask; they pass the same numbers here, so that these are trained once.

F-Fidelity compares a pair: one trained as usual, and the same one used to missing features. SaCo explains a small
Vision Transformer.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from faithlab.scores import Scores
from faithlab.stats import Estimate, summary
from faithlab.study.tables import share
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
    options = {key: parameters[key] for key in chosen}
    seeds = parameters.get("training_seeds", [0])
    pairs = [pair(parameters["data"], "resnet9", {"width": parameters["width"]}, seed=s, **options) for s in seeds]
    return [recipe for both in pairs for recipe in both.values()]


def vits(parameters: Mapping[str, Any]) -> list[Recipe]:
    """The small Vision Transformer of the pages about SaCo, one for each training seed, from the parameters of any."""
    return [
        Recipe(
            data=parameters["data"],
            model="vit",
            model_options={key: parameters[key] for key in ("dim", "depth", "heads", "patch")},
            limit=parameters["train_limit"],
            precision=parameters["training"],
            seed=seed,
            **{key: parameters[key] for key in ("epochs", "rate", "decay", "batch", "augment")},
        )
        for seed in parameters["training_seeds"]
    ]


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
            f" Less than {WEAK:.0%} is a weak network, trained briefly so that this page can be rerun quickly. Read "
            "what follows as a statement about such a network: more training (`epochs`, `train_limit`) or the paper's "
            "networks (the `paper` profile) may change it."
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
