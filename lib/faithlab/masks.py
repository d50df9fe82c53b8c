"""From an attribution to the features that are kept: orders, cumulative masks, random subsets of an exact size.

A keep-mask is boolean, True = kept. Sizes are counts of features; `counts` and `removals` turn fractions into counts
by one rule, used by the metrics and by the closed form they are tested against.
"""

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from faithlab import rng as counter
from faithlab import validation

Direction = Literal["MoRF", "LeRF"]
"""Which end of an attribution's order goes first: the most relevant features or the least relevant ones."""

_FLIPPED = {"MoRF": False, "LeRF": True}

BUDGET = 1 << 25
"""Elements (bytes) of the keep-masks that a metric makes at a time: sizes and draws are cut into parts of at most this,
or of one mask per image where that is more. With the orders beside them, a metric's memory is a small multiple of
max(BUDGET, images x features x 8 bytes), whatever the number of sizes and draws."""


def order(attribution: Tensor, present: Tensor | None = None, direction: Direction = "MoRF") -> Tensor:
    """Features from most to least relevant: [B, F] -> [B, F] int64; of equal scores the smaller index comes first.

    LeRF is the same order read from its end, so that the two agree on what the top s features are. The order of the
    negated attribution is another one wherever scores are equal. No images, [0, F], have no orders.

    Args:
        attribution: [B, F], finite numbers, integers too.
        present: [B, F] bool, which features an input has (a text has no more tokens than it is long); those it has
            not come last in both directions, whatever their score. None: all.
        direction: "MoRF", the most relevant first, or "LeRF", the least relevant first.

    Raises:
        ValueError: an attribution that is not [B, F], boolean, NaN or infinite; an input with no feature.

    >>> order(torch.tensor([[0.1, 0.7, 0.7]]))
    tensor([[1, 2, 0]])
    """
    flipped = _FLIPPED[direction]
    validation.attribution(attribution)
    present = validation.present(present, attribution)
    order = attribution.argsort(dim=-1, descending=True, stable=True)
    if present is None:
        return order.flip(-1) if flipped else order
    order = order.gather(-1, (~present.gather(-1, order)).byte().argsort(dim=-1, stable=True))
    if not flipped:
        return order
    features = order.shape[-1]
    # From the last feature that an input has to its first; below zero begin those that it has not.
    return order.gather(-1, (present.sum(-1, keepdim=True) - 1 - torch.arange(features).to(order.device)) % features)


def check_order(order: Tensor) -> None:
    """Refuse what is no order of all features of each input, [B, F] int64, for functions that take orders.

    Raises:
        ValueError: a row that is no permutation of 0..F-1.
    """
    if order.ndim != 2 or (order.sort(-1).values != torch.arange(order.shape[-1], device=order.device)).any():
        raise ValueError("expected orders [B, F], each a permutation of 0..F-1; make them with faithlab.masks.order")


def place(order: Tensor) -> Tensor:
    """The place of each feature in an order, 0 = first: the inverse permutation, [..., F] int64."""
    places = torch.arange(order.shape[-1], device=order.device).expand_as(order)
    return torch.empty_like(order).scatter_(-1, order, places)


def counts(fractions: Tensor, features: int | Tensor) -> Tensor:
    """Fractions of the features as counts, rounded half up: [K] -> [K] int64, or [B, K] for features [B].

    A float32 stands for the decimal number that it prints as: 0.35 of 10 features is 4 of them in any precision.

    Raises:
        ValueError: no fraction, or one outside [0, 1], see `faithlab.validation.fractions`.

    >>> counts([0.05, 0.5, 1], 10)
    tensor([ 1,  5, 10])
    """
    number = _per_input(features)
    return _half_up(number * validation.fractions(fractions).to(number.device))


def removable(fractions: Tensor, features: int | Tensor, direction: Direction = "MoRF") -> Tensor:
    """How many features may be removed at a size: the top s (MoRF), or all but the top s (LeRF); int64 like `counts`.

    Both directions speak of the same top s, that of `counts`: F - s is not the size of the fraction 1 - s / F, which
    rounds halves the other way. In the order of the same direction (see `order`) they are the first ones.
    """
    sizes = counts(fractions, features)
    return _per_input(features).to(sizes) - sizes if _FLIPPED[direction] else sizes


