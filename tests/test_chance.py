"""The trial of random attribution, on answers that are known."""

import pytest
import torch

from faithlab import stats
from faithlab.metrics import METRICS, Metric
from faithlab.task import Task
from faithstudy.trials.chance import RANDOM, against, chance

WEIGHTS = torch.rand(40, 12, generator=torch.Generator().manual_seed(0)) + 0.1


class Sum(torch.nn.Module):
    """Two logits, the second of which is the sum of the pixels that are there."""

    def forward(self, x):
        return torch.stack([torch.zeros(len(x)), x.flatten(1).sum(1) - 3], 1)


@pytest.fixture(scope="module")
def task():
    return Task(
        Sum(), WEIGHTS.view(40, 1, 3, 4), torch.ones(40, dtype=torch.int64), torch.arange(12).view(3, 4), "given", "sum"
    )


@pytest.fixture(scope="module")
def scores(task):
    metrics = {
        "SaCo": METRICS["SaCo"].given(groups=4, baseline="zero"),
        "AUC": METRICS["AUC"],
        "Fid+": METRICS["Fid+"],
    }
    return metrics, chance(metrics, task, {"truth": WEIGHTS, "lie": -WEIGHTS}, seeds=[3, 4, 5])


def test_every_explanation_is_there_once_and_random_once_a_seed(scores):
    metrics, table = scores
    for name in metrics:
        assert len(table.where(metric=name, explainer="truth")) == 40
        random = table.where(metric=name, explainer=RANDOM)
        assert random.labels("noise_seed") == [3, 4, 5]
        assert len(random) == 120
    one, other = (table.where(metric="SaCo", explainer=RANDOM, noise_seed=s).blocks[0].values for s in (3, 4))
    assert not torch.equal(one, other)


def test_truth_is_better_than_chance_and_a_lie_is_worse_in_the_direction_of_each_metric(scores):
    metrics, table = scores
    found = against(table, metrics).set_index(["explainer", "metric"])
    assert len(found) == 2 * len(metrics)
    for name in ("SaCo", "Fid+"):
        assert found.loc[("truth", name), "low"] > 0
        assert found.loc[("lie", name), "high"] < 0
    expected = (
        stats.estimate(table, metric="AUC", explainer=RANDOM).value
        - stats.estimate(table, metric="AUC", explainer="truth").value
    )
    assert found.loc[("truth", "AUC"), "mean"] == pytest.approx(float(expected))


def test_a_metric_of_the_readers_own_is_asked_too(task):
    own = Metric(lambda score, attribution: attribution.double().max(1).values, source="mine")
    assert chance({"mine": own}, task, {"truth": WEIGHTS}, seeds=[0]).labels("explainer") == ["truth", RANDOM]
