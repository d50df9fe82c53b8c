"""Vehicles in three groups: those of CIFAR-10, put at known places, and those of ImageNet, with their boxes.

Few-class Fidelity (Marchadour, Soto Vega, Vermet, Hatt, 2025) sorts the vehicles of ImageNet into private ones,
two-wheelers, and trucks and services, and takes the box round the main object as the human answer. CIFAR-10 has
airplanes, automobiles, ships and trucks, and no boxes. So the groups here are air, road and water, of equal size, and
a vehicle is pasted, smaller than it was, where only the set knows. The animal around it is drawn without a look at the
group, so nothing outside the box can tell the class: the box is not only what a person would point at, it is right.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from faithstudy.data import imagenet

GROUPS = {"air": ("airplane",), "road": ("automobile", "truck"), "water": ("ship",)}
"""The vehicles of CIFAR-10 by where they move. Of kinds that share a group only every second image is taken, so
that the groups are of equal size and a third is chance."""

IMAGENET = {
    "private": ("beach wagon", "convertible", "jeep", "limousine", "minivan", "sports car"),
    "two-wheeled": ("bicycle-built-for-two", "moped", "motor scooter", "mountain bike"),
    "trucks and services": ("ambulance", "fire engine", "garbage truck", "police van", "tow truck", "trailer truck"),
}
"""The paper's three groups of ImageNet's vehicles. It does not list their classes; its 20 800 images are as many as
sixteen classes of 1300, and these sixteen are ours."""

_ANIMALS = ("bird", "cat", "deer", "dog", "frog", "horse")
_SPLITS = ("train", "test")


@dataclass(frozen=True)
class Options:
    """Choices of the vehicles.

    Attributes:
        size: height and width of the vehicle's photograph in pixels, of an image of 32 x 32; 32: nothing around it.
        seed: of the places and animals.
        limit: take only the first so many images; None: all.

    Raises:
        ValueError: a choice out of range.
    """

    size: int = 20
    seed: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        if not 8 <= self.size <= 32:
            raise ValueError(f"expected size of 8 to 32 pixels, but got {self}")


def place(
    images: Tensor, labels: Tensor, classes: tuple[str, ...], options: Options, split: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Paste each vehicle, made smaller, at a random place of a random animal's photograph.

    An image depends on its vehicle, the seed and its index among the vehicles of the split, not on the limit.

    Args:
        images: uint8 [N, C, 32, 32], a whole split of CIFAR-10.
        labels: int64 [N].
        classes: their names.
        options: see `Options`.
        split: "train" or "test", which have different places.

    Returns:
        Images uint8 [n, C, 32, 32], groups int64 [n], indices into `GROUPS`, and masks bool [n, 32, 32], True for the
        square that the vehicle's photograph covers.
    """
    group = torch.full_like(labels, -1)
    for number, kinds in enumerate(GROUPS.values()):
        for kind in kinds:
            members = (labels == classes.index(kind)).nonzero().flatten()
            group[members[:: len(kinds)]] = number
    chosen = (group >= 0).nonzero().flatten()
    animals = torch.isin(labels, torch.tensor([classes.index(a) for a in _ANIMALS])).nonzero().flatten()

    # One row of draws per vehicle, so that the i-th vehicle's do not depend on how many there are.
    draws = np.random.Generator(np.random.Philox(key=[options.seed, _SPLITS.index(split)])).random((len(chosen), 3))
    draws = torch.from_numpy(draws)[: options.limit]
    chosen = chosen[: options.limit]
    room = images.shape[-1] - options.size
    corner = (draws[:, :2] * (room + 1)).long()  # [n, 2] top and left
    around = animals[(draws[:, 2] * len(animals)).long()]

    whole, side = images[chosen].float(), (options.size, options.size)
    small = interpolate(whole, side, mode="bilinear", antialias=True, align_corners=False)
    small = small.round().to(torch.uint8)
    inside = torch.arange(images.shape[-1]) - corner[..., None]  # [n, 2, 32] rows and columns seen from the corner
    within = (inside >= 0) & (inside < options.size)
    masks = within[:, 0, :, None] & within[:, 1, None, :]  # [n, 32, 32]
    placed = images[around].permute(0, 2, 3, 1).contiguous()  # [n, 32, 32, C]
    placed[masks] = small.permute(0, 2, 3, 1).reshape(-1, images.shape[1])  # row by row in both
    return placed.permute(0, 3, 1, 2).contiguous(), group[chosen], masks


def group_indices() -> list[list[int]]:
    """Return, for each group of ImageNet's vehicles, the indices of its classes among the 1000."""
    return [[imagenet.classes().index(name) for name in names] for names in IMAGENET.values()]
