"""Known truth: where the region that decides is known, does an explanation find it, and does a metric reward that?

Two questions. *Alignment*: how well an explanation finds the region, whatever the network does (Few-class Fidelity,
section 4.3). *Orders that are known*: the region first, and the region last, to be put to any metric.
"""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

from faithlab import baselines, masks, rng, validation
from faithlab.metrics import alignment
from faithlab.scores import Scores
from faithlab.task import Task
from faithstudy.networks import degradation
from faithstudy.trials.tasks import Chosen, attributions

ORACLE, SHARES = "partial oracle", (1.0, 0.75, 0.5, 0.25)
"""The variant of partial oracles in the long table, and the shares of the true features that they know."""

MEASURES = {
    "IoU": lambda attribution, regions: alignment.iou(attribution, alignment.boxes(regions), *regions.shape[1:]),
    "Dice": alignment.dice,
    "overlap": alignment.overlap,
}
"""Attributions [B, F], regions [B, H, W], or [B, F] but for IoU -> [B]; see `faithlab.metrics.alignment`."""


def aligned(measure: str, task: Task, attributions: Mapping[str, Tensor], regions: Tensor, **labels: Any) -> Scores:
    """How well every explanation finds the region of each image.

    Args:
        measure: of `MEASURES`; it is the metric of the rows.
        task: the images.
        attributions: by explainer, [B, H * W].
        regions: [B, H, W] bool; where a region needs no shape, [B, F].
        **labels: of all rows.
    """
    about = {**task.labels, "metric": measure, **labels}
    return Scores.concat(
        Scores.of(MEASURES[measure](of, regions.to(of.device)), images=task.images, explainer=name, **about)
        for name, of in tqdm(attributions.items(), desc=measure, mininterval=5)
    )


def unlearned(measure: str, task: Task, explainers: Mapping[str, Chosen], regions: Tensor, *, seed: int = 0) -> Scores:
    """How well explanations find the region that owe nothing to what the network knows of the target.

    The variants "weights drawn anew", of every layer, and "the other class", the next one where there are several.

    Args:
        measure: of `MEASURES`.
        task: the images and the network.
        explainers: by name.
        regions: as in `aligned`.
        seed: of the weights.
    """
    drawn = degradation.randomised(task.model, 1.0, keep=False, seed=seed)
    with torch.no_grad():
        classes = task.model(task.x[:1]).shape[1]
    changes = {"weights drawn anew": {"model": drawn}, "the other class": {"target": (task.target + 1) % classes}}
    others = {variant: dataclasses.replace(task, **change) for variant, change in changes.items()}
    return Scores.concat(
        aligned(measure, other, attributions(other, explainers), regions, variant=variant)
        for variant, other in others.items()
    )


def known(regions: Tensor, images: Tensor, seed: int = 0) -> dict[str, Tensor]:
    """The region first, and the region last, [B, F] each; in random order within and without.

    Args:
        regions: [B, H, W] bool, or [B, F].
        images: [B] identities, which decide the random order.
        seed: of the random order.
    """
    inside = regions.flatten(1).cpu()
    order = rng.uniform(seed, images.cpu(), torch.zeros(1, dtype=torch.int64), inside.shape[1])[:, 0] / 2
    return {"truth first": order + inside, "truth last": order - inside.float()}


def partial_oracle(regions: Tensor, share: float, images: Tensor, seed: int = 0) -> Tensor:
    """As many features first as decide, of which a share are those that do, as an attribution of ranks [B, F].

    A set has no order inside: it is drawn at random, and so is that of the rest. Ranks say to metrics that look at
    magnitudes that the features differ evenly.

    Args:
        regions: [B, F] bool, the features that decide.
        share: of them, that the oracle knows, rounded half up to a count.
        images: [B] identities, which decide the random choice.
        seed: of the random choice. Of two shares the larger holds the features of the smaller.

    Raises:
        ValueError: regions that are not bool [B, F], or a share outside [0, 1].
    """
    if regions.dtype != torch.bool or regions.ndim != 2:
        raise ValueError(
            f"expected which features decide, bool [images, features], but got {regions.dtype} {tuple(regions.shape)}"
        )
    inside = regions.cpu()
    drawn = rng.uniform(rng.stream("oracle", seed), images.cpu(), torch.arange(2), inside.shape[1])  # [B, 2, F]
    number = inside.sum(1, keepdim=True)
    known = masks.counts([validation.share("share", share)], inside.sum(1))
    within = masks.place(masks.order(drawn[:, 0] + inside))  # places of the true ones come first
    without = masks.place(masks.order(drawn[:, 0] - inside.double()))  # and here of the others
    first = (inside & (within < known)) | (~inside & (without < number - known))
    return masks.place(masks.order(-(drawn[:, 1] + first))).double() + 1


