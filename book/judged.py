"""The claims of a build and their evidence, the best recorded first: what boxes, verdict pages and the home page show.

A page's claims and their parts are two tables that its run has left, `claims` and `parts`. Where the recorded run is of
a larger profile than the build's, its verdicts and numbers head, and those of the build stand beside them.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
import words
import yaml

from faithstudy import paths
from faithstudy.claims import VERDICTS, evidence
from faithstudy.claims.verdicts import COUNTS, reopened
from faithstudy.run import RECORDED_ORDER, Recorded, recorded

SYMBOLS = dict(zip(VERDICTS, ("✓", "✗", "◐", "?", "–"), strict=True))
CHANGED = "Judged as it stood then"
"""The badge of a page that words or bars a claim otherwise than the recorded run that judged it."""
COUNTED = "#"
"""Before a verdict's sign where all parts of a claim are facts that are counted, and none is an estimate."""
ABSTRACT = (0, 0, 0, 0)
NUMBERS = ("value", "low", "high", "printed", "images", "missing", "claimed_low", "claimed_high", "images_needed")
NUMBERS += ("needed", "judged_at")
SHOWN = ("claim", "verdict", "evidence", "hold", "fail", "depend", "open", "images_needed")
WORDS = ("claim", "part", "kind", "outcome", "contrast", "network", "datasets", "reason", "unit")


@dataclass(frozen=True)
class Page:
    """What a page's run says of claims.

    Attributes:
        name: the notebook.
        claims: a row for each claim, by the best evidence; `best` names the profile of the recorded run that it is of,
            or nothing; then `built_verdict` and `built` are verdict and evidence of this build. `counted`: all its
            parts are facts, without chance. `changed`: what the page says otherwise since the recorded run.
        parts: the parts of these claims, a row for each contrast and network, by the same evidence.
        built: the parts of this build where a recorded run has taken its place.
        provenance: of the run that heads.
        build: the provenance of this build's run.
        reasons: what may be why claims are not reproduced, of this build's page, which asks its best evidence: `claim`,
            and the columns of `faithstudy.diagnostics.frame`.
    """

    name: str
    claims: pd.DataFrame
    parts: pd.DataFrame
    built: pd.DataFrame
    provenance: Mapping[str, Any]
    build: Mapping[str, Any]
    reasons: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["claim"]))


@dataclass(frozen=True)
class Group:
    """Claims that say nearly the same, or one claim alone.

    Attributes:
        says: what they share; empty for one alone.
        claims: their rows, with a column `own`: what is each one's own.
    """

    says: str
    claims: pd.DataFrame


def better(folder: Path, page: str, table: str) -> Recorded | None:
    """A table of the recorded run of a page, where that is of a larger profile than the build's in `folder`."""
    kept = recorded(page, table)
    profile = provenance(folder)["profile"]
    order = [*RECORDED_ORDER, profile]  # the first is the largest
    return kept if kept and order.index(kept.profile) < order.index(profile) else None


def page(folder: Path, name: str) -> Page:
    """What the run of a page, whose tables are in `folder`, and the recorded run say of its claims, as readers know it.

    Names of data sets and networks are those of `words`.
    """
    found = _page(folder, name)
    said = {of: found.claims[of].map(words.plain) for of in ("evidence", "built") if of in found.claims}
    if "evidence" in said:
        estimated = found.parts.loc[~found.parts["premise"] & found.parts["kind"].ne("counted"), "claim"]
        for place, claim in found.claims[~found.claims["id"].isin(estimated)].iterrows():
            tables = paths.recorded(name, claim["best"]) if claim["best"] else folder
            said["evidence"][place] += counted_on(tables, found.provenance if claim["best"] else found.build)
    asked = folder / "reasons.csv"
    asked = pd.read_csv(asked, index_col="claim").map(words.plain).reset_index() if asked.is_file() else found.reasons
    shown = {"claims": found.claims.assign(**said), "parts": _plain(found.parts), "built": _plain(found.built)}
    return replace(found, reasons=asked, **shown)


