"""Sentences that answer a page's title, on scores whose answer is known."""

import re

import pytest
import torch

from faithlab.scores import Scores
from faithstudy import summaries

LEVELS, SIZES = (0.0, 0.5, 1.0), (0.25, 0.5)
BETTER = {"Fid+": 1, "Fid-": -1, "FFid+": 1, "FFid-": -1}


def table(quality, images=60):
    """Scores of two families on two data sets: `quality` of a family is what it loses for the noise that is absent."""
    g, found = torch.Generator().manual_seed(0), []
    for dataset in ("cifar10 test", "other test"):
        for name, better in BETTER.items():
            for level in LEVELS:
                values = torch.randn(images, len(SIZES), generator=g) + better * quality.get(
                    name, quality.get(name[:-1])
                ) * (1 - level)
                labels = {"dataset": dataset, "network": "n", "explainer": "e", "metric": name}
                labels |= {"level": level or None, "noise_seed": 0 if level else None}
                found.append(Scores.of(values, images=range(images), sizes=SIZES, **labels))
    return Scores.concat(found)


def best_order(scores, without=()):
    return summaries.best_order(scores, LEVELS, [0], without)


def test_numbers_of_several_are_listed_with_their_names():
    assert summaries.of_each({"A": 0.835, "B": -0.1, "C-9": 0.5}) == "0.83 (A), −0.10 (B) and 0.50 (C-9)"


def test_the_best_metric_leads_and_what_is_clearly_behind_follows():
    said = best_order(table({"Fid": -0.2, "FFid": 0.2}, 300))
    assert re.match(r"\*\*F-Fidelity \S+ \[.+\]\*\* ranks them best, ahead of Fidelity −\S+ \[.+\]: neighb", said)
    assert said.endswith("over 2 cases (600 inputs of CIFAR-10 and other; n; e).")


def test_data_sets_are_left_out_unless_there_are_no_others():
    scores = table({"Fid": -0.2, "FFid": 0.2}, 300)
    first, other = scores.labels("dataset")
    assert "over 1 case (300 inputs of" in best_order(scores, without=[other])
    assert best_order(scores, without=[first, other]) == best_order(scores)


def test_what_is_ahead_least_first_is_said_of_the_metric_that_leads():
    said = best_order(table({"Fid+": -3, "Fid-": 3, "FFid+": 3, "FFid-": 0.05}, 300))
    assert said.startswith("**F-Fidelity")
    assert re.search(r"Least relevant first and at single sizes it is behind Fidelity by \d\.\d+ \[.+\]\.$", said)
    assert "behind" not in best_order(table({"Fid+": -3, "Fid-": 0.2, "FFid": 3}, 300))


@pytest.mark.parametrize("images", [2, 60])
def test_metrics_that_are_not_told_apart_are_not_ranked(images):
    for quality in (0.0, 3.0):
        said = best_order(table({"Fid": quality, "FFid": quality}, images))
        assert "are not clearly apart" in said
        assert "ahead" not in said


def test_without_an_interval_nobody_is_ahead():
    said = best_order(table({"Fid": -3, "FFid": 3}))
    assert said.startswith("**F-Fidelity 1.00 and Fidelity −1.00** are not clearly apart: ")


def test_few_inputs_claim_nothing():
    assert "ahead of" not in best_order(table({"Fid": 0.0, "FFid": 0.1}, 3))
