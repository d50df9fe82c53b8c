"""The pipeline remakes what is stale and only that, shown on a small project of two notebooks and one page."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import jupytext
import nbformat
import pytest

ROOT = Path(__file__).parents[1]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

NOTEBOOK = """
# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # About {name}

# %% tags=["parameters"]
profile = "quick"
size = 3
seconds = 0.0

# %%
import time
from pathlib import Path

import pandas as pd

from faithstudy.run import Run

run = Run("{name}", globals())
with Path("ran.log").open("a") as log:
    log.write("{name}\\n")
time.sleep(seconds)
run.save(pd.DataFrame({{"value": range(size)}}), "values")
run.download("values")

# %%
run.finish()
"""

# In the place of the real data sets: says that it was asked.
DATASETS = """
import sys
from pathlib import Path

if __name__ == "__main__":
    with Path("ran.log").open("a") as log:
        log.write("data " + " ".join(sys.argv[2:]) + "\\n")
"""

# In the place of the real book, for which Sphinx and all that it shows are imported.
BUILDS = """
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    page = Path("build", sys.argv[sys.argv.index("--profile") + 1], "html/index.html")
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(str(time.time()))
"""

FILES = {
    "notebooks/a.py": NOTEBOOK.format(name="a"),
    "notebooks/part/b.py": NOTEBOOK.format(name="part/b"),
    "notebooks/profiles.yml": "a: {data: [digits]}\npart/b: {alone: true, data: [digits], smoke: {size: 2}}\n",
    "lib/faithstudy/data/datasets.py": DATASETS,
    "lib/faithlab/metrics/mean.py": '"""A metric."""\n',
    "data/published/scores.csv": "metric,value\nmean,0.5\n",
    "book/home.md": "# Home\n\nSee {cite:t}`zheng2025ffidelity`.\n\n```{bibliography}\n```\n",
    "book/_toc.yml": """
        format: jb-book
        root: book/home
        chapters:
          - file: notebooks/a
            sections:
              - file: notebooks/part/b
        """,
    "requirements.lock": "",
}
COPIED = ("Makefile", "Snakefile", "_config.yml", "CHANGELOG.md", "book", "lib/faithlab", "lib/faithstudy")


class Project:
    """A small project with the real Makefile, Snakefile, configuration and library."""

    def __init__(self, folder: Path, warm: Path | None = None, jupyter: Path | None = None):
        self.folder, self.warm, self.jupyter = folder, warm, jupyter
        for name in COPIED:
            if (ROOT / name).is_dir():
                ignore = shutil.ignore_patterns("*.md", "_toc.yml")  # with what is compiled of it
                shutil.copytree(ROOT / name, folder / name, ignore=ignore)
            else:
                shutil.copy(ROOT / name, folder / name)
        for name, text in FILES.items():
            self.write(name, textwrap.dedent(text).lstrip())

    def write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text)

    def build_pages_quickly(self, *, checked: bool = False) -> None:
        """From now on one page is the book: what is built when matters here; or also what is checked before."""
        if checked:
            self.write(
                "bin/jupyter-book", '#!/bin/sh\nmkdir -p "$4/_build/html" && date >"$4/_build/html/index.html"\n'
            )
            (self.folder / "bin/jupyter-book").chmod(0o755)
        else:
            self.write("book/build.py", BUILDS)

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text()
        assert old in text
        self.write(name, text.replace(old, new))

    def environment(self, *, cold: bool = False) -> dict[str, str]:
        warm = [str(self.warm)] if self.warm and not cold else []
        path = [str(self.folder / "bin"), *warm, str(Path(sys.executable).parent), os.environ["PATH"]]
        return {k: v for k, v in os.environ.items() if not k.startswith(("FAITHLAB_", "MAKE"))} | {
            "PATH": os.pathsep.join(path),
            "PYTHONPATH": str(self.folder / "lib"),
            "FAITHLAB_GPUS": "",
            **({"JUPYTER_PATH": str(self.jupyter)} if self.jupyter else {}),
        }

    def run(self, *command: str) -> str:
        """What a command prints that a user types in the folder of the project."""
        ran = subprocess.run(command, cwd=self.folder, env=self.environment(), capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def results(self, run: str = "quick") -> dict[str, bytes]:
        """Every file that the notebooks of a run have left."""
        folder = self.folder / "build" / run / "results"
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def start(
        self, profile: str = "quick", goal: tuple[str, ...] = ("book",), *, cold: bool = False
    ) -> subprocess.Popen:
        return subprocess.Popen(
            ["make", *goal, "VENV=none", f"PROFILE={profile}", "CORES=2"],
            cwd=self.folder,
            env=self.environment(cold=cold),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            # A suite that runs in the background of a script ignores Ctrl-C, and its children would inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def make(self, profile: str = "quick") -> list[str]:
        """Build; gives what ran: names of notebooks, `data <name>`, and `book`."""
        log, page = self.folder / "ran.log", self.folder / f"build/{profile}/html/index.html"
        log.unlink(missing_ok=True)
        before = page.stat().st_mtime_ns if page.exists() else None
        process = self.start(profile)
        output = process.communicate()[0]
        assert process.returncode == 0, output
        ran = sorted(log.read_text().splitlines()) if log.exists() else []
        return ran + (["book"] if page.stat().st_mtime_ns != before else [])

    def stale(self, profile: str = "quick", *, cold: bool = False, **asked: str) -> list[str]:
        """What a build would run, in the words of `make`, without running it; with what is not the profile's."""
        asks = ["snakemake", "--nolock", "--workflow-profile", "none", "--cores", "2", "--dry-run"]
        ran = subprocess.run(
            [*asks, "--config", f"profile={profile}"],
            cwd=self.folder,
            env=self.environment(cold=cold) | {f"FAITHLAB_{name.upper()}": text for name, text in asked.items()},
            capture_output=True,
            text=True,
        )
        output = ran.stdout + ran.stderr
        assert ran.returncode == 0, output
        jobs = re.findall(
            r"^Job \d+: (?:notebook|images of|the) (\S+)(?: \(([^),]+)[^)]*\)(?:, (part \d+))?)?", output, re.MULTILINE
        )
        named = (" ".join(filter(None, (name, run.removeprefix(profile), part))) for name, run, part in jobs)
        return sorted(named, key=lambda job: (job == "book", job))


