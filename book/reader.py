"""Executed notebooks as their readers meet them: the answer first, parameters last, code behind one switch.

Only the staged copy is rearranged. The notebook that is run, launched and downloaded keeps the order in which it runs.
"""

import copy
import functools
import html
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import forest
import nbformat
import words
import yaml
from judged import Page, anchor, folder, has_verdicts, of
from nbformat import NotebookNode

from faithstudy import paths
from faithstudy.claims import VERDICTS

ANSWER = "answer"
"""The tag of cells that come right below the box: the figure that shows the answer, or a sentence that says it."""
HEADLINE = "headline"
"""The tag of the cell whose text answers the title in a sentence. The box begins with it."""
WHOSE = ("**Your run**", "**No recorded run**")
"""How a page begins to say that it shows no record."""
PARAMETERS = ("parameters", "injected-parameters")
RERUN = """## Parameters

These are the parameters of this page. To run it with others, name what differs:
`make notebook NAME={name}{params}`. [](/book/fork) says more.
"""


def arranged(
    notebook: NotebookNode, page: Page, caveats: Sequence[tuple[str, str]] = (), differing: Sequence[str] = ()
) -> NotebookNode:
    """A copy of an executed notebook in the order in which it is read.

    Title, box, whose run it is where there is no record, the cells that are tagged as the answer, the text below the
    title, the rest, the parameters, and what ends the page: its provenance, and links to rows that a build has measured
    otherwise. The alternative text of the figure that shows the answer ends with the sentence of the box. A page most
    of whose code is in the open is about its code, and stays as it is.

    Args:
        notebook: executed.
        page: what its run says of claims.
        caveats: what a reader should know before the numbers, as pairs of a badge and a sentence.
        differing: the tables of which a build has measured rows otherwise.

    Raises:
        ValueError: the notebook does not begin with its title.
    """
    folded = [_tagged(c, "hide-input") for c in notebook.cells if c.cell_type == "code" and not _tagged(c, *PARAMETERS)]
    if 2 * sum(folded) <= len(folded):
        return notebook
    cells = [copy.deepcopy(cell) for cell in notebook.cells]
    if not cells or cells[0].cell_type != "markdown" or not cells[0].source.startswith("# "):
        raise ValueError(f"{page.name}: expected a page that begins with its title, a line '# ...', in a text cell")
    title, _, introduction = cells.pop(0).source.partition("\n")
    parameters, cells = _parameters(cells)
    answers = [cell for cell in cells if _tagged(cell, ANSWER)]
    said = _headline(cells)
    for image in [cell.metadata.get("mystnb", {}).get("image", {}) for cell in answers][:1]:
        if image.get("alt") and (answer := _plainly(said or _leading(page))):
            image["alt"] = f"{image['alt'].rstrip()} The answer: {answer}"
    cells = [cell for cell in cells if not _tagged(cell, ANSWER)]
    head = [_text("title", title), _text("box", box(page, caveats, said)), *_whose(cells), *answers]
    head += [_text("introduction", introduction.strip())] if introduction.strip() else []
    end = [cells.pop()] if cells and cells[-1].cell_type == "code" else []  # run.finish(), the provenance
    if parameters:
        given = page.provenance.get("parameters", {}).items()
        numbers = [f"{key}={value}" for key, value in given if type(value) in (int, float)]
        sample = f' PARAMS="{" ".join(numbers[:2])}"' if numbers else ""
        cells += [_text("parameters-last", RERUN.format(name=page.name, params=sample)), *parameters]
    if differing:
        up = "../" * (1 + page.name.count("/"))
        links = [f'<a href="{up}results/{page.name}/differing/{of}.csv" download>{of}</a>' for of in differing]
        end.append(_text("differing", f"Rows that were measured otherwise here: {', '.join(links)}."))
    arrangement = copy.copy(notebook)
    arrangement.cells = [*head, *cells, *end]
    return arrangement


def _parameters(cells: list[NotebookNode]) -> tuple[list[NotebookNode], list[NotebookNode]]:
    """The cells of the parameters, folded, with the text below their heading; and all others."""
    found, others = [], []
    for cell in cells:
        if _tagged(cell, *PARAMETERS):
            cell.metadata["tags"] = [*(t for t in cell.metadata["tags"] if not t.startswith("hide-")), "hide-input"]
            what = f"Parameters {'of this run' if _tagged(cell, PARAMETERS[1]) else 'and what they mean'}"
            cell.metadata["mystnb"] = {"code_prompt_show": what, "code_prompt_hide": what}
            found.append(cell)
        elif cell.cell_type == "markdown" and cell.source.split("\n", 1)[0].strip() == "## Parameters":
            if text := cell.source.partition("\n")[2].strip():
                found.insert(0, _text("parameters-text", text))
        else:
            others.append(cell)
    return found, others


