"""Curves of FFid+ whose truth is known: does `faithlab.metrics.size.read` name what is there, and only that?

A `study` asks a trained network about rankings that are made of a known explanation: nothing in it knows the law that
the reader rests on. A `Plateau` is simulated by that law, without a network. Features have a relevance by their place
in the ranking; how much of it FFid+ removes is drawn from its mean and spread under subsets at random; a response says
how many answers that costs; and the answers of one image err together. Each is numbered, and the same by itself as
among others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.special import ndtr
from torch import Tensor

from faithlab import masks, rng, segments
from faithlab.explainers import refine
from faithlab.metrics import evaluate
from faithlab.metrics.size import SETTINGS, SIZES, Setting, Size, curves, read, sweep
from faithlab.outputs import probability
from faithlab.task import Task
from faithstudy.trials import sizes, tasks, truth

FEATURES = 400
RESPONSES = {
    "linear": lambda share: share,
    "square": lambda share: share**2,
    "saturated": lambda share: np.minimum(1, share / 0.25),
}
"""Answers lost over the share of the relevance that is removed."""
ENDED = {
    "block": lambda x: x < 1,
    "unequal": lambda x: (x < 1) + 0.15 * ((x >= 1) & (x < 1.75)),
    "fading": lambda x: (x < 1) * np.exp(-x),
    "random": lambda x: x < 1,
}
"""Relevance by place in the ranking, in units of the size, where it ends."""
ENDLESS = {
    "exponential": lambda x: np.exp(-x),
    "linear": lambda x: (1 - x / 2).clip(0),
    "power": lambda x: (1 + x / 1.5) ** -2.5,
    "logistic": lambda x: 1 / (1 + np.exp((x - 1) / 0.3)),
    "cosine": lambda x: (1 + np.cos(np.pi * x.clip(0, 2) / 2)) / 2,
    "equal": lambda x: np.ones_like(x),
}
"""The same where it fades out, or is equal. All but the last have as much as a block of that size."""
KINDS = (*ENDED, *ENDLESS, "ignored")


@dataclass(frozen=True)
class Plateau:
    """What is simulated.

    Attributes:
        kind: of `ENDED` and `ENDLESS`. "block": the first features are relevant, all equally. "unequal": behind them
            are others with 0.15 of their relevance. "fading": relevance decays to 0.37, and ends. "random": a block in
            random order. "equal": all features are relevant. "ignored": the network does not look at its input.
        size: of the block, a share of the features.
        noise: share of the block that changes places with features behind it, the paper's degradation.
        response: see `RESPONSES`.
        images: of one study.
        draws: random subsets for each image, setting and size.
        alike: correlation of the answers of one image, beyond what is removed.

    Raises:
        ValueError: another kind or response.
    """

    kind: str = "block"
    size: float = 0.2
    noise: float = 0.0
    response: str = "linear"
    images: int = 200
    draws: int = 2
    alike: float = 0.3

    def __post_init__(self):
        if self.kind not in KINDS or self.response not in RESPONSES:
            raise ValueError(
                f"expected a kind of {', '.join(KINDS)} and a response of {', '.join(RESPONSES)}, but got "
                f"{self.kind!r} and {self.response!r}"
            )

    @property
    def known(self) -> bool:
        """Whether there is a size to be named."""
        return self.kind in ENDED and self.kind != "random"

    def curves(self, number: int, sizes: Sequence[float] = SIZES, settings: Sequence[Setting] = SETTINGS) -> Tensor:
        """The answers that each image loses, [images, J, K] float64.

        Args:
            number: of the study; another one, other rankings and subsets.
            sizes: [K] fractions of the features.
            settings: J settings of FFid+.
        """
        random = np.random.default_rng(number)
        counts = masks.counts(torch.as_tensor(sizes, dtype=torch.float64), FEATURES)
        removed = torch.stack([masks.removals(counts, FEATURES, *setting) for setting in settings]).numpy().ravel()
        places = np.tile(counts.numpy(), len(settings))
        shape = self.images, len(settings), len(counts)
        if self.kind == "ignored":  # answers change by chance alone
            return torch.from_numpy((random.random((self.images, self.draws, len(places))) < 0.02).mean(1)).view(shape)
        relevance = np.stack([self._ranked(random) for _ in range(self.images)])
        gain, squares = relevance.cumsum(1)[:, places - 1], (relevance**2).cumsum(1)[:, places - 1]
        mean = gain / places
        left = (1 - (removed - 1) / np.maximum(places - 1, 1)).clip(0)
        spread = np.sqrt(removed * (squares / places - mean**2).clip(0) * left)
        gone = (removed * mean)[:, None] + spread[:, None] * random.standard_normal(
            (*shape[:1], self.draws, len(places))
        )
        lost = 0.95 * RESPONSES[self.response]((gone / relevance.sum(1)[:, None, None]).clip(0))
        luck = self.alike**0.5 * random.standard_normal((self.images, 1, 1))
        luck = luck + (1 - self.alike) ** 0.5 * random.standard_normal(lost.shape)
        return torch.from_numpy((ndtr(luck) < lost).mean(1)).view(shape)

    def read(self, number: int) -> Size:
        """What is read in a study."""
        return read(self.curves(number), SIZES, SETTINGS, FEATURES)

    def _ranked(self, random: np.random.Generator) -> np.ndarray:
        """Relevance by place in the ranking of one image, [F]."""
        first, places = round(self.size * FEATURES), (np.arange(FEATURES) + 0.5) / FEATURES
        relevance = (ENDED | ENDLESS)[self.kind](places / self.size).astype(float)
        if self.kind == "random":
            return random.permutation(relevance)
        swapped = round(self.noise * first)
        here = random.choice(first, swapped, replace=False)
        there = first + random.choice(FEATURES - first, swapped, replace=False)
        relevance[here], relevance[there] = relevance[there], relevance[here]
        return relevance


DELETION = Setting(1.0, None)
"""All of the first features are removed: the plain deletion curve."""


def planted(task: Task, known: Tensor, seed: int) -> dict[str, Tensor]:
    """Rankings by name, [B, F], made of a known explanation: five that end with it, then some without an end.

    Args:
        task: the inputs, images.
        known: [B, F] bool, the features that explain each input, equally many of each.
        seed: of random orders.
    """
    images, features = task.images, known.shape[1]
    anyhow = rng.uniform(seed, images.cpu(), torch.tensor([0]), features)[:, 0].double()
    found = {
        name: truth.partial_oracle(known, 1 - noise, images, seed)
        for name, noise in {"known": 0, "a tenth misplaced": 0.1, "a fifth misplaced": 0.2}.items()
    }
    heat = tasks.attributions(task, {"": refine.magnitude("input-x-gradient")})[""].cpu()
    strength = -masks.place(masks.order(heat + known * (1 + heat.max()))).double() / features
    found["strongest first"] = strength + known
    found["rather strong first"] = strength + known * (1 + anyhow * known.double().mean())
    places, share = (np.arange(1000) + 0.5) / 1000, float(known.double().mean())
    for kind in ("exponential", "linear", "power", "logistic", "cosine"):  # the chance to be of the explanation
        chance = ENDLESS[kind](places / share)
        chance = (chance * share / chance.mean()).clip(max=1)
        at = [np.interp(anyhow, of.cumsum() / of.sum(), places) for of in (chance, 1 - chance)]
        found[kind] = -torch.where(known, *map(torch.from_numpy, at))
    middle = sizes.centre(task.model, task.x, task.target, images).flatten(1).cpu()
    return found | {"random": anyhow, "centre": middle + 1e-4 * anyhow}


def study(
    task: Task, known: Tensor, settings: Sequence[Setting], sizes: Sequence[float], seed: int
) -> list[dict[str, Any]]:
    """What is read of `planted` rankings, and where two other readers, which never refuse, see the end.

    Args:
        task: images, and the network that was fine-tuned on random masks.
        known: [B, F] bool.
        settings: of FFid+.
        sizes: [K] fractions of the features.
        seed: of rankings and subsets.

    Returns:
        A row for each ranking. "ends": whether there is a size to be named.
    """
    rankings, rows = planted(task, known, seed), []
    metrics = sweep([*settings, DELETION], sizes, draws=1, seed=seed)
    scores = evaluate({name: of.given(output=probability) for name, of in metrics.items()}, task, rankings)
    for number, name in enumerate(rankings):
        of = read(curves(scores, settings, explainer=name), sizes, settings, segments.count(task.segments), seed=seed)
        deletion = curves(scores, [DELETION], explainer=name).mean((0, 1)).numpy()
        row = {"ranking": name, "ends": number < 5, "truth": float(known.double().mean()), "size": of.fraction}
        row |= {"low": of.low, "high": of.high, "p_smooth": of.smooth, "p_flat": of.flat, "p_fit": of.misfit}
        rows.append(row | {"kneedle": kneedle(of), "bend": bend(deletion, sizes), "refusal": of.refusal})
    return rows


def kneedle(of: Size) -> float:
    """Where the gain that the curves show, FFid+ s / m, is furthest above a straight line; named always."""
    s = of.fractions.numpy()
    removed = [np.minimum(alpha * s, 1 if cap is None else cap) for alpha, cap in of.settings]
    gain = (of.curves.numpy() * s / removed).mean(0)
    return float(s[(gain / gain.max() - s / s[-1]).argmax()])


def bend(curve: np.ndarray, sizes: Sequence[float]) -> float:
    """Where a deletion curve would end that changes evenly: the size at which nine tenths are lost, over 0.9."""
    lost = np.maximum.accumulate(np.concatenate([[0], curve]))
    return float(np.interp(0.9 * lost[-1], lost, [0, *sizes]) / 0.9)
