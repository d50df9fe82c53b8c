"""Recorded tables: what the pages show, and how a build checks them.

A record is a finished run that is committed, in ``data/results/study/<page>/``: tables, and ``provenance.json`` with
their checksums. A build measures the first inputs of each recorded table again, with one more block of inputs that
changes with the commit, and compares. ``python -m faithstudy.records promote PAGE`` records what ``make record`` has
measured.
"""

import argparse
import functools
import hashlib
import io
import json
import math
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch

from faithlab.scores import LABELS, Scores
from faithstudy import paths
from faithstudy.paths import PROFILE, RECORDING

AGAIN, KEPT = "measured again", "recorded"
"""Columns of numbers that are compared."""
TAKEN = "taken from the record"
"""What a run that records some tables says of the others."""
LEAST = 10
"""Inputs whose mean is compared, at least: of fewer, one that rounding turns moves it by itself, and is counted."""


@dataclass(frozen=True)
class Record:
    """A recorded table.

    Attributes:
        frame: the table; scores as `faithlab.scores.Scores`.
        provenance: the ``provenance.json`` of its run.
    """

    frame: pd.DataFrame | Scores
    provenance: Mapping[str, Any]


def recorded(page: str, table: str) -> Record | None:
    """A recorded table; None: the record of the page, or the page, has none of this name.

    Raises:
        ValueError: the table is not the one that the run saved.
    """
    about = provenance(page)
    if about is None or table not in about["tables"]:
        return None
    saved = about["tables"][table]
    return Record(load(paths.recorded(page, PROFILE) / saved["file"], saved["sha256"]), about)


@functools.lru_cache(maxsize=8)
def load(path: Path, sha256: str) -> pd.DataFrame | Scores:
    """A table from its file, read once."""
    return Scores.load(path).labelled(part=None) if path.suffix == ".parquet" else pd.read_csv(path)


def provenance(page: str) -> dict[str, Any] | None:
    """Of the record of a page, whose files belong together; None: there is none.

    Raises:
        ValueError: the files do not belong together.
    """
    folder = paths.recorded(page, PROFILE)
    if not folder.is_dir():
        return None
    if found := faults(folder):
        raise ValueError(
            f"{'; '.join(found)}. To restore the record: git checkout -- {folder.relative_to(paths.root())}"
        )
    return json.loads((folder / "provenance.json").read_text(encoding="utf-8"))


def all_provenance() -> list[dict[str, Any]]:
    """Of every record of a page of the book."""
    return [about for page in paths.pages() if (about := provenance(page))]


def digest(table: Path) -> str:
    """SHA-256 of a table; of CSV, whatever ends its lines: git may change that."""
    content = table.read_bytes()
    return hashlib.sha256(content if table.suffix == ".parquet" else content.replace(b"\r\n", b"\n")).hexdigest()


def tables_in(folder: Path) -> list[Path]:
    """The tables in a folder."""
    return sorted(path for path in folder.glob("*") if path.suffix in (".csv", ".parquet"))


def faults(folder: Path) -> list[str]:
    """What does not belong together in a folder of results: tables that are not those of its ``provenance.json``."""
    if not (folder / "provenance.json").is_file():
        return ["there is no provenance.json, so the run did not finish"]
    tables = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))["tables"]
    saved = {table: about["sha256"] for table, about in tables.items()}
    there = {path.stem: digest(path) for path in tables_in(folder)}
    wrong = sorted(table for table in saved | there if saved.get(table) != there.get(table))
    return [f"the table {table} is not the one that the run saved" for table in wrong]


def copy(source: Path, target: Path) -> None:
    """Copy the tables of a run with their provenance, and nothing else that is in the folder."""
    target.mkdir(parents=True)
    for path in [*tables_in(source), source / "provenance.json"]:
        shutil.copy(path, target)


def promote(page: str) -> None:
    """Put what ``make record`` has measured in place of the record of a page.

    Raises:
        ValueError: no such run has finished.
    """
    source, target = paths.results(page, RECORDING), paths.recorded(page, PROFILE)
    if found := faults(source):
        raise ValueError(f"{page} has no run in {source} to record: {'; '.join(found)}. First: make record NAME={page}")
    new, old = json.loads((source / "provenance.json").read_text(encoding="utf-8")), provenance(page)
    shutil.rmtree(target, ignore_errors=True)
    copy(source, target)
    if old and TAKEN in new["again"].values():
        about = {key: new[key] for key in ("date", "commit", "cpu")}
        known = {of["sha256"]: of for of in old["tables"].values()}
        tables = {name: known.get(of["sha256"], of | about) for name, of in new["tables"].items()}
        both = old | {"parameters": new["parameters"], "tables": tables}
        paths.write(target / "provenance.json", json.dumps(both, indent=2) + "\n")


