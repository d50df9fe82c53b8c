"""Sphinx extension: pages without sphinx-thebe, which the book does not use.

Jupyter Book loads it on every page, twice, as a script that fails and the address of a bundle on another host.
"""

from sphinx.application import Sphinx


def without_thebe(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Drop its scripts and styles from a page."""
    for kind in ("script_files", "css_files"):
        context[kind] = [file for file in context.get(kind, []) if "thebe" not in f"{file} {vars(file)}".lower()]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", without_thebe, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
