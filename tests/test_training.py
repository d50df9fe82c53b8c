"""A recipe is trained once, resumed where it was killed, and gives the same weights every time."""

import dataclasses
import errno
import hashlib
import itertools
import json
import os
import types
from datetime import datetime

import pytest
import scipy.stats
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from faithlab import engine, segments
from faithstudy.data import cache, datasets
from faithstudy.data.sets import ImageSet, TextSet
from faithstudy.networks import origins, training
from faithstudy.networks.training import Recipe, trained

GENERATOR = torch.Generator().manual_seed(0)
LABELS = torch.arange(24) % 3


def images(std=(0.3, 0.3, 0.3)) -> ImageSet:
    """24 small noisy images in the colours of their three classes."""
    noise = torch.randint(0, 100, (24, 3, 8, 8), generator=torch.Generator().manual_seed(0))
    inputs = (noise + 150 * torch.eye(3, dtype=torch.int64)[LABELS][..., None, None]).to(torch.uint8)
    return ImageSet(inputs, LABELS, ("red", "green", "blue"), (0.4, 0.4, 0.4), std)


RECIPE = Recipe("colours", "cnn3", epochs=3, model_options={"classes": 3, "width": 2}, batch=10, rate=0.03)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache of the test's own, and data sets that need no download."""
    monkeypatch.setenv("FAITHLAB_CACHE", str(tmp_path))
    monkeypatch.setattr(datasets, "load", lambda name, split="train", **options: images())
    return tmp_path


@pytest.fixture
def steps(monkeypatch):
    """Counts training steps; `steps.kill_at` simulates a killed job."""

    class Steps:
        taken, kill_at = 0, None

    counter, original = Steps(), training.cross_entropy

    def counted(*args):
        counter.taken += 1
        if counter.taken == counter.kill_at:
            raise KeyboardInterrupt
        return original(*args)

    monkeypatch.setattr(training, "cross_entropy", counted)
    return counter


def assert_same_weights(one: nn.Module, other: nn.Module):
    assert one.state_dict().keys() == other.state_dict().keys()
    for name, value in one.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name


