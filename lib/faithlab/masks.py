"""From an attribution to the features that are kept: orders, cumulative masks, random subsets of an exact size.

A keep-mask is boolean, True = kept. Sizes are counts of features; `counts` and `removals` turn fractions into counts
by one rule, used by the metrics and by the closed form they are tested against.
"""

from typing import Literal

import torch
from torch import Tensor

from faithlab import draws as counter

Direction = Literal["MoRF", "LeRF"]
"""Which end of an attribution's order goes first: the most relevant features or the least relevant ones."""

BUDGET = 1 << 25
"""Elements (bytes) of the keep-masks that a metric makes at a time: sizes and draws are cut into parts of at most this,
or of one mask per image where that is more. With the orders beside them, a metric's memory is a small multiple of
max(BUDGET, images x features x 8 bytes), whatever the number of sizes and draws."""


def order(attribution: Tensor, present: Tensor | None = None, direction: Direction = "MoRF") -> Tensor:
    """Features from most to least relevant: [B, F] -> [B, F] int64; of equal scores the smaller index comes first.

    LeRF is the same order read from its end, so that the two agree on what the top s features are. The order of the
    negated attribution is another one wherever scores are equal.

    Args:
        attribution: [B, F].
        present: [B, F] bool, which features an input has (a text has no more tokens than it is long); those it has
            not come last in both directions, whatever their score. None: all.
        direction: "MoRF", the most relevant first, or "LeRF", the least relevant first.

    Raises:
        ValueError: the attribution is not [B, F] or holds a NaN; an unknown direction.
    """
    _check_direction(direction)
    if attribution.ndim != 2:
        raise ValueError(
            f"expected an attribution per feature, [images, features], but got shape {tuple(attribution.shape)}; "
            "pool a map over its segments with faithlab.segments.pool"
        )
    if bool(attribution.isnan().any()):
        broken = attribution.isnan().any(-1).nonzero().flatten().tolist()
        raise ValueError(
            f"the attribution of {len(broken)} of {len(attribution)} images holds NaN (first: image {broken[0]}); "
            "drop these images and count them, or mend the explainer"
        )
    order = attribution.argsort(dim=-1, descending=True, stable=True)
    if present is None:
        return order if direction == "MoRF" else order.flip(-1)
    order = order.gather(-1, (~present.gather(-1, order)).byte().argsort(dim=-1, stable=True))
    if direction == "MoRF":
        return order
    features = order.shape[-1]
    # From the last feature that an input has to its first; below zero begin those that it has not.
    return order.gather(-1, (present.sum(-1, keepdim=True) - 1 - torch.arange(features).to(order.device)) % features)


def place(order: Tensor) -> Tensor:
    """The place of each feature in an order, 0 = first: the inverse permutation, [..., F] int64."""
    places = torch.arange(order.shape[-1], device=order.device).expand_as(order)
    return torch.empty_like(order).scatter_(-1, order, places)


def counts(fractions: Tensor, features: int | Tensor) -> Tensor:
    """Fractions of the features as counts, rounded half up: [K] -> [K] int64, or [B, K] for features [B].

    Raises:
        ValueError: a fraction outside [0, 1].
    """
    fractions = torch.as_tensor(fractions, dtype=torch.float64)
    if not bool(((fractions >= 0) & (fractions <= 1)).all()):
        raise ValueError(f"expected fractions between 0 and 1, but got {fractions.tolist()}")
    # The small term keeps 0.29 * 100 = 28.999999999999996 from counting as less than 29.
    return (_per_input(features) * fractions.to(_device(features)) + 0.5 + 1e-9).floor().long()


def removable(fractions: Tensor, features: int | Tensor, direction: Direction = "MoRF") -> Tensor:
    """How many features may be removed at a size: the top s (MoRF), or all but the top s (LeRF); int64 like `counts`.

    Both directions speak of the same top s, that of `counts`: F - s is not the size of the fraction 1 - s / F, which
    rounds halves the other way. In the order of the same direction (see `order`) they are the first ones.
    """
    _check_direction(direction)
    sizes = counts(fractions, features)
    return sizes if direction == "MoRF" else _per_input(features).to(sizes) - sizes


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
    for name, value in (("alpha", alpha), ("cap", cap)):
        if value is not None and not 0 <= value <= 1:
            raise ValueError(f"expected {name} between 0 and 1, but got {value}")
    removed = (alpha * counts.double() + 0.5 + 1e-9).floor().long()
    return removed if cap is None else removed.minimum((cap * _per_input(features) + 1e-9).floor().long())


