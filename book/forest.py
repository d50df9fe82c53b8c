"""Claims as a reader sees them: badges, a sentence with its number, and forest plots that a phone can show.

A forest plot is HTML whose marks are placed in per cent, so that it is as wide as the screen, its text is text, and its
colours follow the page's, in the dark too. Nothing in it needs a script.
"""

import html
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import words
from judged import CHANGED, COUNTED, SYMBOLS, Group, Page, anchor, folder, grouped, sign

from faithstudy.claims import CONTRADICTED, PARTLY, REPRODUCED, UNDECIDED, UNTESTED, VERDICTS
from faithstudy.claims.verdicts import BETWEEN, LEAST, POOLED, compared, deciding, sureness, unit_of
from faithstudy.diagnostics import LOOKS, once

OUTCOMES = {"holds": "✓", "fails": "✗", "depends on the network": "◐", "open": "?"}
DECIDES = {
    REPRODUCED: ("holds",),
    CONTRADICTED: ("fails",),
    PARTLY: ("depends on the network", "fails"),
    UNDECIDED: ("fails", "open"),
    UNTESTED: ("fails", "depends on the network"),
}
"""Which parts speak for a verdict: those with the first of these outcomes. Of what is not tested, a premise."""
TESTS = {
    "above": "a value beyond a bar",
    "below": "a value below a bar",
    "better": "a difference on the same inputs above 0",
    "no_worse": "a difference on the same inputs above a margin below 0",
    "best": "the difference from every rival above 0",
    "in_order": "the difference of neighbours above 0, at every step",
    "trend": "a slope above 0",
    "within": "a value inside a margin",
    "agrees": "a value inside the printed range, widened by a margin",
    "counted": "a count: every case as claimed",
}
"""What is looked at, by the kind of a part; see the page on how a verdict is reached."""
ROUNDING = 1e-6
"""What is smaller is the rounding of sums."""
SHOWN_AT = 0.9501
"""Parts that are judged at a higher level say so."""
TIMED = re.compile(r"\d\]? times$")
"""How the name of a counted part ends that is a ratio of times."""
ROWS = 8
"""Parts of a claim in the open; the rest is folded. Every outcome that parts have is among them."""
WANTED = re.compile(r" (?:About|More than|How many) [^.]* decide it[^.]*\.")
"""How many inputs would decide a claim, in the evidence of a build: nothing where a recorded run has decided it."""
IN_PRINT = re.compile(r"The paper's own numbers do not satisfy .*?\.(?= |$)")
"""Of the evidence, what a reader has to see beside the verdict."""
CHARACTER = 4.3
"""Width of a character of an axis's labels, in per cent of the axis where it is narrowest. Where two would touch, the
inner one is left out: the claimed side stands beside the axis in words."""
TENFOLD = 10
"""Parts whose own axes differ so many times in width are not on one scale: the narrow ones would be dots."""
JOINED = re.compile(r"(?<=test), |(?<=train), |(?<=inputs), ")
"""Between the names of data sets that a part has together; a name may have a comma itself."""
FAR = 3.0
"""What is printed this many widths of ours beyond ours stands at the edge, as an arrow: else ours would be a dot."""


def number(value: float) -> str:
    """A number of the book: three digits, a minus that is one, 0 for rounding; what could not be measured is none."""
    if math.isnan(value):
        return "none"
    value = 0.0 if abs(value) < ROUNDING else value
    text = f"{value:.3g}" if abs(value) < 999.5 else f"{value:,.0f}"
    if "e" in text:  # as many digits as the smallest that has no power of ten
        text = f"{value:.6f}".rstrip("0")
    return "0" if text in ("-0", "0") else text.replace("-", "−")


def interval(row: pd.Series) -> str:
    """An estimate with its interval."""
    if math.isnan(row["value"]):
        return "none"
    if math.isnan(row["low"]):
        return f"{number(row['value'])} (no interval)"
    return f"{number(row['value'])} [{number(row['low'])}, {number(row['high'])}]"


def side(low: float, high: float) -> str:
    """The claimed side in words."""
    if math.isinf(low) and math.isinf(high):
        return "all"
    if math.isinf(high):
        return f"above {number(low)}"
    return f"below {number(high)}" if math.isinf(low) else f"{number(low)} to {number(high)}"


def slug(text: str) -> str:
    """A verdict or an outcome as the name of a class."""
    return text.split()[0] if text != UNTESTED else "untested"


