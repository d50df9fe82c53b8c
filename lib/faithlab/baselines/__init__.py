"""What stands in for a removed feature.

Each takes inputs [B, *S] and returns one number for all of them (no dimensions), or values with as many dimensions as
the inputs, each of the inputs' size or 1: nothing else can be broadcast to the inputs without a guess.
"""

import math
import operator
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import conv2d, pad

LAYOUTS = {2: "BF", 3: "BTC", 4: "BCHW", 5: "BCTHW"}
"""How inputs of so many dimensions are laid out in this library, a letter for each: B inputs, F features of a table,
T steps of a series or frames of a video, C channels, H and W rows and columns."""


def zero(x: Tensor) -> Tensor:
    """Zero, the baseline of F-Fidelity; on normalised images this is the data set's mean colour."""
    return x.new_zeros(())


def mean(x: Tensor, layout: str | None = None) -> Tensor:
    """Each input's own mean per channel, the baseline of SaCo: over all dimensions but B and C, which become 1.

    Tables [B, F] -> [B, 1], series [B, T, C] -> [B, 1, C], images [B, C, H, W] -> [B, C, 1, 1], videos
    [B, C, T, H, W] -> [B, C, 1, 1, 1].

    Args:
        x: floating-point inputs.
        layout: a letter for each dimension, of which B and C are kept apart. None: that of `LAYOUTS`. Inputs that are
            laid out otherwise need it, such as series "BCT" or images without a channel "BHW":
            `functools.partial(baselines.mean, layout="BCT")`.

    Raises:
        ValueError: integers; a layout that does not fit the inputs, or that is not known for so many dimensions.
    """
    if not x.is_floating_point():
        picture = x.dtype == torch.uint8 and x.ndim > 2
        cure = (
            "these are uint8 images: make them floating point, as the model takes them"
            if picture
            else "token ids have no mean, use baselines.token"
        )
        raise ValueError(f"the mean is for floating-point inputs, but got {x.dtype}; {cure}")
    if layout is None:
        if x.ndim not in LAYOUTS:
            raise ValueError(
                f"the layout of inputs {tuple(x.shape)} is not known; say it, such as "
                'functools.partial(baselines.mean, layout="BCT")'
            )
        layout = LAYOUTS[x.ndim]
    if len(layout) != x.ndim or layout[:1] != "B" or len(set(layout)) != len(layout):
        raise ValueError(
            f"expected a layout of {x.ndim} different letters that begins with B, for inputs {tuple(x.shape)}, but got "
            f"{layout!r}"
        )
    others = [dimension for dimension, letter in enumerate(layout) if letter not in "BC"]
    if not others:
        raise ValueError(f"a layout {layout!r} leaves nothing to take the mean over")
    return x.mean(others, keepdim=True)


def blur(x: Tensor, sigma: float) -> Tensor:
    """Each image blurred by a Gaussian of `sigma` pixels: [B, C, H, W] -> [B, C, H, W].

    Its window holds three sigmas each side, but no more than the image mirrored at its edges has. A Gaussian is a
    product of one along the rows and one along the columns: two passes instead of one.

    Raises:
        ValueError: what is no image of floating-point numbers; a sigma that is not positive and finite.
    """
    if x.ndim != 4 or not x.is_floating_point():
        raise ValueError(f"blur is for floating-point images [B, C, H, W], but got {x.dtype} {tuple(x.shape)}")
    if not (sigma > 0 and math.isfinite(sigma)):
        raise ValueError(f"expected a positive sigma in pixels, but got {sigma}")
    reach = min(int(3 * sigma + 0.5), min(x.shape[-2:]) - 1)
    exact = x if x.dtype == torch.float64 else x.float()
    weights = torch.arange(-reach, reach + 1, dtype=exact.dtype, device=x.device)
    weights = (-0.5 * (weights / sigma) ** 2).exp()
    weights = weights / weights.sum()
    # Each channel is an image of its own.
    picture = exact.reshape(-1, 1, *x.shape[-2:])
    picture = conv2d(pad(picture, (reach, reach, 0, 0), mode="reflect"), weights.view(1, 1, 1, -1))
    picture = conv2d(pad(picture, (0, 0, reach, reach), mode="reflect"), weights.view(1, 1, -1, 1))
    return picture.view(x.shape).to(x.dtype)


def token(x: Tensor, identity: int) -> Tensor:
    """One token, the mask or padding token of a vocabulary, for texts x [B, T] of token ids.

    Raises:
        ValueError: inputs that are no token ids; an identity that is none.
    """
    if x.is_floating_point() or x.is_complex() or x.dtype == torch.bool:
        raise ValueError(f"a token stands in for token ids, integers, but the inputs are {x.dtype}")
    try:
        number = operator.index(identity)
    except TypeError:
        number = -1
    if isinstance(identity, bool) or not 0 <= number <= torch.iinfo(x.dtype).max:
        raise ValueError(f"expected the id of a token, an integer from 0, but got {identity!r}")
    return torch.full((), number, dtype=x.dtype, device=x.device)


def given(images: Tensor) -> Callable[[Tensor], Tensor]:
    """A baseline of its own for each input, made beforehand as in `faithlab.baselines.perturbed`: [B, *S].

    Returns:
        A baseline for exactly these inputs, in this order.

    Raises:
        ValueError: what is no tensor of inputs, or holds NaN; (from the baseline) inputs of another shape, number or
            kind.
    """
    if not isinstance(images, Tensor) or images.ndim < 2:
        what = f"shape {tuple(images.shape)}" if isinstance(images, Tensor) else type(images).__name__
        raise ValueError(f"expected a tensor with a stand-in for each input, [B, *S], but got {what}")
    if images.is_floating_point() and bool(images.isnan().any()):
        raise ValueError("the stand-ins hold NaN; repair them before scoring")

    def baseline(x: Tensor) -> Tensor:
        if x.shape != images.shape:
            raise ValueError(
                f"the baseline was made for inputs {tuple(images.shape)}, but got inputs {tuple(x.shape)}; take the "
                "same images from both"
            )
        if x.is_floating_point() != images.is_floating_point():
            raise ValueError(f"the baseline was made of {images.dtype}, but the inputs are {x.dtype}")
        return images.to(x)

    return baseline


NAMED: dict[str, Callable[[Tensor], Tensor]] = {"zero": zero, "mean": mean}
"""The baselines that metrics name. A task may have others by these names, as texts have a token, and more."""
