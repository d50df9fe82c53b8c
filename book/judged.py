"""The claims of the pages of a build: verdicts, their parts and reasons, from the tables that each run has left."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import words
import yaml

from faithstudy import paths
from faithstudy.claims import VERDICTS
from faithstudy.claims.verdicts import SIZES

SYMBOLS = dict(zip(VERDICTS, ("✓", "◐", "◔", "⊘", "✗", "?", "–", "✓", "◐", "✗"), strict=True))
APART = {"follows": "true by construction", "blind": "a control that never queries the network passes, too"}
"""Why a verdict is left out of sums, by the column that says it."""
NUMBERS = ("value", "low", "high", "printed", "images", "claimed_low", "claimed_high", "needed")
WORDS = ("claim", "part", "kind", "outcome", "contrast", "network", "datasets", "reason", "unit")
CLAIMS = ("id", "paper", "where", "claim", "verdict", "evidence", "page", "generalises", "untested", *APART, *SIZES)


@dataclass(frozen=True)
class Page:
    """What the run of a page says of claims.

    Attributes:
        name: the notebook.
        claims: a row for each claim.
        parts: a row for each part, contrast and network.
        reasons: what may be why claims are not reproduced: columns of `faithstudy.diagnostics.frame`, and `claim`.
        provenance: of the run.
    """

    name: str
    claims: pd.DataFrame
    parts: pd.DataFrame
    reasons: pd.DataFrame
    provenance: Mapping[str, Any]


def page(folder: Path, name: str) -> Page:
    """The claims of a page whose tables are in `folder`, in the words that a reader knows."""
    claims = _read(folder / "claims.csv", CLAIMS).assign(page=name)
    parts = _read(folder / "parts.csv", (*WORDS, *NUMBERS, "premise"))
    parts[list(WORDS)] = parts[list(WORDS)].astype(object).fillna("")
    said = {name: parts[name].map(words.plain) for name in ("part", "contrast", "datasets", "reason")}
    said |= {"network": parts["network"].map(words.label), "premise": parts["premise"].astype(bool)}
    reasons = _read(folder / "reasons.csv", ("claim",))
    told = reasons.drop(columns="claim").map(words.plain).assign(claim=reasons["claim"])
    rates = _read(folder / "error_rates.csv", ("claim", "stable"))[["claim", "stable"]]
    claims = claims.astype({"id": object})  # a page without claims has no names
    claims = claims.merge(rates.rename(columns={"claim": "id"}).astype({"id": object}), on="id", how="left")
    beside = {name: claims[name].astype(object).fillna("") for name in ("generalises", "untested", *APART)}
    claims = claims.assign(evidence=claims["evidence"].map(words.plain), **beside)
    run = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    return Page(name, claims, parts.assign(**said), told, run)


def _read(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """A table with all these columns; empty where there is no file."""
    table = pd.read_csv(path) if path.is_file() else pd.DataFrame()
    return table.reindex(columns=list(dict.fromkeys([*table, *columns])))


def of(page: Page, claim: str) -> pd.DataFrame:
    """The parts of a claim."""
    return page.parts[page.parts["claim"] == claim]


def folder(paper: str) -> str:
    """The folder of a paper in `book`."""
    return paper.lower().replace(" ", "-")


def anchor(claim: str) -> str:
    """The address of a claim on its paper's verdict page."""
    return f"claim-{claim}"


def has_verdicts(paper: str) -> bool:
    """Whether a paper has a verdict page; claims of other pages stand on these alone."""
    return (paths.root() / "book" / folder(paper) / "verdict.md").is_file()


def apart(claims: pd.DataFrame) -> pd.Series:
    """Which claims are left out of sums, see `APART`."""
    return (claims[list(APART)] != "").any(axis=1)


def grouped(claims: pd.DataFrame, alike: Sequence[Mapping[str, Any]] | None = None) -> list[tuple[str, pd.DataFrame]]:
    """The claims of a paper in the book's order, those that are nearly the same together at the place of the first.

    Args:
        claims: of one paper.
        alike: what `alike.yml` declares for the paper; None: read from that file.

    Returns:
        What the claims of a group share (empty of one alone), and their rows with a column `own`: each one's own words.
    """
    if alike is None:
        declared = yaml.safe_load((paths.root() / "book" / "alike.yml").read_text(encoding="utf-8")) or {}
        alike = declared.get(folder(claims["paper"].iloc[0]), ())
    found: dict[str, tuple[str, pd.DataFrame]] = {}
    for name in claims["id"]:
        group = next((group for group in alike if name in group["claims"]), {"says": "", "claims": {name: ""}})
        rows = claims[claims["id"].isin(group["claims"])]
        rows = rows.assign(own=rows["id"].map(group["claims"]))
        found.setdefault(rows["id"].iloc[0], (group["says"] if len(rows) > 1 else "", rows))
    return list(found.values())
