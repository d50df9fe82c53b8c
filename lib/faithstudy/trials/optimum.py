"""The optimum (TRACE: Wang and Wang, 2024): how good is an explanation, compared with the best that there is?

A deletion metric judges an explanation by its order of the features alone. So for each input the order that the metric
likes best can be searched for, and put beside the explanations as one more explainer. It gives the metric a scale: the
*attainable share* of an explanation is 1 where it is as good as the best order that was found, and 0 at chance.

A search may stay short of the optimum, and then shares are too high. Where a bound on all orders is known, the share of
the bound is the other end of what the share of the optimum can be. A share above 1 is an error of the search.

`orders` searches as the paper does, so that its claims can be judged; `best_orders` as well as we can.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from faithlab import search, segments, stats
from faithlab.engine import Output, Score
from faithlab.metrics import Metric, evaluate, trajectory
from faithlab.outputs import logit, probability
from faithlab.scores import Block, Label, Scores
from faithlab.stats import Sample, Statistic
from faithlab.task import Remembered, Task
from faithstudy import numbers

OBJECTIVES = {trajectory.morf: "Mo", trajectory.lerf: "Le", trajectory.lerf_minus_morf: "Le-Mo"}
"""The metrics whose best order can be searched for, by their function, and the objective of `faithlab.search`."""

SUFFIX = {probability: "p", logit: "y"}
"""The paper's suffixes of outputs."""

TEMPERATURE = {probability: 0.1, logit: 2.0}
"""Where the paper's annealing starts."""

RANGE = {probability: (0.0, 1.0), logit: None}
"""Between which numbers an answer lies; a logit can be any."""

SHARE = "attainable share"
"""The metric of `shares` in the long table."""

CERTIFIED = "share of the bound"
"""The metric of the shares of what no order can exceed."""

MEAN_SHARE = Statistic(stats.mean, name=SHARE, bounds=(-1.0, 1.0))
"""The mean share of the exact optimum: no order exceeds it, and none is worse than its reverse, whose share is -1."""

MEASURES = {"LeRF − MoRF": {"metric": "LeRF - MoRF"}, SHARE: {"of": MEAN_SHARE, "metric": SHARE}}
"""What a table of explainers shows of `optimum`: how each measure is asked for."""

_EQUAL = 1e-3
"""By how much a share may be above 1: the same order, asked again in other batches and rounded."""

EXACT = 12
"""Up to so many features all subsets are asked, 4096 for each input, and the bound is the optimum."""


def searchable(metric: Metric) -> bool:
    """Whether the best order of a metric can be searched for."""
    return metric.compute in OBJECTIVES and metric.output in SUFFIX and metric.needs == "one network"


def name(metric: Metric) -> str:
    """What tables call the order that annealing finds: TRACE-p and TRACE-y for LeRF - MoRF, TRACE-Mo-p and so on."""
    objective = _objective(metric)
    return "TRACE" + ("" if objective == "Le-Mo" else f"-{objective}") + f"-{SUFFIX[metric.output]}"


def best_name(metric: Metric) -> str:
    """What tables call the best order that is found: Best-p, Best-Mo-p and so on."""
    return name(metric).replace("TRACE", "Best")


def bound_name(metric: str) -> str:
    """What tables call the number that no order exceeds under a metric."""
    return f"bound of {metric}"


def schedule(metric: Metric, steps: int) -> dict[str, Any]:
    """Arguments of `faithlab.search.anneal`: the paper's temperatures of 5000 steps, run through in fewer or more.

    Raises:
        ValueError: no order of this metric can be searched for.
    """
    objective, output = _objective(metric), metric.output
    cooling = {"temperature": TEMPERATURE[output], "cooling": 0.999 ** (5000 / steps)}
    return {"objective": objective, "steps": steps, "score_range": RANGE[output], **cooling}


