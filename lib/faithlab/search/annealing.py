"""TRACE's own search, simulated annealing, as the paper runs it."""

from pathlib import Path

import torch
from torch import Tensor

from faithlab import rng
from faithlab.engine import Score
from faithlab.search.chains import Problem, State, Trajectory, run, several
from faithlab.search.orders import NEIGHBOURS


def anneal(
    score: Score,
    order: Tensor,
    *,
    objective: str = "Le-Mo",
    steps: int = 5000,
    temperature: float = 0.1,
    cooling: float = 0.999,
    neighbour: str = "swap",
    restarts: int = 1,
    score_range: tuple[float, float] | None = None,
    seed: int = 0,
    images: Tensor | None = None,
    resume: Trajectory | Path | None = None,
    progress: bool = False,
) -> Trajectory:
    """TRACE-SA: simulated annealing (section 4, appendix D).

    A neighbour is taken if it is at least as good, or with probability exp(-loss / temperature); the temperature falls
    by the factor `cooling` at every step; the best order ever seen is kept. An interrupt (Ctrl-C) ends any search with
    what it has, and `resume` goes on from there as if there had been none.

    Args:
        score: see `faithlab.engine.scorer`.
        order: [B, F] where the first chain of each image starts.
        objective: one of `OBJECTIVES`.
        steps: proposals per chain, those before a `resume` included; the paper takes 5000.
        temperature: at the start; the paper takes 0.1 for probabilities and 2 for logits.
        cooling: factor per step; the paper takes 0.999.
        neighbour: one of `NEIGHBOURS`; the paper takes the swap.
        restarts: chains per image, all in the same batch; those after the first start at random orders.
        score_range: lowest and highest number that the score can give, (0, 1) for probabilities. Proposals that cannot
            be taken any more are given up then, which changes no decision. None: not known, all is asked.
        seed: of the proposals.
        images: [B] identities of the images; None: 0..B-1.
        resume: what an earlier call with the same arguments and fewer steps returned; or a file in which the search is
            kept as it goes, and from which a killed one goes on.
        progress: show a progress bar.

    Raises:
        KeyError: an unknown objective or neighbour.
        ValueError: an order that is no permutation, a score that is NaN or outside its range.
    """
    problem = Problem(score, objective, len(order), score_range)
    identity, owner, start = several(order, restarts, seed, images)
    # A chain makes the same proposals however many others there are.
    streams, features = torch.arange(restarts, device=order.device) << 32, order.shape[1]
    moves = rng.by_step(seed, identity, streams, 4, lambda u: (u[..., 3], *NEIGHBOURS[neighbour](u, features)))

    def advance(step: int, state: State) -> State:
        here, known = state["order"], state["table"]
        chance, source, low, high = (each.flatten(0, 1) for each in moves(step))  # [N], [N, F], [N], [N]
        proposed = here.gather(1, source)
        least = chance.log() * (temperature * cooling**step)
        table = problem.follow(owner, proposed, low, high, known, least)
        taken = problem.gain(table) - problem.gain(known) >= least
        proposed = torch.where(taken[:, None], proposed, here)
        return problem.after(state, order=proposed, table=torch.where(taken[:, None, None], table, known))

    about = (temperature, cooling, neighbour, restarts, score_range, seed, identity.tolist())
    return run("annealing", problem, start, advance, steps, about=about, resume=resume, progress=progress)
