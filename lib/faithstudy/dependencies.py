"""What a page depends on: the modules that its script reaches, and the published and recorded tables that it names.

What is stale is decided by content: `notebook` says in a text what a page is made of, a line for each file with a hash,
and Snakemake makes a page again where its text has changed. Times, comments and docstrings do not count.
"""

import ast
import functools
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
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
    options = {"include_external_packages": True, "exclude_type_checking_imports": True}
    return grimp.build_graph(*PACKAGES, cache_dir=None, **options)


def reached(asked: Iterable[str], text: str = "") -> set[str]:
    """The modules of both packages that some reach, and the packages of others that these import.

    Args:
        asked: names that may be modules.
        text: names the metrics, in quotes, whose modules count; explainers count all.
    """
    known, found = graph(), set()
    waiting = [name for name in asked if name in known.modules]
    while waiting:
        if (module := waiting.pop()) in found:
            continue
        found.add(module)
        waiting += [module.rpartition(".")[0]] if "." in module else []  # importing a module runs its packages first
        waiting += _imports(module)
        if module == "faithlab.metrics":
            waiting += [family for family, named in registering().items() if named.search(text)]
        elif module == "faithlab.explainers":
            waiting += known.find_children(module)
    return found


@functools.cache
def registering() -> Mapping[str, re.Pattern]:
    """Modules that register metrics, with how a text names one of these or takes all of `METRICS`."""
    found = {}
    for family in sorted(graph().find_children("faithlab.metrics")):
        text = (Path(__file__).parents[1] / f"{family.replace('.', '/')}.py").read_text(encoding="utf-8")
        if names := re.findall(r'\bregister\(\s*f?"([^"{]+)', text):
            found[family] = re.compile(rf"[\"'](?:{'|'.join(map(re.escape, names))})|(?<!import )\bMETRICS\b(?!\[)")
    return found


_imports = functools.cache(lambda module: graph().find_modules_directly_imported_by(module))


def modules(script: Path, parameters: Mapping[str, Any] = {}) -> set[str]:
    """The modules that a script reaches with its parameters, and those that a reader's own files of metrics do."""
    asked = provenance.imports(text := script.read_text(encoding="utf-8"))
    if "examine" in text:
        asked |= {"faithstudy.trials.examination"}  # which faithstudy.trials imports when it is asked for
    for own in map(Path, provenance.metrics()):
        for file in filter(Path.is_file, (own, *provenance.neighbours(own))):
            asked |= provenance.imports(file.read_bytes())
    text += json.dumps(parameters, ensure_ascii=False)
    return reached(asked, text) | {name.partition(".")[0] for name in asked} - set(PACKAGES)


def files(modules: Iterable[str]) -> list[str]:
    """The files of modules of both packages, from the root of the repository."""
    root, found = paths.root(), []
    for module in modules:
        if module.partition(".")[0] in PACKAGES:
            path = f"lib/{module.replace('.', '/')}"
            found.append(f"{path}/__init__.py" if (root / path).is_dir() else f"{path}.py")
        if module == "faithstudy.plots":
            found.append("lib/faithstudy/faithstudy.mplstyle")
    return found


def listed(files: Iterable[str], docstrings: bool = False) -> str:
    """Files of the repository with hashes of what is in them, a line each.

    Args:
        files: from the root of the repository.
        docstrings: the docstrings and comments of modules count, too.
    """
    root = paths.root()
    whole = {file: docstrings or not (file.startswith("lib/") and file.endswith(".py")) for file in files}
    return "\n".join(
        f"{_hash(root / file, of, (root / file).stat().st_mtime_ns)}  {file}" for file, of in whole.items()
    )


@functools.cache
def _hash(path: Path, whole: bool, changed: int) -> str:
    """Of a file, or of what a module states; asked anew when the file has changed."""
    content = path.read_bytes()
    return hashlib.sha256(content if whole else ast.dump(_Code().visit(ast.parse(content))).encode()).hexdigest()[:16]


class _Code(ast.NodeTransformer):
    """What a module states, without docstrings: statements that are nothing but a constant."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) else node


def networks(name: str, parameters: Mapping[str, Any]) -> str:
    """What the networks of a notebook are made of, as `notebook` says it: not how a run is started."""
    function = f"faithstudy.{profiles.needs(name).trains or ''}".rpartition(".")[0]
    of = reached({"faithstudy.networks.training", function})
    return _text(sorted(files(of)), of, parameters)


def notebook(name: str, parameters: Mapping[str, Any]) -> str:
    """What a page is to be made of, a line each: hashes of its files, versions of others' packages, parameters.

    Two texts differ where the page has to be made again. Files that parameters name have a line each, too: an edited
    metric of the reader's own makes a page stale.

    Args:
        name: the notebook.
        parameters: all its parameters.
    """
    of = modules(paths.script(name), parameters)
    return _text([f"notebooks/{name}.py", *inputs(name, of)], of, parameters)


def _text(files: Iterable[str], modules: Iterable[str], parameters: Mapping[str, Any]) -> str:
    given = [f"{name}={os.environ[name]}" for name in CHANGING if name in os.environ]
    known = {of for module in modules for of in _distributions().get(module.partition(".")[0], ())} - {"faithlab"}
    versions = [f"python {sys.version_info.major}.{sys.version_info.minor}"]
    versions += [f"{of} {_version(of)}" for of in sorted(known)]
    said = [listed(files), *versions, *given, *provenance.named(parameters), json.dumps(parameters, sort_keys=True)]
    return "\n".join(said)


_distributions, _version = functools.cache(metadata.packages_distributions), functools.cache(metadata.version)


def inputs(name: str, reached: Iterable[str] | None = None) -> list[str]:
    """The files that a notebook's numbers depend on besides its own script, from the root of the repository.

    Modules, published tables that the script or one of the modules names in quotes, its own recorded tables, those of
    pages that it names and the scripts of these, what says which networks of its data ship, and a reader's own metrics
    with their neighbours.

    Args:
        name: the notebook.
        reached: the modules that its script reaches, where they are known.
    """
    root, script = paths.root(), f"notebooks/{name}.py"
    found = files(modules(paths.script(name)) if reached is None else reached)
    named = set().union(*(_names(root / file) for file in [script, *found]))
    found += [f"data/published/{path.name}" for path in (root / "data/published").glob("*.csv") if path.stem in named]
    every = "all_provenance(" in paths.script(name).read_text(encoding="utf-8")
    for record in (root / "data/results").rglob("provenance.json"):
        page = record.parent.relative_to(root / "data/results").as_posix().partition("/")[2]
        asked = page in _names(root / script) | {name}
        found += [f"notebooks/{page}.py"] * asked
        found += [of.relative_to(root).as_posix() for of in record.parent.iterdir() if asked or every]
    found += [f"notebooks/{name[9:]}.py" for name in named if name.startswith("defaults:")]
    for pattern in ["*"] if every else [f"{data}-*" for data in profiles.needs(name).data]:
        found += [f"data/networks/{path.name}" for path in (root / "data/networks").glob(f"{pattern}.json")]
    own = [str(one) for path in map(Path, provenance.metrics()) for one in (path, *provenance.neighbours(path))]
    return sorted({file for file in found if (root / file).is_file()}) + own


@functools.cache
def _names(path: Path) -> set[str]:
    """What stands in quotes in a file and may be a name; "defaults:page" where it takes a page's parameters."""
    text = path.read_text(encoding="utf-8")
    taken = re.findall(r'profiles\.defaults\("([\w/-]+)"', text)
    return {*re.findall(r"[\"']([\w/-]+)[\"']", text), *(f"defaults:{page}" for page in taken)}
