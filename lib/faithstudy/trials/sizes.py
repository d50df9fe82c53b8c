"""Explanation sizes of any data: inputs of one kind, rankings of their features, and the size that is named or refused.

What a size should be is known where the explanation is known by construction: a set that says which pixels explain its
images, or inputs of which all is blank but a run of features. Such inputs are the control of those that nobody knows:
they tell a reading that cannot see an end from a ranking that has none.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from faithlab import masks, rng, segments, stats, validation
from faithlab.metrics import METRICS, Metric, evaluate
from faithlab.metrics.size import Setting, Size, curves, explanation_size, read, stretch, sweep
from faithlab.outputs import correct, probability
from faithlab.scores import Label, Scores
from faithlab.task import Task
from faithstudy.claims import Part, above, below, better
from faithstudy.data import datasets
from faithstudy.networks.training import Recipe
from faithstudy.trials import optimum, tasks, truth


@dataclass(frozen=True, eq=False)
class Case:
    """Inputs of one kind that a network recognises, and how their rankings are asked for a size.

    Attributes:
        task: the inputs, whose data set is named as their kind, and the network that is explained, searched and
            asked: the one that was fine-tuned on random masks.
        known: [B, F] bool, the features that explain each input, by construction; None: nobody knows them.
        classes: names of the classes.
        settings: of FFid+.
        fractions: [K] increasing sizes as fractions of the features.
        draws: random subsets for each input, setting and size.
        explainers: as in `faithstudy.trials.tasks.attributions`.
        groups: a segment map of what a search for an order moves as one.
        seed: of the subsets, the random order of what has none, and searches.
    """

    task: Task
    known: Tensor | None
    classes: tuple[str, ...]
    settings: tuple[Setting, ...]
    fractions: Tensor
    draws: int
    explainers: Mapping[str, tasks.Chosen]
    groups: Tensor
    seed: int

    def of(self, task: Task) -> "Case":
        """The same of some of its inputs: a part of its task."""
        rows = torch.isin(self.task.images, task.images)
        return dataclasses.replace(self, task=task, known=None if self.known is None else self.known[rows])

    def rankings(self, steps: int = 0, *, batch_size: int = 128) -> dict[str, Tensor]:
        """Attributions by name, [B, F]: of those who know, who search, who explain, and of no one.

        "truth" is the known explanation first, in random order within and without. "TRACE" is the order of the groups
        that annealing finds for LeRF - MoRF, in random order within each. "random" is any order.

        Args:
            steps: of annealing; 0: no order is searched for.
            batch_size: inputs explained at once.

        Raises:
            ValueError: what explainers and searches raise.
        """
        task, features = self.task, segments.count(self.task.segments)
        anyhow = rng.uniform(self.seed, task.images, torch.tensor([0]), features)[:, 0].to(task.x.device)
        found = {}
        if self.known is not None:
            found["truth"] = truth.known(self.known, task.images, self.seed)["truth first"].to(anyhow)
        if steps:
            coarse = dataclasses.replace(task, segments=self.groups)
            wanted = {"LeRF - MoRF": METRICS["LeRF - MoRF"]}
            heat = optimum.orders(wanted, coarse, steps=steps, seed=self.seed)["TRACE-p"]
            group = torch.empty(features, dtype=torch.int64)
            group[task.segments.flatten()] = self.groups.flatten()
            found["TRACE"] = anyhow / 2 - masks.place(masks.order(heat))[:, group]
        return found | tasks.attributions(task, self.explainers, batch_size=batch_size) | {"random": anyhow}

    def ask(self, rankings: Mapping[str, Tensor], more: Mapping[str, Metric] | None = None) -> Scores:
        """FFid+ of rankings with each setting, and where the explanation is known, the "overlap" with it.

        Args:
            rankings: attributions by name, [B, F].
            more: other metrics that are put to them; None: no others.
        """
        metrics = sweep(self.settings, self.fractions, draws=self.draws, seed=self.seed)
        scores = evaluate(metrics | dict(more or {}), self.task, rankings)
        return scores if self.known is None else scores + truth.aligned("overlap", self.task, rankings, self.known)

    def read(self, scores: Scores, ranking: str, rows: Tensor | slice = slice(None)) -> Size:
        """The size of a ranking, or why there is none.

        Args:
            scores: of `ask`, among others.
            ranking: its name.
            rows: of the inputs, those that are read: positions or booleans.

        Raises:
            ValueError: there are no such scores.
        """
        of = curves(scores, self.settings, explainer=ranking, **self._labels)[rows]
        features = segments.count(self.task.segments)
        return read(of, self.fractions, self.settings, features, seed=self.seed)

    def read_one(self, ranking: Tensor, at: int, draws: int, fractions: Tensor | None = None) -> Size:
        """The size of a single input's explanation, by the settings of the first alpha; see `of_one`.

        Args:
            ranking: [B, F] an attribution of each input.
            at: the place of the input.
            draws: random subsets for each setting and size.
            fractions: [K] sizes that are asked; None: all.
        """
        asked = self.fractions if fractions is None else fractions
        settings = [s for s in self.settings if s.alpha == self.settings[0].alpha]
        return of_one(self.task, ranking, at, fractions=asked, settings=settings, draws=draws, seed=self.seed)

    def halves(self, scores: Scores, ranking: str) -> int:
        """In how many halves of the inputs, every other one and the rest, a size is named: 0, 1 or 2."""
        half = torch.arange(len(self.task.x)) % 2
        return sum(not self.read(scores, ranking, half == k).refusal for k in (0, 1))

    def lost(self, scores: Scores, ranking: str) -> Tensor:
        """What each input loses, the mean over settings and sizes, [B]."""
        return curves(scores, self.settings, explainer=ranking, **self._labels).mean((1, 2))

    def law(self, name: str) -> dict[str, Any]:
        """How a stretch of the law is asked of these inputs, whose explanation is known: for `faithlab.stats.estimate`.

        Args:
            name: "rise", "flat" or "fall", see `faithlab.metrics.size.stretch`.
        """
        of = stretch(name, float(self.known.double().mean()), self.settings, self.fractions)
        return {"of": of, "dataset": self.task.dataset}

    def follows_the_law(self, scores: Scores) -> list[Part]:
        """Return `follows_the_law` of these inputs."""
        size = float(self.known.double().mean())
        return follows_the_law(scores, self.task.dataset, size, self.settings, self.fractions)

    def row(self, scores: Scores, ranking: str, of: Size) -> dict[str, Label]:
        """What was read of a ranking, as a row of a table.

        `truth` is the known size, a share of the features, and `overlap` the part of the known explanation that the
        ranking puts first, see `faithlab.metrics.alignment.overlap`; both are NaN where nobody knows.
        `best_knee` stands where the size would be, if it is refused or not; `largest_loss` is the highest point of all
        curves.

        Args:
            scores: of `ask`, among others.
            ranking: its name.
            of: what `read` says of it.
        """
        found = {"data": self.task.dataset, "training_seed": self.task.training_seed, "ranking": ranking}
        found |= {"truth": float("nan"), "overlap": float("nan")}
        if self.known is not None:
            overlap = stats.estimate(scores, metric="overlap", explainer=ranking, **self._labels)
            found |= {"truth": float(self.known.double().mean()), "overlap": float(overlap)}
        found |= {"size": of.fraction, "low": of.low, "high": of.high, "best_knee": sum(of.block) / 2}
        found |= {"p_smooth": of.smooth, "p_flat": of.flat, "p_fit": of.misfit}
        return found | {"largest_loss": float(of.curves.max()), "inputs": of.rows, "refusal": of.refusal}

    @property
    def _labels(self) -> dict[str, Label]:
        return {"dataset": self.task.dataset, "training_seed": self.task.training_seed}


def follows_the_law(
    scores: Scores, data: str, size: float, settings: Sequence[Setting], fractions: Tensor
) -> list[Part]:
    """What the law says of a known explanation, as parts of a claim: it rises and falls, and more than chance.

    Args:
        scores: of `Case.ask`.
        data: the kind of the inputs.
        size: the known size, a share of the features.
        settings: of FFid+.
        fractions: [K] increasing sizes as fractions of the features.
    """
    control, parts = ({"explainer": "truth"}, {"explainer": "random"}), []
    for name, judged in (("rise", above), ("fall", below)):
        law = {"of": stretch(name, size, settings, fractions), "dataset": data}
        parts.append(judged(scores, 0, name=f"{data}: {name}s", explainer="truth", **law))
        parts.append(better(scores, *control, less=name == "fall", name=f"{data}: {name}s more", **law))
    return parts


def case(
    name: str,
    tuned: Recipe,
    most: int,
    settings: Sequence[Setting],
    fractions: Tensor | Sequence[float],
    *,
    network: str,
    explainers: Mapping[str, tasks.Chosen],
    groups: Tensor | None = None,
    among: int | None = None,
    left: int | None = None,
    draws: int = 1,
    precision: str = "float32",
    seed: int = 0,
) -> Case:
    """Test inputs of a network's own data that it recognises.

    A network answers for what it is used to: where that is less than the largest cap, all caps shrink to end there.

    Args:
        name: the kind of the inputs, for tables.
        tuned: the network, fine-tuned on random masks.
        most: so many inputs, the first that are recognised, in a random order that follows from the seed; fewer are the
            first of more.
        settings: of FFid+, each with a cap.
        fractions: [K] increasing sizes as fractions of the features.
        network: its name, for tables.
        explainers: as in `faithstudy.trials.tasks.attributions`.
        groups: a segment map of what a search moves as one, each of whole features; None: single features.
        among: they are taken from the first so many inputs, in that order, that have all features; None: from all.
        left: so many features stay of each input, a `run`, which explains it then; the rest is blank. None: all stay,
            and where the data say which pixels explain an image, it is known, too.
        draws: random subsets for each input, setting and size.
        precision: of forwards, as in `faithstudy.trials.tasks.task`.
        seed: see `Case`; the next one is that of the runs.

    Raises:
        ValueError: a network that is not used to missing features, a setting without a cap, no input that is
            recognised, more features left than there are, groups of another shape than one input's features.
    """
    caps = [setting.cap for setting in settings]
    if not tuned.mask_share or None in caps:
        raise ValueError(
            "expected settings with caps, of a network that was fine-tuned on random masks (mask_share of its recipe), "
            f"but got caps {caps} and a mask_share of {tuned.mask_share:g}"
        )
    validation.whole("most", most, 1)
    data = datasets.load(tuned.data, "test", **tuned.data_options)
    present, pixels = data.present(), getattr(data, "masks", None)
    places = torch.arange(len(data)) if present is None else present.all(1).nonzero().flatten()
    places = _in_any_order(places, seed)[:among]
    task = tasks.task(tuned, places, tuned=tuned, data=data, precision=precision, name=network)
    task = dataclasses.replace(task, dataset=name)
    features = segments.count(task.segments)
    known = None if pixels is None else pixels[places].flatten(1)
    if left is not None:
        known = run(features, left, places, seed + 1)
        task = blanked(task, known)
    whole = torch.ones(len(places), 1, features, dtype=torch.bool, device=task.x.device)
    right = task.score(correct)(whole)[:, 0].bool().nonzero().flatten()
    if not len(right):
        raise ValueError(
            f"{network} recognises none of {len(places)} {name}: there is nothing to lose; train it longer"
        )
    at = right[:most]
    end = min(max(caps), tuned.mask_share)
    settings = tuple(Setting(setting.alpha, setting.cap * end / max(caps)) for setting in settings)
    known = None if known is None else known[at.cpu()]
    fractions, groups = validation.fractions(fractions), task.segments if groups is None else groups
    if groups.shape != task.segments.shape:
        expected = tuple(task.segments.shape)
        raise ValueError(f"expected groups as a segment map of {expected}, but got {tuple(groups.shape)}")
    return Case(task.part(at), known, data.classes, settings, fractions, draws, explainers, groups, seed)


def of_one(
    task: Task,
    ranking: Tensor,
    at: int,
    *,
    fractions: Tensor | Sequence[float],
    settings: Sequence[Setting],
    draws: int,
    seed: int = 0,
) -> Size:
    """The size of a single input's explanation, from the probability that its fine-tuned network loses.

    Args:
        task: the inputs.
        ranking: [B, F] an attribution of each of them.
        at: the place of the input.
        fractions: [K] increasing sizes as fractions of the features.
        settings: of FFid+.
        draws: random subsets for each setting and size.
        seed: of the subsets.
    """
    score = task.part(torch.tensor([at])).score(probability, network="fine-tuned")
    return explanation_size(score, ranking[[at]], fractions, settings, draws=draws, seed=seed)


def first_named(lost: Tensor, read: Callable[[int], Size], tried: int) -> tuple[int, Size, str]:
    """An input to show: of those that lose most the first that has a size, else the one that loses most.

    Args:
        lost: [B], what each input loses.
        read: the size of the input at a place.
        tried: how many are read at most.

    Returns:
        Its place, what was read of it, and how it was chosen, as the end of a sentence.
    """
    order = lost.argsort(descending=True, stable=True)[: validation.whole("tried", tried, 1)].tolist()
    refused = []
    for at in order:
        refused.append((at, read(at)))
        if not refused[-1][1].refusal:
            before = f", after {len(refused) - 1} without" * (len(refused) > 1)
            return *refused[-1], f"of those that lose most the first that has a size{before}"
    none = f"none of the {len(order)} that lose most has a size" if len(order) > 1 else "it has no size"
    return *refused[0], f"the one that loses most; {none}"


def centre(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """A map that looks at nothing, as an explainer: the closer to the middle of the image, the more relevant."""
    rows, columns = (torch.linspace(-1, 1, side, device=x.device) for side in x.shape[-2:])
    return -(rows[:, None] ** 2 + columns**2).expand(len(x), 1, -1, -1)


def tabulated(cases: Sequence[Case], rankings: Sequence[Mapping[str, Tensor]], scores: Scores) -> pd.DataFrame:
    """The row of each ranking of each case, see `Case.row`, and what was read of it.

    A size is worth nothing where the ranking "centre", which looks at no network, has one on the same inputs: there
    only the known explanation's is named.

    `halves`: in how many halves of the inputs a size that is named is named again. `of`: the case, `read`: the size.

    Args:
        cases: kinds of inputs.
        rankings: by name, of each case.
        scores: of `Case.ask`.
    """
    rows = []
    for of, own in zip(cases, rankings, strict=True):
        sizes = {name: of.read(scores, name) for name in own}
        blind = sizes.get("centre")
        for name, found in sizes.items():
            again = 0 if found.refusal else of.halves(scores, name)
            if blind and not blind.refusal and not found.refusal and name != "truth":
                found, again = found.refused(f"a blind ranking, from the centre outwards, has a size, too: {blind}"), 0
            rows.append(of.row(scores, name, found) | {"halves": again, "of": of, "read": found})
    return pd.DataFrame(rows)


def _in_any_order(places: Tensor, seed: int) -> Tensor:
    """Positions in random order: sets may be sorted by class, and the first few must be like all, and part of more."""
    drawn = rng.uniform(rng.stream("order of inputs", seed), places, torch.tensor([0]), 1)
    return places[drawn[:, 0, 0].argsort(stable=True)]


def run(features: int, left: int, images: Tensor, seed: int = 0) -> Tensor:
    """Which features stay of each input: so many in a row, at a random place, [B, F] bool.

    Args:
        features: F.
        left: those that stay.
        images: [B] identities, which decide the places.
        seed: of the places.

    Raises:
        ValueError: no feature stays, or more than there are.
    """
    validation.whole("left", left, 1, features)
    drawn = rng.uniform(seed, images.cpu(), torch.tensor([0]), 1)[:, 0]
    first = (drawn * (features + 1 - left)).long()  # [B, 1]
    place = torch.arange(features)
    return (place >= first) & (place < first + left)


def blanked(task: Task, stay: Tensor) -> Task:
    """The same networks with inputs of which only some features are left: the others are what "zero" stands for.

    Args:
        task: the inputs.
        stay: [B, F] bool.

    Raises:
        ValueError: what is not one bool for each feature of each input.
    """
    expected = (len(task.x), segments.count(task.segments))
    if stay.dtype != torch.bool or stay.shape != expected:
        raise ValueError(f"expected which features stay, bool {expected}, but got {stay.dtype} {tuple(stay.shape)}")
    stays = stay[:, task.segments.expand(task.x.shape[1:])].to(task.x.device)
    return dataclasses.replace(task, x=task.x.where(stays, task.baselines["zero"](task.x)))
