"""Average stability: how far the explanations of neighbouring inputs are apart (ReCo and MeGe, eq. 2).

    S_avg = mean over z with rho(x, z) <= r of D(g(f, x), g(f, z))

`neighbours` draws the points z; whoever has a model explains them; `average_stability` takes the explanations.
"""

from functools import partial
from typing import Literal

import torch
from torch import Tensor

from faithlab import rng as counter
from faithlab.metrics import register
from faithlab.metrics.distance import Distance, spearman


def neighbours(
    x: Tensor,
    radius: float,
    count: int,
    *,
    norm: Literal["l1", "max"] = "l1",
    seed: int = 0,
    images: Tensor | None = None,
) -> Tensor:
    """Return points drawn uniformly from the ball around each input.

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
        KeyError: an unknown norm.
    """
    x = x if x.is_floating_point() else x.float()  # a step would be rounded away from whole numbers
    identities = counter.identities(len(x), images, x.device)
    E = x.shape[1:].numel()
    signed = 2 * counter.uniform(seed, identities, torch.arange(count), E + 1) - 1  # [B, N, E + 1] in (-1, 1)
    # Of E + 1 exponentials with mean 1 the first E, divided by the sum of all, are uniform in the simplex sum <= 1; the
    # sign of each is that of the number it was made from.
    exponential = -torch.log(signed.abs())
    steps = {"max": signed, "l1": signed.sign() * exponential / exponential.sum(-1, keepdim=True)}
    step = steps[norm][..., :E]
    return x[:, None] + radius * step.to(x.dtype).view(len(x), count, *x.shape[1:])


def average_stability(explanations: Tensor, around: Tensor, distance: Distance) -> Tensor:
    """Return the mean distance between the explanation of an input and those of its neighbours; lower is more stable.

    Args:
        explanations: [B, H, W].
        around: [B, N, H, W], explanations of N neighbours of each.
        distance: see `faithlab.metrics.distance`.

    Returns:
        [B] float64; NaN where one of the distances is not defined, and nowhere else.

    Raises:
        ValueError: as the distance.
    """
    return distance(around, explanations[:, None]).mean(-1)


_MOVED = partial(average_stability, distance=spearman)
register("S_avg", _MOVED, source="Fel and Vigouroux 2020, eq. 2", better=-1, needs="neighbours")
