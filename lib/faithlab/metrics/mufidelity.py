"""muFidelity (Bhatt, Weller, Moura, 2020): whether a random subset's relevance says what its removal costs.

As ReCo and MeGe's eq. 1: with S a random subset of an exact share of the features,

    muF = corr over S of (sum of the attribution over S, f(x) - f(x without S))
"""

import torch
from torch import Tensor

from faithlab import draws as counter
from faithlab import masks, stats
from faithlab.engine import Score


def mu_fidelity(
    score: Score,
    attribution: Tensor,
    share: float = 0.15,
    *,
    draws: int = 100,
    seed: int = 0,
    images: Tensor | None = None,
) -> Tensor:
    """Pearson's correlation of attributed and measured importance over random subsets.

    Args:
        score: from `faithlab.engine.scorer`.
        attribution: [B, F], or [B, A, F] of A explainers, for which the model is asked once.
        share: fraction of the features in each subset.
        draws: number of subsets.
        seed: of the subsets; they belong to the image and the draw, and are the same for every explainer.
        images: [B] identities of the images; None: 0..B-1.

    Returns:
        [B] or [B, A] float64; NaN where an attribution, or the score, is the same for every subset.

    Raises:
        ValueError: an attribution with NaN, fewer than two draws, a share that leaves no subset or only one.
    """
    if attribution.ndim not in (2, 3) or bool(attribution.isnan().any()):
        raise ValueError(
            "expected attributions [B, F] or [B, A, F] without NaN, but got "
            f"{tuple(attribution.shape)} with {int(attribution.isnan().sum())} NaN; drop and count these images"
        )
    if draws < 2:
        raise ValueError(f"a correlation needs at least two subsets, but got draws={draws}")
    several = attribution if attribution.ndim == 3 else attribution[:, None]
    several = several.double()
    B, _, F = several.shape
    size = masks.counts(torch.tensor([share]), F)
    if not 0 < int(size) < F:
        raise ValueError(f"a share of {share} of {F} features is {int(size)}: there is only one such subset")
    identities = counter.identities(B, images, attribution.device)
    everything = torch.arange(F, device=attribution.device).expand(B, F)
    whole = torch.tensor([F])
    attributed, answered = [], []
    for part in torch.arange(draws).split(max(1, masks.BUDGET // max(1, B * F))):
        keep = masks.remove_from_top(everything, whole, size, seed=seed, images=identities, draws=part)[:, :, 0]
        attributed.append(several @ (~keep).double().mT)  # [B, A, N]
        answered.append(score(keep).to(several))  # [B, N]
    # The score of the whole input is the same for every subset: without it the correlation is the same.
    correlation = stats.pearson(torch.cat(attributed, -1), -torch.cat(answered, -1)[:, None])
    return correlation if attribution.ndim == 3 else correlation[:, 0]
