"""Networks that ship: found first, exactly as they were committed, and never trained again behind anybody's back."""

import dataclasses
import errno
import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest
import torch
from torch import nn

from faithlab import stats
from faithlab.explainers import explain
from faithstudy import paths, profiles, ship, train
from faithstudy import recipes as networks
from faithstudy.data import datasets
from faithstudy.data.sets import ImageSet, TextSet
from faithstudy.networks import models, origins, shipped, training
from faithstudy.networks.training import Recipe, trained
from faithstudy.trials import roar

LABELS = torch.arange(24) % 3
COMMIT = "0123456789abcdef0123456789abcdef01234567"
RECIPE = Recipe("colours", "cnn3", epochs=1, model_options={"classes": 3, "width": 2}, batch=10, rate=0.03)


def images() -> ImageSet:
    """24 small noisy images in the colours of their three classes."""
    noise = torch.randint(0, 100, (24, 3, 8, 8), generator=torch.Generator().manual_seed(0))
    inputs = (noise + 150 * torch.eye(3, dtype=torch.int64)[LABELS][..., None, None]).to(torch.uint8)
    return ImageSet(inputs, LABELS, ("red", "green", "blue"), (0.4,) * 3, (0.3,) * 3)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository and a cache of the test's own; its code is committed, and its data set needs no download."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "profiles.yml").write_text("")
    (tmp_path / "data" / "networks").mkdir(parents=True)
    monkeypatch.setenv("FAITHLAB_ROOT", str(tmp_path))
    monkeypatch.setenv("FAITHLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FAITHLAB_NETWORKS", raising=False)
    monkeypatch.setattr(datasets, "load", lambda name, split="train", **options: images())
    monkeypatch.setattr(origins, "_commit", lambda: (COMMIT, "false"))
    return tmp_path


@pytest.fixture
def steps(monkeypatch):
    """The training steps that are taken."""
    taken, original = [], training.cross_entropy
    monkeypatch.setattr(training, "cross_entropy", lambda *args: taken.append(1) or original(*args))
    return taken


def shipping(recipe: Recipe) -> shipped.Shipped:
    """Train a network, ship it and forget the cache's."""
    trained(recipe, "cpu")
    file = training.weights(recipe)
    network = ship.add(file)
    file.unlink()
    return network


def same(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.state_dict().items(), other.state_dict().items(), strict=True)
    return all(a == b and torch.equal(x, y) for (a, x), (b, y) in pairs)


# Lookup


def test_what_ships_is_the_trained_network_with_rounded_parameters(repository):
    exact = trained(RECIPE, "cpu")
    file = training.weights(RECIPE)
    network = ship.add(file)
    file.unlink()
    again = trained(RECIPE, "cpu")
    assert not again.training
    for name, value in exact.named_parameters():
        found = dict(again.named_parameters())[name]
        assert found.dtype == torch.float32
        assert torch.equal(found, value.to(torch.bfloat16).float())
    buffers = dict(again.named_buffers())
    assert {name for name in buffers if "running" in name}
    for name, value in exact.named_buffers():
        assert buffers[name].dtype == value.dtype
        assert torch.equal(buffers[name], value)
    assert network.path.read_bytes() == shipped.find(RECIPE.key()).path.read_bytes()
    assert not list((repository / "cache" / "weights").glob("*.safetensors"))


def test_what_ships_comes_before_the_cache_and_before_training(repository, steps):
    shipping(RECIPE)
    rounded = trained(RECIPE, "cpu")
    assert len(steps) == 3  # of the network that was shipped
    exact = trained(RECIPE, "cpu", ships=False)
    assert len(steps) == 6
    assert training.weights(RECIPE).exists()
    assert not same(exact, rounded)
    assert same(trained(RECIPE, "cpu"), rounded)
    trained(dataclasses.replace(RECIPE, seed=1), "cpu")
    assert len(steps) == 9


