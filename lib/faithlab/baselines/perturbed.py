"""Images that leave a classifier undecided: the perturbed baselines of Few-class Fidelity.

Few-class Fidelity (Marchadour, Soto Vega, Vermet, Hatt: "Few-class Fidelity: Evaluating Explanations of
Real-conditions CNN classifiers with Optimized Perturbations", 2025) replaces removed pixels by those of a *perturbed
image*, chosen per image, once, for all explainers. With N classes, y the probabilities of a candidate x':

    U = mean over the classes of |1/N - y_c|                                                                   (eq. 2)
    discarded where U > Delta = min(0.1, N / 40)                                                               (eq. 3)
    S = MSE(x, x') / (max x - min x)^2                                                                         (eq. 4)
    P = U + 10 / Delta * S, the lowest wins                                                                    (eq. 5)

Where every candidate is discarded the one of the lowest U is taken, and counted (`Perturbed.fallback`).

The candidates are 33 chains with 12 to 80 widths of a Gaussian blur each, 804 in all. The paper names the parts and
the totals, not the grid; this is ours (m is the mean of each channel; range and histogram are matched to the source in
each channel):

    operation            place              adjustment                  chains   widths each   candidates
    none                                    none, range or histogram         3            80          240
    square x^2           before or after    none, range or histogram         6            22          132
    root                 before or after    none, range or histogram         6            12           72
    difference |x - m|   before or after    none, range or histogram         6            36          216
    product m x          before or after    none, range or histogram         6            12           72
    quotient x / m       before or after    none, range or histogram         6            12           72

The 80 widths are a geometric sequence from 1 % to 50 % of the image's shorter side; a chain with fewer takes them
evenly from these, so that each source is blurred once per width for all chains.

Some chains are one and the same on any image (`ORIGINAL`). A blur and a factor commute; a factor is undone by range
matching; an increasing operation after the blur is undone by histogram matching. So 650 of the 804 are different.
"""

import itertools
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from scipy.ndimage import gaussian_filter1d
from torch import Tensor

Answer = Callable[[Tensor], Tensor]
"""Images [n, C, H, W] with intensities as they are stored -> probabilities [n, N] of all classes."""

BUDGET = 1 << 27
"""Elements of the candidates made at a time; one image's candidates are always made together."""

WIDTHS = np.geomspace(0.01, 0.5, 80)
"""Standard deviations of the blur, as fractions of the shorter side."""


class Candidate(NamedTuple):
    """One alteration of an image.

    Attributes:
        operation: "none", "square", "root", "difference", "product" or "quotient".
        place: "before" or "after" the blur; "" without an operation.
        adjustment: to the source, at the end: "none", "range" or "histogram".
        width: of the blur, an index into `WIDTHS`.
    """

    operation: str
    place: str
    adjustment: str
    width: int


_OPERATIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "none": lambda x, m: x,
    "square": lambda x, m: x**2,
    "root": lambda x, m: x.sqrt(),
    "difference": lambda x, m: (x - m).abs(),
    "product": lambda x, m: x * m,
    # A channel whose mean is zero is zero, and stays so.
    "quotient": lambda x, m: x / m.clamp(min=torch.finfo(x.dtype).tiny),
}
_WIDTHS_OF = {"none": 80, "square": 22, "root": 12, "difference": 36, "product": 12, "quotient": 12}
_ADJUSTMENTS = ("none", "range", "histogram")

CANDIDATES = tuple(
    Candidate(operation, place, adjustment, int(width))
    for operation, count in _WIDTHS_OF.items()
    for place in (("",) if operation == "none" else ("before", "after"))
    for adjustment in _ADJUSTMENTS
    for width in np.linspace(0, len(WIDTHS) - 1, count).round()
)
"""All 804 candidates, chain by chain."""


FORMULAS = {"none": "blur alone", "square": "x²", "root": "√x", "difference": "|x − m|"}
FORMULAS |= {"product": "m x", "quotient": "x / m"}
"""The operations as a reader knows them."""


def _chain(candidate: Candidate) -> str:
    """The chain of a candidate in words: what is done but for the width."""
    adjustment = candidate.adjustment.replace("none", "")
    return " ".join(filter(None, (FORMULAS[candidate.operation], candidate.place, adjustment)))