def badge(verdict: str, text: str, href: str = "", *, counted: bool = False) -> str:
    """A badge of a verdict, a link where it has somewhere to lead; with a sign of its own where it is only counted."""
    inside = f'<span aria-hidden="true">{COUNTED * counted}{SYMBOLS[verdict]}</span> {html.escape(text)}'
    kind = f'class="faithlab-badge {slug(verdict)}{" counted" * counted}"'
    return f'<a {kind} href="{html.escape(href)}">{inside}</a>' if href else f"<span {kind}>{inside}</span>"


def inside(contrasts: pd.DataFrame) -> pd.Series:
    """Which contrasts have their whole 95 % interval on the claimed side."""
    return (contrasts["low"] > contrasts["claimed_low"]) & (contrasts["high"] < contrasts["claimed_high"])


def stricter(row: pd.Series, comparisons: int = 1) -> str:
    """Why what looks decided is open, where it is: each of many parts is judged at a higher level than is shown."""
    beyond = row["high"] < row["claimed_low"] or row["low"] > row["claimed_high"]
    if row["outcome"] != "open" or not (beyond or inside(row.to_frame().T).item()):
        return ""
    if row.get("fewest", math.nan) < LEAST:
        return f"; of fewer than {LEAST} inputs it is open"
    if row["judged_at"] > SHOWN_AT:
        return f"; as one of several it is judged at {row['judged_at']:.2%}, and there it is open"
    if comparisons > 1:
        return f"; the part has {comparisons} comparisons, judged together, and is open"
    return "; open, because not every network's own estimate lies there"


def speaking(verdict: str, parts: pd.DataFrame) -> pd.DataFrame:
    """The pooled rows of the part of a claim that speaks for its verdict.

    Where all parts have to agree it is the least sure of them; where it is open, one that looks so; else the first.
    """
    pooled = parts[parts["network"] == POOLED]
    rows = pooled[pooled["premise"]] if verdict == UNTESTED else pooled[~pooled["premise"]]
    rows = pooled if rows.empty else rows
    for outcome in DECIDES[verdict]:
        if not (found := rows[rows["outcome"] == outcome]).empty:
            rows = found
            break
    if verdict == UNDECIDED:  # of an open part with an interval that is not on the claimed side, where there is one
        known = rows["low"].notna() | rows["kind"].eq("counted")
        for likely in (known & ~inside(rows).groupby(rows["part"]).transform("all"), known):
            if likely.any():
                rows = rows[rows["part"].isin(rows.loc[likely, "part"])]
                break
        if (rows["outcome"] == "open").all() and not rows["kind"].eq("counted").any():
            return rows[rows["part"] == deciding(rows)["part"]]
    if verdict in (REPRODUCED, CONTRADICTED) and not rows["kind"].eq("counted").any():  # of all parts the least sure
        each = pd.DataFrame([deciding(of) for _, of in rows.groupby("part", sort=False)])
        return rows[rows["part"] == deciding(each.assign(outcome="open"))["part"]]
    return rows[rows["part"] == rows["part"].iloc[0]]


SETTLED = "What fails is settled: more inputs can only tell whether the claim holds in part, or not at all."
"""Of an undecided claim with a part that fails."""


def settled(claim: pd.Series, parts: pd.DataFrame) -> str:
    """`SETTLED`, with a space before it, of a claim of which it is true; else nothing."""
    if claim["verdict"] != UNDECIDED or parts.empty:
        return ""
    own = set(parts.loc[~parts["premise"], "outcome"])
    sure = (parts.loc[parts["premise"], "outcome"] == "holds").all()
    return f" {SETTLED}" if sure and own == {"fails", "open"} else ""


def sentence(claim: pd.Series, parts: pd.DataFrame) -> str:
    """A claim, its verdict, and the number that decides it, in a sentence (HTML)."""
    said = claim["claim"].rstrip(".")
    verdict = "partly reproduced" if claim["verdict"] == PARTLY else claim["verdict"]
    still = "still " if claim["verdict"] == UNDECIDED and "still" not in said.lower().replace(",", "").split() else ""
    text = f"“{html.escape(said)}” is {still}<strong>{verdict}</strong>"
    own = parts[~parts["premise"]].drop_duplicates("part")["outcome"] if len(parts) else parts
    if claim["verdict"] == PARTLY and (own == "fails").sum() > (own == "holds").sum():
        text += ", and <strong>more of its parts fail than hold</strong>"
    if parts.empty:
        return text + "."
    text += _counts(parts)
    part = speaking(claim["verdict"], parts)
    row = deciding(part)
    contrast = html.escape(compared(row["contrast"]))
    name = html.escape(words.plain(row["part"])) + (f", {contrast}" if len(part) > 1 else "")
    if row["kind"] == "counted":
        return f"{text}: {name}{_found(row)}.{settled(claim, parts)}"
    at = "" if math.isnan(row["low"]) else f", 95&nbsp;% interval {number(row['low'])} to {number(row['high'])}"
    about = "about " * (row["kind"] == "agrees")
    at += f" (printed: {about}{number(row['printed'])})" if math.isfinite(row.get("printed", math.nan)) else ""
    asks = side(row["claimed_low"], row["claimed_high"])
    if row["outcome"] == "holds" and not inside(part).all():
        asks += f" in {row['needed']:.0f} of {len(part)} comparisons"
    asks += stricter(row, len(part))
    text += f": {name}: <strong>{number(row['value'])}</strong>{at}; the claim asks for {asks}."
    return text + settled(claim, parts)


