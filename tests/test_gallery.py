"""The gallery has every figure of the book, small, below its question."""

import base64
import io
import re

import gallery
import nbformat
from PIL import Image

SHOWN = (("two", "svg"), ("one", "png"))

MOVES = ":::{div} faithlab-movable\n:name: three\n\n```json\n{}\n```\n:::\n"
NAMELESS = ":::{div} faithlab-movable\n\n```json\n{}\n```\n:::\n"


def drawn(name, *tags, size=(900, 300), lines=""):
    file = io.BytesIO()
    Image.new("RGBA", size, (0, 0, 0, 0)).save(file, "PNG")
    picture = base64.b64encode(file.getvalue()).decode()
    data = {"image/svg+xml": lines} if lines else {"image/png": picture}
    output = nbformat.v4.new_output("display_data", data | {"text/plain": "figure"})
    about = {"figure": {"name": name, "caption": "C."}, "image": {"alt": 'A "chart".'}}
    return nbformat.v4.new_code_cell("draw()", outputs=[output], metadata={"tags": list(tags), "mystnb": about})


def test_figures_are_small_and_lead_to_their_pages_those_of_the_answer_first(tmp_path):
    cells = [
        nbformat.v4.new_markdown_cell("# Is it so?\n\nYes."),
        drawn("one"),
        drawn("two", "answer", lines='<svg viewBox="0 0 72.4 36"/>'),
        nbformat.v4.new_code_cell(
            "move()", outputs=[nbformat.v4.new_output("execute_result", {"text/markdown": MOVES})]
        ),
        nbformat.v4.new_code_cell(
            "move()", outputs=[nbformat.v4.new_output("execute_result", {"text/markdown": NAMELESS})]
        ),
    ]
    plain = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# No figure")])
    book = [("saco/page", nbformat.v4.new_notebook(cells=cells)), ("saco/other", plain)]
    gallery.write(book, tmp_path / "book/gallery.md", tmp_path / "extra")
    text = (tmp_path / "book/gallery.md").read_text()
    assert re.findall(r"^## (.+)$", text, re.M) == ["Is it so?"]
    links = re.findall(r'href="([^"]+)" title="([^"]+)"><img src="([^"]+)" alt="([^"]+)"', text)
    alt = "A &quot;chart&quot;."
    assert links == [(f"../notebooks/saco/page.html#{n}", alt, f"../gallery/{n}.{kind}", alt) for n, kind in SHOWN]
    assert (tmp_path / "extra/two.svg").read_text() == '<svg viewBox="0 0 72.4 36"/>'
    whole = (tmp_path / "book/shown/two.md").read_text()
    source = '<p>From <a href="../../notebooks/saco/page.html#{}">Is it so?</a></p>\n'
    assert whole == (
        f'<figure><img src="../../gallery/two.svg" alt="{alt}"><figcaption><p><span class="caption-text">C.</span></p>'
        f"</figcaption></figure>\n{source.format('two')}"
    )
    assert not (tmp_path / "book/shown/one.md").exists(), "what is kept small is not shown large"
    moves = (tmp_path / "book/shown/three.md").read_text()
    assert moves == f"{MOVES}\n{source.format('three')}"
    assert {path.stem for path in (tmp_path / "book/shown").iterdir()} == {"two", "three"}, "one without a name is not"
    shown = Image.open(tmp_path / "extra/one.png")
    assert shown.size == (gallery.WIDTH, gallery.WIDTH // 3)
    assert shown.convert("RGB").getpixel((0, 0)) == (255, 255, 255), "what is transparent is white in the dark, too"
