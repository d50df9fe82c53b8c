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
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
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
MEASURED = "this page's own tables were measured where it was made; what it takes from other pages is recorded"
"""What a page says that shows no record of its own."""


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
        self.name, self._started = name, time.perf_counter()
        self.parameters = profiles.given(name, variables)
        self._told = provenance.told(name)
        self._part = self._told.pop("part", None)
        by_hand = self._told.pop("given", []) if self._told else parameters.injected(variables) - {"profile"}
        self._anew = provenance.recording() if self._told else []
        label = profiles.label(name, self.parameters["profile"], self.parameters, by_hand)
        self._label = records.RECORDING if self._anew else label
        self._files = provenance.named({"own": provenance.metrics(), **self.parameters})
        self._commit, self._dirty = provenance.commit()
        self.profile = self.parameters.pop("profile")
        shown = self._label == records.PROFILE or (self._anew and "all" not in self._anew)
        self._record = records.provenance(name) if shown and not provenance.metrics() else None
        if self._record is None:  # else what needs files of the reader's own is measured already
            profiles.require_files({name: self.parameters})
        if not self._told:  # the pipeline says it where it is started, and not on a page
            provenance.warn()
        self.folder = self._steps = paths.unfinished(name, self._label)
        if not self._told or self._part:  # of which any number may run at once
            self.folder = self.folder / f"{platform.node()}-{os.getpid()}"
        self.folder.mkdir(parents=True, exist_ok=True)
        stale = [step for step in self._steps.glob("*.step") if self._told and self._told["run"] not in step.name]
        for left in [*records.tables_in(self.folder), *stale]:
            left.unlink(missing_ok=True)  # another part may have done so
        self._tables: dict[str, dict[str, Any]] = {}
        self._saved: dict[str, Table] = {}
        self._claims: dict[str, tuple[str, Claim]] = {}
        self._reasons: list[pd.DataFrame] = []
        self._made: dict[str, tuple[str, float]] = {}  # by step: where it was made, and in how many seconds
        self._again: dict[str, records.Agreement | str] = {}  # by table: what was measured again, or why nothing was
        if self._record is None and not self._part:
            own = paths.recorded(name, records.PROFILE).is_dir()
            whose = f"**Your run** ({self._label})" if own else "**No recorded run**"
            display(Markdown(f"{whose}: {MEASURED}."))

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
            made = self._saved[table]
            if self._record:
                self._again[table] = "not recorded"
            elif isinstance(made, Scores):
                plots.INPUTS.measured = len({image for block in made for image in block.images.tolist()})
            return made if isinstance(made, Scores) else pd.read_csv(self.folder / self._tables[table]["file"])
        recorded, own = kept.provenance["parameters"], self.parameters
        taken = sorted(slices.parameters_of(self.name, table, own))
        if moved := [key for key in taken if _text(recorded.get(key, own[key])) != _text(own[key])]:
            raise ValueError(
                f"{self.name}: the table {table!r} was recorded with another {', '.join(moved)} than the page says. "
                f"Record it anew: make record NAME={self.name}"
            )
        self.save(kept.frame, table)
        if isinstance(again, str) or self._anew:
            self._again[table] = records.TAKEN if self._anew else again
            return kept.frame
        if rounding is None:
            precisions = {*origins.PRECISIONS, *kept.provenance.get("precisions", ["bfloat16"])}
            rounding = records.BFLOAT16 if "bfloat16" in precisions else FLOAT32
        # A build that has measured these rows by the same code finds them.
        rotation = int((self._commit or "0")[:8], 16)
        metrics = kept.frame.labels("metric") if isinstance(kept.frame, Scores) else ()
        known = [slices.key(self.name, table, metrics), own, sorted(origins.PRECISIONS)]
        path = paths.build() / "again" / self.name / f"{_hash(known)}.{table}.pickle"
        for old in path.parent.glob(f"*.{table}.pickle"):
            if old != path or not self._told:
                old.unlink(missing_ok=True)
        rows, *_ = _stored(path, again or partial(_first, measure, of, rotation))
        self._again[table] = records.compared(rows, kept.frame, rounding)
        return kept.frame

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

    def save(self, frame: Table, table: str) -> None:
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
            path, columns = self.folder / f"{table}.parquet", list(COLUMNS)
            frame.labelled(part=self.name).save(path)
        else:
            frame = frame.reset_index() if any(level is not None for level in frame.index.names) else frame
            path = paths.write(self.folder / f"{table}.csv", frame.to_csv(index=False))
            columns = [str(column) for column in frame.columns]
        about = {"file": path.name, "rows": len(frame), "columns": columns, "sha256": records.digest(path)}
        self._tables[table] = about

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
        if step in self._made:
            raise ValueError(f"{self.name}: two steps are called {step!r}; every step of a page has its own name")
        made, where, seconds, found = _stored(self._steps / f"{_hash(step)}-{self._told['run']}.step", make)
        self._made[step] = (where, seconds * found)  # what this process makes is in its own time
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
        claim = Claim(id, where, sentence, tuple(parts), **about)
        if id in self._claims:
            raise ValueError(f"{self.name}: the claim {id!r} was judged before; every claim has an id of its own")
        for part in claim.parts:
            if part.table is not None and not any(part.table is saved for saved in self._saved.values()):
                raise ValueError(
                    f"the part {part.name!r} of {id!r} looks at scores that were not saved; save the whole table with "
                    "run.save first, and choose rows of it by labels"
                )
        self._claims[id] = (paths.PAPERS.get(folder, folder.capitalize()) if paper is None else paper, claim)
        return replace(claim.verdict, worded=named)

    @property
    def machine(self) -> str:
        """The processor or GPU that measured this page's tables: that of the record, or this one."""
        return _device(self._record or provenance.machine())

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
        for name in [claims] if isinstance(claims, str) else claims:
            if name not in self._claims:
                raise ValueError(
                    f"{self.name}: no claim {name!r} was judged above; there are {', '.join(self._claims)}"
                )
            self._reasons.append(diagnostics.frame(*asked).assign(claim=name))
        return diagnostics.table(*asked)

    def _judged(self) -> None:
        """Save the verdicts and everything that they rest on."""
        if not self._claims:
            return
        self.save(
            pd.DataFrame({"id": id, "paper": paper, **c.verdict.row()} for id, (paper, c) in self._claims.items()),
            "claims",
        )
        self.save(pd.concat([c.verdict.frame() for _, c in self._claims.values()], ignore_index=True), "parts")
        if self._reasons:
            self.save(pd.concat(self._reasons, ignore_index=True), "reasons")
        measured_long = self._label == records.RECORDING or self.profile == "paper"
        if runs := int(os.environ.get(RATES, 300 if measured_long else 0)):
            rates = [
                self.kept(f"error rate of {id}", lambda of=claim: error_rate(of, runs, resamples=400).row())
                for id, (_, claim) in self._claims.items()
            ]
            self.save(pd.DataFrame(rates), "error_rates")
        elif self._record and (kept := records.recorded(self.name, "error_rates")):
            self.save(kept.frame, "error_rates")

    def _checked(self) -> dict[str, str]:
        """What was measured again, by table, in words.

        Raises:
            ValueError: numbers differ by more than rounding makes, or with them a verdict is another.
        """
        again = {table: of for table, of in self._again.items() if isinstance(of, records.Agreement)}
        folder = records.differing(self.name)
        shutil.rmtree(folder, ignore_errors=True)
        for table, of in again.items():
            if len(of.differing):
                paths.write(folder / f"{table}.csv", of.differing.to_csv(index=False))
        wrong = [f"of the recorded table {table}, {of.said}" for table, of in again.items() if not of.holds]
        patched = {id(self._saved[table]): of.patched for table, of in again.items()}
        for name, (_, claim) in self._claims.items():
            parts = [part.on(patched.get(id(part.table), part.table)) for part in claim.parts]
            # Parts whose rows are as they were are judged as they were: what draws at random would draw anew.
            moved = [not part.same_rows(new) for part, new in zip(claim.parts, parts, strict=True)]
            if any(moved):
                parts = [new if of else part for part, new, of in zip(claim.parts, parts, moved, strict=True)]
                if (found := replace(claim, parts=tuple(parts)).verdict.outcome) != claim.verdict.outcome:
                    wrong.append(f"{name} is {claim.verdict.outcome}; by the numbers measured here, {found}")
        if wrong:
            raise ValueError(
                f"{self.name}: {'; '.join(wrong)}. Rounding does not do that: the code or data have changed. The "
                f"numbers: head {folder}/*.csv. If the new ones are right: make record NAME={self.name}"
            )
        return {table: str(of) for table, of in self._again.items()}

    def download(self, table: str) -> Markdown:
        """A link to a saved table for the page of this notebook.

        Raises:
            KeyError: no such table has been saved.
        """
        return Markdown(self._link(table))

    def _link(self, table: str) -> str:
        """A link in Markdown: on a page of the book the file lies in ``results/`` of the site."""
        file = self._tables[table]["file"]
        if not self._told:  # a run by hand is not part of the site
            return f"`{self._place() / file}`"
        # The page is notebooks/<name>.html: one step up for notebooks/, one for every folder in the name. What
        # `result:` is, _config.yml says: a link to no page of the book.
        return f"[{file}](result:{'../' * (1 + self.name.count('/'))}results/{self.name}/{file})"

    def finish(self) -> "Stamp":
        """Stop the clock, put the tables in their place with ``provenance.json`` and return the stamp for the page.

        Tables of an earlier run which this one did not save are removed. A run by hand prints where its tables are.

        Raises:
            ValueError: this is the job of a part, but the page has not asked by images.
        """
        if self._part:
            raise ValueError(f"{self.name} is cut into parts by notebooks/profiles.yml, but ran to its end")
        self._judged()
        checked, machine, place = self._checked(), provenance.machine(), self._place()
        places, seconds = zip(*self._made.values(), strict=True) if self._made else ((), ())
        record = {
            "notebook": self.name,
            "profile": self.profile,
            "parameters": self.parameters,
            **(self._told or dict.fromkeys(("run", "notebook_sha256", "code_sha256"))),
            "pipeline": bool(self._told),
            "tables": self._tables,
            "again": checked,
            "recorded": self._record and {key: self._record.get(key) for key in SHOWN},
            "own_files": self._files,
            "networks": origins.used(),
            "precisions": sorted(origins.PRECISIONS),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - self._started + sum(seconds), 2),
            "commit": self._commit,
            "dirty": self._dirty or provenance.commit()[1],
            **provenance.versions(),
            **machine,
            "steps_made_on": sorted({*places} - {_device(machine)}),
        }
        links = [self._link(table) for table in self._tables]
        self._settle(place)
        paths.write(place / "provenance.json", json.dumps(record, indent=2, default=str) + "\n")
        if not self._told:
            print(f"{self.name} ran by hand, and the tables of the book are as they were. Its own are in {place}")
        return Stamp(record, links)

    def _place(self) -> Path:
        """Where the tables belong."""
        return paths.results(self.name, self._label if self._told else f"{self._label}+{provenance.BY_HAND}")

    def _settle(self, place: Path) -> None:
        """Move the tables, and nothing else stays in either folder of what was there."""
        before, self.folder = self.folder, place
        for step in (*before.glob("*.step"), *before.glob("*.partial")):
            step.unlink()
        place.mkdir(parents=True, exist_ok=True)
        for about in self._tables.values():
            os.replace(before / about["file"], place / about["file"])
        with contextlib.suppress(OSError):  # it holds what is not of this run
            before.rmdir()
        for path in records.tables_in(place):
            if path.stem not in self._tables:
                path.unlink()


