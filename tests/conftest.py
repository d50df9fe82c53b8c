"""What the whole suite shares: reproducible property tests, the rounding of another processor, what needs a GPU."""

import asyncio
import gc
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import filelock
import pytest
import torch
from hypothesis import settings
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from warm import server

# Images of containers set it; each of the hundreds of processes of the suite would compile the library for itself.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A busy machine must not fail a property, and a failure must come back on the next run.
settings.register_profile("suite", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("suite")

# The suite's models are tiny: threads only wait for each other, and for whatever else runs on the machine. So do
# those of the processes that tests start: a notebook with two threads on a full core took eight times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


@pytest.fixture(scope="session")
def shared(tmp_path_factory, pytestconfig) -> Path:
    """A folder of all workers."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if hasattr(pytestconfig, "workerinput") else own  # of pytest-xdist


@pytest.fixture(scope="session")
def once(shared):
    """Gives a folder of all workers and what a function makes of it, which JSON can hold; the first that asks makes it.

    Where it fails, the next one tries.
    """

    def ask(name: str, make: Callable[[Path], Any]) -> tuple[Path, Any]:
        folder, kept = shared / name, shared / f"{name}.json"
        with filelock.FileLock(shared / f"{name}.lock"):
            if not kept.exists():
                shutil.rmtree(folder, ignore_errors=True)  # of one that failed
                folder.mkdir()
                (unfinished := kept.with_suffix(".partial")).write_text(json.dumps(make(folder)))
                unfinished.replace(kept)
        return folder, json.loads(kept.read_text())

    return ask


@pytest.fixture(scope="session")
def launched():
    """A browser, which takes seconds to start, and the loop of events by which Playwright talks to it."""
    import check_book

    found = next(filter(None, map(shutil.which, check_book.BROWSERS)), None)
    if not found:
        pytest.skip("needs a browser: apt-get install chromium")
    with check_book.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=check_book.FLAGS)
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)  # other tests of this worker have loops of their own
        try:
            yield browser, loop
        finally:
            asyncio._set_running_loop(loop)
            browser.close()


@pytest.fixture
def chromium(launched):
    """The browser; what a test opens in it is closed after it."""
    browser, loop = launched
    asyncio._set_running_loop(loop)
    try:
        yield browser
        for context in browser.contexts:
            context.close()
    finally:
        asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def warm(shared):
    """A folder of programs for a path, which start warm; one server for all workers. None: here they start cold."""
    with server(shared / "warm") as programs:
        yield programs


@pytest.fixture(scope="session")
def python(warm) -> str:
    """Python, started warm."""
    return str(warm / "python") if warm else sys.executable


@pytest.fixture(scope="session")
def path_of_programs(warm) -> str:
    """The environment variable PATH of a user, by which Python and what it installs start warm."""
    return os.pathsep.join([*([str(warm)] if warm else []), str(Path(sys.executable).parent), os.environ["PATH"]])


@pytest.fixture(scope="session")
def jupyter_path(tmp_path_factory, warm) -> Path | None:
    """A folder of Jupyter's whose Python 3 starts warm: to load its libraries takes a page seconds."""
    if not warm:
        return None
    spec = (folder := tmp_path_factory.mktemp("jupyter")) / "kernels/python3/kernel.json"
    kernel = [str(warm / "python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps({"argv": kernel, "display_name": "Python 3", "language": "python"}))
    return folder


@pytest.fixture
def programs(path_of_programs, jupyter_path) -> dict[str, str]:
    """Environment variables by which commands, and the kernels that these start, start warm."""
    return {"PATH": path_of_programs} | ({"JUPYTER_PATH": str(jupyter_path)} if jupyter_path else {})


@pytest.fixture
def kernel_starts_warm(monkeypatch, programs):
    """A notebook that a test executes has a kernel that starts warm."""
    for name, value in programs.items():
        monkeypatch.setenv(name, value)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep the collector of garbage from going through all that is loaded and all tests, time and again.

    That was a quarter of the time of the tests that ask small things.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_addoption(parser):
    parser.addoption("--foreign", action="store_true", help="round every product of tensors by its shape")


class Foreign(TorchFunctionMode):
    """A processor that multiplies tensors of another shape by another routine, as those with AMX do.

    The last bits of a convolution then depend on its batch. Each number is moved by up to its own rounding and that of
    the numbers beside it, always alike for one shape. What has few binary digits is exact in any routine and stays.
    """

    PRODUCTS = frozenset(
        getattr(place, name)
        for place, names in {
            nn.functional: ("conv1d", "conv2d", "conv3d", "linear", "scaled_dot_product_attention"),
            torch: ("einsum", "matmul", "bmm", "mm"),
            Tensor: ("__matmul__", "matmul", "bmm", "mm"),
        }.items()
        for name in names
    )

    def __torch_function__(self, function, types, args=(), kwargs=None):
        found = function(*args, **kwargs or {})
        product = function in self.PRODUCTS and type(found) is Tensor and found.is_floating_point() and found.numel()
        return found + self._rounding(found.detach()) if product else found

    @staticmethod
    def _rounding(found: Tensor) -> Tensor:
        generator = torch.Generator(found.device).manual_seed(hash(found.shape) & 0xFFFF)
        exact = found.to(torch.promote_types(found.dtype, torch.float32))
        noise = torch.empty_like(exact).uniform_(-1, 1, generator=generator)
        unit = torch.finfo(found.dtype).eps
        if found.dtype in (torch.bfloat16, torch.float16):  # sums are in float32, so that few numbers round otherwise
            moved, grid = torch.where(noise.abs() < 1 / 256, noise.sign() * unit * exact, 0), 1
        else:
            moved, grid = noise * unit * (exact.abs() + exact.square().mean().sqrt()), 1 / 256
        few_digits = exact % grid == 0
        return ((exact + moved).to(found.dtype) - found).masked_fill(few_digits | ~exact.isfinite(), 0)


@pytest.fixture(autouse=True, scope="session")
def processor(request):
    with Foreign() if request.config.getoption("foreign") else nullcontext():
        yield


LONG = ("test_pipeline.py", "test_notebooks.py", "test_interrupted.py", "test_cluster.py")
"""Files whose tests take up to minutes. They begin first: at the end one of them would leave the other workers idle."""


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


@pytest.fixture
def clone(tmp_path) -> Path:
    """A copy of what git keeps, and of what is new in the working tree."""
    root = Path(__file__).parents[1]
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (root / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, tmp_path / name)
    return tmp_path
