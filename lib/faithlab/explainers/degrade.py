"""Explanations made worse by a known amount, so that their true order is known (F-Fidelity, section 5)."""

import torch
from torch import Tensor

from faithlab import masks, rng, validation


def degrade(
    attribution: Tensor,
    share: float,
    *,
    seed: int = 0,
    images: Tensor | None = None,
    present: Tensor | None = None,
) -> Tensor:
    """Permute the scores of a random share of the features among themselves, in every image.

    Args:
        attribution: [B, F].
        share: fraction of the features whose scores are permuted; 0 changes nothing, 1 permutes all.
        seed: another seed, other features and another permutation. Larger shares contain smaller ones.
        images: [B] identities of the images; None: 0..B-1.
        present: [B, F] bool, which features an input has: the share is of those, the others keep their scores.
            None: all.

    Returns:
        [B, F], in every row the same values as before.

    Raises:
        ValueError: a share outside [0, 1], an attribution that is not [B, F], boolean, NaN or infinite.
    """
    validation.attribution(attribution)
    present = validation.present(present, attribution)
    features = attribution.shape[1]
    own = torch.full(attribution.shape[:1], features, device=attribution.device) if present is None else present.sum(1)
    chosen = masks.counts([validation.share("share", share)], own)  # [B, 1]
    identities = rng.identities(len(attribution), images, attribution.device)
    # Draw 0 chooses the features, draw 1 permutes them.
    orders = rng.permutations(rng.stream("degrade", seed), identities, torch.arange(2), features)
    source = orders[:, 0]  # [B, F], the chosen ones first
    if present is not None:
        source = source.gather(1, (~present.gather(1, source)).byte().argsort(dim=1, stable=True))
    places = torch.arange(features, device=source.device).expand_as(source)
    turn = masks.place(orders[:, 1]).gather(1, source)
    # Those that are not chosen come last, in their own order: they stay.
    turn = torch.where(places < chosen, turn, features + places)
    return attribution.scatter(1, source, attribution.gather(1, source.gather(1, turn.argsort(1))))
