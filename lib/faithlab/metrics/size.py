"""The explanation size, read off FFid+ curves, or refused (F-Fidelity, section 4 and appendix D.8).

At size s, FFid+ removes m = min(alpha * s, beta * F) of the top s of F features at random. Where a ranking puts an
explanation of c features first, min(s, c) of it are among the top s, and the number removed from it is hypergeometric
with mean m * min(s, c) / s. So a curve over s has two knees, one at s = beta * F / alpha, which moves with the setting,
and one at s = c, which does not. The second is the explanation size.

Of any ranking, FFid+ sees the *gain curve* G(s) alone, the relevance accumulated in the first s places: it is E h(K)
with E K = m * G(s) / s and an unknown h, the same for every setting and size. Three things follow.

- Noise in the ranking and relevance that decays look the same. What is read is the size of the ranking's top *block*:
  of the explanation where features change places at random, less where noise thins the block out.
- G has no scale: of a random ranking, of equal relevance everywhere and of an explanation larger than the sweep it is a
  straight line. None of them has a size.
- One setting cannot tell h from G. Two caps or more can, where their m * G(s) / s overlap.

`read` therefore names a size only if relevance that ends, flat or decaying before its end, explains the curves better
than relevance that fades out (ramp, exponential, power law, logistic, cosine) and than none that is ranked, each tested
by regenerating curves from that null; if it explains them at all; if the interval begins and ends inside the sweep; and
if it says something. Otherwise it says why not.
"""

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.special import ndtr
from torch import Tensor

from faithlab import masks, stats, validation
from faithlab.engine import Score
from faithlab.metrics import METRICS, Metric
from faithlab.metrics.fidelity import fidelity
from faithlab.scores import Label, Scores

LEAST_ROWS = 20
"""Fewer images (draws of one image) are not resampled: a bootstrap of them is no measure of anything."""

GRID = 0.01
"""The step between the sizes that are tried."""

_SIGNIFICANCE = 0.05
_WIDEST = 1.5  # the upper end of an interval over its lower one
_MISFIT, _EXCESS = 0.05, 0.007  # the first alone would refuse for a misfit that only many images can see
_KNOTS = np.array([0, 0.05, 0.1, 0.16, 0.23, 0.31, 0.41, 0.54, 0.72, 1.0])  # of h, as shares of the most removed


class Setting(NamedTuple):
    """One FFid+ curve's parameters: alpha, and the cap beta (None: no cap)."""

    alpha: float
    cap: float | None

    @property
    def metric(self) -> str:
        """What FFid+ with them is called in tables."""
        return f"FFid+, α {self.alpha:g}, " + ("no cap" if self.cap is None else f"β {self.cap:g}")


SETTINGS = (*(Setting(0.5, cap) for cap in (0.025, 0.05, 0.1, 0.15, 0.2)), Setting(0.3, 0.1), Setting(1.0, 0.1))
"""A sweep of caps, and two other alphas."""

SIZES = tuple(round(0.03 * k, 2) for k in range(1, 21))


@dataclass(frozen=True, eq=False)
class Size:
    """The explanation size read off FFid+ curves.

    Attributes:
        fraction: the explanation size, of the features; NaN where it is refused.
        low: lower end of its 95 % interval over the images, or over the draws of one image; NaN where it is refused.
        high: upper end.
        refusal: why no size is named; empty where one is.
        block: where the relevance begins and ends to fall: the two are equal where the knee is sharp.
        smooth: p-value of the best smooth decay: how often curves made from it have a knee that is as much better.
        flat: the same of a straight gain curve, that of a random ranking.
        misfit: p-value of the best knee itself: how often curves made from it fit it as badly.
        excess: root mean square by which the curves miss the best knee beyond their noise.
        curves: [J, K] mean FFid+.
        errors: [J, K] their standard errors.
        fits: [J, K] curves by the best of each family: "knee", "smooth", "flat".
        gone: [J, K] relevance removed by the best knee, over that of the whole block: what the curves collapse on.
        fractions: [K] sizes as fractions of the features.
        settings: J settings.
        rows: images, or draws of one image.
    """

    fraction: float
    low: float
    high: float
    refusal: str
    block: tuple[float, float]
    smooth: float
    flat: float
    misfit: float
    excess: float
    curves: Tensor = field(repr=False)
    errors: Tensor = field(repr=False)
    fits: dict[str, Tensor] = field(repr=False)
    gone: Tensor = field(repr=False)
    fractions: Tensor = field(repr=False)
    settings: tuple[Setting, ...] = field(repr=False)
    rows: int

    def refused(self, why: str) -> "Size":
        """The same without a size, for a reason that these curves do not show."""
        return replace(self, fraction=np.nan, low=np.nan, high=np.nan, refusal=why)

    def __str__(self) -> str:
        return f"no size: {self.refusal}" if self.refusal else f"{self.fraction:.2f} [{self.low:.2f}, {self.high:.2f}]"


