"""How often the rule of verdicts errs, by simulation with fixed seeds."""

import math
from collections import Counter

import pytest
import torch

from faithlab.scores import Scores
from faithlab.stats import Estimate, Interval
from faithstudy import claims
from faithstudy.claims import CONTRADICTED, PARTLY, REPRODUCED
from faithstudy.claims.verdicts import MOSTLY_FAILS, OUTCOMES, REFUTED_IN_PART, p_values, rule, settle

REFUTING = (PARTLY, MOSTLY_FAILS, REFUTED_IN_PART, CONTRADICTED)
"""Verdicts that are false where everything is as claimed."""
GATE = 23
"""Of 300 runs: an error rate of 5 % gives so many or more in 2.5 % of the suites."""


def table(means, *, images=120, networks=2, hits=False, metrics=("SaCo",)) -> Scores:
    """Scores of cells around their means, with an effect of each image."""
    g = torch.Generator().manual_seed(0)
    found = []
    for n in range(networks):
        image = torch.randn(images, generator=torch.Generator().manual_seed(1))
        for metric in metrics:
            for c, mean in enumerate(means):
                score = mean + 0.7 * image + 0.7 * torch.randn(images, generator=g)
                found.append(
                    Scores.of(
                        score > 0 if hits else score,
                        images=range(images),
                        dataset="digits",
                        network=f"net {n}",
                        explainer="abcdefgh"[c],
                        metric=metric,
                    )
                )
    return Scores.concat(found)


def claim(*parts) -> claims.Claim:
    return claims.Claim("x", "Table 1", "x", parts)


