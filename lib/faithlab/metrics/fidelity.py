"""Fidelity, R-Fidelity and F-Fidelity: one function.

F-Fidelity (Zheng, Shirani, Chen, Lin, Cheng, Guo, Luo: "F-Fidelity: A Robust Framework for Faithfulness Evaluation of
Explainable AI", 2024), with y the label, f the classifier, F features, s the explanation size:

    Fid+(s)  = mean of 1[f(x) = y] - 1[f(x without its top s) = y]                                     (eq. 1)
    Fid-(s)  = mean of 1[f(x) = y] - 1[f(x with only its top s) = y]                                   (eq. 2)
    RFid+(s) = the same, but a random alpha * s of the top s are removed, averaged over draws          (eq. 3)
    RFid-(s) = the same, but a random alpha * (F - s) of the bottom F - s are removed                  (eq. 4)
    FFid     = RFid on a model fine-tuned on random masks, removing at most beta * F                   (eq. 6)

The published metrics are named choices of the arguments of `fidelity`, with the output `faithlab.outputs.correct`:

    Fid+  = fidelity(score, a, s / F)                            Fid-, RFid-, FFid- = the same, direction="LeRF"
    RFid+ = fidelity(score, a, s / F, alpha=0.5, draws=50)
    FFid+ = RFid+ with cap=0.1 on the fine-tuned model

Where the paper's tables say MoRF and LeRF they mean the accuracy that remains, `remaining` in these directions. Both
speak of the same top s features at a size: of equal scores the smaller index comes first in either.
"""

import inspect
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from faithlab import masks, validation
from faithlab import rng as counter
from faithlab.engine import Score
from faithlab.metrics import METRICS, Metric, register
from faithlab.metrics.answers import ask
from faithlab.outputs import correct
from faithlab.stats import MonteCarlo


