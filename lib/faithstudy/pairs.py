"""Bring a notebook's two faces together, ``.py`` and ``.ipynb``: ``python -m faithstudy.pairs``.

jupytext writes the face that was not edited. Which one was is told by the pair as it last agreed, which is noted in the
build folder, or by git's last commit, and not by times, which a checkout sets by chance. Where both were edited nothing
is written.
"""

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from faithstudy import paths
from faithstudy.networks import origins

FACES = ("py", "ipynb")


def _face(name: str, face: str) -> Path:
    return paths.root() / "notebooks" / f"{name}.{face}"


def _cells(text: str, face: str) -> list:
    """What counts of a face of a notebook: its cells, without outputs."""
    import jupytext  # here: Snakemake asks for the few that git calls modified

    read = jupytext.reads(text, fmt="py:percent" if face == "py" else "ipynb").cells
    return [[cell.cell_type, cell.source.rstrip(), *map(cell.metadata.get, ("tags", "mystnb"))] for cell in read]


def edited(name: str) -> set[str]:
    """The faces of a notebook that were edited since they agreed: none where they do, both: nobody knows."""
    now = {face: _cells(path.read_text("utf-8"), face) for face in FACES if (path := _face(name, face)).is_file()}
    if len(now) == 1:
        return set(now)
    agreed = paths.build() / "pairs" / f"{name}.json"
    if now["py"] == now["ipynb"]:
        paths.write(agreed, json.dumps(now["py"]))
        return set()
    if agreed.is_file():
        before = dict.fromkeys(FACES, json.loads(agreed.read_text("utf-8")))
    else:
        texts = {face: origins.git(paths.root(), "show", f"HEAD:./notebooks/{name}.{face}") for face in FACES}
        before = {face: _cells(text, face) for face, text in texts.items() if text is not None}
    changed = {face for face in FACES if now[face] != before.get(face)}
    return changed if len(changed) == 1 else set(FACES)


def unheard(names: Iterable[str]) -> list[str]:
    """A line for each notebook whose ``.ipynb`` was edited while its ``.py``, which is what runs, has not got it."""
    modified = origins.git(paths.root(), "status", "--porcelain", "--", "notebooks")
    maybe = [name for name in names if modified is None or f"notebooks/{name}.ipynb" in modified]
    says = "notebooks/{0}.ipynb was edited, and notebooks/{0}.py, which is what runs, has not got it: make sync"
    return [says.format(name) for name in maybe if "ipynb" in edited(name)]


def sync(name: str, face: str) -> None:
    """Make the other face follow this one, and remove outputs."""
    import nbformat
    from jupytext.cli import jupytext

    os.utime(_face(name, face))
    with contextlib.redirect_stdout(sys.stderr):
        jupytext(["--quiet", "--sync", str(_face(name, face))])
    notebook = nbformat.read(_face(name, "ipynb"), as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    paths.write(_face(name, "ipynb"), nbformat.writes(notebook) + "\n")
    edited(name)  # and notes that they agree


def main(arguments: list[str] | None = None) -> int:
    """Command line of :func:`sync`."""
    parser = argparse.ArgumentParser(prog="python -m faithstudy.pairs", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NOTEBOOK", help="such as f-fidelity/images; none: all")
    parser.add_argument("--take", choices=FACES, help="which counts where both were edited")
    options, status = parser.parse_args(arguments), 0
    folder = paths.root() / "notebooks"
    found = [path for face in FACES for path in folder.rglob(f"*.{face}") if ".ipynb_checkpoints" not in path.parts]
    known = sorted({path.relative_to(folder).with_suffix("").as_posix() for path in found})
    if unknown := set(options.names) - set(known):
        parser.error(f"No notebook {', '.join(unknown)}. There are: {', '.join(known)}.")
    for name in options.names or known:
        faces = edited(name)
        if len(faces) == 2 and not options.take:
            both = f"notebooks/{name}.py and .ipynb were both edited: nothing was written. Keep one:"
            print(f"{both} make sync NAME={name} TAKE=py  or  TAKE=ipynb", file=sys.stderr)
            status = 1
        else:
            sync(name, options.take if len(faces) == 2 else next(iter(faces), "py"))
            print(f"notebooks/{name}: its two faces agree again\n" * bool(faces), end="")
    return status


if __name__ == "__main__":
    sys.exit(main())
