"""Which elements of an input form one feature.

A segment map is an int64 tensor that broadcasts to the shape of one input (without its batch dimension) and holds the
number of the feature, 0..F-1, that each element belongs to. Removing a feature removes all its elements. A colour
image [C, H, W] with a map [H, W] has pixels as features, all channels of a pixel together.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from faithlab import validation


def pixels(height: int, width: int) -> Tensor:
    """Each pixel is a feature: [H, W], F = H * W, row by row.

    Raises:
        ValueError: a side below 1, as for the maps below.
    """
    _check_sides(height=height, width=width)
    return torch.arange(height * width).view(height, width)


def patches(height: int, width: int, size: int) -> Tensor:
    """Each square patch is a feature: [H, W], F = (H / size) * (W / size), row by row.

    Raises:
        ValueError: `size` does not divide both sides.
    """
    _check_sides(height=height, width=width, size=size)
    if height % size or width % size:
        raise ValueError(f"expected a patch size that divides the image sides {height} x {width}, but got {size}")
    grid = torch.arange((height // size) * (width // size)).view(height // size, width // size)
    return grid.repeat_interleave(size, 0).repeat_interleave(size, 1)


def time_steps(length: int) -> Tensor:
    """Each time step of a series [T, C] is a feature, all its channels together: [T, 1], F = T."""
    _check_sides(length=length)
    return torch.arange(length).view(length, 1)


def values(length: int, channels: int) -> Tensor:
    """Each single value of a series [T, C] is a feature: [T, C], F = T * C."""
    _check_sides(length=length, channels=channels)
    return torch.arange(length * channels).view(length, channels)


def tokens(length: int) -> Tensor:
    """Each token of a text [T] is a feature: [T], F = T."""
    _check_sides(length=length)
    return torch.arange(length)


def count(segments: Tensor) -> int:
    """Number of features F of a segment map.

    Raises:
        ValueError: the map is not int64 or empty, or its numbers are not exactly 0..F-1.
    """
    if not isinstance(segments, Tensor) or segments.dtype != torch.int64 or not segments.numel():
        came = f"{segments.dtype} {tuple(segments.shape)}" if isinstance(segments, Tensor) else type(segments).__name__
        raise ValueError(f"expected an int64 segment map, but got {came}; build it with faithlab.segments")
    present = segments.unique()
    if not torch.equal(present, torch.arange(len(present), device=segments.device)):
        raise ValueError(
            "expected a segment map that uses every number 0..F-1, but got numbers "
            f"{int(present[0])}..{int(present[-1])} with {len(present)} different ones; renumber the segments"
        )
    return len(present)


def count_of(segments: Tensor, x: Tensor) -> int:
    """Number of features of a segment map for inputs [B, *S].

    Raises:
        ValueError: a map that does not broadcast to one of them, or as `count`.
    """
    features = count(segments)
    try:
        segments.expand(x.shape[1:])
    except RuntimeError:
        raise ValueError(
            f"segments {tuple(segments.shape)} do not broadcast to the shape of one input {tuple(x.shape[1:])}"
        ) from None
    return features


def spread(features: Tensor, segments: Tensor) -> Tensor:
    """Values per feature to values per element: [..., F] -> [..., *segments.shape].

    Raises:
        ValueError: another number of values than the map has features, or as `count`.
    """
    if features.shape[-1:] != (number := count(segments),):
        raise ValueError(f"expected values of the map's {number} features, [..., F], but got {tuple(features.shape)}")
    return spreading(segments, features.device)(features)


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

    Raises:
        TypeError: what is no tensor.
        ValueError: elements that the map does not broadcast to, a mask, complex numbers, or as `count`.
    """
    number = count(segments)
    if not isinstance(elements, Tensor):
        raise TypeError(f"expected values as a torch.Tensor, but got {type(elements).__name__}; use torch.as_tensor")
    if elements.dtype == torch.bool or elements.is_complex():
        raise ValueError(f"expected values of real numbers to be summed, but got {elements.dtype}")
    if not elements.is_floating_point():
        elements = elements.long()
    elif elements.dtype != torch.float64:
        elements = elements.float()
    try:
        flat = segments.to(elements.device).expand(elements.shape[1:]).flatten()  # [E]
    except RuntimeError:
        raise ValueError(
            f"expected values for the elements of a segment map {tuple(segments.shape)}, [images, ..., "
            f"{', '.join(map(str, segments.shape))}], but got {tuple(elements.shape)}"
        ) from None
    sums = elements.new_zeros(len(elements), number)
    return sums.index_add_(1, flat, elements.flatten(1))


def _check_sides(**sides: int) -> None:
    for name, side in sides.items():
        validation.whole(name, side, 1)


def _patch_size(segments: Tensor) -> int | None:
    """The size of the square patches that a map numbers row by row, None where it is another map."""
    height, width = segments.shape
    size = round((height * width / (int(segments.max()) + 1)) ** 0.5)
    regular = not height % size and not width % size and torch.equal(segments, patches(height, width, size))
    return size if regular else None


def _in_order(segments: Tensor) -> bool:
    """Whether each element is a feature of its own, in order, so that no gather is needed."""
    return torch.equal(segments.flatten(), torch.arange(segments.numel(), device=segments.device))
