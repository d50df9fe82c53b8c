"""Time series: their text format, the sets made of them, PAM and Boiler from files like the released ones, networks."""

import os
import pickle

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from faithlab import engine, outputs, segments
from faithlab.explainers import explain
from faithlab.metrics.fidelity import remaining
from faithstudy.data import cache, datasets, formats, sources
from faithstudy.data.sets import SeriesSet
from faithstudy.data.sources import DatasetUnavailable
from faithstudy.networks import models, training
from faithstudy.trials import roar

TS = """#a comment: with a colon
@problemName tiny
@timeStamps false
@equalLength false
@classLabel true rest run
@data
1.5,2.5,-3:10,20,30:run
4:40:rest
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def write(folder, text, name="tiny_TRAIN.ts"):
    path = folder / name
    path.write_text(text)
    return path


# --- the format


def test_ts_reads_what_the_format_says(tmp_path):
    inputs, labels = formats.ts(write(tmp_path, TS), length=4)
    nan = np.nan
    np.testing.assert_array_equal(
        inputs,
        [
            [[1.5, 10], [2.5, 20], [-3, 30], [nan, nan]],
            [[4, 40], [nan, nan], [nan, nan], [nan, nan]],
        ],
    )
    np.testing.assert_array_equal(labels, [1, 0])  # places in the header's list, not of the examples
    assert (inputs.dtype, labels.dtype) == (np.float32, np.int64)
    assert formats.ts(write(tmp_path, TS))[0].shape == (2, 3, 2)


def test_ts_does_not_cut_a_series_short(tmp_path):
    with pytest.raises(ValueError, match="could not broadcast"):
        formats.ts(write(tmp_path, TS), length=2)


# --- the set


def tiny(unit="step"):
    inputs = torch.tensor([[[1.0, 10.0], [3.0, 30.0], [2.0, 20.0]], [[5.0, 50.0], [torch.nan] * 2, [torch.nan] * 2]])
    return SeriesSet(inputs, torch.tensor([0, 1]), ("a", "b"), (1.0, 10.0), (2.0, 20.0), unit)


def test_a_step_that_a_series_does_not_have_is_no_feature_and_looks_like_a_removed_one():
    x = tiny().model_inputs()
    assert torch.equal(x, torch.tensor([[[0.0, 0.0], [1.0, 1.0], [0.5, 0.5]], [[2.0, 2.0], [0.0, 0.0], [0.0, 0.0]]]))
    assert torch.equal(tiny().present(), torch.tensor([[True, True, True], [True, False, False]]))
    assert tiny().present(slice(1)) is None  # the first has all steps
    assert tiny().inputs.isnan().any(), "the stored series were changed"


def test_the_features_of_a_series_are_its_steps_or_its_values():
    assert torch.equal(tiny().features(), torch.tensor([[0], [1], [2]]))
    assert torch.equal(tiny("value").features(), torch.tensor([[0, 1], [2, 3], [4, 5]]))
    assert torch.equal(tiny("value").present()[1], torch.tensor([True, True, False, False, False, False]))
    assert tiny("value").take([1]).unit == "value"
    with pytest.raises(ValueError, match="unit must be 'step' or 'value', not 'channel'"):
        tiny("channel")


# --- the real sets


@pytest.mark.parametrize("name", ["basic-motions", "japanese-vowels", "gun-point", "arrow-head"])
def test_the_real_sets_are_what_they_claim(name):
    try:
        datasets.fetch(name)
    except DatasetUnavailable as error:
        if os.environ.get("FAITHLAB_REQUIRE_DATA"):
            raise
        pytest.skip(str(error))
    train, test = (datasets.load(name, split) for split in ("train", "test"))
    collection = datasets.COLLECTIONS[name]
    values = train.inputs.double().flatten(0, 1)
    values = values[~values.isnan().any(1)]
    np.testing.assert_allclose(values.mean(0), collection.mean, atol=6e-5)
    np.testing.assert_allclose(values.std(0, correction=0), collection.std, atol=6e-5)
    lengths = {"train": [], "test": []}
    for split, part in (("train", train), ("test", test)):
        steps = (~part.inputs.isnan()).any(-1)
        lengths[split] = steps.sum(1)
        assert torch.equal(steps, torch.arange(steps.shape[1]) < lengths[split][:, None]), "a series with a hole"
        assert torch.equal(part.inputs.isnan().any(-1), part.inputs.isnan().all(-1))
    if name == "basic-motions":
        assert train.inputs.shape == test.inputs.shape == (40, 100, 6)
        assert lengths["train"].min() == lengths["test"].min() == 100
        assert train.labels.bincount().tolist() == test.labels.bincount().tolist() == [10] * 4
    elif name == "gun-point":  # as the UCR archive's list has them, and ArrowHead
        assert (train.inputs.shape, test.inputs.shape) == ((50, 150, 1), (150, 150, 1))
        assert lengths["train"].min() == lengths["test"].min() == 150
        assert (train.labels.bincount().tolist(), test.labels.bincount().tolist()) == ([24, 26], [76, 74])
    elif name == "arrow-head":
        assert (train.inputs.shape, test.inputs.shape) == ((36, 251, 1), (175, 251, 1))
        assert lengths["train"].min() == lengths["test"].min() == 251
        assert (train.labels.bincount().tolist(), test.labels.bincount().tolist()) == ([12] * 3, [69, 53, 53])
    else:  # as the UCI repository describes them
        assert (train.inputs.shape, test.inputs.shape) == ((270, 29, 12), (370, 29, 12))
        assert (lengths["train"].min(), lengths["test"].max()) == (7, 29)
        assert train.labels.bincount().tolist() == [30] * 9
        assert test.labels.bincount().tolist() == [31, 35, 88, 44, 29, 24, 40, 50, 29]
    with pytest.raises(TypeError, match="unexpected keyword argument 'units'"):
        datasets.load(name, "test", units="value")
    assert datasets.load(name, "test", unit="value").features().numel() == test.inputs[0].numel()


# --- PAM and Boiler, as TimeX releases them

rng = np.random.default_rng(0)
SPLIT = ([4, 0, 3], [5], [2, 1])


def pam_files(folder):
    folder.mkdir(parents=True)
    values = rng.normal(1, 2, (6, 600, 17))
    np.save(folder / "PTdict_list.npy", values)
    np.save(folder / "arr_outcomes.npy", np.array([[n, n % 3] for n in range(6)], float))
    ragged = np.empty(3, object)
    ragged[:] = [np.array(part) for part in SPLIT]
    np.save(folder / "PAMAP2_split_1.npy", ragged, allow_pickle=True)
    return values


def boiler_files(folder, split=SPLIT):
    folder.mkdir(parents=True)
    values = rng.normal(size=(11, 20))
    labels = np.arange(11) % 2
    lines = [",".join(["", "time", *(f"sensor {n}" for n in range(20)), "label"])]
    lines += [
        ",".join([str(n), f"{n}.5", *map(repr, map(float, row)), str(label)])
        for n, (row, label) in enumerate(zip(values, labels, strict=True))
    ]
    (folder / "full.csv").write_text("\n".join(lines))
    torch.save(split, folder / "split=1.pt")
    return values, labels


def test_pam_is_standardised_by_its_positive_training_values(home):
    values = pam_files(sources.by_hand("pam"))
    train, test = (datasets.load("pam", split) for split in ("train", "test"))
    assert train.inputs.shape == (3, 600, 17)
    assert train.labels.tolist() == [1, 0, 0]
    assert test.labels.tolist() == [2, 1]
    for channel in (0, 16):  # one value at a time, as the reader of the files would by hand
        seen = [v for n in SPLIT[0] for v in values[n, :, channel] if v > 0]
        mean, std = np.mean(seen), np.std(seen)
        for place, n in enumerate(SPLIT[2]):
            expected = [(v - mean) / std if v > 0 else 0 for v in values[n, :, channel]]
            np.testing.assert_allclose(test.inputs[place, :, channel], expected, rtol=1e-5, atol=1e-6)
    assert torch.equal(test.model_inputs(), test.inputs)


@pytest.mark.parametrize("kind", ["lists", "tensors", "arrays"])
def test_boiler_repeats_its_last_measurements_in_six_windows(home, kind):
    make = {"lists": list, "tensors": torch.tensor, "arrays": np.array}[kind]
    values, labels = boiler_files(sources.by_hand("boiler"), tuple(make(part) for part in SPLIT))
    test = datasets.load("boiler", "test")
    assert test.inputs.shape == (2, 36, 20)
    for place, n in enumerate(SPLIT[2]):
        last = n + 5  # six measurements end here
        steps = []
        for length in range(1, 7):
            steps += [values[last - length + 1 + step] for step in range(length)]
            steps += [np.zeros(20)] * (6 - length)
        np.testing.assert_allclose(test.inputs[place], np.array(steps), rtol=1e-6)
        assert test.labels[place] == labels[last]


class Run:
    """A pickle that runs code of its own when it is opened."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return open, (str(self.marker), "w")


