"""The optimum as a trial: searched orders as explainers, shares with a scale, claims of TRACE that err rarely."""

import dataclasses
import itertools
import math

import pytest
import torch
from torch import nn

from faithlab import search, segments, stats
from faithlab.metrics import METRICS, evaluate, trajectory
from faithlab.outputs import correct, logit, probability
from faithlab.scores import Scores
from faithlab.task import Task
from faithstudy import claims, plots
from faithstudy.claims import REPRODUCED
from faithstudy.data.sets import ImageSet
from faithstudy.networks import models
from faithstudy.trials import optimum, tasks

OURS = {"LeRF - MoRF": METRICS["LeRF - MoRF"]}


def small(count: int = 3) -> Task:
    """A convolutional network and pictures of 16 patches."""
    torch.manual_seed(0)
    model = models.build("cnn3", classes=3, width=4).eval()
    x = torch.randn(count, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    identity = torch.arange(count) + 40
    return Task(model, x, torch.arange(count) % 3, segments.patches(8, 8, 2), images=identity)


def linear() -> tuple[Task, torch.Tensor]:
    """A linear model of four features, whose logit of class 0 adds up, and what each feature adds."""
    model = nn.Linear(4, 2, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.1, 0.5, 0.2, 0.15], [0.0, 0.0, 0.0, 0.0]]))
    x = torch.tensor([[1.0, 1.0, 1.0, 1.0], [3.0, 0.5, -1.0, 1.0]])
    task = Task(model.eval(), x, torch.zeros(2, dtype=torch.int64), torch.arange(4))
    return task, x * model.weight[0].detach()


# Searched orders


def test_of_an_additive_answer_the_best_order_is_that_of_the_contributions():
    task, worth = linear()
    metrics = {name: METRICS[name].given(output=logit) for name in ("MoRF", "LeRF", "LeRF - MoRF")}
    found = optimum.orders(metrics, task, steps=40)
    assert set(found) == {"TRACE-y", "TRACE-Mo-y", "TRACE-Le-y", "Greedy-Mo-y", "Greedy-Le-y"}
    for name, order in found.items():
        assert torch.equal(trajectory.trajectory(order), trajectory.trajectory(worth)), name


def test_all_subsets_are_asked_once_for_both_readouts(monkeypatch):
    task, worth = linear()
    score, asked = task.score((probability, logit)), []
    monkeypatch.setattr(Task, "score", lambda self, outputs: lambda *pairs: asked.append(pairs[0]) or score(*pairs))
    probabilities, logits = optimum.all_subsets(task)
    assert sum(map(len, asked)) == 2 * 16
    kept = torch.tensor([[s >> f & 1 for f in range(4)] for s in range(16)])
    torch.testing.assert_close(logits, (kept[:, None] * worth).sum(-1).T)  # of class 0; that of class 1 is 0
    torch.testing.assert_close(probabilities, logits.sigmoid())


def test_the_share_of_the_best_order_is_one_and_of_its_reverse_minus_one():
    task, worth = linear()
    metrics = {"LeRF - MoRF": METRICS["LeRF - MoRF"].given(output=logit)}
    table = optimum.optimum(metrics, task, {"best": worth, "worst": -worth})
    for explainer, share in {"best": 1, "worst": -1}.items():
        for of in (optimum.SHARE, optimum.CERTIFIED):  # of four features all subsets are asked: the bound is reached
            (block,) = table.where(metric=of, explainer=explainer)
            assert block.values.flatten().tolist() == pytest.approx([share] * 2, abs=1e-5)
    assert "Best-y" not in [b.labels["explainer"] for b in table.where(metric=optimum.SHARE)]
    assert optimum.attained(table, explainer="best") == "100 %; of the optimum at least 100 %"


