"""Refined explanations: does a mean over regions, or over noisy copies, make an explanation better?

The explainers and refinements of Few-class Fidelity (section 4.1.2) by its names. An explainer with a refinement is
called "BP + SG"; its map is a magnitude. XRAI averages the magnitudes over regions of the image. SG is the magnitude of
the mean map over noisy copies, SG² the mean of the squares.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any, Literal

import pandas as pd
import torch
from torch import Tensor

from faithlab import stats
from faithlab.explainers import refine
from faithlab.metrics import Metric, evaluate
from faithlab.scores import Scores
from faithlab.stats import Estimate, Sample, Statistic
from faithlab.task import Task
from faithstudy.data.sets import ImageSet
from faithstudy.networks.training import Recipe
from faithstudy.trials import truth
from faithstudy.trials.tasks import Chosen, attributions, recognised, task, with_options

REFINEMENTS = ("none", "XRAI", "SG", "SG²")
NAMES = ("BP", "Deconv", "EG", "IG(min)", "IG(zero)", "IG(max)", "GradCAM")
"""The paper's explainers; Random stands beside them."""


def explainers(*, layer: str, background: Tensor, steps: int, seed: int = 0) -> dict[str, Chosen]:
    """The paper's explainers.

    Args:
        layer: whose activations Grad-CAM weighs.
        background: [R, C, H, W] training images as the network sees them, for Expected Gradients.
        steps: of Integrated Gradients.
        seed: of Random and of Expected Gradients.
    """
    integrated = {
        f"IG({name})": ("integrated-gradients", {"baseline": baseline, "steps": steps})
        for name, baseline in {"min": "min", "zero": 0.0, "max": "max"}.items()
    }
    return {
        "BP": "gradient",
        "Deconv": "deconvolution",
        "EG": ("expected-gradients", {"background": background, "seed": seed}),
        **integrated,
        "GradCAM": ("gradcam", {"layer": layer}),
        "Random": ("random", {"seed": seed}),
    }


def refined(
    chosen: Mapping[str, Chosen],
    *,
    samples: int,
    noise: float,
    refinements: Sequence[str] = REFINEMENTS,
    seed: int = 0,
) -> dict[str, Chosen]:
    """Every explainer with every refinement; Random has none.

    Args:
        chosen: explainers by name, with their options.
        samples: noisy copies of SG and SG².
        noise: their standard deviation, as a fraction of the image's range.
        refinements: of `REFINEMENTS`.
        seed: of the noise.
    """
    copies = {"samples": samples, "noise": noise, "seed": seed}
    ways = {
        "none": refine.magnitude,
        "XRAI": lambda inner: refine.region(refine.magnitude(inner)),
        "SG": lambda inner: refine.magnitude(refine.smooth(inner, moment=1, **copies)),
        "SG²": lambda inner: refine.smooth(inner, moment=2, **copies),
    }
    found: dict[str, Chosen] = {}
    for name, (inner, options) in with_options(chosen).items():
        for way in refinements if name != "Random" else ("none",):
            found[named(name, way)] = ways[way](inner), options
    return found


def controls(side: int = 7, seed: int = 0) -> dict[str, Chosen]:
    """What smooths a map and knows nothing of the refinements' ideas: a mean over squares; regions of a random map."""
    return {
        "BP + squares": refine.squares(refine.magnitude("gradient"), side),
        "Random + XRAI": (refine.region(refine.magnitude("random")), {"seed": seed}),
    }


def noise_levels(
    metrics: Mapping[str, Metric], task: Task, levels: Sequence[float], *, samples: int, seed: int = 0
) -> Scores:
    """Every metric of BP + SG at each level of noise, on images kept for this choice; the variant is "noise of SG".

    Args:
        metrics: by name.
        task: other images than those that explainers are judged on.
        levels: standard deviations of the noise, as fractions of an image's range.
        samples: noisy copies.
        seed: of the noise.
    """
    tables = []
    for level in levels:
        tried = refined({"BP": "gradient"}, samples=samples, noise=level, refinements=["SG"], seed=seed)
        tables.append(evaluate(metrics, task, attributions(task, tried), variant="noise of SG", level=level))
    return Scores.concat(tables)


