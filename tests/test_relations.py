"""Whether metrics rank images and explainers alike, and parts that ask for some or most."""

import itertools

import numpy as np
import pytest
import scipy.stats
import torch

from faithlab import stats
from faithlab.scores import Scores
from faithlab.stats.intervals import weights
from faithlab.stats.samples import gather
from faithstudy import claims

BETTER = {"SaCo": 1, "AUC": -1, "AOPC": 1}
PAIRS = list(itertools.combinations(BETTER, 2))
EXPLAINERS = ["IG", "LRP", "Rollout", "ATTCAT"]


def table(value, *, images=30, networks=("a",)) -> Scores:
    """Scores of every network, explainer, metric and image by a function of them."""
    return Scores.concat(
        Scores.of(
            torch.tensor([float(value(n, e, m, i)) for i in range(images)]),
            images=range(images),
            dataset="digits",
            network=n,
            explainer=e,
            metric=m,
        )
        for n in networks
        for e in EXPLAINERS
        for m in BETTER
    )


@pytest.fixture(scope="module")
def noise():
    numbers = torch.randn(2, 4, 3, 30, generator=torch.Generator().manual_seed(0))
    return lambda n, e, m, i: numbers["ab".index(n), EXPLAINERS.index(e), list(BETTER).index(m), i]


def test_metrics_that_say_the_same_rank_alike_whatever_their_direction():
    same = table(lambda n, e, m, i: BETTER[m] * (i + 100 * EXPLAINERS.index(e)))
    for reading in (stats.images_ranked, stats.explainers_ranked):
        assert float(stats.estimate(same, reading(PAIRS, EXPLAINERS, BETTER))) == pytest.approx(1)


@pytest.mark.parametrize("absolute", [False, True])
def test_images_are_ranked_as_scipy_does(noise, absolute):
    scores = table(noise, networks=("a", "b"))
    found = stats.estimate(scores, stats.images_ranked(PAIRS, EXPLAINERS, BETTER, absolute=absolute))
    for network, value in zip("ab", found.each.value, strict=True):
        rho = [
            BETTER[one]
            * BETTER[other]
            * scipy.stats.spearmanr(*([noise(network, e, m, i) for i in range(30)] for m in (one, other))).statistic
            for one, other in PAIRS
            for e in EXPLAINERS
        ]
        assert float(value) == pytest.approx(np.mean(np.abs(rho) if absolute else rho))


def test_explainers_are_ranked_as_scipy_does(noise):
    found = stats.estimate(table(noise), stats.explainers_ranked(PAIRS, EXPLAINERS, BETTER))
    rho = [
        BETTER[one]
        * BETTER[other]
        * scipy.stats.spearmanr(*([noise("a", e, m, i) for e in EXPLAINERS] for m in (one, other))).statistic
        for one, other in PAIRS
        for i in range(30)
    ]
    assert float(found) == pytest.approx(np.mean(rho))


@pytest.mark.parametrize("reading", [stats.images_ranked, stats.explainers_ranked])
def test_a_resample_is_the_table_with_its_images_repeated(noise, reading):
    of = reading(PAIRS, EXPLAINERS, BETTER)
    picks = torch.randint(30, (30,), generator=torch.Generator().manual_seed(1))
    gathered = gather(table(noise), of, [{}], {})
    drawn = gathered(weights(gathered, picks=[picks]))[0, 0, 0]
    again = table(lambda n, e, m, i: noise(n, e, m, int(picks[i])))
    assert float(drawn) == pytest.approx(float(stats.estimate(again, of)))


def test_correlations_that_do_not_exist_are_left_out(noise):
    flat = table(lambda n, e, m, i: 0.5 if (m, e) == ("AUC", "LRP") else noise(n, e, m, i))
    without = [e for e in EXPLAINERS if e != "LRP"]
    pair = [("SaCo", "AUC")]
    with_it, alone = (stats.estimate(flat, stats.images_ranked(pair, of, BETTER)) for of in (EXPLAINERS, without))
    assert float(with_it) == pytest.approx(float(alone))
    constant = table(lambda n, e, m, i: 0.5 if m == "AUC" else noise(n, e, m, i))
    assert torch.isnan(stats.estimate(constant, stats.explainers_ranked(pair, EXPLAINERS, BETTER)).value)


def test_a_difference_is_of_the_same_images(noise):
    scores = table(noise)
    one, other = (stats.images_ranked([pair], EXPLAINERS, BETTER) for pair in PAIRS[:2])
    found = stats.estimate(scores, stats.difference(one, other))
    assert float(found) == pytest.approx(float(stats.estimate(scores, one)) - float(stats.estimate(scores, other)))
    none = stats.estimate(scores, stats.difference(one, one))
    assert float(none) == 0
    assert torch.isnan(none.low)  # nothing varies


LEVEL = {"IG": 1.0, "LRP": 2.0, "Rollout": 0.0, "ATTCAT": 0.0}


@pytest.fixture(scope="module")
def levels() -> Scores:
    return table(lambda n, e, m, i: LEVEL[e] + (i % 3) / 10 + EXPLAINERS.index(e) * (i % 5) / 50)


