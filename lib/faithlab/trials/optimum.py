"""The optimum (TRACE: Wang and Wang, 2024): how good is an explanation, compared with the best that there is?

A deletion metric judges an explanation by its order of the features alone. So for each input the order that the metric
likes best can be searched for, and put beside the explanations as one more explainer. It gives the metric a scale: the
*attainable share* of an explanation is 1 where it is as good as the best order that was found, and 0 at chance.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from faithlab import search, segments
from faithlab.metrics import Metric, evaluate, trajectory
from faithlab.readouts import logit, probability
from faithlab.scores import Block, Label, Scores
from faithlab.stats import Sample, Statistic
from faithlab.subject import Subject

OBJECTIVES = {trajectory.morf: "Mo", trajectory.lerf: "Le", trajectory.lerf_minus_morf: "Le-Mo"}
"""The metrics whose best order can be searched for, by their function, and the objective of `faithlab.search`."""

SUFFIX = {probability: "p", logit: "y"}
"""The paper's suffixes of readouts."""

TEMPERATURE = {probability: 0.1, logit: 2.0}
"""Where the paper's annealing starts."""

RANGE = {probability: (0.0, 1.0), logit: None}
"""Between which numbers an answer lies; a logit can be any."""

SHARE = "attainable share"
"""The metric of `shares` in the long table."""


def searchable(metric: Metric) -> bool:
    """Whether the best order of a metric can be searched for."""
    return metric.ask in OBJECTIVES and metric.readout in SUFFIX and metric.needs == "one network"


def name(metric: Metric) -> str:
    """What tables call the order that annealing finds: TRACE-p and TRACE-y for LeRF - MoRF, TRACE-Mo-p and so on."""
    objective = _objective(metric)
    return "TRACE" + ("" if objective == "Le-Mo" else f"-{objective}") + f"-{SUFFIX[metric.readout]}"


def schedule(metric: Metric, steps: int) -> dict[str, Any]:
    """Arguments of `faithlab.search.anneal`: the paper's temperatures of 5000 steps, run through in fewer or more.

    Raises:
        ValueError: no order of this metric can be searched for.
    """
    objective, readout = _objective(metric), metric.readout
    cooling = {"temperature": TEMPERATURE[readout], "cooling": 0.999 ** (5000 / steps)}
    return {"objective": objective, "steps": steps, "score_range": RANGE[readout], **cooling}


def orders(
    metrics: Mapping[str, Metric], subject: Subject, *, steps: int = 5000, seed: int = 0, progress: bool = False
) -> dict[str, Tensor]:
    """The best orders that the searches of the paper find for metrics, as attributions [B, F].

    Annealing starts at the greedy order, that of LeRF where both ends count (section 5.2), and keeps the best order
    that it has seen. A search asks with the metric's own readout, reference and network.

    Args:
        metrics: by name; those that are not `searchable` are left out.
        subject: the inputs and networks.
        steps: of annealing, through the paper's temperatures.
        seed: of its proposals, which belong to the image and the step.
        progress: show a progress bar.

    Returns:
        By `name`, and the greedy orders where annealing started, as Greedy-Le, or Greedy-Le-y of logits.

    Raises:
        ValueError: no metric is searchable, and what the searches raise.
    """
    sought = [metric for metric in metrics.values() if searchable(metric)]
    if not sought:
        raise ValueError(
            f"no best order can be searched for {', '.join(metrics) or 'no metric'}: expected MoRF, LeRF or "
            "LeRF - MoRF of probabilities or logits"
        )
    device, found = subject.x.device, {}
    features = segments.count(subject.segments)
    for metric in sought:
        score = subject.score(metric.readout, metric.reference, metric.network, exact=metric.exact)
        remembered = search.Remembered(score)
        end = _objective(metric).split("-")[0]
        start = search.greedy(remembered, len(subject.x), features, objective=end, device=device).order
        options = {"seed": seed, "images": subject.images.to(device), "progress": progress}
        best = search.anneal(remembered, start, **schedule(metric, steps), **options).order
        found[f"Greedy-{end}" + "-y" * (metric.readout is logit)] = search.heat_map(start)
        found[name(metric)] = search.heat_map(best)
    return found


def optimum(
    metrics: Mapping[str, Metric],
    subject: Subject,
    attributions: Mapping[str, Tensor],
    *,
    steps: int = 500,
    seed: int = 0,
    progress: bool = False,
) -> Scores:
    """Metrics of explanations and of the orders that the metrics themselves like best, and the attainable shares.

    Args:
        metrics: by name. All are asked of everything; the best orders are those of the `searchable` ones.
        subject: the inputs and networks.
        attributions: by explainer, [B, F].
        steps: as in `orders`.
        seed: as in `orders`.
        progress: as in `orders`.

    Returns:
        The long table, with the searched orders as explainers and the rows of `shares` for every LeRF - MoRF that was
        searched for, whose chance is known.
    """
    found = orders(metrics, subject, steps=steps, seed=seed, progress=progress)
    scores = evaluate(metrics, subject, {**found, **attributions})
    both = {key: name(m) for key, m in metrics.items() if searchable(m) and _objective(m) == "Le-Mo"}
    return Scores.concat([scores, *(shares(scores, metric=key, best=best) for key, best in both.items())])


def shares(scores: Scores, *, metric: str = "LeRF - MoRF", best: str = "TRACE-p") -> Scores:
    """The attainable shares: every image's score as a part of what the search reaches for it.

    A raw score says nothing across images, models and references, since nobody knows how high it could be. This one has
    a scale, because LeRF - MoRF is 0 on average over all orders.

    Args:
        scores: the long table.
        metric: whose shares; its chance is 0.
        best: the explainer whose scores are what can be reached.

    Returns:
        Rows of the metric `SHARE`; NaN on an image where the search found no order better than chance.

    Raises:
        ValueError: the table has no such rows, or an explanation without a best order on its images.
    """
    of = scores.where(metric=metric)
    reached = {_about(block): block for block in of.where(explainer=best)}
    tables = []
    for block in of:
        if block.labels.get("explainer") == best:
            continue
        top = reached.get(_about(block)) or reached.get(_about(block, "variant", "level", "noise_seed", "draw"))
        if top is None:
            raise ValueError(f"{block.labels.get('explainer')} has scores where {best} has none")
        places = {int(image): i for i, image in enumerate(top.images)}
        if missing := [image for image in block.images.tolist() if image not in places]:
            raise ValueError(f"{best} has no score of {len(missing)} images of {block.labels.get('explainer')}")
        at = torch.tensor([places[image] for image in block.images.tolist()])
        share = trajectory.attainable_share(block.values[:, 0], top.values[at, 0])
        tables.append(Scores.of(share, images=block.images, **{**block.labels, "metric": SHARE}))
    return Scores.concat(tables)


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


def _objective(metric: Metric) -> str:
    if not searchable(metric):
        raise ValueError(
            "expected MoRF, LeRF or LeRF - MoRF of probabilities or logits, whose best order can be searched for"
        )
    return OBJECTIVES[metric.ask]


def _about(block: Block, *but: str) -> tuple:
    """What a row is about, whoever explained it."""
    return tuple((key, value) for key, value in sorted(block.labels.items()) if key not in ("explainer", *but))