def test_a_search_is_no_worse_than_its_start_and_asks_about_the_images_that_it_is_given():
    task = small()
    found = optimum.orders(OURS, task, steps=30)
    table = evaluate(OURS, task, found)
    of = {b.labels["explainer"]: b.values for b in table}
    assert (of["TRACE-p"] >= of["Greedy-Le"] - 1e-4).all()  # the same subsets in other batches: up to rounding
    greedy = search.greedy(task.score(), 3, 16, objective="Le").order
    best = search.anneal(task.score(), greedy, images=task.images, **optimum.schedule(OURS["LeRF - MoRF"], 30))
    assert of["TRACE-p"].flatten().tolist() == pytest.approx(best.value.tolist(), abs=1e-4)
    assert torch.equal(table.blocks[0].images, task.images)


def test_the_best_orders_are_those_of_the_search_and_no_order_is_above_their_bounds():
    task = small()
    metrics = {name: METRICS[name] for name in ("MoRF", "LeRF", "LeRF - MoRF")}
    found, bounds = optimum.best_orders(metrics, task, sweeps=2)
    paper = optimum.orders(metrics, task, steps=30)
    table = evaluate(metrics, task, {**found, **paper})
    for key, metric in metrics.items():
        sign = -1 if key == "MoRF" else 1
        objective = optimum.OBJECTIVES[metric.compute]
        own = search.best(task.score(), 3, 16, objective=objective, sweeps=2, images=task.images).value
        (best,) = table.where(metric=key, explainer=optimum.best_name(metric))
        assert best.values.flatten().tolist() == pytest.approx(own.tolist(), abs=1e-4)
        (bound,) = bounds.where(metric=optimum.bound_name(key))
        for block in table.where(metric=key):
            assert (sign * (bound.values - block.values) > -1e-4).all()
        (alone,) = optimum.bound(key, metric, task)  # the same beside another search
        assert alone.labels == {**bound.labels, "explainer": "TRACE-p"}
        assert alone.values.flatten().tolist() == pytest.approx(bound.values.flatten().tolist(), abs=1e-4)
    with pytest.raises(TypeError):
        optimum.bound("LeRF - MoRF", METRICS["LeRF - MoRF"].given(output=logit), task)


def every_order(features: int) -> torch.Tensor:
    """All orders, [F!, F]."""
    return torch.tensor(list(itertools.permutations(range(features))))


def test_of_few_features_the_order_is_the_best_of_all_that_there_are():
    task = dataclasses.replace(small(2), segments=segments.patches(8, 8, 4))
    found, bounds = optimum.best_orders(OURS, task, exact=4)
    (best,) = evaluate(OURS, task, found)
    every = [trajectory.lerf_minus_morf(task.score(), search.heat_map(order.expand(2, -1))) for order in every_order(4)]
    assert best.values[:, 0].tolist() == pytest.approx(torch.stack(every).amax(0).tolist(), abs=1e-5)
    assert bounds.blocks[0].values[:, 0].tolist() == pytest.approx(best.values[:, 0].tolist(), abs=1e-5)


def test_the_share_of_the_exact_optimum_has_an_interval_within_what_can_be():
    task = dataclasses.replace(small(3), segments=segments.patches(8, 8, 4))
    found, _ = optimum.best_orders(OURS, task)
    drawn = torch.rand(3, 4, generator=torch.Generator().manual_seed(0))
    table = optimum.optimum(OURS, task, {"reversed": -found["Best-p"], "drawn": drawn})
    means = {
        e: stats.estimate(table, optimum.MEAN_SHARE, metric=optimum.SHARE, explainer=e) for e in ("reversed", "drawn")
    }
    assert float(means["reversed"]) == pytest.approx(-1, abs=1e-4)
    free = stats.estimate(table, metric=optimum.SHARE, explainer="drawn")
    assert (float(free), float(free.low) < -1 or float(free.high) > 1) == (float(means["drawn"]), True)
    assert -1 <= float(means["drawn"].low) < float(means["drawn"]) < float(means["drawn"].high) <= 1


def test_all_subsets_are_asked_up_to_as_many_features_as_one_says():
    """Of 12 patches: the search's order is no better than the best of all, and only that one has itself as bound."""
    task = small(2)
    task = dataclasses.replace(task, x=task.x[:, :, :6], segments=segments.patches(6, 8, 2))
    (searched, above), (exact, reached) = (optimum.best_orders(OURS, task, exact=n) for n in (11, 12))
    (one,), (best,) = (evaluate(OURS, task, found) for found in (searched, exact))
    assert (best.values - one.values > -1e-4).all()
    assert reached.blocks[0].values[:, 0].tolist() == pytest.approx(best.values[:, 0].tolist(), abs=1e-4)
    assert (above.blocks[0].values > best.values + 1e-3).all()