def against(scores, one) -> list[claims.Part]:
    """That an explainer is better than each of the others."""
    return [
        claims.better(scores, {"explainer": one}, {"explainer": e}, metric="SaCo", printed=[LEVEL[one], LEVEL[e]])
        for e in EXPLAINERS
        if e != one
    ]


@pytest.mark.parametrize(
    ("one", "some", "most"),
    [
        ("LRP", "reproduced", "reproduced"),
        ("IG", "reproduced", "reproduced"),
        ("Rollout", "contradicted", "contradicted"),
    ],
)
def test_some_takes_one_clear_case_and_most_takes_more_than_half(levels, one, some, most):
    for joined, expected in ((claims.some, some), (claims.most, most)):
        part = joined(against(levels, one), "joined")
        assert claims.Claim("x", "Table 1", "x", [part]).verdict.outcome == expected
        assert part.printed_holds == (expected == "reproduced")
        assert part.on(levels).needed == part.needed


def test_one_of_three_is_some_and_not_most(levels):
    parts = [
        claims.better(levels, {"explainer": "IG"}, {"explainer": e}, metric="SaCo") for e in ("LRP", "Rollout")
    ] + [claims.better(levels, {"explainer": "ATTCAT"}, {"explainer": "LRP"}, metric="SaCo")]
    assert claims.Claim("x", "", "x", [claims.some(parts, "some")]).verdict.outcome == claims.REPRODUCED
    assert claims.Claim("x", "", "x", [claims.most(parts, "most")]).verdict.outcome == claims.CONTRADICTED
    joined = claims.most(parts, "most")
    assert joined.contrasts == ("IG - LRP", "IG - Rollout", "ATTCAT - LRP")
    for k, part in enumerate(parts):
        assert float(joined.estimate.value[k]) == pytest.approx(float(part.estimate.value[0]))


def test_parts_that_do_not_fit_are_not_joined(levels):
    one, other = (claims.above(levels, bar, explainer="IG", metric="SaCo") for bar in (0, 1))
    with pytest.raises(ValueError, match="of another kind, table, statistic or bar"):
        claims.some([one, other], "some")
    with pytest.raises(ValueError, match="expected parts with one contrast each, but got 0 parts"):
        claims.most([], "most")


# How often the claims of the pages would be wrong


def simulated(*, images=60) -> Scores:
    """Five metrics of five explainers and Random, with an effect of each image; "SaCo" differs by explainer."""
    g = torch.Generator().manual_seed(0)
    image = torch.randn(images, generator=g)
    found = []
    for m, metric in enumerate(("SaCo", "AUC", "AOPC", "LOdds", "Comp.")):
        for e, explainer in enumerate(("IG", "LRP", "Rollout", "ATTCAT", "MM", "Random")):
            score = 0.1 * (5 - e) * (metric == "SaCo") + 0.2 * m * image + torch.randn(images, generator=g)
            found.append(
                Scores.of(score, images=range(images), dataset="d", network="n", explainer=explainer, metric=metric)
            )
    return Scores.concat(found)


NAMES = ["IG", "LRP", "Rollout", "ATTCAT", "MM"]
OTHERS = ["AUC", "AOPC", "LOdds", "Comp."]
HIGHER = dict.fromkeys(["SaCo", *OTHERS], 1)
OURS, THEIRS = (
    stats.images_ranked([p for p in itertools.combinations(HIGHER, 2) if ("SaCo" in p) == with_it], NAMES, HIGHER)
    for with_it in (True, False)
)
RANDOM = {"explainer": "Random"}
DECLARED = {
    "saco-weak": lambda scores: [  # of one metric: that all four agree is rare under chance by any rule
        claims.agrees(
            scores,
            (0.18, 0.22),
            margin=0.1,
            reason="declared",
            name="about 0.2",
            of=stats.images_ranked([("SaCo", OTHERS[0])], NAMES, HIGHER),
        )
    ],
    "saco-others-agree": lambda scores: [
        claims.agrees(scores, 0.48, margin=0.1, reason="declared", of=THEIRS, name="about 0.48"),
        claims.above(scores, 0.1, of=stats.difference(THEIRS, OURS), name="more than SaCo"),
    ],
    "saco-random-zero": lambda scores: [claims.within(scores, RANDOM, metric="SaCo", margin=0.1, reason="declared")],
    "saco-tells": lambda scores: [
        claims.most([claims.better(scores, {"explainer": name}, RANDOM, metric="SaCo") for name in NAMES], "most")
    ],
    "saco-random-real": lambda scores: [
        claims.some([claims.better(scores, RANDOM, {"explainer": name}, metric=m) for name in NAMES], m) for m in OTHERS
    ],
}
"""The shapes of the claims of the SaCo pages: scores -> their parts."""


@pytest.mark.slow
@pytest.mark.parametrize("claim", DECLARED)
def test_chance_rarely_reproduces_the_claims(claim):
    """5 % of 50 runs; 7 or more would come of it in 1 % of such claims."""
    made = claims.Claim(claim, "Figure 2", "x", DECLARED[claim](simulated()))
    assert claims.error_rate(made, 50).reproduced < 7
