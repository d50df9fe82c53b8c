"""Sphinx extension: at the foot of a page, where the reading path leads from here.

The path is written once, in `path.md`: a heading for each route, numbered stops, links to pages. What stands at the
foot of a page is read from there, so that the two say the same.
"""

import html
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

PATH = "book/path"
"""The page of the reading path."""


@dataclass(frozen=True)
class Route:
    """A route of the reading path.

    Attributes:
        heading: such as "Ten minutes: can I trust a metric?".
        stops: number and page of each stop, such as (2, "notebooks/across/one-image"). Several pages may
            share a number.
    """

    heading: str
    stops: tuple[tuple[int, str], ...]

    @property
    def name(self) -> str:
        """Such as "Ten minutes"."""
        return self.heading.partition(":")[0]


def routes(text: str, page: str = PATH) -> list[Route]:
    """The routes of a reading path that is written in Markdown.

    Args:
        text: of the page; a route is a heading of the second level with a numbered list below it.
        page: its name, to which the links in it are relative.
    """
    found = []
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        items = re.findall(r"^(\d+)\. (.*(?:\n(?!\d+\. ).+)*)", body, re.MULTILINE)
        stops = [
            (int(number), posixpath.normpath(posixpath.join(posixpath.dirname(page), link)))
            for number, item in items
            for link in re.findall(r"\[[^\]]*\]\(((?![a-z]+:)[^)#]+)(?:#[^)]*)?\)", item)
        ]
        if stops:
            found.append(Route(heading.strip(), tuple(stops)))
    return found


def lines(app: Sphinx, page: str) -> Iterator[str]:
    """For each route that stops at a page: where one is on it, and what comes next (HTML)."""
    titles = app.env.titles
    written = routes((Path(app.srcdir) / f"{PATH}.md").read_text(encoding="utf-8"))

    def link(to: str, text: str, at: str = "") -> str:
        address = app.builder.get_relative_uri(page, to) + (f"#{nodes.make_id(at)}" if at else "")
        return f'<a href="{html.escape(address)}">{html.escape(text)}</a>'

    for k, route in enumerate(written):
        stops = [(number, stop) for number, stop in route.stops if stop in titles]
        for i, (number, stop) in enumerate(stops):
            if stop != page:
                continue
            where = f"{link(PATH, route.name, route.heading)}, {number} of {stops[-1][0]}"
            if i + 1 < len(stops):
                yield f"{where}. Next: {link(stops[i + 1][1], titles[stops[i + 1][1]].astext())}"
            elif k + 1 < len(written):
                yield f"{where}: the end. Go on: {link(PATH, written[k + 1].heading, written[k + 1].heading)}"
            else:
                yield f"{where}: the end."


def shown(app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None) -> None:
    """Put the lines below the text of a page."""
    if doctree is not None and PATH in app.env.titles and (found := list(lines(app, page))):
        said = "".join(f"<p>{line}</p>" for line in found)
        context["body"] += f'<nav class="faithlab-route" aria-label="Reading path">{said}</nav>'


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", shown)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
