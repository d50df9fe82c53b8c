"""The book's movable figures: the script draws the law of the library, and its sliders move it."""

import io
import itertools
import json
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from PIL import Image
from playwright.sync_api import sync_playwright

import check_book
from faithlab.metrics.size import SIZES, Setting, law, read
from faithlab.study import figures

ROOT = Path(__file__).parents[1]
STYLE = ROOT / "book/_static/faithlab.css"
SCRIPT = ROOT / "book/_static/movable.js"


@pytest.fixture
def browser():
    found = next(filter(None, map(shutil.which, check_book.BROWSERS)), None)
    if not found:
        pytest.skip("no Chromium on the PATH")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=check_book.FLAGS)
        page = chromium.new_page()
        wrong = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        yield page
        chromium.close()
    assert not wrong


def show(page, body: str) -> None:
    page.set_content(f"<!doctype html><html lang=en><body>{body}<script>{SCRIPT.read_text()}</script></body></html>")


def test_the_script_computes_the_law_of_the_library():
    """In node where it is there: the function alone needs no browser."""
    node = shutil.which("node")
    if not node:
        pytest.skip("no node on the PATH")
    tiers, weights = [0.2, 0.1], [1.0, 0.3]
    settings = list(itertools.product((0.3, 0.5, 1.0), (0.02, 0.1, 0.3, None), (0.0, 0.35, 1.0)))
    sizes = [0.0, *SIZES, 1.0]
    asked = [[s, alpha, cap, tiers, weights, noise] for alpha, cap, noise in settings for s in sizes]
    program = (
        "globalThis.window = {}; globalThis.document = {querySelectorAll: () => []};"
        f"{SCRIPT.read_text()};"
        f"console.log(JSON.stringify({json.dumps(asked)}.map((a) => window.faithlabMovable.law(...a))))"
    )
    ran = subprocess.run([node, "-"], input=program, capture_output=True, text=True, check=True)
    expected = [law(sizes, Setting(alpha, cap), tiers, weights, noise) for alpha, cap, noise in settings]
    assert json.loads(ran.stdout) == pytest.approx(torch.cat(expected).tolist(), abs=1e-12)


def test_every_slider_moves_its_figure(browser):
    hits = torch.rand(40, 2, 5, generator=torch.Generator().manual_seed(0)) < 0.3
    settings = (Setting(0.5, 0.05), Setting(0.5, 0.1))
    found = read(hits.double(), [0.1, 0.2, 0.3, 0.4, 0.5], settings, 100)
    show(browser, '<div class="faithlab-movable"></div>' + figures.movable({"a <b>": found})._repr_html_())
    assert browser.locator("input[type=range]").count() == 7
    assert check_book.still(browser) == []
    assert found.refusal
    assert f"No size: {found.refusal}." in browser.locator(".faithlab-movable").nth(1).inner_text()
    assert browser.locator("option").inner_text() == "a <b>"


def drawn() -> str:
    """Two ways to remove pixels of a white image of 2 x 2 in three steps; the second one's answers rise."""
    pictures = torch.ones(3, 3, 2, 2)
    pictures[1, :, 0], pictures[2] = 0, 0
    answers = {"first": torch.tensor([0.8, 0.5, 0.2]), "<last>": torch.tensor([0.8, 0.808, 0.2])}
    rows = {name: (pictures, p, p > 0.4) for name, p in answers.items()}
    words = {"across": "share of pixels", "down": "probability", "alt": 'A "strip".'}
    return figures.removal(rows, torch.tensor([0.0, 0.5, 1.0]), **words)._repr_html_()


def test_images_are_removed_step_by_step_beside_their_curves(browser):
    show(browser, f"<style>{STYLE.read_text()}</style>{drawn()}")
    assert check_book.still(browser) == []
    browser.locator("input").fill("1")
    slider, figure = browser.locator("input"), browser.locator(".faithlab-movable")
    assert browser.locator("label").inner_text() == "share of pixels"
    assert slider.get_attribute("aria-valuetext") == "50 %"
    said = figure.inner_text()
    assert "first: 0.50, ✓ still recognised" in said
    assert "<last>: 0.81, ✓ still recognised" in said
    assert "50 % removed. Mean loss so far: first: 0.15; <last>: 0.00." in said, "a loss of -0.004 has no sign"
    frames = browser.get_by_role("img", name="the image with 50 % of its pixels removed")
    assert frames.count() == 2
    assert frames.first.evaluate("(node) => getComputedStyle(node).backgroundPosition") == "50% 0%"
    seen = Image.open(io.BytesIO(frames.first.screenshot())).convert("L")
    middle, height = seen.width // 2, seen.height
    assert (seen.getpixel((middle, height // 4)), seen.getpixel((middle, 3 * height // 4))) == (0, 255), "its own step"
    slider.press("End")
    assert "first: 0.20, ✗ class lost" in figure.inner_text()


def test_without_scripts_a_strip_of_all_images_is_shown(browser):
    browser.set_content(f"<!doctype html><html lang=en><body>{drawn()}</body></html>")
    strip = browser.get_by_role("img", name='A "strip".')
    assert strip.evaluate("(node) => [node.naturalWidth, node.naturalHeight]") == [6, 4]


def test_a_slider_that_moves_nothing_is_a_fault(browser):
    show(browser, '<div class="faithlab-movable"></div>')
    browser.evaluate("document.querySelectorAll('input').forEach((i) => i.replaceWith(i.cloneNode()))")  # deaf
    assert len(check_book.still(browser)) == 6
    browser.evaluate("document.querySelector('.faithlab-movable').replaceChildren()")
    assert check_book.still(browser) == ["a movable figure without a slider"]
