"""The explanation size, read off FFid+ curves: the knee that does not move (F-Fidelity, section 4 and appendix D.8).

Let c of the F features carry the explanation. At size s, FFid+ removes m = min(alpha * s, beta * F) of the top s
features, and a perfect ranking puts min(s, c) of the explanation among them: the number removed from the explanation is
hypergeometric with mean m * min(s, c) / s. So a curve over s has two knees, one at s = beta * F / alpha, which moves
with the setting, and one at s = c, which does not.

Both follow from one statement: FFid+ is an increasing function h of how much of the explanation is removed, the same h
for every alpha, beta and s. `explanation_size` looks for the c under which all curves together are explained best by
one increasing h; what is removed elsewhere may add a linear loss, as a background that is not quite irrelevant does.
Nothing else about h is assumed. The limit of this: a second tier that matters almost as much as the first is no
background, and the size drifts towards the two together (with 40 + 40 of 200 features and a linear response, from
0.20 to 0.25 as the second tier's part of the influence goes from 10 to 30 %).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import nnls
from scipy.stats import hypergeom
from torch import Tensor

from faithlab import arguments, masks, stats

_PIECES = 16  # linear pieces of h: enough for any smooth response, few enough for some dozens of points


class Setting(NamedTuple):
    """One FFid+ curve's parameters: alpha, and the cap beta (None: no cap)."""

    alpha: float
    cap: float | None


class Size(NamedTuple):
    """An explanation size.

    Attributes:
        fraction: of the features; NaN where no curve leaves zero, so that there is nothing to read.
        low: lower end of the bootstrap interval over images.
        high: upper end.
        residuals: [C] root mean square misfit of the mean curves at every candidate, in the curves' unit.
        candidates: [C] the sizes considered, as fractions.
    """

    fraction: float
    low: float
    high: float
    residuals: Tensor
    candidates: Tensor


def removed(counts: Tensor, removals: Tensor, size: int) -> Tensor:
    """Expected number of explanation features among the removed, m * min(s, c) / s; [K] float64, 0 where s is 0.

    Raises:
        ValueError: removals and counts of two shapes, or a negative size.
    """
    arguments.whole("size", size, 0)
    if counts.shape != removals.shape:
        raise ValueError(f"expected as many removals as counts {tuple(counts.shape)}, but got {tuple(removals.shape)}")
    counts = counts.double()
    return removals.double() * counts.clamp(max=size) / counts.clamp(min=1)


def explanation_size(
    curves: Tensor,
    fractions: Tensor,
    settings: Sequence[Setting],
    features: int,
    *,
    candidates: Tensor | None = None,
    resamples: int = 200,
    level: float = 0.95,
    seed: int = 0,
) -> Size:
    """The explanation size that all FFid+ curves agree on, with a bootstrap interval over the images.

    Args:
        curves: [B, J, K] FFid+ per image, setting and size, by `faithlab.metrics.fidelity.fidelity`.
        fractions: [K] increasing sizes as fractions of the features, shared by all settings.
        settings: J settings, all computed on one model.
        features: number of features F.
        candidates: [C] sizes to consider; None: `fractions`.
        resamples: bootstrap resamples of the images; 0 gives no interval (NaN).
        level: of the interval, as a fraction.
        seed: of the resamples.

    Returns:
        The size; its resolution is that of the candidates. NaN where nothing is lost anywhere, its interval also where
        there are no resamples.

    Raises:
        ValueError: shapes that do not fit, no image, NaN or infinity in the curves, fewer than three sizes or sizes
            that do not increase, fractions, alpha or cap outside [0, 1], a level outside (0, 1).
    """
    fractions = arguments.fractions(fractions)
    if not bool((fractions.diff() > 0).all()):
        raise ValueError(f"expected increasing sizes, but got {fractions.tolist()}")
    arguments.whole("features", features, 1)
    arguments.number("level", level, "between 0 and 1", lambda v: 0 < v < 1)
    if curves.ndim != 3 or curves.shape[1:] != (len(settings), len(fractions)) or len(fractions) < 3:
        raise ValueError(
            f"expected curves [images, {len(settings)} settings, {len(fractions)} sizes] with at least three sizes, "
            f"but got {tuple(curves.shape)}"
        )
    arguments.whole("images", len(curves), 1)
    arguments.finite("curves", curves, "drop these images and count them")
    candidates = fractions if candidates is None else arguments.fractions(candidates)
    curves = curves.double().cpu().flatten(1)  # [B, J * K]
    weights = torch.ones(1, len(curves), dtype=torch.float64)
    if arguments.whole("resamples", resamples, 0):
        generator = torch.Generator().manual_seed(seed)
        weights = torch.cat([weights, stats.bootstrap(len(curves), resamples, generator)])
    means = (weights @ curves / len(curves)).numpy()  # [1 + resamples, J * K]; row 0 is the sample itself

    counts = masks.counts(fractions, features)
    misfit = np.stack(
        [
            _misfit(_design(counts, settings, features, size), means)
            for size in masks.counts(candidates, features).clamp(min=1).tolist()
        ],
        axis=1,
    )  # [1 + resamples, C]
    residuals = torch.from_numpy(np.sqrt(misfit[0] / curves.shape[1]))
    if not (means[0] > 0).any():
        return Size(np.nan, np.nan, np.nan, residuals, candidates)
    best = candidates[torch.from_numpy(misfit.argmin(1))]
    # A resample in which nothing is lost has no size to read.
    best[torch.from_numpy(~(means > 0).any(1))] = torch.nan
    tail = (1 - level) / 2
    low, high = (torch.nanquantile(best[1:], q).item() if resamples else np.nan for q in (tail, 1 - tail))
    return Size(best[0].item(), low, high, residuals, candidates)


