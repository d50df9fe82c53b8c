"""How often the rule of verdicts would be wrong about a claim, by simulation on the claim's own table.

Under chance the truth of every part is moved to where the claim is just not true:

- a part that compares cells (`better`, `best`, `in_order`): the cells of every image change places at random, in the
  same way for all networks and for all parts with as many cells;
- a part with a bar or a margin: images are drawn anew from the table, and the estimates are moved so that the table's
  own value lies on the bar, for every network;
- premises and counted facts stay as they are.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import torch
from torch import Tensor

from faithlab import rng
from faithlab.stats import Estimate, Interval
from faithlab.stats.intervals import intervals, weights
from faithstudy.claims.parts import PAIRED, Part
from faithstudy.claims.verdicts import HOLDS, OUTCOMES, REPRODUCED, RULED, Claim, judge, p_values, rule, settle

TOGETHER = 50
"""Simulations that are judged at once, at most: one by one each step's price is that of a call."""
NUMBERS = 1 << 21
"""So many resampled numbers of a part are held at once, at most, if one simulation does not have more."""


@dataclass(frozen=True)
class ErrorRates:
    """How often a claim would get each verdict.

    Attributes:
        claim: its id.
        runs: simulations.
        images: of the part that has fewest; cells that change places within n images do so in 2^n ways.
        chance: verdict -> number of simulations under chance; gated: `REPRODUCED` is false there.
        stable: share of stable random orders (the same for every image) that satisfy the sentence; for one best of K
            about 1 / K; None where nothing is compared.
        power: share of simulations with the printed effect that are reproduced; None where no effect is printed.
        exempt: all parts are counted facts, so that chance has no say.
    """

    claim: str
    runs: int
    images: int
    chance: Counter
    stable: float | None
    power: float | None
    exempt: bool

    @property
    def reproduced(self) -> int:
        """False "reproduced" under chance."""
        return 0 if self.exempt else self.chance[REPRODUCED]

    def row(self) -> dict[str, str | int | float | None]:
        """A row of a table: simulations in all, and those under chance with each verdict."""
        head = {"claim": self.claim, "images": self.images, "runs": 0 if self.exempt else self.runs}
        counts = {verdict: self.chance[verdict] for verdict in RULED}
        return head | counts | {"stable": self.stable, "power": self.power}

    def __str__(self) -> str:
        if self.exempt:
            return f"{self.claim}: counted facts, exempt"
        text = f"{self.claim}: under chance " + ", ".join(f"{self.chance[v]} {v}" for v in RULED if self.chance[v])
        text += f" of {self.runs}"
        text += "" if self.stable is None else f"; stable random order {self.stable:.2f}"
        return text + ("" if self.power is None else f"; power at the printed effect {self.power:.2f}")


