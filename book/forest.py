"""Claims as a reader sees them: a badge, a sentence with the number that decides, a forest plot and a table."""

import html
import math
import textwrap
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import words
from judged import APART, SYMBOLS, Page, anchor, apart, folder, grouped, of

from faithstudy import diagnostics, plots
from faithstudy.claims import CONTRADICTED, PARTLY, REPRODUCED, UNDECIDED, UNTESTED, VERDICTS
from faithstudy.claims.verdicts import (
    BETWEEN,
    MOSTLY_FAILS,
    NO,
    NOT_KNOWN,
    OWN,
    POOLED,
    REFUTED_IN_PART,
    SIZES,
    YES,
    deciding,
    tally,
    unit_of,
)
from faithstudy.display_names import plain
from faithstudy.numbers import interval, number, places

DECIDES = {
    REPRODUCED: ("holds",),
    CONTRADICTED: ("fails",),
    PARTLY: ("depends on the network", "fails"),
    MOSTLY_FAILS: ("fails",),
    REFUTED_IN_PART: ("fails",),
    UNDECIDED: ("open",),
    UNTESTED: ("fails", "depends on the network", "open"),
}
KINDS = {REPRODUCED: "holds", UNDECIDED: "open", UNTESTED: "open", PARTLY: "depends"}
"""The look of a badge, by verdict; of what is not here that of a failure."""
OFTEN = 0.25
"""A random order that is the same for all inputs satisfies a claim so often: the claim says little."""
LOOKED = "Judged after a first look"
"""The badge of a page whose inputs were made more after a verdict was open."""
"""Outcomes of the parts that speak for a verdict, the first that there is; of an untested claim, of its premises."""
COLOURS = {"holds": "#0b6e4f", "fails": "#b3261e", "depends on the network": "#8a5000", "open": "#4f5b67"}
ROWS = 24
"""Lines of a forest plot; the table has all."""
TENFOLD = 10
"""Estimates whose widths differ more are on axes of their own: the narrow ones would be dots."""
FEW = 4
"""Networks that have a column each."""
LINE, AXIS, TITLE = 0.17, 0.34, 0.24
"""Heights in a forest plot, in inches."""
LEFT, WIDTH, SIZE = 0.36, 0.32, 9.5
"""Where its axes begin and how wide they are, as shares of a column; the size of its text, in points."""
LEGEND = (
    "In the plots: ● estimate and 95 % interval, ○ each network, ◆ published, shaded: the claimed side. Green holds, "
    "red fails, brown depends on the network, grey is open.\n"
)


def ruled(verdict: str) -> str:
    """The verdict of the rule, also where a finding of this study is called otherwise."""
    return next((by_rule for by_rule, name in OWN.items() if name == verdict), verdict)


def badge(verdict: str, text: str = "", href: str = "") -> str:
    """A badge of a verdict, a link where it has somewhere to lead."""
    inside = f'<span aria-hidden="true">{SYMBOLS[verdict]}</span> {html.escape(text or verdict)}'
    kind = f'class="faithlab-badge {KINDS.get(ruled(verdict), "fails")}"'
    return f'<a {kind} href="{html.escape(href)}">{inside}</a>' if href else f"<span {kind}>{inside}</span>"


def side(row: pd.Series) -> str:
    """The claimed side in words."""
    low, high = row["claimed_low"], row["claimed_high"]
    if row["kind"] == "counted":
        return "all cases"
    if math.isfinite(low) and math.isfinite(high):
        return f"{number(low)} to {number(high)}"
    return f"above {number(low)}" if math.isfinite(low) else f"below {number(high)}"


def measured(row: pd.Series) -> str:
    """An estimate with its interval, or how many cases are as claimed."""
    if row["kind"] == "counted" and row["images"] == 1:
        return "as claimed" if row["outcome"] == "holds" else "not as claimed"
    if row["kind"] == "counted":
        return f"{row['value']:.0f} of {row['images']:.0f} cases"
    return interval(row["value"], row["low"], row["high"])


def telling(verdict: str, parts: pd.DataFrame) -> pd.Series:
    """The row of the contrast that decides a claim."""
    verdict = ruled(verdict)
    rows = parts[(parts["network"] == POOLED) & (parts["premise"] == (verdict == UNTESTED))]
    rows = next((own for outcome in DECIDES[verdict] if len(own := rows[rows["outcome"] == outcome])), rows)
    estimated = rows[rows["kind"] != "counted"]
    return deciding(estimated) if len(estimated) else rows.iloc[0]