def readings(
    means: Tensor, fractions: Tensor, settings: Sequence[Setting], features: int, candidates: Tensor
) -> Tensor:
    """The explanation size of many sets of mean curves, such as those of resampled images.

    As in `explanation_size`, but between two candidates: where the parabola through the misfits of the best candidate
    and of its neighbours is lowest. A bootstrap whose resamples all pick one candidate would have no spread.

    Args:
        means: [R, J, K] mean FFid+ of each setting and size.
        fractions: [K] as in `explanation_size`, like the following.
        settings: J settings.
        features: number of features.
        candidates: [C] evenly spaced sizes to consider.

    Returns:
        [R] float64; NaN where nothing is lost anywhere, or a mean is NaN.
    """
    means, counts = means.double().flatten(1).numpy(), masks.counts(fractions, features)
    known = np.isfinite(means).all(1) & (means > 0).any(1)
    found = np.full(len(means), np.nan)
    designs = [
        _design(counts, settings, features, size) for size in masks.counts(candidates, features).clamp(min=1).tolist()
    ]
    if known.any():
        misfit = np.stack([_misfit(design, means[known]) for design in designs], 1)  # [R, C]
        at = misfit.argmin(1)
        rows, middle = np.arange(len(at)), at.clip(1, len(designs) - 2)
        before, best, after = (misfit[rows, middle + step] for step in (-1, 0, 1))
        bend = before - 2 * best + after
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = np.where((at == middle) & (bend > 0), (before - after) / (2 * bend), 0.0)
        spacing = float(candidates[1] - candidates[0])
        found[known] = candidates.numpy()[at] + spacing * shift
    return torch.from_numpy(found)


def _design(counts: Tensor, settings: Sequence[Setting], features: int, size: int) -> np.ndarray:
    """What each coefficient contributes to each point of the curves: [J * K, pieces + 1].

    The first columns are the expected steps of a piecewise linear h under the exact hypergeometric law of the removed
    explanation features, the last one is the expected number of other removed features.
    """
    removals = torch.stack([masks.removals(counts, features, *setting) for setting in settings]).numpy()  # [J, K]
    s = np.broadcast_to(counts.numpy(), removals.shape).ravel()
    m = removals.ravel()
    inside = np.minimum(s, size)
    most = int(np.minimum(m, inside).max())
    number = np.arange(most + 1)
    law = hypergeom.pmf(number[None], s[:, None].clip(1), inside[:, None], m[:, None])  # [J * K, most + 1]
    knots = np.unique(np.linspace(0, most, _PIECES + 1).round())
    steps = np.clip((number[:, None] - knots[None, :-1]) / np.diff(knots)[None], 0, 1)  # [most + 1, pieces]
    elsewhere = (m - law @ number)[:, None] / features
    return np.concatenate([law @ steps, elsewhere], axis=1)


def _misfit(design: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Residual sum of squares of the best non-negative coefficients for every row of means, [1 + resamples]."""
    # The problem's size is that of the coefficients, not of the curves, once the design is triangular.
    q, r = np.linalg.qr(design)
    inside = means @ q  # [R, coefficients]
    # Of curves without noise the difference may be rounded below zero.
    outside = ((means**2).sum(1) - (inside**2).sum(1)).clip(min=0)
    return np.array([nnls(r, row)[1] ** 2 + rest for row, rest in zip(inside, outside, strict=True)])