def error_rate(claim: Claim, runs: int = 300, *, seed: int = 0, resamples: int = 1000) -> ErrorRates:
    """Simulate a claim under chance, under stable random orders, and at the printed effect.

    The table is the one that the claim was declared on; declare it on another to ask about another.

    Args:
        claim: the claim.
        runs: simulations under chance and at the printed effect; of random orders at most 100.
        seed: of the simulations.
        resamples: of the bootstrap within each.
    """
    tested = [part for part in claim.parts if part.gathered is not None and not part.premise]
    if not tested:
        return ErrorRates(claim.id, runs, 0, Counter(), None, None, True)

    @cache  # the same images for chance and for the printed effect, which only move what was found
    def redrawn(k: int, block: range) -> Estimate:
        return _redrawn(tested[k], seed, block, resamples)

    def moved_to(truth: Tensor, part: Part, block: range) -> Estimate:
        """As if the table's own value were `truth` for every network."""
        found, own = redrawn(next(k for k, known in enumerate(tested) if known is part), block), part.estimate
        pooled, each = (truth - own.value)[:, None], (truth - own.each.value)[..., None]
        return replace(found, pooled=found.pooled.shifted(pooled), each=found.each.shifted(each))

    fixed = judge([part for part in claim.parts if part.premise or part.gathered is None])
    premises, counted = ([j.outcome for j in fixed if j.part.premise == which] for which in (True, False))

    def verdicts(estimated: Callable[[Part, range], Estimate], block: range) -> list[str]:
        found = settle([p_values(estimated(part, block), part.low, part.high, part.needed) for part in tested])
        return [rule([*counted, *(OUTCOMES[k] for k in one)], premises) for one in found.T.tolist()]

    def simulate(estimated: Callable[[Part, range], Estimate], count: int) -> Counter:
        if set(premises) <= {HOLDS}:
            step = min(
                TOGETHER, *(_together(len(part.gathered.rows) * resamples * max(part.matrix.shape)) for part in tested)
            )
            blocks = (range(start, min(start + step, count)) for start in range(0, count, step))
            return Counter(verdict for block in blocks for verdict in verdicts(estimated, block))
        return Counter(verdicts(estimated, range(1)) * count)  # the premises alone decide, so that one tells of all

    def chance(part: Part, block: range) -> Estimate:
        if part.kind in PAIRED and len(part.gathered.datasets) == 1:  # cells change places in an image
            return _permuted(part, seed, block, resamples)
        value = part.estimate.value
        edges = torch.tensor([edge for edge in (part.low, part.high) if abs(edge) != float("inf")], dtype=torch.float64)
        nearest = edges[(value[:, None] - edges).abs().nan_to_num(0).argmin(1)]
        return moved_to(nearest, part, block)

    def stable(part: Part, block: range) -> Estimate:
        if part.kind not in PAIRED:
            same, few = part.estimate, len(block)
            pooled, each = (
                Interval(*(x[..., None].expand(*x.shape, few) for x in of)) for of in (same.pooled, same.each)
            )
            return replace(same, pooled=pooled, each=each)
        # A cell's column goes to where the matrix has it.
        orders = _orders(1, part.matrix.shape[1], seed + 1, block)[0].argsort(1)
        return intervals(part.gathered, part.resampled[:, :, orders].mT, part.matrix)

    def printed(part: Part, block: range) -> Estimate:
        return moved_to(torch.tensor(part.printed, dtype=torch.float64), part, block)

    orders = min(runs, 100)
    compared = any(part.kind in PAIRED for part in tested)
    known = all(part.printed_holds is not None for part in tested)
    return ErrorRates(
        claim.id,
        runs,
        min(min(part.estimate.images_each) for part in tested),
        simulate(chance, runs),
        simulate(stable, orders)[REPRODUCED] / orders if compared else None,
        simulate(printed, runs)[REPRODUCED] / runs if known else None,
        False,
    )


@lru_cache(maxsize=4)  # of the parts of a claim many have as many images and cells
def _orders(images: int, cells: int, seed: int, block: range) -> Tensor:
    """Of every image and simulation, a permutation of the cells, [images, simulations, cells]."""
    return rng.permutations(seed, torch.arange(images), torch.tensor(block), cells)


def _permuted(part: Part, seed: int, block: range, resamples: int) -> Estimate:
    """The estimates where the cells of every image change places."""
    gathered, cells = part.gathered, part.matrix.shape[1]
    own = weights(gathered, resamples)
    width = sum(r.values.shape[1] for network in gathered.rows for cell in network for r in cell)
    orders = _orders(gathered.images[0], cells, seed, block).split(_together(width * max(own[0].shape)), 1)
    values = [gathered.permuted(some)(own).unflatten(2, (-1, cells)) for some in orders]
    return intervals(gathered, torch.cat(values, 2).mT, part.matrix)


def _redrawn(part: Part, seed: int, block: range, resamples: int) -> Estimate:
    """The estimates from images drawn anew."""
    gathered, once = part.gathered, torch.zeros(1, dtype=torch.int64)
    width = max(sum(gathered.images), len(gathered.rows) * max(part.matrix.shape))
    step, values = _together(width * max(resamples, *gathered.images)), []
    for runs in torch.tensor(block).split(step):
        drawn = [rng.uniform(seed + 2 + d, runs, once, n)[:, 0] for d, n in enumerate(gathered.images)]
        picks = [(of * of.shape[1]).long() for of in drawn]
        each = [weights(gathered, resamples, picks=own) for own in zip(*picks, strict=True)]
        found = gathered([torch.cat(of) for of in zip(*each, strict=True)])
        values.append(found.unflatten(1, (len(runs), -1)))
    return intervals(gathered, torch.cat(values, 1).permute(0, 2, 3, 1), part.matrix)


def _together(numbers: int) -> int:
    """How many simulations of so many numbers each are computed at once."""
    return max(1, NUMBERS // numbers)