def _headline(cells: Sequence[NotebookNode]) -> str:
    """The text of the cell that is tagged as the headline (HTML), which it leaves to the box; empty without one."""
    for cell in (c for c in cells if c.cell_type == "code" and _tagged(c, HEADLINE)):
        told = [output["data"]["text/markdown"] for output in cell.outputs if "text/markdown" in output.get("data", {})]
        shown, hidden = "The sentence in the box at the top", "Hide the code of that sentence"
        cell.metadata["mystnb"] = {"code_prompt_show": shown, "code_prompt_hide": hidden}
        cell.outputs = []
        text = html.escape(words.plain("".join(told)), quote=False)
        return re.sub(r"\*(.+?)\*", r"<em>\1</em>", re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text))
    return ""


def _whose(cells: Sequence[NotebookNode]) -> list[NotebookNode]:
    """What a page says that shows no record, taken from the cell that says it."""
    for cell in (c for c in cells if c.cell_type == "code"):
        for output in cell.outputs:
            if (text := "".join(output.get("data", {}).get("text/markdown", ""))).startswith(WHOSE):
                cell.outputs.remove(output)
                return [_text("whose", text)]
    return []


def _tagged(cell: NotebookNode, *tags: str) -> bool:
    return any(tag in cell.metadata.get("tags", []) for tag in tags)


def _text(name: str, source: str) -> NotebookNode:
    return nbformat.v4.new_markdown_cell(source, id=f"faithlab-{name}")


def _plainly(said: str) -> str:
    """HTML as plain text."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", said)).split())


def caveats(page: Page, declared: Mapping[str, Sequence[Mapping[str, Any]]] | None = None) -> list[tuple[str, str]]:
    """What a reader should know before the numbers of a page, as pairs of a badge and a sentence.

    Args:
        page: what its run says of claims.
        declared: for a page or its folder, with the parameters for which it is true; None: read from `caveats.yml`.
    """
    declared = _declared(paths.root() / "book" / "caveats.yml") if declared is None else declared
    given = page.provenance.get("parameters", {})
    return [
        (caveat["badge"], caveat["says"])
        for caveat in [*declared.get(page.name.split("/")[0], []), *declared.get(page.name, [])]
        if page.name not in caveat.get("not", ())
        and all(key in given and given[key] == value for key, value in caveat.get("when", {}).items())
    ]


@functools.cache
def _declared(path: Path) -> Mapping[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def box(page: Page, caveats: Sequence[tuple[str, str]] = (), headline: str = "") -> str:
    """The box below a page's title: the answer in a sentence, verdicts, caveats (HTML).

    Args:
        page: what its run says of claims.
        caveats: what a reader should know before the numbers, as pairs of a badge and a sentence.
        headline: the page's own answer to its title (HTML); else the first claim is in the open.
    """
    up = "../" * (1 + page.name.count("/"))
    lines = [f'<p class="faithlab-headline">{headline or _leading(page)}</p>'] if headline or len(page.claims) else []
    counts = page.claims["verdict"].value_counts()
    if badges := [forest.badge(v, f"{counts[v]} {v}") for v in VERDICTS if v in counts]:
        what = f"claim{'s' * (len(page.claims) > 1)} judged here"
        lines.append(f'<p class="faithlab-badges">{"".join(badges)} <span class="what">{what}</span></p>')
        items = "".join(
            f"<li>{forest.badge(c['verdict'], '', _address(c, up))} {forest.sentence(c, of(page, c['id']))}</li>"
            for _, c in page.claims.iterrows()
        )
        lines.append(f"<details><summary>The claims and the numbers that decide</summary><ul>{items}</ul></details>")
    if caveats:
        shown = "".join(
            f'<li><span class="faithlab-caveat">{html.escape(badge)}</span> <span>{html.escape(says)}</span></li>'
            for badge, says in caveats
        )
        lines.append(f'<ul class="faithlab-caveats">{shown}</ul>')
    text = "".join(lines)
    return text and f'<div class="faithlab-box" role="note" aria-label="The answer in short">{text}</div>'


def _leading(page: Page) -> str:
    """The first claim of a page in a sentence (HTML); empty without claims."""
    for _, claim in page.claims.iterrows():
        return forest.sentence(claim, of(page, claim["id"]))
    return ""


def _address(claim: Mapping[str, Any], up: str) -> str:
    """Where a claim is shown with its plot: on its paper's verdict page, where it has one."""
    return f"{up}book/{folder(claim['paper'])}/verdict.html#{anchor(claim['id'])}" * has_verdicts(claim["paper"])