def _cases(row: pd.Series) -> str:
    """How many cases of a counted part are as claimed; of one alone whether it is, in a word or two."""
    if row["images"] != 1:
        return f"{row['value']:.0f} of {row['images']:.0f} cases"
    if TIMED.search(row["part"]):  # its name is what was found, others' what is claimed
        return {"holds": "as claimed", "open": "open"}.get(row["outcome"], "not as claimed")
    return "yes" if row["value"] == 1 else "no"


def _found(row: pd.Series) -> str:
    """The same after the name of the part, in a sentence."""
    if (said := _cases(row)) in ("yes", "no"):
        return f": {said}, it is {'' if said == 'yes' else 'not '}so"
    return f", {'which is ' if row['images'] == 1 else 'in '}{said}"


def _counts(parts: pd.DataFrame) -> str:
    """How many parts of a claim hold, fail and are open, in brackets; nothing where there is one part."""
    own = parts[~parts["premise"]].drop_duplicates("part")["outcome"].value_counts()
    if own.sum() < 2:
        return ""
    words = {"holds": ("holds", "hold"), "fails": ("fails", "fail"), "open": ("is open", "are open")}
    words["depends on the network"] = ("depends on the network", "depend on the network")
    found = [f"{own[of]} {words[of][int(own[of] > 1)]}" for of in words if of in own]
    if len(found) == 1:
        return f" (all {own.sum()} parts {words[own.index[0]][1]})"
    return f" (of {own.sum()} parts {', '.join(found)})"


def spoken_of(parts: pd.DataFrame, run: Mapping[str, Any] | None = None) -> dict[str, str]:
    """The networks, the data and the number of inputs that the parts of a page's claims speak of, without premises.

    Networks are told by name, each once; `run` is the provenance, which knows them where their labels do not.
    """
    parts = parts[~parts["premise"]]
    each = parts[~parts["network"].isin((POOLED, BETWEEN, ""))]
    names = words.networks((one for name in each["network"] for one in name.split(" and ")), run)
    sets = list(dict.fromkeys(one for name in parts["datasets"] if name for one in JOINED.split(words.plain(name))))
    asked = parts.loc[(parts["kind"] != "counted") & parts["network"].eq(POOLED), "images"].dropna()
    asked = sorted(asked[asked > 0].astype(int).unique()) if len(asked) else []
    found = {}
    if names:
        found["networks"] = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    if asked:
        span = f"{asked[0]:,}" if len(asked) == 1 else f"{asked[0]:,} to {asked[-1]:,}"
        shown = ("; " if any("," in name for name in sets[:4]) else ", ").join(sets[:4])
        if len(sets) > 4:
            one_each = not parts["datasets"].str.contains(JOINED).any()
            shown = f"each of {len(sets)}: " * one_each + f"{shown} and {len(sets) - 4} more"
        found["inputs"] = f"{span} {unit_of(parts, asked[-1])}" + (f" of {shown}" if sets else "")
    return found


def deciding_numbers(pages: Sequence[Page]) -> dict[str, str]:
    """By the name of a claim, the part that speaks for its verdict and its number with the interval, in plain text."""
    found = {}
    for page in pages:
        for claim in page.claims.itertuples():
            parts = page.parts[page.parts["claim"] == claim.id]
            if parts.empty:
                continue
            row = deciding(speaking(claim.verdict, parts))
            counted = row["kind"] == "counted"
            found[claim.id] = words.plain(row["part"]) + (_found(row) if counted else f": {interval(row)}")
    return found


