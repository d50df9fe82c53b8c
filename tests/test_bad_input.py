"""Bad input is an error that says what was expected, what came and, where it is another thing, what to do.

One row for each: a name, the call, a part of the message. What is undefined is no error but NaN: the rows at the end.
"""

import math

import numpy as np
import pytest
import torch

from faithlab import masks, rng, search, segments, stats, validation
from faithlab.baselines import perturbed
from faithlab.explainers.degrade import degrade
from faithlab.metrics import (
    alignment,
    consistency,
    deletion,
    distance,
    few_class,
    mufidelity,
    novelty,
    robustness,
    saco,
    size,
    stability,
    tiers,
    trajectory,
)
from faithlab.metrics.fidelity import fidelity, remaining

A = torch.tensor([[3.0, 1, 2, 0], [0, 1, 2, 3]])
PRESENT = torch.ones(2, 4, dtype=torch.bool)
ORDER = torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0]])
COUNTS = torch.tensor([1, 2])
TABLE = torch.rand(2, 16, generator=torch.Generator().manual_seed(0))
MAPS = torch.rand(2, 4, 4, generator=torch.Generator().manual_seed(0))
REGIONS = torch.ones(2, 4, 4, dtype=torch.bool)
BOX = torch.tensor([[0, 0, 2, 2], [0, 0, 2, 2]])
IMAGES = torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))
IDENTITIES = torch.arange(2)
SETTINGS = [size.Setting(0.5, None), size.Setting(0.5, 0.2)]
CURVES = torch.rand(2, 2, 3, generator=torch.Generator().manual_seed(0))
RIGHT = torch.ones(2, 3, dtype=torch.bool)
UNSEEN = torch.tensor([0, 1])


def score(keep, images=None):
    """The kept share of the features."""
    return keep.double().mean(-1)


def nan_score(keep, images=None):
    return torch.full(keep.shape[:-1], math.nan)


def told(classes):
    """A score that knows the number of its model's classes."""

    def of(keep):
        return score(keep)

    of.classes = classes
    return of


def half(images):
    return images.new_full((len(images), 2), 0.5)


def with_one(values, value):
    """The same with the second image's first number replaced."""
    values = values.clone()
    values[1].view(-1)[0] = value
    return values


ATTRIBUTION_METRICS = {
    "remaining": lambda a: remaining(score, a, [0.5]),
    "fidelity": lambda a: fidelity(score, a, [0.5]),
    "deletion.curve": lambda a: deletion.curve(score, a),
    "few_class_fidelity": lambda a: few_class.few_class_fidelity(score, a, 2, steps=2),
    "trajectory.morf": lambda a: trajectory.morf(score, a),
    "trajectory.lerf": lambda a: trajectory.lerf(score, a),
    "lerf_minus_morf": lambda a: trajectory.lerf_minus_morf(score, a),
    "saco": lambda a: saco.saco(score, a, 2),
    "mu_fidelity": lambda a: mufidelity.mu_fidelity(score, a, 0.5, draws=3),
    "degrade": lambda a: degrade(a, 0.5),
    "iou": lambda a: alignment.iou(a, BOX, 2, 2),
    "dice": lambda a: alignment.dice(a, REGIONS[:, 0]),
    "overlap": lambda a: alignment.overlap(a, REGIONS[:, 0]),
    "order": masks.order,
}
BAD_ATTRIBUTIONS = {
    "NaN": (with_one(A, math.nan), r"1 of 2 images holds NaN \(first: image 1\); drop these images and count them"),
    "infinity": (with_one(A, math.inf), r"1 of 2 images holds infinity \(first: image 1\)"),
    "minus infinity": (with_one(A, -math.inf), r"1 of 2 images holds infinity \(first: image 1\)"),
    "a mask": (A > 1, "real numbers, but got torch.bool; a mask has no order"),
    "complex": (A + 0j, "real numbers, but got torch.complex64"),
    "one dimension": (A[0], r"\[images, features\], but got shape \(4,\); pool a map"),
    "no features": (A[:, :0], r"but got shape \(2, 0\)"),
    "numpy": (A.numpy(), "a torch.Tensor, but got ndarray"),
    "eight bits": (A.to(torch.float8_e4m3fn), "at least 16 bits a number, but got torch.float8_e4m3fn"),
}