CHAINS = tuple(_chain(candidate) for candidate in CANDIDATES)
"""The chain that each candidate is of, such as "x² before range"."""


def _simplest(candidate: Candidate) -> Candidate:
    """The candidate that makes the same image with the least to do."""
    operation, place, adjustment, width = candidate
    if operation in ("product", "quotient"):
        operation, place = (operation, "after") if adjustment == "none" else ("none", "")
    elif operation in ("square", "root") and (place, adjustment) == ("after", "histogram"):
        operation, place = "none", ""
    return Candidate(operation, place, adjustment, width)


ORIGINAL = tuple(CANDIDATES.index(_simplest(candidate)) for candidate in CANDIDATES)
"""For each candidate the one that makes the same image on any image: itself, or the one that it repeats."""

DISTINCT = tuple(sorted(set(ORIGINAL)))
"""The candidates that are different."""


_MEMBERS = [list(members) for _, members in itertools.groupby(DISTINCT, lambda i: CANDIDATES[i]._replace(width=-1))]
_CHAINS = len(_MEMBERS)
_CELL = torch.tensor(
    [row * len(WIDTHS) + CANDIDATES[i].width for row, members in enumerate(_MEMBERS) for i in members]
)  # of each distinct candidate in a table of chains by widths
_COARSE = torch.tensor([place % 4 == 0 or i == members[-1] for members in _MEMBERS for place, i in enumerate(members)])
_ROUND = 8  # candidates of an image asked about at a time
_TOGETHER = 8  # candidates of an image altered at a time: what is between the blur and they stays in the cache

SLOPE = 0.05
"""How fast U may change beside its trend, per width (each is 5 % wider than the last), before the search misses it."""


class Perturbed(NamedTuple):
    """The chosen perturbed image of each image.

    Attributes:
        images: [B, C, H, W], intensities like those of the source.
        candidate: [B] int64, which of `CANDIDATES`.
        uncertainty: [B], its U: 0 where the classifier is wholly undecided.
        distance: [B], its S: 0 where it is the image itself.
        score: [B], its P.
        fallback: [B] bool, True where no candidate's U was under Delta.
        forwards: [B] int64, how many candidates the classifier was asked about.
    """

    images: Tensor
    candidate: Tensor
    uncertainty: Tensor
    distance: Tensor
    score: Tensor
    fallback: Tensor
    forwards: Tensor


def threshold(classes: int) -> float:
    """Delta, the largest U that a candidate may have (eq. 3)."""
    return min(0.1, classes / 40)


def uncertainty(probabilities: Tensor) -> Tensor:
    """U, the mean distance of the classes' probabilities from 1/N (eq. 2): [..., N] -> [...].

    Raises:
        ValueError: numbers that are no probabilities of two or more classes, or do not sum to one.

    >>> uncertainty(torch.tensor([0.5, 0.5]))
    tensor(0.)
    """
    classes, off = probabilities.shape[-1], (probabilities.sum(-1) - 1).abs()
    if classes < 2 or not bool(((off <= 1e-3) & (probabilities >= 0).all(-1)).all()):
        raise ValueError(f"expected the softmax of two or more classes, but got {classes}, sums off by {off.max():.3g}")
    return (probabilities - 1 / classes).abs().mean(-1)


def distance(x: Tensor, candidates: Tensor) -> Tensor:
    """S, the mean squared change over the squared range of the image (eq. 4).

    Args:
        x: [B, C, H, W].
        candidates: [B, n, C, H, W].

    Returns:
        [B, n], never NaN.

    Raises:
        ValueError: a constant image, whose range is zero.
    """
    low, high = x.flatten(1).aminmax(dim=1)
    if flat := (low == high).nonzero().flatten().tolist():
        raise ValueError(f"S is undefined of constant images, but {flat} of {len(x)} are; drop and count them")
    changed = [(part - x[:, None]).square_().flatten(2).mean(-1) for part in candidates.split(_TOGETHER, dim=1)]
    return torch.cat(changed, 1) / ((high - low) ** 2)[:, None]


