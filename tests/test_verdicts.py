"""Parts hold, fail, depend on the network or are open; the verdict, its sentence and its numbers follow."""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import test_rejudge
from faithlab import stats
from faithlab.scores import Scores
from faithlab.stats import Estimate, Interval
from faithstudy import claims
from faithstudy.claims import verdicts
from faithstudy.claims.verdicts import DEPENDS, FAILS, HOLDS, OPEN, OUTCOMES, p_values, rule, settle


def table(means, *, images=200, noise=1.0, by="explainer", **labels) -> Scores:
    """Scores around a mean [networks, cells]; every network meets the same images."""
    means = torch.as_tensor(means, dtype=torch.float32)
    g = torch.Generator().manual_seed(0)
    shared = torch.randn(images, generator=g)
    of = {"dataset": "digits", "metric": "SaCo", "explainer": "IG"} | labels
    return Scores.concat(
        Scores.of(
            mean + noise * (shared + torch.randn(images, generator=g)),
            images=torch.arange(images),
            **of | {"network": f"net {n}", by: "abcdefgh"[c] if by == "explainer" else c / 10},
        )
        for n, row in enumerate(means)
        for c, mean in enumerate(row)
    )


def known(value, half, each, each_half=None, images=400) -> Estimate:
    """An estimate with these numbers: value and half-width [contrasts], each [networks, contrasts]."""
    value, half, each = (torch.as_tensor(x, dtype=torch.float64) for x in (value, half, each))
    each_half = half.expand_as(each) if each_half is None else torch.as_tensor(each_half, dtype=torch.float64)
    pooled, own = Interval(value, value - half, value + half), Interval(each, each - each_half, each + each_half)
    networks = tuple(f"net {n}" for n in range(len(each)))
    return Estimate(pooled, own, pooled, networks, ("d",), images, (images,) * len(each), (0,) * len(each), 0, value)


INFINITY = math.inf


def outcomes(*estimates, low=0, high=INFINITY) -> list[str]:
    """What becomes of the parts of a claim with these estimates."""
    return [OUTCOMES[k] for k in settle([p_values(estimate, low, high) for estimate in estimates])]


@pytest.mark.parametrize(
    ("estimate", "side", "expected"),
    [
        (known([0.3], [0.1], [[0.2], [0.4]]), (0, INFINITY), HOLDS),
        (known([0.3], [0.1], [[-0.1], [0.7]]), (0, INFINITY), OPEN),  # a network's estimate on the other side,
        (known([0.3], [0.1], [[-0.2], [0.8]]), (0, INFINITY), DEPENDS),  # and its interval, too
        (known([0.0], [0.1], [[-0.2], [0.2]]), (0, INFINITY), DEPENDS),
        (known([0.05], [0.1], [[0.05], [0.05]]), (0, INFINITY), OPEN),
        (known([-0.3], [0.1], [[-0.2], [-0.4]]), (0, INFINITY), FAILS),
        (known([-0.3], [0.1], [[0.05], [-0.65]]), (0, INFINITY), OPEN),
        (known([0.3], [0.1], [[0.3]]), (-INFINITY, 0.5), HOLDS),  # one network
        (known([0.0], [0.1], [[0.1], [-0.1]]), (-0.2, 0.2), HOLDS),  # equal within a margin
        (known([0.0], [0.1], [[0.25], [-0.25]]), (-0.2, 0.2), OPEN),
        (known([0.5], [0.1], [[0.5], [0.5]]), (-0.2, 0.2), FAILS),
        (known([0.0], [0.3], [[0.5], [-0.5]], [[0.1], [0.1]]), (-0.2, 0.2), OPEN),  # both outside: on no claimed side
        (known([0.3, 0.2], [0.1, 0.1], [[0.3, 0.2]]), (0, INFINITY), HOLDS),
        (known([0.3, 0.05], [0.1, 0.1], [[0.3, 0.05]]), (0, INFINITY), OPEN),
        (known([0.3, -0.2], [0.1, 0.1], [[0.3, -0.2]]), (0, INFINITY), FAILS),  # one step that rises is enough
        (known([0.3, -0.2], [0.1, 0.1], [[0.3, 0.1], [0.3, -0.5]]), (0, INFINITY), OPEN),
        (known([math.nan], [0.1], [[math.nan]]), (0, INFINITY), OPEN),
        (known([0.3], [math.nan], [[0.3]]), (0, INFINITY), OPEN),  # no interval, no decision
    ],
)
def test_outcomes(estimate, side, expected):
    assert outcomes(estimate, low=side[0], high=side[1]) == [expected]