@pytest.mark.parametrize("metric", ATTRIBUTION_METRICS)
@pytest.mark.parametrize("what", BAD_ATTRIBUTIONS)
def test_a_bad_attribution_is_an_error_everywhere(metric, what):
    attribution, message = BAD_ATTRIBUTIONS[what]
    with pytest.raises(ValueError, match=message):
        ATTRIBUTION_METRICS[metric](attribution)


@pytest.mark.parametrize("metric", [m for m in ATTRIBUTION_METRICS if m not in ("mu_fidelity",)])
def test_a_map_that_was_not_pooled_is_an_error(metric):
    with pytest.raises(ValueError, match=r"but got shape \(2, 4, 4\); pool a map over its segments"):
        ATTRIBUTION_METRICS[metric](MAPS)


@pytest.mark.parametrize(
    "metric", [m for m in ATTRIBUTION_METRICS if m not in ("degrade", "iou", "dice", "overlap", "order")]
)
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (nan_score, r"score of 2 of 2 images is NaN or infinite \(first: image 0\); check the model"),
        (lambda keep: keep.double().sum(-1) / 0, "is NaN or infinite"),
        (lambda keep: keep.double(), r"one answer for each mask, \(2, \d+\), but the score gave \(2, \d+, 4\)"),
        (lambda keep: 0.5, "but the score gave float; make the score with faithlab.engine.scorer"),
        (lambda keep: keep.double().mean(-1) + 1j, "answers of real numbers, but the score gave torch.complex128"),
    ],
    ids=["NaN", "infinite", "of another shape", "no tensor", "complex"],
)
def test_a_bad_score_is_an_error_everywhere(metric, answer, message, monkeypatch):
    monkeypatch.setitem(globals(), "score", answer)
    with pytest.raises(ValueError, match=message):
        ATTRIBUTION_METRICS[metric](A)


