"""The examination: every metric in every trial to which the right answer is known, from chance (0) to ideal (1).

A trial asks a metric of explanations of which it is known what is better. `examine` asks, and returns the long table;
`trust` reads the table, and says for each metric and trial::

    T = (pairs in the right order - pairs in the wrong one) / pairs        1 ideal, 0 chance, -1 always wrong

so that a tie counts one half of a right one. An undefined score is a tie, and is counted. T has two sizes. *All images*
compares means over the images: can the mean be trusted? *One image* compares the scores of a single image, and is
averaged over them: can the number of an image be trusted?

The trials::

    Order      of two shares of noise, the smaller is better                            Zheng et al., 2024, section 5
    Chance     an explanation is better than a random order of the same features        Wu et al., 2024, section 5.2
    Truth      of two shares of the true features that come first, the larger is better; and all of them are better
               than any explanation of the same input
    Own model  the explanation of this network is better than the one, by the same explainer, of a stranger: the
               network with the weights of its last layers drawn anew                   Adebayo et al., 2018
    Gaming     the order that the metric likes best is better than any explanation, for the other metrics, with one vote
               for each family of them                                                  Wang and Wang, 2024
    Stand-in   two references rank two explainers alike                                 Marchadour et al., 2025
    Repeat     two halves of the images, with other random draws, rank two explainers alike; of one image: other draws

A metric *passed* where the interval of T lies above 0.8, *failed* where it lies below 0.5; else the images leave it
*open*. T are never added up. No trial names a metric: each is put to all that are given.
"""

import dataclasses
import inspect
import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from tqdm import tqdm

from faithlab import engine, masks, rng, segments, stats, validation
from faithlab.explainers.degrade import degrade
from faithlab.metrics import METRICS, Metric, evaluate, load, obstacles
from faithlab.scores import Block, Label, Scores
from faithlab.stats import Sample, Statistic, sequential
from faithlab.task import Task
from faithstudy.claims.verdicts import LEAST
from faithstudy.networks.degradation import layers, randomised
from faithstudy.trials import adversarial, optimum
from faithstudy.trials.chance import RANDOM
from faithstudy.trials.other_libraries import NOT_ASKED, Peer
from faithstudy.trials.tasks import Chosen
from faithstudy.trials.tasks import attributions as explained
from faithstudy.trials.truth import partial_oracle

TRIALS = ("Order", "Chance", "Truth", "Own model", "Gaming", "Stand-in", "Repeat")
"""The judged trials."""

BUILT = "Truth"
"""The trial that has a network of its own, whose truth is known by construction, and says nothing of another one."""

STAYING = ("Stand-in", "Repeat")
"""The trials that ask the same twice, and whether the answer stays."""

TELLING = tuple(trial for trial in TRIALS if trial not in (BUILT, *STAYING))
"""The trials that have a right answer for the network itself; numbers that never ask it pass some of them."""

SIZES = ("all images", "one image")
"""Whose scores are compared: means over the images, or those of a single one."""

PASSED, FAILED, OPEN, NONE = "passed", "failed", "open", "does not apply"
PASS, FAIL = 0.8, 0.5

LEVELS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
KNOWN = (1.0, 0.75, 0.5, 0.25)
"""Shares of the true features that partial oracles know, the best first."""
OTHER_DRAW = 1
STRANGER = 0.2
"""Cohen's kappa of the classes that two networks recognise, below which neither knows what the other knows."""
HALVES = 16
"""Ways to cut the images into halves."""
FEW = 20
"""With fewer images no interval is drawn where resamples do not differ."""

SHUFFLED, RANDOMISED, ORACLE, RIVAL, SEARCHED, BEST = (
    "shuffled",
    "layers randomised",
    "partial oracle",
    "beside the oracle",
    "searched",
    "best order",
)
"""Variants of the long table."""


@dataclass(frozen=True)
class Examination:
    """What `examine` found.

    Attributes:
        scores: the long table.
        trust: of `trust`.
        obstacles: why a metric was not put to a trial, by metric and trial.
    """

    scores: Scores
    trust: pd.DataFrame
    obstacles: Mapping[tuple[str, str], str]


# Asking


def examine(
    metrics: Mapping[str, Metric],
    task: Task,
    explainers: Mapping[str, Chosen],
    *,
    truth: Sequence[tuple[Task, Tensor]] | Scores = (),
    levels: Sequence[float] = LEVELS,
    seeds: Sequence[int] = (0,),
    randomised_share: float = 0.3,
    baselines: Sequence[str] = ("zero", "mean", "blur"),
    budget: int = 2000,
    gamed: int | None = None,
) -> Examination:
    """Put metrics to all trials.

    Args:
        metrics: by name, such as `faithlab.metrics.METRICS`.
        task: the inputs and the network; its baselines are those of Stand-in.
        explainers: by name, two or more, as in `faithstudy.trials.tasks.attributions`.
        truth: tasks with known truth, and which features decide, [B, F] bool: see `faithstudy.trials.truth`. Or what
            `oracles` has told of these metrics already: Truth has networks of its own.
        levels: shares of noise of Order, from none (0) upwards.
        seeds: of noise, random orders, partial oracles and randomised layers.
        randomised_share: of the layers, at least, in Own model: see `stranger`.
        baselines: of Stand-in, by their names in the task; a metric's own is added.
        budget: forwards for each input and metric, in Gaming.
        gamed: the first so many inputs are those of Gaming; None: all.

    Raises:
        ValueError: fewer than two explainers, and what the explainers and metrics raise; see `check`.
    """
    check(metrics, task)
    attributions = explained(task, explainers)
    check_explanations(attributions, task)
    other = stranger(task, randomised_share, seed=seeds[0])
    trials = [
        ("Order, Chance, Own model", None),
        *((f"Truth {k + 1}", pair) for k, pair in enumerate(() if isinstance(truth, Scores) else truth)),
        ("Stand-in", None),
        ("Repeat", None),
        ("Gaming", None),
    ]
    why = reasons(metrics, task)
    asked = {name: metric for name, metric in metrics.items() if not why.get((name, TRIALS[0]))}
    if not asked:
        raise ValueError("no metric applies: " + "; ".join(f"{m}: {text}" for (m, _), text in why.items()))
    if other.model is None:
        why |= {(name, "Own model"): other.reason for name in asked}
    tables = []
    for name, pair in (bar := tqdm(trials, mininterval=5)):
        bar.set_description(name)
        if name.startswith("Order"):
            of = dataclasses.replace(task, model=other.model, retrained={})
            elsewhere = explained(of, explainers) if other.model is not None else {}
            tables.append(directly(asked, task, attributions, elsewhere, levels=levels, seeds=seeds))
            table = tables[0]
        elif pair is not None:
            tables.append(oracles(asked, *pair, explainers={}, seeds=seeds))
        elif name == "Stand-in":
            of = {m: x for m, x in asked.items() if (m, name) not in why}
            tables += stand_ins(of, task, attributions, baselines, why) if of else []
        elif name == "Repeat":
            tables += other_draws(asked, task, attributions)
        else:
            of = {m: x for m, x in asked.items() if (m, name) not in why}
            tables += games(of, task, attributions, table, why, budget=budget, count=gamed, seed=seeds[0])
    if isinstance(truth, Scores):
        tables.append(Scores([block for block in truth if block.labels["metric"] in asked]))
    for name, metric in asked.items():
        if isinstance(truth, Scores):
            obstacle = [] if name in truth.labels("metric") else ["it was not asked of inputs with known truth"]
        else:
            obstacle = [metric.obstacle(known) for known, _ in truth] or ["no inputs with known truth were given"]
        if obstacle and all(obstacle):
            why[name, "Truth"] = obstacle[0]
    scores = Scores.concat(tables)
    return Examination(scores, trust(scores, metrics, why), why)


