"""A run of a page: its tables, recorded or measured, its claims, and where they came from.

A notebook says at its top ``run = Run("f-fidelity/images", globals())``, takes each table from :meth:`Run.table` and
shows ``run.finish()`` at its end. Tables and ``provenance.json`` go to ``build/<profile>/results/<notebook>/`` where
the pipeline runs it, and to a folder beside it where anybody else does.
"""

import contextlib
import hashlib
import json
import os
import pickle
import platform
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import nbformat
import pandas as pd
import torch
from IPython.display import Markdown, display
from pandas.io.formats.style import Styler

from faithlab.scores import COLUMNS, Scores
from faithlab.task import Task
from faithstudy import diagnostics, parameters, paths, plots, profiles, provenance, records, slices
from faithstudy.claims import Claim, Part, Verdict, error_rate
from faithstudy.diagnostics import Reason
from faithstudy.display_names import named, plain
from faithstudy.networks import origins
from faithstudy.records import FLOAT32, Rounding

Made = TypeVar("Made")
Table = pd.DataFrame | Scores

RATES = "FAITHLAB_ERROR_RATES"
"""The variable with the number of simulations of how often each claim's rule errs; unset: 300 where a run is recorded
and in the profile paper, and none else."""


class Run:
    """One run of a notebook, from the first cell to the stamp at its end.

    Args:
        name: the notebook, for example ``f-fidelity/images``.
        variables: the notebook's ``globals()``, or any mapping that holds every name of its parameters cell.

    Only the pipeline writes to the folder of a profile. What differs from it goes to a folder that says how:
    ``build/quick+images=32`` with another parameter; ``build/quick+by-hand`` where papermill, Jupyter or Python ran it.

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
        values = profiles.given(name, variables)
        self._told = provenance.told(name)
        self._part = self._told.pop("part", None) if self._told else None
        by_hand = self._told.pop("given", []) if self._told else parameters.injected(variables) - {"profile"}
        self._label = profiles.label(name, values["profile"], values, by_hand)
        self._anew = provenance.recording() if self._told else []
        self._label = records.RECORDING if self._anew else self._label
        self._code = provenance.library()
        self._files = provenance.named({"own": provenance.metrics(), **values})
        self._commit, self._dirty = provenance.commit()
        if not self._told:  # the pipeline says it where it is started, and not on a page
            provenance.warn()
        self.profile = values.pop("profile")
        self.parameters = values
        shown = self._label == records.PROFILE or (self._anew and "all" not in self._anew)
        self._record = records.provenance(name) if shown and not provenance.metrics() else None
        if self._record is None:  # else what needs files of the reader's own is measured already
            profiles.require_files({name: values})
        self.folder = paths.unfinished(name, self._label)
        self._steps = self.folder
        self._process = f"{platform.node()}-{os.getpid()}"
        if not self._told or self._part:  # of which any number may run at once
            self.folder = self.folder / self._process
        self.folder.mkdir(parents=True, exist_ok=True)
        for left in records.tables_in(self.folder):
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
        self._again: dict[str, records.Agreement | str] = {}  # by table: what was measured again, or why nothing was
        self._rests_on: dict[str, dict[str, str]] = {}
        self._started = time.perf_counter()
        if self._record is None and paths.recorded(name, records.PROFILE).is_dir():
            display(Markdown(f"**Your run** ({self._label}): everything on this page was measured in it."))
        elif self._record is None and not self._part:
            display(Markdown("**No recorded run**: everything on this page was measured where the book was built."))

    def table(
        self,
        table: str,
        measure: Callable[..., Table],
        of: Sequence[Task | Callable[[], Task]] = (),
        *,
        again: Callable[[], Table] | str | None = None,
        rounding: Rounding | None = None,
    ) -> Table:
        """The recorded table where this page's parameters are its own; else what `measure` measures now.

        Of a recorded table the first inputs are measured again, with a block that changes with the commit, and
        compared; `finish` says how many numbers differ, and raises where that is more than rounding makes.

        Args:
            table: its name.
            measure: what makes it: ``measure(task)`` where there are tasks, which says of an input what does not depend
                on the others; else ``measure()``. Scores, or a data frame.
            of: a network each, with all inputs; or a function that makes it, where its network may have to be trained.
            again: how some rows are measured again, where there are no tasks; or one word that says why none are, such
                as "training", "search" or "time"; None: all of the table is measured again.
            rounding: how far numbers may differ; None: as the precision of the run makes them.

        Returns:
            The table. Data frames are as their file gives them, without an index.

        Raises:
            ValueError: the page's own parameters are not those of the record.
        """
        kept = records.recorded(self.name, table) if self._record and table not in self._anew else None
        if kept is None:
            self.save(self._measured(table, measure, of), table)
            made = self._loaded(table)
            if self._record:
                self._again[table] = "not recorded"
            elif isinstance(made, Scores):
                plots.INPUTS.measured = len({image for block in made for image in block.images.tolist()})
            return made
        taken = slices.parameters_of(self.name, table, self.parameters)
        moved = [
            k for k in taken if not _same(kept.provenance["parameters"].get(k, self.parameters[k]), self.parameters[k])
        ]
        if moved:
            raise ValueError(
                f"{self.name}: the table {table!r} was recorded with another {', '.join(sorted(moved))} than the page "
                f"says. Record it anew: make record NAME={self.name}"
            )
        self.save(kept.frame, table)
        metrics = kept.frame.labels("metric") if isinstance(kept.frame, Scores) else ()
        self._rests_on[table] = slices.key(self.name, table, metrics, self.parameters)
        if isinstance(again, str) or self._anew:
            self._again[table] = records.TAKEN if self._anew else again
            return kept.frame
        if rounding is None:
            precisions = {*origins.PRECISIONS, *kept.provenance.get("precisions", ["bfloat16"])}
            rounding = records.BFLOAT16 if "bfloat16" in precisions else FLOAT32
        rotation = int((self._commit or "0")[:8], 16)
        rows = self._remembered(table, rotation, again or partial(_first, measure, of, rotation))
        self._again[table] = records.compared(rows, kept.frame, rounding)
        return kept.frame

    def _remembered(self, table: str, rotation: int, make: Callable[[], Table]) -> Table:
        """Rows that a build measures again, or has measured by the same code."""
        known = [self._rests_on[table], self.parameters, sorted(origins.PRECISIONS)]
        name = hashlib.sha256(json.dumps(known, sort_keys=True, default=str).encode()).hexdigest()[:16]
        path = paths.build() / "again" / self.name / f"{table}-{name}.pickle"
        if self._told and path.is_file():
            return pickle.loads(path.read_bytes())
        rows = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in path.parent.glob(f"{table}-*.pickle"):
            old.unlink(missing_ok=True)
        path.write_bytes(pickle.dumps(rows))
        return rows

    def _measured(self, table: str, measure: Callable[..., Table], of: Sequence[Task | Callable[[], Task]]) -> Table:
        """A table, measured now: in blocks of inputs where `parts` in ``notebooks/profiles.yml`` says so.

        Each block is `kept`. Jobs of the pipeline make the blocks ahead, a part each; such a job ends here.

        Raises:
            PartMade: this is the job of a part, and the part is made.
        """
        if not of:
            return self.kept(f"table {table}", measure)
        part, parts = self._part or (None, profiles.needs(self.name).parts.get(self.profile, 1))
        tables = []
        for number, task in enumerate(of, start=1):
            task = task() if callable(task) else task
            blocks = torch.arange(len(task.x)).tensor_split(min(parts, len(task.x)))
            for block, inputs in enumerate(blocks, start=1):
                if part in (None, block):
                    make = partial(lambda of, inputs: measure(of.part(inputs) if parts > 1 else of), task, inputs)
                    tables.append(self.kept(f"{table} of network {number}, {block} of {parts}", make))
        if self._part:
            shutil.rmtree(self.folder)
            raise provenance.PartMade(f"{self.name}: part {part} of {parts} is made")
        return Scores.concat(tables) if isinstance(tables[0], Scores) else pd.concat(tables, ignore_index=True)

    def _loaded(self, table: str) -> Table:
        """A saved table; a data frame as its file has it."""
        path = self.folder / self._tables[table]["file"]
        return self._saved[table] if path.suffix == ".parquet" else pd.read_csv(path)

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
        self._tables[table] = {
            "file": path.name,
            "rows": len(frame),
            "columns": columns,
            "sha256": records.digest(path),
        }

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

    def claim(
        self,
        id: str,
        where: str,
        sentence: str,
        parts: Sequence[Part],
        *,
        paper: str | None = None,
        **about: str | bool,
    ) -> Verdict:
        """Judge a claim of a paper, or a finding of this study, below the table that it is about.

        Args:
            id: short, unique, stable.
            where: section, table or figure of the paper.
            sentence: the claim in our words.
            parts: what it says, see `faithstudy.claims`.
            paper: its name in the book; None: that of the notebook's folder. Where that is no paper's, the claim is a
                finding of this study, if `own` does not say otherwise.
            **about: `unit`, `own`, `untested`, `follows` and `blind` of `faithstudy.claims.Claim`.

        Returns:
            The verdict, to end a cell with.

        Raises:
            ValueError: a claim of this name was judged before; a part looks at scores that this run has not saved.
        """
        folder = self.name.split("/")[0]
        about.setdefault("own", paper is None and folder not in paths.PAPERS)
        paper = paths.PAPERS.get(folder, folder.capitalize()) if paper is None else paper
        if id in [claim.id for _, claim in self._claims]:
            raise ValueError(f"{self.name}: the claim {id!r} was judged before; every claim has an id of its own")
        claim = Claim(id, where, sentence, tuple(parts), **about)
        for part in claim.parts:
            if part.table is not None and not any(part.table is saved for saved in self._scores.values()):
                raise ValueError(
                    f"the part {part.name!r} of {id!r} looks at scores that were not saved; save the whole table with "
                    "run.save first, and choose rows of it by labels"
                )
        self._claims.append((paper, claim))
        return replace(claim.verdict, worded=named)

    @property
    def machine(self) -> str:
        """The processor or GPU that measured this page's tables: that of the record, or this one."""
        return _device(self._record or provenance.machine())

    @property
    def verdicts(self) -> list[Verdict]:
        """Of its claims, as far as they are judged."""
        return [claim.verdict for _, claim in self._claims]

    def why(self, claims: str | Sequence[str], *asked: Reason) -> Styler:
        """Why claims may not be reproduced, below them. The page of the verdict shows it, too, where they are not.

        Args:
            claims: the ids of one or more claims.
            *asked: the rows, see `faithstudy.diagnostics`.

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
            self._reasons.append(diagnostics.frame(*asked).assign(claim=name))
        return diagnostics.table(*asked)

    def _judged(self) -> None:
        """Save the verdicts and everything that they rest on.

        Raises:
            ValueError: a claim is judged by a table that was saved anew since.
        """
        if not self._claims:
            return
        rows, parts, rates = [], [], []
        tables = {id(scores) for scores in self._scores.values()}
        measured_long = self._label == records.RECORDING or self.profile == "paper"
        runs = int(os.environ.get(RATES, 300 if measured_long else 0))
        for paper, claim in self._claims:
            if any(part.table is not None and id(part.table) not in tables for part in claim.parts):
                raise ValueError(
                    f"{self.name}: a table was saved anew after {claim.id!r} was judged by it; save the whole table "
                    "before its claims"
                )
            rows.append({"id": claim.id, "paper": paper, **claim.verdict.row()})
            parts.append(claim.verdict.frame())
            if runs:
                rates.append(self.kept(f"error rate of {claim.id}", partial(_rates, claim, runs)))
        self.save(pd.DataFrame(rows), "claims")
        self.save(pd.concat(parts, ignore_index=True), "parts")
        if self._reasons:
            self.save(pd.concat(self._reasons, ignore_index=True), "reasons")
        kept = records.recorded(self.name, "error_rates") if self._record else None
        if rates or kept:
            self.save(pd.DataFrame(rates) if rates else kept.frame, "error_rates")

    def _checked(self) -> dict[str, Any]:
        """What was measured again, by table, in words.

        Raises:
            ValueError: numbers differ by more than rounding makes, or with them a verdict is another.
        """
        again = {table: of for table, of in self._again.items() if isinstance(of, records.Agreement)}
        folder, wrong = records.differing(self.name), []
        shutil.rmtree(folder, ignore_errors=True)
        for table, of in again.items():
            if len(of.differing):
                paths.write(folder / f"{table}.csv", of.differing.to_csv(index=False))
            if not of.holds:
                wrong.append(f"the table {table} differs by more than rounding makes ({of}, means by {of.shift:.2g})")
        patched = {id(self._scores[table]): of.patched for table, of in again.items() if table in self._scores}
        for _, claim in self._claims:
            parts = [part.on(patched.get(id(part.table), part.table)) for part in claim.parts]
            moved = [not part.same_rows(new) for part, new in zip(claim.parts, parts, strict=True)]
            if any(moved):
                parts = [new if of else part for part, new, of in zip(claim.parts, parts, moved, strict=True)]
                if (found := replace(claim, parts=tuple(parts)).verdict.outcome) != claim.verdict.outcome:
                    wrong.append(f"{claim.id} is {claim.verdict.outcome}; with the numbers measured here, {found}")
        if wrong:
            raise ValueError(
                f"{self.name}: {'; '.join(wrong)}. What differs: python -m faithstudy.records differing {self.name}"
            )
        return {table: f"{of}{self._changed(table)}" for table, of in self._again.items()}

    def _changed(self, table: str) -> str:
        """What of the code that a recorded table rests on has changed since a build agreed with it, in words."""
        about, now = (self._record or {}).get("tables", {}).get(table, {}), self._rests_on.get(table, {})
        if not (about.get("rests_on") and "code" in self._record) or about["rests_on"] == _digest(now):
            return ""
        changed = [file for file, of in now.items() if file != "the page" and self._record["code"].get(file) != of]
        return f"; its code has changed: {', '.join(changed) or 'the page'}"

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
        checked = self._checked()
        for table, of in self._rests_on.items():
            self._tables[table] |= {"rests_on": _digest(of)}
        place, identity = self._place()
        edited = self._told and self._told["notebook_sha256"] != provenance.script_digest(self.name)
        _, dirty = provenance.commit()
        record = {
            "notebook": self.name,
            "profile": self.profile,
            "parameters": self.parameters,
            **identity,
            "pipeline": bool(self._told),
            "edited": bool(edited),
            "tables": self._tables,
            "again": checked,
            "code": {file: of for key in self._rests_on.values() for file, of in key.items() if file != "the page"},
            "recorded": self._record and {key: self._record.get(key) for key in SHOWN},
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

    def _place(self) -> tuple[Path, dict[str, str | None]]:
        """Where the tables belong, and the run's identity; of a run by hand nobody knows what code ran."""
        if self._told:
            return paths.results(self.name, self._label), self._told
        unknown = {"run": None, "notebook_sha256": None, "code_sha256": self._code}
        return paths.results(self.name, f"{self._label}+{provenance.BY_HAND}"), unknown

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
        for path in records.tables_in(place):
            if path.stem not in self._tables:
                path.unlink()


