"""What a published book says of itself: link previews, citations, and how it comes out on paper."""

import os
import re
import shutil
import tomllib
from pathlib import Path

import launch
import pytest
import yaml
from PIL import Image

import check_book
from guides import command, guide

ROOT = Path(__file__).parents[1]
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text())
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
PARTS = {path.parent.name: path for path in (ROOT / "book").glob("*/idea.md")}


def test_link_previews_have_whole_addresses_and_a_name():
    sphinx = CONFIG["sphinx"]["config"]
    assert sphinx["ogp_site_url"] == CONFIG["html"]["baseurl"]
    assert re.match(r"https://.*/$", sphinx["ogp_site_url"]), "pages are joined to it"
    assert sphinx["project"] == sphinx["ogp_site_name"] == CONFIG["title"]
    text = (ROOT / "_config.yml").read_text()
    assert text.count(CONFIG["html"]["baseurl"]) == 1, "a fork changes it in one place"


def test_the_home_page_has_a_card_of_the_size_that_it_says_and_others_have_theirs():
    front, page = (ROOT / "book/home.md").read_text().removeprefix("---\n").split("\n---\n", 1)
    said = yaml.safe_load(front)
    with Image.open(ROOT / "book" / said["og:image"]) as card:
        assert card.size == (1200, 630)
        assert card.size == (int(said["og:image:width"]), int(said["og:image:height"]))
    assert said["og:image:alt"].endswith(page.lstrip("# ").splitlines()[0])
    assert said["myst"]["html_meta"]["twitter:card"] == "summary_large_image"
    drawn = " ".join(re.findall(r"<text.*?>(.*?)</text>", (ROOT / "book/card.svg").read_text()))
    assert page.lstrip("# ").splitlines()[0] in drawn
    config = CONFIG["sphinx"]["config"]
    assert (ROOT / config["ogp_social_cards"]["image"]).is_file()
    assert "ogp_image" not in config, "it would take the place of every page's card"


def test_colab_is_told_how_to_get_what_a_notebook_needs():
    assert CONFIG["launch_buttons"]["colab_url"]
    start, clone, install, end = guide("fork").holding("text", "!git clone").splitlines()
    address = CONFIG["repository"]["url"]
    assert clone.split()[-1] == address
    folder = address.rpartition("/")[2]
    assert end.split() == ["%cd", folder], "where the notebook finds the repository"
    assert start == "%cd /content", "the cell may be run again"
    path, extras = re.search(r"'\./(\w+)\[([\w,]+)\]'", install).groups()
    assert path == folder
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    assert "fork.md#on-binder-or-colab" in (ROOT / "README.md").read_text()
    assert "\n## On Binder or Colab\n" in guide("fork").text


def test_the_button_of_colab_says_that_a_cell_comes_first():
    assert CONFIG["sphinx"]["local_extensions"]["launch"] == "book/"
    buttons = [{"text": "Binder", "tooltip": "a"}, {"text": "Colab", "tooltip": "b"}]
    launch.told(None, "page", "", {"header_buttons": [{"label": "search"}, {"buttons": buttons}]}, None)
    assert [button["text"] for button in buttons] == ["Binder", "Colab, after one cell"]
    assert "Rerun and fork" in buttons[1]["tooltip"]
    title = guide("fork").text.splitlines()[0]
    assert title == "# Rerun and fork"
    launch.told(None, "page", "", {}, None)


def test_the_logo_leads_home():
    assert CONFIG["sphinx"]["config"]["html_theme_options"]["logo"] == {"alt_text": "faithlab, home page"}


def test_the_study_is_cited_as_what_it_is():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert CITATION["version"] == project["version"]
    assert CITATION["license"] == project["license"]
    assert CITATION["url"] == CONFIG["html"]["baseurl"]
    assert CITATION["repository-code"] == CONFIG["repository"]["url"]
    required = {"cff-version", "message", "title", "authors"}
    assert required <= set(CITATION)
    entry = re.search(r"```bibtex\n(.*?)```", (ROOT / "book/bibliography.md").read_text(), re.DOTALL)[1]
    fields = dict(re.findall(r"^ *(\w+) *= \{+(.*?)\}+,$", entry, re.MULTILINE))
    assert fields["version"] == CITATION["version"]
    assert fields["title"] == CITATION["title"]
    assert fields["url"] == CITATION["url"]
    assert fields["author"] == CITATION["authors"][0]["name"]


@pytest.mark.parametrize("name", PARTS)
def test_a_part_begins_with_a_page_that_has_the_paper_s_bibtex(name):
    page = PARTS[name].read_text()
    start, end = re.search(r':start-at: "(.*)"\n:end-before: "(.*)"', page).groups()
    bibliography = (ROOT / "book/references.bib").read_text()
    assert bibliography.count(start) == 1
    entry = start + bibliography.split(start)[1].split(end)[0]
    assert entry.count("{") == entry.count("}")
    key = re.match(r"@\w+{(\w+),", start)[1]
    assert f"`{key}`" in page.split("## Cite the paper")[0], "another paper than that of the page"


