"""Start Snakemake so that nothing is left of it when it ends, however it ends: ``python -m faithstudy.pipeline``.

Snakemake's own lock is a file, which stays when a build is killed. This one is held by a process and goes with it. A
second process waits for the end of the first, and ends what it has started: a build that is killed, or whose terminal
is closed, leaves no job behind.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.parse
import uuid
from collections.abc import Iterator

import filelock
import psutil

from faithstudy import paths

WORDS = ("notebook=", "params=", "record=")
"""What a user writes, which Snakemake would read as YAML and lose a quote, a comment or what is after a colon."""
MARK = "FAITHLAB_PIPELINE"
"""Environment variable by which the processes of one build are known."""
PATIENCE = 10.0
"""So many seconds the processes of a build have to end by themselves, and then to be ended."""


class BusyError(RuntimeError):
    """Another build works in the same folder."""


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Hold the build folder for this process, until it ends in whatever way.

    Raises:
        BusyError: another process holds it; the message says which.
    """
    folder = paths.build()
    folder.mkdir(parents=True, exist_ok=True)
    holder = folder / ".building"
    lock = filelock.FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=PATIENCE / 2)  # a build that was just killed is being cleared away
    except filelock.Timeout:
        who = f" (process {holder.read_text()})" if holder.is_file() else ""
        raise BusyError(
            f"Another build works in {os.path.relpath(folder)}{who}. Wait for it, end it, or build elsewhere:"
            " FAITHLAB_BUILD=<folder> make book"
        ) from None
    with lock:
        paths.write(holder, str(os.getpid()))
        yield
        holder.unlink(missing_ok=True)


def end(mark: str) -> int:
    """End the processes that carry a mark, and say how many there were."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(MARK) == mark:
                process.terminate()
                found.append(process)
    deadline = time.monotonic() + PATIENCE / 2
    while any(map(_runs, found)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for process in filter(_runs, found):
        with contextlib.suppress(psutil.Error):
            process.kill()
    return len(found)


def _runs(process: psutil.Process) -> bool:
    """Whether a process still runs: one that has ended does not, even where nobody has put it away yet."""
    try:
        process.wait(0)  # puts away a child of this process
    except psutil.TimeoutExpired:
        with contextlib.suppress(psutil.NoSuchProcess):
            return process.status() != psutil.STATUS_ZOMBIE
    return False


def run(command: list[str]) -> int:
    """Run a command, and end with it everything that it has started.

    Ctrl-C reaches the command by itself. A hang-up, a request to end, or the end of the `make` that started this is
    passed on as a Ctrl-C.

    Returns:
        The command's exit status; 128 and the number of the signal that ended it.
    """
    mark, parent, got = uuid.uuid4().hex, os.getppid() if "MAKELEVEL" in os.environ else None, []
    guardian, done = guard(mark)
    signal.signal(signal.SIGINT, lambda *_: None)  # not ignored: the command would inherit that
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, lambda number, _: got.append(number))
    with subprocess.Popen(command, env=os.environ | {MARK: mark}) as child:
        deadline = None
        while child.poll() is None:
            time.sleep(0.1)
            if parent and os.getppid() != parent:
                got.append(signal.SIGHUP)
                parent = None
            if got and deadline is None:
                child.send_signal(signal.SIGINT)
                deadline = time.monotonic() + PATIENCE
            if deadline and time.monotonic() > deadline:
                end(mark)
        end(mark)
    os.write(done, b"done")
    os.waitpid(guardian, 0)
    return 128 + got[0] if got else child.returncode


def guard(mark: str) -> tuple[int, int]:
    """Start a process that ends the processes of a build once this one has gone without a word.

    It is a fork: a second Python would load for each build again what this one has.

    Returns:
        Its number, and where to write that the build is done.
    """
    hears, done = os.pipe()
    child = os.fork()
    if child:
        os.close(hears)
        return child, done
    try:
        os.setsid()
        os.dup2(hears, 3)
        os.closerange(4, 1024)  # so that neither the lock nor the other end of the pipe is its own
        if os.read(3, 4) != b"done":
            end(mark)
    finally:
        os._exit(0)


def quoted(argument: str) -> str:
    """An argument of Snakemake, with what a user wrote in it in letters that Snakemake leaves alone."""
    name, equals, text = argument.partition("=")
    return f"{name}={urllib.parse.quote(text)}" if name + equals in WORDS else argument


def main(arguments: list[str] | None = None) -> int:
    """Command line: the arguments are Snakemake's."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        with alone():
            return run(["snakemake", "--nolock", *map(quoted, arguments)])
    except BusyError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
