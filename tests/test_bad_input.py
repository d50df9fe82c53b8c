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
    METRICS,
    alignment,
    consistency,
    deletion,
    distance,
    few_class,
    mufidelity,
    robustness,
    saco,
    size,
    trajectory,
)
from faithlab.metrics.fidelity import fidelity, remaining
from faithlab.task import Task

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
    "NaN": (with_one(A, math.nan), r"images \[1\] holds NaN or infinity; drop these images and count"),
    "infinity": (with_one(A, -math.inf), r"images \[1\] holds NaN or infinity"),
    "a mask": (A > 1, r"real numbers, .*but got torch.bool \(2, 4\)"),
    "complex": (A + 0j, "real numbers, .*but got torch.complex64"),
    "one dimension": (A[0], r"\[images, features\], but got torch.float32 \(4,\)"),
    "no features": (A[:, :0], r"but got torch.float32 \(2, 0\)"),
    "not pooled": (MAPS[None], r"but got torch.float32 \(1, 2, 4, 4\)"),
}


@pytest.mark.parametrize("metric", [m for m in ATTRIBUTION_METRICS if m != "iou"])
@pytest.mark.parametrize("what", BAD_ATTRIBUTIONS)
def test_a_bad_attribution_is_an_error_everywhere(metric, what):
    attribution, message = BAD_ATTRIBUTIONS[what]
    with pytest.raises(ValueError, match=message):
        ATTRIBUTION_METRICS[metric](attribution)


def test_an_array_of_numpy_is_an_error():
    with pytest.raises(ValueError, match=r"a dense tensor of real numbers, .* but got ndarray"):
        METRICS["AOPC"](Task(torch.nn.Identity(), A, torch.zeros(2).long(), torch.arange(4)), A.numpy())


@pytest.mark.parametrize(
    "metric", [m for m in ATTRIBUTION_METRICS if m not in ("degrade", "iou", "dice", "overlap", "order")]
)
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (nan_score, "score is NaN or infinite .*; check the model"),
        (lambda keep: keep.double().sum(-1) / 0, "is NaN or infinite"),
        (lambda keep: keep.double(), r"a score of each mask, \(2, \d+\), but got \(2, \d+, 4\)"),
    ],
    ids=["NaN", "infinite", "of another shape"],
)
def test_a_bad_score_is_an_error_everywhere(metric, answer, message, monkeypatch):
    monkeypatch.setitem(globals(), "score", answer)
    with pytest.raises(ValueError, match=message):
        ATTRIBUTION_METRICS[metric](A)


PARAMETERS = {
    # name: (call of one value, what it takes in words, values that it does not take)
    "draws of remaining": (lambda v: remaining(score, A, [0.5], alpha=0.5, draws=v), "draws .* from 1", (0, 2.5)),
    "alpha": (
        lambda v: fidelity(score, A, [0.5], alpha=v),
        "alpha between 0 and 1",
        (-0.1, 1.1, math.nan, "half", True),
    ),
    "cap": (lambda v: fidelity(score, A, [0.5], cap=v), "cap between 0 and 1", (-0.1, 1.1, math.inf, "half")),
    "groups of SaCo": (lambda v: saco.saco(score, A, v), "groups .* from 2", (0, 1, 2.0)),
    "share of muFidelity": (
        lambda v: mufidelity.mu_fidelity(score, A, v),
        "fractions between 0 and 1",
        (-0.5, 1.5),
    ),
    "features of answers": (lambda v: search.answers(score, 2, v), "subsets can be counted, .*from 1 to 20", (0, 21)),
    "present": (
        lambda v: fidelity(score, A, [0.5], present=v),
        r"present as bool \(2, 4\) .*a feature in every row",
        (PRESENT[:, :3], PRESENT.float(), [True], PRESENT & torch.tensor([[True], [False]])),
    ),
    "fractions": (
        lambda v: remaining(score, A, v),
        "expected fractions",
        ([], 0.5, [0.5, 5.0], [-0.1], [math.nan], "half", ["half"], None, torch.tensor([[0.5]]), torch.tensor([True])),
    ),
}


@pytest.mark.parametrize(
    ("parameter", "value"), [(name, value) for name, (_, _, values) in PARAMETERS.items() for value in values], ids=str
)
def test_a_parameter_out_of_range_is_an_error(parameter, value):
    call, message, _ = PARAMETERS[parameter]
    with pytest.raises(ValueError, match=message):
        call(value)