DARK = """<!doctype html><html data-theme="dark"><title>t</title><style>{style}</style>
<body style="background: var(--pst-color-background); color: var(--pst-color-text-base)">
<div class="bd-sidebar">contents</div>
<div class="bd-main"><div class="bd-content"><div class="bd-article-container"><article class="bd-article">
<h1>Title</h1>
<div class="cell"><details class="hide"><summary>Show the code</summary><pre>x</pre></details>
<div class="cell_output"><div class="output"><table class="dataframe"><thead><tr>{heads}</tr></thead>
<tr>{cells}</tr></table></div></div></div>
<details class="faithlab-evidence"><summary>Evidence, test and rerun</summary>Our test: a difference.</details>
<pre>{line}</pre></article></div></div></div></html>"""


def test_on_paper_nothing_is_dark_cut_off_or_a_button(chromium, tmp_path):
    page_file = tmp_path / "page.html"
    cells = "".join(f"<td>{number} [-1.00, 1.00]</td>" for number in range(7))
    styles = CONFIG["sphinx"]["config"]["html_css_files"]
    style = "".join((ROOT / "book/_static" / name).read_text() for name in styles)
    heads = "".join(f"<th>network {number}</th>" for number in range(7))
    page_file.write_text(DARK.format(style=style, cells=cells, heads=heads, line="a long line of code " * 20))
    page = chromium.new_page(viewport={"width": 680, "height": 960})  # A4 within margins of 15 mm
    page.emulate_media(media="print")
    page.goto(page_file.as_uri())
    background, text = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('h1')).color]"
    )
    shown = page.locator("body").inner_text()
    width = page.evaluate("document.documentElement.scrollWidth")
    table = page.evaluate("document.querySelector('table').getBoundingClientRect().right")
    evidence = page.locator(".faithlab-evidence").bounding_box()["height"]
    folded = page.locator(".faithlab-evidence summary").bounding_box()["height"]
    assert background == "rgb(255, 255, 255)"
    assert max(map(int, re.findall(r"\d+", text))) < 60
    assert "contents" not in shown
    assert "Show the code" not in shown
    assert width <= 680
    assert table <= 680, "a column is cut off"
    assert evidence > 1.5 * folded, "what is folded cannot be opened on paper"


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs chromium: apt-get install chromium")
def test_the_book_is_printed_as_its_guide_says(tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "book/_toc.yml").write_text("format: jb-book\nroot: book/home\nchapters:\n  - file: other/page\n")
    for name in ("book/home", "other/page"):
        page = tmp_path / f"build/study/html/{name}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"<!doctype html><title>{name}</title><p>{name}</p>")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, does in {
        "chromium": f'exec {shutil.which("chromium")} {" ".join(check_book.FLAGS)} "$@"',  # as a container needs it
        "pdfunite": 'echo "$@"',
    }.items():
        (tools / name).write_text(f"#!/bin/bash\n{does}\n")
        (tools / name).chmod(0o755)
    path = os.pathsep.join([str(tools), os.environ["PATH"]])
    said = command("bash", "-c", guide("fork").holding("bash", "--print-to-pdf"), folder=tmp_path, PATH=path)
    printed = sorted((tmp_path / "build/paper").iterdir())
    assert [file.read_bytes()[:5] for file in printed] == [b"%PDF-", b"%PDF-"]
    assert " ".join([*(f"build/paper/{file.name}" for file in printed), "build/faithlab.pdf"]) in said.splitlines()


def test_the_guide_for_contributors_names_what_is_there():
    guide = (ROOT / ".github/CONTRIBUTING.md").read_text()
    links = [link for link in re.findall(r"\]\(([^)]+)\)", guide) if not link.startswith("http")]
    assert all((ROOT / ".github" / link).exists() for link in links)
    paths = re.findall(r"`((?:lib|tests|book|data|notebooks|\.ci)/[\w./-]+)`", guide)
    assert len(paths) > 8
    assert not [path for path in paths if not (ROOT / path).exists()]
    makefile = (ROOT / "Makefile").read_text()
    targets = {word for line in re.findall(r"\bmake ([a-z -]+)", guide) for word in line.split() if word[0] != "-"}
    assert {"lint", "test", "book", "check", "sync", "lock"} <= targets
    for target in ("lint", "test", "test-foreign", "book", "check", "sync", "lock"):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_the_api_shows_a_constant_s_value_where_it_can_be_read(tmp_path, python):
    (tmp_path / "shelf.py").write_text(
        'FEW = {"a": 1}\n"""Few."""\n\nMANY = dict.fromkeys(range(999), 1)\n"""Many."""\n'
    )
    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path[:0] = [{str(ROOT / 'book')!r}, {str(tmp_path)!r}]\nextensions = ['docstrings']\n"
    )
    (tmp_path / "index.rst").write_text(".. automodule:: shelf\n   :members:\n")
    built = command(python, "-m", "sphinx", "-q", "-b", "text", str(tmp_path), str(tmp_path / "out"), folder=ROOT)
    text = (tmp_path / "out/index.txt").read_text()
    assert "FEW = {'a': 1}" in text.replace("shelf.", ""), (text, built)
    assert "MANY" in text
    assert "998" not in text