def test_of_many_features_a_logit_has_no_bound_and_a_probability_has():
    for output, rows in ((logit, 0), (METRICS["LeRF - MoRF"].output, 1)):
        metrics = {"LeRF - MoRF": METRICS["LeRF - MoRF"].given(output=output)}
        _, bounds = optimum.best_orders(metrics, small(1), sweeps=1)
        assert len(bounds.blocks) == rows


def test_metrics_without_a_search_are_asked_of_the_searched_orders_too():
    task = small(2)
    metrics = {**OURS, "AOPC": METRICS["AOPC"]}
    table = optimum.optimum(metrics, task, {"random": torch.rand(2, 16)})
    asked = {(b.labels["metric"], b.labels["explainer"]) for b in table}
    assert asked >= {("AOPC", "Best-p"), ("AOPC", "random"), (optimum.SHARE, "random"), (optimum.CERTIFIED, "Best-p")}
    assert not optimum.searchable(METRICS["AOPC"])


def test_a_shorter_schedule_runs_through_the_same_temperatures():
    for output, first in ((METRICS["MoRF"].output, 0.1), (logit, 2.0)):
        metric = METRICS["MoRF"].given(output=output)
        for steps in (100, 5000, 20000):
            options = optimum.schedule(metric, steps)
            assert options["temperature"] == first
            assert options["objective"] == "Mo"
            assert options["cooling"] ** steps == pytest.approx(0.999**5000)
        assert optimum.schedule(metric, 5000)["cooling"] == pytest.approx(0.999)


@pytest.mark.parametrize(
    "metric",
    [METRICS["SaCo"], METRICS["LeRF"].given(output=correct), METRICS["Insertion"]],
    ids=["SaCo", "hit", "Insertion"],
)
def test_a_metric_without_a_best_order_is_told_so(metric):
    with pytest.raises(ValueError, match="no best order can be searched for mine: expected MoRF, LeRF or LeRF - MoRF"):
        optimum.orders({"mine": metric}, small(1))
    with pytest.raises(ValueError, match="whose best order can be searched for"):
        optimum.name(metric)
    with pytest.raises(ValueError, match="no best order can be searched for no metric"):
        optimum.orders({}, small(1))


# Shares


def table(images=(0, 1, 2, 3), **values) -> Scores:
    about = {"dataset": "d", "network": "n", "metric": "LeRF - MoRF", "reference": "zero"}
    return Scores.concat(
        Scores.of(torch.tensor(v, dtype=torch.float64), images=list(images), explainer=name.replace("_", "-"), **about)
        for name, v in values.items()
    )


def test_a_share_is_the_images_own_ratio_and_missing_where_nothing_is_to_attain():
    shares = optimum.shares(table(a=[1.0, 2.0, 0.0, 5.0], TRACE_p=[2.0, 2.0, 4.0, 0.0]))
    (block,) = shares
    assert block.values.flatten().tolist() == pytest.approx([0.5, 1.0, 0.0, math.nan], nan_ok=True)
    estimate = stats.estimate(shares)
    assert float(estimate) == pytest.approx(0.5)
    assert sum(estimate.missing) == 1


def test_shares_are_matched_by_image_and_by_what_else_the_rows_are_about():
    best = table(images=(3, 1, 0), TRACE_p=[30.0, 10.0, 1.0])
    own = table(images=(0, 3, 1), a=[1.0, 15.0, 2.5])
    other = table(images=(0, 1, 3), TRACE_p=[4.0, 4.0, 4.0]).labelled(reference="mean")
    (block,) = optimum.shares(best + own + other)
    assert block.values.flatten().tolist() == pytest.approx([1.0, 0.5, 0.25])
    shuffled = own.labelled(variant="shuffled", level=0.2, noise_seed=1)
    (block,) = optimum.shares(best + shuffled)  # what was done to an explanation was not done to the best order
    assert block.labels["level"] == 0.2
    assert block.values.flatten().tolist() == pytest.approx([1.0, 0.5, 0.25])