def test_the_facts_say_what_it_is_and_where_it_was_trained(repository):
    network = shipping(RECIPE)
    facts = json.loads(network.path.with_suffix(".json").read_text())
    assert Recipe.read(facts["recipe"]) == RECIPE
    assert facts["key"] == RECIPE.key() == network.path.stem
    assert facts["sha256"] == hashlib.sha256(network.path.read_bytes()).hexdigest()
    assert facts["bytes"] == network.path.stat().st_size
    assert (facts["commit"], facts["dirty"]) == (COMMIT, "false")
    assert (facts["torch"], facts["device"], facts["cpu"]) == (torch.__version__, "cpu", origins.processor())
    assert (facts["licence"], facts["start"], facts["retrained"]) == ("Apache-2.0", None, [])
    rounding = facts["rounding"]
    assert (
        rounding["accuracy"][1] == training.accuracy(trained(RECIPE, "cpu"), images()) == training.accuracy_of(RECIPE)
    )
    assert rounding["examples"] == rounding["compared"] == 24


def test_a_process_says_that_its_network_shipped(repository, monkeypatch):
    facts = shipping(RECIPE).facts
    monkeypatch.setattr(origins, "_USED", {})
    trained(RECIPE, "cpu")
    trained(dataclasses.replace(RECIPE, seed=1), "cpu")
    one, other = origins.used()
    assert one["shipped"] is True
    for name in ("sha256", "commit", "torch", "device", "cpu", "date"):
        assert one[name] == facts[name]
    assert one["dirty"] is False
    assert "shipped" not in other


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-1] + b"?"),
        lambda path: path.write_bytes(b""),
        lambda path: path.unlink(),
        lambda path: (path.unlink(), path.mkdir()),
    ],
)
def test_weights_that_are_not_those_that_were_committed_are_an_error(change, repository, steps):
    network = shipping(RECIPE)
    change(network.path)
    with pytest.raises(ValueError, match=rf"{network.path} is not the network that ships: .*git checkout"):
        trained(RECIPE, "cpu")
    assert len(steps) == 3
    network.path.with_suffix(".json").unlink()
    trained(RECIPE, "cpu")
    assert len(steps) == 6


def test_what_ships_needs_nothing_that_may_be_written_and_no_cache(repository, monkeypatch):
    shipping(RECIPE)
    network = trained(RECIPE, "cpu")
    opened = os.open

    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    def open_to_read(path, flags, *args, **options):
        return refuse() if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) else opened(path, flags, *args, **options)

    monkeypatch.setattr(os, "open", open_to_read)
    monkeypatch.setattr(os, "mkdir", refuse)
    monkeypatch.setenv("FAITHLAB_CACHE", str(repository / "nowhere"))
    assert same(trained(RECIPE, "cpu"), network)


def test_the_callers_random_numbers_are_their_own(repository):
    shipping(RECIPE)
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    trained(RECIPE, "cpu")
    assert torch.equal(torch.rand(3), expected)


# Where


