"""Texts with a class each: the published files read, and texts made into token ids.

A set is stored as its texts; `encode` makes them token ids each time it is loaded, which takes seconds at most.

Tokens are runs of letters and digits, with apostrophes inside them, and single punctuation marks, all in lower case:
"It's n't BAD!" is `it's`, `n't`, `bad`, `!`. The vocabulary is the most frequent tokens of the training split; every
other token is unknown. Texts are cut at `length` tokens and padded at the end.
"""

import hashlib
import html
import re
import tarfile
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from faithstudy.data.sets import TextSet
from faithstudy.data.sources import Arrays, Files

POLARITY = ("negative", "positive")
"""The classes of a set of opinions."""

SPECIAL = ("[PAD]", "[MASK]", "[UNK]")
"""The tokens of the ids `TextSet.PADDING`, `TextSet.MASK` and `TextSet.UNKNOWN`."""

UNDECIDED = 0.8
"""Snippets graded between minus this and this (of -4..4) have no clear polarity: the middle fifth, as SST-2 has it."""

_TOKEN = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
_TEST_SHARE = 0.2  # of the snippets


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
    """Return what is stored of a split: the texts as bytes (UTF-8, a line each), uint8 [bytes]; labels int64 [N]."""
    lines = [" ".join(text.split()) for text in texts]
    return np.frombuffer("\n".join(lines).encode(), np.uint8).copy(), np.array(labels, np.int64)


def split(stored: Tensor) -> list[str]:
    """Return the texts of the bytes that `join` made."""
    return stored.numpy().tobytes().decode().split("\n")


def snippets(files: Files, split: str) -> Arrays:
    """Read a split of the graded film snippets, from the archive of the VADER paper.

    The file has a line `number, mean grade of 20 readers (-4..4), snippet` each. The polarity is the sign of the grade;
    snippets graded within `UNDECIDED` of 0 are left out. A snippet belongs to the test split where the sha256 of its
    tokens says so, in one of five cases: equal texts are in one split, and no snippet changes it when others come or
    go.
    """
    with tarfile.open(files["hutto_ICWSM_2014.tar.gz"]) as tar:
        (member,) = (m for m in tar if m.isfile() and m.name.endswith("/movieReviewSnippets_GroundTruth.txt"))
        lines = tar.extractfile(member).read().decode().split("\n")
    graded = [(float(grade), html.unescape(text)) for _, grade, text in (x.split("\t") for x in lines if x.strip())]
    chosen = [(g, text) for g, text in graded if abs(g) > UNDECIDED and _tested(text) == (split == "test")]
    return join((text for _, text in chosen), [int(g > 0) for g, _ in chosen])


def _tested(text: str) -> bool:
    digest = hashlib.sha256(" ".join(tokenise(text)).encode()).digest()
    return int.from_bytes(digest[:4], "big") < _TEST_SHARE * 2**32
