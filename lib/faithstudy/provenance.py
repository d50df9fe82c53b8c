"""What a number came from: the code that ran, the library, the networks and the machine.

The pipeline (`study.execute`) tells a notebook in the environment that it runs in its name, and which run this is. A
notebook that is not told so runs by hand (papermill, Jupyter, a copy), and its tables go to a folder of their own.
"""

import ast
import contextlib
import functools
import hashlib
import json
import os
import platform
import resource
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import faithlab
from faithstudy import paths as places
from faithstudy.networks import origins

if TYPE_CHECKING:
    from nbformat import NotebookNode

VERSIONED = ("faithlab", "torch", "torchvision", "captum", "numpy", "pandas")
VARIABLE = "FAITHLAB_RUN"
"""Environment variable in which the pipeline describes the run, as JSON; a user has no reason to set it."""
BY_HAND = "by-hand"
"""What the folder of a profile's tables is called where the pipeline did not run the notebook, after a plus sign."""


class PartMade(Exception):  # noqa: N818, for it is none
    """A job has made its part of a page, and ends; see `faithstudy.run.Run.table`."""


def cells(notebook: "NotebookNode") -> list[str]:
    """The code of a notebook: its cells, without empty ones and without what papermill injected."""
    return [
        cell.source.strip()
        for cell in notebook.cells
        if cell.cell_type == "code" and cell.source.strip() and not _tagged(cell, "injected-parameters")
    ]


def _read(script: str | os.PathLike[str]) -> "NotebookNode":
    import jupytext  # here: Snakemake, which asks this module what pages reach, reads none

    return jupytext.read(script)


def digest(code: list[str]) -> str:
    """SHA-256 of a notebook's code: the same for the script, its pair and an executed copy. Text does not count."""
    return hashlib.sha256(json.dumps(code).encode()).hexdigest()


def page_identity(record: Mapping[str, Any]) -> dict[str, Any]:
    """What an executed page says of its run in its metadata, by which its tables are known.

    Args:
        record: the ``provenance.json`` of the run.
    """
    tables = {table: about["sha256"] for table, about in record["tables"].items()}
    return {"run": record["run"], "notebook_sha256": record["notebook_sha256"], "tables": tables}


def script_digest(name: str) -> str:
    """`digest` of a notebook as it is in the repository now."""
    return digest(cells(_read(places.script(name))))


def library() -> str:
    """SHA-256 of the sources of the library that is imported, and of a reader's files of metrics, with `neighbours`."""
    sources = _sources(Path(faithlab.__file__).parents[1])
    for number, path in enumerate(map(Path, metrics())):
        sources[f"own {number}"] = path.read_text("utf-8")
        beside = {os.path.relpath(other, path.parent): other for other in neighbours(path)}
        sources |= {f"own {number} {name}": other.read_text("utf-8") for name, other in beside.items()}
    return hashlib.sha256(json.dumps(sources, sort_keys=True).encode()).hexdigest()


def recording() -> list[str]:
    """The tables of a page that ``make record`` measures anew; ["all"]: all of them, []: it is not at work."""
    return os.environ.get("FAITHLAB_RECORD", "").replace(",", " ").split()


def metrics() -> list[str]:
    """The reader's own files of metrics, which ``FAITHLAB_METRICS`` names."""
    return [os.path.expanduser(path) for path in os.environ.get("FAITHLAB_METRICS", "").split(os.pathsep) if path]


def imports(file: Path) -> set[str]:
    """The names of modules that the import statements of a Python file may mean, relative ones with their dots.

    Raises:
        SyntaxError: it is no Python.
    """
    asked: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(file.read_bytes())]
    while waiting:  # statements alone: nine of ten nodes are within them
        node = waiting.pop()
        for held in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, held, ())
        if isinstance(node, ast.Import):
            asked |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            # What is imported from a package may be a module of it, or a name in it.
            package = "." * node.level + (node.module or "")
            names = {f"{package}{'.' if node.module else ''}{alias.name}" for alias in node.names}
            asked |= names | ({package} if node.module else set())
    return asked