@pytest.fixture
def project(tmp_path, warm, jupyter_path):
    return Project(tmp_path, warm, jupyter_path)


def test_only_what_is_stale_is_made_again(project, tmp_path):
    assert project.make() == ["a", "data digits", "part/b", "book"]
    csv = tmp_path / "build/quick/html/results/part/b/values.csv"
    assert csv.read_text().split() == ["value", "0", "1", "2"]
    page = (tmp_path / "build/quick/html/notebooks/part/b.html").read_text()
    assert 'href="../../results/part/b/values.csv"' in page

    project.edit("notebooks/profiles.yml", "smoke: {size: 2}", "smoke: {size: 1}")
    smoke = project.start("smoke", goal=("notebook", "NAME=part/b"))
    output = smoke.communicate()[0]
    assert smoke.returncode == 0, output
    assert (tmp_path / "build/smoke/results/part/b/values.csv").read_text().split() == ["value", "0"]
    assert project.stale("smoke") == ["a", "book"]
    for path in tmp_path.rglob("*"):  # as after a clone or a checkout: new times, same content
        if path.is_file() and not {"build", ".snakemake"} & set(path.parts):
            path.touch()
    assert project.stale(cold=True) == []  # in a process with hashes of its own

    project.write("lib/faithlab/metrics/mean.py", "BETTER = 1\n")  # that no notebook reaches
    project.edit("lib/faithlab/scores.py", '"""The long table', '"""The long, long table')
    assert project.stale() == ["book"]

    table = tmp_path / "lib/faithlab/scores.py"
    text, times = table.read_text(), table.stat()
    project.write("lib/faithlab/scores.py", f"{text}MORE = 1\n")
    os.utime(table, (times.st_atime, times.st_mtime))  # as rsync -a brings it
    assert project.stale() == ["a", "part/b", "book"]

    # What is taken back is as it was made.
    project.write("lib/faithlab/scores.py", text)
    project.edit("notebooks/profiles.yml", "a: {data: [digits]}", "a: {data: [digits], quick: {size: 4}}")
    assert project.stale() == ["a", "book"]

    project.edit("notebooks/profiles.yml", ", quick: {size: 4}", "")
    project.edit("notebooks/part/b.py", "# # About part/b", "# # More about part/b")
    project.build_pages_quickly()
    assert project.make() == ["part/b", "book"]