def images_of(
    recipes: Mapping[tuple[str, int], Recipe],
    key: tuple[str, int],
    count: int,
    others: int,
    data: ImageSet,
    *,
    precision: Literal["bfloat16", "float32"] = "float32",
) -> tuple[Task, Task]:
    """The images of a network that are judged, and those on which the noise of SG and SG² is chosen.

    The images are the first that every network of a training gets right. Of these the noise is chosen on the first, so
    that fewer images that are judged are the first of more, and those of one training are the same beside others.

    Args:
        recipes: of all networks, by name and training seed.
        key: of the network.
        count: how many images are judged.
        others: on how many the noise is chosen.
        data: the test split.
        precision: of forwards.

    Raises:
        ValueError: there are not as many images that every network of the training gets right.
    """
    networks = [recipe for (_, s), recipe in recipes.items() if s == key[1]]
    right = recognised(networks, others + count, data, least=others + count)
    of_part = partial(task, recipes[key], name=key[0], precision=precision, data=data)
    return of_part(right[others:]), of_part(right[:others])


def chosen_noise(tried: Scores, levels: Sequence[float]) -> dict[tuple[str, int], float]:
    """The noise of SG and SG², by network and training seed: the level with the highest mean of `noise_levels`."""
    keys = dict.fromkeys((block.labels["network"], block.labels["training_seed"]) for block in tried)
    means = {
        key: {of: float(stats.estimate(tried, level=of, network=key[0], training_seed=key[1])) for of in levels}
        for key in keys
    }
    return {key: max(of, key=of.get) for key, of in means.items()}


def judged(
    metrics: Mapping[str, Metric],
    task: Task,
    explainers: Mapping[str, Chosen],
    measure: str,
    regions: Tensor,
    *,
    seed: int = 0,
) -> tuple[dict[str, Tensor], Scores]:
    """Every explanation and the controls: what the metrics say of them, and how well they find the known region.

    Args:
        metrics: by name. They are also asked of the two known orders, the region first and last.
        task: the images, with the references that the metrics ask for.
        explainers: with their refinements.
        measure: of the region, see `faithstudy.trials.truth.MEASURES`.
        regions: [B, H, W] bool.
        seed: of what is drawn.

    Returns:
        The attributions by explainer, and the scores.
    """
    maps = attributions(task, {**explainers, **controls(seed=seed)})
    known = {name: order.to(task.x.device) for name, order in truth.known(regions, task.images, seed).items()}
    return maps, evaluate(metrics, task, maps | known) + truth.aligned(measure, task, maps, regions)


def printed(paper: pd.DataFrame) -> pd.DataFrame:
    """The paper's tables ("fewclass_scores" of `faithstudy.published`) with the columns of `table`."""
    paper = paper.rename(columns={"value": "mean"}).replace({"refinement": {"SG2": "SG²"}})
    return paper.assign(name=[named(*pair) for pair in paper[["explainer", "refinement"]].to_numpy()])


def printed_agreement(paper: pd.DataFrame, one: int, other: int, *, gains: bool = False) -> dict[str, float]:
    """The rank correlation of two of the paper's tables over explainers and refinements, for each of its models.

    Args:
        paper: of `printed`.
        one: number of a table.
        other: number of the other.
        gains: of what the refinements change, see `gains_alike`.
    """
    found = {}
    if gains:
        keys = ["table", "model", "explainer"]
        paper = paper[paper["explainer"] != "Random"].merge(
            paper[paper["refinement"] == "none"][[*keys, "mean"]], on=keys, suffixes=("", "_plain")
        )
        paper = paper.assign(mean=paper["mean"] - paper["mean_plain"]).query("refinement != 'none'")
    for model, of in paper[paper["table"].isin([one, other])].groupby("model", sort=False):
        of = [torch.tensor(of[of["table"] == number]["mean"].to_numpy(copy=True)) for number in (one, other)]
        found[model] = stats.spearman(*of).item()
    return found


def named(explainer: str, refinement: str) -> str:
    """An explainer with its refinement, as tables write them."""
    return explainer if refinement == "none" else f"{explainer} + {refinement}"


def combined(names: Sequence[str]) -> list[str]:
    """Explainers with every refinement, and Random."""
    return [named(name, way) for name in names for way in REFINEMENTS] + ["Random"]


def left_out(names: Sequence[str]) -> dict[str, list[str]]:
    """What stays of explainers with refinements where one explainer, or one refinement, is left out.

    Args:
        names: "BP", "BP + SG" and so on.

    Returns:
        By the name of what is left out.
    """
    groups = dict.fromkeys(part for name in names for part in name.split(" + "))
    return {group: [name for name in names if group not in name.split(" + ")] for group in groups}