# The same numbers again


class Rounding(NamedTuple):
    """How far the numbers of a build and of the record may differ, as shares.

    Attributes:
        near: two numbers agree within this share of the range of their metric's values on the same data and network.
        few: of all numbers of a table that may differ by more; of few numbers as many more as chance may add.
        shift: of that range, by which the mean of a metric and explainer may move over at least `LEAST` rows.
    """

    near: float
    few: float
    shift: float


FLOAT32 = Rounding(near=0.05, few=0.005, shift=0.005)
"""Of 170 000 hits of time series and texts none differed between an AMD EPYC and an Intel Xeon with AVX-512."""
BFLOAT16 = Rounding(near=0.05, few=0.03, shift=0.02)
"""Where either may have evaluated in bfloat16, which has 8 bits: that turned 0.2 % of the hits of the networks of time
series and 1.8 % of those of EfficientNet-Lite0."""


@dataclass(frozen=True)
class Agreement:
    """How far rows that were measured again agree with the recorded ones.

    Attributes:
        inputs: so many inputs were measured again, or rows of a table that is not of inputs,
        of: of so many.
        values: numbers that were compared.
        differing: those that are not near each other, or that only one has, a row each.
        shift: the largest distance of the means of one metric, explainer and level over at least `LEAST` inputs, as a
            share of the range, the one number that differs most left out; 0: no rows have so many inputs.
        patched: the recorded table with the numbers that differ in their places.
        rounding: how far they may differ.
    """

    inputs: int
    of: int
    values: int
    differing: pd.DataFrame
    shift: float
    patched: pd.DataFrame | Scores
    rounding: Rounding

    @property
    def holds(self) -> bool:
        """Whether what differs is no more than rounding makes."""
        expected = self.rounding.few * self.values
        few = len(self.differing) <= expected + 4 * math.sqrt(expected) + 2  # of few numbers chance decides
        return bool(self.values > 0 and few and self.shift <= self.rounding.shift)

    @property
    def said(self) -> str:
        """What differs, for an error message."""
        if not self.values:
            return "no number could be measured again"
        of = self.differing.get("metric", self.differing.get("column", pd.Series(dtype=str))).unique()
        of = [*of[:5], f"{len(of) - 5} more"] if len(of) > 5 else [*of]
        named = f", of {', '.join(of)}" if of else ""
        means = f"; means moved by up to {self.shift:.1%} of their range" if self.shift else ""
        return f"{len(self.differing):,} of {self.values:,} numbers are others when measured again{named}{means}"

    def __str__(self) -> str:
        what = "inputs" if isinstance(self.patched, Scores) else "rows"
        return f"{self.inputs:,} of {self.of:,} {what}, {len(self.differing)} of {self.values:,} numbers differ"


def compared(again: pd.DataFrame | Scores, kept: pd.DataFrame | Scores, rounding: Rounding) -> Agreement:
    """Compare rows that were measured again with the recorded table.

    Rows of scores are known by their labels, input and size, of which only sizes that both have count; those of other
    tables by the columns that hold no fractions, and where these are the same, by the first that do.

    Args:
        again: rows of the recorded table, measured again.
        kept: the recorded table.
        rounding: how far they may differ.
    """
    now, then, keys = _scores(again, kept) if isinstance(kept, Scores) else _frames(again, kept)
    now, then = (of.assign(**of[keys].astype(object).fillna("").astype(str)) for of in (now, then))
    both = now.merge(then, "left", keys)
    known = both["at"].notna()
    both = both[known | (known.groupby([both[key] for key in keys if key != "size"]).transform("sum") == 0)]
    new, old, known = both[AGAIN], both[KEPT], both["at"].notna()
    span = both["span"].where(both["span"] > 0, old.abs()).replace(0, 1)
    same = ((new - old).abs() <= rounding.near * span) | (new == old) | (new.isna() & old.isna() & known)
    far = both[~same]
    patched = _patched(kept, far[far["at"].notna()])
    far = far.drop(columns=["at", "span"]).loc[:, (far != "").any()]
    return Agreement(_inputs(again), _inputs(kept), len(both), far, _shift(both, (new - old) / span), patched, rounding)


