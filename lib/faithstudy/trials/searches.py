"""Searches side by side: what each finds for the forwards that it asks for (TRACE: Wang and Wang, 2024).

`compare` lets those of the paper and ours ask the same score about the same inputs, each for as many forwards. The
paper names tabu search and a genetic algorithm beside its own searches. They serve this comparison alone, and show what
a search is: a step from a state to the next, which `faithlab.search.chains.run` takes, asking only what is new and
keeping the best. All others are in `faithlab.search`.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from faithlab import masks, rng, search
from faithlab.engine import Output, Score
from faithlab.metrics import METRICS, trajectory
from faithlab.search import Remembered, Trajectory
from faithlab.search.chains import Problem, State, run, several
from faithlab.search.orders import swap, two
from faithstudy.trials import optimum

PAPER = ("greedy, MoRF", "greedy, LeRF", "annealing", "tabu search", "genetic algorithm")
"""The searches that the paper has or names."""

OURS = ("greedy, both ends", "both ends, annealing", "both ends, insertion")
"""Those that grow the order from both ends, and may go on from there."""


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
    identity, each, start = several(order, 1, seed, images)
    features, tried = order.shape[1], each.repeat_interleave(candidates)
    streams = torch.arange(candidates, device=order.device) << 32
    swaps = rng.by_step(seed, identity, streams, 3, lambda u: swap(u, features))
    never = each.new_zeros(len(each), features, features)

    def advance(step: int, state: State) -> State:
        now, until = state["order"], state.get("until", never).clone()
        source, low, high = (each.flatten(0, 1) for each in swaps(step))
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
    identity, owner, start = several(order, population, seed, images)
    count, features = order.shape
    first = torch.arange(count, device=order.device)[:, None] * population
    drawn = rng.by_step(seed, identity, torch.arange(population, device=order.device) << 32, 10)

    def advance(step: int, state: State) -> State:
        (u,) = drawn(step)
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


class Way(NamedTuple):
    """How a search is made: its start, how it goes on, and for how long."""

    start: str | None
    """The objective of the greedy search that it starts with; None: a random order."""
    further: Callable[..., Trajectory] | None
    """The search that goes on from there; None: it ends there."""
    steps: int
    """Steps at most."""
    stride: int
    """Steps from one look at what it has reached to the next."""


class Found(NamedTuple):
    """What a search has found."""

    path: list[tuple[float, Tensor]]
    """Where it has an order within its forwards: forwards for each input, and the values of the best orders, [B]."""
    forwards: float
    """All that it asked for, for each input."""
    seconds: float
    """Of the clock, for each input."""


def ways(output: Output, moves: int) -> dict[str, Way]:
    """How each of `PAPER` and `OURS` searches for LeRF - MoRF of an output, with so many proposals of annealing."""
    schedule = optimum.schedule(METRICS["LeRF - MoRF"].given(output=output), moves)
    annealing, sweeping = (partial(search.anneal, **schedule), moves, 3), (4 * moves, 1)
    return {
        "greedy, MoRF": Way("Mo", None, 0, 0),
        "greedy, LeRF": Way("Le", None, 0, 0),
        "annealing": Way("Le", *annealing),
        "tabu search": Way(None, tabu, *sweeping),
        "genetic algorithm": Way(None, genetic, *sweeping),
        "greedy, both ends": Way("Le-Mo", None, 0, 0),
        "both ends, annealing": Way("Le-Mo", *annealing),
        "both ends, insertion": Way("Le-Mo", search.insert, *sweeping),
    }


def compare(
    score: Score, images: Tensor, features: int, *, output: Output, most: float, moves: int, seed: int = 0
) -> dict[str, Found]:
    """What each search for LeRF - MoRF finds for the same inputs, in as many forwards.

    None knows what another has asked: each remembers its own subsets, and pays for those that are new to it.

    Args:
        score: of the inputs by `output`; what it remembers itself saves time and is no search's gain.
        images: [B] identities of the inputs.
        features: of each.
        output: what `score` reads off the network.
        most: forwards for each input.
        moves: proposals of annealing.
        seed: of the random numbers.

    Returns:
        By search, what it found; without those that need more forwards before they have an order.

    Raises:
        ValueError: all do.
    """
    begin, compared = search.random_orders(images, features, seed=seed)[:, 0], {}
    for name, way in ways(output, moves).items():
        own, order, began = Remembered(score), begin, time.perf_counter()
        if way.start:
            needed = (features * (features + 1) // 2 + 1) * (4 if way.start == "Le-Mo" else 1)
            if needed > 2 * most:  # of different subsets there may be fewer
                continue
            order = search.greedy(own, len(images), features, objective=way.start, device=images.device).order
        curves = trajectory.curves(own, order)
        path = [(own.forwards / len(images), (curves.lerf - curves.morf).sum(1).cpu())]
        about = {"seed": seed, "images": images}
        path += by_forwards(way.further, own, order, most, way.steps, way.stride, **about)
        if affordable := [(used, value) for used, value in path if used <= most]:
            seconds = (time.perf_counter() - began) / len(images)
            compared[name] = Found(affordable, own.forwards / len(images), seconds)
    if not compared:
        raise ValueError(f"in {most:g} forwards an input no search has an order of {features} features: give it more")
    return compared


def reached(path: Sequence[tuple[float, Tensor]], forwards: float) -> Tensor:
    """The value of each input's best order after so many forwards, [B]; that of chance, 0, before there is an order."""
    return next((value for used, value in reversed(path) if used <= forwards), torch.zeros_like(path[0][1]))


def by_forwards(
    further: Callable[..., Trajectory] | None,
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
        further: a search that can be resumed, such as `faithlab.search.insert`; None, where no steps are taken.
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
        found = further(score, order, steps=taken, resume=found, **options)
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