def flipped(path):
    """Flip a bit in the last tenth of a file, where the numbers are."""
    content = bytearray(path.read_bytes())
    content[-len(content) // 10] ^= 64
    path.write_bytes(content)


def elsewhere(monkeypatch, folder, name):
    """Another, empty cache."""
    monkeypatch.setenv("FAITHLAB_CACHE", str(folder / name))


# The recipe

OTHER_VALUES = {
    "data": "mnist",
    "model": "resnet9",
    "epochs": 4,
    "data_options": {"share": 0.2},
    "model_options": {"classes": 3, "width": 3},
    "rate": 0.02,
    "decay": 0.0,
    "schedule": "constant",
    "batch": 11,
    "limit": 20,
    "fold": (0, 2),
    "switched": 0.1,
    "augment": True,
    "mask_share": 0.1,
    "mask_channels": 1,
    "mask_exactly": True,
    "orders": "some",
    "optimiser": "adamw",
    "start": RECIPE,
    "precision": "bfloat16",
    "seed": 1,
    "version": 2,
}


def test_every_field_of_a_recipe_has_another_value_here():
    assert OTHER_VALUES.keys() == {field.name for field in dataclasses.fields(Recipe)}


@pytest.mark.parametrize("field", OTHER_VALUES)
def test_a_change_of_any_field_is_another_network(field):
    assert dataclasses.replace(RECIPE, **{field: OTHER_VALUES[field]}).key() != RECIPE.key()


def test_a_change_of_the_start_of_the_start_is_another_network():
    tuned = dataclasses.replace(RECIPE, start=RECIPE)
    other = dataclasses.replace(RECIPE, start=dataclasses.replace(RECIPE, seed=1))
    assert tuned.key() != other.key()


def test_keys_leave_out_what_is_as_ever():
    """Every field at its default: another default, or a version that is raised there, would rename what is kept."""
    assert Recipe("colours", "cnn3", epochs=3).key() == "colours-cnn3-e112c6b1d2512b19"


def test_the_order_of_the_options_is_no_change():
    other = dataclasses.replace(RECIPE, model_options={"width": 2, "classes": 3})
    assert other.key() == RECIPE.key()
    assert RECIPE.key().startswith("colours-cnn3-")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"mask_share": 1.5}, "shares between 0 and 1.*mask_share=1.5"),
        ({"epochs": 0}, "no epoch.*epochs=0"),
        ({"batch": 0}, "example a step.*batch=0"),
        ({"precision": "float16"}, "precision='float16'"),
        ({"schedule": "step"}, "schedule='step'"),
        ({"switched": -0.1}, "shares between 0 and 1.*switched=-0.1"),
        ({"fold": (3, 3)}, r"a fold \(i, k\) with 0 <= i < k.*fold=\(3, 3\)"),
        ({"fold": (-1, 3)}, "a fold"),
        ({"optimiser": "sgd"}, "unknown optimiser.*optimiser='sgd'"),
    ],
)
def test_a_recipe_that_cannot_be_is_an_error(wrong, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(RECIPE, **wrong)


# Once


def misplaced(path):
    """Another network's file under this one's name, whole with its checksum."""
    with cache.write_with_checksum(path) as temporary:
        save_file({"weight": torch.zeros(2)}, temporary, metadata={"file": "another"})


def sealed_junk(path):
    with cache.write_with_checksum(path) as temporary:
        temporary.write_text("junk")


DAMAGES = {
    "flipped": lambda path: flipped(path),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "without checksum": lambda path: path.with_name(f"{path.name}.sha256").unlink(),
    "empty checksum": lambda path: path.with_name(f"{path.name}.sha256").write_text(""),
    "another's": misplaced,
    "junk": sealed_junk,
}


def test_training_learns_and_the_second_call_takes_the_kept_weights(folder, steps):
    network = trained(dataclasses.replace(RECIPE, epochs=15), "cpu")
    assert not network.training
    assert training.accuracy(network, images()) > 0.9
    taken = steps.taken
    assert taken == 15 * 3  # 24 images in steps of 10
    assert_same_weights(trained(dataclasses.replace(RECIPE, epochs=15), "cpu"), network)
    assert steps.taken == taken


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_weights_are_told_and_trained_again(damage, folder, caplog, steps):
    network = trained(RECIPE, "cpu")
    taken = steps.taken
    DAMAGES[damage](training.weights(RECIPE))
    assert_same_weights(trained(RECIPE, "cpu"), network)
    assert steps.taken == 2 * taken
    (told,) = [record.getMessage() for record in caplog.records]
    assert "is damaged or was changed and will be made again" in told
    trained(RECIPE, "cpu")
    assert steps.taken == 2 * taken
    assert len(caplog.records) == 1


def test_nothing_but_the_weights_is_left_in_the_cache(folder):
    trained(RECIPE, "cpu")
    left = {path.name for path in (folder / "weights").iterdir() if path.suffix != ".lock"}
    name = training.weights(RECIPE).name
    assert left == {name, f"{name}.sha256"}


def test_weights_say_where_they_come_from(folder):
    trained(RECIPE, "cpu")
    with safe_open(training.weights(RECIPE), "pt") as file:
        about = file.metadata()
    assert json.loads(about.pop("recipe")) == json.loads(json.dumps(dataclasses.asdict(RECIPE)))
    assert about["key"] == RECIPE.key()
    assert (about["torch"], about["device"]) == (torch.__version__, "cpu")
    assert about["dirty"] in ("true", "false", "")
    assert float(about["seconds"]) >= 0
    assert datetime.fromisoformat(about["date"]).tzinfo is not None
    assert about["cpu"] == origins.processor()
    assert len(about["commit"]) in (0, 40)


def test_weights_that_are_there_need_nothing_that_may_be_written(folder, monkeypatch):
    network = trained(RECIPE, "cpu")
    training.keep_orders("some", lambda block: torch.arange(4).expand(block.stop - block.start, 4), 24)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"}
    for path in folder.rglob("*.lock"):
        path.unlink()
    closed(monkeypatch)
    assert_same_weights(trained(RECIPE, "cpu"), network)
    training.keep_orders("some", pytest.fail, 24)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    with pytest.raises(cache.CacheUnavailable, match=r"cannot store .* Read-only file system.*set FAITHLAB_CACHE"):
        trained(dataclasses.replace(RECIPE, seed=1), "cpu")


def closed(monkeypatch):
    """From now on the disk is read-only: for root, too, whom no mode of a folder stops."""
    refused = OSError(errno.EROFS, "Read-only file system")
    opened, made = os.open, os.mkdir

    def open_to_read(path, flags, *args, **options):
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise refused
        return opened(path, flags, *args, **options)

    def make(path, *args, **options):
        if os.path.exists(path):
            return made(path, *args, **options)
        raise refused

    monkeypatch.setattr(os, "open", open_to_read)
    monkeypatch.setattr(os, "mkdir", make)


def test_what_a_process_has_used_is_listed_once_with_its_origin(folder, monkeypatch):
    monkeypatch.setattr(origins, "_USED", {})
    recipe = dataclasses.replace(RECIPE, orders="some")
    training.keep_orders("some", lambda block: torch.arange(64).expand(block.stop - block.start, 64), 24)
    for one in (recipe, RECIPE, RECIPE):
        trained(one, "cpu")
    used = origins.used()
    assert [(entry["kind"], entry["name"]) for entry in used] == [
        ("orders", "some"),
        ("network", recipe.key()),
        ("network", RECIPE.key()),
    ]
    path = training.weights(RECIPE)
    assert used[-1]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (used[-1]["torch"], used[-1]["device"]) == (torch.__version__, "cpu")
    assert used[-1]["dirty"] in (True, False, None)
    assert isinstance(used[-1]["seconds"], float)
    assert json.loads(json.dumps(used)) == used
    used.clear()
    assert origins.used()


def test_version_1_leads_to_the_weights_of_version_1(folder):
    """Where this fails, training has changed: the recipes that it changed need a new `version`."""
    recipe = dataclasses.replace(RECIPE, augment=True, mask_share=0.2, fold=(0, 3), switched=0.1)
    size = sum(p.double().abs().sum().item() for p in trained(recipe, "cpu").parameters())
    assert size == pytest.approx(64.54397, rel=1e-3)


def test_the_same_recipe_gives_the_same_weights_elsewhere(folder, monkeypatch):
    one = trained(RECIPE, "cpu")
    elsewhere(monkeypatch, folder, "b")
    torch.manual_seed(123)
    assert_same_weights(trained(RECIPE, "cpu"), one)
    other = trained(dataclasses.replace(RECIPE, seed=1), "cpu")
    assert not torch.equal(other.head[2].weight, one.head[2].weight)


def test_the_callers_random_numbers_are_the_same_whether_it_was_trained_or_kept(folder):
    torch.manual_seed(0)
    expected = torch.rand(3)
    for _ in range(2):
        torch.manual_seed(0)
        trained(RECIPE, "cpu")
        assert torch.equal(torch.rand(3), expected)


# Killed and resumed


@pytest.mark.parametrize("kill_at", [4, 5, 9], ids=["second epoch, first step", "second step", "last step of all"])
@pytest.mark.parametrize("schedule", ["cycle", "constant"])
def test_a_killed_run_resumes_to_the_weights_of_an_uninterrupted_one(kill_at, schedule, folder, monkeypatch, steps):
    recipe = dataclasses.replace(RECIPE, schedule=schedule, augment=True, mask_share=0.2)
    whole = trained(recipe, "cpu")
    elsewhere(monkeypatch, folder, "b")
    steps.taken, steps.kill_at = 0, kill_at
    with pytest.raises(KeyboardInterrupt):
        trained(recipe, "cpu")
    assert not list((folder / "b").rglob("*.safetensors"))
    steps.taken, steps.kill_at = 0, None
    assert_same_weights(trained(recipe, "cpu"), whole)
    assert steps.taken == 9 - 3 * ((kill_at - 1) // 3)  # the finished epochs are not trained again


def test_a_run_killed_twice_resumes_all_the_same(folder, monkeypatch, steps):
    whole = trained(RECIPE, "cpu")
    elsewhere(monkeypatch, folder, "b")
    for kill_at in (5, 5):
        steps.taken, steps.kill_at = 0, kill_at
        with pytest.raises(KeyboardInterrupt):
            trained(RECIPE, "cpu")
    steps.kill_at = None
    assert_same_weights(trained(RECIPE, "cpu"), whole)


def killed(recipe, steps, kill_at=5):
    """Where the state of a killed training of a recipe is."""
    steps.taken, steps.kill_at = 0, kill_at
    with pytest.raises(KeyboardInterrupt):
        trained(recipe, "cpu")
    steps.taken, steps.kill_at = 0, None
    return training.weights(recipe).with_suffix(".checkpoint")


def resealed(path, **changes):
    """Change the state, with a checksum that fits."""
    state = torch.load(path, weights_only=True) | changes
    with cache.write_with_checksum(path) as temporary:
        torch.save({name: value for name, value in state.items() if value is not None}, temporary)


JUNK = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "flipped": lambda path: flipped(path),
    "text": lambda path: path.write_text("junk"),
    "without checksum": lambda path: path.with_name(f"{path.name}.sha256").unlink(),
    "another recipe": lambda path: resealed(path, belongs=["other-recipe", f"torch {torch.__version__}"]),
    "another torch": lambda path: resealed(path, belongs=[path.stem, "torch 1.0"]),
}


@pytest.mark.parametrize("junk", JUNK)
def test_training_starts_anew_where_a_checkpoint_is_junk(junk, folder, monkeypatch, steps, caplog):
    whole = trained(RECIPE, "cpu")
    elsewhere(monkeypatch, folder, "b")
    path = killed(RECIPE, steps)
    JUNK[junk](path)
    assert_same_weights(trained(RECIPE, "cpu"), whole)
    assert steps.taken == 9
    (told,) = [record.getMessage() for record in caplog.records]
    assert f"{path} is damaged or of another torch and is not resumed from" in told


def test_the_seconds_of_killed_runs_count(folder, steps, monkeypatch):
    looks = map(float, itertools.count())  # a second passes from look to look
    monkeypatch.setattr(training, "time", types.SimpleNamespace(perf_counter=lambda: next(looks)))
    resealed(killed(RECIPE, steps, kill_at=4), seconds=1000.0, device="an old GPU")
    killed(RECIPE, steps, kill_at=4)  # after another epoch, in this process
    trained(RECIPE, "cpu")
    with safe_open(training.weights(RECIPE), "pt") as file:
        about = file.metadata()
    assert 1000 < float(about["seconds"]) < 1300
    assert about["device"] == "an old GPU, cpu"


def test_a_diverging_loss_is_an_error_that_names_the_epoch_and_the_rate(folder, monkeypatch):
    monkeypatch.setattr(datasets, "load", lambda *_, **__: images(std=(0.0, 0.3, 0.3)))  # division by zero
    with pytest.raises(
        RuntimeError, match=r"colours-cnn3-\w+ diverged in epoch 1 \(loss nan\); lower its rate \(0.03\)"
    ):
        trained(RECIPE, "cpu")
    assert not list(folder.rglob("*.safetensors"))


def test_what_diverges_later_keeps_its_last_good_epoch(folder, monkeypatch):
    original, calls = training.cross_entropy, itertools.count(1)
    monkeypatch.setattr(training, "cross_entropy", lambda *a: original(*a) * (torch.inf if next(calls) == 5 else 1))
    with pytest.raises(RuntimeError, match="diverged in epoch 2"):
        trained(RECIPE, "cpu")
    assert torch.load(*folder.rglob("*.checkpoint"), weights_only=True)["epoch"] == 1


# What is trained


def test_fine_tuning_starts_from_the_weights_it_was_given(folder, steps):
    parent = trained(RECIPE, "cpu")
    taken = steps.taken
    tuned = trained(dataclasses.replace(RECIPE, start=RECIPE, rate=0.0, mask_share=0.1, epochs=1), "cpu")
    assert steps.taken == taken + 3  # the parent was not trained again
    for one, other in zip(tuned.parameters(), parent.parameters(), strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(tuned.features[0][1].running_mean, parent.features[0][1].running_mean)


def test_a_limit_takes_the_first_images(folder, monkeypatch):
    few = trained(dataclasses.replace(RECIPE, limit=12), "cpu")
    elsewhere(monkeypatch, folder, "b")
    monkeypatch.setattr(datasets, "load", lambda *_, **__: images().take(slice(12)))
    assert_same_weights(trained(RECIPE, "cpu"), few)


def test_masks_are_drawn_for_every_step_and_only_where_asked(folder, monkeypatch):
    shares, original = [], training.mask_features
    monkeypatch.setattr(
        training,
        "mask_features",
        lambda x, features, share, *a, **k: shares.append(share) or original(x, features, share, *a, **k),
    )
    trained(dataclasses.replace(RECIPE, mask_share=0.25), "cpu")
    assert shares == [0.25] * 9
    trained(RECIPE, "cpu")
    assert len(shares) == 9


def test_mixed_precision_trains_and_keeps_float32_weights(folder):
    network = trained(dataclasses.replace(RECIPE, precision="bfloat16", epochs=15), "cpu")
    assert {p.dtype for p in network.parameters()} == {torch.float32}
    assert training.accuracy(network, images()) > 0.9


def test_logits_and_accuracy_are_those_of_the_network_image_by_image(folder):
    network = trained(RECIPE, "cpu")
    x = images().model_inputs()
    with torch.no_grad():
        expected = torch.cat([network(x[i : i + 1]) for i in range(24)])
    torch.testing.assert_close(training.logits(network, x, batch_size=7), expected, atol=1e-5, rtol=1e-5)
    right = sum(int(expected[i].argmax() == LABELS[i]) for i in range(24))
    assert training.accuracy(network, images(), batch_size=7) == right / 24


# Masks and augmentation


def test_the_most_that_masking_removes_is_exact():
    # 0.13 of 900 is 117; in float32 it is a little less.
    x = torch.ones(4000, 900)
    masked = training.mask_features(x, segments.tokens(900), 0.13, torch.Generator().manual_seed(0))
    assert (masked == 0).sum(1).max() == 117


@pytest.mark.parametrize(("share", "most"), [(0.1, 6), (0.25, 16), (1.0, 64)])  # floor(share * 64)
def test_every_image_loses_a_uniform_number_of_pixels_in_all_channels(share, most):
    x = torch.rand(6000, 3, 8, 8, generator=GENERATOR) + 1
    masked = training.mask_features(x, segments.pixels(8, 8), share, torch.Generator().manual_seed(0))
    lost = masked == 0
    assert torch.equal(lost.any(1), lost.all(1))
    assert torch.equal(masked[~lost], x[~lost])
    number = lost[:, 0].flatten(1).sum(1)
    seen = number.bincount(minlength=most + 1)
    assert len(seen) == most + 1
    assert scipy.stats.chisquare(seen.numpy()).pvalue > 1e-4
    # Every pixel is equally often among them: half of the largest number over 64, with the spread of both draws.
    each = lost[:, 0].flatten(1).double().mean(0)
    expected = most / 2 / 64
    assert (each - expected).abs().max() < 4.5 * (expected * (1 - expected) / 6000) ** 0.5


def test_only_the_first_channels_are_masked_where_asked():
    x = torch.rand(50, 3, 8, 8, generator=GENERATOR) + 1
    features = segments.pixels(8, 8)
    one, every = (
        training.mask_features(x, features, 0.5, torch.Generator().manual_seed(0), channels=n) for n in (1, None)
    )
    assert torch.equal(one[:, 0], every[:, 0])
    assert torch.equal(one[:, 1:], x[:, 1:])


def test_every_image_loses_the_same_number_where_that_is_asked():
    x = torch.rand(500, 3, 8, 8, generator=GENERATOR) + 1
    masked = training.mask_features(x, segments.pixels(8, 8), 0.1, torch.Generator().manual_seed(0), exactly=True)
    lost = (masked == 0).all(1).flatten(1)
    assert (lost.sum(1) == 6).all()  # floor(0.1 * 64)
    assert lost.any(0).all()


def test_a_share_of_0_masks_nothing():
    x = torch.rand(10, 3, 8, 8, generator=GENERATOR)
    assert torch.equal(training.mask_features(x, segments.pixels(8, 8), 0.0, torch.Generator()), x)


@pytest.mark.parametrize("features", [segments.time_steps(12), segments.values(12, 2)], ids=["steps", "values"])
def test_a_series_loses_whole_features(features):
    x = torch.rand(500, 12, 2, generator=GENERATOR) + 1
    lost = training.mask_features(x, features, 0.5, torch.Generator().manual_seed(0)) == 0
    F = segments.count(features)
    per_feature = segments.pool(lost.float(), features)
    assert set(per_feature.unique().tolist()) == {0.0, 24 / F}
    assert set((per_feature > 0).sum(1).tolist()) == set(range(F // 2 + 1))


def test_a_text_loses_tokens_to_the_mask_and_no_padding():
    lengths = torch.arange(600) % 12 + 1
    x = torch.where(torch.arange(12) < lengths[:, None], 7, TextSet.PADDING)
    options = {"present": x != TextSet.PADDING, "absent": TextSet.MASK}
    masked = training.mask_features(x, segments.tokens(12), 0.5, torch.Generator().manual_seed(0), **options)
    assert torch.equal(masked == TextSet.PADDING, x == TextSet.PADDING)
    lost = (masked == TextSet.MASK).sum(1)
    for length in range(1, 13):
        assert set(lost[lengths == length].tolist()) == set(range(length // 2 + 1))


# ROAR


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_orders_are_told_and_made_again(damage, folder, caplog):
    made = []

    def make(block):
        made.append(block)
        return torch.arange(4).expand(block.stop - block.start, 4)

    training.keep_orders("some", make, 24, block=10)
    DAMAGES[damage](training._orders_path("some", 10))
    with pytest.raises(ValueError, match="hold 10 examples, not 24"):
        training._stored_orders("some", 24)
    training.keep_orders("some", make, 24, block=10)
    assert "will be made again" in caplog.text
    assert made[3:] == [slice(10, 20)]
    assert len(training._stored_orders("some", 24)) == 24


def test_stored_orders_are_made_once_and_block_by_block(folder):
    made = []

    def make(block):
        made.append(block)
        if len(made) == 3:
            raise KeyboardInterrupt
        return torch.arange(4).expand(block.stop - block.start, 4)

    with pytest.raises(KeyboardInterrupt):
        training.keep_orders("some", make, 24, block=10)
    training.keep_orders("some", make, 24, block=10)
    assert made == [slice(0, 10), slice(10, 20), slice(20, 24), slice(20, 24)]
    assert training._stored_orders("some", 24).shape == (24, 4)
    with pytest.raises(ValueError, match="hold 24 examples, not 25"):
        training._stored_orders("some", 25)


def test_roar_removes_the_first_of_each_examples_own_order(folder, monkeypatch):
    orders = torch.stack([torch.randperm(64, generator=GENERATOR) for _ in range(24)])
    training.keep_orders("some", lambda block: orders[block], 24)
    seen = []
    original = training._without_first

    def spy(x, order, counts, features, absent):
        seen.append((x, order, counts, original(x, order, counts, features, absent)))
        return seen[-1][-1]

    monkeypatch.setattr(training, "_without_first", spy)
    data = images(std=(0.3, 0.3, 0.3))
    trained(dataclasses.replace(RECIPE, orders="some", epochs=60), "cpu")
    counts = torch.cat([c for _, _, c, _ in seen]).flatten()
    assert len(counts) == 24 * 60
    # A share drawn uniformly: 0 to 64 pixels, each number equally likely.
    assert counts.min() == 0
    assert counts.max() == 64
    assert scipy.stats.kstest((counts + 0.5) / 65, "uniform").pvalue > 1e-4
    whole = data.model_inputs()
    for x, order, count, out in seen[:5]:
        for row in range(len(x)):
            (i,) = [j for j in range(24) if torch.equal(whole[j], x[row])]
            assert torch.equal(order[row], orders[i])
            gone = torch.zeros(64, dtype=torch.bool)
            gone[orders[i][: int(count[row])]] = True
            assert torch.equal(out[row], x[row] * ~gone.view(8, 8))


def test_roar_without_its_orders_is_an_error(folder):
    with pytest.raises(ValueError, match="make them with keep_orders"):
        trained(dataclasses.replace(RECIPE, orders="nowhere"), "cpu")


def test_an_augmented_image_is_a_shifted_and_perhaps_mirrored_one():
    x = torch.rand(40, 3, 8, 8, generator=GENERATOR) + 1
    padded = nn.functional.pad(x, [4] * 4)
    seen = set()
    for image, out in enumerate(training._augment(x, torch.Generator().manual_seed(0))):
        (found,) = (
            (down, right, mirrored)
            for down, right, mirrored in itertools.product(range(9), range(9), (False, True))
            if torch.equal(out.flip(-1) if mirrored else out, padded[image, :, down : down + 8, right : right + 8])
        )
        seen.add(found)
    assert len(seen) > 30
    assert {mirrored for *_, mirrored in seen} == {False, True}


def test_the_cycle_rises_over_a_fifth_and_falls_to_zero():
    factor = [training._SCHEDULES["cycle"](50)(step) for step in range(51)]
    assert factor[0] == pytest.approx(0.1)
    assert factor[9] == factor[10] == 1
    assert factor[30] == pytest.approx(0.5)  # half-way between 10 and 50
    assert factor[50] == pytest.approx(0)
    assert factor[10:] == sorted(factor[10:], reverse=True)
    assert {training._SCHEDULES["constant"](50)(step) for step in range(50)} == {1.0}


# Folds


@pytest.mark.parametrize(("count", "k"), [(24, 2), (24, 5), (7, 7), (1000, 3)])
def test_blocks_are_of_equal_size_and_an_example_keeps_its_block(count, k):
    block = training.blocks(count, k)
    sizes = block.bincount(minlength=k)
    assert len(sizes) == k
    assert sizes.max() - sizes.min() <= 1
    for fewer in (k, count // 2 + k):
        assert torch.equal(training.blocks(min(fewer, count), k), block[: min(fewer, count)])


def test_blocks_do_not_follow_a_regular_order_of_the_classes():
    # Labels 0 1 2 3 4 0 1 2 ...: a block of every fifth example would be a class.
    labels, block = torch.arange(1000) % 5, training.blocks(1000, 5)
    counts = torch.stack([labels[block == b].bincount(minlength=5) for b in range(5)])
    assert bool(((counts > 15) & (counts < 70)).all())


@pytest.mark.parametrize("k", [1, 25])
def test_more_blocks_than_examples_or_fewer_than_two_are_an_error(k):
    with pytest.raises(ValueError, match=f"at least 2 and at most 24 blocks of 24 examples, but got k={k}"):
        training.blocks(24, k)


def test_a_fold_larger_than_the_data_is_an_error_before_anything_is_trained(folder, steps):
    with pytest.raises(ValueError, match="at most 12 blocks of 12 examples, but got k=20"):
        trained(dataclasses.replace(RECIPE, limit=12, fold=(0, 20)), "cpu")
    assert steps.taken == 0


def shown(monkeypatch) -> set[bytes]:
    """Collects every image that any network is trained on."""
    found, original = set(), ImageSet.model_inputs

    def recorded(self, index=slice(None)):
        found.update(image.numpy().tobytes() for image in self.inputs[index])
        return original(self, index)

    monkeypatch.setattr(ImageSet, "model_inputs", recorded)
    return found


@pytest.mark.parametrize("limit", [None, 17])
def test_training_shows_a_network_exactly_the_examples_that_are_said_to_be_seen(limit, folder, monkeypatch):
    every = [image.numpy().tobytes() for image in images().inputs]
    assert len(set(every)) == 24
    for i in range(3):
        found = shown(monkeypatch)
        recipe = dataclasses.replace(RECIPE, fold=(i, 3), limit=limit)
        trained(recipe, "cpu")
        assert found == {every[n] for n in training.seen(recipe, 24)}


@pytest.mark.parametrize(("k", "limit"), [(2, None), (5, None), (5, 13)])
def test_every_example_within_the_limit_is_unseen_by_exactly_one_fold(k, limit):
    folds = [set(training.seen(dataclasses.replace(RECIPE, fold=(i, k), limit=limit), 24).tolist()) for i in range(k)]
    for example in range(limit or 24):
        assert sum(example not in fold for fold in folds) == 1
    assert not any(example in fold for example in range(limit or 24, 24) for fold in folds)


@pytest.mark.parametrize("kill_at", [3, 4])
def test_a_killed_fold_resumes_to_the_weights_of_an_uninterrupted_one(kill_at, folder, monkeypatch, steps):
    recipe = dataclasses.replace(RECIPE, fold=(1, 3), switched=0.3)
    whole = trained(recipe, "cpu")
    elsewhere(monkeypatch, folder, "b")
    steps.taken, steps.kill_at = 0, kill_at
    with pytest.raises(KeyboardInterrupt):
        trained(recipe, "cpu")
    steps.taken, steps.kill_at = 0, None
    assert_same_weights(trained(recipe, "cpu"), whole)
    assert steps.taken == 6 - 2 * ((kill_at - 1) // 2)  # 16 images in steps of 10; finished epochs are not repeated


def test_a_fold_with_one_class_is_an_error(folder):
    # Two images of two classes: each of two folds is left with one of them.
    left = {
        tuple(LABELS[training.seen(dataclasses.replace(RECIPE, fold=(i, 2), limit=2), 24)].tolist()) for i in (0, 1)
    }
    assert left == {(0,), (1,)}
    with pytest.raises(ValueError, match=r"all 1 training examples of colours-cnn3-.* are of class '(red|green)'"):
        trained(dataclasses.replace(RECIPE, fold=(0, 2), limit=2), "cpu")


def test_labels_are_switched_for_training_only(folder, monkeypatch):
    labels, original = [], training.cross_entropy
    monkeypatch.setattr(training, "cross_entropy", lambda z, y: labels.append(y) or original(z, y))
    trained(dataclasses.replace(RECIPE, switched=0.5, epochs=1, batch=24), "cpu")
    expected = training.degradation.switched(LABELS, 3, 0.5)
    assert sorted(labels[0].tolist()) == sorted(expected.tolist())
    assert not torch.equal(expected, LABELS)
    assert torch.equal(training.datasets.load("colours").labels, LABELS)


@pytest.mark.gpu
def test_a_gpu_trains_to_a_network_as_good(folder):
    network = trained(dataclasses.replace(RECIPE, epochs=15), "cuda")
    assert training.accuracy(network, images()) > 0.9


@pytest.mark.parametrize(
    ("name", "width", "overrun"),
    [
        ("resnet18", 2, True),  # strided 1 x 1 convolutions of fewer channels than oneDNN's block
        ("resnet18", 8, True),
        ("resnet18", 16, False),
        ("resnet9", 2, False),  # no such convolution
    ],
)
def test_a_network_whose_gradients_onednn_cannot_take_is_trained_without_it(name, width, overrun, folder, monkeypatch):
    seen, original = [], training._train
    monkeypatch.setattr(training, "_train", lambda *a: seen.append(torch.backends.mkldnn.enabled) or original(*a))
    trained(dataclasses.replace(RECIPE, model=name, model_options={"classes": 3, "width": width}, epochs=1), "cpu")
    assert seen == [not overrun]
    assert torch.backends.mkldnn.enabled


@pytest.mark.parametrize("native", [torch.bfloat16, torch.float32])
def test_bfloat16_is_trained_in_only_where_it_is_native(native, folder, monkeypatch):
    monkeypatch.setattr(engine, "native_precision", lambda device="cpu": native)
    found, original = [], torch.autocast
    monkeypatch.setattr(torch, "autocast", lambda *a, **how: found.append(how["enabled"]) or original(*a, **how))
    recipe = dataclasses.replace(RECIPE, precision="bfloat16", epochs=1)
    trained(recipe, "cpu")
    assert found == [native is torch.bfloat16]
    with safe_open(training.weights(recipe), "pt") as file:
        assert file.metadata()["precision"] == str(native).removeprefix("torch.")
