"""Degradations are of the size they say, nested, and leave what they degrade alone."""

import pytest
import scipy.stats
import torch
from torch import nn

from faithstudy.networks import models
from faithstudy.networks.degradation import layers, randomised, switched

LABELS = torch.arange(20_000) % 7


@pytest.mark.parametrize("share", [0.05, 0.3, 1.0])
def test_a_share_of_the_labels_is_switched_to_every_other_class_alike(share):
    wrong = switched(LABELS, 7, share)
    changed = wrong != LABELS
    assert changed.double().mean().item() == pytest.approx(share, abs=0.012)
    steps = ((wrong - LABELS) % 7)[changed].bincount(minlength=7)
    assert steps[0] == 0
    assert scipy.stats.chisquare(steps[1:]).pvalue > 1e-4
    assert 0 <= int(wrong.min()) <= int(wrong.max()) < 7


def test_a_larger_share_contains_a_smaller_one_and_none_changes_nothing():
    few, many = switched(LABELS, 7, 0.1), switched(LABELS, 7, 0.3)
    changed = few != LABELS
    assert torch.equal(few[changed], many[changed])
    assert torch.equal(switched(LABELS, 7, 0.0), LABELS)
    assert torch.equal(switched(LABELS[:50], 7, 0.3), many[:50])  # a label does not depend on how many there are


def network() -> nn.Module:
    torch.manual_seed(0)
    return models.build("resnet18", width=2).eval()


def changed_layers(one: nn.Module, other: nn.Module) -> list[int]:
    pairs = zip(layers(one), layers(other), strict=True)
    return [i for i, (a, b) in enumerate(pairs) if not torch.equal(a.weight, b.weight)]


@pytest.mark.parametrize(("share", "number"), [(0.0, 0), (0.01, 1), (0.05, 1), (0.1, 2), (0.3, 6), (1.0, 21)])
def test_weights_are_randomised_from_the_output_down(share, number):
    whole = network()
    before = {name: value.clone() for name, value in whole.state_dict().items()}
    degraded = randomised(whole, share)
    assert len(layers(whole)) == 21
    assert changed_layers(whole, degraded) == list(range(21))[21 - number :]
    assert all(torch.equal(value, before[name]) for name, value in whole.state_dict().items())


def test_the_noise_has_the_spread_of_the_layers_weights():
    whole = models.build("resnet18", width=16)
    for a, b in zip(layers(whole), layers(randomised(whole, 1.0, noise=0.5)), strict=True):
        if a.weight.numel() > 1000:
            assert ((b.weight - a.weight).std() / a.weight.std()).item() == pytest.approx(0.5, abs=0.05)
    some, more = randomised(whole, 0.1), randomised(whole, 0.3)
    assert torch.equal(layers(some)[-1].weight, layers(more)[-1].weight)
    assert not torch.equal(layers(randomised(whole, 0.1, seed=1))[-1].weight, layers(some)[-1].weight)


def test_recurrent_layers_and_embeddings_are_layers_and_normalisations_are_none():
    lstm = models.build("lstm", classes=2, words=50, dim=4, hidden=4)
    kinds = (nn.Embedding, nn.LSTM, nn.Linear)
    assert all(isinstance(layer, kind) for layer, kind in zip(layers(lstm), kinds, strict=True))
    before = dict(lstm.named_parameters())
    other = dict(randomised(lstm, 0.6).named_parameters())
    moved = {name for name, value in before.items() if not torch.equal(value, other[name])}
    assert moved == {name for name in before if "weight" in name and "embedding" not in name}


def test_weights_that_are_not_kept_are_noise_of_the_same_spread():
    whole = network()
    for a, b in zip(layers(whole), layers(randomised(whole, 1.0, keep=False)), strict=True):
        if a.weight.numel() > 1000:
            assert (b.weight.std() / a.weight.std()).item() == pytest.approx(1, abs=0.1)
            both = torch.stack([a.weight.flatten(), b.weight.flatten()])
            assert both.corrcoef()[0, 1].abs() < 0.1


def test_an_impossible_share_of_layers_is_an_error():
    with pytest.raises(ValueError, match="between 0 and 1"):
        randomised(network(), 1.5)
