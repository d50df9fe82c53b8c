"""Run a notebook with parameters: ``python -m faithstudy.execute f-fidelity/images --profile quick -p seed 1``."""

import argparse
import contextlib
import functools
import itertools
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import filelock
import jupytext
import nbformat
import papermill
from nbclient.exceptions import DeadKernelError
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError
from traitlets.config import Config

from faithstudy import kernels, paths, profiles, provenance
from faithstudy.parameters import given as read_parameters

# Only what another run of the same code would also write stays in an executed copy, so that copies can be compared.
KEPT_LANGUAGE_INFO = ("name", "file_extension", "mimetype", "pygments_lexer")


class CellError(RuntimeError):
    """A cell of a notebook raised; the message is its traceback and the place of the partly executed copy."""


class _Engine(NBClientEngine):
    """Writes the copy when a cell of code begins, with all that is before it, and at the end.

    papermill's own writes it when a cell ends, too, and for every cell of text: all of it, four times as often, and
    each time copies and validates it and lays it out in lines.
    """

    NAME = "faithlab"

    @classmethod
    def execute_managed_notebook(cls, nb_man, kernel_name, **options):
        started, completed = nb_man.cell_start, nb_man.cell_complete

        def save(**_):
            Path(nb_man.output_path).write_text(json.dumps(nb_man.nb), encoding="utf-8")

        def unsaved(step, *arguments, **named):
            nb_man.save = lambda **_: None
            try:
                step(*arguments, **named)
            finally:
                nb_man.save = save

        def start(cell, cell_index=None, **named):
            if cell.cell_type == "code":
                started(cell, cell_index, **named)
            else:
                unsaved(started, cell, cell_index, **named)

        nb_man.save, nb_man.cell_start, nb_man.cell_complete = save, start, functools.partial(unsaved, completed)
        super().execute_managed_notebook(nb_man, kernel_name, **options)


papermill_engines.register(_Engine.NAME, _Engine)


def execute(
    name: str,
    profile: str = "study",
    out: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    part: tuple[int, int] | None = None,
) -> Path | None:
    """Run a notebook from the repository root and write its executed copy.

    Args:
        name: the notebook, for example ``f-fidelity/images``.
        profile: ``smoke``, ``quick``, ``study`` or ``paper``.
        out: where the executed copy goes; by default into the build folder. Anywhere else it is a run by hand, and its
            tables do not replace those of the page that stays in the build folder.
        overrides: parameters that differ from the profile's.
        part: its number, from 1, and how many there are: make only these blocks of images for the page, see
            `faithstudy.run.Run.table`. Part 0 has no blocks: it makes what all of them need before.

    Returns:
        The path of the executed copy; None: a part was made.

    Raises:
        ValueError: a parameter which the notebook does not have, or a value which it cannot have; files of the reader's
            own that it needs are missing; no such part, or a part of a run by hand.
        CellError: a cell raised, or none finished the run. The partly executed copy is beside ``out`` as
            ``<name>.failed.ipynb``.
    """
    parameters = profiles.resolve(name, profile, overrides)
    label = profiles.label(name, profile, parameters, overrides or ())
    label = paths.RECORDING if provenance.recording() else label
    kept = label in (paths.PROFILE, paths.RECORDING) and "all" not in provenance.recording()
    if not (kept and paths.recorded(name, paths.PROFILE).is_dir()):  # else what needs them is measured already
        profiles.require_files({name: parameters})
    built = paths.executed(name, label)
    out = Path(out) if out else built
    notebook = jupytext.read(paths.script(name))
    code = provenance.digest(provenance.cells(notebook))
    known = provenance.identity(name, parameters, code, provenance.library())
    pipeline = out.resolve() == built.resolve()
    if part and not (pipeline and 0 <= part[0] <= part[1] > 0):
        raise ValueError(f"--part takes I and N with 0 <= I <= N, and no --out, but got {part[0]} {part[1]}.")
    if pipeline:  # else the run says it itself
        provenance.warn()
    for index, cell in enumerate(notebook.cells):
        cell.id = f"cell-{index}"  # jupytext draws random ids
    given = {k: v for k, v in parameters.items() if k == "profile" or v != profiles.defaults(name)[k]}
    failed = out.with_suffix(f".part-{part[0]}-of-{part[1]}.failed.ipynb" if part else ".failed.ipynb")
    failed.parent.mkdir(parents=True, exist_ok=True)
    failed.unlink(missing_ok=True)
    try:
        said = {"given": sorted(overrides or ())} | ({"part": part} if part else {})
        announced = provenance.announced(name, known | said) if pipeline else contextlib.nullcontext()
        with announced, gpu(), tempfile.TemporaryDirectory(prefix="faithlab-") as sockets:
            ran = papermill.execute_notebook(
                notebook,
                str(failed),
                parameters=given,
                engine_name=_Engine.NAME,
                kernel_name="python3",
                cwd=str(paths.root()),
                progress_bar=False,
                shutdown_kernel="immediate",
                # Progress bars of the notebook, where there is somebody to see them.
                stderr_file=sys.stderr if sys.stderr.isatty() else None,
                on_cell_start=_announcer(name, notebook),
                record_timing=False,
                # Sockets of this kernel's own: no port is open, and two kernels at once do not take each other's.
                config=Config(KernelManager={"transport": "ipc", "ip": f"{sockets}/kernel"}),
                **({"kernel_manager_class": kernels.Manager} if kernels.wanted() else {}),
            )
    except PapermillExecutionError as error:
        if part and error.ename == provenance.PartMade.__name__:
            failed.unlink()
            return None
        raise CellError(f"{error}\n{name} failed in the cell above. The copy up to there: {failed}") from None
    except DeadKernelError:
        raise CellError(_killed(name)) from None
    page = _comparable(ran)
    tables = paths.results(name, label if pipeline else f"{label}+{provenance.BY_HAND}")
    page.metadata["faithlab"] = nbformat.from_dict(_left(tables, name, known["run"] if pipeline else None))
    paths.write(out, nbformat.writes(page) + "\n")
    failed.unlink()
    return out


