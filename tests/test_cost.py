"""The trial of wall times: what is timed, how often, and how many inputs the floor asks about."""

import time

import numpy as np
import pytest
import scipy.stats
import torch
from torch import nn

from faithlab import stats
from faithlab.scores import Scores
from faithstudy.trials import cost
from faithstudy.trials.cost import Ratio


def test_every_piece_of_work_runs_in_turn_after_a_round_that_warms_up():
    done = []
    jobs = {name: lambda name=name: done.append(name) for name in "ab"}
    found = cost.in_turn(jobs, 2)
    assert done == [*"ababab"]
    assert found[["what", "repeat"]].to_numpy().tolist() == [["a", 1], ["b", 1], ["a", 2], ["b", 2]]
    parts = {("a", 1): jobs["a"], ("b", 2): jobs["b"]}
    found = cost.in_turn(parts, 1, ["what", "number"], warm=False)
    assert found.columns.tolist() == ["what", "number", "repeat", "seconds"]
    assert found[["what", "number", "repeat"]].to_numpy().tolist() == [["a", 1, 1], ["b", 2, 1]]
    assert done == [*"abababab"]


def test_seconds_are_those_of_the_work():
    assert cost.seconds(lambda: time.sleep(0.02)) >= 0.02


@pytest.mark.parametrize("count", [1, 4, 9])
def test_the_floor_asks_about_so_many_inputs(count):
    class Counting(nn.Module):
        asked = 0

        def forward(self, x):
            self.asked += len(x)
            return x

    network = Counting()
    cost.forwards(network, torch.zeros(4, 3), count)
    assert network.asked == count


# Ratios of wall times


def test_a_ratio_over_turns_is_students_interval_of_logarithms():
    ratios = [2.0, 2.4, 1.9, 2.2]
    found = Ratio.over_turns(ratios)
    low, high = scipy.stats.ttest_1samp(np.log(ratios), 0).confidence_interval()
    assert (found.value, *found.ends) == pytest.approx((scipy.stats.gmean(ratios), np.exp(low), np.exp(high)))
    assert str(found) == "2.12 [1.80, 2.50]"
    # As one of ten parts it is judged at a quarter of a percent on each side.
    wide = Ratio.over_turns(ratios, 10)
    by = np.log(wide.high / wide.value) / np.log(found.high / found.value)
    assert by == pytest.approx(scipy.stats.t.ppf(0.9975, 3) / scipy.stats.t.ppf(0.975, 3))


def test_one_turn_has_no_interval():
    assert Ratio.over_turns([3.0]).ends == (0, float("inf"))
    assert str(Ratio.over_turns([3.0])) == "3 (no interval)"
    nothing = Ratio.over_turns([3.0]).over(Ratio(2.0, 1.5, 2.5))
    assert (nothing.value, *nothing.ends) == pytest.approx((1.5, 0, float("inf")))


@pytest.mark.parametrize("turns", [4, 8])
def test_the_interval_of_a_quotient_covers_with_both_errors(turns):
    """As cost/f-fidelity makes it: wall times over a few turns, and a factor that is known from many images."""
    rng, runs, truth = np.random.default_rng(0), 2000, np.log(100 / 1.4)
    covered = alone = 0
    for _ in range(runs):
        asked = Ratio.over_turns(np.exp(rng.normal(np.log(100), 0.1, turns)))
        error, seen = 0.08, rng.normal(np.log(1.4), 0.08)
        factor = Ratio(*np.exp([seen, seen - 1.96 * error, seen + 1.96 * error]))
        both = asked.over(factor)
        covered += np.log(both.low) <= truth <= np.log(both.high)
        taken_as_known = asked.over(Ratio(*[factor.value] * 3))
        alone += np.log(taken_as_known.low) <= truth <= np.log(taken_as_known.high)
    assert 0.935 <= covered / runs <= 0.985
    assert alone / runs < 0.9  # without the factor's error it would not


def test_an_estimate_is_a_ratio_that_is_not_negative():
    values = torch.tensor([[0.1], [2.0], [0.2], [0.1]], dtype=torch.float64)
    labels = {"dataset": "d", "network": "n", "training_seed": 0, "metric": "m", "explainer": "e"}
    found = Ratio.of(stats.estimate(Scores.of(values[:, 0], images=torch.arange(4), **labels)))
    assert found.low == 0 < found.value < found.high
    alike = Ratio.of(stats.estimate(Scores.of(values[:1, 0].repeat(4), images=torch.arange(4), **labels)))
    assert alike.ends == (0, float("inf"))


@pytest.mark.parametrize(
    ("found", "possible", "expected"),
    [
        (Ratio(6, 5.2, 7), Ratio(9, 8, 10), cost.REACHED),
        (Ratio(3, 2.8, 3.2), Ratio(4, 3.8, 4.5), cost.OUT_OF_REACH),
        (Ratio(4, 3, 6), Ratio(4.5, 4.2, 4.9), cost.OUT_OF_REACH),
        (Ratio(3, 2.8, 3.2), Ratio(9, 8, 10), cost.LOST),
        (Ratio(3, 2.8, 3.2), Ratio(6, 4, 9), cost.MISSED),
        (Ratio(5, 4, 6), Ratio(9, 8, 10), cost.OPEN),
        (Ratio(5), Ratio(9), cost.OPEN),
    ],
)
def test_an_aim_is_reached_out_of_reach_lost_missed_or_open(found, possible, expected):
    assert cost.against(5, found, possible) == expected


