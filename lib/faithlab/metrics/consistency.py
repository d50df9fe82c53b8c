"""MeGe and ReCo: what an explanation does when the model had not seen the example (Fel and Vigouroux, 2020).

A training set is cut into k blocks, and model i is trained on all but block i. Every example x is unseen by one model
and seen by the k - 1 others. The distances between the unseen model's explanation of x and each other model's are split
by what the two models answer (eq. 5 and 6):

    S=   both are right                S!=  exactly one is right                ignored: both are wrong

    MeGe = 1 / (1 + mean of S=)                                                                          (eq. 8)
    ReCo = max over thresholds g of TPR(g) + TNR(g) - 1                                                  (eq. 7)

with `rates="balanced"`, the true rates, which the text ("balanced accuracy") and the author's later library use,

    TPR(g) = share of S= that is below g,           TNR(g) = share of S!= that is above g

and with `rates="printed"`, what eq. 7 says, which are precisions:

    TPR(g) = share of S= in all that is below g,    TNR(g) = share of S!= in all that is above g

The thresholds are all that differ: one between each two neighbouring distances. ReCo with balanced rates is the
one-sided Kolmogorov-Smirnov distance between S= and S!=, so that no increasing transformation of the distance changes
it; its area over all thresholds is mean S!= minus mean S=.
"""

from functools import partial
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from faithlab import stats
from faithlab.metrics import register
from faithlab.metrics.distance import Distance, spearman

Rates = Literal["balanced", "printed"]


class Sweep(NamedTuple):
    """The rates at every threshold.

    Attributes:
        below: [t] the distance below each threshold; any number from it up to `above` gives the same rates.
        above: [t] the distance above it.
        tpr: [t] float64.
        tnr: [t] float64.
    """

    below: Tensor
    above: Tensor
    tpr: Tensor
    tnr: Tensor


def to_unseen(explanations: Tensor, unseen: Tensor, distance: Distance) -> Tensor:
    """Return how far each model's explanation of an example is from that of the model which was not trained on it.

    Args:
        explanations: [k, B, H, W], of each model.
        unseen: [B] int64, the model that was not trained on each example.
        distance: see `faithlab.metrics.distance`.

    Returns:
        [B, k] float64; 0 (or NaN) for the unseen model itself, which `split` leaves out, and NaN where the distance is
        not defined.

    Raises:
        ValueError: as the distance.
    """
    examples = torch.arange(explanations.shape[1], device=explanations.device)
    return distance(explanations, explanations[unseen.to(examples.device), examples]).T


def mege(same: Tensor) -> float:
    """Return the mean generalisability (eq. 8): 1 / (1 + mean of S=), NaN where S= is empty."""
    return 1 / (1 + same.double().mean().item())


def sweep(same: Tensor, different: Tensor, rates: Rates = "balanced") -> Sweep:
    """Return the rates of eq. 7 at every threshold that separates two distances, in O(n log n).

    Args:
        same: S=, [n].
        different: S!=, [m].
        rates: "balanced" or "printed", see above.

    Raises:
        ValueError: unknown rates, or a distance that is negative or NaN.
    """
    if rates not in get_args(Rates) or not bool((torch.cat([same, different]) >= 0).all()):
        raise ValueError(f"expected rates {get_args(Rates)} and distances [n] of 0 or more, no NaN, but got {rates!r}")
    same, different = same.double().sort().values, different.double().sort().values
    values = torch.cat([same, different]).unique()
    same_below = torch.searchsorted(same, values[:-1], right=True)
    different_above = len(different) - torch.searchsorted(different, values[:-1], right=True)
    if rates == "balanced":
        positive, negative = len(same), len(different)
    else:
        positive = same_below + len(different) - different_above  # everything below
        negative = len(same) - same_below + different_above  # everything above
    return Sweep(values[:-1], values[1:], same_below.double() / positive, different_above.double() / negative)


def reco(same: Tensor, different: Tensor, rates: Rates = "balanced") -> float:
    """Return the relative consistency (eq. 7).

    NaN where S= or S!= is empty, and with printed rates where all distances are equal.

    With balanced rates it is 1 where a threshold separates the two, and near 0 where they are one distribution (for
    equal distributions it is positive by chance, about 0.63 sqrt(1 / n + 1 / m)). With printed rates one distribution
    scores about the share of the larger set or more.

    Arguments as in `sweep`.
    """
    at = sweep(same, different, rates)
    if not len(same) or not len(different):
        return torch.nan
    # A threshold below or above all distances: its balanced rates are 0 and 1, its printed ones 0 / 0.
    outside = torch.zeros(1 if rates == "balanced" else 0, dtype=torch.float64)
    gain = torch.cat([at.tpr + at.tnr - 1, outside])
    return gain.max().item() if len(gain) else torch.nan


def reco_auc(same: Tensor, different: Tensor, rates: Rates = "balanced") -> float:
    """Return the area under TPR + TNR - 1 over all thresholds (appendix A.2), in the unit of the distance.

    Arguments as in `sweep`.
    """
    at = sweep(same, different, rates)
    if not len(same) or not len(different):
        return torch.nan
    return ((at.above - at.below) * (at.tpr + at.tnr - 1)).sum().item()


_SOURCE, _SAME, _DIFFERENT = "Fel and Vigouroux 2020", {"metric": "S="}, {"metric": "S≠"}
_FOLDS = {"compute": partial(to_unseen, distance=spearman), "ideal": 1.0, "needs": "cross-trained networks"}
_MEGE = stats.Statistic(stats.mege, (_SAME,), "MeGe", within=(0.0, 1.0))
_YOUDEN = stats.Statistic(stats.youden, (_SAME, _DIFFERENT), "ReCo", within=(0.0, 1.0))
register("MeGe", source=f"{_SOURCE}, eq. 8", statistic=_MEGE, **_FOLDS)
register("ReCo", source=f"{_SOURCE}, eq. 7", chance=0.0, statistic=_YOUDEN, **_FOLDS)
