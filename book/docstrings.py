"""Sphinx extension: docstrings are plain text, with code in `backticks` and formulas in indented blocks.

Shapes such as [B, *S] and magnitudes such as |x| would be markup to Sphinx; here they are what they look like. A
paragraph that ends in a colon, before an indented block, announces a block that is shown as it stands.
"""

import inspect
import re
import types

from sphinx.application import Sphinx
from sphinx.ext.autodoc import DataDocumenter

# Code in backticks and what is already escaped stays; the rest of a line loses its accidental markup.
MARKUP = re.compile(r"(`+[^`]+`+|\\.)|([*|])")


def plain(lines: list[str]) -> list[str]:
    """A docstring with accidental markup escaped and announced blocks marked as literal."""
    done, block = [], None
    for index, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if block is not None and line.strip() and indent <= block:
            block = None
        if block is None:
            line = MARKUP.sub(lambda match: match[1] or "\\" + match[2], line)
            if line.endswith(":") and index + 2 < len(lines) and not lines[index + 1].strip():
                following = next((later for later in lines[index + 1 :] if later.strip()), "")
                if len(following) - len(following.lstrip()) > indent:
                    block = indent
                    line += "" if line.endswith("::") else ":"
        done.append(line)
    return done


def process(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Make a docstring plain before napoleon reads its sections."""
    inherited = isinstance(obj, types.GenericAlias) and inspect.getdoc(obj.__origin__) == "\n".join(lines).strip()
    lines[:] = [] if inherited else plain(lines)  # an alias without a docstring shows that of Callable otherwise


def skip(app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object) -> bool | None:
    """Leave out the fields of named tuples; their class describes them."""
    return True if type(obj).__name__ == "_tuplegetter" else None


class Constant(DataDocumenter):
    """A module's constant, with its value where that can be read: the table of all data sets is 600 000 letters."""

    def should_suppress_value_header(self) -> bool:
        """Whether the value is left out."""
        return super().should_suppress_value_header() or len(repr(self.object)) > 200


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", process, priority=100)
    app.connect("autodoc-skip-member", skip)
    app.add_autodocumenter(Constant, override=True)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
