"""`decide`: its verdicts, its error rate under chance, its power and what it spends; the bounds that it stops at."""

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.stats
import torch
from torch import nn

from faithlab import baselines, rng, stats
from faithlab.decide import UNDECIDED, decide
from faithlab.metrics import METRICS, Metric
from faithlab.outputs import probability
from faithlab.stats import sequential
from faithlab.task import Task


def of_images(score, attribution):
    """An analytic metric: the first number of an image's attribution, whatever the network says."""
    score(torch.ones_like(attribution, dtype=torch.bool)[:, None])
    return attribution[:, 0].double()


METRIC = Metric(of_images, source="this test")


class Nothing(nn.Module):
    """Two logits that do not depend on the input."""

    def forward(self, x):
        return torch.zeros(len(x), 2)


NOTHING = Nothing()


def task(count: int, **given) -> Task:
    return Task(NOTHING, torch.zeros(count, 3), torch.zeros(count, dtype=torch.int64), torch.arange(3), **given)


def scores(values) -> torch.Tensor:
    """Attributions whose metric is `values` [B]."""
    return torch.as_tensor(np.asarray(values), dtype=torch.float64)[:, None].repeat(1, 3)


# The bounds


@pytest.mark.parametrize("images", [[50], [20, 40, 80, 160, 320], sequential.looks(32, 2000, 1.25)])
def test_the_bounds_are_crossed_under_chance_as_often_as_they_should(images):
    rng, runs = np.random.default_rng(0), 20_000
    steps = np.diff(images, prepend=0)
    # Sums of so many normal numbers and the sums of their squares, without making every number.
    means = rng.standard_normal((runs, len(steps))) * steps**-0.5
    within = rng.chisquare(np.maximum(steps - 1, 1), (runs, len(steps))) * (steps > 1)
    total, squares = (means * steps).cumsum(1), (within + means**2 * steps).cumsum(1)
    n = np.array(images)
    error = np.sqrt((squares / n - (total / n) ** 2) / (n - 1))
    crossed = (np.abs(total / n) > error * sequential.bounds(images)).any(1).mean()
    assert abs(crossed - 0.05) < 0.0065  # four standard errors, and Student's quantiles for the joint law


def test_one_look_is_students_interval():
    assert sequential.bounds([30], 0.1) == pytest.approx(scipy.stats.t.ppf(0.95, 29))


def test_two_looks_are_those_of_the_bivariate_normal():
    """With n so large that Student's law is the normal one."""
    n = [40_000, 90_000]
    z = sequential.bounds(n)
    law = scipy.stats.multivariate_normal(cov=[[1, 2 / 3], [2 / 3, 1]])
    inside = law.cdf(z, lower_limit=-z)
    assert inside == pytest.approx(0.95, abs=1e-4)
    assert 2 * scipy.stats.norm.sf(z[0]) == pytest.approx(0.05 * 2 / 3, rel=1e-3)


def test_looks_grow_and_end_at_the_last():
    assert sequential.looks(10, 100, 2.0) == [10, 20, 40, 100]
    assert sequential.looks(10, 10, 1.25) == [10]
    found = sequential.looks(2, 50, 1.01)
    assert found[-1] == 50
    assert (np.diff(found) > 0).all()


def test_a_level_of_one_is_an_error():
    with pytest.raises(ValueError, match="level"):
        sequential.bounds([5], 1.0)


# The rule


def decided_slowly(numbers, looks, level):
    """The rule, word by word: after each look everything is computed anew. [(images, low, high)]."""
    found = []
    for look, bound in zip(looks, sequential.bounds(looks, level), strict=True):
        known = [x for x in numbers[:look] if x == x]
        mean = sum(known) / len(known)
        error = (sum((x - mean) ** 2 for x in known) / (len(known) - 1) / len(known)) ** 0.5
        found.append((len(known), mean - bound * error, mean + bound * error))
        if found[-1][1] > 0 or found[-1][2] < 0:
            return found
    return found


@pytest.mark.parametrize("effect", [-1.0, -0.3, 0.0, 0.2, 0.5])
@pytest.mark.parametrize("level", [0.05, 0.2])
def test_the_rule_is_its_slow_twin(effect, level):
    rng = np.random.default_rng(int(10 * effect) + 20)
    looks = sequential.looks(10, 150, 1.3)
    numbers = rng.normal(effect, 1, 150)
    numbers[rng.random(150) < 0.1] = np.nan
    blocks = np.split(numbers, looks[:-1])
    found = sequential.until_decided(map(torch.from_numpy, blocks), looks, level)
    slowly = decided_slowly(numbers.tolist(), looks, level)
    assert [mean.images for mean in found] == [images for images, _, _ in slowly]
    assert [x for mean in found for x in (mean.low, mean.high)] == pytest.approx([x for s in slowly for x in s[1:]])
    assert [mean.images + mean.missing for mean in found] == looks[: len(found)]
    assert found[-1].decided or len(found) == len(looks)