def _check_direction(direction: str) -> None:
    if direction not in ("MoRF", "LeRF"):
        raise ValueError(
            f'expected direction "MoRF", most relevant first, or "LeRF", least relevant first, but got {direction!r}'
        )


def _per_input(features: int | Tensor) -> Tensor:
    """Numbers of features as float64, [] or [B, 1]."""
    number = torch.as_tensor(features, dtype=torch.float64)
    return number[:, None] if number.ndim else number


def _device(features: int | Tensor) -> torch.device:
    return torch.as_tensor(features).device


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
        ValueError: fewer than one group, or more groups than features.
    """
    features = order.shape[-1]
    if not 1 <= groups <= features:
        raise ValueError(f"expected between 1 and {features} groups, one per feature at most, but got {groups}")
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
    order: Tensor, counts: Tensor, removals: Tensor, *, seed: int, images: Tensor, draws: Tensor
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

    Returns:
        keep [B, N, K, F] bool.
    """
    features = order.shape[-1]
    small = torch.int16 if features <= torch.iinfo(torch.int16).max else torch.int32
    shuffled = counter.permutations(seed, images, draws, features)  # [B, N, F] features in random order
    turn = place(shuffled).to(small)  # [B, N, F] when each feature's turn comes
    # In the order of relevance the turns of the first s features are a prefix, and the subset's last turn is an order
    # statistic of it: a selection, not a sort per size.
    by_relevance = turn.gather(-1, order[:, None, :].expand_as(turn))
    select = _last_turn if counts.ndim == 1 else _last_turn_per_input
    sizes = zip(counts.unbind(-1), removals.unbind(-1), strict=True)
    last = torch.stack([select(by_relevance, s, m) for s, m in sizes], dim=-1)  # [B, N, K]
    return remove_top(order, counts)[:, None] | (turn[:, :, None, :] > last[..., None])


def remove_each_from_top(
    order: Tensor, counts: Tensor, removals: Tensor, *, seed: int, images: Tensor, draws: Tensor
) -> Tensor:
    """Keep all but each of the first s features with probability removals / s, so that their number varies.

    What the public code of F-Fidelity does where its paper has a subset of exact size; see `remove_from_top` for the
    arguments and the result.
    """
    chance = removals.double() / counts.double().clamp(min=1)  # [K] or [B, K]
    drawn = counter.uniform(seed, images, draws, order.shape[-1])  # [B, N, F]
    kept = remove_top(order, counts)[:, None]  # [B, 1, K, F]
    return kept | (drawn[:, :, None, :] >= chance.to(order.device)[..., None, :, None])


def _last_turn(turns: Tensor, count: Tensor, removal: Tensor) -> Tensor:
    """The `removal`-th smallest of the first `count` turns, -1 for none: [B, N, F], [], [] -> [B, N]."""
    if not removal:
        return torch.full_like(turns[..., 0], -1)
    return turns[..., : int(count)].kthvalue(int(removal), dim=-1).values


def _last_turn_per_input(turns: Tensor, count: Tensor, removal: Tensor) -> Tensor:
    """As `_last_turn` with another count and removal for each input, [B]; a sort where that one selects."""
    count, removal = (number.to(turns.device)[:, None, None] for number in (count, removal))  # [B, 1, 1]
    outside = torch.arange(turns.shape[-1], device=turns.device) >= count
    ordered = turns.masked_fill(outside, turns.shape[-1]).sort(dim=-1).values
    at = (removal - 1).clamp(min=0).expand(*turns.shape[:2], 1)
    return torch.where(removal > 0, ordered.gather(-1, at), -1)[..., 0]
