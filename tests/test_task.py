"""A task hands out the right score and remembers what was asked."""

import dataclasses
import types
import warnings
from functools import partial

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch import nn

from faithlab import baselines, engine, segments
from faithlab.metrics import Metric
from faithlab.outputs import correct, log_odds, logit, probability
from faithlab.task import Remembered, Task

OUTPUTS = (probability, correct, log_odds, logit)


def network(seed: int = 0, features: int = 6) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(features, 8), nn.ReLU(), nn.Linear(8, 3)).eval()


@pytest.fixture
def task() -> Task:
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))
    target = torch.tensor([0, 1, 2, 0])
    return Task(network(), x, target, torch.arange(6), tuned=network(1), retrained={"IG": network(2)})


def masks_of(images: int, count: int, features: int = 6, seed: int = 0) -> torch.Tensor:
    return torch.rand(images, count, features, generator=torch.Generator().manual_seed(seed)) < 0.5


def literal(model, x, target, keep, reference, output):
    """The answers, one masked input at a time."""
    stand_in = reference(x).expand_as(x)
    answers = [
        [output(model(torch.where(k, x[i], stand_in[i])[None]), target[i : i + 1]).item() for k in keep[i]]
        for i in range(len(x))
    ]
    return torch.tensor(answers)


@pytest.mark.parametrize("asked", ["original", "fine-tuned", "retrained"])
@pytest.mark.parametrize("name", ["zero", "mean"])
@pytest.mark.parametrize("output", OUTPUTS)
def test_each_network_is_asked_with_the_reference_and_the_readout_that_are_named(task, asked, name, output):
    model = {"original": task.model, "fine-tuned": task.tuned, "retrained": task.retrained["IG"]}[asked]
    keep = masks_of(4, 5)
    found = task.score(output, name, asked, explainer="IG")(keep)
    torch.testing.assert_close(
        found, literal(model, task.x, task.target, keep, baselines.NAMED[name], output), rtol=1e-4, atol=1e-5
    )


def test_several_readouts_are_read_off_one_forward(task):
    keep = masks_of(4, 5)
    together = task.score(OUTPUTS)(keep)
    assert together.shape == (4, 5, len(OUTPUTS))
    for number, output in enumerate(OUTPUTS):
        torch.testing.assert_close(together[..., number], task.score(output)(keep))
    images = torch.tensor([3, 0])
    pairs = task.score(OUTPUTS)(keep[:2, 0], images)
    torch.testing.assert_close(pairs[..., 0], task.score(probability)(keep[:2, 0], images))


def test_a_broken_answer_is_found_with_several_readouts_too():
    class Broken(nn.Module):
        def forward(self, x):
            return torch.where(x.sum(1, keepdim=True) > 0, torch.nan, 0.0) + x[:, :2]

    x = torch.ones(2, 3)
    score = engine.scorer(
        Broken(),
        -x,
        torch.zeros(2, dtype=torch.int64),
        segments=torch.arange(3),
        output=(correct, probability),
        baseline=lambda x: torch.tensor(2.0),
    )
    with pytest.raises(ValueError, match="NaN"):
        score(torch.zeros(2, 1, 3, dtype=torch.bool))


