"""Networks trained on different parts of the data (ReCo and MeGe, section 3.3): do they give the same reasons?

Every example is unseen by one network of a cross-training and seen by the others. The unseen network's explanation is
compared with each other's, and the distance belongs to a set by what the two networks answer (eq. 5 and 6):

    S=   both are right              S≠   exactly one is right              no row: both are wrong

MeGe and ReCo are statistics of these two sets: `METRICS["MeGe"].summary`, `METRICS["ReCo"].summary`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import pandas as pd
import torch
from torch import Tensor, nn

from faithlab import outputs, stats
from faithlab.metrics import METRICS, Metric, consistency, evaluate
from faithlab.scores import Scores
from faithlab.task import Task
from faithstudy.claims import Part, above, premise
from faithstudy.data import datasets
from faithstudy.data.sets import LabelledSet
from faithstudy.networks import folds, training
from faithstudy.trials import tasks
from faithstudy.trials.tasks import Chosen

SETS = ("S=", "S≠")
"""What the rows of pairs are called in the long table, in its column `metric`."""


class Family(NamedTuple):
    """The networks of a cross-training with examples of the training split.

    Attributes:
        networks: k tasks with the same inputs.
        unseen: [B] int64, the network that was not trained on each example.
        right: [B, k] bool, whether each network is right.
        name: for tables: what all of them are.
        training_seed: for tables: the seed of the set of folds.
    """

    networks: tuple[Task, ...]
    unseen: Tensor
    right: Tensor
    name: str
    training_seed: int

    def some(self, examples: Tensor) -> "Family":
        """The same networks with some of the examples, by their places [n]."""
        networks = tuple(task.part(examples) for task in self.networks)
        return self._replace(networks=networks, unseen=self.unseen[examples], right=self.right[examples])


def family(
    recipes: Sequence[training.Recipe],
    images: int | None,
    *,
    networks: Sequence[nn.Module] | None = None,
    name: str | None = None,
    training_seed: int = 0,
    about: Literal["label", "prediction"] = "prediction",
) -> Family:
    """The networks of a cross-training and the first examples that they share.

    Args:
        recipes: of the folds, see `faithstudy.networks.folds`.
        images: how many examples; None: all.
        networks: in place of those of the recipes, such as the same ones with other weights.
        name: what tables call them; None: the model of the recipes.
        training_seed: for tables: the seed of the set of folds.
        about: the class that is explained: what each network predicts itself, as in section 3.1, or the label.
    """
    data = datasets.load(recipes[0].data, "train", **recipes[0].data_options)
    examples = torch.arange(min(images or len(data), recipes[0].limit or len(data), len(data)))
    networks = [training.trained(recipe) for recipe in recipes] if networks is None else networks
    device = next(networks[0].parameters()).device
    x, y, name = data.model_inputs(examples).to(device), data.labels[examples], name or recipes[0].model
    found, right = [], []
    for number, (recipe, network) in enumerate(zip(recipes, networks, strict=True)):
        network = network.to(memory_format=torch.channels_last)
        predicted = training.logits(network, x).argmax(1)
        right.append(predicted.cpu() == y)
        target = predicted if about == "prediction" else y.to(device)
        labels = {"network": f"{name} fold {number}", "training_seed": recipe.seed}
        dataset = f"{recipe.data} train"
        found.append(Task(network, x, target, data.features(), dataset=dataset, images=examples, **labels))
    unseen = folds.unseen(recipes, examples, len(data))
    return Family(tuple(found), unseen, torch.stack(right, 1), name, training_seed)


def recognised(family: Family, test: LabelledSet, **labels: Any) -> Scores:
    """Which share of the networks is right about each example of the test split, with the metric "accuracy"."""
    hits = [
        outputs.correct(training.logits(task.model, test.model_inputs()).cpu(), test.labels) for task in family.networks
    ]
    about = {"network": family.name, "training_seed": family.training_seed, "metric": "accuracy", **labels}
    dataset = family.networks[0].dataset.replace("train", "test")
    return Scores.of(torch.stack(hits).mean(0), images=range(len(test)), dataset=dataset, **about)


def cross_trained(
    metrics: Mapping[str, Metric],
    family: Family,
    explainers: Mapping[str, Chosen],
    *,
    signed: bool = False,
    batch_size: int = 500,
    **labels: Any,
) -> Scores:
    """The distances that MeGe and ReCo are made of, and what other metrics say of each of the networks.

    Args:
        metrics: by name. Of those that need cross-trained networks the distances are asked, once for all of them; those
            of one network are asked of each on its own explanations; others do not apply and have no rows.
        family: networks and examples.
        explainers: what tables call them, and what they are. A "random" map is drawn anew for every network: the same
            one for all would agree perfectly. What others draw is the same for all.
        signed: compare the relevance with its sign; else its absolute value, which says how much a pixel matters.
        batch_size: examples at a time; one map of each explainer and network is held.
        **labels: of all rows, see `faithlab.scores.LABELS`.

    Returns:
        The long table: a row per pair of explanations, with the metric "S=" or "S≠", the network's number as `pair`,
        and all folds together as one network; rows of other metrics are of single folds.

    Raises:
        ValueError: metrics that compare explanations in different ways; no pair in one of the two sets.
    """
    compared = list(dict.fromkeys(m.compute for m in metrics.values() if m.needs == "cross-trained networks"))
    if len(compared) > 1:
        raise ValueError(
            f"{', '.join(metrics)} compare explanations in {len(compared)} ways; ask them in as many calls, and tell "
            "their rows apart by a variant"
        )
    alone = {name: metric for name, metric in metrics.items() if metric.needs == "one network"}
    tables = []
    for part in torch.arange(len(family.unseen)).split(batch_size):
        some = family.some(part)
        maps = attributions(some, explainers)
        for explainer in explainers if compared else ():
            every = torch.stack([of[explainer] for of in maps])  # [k, b, F]
            every = (every if signed else every.abs()).unflatten(-1, some.networks[0].x.shape[-2:])
            distances = compared[0](every, some.unseen).cpu()
            tables += _pairs(distances, some, explainer=explainer, **labels)
        for task, of in zip(some.networks, maps, strict=True) if alone else ():
            tables.append(evaluate(alone, task, of, **labels))
    found = Scores.concat(tables)
    for absent in set(SETS) - set(found.labels("metric")) if compared else ():
        raise ValueError(
            f"none of {family.name}'s pairs of explanations belongs to {absent} "
            f"({', '.join(f'{share:.0%}' for share in family.right.double().mean(0))} of the {len(family.unseen)} "
            "examples are predicted rightly); take more examples, or train longer"
        )
    return found


def attributions(family: Family, explainers: Mapping[str, Chosen]) -> list[dict[str, Tensor]]:
    """The explanations of every network, by explainer, [B, F] each; arguments as in `cross_trained`."""
    found = []
    for number, task in enumerate(family.networks):
        own = tasks.with_options(explainers)
        for name, (explainer, options) in own.items():
            if explainer == "random":
                own[name] = explainer, {**options, "seed": options.get("seed", 0) + number}
        found.append(tasks.attributions(task, own))
    return found


def _pairs(distances: Tensor, family: Family, **labels: Any) -> list[Scores]:
    """Rows of the distances [b, k] to the unseen network's explanation, by set."""
    own = family.right.gather(1, family.unseen[:, None])
    other = torch.arange(family.right.shape[1]) != family.unseen[:, None]
    tables = []
    for name, which in zip(SETS, (family.right & own, family.right ^ own), strict=True):
        image, pair = (which & other).nonzero(as_tuple=True)
        if len(image):
            first = family.networks[0]
            about = {"dataset": first.dataset, "network": family.name, "training_seed": family.training_seed}
            values, images = distances[image, pair], first.images[image]
            tables.append(Scores.of(values, images=images, pairs=pair, **{**about, "metric": name, **labels}))
    return tables


