"""Sphinx extension: the button of Colab says that a notebook needs a cell first there.

The theme opens the committed notebook, in a session that has neither the library nor the repository.
"""

from sphinx.application import Sphinx

TEXT = "Colab, after one cell"
TOOLTIP = "Colab has nothing of the study: the page Rerun and fork has the cell that comes first there"


def told(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Name the button of Colab, where a page has one, by what it leads to."""
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []):
            if button["text"] == "Colab":
                button |= {"text": TEXT, "tooltip": TOOLTIP}


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", told, priority=900)  # after the theme has made its buttons
    return {"parallel_read_safe": True, "parallel_write_safe": True}