def test_images_for_fewer_draws_is_the_ratio_of_the_true_variances():
    """Areas with known variances between and within images, of one explainer and of a difference."""
    generator = torch.Generator().manual_seed(0)
    images, draws = 4000, 4

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    between, shared, own = normal(2, images, 1), 2 * normal(draws, images, 1), normal(draws, images, 1)
    labels = {"images": torch.arange(images), "sizes": (0.2, 0.4, 0.6)}
    labels |= {"dataset": "d", "network": "n", "training_seed": 0, "metric": "m"}
    table = Scores.concat(
        Scores.of(of.expand(-1, 3), explainer=e, draw=draw, **labels)
        for draw in range(draws)
        for e, of in (("a", between[0] + shared[draw]), ("b", between[1] + shared[draw] + own[draw]))
    )
    each = [{"draw": draw} for draw in range(draws)]
    found = stats.estimate(table, cost.images_for_fewer_draws(each, 50), explainer="a")
    assert float(found) == pytest.approx((1 + 4) / (1 + 4 / 50), rel=0.1)
    assert float(found.low) < float(found) < float(found.high) < 1.1 * float(found)
    pairs = [{"explainer": e} | draw for e in "ab" for draw in each]
    found = stats.estimate(table, cost.images_for_fewer_draws(pairs, 50, 2))
    assert float(found) == pytest.approx((2 + 1) / (2 + 1 / 50), rel=0.05)  # what they share cancels
    share = stats.estimate(table, cost.share_of_forwards(draws, 50, "ab"))
    assert float(share) == pytest.approx(float(found) / 50)
    share = stats.estimate(table, cost.share_of_forwards(draws, 50), explainer="a")
    assert float(share) == pytest.approx((1 + 4) / (1 + 4 / 50) / 50, rel=0.1)


def test_times_fewer_forwards_is_the_price_times_the_ratio_of_the_variances():
    values = torch.randn(2, 200, generator=torch.Generator().manual_seed(2), dtype=torch.float64) * torch.tensor(
        [[2], [3]]
    )
    labels = {"images": torch.arange(200), "dataset": "d", "network": "n", "metric": "m"}
    table = Scores.concat(Scores.of(of + 7, variant=v, **labels) for v, of in zip("ab", values, strict=True))
    found = stats.estimate(table, cost.times_fewer_forwards({"variant": "a"}, {"variant": "b"}, 6))
    assert float(found) == pytest.approx(6 * float(values[0].var() / values[1].var()))
    assert float(found.low) < 6 * 4 / 9 < float(found.high)


@pytest.mark.parametrize("within", [0.05, 0.5, 4.0])
def test_the_interval_of_images_for_fewer_draws_covers(within):
    """Two claims of the page on forwards stand on it. Areas vary by 1 between images and by `within` in one."""
    images, draws, runs, published = 200, 4, 150, 50
    truth = (1 + within) / (1 + within / published)
    generator = torch.Generator().manual_seed(1)
    statistic = cost.images_for_fewer_draws([{"draw": draw} for draw in range(draws)], published)
    labels = {"images": torch.arange(images), "sizes": (0.2, 0.6)}
    labels |= {"dataset": "d", "network": "n", "training_seed": 0, "metric": "m", "explainer": "a"}
    held = 0
    for _ in range(runs):
        drawn = torch.randn(draws + 1, images, 1, generator=generator, dtype=torch.float64)
        areas = drawn[0] + within**0.5 * drawn[1:]
        table = Scores.concat(Scores.of(of.expand(-1, 2), draw=d, **labels) for d, of in enumerate(areas))
        found = stats.estimate(table, statistic)
        held += float(found.low) <= truth <= float(found.high)
    assert held / runs >= 0.95 - 4 * (0.95 * 0.05 / runs) ** 0.5
    assert held < runs  # an interval that is always right says nothing


SIZES = torch.tensor([0.1, 0.2, 0.4, 0.7, 0.9], dtype=torch.float64)
WEIGHTS = stats.auc(torch.eye(5, dtype=torch.float64), SIZES)


def test_components_are_those_that_the_answers_are_made_of():
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    draws, images, count = 3, 20_000, len(SIZES)
    curve = torch.tensor([0.0, 1.0, 2.0, 1.0, 0.0], dtype=torch.float64)  # the same for all images
    answers = curve + normal(images, 1) + 0.5 * normal(draws, images, count)
    found = cost.components(answers, WEIGHTS)
    area = float(curve @ WEIGHTS)
    assert found["images"] == pytest.approx(1, rel=0.05)
    assert found["subsets"] == pytest.approx(0.25, rel=0.05)
    assert found["sizes"] == pytest.approx(float((curve - area) ** 2 @ WEIGHTS), rel=0.05)
    assert found["area, between draws"] == pytest.approx(0.25 * float((WEIGHTS**2).sum()), rel=0.05)