def removals(counts: Tensor, features: int | Tensor, alpha: float = 1.0, cap: float | None = None) -> Tensor:
    """How many of n removable features are removed: min(alpha * n, cap * F), F-Fidelity's eq. 6; int64 like `counts`.

    Args:
        counts: [K] or [B, K] numbers n of `removable`.
        features: number of features F, or [B].
        alpha: share of the n features that is removed, rounded half up to a count.
        cap: upper bound as a fraction of F (the paper's beta), rounded down to a count; None: no bound.

    Raises:
        ValueError: alpha or cap outside [0, 1].
    """
    removed = _half_up(validation.share("alpha", alpha) * counts.double())
    return removed if cap is None else removed.minimum(bound(validation.share("cap", cap), features).to(removed.device))


def bound(share: float, features: int | Tensor) -> Tensor:
    """The largest number of features that is at most a share of them: [] or, for features [B], [B, 1] int64."""
    return (validation.share("share", share) * _per_input(features) + _SLACK).floor().long()


_SLACK = 1e-9
"""Keeps 0.29 * 100 = 28.999999999999996 from counting as less than 29."""


def _half_up(number: Tensor) -> Tensor:
    return (number + 0.5 + _SLACK).floor().long()


def _per_input(features: int | Tensor) -> Tensor:
    """Numbers of features as float64, [] or [B, 1]."""
    number = torch.as_tensor(features, dtype=torch.float64)
    return number[:, None] if number.ndim else number


def remove_top(order: Tensor, counts: Tensor) -> Tensor:
    """Keep all but the first s features of the order: [B, F], sizes [K] or [B, K] -> keep [B, K, F]."""
    return place(order)[:, None, :] >= counts.to(order.device)[..., None]


def group(order: Tensor, groups: int, present: Tensor | None = None) -> Tensor:
    """The group of each feature when an order is cut into K groups: [B, F] -> [B, F] int64, 0 = the most relevant.

    Of n features, group i holds the places from i * n / K up to (i + 1) * n / K, rounded to whole places in the same
    way from both ends: sizes differ by at most one, and some are empty where n < K. The last groups are as large as the
    first, so that no end of the order is favoured by its size; only where K is even and n is odd one of the two groups
    in the middle has one more.

    Args:
        order: [B, F], of `order`.
        groups: number of groups K.
        present: [B, F] bool, which features an input has; the others are in group -1. None: all.

    Raises:
        ValueError: fewer than one group, more groups than features, or an input with no feature.
    """
    features = order.shape[-1]
    groups = validation.whole("groups, each of a feature or more,", groups, 1, features)
    present = validation.present(present, order)
    own = order.new_full(order.shape[:1], features) if present is None else present.sum(1)
    cut = torch.arange(1, groups, device=order.device)
    nearest = (2 * own[:, None] * cut + groups) // (2 * groups)  # [B, K - 1]
    starts = torch.where(2 * cut <= groups, nearest, own[:, None] - nearest.flip(1))
    member = torch.searchsorted(starts, place(order), right=True)
    return member if present is None else member.masked_fill(~present, -1)


def remove_each(group: Tensor, groups: int) -> Tensor:
    """Keep all but one group of features, for each group in turn: [B, F], K groups -> keep [B, K, F]."""
    return group[:, None, :] != torch.arange(groups, device=group.device)[:, None]