def examine_kinds(
    metrics: Mapping[str, Metric],
    kinds: Mapping[str, Sequence[tuple[Task, Mapping[str, Chosen]]]],
    *,
    truth: Sequence[tuple[Task, Tensor]] = (),
    seeds: Sequence[int] = (0,),
    kept: Callable[[str, Callable[[], Any]], Any] = lambda step, make: make(),
    **options: Any,
) -> dict[str, Examination]:
    """`examine` networks of several kinds, such as convolutional ones and transformers.

    The networks of a kind are judged together, and count equally. Truth has networks of its own: it is asked once, and
    says the same in every kind to which a metric applies.

    Args:
        metrics: by name.
        kinds: by kind, its networks with their explainers; every network has its own training seed or name.
        truth: as in `examine`.
        seeds: as in `examine`.
        kept: makes a step, or finds it where an earlier run was killed: `faithstudy.run.Run.kept`.
        **options: the others of `examine`.
    """
    known = [kept(f"truth {k}", partial(oracles, metrics, *pair, seeds=seeds)) for k, pair in enumerate(truth)]
    known = Scores.concat(known) if known else ()
    found = {}
    for kind, networks in kinds.items():
        parts = [
            kept(f"{kind} {k}", partial(examine, metrics, *network, truth=known, seeds=seeds, **options))
            for k, network in enumerate(networks)
        ]
        # A trial applies to a kind where it applies to one of its networks.
        why = {key: reason for key, reason in parts[0].obstacles.items() if all(key in p.obstacles for p in parts)}
        rest = [Scores([b for b in p.scores if b.labels.get("variant") != ORACLE]) for p in parts[1:]]
        scores = Scores.concat([parts[0].scores, *rest])
        found[kind] = parts[0] if len(parts) == 1 else Examination(scores, trust(scores, metrics, why), why)
    return found


def sampled(
    metrics: Mapping[str, Metric],
    task: Task,
    explainers: Mapping[str, Chosen],
    *,
    truth: tuple[Task, Tensor],
    levels: Sequence[float] = LEVELS,
    seeds: Sequence[int] = (0,),
) -> Scores:
    """Some of the scores that `examine` gives, of a few inputs: Order, Chance and Truth, where no input asks another.

    Metrics of other libraries are left out, and those that would have to retrain a network. Arguments as in `examine`.
    """
    why = reasons(metrics, task)
    own = {name: m for name, m in metrics.items() if (name, TRIALS[0]) not in why and not isinstance(m, Peer)}
    direct = directly(own, task, explained(task, explainers), {}, levels=levels, seeds=seeds)
    return direct + oracles(own, *truth, seeds=seeds)


def obstacles_in(trust: pd.DataFrame) -> dict[tuple[str, str], str]:
    """Why metrics were not put to trials, by metric and trial, as `trust` says it of one kind of network."""
    rows = trust[(trust["size"] == SIZES[0]) & (trust["verdict"] == NONE)]
    return rows.set_index(["metric", "trial"])["why"].to_dict()


def joined(kinds: Mapping[str, Examination | Scores]) -> Scores:
    """One long table of all kinds; Truth, which is the same in all of them, stands in it once."""
    tables = [of.scores if isinstance(of, Examination) else of for of in kinds.values()]
    seen: set[tuple] = set()
    return Scores(b for table in tables for b in table if b.key not in seen and not seen.add(b.key))


def tied(names: Sequence[str], low: Sequence[float], high: Sequence[float], value: Sequence[float]) -> list[list[str]]:
    """Names by a value, the lowest first, in groups that its intervals do not tell apart.

    A group is what the interval of its first overlaps with.

    Args:
        names: of what is ordered.
        low: ends of the intervals, [N].
        high: likewise.
        value: in between.
    """
    rows = sorted(zip(value, low, high, names, strict=True), key=lambda row: row[0])
    groups: list[list[str]] = []
    top = float("-inf")
    for _, least, most, name in rows:
        if groups and least <= top:
            groups[-1].append(name)
        else:
            groups.append([name])
            top = most
    return groups


def reasons(metrics: Mapping[str, Metric], task: Task) -> dict[tuple[str, str], str]:
    """Why metrics cannot be put to any trial, by metric and trial."""
    found, features = {}, segments.count(task.segments)
    for name, metric in metrics.items():
        why = metric.obstacle(task)
        if metric.network == "retrained" and metric.needs == "one network":
            why = "a network would have to be retrained for every explanation that a trial makes"
        if why:
            found |= dict.fromkeys(((name, trial) for trial in TRIALS), why)
        elif isinstance(metric, Peer):
            found |= {(name, trial): text for trial, text in NOT_ASKED.items()}
        elif not metric.forward_passes(features):
            found[name, "Stand-in"] = "it asks the network nothing, so that nothing stands in"
    return found


@dataclass(frozen=True)
class Stranger:
    """A network that has forgotten what it knew.

    Attributes:
        model: the network; None where nothing makes it forget.
        drawn: layers whose weights were drawn anew.
        layers: all layers that have weights.
        agreement: share of the inputs to which it gives the same class as before.
    """

    model: nn.Module | None
    drawn: int
    layers: int
    agreement: float

    def __str__(self) -> str:
        return f"{self.drawn} of {self.layers} layers; {self.agreement:.0%}"

    @property
    def reason(self) -> str:
        """Why there is none."""
        if not self.layers:
            return "the network has no layers whose weights could be drawn anew"
        return (
            f"with all of its {self.layers} layers drawn anew, the network gives {self.agreement:.0%} of the inputs "
            "the class that it gave before, so that nobody knows whose explanation is better"
        )


def stranger(task: Task, share: float, *, seed: int = 0) -> Stranger:
    """The network with the weights of its last layers drawn anew, until its classes say nothing of what it said before.

    Only then is it known that its explanations are no better than the network's own: one that recognises the same
    inputs may explain them as well or better. So a share of the layers is where this starts, not where it ends. The
    classes are those of these inputs; agreement is counted beyond that of chance, as Cohen's kappa.

    Args:
        task: the inputs and the network, which is not changed.
        share: of the layers, at least.
        seed: of the weights.
    """

    def classes(model: nn.Module) -> Tensor:
        return engine.classifier(model)(task.x).argmax(1)

    own, number = classes(task.model), len(layers(task.model))
    first = max(1, int(masks.counts([share], number))) if number else 1
    agreement = 1.0
    for drawn in range(first, number + 1):
        model = randomised(task.model, drawn / number, keep=False, seed=seed)
        other = classes(model)
        agreement = (own == other).double().mean().item()
        if stats.kappa(own, other) < STRANGER:
            return Stranger(model, drawn, number, agreement)
    return Stranger(None, number, number, agreement)


