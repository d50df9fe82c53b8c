"""What a run leaves behind: tidy tables, where they came from, and the runs worth keeping.

A notebook says at its top ``run = Run("f-fidelity/images", globals())``, saves each table with
:meth:`Run.save` and shows ``run.finish()`` at its end. Tables and ``provenance.json`` go to
``build/<profile>/results/<notebook>/``. ``python -m faithlab.study.results promote --profile quick f-fidelity/images``
copies them to ``data/results/``, to be committed; :func:`recorded` finds them there.
"""

import argparse
import html
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import pandas as pd

from faithlab.study import places, profiles

VERSIONED = ("faithlab", "torch", "torchvision", "captum", "numpy", "pandas")
RECORDED_ORDER = ("paper", "long", "quick")


class Run:
    """One run of a notebook, from the first cell to the stamp at its end.

    Args:
        name: the notebook, for example ``f-fidelity/images``.
        variables: the notebook's ``globals()``, or any mapping that holds every name of its parameters cell. Where a
            value differs from the profile's, the results go to a folder of their own, such as
            ``build/quick+images=32``.

    Attributes:
        folder: where tables and provenance go.

    Raises:
        KeyError: a parameter of the notebook is not among the variables.
        ParameterError: a parameter has a value that it cannot have, or one was given that the notebook does not have;
            files of the reader's own are missing. See `profiles.given`.
    """

    def __init__(self, name: str, variables: Mapping[str, Any]):
        self.name = name
        parameters = profiles.given(name, variables)
        self.folder = places.results(name, profiles.label(name, parameters["profile"], parameters))
        self.profile = parameters.pop("profile")
        self.parameters = parameters
        self.folder.mkdir(parents=True, exist_ok=True)
        self._tables: dict[str, dict[str, Any]] = {}
        self._started = time.perf_counter()

    def save(self, frame: pd.DataFrame, table: str) -> None:
        """Write a table as CSV, whole or not at all. A named index becomes columns.

        Nothing is returned: as the last line of a cell it would be shown on the page.

        Raises:
            ValueError: the table is empty.
        """
        if frame.empty:
            raise ValueError(f"{self.name}: the table {table!r} is empty, so something before it went wrong.")
        named = any(level is not None for level in frame.index.names)
        frame = frame.reset_index() if named else frame
        self._tables[table] = {"rows": len(frame), "columns": [str(column) for column in frame.columns]}
        places.write(self.folder / f"{table}.csv", frame.to_csv(index=False))

    def download(self, table: str) -> "Download":
        """A link to a saved table for the page of this notebook.

        Raises:
            KeyError: no such table has been saved.
        """
        if table not in self._tables:
            raise KeyError(f"{self.name} has saved {', '.join(self._tables) or 'no table'}, not {table!r}.")
        return Download(self.name, table, self.folder / f"{table}.csv")

    def finish(self) -> "Stamp":
        """Stop the clock, write ``provenance.json`` beside the tables and return the stamp for the page.

        Tables of an earlier run which this one did not save are removed.
        """
        provenance = {
            "notebook": self.name,
            "profile": self.profile,
            "parameters": self.parameters,
            "tables": self._tables,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - self._started, 2),
            **_code(),
            **_machine(),
        }
        for path in self.folder.glob("*.csv"):
            if path.stem not in self._tables:
                path.unlink()
        places.write(self.folder / "provenance.json", json.dumps(provenance, indent=2, default=str) + "\n")
        return Stamp(provenance, [self.download(table) for table in self._tables])


@dataclass(frozen=True)
class Download:
    """A link to a table; on a page of the book the file lies in ``results/`` of the site."""

    name: str
    table: str
    path: Path

    def __repr__(self) -> str:
        return str(self.path)

    def _repr_html_(self) -> str:
        # The page is notebooks/<name>.html: one step up for notebooks/, one for every folder in the name.
        up = "../" * (1 + self.name.count("/"))
        href = html.escape(f"{up}results/{self.name}/{self.table}.csv", quote=True)
        return f'<a class="faithlab-download" href="{href}" download>{html.escape(self.table)}.csv</a>'


