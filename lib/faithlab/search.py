"""TRACE: the order of the features that a deletion metric likes best, searched for on the engine.

Wang, Wang: "Benchmarking Deletion Metrics with the Principled Explanations", 2024. Among all orders (most relevant
first) of an input's F features find the one with the best sum over all its prefixes, with f the score:

    Mo      minimise MoRF = sum over k of f(x without the first k)                      (TRACE-Mo, eq. 3)
    Le      maximise LeRF = sum over k of f(x without the last k)                       (TRACE-Le, eq. 3)
    Le-Mo   maximise LeRF - MoRF                                                        (TRACE-Le-Mo, section 3)

The paper prints "min" for TRACE-Le, too: a misprint, since a high LeRF is good. Logits (-y) or probabilities (-p) are
the readout of the score.

What is fast here: an order is a chain of subsets, and a proposal asks only about the subsets that it changes, a third
of them on average for a swap. Annealing draws its random number first, and so knows what a proposal has to gain. Where
the score is a probability, it gives up as soon as the answers that are left would not be enough, even if each were the
best possible. The chains of all images and restarts go in lock-step, so that their questions fill whole forwards.
`Remembered` answers a subset that was asked before without a forward. `answers` asks about all subsets of a few
features at once: then `optimum` is exact, and every search is a matter of look-ups.

What is promised: random numbers belong to (seed, image, step), and a chain hears the answers to its own questions only.
So where the score gives an input the same number in any batch, an image takes the same steps in any batch, beside any
number of restarts, with or without a memory, a range or an interrupt. A network's answers differ in their last bits by
the other inputs of the forward, the number of threads and the processor. A decision that is as close as that can fall
either way, and paths part. Values are still those of the orders returned, up to rounding, and the search is as good;
orders and paths may differ. (Forwards of a fixed shape would hide some of it, for 1.4 to 4 times the time.)
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from tqdm import tqdm

from faithlab import arguments, draws, masks
from faithlab.engine import Score

_log = logging.getLogger(__name__)

OBJECTIVES = {"Mo": (-1.0, 0.0), "Le": (0.0, 1.0), "Le-Mo": (-1.0, 1.0)}
"""What is maximised: the weights of MoRF and of LeRF."""

_ROUNDING = 1e-6
"""How far a score may lie outside its range, since forwards and sums round."""

_FIRST = 2 / 3
"""The part of what could be gained that is asked about before the rest. Less gives up sooner, in more forwards."""


@dataclass(frozen=True)
class _Chains:
    """Orders of several chains with the answers along them.

    Attributes:
        order: [N, F].
        table: [N, S, F + 1] float64, an answer for each side of the objective and prefix length.
    """

    order: Tensor
    table: Tensor

    def where(self, chosen: Tensor, other: "_Chains") -> "_Chains":
        """The chosen chains of this, [N] bool, and the rest of another."""
        return _Chains(
            torch.where(chosen[:, None], self.order, other.order),
            torch.where(chosen[:, None, None], self.table, other.table),
        )

    def take(self, index: Tensor) -> "_Chains":
        """The chains at an index [n]."""
        return _Chains(self.order[index], self.table[index])


@dataclass(frozen=True)
class _State:
    """Where a search stands: its chains, the best order of each image [B, F] and what it gains [B].

    `tabu` [B, F, F] int64: the step until which a tabu search may not exchange two features.
    """

    chains: _Chains
    order: Tensor
    best: Tensor
    tabu: Tensor | None = None


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
    state: _State | None = field(default=None, repr=False)


class _Problem:
    """An objective on a score, for chains that belong to images."""

    def __init__(self, score: Score, objective: str, images: int, score_range: tuple[float, float] | None = None):
        _check_objective(objective)
        weights = OBJECTIVES[objective]
        self.score = score
        # Side 0 keeps all but the prefix, side 1 only the prefix.
        self.sides = [side for side, weight in enumerate(weights) if weight]
        self.weights = torch.tensor([weight for weight in weights if weight], dtype=torch.float64)
        # What is reported is the metric itself: MoRF, though it is -MoRF that is maximised.
        self.sign = -1.0 if objective == "Mo" else 1.0
        self.asked = torch.zeros(images, dtype=torch.int64)
        if score_range is not None and not (len(score_range) == 2 and score_range[0] < score_range[1]):
            raise ValueError(f"expected a score range from a lower to a higher number, but got {score_range}")
        # A little wider, for the score may be rounded, and so are sums over prefixes.
        self.range = score_range and (score_range[0] - _ROUNDING, score_range[1] + _ROUNDING)

    def gain(self, table: Tensor) -> Tensor:
        """What is maximised: [..., S, F + 1] -> [...]."""
        return (table.sum(-1) * self.weights.to(table.device)).sum(-1)

    def ask(self, keep: Tensor, images: Tensor) -> Tensor:
        """Answers to pairs, [R, F] and [R] -> [R] float64.

        Raises:
            ValueError: another number of answers, one that is NaN or infinite, or outside the range of the score.
        """
        if not len(keep):
            return torch.zeros(0, dtype=torch.float64, device=keep.device)
        answers = self.score(keep, images)
        if answers.shape != (len(keep),):
            raise ValueError(
                f"expected one answer for each pair of a mask and an image, [{len(keep)}], but the score gave "
                f"{tuple(answers.shape)}; make the score with faithlab.engine.scorer"
            )
        if not bool(answers.isfinite().all()):
            raise ValueError(
                f"the score of {int((~answers.isfinite()).sum())} of {len(answers)} masked inputs is NaN or infinite, "
                "so that no order can be preferred; check the model, or leave out these images and count them"
            )
        self.check_range(answers)
        self.asked += torch.bincount(images.cpu(), minlength=len(self.asked))
        return answers.to(keep.device).double()

    def check_range(self, answers: Tensor) -> None:
        """Raise a ValueError if an answer is outside the range of the score."""
        if self.range is not None and bool(((answers < self.range[0]) | (answers > self.range[1])).any()):
            raise ValueError(
                f"expected scores in the range {self.range[0]:.3g} to {self.range[1]:.3g}, but got "
                f"{answers.min().item():.3g} to {answers.max().item():.3g}; for logits leave the range out"
            )

    def follow(
        self,
        images: Tensor,
        order: Tensor,
        low: Tensor,
        high: Tensor,
        table: Tensor,
        least: Tensor | None = None,
    ) -> Tensor:
        """The table of orders that differ from known ones in the prefixes of lengths low + 1 .. high only.

        Args:
            images: [N] the image of each order.
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
        weights, sides = self.weights.to(table.device)[:, None], torch.tensor(self.sides, device=order.device)
        place, known, table = masks.place(order), table, table.clone()
        while bool(left.any()):
            now = left
            if least is not None and self.range is not None:
                highest = torch.maximum(weights * self.range[0], weights * self.range[1])
                room = torch.where(left, highest - weights * known, 0.0)  # what each answer can add at most
                reachable = self.gain(table) - self.gain(known) + room.sum((1, 2))
                left = left & (reachable >= least)[:, None, None]
                now = _with_most_room(torch.where(left, room, 0.0))
            side, chain, at = now.transpose(0, 1).nonzero(as_tuple=True)  # [R] each
            prefix = place[chain] < at[:, None]  # [R, F]
            keep = prefix == (sides[side] == 1)[:, None]
            table[chain, side, at] = self.ask(keep, images[chain])
            left = left & ~now
        return table

    def better(self, chains: _Chains, state: _State | None) -> dict[str, Tensor]:
        """The best order of each image and its gain, among its chains and what it had; the earlier of equal ones."""
        gain = self.gain(chains.table).view(len(self.asked), -1)  # [B, chains]
        best, chain = gain.max(1)
        order = chains.order.view(*gain.shape, -1)[torch.arange(len(gain), device=gain.device), chain]
        if state is not None:
            same = best <= state.best
            best, order = torch.where(same, state.best, best), torch.where(same[:, None], state.order, order)
        return {"order": order, "best": best}

    def start(self, images: Tensor, order: Tensor) -> _Chains:
        """Orders with all their answers."""
        table = torch.empty(len(order), len(self.sides), order.shape[1] + 1, dtype=torch.float64, device=order.device)
        ends = torch.full((len(order),), -1, device=order.device)
        return _Chains(order, self.follow(images, order, ends, torch.full_like(ends, order.shape[1]), table))


