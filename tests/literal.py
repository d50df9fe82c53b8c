"""Every metric once more, as slowly and literally as its paper writes it: one input, one set of features at a time.

Written from the definitions, in plain Python, numpy and scipy, with nothing imported from faithlab: where the library
and this file agree, two independent readings of the paper agree. `ask(kept)` is the model's number for one input of
which only the features in the set `kept` are shown. Sizes are exact: fractions are rationals, not floats.
"""

import hashlib
import itertools
import math
from fractions import Fraction

import numpy as np
import scipy.ndimage
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


def stream(purpose: str, seed: int) -> int:
    """The seed of one purpose: that of everything, moved by the first eight bytes of the purpose's BLAKE2b hash."""
    start = int.from_bytes(hashlib.blake2b(purpose.encode(), digest_size=8).digest(), "little")
    return mix(seed * _STEP + start)


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


def rfid(ask, relevance, s, sign, *, alpha, cap=None, draws, seed, image, own=None) -> float:
    """Eq. 3 and 4: a random alpha of what fid removes, averaged over draws; with a cap (beta), eq. 6.

    A uniformly random subset of exact size: the first so many of the removable features in a random order. `own` are
    the features that the input has, where it has not all.
    """
    features = len(relevance)
    everything = set(range(features))
    own = everything if own is None else set(own)
    ranked = [feature for feature in ranking(relevance) if feature in own]
    target = ranked[:s] if sign == "+" else ranked[s:]
    number = half_up(exact(alpha) * len(target))
    if cap is not None:
        number = min(number, math.floor(exact(cap) * len(own)))
    losses = []
    for draw in range(draws):
        removed = [f for f in random_order(stream("subsets", seed), image, draw, features) if f in target][:number]
        losses.append(ask(everything) - ask(everything - set(removed)))
    return sum(losses) / draws


def bernoulli_rfid(ask, relevance, s, sign, *, alpha, draws, seed, image) -> float:
    """RFid as the public code has it: each removable feature goes with the probability (rounded alpha s) / s."""
    everything = set(range(len(relevance)))
    target = removable(relevance, s, sign)
    chance = half_up(exact(alpha) * len(target)) / max(1, len(target))
    losses = []
    for draw in range(draws):
        numbers = [((word >> 12) + 0.5) / 2**52 for word in words(stream("subsets", seed), image, draw, len(relevance))]
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


def pearson(a: list[float], b: list[float]) -> float:
    """Pearson's correlation; NaN where a side is constant."""
    if len(set(a)) == 1 or len(set(b)) == 1:
        return math.nan
    return scipy.stats.pearsonr(a, b).statistic


def micro_correlations(curves, truth) -> list[float]:
    """Spearman over the explainers at each sparsity."""
    return [spearman([curve[k] for curve in curves], truth) for k in range(len(curves[0]))]


def told_apart(one: list[float], other: list[float]) -> float:
    """The chance that one of the second list is above one of the first, ties half."""
    return sum((y > x) + 0.5 * (y == x) for x in one for y in other) / (len(one) * len(other))


# Few-class Fidelity (Marchadour et al., 2025)


def few_class_areas(ask, relevance: list[float], steps: int) -> tuple[float, float]:
    """A_MIF and A_LIF: `ask` is the probability of the class with the other features replaced."""
    everything, shares = set(range(len(relevance))), [k / steps for k in range(steps + 1)]

    def area_of(order) -> float:
        counts = [half_up(Fraction(k, steps) * len(relevance)) for k in range(steps + 1)]
        return area([ask(everything - set(order[:count])) for count in counts], shares)

    return area_of(ranking(relevance)), area_of(ranking(relevance)[::-1])


def few_class_fidelity(ask, relevance: list[float], classes: int, steps: int) -> float:
    """Eq. 1."""
    mif, lif = few_class_areas(ask, relevance, steps)
    return 1 - (abs(1 - lif) + abs(1 / classes - mif)) / (1 + (classes - 1) / classes)


