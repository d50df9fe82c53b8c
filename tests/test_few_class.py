"""Few-class Fidelity, its human-alignment measures, and how perturbed images are told from clean ones."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import literal
from faithlab import engine, segments
from faithlab.metrics import alignment, few_class, novelty

FEATURES = 50
ATTRIBUTION = torch.arange(FEATURES, 0, -1.0).expand(2, -1)  # the first feature matters most


def ideal(classes: int, most: int):
    """Undecided once the `most` first features are touched, sure until then: what the paper calls ideal."""
    return lambda keep: 1 - (1 - 1 / classes) * (~keep[..., :most].all(-1)).double()


# Eq. 1


def areas(mif: float, lif: float) -> few_class.Areas:
    return few_class.Areas(*torch.tensor([[mif], [lif]], dtype=torch.float64))


@given(st.floats(0, 1), st.floats(0, 1), st.integers(2, 1000))
def test_fidelity_is_bounded_and_one_at_the_ideal(mif, lif, classes):
    found = few_class.fid(areas(mif, lif), classes).item()
    assert -1e-12 <= found <= 1
    expected = 1 - (abs(1 - lif) + abs(1 / classes - mif)) / (1 + (classes - 1) / classes)
    assert found == pytest.approx(expected, abs=1e-12)
    assert few_class.fid(areas(1 / classes, 1), classes).item() == 1


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_the_worst_areas_have_fidelity_zero(classes):
    assert few_class.fid(areas(1, 0), classes).item() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_ideal_curves_score_one(classes):
    # One of many features decides: the drop takes one step of MIF and the last one of LIF.
    scores = [
        few_class.few_class_fidelity(ideal(classes, 1), torch.arange(n, 0, -1.0).expand(2, -1), classes, steps=n)
        for n in (50, 1000)
    ]
    lost = [1 - score for score in scores]
    for n, part in zip((50, 1000), lost, strict=True):
        # Half a step of a drop of 1 - 1/N in each direction.
        expected = 2 * 0.5 / n * (1 - 1 / classes) / (1 + (classes - 1) / classes)
        torch.testing.assert_close(part, torch.full((2,), expected, dtype=torch.float64), atol=1e-9, rtol=1e-6)


def test_the_reversed_attribution_of_the_ideal_scores_low():
    right = few_class.few_class_fidelity(ideal(2, 5), ATTRIBUTION, 2)
    wrong = few_class.few_class_fidelity(ideal(2, 5), -ATTRIBUTION, 2)
    assert (right > 0.9).all()
    assert (wrong < 0.4).all()


def test_a_score_on_paper():
    # The probability is the kept share: both curves are the diagonal, both areas 1/2.
    found = few_class.areas(lambda keep: keep.double().mean(-1), ATTRIBUTION, steps=10)
    torch.testing.assert_close(found.mif, torch.full((2,), 0.5, dtype=torch.float64))
    torch.testing.assert_close(found.lif, torch.full((2,), 0.5, dtype=torch.float64))
    # N = 2: 1 - (1/2 + 0) / (3/2)
    torch.testing.assert_close(few_class.fid(found, 2), torch.full((2,), 2 / 3, dtype=torch.float64))
    # N = 4: 1 - (1/2 + 1/4) / (7/4)
    torch.testing.assert_close(few_class.fid(found, 4), torch.full((2,), 4 / 7, dtype=torch.float64))


def test_falling_below_chance_counts_against_an_explanation():
    """With two classes a network that is sure of the other one is no more undecided than before."""
    undecided, switched = (
        few_class.few_class_fidelity(lambda keep, low=low: torch.where(keep[..., 0], 1.0, low).double(), ATTRIBUTION, 2)
        for low in (0.5, 0.0)
    )
    assert (switched < undecided - 0.3).all()


@given(arrays.arrays("float64", (3, 17), elements=st.floats(-5, 5)), st.integers(1, 40), st.integers(2, 6))
def test_any_attribution_and_step_is_the_literal_definition(values, steps, classes):
    weights = torch.linspace(-1, 2, 17).double()
    attribution = torch.from_numpy(values)

    def ask(kept):
        return 1 / (1 + math.exp(-sum(weights[f].item() for f in kept)))

    found = few_class.few_class_fidelity(
        lambda keep: (keep.double() @ weights).sigmoid(), attribution, classes, steps=steps
    )
    assert ((found >= 0) & (found <= 1)).all()
    for row, number in zip(attribution.tolist(), found.tolist(), strict=True):
        assert number == pytest.approx(literal.few_class_fidelity(ask, row, classes, steps), abs=1e-12)


@given(arrays.arrays("float64", (2, 12), elements=st.integers(-1000, 1000).map(float)), st.floats(0.1, 9))
def test_only_the_order_counts(values, scale):
    def score(keep):
        return (keep.double() @ torch.linspace(-1, 2, 12).double()).sigmoid()

    attribution = torch.from_numpy(values)
    one, other = (few_class.few_class_fidelity(score, a, 3) for a in (attribution, attribution * scale + 7))
    torch.testing.assert_close(one, other)


def test_all_curves_share_both_ends():
    curves = [few_class.curve(ideal(2, 3), sign * ATTRIBUTION, steps=20) for sign in (1, -1)]
    for end in (0, -1):
        assert torch.equal(curves[0][:, end], curves[1][:, end])
    assert curves[0].shape == (2, 21)


# Alignment


def test_boxes_are_the_smallest_ones():
    regions = torch.zeros(2, 6, 7, dtype=torch.bool)
    regions[0, 2, 3] = True
    regions[1, 1, 5] = regions[1, 4, 0] = True
    assert alignment.boxes(regions).tolist() == [[2, 3, 3, 4], [1, 0, 5, 6]]


@given(arrays.arrays("int8", (30,), elements=st.integers(0, 3)), st.data())
def test_iou_is_the_literal_definition(values, data):
    top, left = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 5))
    bottom, right = data.draw(st.integers(top + 1, 5)), data.draw(st.integers(left + 1, 6))
    relevance = torch.from_numpy(values).double()
    found = alignment.iou(relevance[None], torch.tensor([[top, left, bottom, right]]), 5, 6).item()
    assert found == pytest.approx(literal.box_overlap(relevance.tolist(), 6, (top, left, bottom, right)))
    assert 0 <= found <= 1


def test_iou_of_the_box_itself_is_one_whatever_is_beside_it():
    truth = torch.tensor([[1, 2, 4, 6]])
    relevance = torch.zeros(1, 8, 9)
    relevance[:, 1:4, 2:6] = 1
    assert alignment.iou(relevance.flatten(1), truth, 8, 9).item() == 1
    relevance[:, 1, 2], relevance[:, 7, 8] = 0, 2  # a single bright pixel far away is not the largest region
    assert alignment.iou(relevance.flatten(1), truth, 8, 9).item() == 1


@given(arrays.arrays("int8", (24,), elements=st.integers(0, 5)), st.sets(st.integers(0, 23), min_size=1))
def test_dice_is_the_literal_definition(values, truth):
    relevance = torch.from_numpy(values).double()
    mask = torch.zeros(1, 24, dtype=torch.bool)
    mask[0, list(truth)] = True
    found = alignment.dice(relevance[None], mask, steps=10).item()
    assert found == pytest.approx(literal.best_dice(relevance.tolist(), truth, 10))
    assert 0 <= found <= 1


def test_dice_of_the_region_itself_is_one_and_never_less_than_of_everything():
    mask = torch.rand(4, 10, 10, generator=torch.Generator().manual_seed(0)) < 0.25
    mask[:, 0, 0] = True
    size = mask.flatten(1).sum(1)
    assert (alignment.dice(mask.flatten(1).float(), mask) == 1).all()
    everything = 2 * size.double() / (100 + size)
    assert (alignment.dice(-mask.flatten(1).float(), mask) >= everything - 1e-12).all()


# Novelty


def test_novelty_is_the_distance_to_the_kth_neighbour_on_the_unit_sphere():
    known = torch.tensor([[1.0, 0], [0, 1], [-1, 0]])
    features = torch.tensor([[5.0, 0], [0, -2]])
    expected = {1: [0, 2**0.5], 2: [2**0.5, 2**0.5], 3: [2, 2]}
    for neighbours, distances in expected.items():
        torch.testing.assert_close(novelty.distance(features, known, neighbours), torch.tensor(distances).float())


# Together


def test_on_the_truth_every_measure_is_at_its_best_and_random_is_lower():
    """A score that needs exactly the pixels of a box, and an explanation that is the box."""
    mask = torch.zeros(6, 10, 10, dtype=torch.bool)
    for image in range(6):
        mask[image, image // 2 : image // 2 + 4, image : image + 3] = True
    flat = mask.flatten(1)
    assert segments.count(segments.pixels(10, 10)) == flat.shape[1]

    def score(keep):
        kept = (keep & flat[:, None]).sum(-1) / flat.sum(1)[:, None]
        return 0.5 + 0.5 * kept.double()

    chance = torch.rand(6, 100, generator=torch.Generator().manual_seed(0))
    truth = flat.float()
    for measure in (
        lambda a: few_class.few_class_fidelity(score, a, 2),
        lambda a: alignment.iou(a, alignment.boxes(mask), 10, 10),
        lambda a: alignment.dice(a, mask),
    ):
        assert (measure(truth) > 0.9).all()
        assert measure(truth).mean() > measure(chance).mean() + 0.15


def test_another_number_of_classes_than_the_models_is_an_error():
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3))
    score = engine.scorer(model, torch.rand(2, 1, 4, 4), torch.tensor([0, 2]), segments=segments.pixels(4, 4))
    attribution = torch.rand(2, 16)
    told = few_class.few_class_fidelity(score, attribution, steps=4)
    torch.testing.assert_close(told, few_class.few_class_fidelity(lambda keep: score(keep), attribution, 3, steps=4))
    with pytest.raises(ValueError, match="as many as the model's 3, but got 10"):
        few_class.few_class_fidelity(score, attribution, 10, steps=4)
