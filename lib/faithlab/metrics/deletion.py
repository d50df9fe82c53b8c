"""The cumulative metrics that SaCo is compared with: remove more and more, and watch one number of the model.

With x_k the input without its top 0, 10, ..., 100 % of the features (Wu et al., CVPR 2024, section 4.3):

    AUC     area under the curve of "still predicts y" on x_k                 lower is better
    AOPC    mean over k of  p(y | x) - p(y | x_k)                             higher is better
    LOdds   mean over k of  log-odds(y | x_k) - log-odds(y | x)               lower is better
    Comp    as AOPC, but the least relevant features are removed first        lower is better

They are `auc`, `aopc`, `mean_change` and `comprehensiveness` of a score of `faithlab.outputs.correct` (AUC), `log_odds`
(LOdds) or `probability`.

Comprehensiveness has the paper's direction here, and its name; elsewhere (DeYoung et al., 2020) that name means the
loss without the most relevant features, and this is their sufficiency.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from faithlab import masks, stats, validation
from faithlab.engine import Score
from faithlab.metrics import register
from faithlab.metrics.answers import ask
from faithlab.outputs import correct, log_odds

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
    """Return the score when the most, or the least, relevant features are removed, more at each step.

    Args:
        score: see `faithlab.engine.scorer`.
        attribution: [B, F], on any device; the result is on the same.
        fractions: [K] removed fractions of the features, in either direction.
        direction: "MoRF" removes from the most relevant end, "LeRF" from the least relevant end of the same order.
        present: [B, F] bool, which features an input has; the fractions are of those. None: all.

    Returns:
        [B, K] float64, never NaN.

    Raises:
        ValueError: an attribution that is no dense tensor of finite numbers, fractions outside [0, 1], a score that is
            NaN or infinite.
    """
    order = masks.order(attribution, present, direction)
    counts = masks.counts(fractions, order.shape[1] if present is None else present.to(order.device).sum(1))
    parts = counts.split(max(1, masks.BUDGET // max(1, order.numel())), -1)
    return torch.cat([ask(score, masks.remove_top(order, part)) for part in parts], 1)


def area(curve: Tensor, fractions: Sequence[float] | Tensor = STEPS) -> Tensor:
    """Return the area under each input's `curve` [B, K] at its fractions (trapezoids, per unit of their range), [B]."""
    return stats.auc(curve, validation.fractions(fractions))


def loss(curve: Tensor) -> Tensor:
    """Return each input's mean loss over the steps of its `curve` [B, K], the first of which removes nothing, [B]."""
    return (curve[:, :1] - curve).mean(1)


def auc(score: Score, attribution: Tensor, *, present: Tensor | None = None) -> Tensor:
    """Return AUC, [B]: `area` of a `curve`, whose arguments and errors it has."""
    return area(curve(score, attribution, present=present))


def aopc(score: Score, attribution: Tensor, *, present: Tensor | None = None) -> Tensor:
    """Return AOPC, [B]: `loss` of a `curve`, whose arguments and errors it has.

    >>> aopc(lambda keep: keep.float().mean(-1), torch.tensor([[3.0, 1.0, 2.0, 0.0]]))
    tensor([0.5000], dtype=torch.float64)
    """
    return loss(curve(score, attribution, present=present))


def mean_change(score: Score, attribution: Tensor, *, present: Tensor | None = None) -> Tensor:
    """Return LOdds of a score of log-odds, [B]: -`aopc`."""
    return -aopc(score, attribution, present=present)


def comprehensiveness(score: Score, attribution: Tensor, *, present: Tensor | None = None) -> Tensor:
    """Return Comp, [B]: as `aopc`, with the least relevant features removed first."""
    return loss(curve(score, attribution, direction="LeRF", present=present))


_SHARED = {"source": "Wu et al. 2024, section 4.3", "baseline": "mean", "exact": True}
register("AUC", auc, output=correct, better=-1, direction="MoRF", **_SHARED)
register("AOPC", aopc, direction="MoRF", **_SHARED)
register("LOdds", mean_change, output=log_odds, better=-1, direction="MoRF", **_SHARED)
register("Comp.", comprehensiveness, better=-1, direction="LeRF", **_SHARED)