PARAMETERS = {
    # name: (call of one value, what it takes in words, values that it does not take)
    "draws of remaining": (lambda v: remaining(score, A, [0.5], alpha=0.5, draws=v), "draws .*of at least 1", (0, 2.5)),
    "alpha": (
        lambda v: fidelity(score, A, [0.5], alpha=v),
        "alpha between 0 and 1",
        (-0.1, 1.1, math.nan, "half", True),
    ),
    "cap": (lambda v: fidelity(score, A, [0.5], cap=v), "cap between 0 and 1", (-0.1, 1.1, math.inf, "half")),
    "groups of SaCo": (lambda v: saco.saco(score, A, v), "number from 2 to 4", (0, 1, 5, 2.0)),
    "steps of few-class": (lambda v: few_class.areas(score, A, steps=v), "steps .*of at least 1", (0, 1.5, "10")),
    "steps of Dice": (lambda v: alignment.dice(A, REGIONS[:, 0], steps=v), "steps .*of at least 1", (0, 1.5)),
    "classes": (lambda v: few_class.few_class_fidelity(score, A, v, steps=2), "classes.*but got", (0, 1, 2.5, "two")),
    "draws of muFidelity": (lambda v: mufidelity.mu_fidelity(score, A, 0.5, draws=v), "draws.* at least 2", (1, 2.5)),
    "share of muFidelity": (
        lambda v: mufidelity.mu_fidelity(score, A, v),
        "share between 0 and 1",
        (-0.5, 1.5, "half"),
    ),
    "share of degrade": (lambda v: degrade(A, v), "share between 0 and 1", (-0.5, 1.5, None)),
    "resamples": (lambda v: stats.bootstrap(3, v, torch.Generator()), "resamples .*of at least 0", (-1, 0.5)),
    "examples": (lambda v: stats.bootstrap(v, 3, torch.Generator()), "examples .*of at least 1", (0, 0.5)),
    "directions": (lambda v: distance.wasserstein(*MAPS, directions=v), "directions .*of at least 1", (0, 2.5)),
    "level": (lambda v: distance.dice(*MAPS, level=v), "level between 0 and 1", (-0.1, 2)),
    "sigma": (lambda v: distance.ssim(*MAPS, sigma=v), "sigma above 0", (0, -1, math.nan)),
    "span": (lambda v: distance.ssim(*MAPS, sigma=0.2, span=v), "span above 0", (0, math.inf)),
    "neighbours": (lambda v: novelty.distance(A, A, v), "neighbours.* number from 1 to 2", (0, 3, 1.5)),
    "radius": (lambda v: stability.neighbours(IMAGES, v, 2), "radius of at least 0", (-1, math.nan, math.inf)),
    "points": (lambda v: stability.neighbours(IMAGES, 0.1, v), "count .*of at least 1", (0, 2.5)),
    "tolerance": (
        lambda v: robustness.advise(A, [0, 0.1, 0.2, 0.3], tolerance=v),
        "tolerance between 0 and 1",
        (-1, 5),
    ),
    "resamples of a size": (
        lambda v: size.read(CURVES, [0.1, 0.2, 0.3], SETTINGS, 9, resamples=v),
        "resamples .*of at least 20",
        (0, 2.5),
    ),
    "draws of a size": (
        lambda v: size.explanation_size(score, A, [0.1, 0.2, 0.3], SETTINGS, draws=v),
        "draws .*of at least 1",
        (0, 2.5),
    ),
    "noise of a ranking": (
        lambda v: size.law([0.1], SETTINGS[0], [0.2], [1.0], v),
        "noise between 0 and 1",
        (-0.1, 1.5, math.nan),
    ),
    "tier": (lambda v: tiers.expected_fidelity([v], lambda k: k.sum(-1), [0.5]), "a tier .*of at least 1", (0, 2.5)),
    "steps of annealing": (lambda v: search.anneal(score, ORDER, steps=v), "steps .*of at least 1", (0, -1, 2.5)),
    "restarts": (lambda v: search.anneal(score, ORDER, restarts=v), "chains per image .*of at least 1", (0, 1.5)),
    "steps of insertion": (lambda v: search.insert(score, ORDER, steps=v), "steps .*of at least 1", (0, 2.5)),
    "sweeps": (lambda v: search.best(score, 2, 4, sweeps=v), "sweeps above 0", (0, -1, math.inf)),
    "temperature": (lambda v: search.anneal(score, ORDER, temperature=v), "temperature above 0", (0, math.inf, "hot")),
    "cooling": (lambda v: search.anneal(score, ORDER, cooling=v), "cooling above 0 and up to 1", (0, 1.1)),
    "score range": (lambda v: search.anneal(score, ORDER, score_range=v), "from a lower to a higher", ((1, 0), (0, 0))),
    "objective": (lambda v: search.anneal(score, ORDER, objective=v), "among Mo, Le, Le-Mo, but got", ("mo", None)),
    "objective of bound": (lambda v: search.bound(TABLE, v), "among Mo, Le, Le-Mo, but got", ("mo", None)),
    "objective of optimum": (lambda v: search.optimum(TABLE, v), "among Mo, Le, Le-Mo, but got", ("mo",)),
    "neighbour": (lambda v: search.anneal(score, ORDER, neighbour=v), "among swap, ", ("flip",)),
    "features of greedy": (lambda v: search.greedy(score, 2, v, objective="Mo"), "features .*at least 1", (0, 1.5)),
    "features of answers": (lambda v: search.answers(score, 2, v), "subsets can be counted, .*from 1 to 20", (0, 21)),
    "orders": (lambda v: search.random_orders(IDENTITIES, 3, seed=0, count=v), "count .*of at least 0", (-1, 0.5)),
    "capacity": (lambda v: search.Remembered(score, v), "capacity", (0, 100, 2.0)),
    "heat map's alpha": (lambda v: search.heat_map(ORDER, v), "alpha above 0", (0, -1, math.inf)),
    "norm": (lambda v: stability.neighbours(IMAGES, 0.1, 2, norm=v), 'norm "l1" or "max", but got', ("l2", None)),
    "rates": (lambda v: consistency.reco(A[0], A[0], v), 'rates "balanced" or "printed", but got', ("true", None)),
    "images": (
        lambda v: fidelity(score, A, [0.5], alpha=0.5, images=v),
        "images as 2 integers, but got",
        (torch.arange(3), torch.tensor([0.0, 1.0])),
    ),
    "present": (
        lambda v: fidelity(score, A, [0.5], present=v),
        r"present as a boolean mask \(2, 4\), but got|have no feature to remove \(first: 1\); drop and count them",
        (PRESENT[:, :3], PRESENT.float(), [True], PRESENT & torch.tensor([[True], [False]])),
    ),
    "fractions": (
        lambda v: remaining(score, A, v),
        "expected fractions",
        ([], 0.5, [0.5, 5.0], [-0.1], [math.nan], "half", ["half"], None, torch.tensor([[0.5]]), torch.tensor([True])),
    ),
    "imprecise fractions": (
        lambda v: remaining(score, A, v),
        "float64 or float32, but got torch.b?float16, which has too few decimals",
        (torch.tensor([0.35], dtype=torch.bfloat16), torch.tensor([0.35], dtype=torch.float16)),
    ),
    "fractions of a curve": (lambda v: deletion.curve(score, A, v), "fractions between 0 and 1", ([0.5, 1.5], [])),
}