def _with_most_room(room: Tensor) -> Tensor:
    """The fewest entries of each chain that have two thirds of its room, [N, S, F + 1] -> the same, bool."""
    ordered = room.flatten(1).sort(dim=1, descending=True, stable=True)
    before = ordered.values.cumsum(1) - ordered.values
    most = (before < _FIRST * ordered.values.sum(1, keepdim=True)) & (ordered.values > 0)
    return torch.zeros_like(most).scatter_(1, ordered.indices, most).view(room.shape)


# The neighbours of an order: which feature stands at each place afterwards


def _swap(u: Tensor, features: int) -> tuple[Tensor, Tensor, Tensor]:
    low, high = _two(u, features)
    at = torch.arange(features, device=u.device).expand(*low.shape, -1)
    source = torch.where(at == low[..., None], high[..., None], torch.where(at == high[..., None], low[..., None], at))
    return source, low, high


def _vertex_insertion(u: Tensor, features: int) -> tuple[Tensor, Tensor, Tensor]:
    low, high = _two(u, features)
    # One of the two ends of the range moves to the other: blocks of one and of the rest change places.
    cut = torch.where(u[..., 2] < 0.5, low + 1, high)
    return _exchange_blocks(low, cut, high, features)


def _block_insertion(u: Tensor, features: int) -> tuple[Tensor, Tensor, Tensor]:
    low, high = _two(u, features)
    cut = low + 1 + ((high - low) * u[..., 2]).long()
    return _exchange_blocks(low, cut, high, features)


