"""Where a person would look: how well an attribution finds the box or the region that is known to matter.

Two of the measures are those that Few-class Fidelity (Marchadour, Soto Vega, Vermet, Hatt, 2025, section 4.3) compares
itself with. They say whether an explanation agrees with people, not whether it agrees with the model.
"""

import numpy as np
import torch
from scipy import ndimage
from torch import Tensor

from faithlab import masks


def boxes(regions: Tensor) -> Tensor:
    """Return the smallest box round each region, [B, H, W] bool; of a region without a pixel a box that ends at 0.

    Returns:
        [B, 4] int64: the first row, the first column, one past the last row, one past the last column.
    """
    edges = []
    for side in (regions.any(2), regions.any(1)):  # rows, columns
        first = side.int().argmax(1)
        last = (side.shape[1] - side.flip(1).int().argmax(1)) * side.any(1)
        edges.append((first, last))
    (top, bottom), (left, right) = edges
    return torch.stack([top, left, bottom, right], 1)


def iou(attribution: Tensor, truth: Tensor, height: int, width: int) -> Tensor:
    """Return the intersection over union of the true box with the box round the largest region of the attribution.

    The attribution is made binary at the true box's area: as many pixels as the box has, the most relevant ones. Of
    their connected regions (neighbours share a side) the largest counts, the first of equals.

    Args:
        attribution: [B, H * W], row by row.
        truth: [B, 4] boxes as `boxes` gives them.
        height: H.
        width: W.

    Returns:
        [B] float64, never NaN.

    Raises:
        ValueError: an attribution that is no dense tensor of finite numbers of H * W pixels, a box that is empty or
            leaves the image.
    """
    top, left, bottom, right = truth.cpu().unbind(1)
    inside = (top >= 0) & (left >= 0) & (bottom <= height) & (right <= width) & (top < bottom) & (left < right)
    if attribution.shape[1] != height * width or not bool(inside.all()):
        raise ValueError(f"expected boxes [top, left, bottom, right] inside {height} x {width}, not {truth.tolist()}")
    count = (bottom - top) * (right - left)
    chosen = (masks.place(masks.order(attribution.cpu())) < count[:, None]).view(-1, height, width)
    found = boxes(_largest(chosen))
    low, high = torch.maximum(found[:, :2], truth[:, :2].cpu()), torch.minimum(found[:, 2:], truth[:, 2:].cpu())
    shared = (high - low).clamp(min=0).prod(1)
    return shared.double() / ((found[:, 2:] - found[:, :2]).prod(1) + count - shared)


def dice(attribution: Tensor, truth: Tensor, *, steps: int = 100) -> Tensor:
    """Return the Dice coefficient of the true region with the most relevant pixels, at their best share.

    Args:
        attribution: [B, F].
        truth: [B, F] bool, or [B, H, W].
        steps: the shares that are tried, 1/steps, 2/steps, ..., 1.

    Returns:
        [B] float64, never NaN.

    Raises:
        ValueError: an attribution that is no dense tensor of finite numbers, a region without a pixel.
    """
    hits = _hits(attribution, truth)
    sizes = masks.counts(torch.arange(1, steps + 1, dtype=torch.float64) / steps, hits.shape[1]).to(hits.device)
    sizes = sizes[sizes > 0]
    agreement = 2 * hits[:, sizes - 1].double() / (sizes + hits[:, -1:])
    return agreement.amax(1)


def overlap(attribution: Tensor, truth: Tensor) -> Tensor:
    """Return the share of the true region that is among the most relevant features, as many as the region has.

    Args:
        attribution: [B, F].
        truth: [B, F] bool, or [B, H, W].

    Returns:
        [B] float64, never NaN; by chance it is the region's share of all features.

    Raises:
        ValueError: an attribution that is no dense tensor of finite numbers, a region without a pixel.
    """
    hits = _hits(attribution, truth)
    own = hits[:, -1:]
    return (hits.gather(1, own - 1).double() / own)[:, 0]


def _hits(attribution: Tensor, truth: Tensor) -> Tensor:
    """Of the k most relevant features, how many are of the region, for every k, [B, F]."""
    if truth.dtype != torch.bool or not bool(truth.flatten(1).any(1).all()):
        raise ValueError(f"expected bool regions with a pixel in each, not {truth.dtype}; drop and count empty ones")
    order = masks.order(attribution)
    return truth.to(order.device).flatten(1).gather(1, order).cumsum(1)


def _largest(chosen: Tensor) -> Tensor:
    """Of each image's connected regions the largest, [B, H, W] bool."""
    within = np.zeros((3, 3, 3), bool)  # neighbours in the plane of one image only
    within[1] = ndimage.generate_binary_structure(2, 1)
    regions, _ = ndimage.label(chosen.numpy(), within)
    flat = torch.from_numpy(regions).long()
    sizes = flat.flatten().bincount()
    sizes[0] = 0
    best = sizes[flat].flatten(1).argmax(1)  # a pixel of the largest region, the first of equals
    return flat == flat.flatten(1).gather(1, best[:, None])[:, :, None]
