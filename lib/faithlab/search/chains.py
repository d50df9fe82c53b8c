"""An order as a chain of subsets, the scores along it, and steps that can be taken up again: shared by all searches."""

import hashlib
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm

from faithlab import masks, rng
from faithlab.engine import Score
from faithlab.search.orders import random_orders

_log = logging.getLogger(__name__)

OBJECTIVES = {"Mo": (-1.0, 0.0), "Le": (0.0, 1.0), "Le-Mo": (-1.0, 1.0)}
"""What is maximised: the weights of MoRF and of LeRF."""

ROUNDING = 1e-6
"""How far a score may lie outside its range, since forwards and sums round; a refinement that gains less is none."""

_FIRST = 2 / 3
"""The part of what could be gained that is asked about before the rest. Less gives up sooner, in more forwards."""

BLOCK = 10.0
"""Seconds between two writes of a search that is kept in a file: a killed run loses these, or one step."""

State = dict[str, Tensor]
"""Where a search stands. Its chains: "order" [N, F], and "table" [N, S, F + 1] float64, an answer for each side of the
objective and prefix length. The best of each image: "best order" [B, F], and what it gains, "best" [B]."""


@dataclass(frozen=True)
class Trajectory:
    """The best order that a search found for each image, and how it got there.

    Attributes:
        order: [B, F] int64, most relevant first.
        value: [B] float64: MoRF for objective Mo, LeRF for Le, their difference for Le-Mo.
        history: [B, steps + 1] float64, the best value after each step, 0 = the start.
        asked: [B] int64, masked inputs that were asked about.
        state: where the search stands, so that it can go on; None where there is nothing to go on with.
    """

    order: Tensor
    value: Tensor
    history: Tensor
    asked: Tensor
    state: State | None = field(default=None, repr=False)


