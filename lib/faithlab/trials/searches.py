"""Searches side by side: what each finds for the forwards that it asks for (TRACE: Wang and Wang, 2024).

The paper names tabu search and a genetic algorithm beside its own searches. They serve this comparison alone, and show
what a search is: a step from a state to the next, which `faithlab.search.chains.run` takes, asking only what is new and
keeping the best. All others are in `faithlab.search`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from faithlab import draws, masks
from faithlab.engine import Score
from faithlab.search import Remembered, Trajectory
from faithlab.search.chains import Problem, State, run, several
from faithlab.search.orders import swap, two


def tabu(
    score: Score,
    order: Tensor,
    *,
    steps: int,
    objective: str = "Le-Mo",
    candidates: int = 8,
    tenure: int = 20,
    seed: int = 0,
    images: Tensor | None = None,
    resume: Trajectory | Path | None = None,
) -> Trajectory:
    """Of some random swaps the best that was not made within the last steps, better or not (Glover, 1986).

    Args:
        score: as in `faithlab.search.insert`.
        order: [B, F] where each image starts.
        steps: those before a `resume` included.
        objective: one of `faithlab.search.OBJECTIVES`.
        candidates: swaps that are asked about in a step.
        tenure: steps for which a swap is not made again, unless it leads to the best order so far.
        seed: of the random numbers.
        images: [B] identities of the images; None: 0..B-1.
        resume: as in `faithlab.search.insert`.

    Raises:
        ValueError: as `faithlab.search.insert`.
    """
    problem = Problem(score, objective, len(order))
    identity, each, start = several(order, 1, seed, images, steps)
    features, tried = order.shape[1], each.repeat_interleave(candidates)
    drawn = draws.by_step(seed, identity, torch.arange(candidates, device=order.device) << 32, 3)
    never = each.new_zeros(len(each), features, features)

    def advance(step: int, state: State) -> State:
        now, until = state["order"], state.get("until", never).clone()
        source, low, high = swap(drawn(step).flatten(0, 1), features)
        proposed = now[tried].gather(1, source)
        table = problem.follow(tried, proposed, low, high, state["table"][tried])
        a, b = now[tried].gather(1, torch.stack([low, high], 1)).sort(1).values.unbind(1)  # the two features
        gain = problem.gain(table)
        allowed = (until[tried, a, b] <= step) | (gain > state["best"][tried])
        top = gain.masked_fill(~allowed, -torch.inf).view(-1, candidates).argmax(1) + each * candidates
        moved = allowed[top]
        until[each[moved], a[top][moved], b[top][moved]] = step + 1 + tenure
        order = torch.where(moved[:, None], proposed[top], now)
        table = torch.where(moved[:, None, None], table[top], state["table"])
        return problem.after(state, order=order, table=table, until=until)

    about = (candidates, tenure, seed, identity.tolist())
    return run("tabu search", problem, start, advance, steps, about=about, resume=resume)


def genetic(
    score: Score,
    order: Tensor,
    *,
    steps: int,
    objective: str = "Le-Mo",
    population: int = 16,
    mutation: float = 0.5,
    seed: int = 0,
    images: Tensor | None = None,
    resume: Trajectory | Path | None = None,
) -> Trajectory:
    """The best of parents and children live on; a child has the stronger ones of two pairs as parents (Holland, 1992).

    Args:
        score: as in `faithlab.search.insert`.
        order: [B, F] where the first of each image starts.
        steps: those before a `resume` included.
        objective: one of `faithlab.search.OBJECTIVES`.
        population: orders of each image that live at a time; those after the first start at random.
        mutation: the share of the children of which two features change places.
        seed: of the random numbers.
        images: [B] identities of the images; None: 0..B-1.
        resume: as in `faithlab.search.insert`.

    Raises:
        ValueError: as `faithlab.search.insert`.
    """
    problem = Problem(score, objective, len(order))
    identity, owner, start = several(order, population, seed, images, steps)
    count, features = order.shape
    first = torch.arange(count, device=order.device)[:, None] * population
    drawn = draws.by_step(seed, identity, torch.arange(population, device=order.device) << 32, 10)

    def advance(step: int, state: State) -> State:
        u = drawn(step)
        picked = (u[..., :4] * population).long() + first[..., None]
        strength = problem.gain(state["table"])[picked]
        stronger = torch.where(strength[..., 0::2] >= strength[..., 1::2], picked[..., 0::2], picked[..., 1::2])
        one, other = state["order"][stronger.flatten(0, 1)].unbind(1)
        u = u.flatten(0, 1)[:, 4:]
        children = _crossed(one, other, *two(u[:, :2], features))
        swapped = children.gather(1, swap(u[:, 2:5], features)[0])
        children = torch.where((u[:, 5] < mutation)[:, None], swapped, children)
        born = {"order": children, "table": problem.start(owner, children)}
        every = {k: torch.cat([of[k].unflatten(0, (count, -1)) for of in (state, born)], 1).flatten(0, 1) for k in born}
        fittest = problem.gain(every["table"]).view(count, -1).argsort(dim=1, descending=True, stable=True)
        alive = (fittest[:, :population] + 2 * first).flatten()
        return problem.after(state, **{k: of[alive] for k, of in every.items()})

    about = (population, mutation, seed, identity.tolist())
    return run("genetic algorithm", problem, start, advance, steps, about=about, resume=resume)


def _crossed(one: Tensor, other: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The places low to high of one order, and in the others the rest in the order of the other, [N, F]."""
    place = masks.place(one)
    block = (place >= low[:, None]) & (place <= high[:, None])
    rank = torch.empty_like(other).scatter(1, other, (~block).gather(1, other).cumsum(1) - 1)  # of the rest
    return masks.place(torch.where(block, place, rank + torch.where(rank < low[:, None], 0, (high - low + 1)[:, None])))