def test_a_pickle_of_anything_but_numbers_is_refused_before_it_runs(home, tmp_path):
    marker = tmp_path / "was-run"
    pam_files(sources.by_hand("pam"))
    bad = np.empty(3, object)
    bad[:] = [Run(marker)] * 3
    np.save(sources.by_hand("pam") / "PAMAP2_split_1.npy", bad, allow_pickle=True)
    with pytest.raises(DatasetUnavailable, match=r"io\.open, which is no array of numbers"):
        datasets.load("pam")
    boiler_files(sources.by_hand("boiler"), (Run(marker),) * 3)
    with pytest.raises(DatasetUnavailable, match="UnpicklingError: Weights only load failed"):
        datasets.load("boiler")
    assert not marker.exists()


def test_pickles_of_older_numpy_are_read(home):
    pam_files(sources.by_hand("pam"))
    path = sources.by_hand("pam") / "PAMAP2_split_1.npy"
    whole = path.read_bytes()
    head = whole[: whole.index(b"\n") + 1]
    ragged = np.empty(3, object)
    ragged[:] = [np.array(part) for part in SPLIT]
    old = pickle.dumps(ragged, protocol=2).replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    assert b"numpy.core.multiarray" in old
    path.write_bytes(head + old)
    assert datasets.load("pam").labels.tolist() == [1, 0, 0]


