"""Refinements: an explainer made from another one, whichever that is. They can be nested.

    explain(smooth("integrated-gradients", moment=2), model, x, target, segments, baseline="min")
    explain(region(magnitude("deconvolution")), model, x, target, segments)

Options of the inner explainer are given to `explain` as ever.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d

from faithlab import rng
from faithlab.explainers import Explainer, find


def magnitude(explainer: str | Explainer) -> Explainer:
    """The absolute values of an explainer's map: how much an element matters, in whichever direction."""
    inner = find(explainer)

    def refined(model: nn.Module, x: Tensor, target: Tensor, images: Tensor, **options) -> Tensor:
        return inner(model, x, target, images, **options).abs()

    return refined


def smooth(
    explainer: str | Explainer, *, moment: int = 1, samples: int = 32, noise: float = 0.15, seed: int = 0
) -> Explainer:
    """The mean of an explainer's maps, or of their squares, over noisy copies of the input.

    SmoothGrad (Smilkov, Thorat, Kim, Viegas, Wattenberg, 2017) for moment 1, its square (Hooker, Erhan, Kindermans,
    Kim, 2019) for moment 2; both for any explainer, as Few-class Fidelity (2025) uses them.

    Args:
        explainer: a name of `faithlab.explainers.names()`, or an explainer.
        moment: 1 or 2.
        samples: noisy copies per input.
        noise: standard deviation of the noise, as a fraction of each input's range.
        seed: of the noise. An input meets the same noise in any batch and under any explainer.
    """
    inner = find(explainer)

    def refined(model: nn.Module, x: Tensor, target: Tensor, images: Tensor, **options) -> Tensor:
        low, high = x.flatten(1).aminmax(dim=1)
        span = (high - low).view(-1, *[1] * (x.ndim - 1))
        total = 0
        for draw in range(samples):
            shift = rng.normal(seed, images, torch.tensor([draw]), x[0].numel()).view_as(x).to(x)
            total = total + inner(model, x + noise * span * shift, target, images, **options).detach() ** moment
        return total / samples

    return refined


def squares(explainer: str | Explainer, side: int) -> Explainer:
    """The mean of an explainer's map over the square of `side` pixels round each pixel, as far as the image reaches.

    A control: smoothing in space, without a look at the image or at noisy copies of it.

    Args:
        explainer: a name of `faithlab.explainers.names()`, or an explainer, of images [n, C, H, W].
        side: odd, so that every square has a middle.
    """
    inner = find(explainer)

    def refined(model: nn.Module, x: Tensor, target: Tensor, images: Tensor, **options) -> Tensor:
        maps = inner(model, x, target, images, **options).detach().sum(1, keepdim=True)
        return avg_pool2d(maps, side, stride=1, padding=side // 2, count_include_pad=False)

    return refined


# Of the authors' public implementation (PAIR's package `saliency`), which are for images of 224 x 224.
_SCALES = (50, 100, 150, 250, 500, 1200)
_SIDE, _SIGMA, _SMALLEST, _DILATION, _NEW_PIXELS = 224, 0.8, 150, 5, 50


def region(explainer: str | Explainer) -> Explainer:
    """XRAI (Kapishnikov, Bolukbasi, Viegas, Terry, 2019): an explainer's map averaged over regions of the image.

    The image is segmented at six scales (Felzenszwalb and Huttenlocher, 2004) and the segments are widened. The segment
    with the highest mean comes first, then always the one whose pixels that are new have the highest mean; a pixel gets
    the mean of the segment that brought it. The channels of the map are summed first.

    The authors' implementation enlarges every image to 224 x 224 for the segmentation. Here the image stays as it is,
    and lengths and areas are in proportion to its side; at 224 x 224 both are the same.

    Args:
        explainer: a name of `faithlab.explainers.names()`, or an explainer, of images [n, C, H, W].

    Returns:
        An explainer that gives maps [n, 1, H, W].
    """
    inner = find(explainer)

    def refined(model: nn.Module, x: Tensor, target: Tensor, images: Tensor, **options) -> Tensor:
        maps = inner(model, x, target, images, **options).detach().sum(1)  # [n, H, W]
        pictures = x.movedim(1, -1).cpu().float().numpy()  # [n, H, W, C]
        averaged = [
            _average(values, _segments(picture.tobytes(), picture.shape))
            for values, picture in zip(maps.cpu().double().numpy(), pictures, strict=True)
        ]
        return torch.from_numpy(np.stack(averaged)).to(maps)[:, None]

    return refined


class _Segments(NamedTuple):
    """The widened segments of an image at all scales, which overlap: of so many a pixel lies in few.

    Attributes:
        pixels: of each segment, one after another.
        ends: where each segment ends there, [K].
        segments: of each pixel, one after another.
        counts: of how many segments each pixel is, [H * W].
    """

    pixels: np.ndarray
    ends: np.ndarray
    segments: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, members: np.ndarray) -> "_Segments":
        """Those whose pixels are marked, [K, H * W] bool."""
        segment, pixels = members.nonzero()
        by_pixel = segment[pixels.argsort(kind="stable")].astype(np.min_scalar_type(len(members)))
        return cls(pixels.astype(np.int32), members.sum(1).cumsum(), by_pixel, members.sum(0))