def rows(task: Task, regions: Tensor, seeds: Sequence[int]) -> list[tuple[dict, Tensor]]:
    """Labels and attributions of partial oracles, of each seed the best first; arguments as in `partial_oracle`."""
    return [
        (
            {"explainer": "oracle", "variant": ORACLE, "level": share, "noise_seed": seed},
            partial_oracle(regions, share, task.images, seed=seed).to(task.x.device),
        )
        for seed in seeds
        for share in SHARES
    ]


def pairs(base: Sequence[dict], found: Callable[..., list[dict]]) -> list[tuple[dict, dict]]:
    """Neighbouring shares of oracles, the larger is better; arguments of `faithstudy.trials.concordance.cells`."""
    oracles = sorted(found(variant=ORACLE), key=lambda cell: (cell["noise_seed"], -cell["level"]))
    return [pair for pair in itertools.pairwise(oracles) if pair[0]["noise_seed"] == pair[1]["noise_seed"]]


class Energy(nn.Module):
    """Two classes: the energy of the input against a threshold. An element contributes its square, and no other.

    Args:
        threshold: the energy at which both classes are equally likely.
        scale: of the logit.
    """

    def __init__(self, threshold: float = 16.0, scale: float = 0.25):
        super().__init__()
        self.threshold, self.scale = threshold, scale

    def forward(self, x: Tensor) -> Tensor:
        """Inputs [n, *S] -> logits [n, 2]."""
        logit = self.scale * (x.flatten(1).square().sum(1) - self.threshold)
        return torch.stack([torch.zeros_like(logit), logit], 1)


def closed_form(images: int = 64, side: int = 8, decide: int = 16, seed: int = 0) -> tuple[Task, Tensor]:
    """Inputs of a network whose answer is known on paper, about the class 1, and the features that decide.

    Each input [1, side, side] has `decide` elements of one magnitude, half of them positive, in random places; all
    others are zero. So the input's mean is zero, too, and each of these elements contributes the same to the logit of
    `Energy`. The magnitudes differ between inputs, and with them how many elements can go before the class changes:
    2 to 60 % of those that decide. Nothing that is removed surprises this network: it is its own fine-tuned one.

    Args:
        images: how many.
        side: of the square.
        decide: elements that decide, an even number.
        seed: of the places and magnitudes.

    Returns:
        The task, and the elements that decide, [B, F] bool.

    Raises:
        ValueError: an odd number of elements, or more than there are.
    """
    F = side * side
    if decide % 2 or not 0 < decide <= F:
        raise ValueError(f"expected an even number of deciding elements, at most {F}, but got {decide}")
    drawn = rng.uniform(rng.stream("closed form", seed), torch.arange(images), torch.arange(2), F)
    place = masks.place(drawn[:, 0].argsort(1))
    above = 0.02 + 0.58 * drawn[:, 1, :1]  # [B, 1], the share of the energy that is above the threshold
    size = ((1 - above).rsqrt() * 64).round() / 64  # few binary digits, so that sums are exact
    x = torch.where(place < decide // 2, size, -size).where(place < decide, 0).float().view(images, 1, side, side)
    segments = torch.arange(F).view(side, side)
    target = torch.ones(images, dtype=torch.int64)
    model = Energy(decide)
    named = {**baselines.NAMED, "perturbed": baselines.given(x.sign())}  # both classes are equally likely there
    known = Task(model, x, target, segments, "drawn inputs", "closed form", tuned=model, baselines=named)
    return known, place < decide
