"""The examination: controls whose place is known, slow twins of every T, and what is said of bad files."""

import itertools

import pandas as pd
import pytest
import torch

from faithlab import masks, metrics, rng, stats
from faithlab.explainers import explain
from faithlab.metrics import METRICS, Metric
from faithlab.metrics.answers import ask
from faithlab.scores import Scores
from faithlab.task import Task
from faithstudy.trials import (
    adversarial,
    chance,
    checks,
    concordance,
    examination,
    own_model,
    prices,
    readings,
    retest,
    truth,
)
from faithstudy.trials.adversarial import SEARCHED
from faithstudy.trials.concordance import SIZES
from faithstudy.trials.noise_order import SHUFFLED
from faithstudy.trials.own_model import RANDOMISED
from faithstudy.trials.truth import ORACLE

IMAGES, FEATURES = 60, 24
WHO = {"dataset": "given", "network": "sum"}


def whole(low: int, high: int, *shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed)).float()


WEIGHTS = whole(1, 9, IMAGES, FEATURES, seed=1) / 8


class Sum(torch.nn.Module):
    """Two logits, the second of which is the sum of the pixels that are there."""

    def forward(self, x):
        return torch.stack([torch.zeros(len(x)), x.flatten(1).sum(1) - 4], 1)


@pytest.fixture(scope="module")
def task():
    shape = (IMAGES, 1, 4, 6)
    target = torch.ones(IMAGES, dtype=torch.int64)
    return Task(Sum(), WEIGHTS.view(shape), target, torch.arange(FEATURES).view(4, 6), **WHO)


def found(scores, metrics, why=None):
    return examination.trust(scores, metrics, why or {}).set_index(["trial", "metric", "size"]).sort_index()


# Controls: what they score is known before anything is asked


def controls() -> dict[str, Metric]:
    generator = torch.Generator().manual_seed(1)
    saco = METRICS["SaCo"].compute

    def noise(score, attribution):
        return torch.rand(len(attribution), generator=generator)

    def whole_input(score, attribution):
        return ask(score, torch.ones_like(attribution, dtype=torch.bool)[:, None])[:, 0]

    def negated(score, attribution):
        return -saco(score, attribution)

    asks = {"noise": noise, "of the input alone": whole_input, "SaCo": saco, "negated": negated}
    return {name: Metric(function, source="a control", exact=True) for name, function in asks.items()}


@pytest.fixture(scope="module")
def controlled(task):
    metrics = controls()
    of = {"truth": WEIGHTS, "nearly": WEIGHTS + whole(0, 3, IMAGES, FEATURES, seed=2) / 8}
    elsewhere = {
        name: rng.uniform(7 + k, torch.arange(IMAGES), torch.arange(1), FEATURES)[:, 0] for k, name in enumerate(of)
    }
    table = examination.directly(metrics, task, of, elsewhere, seeds=[0, 1])
    known, regions = truth.closed_form(IMAGES)
    table += examination.oracles(metrics, known, regions, seeds=[0, 1])
    return found(table, metrics)


CONTROLLED = ("Order", "Chance", "Truth", "Own model")


@pytest.mark.parametrize("trial", CONTROLLED)
@pytest.mark.parametrize("size", SIZES)
def test_noise_scores_at_chance_within_its_interval(controlled, trial, size):
    row = controlled.loc[(trial, "noise", size)]
    assert row["low"] <= 0 <= row["high"]
    assert row["verdict"] != concordance.PASSED


@pytest.mark.parametrize("trial", CONTROLLED)
@pytest.mark.parametrize("size", SIZES)
def test_the_negated_metric_is_mirrored(controlled, trial, size):
    one, other = (controlled.loc[(trial, name, size)] for name in ("SaCo", "negated"))
    assert one["T"] == pytest.approx(-other["T"])
    assert (one["low"], one["high"]) == pytest.approx((-other["high"], -other["low"]))
    assert other["verdict"] == concordance.FAILED


@pytest.mark.parametrize("trial", CONTROLLED)
@pytest.mark.parametrize("size", SIZES)
def test_a_metric_that_ignores_the_attribution_is_found_out(controlled, trial, size):
    row = controlled.loc[(trial, "of the input alone", size)]
    assert row["T"] == 0
    assert row["verdict"] == concordance.FAILED


