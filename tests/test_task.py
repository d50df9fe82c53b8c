"""A task hands out the right score and remembers what was asked."""

import copy
import dataclasses
import pickle
import types
import warnings
from concurrent.futures import ThreadPoolExecutor
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
    "given", [{"x": None}, {"images": [0, 1]}, {"images": torch.arange(4.0)}, {"images": ["a"] * 4}]
)
def test_what_no_task_can_be_made_of_is_an_error(task, given):
    with pytest.raises((TypeError, ValueError)):
        dataclasses.replace(task, **given)


def test_images_may_be_a_list(task):
    named = dataclasses.replace(task, images=[7, 5, 3, 1])
    assert named.part([1, 3]).images.tolist() == [5, 1]


def test_a_part_has_the_reference_of_its_own_inputs_whatever_happens_to_the_whole(task):
    places, keep = torch.tensor([3, 1]), masks_of(2, 5)
    before = task.part(places)
    handed = before.score(logit, "mean")
    expected = handed(keep)
    task.x.mul_(2)  # a part copies its inputs
    with pytest.raises(ValueError, match=r"the task that this is a part of have changed since; take the part again"):
        before.score(logit, "mean")
    torch.testing.assert_close(handed(keep), expected, rtol=0, atol=0)
    after = task.part(places)
    whole = baselines.mean(task.x)
    found = literal(task.model, task.x[places], task.target[places], keep, lambda _: whole, logit)
    torch.testing.assert_close(after.score(logit, "mean")(keep), found, rtol=1e-5, atol=1e-6)


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
        assert len(remembered._known) <= 10


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


# What is kept


def test_few_scorers_are_kept_and_none_of_an_output_that_may_change(task):
    for seed in range(20):
        task.score(lambda logits, target, seed=seed: logits[..., 0])
    assert not task._scorers
    first = task.score(logit)
    for change in range(20):
        task.model[0].weight = nn.Parameter(task.model[0].weight + change)
        task.score(logit)
    assert len(task._scorers) == 8
    assert task.score(logit) is not first


class Constant:
    """A baseline whose value is an attribute."""

    value = 0.0

    def __call__(self, x):
        return x.new_full((), self.value)


def test_a_baseline_or_an_output_that_changed_is_not_answered_by_its_old_value(task):
    keep, baseline, scale = masks_of(4, 5), Constant(), {"value": 1.0}

    def output(logits, target):
        return logits[..., 0] * scale["value"]

    of = dataclasses.replace(task, baselines={"zero": baseline})
    before, scaled = of.score(logit)(keep), of.score(output)(keep)
    baseline.value, scale["value"] = 5.0, 2.0
    fresh = dataclasses.replace(of)
    for read, old in ((logit, before), (output, scaled)):
        torch.testing.assert_close(of.score(read)(keep), fresh.score(read)(keep), rtol=0, atol=0)
        assert (of.score(read)(keep) - old).abs().max() > 0.1


class Sized(nn.Sequential):
    """A network with a length, 0."""

    def __len__(self):
        return 0


@pytest.mark.parametrize("kind", [Sized, lambda *layers: torch.compile(nn.Sequential(*layers), backend="eager")])
def test_a_model_is_never_asked_for_its_truth_value(task, kind):
    keep = masks_of(4, 5)
    torch.testing.assert_close(
        dataclasses.replace(task, model=kind(*task.model.children()), tuned=kind(*task.tuned.children())).score(
            logit, network="fine-tuned"
        )(keep),
        task.score(logit, network="fine-tuned")(keep),
    )


def test_a_task_can_be_sent_to_another_process(task):
    keep = masks_of(4, 5)
    expected = task.score(logit)(keep)
    sent = pickle.loads(pickle.dumps(task))
    torch.testing.assert_close(sent.score(logit)(keep), expected)
    assert torch.equal(pickle.loads(pickle.dumps(task.part([1, 3]))).x, task.x[[1, 3]])


def test_a_model_that_takes_one_input_at_a_time_is_given_one():
    class One(nn.Linear):
        def forward(self, x):
            assert len(x) == 1
            return super().forward(x)

    x = torch.rand(4, 6)
    task = Task(One(6, 3), x, torch.zeros(4, dtype=torch.int64), torch.arange(6), batch_size=1)
    assert task.score()(masks_of(4, 5)).shape == (4, 5)


def test_threads_share_a_model_that_is_in_train_mode():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 3))
    x, keep = torch.rand(4, 6), masks_of(4, 5)
    before = copy.deepcopy(model.state_dict())

    def scores(_):
        return Task(model, x, torch.zeros(4, dtype=torch.int64), torch.arange(6)).score()(keep)

    expected = scores(None)
    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(scores, range(16)):
            torch.testing.assert_close(found, expected)
    assert model.training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


@pytest.mark.parametrize("part", ["x", "target", "segments"])
def test_what_numpy_writes_is_noticed(task, part):
    of = dataclasses.replace(task, **{name: getattr(task, name).clone() for name in ("x", "target", "segments")})
    keep = masks_of(4, 5)
    before = of.score(logit)(keep)
    array = getattr(of, part).numpy()
    array[:] = array[::-1].copy()
    fresh = dataclasses.replace(of).score(logit)(keep)
    assert (fresh - before).abs().max() > 1e-3
    torch.testing.assert_close(of.score(logit)(keep), fresh)