def test_no_block_is_taken_after_the_decision():
    taken = []

    def blocks():
        for k in range(3):
            taken.append(k)
            yield torch.tensor([1.0, 1.1, 0.9, 1.0])

    (only,) = sequential.until_decided(blocks(), [4, 8, 12])
    assert only.decided
    assert taken == [0]


def test_who_looks_often_decides_too_often_where_nothing_is_to_be_found():
    rng = np.random.default_rng(5)
    differences, looks = torch.from_numpy(rng.normal(size=300)), sequential.looks(30, 300, 1.25)
    often = sequential.false_verdicts(differences, looks, sequential.bounds(looks), 4000, seed=1)
    assert often == pytest.approx(0.05, abs=4 * (0.05 * 0.95 / 4000) ** 0.5)
    plain = [sequential.bounds([n])[0] for n in looks]
    once = sequential.false_verdicts(differences, looks[-1:], plain[-1:], 4000)
    assert once == pytest.approx(0.05, abs=4 * (0.05 * 0.95 / 4000) ** 0.5)
    assert sequential.false_verdicts(differences, looks, plain, 400) > 0.12
    # A slow twin, of eight images and two looks.
    slow = 0
    signs = np.random.default_rng(3).choice([-1.0, 1.0], (50, 8))
    for row in signs * np.arange(1.0, 9.0):
        slow += any(abs(row[:n].mean()) > 2 * row[:n].std(ddof=1) / n**0.5 for n in (4, 8))
    assert sequential.false_verdicts(torch.arange(1.0, 9.0), [4, 8], np.array([2.0, 2.0]), 50, seed=3) == slow / 50


# Error rate and power, on scores as metrics give them


def normal(rng, n):
    return rng.standard_normal(n)


def areas_of_hits(rng, n):
    """Differences of shares of 19 hits; most images do not differ at all."""
    share = rng.beta(0.3, 0.3, n)
    return (rng.binomial(19, share) - rng.binomial(19, share)) / 19 * (rng.random(n) < 0.5)


def skewed(rng, n):
    return rng.exponential(1.0, n) - 1


LAWS = {"normal": normal, "areas of hits": areas_of_hits, "skewed": skewed}
FALSE = {normal: 0.05, areas_of_hits: 0.04, skewed: 0.08}
"""How often a verdict is false, as `decide` says: of 2000 simulations each. Skewed differences cost some percent."""


def simulated(law, effect, most=600, seed=0):
    """Differences of one comparison after another, [most], and how far the explainers truly are apart."""
    rng = np.random.default_rng(seed)
    truth = effect * law(rng, 100_000).std()
    while True:
        yield law(rng, most) + truth, truth


def judged(differences):
    """What `decide` ends with, from the numbers in the order in which it asks for them."""
    looks = sequential.looks(sequential.FIRST, len(differences), 1.5)
    blocks = torch.as_tensor(differences).split(np.diff(looks, prepend=0).tolist())
    return sequential.until_decided(blocks, looks)[-1]


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("effect", [0.0, 0.3])
def test_what_is_simulated_is_what_decide_does(law, effect):
    for differences, _ in itertools.islice(simulated(law, effect), 4):
        nobody = torch.zeros(1, dtype=torch.int64)
        order = rng.permutations(0, nobody, nobody, len(differences)).flatten()
        rule = judged(differences[order])
        zeros = scores(np.zeros_like(differences))
        found = decide(METRIC, task(len(differences)), scores(differences), zeros, growth=1.5)
        assert (found.images, found.value, found.low, found.high) == (rule.images, rule.value, rule.low, rule.high)
        assert found.verdict == ("a" if rule.low > 0 else "b" if rule.high < 0 else UNDECIDED)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_under_chance_a_false_verdict_is_as_rare_as_decide_says(law):
    runs, rate = 1000, FALSE[law]
    false = sum(judged(differences).decided for differences, _ in itertools.islice(simulated(law, 0.0), runs))
    most = scipy.stats.binom.ppf(0.99, runs, rate)
    assert false <= most, false
    # A rule that erred by three more in a hundred would be found more often than not.
    assert scipy.stats.binom.sf(most, runs, rate + 0.03) > 0.5


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_a_difference_is_found_and_its_interval_covers(law):
    runs = [(judged(differences), truth) for differences, truth in itertools.islice(simulated(law, 0.3), 400)]
    assert sum(one.low > 0 for one, _ in runs) >= 390
    assert np.mean([one.images for one, _ in runs]) < 250
    covered = sum(one.low <= truth <= one.high for one, truth in runs)
    assert covered >= (362 if law is not skewed else 348)  # 380 expected, four standard errors


