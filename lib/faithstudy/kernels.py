"""Kernels that start warm: ``python -m faithstudy.kernels``, in a build of the whole book.

To import what a page needs takes longer than many pages do. So in a build the first page starts a server, a process
that imports the libraries of others and nothing of ours, and every page's kernel is a fork of it. A build ends what it
has started, and the server with it; see `faithstudy.pipeline`.

The libraries read some environment variables as they are loaded, such as the number of threads. A kernel with others
has a server of its own. Where a GPU is handed out, on other systems than Linux and outside a build kernels start cold.
"""

import argparse
import contextlib
import gc
import hashlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner

from faithstudy.pipeline import MARK

WARM = "FAITHLAB_WARM"
"""Environment variable by which a build asks for warm kernels."""

LIBRARIES = (
    *("torch", "torchvision", "captum.attr", "timm", "pandas", "pyarrow.parquet", "scipy.stats", "scipy.optimize"),
    *("seaborn", "matplotlib.pyplot", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "jupytext"),
    *("pandas.io.formats.style", "pyarrow.dataset", "deel.torchlip", "psutil", "safetensors.torch"),
    *("huggingface_hub", "yaml", "filelock", "pooch", "tabulate"),
    # What a kernel itself would load as it starts: half a second, most of it for a debugger.
    *("ipykernel.ipkernel", "ipykernel.kernelapp", "ipykernel.debugger", "tornado.locks", "tornado.platform.asyncio"),
    *(f"IPython.core.{module}" for module in ("completerlib", "debugger", "logger", "oinspect")),
)
"""What a server imports. Nothing of ours: an edited file is read by the next page of a build, as without a server."""

AT_LOAD = (
    *("ATEN", "DNNL", "GLIBC", "GOMP", "KMP", "LD_", "MALLOC", "MKL", "MPL", "NUMEXPR", "OMP", "ONEDNN", "OPENBLAS"),
    *("PYTHON", "TORCH", MARK),
)
"""How environment variables begin whose values are the server's: a build's own, and what is read as libraries load."""

SET_BY_TORCH = "TORCHINDUCTOR_CACHE_DIR"
"""Set where a part of torch has been loaded, to what it would be anyway: no server of its own for that."""

PATIENCE = 30.0
"""So many seconds a server has to listen, and who asks for a kernel to say which."""

LOADING = 300.0
"""So many seconds it has then to load the libraries, on a busy machine."""

IDLE = 600.0
"""After so many seconds without a kernel a server ends by itself."""


def wanted() -> bool:
    """Whether kernels of this process shall be forks of a server."""
    return bool(sys.platform == "linux" and os.environ.get(WARM) and not os.environ.get("FAITHLAB_GPUS"))