def test_a_share_above_one_is_an_error_of_the_search_and_shown_as_such():
    scores = table(a=[1.0, 3.0, 1.0, 2.0], TRACE_p=[2.0] * 4)
    shares = optimum.shares(scores)
    assert optimum.attained(shares, explainer="a") == "88 %; above 1 on 1 image, where the search missed a better order"


def test_the_share_of_the_optimum_lies_between_that_of_the_best_found_and_that_of_the_bound():
    bound = table(TRACE_p=[4.0, 5.0, 4.0, 8.0]).labelled(metric=optimum.bound_name("LeRF - MoRF"))
    shares = optimum.shares(table(a=[1.0, 2.0, 1.0, 1.0], TRACE_p=[2.0, 2.5, 2.0, 4.0]) + bound)
    (block,) = shares.where(metric=optimum.CERTIFIED, explainer="a")
    assert block.values.flatten().tolist() == pytest.approx([0.25, 0.4, 0.25, 0.125])
    assert optimum.attained(shares, explainer="a") == "51 %; of the optimum at least 26 %"
    (block,) = shares.where(metric=optimum.CERTIFIED, explainer="TRACE-p")
    assert block.values.flatten().tolist() == pytest.approx([0.5] * 4)


def test_the_mean_share_of_the_optimum_is_bounded_image_by_image():
    """A share below 0 rises where the optimum is higher, so that two means of shares do not bound a mean."""
    scores = table(a=[-1.0, 1.0, -3.0, 3.0], TRACE_p=[1.0, 2.0, 2.0, 2.0])
    bound = table(TRACE_p=[4.0] * 4).labelled(metric=optimum.bound_name("LeRF - MoRF"))
    said = "−12 %; of the optimum −25 % to 12 %; above 1 on 1 image, where the search missed a better order"
    assert optimum.attained(optimum.shares(scores + bound), explainer="a") == said
    for optima, mean in (([1.0, 4.0, 3.0, 4.0], -0.25), ([4.0, 2.0, 4.0, 3.0], 0.125)):  # what the optima may be
        assert float((torch.tensor([-1.0, 1.0, -3.0, 3.0]) / torch.tensor(optima)).mean()) == mean


def test_explanations_without_a_best_order_are_told_so():
    with pytest.raises(ValueError, match="a has scores where TRACE-p has none"):
        optimum.shares(table(a=[1.0] * 4) + table(TRACE_p=[1.0] * 4).labelled(reference="mean"))
    with pytest.raises(ValueError, match="TRACE-p has no score of 2 images of a"):
        optimum.shares(table(a=[1.0] * 4) + table(images=(0, 1), TRACE_p=[1.0] * 2))


def criteria(images=80, foreign=0.3, seed=0) -> Scores:
    """Scores under MoRF and LeRF of the best orders, of each other's, and of random ones."""
    g = torch.Generator().manual_seed(seed)
    own = 5 + torch.randn(images, generator=g)
    means = {
        ("LeRF", "TRACE-Le-p"): 10,
        ("LeRF", "TRACE-Mo-p"): 10 * foreign,
        ("MoRF", "TRACE-Mo-p"): -10,
        ("MoRF", "TRACE-Le-p"): -10 * foreign,
        ("LeRF", "Random"): 0,
        ("MoRF", "Random"): 0,
    }
    rows = []
    for (metric, explainer), mean in means.items():
        value = own + mean + torch.randn(images, generator=g)
        about = {"dataset": "d", "network": "n", "metric": metric, "explainer": explainer}
        rows.append(Scores.of(value, images=range(images), **about))
    return Scores.concat(rows)