def _killed(name: str) -> str:
    """What to say where a kernel ended in the middle of a cell."""
    return (
        f"{name}: its kernel was killed in the cell above, most likely because memory ran out:"
        f" {profiles.needs(name).memory} MB is what notebooks/profiles.yml expects it to take. On one machine, run one"
        f" notebook at a time (make book CORES=1), or this one with less: make notebook NAME={name} PARAMS=..."
        " On a cluster, raise its  memory:  there, which is what its job asks for."
    )


def _left(folder: Path, name: str, run: str) -> dict[str, Any]:
    """The identity of a run by what it has left in the folder of its tables."""
    path = folder / "provenance.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if not record or record["run"] != run:
        raise CellError(
            f'{name} ran, but left no tables of this run in {folder}. A notebook says  run = Run("{name}", globals())'
            " after its parameters, which it then leaves as they are, and  run.finish()  at its end."
        )
    return provenance.page_identity(record)


def _announcer(name: str, notebook: nbformat.NotebookNode):
    """A callback that prints one line per code cell: how far the run is, and under which heading."""
    headings, heading = {}, ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            heading = next((s.lstrip("# ") for s in cell.source.splitlines() if s.startswith("#")), heading)
        headings[cell.id] = heading
    code = [cell.id for cell in notebook.cells if cell.cell_type == "code"]

    def announce(cell, cell_index):
        if cell.get("id") in code:  # the injected cell is not
            print(f"{name}  {code.index(cell.id) + 1}/{len(code)}  {headings[cell.id]}", file=sys.stderr)

    return announce


@contextlib.contextmanager
def gpu() -> Iterator[None]:
    """Hold one of the GPUs named in ``FAITHLAB_GPUS`` (such as ``0,1``) for this process alone.

    Snakemake on one machine counts GPUs without handing out a particular one. Unset: nothing is changed, so that a
    scheduler's own choice stands. Empty: no GPU.
    """
    named = os.environ.get("FAITHLAB_GPUS")
    if not named:
        if named == "":
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        yield
        return
    folder = paths.build() / "gpus"
    folder.mkdir(parents=True, exist_ok=True)
    for gpu in itertools.cycle(named.split(",")):
        lock = filelock.FileLock(folder / f"{gpu}.lock")
        with contextlib.suppress(filelock.Timeout):
            lock.acquire(timeout=1)
            break
    with lock:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
        yield
    lock.release()


def _comparable(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The executed copy without times, paths and hosts, and with the injected parameters folded on the page."""
    language = notebook.metadata.get("language_info", {})
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {key: language[key] for key in KEPT_LANGUAGE_INFO if key in language},
        }
    )
    for cell in notebook.cells:
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        tags = cell.metadata.pop("tags", [])
        if "injected-parameters" in tags:
            cell.id, tags = "injected-parameters", [*tags, "hide-input"]
            cell.metadata["mystnb"] = {"code_prompt_show": "Parameters of this run"}
        if tags:
            cell.metadata["tags"] = tags
    return notebook


def add_parameter_option(parser: argparse.ArgumentParser) -> None:
    """Add ``-p NAME VALUE``, which may be given several times, to a command line."""
    parser._negative_number_matcher = re.compile(r"-\.?\d")  # as of Python 3.14: -1e-3 is a number, no option
    parser.add_argument(
        "-p",
        "--parameter",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="a parameter that differs from the profile's; the value is read as YAML",
    )


def main(arguments: list[str] | None = None) -> int:
    """Command line of :func:`execute`."""
    parser = argparse.ArgumentParser(prog="python -m faithstudy.execute", description=__doc__)
    parser.add_argument("name", help="notebook, for example f-fidelity/images")
    parser.add_argument("--profile", default=paths.PROFILE, choices=profiles.PROFILES)
    parser.add_argument("--out", type=Path, help="executed copy (default: in the build folder)")
    parser.add_argument(
        "--part", nargs=2, type=int, metavar=("I", "N"), help="only the I-th of N parts of its images; 0: what all need"
    )
    add_parameter_option(parser)
    options = parser.parse_args(arguments)
    try:
        out = execute(options.name, options.profile, options.out, read_parameters(options.parameter), options.part)
    except (ValueError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    except CellError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Executed copy: {out}" if out else f"{options.name}: part {options.part[0]} of {options.part[1]} is made")
    return 0


if __name__ == "__main__":
    sys.exit(main())
