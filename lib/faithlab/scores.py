"""The long table: every score that the study measures, one number (or one curve over sizes) per row.

All parts save their scores in one schema, `COLUMNS`, so that every number of the book can be computed again from saved
tables and compared across papers. In memory the rows of one metric, one explainer and so on lie together as a tensor
(a `Block`); a file is one Parquet table of all blocks.

A label that does not apply is None (null in the file): an original explanation has no `variant`, a metric without
random draws has no `draw`.
"""

import itertools
import math
import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import torch
from torch import Tensor

COLUMNS = {
    "part": "the notebook that measured the row, such as f-fidelity/images",
    "dataset": "the data set and its split; an image is known by data set and index",
    "network": "the network that was asked, as the study names it",
    "training_seed": "the seed it was trained with; every seed is a network of its own",
    "image": "the image's index in the split of the data set (text: the sentence's, series: the series')",
    "pair": "MeGe and ReCo: the model whose explanation is compared with that of the model that had not seen the image",
    "explainer": "the explainer, as the library registers it",
    "variant": "what was done to the explanation or its network, such as shuffled; none: nothing",
    "level": "how much of it, such as the share of the scores that was shuffled",
    "noise_seed": "the seed of that noise",
    "metric": "the metric, as the library registers it",
    "reference": "what stands in for a removed feature",
    "direction": "which end of the order goes first: MoRF (most relevant) or LeRF (least relevant)",
    "draw": "which random draw of the metric this is; none: nothing was drawn, or the value is a mean over draws",
    "sizes": "sizes (shares of the features) at which `value` holds one number each; none: it holds one number",
    "value": "the scores, as a list, 32-bit; missing (NaN) where a score is undefined; none where `hits` has them",
    "hits": "scores that are 0 or 1, as a list of 8-bit integers: 1 where the network answers rightly",
    "error": "Monte-Carlo standard errors of `value`, where it is a mean over draws; none: unknown or nothing random",
}
"""The dictionary of columns. `value` and `hits` are one column in memory; a file keeps them apart by their type."""

TEXTS = ("part", "dataset", "network", "explainer", "variant", "metric", "reference", "direction")
INTEGERS = ("training_seed", "noise_seed", "draw")
LABELS = (*TEXTS, *INTEGERS, "level")
REQUIRED = ("dataset", "network", "metric")

Label = str | int | float | None


@dataclass(frozen=True)
class Block:
    """Rows that share all labels.

    Attributes:
        labels: column -> value, without those that do not apply.
        images: [B] int64.
        pairs: [B] int64, or None.
        values: [B, K], uint8 hits or float32 scores.
        sizes: [K], or None where K is 1 and there is no size.
        errors: [B, K] float32, or None.
    """

    labels: Mapping[str, Label]
    images: Tensor
    pairs: Tensor | None
    values: Tensor
    sizes: tuple[float, ...] | None
    errors: Tensor | None

    @property
    def key(self) -> tuple[Label, ...]:
        """The labels in the order of `LABELS`."""
        return tuple(self.labels.get(name) for name in LABELS)

    @property
    def hits(self) -> bool:
        """Whether the values are 0 or 1 by their type."""
        return self.values.dtype == torch.uint8