def test_the_part_of_the_best_is_measured_from_chance():
    found = criteria()
    mean = {(b.labels["metric"], b.labels["explainer"]): b.values.double().mean().item() for b in found}
    chance = (mean["MoRF", "Random"] + mean["LeRF", "Random"]) / 2
    for metric, explainer, best in (("LeRF", "TRACE-Mo-p", "TRACE-Le-p"), ("MoRF", "TRACE-Le-p", "TRACE-Mo-p")):
        part = stats.estimate(found, optimum.part_of_best(metric, explainer, best))
        assert float(part) == pytest.approx((mean[metric, explainer] - chance) / (mean[metric, best] - chance))
        assert float(part) == pytest.approx(0.3, abs=0.05)
        assert part.low < part.value < part.high


def test_dots_put_the_best_on_top():
    found = table(low=[1.0, 2.0, 0.0, 1.0], high=[5.0, 6.0, 5.0, 5.5])
    figure = plots.dots(found, {"zero": {"reference": "zero"}}, label="x", metric="LeRF - MoRF", marks={0: "chance"})
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["high", "low"]
    assert axes.yaxis_inverted()


def test_dots_of_a_statistic_with_a_limit_end_at_it_also_where_rounding_passes_it():
    limited = stats.Statistic(stats.mean, within=(float("-inf"), 1.0))
    rounded = [1 + 1.2e-7 * k for k in (0, 1, 2, 3)]
    found = table(low=[0.2, 0.9, 0.5, 1.0], high=rounded)
    looks = {"label": "share", "metric": "LeRF - MoRF"}
    for statistic, ends_at_it in (({"of": limited}, True), ({}, False)):
        figure = plots.dots(found, {"zero": {"reference": "zero"} | statistic}, **looks)
        ((bars,),) = (container[2] for container in figure.axes[0].containers)
        highest = max(float(segment[:, 0].max()) for segment in bars.get_segments())
        assert (highest <= 1 + 1e-6) == ends_at_it


def test_marks_are_named_in_the_key():
    wide = table(low=[-60.0, 2.0, 0.0, 1.0], high=[80.0, 6.0, 50.0, 5.5])
    marks = {1: "best order", 0: "chance"}
    figure = plots.dots(wide, {"zero": {"reference": "zero"}}, label="x", metric="LeRF - MoRF", marks=marks)
    lines = {line.get_label(): line.get_xdata()[0] for line in figure.axes[0].lines if line.get_linestyle() in "--:"}
    assert lines == {"best order": 1, "chance": 0}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["best order", "chance", "zero"]


# Recognised images


def test_recognised_images_are_the_first_that_the_network_gets_right():
    model = nn.Sequential(nn.Flatten(), nn.Linear(48, 2, bias=False))
    with torch.no_grad():
        model[1].weight.copy_(torch.tensor([[-1.0], [1.0]]).expand(2, 48))  # class 1 is bright
    bright = torch.tensor([0, 1, 1, 0, 1, 1])
    labels = torch.tensor([0, 1, 0, 0, 1, 0])
    pictures = (bright.view(-1, 1, 1, 1) * 255).expand(-1, 3, 4, 4).to(torch.uint8).contiguous()
    data = ImageSet(pictures, labels, ("dark", "bright"), mean=(0.5,) * 3, std=(0.5,) * 3)
    assert tasks.recognised(model, 3, data, batch_size=2).tolist() == [0, 1, 3]
    assert len(tasks.recognised(model, 100, data)) == 4
    with pytest.raises(ValueError, match="recognise 0 of 2 examples, but 1 are needed"):
        tasks.recognised(model, 1, data.take(torch.tensor([2, 5])))


# The statistics of TRACE's claims err rarely


def curves(images=60) -> Scores:
    """Areas of two explainers under two references: one that hardly cares, one that does."""
    g = torch.Generator().manual_seed(0)
    image = torch.randn(images, generator=g)
    rows = []
    for explainer, shift in (("GradCAM", 0.05), ("IG", 0.6)):
        for reference, by in (("zero", 0.0), ("blur", shift)):
            value = image + by + 0.3 * torch.randn(images, generator=g)
            about = {"dataset": "d", "network": "n", "metric": "m", "explainer": explainer, "reference": reference}
            rows.append(Scores.of(5 + value, images=range(images), **about))
    return Scores.concat(rows)