class Manager(AsyncKernelManager):
    """Starts a kernel as a fork of the server."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.provisioner = _Forks(parent=self, kernel_spec=self.kernel_spec)


class _Forks(LocalProvisioner):
    """Starts a kernel as a fork of the server, or cold where none answers."""

    async def launch_kernel(self, cmd, **options):
        environment, folder = dict(options.get("env") or os.environ), str(options.get("cwd") or Path.cwd())
        if cmd[0] != sys.executable or "ipykernel_launcher" not in cmd or "-f" not in cmd:
            return await super().launch_kernel(cmd, **options)  # another kernel than this Python's
        try:
            self.process = _Fork(cmd[cmd.index("-f") :], folder, environment)
        except OSError:
            return await super().launch_kernel(cmd, **options)
        self.pid = self.pgid = self.process.pid
        self.cwd = folder
        return self.connection_info


class _Fork:
    """A forked kernel, with what jupyter_client asks of a `subprocess.Popen`.

    The socket between the two says that both are there: the kernel ends where it closes.
    """

    stdin = stdout = stderr = None

    def __init__(self, arguments, folder, environment):
        self.returncode, self._socket = None, _connected(environment)
        request = {"arguments": arguments, "folder": folder, "environment": environment}
        self._socket.settimeout(LOADING)
        message = json.dumps(request).encode() + b"\n"
        socket.send_fds(self._socket, [message[:1]], [1, 2])
        self._socket.sendall(message[1:])
        answer = b""
        while not answer.endswith(b"\n"):
            read = self._socket.recv(64)
            if not read:
                raise ConnectionError("the server of kernels has ended")
            answer += read
        self.pid = int(answer)

    def poll(self):
        if self.returncode is None:
            self._socket.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                self._end(self._socket.recv(1))
        return self.returncode

    def wait(self):
        if self.returncode is None:
            self._socket.setblocking(True)
            self._end(self._socket.recv(1))
        return self.returncode

    def send_signal(self, number):
        os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def _end(self, read):
        self.returncode = 0  # the status that it ended with is the server's to know
        self._socket.close()


def _address(environment):
    """Where the server of a build for kernels with such an environment listens: in a folder of this user alone."""
    of_load = (name for name in environment if name.startswith(AT_LOAD) and name != SET_BY_TORCH)
    read = [(name, environment[name]) for name in sorted(of_load)]
    key = hashlib.sha256(json.dumps([sys.executable, sys.path, read]).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"faithlab-kernels-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    about = folder.stat()
    if about.st_uid != os.getuid() or about.st_mode & 0o077:
        raise PermissionError(f"{folder} is not this user's alone")
    return folder / key


def _connected(environment):
    """A socket to the server for kernels with such an environment, which is started where there is none."""
    address, server = _address(environment), None
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            found.connect(str(address))
            return found
        except FileNotFoundError:
            found.close()
            if server is not None and server.poll() is not None:
                break
        if server is None:  # of two that start at once, the second finds the address taken, and ends
            command = [sys.executable, "-m", "faithstudy.kernels", str(address)]
            quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
            server = subprocess.Popen(command, env=environment, start_new_session=True, **quiet)
        time.sleep(0.05)
    raise ConnectionError("the server of kernels does not listen")


def serve(address: Path) -> list[str] | None:
    """Answer requests for kernels until this process is asked to end, or has had none for long.

    Returns:
        In a fork, the arguments of its kernel. None: the server ends.
    """
    server, last = os.getpid(), time.monotonic()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with tempfile.TemporaryDirectory(dir=address.parent) as place:
        listener.bind(f"{place}/new")
        listener.listen()
        os.link(f"{place}/new", address)  # once it listens, and if no other does
    try:
        listener.settimeout(1.0)
        # As ipykernel has it, before matplotlib asks; a kernel finds its figures inline.
        os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
        for library in LIBRARIES:
            with contextlib.suppress(ImportError):  # a page that needs it says so
                importlib.import_module(library)
        if formulas := sys.modules.get("matplotlib.mathtext"):
            formulas.MathTextParser("path").parse("$x$")  # first it makes its grammar, which takes half a second
        # What is loaded stays: a kernel's collector of garbage need not go through all of it, a hundred thousands of
        # objects, time and again, nor copy the pages of memory that they are on.
        gc.freeze()
        while time.monotonic() < last + IDLE:
            with contextlib.suppress(ChildProcessError):  # no kernel is left
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
                last = time.monotonic()
            # Nobody asked within the second; or who did is gone, which is no other kernel's fault.
            with contextlib.suppress(OSError, ValueError):
                asked, _ = listener.accept()
                with asked:
                    asked.settimeout(PATIENCE)
                    first, files, *_ = socket.recv_fds(asked, 1, 2)
                    request = json.loads(first + asked.makefile("rb").readline())
                    child = os.fork()
                    if not child:
                        kernel = asked.dup()
                        break
                    for file in files:
                        os.close(file)
                    asked.sendall(f"{child}\n".encode())
        else:
            return None
        listener.close()
        kernel.setblocking(True)
        return _become(request, files, kernel)
    finally:
        if os.getpid() == server:
            address.unlink(missing_ok=True)


def _become(request, files, asked):
    """Be the process that was asked for, as far as a fork is not: its session, folder, environment and output."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for own, file in zip((1, 2), files, strict=True):
        os.dup2(file, own)
        os.close(file)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])

    def watch():
        asked.recv(1)  # until who asked for the kernel is gone
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
    os.register_at_fork(after_in_child=asked.close)  # a process of the kernel's is not the kernel
    # 1: it need not watch the server, and is told no notes about consoles.
    return [*request["arguments"], "--IPKernelApp.parent_handle=1"]


def main(arguments: list[str] | None = None) -> None:
    """Command line of a server, and what a fork of it goes on with."""
    parser = argparse.ArgumentParser(prog="python -m faithstudy.kernels", description=__doc__)
    parser.add_argument("address", type=Path, help="the socket to listen at")
    kernel = serve(parser.parse_args(arguments).address)
    if kernel is not None:
        from ipykernel import kernelapp  # it is loaded

        sys.argv[1:] = kernel
        for name in [name for name in sys.modules if name.split(".")[0] in ("faithlab", "faithstudy")]:
            del sys.modules[name]  # what is ours is read anew
        kernelapp.launch_new_instance(kernel)


if __name__ == "__main__":
    if sys.path[0] in ("", os.getcwd()):
        del sys.path[0]  # as ipykernel_launcher does; a kernel sets it itself
    main()
