"""What stands in for a removed feature: does it decide what a metric says of the explainers?

The same explanations are judged under several references. Those of images are pictures, intensities as they are stored;
the networks see them normalised.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from faithlab import engine, references
from faithlab.metrics import Metric, evaluate
from faithlab.references.perturbed import Answer, Perturbed, search
from faithlab.scores import Scores
from faithlab.subject import Subject
from faithlab.zoo.sets import ImageSet


def under(
    metrics: Mapping[str, Metric],
    subject: Subject,
    attributions: Mapping[str, Tensor],
    names: Sequence[str],
    **labels: Any,
) -> Scores:
    """Every metric of every explanation under each of several references.

    Args:
        metrics: by name, asked with these references in place of their own.
        subject: the inputs and networks; it has the references.
        attributions: by explainer, [B, F].
        names: of the references.
        **labels: of all rows.
    """
    return Scores.concat(
        evaluate({m: metric.given(reference=name) for m, metric in metrics.items()}, subject, attributions, **labels)
        for name in names
    )


def standing_in(subject: Subject, data: ImageSet, pictures: Mapping[str, Tensor]) -> Subject:
    """The subject with more references: pictures [B, C, H, W] of its images, by the name of the reference."""
    more = {name: references.given(as_seen(of, data).to(subject.x)) for name, of in pictures.items()}
    return dataclasses.replace(subject, references={**subject.references, **more})


def perturbed(subject: Subject, data: ImageSet, *, prune: bool = True) -> tuple[Subject, Perturbed]:
    """The subject with the reference "perturbed", made for its network and images, and how they were found.

    Args:
        subject: images of the data set, and the network that shall be undecided; it is asked in float32.
        data: the split that the subject's images are from.
        prune: see `faithlab.references.perturbed.search`.
    """
    found = search(intensities(data, subject.images).to(subject.x.device), answer(subject.model, data), prune=prune)
    return standing_in(subject, data, {"perturbed": found.images}), found


def plain(pictures: Tensor) -> dict[str, Tensor]:
    """What may replace whole pictures [B, C, H, W] without a search: black, white, their mean colour, a wide blur."""
    return {
        "black": torch.zeros_like(pictures),
        "white": torch.ones_like(pictures),
        "mean": references.mean(pictures).expand_as(pictures),
        "blur": references.blur(pictures, pictures.shape[-1] / 8),
    }


def answer(network: nn.Module, data: ImageSet) -> Answer:
    """A network's probabilities of all classes for pictures of a data set."""
    classify = engine.classifier(network)
    device = next(network.parameters()).device
    return lambda pictures: classify(as_seen(pictures, data).to(device)).to(pictures.device)


def intensities(data: ImageSet, images: Tensor | slice = slice(None)) -> Tensor:
    """Images as they are stored, float32 [B, C, H, W] in 0..1."""
    return data.inputs[images].float() / 255


def as_seen(pictures: Tensor, data: ImageSet) -> Tensor:
    """Pictures as the networks of a data set see them."""
    mean, std = (torch.tensor(numbers).to(pictures).view(-1, 1, 1) for numbers in (data.mean, data.std))
    return (pictures - mean) / std