def _block_reverse(u: Tensor, features: int) -> tuple[Tensor, Tensor, Tensor]:
    low, high = _two(u, features)
    at = torch.arange(features, device=u.device).expand(*low.shape, -1)
    inside = (at >= low[..., None]) & (at <= high[..., None])
    return torch.where(inside, (low + high)[..., None] - at, at), low, high


def _two(u: Tensor, features: int) -> tuple[Tensor, Tensor]:
    """Two different places, the lower first, uniform over all pairs."""
    one = (u[..., 0] * features).long()
    other = (one + 1 + (u[..., 1] * (features - 1)).long()) % features
    return torch.minimum(one, other), torch.maximum(one, other)


def _exchange_blocks(low: Tensor, cut: Tensor, high: Tensor, features: int) -> tuple[Tensor, Tensor, Tensor]:
    """The places low..cut-1 and cut..high change places, each in its own order."""
    at = torch.arange(features, device=low.device).expand(*low.shape, -1)
    seam = (low + high + 1 - cut)[..., None]  # where the second block now ends
    moved = torch.where(at < seam, at + (cut - low)[..., None], at - (high + 1 - cut)[..., None])
    inside = (at >= low[..., None]) & (at <= high[..., None])
    return torch.where(inside, moved, at), low, high


Neighbour = Callable[[Tensor, int], tuple[Tensor, Tensor, Tensor]]
"""Three uniform numbers [..., 3] and F -> the place that each place's feature comes from [..., F], and the range of
places low..high [...] outside of which nothing moves."""

NEIGHBOURS: dict[str, Neighbour] = {
    "swap": _swap,
    "vertex insertion": _vertex_insertion,
    "block insertion": _block_insertion,
    "block reverse": _block_reverse,
}
"""The neighbour sets that the paper compares (section 4, appendix B.4): two features change places; one moves; a block
moves; a block is turned round. All touch the prefixes between two places."""


# The searches


