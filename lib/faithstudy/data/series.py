"""PAM and Boiler as TimeX releases them: the time series of F-Fidelity, which no package has.

Owen Queen, Thomas Hartvigsen, Teddy Koker, Huan He, Theodoros Tsiligkaridis, Marinka Zitnik: "Encoding Time-Series
Explanations through Self-Supervised Model Behavior Consistency", NeurIPS 2023; the files are on Harvard Dataverse,
doi:10.7910/DVN/B0DEQJ. Some of them are pickles, which may run code when they are opened: here only those that hold
numbers are.
"""

import codecs
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

RELEASE = "TimeX's release, doi:10.7910/DVN/B0DEQJ on dataverse.harvard.edu"
"""Where the files are, for messages."""

PAM_FILES = ("PTdict_list.npy", "arr_outcomes.npy", "PAMAP2_split_1.npy")
"""Of the folder PAM: values, labels and the first of five random splits."""

BOILER_FILES = ("full.csv", "split=1.pt")
"""Of the folder Boiler: measurements, and the first of five random splits."""

_PARTS = ("train", "validation", "test")  # of a split, in the order of its file
_WINDOW = 6  # measurements of the boiler that one of its series is made of

_REBUILD = [number.__reduce__()[0] for number in (np.zeros(1), np.int64(0))]  # what pickles rebuild these with
_NUMBERS = {
    # numpy 2 has renamed its core; files written before name the old one.
    **{f"numpy.{core}.multiarray.{f.__name__}": f for core in ("core", "_core") for f in _REBUILD},
    "numpy.ndarray": np.ndarray,
    "numpy.dtype": np.dtype,
    "_codecs.encode": codecs.encode,  # how older pickles write bytes
}
"""What the pickle of an array of numbers names."""


def pam(paths: list[Path], part: str) -> tuple[np.ndarray, np.ndarray]:
    """Read a part of PAM: activities by body-worn sensors, 17 channels x 600 steps, 8 classes.

    Standardised as TimeX does: per channel by the positive values of the training series, the others are missing and
    become 0.

    Args:
        paths: of `PAM_FILES`.
        part: "train", "validation" or "test".

    Returns:
        Inputs float32 [N, 600, 17] and labels int64 [N].
    """
    values, outcomes, split = map(_npy, paths)
    parts = dict(zip(_PARTS, map(_places, split), strict=True))
    train = np.asarray(values[parts["train"]], np.float64)  # [N, T, C]
    train = np.where(train > 0, train, np.nan)
    mean, std = np.nanmean(train, (0, 1)), np.nanstd(train, (0, 1))
    inputs = np.asarray(values[parts[part]], np.float64)
    inputs = np.where(inputs > 0, (inputs - mean) / std.clip(1e-7), 0).astype(np.float32)
    return inputs, np.asarray(outcomes)[parts[part], -1].astype(np.int64)


def boiler(paths: list[Path], part: str) -> tuple[np.ndarray, np.ndarray]:
    """Read a part of Boiler: blow-down valve faults from 20 sensors, 36 steps, 2 classes.

    A series ends at a measurement of full.csv: its last 1, 2, ... 6 measurements one
    after the other, each filled up with zeros to six steps. Values are left as they are.

    Args:
        paths: of `BOILER_FILES`.
        part: as in `pam`.

    Returns:
        Inputs float32 [N, 36, C] and labels int64 [N].
    """
    table, split = paths
    rows = pd.read_csv(table).to_numpy()[:, 2:]  # without number and time; the label comes last
    places = _places(dict(zip(_PARTS, _pt(split), strict=True))[part])
    windows = np.lib.stride_tricks.sliding_window_view(rows[:, :-1], _WINDOW, axis=0)[places]  # [N, C, 6]
    windows = windows.astype(np.float32).transpose(0, 2, 1)
    blocks = np.zeros((len(places), _WINDOW, *windows.shape[1:]), np.float32)  # [N, 6, 6, C]
    for block in range(_WINDOW):
        blocks[:, block, : block + 1] = windows[:, _WINDOW - 1 - block :]
    return blocks.reshape(len(places), -1, windows.shape[2]), rows[_WINDOW - 1 :, -1][places].astype(np.int64)


class _Numbers(pickle.Unpickler):
    """Opens pickles of arrays of numbers, and refuses all others before anything of them runs."""

    def find_class(self, module: str, name: str) -> Any:
        if (known := _NUMBERS.get(f"{module}.{name}")) is None:
            raise ValueError(f"it holds {module}.{name}, which is no array of numbers; it was not opened")
        return known


def _npy(path: Path) -> np.ndarray:
    """An array of a .npy file, also one of arrays, which numpy pickles."""
    with path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        *_, kind = header[version](file)
        if kind.hasobject:
            return _Numbers(file).load()
    return np.load(path)


def _pt(path: Path) -> Any:
    """What torch saved, if it is made of tensors, arrays and Python's numbers and lists."""
    numbers = [(found, name) for name, found in _NUMBERS.items()]
    numbers += [type(np.dtype(kind)) for kind in (np.int32, np.int64)]
    try:
        with torch.serialization.safe_globals(numbers):
            return torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError) as error:
        raise ValueError(f"{path.name} could not be opened safely: {error}") from error


def _places(indices: Any) -> np.ndarray:
    return np.asarray(indices).astype(np.int64).reshape(-1)
