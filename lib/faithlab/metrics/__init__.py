"""The registry of metrics: each is registered once, with the output, baseline and network that it is defined with.

`METRICS["SaCo"](task, attribution)` evaluates one metric on one explanation of every input. `evaluate` evaluates
several metrics on several explanations and returns the long table. `register` adds a metric; a file that does so, named
by FAITHLAB_METRICS, is loaded with this module.

What a metric computes stands in one file a family, which registers it: `fidelity`, `deletion`, `trajectory`, `saco`,
`few_class`, `mufidelity`, `stability`, `consistency`. A file that is put into this folder is found.
"""

import dataclasses
import functools
import importlib
import inspect
import os
import pkgutil
import sys
import warnings
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from faithlab import masks, segments, stats, validation
from faithlab.engine import Output, Score
from faithlab.metrics.answers import UndefinedError
from faithlab.outputs import probability
from faithlab.scores import LABELS, Scores
from faithlab.task import Network, Remembered, Task

Needs = Literal["one network", "neighbours", "cross-trained networks"]
"""What a metric is evaluated on: an explanation of one network; those of an input and of its neighbours (`stability`);
those of networks that were trained on different parts of the data (`consistency`)."""

FILES = "FAITHLAB_METRICS"
"""The environment variable that names files of a reader's own metrics, separated as paths are."""


