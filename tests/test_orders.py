"""The trial of degraded explanations: the table that it leaves, and the orders that are read off it."""

import itertools
import math

import pytest
import torch
from torch import nn

import literal
from faithlab import stats
from faithlab.explainers.degrade import degrade
from faithlab.metrics import METRICS, Metric
from faithlab.scores import Scores
from faithlab.stats.samples import gather
from faithlab.task import Task
from faithstudy import claims
from faithstudy.trials import comparisons, degraded

LEVELS, SEEDS, SIZES = [0.0, 0.4, 0.8], [3, 4], (0.2, 0.5, 0.7)
F = 20


class Weighted(nn.Module):
    """The logit of class 0 is a weighted sum: the weighted inputs are the perfect explanation."""

    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.linspace(0.1, 2, F))

    def forward(self, x):
        z = (x * self.weights).sum(1, keepdim=True) / F
        return torch.cat([z, -z], 1)


@pytest.fixture(scope="module")
def task() -> Task:
    x = torch.rand(30, F, generator=torch.Generator().manual_seed(0)) + 0.2
    return Task(
        Weighted().eval(), x, torch.zeros(30, dtype=torch.int64), torch.arange(F), images=torch.arange(100, 130)
    )


@pytest.fixture(scope="module")
def perfect(task) -> dict:
    return {"perfect": (task.x * task.model.weights).detach()}


HONEST = {name: METRICS[name].given(sizes=SIZES, output=METRICS["SaCo"].output) for name in ("Fid+", "Fid-")}
BLIND = {
    f"blind{sign}": Metric(
        lambda score, a, sizes: torch.ones(len(a), len(sizes)),
        source="nobody",
        sizes=SIZES,
        direction=way,
        better=better,
        family="blind",
    )
    for sign, way, better in (("+", "MoRF", 1), ("-", "LeRF", -1))
}


@pytest.fixture(scope="module")
def scores(task, perfect) -> Scores:
    return degraded.degraded(HONEST | BLIND, task, perfect, levels=LEVELS, seeds=SEEDS)


def test_every_metric_level_and_seed_is_there_once(scores):
    assert len(scores.blocks) == 4 * (1 + 2 * 2)
    assert scores.labels("level") == [0.4, 0.8]
    assert scores.labels("variant") == ["shuffled"]
    for block in scores:
        assert block.images.tolist() == list(range(100, 130))
        assert ("noise_seed" in block.labels) == ("level" in block.labels)


def test_rows_are_the_metric_of_the_degraded_explanation(scores, task, perfect):
    noisy = degrade(perfect["perfect"], 0.4, seed=4, images=task.images)
    (block,) = scores.where(metric="Fid-", level=0.4, noise_seed=4)
    torch.testing.assert_close(block.values.double(), HONEST["Fid-"](task, noisy), rtol=1e-5, atol=1e-6)


def test_an_honest_metric_is_ideal_and_a_blind_one_has_no_correlation(scores):
    found = degraded.correlations(scores, HONEST | BLIND, levels=LEVELS, seeds=SEEDS)
    found = found.set_index(["level", "comparison", "metric"])["mean"]
    for level in ("macro_correlation", "micro_correlation"):
        for comparison, ideal in zip(comparisons.COMPARISONS, (-1, 1, -1), strict=True):
            assert found[level, comparison, "Fidelity"] == pytest.approx(ideal)
            assert math.isnan(found[level, comparison, "blind"])
    for comparison in ("MoRF vs GT", "LeRF vs GT"):
        assert found["micro_rank", comparison, "Fidelity"] == 1
        assert math.isnan(found["micro_rank", comparison, "blind"])


def noisy_table(images: int = 9, metrics=("m", "n"), seed: int = 0) -> tuple[Scores, torch.Tensor]:
    """A table of small whole numbers, so that there are ties, and its values [metrics, seeds, levels, images, K]."""
    g = torch.Generator().manual_seed(seed)
    values = torch.randint(0, 4, (len(metrics), len(SEEDS), len(LEVELS), images, len(SIZES)), generator=g).float()
    values[:, 1, 0] = values[:, 0, 0]  # what is not degraded has no seed
    labels = {"dataset": "d", "network": "n", "explainer": "e", "images": range(images), "sizes": SIZES}
    tables = []
    for m, metric in enumerate(metrics):
        for s, noise in enumerate(SEEDS):
            for r, level in enumerate(LEVELS):
                if level or not s:
                    own = {"variant": "shuffled", "level": level, "noise_seed": noise} if level else {}
                    tables.append(Scores.of(values[m, s, r], metric=metric, **labels, **own))
    return Scores.concat(tables), values


def mean_of(numbers: list[float]) -> float:
    known = [n for n in numbers if not math.isnan(n)]
    return sum(known) / len(known) if known else math.nan


