"""Average stability: how far the explanations of neighbouring inputs are apart (ReCo and MeGe, eq. 2).

    S_avg = mean over z with rho(x, z) <= r of D(g(f, x), g(f, z))

`neighbours` draws the points z; whoever has a model explains them; `average_stability` takes the explanations.
"""

from typing import Literal

import torch
from torch import Tensor

from faithlab import rng as counter
from faithlab import validation
from faithlab.metrics.distance import Distance


def neighbours(
    x: Tensor,
    radius: float,
    count: int,
    *,
    norm: Literal["l1", "max"] = "l1",
    seed: int = 0,
    images: Tensor | None = None,
) -> Tensor:
    """Points drawn uniformly from the ball around each input.

    Args:
        x: [B, *S], of floating-point numbers.
        radius: of the ball, in the unit of the inputs.
        count: points per input, N.
        norm: "l1", the sum of the absolute differences is at most the radius, as the paper has it; or "max", each
            difference is.
        seed: of the draws.
        images: [B] identities of the images; None: 0..B-1.

    Returns:
        [B, N, *S].

    Raises:
        ValueError: an unknown norm, a negative radius, fewer than one point, inputs that are no finite floating-point
            numbers (a step would be rounded away from whole ones), wrong identities.
    """
    if norm not in ("l1", "max"):
        raise ValueError(f'expected norm "l1" or "max", but got {norm!r}')
    validation.number("radius", radius, "of at least 0", lambda v: v >= 0)
    validation.whole("count", count, 1)
    if not isinstance(x, Tensor) or x.ndim < 2 or not x.is_floating_point():
        came = f"{x.dtype} {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"expected inputs of floating-point numbers, [images, ...], but got {came}")
    validation.finite("input", x, "drop or repair these images")
    identities = counter.identities(len(x), images, x.device)
    E = x.shape[1:].numel()
    signed = 2 * counter.uniform(seed, identities, torch.arange(count), E + 1) - 1  # [B, N, E + 1] in (-1, 1)
    if norm == "max":
        step = signed[..., :E]
    else:
        # Of E + 1 exponentials with mean 1 the first E, divided by the sum of all, are uniform in the simplex
        # sum <= 1; the sign of each is that of the number it was made from.
        exponential = -torch.log(signed.abs())
        step = signed[..., :E].sign() * exponential[..., :E] / exponential.sum(-1, keepdim=True)
    return x[:, None] + radius * step.to(x.dtype).view(len(x), count, *x.shape[1:])


def average_stability(explanations: Tensor, around: Tensor, distance: Distance) -> Tensor:
    """Mean distance between the explanation of an input and those of its neighbours; lower is more stable.

    Args:
        explanations: [B, H, W].
        around: [B, N, H, W], explanations of N neighbours of each.
        distance: see `faithlab.metrics.distance`.

    Returns:
        [B] float64; NaN where one of the distances is not defined, and nowhere else.

    Raises:
        ValueError: shapes that do not fit, no neighbour, or as the distance.
    """
    if (
        around.ndim != explanations.ndim + 1
        or not around.shape[1:2].numel()
        or (around.shape[:1] + around.shape[2:] != explanations.shape)
    ):
        raise ValueError(
            "expected explanations [B, H, W] and those of their neighbours [B, N, H, W], but got "
            f"{tuple(explanations.shape)} and {tuple(around.shape)}"
        )
    return distance(around, explanations[:, None]).mean(-1)
