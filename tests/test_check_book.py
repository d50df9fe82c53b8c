"""The browser check finds each kind of fault, and nothing in a page without one."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

import check_book

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, check_book.BROWSERS)), reason="needs a browser: apt-get install chromium"
)

PAGE = "<!doctype html><html lang=en><meta charset=utf-8><title>t</title><body><article>{}</article></body>"
SOUND = '<h1 id="top">A</h1><a href="other.html#there">other</a><a href="table.csv">table</a><table><tr><td>1</table>'
DRAWING = (
    '<img alt="drawing" style="width: 100px" src="data:image/svg+xml,<svg xmlns=%22http://www.w3.org/2000/svg%22 '
    'viewBox=%220 0 100 50%22>{}</svg>">'
)
FAULTS = {
    "dead link: book/gone.html": '<a href="gone.html">x</a>',
    "dead anchor: book/other.html#gone": '<a href="other.html#gone">x</a>',
    "image does not show: gone.png": '<img src="gone.png" alt="x">',
    "image without alternative text": '<img src="data:image/svg+xml,<svg xmlns=%22http://www.w3.org/2000/svg%22/>">',
    "answer 404": '<script src="gone.js"></script>',
    "asks another host: http://elsewhere.invalid/x.js": '<script src="http://elsewhere.invalid/x.js"></script>',
    "console: broken": "<script>console.error('broken')</script>",
    "a movable figure without a slider": '<div class="faithlab-movable"></div>',
    "script error: broken": "<script>throw new Error('broken')</script>",
    "formula not typeset: \\(x\\)": '<span class="math">\\(x\\)</span>',
    "formula wider than the page: long": '<div class="math" id="long" style="width: 50px"><mjx-container><mjx-math '
    'style="display: inline-block; width: 90px">x</mjx-math></mjx-container><span class="eqno">(1)</span></div>',
    "raw Markdown in the text: cost $$x$$": "<p>cost $$x$$</p>",
    "raw Markdown in the text: below $x_1$ it is": "<p>below $x_1$ it is</p>",
    "raw Markdown in the text: | a | b | |—|–:| | 1 | 2 |": "<p>| a | b | |—|–:| | 1 | 2 |</p>",
    "a number that no reader writes: it is nan here": "<p>it is nan here</p>",
    "a number that no reader writes: to −inf, so": "<p>to −inf, so</p>",
    "a number that no reader writes: only −2.56e−05 of it": "<p>only −2.56e−05 of it</p>",
    "a number that no reader writes: held, in 0 of 1 cases": "<p>held, in 0 of 1 cases</p>",
    "wider than the screen": '<div style="width: 3000px">x</div>',
    "cut, and in no box that scrolls: broad": '<table><tr><td style="min-width: 2900px">broad</table>',
    "cut, and in no box that scrolls: silent": '<div style="overflow-x: auto"><table><tr><td style="min-width: 2900px">'
    "silent</table></div>",
    "words wider than their cell: unbreakable": '<table style="table-layout: fixed; width: 40px"><tr><td>unbreakable'
    "</table>",
    "text under 9 points, 11 pixels: tiny": '<table><tr><td style="font-size: 11px">tiny</table>',
    "text under 9 points in the figure drawing, 11.0 pixels: low": DRAWING.format(
        "<text x=%225%22 y=%2230%22 font-size=%2211%22>low</text>"
    ),
    "text under 9 points in the figure shrunk, 6.0 pixels: fine": '<img alt="shrunk" style="width: 100px" '
    'src="data:image/svg+xml,<svg xmlns=%22http://www.w3.org/2000/svg%22 viewBox=%220 0 200 100%22>'
    '<text x=%225%22 y=%2230%22 font-size=%2212%22>fine</text></svg>">',
    "labels on each other in the figure drawing: one / two": DRAWING.format(
        "<text x=%225%22 y=%2230%22 font-size=%2212%22>one</text>"
        "<text x=%2215%22 y=%2232%22 font-size=%2212%22>two</text>"
    ),
    "a label leaves the figure drawing: away": DRAWING.format("<text x=%2290%22 y=%2230%22>away</text>"),
    "weighs 4.0 MB": '<img alt="heavy" src="heavy.svg">',
    "has the title of book/other.html: other": "",
    "1 empty tables": "<table></table>",
    "2 headings of the first level": "<h1>B</h1>",
}


def written(folder, pages: dict[str, str]):
    """A book in a folder: pages by their names, which are their titles, too, and what they lead to."""
    (folder / "book").mkdir(parents=True)
    for name, body in {"other": '<h1 id="there">B</h1>', **pages}.items():
        (folder / f"book/{name}.html").write_text(PAGE.replace("<title>t", f"<title>{name}").format(body))
    (folder / "book/table.csv").write_text("a\n1\n")
    (folder / "favicon.ico").write_text("")
    return folder


WORDS = "<p>an instance of information, nan-safe, level 1e, in 0 of 10 cases <code>nan 1e-05</code></p>"
OUTPUT = '<div class="cell_output"><table><tr><td>1e-05</table></div>'
SCROLLS = '<div class="faithlab-scrolls" tabindex="0" style="overflow-x: auto">{}</div>'
WIDE = "<style>@media screen { td.w { min-width: 2900px } }</style><table><tr><td class=w>broad</table>"
BROAD = '<table><tr><td style="min-width: 900px">broad</td></tr></table>'
FITS = "<style>@media print { td { min-width: 0 !important } }</style>"
DARK = "<style>@media (prefers-color-scheme: dark) { body { background: #222; color: #333 } }</style>"


def turned(x: int, degrees: int) -> str:
    return f"<text font-size=%2212%22 transform=%22translate({x} 40) rotate({degrees})%22>label</text>"


LABELS = "".join(turned(*of) for of in ((12, -90), (26, -90), (42, -60), (56, -60)))
LINES = "".join(f"<text x=%2270%22 y=%22{y}%22 font-size=%2212%22>line</text>" for y in (15, 27))

PAGES = {
    "sound": WORDS + OUTPUT + SCROLLS.format(WIDE) + SCROLLS.format(FITS + BROAD) + DRAWING.format(LABELS + LINES),
    "faint": '<p style="color: #ddd; background: #fff">faint</p>',
    "dark": DARK + "<p>gone</p>",
    "phone": '<div style="width: 700px">x</div>',
    "cut": SCROLLS.format(BROAD),
}
"""What each page has besides `SOUND`."""


def found_first(book, name: str) -> None:
    """Give a book the page of its search, which says that it finds a page first whatever is typed."""
    link = f'<div id="search-results"><ul class="search"><li><a href="{name}">x</a></ul></div>'
    (book / "search.html").write_text(PAGE.replace("<title>t", "<title>s").format("<h1>S</h1>" + link))


def all_pages(folder) -> None:
    """Write a book of all `PAGES`, whose search finds what it should, and of a page with all `FAULTS`."""
    pages = {name: SOUND + body for name, body in PAGES.items()} | {"bring-your-own": "<h1>B</h1>"}
    written(folder, pages)
    heavy = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><!-- {} --></svg>'
    (folder / "book/heavy.svg").write_text(heavy.format(4_000_000 * " "))
    faults = PAGE.replace("<title>t", "<title>other").format(SOUND + "".join(FAULTS.values()))
    (folder / "book/with-faults.html").write_text(faults)
    (folder / "notebooks").mkdir()
    (folder / "notebooks/run.html").write_text(PAGE.format("<h1>C</h1>"))
    found_first(folder, "book/bring-your-own.html")


def two_checks(folder) -> list[list[str]]:
    """What is wrong with a book of all pages, and with a book in the dark, of which one page is asked about.

    Each is opened in one go, as to start a browser takes as long as a few pages.
    """
    all_pages(folder / "html")
    two = {name: SOUND + PAGES[name] for name in ("dark", "faint")}
    dark = written(folder / "dark/html", two | {"bring-your-own": "<h1>B</h1>"})
    found_first(dark, "book/other.html")
    return [check_book.check(folder / "html"), check_book.check(dark, dark=True, only="book/dark")]


class Checked(NamedTuple):
    """The folder of both books, and what is wrong with each."""

    folder: Path
    all_pages: list[str]
    in_the_dark: list[str]


@pytest.fixture(scope="module")
def checked(once) -> Checked:
    folder, (all_pages, in_the_dark) = once("checked", two_checks)
    return Checked(folder, all_pages, in_the_dark)


@pytest.fixture(scope="module")
def wrong(checked) -> dict[str, list[str]]:
    """What is wrong with the book of all pages, by page."""
    found = {f"book/{name}.html": [] for name in PAGES}
    for line in checked.all_pages:
        name, _, what = line.partition(": ")
        found.setdefault(name, []).append(what)
    return {name.removeprefix("book/").removesuffix(".html"): lines for name, lines in found.items()}


def test_what_is_sound_has_no_faults_and_leaves_screenshots(checked, wrong):
    """Words, code and what a library writes are no odd numbers; what scrolls in a box that shows it is not cut; labels
    side by side, upright or slanted, are not on each other."""
    faulty = {"with-faults", "notebooks/run", "faint", "dark", "phone", "cut"}
    assert {name for name, lines in wrong.items() if lines} <= faulty
    assert (checked.folder / "screenshots/light/book/sound.png").stat().st_size


def test_every_fault_is_found(wrong):
    missed = [fault for fault in FAULTS if not any(line.startswith(fault) for line in wrong["with-faults"])]
    assert not missed
    assert any("0 provenance stamps in a notebook" in line for line in wrong["notebooks/run"])


def test_a_serious_fault_of_accessibility_is_found(wrong):
    pytest.importorskip("axe_playwright_python")
    assert any("accessibility: color-contrast, 1 times" in line for line in wrong["faint"])


def test_what_can_be_read_in_the_light_must_be_read_in_the_dark(checked, wrong):
    pytest.importorskip("axe_playwright_python")
    dark = [line for line in wrong["dark"] if line.startswith("in the dark: accessibility: color-contrast")]
    assert dark == wrong["dark"] != []
    alone = [line for line in checked.in_the_dark if not line.startswith("search.html: ")]
    assert alone, "and where the dark alone is asked for"
    assert all(line.startswith("book/dark.html: ") for line in alone), "of the page that is asked about"


def test_what_fits_a_screen_must_fit_a_phone(wrong):
    (line,) = wrong["phone"]
    assert line.startswith("on a phone: wider than the screen: 7")


def test_what_scrolls_on_a_screen_is_cut_on_paper_where_it_is_not_made_to_fit(wrong):
    assert wrong["cut"] == ["on paper: cut: broad"], "what fits, as on the page without faults, is not"


def test_a_search_finds_the_page_on_what_is_ones_own_first(checked, wrong):
    assert "search" not in wrong, "there it does"
    found = [line for line in checked.in_the_dark if line.startswith("search.html: ")]
    assert len(found) == len(check_book.SOUGHT)
    assert all("finds first book/other.html, not book/bring-your-own.html" in line for line in found)


def test_a_folder_without_a_book_is_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(SystemExit, match="make book"):
        check_book.check(tmp_path)
