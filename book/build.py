"""Stage the book and build it: ``python book/build.py --profile quick``.

The staged copy has the layout of the repository, with the executed notebooks in the place of the committed ones: so
launch, edit and download links point at files that exist there, and Sphinx sees nothing but the book. It is made anew
every time, because Sphinx keeps numbers of other pages (glue) in an incremental build.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import scoreboard

from faithlab.study import places, profiles

STAGED = ("_config.yml", "CHANGELOG.md", "book", "data")


def stage(profile: str, site: Path) -> None:
    """Copy pages, executed notebooks and results of a profile into a fresh folder ``site``."""
    root, built = places.root(), places.build() / profile
    shutil.rmtree(site, ignore_errors=True)
    site.mkdir(parents=True)
    hidden = shutil.ignore_patterns(".*", "__pycache__")
    for name in STAGED:
        if (root / name).is_dir():
            shutil.copytree(root / name, site / name, ignore=hidden)
        else:
            shutil.copy(root / name, site / name)
    shutil.copytree(built / "executed", site / "notebooks", ignore=shutil.ignore_patterns("*.failed.ipynb"))
    scoreboard.write(built / "results", site / "book" / "_measured")
    # html_extra_path: what lies in here is copied to the root of the site.
    shutil.copytree(built / "results", site / "extra" / "results", ignore=hidden)


def build(site: Path, html: Path) -> int:
    """Build a staged book with every warning an error, then put it in the place of the previous one."""
    command = ["jupyter-book", "build", str(site), "--path-output", str(site.parent), "--all"]
    command += ["--toc", str(site / "book" / "_toc.yml"), "--warningiserror", "--keep-going", "-q"]
    output = site.parent / "_build"
    shutil.rmtree(output, ignore_errors=True)
    # Warnings and errors come on stderr; stdout would name a folder that is about to be moved.
    environment = os.environ | {"NO_COLOR": "1"}
    status = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL).returncode
    if status == 0:
        shutil.rmtree(html, ignore_errors=True)
        os.replace(output / "html", html)
        shutil.rmtree(output)
    return status


def main() -> int:
    """Stage and build."""
    parser = argparse.ArgumentParser(description="Stage and build the book.")
    parser.add_argument("--profile", default="quick", choices=profiles.PROFILES)
    profile = parser.parse_args().profile
    folder = places.build() / profile
    stage(profile, folder / "site")
    return build(folder / "site", folder / "html")


if __name__ == "__main__":
    sys.exit(main())