def standardised(better: list[float], worse: list[float]) -> float:
    """The mean of paired differences in their standard deviations; 0 where nothing differs."""
    differences = [a - b for a, b in zip(better, worse, strict=True)]
    if not any(differences):
        return 0.0
    mean = sum(differences) / len(differences)
    return mean / math.sqrt(sum((d - mean) ** 2 for d in differences) / len(differences))


@pytest.mark.parametrize("seed", range(4))
def test_orders_are_those_of_the_literal_twin_in_every_resample(seed):
    table, values = noisy_table(seed=seed)
    weights = torch.cat([torch.ones(1, 9), torch.randint(0, 3, (6, 9), generator=torch.Generator().manual_seed(seed))])
    weights[:, 0] += 1
    quality = [3, 2, 1]

    def of(statistic, **labels):
        return gather(table, statistic, [{}], labels)([weights.double()])[0, :, 0].tolist()

    found = {
        "macro": of(stats.found_order(LEVELS, SEEDS, metric="m")),
        "micro": of(stats.found_order(LEVELS, SEEDS, micro=True, metric="m")),
        "same": of(stats.same_order("m", "n", LEVELS, SEEDS)),
        "linear": of(stats.found_order(LEVELS, SEEDS, ranks=False, metric="m")),
        "same linear": of(stats.same_order("m", "n", LEVELS, SEEDS, ranks=False)),
        "same micro": of(stats.same_order("m", "n", LEVELS, SEEDS, micro=True)),
        "step": of(stats.mean_step(LEVELS, SEEDS), metric="m"),
        "step micro": of(stats.mean_step(LEVELS, SEEDS, micro=True, better=-1), metric="n"),
        "rank": of(stats.micro_rank("n", {"m": 1, "n": -1}, LEVELS, SEEDS)),
    }
    for r, own in enumerate(weights):
        images = torch.arange(9).repeat_interleave(own.long())
        curves = values.double()[..., images, :].mean(-2).round(decimals=9)  # [metrics, seeds, levels, K]
        rows = curves.tolist()
        areas = [[[round(literal.area(c, SIZES), 8) for c in seed] for seed in metric] for metric in rows]
        macro = [literal.spearman(seed, quality) for seed in areas[0]]
        assert found["macro"][r] == pytest.approx(mean_of(macro), nan_ok=True, abs=1e-9)
        micro = [[literal.micro_correlations(seed, quality) for seed in metric] for metric in rows]
        assert found["micro"][r] == pytest.approx(
            mean_of([c for seed in micro[0] for c in seed]), nan_ok=True, abs=1e-9
        )
        same = [literal.spearman(a, b) for a, b in zip(*areas, strict=True)]
        assert found["same"][r] == pytest.approx(mean_of(same), nan_ok=True, abs=1e-9)
        linear = [literal.pearson(seed, quality) for seed in areas[0]]
        assert found["linear"][r] == pytest.approx(mean_of(linear), nan_ok=True, abs=1e-6)
        same = [literal.pearson(a, b) for a, b in zip(*areas, strict=True)]
        assert found["same linear"][r] == pytest.approx(mean_of(same), nan_ok=True, abs=1e-6)
        each = [
            literal.spearman([c[k] for c in a], [c[k] for c in b])
            for a, b in zip(*rows, strict=True)
            for k in range(len(SIZES))
        ]
        assert found["same micro"][r] == pytest.approx(mean_of(each), nan_ok=True, abs=1e-9)
        drawn = values.double()[..., images, :]  # [metrics, seeds, levels, images, K]
        own_areas = [[[literal.area(c, SIZES) for c in level] for level in seed] for seed in drawn[0].tolist()]
        steps = [standardised(a, b) for seed in own_areas for a, b in itertools.pairwise(seed)]
        assert found["step"][r] == pytest.approx(sum(steps) / len(steps), abs=1e-6)
        steps = [
            -standardised([c[k] for c in a], [c[k] for c in b])
            for seed in drawn[1].tolist()
            for a, b in itertools.pairwise(seed)
            for k in range(len(SIZES))
        ]
        assert found["step micro"][r] == pytest.approx(sum(steps) / len(steps), abs=1e-6)
        ranks = []
        for s in range(len(SEEDS)):
            for k in range(len(SIZES)):
                both = [micro[0][s][k], -micro[1][s][k]]
                if not math.isnan(both[1]):
                    ranks.append(1 + sum(other > both[1] + 1e-9 for other in both))
        assert found["rank"][r] == pytest.approx(mean_of(ranks), nan_ok=True, abs=1e-9)


