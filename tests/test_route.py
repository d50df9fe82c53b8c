"""The foot of a page says where the reading path leads from there, as the path's own page does."""

import re

import route
from sphinx.application import Sphinx

from faithstudy import paths

PATH = """# Where?

## Ten minutes: trust?

1. [](home): first, with
   [](../other/two) on another line.
2. [](three#part): and [elsewhere](https://example.org).

Not a stop: [](four).

## A day: mine

1. [](three): again.
3. [](gone): a page that this book has not.
"""


def test_stops_are_numbered_links_in_their_order():
    ten, day = route.routes(PATH)
    assert (ten.name, ten.heading) == ("Ten minutes", "Ten minutes: trust?")
    assert ten.stops == ((1, "book/home"), (1, "other/two"), (2, "book/three"))
    assert day.stops == ((1, "book/three"), (3, "book/gone"))


def test_the_path_of_the_book_has_three_routes_of_pages_that_exist():
    written = route.routes((paths.root() / "book/path.md").read_text(encoding="utf-8"))
    assert [of.name for of in written] == ["Ten minutes", "An hour", "A day"]
    for of in written:
        numbers = [number for number, _ in of.stops]
        assert numbers == sorted(numbers)
        assert set(numbers) == set(range(1, numbers[-1] + 1)), "as a reader sees them"
        files = [paths.root() / f"{stop}{kind}" for _, stop in of.stops for kind in (".md", ".py", ".rst")]
        assert sum(file.is_file() for file in files) == len(of.stops)
    ten = dict(reversed(written[0].stops))
    assert ten[1] == "book/home"
    assert len(written[0].stops) == len(ten) == 6


def foot(html: str) -> list[str]:
    """The lines of a page's reading path, links as [text](address)."""
    found = re.search(r'<nav class="faithlab-route" aria-label="Reading path">(.*?)</nav>', html)
    said = re.findall("<p>(.*?)</p>", found[1]) if found else []
    return [re.sub(r'<a href="([^"]*)">(.*?)</a>', r"[\2](\1)", line) for line in said]


def test_pages_say_where_one_is_and_what_comes_next(tmp_path):
    source = tmp_path / "source"
    for name, title in {"index": "Index", "book/home": "Home", "other/two": "A < B?", "book/three": "Three"}.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / f"{name}.md").write_text(f"---\norphan: true\n---\n# {title}\n", encoding="utf-8")
    (source / "book/path.md").write_text(f"---\norphan: true\n---\n{PATH}", encoding="utf-8")
    settings = {"extensions": ["myst_parser", "route"], "html_theme": "basic"}
    app = Sphinx(source, None, tmp_path / "html", tmp_path / "doctrees", "html", settings, status=None, warning=None)
    app.build()
    pages = {
        name: (tmp_path / "html" / f"{name}.html").read_text() for name in ("book/home", "other/two", "book/three")
    }
    ten, day = "ten-minutes-trust", "a-day-mine"
    assert foot(pages["book/home"]) == [f"[Ten minutes](path.html#{ten}), 1 of 2. Next: [A &lt; B?](../other/two.html)"]
    (line,) = foot(pages["other/two"])
    assert line == f"[Ten minutes](../book/path.html#{ten}), 1 of 2. Next: [Three](../book/three.html)"
    assert foot(pages["book/three"]) == [
        f"[Ten minutes](path.html#{ten}), 2 of 2: the end. Go on: [A day: mine](path.html#{day})",
        f"[A day](path.html#{day}), 1 of 1: the end.",
    ]
    rendered = (tmp_path / "html/book/path.html").read_text()
    assert foot(rendered) == []
    assert {ten, day} <= set(re.findall(r'id="([^"]+)"', rendered)), "the headings have the addresses that are linked"
