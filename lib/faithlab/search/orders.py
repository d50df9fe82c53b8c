"""Orders of features: random ones, their neighbours, and the attribution that an order stands for."""

from collections.abc import Callable

import torch
from torch import Tensor

from faithlab import masks, rng

Neighbour = Callable[[Tensor, int], tuple[Tensor, Tensor, Tensor]]
"""Three uniform numbers [..., 3] and F -> the place that each place's feature comes from [..., F], and the range of
places low..high [...] outside of which nothing moves."""


def random_orders(images: Tensor, features: int, *, seed: int, count: int = 1) -> Tensor:
    """Uniformly random orders to start from, [B, count, F]; `images` [B] are identities."""
    # Draws below 0, where no step of a search draws.
    return rng.permutations(seed, images, -1 - torch.arange(count, device=images.device), features)


def heat_map(order: Tensor, alpha: float = 2.0) -> Tensor:
    """Return an attribution with a given order: ((rank / F) ^ alpha), rank F = most relevant, [B, F] float32.

    Args:
        order: [B, F], most relevant first.
        alpha: above 0, how much of it stands out; the paper's figures take 2.
    """
    features = order.shape[-1]
    return ((features - masks.place(order)) / features) ** alpha


def swap(u: Tensor, features: int) -> tuple[Tensor, Tensor, Tensor]:
    """Two features change places, see `Neighbour`."""
    low, high = two(u, features)
    at = torch.arange(features, device=u.device).expand(*low.shape, -1)
    source = torch.where(at == low[..., None], high[..., None], torch.where(at == high[..., None], low[..., None], at))
    return source, low, high


def vertex_insertion(u: Tensor, features: int) -> tuple[Tensor, Tensor, Tensor]:
    """One feature moves to another place, see `Neighbour`."""
    low, high = two(u, features)
    # One of the two ends of the range moves to the other: blocks of one and of the rest change places.
    return _exchange_blocks(low, torch.where(u[..., 2] < 0.5, low + 1, high), high, features)


def block_insertion(u: Tensor, features: int) -> tuple[Tensor, Tensor, Tensor]:
    """A block of features moves, see `Neighbour`."""
    low, high = two(u, features)
    return _exchange_blocks(low, low + 1 + ((high - low) * u[..., 2]).long(), high, features)


def block_reverse(u: Tensor, features: int) -> tuple[Tensor, Tensor, Tensor]:
    """A block of features is turned round, see `Neighbour`."""
    low, high = two(u, features)
    at = torch.arange(features, device=u.device).expand(*low.shape, -1)
    inside = (at >= low[..., None]) & (at <= high[..., None])
    return torch.where(inside, (low + high)[..., None] - at, at), low, high


NEIGHBOURS: dict[str, Neighbour] = {
    "swap": swap,
    "vertex insertion": vertex_insertion,
    "block insertion": block_insertion,
    "block reverse": block_reverse,
}
"""The neighbour sets that the paper compares (section 4, appendix B.4). All touch the prefixes between two places."""


def two(u: Tensor, features: int) -> tuple[Tensor, Tensor]:
    """Two different places, the lower first, uniform over all pairs."""
    one = (u[..., 0] * features).long()
    other = (one + 1 + (u[..., 1] * (features - 1)).long()) % features
    return torch.minimum(one, other), torch.maximum(one, other)


def _exchange_blocks(low: Tensor, cut: Tensor, high: Tensor, features: int) -> tuple[Tensor, Tensor, Tensor]:
    """The places low..cut-1 and cut..high change places, each in its own order."""
    at = torch.arange(features, device=low.device).expand(*low.shape, -1)
    seam = (low + high + 1 - cut)[..., None]  # where the second block now ends
    moved = torch.where(at < seam, at + (cut - low)[..., None], at - (high + 1 - cut)[..., None])
    inside = (at >= low[..., None]) & (at <= high[..., None])
    return torch.where(inside, moved, at), low, high
