"""The one place for files on disk: where they lie, who may write them, and that they are whole or not there at all.

A file that others share is written in three steps: hold its `lock`, look again whether somebody else has made it
meanwhile, and write it with `write_atomically`. A job that is killed half-way leaves a hidden folder beside the
file; the next holder of the lock removes it. `once` takes these steps, for files that have their sha256 beside them.
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
_FULL = {errno.ENOSPC: "no space is left on its disk", errno.EDQUOT: "its disk quota is used up"}
_CLOSED = {
    errno.EACCES: "this user may not write there",
    errno.EPERM: "this user may not write there",
    errno.EROFS: "its disk is read-only",
    errno.ENOTDIR: "a part of its path is a file, not a folder",
    errno.EEXIST: "a file of its name is in the way",
}
_NOWHERE = {errno.ENOENT: "no folder can be made there"}  # as below /proc
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
    try:
        path = Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("faithlab")
    except RuntimeError:  # ~ of a user that this system does not have
        raise CacheUnavailable(
            errno.ENOENT, f"{VARIABLE} is {chosen}, but there is no such user; set it to a folder that you may write"
        ) from None
    path = path.absolute()
    with _storing(path, _FULL | _CLOSED | _NOWHERE):
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
def write_with_checksum(path: Path) -> Iterator[Path]:
    """As `write_atomically`, and the file's sha256 is put beside it, as `sha256sum` writes it, for `verified`."""
    path = Path(path)
    with write_atomically(path) as temporary:
        yield temporary
        if temporary.is_file():
            # First the checksum: whoever looks between the two, or after a writer killed there, finds no whole file.
            with write_atomically(_beside(path)) as beside:
                with temporary.open("rb") as file:
                    checksum = hashlib.file_digest(file, "sha256").hexdigest()
                beside.write_text(f"{checksum}  {path.name}\n", encoding="utf-8")


def verified(path: Path, *, tell: bool = True) -> bytes | None:
    """The content of a file that is as `write_with_checksum` wrote it; None where there is none, or another.

    It is read once, so that what is used is what was verified: not a map of a file that may change later. Nothing is
    locked or written. What was found instead of the file is logged as a warning, unless `tell` is off.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
        found = hashlib.sha256(content).hexdigest()
        expected = _beside(path).read_text(encoding="utf-8").partition(" ")[0]
    except FileNotFoundError as error:
        if path.exists() and tell:
            _log.warning("%s has no checksum beside it (%s) and will be made again", path, Path(error.filename).name)
        return None
    except (OSError, UnicodeDecodeError) as error:
        found, expected = str(error), ""
    if found == expected:
        return content
    if tell:
        said = f"sha256 expected {expected or 'none'}, found {found}"
        _log.warning("%s is damaged or was changed and will be made again: %s", path, said)
    return None


def remove(path: Path) -> None:
    """Remove a file and its checksum, if they are there."""
    for part in (Path(path), _beside(Path(path))):
        part.unlink(missing_ok=True)


def room(path: Path) -> None:
    """Look whether a file and its checksum can be stored, before the work of making it.

    Raises:
        CacheUnavailable: a folder is in the place of one of them.
    """
    for part in (Path(path), _beside(Path(path))):
        if part.is_dir():
            raise CacheUnavailable(
                errno.EISDIR, f"cannot store {part}: a folder is in its place. Move it away, or remove it"
            )


def once(path: Path, make: Callable[[], None], read: Callable[[bytes], _Content | None]) -> _Content:
    """What a file holds, which is made first where there is none that is whole.

    A file that is there is read without a lock, so that a cache that may not be written serves what it holds.

    Args:
        path: of the file.
        make: makes the file, by `write_with_checksum`.
        read: what its bytes mean; None: it is whole, but not what it should be.

    Raises:
        CacheUnavailable: it is not there, and cannot be stored; a folder is in its place.
    """

    def look(tell: bool = True) -> _Content | None:
        if (content := verified(path, tell=tell)) is None:
            return None
        if (found := read(content)) is None and tell:
            _log.warning("%s is whole, but not what it should be, and will be made again", path)
        return found

    if (found := look()) is None:
        with lock(path):
            if (found := look(tell=False)) is None:
                room(path)
                make()
                found = look()
    if found is None:
        raise RuntimeError(f"{path} was made again and is not whole; look for errors of its disk")
    return found


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


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