def decisive(verdict: str, parts: pd.DataFrame) -> str:
    """The number that decides a claim: its part and contrast, the estimate, the claimed side."""
    if parts.empty:
        return ""
    row = telling(verdict, parts)
    own = parts[(parts["part"] == row["part"]) & (parts["network"] == POOLED)]
    contrast = f", {row['contrast']}" * (len(own) > 1)
    inputs = "" if row["kind"] == "counted" else f"; {number(row['images'], 0)} {unit_of(parts, row['images'])}"
    return f"{row['part']}{contrast}: {measured(row)} (claimed: {side(row)}{inputs})"


def sentence(claim: pd.Series, parts: pd.DataFrame) -> str:
    """A claim, its verdict with its counts and the number that decides it (HTML)."""
    said = f"“{html.escape(claim['claim'].rstrip('.'))}”: <strong>{claim['verdict']}</strong>"
    if ruled(claim["verdict"]) != REPRODUCED and (counts := tally(parts)):
        said += f" ({html.escape(counts)})"
    why = claim.get("untested") or decisive(claim["verdict"], parts)
    return f"{said}. {html.escape(why)}".rstrip(". ") + "."


def beside(claim: pd.Series, parts: pd.DataFrame, caveats: Sequence[tuple[str, str]] = ()) -> str:
    """What stands beside a verdict in a list of claims."""
    said = [text for column, text in APART.items() if claim[column]]
    if ruled(claim["verdict"]) != REPRODUCED:
        said.append(tally(parts))
    else:
        sizes = [f"{claim[size]:.0f} {size}" for size in SIZES if claim[size] > 0]
        said.append("printed numbers: " * bool(sizes) + ", ".join(sizes))
        said.append(f"over other trainings: {claim['generalises']}" * bool(claim["generalises"]))
        said.append(f"a random order satisfies it in {claim['stable']:.0%}" if claim["stable"] > OFTEN else "")
    said.append("after a first look" * any(badge == LOOKED for badge, _ in caveats))
    return "; ".join(filter(None, said))


def counted(claims: pd.DataFrame) -> str:
    """How many claims have which verdict, in words; those that are left out of sums at the end."""
    counts, left = claims.loc[~apart(claims), "verdict"].value_counts(), apart(claims).sum()
    said = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if verdict in counts]
    return ", ".join(said + [f"{left} true by construction or passed by a blind control"] * bool(left))


def overview(claims: pd.DataFrame) -> str:
    """The scoreboard of the home page in Markdown: verdicts by paper, and what stands beside the reproduced claims."""
    left = apart(claims)
    names = [v for v in VERDICTS if ruled(v) == v or (claims["verdict"] == v).any()]
    papers = [(f"[{paper}]({folder(paper)}/verdict)", own) for paper, own in claims.groupby("paper", sort=False)]
    verdicts = words.markdown(
        {"Paper": name, "Claims": len(own)}
        | {f"{SYMBOLS[v]} {v}": int((own.loc[~left, "verdict"] == v).sum()) for v in names}
        | {"Left out": int(left[own.index].sum())}
        for name, own in papers
    )
    claims = claims[~left & (claims["verdict"] == REPRODUCED)]
    papers = [(name, claims[claims.index.isin(own.index)]) for name, own in papers]
    said = words.markdown(
        {"Paper": name, "Reproduced": len(own)}
        | {f"Other trainings: {v}": int((own["generalises"] == v).sum()) for v in (YES, NOT_KNOWN, NO)}
        | {f"A random order does in over {OFTEN:.0%}": int((own["stable"] > OFTEN).sum())}
        | {f"Numbers: {size}": int(own[size].sum()) for size in SIZES}
        for name, own in papers
    )
    return (
        f"{verdicts}\n*Left out*: {'; '.join(APART.values())}.\n\n"
        "*Reproduced* speaks of the sign. Of the reproduced claims, and of the numbers that are printed for them:\n\n"
        + said
    )


