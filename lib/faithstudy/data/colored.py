"""Colored MNIST with a known explanation: a coloured digit on black whose pixels are an exact share of the image.

The set of the explanation-size experiment of F-Fidelity (Section 4, Appendix D.8). Its authors rescale and crop MNIST
digits until they cover a chosen fraction of the image. Here no digit is cropped, because one that is cut off may have
another label: where there is no room to zoom further the strokes are thickened.
"""

from dataclasses import dataclass

import numpy as np
import torch
from scipy import ndimage
from torch import Tensor
from torch.nn import functional

VERSION = 1
"""Of the images that `paint` makes: raise it with any change of them, and the cache makes them anew."""

_INK = 0.5  # brightness, as a fraction of full ink, from which a pixel belongs to the digit; so none is dark
_STEPS = 9  # halvings of the range of zooms: the last is worth a few digit pixels
_SATURATION = 0.75  # leaves every channel of every colour above 0
_SPLITS = ("train", "test")


@dataclass(frozen=True)
class Options:
    """Choices of a colored MNIST.

    Attributes:
        share: fraction of the image that the digit covers, exactly round(share * size**2) pixels.
        size: height and width of the image in pixels.
        seed: of the colours.
        limit: take only the first so many images; None: all.

    Raises:
        ValueError: a choice out of range.
    """

    share: float
    size: int = 28
    seed: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.size < 16 or not 0.05 <= self.share <= 0.5:  # digits could not be read
            raise ValueError(f"expected size of at least 16 pixels and share of 0.05 to 0.5, but got {self}")

    @property
    def count(self) -> int:
        """Number of digit pixels in every image."""
        return round(self.share * self.size**2)


def paint(digits: Tensor, options: Options, split: str) -> tuple[Tensor, Tensor]:
    """Zoom each digit until it covers the wanted number of pixels, and colour those on black.

    The digit is centred and zoomed, at most until it touches two opposite borders. Where even that is too few pixels,
    as it is for most digits "1", the strokes are thickened (grey dilation): the background pixels nearest to the ink
    join the digit, as bright as that ink. The number is exact; ties go to the brighter, then to the earlier pixel.

    An image depends on its digit, the seed, and its index within the split. The colour does not depend on the label.

    Args:
        digits: uint8 [N, H, W], the first N of the split.
        options: see `Options`; its limit is not applied here.
        split: "train" or "test", which have different colours.

    Returns:
        Images uint8 [N, 3, size, size], black outside the digit and clearly coloured inside, and masks bool
        [N, size, size], True for the digit.
    """
    brightness = torch.cat([_zoom(chunk, options) for chunk in digits.split(1000)])  # [N, size, size]
    masks, brightness = _cover(brightness, options.count)
    colours = _colours(len(digits), options.seed, _SPLITS.index(split))  # [N, 3]
    images = (brightness * masks)[:, None] * colours[:, :, None, None]  # [N, 3, size, size]
    return (images * 255).round().to(torch.uint8), masks


def _zoom(digits: Tensor, options: Options) -> Tensor:
    """Return float32 [N, size, size]: the digits centred, at the zoom whose ink comes nearest to the wanted count."""
    ink = digits.float() / 255
    N, H, W = ink.shape
    low_y, high_y = _extent(ink.amax(2) >= _INK)  # [N] each, in pixels of the digit
    low_x, high_x = _extent(ink.amax(1) >= _INK)
    centre_y, centre_x = (low_y + high_y) / 2, (low_x + high_x) / 2
    # One pixel of the image shows `step` pixels of the digit: small steps zoom in.
    smallest = torch.maximum(high_y - low_y, high_x - low_x) / options.size
    largest = 4 * smallest

    offsets = torch.arange(options.size) + 0.5 - options.size / 2  # [size], pixel centres seen from the middle

    def show(step: Tensor) -> Tensor:
        rows = (centre_y[:, None] + step[:, None] * offsets) * 2 / H - 1  # [N, size], -1..1 over the digit's image
        columns = (centre_x[:, None] + step[:, None] * offsets) * 2 / W - 1
        shape = (N, options.size, options.size)
        grid = torch.stack([columns[:, None, :].expand(shape), rows[:, :, None].expand(shape)], dim=-1)
        return functional.grid_sample(ink[:, None], grid, mode="bilinear", align_corners=False)[:, 0]

    for _ in range(_STEPS):
        step = (smallest + largest) / 2
        small = (show(step) >= _INK).sum((1, 2)) < options.count
        smallest, largest = torch.where(small, smallest, step), torch.where(small, step, largest)
    return show((smallest + largest) / 2)


def _extent(present: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first and one past the last True of each row of bool [N, L], as floats [N]."""
    low = present.int().argmax(1)
    high = present.shape[1] - present.flip(1).int().argmax(1)
    return low.float(), high.float()


def _cover(brightness: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Choose the brightest ink, then what lies nearest to it, exactly `count` pixels of each image [N, H, W].

    Returns:
        Masks bool [N, H, W], and the brightness where every pixel without ink has that of the nearest ink.
    """
    masks, spread = torch.empty_like(brightness, dtype=torch.bool), torch.empty_like(brightness)
    for i, image in enumerate(brightness.numpy()):
        distance, nearest = ndimage.distance_transform_edt(image < _INK, return_indices=True)
        # Rounded, so that machines whose arithmetic differs in the last bits choose the same pixels.
        order = np.lexsort((-np.rint(image * 1024).ravel(), np.rint(distance * 1024).ravel()))  # ties by position
        chosen = np.zeros(image.size, bool)
        chosen[order[:count]] = True
        masks[i] = torch.from_numpy(chosen.reshape(image.shape))
        spread[i] = torch.from_numpy(image[tuple(nearest)])
    return masks, spread


def _colours(number: int, seed: int, stream: int) -> Tensor:
    """Return float32 [N, 3], bright saturated colours of any hue; the i-th depends on seed, stream and i alone."""
    # The i-th draw is for the i-th image.
    hue = np.random.Generator(np.random.Philox(key=[seed, stream])).random(number)
    # Hue to red, green, blue: each channel falls off linearly with its distance on the colour circle.
    distance = np.abs((hue[:, None] * 6 - np.array([0, 2, 4]) + 3) % 6 - 3)  # [N, 3]
    return torch.from_numpy(1 - _SATURATION * np.clip(distance - 1, 0, 1)).float()
