"""Greedy search from either end of an order, and the best order: greedy search, refined."""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from faithlab import masks
from faithlab.engine import Score
from faithlab.search.chains import Problem, State, Trajectory, run
from faithlab.search.insertion import insert
from faithlab.search.memory import Remembered

ENDS = {"Mo": ("top",), "Le": ("bottom",), "Le-Mo": ("top", "bottom")}
"""Where greedy search of an objective starts: the paper's ends of Mo and of Le, and both of their difference."""


def greedy(
    score: Score,
    count: int,
    features: int,
    *,
    objective: str,
    ends: tuple[str, ...] | None = None,
    device: torch.device | str = "cpu",
    resume: Path | None = None,
) -> Trajectory:
    """TRACE-Greedy: place one feature after the other, each time the one that is best there (section 4).

    Every objective is a sum over the prefixes S of an order: of f(only S) for LeRF, of f(without S) for MoRF, of their
    difference for LeRF - MoRF. From the top, a prefix grows by the feature with which its term is best; from the
    bottom, the prefix of all loses the one without which it is best. Of equal ones it is the smallest index. The paper
    goes from the top for Mo and from the bottom for Le, and has no greedy search of Le-Mo. Here that goes from both
    ends, and the better order of each image counts. F (F + 1) / 2 + 1 masked inputs for each end and side.

    Args:
        score: see `faithlab.engine.scorer`.
        count: of the inputs, B.
        features: F.
        objective: one of `OBJECTIVES`.
        ends: of "top" and "bottom"; None: as `ENDS` has it.
        device: of the masks.
        resume: a file in which the search is kept as it goes, and from which a killed one goes on.

    Raises:
        KeyError: an unknown objective.
        ValueError: an unknown end, a score that is NaN or infinite, a file that holds another search.
    """
    problem = Problem(score, objective, count)
    ends = ENDS[objective] if ends is None else tuple(ends)
    owner = torch.arange(count, device=device).repeat_interleave(len(ends))
    down = [("bottom", "top").index(end) == 1 for end in ends]
    top = torch.tensor(down, device=device).repeat(count)[:, None]  # [N, 1]
    sides, weights = torch.tensor(problem.sides, device=device), problem.weights.to(device)[:, None]
    start = torch.arange(features, device=device).repeat(len(owner), 1)

    def ask(prefix: Tensor) -> Tensor:
        """[N, n, F] -> [N, S, n]."""
        keep = prefix[:, None] == (sides == 1)[:, None, None]
        pairs = owner.repeat_interleave(keep.shape[1] * keep.shape[2])
        return problem.ask(keep.flatten(0, 2), pairs).view(keep.shape[:3])

    def begin() -> State:
        table = (-torch.inf * weights.sign()).expand(len(owner), -1, features + 1).clone()  # worst until it is known
        table[..., [0, -1]] = ask(torch.stack([start < 0, start >= 0], 1))
        return {"order": start, "table": table}

    def advance(step: int, state: State) -> State:
        here = state["order"]
        left = torch.where(top, here[:, step:], here[:, : features - step])  # [N, n] without a place yet, by index
        prefix = masks.place(here) < torch.where(top, step, features - step)
        tried = prefix[:, None].repeat(1, left.shape[1], 1)
        tried = tried.scatter(2, left[..., None], top[..., None].expand(*left.shape, 1))
        found = ask(tried)
        best = (weights * found).sum(1).argmax(1, keepdim=True)  # the first of equal ones
        chosen = left.gather(1, best)
        rest = left[left != chosen].view(len(owner), features - step - 1)
        down = torch.cat([here[:, :step], chosen, rest], 1)
        up = torch.cat([rest, chosen, here[:, features - step :]], 1)
        length = torch.where(top, step + 1, features - 1 - step)[:, None].expand(-1, len(sides), 1)
        table = state["table"].scatter(2, length, found.gather(2, best[:, None].expand(-1, len(sides), 1)))
        return problem.after(state, order=torch.where(top, down, up), table=table)

    # The last feature has no choice.
    found = run("greedy search", problem, start, advance, features - 1, about=(ends,), begin=begin, resume=resume)
    if found.history.shape[1] < features:
        raise KeyboardInterrupt  # half an order has no value
    return replace(found, history=found.value[:, None])


def best(
    score: Score,
    count: int,
    features: int,
    *,
    objective: str = "Le-Mo",
    sweeps: float = 4.0,
    seed: int = 0,
    images: Tensor | None = None,
    device: torch.device | str = "cpu",
    resume: Path | None = None,
    progress: bool = False,
) -> Trajectory:
    """The best order that is found here: greedy search from both ends, then `insert`, all images in lock-step.

    Args:
        score: see `faithlab.engine.scorer`. Its answers are remembered.
        count: of the inputs, B.
        features: F.
        objective: one of `OBJECTIVES`.
        sweeps: steps of the refinement, for each feature.
        seed: of its random numbers.
        images: [B] identities of the images; None: 0..B-1.
        device: of the masks.
        resume: a file in which the search is kept as it goes, and from which a killed one goes on.
        progress: show a progress bar.

    Returns:
        The order; its history is that of the refinement, and `asked` counts both.

    Raises:
        ValueError: as `greedy` and `insert`.
    """
    score = score if isinstance(score, Remembered) else Remembered(score)
    first = resume and resume.with_name(resume.name + ".greedy")
    start = greedy(score, count, features, objective=objective, ends=("top", "bottom"), device=device, resume=first)
    steps = max(1, round(sweeps * features))
    options = {"objective": objective, "steps": steps, "seed": seed, "images": images}
    found = insert(score, start.order, **options, resume=resume, progress=progress)
    return replace(found, asked=found.asked + start.asked)
