"""The numbers that the papers print, as typed tables.

`data/published` of the repository holds them, copied digit by digit; `data/README.md` says which table of which paper
each file is, and lists the misprints. A file that was changed is refused, so that a comparison with the papers is never
a comparison with something else.
"""

import hashlib
import io
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from faithlab.study import places

__all__ = ["load", "names"]


@dataclass(frozen=True)
class _Table:
    checksum: str  # sha256 of the file with newlines as \n
    numbers: tuple[str, ...]
    whole: tuple[str, ...] = ("table",)
    percents: dict[str, str] = field(default_factory=dict)  # printed column -> its name as a fraction
    flags: tuple[str, ...] = ()  # yes or no


_TABLES = {
    "consistency_degradations": _Table(
        "0e7e8263f86c425567d45fba9dded1c04c1b4ae74ae18b72c8d9ac2d015966f3", numbers=("value",)
    ),
    "consistency_scores": _Table(
        "cd1645425c368ceb65431b6f03511d65f435e02af8a89748018f34d3ef08448c", numbers=("value",)
    ),
    "fewclass_scores": _Table("dbffc26a74c8a1a4800ee8b5ee0e120722d23b67ca16ad48b3c557e430d2174b", numbers=("value",)),
    "ffidelity_correlations": _Table(
        "38f350631285f55813fc610136de5112da2cf724a74c1b31c53681ed446f2b3e", numbers=("mean", "std")
    ),
    "ffidelity_cost": _Table("1f978ae53107442f01e316a8d53aaaba0dcc7c7885279e36ba2f5611bc634def", numbers=("seconds",)),
    "ffidelity_explainers": _Table(
        "f48e74bb412a4503ec3ca6fb95459172d42e8a8f9a680386fdd34fd00c365c6b", numbers=("value",)
    ),
    "ffidelity_robustness": _Table(
        "37237dcd81b5bdf3c334715c14858dc460d9e1779d1904d623ed27c895a9c444",
        numbers=("masked_percent", "accuracy_percent"),
        percents={"masked_percent": "masked_fraction", "accuracy_percent": "accuracy"},
    ),
    "saco_ablation": _Table(
        "ef5b277a52c01eb35760346180f8d068558cc1e729150aa013475c42e2cfa823",
        numbers=("saco",),
        flags=("cross_layer_aggregation", "gradient"),
    ),
    "saco_groups": _Table(
        "11069916c2458dfd0d05e3f6d1fbcc4e347e418c99711c4cd57682558160bd40", numbers=("saco",), whole=("table", "groups")
    ),
    "saco_metric_correlation": _Table(
        "bbda8e17810428f11f24818a74d834537e6af698c1ed921ef2a0a47db2e05247", numbers=("value",), whole=("figure",)
    ),
    "trace_deletion": _Table(
        "e530717074cd9fc3fc72692b426f225d014d1f7ae09a73d1aa04614fbb595092",
        numbers=("lerf_minus_morf_probability_auc",),
    ),
}


def names() -> tuple[str, ...]:
    """Return the names that `load` knows."""
    return tuple(_TABLES)


def load(name: str) -> pd.DataFrame:
    """Return a published table, one printed number a row.

    Columns that say which table and setting a number is from come first: `table` (`figure`) and `groups` are integers,
    yes and no are booleans, the rest strings as the paper writes them. Percentages become fractions: `accuracy` and
    `masked_fraction`. A number that the paper prints as a dash is NaN.

    Raises:
        ValueError: unknown name, or a file that is not the one that was checked against the paper.
        FileNotFoundError: the file, or the repository, was not found.
    """
    if name not in _TABLES:
        raise ValueError(f"there is no published table {name!r}; there are {', '.join(_TABLES)}")
    table = _TABLES[name]
    path = places.root() / "data" / "published" / f"{name}.csv"
    content = path.read_bytes().replace(b"\r\n", b"\n")
    if (found := hashlib.sha256(content).hexdigest()) != table.checksum:
        raise ValueError(
            f"{path} is not the file that was checked against the paper (sha256 {found}, expected {table.checksum}); "
            "restore it from the repository, or check your change against the paper and put its checksum into "
            f"{Path(__file__).name}"
        )
    frame = pd.read_csv(
        io.BytesIO(content),
        dtype=dict.fromkeys(table.whole, "int64"),
        converters={flag: {"yes": True, "no": False}.__getitem__ for flag in table.flags},
        keep_default_na=False,  # "none" and the like are words here
        na_values={number: [""] for number in table.numbers},
    )
    frame = frame.astype(dict.fromkeys(table.numbers, "float64") | dict.fromkeys(table.flags, "bool"))
    for printed in table.percents:
        frame[printed] = (frame[printed] / 100).round(6)  # 56.70 % is 0.567, not 0.5670000000000001
    return frame.rename(columns=table.percents)