def tiles(claims: pd.DataFrame, page: str, numbers: Mapping[str, str] | None = None) -> str:
    """The claims of a paper as small links in the paper's order, each with the share of its parts that hold or fail.

    Claims that say nearly the same are one group; those that are only counted have a sign and a border of their own.

    Args:
        claims: of one paper.
        page: where they lead.
        numbers: by the claim, what a tile says below its words where it is touched or has the focus.
    """
    cells, numbers = [], numbers or {}
    for group in grouped(claims):
        own = "".join(_tile(c, page, numbers.get(c.id, "")) for c in group.claims.itertuples())
        label = html.escape(f"{len(group.claims)} claims alike: {group.says}", quote=True)
        head = f'<span class="faithlab-alike" role="group" aria-label="{label}" title="{label}">'
        cells.append(f"{head}{own}</span>" if group.says else own)
    return f'<div class="faithlab-tiles">{"".join(cells)}</div>'


def _tile(claim: Any, page: str, number: str) -> str:
    """A claim as a small link; of a row of claims."""
    href = f"{page}#{anchor(claim.id)}"
    shares = {name: getattr(claim, name, 0) for name in ("hold", "depend", "open", "fail")}
    bar = "".join(f'<i class="{name}" style="flex:{count:g}"></i>' for name, count in shares.items() if count > 0)
    counted = bool(getattr(claim, "counted", False))
    said = claim.verdict + ", counted and not estimated" * counted
    label = html.escape(f"{said}: {claim.claim}", quote=True)
    kind = f"faithlab-tile {slug(claim.verdict)}{' counted' * counted}"
    more = f' data-number="{html.escape(number, quote=True)}"' if number else ""
    return (
        f'<a class="{kind}" href="{href}" title="{label}" aria-label="{label}"{more}>'
        f'<span aria-hidden="true">{sign(claim)}</span><span class="bar" aria-hidden="true">{bar}</span></a>'
    )


def counted_verdicts(claims: pd.DataFrame) -> str:
    """How many claims have which verdict, in words."""
    counts = claims["verdict"].value_counts()
    said = {v: f"{counts[v]} {v}" for v in VERDICTS if v in counts}
    if UNDECIDED in said and {"hold", "depend", "fail"} <= set(claims):
        failing = (
            (claims["verdict"] == UNDECIDED) & (claims[["hold", "depend"]] == 0).all(axis=1) & (claims["fail"] > 0)
        )
        said[UNDECIDED] += f" ({failing.sum()} of them with parts that fail and none that holds)" * bool(failing.any())
    return ", ".join(said.values())


def overview(claims: pd.DataFrame, numbers: Mapping[str, str] | None = None) -> str:
    """Every paper with its claims as tiles and how many have which verdict (HTML for the home page).

    Args:
        claims: of all papers.
        numbers: as in `tiles`.
    """
    blocks = []
    for paper, of in claims.groupby("paper", sort=False):
        page = f"{folder(paper)}/verdict.html"
        said = counted_verdicts(of)
        facts = int(of["counted"].sum()) if "counted" in of else 0
        said += f"; {COUNTED} {facts} of them {'is' if facts == 1 else 'are'} counted and not estimated" * (facts > 0)
        groups = grouped(of)
        if any(group.says for group in groups):
            said += f". They say {len(groups)} different thing{'s' * (len(groups) > 1)}"
        blocks.append(
            f'<div class="faithlab-paper"><p><a href="{page}"><strong>{html.escape(paper)}</strong></a> '
            f"{len(of)} claim{'s' * (len(of) > 1)}: {said}</p>{tiles(of, page, numbers)}</div>"
        )
    return "\n".join(blocks) + "\n"


MARKS = {
    "ci": "estimate and 95&nbsp;% interval",
    "net": "each network’s own",
    "built": '<span class="faithlab-built">this build’s</span>, where a recorded run heads',
    "printed": '<span class="faithlab-printed">printed in the paper</span>',
    "side": "the claimed side",
}
LEGEND = "".join(f'<span><i class="key {kind}"></i> {text}</span>' for kind, text in MARKS.items())