def test_a_good_metric_passes_where_all_that_is_asked_is_easy(controlled):
    for trial in ("Chance", "Truth", "Own model"):
        assert controlled.loc[(trial, "SaCo", "all images"), "verdict"] == concordance.PASSED, trial


def test_a_partial_oracle_knows_its_share_and_the_larger_holds_the_smaller():
    _, regions = truth.closed_form(8, decide=16)
    tops = {}
    for share in (0.0, 0.25, 0.5, 1.0):
        ranks = truth.partial_oracle(regions, share, torch.arange(8), seed=3)
        assert (ranks.sort(1).values == torch.arange(1, 65)).all()
        top = tops[share] = ranks > 48
        assert (top & regions).sum(1).tolist() == [round(16 * share)] * 8
    assert not (tops[0.25] & regions & ~tops[0.5]).any()


def test_a_random_order_of_the_same_seed_does_not_know_the_closed_form():
    known, regions = truth.closed_form(256, seed=0)
    orders = {
        "random": explain("random", known.model, known.x, known.target, known.segments, seed=0),
        "knows none": truth.partial_oracle(torch.zeros_like(regions), 0.0, known.images, seed=0),
    }
    for name, order in orders.items():
        first = masks.place(masks.order(order.flatten(1))) < 16
        share = (first & regions).sum() / regions.sum()  # 1/4 by chance, with a deviation of 0.006
        assert abs(float(share) - 0.25) < 0.03, name


def test_the_closed_form_is_what_it_says():
    known, regions = truth.closed_form(32)
    assert known.x.flatten(1).sum(1).tolist() == [0] * 32, "a mean of zero, so that both references say the same"
    assert ((known.x.flatten(1) != 0) == regions).all()
    assert (known.model(known.x).argmax(1) == 1).all()
    removed = torch.where(regions.view(32, 1, 8, 8), 0, known.x)
    assert (known.model(removed).argmax(1) == 0).all()
    undecided = known.baselines["perturbed"](known.x)
    assert (known.model(undecided) == 0).all()
    with pytest.raises(ValueError, match="even number of deciding elements"):
        truth.closed_form(decide=3)


# Slow twins, on scores that are whole numbers


def sign(a: float, b: float) -> int:
    return 0 if a != a or b != b else (a > b) - (a < b)


def both(kernel, rows: torch.Tensor) -> list[float]:
    """T of the means and the mean T of single images, of scores [images, cells]."""
    means = [sum(column) / len(column) for column in rows.T.tolist()]
    return [kernel(means), sum(kernel(row) for row in rows.tolist()) / len(rows)]


def measured(cells, *, metric="m", seed=0, images=30, values=None) -> tuple[Scores, torch.Tensor]:
    rows = whole(0, 4, images, len(cells), seed=seed) if values is None else values
    labels = {"metric": metric, "reference": "zero", **WHO}
    made = [Scores.of(column, images=range(images), **{**labels, **c}) for column, c in zip(rows.T, cells, strict=True)]
    return Scores.concat(made), rows


LESS = {"m": Metric(lambda score, attribution: attribution.sum(1), source="a twin", better=-1)}
BASE = [{"explainer": e} for e in "abc"]


def judged(cells, trial, seed=0):
    """What `trust` says, and the scores [images, cells] turned so that higher is better."""
    table, rows = measured(cells, seed=seed)
    assert rows.unique().numel() < rows.numel(), "with ties"
    return found(table, LESS).loc[trial, "m"]["T"].tolist(), -rows


def test_order_is_the_share_of_adjacent_pairs():
    noisy = [
        {"explainer": e, "variant": SHUFFLED, "level": r, "noise_seed": s}
        for e in "abc"
        for s in (0, 1)
        for r in (0.5, 1)
    ]
    ts, rows = judged([*BASE, *noisy], "Order")

    def kernel(row):
        of = dict(zip([*"abc", *((c["explainer"], c["noise_seed"], c["level"]) for c in noisy)], row, strict=True))
        steps = []
        for e in "abc":
            for s in (0, 1):
                line = [of[e], of[e, s, 0.5], of[e, s, 1]]
                steps += [sign(x, y) for x, y in itertools.pairwise(line)]
        return sum(steps) / len(steps)

    assert ts == pytest.approx(both(kernel, rows))


