"""Tables in a real browser: names of columns sort, a long one shows its first rows, types have their look."""

import pandas as pd
import pytest

from faithstudy import paths, tables

STATIC = paths.root() / "book/_static"

MERGED = """<table class="dataframe"><thead><tr><th></th><th></th><th colspan="2">both</th></tr>
<tr><th></th><th></th><th>a, "b"</th><th><em>words</em></th></tr></thead><tbody>
<tr><th rowspan="2">x</th><th>1</th><td>0.10 [0.00, 0.20]</td><td>pear</td></tr>
<tr><th>2</th><td>−0.30 [−0.40, −0.20]</td><td>–</td></tr>
<tr><th rowspan="2">y</th><th>1</th><td>–</td><td>apple</td></tr>
<tr><th>2</th><td>1,200</td><td>Quince</td></tr></tbody></table>"""
LONG = pd.DataFrame({"n": range(60)}, index=[f"row {i}" for i in range(60)])


@pytest.fixture
def browser(chromium, tmp_path):
    """Pages from files, as a reader has them who downloads the book."""
    wrong = []

    def show(body: str, theme: str = "light", scripts: bool = True):
        links = "".join(f'<link rel="stylesheet" href="{STATIC / f"{name}.css"}">' for name in ("faithlab", "print"))
        links += "".join(f'<script defer src="{STATIC / f"{name}.js"}"></script>' for name in ("faithlab", "tables"))
        path = tmp_path / "page.html"
        path.write_text(
            f'<!doctype html><html lang="en" data-theme="{theme}"><meta charset="utf-8"><title>t</title>{links}'
            f'<article class="bd-article"><div class="cell_output">{body}</div></article></html>'
        )
        page = chromium.new_context(java_script_enabled=scripts).new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(path.as_uri())
        return page

    yield show
    assert not wrong


def names(page) -> list[str]:
    return [" ".join(row.split()[:2]) for row in page.locator("tbody tr").all_inner_texts()]


def test_a_column_sorts_up_down_and_back_by_keyboard_and_says_so(browser):
    page = browser(MERGED)
    head = page.locator("thead th", has_text='a, "b"')
    rows = ["x 1", "2 −0.30", "y 1", "2 1,200"]
    assert names(page) == rows
    assert page.locator(".faithlab-sort").count() == 2, "neither what has no name nor what spans columns"
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert names(page) == ["x 2", "x 1", "y 2", "y 1"], "names that spanned rows stand in each; empty comes last"
    page.keyboard.press("Space")
    assert head.get_attribute("aria-sort") == "descending"
    assert names(page) == ["y 2", "x 1", "x 2", "y 1"]
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") is None
    assert names(page) == ["x 1", "x 2", "y 1", "y 2"]


def test_words_sort_as_words_and_one_column_at_a_time(browser):
    page = browser(MERGED)
    for button in page.locator(".faithlab-sort").all():
        button.click()
    assert page.locator("tbody td:last-child").all_inner_texts() == ["apple", "pear", "Quince", "–"]
    assert page.locator("[aria-sort]").count() == 1
    assert page.locator("thead em").inner_text() == "words", "a name keeps its look"


def test_a_long_table_shows_its_first_rows_then_all_and_is_printed_whole(browser):
    page = browser(tables.styled(LONG).to_html())
    visible = page.locator("tbody tr:visible")
    assert visible.count() == 10
    button = page.locator(".faithlab-more")
    assert button.inner_text() == "Show all 60 rows"
    page.emulate_media(media="print")
    assert visible.count() == 60
    assert not button.is_visible()
    page.emulate_media(media="screen")
    page.locator(".faithlab-sort").click()
    page.locator(".faithlab-sort").click()
    assert visible.first.inner_text().split() == ["row", "59", "59"], "what is sorted is the whole table"
    button.focus()
    page.keyboard.press("Enter")
    assert visible.count() == 60
    assert button.get_attribute("aria-expanded") == "true"
    assert browser(tables.styled(LONG.iloc[:25]).to_html()).locator(".faithlab-more").count() == 0


def test_without_scripts_a_table_is_whole(browser):
    page = browser(tables.styled(LONG).to_html(), scripts=False)
    assert page.locator("tbody tr:visible").count() == 60


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_sources_differ_by_type_and_the_best_is_bold(browser, theme):
    found = pd.DataFrame({"e": ["IG", "SG"], "m": "SaCo", "mean": [0.5, 0.2], "low": [0.4, 0.1], "high": [0.6, 0.3]})
    sources = {"published": found[["e", "m", "mean"]], "measured": tables.marked(found, ["m"])}
    page = browser(tables.compared(sources, rows=["e"], columns=["m"]).to_html(), theme)

    def look(cell: str, what: str) -> str:
        return page.locator(cell).first.evaluate(f"e => getComputedStyle(e).{what}")

    assert look("td.faithlab-printed", "fontStyle") == "italic"
    assert look("td.faithlab-best", "fontStyle") == "normal"
    assert page.locator("td.faithlab-best").all_inner_texts() == ["0.50 [0.40,\N{NO-BREAK SPACE}0.60]"]
    assert look("td.faithlab-best", "fontWeight") == "700"
    assert look("caption", "captionSide") == "bottom"


def test_on_a_phone_the_notes_below_a_wide_table_stay_in_view(browser):
    columns = pd.MultiIndex.from_product([list("abcdefgh"), ["published", "measured"]])
    table = tables.styled(pd.DataFrame("0.50 [0.40, 0.60]", index=range(6), columns=columns))
    page = browser(tables.noted(table, "A note that is longer than a phone is wide, " * 3).to_html())
    assert page.locator("td small").count() == 6 * 16, "of many columns intervals are smaller"
    page.set_viewport_size({"width": 390, "height": 800})
    box = page.locator(".cell_output")
    assert box.evaluate("e => e.scrollWidth > e.clientWidth")
    for left in (0, 9999):
        box.evaluate("(e, left) => e.scrollTo({ left, behavior: 'instant' })", left)
        place = page.locator("caption").bounding_box()
        assert place["x"] >= 0
        assert place["x"] + place["width"] <= 390