def verdicts(
    pages: Sequence[Page], paper: str, caveats=lambda page: [], related: Mapping[str, str] | None = None
) -> str:
    """The verdict page of a paper: all claims small, then each with its address, its forest plot and its evidence.

    Args:
        pages: all pages with claims.
        paper: its name.
        caveats: gives the caveats of a page, as pairs of a short text and a longer one.
        related: by the claim, what is said of other numbers that look like its own, in Markdown.
    """
    of = pd.concat([p.claims[p.claims["paper"] == paper] for p in pages if len(p.claims)], ignore_index=True)
    by, related = {p.name: p for p in pages}, related or {}
    shown = []
    for group in grouped(of):
        own = [
            _claim(c, by[c["page"]], caveats(by[c["page"]]), related.get(c["id"], ""))
            for _, c in group.claims.iterrows()
        ]
        shown += [f"::::{{container}} faithlab-alike\n{_alike(group)}\n", *own, "::::"] if group.says else own
    counts = f"**{len(of)} claim{'s' * (len(of) > 1)}: {counted_verdicts(of)}.**"
    legend = f'<p class="faithlab-legend">{LEGEND}</p>'
    return "\n\n".join([counts, tiles(of, "", deciding_numbers(pages)), legend, *shown])


def _alike(group: Group) -> str:
    """What claims that are nearly the same share, how many they are, and each by what is its own."""
    named = "".join(
        f'<a class="{slug(c.verdict)}" href="#{anchor(c.id)}">'
        f'<b aria-hidden="true">{sign(c)}</b><span class="sr-only">{c.verdict}: </span> {html.escape(c.own)}</a>'
        for c in group.claims.itertuples()
    )
    return (
        f'<p class="faithlab-alike-head"><strong>{html.escape(group.says)}</strong> '
        f"<span>{len(group.claims)} claims alike:</span> {named}</p>\n"
    )


def _claim(claim: pd.Series, page: Page, caveats: Sequence[tuple[str, str]], related: str = "") -> str:
    """A claim: its sentence as text that is searched, its plot, other numbers like its own, and what is folded."""
    parts = page.parts[page.parts["claim"] == claim["id"]]
    built = page.built[page.built["claim"] == claim["id"]]
    link = f"../../notebooks/{claim['page']}.html"
    profile = f" PROFILE={claim['best']}" if claim["best"] else ""
    rows = [f"<dt>In the paper</dt><dd>{html.escape(claim['where'])}</dd>"]
    if len(parts):
        tested = [TESTS.get(kind, kind) for kind in parts.loc[~parts["premise"], "kind"].drop_duplicates()]
        holds = " A part holds where its interval lies on the claimed side." if tested != [TESTS["counted"]] else ""
        rows.append(f"<dt>Our test</dt><dd>{html.escape('; '.join(tested).capitalize())}.{holds}</dd>")
    head = f"Recorded, {claim['best']}" if claim["best"] else "Evidence"
    rows.append(f"<dt>{head}</dt><dd>{html.escape(claim['evidence'])}</dd>")
    if claim["best"] and not claim["built_verdict"]:
        rows.append("<dt>This build</dt><dd>It does not ask what this claim is judged on.</dd>")
    elif claim["best"]:
        built_says = claim["built"] if claim["verdict"] == UNDECIDED else WANTED.sub("", claim["built"])
        told = html.escape(f"{SYMBOLS[claim['built_verdict']]} {claim['built_verdict']}. {built_says}")
        if len(_missed(parts, built)):
            told += (
                ' <a href="../evidence.html#builds-and-records">Why its intervals may not hold a recorded number</a>.'
            )
        rows.append(f"<dt>This build</dt><dd>{told}</dd>")
    caveats = [c for c in caveats if c[0] != CHANGED]  # of all claims of its page
    if claim.get("changed"):
        what = "its sentence" if claim["changed"] == "sentence" else "parts or bars of it"
        said = f"The page has changed {what} since the recorded run, whose words these are."
        said += f" Today it says: “{claim['today']}”" * (claim["changed"] == "sentence")
        caveats = [*caveats, (CHANGED, said)]
    if caveats:
        rows.append("<dt>Bear in mind</dt><dd>" + " ".join(html.escape(f"{s}: {w}") for s, w in caveats) + "</dd>")
    if (levels := parts.loc[parts["judged_at"] > SHOWN_AT, "judged_at"]).any():
        rows.append(
            f"<dt>Level</dt><dd>Shown are 95&nbsp;% intervals. Of so many parts each is judged at {levels.max():.1%}, "
            "which is wider: what looks decided may be open.</dd>"
        )
    if reasons := list(dict.fromkeys(reason for reason in parts["reason"] if reason)):
        rows.append(f"<dt>Margins</dt><dd>{html.escape('; '.join(reasons))}</dd>")
    rows.append(f'<dt>Measured in</dt><dd><a href="{link}">{html.escape(claim["page"])}</a></dd>')
    rows.append(f"<dt>Run it again</dt><dd><code>make notebook NAME={claim['page']}{profile}</code></dd>")
    address = f"#{anchor(claim['id'])}"
    rows.append(f'<dt>Its address</dt><dd><a href="{address}">{address}</a></dd>')
    counted = ", counted" * bool(claim.get("counted", False))
    between = f"\n{related}\n"  # an empty line ends HTML, and Markdown begins
    shown = in_the_open(parts)
    folded = plot(parts, built, set(parts["part"]) - shown)
    in_print = IN_PRINT.search(claim["evidence"])
    in_print = f" *{in_print[0]}*" if in_print else ""
    more = f"<p>The other parts:</p>{folded}" if folded else ""
    return (
        f"{{#{anchor(claim['id'])} .faithlab-claim}}\n"
        f"**{sign(claim)} {claim['verdict']}{counted}** {claim['claim']}{settled(claim, parts)}{in_print}\n\n"
        f"{plot(parts, built, shown)}\n"
        f"{related and between}"
        f"{why(page.reasons[page.reasons['claim'] == claim['id']]) if claim['verdict'] != REPRODUCED else ''}"
        f'<details class="faithlab-evidence"><summary>Evidence, test and rerun</summary>'
        f"{more}<dl>{''.join(rows)}</dl></details>\n"
    )


