"""The long table: every score that the study measures, one number (or one curve over sizes) per row.

All parts save their scores in one schema, `COLUMNS`, so that every number of the book can be computed again from saved
tables and compared across papers. In memory the rows of one metric, one explainer and so on lie together as a tensor
(a `Block`); a file is one Parquet table of all blocks.

A label that does not apply is None (null in the file): an original explanation has no `variant`, a metric without
random draws has no `draw`.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from os import PathLike
from pathlib import Path

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

    @cached_property
    def key(self) -> tuple[Label, ...]:
        """The labels in the order of `LABELS`."""
        return tuple(self.labels.get(name) for name in LABELS)

    @property
    def hits(self) -> bool:
        """True where the values are correct predictions, 0 or 1 by their type."""
        return self.values.dtype == torch.uint8


class Scores:
    """A long table. Make one with `Scores.of`, add tables with `+` or `Scores.concat`.

    Args:
        blocks: rows; those with equal labels are joined.

    Raises:
        ValueError: a row occurs twice, or rows with equal labels have other sizes, types or kinds of pairs.
    """

    def __init__(self, blocks: Iterable[Block]):
        groups: dict[tuple[Label, ...], list[Block]] = {}
        for block in blocks:
            groups.setdefault(block.key, []).append(block)
        self.blocks = tuple(group[0] if len(group) == 1 else _join(group) for group in groups.values())
        self._places: dict[str, dict[Label, list[int]]] = {}

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
        """Make a table of one tensor of scores.

        Args:
            values: [B], or [B, K] with `sizes`. Bool or uint8: hits; floating: scores, NaN where undefined.
            images: [B] the images' indices in their split.
            sizes: [K], increasing.
            pairs: [B] integers, where an image has several rows (MeGe, ReCo).
            errors: of the shape of `values`.
            **labels: `dataset`, `network` and `metric` are needed; the others of `LABELS` where they apply.

        Raises:
            ValueError: labels that are no columns or of another type, shapes that do not fit, an infinite score, an
                image that occurs twice.

        >>> Scores.of(torch.tensor([0.5, 1.0]), images=[3, 8], dataset="digits", network="CNN", metric="SaCo")
        Scores(2 rows: 1 dataset, 1 network, 1 metric; 0 missing)
        """
        return cls([_block(labels, images, pairs, values, sizes, errors)])

    @classmethod
    def concat(cls, tables: Iterable["Scores"]) -> "Scores":
        """Join all rows of several tables; errors as in `Scores`."""
        return cls(block for table in tables for block in table.blocks)

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
        """Values of a label, each once, in order of appearance, without None.

        Raises:
            ValueError: no such label.
        """
        return [value for value in self._having(column) if value is not None]

    def _having(self, name: str) -> dict[Label, list[int]]:
        """The places of the blocks by their value of a label, looked up once."""
        if name not in self._places:
            places = self._places[name] = {}
            for at, block in enumerate(self.blocks):
                places.setdefault(block.labels.get(name), []).append(at)
        return self._places[name]

    def where(self, **labels: Label | Iterable[Label]) -> "Scores":
        """Select the rows with these labels.

        Args:
            **labels: one value, or several (a list, an array, a Series) that each may be; None: the label does not
                apply.

        Raises:
            ValueError: no such label, a value that no row has, or a combination that no row has.
        """
        found = None
        for name, given in labels.items():
            places = self._having(name)
            given = given.tolist() if hasattr(given, "tolist") else given
            given = list(given) if pd.api.types.is_list_like(given) else [given]
            given = [None if pd.isna(v) else _level(v) if name == "level" else v for v in given]
            absent = [v for v in given if v is not None and v not in places]
            if absent:
                raise ValueError(f"no row has {name} {str(absent)[1:-1]}; there are {str(self.labels(name))[1:-1]}")
            own = {at for v in given for at in places.get(v, ())}
            found = own if found is None else found & own
        return self if found is None else Scores(self.blocks[at] for at in sorted(found))

    def labelled(self, **labels: Label) -> "Scores":
        """Replace labels of all rows; None: the label does not apply.

        Raises:
            ValueError: no such label, or a value that it cannot have.
        """
        return Scores(replace(b, labels=_labels({**b.labels, **labels})) for b in self.blocks)

    def arrow(self) -> pa.Table:
        """Convert to the columns of `COLUMNS`."""
        if not self.blocks:
            return _SCHEMA.empty_table()
        counts = [len(b.images) for b in self.blocks]
        which = pa.array(np.repeat(np.arange(len(counts)), counts))
        columns = {name: pa.array([b.labels.get(name) for b in self.blocks], _PLAIN[name]) for name in LABELS}
        columns["sizes"] = pa.array([b.sizes for b in self.blocks], _TYPES["sizes"])
        columns = {n: (of.dictionary_encode() if n in TEXTS else of).take(which) for n, of in columns.items()}
        columns["image"] = pa.array(torch.cat([b.images for b in self.blocks]).numpy(), pa.int32())
        pairs = torch.cat([b.images if b.pairs is None else b.pairs for b in self.blocks]).numpy()
        alone = np.repeat([b.pairs is None for b in self.blocks], counts)
        columns["pair"] = pa.array(pairs, pa.int32(), mask=alone)
        columns["value"] = _lists([None if b.hits else b.values for b in self.blocks], counts, pa.float32())
        columns["hits"] = _lists([b.values if b.hits else None for b in self.blocks], counts, pa.uint8())
        columns["error"] = _lists([b.errors for b in self.blocks], counts, pa.float32())
        return pa.table([columns[name] for name in COLUMNS], schema=_SCHEMA)

    def frame(self) -> pd.DataFrame:
        """Tabulate one row per number: the labels, image, pair, `size` (NaN: none), `value` and `error`."""
        frames = []
        for b in self.blocks:
            rows, K = b.values.shape
            frame = pd.DataFrame({"image": b.images.repeat_interleave(K).numpy()})
            frame["pair"] = pd.NA if b.pairs is None else b.pairs.repeat_interleave(K).numpy()
            frame["size"] = np.tile(b.sizes, rows) if b.sizes else np.nan
            frame["value"] = b.values.flatten().double().numpy()
            frame["error"] = np.nan if b.errors is None else b.errors.flatten().double().numpy()
            frames.append(frame.assign(**dict(zip(LABELS, b.key, strict=True))))
        order = [*LABELS, "image", "pair", "size", "value", "error"]
        return pd.concat(frames, ignore_index=True)[order] if frames else pd.DataFrame(columns=order)

    def save(self, path: str | PathLike) -> None:
        """Write one Parquet file; ~ is the home folder. Equal tables give equal bytes with one version of pyarrow."""
        path = Path(path).expanduser()
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        # The most repetitive columns and 0/1 hits shrink to bits by dictionary and run length; zstd does the rest.
        pa.parquet.write_table(self.arrow(), partial, compression="zstd", compression_level=9)
        partial.replace(path)

    @classmethod
    def load(cls, path: str | PathLike) -> "Scores":
        """Read a Parquet file in the columns of `COLUMNS`, in any order of rows; ~ is the home folder.

        Raises:
            ValueError: columns are missing, rows with equal labels have other sizes, and as `Scores.of`.
            FileNotFoundError: no such file.
        """
        table = pa.parquet.read_table(Path(path).expanduser())
        table = table.select(list(COLUMNS)).cast(_SCHEMA).unify_dictionaries().combine_chunks()
        numbered = table.select(LABELS).append_column("row", pa.array(np.arange(len(table))))
        found = numbered.group_by(list(LABELS), use_threads=False).aggregate([("row", "list"), ("row", "min")])
        found = found.sort_by("row_min")
        rows = found["row_list"].combine_chunks()
        order, ends = rows.flatten().to_numpy(), rows.value_lengths().to_numpy().cumsum()
        table = table if (order[1:] > order[:-1]).all() else table.take(order)
        labels = found.select(LABELS).to_pylist()
        columns = [_parts(name, table[name].combine_chunks(), ends) for name in COLUMNS if name not in LABELS]
        blocks = []
        for of, image, pair, sizes, value, hits, error in zip(labels, *columns, strict=True):
            if (value is None) == (hits is None) or (sizes is not None and (sizes != sizes[0]).any()):
                raise ValueError(f"{path}: rows of {_named(of)} have different sizes, or not one of value and hits")
            identities = (None if one is None else one[:, 0] for one in (image, pair))
            scores, sizes = hits if value is None else value, None if sizes is None else sizes[0]
            blocks.append(_block(of, *identities, scores, sizes, error))
        return cls(blocks)


_TYPES = dict.fromkeys(TEXTS, pa.dictionary(pa.int32(), pa.string()))
_TYPES |= dict.fromkeys((*INTEGERS, "image", "pair"), pa.int32())
# Levels and sizes are chosen by equality: as 64-bit numbers they come back as they went.
_TYPES |= {"level": pa.float64(), "sizes": pa.list_(pa.float64()), "hits": pa.list_(pa.uint8())}
_TYPES |= {"value": pa.list_(pa.float32()), "error": pa.list_(pa.float32())}
_SCHEMA = pa.schema([(name, _TYPES[name]) for name in COLUMNS])
_PLAIN = _TYPES | dict.fromkeys(TEXTS, pa.string())


def _labels(given: Mapping[str, Label]) -> dict[str, Label]:
    """Labels that apply, in the order of `LABELS` and of their types. A level is what a reader types: 3 * 0.2 is 0.6.

    Raises:
        ValueError: a label that is no column or of another type, or one of `REQUIRED` that is missing.
    """
    labels = {name: given[name] for name in LABELS if given.get(name) is not None}
    if not set(given) <= set(LABELS) or not labels.keys() >= set(REQUIRED):
        raise ValueError(f"expected labels among {LABELS}, with {REQUIRED} in every row, but got {sorted(given)}")
    for name, value in labels.items():
        number = isinstance(value, int | float | Real) and not isinstance(value, bool) and math.isfinite(value)
        if name in TEXTS:
            kind, fits, as_type = "a text", isinstance(value, str) and value, str
        elif name == "level":
            kind, fits, as_type = "a finite number", number, _level
        else:
            kind, fits, as_type = "an integer of 32 bits", number and value % 1 == 0 and abs(value) < 2**31, int
        if not fits:
            raise ValueError(f"{name}: expected {kind}, but got {value!r}")
        labels[name] = as_type(value)
    return labels


def _level(value: float) -> float:
    return round(float(value), 9)


def _block(labels: Mapping[str, Label], images, pairs, values, sizes, errors) -> Block:
    """One block of what `Scores.of` takes, or of arrays; errors as there."""
    values = torch.as_tensor(values).detach().cpu()
    values = values[:, None] if sizes is None and values.ndim == 1 else values
    sizes = None if sizes is None else tuple(torch.as_tensor(sizes, dtype=torch.float64).tolist())
    errors = None if errors is None else torch.as_tensor(errors).detach().cpu().float().reshape(len(values), -1)
    shape = (len(values), 1 if sizes is None else len(sizes))
    increasing = all(low < high for low, high in itertools.pairwise((-math.inf, *(sizes or ()), math.inf)))
    shapes = [tuple(values.shape), None if errors is None else tuple(errors.shape)]
    if shapes[0] != shape or shapes[1] not in (None, shape) or not increasing:
        raise ValueError(f"expected values and errors [B, K] at K increasing finite sizes, not {shapes} at {sizes}")
    hits = values.dtype in (torch.bool, torch.uint8)
    kind, values = values.dtype, values.to(torch.uint8 if hits else torch.float32)
    if not (hits or kind.is_floating_point) or bool(((values > 1) if hits else values.isinf()).any()):
        raise ValueError(f"expected bool or uint8 hits, 0 or 1, or floating scores, none infinite, but got {kind}")
    identities = {"images": images} if pairs is None else {"images": images, "pairs": pairs}
    for name, given in identities.items():
        given = identities[name] = torch.as_tensor(given).cpu()
        whole = given.shape == shape[:1] and given.dtype != torch.bool and not given.is_floating_point()
        if not whole or bool((given.long().abs() >= 2**31).any()):
            raise ValueError(f"expected {name} as {shape[0]} integers of 32 bits, not {given.dtype} {[*given.shape]}")
    images, pairs = (None if name not in identities else identities[name].long() for name in ("images", "pairs"))
    return _distinct(Block(_labels(labels), images, pairs, values, sizes, errors))


def _join(group: list[Block]) -> Block:
    """One block of those that share all labels."""
    first = group[0]
    if len({(b.sizes, b.hits, b.pairs is None) for b in group}) > 1:
        raise ValueError(f"rows of {_named(first.labels)} differ in sizes, or as hits and scores, or in having pairs")
    images, values = (torch.cat([getattr(b, name) for b in group]) for name in ("images", "values"))
    pairs = None if first.pairs is None else torch.cat([b.pairs for b in group])
    errors = [torch.full(b.values.shape, torch.nan) if b.errors is None else b.errors for b in group]
    errors = None if all(b.errors is None for b in group) else torch.cat(errors)
    return _distinct(Block(first.labels, images, pairs, values, first.sizes, errors))


def _distinct(block: Block) -> Block:
    """A block as it is; ValueError where a row occurs twice."""
    if bool((block.images[1:] > block.images[:-1]).all()):
        return block  # in order, as most are
    rows = block.images if block.pairs is None else block.images * 2**32 + block.pairs
    if twice := len(rows) - len(rows.unique()):
        raise ValueError(f"{twice} rows of {_named(block.labels)} are there more than once; give each a draw or pair")
    return block


def _named(labels: Mapping[str, Label]) -> str:
    return ", ".join(f"{name} {value}" for name, value in labels.items() if value is not None)


def _lists(tensors: Sequence[Tensor | None], counts: Sequence[int], kind: pa.DataType) -> pa.Array:
    """A column of lists, one for each row of tensors [B, K], null for each of `counts` rows that have none."""
    lengths = np.repeat([0 if values is None else values.shape[1] for values in tensors], counts)
    flat = [values.flatten() for values in tensors if values is not None]
    flat = pa.array(torch.cat(flat).numpy() if flat else [], kind)
    offsets = pa.array(np.append(0, lengths.cumsum()), pa.int32())
    missing = pa.array(np.repeat([values is None for values in tensors], counts))
    return pa.ListArray.from_arrays(offsets, flat, mask=missing)


def _parts(name: str, column: pa.Array, ends: np.ndarray) -> Iterator[np.ndarray | None]:
    """The numbers [B, 1] or, of lists, [B, K] of rows up to each end, None where they have none."""
    lists, there = pa.types.is_list(column.type), column.is_valid().to_numpy(zero_copy_only=False)
    lengths = np.where(there, column.value_lengths().fill_null(0).to_numpy() if lists else 1, -1)
    flat, at = (column.flatten() if lists else column.drop_null()).to_numpy(zero_copy_only=False), 0
    for own in np.split(lengths, ends[:-1]) if len(ends) else ():
        if (own != own[0]).any():
            raise ValueError(f"{name}: expected as many numbers in each of the rows with equal labels")
        count = len(own) * max(own[0], 0)
        yield None if own[0] < 0 else flat[at : at + count].reshape(len(own), own[0]).copy()
        at += count
