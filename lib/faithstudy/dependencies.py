"""What a notebook depends on: the modules that its script reaches, the published and the recorded tables it names.

An edit makes stale what it reaches, and nothing else. What is stale is decided by content. All that a page is to be
made of stands in a text, a line for each file with its hash, `notebook`; the pipeline keeps the text that the page was
made of; where the two differ the page is made again. Times of files, comments and docstrings do not count.
"""

import ast
import contextlib
import functools
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import grimp

from faithstudy import paths, profiles, provenance

PACKAGES = ("faithlab", "faithstudy")
"""What the repository holds in `lib`."""

CHANGING = ("FAITHLAB_ERROR_RATES", "FAITHLAB_NETWORKS")
"""Variables that change what a notebook finds."""


@functools.cache
def graph() -> grimp.ImportGraph:
    """Which module of both packages imports which."""
    return grimp.build_graph("faithlab", "faithstudy", cache_dir=None, include_external_packages=True)


def modules(script: Path) -> set[str]:
    """The modules of the library that a script reaches, with the packages that they are in, and others' packages."""
    asked = set(_asked(script, script.stat().st_mtime_ns))
    for own in map(Path, provenance.metrics()):
        for file in (own, *provenance.neighbours(own)):
            with contextlib.suppress(OSError, SyntaxError, ValueError):  # the run itself says what is wrong with it
                asked |= provenance.imports(file)
    return _reached(asked) | {name.partition(".")[0] for name in asked} - set(PACKAGES)


@functools.cache
def _asked(script: Path, changed: int) -> frozenset[str]:
    """What a script imports."""
    asked, text = provenance.imports(script), script.read_bytes()
    nodes = ast.walk(ast.parse(text)) if b"examine" in text else ()
    if "faithstudy.trials.examine" in asked or any(isinstance(n, ast.Attribute) and n.attr == "examine" for n in nodes):
        asked |= {"faithstudy.trials.examination"}  # which faithstudy.trials imports when it is asked for
    return frozenset(asked)


def _reached(asked: Iterable[str]) -> set[str]:
    known, found = graph(), set()
    waiting = [name for name in asked if name in known.modules]
    while waiting:
        module = waiting.pop()
        if module in found:
            continue
        found.add(module)
        # Importing a module runs its packages first.
        waiting += [module.rpartition(".")[0]] if "." in module else []
        waiting += known.find_modules_directly_imported_by(module)
    return found


def files(modules: Iterable[str]) -> list[str]:
    """The files of modules of both packages, from the root of the repository."""
    root = paths.root()
    return [_file(root, module) for module in modules if module.partition(".")[0] in PACKAGES]


@functools.cache
def _file(root: Path, module: str) -> str:
    """Of a module, from the root of the repository."""
    path = f"lib/{module.replace('.', '/')}"
    return f"{path}/__init__.py" if (root / path).is_dir() else f"{path}.py"


@functools.cache
def _distributions() -> Mapping[str, list[metadata.Distribution]]:
    """What is installed, by the names that can be imported of it.

    `importlib.metadata.packages_distributions` takes half a second for it: an object for each of forty thousand files.
    """
    found: dict[str, list[metadata.Distribution]] = {}
    for one in metadata.distributions():
        # What is installed for development has a list of names alone.
        files = "\n".join(filter(None, map(one.read_text, ("RECORD", "top_level.txt"))))
        # A folder, or a module beside it: a.py, a.cpython-313-darwin.so.
        names = re.findall(r"^(\w+)(?=/|\s*$|\.py,|\.[\w.-]*(?:so|pyd),)", files, re.MULTILINE)
        for name in set(names) - {"__pycache__"}:
            found.setdefault(name, []).append(one)
    return found


@functools.cache
def _version(one: metadata.Distribution) -> tuple[str, str]:
    return one.name, one.version


def _versions(modules: Iterable[str]) -> list[str]:
    """Python, and the versions of what is imported of others, as they are installed."""
    known = {one for module in modules for one in _distributions().get(module.partition(".")[0], [])}
    found = {f"{name} {version}" for name, version in map(_version, known) if name.lower() not in PACKAGES}
    return [f"python {sys.version_info.major}.{sys.version_info.minor}", *sorted(found, key=str.lower)]


def _trains(name: str) -> set[str]:
    function = profiles.needs(name).trains or ""
    return _reached({"faithstudy.networks.training", f"faithstudy.{function}".rpartition(".")[0]})


def networks(name: str, parameters: Mapping[str, Any]) -> str:
    """What the networks of a notebook are made of, as `notebook` says it: not how a run is started."""
    return _text(listed(sorted(files(_trains(name)))), _versions(_trains(name)), parameters)


def notebook(name: str, parameters: Mapping[str, Any]) -> str:
    """What a page is to be made of, a line each: hashes of its files, versions of others' packages, parameters.

    Two texts differ where the page has to be made again. Files that parameters name have a line each, too: an edited
    metric of the reader's own makes a page stale.

    Args:
        name: the notebook.
        parameters: all its parameters.
    """
    reached = modules(paths.script(name))
    files = [f"notebooks/{name}.py", *_inputs(name, reached)]
    return _text(listed(files), _versions(reached), parameters)


