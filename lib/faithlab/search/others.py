"""Two more searches that the paper names without their details, in their plain forms.

Arguments that are not told are those of `faithlab.search.anneal`, as are the errors.
"""

from pathlib import Path

import torch
from torch import Tensor

from faithlab import arguments, draws
from faithlab.engine import Score
from faithlab.search.chains import Problem, State, Trajectory, run, several
from faithlab.search.orders import swap, two


def tabu(
    score: Score,
    order: Tensor,
    *,
    objective: str = "Le-Mo",
    steps: int = 500,
    candidates: int = 8,
    tenure: int = 20,
    seed: int = 0,
    images: Tensor | None = None,
    resume: Trajectory | Path | None = None,
    progress: bool = False,
) -> Trajectory:
    """Tabu search (Glover, 1986; named in section 4 and appendix E).

    Each step tries some random swaps and takes the best of them, better or not, but for those of two features that were
    exchanged within the last `tenure` steps, unless the result is the best ever seen.

    Args:
        steps: moves per image.
        candidates: swaps that are tried at each step.
        tenure: steps for which an exchanged pair may not be exchanged again.
    """
    arguments.whole("candidates", candidates, 1)
    arguments.whole("tenure", tenure, 0)
    problem = Problem(score, objective, len(order))
    identity, owner, start = several(order, 1, seed, images, steps)
    count, features = order.shape
    tried = owner.repeat_interleave(candidates)  # [B * candidates] the image of each candidate
    stream = torch.arange(candidates, device=order.device) << 32

    def begin() -> State:
        # The step until which two features may not be exchanged.
        forbidden = torch.zeros(count, features, features, dtype=torch.int64, device=order.device)
        return {"order": start, "table": problem.start(owner, start), "forbidden": forbidden}

    def advance(step: int, state: State) -> State:
        u = draws.uniform(seed, identity, stream + step, 3).flatten(0, 1)
        source, low, high = swap(u, features)
        here, known = state["order"][tried], state["table"][tried]
        proposed = here.gather(1, source)
        table = problem.follow(tried, proposed, low, high, known)
        pair = here.gather(1, torch.stack([low, high], 1)).sort(1).values  # [B * candidates, 2]
        gain, forbidden = problem.gain(table), state["forbidden"].clone()
        allowed = (forbidden[tried, pair[:, 0], pair[:, 1]] <= step) | (gain > state["best"][tried])
        best = gain.masked_fill(~allowed, -torch.inf).view(count, candidates).argmax(1)  # the first of equal ones
        best = best + torch.arange(count, device=order.device) * candidates
        moved = owner[allowed[best]]
        forbidden[moved, pair[best, 0][moved], pair[best, 1][moved]] = step + 1 + tenure
        return problem.after(
            state,
            order=torch.where(allowed[best, None], proposed[best], state["order"]),
            table=torch.where(allowed[best, None, None], table[best], state["table"]),
            forbidden=forbidden,
        )

    about = (candidates, tenure, seed, identity.tolist())
    return run(
        "tabu search", problem, begin, advance, steps, start=start, about=about, resume=resume, progress=progress
    )


def genetic(
    score: Score,
    order: Tensor,
    *,
    objective: str = "Le-Mo",
    steps: int = 100,
    population: int = 16,
    mutation: float = 0.5,
    seed: int = 0,
    images: Tensor | None = None,
    resume: Trajectory | Path | None = None,
    progress: bool = False,
) -> Trajectory:
    """A genetic algorithm on orders (Holland, 1992; named in section 4 and appendix E).

    Each generation every place of the population gets a child of two parents, each the better of two picked at random.
    The child has a random block of places from one parent, and the other features in the order of the other parent
    (order crossover); some children have two features exchanged. The best of parents and children live on.

    Args:
        order: [B, F] the first of each image's population; the others are random.
        steps: generations.
        population: orders per image, two or more.
        mutation: share of the children that have two features exchanged.
    """
    arguments.whole("population", population, 2)
    arguments.share("mutation", mutation)
    problem = Problem(score, objective, len(order))
    identity, owner, start = several(order, population, seed, images, steps)
    count, features = order.shape
    stream = torch.arange(population, device=order.device) << 32
    first = torch.arange(count, device=order.device)[:, None] * population  # the first of each image's population

    def begin() -> State:
        return {"order": start, "table": problem.start(owner, start)}

    def advance(step: int, state: State) -> State:
        u = draws.uniform(seed, identity, stream + step, 10)  # [B, population, 10]
        fitness = problem.gain(state["table"]).view(count, population)
        picked = (u[..., :4] * population).long()  # [B, population, 4]
        strength = fitness.gather(1, picked.flatten(1)).view(picked.shape)
        stronger = strength[..., 0::2] >= strength[..., 1::2]  # [B, population, 2]
        parents = torch.where(stronger, picked[..., 0::2], picked[..., 1::2]) + first[..., None]
        one, other = state["order"][parents.flatten(0, 1)].unbind(1)  # [B * population, F] each
        numbers = u.flatten(0, 1)[:, 4:]
        children = order_crossover(one, other, *two(numbers[:, :2], features))
        source, _, _ = swap(numbers[:, 2:5], features)
        children = torch.where((numbers[:, 5] < mutation)[:, None], children.gather(1, source), children)
        born = {"order": children, "table": problem.start(owner, children)}
        everyone = {
            key: torch.cat([state[key].unflatten(0, (count, -1)), born[key].unflatten(0, (count, -1))], 1).flatten(0, 1)
            for key in born
        }
        fittest = problem.gain(everyone["table"]).view(count, -1).argsort(dim=1, descending=True, stable=True)
        alive = (fittest[:, :population] + 2 * first).flatten()
        return problem.after(state, order=everyone["order"][alive], table=everyone["table"][alive])

    about = (population, mutation, seed, identity.tolist())
    return run(
        "genetic algorithm", problem, begin, advance, steps, start=start, about=about, resume=resume, progress=progress
    )


def order_crossover(one: Tensor, other: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The places low..high of one parent, and the other features in the order of the other, [N, F]."""
    place = torch.arange(one.shape[1], device=one.device)
    block = (place >= low[:, None]) & (place <= high[:, None])  # [N, F] by place
    taken = torch.zeros_like(block).scatter_(1, one, block)  # [N, F] by feature
    # Free places in order, then those of the block; features to fill them in order, then those of the block.
    places = block.byte().argsort(dim=1, stable=True)
    rest = other.gather(1, taken.gather(1, other).byte().argsort(dim=1, stable=True))
    free = place < (~block).sum(1, keepdim=True)
    return torch.empty_like(one).scatter_(1, places, torch.where(free, rest, one.gather(1, places)))
