"""The refinement of an order: each feature in turn moves to the best place near its own."""

from pathlib import Path

import torch
from torch import Tensor

from faithlab import masks, rng
from faithlab.engine import Score
from faithlab.search.chains import ROUNDING, Problem, State, Trajectory, run, several
from faithlab.search.orders import vertex_insertion

_KICK = 8
"""Random insertions that lead away from an order that no step betters."""

_TURNS = 1 << 40
"""Draws of the turns of the features: where neither a step draws, nor a random order."""

_REACH = 4
"""A feature may move by 1 / so many of all places, at least by so many places."""


def insert(
    score: Score,
    order: Tensor,
    *,
    objective: str = "Le-Mo",
    steps: int = 256,
    seed: int = 0,
    images: Tensor | None = None,
    resume: Trajectory | Path | None = None,
    progress: bool = False,
) -> Trajectory:
    """Vertex insertion to a local optimum, and from there again (iterated local search).

    Let v stand first in an order, and last. The prefixes of these two are those of the order with v in any place, and
    so they tell the value of every place: F - 1 questions a side for F neighbours, where annealing asks about F / 3 for
    one. A step takes the best of the places within a quarter of the order. Where a whole round of the features moves
    none, eight random insertions lead away from the best order so far, which is kept.

    Args:
        score: see `faithlab.engine.scorer`; `faithlab.search.Remembered` asks nothing twice.
        order: [B, F] where each image starts.
        objective: one of `faithlab.search.OBJECTIVES`.
        steps: those before a `resume` included; at most F - 1 masked inputs each for a side.
        seed: of the turns of the features, and of the random insertions.
        images: [B] identities of the images; None: 0..B-1.
        resume: what an earlier call with the same arguments and fewer steps returned, or a file in which the search is
            kept as it goes, and from which a killed one goes on.
        progress: show a progress bar.

    Raises:
        ValueError: an order that is no permutation, a score that is NaN or infinite, a file that holds
            another search.
    """
    problem = Problem(score, objective, len(order))
    identity, owner, start = several(order, 1, seed, images)
    features, stream = order.shape[1], torch.zeros(1, dtype=torch.int64, device=order.device)
    turns = rng.permutations(seed, identity, stream - _TURNS, features)[:, 0]  # [B, F]
    drawn = rng.by_step(seed, identity, stream, 3 * _KICK)
    at, reach = torch.arange(features, device=order.device), max(_REACH, features // _REACH)
    moving = torch.zeros(len(start), dtype=torch.int64, device=order.device)

    def advance(step: int, state: State) -> State:
        here, table = state["order"], state["table"]
        still = state.get("still", moving)  # [B] since how many steps nothing moved
        kicked = still >= features
        away = state["best order"]
        if bool(kicked.any()):
            (u,) = drawn(step)
            for kick in vertex_insertion(u[:, 0].unflatten(1, (_KICK, 3)), features)[0].unbind(1):
                away = away.gather(1, kick)
        moved = turns[:, step % features, None]  # [B, 1]
        own = masks.place(here).gather(1, moved)  # its place
        low, high = (own - reach).clamp(min=0), (own + reach).clamp(max=features - 1)
        rest = here[here != moved].view(len(here), features - 1)  # all but v, in order
        first, last = torch.cat([moved, rest], 1), torch.cat([rest, moved], 1)
        # In one forward: v first and last, and the whole of an order that leads away.
        asked = torch.cat([torch.where(kicked[:, None], away, first), last])
        lows = torch.cat([torch.where(kicked, 0, low[:, 0]), own[:, 0]])
        highs = torch.cat([torch.where(kicked, features - 1, own[:, 0]), torch.where(kicked, own[:, 0], high[:, 0])])
        found = problem.follow(owner.repeat(2), asked, lows, highs, table.repeat(2, 1, 1))
        ahead, behind = found.chunk(2)  # [B, S, F + 1]
        weights = problem.weights.to(table.device)[:, None]
        # v at place j: prefixes of up to j features without it, longer ones with it.
        shorter, longer = (weights * behind[..., :-1]).sum(1), (weights * ahead[..., 1:]).sum(1)  # [B, F]
        value = shorter.cumsum(1) + longer.flip(1).cumsum(1).flip(1)
        value = value.masked_fill((at < low) | (at > high), -torch.inf)
        place = value.argmax(1, keepdim=True)
        better = value.gather(1, place) > value.gather(1, own) + ROUNDING
        place = torch.where(better, place, own)
        order = torch.where(at == place, moved, last.gather(1, at - (at > place).long()))
        table = torch.where((torch.arange(features + 1, device=order.device) <= place)[:, None], behind, ahead)
        order = torch.where(kicked[:, None], away, order)
        table = torch.where(kicked[:, None, None], ahead, table)
        still = torch.where(better[:, 0] | kicked, 0, still + 1)
        return problem.after(state, order=order, table=table, still=still)

    about = (seed, identity.tolist())
    return run("insertion", problem, start, advance, steps, about=about, resume=resume, progress=progress)
