"""The measurements as a data set: what the page on data says to type gives the numbers of the book."""

import re

import pandas as pd

from faithstudy import records
from guides import ROOT, guide


def test_a_reader_computes_a_recorded_number_again_from_the_tables(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    names = {}
    exec(guide("data").holding("python", "read_parquet"), names)
    rows = names["rows"]
    assert set(rows["part"].unique()) >= {"saco/random", "f-fidelity/images", "trace/searches", "reco-mege/normal"}
    mean, low, high = map(float, re.findall(r"-?\d+\.\d+", capsys.readouterr().out))
    parts = pd.read_csv(ROOT / "data/results/study/saco/random/parts.csv")
    recorded = parts.query("claim == 'saco-random-zero' and network == 'pooled'").iloc[0]
    for found, of in ((mean, "value"), (low, "low"), (high, "high")):
        assert abs(found - recorded[of]) < 0.002, "three decimals, and other resamples"


def test_what_the_book_says_was_not_run_was_not():
    text = (ROOT / "book/evidence.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"^## What was not run\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    section = " ".join(section.split())
    recorded = {record["notebook"]: record for record in records.all_provenance()}
    once = {"F-Fidelity's explainers": "explainers", "its public code": "public-code"}
    pages = [f"f-fidelity/{page}" for words, page in once.items() if words in section]
    trained = [page for page, record in recorded.items() if "training_seeds" in record["parameters"]]
    pages += [page for page in trained if page.startswith("reco-mege/")]
    assert len(pages) == 7
    assert all(recorded[page]["parameters"]["training_seeds"] == [0] for page in pages)
    photographs = recorded["trace/networks"]["parameters"]
    assert f"of {photographs['more_photographs']} photographs instead of 200" in section
    assert (photographs["more_of_others"], photographs["photograph_patch"], photographs["more_patch"]) == (0, 56, 32)
    assert not any(record["gpu"] for record in recorded.values())
    smaller = {
        "f-fidelity/images": {"seeds": [0], "size_step": 0.1},
        "f-fidelity/public-code": {"seeds": [0], "size_step": 0.1},
        "reco-mege/normal": {"steps": 8, "samples": 8},
        "reco-mege/right-method": {"steps": 8, "samples": 8},
        "reco-mege/degraded": {"steps": 4, "samples": 4, "switched": [0.3], "limited": [0.25]},
        "reco-mege/fidelity": {"steps": 8, "samples": 8, "images": 400},
        "few-class-fidelity/references": {"images": 200},
        "few-class-fidelity/natural-images": {"training_seeds": [0, 1, 2]},
        "trace/settings": {"images": 100, "ep_steps": 30},
        "trace/criteria": {"images": 100},
        "trace/explainers": {"rise_samples": 200, "ep_steps": 40},
        "trace/networks": {"images": 100, "annealed_photographs": None, "ep_steps": 6, "more_ep_steps": 20}
        | {"rise_samples": 60, "more_rise_samples": 4000, "photographs_judged": 20},
        "trace/optimum-of-photographs": {"images": 6},
        "saco/settings": {"images": 300},
        "saco/beyond-vits": {"images": 500},
    }
    for page, asked in smaller.items():
        assert {key: recorded[page]["parameters"][key] for key in asked} == asked, page
    for said in (
        "degraded by one seed of noise and judged at 9 sizes",
        "in 8 steps, of degraded networks in 4 (60",
        "one level each was trained (30 % and 25 %)",
        "TRACE's settings, criteria and networks are evaluated on 100 images of CIFAR-10",
        "ReCo and MeGe beside Fidelity about 400",
        "baselines about 200 of each kind",
        "takes 30 or 40 steps on CIFAR-10, and 6 or 20 on photographs (800, as its authors do), RISE 200 masks",
        "vehicles are 15 to 16 photographs",
        "SaCo's settings about 300",
        "SaCo beyond transformers about 500",
        "by 16 patches some are, 6 of them with its 5000 proposals",
        "none is searched by 196 patches where all searches are compared",
    ):
        assert said in section, said
    assert list(recorded["few-class-fidelity/natural-images"]["parameters"]["architectures"]) == ["ResNet-9"]
    photographs = records.recorded("few-class-fidelity/photographs", "scores").frame
    asked = photographs.where(dataset="imagenet-folder, vehicles")
    vehicles = {name: len(asked.where(network=name).blocks[0].images) for name in asked.labels("network")}
    assert {min(vehicles.values()), max(vehicles.values())} == {15, 16}
    assert not any(line.split()[1] == "196" for line in recorded["trace/searches"]["parameters"]["compared"])
    elsewhere = {page for page, record in recorded.items() if record.get("steps_made_on")}
    assert elsewhere == {"trace/networks", "few-class-fidelity/photographs"}
    assert "photographs of TRACE's networks, and those of Few-class Fidelity" in section
    assert {record["profile"] for record in recorded.values()} == {"study"}