KINDS = {
    "above": lambda t: claims.above(t, 0.2, explainer="a"),
    "below": lambda t: claims.below(t, 0.2, explainer="c"),
    "better": lambda t: claims.better(t, {"explainer": "a"}, {"explainer": "b"}),
    "best": lambda t: claims.best(t, "explainer", "a"),
    "in_order": lambda t: claims.in_order(t, "explainer", "abc"),
    "within": lambda t: claims.within(t, {"explainer": "c"}, {"explainer": "b"}, margin=0.6, reason="declared"),
    "no worse": lambda t: claims.no_worse(t, {"explainer": "b"}, {"explainer": "a"}, margin=0.6, reason="declared"),
    "agrees": lambda t: claims.agrees(t, (0.9, 1.1), margin=0.3, reason="declared", explainer="a"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("images", "hits"), [pytest.param(120, False, marks=pytest.mark.slow), (40, True), (40, False)]
)
def test_chance_is_rarely_reproduced(kind, images, hits):
    """Under chance a part is judged true in at most 5 % of the runs, whatever its kind; and false in as many."""
    rates = claims.error_rate(claim(KINDS[kind](table([1.0, 0.5, 0.0], images=images, hits=hits))))
    assert rates.runs == 300
    for verdict in (REPRODUCED, PARTLY, MOSTLY_FAILS, REFUTED_IN_PART):
        assert rates.chance[verdict] < GATE, str(rates)


@pytest.mark.parametrize("kind", KINDS)
def test_simulations_say_together_what_they_say_alone(kind, monkeypatch):
    own = claim(
        KINDS[kind](table([1.0, 0.5, 0.0], images=30)),
        claims.best(table([0.3, 0.0], images=110), "explainer", "a", name="many"),
    )
    together = claims.error_rate(own, 20)
    monkeypatch.setattr("faithstudy.claims.error_rates.NUMBERS", 1)
    monkeypatch.setattr("faithstudy.claims.error_rates.TOGETHER", 1)
    assert claims.error_rate(own, 20) == together


def test_the_simulation_sees_a_rule_that_errs(monkeypatch):
    """The sign of the estimate is no evidence: under chance it agrees with a claim half of the time."""

    def by_sign(estimate, low, high, needed=None):
        claimed = ((estimate.value > low) & (estimate.value < high)).all(0)
        return torch.stack([~claimed, claimed, torch.ones_like(claimed)]).double()

    monkeypatch.setattr("faithstudy.claims.error_rates.p_values", by_sign)
    for kind in ("above", "better", "within"):
        rates = claims.error_rate(claim(KINDS[kind](table([1.0, 0.5, 0.0]))), runs=100)
        assert 30 <= rates.reproduced <= 70, str(rates)


def test_many_parts_together_are_rarely_judged_wrong():
    t = table([1.0, 0.5, 0.0], metrics=("SaCo", "AUC"))
    parts = [claims.in_order(t, "explainer", "abc", metric=m) for m in ("SaCo", "AUC")]
    parts += [claims.above(t, 0.2, explainer="a", metric=m, name=f"{m} is above") for m in ("SaCo", "AUC")]
    rates = claims.error_rate(claim(*parts))
    for verdict in (REPRODUCED, *REFUTING):
        assert rates.chance[verdict] < GATE, str(rates)


def test_a_stable_random_order_is_best_of_k_once_in_k():
    t = table([1.0, 0.5, 0.0, -0.5, -1.0])
    best = claims.error_rate(claim(claims.best(t, "explainer", "a")), 100)
    assert best.stable == pytest.approx(1 / 5, abs=0.12)
    order = claims.error_rate(claim(claims.in_order(t, "explainer", "abcde")), 100)
    assert order.stable == pytest.approx(1 / 120, abs=0.04)
    assert f"stable random order {best.stable:.2f}" in str(best)
    assert claims.error_rate(claim(claims.above(t, 0, explainer="a")), 10).stable is None


def test_power_at_the_printed_effect():
    t = table([1.0, 0.5], images=200, networks=1)
    part = claims.better(t, {"explainer": "a"}, {"explainer": "b"})
    half = float(part.estimate.high[0] - part.estimate.low[0]) / 2
    effect = half / 1.96 * 2.8  # found with a power of 80 %
    rates = claims.error_rate(claim(claims.better(t, {"explainer": "a"}, {"explainer": "b"}, printed=[effect, 0])), 300)
    assert rates.power == pytest.approx(0.8, abs=0.09)
    assert claims.error_rate(claim(part), 10).power is None


def test_counted_facts_are_exempt_and_premises_stay():
    fact = claims.counted("never", [True])
    rates = claims.error_rate(claim(fact))
    assert rates.exempt
    assert rates.reproduced == 0
    t = table([1.0, 0.5])
    failed = claims.premise(claims.above(t, 9.0, explainer="a"))
    assert claims.error_rate(claim(KINDS["better"](t), failed), 20).chance == {"not tested": 20}


def test_the_same_seed_gives_the_same_rates():
    one = claim(KINDS["better"](table([0.1, 0.0])))
    assert claims.error_rate(one, 30) == claims.error_rate(one, 30)


def drawn(truth, runs, g, *, images=1000) -> Estimate:
    """Estimates whose networks have these true values, in units of the standard error of one."""
    each = torch.as_tensor(truth, dtype=torch.float64)[:, None] + torch.randn(len(truth), runs, generator=g)
    value, n = each.mean(0, keepdim=True), len(truth)
    pooled = Interval(value, value - 1.96 / n**0.5, value + 1.96 / n**0.5)
    own = Interval(each[:, None], each[:, None] - 1.96, each[:, None] + 1.96)
    names = tuple(map(str, range(n)))
    return Estimate(pooled, own, pooled, names, ("d",), images, (images,) * n, (0,) * n, 0, value)


def verdict_rates(truths, runs=10_000) -> Counter:
    """How often a claim whose parts have these true values on their networks gets each verdict."""
    g = torch.Generator().manual_seed(0)
    settled = settle([p_values(drawn(truth, runs, g), 0, math.inf) for truth in truths])
    return Counter(
        {v: n / runs for v, n in Counter(rule([OUTCOMES[k] for k in own]) for own in settled.T.tolist()).items()}
    )


TRUE = {
    "one strong, 19 at the bar": [[9.0]] + [[0.0]] * 19,
    "half strong, half at the bar": [[9.0] * 3] * 5 + [[0.0] * 3] * 5,
    "strong in one network, at the bar in two": [[9.0, 0.0, 0.0]] * 20,
    "strong in one network, weak in two": [[9.0, 0.3, 0.3]] * 20,
    "four parts, three at the bar": [[9.0]] + [[0.0]] * 3,
    "one part, at the bar in five networks": [[0.0] * 5],
    "one part": [[0.0]],
}
"""Everything is as claimed, as little as can be."""
NULL = {"20 parts": [[0.0]] * 20, "4 parts, 3 networks": [[0.0] * 3] * 4, "2 parts": [[0.0]] * 2}
"""Nothing is as claimed, and nothing otherwise."""


@pytest.mark.parametrize("truths", TRUE.values(), ids=TRUE)
def test_what_is_true_is_rarely_refuted(truths):
    """All false verdicts together, in at most 5 % of the studies (and the noise of 10 000)."""
    rates = verdict_rates(truths)
    assert sum(rates[verdict] for verdict in REFUTING) < 0.055


@pytest.mark.parametrize("truths", NULL.values(), ids=NULL)
def test_what_is_null_is_rarely_decided(truths):
    rates = verdict_rates(truths)
    assert max(rates[verdict] for verdict in (REPRODUCED, *REFUTING)) < 0.055


@pytest.mark.parametrize("truths", TRUE.values(), ids=TRUE)
def test_what_is_false_is_rarely_called_true_in_part(truths):
    """The same with the other sign: a part that holds by chance would make another verdict of a contradicted claim."""
    rates = verdict_rates([[-value for value in part] for part in truths])
    assert sum(rates[verdict] for verdict in (REPRODUCED, PARTLY, MOSTLY_FAILS)) < 0.055


def test_without_the_correction_it_would_not_be(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "cummax", lambda of, dim: torch.return_types.cummax((of / 20, of)))
    assert verdict_rates(TRUE["one strong, 19 at the bar"], 1000)[PARTLY] > 0.3


@pytest.mark.parametrize("rivals", [2, 7])
def test_one_of_many_contrasts_rarely_fails_by_chance(rivals):
    """The best of K, level with its rivals in every part of a claim."""
    t = table([0.0] * (1 + rivals), metrics=("SaCo", "AUC"))
    rates = claims.error_rate(claim(*(claims.best(t, "explainer", "a", metric=m, name=m) for m in ("SaCo", "AUC"))))
    for verdict in (REPRODUCED, *REFUTING):
        assert rates.chance[verdict] < GATE, str(rates)


def test_a_clear_claim_of_many_parts_is_still_decided():
    assert verdict_rates([[5.0, 5.0, 5.0]] * 20, 1000)[REPRODUCED] > 0.9
    assert verdict_rates([[5.0, 5.0, 5.0]] * 10 + [[-5.0, -5.0, -5.0]] * 10, 1000)[PARTLY] > 0.9
    assert verdict_rates([[5.0, 5.0, 5.0]] * 5 + [[-5.0, -5.0, -5.0]] * 15, 1000)[MOSTLY_FAILS] > 0.9
    assert verdict_rates([[0.0]] * 2 + [[-9.0]] * 2, 1000)[REFUTED_IN_PART] > 0.9
    assert verdict_rates([[-5.0]] * 3, 1000)[CONTRADICTED] > 0.9
