"""What is read off a model's logits."""

import math

import pytest
import scipy.special
import torch

from faithlab import outputs

LOGITS = torch.randn(4, 5, 7, generator=torch.Generator().manual_seed(0)) * 3  # [..., C]
TARGET = torch.randint(7, (4, 5), generator=torch.Generator().manual_seed(1))


def literal(output: str, logits: list[float], target: int) -> float:
    p = scipy.special.softmax(logits)[target]
    value = {
        "logit": logits[target],
        "probability": p,
        "log_odds": math.log(p / (1 - p)),
        "sigmoid": 1 / (1 + math.exp(-logits[target])),
        "value": logits[target],
        "correct": float(all(logits[target] > other for c, other in enumerate(logits) if c != target)),
    }[output]
    return float(value)


@pytest.mark.parametrize("name", ["logit", "probability", "log_odds", "correct", "sigmoid", "value"])
def test_a_readout_is_its_definition(name):
    got = getattr(outputs, name)(LOGITS, TARGET)
    expected = [[literal(name, LOGITS[i, j].double().tolist(), int(TARGET[i, j])) for j in range(5)] for i in range(4)]
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, torch.tensor(expected), atol=1e-5, rtol=1e-5)


def test_extreme_logits_stay_finite():
    logits = torch.tensor([[1e4, 0.0], [-1e4, 0.0]])
    target = torch.tensor([0, 0])
    assert outputs.probability(logits, target).tolist() == [1, 0]
    assert outputs.log_odds(logits, target).tolist() == [1e4, -1e4]  # log p / (1 - p) would be log 1 / 0


def test_the_lowest_class_wins_a_tie():
    logits = torch.tensor([[2.0, 2.0, 1.0]])
    assert [outputs.correct(logits, torch.tensor([c])).item() for c in range(3)] == [1, 0, 0]
