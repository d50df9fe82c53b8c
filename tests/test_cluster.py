"""The study on a real Slurm of one node: a job that was killed is made again, the tables are those of this machine."""

import importlib.util
import os
import shutil
import subprocess

import pytest
import yaml

from faithstudy.data.cache import folder
from test_pipeline import ROOT, Project

NEEDED = ("slurmctld", "slurmd", "munged", "sbatch")
PLUGIN = "snakemake_executor_plugin_slurm"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(
        not all(map(shutil.which, NEEDED)), reason="needs Debian's slurmctld, slurmd, slurm-client, munge"
    ),
    pytest.mark.skipif(not importlib.util.find_spec(PLUGIN), reason="needs pip install -e .[cluster]"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(os.path.lexists("/etc/slurm/slurm.conf"), reason="there is another Slurm"),
]

PAGES = ("f-fidelity/images", "saco/relations", "few-class-fidelity/digits")
CUT, PARTS = "f-fidelity/images", 3
"""The page whose network is trained by a job of its own, and whose images are asked about by so many others."""

# The first build meets a job that is killed, the second finishes it.
STEPS = f"""
make book VENV=none PROFILE=smoke CLUSTER=slurm >first.log 2>&1 &
build=$!
until squeue --noheader --states RUNNING --format '%i %k' | grep 'rule_ask.*_2_{PARTS}$' >killed.log; do
    kill -0 $build || {{ cat first.log; exit 1; }}
    sleep 0.5
done
scontrol show jobs --oneliner >jobs.log
scancel "$(awk '{{print $1}}' killed.log)"
wait $build && exit 2
[ -e build/smoke/results/{CUT} ] && exit 3
make book VENV=none PROFILE=smoke CLUSTER=slurm >second.log 2>&1 || {{ cat second.log; exit 1; }}
"""


def study(place):
    """Three pages of the study, with what they need."""
    place.mkdir()
    project = Project(place)
    project.build_pages_quickly()
    shutil.copy(ROOT / "lib/faithstudy/data/datasets.py", place / "lib/faithstudy/data/datasets.py")
    shutil.copytree(ROOT / "data/published", place / "data/published", dirs_exist_ok=True)
    shutil.rmtree(place / "notebooks")
    known = yaml.safe_load((ROOT / "notebooks/profiles.yml").read_text())
    for page in PAGES:
        project.write(f"notebooks/{page}.py", (ROOT / f"notebooks/{page}.py").read_text())
    wanted = {page: known[page] for page in PAGES}
    wanted[CUT] |= {"jobs": {"smoke": 1}, "parts": {"smoke": PARTS}}
    project.write("notebooks/profiles.yml", yaml.safe_dump(wanted, sort_keys=False))
    chapters = [{"file": f"notebooks/{page}"} for page in PAGES]
    project.write("book/_toc.yml", yaml.safe_dump({"format": "jb-book", "root": "book/home", "chapters": chapters}))
    shutil.copytree(ROOT / "notebooks/cluster", place / "notebooks/cluster")
    return project


def environment(project, cache):
    """Of a build with a cache of its own: the data sets are those of this machine, and every network is trained."""
    library = os.pathsep.join([str(project.folder / "lib"), os.environ.get("PYTHONPATH", "")])
    (there := folder() / "datasets").mkdir(exist_ok=True)
    cache.mkdir()
    (cache / "datasets").symlink_to(there)
    return project.environment() | {"PYTHONPATH": library, "FAITHLAB_CACHE": str(cache)}


def tables(project):
    return {name: text for name, text in project.results("smoke").items() if not name.endswith("provenance.json")}


def test_a_cluster_makes_the_tables_of_this_machine(tmp_path):
    project = study(tmp_path / "project")
    # What a user writes there for this small cluster.
    profile = "notebooks/cluster/slurm/config.yaml"
    project.edit(profile, "jobs: 100\n", "jobs: 100\nslurm-no-account: true\nslurm-status-command: squeue\n")
    for rule in ("notebook", "train", "ask"):
        project.edit(profile, f"{rule}: 8", f"{rule}: 1")
    project.edit(profile, "latency-wait: 60", "latency-wait: 5\nslurm-init-seconds-before-status-checks: 2")
    ran = subprocess.run(
        [str(ROOT / "tests/one_node_slurm.sh"), str(tmp_path / "slurm"), "bash", "-c", STEPS],
        cwd=project.folder,
        env=environment(project, tmp_path / "cache"),
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr + (project.folder / "first.log").read_text()
    (job,) = [line for line in (project.folder / "jobs.log").read_text().splitlines() if "RUNNING" in line]
    assert f"_2_{PARTS}" in job
    assert "TimeLimit=1-00:00:00" in job
    assert "gpu:1" in job
    assert "mem=6000M" in job
    first, second = ((project.folder / f"{log}.log").read_text() for log in ("first", "second"))
    assert first.count(f"networks of {CUT}") == 1, "it was trained by a job of its own"
    assert second.count(f"images of {CUT}") == 1, "the job that was killed, and no other"
    there = tables(project)
    assert {name.rpartition("/")[0] for name in there} == set(PAGES)

    shutil.rmtree(project.folder / "build")
    here = subprocess.run(
        ["make", "book", "VENV=none", "PROFILE=smoke", "CORES=2"],
        cwd=project.folder,
        env=environment(project, tmp_path / "other cache"),
        capture_output=True,
        text=True,
    )
    assert here.returncode == 0, here.stdout + here.stderr
    assert there == tables(project)
