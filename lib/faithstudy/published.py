"""The numbers that the papers print, as typed tables.

`data/published` of the repository holds them, copied digit by digit; `data/README.md` says which table of which paper
each file is, and lists the misprints. A file whose checksum is not that of `SHA256SUMS` beside it is refused, so that a
comparison with the papers is never a comparison with something else.
"""

import hashlib
import io

import pandas as pd

from faithstudy import paths

KEYS = ("table", "figure", "groups")
"""Columns of whole numbers that say which number a row holds; all other numbers are measurements."""

SETS = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "tiny-imagenet": "Tiny-ImageNet"}
"""Data sets of `faithstudy.data.datasets` as F-Fidelity's tables of images call them."""


def checksums() -> dict[str, str]:
    """The sha256 of every published table, by the name that `load` knows it by."""
    lines = (paths.root() / "data" / "published" / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    return {file.removesuffix(".csv"): checksum for checksum, file in map(str.split, lines)}


def load(name: str) -> pd.DataFrame:
    """Return a published table, one printed number a row.

    Columns that say which table and setting a number is from come first: `table` (`figure`) and `groups` are integers,
    yes and no are booleans, the rest strings as the paper writes them. Percentages become fractions: `accuracy` and
    `masked_fraction`. A number that the paper prints as a dash is NaN.

    Raises:
        ValueError: unknown name, or a file that is not the one that was checked against the paper.
        FileNotFoundError: the file, or the repository, was not found.
    """
    known, path = checksums(), paths.root() / "data" / "published" / f"{name}.csv"
    if name not in known:
        raise ValueError(f"there is no published table {name!r}; there are {', '.join(known)}")
    content = path.read_bytes().replace(b"\r\n", b"\n")
    if hashlib.sha256(content).hexdigest() != known[name]:
        raise ValueError(f"{path} is not the file that was checked against the paper: restore it with git")
    # "none" and the like are words here.
    words = {"keep_default_na": False, "na_values": [""], "true_values": ["yes"], "false_values": ["no"]}
    frame = pd.read_csv(io.BytesIO(content), **words)
    frame = frame.astype({column: float for column in frame.select_dtypes("int64") if column not in KEYS})
    percents = [column for column in frame if column.endswith("_percent")]
    frame[percents] = (frame[percents] / 100).round(6)  # 56.70 % is 0.567, not 0.5670000000000001
    return frame.rename(columns={"masked_percent": "masked_fraction", "accuracy_percent": "accuracy"})