# --- networks


@pytest.mark.parametrize(("name", "parameters"), [("bilstm", 3 * 2 * 2), ("cnn1d", 3)])
def test_series_networks_map_series_to_logits(name, parameters):
    torch.manual_seed(0)
    network = models.build(name, classes=5, channels=3, width=8).eval()
    x = torch.randn(4, 24, 3)
    logits = network(x)
    assert logits.shape == (4, 5)
    # Each series is answered alone, whatever its batch.
    torch.testing.assert_close(network(x[2:3]), logits[2:3])
    features = dict(network.named_children())["features"]
    assert sum(weight.ndim > 1 for weight in features.parameters()) == parameters
    for channel in range(3):  # every channel and both ends count
        for step in (0, 23):
            changed = x.clone()
            changed[:, step, channel] += 1
            assert not torch.equal(network(changed), logits)


def test_the_lstm_is_that_of_the_paper():
    network = models.build("bilstm")
    lstm = network.features
    assert (lstm.num_layers, lstm.bidirectional, 2 * lstm.hidden_size) == (3, True, 128)
    x = torch.randn(2, 7, 6)
    states, _ = torch.nn.LSTM.forward(lstm, x)
    torch.testing.assert_close(network.features(x), states.mean(1))


@pytest.mark.gpu
def test_an_lstm_in_eval_mode_has_gradients_on_a_gpu():
    network = models.build("bilstm", width=8).cuda().eval()
    x, y, steps = torch.randn(3, 20, 6).cuda(), torch.zeros(3, dtype=torch.int64).cuda(), segments.time_steps(20)
    on_gpu = explain("integrated-gradients", network, x, y, steps)
    on_cpu = explain("integrated-gradients", network.cpu(), x.cpu(), y.cpu(), steps)
    torch.testing.assert_close(on_gpu.cpu(), on_cpu, rtol=1e-3, atol=1e-5)


# --- the whole chain on a set whose steps differ in number


@pytest.fixture
def learnable(home, monkeypatch):
    """A set in the cache whose class is told by one of its steps; series of 4 to 8 steps."""
    generator = torch.Generator().manual_seed(1)
    labels = torch.arange(60) % 2
    inputs = 0.1 * torch.randn(60, 8, 2, generator=generator)
    inputs[:, 2] += 2 * labels[:, None] - 1.0
    lengths = 4 + torch.arange(60) % 5
    inputs[torch.arange(8) >= lengths[:, None]] = torch.nan
    made = {"train": slice(40), "test": slice(40, 60)}
    collection = datasets.Collection(
        kind=SeriesSet,
        classes=("low", "high"),
        mean=(0.0, 0.0),
        std=(1.0, 1.0),
        checksums=dict.fromkeys(made),
        sources=(),
    )
    monkeypatch.setitem(datasets.COLLECTIONS, "steps", collection)
    (home / "datasets").mkdir(parents=True)
    for split, part in made.items():
        arrays = inputs[part].contiguous(), labels[part].contiguous()
        save_file(
            dict(zip(("inputs", "labels"), arrays, strict=True)),
            home / "datasets" / f"steps.{split}.safetensors",
            metadata={"sha256": sources.fingerprint(*(a.numpy() for a in arrays))},
        )
    return training.Recipe(
        data="steps",
        model="cnn1d",
        model_options={"classes": 2, "channels": 2, "width": 8},
        epochs=12,
        rate=0.01,
        optimiser="adamw",
        decay=0.01,
        batch=20,
    )


@pytest.mark.parametrize("unit", ["step", "value"])
def test_training_explaining_and_scoring_leave_padding_alone(learnable, unit):
    test = datasets.load("steps", "test", unit=unit)
    network = training.trained(learnable)
    assert training.accuracy(network, test) == 1
    x, y, present = test.model_inputs(), test.labels, test.present()
    attribution = explain("integrated-gradients", network, x, y, test.features())
    assert not attribution[~present].any(), "padding was relevant"
    most = attribution.argmax(1) // (1 if unit == "step" else 2)
    assert (most == 2).float().mean() > 0.9
    score = engine.scorer(network, x, y, segments=test.features(), output=outputs.correct)
    left = remaining(score, attribution, torch.tensor([0.0, 0.5]), present=present).value.mean(0)
    assert left[0] == 1
    assert left[1] < 0.7


def test_roar_orders_of_steps_and_of_values_are_kept_apart(learnable):
    for unit, features in (("step", 8), ("value", 16)):
        recipe = training.dataclasses.replace(learnable, data_options={"unit": unit}, epochs=1)
        roar.networks(recipe, learnable, {"it": ("integrated-gradients", {"steps": 4})})["it"]
        stored = sorted((cache.folder() / "orders").glob("*.safetensors"), key=lambda p: p.stat().st_mtime_ns)[-1]
        with safe_open(stored, "pt") as file:
            assert file.get_tensor("order").shape == (40, features)