@dataclass(frozen=True)
class Stamp:
    """The provenance of a run, as a folded line at the end of its page."""

    provenance: Mapping[str, Any]
    downloads: list[Download]

    def _head(self) -> str:
        p = self.provenance
        commit = f"commit {p['commit'][:9]}" if p["commit"] else "no commit"
        commit += " with local changes" if p["dirty"] else ""
        took = f"{_duration(p['seconds'])} on {p['gpu'] or p['cpu']}"
        return f"{p['profile']} profile · {p['date'][:10]} · {commit} · {took}"

    def __repr__(self) -> str:
        return f"Provenance: {self._head()}"

    def _repr_html_(self) -> str:
        p = self.provenance
        rows = {
            "Tables": ", ".join(download._repr_html_() for download in self.downloads) or "none",
            "Parameters": _listed(p["parameters"]),
            "Versions": _listed(p["versions"]),
            "Machine": html.escape(
                f"{p['cpu']}, {p['cores']} cores, {p['threads']} threads" + (f"; {p['gpu']}" if p["gpu"] else "")
            ),
            "Peak memory": html.escape(
                f"{p['peak_memory_mb']} MB"
                + (f"; {p['peak_gpu_memory_mb']} MB on the GPU" if p["peak_gpu_memory_mb"] else "")
            ),
            "Run": html.escape(f"{p['date']}, Python {p['python']}, {p['system']}"),
        }
        body = "".join(f"<dt>{term}</dt><dd>{text}</dd>" for term, text in rows.items())
        return (
            '<details class="faithlab-provenance"><summary><strong>Provenance</strong> '
            f"{html.escape(self._head())}</summary><dl>{body}</dl></details>"
        )


def _listed(values: Mapping[str, Any]) -> str:
    """Names and values as a line of HTML."""
    return ", ".join(f"<code>{html.escape(f'{key}={value}')}</code>" for key, value in values.items()) or "none"


def _duration(seconds: float) -> str:
    """A duration for a reader."""
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def _code() -> dict[str, Any]:
    """Commit, whether anything differs from it, and versions."""

    def git(*arguments: str) -> str | None:
        command = ["git", "-C", str(places.root()), *arguments]
        try:
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            return None  # an exported tree has no history; the stamp says so

    commit = git("rev-parse", "HEAD")
    return {
        "commit": commit,
        "dirty": bool(git("status", "--porcelain")) if commit else None,
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in VERSIONED},
    }


def _version(name: str) -> str | None:
    """Installed version of a distribution."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _machine() -> dict[str, Any]:
    """Processor, GPU and peak memory of this process. Torch is asked only where the notebook has imported it."""
    torch = sys.modules.get("torch")
    on_gpu = torch is not None and torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    megabyte = 2**20 if sys.platform == "darwin" else 2**10  # macOS counts bytes, Linux kilobytes
    return {
        "device": "cuda" if on_gpu else "cpu",
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads() if torch else 1,
        "gpu": torch.cuda.get_device_name() if on_gpu else None,
        "peak_memory_mb": round(peak / megabyte),
        "peak_gpu_memory_mb": round(torch.cuda.max_memory_allocated() / 2**20) if on_gpu else None,
        "system": f"{platform.system()} {platform.machine()}",
    }


def _cpu() -> str:
    """Model of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []  # not Linux
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def read(name: str, table: str, profile: str) -> pd.DataFrame | None:
    """A table of the current build; ``None`` where that notebook has not run in this profile."""
    path = places.results(name, profile) / f"{table}.csv"
    return pd.read_csv(path) if path.is_file() else None


@dataclass(frozen=True)
class Recorded:
    """A table of a committed run.

    Attributes:
        frame: the table.
        profile: the profile it ran in.
        provenance: its ``provenance.json``.
    """

    frame: pd.DataFrame
    profile: str
    provenance: Mapping[str, Any]


def recorded(name: str, table: str) -> Recorded | None:
    """The best recorded run of a table (``paper`` before ``long`` before ``quick``); ``None`` where there is none."""
    for profile in RECORDED_ORDER:
        folder = places.recorded(name, profile)
        if (folder / f"{table}.csv").is_file():
            return Recorded(
                pd.read_csv(folder / f"{table}.csv"),
                profile,
                json.loads((folder / "provenance.json").read_text(encoding="utf-8")),
            )
    return None


def promote(name: str, profile: str) -> Path:
    """Copy the results of a run into ``data/results/``, in place of what was recorded there.

    Raises:
        FileNotFoundError: that notebook has not finished a run in this profile.
    """
    source, target = places.results(name, profile), places.recorded(name, profile)
    if not (source / "provenance.json").is_file():
        raise FileNotFoundError(f"{name} has no finished run in {source}. Run: make book PROFILE={profile}")
    shutil.rmtree(target, ignore_errors=True)
    return shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*"))


def main(arguments: list[str] | None = None) -> int:
    """Command line of :func:`promote`."""
    parser = argparse.ArgumentParser(prog="python -m faithlab.study.results", description="Keep results of a build.")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("promote", help="copy results of the build into data/results/, to be committed")
    command.add_argument("--profile", default="quick", choices=RECORDED_ORDER)
    command.add_argument("names", nargs="+", metavar="NOTEBOOK")
    options = parser.parse_args(arguments)
    try:
        for name in options.names:
            print(f"{name}: recorded in {promote(name, options.profile)}")
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
