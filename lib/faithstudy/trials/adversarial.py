"""Gaming (TRACE, section 5.2, asks it of its own metrics): is what a metric likes best liked by the others too?

For each input an order of the features is searched for that the metric likes, with a fixed budget of forwards. The
search knows nothing of the metric but its values, so that it takes any metric that sees only the order; where the
objective is MoRF, LeRF or LeRF - MoRF, `faithlab.search` finds better ones with more questions.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor
from tqdm import tqdm

from faithlab import masks, rng, stats, validation
from faithlab.metrics import Metric
from faithlab.scores import Label, Scores
from faithlab.task import Task
from faithstudy.trials.concordance import Question, ask, cells, has, oriented, ranked, turned

SEARCHED = "searched"
"""The variant of the orders that metrics like best in the long table."""

FEATURES = 32
"""Of the input that tells how a metric asks."""
PAIRS = 4
"""Opposite proposals of one step of the search."""
LEAST = 2 * PAIRS + 1
"""With fewer questions there is no search."""


def sees_only_order(metric: Metric) -> bool:
    """Whether a metric asks and says the same of two attributions that differ in nothing but their magnitudes."""
    return _asked(metric, lambda a: a) == _asked(metric, lambda a: a**3)


def cuts(metric: Metric) -> bool:
    """Whether a metric asks only what is left when the order is cut in two, as deletion and insertion do."""
    keep, _ = _asked(metric, lambda a: a)
    ranked = torch.tensor(keep, dtype=torch.int8).view(-1, FEATURES)[:, masks.order(_probe())[0]]
    changes = (ranked.diff(dim=1) != 0).sum(1)
    return bool((changes <= 1).all() and (changes == 1).any())


def draws_numbers(metric: Metric) -> bool:
    """Whether a metric asks otherwise with another `seed`."""
    return metric.takes("seed") and _asked(metric, lambda a: a) != _asked(metric.given(seed=1), lambda a: a)


def kin(metric: Metric) -> tuple[str, str]:
    """What metrics are one family that has one vote: those that cut the order of the same network, else its own."""
    return ("cuts of the order", metric.network) if cuts(metric) else (metric.family or repr(metric.compute), "")


def _probe() -> Tensor:
    return rng.uniform(0, torch.tensor([0]), torch.tensor([0]), FEATURES)[:, 0] + 0.1


def _asked(metric: Metric, turned: Callable[[Tensor], Tensor]) -> tuple[list, list]:
    """The masks that a metric asks about on one input whose answers are random, and what it says."""
    seen: list[Tensor] = []
    weights = rng.uniform(1, torch.tensor([0]), torch.tensor([0]), FEATURES)[0, 0]

    def score(keep: Tensor, positions: Tensor | None = None) -> Tensor:
        seen.append(keep.reshape(-1, FEATURES))
        return ((keep.double() @ weights) / weights.sum()).float()

    score.classes = 2
    x = torch.zeros(1, FEATURES, dtype=torch.float32)
    task = Task(torch.nn.Identity(), x, torch.zeros(1, dtype=torch.int64), torch.arange(FEATURES))
    value = metric.measure(score, task, turned(_probe())).value
    return torch.cat(seen).tolist() if seen else [], value.double().nan_to_num(nan=-1e9).flatten().tolist()


def search(metric: Metric, task: Task, start: Tensor, *, budget: int, seed: int = 0) -> Tensor:
    """An order that a metric likes better, as an attribution of ranks, [B, F].

    An evolution strategy with opposite pairs of proposals (Salimans et al., 2017): the ranks are moved at random, and
    then in the direction in which the metric rises. The best of all that was asked is kept, the start among it.

    Args:
        metric: that sees only the order.
        task: the inputs and networks.
        start: [B, F] where the search starts, such as the explanation that the metric likes best.
        budget: forwards for each input.
        seed: of the proposals, which belong to the image and the step.

    Raises:
        ValueError: the budget asks about fewer than `LEAST` orders, and what the metric raises.
    """
    validation.attribution(start)
    B, F = start.shape
    steps = (budget // max(1, metric.forward_passes(F)) - 1) // (2 * PAIRS)
    if not steps:
        each = metric.forward_passes(F)
        raise ValueError(
            f"a search asks about {LEAST} orders or more, of {each} forwards each, but the budget is {budget}; give "
            f"it {LEAST * each}"
        )
    every = task.part(torch.arange(B).repeat(2 * PAIRS))  # all proposals of a step are asked together
    score = every.score(metric.output, metric.baseline, metric.network, exact=metric.exact)

    def liked(ranks: Tensor) -> Tensor:
        found = oriented(metric, metric.measure(score, every, stats.rank(ranks.flatten(0, 1))).value, metric.sizes)
        return found.nan_to_num(nan=-torch.inf).unflatten(0, (-1, B))

    middle = (stats.rank(start.double()) - (F + 1) / 2) / F  # [-1/2, 1/2]
    best, height = middle, liked(middle.expand(2 * PAIRS, -1, -1))[0]
    for step in range(steps):
        number = torch.arange(step * PAIRS, (step + 1) * PAIRS)
        moves = rng.normal(seed, task.images, number, F).to(middle).transpose(0, 1) / 4  # [PAIRS, B, F]
        proposals = torch.cat([middle + moves, middle - moves])
        found = liked(proposals)
        up, down = found.chunk(2)
        slope = ((up - down).sign().nan_to_num(0)[..., None] * moves).sum(0)
        for ranks, value in zip(proposals, found, strict=True):
            best = torch.where((value > height)[:, None], ranks, best)
            height = torch.maximum(height, value)
        middle = (best + middle) / 2 + slope / PAIRS
        middle = (stats.rank(middle) - (F + 1) / 2) / F
    return stats.rank(best)


def obstacles(metrics: Mapping[str, Metric], features: int, budget: int) -> dict[str, str]:
    """Why no order is searched for metrics, by name; arguments as in `games`."""
    families, why = {name: kin(metric) for name, metric in metrics.items()}, {}
    for name, metric in metrics.items():
        if not sees_only_order(metric):
            why[name] = "it sees magnitudes, so that an order says nothing to it"
        elif set(families.values()) == {families[name]}:
            why[name] = "no metric of another family was asked"
        elif (each := metric.forward_passes(features)) * LEAST > budget:
            why[name] = f"{budget} forwards buy too few explanations to search among: one costs {each}"
    return why


def games(
    metrics: Mapping[str, Metric],
    task: Task,
    attributions: Mapping[str, Tensor],
    table: Scores,
    sought: Sequence[str],
    *,
    budget: int,
    count: int | None = None,
    seed: int = 0,
) -> list[Scores]:
    """The orders that metrics like best, put to all metrics.

    A search starts, of each input, at the explanation that the metric likes best, and is the same for all metrics.

    Args:
        metrics: by name.
        task: the inputs and the network.
        attributions: by explainer, [B, F].
        table: with the metrics of these explanations.
        sought: the metrics whose best orders are searched for.
        budget: forwards for each input and metric.
        count: the first so many inputs; None: all.
        seed: of the search.
    """
    part = task if count is None else task.part(torch.arange(min(count, len(task.x))))
    stacked = torch.stack([a[: len(part.x)] for a in attributions.values()])  # [K, B, F]
    plain = dict.fromkeys(("variant", "level", "noise_seed", "draw"))
    values, rows = turned(table, metrics), []
    for name in (bar := tqdm(sought, mininterval=5, leave=False)):
        bar.set_description(f"what {name} likes best")
        metric = metrics[name]
        liked = [values.where(metric=name, explainer=e, **plain).blocks[0].values[:, 0] for e in attributions]
        favourite = torch.stack(liked)[:, : len(part.x)].nan_to_num(nan=-torch.inf).argmax(0)  # [B]
        start = stacked[favourite.to(stacked.device), torch.arange(len(part.x), device=stacked.device)]
        found = search(metric, part, start, budget=budget, seed=seed)
        rows.append(({"explainer": name, "variant": SEARCHED}, found.to(start)))
    return [ask(metrics, part, rows)] if rows else []


def votes(
    name: str, scores: Scores, metrics: Mapping[str, Metric], families: Mapping[str, tuple[str, str]]
) -> Question | None:
    """The question whether the order that a metric likes best beats the explanations, by the votes of other families.

    Args:
        name: of the metric.
        scores: with the explanations and the searched orders.
        metrics: by name.
        families: of `kin`, by the names of those that were asked of searched orders.
    """
    voters: dict[tuple[str, str], list[str]] = {}
    asked = [b.labels["metric"] for b in scores if has(b.labels, {"variant": SEARCHED, "explainer": name})]
    for voter in dict.fromkeys(asked):
        if families[voter] != families[name]:
            voters.setdefault(families[voter], []).append(voter)
    pairs: list[tuple[dict[str, Label], dict[str, Label]]] = []
    weights: list[float] = []
    for members in voters.values():
        for voter in members:
            rivals, _ = cells(voter, scores, metrics[voter])
            pairs += [({**rivals[0], "explainer": name, "variant": SEARCHED}, rival) for rival in rivals]
            weights += [1 / len(voters) / len(members) / max(1, len(rivals))] * len(rivals)
    return ranked(pairs, weights)
