"""Kernels that are forks of a warm process: what a page gives is what it gives cold, and nothing is left of them."""

import ast
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid

import nbformat
import papermill
import psutil
import pytest
from nbclient.exceptions import DeadKernelError
from traitlets.config import Config

from faithstudy import execute, kernels, paths, pipeline

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux alone")


@contextlib.contextmanager
def marked(mark):
    """The environment of a build."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {pipeline.MARK: mark, kernels.WARM: "1", "FAITHLAB_GPUS": ""}.items():
            patch.setenv(name, value)
        yield mark


@pytest.fixture
def build():
    """A build of a test's own, whose processes are ended after it."""
    with marked(uuid.uuid4().hex) as mark:
        yield mark
        pipeline.end(mark)


@pytest.fixture
def long_build(mark_of_kernels):
    """The build that the notebooks share: a server takes seconds to load the libraries."""
    with marked(mark_of_kernels) as mark:
        yield mark


def servers(mark):
    """The servers of a build."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        with contextlib.suppress(psutil.Error):  # it has just ended
            if "faithstudy.kernels" in line and process.environ().get(pipeline.MARK) == mark:
                found.append(process)
    return found


def page(folder, *cells):
    """Execute a notebook of these cells as `faithstudy.execute` does it; the outputs of the first."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(of) for of in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    with tempfile.TemporaryDirectory() as sockets:
        config = Config(KernelManager={"transport": "ipc", "ip": f"{sockets}/kernel"})
        options = {"kernel_name": "python3", "cwd": str(folder), "shutdown_kernel": "immediate", "progress_bar": False}
        options |= {"config": config, "kernel_manager_class": kernels.Manager}
        return papermill.execute_notebook(notebook, None, **options).cells[0].outputs


SAYS = """
import os, sys
ours = any(name.startswith("faithlab") for name in sys.modules)
print("torch" in sys.modules, ours, os.getcwd(), os.environ["OF_THIS_PAGE"])
import torch, signal
print(torch.get_num_threads(), int(signal.getsignal(signal.SIGTERM)), __name__, sys.argv[1])
"""


# In the place of torch, which takes seconds: as it does, it reads a variable when it is loaded.
TORCH = """
import os

THREADS = int(os.environ["OMP_NUM_THREADS"])


def get_num_threads():
    return THREADS
"""


@pytest.fixture
def few_libraries(tmp_path_factory, monkeypatch):
    """Servers that load a stand-in for torch, and of the rest what takes no seconds."""
    folder = tmp_path_factory.mktemp("few")
    plots = ("matplotlib.pyplot", "matplotlib.mathtext", "matplotlib.backends")
    large = ("captum", "deel", "safetensors", "timm", "torchvision", "scipy", "pandas", "pyarrow", *plots)
    stub = f"import sys, types\nsys.modules.update(dict.fromkeys({large}))\n"  # the study looks for three of them
    stub += "spec = types.SimpleNamespace(__spec__=object())\n"
    stub += "sys.modules.update(dict.fromkeys(('deel', 'safetensors', 'torchvision'), spec))\n"
    (folder / "sitecustomize.py").write_text(stub)
    (folder / "torch.py").write_text(TORCH)
    monkeypatch.setenv("PYTHONPATH", str(folder))


def test_a_kernel_is_a_fork_with_the_page_s_own_folder_and_environment(build, few_libraries, tmp_path, monkeypatch):
    for name, threads in (("one", "1"), ("two", "1"), ("three", "2")):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.setenv("OF_THIS_PAGE", name)
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        first, second = "".join(output["text"] for output in page(folder, SAYS)).splitlines()
        assert first == f"True False {folder} {name}"
        assert second == f"{threads} {int(signal.SIG_DFL)} __main__ -f"
    assert len(servers(build)) == 2, "one for each number of threads"
    here = [server.pid for server in servers(build)]
    pipeline.end(build)
    deadline = time.monotonic() + 30
    while any(map(psutil.pid_exists, here)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not servers(build)


def test_a_kernel_ends_with_who_asked_for_it(long_build, tmp_path):
    waits = "import os, pathlib, time; pathlib.Path('pid').write_text(str(os.getpid())); time.sleep(600)"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(waits)])
    command = (
        f"import sys; sys.path[:] = {sys.path};"  # else it has another server
        "import nbclient, nbformat; from faithstudy import kernels;"
        "manager = kernels.Manager(kernel_name='python3', transport='ipc', ip='kernel');"
        "nbclient.NotebookClient(nbformat.reads(sys.argv[1], 4), km=manager).execute()"
    )
    process = subprocess.Popen([sys.executable, "-c", command, nbformat.writes(notebook)], cwd=tmp_path)
    deadline = time.monotonic() + 240
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    kernel = int((tmp_path / "pid").read_text())
    process.kill()
    process.wait()
    with contextlib.suppress(psutil.NoSuchProcess):
        while psutil.Process(kernel).status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_a_kernel_that_dies_is_noticed_whatever_it_has_started(long_build, tmp_path):
    dies = (
        "import os, pathlib, time; pathlib.Path('parent').write_text(str(os.getppid()));"
        "os.fork() or (time.sleep(600), os._exit(0)); os._exit(3)"
    )
    with pytest.raises(DeadKernelError):
        page(tmp_path, dies)
    assert int((tmp_path / "parent").read_text()) in {of.pid for of in servers(long_build)}, "it was a fork"


