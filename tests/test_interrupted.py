"""However a build ends, nothing of it goes on, and the next one starts without a word about locks."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import unquote

import psutil
import pytest

from faithstudy import pipeline

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.timeout(120)

# In the place of Snakemake: it starts a job that starts another, and dies of a hang-up without ending them.
STAND_IN = """#!/bin/sh
trap 'exit 130' INT
{python} -c 'import subprocess, sys; subprocess.run(["sleep", "3600"], start_new_session=True)' &
echo "$@" >>"$FAITHLAB_ROOT/started"
wait
"""


@pytest.fixture
def project(tmp_path) -> dict[str, str]:
    """The environment of a project with a stand-in for Snakemake."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks/profiles.yml").touch()
    (tmp_path / "snakemake").write_text(STAND_IN.format(python=sys.executable))
    (tmp_path / "snakemake").chmod(0o755)
    (tmp_path / "Makefile").write_text(f"book:\n\t@{sys.executable} -m faithstudy.pipeline all\n")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("FAITHLAB_", "MAKE"))}
    return kept | {
        "PATH": f"{tmp_path}{os.pathsep}{kept['PATH']}",
        "PYTHONPATH": str(ROOT / "lib"),
        "FAITHLAB_ROOT": str(tmp_path),
    }


def jobs(project: dict[str, str]) -> list[psutil.Process]:
    """What runs on behalf of a project, besides its builds."""
    found = []
    for process in psutil.process_iter():
        try:
            own = process.environ().get("FAITHLAB_ROOT") == project["FAITHLAB_ROOT"]
            if own and "faithstudy.pipeline" not in " ".join(process.cmdline()) and process.name() != "make":
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def start(project: dict[str, str]) -> subprocess.Popen:
    command = ["make", "book"]
    process = subprocess.Popen(
        command,
        cwd=project["FAITHLAB_ROOT"],
        env=project,
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
        # A suite that runs in the background of a script ignores these, and its children would inherit that.
        preexec_fn=lambda: [signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGHUP)],
    )
    until(lambda: process.poll() is not None or any(job.name() == "sleep" for job in jobs(project)))
    return process


def until(holds) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def first(process: subprocess.Popen) -> int:
    """The process of a build that `make` started."""
    return next(child.pid for child in psutil.Process(process.pid).children())


@pytest.mark.parametrize(
    ("whom", "number"),
    [("all", "INT"), ("all", "HUP"), ("all", "TERM"), ("make", "KILL"), ("first", "KILL"), ("all", "KILL")],
)
def test_nothing_is_left_of_a_build_and_the_next_one_starts(project, whom, number):
    process, number = start(project), signal.Signals[f"SIG{number}"]
    if whom == "all":  # as Ctrl-C, a closed terminal
        os.killpg(process.pid, number)
    else:
        os.kill(process.pid if whom == "make" else first(process), number)
    assert process.wait(60)
    until(lambda: not jobs(project))
    again = start(project)
    assert again.poll() is None, again.communicate()
    os.killpg(again.pid, signal.SIGINT)
    again.wait(60)
    until(lambda: not jobs(project))
    assert (Path(project["FAITHLAB_ROOT"]) / "started").read_text() == "--nolock all\n" * 2


def test_a_second_build_is_told_which_is_running(project):
    process = start(project)
    builds = "import sys; from faithstudy import pipeline; pipeline.PATIENCE = 0.0; sys.exit(pipeline.main())"
    (Path(project["FAITHLAB_ROOT"]) / "Makefile").write_text(f"book:\n\t@{sys.executable} -c '{builds}' all\n")
    second = start(project)
    error = second.communicate(timeout=60)[1]
    assert second.returncode
    assert f"Another build works in build (process {first(process)}). Wait for it" in error
    os.killpg(process.pid, signal.SIGINT)
    process.wait(60)
    until(lambda: not jobs(project))


@pytest.mark.parametrize("text", ["label='a; b'", 'label="a: b"  # why', "'", "$(touch gone)", "`touch gone`", "a\\b"])
def test_what_is_written_reaches_snakemake_as_it_is_and_no_shell(project, text):
    from snakemake import cli  # takes seconds, which every worker would wait as it looks for tests

    shutil.copy(ROOT / "Makefile", project["FAITHLAB_ROOT"])
    (Path(project["FAITHLAB_ROOT"]) / "snakemake").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    project["PATH"] = (
        f"{project['FAITHLAB_ROOT']}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{project['PATH']}"
    )
    ran = subprocess.run(
        ["make", "VENV=none", "notebook", f"NAME={text}", f"PARAMS={text}"],
        cwd=project["FAITHLAB_ROOT"],
        env=project,
        capture_output=True,
        text=True,
    )
    given = cli.parse_config(ran.stdout.splitlines()[-3:])
    assert [unquote(str(given[word])) for word in ("notebook", "params")] == [text, text], ran.stderr
    assert not (Path(project["FAITHLAB_ROOT"]) / "gone").exists()


def test_a_job_that_has_ended_is_not_waited_for_until_who_started_it_asks():
    mark = "of a job that nobody puts away"
    starts = "import os, subprocess, sys, time; subprocess.Popen(['sleep', '60'], env={sys.argv[1]: sys.argv[2]})"
    with subprocess.Popen([sys.executable, "-c", f"{starts}; time.sleep(60)", pipeline.MARK, mark]) as negligent:
        try:
            until(lambda: [job.name() for job in psutil.Process(negligent.pid).children()] == ["sleep"])
            begin = time.monotonic()
            assert pipeline.end(mark) == 1
            took = time.monotonic() - begin
            (job,) = psutil.Process(negligent.pid).children()
            assert job.status() == psutil.STATUS_ZOMBIE
        finally:
            negligent.kill()
    assert took < pipeline.PATIENCE / 4