SHOWN = ("date", "commit", "dirty", "seconds", "cpu", "gpu", "networks")
"""What the page says of its record."""


def _first(measure: Callable[[Task], Table], of: Sequence[Task | Callable[[], Task]], rotation: int) -> Table:
    """The first inputs of the first network, and one more block; without tasks all of the table."""
    if not of:
        return measure()
    task = of[0]() if callable(of[0]) else of[0]
    return measure(task.part(torch.tensor(records.first_and_one_more(len(task.x), rotation))))


def _stored(path: Path, make: Callable[[], Made]) -> tuple[Made, str, float, bool]:
    """What `make` makes, where, in how many seconds, and whether a file had it, which has it from now on."""
    content = path.read_bytes() if path.is_file() else b""
    found = hashlib.sha256(content[32:]).digest() == content[:32]  # whole; nobody else writes into the build folder
    if not found:
        begin, made = time.perf_counter(), make()
        content = pickle.dumps((made, _device(provenance.machine()), time.perf_counter() - begin))
        content = hashlib.sha256(content).digest() + content
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{platform.node()}-{os.getpid()}.partial")
        unfinished.write_bytes(content)
        unfinished.replace(path)
    return *pickle.loads(content[32:]), found


def _text(value: Any) -> str:
    """A value as JSON has it, in which a tuple and a list are the same."""
    return json.dumps(value, sort_keys=True, default=str)


