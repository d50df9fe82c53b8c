"""What a notebook depends on: the modules that its script reaches, the published and the recorded tables it names.

An edit makes stale what it reaches, and nothing else.
"""

import ast
import functools
import os
import re
from collections.abc import Iterable
from pathlib import Path

import grimp

from faithlab.study import places, profiles

FILES = "FAITHLAB_METRICS"


@functools.cache
def _graph() -> grimp.ImportGraph:
    return grimp.build_graph("faithlab", cache_dir=None)


def modules(script: Path) -> set[str]:
    """The modules of the library that a script reaches, with the packages that they are in."""
    asked: set[str] = set()
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            asked |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            # What is imported from a package may be a module of it, or a name in it.
            asked |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return _reached(asked)


def _reached(asked: Iterable[str]) -> set[str]:
    graph, found = _graph(), set()
    waiting = [name for name in asked if name in graph.modules]
    while waiting:
        module = waiting.pop()
        if module in found:
            continue
        found.add(module)
        # Importing a module runs its packages first.
        waiting += [module.rpartition(".")[0]] if "." in module else []
        waiting += graph.find_modules_directly_imported_by(module)
    return found


def _files(modules: Iterable[str]) -> list[Path]:
    paths = [places.root().joinpath("lib", *module.split(".")) for module in modules]
    return [path / "__init__.py" if path.is_dir() else path.with_suffix(".py") for path in paths]


def training(name: str) -> list[str]:
    """The files that the networks of a notebook depend on, besides its parameters: not how a run is started."""
    function = profiles.needs(name).trains or ""
    asked = {"faithlab.zoo.training", f"faithlab.{function}".rpartition(".")[0]}
    found = [path.relative_to(places.root()).as_posix() for path in _files(_reached(asked))]
    return [*sorted(found), "requirements.lock"]


def inputs(name: str) -> list[str]:
    """The files that a notebook's numbers depend on besides its own script, from the root of the repository.

    Modules, published tables that the script or one of the modules loads by name, its own recorded tables and those of
    pages that it names, what says which networks of its data ship, the versions of the libraries, and a reader's own
    metrics.
    """
    root, script = places.root(), places.script(name)
    files = _files(modules(script))
    loading = [path for path in files if path.name != "published.py"]  # which names them all
    named = set().union(*map(_names, [script, *loading]))
    files += [path for path in (root / "data" / "published").glob("*.csv") if path.stem in named]
    pages_named = _names(script) | {name}
    recorded = root / "data" / "results"
    for folder in recorded.glob("*/*"):
        pages = [folder] if (folder / "provenance.json").is_file() else list(folder.iterdir())
        files += [
            table
            for page in pages
            if page.relative_to(folder.parent).as_posix() in pages_named
            for table in page.iterdir()
        ]
    shipped = (root / "data" / "networks").glob("*.json")
    files += [
        facts for facts in shipped if any(facts.name.startswith(f"{data}-") for data in profiles.needs(name).data)
    ]
    files.append(root / "requirements.lock")
    found = sorted(path.relative_to(root).as_posix() for path in files if path.is_file())
    return found + [os.path.expanduser(path) for path in os.environ.get(FILES, "").split(os.pathsep) if path]


@functools.cache
def _names(file: Path) -> set[str]:
    """What stands in quotes in a file and may be a name."""
    return set(re.findall(r"[\"']([\w/-]+)[\"']", file.read_text(encoding="utf-8")))
