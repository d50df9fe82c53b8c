"""Known truth: where the region that decides is known, does an explanation find it, and does a metric reward that?

Two questions. *Alignment*: how well an explanation finds the region, whatever the network does (Few-class Fidelity,
section 4.3). *Orders that are known*: the region first, and the region last, to be put to any metric.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from faithlab import draws
from faithlab.metrics import alignment
from faithlab.scores import Scores
from faithlab.subject import Subject

MEASURES = {
    "IoU": lambda attribution, regions: alignment.iou(attribution, alignment.boxes(regions), *regions.shape[1:]),
    "Dice": alignment.dice,
}
"""Attributions [B, H * W], regions [B, H, W] -> [B]; see `faithlab.metrics.alignment`."""


def aligned(
    measure: str, subject: Subject, attributions: Mapping[str, Tensor], regions: Tensor, **labels: Any
) -> Scores:
    """How well every explanation finds the region of each image.

    Args:
        measure: of `MEASURES`; it is the metric of the rows.
        subject: the images.
        attributions: by explainer, [B, H * W].
        regions: [B, H, W] bool.
        **labels: of all rows.
    """
    about = {**subject.labels, "metric": measure, **labels}
    return Scores.concat(
        Scores.of(MEASURES[measure](of, regions.to(of.device)), images=subject.images, explainer=name, **about)
        for name, of in tqdm(attributions.items(), desc=measure, mininterval=5)
    )


def known(regions: Tensor, images: Tensor, seed: int = 0) -> dict[str, Tensor]:
    """The region first, and the region last, [B, H * W] each; in random order within and without.

    Args:
        regions: [B, H, W] bool.
        images: [B] identities, which decide the random order.
        seed: of the random order.
    """
    inside = regions.flatten(1).cpu()
    order = draws.uniform(seed, images.cpu(), torch.zeros(1, dtype=torch.int64), inside.shape[1])[:, 0] / 2
    return {"truth first": order + inside, "truth last": order - inside.float()}