def spread():
    return stats.Statistic(lambda a, b: (a.mean() - b.mean()).abs(), ({"reference": "zero"}, {"reference": "blur"}))


def ratio():
    return stats.Statistic(lambda a, b: a.mean() / b.mean() - 1, ({"reference": "blur"}, {"reference": "zero"}))


def gaps(metric: int) -> Scores:
    """Gaps of 16 images to a bound, most of them small."""
    skewed = torch.rand(16, generator=torch.Generator().manual_seed(metric)).square()
    about = {"dataset": "d", "network": "n", "metric": f"gap {metric}", "explainer": "annealing"}
    return Scores.of(0.01 * skewed, images=range(16), **about)


PARTS = {
    "spread": lambda: [claims.better(curves(), {"explainer": "IG"}, {"explainer": "GradCAM"}, of=spread())],
    "ratio": lambda: [claims.within(curves(), {}, of=ratio(), margin=0.25, reason="declared", explainer="IG")],
    "foreign criterion": lambda: [
        claims.below(criteria(60), 0.5, of=optimum.part_of_best("LeRF", "TRACE-Mo-p", "TRACE-Le-p"))
    ],
    "gaps": lambda: [claims.below(gaps(k), 0.01, name=f"gap {k}") for k in range(4)],
}


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_a_claim_of_trace_is_rarely_reproduced_under_chance(part):
    claim = claims.Claim("x", "Figure 1", "x", PARTS[part]())
    assert claim.verdict.outcome == REPRODUCED
    rates = claims.error_rate(claim)
    assert rates.reproduced < 23, str(rates)


def test_dots_in_panels_keep_one_order_of_the_rows_and_one_look_of_a_group():
    one, other = ({"low": [1.0, 2.0] * 2, "high": [5.0, 6.0] * 2}, {"low": [9.0, 8.0] * 2, "high": [3.0, 3.5] * 2})
    parts = [table(**one).labelled(network="a"), table(**other).labelled(network="b")]
    both = Scores.concat([part.labelled(draw=draw) for part in parts for draw in (0, 1)])
    figure = plots.dots(
        both, {"first": {"draw": 0}, "second": {"draw": 1}}, label="x", panels={n: {"network": n} for n in "ab"}
    )
    top, bottom = figure.axes
    assert [axes.get_title("right") for axes in figure.axes] == ["a", "b"]
    for axes in (top, bottom):
        assert [label.get_text() for label in axes.get_yticklabels()] == ["low", "high"]  # by both panels together
        assert [line.get_marker() for line, *_ in axes.containers] == ["o", "s"]
    assert len(figure.legends) == 1


def test_a_group_that_a_panel_lacks_leaves_the_look_of_the_others():
    values = table(low=[1.0, 2.0] * 2, high=[5.0, 6.0] * 2)
    rows = Scores.concat([values.labelled(network=n, draw=d) for n, d in (("a", 0), ("a", 1), ("b", 1))])
    groups = {"first": {"draw": 0}, "second": {"draw": 1}}
    figure = plots.dots(rows, groups, label="x", panels={n: {"network": n} for n in "abc"})
    looks = [  # nothing is known of c
        {line.get_label(): (line[0].get_marker(), line[0].get_color()) for line in axes.containers}
        for axes in figure.axes
    ]
    assert [list(of) for of in looks] == [["first", "second"], ["second"]]
    assert looks[0]["first"] != looks[0]["second"] == looks[1]["second"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["first", "second"]


def test_a_papers_numbers_are_crosses_in_the_rows_that_it_has():
    rows = Scores.concat(
        Scores.of([0.1 * k, 0.1 * k + 0.2], images=[0, 1], explainer=e, metric="m", network="a", dataset="d")
        for k, e in enumerate(("low", "high"))
    )
    figure = plots.dots(rows, {"a": {"network": "a"}}, label="x", printed={"low": 0.7, "unknown": 1.0})
    (axes,) = figure.axes
    (crosses,) = [line for line in axes.lines if line.get_marker() == "x"]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert crosses.get_xydata().tolist() == [[0.7, names.index("low")]]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["in print", "a"]