def perturbed(image, operation: str, place: str, adjustment: str, width: float):
    """One candidate of an image [C][H][W], channel by channel; `width` is the blur's, in pixels."""
    altered = []
    for channel in image:
        source = np.asarray(channel, dtype=np.float64)
        mean = source.mean()
        operate = {
            "none": lambda v: v,
            "square": lambda v: v * v,
            "root": np.sqrt,
            "difference": lambda v, mean=mean: abs(v - mean),
            "product": lambda v, mean=mean: mean * v,
            "quotient": lambda v, mean=mean: v / mean,
        }[operation]
        values = operate(source) if place == "before" else source
        values = scipy.ndimage.gaussian_filter(values, width, mode="reflect")
        values = operate(values) if place == "after" else values
        if adjustment == "range":
            values = (values - values.min()) / (values.max() - values.min())
            values = values * (source.max() - source.min()) + source.min()
        if adjustment == "histogram":  # the k-th lowest value becomes the source's k-th lowest
            ranks = values.ravel().argsort(kind="stable")
            values.ravel()[ranks] = sorted(source.ravel())
        altered.append(values)
    return np.stack(altered)


def uncertainty(probabilities: list[float]) -> float:
    """Eq. 2."""
    classes = len(probabilities)
    return sum(abs(1 / classes - p) for p in probabilities) / classes


def change(image, candidate) -> float:
    """Eq. 4."""
    return float(((image - candidate) ** 2).mean() / (image.max() - image.min()) ** 2)


def best_candidate(us: list[float], ss: list[float], classes: int) -> int:
    """Eq. 3 and 5, and the lowest U where every candidate is discarded."""
    delta = min(0.1, classes / 40)
    kept = [i for i, u in enumerate(us) if u <= delta]
    if not kept:
        return min(range(len(us)), key=us.__getitem__)
    return min(kept, key=lambda i: us[i] + 10 / delta * ss[i])


def box_overlap(relevance: list[float], width: int, true: tuple[int, int, int, int]) -> float:
    """IoU of a box (top, left, bottom, right; the last two exclusive) with that round the largest bright region."""
    top, left, bottom, right = true
    truth = {(r, c) for r in range(top, bottom) for c in range(left, right)}
    bright = {divmod(f, width) for f in ranking(relevance)[: len(truth)]}
    regions = []
    for start in sorted(bright):
        if any(start in region for region in regions):
            continue
        region, edge = {start}, [start]
        while edge:
            r, c = edge.pop()
            for near in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
                if near in bright and near not in region:
                    region.add(near)
                    edge.append(near)
        regions.append(region)
    largest = max(regions, key=len)  # the first of equals
    rows, columns = zip(*largest, strict=True)
    found = {(r, c) for r in range(min(rows), max(rows) + 1) for c in range(min(columns), max(columns) + 1)}
    return len(found & truth) / len(found | truth)


def best_dice(relevance: list[float], truth: set[int], steps: int) -> float:
    """The Dice coefficient at the share of the pixels that suits best."""
    sizes = [half_up(Fraction(k, steps) * len(relevance)) for k in range(1, steps + 1)]
    first = [set(ranking(relevance)[:count]) for count in sizes if count]
    return max(2 * len(chosen & truth) / (len(chosen) + len(truth)) for chosen in first)


def averaged_over_regions(values: list[float], segments: list[set[int]], smallest: int) -> list[float]:
    """XRAI (Kapishnikov et al., 2019): the segment whose new pixels have the highest mean, again and again."""
    left, result = set(range(len(values))), [math.nan] * len(values)

    def mean(pixels) -> float:
        return sum(values[p] for p in pixels) / len(pixels)

    while candidates := [segment & left for segment in segments if len(segment & left) >= smallest]:
        best = max(candidates, key=mean)
        for pixel in best:
            result[pixel] = mean(best)
        left -= best
    for pixel in left:
        result[pixel] = mean(left)
    return result


# SaCo and the cumulative metrics (Wu et al., 2024)


