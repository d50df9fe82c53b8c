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


# ReCo and MeGe (Fel, Vigouroux, 2020)


def cross_training(distance, answers: list[list[int]], labels: list[int], left_out: list[int]):
    """Algorithm 1: S= and S!=. `distance(x, i, j)` is that of two models' explanations, `left_out[x]` is x's block."""
    same, different = [], []
    for x, label in enumerate(labels):
        for i in range(len(answers)):
            for j in range(len(answers)):
                if left_out[x] != i and left_out[x] == j:  # i was trained on x, j was not
                    if answers[i][x] == label and answers[j][x] == label:
                        same.append(distance(x, i, j))
                    elif answers[i][x] == label or answers[j][x] == label:
                        different.append(distance(x, i, j))
    return same, different


def mege(same: list[float]) -> float:
    """Eq. 8."""
    return 1 / (1 + sum(d / len(same) for d in same))


def gains(same: list[float], different: list[float], printed: bool) -> list[tuple[float, float]]:
    """TPR + TNR - 1 at one threshold between each two neighbouring distances, and how far these are apart."""
    values = sorted({*same, *different})
    found = []
    for low, high in itertools.pairwise(values):
        gamma = Fraction(low) / 2 + Fraction(high) / 2
        tp, fp = sum(d < gamma for d in same), sum(d < gamma for d in different)
        tn, fn = sum(d > gamma for d in different), sum(d > gamma for d in same)
        tpr = tp / (tp + fp) if printed else tp / len(same)
        tnr = tn / (tn + fn) if printed else tn / len(different)
        found.append((tpr + tnr - 1, high - low))
    return found


def reco(same: list[float], different: list[float], printed: bool = False) -> float:
    """Eq. 7; a threshold beyond all distances has balanced rates 0 and 1, and no printed ones."""
    found = [gain for gain, _ in gains(same, different, printed)]
    return max([*found, 0] if not printed else found)


def reco_auc(same: list[float], different: list[float], printed: bool = False) -> float:
    """The appendix's integral over all thresholds: a step function."""
    return sum(gain * width for gain, width in gains(same, different, printed))


def mu_fidelity(ask, relevance: list[float], share: float, *, draws: int, seed: int, image: int) -> float:
    """Eq. 1: the correlation over random subsets of the attribution in a subset and the drop without it."""
    features = len(relevance)
    everything = set(range(features))
    inside, drops = [], []
    for draw in range(draws):
        subset = random_order(seed, image, draw, features)[: size(share, features)]
        inside.append(sum(relevance[f] for f in subset))
        drops.append(ask(everything) - ask(everything - set(subset)))
    if max(inside) == min(inside) or max(drops) == min(drops):
        return math.nan
    return scipy.stats.pearsonr(inside, drops).statistic
