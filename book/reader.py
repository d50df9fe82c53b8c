"""Executed notebooks as their readers meet them: the answer first, parameters last, code behind one switch.

Only the staged copy is rearranged. The notebook that is run, launched and downloaded keeps the order in which it runs.
"""

import copy
import html
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import forest
import nbformat
import words
import yaml
from judged import CHANGED, Page, anchor, folder
from judged import COUNTED as SIGN
from nbformat import NotebookNode

from faithstudy import paths
from faithstudy.claims import VERDICTS

ANSWER = "answer"
"""The tag of cells that come right below the box: the figure that shows the answer, or a sentence that says it."""
HEADLINE = "headline"
"""The tag of the cell whose text answers the title in a sentence. The box begins with it, not with the first claim."""
PARAMETERS = ("parameters", "injected-parameters")

RERUN = """## Parameters

These are the parameters of this page. To run it with others, name what differs, here for example with the values of
this build: `make notebook NAME={name}{params}`. [](/book/fork) says more.
"""


def arranged(
    notebook: NotebookNode, page: Page, caveats: Sequence[tuple[str, str]] = (), recorded: str = ""
) -> NotebookNode:
    """A copy of an executed notebook in the order in which it is read.

    Title, box, what a recorded run has to show, the cells that are tagged as the answer, the text below the title, the
    rest, the parameters, and what ends the page (its provenance). The alternative text of the figure that shows the
    answer ends with the sentence of the box: whoever cannot see the figure is told what it shows. A page most of whose
    code is in the open is about its code, and stays as it is.

    Args:
        notebook: executed.
        page: what its run says of claims.
        caveats: what a reader should know before the numbers, as pairs of a badge and a sentence.
        recorded: of a recorded run what this build cannot show, in Markdown.

    Raises:
        ValueError: the notebook does not begin with its title.
    """
    folded = [_tagged(c, "hide-input") for c in notebook.cells if c.cell_type == "code" and not _parameter(c)]
    if 2 * sum(folded) <= len(folded):
        return notebook
    cells = [copy.deepcopy(cell) for cell in notebook.cells]
    if not cells or cells[0].cell_type != "markdown" or not cells[0].source.startswith("# "):
        raise ValueError(f"{page.name}: expected a page that begins with its title, a line '# ...', in a text cell")
    title, _, introduction = cells.pop(0).source.partition("\n")
    parameters, cells = _parameters(cells)
    answers = [cell for cell in cells if _tagged(cell, ANSWER)]
    said = _headline(cells)
    _tell(answers, page, said)
    cells = [cell for cell in cells if not _tagged(cell, ANSWER)]
    head = [_text("title", title), _text("box", box(page, caveats, said))]
    head += [_text("recorded", recorded)] if recorded else []
    head += answers
    if introduction.strip():
        head.append(_text("introduction", introduction.strip()))
    end = [cells.pop()] if cells and cells[-1].cell_type == "code" else []  # run.finish(), the provenance
    if shown := _recorded_claims(page):
        cells.append(_text("recorded-claims", shown))
    if parameters:
        given = " ".join(f"{key}={value}" for key, value in page.build.get("parameters", {}).items() if _plain(value))
        sample = f' PARAMS="{" ".join(given.split()[:2])}"' if given else ""
        cells += [_text("parameters-last", RERUN.format(name=page.name, params=sample)), *parameters]
    arrangement = copy.copy(notebook)
    arrangement.cells = [*head, *cells, *end]
    return arrangement


def _parameters(cells: list[NotebookNode]) -> tuple[list[NotebookNode], list[NotebookNode]]:
    """The cells of the parameters, folded, without their heading; and all others, with the text below that heading."""
    found, others = [], []
    for cell in cells:
        if _parameter(cell):
            cell.metadata["tags"] = [*(t for t in cell.metadata["tags"] if not t.startswith("hide-")), "hide-input"]
            what = "of this run" if _tagged(cell, PARAMETERS[1]) else "and what they mean"
            cell.metadata["mystnb"] = {
                "code_prompt_show": f"Parameters {what}",
                "code_prompt_hide": f"Parameters {what}",
            }
            found.append(cell)
        elif cell.cell_type == "markdown" and cell.source.split("\n", 1)[0].strip() == "## Parameters":
            if text := cell.source.partition("\n")[2].strip():
                found.insert(0, _text("parameters-text", text))
        else:
            others.append(cell)
    return found, others


def _headline(cells: Sequence[NotebookNode]) -> str:
    """What the cell that is tagged as the headline says (HTML), which it leaves to the box; nothing where none does."""
    for cell in (c for c in cells if c.cell_type == "code" and _tagged(c, HEADLINE)):
        told = [output["data"]["text/markdown"] for output in cell.outputs if "text/markdown" in output.get("data", {})]
        shown, hidden = ("The sentence in the box at the top", "Hide the code of that sentence")
        cell.metadata["mystnb"] = {"code_prompt_show": shown, "code_prompt_hide": hidden}
        cell.outputs = []
        text = html.escape(words.plain("".join(told)), quote=False)
        return re.sub(r"\*(.+?)\*", r"<em>\1</em>", re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text))
    return ""


