"""Few-class Fidelity: does removing what matters leave the model undecided, and keeping it leave the model sure?

Few-class Fidelity (Marchadour, Soto Vega, Vermet, Hatt: "Few-class Fidelity: Evaluating Explanations of
Real-conditions CNN classifiers with Optimized Perturbations", 2025). With few classes a model that is no longer right
is not undecided: with two it is sure of the other one. So the aim of removal is the probability 1/N, N the number of
classes. Pixels are replaced by those of a perturbed image (`faithlab.baselines.perturbed`) in steps of 1 %, most
important first (MIF) and least important first (LIF); A is the area under the probability of one class over the
replaced share:

    Fid = 1 - (|1 - A_LIF| + |1/N - A_MIF|) / (1 + (N - 1) / N)            in [0, 1], higher is better      (eq. 1)

LIF is the order of MIF read from its end. The class that is followed is the score's target: the predicted class, the
true one, or each in turn.
"""

from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from faithlab import masks, stats
from faithlab.engine import Score
from faithlab.metrics import METRICS, Metric, deletion, register


class Areas(NamedTuple):
    """Areas under the probability.

    Attributes:
        mif: most important first, [B] float64 in [0, 1].
        lif: least important first, likewise.
        classes: of the model, where the score tells (`score.classes`); else None.
    """

    mif: Tensor
    lif: Tensor
    classes: int | None = None


def curve(
    score: Score,
    attribution: Tensor,
    *,
    steps: int = 100,
    direction: masks.Direction = "MoRF",
    present: Tensor | None = None,
) -> Tensor:
    """Return the probability when 0, 1/steps, ..., all of the most, or of the least, important features are replaced.

    Args:
        score: probabilities, see `faithlab.engine.scorer`.
        attribution: [B, F].
        steps: 100 are the paper's steps of 1 %.
        direction: "MoRF", which the paper calls MIF, or "LeRF", its LIF.
        present: [B, F] bool, which features an input has; the steps are of those. None: all.

    Returns:
        [B, steps + 1] float64, never NaN.

    Raises:
        ValueError: as `faithlab.metrics.deletion.curve`, and a score that is no probability.
    """
    found = deletion.curve(score, attribution, _shares(steps), direction=direction, present=present)
    if bool(((found < 0) | (found > 1 + 1e-6)).any()):
        raise ValueError(f"expected probabilities (faithlab.outputs), but got {found.min():.3g} to {found.max():.3g}")
    return found


def area(score: Score, attribution: Tensor, *, steps: int = 100, **which: Any) -> Tensor:
    """Return the area under one curve, [B] float64; arguments and errors as in `curve`."""
    return stats.auc(curve(score, attribution, steps=steps, **which), _shares(steps))


def areas(score: Score, attribution: Tensor, *, steps: int = 100, present: Tensor | None = None) -> Areas:
    """Return both areas of an attribution; arguments and errors as in `curve`."""
    ways = ("MoRF", "LeRF")
    found = (area(score, attribution, steps=steps, direction=way, present=present) for way in ways)
    return Areas(*found, classes=getattr(score, "classes", None))


def fid(areas: Areas, classes: int | None = None) -> Tensor:
    """Return eq. 1, [B] float64 in [0, 1], 1 where MIF stays at 1/N and LIF at 1; never NaN.

    Args:
        areas: of `areas`.
        classes: N, of the model and not of the data alone; None: as the score told.

    Raises:
        ValueError: fewer than two classes, or another number than the model's.
    """
    N = classes or areas.classes or 0
    if N < 2 or areas.classes not in (None, N):
        raise ValueError(f"expected two classes or more, as many as the model's {areas.classes}, but got {N}")
    mif, lif = areas.mif, areas.lif
    return 1 - ((1 - lif).abs() + (1 / N - mif).abs()) / (1 + (N - 1) / N)


def few_class_fidelity(
    score: Score,
    attribution: Tensor,
    classes: int | None = None,
    *,
    steps: int = 100,
    present: Tensor | None = None,
) -> Tensor:
    """Return Few-class Fidelity of each input, [B] float64; arguments and errors as in `curve` and `fid`."""
    return fid(areas(score, attribution, steps=steps, present=present), classes)


def _shares(steps: int) -> Tensor:
    """The replaced shares 0, 1/steps, ..., 1."""
    return torch.arange(steps + 1, dtype=torch.float64) / steps


def replacement_curves(steps: int) -> dict[str, Metric]:
    """Return the metric's two curves, "MIF" and "LIF": the probability at 0, 1/steps, ..., 1 replaced."""
    metric, shares = METRICS["Few-class Fidelity"], [k / steps for k in range(steps + 1)]
    ends: dict[str, masks.Direction] = {"MIF": "MoRF", "LIF": "LeRF"}
    return {
        name: metric.given(compute=partial(_replaced, end=end), sizes=shares, direction=end)
        for name, end in ends.items()
    }


def _replaced(score: Score, attribution: Tensor, sizes: Tensor, *, end: masks.Direction) -> Tensor:
    return curve(score, attribution, steps=len(sizes) - 1, direction=end)


register(
    "Few-class Fidelity",
    few_class_fidelity,
    source="Marchadour et al. 2025, eq. 1",
    baseline="perturbed",
    ideal=1.0,
)