def counted_on(tables: Path, run: Mapping[str, Any]) -> str:
    """On what a fact was counted: networks and data of a run's long tables, and for times the machine, in words.

    A counted part has no rows of its own, so that its networks and data are those of the page.
    """
    about = ["network", "dataset"]
    read = [pd.read_parquet(path) for path in sorted(tables.glob("*.parquet"))]
    rows = pd.concat([of[about] for of in read if {*about} <= {*of.columns}] or [pd.DataFrame(columns=about)])
    names = [words.networks(rows["network"].astype(str).unique(), run), rows["dataset"].astype(str).unique()]
    said = [", ".join(list(map(words.plain, of))[:4]) + f" and {len(of) - 4} more" * (len(of) > 4) for of in names]
    text = f" The page's tables are of {' and '.join(filter(None, said))}." if any(said) else ""
    if run["notebook"].startswith("cost/"):
        text += f" Times are of {run['gpu'] or run['cpu']}."
    return text


def _plain(parts: pd.DataFrame) -> pd.DataFrame:
    """A table of parts with the names that a reader knows; contrasts are names of other tables' columns, and stay."""
    said = {name: parts[name].map(words.plain) for name in ("part", "datasets", "reason")}
    networks = [" and ".join(map(words.label, name.split(" and "))) for name in parts["network"]]
    return parts.assign(network=networks, **said)


def _page(folder: Path, name: str) -> Page:
    """The same with the names of the tables."""
    build = provenance(folder)
    if not (folder / "claims.csv").is_file():
        return Page(name, pd.DataFrame(columns=["id", "verdict"]), _whole(None), _whole(None), build, build)
    claims = pd.read_csv(folder / "claims.csv")
    parts = _whole(folder / "parts.csv")
    kept = better(folder, name, "claims")
    if kept is not None:
        theirs = _whole(paths.recorded(name, kept.profile) / "parts.csv")
        # Some are judged in larger profiles alone; a claim that the page no longer makes is not shown.
        alone = kept.frame[~kept.frame["id"].isin(claims["id"]) & kept.frame["id"].isin(_made(name))]
        claims = pd.concat([claims, alone], ignore_index=True)
        parts = pd.concat([parts, theirs[theirs["claim"].isin(alone["id"])]], ignore_index=True)
    claims = claims.assign(page=name, best="", built_verdict="", built="", changed="", today=claims["claim"])
    if kept is None:
        return Page(name, _counted(claims, parts), parts, _whole(None), build, build)
    known = claims["id"].isin(kept.frame["id"]).to_numpy()  # the build may have claims that are newer than the record
    built = known & ~claims["id"].isin(alone["id"]).to_numpy()
    other = kept.frame.set_index("id").loc[claims.loc[known, "id"]]
    claims.loc[built, ["built_verdict", "built"]] = claims.loc[built, ["verdict", "evidence"]].to_numpy()
    claims.loc[known, "changed"] = _changed(claims[known], parts, other, theirs)
    shown = [name for name in SHOWN if name in claims and name in other]
    claims.loc[known, shown] = other[shown].to_numpy()
    own = theirs[~theirs["premise"]].drop_duplicates(["claim", "part"])
    for count, outcome in COUNTS.items():  # by the rule of today, as the parts are
        of_claims = own["claim"][own["outcome"] == outcome].value_counts()
        claims.loc[known, count] = [of_claims.get(claim, 0) for claim in claims.loc[known, "id"]]
    claims = claims.assign(best=[kept.profile if k else "" for k in known])
    of_other = parts["claim"].isin(claims.loc[known, "id"])
    theirs = theirs[theirs["claim"].isin(claims.loc[known, "id"])]
    # Numbers are the recorded run's, words are today's: what was counted, and a margin's reason where it is the same.
    margin = ["claim", "part", "claimed_low", "claimed_high"]
    today = parts.drop_duplicates(margin).set_index(margin)["reason"]
    reasons = [today.get(tuple(row), said) for *row, said in theirs[[*margin, "reason"]].itertuples(index=False)]
    units = parts.drop_duplicates("claim").set_index("claim")["unit"]
    theirs = theirs.assign(reason=reasons, unit=[units.get(of, "") for of in theirs["claim"]])
    of_theirs = {of: evidence(_plain(own)) for of, own in theirs.groupby("claim")}
    claims["evidence"] = [of_theirs.get(of, said) for of, said in zip(claims["id"], claims["evidence"], strict=True)]
    of_build = parts["claim"].isin(claims.loc[built, "id"])
    judged = pd.concat([theirs, parts[~of_other]])
    return Page(name, _counted(claims, judged), judged, parts[of_build], kept.provenance, build)