def test_chance_and_own_model_compare_each_explanation_with_another():
    others = [{"explainer": chance.RANDOM, "noise_seed": s} for s in (0, 1)]
    ts, rows = judged([*BASE, *others], "Chance", seed=3)
    assert ts == pytest.approx(both(lambda r: sum(sign(x, y) for x in r[:3] for y in r[3:]) / 6, rows))
    ts, rows = judged([*BASE, *({**b, "variant": RANDOMISED} for b in BASE)], "Own model", seed=4)
    assert ts == pytest.approx(both(lambda r: sum(sign(x, y) for x, y in zip(r[:3], r[3:], strict=True)) / 3, rows))


def test_truth_is_the_order_of_oracles():
    oracle = [{"explainer": "oracle", "variant": ORACLE, "level": q, "noise_seed": 0} for q in (1.0, 0.5, 0.25)]
    ts, rows = judged(oracle, "Truth", seed=5)
    assert ts == pytest.approx(both(lambda r: (sign(r[0], r[1]) + sign(r[1], r[2])) / 2, rows))


def test_stand_in_is_whether_references_rank_pairs_of_explainers_alike():
    cells = [{**b, "reference": r} for r in ("zero", "mean", "blur") for b in BASE]
    ts, rows = judged(cells, "Stand-in", seed=6)

    def kernel(row):
        groups = [row[:3], row[3:6], row[6:]]
        pairs = list(itertools.combinations(range(3), 2))
        found = [sign(x[i], x[j]) * sign(y[i], y[j]) for x, y in itertools.combinations(groups, 2) for i, j in pairs]
        return sum(found) / len(found)

    assert ts == pytest.approx(both(kernel, rows))


