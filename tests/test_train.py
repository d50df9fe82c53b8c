"""Networks as jobs of their own: every part trains its share, and a notebook waits for all of them."""

import os
import subprocess

import pytest

from faithstudy import paths, profiles, train
from faithstudy import recipes as networks
from faithstudy.networks import training

PAGE = "reco-mege/degraded"
SHARING = [name for name in paths.notebooks() if profiles.needs(name).shares]
USERS = ["f-fidelity/images", *(name for name in SHARING if profiles.needs(name).shares == "f-fidelity/images")]


@pytest.fixture
def asked(monkeypatch):
    """The names of the networks that would be trained."""
    found = []
    monkeypatch.setenv("FAITHLAB_NETWORKS", "")
    monkeypatch.setattr(training, "trained", lambda recipe: found.append(recipe.key()))
    return found


@pytest.fixture(scope="module")
def planned(tmp_path_factory, python):
    """What Snakemake says that it would do for the pages that are asked about here, in the build of a whole book."""
    build = tmp_path_factory.mktemp("build")
    pages = [f"{os.path.relpath(build, paths.root())}/paper/executed/{name}.ipynb" for name in (PAGE, *USERS)]
    command = [python, "-m", "snakemake", "-n", "--cores", "1", *pages, "--config", "profile=paper"]
    environment = {"FAITHLAB_BUILD": str(build), "FAITHLAB_NETWORKS": ""}
    return subprocess.run(
        command, cwd=paths.root(), env=os.environ | environment, capture_output=True, text=True
    ).stdout


def test_the_parts_together_are_all_networks_and_none_is_trained_twice(asked):
    parts = []
    for part in range(3):
        asked.clear()
        assert train.main([PAGE, "--profile", "smoke", "--part", str(part), "3"]) == 0
        parts.append(list(asked))
    everything = [recipe.key() for recipe in train.recipes(PAGE, profiles.resolve(PAGE, "smoke"))]
    assert sorted(key for part in parts for key in part) == sorted(everything)
    assert len(set(everything)) == len(everything)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_part_of_as_many_as_there_are_folds_is_one_fold_of_every_condition():
    parameters = profiles.resolve(PAGE, "paper")
    for part in range(parameters["folds"]):
        chosen = train.recipes(PAGE, parameters)[part :: parameters["folds"]]
        assert {recipe.fold for recipe in chosen} == {(part, parameters["folds"])}


def test_parameters_of_ones_own_are_those_of_the_networks(asked):
    assert train.main([PAGE, "--profile", "smoke", "-p", "retrained", "[mnist]", "-p", "folds", "3"]) == 0
    assert len(asked) == 3


@pytest.mark.parametrize("part", [("3", "3"), ("-1", "3"), ("0", "0")])
def test_a_part_that_there_is_not_is_an_error(asked, capsys, part):
    assert train.main([PAGE, "--profile", "smoke", "--part", *part]) == 2
    assert "0 <= I < N" in capsys.readouterr().err
    assert not asked


def test_a_notebook_without_networks_to_train_ahead_is_an_error(asked, capsys):
    assert train.main(["template"]) == 2
    assert "does not say what template trains" in capsys.readouterr().err
    assert not asked


def test_the_pipeline_trains_the_parts_before_the_notebook_runs(planned):
    parts = profiles.needs(PAGE).jobs["paper"]
    positions = [planned.index(f"part {part} of {parts}") for part in range(parts)]
    assert max(positions) < planned.index(f"notebook {PAGE}")


def test_notebooks_wait_only_for_networks_that_are_trained_ahead():
    assert SHARING
    for name in SHARING:
        whose = profiles.needs(profiles.needs(name).shares)
        assert whose.trains
        assert whose.jobs  # in the paper's profile at least: what ships is not trained in a build


@pytest.mark.parametrize("name", [name for name in SHARING if name != "f-fidelity/explainers" and "f-fid" in name])
def test_a_notebook_that_shares_networks_would_train_the_same(name):
    shared = {recipe.key() for recipe in networks.resnets(profiles.resolve("f-fidelity/images"))}
    assert {recipe.key() for recipe in networks.resnets(profiles.resolve(name))} <= shared


def test_a_build_trains_shared_networks_before_any_notebook_that_uses_them(planned):
    first = planned.index("networks of f-fidelity/images")
    assert profiles.needs("f-fidelity/images").jobs["paper"]
    assert len(USERS) > 1
    assert all(first < planned.index(f"notebook {name} ") for name in USERS)
