"""The book's movable figures: the script draws the law of the library, and its sliders move it."""

import html
import io
import itertools
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from PIL import Image

import check_book
from faithlab.metrics import saco
from faithlab.metrics.size import SIZES, Setting, law, read
from faithstudy import plots

ROOT = Path(__file__).parents[1]
STYLE = ROOT / "book/_static/faithlab.css"
SCRIPT = ROOT / "book/_static/movable.js"


@pytest.fixture
def browser(chromium):
    """A page of a context of its own."""
    page, wrong = chromium.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    page.close()
    assert not wrong


def rendered(figure) -> str:
    """The HTML that the book makes of a movable figure."""
    found = re.fullmatch(
        r":::\{div\} faithlab-movable\n(?::name: (\S+)\n)?\n(.*)\n\n```json\n(.*)\n```\n:::\n", figure.data
    )
    name, still, told = found.groups()
    image = re.fullmatch(r"!\[(.*)\]\((.*)\)", still)
    still = f'<img alt="{html.escape(image[1])}" src="{image[2]}">' if image else still
    shown = f"<p>{still}</p><div class='highlight-json'><pre>{html.escape(told)}</pre></div>"
    return f'<div class="faithlab-movable" id="{name or ""}">{shown}</div>'


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
    show(browser, '<div class="faithlab-movable"></div>' + rendered(plots.movable({"a <b>": found})))
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
    return rendered(plots.removal(rows, torch.tensor([0.0, 0.5, 1.0]), **words))


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


def staked() -> tuple[str, saco.Groups]:
    """Three groups of a picture of 2 x 2, which is as bright as the number of its column; bets won, lost and won."""
    groups = saco.Groups(torch.tensor([[6.0, 2.0, 1.0]]), torch.tensor([[0.3, -0.1, 0.1]]))
    pictures = (torch.arange(4) / 4).view(4, 1, 1, 1).expand(4, 3, 2, 2)
    both = {"a <b>": groups, "other": groups._replace(drop=-groups.drop)}
    rows = {name: (pictures, of, saco.bets(of)) for name, of in both.items()}
    return rendered(plots.bets(rows, name="bets", down="answer", alt='A "strip".')), groups


def test_bets_on_pairs_are_settled_one_by_one_up_to_saco(browser):
    body, groups = staked()
    show(browser, f"<style>{STYLE.read_text()}</style>{body}")
    assert check_book.still(browser) == []
    slider, figure = browser.locator("input"), browser.locator("#bets")
    slider.fill("1")
    assert slider.get_attribute("aria-valuetext") == "2 of 3: groups 1 and 3"
    text = figure.inner_text()
    assert "without group 1: said to matter 6, costs 0.3 of the answer" in text
    assert "without group 3: said to matter 1, costs 0.1 of the answer" in text
    won = (
        "Group 1 is said to matter more by 5 and costs at least as much: the bet is won, +0.5. 2 of 2 won. So far 0.90"
    )
    assert won in text
    slider.press("End")
    total = saco.coefficient(groups).item()
    assert (
        "Group 2 is said to matter more by 1 and costs less: the bet is lost, −0.1. 2 of 3 won." in figure.inner_text()
    )
    assert f"All are settled: SaCo is {total:.2f}." in figure.inner_text()
    assert (browser.locator(".step.won").count(), browser.locator(".step.lost").count()) == (2, 1)
    frame = browser.get_by_role("img", name="the image without group 2 of a <b>")
    seen = Image.open(io.BytesIO(frame.screenshot())).convert("L")
    assert seen.getpixel((seen.width // 2, seen.height // 2)) == pytest.approx(255 / 2, abs=2), "its own picture"
    browser.locator("select").select_option("other")
    assert f"All are settled: SaCo is −{total:.2f}." in figure.inner_text()


def test_a_bet_without_a_stake_can_be_lost(browser):
    groups = saco.Groups(torch.tensor([[2.0, 2.0, 1.0]]), torch.tensor([[0.1, 0.3, 0.0]]))
    show(
        browser,
        rendered(plots.bets({"a": (torch.ones(4, 3, 2, 2), groups, saco.bets(groups))}, name="b", down="p", alt="A.")),
    )
    browser.locator("input").fill("0")
    assert "costs less: the bet is lost, −0. 0 of 1 won. So far 0.00" in browser.locator("#b").inner_text()


def test_a_slider_that_moves_nothing_is_a_fault(browser):
    show(browser, '<div class="faithlab-movable"></div>')
    browser.evaluate("document.querySelectorAll('input').forEach((i) => i.replaceWith(i.cloneNode()))")  # deaf
    assert len(check_book.still(browser)) == 6
    browser.evaluate("document.querySelector('.faithlab-movable').replaceChildren()")
    assert check_book.still(browser) == ["a movable figure without a slider"]
