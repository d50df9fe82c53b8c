"""Every figure of the experiments on one page, below its question; and each of them for other pages to show."""

import base64
import html
import io
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from nbformat import NotebookNode
from PIL import Image

WIDTH = 420
"""Of a thumbnail, in pixels; what is drawn in lines (SVG) needs none."""


def figures(notebook: NotebookNode) -> list[tuple[str, str, str, str, bytes]]:
    """The figures of an executed notebook, the answer's first: name, what they show, caption, svg or png, picture."""
    found = []
    for cell in notebook.cells:
        about = cell.metadata.get("mystnb", {})
        if not (name := about.get("figure", {}).get("name")):
            continue
        for data in (output.get("data", {}) for output in cell.get("outputs", [])):
            picture = None
            if "image/svg+xml" in data:
                picture = "svg", "".join(data["image/svg+xml"]).encode()
            elif "image/png" in data:
                picture = "png", thumbnail(base64.b64decode(data["image/png"]))
            if picture:
                answer = "answer" in cell.metadata.get("tags", [])
                found.append(
                    (not answer, name, about.get("image", {}).get("alt", ""), about["figure"]["caption"], *picture)
                )
                break
    return [tuple(rest) for _, *rest in sorted(found, key=lambda one: one[0])]


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


def size(kind: str, picture: bytes) -> str:
    """The attributes that keep a picture's place on a page that loads; none where it does not say its size."""
    if kind == "png":
        sides = Image.open(io.BytesIO(picture)).size
    else:
        box = re.search(rb'viewBox="[\d.-]+ [\d.-]+ ([\d.]+) ([\d.]+)"', picture)
        sides = [round(float(side)) for side in box.groups()] if box else []
    return "".join(f' {name}="{side}"' for name, side in zip(("width", "height"), sides, strict=False))


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
        shown: Mapping[str, str] = {}
        title = notebook.cells[0].source.partition("\n")[0].lstrip("# ")
        for anchor, alt, caption, kind, picture in figures(notebook):
            (folder / f"{anchor}.{kind}").write_bytes(picture)
            text = html.escape(alt, quote=True)
            link = f'href="../notebooks/{name}.html#{html.escape(anchor)}" title="{text}"'
            image = f'<img src="../gallery/{anchor}.{kind}" alt="{text}"{size(kind, picture)} loading="lazy">'
            # The first sentence of its caption, which a thumbnail is too small to tell.
            first = html.escape(re.split(r"(?<=\.) (?=[A-Z])", caption)[0])
            shown = shown | {anchor: f"<a {link}>{image}<span>{first}</span></a>"}
            if kind == "svg":  # a picture of dots is kept small
                source = f'From <a href="../../notebooks/{name}.html#{html.escape(anchor)}">{html.escape(title)}</a>'
                whole = f'<img src="../../gallery/{anchor}.svg" alt="{text}">'
                said = f'<span class="caption-text">{html.escape(caption)} {source}</span>'
                text = f"<figure>{whole}<figcaption><p>{said}</p></figcaption></figure>\n"
                (page.parent / "shown" / f"{anchor}.md").write_text(text, encoding="utf-8")
        for anchor, whole in movable(notebook).items():
            source = f'From <a href="../../notebooks/{name}.html#{html.escape(anchor)}">{html.escape(title)}</a>'
            text = f"{whole}\n<p>{source}</p>\n"
            (page.parent / "shown" / f"{anchor}.md").write_text(text, encoding="utf-8")
        if shown:
            blocks.append(f'## {title}\n\n<div class="faithlab-gallery">{"".join(shown.values())}</div>\n')
    page.write_text("\n".join(blocks), encoding="utf-8")