def directly(
    metrics: Mapping[str, Metric],
    task: Task,
    attributions: Mapping[str, Tensor],
    elsewhere: Mapping[str, Tensor],
    *,
    levels: Sequence[float] = LEVELS,
    seeds: Sequence[int] = (0,),
) -> Scores:
    """What Order, Chance and Own model compare, asked together so that equal masks are asked once.

    Args:
        metrics: by name.
        task: the inputs and the network.
        attributions: by explainer, [B, F].
        elsewhere: those of a stranger, about the same class; may be empty.
        levels: as in `examine`.
        seeds: as in `examine`.
    """
    rows: list[tuple[dict[str, Label], Tensor]] = [({"explainer": e}, a) for e, a in attributions.items()]
    options = {"images": task.images, "present": task.present}
    for seed in seeds:
        for explainer, attribution in attributions.items():
            for level in levels[1:]:
                labels = {"explainer": explainer, "variant": SHUFFLED, "level": level, "noise_seed": seed}
                rows.append((labels, degrade(attribution, level, seed=seed, **options)))
        random = explained(task, {RANDOM: ("random", {"seed": seed})})[RANDOM]
        rows.append(({"explainer": RANDOM, "noise_seed": seed}, random))
    rows += [({"explainer": e, "variant": RANDOMISED}, a) for e, a in elsewhere.items()]
    return _asked(metrics, task, rows)


def oracles(
    metrics: Mapping[str, Metric],
    task: Task,
    regions: Tensor,
    explainers: Mapping[str, Chosen] = {},
    *,
    seeds: Sequence[int] = (0,),
) -> Scores:
    """What Truth compares: partial oracles, and explanations beside them.

    Args:
        metrics: by name; those that cannot be put to this task have no rows.
        task: inputs with known truth.
        regions: [B, F] bool, the features that decide.
        explainers: rivals of the oracle that knows all; none where an explanation may know more than a set.
        seeds: of what an oracle does not know.
    """
    rows = [
        (
            {"explainer": "oracle", "variant": ORACLE, "level": share, "noise_seed": seed},
            partial_oracle(regions, share, task.images, seed=seed).to(task.x.device),
        )
        for seed in seeds
        for share in KNOWN
    ]
    rivals = explained(task, explainers) if explainers else {}
    rows += [({"explainer": e, "variant": RIVAL}, a) for e, a in rivals.items()]
    return _asked(metrics, task, rows)


def stand_ins(
    metrics: Mapping[str, Metric],
    task: Task,
    attributions: Mapping[str, Tensor],
    baselines: Sequence[str],
    why: dict[tuple[str, str], str],
) -> list[Scores]:
    """The same explanations under other references; fills in why not."""
    there = [name for name in dict.fromkeys(baselines) if name in task.baselines]
    if len({id(task.baselines[name]) for name in there}) < 2:
        why |= dict.fromkeys(((name, "Stand-in") for name in metrics), "these inputs have a single reference")
        return []
    others = {name: {m: x.given(baseline=name) for m, x in metrics.items() if x.baseline != name} for name in there}
    return [evaluate(of, task, attributions) for of in others.values() if of]


def other_draws(metrics: Mapping[str, Metric], task: Task, attributions: Mapping[str, Tensor]) -> list[Scores]:
    """The same explanations with other random numbers, for metrics that draw some by an argument `seed`."""
    own = {name: m for name, m in metrics.items() if not isinstance(m, Peer)}
    drawn = {name: m.given(seed=1) for name, m in own.items() if adversarial.draws_numbers(m)}
    return [evaluate(drawn, task, attributions, draw=OTHER_DRAW)] if drawn else []


def games(
    metrics: Mapping[str, Metric],
    task: Task,
    attributions: Mapping[str, Tensor],
    table: Scores,
    why: dict[tuple[str, str], str],
    *,
    budget: int,
    count: int | None = None,
    seed: int = 0,
) -> list[Scores]:
    """The orders that metrics like best, put to all metrics, and what no order exceeds; fills in why not.

    A search starts, of each input, at the explanation that the metric likes best, and is the same for all metrics. Of
    those whose best order `faithlab.search` can look for in as many forwards, that order stands beside it: `report` has
    it, and the trial has not. Sums of probabilities are bounded (`faithstudy.trials.optimum.bound`): those rows are of
    the metric `optimum.bound_name`.

    Args:
        metrics: by name.
        task: the inputs and the network.
        attributions: by explainer, [B, F].
        table: with the metrics of these explanations.
        why: by metric and trial.
        budget: forwards for each input and metric.
        count: the first so many inputs; None: all.
        seed: of the search.
    """
    part = task if count is None else adversarial.part(task, torch.arange(min(count, len(task.x))))
    families = {name: adversarial.kin(metric) for name, metric in metrics.items()}
    rows, stacked = [], torch.stack([a[: len(part.x)] for a in attributions.values()])  # [K, B, F]
    values, beside = turned(table, metrics), []
    for name, metric in (bar := tqdm(metrics.items(), mininterval=5, leave=False)):
        bar.set_description(f"what {name} likes best")
        if not adversarial.sees_only_order(metric):
            why[name, "Gaming"] = "it sees magnitudes, so that an order says nothing to it"
        elif len(set(families.values()) - {families[name]}) < 1:
            why[name, "Gaming"] = "no metric of another family was asked"
        elif (each := metric.forward_passes(stacked.shape[-1])) * adversarial.LEAST > budget:
            why[name, "Gaming"] = f"{budget} forwards buy too few explanations to search among: one costs {each}"
        else:
            of = [_values(values, metric=name, explainer=e)[: len(part.x)] for e in attributions]
            favourite = torch.stack(of).nan_to_num(nan=-torch.inf).argmax(0)  # [B]
            start = stacked[favourite.to(stacked.device), torch.arange(len(part.x), device=stacked.device)]
            found = adversarial.search(metric, part, start, budget=budget, seed=seed)
            rows.append(({"explainer": name, "variant": SEARCHED}, found.to(start)))
            if optimum.searchable(metric) and optimum.RANGE[metric.output]:
                beside.append(optimum.bound(name, metric, part, best=name).labelled(variant=SEARCHED))
            if optimum.searchable(metric) and (how := optimum.affordable(metric, stacked.shape[-1], budget)):
                (order,) = optimum.best_orders({name: metric}, part, seed=seed, **how)[0].values()
                beside.append(_asked({name: metric}, part, [({"explainer": name, "variant": BEST}, order.to(start))]))
    return [_asked(metrics, part, rows), *beside] if rows else []


def _asked(metrics: Mapping[str, Metric], task: Task, rows: Sequence[tuple[Mapping[str, Label], Tensor]]) -> Scores:
    """Metrics of attributions, each with labels of its own; all asked together."""
    found = evaluate(metrics, task, {str(k): attribution for k, (_, attribution) in enumerate(rows)})
    return Scores(dataclasses.replace(b, labels={**b.labels, **rows[int(b.labels["explainer"])][0]}) for b in found)


# What is wrong with a metric or an explanation, before the work starts


CHECKED = 3
"""How often `check` asks a metric about its inputs."""