class Problem:
    """An objective on a score, for chains that belong to images."""

    def __init__(self, score: Score, objective: str, count: int, score_range: tuple[float, float] | None = None):
        weights = OBJECTIVES[objective]
        self.score, self.objective = score, objective
        # Side 0 keeps all but the prefix, side 1 only the prefix.
        self.sides = [side for side, weight in enumerate(weights) if weight]
        self.weights = torch.tensor([weight for weight in weights if weight], dtype=torch.float64)
        # What is reported is the metric itself: MoRF, though it is -MoRF that is maximised.
        self.sign = -1.0 if objective == "Mo" else 1.0
        self.asked = torch.zeros(count, dtype=torch.int64)
        # A little wider, for the score may be rounded, and so are sums over prefixes.
        self.range = score_range and (score_range[0] - ROUNDING, score_range[1] + ROUNDING)

    def chains(self, order: Tensor) -> int:
        """The number of chains of orders, [N, F], that belong to each image."""
        return max(1, len(order) // max(1, len(self.asked)))

    def gain(self, table: Tensor) -> Tensor:
        """The number that is maximised: [..., S, F + 1] -> [...]."""
        return (table.sum(-1) * self.weights.to(table.device)).sum(-1)

    def ask(self, keep: Tensor, positions: Tensor) -> Tensor:
        """Return the scores of pairs, [R, F] and [R] -> [R] float64.

        Raises:
            ValueError: another number of answers, one that is NaN or infinite, or outside the range of the score.
        """
        if not len(keep):
            return torch.zeros(0, dtype=torch.float64, device=keep.device)
        answers = self.score(keep, positions)
        self.check(answers.where(answers.isfinite(), torch.nan), (len(keep),))
        self.asked += torch.bincount(positions.cpu(), minlength=len(self.asked))
        return answers.to(keep.device).double()

    def check(self, answers: Tensor, shape: tuple[int, ...]) -> None:
        """Raise a ValueError where scores have another shape, are NaN, or are outside the range of the score."""
        low, high = self.range or (-torch.inf, torch.inf)
        if answers.shape != shape or not bool(((answers >= low) & (answers <= high)).all()):
            raise ValueError(f"expected finite scores {shape} from {low:.3g} to {high:.3g}, but got {[*answers.shape]}")

    def follow(
        self, positions: Tensor, order: Tensor, low: Tensor, high: Tensor, table: Tensor, least: Tensor | None = None
    ) -> Tensor:
        """The table of orders that differ from known ones in the prefixes of lengths low + 1 .. high only.

        Args:
            positions: [N] of the input that each order belongs to.
            order: [N, F].
            low: [N] int64.
            high: [N] int64.
            table: [N, S, F + 1] of the known orders.
            least: [N] what an order has to gain over the known one. Where the score is bounded, an order that cannot
                reach it any more is given up: it keeps known answers, and with them it gains less than that.

        Returns:
            [N, S, F + 1].
        """
        length = torch.arange(table.shape[2], device=order.device)
        left = ((length > low[:, None]) & (length <= high[:, None]))[:, None].expand(table.shape)  # to be asked
        weights, only = self.weights.to(table.device)[:, None], torch.tensor(self.sides, device=order.device) == 1
        place, known, table = masks.place(order), table, table.clone()
        bounded, before = least is not None and self.range is not None, self.gain(known)
        while bool(left.any()):
            now = left
            if bounded:
                highest = torch.maximum(weights * self.range[0], weights * self.range[1])
                room = torch.where(left, highest - weights * known, 0.0)  # what each answer can add at most
                left = left & (self.gain(table) - before + room.sum((1, 2)) >= least)[:, None, None]
                now = _with_most_room(torch.where(left, room, 0.0))
            side, chain, at = now.transpose(0, 1).nonzero(as_tuple=True)  # [R] each
            keep = (place[chain] < at[:, None]) == only[side][:, None]  # [R, F]
            table[chain, side, at] = self.ask(keep, positions[chain])
            left = left & ~now
        return table

    def start(self, positions: Tensor, order: Tensor) -> Tensor:
        """The table of orders of which nothing is known, [N, S, F + 1]."""
        table = torch.empty(len(order), len(self.sides), order.shape[1] + 1, dtype=torch.float64, device=order.device)
        ends = torch.full((len(order),), -1, device=order.device)
        return self.follow(positions, order, ends, torch.full_like(ends, order.shape[1]), table)

    def after(self, state: State, **changed: Tensor) -> State:
        """A state with changes, and the best order of each image in it, among its chains and what it had.

        The earlier of equal ones counts.
        """
        state = {**state, **changed}
        best, order = self.gain(state["table"]), state["order"]
        if len(order) > len(self.asked):
            best, chain = best.view(len(self.asked), -1).max(1)
            order = order.unflatten(0, (len(best), -1))[torch.arange(len(best), device=best.device), chain]
        if "best" in state:
            same = best <= state["best"]
            best = torch.where(same, state["best"], best)
            order = torch.where(same[:, None], state["best order"], order)
        return {**state, "best": best, "best order": order}


def _with_most_room(room: Tensor) -> Tensor:
    """The fewest entries of each chain that have two thirds of its room, [N, S, F + 1] -> the same, bool."""
    ordered = room.flatten(1).sort(dim=1, descending=True, stable=True)
    before = ordered.values.cumsum(1) - ordered.values
    most = (before < _FIRST * ordered.values.sum(1, keepdim=True)) & (ordered.values > 0)
    return torch.zeros_like(most).scatter_(1, ordered.indices, most).view(room.shape)


def several(order: Tensor, chains: int, seed: int, images: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Identities of the images [B], the place of each chain's image [B * chains], and where the chains start."""
    masks.check_order(order)
    identity = rng.identities(len(order), images, order.device)
    owner = torch.arange(len(order), device=order.device).repeat_interleave(chains)
    others = random_orders(identity, order.shape[-1], seed=seed, count=chains - 1)
    return identity, owner, torch.cat([order[:, None], others], 1).flatten(0, 1)


def run(
    name: str,
    problem: Problem,
    start: Tensor,
    advance: Callable[[int, State], State],
    steps: int,
    *,
    about: tuple,
    begin: Callable[[], State] | None = None,
    resume: Trajectory | Path | None = None,
    progress: bool = False,
) -> Trajectory:
    """Take the steps of a search, from the start or from where an earlier one stands.

    An interrupt (Ctrl-C) ends it with what it has.

    Args:
        name: what it is called.
        problem: what is asked, and how often.
        start: [N, F] the orders it starts at.
        advance: the number of a step and the state before it -> that after it.
        steps: those of an earlier search included.
        about: all else that decides its steps, but for their number and the score.
        begin: the state before the first step; None: the orders it starts at, and the answers along them.
        resume: where an earlier one stands, or the file in which the search is kept as it goes.
        progress: show a progress bar.

    Raises:
        ValueError: the file holds another search, or one of another score.
    """
    file = resume if isinstance(resume, Path) else None
    decided = (name, problem.objective, *about, tuple(start.shape))
    digest = hashlib.sha256(repr(decided).encode() + start.cpu().numpy().tobytes()).hexdigest()
    found = _read(file, digest, problem) if file else resume
    if found is None:
        owner = torch.arange(len(problem.asked), device=start.device).repeat_interleave(problem.chains(start))
        state = problem.after(begin() if begin else {"order": start, "table": problem.start(owner, start)})
        history = [state["best"]]
    else:
        problem.check(found.state["table"], (*start.shape[:1], len(problem.sides), start.shape[1] + 1))
        state, history = found.state, list((problem.sign * found.history).unbind(1))
        problem.asked += found.asked
    done = first = len(history) - 1
    written = time.monotonic()

    def reached() -> Trajectory:
        values = problem.sign * torch.stack(history[: done + 1], 1)
        return Trajectory(state["best order"], values[:, -1], values, problem.asked.clone(), state)

    try:
        for step in tqdm(range(first, steps), desc=name, mininterval=5, disable=not progress):
            after = advance(step, state)
            history.append(after["best"])
            state, done = after, step + 1
            if file and time.monotonic() - written >= BLOCK:
                _write(file, digest, reached())
                written = time.monotonic()
    except KeyboardInterrupt:
        _log.warning("%s interrupted after %d of %d steps; its best so far is returned", name, done, steps)
    if file:
        _write(file, digest, reached())
    return reached()


def _read(file: Path, digest: str, problem: Problem) -> Trajectory | None:
    """The search that a file holds; None: there is no file."""
    if not file.exists():
        return None
    kept = torch.load(file, weights_only=True)
    if kept.pop("about") != digest:
        raise ValueError(f"{file} holds another search; name another file, or delete it")
    found = Trajectory(**kept)
    # The answers to an empty prefix show another network or other images; rounded as they may be elsewhere.
    order = found.state["order"]
    known = found.state["table"][:: problem.chains(order), :, 0]  # [B, S]
    image = torch.arange(len(known), device=known.device)
    now = [problem.score(torch.full_like(order[image], side == 0, dtype=torch.bool), image) for side in problem.sides]
    if not torch.allclose(torch.stack(now, 1).to(known), known, rtol=0.05, atol=0.05):
        raise ValueError(f"{file} holds a search of another score; name another file, or delete it")
    return found


def _write(file: Path, digest: str, found: Trajectory) -> None:
    """Keep a search in a file, whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(file.name + ".part")
    torch.save({"about": digest, **vars(found)}, part)
    os.replace(part, file)
