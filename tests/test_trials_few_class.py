"""The trials of references, known truth and refinements, and how often the rules of Few-class Fidelity's claims err."""

import dataclasses
import statistics

import pandas as pd
import pytest
import scipy.stats
import torch
from torch import nn

import literal
from faithlab import stats
from faithlab.baselines import perturbed
from faithlab.metrics import METRICS, evaluate, few_class
from faithlab.metrics.few_class import replacement_curves
from faithlab.scores import Scores
from faithlab.task import Task
from faithstudy import claims, published
from faithstudy.data.sets import ImageSet
from faithstudy.networks import models
from faithstudy.trials import baselines as trial
from faithstudy.trials import refined, tasks, truth

METRIC = {"Few-class Fidelity": METRICS["Few-class Fidelity"].given(steps=4)}


def images(count: int = 6) -> ImageSet:
    inputs = torch.randint(0, 256, (count, 3, 12, 12), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    masks = torch.zeros(count, 12, 12, dtype=torch.bool)
    masks[:, 2:7, 3:9] = True
    labels = torch.arange(count) % 3
    return ImageSet(inputs, labels, ("a", "b", "c"), (0.5,) * 3, (0.25,) * 3, masks)


def network() -> nn.Module:
    torch.manual_seed(0)
    return models.build("cnn3", classes=3, width=4).eval()


def task(data: ImageSet, places=slice(None)) -> Task:
    at = torch.arange(len(data))[places]
    about = {"dataset": "noise", "network": "cnn3", "images": at}
    return Task(network(), data.model_inputs(at), data.labels[at], data.features(), **about)


def maps(of: Task, **options) -> dict[str, torch.Tensor]:
    own = refined.explainers(layer="features", background=of.x[:2], steps=2)
    return tasks.attributions(of, refined.refined(own, samples=2, noise=0.1, **options))


def test_all_combinations_of_the_paper_are_explained():
    found = maps(task(images()))
    assert len(found) == 7 * 4 + 1
    assert {"BP", "BP + XRAI", "EG + SG²", "Random"} <= set(found)
    for name, attribution in found.items():
        assert attribution.shape == (6, 144), name
        assert attribution.isfinite().all(), name
        if name != "Random":
            assert (attribution >= -1e-6).all(), name  # magnitudes


def test_the_perturbed_images_leave_the_network_as_undecided_as_the_search_says():
    data = images()
    of, found = trial.perturbed(task(data, slice(1, 5)), data)
    answers = of.model(of.baselines["perturbed"](of.x)).softmax(1)
    expected = [literal.uncertainty(row) for row in answers.tolist()]
    assert found.uncertainty.tolist() == pytest.approx(expected, abs=1e-5)


def test_what_stands_in_is_seen_normalised():
    data = images(2)
    pictures = trial.intensities(data, torch.arange(2))
    found = trial.plain(pictures)
    assert list(found) == ["black", "white", "mean", "blur"]
    assert all(stand_in.shape == pictures.shape for stand_in in found.values())
    torch.testing.assert_close(found["mean"].mean((2, 3)), pictures.mean((2, 3)))
    of = trial.standing_in(task(data), data, found)
    torch.testing.assert_close(of.baselines["white"](of.x), torch.full_like(of.x, 2.0))
    torch.testing.assert_close(of.baselines["black"](of.x), torch.full_like(of.x, -2.0))
    torch.testing.assert_close(trial.as_seen(pictures, data), data.model_inputs())


def test_the_full_search_finds_what_the_library_searches_and_counts_its_forwards():
    data = images()
    of = task(data)
    full, pruned, found, rows = trial.searched(of, data)
    whole = perturbed.search(trial.intensities(data), trial.answer(of.model, data), prune=False)
    origin = torch.tensor(perturbed.ORIGINAL)
    assert torch.equal(origin[full.winner], whole.candidate)
    assert torch.equal(full.fallback, whole.fallback)
    assert "perturbed" in pruned.baselines
    values = {(block.labels["metric"], block.labels.get("variant")): block.values[:, 0] for block in rows}
    assert values["has a candidate", None].tolist() == (~whole.fallback).tolist()
    assert values["same winner", None].tolist() == (found.candidate == whole.candidate).tolist()
    assert values["forwards", "near a line"].tolist() == found.forwards.tolist()
    delta = perturbed.threshold(3)
    for i, near in enumerate(values["forwards", "near enough (exact)"].tolist()):
        far = [10 / delta * full.distance[i, c].item() for c in perturbed.DISTINCT]
        assert near == sum(whole.fallback[i].item() or s < whole.score[i].item() for s in far)
    alone = [c for c, candidate in enumerate(perturbed.CANDIDATES) if candidate.operation == "none"]
    expected = (full.uncertainty[:, alone] <= delta).any(1)
    assert values["has a candidate", "blur alone"].tolist() == expected.tolist()
    wins = torch.stack([of for (metric, _), of in values.items() if metric == "wins"])
    assert len(wins) == 33
    assert wins.sum(0).tolist() == (~whole.fallback).tolist()


def test_what_a_network_makes_of_stand_ins():
    data = images()
    of, train = task(data, slice(0, 4)), images(40)
    far = trial.novelty(of, data, train, background=40, neighbours=1)
    image = trial.intensities(data, of.images)
    assert far(image).abs().max() < 1e-3  # the first of the training images are these
    stand_ins = {"itself": image, "black": torch.zeros_like(image)}
    rows = trial.replaced(of, data, stand_ins, far, seed=1)

    def values(metric, reference=None, variant=None):
        return rows.where(metric=metric, reference=reference, variant=variant).blocks[0].values[:, 0]

    torch.testing.assert_close(values("novelty"), far(image))
    for variant in ("all replaced", "half replaced"):
        torch.testing.assert_close(values("novelty", "itself", variant), far(image))
    torch.testing.assert_close(values("novelty", "black", "all replaced"), far(stand_ins["black"]))
    assert not torch.allclose(values("novelty", "black", "half replaced"), far(stand_ins["black"]))
    for name, stand_in in stand_ins.items():
        answers = trial.answer(of.model, data)(stand_in).tolist()
        assert values("U", name).tolist() == pytest.approx([literal.uncertainty(row) for row in answers], abs=1e-6)
        assert values("sure of a class", name).tolist() == [max(row) > 0.9 for row in answers]
        others = [
            max(p for c, p in enumerate(row) if c != own) for row, own in zip(answers, of.target.tolist(), strict=True)
        ]
        assert values("class switch", name).tolist() == [p > 0.5 for p in others]


def test_metrics_are_asked_under_each_reference():
    data = images()
    of = trial.standing_in(task(data), data, trial.plain(trial.intensities(data)))
    some = {"random": torch.rand(6, 144, generator=torch.Generator().manual_seed(0))}
    found = trial.under(METRIC, of, some, ["black", "white"])
    assert found.labels("reference") == ["black", "white"]
    for name in ("black", "white"):
        other = dataclasses.replace(of, baselines={"perturbed": of.baselines[name]})
        expected = METRIC["Few-class Fidelity"](other, some["random"])
        torch.testing.assert_close(found.where(reference=name).blocks[0].values[:, 0], expected.float())


def test_the_noise_is_judged_by_the_metric_of_smoothed_gradients():
    data = images()
    of = trial.standing_in(task(data), data, {"perturbed": trial.intensities(data) * 0})
    found = refined.noise_levels(METRIC, of, [0.1, 0.3], samples=2)
    options = refined.refined({"BP": "gradient"}, samples=2, noise=0.3, refinements=["SG"])
    expected = METRIC["Few-class Fidelity"](of, tasks.attributions(of, options)["BP + SG"])
    assert found.labels("level") == [0.1, 0.3]
    torch.testing.assert_close(found.where(level=0.3).blocks[0].values[:, 0], expected.float())


def test_the_noise_is_the_best_on_images_before_those_that_are_judged(monkeypatch):
    data = images(9)

    def named(network, places):
        return dataclasses.replace(task(data, places), network=network)

    right = {("one",): torch.arange(9), ("other", "another"): torch.arange(9).flip(0)}  # by the networks of a training
    monkeypatch.setattr(refined, "recognised", lambda networks, count, data, least: right[tuple(networks)][:count])
    monkeypatch.setattr(refined, "task", lambda recipe, places, **_: named(recipe, places))
    trained = {("net", 0): "one", ("net", 1): "other", ("second", 1): "another"}
    found = {key: refined.images_of(trained, key, 5, 4, data) for key in trained}
    for key in (("net", 1), ("second", 1)):
        assert [of.images.tolist() for of in found[key]] == [[4, 3, 2, 1, 0], [8, 7, 6, 5]]
    assert [of.images.tolist() for of in found["net", 0]] == [[4, 5, 6, 7, 8], [0, 1, 2, 3]]
    about = {"images": range(4), "dataset": "d", "metric": "m", "training_seed": 0}
    tried = Scores.concat(
        Scores.of(torch.full((4,), -abs(x - best)), level=x, network=name, **about)
        for name, best in (("net", 0.2), ("other", 0.3))
        for x in (0.1, 0.2, 0.3)
    )
    assert refined.chosen_noise(tried, [0.1, 0.2, 0.3]) == {("net", 0): 0.2, ("other", 0): 0.3}


def test_what_is_found_without_learning_is_of_other_weights_and_of_the_next_class():
    data = images()
    of, explainers = task(data), {"BP": "gradient"}
    found = truth.unlearned("overlap", of, explainers, data.masks, seed=3)
    assert found.labels("variant") == ["weights drawn anew", "the other class"]
    next_class = dataclasses.replace(of, target=torch.tensor([1, 2, 0, 1, 2, 0]))
    for variant, other in (("the other class", next_class), (None, of)):
        expected = truth.aligned("overlap", other, tasks.attributions(other, explainers), data.masks, variant=variant)
        same = torch.equal(
            found.where(variant=variant or "weights drawn anew").blocks[0].values, expected.blocks[0].values
        )
        assert same == (other is next_class)


def test_the_truth_is_aligned_with_itself_and_its_opposite_is_not():
    data = images()
    of = task(data)
    known = truth.known(data.masks, of.images)
    for measure in truth.MEASURES:
        found = truth.aligned(measure, of, known, data.masks)
        assert (found.where(explainer="truth first").blocks[0].values == 1).all()
        assert (found.where(explainer="truth last").blocks[0].values < 0.5).all()
        assert found.labels("metric") == [measure]


def test_known_orders_belong_to_the_image():
    data = images()
    whole = truth.known(data.masks, torch.arange(6))
    part = truth.known(data.masks[3:5], torch.tensor([3, 4]))
    for name, order in part.items():
        assert torch.equal(whole[name][3:5], order)


def test_explanations_are_judged_beside_controls_and_known_orders():
    data = images()
    of = trial.standing_in(task(data), data, {"perturbed": trial.intensities(data) * 0})
    found, scores = refined.judged(METRIC, of, {"BP": "gradient"}, "Dice", data.masks, seed=2)
    assert list(found) == ["BP", *refined.controls()]
    assert scores.labels("metric") == ["Few-class Fidelity", "Dice"]
    assert set(scores.where(metric="Few-class Fidelity").labels("explainer")) == {*found, "truth first", "truth last"}
    expected = METRIC["Few-class Fidelity"](of, truth.known(data.masks, of.images, 2)["truth last"])
    rows = scores.where(metric="Few-class Fidelity", explainer="truth last")
    torch.testing.assert_close(rows.blocks[0].values[:, 0], expected.float())


def test_the_printed_agreement_is_the_rank_correlation_of_two_tables_or_of_their_gains():
    paper = refined.printed(published.load("fewclass_scores"))
    for model, value in refined.printed_agreement(paper, 1, 3).items():
        both = paper[paper["model"] == model].pivot(index="name", columns="table", values="mean")
        assert value == pytest.approx(both[1].corr(both[3], method="spearman"))
    found = refined.printed_agreement(paper, 2, 4, gains=True)
    assert {model: round(value, 2) for model, value in found.items()} == {"ResNet-50": 0.70, "Xception": 0.81}
    for model, value in found.items():
        both = paper[paper["model"] == model].pivot(index=["explainer", "refinement"], columns="table", values="mean")
        gains = [
            (both.loc[key] - both.loc[(key[0], "none")])[[2, 4]]
            for key in both.index
            if key[1] != "none" and both.loc[key].notna()[[2, 4]].all()
        ]
        assert len(gains) == 14  # Deconv and IG(max) have no SG and SG²
        gains = pd.DataFrame(gains)
        assert value == pytest.approx(gains[2].corr(gains[4], method="spearman"))


def test_areas_are_what_fidelity_is_made_of():
    score = task(images()).score(baseline="mean")
    attribution = torch.rand(6, 144, generator=torch.Generator().manual_seed(0))
    ends = [few_class.area(score, attribution, steps=4, direction=end) for end in ("MoRF", "LeRF")]
    torch.testing.assert_close(torch.stack(ends), torch.stack(few_class.areas(score, attribution, steps=4)[:2]))


# Statistics

CELLS = [(name, way) for name in "abcd" for way in ("", " + XRAI", " + SG", " + SG²")]


def table(
    means, *, images=48, networks=1, dataset="digits", metric="Few-class Fidelity", spread=0.5, **labels
) -> Scores:
    """Scores of explainers around their means, with an effect of each image."""
    g = torch.Generator().manual_seed(1)
    image = torch.randn(images, generator=torch.Generator().manual_seed(2))
    return Scores.concat(
        Scores.of(
            mean + spread * image + spread * torch.randn(images, generator=g),
            images=range(images),
            explainer=name,
            metric=metric,
            **({"dataset": dataset, "network": f"net {n}"} | labels),
        )
        for n in range(networks)
        for name, mean in means.items()
    )


def test_the_typical_gain_is_the_median_over_explainers():
    t = table({"a": 0.0, "b": 0.0, "c": 0.0, "a + SG": 1.0, "b + SG": 3.0, "c + SG": -9.0}, spread=0.0)
    assert stats.estimate(t, refined.typical_gain("SG", "abc")).value == pytest.approx(1.0)
    more = t + table({"a + XRAI": 5.0, "b + XRAI": 5.0, "c + XRAI": 5.0}, spread=0.0)
    assert stats.estimate(more, refined.typical_gain("XRAI", "abc", over="SG")).value == pytest.approx(4.0)


def test_gains_are_alike_where_refinements_change_both_measures_alike():
    g = torch.Generator().manual_seed(5)
    means = [
        {f"{e}{w}": x for (e, w), x in zip(CELLS, torch.randn(16, generator=g).tolist(), strict=True)} for _ in "12"
    ]
    t = table(means[0], spread=0.0) + table(means[1], metric="IoU", spread=0.0)
    gains = [[of[f"{e}{w}"] - of[e] for e, w in CELLS if w] for of in means]
    kinds = ({"metric": "Few-class Fidelity"}, {"metric": "IoU"})
    expected = stats.spearman(*torch.tensor(gains, dtype=torch.float64)).item()
    assert stats.estimate(t, refined.gains_alike(*kinds, "abcd")).value == pytest.approx(expected)
    same = table(means[0], spread=0.0) + table({e: 3 * m + 1 for e, m in means[0].items()}, metric="IoU", spread=0.0)
    assert stats.estimate(same, refined.gains_alike(*kinds, "abcd")).value == pytest.approx(1.0)


def test_agreement_is_spearmans_correlation_of_the_means():
    one, other = dict(zip("abcde", (1.0, 4, 2, 8, 5), strict=True)), dict(zip("abcde", (2.0, 3, 9, 7, 1), strict=True))
    t = table(one) + table(other, metric="IoU")
    kinds = ({"metric": "Few-class Fidelity"}, {"metric": "IoU"})
    means = [[float(stats.estimate(t, explainer=e, **kind).value) for e in "abcde"] for kind in kinds]
    expected = stats.spearman(*torch.tensor(means, dtype=torch.float64))
    assert stats.estimate(t, stats.agreement(*kinds, "explainer", "abcde")).value == pytest.approx(expected.item())


def test_means_are_compared_with_fixed_numbers_by_their_ranks():
    numbers = {"a": 0.3, "b": -1.0, "c": 0.3, "d": 7.0}
    values = torch.randn(4, 30, generator=torch.Generator().manual_seed(0)) + torch.tensor([0.5, 0, 0.2, 1])[:, None]
    t = Scores.concat(
        Scores.of(of, images=range(30), dataset="data", network="net", explainer=e, metric="m")
        for e, of in zip("abcd", values, strict=True)
    )
    expected = scipy.stats.spearmanr(values.mean(1), [*numbers.values()]).statistic
    found = stats.estimate(t, stats.like_numbers("explainer", numbers, metric="m"))
    assert float(found) == pytest.approx(expected)
    exact = stats.like_numbers("explainer", dict(zip("abcd", values.mean(1).tolist(), strict=True)), metric="m")
    assert float(stats.estimate(t, exact)) == pytest.approx(1)


@pytest.mark.parametrize("images", [24, 150])
def test_a_difference_of_orders_moves_in_steps_as_orders_do(images):
    """Its interval is that of the paired cells: the bootstrap's, and not moved by a bias that resamples have alone."""
    values = torch.randn(2, 6, images, generator=torch.Generator().manual_seed(0))
    values += torch.tensor([[1.0], [0.3]])[..., None] * torch.arange(6)[:, None] / 6
    t = Scores.concat(
        Scores.of(values[n, e], images=range(images), dataset="data", network=f"net {n}", explainer=str(e), metric="m")
        for n in range(2)
        for e in range(6)
    )
    one, other = ({"network": f"net {n}"} for n in range(2))
    numbers = {str(e): e for e in range(6)}
    paired = stats.paired(t, one, other, stats.like_numbers("explainer", numbers))
    both = stats.difference(*(stats.like_numbers("explainer", numbers, **of) for of in (one, other)))
    assert both.bounds == (-2, 2)
    found = stats.estimate(t, both)
    for end in ("value", "low", "high"):
        assert float(getattr(found, end)) == pytest.approx(float(getattr(paired, end)))


def test_what_is_told_apart_is_the_literal_share_of_pairs_under_any_weights():
    g = torch.Generator().manual_seed(0)
    x, y = torch.randint(0, 5, (2, 9), generator=g).double()
    weights = torch.randint(0, 3, (4, 9), generator=g).double()
    weights[0] = 1
    found = stats.told_apart(*(stats.Sample(v[:, None], None, weights, None) for v in (x, y)))
    assert found[0].item() == pytest.approx(literal.told_apart(x.tolist(), y.tolist()))
    for row, answer in zip(weights.long().tolist(), found.tolist(), strict=True):
        many = [[v for v, w in zip(of.tolist(), row, strict=True) for _ in range(w)] for of in (x, y)]
        assert answer == pytest.approx(literal.told_apart(*many))


def test_curves_cannot_be_told_apart():
    sizes = torch.tensor([0.1, 0.2], dtype=torch.float64)
    curve = stats.Sample(torch.zeros(3, 2).double(), None, torch.ones(1, 3).double(), sizes)
    with pytest.raises(ValueError, match="choose their area or a single size"):
        stats.told_apart(curve, curve)


def test_the_printed_gain_is_the_median_over_explainers():
    means = {"a": 0.1, "b": 0.2, "c": 0.3, "a + SG": 0.2, "b + SG": 0.5, "c + SG": 0.1, "a + XRAI": 0.5}
    assert refined.printed_gain(means, "SG", "abc") == pytest.approx(0.1)
    assert refined.printed_gain(means, "SG", "a", over="XRAI") == pytest.approx(-0.3)


def test_what_spoils_an_agreement_most_is_left_out():
    one = {"a": 1.0, "a + SG": 2.0, "b": 3.0, "b + SG": 4.0, "c": 5.0, "c + SG": 6.0}
    other = {**one, "b": 9.0, "b + SG": 0.0}
    t = table(one, spread=0.0) + table(other, metric="IoU", spread=0.0)
    most, found = refined.best_without(t, list(one), {"metric": "Few-class Fidelity"}, {"metric": "IoU"})
    assert (most, float(found)) == ("b", pytest.approx(1.0))


def test_the_spread_of_means_is_their_standard_deviation():
    t = table({"a": 1.0, "b": 2.0, "c": 6.0}, spread=0.0)
    assert float(stats.estimate(t, stats.spread("explainer", "abc"))) == pytest.approx(statistics.stdev([1, 2, 6]))


def test_what_is_left_out_goes_by_whole_names():
    left = refined.left_out(["BP", "BP + SG", "BP + SG²", "IG(min) + SG"])
    assert left == {
        "BP": ["IG(min) + SG"],
        "SG": ["BP", "BP + SG²"],
        "SG²": ["BP", "BP + SG", "IG(min) + SG"],
        "IG(min)": ["BP", "BP + SG", "BP + SG²"],
    }


def test_an_order_is_settled_where_both_halves_of_the_images_have_it():
    levels = torch.tensor([[1.0, 3.0], [2.0, 2.0], [3.0, 1.0]])  # of even and odd images, for three explainers
    about = {"dataset": "digits", "network": "net", "metric": "Few-class Fidelity", "images": range(8)}
    for of, expected in ((levels, -1.0), (levels[:, :1].expand(-1, 2), 1.0)):
        rows = zip("abc", of, strict=True)
        scores = Scores.concat(Scores.of(each.repeat(4), explainer=name, **about) for name, each in rows)
        assert float(stats.estimate(scores, stats.settled("explainer", "abc"))) == pytest.approx(expected)


# How often the rules err

EXPLAINERS = [f"{name}{way}" for name in "abcdef" for way in ("", " + XRAI", " + SG", " + SG²")] + ["Random"]
SPREAD = {name: 0.1 * k for k, name in enumerate(EXPLAINERS)}
BOTH = table(SPREAD, networks=2) + table(SPREAD, networks=2, metric="IoU")


def images_told(count=48) -> Scores:
    g = torch.Generator().manual_seed(3)
    rows = {None: 0.0, "all replaced": 1.0}
    return Scores.concat(
        Scores.of(
            shift + torch.randn(count, generator=g),
            images=range(count),
            dataset="digits",
            network="net",
            metric="novelty",
            variant=variant,
        )
        for variant, shift in rows.items()
    )


def found(count=48) -> Scores:
    hits = torch.rand(count, generator=torch.Generator().manual_seed(0)) < 0.9
    return Scores.of(hits, images=range(count), dataset="digits", network="net", metric="found")


FIDELITY, IOU = {"metric": "Few-class Fidelity"}, {"metric": "IoU"}
TOLD = stats.Statistic(stats.told_apart, ({"variant": None}, {"variant": "all replaced"}))
RULES = {
    "most explainers gain": lambda: claims.above(BOTH, 0, of=refined.typical_gain("SG", "abcdef"), **FIDELITY),
    "ranked alike": lambda: claims.above(BOTH, 0.6, of=stats.agreement(FIDELITY, IOU, "explainer", EXPLAINERS)),
    "gains alike": lambda: claims.above(BOTH, 0.6, of=refined.gains_alike(FIDELITY, IOU, "abcdef")),
    "networks agree": lambda: claims.above(
        BOTH, 0.6, of=stats.agreement({"network": "net 0"}, {"network": "net 1"}, "explainer", EXPLAINERS), **FIDELITY
    ),
    "the best of 25": lambda: claims.best(BOTH, "explainer", "a + SG", rivals=EXPLAINERS[3:], **FIDELITY),
    "on a par": lambda: claims.within(
        BOTH, {"explainer": "a"}, {"explainer": "b"}, margin=0.3, reason="declared", **FIDELITY
    ),
    "hardly told": lambda: claims.below(images_told(), 0.6, of=TOLD),
    "nearly always found": lambda: claims.above(found(), 0.95),
}


@pytest.mark.parametrize("rule", [pytest.param(name, marks=pytest.mark.slow) for name in RULES])
def test_chance_is_rarely_reproduced(rule):
    rates = claims.error_rate(claims.Claim("x", "Table 1", "x", (RULES[rule](),)))
    assert rates.reproduced < 23, str(rates)  # of 300: 5 % and its noise


def test_a_random_order_rarely_passes_for_agreement():
    g = torch.Generator().manual_seed(0)
    orders = torch.rand(2, 4000, 25, generator=g).argsort(-1).double()
    assert (stats.spearman(*orders) > 0.6).double().mean() < 0.002


def test_the_two_curves_end_where_their_areas_say():
    of, _ = trial.perturbed(task(images()), images())
    some = {"BP": maps(of)["BP"]}
    asked = replacement_curves(4)
    found = evaluate(asked, of, some)
    for name, end in (("MIF", "MoRF"), ("LIF", "LeRF")):
        (block,) = found.where(metric=name)
        assert block.sizes == (0, 0.25, 0.5, 0.75, 1)
        score = of.score(asked[name].output, baseline="perturbed")
        direct = few_class.curve(score, some["BP"], steps=4, direction=end)
        torch.testing.assert_close(block.values, direct.to(block.values))


def test_rows_of_a_table_and_how_they_are_told_apart_are_means_over_the_trainings_of_their_own_network():
    hard = torch.linspace(0, 0.5, 200)
    of = {
        ("a", 0, "BP"): hard,
        ("a", 0, "BP + SG"): hard + 0.05,
        ("a", 1, "BP + SG"): hard + 0.25,
        ("a", 1, "BP"): hard,
    }
    of |= {("b", 0, "BP"): hard, ("b", 0, "BP + SG"): hard + 0.5}
    scores = Scores.concat(
        Scores.of(v, images=range(200), dataset="d", network=n, training_seed=s, explainer=name, metric="Dice")
        for (n, s, name), v in of.items()
    )
    rows = refined.table(scores, dataset="d").query("network == 'a'").set_index("refinement", drop=False)
    assert rows["mean"].to_dict() == pytest.approx({"none": 0.25, "SG": 0.4}, abs=1e-6)
    one, other = (rows.loc[way].to_dict() for way in ("SG", "none"))
    assert [float(end) for end in refined.apart(scores)(one, other).pooled] == pytest.approx([0.15] * 3, abs=1e-6)


def test_a_mean_of_a_table_lies_where_it_can():
    scores = Scores.of(
        torch.tensor([0.0, 0.9]), images=[0, 1], dataset="d", network="a", explainer="BP", metric="IoU", training_seed=0
    )
    (row,) = refined.table(scores).to_dict("records")
    assert (row["low"], row["mean"], row["high"]) == (0, pytest.approx(0.45), 1)