def law(
    fractions: Tensor | Sequence[float],
    setting: Setting,
    tiers: Sequence[float],
    weights: Sequence[float],
    noise: float = 0.0,
) -> Tensor:
    """Return FFid+ in closed form where the response is linear: the removed share of all relevance, m * G(s) / s.

    The interactive figure of the book draws the same. Sizes are shares and are not rounded to whole features; what is
    beyond the tiers has no relevance.

    Args:
        fractions: [K] sizes s as shares of the features.
        setting: alpha and the cap.
        tiers: the share of the features that each tier has, most influential first; at most 1 together.
        weights: relevance of one feature of each tier, some of it above 0.
        noise: share of the features whose place in the ranking is random.

    Returns:
        [K] float64.
    """
    s = validation.fractions(fractions)
    ends = torch.tensor([0.0, *tiers], dtype=torch.float64).cumsum(0)
    inside = (s[:, None].minimum(ends[1:]) - ends[:-1]).clamp(min=0)  # [K, T] of each tier, what is among the top s
    weight = torch.tensor(weights, dtype=torch.float64)
    total = (ends.diff() * weight).sum()
    gain = (1 - noise) * (inside @ weight) / total + noise * s
    removed = setting.alpha * s
    if setting.cap is not None:
        removed = removed.clamp(max=setting.cap)
    return torch.where(s > 0, removed * gain / s.clamp(min=1e-12), 0.0)


def holds(low: ArrayLike, high: ArrayLike, truth: ArrayLike) -> np.ndarray:
    """Return whether an interval that was read holds a known size; none does where no size was named (NaN).

    The ends lie on the grid of the sizes that are tried, and the truth need not: it is held to half a step.

    Args:
        low: the interval's lower end, or a column of them.
        high: its upper end.
        truth: the known size, a share of the features.

    Returns:
        bool, of the shape of what was given.
    """
    low, high, truth = np.asarray(low), np.asarray(high), np.asarray(truth)
    return (low - GRID / 2 - 1e-9 <= truth) & (truth <= high + GRID / 2 + 1e-9)


def explanation_size(
    score: Score,
    attribution: Tensor,
    fractions: Tensor | Sequence[float] = SIZES,
    settings: Sequence[Setting] = SETTINGS,
    *,
    draws: int | None = None,
    seed: int = 0,
    images: Tensor | None = None,
) -> Size:
    """Return how large the explanation of one image, or of many, is: evaluate FFid+, and read the size or refuse it.

    Args:
        score: of an output between 0 and 1, `faithlab.outputs.correct` as in the paper or `probability`, on the network
            that was fine-tuned on random masks: see `faithlab.task.Task.score`.
        attribution: [B, F].
        fractions: [K] increasing sizes as fractions of the features.
        settings: J settings, two caps or more.
        draws: random subsets for each image, setting and size; None: 2, of one image 200.
        seed: of the subsets.
        images: [B] identities of the images, see `faithlab.metrics.fidelity.remaining`; None: 0..B-1.

    Returns:
        The size of what the images have in common. Of one image its own, with an interval over the draws, which knows
        nothing of how far the image's own is from what we know to explain it, and holds that less often than 95 %.

    Raises:
        ValueError: as `faithlab.metrics.fidelity.fidelity` and `read`.
    """
    one, features = len(attribution) == 1, attribution.shape[1]
    draws = draws or (200 if one else 2)
    ask, asked, repeats = score, attribution, draws
    if one:  # its draws are the rows: copies of the image with random numbers of their own
        asked, images, repeats = attribution.expand(draws, -1), torch.arange(draws), 1

        def ask(keep: Tensor) -> Tensor:
            return score(keep.flatten(0, 1)[None])[0].view(keep.shape[:2])

    # Sizes and settings with subsets of their own err independently, which is what the reading counts on.
    apart = {"subset": masks.remove_apart_from_top, "draws": repeats, "images": images}
    curves = [
        fidelity(ask, asked, validation.fractions(fractions), **setting._asdict(), seed=seed + j, **apart).value
        for j, setting in enumerate(settings)
    ]
    return read(torch.stack(curves, 1), fractions, settings, features)