SHOWN = ("date", "commit", "dirty", "seconds", "cpu", "gpu", "networks", "code")
"""What the page says of its record."""


def _first(measure: Callable[[Task], Table], of: Sequence[Task | Callable[[], Task]], rotation: int) -> Table:
    """The first inputs of the first network, and one more block; without tasks all of the table."""
    if not of:
        return measure()
    task = of[0]() if callable(of[0]) else of[0]
    return measure(task.part(torch.tensor(records.first_and_one_more(len(task.x), rotation))))


def _digest(rests_on: Mapping[str, str]) -> str:
    """What a table rests on, in a word."""
    return hashlib.sha256(json.dumps(rests_on).encode()).hexdigest()[:16]


def _same(one: Any, other: Any) -> bool:
    """Whether two values of a parameter are the same, as JSON has them."""
    return json.dumps(one, default=str) == json.dumps(other, default=str)


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

    def _repr_markdown_(self) -> str:
        if not self.linked:  # a run by hand is not part of the site
            return f"`{self.path}`"
        # The page is notebooks/<name>.html: one step up for notebooks/, one for every folder in the name. What
        # `result:` is, _config.yml says: a link to no page of the book.
        up = "../" * (1 + self.name.count("/"))
        return f"[{self.path.name}](result:{up}results/{self.name}/{self.path.name})"