@lru_cache(maxsize=128)
def _segments(content: bytes, shape: tuple[int, ...]) -> _Segments:
    """The widened segments of an image; explainers share them."""
    from skimage.morphology import disk  # it takes half a second, and few pages refine
    from skimage.segmentation import felzenszwalb

    image = np.frombuffer(content, np.float32).reshape(shape).astype(np.float64)
    low, high = image.min(), image.max()
    image = (image - low) / (high - low) * 2 - 1 if high > low else np.zeros_like(image)
    H, W = shape[:2]
    ratio = min(H, W) / _SIDE
    labels, count = [], 0
    for scale in _SCALES:
        found = felzenszwalb(
            image, scale, sigma=_SIGMA * ratio, min_size=max(1, round(_SMALLEST * ratio**2)), channel_axis=-1
        )
        labels.append(found + count)
        count += found.max() + 1
    # A widened segment has the pixels whose neighbourhood meets it: one shifted copy of the labels per neighbour.
    reach = round(_DILATION * ratio)
    beyond = ((0, 0), (reach, reach), (reach, reach))  # of a segment more, which is left out
    row = np.pad(np.stack(labels) * (H * W), beyond, constant_values=count * H * W)
    pixel = np.arange(H * W).reshape(H, W)
    segments = np.zeros((count + 1, H * W), bool)
    for down, right in np.argwhere(disk(reach)):
        segments.reshape(-1)[row[:, down : down + H, right : right + W] + pixel] = True
    return _Segments.of(segments[:count])


def _average(values: np.ndarray, of: _Segments) -> np.ndarray:
    """A map [H, W] with the mean of the segment that brings a pixel at that pixel."""
    flat, K = values.ravel(), len(of.ends)
    smallest = max(1, round(_NEW_PIXELS * min(values.shape) ** 2 / _SIDE**2))
    result, left = np.empty_like(flat), np.ones(flat.size, bool)
    # Over the pixels of each segment that are new. Segments that are alike have sums that are.
    sums = np.bincount(of.segments, np.repeat(flat, of.counts), K)
    sizes, first = np.bincount(of.segments, minlength=K), of.counts.cumsum() - of.counts
    while (sizes >= smallest).any():
        gain = np.where(sizes >= smallest, sums / np.maximum(sizes, 1), -np.inf)
        best = gain.argmax()
        new = of.pixels[of.ends[best - 1] if best else 0 : of.ends[best]]
        new = new[left[new]]
        result[new], left[new] = gain[best], False
        counts = of.counts[new]
        begin = counts.cumsum() - counts
        their = of.segments[np.arange(counts.sum()) + np.repeat(first[new] - begin, counts)]
        sums -= np.bincount(their, np.repeat(flat[new], counts), K)
        sizes -= np.bincount(their, minlength=K)
    if left.any():
        result[left] = flat[left].mean()
    return result.reshape(values.shape)
