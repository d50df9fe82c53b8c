"""File formats of the classic image and time-series sets: paths in, arrays out.

A file that is not what its name says ends in an error of numpy or Pillow, or in arrays of another checksum.
"""

import gzip
import json
from pathlib import Path

import numpy as np
from PIL import Image

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


def idx_pair(paths: list[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Read [images, labels] in the idx format; return inputs uint8 [N, 1, H, W] and labels int64 [N]."""
    images, labels = map(idx, paths)
    return images[:, None], labels.astype(np.int64)


def cifar_records(paths: list[Path], labels: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Read the binary version of CIFAR: records of label bytes, then the red, green and blue planes, row by row.

    Args:
        paths: of the batches.
        labels: label bytes of a record, of which the last is used: 1 in CIFAR-10; 2 in CIFAR-100, coarse and fine.

    Returns:
        Inputs uint8 [N, 3, 32, 32] and labels int64 [N].
    """
    batches = [np.fromfile(path, np.uint8) for path in paths]
    records = np.concatenate(batches).reshape(-1, labels + 3 * _SIDE**2)
    pixels = np.ascontiguousarray(records[:, labels:]).reshape(-1, 3, _SIDE, _SIDE)
    return pixels, records[:, labels - 1].astype(np.int64)


def cifar_sprites(paths: list[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Read CIFAR-10 as PNG sprites, one image a row, its pixels row by row; the last path is the JSON of labels.

    Returns:
        Inputs uint8 [N, 3, 32, 32] and labels int64 [N].
    """
    *sprites, listing = paths
    labels = np.array(json.loads(listing.read_text()), np.int64)
    batches = []
    for path in sprites:
        with Image.open(path) as image:
            batches.append(np.asarray(image).reshape(-1, _SIDE, _SIDE, 3).transpose(0, 3, 1, 2))  # [N, 3, 32, 32]
    return np.ascontiguousarray(np.concatenate(batches)), labels


def photographs(paths: list[Path], classes: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Read photographs of one size, one a file, whose names begin with their class, as `Forest_12.jpg`.

    Args:
        paths: in the order of the arrays.
        classes: labels are places in this list.

    Returns:
        Inputs uint8 [N, 3, H, W] and labels int64 [N].
    """
    inputs, labels = [], [classes.index(path.name.rsplit("_", 1)[0]) for path in paths]
    for path in paths:
        with Image.open(path) as image:
            inputs.append(np.asarray(image.convert("RGB")).transpose(2, 0, 1))
    return np.ascontiguousarray(np.stack(inputs)), np.array(labels, np.int64)


def ts(paths: list[Path], length: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Read labelled time series in the text format .ts of the UEA and UCR archive.

    Header lines begin with @; after @data each line is one example: its channels, then its class, separated by colons;
    the values of a channel are separated by commas. The header names the classes, and labels are places in that list.

    Args:
        paths: of one file.
        length: steps of the arrays, so that two splits get the same; None: those of the longest series.

    Returns:
        Inputs float32 [N, T, C], NaN where a series has ended, and labels int64 [N].
    """
    (path,) = paths
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
