"""The thousand photographs of the recorded study, one of each class of ImageNet.

``python -m faithstudy.data.photographs`` fetches them, where there is internet, into the folder that the profile
``study`` reads, and compares them with those that the study was recorded on. They are images of ImageNet, for research,
as a repository on GitHub passes them on, which names no licence of its own; nothing of them is passed on here.
"""

import argparse
import hashlib
import logging
import os
from collections.abc import Sequence
from pathlib import Path

from faithstudy.data import cache, imagenet, sources

FOLDER = "~/imagenet-sample-images"
"""Where the profile ``study`` looks for them."""

HOW = "python -m faithstudy.data.photographs fetches the study's (107 MB)"
"""What to do where they are not there."""

COMMIT = "77c04c785f50d838dd2aab21e28bb81846604653"
# GitHub makes the archive anew, not always of the same bytes: what is in it is compared.
ARCHIVE = sources.site(None, f"https://github.com/EliSchwartz/imagenet-sample-images/archive/{COMMIT}.tar.gz")
"""The repository of Eli Schwartz as it was in 2021."""

NUMBER = 1000
SHA256 = "1656025b5dc13f61d508d11c9365113ab058cb70b3c61a11b2c8e7e85327b9fd"
"""Their `fingerprint`."""


def fingerprint(folder: Path) -> str:
    """Return the sha256 of the names and contents of all images in a folder and those below it, by name."""
    digest = hashlib.sha256()
    for path in sorted(imagenet.images(folder), key=lambda path: path.relative_to(folder).as_posix()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return digest.hexdigest()


def are_lacking(folder: str | None) -> bool:
    """Return whether a folder is the one that the profile ``study`` reads, and is not there or empty."""
    path = Path(os.path.expanduser(folder or ""))  # as it is, where there is no such user
    return path == Path(FOLDER).expanduser() and not (path.is_dir() and any(path.iterdir()))


def fetch(folder: str | os.PathLike[str] = FOLDER) -> Path:
    """Put the photographs into a folder, all at once, unless they are there, and return it.

    An archive that lies in the folder `faithstudy.data.sources.by_hand` of ``imagenet-sample-images`` is taken in place
    of the download.

    Raises:
        DatasetUnavailable: they could not be fetched, are not those of the study, or the folder has something else.
    """
    target = Path(folder).expanduser().resolve()
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        source = sources.Source(ARCHIVE.addresses[0], (ARCHIVE,), lambda files, _: _put(files, target))
        sources.obtain(FOLDER.removeprefix("~/"), (source,), {"photographs": None}, target)
    elif fingerprint(target) != SHA256:
        raise sources.DatasetUnavailable(
            f"{target} has {len(imagenet.images(target))} images, and they are not the {NUMBER} of the study: name "
            "another folder, or move what is in it"
        )
    return target


def _put(files: sources.Files, target: Path) -> None:
    """Move the photographs among unpacked files into a folder, all at once."""
    photographs = [path for name, path in files.items() if name.endswith(".JPEG")]
    (flat := photographs[0].parent / "photographs").mkdir()
    for path in photographs:
        path.rename(flat / path.name)
    if fingerprint(flat) != SHA256:
        raise ValueError(f"the {len(photographs)} photographs in it are not the {NUMBER} of the study")
    flat.rename(target)  # an empty folder gives way; one that another fetch has filled meanwhile does not


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line: fetch the photographs and say where they lie."""
    parser = argparse.ArgumentParser(prog="python -m faithstudy.data.photographs", description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", nargs="?", default=FOLDER, help=f"where they go (default: {FOLDER})")
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        print(f"{NUMBER} photographs, verified, {fetch(parser.parse_args(arguments).folder)}")
    except (RuntimeError, cache.CacheUnavailable) as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    main()
