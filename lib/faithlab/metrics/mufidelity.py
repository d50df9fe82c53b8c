"""muFidelity (Bhatt, Weller, Moura, 2020): whether a random subset's relevance says what its removal costs.

As ReCo and MeGe's eq. 1: with S a random subset of an exact share of the features,

    muF = corr over S of (sum of the attribution over S, f(x) - f(x without S))
"""

import torch
from torch import Tensor

from faithlab import masks, stats, validation
from faithlab import rng as counter
from faithlab.engine import Score
from faithlab.metrics import register
from faithlab.metrics.answers import ask
from faithlab.outputs import logit


def mu_fidelity(
    score: Score,
    attribution: Tensor,
    share: float = 0.15,
    *,
    draws: int = 100,
    seed: int = 0,
    images: Tensor | None = None,
    present: Tensor | None = None,
) -> Tensor:
    """Return Pearson's correlation of attributed and measured importance over random subsets.

    Args:
        score: from `faithlab.engine.scorer`.
        attribution: [B, F], or [B, A, F] of A explainers, for which the model is asked once.
        share: fraction of the features in each subset.
        draws: number of subsets.
        seed: of the subsets; they belong to the image and the draw, and are the same for every explainer.
        images: [B] identities of the images; None: 0..B-1.
        present: [B, F] bool, which features an input has; the share and the subsets are of those. None: all.

    Returns:
        [B] or [B, A] float64, on the attribution's device; NaN where an attribution, or the score, is the same for
        every subset, as where a share leaves an input no subset or only one, and nowhere else.

    Raises:
        ValueError: an attribution that is no dense tensor of finite numbers, a share outside [0, 1], a score
            that is NaN or infinite.
    """
    validation.attribution(attribution, dimensions=(2, 3))
    several = attribution if attribution.ndim == 3 else attribution[:, None]
    several = several.detach().double()
    B, _, F = several.shape
    blank = torch.zeros(B, F, device=attribution.device)
    own = torch.tensor([F]) if present is None else present.to(blank.device).sum(1, keepdim=True)
    size = masks.counts([share], F if present is None else own[:, 0])
    alone = (size == 0) | (size == own)  # no subset, or only one
    identities = counter.identities(B, images, attribution.device)
    everything = masks.order(blank, present)  # those that are there first
    attributed, answered = [], []
    for part in torch.arange(draws).split(max(1, masks.BUDGET // max(1, 8 * B * F))):  # random numbers take 8 bytes
        keep = masks.remove_from_top(everything, own, size, seed=seed, images=identities, draws=part)[:, :, 0]
        attributed.append(several @ (~keep).double().mT)  # [B, A, N]
        answered.append(ask(score, keep))  # [B, N]
    # The score of the whole input is the same for every subset: without it the correlation is the same.
    correlation = stats.pearson(torch.cat(attributed, -1), -torch.cat(answered, -1)[:, None])
    correlation = correlation.masked_fill(alone.view(-1, 1).to(correlation.device), torch.nan)
    return correlation if attribution.ndim == 3 else correlation[:, 0]


register(
    "µFidelity", mu_fidelity, source="Fel and Vigouroux 2020, eq. 1", output=logit, chance=0.0, ideal=1.0, exact=True
)
