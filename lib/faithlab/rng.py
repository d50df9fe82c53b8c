"""Random numbers from a counter: the same (seed, image, draw) gives the same numbers on every machine.

A metric that draws from a shared generator changes its answer with the batch size, the chunk size or the order of the
images. Here nothing is drawn in sequence: each number is a hash of what it belongs to (SplitMix64; Steele, Lea and
Flood, 2014). Two explainers of one image meet the same draws, so that their difference carries less noise.
"""

import hashlib
import operator
from collections.abc import Callable

import torch
from torch import Tensor

# The constants of SplitMix64, written as the signed numbers that int64 arithmetic wraps to.
_STEP = -7046029254386353131
_FIRST = -4658895280553007687
_SECOND = -7723592293110705685

_TOGETHER = 1 << 14
"""Numbers of a search that are drawn at once, at most."""


def _shift(z: Tensor, bits: int) -> Tensor:
    """Logical right shift; torch's own shift of signed integers copies the sign."""
    return (z >> bits).bitwise_and_((1 << (64 - bits)) - 1)


def _mix(z: Tensor) -> Tensor:
    """Each step can be undone, so that different numbers stay different. In place: the time goes into memory."""
    z = _shift(z, 30).bitwise_xor_(z).mul_(_FIRST)
    z = _shift(z, 27).bitwise_xor_(z).mul_(_SECOND)
    return _shift(z, 31).bitwise_xor_(z)


def stream(purpose: str, seed: int) -> int:
    """A seed of its own for one purpose, so that what several things draw of one image is independent.

    Everything has a seed, and most are 0: without this the features whose scores are shuffled (draw 0 of an image) were
    the first that a metric's draw 0 removed.

    Args:
        purpose: such as "subsets".
        seed: a 64-bit integer; another seed gives another result.
    """
    start = int.from_bytes(hashlib.blake2b(purpose.encode(), digest_size=8).digest(), "little", signed=True)
    return int(_mix(torch.tensor(operator.index(seed)) * _STEP + start))


def bits(seed: int, images: Tensor, draws: Tensor, size: int) -> Tensor:
    """64 random bits for every image, draw and element.

    Args:
        seed: a 64-bit integer, negative ones too; another seed gives independent numbers.
        images: [B] integer identities of the images (their index in the data set, not in the batch).
        draws: [N] integer identities of the draws.
        size: number of elements F.

    Returns:
        [B, N, F] int64, all 64 bits random; those of one image and draw all differ.
    """
    images, draws = images.long(), draws.long().to(images.device)
    start = _mix(torch.tensor(operator.index(seed), device=images.device) * _STEP + _FIRST)
    stream = _mix(_mix(start + images * _STEP)[:, None] + draws * _SECOND)  # [B, N]
    return _mix(stream[..., None] + torch.arange(1, size + 1, device=images.device) * _STEP)


def uniform(seed: int, images: Tensor, draws: Tensor, size: int) -> Tensor:
    """Uniform float64 numbers strictly between 0 and 1, [B, N, F]; arguments as in `bits`."""
    # 52 bits and the half after them fill a double exactly; with one bit more the largest would round to 1.
    return (_shift(bits(seed, images, draws, size), 12).double() + 0.5) * 2.0**-52


def by_step(
    seed: int,
    images: Tensor,
    streams: Tensor,
    size: int,
    then: Callable[[Tensor], tuple[Tensor, ...]] = lambda u: (u,),
) -> Callable[[int], tuple[Tensor, ...]]:
    """The `uniform` numbers of the steps of a search: those of step s are of the draws ``streams + s``.

    Steps ask one after the other, and each draw has a price however small it is. So the first step draws for itself,
    and who goes on finds more and more of the next ones drawn.

    Args:
        seed: as in `bits`.
        images: as in `bits`.
        streams: [N] the draw of each stream at step 0.
        size: numbers for each step.
        then: what a step makes of its numbers, [..., F] -> tensors [..., any], for as many steps as are drawn.

    Returns:
        The number of a step -> what is made of [B, N, F].
    """
    most = max(1, _TOGETHER // max(1, len(images) * len(streams) * size))
    first = count = 0
    drawn = ()

    def numbers(step: int) -> tuple[Tensor, ...]:
        nonlocal first, count, drawn
        if not first <= step < first + count:
            count = min(most, 2 * count) if count and step == first + count else 1
            steps = (streams[:, None] + step + torch.arange(count, device=streams.device)).flatten()
            first, drawn = step, then(uniform(seed, images, steps, size).unflatten(1, (len(streams), count)))
        return tuple(each[:, :, step - first] for each in drawn)

    return numbers


def normal(seed: int, images: Tensor, draws: Tensor, size: int) -> Tensor:
    """Standard normal float32 numbers, [B, N, F]; arguments as in `bits`. Their last bit may be the processor's."""
    return torch.special.ndtri(uniform(seed, images, draws, size)).float()


def permutations(seed: int, images: Tensor, draws: Tensor, size: int) -> Tensor:
    """Uniformly random permutations of 0..size-1, [B, N, F] int64; arguments as in `bits`."""
    keys = bits(seed, images, draws, size)  # which differ, so that every way to sort gives the same order
    if keys.device.type == "cpu":
        return torch.from_numpy(keys.numpy().argsort(axis=-1))  # four times as fast as torch's
    return keys.argsort(dim=-1)


def identities(count: int, images: Tensor | None, device: torch.device) -> Tensor:
    """The images' identities, [count] int64: those given, else their positions 0..count-1.

    Raises:
        ValueError: not one whole number for each image.
    """
    if images is None:
        return torch.arange(count, device=device)
    if images.shape != (count,) or images.is_floating_point():
        raise ValueError(f"expected images as {count} integers, but got {images.dtype} {tuple(images.shape)}")
    return images.to(device).long()
