"""Where stored weights come from: what is noted in their files, and which of them this process has used."""

import functools
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

_USED: dict[tuple[str, str], dict[str, object]] = {}

PRECISIONS: set[str] = set()
"""In what the tasks of this process are evaluated: "float32", "bfloat16" or both."""


def about() -> dict[str, str]:
    """Describe the origin of what is made now: commit and dirty (of this package), cpu, date; "" is unknown."""
    commit, dirty = _commit()
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return {"commit": commit, "dirty": dirty, "cpu": processor(), "date": date}


def use(kind: str, name: str, **facts: object) -> None:
    """Note that this process uses something that was stored; the same one is noted once."""
    _USED[kind, name] = {"kind": kind, "name": name, **facts}


def used() -> list[dict[str, object]]:
    """Every network that this process has loaded, and every set of orders, in the order of their first use.

    Of kind "network", trained by `faithstudy.networks.training`, name is the recipe's key and sha256 that of the file;
    commit, dirty, torch, device, cpu, date and seconds are of its training, not of this process; shipped is true of one
    that came with the repository. Kind "orders", of ROAR, is likewise: sha256 is of their first file. Of kind
    "pretrained", by others, source says where the weights come from, and sha256 is of the weights in their order.

    Returns:
        A dictionary each, of plain values that JSON can hold: kind, name and sha256, and what else is known.
    """
    return [dict(entry) for entry in _USED.values()]


def repository() -> Path | None:
    """The repository: FAITHLAB_ROOT where that is set, else the first upwards from here, or from the working directory.

    It is the folder that holds ``notebooks/profiles.yml``; None: there is none.
    """
    if named := os.environ.get("FAITHLAB_ROOT"):
        return _first(Path(named).resolve())
    return _first(*_ABOVE) or _first(Path.cwd(), *Path.cwd().parents)


_ABOVE = Path(__file__).resolve().parents
"""The folders above this file: Snakemake asks for the repository thousands of times."""


def _first(*folders: Path) -> Path | None:
    return next((folder for folder in folders if (folder / "notebooks" / "profiles.yml").is_file()), None)


def git(folder: Path, *arguments: str) -> str | None:
    """Return the output of git in a folder; None: there is no git, or it refuses."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


@functools.cache
def _commit() -> tuple[str, str]:
    """The commit of the repository of these packages, and "true" where they differ from it."""
    folder = Path(__file__).parents[2]
    # Another repository may hold the environment of this package.
    if git(folder, "ls-files", "--error-unmatch", __file__) is None or not (head := git(folder, "rev-parse", "HEAD")):
        return "", ""
    return head, "true" if git(folder, "status", "--porcelain", "--", ".") else "false"


@functools.cache
def processor() -> str:
    """The model of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []  # not Linux
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())