def test_peeking_at_plain_intervals_would_err_more_often():
    """The rule is needed: a 95 % interval after every block errs in far more than 5 % of the cases."""
    rng, looks = np.random.default_rng(0), sequential.looks(32, 600, 1.25)
    x = rng.standard_normal((2000, 600))
    plain = [
        np.abs(scipy.stats.ttest_1samp(x[:, :n], 0, axis=1).statistic) > scipy.stats.t.ppf(0.975, n - 1) for n in looks
    ]
    assert np.mean(np.any(plain, 0)) > 0.15


# What it answers


def test_the_verdict_names_the_more_faithful_one_whichever_way_is_better():
    rng = np.random.default_rng(0)
    high, low = scores(rng.normal(1, 1, 100)), scores(rng.normal(0, 1, 100))
    found = decide(METRIC, task(100), high, low, names=("high", "low"))
    assert (found.verdict, found.low > 0) == ("high", True)
    assert str(found).startswith("high is more faithful: high - low = ")
    turned = decide(METRIC.given(better=-1), task(100), high, low)
    assert (turned.verdict, turned.value) == ("b", -found.value)
    assert decide(METRIC, task(100), high, high).verdict == UNDECIDED


def test_it_stops_at_the_first_interval_that_excludes_zero_and_asks_no_further_image():
    asked = []

    def explainer(model, x, target, images):
        asked.extend(images.tolist())
        return torch.randn(x.shape, generator=torch.Generator().manual_seed(len(asked))) + 5

    images = torch.arange(1000, 1400)
    found = decide(METRIC, task(400, images=images), explainer, scores(np.zeros(400)), first=20)
    assert (found.verdict, found.images, len(found.looks)) == ("a", 20, 1)
    assert len(set(asked)) == 20
    assert set(asked) <= set(images.tolist())
    assert asked != sorted(asked)  # a data set may be sorted by class


def test_every_look_is_the_mean_of_what_was_asked():
    rng = np.random.default_rng(3)
    a, b = rng.normal(0.1, 1, 300), rng.normal(0, 1, 300)
    found = decide(METRIC, task(300), scores(a), scores(b), seed=5)
    again = decide(METRIC, task(300), scores(a), scores(b), seed=5)
    assert found == again
    assert found.looks[-1].images == 300
    assert found.value == pytest.approx((a - b).mean())
    bounds = sequential.bounds([look.images for look in found.looks])
    half = bounds[-1] * (a - b).std(ddof=1) / 300**0.5
    assert (found.high - found.low) / 2 == pytest.approx(half)
    assert list(found.frame().columns) == ["images", "forwards", "value", "low", "high"]


def test_forwards_are_counted_once_for_masks_that_both_ask_about():
    found = decide(METRIC, task(64), scores(np.zeros(64)), scores(np.zeros(64)))
    assert found.forwards == 64  # both ask about the whole input alone
    retrained = task(64, retrained={"a": Nothing(), "b": Nothing()})
    found = decide(METRIC.given(network="retrained"), retrained, scores(np.zeros(64)), scores(np.zeros(64)))
    assert found.forwards == 128


def test_hits_and_a_single_size_decide_as_numbers_do():
    values = np.random.default_rng(0).normal(0, 1, 100)
    given = task(100), scores(values), scores(np.zeros(100))
    hits = decide(Metric(lambda score, a: a[:, 0] > 0.1, source="this test"), *given)
    numbers = decide(Metric(lambda score, a: (a[:, 0] > 0.1).double(), source="this test"), *given)
    assert [(at.images, at.value, at.low) for at in hits.looks] == [
        (at.images, at.value, at.low) for at in numbers.looks
    ]
    sized = Metric(lambda score, a, sizes: a[:, :1].double(), source="this test", sizes=(0.5,))
    assert decide(sized, *given).value == decide(METRIC, *given).value


