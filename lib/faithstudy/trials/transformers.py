"""Vision Transformers, the images that they explain, and the ten explanations that SaCo's paper compares.

Everything is about the class that a network predicts, right or wrong (Wu et al., CVPR 2024, section 3).
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from faithlab.scores import Label, Scores
from faithlab.task import Task
from faithstudy.claims import Part, above, premise
from faithstudy.data import datasets
from faithstudy.networks import training, transformers
from faithstudy.trials.tasks import task

EXPLAINERS = {
    "IG": "integrated-gradients",
    "Grad-CAM": "gradcam-vit",
    "LRP": "lrp",
    "Partial LRP": "partial-lrp",
    "Transformer Attribution": "transformer-attribution",
    "Conservative LRP": "conservative-lrp",
    "Raw Attention": "raw-attention",
    "Rollout": "rollout",
    "Transformer-MM": "transformer-mm",
    "ATTCAT": "attcat",
}
"""The paper's ten by its names and in the order of its Table 2, as explainers of `faithlab.explainers`."""

ATTENTION = ("Raw Attention", "Rollout", "Transformer-MM", "ATTCAT")
"""Those that the paper calls attention-based (section 4.2)."""

SIGNED = ("IG", "Conservative LRP")
"""Those that are here sums over the colours of contributions with a sign; the paper does not say whether it takes their
magnitude."""

RECOGNISED = 1000
"""Test images, at most, on which it is counted how many a small network recognises."""

FEWER = 25
"""As many of a larger one, at least: it takes its time."""

NAMES = {"vit": "ViT", "vit_small": "ViT-S"}
"""What tables call the networks of recipes: the small one of the study, and a larger one."""


def tasks(
    networks: Sequence[str],
    data: str,
    images: int,
    recipes: Sequence[training.Recipe],
    *,
    weights: str | None = None,
    path: str | None = None,
) -> tuple[list[Task], Scores]:
    """Networks with the first images of a test split, and which test images they recognise.

    Args:
        networks: "vit" are those of `recipes`; all others are timm's, see `faithstudy.networks.transformers`.
        data: an image set of `faithstudy.data.datasets`.
        images: how many are explained.
        recipes: of the small network, one for each training seed, or of a larger one, see `NAMES`.
        weights: folder of the weights of timm's networks; None: timm's own, for ImageNet.
        path: folder of the photographs, for imagenet-folder.

    Returns:
        The tasks, and the long table of the metric "accuracy", which is no metric of explanations: 1 where a network
        recognises an image, of the first test images (of timm's networks: of those explained).

    Raises:
        ValueError: a recipe is of another data set.
    """
    found, recognised = [], []
    for name in networks:
        if name == "vit":
            if others := [recipe.key() for recipe in recipes if recipe.data != data]:
                raise ValueError(f"expected networks trained on {data}, whose images they explain, but got {others}")
            test = datasets.load(data, "test")
            for recipe in recipes:
                own = task(recipe, images, name=NAMES.get(recipe.model, recipe.model), about="prediction", data=test)
                shown = test.take(slice(RECOGNISED if recipe.model == "vit" else max(images, FEWER)))
                found.append(own)
                recognised.append(_hits(own, own.model, shown.model_inputs(), shown.labels))
            continue
        options = {"path": path, "limit": images} if data == "imagenet-folder" else {}
        chosen = datasets.load(data, "test", **options).take(slice(images))
        model = transformers.load(name, data, len(chosen.classes), weights)
        model = model.to("cuda" if torch.cuda.is_available() else "cpu")
        x = transformers.view(chosen, model).to(next(model.parameters()).device)
        pixels = torch.arange(x[0, 0].numel(), device=x.device).view(x.shape[-2:])
        target = training.logits(model, x).argmax(1)
        own = Task(model, x, target, pixels, f"{data} test", name, precision=torch.float32)
        found.append(own)
        recognised.append(_hits(own, model, x, chosen.labels))
    return found, Scores.concat(recognised)


def _hits(task: Task, model: nn.Module, x: Tensor, labels: Tensor) -> Scores:
    hits = training.logits(model, x).argmax(1).cpu() == labels
    return Scores.of(hits, images=range(len(hits)), metric="accuracy", **task.labels)


def learned(recognised: Scores, task: Task, **labels: Label) -> Part:
    """The premise that the networks have learned their data: they recognise three times as many as guessing would.

    Args:
        recognised: of `tasks`.
        task: one of those, which says how many classes there are.
        **labels: of the networks, where not all are meant.
    """
    bar = 3 / training.logits(task.model, task.x[:1]).shape[1]
    name = f"the network recognises more than {bar:.1%}"
    return premise(above(recognised, bar, metric="accuracy", name=name, **labels))


def magnitudes(attributions: dict[str, Tensor]) -> dict[str, Tensor]:
    """The magnitude of the explanations that have a sign here (`SIGNED`), as another reading of the paper."""
    return {f"|{name}|": attributions[name].abs() for name in SIGNED}
