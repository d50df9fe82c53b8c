"""Every metric once more, as slowly and literally as its paper writes it: one input, one set of features at a time.

Written from the definitions, in plain Python and scipy, with nothing imported from faithlab: where the library and this
file agree, two independent readings of the paper agree. `ask(kept)` is the model's number for one input of which only
the features in the set `kept` are shown. Sizes are exact: fractions are rationals, not floats.
"""

import itertools
import math
from fractions import Fraction

import scipy.stats

# Sizes


def size(fraction: float, features: int) -> int:
    """A fraction of the features as a count, halves up."""
    return half_up(exact(fraction) * features)


def half_up(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))


def exact(number: float) -> Fraction:
    """0.29 as 29 / 100, not as the nearest binary number."""
    return Fraction(repr(float(number)))


# Random numbers: SplitMix64 (Steele, Lea, Flood, 2014) on Python's unbounded integers

_WORD = (1 << 64) - 1
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def mix(z: int) -> int:
    """The finaliser of SplitMix64 on one unsigned 64-bit word."""
    z &= _WORD
    z = ((z ^ (z >> 30)) * _FIRST) & _WORD
    z = ((z ^ (z >> 27)) * _SECOND) & _WORD
    return z ^ (z >> 31)


def words(seed: int, image: int, draw: int, count: int) -> list[int]:
    """The first `count` unsigned words that belong to a seed, an image and a draw."""
    stream = mix(mix(mix(seed * _STEP + _FIRST) + image * _STEP) + draw * _SECOND)
    return [mix(stream + (i + 1) * _STEP) for i in range(count)]


def random_order(seed: int, image: int, draw: int, features: int) -> list[int]:
    """The features in the random order of a draw: by their words, read as signed numbers."""
    signed = [word - (1 << 64) if word >> 63 else word for word in words(seed, image, draw, features)]
    return sorted(range(features), key=signed.__getitem__)


# F-Fidelity (Zheng et al., 2024)


def ranking(relevance: list[float]) -> list[int]:
    """Features from most to least relevant; of equal ones the first comes first."""
    return sorted(range(len(relevance)), key=lambda feature: (-relevance[feature], feature))


def removable(relevance: list[float], s: int, sign: str) -> list[int]:
    """What a metric of that sign removes from: the top s (+), or all but the top s (-)."""
    return ranking(relevance)[:s] if sign == "+" else ranking(relevance)[s:]


def fid(ask, relevance: list[float], s: int, sign: str) -> float:
    """Eq. 1 (+): the input without its top s; eq. 2 (-): the input with only its top s."""
    everything = set(range(len(relevance)))
    return ask(everything) - ask(everything - set(removable(relevance, s, sign)))


def rfid(ask, relevance, s, sign, *, alpha, cap=None, draws, seed, image) -> float:
    """Eq. 3 and 4: a random alpha of what fid removes, averaged over draws; with a cap (beta), eq. 6.

    A uniformly random subset of exact size: the first so many of the removable features in a random order.
    """
    features = len(relevance)
    everything = set(range(features))
    target = removable(relevance, s, sign)
    number = half_up(exact(alpha) * len(target))
    if cap is not None:
        number = min(number, math.floor(exact(cap) * features))
    losses = []
    for draw in range(draws):
        removed = [f for f in random_order(seed, image, draw, features) if f in target][:number]
        losses.append(ask(everything) - ask(everything - set(removed)))
    return sum(losses) / draws


def bernoulli_rfid(ask, relevance, s, sign, *, alpha, draws, seed, image) -> float:
    """RFid as the public code has it: each removable feature goes with the probability (rounded alpha s) / s."""
    everything = set(range(len(relevance)))
    target = removable(relevance, s, sign)
    chance = half_up(exact(alpha) * len(target)) / max(1, len(target))
    losses = []
    for draw in range(draws):
        numbers = [((word >> 12) + 0.5) / 2**52 for word in words(seed, image, draw, len(relevance))]
        losses.append(ask(everything) - ask(everything - {f for f in target if numbers[f] < chance}))
    return sum(losses) / draws


def expected_ffid(tiers: list[int], response, s: int, alpha: float, cap: float | None) -> float:
    """FFid+ of a tier classifier by trying every subset; `tiers` holds each feature's tier, in order of relevance."""
    features = len(tiers)
    number = half_up(exact(alpha) * s)
    if cap is not None:
        number = min(number, math.floor(exact(cap) * features))
    kinds = max(tiers) + 1

    def answer(removed) -> float:
        return response([sum(tiers[f] == t for f in range(features) if f not in removed) for t in range(kinds)])

    subsets = list(itertools.combinations(range(s), number))
    return answer(()) - sum(answer(subset) for subset in subsets) / len(subsets)


# The comparisons of F-Fidelity, section 5


def area(curve: list[float], at: list[float]) -> float:
    """Area under a curve by trapezoids, per unit of its range."""
    pieces = [(at[k + 1] - at[k]) * (curve[k] + curve[k + 1]) / 2 for k in range(len(at) - 1)]
    return sum(pieces) / (at[-1] - at[0])


def spearman(a: list[float], b: list[float]) -> float:
    """Spearman's correlation; NaN where a side is constant."""
    if len(set(a)) == 1 or len(set(b)) == 1:
        return math.nan
    return scipy.stats.spearmanr(a, b).statistic


def macro_correlation(curves, truth, at) -> float:
    """Spearman over the explainers of the areas under their curves with their true quality."""
    return spearman([area(curve, at) for curve in curves], truth)


def micro_correlations(curves, truth) -> list[float]:
    """Spearman over the explainers at each sparsity."""
    return [spearman([curve[k] for curve in curves], truth) for k in range(len(curves[0]))]


