"""What a run leaves behind: tidy tables, where they came from, and the runs worth keeping.

A notebook says at its top ``run = Run("f-fidelity/images", globals())``, saves each table with
:meth:`Run.save` and shows ``run.finish()`` at its end. Tables and ``provenance.json`` go to
``build/<profile>/results/<notebook>/`` where the pipeline runs it, and to a folder beside it where anybody else does.
``python -m faithstudy.run promote --profile quick f-fidelity/images`` copies them to ``data/results/``, to be
committed; :func:`recorded` finds them there.
"""

import argparse
import contextlib
import functools
import hashlib
import html
import json
import os
import pickle
import platform
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import nbformat
import numpy as np
import pandas as pd
import torch
from pandas.io.formats.style import Styler

from faithlab.scores import COLUMNS, Scores
from faithlab.task import Task
from faithstudy import diagnostics, paths, profiles, provenance
from faithstudy.claims import Claim, Part, Verdict, error_rate
from faithstudy.diagnostics import Reason
from faithstudy.display_names import named
from faithstudy.networks import origins

Made = TypeVar("Made")

RECORDED_ORDER = ("paper", "study", "quick")
UNHASHED = "made before notebooks were hashed"
RATES = "FAITHLAB_ERROR_RATES"
"""The variable with the number of simulations of how often each claim's rule errs; unset: 300 in the runs that are long
anyway, the profiles study and paper, and none in the others."""