def shown(claims: Sequence[tuple[str, pd.DataFrame]]) -> list[tuple[str, pd.DataFrame]]:
    """Panels of a forest plot: a title and pooled estimates that share the claimed side and a scale.

    Premises that hold are left to the table.
    Where a claim has more contrasts than there are lines, its parts have one line each, of the contrast that decides.
    """
    panels, room = [], max(6, ROWS // len(claims))
    for title, parts in claims:
        rows = parts[(parts["network"] == POOLED) & (parts["kind"] != "counted") & parts["value"].notna()]
        rows = rows[~rows["premise"] | (rows["outcome"] != "holds")]
        if len(rows) > room:
            rows = pd.DataFrame([deciding(own) for _, own in rows.groupby("part", sort=False)])
            rows = rows.iloc[rows["outcome"].map(["fails", *COLOURS].index).argsort(kind="stable")][:room]
        ends = rows[["value", "low", "high", "claimed_low", "claimed_high"]].replace([-np.inf, np.inf], np.nan)
        width, scales = ends.max(axis=1) - ends.min(axis=1), pd.Series(0.0, rows.index)
        for _, own in rows.groupby(["premise", "claimed_low", "claimed_high"]):
            least = math.nan
            for place in width[own.index].sort_values().index:
                least = least if width[place] <= TENFOLD * least else width[place]
                scales[place] = least
        for (premise, *_), own in rows.groupby(["premise", "claimed_low", "claimed_high", scales], sort=False):
            panels.append((" · ".join(filter(None, (title, "premise" * bool(premise)))), own))
    return panels


def figure(claims: Sequence[tuple[str, pd.DataFrame]]) -> plt.Figure | None:
    """The forest plot of claims: estimates with intervals, each network, what is published, and the claimed side.

    Args:
        claims: a title, which may be empty, and the parts of each.

    Returns:
        None where nothing is estimated.
    """
    if not (panels := shown(claims)):
        return None
    parts = pd.concat([parts for _, parts in claims])
    each = parts[~parts["network"].isin((POOLED, BETWEEN))].groupby(["claim", "part", "contrast"])["value"].agg(list)
    several = parts[parts["network"] == POOLED].groupby(["claim", "part"]).size() > 1
    labels = [[_label(row, several) for _, row in own.iterrows()] for _, own in panels]
    heights = [LINE * sum(1.2 + text.count("\n") for text in texts) for texts in labels]
    tall = sum(heights) + len(panels) * AXIS + TITLE * sum(bool(title) for title, _ in panels) + 0.05
    sheet, top = plt.figure(figsize=(plots.COLUMN, tall), layout="none"), 1 - 0.05 / tall
    for (title, own), texts, height in zip(panels, labels, heights, strict=True):
        top -= (height + TITLE * bool(title)) / tall
        axes = sheet.add_axes((LEFT, top, WIDTH, height / tall))
        top -= AXIS / tall
        _panel(axes, own, texts, each)
        axes.set_title(title, fontsize=SIZE, loc="left", x=-LEFT / WIDTH, fontweight="bold")
    plt.close(sheet)
    return sheet


def _panel(axes: plt.Axes, own: pd.DataFrame, texts: Sequence[str], each: pd.Series) -> None:
    """Draw estimates that share the claimed side and a scale; `each` has the estimates of the networks."""
    lines = np.array([1.2 + text.count("\n") for text in texts])
    at = np.cumsum(lines) - lines / 2
    networks = [each.get((row["claim"], row["part"], row["contrast"]), []) for _, row in own.iterrows()]
    ours = np.append(
        own[["value", "low", "high", "claimed_low", "claimed_high"]].to_numpy(float), np.concatenate(networks)
    )
    low, high = ours[np.isfinite(ours)].min(), ours[np.isfinite(ours)].max()
    room = 0.05 * ((high - low) or abs(high) or 1.0)
    ends = (low - room, high + room)
    axes.set(xlim=ends, ylim=(lines.sum(), 0))
    axes.axvspan(*np.clip(own.iloc[0][["claimed_low", "claimed_high"]].astype(float), *ends), color="#dcebee")
    for y, (_, row), values in zip(at, own.iterrows(), networks, strict=True):
        colour = COLOURS[row["outcome"]]
        axes.plot([row["low"], row["high"]], [y, y], color=colour)
        axes.plot(row["value"], y, "o", color=colour, markersize=6)
        axes.plot(values, [y] * len(values), "o", color=colour, fillstyle="none", markersize=4)
        axes.plot(np.clip(row["printed"], *ends), y, "D", color="#a65200", markersize=5)
        axes.text(1.03, y, measured(row), transform=axes.get_yaxis_transform(), va="center", fontsize=SIZE)
    axes.set_yticks(at, texts)
    axes.tick_params(labelsize=SIZE, length=0)
    axes.locator_params(axis="x", nbins=4)
    axes.xaxis.set_major_formatter(lambda value, _: number(value))
    axes.grid(False, axis="y")


def _label(row: pd.Series, several: pd.Series) -> str:
    """The name of a line, wrapped: the part, and the contrast where it has several."""
    text = row["part"] + (f": {row['contrast']}" if several[row["claim"], row["part"]] else "")
    return "\n".join(textwrap.wrap(text, 30)[:3])


def numbers(parts: pd.DataFrame) -> str:
    """Every contrast of a claim: its estimate, each network's, what is published and the claimed side (HTML)."""
    each = parts[~parts["network"].isin((POOLED, BETWEEN, ""))]
    names, rows = list(dict.fromkeys(each["network"])), []
    for _, row in parts[parts["network"] == POOLED].iterrows():
        digits = places(row["low"], row["high"])
        own = each[(each["part"] == row["part"]) & (each["contrast"] == row["contrast"])]
        own = {name: number(value, digits) for name, value in zip(own["network"], own["value"], strict=True)}
        told = {name: own.get(name, "") for name in names}
        if len(names) > FEW:
            told = {"networks": "; ".join(f"{name} {value}" for name, value in own.items())}
        rows.append(
            {
                "part": "premise: " * bool(row["premise"]) + row["part"],
                "contrast": row["contrast"],
                "outcome": row["outcome"],
            }
            | {"measured": measured(row)}
            | (told if len(names) > 1 else {})
            | {"published": number(row["printed"]), "claimed": side(row)}
        )
    table = pd.DataFrame(rows)
    table["part"] = table["part"].where(table["part"] != table["part"].shift(), "")
    filled = [name for name in table if not table[name].isin(("", "–")).all()]
    return f'<div class="faithlab-scroll">{_html(table[filled])}</div>'


def _html(table: pd.DataFrame) -> str:
    return table.to_html(index=False, border=0, classes=diagnostics.LOOKS, justify="left")


def verdicts(pages: Sequence[Page], paper: str, target: Path, caveats=lambda page: []) -> str:
    """The verdict page of a paper, in Markdown: a table of its claims, then each with its plot and its numbers.

    Args:
        pages: all pages with claims.
        paper: its name.
        target: a folder at the root of the site, `forest`, for the plots.
        caveats: gives the caveats of a page, as pairs of a badge and a sentence.
    """
    claims = pd.concat([page.claims[page.claims["paper"] == paper] for page in pages], ignore_index=True)
    by = {page.name: page for page in pages}
    listed = words.markdown(
        {"": SYMBOLS[claim["verdict"]], "Claim": f"[{plain(claim['claim'])}](#{anchor(claim['id'])})"}
        | {"Verdict": claim["verdict"]}
        | {"Beside it": beside(claim, of(by[claim["page"]], claim["id"]), caveats(by[claim["page"]]))}
        for _, claim in claims.iterrows()
    )
    blocks = [f"**{len(claims)} claims: {counted(claims)}.**", listed, LEGEND]
    target.mkdir(parents=True, exist_ok=True)
    for says, group in grouped(claims):
        drawn, shown = figure([(c["own"], of(by[c["page"]], c["id"])) for _, c in group.iterrows()]), ""
        if drawn:
            name = f"{group['id'].iloc[0]}.svg"
            drawn.savefig(target / name, metadata={"Date": None})
            alt = html.escape(f"Forest plot: {says or group['claim'].iloc[0]} Its numbers stand below.", quote=True)
            size = "width={:.0f} height={:.0f}".format(*96 * drawn.get_size_inches())
            shown = f'<figure><img src="../../forest/{name}" alt="{alt}" {size} loading="lazy"></figure>\n\n'
        if says:
            blocks += [f"## {says}", shown]
        for _, claim in group.iterrows():
            page = by[claim["page"]]
            blocks.append(_claim(claim, page, caveats(page), "" if says else shown))
    return "\n\n".join(blocks) + "\n"


def _claim(claim: pd.Series, page: Page, caveats: Sequence[tuple[str, str]], shown: str) -> str:
    """A claim: its verdict and sentence, its plot, and folded its numbers, what may be the reason, and its test."""
    parts, reasons = of(page, claim["id"]), page.reasons[page.reasons["claim"] == claim["id"]]
    about = {
        "In the paper": html.escape(claim["where"]),
        "Bear in mind": html.escape(" ".join(f"{badge}: {says}" for badge, says in caveats)),
        "Margins": html.escape("; ".join(dict.fromkeys(filter(None, parts["reason"])))),
        "Measured in": f'<a href="../../notebooks/{page.name}.html">{page.name}</a>, '
        f"<code>make notebook NAME={page.name}</code>",
    }
    if len(parts.loc[~parts["premise"], "part"].unique()) > 1:
        about["Level"] = "Intervals are of 95 %; of several parts each has to be clearer (Holm), and may be open there."
    terms = "".join(f"<dt>{term}</dt><dd>{text}</dd>" for term, text in about.items() if text)
    why = _html(diagnostics.once(reasons.drop(columns="claim"))) if len(reasons) else ""
    folds = {
        "Why?": why * (ruled(claim["verdict"]) != REPRODUCED),
        "All numbers": numbers(parts) if len(parts) else "",
    }
    folds["Test, caveats and rerun"] = f"<dl>{terms}</dl>"
    folded = "".join(
        f'<details class="faithlab-evidence"><summary>{what}</summary>{text}</details>\n'
        for what, text in folds.items()
        if text
    )
    return (
        f"{{#{anchor(claim['id'])} .faithlab-claim}}\n"
        f"**{SYMBOLS[claim['verdict']]} {claim['verdict']}.** {plain(claim['claim'])} {plain(claim['evidence'])}\n\n"
        f"{shown}{folded}"
    )