def remaining(
    score: Score,
    attribution: Tensor,
    fractions: Tensor,
    *,
    direction: masks.Direction = "MoRF",
    alpha: float = 1.0,
    cap: float | None = None,
    draws: int = 1,
    seed: int = 0,
    images: Tensor | None = None,
    present: Tensor | None = None,
    subset: Callable[..., Tensor] = masks.remove_from_top,
) -> MonteCarlo:
    """Return each input's mean score when (some of) its most, or its least, relevant features are removed.

    Args:
        score: see `faithlab.engine.scorer`.
        attribution: [B, F], on any device; the result is on the same.
        fractions: [K] sizes s as fractions of the F features, rounded half up to counts, in both directions.
        direction: "MoRF" removes the top s features (eq. 1 and 3), "LeRF" all but the top s (eq. 2 and 4).
        alpha: share of these s or F - s features that is removed, chosen at random; 1 removes all of them.
        cap: at most this fraction of all F features is removed (beta in eq. 6); None: no bound.
        draws: number N of random subsets to average over; where nothing is random one is enough and is used.
        seed: seed of the subsets, any 64-bit integer.
        images: [B] identities of the images, so that an image meets the same subsets in any batch; None: 0..B-1.
        present: [B, F] bool, which features an input has. All fractions are of those; the others are never removed.
            None: all.
        subset: how the removed ones are chosen: `faithlab.masks.remove_from_top`, a subset of exact size, or
            `faithlab.masks.remove_each_from_top`, each with a probability, as the authors' public code does.

    Returns:
        Mean scores [B, K] float64 over the draws, and their standard errors. No mean is NaN; an error is where a single
        draw leaves it unknown.

    Raises:
        ValueError: an attribution that is no dense tensor of finite numbers; fractions, alpha or cap outside [0, 1];
            fewer than one draw; a score that is NaN or infinite.
    """
    draws = validation.whole("draws", draws, 1)
    order = masks.order(attribution, present, direction)
    features = order.shape[1] if present is None else present.to(order.device).sum(1)
    counts = masks.removable(fractions, features, direction)
    removals = masks.removals(counts, features, alpha, cap)
    identities = counter.identities(len(order), images, order.device)
    mean = torch.empty(len(order), counts.shape[-1], dtype=torch.float64, device=order.device)
    error = torch.zeros_like(mean)
    settled = (removals == counts) | (removals == 0)  # every draw removes the same features: one is enough
    settled = settled.expand(len(order), -1).all(0).cpu()  # [K]
    one_mask = max(1, order.numel())
    for sizes, repeats in ((settled, 1), (~settled, draws)):
        for k in sizes.nonzero().flatten().split(max(1, masks.BUDGET // one_mask)):
            if not len(k):
                continue
            total, squares = torch.zeros_like(mean[:, k]), torch.zeros_like(mean[:, k])
            for part in torch.arange(repeats).split(max(1, masks.BUDGET // (one_mask * len(k)))):
                keep = subset(order, counts[..., k], removals[..., k], seed=seed, images=identities, draws=part)
                answers = ask(score, keep.flatten(1, 2)).unflatten(1, keep.shape[1:3])  # [B, N, K]
                total += answers.sum(1)
                squares += (answers**2).sum(1)
            mean[:, k] = total / repeats
            if repeats > 1:
                error[:, k] = ((squares / draws - mean[:, k] ** 2).clamp(min=0) / (draws - 1)).sqrt()
            elif sizes is not settled:
                error[:, k] = torch.nan  # a single draw does not tell how far another would be
    return MonteCarlo(mean, error)


def fidelity(score: Score, attribution: Tensor, fractions: Tensor, **options) -> MonteCarlo:
    """Return what each input's score loses when (some of) its most, or its least, relevant features are removed.

    Arguments and errors as in `remaining`.

    Returns:
        The losses [B, K] float64, score(all kept) - `remaining`, and their standard errors.
    """
    left = remaining(score, attribution, fractions, **options)
    nothing_removed = torch.ones_like(attribution, dtype=torch.bool)[:, None]  # [B, 1, F]
    return MonteCarlo(ask(score, nothing_removed) - left.value, left.error)


fidelity.__signature__ = inspect.signature(remaining)  # for `Metric.options`


def fidelities(
    families: Sequence[str] = ("Fid", "ROAR", "RFid", "FFid"),
    *,
    size_step: float,
    alpha: float,
    beta: float,
    draws: int,
    seed: int,
) -> dict[str, Metric]:
    """Return the metrics that F-Fidelity compares, from both ends and with the same numbers: "FFid+", "FFid-" etc.

    Args:
        families: which of them.
        size_step: between the sizes, a share.
        alpha: share of the most relevant that R- and F-Fidelity remove, at random.
        beta: share of all features that F-Fidelity removes at most.
        draws: random subsets of each size.
        seed: of them.
    """
    sizes = [k * size_step for k in range(1, round(1 / size_step))]
    drawn = {"alpha": alpha, "draws": draws, "seed": seed}
    own = {"RFid": drawn, "FFid": {**drawn, "cap": beta}}
    return {of + way: METRICS[of + way].given(sizes=sizes, **own.get(of, {})) for way in "+-" for of in families}


SIZES = tuple(step / 20 for step in range(1, 20))
"""5, 10, ..., 95 %: the sizes of F-Fidelity."""

_FF, _ROAR = "Zheng et al. 2024", "Hooker et al. 2019"
for _sign, _way, _better in (("+", "MoRF", 1), ("-", "LeRF", -1)):
    _curve = {"output": correct, "sizes": SIZES, "direction": _way, "better": _better}
    _plain = partial(fidelity, direction=_way)
    _drawn = partial(_plain, alpha=0.5, draws=50)
    _capped = partial(_drawn, cap=0.1)
    register(f"Fid{_sign}", _plain, source=f"{_FF}, eq. {1 if _better > 0 else 2}", family="Fidelity", **_curve)
    register(f"ROAR{_sign}", _plain, source=_ROAR, family="ROAR", network="retrained", **_curve)
    register(f"RFid{_sign}", _drawn, source=f"{_FF}, eq. {3 if _better > 0 else 4}", family="R-Fidelity", **_curve)
    register(f"FFid{_sign}", _capped, source=f"{_FF}, eq. 6", family="F-Fidelity", network="fine-tuned", **_curve)