def test_a_budget_is_kept():
    values = np.random.default_rng(0).normal(0, 1, 500)
    found = decide(METRIC, task(500), scores(values), scores(np.zeros(500)), budget=200)
    assert found.images == 100
    assert found.forwards <= 200


def test_undefined_images_are_left_out_and_counted():
    values = np.random.default_rng(0).normal(0, 1, 100)
    values[::4] = np.nan
    metric = Metric(
        lambda score, attribution: torch.where(attribution[:, 0] > 8, torch.nan, attribution[:, 0]), source="x"
    )
    found = decide(metric, task(100), scores(np.nan_to_num(values, nan=9)), scores(np.zeros(100)))
    assert (found.images, found.missing) == (75, 25)
    assert found.value == pytest.approx(np.nanmean(values))


def test_images_without_spread_leave_it_open():
    found = decide(METRIC, task(50), scores(np.ones(50)), scores(np.zeros(50)))
    assert found.verdict == UNDECIDED
    assert found.low != found.low
    assert found.value == 1


class Additive(nn.Module):
    """The logit of class 1 is a weighted sum of the features."""

    def forward(self, x):
        z = x.flatten(1) @ torch.linspace(0, 1, x[0].numel())
        return torch.stack([-z, z], 1)


@pytest.mark.parametrize("name", ["FFid+", "RFid-", "SaCo", "µFidelity", "LeRF - MoRF"])
def test_a_metric_of_the_registry_is_what_evaluate_measures(name):
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(40, 10, generator=generator)
    own = Task(Additive(), x, torch.ones(40, dtype=torch.int64), torch.arange(10), tuned=Additive())
    own = replace(own, baselines={**baselines.NAMED, "mean": baselines.given(x.flip(0))})
    metric = METRICS[name].given(output=probability)
    metric = metric.given(draws=3) if name in ("FFid+", "RFid-") else metric
    metric = metric.given(draws=20) if name == "µFidelity" else metric
    maps = [x * torch.linspace(0, 1, 10), torch.rand(40, 10, generator=generator)]
    found = decide(metric, own, *maps, first=40)
    values = [metric(own, one) for one in maps]
    values = [one if one.ndim == 1 else stats.auc(one, torch.tensor(metric.sizes)) for one in values]
    assert found.value == pytest.approx(metric.better * float((values[0] - values[1]).double().mean()), abs=1e-6)


BAD = {
    "metric": (lambda: decide("nothing", task(50), scores(np.zeros(50)), scores(np.zeros(50))), KeyError, "nothing"),
    "explainer": (lambda: decide(METRIC, task(50), "nothing", "random"), KeyError, "nothing"),
    "network": (
        lambda: decide("FFid+", task(50), "random", "saliency"),
        ValueError,
        "does not apply: no network that was fine-tuned",
    ),
    "kind": (lambda: decide("ReCo", task(50), "random", "saliency"), ValueError, "does not apply: it needs cross"),
    "statistic": (
        lambda: decide(METRIC.given(statistic=stats.mege), task(50), "random", "saliency"),
        ValueError,
        "summarised by its mean or area",
    ),
    "attribution": (
        lambda: decide(METRIC, task(50), scores(np.zeros(49)), "random"),
        ValueError,
        r"attribution 'a' \(or an explainer\) \(50, 3\), but got \(49, 3\)",
    ),
    "NumPy": (
        lambda: decide(METRIC, task(50), np.zeros((50, 3)), "random"),
        ValueError,
        r"attribution 'a' \(or an explainer\) as a dense tensor .*but got ndarray",
    ),
    "few": (
        lambda: decide(METRIC, task(20), "random", "saliency"),
        ValueError,
        "first look, 32, but 20 are given",
    ),
    "budget": (
        lambda: decide(METRIC, task(50), "random", "saliency", budget=10),
        ValueError,
        "first look, 32, but 5 are given and within the budget",
    ),
    "names": (
        lambda: decide(METRIC, task(50), "random", "saliency", names=("x", "x")),
        ValueError,
        "two different names",
    ),
}


@pytest.mark.parametrize(("ask", "error", "message"), BAD.values(), ids=BAD)
def test_bad_arguments_are_errors(ask, error, message):
    with pytest.raises(error, match=message):
        ask()


def test_explainers_are_named_by_themselves():
    found = decide(METRIC, task(40), ("random", {"seed": 1}), partial(lambda model, x, target, images: x))
    assert found.names == ("random", "b")