def neighbours(path: Path) -> list[Path]:
    """The modules beside a reader's own file that it imports, and those that they import in turn, sorted.

    Args:
        path: of a file; one that is not there, or no Python, has none.
    """
    path = Path(os.path.abspath(path))
    found: set[Path] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        try:
            asked = imports(file) if file.suffix == ".py" and file.is_file() else set()
        except (SyntaxError, ValueError):  # ValueError: a null byte. The run itself says what is wrong with it.
            continue
        beside = {module for name in asked for module in _modules(name, file, path.parent)} - found - {path}
        found |= beside
        waiting += beside
    return sorted(found)


def _modules(name: str, file: Path, folder: Path) -> list[Path]:
    """The files that are run to import a module from a folder, or, with dots, from where the importing file is."""
    parts = name.lstrip(".").split(".")
    if dots := len(name) - len(name.lstrip(".")):
        folder = file.parents[dots - 1]
    found = []
    for count in range(1, len(parts) + 1):  # importing a module runs its packages first
        module = folder.joinpath(*parts[:count])
        found += [module / "__init__.py", module.with_name(f"{module.name}.py")]
    return [one for one in found if one.is_file()]


def _sources(folder: Path) -> dict[str, str]:
    """The modules of both packages in a folder, by their place in it."""
    found = (path for package in ("faithlab", "faithstudy") for path in (folder / package).rglob("*.py"))
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in found}


def elsewhere() -> Path | None:
    """Where the library lies that is imported, if it is another than the repository's; ``None``: it has these sources.

    A repository without a library is of notebooks alone.
    """
    imported, own = Path(faithlab.__file__).resolve().parents[1], (places.root() / "lib").resolve()
    if imported == own or not own.is_dir() or _sources(imported) == _sources(own):
        return None
    return imported


def warn() -> None:
    """Say on stderr, once in a process, that another library runs than that of the repository, and where it lies."""
    if imported := elsewhere():
        _warn(imported, places.root())


@functools.cache
def _warn(imported: Path, root: Path) -> None:
    print(
        f"The library that runs is not the one of this repository: it is in {imported}, and {root / 'lib'}"
        " differs. The run counts as one with local changes.",
        file=sys.stderr,
    )


def identity(name: str, parameters: Mapping[str, Any], notebook: str, code: str) -> dict[str, str]:
    """What a run is known by: no time and no chance, so that the same run made again has the same id.

    Args:
        name: the notebook.
        parameters: all its parameters, with the profile.
        notebook: `digest` of its code.
        code: `library` at the start of the run.

    Returns:
        ``run``, the id, and the hashes that it is made of. The id counts what `named` says.
    """
    text = json.dumps([name, parameters, notebook, code, *named(parameters)], sort_keys=True, default=str)
    return {"run": hashlib.sha256(text.encode()).hexdigest()[:16], "notebook_sha256": notebook, "code_sha256": code}


def named(parameters: Mapping[str, Any]) -> list[str]:
    """The reader's own files and folders that parameters name, with SHA-256 of what is in them, a line each.

    A file is given as "path/to/file" or "path/to/file.py:function", at any depth of lists and mappings; the modules
    beside it that it imports have a line each, too. Of a folder its listing counts, names, sizes and times: what is in
    it may be a data set of many gigabytes.
    """
    given = {text for value in _texts(parameters) for text in (value, value.rpartition(":")[0]) if text}
    for text in [text for text in given if text.endswith(".py")]:
        path = Path(text).expanduser()
        given |= {os.path.join(os.path.dirname(text), os.path.relpath(one, path.parent)) for one in neighbours(path)}
    return [f"{content}  {text}" for text in sorted(given) if (content := _content(os.path.expanduser(text)))]


