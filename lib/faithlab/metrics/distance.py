"""How far two explanations of one input are apart (ReCo and MeGe, section 4.3).

Every distance takes maps [..., H, W] and gives [...], float64: 0 for equal maps, more for more different ones. Leading
dimensions broadcast, so that millions of pairs are one call on the device. NaN where a distance is not defined, as the
rank correlation of a constant map is not, and of maps that hold NaN or an infinity.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import conv2d

from faithlab import stats

Distance = Callable[[Tensor, Tensor], Tensor]
"""Maps [..., H, W] and [..., H, W] -> their distance [...]."""


def _of_finite_maps(distance: Distance) -> Distance:
    """Let a distance of maps that hold NaN or infinity be NaN."""

    @functools.wraps(distance)
    def of_maps(a: Tensor, b: Tensor, *args: Any, **options: Any) -> Tensor:
        finite = a.isfinite().flatten(-2).all(-1) & b.isfinite().flatten(-2).all(-1)
        return distance(a, b, *args, **options).masked_fill(~finite, torch.nan)

    return of_maps


@_of_finite_maps
def spearman(a: Tensor, b: Tensor) -> Tensor:
    """1 - |Spearman's rank correlation|, in [0, 1]: the paper's choice (section 4.3). NaN where a map is constant."""
    return 1 - stats.spearman(a.flatten(-2), b.flatten(-2)).abs()


@_of_finite_maps
def wasserstein(a: Tensor, b: Tensor, directions: int = 16) -> Tensor:
    """Return the sliced 1-Wasserstein distance: how many pixels the relevance has to move, on average.

    The mass at a pixel is the absolute relevance, as a share of the map's. Seen along one direction of the plane, the
    least work that turns one map into the other is the area between two cumulative curves. The mean over `directions`
    evenly spaced directions, times pi / 2, is the distance itself where the map is shifted as a whole, and a bound from
    below (up to that factor) elsewhere. NaN where a map is zero everywhere.
    """
    height, width = a.shape[-2:]
    mass = _share(a) - _share(b)  # [..., H * W]
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    work = torch.zeros(mass.shape[:-1], dtype=torch.float64, device=mass.device)
    for angle in (torch.arange(directions, dtype=torch.float64) + 0.5) * math.pi / directions:
        place = (rows * angle.sin() + columns * angle.cos()).flatten().to(mass.device)
        place, order = place.sort()
        work += (mass[..., order].cumsum(-1)[..., :-1].abs() * place.diff()).sum(-1)
    return work / directions * math.pi / 2


def _share(maps: Tensor) -> Tensor:
    """Absolute relevance as a share of the map's total: [..., H, W] -> [..., H * W] float64, NaN for a zero map."""
    mass = maps.flatten(-2).double().abs()
    return mass / mass.sum(-1, keepdim=True)


@_of_finite_maps
def dice(a: Tensor, b: Tensor, level: float = 0.5) -> Tensor:
    """1 - the Sørensen-Dice coefficient of the areas whose relevance is above `level` times their map's largest.

    NaN where both areas are empty, as those of two maps without a positive value are.
    """
    a, b = (m.flatten(-2) > level * m.flatten(-2).amax(-1, keepdim=True) for m in (a, b))
    return 1 - 2 * (a & b).sum(-1).double() / (a.sum(-1) + b.sum(-1))


@_of_finite_maps
def ssim(a: Tensor, b: Tensor, sigma: float = 1.5, span: float | None = None) -> Tensor:
    """1 - the mean structural similarity (Wang et al., 2004), by a Gaussian window of `sigma` pixels.

    Args:
        a: [..., H, W].
        b: [..., H, W].
        sigma: of the window, which reaches 3.5 sigmas each side and stays inside the map.
        span: of the values, which decides the two small constants; None: the range of each pair.

    Returns:
        [...]; NaN where both maps are one and the same constant and no span is given.

    Raises:
        RuntimeError: maps that are smaller than the window; pass a smaller sigma.
    """
    reach = int(3.5 * sigma + 0.5)
    a, b = torch.broadcast_tensors(a.double(), b.double())
    if span is None:
        both = torch.stack([a, b]).flatten(-2)
        span = (both.amax(-1).amax(0) - both.amin(-1).amin(0))[..., None, None]
    window = torch.exp(-0.5 * (torch.arange(-reach, reach + 1, device=a.device, dtype=a.dtype) / sigma) ** 2)
    window = window / window.sum()

    def local_mean(maps: Tensor) -> Tensor:
        flat = maps.reshape(-1, 1, *maps.shape[-2:])
        blurred = conv2d(conv2d(flat, window.view(1, 1, -1, 1)), window.view(1, 1, 1, -1))
        return blurred.view(*maps.shape[:-2], *blurred.shape[-2:])

    mean_a, mean_b = local_mean(a), local_mean(b)
    var_a, var_b = local_mean(a * a) - mean_a**2, local_mean(b * b) - mean_b**2
    shared = local_mean(a * b) - mean_a * mean_b
    c1, c2 = (0.01 * span) ** 2, (0.03 * span) ** 2
    similarity = (2 * mean_a * mean_b + c1) * (2 * shared + c2) / ((mean_a**2 + mean_b**2 + c1) * (var_a + var_b + c2))
    return 1 - similarity.mean((-2, -1))


@_of_finite_maps
def l1(a: Tensor, b: Tensor) -> Tensor:
    """Return the sum of the absolute differences; never NaN."""
    return torch.linalg.vector_norm((a.double() - b.double()).flatten(-2), 1, dim=-1)


@_of_finite_maps
def l2(a: Tensor, b: Tensor) -> Tensor:
    """Return the Euclidean distance; never NaN."""
    return torch.linalg.vector_norm((a.double() - b.double()).flatten(-2), 2, dim=-1)


DISTANCES: dict[str, Distance] = {
    "1-Wasserstein": wasserstein,
    "Dice": dice,
    "Spearman": spearman,
    "SSIM": ssim,
    "ℓ1": l1,
    "ℓ2": l2,
}
"""The candidates of section 4.3, by the names of the paper."""