def test_one_failing_contrast_of_many_shares_its_tail():
    """At 2.5 % a rival 0.1 above with a half-width of 0.09 would fail the part; among eight it may be chance."""
    one = known([-0.1], [0.09], [[-0.1]])
    eight = known([-0.1] + [0.5] * 7, [0.09] * 8, [[-0.1] + [0.5] * 7])
    assert outcomes(one) == [FAILS]
    assert outcomes(eight) == [OPEN]


def test_a_failure_is_corrected_over_the_parts():
    """Holm: the clearest of k p-values is multiplied by k, the next by k - 1, and so on."""
    clear, near, none = (known([value], [0.1], [[value]]) for value in (-0.9, -0.11, 0.01))
    assert outcomes(near) == [FAILS]
    assert outcomes(near, none) == [OPEN, OPEN], "0.031 times two parts"
    assert outcomes(clear, near, none) == [FAILS, OPEN, OPEN]
    assert outcomes(clear, clear, near) == [FAILS] * 3, "where all are below 2.5 % nothing is corrected"
    assert outcomes(clear, clear, known([-0.12], [0.1], [[-0.12]]), none) == [FAILS, FAILS, FAILS, OPEN]


def test_all_parts_hold_where_each_does():
    near = known([0.105], [0.1], [[0.105]])
    assert outcomes(*[near] * 20) == [HOLDS] * 20
    assert outcomes(*[near] * 20, known([0.0], [0.1], [[0.0]])) == [OPEN] * 21


@pytest.mark.parametrize("scale", [1.0, 1e-3])
@pytest.mark.parametrize(("end", "sure"), [(1e-6, True), (0.0, False), (-1e-6, False)])
def test_a_part_holds_where_its_interval_is_beyond_the_bar(end, sure, scale):
    """A p-value is below 2.5 % exactly where the 95 % interval leaves out the bar."""
    estimate = known([(0.1 + end) * scale], [0.1 * scale], [[(0.1 + end) * scale]])
    assert outcomes(estimate) == [HOLDS if sure else OPEN]


@pytest.mark.parametrize(
    ("outcomes", "premises", "expected"),
    [
        ([HOLDS, HOLDS], [], "reproduced"),
        ([FAILS, FAILS], [], "contradicted"),
        ([HOLDS, FAILS, OPEN], [], "partly"),
        ([HOLDS, FAILS], [], "partly"),
        ([HOLDS, FAILS, FAILS], [], "mostly fails"),
        ([HOLDS, FAILS, FAILS, DEPENDS], [], "partly"),
        ([HOLDS, FAILS, FAILS, FAILS, DEPENDS], [], "mostly fails"),
        ([FAILS, FAILS, DEPENDS], [], "partly"),
        ([DEPENDS], [], "partly"),
        ([DEPENDS, OPEN], [], "partly"),
        ([HOLDS, OPEN], [], "undecided"),
        ([FAILS, OPEN], [], "refuted in part"),
        ([FAILS, FAILS, OPEN], [], "refuted in part"),
        ([], [], "not tested"),
        ([OPEN], [], "undecided"),
        ([HOLDS], [HOLDS], "reproduced"),
        ([FAILS], [HOLDS], "contradicted"),
        ([HOLDS], [HOLDS, FAILS], "not tested"),
        ([HOLDS], [DEPENDS], "not tested"),
        ([HOLDS], [OPEN], "undecided"),
        ([HOLDS], [OPEN, FAILS], "not tested"),
    ],
)
def test_the_rule_of_verdicts(outcomes, premises, expected):
    assert rule(outcomes, premises) == expected


@given(st.lists(st.sampled_from([HOLDS, FAILS, DEPENDS, OPEN]), min_size=1, max_size=6), st.randoms())
def test_the_verdict_does_not_depend_on_the_order_of_the_parts(outcomes, random):
    shuffled = random.sample(outcomes, len(outcomes))
    assert rule(outcomes) == rule(shuffled)


def open_part(means, images=400, noise=1.0):
    """A part above 0 whose networks have exactly these means."""
    t = table([[0.0]] * len(means), images=images, noise=noise)
    blocks = [replace(b, values=b.values - b.values.mean() + m) for b, m in zip(t.blocks, means, strict=True)]
    return claims.above(Scores(blocks), 0.0)