def remove_from_top(
    order: Tensor, counts: Tensor, removals: Tensor, *, seed: int, images: Tensor, draws: Tensor, apart: bool = False
) -> Tensor:
    """Keep all but a uniformly random subset, of exact size, of the first s features (F-Fidelity, eq. 3, 4 and 6).

    Each draw puts all features of an image in a random order; of the first s features of the order, the `removals`
    that come first in the random order are removed. The random order belongs to the image and the draw
    alone, so that sizes, explainers and both directions share it (common random numbers).

    Args:
        order: [B, F], of `order`, in the direction of the removal.
        counts: [K] or [B, K] numbers s of `removable`, increasing or not.
        removals: likewise, removals <= counts.
        seed: seed of the draws.
        images: [B] identities of the images.
        draws: [N] identities of the draws.
        apart: each size has subsets of its own, see `remove_apart_from_top`.

    Returns:
        keep [B, N, K, F] bool.
    """
    features = order.shape[-1]
    # Numbers of their own: a degraded explanation, a noisy one and a random one have seeds, too.
    stream = counter.stream("subsets", seed)
    turn = counter.bits(stream, images, draws, features)  # [B, N, F], all different: the smallest number comes first
    known, which = counts.to(turn.device).unique(return_inverse=True)
    if apart:
        turn = place(counter.permutations(stream, images, draws, features))
        again = counter.permutations(SHUFFLES, known.new_zeros(1), known, features)[0]  # [counts, F]
    select = _last_turn if counts.ndim == 1 else _last_turn_per_input
    by_relevance = order[:, None, :].expand_as(turn)
    own, ordered = turn, turn.gather(-1, by_relevance)
    keep = torch.empty(*turn.shape[:2], counts.shape[-1], features, dtype=torch.bool, device=turn.device)
    for k, (s, m) in enumerate(zip(counts.unbind(-1), removals.unbind(-1), strict=True)):
        if apart:
            own = again[which[..., k]].view(-1, 1, features).expand_as(turn).gather(-1, turn)
            ordered = own.gather(-1, by_relevance)
        # In the order of relevance the turns of the first s features are a prefix, and the subset's last turn is an
        # order statistic of it: a selection, not a sort per size.
        torch.gt(own, select(ordered, s, m)[..., None], out=keep[:, :, k])
    removals = removals.to(turn.device)
    return keep.logical_or_((remove_top(order, counts) | (removals == 0)[..., None])[:, None])


SHUFFLES = -6148914691236517206
"""The seed of what sizes are shuffled by; with one that is used for draws, a draw and its shuffle could be one."""


def remove_apart_from_top(
    order: Tensor, counts: Tensor, removals: Tensor, *, seed: int, images: Tensor, draws: Tensor
) -> Tensor:
    """As `remove_from_top`, but each size has subsets of its own, of the same law.

    Sizes that share a random order err in the same direction. Here a size shuffles it once more, in a way that belongs
    to the count s alone: the mean over sizes is known better from as many draws, and explainers still share their
    subsets at each size. Arguments and result as there.
    """
    return remove_from_top(order, counts, removals, seed=seed, images=images, draws=draws, apart=True)


def remove_each_from_top(
    order: Tensor, counts: Tensor, removals: Tensor, *, seed: int, images: Tensor, draws: Tensor
) -> Tensor:
    """Keep all but each of the first s features with probability removals / s, so that their number varies.

    What the public code of F-Fidelity does where its paper has a subset of exact size; see `remove_from_top` for the
    arguments and the result.
    """
    chance = removals.double() / counts.double().clamp(min=1)  # [K] or [B, K]
    drawn = counter.uniform(counter.stream("subsets", seed), images, draws, order.shape[-1])  # [B, N, F]
    kept = remove_top(order, counts)[:, None]  # [B, 1, K, F]
    return kept | (drawn[:, :, None, :] >= chance.to(order.device)[..., None, :, None])


def _last_turn(turns: Tensor, count: Tensor, removal: Tensor) -> Tensor:
    """The `removal`-th smallest of the first `count` turns, any where there is none: [B, N, F], [], [] -> [B, N]."""
    if not removal:
        return turns[..., 0]
    first, place = turns[..., : int(count)], int(removal)
    if turns.device.type != "cpu":
        return first.kthvalue(place, dim=-1).values
    # Several times faster than torch's.
    return torch.from_numpy(np.partition(first.numpy(), place - 1, axis=-1)[..., place - 1])


def _last_turn_per_input(turns: Tensor, count: Tensor, removal: Tensor) -> Tensor:
    """As `_last_turn` with another count and removal for each input, [B]; a sort where that one selects."""
    count, removal = (number.to(turns.device)[:, None, None] for number in (count, removal))  # [B, 1, 1]
    outside = torch.arange(turns.shape[-1], device=turns.device) >= count
    ordered = turns.masked_fill(outside, torch.iinfo(turns.dtype).max).sort(dim=-1).values
    return ordered.gather(-1, (removal - 1).clamp(min=0).expand(*turns.shape[:2], 1))[..., 0]