def _hash(value: Any) -> str:
    return hashlib.sha256(_text(value).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Stamp:
    """The provenance of a run, folded at the end of its page: of the recorded run, where the page shows one.

    Attributes:
        provenance: of the run, as it is saved.
        links: to its tables, in Markdown.
    """

    provenance: Mapping[str, Any]
    links: Sequence[str]

    @property
    def shown(self) -> Mapping[str, Any]:
        """The provenance of the run that measured what the page shows."""
        recorded = self.provenance.get("recorded")
        return {**self.provenance, "steps_made_on": (), **recorded} if recorded else self.provenance

    def again(self) -> tuple[str, str]:
        """What was measured again, in a line; and the same with why the other tables were not."""
        said = self.provenance.get("again", {})
        measured = [f"{table} {of}" for table, of in said.items() if of.endswith(" differ")]
        others = [f"{table} not ({of})" for table, of in said.items() if not of.endswith(" differ")]
        line = "; ".join(measured) + "; verdicts unchanged" * ("claims" in self.provenance["tables"])
        return f"Measured again here: {line}." if measured else "", "; ".join(measured + others)

    def __repr__(self) -> str:
        p = self.shown
        commit = f"commit {p['commit'][:9]}" if p["commit"] else "no commit"
        commit += " with local changes" if p["dirty"] else ""
        took = f"{_duration(p['seconds'])} on {', '.join([_device(p), *p['steps_made_on']])}"
        by = "" if p["pipeline"] else ", run by hand"
        return f"Provenance: {p['profile']} profile{by} · {p['date'][:10]} · {commit} · {took}"

    def _repr_markdown_(self) -> str:
        p, here, (line, each) = self.shown, self.provenance, self.again()
        networks = [f"{of['name']} ({of.get('source') or str(of.get('commit'))[:9]})" for of in p["networks"] or ()]
        machine = f"{here['cores']} cores, {here['threads']} threads, {here['peak_memory_mb']} MB, {here['system']}"
        rows = {
            "Tables": ", ".join(self.links) or "none",
            "Measured again": plain(each) or "nothing",
            "Parameters": _listed(f"{k}={v}" for k, v in p["parameters"].items() if v != ""),
            "Networks": _listed(networks),
            "Machine": plain("; ".join(filter(None, [p["cpu"], p["gpu"]]))),
            "Run here": plain(f"{here['run'] or 'not known'}, {here['date']}, {here['cpu']}, {machine}"),
            "Versions here": _listed([f"python={here['python']}", *(f"{k}={v}" for k, v in here["versions"].items())]),
        }
        body = "\n".join(f"- **{term}**: {text}" for term, text in rows.items())
        head = f":::{{dropdown}} {plain(repr(self)).replace('Provenance:', '**Provenance**')}"
        return f"{plain(line)}\n\n{head}\n:class-container: faithlab-provenance\n\n{body}\n:::\n"


def _device(machine: Mapping[str, Any]) -> str:
    """What computed: a GPU, or the processor."""
    return machine["gpu"] or machine["cpu"]


def _listed(texts: Iterable[str]) -> str:
    """Texts in a line, each as it is typed."""
    return ", ".join(f"`{text.replace('`', chr(39))}`" for text in texts) or "none"


def _duration(seconds: float) -> str:
    """A duration for a reader."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def page_faults(name: str, profile: str) -> list[str]:
    """What does not belong together of a notebook in a build: its page, its tables and their provenance."""
    path, folder = paths.executed(name, profile), paths.results(name, profile)
    if not path.is_file():
        return ["there is no executed page"]
    if found := records.faults(folder):
        return found
    page, record = nbformat.read(path, as_version=4), json.loads((folder / "provenance.json").read_text("utf-8"))
    same = page.metadata.get("faithlab") == provenance.page_identity(record)
    return [] if same else ["the page and its tables are of different runs"]
