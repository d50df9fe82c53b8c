"""Which elements of an input form one feature.

A segment map is an int64 tensor that broadcasts to the shape of one input (without its batch dimension) and holds the
number of the feature, 0..F-1, that each element belongs to. Removing a feature removes all its elements. A colour
image [C, H, W] with a map [H, W] has pixels as features, all channels of a pixel together.
"""

from collections.abc import Callable

import torch
from torch import Tensor


def pixels(height: int, width: int) -> Tensor:
    """Each pixel is a feature: [H, W], F = H * W, row by row."""
    return torch.arange(height * width).view(height, width)


def patches(height: int, width: int, size: int) -> Tensor:
    """Each square patch is a feature: [H, W], F = (H / size) * (W / size), row by row.

    Raises:
        ValueError: `size` does not divide both sides.
    """
    if height % size or width % size:
        raise ValueError(f"expected a patch size that divides the sides {height} x {width}, but got {size}")
    grid = torch.arange((height // size) * (width // size)).view(height // size, width // size)
    return grid.repeat_interleave(size, 0).repeat_interleave(size, 1)


def time_steps(length: int) -> Tensor:
    """Each time step of a series [T, C] is a feature, all its channels together: [T, 1], F = T."""
    return torch.arange(length).view(length, 1)


def values(length: int, channels: int) -> Tensor:
    """Each single value of a series [T, C] is a feature: [T, C], F = T * C."""
    return torch.arange(length * channels).view(length, channels)


def tokens(length: int) -> Tensor:
    """Each token of a text [T] is a feature: [T], F = T."""
    return torch.arange(length)


def count(segments: Tensor) -> int:
    """Number of features F of a segment map.

    Raises:
        ValueError: the map is not int64 or empty, or its numbers are not exactly 0..F-1.

    >>> count(patches(4, 6, 2))
    6
    """
    present = segments.unique()
    if segments.dtype != torch.int64 or not torch.equal(present.cpu(), torch.arange(len(present) or 1)):
        raise ValueError(f"expected an int64 map that uses every number 0..F-1, but got {present.tolist()}")
    return len(present)


def count_of(segments: Tensor, x: Tensor) -> int:
    """Number of features of a segment map for inputs [B, *S].

    Raises:
        ValueError: a map that does not broadcast to one input, a map for each input (make a scorer for each), or as
            `count`.
    """
    features, one = count(segments), x.shape[1:]
    # A map for each of B inputs passes for one of B channels. Each of its parts begins with 0, and they differ.
    batched = segments.ndim == x.ndim - 1 > 1 and len(segments) == len(x) and not segments.flatten(1).amin(1).any()
    if batched and bool((segments != segments[0]).any()):
        raise ValueError(f"expected one map for all inputs, but got one for each of {len(x)}; score them one by one")
    sizes = zip(segments.shape[::-1], one[::-1], strict=False)
    if segments.ndim > len(one) or any(size not in (1, whole) for size, whole in sizes):
        raise ValueError(f"segments {tuple(segments.shape)} do not broadcast to the shape of one input {tuple(one)}")
    return features


def spread(features: Tensor, segments: Tensor) -> Tensor:
    """Values per feature to values per element: [..., F] -> [..., *segments.shape].

    >>> spread(torch.tensor([5, 7]), patches(2, 4, 2))
    tensor([[5, 5, 7, 7],
            [5, 5, 7, 7]])
    """
    return spreading(segments, features.device)(features.unflatten(-1, (count(segments),)))  # F values, or an error


def spreading(segments: Tensor, device: torch.device) -> Callable[[Tensor], Tensor]:
    """`spread` for one map and many values on a device: the map is looked at once, which makes a GPU wait."""
    shape = segments.shape
    if _in_order(segments):
        return lambda features: features.unflatten(-1, shape)
    if segments.ndim == 2 and (size := _patch_size(segments)):
        rows, columns = (side // size for side in shape)

        def repeated(features: Tensor) -> Tensor:
            # A copy with repeats, several times faster than the gather below.
            lead = features.shape[:-1]
            grid = features.reshape(*lead, rows, 1, columns, 1).expand(*lead, rows, size, columns, size)
            return grid.reshape(*lead, *shape)

        return repeated
    places = segments.to(device).flatten()
    return lambda features: features[..., places].unflatten(-1, shape)


def pool(elements: Tensor, segments: Tensor) -> Tensor:
    """Values per element to values per feature, by summing: [B, *S] -> [B, F].

    Elements of dimensions that the map broadcasts over (the channels of a pixel) are summed too. The sums are float32
    of half precision and int64 of integers, which would overflow.

    >>> pool(torch.ones(1, 3, 4, 6), patches(4, 6, 2))
    tensor([[12., 12., 12., 12., 12., 12.]])
    """
    number = count(segments)
    if elements.dtype == torch.bool or elements.is_complex():
        raise ValueError(f"expected values of real numbers to be summed, but got {elements.dtype}")
    if not elements.is_floating_point():
        elements = elements.long()
    elif elements.dtype != torch.float64:
        elements = elements.float()
    flat = segments.to(elements.device).expand(elements.shape[1:]).flatten()  # [E]
    return elements.new_zeros(len(elements), number).index_add_(1, flat, elements.flatten(1))


def _patch_size(segments: Tensor) -> int | None:
    """The size of the square patches that a map numbers row by row, None where it is another map."""
    height, width = segments.shape
    size = round((height * width / (int(segments.max()) + 1)) ** 0.5)
    regular = not height % size and not width % size and torch.equal(segments, patches(height, width, size))
    return size if regular else None


def _in_order(segments: Tensor) -> bool:
    """Whether each element is a feature of its own, in order, so that no gather is needed."""
    return torch.equal(segments.flatten(), torch.arange(segments.numel(), device=segments.device))
