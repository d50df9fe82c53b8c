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

import numpy as np
import pandas as pd
import torch

from faithlab.scores import Block, Label, Scores
from faithstudy import paths
from faithstudy.paths import PROFILE, RECORDING

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
    folder = paths.recorded(page, PROFILE)
    for name in (f"{table}.parquet", f"{table}.csv"):
        if (folder / name).is_file():
            about = provenance(page)
            return Record(load(folder / name, about["tables"][table]["sha256"]), about)
    return None


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
        raise ValueError(f"{folder}: {'; '.join(found)}. Restore it with git, or record the run again.")
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
    there = {path.stem: path for path in tables_in(folder)}
    found = [f"the table {table} is missing" for table in tables if table not in there]
    for table, path in there.items():
        if table not in tables:
            found.append(f"the table {table} is not of this run")
        elif tables[table]["sha256"] != digest(path):
            found.append(f"the table {table} is not the one that the run saved")
    return found


def copy(source: Path, target: Path) -> Path:
    """Copy the tables of a run with their provenance, and nothing else that is in the folder."""
    target.mkdir(parents=True)
    for path in [*tables_in(source), source / "provenance.json"]:
        shutil.copy(path, target)
    return target


def promote(page: str) -> Path:
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
    if old and (taken := {table for table, said in new["again"].items() if said == TAKEN}):
        about = {key: new[key] for key in ("date", "commit", "cpu")}
        tables = {name: of if name in taken else of | about for name, of in new["tables"].items()}
        paths.write(target / "provenance.json", json.dumps(old | {"tables": tables}, indent=2) + "\n")
    return target


def certify(page: str) -> None:
    """Note in the record of a page by what code a build has measured its first inputs again, and found them equal."""
    path = paths.recorded(page, PROFILE) / "provenance.json"
    built, kept = (json.loads(p.read_text("utf-8")) for p in (paths.results(page, PROFILE) / path.name, path))
    for table, about in kept["tables"].items():
        about |= {"rests_on": built["tables"].get(table, {}).get("rests_on", {})}
    paths.write(path, json.dumps(kept | {"code": built["code"]}, indent=2) + "\n")


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
        values: numbers that both have.
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
        return self.values > 0 and few and self.shift <= self.rounding.shift

    def __str__(self) -> str:
        return f"{self.inputs:,} of {self.of:,}, {len(self.differing)} of {self.values:,} numbers differ"


def compared(again: pd.DataFrame | Scores, kept: pd.DataFrame | Scores, rounding: Rounding) -> Agreement:
    """Compare rows that were measured again with the recorded table.

    Args:
        again: rows of the recorded table, measured again.
        kept: the recorded table.
        rounding: how far they may differ.
    """
    if isinstance(kept, Scores):
        return _scores(again, kept, rounding)
    return _frames(again, kept, rounding)


def _scores(again: Scores, kept: Scores, rounding: Rounding) -> Agreement:
    known, spans = {block.key: block for block in kept}, _spans(kept)
    values, shift, differing, patched = 0, 0.0, [], {}
    for block in again:
        other = known.get(block.key)
        place = {} if other is None else {row: at for at, row in enumerate(_rows(other))}
        pairs = [(at, place[row]) for at, row in enumerate(_rows(block)) if row in place]
        absent = [at for at, row in enumerate(_rows(block)) if row not in place]
        at_sizes = None if other is None else _shared(block, other)
        if at_sizes is None:
            pairs, absent = [], range(len(block.images))
        differing += [{**block.labels, "image": int(block.images[at]), "measured again": None} for at in absent]
        values += len(absent)
        if not pairs:
            continue
        own, others = (torch.tensor(side) for side in zip(*pairs, strict=True))
        own_sizes, other_sizes = (torch.tensor(of) for of in zip(*at_sizes, strict=True))
        now, then = block.values[own][:, own_sizes].double(), other.values[others][:, other_sizes].double()
        span = spans[_scale(block)]
        same = ((now - then).abs() <= rounding.near * span) | (now.isnan() & then.isnan())
        values += same.numel()
        for row, size in (~same).nonzero().tolist():
            about = {"image": int(block.images[own[row]]), "size": (block.sizes or [None])[own_sizes[size]]}
            numbers = {"recorded": float(then[row, size]), "measured again": float(now[row, size])}
            differing.append({**block.labels, **about, **numbers})
        if len(pairs) >= LEAST:
            moved = (now - then).nan_to_num(0).flatten()
            # One answer that rounding turns is counted above. Of few it would move the mean by more than rounding does.
            one, count = moved[moved.abs().argmax()], max(1, int((~(now - then).isnan()).sum()))
            shift = max(shift, float((moved.sum() - one).abs()) / count / span)
        put = other.values.clone()
        put[others[:, None], other_sizes[None]] = torch.where(same, then, now).to(put.dtype)
        patched[block.key] = replace(other, values=put)
    inputs = (len({(b.labels["dataset"], image) for b in of for image in b.images.tolist()}) for of in (again, kept))
    whole = Scores(patched.get(block.key, block) for block in kept)
    return Agreement(*inputs, values, pd.DataFrame(differing), shift, whole, rounding)