@pytest.mark.parametrize(
    ("parameter", "value"), [(name, value) for name, (_, _, values) in PARAMETERS.items() for value in values], ids=str
)
def test_a_parameter_out_of_range_is_an_error(parameter, value):
    call, message, _ = PARAMETERS[parameter]
    with pytest.raises(ValueError, match=message):
        call(value)


CALLS = {
    # numbers of another kind
    "a correlation of complex numbers": (lambda: stats.pearson(A + 1j, A), "real numbers, but got torch.complex64"),
    "ranks of complex numbers": (lambda: stats.spearman(A, A + 1j), "real numbers, but got torch.complex64"),
    # masks
    "an order that is none": (
        lambda: trajectory.curves(score, torch.tensor([[0, 0, 1]])),
        "each a permutation of 0..F-1; make them with",
    ),
    "a search from no order": (lambda: search.anneal(score, torch.tensor([[1, 2, 3]])), "each a permutation of"),
    "a heat map of no order": (lambda: search.heat_map(torch.tensor([2, 1, 0])), "each a permutation of"),
    # draws, segments, stats
    "a wrong number of identities": (
        lambda: rng.identities(3, IDENTITIES, torch.device("cpu")),
        r"images as 3 integers, but got torch.int64 \(2,\)",
    ),
    "patches that do not divide": (
        lambda: segments.patches(4, 6, 3),
        "a patch size that divides the sides 4 x 6, but got 3",
    ),
    "a map with holes": (lambda: segments.count(torch.tensor([0, 1, 3])), r"0\.\.F-1, but got \[0, 1, 3\]"),
    "a map of another type": (lambda: segments.count(torch.zeros(3)), r"int64 map .* but got \[0\.0\]"),
    "a correlation of infinities": (
        lambda: stats.pearson(A, A / 0),
        "finite numbers, but got an infinity; drop and count",
    ),
    "a correlation of two lengths": (lambda: stats.spearman(A, A[:, :3]), r"one length to correlate, but got \(2, 4\)"),
    "positions that stay": (lambda: stats.auc(A, [0, 0.5, 0.5, 1]), "increasing positions"),
    "one position": (lambda: stats.auc(A[:, :1], [0.5]), "at least two increasing positions"),
    "positions with NaN": (lambda: stats.auc(A, [0, 0.1, math.nan, 1]), "increasing positions"),
    "positions of another curve": (lambda: stats.auc(A, [0, 1]), r"a curve of 2 points, .* but got \(2, 4\); pass the"),
    # metrics
    "a curve that starts late": (
        lambda: deletion.loss(A, [0.1, 0.2, 0.3, 0.4]),
        "starts with nothing removed, but its first fraction is 0.1; make the curve with fractions that begin with 0",
    ),
    "a curve with other steps": (
        lambda: deletion.loss(A),
        "a curve of 11 steps, one for each fraction, but got 4; pass the fractions that the curve was made with",
    ),
    "an area with other steps": (lambda: deletion.area(A), r"a curve of 11 points, .* but got \(2, 4\)"),
    "a broken curve": (
        lambda: deletion.loss(with_one(A, math.nan), [0, 0.1, 0.2, 0.3]),
        r"curve of 1 of 2 .* holds NaN",
    ),
    "the area of a broken curve": (lambda: deletion.area(with_one(A, math.inf), [0, 0.1, 0.2, 0.3]), "holds infinity"),
    "a curve of no image": (lambda: deletion.loss(A[0]), r"\[images, steps\], but got \(4,\)"),
    "a logit as probability": (
        lambda: few_class.few_class_fidelity(lambda keep: keep.double().mean(-1) * 10 - 3, A, 2),
        r"expected probabilities.*gave -3.*outputs\.probability",
    ),
    "classes of another model": (
        lambda: few_class.few_class_fidelity(told(3), A, 2, steps=2),
        "the 3 classes of the model, but got classes=2; leave classes out",
    ),
    "classes that nobody knows": (
        lambda: few_class.few_class_fidelity(score, A, steps=2),
        "the score does not tell it; pass classes, as many as the model has logits",
    ),
    "a model of one class": (
        lambda: few_class.few_class_fidelity(told(1), A, steps=2),
        "at least two classes, but got 1",
    ),
    "areas that are none": (lambda: few_class.fid(few_class.Areas(A[0], A[1]), 2), "between 0 and 1; make them with"),
    "saliences of other groups": (lambda: saco.coefficient(saco.Groups(A, A[:, :3])), r"but got \(2, 4\) and \(2, 3\)"),
    "drops that are none": (
        lambda: saco.coefficient(saco.Groups(A, with_one(A, math.nan))),
        "the drop of 1 of 2 images holds NaN .* make the groups with faithlab.metrics.saco.influences",
    ),
    "a subset of nothing": (lambda: mufidelity.mu_fidelity(score, A, 0.01), "of the 4 features, but 0.01 of them is 0"),
    "a subset of everything": (
        lambda: mufidelity.mu_fidelity(score, A, 1.0),
        "of the 4 features, but 1.0 of them is 4",
    ),
    "shares of other images": (lambda: trajectory.attainable_share(A[0], A[0, :2]), r"but got \(4,\) and \(2,\)"),
    "a search that found nothing": (
        lambda: trajectory.attainable_share(A[0], with_one(A, math.nan)[1]),
        "the search reached of 1 of 4 images holds NaN",
    ),
    "regions without a pixel": (
        lambda: alignment.boxes(REGIONS & torch.tensor([True, False])[:, None, None]),
        r"1 of 2 true regions have no pixel \(first: image 1\)",
    ),
    "regions that are none": (
        lambda: alignment.boxes(MAPS),
        r"boolean regions \[images, H, W\], but got torch.float32",
    ),
    "a region of another size": (
        lambda: alignment.dice(A, REGIONS),
        r"regions of \(2, 4\) features, but got \(2, 4, 4\)",
    ),
    "a region without a pixel": (lambda: alignment.dice(A, ~REGIONS[:, 0]), "have no pixel"),
    "boxes of fractions": (lambda: alignment.iou(A, BOX / 2, 2, 2), "a box of whole numbers .*but got torch.float32"),
    "an image of other sides": (
        lambda: alignment.iou(A, BOX, 2, 3),
        r"of the 2 x 3 pixels, but got \(2, 4\); give the",
    ),
    "an unseen model of none": (
        lambda: consistency.to_unseen(torch.ones(3, 2, 4, 4), UNSEEN + 2, distance.l1),
        "int64 from 0 to 2, but got 2 to 3",
    ),
    "explanations of other examples": (
        lambda: consistency.to_unseen(IMAGES, UNSEEN, distance.l1),
        r"but got \(2, 3, 4, 4\) and \(2,\)",
    ),
    "a distance that is missing": (
        lambda: consistency.mege(torch.tensor([0.1, math.nan])),
        "1 NaN, 0 infinite and 0 neg",
    ),
    "an infinite distance": (lambda: consistency.mege(torch.tensor([math.inf])), "0 NaN, 1 infinite"),
    "a negative distance": (lambda: consistency.reco(A[0], -A[0]), "3 negative; leave NaN out, and count it"),
    "distances of two dimensions": (lambda: consistency.mege(A), r"distances \[n\], .* but got shape \(2, 4\)"),
    "maps smaller than the window": (
        lambda: distance.ssim(*MAPS),
        "at least 11 x 11 for sigma = 1.5, but got 4 x 4; pass",
    ),
    "features of another width": (lambda: novelty.distance(A, A[:, :3], 1), r"but got \(2, 4\) and \(2, 3\)"),
    "features with NaN": (lambda: novelty.distance(with_one(A, math.nan), A, 1), "features of 1 of 2 images holds NaN"),
    "shares that do not start": (lambda: robustness.advise(A, [0.1, 0.2, 0.3, 0.4]), "increasing shares from 0"),
    "shares that fall": (lambda: robustness.advise(A, [0, 0.2, 0.1, 0.3]), "increasing shares from 0"),
    "hits of other shares": (lambda: robustness.advise(A, [0, 0.1]), r"each of the 2 shares, but got \(2, 4\)"),
    "one input": (lambda: robustness.advise(A[:1], [0, 0.1, 0.2, 0.3]), "at least two inputs"),
    "a shape that is none": (lambda: robustness.robustness(score, (2,), [0.5]), r"\(B, F\), but got \(2,\)"),
    "an empty shape": (lambda: robustness.robustness(score, (2, 0), [0.5]), "features .*of at least 1, but got 0"),
    "whole inputs": (lambda: stability.neighbours(ORDER, 0.1, 2), "floating-point numbers, .* but got torch.int64"),
    "inputs with NaN": (
        lambda: stability.neighbours(with_one(IMAGES, math.nan), 0.1, 2),
        "input of 1 of 2 images holds NaN",
    ),
    "neighbours of others": (
        lambda: stability.average_stability(MAPS, IMAGES[:, :, :3], distance.l1),
        r"\[B, N, H, W\], but",
    ),
    "curves of other settings": (
        lambda: size.read(CURVES, [0.1, 0.2, 0.3], 2 * SETTINGS, 9),
        r"curves \[images, 4 settings, 3 sizes\] with at least three sizes, but got \(2, 2, 3\)",
    ),
    "two sizes": (lambda: size.read(CURVES[..., :2], [0.1, 0.2], SETTINGS, 9), "at least three sizes"),
    "sizes that fall": (lambda: size.read(CURVES, [0.1, 0.3, 0.2], SETTINGS, 9), "increasing sizes"),
    "no curves": (lambda: size.read(CURVES[:0], [0.1, 0.2, 0.3], SETTINGS, 9), "images .*of at least 1"),
    "curves with NaN": (
        lambda: size.read(with_one(CURVES, math.nan), [0.1, 0.2, 0.3], SETTINGS, 9),
        r"curves of 1 of 2 images holds NaN \(first: image 1\); drop these images and count them",
    ),
    "one cap": (lambda: size.read(CURVES, [0.1, 0.2, 0.3], SETTINGS[:1] * 2, 9), "two caps or more"),
    "losses of a logit": (
        lambda: size.read(20 * CURVES, [0.1, 0.2, 0.3], SETTINGS, 9),
        "output between 0 and 1, but the largest is 1",
    ),
    "weights of no tier": (lambda: size.law([0.1], SETTINGS[0], [0.2], [1.0, 0.5]), "one weight each"),
    "tiers beyond all": (lambda: size.law([0.1], SETTINGS[0], [0.7, 0.6], [1.0, 0.5]), "at most all features"),
    "tiers that are no numbers": (
        lambda: tiers.scorer(A, lambda kept: kept.sum(-1)),
        "tier of each feature, 0 or more",
    ),
    # search
    "a search of NaN": (
        lambda: search.anneal(nan_score, ORDER, steps=1),
        "is NaN or infinite, so that no order can be",
    ),
    "a greedy search of NaN": (
        lambda: search.greedy(nan_score, 2, 4, objective="Mo"),
        "4 of 4 masked inputs is NaN or",
    ),
    "a search of other answers": (
        lambda: search.anneal(lambda keep, images: keep.double(), ORDER, steps=1),
        r"one answer for each pair of a mask and an image, \[\d+\], but the score gave",
    ),
    "a greedy search from nowhere": (lambda: search.greedy(score, 2, 4, objective="Le", ends=["left"]), "ends among"),
    "a limit of one search": (lambda: search.limit(torch.ones(1, 3)), "independent searches .*of at least 2"),
    "a limit of NaN": (lambda: search.limit(torch.tensor([[1.0, math.nan], [1.0, 2.0]])), "1 of 2 images"),
    "a ceiling of logits": (lambda: search.ceiling(score, 2, 4, score_range=None), "logits have none"),
    "a ceiling of NaN": (lambda: search.ceiling(nan_score, 2, 4, score_range=(0, 1)), "is NaN or infinite"),
    "a search of one feature": (lambda: search.anneal(score, ORDER[:, :1] * 0), "at least two features"),
    "a range that is NaN": (lambda: search.anneal(score, ORDER, score_range=(math.nan, 1)), "from a lower to a higher"),
    "a table of no subsets": (
        lambda: search.lookup(TABLE[:, :15]),
        r"all subsets, \[images, 2\^F\], but got \(2, 15\)",
    ),
    "a table of NaN": (lambda: search.optimum(with_one(TABLE, math.nan), "Mo"), "score of 1 of 2 images holds NaN"),
    "all subsets of NaN": (lambda: search.answers(nan_score, 2, 3), "score of 2 of 2 images holds NaN"),
    # perturbed
    "images with NaN": (
        lambda: perturbed.scores(with_one(IMAGES, math.nan), half),
        "at least zero and finite, but the lowest is nan",
    ),
}