def _text(files: str, versions: list[str], parameters: Mapping[str, Any]) -> str:
    given = [f"{name}={os.environ[name]}" for name in CHANGING if name in os.environ]
    return "\n".join([files, *versions, *given, *provenance.named(parameters), json.dumps(parameters, sort_keys=True)])


def listed(files: Iterable[str], docstrings: bool = False) -> str:
    """Files of the repository with hashes of what is in them, a line each.

    Args:
        files: from the root of the repository.
        docstrings: the docstrings and comments of modules count, too.
    """
    root, known = paths.root(), len(_statements())
    lines = []
    for file in files:
        path = os.path.join(root, file)
        whole = docstrings or not file.startswith("lib/")
        lines.append(f"{_hash(path, whole, os.stat(path).st_mtime_ns)}  {file}")
    if len(_statements()) > known:
        with contextlib.suppress(OSError):  # they are found again
            paths.write(_statements_file(), json.dumps(_statements()))
    return "\n".join(lines)


@functools.cache
def _hash(path: str, whole: bool, changed: int) -> str:
    content = Path(path).read_bytes()
    found = hashlib.sha256(content).hexdigest()[:16]
    if whole:
        return found
    if found not in _statements():
        tree = ast.parse(content)
        for block in _blocks(tree):
            block.body = [line for line in block.body if not _is_text(line)]
        _statements()[found] = hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:16]
    return _statements()[found]


_RULE = hashlib.sha256(sys.version.encode() + Path(__file__).read_bytes()).hexdigest()[:8]
"""This Python, and this way to find what a module states."""


def _statements_file() -> Path:
    """Where `_statements` are kept."""
    return paths.build() / f".statements-{_RULE}.json"


@functools.cache
def _statements() -> dict[str, str]:
    """By hash of a module's text, that of its statements: a build asks it of every module, many times."""
    try:
        found = json.loads(_statements_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):  # none yet, or a damaged one
        return {}
    return found if isinstance(found, dict) else {}


def _blocks(node: ast.AST) -> Iterator[ast.AST]:
    """What has statements, at any depth; not what these are made of, which is ten times as much."""
    if hasattr(node, "body"):
        yield node
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, part, ()):
            yield from _blocks(inner)


def _is_text(line: ast.stmt) -> bool:
    """Whether a statement is nothing but a text, as docstrings are."""
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)


def want(wanted: Path, made: Path, text: str) -> Path:
    """Write what a product is to be made of where Snakemake looks by time: new if it is stale, old if it is not.

    Args:
        wanted: the file to write, an input of the product's rule.
        made: where the rule keeps what the product was made of; it need not be there.
        text: what the product is to be made of.

    Returns:
        ``wanted``.
    """
    fresh = made.is_file() and made.read_text(encoding="utf-8").strip() == text.strip()
    paths.write(wanted, f"{text}\n")
    if fresh:
        os.utime(wanted, (1, 1))
    return wanted


def inputs(name: str) -> list[str]:
    """The files that a notebook's numbers depend on besides its own script, from the root of the repository.

    Modules, published tables that the script or one of the modules loads by name, its own recorded tables and those of
    pages that it names, what says which networks of its data ship, and a reader's own metrics with their neighbours.
    """
    return _inputs(name, modules(paths.script(name)))


def _inputs(name: str, reached: Iterable[str]) -> list[str]:
    """`inputs`, with the modules that the script reaches."""
    root, script = paths.root(), f"notebooks/{name}.py"
    found = files(reached)
    named = set().union(*(_names(root, file) for file in [script, *found]))
    tables = [file for file in _within(root / "data/published") if file.endswith(".csv")]
    found += [f"data/published/{file}" for file in tables if file.removesuffix(".csv") in named]
    pages_named = _names(root, script) | {name}
    recorded = root / "data/results"
    for part in recorded.glob("*/*"):
        pages = [part] if (part / "provenance.json").is_file() else list(part.iterdir())
        for page in pages:
            if page.relative_to(part.parent).as_posix() in pages_named:
                found += [table.relative_to(root).as_posix() for table in page.iterdir()]
    shipped = tuple(f"{data}-" for data in profiles.needs(name).data)
    networks = _within(root / "data/networks")
    found += [f"data/networks/{file}" for file in networks if file.endswith(".json") and file.startswith(shipped)]
    return sorted(file for file in found if os.path.isfile(os.path.join(root, file))) + [
        str(one) for path in map(Path, provenance.metrics()) for one in (path, *provenance.neighbours(path))
    ]


def _within(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.is_dir() else []


@functools.cache
def _names(root: Path, file: str) -> set[str]:
    """What stands in quotes in a file and may be a name."""
    return set(re.findall(r"[\"']([\w/-]+)[\"']", (root / file).read_text(encoding="utf-8")))
