"""Processes of Python that start warm: forks of a server that has loaded the libraries of others.

A test of what a command does waits seconds for the imports of each Python that the command starts. So it may find in
its path a `python` and scripts such as `snakemake` that hand what they were asked over to a server. That answers with
a fork of itself, in which nothing of ours is loaded, with the folder, environment, arguments and files of who asked.
Who asked passes on how it ends; and where who asked is killed, so is the fork.

What a fork has that a command of a user has not: one seed of hashes for all, the environment of the server as the
libraries were loaded, and modules that nobody imported. So what must not differ between processes, such as what is
stale, is asked cold, too. A signal to who asked, other than one that kills, does not reach the fork: what is about
signals starts cold.
"""

import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import filelock

SCRIPTS = ("snakemake", "jupyter-book", "papermill")

ALL = (
    *("torch", "pandas", "pandas.io.formats.style", "pyarrow.parquet", "scipy.stats", "scipy.special"),
    *("yaml", "filelock", "pooch", "psutil"),
)
PAGE = (
    *("deel.torchlip", "matplotlib.backends.backend_svg"),
    *("torchvision", "captum.attr", "timm", "scipy.optimize", "safetensors.torch", "jinja2", "tabulate"),
    *("seaborn", "matplotlib.pyplot", "matplotlib_inline.backend_inline", "huggingface_hub", "jupytext"),
)
KERNEL = (
    *("ipykernel.ipkernel", "ipykernel.kernelapp", "ipykernel.debugger", "tornado.locks", "tornado.platform.asyncio"),
    *(f"IPython.core.{module}" for module in ("completerlib", "debugger", "logger", "oinspect")),
)
LIBRARIES = {
    "snakemake": (
        *("snakemake.cli", "snakemake.executors.local", "snakemake.profiles", "snakemake.report.html_reporter"),
        *("snakemake.storage", "smart_open", "yte", "jupytext", "grimp", "torch", "safetensors.torch"),
    ),
    "papermill": ("papermill.cli", "jupytext"),
    "jupyter-book": (
        *("jupyter_book.cli.main", "sphinx.cmd.build", "myst_nb.sphinx_ext", "sphinxext.opengraph"),
        *("matplotlib.pyplot", "jupytext", "sphinx_book_theme", "sphinxcontrib.bibtex"),
    ),
    "build.py": (*ALL, *PAGE),
    "faithstudy.examine": (*ALL, *PAGE, "nbconvert", "papermill"),
    "sphinx": ("sphinx.cmd.build",),
    "faithstudy.execute": ("papermill", "jupytext", "nbclient", "pyarrow", "yaml", "filelock", "psutil"),
    "ipykernel_launcher": (*KERNEL, *ALL, "jupytext"),
}
"""What is loaded when a program is first asked for; `ALL` for another."""

PR_SET_PDEATHSIG = 1
LONGEST = 100
"""Of the address of a socket: Linux takes 107 bytes, with what the server adds to it."""

# Hands itself over: a Python that loads next to nothing.
ASKS = """#!{python} -IS
import json, os, select, signal, socket, sys

python, address, folder = {python!r}, {address!r}, os.path.dirname({python!r})
name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
if name != "python":
    words = [os.path.join(folder, name), *words]
elif not words or not (words[0] in ("-m", "-c") or words[0].endswith(".py")):
    os.execv(python, [python, *words])
asked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
asked.connect(address)
request = json.dumps({{"words": words, "folder": os.getcwd(), "environment": dict(os.environ)}}) + "\\n"
socket.send_fds(asked, [request[:1].encode()], [0, 1, 2])
asked.sendall(request[1:].encode())
parent = os.getppid()
while not select.select([asked], [], [], 1)[0]:
    if os.getppid() != parent:
        os._exit(1)  # nobody waits for it any more, and the fork ends with it
ended = int(asked.recv(16) or -signal.SIGKILL)
if ended < 0:
    if ended != -signal.SIGKILL:
        signal.signal(-ended, signal.SIG_DFL)
    os.kill(os.getpid(), -ended)
os._exit(ended)
"""