class Run:
    """One run of a notebook, from the first cell to the stamp at its end.

    Args:
        name: the notebook, for example ``f-fidelity/images``.
        variables: the notebook's ``globals()``, or any mapping that holds every name of its parameters cell.

    Only the pipeline writes to the folder of a profile. What differs from it goes to a folder that says how:
    ``build/quick+images=32`` with another parameter; ``build/quick+by-hand`` where papermill, Jupyter or Python ran the
    notebook as it is; ``build/quick+edited-1a2b3c4d`` where the code that they ran is not that of its script.

    Attributes:
        folder: where the tables are: apart while the notebook runs, so that a run that fails replaces nothing, and in
            their place when it has finished.

    Raises:
        KeyError: a parameter of the notebook is not among the variables.
        ValueError: the pipeline runs a notebook of another name.
        ParameterError: a parameter has a value that it cannot have, or one was given that the notebook does not have;
            files of the reader's own are missing. See `profiles.given`.
    """

    def __init__(self, name: str, variables: Mapping[str, Any]):
        self.name = name
        parameters = profiles.given(name, variables)
        self._label = profiles.label(name, parameters["profile"], parameters)
        self._variables = variables
        self._told = provenance.told(name)
        self._part = self._told.pop("part", None) if self._told else None
        self._code = provenance.library()
        self._files = provenance.named({"own": provenance.metrics(), **parameters})
        self._commit, self._dirty = provenance.commit()
        if not self._told:  # the pipeline says it where it is started, and not on a page
            provenance.warn()
        self.profile = parameters.pop("profile")
        self.parameters = parameters
        self.folder = paths.unfinished(name, self._label)
        self._steps = self.folder
        self._process = f"{platform.node()}-{os.getpid()}"
        if not self._told or self._part:  # of which any number may run at once
            self.folder = self.folder / self._process
        self.folder.mkdir(parents=True, exist_ok=True)
        for left in _tables_in(self.folder):
            left.unlink()
        for step in self._steps.glob("*.step") if self._told else ():
            if self._told["run"] not in step.name:
                step.unlink(missing_ok=True)  # another part may have done so
        self._tables: dict[str, dict[str, Any]] = {}
        self._scores: dict[str, Scores] = {}
        self._saved: dict[str, pd.DataFrame | Scores] = {}
        self._claims: list[tuple[str, Claim]] = []
        self._reasons: list[pd.DataFrame] = []
        self._asked: set[str] = set()  # names of steps
        self._made: set[Path] = set()  # steps of this process
        self._found: list[
            tuple[str, float]
        ] = []  # of each step that was found: where it was made, and in how many seconds
        self._started = time.perf_counter()

    def save(self, frame: pd.DataFrame | Scores, table: str) -> None:
        """Write a table, whole or not at all: scores as Parquet, others as CSV. A named index becomes columns.

        The part of the scores is the notebook's name. Nothing is returned: as the last line of a cell it would be
        shown on the page.

        Raises:
            ValueError: the table is empty; in a build, another of this name was saved before.
        """
        if not len(frame):
            raise ValueError(f"{self.name}: the table {table!r} is empty, so something before it went wrong.")
        if self._told and table in self._tables:  # by hand a cell may run again
            raise ValueError(f"{self.name}: two tables are called {table!r}; every table of a page has its own name")
        self._saved[table] = frame
        if isinstance(frame, Scores):
            self._scores[table] = frame
            path, columns = self.folder / f"{table}.parquet", list(COLUMNS)
            frame.labelled(part=self.name).save(path)
        else:
            named = any(level is not None for level in frame.index.names)
            frame = frame.reset_index() if named else frame
            path = paths.write(self.folder / f"{table}.csv", frame.to_csv(index=False))
            columns = [str(column) for column in frame.columns]
        self._tables[table] = {"file": path.name, "rows": len(frame), "columns": columns, "sha256": _digest(path)}

    def beside(self, table: str, published: pd.DataFrame | None = None) -> dict[str, pd.DataFrame | Scores]:
        """A saved table as "this build", with what there is to set beside it: "published" and the best "recorded" run.

        Args:
            table: its name.
            published: what the paper prints, in the same columns.

        Raises:
            KeyError: no such table has been saved.
        """
        kept = recorded(self.name, table)
        sources = {"published": published, "recorded": kept and kept.frame, "this build": self._saved[table]}
        return {name: of for name, of in sources.items() if of is not None}

    def covering(self, table: str, *by: str) -> tuple[str, pd.DataFrame | Scores]:
        """The table of the recorded run where it has all that this build's has, else this build's; its source first.

        Args:
            table: its name.
            *by: the columns whose combinations it shall have.
        """

        def rows(of: pd.DataFrame | Scores) -> set[tuple]:
            found = (block.labels for block in of) if isinstance(of, Scores) else of.to_dict("records")
            return {tuple(map(row.get, by)) for row in found}

        asked = rows(self._saved[table])
        return next((source, of) for source, of in self.beside(table).items() if asked <= rows(of))

    def kept(self, step: str, make: Callable[[], Made]) -> Made:
        """What a long step of the page makes. A run that was killed and is started again finds it made.

        Only a run of the pipeline that is the same in everything, code, parameters and the reader's own files, finds
        it; by hand each step is made anew. At the end of the page the steps are thrown away. Where a step was made goes
        into the provenance of the run that finds it, and its seconds are added: they are those of all jobs together.

        Args:
            step: its name on this page, which no other step has.
            make: what makes it; it can be pickled.

        Raises:
            ValueError: in a build, a step of this name was asked for before.
        """
        if not self._told:
            return make()
        if step in self._asked:  # by hand a cell may run again
            raise ValueError(f"{self.name}: two steps are called {step!r}; every step of a page has its own name")
        self._asked.add(step)
        path = self._steps / f"{hashlib.sha256(step.encode()).hexdigest()[:16]}-{self._told['run']}.step"
        content = path.read_bytes() if path.is_file() else b""
        if hashlib.sha256(content[32:]).digest() == content[:32]:  # whole; nobody else writes into the build folder
            made, *where = pickle.loads(content[32:])
            if path not in self._made:
                self._found.append(where)
            return made
        begin = time.perf_counter()
        made = make()
        content = pickle.dumps((made, _device(provenance.machine()), time.perf_counter() - begin))
        unfinished = path.with_suffix(f".{self._process}.partial")
        unfinished.write_bytes(hashlib.sha256(content).digest() + content)
        unfinished.replace(path)
        self._made.add(path)
        return made

    def by_images(self, step: str, tasks: Sequence[Task], ask: Callable[[Task], Scores]) -> Scores:
        """The long table of what is asked about every image of some tasks: the longest step of a page.

        `parts` in ``notebooks/profiles.yml`` says in how many blocks of images it is made; each of every task is
        `kept`. Jobs of the pipeline make the blocks ahead, a part each. Such a job ends here, so that a page calls this
        once, and what stands above it is made by every job: what is long of that is `kept`, too.

        Args:
            step: its name on this page.
            tasks: a network each, with all images.
            ask: the rows of a task. It is given parts of the above, see `Task.part`. What it says of an image
                does not depend on the others, beyond rounding.

        Returns:
            The blocks below each other: the images of each task in their order.

        Raises:
            PartMade: this is the job of a part, and the part is made.
        """
        part, parts = self._part or (None, profiles.needs(self.name).parts.get(self.profile, 1))
        tables = []
        for number, task in enumerate(tasks, start=1):
            blocks = torch.arange(len(task.x)).tensor_split(min(parts, len(task.x)))
            for block, images in enumerate(blocks, start=1):
                if part in (None, block):
                    make = partial(lambda of, images: ask(of.part(images) if parts > 1 else of), task, images)
                    tables.append(self.kept(f"{step} of network {number}, {block} of {parts}", make))
        if self._part:
            shutil.rmtree(self.folder)
            raise provenance.PartMade(f"{self.name}: part {part} of {parts} is made")
        return Scores.concat(tables)

    def claim(
        self,
        id: str,
        where: str,
        sentence: str,
        parts: Sequence[Part],
        *,
        paper: str | None = None,
        unit: str = "input",
    ) -> Verdict:
        """Judge a claim of a paper, below the table that it is about.

        Args:
            id: short, unique, stable.
            where: section, table or figure of the paper.
            sentence: the claim in our words.
            parts: what it says, see `faithstudy.claims`.
            paper: its name in the book; None: that of the notebook's folder.
            unit: what one row of its scores is about, in words.

        Returns:
            The verdict, to end a cell with, beside that of a larger run that is recorded.

        Raises:
            ValueError: a claim of this name was judged before; a part looks at scores that this run has not saved.
        """
        folder = self.name.split("/")[0]
        paper = paths.PAPERS.get(folder, folder.capitalize()) if paper is None else paper
        if id in [claim.id for _, claim in self._claims]:
            raise ValueError(f"{self.name}: the claim {id!r} was judged before; every claim has an id of its own")
        claim = Claim(id, where, sentence, tuple(parts), unit)
        for part in claim.parts:
            if part.table is not None and not any(part.table is saved for saved in self._scores.values()):
                raise ValueError(
                    f"the part {part.name!r} of {id!r} looks at scores that were not saved; save the whole table with "
                    "run.save first, and choose rows of it by labels"
                )
        self._claims.append((paper, claim))
        larger = RECORDED_ORDER[: [*RECORDED_ORDER, self.profile].index(self.profile)]
        kept = recorded(self.name, "claims")
        known = kept.frame.set_index("id")["verdict"] if kept and kept.profile in larger else {}
        beside = f"recorded ({kept.profile}): {known[id]}" if id in known else ""
        return replace(claim.verdict, beside=beside, worded=named)

    @property
    def verdicts(self) -> list[Verdict]:
        """Of its claims, as far as they are judged."""
        return [claim.verdict for _, claim in self._claims]

    def why(self, claims: str | Sequence[str], *asked: Reason, source: str) -> Styler:
        """Why claims may not be reproduced, below them. The page of the verdict shows it, too, where they are not.

        Args:
            claims: the ids of one or more claims.
            *asked: the rows, see `faithstudy.diagnostics`.
            source: whose inputs most numbers are of: "recorded" or "this build", as `beside` names them.

        Returns:
            The table, to end a cell with.

        Raises:
            ValueError: no such claim was judged before.
        """
        judged = [claim.id for _, claim in self._claims]
        for name in [claims] if isinstance(claims, str) else claims:
            if name not in judged:
                raise ValueError(
                    f"{self.name}: no claim {name!r} was judged above; there are {', '.join(judged) or 'none'}"
                )
            self._reasons.append(diagnostics.frame(*asked, source=source).assign(claim=name))
        return diagnostics.table(*asked, source=source)

    def _judged(self) -> None:
        """Save the verdicts and everything that they rest on, computed again from the files.

        Raises:
            ValueError: the files give another verdict than the page shows.
        """
        if not self._claims:
            return
        files = {table: Scores.load(self.folder / self._tables[table]["file"]) for table in self._scores}
        rows, parts, rates = [], [], []
        runs = int(os.environ.get(RATES, 300 if self.profile in ("study", "paper") else 0))
        for paper, claim in self._claims:
            names = {id(scores): table for table, scores in self._scores.items()}
            if any(part.table is not None and id(part.table) not in names for part in claim.parts):
                raise ValueError(
                    f"{self.name}: a table was saved anew after {claim.id!r} was judged by it; save the whole table "
                    "before its claims"
                )
            again = [part if part.table is None else part.on(files[names[id(part.table)]]) for part in claim.parts]
            verdict = replace(claim, parts=tuple(again)).verdict
            if [part.outcome for part in verdict.judged] != [part.outcome for part in claim.verdict.judged]:
                raise ValueError(
                    f"{self.name}: the saved tables say of {claim.id!r}: {verdict.sentence} The page says: "
                    f"{claim.verdict.sentence}"
                )
            shown, found = (v.frame().select_dtypes("number") for v in (claim.verdict, verdict))
            if not np.allclose(shown, found, rtol=1e-6, atol=1e-9, equal_nan=True):
                raise ValueError(f"{self.name}: the saved tables give other numbers of {claim.id!r} than the page")
            rows.append({"id": claim.id, "paper": paper, **verdict.row()})
            parts.append(verdict.frame())
            if runs:
                rates.append(self.kept(f"error rate of {claim.id}", partial(_rates, claim, runs)))
        self.save(pd.DataFrame(rows), "claims")
        self.save(pd.concat(parts, ignore_index=True), "parts")
        if self._reasons:
            self.save(pd.concat(self._reasons, ignore_index=True), "reasons")
        if rates:
            self.save(pd.DataFrame(rates), "error_rates")

    def download(self, table: str) -> "Download":
        """A link to a saved table for the page of this notebook.

        Raises:
            KeyError: no such table has been saved.
        """
        if table not in self._tables:
            raise KeyError(f"{self.name} has saved {', '.join(self._tables) or 'no table'}, not {table!r}.")
        return self._link(table, self._place()[0])

    def _link(self, table: str, place: Path) -> "Download":
        return Download(self.name, table, place / self._tables[table]["file"], linked=bool(self._told))

    def finish(self) -> "Stamp":
        """Stop the clock, put the tables in their place with ``provenance.json`` and return the stamp for the page.

        Tables of an earlier run which this one did not save are removed. A run by hand prints where its tables are.

        Raises:
            ValueError: this is the job of a part, but the page has not asked by images.
        """
        if self._part:
            raise ValueError(f"{self.name} is cut into parts by notebooks/profiles.yml, but ran to its end")
        self._judged()
        place, identity, edited = self._place()
        _, dirty = provenance.commit()
        record = {
            "notebook": self.name,
            "profile": self.profile,
            "parameters": self.parameters,
            **identity,
            "pipeline": bool(self._told),
            "edited": edited,
            "tables": self._tables,
            "own_files": self._files,
            "networks": origins.used(),
            "precisions": sorted(origins.PRECISIONS),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - self._started + sum(took for _, took in self._found), 2),
            "commit": self._commit,
            "dirty": True if edited else self._dirty or dirty,
            **provenance.versions(),
            **(machine := provenance.machine()),
            "steps_made_on": sorted({where for where, _ in self._found} - {_device(machine)}),
        }
        self._settle(place)
        paths.write(place / "provenance.json", json.dumps(record, indent=2, default=str) + "\n")
        if not self._told:
            print(f"{self.name} ran by hand, and the tables of the book are as they were. Its own are in {place}")
        return Stamp(record, [self._link(table, place) for table in self._tables])

    def _place(self) -> tuple[Path, dict[str, str | None], bool | None]:
        """Where the tables belong by what is known so far; the run's identity; whether it differs from the script.

        Both are unknown (``None``) where nobody knows what code ran.
        """
        if self._told:
            script = provenance.script_digest(self.name)
            return paths.results(self.name, self._label), self._told, self._told["notebook_sha256"] != script
        code = provenance.ran(self.name, self._variables)
        edited = provenance.edited(self.name, code) if code is not None else None
        suffix = provenance.BY_HAND
        identity = {"run": None, "notebook_sha256": None, "code_sha256": self._code}
        if code is not None:
            notebook = provenance.digest(code) if edited else provenance.script_digest(self.name)
            parameters = self.parameters | {"profile": self.profile}
            identity = provenance.identity(self.name, parameters, notebook, self._code)
            suffix = f"edited-{notebook[:8]}" if edited else suffix
        return paths.results(self.name, f"{self._label}+{suffix}"), identity, edited

    def _settle(self, place: Path) -> None:
        """Move the tables, and nothing else stays in either folder of what was there."""
        before, self.folder = self.folder, place
        for step in (*before.glob("*.step"), *before.glob("*.partial")):
            step.unlink()
        if before != place:
            place.mkdir(parents=True, exist_ok=True)
            for about in self._tables.values():
                os.replace(before / about["file"], place / about["file"])
            (before / "provenance.json").unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # it holds what is not of this run
                before.rmdir()
        for path in _tables_in(place):
            if path.stem not in self._tables:
                path.unlink()


