"""The one place for files on disk: where they lie, who may write them, and that they are whole or not there at all.

A file that others share is written in three steps: hold its `lock`, look again whether somebody else has made it
meanwhile, and write it with `write_atomically`; `once` takes these steps. A job that is killed half-way leaves a hidden
folder beside the file; the next holder of the lock removes it.
"""

import errno
import hashlib
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import filelock
import platformdirs

VARIABLE = "FAITHLAB_CACHE"
"""The environment variable that moves the cache."""

_PATIENCE = 2.0  # seconds of silent waiting for a lock before saying so
_FULL = (errno.ENOSPC, errno.EDQUOT)
_log = logging.getLogger(__name__)
_Content = TypeVar("_Content")


class CacheUnavailable(OSError):  # noqa: N818, the word error would add nothing
    """A file could not be stored: the disk is full, or the folder may not be written. `errno` says which."""


def folder() -> Path:
    """Return the cache folder: the environment variable FAITHLAB_CACHE if set, else the user's cache of this system.

    Raises:
        CacheUnavailable: the folder cannot be made.
    """
    chosen = os.environ.get(VARIABLE)
    path = (Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("faithlab")).absolute()
    with _storing(path):
        path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold the right to make `path` alone, among all threads and processes that ask; wait for it where it is taken.

    What killed makers of `path` left behind is removed, so whoever writes `path` must hold its lock if anybody does.

    Raises:
        CacheUnavailable: the folder of `path` cannot be made or written.
    """
    with _storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        held = filelock.FileLock(path.with_name(f".{path.name}.lock"))
        try:
            acquired = held.acquire(timeout=_PATIENCE)
        except filelock.Timeout:
            _log.warning("waiting for another job that is making %s", path)
            acquired = held.acquire()
    with acquired:
        for leftover in path.parent.glob(f".{path.name}.*.tmp"):
            shutil.rmtree(leftover, ignore_errors=True)
        yield


@contextmanager
def scratch(path: Path) -> Iterator[Path]:
    """Yield an empty folder beside `path` for the work of making it, removed at the end however that comes.

    Raises:
        CacheUnavailable: no space left, or the folder may not be written; the message names it and what to do.
    """
    with _storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        names = {"prefix": f".{path.name}.", "suffix": ".tmp", "dir": path.parent}
        made = tempfile.TemporaryDirectory(**names, ignore_cleanup_errors=True)
    with made, _storing(path, _FULL):  # other errors are about the caller's own files as likely as about this folder
        yield Path(made.name)


@contextmanager
def write_atomically(path: Path) -> Iterator[Path]:
    """Yield a temporary path; on success it takes the place of `path`, on any exception it vanishes.

    Raises:
        CacheUnavailable: as `scratch`.
        FileNotFoundError: nothing was written to the temporary path.
    """
    with scratch(path) as workplace:  # a folder, because some writers make temporaries of their own beside the file
        temporary = workplace / path.name
        temporary.touch()
        mode = temporary.stat().st_mode  # what this user's umask wants; some writers make private files
        temporary.unlink()  # an empty file must not pass for a result
        yield temporary
        temporary.chmod(mode)
        temporary.replace(path)


@contextmanager
def write_with_checksum(path: Path) -> Iterator[Path]:
    """As `write_atomically`, and the file's sha256 is put beside it, as `sha256sum` writes it, for `verified`."""
    with write_atomically(path) as temporary:
        yield temporary
        # First the checksum: whoever looks between the two, or after a writer killed there, finds no whole file.
        with write_atomically(_checksum(path)) as beside, temporary.open("rb") as file:
            beside.write_text(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n", encoding="utf-8")


def verified(path: Path) -> bytes | None:
    """The content of a file that is as `write_with_checksum` wrote it; None where there is none, or another.

    It is read once, so that what is used is what was verified. Nothing is locked or written.
    """
    if not (path.exists() and _checksum(path).exists()):
        return None
    content = path.read_bytes()
    return content if _checksum(path).read_bytes()[:64] == hashlib.sha256(content).hexdigest().encode() else None


def remove(path: Path) -> None:
    """Remove a file and its checksum, if they are there."""
    for part in (path, _checksum(path)):
        part.unlink(missing_ok=True)


def once(
    path: Path, make: Callable[[], None], look: Callable[[], _Content | None], locked: Path | None = None
) -> _Content:
    """Return the content of a file, which is made first where there is none that is whole.

    A file that is there is read without a lock, so that a cache that may not be written serves what it holds.

    Args:
        path: of the file.
        make: makes the file.
        look: what the file holds; None: it is not there, or not what it should be.
        locked: whose lock is held while it is made; None: its own.

    Raises:
        CacheUnavailable: it is not there, and cannot be stored.
    """
    there = path.exists()
    if (found := look()) is None:
        if there:
            _log.warning("%s is damaged or was changed and will be made again", path)
        with lock(locked or path):
            if (found := look()) is None:
                make()
                found = look()
    return found


def _checksum(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


@contextmanager
def _storing(path: Path, numbers: tuple[int, ...] | None = None) -> Iterator[None]:
    """Turn an error of the disk into one that says what to do; of those numbers alone, where they are given."""
    try:
        yield
    except CacheUnavailable:
        raise
    except Exception as error:
        # Libraries written in Rust, such as safetensors, give the number of the system's error only in their text.
        told = re.search(r"\(os error (\d+)\)", str(error))
        number = error.errno if isinstance(error, OSError) else int(told[1]) if told else None
        if number is None or (numbers and number not in numbers):
            raise
        raise CacheUnavailable(
            number,
            f"cannot store {path.name} in {path.parent}: {os.strerror(number)}. "
            f"Free space there, or set {VARIABLE} to a folder with space that you may write",
        ) from error
