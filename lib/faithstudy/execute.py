"""Run a notebook with parameters: ``python -m faithstudy.execute f-fidelity/images --profile quick -p seed 1``."""

import argparse
import contextlib
import errno
import functools
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

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "file_extension": ".py", "pygments_lexer": "ipython3"},
}
"""Of an executed copy: nothing that another run of the same code would not write, so that copies can be compared."""


NO_SPACE = "No space is left, most likely in {build}. Free some, or build elsewhere: FAITHLAB_BUILD=<folder> make ..."


KERNEL_ENDED = (
    "{name}: its kernel ended in the cell above. If nobody stopped it, memory ran out: notebooks/profiles.yml expects"
    " it to take {memory} MB. On one machine, run one notebook at a time (make book CORES=1), or this one with less:"
    " make notebook NAME={name} PARAMS=... On a cluster, raise its  memory:  there, which is what its job asks for."
)


class CellError(RuntimeError):
    """A cell of a notebook raised; the message is its traceback and the place of the partly executed copy."""


def execute(
    name: str,
    profile: str = "study",
    overrides: Mapping[str, Any] | None = None,
    part: tuple[int, int] | None = None,
) -> Path | None:
    """Run a notebook from the repository root and write its executed copy into the build folder.

    Args:
        name: the notebook, for example ``f-fidelity/images``.
        profile: ``smoke``, ``quick``, ``study`` or ``paper``.
        overrides: parameters that differ from the profile's.
        part: its number, from 1, and how many there are: make only these blocks of images for the page, see
            `faithstudy.run.Run.table`. Part 0 has no blocks: it makes what all of them need before.

    Returns:
        The path of the executed copy; None: a part was made.

    Raises:
        ValueError: a parameter which the notebook does not have, or a value which it cannot have; files of the reader's
            own that it needs are missing; no such part.
        CellError: a cell raised, or none finished the run. The partly executed copy is beside where the whole one
            would be, as ``<name>.failed.ipynb``.
    """
    if part and not 0 <= part[0] <= part[1] > 0:
        raise ValueError(f"--part takes I and N with 0 <= I <= N, but got {part[0]} {part[1]}.")
    parameters, recording = profiles.resolve(name, profile, overrides), provenance.recording()
    label = paths.RECORDING if recording else profiles.label(name, profile, parameters, overrides or ())
    kept = label in (paths.PROFILE, paths.RECORDING) and "all" not in recording
    if not (kept and paths.recorded(name, paths.PROFILE).is_dir()):  # else what needs them is measured already
        profiles.require_files({name: parameters})
    provenance.warn()
    notebook = jupytext.read(paths.script(name))
    code = provenance.digest(provenance.cells(notebook))
    known = provenance.identity(name, parameters, code, provenance.library())
    said = known | {"given": sorted(overrides or ())} | ({"part": part} if part else {})
    out = paths.executed(name, label)
    failed = out.with_suffix(f".part-{part[0]}-of-{part[1]}.failed.ipynb" if part else ".failed.ipynb")
    failed.parent.mkdir(parents=True, exist_ok=True)
    failed.unlink(missing_ok=True)
    try:
        with provenance.announced(name, said), gpu(), tempfile.TemporaryDirectory(prefix="faithlab-") as sockets:
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
                on_cell_start=functools.partial(_announce, name),
                # Sockets of this kernel's own: no port is open, and two kernels at once do not take each other's.
                config=Config(KernelManager={"transport": "ipc", "ip": f"{sockets}/kernel"}),
            )
    except PapermillExecutionError as error:
        if part and error.ename == provenance.PartMade.__name__:
            failed.unlink()
            return None
        full = f"\n{NO_SPACE.format(build=paths.build())}" if f"[Errno {errno.ENOSPC}]" in error.evalue else ""
        raise CellError(f"{error}\n{name} failed in the cell above. The copy up to there: {failed}{full}") from None
    except DeadKernelError:
        raise CellError(KERNEL_ENDED.format(name=name, memory=profiles.needs(name).memory)) from None
    page = _comparable(page)
    page.metadata["faithlab"] = nbformat.from_dict(_left(name, label, known["run"]))
    paths.write(out, nbformat.writes(page) + "\n")
    failed.unlink()
    return out


def _left(name: str, label: str, run: str) -> dict[str, Any]:
    """The identity of a run by what it has left in the folder of its tables."""
    path = paths.results(name, label) / "provenance.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if record.get("run") != run:
        raise CellError(
            f"{name} ran, but left no tables of this run in {path.parent}. A notebook says"
            f'  run = Run("{name}", globals())  after its parameters, which it then leaves as they are, and'
            "  run.finish()  at its end."
        )
    return provenance.page_identity(record)


def _announce(name: str, cell: nbformat.NotebookNode, cell_index: int) -> None:
    """Print a heading of a page as the run reaches it."""
    if cell.cell_type == "markdown" and cell.source.startswith("#"):
        print(f"{name}  {cell.source.splitlines()[0].lstrip('# ')}", file=sys.stderr)


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
    notebook.metadata = nbformat.from_dict(METADATA)
    for index, cell in enumerate(notebook.cells):
        cell.id = f"cell-{index}"  # jupytext draws random ids
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        if "injected-parameters" in cell.metadata.get("tags", []):
            cell.metadata["tags"].append("hide-input")
            cell.metadata["mystnb"] = {"code_prompt_show": "Parameters of this run"}
    return notebook


def add_parameter_option(parser: argparse.ArgumentParser) -> None:
    """Add ``-p NAME VALUE``, which may be given several times, to a command line."""
    parser._negative_number_matcher = re.compile(r"-\.?\d")  # as of Python 3.14: -1e-3 is a number, no option
    about = {"metavar": ("NAME", "VALUE"), "help": "a parameter that differs from the profile's; the value is YAML"}
    parser.add_argument("-p", "--parameter", nargs=2, action="append", default=[], **about)


def main(arguments: list[str] | None = None) -> int:
    """Command line of :func:`execute`."""
    parser = argparse.ArgumentParser(prog="python -m faithstudy.execute", description=__doc__)
    parser.add_argument("name", help="notebook, for example f-fidelity/images")
    parser.add_argument("--profile", default=paths.PROFILE, choices=profiles.PROFILES)
    parser.add_argument(
        "--part", nargs=2, type=int, metavar=("I", "N"), help="only the I-th of N parts of its images; 0: what all need"
    )
    add_parameter_option(parser)
    options = parser.parse_args(arguments)
    try:
        out = execute(options.name, options.profile, read_parameters(options.parameter), options.part)
    except (ValueError, FileNotFoundError, CellError) as error:
        print(error, file=sys.stderr)
        return 1 if isinstance(error, CellError) else 2
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print(f"{error}\n{NO_SPACE.format(build=paths.build())}", file=sys.stderr)
        return 1
    print(f"Executed copy: {out}" if out else f"{options.name}: part {options.part[0]} of {options.part[1]} is made")
    return 0


if __name__ == "__main__":
    sys.exit(main())
