"""Simulated curves of FFid+ whose truth is known: does `faithlab.metrics.size.read` name what is there, and only that?

No network is asked. Features have a relevance by their place in the ranking; how much of it FFid+ removes is drawn from
its mean and spread under subsets at random; a response says how many answers that costs; and the answers of one image
err together. Each simulated study is numbered, and the same by itself as among others.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import ndtr
from torch import Tensor

from faithlab import masks
from faithlab.metrics.size import SETTINGS, SIZES, Setting, Size, read

FEATURES = 400
RESPONSES = {
    "linear": lambda share: share,
    "square": lambda share: share**2,
    "saturated": lambda share: np.minimum(1, share / 0.25),
}
"""Answers lost over the share of the relevance that is removed."""
KINDS = ("block", "unequal", "exponential", "linear", "random", "equal", "ignored")


@dataclass(frozen=True)
class Plateau:
    """What is simulated.

    Attributes:
        kind: "block": the first features are relevant, all equally. "unequal": behind them are 15 % of the features
            with 0.15 of their relevance. "exponential", "linear": relevance fades out. "random": a block in random
            order. "equal": all features are relevant. "ignored": the network does not look at its input.
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
        return self.kind in ("block", "unequal")

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
        first, place = round(self.size * FEATURES), np.arange(FEATURES) / FEATURES
        relevance = np.zeros(FEATURES)
        relevance[:first] = 1
        if self.kind == "unequal":
            relevance[first : first + 3 * FEATURES // 20] = 0.15
        elif self.kind == "exponential":
            relevance = np.exp(-place / 0.15)
        elif self.kind == "linear":
            relevance = np.clip(1 - place / 0.3, 0, None)
        elif self.kind == "equal":
            relevance[:] = 1
        if self.kind == "random":
            return random.permutation(relevance)
        swapped = round(self.noise * first)
        here = random.choice(first, swapped, replace=False)
        there = first + random.choice(FEATURES - first, swapped, replace=False)
        relevance[here], relevance[there] = relevance[there], relevance[here]
        return relevance
