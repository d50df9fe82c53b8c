"""However a build ends, no kernel of it goes on, no page is half made, and the next build is told what to do."""

import errno
import os
import shutil
import signal
import subprocess
import time

import papermill
import psutil
import pytest
from papermill.exceptions import PapermillExecutionError

from faithstudy import execute
from test_pipeline import ROOT, Project

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def project(tmp_path, warm, jupyter_path) -> Project:
    """A project with a page that takes ten minutes; its kernels start cold, as a user's do."""
    project = Project(tmp_path, warm)
    project.build_pages_quickly()
    project.edit("notebooks/profiles.yml", "alone: true,", "alone: true, quick: {seconds: 600},")
    return project


def kernels(project: Project) -> list[psutil.Process]:
    """Kernels that run in the folder of a project, and what started them."""
    found = []
    for process in psutil.process_iter(["cwd", "cmdline", "status"]):
        about = process.info
        if about["cwd"] == str(project.folder) and about["status"] != psutil.STATUS_ZOMBIE:
            found += [process] if {"ipykernel_launcher", "faithstudy.execute"} & {*about["cmdline"]} else []
    return found


def until(holds) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def begin(project: Project) -> subprocess.Popen:
    """Start a build, and wait for its long page to run."""
    log = project.folder / "ran.log"
    log.unlink(missing_ok=True)
    process = project.start(cold=True)
    until(lambda: process.poll() is not None or (log.exists() and "part/b" in log.read_text()))
    assert process.poll() is None, process.communicate()[0]
    return process


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_of_a_build_that_is_ended_and_the_next_one_is_told_what_to_do(project, number):
    process = begin(project)
    second = project.start()
    assert "Directory cannot be locked" in second.communicate()[0]
    assert second.returncode
    assert kernels(project), "the first goes on"
    os.killpg(process.pid, number)  # as a scheduler, or a terminal that is closed
    process.communicate(timeout=300)
    until(lambda: not kernels(project))
    assert not (project.folder / "build/quick/executed/part/b.ipynb").exists()
    assert not list((project.folder / "build/quick/results/part").rglob("*.*"))

    project.edit("notebooks/profiles.yml", ", quick: {seconds: 600}", "")
    if number == signal.SIGHUP:  # Snakemake ended without a word, so that its lock is still there
        again = project.start()
        assert "--unlock" in again.communicate()[0]
        project.run("make", "unlock", "VENV=none", "PROFILE=quick")
    assert "part/b" in project.make()


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("raised", [FULL, PapermillExecutionError(0, 1, "", "OSError", str(FULL), [str(FULL)])])
def test_a_full_disk_is_named_with_what_to_do(raised, tmp_path, monkeypatch, capsys):
    def fill(*_, **__):
        raise raised

    monkeypatch.setenv("FAITHLAB_BUILD", str(tmp_path))
    monkeypatch.setattr(papermill, "execute_notebook", fill)
    assert execute.main(["template", "--profile", "smoke"]) == 1
    error = capsys.readouterr().err
    assert "No space left on device" in error
    assert f"most likely in {tmp_path}. Free some, or build elsewhere: FAITHLAB_BUILD=<folder>" in error


@pytest.mark.parametrize("text", ["label='a; b'", 'label="a: b"  # why', "'", "$(touch gone)", "`touch gone`", "a\\b"])
def test_what_is_written_reaches_the_snakefile_as_it_is_and_no_shell(text, tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    (program := tmp_path / "snakemake").write_text(
        '#!/bin/sh\nprintf "%s\\n" "$FAITHLAB_NOTEBOOK" "$FAITHLAB_PARAMS"\n'
    )
    program.chmod(0o755)
    ran = subprocess.run(
        ["make", "VENV=none", "notebook", f"NAME={text}", f"PARAMS={text}", f"PROFILE={text.replace('$', '$$')}"],
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "MAKEFLAGS": "", "MAKELEVEL": "0"},
        capture_output=True,
        text=True,
    )
    assert ran.stdout.splitlines() == [text, text], ran.stderr
    assert not (tmp_path / "gone").exists()
