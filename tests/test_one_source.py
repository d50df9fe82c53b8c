"""No page of the built book shows two values of one quantity, but what is published and what was measured."""

import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from faithstudy import paths

HTML = Path(os.environ.get("FAITHLAB_HTML") or paths.build() / "study" / "html")
ABOUT = ("api", "changelog")  # the code, and what was before
PAGES = [
    p
    for part in ("book", "notebooks")
    for p in sorted((HTML / part).rglob("*.html"))
    if not {p.stem, p.parent.name} & {*ABOUT}
]
SOURCES = ("published", "measured")
"""Names of sources that a table may have."""
OTHERS = re.compile(
    r"this build|(?:the |our )?recorded(?: run)?s?(?: \(.*\))?|printed|ours|your run|quick|study",
    re.IGNORECASE,
)
"""Names of sources that no column and no row may have."""
BESIDE = re.compile(r"\bthis build(?:'s|’s)?\b|\brecorded runs?,? (?:\d|−|profile)|\(recorded run\b", re.IGNORECASE)
"""Words in a text by which a value of one run stands beside that of another."""
QUOTES = ("pre", "code", "script", "style", "nav", "header", "footer")


class Page(HTMLParser):
    """The text of a page without its code, and the heads of its tables: of columns and of rows."""

    def __init__(self, html: str):
        super().__init__()
        self.text, self.heads, self._open = [], [], []
        article = re.search(r"<article.*?</article>", html, re.DOTALL)
        self.feed(article[0] if article else html)

    def handle_starttag(self, tag, attrs):
        if tag == "th":
            self.heads.append("")
        if tag in (*QUOTES, "th"):
            self._open.append(tag)

    def handle_endtag(self, tag):
        if self._open and tag == self._open[-1]:
            self._open.pop()

    def handle_data(self, data):
        if not any(tag in QUOTES for tag in self._open):
            self.text.append(data)
            if self._open:
                self.heads[-1] += data


def faults(html: str) -> list[str]:
    """Where a page shows the value of one run beside that of another."""
    page = Page(html)
    heads = [head.strip() for head in page.heads]
    found = [f"a table has the source {head!r}" for head in heads if OTHERS.fullmatch(head)]
    text = " ".join(" ".join(page.text).split())
    return found + [f"…{text[max(0, m.start() - 40) : m.end() + 40]}…" for m in BESIDE.finditer(text)]


@pytest.mark.skipif(not PAGES, reason=f"no book in {HTML}")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(HTML).as_posix())
def test_no_page_shows_two_values_of_one_quantity(path):
    assert faults(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("html", "count"),
    [
        ("<p>SaCo is 0.3 [0.1, 0.5]; this build 0.4.</p>", 1),
        ("<p>It is 0.3 (recorded run, 1000 images).</p>", 1),
        ("<table><tr><th>published</th><th>measured</th></tr></table>", 0),
        ("<table><tr><th>published</th><th><span>recorded</span></th></tr></table>", 1),
        ("<table><tr><th>Ours</th></tr><tr><th>Recorded (study)</th></tr></table>", 2),
        ("<p>Recorded tables are in the repository.</p><pre>this build</pre>", 0),
    ],
)
def test_a_second_source_is_found(html, count):
    assert len(faults(html)) == count