CALLS = {
    "a pooled mask": (lambda: segments.pool(A > 1, torch.arange(4)), "real numbers to be summed, but got torch.bool"),
    "an order that is none": (
        lambda: trajectory.curves(score, torch.tensor([[0, 0, 1]])),
        r"each (row )?a permutation of 0..F-1",
    ),
    "a search from no order": (lambda: search.anneal(score, torch.tensor([[1, 2, 3]])), "each (row )?a permutation of"),
    "patches that do not divide": (lambda: segments.patches(4, 6, 3), "divides the sides 4 x 6, but got 3"),
    "a map with holes": (lambda: segments.count(torch.tensor([0, 1, 3])), r"every number 0..F-1, but got \[0, 1, 3\]"),
    "a map that starts late": (lambda: segments.count(torch.tensor([1, 2])), r"every number 0..F-1, but got \[1, 2\]"),
    "a map of another type": (lambda: segments.count(torch.zeros(3)), r"an int64 map .* but got \[0\.0\]"),
    "an empty map": (lambda: segments.count(torch.zeros(0, dtype=torch.int64)), r"every number 0..F-1, but got \[\]"),
    "positions that stay": (lambda: stats.auc(A, [0, 0.5, 0.5, 1]), "increasing positions"),
    "positions with NaN": (lambda: stats.auc(A, [0, 0.1, math.nan, 1]), "increasing positions"),
    "a logit as probability": (
        lambda: few_class.few_class_fidelity(lambda keep: keep.double().mean(-1) * 10 - 3, A, 2),
        r"expected probabilities \(faithlab.outputs\), but got -3 to 7",
    ),
    "classes of another model": (
        lambda: few_class.few_class_fidelity(told(3), A, 2, steps=2),
        "as many as the model's 3, but got 2",
    ),
    "regions without a pixel": (
        lambda: alignment.iou(A, alignment.boxes(REGIONS & torch.tensor([True, False])[:, None, None]), 2, 2),
        "expected boxes",
    ),
    "an image of other sides": (lambda: alignment.iou(A, BOX, 2, 3), "expected boxes .* inside 2 x 3"),
    "a negative distance": (lambda: consistency.reco(A[0], -A[0]), "distances .*of 0 or more, no NaN"),
    "shares that do not start": (lambda: robustness.advise(A, [0.1, 0.2, 0.3, 0.4]), "increasing shares from 0"),
    "curves of other settings": (
        lambda: size.read(CURVES, [0.1, 0.2, 0.3], 2 * SETTINGS, 9),
        r"three sizes and two caps or more, not \(2, 2, 3\)",
    ),
    "two sizes": (lambda: size.read(CURVES[..., :2], [0.1, 0.2], SETTINGS, 9), "three sizes and two caps or more"),
    "sizes that fall": (lambda: size.read(CURVES, [0.1, 0.3, 0.2], SETTINGS, 9), "increasing sizes"),
    "curves with NaN": (
        lambda: size.read(with_one(CURVES, math.nan), [0.1, 0.2, 0.3], SETTINGS, 9),
        "losses from -1 to 1 without NaN",
    ),
    "one cap": (lambda: size.read(CURVES, [0.1, 0.2, 0.3], SETTINGS[:1] * 2, 9), "two caps or more"),
    "losses of a logit": (
        lambda: size.read(20 * CURVES, [0.1, 0.2, 0.3], SETTINGS, 9),
        "losses from -1 to 1 without NaN",
    ),
    "a search of NaN": (
        lambda: search.anneal(nan_score, ORDER, steps=1),
        r"expected finite scores \(\d+,\)",
    ),
    "a search of other answers": (
        lambda: search.anneal(lambda keep, images: keep.double(), ORDER, steps=1),
        r"finite scores \(\d+,\) from -inf to inf, but got",
    ),
    # perturbed
    "images with NaN": (
        lambda: perturbed.scores(with_one(IMAGES, math.nan), half),
        "intensities as stored, at least zero and finite, .* nan",
    ),
    "a classifier of one number": (
        lambda: perturbed.search(IMAGES, lambda images: images.mean((1, 2, 3))),
        "the softmax of two or more classes",
    ),
    "whole probabilities": (lambda: perturbed.uncertainty(ORDER), "the softmax of two or more classes"),
}


@pytest.mark.parametrize("what", CALLS)
def test_what_cannot_be_is_an_error(what):
    call, message = CALLS[what]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("box", [[0, 0, 0, 3], [0, 0, 6, 3], [-1, 0, 2, 3], [2, 3, 1, 5]])
def test_a_box_that_cannot_be_is_an_error(box):
    with pytest.raises(ValueError, match=r"inside 5 x 6, not \[\["):
        alignment.iou(torch.rand(1, 30), torch.tensor([box]), 5, 6)


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
    "muFidelity of subsets of nothing": lambda: mufidelity.mu_fidelity(score, A, 0.01),
    "muFidelity of subsets of everything": lambda: mufidelity.mu_fidelity(score, A, 1.0),
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
