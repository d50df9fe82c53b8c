"""The examination: every metric in every trial to which the right answer is known, from chance (0) to ideal (1).

A trial evaluates a metric on explanations of which it is known what is better. `examine` does, and returns the long
table; `trust` reads the table, and says for each metric and trial how often the better one was found, see
`faithstudy.trials.concordance`. The trials::

    Order      of two shares of noise, the smaller is better                            `noise_order`
    Chance     an explanation is better than a random order of the same features        `chance`
    Truth      of two shares of the true features that come first, the larger is better `truth`
    Own model  the explanation of this network is better than that of a stranger        `own_model`
    Gaming     the order that the metric likes best is better than any explanation,
               for the other metrics, with one vote for each family of them             `adversarial`
    Stand-in   two references rank two explainers alike                                 `baselines`
    Repeat     two halves of the images, with other random draws, do                    `retest`

A metric *passed* where the interval of T lies above 0.8, *failed* where it lies below 0.5; else the images leave it
*open*. T are never added up. No trial names a metric: each is put to all that are given.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
from torch import Tensor

from faithlab import segments
from faithlab.metrics import Metric
from faithlab.scores import Scores
from faithlab.task import Task
from faithstudy.trials import adversarial, baselines, chance, noise_order, own_model, retest, truth
from faithstudy.trials.baselines import stand_ins
from faithstudy.trials.checks import check, check_explanations
from faithstudy.trials.concordance import (
    NONE,
    SIZES,
    Question,
    alike,
    ask,
    cells,
    judged,
    of_images,
    ranked,
    turned,
    verdict,
)
from faithstudy.trials.other_libraries import NOT_ASKED, Peer
from faithstudy.trials.tasks import Chosen
from faithstudy.trials.tasks import attributions as explained
from faithstudy.trials.truth import ORACLE

TRIALS = ("Order", "Chance", "Truth", "Own model", "Gaming", "Stand-in", "Repeat")
"""The judged trials."""

PAIRS = {"Order": noise_order.pairs, "Chance": chance.pairs, "Truth": truth.pairs, "Own model": own_model.pairs}
"""Those that compare two explanations at a time; the others but Gaming compare rankings."""

HOME = {
    "Order": "Zheng et al. 2024",
    "Chance": "Wu et al. 2024",
    "Gaming": "Wang and Wang 2024",
    "Stand-in": "Marchadour et al. 2025",
}
"""Trials and the papers that they are from."""

UNTRUE = "it was not asked of inputs with known truth"

LEVELS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True)
class Examination:
    """The result of `examine`.

    Attributes:
        scores: the long table.
        trust: of `trust`.
        obstacles: why a metric was not put to a trial, by metric and trial.
    """

    scores: Scores
    trust: pd.DataFrame
    obstacles: Mapping[tuple[str, str], str]


def examine(
    metrics: Mapping[str, Metric],
    task: Task,
    explainers: Mapping[str, Chosen],
    *,
    truth: Sequence[tuple[Task, Tensor]] | Scores = (),
    levels: Sequence[float] = LEVELS,
    seeds: Sequence[int] = (0,),
    randomised_share: float = 0.3,
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
        randomised_share: of the layers, at least, in Own model: see `own_model.stranger`.
        budget: forwards for each input and metric, in Gaming.
        gamed: the first so many inputs are those of Gaming; None: all.

    Raises:
        ValueError: fewer than two explainers, and what the explainers and metrics raise; see `check`.
    """
    check(metrics, task)
    attributions = explained(task, explainers)
    check_explanations(attributions, task)
    why = reasons(metrics, task)
    asked = {name: metric for name, metric in metrics.items() if (name, "Order") not in why}
    if not asked:
        raise ValueError("no metric applies: " + "; ".join(f"{m}: {text}" for (m, _), text in why.items()))

    def applying(trial: str) -> dict[str, Metric]:
        return {name: metric for name, metric in asked.items() if (name, trial) not in why}

    other, elsewhere = own_model.stranger(task, randomised_share, seed=seeds[0]), {}
    if other.model is None:
        why |= {(name, "Own model"): other.reason for name in asked}
    else:
        elsewhere = explained(dataclasses.replace(task, model=other.model, retrained={}), explainers)
    known = truth if isinstance(truth, Scores) else Scores.concat(oracles(asked, *pair, seeds=seeds) for pair in truth)
    known = Scores(block for block in known if block.labels["metric"] in asked)
    why |= {(name, "Truth"): UNTRUE for name in asked if name not in known.labels("metric")}
    tables = [directly(asked, task, attributions, elsewhere, levels=levels, seeds=seeds), known]
    there = [name for name in ("zero", "mean", "blur") if name in task.baselines]
    if len({id(task.baselines[name]) for name in there}) > 1:
        tables += stand_ins(applying("Stand-in"), task, attributions, there)
    else:
        why |= {(name, "Stand-in"): "these inputs have a single reference" for name in applying("Stand-in")}
    tables += retest.other_draws(asked, task, attributions)
    gaming = applying("Gaming")
    unsought = adversarial.obstacles(gaming, segments.count(task.segments), budget)
    why |= {(name, "Gaming"): text for name, text in unsought.items()}
    how = {"budget": budget, "count": gamed, "seed": seeds[0]}
    tables += adversarial.games(gaming, task, attributions, tables[0], [*applying("Gaming")], **how)
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


