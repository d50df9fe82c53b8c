"""Every figure of the experiments on one page, below its question; and each of them for other pages to show."""

import base64
import html
import io
import re
from collections.abc import Iterable
from pathlib import Path

from nbformat import NotebookNode
from PIL import Image

WIDTH = 420
"""Of a thumbnail, in pixels; what is drawn in lines (SVG) needs none."""


def figures(notebook: NotebookNode) -> list[tuple[str, str, str, str, bytes]]:
    """The figures of an executed notebook, the answer's first: name, what they show, caption, svg or png, picture."""
    found = []
    for cell in sorted(notebook.cells, key=lambda cell: "answer" not in cell.metadata.get("tags", [])):
        about = cell.metadata.get("mystnb", {})
        outputs = [output.get("data", {}) for output in cell.get("outputs", [])]
        pictures = [("svg", "".join(data["image/svg+xml"]).encode()) for data in outputs if "image/svg+xml" in data]
        pictures += [("png", thumbnail(base64.b64decode(d["image/png"]))) for d in outputs if "image/png" in d]
        if pictures and (name := about.get("figure", {}).get("name")):
            found.append((name, about.get("image", {}).get("alt", ""), about["figure"]["caption"], *pictures[0]))
    return found


def movable(notebook: NotebookNode) -> dict[str, str]:
    """The movable figures of an executed notebook that have an address, by it."""
    outputs = (output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", []))
    pages = ("".join(data.get("text/markdown", "")) for data in outputs)
    return {found[1]: page for page in pages if (found := re.match(r":::\{div\} faithlab-movable\n:name: (\S+)", page))}


def thumbnail(picture: bytes) -> bytes:
    """A small PNG of a picture, on white."""
    whole = Image.open(io.BytesIO(picture)).convert("RGBA")
    sheet = Image.new("RGBA", whole.size, "white")
    sheet.alpha_composite(whole)
    sheet.thumbnail((WIDTH, 2 * WIDTH), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    sheet.convert("RGB").quantize(128).save(file, "PNG", optimize=True)
    return file.getvalue()


def write(notebooks: Iterable[tuple[str, NotebookNode]], page: Path, folder: Path) -> None:
    """Write the gallery: its text, and its thumbnails into a folder that lies at the root of the site as `gallery`.

    A page of a part, such as ``book/saco/idea``, shows a figure of lines, or a movable one that has an address, where
    it includes ``shown/<its name>.md``, which lies beside the gallery's text.

    Args:
        notebooks: names and executed notebooks, in the order of the book.
        page: the file of its text, to be included by a page in `book`.
        folder: made if need be.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (page.parent / "shown").mkdir(parents=True, exist_ok=True)
    blocks = []
    for name, notebook in notebooks:
        shown, whole = "", movable(notebook)
        title = notebook.cells[0].source.partition("\n")[0].lstrip("# ")
        for anchor, alt, caption, kind, picture in figures(notebook):
            (folder / f"{anchor}.{kind}").write_bytes(picture)
            alt = html.escape(alt, quote=True)
            # The first sentence of its caption, which a thumbnail is too small to tell.
            first = html.escape(re.split(r"(?<=\.) (?=[A-Z])", caption)[0])
            image = f'<img src="../gallery/{anchor}.{kind}" alt="{alt}" loading="lazy">'
            shown += f'<a href="../notebooks/{name}.html#{anchor}" title="{alt}">{image}<span>{first}</span></a>'
            if kind == "svg":  # a picture of dots is kept small
                said = f'<figcaption><p><span class="caption-text">{html.escape(caption)}</span></p></figcaption>'
                image = f'<img src="../../gallery/{anchor}.svg" alt="{alt}">'
                whole.setdefault(anchor, f"<figure>{image}{said}</figure>")
        for anchor, text in whole.items():
            source = f'<p>From <a href="../../notebooks/{name}.html#{anchor}">{html.escape(title)}</a></p>'
            (page.parent / "shown" / f"{anchor}.md").write_text(f"{text}\n{source}\n", encoding="utf-8")
        if shown:
            blocks.append(f'## {title}\n\n<div class="faithlab-gallery">{shown}</div>\n')
    page.write_text("\n".join(blocks), encoding="utf-8")
