"""What a page asks about its images is cut into parts, jobs of their own, whose tables make up the whole one."""

import json

import jupytext
import pytest
import torch
from torch import nn

from faithlab.metrics import METRICS, evaluate
from faithlab.scores import Scores
from faithlab.task import Task
from faithstudy import execute, paths, profiles, provenance
from faithstudy import run as results
from faithstudy.trials import degraded, tasks

SCRIPT = """
# %% tags=["parameters"]
profile = "study"
images = 11

# %%
scores = run.table("scores", ask, chosen)
"""
IMAGES, PARTS = 11, 4


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with one notebook, `page`, that is cut into parts in the profile paper."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks/page.py").write_text(SCRIPT.lstrip())
    (tmp_path / "notebooks/profiles.yml").write_text(f"page: {{parts: {{paper: {PARTS}}}}}\n")
    monkeypatch.setenv("FAITHLAB_ROOT", str(tmp_path))
    monkeypatch.delenv("FAITHLAB_BUILD", raising=False)
    return tmp_path


def code_of() -> str:
    """The hash of the page's code, as the pipeline has it."""
    return provenance.digest(provenance.cells(jupytext.read(paths.script("page"))))


def started(part=None, profile="paper", **changes):
    """A run as the pipeline starts it: of the page, or of one of its parts."""
    parameters = {"profile": profile, "images": IMAGES} | changes
    known = provenance.identity("page", parameters, code_of(), provenance.library())
    with provenance.announced("page", known | ({"part": [part, PARTS]} if part is not None else {})):
        return results.Run("page", parameters)


class Asked:
    """A question that remembers which images of which network it was put about."""

    def __init__(self):
        self.images = []

    def __call__(self, task):
        self.images.append((task.network, task.images.tolist()))
        return Scores.of(task.x.sum(1), images=task.images, metric="sum", **task.labels)


@pytest.fixture
def two():
    x = torch.rand(IMAGES, 3, generator=torch.Generator().manual_seed(0))
    about = {
        "target": torch.zeros(IMAGES, dtype=torch.int64),
        "segments": torch.arange(3),
        "images": torch.arange(IMAGES),
    }
    return [Task(nn.Identity(), x, network=name, **about) for name in ("a", "b")]


def photographs():
    """A network with convolutions, one tuned, and images whose numbers in their data set are not their places."""
    torch.manual_seed(0)
    network, tuned = (
        nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 4)
        ).eval()
        for _ in range(2)
    )
    return Task(
        network,
        torch.randn(30, 3, 8, 8),
        torch.randint(4, (30,)),
        torch.arange(64).view(8, 8),
        images=100 + torch.randperm(30),
        tuned=tuned,
    )


def test_parts_below_each_other_are_the_whole(repository):
    """Random subsets, noise and noisy copies come from an image's number; a reference is one image's own."""
    metrics = {"FFid+": METRICS["FFid+"].given(draws=3, seed=1), "AOPC": METRICS["AOPC"], "SaCo": METRICS["SaCo"]}
    noisy = {"SG-SQ": ("smoothgrad-squared", {"samples": 3, "seed": 2}), "random": ("random", {"seed": 3})}

    def ask(task):
        maps = tasks.attributions(task, noisy)
        return degraded.degraded(metrics, task, maps, levels=[0.0, 0.5], seeds=[0, 1])

    whole = ask(photographs())
    cut = results.Run("page", {"profile": "paper", "images": 30}).table("scores", ask, [photographs()])
    assert len(whole.blocks) == len(cut.blocks) == 2 * 3 * 3
    for one, other in zip(whole, cut, strict=True):
        assert (one.labels, one.sizes) == (other.labels, other.sizes)
        assert torch.equal(one.images, other.images)
        # A product may be rounded by its shape, so that now and then a hit flips.
        differ = (one.values.double() - other.values.double()).abs() > 1e-5
        assert differ.double().mean() < 0.01, one.labels
    other = ask(photographs().part(torch.arange(30).flip(0)))
    assert torch.equal(other.blocks[0].images, whole.blocks[0].images.flip(0)), "rows follow their images"


def test_what_reads_all_images_at_once_reads_them_in_parts_too(repository):
    """A reference that is a mean over all images stays that of all."""
    task = photographs()
    mean = {"mean of all": lambda x: x.mean(0, keepdim=True).expand_as(x)}
    task = Task(task.model, task.x, task.target, task.segments, baselines=mean)
    metrics = {"AOPC": METRICS["AOPC"].given(baseline="mean of all")}

    def ask(of):
        return evaluate(metrics, of, tasks.attributions(of, {"random": ("random", {"seed": 3})}))

    cut = results.Run("page", {"profile": "paper", "images": 30}).table("scores", ask, [task])
    torch.testing.assert_close(cut.blocks[0].values, ask(task).blocks[0].values, rtol=0, atol=1e-5)


