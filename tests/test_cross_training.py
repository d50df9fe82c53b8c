"""Cross-training: no network explains as unseen what it was trained on, and the numbers are algorithm 1's."""

import dataclasses
import math

import pytest
import torch

import literal
from faithlab.metrics import consistency
from faithlab.metrics.distance import spearman
from faithlab.study import cross_training
from faithlab.zoo import datasets, training
from faithlab.zoo.sets import ImageSet
from faithlab.zoo.training import Recipe

K = 3
LABELS = torch.arange(60) % 3
RECIPE = Recipe("colours", "resnet18", epochs=2, model_options={"classes": 3, "width": 2}, batch=10, rate=0.03)


def images() -> ImageSet:
    generator = torch.Generator().manual_seed(0)
    noise = torch.randint(0, 100, (60, 3, 12, 12), generator=generator)
    inputs = (noise + 150 * torch.eye(3, dtype=torch.int64)[LABELS][..., None, None]).to(torch.uint8)
    return ImageSet(inputs, LABELS, ("red", "green", "blue"), (0.4, 0.4, 0.4), (0.3, 0.3, 0.3))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FAITHLAB_CACHE", str(tmp_path))
    monkeypatch.setattr(datasets, "load", lambda name, split="train", **options: images())
    return tmp_path


@pytest.fixture
def family(folder):
    return cross_training.train(RECIPE, K, images(), tolerance=1.0)


def test_each_fold_leaves_out_another_block_and_starts_from_other_weights():
    folds = cross_training.folds(dataclasses.replace(RECIPE, seed=5), K)
    assert [fold.fold for fold in folds] == [(0, 3), (1, 3), (2, 3)]
    assert [fold.seed for fold in folds] == [5, 6, 7]
    assert len({fold.key() for fold in folds}) == K


@pytest.mark.parametrize("limit", [None, 40])
def test_the_unseen_network_is_the_only_one_not_trained_on_an_example(limit, folder, monkeypatch):
    found, original = [], ImageSet.model_inputs

    def recorded(self, index=slice(None)):
        found[-1].update(image.numpy().tobytes() for image in self.inputs[index])
        return original(self, index)

    monkeypatch.setattr(ImageSet, "model_inputs", recorded)
    recipes = cross_training.folds(dataclasses.replace(RECIPE, limit=limit, epochs=1), K)
    for recipe in recipes:
        found.append(set())
        training.trained(recipe, "cpu")
    examples = torch.randperm(limit or 60, generator=torch.Generator().manual_seed(1))[:25]
    own = cross_training.unseen(recipes, examples, 60)
    assert set(own.tolist()) == {0, 1, 2}
    for example, unseen in zip(examples.tolist(), own.tolist(), strict=True):
        picture = images().inputs[example].numpy().tobytes()
        assert [picture in seen for seen in found] == [number != unseen for number in range(K)]


def test_examples_that_no_fold_or_every_fold_has_seen_are_an_error():
    recipes = cross_training.folds(dataclasses.replace(RECIPE, limit=30), K)
    with pytest.raises(ValueError, match=r"5 of 15 examples .* exactly one of the 3 folds \(first: 30\)"):
        cross_training.unseen(recipes, torch.arange(20, 35), 60)
    whole = [dataclasses.replace(RECIPE, seed=seed) for seed in range(K)]
    with pytest.raises(ValueError, match="60 of 60 examples"):
        cross_training.unseen(whole, torch.arange(60), 60)


def test_the_multisets_are_those_of_algorithm_1(family):
    of = cross_training.explainers(["Saliency", "GradCAM", "Random"], (3, 12, 12), steps=3, samples=2)
    examples = torch.arange(5, 50)
    compared = cross_training.compare(family, images(), examples, of, rows=7)
    x = images().model_inputs(examples)
    answers = [training.logits(network, x).argmax(1) for network in family.networks]
    left_out = training.blocks(60, K)[examples].tolist()
    for name, explain_with in of.items():
        maps = [explain_with(family.networks[i], x, answers[i], examples, i) for i in range(K)]

        def distance(b, i, j, maps=maps):
            return spearman(maps[i][b].view(12, 12), maps[j][b].view(12, 12)).item()

        same, different = literal.cross_training(distance, answers, LABELS[examples].tolist(), left_out)
        split = compared.splits[name]
        present = sorted(d for d in same if not math.isnan(d))
        assert sorted(split.same.tolist()) == pytest.approx(present, abs=1e-3)  # a pair of pixels may rank otherwise
        present = sorted(d for d in different if not math.isnan(d))
        assert sorted(split.different.tolist()) == pytest.approx(present, abs=1e-3)
    right = [answers[own][b] == LABELS[examples[b]] for b, own in enumerate(left_out)]
    assert compared.unseen_accuracy == pytest.approx(sum(right).item() / len(right))


