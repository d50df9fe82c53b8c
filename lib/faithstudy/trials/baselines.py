"""What stands in for a removed feature: does it decide what a metric says of the explainers?

The same explanations are judged under several references. Those of images are pictures, intensities as they are stored;
the networks see them normalised.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from faithlab import baselines, engine, rng
from faithlab.baselines import perturbed as perturbing
from faithlab.baselines.perturbed import Answer, Perturbed, search
from faithlab.metrics import Metric, evaluate
from faithlab.metrics.novelty import distance
from faithlab.scores import Scores
from faithlab.task import Task
from faithstudy.data.sets import ImageSet
from faithstudy.networks import models


def under(
    metrics: Mapping[str, Metric],
    task: Task,
    attributions: Mapping[str, Tensor],
    names: Sequence[str],
    **labels: Any,
) -> Scores:
    """Every metric of every explanation under each of several references.

    Args:
        metrics: by name, asked with these references in place of their own.
        task: the inputs and networks; it has the references.
        attributions: by explainer, [B, F].
        names: of the references.
        **labels: of all rows.
    """
    return Scores.concat(
        evaluate({m: metric.given(baseline=name) for m, metric in metrics.items()}, task, attributions, **labels)
        for name in names
    )


def stand_ins(
    metrics: Mapping[str, Metric], task: Task, attributions: Mapping[str, Tensor], names: Sequence[str]
) -> list[Scores]:
    """As `under`, without a metric's own reference, whose scores are there."""
    others = [{m: x.given(baseline=name) for m, x in metrics.items() if x.baseline != name} for name in names]
    return [evaluate(of, task, attributions) for of in others if of]


def groups(base: Sequence[dict], found: Callable[..., list[dict]]) -> list[list[dict]]:
    """The explanations under each reference; arguments of `faithstudy.trials.concordance.cells`."""
    names = dict.fromkeys(cell["reference"] for cell in found(variant=None, draw=None, reference=None))
    return [[{**own, "reference": name} for own in base] for name in names]


def standing_in(task: Task, data: ImageSet, pictures: Mapping[str, Tensor]) -> Task:
    """The task with more references: pictures [B, C, H, W] of its images, by the name of the reference."""
    more = {name: baselines.given(as_seen(of, data).to(task.x)) for name, of in pictures.items()}
    return dataclasses.replace(task, baselines={**task.baselines, **more})


def perturbed(task: Task, data: ImageSet, *, prune: bool = True) -> tuple[Task, Perturbed]:
    """The task with the reference "perturbed", made for its network and images, and how they were found.

    Args:
        task: images of the data set, and the network that shall be undecided; it is asked in float32.
        data: the split that the task's images are from.
        prune: see `faithlab.baselines.perturbed.search`.
    """
    found = search(intensities(data, task.images).to(task.x.device), answer(task.model, data), prune=prune)
    return standing_in(task, data, {"perturbed": found.images}), found


class Full(NamedTuple):
    """All candidates of each image.

    Attributes:
        uncertainty: U of each, [B, 804].
        distance: S.
        score: P.
        winner: [B], its place.
        fallback: [B] bool, True where no candidate's U was under Delta.
    """

    uncertainty: Tensor
    distance: Tensor
    score: Tensor
    winner: Tensor
    fallback: Tensor