def why(asked: pd.DataFrame) -> str:
    """What may be the reason that a claim is not reproduced, folded; nothing where its page asks for none."""
    if not len(asked):
        return ""
    told = once(asked.drop(columns="claim")).to_html(index=False, border=0, classes=LOOKS, justify="left")
    return f'<details class="faithlab-evidence"><summary>Why?</summary>{told}</details>\n'


def _missed(parts: pd.DataFrame, built: pd.DataFrame) -> pd.DataFrame:
    """The recorded numbers of all networks together that this build's interval does not hold."""
    both = parts.merge(built, on=["part", "contrast", "network"], suffixes=("", "_built"))
    outside = (both["value"] < both["low_built"]) | (both["value"] > both["high_built"])
    return both[outside & (both["network"] == POOLED)]


def in_the_open(parts: pd.DataFrame) -> set[str]:
    """The names of the parts of a claim that are not folded: `ROWS`, each outcome's in turn, what fails first."""
    own = parts.drop_duplicates("part")
    turn = own.groupby(["premise", "outcome"]).cumcount()
    order = own.assign(turn=turn, rank=own["outcome"].map(["fails", *OUTCOMES].index))
    return set(order.sort_values(["turn", "premise", "rank"], kind="stable")["part"].iloc[:ROWS])


def plot(parts: pd.DataFrame, built: pd.DataFrame, which: set[str] | None = None) -> str:
    """The forest plot of a claim's parts, all or those named: what claims the same side stands on one scale.

    Empty without parts.
    """
    each = dict(list(parts.groupby("part", sort=False)))
    sides = {name: _claimed(of.iloc[0]) for name, of in each.items()}
    scales = _apart(each, sides)
    first = list(dict.fromkeys(scales.values()))
    outcomes = parts.drop_duplicates("part").set_index("part")["outcome"]

    def place(name):
        """What fails comes first, premises that hold last; between them what is on one scale stands together."""
        return outcomes[name] != "fails", sides[name][-1], first.index(scales[name])

    names = [name for name in sorted(sides, key=place) if which is None or name in which]
    if not names:
        return ""
    rows = []
    for shared, group in itertools.groupby(names, scales.get):
        alike = [name for name in names if scales[name] == shared]
        scale = _scale(parts[parts["part"].isin(alike)], built[built["part"].isin(alike)])
        for name in group:
            rows.append(_row(name, each[name], built[built["part"] == name], scale))
        if scale:
            rows.append(_axis(each[alike[0]].iloc[0], scale))
    return f'<div class="faithlab-forest">{"".join(rows)}</div>'


def _apart(each: Mapping[str, pd.DataFrame], sides: Mapping[str, tuple]) -> dict[str, tuple]:
    """By the name of a part, what those on one scale share: the side, and widths of which none is ten times another."""
    ends = {name: _scale(of, of.iloc[:0]) for name, of in each.items()}
    widths = {name: scale[1] - scale[0] if scale else 0.0 for name, scale in ends.items()}
    found: dict[str, tuple] = {}
    least: dict[tuple, float] = {}
    for name in sorted(widths, key=widths.get):  # the narrowest of a side first
        if widths[name] > TENFOLD * least.get(sides[name], -math.inf):
            least[sides[name]] = widths[name]
        found[name] = (*sides[name], least[sides[name]])
    return {name: found[name] for name in each}