class Scores:
    """A long table. Make one with `Scores.of`, add tables with `+` or `Scores.concat`.

    Args:
        blocks: rows; those with equal labels are joined.

    Raises:
        ValueError: a row is there twice, or rows with equal labels have other sizes, types or kinds of pairs.
    """

    def __init__(self, blocks: Iterable[Block]):
        self.blocks = tuple(map(_join, _alike(blocks)))
        self._places: dict[str, dict[Label, set[int]]] = {}

    @classmethod
    def of(
        cls,
        values: Tensor,
        *,
        images: Tensor | Sequence[int],
        sizes: Tensor | Sequence[float] | None = None,
        pairs: Tensor | Sequence[int] | None = None,
        errors: Tensor | None = None,
        **labels: Label,
    ) -> "Scores":
        """The table of one tensor of scores.

        Args:
            values: [B], or [B, K] with `sizes`. Bool or uint8: hits; floating: scores, NaN where undefined.
            images: [B] the images' indices in their split.
            sizes: [K], increasing.
            pairs: [B] integers, where an image has several rows (MeGe, ReCo).
            errors: of the shape of `values`.
            **labels: `dataset`, `network` and `metric` are needed; the others of `LABELS` where they apply.

        Raises:
            ValueError: a label that is no column, a needed one that is missing, shapes that do not fit, an infinite
                score, an image that is there twice.
        """
        unknown = sorted(set(labels) - set(LABELS))
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: no such label of the long table; there are {', '.join(LABELS)}")
        labels = {name: _label(name, labels[name]) for name in LABELS if labels.get(name) is not None}
        needed = [name for name in REQUIRED if name not in labels]
        if needed:
            raise ValueError(f"every row needs {', '.join(REQUIRED)}, but {', '.join(needed)} is missing")
        values = torch.as_tensor(values).detach().cpu()
        if sizes is None and values.ndim == 1:
            values = values[:, None]
        else:
            at = torch.as_tensor(sizes if sizes is not None else [], dtype=torch.float64).cpu()
            if at.ndim != 1 or values.ndim != 2 or values.shape[1] != len(at):
                raise ValueError(
                    "expected values [B], or [B, K] with K sizes, but got values of shape "
                    f"{tuple(values.shape)} and {'no sizes' if sizes is None else f'{at.numel()} sizes'}"
                )
            sizes = tuple(at.tolist())
        if values.dtype in (torch.bool, torch.uint8):
            values = values.to(torch.uint8)
        elif values.is_floating_point():
            values = values.float()
        else:
            raise ValueError(f"expected bool or uint8 hits, or floating scores, but got {values.dtype}")
        images, pairs = (
            _identities(name, given, len(values)) for name, given in (("images", images), ("pairs", pairs))
        )
        if images is None:
            raise ValueError("expected the images' indices in their split, but got none")
        if errors is not None:
            errors = torch.as_tensor(errors).detach().cpu().float().reshape(len(errors), -1)
            if errors.shape != values.shape:
                raise ValueError(f"expected errors of shape {tuple(values.shape)}, but got {tuple(errors.shape)}")
        return cls([_sound(Block(labels, images, pairs, values, sizes, errors))])

    @classmethod
    def concat(cls, tables: Iterable["Scores"]) -> "Scores":
        """All rows of several tables; errors as in `Scores`."""
        groups = _alike(block for table in tables for block in table.blocks)
        # What one table has alone was looked at when that was made.
        return cls._known(group[0] if len(group) == 1 else _join(group) for group in groups)

    @classmethod
    def _known(cls, blocks: Iterable[Block]) -> "Scores":
        """The table of blocks that are known to fit."""
        table = cls.__new__(cls)
        table.blocks, table._places = tuple(blocks), {}
        return table

    def __add__(self, other: "Scores") -> "Scores":
        return Scores.concat([self, other])

    def __len__(self) -> int:
        return sum(len(block.images) for block in self.blocks)

    def __iter__(self) -> Iterator[Block]:
        return iter(self.blocks)

    def __repr__(self) -> str:
        counts = [f"{len(found)} {name}{'s' * (len(found) != 1)}" for name in LABELS if (found := self.labels(name))]
        return f"Scores({len(self)} rows: {', '.join(counts)}; {self.missing} missing)"

    @property
    def missing(self) -> int:
        """Number of values that are NaN."""
        return sum(int(block.values.isnan().sum()) for block in self.blocks if not block.hits)

    def labels(self, column: str) -> list[Label]:
        """The different values of a label, in order of appearance, without None.

        Raises:
            ValueError: no such label.
        """
        if column not in LABELS:
            raise ValueError(f"{column}: no such label of the long table; there are {', '.join(LABELS)}")
        return list(dict.fromkeys(b.labels[column] for b in self.blocks if column in b.labels))

    def _having(self, name: str) -> dict[Label, set[int]]:
        """The places of the blocks by their value of a label, looked up once."""
        if name not in self._places:
            places = self._places[name] = {}
            for at, block in enumerate(self.blocks):
                places.setdefault(block.labels.get(name), set()).add(at)
        return self._places[name]

    def where(self, **labels: Label | Sequence[Label]) -> "Scores":
        """The rows with these labels; a list means any of them, None that the label does not apply.

        Raises:
            ValueError: no such label, a value that no row has, or a combination that no row has.
        """
        wanted = {name: tuple(w) if isinstance(w, list | tuple | set) else (w,) for name, w in labels.items()}
        if "level" in wanted:
            wanted["level"] = tuple(None if v is None else _level(v) for v in wanted["level"])
        places = [[self._having(name).get(v, set()) for v in values] for name, values in wanted.items()]
        having = [of[0] if len(of) == 1 else set().union(*of) for of in places]
        found = [self.blocks[at] for at in sorted(set.intersection(*having))] if having else self.blocks
        for name, values in wanted.items():
            if found and len(values) == 1 and name in LABELS:
                continue  # it is there
            there = self.labels(name)
            absent = [v for v in values if v is not None and v not in there]
            if absent:
                raise ValueError(
                    f"no row has {name} {', '.join(map(repr, absent))}; "
                    f"there are {', '.join(map(repr, there)) or 'none'}"
                )
        if not found:
            raise ValueError(f"no row has all of {', '.join(f'{name}={value!r}' for name, value in labels.items())}")
        return Scores._known(found)

    def labelled(self, **labels: Label) -> "Scores":
        """The same rows with other labels; None: the label does not apply.

        Raises:
            ValueError: no such label, or a value that it cannot have.
        """
        if unknown := sorted(set(labels) - set(LABELS)):
            raise ValueError(f"{', '.join(unknown)}: no such label of the long table; there are {', '.join(LABELS)}")
        if lacking := [name for name in REQUIRED if name in labels and labels[name] is None]:
            raise ValueError(f"every row needs {', '.join(lacking)}")
        new = {name: _label(name, value) for name, value in labels.items() if value is not None}
        kept = [{n: v for n, v in b.labels.items() if n not in labels} for b in self.blocks]
        return Scores(replace(b, labels=own | new) for b, own in zip(self.blocks, kept, strict=True))

    def arrow(self) -> pa.Table:
        """The table in the columns of `COLUMNS`."""
        pieces = [_arrow(block) for block in self.blocks]
        return (
            pa.concat_tables(pieces, promote_options="none").unify_dictionaries() if pieces else _SCHEMA.empty_table()
        )

    def frame(self) -> pd.DataFrame:
        """One row per number: the labels, image, pair, `size` (NaN: none), `value` and `error`, for a reader."""
        frames = []
        for b in self.blocks:
            rows, K = b.values.shape
            frame = pd.DataFrame({"image": b.images.repeat_interleave(K).numpy()})
            frame["pair"] = pd.NA if b.pairs is None else b.pairs.repeat_interleave(K).numpy()
            frame["size"] = np.tile(b.sizes, rows) if b.sizes else np.nan
            frame["value"] = b.values.flatten().double().numpy()
            frame["error"] = np.nan if b.errors is None else b.errors.flatten().double().numpy()
            frames.append(frame.assign(**{name: b.labels.get(name) for name in LABELS}))
        order = [*LABELS, "image", "pair", "size", "value", "error"]
        return pd.concat(frames, ignore_index=True)[order] if frames else pd.DataFrame(columns=order)

    def save(self, path: str | PathLike) -> None:
        """Write one Parquet file. Equal tables give equal bytes with one version of pyarrow."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        # The most repetitive columns and 0/1 hits shrink to bits by dictionary and run length; zstd does the rest.
        pa.parquet.write_table(self.arrow(), partial, compression="zstd", compression_level=9)
        partial.replace(path)

    @classmethod
    def load(cls, path: str | PathLike) -> "Scores":
        """Read what `save` wrote, or any Parquet file in the columns of `COLUMNS`, in any order of rows.

        Raises:
            ValueError: columns are missing.
            FileNotFoundError: no such file.
        """
        table = pa.parquet.read_table(path)
        absent = [name for name in COLUMNS if name not in table.column_names]
        if absent:
            raise ValueError(f"{path}: expected the columns of the long table, but {', '.join(absent)} is missing")
        return cls(_blocks(table.select(list(COLUMNS)).cast(_SCHEMA).combine_chunks()))


_TEXT = pa.dictionary(pa.int32(), pa.string())
_TYPES = dict.fromkeys(TEXTS, _TEXT) | dict.fromkeys((*INTEGERS, "image", "pair"), pa.int32())
# Levels and sizes are chosen by equality: as 64-bit numbers they come back as they went.
_TYPES |= {"level": pa.float64(), "sizes": pa.list_(pa.float64()), "hits": pa.list_(pa.uint8())}
_TYPES |= {"value": pa.list_(pa.float32()), "error": pa.list_(pa.float32())}
_SCHEMA = pa.schema([(name, _TYPES[name]) for name in COLUMNS])


def _label(name: str, value: Any) -> Label:
    if name in TEXTS:
        if not isinstance(value, str) or not value:
            raise ValueError(f"{name}: expected a text, but got {value!r}")
        return value
    kind, fits = "a finite number", isinstance(value, numbers.Real) and not isinstance(value, bool)
    fits = fits and math.isfinite(value)
    if name in INTEGERS:
        kind, fits = "an integer of 32 bits", fits and int(value) == value and abs(value) < 2**31
    if not fits:
        raise ValueError(f"{name}: expected {kind}, but got {value!r}")
    return int(value) if name in INTEGERS else _level(value)


def _level(value: float) -> float:
    """A level that equals what a reader types: 3 * 0.2 is 0.6."""
    return round(float(value), 9)


def _identities(name: str, given: Tensor | Sequence[int] | None, count: int) -> Tensor | None:
    if given is None:
        return None
    given = torch.as_tensor(given).cpu()
    if given.shape != (count,) or given.is_floating_point() or given.dtype == torch.bool:
        raise ValueError(
            f"expected {name} as {count} integers, one a row, but got shape {tuple(given.shape)} of {given.dtype}"
        )
    if count and int(given.abs().max()) >= 2**31:
        raise ValueError(f"expected {name} as integers of 32 bits, but got {int(given.abs().max())}")
    return given.long()


def _sound(block: Block) -> Block:
    """A block as it is; ValueError where its numbers or sizes cannot be."""
    at = block.sizes or ()
    if not (all(map(math.isfinite, at)) and all(low < high for low, high in itertools.pairwise(at))):
        raise ValueError(f"expected increasing finite sizes, but got {list(at)}")
    if block.values.shape[1] != (1 if block.sizes is None else len(at)):
        raise ValueError(f"expected a score for each of {len(at)} sizes, but got {block.values.shape[1]}")
    if block.hits and bool((block.values > 1).any()):
        raise ValueError("hits are 0 or 1 (bool or uint8); give other scores as floating numbers")
    if not block.hits and bool(block.values.isinf().any()):
        raise ValueError(f"{int(block.values.isinf().sum())} scores are infinite; an undefined score is NaN")
    return block


def _named(labels: Mapping[str, Label]) -> str:
    return ", ".join(f"{name} {value}" for name, value in labels.items())


def _alike(blocks: Iterable[Block]) -> Iterable[list[Block]]:
    """Blocks by their labels."""
    groups: dict[tuple[Label, ...], list[Block]] = {}
    for block in blocks:
        groups.setdefault(block.key, []).append(block)
    return groups.values()


def _join(group: list[Block]) -> Block:
    """One block of those that share all labels."""
    first = group[0]
    for other in group[1:]:
        if other.sizes != first.sizes:
            raise ValueError(f"rows of {_named(first.labels)} have different sizes: {first.sizes} and {other.sizes}")
        if (other.pairs is None) != (first.pairs is None) or other.hits != first.hits:
            raise ValueError(f"rows of {_named(first.labels)} are hits and scores, or with pairs and without")
    if len(group) > 1:
        errors = [b.errors if b.errors is not None else torch.full(b.values.shape, torch.nan) for b in group]
        first = Block(
            first.labels,
            torch.cat([b.images for b in group]),
            None if first.pairs is None else torch.cat([b.pairs for b in group]),
            torch.cat([b.values for b in group]),
            first.sizes,
            None if all(b.errors is None for b in group) else torch.cat(errors),
        )
    if bool((first.images[1:] > first.images[:-1]).all()):
        return first  # in order, as most are: none is there twice
    if first.pairs is None:
        _, counts = first.images.unique(return_counts=True)
    else:
        _, counts = torch.stack([first.images, first.pairs], 1).unique(dim=0, return_counts=True)
    if bool((counts > 1).any()):
        raise ValueError(
            f"{int((counts > 1).sum())} rows of {_named(first.labels)} are there more than once; "
            "tell them apart by draw, noise_seed or pairs, or leave one out"
        )
    return first


def _lists(values: Tensor, kind: pa.DataType) -> pa.Array:
    """A tensor [B, K] as B lists."""
    B, K = values.shape
    return pa.ListArray.from_arrays(np.arange(B + 1, dtype=np.int32) * K, pa.array(values.flatten().numpy(), kind))


def _arrow(block: Block) -> pa.Table:
    rows = len(block.images)

    def constant(name: str) -> pa.Array:
        kind, value = _TYPES[name], block.labels.get(name)
        if value is None:
            return pa.nulls(rows, kind)
        if kind is _TEXT:
            return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array([value], pa.string()))
        return pa.array(np.full(rows, value), kind)

    columns = {name: constant(name) for name in LABELS}
    columns["image"] = pa.array(block.images.numpy(), pa.int32())
    columns["pair"] = pa.nulls(rows, pa.int32()) if block.pairs is None else pa.array(block.pairs.numpy(), pa.int32())
    lists = {"sizes": None, "value": None, "hits": None, "error": block.errors}
    lists["hits" if block.hits else "value"] = block.values
    if block.sizes is not None:
        lists["sizes"] = torch.tensor(block.sizes, dtype=torch.float64).expand(rows, -1)
    for name, values in lists.items():
        kind = _TYPES[name]
        columns[name] = pa.nulls(rows, kind) if values is None else _lists(values, kind.value_type)
    return pa.table([columns[name] for name in COLUMNS], schema=_SCHEMA)


def _blocks(table: pa.Table) -> Iterator[Block]:
    """The blocks of an arrow table, whatever the order of its rows."""
    rows = len(table)
    columns = {name: table.column(name).combine_chunks() for name in COLUMNS}
    if columns["image"].null_count:
        raise ValueError(f"{columns['image'].null_count} rows have no image")
    there = {
        name: columns[name].is_valid().to_numpy(zero_copy_only=False) for name in ("pair", "value", "hits", "error")
    }
    wrong = there["value"] == there["hits"]
    if wrong.any():
        raise ValueError(f"{int(wrong.sum())} rows have both or neither of value and hits")
    code = np.zeros(rows, dtype=np.int64)
    parts = [_codes(columns[name]) for name in LABELS] + [there[name] for name in ("pair", "hits", "error")]
    for part in (*parts, _of_lists(columns["sizes"])):
        code = pd.factorize(code * (int(part.max(initial=0)) + 1) + part)[0].astype(np.int64)
    order = np.argsort(code, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(code[order])) + 1) if rows else []
    firsts = pa.array([int(places[0]) for places in groups], pa.int64())
    heads = zip(*(columns[name].take(firsts).to_pylist() for name in (*LABELS, "sizes")), strict=True)
    image = columns["image"].to_numpy().astype(np.int64)
    pair = columns["pair"].fill_null(0).to_numpy().astype(np.int64)
    lists = {name: _Lists(name, columns[name]) for name in ("value", "hits", "error")}
    for places, (*head, sizes) in zip(groups, heads, strict=True):
        labels = {name: _label(name, value) for name, value in zip(LABELS, head, strict=True) if value is not None}
        first = int(places[0])
        together = places[-1] - first == len(places) - 1  # stable order: then they are neighbours
        rows = slice(first, first + len(places)) if together else places
        yield _sound(
            Block(
                labels,
                torch.from_numpy(image[rows].copy()),
                torch.from_numpy(pair[rows].copy()) if there["pair"][first] else None,
                lists["hits" if there["hits"][first] else "value"].of(rows),
                None if sizes is None else tuple(sizes),
                lists["error"].of(rows) if there["error"][first] else None,
            )
        )


def _codes(column: pa.Array) -> np.ndarray:
    """A number for every value of a column, [rows], the same for equal ones."""
    if not pa.types.is_dictionary(column.type):
        return pd.factorize(column.to_pandas(), use_na_sentinel=False)[0]
    return column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64) + 1


def _of_lists(lists: pa.ListArray) -> np.ndarray:
    """A number for every list, [rows], the same for equal ones. Neighbours are mostly equal, and compared first."""
    flat, at = lists.flatten().to_numpy(zero_copy_only=False), 0
    lengths = lists.value_lengths().fill_null(-1).to_numpy(zero_copy_only=False)
    new = np.ones(len(lists), dtype=bool)
    changes = np.flatnonzero(lengths[1:] != lengths[:-1]) + 1
    few = len(changes) < len(lists) / 8  # else it is as quick to look at each
    for first, end in zip([0, *changes], [*changes, len(lists)], strict=True) if few else ():
        length = max(lengths[first], 0)
        own = flat[at : at + (end - first) * length].reshape(end - first, length)
        new[first + 1 : end] = (own[1:] != own[:-1]).any(1)
        at += own.size
    kinds = [None if own is None else own.tobytes() for own in lists.filter(pa.array(new)).to_pandas()]
    return pd.factorize(np.array(kinds, dtype=object), use_na_sentinel=False)[0][new.cumsum() - 1]


class _Lists:
    """A column of lists, of which those of some rows are asked for, which have one length."""

    def __init__(self, name: str, lists: pa.ListArray):
        self._name, self._flat = name, lists.flatten().to_numpy(zero_copy_only=False)
        self._lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        self._starts = self._lengths.cumsum() - self._lengths

    def of(self, rows: slice | np.ndarray) -> Tensor:
        """Those of rows, as a tensor [B, K]."""
        lengths, starts = self._lengths[rows], self._starts[rows]
        length = int(lengths[0])
        if (lengths != length).any():
            raise ValueError(
                f"{self._name}: lists of rows with the same sizes have lengths {lengths.min()} to {lengths.max()}"
            )
        if isinstance(rows, slice):
            found = self._flat[starts[0] : starts[0] + lengths.size * length].reshape(lengths.size, length).copy()
        else:
            found = self._flat[starts[:, None] + np.arange(length)]
        return torch.from_numpy(found)
