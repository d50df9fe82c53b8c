"""The cumulative metrics that SaCo is compared with: remove more and more, and watch one number of the model.

With x_k the input without its top 0, 10, ..., 100 % of the features (Wu et al., CVPR 2024, section 4.3):

    AUC     area under the curve of "still predicts y" on x_k                 lower is better
    AOPC    mean over k of  p(y | x) - p(y | x_k)                             higher is better
    LOdds   mean over k of  log-odds(y | x_k) - log-odds(y | x)               lower is better
    Comp    as AOPC, but the least relevant features are removed first        lower is better

All four are arithmetic on a `curve`. What is read off the model is the score's readout; the least relevant features
come first in the direction "LeRF":

    AUC   = area(curve(score of faithlab.readouts.hit, a))
    AOPC  = loss(curve(score of faithlab.readouts.probability, a))
    LOdds = -loss(curve(score of faithlab.readouts.log_odds, a))
    Comp  = loss(curve(score of faithlab.readouts.probability, a, direction="LeRF"))

Comprehensiveness has the paper's direction here, and its name; elsewhere (DeYoung et al., 2020) that name means the
loss without the most relevant features, and this is their sufficiency.
"""

from collections.abc import Sequence

from torch import Tensor

from faithlab import masks, stats
from faithlab.engine import Score

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
        attribution: [B, F].
        fractions: [K] removed fractions of the features, in either direction.
        direction: "MoRF" removes from the most relevant end, "LeRF" from the least relevant end of the same order.
        present: [B, F] bool, which features an input has; the fractions are of those. None: all.

    Returns:
        [B, K] float64.

    Raises:
        ValueError: NaN in the attribution, fractions outside [0, 1], an unknown direction.
    """
    order = masks.order(attribution, present, direction)
    counts = masks.counts(fractions, order.shape[1] if present is None else present.sum(1))
    return score(masks.remove_top(order, counts)).double()


def area(curve: Tensor, fractions: Sequence[float] | Tensor = STEPS) -> Tensor:
    """The area under each input's curve [B, K] (trapezoids, per unit of the fractions' range), [B]."""
    return stats.auc(curve, fractions)


def loss(curve: Tensor) -> Tensor:
    """What each input's score loses on average over the steps of its curve [B, K], whose first removes nothing, [B]."""
    return (curve[:, :1] - curve).mean(1)