def joined(kinds: Mapping[str, Scores]) -> Scores:
    """One long table of all kinds; Truth, which is the same in all of them, stands in it once."""
    return Scores({block.key: block for table in kinds.values() for block in table}.values())


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


def directly(
    metrics: Mapping[str, Metric],
    task: Task,
    attributions: Mapping[str, Tensor],
    elsewhere: Mapping[str, Tensor],
    *,
    levels: Sequence[float] = LEVELS,
    seeds: Sequence[int] = (0,),
) -> Scores:
    """The scores that Order, Chance and Own model compare, evaluated together so that equal masks are evaluated once.

    Args:
        metrics: by name.
        task: the inputs and the network.
        attributions: by explainer, [B, F].
        elsewhere: those of a stranger, about the same class; may be empty.
        levels: as in `examine`.
        seeds: as in `examine`.
    """
    rows = [({"explainer": explainer}, of) for explainer, of in attributions.items()]
    rows += noise_order.rows(task, attributions, levels[1:], seeds) + chance.rows(task, seeds)
    return ask(metrics, task, rows + own_model.rows(elsewhere))


def oracles(metrics: Mapping[str, Metric], task: Task, regions: Tensor, *, seeds: Sequence[int] = (0,)) -> Scores:
    """The scores that Truth compares, those of partial oracles.

    Args:
        metrics: by name; those that cannot be put to this task have no rows.
        task: inputs with known truth.
        regions: [B, F] bool, the features that decide.
        seeds: of what an oracle does not know.
    """
    return ask(metrics, task, truth.rows(task, regions, seeds))


def question(
    trial: str, name: str, scores: Scores, metrics: Mapping[str, Metric], families: Mapping[str, tuple[str, str]] = {}
) -> Question | None:
    """What a trial asks of a metric, from what the long table holds; None: it holds nothing of it.

    Args:
        trial: of `TRIALS`.
        name: of the metric.
        scores: of the trials.
        metrics: by name.
        families: for Gaming, see `faithstudy.trials.adversarial.votes`.
    """
    if trial == "Gaming":
        return adversarial.votes(name, scores, metrics, families)
    base, found = cells(name, scores, metrics[name])
    if trial in PAIRS:
        return ranked(PAIRS[trial](base, found))
    return alike((baselines if trial == "Stand-in" else retest).groups(base, found), halves=trial == "Repeat")


def questions(
    scores: Scores, metrics: Mapping[str, Metric], why: Mapping[tuple[str, str], str] = {}
) -> Iterator[tuple[str, str, Question | None, Scores]]:
    """Every metric, trial, what it is asked (None: nothing), and the rows that answer; arguments as in `trust`."""
    table = turned(scores, metrics)
    own = {name: table.where(metric=name) for name in metrics if name in table.labels("metric")}
    searched = Scores(b for b in table if b.labels.get("variant") in (None, adversarial.SEARCHED))
    voters = dict.fromkeys(b.labels["metric"] for b in searched if b.labels.get("variant"))
    families = {name: adversarial.kin(metrics[name]) for name in voters}
    for name in metrics:
        for trial in TRIALS:
            of = searched if trial == "Gaming" else own.get(name, Scores([]))
            yield name, trial, None if (name, trial) in why else question(trial, name, of, metrics, families), of


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
        home = trial in HOME and metrics[name].source.startswith(HOME[trial])
        for size in SIZES:
            reason = why.get((name, trial), "it was not asked") if asked is None else _nothing(asked, size)
            found = (*[float("nan")] * 3, 0, 0) if reason else judged(asked, of, size)
            said = NONE if reason else verdict(*found[1:3])
            rows.append((name, trial, size, *found[:3], said, home, *found[3:], reason))
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


def _nothing(asked: Question, size: str) -> str:
    one = asked.halves and size == "one image" and not any(cell.get("draw") for cell in asked.cells)
    return "it draws nothing: asked again of the same image, it says the same" if one else ""
