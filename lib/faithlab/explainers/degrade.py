"""Explanations made worse by a known amount, so that their true order is known (F-Fidelity, section 5)."""

import torch
from torch import Tensor

from faithlab import draws, masks


def degrade(attribution: Tensor, share: float, *, seed: int = 0, images: Tensor | None = None) -> Tensor:
    """Permute the scores of a random share of the features among themselves, in every image.

    Args:
        attribution: [B, F].
        share: fraction of the features whose scores are permuted; 0 changes nothing, 1 permutes all.
        seed: another seed, other features and another permutation. Larger shares contain smaller ones.
        images: [B] identities of the images; None: 0..B-1.

    Returns:
        [B, F], in every row the same values as before.

    Raises:
        ValueError: a share outside [0, 1].
    """
    features = attribution.shape[1]
    chosen = int(masks.counts(torch.tensor([share]), features))
    identities = draws.identities(len(attribution), images, attribution.device)
    # Draw 0 chooses the features, draw 1 permutes them.
    orders = draws.permutations(seed, identities, torch.arange(2), features)
    source = orders[:, 0, :chosen]  # [B, c]
    turn = masks.place(orders[:, 1]).gather(1, source)
    return attribution.scatter(1, source, attribution.gather(1, source.gather(1, turn.argsort(1))))