def greedy(
    score: Score, images: int, features: int, *, objective: str, device: torch.device | str = "cpu"
) -> Trajectory:
    """TRACE-Greedy: remove one feature after the other, each time the one whose removal is best (section 4).

    For Mo the removed feature takes the highest free place, and the lowest score is best; for Le the lowest free place,
    and the highest score is best. Of equal ones the smallest index is removed. F (F + 1) / 2 masked inputs.

    Args:
        score: see `faithlab.engine.scorer`.
        images: B.
        features: F.
        objective: "Mo" or "Le"; there is no greedy step for Le-Mo, which needs the order from both ends.
        device: of the masks.

    Raises:
        ValueError: the objective is Le-Mo, or a score is NaN or infinite.
    """
    arguments.whole("images", images, 0)
    arguments.whole("features", features, 1)
    problem = _Problem(score, objective, images)
    if len(problem.sides) != 1:
        raise ValueError("greedy search takes the objective Mo or Le: LeRF - MoRF has no best single removal")
    lowest_first = objective == "Le"
    at = torch.arange(images, device=device)
    keep = torch.ones(images, features, dtype=torch.bool, device=device)
    total = problem.ask(keep, at)
    removed = []
    for _ in range(features):
        left = keep.nonzero()[:, 1].view(images, -1)  # [B, n] features still there, in order of their index
        tried = keep[:, None].expand(-1, left.shape[1], -1).clone()
        tried.scatter_(2, left[..., None], False)
        found = problem.ask(tried.flatten(0, 1), at.repeat_interleave(left.shape[1])).view(left.shape)
        best = (problem.weights.item() * found).argmax(1, keepdim=True)  # the first of equal ones
        removed.append(left.gather(1, best))
        keep = keep.scatter(1, removed[-1], False)
        total = total + found.gather(1, best)[:, 0]
    order = torch.cat(removed[::-1] if lowest_first else removed, 1)
    return Trajectory(order, total, total[:, None], problem.asked)


