"""Open every page of a built book in a real browser and list what is wrong with it.

    python tests/check_book.py build/quick/html [--dark] [--narrow] [--only notebooks/]

Wrong is: an error in the console, a request that fails, a request to another host, a link or an anchor that leads
nowhere, an image that does not show or has no alternative text, a formula that was not typeset, a page that is wider
than the screen, a table or plot that is cut (what is wider than the page has to scroll in a box that shows it), text
under 9 points in tables and in figures as large as they are shown, labels of a figure that meet, or leave it, nan,
"in 0 of 1 cases", or inf or 1e-05 outside a notebook's output, a page of more than 3 MB, a
title that another page has, a serious fault of accessibility, a notebook without its provenance, a slider that moves
nothing, what a sheet of paper would cut off, a search for what is one's own that finds another page first. Every page
is opened once, in one of a few browsers side by side, on a screen in the light; then it is turned dark, as narrow as a
phone, and laid out for paper, for what depends on colours and on the width; of the API's pages, which are made alike,
the first. A screenshot of every page goes to `screenshots/` beside the book, for a human to look at; those in the dark
and of a phone come with `--dark` and `--narrow`. Needs Chromium or Chrome on the PATH; nothing is installed.
Accessibility is judged by axe-core, of the package axe-playwright-python; without it this one check is left out, and
the end says so.
"""

import argparse
import contextlib
import functools
import http.server
import importlib.util
import os
import queue
import shutil
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, unquote, urlsplit

from playwright.sync_api import Error, Page, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# Containers have no sandbox and little shared memory; the rest keeps the browser's own traffic out of the picture.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]

SCREEN, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
SHEET = {"width": 718, "height": 1047}
"""A4 less a centimetre on each side."""
SOUGHT = dict.fromkeys(("own metric", "add a metric", "add", "timm"), "book/bring-your-own.html")
"""What readers type, and the page that has to come first."""
SEARCH = "a search"
"""What is done in place of opening a page."""
WEIGHT = 3e6
"""Bytes of a page and of what it alone shows: scripts and styles that all pages share are not counted."""

TYPESET = "() => window.MathJax && MathJax.startup ? MathJax.startup.promise.then(() => true) : true"