def test_the_variable_names_the_folder_and_an_empty_one_turns_it_off(repository, monkeypatch, steps):
    shipping(RECIPE)
    monkeypatch.setenv("FAITHLAB_NETWORKS", "")
    assert shipped.folder() is None
    assert shipped.every() == []
    trained(RECIPE, "cpu")
    assert len(steps) == 6
    moved = (repository / "data" / "networks").rename(repository / "elsewhere")
    monkeypatch.setenv("FAITHLAB_NETWORKS", str(moved))
    assert [network.path.parent for network in shipped.every()] == [moved]
    monkeypatch.setenv("FAITHLAB_NETWORKS", str(repository / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"FAITHLAB_NETWORKS is .*nowhere, which is no folder"):
        trained(RECIPE, "cpu")


def test_an_installed_package_finds_those_of_the_clone_it_is_used_in(repository, tmp_path, monkeypatch):
    installed = tmp_path / "site-packages" / "faithstudy" / "networks" / "shipped.py"
    monkeypatch.setattr(shipped.origins, "_ABOVE", installed.parents)
    monkeypatch.delenv("FAITHLAB_ROOT")
    clone = tmp_path / "clone"
    for folder in ("notebooks", "data/networks", "notebooks/part"):
        (clone / folder).mkdir(parents=True)
    (clone / "notebooks" / "profiles.yml").write_text("")
    (repository / "notebooks" / "profiles.yml").unlink()  # else the package would lie in that repository
    monkeypatch.chdir(clone / "notebooks" / "part")
    assert shipped.folder() == clone / "data" / "networks"
    monkeypatch.chdir(repository)
    assert shipped.folder() is None
    monkeypatch.setenv("FAITHLAB_ROOT", str(clone))
    assert shipped.folder() == clone / "data" / "networks"


def test_the_package_finds_those_of_its_own_repository_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.delenv("FAITHLAB_ROOT", raising=False)
    monkeypatch.delenv("FAITHLAB_NETWORKS", raising=False)
    monkeypatch.chdir(tmp_path)
    assert shipped.folder() == Path(__file__).parents[1] / "data" / "networks"


# What follows from a network that ships

TUNED = dataclasses.replace(RECIPE, start=RECIPE, rate=0.0, mask_share=0.1)


def test_fine_tuning_starts_from_the_weights_that_ship(repository, steps):
    network = shipping(RECIPE)
    original = trained(RECIPE, "cpu")
    tuned = trained(TUNED, "cpu")
    assert len(steps) == 6
    for one, other in zip(tuned.parameters(), original.parameters(), strict=True):
        assert torch.equal(one, other)
    _, about = training.kept(training.weights(TUNED))
    assert about["start"] == network.facts["sha256"]


def test_a_companion_says_what_it_started_from(repository):
    trained(TUNED, "cpu")  # and the original before it, which does not ship yet
    original, companion = (ship.add(training.weights(recipe)) for recipe in (RECIPE, TUNED))
    assert companion.facts["start"] == {"key": RECIPE.key(), "sha256": None}
    for path in (companion.path, companion.path.with_suffix(".json"), training.weights(TUNED)):
        path.unlink()
    trained(TUNED, "cpu")
    assert ship.add(training.weights(TUNED)).facts["start"] == {"key": RECIPE.key(), "sha256": original.facts["sha256"]}


def test_nothing_is_explained_for_a_retrained_network_that_ships(repository, monkeypatch, steps):
    exact = roar.networks(RECIPE, RECIPE, {"it": "input-x-gradient"})["it"]
    orders = roar.ordered(RECIPE, RECIPE, "input-x-gradient")
    ship.add(training.weights(dataclasses.replace(RECIPE, orders=orders)))
    taken = len(steps)
    monkeypatch.setattr(training, "keep_orders", pytest.fail)
    network = roar.networks(RECIPE, RECIPE, {"it": "input-x-gradient"})["it"]
    assert len(steps) == taken
    for one, other in zip(network.parameters(), exact.parameters(), strict=True):
        assert torch.equal(one, other.to(torch.bfloat16).float())


# Shipping

OTHERS = {
    "all defaults": RECIPE,
    "start, fold and orders": dataclasses.replace(TUNED, fold=(0, 2), orders="some"),
    "nested options": dataclasses.replace(RECIPE, data_options={"share": 0.2}, precision="bfloat16", limit=5),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_recipe_is_read_as_it_was_written(name):
    recipe = OTHERS[name]
    read = Recipe.read(json.loads(json.dumps(dataclasses.asdict(recipe))))
    assert read == recipe
    assert read.key() == recipe.key()


def test_a_recipe_with_a_field_of_another_time_is_an_error():
    with pytest.raises(TypeError, match="colour"):
        Recipe.read(dataclasses.asdict(RECIPE) | {"colour": "red"})


@pytest.mark.parametrize(
    ("commit", "said"), [((COMMIT, "true"), "differed from its commit"), (("", ""), "was in no repository")]
)
def test_what_nobody_can_train_again_does_not_ship(commit, said, repository, monkeypatch, capsys):
    monkeypatch.setattr(origins, "_commit", lambda: commit)
    trained(RECIPE, "cpu")
    assert ship.main(["add", str(training.weights(RECIPE))]) == 1
    assert f"cannot ship: the code that trained it {said}" in capsys.readouterr().err
    assert not list((repository / "data" / "networks").iterdir())


def test_where_networks_are_turned_off_none_is_added(repository, monkeypatch):
    trained(RECIPE, "cpu")
    monkeypatch.setenv("FAITHLAB_NETWORKS", "")
    with pytest.raises(ValueError, match="no folder of networks that ship: set FAITHLAB_NETWORKS"):
        ship.add(training.weights(RECIPE))


def test_damaged_weights_do_not_ship(repository):
    trained(RECIPE, "cpu")
    training.weights(RECIPE).write_bytes(b"junk")
    with pytest.raises(ValueError, match="is not a whole file of weights"):
        ship.add(training.weights(RECIPE))


def test_a_network_that_ships_is_not_replaced(repository):
    trained(RECIPE, "cpu")
    file = training.weights(RECIPE)
    before = ship.add(file).path.read_bytes()
    with pytest.raises(ValueError, match=f"a network of {RECIPE.key()} ships already"):
        ship.add(file)
    assert shipped.find(RECIPE.key()).path.read_bytes() == before


# Comparing


def test_networks_are_compared_image_by_image(repository):
    one, other = (trained(dataclasses.replace(RECIPE, seed=seed), "cpu") for seed in (0, 1))
    data = images()
    found = ship.compare(one, other, data)
    classes = [torch.stack([network(x[None])[0].argmax() for x in data.model_inputs()]) for network in (one, other)]
    assert found["accuracy"] == [sum((c == data.labels).tolist()) / 24 for c in classes]
    assert found["agreement"] == sum((classes[0] == classes[1]).tolist()) / 24
    x, y = data.model_inputs(), data.labels
    for name, correlation in found["maps"].items():
        maps = [explain(name, network, x, y, data.features()) for network in (one, other)]
        each = [stats.spearman(a, b).item() for a, b in zip(*maps, strict=True)]
        assert correlation == pytest.approx(sum(each) / 24)
        assert correlation < 0.99
    alike = ship.compare(one, one, data)
    assert alike["agreement"] == 1
    assert list(alike["maps"].values()) == pytest.approx([1, 1])


def test_padding_is_no_part_of_the_maps_of_texts():
    inputs = torch.randint(3, 9, (12, 6), generator=torch.Generator().manual_seed(0))
    inputs[::2, 4:] = TextSet.PADDING
    texts = TextSet(inputs, torch.arange(12) % 2, ("a", "b"), tuple("pmuabcdef"))
    one, other = (models.build("lstm", words=9, dim=4, hidden=4).eval() for _ in range(2))
    found = ship.compare(one, other, texts)
    name = "input-x-gradient-embedding"
    maps = [explain(name, network, inputs, texts.labels, texts.features()) for network in (one, other)]
    lengths = (inputs != TextSet.PADDING).sum(1).tolist()
    each = [stats.spearman(a[:n], b[:n]) for a, b, n in zip(*maps, lengths, strict=True)]
    assert found["maps"]["input-x-gradient"] == pytest.approx(torch.stack(each).mean().item())


def test_maps_that_are_constant_have_no_correlation():
    flat = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64, 3))
    nn.init.zeros_(flat[1].weight)
    assert set(ship.compare(flat, flat, images())["maps"].values()) == {None}


