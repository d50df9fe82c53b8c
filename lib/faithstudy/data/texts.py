"""Texts with a class each: the published files read, and texts made into token ids.

A set is stored as its texts; `encode` makes them token ids each time it is loaded, which takes seconds at most.

Tokens are runs of letters and digits, with apostrophes inside them, and single punctuation marks, all in lower case:
"It's n't BAD!" is `it's`, `n't`, `bad`, `!`. The vocabulary is the most frequent tokens of the training split; every
other token is unknown. Texts are cut at `length` tokens and padded at the end.
"""

import csv
import hashlib
import html
import json
import re
import tarfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from faithstudy.data.sets import TextSet
from faithstudy.data.sources import Arrays

POLARITY = ("negative", "positive")
"""The classes of a set of opinions."""

SPECIAL = ("[PAD]", "[MASK]", "[UNK]")
"""The tokens of the ids `TextSet.PADDING`, `TextSet.MASK` and `TextSet.UNKNOWN`."""

UNDECIDED = 0.8
"""Snippets graded between minus this and this (of -4..4) have no clear polarity: the middle fifth, as SST-2 has it."""

_TOKEN = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
_TEST_SHARE = 0.2  # of the snippets


@dataclass(frozen=True)
class Options:
    """Choices of how texts become token ids.

    Attributes:
        length: tokens of a text that are kept, from its start; also T of the token ids.
        words: size of the vocabulary, with padding, mask and unknown.

    Raises:
        ValueError: a choice out of range.
    """

    length: int = 64
    words: int = 10_000

    def __post_init__(self) -> None:
        if self.length < 1:
            raise ValueError(f"length must be at least 1 token, not {self.length}")
        if self.words <= len(SPECIAL):
            raise ValueError(f"words must be more than the {len(SPECIAL)} special tokens, not {self.words}")


def tokenise(text: str) -> list[str]:
    """Return the tokens of a text, in lower case."""
    return _TOKEN.findall(text.lower())


def vocabulary(texts: Iterable[Sequence[str]], words: int) -> tuple[str, ...]:
    """Return the special tokens and the most frequent ones of tokenised texts, at most `words` in all.

    Of equally frequent tokens the one that is seen first comes first.
    """
    counts = Counter(token for text in texts for token in text)
    return (*SPECIAL, *(token for token, _ in counts.most_common(words - len(SPECIAL))))


def encode(texts: Sequence[Sequence[str]], known: Sequence[str], length: int) -> Tensor:
    """Return the ids of tokenised texts in a vocabulary, int64 [N, length], cut or padded at the end."""
    number = {token: identity for identity, token in enumerate(known)}
    ids = torch.full((len(texts), length), TextSet.PADDING)
    for row, text in zip(ids, texts, strict=True):
        numbers = [number.get(token, TextSet.UNKNOWN) for token in text[:length]]
        row[: len(numbers)] = torch.tensor(numbers)
    return ids


def join(texts: Iterable[str], labels: Sequence[int]) -> Arrays:
    """Return what is stored of a split: the texts as bytes (UTF-8, a line each), uint8 [bytes]; labels int64 [N].

    Raises:
        ValueError: a text has no token, or there are no texts.
    """
    lines = [" ".join(text.split()) for text in texts]
    if empty := [number for number, line in enumerate(lines, start=1) if not tokenise(line)]:
        raise ValueError(f"{len(empty)} of {len(lines)} texts have no word (the first is number {empty[0]})")
    if not lines:
        raise ValueError("found no texts")
    return np.frombuffer("\n".join(lines).encode(), np.uint8).copy(), np.array(labels, np.int64)


def split(stored: Tensor) -> list[str]:
    """Return the texts of the bytes that `join` made."""
    return stored.numpy().tobytes().decode().split("\n")


def snippets(paths: list[Path], part: str) -> Arrays:
    """Read a split of the graded film snippets, from the path of the archive of the VADER paper.

    The file has a line `number, mean grade of 20 readers (-4..4), snippet` each. The polarity is the sign of the grade;
    snippets graded within `UNDECIDED` of 0 are left out. A snippet belongs to the test split where the sha256 of its
    tokens says so, in one of five cases: equal texts are in one split, and no snippet changes it when others come or
    go.
    """
    (path,) = paths
    with tarfile.open(path) as tar:
        (member,) = (m for m in tar if m.isfile() and m.name.endswith("/movieReviewSnippets_GroundTruth.txt"))
        lines = tar.extractfile(member).read().decode().split("\n")
    graded = [(float(grade), html.unescape(text)) for _, grade, text in (x.split("\t") for x in lines if x.strip())]
    chosen = [(g, text) for g, text in graded if abs(g) > UNDECIDED and _tested(text) == (part == "test")]
    return join((text for _, text in chosen), [int(g > 0) for g, _ in chosen])


def _tested(text: str) -> bool:
    digest = hashlib.sha256(" ".join(tokenise(text)).encode()).digest()
    return int.from_bytes(digest[:4], "big") < _TEST_SHARE * 2**32


def glue(paths: list[Path]) -> Arrays:
    """Read a table of GLUE's SST-2: tab-separated, a header, a column `label` (0 or 1) and one of the sentences.

    Raises:
        ValueError: other columns, or another label.
    """
    (path,) = paths
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    columns = list(rows[0]) if rows else []
    texts = [name for name in columns if name in ("sentence", "content")]
    if len(texts) != 1 or "label" not in columns:
        raise ValueError(f"{path.name} has columns {', '.join(map(str, columns))}; expected label and sentence")
    if wrong := {str(row["label"]) for row in rows} - {"0", "1"}:
        raise ValueError(f"{path.name} has labels {', '.join(sorted(wrong))}; expected 0 and 1")
    return join((row[texts[0]] for row in rows), [int(row["label"]) for row in rows])


def boolq(paths: list[Path]) -> Arrays:
    """Read a file of BoolQ, a JSON object a line; a text is the question, a question mark and the passage.

    Raises:
        ValueError: a line without question, passage and answer.
    """
    (path,) = paths
    texts, labels = [], []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            texts.append(f"{row['question']} ? {row['passage']}")
            labels.append({False: 0, True: 1}[row["answer"]])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path.name}, line {number}, is no question with passage and answer: {error}") from error
    return join(texts, labels)