def candidates(x: Tensor, which: tuple[int, ...] = tuple(range(len(CANDIDATES)))) -> Tensor:
    """The perturbed images of each image, every source blurred once per width: [B, C, H, W] -> [B, n, C, H, W].

    Args:
        x: intensities, none of them negative.
        which: indices into `CANDIDATES`.

    Raises:
        ValueError: intensities that are negative, for which the operations are not defined, NaN or infinite.
    """
    if not bool(((x >= 0) & x.isfinite()).all()):
        raise ValueError(f"expected intensities as stored, at least zero and finite, but the lowest is {x.min():.3g}")
    made = x.new_empty(len(x), len(which), *x.shape[1:])
    mean = x.mean(dim=(2, 3), keepdim=True)  # [B, C, 1, 1]
    for source, chains in itertools.groupby(sorted(_by_chain(which), key=_source), _source):
        chains = [*chains]
        widths = sorted({CANDIDATES[which[i]].width for _, members in chains for i in members})
        blurred = _blur(_OPERATIONS[source](x, mean), widths)  # [B, widths, C, H, W]
        for chain, members in (
            (chain, of_chain[start : start + _TOGETHER])
            for chain, of_chain in chains
            for start in range(0, len(of_chain), _TOGETHER)
        ):
            altered = blurred[:, [widths.index(CANDIDATES[which[i]].width) for i in members]]
            if chain.place == "after":
                altered = _OPERATIONS[chain.operation](altered, mean[:, None])
            made[:, members] = _adjust(altered, x, chain.adjustment)
    return made


def scores(x: Tensor, answer: Answer) -> tuple[Tensor, Tensor]:
    """U and S of all 804 candidates of each image, two tensors [B, 804]; arguments and errors as in `search`."""
    found = []
    for part in _parts(x, len(CANDIDATES)):
        made = candidates(part)
        found.append((uncertainty(answer(made.flatten(0, 1))).view(made.shape[:2]), distance(part, made)))
    return torch.cat([u for u, _ in found]), torch.cat([s for _, s in found])


def search(x: Tensor, answer: Answer, *, prune: bool = True) -> Perturbed:
    """The perturbed image of each image: the candidate of the lowest P, and where none is under Delta, of the lowest U.

    The pruned search leaves out what cannot win. S needs no forward, and P is at least 10 / Delta * S: a candidate too
    far from its image is never asked about. Along a chain the answers change little from width to width: between two
    widths that were asked about, the logarithms of the probabilities are taken to lie near a straight line, and a
    candidate is asked about only where its U could be low enough. The first is exact. The second is not, on images of
    large equal areas least of all; the book measures how often the winner is that of the full search.

    Args:
        x: [B, C, H, W] intensities, none of them negative.
        answer: see `Answer`. What it returns must sum to one.
        prune: False asks about all 804 candidates.

    Raises:
        ValueError: as `candidates`; constant images, fewer than two classes, answers that are no probabilities.
    """
    which = DISTINCT if prune else tuple(range(len(CANDIDATES)))
    found = []
    for part in _parts(x, len(which)):
        made = candidates(part, which)
        far = distance(part, made)
        asked, forwards = _ask_some(made, far, answer) if prune else _ask_all(made, answer)
        found.append(_choose(made, asked, far, which, forwards))
    return Perturbed(*(torch.cat(parts) for parts in zip(*found, strict=True)))