def test_images_that_would_decide():
    """2.04 (half-width / distance)^2 n at 95 % where there is one network."""
    part = open_part([0.06])
    half = float(part.estimate.high - part.estimate.low) / 2
    assert verdicts.images_needed(part) == pytest.approx(2.04 * (half / 0.06) ** 2 * 400, rel=0.15)
    assert verdicts.images_needed(part, parts=3) > 1.2 * verdicts.images_needed(part)
    assert verdicts.images_needed(open_part([0.0])) == math.inf
    assert math.isnan(verdicts.images_needed(open_part([0.1], noise=0.0)))


def test_a_network_without_an_effect_decides_how_many_images_are_needed():
    """Every network's estimate has to lie on the claimed side, not the pooled interval alone."""
    one, three = open_part([0.06]), open_part([0.09, 0.09, 0.0])
    needed = verdicts.images_needed(one)
    assert verdicts.power(three, 8 * needed / 400) < 0.6, "each sign is a coin"
    assert verdicts.images_needed(three) == math.inf


def test_the_audits_case_has_a_power_of_a_quarter():
    """The pooled interval of ff-sg-sq-macro alone asks for 2 242 images, of which a quarter of the studies decide."""
    page = "f-fidelity/images"
    claim = test_rejudge.replayed(page)[0].claims["ff-sg-sq-macro"]
    (judged,) = (j for j in claim.verdict.judged if j.outcome == OPEN)
    at = [verdicts.power(judged.part, n / judged.part.estimate.images) for n in (2242, 5000, 10_000)]
    assert at == pytest.approx([0.25, 0.41, 0.45], abs=0.07)
    assert judged.needed > 50_000


def test_80_percent_power_at_that_number():
    """Drawing as many images as `images_needed` says decides about 80 % of the time, were the estimate the truth."""
    n, truth, g = 400, 0.06, torch.Generator().manual_seed(0)
    part = open_part([truth])
    needed, spread = verdicts.images_needed(part), float(part.table.blocks[0].values.std())
    means = truth + spread * torch.randn(20_000, generator=g) / needed**0.5
    assert (means - 1.96 * spread / needed**0.5 > 0).double().mean().item() == pytest.approx(0.8, abs=0.04)
    assert verdicts.power(part, needed / n) == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (lambda t: claims.above(t, 0.2, explainer="a"), HOLDS),
        (lambda t: claims.above(t, 1.0, explainer="a"), OPEN),
        (lambda t: claims.above(t, 2.0, explainer="a"), FAILS),
        (lambda t: claims.below(t, 2.0, explainer="a"), HOLDS),
        (lambda t: claims.below(t, 0.2, explainer="a"), FAILS),
        (lambda t: claims.better(t, {"explainer": "a"}, {"explainer": "b"}), HOLDS),
        (lambda t: claims.better(t, {"explainer": "a"}, {"explainer": "b"}, less=True), FAILS),
        (lambda t: claims.best(t, "explainer", "a"), HOLDS),
        (lambda t: claims.best(t, "explainer", "b"), FAILS),
        (lambda t: claims.best(t, "explainer", "b", rivals=["c"]), HOLDS),
        (lambda t: claims.best(t, "explainer", "c", less=True), HOLDS),
        (lambda t: claims.in_order(t, "explainer", ["a", "b", "c"]), HOLDS),
        (lambda t: claims.in_order(t, "explainer", ["c", "b", "a"], rises=True), HOLDS),
        (lambda t: claims.in_order(t, "explainer", ["a", "c", "b"]), FAILS),
        (lambda t: claims.within(t, {"explainer": "c"}, margin=0.4, reason="declared"), HOLDS),
        (lambda t: claims.within(t, {"explainer": "a"}, about=1.0, margin=0.4, reason="declared"), HOLDS),
        (lambda t: claims.within(t, {"explainer": "a"}, {"explainer": "c"}, margin=0.4, reason="declared"), FAILS),
        (lambda t: claims.no_worse(t, {"explainer": "a"}, {"explainer": "c"}, margin=0.4, reason="declared"), HOLDS),
        (lambda t: claims.no_worse(t, {"explainer": "c"}, {"explainer": "a"}, margin=0.4, reason="declared"), FAILS),
        (lambda t: claims.agrees(t, (0.9, 1.1), margin=0.3, reason="declared", explainer="a"), HOLDS),
        (lambda t: claims.agrees(t, 0.1, margin=0.3, reason="declared", explainer="a"), FAILS),
        (lambda t: claims.counted("never", [True, True]), HOLDS),
        (lambda t: claims.counted("never", [True, False]), FAILS),
    ],
)
def test_kinds_of_parts(part, expected):
    part = part(table([[1.0, 0.5, 0.0], [1.0, 0.5, 0.0]]))
    assert verdicts.judge([part])[0].outcome == expected