@pytest.mark.parametrize("what", CALLS)
def test_what_cannot_be_is_an_error(what):
    call, message = CALLS[what]
    with pytest.raises(ValueError, match=message):
        call()


def test_an_unknown_direction_is_an_error():
    for call in (deletion.curve, few_class.curve, lambda *given, **options: fidelity(*given, [0.5], **options)):
        with pytest.raises(KeyError, match="morf"):
            call(score, A, direction="morf")


@pytest.mark.parametrize("box", [[0, 0, 0, 3], [0, 0, 6, 3], [-1, 0, 2, 3], [2, 3, 1, 5]])
def test_a_box_that_cannot_be_is_an_error(box):
    with pytest.raises(ValueError, match=r"inside 5 x 6, but got \[\["):
        alignment.iou(torch.rand(1, 30), torch.tensor([box]), 5, 6)


@pytest.mark.parametrize("name", distance.DISTANCES)
@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (MAPS, MAPS[:, :3], r"two maps of one size, but got \(2, 4, 4\) and \(2, 3, 4\)"),
        (with_one(MAPS, math.nan), MAPS, "1 of 2 maps hold NaN or infinity; drop these examples and count them"),
        (MAPS, with_one(MAPS, math.inf), "1 of 2 maps hold NaN or infinity"),
        (REGIONS, MAPS, r"maps of numbers \[..., H, W\], but got torch.bool"),
        (A[0], A[0], r"but got torch.float32 \(4,\)"),
    ],
    ids=["sizes", "NaN", "infinity", "a mask", "no map"],
)
def test_maps_without_a_distance_are_an_error(name, a, b, message):
    with pytest.raises(ValueError, match=message):
        distance.DISTANCES[name](a, b)


