"""The refinement of an order: each feature in turn moves to the best place near its own."""

from pathlib import Path

import torch
from torch import Tensor

from faithlab import draws, masks
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
    restarts: int = 1,
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
        order: [B, F] where the first chain of each image starts.
        objective: one of `faithlab.search.OBJECTIVES`.
        steps: of each chain, those before a `resume` included; at most F - 1 masked inputs each for a side.
        restarts: chains per image; those after the first start at random orders.
        seed: of the turns of the features, and of the random insertions.
        images: [B] identities of the images; None: 0..B-1.
        resume: what an earlier call with the same arguments and fewer steps returned, or a file in which the search is
            kept as it goes, and from which a killed one goes on.
        progress: show a progress bar.

    Raises:
        ValueError: no steps, an order that is no permutation, a score that is NaN or infinite, a file that holds
            another search.
    """
    problem = Problem(score, objective, len(order))
    identity, owner, start = several(order, restarts, seed, images, steps)
    features, chain = order.shape[1], torch.arange(restarts, device=order.device)
    turns = draws.permutations(seed, identity, -_TURNS - chain, features).flatten(0, 1)  # [N, F]
    at = torch.arange(features, device=order.device)
    reach = max(_REACH, features // _REACH)
    nothing = torch.zeros(len(start), dtype=torch.int64, device=order.device)

    def begin() -> State:
        table = problem.start(owner, start)
        # Of each chain: the best order, its gain and its answers, and since how many steps nothing moved.
        return {"order": start, "table": table, "top": start, "top table": table, "still": nothing}

    def advance(step: int, state: State) -> State:
        here, table = state["order"], state["table"]
        kicked = state["still"] >= features  # [N]
        u = draws.uniform(seed, identity, (chain << 32) + step, 3 * _KICK).flatten(0, 1).unflatten(1, (_KICK, 3))
        away = state["top"]
        for i in range(_KICK):
            away = away.gather(1, vertex_insertion(u[:, i], features)[0])
        moved = turns[:, step % features, None]  # [N, 1]
        own = masks.place(here).gather(1, moved)  # its place
        low, high = (own - reach).clamp(min=0), (own + reach).clamp(max=features - 1)
        first = here.gather(1, torch.where(at == 0, own, at - (at <= own).long()))
        last = here.gather(1, torch.where(at == features - 1, own, (at + (at >= own).long()).clamp(max=features - 1)))
        # In one forward: v first and last, and the whole of an order that leads away.
        asked = torch.cat([torch.where(kicked[:, None], away, first), last])
        lows = torch.cat([torch.where(kicked, 0, low[:, 0]), own[:, 0]])
        highs = torch.cat([torch.where(kicked, features - 1, own[:, 0]), torch.where(kicked, own[:, 0], high[:, 0])])
        found = problem.follow(owner.repeat(2), asked, lows, highs, table.repeat(2, 1, 1))
        ahead, behind = found.chunk(2)  # [N, S, F + 1]
        weights = problem.weights.to(table.device)[:, None]
        # v at place j: prefixes of up to j features without it, longer ones with it.
        value = (weights * behind[..., :-1]).sum(1).cumsum(1) + (weights * ahead[..., 1:]).sum(1).flip(1).cumsum(
            1
        ).flip(1)
        value = value.masked_fill((at < low) | (at > high), -torch.inf)
        place = value.argmax(1, keepdim=True)
        better = value.gather(1, place) > value.gather(1, own) + ROUNDING
        place = torch.where(better, place, own)
        rest = last[:, :-1]  # all but v, in order
        order = rest.gather(1, (at - (at > place).long()).clamp(max=features - 2))
        order = torch.where(at == place, moved, order)
        length = torch.arange(features + 1, device=order.device)
        table = torch.where((length <= place)[:, None], behind, ahead)
        order = torch.where(kicked[:, None], away, order)
        table = torch.where(kicked[:, None, None], ahead, table)
        up = problem.gain(table) > problem.gain(state["top table"])
        return problem.after(
            state,
            order=order,
            table=table,
            top=torch.where(up[:, None], order, state["top"]),
            still=torch.where(better[:, 0] | kicked, 0, state["still"] + 1),
            **{"top table": torch.where(up[:, None, None], table, state["top table"])},
        )

    about = (seed, restarts, identity.tolist())
    return run("insertion", problem, begin, advance, steps, start=start, about=about, resume=resume, progress=progress)