def test_a_network_is_trained_anew_and_compared(repository, steps, capsys):
    network = shipping(RECIPE)
    assert ship.main(["retrain", RECIPE.key(), "--keep"]) == 0
    assert len(steps) == 6
    found = json.loads((repository / "build" / "retrained" / f"{RECIPE.key()}.json").read_text())
    # The same machine: nothing but the rounding is between them.
    rounding = network.facts["rounding"]
    assert found["accuracy"] == rounding["accuracy"][::-1]
    assert found["agreement"] == rounding["agreement"]
    assert found["commit"] == COMMIT
    assert shipped.find(RECIPE.key()).facts["retrained"] == [found]
    assert "shipped and anew: accuracy" in capsys.readouterr().out
    ship.retrain(RECIPE.key())
    assert len(steps) == 9  # anew, whatever an earlier call has left


def test_a_companion_is_trained_anew_from_the_original_that_ships(repository, steps):
    shipping(RECIPE)
    shipping(TUNED)
    ship.retrain(TUNED.key())
    assert len(steps) == 9  # the original was not trained again


def test_what_does_not_ship_cannot_be_trained_anew(repository, capsys):
    shipping(RECIPE)
    assert ship.main(["retrain", "other"]) == 1
    said = capsys.readouterr().err
    assert "no network 'other' ships" in said
    assert RECIPE.key() in said