def _tell(answers: Sequence[NotebookNode], page: Page, headline: str) -> None:
    """End the alternative text of the first figure among some cells with the answer of the page, where it has one."""
    said = f"The answer, which may rest on more than this figure: {_plainly(headline)}" if headline else answer(page)
    for cell in answers if said else ():
        image = cell.metadata.get("mystnb", {}).get("image", {})
        if image.get("alt"):
            image["alt"] = f"{image['alt'].rstrip()} {said}"
            return


def _tagged(cell: NotebookNode, tag: str) -> bool:
    return tag in cell.metadata.get("tags", [])


def _parameter(cell: NotebookNode) -> bool:
    return any(_tagged(cell, tag) for tag in PARAMETERS)


def _plain(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(name: str, source: str) -> NotebookNode:
    return nbformat.v4.new_markdown_cell(source, id=f"faithlab-{name}")


def caveats(page: Page, declared: Mapping[str, Sequence[Mapping[str, Any]]] | None = None) -> list[tuple[str, str]]:
    """What a reader should know before the numbers of a page, as pairs of a badge and a sentence.

    Declared ones stand in `caveats.yml`, for a page or its folder, with the parameters for which they are true. One
    follows from the record: that a claim was changed after the run that judged it.

    Args:
        page: what its run says of claims.
        declared: instead of that file.
    """
    if declared is None:
        declared = yaml.safe_load((paths.root() / "book" / "caveats.yml").read_text(encoding="utf-8"))
    given = page.provenance.get("parameters", {})
    known = [*declared.get(page.name.split("/")[0], []), *declared.get(page.name, [])]
    found = [
        (c["badge"], c["says"])
        for c in known
        if page.name not in c.get("not", ())
        and all(key in given and given[key] == value for key, value in c.get("when", {}).items())
    ]
    changed = page.claims[page.claims["changed"] != ""] if "changed" in page.claims else page.claims[:0]
    if len(changed):
        which = "; ".join(
            f"“{said.rstrip('.')}”" + " (with other parts or bars)" * (what == "bars")
            for said, what in zip(changed["claim"], changed["changed"], strict=True)
        )
        found.append((CHANGED, f"The page has changed these claims since the recorded run, which judged: {which}."))
    return found


def box(page: Page, caveats: Sequence[tuple[str, str]] = (), headline: str = "") -> str:
    """The box below a page's title: verdicts, the answer in a sentence, whom it speaks of, caveats (HTML).

    Args:
        page: what its run says of claims.
        caveats: what a reader should know before the numbers, as pairs of a badge and a sentence.
        headline: the page's own answer to its title (HTML), which then comes first, and all claims are folded.
    """
    up = "../" * (1 + page.name.count("/"))
    lines = [f'<p class="faithlab-headline">{headline}</p>'] if headline else []
    led = 0 if headline else 1  # claims in the open
    linked = {c.id: _address(c, up) for c in page.claims.itertuples()}
    counts = page.claims["verdict"].value_counts()
    badges = []
    for verdict in (v for v in VERDICTS if v in counts):
        first = page.claims.loc[page.claims["verdict"] == verdict, "id"].iloc[0]
        of = page.claims[page.claims["verdict"] == verdict]
        facts = int(of["counted"].sum()) if "counted" in of else 0
        text = f"{counts[verdict]} {verdict}" + (f", {SIGN} {facts} counted" if 0 < facts < len(of) else "")
        badges.append(forest.badge(verdict, text, linked[first], counted=facts == len(of)))
    if badges:
        what = f"claim{'s' * (len(page.claims) > 1)} judged here"
        lines.append(f'<p class="faithlab-badges">{"".join(badges)} <span class="what">{what}</span></p>')
        lines += [
            f"<p>{forest.sentence(lead, page.parts[page.parts['claim'] == lead['id']])}</p>"
            for _, lead in page.claims.iloc[:led].iterrows()
        ]
    if len(page.claims) > led:
        items = "".join(
            f"<li>{forest.badge(c['verdict'], c['verdict'], linked[c['id']], counted=bool(c.get('counted', False)))} "
            f"{forest.sentence(c, page.parts[page.parts['claim'] == c['id']])}</li>"
            for _, c in page.claims.iloc[led:].iterrows()
        )
        count = len(page.claims) - led
        more = f"{count} {'more ' * led}claim{'s' * (count > 1)}"
        lines.append(f"<details><summary>{more}</summary><ul>{items}</ul></details>")
    lines.append(f'<p class="faithlab-whom">{_whom(page, bool(headline))}</p>')
    if caveats:
        shown = "".join(
            f'<li><span class="faithlab-caveat">{html.escape(badge)}</span> <span>{html.escape(says)}</span></li>'
            for badge, says in caveats
        )
        lines.append(f'<ul class="faithlab-caveats">{shown}</ul>')
    return f'<div class="faithlab-box" role="note" aria-label="The answer in short">{"".join(lines)}</div>'


def answer(page: Page) -> str:
    """The first sentence of the box in plain text, and whose numbers it has; nothing of a page without claims."""
    if page.claims.empty:
        return ""
    lead = page.claims.iloc[0]
    said = forest.sentence(lead, page.parts[page.parts["claim"] == lead["id"]])
    run = (
        f"the recorded run, {lead['best']} profile" if lead["best"] else f"this build, {page.build['profile']} profile"
    )
    return f"The answer of {run}: {_plainly(said)}"


def _plainly(said: str) -> str:
    """HTML as plain text."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", said)).split())


def _address(claim: Any, up: str) -> str:
    """Where a claim is shown with its plot: on its paper's verdict page, where it has one, or below on the page."""
    if _verdict_page(claim.paper):
        return f"{up}book/{folder(claim.paper)}/verdict.html#{anchor(claim.id)}"
    return f"#{anchor(claim.id)}" if claim.best else ""


def _verdict_page(paper: str) -> bool:
    """Whether a paper has a page for its verdict."""
    return (paths.root() / "book" / folder(paper) / "verdict.md").is_file()


def _recorded_claims(page: Page) -> str:
    """Forest plots of the recorded claims of a page that has no verdict page to show them, in Markdown."""
    own = page.claims[[bool(c.best) and not _verdict_page(c.paper) for c in page.claims.itertuples()]]
    lines = []
    for _, claim in own.iterrows():
        parts, built = (of[of["claim"] == claim["id"]] for of in (page.parts, page.built))
        shown = forest.in_the_open(parts)
        folded = forest.plot(parts, built, set(parts["part"]) - shown)
        lines.append(
            f'<p class="faithlab-claim" id="{anchor(claim["id"])}">'
            f"{forest.badge(claim['verdict'], claim['verdict'], counted=bool(claim.get('counted', False)))} "
            f"{html.escape(claim['claim'])}{forest.settled(claim, parts)}</p>{forest.plot(parts, built, shown)}"
            f'<details class="faithlab-evidence"><summary>Evidence and the other parts</summary>'
            f"<p>{html.escape(claim['evidence'])}</p>{folded}</details>"
        )
    if not lines:
        return ""
    legend = f'<p class="faithlab-legend">{forest.LEGEND}</p>'
    return "\n\n".join(["## The claims as recorded", legend, *lines])


def _whom(page: Page, headed: bool = False) -> str:
    """Networks, data and inputs, and the run whose numbers head; where a sentence heads, it says its own."""
    p = page.provenance
    kept = bool(len(page.claims)) and bool((page.claims["best"] != "").any())
    run = f"recorded run, {p['profile']} profile" if kept else f"this build, {p['profile']} profile"
    found = forest.spoken_of(page.parts, p)
    # What is counted says itself of how many inputs it is, which may be fewer than the page asks about.
    only_counted = len(page.parts) > 0 and bool((page.parts["kind"] == "counted").all())
    if "inputs" not in found and not only_counted and (counted := _counted(p)):
        found |= {"inputs": counted}
    known = [html.escape(found[key]) for key in ("networks", "inputs") if key in found]
    said = f"{'The claims speak' if headed else 'Speaks'} of {' · '.join([*known, html.escape(run)])}."
    if not known:
        said = f"The numbers {'below ' * headed}are those of {'the ' * kept}{html.escape(run)}."
    if not len(page.claims):
        whose = ", ".join([html.escape(run), *reversed(known)])
        said = f"No claim is judged here. The numbers {'below ' * headed}are those of {whose}."
        if larger := _larger(page):
            said += f" Beside them, where a column says “recorded”, stand those of {html.escape(larger)}."
    if kept:
        size = ", ".join(word for word in (f"{page.build['profile']} profile", _counted(page.build)) if word)
        said += " Figures and tables below are of this build, unless they or the text beside them say “recorded”: "
        said += f"{html.escape(size)}."
    up = "../" * (1 + page.name.count("/"))
    return f'{said} <a href="{up}book/glossary.html">Glossary</a>.'


COUNTED = ("images", "series", "texts", "vehicles", "photographs")
"""Parameters that say how many inputs of a kind a page asks about."""


def _counted(run: Mapping[str, Any]) -> str:
    """How many inputs of each kind a run asked about."""
    given = run.get("parameters", {})
    found = [f"{given[of]:,} {of}" for of in COUNTED if isinstance(given.get(of), int)]
    return ", ".join(found[:-1]) + (" and " if len(found) > 1 else "") + "".join(found[-1:])


def _larger(page: Page) -> str:
    """In words, the recorded run of the profile study or paper that stands beside a build without claims."""
    for profile in ("paper", "study"):
        told = paths.recorded(page.name, profile) / "provenance.json"
        if told.is_file() and page.provenance["profile"] != profile:
            counted = _counted(json.loads(told.read_text(encoding="utf-8")))
            return ", ".join([f"a recorded run, {profile} profile", *([counted] if counted else [])])
    return ""