def test_one_notebook_runs_with_parameters_of_its_own_and_leaves_the_profile_alone(project, tmp_path):
    goal = ("notebook", "NAME=part/b", "PARAMS=size=4  seconds = 1e-1")
    output = project.start(goal=goal).communicate()[0]
    results = tmp_path / "build/quick+size=4+seconds=0.1/results/part/b/values.csv"
    assert results.read_text().split() == ["value", "0", "1", "2", "3"], output
    assert not (tmp_path / "build/quick").exists()
    # The data were fetched, the other notebook did not run, and neither does this one when nothing has changed.
    assert (tmp_path / "ran.log").read_text().split("\n") == ["data digits", "part/b", ""]
    again = project.start(goal=goal)
    assert "Nothing to be done" in again.communicate()[0]
    assert again.returncode == 0

    assert project.stale("quick", notebook="a", params="size=5") == ["a +size=5"]

    wrong = project.start(goal=("notebook", "NAME=part/b", "PARAMS=sise=4"))
    output = wrong.communicate()[0]
    assert wrong.returncode != 0
    assert "part/b has no parameter 'sise'" in output
    assert "Did you mean 'size'?" in output
    assert "Traceback" not in output


def test_an_experiment_leaves_the_book_alone_and_the_book_takes_no_tables_of_another_run(project, tmp_path):
    project.build_pages_quickly(checked=True)
    project.write(".gitignore", "build/\n.snakemake/\nran.log\n*.log\n__pycache__/\n")
    for command in ("init -q", "add -A", "-c user.name=n -c user.email=e commit -qm one"):
        project.run("git", *command.split())
    project.make()
    kept = project.results()
    page = tmp_path / "build/quick/executed/part/b.ipynb"
    says = json.loads(page.read_text())["metadata"]["faithlab"]
    record = json.loads(kept["part/b/provenance.json"])
    assert (says["run"], says["notebook_sha256"]) == (record["run"], record["notebook_sha256"])
    assert (record["pipeline"], record["dirty"]) == (True, False)

    # As it was seen: a copy with a line of its own, and the parameters of the profile.
    notebook = jupytext.read(tmp_path / "notebooks/part/b.py")
    nbformat.write(notebook, tmp_path / "build/same.ipynb")
    (saves,) = [cell for cell in notebook.cells if "range(size)" in cell.source]
    saves.source = saves.source.replace("range(size)", "[9] * size")
    nbformat.write(notebook, tmp_path / "build/copy.ipynb")
    for copy in ("same", "copy"):
        project.run("papermill", f"build/{copy}.ipynb", f"build/{copy}-out.ipynb", "-k", "python3", "-p", "size", "3")
    assert project.results() == kept
    same = project.results("quick+size=3+by-hand")
    assert same["part/b/values.csv"].split() == [b"value", b"9", b"9", b"9"]
    experiment = json.loads(same["part/b/provenance.json"])
    assert (experiment["run"], experiment["pipeline"]) == (None, False)

    # The tables of the experiment put by force beside the page of the build, and a table changed.
    for name in ("values.csv", "provenance.json"):
        of = tmp_path / "build/quick+size=3+by-hand/results/part/b"
        shutil.copy(of / name, tmp_path / "build/quick/results/part/b" / name)
    (tmp_path / "build/quick/results/a/values.csv").write_text("value\n7\n")
    project.edit("book/home.md", "# Home", "# Welcome")
    (tmp_path / "ran.log").unlink()
    process = project.start()
    output = process.communicate()[0]
    assert process.returncode
    assert not (tmp_path / "ran.log").exists(), "none of this made a page stale"
    assert "part/b: the page and its tables are of different runs" in output
    assert "a: the table values is not the one that the run saved" in output
    (remedy,) = [line.split(": ", 1)[1] for line in output.splitlines() if "rm -f" in line]
    project.run("sh", "-c", remedy.replace("make book", "true"))
    assert project.stale() == ["a", "part/b", "book"]


def test_a_notebook_must_finish_the_run_that_the_pipeline_asked_for(project, tmp_path):
    project.edit("notebooks/part/b.py", 'run = Run("part/b"', 'size = 4\nrun = Run("part/b"')
    project.edit("notebooks/a.py", 'Run("a"', 'Run("part/b"')  # a copy that kept the name of its origin
    process = project.start(goal=("book",))
    output = process.communicate()[0]
    assert process.returncode
    assert 'notebooks/a.py says Run("part/b", ...): change that to Run("a", ...)' in output
    assert "part/b ran, but left no tables of this run" in output
    assert not project.results()


