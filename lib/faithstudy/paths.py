"""Where the study keeps things: the repository, its notebooks, what a build makes, what is recorded."""

import os
import re
import tempfile
from pathlib import Path

from faithstudy.networks import origins

PAPERS = {
    "f-fidelity": "F-Fidelity",
    "few-class-fidelity": "Few-class Fidelity",
    "saco": "SaCo",
    "trace": "TRACE",
    "reco-mege": "ReCo-MeGe",
}
"""Folders of notebooks, and the papers that they are about, as the book calls them."""


PROFILE = "study"
"""The profile of the records: the notebooks' own parameters."""
RECORDING = f"{PROFILE}+record"
"""The folder of the build folder in which ``make record`` measures."""


def root() -> Path:
    """Folder of the repository (the one that holds ``notebooks/profiles.yml``).

    ``FAITHLAB_ROOT`` names it outright; otherwise it is looked for upwards from this file, then upwards from the
    working directory.

    Raises:
        FileNotFoundError: no such folder; the message says how to name one.
    """
    if found := origins.repository():
        return found
    raise FileNotFoundError(
        "No folder with notebooks/profiles.yml in or above this library or the working directory: set FAITHLAB_ROOT to "
        "the folder of your clone"
    )


def build() -> Path:
    """Folder of everything that can be made again: ``build/``, or what ``FAITHLAB_BUILD`` names."""
    return root() / os.environ.get("FAITHLAB_BUILD", "build")


def script(name: str) -> Path:
    """Source of a notebook: ``f-fidelity/images`` is ``notebooks/f-fidelity/images.py``.

    Raises:
        FileNotFoundError: no such notebook; the message lists those that exist.
    """
    path = root() / "notebooks" / f"{name}.py"
    if not path.is_file():
        raise FileNotFoundError(f"No notebook {name!r}. There are: {', '.join(notebooks())}.")
    return path


def notebooks() -> list[str]:
    """Names of all notebooks, sorted."""
    folder = root() / "notebooks"
    return sorted(p.relative_to(folder).with_suffix("").as_posix() for p in folder.rglob("*.py"))


def pages() -> list[str]:
    """Names of the notebooks that are pages of the book, in the order of its table of contents."""
    contents = (root() / "book" / "_toc.yml").read_text(encoding="utf-8")
    return re.findall(r"^[^#\n]*\b(?:root|file): notebooks/([\w./-]+)", contents, re.MULTILINE)


def executed(name: str, profile: str) -> Path:
    """Executed copy of a notebook."""
    return build() / profile / "executed" / f"{name}.ipynb"


def results(name: str, profile: str) -> Path:
    """Folder of the tables and the provenance which a notebook saves when it runs."""
    return build() / profile / "results" / name


def unfinished(name: str, profile: str) -> Path:
    """Folder of the tables of a notebook that is still running, or has failed."""
    return build() / "unfinished" / profile / name


def recorded(name: str, profile: str) -> Path:
    """Folder of a committed run: the same files as in :func:`results`, worth keeping."""
    return root() / "data" / "results" / profile / name


def write(path: Path, text: str) -> Path:
    """Write a text file whole or not at all: a reader never meets half of it, a crash leaves the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, 0o644)  # mkstemp gives 0600; a published page must be readable
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)
    return path