# What is no error


@pytest.mark.parametrize("metric", [m for m in ATTRIBUTION_METRICS if m not in ("iou", "dice", "overlap")])
def test_no_images_give_no_values(metric):
    found = ATTRIBUTION_METRICS[metric](A[:0])
    assert len(found.value if hasattr(found, "value") else found) == 0


@pytest.mark.parametrize("metric", ATTRIBUTION_METRICS)
def test_integers_are_an_attribution(metric):
    found, expected = (ATTRIBUTION_METRICS[metric](a) for a in (A.long(), A))
    for one, other in zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]:
        torch.testing.assert_close(one, other.to(one), atol=0, rtol=0, equal_nan=True)


def test_a_negative_seed_is_a_seed():
    drawn = [rng.uniform(seed, IDENTITIES, IDENTITIES, 50) for seed in (-1, 1, -(1 << 63), (1 << 63) - 1)]
    assert len({tuple(numbers.flatten().tolist()) for numbers in drawn}) == 4


def test_whole_numbers_of_numpy_and_torch_are_whole_numbers():
    assert validation.whole("draws", np.int64(3), 1) == validation.whole("draws", torch.tensor(3), 1) == 3


UNDEFINED = {
    "SaCo of equal scores": lambda: saco.saco(score, torch.ones(2, 4), 2),
    "SaCo of fewer features than groups": lambda: saco.saco(
        score, A, 4, present=torch.tensor([[True, True, False, False]] * 2)
    ),
    "muFidelity of equal scores": lambda: mufidelity.mu_fidelity(score, torch.ones(2, 4), 0.5),
    "muFidelity of a model that ignores its input": lambda: mufidelity.mu_fidelity(
        lambda keep: torch.zeros(keep.shape[:2]), A, 0.5
    ),
    "an error of one draw": lambda: remaining(score, A, [1.0], alpha=0.5, draws=1).error,
    "a share of nothing": lambda: trajectory.attainable_share(A[0], torch.zeros(4)),
    "Pearson of a constant": lambda: stats.pearson(A, torch.ones(2, 4)),
    "Spearman of a constant": lambda: stats.spearman(torch.zeros(2, 4), A),
    "MeGe of no pairs": lambda: torch.tensor(consistency.mege(A[0, :0])),
    "ReCo of no pairs": lambda: torch.tensor(consistency.reco(A[0], A[0, :0])),
    "ReCo as printed of equal distances": lambda: torch.tensor(consistency.reco(A[:, 1], A[:, 1], "printed")),
    "Spearman's distance to a constant": lambda: distance.spearman(MAPS, torch.ones(4, 4)),
    "Wasserstein's distance to nothing": lambda: distance.wasserstein(MAPS, torch.zeros(4, 4)),
    "Dice of two empty maps": lambda: distance.dice(torch.zeros(2, 4, 4), torch.zeros(4, 4)),
    "SSIM of one constant": lambda: distance.ssim(torch.ones(2, 4, 4), torch.ones(4, 4), sigma=0.2),
    "a size where nothing is lost": lambda: torch.tensor(size.read(-CURVES, [0.1, 0.2, 0.3], SETTINGS, 9).fraction),
}


@pytest.mark.parametrize("what", UNDEFINED)
def test_what_is_undefined_is_nan(what):
    assert UNDEFINED[what]().isnan().all()


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_a_correlation_does_not_depend_on_the_unit(scale):
    a, b = A.double(), A.flip(0).double() ** 2
    assert torch.equal(stats.pearson(a * scale, b).isnan(), stats.pearson(a, b).isnan())
    torch.testing.assert_close(stats.pearson(a * scale, b), stats.pearson(a, b))


@pytest.mark.gpu
def test_an_attribution_may_be_on_another_device_than_the_model():
    def remote(keep):
        return score(keep.cuda())

    for metric in (
        lambda score: deletion.curve(score, A),
        lambda score: saco.saco(score, A, 2),
        lambda score: remaining(score, A, [0.5], alpha=0.5, draws=2).value,
        lambda score: few_class.few_class_fidelity(score, A, 2, steps=2),
        lambda score: trajectory.lerf_minus_morf(score, A),
    ):
        assert torch.equal(metric(remote), metric(score))