def _rates(claim: Claim, runs: int) -> dict[str, Any]:
    return error_rate(claim, runs, resamples=400).row()


@dataclass(frozen=True)
class Download:
    """A link to a table; on a page of the book the file lies in ``results/`` of the site."""

    name: str
    table: str
    path: Path
    linked: bool = True

    def __repr__(self) -> str:
        return str(self.path)

    def _repr_html_(self) -> str:
        if not self.linked:  # a run by hand is not part of the site
            return f"<code>{html.escape(str(self.path))}</code>"
        # The page is notebooks/<name>.html: one step up for notebooks/, one for every folder in the name.
        up = "../" * (1 + self.name.count("/"))
        href = html.escape(f"{up}results/{self.name}/{self.path.name}", quote=True)
        return f'<a class="faithlab-download" href="{href}" download>{html.escape(self.path.name)}</a>'


@dataclass(frozen=True)
class Stamp:
    """The provenance of a run, as a folded line at the end of its page."""

    provenance: Mapping[str, Any]
    downloads: list[Download]

    def _head(self) -> str:
        p = self.provenance
        commit = f"commit {p['commit'][:9]}" if p["commit"] else "no commit"
        commit += " with local changes" if p["dirty"] else ""
        took = f"{_duration(p['seconds'])} on {', '.join([_device(p), *p.get('steps_made_on', ())])}"
        by = "" if p["pipeline"] else ", run by hand"
        return f"{p['profile']} profile{by} · {p['date'][:10]} · {commit} · {took}"

    def __repr__(self) -> str:
        return f"Provenance: {self._head()}"

    def _repr_html_(self) -> str:
        p = self.provenance
        rows = {
            "Tables": ", ".join(download._repr_html_() for download in self.downloads) or "none",
            "Parameters": _listed(p["parameters"]),
            "Networks": _networks(p["networks"]),
            "Versions": _listed(p["versions"]),
            "Machine": html.escape(
                f"{p['cpu']}, {p['cores']} cores, {p['threads']} threads" + (f"; {p['gpu']}" if p["gpu"] else "")
            ),
            "Peak memory": html.escape(
                f"{p['peak_memory_mb']} MB"
                + (f"; {p['peak_gpu_memory_mb']} MB on the GPU" if p["peak_gpu_memory_mb"] else "")
            ),
            "Run": html.escape(
                f"{p['run'] or 'not known'}, notebook {(p['notebook_sha256'] or 'not known')[:9]}"
                + (" (not that of the repository)" if p["edited"] else "")
                + f", {p['date']}, Python {p['python']}, {p['system']}"
            ),
        }
        body = "".join(f"<dt>{term}</dt><dd>{text}</dd>" for term, text in rows.items())
        return (
            '<details class="faithlab-provenance"><summary><strong>Provenance</strong> '
            f"{html.escape(self._head())}</summary><dl>{body}</dl></details>"
        )