def test_a_build_goes_on_after_an_interrupt_and_after_a_failure(project, tmp_path):
    project.build_pages_quickly()
    project.edit("notebooks/profiles.yml", "alone: true,", "alone: true, quick: {seconds: 600},")
    process = project.start(cold=True)  # a signal reaches each process, as it does a user's
    log = tmp_path / "ran.log"
    deadline = time.monotonic() + 120
    while not (log.exists() and "part/b" in log.read_text()):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=300)
    assert process.returncode
    assert not (tmp_path / "build/quick/executed/part/b.ipynb").exists()

    # A cell that raises: the error is shown, what had run is kept beside, the other notebook is finished.
    project.edit("notebooks/profiles.yml", "seconds: 600", "seconds: -1")
    process = project.start()
    output = process.communicate()[0]
    assert process.returncode
    assert "sleep length must be non-negative" in output
    assert (tmp_path / "build/quick/executed/part/b.failed.ipynb").exists()
    assert (tmp_path / "build/quick/executed/a.ipynb").exists()

    project.edit("notebooks/profiles.yml", "seconds: -1", "seconds: 0")
    assert project.make() == ["part/b", "book"]
    assert not (tmp_path / "build/quick/executed/part/b.failed.ipynb").exists()


ASKS = """
import os
import torch

from faithlab.scores import Scores
from faithlab.task import Task


def ask(task):
    with Path("ran.log").open("a") as log:
        log.write(f"images {task.images[0]}-{task.images[-1]}\\n")
    while task.images[0] == 5 and Path("waits").exists():
        time.sleep(0.1)
    return Scores.of(task.x.sum(1), images=task.images, metric="sum", **task.labels)


x = torch.rand(9, 2, generator=torch.Generator().manual_seed(0))
task = Task(torch.nn.Identity(), x, torch.zeros(9, dtype=torch.int64), torch.arange(2))
scores = run.table("scores", ask, [task])
"""


def test_parts_of_a_page_are_jobs_that_it_waits_for(project, tmp_path):
    project.build_pages_quickly()
    (tmp_path / "notebooks/part/b.py").unlink()  # this is about one page
    project.edit("book/_toc.yml", "    sections:\n      - file: notebooks/part/b\n", "")
    project.edit("notebooks/a.py", 'run.download("values")', ASKS)
    project.edit("notebooks/profiles.yml", "a: {data: [digits]}", "a: {data: [digits], parts: {quick: 2}}")

    # One part waits, and is killed; the others are made, and nothing is published.
    project.write("waits", "")
    process = project.start(cold=True)
    log = tmp_path / "ran.log"
    made = [tmp_path / f"build/quick/asked/a/{part}-of-2" for part in (0, 1)]
    deadline = time.monotonic() + 300
    while not (log.exists() and "images 5-8" in log.read_text() and all(path.exists() for path in made)):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=300)
    assert not (tmp_path / "build/quick/results/a").exists()
    assert log.read_text().count("images") == 2

    # The same again: that part alone is asked.
    (tmp_path / "waits").unlink()
    ran = project.make()
    assert [line for line in ran if line in ("a", "images 0-4", "images 5-8")] == ["a", "a", "images 5-8"]
    assert not list((tmp_path / "build/unfinished").rglob("*.step"))
    cut = project.results()["a/scores.parquet"]
    assert project.stale() == [], "its parts are gone, and not missed"

    # A page that is made anew has its parts made anew: two, and one before them that has no images.
    for file in ("executed/a.ipynb", "html/index.html"):
        (tmp_path / "build/quick" / file).unlink()
    assert project.stale() == ["a", "a part 0", "a part 1", "a part 2", "book"]
    project.edit("notebooks/profiles.yml", ", parts: {quick: 2}", "")
    assert "images 0-8" in project.make()
    assert project.results()["a/scores.parquet"] == cut


def test_parts_that_cannot_be_stop_a_build_in_a_line(project, tmp_path):
    project.edit("notebooks/profiles.yml", "a: {data: [digits]}", "a: {data: [digits], parts: {quick: 0}}")
    process = project.start(goal=("notebook", "NAME=a"))
    output = process.communicate()[0]
    assert process.returncode
    assert "notebooks/profiles.yml, a, parts, quick: 0 is less than the minimum of 1" in output
    assert "Traceback" not in output