def test_a_figure_is_inline(long_build, tmp_path):
    draws = "import os; import matplotlib.pyplot as plt; print(os.getppid()); figure = plt.figure(); plt.plot([1, 2])"
    says, *_, shows = page(tmp_path, draws)
    assert shows.output_type == "display_data"
    assert "image/png" in shows["data"]
    assert int(says["text"]) in {of.pid for of in servers(long_build)}, "it was a fork"


DRAWS = """
import re
import matplotlib.pyplot as plt
from IPython.core.pylabtools import print_figure
from faithstudy import plots as figures
figures.theme()
figure, axes = plt.subplots(1, 2, figsize=(9, 3))
axes[1].plot([1, 2], label="a long name beside the panels")
axes[1].legend(loc="center left", bbox_to_anchor=(1, 0.5))
figures.show(figure)
figures.mark(axes[1], 1.5, "marked later, beside the panels", axis="y")
whole = print_figure(figure, "svg", "tight")
print(re.findall(r'(?:width|height)="([0-9.]+)pt"', whole)[:2])
figure
"""


def test_a_figure_that_is_laid_out_is_shown_as_far_as_there_is_something_on_it(long_build, tmp_path):
    says, shows = page(tmp_path, DRAWS)
    shown = re.findall(r'(?:width|height)="([0-9.]+)pt"', shows["data"]["image/svg+xml"])[:2]
    whole = re.findall(r"[0-9.]+", says["text"])
    assert [float(of) for of in shown] == pytest.approx([float(of) for of in whole], abs=6)


def test_where_no_server_can_be_had_a_kernel_starts_cold(build, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"faithlab-kernels-{os.getuid()}").mkdir(mode=0o755)  # others may look into it
    folder = tmp_path / "page"
    folder.mkdir()
    (says,) = page(folder, "import sys; print('torch' in sys.modules)")
    assert says["text"] == "False\n"
    assert not servers(build)


@pytest.mark.parametrize(("set_", "value"), [(kernels.WARM, ""), ("FAITHLAB_GPUS", "0")])
def test_kernels_start_cold_outside_a_build_and_where_a_gpu_is_handed_out(build, monkeypatch, set_, value):
    assert kernels.wanted()
    monkeypatch.setenv(set_, value)
    assert not kernels.wanted()


def test_what_a_server_imports_is_what_pages_import(long_build, tmp_path):
    code = (
        "import os, sys; before = {m.split('.')[0] for m in sys.modules};"
        "import faithstudy.plots, faithstudy.run, faithstudy.trials.transformers, faithlab.explainers;"
        "after = {m.split('.')[0] for m in sys.modules};"
        "print(os.getppid(), sorted(after - before))"
    )
    parent, _, more = "".join(output["text"] for output in page(tmp_path, code)).partition(" ")
    assert int(parent) in {of.pid for of in servers(long_build)}, "it was a fork"
    more = set(ast.literal_eval(more))
    assert "faithlab" in more
    assert not {"torch", "torchvision", "timm", "captum", "seaborn", "scipy", "pandas", "sympy", "IPython"} & more


def test_a_server_without_kernels_ends_by_itself_and_one_with_a_kernel_does_not(build, tmp_path):
    """With seconds in place of minutes."""
    address = tmp_path / "socket"
    code = (
        "import time; from pathlib import Path; from faithstudy import kernels;"
        f"kernels.IDLE = 2.0; kernels.LIBRARIES = (); kernel = kernels.serve(Path({str(address)!r}));"
        "time.sleep(4 if kernel else 0)"
    )
    server = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 60
    while not address.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    asked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    asked.connect(str(address))
    request = json.dumps({"arguments": ["-f", "x"], "folder": str(tmp_path), "environment": dict(os.environ)})
    socket.send_fds(asked, [request[:1].encode()], [1, 2])
    begin = time.monotonic()
    asked.sendall(request[1:].encode() + b"\n")
    assert int(asked.recv(64))
    assert server.wait(timeout=60) == 0
    assert time.monotonic() - begin > 4
    assert not address.exists()


def test_a_page_says_warm_what_it_says_cold(long_build, tmp_path, monkeypatch):
    said, forks = {}, []

    class Fork(kernels._Fork):
        def __init__(self, *of):
            super().__init__(*of)
            forks.append(self.pid)

    monkeypatch.setattr(kernels, "_Fork", Fork)
    for way in ("", "1"):
        monkeypatch.setenv(kernels.WARM, way)
        monkeypatch.setenv("FAITHLAB_BUILD", str(tmp_path / f"warm{way}"))
        cells = nbformat.read(execute.execute("template", "smoke"), as_version=4).cells
        # The last cell says when the page ran, and for how long.
        outputs = [output for cell in cells[:-1] if cell.cell_type == "code" for output in cell.outputs]
        texts = [
            re.sub("T_[0-9a-f]{5}|0x[0-9a-f]+", "", str(of))  # pandas numbers tables at random
            for output in outputs
            if output.get("name") != "stderr"  # a library's warning that comes once a process has come before the fork
            for kind, of in output.get("data", output).items()
            if kind.startswith("text")
        ]
        folder = paths.results("template", "smoke")
        tables = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".csv", ".parquet")}
        said[way] = [texts, tables, len(forks)]
    assert (said[""].pop(), said["1"].pop()) == (0, 1), "the second came from a server"
    assert said["1"] == said[""]
    assert said[""][1]