def test_levels_are_in_increasing_order_and_what_is_not_degraded_comes_first():
    degraded = table([[0.8, 0.4, 0.0]], by="level", variant="shuffled")
    original = table([[1.2]])
    original = Scores.of(
        original.blocks[0].values[:, 0],
        images=range(200),
        dataset="digits",
        metric="SaCo",
        explainer="IG",
        network="net 0",
    )
    part = claims.in_order(degraded + original, "level", variant=["shuffled", None])
    assert part.contrasts == ("none - 0.0", "0.0 - 0.1", "0.1 - 0.2")
    assert part.estimate.value.tolist() == pytest.approx([0.4, 0.4, 0.4], abs=0.3)


def test_a_part_may_be_of_any_statistic():
    t = table([[1.0, 0.0], [1.0, 0.0]]) + table([[0.2, 0.0], [0.2, 0.0]], metric="AUC")
    gain = stats.Statistic(lambda x, y: x.mean() - y.mean(), ({"metric": "SaCo"}, {"metric": "AUC"}))
    part = claims.best(t, "explainer", "a", of=gain)
    assert part.estimate.value.item() == pytest.approx(0.8, abs=0.2)


def test_printed_numbers_are_put_to_the_same_sentence():
    t = table([[1.0, 0.5, 0.0]])
    held = claims.best(t, "explainer", "a", printed={"a": 0.9, "b": 0.5, "c": 0.1})
    assert held.printed == pytest.approx((0.4, 0.8))
    assert held.printed_holds is True
    assert claims.in_order(t, "explainer", "abc", printed=[0.9, 0.1, 0.5]).printed_holds is False
    assert claims.best(t, "explainer", "a", printed={"a": 0.9, "b": 0.5}).printed_holds is None
    assert claims.best(t, "explainer", "a").printed_holds is None
    assert claims.above(t, 0.5, explainer="a", printed=0.4).printed_holds is False


CLAIM = "Every explainer scores above 0.5."


def claim(means=((1.0, 1.0, 0.55), (1.0, 1.0, 0.55)), **options) -> claims.Claim:
    t = table(means, **options)
    return claims.Claim(
        "all", "Table 1", CLAIM, [claims.above(t, 0.5, explainer=e, name=e) for e in t.labels("explainer")]
    )


def test_the_sentence_names_counts_networks_data_and_images():
    verdict = claim(noise=0.5).verdict
    assert verdict.outcome == "undecided"
    assert verdict.counts == {HOLDS: 2, OPEN: 1}
    assert verdict.sentence.startswith(
        "2 of 3 parts hold, 1 open, 0 fail. On net 0 and net 1, 200 inputs of digits. Open is 'c': 0.5"
    )
    assert "]; the claim asks for above 0.5. Were the estimates the truth, about " in verdict.sentence
    assert f", about {verdicts._round(verdict.needed)} inputs would decide the claim." in verdict.sentence
    assert str(verdict).splitlines()[0] == f"all (Table 1): {CLAIM}"


def test_the_open_comparison_that_is_least_sure_is_named():
    t = table([[3.0, 2.0, 1.96, 1.94]], noise=1.0)
    printed = {"a": 3.5, "b": 0.5, "c": 0.25, "d": 0.125}
    verdict = claims.Claim("x", "Table 1", "x", [claims.best(t, "explainer", "b", printed=printed)]).verdict
    assert verdict.outcome == "contradicted"  # a is ahead
    assert " Open is" not in verdict.sentence
    rivals = claims.best(t, "explainer", "b", rivals=["c", "d"], printed=printed, name="b is the best")
    sentence = claims.Claim("x", "Table 1", "x", [rivals]).verdict.sentence
    assert " Open is 'b is the best', in 2 of 2 comparisons, the least sure b − c: " in sentence
    assert ", in print 0.25; the claim asks for above 0. " in sentence


def test_missing_scores_and_failing_printed_numbers_are_said():
    t = table([[1.0]], noise=0.2)
    values = t.blocks[0].values[:, 0].clone()
    values[7] = torch.nan
    t = Scores.of(values, images=range(200), **t.blocks[0].labels)
    sentence = claims.Claim("x", "Table 1", "x", [claims.above(t, 0.5, printed=0.1)]).verdict.sentence
    assert "; 1 missing score left out." in sentence
    other = Scores.of(values, images=range(200), **{**t.blocks[0].labels, "metric": "other"})
    values = values.clone()
    values[:3] = torch.nan
    more = Scores.of(values, images=range(200), **{**t.blocks[0].labels, "metric": "more"})
    for both, said in (([t, other], "; 1 missing"), ([t, more], "; up to 4 missing")):
        parts = [claims.above(one, 0.5, name=name) for one, name in zip(both, "ab", strict=True)]
        assert f"{said} score" in claims.Claim("x", "Table 1", "x", parts).verdict.sentence
    assert "The paper's own numbers do not satisfy 1 part: SaCo" not in sentence
    assert "do not satisfy 1 part" in sentence