def random_orders(images: Tensor, features: int, *, seed: int, count: int = 1) -> Tensor:
    """Uniformly random orders to start from, [B, count, F]; `images` [B] are identities."""
    arguments.whole("count", count, 0)
    # Draws below 0, where no step of a search draws.
    return draws.permutations(seed, images, -1 - torch.arange(count, device=images.device), features)


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
    resume: Trajectory | None = None,
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
        resume: what an earlier call with the same arguments and fewer steps returned.
        progress: show a progress bar.

    Raises:
        ValueError: no steps, an order that is no permutation, an unknown objective or neighbour, a score that is NaN or
            outside its range.
    """
    if neighbour not in NEIGHBOURS:
        raise ValueError(f"expected a neighbour among {', '.join(NEIGHBOURS)}, but got {neighbour!r}")
    arguments.number("temperature", temperature, "above 0", lambda v: v > 0)
    arguments.number("cooling", cooling, "above 0 and up to 1", lambda v: 0 < v <= 1)
    problem = _Problem(score, objective, len(order), score_range)
    identity, owner, start = _several(order, restarts, seed, images)
    # A chain makes the same proposals however many others there are.
    stream = torch.arange(restarts, device=order.device) << 32

    def advance(step: int, state: _State) -> _State:
        u = draws.uniform(seed, identity, stream + step, 4).flatten(0, 1)  # [N, 4]
        source, low, high = NEIGHBOURS[neighbour](u, order.shape[1])
        proposed = state.chains.order.gather(1, source)
        known = state.chains.table
        least = u[:, 3].log() * (temperature * cooling**step)
        proposal = _Chains(proposed, problem.follow(owner, proposed, low, high, known, least))
        chains = proposal.where(problem.gain(proposal.table) - problem.gain(known) >= least, state.chains)
        return replace(state, chains=chains, **problem.better(chains, state))

    return _run("annealing", problem, owner, start, advance, steps, resume, progress)


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
    resume: Trajectory | None = None,
    progress: bool = False,
) -> Trajectory:
    """Tabu search (Glover, 1986; named in section 4 and appendix E).

    Each step tries some random swaps and takes the best of them, better or not, but for those of two features that were
    exchanged within the last `tenure` steps, unless the result is the best ever seen.

    Args:
        score: as in `anneal`.
        order: [B, F] where each image starts.
        objective: as in `anneal`.
        steps: moves per image.
        candidates: swaps that are tried at each step.
        tenure: steps for which an exchanged pair may not be exchanged again.
        seed: as in `anneal`.
        images: as in `anneal`.
        resume: as in `anneal`.
        progress: as in `anneal`.

    Raises:
        ValueError: as `anneal`; fewer than one candidate.
    """
    arguments.whole("candidates", candidates, 1)
    arguments.whole("tenure", tenure, 0)
    problem = _Problem(score, objective, len(order))
    identity, owner, start = _several(order, 1, seed, images)
    count, features = order.shape
    tried = owner.repeat_interleave(candidates)  # [B * candidates] the image of each candidate
    nothing = torch.zeros(count, features, features, dtype=torch.int64, device=order.device)
    stream = torch.arange(candidates, device=order.device) << 32

    def advance(step: int, state: _State) -> _State:
        u = draws.uniform(seed, identity, stream + step, 3).flatten(0, 1)
        source, low, high = _swap(u, features)
        here = state.chains.take(tried)
        proposed = here.order.gather(1, source)
        proposal = _Chains(proposed, problem.follow(tried, proposed, low, high, here.table))
        pair = here.order.gather(1, torch.stack([low, high], 1)).sort(1).values  # [B * candidates, 2]
        forbidden = nothing if state.tabu is None else state.tabu
        gain = problem.gain(proposal.table)
        allowed = (forbidden[tried, pair[:, 0], pair[:, 1]] <= step) | (gain > state.best[tried])
        best = gain.masked_fill(~allowed, -torch.inf).view(count, candidates).argmax(1)  # the first of equal ones
        best = best + torch.arange(count, device=order.device) * candidates
        chains = proposal.take(best).where(allowed[best], state.chains)
        moved = owner[allowed[best]]
        forbidden = forbidden.clone()
        forbidden[moved, pair[best, 0][moved], pair[best, 1][moved]] = step + 1 + tenure
        return replace(state, chains=chains, tabu=forbidden, **problem.better(chains, state))

    return _run("tabu search", problem, owner, start, advance, steps, resume, progress)


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
    resume: Trajectory | None = None,
    progress: bool = False,
) -> Trajectory:
    """A genetic algorithm on orders (Holland, 1992; named in section 4 and appendix E).

    Each generation every place of the population gets a child of two parents, each the better of two picked at random.
    The child has a random block of places from one parent, and the other features in the order of the other parent
    (order crossover); some children have two features exchanged. The best of parents and children live on.

    Args:
        score: as in `anneal`.
        order: [B, F] the first of each image's population; the others are random.
        objective: as in `anneal`.
        steps: generations.
        population: orders per image.
        mutation: share of the children that have two features exchanged.
        seed: as in `anneal`.
        images: as in `anneal`.
        resume: as in `anneal`.
        progress: as in `anneal`.

    Raises:
        ValueError: as `anneal`; a population below 2, a share outside [0, 1].
    """
    arguments.whole("population", population, 2)
    arguments.share("mutation", mutation)
    problem = _Problem(score, objective, len(order))
    identity, owner, start = _several(order, population, seed, images)
    count, features = order.shape
    stream = torch.arange(population, device=order.device) << 32
    first = torch.arange(count, device=order.device)[:, None] * population  # the first of each image's population

    def advance(step: int, state: _State) -> _State:
        u = draws.uniform(seed, identity, stream + step, 10)  # [B, population, 10]
        fitness = problem.gain(state.chains.table).view(count, population)
        picked = (u[..., :4] * population).long()  # [B, population, 4]
        strength = fitness.gather(1, picked.flatten(1)).view(picked.shape)
        stronger = strength[..., 0::2] >= strength[..., 1::2]  # [B, population, 2]
        parents = torch.where(stronger, picked[..., 0::2], picked[..., 1::2]) + first[..., None]
        one, other = state.chains.order[parents.flatten(0, 1)].unbind(1)  # [B * population, F] each
        numbers = u.flatten(0, 1)[:, 4:]
        children = _order_crossover(one, other, *_two(numbers[:, :2], features))
        source, _, _ = _swap(numbers[:, 2:5], features)
        children = torch.where((numbers[:, 5] < mutation)[:, None], children.gather(1, source), children)
        born = problem.start(owner, children)
        everyone = _Chains(
            *(
                torch.cat([a.unflatten(0, (count, -1)), b.unflatten(0, (count, -1))], 1).flatten(0, 1)
                for a, b in ((state.chains.order, born.order), (state.chains.table, born.table))
            )
        )
        fittest = problem.gain(everyone.table).view(count, -1).argsort(dim=1, descending=True, stable=True)
        chains = everyone.take((fittest[:, :population] + 2 * first).flatten())
        return replace(state, chains=chains, **problem.better(chains, state))

    return _run("genetic algorithm", problem, owner, start, advance, steps, resume, progress)


def _order_crossover(one: Tensor, other: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The places low..high of one parent, and the other features in the order of the other, [N, F]."""
    place = torch.arange(one.shape[1], device=one.device)
    block = (place >= low[:, None]) & (place <= high[:, None])  # [N, F] by place
    taken = torch.zeros_like(block).scatter_(1, one, block)  # [N, F] by feature
    # Free places in order, then those of the block; features to fill them in order, then those of the block.
    places = block.byte().argsort(dim=1, stable=True)
    rest = other.gather(1, taken.gather(1, other).byte().argsort(dim=1, stable=True))
    free = place < (~block).sum(1, keepdim=True)
    return torch.empty_like(one).scatter_(1, places, torch.where(free, rest, one.gather(1, places)))