def _counted(claims: pd.DataFrame, parts: pd.DataFrame) -> pd.DataFrame:
    """Claims of a page with `counted`, from the parts that they are judged on."""
    estimated = parts.loc[~parts["premise"] & parts["kind"].ne("counted"), "claim"]
    fixed = ~claims["id"].isin(estimated) & claims["id"].isin(parts["claim"])
    # What a page of costs counts are wall times, and these have their chance.
    return claims.assign(counted=fixed & ~claims["page"].str.startswith("cost/"))


def _changed(claims: pd.DataFrame, parts: pd.DataFrame, then: pd.DataFrame, theirs: pd.DataFrame) -> list[str]:
    """What each claim says otherwise than when it was judged: its sentence, or the kind or bar of a part."""
    about, asked = ["claim", "part"], ["kind", "claimed_low", "claimed_high"]
    rows = [of.drop_duplicates([*about, *asked])[[*about, *asked]].round(6) for of in (parts, theirs)]
    both = rows[0].merge(rows[1], on=about, how="inner")[about].drop_duplicates()  # larger runs may have more parts
    either = pd.concat([of.merge(both, on=about) for of in rows]).drop_duplicates(keep=False)
    moved = set(either["claim"])
    # Of what a build asked a claim is of the build, not of the claim.
    said, judged = (of["claim"].str.replace(r" \(asked[^)]*\)", "", regex=True) for of in (claims, then))
    return [
        "sentence" if said != judged else "bars" * (name in moved)
        for name, said, judged in zip(claims["id"], said, judged, strict=True)
    ]


def _made(name: str) -> set[str]:
    """What may be the name of a claim that a page makes: the words in quotes of its script."""
    script = paths.root() / "notebooks" / f"{name}.py"
    return set(re.findall(r"\"([a-z0-9-]+)\"", script.read_text(encoding="utf-8"))) if script.is_file() else set()


def pages(results: Path) -> list[Page]:
    """Every page that judges claims in the results of a build, in the order of the book."""
    listed = paths.pages()
    found = {path.parent.relative_to(results).as_posix(): path.parent for path in results.rglob("claims.csv")}
    order = sorted(found, key=lambda name: (listed.index(name) if name in listed else len(listed), name))
    return [page(found[name], name) for name in order]


def provenance(folder: Path) -> Mapping[str, Any]:
    """Where the tables in a folder came from."""
    return json.loads((folder / "provenance.json").read_text(encoding="utf-8"))


def _whole(path: Path | None) -> pd.DataFrame:
    """A table of parts with all its columns: a page that only counts has no intervals to save."""
    table = pd.read_csv(path) if path and path.is_file() else pd.DataFrame()
    numbers = {name: table.get(name, pd.Series(math.nan, table.index, dtype=float)) for name in NUMBERS}
    words = {name: table.get(name, pd.Series("", table.index)).astype(object).fillna("") for name in WORDS}
    premise = table.get("premise", pd.Series(False, table.index)).astype(bool)
    found = pd.DataFrame(words | numbers | {"premise": premise})
    # Runs from before it was saved: all contrasts are needed, or of a part that holds without all as many as do.
    pooled = found["network"].eq("pooled")
    inside = found["value"].gt(found["claimed_low"]) & found["value"].lt(found["claimed_high"])
    counted = inside.where(found["outcome"].eq("holds"), True) & pooled
    needed = found["needed"].fillna(counted.groupby([found["claim"], found["part"]]).transform("sum"))
    return reopened(found.assign(needed=needed))


def folder(paper: str) -> str:
    """Where the pages of a paper are, in `book`."""
    return paper.lower().replace(" ", "-")


def anchor(claim: str) -> str:
    """The address of a claim on the page of its paper's verdict."""
    return f"claim-{claim}"


