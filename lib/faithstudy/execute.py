"""Run a notebook with parameters: ``python -m faithstudy.execute f-fidelity/images --profile quick -p seed 1``."""

import argparse
import contextlib
import errno
import itertools
import json
import os
import re
import signal
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
from papermill.exceptions import PapermillExecutionError
from traitlets.config import Config

from faithstudy import paths, profiles, provenance
from faithstudy.parameters import given as read_parameters

# Only what another run of the same code would also write stays in an executed copy, so that copies can be compared.
KEPT_LANGUAGE_INFO = ("name", "file_extension", "mimetype", "pygments_lexer")


NO_SPACE = "No space is left there. Free some, or build elsewhere: FAITHLAB_BUILD=<folder> make ..."
"""Said with the name of the file that could not be written."""


class CellError(RuntimeError):
    """A cell of a notebook raised; the message is its traceback and the place of the partly executed copy."""


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
    pipeline = out.resolve() == built.resolve()
    if part and not (pipeline and 0 <= part[0] <= part[1] > 0):
        raise ValueError(f"--part takes I and N with 0 <= I <= N, and no --out, but got {part[0]} {part[1]}.")
    if pipeline:  # else the run says it itself
        provenance.warn()
    notebook = jupytext.read(paths.script(name))
    code = provenance.digest(provenance.cells(notebook))
    known = provenance.identity(name, parameters, code, provenance.library())
    said = known | {"given": sorted(overrides or ())} | ({"part": part} if part else {})
    announced = provenance.announced(name, said) if pipeline else contextlib.nullcontext()
    failed = out.with_suffix(f".part-{part[0]}-of-{part[1]}.failed.ipynb" if part else ".failed.ipynb")
    failed.parent.mkdir(parents=True, exist_ok=True)
    failed.unlink(missing_ok=True)
    try:
        with announced, gpu(), tempfile.TemporaryDirectory(prefix="faithlab-") as sockets:
            page = papermill.execute_notebook(
                notebook,
                failed,
                parameters={k: v for k, v in parameters.items() if k == "profile" or v != profiles.defaults(name)[k]},
                kernel_name="python3",
                cwd=paths.root(),
                progress_bar=False,
                shutdown_kernel="immediate",
                # Progress bars of the notebook, where there is somebody to see them.
                stderr_file=sys.stderr if sys.stderr.isatty() else None,
                on_cell_start=_announcer(name),
                # Sockets of this kernel's own: no port is open, and two kernels at once do not take each other's.
                config=Config(KernelManager={"transport": "ipc", "ip": f"{sockets}/kernel"}),
            )
    except PapermillExecutionError as error:
        if part and error.ename == provenance.PartMade.__name__:
            failed.unlink()
            return None
        full = f"\n{NO_SPACE}" if f"[Errno {errno.ENOSPC}]" in error.evalue else ""
        raise CellError(f"{error}\n{name} failed in the cell above. The copy up to there: {failed}{full}") from None
    except DeadKernelError:
        raise CellError(
            f"{name}: its kernel ended in the cell above. If nobody stopped it, memory ran out:"
            f" {profiles.needs(name).memory} MB is what notebooks/profiles.yml expects it to take. On one machine, run"
            f" one notebook at a time (make book CORES=1), or this one with less: make notebook NAME={name} PARAMS=..."
            " On a cluster, raise its  memory:  there, which is what its job asks for."
        ) from None
    page = _comparable(page)
    tables = paths.results(name, label if pipeline else f"{label}+{provenance.BY_HAND}")
    page.metadata["faithlab"] = nbformat.from_dict(_left(tables, name, known["run"] if pipeline else None))
    paths.write(out, nbformat.writes(page) + "\n")
    failed.unlink()
    return out


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


def _announcer(name: str):
    """A callback that prints each heading of a page as the run reaches it."""

    def announce(cell, cell_index):
        if cell.cell_type == "markdown" and cell.source.startswith("#"):
            print(f"{name}  {cell.source.splitlines()[0].lstrip('# ')}", file=sys.stderr)

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
    os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    try:
        yield
    finally:
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
    count = itertools.count()
    for cell in notebook.cells:
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        tags = cell.metadata.pop("tags", [])
        injected = "injected-parameters" in tags
        cell.id = "injected-parameters" if injected else f"cell-{next(count)}"  # jupytext draws random ids
        if injected:
            tags = [*tags, "hide-input"]
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
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print(f"{error}\n{NO_SPACE}", file=sys.stderr)
        return 1
    print(f"Executed copy: {out}" if out else f"{options.name}: part {options.part[0]} of {options.part[1]} is made")
    return 0


if __name__ == "__main__":
    sys.exit(main())
