"""Deletion along a whole trajectory: MoRF, LeRF, their difference, and insertion.

TRACE (Wang, Wang: "Benchmarking Deletion Metrics with the Principled Explanations", 2024). A trajectory is an order of
all F features, here most relevant first (the paper writes it the other way round). With f(x without S) the score when
the features S are removed:

    MoRF = sum over k = 0..F of f(x without the top k)                                                       (eq. 1)
    LeRF = sum over k = 0..F of f(x without the bottom k)                                                    (eq. 1)

The sums have F + 1 terms, so that they reach F + 1 for a probability; of an input that has only n of the F features
they have n + 1. LeRF - MoRF is 0 on average over all orders, for every input and model, because a random order and its
reverse are equally likely: it needs no other zero.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from faithlab import masks
from faithlab.engine import Score
from faithlab.metrics import register
from faithlab.metrics.answers import ask


class Curves(NamedTuple):
    """Scores along a trajectory, [B, F + 1] float64 each: entry k is the score with k features removed."""

    morf: Tensor
    lerf: Tensor


def trajectory(attribution: Tensor, present: Tensor | None = None, direction: masks.Direction = "MoRF") -> Tensor:
    """Return the order that an attribution stands for: [B, F] -> [B, F] int64, most relevant first.

    Of equal scores the smaller index is the less relevant one (TRACE, footnote 1), so that one order serves MoRF and,
    read from its end, LeRF.

    Args:
        attribution: [B, F].
        present: [B, F] bool, which features an input has; the others come last in both directions. None: all.
        direction: "MoRF", or "LeRF" for the least relevant first.

    Raises:
        ValueError: as `faithlab.masks.order`.
    """
    there = None if present is None else present.flip(-1)
    return attribution.shape[-1] - 1 - masks.order(attribution.flip(-1), there, direction)


def curves(score: Score, order: Tensor) -> Curves:
    """Return the scores when the first, and when the last, k features of an order are removed, k = 0..F.

    Args:
        score: see `faithlab.engine.scorer`.
        order: [B, F], most relevant first.

    Raises:
        ValueError: an order that is no permutation of each input's features, a score that is NaN or infinite.
    """
    masks.check_order(order)
    return Curves(_along(score, order), _along(score, order.flip(-1)))


def _along(score: Score, order: Tensor, present: Tensor | None = None, *, inserting: bool = False) -> Tensor:
    """The scores when the first k features of an order are removed, or they alone are there: [B, F + 1], k = 0..F.

    Features that an input has not come last and are never removed: the scores of larger k are that of all that it has.
    """
    place = masks.place(order)[:, None]
    absent = False if present is None else ~present.to(order.device)[:, None]
    k = torch.arange(order.shape[-1] + 1, device=order.device)[:, None]
    parts = k.split(max(1, masks.BUDGET // max(1, order.numel())))
    return torch.cat([ask(score, (place < part if inserting else place >= part) | absent) for part in parts], 1)


def morf(score: Score, attribution: Tensor, *, present: Tensor | None = None) -> Tensor:
    """Return MoRF of an attribution, [B] float64: the lower, the better. Arguments as in `lerf_minus_morf`."""
    return _sum(_along(score, trajectory(attribution, present), present), present)


def lerf(score: Score, attribution: Tensor, *, present: Tensor | None = None) -> Tensor:
    """Return LeRF of an attribution, [B] float64: the higher, the better. Arguments as in `lerf_minus_morf`."""
    return _sum(_along(score, trajectory(attribution, present, "LeRF"), present), present)


def lerf_minus_morf(score: Score, attribution: Tensor, *, present: Tensor | None = None) -> Tensor:
    """Return LeRF - MoRF, the criterion that the paper recommends: the higher, the better; 0 is chance.

    Args:
        score: see `faithlab.engine.scorer`.
        attribution: [B, F].
        present: [B, F] bool, which features an input has; the others are never removed. None: all.

    Returns:
        [B] float64, a sum of F + 1 differences of scores, or of n + 1 for an input with n of the features; never NaN.

    Raises:
        ValueError: an attribution that is no dense tensor of finite numbers, a score that is NaN or infinite.
    """
    ways = (trajectory(attribution, present, direction) for direction in ("MoRF", "LeRF"))
    both = Curves(*(_along(score, order, present) for order in ways))
    return _sum(both.lerf - both.morf, present)


def inserted(score: Score, attribution: Tensor, *, present: Tensor | None = None) -> Tensor:
    """Return the area under `insertion`, a sum as LeRF is, [B] float64. Arguments as in `lerf_minus_morf`."""
    return _sum(insertion(score, trajectory(attribution, present), present), present)


def insertion(score: Score, order: Tensor, present: Tensor | None = None) -> Tensor:
    """Return the scores with k = 0..F features inserted into an empty input, most relevant first: [B, F + 1] float64.

    Theorem 3.1: this is the LeRF curve read from its end, and inserting the least relevant first is the MoRF curve read
    from its end, so that the areas are equal. Arguments and errors as in `curves`; features that an input has not, by
    `present`, come last in its order, and are there from the start.
    """
    return _along(score, order, present, inserting=True)


def _sum(curve: Tensor, present: Tensor | None) -> Tensor:
    """Over k = 0..n of [B, F + 1], with n of the F features there."""
    if present is None:
        return curve.sum(-1)
    beyond = torch.arange(curve.shape[1], device=curve.device) > present.to(curve.device).sum(1, keepdim=True)
    return curve.masked_fill(beyond, 0).sum(-1)


def attainable_share(measured: Tensor, reached: Tensor) -> Tensor:
    """Return an attribution's LeRF - MoRF as a fraction of what a search reaches for the same input, [B] float64.

    1 is as good as the best order that was found, 0 as good as chance, below 0 worse than chance.

    Args:
        measured: [B], `lerf_minus_morf` of an attribution.
        reached: [B], that of `faithlab.search` with the same score.

    Returns:
        [B]; NaN where the search found no order better than chance (a model that ignores the input), so that there is
        nothing to attain.
    """
    measured, reached = measured.double(), reached.double().to(measured.device)
    return torch.where(reached > 0, measured / reached, torch.nan)


_SOURCE = "Wang and Wang 2024"
register("MoRF", morf, source=f"{_SOURCE}, eq. 1", better=-1, direction="MoRF")
register("LeRF", lerf, source=f"{_SOURCE}, eq. 1", direction="LeRF")
register("LeRF - MoRF", lerf_minus_morf, source=f"{_SOURCE}, section 3.3", chance=0.0)
register("Insertion", inserted, source=f"{_SOURCE}, Theorem 3.1")