def test_an_order_of_each_size_is_a_curve():
    table, values = noisy_table(images=120)
    e = stats.estimate(table, stats.found_order(LEVELS, SEEDS, micro=True, each_size=True, metric="m"))
    rows = values.double().mean(-2)[0].tolist()
    expected = torch.tensor([literal.micro_correlations(seed, [3, 2, 1]) for seed in rows]).nanmean(0)
    torch.testing.assert_close(e.value, expected.double(), equal_nan=True, rtol=0, atol=1e-7)


# The trend, a kind of part


def falling(step: float, images: int = 150, seed: int = 0, better: int = 1) -> Scores:
    g = torch.Generator().manual_seed(seed)
    image = torch.randn(images, generator=g)
    return Scores.concat(
        Scores.of(
            better * (-step * level + image + 0.5 * torch.randn(images, generator=g)),
            images=range(images),
            dataset="d",
            network="n",
            metric="m",
            level=level or None,
        )
        for level in (0.0, 0.5, 1.0)
    )


ORDER = [None, 0.5, 1.0]


@pytest.mark.parametrize(
    ("step", "rises", "expected"), [(1, False, "holds"), (1, True, "fails"), (-1, True, "holds"), (0, False, "open")]
)
def test_a_trend_is_judged_by_its_slope(step, rises, expected):
    table = falling(step)
    part = claims.trend(table, "level", ORDER, rises=rises)
    (judged,) = claims.Claim("c", "here", "It falls.", (part,)).verdict.judged
    assert judged.outcome == expected
    means = [float(stats.estimate(table, level=level)) for level in ORDER]
    # A line through three evenly spaced points falls by what lies between the ends.
    assert part.estimate.value.item() == pytest.approx((means[0] - means[2]) * (-1 if rises else 1))


def test_a_trend_under_chance_is_rarely_reproduced():
    claim = claims.Claim("c", "here", "It falls.", (claims.trend(falling(1), "level", ORDER),))
    assert claims.error_rate(claim).reproduced < 23


def test_a_trend_needs_an_order():
    with pytest.raises(ValueError, match="two or more different values of level"):
        claims.trend(falling(1), "level", [None])


# How often claims about pairs in the right order err


def metric_tables(images: int, ahead: float, seed: int) -> Scores:
    """Two metrics of five levels of noise; one sees the noise `ahead` times as clearly as the other."""
    g = torch.Generator().manual_seed(seed)
    image = torch.randn(images, generator=g)
    rows = []
    for metric, clear in (("m", ahead), ("n", 1.0)):
        for level in (0.0, 0.2, 0.4, 0.6, 0.8):
            value = image[:, None] - 0.25 * clear * level + torch.randn(images, 3, generator=g)
            own = {"level": level, "noise_seed": 0, "variant": "shuffled"} if level else {}
            rows.append(
                Scores.of(
                    value,
                    images=range(images),
                    sizes=SIZES,
                    dataset="d",
                    network="n",
                    explainer="e",
                    metric=metric,
                    **own,
                )
            )
    return Scores.concat(rows)


STEP = stats.mean_step([0.0, 0.2, 0.4, 0.6, 0.8], [0], micro=True)


@pytest.mark.slow
@pytest.mark.parametrize("images", [60, 200])
def test_a_metric_that_is_no_better_is_rarely_said_to_be(images):
    part = claims.better(metric_tables(images, 1.0, 1), {"metric": "m"}, {"metric": "n"}, of=STEP)
    rates = claims.error_rate(claims.Claim("c", "here", "m is better.", (part,)))
    assert rates.reproduced < 23, str(rates)


@pytest.mark.slow
@pytest.mark.parametrize("images", [100, 400])
def test_the_interval_of_a_mean_step_covers_the_population_value(images):
    """Of the difference of two metrics: the truth is that of the law itself, and no number of images moves it."""
    step = 0.25 * 0.2 / math.sqrt(2)  # the noise of two levels is independent, of variance 1 each
    truth, runs = 8 * step - step, 200
    covered = 0
    for run in range(runs):
        e = stats.paired(metric_tables(images, 8.0, run), {"metric": "m"}, {"metric": "n"}, STEP)
        covered += int(float(e.low) <= truth <= float(e.high))
    assert 0.91 * runs <= covered <= 0.985 * runs, covered


def test_a_mean_step_says_when_nothing_and_when_everything_changes():
    def table(change):
        own = {"dataset": "d", "network": "n", "metric": "m", "images": range(4)}
        return Scores.of(torch.ones(4), **own) + Scores.of(torch.ones(4) - change, level=0.5, noise_seed=0, **own)

    of = stats.mean_step([0.0, 0.5])
    assert float(stats.estimate(table(torch.zeros(4)), of)) == 0
    assert math.isnan(float(stats.estimate(table(torch.ones(4)), of))), "without a spread there is no unit"
    assert float(stats.estimate(table(torch.tensor([1.0, 0, 0, 0])), of)) == pytest.approx(0.25 / math.sqrt(3 / 16))