FACTS = r"""
() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const visible = (node) => node.checkVisibility ? node.checkVisibility() : true;
  const prose = document.querySelector("article") || document.body;
  const walker = document.createTreeWalker(prose, NodeFilter.SHOW_TEXT);
  const raw = [], odd = [];
  // No number, counts of one case, infinities and powers of ten; in a notebook's own output the latter two may stand.
  const never = /(?<![\w.\/-])nan(?![\w.\/-])|\bin [01] of 1 cases/;
  const power = /(?<![\w.\/-])[-−+]?inf(?![\w.\/-])|(?<![\w.])\d(?:\.\d+)?e[-−+]\d+(?!\w)/;
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement, text = walker.currentNode.data;
    if (!parent.closest("code, pre, script, style, mjx-container, .math, kbd, dl.py"))
      for (const found of [never.exec(text), parent.closest(".cell_output") ? null : power.exec(text)])
        if (found) odd.push(text.slice(Math.max(0, found.index - 30), found.index + found[0].length + 10).trim());
    // Formulas \( \[ $$ $x$ and the line below a table's head, whose dashes may have become one.
    const left = /\\\(|\\\[|\$\$|\$[^\s$][^$\n]*\$|\|\s*:?[-–—]+:?\s*\|/;
    if (left.test(walker.currentNode.data) && !parent.closest("code, pre, script, style, mjx-container"))
      raw.push(walker.currentNode.data.trim().slice(0, 60));
  }
  return {
    ids: all("[id]").map((node) => node.id).concat(all("a[name]").map((node) => node.name)),
    links: all("a[href]").map((node) => node.href),
    images: all("img").map((node) => ({
      src: node.getAttribute("src"), alt: node.getAttribute("alt"),
      // What is loaded when it is scrolled to is not there yet; a picture that is missing is a failed request then.
      shown: !visible(node) || (node.loading === "lazy" && !node.complete) || (node.complete && node.naturalWidth > 0),
    })),
    formulas: all(".math").map((node) => ({
      text: node.textContent.trim().slice(0, 60), typeset: !!node.querySelector("mjx-container"),
      error: !!node.querySelector("mjx-merror, [data-mjx-error]"),
    })),
    // On a phone a long formula is scrolled; on a screen it has to fit, beside its number.
    cut: window.innerWidth < 1000 ? [] : all("div.math").filter((node) => {
      const formula = node.querySelector("mjx-math"), number = node.querySelector(".eqno");
      return formula && visible(node) && formula.getBoundingClientRect().right >
        (number ? number.getBoundingClientRect().left : node.getBoundingClientRect().right) + 1;
    }).map((node) => node.id || node.textContent.trim().slice(0, 60)),
    raw, odd,
    headings: all("article h1").length,
    title: document.title,
    width: document.documentElement.scrollWidth, screen: window.innerWidth,
    // What is wider than the text has to lie in a box that scrolls, and shows that it does.
    wide: all("article :is(table, figure, img, .faithlab-box)").filter((node) => {
      if (!visible(node)) return false;
      const end = (one) => one.getBoundingClientRect().right;
      const beyond = (one) => end(one) > end(node.closest("article")) + 1;
      if (!beyond(node)) return false;
      for (let box = node.parentElement; box && box.tagName !== "ARTICLE"; box = box.parentElement)
        if (["auto", "scroll"].includes(getComputedStyle(box).overflowX) && !beyond(box))
          return !box.matches(".faithlab-scrolls") || box.tabIndex !== 0;
      return true;
    }).map((node) => (node.innerText || node.alt || node.className).trim().slice(0, 60)),
    // Words in a cell that is narrower than they are.
    squeezed: all("article table :is(td, th)").filter((node) => visible(node) && node.scrollWidth > node.clientWidth + 2
      && getComputedStyle(node).display === "table-cell").map((node) => node.innerText.trim().slice(0, 60)),
    // 9 points are 12 pixels.
    small: all("article :is(table, .faithlab-box, svg) *").filter((node) => visible(node)
      && [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim())
      && parseFloat(getComputedStyle(node).fontSize) < 11.99 && !node.closest(".sr-only, sup, sub, mjx-container"))
      .map((node) => `${parseFloat(getComputedStyle(node).fontSize)} pixels: ${node.textContent.trim().slice(0, 40)}`),
    emptyTables: all("article table").filter((node) => !node.querySelector("td, th")).length,
    tables: all("article table").length,
    provenance: all(".faithlab-provenance").length,
    weight: performance.getEntries().filter((entry) => !/\/_static\/|searchindex\.js/.test(entry.name))
      .reduce((sum, entry) => sum + (entry.encodedBodySize || 0), 0),
  };
}
"""

# A picture's text is out of reach, so each is drawn once more, out of sight, as large as it is shown.
FIGURES = r"""
async () => {
  const wrong = [], host = document.body.appendChild(document.createElement("div"));
  const root = host.attachShadow({mode: "open"});
  for (const image of document.querySelectorAll("article img")) {
    if (!/\.svg([?#]|$)|^data:image\/svg/.test(image.src) || !image.clientWidth) continue;
    if (image.closest(".faithlab-gallery")) continue; // small on purpose: each leads to its figure
    const drawing = await (await fetch(image.src)).text(), width = `${image.clientWidth}px`;
    root.innerHTML = `<div style="position: absolute; visibility: hidden; width: ${width}">${drawing}</div>`;
    const svg = root.querySelector("svg");
    if (!svg || !svg.viewBox.baseVal.width) continue;
    Object.assign(svg.style, {width: "100%", height: "auto"});
    const frame = svg.getBoundingClientRect(), scale = frame.width / svg.viewBox.baseVal.width;
    const name = image.closest("figure")?.id || image.alt.slice(0, 30);
    const texts = [...svg.querySelectorAll("text")].filter((node) => node.textContent.trim()).map((node) => {
      const {a, b, c, d} = node.getCTM();
      return {words: node.textContent.trim().slice(0, 30), box: node.getBoundingClientRect(),
        slanted: Math.min(Math.hypot(b, c), Math.hypot(a, d)) > 0.01 * Math.hypot(a, b),
        size: parseFloat(getComputedStyle(node).fontSize) * scale};
    });
    const smallest = texts.reduce((least, one) => one.size < least.size ? one : least, {size: Infinity});
    if (smallest.size < 11.9) // 9 points, and what a browser rounds of a width
      wrong.push(`text under 9 points in the figure ${name}, ${smallest.size.toFixed(1)} pixels: ${smallest.words}`);
    const beyond = texts.find(({box}) => box.right > frame.right + 3 || box.left < frame.left - 3
      || box.bottom > frame.bottom + 3 || box.top < frame.top - 3);
    if (beyond) wrong.push(`a label leaves the figure ${name}: ${beyond.words}`);
    const straight = texts.filter((one) => !one.slanted);
    straight.forEach(({words, box: one}, k) => straight.slice(k + 1).forEach(({words: others, box: other}) => {
      const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      // Boxes are as high as their font: the words of two lines do not meet where these do a little.
      if (across > 2 && down > 0.35 * Math.min(one.height, other.height))
        wrong.push(`labels on each other in the figure ${name}: ${words} / ${others}`);
    }));
  }
  host.remove();
  return wrong;
}
"""