def _scores(again: Scores, kept: Scores) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """One row a number of both, of `kept` of the same images, with its place and the range of its metric's numbers."""
    images = torch.tensor(sorted({image for block in again for image in block.images.tolist()}))
    ends, rows, there = [], [], []
    for block in kept:
        values, own = block.values.double().numpy(), torch.isin(block.images, images)
        ends += [{**block.labels, "value": end} for end in pd.Series(values.flatten()).agg(["min", "max"])]
        pairs = None if block.pairs is None else block.pairs[own]
        rows.append(replace(block, images=block.images[own], pairs=pairs, values=block.values[own], errors=None))
        there.append(own.repeat_interleave(values.shape[1]))
    scale = ["metric", "dataset", "network"]
    spans = pd.DataFrame(ends).groupby(scale)["value"].agg(lambda of: of.max() - of.min()).rename("span")
    keys = [*LABELS, "image", "pair", "size"]
    now, then = (Scores(of).frame().round({"size": 6})[[*keys, "value"]] for of in (again, rows))
    then = then.assign(at=torch.cat(there).nonzero()[:, 0].numpy()).join(spans, on=scale)
    return now.rename(columns={"value": AGAIN}), then.rename(columns={"value": KEPT}), keys


def _frames(again: pd.DataFrame, kept: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """The same of other tables, whose places are rows."""
    again = pd.read_csv(io.StringIO(again.to_csv(index=False)))  # as the file of the other gives it
    numbers = [name for name in kept if pd.api.types.is_float_dtype(kept[name]) and name in again]
    about = [name for name in kept if name in again and name not in numbers]
    while about and numbers and kept[about].duplicated().any():
        about.append(numbers.pop(0))
    finite = kept[numbers].replace([math.inf, -math.inf], math.nan)
    spans = (finite.max() - finite.min()).rename("span")
    if not about:
        again, kept, about = again.assign(row=range(len(again))), kept.assign(row=range(len(kept))), ["row"]
    then = kept.rename_axis("at").reset_index().melt(["at", *about], numbers, "column", KEPT).join(spans, on="column")
    return again.melt(about, numbers, "column", AGAIN), then, [*about, "column"]


def _shift(both: pd.DataFrame, moved: pd.Series) -> float:
    """How far the mean of a metric, explainer and level moved, at most: of at least `LEAST` inputs, without one."""
    found = [0.0]
    if {*LABELS} <= {*both}:
        for _, own in both.assign(moved=moved).dropna(subset="moved").groupby([*LABELS]):
            if len(own[["image", "pair"]].drop_duplicates()) >= LEAST:
                # One answer that rounding turns is counted among those that differ.
                rest = own["moved"].drop(own["moved"].abs().idxmax())
                found.append(abs(float(rest.mean())))
    return max(found)


def _patched(kept: pd.DataFrame | Scores, far: pd.DataFrame) -> pd.DataFrame | Scores:
    """The recorded table with other numbers in some places."""
    if not isinstance(kept, Scores):
        patched = kept.copy()
        for _, row in far.iterrows():
            patched.loc[row["at"], row["column"]] = row[AGAIN]
        return patched
    numbers = torch.cat([block.values.flatten().double() for block in kept])
    numbers[far["at"].astype(int).tolist()] = torch.tensor(far[AGAIN].tolist(), dtype=torch.float64)
    pieces = numbers.split([block.values.numel() for block in kept])
    return Scores(
        replace(b, values=of.view_as(b.values).to(b.values.dtype)) for b, of in zip(kept, pieces, strict=True)
    )


def _inputs(table: pd.DataFrame | Scores) -> int:
    """So many inputs a table has; rows, where it is not of inputs."""
    if isinstance(table, Scores):
        return len({(block.labels["dataset"], image) for block in table for image in block.images.tolist()})
    return len(table)


def differing(page: str) -> Path:
    """The folder of a page's rows that a build measured otherwise, a table for each that has any."""
    return paths.build() / "again" / page / "differing"


def first_and_one_more(inputs: int, rotation: int, count: int = 2) -> Sequence[int]:
    """The places of the inputs that a build measures again: the first ones, and a block that rotates.

    Args:
        inputs: so many there are.
        rotation: any number, such as one of the commit.
        count: of either.

    >>> first_and_one_more(12, 1, count=3)
    [0, 1, 2, 6, 7, 8]
    """
    more = max(1, -(-(inputs - count) // count))
    start = count * (1 + rotation % more)
    return [*range(min(count, inputs)), *range(start, min(start + count, inputs))]


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m faithstudy.records", description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=["promote"], help="record what make record has measured")
    parser.add_argument("pages", nargs="+")
    options = parser.parse_args(arguments)
    try:
        for page in options.pages:
            promote(page)
            print(f"{page}: done")
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
