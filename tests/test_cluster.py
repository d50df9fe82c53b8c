"""A build on a real Slurm of one node: a job that is killed is made again, and the tables are those of this machine."""

import importlib.util
import os
import shutil
import subprocess

import pytest

from test_pipeline import ROOT, Project

NEEDED = ("slurmctld", "slurmd", "munged", "sbatch")
PLUGIN = "snakemake_executor_plugin_slurm"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        not all(map(shutil.which, NEEDED)), reason="needs Debian's slurmctld, slurmd, slurm-client, munge"
    ),
    pytest.mark.skipif(not importlib.util.find_spec(PLUGIN), reason="needs pip install -e .[cluster]"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(os.path.lexists("/etc/slurm/slurm.conf"), reason="there is another Slurm"),
]

# The first build meets a job that is killed, the second finishes it.
STEPS = """
make book VENV=none CLUSTER=slurm >first.log 2>&1 &
build=$!
until squeue --noheader --states RUNNING --format %k | grep -q part_b && grep -qs part/b ran.log; do
    kill -0 $build || { cat first.log; exit 1; }
    sleep 0.5
done
scontrol show jobs --oneliner >jobs.log
scancel "$(squeue --noheader --format '%i %k' | awk '/part_b/ {print $1}')"
wait $build && exit 2
sed -i 's/seconds: 600/seconds: 0/' notebooks/profiles.yml
make book VENV=none CLUSTER=slurm
"""


def test_a_cluster_makes_the_tables_of_this_machine(tmp_path):
    (tmp_path / "project").mkdir()
    project = Project(tmp_path / "project")
    project.build_pages_quickly()
    shutil.copytree(ROOT / "notebooks/cluster", project.folder / "notebooks/cluster")
    # What a user writes there for this small cluster.
    profile = "notebooks/cluster/slurm/config.yaml"
    project.edit(profile, "jobs: 100\n", "jobs: 100\nslurm-no-account: true\nslurm-status-command: squeue\n")
    project.edit(profile, "notebook: 8", "notebook: 1")
    project.edit(profile, "latency-wait: 60", "latency-wait: 5\nslurm-init-seconds-before-status-checks: 2")
    project.edit("notebooks/profiles.yml", "alone: true,", "alone: true, memory: 500, quick: {seconds: 600},")
    ran = subprocess.run(
        [str(ROOT / "tests/one_node_slurm.sh"), str(tmp_path / "slurm"), "bash", "-c", STEPS],
        cwd=project.folder,
        env=project.environment()
        | {"PYTHONPATH": os.pathsep.join([str(project.folder / "lib"), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr + (project.folder / "first.log").read_text()
    (job,) = [line for line in (project.folder / "jobs.log").read_text().splitlines() if "part_b" in line]
    assert "TimeLimit=1-00:00:00" in job
    assert "gpu:1" in job
    assert "mem=500M" in job
    log = (project.folder / "ran.log").read_text().split()
    assert log.count("part/b") == 2, "it was killed once"
    assert log.count("a") == 1
    there = {name: text for name, text in project.results().items() if name.endswith(".csv")}
    shutil.rmtree(project.folder / "build")
    project.make()
    assert there == {name: text for name, text in project.results().items() if name.endswith(".csv")} != {}
