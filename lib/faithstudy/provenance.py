"""What a number came from: commit, parameters, the reader's own files, versions and machine.

The pipeline (`faithstudy.execute`) tells a notebook in the environment that it runs in its name, and which run this is.
A notebook that is not told so runs by hand (papermill, Jupyter, a copy), and its tables go to a folder of their own.
"""

import ast
import contextlib
import hashlib
import json
import os
import platform
import resource
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from modulefinder import ModuleFinder
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
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    return [cell.source.strip() for cell in code if "injected-parameters" not in cell.metadata.get("tags", [])]


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


def library() -> str:
    """SHA-256 of the sources of the library that is imported, and of a reader's files of metrics."""
    folder = Path(faithlab.__file__).parents[1]
    sources = sorted(path for package in ("faithlab", "faithstudy") for path in (folder / package).rglob("*.py"))
    texts = [[path.relative_to(folder).as_posix(), path.read_text("utf-8")] for path in sources]
    return hashlib.sha256(json.dumps([texts, named({"own": metrics()})]).encode()).hexdigest()


def recording() -> list[str]:
    """The tables of a page that ``make record`` measures anew; ["all"]: all of them, []: it is not at work."""
    return os.environ.get("FAITHLAB_RECORD", "").replace(",", " ").split()


def metrics() -> list[str]:
    """The reader's own files of metrics, which ``FAITHLAB_METRICS`` names."""
    return [os.path.expanduser(path) for path in os.environ.get("FAITHLAB_METRICS", "").split(os.pathsep) if path]


def imports(source: str | bytes) -> set[str]:
    """The names of modules that the import statements of a program may mean; none where it is no Python."""
    asked: set[str] = set()
    with contextlib.suppress(SyntaxError, ValueError):  # the run itself says what is wrong with it
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                asked |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                # What is imported from a package may be a module of it, or a name in it.
                asked |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return asked


def neighbours(path: Path) -> list[Path]:
    """The modules beside a reader's own file that it imports, and those that they import in turn, sorted.

    Args:
        path: of a file; one that is not there, or no Python, has none.
    """
    path = Path(os.path.abspath(path))
    finder = ModuleFinder([str(path.parent)])
    with contextlib.suppress(OSError, SyntaxError, ValueError):  # the run itself says what is wrong with it
        finder.run_script(str(path))
    return sorted({Path(module.__file__) for module in finder.modules.values() if module.__file__} - {path})


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
    """SHA-256 of a file, or of the names, sizes and times of what is in a folder; ``None`` of what is neither."""
    # os.path, unlike Path, takes any text: one that is too long to be a path names no file.
    if os.path.isfile(path):
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    if not os.path.isdir(path):
        return None
    files = [os.path.join(place, name) for place, _, names in os.walk(path) for name in names]
    about = sorted((file, *os.stat(file)[6:9:2]) for file in files if os.path.isfile(file))
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


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


def told(name: str) -> dict[str, Any]:
    """What the pipeline said about this run, as `announced` has it; nothing in a run by hand.

    It is said once: what the notebook starts in its turn does not run for the pipeline.

    Raises:
        ValueError: the pipeline runs another notebook, so this one has kept the name of that it was copied from.
    """
    known = json.loads(os.environ.pop(VARIABLE, "{}"))
    if (asked := known.pop("notebook", name)) != name:
        raise ValueError(f'notebooks/{asked}.py says Run("{name}", ...): change that to Run("{asked}", ...)')
    return known


def elsewhere() -> bool:
    """Whether another library is imported than that of the repository; one of notebooks alone has none."""
    own = places.root().resolve() / "lib"
    return own.is_dir() and not Path(faithlab.__file__).resolve().is_relative_to(own)


def warn() -> None:
    """Say on stderr where another library runs than that of the repository."""
    if elsewhere():
        print(f"The library that runs is not the one of this repository: {faithlab.__file__}", file=sys.stderr)


def commit() -> tuple[str | None, bool | None]:
    """The commit of the repository, and whether anything differs from it, be it the library that is imported.

    What the build folder holds, wherever it is, is made and no difference. An exported tree has no history.
    """
    root, build = places.root().resolve(), places.build().resolve()
    head = origins.git(root, "rev-parse", "HEAD")
    made = [f":(exclude){build.relative_to(root)}"] if build.is_relative_to(root) else []
    changed = bool(origins.git(root, "status", "--porcelain", "--", ".", *made)) if head else None
    return head, elsewhere() or changed


def versions() -> dict[str, Any]:
    """Versions of Python and of what a number depends on most."""
    return {"python": platform.python_version(), "versions": {name: metadata.version(name) for name in VERSIONED}}


def machine() -> dict[str, Any]:
    """Processor, GPU and peak memory of this process."""
    import torch  # here: Snakemake, which asks this module what pages reach, needs none

    on_gpu = torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "cpu": origins.processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name() if on_gpu else None,
        "peak_memory_mb": round(peak / (2**20 if sys.platform == "darwin" else 2**10)),  # macOS counts bytes
        "system": f"{platform.system()} {platform.machine()}",
    }