@dataclass(frozen=True)
class Metric:
    """A metric with the output, baseline and network that it is evaluated with.

    Attributes:
        compute: (score, attribution [B, F]) -> [B], or with `sizes` (score, attribution, sizes) -> [B, K], floating
            scores or bool hits, or a `faithlab.stats.MonteCarlo` of them. The score is a `faithlab.engine.Score`.
            Arguments named `present` or `images` are filled with the task's; an argument `groups` is a number of
            features that an input must have.
        source: where it is defined.
        output: what is read off the network.
        baseline: what replaces a removed feature, by its name in `faithlab.baselines.NAMED`.
        network: which network is evaluated.
        better: 1 where higher is more faithful, -1 where lower is.
        chance: its mean over random explanations; None: not known.
        ideal: of a perfect explanation; None: not known.
        direction: which end of the order is removed first, for metrics that come in both directions.
        sizes: increasing shares of the features at which it has a value; None: it has one value.
        exact: evaluated in float32, because it looks at signs of small differences.
        family: what the paper calls it together with its variants; empty: its own name.
        needs: what it is evaluated on.
        statistic: what summarises it over images; None: the mean, or the area over its sizes.

    Raises:
        TypeError: compute or output that is no function.
        ValueError: an attribute that has none of its values.
    """

    compute: Callable[..., Any]
    source: str
    output: Output = probability
    baseline: str = "zero"
    network: Network = "original"
    better: Literal[1, -1] = 1
    chance: float | None = None
    ideal: float | None = None
    direction: masks.Direction | None = None
    sizes: tuple[float, ...] | None = None
    exact: bool = False
    family: str = ""
    needs: Needs = "one network"
    statistic: stats.Statistic | Callable[..., Tensor] | None = None

    def __post_init__(self) -> None:
        if not callable(self.compute) or not callable(self.output):
            raise TypeError(f"expected functions as compute and output, but got {self.compute!r} and {self.output!r}")
        known = {(1, -1): self.better, get_args(Network): self.network, get_args(Needs): self.needs}
        known[*get_args(masks.Direction), None] = self.direction
        if wrong := [f"{value!r}, not in {names}" for names, value in known.items() if value not in names]:
            raise ValueError(f"expected better, network, needs and direction among their values: {'; '.join(wrong)}")
        if self.sizes is not None:
            object.__setattr__(self, "sizes", tuple(validation.fractions(self.sizes, "sizes").tolist()))

    @property
    def summary(self) -> stats.Statistic | Callable[..., Tensor]:
        """The statistic of `faithlab.stats` that summarises it over images."""
        return self.statistic or (stats.mean if self.sizes is None else stats.area)

    def given(self, **changes: Any) -> "Metric":
        """Return the metric with other attributes, or with other arguments of its function.

        Its `direction`, and whether it has `sizes`, are set by its function: they change with `compute` only. `present`
        and `images` are the task's.

        Raises:
            TypeError: a name that is none of these.
        """
        attributes = {field.name for field in dataclasses.fields(self)}
        if "compute" not in changes:
            attributes -= {"direction"}
            if self.sizes is None or changes.get("sizes", self.sizes) is None:
                attributes -= {"sizes"}
        metric = dataclasses.replace(self, **{name: changes[name] for name in changes if name in attributes})
        options = {name: changes[name] for name in changes if name not in attributes}
        if refused := [name for name in options if name not in metric.options]:
            known = f"options {', '.join(metric.options) or 'none'}; attributes {', '.join(sorted(attributes))}"
            raise TypeError(f"{', '.join(refused)}: nothing that this metric can be given; it has {known}")
        return dataclasses.replace(metric, compute=functools.partial(metric.compute, **options)) if options else metric

    @property
    def options(self) -> list[str]:
        """The arguments of its function that are free: not those that every call gives."""
        named = [p for p in self._arguments.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        own = [p.name for p in named if p.kind is p.POSITIONAL_OR_KEYWORD][: 2 if self.sizes is None else 3]
        own += ["images", "present", *(["direction"] if self.direction else [])]
        return [p.name for p in named if p.name not in own]

    @property
    def _arguments(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.compute).parameters

    def takes(self, name: str) -> bool:
        """Return whether its function has an argument of this name, such as the `seed` of random subsets."""
        return name in self._arguments

    def obstacle(self, task: Task, explainer: str | None = None) -> str | None:
        """Return why it cannot be evaluated on an explanation of a task; None: it can."""
        if self.needs != "one network":
            return f"it needs {self.needs}"
        if task.padded and not self.takes("present"):
            return (
                "its function has no argument `present`: inputs of unequal length are padded, and it would take the "
                "padding for features; let it take `present`, [B, F] bool, and leave the others out"
            )
        groups, features = self.takes("groups") and self._arguments["groups"].default, _features(task)
        if isinstance(groups, int) and groups > features:
            return f"it compares {groups} groups, but the inputs have {features} features; use given(groups={features})"
        return task.missing(self.baseline, self.network, explainer)

    def measure(self, score: Score, task: Task, attribution: Tensor) -> stats.MonteCarlo:
        """Return its values [B] or [B, K] and their Monte-Carlo errors (NaN: unknown), with a score made elsewhere."""
        check_attribution(task, attribution)
        sizes = () if self.sizes is None else (torch.tensor(self.sizes, dtype=torch.float64),)
        own = {"present": task.present, "images": task.images}
        # Copies: what a function changes in place stays its own.
        given = {name: value if value is None else value.clone() for name, value in own.items() if self.takes(name)}
        answer = self.compute(score, attribution.clone(), *sizes, **given)
        value, error = answer if isinstance(answer, stats.MonteCarlo) else (answer, None)
        shape = (len(attribution), *map(len, sizes))
        numbers = [value] if error is None else [value, error]
        known = [isinstance(n, Tensor) and (n.is_floating_point() or n.dtype == torch.bool) for n in numbers]
        came = [f"{getattr(n, 'dtype', type(n))} {tuple(getattr(n, 'shape', ()))}" for n in numbers]
        if not all(known) or any(n.shape != shape for n in numbers):
            raise ValueError(f"expected floating or bool scores {shape}, but the metric gave {' and '.join(came)}")
        if bool(value.isinf().any()):
            raise UndefinedError(f"the metric gave infinity for {int(value.isinf().sum())} inputs; give NaN")
        return stats.MonteCarlo(value, error)

    def __call__(self, task: Task, attribution: Tensor, *, explainer: str | None = None) -> Tensor:
        """Evaluate the metric on one explanation of every input, with its own output, baseline and network.

        Args:
            task: the inputs and networks.
            attribution: [B, F].
            explainer: its name, where the network is retrained for it.

        Returns:
            [B], or [B, K] over `sizes`; NaN where it is not defined.

        Raises:
            ValueError: the metric does not apply, and what its function raises.
        """
        if why := self.obstacle(task, explainer):
            raise ValueError(f"the metric does not apply: {why}")
        options = {"explainer": explainer, "exact": self.exact}
        score = task.score(self.output, self.baseline, self.network, **options)
        return self.measure(score, task, attribution).value

    def forward_passes(self, features: int) -> int:
        """Return the number of masked inputs that one explanation costs, counted on one of so many features.

        Raises:
            ValueError: it is not evaluated on an explanation of one network.
        """
        if self.needs != "one network":
            raise ValueError(f"expected a metric of one network's explanation, but this one needs {self.needs}")
        passes = 0

        def score(keep: Tensor, positions: Tensor | None = None) -> Tensor:
            nonlocal passes
            passes += keep[..., 0].numel()
            # Different numbers for different masks, as a network gives them.
            return keep.double() @ torch.linspace(0, 1, keep.shape[-1], dtype=torch.float64) / keep.shape[-1]

        score.classes = 2
        x = torch.zeros(1, features, dtype=torch.float32)
        task = Task(torch.nn.Identity(), x, torch.zeros(1, dtype=torch.int64), torch.arange(features))
        self.measure(score, task, torch.rand(1, features, generator=torch.Generator().manual_seed(0)))
        return passes


METRICS: dict[str, Metric] = {}
"""The registered metrics by name."""

_PLACES: dict[str, str] = {}
"""The file, or the notebook's module, that registered each metric."""

_LOADED: dict[str, tuple[bytes, ModuleType]] = {}
"""The files of a reader's own metrics, with their content and module."""


def register(name: str, compute: Callable[..., Any] | Metric, **declared: Any) -> Metric:
    """Add a metric to `METRICS`, so that every test, table and figure has it.

    Args:
        name: of the metric.
        compute: its function, or a whole `Metric`.
        **declared: the other attributes of a `Metric`; of a whole one those that change, as in `Metric.given`.

    Raises:
        ValueError: a name that another file has registered, or attributes that a metric cannot have.

    Warns:
        UserWarning: the metric replaces an earlier one of the same file or notebook.
    """
    metric = compute.given(**declared) if isinstance(compute, Metric) else Metric(compute, **declared)
    caller = sys._getframe(1).f_globals
    place = caller.get("__file__", caller["__name__"])
    if name in METRICS and _PLACES.get(name) != place:
        raise ValueError(f"there is a metric {name!r} already, of {_PLACES.get(name)}; choose another name")
    if name in METRICS:
        warnings.warn(f"the metric {name!r} is registered again and replaces the earlier one", stacklevel=2)
    METRICS[name], _PLACES[name] = metric, place
    return metric


def families(metrics: Mapping[str, Metric]) -> dict[str, list[str]]:
    """Group the names of metrics by what their papers call them together, in order of appearance."""
    found: dict[str, list[str]] = {}
    for name, metric in metrics.items():
        found.setdefault(metric.family or name, []).append(name)
    return found


def _features(task: Task) -> int:
    return segments.count_of(task.segments, task.x)


def check_attribution(task: Task, attribution: Tensor, name: str = "attribution") -> None:
    """Check that an attribution is one of the inputs and features of a task.

    Raises:
        ValueError: no dense tensor of finite numbers [B, F].
    """
    validation.attribution(attribution, name)
    if attribution.shape != (shape := (len(task.x), _features(task))):
        raise ValueError(f"expected {name} {shape}, but got {tuple(attribution.shape)}; see faithlab.segments.pool")


def evaluate(metrics: Mapping[str, Metric], task: Task, attributions: Mapping[str, Tensor], **labels: Any) -> Scores:
    """Evaluate metrics on explanations: one row for each image, explainer and metric.

    Metrics that evaluate the same network with the same baseline share its forward passes: equal masks are evaluated
    once, whatever each metric reads off. A metric that does not apply has no row; `obstacles` says why.

    Args:
        metrics: by name, such as `METRICS` or a part of it.
        task: the inputs and networks.
        attributions: by explainer, [B, F].
        **labels: of all rows, see `faithlab.scores.LABELS`; not the explainer, metric, reference and direction.

    Raises:
        TypeError: metrics or explanations that are not given by name.
        ValueError: no metric applies, a label that cannot be given, and what the metrics raise: the message says which.

    Warns:
        UserWarning: metrics that do not suit the inputs, and have no row; or whose score is infinite or NaN, so that
            they are NaN for all inputs.
    """
    if refused := set(labels) - (set(LABELS) - {"explainer", "metric", "reference", "direction"}):
        raise ValueError(f"{', '.join(sorted(refused))}: no label to be given; the metrics and explainers set theirs")
    for explainer, attribution in attributions.items():
        check_attribution(task, attribution, f"attribution {explainer!r}")
    why = obstacles(metrics, task, attributions)
    pairs = [(e, name) for e in attributions for name in metrics if (e, name) not in why]
    if not pairs:
        raise ValueError(f"no metric applies: {why or 'none is given'}")

    def rows(explainer: str, name: str, values: Tensor, errors: Tensor | None = None) -> Scores:
        metric = metrics[name]
        own = {"metric": name, "explainer": explainer, "reference": metric.baseline, "direction": metric.direction}
        about = {"images": task.images, "sizes": metric.sizes, "errors": errors}
        return Scores.of(values, **about, **{**task.labels, **own, **labels})

    unknown = torch.full((len(task.x),), torch.nan)
    missing = {n: unknown if m.sizes is None else unknown[:, None].expand(-1, len(m.sizes)) for n, m in metrics.items()}
    for explainer, name in pairs:
        rows(explainer, name, missing[name])  # what no table can hold is refused before anything is evaluated
    scores = _shared(task, {(e, name): metrics[name] for e, name in pairs})
    left_out = {
        name: reason
        for (e, name), reason in why.items()
        if metrics[name].needs == "one network" and not task.missing(metrics[name].baseline, metrics[name].network, e)
    }
    tables = []
    for explainer, name in pairs:
        try:
            value, error = metrics[name].measure(scores[explainer, name], task, attributions[explainer])
        except UndefinedError as undefined:
            left_out[name], value, error = f"{undefined}, so that all of it is NaN", missing[name], None
        except Exception as failed:
            reason = f"{failed}" if isinstance(failed, ValueError) else f"{type(failed).__name__}: {failed}"
            raise ValueError(f"the metric {name!r} fails: {reason}") from failed
        known = error is not None and not bool(error.isnan().all())
        tables.append(rows(explainer, name, value, error if known else None))
    if left_out:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        warnings.warn(f"not all metrics could be evaluated: {reasons}", stacklevel=2)
    return Scores.concat(tables)


def obstacles(
    metrics: Mapping[str, Metric], task: Task, attributions: Mapping[str, Tensor]
) -> dict[tuple[str, str], str]:
    """Return why metrics do not apply, by explainer and metric; those that do are left out."""
    found = {(e, name): metric.obstacle(task, e) for e in attributions for name, metric in metrics.items()}
    return {key: why for key, why in found.items() if why is not None}


def _shared(task: Task, wanted: Mapping[tuple[str, str], Metric]) -> dict[tuple[str, str], Score]:
    """The score of every explainer and metric; those that evaluate one network in one way share its forward passes."""
    groups: dict[tuple, dict[tuple[str, str], Output]] = {}
    for (explainer, name), m in wanted.items():
        own = explainer if m.network == "retrained" else None
        groups.setdefault((m.baseline, m.network, own, m.exact), {})[explainer, name] = m.output
    scores = {}
    for (baseline, network, explainer, exact), members in groups.items():
        outputs = list(dict.fromkeys(members.values()))
        if len(members) == 1:  # nobody to share with
            score = task.score(outputs[0], baseline, network, explainer=explainer, exact=exact)
            scores |= dict.fromkeys(members, score)
            continue
        both = Remembered(task.score(outputs, baseline, network, explainer=explainer, exact=exact), len(outputs))
        scores |= {key: both.of(outputs.index(output)) for key, output in members.items()}
    return scores


def load(path: str | os.PathLike) -> ModuleType:
    """Run a Python file that registers metrics, or has some to be examined; those registered are `own` from then on.

    A file runs once in a process, and again after it was edited: its metrics then take the place of the earlier ones.
    It imports the modules beside it, as a script does.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a file that does not run; its metrics are as before.
    """
    path = Path(path).expanduser().resolve()
    source, place = path.read_bytes(), str(path)
    if place in _LOADED and _LOADED[place][0] == source:
        return _LOADED[place][1]
    module = ModuleType(f"faithlab_own_{path.stem}_{zlib.crc32(place.encode())}")
    module.__file__ = place
    sys.modules[module.__name__] = module  # dataclasses and pickle look their module up
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # behind all others, which it may not hide
    before = dict(METRICS)
    for name in [name for name in METRICS if _PLACES.get(name) == place]:
        del METRICS[name]
    try:
        exec(compile(source, place, "exec"), vars(module))
    except (Exception, SystemExit) as error:
        METRICS.clear()
        METRICS.update(before)
        raise ValueError(f"{path} does not run: {type(error).__name__}: {error}") from error
    _LOADED[place] = source, module
    return module


def own(*tasks: Task) -> dict[str, Metric]:
    """Return the metrics of a reader's own files, which every page of the book evaluates beside those of its paper.

    Args:
        *tasks: what they are evaluated on. A metric that does not apply to one of them is left out.

    Warns:
        UserWarning: which metric was left out, and why.
    """
    found = {name: metric for name, metric in METRICS.items() if _PLACES.get(name) in _LOADED}
    for name, metric in list(found.items()):
        why = [metric.obstacle(task, next(iter(task.retrained), None)) for task in tasks]
        if reason := next(filter(None, why), None):
            warnings.warn(f"{name} does not apply here and is left out: {reason}", stacklevel=2)
            del found[name]
    return found


for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)  # the families of this folder register themselves
for _file in filter(None, os.environ.get(FILES, "").split(os.pathsep)):
    load(_file)