def test_repeat_compares_halves_and_of_one_image_other_draws():
    cells = [*BASE, *({**b, "draw": retest.OTHER_DRAW} for b in BASE)]
    ts, rows = judged(cells, "Repeat", seed=7)
    pairs = list(itertools.combinations(range(3), 2))
    one = lambda r: sum(sign(r[i], r[j]) * sign(r[3 + i], r[3 + j]) for i, j in pairs) / 3  # noqa: E731
    assert ts[1] == pytest.approx(both(one, rows)[1])
    halves = []
    for k in range(concordance.HALVES):
        drawn = rng.uniform(0, torch.tensor([k]), torch.tensor([0]), len(rows))[0, 0]
        first = drawn.argsort()[: len(rows) // 2].tolist()
        rest = [i for i in range(len(rows)) if i not in first]
        halves.append(one([*rows[first, :3].double().mean(0).tolist(), *rows[rest, 3:].double().mean(0).tolist()]))
    assert ts[0] == pytest.approx(sum(halves) / len(halves))
    table = found(measured(BASE)[0], LESS)
    assert "draws nothing" in table.loc[("Repeat", "m", "one image"), "why"]
    assert table.loc[("Repeat", "m", "all images"), "T"] >= -1


def test_gaming_has_one_vote_for_each_family():
    names = ("MoRF", "AOPC", "SaCo", "µFidelity")
    metrics = {name: METRICS[name].given(baseline="zero") for name in names}
    tables, rows = [], {}
    for k, name in enumerate(names):
        cells = [*BASE, {"explainer": "SaCo", "variant": SEARCHED}]
        table, values = measured(cells, metric=name, seed=10 + k)
        tables.append(table)
        rows[name] = metrics[name].better * values
    ts = found(Scores.concat(tables), metrics).loc["Gaming", "SaCo"]["T"].tolist()
    every = torch.cat([rows["MoRF"], rows["AOPC"], rows["µFidelity"]], 1)

    def kernel(row):
        place = [sum(sign(row[4 * k + 3], row[4 * k + j]) for j in range(3)) / 3 for k in range(3)]
        return ((place[0] + place[1]) / 2 + place[2]) / 2  # MoRF and AOPC are one

    assert ts == pytest.approx(both(kernel, every))


CELLS = {
    "Order": [*BASE, *({**b, "variant": SHUFFLED, "level": r, "noise_seed": 0} for b in BASE for r in (0.5, 1))],
    "Chance": [*BASE, {"explainer": chance.RANDOM, "noise_seed": 0}],
    "Truth": [{"explainer": "oracle", "variant": ORACLE, "level": q, "noise_seed": 0} for q in (1.0, 0.5, 0.25)],
    "Own model": [*BASE, *({**b, "variant": RANDOMISED} for b in BASE)],
}


@pytest.mark.parametrize("trial", CELLS)
def test_intervals_of_noise_hold_chance_in_nineteen_of_twenty_tables(trial):
    runs, held = 60, dict.fromkeys(SIZES, 0)
    for seed in range(runs):
        noise = torch.randn(24, len(CELLS[trial]), generator=torch.Generator().manual_seed(seed))
        table = concordance.turned(measured(CELLS[trial], images=24, values=noise)[0], LESS)
        asked = examination.question(trial, "m", table, LESS)
        for size in SIZES:
            _, low, high, *_ = concordance.judged(asked, table, size)
            held[size] += low <= 1e-9 and high >= -1e-9
    assert all(count >= 0.88 * runs for count in held.values()), held  # 19 in 20, less its binomial noise


def test_fewer_than_six_images_of_a_network_decide_nothing():
    cells = CELLS["Chance"]

    def always_right(images, network="sum"):
        rows = torch.tensor([[0.0, 0.1, 0.2, 1.0]]).repeat(images, 1) + torch.arange(images)[:, None] / 1000
        return measured([{**cell, "network": network} for cell in cells], images=images, values=rows)[0]

    for number, verdict in ((5, concordance.OPEN), (40, concordance.PASSED)):
        rows = found(always_right(number), LESS).loc["Chance", "m"]
        assert set(rows["verdict"]) == {verdict}
        assert rows["T"].tolist() == [1, 1]
    both_networks = found(always_right(40) + always_right(5, "other"), LESS).loc["Chance", "m"]
    assert set(both_networks["verdict"]) == {concordance.OPEN}
    assert both_networks[["low", "high"]].to_numpy().tolist() == [[-1, 1], [-1, 1]]


def test_an_undefined_score_is_a_tie_and_is_counted():
    rows = torch.tensor([[3.0, 2.0, 1.0]]).repeat(30, 1)
    rows[:10, 0] = torch.nan
    table, _ = measured([*BASE[:1], {"explainer": chance.RANDOM, "noise_seed": 0}, BASE[1]], values=-rows)
    of = found(table, LESS).loc["Chance", "m"]
    assert of["undefined"].tolist() == [10, 10]
    assert of["T"].tolist() == pytest.approx([0, (2 / 3 - 1) / 2]), "a wins 20 of 30, b loses all"
    rows[:, 0] = rows[:, 2] = torch.nan
    table, _ = measured([*BASE[:1], {"explainer": chance.RANDOM, "noise_seed": 0}, BASE[1]], values=-rows)
    of = found(table, LESS).loc["Chance", "m"]
    assert of["T"].tolist() == [0, 0]
    assert of["verdict"].tolist() == [concordance.FAILED] * 2


def test_a_curve_is_its_area_and_hits_are_scores():
    sizes = (0.1, 0.5, 0.9)
    metric = {"m": METRICS["Fid-"].given(sizes=sizes)}
    curve = torch.tensor([[1, 0, 1], [0, 0, 1], [1, 1, 0]], dtype=torch.uint8)
    labels = {"metric": "m", "reference": "zero", "explainer": "a", **WHO}
    table = concordance.turned(Scores.of(curve, images=range(3), sizes=sizes, **labels), metric)
    assert table.blocks[0].values[:, 0].tolist() == pytest.approx([-0.5, -0.25, -0.75])


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.81, 1, "passed"), (0.8, 1, "open"), (0.2, 0.49, "failed"), (0.2, 0.5, "open"), (float("nan"),) * 2 + ("open",)],
)
def test_a_verdict_is_where_the_interval_lies(low, high, verdict):
    assert concordance.verdict(low, high) == verdict


# How metrics ask, and the search


