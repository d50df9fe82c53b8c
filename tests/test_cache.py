"""Files are whole or not there, whatever kills their maker."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError
from safetensors.torch import save_file

from faithstudy.data import cache


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_folder_follows_the_variable_and_is_made(home):
    assert cache.folder() == home
    assert home.is_dir()


def test_folder_is_the_systems_own_without_the_variable(monkeypatch, tmp_path):
    monkeypatch.delenv(cache.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.folder().name == "faithlab"
    assert tmp_path in cache.folder().parents


def test_folder_that_cannot_be_made_says_what_to_do(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file" / "cache"))
    with pytest.raises(cache.CacheUnavailable, match=r"Not a directory.*set FAITHLAB_CACHE"):
        cache.folder()


@given(st.binary(max_size=2000))
def test_what_was_written_is_what_is_read(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("written") / "deep" / "file.bin"
    with cache.write_atomically(path) as temporary:
        temporary.write_bytes(content)
        assert not path.exists()
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


def _fail(path, error):
    with cache.write_atomically(path) as temporary:
        temporary.write_text("half")
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, SystemExit])
def test_an_exception_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(error):
        _fail(path, error)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_writing_nothing_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="file"), cache.write_atomically(tmp_path / "file"):
        pass
    assert not any(tmp_path.iterdir())


def test_files_get_the_mode_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with cache.write_atomically(tmp_path / "tensors") as temporary:
            save_file({"a": torch.zeros(3)}, temporary)  # safetensors alone would make it private
    finally:
        os.umask(before)
    assert (tmp_path / "tensors").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_is_named_with_its_cure(tmp_path, error):
    with pytest.raises(cache.CacheUnavailable, match=r"No space left.*Free space there, or set FAITHLAB_CACHE") as told:
        _fail(tmp_path / "weights", error)
    assert str(tmp_path) in str(told.value)
    assert told.value.errno == errno.ENOSPC
    assert not any(tmp_path.iterdir())


def test_errors_about_other_files_pass_unchanged(tmp_path):
    with pytest.raises(PermissionError):
        _fail(tmp_path / "file", PermissionError(errno.EACCES, "about something else"))


def test_the_lock_admits_one_thread_at_a_time(tmp_path):
    inside, most, guard = [0], [0], threading.Lock()

    def visit():
        with cache.lock(tmp_path / "file"):
            with guard:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            time.sleep(0.02)
            with guard:
                inside[0] -= 1

    threads = [threading.Thread(target=visit) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


BOTH = """
import sys
import time
from pathlib import Path

from faithstudy.data import cache

path, *more = map(Path, sys.argv[1:])
print("ready", flush=True)
sys.stdin.readline()
"""


def in_two_processes(script: str, *paths: Path) -> None:
    """Run a script twice at once, when both have imported the cache, which takes no second, and nothing else."""
    command = [sys.executable, "-c", BOTH + script, *map(str, paths)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    workers = [subprocess.Popen(command, **pipes) for _ in range(2)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.stdin.write("\n")
        worker.stdin.flush()
    for worker in workers:
        worker.communicate()
        assert worker.returncode == 0


COUNT_UP = """
for _ in range(20):
    with cache.lock(path):
        number = int(path.read_text()) if path.exists() else 0
        with cache.write_atomically(path) as temporary:
            temporary.write_text(str(number + 1))
