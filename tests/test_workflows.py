"""What GitHub runs: tests gate publishing, actions are the ones that were looked at, nothing may more than it must."""

import re
from pathlib import Path

import pytest
import yaml

import test_cluster

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").iterdir())


def workflow(path: Path) -> dict:
    """A workflow as GitHub reads it: YAML's `on` is a name there, not true."""
    loaded = yaml.safe_load(path.read_text())
    return {("on" if key is True else key): value for key, value in loaded.items()}


def steps(job: dict) -> list[dict]:
    return job.get("steps", [])


def jobs() -> dict[str, dict]:
    return {f"{path.name} {name}": job for path in WORKFLOWS for name, job in workflow(path)["jobs"].items()}


def publishing() -> list[str]:
    return [name for name, job in jobs().items() if any("deploy-pages" in step.get("uses", "") for step in steps(job))]


def needed(name: str) -> list[dict]:
    """The jobs that have to pass before a job starts."""
    file, _ = name.split()
    before = jobs()[name].get("needs", [])
    names = [f"{file} {other}" for other in ([before] if isinstance(before, str) else before)]
    return [jobs()[other] for other in names] + [job for other in names for job in needed(other)]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_an_action_is_named_by_its_commit_and_says_its_release(path):
    used = [line.strip() for line in path.read_text().splitlines() if "uses:" in line]
    loose = [line for line in used if not re.search(r"uses: [\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line)]
    assert used
    assert not loose, f"a tag can be moved: name the commit, and the release behind it, of {loose}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_read_and_only_publishing_may_write(path):
    assert workflow(path)["permissions"] == {"contents": "read"}
    for name, job in workflow(path)["jobs"].items():
        allowed = {"pages": "write", "id-token": "write"} if f"{path.name} {name}" in publishing() else {}
        assert job.get("permissions", {}) == allowed
        assert job["timeout-minutes"] <= 120
    assert "pull_request_target" not in workflow(path)["on"], "it would run a stranger's code with our rights"


def test_a_checkout_leaves_no_credentials():
    checkouts = [s for job in jobs().values() for s in steps(job) if s.get("uses", "").startswith("actions/checkout")]
    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_what_is_published_is_the_one_build_that_passed_the_tests():
    (publish,) = publishing()
    builds = [
        name
        for name, job in jobs().items()
        if any(re.search(r"make book|\.ci/run", s.get("run", "")) for s in steps(job))
    ]
    assert len(builds) == 1, "the book is built once a push"
    (before,) = needed(publish)
    assert before is not None
    words = [step.get("run") or step.get("uses") for step in steps(before)]
    tested = words.index("bash .ci/run")
    (kept,) = [n for n, word in enumerate(words) if word.startswith("actions/upload-pages-artifact")]
    assert tested < kept, "kept before it was tested"
    assert "if" not in steps(before)[tested]
    assert "always" not in steps(before)[kept].get("if", "")
    assert steps(before)[kept]["with"]["path"] == "build/study/html"
    assert "make book" in (ROOT / ".ci/run").read_text()
    assert "make test\n" in (ROOT / ".ci/run").read_text()


def test_only_main_is_published():
    (publish,) = publishing()
    assert "github.ref == 'refs/heads/main'" in jobs()[publish]["if"]


def test_it_also_runs_without_a_push():
    times = [entry["cron"] for path in WORKFLOWS for entry in workflow(path)["on"].get("schedule", [])]
    assert times
    assert all(len(time.split()) == 5 for time in times)


PACKAGES = {"slurmctld": "slurmctld", "slurmd": "slurmd", "munged": "munge", "sbatch": "slurm-client"}
"""Of Debian, by the commands that the test of a cluster needs."""


def test_a_real_cluster_is_tried_every_night():
    (path,) = [path for path in WORKFLOWS if "tests/test_cluster.py" in path.read_text()]
    (nightly,) = workflow(path)["on"]["schedule"]
    assert re.fullmatch(r"\d+ \d+ \* \* \*", nightly["cron"])
    (job,) = workflow(path)["jobs"].values()
    run = "\n".join(step.get("run", "") for step in steps(job))
    assert {PACKAGES[command] for command in test_cluster.NEEDED} <= set(run.split())
    assert "[cluster]" in run, "Snakemake's plugin"
    assert re.search(r"sudo \S+ -m pytest", run), "it needs root"
    assert "! grep ' skipped'" in run, "a test that is skipped is none"


def test_newer_actions_and_images_are_looked_for():
    updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]
    folders = {entry["package-ecosystem"]: entry["directory"] for entry in updates}
    assert folders.pop("github-actions") == "/"
    for ecosystem, folder in folders.items():
        assert ecosystem == "docker"
        assert (ROOT / folder.strip("/") / "Dockerfile").is_file()