def orders(
    metrics: Mapping[str, Metric], task: Task, *, steps: int = 5000, seed: int = 0, progress: bool = False
) -> dict[str, Tensor]:
    """The best orders that the searches of the paper find for metrics, as attributions [B, F].

    Annealing starts at the greedy order, that of LeRF where both ends count (section 5.2), and keeps the best order
    that it has seen. A search asks with the metric's own output, reference and network.

    Args:
        metrics: by name; those that are not `searchable` are left out.
        task: the inputs and networks.
        steps: of annealing, through the paper's temperatures.
        seed: of its proposals, which belong to the image and the step.
        progress: show a progress bar.

    Returns:
        By `name`, and the greedy orders where annealing started, as Greedy-Le, or Greedy-Le-y of logits.

    Raises:
        ValueError: no metric is searchable, and what the searches raise.
    """
    device, found = task.x.device, {}
    features = segments.count(task.segments)
    for metric in _searchable(metrics).values():
        score = task.score(metric.output, metric.baseline, metric.network, exact=metric.exact)
        remembered = search.Remembered(score)
        end = _objective(metric).split("-")[0]
        start = search.greedy(remembered, len(task.x), features, objective=end, device=device).order
        options = {"seed": seed, "images": task.images.to(device), "progress": progress}
        best = search.anneal(remembered, start, **schedule(metric, steps), **options).order
        found[f"Greedy-{end}" + "-y" * (metric.output is logit)] = search.heat_map(start)
        found[name(metric)] = search.heat_map(best)
    return found


def best_orders(
    metrics: Mapping[str, Metric],
    task: Task,
    *,
    sweeps: float = 4.0,
    exact: int = EXACT,
    seed: int = 0,
    progress: bool = False,
) -> tuple[dict[str, Tensor], Scores]:
    """The best orders that are found for metrics, by `faithlab.search.best`, and numbers that no order exceeds.

    Of few features all subsets are asked: the order is then the best of all, and what it reaches is the bound.

    Args:
        metrics: by name; those that are not `searchable` are left out.
        task: the inputs and networks.
        sweeps: of the refinement, see `faithlab.search.best`.
        exact: up to so many features all 2^F subsets are asked, and nothing is searched for; at most 20.
        seed: of its random numbers, which belong to the image and the step.
        progress: show a progress bar.

    Returns:
        The orders as attributions [B, F], by `best_name`. And the long table of their bounds, by `bound_name`: the
        optimum itself of up to `exact` features, else `faithlab.search.ceiling` of single features; none of logits of
        more features, since nothing bounds a logit.

    Raises:
        ValueError: no metric is searchable, and what the searches raise.
    """
    found, rows = {}, []
    device, features, count = task.x.device, segments.count(task.segments), len(task.x)
    for key, metric in _searchable(metrics).items():
        score = task.score(metric.output, metric.baseline, metric.network, exact=metric.exact)
        own, asked = best_name(metric), {"objective": _objective(metric), "device": device}
        about = {"explainer": own, "reference": metric.baseline, **task.labels}
        if features <= exact:
            table = search.answers(score, count, features, device=device)
            best = search.optimum(table, asked["objective"])
            found[own] = search.heat_map(best.order)
            rows.append(Scores.of(best.value, images=task.images, metric=bound_name(key), **about))
            continue
        score = search.Remembered(score)
        options = {"sweeps": sweeps, "seed": seed, "images": task.images.to(device), "progress": progress}
        best = search.best(score, count, features, **asked, **options)
        found[own] = search.heat_map(best.order)
        if RANGE[metric.output]:
            rows.append(bound(key, metric, task, best=own, score=score))
    return found, Scores.concat(rows)