def sweep(settings: Sequence[Setting], sizes: Sequence[float] | Tensor, *, draws: int, seed: int) -> dict[str, Metric]:
    """Return FFid+ with each setting, by its name, as `faithlab.metrics.evaluate` takes metrics.

    Sizes and settings have random subsets of their own, so that they err independently, as `read` expects it.

    Args:
        settings: of the curves.
        sizes: [K] fractions of the features.
        draws: random subsets of each image, setting and size.
        seed: of the first setting's subsets; the next has the next.
    """
    apart = METRICS["FFid+"].given(sizes=sizes, draws=draws, subset=masks.remove_apart_from_top)
    return {s.metric: apart.given(alpha=s.alpha, cap=s.cap, seed=seed + j) for j, s in enumerate(settings)}


def curves(scores: Scores, settings: Sequence[Setting], **labels: Label) -> Tensor:
    """Return the scores of `sweep` as `read` takes them, [images, J, K] float64, one network after another.

    Args:
        scores: the long table.
        settings: of the curves.
        **labels: of the scores, such as the explainer.
    """
    each = [scores.where(metric=s.metric, **labels).blocks for s in settings]
    return torch.stack([torch.cat([block.values for block in blocks]).double() for blocks in each], 1)


def stretch(name: str, size: float, settings: Sequence[Setting], sizes: Tensor) -> stats.Statistic:
    """Return the statistic: how much FFid+ changes over a stretch of its curve, from its first size to its last.

    For an explanation of known size the law names three (theorem 1 and appendix D.8): up to the smaller one of that
    size and the knee cap / alpha the curve rises, from the larger one on it falls, and between them it stays. It is the
    mean over the settings whose curves have at least two sizes there.

    Args:
        name: "rise", "flat" or "fall".
        size: the known size, a fraction of the features.
        settings: of the curves, as `sweep` asks them, each with a cap.
        sizes: [K] fractions of the features.

    Raises:
        ValueError: no setting has such a stretch.
    """
    ends = []
    for setting in settings:
        low, high = sorted((size, setting.cap / setting.alpha))
        first, last = {"rise": (0.0, low), "flat": (low, high), "fall": (high, 1.0)}[name]
        at = ((sizes >= first - 1e-9) & (sizes <= last + 1e-9)).nonzero().flatten().tolist()
        if len(at) > 1:
            ends.append((setting, at[0], at[-1]))

    def change(*samples: stats.Sample) -> Tensor:
        means = [sample.mean() for sample in samples]
        return torch.stack([m[:, last] - m[:, first] for m, (_, first, last) in zip(means, ends, strict=True)]).mean(0)

    return stats.Statistic(change, tuple({"metric": s.metric} for s, *_ in ends), name)


