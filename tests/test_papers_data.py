"""The profile `paper` has the papers' own data: fetched first, and the pages run on small files of the same format."""

import io
import json
import tarfile
import zipfile

import numpy as np
import pandas as pd
import pytest
import torch

from faithstudy import display_names, execute, paths, profiles
from faithstudy.data import cache, datasets, imagenet
from faithstudy.data import papers as own_sets
from test_imagenet import picture, tiny_archive
from test_texts import expect, place

TRAIN, TEST = 160, 70
IDENTITIES = [imagenet.wordnet_ids()[place] for place in own_sets.TINY]
GENERATOR = np.random.default_rng(0)
WORDS = ["a", "film", "that", "is", "long", "dull", "short", "bright", "good", "bad", "old", "new", "and", "actors"]


def cifar100():
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, count in (("train", TRAIN), ("test", TEST)):
            labels = np.arange(count, dtype=np.uint8)[:, None] % 100
            pixels = (GENERATOR.integers(0, 56, (count, 3072)) + 2 * labels).astype(np.uint8)
            member = tarfile.TarInfo(f"cifar-100-binary/{name}.bin")
            member.size = pixels.size + 2 * count
            tar.addfile(member, io.BytesIO(np.concatenate([labels // 5, labels, pixels], 1).tobytes()))
    return {"cifar-100-binary.tar.gz": stream.getvalue()}


def tiny_imagenet():
    labels = np.arange(max(TRAIN, TEST)) % 8 * 25
    pictures = [picture(tuple(int(c) for c in GENERATOR.integers(0, 255, 3))) for _ in labels]
    train = {f"{IDENTITIES[labels[i]]}_{i}.JPEG": pictures[i] for i in range(TRAIN)}
    test = {f"val_{i}.JPEG": (IDENTITIES[labels[i]], pictures[i]) for i in range(TEST)}
    return {"tiny-imagenet-200.zip": tiny_archive(train, test)}


def sentences(count):
    return [(" ".join(GENERATOR.choice(WORDS, 26)), i % 2) for i in range(count)]


def sst2():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, count in (("train", TRAIN), ("dev", TEST)):
            lines = [f"{text} \t{label}\n" for text, label in sentences(count)]
            archive.writestr(f"SST-2/{name}.tsv", "sentence\tlabel\n" + "".join(lines))
    return {"SST-2.zip": stream.getvalue()}


def boolq():
    def lines(count):
        rows = [{"question": "is it so", "passage": text, "answer": bool(label)} for text, label in sentences(count)]
        return "\n".join(json.dumps(row) for row in rows).encode()

    return {"train.jsonl": lines(TRAIN), "dev.jsonl": lines(TEST)}


def boiler():
    rows = pd.DataFrame(GENERATOR.normal(size=(TRAIN + TEST + 6, 20)))
    rows["label"] = np.arange(len(rows)) // 3 % 2
    rows.iloc[:, :5] += rows[["label"]].to_numpy()
    rows.insert(0, "time", np.arange(len(rows)) / 2)
    split = range(TRAIN), [TRAIN], range(TRAIN + 1, TRAIN + 1 + TEST)
    torch.save(tuple(map(list, split)), stream := io.BytesIO())
    return dict(zip(("full.csv", "split=1.pt"), (rows.to_csv().encode(), stream.getvalue()), strict=True))


FEWER = {"images": 6, "series": 6, "texts": 6, "noise_shares": [0.0, 1.0], "photographs_judged": 1, "size_step": 0.35}
"""Of pages that have them: fewer than in smoke, whose claims are judged elsewhere."""

SMALL = {of.__name__.replace("_", "-"): of for of in (cifar100, tiny_imagenet, sst2, boolq, boiler)}
"""By set: its official archives, with a few made-up examples in them."""


def named(value):
    """The published sets that parameters name."""
    if isinstance(value, dict | list):
        return set().union(*map(named, value.values() if isinstance(value, dict) else value))
    return {value} & datasets.COLLECTIONS.keys() if isinstance(value, str) else set()


@pytest.mark.parametrize("name", paths.notebooks())
def test_what_only_the_profile_paper_asks_about_is_fetched_before_it_runs(name):
    needs = profiles.needs(name)
    assert named(profiles.resolve(name, "paper")) - set(needs.data) == set(needs.papers) - set(needs.data)
    assert not set(needs.data) & set(needs.papers)


def own(paper, smoke, papers):
    """The parameters of smoke, with the data of the paper, and what of a network depends on them."""
    found = {}
    for key, value in paper.items():
        if isinstance(value, dict):
            found |= {key: {**smoke.get(key, {}), **own(value, smoke.get(key, {}), papers)}}
        elif key == "data" and isinstance(value, list):
            found[key] = [name for name in value if name in papers]
        elif key in ("data", "text_set", "classes", "size"):
            found[key] = value
    return {key: value for key, value in found.items() if value}


PAGES = ("f-fidelity/vision-transformer", "f-fidelity/explainers", "f-fidelity/text", "f-fidelity/time-series")
"""A page for each set; what others would fetch is looked at above."""
READ = {"pam", "eurosat"}
"""Sets whose examples are too long, or too hard to learn, for a page here: only their readers are tested."""


def test_a_page_runs_on_each_set_of_the_papers():
    assert set().union(*(profiles.needs(name).papers for name in PAGES)) - READ == SMALL.keys()
    assert set().union(*(profiles.needs(name).papers for name in paths.notebooks())) - READ == SMALL.keys()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("kernel_starts_warm")
@pytest.mark.parametrize("name", PAGES)
def test_a_notebook_runs_on_the_papers_data(name, tmp_path, monkeypatch):
    known = cache.folder()
    monkeypatch.setenv(cache.VARIABLE, str(mine := tmp_path / "cache"))
    monkeypatch.setenv("FAITHLAB_BUILD", str(tmp_path / "build"))
    (mine / "datasets").mkdir(parents=True)
    for path in [*known.glob("datasets/*.safetensors"), known / "pretrained"]:
        if path.name.split(".")[0] not in SMALL and path.exists():
            (mine / path.relative_to(known)).symlink_to(path)
    papers = [data for data in profiles.needs(name).papers if data not in READ]
    for data in papers:
        place(data, files := SMALL[data]())
        if data != "boiler":  # whose copies differ, so that there is nothing to compare
            expect(monkeypatch, data, files)
        datasets.fetch(data)  # into the cache, where the notebook's own process finds it
    overrides = {key: value for key, value in FEWER.items() if key in profiles.defaults(name)}
    overrides |= own(profiles.resolve(name, "paper"), profiles.resolve(name, "smoke"), papers)
    if "attained_patch" in profiles.defaults(name) and "tiny-imagenet" in profiles.needs(name).papers:
        overrides["attained_patch"] = 32  # four patches, as of smaller images
    execute.execute(name, "smoke", overrides=overrides)
    (folder,) = (tmp_path / "build").glob("smoke*/results")
    told = json.loads((folder / name / "provenance.json").read_text())
    assert set(papers) <= named(told["parameters"])
    (page,) = (tmp_path / "build").glob(f"smoke*/executed/{name}.ipynb")
    called = {"tiny-imagenet": "Tiny-ImageNet", "sst2": "SST2"}
    assert all(called.get(data, display_names.SETS[data]) in page.read_text() for data in papers)
