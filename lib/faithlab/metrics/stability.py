"""Average stability: how far the explanations of neighbouring inputs are apart (ReCo and MeGe, eq. 2).

    S_avg = mean over z with rho(x, z) <= r of D(g(f, x), g(f, z))

`neighbours` draws the points z; whoever has a model explains them; `average_stability` takes the explanations.
"""

from typing import Literal

import torch
from torch import Tensor

from faithlab import draws as counter
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
        x: [B, *S].
        radius: of the ball, in the unit of the inputs.
        count: points per input, N.
        norm: "l1", the sum of the absolute differences is at most the radius, as the paper has it; or "max", each
            difference is.
        seed: of the draws.
        images: [B] identities of the images; None: 0..B-1.

    Returns:
        [B, N, *S].

    Raises:
        ValueError: an unknown norm, or a negative radius.
    """
    if norm not in ("l1", "max") or radius < 0:
        raise ValueError(f'expected norm "l1" or "max" and a radius of at least 0, but got {norm!r} and {radius}')
    identities = counter.identities(len(x), images, x.device)
    E = x[0].numel()
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
        [B] float64; NaN where one of the distances is not defined.
    """
    return distance(around, explanations[:, None]).mean(-1)
