"""The thousand photographs of the recorded study, one of each class of ImageNet.

``python -m faithlab.zoo.photographs`` fetches them, where there is internet, into the folder that the profile ``study``
reads, and compares them with those that the study was recorded on. They are images of ImageNet, for research, as a
repository on GitHub passes them on, which names no licence of its own; nothing of them is passed on here.
"""

import argparse
import hashlib
import logging
import os
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path

from faithlab.fetch import cache
from faithlab.fetch.sources import DatasetUnavailable, Download, by_hand

FOLDER = "~/imagenet-sample-images"
"""Where the profile ``study`` looks for them."""

HOW = "python -m faithlab.zoo.photographs fetches them (107 MB)"
"""What to do where they are not there."""

COMMIT = "77c04c785f50d838dd2aab21e28bb81846604653"
_SITE = "https://github.com/EliSchwartz/imagenet-sample-images"
# GitHub makes the archive anew, not always of the same bytes: what is in it is compared.
ARCHIVE = Download(f"{COMMIT}.tar.gz", None, (f"{_SITE}/archive/{COMMIT}.tar.gz",))
"""The repository of Eli Schwartz as it was in 2021."""

NUMBER = 1000
SHA256 = "1656025b5dc13f61d508d11c9365113ab058cb70b3c61a11b2c8e7e85327b9fd"
"""Their `fingerprint`."""


def fingerprint(folder: Path) -> str:
    """Return the sha256 of the names and contents of the photographs (``*.JPEG``) that lie in a folder, by name."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.JPEG"), key=lambda path: path.name):
        digest.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def fetch(folder: str | os.PathLike[str] = FOLDER) -> Path:
    """Put the photographs into a folder, unless they are there, and return it.

    An archive that lies in the folder `faithlab.fetch.sources.by_hand` of ``imagenet-sample-images`` is taken in place
    of the download.

    Raises:
        DatasetUnavailable: they could not be fetched, are not those of the study, or the folder has other photographs.
    """
    target = Path(folder).expanduser()
    there = len([*target.glob("*.JPEG")])
    if there:
        if fingerprint(target) == SHA256:
            return target
        raise DatasetUnavailable(
            f"{target} has other photographs ({there}) than the {NUMBER} of the study: name another, or move them"
        )
    try:
        with cache.scratch(target) as workplace:
            path = by_hand("imagenet-sample-images") / ARCHIVE.name
            path = path if path.is_file() else ARCHIVE.get(workplace)
            with tarfile.open(path) as tar:
                names = {name for member in tar if (name := Path(member.name).name).endswith(".JPEG")}
            (found := workplace / "unpacked").mkdir()
            ARCHIVE.unpack(path, found, names)
            (flat := workplace / "photographs").mkdir()
            for photograph in found.rglob("*.JPEG"):
                photograph.rename(flat / photograph.name)
            if (sha256 := fingerprint(flat)) != SHA256:
                raise DatasetUnavailable(
                    f"{path.name} has {len(names)} photographs with the fingerprint {sha256}, expected {NUMBER} with "
                    f"{SHA256}: they are not those of the study"
                )
            target.mkdir(exist_ok=True)
            for photograph in flat.iterdir():
                shutil.move(photograph, target / photograph.name)
    except (OSError, EOFError, ValueError, tarfile.TarError) as error:
        raise DatasetUnavailable(
            f"The photographs could not be fetched ({type(error).__name__}: {error}). Put {ARCHIVE.addresses[0]} into "
            f"{by_hand('imagenet-sample-images')}, or the files of the repository into {target}"
        ) from error
    return target


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line: fetch the photographs and say where they lie."""
    parser = argparse.ArgumentParser(prog="python -m faithlab.zoo.photographs", description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", nargs="?", default=FOLDER, help=f"where they go (default: {FOLDER})")
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        print(f"{NUMBER} photographs, verified, {fetch(parser.parse_args(arguments).folder)}")
    except DatasetUnavailable as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    main()
