"""Which pages use what of the library: the API's entries lead to them."""

import ast
import functools
import importlib
from collections.abc import Mapping

from faithstudy import paths

SHOWN = 5
"""Pages named below an entry, the first in the order of the book."""


def asked(source: str) -> set[str]:
    """What a script names of the library, with all modules that it is in: such as `faithlab.metrics.evaluate`."""
    local: dict[str, str] = {}
    found: set[str] = set()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ("faithlab", "faithstudy"):
            local |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in local:
            found.add(local[node.id])
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in local:
            found.add(f"{local[node.value.id]}.{node.attr}")
    return found


def defined(name: str) -> str:
    """Where it is defined: the API describes `faithstudy.claims.better` in `faithstudy.claims.parts`."""
    module, _, attribute = name.rpartition(".")
    try:
        thing = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError):
        return name
    where, what = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    return f"{where}.{what}" if isinstance(where, str) and isinstance(what, str) else name


@functools.cache
def pages() -> Mapping[str, list[str]]:
    """By what is used: the pages that use it, in the order of the book."""
    found: dict[str, list[str]] = {}
    for page in paths.pages():
        for name in sorted({defined(name) for name in asked(paths.script(page).read_text(encoding="utf-8"))}):
            found.setdefault(name, []).append(page)
    return found


def sentence(name: str) -> str:
    """The pages that use it, as links for Sphinx; empty where none does."""
    using = pages().get(name, [])
    links = ", ".join(f":doc:`/notebooks/{page}`" for page in using[:SHOWN])
    more = f" and {len(using) - SHOWN} more" if len(using) > SHOWN else ""
    return f"*Used on:* {links}{more}." if using else ""