@contextlib.contextmanager
def server(folder: Path) -> Iterator[Path | None]:
    """A folder of programs that start warm, shared by who names the same; None where there are none.

    The server ends with the last of them.
    """
    address = folder / "socket"
    if sys.platform != "linux" or len(os.fsencode(address)) > LONGEST:
        yield None
        return
    folder.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stays:
        with filelock.FileLock(folder / "lock"):
            try:
                stays.connect(str(address))
            except OSError:
                address.unlink(missing_ok=True)
                command = [sys.executable, "-I", __file__, address]
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
                while not address.exists():
                    assert process.poll() is None
                    time.sleep(0.05)
                stays.connect(str(address))
                for name in ("python", *SCRIPTS):
                    program = folder / "bin" / name
                    program.parent.mkdir(exist_ok=True)
                    program.write_text(ASKS.format(python=sys.executable, address=str(address)))
                    program.chmod(0o755)
        yield folder / "bin"


def named(words: list[str]) -> str:
    """The program of a request."""
    return words[1] if words[0] == "-m" else os.path.basename(words[0])


@functools.cache
def load(program: str) -> None:
    """Load what a program needs."""
    for library in LIBRARIES.get(program, ALL):
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    if program == "snakemake":
        with contextlib.suppress(
            Exception
        ):  # it looks for plugins among all that is installed; its own start says why not
            importlib.import_module("snakemake.cli").get_argument_parser()


def serve(address: str) -> list[str]:
    """Answer requests until nobody is there any more who might ask; gives a fork what it is to run."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(f"{address}.new")
    listener.listen(64)
    os.rename(f"{address}.new", address)
    there, running, last = {listener}, {}, False
    while not last:
        ready, *_ = select.select([*there, *running], [], [])
        for one in ready:
            if one is listener:
                there.add(listener.accept()[0])
            elif one in running:  # the end of a fork, or of who asked for it
                asked, child, ended = running[one]
                if one is asked:
                    os.kill(child, signal.SIGKILL)
                    del running[asked]
                    continue
                with contextlib.suppress(OSError):
                    asked.sendall(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
                running.pop(asked, None)
                del running[ended]
                asked.close()
                os.close(ended)
            elif one in there:  # else it has just ended
                there.remove(one)
                files, request = [], None
                with contextlib.suppress(OSError, ValueError):  # who asked was killed as it did
                    first, files, *_ = socket.recv_fds(one, 1, 3)
                    request = json.loads(first + one.makefile("rb").readline()) if first else None
                if request is None:
                    one.close()
                    for file in files:
                        os.close(file)
                    continue
                load(named(request["words"]))
                gc.freeze()
                child = os.fork()
                if not child:
                    for other in {one, *there, *(asked for asked, *_ in running.values())}:
                        other.close()
                    return become(request, files)
                for file in files:
                    os.close(file)
                ended = os.pidfd_open(child)
                running[one] = running[ended] = one, child, ended
        if len(there) == 1 and not running:
            with filelock.FileLock(Path(address).with_name("lock")):
                if last := not select.select([listener], [], [], 0)[0]:
                    os.unlink(address)
    sys.exit()


def become(request, files):
    """Be the process that was asked for: its session, files, folder, environment and path."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # without the server nobody watches it
    os.setsid()
    for own, file in enumerate(files):
        os.dup2(file, own)
        os.close(file)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    words = request["words"]
    first = os.getcwd() if words[0] in ("-m", "-c") else os.path.dirname(os.path.abspath(words[0]))
    sys.path[:0] = [first, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    importlib.invalidate_caches()
    return words


def run(start: str, *rest: str) -> None:
    """What Python does with its arguments."""
    if start == "-m":
        sys.argv[:] = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif start == "-c":
        sys.argv[:] = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv[:] = [start, *rest]
        runpy.run_path(start, run_name="__main__")


if __name__ == "__main__":
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # as ipykernel has it, whoever asks first
    words, status = serve(sys.argv[1]), 0
    try:
        run(*words)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    # The end of a Python, but for the freeing of all that the server has loaded, which takes half a second.
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 0xFF)