def known(scores: Scores, *sets: str, **labels: Any) -> list[Part]:
    """Premises: the networks recognise these data sets.

    The bar is an accuracy of 3 / (classes + 2): below it more than a third of the right answers would be luck, and S=
    no set of pairs that know the example.

    Args:
        scores: with rows of `recognised`.
        *sets: names of data sets in `faithstudy.networks.folds.TASKS`.
        **labels: of the rows, such as the network.
    """
    parts = []
    for data in sets:
        bar, name = 3 / (folds.TASKS[data].classes + 2), folds.TASKS[data].name
        name = f"{labels.get('network', 'the networks')} recognise{'s' * ('network' in labels)} {name}"
        parts.append(premise(above(scores, bar, metric="accuracy", dataset=f"{data} test", name=name, **labels)))
    return parts


MEASURES = {"ReCo": METRICS["ReCo"].summary, "MeGe": METRICS["MeGe"].summary}


def summary(scores: Scores) -> pd.DataFrame:
    """ReCo and MeGe of every family and explainer in the names of the paper's tables, for a reader.

    Returns:
        Tidy: dataset, model, condition, explainer, measure (ReCo, MeGe, and ReCo_printed: the rates as eq. 7 prints
        them), mean, low, high (none for ReCo_printed), same and different (sizes of the two sets), missing (pairs
        without a distance).
    """
    pairs = scores.where(metric=list(SETS))
    rows = []
    by = ("dataset", "network", "variant", "level", "explainer")
    for cell in dict.fromkeys(tuple(b.labels.get(name) for name in by) for b in pairs):
        cell = dict(zip(by, cell, strict=True))
        own = pairs.where(**cell)
        same, different = (torch.cat([b.values[:, 0] for b in own.where(metric=name)]) for name in SETS)
        known = [values[~values.isnan()] for values in (same, different)]
        missing = len(same) + len(different) - sum(map(len, known))
        data = cell["dataset"].removesuffix(" train")
        condition = f"{cell['variant'] or 'normal'}" + ("" if cell["level"] is None else f" {cell['level']:.0%}")
        head = (folds.TASKS[data].name if data in folds.TASKS else data, cell["network"], condition, cell["explainer"])
        end = (*map(len, known), missing)
        for measure, of in MEASURES.items():
            needed = known[: len(of.over)]  # ReCo has both sets, MeGe the first
            shown = stats.estimate(own, of).shown if all(map(len, needed)) else (float("nan"),) * 3
            rows.append((*head, measure, *map(float, shown), *end))
        rows.append((*head, "ReCo_printed", consistency.reco(*known, "printed"), float("nan"), float("nan"), *end))
    names = ["dataset", "model", "condition", "explainer", "measure", "mean", "low", "high"]
    return pd.DataFrame(rows, columns=[*names, "same", "different", "missing"])