def check(metrics: Mapping[str, Metric], task: Task) -> None:
    """Ask metrics of a random explanation of a few inputs, and of each half of them beside others of the other half.

    Raises:
        ValueError: a metric that gives other shapes than it declares, infinities, or nothing but NaN, that fails, or
            whose answer for an input depends on the others; the message says which.
    """
    few = adversarial.part(task, torch.arange(min(4, len(task.x))))
    random = explained(few, {RANDOM: "random"})[RANDOM]
    first = torch.arange(len(random), device=random.device) < len(random) / 2
    halves = [(one, torch.where(one[:, None], random, random.roll(len(random) // 2, 0))) for one in (first, ~first)]
    for name, metric in metrics.items():
        if obstacles({name: metric}, few, {RANDOM: random}):
            continue
        try:
            value = metric(few, random)
            other = torch.cat([metric(few, mixed)[one] for one, mixed in halves])
            depends = _differ(value, other) >= max(1, len(random) / 2) and _differ(value, metric(few, random)) == 0
        except Exception as error:
            raise ValueError(f"the metric {name!r} fails on a random explanation of a few inputs: {error}") from error
        if bool(value.isnan().all()):
            raise ValueError(
                f"the metric {name!r} gave nothing but NaN for a random explanation of a few inputs; expected NaN only "
                "where a score is not defined"
            )
        if depends:  # not by chance, nor by rounding that turns a hit
            raise ValueError(
                f"the metric {name!r} says something else of an explanation when those of the other inputs change; "
                "inputs are asked in blocks, so that an answer must not depend on the others: do not divide by what is "
                "largest in a batch, or take its mean away"
            )


def _differ(one: Tensor, other: Tensor) -> int:
    """For how many inputs two answers of a metric differ by more than rounding in few digits."""
    one, other = (x.double().reshape(len(x), -1).nan_to_num() for x in (one, other))
    apart = (one - other).abs().amax(1)
    return int((apart > 0.05 * torch.cat([one, other]).abs().amax()).sum())


def check_explanations(attributions: Mapping[str, Tensor], task: Task) -> None:
    """Look at explanations.

    Raises:
        ValueError: fewer than two explainers; NaN; explanations that are the same for all features of every input.
    """
    if len(attributions) < 2:
        raise ValueError(f"expected two explainers or more, to be ranked, but got {', '.join(attributions) or 'none'}")
    for name, attribution in attributions.items():
        try:
            validation.attribution(attribution)
        except ValueError as error:
            raise ValueError(f"the explainer {name!r}: {error}") from None
        if bool((attribution == attribution[:, :1]).all()):
            raise ValueError(f"the explainer {name!r} says the same of all features of every input: it orders nothing")


# T


Kernel = Callable[[Tensor], Tensor]
"""Scores of the cells of a question, [..., cells], higher is better -> T [...]."""


@dataclass(frozen=True)
class Question:
    """What a trial asks of a metric.

    Attributes:
        cells: labels of what is compared.
        kernel: T of their scores.
        halves: the kernel compares two groups of cells, asked on two halves of the images.
    """

    cells: tuple[Mapping[str, Label], ...]
    kernel: Kernel
    halves: bool = False

    def statistic(self, name: str) -> Statistic:
        """T of all images."""

        def of_means(*samples: Sample) -> Tensor:
            return self.kernel(torch.stack([sample.mean() for sample in samples], -1))

        def of_halves(*samples: Sample) -> Tensor:
            values = torch.stack([sample.values[:, 0] for sample in samples], -1)  # [images, cells]
            chosen = rng.uniform(0, torch.arange(HALVES), torch.zeros(1, dtype=torch.int64), len(values))[:, 0]
            first = (stats.rank(chosen) <= len(values) / 2).double()  # [HALVES, images]
            group, found = values.shape[1] // 2, []
            for half in first:
                parts = [samples[0].weights * half, samples[0].weights * (1 - half)]
                both = [w @ v / w.sum(1, keepdim=True) for w, v in zip(parts, values.split(group, 1), strict=True)]
                found.append(self.kernel(torch.cat(both, -1)))
            return torch.stack(found).nanmean(0)

        return Statistic(of_halves if self.halves else of_means, self.cells, name, steps=True)


def signs(differences: Tensor) -> Tensor:
    """1, 0 or -1; what is undefined, or differs by rounding alone, is a tie."""
    return differences.nan_to_num(nan=0.0).round(decimals=9).sign()


def in_pairs(better: Sequence[int], worse: Sequence[int], weights: Tensor | None = None) -> Kernel:
    """T of pairs of cells, of which the first shall be better."""
    weights = torch.full((len(better),), 1 / len(better), dtype=torch.float64) if weights is None else weights
    return lambda values: signs(values[..., list(better)] - values[..., list(worse)]) @ weights


def alike(groups: int) -> Kernel:
    """T of groups of cells that shall rank their members alike: pairs of members, in pairs of groups."""

    def kernel(values: Tensor) -> Tensor:
        grouped = values.unflatten(-1, (groups, -1))
        one, other = zip(*itertools.combinations(range(grouped.shape[-1]), 2), strict=True)
        order = signs(grouped[..., list(one)] - grouped[..., list(other)])  # [..., groups, pairs]
        return torch.stack(
            [(order[..., a, :] * order[..., b, :]).mean(-1) for a, b in itertools.combinations(range(groups), 2)]
        ).mean(0)

    return kernel


def question(
    trial: str,
    name: str,
    scores: Scores,
    metrics: Mapping[str, Metric],
    kin: Callable[[str], tuple[str, str]] | None = None,
) -> Question | None:
    """What a trial asks of a metric, from what the long table holds; None: it holds nothing of it.

    Args:
        trial: of `TRIALS`.
        name: of the metric.
        scores: of the trials.
        metrics: by name.
        kin: `gaming.kin` of a metric by its name, for many questions one that remembers; None: it is asked anew.
    """
    base, found = _base(name, scores, metrics[name])
    if not base and trial != "Truth":
        return None
    if trial == "Order":
        noisy = found(variant=SHUFFLED)
        levels = [None, *sorted({b["level"] for b in noisy})]
        seeds = sorted({b["noise_seed"] for b in noisy})
        cells = [
            {**b, "variant": SHUFFLED, "level": r, "noise_seed": s} if r else b
            for b in base
            for s in seeds
            for r in levels
        ]
        better = [i for i in range(len(cells)) if (i + 1) % len(levels)]
        return Question(tuple(cells), in_pairs(better, [i + 1 for i in better])) if noisy else None
    if trial == "Chance":
        return _against(base, found(explainer=RANDOM, variant=None))
    if trial == "Own model":
        other = {b["explainer"]: b for b in found(variant=RANDOMISED)}
        pairs = [(b, other[b["explainer"]]) for b in base if b["explainer"] in other]
        k = len(pairs)
        cells = (*(b for b, _ in pairs), *(o for _, o in pairs))
        return Question(cells, in_pairs(range(k), range(k, 2 * k))) if pairs else None
    if trial == "Truth":
        oracle, rivals = found(variant=ORACLE), found(variant=RIVAL)
        if not oracle:
            return None
        seeds, shares = sorted({b["noise_seed"] for b in oracle}), sorted({b["level"] for b in oracle}, reverse=True)
        cells = [{**oracle[0], "noise_seed": s, "level": q} for s in seeds for q in shares]
        better = [i for i in range(len(cells)) if (i + 1) % len(shares)]
        worse, weight = [i + 1 for i in better], [1 / len(better) / (2 if rivals else 1)] * len(better)
        if rivals:
            top = range(0, len(cells), len(shares))
            both = [(i, len(cells) + j) for i in top for j in range(len(rivals))]
            better, worse = better + [i for i, _ in both], worse + [j for _, j in both]
            weight += [1 / len(both) / 2] * len(both)
        return Question((*cells, *rivals), in_pairs(better, worse, torch.tensor(weight, dtype=torch.float64)))
    if trial == "Gaming":
        return _votes(name, scores, metrics, kin or (lambda of: adversarial.kin(metrics[of])))
    if trial == "Stand-in":
        baselines = list(dict.fromkeys(b["reference"] for b in found(variant=None, draw=None, reference=None)))
        cells = tuple({**b, "reference": r} for r in baselines for b in base)
        return Question(cells, alike(len(baselines))) if len(baselines) > 1 and len(base) > 1 else None
    again = [{**b, "draw": OTHER_DRAW} for b in base] if found(draw=OTHER_DRAW) else base
    return Question((*base, *again), alike(2), halves=True) if len(base) > 1 else None


def _base(name: str, scores: Scores, metric: Metric) -> tuple[list[dict[str, Label]], Callable[..., list]]:
    """The labels of a metric's explanations as they are, and a function that finds those of its other rows.

    The function takes labels; a reference of None is any. Without a reference and a draw they are the metric's own.
    """
    about = ("metric", "explainer", "reference", "variant", "level", "noise_seed", "draw")
    mine = [{key: b.labels.get(key) for key in about} for b in scores if b.labels["metric"] == name]
    mine = [dict(labels) for labels in dict.fromkeys(tuple(b.items()) for b in mine)]

    def found(**labels: Label) -> list[dict[str, Label]]:
        wanted = {"reference": metric.baseline, "draw": None, **labels}
        if wanted["reference"] is None:
            del wanted["reference"]
        return [b for b in mine if _is(b, wanted)]

    return found(variant=None, noise_seed=None), found


def _against(base: list[Mapping[str, Label]], others: list[Mapping[str, Label]]) -> Question | None:
    """Each of some cells shall be better than each of others."""
    pairs = [(i, len(base) + j) for i in range(len(base)) for j in range(len(others))]
    cells = (*base, *others)
    return Question(cells, in_pairs([i for i, _ in pairs], [j for _, j in pairs])) if pairs else None


def _votes(
    name: str, scores: Scores, metrics: Mapping[str, Metric], kin: Callable[[str], tuple[str, str]]
) -> Question | None:
    """The order that a metric likes best against the explanations, by the votes of other families."""
    voters: dict[tuple[str, str], list[str]] = {}
    own = kin(name)
    asked = [b.labels["metric"] for b in scores if _is(b.labels, {"variant": SEARCHED, "explainer": name})]
    for voter in dict.fromkeys(asked):
        if (family := kin(voter)) != own:
            voters.setdefault(family, []).append(voter)
    cells, better, worse, weights = [], [], [], []
    for members in voters.values():
        for voter in members:
            rivals, _ = _base(voter, scores, metrics[voter])
            top = len(cells)
            cells += [{**rivals[0], "explainer": name, "variant": SEARCHED}, *rivals] if rivals else []
            better += [top] * len(rivals)
            worse += range(top + 1, len(cells))
            weights += [1 / len(voters) / len(members) / max(1, len(rivals))] * len(rivals)
    kernel = in_pairs(better, worse, torch.tensor(weights, dtype=torch.float64))
    return Question(tuple(cells), kernel) if cells else None


def _is(labels: Mapping[str, Label], wanted: Mapping[str, Label]) -> bool:
    return all(labels.get(name) == value for name, value in wanted.items())


def turned(scores: Scores, metrics: Mapping[str, Metric]) -> Scores:
    """One score for each row, higher is more faithful: curves become their areas. Metrics that are not given go."""
    return Scores(
        dataclasses.replace(
            b,
            values=adversarial.oriented(metrics[b.labels["metric"]], b.values, b.sizes).float()[:, None],
            sizes=None,
            errors=None,
        )
        for b in scores
        if b.labels["metric"] in metrics
    )


def _values(table: Scores, **labels: Label) -> Tensor:
    """The values of the native rows of an explanation, [B]."""
    plain = dict.fromkeys(("variant", "level", "noise_seed", "draw"))
    return torch.cat([b.values[:, 0] for b in table.where(**{**plain, **labels})])


def trust(scores: Scores, metrics: Mapping[str, Metric], why: Mapping[tuple[str, str], str] = {}) -> pd.DataFrame:
    """T of every metric in every trial, with its interval and what follows from it.

    Args:
        scores: of `examine`, of one or more tasks; those of several networks count equally.
        metrics: by name.
        why: why a metric was not put to a trial.

    Returns:
        Tidy: metric, trial, size ("all images" or "one image"), T, low, high, verdict (passed, failed, open, does not
        apply), home (the trial is from the metric's own paper), images, undefined (images with an undefined score: of
        all images they are left out, of one image they are ties), why (it does not apply).
    """
    rows = []
    for name, trial, asked, of in questions(scores, metrics, why):
        home = at_home(metrics[name], trial)
        for size in SIZES:
            reason = why.get((name, trial), "it was not asked") if asked is None else _nothing(asked, size)
            if reason:
                nothing = (float("nan"),) * 3
                rows.append((name, trial, size, *nothing, NONE, home, 0, 0, reason))
                continue
            found = judged(asked, of, size)
            rows.append((name, trial, size, *found[:3], verdict(*found[1:3]), home, *found[3:], ""))
    columns = ("metric", "trial", "size", "T", "low", "high", "verdict", "home", "images", "undefined", "why")
    return pd.DataFrame(rows, columns=columns)


def applied(trust: pd.DataFrame, size: str = SIZES[0]) -> pd.DataFrame:
    """The rows of `trust` of trials that a metric was put to, of one of `SIZES`."""
    return trust[(trust["size"] == size) & (trust["verdict"] != NONE)]


def singles(scores: Scores, metrics: Mapping[str, Metric], why: Mapping[tuple[str, str], str] = {}) -> Scores:
    """T of every image, as rows of each metric whose variant is the trial; arguments as in `trust`.

    The lowest are the images that show where a metric is wrong.
    """
    return Scores.concat(
        of_images(asked, of).labelled(metric=name, variant=trial)
        for name, trial, asked, of in questions(scores, metrics, why)
        if asked is not None and not _nothing(asked, "one image")
    )


def questions(
    scores: Scores, metrics: Mapping[str, Metric], why: Mapping[tuple[str, str], str] = {}
) -> Iterator[tuple[str, str, Question | None, Scores]]:
    """Every metric, trial, what it is asked (None: nothing), and the rows that answer; arguments as in `trust`."""
    table = turned(scores, metrics)
    own = {name: table.where(metric=name) for name in metrics if name in table.labels("metric")}
    searched = Scores([b for b in table if b.labels.get("variant") in (None, SEARCHED)])
    kin = cache(lambda of: adversarial.kin(metrics[of]))
    for name in metrics:
        for trial in TRIALS:
            of = searched if trial == "Gaming" else own.get(name, Scores([]))
            yield name, trial, None if (name, trial) in why else question(trial, name, of, metrics, kin), of


HOME = {
    "Order": "Zheng et al. 2024",
    "Chance": "Wu et al. 2024",
    "Gaming": "Wang and Wang 2024",
    "Stand-in": "Marchadour et al. 2025",
}
"""Trials and the papers that they are from."""


def at_home(metric: Metric, trial: str) -> bool:
    """Whether the trial is from the metric's own paper."""
    return trial in HOME and metric.source.startswith(HOME[trial])


def _nothing(asked: Question, size: str) -> str:
    one = asked.halves and size == "one image" and not any(cell.get("draw") for cell in asked.cells)
    return "it draws nothing: asked again of the same image, it says the same" if one else ""


SINGLE = Statistic(stats.mean, name="T", bounds=(-1.0, 1.0))
"""T of single images: the mean of those of `of_images`."""


def judged(asked: Question, table: Scores, size: str = "all images") -> tuple[float, float, float, int, int]:
    """T with the ends of its interval, the images, and on how many of them a score is undefined.

    Of fewer images of a network than `faithstudy.claims.verdicts.LEAST`, the interval is all that T can be.

    Args:
        asked: the question.
        table: of `turned`.
        size: of `SIZES`.
    """
    each = _each(asked, table)
    complete = [network for network, *_ in each]
    table = Scores(b for b in table if any(_is(b.labels, network) for network in complete))
    count = sum(len(images) for _, images, _ in each)
    undefined = sum(int(values.isnan().any(1).sum()) for *_, values in each)
    if size == "one image" or undefined == count:
        of = stats.estimate(of_images(asked, table), SINGLE)
    else:
        of = stats.estimate(table, asked.statistic("T"))
    value, low, high = (float(x) for x in of.pooled)
    if low != low:  # no resample changes the order of a pair of means, or every image says the same
        sure = size == "all images" and undefined < count and of.images >= FEW
        low, high = (value, value) if sure else _alike(value, of.images)
    if min(of.images_each) < LEAST:  # they decide nothing
        low, high = -1.0, 1.0
    return value, max(-1.0, low), min(1.0, high), of.images, undefined


def of_images(asked: Question, table: Scores) -> Scores:
    """T of every single image, as rows of the metric "T": the lowest are the images that show where a metric is wrong.

    Args:
        asked: the question.
        table: of `turned`.
    """
    return Scores.concat(
        Scores.of(asked.kernel(values).float(), images=images, metric="T", **about)
        for about, images, values in _each(asked, table)
    )


def _each(asked: Question, table: Scores) -> list[tuple[dict[str, Label], Tensor, Tensor]]:
    """Of every network that was asked all: its labels, images with a score in all cells, scores [images, cells]."""
    names = list(asked.cells[0])  # the same in all cells of a question
    by_labels: dict[tuple, list[Block]] = {}
    for block in table:
        by_labels.setdefault(tuple(block.labels.get(name) for name in names), []).append(block)
    cells = [by_labels[tuple(cell[name] for name in names)] for cell in asked.cells]
    about = [{k: b.labels.get(k) for k in ("dataset", "network", "training_seed")} for b in cells[0]]
    found = []
    for network in about:
        own = [b for blocks in cells for b in blocks if _is(b.labels, network)]
        if len(own) < len(cells):  # a trial may apply to some networks of a kind
            continue
        images = own[0].images
        for block in own[1:]:
            images = images[torch.isin(images, block.images)]
        columns = [_of_images(block, images) for block in own]
        found.append((network, images, torch.stack(columns, 1).double()))
    return found


def verdict(low: float, high: float) -> str:
    """Passed where the interval lies above 0.8, failed where it lies below 0.5; else open."""
    return PASSED if low > PASS else FAILED if high < FAIL else OPEN


def _alike(value: float, images: int) -> tuple[float, float]:
    """The interval of a rate where all images have the same T: it knows that there are few of them."""
    low, high = stats.exact(torch.tensor((value + 1) / 2, dtype=torch.float64), torch.tensor(images))
    return 2 * float(low) - 1, 2 * float(high) - 1


# Beside the trials


def calibration(scores: Scores, metrics: Mapping[str, Metric]) -> pd.DataFrame:
    """How far the mean of a random order lies from what a metric declares as chance (Chance, part a).

    Args:
        scores: of `examine`.
        metrics: by name; those that declare no chance have no row.

    Returns:
        Tidy: metric, off (in standard deviations of the metric over random orders), low, high, calibrated (yes: within
        0.2, no: outside, or open).
    """

    def off(chance: float) -> Callable[..., Tensor]:
        def statistic(*samples: Sample) -> Tensor:
            means = torch.stack([sample.mean() for sample in samples])
            squares = torch.stack([dataclasses.replace(s, values=s.values**2).mean() for s in samples])
            return (means.mean(0) - chance) / (squares.mean(0) - means.mean(0) ** 2).clamp(min=0).sqrt()

        return statistic

    table, rows = turned(scores, metrics), []
    for name, metric in metrics.items():
        random = [] if name not in table.labels("metric") else _base(name, table, metric)[1](explainer=RANDOM)
        if metric.chance is None or not random:
            continue
        found = stats.estimate(table, Statistic(off(metric.better * metric.chance), tuple(random), "off"))
        value, low, high = (float(x) for x in found.pooled)
        within = "yes" if low > -0.2 and high < 0.2 else "no" if low > 0.2 or high < -0.2 else OPEN
        rows.append((name, value, low, high, within))
    return pd.DataFrame(rows, columns=["metric", "off", "low", "high", "calibrated"])


def lost_to_noise(scores: Scores, metrics: Mapping[str, Metric], level: float = 1.0) -> pd.DataFrame:
    """What noise costs the score of a single input: the explanation as it is, less the same one with noise in it.

    Args:
        scores: of `examine`.
        metrics: by name; those that were not asked of noise have no row.
        level: share of noise.

    Returns:
        By metric: effect (the mean over inputs, explainers and networks, in standard deviations over them), same (share
        of the scores that noise does not change) and noisy (the mean score with noise; higher is better).
    """
    table, rows = turned(scores, metrics), {}
    for name, metric in metrics.items():
        pairs, _ = _told_apart(name, table, metric, level)
        lost = [of for pair in pairs for of in _differences(table, *pair)]
        if lost:
            lost = torch.cat(lost).numpy()
            noisy = torch.cat([b.values for _, worse in pairs for b in table.where(**worse)]).double().nanmean()
            effect = np.nanmean(lost) / max(np.nanstd(lost), 1e-12)
            rows[name] = {"effect": effect, "same": (lost == 0).mean(), "noisy": float(noisy)}
    return pd.DataFrame.from_dict(rows, orient="index", columns=["effect", "same", "noisy"])


POWER = 2.80
"""Standard errors at which a 95 % interval excludes zero four times in five: 1.96 + 0.84."""


def price(scores: Scores, metrics: Mapping[str, Metric], features: int, level: float = 0.4) -> pd.DataFrame:
    """What it costs to tell explanations apart that differ: forwards, and what n images can show.

    The pairs: each explanation and the one with this share of noise, each and a random order. Their effect is the mean
    difference over its standard deviation. Images with a power of 80 % follow from it, and forwards from these.

    Args:
        scores: of `examine`.
        metrics: by name.
        features: of an input.
        level: share of noise.

    Returns:
        Tidy: metric, each (forwards for one explanation of one image), effect, low, high, images, images_low,
        images_high, forwards (of both explanations of a pair; infinite where the metric finds no effect), and
        shows_10, shows_100, shows_1000: the smallest difference that so many images show, as a part of the distance of
        an explanation from a random order.
    """

    def effect(*samples: Sample) -> Tensor:
        one, other = samples[: len(samples) // 2], samples[len(samples) // 2 :]
        found = []
        for a, b in zip(one, other, strict=True):
            difference = dataclasses.replace(a, values=a.values - b.values)
            spread = dataclasses.replace(a, values=difference.values**2).mean() - difference.mean() ** 2
            found.append(difference.mean() / spread.clamp(min=1e-24).sqrt())
        return torch.stack(found).mean(0)

    table, rows = turned(scores, metrics), []
    for name, metric in metrics.items():
        pairs, against = _told_apart(name, table, metric, level)
        if not (every := pairs + against):
            continue
        of = stats.estimate(table, Statistic(effect, (*(a for a, _ in every), *(b for _, b in every)), "effect"))
        value, low, high = (float(x) for x in of.pooled)
        images = [(POWER / e) ** 2 if e > 0 else float("inf") for e in (value, high, low)]
        each = metric.forward_passes(features)
        # A difference of POWER standard deviations / sqrt(n), in distances: their ratio is the effect.
        far = stats.estimate(
            table, Statistic(effect, (*(a for a, _ in against), *(b for _, b in against)), "effect")
        ).value
        shows = [POWER / n**0.5 / float(far) if far > 0 else float("inf") for n in (10, 100, 1000)]
        forwards = 2 * each * images[0] if each else 0.0  # a metric that asks nothing costs nothing
        rows.append((name, each, value, low, high, *images, forwards, *shows))
    columns = ["metric", "each", "effect", "low", "high", "images", "images_low", "images_high", "forwards"]
    return pd.DataFrame(rows, columns=[*columns, "shows_10", "shows_100", "shows_1000"])


def _told_apart(name: str, scores: Scores, metric: Metric, level: float) -> tuple[list, list]:
    """Pairs of the labels of a better and a worse explanation: itself and one with noise, itself and a random order."""
    if name not in scores.labels("metric"):
        return [], []
    base, found = _base(name, scores, metric)
    noisy = {b["explainer"]: b for b in found(variant=SHUFFLED, level=level)}
    random = found(explainer=RANDOM, variant=None)[:1]
    return [(b, noisy[b["explainer"]]) for b in base if b["explainer"] in noisy], [(b, r) for b in base for r in random]


def until_decided(scores: Scores, metrics: Mapping[str, Metric], level: float = 0.4) -> pd.DataFrame:
    """What it did cost to tell explanations apart: the images until the rule of `faithlab.decide` had decided.

    The pairs are those of `price`, on each network by itself. Their images come in random order, and after 32 of them
    (after all, where there are fewer), and then after every quarter more, the interval of the mean difference is looked
    at, until it excludes zero. Nothing is asked: these are scores that are there. `price` says beforehand what it
    takes on average; this is what was found in one run.

    Args:
        scores: of `examine`.
        metrics: by name.
        level: share of noise.

    Returns:
        Tidy: metric, images (the median over the pairs until the better one is told from the worse; infinite where that
        is not so for more than half of them), pairs (times networks), told (how many were told apart rightly),
        wrong (the worse one was called better), of (the most images that a pair has).
    """
    table, rows, nobody = turned(scores, metrics), [], torch.zeros(1, dtype=torch.int64)
    for name, metric in metrics.items():
        ends, most = [], 0
        for better, worse in itertools.chain(*_told_apart(name, table, metric, level)):
            for difference in _differences(table, better, worse):
                count = len(difference)
                if count < 2:
                    continue  # there is no interval
                looks = sequential.looks(min(sequential.FIRST, count), count, sequential.GROWTH)
                order = rng.permutations(0, nobody, nobody, count).flatten()
                blocks = difference[order].split(np.diff(looks, prepend=0).tolist())
                ends.append(sequential.until_decided(blocks, looks)[-1])
                most = max(most, count)
        if ends:
            images = [end.images + end.missing if end.low > 0 else math.inf for end in ends]
            told, wrong = sum(end.low > 0 for end in ends), sum(end.high < 0 for end in ends)
            rows.append((name, statistics.median(images), len(ends), told, wrong, most))
    return pd.DataFrame(rows, columns=["metric", "images", "pairs", "told", "wrong", "of"])


def _differences(table: Scores, one: Mapping[str, Label], other: Mapping[str, Label]) -> list[Tensor]:
    """By how much one cell is above another on the images that both have, [images] of every network."""
    found = []
    networks = [{k: b.labels.get(k) for k in ("dataset", "network", "training_seed")} for b in table.where(**one)]
    for network in networks:
        (a,) = table.where(**one, **network)
        for b in (b for b in table.where(**other) if _is(b.labels, network)):
            both = a.images[torch.isin(a.images, b.images)]
            found.append((_of_images(a, both) - _of_images(b, both)).double())
    return found


def _of_images(block: Block, images: Tensor) -> Tensor:
    """The first scores of some images of a block, whose images are different."""
    ordered, places = block.images.sort()
    return block.values[places[torch.searchsorted(ordered, images)], 0]


def usable(trust: pd.DataFrame) -> list[str]:
    """The metrics that fail no trial, pass `BUILT`, if that was asked at all, and one of `TELLING`.

    Args:
        trust: rows of `trust`, of one kind of network and one size.
    """
    asked = trust[trust["verdict"] != NONE]
    must = {BUILT} & {*asked["trial"]}
    found = []
    for name, own in asked.groupby("metric", sort=False):
        passed = {*own.loc[own["verdict"] == PASSED, "trial"]}
        if FAILED not in {*own["verdict"]} and must <= passed and passed & {*TELLING}:
            found.append(name)
    return found


def advice(trust: pd.DataFrame, price: pd.DataFrame) -> pd.DataFrame:
    """Which metrics to use, the cheapest first, and which trials the others fail: of the means over the images.

    To be used is what is `usable`: it has to pass a trial with a right answer that the network itself was put to, since
    `BUILT` has its own network and `STAYING` no right answer, and `BUILT`, which no number passes that asks nothing.

    Args:
        trust: of `trust`, with a column "kind" (of network).
        price: of `price`, likewise.

    Returns:
        A row for each kind and each metric that was put to a trial: kind, metric, place (0: those to be used that no
        other is cheaper than, 1: the next; metrics whose prices their intervals do not tell apart share a place; NaN:
        it fails a trial, or does not pass what it must), and the trials that it passed, failed and left open, as
        texts.
    """
    costs, rows = price.set_index(["kind", "metric"]), []
    for kind, of in applied(trust).groupby("kind", sort=False):
        trials = {
            name: {said: ", ".join(own.loc[own["verdict"] == said, "trial"]) for said in (PASSED, FAILED, OPEN)}
            for name, own in of.groupby("metric", sort=False)
        }
        clean = usable(of)
        told = costs.loc[[(kind, name) for name in clean]].reset_index()
        # A metric that asks nothing costs nothing, whatever the images.
        ends = [(told["each"] * told[end]).where(told["each"] > 0, 0.0) for end in ("images_low", "images_high")]
        groups = tied(told["metric"], *ends, told["forwards"])
        places = {name: float(place) for place, names in enumerate(groups) for name in names}
        names = [*places, *(name for name in trials if name not in places)]
        rows += [{"kind": kind, "metric": name, "place": places.get(name), **trials[name]} for name in names]
    return pd.DataFrame(rows, columns=["kind", "metric", "place", PASSED, FAILED, OPEN]).astype({"place": float})


def recommended(advice: pd.DataFrame, price: pd.DataFrame, forwards: float) -> dict[str, str]:
    """The metric to take, by kind of network: of those to be used, the one that passes most of its own trials.

    Of equals it is the cheapest. Metrics of other libraries are examined, but not recommended: they cannot be called
    from here, and some have faults that no trial sees.

    Args:
        advice: of `advice`.
        price: of `price`, with a column "kind".
        forwards: that can be spent to tell two explanations apart; a metric that may need more is not recommended.

    Returns:
        The name of a registered metric; a kind for which there is none is left out.
    """
    found = advice[advice["place"].notna() & ~advice["metric"].str.contains(":")].merge(price, on=["kind", "metric"])
    found = found[2 * found["each"] * found["images_high"] <= forwards]
    passes = found[PASSED].map(lambda said: len({*said.split(", ")} - {BUILT, ""}))
    found = found.assign(passes=passes).sort_values(["passes", "forwards"], ascending=[False, True], kind="stable")
    return found.drop_duplicates("kind").set_index("kind")["metric"].to_dict()


def agreement(scores: Scores, metrics: Mapping[str, Metric]) -> pd.DataFrame:
    """Do metrics rank the explainers of an image alike? `faithlab.stats.explainers_ranked`, for every pair.

    Args:
        scores: of `examine`.
        metrics: by name; those that were not asked are left out.

    Returns:
        Tidy: metric, other, correlation, low, high.
    """
    table = turned(scores, metrics)
    native = [b for b in table if b.labels.get("reference") == metrics[b.labels["metric"]].baseline]
    table = Scores([b for b in native if not any(b.labels.get(k) for k in ("variant", "draw", "noise_seed"))])
    names = [name for name in metrics if name in table.labels("metric")]
    explainers, rows = table.labels("explainer"), []
    for one, other in itertools.combinations(names, 2):
        ranked = stats.explainers_ranked([(one, other)], explainers, dict.fromkeys(names, 1))
        rows.append((one, other, *(float(x) for x in stats.estimate(table, ranked).pooled)))
    return pd.DataFrame(rows, columns=["metric", "other", "correlation", "low", "high"])


def report(scores: Scores, metrics: Mapping[str, Metric], explainer: str) -> pd.DataFrame:
    """The card of one explainer: what each metric says of it, how far it is to the best order, and to the best rival.

    Args:
        scores: of `examine`.
        metrics: by name.
        explainer: whose card.

    Returns:
        Tidy: metric, score, score_low, score_high (the metric's own numbers turned so that higher is better),
        attainable, attainable_low, attainable_high (0 a random order, 1 the better of what the search of Gaming and
        `faithlab.search` found for each input; missing where there was none), certain, certain_low, certain_high (1
        what no order exceeds: the share of the optimum lies between the two; missing where nothing bounds the metric),
        rival (the best other explainer), ahead, ahead_low, ahead_high (of it, on the same images), real (whether that
        interval excludes zero).
    """

    def part(of: Sample, random: Sample, *tops: Sample) -> Tensor:
        best = dataclasses.replace(tops[0], values=torch.stack([top.values for top in tops]).amax(0))
        return (of.mean() - random.mean()) / (best.mean() - random.mean())

    limits = {optimum.bound_name(name): metric for name, metric in metrics.items()}
    table, rows = turned(scores, metrics) + turned(scores, limits), []
    for name, metric in metrics.items():
        base, found = _base(name, table, metric) if name in table.labels("metric") else ([], None)
        own = [b for b in base if b["explainer"] == explainer]
        rivals = [b for b in base if b["explainer"] != explainer]
        if not own or not rivals:
            continue
        score = [float(x) for x in stats.estimate(table, **own[0]).pooled]
        means = [float(stats.estimate(table, **b).value) for b in rivals]
        rival = rivals[max(range(len(means)), key=means.__getitem__)]
        ahead = stats.estimate(table, cells=[*own, rival], contrasts=[[1, -1]])
        ahead = [float(x[0]) for x in ahead.pooled]
        best = [b for b in found(variant=SEARCHED) if b["explainer"] == name]
        random = found(explainer=RANDOM, variant=None)[:1]
        bounded = optimum.bound_name(name) in table.labels("metric")
        limit = [{**b, "metric": optimum.bound_name(name)} for b in best if bounded]
        best += [b for b in found(variant=BEST) if b["explainer"] == name]  # in records since it is asked
        shares = []
        for top in (best, limit):
            share = [float("nan")] * 3
            if top and random:
                of = Statistic(part, (*own, *random, *top), "part")
                share = [float(x) for x in stats.estimate(table, of).pooled]
            shares += share
        real = ahead[1] > 0 or ahead[2] < 0
        rows.append((name, *score, *shares, rival["explainer"], *ahead, real))
    columns = [f"{of}{end}" for of in ("score", "attainable", "certain") for end in ("", "_low", "_high")]
    columns += ["rival", *(f"ahead{end}" for end in ("", "_low", "_high")), "real"]
    return pd.DataFrame(rows, columns=["metric", *columns])


ARGUMENTS = {
    "metric": ("score", "attribution"),
    "explainer": ("model", "x", "target", "images"),
    "model": (),
    "data": (),
}
"""What functions of a reader's own are given."""


def yours(named: str, what: str) -> Callable | Metric:
    """A metric, an explainer, a model or data of a reader's own, from "path/to/file.py:function".

    A function that its file registers as a metric is asked as it is registered.

    Args:
        named: the file and the function, or a `faithlab.metrics.Metric`, in it.
        what: "metric", "explainer", "model" or "data"; a function of the last two has no arguments.

    Raises:
        ValueError: no such file or function, a file that does not run, a function with other arguments.
    """
    path, colon, name = named.rpartition(":")
    if not colon or not name.isidentifier():
        raise ValueError(f"expected path/to/file.py:function as the {what}, but got {named!r}")
    path = Path(path).expanduser()
    if not path.is_file():
        raise ValueError(f"{path} is no file; name the {what} as path/to/file.py:function")
    module = load(path)
    found = getattr(module, name, None)
    if not callable(found):
        own = [n for n, f in vars(module).items() if callable(f) and getattr(f, "__module__", "") == module.__name__]
        raise ValueError(f"{path} has no function {name!r}; it has {', '.join(own) or 'none'}")
    if isinstance(found, Metric):
        return found
    wanted = ARGUMENTS[what]
    try:
        inspect.signature(found).bind(*wanted)
    except TypeError:
        came = inspect.signature(found)
        raise ValueError(
            f"{named}: expected a function of ({', '.join(wanted)}), but its arguments are {came}"
        ) from None
    if what != "metric":
        return found
    registered = next((metric for metric in METRICS.values() if metric.compute is found), None)
    return registered or Metric(found, source=f"{path.name}, {name}")