def searched(task: Task, data: ImageSet) -> tuple[Full, Task, Perturbed, Scores]:
    """The search for perturbed images in full and pruned: what it finds, which chain wins, and what it costs.

    The rows, of each image: "has a candidate" whose U is at most Delta, and has one of "blur alone"; the "same winner"
    by both searches; "forwards", of candidates "near enough (exact)" to win and of those that the pruned search asks,
    "near a line"; and which chain of `faithlab.baselines.perturbed.CHAINS` "wins".

    Args:
        task: images of the data set, and the network that shall be undecided.
        data: the split that they are from.

    Returns:
        The full search; the task with its perturbed images, and these, of the pruned one; the rows.
    """
    delta, origin = perturbing.threshold(len(data.classes)), torch.tensor(perturbing.ORIGINAL)
    pictures = intensities(data, task.images).to(task.x.device)
    U, S = (of.cpu() for of in perturbing.scores(pictures, answer(task.model, data)))
    full = Full(U, S, U + 10 / delta * S, *perturbing.winners(U, S, len(data.classes)))
    pruned, found = perturbed(task, data)
    blurs = torch.tensor([candidate.operation == "none" for candidate in perturbing.CANDIDATES])
    lowest = full.score.gather(1, full.winner[:, None])
    near = ((10 / delta * S < lowest) | full.fallback[:, None]) & (origin == torch.arange(len(origin)))
    rows = [
        ("has a candidate", None, ~full.fallback),
        ("has a candidate", "blur alone", (U[:, blurs] <= delta).any(1)),
        ("same winner", None, found.candidate.cpu() == origin[full.winner]),
        ("forwards", "near enough (exact)", near.sum(1).double()),
        ("forwards", "near a line", found.forwards.cpu().double()),
    ]
    won = [perturbing.CHAINS[i] for i in origin[full.winner].tolist()]
    for chain in dict.fromkeys(perturbing.CHAINS):
        rows.append(("wins", chain, torch.tensor([chain == of for of in won]) & ~full.fallback))
    about = {"images": task.images, **task.labels}
    return full, pruned, found, Scores.concat(Scores.of(of, metric=m, variant=v, **about) for m, v, of in rows)


def novelty(
    task: Task, data: ImageSet, train: ImageSet, *, background: int, neighbours: int
) -> Callable[[Tensor], Tensor]:
    """How unlike the training data pictures look to a network: see `faithlab.metrics.novelty`.

    Args:
        task: the network.
        data: what the pictures are from.
        train: the training split, whose images are familiar.
        background: so many of them, evenly spaced.
        neighbours: the distance to the k-th nearest is taken.

    Returns:
        Pictures [B, C, H, W] -> [B].
    """
    spread = torch.linspace(0, len(train) - 1, background).round().long()
    known = models.representation(task.model, train.model_inputs(spread).to(task.x.device))

    def far(pictures: Tensor) -> Tensor:
        features = models.representation(task.model, as_seen(pictures, data).to(task.x.device))
        return distance(features, known, neighbours)

    return far


def replaced(
    task: Task,
    data: ImageSet,
    stand_ins: Mapping[str, Tensor],
    far: Callable[[Tensor], Tensor],
    *,
    seed: int = 0,
) -> Scores:
    """What a network makes of images that are replaced: is it undecided, and has it seen the like?

    The rows, of each stand-in as the reference: "U"; "sure of a class", above 0.9; the "class switch" to one other
    class, above one half; and the "novelty" of images "all replaced" and "half replaced", in random pixels. Without a
    reference stands the novelty of the images themselves.

    Args:
        task: images of the data set, and the network.
        data: the split that they are from.
        stand_ins: pictures for all images, [B, C, H, W], by name.
        far: of `novelty`.
        seed: of the half that is replaced.
    """
    image = intensities(data, task.images)
    order = rng.permutations(seed, task.images, torch.zeros(1, dtype=torch.int64), image[0, 0].numel())
    half = (order < order.shape[-1] // 2).view(len(image), 1, *image.shape[-2:])
    rows = [("novelty", None, None, far(image))]
    for name, stand_in in stand_ins.items():
        answers = answer(task.model, data)(stand_in)
        others = answers.cpu().scatter(1, task.target.cpu()[:, None], 0.0)  # the probabilities of the other classes
        rows += [
            ("U", name, None, perturbing.uncertainty(answers)),
            ("sure of a class", name, None, answers.amax(1) > 0.9),
            ("class switch", name, None, others.amax(1) > 0.5),
            ("novelty", name, "all replaced", far(stand_in)),
            ("novelty", name, "half replaced", far(torch.where(half, stand_in, image))),
        ]
    about = {"images": task.images, **task.labels}
    return Scores.concat(Scores.of(of, metric=m, reference=r, variant=v, **about) for m, r, v, of in rows)


def plain(pictures: Tensor) -> dict[str, Tensor]:
    """What may replace whole pictures [B, C, H, W] without a search: black, white, their mean colour, a wide blur."""
    return {
        "black": torch.zeros_like(pictures),
        "white": torch.ones_like(pictures),
        "mean": baselines.mean(pictures).expand_as(pictures),
        "blur": baselines.blur(pictures, pictures.shape[-1] / 8),
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
