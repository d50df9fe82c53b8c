"""The one place for files on disk: where they lie, who may write them, and that they are whole or not there at all.

A file that others share is written in three steps: hold its `lock`, look again whether somebody else has made it
meanwhile, and write it with `write_atomically`. A job that is killed half-way leaves a hidden folder beside the
file; the next holder of the lock removes it.
"""

import errno
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock
import platformdirs

__all__ = ["VARIABLE", "CacheUnavailable", "folder", "lock", "scratch", "write_atomically"]

VARIABLE = "FAITHLAB_CACHE"
"""The environment variable that moves the cache."""

_PATIENCE = 2.0  # seconds of silent waiting for a lock before saying so
_FULL = {errno.ENOSPC: "no space is left on its disk", errno.EDQUOT: "its disk quota is used up"}
_CLOSED = {
    errno.EACCES: "this user may not write there",
    errno.EPERM: "this user may not write there",
    errno.EROFS: "its disk is read-only",
    errno.ENOTDIR: "a part of its path is a file, not a folder",
    errno.EEXIST: "a file of its name is in the way",
}
_log = logging.getLogger(__name__)


class CacheUnavailable(OSError):  # noqa: N818, the word error would add nothing
    """A file could not be stored: the disk is full, or the folder may not be written. `errno` says which."""


def folder() -> Path:
    """Return the cache folder: the environment variable FAITHLAB_CACHE if set, else the user's cache of this system.

    Raises:
        CacheUnavailable: the folder cannot be made.
    """
    chosen = os.environ.get(VARIABLE)
    path = Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("faithlab")
    path = path.absolute()
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
    path = Path(path)
    with _storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        held = filelock.FileLock(path.with_name(f".{path.name}.lock"))
        try:
            held.acquire(timeout=_PATIENCE)
        except filelock.Timeout:
            _log.warning("waiting for another job that is making %s", path)
            held.acquire()
    try:
        for leftover in path.parent.glob(f".{path.name}.*.tmp"):
            shutil.rmtree(leftover, ignore_errors=True)
        yield
    finally:
        held.release()


@contextmanager
def scratch(path: Path) -> Iterator[Path]:
    """Yield an empty folder beside `path` for the work of making it, removed at the end however that comes.

    Raises:
        CacheUnavailable: no space left, or the folder may not be written; the message names it and what to do.
    """
    path = Path(path)
    with _storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        made = tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with _storing(path, _FULL):  # other errors are about the caller's own files as likely as about this folder
            yield Path(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def write_atomically(path: Path) -> Iterator[Path]:
    """Yield a temporary path; on success it takes the place of `path`, on any exception it vanishes.

    Readers see the old file or the whole new one, never a part: the bytes are on the disk before the name changes.

    Raises:
        CacheUnavailable: as `scratch`.
        FileNotFoundError: nothing was written to the temporary path.
    """
    path = Path(path)
    with scratch(path) as workplace:  # a folder, because some writers make temporaries of their own beside the file
        temporary = workplace / path.name
        temporary.touch()
        mode = temporary.stat().st_mode  # what this user's umask wants; some writers make private files
        temporary.unlink()  # an empty file must not pass for a result
        yield temporary
        if not temporary.is_file():
            raise FileNotFoundError(f"nothing was written for {path}: write to the path that was yielded")
        temporary.chmod(mode)
        _flush(temporary)
        temporary.replace(path)
        _flush(path.parent)


@contextmanager
def _storing(path: Path, reasons: dict[int, str] = _FULL | _CLOSED) -> Iterator[None]:
    """Turn the errors of a full or closed disk into one that says what to do."""
    try:
        yield
    except CacheUnavailable:
        raise
    except Exception as error:
        # Libraries written in Rust, such as safetensors, give the number of the system's error only in their text.
        told = re.search(r"\(os error (\d+)\)", str(error))
        number = error.errno if isinstance(error, OSError) else int(told[1]) if told else None
        if number not in reasons:
            raise
        raise CacheUnavailable(
            number,
            f"cannot store {path.name} in {path.parent}: {reasons[number]}. "
            f"Free space there, or set {VARIABLE} to a folder with space that you may write",
        ) from error


def _flush(path: Path) -> None:
    """Wait until the bytes of a file, or the names in a folder, are on the disk."""
    if path.is_dir() and os.name == "nt":  # Windows cannot open a folder
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
