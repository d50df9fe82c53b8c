"""What a build would miss is said before it starts, with what to do; pretrained networks are fetched before jobs."""

import json

import pytest

from faithstudy import paths, preflight, profiles, weights


@pytest.fixture
def paper(monkeypatch):
    monkeypatch.setenv("FAITHLAB_GPUS", "")
    monkeypatch.setattr(profiles, "require_files", lambda chosen: None)


def test_a_paper_build_without_a_gpu_is_told_so(paper, monkeypatch, capsys):
    (line,) = [line for line in preflight.missing("paper") if line.startswith("GPU")]
    assert "PROFILE=study" in line
    monkeypatch.setenv("FAITHLAB_GPUS", "0")
    assert not [line for line in preflight.missing("paper") if line.startswith("GPU")]
    assert not [line for line in preflight.missing("quick") if line.startswith("GPU")]


def test_files_of_the_readers_own_are_asked_for(monkeypatch, capsys):
    def require(chosen):
        assert set(chosen) == set(paths.pages())
        raise profiles.ParameterError("Missing: imagenet-folder, for saco/groups (path): found none")

    monkeypatch.setattr(profiles, "require_files", require)
    assert preflight.main(["--profile", "paper"]) == 1
    said = capsys.readouterr().out
    assert "Missing: imagenet-folder, for saco/groups" in said
    assert "notebooks/profiles.yml" in said


def test_a_cluster_needs_its_plugin_and_its_command(paper, monkeypatch):
    monkeypatch.setattr(preflight.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(preflight.shutil, "which", lambda name: None)
    (line,) = preflight.missing("paper", "slurm")
    assert "need sbatch" in line
    assert "pip install -e '.[cluster]'" in line
    assert preflight.missing("paper", "torque")[0].startswith("Cluster: no profile for 'torque'; there are slurm")


def test_what_is_said_of_clusters_is_still_so():
    (line,) = [line for line in preflight.missing("study", "kubernetes") if line.startswith("Cluster")]
    assert "README.md" in line
    guide = (paths.root() / "notebooks/cluster/README.md").read_text()
    assert "## Kubernetes" in guide
    jobs = [profiles.needs(name).jobs.get("paper", 0) for name in paths.pages()]
    parts = [count for name in paths.pages() if (count := profiles.needs(name).parts.get("paper"))]
    asking = f"{sum(parts) + len(parts)} jobs that ask, for {len(parts)} of the pages"
    assert f"`paper` has {len(jobs)} pages, {sum(jobs)} training jobs and {asking}" in guide.replace("\n", " ")
    alone = [name.split("/")[0] for name in paths.pages() if profiles.needs(name).alone]
    assert (alone.count("cost"), len(alone)) == (5, 5)
    assert "no recorded page took more than two and a half hours" in guide.replace("\n", " ")
    records = list((paths.root() / "data/results/study").rglob("provenance.json"))
    assert records
    for record in records:
        assert json.loads(record.read_text())["seconds"] <= 2.5 * 3600, record


def test_every_kind_of_cluster_has_a_profile():
    assert {path.parent.name for path in (paths.root() / "notebooks/cluster").glob("*/config.yaml")} == set(
        preflight.COMMANDS
    )


def test_pretrained_networks_of_a_run_are_known_before_it():
    def of(name, profile, **changes):
        return weights.named(name, profiles.resolve(name, profile, changes))

    assert of("saco/groups", "quick") == []
    assert of("saco/groups", "paper")[0] == "vit_base_patch16_224"
    assert of("saco/groups", "paper", weights="~/mine") == []
    assert of("few-class-fidelity/photographs", "paper")[:2] == ["efficientnet-lite0", "efficientnet-lite1"]
    assert of("template", "quick") == []
