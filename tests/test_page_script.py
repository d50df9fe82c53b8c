"""The book's own script in a real browser: one switch for all code, boxes that scroll, tables as CSV."""

import shutil
from pathlib import Path

import pytest

import check_book
from faithstudy import paths

FOLD = '<details class="hide above-input"><summary>Show the code</summary><pre class="code">code()</pre></details>'
PAGE = f"""<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8"><title>t</title>
<link rel="stylesheet" href="faithlab.css"><script src="faithlab.js"></script>
<article class="bd-article" style="width: 300px"><h1>A</h1>
<div class="cell">{FOLD}<div class="cell_output"><table class="dataframe"><tr><th>a</th><th colspan="2">b, "c"</th></tr>
<tr><th rowspan="2">x</th><td>2</td><td><div style="width: 900px">3</div></td></tr>
<tr><td>4</td><td>5</td></tr></table></div></div>
<div class="cell" id="silent">{FOLD}</div>
<div class="cell tag_parameters">{FOLD}</div></article></html>"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address of the page; each test opens it in a context of its own."""
    folder = tmp_path_factory.mktemp("served")
    for name in ("faithlab.css", "faithlab.js"):
        shutil.copy(paths.root() / "book/_static" / name, folder)
    (folder / "page.html").write_text(PAGE)
    with check_book.served(folder) as origin:
        yield f"{origin}/page.html"


def test_one_switch_shows_all_code_by_keyboard_and_is_remembered(chromium, address):
    context = chromium.new_context()
    page = context.new_page()
    page.goto(address)
    code, switch = page.locator(".code"), page.locator(".faithlab-switch")
    assert [code.nth(i).is_visible() for i in range(3)] == [False, False, False]
    assert not page.locator("#silent").is_visible(), "a cell that shows nothing takes no room"
    assert page.locator("summary").nth(2).is_visible(), "parameters keep a fold of their own"
    assert switch.get_attribute("aria-pressed") == "false"
    switch.focus()
    page.keyboard.press("Enter")
    assert [code.nth(i).is_visible() for i in range(3)] == [True, True, False]
    assert switch.get_attribute("aria-pressed") == "true"
    page.reload()
    assert page.locator(".code").nth(0).is_visible()

    box = page.locator(".cell_output")
    assert "faithlab-scrolls" in box.get_attribute("class")
    assert box.get_attribute("tabindex") == "0"

    with page.expect_download() as download:
        page.locator(".faithlab-csv").click()
    rows = Path(download.value.path()).read_text().splitlines()
    assert rows == ['"a","b, ""c""","b, ""c"""', '"x","2","3"', '"x","4","5"']


def test_without_scripts_every_cell_keeps_its_fold(chromium, address):
    page = chromium.new_context(java_script_enabled=False).new_page()
    page.goto(address)
    for i in range(3):
        page.locator("summary").nth(i).click()
        assert page.locator(".code").nth(i).is_visible()
