"""Batched arithmetic: Monte-Carlo means with their errors, ranks, rank correlation, areas, bootstrap weights."""

from typing import NamedTuple

import torch
from torch import Tensor


class MonteCarlo(NamedTuple):
    """A mean over random draws: `value` and its standard `error`, of one shape. It knows nothing of images.

    The error is the standard error of the mean over random draws: 0 where nothing is random, NaN where a single draw
    of something random leaves it unknown.
    """

    value: Tensor
    error: Tensor

    def mean(self, dim: int = 0) -> "MonteCarlo":
        """The mean over a dimension whose entries were drawn independently, with the error of that mean."""
        return MonteCarlo(self.value.mean(dim), (self.error**2).sum(dim).sqrt() / self.value.shape[dim])


def rank(values: Tensor) -> Tensor:
    """Return ranks 1..n along the last dimension; equal values share their mean. Float64, NaN stays NaN."""
    missing = values.isnan()
    n = values.shape[-1]
    # Missing values go to the end as infinities and are not counted.
    ordered, places = values.double().masked_fill(missing, torch.inf).sort(dim=-1)
    position = torch.arange(n, device=values.device)
    step = ordered[..., 1:] != ordered[..., :-1]
    edge = torch.ones_like(ordered[..., :1], dtype=torch.bool)
    # Where the run of values equal to this one begins and ends.
    first = torch.where(torch.cat([edge, step], -1), position, 0).cummax(-1).values
    last = torch.where(torch.cat([step, edge], -1), position, n).flip(-1).cummin(-1).values.flip(-1)
    last = last.minimum((~missing).sum(-1, keepdim=True) - 1)
    ranks = torch.empty_like(ordered).scatter_(-1, places, ((first + last) / 2 + 1).double())
    return ranks.masked_fill(missing, torch.nan)


def pearson(a: Tensor, b: Tensor) -> Tensor:
    """Return Pearson's correlation along the last dimension, float64.

    Returns:
        NaN where a side is constant, or holds a NaN or an infinity.
    """
    return _correlation(_near_one(a.double()), _near_one(b.double()))


def _near_one(values: Tensor) -> Tensor:
    """Series times a power of two, which rounds nothing, so that none of their squares overflows or vanishes."""
    if not values.numel():
        return values
    exponent = values.abs().amax(-1, keepdim=True).frexp().exponent.clamp(-1000, 1000)
    return values * torch.ldexp(torch.ones_like(values[..., :1]), -exponent)


def _correlation(a: Tensor, b: Tensor) -> Tensor:
    # The mean of equal values may be rounded, so that their deviations from it are not zero: ask the values.
    varies = (a != a[..., :1]).any(-1) & (b != b[..., :1]).any(-1)
    a = a - a.mean(-1, keepdim=True)
    b = b - b.mean(-1, keepdim=True)
    r = (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))
    return torch.where(varies, r.clamp(-1, 1), torch.nan)


def spearman(a: Tensor, b: Tensor) -> Tensor:
    """Return Spearman's rank correlation along the last dimension, float64; infinities are the first and last ranks.

    Returns:
        NaN where a side is constant or holds a NaN, and nowhere else.
    """
    return _correlation(rank(a), rank(b))


def kappa(a: Tensor, b: Tensor) -> float:
    """Return Cohen's kappa of two judgements [n] of the same things: how far they agree beyond chance; 1 entirely.

    Chance is that of two judges who give each class as often as these do. 1 where both give one and the same class to
    everything.
    """
    both = torch.cat([a, b]).unique()
    shares = [(judged[:, None] == both).double().mean(0) for judged in (a, b)]
    chance = (shares[0] * shares[1]).sum().item()
    agreed = (a == b).double().mean().item()
    return 1.0 if chance == 1 else (agreed - chance) / (1 - chance)


def auc(curve: Tensor, at: Tensor) -> Tensor:
    """Return the area under a curve [..., K] sampled at increasing positions [K], divided by their range (trapezoids).

    Returns:
        [...], in the precision of the curve; NaN where the curve holds a NaN, and nowhere else.

    Raises:
        ValueError: fewer than two positions, positions that do not increase, or as many as the curve has not.
    """
    if not curve.is_floating_point():
        curve = curve.double()
    at = torch.as_tensor(at, dtype=curve.dtype, device=curve.device)
    if len(at) < 2 or not bool((at.diff() > 0).all()) or curve.shape[-1:] != at.shape:
        raise ValueError(f"expected a curve at increasing positions, but got {tuple(curve.shape)} at {at.tolist()}")
    return torch.trapezoid(curve, at) / (at[-1] - at[0])


def bootstrap(count: int, resamples: int, generator: torch.Generator) -> Tensor:
    """Return how often each of `count` examples is in each bootstrap resample: [resamples, count] float64."""
    picks = torch.randint(count, (resamples, count), generator=generator)
    return torch.zeros(resamples, count, dtype=torch.float64).scatter_add_(
        1, picks, torch.ones_like(picks, dtype=torch.float64)
    )
