"""The measurements as a data set: what the page on data says to type gives the numbers of the book."""

import re

import pandas as pd

from guides import ROOT, guide


def test_a_reader_computes_a_recorded_number_again_from_the_tables(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    names = {}
    exec(guide("data").holding("python", "read_parquet"), names)
    rows = names["rows"]
    assert set(rows["part"]) >= {"saco/random", "f-fidelity/images", "trace/searches", "reco-mege/normal"}
    mean, low, high = map(float, re.findall(r"-?\d+\.\d+", capsys.readouterr().out))
    parts = pd.read_csv(ROOT / "data/results/study/saco/random/parts.csv")
    recorded = parts.query("claim == 'saco-random-zero' and network == 'pooled'").iloc[0]
    for found, of in ((mean, "value"), (low, "low"), (high, "high")):
        assert abs(found - recorded[of]) < 0.002, "three decimals, and other resamples"
