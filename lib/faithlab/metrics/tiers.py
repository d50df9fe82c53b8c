"""A classifier whose fidelity is known on paper: the influence tiers of F-Fidelity's Theorem 1.

The features of an input fall into tiers of fixed sizes, the most influential first. The probability of a correct
answer depends only on how many features of each tier are kept. Removing m of the top s features at random then removes
a multivariate hypergeometric number from each tier (appendix B), and every fidelity has a closed form.
"""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from faithlab import masks
from faithlab.engine import Score

Response = Callable[[Tensor], Tensor]
"""Kept features per tier [..., T] float64 -> probability of a correct answer [...]."""


def scorer(tier: Tensor, response: Response) -> Score:
    """Return the tier classifier as a score: `tier` [B, F] int64 holds each feature's tier, 0 = most influential."""
    members = torch.nn.functional.one_hot(tier).double()  # [B, F, T]

    def score(keep: Tensor) -> Tensor:
        return response(torch.einsum("bmf,bft->bmt", keep.double(), members)).float()

    return score


def expected_fidelity(
    sizes: Sequence[int],
    response: Response,
    fractions: Tensor,
    *,
    alpha: float = 1.0,
    cap: float | None = None,
) -> Tensor:
    """Return FFid+ of the tier classifier for a perfect ranking, exactly (F-Fidelity, appendix B, eq. 7).

    Args:
        sizes: number of features in each tier, most influential first.
        response: see `Response`.
        fractions: [K] sizes s as fractions of all features.
        alpha: share of the top s that is removed.
        cap: bound on the removed fraction of all features.

    Returns:
        [K] float64.

    Raises:
        ValueError: fractions, alpha or cap outside [0, 1].
    """
    from scipy.stats import multivariate_hypergeom  # takes a second, which most who load the metrics save

    features = sum(sizes)
    counts = masks.counts(fractions, features)
    full = torch.tensor(sizes, dtype=torch.float64)
    losses = []
    for s, m in zip(counts.tolist(), masks.removals(counts, features, alpha, cap).tolist(), strict=True):
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        among = np.clip(s - starts, 0, sizes)  # of each tier, how many are among the top s
        removed = np.array(
            [head for head in itertools.product(*(range(min(n, m) + 1) for n in among)) if sum(head) == m]
        )
        weight = torch.from_numpy(np.atleast_1d(multivariate_hypergeom.pmf(removed, among, m)))
        kept = response(full - torch.from_numpy(removed))
        losses.append(response(full) - (weight * kept).sum())
    return torch.stack(losses)