def _scale(block: Block) -> tuple[Label, ...]:
    """Rows whose numbers have one range: of a metric on some data and a network, whatever explains."""
    return tuple(block.labels.get(key) for key in ("metric", "dataset", "network"))


def _spans(kept: Scores) -> dict[tuple[Label, ...], float]:
    """The range of the numbers of each `_scale`; 1 where they are all one."""
    ends: dict[tuple[Label, ...], tuple[float, float]] = {}
    for block in kept:
        low, high = ends.get(_scale(block), (torch.inf, -torch.inf))
        values = block.values.double()
        least, most = float(values.nan_to_num(torch.inf).min()), float(values.nan_to_num(-torch.inf).max())
        ends[_scale(block)] = min(low, least), max(high, most)
    return {scale: high - low if 0 < high - low < torch.inf else 1.0 for scale, (low, high) in ends.items()}


def _shared(block: Block, other: Block) -> list[tuple[int, int]] | None:
    """Where the sizes stand that both were asked at, in each; None: they share none."""
    at = {round(size, 6): place for place, size in enumerate(other.sizes or (0,))}
    both = [(k, at[round(size, 6)]) for k, size in enumerate(block.sizes or (0,)) if round(size, 6) in at]
    return both if (block.sizes is None) == (other.sizes is None) and both else None


def _rows(block: Block) -> list[tuple[int, int | None]]:
    pairs = [None] * len(block.images) if block.pairs is None else block.pairs.tolist()
    return list(zip(block.images.tolist(), pairs, strict=True))


def _frames(again: pd.DataFrame, kept: pd.DataFrame, rounding: Rounding) -> Agreement:
    """The same of other tables, whose rows are known by the columns that hold no fractions.

    Where these are the same, the first that hold fractions count as well.
    """
    again = pd.read_csv(io.StringIO(again.to_csv(index=False)))  # as the file of the other gives it
    numbers = [name for name in kept if pd.api.types.is_float_dtype(kept[name]) and name in again]
    about = [name for name in kept if name in again and name not in numbers]
    while about and numbers and kept[about].duplicated().any():
        about.append(numbers.pop(0))
    words = [of[about].astype(object).fillna("").astype(str) for of in (again, kept)]
    texts = [of.agg("|".join, axis=1) if about else of.index.astype(str) for of in words]
    place, patched, differing, values = dict(zip(texts[1], kept.index, strict=True)), kept.copy(), [], 0
    for key, (_, row) in zip(texts[0], again.iterrows(), strict=True):
        for name in numbers:
            values += 1
            now, then = float(row[name]), float(kept.loc[place[key], name]) if key in place else np.nan
            span = float(np.ptp(kept[name].replace([np.inf, -np.inf], np.nan).dropna())) if len(kept) else 0.0
            near = rounding.near * (span if span > 0 else abs(then) or 1.0)
            if not (now == then or abs(now - then) <= near or (now != now and then != then and key in place)):
                differing.append({**row[about], "column": name, "recorded": then, "measured again": now})
            if key in place:
                patched.loc[place[key], name] = now
    return Agreement(len(again), len(kept), values, pd.DataFrame(differing), 0.0, patched, rounding)


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m faithstudy.records", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True, dest="command")
    commands.add_parser("promote", help="record what make record has measured").add_argument("pages", nargs="+")
    commands.add_parser("certify", help="note the code by which the last build agrees").add_argument("pages", nargs="+")
    commands.add_parser("differing", help="show what a build measured otherwise").add_argument("pages", nargs="+")
    options = parser.parse_args(arguments)
    try:
        for page in options.pages:
            if options.command == "differing":
                for path in sorted(differing(page).glob("*.csv")):
                    print(f"{page}, {path.stem}\n{pd.read_csv(path).to_string()}")
            else:
                {"promote": promote, "certify": certify}[options.command](page)
                print(f"{page}: done")
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


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


if __name__ == "__main__":
    sys.exit(main())
