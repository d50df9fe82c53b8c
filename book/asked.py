"""Questions that readers bring: one number is the answer, and every other that looks like one says how it differs."""

import functools
import html
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import forest
import judged
import pandas as pd
import yaml
from judged import Page, anchor, folder, sign

from faithlab import stats
from faithlab.scores import Scores
from faithstudy import paths
from faithstudy.claims import CONTRADICTED, REPRODUCED, better
from faithstudy.claims.verdicts import BETWEEN, POOLED

SAYS = {REPRODUCED: "Yes", CONTRADICTED: "No"}
"""What a verdict answers; any other, that it is not known."""


def declared() -> list[dict[str, Any]]:
    """What `asked.yml` declares; it says there what its words mean."""
    return yaml.safe_load((paths.root() / "book" / "asked.yml").read_text(encoding="utf-8")) or []


def answers(
    pages: Sequence[Page], questions: Sequence[Mapping[str, Any]] | None = None, results: Path | None = None
) -> str:
    """Each question with its one answer, in Markdown for the home page; of the claims that are in the build.

    Args:
        pages: all pages with claims.
        questions: instead of `asked.yml`.
        results: of the build, for what is asked the other way; None: it is left out.
    """
    found = []
    for of in declared() if questions is None else questions:
        if known := _claim(pages, of["claim"]):
            claim, parts = known
            address = f"{folder(claim['paper'])}/verdict.html#{anchor(claim['id'])}"
            found.append(
                f"## {of['question']}\n\n{forest.badge(claim['verdict'], claim['verdict'], address)} "
                f"{_answer(of, claim, parts, results)}\n\n{of['means']}\n\n{_page(of['unsure'], '')}\n\n"
                f'<a href="{address}">The claim with its plot, and how the other numbers of the book that compare '
                f"the two relate to this one</a>.\n"
            )
    return "\n".join(found)


def related(
    pages: Sequence[Page], questions: Sequence[Mapping[str, Any]] | None = None, results: Path | None = None
) -> dict[str, str]:
    """By the claim that answers a question, in Markdown: that it does, and how other numbers differ from its own.

    Args:
        pages: all pages with claims.
        questions: instead of `asked.yml`.
        results: as in `answers`.

    Raises:
        ValueError: a number of another claim looks like the answer, and nothing is said of how it differs.
    """
    found = {}
    for of in declared() if questions is None else questions:
        if not (known := _claim(pages, of["claim"])):
            continue
        like = [(claim, rows) for claim, rows in _like(pages, of["contrasts"]) if claim["id"] != of["claim"]]
        unsaid = [claim["id"] for claim, _ in like if claim["id"] not in of["others"]]
        if unsaid:
            raise ValueError(
                f"asked.yml, {of['question']!r}: expected in others how they differ, got nothing: {unsaid}"
            )
        order = list(of["others"])
        like.sort(key=lambda pair: order.index(pair[0]["id"]))
        table = "".join(_row(claim, rows, of["others"][claim["id"]]) for claim, rows in like)
        head = "<thead><tr><th>Asked of</th><th>Difference</th><th>Inputs</th></tr></thead>"
        besides = "".join(f"- {_page(text, '../')}\n" for text in of.get("besides", ()))
        found[of["claim"]] = (
            f"**The answer to “{of['question']}”** {_answer(of, *known, results)}\n\n{of['means']}\n\n"
            f"{_page(of['unsure'], '../')}\n\nOther numbers of the book that compare the two, and how they differ:\n\n"
            f'<div class="faithlab-scroll"><table class="faithlab-asked">{head}<tbody>{table}</tbody></table></div>\n\n'
            f"{besides}\n"
        )
    return found


def _claim(pages: Sequence[Page], name: str) -> tuple[pd.Series, pd.DataFrame] | None:
    """A claim and its parts without premises."""
    for page in pages:
        for _, claim in page.claims[page.claims["id"] == name].iterrows():
            return claim, page.parts[(page.parts["claim"] == name) & ~page.parts["premise"]]
    return None


def _like(pages: Sequence[Page], contrasts: str) -> list[tuple[pd.Series, pd.DataFrame]]:
    """Claims with pooled differences whose names match."""
    found = []
    for page in pages:
        rows = page.parts[(page.parts["network"] == POOLED) & page.parts["contrast"].str.fullmatch(contrasts)]
        for name, own in rows.groupby("claim", sort=False):
            if known := _claim([page], name):
                found.append((known[0], own))
    return found


