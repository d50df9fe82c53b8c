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

import gallery
import judged
import nbformat
import reader
import scoreboard

from faithstudy import paths, profiles, records
from faithstudy import run as results

STAGED = ("_config.yml", "CHANGELOG.md", "book", "data")


def check(profile: str) -> list[str]:
    """What does not belong together in a profile's build, as lines for a reader; none where the book can be made.

    Every page must be of the run that left its tables: other pages of the book show these, too.
    """
    names = paths.pages()
    wrong = {name: found for name in names if (found := results.page_faults(name, profile))}
    lines = [f"  {name}: {'; '.join(found)}" for name, found in wrong.items()]
    again = " ".join(os.path.relpath(paths.executed(name, profile)) for name in wrong)
    again = f"Run again what does not fit: rm -f {again} && make book PROFILE={profile}"
    return ["Pages and tables that do not belong together:", *lines, again] if wrong else []


def stage(profile: str, site: Path) -> None:
    """Copy pages, executed notebooks and results of this book into a fresh folder ``site``."""
    root = paths.root()
    shutil.rmtree(site, ignore_errors=True)
    site.mkdir(parents=True)
    hidden = shutil.ignore_patterns(".*", "__pycache__")
    for name in STAGED:
        if (root / name).is_dir():
            shutil.copytree(root / name, site / name, ignore=hidden)
        else:
            shutil.copy(root / name, site / name)
    # html_extra_path: what lies in extra/ is copied to the root of the site.
    tables = site / "extra" / "results"
    pages, judging = {}, []
    for name in paths.pages():
        page = site / "notebooks" / f"{name}.ipynb"
        page.parent.mkdir(parents=True, exist_ok=True)
        records.copy(paths.results(name, profile), tables / name)
        differing = records.differing(name)
        if differing.is_dir():
            shutil.copytree(differing, tables / name / "differing")
        says = judged.page(tables / name, name)
        judging += [says] if len(says.claims) else []
        executed = nbformat.read(paths.executed(name, profile), as_version=4)
        differ = [path.stem for path in sorted(differing.glob("*.csv"))]
        pages[name] = reader.arranged(executed, says, reader.caveats(says), differ)
        nbformat.write(pages[name], page)
    gallery.write(pages.items(), site / "book" / "_measured" / "gallery.md", site / "extra" / "gallery")
    scoreboard.write(tables, site / "book" / "_measured", judging, site / "extra" / "forest")


def build(site: Path, html: Path, profile: str) -> int:
    """Build a staged book with every warning an error, then put it in the place of the previous one.

    What a page offers for download is the notebook in the order in which it runs.
    """
    command = ["jupyter-book", "build", str(site), "--path-output", str(site.parent), "--all"]
    command += ["--toc", str(site / "book" / "_toc.yml"), "--warningiserror", "--keep-going", "-q"]
    output = site.parent / "_build"
    shutil.rmtree(output, ignore_errors=True)
    # Warnings and errors come on stderr; stdout would name a folder that is about to be moved.
    environment = os.environ | {"NO_COLOR": "1"}
    status = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL).returncode
    if status == 0:
        for name in paths.pages():
            offered = output / "html" / "_sources" / "notebooks" / f"{name}.ipynb"
            offered.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(paths.executed(name, profile), offered)
        shutil.rmtree(html, ignore_errors=True)
        os.replace(output / "html", html)
        shutil.rmtree(output)
    return status


def main() -> int:
    """Stage and build."""
    parser = argparse.ArgumentParser(description="Stage and build the book.")
    parser.add_argument("--profile", default="study", choices=profiles.PROFILES)
    profile = parser.parse_args().profile
    if wrong := check(profile):
        print("\n".join(["The book is not built.", *wrong]), file=sys.stderr)
        return 1
    folder = paths.build() / profile
    stage(profile, folder / "site")
    return build(folder / "site", folder / "html", profile)


if __name__ == "__main__":
    sys.exit(main())
