"""How well a metric ranks explainers whose true order is known (F-Fidelity, section 5).

A metric gives each of L explainers a curve over K sparsities. The explainers' true quality is known because they are
one explainer degraded by known amounts. Three comparisons: MoRF against the truth (ideal -1: the better the explainer,
the lower the accuracy without its top features), LeRF against the truth (ideal +1), MoRF against LeRF (ideal -1).
"""

from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor

from faithlab import stats


class Spread(NamedTuple):
    """Mean and standard deviation over the sparsities that have a value, and how many have none."""

    mean: float
    std: float
    missing: int


def macro_correlation(curves: Tensor, other: Tensor, fractions: Tensor) -> float:
    """Spearman correlation of the areas under the curves with a truth or with another metric's areas.

    Args:
        curves: [L, K], a curve per explainer.
        other: [L] true quality, or [L, K] the other metric's curves.
        fractions: [K] sparsities.

    Returns:
        The correlation; NaN where a side is constant, and nowhere else.

    Raises:
        ValueError: shapes that do not fit, sparsities that do not increase, a curve or truth that is NaN or infinite.
    """
    _check(curves, other)
    areas = stats.auc(other, fractions) if other.ndim == 2 else other
    return stats.spearman(_without_rounding(stats.auc(curves, fractions)), _without_rounding(areas)).item()


def micro_correlations(curves: Tensor, other: Tensor) -> Tensor:
    """Spearman correlation over the explainers at each sparsity: [K] float64.

    Arguments, missing values and errors as in `macro_correlation`.
    """
    _check(curves, other)
    other = other if other.ndim == 2 else other[:, None].expand_as(curves)
    return stats.spearman(_without_rounding(curves.T), _without_rounding(other.T))


def spread(values: Tensor) -> Spread:
    """Mean and (population) standard deviation of values [K], leaving out NaN and counting them; both NaN without any.

    Raises:
        ValueError: an infinite value.
    """
    if bool(values.isinf().any()):
        raise ValueError(f"expected values that are finite or missing, but {int(values.isinf().sum())} are infinite")
    present = values[~values.isnan()]
    if not len(present):
        return Spread(float("nan"), float("nan"), values.numel())
    return Spread(present.mean().item(), present.std(correction=0).item(), values.numel() - present.numel())


def micro_rank(correlations: Tensor, ideal: float) -> Tensor:
    """Rank of each metric at each sparsity, 1 = nearest to the ideal; equal metrics share the better rank.

    Args:
        correlations: [metrics, K] micro correlations.
        ideal: +1 or -1, the direction that is right.

    Returns:
        [metrics, K] float64; NaN where a metric has no correlation, and nowhere else.

    Raises:
        ValueError: correlations that are not [metrics, K] or outside [-1, 1], an ideal that is neither 1 nor -1.
    """
    if ideal not in (1, -1):
        raise ValueError(f"expected an ideal of 1 or -1, but got {ideal!r}")
    if correlations.ndim != 2 or bool((correlations.abs() > 1 + 1e-9).any()):
        raise ValueError(
            f"expected correlations [metrics, sizes] between -1 and 1, but got shape {tuple(correlations.shape)}"
            + (f" up to {correlations.abs().max():.3g}" if correlations.numel() else "")
        )
    strength = _without_rounding(-ideal * correlations.double()).numpy()
    ranks = rankdata(strength, method="min", axis=0, nan_policy="omit")
    return torch.from_numpy(np.asarray(ranks, dtype=np.float64))


def _check(curves: Tensor, other: Tensor) -> None:
    if curves.ndim != 2 or other.shape not in (curves.shape, curves.shape[:1]):
        raise ValueError(
            f"expected curves [explainers, sizes] and a truth [explainers] or other such curves, but got "
            f"{tuple(curves.shape)} and {tuple(other.shape)}"
        )
    for name, values in (("curves", curves), ("truth", other)):
        if not bool(values.isfinite().all()):
            raise ValueError(f"expected {name} of finite numbers, but {int((~values.isfinite()).sum())} are not")


def _without_rounding(values: Tensor) -> Tensor:
    """Values that are equal on paper made equal: sums in another order differ in their last bits, ranks must not."""
    return values.double().round(decimals=9)