def _answer(of: Mapping[str, Any], claim: pd.Series, parts: pd.DataFrame, results: Path | None) -> str:
    """Verdict, numbers with their intervals, and on what they rest, in a sentence or two (HTML)."""
    pooled = parts[parts["network"] == POOLED]
    each = []
    for row in pooled.to_dict("records"):
        text = f"for {html.escape(row['part'])} by <strong>{forest.number(row['value'])}</strong>"
        text += f" (at most {of['most']})"
        if math.isfinite(row["low"]):
            text += f", 95&nbsp;% interval {forest.number(row['low'])} to {forest.number(row['high'])}"
            text += ", the same in every redrawing of the images" * (row["low"] == row["high"])
        if math.isfinite(row["printed"]):
            text += f" (printed: {forest.number(row['printed'])})"
        each.append(text)
    on = forest.spoken_of(parts)
    networks = set(parts["network"]) - {POOLED, BETWEEN, ""}
    rests = f"{on.get('inputs', 'no inputs')} and {len(networks)} network{'s' * (len(networks) != 1)}"
    rests += f" ({html.escape(on['networks'])})" * ("networks" in on)
    run = f"the recorded run, profile {claim['best']}" if claim["best"] else "this build"
    said = SAYS.get(claim["verdict"], "It is not known")
    said = f"{said}: {html.escape(of['short'])}, {'; '.join(each)}. That is {run}, on {rests}. {_images(pooled)}"
    return said + _other_ways(of, claim, pooled, results)


def _other_ways(of: Mapping[str, Any], claim: pd.Series, pooled: pd.DataFrame, results: Path | None) -> str:
    """What comes out where it is asked in another way, of the same explainers, in a sentence each (HTML)."""
    if not results:
        return ""
    ways = list(of.get("other_ways", ()))
    tables = [results / way.get("page", claim["page"]) / "scores.parquet" for way in ways]
    written = tuple(table.stat().st_mtime_ns for table in tables if table.is_file())
    return _asked_again(json.dumps(ways), claim["page"], tuple(pooled["part"]), results, written)


@functools.cache
def _asked_again(other_ways: str, own: str, parts: tuple[str, ...], results: Path, written: tuple[int, ...]) -> str:
    """As `_other_ways`; for the home page and that of the verdict at once, as long as no table is written anew."""
    text = ""
    for other in json.loads(other_ways):
        page = other.get("page", own)
        folder_of = results / page
        if not (folder_of / "provenance.json").is_file():  # a part of the book is built
            continue
        kept = judged.better(folder_of, page, "scores")
        scores = kept.frame if kept else Scores.load(folder_of / "scores.parquet")
        one, rival = ({"metric": name} for name in other["metrics"])
        asked = scores.where(metric=other["metrics"])
        asked = _below(asked, other["sizes_below"]) if "sizes_below" in other else asked
        levels, seeds = ([v for v in asked.labels(name) if v is not None] for name in ("level", "noise_seed"))
        order = stats.pairs_in_order(
            [0.0, *sorted(levels)], seeds, better=other.get("better", -1), micro=other.get("micro", False)
        )
        each = []
        for explainer in (name for name in parts if name in asked.labels("explainer")):
            found = better(asked, one, rival, of=order, explainer=explainer).estimate
            row = pd.Series({name: float(end[0]) for name, end in found.pooled._asdict().items()})
            if row["value"] == 0 and not row["low"] < row["high"]:
                said = "no difference"
            else:
                said = "yes" if row["low"] > 0 else "the reverse" if row["high"] < 0 else "not known"
            each.append(f"for {html.escape(explainer)} {said}, {forest.interval(row)}")
        if each:
            on = f" ({found.images:,} inputs)" if page != own else ""
            text += f" {html.escape(other['says'])}{on}: {'; '.join(each)}."
    return text


def _below(scores: Scores, end: float) -> Scores:
    """The same rows at the sizes below an end."""
    kept = [[k for k, size in enumerate(block.sizes) if size < end] for block in scores]
    return Scores(
        replace(block, values=block.values[:, at], sizes=tuple(block.sizes[k] for k in at))
        for block, at in zip(scores, kept, strict=True)
    )


def _images(pooled: pd.DataFrame) -> str:
    """Whether more images would tell more: not where every interval is further from the bar than it is wide."""
    bar = pooled["claimed_low"].where(pooled["claimed_low"].map(math.isfinite), pooled["claimed_high"])
    far = pd.concat([pooled["low"] - bar, bar - pooled["high"]], axis=1).max(axis=1)
    sure = (far > pooled["high"] - pooled["low"]).all()
    return f"More images {'would hardly' if sure else 'might'} change it; another network might."


def _row(claim: pd.Series, rows: pd.DataFrame, differs: str) -> str:
    """A claim with numbers that look like the answer, as a row of a table (HTML)."""
    address = f"../{folder(claim['paper'])}/verdict.html#{anchor(claim['id'])}"
    several = len(set(rows["part"])) > 1
    numbers = "<br>".join(
        html.escape((f"{row['part']}: " if several else "") + forest.interval(row)) for _, row in rows.iterrows()
    )
    inputs = sorted({int(count) for count in rows["images"]})
    return (
        f"<tr><td>{html.escape(differs[0].upper() + differs[1:])}. "
        f'<a href="{address}">{sign(claim)} {claim["verdict"]}, as a whole</a></td>'
        f"<td>{numbers}</td><td>{', '.join(f'{count:,}' for count in inputs)}</td></tr>"
    )


def _page(text: str, up: str) -> str:
    """A text whose links name pages from the root, for a page in `book` (`up` is empty) or in a folder of it."""
    return re.sub(r"\]\((?=book/|notebooks/)", f"](../{up}", text)
