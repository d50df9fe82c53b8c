"""The cumulative metrics that SaCo is compared with: remove more and more, and watch one number of the model.

With x_k the input without its top 0, 10, ..., 100 % of the features (Wu et al., CVPR 2024, section 4.3):

    AUC     area under the curve of "still predicts y" on x_k                 lower is better
    AOPC    mean over k of  p(y | x) - p(y | x_k)                             higher is better
    LOdds   mean over k of  log-odds(y | x_k) - log-odds(y | x)               lower is better
    Comp    as AOPC, but the least relevant features are removed first        lower is better

All four are arithmetic on a `curve`. What is read off the model is the score's output; the least relevant features
come first in the direction "LeRF":

    AUC   = area(curve(score of faithlab.outputs.correct, a))
    AOPC  = loss(curve(score of faithlab.outputs.probability, a))
    LOdds = -loss(curve(score of faithlab.outputs.log_odds, a))
    Comp  = loss(curve(score of faithlab.outputs.probability, a, direction="LeRF"))

Comprehensiveness has the paper's direction here, and its name; elsewhere (DeYoung et al., 2020) that name means the
loss without the most relevant features, and this is their sufficiency.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from faithlab import masks, stats, validation
from faithlab.engine import Score
from faithlab.metrics.answers import ask

STEPS = tuple(step / 10 for step in range(11))
"""The paper's fractions of removed features: 0, 10, ..., 100 %."""


def curve(
    score: Score,
    attribution: Tensor,
    fractions: Sequence[float] | Tensor = STEPS,
    *,
    direction: masks.Direction = "MoRF",
    present: Tensor | None = None,
) -> Tensor:
    """The score when the most, or the least, relevant features are removed, more at each step.

    Args:
        score: see `faithlab.engine.scorer`.
        attribution: [B, F], on any device; the result is on the same.
        fractions: [K] removed fractions of the features, in either direction.
        direction: "MoRF" removes from the most relevant end, "LeRF" from the least relevant end of the same order.
        present: [B, F] bool, which features an input has; the fractions are of those. None: all.

    Returns:
        [B, K] float64, never NaN.

    Raises:
        ValueError: as `faithlab.masks.order` and `counts`; a score that is NaN or infinite.
    """
    order = masks.order(attribution, present, direction)
    counts = masks.counts(fractions, order.shape[1] if present is None else present.to(order.device).sum(1))
    parts = counts.split(max(1, masks.BUDGET // max(1, order.numel())), -1)
    return torch.cat([ask(score, masks.remove_top(order, part)) for part in parts], 1)


def area(curve: Tensor, fractions: Sequence[float] | Tensor = STEPS) -> Tensor:
    """The area under each input's curve (trapezoids, per unit of the fractions' range), [B].

    Args:
        curve: [B, K], of `curve`.
        fractions: [K], those that it was made with.

    Raises:
        ValueError: another number of fractions than steps, fractions that do not increase, NaN or infinity in a curve.
    """
    return stats.auc(_checked(curve), validation.fractions(fractions))


def loss(curve: Tensor, fractions: Sequence[float] | Tensor = STEPS) -> Tensor:
    """What each input's score loses on average over the steps of its curve, the first of which removes nothing, [B].

    Args:
        curve: [B, K], of `curve`.
        fractions: [K], those that it was made with; the first is 0.

    Raises:
        ValueError: another number of fractions than steps, no step that removes nothing, NaN or infinity in a curve.
    """
    steps = validation.fractions(fractions)
    if _checked(curve).shape[1] != len(steps):
        raise ValueError(
            f"expected a curve of {len(steps)} steps, one for each fraction, but got {curve.shape[1]}; pass the "
            "fractions that the curve was made with"
        )
    if steps[0]:
        raise ValueError(
            f"expected a curve that starts with nothing removed, but its first fraction is {steps[0].item():g}; make "
            "the curve with fractions that begin with 0"
        )
    return (curve[:, :1] - curve).mean(1)


def _checked(curve: Tensor) -> Tensor:
    if not isinstance(curve, Tensor) or curve.ndim != 2:
        came = tuple(curve.shape) if isinstance(curve, Tensor) else type(curve).__name__
        raise ValueError(f"expected a curve per image, [images, steps], but got {came}")
    validation.finite("curve", curve, "make it with faithlab.metrics.deletion.curve")
    return curve