def by_forwards(
    search: Callable[..., Trajectory],
    score: Remembered,
    order: Tensor,
    most: float,
    steps: int,
    stride: int = 1,
    **options: Any,
) -> list[tuple[float, Tensor]]:
    """What a search reaches as it goes on: forwards for each input, what `score` has asked before included; values [B].

    It ends where it has asked for `most` forwards an input, or more in its last stride, or taken all its steps: of a
    small problem all subsets are known soon, and no step asks for more.

    Args:
        search: one that can be resumed, such as `faithlab.search.insert`.
        score: whose forwards are counted.
        order: [B, F] where it starts.
        most: forwards for each input.
        steps: at most.
        stride: steps from one look to the next.
        **options: of the search.
    """
    path, found, taken = [], None, 0
    while score.forwards < most * len(order) and taken < steps:
        taken += stride
        found = search(score, order, steps=taken, resume=found, **options)
        path.append((score.forwards / len(order), found.value.cpu()))
    return path


def repeated(score: Score, images: Tensor, count: int, *, first: int = 1) -> tuple[Score, Tensor]:
    """Inputs that are searched several times, each time with random numbers of its own: their score and identities.

    Args:
        score: of the inputs.
        images: [B] identities.
        count: how often.
        first: the number of the first time; 0 has the random numbers of the inputs themselves.

    Returns:
        A score of count * B inputs, all once before any again, and their identities, [count * B].
    """
    many = torch.cat([images + 10_000_000 * (first + k) for k in range(count)])
    return lambda keep, positions: score(keep, positions % len(images)), many


def by_questions(path: Trajectory, asked: Sequence[float], start: Trajectory | None = None) -> Tensor:
    """What a search has reached after so many masked inputs for an image, [B, K] float64.

    All its steps count as equally dear, so that it needs no memory of what each has asked.

    Args:
        path: the search.
        asked: masked inputs for an image, those of the start included, [K].
        start: the search that found the order it starts at; None: a random one, for nothing.
    """
    steps = path.history.shape[1] - 1
    paid, each = start.asked.double().mean() if start else 0.0, path.asked.double().mean() / steps
    return path.history[:, [min(steps, max(0, int((most - paid) / each))) for most in asked]]
