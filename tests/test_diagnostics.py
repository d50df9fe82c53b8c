"""Reasons why a claim is not reproduced are answered by where an interval lies, as claims are judged."""

import pytest
import torch

from faithlab import stats
from faithlab.scores import Scores
from faithstudy import diagnostics, tables
from faithstudy.diagnostics import Reason


def table(values, metric="m"):
    labels = {"metric": metric, "explainer": "e", "dataset": "d", "network": "n", "training_seed": 0}
    return Scores.of(torch.tensor(values, dtype=torch.float64), images=torch.arange(len(values)), **labels)


def estimate(values):
    return stats.estimate(table(values))


SPREAD = estimate([-0.5, 0.5, 1.5, 2.5, 3.5, 4.5])  # a mean of 2, Student's interval from 0.04 to 3.96


@pytest.mark.parametrize(
    ("bar", "answer"),
    [
        ({"above": 0.0}, "yes"),
        ({"above": 2.0}, "open"),
        ({"above": 4.0}, "no"),
        ({"below": 0.0}, "no"),
        ({"below": 2.0}, "open"),
        ({"below": 4.0}, "yes"),
        ({"within": 4.0}, "yes"),
        ({"within": 2.0}, "open"),
        ({"within": 0.01}, "no"),
    ],
)
def test_the_answer_is_where_the_interval_lies(bar, answer):
    assert Reason("?", "a mean", SPREAD, **bar).answer == answer


@pytest.mark.parametrize("found", [None, estimate([5.0])])
@pytest.mark.parametrize("bar", [{"above": 0.0}, {"below": 0.0}, {"within": 9.0}])
def test_what_has_no_interval_answers_nothing(found, bar):
    assert Reason("?", "one image", found, **bar).answer == "open"


def test_fewer_inputs_than_decide_a_claim_answer_nothing():
    assert float(estimate([1.0, 1.1, 0.9, 1.0, 1.0]).low) > 0.9
    assert Reason("?", "a mean", estimate([1.0, 1.1, 0.9, 1.0, 1.0]), above=0).answer == "open"


@pytest.mark.parametrize("bars", [{}, {"above": 0.0, "below": 1.0}])
def test_a_question_has_one_bar(bars):
    with pytest.raises(ValueError, match=r"'Why\?' needs one bar"):
        Reason("Why?", "a mean", SPREAD, **bars)


def test_a_table_says_number_inputs_run_and_bar():
    rows = (
        Reason("Too small?", "a mean", SPREAD, above=0),
        Reason("Too new?", "a mean", None, within=0.5),
        Reason("Too small?", "the same", SPREAD, below=0, said=tables.share),
    )
    assert list(diagnostics.frame(*rows)["question"]) == ["Too small?", "Too small?", "Too new?"]
    shown = diagnostics.table(*rows).data
    assert list(shown["question"]) == ["Too small?", "", "Too new?"]
    assert list(shown["answer"]) == ["yes, above 0", "no, not below 0\u00a0%", "open: within ±0.5?"]
    number, share, none = shown["found (inputs)"]
    assert (number[:10], number[-4:]) == ("2.000 [0.0", " (6)")
    assert (share[:9], share[-4:]) == ("200.0 % [", " (6)")
    assert none == "not asked in that run"


@pytest.mark.parametrize(
    ("said", "bar"), [(tables.share, "20\u00a0%"), (tables.points, "20\u00a0points"), (tables.number, "0.2")]
)
def test_a_bar_has_the_unit_of_its_number(said, bar):
    assert Reason("?", "a mean", SPREAD, above=0.2, said=said).bar == f"above {bar}"
    assert Reason("?", "a mean", SPREAD, within=0.2, said=said).bar == f"within ±{bar}"