def test_each_network_explains_the_class_that_it_predicts(family):
    asked = []

    def record(network, x, target, images, number):
        asked.append((number, target, training.logits(network, x).argmax(1)))
        return torch.rand(len(x), 144)

    cross_training.compare(family, images(), torch.arange(60), {"record": record})
    assert [number for number, *_ in asked] == [0, 1, 2]
    assert all(torch.equal(target, predicted) for _, target, predicted in asked)


def test_random_maps_differ_between_the_networks_and_the_absolute_value_is_taken(family):
    of = cross_training.explainers(["Random", "IG"], (3, 12, 12), steps=3, samples=2)
    job = (images().model_inputs(slice(4)), LABELS[:4], torch.arange(4))
    assert not torch.equal(of["Random"](family.networks[0], *job, 0), of["Random"](family.networks[0], *job, 1))
    signed = cross_training.explainers(["IG"], (3, 12, 12), steps=3, samples=2, signed=True)["IG"]
    assert torch.equal(of["IG"](family.networks[0], *job, 0), signed(family.networks[0], *job, 0).abs())
    assert bool((signed(family.networks[0], *job, 0) < 0).any())


def test_a_fold_that_is_not_comparable_starts_anew(folder, monkeypatch):
    accuracies = {0: 0.8, 1: 0.6, 2: 0.81, 4: 0.79}  # by seed
    monkeypatch.setattr(training, "trained", lambda recipe: recipe)
    monkeypatch.setattr(training, "accuracy", lambda recipe, test: accuracies[recipe.seed])
    found = cross_training.train(RECIPE, K, images(), tolerance=0.03)
    assert [recipe.seed for recipe in found.recipes] == [0, 4, 2]
    assert [recipe.fold for recipe in found.recipes] == [(0, 3), (1, 3), (2, 3)]
    assert found.accuracies == [0.8, 0.79, 0.81]


def test_folds_that_never_become_comparable_are_an_error(folder, monkeypatch):
    monkeypatch.setattr(training, "trained", lambda recipe: recipe)
    monkeypatch.setattr(training, "accuracy", lambda recipe, test: 0.5 if recipe.fold[0] == 1 else 0.8)
    with pytest.raises(RuntimeError, match=r"after 2 attempts: accuracies 80.0%, 50.0%, 80.0%, allowed 3"):
        cross_training.train(RECIPE, K, images(), tolerance=0.03, attempts=2)


def test_randomised_networks_keep_their_folds(family):
    worse = cross_training.randomised(family, 0.3, 1.0, images())
    assert worse.recipes == family.recipes
    assert worse.accuracies != family.accuracies
    weights = [network.head[3].weight for network in worse.networks]
    shifts = [w - n.head[3].weight for w, n in zip(weights, family.networks, strict=True)]
    assert not torch.allclose(shifts[0], shifts[1])  # each network has noise of its own


def test_scores_and_histograms_say_what_is_missing():
    empty = torch.zeros(0, dtype=torch.float64)
    splits = {
        "good": consistency.Split(torch.tensor([0.1, 0.3]), torch.tensor([0.7]), 0),
        "none": consistency.Split(empty, empty, 4),
    }
    found = cross_training.scores(splits).set_index("explainer")
    assert found.loc["good", ["MeGe", "ReCo", "same", "different", "missing"]].tolist() == pytest.approx(
        [1 / 1.2, 1, 2, 1, 0]
    )
    assert found.loc["none", ["MeGe", "ReCo", "ReCo_printed", "ReCo_AUC"]].isna().all()
    assert found.loc["none", "missing"] == 4
    shares = cross_training.histograms(splits, bins=10)
    sums = shares.groupby(["explainer", "set"])["share"].sum()
    assert sums["good"].tolist() == pytest.approx([1, 1])
    assert sums["none"].tolist() == [0, 0]