@dataclass(frozen=True)
class Stamp:
    """The provenance of a run, folded at the end of its page: of the recorded run, where the page shows one."""

    provenance: Mapping[str, Any]
    downloads: list[Download]

    @property
    def shown(self) -> Mapping[str, Any]:
        """The provenance of the run that measured what the page shows."""
        recorded = self.provenance.get("recorded")
        return {**self.provenance, "steps_made_on": (), **recorded} if recorded else self.provenance

    def _head(self) -> str:
        p = self.shown
        commit = f"commit {p['commit'][:9]}" if p["commit"] else "no commit"
        commit += " with local changes" if p["dirty"] else ""
        took = f"{_duration(p['seconds'])} on {', '.join([_device(p), *p.get('steps_made_on', ())])}"
        by = "" if p["pipeline"] else ", run by hand"
        return f"{p['profile']} profile{by} · {p['date'][:10]} · {commit} · {took}"

    def again(self) -> tuple[str, str]:
        """What was measured again, in a line; and by table, with why the others were not."""
        said, tables = self.provenance.get("again", {}), self.provenance["tables"]
        each, counts = [], []
        for table, of in said.items():
            some, _, differing = of.partition(", ")
            if differing:
                counts.append([int(of.replace(",", "")) for of in re.findall(r"\d[\d,]*", differing)])
                some += " inputs, " if tables[table]["file"].endswith(".parquet") else " rows, "
            each.append(f"{table} {some}{differing}" if differing else f"{table} not ({of})")
        if not counts:
            return "", "; ".join(each)
        different, numbers = map(sum, zip(*counts, strict=True))
        line = f"{len(counts)} tables, {different:,} of {numbers:,} numbers differ"
        line = next(of for of in each if " not (" not in of) if len(counts) == 1 else line
        return f"Measured again here: {line}" + "; verdicts unchanged" * ("claims" in tables) + ".", "; ".join(each)

    def __repr__(self) -> str:
        return f"Provenance: {self._head()}"

    def _repr_markdown_(self) -> str:
        p, checked, (line, each) = self.shown, self.provenance, self.again()
        rows = {
            "Tables": ", ".join(download._repr_markdown_() for download in self.downloads) or "none",
            "Measured again": plain(each) or "nothing",
            "Parameters": _listed(p["parameters"]),
            "Networks": _networks(p["networks"] or []),
            "Machine": plain("; ".join(filter(None, [p["cpu"], p["gpu"]]))),
            "Run here": plain(
                f"{checked['run'] or 'not known'}, notebook {(checked['notebook_sha256'] or 'not known')[:9]}"
                + (" (not that of the repository)" if checked["edited"] else "")
                + f", {checked['date']}, {checked['cpu']}, {checked['cores']} cores, {checked['threads']} threads, "
                f"{checked['peak_memory_mb']} MB, Python {checked['python']}, {checked['system']}"
            ),
            "Versions here": _listed(checked["versions"]),
        }
        body = "\n".join(f"- **{term}**: {text}" for term, text in rows.items())
        head = f":::{{dropdown}} **Provenance** {plain(self._head())}\n:class-container: faithlab-provenance"
        return f"{plain(line)}\n\n{head}\n\n{body}\n:::\n"