def test_a_scorer_is_made_once_for_each_question(task):
    assert task.score(correct) is task.score(correct)
    assert task.score(correct) is not task.score(probability)
    assert task.score(correct, exact=True) is not None
    assert task.score(correct, explainer="IG") is task.score(correct), "the original network is everybody's"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"network": "fine-tuned"}, "no network that was fine-tuned on random masks"),
        ({"network": "retrained", "explainer": "saliency"}, "no network retrained for saliency"),
        ({"network": "retrained"}, "no network retrained for an explainer"),
        ({"baseline": "perturbed"}, "no baseline 'perturbed'"),
    ],
)
def test_what_a_subject_does_not_have_is_said(asked, message):
    task = Task(network(), torch.zeros(1, 6), torch.zeros(1, dtype=torch.int64), torch.arange(6))
    asked = {"baseline": "zero", "network": "original"} | asked
    assert message in task.missing(**asked)
    with pytest.raises(ValueError, match=message):
        task.score(probability, **asked)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": None}, "expected inputs as a torch.Tensor, but got builtins.NoneType"),
        ({"images": [0, 1]}, r"images as 4 integers, .* but got torch.int64 \(2,\)"),
        ({"images": torch.arange(4.0)}, "images as 4 integers, .* but got torch.float32"),
        ({"baselines": None}, "baselines as functions by name, but got None"),
    ],
)
def test_what_no_subject_can_be_made_of_is_said(task, given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        dataclasses.replace(task, **given)


def test_a_subject_without_a_target_says_so_when_it_is_asked(task):
    with pytest.raises(TypeError, match=r"expected targets as a torch.Tensor, but got builtins.NoneType"):
        dataclasses.replace(task, target=None).score()


def test_images_may_be_a_list(task):
    named = dataclasses.replace(task, images=[7, 5, 3, 1])
    assert named.part([1, 3]).images.tolist() == [5, 1]


@pytest.mark.parametrize("places", [[4], [-1], [True, False, True, False], [[0]], [0.0]])
def test_a_part_of_other_inputs_than_there_are_is_an_error(task, places):
    with pytest.raises(ValueError, match=r"expected positions of inputs, 0\.\.3, int64"):
        task.part(places)


def test_a_part_has_the_reference_of_its_own_inputs_whatever_happens_to_the_whole(task):
    places, keep = torch.tensor([3, 1]), masks_of(2, 5)
    before = task.part(places)
    expected = before.score(logit, "mean")(keep)
    task.x.mul_(2)  # a part copies its inputs
    with pytest.raises(ValueError, match=r"the task that this is a part of have changed since; take the part again"):
        before.score(logit, "zero")
    torch.testing.assert_close(before.score(logit, "mean")(keep), expected, rtol=0, atol=0)
    after = task.part(places)
    whole = baselines.mean(task.x)
    found = literal(task.model, task.x[places], task.target[places], keep, lambda _: whole, logit)
    torch.testing.assert_close(after.score(logit, "mean")(keep), found, rtol=1e-5, atol=1e-6)


def test_a_token_that_the_vocabulary_lacks_is_named_beside_the_model_s_own_error():
    model = nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(12, 2)).eval()
    token = {"zero": partial(baselines.token, identity=99)}
    task = Task(model, torch.tensor([[3, 4, 5]]), torch.tensor([1]), segments.tokens(3), baselines=token)
    with pytest.raises(IndexError) as raised:
        task.score()
    assert any("numbers from 3 to 99, the baseline's among them" in note for note in raised.value.__notes__)


def test_pixels_as_whole_numbers_are_told_how_they_are_given():
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2)).eval()
    pixels = torch.tensor([[[[0, 255], [7, 9]]]])
    with pytest.raises(RuntimeError) as raised:
        engine.scorer(model, pixels, torch.tensor([1]), segments=segments.pixels(2, 2))
    assert any("pixels and measurements are given as x.float()" in note for note in raised.value.__notes__)


def test_numbers_that_are_negated_only_when_they_are_read_are_asked_about_as_they_read(task):
    lazy = dataclasses.replace(task, x=torch._neg_view(task.x))
    meant = dataclasses.replace(task, x=-task.x)
    assert lazy.x.is_neg()
    keep = masks_of(4, 5)
    assert torch.equal(lazy.score()(keep), meant.score()(keep))


def test_token_ids_have_a_token_by_every_name():
    model = nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(12, 2)).eval()
    x = torch.tensor([[3, 4, 5]])
    token = partial(baselines.token, identity=1)
    task = Task(model, x, torch.tensor([1]), segments.tokens(3), baselines=dict.fromkeys(baselines.NAMED, token))
    keep = torch.tensor([[[True, False, True]]])
    expected = probability(model(torch.tensor([[3, 1, 5]])), torch.tensor([1]))
    for name in baselines.NAMED:
        torch.testing.assert_close(task.score(probability, name)(keep)[0], expected)


# What is remembered


def counting(features: int = 7):
    """A score of two outputs with a different answer for every mask and image, which counts what it is asked."""
    asked = []

    def score(keep, images):
        asked.append(len(keep))
        number = (keep.double() @ (2.0 ** torch.arange(features, dtype=torch.float64))) + 1000 * images
        return torch.stack([number, -number], -1).float()

    return score, asked


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 6), st.integers(0, 30)), min_size=1, max_size=5))
def test_the_answers_are_those_of_the_score(calls):
    score, _ = counting()
    remembered = Remembered(score, 2, most=20)
    for images, count, seed in calls:
        keep = masks_of(images, count, 7, seed)
        places = torch.arange(images).repeat_interleave(count)
        expected = score(keep.flatten(0, 1), places).view(images, count, 2)
        torch.testing.assert_close(remembered(keep), expected, rtol=0, atol=0)
        torch.testing.assert_close(remembered.of(1)(keep), expected[..., 1], rtol=0, atol=0)


def test_equal_masks_of_an_image_are_asked_once():
    score, asked = counting()
    remembered = Remembered(score, 2)
    keep = torch.cat([masks_of(3, 8, 7), masks_of(3, 8, 7)], 1)
    different = sum(len(part.unique(dim=0)) for part in keep)
    remembered(keep)
    remembered(keep[:, 3:5])
    assert remembered.asked == sum(asked) == different