def _claimed(row: pd.Series) -> tuple[float, float, bool, bool]:
    """What parts on one scale have in common: the claimed side, and whether they are counted, and premises."""
    return row["claimed_low"], row["claimed_high"], row["kind"] == "counted", bool(row["premise"])


def _scale(parts: pd.DataFrame, built: pd.DataFrame) -> tuple[float, float] | None:
    """The ends of the axis of parts; none where they are counted."""
    if (parts["kind"] == "counted").all():
        return None
    pooled, beside = (of[of["network"] == POOLED] for of in (parts, built))
    ends = ("value", "low", "high")
    ours = [v for column in ends for v in pooled[column] if math.isfinite(v)]
    bars = [v for column in ("claimed_low", "claimed_high") for v in parts[column] if math.isfinite(v)]
    low, high = min(ours + bars), max(ours + bars)
    width = (high - low) or abs(high) or 1.0
    # What a small build leaves open may be so wide that the recorded numbers would be one dot: it ends at the edge.
    theirs = [v for column in ends for v in beside[column] if low - width < v < high + width]
    theirs += [low - width] * bool((beside["low"] <= low - width).any())
    theirs += [high + width] * bool((beside["high"] >= high + width).any())
    low, high = min([low, *theirs]), max([high, *theirs])
    width = (high - low) or width
    printed = [v for v in parts["printed"] if math.isfinite(v) and low - FAR * width < v < high + FAR * width]
    low, high = min([low, *printed]), max([high, *printed])
    room = 0.04 * ((high - low) or width)
    return low - room, high + room


def _at(value: float, scale: tuple[float, float]) -> float:
    """Where a value stands, in per cent, inside the plot."""
    return min(100.0, max(0.0, 100 * (value - scale[0]) / (scale[1] - scale[0])))