def read(
    curves: Tensor,
    fractions: Tensor | Sequence[float],
    settings: Sequence[Setting],
    features: int,
    *,
    resamples: int = 160,
    seed: int = 0,
) -> Size:
    """Return the size of the top block that all FFid+ curves agree on, with an interval over the rows, or a refusal.

    Gain curves are fitted by least squares, each with an h of nine linear pieces: of relevance that ends (flat, with a
    ramp, or decaying before), that fades out, and the straight line. The interval joins a profile that is calibrated by
    the bootstrap with the bootstrap's percentiles.

    Args:
        curves: [B, J, K] FFid+ per image, setting and size, by `faithlab.metrics.fidelity.fidelity`.
        fractions: [K] increasing sizes as fractions of the features, shared by all settings.
        settings: J settings, all computed on one model.
        features: number of features F.
        resamples: bootstrap resamples of the images.
        seed: of the resamples.

    Raises:
        ValueError: shapes that do not fit, no image, NaN in the curves or losses beyond 1, fewer than three sizes,
            sizes that do not increase, or one cap for all settings.
    """
    curves, counts, removals = _checked(curves, fractions, settings, features)
    n, shape = len(curves), removals.shape
    flat = curves.flatten(1).numpy()
    mean, error = flat.mean(0), flat.std(0, ddof=min(1, n - 1)) / n**0.5
    about = {
        "curves": torch.from_numpy(mean).view(shape),
        "errors": torch.from_numpy(error).view(shape),
        "fractions": validation.fractions(fractions),
        "settings": tuple(settings),
        "rows": n,
    }
    refusal = ""
    if n < LEAST_ROWS:
        refusal = f"{n} images, or draws of one, are too few: at least {LEAST_ROWS}"
    elif not (mean > 0).any() or not flat.std(0).any():
        refusal = "no removal changes what the model answers"
    if refusal:
        unknown = torch.full(shape, torch.nan, dtype=torch.float64)
        fits = dict.fromkeys(("knee", "smooth", "flat"), unknown)
        nothing = dict.fromkeys(("fraction", "low", "high", "smooth", "flat", "misfit", "excess"), np.nan)
        return Size(**nothing, refusal=refusal, block=(np.nan, np.nan), fits=fits, gone=unknown, **about)

    models = _models(tuple(counts.tolist()), tuple(map(tuple, removals.tolist())), features)
    fit = _Fit(models, flat)
    weights = stats.bootstrap(n, resamples, torch.Generator().manual_seed(seed)).numpy()
    deviation = fit.whiten @ (weights / weights.sum(1, keepdims=True) @ flat - mean).T  # [JK, R]
    apart = fit.apart(deviation)
    misfit = (fit.curves**2).sum() - (fit.inside**2).sum(1) + fit.extra  # [M]
    ended, smooth = models.ended, models.smooth
    best = {name: of.start + misfit[of].argmin() for name, of in models.families.items() if of.start < of.stop}
    best["ended"] = misfit[ended].argmin()
    best["smooth"] = smooth.start + misfit[smooth].argmin()

    def p_value(null: slice, centres: Sequence[str]) -> float:
        """How often curves regenerated from a null are explained as much better by an end; of several the largest."""
        better, p = misfit[null].min() - misfit[ended].min(), []
        for centre in centres:
            fitted = fit.fitted(best[centre])
            by_chance, as_ended = (fit.again(fitted, deviation, apart, of).min(0) for of in (null, ended))
            p.append((1 + (by_chance - as_ended >= better).sum()) / (1 + resamples))
        return max(p)

    p = {"flat": p_value(models.families["flat"], ["flat"])}
    p["smooth"] = p_value(
        smooth, [name for name, of in models.families.items() if smooth.start <= of.start < smooth.stop]
    )
    anyhow = models.anyhow  # a second tier widens the interval, it does not make an end
    i = misfit[anyhow].argmin()
    again = fit.again(fit.fitted(i), deviation, apart, anyhow)
    sizes, own = np.unique(models.c[anyhow], return_inverse=True)
    profile = np.array([misfit[anyhow][own == k].min() for k in range(len(sizes))])
    chance = np.stack([again[own == k].min(0) for k in range(len(sizes))])
    allowed = np.quantile(chance[own[i]] - chance.min(0), 0.95)
    inside = sizes[profile - profile.min() <= allowed]
    resampled = models.c[anyhow][fit.again(fit.curves, deviation, apart, anyhow).argmin(0)]
    low, high = np.quantile(resampled, [0.025, 0.975])
    low, high = min(inside.min(), low), max(inside.max(), high)
    fits_badly = float((again.min(0) >= misfit[i]).mean())
    excess = fit.unit * np.sqrt(max(0.0, misfit[i] - again.min(0).mean()) / flat.shape[1])

    c, w = models.c[i], models.w[i] * (models.family[i] == "knee")
    first, last = float(max(counts[0], 1)) / features, float(about["fractions"][-1])
    if p["flat"] >= _SIGNIFICANCE:
        refusal = f"a random ranking explains the curves as well (p = {_printed(p['flat'])})"
    elif p["smooth"] >= _SIGNIFICANCE:
        refusal = "the ranking has no sharp knee: a smooth decay explains the curves as well "
        refusal += f"(p = {_printed(p['smooth'])})"
    elif fits_badly < _MISFIT and excess > _EXCESS:
        refusal = f"no gain curve explains the curves: the best misses them by {excess:.3f} beyond their noise"
    elif low <= max(sizes[0], first) + 1e-9:
        refusal = f"it may be smaller than the sweep shows, which begins at {first:.2f}"
    elif high >= sizes[-1] - 1e-9:
        refusal = f"it may be larger than the sweep, which ends at {last:.2f}"
    elif high > _WIDEST * low:
        refusal = f"the interval says too little: the size may be {low:.2f} or {high:.2f}"
    named = (c, low, high) if not refusal else (np.nan,) * 3
    mu = models.gone[i] / (features * models.gain[i].max())
    return Size(
        *(float(v) for v in named),
        refusal=refusal,
        block=(float(c * (1 - w)), float(c * (1 + w))),
        misfit=fits_badly,
        excess=float(excess),
        fits={
            k: torch.from_numpy(np.linalg.solve(fit.whiten, fit.fitted(best[of]))).view(shape)
            for k, of in {"knee": "ended", "smooth": "smooth", "flat": "flat"}.items()
        },
        gone=torch.from_numpy(mu).view(shape),
        **{k: float(v) for k, v in p.items()},
        **about,
    )