def saco_groups(relevance: list[float], groups: int) -> list[list[int]]:
    """G_1 .. G_K: the features with ranks from (i - 1) F / K to i F / K, rounded alike from both ends."""
    order, features = ranking(relevance), len(relevance)

    def cut(i: int) -> int:
        return half_up(Fraction(i * features, groups)) if 2 * i <= groups else features - cut(groups - i)

    return [order[cut(i) : cut(i + 1)] for i in range(groups)]


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


def deletion_curve(ask, order: list[int]) -> list[float]:
    """The answers without the first 0, 10, ..., 100 % of an order."""
    everything = set(range(len(order)))
    sizes = [half_up(Fraction(k, 10) * len(order)) for k in range(11)]
    return [ask(everything - set(order[:s])) for s in sizes]


def deletion_area(ask, relevance: list[float]) -> float:
    return area(deletion_curve(ask, ranking(relevance)), [k / 10 for k in range(11)])


def mean_loss(curve: list[float]) -> float:
    return sum(curve[0] - answer for answer in curve) / len(curve)


def mean_change(ask, relevance: list[float]) -> float:
    """LOdds, where `ask` answers with log-odds."""
    return -mean_loss(deletion_curve(ask, ranking(relevance)))


def aopc(ask, relevance: list[float]) -> float:
    return mean_loss(deletion_curve(ask, ranking(relevance)))


def comprehensiveness(ask, relevance: list[float]) -> float:
    """The least relevant features first."""
    return mean_loss(deletion_curve(ask, ranking(relevance)[::-1]))


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


def greedy_of_both(ask, features: int) -> list[int]:
    """LeRF - MoRF from the top and from the bottom, with g(S) = f(only S) - f(without S): the better, top first."""
    everything = set(range(features))

    def g(prefix):
        return ask(prefix) - ask(everything - prefix)

    first, last = [], []
    while len(first) < features:
        first.append(max(sorted(everything - {*first}), key=lambda feature: g({*first, feature})))
    while len(last) < features:
        left = everything - {*last}
        last.insert(0, max(sorted(left), key=lambda feature: g(left - {feature})))
    return max(first, last, key=lambda order: trace_objective(ask, order[::-1], "Le-Mo"))


def inserted(ask, top_first, name, *, steps, seed, image) -> tuple[list[int], list[float]]:
    """Each feature in turn to the best place near its own, by whole sums: the best order, the best sum of each step."""
    features, here = len(top_first), list(top_first)

    def value(order):
        return trace_objective(ask, order[::-1], name)

    turns, reach, still = random_order(seed, image, -(1 << 40), features), max(4, features // 4), 0
    best, history = here, [value(here)]
    for step in range(steps):
        if still >= features:
            here, still, u = list(best), 0, uniform(seed, image, step, 24)
            for a, b, side in zip(u[0::3], u[1::3], u[2::3], strict=True):
                one = int(a * features)
                low, high = sorted((one, (one + 1 + int(b * (features - 1))) % features))
                here.insert(*((high, here.pop(low)) if side < 0.5 else (low, here.pop(high))))
        else:
            moved = turns[step % features]
            own, rest = here.index(moved), [feature for feature in here if feature != moved]
            orders = {
                place: [*rest[:place], moved, *rest[place:]]
                for place in range(max(0, own - reach), min(features - 1, own + reach) + 1)
            }
            place = max(orders, key=lambda place: value(orders[place]))
            still = 0 if value(orders[place]) > value(here) + 1e-6 else still + 1
            here = here if still else orders[place]
        best = here if value(here) > value(best) else best
        history.append(value(best))
    return best, history


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
        subset = random_order(stream("subsets", seed), image, draw, features)[: size(share, features)]
        inside.append(sum(relevance[f] for f in subset))
        drops.append(ask(everything) - ask(everything - set(subset)))
    if max(inside) == min(inside) or max(drops) == min(drops):
        return math.nan
    return scipy.stats.pearsonr(inside, drops).statistic
