"""File formats of the classic image and time-series sets: paths in, arrays out."""

import gzip
import json
from pathlib import Path

import numpy as np
from PIL import Image

_SIDE = 32  # of a CIFAR image


def idx(path: Path) -> np.ndarray:
    """Read one array of unsigned bytes in the idx format of MNIST, gzipped or not.

    Header: two zero bytes, the type (8: unsigned byte), the number of axes, each length as a big-endian 32-bit integer.

    Raises:
        ValueError: this is not such a file, or its length is not what the header says.
    """
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    if len(content) < 4 or content[:3] != b"\0\0\x08":
        raise ValueError(f"{path.name} is not an idx file of unsigned bytes: it begins with {content[:4].hex(' ')}")
    header = 4 + 4 * content[3]
    shape = np.frombuffer(content[4:header], ">u4").astype(int)
    if len(content) - header != shape.prod():
        raise ValueError(f"{path.name} has {len(content) - header} bytes of data, its header says {shape.prod()}")
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape).copy()  # bytes are read-only


def idx_pair(paths: list[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Read [images, labels] in the idx format; return inputs uint8 [N, 1, H, W] and labels int64 [N].

    Raises:
        ValueError: as `idx`, or the two files do not belong together.
    """
    images, labels = map(idx, paths)
    if images.ndim != 3 or labels.shape != images.shape[:1]:
        raise ValueError(f"expected images [N, H, W] and labels [N], found {images.shape} and {labels.shape}")
    return images[:, None], labels.astype(np.int64)


def cifar_records(paths: list[Path], labels: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Read the binary version of CIFAR: records of label bytes, then the red, green and blue planes, row by row.

    Args:
        paths: of the batches.
        labels: label bytes of a record, of which the last is used: 1 in CIFAR-10; 2 in CIFAR-100, coarse and fine.

    Returns:
        Inputs uint8 [N, 3, 32, 32] and labels int64 [N].

    Raises:
        ValueError: a file does not hold whole records.
    """
    size = labels + 3 * _SIDE**2
    batches = [np.fromfile(path, np.uint8) for path in paths]
    for path, batch in zip(paths, batches, strict=True):
        if batch.size % size:
            raise ValueError(f"{path.name} has {batch.size} bytes, not a multiple of {size}")
    records = np.concatenate(batches).reshape(-1, size)  # [N, labels + 3*32*32]
    pixels = np.ascontiguousarray(records[:, labels:]).reshape(-1, 3, _SIDE, _SIDE)
    return pixels, records[:, labels - 1].astype(np.int64)


def cifar_sprites(paths: list[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Read CIFAR-10 as PNG sprites, one image a row, its pixels row by row; the last path is the JSON of labels.

    Returns:
        Inputs uint8 [N, 3, 32, 32] and labels int64 [N].

    Raises:
        ValueError: a sprite has another shape, or images and labels differ in number.
    """
    *sprites, listing = paths
    labels = np.array(json.loads(listing.read_text()), np.int64)
    batches = []
    for path in sprites:
        with Image.open(path) as image:
            rows = np.asarray(image)
        if rows.ndim != 3 or rows.shape[1:] != (_SIDE**2, 3):
            raise ValueError(f"{path.name} has shape {rows.shape}, expected (N, {_SIDE**2}, 3)")
        batches.append(rows.reshape(-1, _SIDE, _SIDE, 3).transpose(0, 3, 1, 2))  # [N, 3, 32, 32]
    inputs = np.concatenate(batches)
    if labels.shape != inputs.shape[:1]:
        raise ValueError(f"{len(inputs)} images but labels of shape {labels.shape}")
    return np.ascontiguousarray(inputs), labels


def photographs(paths: list[Path], classes: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Read photographs of one size, one a file, whose names begin with their class, as `Forest_12.jpg`.

    Args:
        paths: in the order of the arrays.
        classes: labels are places in this list.

    Returns:
        Inputs uint8 [N, 3, H, W] and labels int64 [N].

    Raises:
        ValueError: a photograph is of no such class, or of another size than the first.
    """
    inputs, labels = [], []
    for path in paths:
        name = path.name.rsplit("_", 1)[0]
        if name not in classes:
            raise ValueError(f"{path.name} does not begin with one of the classes {', '.join(classes)}")
        with Image.open(path) as image:
            inputs.append(np.asarray(image.convert("RGB")).transpose(2, 0, 1))
        if inputs[-1].shape != inputs[0].shape:
            raise ValueError(f"{path.name} has shape {inputs[-1].shape}, {paths[0].name} has {inputs[0].shape}")
        labels.append(classes.index(name))
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

    Raises:
        ValueError: this is not such a file, or what it holds is not what its header says.
    """
    (path,) = paths
    header, found, body = path.read_text(encoding="utf-8").partition("@data")
    names = next((line.split()[2:] for line in header.splitlines() if line.lower().startswith("@classlabel true")), [])
    if not found or not names:
        raise ValueError(f"{path.name} is not a labelled .ts file: it has no line @classLabel true ..., or no @data")
    series, labels = [], []
    for number, line in enumerate(body.split(), start=1):
        *channels, name = line.split(":")
        try:
            series.append(np.array([channel.split(",") for channel in channels], np.float32).T)  # [t, C]
            labels.append(names.index(name))
        except ValueError as error:
            raise ValueError(f"{path.name}, example {number}: {error}") from error
    shapes = {one.shape[1:] for one in series}
    longest = max((len(one) for one in series), default=0)
    if len(shapes) != 1 or not np.isfinite(np.concatenate(series)).all():
        raise ValueError(f"{path.name} has no examples, or they differ in channels, or a value is missing")
    if length is not None and longest > length:
        raise ValueError(f"{path.name} has a series of {longest} steps, expected at most {length}")
    inputs = np.full((len(series), length or longest, *shapes.pop()), np.nan, np.float32)
    for padded, one in zip(inputs, series, strict=True):
        padded[: len(one)] = one
    return inputs, np.array(labels, np.int64)