def test_all_is_forgotten_when_too_much_is_known():
    score, _ = counting()
    remembered = Remembered(score, 2, most=10)
    for seed in range(6):
        remembered(masks_of(2, 4, 7, seed))
        assert len(remembered._known) <= 16


def test_ten_thousand_masks_are_kept_apart():
    score, _ = counting(14)
    remembered = Remembered(score, 2)
    every = (torch.arange(1 << 13)[:, None] >> torch.arange(14) & 1).bool()
    remembered(every.expand(3, -1, -1))
    assert remembered.asked == 3 * (1 << 13)


def _hold(task):
    task.model.config = types.SimpleNamespace(scale=1.0)
    task.model.register_forward_hook(lambda model, x, y: y * model.config.scale)


UNSEEN = {
    "an object's attribute": lambda s: setattr(s.model.config, "scale", -2.0),
    "a patched forward": lambda s: setattr(s.model, "forward", lambda x: s.model[-1](s.model[:-1](x)) * -2),
    "another reference": lambda s: s.baselines.update(zero=lambda x: x.new_ones(())),
    "another retrained network": lambda s: s.retrained.update(IG=network(9)),
}


@pytest.mark.parametrize("change", UNSEEN.values(), ids=UNSEEN)
def test_a_subject_answers_for_what_cannot_be_looked_at(task, change):
    held = dataclasses.replace(task, baselines=dict(baselines.NAMED))
    _hold(held)
    keep = masks_of(4, 5)

    def answers(of):
        return torch.stack([of.score(logit)(keep), of.score(logit, network="retrained", explainer="IG")(keep)])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a copy cannot be made of
        before = answers(held)
        change(held)
        after, fresh = answers(held), answers(dataclasses.replace(held))
    assert not torch.allclose(after, before)
    torch.testing.assert_close(after, fresh)


def test_features_that_go_are_noticed(task):
    present = torch.ones(4, 6, dtype=torch.bool)
    some = dataclasses.replace(task, present=present)
    metric = Metric(lambda score, attribution: attribution[:, 0], source="a test")
    assert metric.obstacle(some) is None
    present[0, 3] = False
    assert "no argument `present`" in metric.obstacle(some)


def test_a_part_takes_no_reference_that_the_whole_refuses(task):
    wrong = {"short": lambda x: x[:2, :3], "number": lambda x: 0.0}
    some = dataclasses.replace(task, baselines=wrong)
    for name, message in (("short", "one that broadcasts to the inputs"), ("number", "what the baseline gives")):
        for of in (some, some.part([2, 3])):
            with pytest.raises((ValueError, TypeError), match=message):
                of.score(logit, name)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"present": [[True] * 6] * 4}, "expected present as a bool tensor, inputs x features, .* but got list"),
        ({"present": torch.ones(4, 6)}, "expected present as a bool tensor, .* but got torch.float32"),
        ({"baselines": {"zero": None}}, "expected baselines as functions by name"),
        ({"baselines": {"zero": "zero"}}, "expected baselines as functions by name"),
        ({"images": ["a", "b", "c", "d"]}, "expected images as integers"),
        ({"images": [2**63] * 4}, "expected images as integers"),
    ],
)
def test_a_subject_of_the_wrong_parts_is_an_error(task, given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        dataclasses.replace(task, **given)


@pytest.mark.parametrize("places", [slice(0, 2), None, "ab"])
def test_what_is_no_position_is_an_error(task, places):
    with pytest.raises(ValueError, match="expected positions of inputs"):
        task.part(places)


CHANGES = {
    "weights": lambda s: s.model[0].weight.data.mul_(-2) if isinstance(s.model, nn.Sequential) else _negate(s.model),
    "inputs": lambda s: s.x.mul_(-2),
    "target": lambda s: s.target.copy_((s.target + 1) % 2),
}


def _negate(model):
    for parameter in model.parameters():
        parameter.data.mul_(-2)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_subject_answers_for_what_it_has_now(task, change):
    keep = masks_of(len(task.x), 4, task.segments.max() + 1)
    before = task.score()
    assert task.score() is before
    change(task)
    fresh = Task(task.model, task.x, task.target, task.segments)
    assert task.score() is not before
    torch.testing.assert_close(task.score()(keep), fresh.score()(keep))
    assert (task.score()(keep) - before(keep)).abs().max() > 1e-4


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_remembered_answers_do_not_depend_on_the_default_precision(task, dtype):
    keep = masks_of(len(task.x), 4, task.segments.max() + 1)
    score = task.score([probability, logit])
    expected = score(keep)
    torch.set_default_dtype(dtype)
    try:
        got = Remembered(score, 2)(keep)
    finally:
        torch.set_default_dtype(torch.float32)
    torch.testing.assert_close(got, expected)  # float32 too