def bound(key: str, metric: Metric, task: Task, *, best: str = "TRACE-p", score: Score | None = None) -> Scores:
    """What no order exceeds under a metric of probabilities, for `shares` of any search: `faithlab.search.ceiling`.

    It asks about 2 F + 2 masked inputs, twice as many for LeRF - MoRF.

    Args:
        key: the metric's name in the long table.
        metric: MoRF, LeRF or LeRF - MoRF.
        task: the inputs and networks.
        best: the explainer beside whose scores the bound will stand.
        score: of the task, where it has remembered answers; None: made here.

    Raises:
        ValueError: no order of this metric can be searched for, or nothing bounds its answers, as logits.
    """
    objective, features = _objective(metric), segments.count(task.segments)
    if score is None:
        score = task.score(metric.output, metric.baseline, metric.network, exact=metric.exact)
    asked = {"score_range": RANGE[metric.output], "objective": objective, "device": task.x.device}
    highest = search.ceiling(score, len(task.x), features, **asked).sum(1)
    about = {"explainer": best, "reference": metric.baseline, **task.labels}
    return Scores.of(highest, images=task.images, metric=bound_name(key), **about)


def optimum(
    metrics: Mapping[str, Metric], task: Task, attributions: Mapping[str, Tensor], *, exact: int = EXACT
) -> Scores:
    """Metrics of explanations and of the orders that the metrics themselves like best, and the attainable shares.

    Args:
        metrics: by name. All are asked of everything; the best orders are those of the `searchable` ones.
        task: the inputs and networks.
        attributions: by explainer, [B, F].
        exact: as in `best_orders`.

    Returns:
        The long table, with the searched orders as explainers, what no order exceeds, and the rows of `shares` for
        every LeRF - MoRF that was searched for, whose chance is known.
    """
    found, bounds = best_orders(metrics, task, exact=exact)
    scores = evaluate(metrics, task, {**found, **attributions}) + bounds
    both = {key: best_name(m) for key, m in metrics.items() if searchable(m) and _objective(m) == "Le-Mo"}
    return Scores.concat([scores, *(shares(scores, metric=key, best=best) for key, best in both.items())])


def all_subsets(task: Task, outputs: Iterable[Output] = (probability, logit)) -> list[Tensor]:
    """What a task answers to all subsets of its features, `faithlab.search.answers` [B, 2^F], of each output.

    The outputs are read off the same forwards.

    Raises:
        ValueError: as `faithlab.search.answers`.
    """
    outputs, features = tuple(outputs), segments.count(task.segments)
    every = Remembered(task.score(outputs), len(outputs))
    asked = {"count": len(task.x), "features": features, "device": task.x.device}
    return [search.answers(every.of(i), **asked) for i in range(len(outputs))]


def shares(scores: Scores, *, metric: str = "LeRF - MoRF", best: str = "TRACE-p") -> Scores:
    """The attainable shares: every image's score as a part of what the search reaches for it.

    A raw score says nothing across images, models and references, since nobody knows how high it could be. This one has
    a scale, because LeRF - MoRF is 0 on average over all orders. A share above 1 is no fault of the explanation: the
    search has missed a better order. It stays above 1, so that it is seen.

    Args:
        scores: the long table.
        metric: whose shares; its chance is 0.
        best: the explainer whose scores are what can be reached.

    Returns:
        Rows of the metric `SHARE`; NaN on an image where the search found no order better than chance. Where the table
        has bounds of `best`, rows of `CERTIFIED`, too: the share of the optimum lies between the two.

    Raises:
        ValueError: the table has no such rows, or an explanation without a best order on its images.
    """
    tables = []
    tops = {SHARE: scores.where(metric=metric, explainer=best)}
    if any((b.labels["metric"], b.labels.get("explainer")) == (bound_name(metric), best) for b in scores):
        tops[CERTIFIED] = scores.where(metric=bound_name(metric), explainer=best).labelled(metric=metric)
    for called, table in tops.items():
        reached = {_about(block): block for block in table}
        for block in scores.where(metric=metric):
            if block.labels.get("explainer") == best and called == SHARE:
                continue
            top = reached.get(_about(block)) or reached.get(_about(block, "variant", "level", "noise_seed", "draw"))
            if top is None and called == CERTIFIED:
                continue  # what was asked there has no bound
            if top is None:
                raise ValueError(f"{block.labels.get('explainer')} has scores where {best} has none")
            places = {int(image): i for i, image in enumerate(top.images)}
            if missing := [image for image in block.images.tolist() if image not in places]:
                raise ValueError(f"{best} has no score of {len(missing)} images of {block.labels.get('explainer')}")
            at = torch.tensor([places[image] for image in block.images.tolist()])
            share = trajectory.attainable_share(block.values[:, 0], top.values[at, 0])
            tables.append(Scores.of(share, images=block.images, **{**block.labels, "metric": called}))
    return Scores.concat(tables)


