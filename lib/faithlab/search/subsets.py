"""What all subsets, or all subsets of some sizes, say: the exact optimum, and bounds that hold for every order."""

import torch
from torch import Tensor

from faithlab import masks, validation
from faithlab.engine import Score
from faithlab.search.chains import OBJECTIVES, Problem, Trajectory


def answers(score: Score, count: int, features: int, *, device: torch.device | str = "cpu") -> Tensor:
    """Return the score of every subset (the paper's complete search), [B, 2^F] float32.

    Entry s is the score when the features of the set bits of s are kept.

    Raises:
        ValueError: more than 20 features, a million subsets per image; a score that is NaN or infinite.
    """
    validation.whole("features, whose subsets can be counted,", features, 1, 20)
    table = torch.empty(count, 1 << features, dtype=torch.float32, device=device)
    bit = torch.arange(features, device=device)
    for subset in torch.arange(1 << features, device=device).split(max(1, masks.BUDGET // max(1, count * features))):
        keep = (subset[:, None] >> bit) & 1 == 1  # [n, F]
        table[:, subset] = score(keep.expand(count, -1, -1)).to(table)
    return table


def lookup(table: Tensor) -> Score:
    """Return a score that reads the table of `answers` instead of evaluating a model."""
    value = 1 << torch.arange(table.shape[1].bit_length() - 1, device=table.device)  # of each feature's bit

    def score(keep: Tensor, positions: Tensor | None = None) -> Tensor:
        subset = (keep.to(table.device) * value).sum(-1)
        return table.gather(1, subset) if positions is None else table[positions.to(table.device), subset]

    return score


def bound(table: Tensor, objective: str) -> Tensor:
    """Return the paper's complete search: the best subset of each size, nested or not (eq. 4).

    Args:
        table: [B, 2^F] of `answers`.
        objective: one of `OBJECTIVES`.

    Returns:
        [B, F + 1] float64 by size of the prefix. Its sum over the sizes bounds the value of every order: from below for
        Mo, from above for Le and Le-Mo.
    """
    gains, size = _prefix_gains(table, objective), _sizes(table)
    best = torch.stack([gains[:, size == k].amax(1) for k in range(int(size.max()) + 1)], 1)
    return -best if objective == "Mo" else best


def ceiling(
    score: Score,
    count: int,
    features: int,
    *,
    score_range: tuple[float, float],
    objective: str = "Le-Mo",
    device: torch.device | str = "cpu",
) -> Tensor:
    """Return a bound on every order for many features, [B, F + 1] float64 by size of the prefix, as `bound`.

    All prefixes of at most one feature, and all that lack at most one, are asked, and the best of each size counts: 2 F
    + 2 questions for each side of the objective. No prefix of another size can gain more than the range of the score
    allows.

    Args:
        score: see `faithlab.engine.scorer`.
        count: of the inputs, B.
        features: F.
        score_range: lowest and highest number that the score can give, (0, 1) for probabilities. A logit has none, and
            so no such bound.
        objective: one of `OBJECTIVES`.
        device: of the masks.

    Raises:
        ValueError: a score that is NaN or outside its range.
    """
    problem = Problem(score, objective, count, score_range)
    weights = problem.weights.to(device)
    low, high = (weights * end for end in score_range)
    best = torch.maximum(low, high).sum().expand(count, features + 1).clone()
    one = torch.eye(features, dtype=torch.bool, device=device)
    none = torch.zeros_like(one[:1])
    for k, prefix in {0: none, 1: one, features - 1: ~one, features: ~none}.items():
        gain = torch.zeros(count, len(prefix), dtype=torch.float64, device=device)
        at = torch.arange(count, device=device).repeat_interleave(len(prefix))
        for side, weight in zip(problem.sides, weights, strict=True):
            gain += weight * problem.ask((prefix == (side == 1)).repeat(count, 1), at).view(count, -1)
        best[:, k] = gain.amax(1)
    return problem.sign * best


def limit(values: Tensor) -> Tensor:
    """Where the best value lies of which independent searches found these, with 95 % confidence: [R, B] -> [B] float64.

    19 times the distance of the best two beyond the best (Robson and Whitlock, 1964), for what is maximised. It assumes
    that values are spread evenly near their end. Those of searches are not: this is an estimate, and no bound. Of a
    small network the suite holds it to cover the optimum of 93 % of the images, by searches that find it and by short
    ones.
    """
    best, second = values.double().topk(2, dim=0).values
    return best + 19 * (best - second)


def optimum(table: Tensor, objective: str) -> Trajectory:
    """Return the best of all F! orders, exactly.

    An order is a chain of nested prefixes, and what is maximised is a sum over them. So the best chain up to a prefix
    is the best of those up to the prefix without one of its features: 2^F sums instead of F! (dynamic programming).

    Args:
        table: [B, 2^F] of `answers`.
        objective: one of `OBJECTIVES`.
    """
    gains, size = _prefix_gains(table, objective), _sizes(table)
    count, features = len(table), int(size.max())
    best = gains.clone()  # [B, 2^F] of the best chain from nothing up to each prefix
    last = torch.zeros(gains.shape, dtype=torch.int64, device=table.device)  # its last feature
    bit = 1 << torch.arange(features, device=table.device)
    for k in range(1, features + 1):
        prefix = (size == k).nonzero()[:, 0]  # [n]
        inside = prefix[:, None] & bit != 0  # [n, F]
        before = best[:, prefix[:, None] ^ bit].masked_fill(~inside, -torch.inf)  # [B, n, F]
        chosen = before.max(2)
        best[:, prefix] += chosen.values
        last[:, prefix] = chosen.indices
    at = torch.full((count,), (1 << features) - 1, device=table.device)
    removed = []
    for _ in range(features):
        removed.append(last.gather(1, at[:, None])[:, 0])
        at = at ^ bit[removed[-1]]
    value = (-1.0 if objective == "Mo" else 1.0) * best[:, -1]
    asked = torch.full((count,), table.shape[1])
    return Trajectory(torch.stack(removed[::-1], 1), value, value[:, None], asked)


def _prefix_gains(table: Tensor, objective: str) -> Tensor:
    """What a prefix adds to what is maximised, for every subset as prefix: [B, 2^F] float64."""
    without, only = OBJECTIVES[objective]
    # The subset that is kept where a prefix is removed is the complement, whose number counts from the other end.
    return without * table.double().flip(1) + only * table.double()


def _sizes(table: Tensor) -> Tensor:
    """Number of features in each subset, [2^F] int64."""
    subset = torch.arange(table.shape[1], device=table.device)
    return sum((subset >> bit) & 1 for bit in range(table.shape[1].bit_length() - 1))
