"""File formats of the classic image and time-series sets: unpacked files and a split in, arrays out.

A file that is not what its name says ends in an error of numpy or Pillow, or in arrays of another checksum.
"""

import gzip
import json
from pathlib import Path

import numpy as np
from PIL import Image

from faithstudy.data.sources import Arrays, Files

_SIDE = 32  # of a CIFAR image


def idx(path: Path) -> np.ndarray:
    """Read one array of unsigned bytes in the idx format of MNIST, gzipped or not.

    Header: two zero bytes, the type (8: unsigned byte), the number of axes, each length as a big-endian 32-bit integer.
    """
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    header = 4 + 4 * content[3]
    shape = np.frombuffer(content[4:header], ">u4").astype(int)
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape).copy()  # bytes are read-only


def mnist(files: Files, split: str) -> Arrays:
    """Read images and labels by the names of MNIST; return inputs uint8 [N, 1, H, W] and labels int64 [N]."""
    part = {"train": "train", "test": "t10k"}[split]
    names = f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"
    images, labels = (idx(files[name if name in files else f"{name}.gz"]) for name in names)
    return images[:, None], labels.astype(np.int64)


def cifar_records(paths: list[Path], labels: int = 1) -> Arrays:
    """Read the binary version of CIFAR: records of label bytes, then the red, green and blue planes, row by row.

    Args:
        paths: of the batches.
        labels: label bytes of a record, of which the last is used: 1 in CIFAR-10; 2 in CIFAR-100, coarse and fine.

    Returns:
        Inputs uint8 [N, 3, 32, 32] and labels int64 [N].
    """
    records = np.concatenate([np.fromfile(path, np.uint8) for path in paths]).reshape(-1, labels + 3 * _SIDE**2)
    return records[:, labels:].reshape(-1, 3, _SIDE, _SIDE), records[:, labels - 1].astype(np.int64)


def cifar100(files: Files, split: str) -> Arrays:
    """Read a split of CIFAR-100, its binary version, with the fine labels."""
    return cifar_records([files[f"{split}.bin"]], labels=2)


def cifar10(files: Files, split: str) -> Arrays:
    """Read a split of CIFAR-10: its binary version, or PNG sprites, one image a row, with the JSON of labels."""
    batches = [f"data_batch_{i}" for i in range(1, 6)] if split == "train" else ["test_batch"]
    if f"{batches[0]}.bin" in files:
        return cifar_records([files[f"{name}.bin"] for name in batches])
    sprites = [np.asarray(Image.open(files[f"{name}.png"])).reshape(-1, _SIDE, _SIDE, 3) for name in batches]
    labels = json.loads(files[f"{split}_lables.json"].read_text())
    return np.concatenate(sprites).transpose(0, 3, 1, 2), np.array(labels, np.int64)


def ts(path: Path, length: int | None = None) -> Arrays:
    """Read labelled time series in the text format .ts of the UEA and UCR archive.

    Header lines begin with @; after @data each line is one example: its channels, then its class, separated by colons;
    the values of a channel are separated by commas. The header names the classes, and labels are places in that list.

    Args:
        path: of the file.
        length: steps of the arrays, so that two splits get the same; None: those of the longest series.

    Returns:
        Inputs float32 [N, T, C], NaN where a series has ended, and labels int64 [N].
    """
    header, _, body = path.read_text(encoding="utf-8").partition("@data")
    (names,) = (line.split()[2:] for line in header.splitlines() if line.lower().startswith("@classlabel true"))
    series, labels = [], []
    for line in body.split():
        *channels, name = line.split(":")
        series.append(np.array([channel.split(",") for channel in channels], np.float32).T)  # [t, C]
        labels.append(names.index(name))
    inputs = np.full((len(series), length or max(map(len, series)), series[0].shape[1]), np.nan, np.float32)
    for padded, one in zip(inputs, series, strict=True):
        padded[: len(one)] = one
    return inputs, np.array(labels, np.int64)