def _printed(p: float) -> str:
    """A p-value with so many digits that it does not seem to be on the other side of the level."""
    return f"{p:.3f}" if abs(p - _SIGNIFICANCE) < 0.01 else f"{p:.2f}"


def readings(
    curves: Tensor,
    weights: Tensor,
    fractions: Tensor | Sequence[float],
    settings: Sequence[Setting],
    features: int,
    *,
    blocks: bool = False,
) -> Tensor:
    """Return the size at which the best knee stands, for many weightings of the images, as a bootstrap needs it.

    Arguments as in `read`, which says whether there is a knee at all; this says where it would be.

    Args:
        curves: [B, J, K].
        weights: [R, B], not negative.
        fractions: [K].
        settings: J settings.
        features: number of features.
        blocks: the explanation's inside is known to be in random order: its relevance cannot decay before it ends.

    Returns:
        [R] float64; NaN where nothing is lost in any weighted mean.
    """
    curves, counts, removals = _checked(curves, fractions, settings, features)
    flat, weights = curves.flatten(1).numpy(), weights.double().cpu().numpy()
    found = np.full(len(weights), np.nan)
    means = weights @ flat / weights.sum(1, keepdims=True)
    known = (means > 0).any(1)
    if not flat.std(0).any() or not known.any():
        return torch.from_numpy(found)
    models = _models(tuple(counts.tolist()), tuple(map(tuple, removals.tolist())), features).by_size(blocks)
    sizes, starts = np.unique(models.c, return_index=True)
    fit = _Fit(models, flat)
    for rows in np.array_split(np.flatnonzero(known), 1 + known.sum() // 256):
        projected = fit.project(fit.whiten @ means[rows].T)  # [M, P, R]
        explained = np.maximum.reduceat((projected**2).sum(1) - fit.extra[:, None], starts)  # [C, R]
        at, column = explained.argmax(0), np.arange(len(rows))
        middle = at.clip(1, len(sizes) - 2)
        before, best, after = (explained[middle + step, column] for step in (-1, 0, 1))
        # Between two sizes, or all resamples would agree on one: where the parabola through three is highest.
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = np.where(
                (at == middle) & (2 * best > before + after), (after - before) / (2 * best - before - after), 0
            )
        found[rows] = sizes[at] + (sizes[1] - sizes[0]) * shift.clip(-1, 1) / 2
    return torch.from_numpy(found)


def knee(
    settings: Sequence[Setting], sizes: Tensor | Sequence[float], features: int, *, blocks: bool = False
) -> stats.Statistic:
    """Return the statistic: the size at which the best knee of the curves of all settings stands, see `readings`.

    Args:
        settings: of the curves, as `sweep` asks them.
        sizes: [K] fractions of the features.
        features: number of features.
        blocks: see `readings`.
    """

    def stands(*samples: stats.Sample) -> Tensor:
        curves = torch.stack([sample.values for sample in samples], 1)
        return readings(curves, samples[0].weights, sizes, settings, features, blocks=blocks)

    return stats.Statistic(stands, tuple({"metric": s.metric} for s in settings), "explanation size", steps=True)


_SHAPES = {
    "knee": lambda x, w: ((1 + w - x) / max(2 * w, 1e-9)).clip(0, 1),
    "fading": lambda x, tau: np.exp(-x / tau) * (x < 1),
    "stairs": lambda x, k: (x < 1) + 0.2 * ((x >= 1) & (x < k)),
    "ramp": lambda x, w: ((1 + w - x) / (2 * w)).clip(0, 1),
    "exponential": lambda x, tau: np.exp(-x / tau),
    "power": lambda x, k: (1 + x) ** -k,
    "logistic": lambda x, w: (1 + np.exp(-1 / w)) / (1 + np.exp((x - 1) / w)),
    "cosine": lambda x, half: (1 + np.cos(np.pi * np.minimum(x, 2 * half) / (2 * half))) / 2,
    "flat": lambda x, _: np.ones_like(x),
}
"""Relevance density by place in the ranking, in units of the size; the first three end there, the next fade out."""
_FADES = ("ramp", "exponential", "power", "logistic", "cosine")


@dataclass(frozen=True, eq=False)
class _Models:
    """Gain curves: a density of `_SHAPES` that begins at 1 and ends at, or falls to, b."""

    family: np.ndarray  # [M] in the order of `_SHAPES`
    c: np.ndarray  # [M]
    w: np.ndarray  # [M] half-width of a knee's ramp over c, or another parameter of the shape
    gain: np.ndarray  # [M, JK] G at every size, as a share of the features
    gone: np.ndarray  # [M, JK] expected relevance that is removed
    designs: np.ndarray  # [M, JK, P] expected pieces of h

    @functools.cached_property
    def families(self) -> dict[str, slice]:
        """Where each lies: what is taken of a part is no copy."""
        ends = np.searchsorted([*map([*_SHAPES].index, self.family)], range(len(_SHAPES) + 1))
        return {name: slice(*ends[k : k + 2]) for k, name in enumerate(_SHAPES)}

    @property
    def ended(self) -> slice:
        """All whose relevance ends."""
        return slice(0, self.families["stairs"].start)

    @property
    def anyhow(self) -> slice:
        """The same, and those with a weaker tier behind the end."""
        return slice(0, self.families["ramp"].start)

    @property
    def smooth(self) -> slice:
        """All whose relevance fades out."""
        return slice(self.anyhow.stop, self.families["flat"].start)

    def by_size(self, blocks: bool) -> "_Models":
        """All that have an end, or of them those that do not decay before it, in the order of where it stands."""
        which = self.c[self.anyhow].argsort(kind="stable")
        which = which[self.family[which] != "fading"] if blocks else which
        return _Models(*(getattr(self, name)[which] for name in self.__dataclass_fields__))

    @functools.cached_property
    def basis(self) -> np.ndarray:
        """Of the designs, [M, JK, P]: all readings of a sweep share it."""
        return _basis(self.designs)


@functools.lru_cache(maxsize=4)
def _models(counts: tuple[int, ...], removals: tuple[tuple[int, ...], ...], features: int) -> _Models:
    """All gain curves that are tried on a sweep, and what each makes of it."""
    m = np.asarray(removals, float).ravel()
    s = np.tile(np.asarray(counts, float), len(removals)).clip(1)
    first, longest = max(counts[0], 1) / features, counts[-1] / features
    # No size is tried that ends before the first measured one: no curve would show how it ends.
    sizes = np.arange(max(0.04, min(np.ceil(100 * first - 1e-9) / 100, 0.5 * longest)), 0.94 * longest, GRID).round(2)
    scales, levels = longest * np.geomspace(0.05, 2, 30), (0, 0.05, 0.12, 0.2, 0.3, 0.45, 0.65)
    tried = {  # sizes, parameters of the shape, levels b
        "knee": (sizes, (0, 0.4), levels),
        "fading": (sizes, (2, 1, 0.6, 0.4), (0, 0.05, 0.12)),
        "stairs": (sizes, (1.5, 2, 3), (0, 0.05)),
        "ramp": (sizes, (0.75, 1.0), levels[::2]),
        "exponential": (scales, (1,), (0, 0.05, 0.12, 0.3)),
        "power": (scales[::2], (1, 2, 4), (0, 0.05, 0.12, 0.3)),
        "logistic": (sizes[::2], (0.25, 0.45), (0, 0.07, 0.2, 0.45)),
        "cosine": (sizes[::2], (1,), (0, 0.07, 0.2, 0.45)),
        "flat": ((1.0,), (0,), (1.0,)),
    }
    found = [
        (name, c, w, b)
        for name, parameters in tried.items()
        for c, w, b in itertools.product(*parameters)
        if name != "fading" or b < 0.6 * np.exp(-1 / w)  # else there is no end
    ]
    family = np.array([name for name, *_ in found])
    c, w, b = np.array([numbers for _, *numbers in found]).T
    places = (np.arange(1000) + 0.5) / 1000
    density = np.array([level + (1 - level) * _SHAPES[name](places / size, of) for name, size, of, level in found])
    upto = np.concatenate([np.zeros((len(c), 1)), density.cumsum(1) / 1000], axis=1)
    below = np.minimum((1000 * s / features).astype(int), 999)
    gain = upto[:, below] + (s / features - below / 1000) * density[:, below]  # [M, JK]
    share = gain * features / s
    # b in place of the block's rest means misplaced features: the top then is relevant in part, and K spreads more.
    relevant = (c / (c + b * (1 - np.minimum(c, 1))))[:, None]
    left = (1 - m / np.maximum(s, (c * features)[:, None])).clip(0)
    spread = np.sqrt(m * share * (1 - relevant * share).clip(0) / relevant * left + 1e-6)
    gone = m * share
    knots = _KNOTS * gone.max(1)[:, None, None]  # [M, 1, knots]
    z = (gone[..., None] - knots) / spread[..., None]
    hinge = spread[..., None] * (z * ndtr(z) + np.exp(-z * z / 2) / np.sqrt(2 * np.pi))  # E max(K - knot, 0)
    designs = (hinge[..., :-1] - hinge[..., 1:]) / np.diff(knots)
    return _Models(family, c, w, gain, gone, designs)


class _Fit:
    """Least squares of every model at once, in units in which the means are independent and of variance 1.

    Attributes:
        whiten: [JK, JK] what makes these units.
        curves: [JK] the means in them.
        inside: [M, P] their coordinates in every model.
        unit: what 1 is in the curves' own unit.
        extra: [M] what counts against every model.
    """

    def __init__(self, models: _Models, rows: np.ndarray):
        n, points = rows.shape
        mean = rows.mean(0)
        coordinates = mean @ models.basis
        i = (coordinates**2).sum(1).argmax()
        # A pilot: variances as of hits at their measured level, and one correlation for all pairs. The measured
        # covariance itself is too noisy to be inverted.
        p = (models.basis[i] @ coordinates[i]).clip(0.5 / n, 1 - 0.5 / n)
        apart = rows - mean
        variance = p * (1 - p) * (apart**2).mean() / (p * (1 - p)).mean()
        z = apart / np.sqrt(variance)
        alike = np.clip(((z.sum(1) ** 2).sum() / (z**2).sum() - 1) / (points - 1), 0, 0.95)
        each, together = (1 - alike) ** -0.5, (1 - alike + alike * points) ** -0.5
        scale, shared = np.sqrt(n / variance), (together - each) / points
        self.whiten = (each * np.eye(points) + shared) * scale
        self.unit = np.sqrt(variance.mean() / n * (1 - alike))
        self.curves = self.whiten @ mean
        # The designs in these units, without a product with `whiten` for each of thousands of models.
        designs = models.designs * (each * scale)[:, None]
        designs += shared / each * designs.sum(1, keepdims=True)
        self._basis = _basis(designs)
        # Of shapes that explain the curves alike the block is preferred: a decay has a parameter more (BIC).
        self.extra = np.log(n) * (models.family == "fading")
        self.inside = self.curves @ self._basis
        self._rows = self._basis.transpose(0, 2, 1).reshape(-1, points).astype(np.float32)

    def fitted(self, model: int) -> np.ndarray:
        """The best curves of a model, [JK]."""
        return self._basis[model] @ self.inside[model]

    def project(self, curves: np.ndarray) -> np.ndarray:
        """Coordinates [M, P, R] of curves [JK, R] in every model, float32: only resamples are looked at so."""
        return (self._rows @ curves.astype(np.float32)).reshape(len(self._basis), -1, curves.shape[1])

    def apart(self, deviation: np.ndarray) -> np.ndarray:
        """The misfit [M, R] of every model to deviations [JK, R] alone."""
        return (deviation**2).sum(0) - (self.project(deviation) ** 2).sum(1) + self.extra[:, None]

    def again(self, centre: np.ndarray, deviation: np.ndarray, apart: np.ndarray, which: slice) -> np.ndarray:
        """The misfit [m, R] of some models to curves `centre` [JK] + `deviation` [JK, R], itself `apart` [M, R]."""
        basis = self._basis[which]
        rest = (centre - (basis @ (centre @ basis)[..., None])[..., 0]).astype(np.float32)  # [m, JK]
        return (rest**2).sum(1)[:, None] + 2 * rest @ deviation.astype(np.float32) + apart[which]


def _basis(designs: np.ndarray) -> np.ndarray:
    """Orthonormal columns [M, JK, P] that span each design; zero where a piece of h is never reached."""
    # Of pieces that are nearly the same, which lie side by side, eigenvalues tell how many count, and not rounding.
    values, vectors = np.linalg.eigh(designs.transpose(0, 2, 1) @ designs)
    counts = values > 1e-11 * values[:, -1:]
    return designs @ (vectors * (counts / np.sqrt(np.where(counts, values, 1)))[:, None])


def _checked(
    curves: Tensor, fractions: Tensor | Sequence[float], settings: Sequence[Setting], features: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The curves [B, J, K] in float64, counts [K] and removals [J, K]."""
    fractions = validation.fractions(fractions, "sizes")
    shape, caps = (len(settings), len(fractions)), {setting.cap for setting in settings}
    if curves.ndim != 3 or curves.shape[1:] != shape or min(len(curves), len(caps) - 1, len(fractions) - 2) < 1:
        raise ValueError(f"expected curves of three sizes and two caps or more, not {tuple(curves.shape)}, caps {caps}")
    if not bool((fractions.diff() > 0).all() and (curves.abs() <= 1 + 1e-6).all()):
        raise ValueError(f"expected increasing sizes, not {fractions.tolist()}, and losses from -1 to 1 without NaN")
    counts = masks.counts(fractions, features)
    removals = torch.stack([masks.removals(counts, features, *setting) for setting in settings])
    return curves.double().cpu(), counts, removals