def test_a_premise_that_fails_leaves_the_claim_untested():
    t = table([[1.0]], noise=0.2)
    parts = [claims.above(t, 0.5), claims.premise(claims.above(t, 2.0, name="the network is right"))]
    verdict = claims.Claim("x", "Table 1", "x", parts).verdict
    assert verdict.outcome == "not tested"
    assert "The one part holds; the premise 'the network is right' fails." in verdict.sentence


def test_what_a_claim_declares_of_itself_stands_in_its_sentence():
    tags = {"follows": "an identity", "blind": "a fixed map."}
    t = table([[1.0], [1.0], [1.0]], noise=0.2)
    verdict = claims.Claim("x", "Table 1", "x", [claims.above(t, 0.5)], **tags).verdict
    assert verdict.outcome == "reproduced"
    assert "It follows by construction: an identity. A control that never queries" in verdict.sentence
    assert {name: verdict.row()[name] for name in tags} == tags
    untested = claims.Claim("x", "Table 1", "x", [claims.above(t, 0.5)], untested="the data are scans").verdict
    assert untested.outcome == "not tested"
    assert "The one part holds" in untested.sentence
    assert untested.sentence.endswith(" Our data do not test it: the data are scans.")


def test_a_finding_of_this_study_is_supported_or_not():
    t = table([[1.0]], noise=0.2)
    bars = {"supported": [0.5], "not supported": [2.0], "partly supported": [0.5, 2.0], "mostly fails": [0.5, 2.0, 3.0]}
    for expected, own in bars.items():
        parts = [claims.above(t, bar, name=f"above {bar}") for bar in own]
        assert claims.Claim("x", "here", "x", parts, own=True).verdict.outcome == expected


@pytest.mark.parametrize(
    ("printed", "margin", "size"),
    [
        (1.0, 0.3, "agrees in size"),
        (1.0, 0.01, "compatible, not precise"),
        (1.0, math.nan, "compatible, not precise"),
        (1.6, 0.3, "differs in size"),
        (math.nan, 0.3, ""),
    ],
)
def test_a_printed_number_is_met_in_size_within_a_margin_alone(printed, margin, size):
    part = claims.above(table([[1.0]], noise=0.5), 0.5, printed=printed, size_margin=margin)
    verdict = claims.Claim("x", "Table 1", "x", [part]).verdict
    assert verdict.outcome == "reproduced"
    assert verdict.frame()["size"].tolist() == [size, ""]
    assert (f" Of 1 printed numbers, 1 {size}." in verdict.sentence) == bool(size)


def test_what_is_declared_to_be_near_a_printed_number_has_its_margin_there():
    part = claims.agrees(table([[1.0]], noise=0.5), (0.9, 1.1), margin=0.3, reason="declared")
    assert claims.Claim("x", "Table 1", "x", [part]).verdict.sizes == {"agrees in size": 1}


@pytest.mark.parametrize(
    ("means", "said"),
    [
        ([1.0, 1.01, 0.99], "yes"),
        ([1.0, 2.5, 0.7], "not known"),
        ([1.0], "not known"),
    ],
)
def test_whether_a_claim_holds_over_other_trainings(means, said):
    """Three trainings: 4.30 standard errors to either side; an interval that holds the bar says nothing."""
    t = table([[mean] for mean in means], noise=0.1)
    verdict = claims.Claim("x", "Table 1", "x", [claims.above(t, 0.5)]).verdict
    assert (verdict.outcome, verdict.generalises) == ("reproduced", said)
    assert f" Over other trainings: {said}." in verdict.sentence
    against = claims.Claim("x", "Table 1", "x", [claims.below(t, 0.5)]).verdict
    assert against.generalises == {"yes": "no"}.get(said, said)
    assert "Over other trainings" not in against.sentence


def test_comparisons_on_the_claimed_side_are_counted_beside_a_failure():
    best = claims.best(table([[1.0, 2.0, 0.0, 0.5]]), "explainer", "a", name="a is best")
    verdict = claims.Claim("x", "Table 1", "x", [best]).verdict
    assert verdict.outcome == "contradicted"
    assert verdict.sentence.startswith("The one part fails; 2 of 3 comparisons are on the claimed side. ")