# Jobs

PAGE = "f-fidelity/images"


@pytest.fixture
def some(tmp_path, monkeypatch):
    """Ships, by name alone, the networks of a page that are asked for."""

    def make(count: int | None, profile: str = "quick") -> list[Recipe]:
        recipes = networks.resnets(profiles.resolve(PAGE, profile))
        for recipe in recipes[:count]:
            facts = dict.fromkeys(("recipe", "sha256", "commit", "seconds"), "")
            (tmp_path / f"{recipe.key()}.json").write_text(json.dumps({"key": recipe.key(), **facts}))
        return recipes

    monkeypatch.setenv("FAITHLAB_NETWORKS", str(tmp_path))
    return make


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_network_that_ships_needs_no_job(count, some, monkeypatch):
    recipes, parameters, asked = some(count), profiles.resolve(PAGE, "quick"), []
    assert train.waiting(PAGE, parameters, 1) == ([0] if count < len(recipes) else [])
    assert train.waiting(PAGE, parameters, 2) == list(range(count, 2))
    monkeypatch.setattr(training, "trained", lambda recipe: asked.append(recipe))
    assert train.main([PAGE, "--profile", "quick"]) == 0
    assert asked == recipes[count:]


def test_the_pipeline_plans_no_job_for_networks_that_ship(some, tmp_path, python):
    assert profiles.needs(PAGE).jobs["study"]
    some(None, "study")
    command = [python, "-m", "snakemake", "-n", "--config", "profile=study", "--cores", "1"]
    environment = os.environ | {"FAITHLAB_BUILD": str(tmp_path / "build"), "FAITHLAB_NOTEBOOK": PAGE}
    planned = subprocess.run(command, cwd=paths.root(), env=environment, capture_output=True, text=True).stdout
    assert f"notebook {PAGE}" in planned
    assert f"networks of {PAGE}" not in planned


# Those of this repository

SHIPPED = paths.root() / "data" / "networks"


def test_every_network_of_this_repository_is_whole_and_says_where_it_comes_from(monkeypatch):
    monkeypatch.setenv("FAITHLAB_NETWORKS", str(SHIPPED))
    every = shipped.every()
    assert len(every) >= 112
    assert {path.stem for path in SHIPPED.glob("*.safetensors")} == {network.path.stem for network in every}
    assert sum(network.path.stat().st_size for network in every) < 60e6
    sums = {network.facts["key"]: network.facts["sha256"] for network in every}
    for network in every:
        facts, recipe = network.facts, Recipe.read(network.facts["recipe"])
        assert recipe.key() == facts["key"]
        built = models.build(recipe.model, **recipe.model_options)
        built.load_state_dict(network.weights())
        assert (len(facts["commit"]), facts["dirty"], facts["licence"]) == (40, "false", ship.LICENCE)
        if facts["start"] and facts["start"]["sha256"]:
            assert sums.get(facts["start"]["key"]) == facts["start"]["sha256"], "it started from another file"


@pytest.mark.parametrize("name", networks.RECIPES)
def test_the_recipes_of_the_study_keep_their_keys(name, monkeypatch):
    """A changed recipe is another network: ship what it trains. Changed code that trains needs a new `version`."""
    monkeypatch.setenv("FAITHLAB_NETWORKS", str(SHIPPED))
    for recipe in networks.pair(networks.RECIPES[name], 0, tuning=networks.TUNED[name]).values():
        assert shipped.find(recipe.key()) is not None
