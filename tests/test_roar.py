"""ROAR: what an explainer calls relevant is what its network never sees in training."""

import dataclasses

import pytest
import torch

from faithlab import masks
from faithlab.explainers import explain
from faithstudy.data import datasets
from faithstudy.data.sets import ImageSet, TextSet
from faithstudy.networks import training
from faithstudy.networks.training import Recipe, trained
from faithstudy.trials import roar

LABELS = torch.arange(40) % 2


def spots() -> ImageSet:
    """A bright spot on the left (class 0) or on the right (class 1) of noise."""
    inputs = torch.randint(0, 60, (40, 1, 8, 8), generator=torch.Generator().manual_seed(0))
    inputs[LABELS == 0, :, 3:5, 1:3] += 180
    inputs[LABELS == 1, :, 3:5, 5:7] += 180
    return ImageSet(inputs.to(torch.uint8), LABELS, ("left", "right"), (0.0,), (1.0,))


def words() -> TextSet:
    inputs = torch.randint(3, 9, (40, 6), generator=torch.Generator().manual_seed(0))
    inputs[::3, 4:] = TextSet.PADDING
    return TextSet(inputs, LABELS, ("a", "b"), tuple("pmuabcdef"))


RECIPE = Recipe("spots", "cnn3", epochs=4, model_options={"classes": 2, "channels": 1, "width": 4}, batch=10, rate=0.02)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FAITHLAB_CACHE", str(tmp_path))
    monkeypatch.setattr(
        datasets, "load", lambda name, split="train", **options: {"spots": spots, "words": words}[name]()
    )
    return tmp_path


@pytest.fixture
def kept(monkeypatch):
    """The orders that were stored, as they are stored."""
    seen = []
    original = training.keep_orders

    def spy(name, make, count, **options):
        return original(name, lambda block: seen.append(make(block)) or seen[-1], count, **options)

    monkeypatch.setattr(training, "keep_orders", spy)
    return seen


def test_the_examples_lose_what_the_explainer_of_the_explained_network_says(kept):
    network = trained(RECIPE, "cpu")
    data = spots()
    expected = explain("input-x-gradient", network, data.model_inputs(), data.labels, data.features())
    retrained = roar.networks(RECIPE, RECIPE, {"it": "input-x-gradient"})["it"]
    assert torch.equal(torch.cat(kept), masks.order(expected))
    assert any(not torch.equal(a, b) for a, b in zip(network.parameters(), retrained.parameters(), strict=True))


def test_nothing_is_done_twice(kept):
    first = roar.networks(RECIPE, RECIPE, {"it": ("random", {"seed": 3})})["it"]
    again = roar.networks(RECIPE, RECIPE, {"it": ("random", {"seed": 3})})["it"]
    assert len(kept) == 1
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))


@pytest.mark.parametrize(
    "other",
    [
        ("random", RECIPE, {"seed": 4}),
        ("saliency", RECIPE, {}),
        ("random", dataclasses.replace(RECIPE, seed=1), {"seed": 3}),
    ],
    ids=["options", "explainer", "explained network"],
)
def test_another_explanation_is_another_network(kept, other):
    explainer, explained, options = other
    roar.networks(RECIPE, RECIPE, {"it": ("random", {"seed": 3})})["it"]
    roar.networks(RECIPE, explained, {"it": (explainer, options)})["it"]
    assert len(kept) == 2


def test_another_version_of_a_recipe_has_other_orders(kept):
    roar.ordered(RECIPE, RECIPE, "random")
    roar.ordered(dataclasses.replace(RECIPE, version=2), RECIPE, "random")
    assert len(kept) == 2


def test_fewer_training_examples_are_other_orders(kept):
    roar.networks(RECIPE, RECIPE, {"it": "random"})["it"]
    roar.networks(dataclasses.replace(RECIPE, limit=20), RECIPE, {"it": "random"})["it"]
    assert [len(order) for order in kept] == [40, 20]


def test_a_network_without_the_relevant_pixels_does_not_learn_from_them():
    """The spot is all there is. Retrained without it, the network knows less of it than one retrained without noise."""
    recipe = dataclasses.replace(RECIPE, epochs=12)
    data = spots()

    @training.torch.no_grad()
    def margin(network):
        logits = network(data.model_inputs())
        return (logits.gather(1, LABELS[:, None]) - logits.gather(1, 1 - LABELS[:, None])).mean().item()

    whole = margin(trained(recipe, "cpu"))
    blind = margin(roar.networks(recipe, recipe, {"it": "input-x-gradient"})["it"])
    assert whole > 2
    assert blind < whole


def test_the_padding_of_a_text_comes_last(kept, monkeypatch):
    class Bag(torch.nn.Module):
        def __init__(self, classes=2):
            super().__init__()
            self.table = torch.nn.Embedding(9, classes)

        def forward(self, x):
            return self.table(x).mean(1)

    monkeypatch.setitem(training.models._BUILDERS, "bag", Bag)
    recipe = Recipe("words", "bag", epochs=2, batch=10)
    roar.networks(recipe, recipe, {"it": "random"})["it"]
    present = words().present()
    for order, own in zip(torch.cat(kept), present, strict=True):
        assert own[order[: int(own.sum())]].all()


@pytest.mark.parametrize(("native", "mixed"), [(torch.bfloat16, True), (torch.float32, False)])
def test_bfloat16_is_not_imitated(kept, monkeypatch, native, mixed):
    """Where the device does not compute it natively, explaining in it takes some thirty times as long as in float32."""
    found = []

    def seen(name, model, x, y, segments, **options):
        found.append(torch.is_autocast_enabled(x.device.type))
        return explain(name, model, x, y, segments, **options)

    monkeypatch.setattr(roar, "native_precision", lambda device: native)
    monkeypatch.setattr(roar, "explain", seen)
    recipe = dataclasses.replace(RECIPE, precision="bfloat16")
    orders = roar.ordered(recipe, RECIPE, "input-x-gradient")
    assert set(found) == {mixed}
    assert orders == roar.ordered(recipe, RECIPE, "input-x-gradient")  # known by the same name