def micro_rank(correlations, ideal: float) -> list[list[float]]:
    """At each sparsity: 1 + the number of metrics that are strictly nearer to the ideal."""
    return [
        [
            math.nan if math.isnan(mine[k]) else 1 + sum(ideal * other[k] > ideal * mine[k] for other in correlations)
            for k in range(len(mine))
        ]
        for mine in correlations
    ]


# TRACE (Wang, Wang, 2024)


def trajectory(relevance: list[float]) -> list[int]:
    """Bottom-top: of equal attributions the smaller index is put ahead (footnote 1)."""
    return sorted(range(len(relevance)), key=lambda feature: (relevance[feature], feature))


def morf(ask, tau: list[int]) -> float:
    """Eq. 1: the sum over k of the output with the top k features of a bottom-top trajectory deleted."""
    return sum(ask(set(tau[: len(tau) - k])) for k in range(len(tau) + 1))


def lerf(ask, tau: list[int]) -> float:
    """The same with the bottom k deleted."""
    return sum(ask(set(tau[k:])) for k in range(len(tau) + 1))


def trace_objective(ask, tau: list[int], name: str) -> float:
    """What TRACE maximises; the paper prints "min" for Le, a misprint."""
    return {
        "Mo": lambda: -morf(ask, tau),
        "Le": lambda: lerf(ask, tau),
        "Le-Mo": lambda: lerf(ask, tau) - morf(ask, tau),
    }[name]()


def best_trajectory(ask, features: int, name: str) -> float:
    """The best of all F! trajectories, one after the other."""
    return max(trace_objective(ask, list(tau), name) for tau in itertools.permutations(range(features)))


def complete_search(ask, features: int, name: str) -> float:
    """Eq. 4: for each k the best of all subsets of that size; a bound on every trajectory, for Mo and for Le."""
    best = min if name == "Mo" else max
    sizes = range(features + 1)
    return sum(best(ask(set(kept)) for kept in itertools.combinations(range(features), k)) for k in sizes)


def greedy_trajectory(ask, features: int, name: str) -> list[int]:
    """Delete one feature at a time; for Mo from the top of the trajectory, for Le from its bottom."""
    left, deleted = list(range(features)), []
    while left:
        outputs = [ask(set(left) - {feature}) for feature in left]
        chosen = left[outputs.index(min(outputs) if name == "Mo" else max(outputs))]
        left.remove(chosen)
        deleted.append(chosen)
    return deleted[::-1] if name == "Mo" else deleted


def uniform(seed: int, image: int, draw: int, count: int) -> list[float]:
    """Uniform numbers that belong to a seed, an image and a draw."""
    return [((word >> 12) + 0.5) * 2.0**-52 for word in words(seed, image, draw, count)]


def annealed(ask, top_first, name, *, steps, temperature, cooling, seed, image) -> tuple[list[int], list[float]]:
    """Simulated annealing with the whole sum at every proposal: the best order, and the best sum after each step."""
    order = list(top_first)
    features = len(order)
    value = trace_objective(ask, order[::-1], name)
    best, history = (value, order), [value]
    for step in range(steps):
        u = uniform(seed, image, step, 4)
        i = int(u[0] * features)
        j = (i + 1 + int(u[1] * (features - 1))) % features
        proposed = list(order)
        proposed[i], proposed[j] = proposed[j], proposed[i]
        change = value - trace_objective(ask, proposed[::-1], name)
        if change <= 0 or u[3] < math.exp(-change / (temperature * cooling**step)):
            order, value = proposed, value - change
        if value > best[0]:
            best = value, order
        history.append(best[0])
    return best[1], history


# SaCo and the cumulative metrics (Wu et al., 2024)


def saco_groups(relevance: list[float], groups: int) -> list[list[int]]:
    """G_1 .. G_K: the features with ranks from (i - 1) F / K to i F / K, cut down to whole ranks."""
    order, features = ranking(relevance), len(relevance)
    return [order[i * features // groups : (i + 1) * features // groups] for i in range(groups)]


def saco(ask, relevance: list[float], groups: int, ratio: bool = False) -> float:
    """Algorithm 1, line by line; the salience of a group is its mean times F / K, its sum where that is whole."""
    members = saco_groups(relevance, groups)
    everything = set(range(len(relevance)))
    salience = [math.fsum(relevance[p] for p in g) / len(g) * len(relevance) / groups for g in members]
    prediction = [ask(everything) - ask(everything - set(g)) for g in members]
    if not ratio and max(relevance) == min(relevance):
        return math.nan
    coefficient = total = 0.0
    for i in range(groups - 1):
        for j in range(i + 1, groups):
            weight = salience[i] / salience[j] if ratio else salience[i] - salience[j]
            if not prediction[i] >= prediction[j]:
                weight = -weight
            coefficient += weight
            total += abs(weight)
    return coefficient / total if total else math.nan


def deletion_curve(ask, relevance: list[float]) -> list[float]:
    """The answers without the top 0, 10, ..., 100 %."""
    order, everything = ranking(relevance), set(range(len(relevance)))
    sizes = [half_up(Fraction(k, 10) * len(relevance)) for k in range(11)]
    return [ask(everything - set(order[:s])) for s in sizes]


def deletion_area(ask, relevance: list[float]) -> float:
    return area(deletion_curve(ask, relevance), [k / 10 for k in range(11)])


def mean_change(ask, relevance: list[float]) -> float:
    """LOdds, where `ask` answers with log-odds."""
    curve = deletion_curve(ask, relevance)
    return sum(answer - curve[0] for answer in curve) / len(curve)


def aopc(ask, relevance: list[float]) -> float:
    return -mean_change(ask, relevance)


def comprehensiveness(ask, relevance: list[float]) -> float:
    """The least relevant features first."""
    return aopc(ask, [-r for r in relevance])