def test_what_a_metric_sees_and_its_family_are_found_by_asking_it():
    cut = ("Fid+", "AUC", "AOPC", "LOdds", "Comp.", "MoRF", "LeRF", "LeRF - MoRF", "Insertion", "Few-class Fidelity")
    assert {adversarial.kin(METRICS[name]) for name in cut} == {("cuts of the order", "original")}
    assert len({adversarial.kin(METRICS[name]) for name in ("Fid+", "RFid+", "FFid+", "SaCo", "µFidelity")}) == 5
    assert adversarial.kin(METRICS["RFid+"]) == adversarial.kin(METRICS["RFid-"])
    assert not any(adversarial.sees_only_order(METRICS[name]) for name in ("SaCo", "µFidelity"))
    assert all(adversarial.sees_only_order(METRICS[name]) for name in (*cut, "RFid+", "FFid-"))
    assert [name for name in ("Fid+", "RFid+", "SaCo", "µFidelity") if adversarial.draws_numbers(METRICS[name])] == [
        "RFid+",
        "µFidelity",
    ]


def test_a_search_finds_an_order_that_the_metric_likes_better(task):
    metric = METRICS["LeRF - MoRF"]
    some = task.part(torch.arange(12))
    start = rng.uniform(5, torch.arange(12), torch.arange(1), FEATURES)[:, 0]
    least = adversarial.LEAST * metric.forward_passes(FEATURES)
    few, many = (adversarial.search(metric, some, start, budget=b) for b in (least, 60 * least))
    best = metric(some, WEIGHTS[:12])  # of an additive network the order of the contributions
    reached = [metric(some, order) for order in (start, few, many)]
    assert (reached[1] >= reached[0] - 1e-6).all()
    assert (reached[2] - reached[0]).mean() > 0.8 * (best - reached[0]).mean()
    alone = adversarial.search(metric, task.part(torch.tensor([4])), start[4:5], budget=least)
    assert torch.equal(alone, few[4:5]), "proposals belong to the image"
    with pytest.raises(ValueError, match=f"the budget is {least - 1}; give it {least}"):
        adversarial.search(metric, some, start, budget=least - 1)


class Deep(torch.nn.Module):
    """Two classes by the sign of two layers; `stubborn`: whatever its weights are."""

    def __init__(self, stubborn=False):
        super().__init__()
        torch.manual_seed(0)
        self.stubborn, self.first, self.last = stubborn, torch.nn.Linear(8, 16), torch.nn.Linear(16, 2)

    def forward(self, x):
        logits = self.last(self.first(x).tanh())
        return logits * 0 + torch.stack([x[:, 0], -x[:, 0]], 1) if self.stubborn else logits


def of_many(model):
    x = torch.randn(400, 8, generator=torch.Generator().manual_seed(3))
    return Task(model, x, torch.ones(400, dtype=torch.int64), torch.arange(8))


def test_a_stranger_has_forgotten_what_the_network_knew():
    deep = Deep().eval()
    before = {name: value.clone() for name, value in deep.state_dict().items()}
    found = [own_model.stranger(of_many(deep), 0.5, seed=seed) for seed in range(12)]
    found = [one for one in found if one.model]
    assert {one.drawn for one in found} == {1, 2}, "of some seeds one layer is not enough"
    for one in found:
        with torch.no_grad():
            own, other = (network(of_many(deep).x).argmax(1) for network in (deep, one.model))
        assert stats.kappa(own, other) < own_model.STRANGER
        assert one.agreement == pytest.approx((own == other).double().mean().item())
        assert torch.equal(one.model.first.weight, deep.first.weight) == (one.drawn == 1)
        assert not torch.equal(one.model.last.weight, deep.last.weight)
    assert all(torch.equal(value, before[name]) for name, value in deep.state_dict().items())


@pytest.mark.parametrize(
    ("network", "said"),
    [(Deep(stubborn=True), "with all of its 2 layers drawn anew, the network gives 100%"), (Sum(), "no layers whose")],
)
def test_own_model_does_not_apply_to_a_network_that_forgets_nothing(network, said):
    assert own_model.stranger(of_many(network), 0.3).model is None
    few = of_many(network).part(torch.arange(12))
    metrics = {"SaCo": METRICS["SaCo"].given(groups=4)}
    explainers = {"IxG": "input-x-gradient", "random too": ("random", {"seed": 9})}
    found = examination.examine(metrics, few, explainers, levels=(0.0, 1.0)).trust
    rows = found[found["trial"] == "Own model"]
    assert set(rows["verdict"]) == {concordance.NONE}
    assert rows["why"].str.contains(said).all()


# Everything at once


