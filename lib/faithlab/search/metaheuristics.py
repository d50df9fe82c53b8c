"""Searches that the paper names and does not use: tabu search, and a genetic algorithm."""

from pathlib import Path

import torch
from torch import Tensor

from faithlab import draws
from faithlab.engine import Score
from faithlab.search.chains import Problem, State, Trajectory, run, several
from faithlab.search.orders import swap, two


def tabu(
    score: Score,
    order: Tensor,
    *,
    objective: str = "Le-Mo",
    steps: int = 256,
    candidates: int = 8,
    tenure: int = 20,
    seed: int = 0,
    images: Tensor | None = None,
    resume: Trajectory | Path | None = None,
    progress: bool = False,
) -> Trajectory:
    """Of some random swaps the best that was not made within the last steps, better or not (Glover, 1986).

    Args:
        score: see `faithlab.engine.scorer`; `faithlab.search.Remembered` asks nothing twice.
        order: [B, F] where each image starts.
        objective: one of `faithlab.search.OBJECTIVES`.
        steps: those before a `resume` included.
        candidates: swaps that are asked about in a step.
        tenure: steps for which a swap is not made again, unless it leads to the best order so far.
        seed: of the swaps.
        images: [B] identities of the images; None: 0..B-1.
        resume: what an earlier call with the same arguments and fewer steps returned, or a file, as in `insert`.
        progress: show a progress bar.

    Raises:
        ValueError: as in `faithlab.search.insert`.
    """
    problem = Problem(score, objective, len(order))
    identity, each, start = several(order, 1, seed, images, steps)
    tried = each.repeat_interleave(candidates)
    stream = torch.arange(candidates, device=order.device) << 32

    def begin() -> State:
        until = torch.zeros(*start.shape, start.shape[1], dtype=torch.int64, device=order.device)
        return {"order": start, "table": problem.start(each, start), "until": until}

    def advance(step: int, state: State) -> State:
        u = draws.uniform(seed, identity, stream + step, 3).flatten(0, 1)
        source, low, high = swap(u, order.shape[1])
        here, until = state["order"][tried], state["until"].clone()
        proposed = here.gather(1, source)
        table = problem.follow(tried, proposed, low, high, state["table"][tried])
        a, b = here.gather(1, torch.stack([low, high], 1)).sort(1).values.unbind(1)
        gain = problem.gain(table)
        allowed = (until[tried, a, b] <= step) | (gain > state["best"][tried])
        top = gain.masked_fill(~allowed, -torch.inf).view(len(order), candidates).argmax(1) + each * candidates
        moved = allowed[top]
        until[each[moved], a[top][moved], b[top][moved]] = step + 1 + tenure
        taken = torch.where(moved[:, None], proposed[top], state["order"])
        table = torch.where(moved[:, None, None], table[top], state["table"])
        return problem.after(state, order=taken, table=table, until=until)

    about = (seed, candidates, tenure, identity.tolist())
    return run("tabu", problem, begin, advance, steps, start=start, about=about, resume=resume, progress=progress)


def genetic(
    score: Score,
    order: Tensor,
    *,
    objective: str = "Le-Mo",
    steps: int = 64,
    population: int = 16,
    mutation: float = 0.5,
    seed: int = 0,
    images: Tensor | None = None,
    resume: Trajectory | Path | None = None,
    progress: bool = False,
) -> Trajectory:
    """Orders that cross, a block of one and the rest in the order of the other, and live on if good (Holland, 1992).

    A step has as many children as there are orders: each has two parents, the stronger ones of two pairs. The best of
    parents and children live on.

    Args:
        score: see `faithlab.engine.scorer`.
        order: [B, F] the first order of each image; the others are random.
        objective: one of `faithlab.search.OBJECTIVES`.
        steps: generations, those before a `resume` included.
        population: orders of each image.
        mutation: the chance that two features of a child change places.
        seed: of all that is drawn.
        images: [B] identities of the images; None: 0..B-1.
        resume: what an earlier call with the same arguments and fewer steps returned, or a file, as in `insert`.
        progress: show a progress bar.

    Raises:
        ValueError: as in `faithlab.search.insert`.
    """
    problem = Problem(score, objective, len(order))
    identity, owner, start = several(order, population, seed, images, steps)
    count, features = order.shape
    stream = torch.arange(population, device=order.device) << 32
    first = torch.arange(count, device=order.device)[:, None] * population

    def begin() -> State:
        return {"order": start, "table": problem.start(owner, start)}

    def advance(step: int, state: State) -> State:
        u = draws.uniform(seed, identity, stream + step, 10)
        fitness = problem.gain(state["table"]).view(count, population)
        picked = (u[..., :4] * population).long()
        strength = fitness.gather(1, picked.flatten(1)).view(picked.shape)
        stronger = torch.where(strength[..., 0::2] >= strength[..., 1::2], picked[..., 0::2], picked[..., 1::2])
        one, other = state["order"][(stronger + first[..., None]).flatten(0, 1)].unbind(1)
        numbers = u.flatten(0, 1)[:, 4:]
        children = _crossed(one, other, *two(numbers[:, :2], features))
        swapped = children.gather(1, swap(numbers[:, 2:5], features)[0])
        children = torch.where((numbers[:, 5] < mutation)[:, None], swapped, children)
        born = {"order": children, "table": problem.start(owner, children)}
        every = {k: torch.cat([of[k].unflatten(0, (count, -1)) for of in (state, born)], 1).flatten(0, 1) for k in born}
        fittest = problem.gain(every["table"]).view(count, -1).argsort(dim=1, descending=True, stable=True)
        alive = (fittest[:, :population] + 2 * first).flatten()
        return problem.after(state, order=every["order"][alive], table=every["table"][alive])

    about = (seed, population, mutation, identity.tolist())
    return run("genetic", problem, begin, advance, steps, start=start, about=about, resume=resume, progress=progress)


def _crossed(one: Tensor, other: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The places low..high of one order, and in the others the rest in the order of the other, [N, F]."""
    place = torch.arange(one.shape[1], device=one.device)
    block = (place >= low[:, None]) & (place <= high[:, None])
    taken = torch.zeros_like(block).scatter_(1, one, block).gather(1, other)
    rest = other.gather(1, taken.byte().argsort(dim=1, stable=True))
    free = block.byte().argsort(dim=1, stable=True)  # free places, then those of the block
    filled = torch.where(place < (~block).sum(1, keepdim=True), rest, one.gather(1, free))
    return torch.empty_like(one).scatter_(1, free, filled)