def ordered(claims: pd.DataFrame) -> pd.DataFrame:
    """The claims of a paper in the paper's order: by section, the text before the appendix, what is beyond it last.

    A table, figure or theorem that is named without a section belongs to the section with which another claim names it,
    else behind that of the one before it, else before that of the next.
    """
    named: dict[tuple[str, int], list[tuple[int, ...]]] = {}
    for where in claims["where"]:
        for thing in _things(where):
            named.setdefault(thing, []).extend([s for s in _sections(where) if s != ABSTRACT][:1])
    known = {thing: min(sections) for thing, sections in named.items() if sections}

    def place(where: str) -> tuple[int, ...]:
        """Section (four numbers), before, in or behind it, number of the table or figure."""
        sections, things = _sections(where), _things(where)
        kind, number = things[0] if things else ("", 0)
        if not sections and not things:
            return (2, 0, 0, 0, 0, 0)
        if sections or (kind, number) in known:
            return (*(sections[0] if sections else known[kind, number]), 0, number)
        alike = sorted((n, section) for (k, n), section in known.items() if k == kind)
        before, behind = [s for n, s in alike if n < number], [s for n, s in alike if n > number]
        if before:
            return (*before[-1], 1, number)
        return (*behind[0], -1, number) if behind else (1, 0, 0, 0, 0, number)

    return claims.iloc[sorted(range(len(claims)), key=lambda i: (place(claims["where"].iloc[i]), i))]


def grouped(claims: pd.DataFrame, alike: Sequence[Mapping[str, Any]] | None = None) -> list[Group]:
    """The claims of a paper in the paper's order, those that are nearly the same together at the place of the first.

    Args:
        claims: of one paper.
        alike: what is declared in `alike.yml` for the paper, instead of that file; what is not here is left out.
    """
    if alike is None and len(claims):
        declared = yaml.safe_load((paths.root() / "book" / "alike.yml").read_text(encoding="utf-8")) or {}
        alike = declared.get(folder(claims["paper"].iloc[0]), ())
    rows = ordered(claims)
    group_of = {name: k for k, group in enumerate(alike or ()) for name in group["claims"]}
    found: dict[Any, Group] = {}
    for name in rows["id"]:
        k = group_of.get(name)
        members = alike[k]["claims"] if k is not None else {name: ""}
        own = rows[rows["id"].isin(members)]
        own = own.assign(own=own["id"].map(members)).sort_values("id", key=lambda ids: ids.map(list(members).index))
        found.setdefault(name if k is None else k, Group(alike[k]["says"] if len(own) > 1 else "", own))
    return list(found.values())


def sign(claim: Any) -> str:
    """The sign of a claim's verdict, and whether it is only counted; of a row with `verdict` and perhaps `counted`."""
    return COUNTED * bool(getattr(claim, "counted", False)) + SYMBOLS[claim.verdict]


def _sections(where: str) -> list[tuple[int, ...]]:
    """Sections that a place in a paper names, the text's first: 0 for it or 1 for the appendix, and three numbers."""
    appendix = re.findall(r"(?i)appendix ([A-Z])((?:\.\d+)*)", where)
    text = re.sub(r"(?i)appendix [A-Z](\.\d+)*", "", where)
    found = [(0, number) for number in re.findall(r"Theorem (\d+\.\d+)", text)]
    found += [(0, "0")] if "abstract" in where.lower() else []
    for run in re.findall(r"(?i)\bsections? ((?:\d+(?:\.\d+)*(?:, | and )?)+)", text):
        found += [(0, number) for number in re.findall(r"\d+(?:\.\d+)*", run)]
    found += [(1, f"{ord(letter)}{rest}") for letter, rest in appendix]
    return [(part, *(*map(int, number.split(".")), 0, 0)[:3]) for part, number in found]


def _things(where: str) -> list[tuple[str, int]]:
    """Tables, figures and theorems that a place in a paper names."""
    return [
        (kind, int(number))
        for kind, run in re.findall(r"\b(Table|Figure|Theorem)s? ((?:\d+[a-z]?(?:\.\d+)?(?:, | and )?)+)", where)
        for number in re.findall(r"(?<![.\d])\d+", run)
    ]