@pytest.fixture(scope="module")
def examined(task):
    names = ("LeRF - MoRF", "SaCo", "Fid+", "RFid+", "ROAR+", "MeGe", "FFid+")
    sizes = (0.25, 0.5, 0.75)
    metrics = {n: METRICS[n].given(sizes=sizes) if METRICS[n].sizes else METRICS[n] for n in names}
    metrics["RFid+"] = metrics["RFid+"].given(draws=2)
    metrics["SaCo"] = metrics["SaCo"].given(groups=4)
    explainers = {"IxG": "input-x-gradient", "Random too": ("random", {"seed": 9})}
    some = task.part(torch.arange(10))
    some = Task(some.model, some.x, some.target, some.segments, **WHO)
    found = examination.examine(metrics, some, explainers, truth=[truth.closed_form(10)], budget=500, gamed=4)
    return metrics, found


def test_every_metric_and_trial_has_a_number_or_a_reason(examined):
    metrics, of = examined
    rows = of.trust
    assert len(rows) == len(metrics) * len(examination.TRIALS) * 2
    applies = rows["verdict"] != concordance.NONE
    assert pd.concat([examination.applied(rows, size) for size in SIZES]).sort_index().equals(rows[applies])
    assert rows.loc[applies, ["T", "low", "high"]].notna().all().all()
    assert rows.loc[applies, ["T", "low", "high"]].abs().le(1).all().all()
    assert rows.loc[~applies, "why"].ne("").all()
    why = rows[rows["size"] == "all images"].set_index(["metric", "trial"])["why"]
    assert "retrained for every explanation" in why["ROAR+", "Order"]
    assert "cross-trained" in why["MeGe", "Truth"]
    assert "fine-tuned" in why["FFid+", "Order"]
    assert "magnitudes" in why["SaCo", "Gaming"]
    assert why["Fid+", "Gaming"] == ""


def test_the_mean_of_the_single_images_is_what_is_judged(examined):
    metrics, of = examined
    each = examination.singles(of.scores, metrics, of.obstacles)
    one = of.trust[(of.trust["size"] == "one image") & (of.trust["verdict"] != concordance.NONE)]
    assert len(one) == len(each.blocks)
    for row in one.itertuples():
        assert float(stats.estimate(each, metric=row.metric, variant=row.trial).value) == pytest.approx(row.T)


def test_a_metric_is_at_home_in_the_trial_of_its_paper(examined):
    rows = examined[1].trust
    home = rows[rows["home"]][["metric", "trial"]].drop_duplicates().itertuples(index=False, name=None)
    assert set(home) == {
        ("LeRF - MoRF", "Gaming"),
        ("SaCo", "Chance"),
        *((m, "Order") for m in ("Fid+", "RFid+", "FFid+")),
    }


def test_what_stands_beside_the_trials(examined):
    metrics, of = examined
    price = prices.price(of.scores, metrics, FEATURES).set_index("metric")
    assert price.loc["SaCo", "each"] == metrics["SaCo"].forward_passes(FEATURES)
    assert (price["images_low"] <= price["images"]).all()
    assert price.loc["SaCo", "shows_10"] == pytest.approx(10 * price.loc["SaCo", "shows_1000"])
    pairs = readings.agreement(of.scores, metrics)
    asked = [name for name in metrics if name in price.index]
    assert len(pairs) == len(asked) * (len(asked) - 1) / 2
    card = readings.report(of.scores, metrics, "IxG").set_index("metric")
    assert card.loc["SaCo", "rival"] == "Random too"
    assert card.loc["SaCo", "ahead_low"] > 0
    assert 0.5 < card.loc["LeRF - MoRF", "attainable"] <= 1 + 1e-3


def test_an_effect_is_the_mean_over_the_standard_deviation():
    cells = [{"explainer": "a"}, {"explainer": chance.RANDOM, "noise_seed": 0}]
    table, rows = measured(cells, images=40, seed=21)
    rows = rows + torch.tensor([0.0, 5.0])
    table, _ = measured(cells, images=40, values=rows)
    (of,) = prices.price(table, LESS, 8).to_dict("records")
    apart = (rows[:, 1] - rows[:, 0]).double()
    effect = float(apart.mean() / apart.std(correction=0))
    assert of["effect"] == pytest.approx(effect)
    assert of["images"] == pytest.approx((2.8 / effect) ** 2)
    assert of["shows_100"] == pytest.approx(2.8 / 10 / effect)


# What is said of files, metrics and explainers that do not fit