def _device(machine: Mapping[str, Any]) -> str:
    """What computed: a GPU, or the processor."""
    return machine["gpu"] or machine["cpu"]


def _listed(values: Mapping[str, Any]) -> str:
    """Names and values as a line of HTML; an empty text is none."""
    return ", ".join(f"<code>{html.escape(f'{k}={v}')}</code>" for k, v in values.items() if v != "") or "none"


def _networks(used: list[Mapping[str, Any]]) -> str:
    """Networks as lines of HTML, one for all that come from the same place."""
    alike: dict[str, list[str]] = {}
    for network in used:
        if network["kind"] == "pretrained":
            origin = f"pretrained, {network['source']}"
        else:
            commit = f"commit {network['commit'][:9]}" if network.get("commit") else "no commit"
            commit += " with local changes" if network.get("dirty") else ""
            shipped = "shipped " if network.get("shipped") else ""
            origin = f"{shipped}{network['kind']} of {commit}, torch {network.get('torch')}, {network.get('device')}"
        alike.setdefault(origin, []).append(f"<code>{html.escape(str(network['name']))}</code>")
    return "<br>".join(f"{html.escape(origin)}: {', '.join(names)}" for origin, names in alike.items()) or "none"


def _duration(seconds: float) -> str:
    """A duration for a reader."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{seconds:.1f} s" if minutes == 0 else f"{minutes} min {rest} s"


def _digest(table: Path) -> str:
    """SHA-256 of a table; of CSV, whatever ends its lines: git may change that."""
    content = table.read_bytes()
    return hashlib.sha256(content if table.suffix == ".parquet" else content.replace(b"\r\n", b"\n")).hexdigest()


def _tables_in(folder: Path) -> list[Path]:
    """The tables in a folder."""
    return sorted(path for path in folder.glob("*") if path.suffix in (".csv", ".parquet"))


def faults(folder: Path) -> list[str]:
    """What does not belong together in a folder of results: tables that are not those of its ``provenance.json``.

    Of a run that was made before tables were hashed only the names are compared.
    """
    if not (folder / "provenance.json").is_file():
        return ["there is no provenance.json, so the run did not finish"]
    tables = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))["tables"]
    there = {path.stem: path for path in _tables_in(folder)}
    found = [f"the table {table} is missing" for table in tables if table not in there]
    for table, path in there.items():
        if table not in tables:
            found.append(f"the table {table} is not of this run")
        elif tables[table].get("sha256", _digest(path)) != _digest(path):
            found.append(f"the table {table} is not the one that the run saved")
    return found


def recorded_faults(name: str) -> list[str]:
    """What does not belong together in the recorded runs of a notebook, with the names of their folders."""
    folders = [paths.recorded(name, profile) for profile in RECORDED_ORDER]
    return [f"{folder}: {fault}" for folder in folders if folder.is_dir() for fault in faults(folder)]


def page_faults(name: str, profile: str) -> list[str]:
    """What does not belong together of a notebook in a build: its page, its tables and their provenance."""
    path, folder = paths.executed(name, profile), paths.results(name, profile)
    found = faults(folder)
    if not path.is_file():
        return [*found, "there is no executed page"]
    if not (folder / "provenance.json").is_file():
        return found
    record = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    page = nbformat.read(path, as_version=4)
    says = page.metadata.get("faithlab")
    if says is None or "run" not in record:
        return [*found, f"the page or its tables were {UNHASHED}"]
    expected = provenance.page_identity(record)
    if says["notebook_sha256"] != provenance.digest(provenance.cells(page)):
        found.append("the code on the page is not the code that ran")
    if (says["run"], says["notebook_sha256"]) != (expected["run"], expected["notebook_sha256"]):
        found.append(f"the page is of run {says['run']}, its tables are of run {expected['run']}")
    elif says["tables"] != expected["tables"]:
        found.append("the tables are of another time than the page")
    return found


@dataclass(frozen=True)
class Recorded:
    """A table of a committed run.

    Attributes:
        frame: the table; scores as `faithlab.scores.Scores`.
        profile: the profile it ran in.
        provenance: its ``provenance.json``.
    """

    frame: pd.DataFrame | Scores
    profile: str
    provenance: Mapping[str, Any]


def recorded(name: str, table: str) -> Recorded | None:
    """The best recorded run of a table (``paper`` before ``study`` before ``quick``); ``None`` where there is none.

    Raises:
        ValueError: the table is not the one that the recorded run saved.
    """
    for profile in RECORDED_ORDER:
        folder = paths.recorded(name, profile)
        if (folder / f"{table}.csv").is_file():
            return Recorded(pd.read_csv(folder / f"{table}.csv"), profile, _recorded_provenance(folder))
        if (folder / f"{table}.parquet").is_file():
            provenance = _recorded_provenance(folder)
            scores = _loaded(folder / f"{table}.parquet", provenance["tables"][table].get("sha256"))
            return Recorded(scores, profile, provenance)
    return None


@functools.lru_cache(maxsize=4)
def _loaded(path: Path, sha256: str | None) -> Scores:
    """A table of scores, which several cells of a page look at, read once."""
    return Scores.load(path)


def recorded_runs() -> list[dict[str, Any]]:
    """The provenance of every recorded run of a page, by page and profile."""
    folders = [paths.recorded(name, profile) for name in paths.pages() for profile in RECORDED_ORDER]
    return [_recorded_provenance(folder) for folder in folders if folder.is_dir()]


def _recorded_provenance(folder: Path) -> dict[str, Any]:
    """The provenance of a recorded run whose files belong together; it says so where it is older than its hash."""
    if found := faults(folder):
        raise ValueError(f"{folder}: {'; '.join(found)}. Restore it with git, or record the run again.")
    record = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    return {"run": UNHASHED, "notebook_sha256": UNHASHED} | record


def promote(name: str, profile: str) -> Path:
    """Copy the results of a run into ``data/results/``, in place of what was recorded there.

    Raises:
        ValueError: that notebook has not finished a run in this profile, or its page and tables are of different runs.
    """
    source, target = paths.results(name, profile), paths.recorded(name, profile)
    if found := page_faults(name, profile):
        raise ValueError(f"{name} has no run in {source} to record: {'; '.join(found)}. {remedy([name], profile)}")
    shutil.rmtree(target, ignore_errors=True)
    return copy(source, target)


def copy(source: Path, target: Path) -> Path:
    """Copy the tables of a run with their provenance, and nothing else that is in the folder."""
    target.mkdir(parents=True)
    for path in [*_tables_in(source), source / "provenance.json"]:
        shutil.copy(path, target)
    return target


def remedy(names: list[str], profile: str) -> str:
    """What to type so that notebooks run again in a build."""
    pages = " ".join(os.path.relpath(paths.executed(name, profile)) for name in names)
    return f"Run again what does not fit: rm -f {pages} && make book PROFILE={profile}"


def main(arguments: list[str] | None = None) -> int:
    """Command line of :func:`promote`."""
    parser = argparse.ArgumentParser(prog="python -m faithstudy.run", description="Keep results of a build.")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("promote", help="copy results of the build into data/results/, to be committed")
    command.add_argument("--profile", default="quick", choices=RECORDED_ORDER)
    command.add_argument("names", nargs="+", metavar="NOTEBOOK")
    options = parser.parse_args(arguments)
    try:
        for name in options.names:
            print(f"{name}: recorded in {promote(name, options.profile)}")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