def best_without(
    scores: Scores, names: Sequence[str], one: Mapping[str, Any], other: Mapping[str, Any], **labels: Any
) -> tuple[str, Estimate]:
    """Which explainer or refinement spoils an agreement most: what is left out for the largest rank correlation.

    Args:
        scores: the long table.
        names: of explainers with refinements; each part of them is left out in turn, see `left_out`.
        one: labels of a kind of rows, such as a metric or a network.
        other: of the other.
        **labels: of both.

    Returns:
        What is left out, and the rank correlation of the two kinds of rows over the rest.
    """
    found = {
        group: stats.estimate(scores, stats.agreement(one, other, "explainer", rest), **labels)
        for group, rest in left_out(names).items()
    }
    return max(found.items(), key=lambda item: float(item[1]))


MEAN = Statistic(stats.mean, name="mean", within=(0.0, 1.0))
"""Of Few-class Fidelity, Dice or IoU: all lie between 0 and 1."""


def table(scores: Scores, **labels: Any) -> pd.DataFrame:
    """The mean of every metric, explainer and refinement with its interval over images.

    Args:
        scores: the long table.
        **labels: of the rows.

    Returns:
        Tidy: network, metric, name (BP + SG), explainer (BP), refinement (SG), mean, low, high, images, missing.
    """
    rows = []
    for cell, found in stats.summary(scores, ("network", "metric", "explainer"), MEAN, **labels):
        explainer, _, refinement = cell["explainer"].partition(" + ")
        own = {"name": cell["explainer"], "explainer": explainer, "refinement": refinement or "none"}
        interval = dict(zip(("mean", "low", "high"), map(float, found.shown), strict=True))
        rows.append({**cell, **own, **interval, "images": found.images, "missing": sum(found.missing)})
    return pd.DataFrame(rows)


def apart(scores: Scores) -> Callable[[dict, dict], Estimate]:
    """The difference of two rows of `table` of one network and metric, on the same images.

    Args:
        scores: the long table of the run.
    """

    def difference(one: dict, other: dict) -> Estimate:
        of = scores.where(network=one["network"], metric=one["metric"], variant=None)
        dataset = of.labels("dataset")[0]
        return stats.paired(of, {"explainer": one["name"]}, {"explainer": other["name"]}, dataset=dataset)

    return difference


def typical_gain(refinement: str, names: Sequence[str], over: str = "none") -> Statistic:
    """The median over explainers of what a refinement gains over another one: above 0 where most of them gain.

    Args:
        refinement: of `REFINEMENTS`.
        names: of the explainers.
        over: the other refinement.
    """

    def middle(*samples: Sample) -> Tensor:
        means = torch.stack([sample.mean() for sample in samples], -1)
        return (means[..., : len(names)] - means[..., len(names) :]).quantile(0.5, dim=-1)

    cells = [{"explainer": named(name, way)} for way in (refinement, over) for name in names]
    return Statistic(middle, tuple(cells), f"median gain of {refinement} over {over}")


def printed_gain(means: Mapping[str, float], refinement: str, names: Sequence[str], over: str = "none") -> float:
    """`typical_gain` of what the paper prints, where its means are given by name ("BP + SG")."""
    return median([means[named(name, refinement)] - means[named(name, over)] for name in names])


def gains_alike(one: Mapping[str, Any], other: Mapping[str, Any], names: Sequence[str]) -> Statistic:
    """Spearman's correlation, over explainers and refinements, of what a refinement changes in two measures.

    Of two measures that have nothing to do with each other it is above 0.6 for one in a hundred: what the
    refinements of one explainer gain over it is not independent.

    Args:
        one: labels of the rows of a measure.
        other: of the other.
        names: of the explainers.
    """

    def correlation(*samples: Sample) -> Tensor:
        means = torch.stack([sample.mean() for sample in samples], -1).unflatten(-1, (2, len(names), len(REFINEMENTS)))
        gains = (means[..., 1:] - means[..., :1]).flatten(-2)
        return stats.spearman(gains[..., 0, :], gains[..., 1, :])

    explained = [named(name, way) for name in names for way in REFINEMENTS]
    cells = [{"explainer": explainer, **labels} for labels in (one, other) for explainer in explained]
    return Statistic(correlation, tuple(cells), "rank correlation of gains", within=(-1.0, 1.0))