def test_a_sample_without_spread_is_undecided_unless_counted():
    t = table([[1.0]], noise=0.0)
    constant = claims.Claim("x", "Table 1", "x", [claims.above(t, 0.5)]).verdict
    assert constant.outcome == "undecided"
    assert constant.sentence.endswith("How many inputs would decide it cannot be told.")
    fact = claims.Claim("x", "Table 1", "x", [claims.counted("all above", t.blocks[0].values > 0.5)]).verdict
    assert fact.outcome == "reproduced"
    assert fact.sentence == "The one part holds."


@pytest.mark.parametrize(
    ("interval", "bar", "expected"),
    [
        ((5.1, 6.0), {"at_least": 5}, "reproduced"),
        ((4.0, 4.9), {"at_least": 5}, "contradicted"),
        ((4.0, 6.0), {"at_least": 5}, "undecided"),
        ((1.0, 1.09), {"at_most": 1.1}, "reproduced"),
        ((1.2, 1.3), {"at_most": 1.1}, "contradicted"),
        ((1.0, 1.2), {"at_most": 1.1}, "undecided"),
        ((math.nan, math.nan), {"at_least": 5}, "undecided"),
        ((0.0, math.inf), {"at_least": 5}, "undecided"),
    ],
)
def test_a_ratio_of_wall_times_is_open_while_its_interval_has_both_sides(interval, bar, expected):
    part = claims.timed("x takes so long", interval, **bar, reason="over 5 turns")
    verdict = claims.Claim("x", "this page", "x", [part]).verdict
    assert verdict.outcome == expected
    assert ("is open" in verdict.sentence) == (expected == "undecided")
    assert "inputs" not in verdict.sentence
    assert ("cannot be told" in verdict._repr_markdown_()) == (expected == "undecided")
    assert verdicts.evidence(verdict.frame()) == verdict.sentence
    sure = claims.timed("y", (9, 10), at_least=5, reason="over 5 turns")
    beside = expected if expected != "contradicted" else "partly"
    assert claims.Claim("x", "this page", "x", [part, sure]).verdict.outcome == beside


def test_networks_that_are_compared_are_named_each_with_the_seed_that_they_share():
    rows = [
        Scores.of(torch.rand(40) + k, images=range(40), dataset="d", metric="m", network=name, training_seed=seed)
        for k, name in enumerate(("A", "B"))
        for seed in (0, 1)
    ]
    part = claims.better(Scores.concat(rows), {"network": "B"}, {"network": "A"}, name="B leads")
    said = claims.Claim("x", "this page", "x", [part]).verdict.sentence
    assert "On B (seed 0), A (seed 0), B (seed 1) and A (seed 1)" in said


def test_a_ratio_of_wall_times_needs_a_bar():
    with pytest.raises(ValueError, match="x: expected a bar, but the claimed side is from -inf to inf"):
        claims.timed("x", (1, 2), reason="over 5 turns")


def test_a_verdict_can_be_drawn_from_its_frame():
    verdict = claim(noise=0.5).verdict
    frame = verdict.frame()
    assert frame["network"].tolist() == ["pooled", "net 0", "net 1", "between networks"] * 3
    pooled = frame[frame["network"] == "pooled"].set_index("part")
    part = verdict.claim.parts[2]
    assert pooled.loc["c", ["value", "low", "high"]].tolist() == [float(x) for x in part.estimate.pooled]
    assert pooled.loc["c", "claimed_low"] == 0.5
    assert pooled["outcome"].tolist() == [HOLDS, HOLDS, OPEN]
    assert verdict.row()["verdict"] == "undecided"
    assert verdict._repr_markdown_().startswith(f"**Undecided.** {CLAIM} (Table 1) 2 of 3 parts hold")


@pytest.mark.parametrize(("parts", "folded"), [(verdicts.LINES, False), (verdicts.LINES + 1, True)])
def test_many_numbers_are_folded_and_none_is_lost(parts, folded):
    facts = [claims.counted(f"fact {k}", [True]) for k in range(parts)]
    page = claims.Claim("x", "Table 1", "x", facts).verdict._repr_markdown_()
    assert (":::{dropdown}" in page) == folded
    assert page.count("| 1 of 1 |") == parts
    assert (f"{parts} numbers of {parts} parts" in page) == folded


X, Y = {"explainer": "a"}, {"explainer": "b"}