def _row(name: str, part: pd.DataFrame, built: pd.DataFrame, scale: tuple[float, float] | None) -> str:
    """A part of a claim: what it is, its marks, its numbers."""
    pooled, first = part[part["network"] == POOLED], part.iloc[0]
    if scale is None:
        share = first["value"] / first["images"] if first["images"] else 0.0
        text = _cases(first)
        if len(built):
            text += f"; this build {_cases(built.iloc[0]).removesuffix(' cases')}"
        marks, height = f'<i class="count" style="width:{100 * share:.1f}%"></i>', 22
    else:
        worst = deciding(pooled)
        text = interval(worst)
        if len(pooled) > 1:
            enough = f", {int(worst['needed'])} {'is' if worst['needed'] == 1 else 'are'} enough"
            held = enough if worst["needed"] < len(pooled) else ""
            if held and worst["outcome"] == "holds":
                holding = int(inside(pooled).sum())
                held = f", {holding} {'holds' if holding == 1 else 'hold'}{enough}"
            elif worst["outcome"] == "fails":
                against = int((pooled.apply(_where, axis=1) == "fails").sum())
                held += f", {against} on the other side"
            of_those = " of those that hold" * (bool(held) and worst["outcome"] == "holds")
            least = html.unescape(compared(worst["contrast"]))
            text = f"{len(pooled)} comparisons{held}, {sureness(worst)}{of_those} {least}: {text}"
        if math.isfinite(worst["printed"]):
            text += f"; printed {'about ' * (worst['kind'] == 'agrees')}{number(worst['printed'])}"
        own = built[(built["network"] == POOLED) & (built["contrast"] == worst["contrast"])]
        text += stricter(worst, len(pooled))
        if len(own):
            built_row = own.iloc[0]
            same = interval(built_row) == interval(worst)  # as of claims about recorded tables
            text += f"; this build {'the same' if same else interval(built_row)}"
            if len(_missed(worst.to_frame().T, own)):
                text += ", which does not hold the recorded number"
        step = 18 if len(pooled) == 1 else max(5, min(12, 96 // len(pooled)))
        height = max(22, step * len(pooled) + 4)
        marks = _side(first, scale) + "".join(
            _marks(
                part[part["contrast"] == row["contrast"]],
                built,
                scale,
                (i + 0.5) * height / len(pooled),
                several=len(pooled) > 1,
            )
            for i, (_, row) in enumerate(pooled.iterrows())
        )
    premise = "premise: " if first["premise"] else ""
    outcome = first["outcome"]
    sign = f'<b title="{outcome}" aria-hidden="true">{OUTCOMES[outcome]}</b>'
    label = html.escape(f"{outcome}. {text}", quote=True)
    return (
        f'<div class="part {slug(outcome)}"><div class="name">{sign} {premise}{html.escape(words.plain(name))}</div>'
        f'<div class="strip" role="img" aria-label="{label}" style="height:{height}px">{marks}</div>'
        f'<div class="numbers">{_typed(html.escape(text))}</div></div>'
    )


def _typed(text: str) -> str:
    """Numbers with what is printed and what is this build's in the look that they have in tables (HTML)."""
    text = re.sub(r"(?<=; )printed [^;]+", '<span class="faithlab-printed">\\g<0></span>', text)
    return re.sub(r"(?<=; )this build .+", '<span class="faithlab-built">\\g<0></span>', text)


def _side(row: pd.Series, scale: tuple[float, float]) -> str:
    """The claimed side, shaded, and its bars."""
    low, high = _at(row["claimed_low"], scale), _at(row["claimed_high"], scale)
    bars = [v for v in (row["claimed_low"], row["claimed_high"]) if math.isfinite(v)]
    lines = "".join(f'<i class="bar" style="left:{_at(v, scale):.1f}%"></i>' for v in bars)
    return f'<i class="side" style="left:{low:.1f}%;width:{high - low:.1f}%"></i>{lines}'


def _where(row: pd.Series) -> str:
    """On which side one comparison lies, as the outcome that it would have by itself."""
    if row["low"] > row["claimed_low"] and row["high"] < row["claimed_high"]:
        return "holds"
    return "fails" if row["high"] < row["claimed_low"] or row["low"] > row["claimed_high"] else "open"


def _marks(
    contrast: pd.DataFrame, built: pd.DataFrame, scale: tuple[float, float], top: float, *, several: bool = False
) -> str:
    """The marks of one contrast, at a height in pixels; of `several`, each in the colour of its own side."""

    def line(row: pd.Series, kind: str, at: float) -> str:
        text = ""
        if math.isfinite(row["low"]) and math.isfinite(row["high"]):
            low, high = _at(row["low"], scale), _at(row["high"], scale)
            text = f'<i class="ci {kind}" style="left:{low:.1f}%;width:{high - low:.1f}%;top:{at:.1f}px"></i>'
        if math.isfinite(row["value"]):
            text += f'<i class="at {kind}" style="left:{_at(row["value"], scale):.1f}%;top:{at:.1f}px"></i>'
        return text

    pooled = contrast[contrast["network"] == POOLED].iloc[0]
    where = _where(pooled) if several else ""
    other = built[(built["network"] == POOLED) & (built["contrast"] == pooled["contrast"])]
    shift = 3 if len(other) else 0
    marks = line(pooled, where, top - shift)
    each = contrast[~contrast["network"].isin((POOLED, BETWEEN))]
    if len(each) > 1:
        marks += "".join(
            f'<i class="net" style="left:{_at(v, scale):.1f}%;top:{top - shift:.1f}px"></i>'
            for v in each["value"]
            if math.isfinite(v)
        )
    for _, row in other.iterrows():
        marks += line(row, "built", top + shift)
    printed = pooled["printed"]
    if math.isfinite(printed):
        beyond = " before" if printed < scale[0] else " beyond" if printed > scale[1] else ""
        marks += f'<i class="printed{beyond}" style="left:{_at(printed, scale):.1f}%;top:{top:.1f}px"></i>'
    return marks


def _axis(row: pd.Series, scale: tuple[float, float]) -> str:
    """Below parts on one scale: its ends and the bars of the claimed side."""
    low, high = (number(float(f"{end:.2g}")) for end in scale)  # ends of an axis, no findings
    taken = [(0.0, CHARACTER * len(low)), (100 - CHARACTER * len(high), 100.0)]
    named = ""
    for bar in (row["claimed_low"], row["claimed_high"]):
        if not math.isfinite(bar):
            continue
        text, at = number(bar), _at(bar, scale)
        start, end = at - CHARACTER * len(text) / 2, at + CHARACTER * len(text) / 2
        if all(end + CHARACTER / 2 < first or last + CHARACTER / 2 < start for first, last in taken):
            taken.append((start, end))
            named += f'<span style="left:{at:.1f}%">{text}</span>'
    claimed = side(row["claimed_low"], row["claimed_high"])
    return (
        '<div class="part axis" aria-hidden="true"><div class="name"></div><div class="strip">'
        f'<span class="first">{low}</span>{named}<span class="last">{high}</span></div>'
        f'<div class="numbers">claimed: {claimed}</div></div>'
    )