def _device(machine: Mapping[str, Any]) -> str:
    """What computed: a GPU, or the processor."""
    return machine["gpu"] or machine["cpu"]


def _code(text: object) -> str:
    """A name or value as it is typed."""
    return f"`{str(text).replace('`', chr(39))}`"


def _listed(values: Mapping[str, Any]) -> str:
    """Names and values in a line; an empty text is none."""
    return ", ".join(_code(f"{k}={v}") for k, v in values.items() if v != "") or "none"


def _networks(used: list[Mapping[str, Any]]) -> str:
    """Networks in a line, those together that come from the same place."""
    alike: dict[str, list[str]] = {}
    for network in used:
        if network["kind"] == "pretrained":
            origin = f"pretrained, {network['source']}"
        else:
            commit = f"commit {network['commit'][:9]}" if network.get("commit") else "no commit"
            commit += " with local changes" if network.get("dirty") else ""
            shipped = "shipped " if network.get("shipped") else ""
            origin = f"{shipped}{network['kind']} of {commit}, torch {network.get('torch')}, {network.get('device')}"
        alike.setdefault(origin, []).append(_code(network["name"]))
    return "; ".join(f"{plain(origin)}: {', '.join(names)}" for origin, names in alike.items()) or "none"


def _duration(seconds: float) -> str:
    """A duration for a reader."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def page_faults(name: str, profile: str) -> list[str]:
    """What does not belong together of a notebook in a build: its page, its tables and their provenance."""
    path, folder = paths.executed(name, profile), paths.results(name, profile)
    found = records.faults(folder)
    if not path.is_file():
        return [*found, "there is no executed page"]
    if not (folder / "provenance.json").is_file():
        return found
    record = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    page = nbformat.read(path, as_version=4)
    says = page.metadata.get("faithlab")
    if says is None or "run" not in record:
        return [*found, "the page does not say which run it is of"]
    expected = provenance.page_identity(record)
    if says["notebook_sha256"] != provenance.digest(provenance.cells(page)):
        found.append("the code on the page is not the code that ran")
    if (says["run"], says["notebook_sha256"]) != (expected["run"], expected["notebook_sha256"]):
        found.append(f"the page is of run {says['run']}, its tables are of run {expected['run']}")
    elif says["tables"] != expected["tables"]:
        found.append("the tables are of another time than the page")
    return found


def remedy(names: list[str], profile: str) -> str:
    """What to type so that notebooks run again in a build."""
    pages = " ".join(os.path.relpath(paths.executed(name, profile)) for name in names)
    return f"Run again what does not fit: rm -f {pages} && make book PROFILE={profile}"