def two(sample):
    return sample.mean()[..., None].expand(-1, 2)


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda t: claims.within(t, {}, margin=0, reason="x", explainer="a"), "margin above 0 and the reason"),
        (lambda t: claims.no_worse(t, {}, {}, margin=0, reason="x", explainer="a"), "margin above 0 and the reason"),
        (lambda t: claims.within(t, {}, margin=1, reason=" ", explainer="a"), "margin above 0 and the reason"),
        (lambda t: claims.agrees(t, 0.2, margin=-1, reason="x", explainer="a"), "margin above 0 and the reason"),
        (lambda t: claims.best(t, "explainer", "a", rivals=[]), "expected rivals of explainer 'a'"),
        (lambda t: claims.best(t, "explainer", "a", rivals=["a"]), "expected rivals of explainer 'a'"),
        (lambda t: claims.best(t, "explainer", "q"), "no row has explainer 'q'"),
        (lambda t: claims.in_order(t, "explainer", ["a"]), "two or more different values of explainer"),
        (lambda t: claims.in_order(t, "explainer", "abc", printed=[1, 2]), "expected 3 printed numbers"),
        (lambda t: claims.above(t, 0), "several explainers"),
        (lambda t: claims.counted("never", []), "at least one case"),
        (lambda t: claims.counted("always", [math.nan]), "true or false for every case"),
        (lambda t: claims.counted("always", [0.1, 0.2]), "true or false for every case"),
        (lambda t: claims.above(t, -math.inf, explainer="a"), "a number as the bar"),
        (lambda t: claims.above(t, math.nan, explainer="a"), "a number as the bar"),
        (lambda t: claims.below(t, math.inf, explainer="a"), "a number as the bar"),
        (lambda t: claims.within(t, {"explainer": "a"}, margin=math.inf, reason="x"), "a finite margin above 0"),
        (
            lambda t: claims.agrees(t, (0.9, 0.1), margin=1, reason="x", explainer="a"),
            "from its lower to its upper end",
        ),
        (lambda t: claims.within(t, X, Y, about=7.0, margin=1, reason="x"), "compared with 0, not about 7"),
        (lambda t: claims.best(t, "explainer", "a", printed={"A": 1.0}), "numbers are printed of explainer"),
        (lambda t: claims.above(t, 0, of=two, explainer="a"), "a curve or several numbers"),
        (lambda t: claims.Claim("x", "", "", []), "at least one part that is no premise"),
        (lambda t: claims.Claim("x", "", "", [claims.premise(claims.counted("a", [True]))]), "no premise"),
        (lambda t: claims.Claim("x", "", "", [claims.counted("a", [True])] * 2), "a is there twice"),
    ],
)
def test_declarations_that_cannot_be_meant(declare, message):
    with pytest.raises(ValueError, match=message):
        declare(table([[1.0, 0.5, 0.0]]))


def test_a_curve_is_no_part():
    t = Scores.of(torch.rand(10, 2), images=range(10), sizes=[0.1, 0.2], dataset="d", network="n", metric="m")
    with pytest.raises(ValueError, match="choose its `area`"):
        claims.above(t, 0)
    assert claims.above(t, 0, of=stats.area).estimate.value.shape == (1,)


@pytest.mark.parametrize(("networks", "images"), list(product([1, 3], [30, 150])))
def test_the_smallest_tables(networks, images):
    verdict = claim(means=[[1.0, 1.0]] * networks, images=images, noise=0.3).verdict
    assert verdict.outcome == "reproduced"
    between = (verdict.frame()["network"] == "between networks").sum()
    assert between == (2 if networks > 1 else 0)


def test_one_image_decides_nothing():
    assert claim(images=1).verdict.outcome == "undecided"


def test_a_verdict_names_data_and_levels_so_that_they_are_read_as_such():
    verdict = replace(claim(noise=0.5).verdict, worded=lambda text: text.replace("digits", "DIGITS"))
    assert "of DIGITS" in verdict._repr_markdown_()
    assert "of digits" in str(verdict)
    assert verdicts.compared("0.8 - 0.6") == "“0.8” less “0.6”"
    assert verdicts.compared("none - 0.2") == "“none” less “0.2”"
    assert verdicts.compared("FFid+ - ROAR+") == "FFid+ − ROAR+"


def test_of_few_inputs_nobody_tells_how_many_would_decide():
    scores = Scores.of(torch.tensor([1.0, 0.2, 0.9]), images=range(3), dataset="d", network="n", metric="m")
    sentence = claims.Claim("x", "Table 1", "x", [claims.above(scores, 0.5, name="c")]).verdict.sentence
    assert "The one part is open" in sentence
    assert sentence.endswith("Where there are fewest there are 3; fewer than 6 inputs decide nothing.")
    more = Scores.of(torch.tensor([1.0, 0.2, 0.9] * 3), images=range(9), dataset="d", network="n", metric="m")
    sentence = claims.Claim("x", "Table 1", "x", [claims.above(more, 0.5, name="c")]).verdict.sentence
    assert sentence.endswith("How many inputs would decide it cannot be told from so few.")