def _several(order: Tensor, chains: int, seed: int, images: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Identities of the images [B], the place of each chain's image [B * chains], and where the chains start."""
    masks.check_order(order)
    features = order.shape[-1]
    if features < 2:
        raise ValueError("expected at least two features, since one feature has only one order")
    arguments.whole("chains per image", chains, 1)
    identity = draws.identities(len(order), images, order.device)
    owner = torch.arange(len(order), device=order.device).repeat_interleave(chains)
    others = random_orders(identity, features, seed=seed, count=chains - 1)
    return identity, owner, torch.cat([order[:, None], others], 1).flatten(0, 1)


def _run(
    name: str,
    problem: _Problem,
    owner: Tensor,
    start: Tensor,
    advance: Callable[[int, _State], _State],
    steps: int,
    resume: Trajectory | None,
    progress: bool,
) -> Trajectory:
    """Take the steps of a search, from the start or from where an earlier one stands."""
    arguments.whole("steps", steps, 1)
    if resume is None:
        chains = problem.start(owner, start)
        state = _State(chains, **problem.better(chains, None))
        history = [state.best]
    else:
        if resume.state is None or resume.state.chains.order.shape != start.shape:
            raise ValueError(
                f"expected to resume a search of {len(start)} chains of {start.shape[1]} features, as this one"
            )
        problem.check_range(resume.state.chains.table)
        state, history = resume.state, list((problem.sign * resume.history).unbind(1))
        problem.asked += resume.asked
    reached = first = len(history) - 1
    try:
        for step in tqdm(range(first, steps), desc=name, mininterval=5, disable=not progress):
            after = advance(step, state)
            history.append(after.best)
            state, reached = after, step + 1
    except KeyboardInterrupt:
        _log.warning("%s interrupted after %d of %d steps; its best so far is returned", name, reached, steps)
    values = torch.stack(history[: reached + 1], 1)
    return Trajectory(state.order, problem.sign * state.best, problem.sign * values, problem.asked, state)


# All subsets of a few features


def answers(score: Score, images: int, features: int, *, device: torch.device | str = "cpu") -> Tensor:
    """The score of every subset (the paper's complete search), [B, 2^F] float32.

    Entry s is the score when the features of the set bits of s are kept.

    Raises:
        ValueError: more than 20 features, a million subsets per image; a score that is NaN or infinite.
    """
    arguments.whole("images", images, 0)
    arguments.whole("features, whose subsets can be counted,", features, 1, 20)
    table = torch.empty(images, 1 << features, device=device)
    bit = torch.arange(features, device=device)
    for subset in torch.arange(1 << features, device=device).split(max(1, masks.BUDGET // max(1, images * features))):
        keep = (subset[:, None] >> bit) & 1 == 1  # [n, F]
        table[:, subset] = score(keep.expand(images, -1, -1)).to(table)
    _check_table(table)
    return table


def lookup(table: Tensor) -> Score:
    """A score that reads the table of `answers` instead of asking a model.

    Raises:
        ValueError: a table that is not [B, 2^F], NaN or infinite.
    """
    _check_table(table)
    bit = torch.arange(table.shape[1].bit_length() - 1, device=table.device)

    def score(keep: Tensor, images: Tensor | None = None) -> Tensor:
        subset = (keep.to(table.device).long() << bit).sum(-1)
        return table.gather(1, subset) if images is None else table[images.to(table.device), subset]

    return score


def _prefix_gains(table: Tensor, objective: str) -> Tensor:
    """What a prefix adds to what is maximised, for every subset as prefix: [B, 2^F] float64."""
    _check_table(table)
    _check_objective(objective)
    without, only = OBJECTIVES[objective]
    # The subset that is kept where a prefix is removed is the complement, whose number counts from the other end.
    return without * table.double().flip(1) + only * table.double()


def bound(table: Tensor, objective: str) -> Tensor:
    """The paper's complete search: the best subset of each size, nested or not (eq. 4).

    Args:
        table: [B, 2^F] of `answers`.
        objective: one of `OBJECTIVES`.

    Returns:
        [B, F + 1] float64 by size of the prefix. Its sum over the sizes bounds the value of every order: from below for
        Mo, from above for Le and Le-Mo.

    Raises:
        ValueError: an unknown objective, or as `lookup`.
    """
    gains, size = _prefix_gains(table, objective), _sizes(table)
    best = torch.stack([gains[:, size == k].amax(1) for k in range(int(size.max()) + 1)], 1)
    return -best if objective == "Mo" else best


def optimum(table: Tensor, objective: str) -> Trajectory:
    """The best of all F! orders, exactly.

    An order is a chain of nested prefixes, and what is maximised is a sum over them. So the best chain up to a prefix
    is the best of those up to the prefix without one of its features: 2^F sums instead of F! (dynamic programming).

    Args:
        table: [B, 2^F] of `answers`.
        objective: one of `OBJECTIVES`.

    Raises:
        ValueError: an unknown objective, or as `lookup`.
    """
    gains, size = _prefix_gains(table, objective), _sizes(table)
    images, features = len(table), int(size.max())
    best = gains.clone()  # [B, 2^F] of the best chain from nothing up to each prefix
    last = torch.zeros(gains.shape, dtype=torch.int64, device=table.device)  # its last feature
    bit = 1 << torch.arange(features, device=table.device)
    for k in range(1, features + 1):
        prefix = (size == k).nonzero()[:, 0]  # [n]
        inside = prefix[:, None] & bit != 0  # [n, F]
        before = best[:, prefix[:, None] ^ bit].masked_fill(~inside, -torch.inf)  # [B, n, F]
        chosen = before.max(2)
        best[:, prefix] += chosen.values
        last[:, prefix] = chosen.indices
    at = torch.full((images,), (1 << features) - 1, device=table.device)
    removed = []
    for _ in range(features):
        removed.append(last.gather(1, at[:, None])[:, 0])
        at = at ^ bit[removed[-1]]
    value = (-1.0 if objective == "Mo" else 1.0) * best[:, -1]
    asked = torch.full((images,), table.shape[1])
    return Trajectory(torch.stack(removed[::-1], 1), value, value[:, None], asked)


def _check_objective(objective: str) -> None:
    if objective not in OBJECTIVES:
        raise ValueError(f"expected an objective among {', '.join(OBJECTIVES)}, but got {objective!r}")


def _check_table(table: Tensor) -> None:
    subsets = table.shape[-1] if isinstance(table, Tensor) and table.ndim == 2 else 0
    if subsets < 2 or subsets & (subsets - 1):
        came = tuple(table.shape) if isinstance(table, Tensor) else type(table).__name__
        raise ValueError(
            f"expected the scores of all subsets, [images, 2^F], but got {came}; make them with faithlab.search.answers"
        )
    arguments.finite("score", table, "check the model, or leave out these images and count them")


def _sizes(table: Tensor) -> Tensor:
    """Number of features in each subset, [2^F] int64."""
    subset = torch.arange(table.shape[1], device=table.device)
    return sum((subset >> bit) & 1 for bit in range(table.shape[1].bit_length() - 1))


class Remembered:
    """A score that remembers its answers: a subset that is asked about again needs no forward.

    Subsets are told apart by 64-bit sums of random words (two differ in vain once in 2^64), each in the slot of a table
    that its last bits name; a newer subset takes an older one's slot.

    Args:
        score: see `faithlab.engine.scorer`.
        capacity: slots, a power of 2; each takes 12 bytes.

    Attributes:
        asked: pairs that were asked about.
        forwards: pairs that were passed on to the score.
    """

    def __init__(self, score: Score, capacity: int = 1 << 22):
        if arguments.whole("capacity", capacity, 1) & (capacity - 1):
            raise ValueError(f"expected a capacity that is a power of 2, but got {capacity}")
        self.score, self.capacity = score, capacity
        self.asked = self.forwards = 0
        self._keys = self._values = self._words = None

    def __call__(self, keep: Tensor, images: Tensor) -> Tensor:
        """Answers to pairs: keep [R, F] bool and images [R] -> [R] float32."""
        key = self._key(keep, images)
        self.asked += len(key)
        slot = key & (self.capacity - 1)
        found = self._values[slot]
        known = (self._keys[slot] == key) & ~found.isnan()
        new, inverse = key[~known].unique(return_inverse=True)
        if len(new):
            # The first pair of each new key stands for all of them.
            first = torch.full_like(new, len(key)).scatter_reduce_(
                0, inverse, (~known).nonzero()[:, 0], "amin", include_self=True
            )
            self.forwards += len(first)
            fresh = self.score(keep[first], images[first]).to(found)
            found[~known] = fresh[inverse]
            slot = new & (self.capacity - 1)
            # Of two new keys with one slot only the one that stayed may leave its value. NaN: nothing yet, so that an
            # interrupt between these lines leaves no value under another's key.
            self._values[slot] = torch.nan
            self._keys[slot] = new
            stayed = self._keys[slot] == new
            self._values[slot[stayed]] = fresh[stayed]
        return found

    def _key(self, keep: Tensor, images: Tensor) -> Tensor:
        if self._words is None:
            here = torch.zeros(1, dtype=torch.int64, device=keep.device)
            self._words = draws.bits(0, here, here, keep.shape[1] + 1)[0, 0]
            self._keys = torch.zeros(self.capacity, dtype=torch.int64, device=keep.device)
            self._values = torch.full((self.capacity,), torch.nan, device=keep.device)
        return (keep * self._words[:-1]).sum(-1) + (images.to(keep.device) + 1) * self._words[-1]


def heat_map(order: Tensor, alpha: float = 2.0) -> Tensor:
    """An attribution with a given order: ((rank / F) ^ alpha), rank F = most relevant (section 2), [B, F] float32.

    Args:
        order: [B, F], most relevant first.
        alpha: how much of it stands out; the paper's figures take 2.

    Raises:
        ValueError: an order that is no permutation, alpha that is not above 0, which would not keep it.
    """
    masks.check_order(order)
    arguments.number("alpha", alpha, "above 0, which keeps the order,", lambda v: v > 0)
    features = order.shape[-1]
    return ((features - masks.place(order)) / features) ** alpha