GOOD = "def mine(score, attribution):\n    return attribution.double().amax(1)\n"


@pytest.mark.parametrize(
    ("named", "text", "said"),
    [
        ("nothing.py:mine", None, "is no file"),
        ("mine.py", GOOD, "path/to/file.py:function"),
        ("mine.py:other", GOOD, "has no function 'other'; it has mine"),
        ("mine.py:mine", "import nowhere_at_all\n", "does not run: ModuleNotFoundError"),
        ("mine.py:mine", "def mine(score):\n    return 1\n", r"expected a function of \(score, attribution\)"),
    ],
)
def test_a_file_that_does_not_fit_is_an_error(tmp_path, named, text, said):
    if text is not None:
        (tmp_path / "mine.py").write_text(text)
    with pytest.raises(ValueError, match=said):
        checks.yours(str(tmp_path / named), "metric")


def test_a_metric_of_a_file_is_one(tmp_path):
    (tmp_path / "mine.py").write_text(GOOD)
    found = checks.yours(f"{tmp_path}/mine.py:mine", "metric")
    assert isinstance(found, Metric)
    assert found.source == "mine.py, mine"
    (tmp_path / "maps.py").write_text("def grey(model, x, target, images):\n    return x\n")
    assert checks.yours(f"{tmp_path}/maps.py:grey", "explainer")(None, 3, None, None) == 3


def test_a_file_that_registers_its_metric_may_be_examined(tmp_path, monkeypatch):
    """As where FAITHLAB_METRICS names the file that is examined."""
    monkeypatch.setattr(metrics, "METRICS", dict(METRICS))
    monkeypatch.setattr(metrics, "_PLACES", dict(metrics._PLACES))
    text = "from faithlab.metrics import register\n" + GOOD + GOOD.replace("mine", "other")
    (tmp_path / "mine.py").write_text(text + "register('Mine', mine, source='me')\n")
    module = metrics.load(tmp_path / "mine.py")
    for name in ("mine", "other"):
        assert checks.yours(f"{tmp_path}/mine.py:{name}", "metric").compute is getattr(module, name)


@pytest.mark.parametrize(
    ("ask_wrongly", "said"),
    [
        (lambda s, a: a, r"fails on a random explanation.*expected floating or bool scores"),
        (lambda s, a: a.sum(1) * torch.nan, "gave nothing but NaN"),
        (lambda s, a: a.sum(1) / 0, "fails on a random.*gave infinity for 4"),
        (lambda s, a: a.argmax(1), "fails on a random.*gave torch.int64"),
        (lambda s, a: s(a), "fails on a random explanation"),
        (lambda s, a: a[:, 0] / a[:, 0].abs().max(), "says something else of an explanation when"),
        (lambda s, a: a[:, 0] - a[:, 0].mean(), "says something else of an explanation when"),
    ],
)
def test_a_metric_that_answers_wrongly_is_an_error_before_the_work_starts(task, ask_wrongly, said):
    with pytest.raises(ValueError, match=f"the metric 'mine' {said}"):
        checks.check({"mine": Metric(ask_wrongly, source="mine")}, task)


def test_a_metric_that_draws_is_no_metric_that_looks_at_the_other_inputs(task):
    checks.check({"mine": Metric(lambda s, a: torch.rand(len(a)), source="mine")}, task)


def test_explanations_that_order_nothing_are_an_error(task):
    flat = torch.ones(IMAGES, FEATURES)
    with pytest.raises(ValueError, match="two explainers or more"):
        checks.check_explanations({"a": WEIGHTS}, task)
    with pytest.raises(ValueError, match="'b' says the same of all features"):
        checks.check_explanations({"a": WEIGHTS, "b": flat}, task)
    with pytest.raises(ValueError, match=r"the explainer 'b': .*NaN"):
        checks.check_explanations({"a": WEIGHTS, "b": flat * torch.nan}, task)


def test_a_statistic_in_steps_has_the_interval_of_the_bootstrap_with_few_images_too():
    table, _ = measured(BASE, images=30, seed=2)
    steps = stats.Statistic(lambda a, b: (a.mean() - b.mean()).sign(), tuple(BASE[:2]), "sign", steps=True)
    assert stats.intervals.METHODS[int(stats.estimate(table, steps).method)] == "bootstrap"