def test_jobs_make_a_part_each_and_the_page_finds_them(repository, two):
    asked = Asked()
    for part in range(PARTS + 1):
        run = started(part)
        run.save(asked(two[0]), "before")
        asked.images.clear()
        with pytest.raises(provenance.PartMade, match=f"part {part} of {PARTS}"):
            run.table("scores", asked, two)
        blocks = [(network, images) for network, images in asked.images]
        assert [network for network, _ in blocks] == ([] if part == 0 else ["a", "b"])
        assert all(2 <= len(images) <= 3 for _, images in blocks)
        assert not run.folder.exists(), "its tables are gone"
    assert not (repository / "build/paper").exists(), "a part publishes nothing"

    asked.images.clear()
    page = started()
    scores = page.table("scores", asked, two)
    assert asked.images == [], "every part is made"
    assert scores.labels("network") == ["a", "b"]
    assert all(torch.equal(block.images, two[0].images) for block in scores)
    assert torch.equal(scores.blocks[0].values[:, 0], two[0].x.sum(1))
    page.finish()
    assert not list((repository / "build/unfinished").rglob("*.step"))
    assert not list((repository / "build/unfinished").rglob("*.partial"))
    assert json.loads((page.folder / "provenance.json").read_text())["pipeline"]


def test_a_part_that_was_killed_goes_on_at_the_next_network(repository, two):
    asked = Asked()

    def killed(task):
        if task.network == "b":
            raise KeyboardInterrupt
        return asked(task)

    with pytest.raises(KeyboardInterrupt):
        started(2).table("scores", killed, two)
    with pytest.raises(provenance.PartMade):
        started(2).table("scores", asked, two)
    assert [network for network, _ in asked.images] == ["a", "b"]

    asked.images.clear()
    started().table("scores", asked, two)
    assert len(asked.images) == 2 * (PARTS - 1), "a page makes what no part has made"


def test_a_run_that_is_another_finds_no_part(repository, two):
    asked = Asked()
    with pytest.raises(provenance.PartMade):
        started(1).table("scores", asked, two)
    started(images=10).table("scores", asked, two)
    assert len(asked.images) == 2 + 2 * PARTS
    notebook = repository / "notebooks/page.py"
    notebook.write_text(notebook.read_text() + "more = 1\n")
    started().table("scores", asked, two)
    assert len(asked.images) == 2 + 4 * PARTS


@pytest.mark.parametrize("hand", [True, False])
def test_without_parts_a_subject_is_asked_as_it_is(repository, two, hand):
    seen = []
    for _ in range(2):  # the second finds it made, but by hand
        run = results.Run("page", {"profile": "study", "images": IMAGES}) if hand else started(profile="study")
        run.table("scores", lambda task: seen.append(task) or Asked()(task), two)
    assert [id(task) for task in seen] == [id(task) for task in two] * (2 if hand else 1)


def test_fewer_images_than_parts(repository, two):
    one = [two[0].part(torch.tensor([5, 2]))]
    asked = Asked()
    for part in range(1, PARTS + 1):
        with pytest.raises(provenance.PartMade):
            started(part).table("scores", asked, one)
    assert asked.images == [("a", [5]), ("a", [2])]
    assert started().table("scores", asked, one).blocks[0].images.tolist() == [5, 2]


def test_a_part_does_not_finish_a_page(repository, two):
    run = started(1)
    run.save(Asked()(two[0]), "scores")
    with pytest.raises(ValueError, match="ran to its end"):
        run.finish()
    assert not (repository / "build/paper").exists()


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("parts: 100", "page, parts: 100 is not of type 'object'"),
        ("parts: {paper: 0}", "page, parts, paper: 0 is less than the minimum of 1"),
        ("parts: {papre: 100}", "page, parts: 'papre' is not one of"),
        ("jobs: {paper: 0}", "page, jobs, paper: 0 is less than"),
    ],
)
def test_parts_that_cannot_be_are_an_error(repository, written, message):
    (repository / "notebooks/profiles.yml").write_text(f"page: {{{written}}}\n")
    with pytest.raises(ValueError, match=message):
        profiles.resolve("page", "quick")


@pytest.mark.parametrize("options", [["--part", "5", "4"], ["--part", "-1", "4"]])
def test_no_such_part(repository, capsys, options):
    assert execute.main(["page", *options]) == 2
    assert "--part takes I and N with 0 <= I <= N" in capsys.readouterr().err


def test_the_study_cuts_its_longest_pages():
    cut = {name: parts for name in paths.pages() if (parts := profiles.needs(name).parts)}
    assert len(cut) >= 5
    assert {profile for parts in cut.values() for profile in parts} == {"paper", "study"}