CURVE = "(slider) => slider.closest('.faithlab-movable').querySelector('svg[role=img]').innerHTML"


def still(page: Page) -> list[str]:
    """The sliders of a page that do not change their figure when a key moves them, and figures that have none."""
    wrong = []
    for figure in page.locator(".faithlab-movable").all():
        sliders = figure.locator("input[type=range]").all()
        wrong += [] if sliders else ["a movable figure without a slider"]
        for slider in sliders:
            name = figure.page.locator(f"label[for={slider.get_attribute('id')}]").inner_text()
            before, value = slider.evaluate(CURVE), slider.input_value()
            slider.focus()
            slider.press("ArrowLeft" if value == slider.get_attribute("max") else "ArrowRight")
            if slider.evaluate(CURVE) == before:
                wrong.append(f"a slider changes nothing: {name!r} from {value} to {slider.input_value()}")
    return wrong


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine; gives the address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


@contextmanager
def browser(path: str, **options: Any) -> Iterator[Page]:
    """A browser with one empty page."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield started.new_context(**options).new_page()
        started.close()


def axe() -> str:
    """The script of axe-core; nothing where its package is not installed."""
    found = importlib.util.find_spec("axe_playwright_python")
    return (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8") if found else ""


# What Sphinx itself writes is left out: the lines of a signature, and the list of the bibliography.
AXE = """
(only) => axe.run({
  include: [[document.querySelector("main") ? "main" : "body"]],
  exclude: ["dt.sig dl", ".citation-list"].filter((part) => document.querySelector(part)).map((part) => [part]),
}, {resultTypes: ["violations"], preload: false, runOnly: only}).then((found) => found.violations
  .filter((v) => ["serious", "critical"].includes(v.impact))
  .map((v) => `${v.id}, ${v.nodes.length} times, first ${v.nodes[0].html.slice(0, 100)}`))
"""


# The page's own script hears of another size of the window before the next frame is drawn.
SETTLED = "() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))"

EVERYTHING = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}


# No box scrolls on paper.
CUT = """
() => [...document.querySelectorAll("article :is(table, pre, figure, img)")].filter((node) => node.checkVisibility()
    && node.getBoundingClientRect().right > node.closest("article").getBoundingClientRect().right + 1)
  .map((node) => (node.innerText || node.alt || node.className).trim().replace(/\\s+/g, " ").slice(0, 60))