def winners(uncertainty: Tensor, distance: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """The candidate of the lowest P among those whose U is at most Delta; where there is none, of the lowest U.

    Args:
        uncertainty: U of each candidate, [B, n].
        distance: S, [B, n].
        classes: N.

    Returns:
        The winners' places [B], and where no candidate was under Delta, [B] bool.
    """
    delta = threshold(classes)
    allowed = torch.where(uncertainty <= delta, uncertainty + 10 / delta * distance, torch.inf)
    fallback = allowed.isinf().all(1)
    return torch.where(fallback[:, None], uncertainty, allowed).argmin(1), fallback


def _choose(made: Tensor, answers: Tensor, far: Tensor, which: tuple[int, ...], forwards: Tensor) -> Perturbed:
    """The winners among candidates [b, n, C, H, W] with probabilities [b, n, N], NaN where they are not known."""
    unsure = _known_uncertainty(answers)
    winner, fallback = winners(unsure, far, answers.shape[-1])
    score = unsure + 10 / threshold(answers.shape[-1]) * far
    row = torch.arange(len(made), device=made.device)
    # One that repeats another is called by the other's name, so that rounding does not decide between the two.
    candidate = torch.tensor([ORIGINAL[i] for i in which], device=made.device)[winner]
    chosen = row, winner
    return Perturbed(made[chosen], candidate, unsure[chosen], far[chosen], score[chosen], fallback, forwards)


def _known_uncertainty(answers: Tensor) -> Tensor:
    """U where an answer is known, infinity elsewhere: [..., N] -> [...]."""
    known = ~answers[..., 0].isnan()
    unsure = answers.new_full(known.shape, torch.inf)
    unsure[known] = uncertainty(answers[known])
    return unsure


def _ask_all(made: Tensor, answer: Answer) -> tuple[Tensor, Tensor]:
    """All answers [b, n, N], and how many forwards each image took [b]."""
    answers = answer(made.flatten(0, 1)).unflatten(0, made.shape[:2])
    uncertainty(answers)  # NaN means unknown from here on: what is broken must be found now
    return answers, torch.full((len(made),), made.shape[1], device=made.device)


def _ask_some(made: Tensor, far: Tensor, answer: Answer) -> tuple[Tensor, Tensor]:
    """The answers about candidates that may win [b, n, N], NaN for the others, and the forwards of each image [b]."""
    coarse = _COARSE.to(made.device).expand(far.shape)
    asking = _lowest(far, coarse)
    answers = None
    while bool(asking.any()):
        new = answer(made[asking])
        uncertainty(new)  # NaN means unknown from here on: what is broken must be found now
        if answers is None:
            delta = threshold(new.shape[-1])
            answers = new.new_full((*far.shape, new.shape[-1]), torch.nan)
        answers[asking] = new
        unsure = _known_uncertainty(answers)
        unknown = unsure.isinf()
        at_least = _least_uncertainty(answers, ~unknown)
        promise = at_least + 10 / delta * far
        best = torch.where(unsure <= delta, unsure + 10 / delta * far, torch.inf).amin(1, keepdim=True)
        may_win = unknown & (at_least <= delta) & (promise < best)
        # Where nothing is under Delta, and nothing else may be, the lowest U wins.
        lost = best.isinf() & ~may_win.any(1, keepdim=True)
        may_win |= lost & unknown & (at_least < unsure.amin(1, keepdim=True))
        # The coarse widths first: they are the ends of the lines.
        first = may_win & coarse
        asking = _lowest(torch.where(lost, at_least, promise), torch.where(first.any(1, keepdim=True), first, may_win))
    return answers, (~unsure.isinf()).sum(1)


def _lowest(values: Tensor, among: Tensor) -> Tensor:
    """In each row the (at most `_ROUND`) places with the lowest values, of those allowed: [b, n] bool."""
    order = values.masked_fill(~among, torch.inf).argsort(dim=1, stable=True)[:, :_ROUND]
    return torch.zeros_like(among).scatter_(1, order, True) & among


def _least_uncertainty(answers: Tensor, known: Tensor) -> Tensor:
    """A lower estimate of each candidate's U from the known ones of its chain: [b, n, N], [b, n] -> [b, n].

    A function whose slope differs from a line's by at most s departs from it by at most 2 * s * gap * t * (1 - t) at
    the fraction t of the gap between the line's ends. How steep is expected: `SLOPE`, and twice what the probabilities
    move from end to end. Outside of known widths nothing is known: 0.
    """
    b, n, N = answers.shape
    cell = _CELL.to(answers.device)
    width = torch.arange(len(WIDTHS), device=answers.device)
    grid = torch.zeros(b, _CHAINS * len(WIDTHS), dtype=torch.bool, device=answers.device)
    grid[:, cell] = known
    grid = grid.view(b, _CHAINS, -1)
    below = torch.where(grid, width, -1).cummax(-1).values
    above = torch.where(grid, width, len(WIDTHS)).flip(-1).cummin(-1).values.flip(-1)
    below, above = below.flatten(1)[:, cell], above.flatten(1)[:, cell]  # [b, n] the known widths around each candidate
    between = (below >= 0) & (above < len(WIDTHS))

    here = cell % len(WIDTHS)
    candidate = torch.zeros(_CHAINS * len(WIDTHS), dtype=torch.int64, device=answers.device)
    candidate[cell] = torch.arange(n, device=answers.device)
    start = candidate[(cell - here + below.clamp(min=0))]
    end = candidate[(cell - here + above.clamp(max=len(WIDTHS) - 1))]
    gap = (above - below).clamp(min=1)
    t = (here - below) / gap
    first, last = (answers.gather(1, i[..., None].expand(b, n, N)) for i in (start, end))
    logs = (ends.clamp(min=1e-12).log() for ends in (first, last))
    line = torch.lerp(*logs, t[..., None].to(answers.dtype)).softmax(-1)
    moved = (last - first).abs().mean(-1)
    unsure = (line - 1 / N).abs().mean(-1) - 2 * (SLOPE * gap + 2 * moved) * t * (1 - t)
    return torch.where(between, unsure.clamp(min=0), 0)


def _source(chain: tuple[Candidate, list[int]]) -> str:
    """The operation on the image that a chain blurs."""
    return chain[0].operation if chain[0].place == "before" else "none"


def _by_chain(which: tuple[int, ...]) -> Iterator[tuple[Candidate, list[int]]]:
    """The chains among some candidates (the width of the key means nothing), each with its members' places."""
    chains: dict[Candidate, list[int]] = {}
    for place, index in enumerate(which):
        chains.setdefault(CANDIDATES[index]._replace(width=-1), []).append(place)
    yield from chains.items()


def _blur(x: Tensor, widths: list[int]) -> Tensor:
    """Gaussian blurs of some of `WIDTHS`, the image mirrored at its borders: [B, C, H, W] -> [B, widths, C, H, W]."""
    rows, columns = (torch.from_numpy(_kernels(size, min(x.shape[-2:]))[widths]).to(x) for size in x.shape[-2:])
    down = torch.einsum("sij,bcjk->bscik", rows, x)
    return torch.einsum("bscik,slk->bscil", down, columns)


@lru_cache(maxsize=2)  # each is asked for by every source of an image, and of the next one; of 224 pixels it has 32 MB
def _kernels(size: int, side: int) -> np.ndarray:
    """The matrices that blur a line of pixels, [widths, size, size]: their columns are the blurred unit vectors.

    Args:
        size: pixels of the line.
        side: of the image, in which `WIDTHS` are shares.
    """
    line = np.eye(size)
    return np.stack([gaussian_filter1d(line, sigma * side, axis=0, mode="reflect") for sigma in WIDTHS])


def _adjust(altered: Tensor, x: Tensor, adjustment: str) -> Tensor:
    """Match range or histogram of each channel to the source's: [B, n, C, H, W]."""
    flat, source = altered.flatten(3), x.flatten(2)[:, None]  # [B, n, C, H * W], [B, 1, C, H * W]
    if adjustment == "range":
        low, high = flat.aminmax(dim=-1, keepdim=True)
        first, last = source.aminmax(dim=-1, keepdim=True)
        # A channel without any contrast keeps none.
        flat = (flat - low) / (high - low).clamp(min=torch.finfo(x.dtype).tiny) * (last - first) + first
    elif adjustment == "histogram":
        ordered = source.sort(dim=-1).values.expand_as(flat)
        flat = torch.empty_like(flat).scatter_(-1, _order(flat), ordered)
    return flat.view_as(altered)


def _order(values: Tensor) -> Tensor:
    """The stable order of numbers along the last dimension, none of them NaN.

    On a processor NumPy sorts whole numbers by vector instructions, in half the time of torch's argsort. So it gets the
    bits of each number, which are in its order where none is negative, with the number's place behind them.
    """
    if values.device.type != "cpu" or values.dtype != torch.float32 or bool((values < 0).any()):
        return values.argsort(dim=-1, stable=True)
    keys = (values + 0.0).view(torch.int32).long().mul_(1 << 32)  # -0.0 has other bits
    keys += torch.arange(values.shape[-1])
    keys.numpy().sort(axis=-1)
    return keys.bitwise_and_((1 << 32) - 1)


def _parts(x: Tensor, count: int) -> tuple[Tensor, ...]:
    """The images in parts whose candidates fit the budget."""
    return x.split(max(1, BUDGET // (count * x[0].numel())))
