"""The two faces of a notebook, ``.py`` and ``.ipynb``, brought together: ``python -m faithstudy.pairs``.

Both may be edited. Where one was, the other follows it. Where both were, nothing is written and the difference is
shown. What was edited is told by content, not by time: against the pair as it was when the two last agreed, which is
noted in the build folder, and against git's last commit. The libraries that read notebooks are imported where one is
read: Snakemake, which asks in every build whether one was edited, finds that out from the note alone.
"""

import argparse
import difflib
import functools
import hashlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from faithstudy import paths as places
from faithstudy.networks import origins

if TYPE_CHECKING:
    from nbformat import NotebookNode

FACES = ("py", "ipynb")
LINES = 12
"""So many lines of a difference are shown."""


def names() -> list[str]:
    """Names of all notebooks that have one face or both, sorted."""
    folder = places.root() / "notebooks"
    found = {path for face in FACES for path in folder.rglob(f"*.{face}") if ".ipynb_checkpoints" not in path.parts}
    return sorted({path.relative_to(folder).with_suffix("").as_posix() for path in found})


def edited(name: str) -> set[str]:
    """The faces of a notebook that were edited since the two agreed: none where they agree, both where nobody knows.

    A face that is not there was not edited.
    """
    noted, found = _noted(), _files(name)
    if set(found) < set(FACES):
        return set(found)
    raw = {face: hashlib.sha256(path.read_bytes()).hexdigest() for face, path in found.items()}
    known = noted.get(name, {})
    if known.get("files") == raw:
        return set()
    now = {face: _digest(path.read_bytes(), face) for face, path in found.items()}
    if now["py"] == now["ipynb"]:
        noted[name] = {"files": raw, "content": now["py"]}
        places.write(_note(), json.dumps(noted, indent=1) + "\n")
        return set()
    for before in (dict.fromkeys(FACES, known.get("content")), _committed(name)):
        changed = {face for face in FACES if before[face] != now[face]}
        if len(changed) == 1:
            return changed
    return set(FACES)


def unheard(names: Iterable[str]) -> list[str]:
    """A line for each notebook whose ``.ipynb`` was edited while its ``.py``, which is what runs, does not know."""
    return [
        f"notebooks/{name}.ipynb was edited, and notebooks/{name}.py, which is what runs, has not got it: make sync"
        for name in names
        if "ipynb" in edited(name)
    ]


def difference(name: str) -> str:
    """What the two faces differ in: lines of the script with -, those of the notebook with +."""
    script, notebook = (_read(path.read_bytes(), face) for face, path in _files(name).items())
    old, new = (_written(document).splitlines() for document in (script, notebook))
    lines = list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:]
    left = [f"... and {len(lines) - LINES} lines more"] if len(lines) > LINES else []
    return "\n".join(lines[:LINES] + left)


def take(name: str, face: str) -> None:
    """Make the other face of a notebook follow this one; both are without outputs afterwards."""
    from jupytext.cli import jupytext as convert

    path = places.root() / "notebooks" / f"{name}.{face}"
    script, notebook = path.with_suffix(".py"), path.with_suffix(".ipynb")
    if face == "ipynb":
        convert(["--quiet", "--to", "py:percent", str(notebook)])
    if face == "py" or edited(name):  # a script cannot say all that a notebook can, such as an empty line at an end
        convert(["--quiet", "--to", "ipynb", *(["--update"] if notebook.is_file() else []), str(script)])
    clear(name)
    edited(name)


def clear(name: str) -> bool:
    """Remove outputs and counts from the ``.ipynb``; whether there were any."""
    import nbformat

    path = places.root() / "notebooks" / f"{name}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and (cell.outputs or cell.execution_count)]
    for cell in code:
        cell.outputs, cell.execution_count = [], None
    if code:
        places.write(path, nbformat.writes(notebook) + "\n")
    return bool(code)


def sync(names: Iterable[str], chosen: str | None = None) -> list[str]:
    """Bring the faces of notebooks together, without outputs.

    Args:
        names: the notebooks.
        chosen: the face that counts where both were edited.

    Returns:
        Those that were left as they are, because both faces were edited.
    """
    left = []
    for name in names:
        faces = edited(name)
        if len(faces) == 2 and chosen is None:
            print(
                f"notebooks/{name}.py and notebooks/{name}.ipynb were both edited, or nothing tells which was."
                f" Lines of the .py have a -, of the .ipynb a +:\n{difference(name)}\nNothing was written. Make them"
                f" alike, or keep one: make sync NAME={name} TAKE=py  or  TAKE=ipynb",
                file=sys.stderr,
            )
            left.append(name)
        elif faces:
            face = chosen if len(faces) == 2 else faces.pop()
            (other,) = set(FACES) - {face}
            take(name, face)
            print(f"notebooks/{name}.{face} was edited: notebooks/{name}.{other} follows it")
        elif clear(name):
            print(f"notebooks/{name}.ipynb: outputs removed")
            edited(name)
    return left


def _files(name: str) -> dict[str, Path]:
    paths = {face: places.root() / "notebooks" / f"{name}.{face}" for face in FACES}
    return {face: path for face, path in paths.items() if path.is_file()}


def _note() -> Path:
    return places.build() / "pairs.json"


def _noted() -> dict[str, dict]:
    return json.loads(_note().read_text(encoding="utf-8")) if _note().is_file() else {}


def _read(content: bytes, face: str) -> "NotebookNode":
    import jupytext

    return jupytext.reads(content.decode(), fmt="py:percent" if face == "py" else "ipynb")


def _digest(content: bytes, face: str) -> str:
    """A hash of what both faces hold: of the cells, nothing of their outputs."""
    cells = [
        (cell.cell_type, cell.source.rstrip(), cell.metadata.get("tags", []), cell.metadata.get("mystnb"))
        for cell in _read(content, face).cells
    ]
    return hashlib.sha256(json.dumps(cells, sort_keys=True).encode()).hexdigest()


def _written(document: "NotebookNode") -> str:
    """The cells of a notebook as a script, without its header."""
    cells = [
        f"# %% [{cell.cell_type}] {cell.metadata.get('tags', '')}\n{cell.source.rstrip()}" for cell in document.cells
    ]
    return "\n".join(cells)


@functools.cache
def _committed(name: str) -> dict[str, str | None]:
    """The hashes of both faces as git has them; None where it has not."""

    def show(face: str) -> str | None:
        text = origins.git(places.root(), "show", f"HEAD:./notebooks/{name}.{face}")
        return None if text is None else _digest(text.encode(), face)

    return {face: show(face) for face in FACES}


def main(arguments: list[str] | None = None) -> int:
    """Command line of :func:`sync`."""
    parser = argparse.ArgumentParser(prog="python -m faithstudy.pairs", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NOTEBOOK", help="such as f-fidelity/images; none: all")
    parser.add_argument("--take", choices=FACES, help="which counts where both were edited")
    options = parser.parse_args(arguments)
    known = names()
    if unknown := set(options.names) - set(known):
        print(f"No notebook {', '.join(sorted(unknown))}. There are: {', '.join(known)}.", file=sys.stderr)
        return 2
    return 1 if sync(options.names or known, options.take) else 0


if __name__ == "__main__":
    sys.exit(main())