def attained(scores: Scores, **where: Label) -> str:
    """The mean attainable share of an explainer in words: "61 %; of the optimum at least 58 %", from `shares`.

    The second is where the mean share of the optimum lies, whatever the search has missed, on the same images; left out
    where there is no bound. The optimum of an image lies between what the search found and the bound, so that its share
    lies between the two; a share below 0 is nearer to 0 where the optimum is higher, so that the mean may have another
    upper end than the share itself, "of the optimum 58 to 63 %". Shares above 1 are counted, "above 1 on 2 images,
    where the search missed a better order".
    """

    def percent(share: stats.Estimate) -> str:
        return f"{numbers.number(100 * float(share), 0)} %"

    def end(lower_or_higher: Callable[[Tensor, Tensor], Tensor]) -> Statistic:
        """The mean of one of two shares of each image, as shares of an optimum can be: nothing exceeds it."""

        def mean(one: Sample, other: Sample) -> Tensor:
            return replace(one, values=lower_or_higher(one.values, other.values).clamp(-1, 1)).mean()

        return Statistic(mean, ({"metric": SHARE}, {"metric": CERTIFIED}))

    text = percent(stats.estimate(scores, metric=SHARE, **where))
    if CERTIFIED in scores.labels("metric"):
        low, high = (percent(stats.estimate(scores, end(of), **where)) for of in (torch.minimum, torch.maximum))
        text += f"; of the optimum at least {low}" if high == text else f"; of the optimum {low} to {high}"
    values = torch.cat([block.values.flatten() for block in scores.where(metric=SHARE, **where)])
    above = int((values > 1 + _EQUAL).sum())
    missed = f"; above 1 on {above} image{'s' * (above > 1)}, where the search missed a better order"
    return text + missed * bool(above)


def part_of_best(metric: str, explainer: str, best: str, *, chance: str = "Random", **labels: Label) -> Statistic:
    """How far an order is from chance to the best order of a metric: (mean - chance) / (best - chance).

    For MoRF and LeRF, whose chance differs from input to input. It is the same for both, since a random order and its
    reverse are equally likely, so that random orders are measured by both.

    Args:
        metric: "MoRF" or "LeRF".
        explainer: whose order.
        best: the explainer that has the best order for this metric.
        chance: the explainer that has random ones.
        **labels: of all rows.
    """

    def part(of: Sample, top: Sample, *random: Sample) -> Tensor:
        zero = sum(sample.mean() for sample in random) / len(random)
        return (of.mean() - zero) / (top.mean() - zero)

    over = ({"metric": metric, "explainer": explainer}, {"metric": metric, "explainer": best})
    random = tuple({"metric": one, "explainer": chance} for one in ("MoRF", "LeRF"))
    return Statistic(part, tuple({**own, **labels} for own in (*over, *random)), f"{explainer} under {metric}")


def _searchable(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """Those that can be searched for."""
    if not (sought := {key: metric for key, metric in metrics.items() if searchable(metric)}):
        raise ValueError(
            f"no best order can be searched for {', '.join(metrics) or 'no metric'}: expected MoRF, LeRF or "
            "LeRF - MoRF of probabilities or logits"
        )
    return sought


def _objective(metric: Metric) -> str:
    if not searchable(metric):
        raise ValueError(
            "expected MoRF, LeRF or LeRF - MoRF of probabilities or logits, whose best order can be searched for"
        )
    return OBJECTIVES[metric.compute]


def _about(block: Block, *but: str) -> tuple:
    """What a row is about, whoever explained it."""
    return tuple((key, value) for key, value in sorted(block.labels.items()) if key not in ("explainer", *but))