"""


def test_processes_that_share_a_file_lose_nothing(tmp_path):
    in_two_processes(COUNT_UP, tmp_path / "count")
    assert (tmp_path / "count").read_text() == "40"


def test_a_killed_writer_leaves_no_file_and_its_remains_go_with_the_next_lock(tmp_path):
    path = tmp_path / "file"
    script = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from faithstudy.data import cache\n"
        "with cache.lock(Path(sys.argv[1])), cache.write_atomically(Path(sys.argv[1])) as temporary:\n"
        "    temporary.write_text('half')\n"
        "    print('writing', flush=True)\n"
        "    time.sleep(60)\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout.readline() == "writing\n"
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    assert not path.exists()
    assert list(tmp_path.glob("*.tmp")) or list(tmp_path.glob(".*.tmp"))
    (tmp_path / ".other.1.tmp").mkdir()  # belongs to another file, whose maker may be alive
    with cache.lock(path):
        assert [p.name for p in tmp_path.glob(".*.tmp")] == [".other.1.tmp"]


def test_a_waiting_job_says_what_it_waits_for(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(cache, "_PATIENCE", 0.05)
    path = tmp_path / "file"
    held, release = threading.Event(), threading.Event()

    def hold():
        with cache.lock(path):
            held.set()
            release.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    threading.Timer(0.5, release.set).start()
    with cache.lock(path):
        pass
    holder.join()
    assert f"waiting for another job that is making {path}" in caplog.text


# With a checksum


def sealed(path: Path, content: str = "content") -> Path:
    with cache.write_with_checksum(path) as temporary:
        temporary.write_text(content)
    return path


def test_a_file_has_its_checksum_beside_it_as_sha256sum_writes_it(tmp_path):
    path = sealed(tmp_path / "file")
    digest = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"  # printf content | sha256sum
    assert (tmp_path / "file.sha256").read_text() == f"{digest}  file\n"
    assert cache.verified(path) == b"content"
    assert sorted(tmp_path.iterdir()) == [path, tmp_path / "file.sha256"]


@given(st.binary(min_size=1, max_size=300), st.data())
def test_any_flipped_bit_is_found(tmp_path_factory, content, data):
    path = tmp_path_factory.mktemp("flipped") / "file"
    with cache.write_with_checksum(path) as temporary:
        temporary.write_bytes(content)
    assert cache.verified(path)
    changed = bytearray(content)
    changed[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(changed)
    assert cache.verified(path) is None


def test_a_file_that_is_not_there_is_nothing_to_tell(tmp_path, caplog):
    assert cache.verified(tmp_path / "file") is None
    sealed(tmp_path / "file").unlink()  # as after a writer that was killed between the two
    assert cache.verified(tmp_path / "file") is None
    assert not caplog.records


def test_a_writer_that_fails_leaves_the_old_file_and_its_checksum(tmp_path):
    path = sealed(tmp_path / "file", "old")

    def fail():
        with cache.write_with_checksum(path) as temporary:
            temporary.write_text("new")
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        fail()
    assert cache.verified(path)
    assert path.read_text() == "old"


def test_a_file_and_its_checksum_are_removed_together(tmp_path):
    for _ in range(2):
        cache.remove(sealed(tmp_path / "file"))
        cache.remove(tmp_path / "file")
        assert not any(tmp_path.iterdir())


def test_what_is_there_is_read_without_a_lock_and_what_is_not_is_made_under_it(tmp_path, monkeypatch):
    path, locked = tmp_path / "folder" / "file", []
    original = cache.lock
    monkeypatch.setattr(cache, "lock", lambda path: locked.append(path) or original(path))
    made = []

    def once():
        return cache.once(path, lambda: made.append(sealed(path)), lambda: cache.verified(path))

    assert once() == once() == b"content"
    assert len(made) == len(locked) == 1
    (path.parent / ".file.lock").unlink(missing_ok=True)
    once()
    assert sorted(path.parent.iterdir()) == [path, path.with_name("file.sha256")]


MAKE_ONCE = """
def make():
    with more[0].open("a") as file:
        file.write("x")
    time.sleep(1)  # for the other one to look, and find no whole file
    with cache.write_with_checksum(path) as temporary:
        temporary.write_text("content")

assert cache.once(path, make, lambda: cache.verified(path)) == b"content"
"""


def test_two_processes_make_a_damaged_file_once(tmp_path):
    sealed(tmp_path / "file", "other").write_text("damaged")
    in_two_processes(MAKE_ONCE, tmp_path / "file", tmp_path / "made")
    assert (tmp_path / "made").read_text() == "x"