def _texts(value: Any) -> list[str]:
    """The texts in a value, at any depth; the names in a mapping are none."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    return [text for one in inner for text in _texts(one)]


def _content(path: str) -> str | None:
    """SHA-256 of a file or of the listing of a folder; ``None`` of what is neither."""
    # os.path, unlike Path, takes any text: one that is too long to be a path names no file.
    if os.path.isfile(path):
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    if os.path.isdir(path):
        return hashlib.sha256(json.dumps(_listing(path)).encode()).hexdigest()
    return None


def _listing(folder: str) -> list[tuple[str, int, int]]:
    """Name below the folder, size in bytes and time of change of every file in a folder, however deep."""
    paths = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]
    found = [(os.path.relpath(path, folder), os.stat(path)) for path in paths if os.path.isfile(path)]
    return sorted((name, about.st_size, about.st_mtime_ns) for name, about in found)


@contextlib.contextmanager
def announced(name: str, known: Mapping[str, Any]) -> Iterator[None]:
    """While this holds, a kernel that is started is told that it runs a notebook for the pipeline.

    Args:
        name: the notebook.
        known: its `identity`; and `part`, where it is to make only a part of its blocks of images.
    """
    os.environ[VARIABLE] = json.dumps({"notebook": name, **known})
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)


def told(name: str) -> dict[str, Any] | None:
    """What the pipeline said about this run, as `announced` has it; ``None`` in a run by hand.

    It is said once: what the notebook starts in its turn does not run for the pipeline.

    Raises:
        ValueError: the pipeline runs another notebook, so this one has kept the name of that it was copied from.
    """
    text = os.environ.pop(VARIABLE, None)
    if text is None:
        return None
    known = json.loads(text)
    asked = known.pop("notebook")
    if asked != name:
        raise ValueError(
            f'notebooks/{asked}.py says Run("{name}", ...) and would replace the tables of {name}.'
            f' Change the line to Run("{asked}", ...).'
        )
    return known


def _tagged(cell: "NotebookNode", tag: str) -> bool:
    """Whether a cell has a tag."""
    return tag in cell.metadata.get("tags", [])


def commit() -> tuple[str | None, bool | None]:
    """The commit of the repository, and whether anything differs from it, be it the library that is imported.

    What the build folder holds, wherever it is, is made and no difference. An exported tree has no history, and nobody
    knows what differs from it where its own library is imported.
    """
    head = origins.git(places.root(), "rev-parse", "HEAD")
    if elsewhere():
        return head, True
    build, inside = places.build().resolve(), places.root().resolve()
    made = [f":(exclude){build.relative_to(inside)}"] if build.is_relative_to(inside) else []
    return head, bool(origins.git(inside, "status", "--porcelain", "--", ".", *made)) if head else None


def history() -> frozenset[str]:
    """All commits that led to the one that is checked out; none where the repository does not hold them."""
    if origins.git(places.root(), "rev-parse", "--is-shallow-repository") != "false":
        return frozenset()
    return frozenset((origins.git(places.root(), "rev-list", "HEAD") or "").split())


def versions() -> dict[str, Any]:
    """Versions of Python and of what a number depends on most."""
    return {"python": platform.python_version(), "versions": {name: _version(name) for name in VERSIONED}}


def _version(name: str) -> str | None:
    """Installed version of a distribution."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def machine() -> dict[str, Any]:
    """Processor, GPU and peak memory of this process. Torch is asked only where the notebook has imported it."""
    torch = sys.modules.get("torch")
    on_gpu = torch is not None and torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    megabyte = 2**20 if sys.platform == "darwin" else 2**10  # macOS counts bytes, Linux kilobytes
    return {
        "device": "cuda" if on_gpu else "cpu",
        "cpu": origins.processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads() if torch else 1,
        "gpu": torch.cuda.get_device_name() if on_gpu else None,
        "peak_memory_mb": round(peak / megabyte),
        "peak_gpu_memory_mb": round(torch.cuda.max_memory_allocated() / 2**20) if on_gpu else None,
        "system": f"{platform.system()} {platform.machine()}",
    }
