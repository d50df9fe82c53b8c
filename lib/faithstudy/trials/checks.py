"""What is wrong with a metric, an explainer or a file of a reader's own, said before the work starts."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from faithlab import validation
from faithlab.metrics import METRICS, Metric, load, obstacles
from faithlab.task import Task
from faithstudy.trials.chance import RANDOM
from faithstudy.trials.tasks import attributions as explained


def check(metrics: Mapping[str, Metric], task: Task) -> None:
    """Ask metrics of a random explanation of a few inputs, and of each half of them beside others of the other half.

    Raises:
        ValueError: a metric that gives other shapes than it declares, infinities, or nothing but NaN, that fails, or
            whose answer for an input depends on the others; the message says which.
    """
    few = task.part(torch.arange(min(4, len(task.x))))
    random = explained(few, {RANDOM: "random"})[RANDOM]
    first = torch.arange(len(random), device=random.device) < len(random) / 2
    halves = [(one, torch.where(one[:, None], random, random.roll(len(random) // 2, 0))) for one in (first, ~first)]
    for name, metric in metrics.items():
        if obstacles({name: metric}, few, {RANDOM: random}):
            continue
        try:
            value = metric(few, random)
            other = torch.cat([metric(few, mixed)[one] for one, mixed in halves])
            depends = _differ(value, other) >= max(1, len(random) / 2) and _differ(value, metric(few, random)) == 0
        except Exception as error:
            raise ValueError(f"the metric {name!r} fails on a random explanation of a few inputs: {error}") from error
        if bool(value.isnan().all()):
            raise ValueError(
                f"the metric {name!r} gave nothing but NaN for a random explanation of a few inputs; expected NaN only "
                "where a score is not defined"
            )
        if depends:  # not by chance, nor by rounding that turns a hit
            raise ValueError(
                f"the metric {name!r} says something else of an explanation when those of the other inputs change; "
                "inputs are asked in blocks, so that an answer must not depend on the others: do not divide by what is "
                "largest in a batch, or take its mean away"
            )


def _differ(one: Tensor, other: Tensor) -> int:
    """For how many inputs two answers of a metric differ by more than rounding in few digits."""
    one, other = (x.double().reshape(len(x), -1).nan_to_num() for x in (one, other))
    apart = (one - other).abs().amax(1)
    return int((apart > 0.05 * torch.cat([one, other]).abs().amax()).sum())


def check_explanations(attributions: Mapping[str, Tensor], task: Task) -> None:
    """Look at explanations.

    Raises:
        ValueError: fewer than two explainers; NaN; explanations that are the same for all features of every input.
    """
    if len(attributions) < 2:
        raise ValueError(f"expected two explainers or more, to be ranked, but got {', '.join(attributions) or 'none'}")
    for name, attribution in attributions.items():
        try:
            validation.attribution(attribution)
        except ValueError as error:
            raise ValueError(f"the explainer {name!r}: {error}") from None
        if bool((attribution == attribution[:, :1]).all()):
            raise ValueError(f"the explainer {name!r} says the same of all features of every input: it orders nothing")


ARGUMENTS = {
    "metric": ("score", "attribution"),
    "explainer": ("model", "x", "target", "images"),
    "model": (),
    "data": (),
}
"""What functions of a reader's own are given."""


def yours(named: str, what: str) -> Callable | Metric:
    """A metric, an explainer, a model or data of a reader's own, from "path/to/file.py:function".

    A function that its file registers as a metric is asked as it is registered.

    Args:
        named: the file and the function, or a `faithlab.metrics.Metric`, in it.
        what: "metric", "explainer", "model" or "data"; a function of the last two has no arguments.

    Raises:
        ValueError: no such file or function, a file that does not run, a function with other arguments.
    """
    path, colon, name = named.rpartition(":")
    if not colon or not name.isidentifier():
        raise ValueError(f"expected path/to/file.py:function as the {what}, but got {named!r}")
    path = Path(path).expanduser()
    if not path.is_file():
        raise ValueError(f"{path} is no file; name the {what} as path/to/file.py:function")
    module = load(path)
    found = getattr(module, name, None)
    if not callable(found):
        own = [n for n, f in vars(module).items() if callable(f) and getattr(f, "__module__", "") == module.__name__]
        raise ValueError(f"{path} has no function {name!r}; it has {', '.join(own) or 'none'}")
    if isinstance(found, Metric):
        return found
    wanted = ARGUMENTS[what]
    try:
        inspect.signature(found).bind(*wanted)
    except TypeError:
        came = inspect.signature(found)
        raise ValueError(
            f"{named}: expected a function of ({', '.join(wanted)}), but its arguments are {came}"
        ) from None
    if what != "metric":
        return found
    registered = next((metric for metric in METRICS.values() if metric.compute is found), None)
    return registered or Metric(found, source=f"{path.name}, {name}")
