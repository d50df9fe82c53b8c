"""What stands in for a removed feature.

Each takes inputs [B, *S] and returns one number for all of them (no dimensions), or values with as many dimensions as
the inputs, each of the inputs' size or 1: nothing else can be broadcast to the inputs without a guess.
"""

import math
import operator
import warnings
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import conv2d, pad

LAYOUTS = {2: "BF", 3: "BTC", 4: "BCHW", 5: "BCTHW"}
"""Default layout of inputs of so many dimensions, a letter for each: B inputs, F features of a table, T steps of a
series or frames of a video, C channels, H and W rows and columns."""


def zero(x: Tensor) -> Tensor:
    """Zero, the baseline of F-Fidelity; on normalised images this is the data set's mean colour."""
    return x.new_zeros(())


def mean(x: Tensor, layout: str | None = None, segments: Tensor | None = None) -> Tensor:
    """Mean of each channel of each input, the baseline of SaCo; of a table, mean of each feature over the inputs.

    Series [B, T, C] -> [B, 1, C], images [B, C, H, W] -> [B, C, 1, 1], tables [B, F] -> [1, F]. The mean of a table is
    that of the inputs given; for that of training data give `Task(baselines=NAMED | {"mean": lambda x: data.mean(0)})`.

    Args:
        x: floating-point inputs.
        layout: a letter for each dimension, in which B and C, or F, are kept apart, such as "BHW" or, of
            one-channel series, "BT": `functools.partial(baselines.mean, layout="BT")`. None: that which `segments`
            tell, else that of `LAYOUTS`.
        segments: map of the features, see `faithlab.segments`. The dimension that it does not vary over holds the
            channels: a map [1, T] makes inputs [B, C, T] a series of C channels. `Task` and `scorer` give it.

    Raises:
        ValueError: integers; a layout that does not fit the inputs or leaves nothing to take the mean over.

    Warns:
        UserWarning: neither `layout` nor `segments` tells the layout.

    >>> mean(torch.tensor([[1.0, 10.0], [3.0, 30.0]]))
    tensor([[ 2., 20.]])
    """
    layout = _layout(x, segments) if layout is None else layout
    if len(layout) != x.ndim or layout[:1] != "B" or len(set(layout)) != len(layout):
        raise ValueError(f"expected a layout of different letters, B first, for {tuple(x.shape)}, not {layout!r}")
    others = [dimension for dimension, letter in enumerate(layout) if letter not in ("F" if "F" in layout else "BC")]
    if len(x) and math.prod(x.shape[dimension] for dimension in others) == 1:
        raise ValueError(f"inputs {tuple(x.shape)}, laid out as {layout}, have no mean; give lambda x: data.mean(0)")
    return x.mean(others, keepdim=True)


def _layout(x: Tensor, segments: Tensor | None) -> str:
    """The layout whose channels are the dimension that a map does not vary over; the default where there are several.

    A map of all elements, such as `faithlab.segments.values`, tells nothing: the default, with a warning.
    """
    default = LAYOUTS.get(x.ndim, "B" + "?" * (x.ndim - 1))
    if segments is None or x.ndim == 2:
        return default
    own = segments.view(*[1] * (x.ndim - 1 - segments.ndim), *segments.shape)
    broadcast = [d for d in range(own.ndim) if own.shape[d] == 1]
    constant = [d for d in range(own.ndim) if bool((own == own.narrow(d, 0, 1)).all())]
    channels = [d for d in (broadcast or constant) if len(broadcast or constant) == 1 or default[d + 1] == "C"]
    if channels:
        return "B" + "".join("C" if d == channels[0] else letter for d, letter in enumerate("XYZUVW"[: own.ndim]))
    warnings.warn(
        f"which dimension of inputs {tuple(x.shape)} holds the channels cannot be told; they are taken for {default}. "
        'Otherwise give Task(baselines=baselines.NAMED | {"mean": functools.partial(baselines.mean, layout="BCT")})',
        stacklevel=4,
    )
    return default


def blur(x: Tensor, sigma: float) -> Tensor:
    """Each image blurred by a Gaussian of `sigma` pixels: [B, C, H, W] -> [B, C, H, W].

    Its window holds three sigmas each side, but no more than the image mirrored at its edges has. A Gaussian is a
    product of one along the rows and one along the columns: two passes instead of one.

    Raises:
        ValueError: what is no image; a sigma that is not positive and finite.
    """
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
    """One token, the mask or padding token of a vocabulary, for texts x [B, T] of token ids."""
    return x.new_full((), operator.index(identity))


def given(images: Tensor) -> Callable[[Tensor], Tensor]:
    """A baseline of its own for each input, made beforehand as in `faithlab.baselines.perturbed`: [B, *S].

    Returns:
        A baseline for exactly these inputs, in this order.
    """
    return lambda x: images.to(x if x.is_floating_point() else x.device)


NAMED: dict[str, Callable[[Tensor], Tensor]] = {"zero": zero, "mean": mean}
"""The baselines that metrics name. A task may have others by these names, as texts have a token, and more."""