@pytest.mark.parametrize(("inputs", "outcome"), [(2, "undecided"), (5, "undecided"), (6, "reproduced")])
def test_fewer_than_six_inputs_decide_nothing(inputs, outcome):
    def verdict(**networks):
        scores = Scores.concat(
            Scores.of(1 + torch.arange(float(n)) / 100, images=range(n), dataset="d", network=name, metric="m")
            for name, n in networks.items()
        )
        part = claims.above(scores, 0.5, name="c")
        assert float(part.estimate.low) > 0.9
        return claims.Claim("x", "Table 1", "x", [part]).verdict.outcome

    assert verdict(one=inputs) == outcome
    assert verdict(one=inputs, other=9) == outcome, "of one of its networks too little is known"
    assert 2 / 2 ** (verdicts.LEAST - 1) > 0.05 > 2 / 2**verdicts.LEAST


def test_too_few_inputs_of_a_network_are_named():
    scores = Scores.concat(
        Scores.of(base + torch.arange(float(n)) / 1000, images=range(n), dataset="d", network=name, **about)
        for name, n in {"one": 5, "other": 200}.items()
        for base, about in ((1.0, {"metric": "m"}), (0.0, {"metric": "rival"}), (0.5, {"metric": "second"}))
    )
    best = claims.best(scores, "metric", "m", name="c")
    claim = claims.Claim("x", "Table 1", "x", [best])
    sentence = claim.verdict.sentence
    assert "in 0 of" not in sentence
    assert sentence.endswith("Where there are fewest there are 5; fewer than 6 inputs decide nothing.")
    assert claim.verdict.needed * 5 / 200 == pytest.approx(verdicts.LEAST, rel=0.1), "of the network with fewest, six"


def test_an_open_premise_is_not_counted_among_open_parts():
    t = table([[1.0]], noise=0.2)
    parts = [claims.above(t, 0.5), claims.premise(claims.above(t, 1.0, name="just so"))]
    sentence = claims.Claim("x", "Table 1", "x", parts).verdict.sentence
    assert "the premise 'just so' is open" in sentence
    assert "Open is 'just so'" in sentence, "there is no open part to name"
    parts.append(claims.above(t, 1.0, name="own"))
    sentence = claims.Claim("x", "Table 1", "x", parts).verdict.sentence
    assert "Open is 'own'" in sentence
    assert "2 open parts" not in sentence


def test_of_several_open_parts_as_many_inputs_are_named_as_decide_all():
    t = table(((0.55, 0.52), (0.55, 0.52)), noise=1.0)
    parts = [claims.above(t, 0.5, explainer=e, name=e) for e in t.labels("explainer")]
    verdict = claims.Claim("both", "Table 1", CLAIM, parts).verdict
    assert verdict.counts == {OPEN: 2}
    assert verdict.needed == max(one.needed for one in verdict.judged)
    told = (
        f"about {verdicts._round(verdict.needed)} inputs would decide the claim."
        if verdict.needed < verdicts.FAR_MORE * 200
        else f"not even {verdicts.FAR_MORE} times as many inputs would decide the claim."
    )
    assert verdict.sentence.endswith(f"Were the estimates the truth, {told}")


def test_less_is_better_where_the_metric_is_registered_so():
    """Fid- and LOdds fall where explanations are better (annahedstroem/MetaQuantus#10, Quantus#113)."""
    good, bad = torch.rand(2, 50, generator=torch.Generator().manual_seed(0)) + torch.tensor([[0.0], [0.5]])
    about = {"images": range(50), "dataset": "d", "network": "n"}
    of = {
        m: Scores.concat(Scores.of(v, metric=m, explainer=e, **about) for e, v in (("x", good), ("y", bad)))
        for m in ("LOdds", "AOPC")
    }
    for metric, sign in (("LOdds", 1), ("AOPC", -1)):
        for part in (
            claims.better(of[metric], {"explainer": "x"}, {"explainer": "y"}),
            claims.best(of[metric], "explainer", "x"),
        ):
            assert sign * float(part.estimate.value) > 0.3
    assert float(claims.better(of["LOdds"], {"explainer": "x"}, {"explainer": "y"}, less=False).estimate.value) < -0.3