"""


def elsewhere(page: Page, axe: bool) -> list[str]:
    """What is wrong with a page that is open, in the dark and on a phone; it is as before then."""
    wrong = []
    page.emulate_media(color_scheme="dark")
    if axe:
        wrong += [f"in the dark: accessibility: {line}" for line in page.evaluate(AXE, COLOURS)]
    page.set_viewport_size(PHONE)
    page.evaluate(SETTLED)
    wrong += [f"on a phone: {line}" for line in layout(page.evaluate(FACTS)) + page.evaluate(FIGURES)]
    page.emulate_media(color_scheme="light", media="print")
    page.set_viewport_size(SHEET)
    page.evaluate(SETTLED)
    wrong += [f"on paper: cut: {text}" for text in page.evaluate(CUT)]
    page.set_viewport_size(SCREEN)
    page.emulate_media(media="screen")
    return wrong


FOUND = "() => document.querySelectorAll('#search-results ul.search > li a').length > 0"


def lost(page: Page, origin: str) -> list[str]:
    """The words that a reader would type whose search does not have the page that answers them first."""
    wrong = []
    for words, answer in SOUGHT.items():
        page.goto(f"{origin}/search.html?q={quote_plus(words)}", wait_until="load")
        try:
            page.wait_for_function(FOUND, timeout=20_000)
        except Error:
            wrong.append(f"{words!r} finds nothing")
            continue
        first = page.locator("#search-results ul.search > li a").first.get_attribute("href")
        if not urlsplit(first).path.endswith(answer):
            wrong.append(f"{words!r} finds first {first}, not {answer}")
    return wrong


def visit(
    page: Page, address: str, screenshot: Path | None, axe: str = "", *, every: bool = False
) -> tuple[dict, list[str]]:
    """Open one page; gives what is on it and what went wrong while it loaded, with `every` also in other looks."""
    wrong = []
    here = urlsplit(address).netloc

    def on_failure(request):
        if request.failure != "net::ERR_ABORTED":  # ours: the next page was opened before an icon had arrived
            wrong.append(f"request failed: {request.url} ({request.failure})")

    def on_request(request):
        if request.url.startswith("http") and urlsplit(request.url).netloc != here:
            wrong.append(f"asks another host: {request.url}")

    handlers = {
        "request": on_request,
        "requestfailed": on_failure,
        "response": lambda r: wrong.append(f"answer {r.status}: {r.url}") if r.status >= 400 else None,
        "console": lambda m: wrong.append(f"console: {m.text}") if m.type == "error" else None,
        "pageerror": lambda error: wrong.append(f"script error: {error}"),
    }
    for event, handler in handlers.items():
        page.on(event, handler)
    page.goto(address, wait_until="load")
    page.evaluate(TYPESET)
    facts = page.evaluate(FACTS)
    if axe:
        page.evaluate(axe)
        wrong += [f"accessibility: {line}" for line in page.evaluate(AXE, EVERYTHING)]
    wrong += page.evaluate(FIGURES)
    if screenshot:
        screenshot.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=screenshot, full_page=True, animations="disabled")
    wrong += elsewhere(page, bool(axe)) if every else []
    wrong += still(page)
    for event, handler in handlers.items():
        page.remove_listener(event, handler)
    return facts, wrong


def layout(facts: dict) -> list[str]:
    """What does not fit the screen, or is too small on it."""
    wrong = []
    if facts["width"] > facts["screen"] + 1:
        wrong.append(f"wider than the screen: {facts['width']} pixels on {facts['screen']}")
    wrong += [f"cut, and in no box that scrolls: {text}" for text in facts["wide"]]
    wrong += [f"words wider than their cell: {text}" for text in dict.fromkeys(facts["squeezed"])]
    return wrong + [f"text under 9 points, {text}" for text in dict.fromkeys(facts["small"])]


def faults(name: str, facts: dict) -> list[str]:
    """What is wrong with a page by itself."""
    wrong = []
    for image in facts["images"]:
        if not image["shown"]:
            wrong.append(f"image does not show: {image['src']}")
        if not (image["alt"] or "").strip():
            wrong.append(f"image without alternative text: {image['src'][:80]}")
    for formula in facts["formulas"]:
        if not formula["typeset"] or formula["error"]:
            wrong.append(f"formula not typeset: {formula['text']}")
    wrong += [f"formula wider than the page: {name}" for name in facts["cut"]]
    wrong += [f"raw Markdown in the text: {text}" for text in facts["raw"]]
    wrong += [f"a number that no reader writes: {text}" for text in dict.fromkeys(facts["odd"])]
    wrong += layout(facts)
    if facts["weight"] > WEIGHT:
        wrong.append(f"weighs {facts['weight'] / 1e6:.1f} MB, without what all pages share")
    if facts["emptyTables"]:
        wrong.append(f"{facts['emptyTables']} empty tables")
    written = name.startswith(("book/", "notebooks/"))
    if written and (facts["headings"] != 1 or not facts["title"].strip()):
        wrong.append(f"{facts['headings']} headings of the first level, title {facts['title']!r}")
    if name.startswith("notebooks/") and facts["provenance"] != 1:
        wrong.append(f"{facts['provenance']} provenance stamps in a notebook")
    return wrong


def dead_links(folder: Path, origin: str, pages: dict[str, dict]) -> Iterator[tuple[str, str]]:
    """Links within the book that lead nowhere, as (page, what is wrong)."""
    for name, facts in pages.items():
        for link in sorted(set(facts["links"])):
            parts = urlsplit(link)
            if f"{parts.scheme}://{parts.netloc}" != origin:
                continue
            target = unquote(parts.path).lstrip("/") or "index.html"
            if not (folder / target).is_file():
                yield name, f"dead link: {target}"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target]["ids"]:
                yield name, f"dead anchor: {target}#{parts.fragment}"


def same_titles(pages: dict[str, dict]) -> Iterator[tuple[str, str]]:
    """Pages of the book with a title that another has, as (page, what is wrong)."""
    first: dict[str, str] = {}
    for name, facts in pages.items():
        if name.startswith(("book/", "notebooks/")) and (other := first.setdefault(facts["title"], name)) != name:
            yield name, f"has the title of {other}: {facts['title']}"


def check(folder: Path, *, dark: bool = False, narrow: bool = False, only: str = "") -> list[str]:
    """Visit every page of a book; gives what is wrong, one line each."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not found:
        raise SystemExit(f"None of {', '.join(BROWSERS)} is on the PATH. On Debian: apt-get install chromium")
    files = [path.relative_to(folder) for path in sorted(folder.rglob("*.html"))]
    names = [file.as_posix() for file in files if file.parts[0] != "_static"]
    if not names:
        raise SystemExit(f"No book in {folder}. Build it first: make book")
    look = "-".join(["dark" if dark else "light", *(["narrow"] if narrow else [])])
    screenshots = folder.parent / "screenshots" / look
    judge = axe()
    alike = [name for name in names if name.startswith("book/api/")][1:]  # Sphinx's pages: one is turned for all
    # index.html only forwards to the home page
    asked = [name for name in names if name != "index.html" and name.startswith(only)]
    left, look_of = queue.SimpleQueue(), {"viewport": PHONE if narrow else SCREEN, "color_scheme": look.split("-")[0]}
    searched = "search.html" in names and (folder / next(iter(SOUGHT.values()))).is_file()
    for name in [*asked, *([SEARCH] if searched else [])]:
        left.put(name)

    def opened(origin: str) -> dict[str, tuple[dict, list[str]]]:
        """What `visit` says of the pages that are left, one after the other, in a browser of its own."""
        told = {}
        with browser(found, **look_of) as page, contextlib.suppress(queue.Empty):
            while True:
                name = left.get_nowait()
                if name == SEARCH:
                    told[name] = {}, lost(page, origin)
                    continue
                written = not name.startswith("_modules/")
                picture = (screenshots / name).with_suffix(".png") if written else None
                every = written and not (dark or narrow) and name not in alike
                told[name] = visit(page, f"{origin}/{name}", picture, judge if written else "", every=every)
        return told

    with served(folder) as origin, ThreadPoolExecutor() as side_by_side:
        at_once = min(os.cpu_count(), 8, 1 + len(asked) // 16)  # to start a browser takes as long as many pages
        told = {k: v for of in side_by_side.map(opened, [origin] * at_once) for k, v in of.items()}
        pages = {name: told[name][0] for name in asked}
        wrong = [f"{name}: {line}" for name in asked for line in told[name][1] + faults(name, pages[name])]
        wrong += [f"search.html: {line}" for line in told.get(SEARCH, ({}, []))[1]]
        wrong += [f"{name}: {line}" for name, line in dead_links(folder, origin, pages)]
        wrong += [f"{name}: {line}" for name, line in same_titles(pages)]
    count = {key: sum(len(facts[key]) for facts in pages.values()) for key in ("links", "images", "formulas")}
    print(
        f"{len(pages)} pages, {count['links']} links, {count['images']} images, {count['formulas']} formulas,"
        f" {sum(facts['tables'] for facts in pages.values())} tables ({look}). Screenshots: {screenshots}"
    )
    if not judge:
        print("Accessibility was not checked: install axe-playwright-python.")
    return wrong


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the built book, such as build/quick/html")
    parser.add_argument("--dark", action="store_true", help="in dark mode")
    parser.add_argument("--narrow", action="store_true", help="on a screen as narrow as a phone's")
    parser.add_argument("--only", default="", metavar="PREFIX", help="only the pages whose path begins so")
    options = parser.parse_args()
    wrong = check(options.folder.resolve(), dark=options.dark, narrow=options.narrow, only=options.only)
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{len(wrong)} faults" if wrong else "Nothing wrong.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
