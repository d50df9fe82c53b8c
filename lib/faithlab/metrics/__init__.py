"""The metrics of the study, each registered once: what to ask, and how it is asked rightly.

`METRICS["SaCo"](task, attribution)` asks one metric of one explanation of every input, with the output, the
baseline and the network that the metric is defined with. `evaluate` asks several of several explanations and returns
the long table. `register` adds one; a file that does so, named by FAITHLAB_METRICS, is loaded with this module.

What a metric computes stands in one file a family: `fidelity`, `deletion`, `trajectory`, `saco`, `few_class`,
`mufidelity`, `stability`, `consistency`.
"""

import dataclasses
import functools
import importlib.util
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from faithlab import masks, segments, stats, validation
from faithlab.engine import Output, Score
from faithlab.metrics import (
    consistency,
    deletion,
    distance,
    few_class,
    fidelity,
    mufidelity,
    saco,
    stability,
    trajectory,
)
from faithlab.outputs import correct, log_odds, logit, probability
from faithlab.scores import LABELS, Scores
from faithlab.task import Network, Remembered, Task

Needs = Literal["one network", "neighbours", "cross-trained networks"]
"""What a metric is put to: an explanation of one network; those of an input and of its neighbours (`stability`); those
of networks that were trained on different parts of the data (`consistency`)."""

FILES = "FAITHLAB_METRICS"
"""The environment variable that names files of a reader's own metrics, separated as paths are."""


@dataclass(frozen=True)
class Metric:
    """A metric, and how it is asked.

    Attributes:
        compute: (score, attribution [B, F]) -> [B], or with `sizes` (score, attribution, sizes) -> [B, K], floating
            scores or bool hits; may also answer a `faithlab.stats.MonteCarlo`. The score is a `faithlab.engine.Score`.
            If it has arguments named `present` or `images` it is given the task's.
        source: where it is defined.
        output: what is read off the network.
        baseline: what stands in for a removed feature, by its name in `faithlab.baselines.NAMED`.
        network: which network is asked.
        better: 1 where higher is more faithful, -1 where lower is.
        chance: its mean over random explanations; None: not known.
        ideal: of a perfect explanation; None: not known.
        direction: which end of the order is removed first, for metrics that come in both directions.
        sizes: shares of the features at which it answers; None: it answers one number.
        exact: asked in float32, because it looks at signs of small differences.
        family: what the paper calls it together with its variants; empty: its own name.
        needs: what it is put to.
        statistic: what summarises it over images; None: the mean, or the area over its sizes.
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
            raise TypeError("expected functions as compute and output; see faithlab.metrics.Metric")
        for name, known in (("network", Network), ("needs", Needs), ("direction", masks.Direction)):
            if (came := getattr(self, name)) not in get_args(known) and (name, came) != ("direction", None):
                raise ValueError(f"expected {name} as one of {', '.join(get_args(known))}, but got {came!r}")
        if self.better not in (1, -1) or isinstance(self.better, bool):
            raise ValueError(f"expected better = 1 (higher is more faithful) or -1, but got {self.better!r}")
        if not isinstance(self.exact, bool):
            raise TypeError(f"expected exact = True or False, but got {self.exact!r}")
        for name in ("chance", "ideal"):
            if getattr(self, name) is not None:
                validation.number(name, getattr(self, name), "as a number, or None", lambda number: True)
        if self.statistic is not None and not (callable(self.statistic) or isinstance(self.statistic, stats.Statistic)):
            raise TypeError(f"expected statistic as one of faithlab.stats, or a function, but got {self.statistic!r}")
        if not isinstance(self.family, str):
            raise TypeError(f"expected family as a text, but got {self.family!r}")
        if not isinstance(self.source, str) or not self.source.strip():
            raise ValueError("expected where the metric is defined: a paper and its equation, or your name")
        if self.sizes is not None:
            sizes = validation.fractions(self.sizes)
            if not bool((sizes.diff() > 0).all()):
                raise ValueError(f"expected increasing sizes, shares of the features, but got {sizes.tolist()}")
            object.__setattr__(self, "sizes", tuple(sizes.tolist()))

    @property
    def summary(self) -> stats.Statistic | Callable[..., Tensor]:
        """What summarises it over images, a statistic of `faithlab.stats`."""
        return self.statistic or (stats.mean if self.sizes is None else stats.area)

    def given(self, **changes: Any) -> "Metric":
        """The metric with other attributes, or with other arguments of its function.

        A `direction`, and whether there are `sizes`, are a matter of its function: they come with another `compute`.
        What is asked about, as `present` and `images`, is the task's.

        Raises:
            TypeError: a name that is neither, or that would change what the metric says of itself and not what it asks;
                a value of another type.
        """
        attributes = {field.name for field in dataclasses.fields(self)}
        if "compute" not in changes:
            attributes -= {"direction"}
            if self.sizes is None or changes.get("sizes", self.sizes) is None:
                attributes -= {"sizes"}
        fields = {name: value for name, value in changes.items() if name in attributes}
        metric = dataclasses.replace(self, **fields)
        options = {name: value for name, value in changes.items() if name not in attributes}
        if refused := [name for name in options if name not in metric.options]:
            raise TypeError(
                f"{', '.join(refused)}: neither an option of this metric's function, which has "
                f"{', '.join(metric.options) or 'none'}, nor an attribute to be given: {', '.join(sorted(attributes))}"
            )
        for name, value in options.items():
            if isinstance(metric._arguments[name].default, bool) and not isinstance(value, bool):
                raise TypeError(f"expected {name} = True or False, but got {value!r}")
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
        """Whether its function has an argument of this name, such as the `seed` of random draws."""
        return name in self._arguments

    def obstacle(self, task: Task, explainer: str | None = None) -> str | None:
        """Why it does not apply to an explanation of a task; None: it does."""
        if self.needs != "one network":
            return f"it needs {self.needs}"
        if task.padded and not self.takes("present"):
            return (
                "its function has no argument `present`: inputs of unequal length are padded, and it would take the "
                "padding for features; let it take `present`, [B, F] bool, and leave the others out"
            )
        return task.missing(self.baseline, self.network, explainer)

    def measure(self, score: Score, task: Task, attribution: Tensor) -> stats.MonteCarlo:
        """Its values [B] or [B, K] and their Monte-Carlo errors (NaN: unknown), asked with a score made elsewhere."""
        _fitting(task, attribution)
        sizes = () if self.sizes is None else (torch.tensor(self.sizes, dtype=torch.float64),)
        own = {"present": task.present, "images": task.images}
        # Copies: what a function changes in place stays its own.
        given = {name: value if value is None else value.clone() for name, value in own.items() if self.takes(name)}
        answer = self.compute(score, attribution.clone(), *sizes, **given)
        value, error = answer if isinstance(answer, stats.MonteCarlo) else (answer, None)
        shape = (len(attribution), *([] if self.sizes is None else [len(self.sizes)]))
        if not isinstance(value, Tensor) or value.shape != shape:
            came = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise ValueError(
                f"expected a number for each of the {len(attribution)} explanations"
                + (f" and {len(self.sizes)} sizes" if self.sizes else "")
                + f", {shape}, but the metric gave {came}"
            )
        if (not value.is_floating_point() and value.dtype != torch.bool) or bool(value.isinf().any()):
            came = f"infinity for {int(value.isinf().sum())}" if value.is_floating_point() else value.dtype
            raise ValueError(
                f"expected finite floating-point scores, NaN where they are not defined, or bool hits, but the metric "
                f"gave {came}"
            )
        if error is not None and (not isinstance(error, Tensor) or error.shape != shape):
            came = tuple(error.shape) if isinstance(error, Tensor) else type(error).__name__
            raise ValueError(f"expected the Monte-Carlo errors as a tensor {shape}, as the values, but got {came}")
        return stats.MonteCarlo(value, error)

    def __call__(self, task: Task, attribution: Tensor, *, explainer: str | None = None) -> Tensor:
        """The metric of one explanation of every input, asked with its own output, baseline and network.

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
        """Masked inputs that it asks about for one explanation, counted on one of so many features.

        Raises:
            ValueError: it is not put to an explanation of one network.
        """
        if self.needs != "one network":
            raise ValueError(f"forwards are those of one network's explanation, but this metric needs {self.needs}")
        asked = 0

        def score(keep: Tensor, positions: Tensor | None = None) -> Tensor:
            nonlocal asked
            asked += keep[..., 0].numel()
            # Different answers for different masks, as a network gives them.
            return keep.double() @ torch.linspace(0, 1, keep.shape[-1], dtype=torch.float64) / keep.shape[-1]

        score.classes = 2
        x = torch.zeros(1, features, dtype=torch.float32)
        task = Task(torch.nn.Identity(), x, torch.zeros(1, dtype=torch.int64), torch.arange(features))
        self.measure(score, task, torch.rand(1, features, generator=torch.Generator().manual_seed(0)))
        return asked


METRICS: dict[str, Metric] = {}
"""The registered metrics by name."""

_OWN: dict[str, Path] = {}
"""The files of a reader's own metrics by the names of these."""

_LOADED: dict[Path, ModuleType] = {}


def register(name: str, compute: Callable[..., Any] | Metric, **declared: Any) -> Metric:
    """Add a metric to `METRICS`, so that every trial, table and figure has it.

    Args:
        name: of the metric.
        compute: its function, or a whole `Metric`.
        **declared: the other attributes of a `Metric`; of a whole one those that change, as in `Metric.given`.

    Raises:
        ValueError: no name, one that is taken, or attributes that a metric cannot have.
    """
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"expected the metric's name as a text, but got {name!r}")
    if name in METRICS:
        where = f", of {_OWN[name]}" if name in _OWN else ""
        raise ValueError(f"there is a metric {name!r} already{where}; choose another name")
    METRICS[name] = compute.given(**declared) if isinstance(compute, Metric) else Metric(compute, **declared)
    return METRICS[name]


def families(metrics: Mapping[str, Metric]) -> dict[str, list[str]]:
    """The names of metrics by what their papers call them together, in order of appearance."""
    found: dict[str, list[str]] = {}
    for name, metric in metrics.items():
        found.setdefault(metric.family or name, []).append(name)
    return found


def _fitting(task: Task, attribution: Tensor) -> None:
    """Raise ValueError where something is no explanation of the inputs of a task."""
    validation.attribution(attribution)
    features = segments.count_of(task.segments, task.x)
    if attribution.shape != (len(task.x), features):
        raise ValueError(
            f"expected an attribution for each of {len(task.x)} inputs and {features} features, "
            f"{(len(task.x), features)}, but got {tuple(attribution.shape)}; explain these inputs, and pool "
            "what is finer than the features with faithlab.segments.pool"
        )


def evaluate(metrics: Mapping[str, Metric], task: Task, attributions: Mapping[str, Tensor], **labels: Any) -> Scores:
    """Ask metrics of explanations, one row for each image, explainer and metric.

    Metrics that ask the same network with the same baseline share its answers: equal masks are asked once, whatever
    each of them reads off. A metric that does not apply has no row; `obstacles` says why.

    Args:
        metrics: by name, such as `METRICS` or a part of it.
        task: the inputs and networks.
        attributions: by explainer, [B, F].
        **labels: of all rows, see `faithlab.scores.LABELS`; not those that say what was asked.

    Raises:
        TypeError: what is no metric or no explanation by name.
        ValueError: no metric applies, a label that cannot be given, and what the metrics raise: the message says which.
    """
    for what, given in (("metrics", metrics), ("attributions", attributions)):
        if not isinstance(given, Mapping):
            raise TypeError(f"expected {what} by name, such as {{'mine': ...}}, but got a {type(given).__name__}")
    if wrong := [name for name, metric in metrics.items() if not isinstance(metric, Metric)]:
        raise TypeError(
            f"expected metrics as faithlab.metrics.Metric, but {wrong[0]!r} is a {type(metrics[wrong[0]]).__name__}; "
            "make one of a function: Metric(function, source='yours')"
        )
    free = [name for name in LABELS if name not in ("explainer", "metric", "reference", "direction")]
    if refused := [name for name in labels if name not in free]:
        raise ValueError(
            f"{', '.join(refused)}: not a label to be given, which are {', '.join(free)}; what is asked is said by the "
            "metrics, metric.given(baseline=...), and the names of attributions"
        )
    pairs = [(e, name) for e in attributions for name, m in metrics.items() if m.obstacle(task, e) is None]
    if not pairs:
        said = "; ".join(f"{name}: {why}" for (_, name), why in obstacles(metrics, task, attributions).items())
        raise ValueError(f"no metric applies: {said or 'none was given'}")
    for explainer, attribution in attributions.items():
        try:
            _fitting(task, attribution)
        except ValueError as wrong:
            raise ValueError(f"the explanations {explainer!r}: {wrong}") from None
    nothing = torch.full((len(task.x),), torch.nan)  # what no table can hold is refused before anything is asked
    for explainer, name in pairs:
        own = {"metric": name, "explainer": explainer}
        Scores.of(nothing, images=task.images, **{**task.labels, **own, **labels})
    scores = _shared(task, {(e, name): metrics[name] for e, name in pairs})
    tables = []
    for explainer, name in pairs:
        metric = metrics[name]
        try:
            value, error = metric.measure(scores[explainer, name], task, attributions[explainer])
        except Exception as failed:
            said = f"{failed}" if isinstance(failed, ValueError) else f"{type(failed).__name__}: {failed}"
            raise ValueError(f"the metric {name!r} fails: {said}") from failed
        own = {"metric": name, "explainer": explainer, "reference": metric.baseline, "direction": metric.direction}
        known = error is not None and not bool(error.isnan().all())
        tables.append(
            Scores.of(
                value,
                images=task.images,
                sizes=metric.sizes,
                errors=error if known else None,
                **{**task.labels, **own, **labels},
            )
        )
    return Scores.concat(tables)


def obstacles(
    metrics: Mapping[str, Metric], task: Task, attributions: Mapping[str, Tensor]
) -> dict[tuple[str, str], str]:
    """Why metrics do not apply, by explainer and metric; those that do are left out."""
    found = {(e, name): metric.obstacle(task, e) for e in attributions for name, metric in metrics.items()}
    return {key: why for key, why in found.items() if why is not None}


def _shared(task: Task, asked: Mapping[tuple[str, str], Metric]) -> dict[tuple[str, str], Score]:
    """The score of every explainer and metric; those that ask one network in one way ask it together."""
    groups: dict[tuple, dict[tuple[str, str], Output]] = {}
    for (explainer, name), m in asked.items():
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


def _deletion(summary: Callable, sign: int = 1, direction: masks.Direction = "MoRF") -> Callable[..., Tensor]:
    """A number of the deletion curve."""

    def ask(score: Score, attribution: Tensor, *, present: Tensor | None = None) -> Tensor:
        return sign * summary(deletion.curve(score, attribution, direction=direction, present=present))

    return ask


SIZES = tuple(step / 20 for step in range(1, 20))
"""5, 10, ..., 95 %: the sizes of F-Fidelity."""

_FF, _SACO, _TRACE = "Zheng et al. 2024", "Wu et al. 2024", "Wang and Wang 2024"
_RANDOM = {"alpha": 0.5, "draws": 50}
for _sign, _way, _better in (("+", "MoRF", 1), ("-", "LeRF", -1)):
    _curve = {"output": correct, "sizes": SIZES, "direction": _way, "better": _better}
    _plain = functools.partial(fidelity.fidelity, direction=_way)
    _drawn = functools.partial(_plain, **_RANDOM)
    _capped = functools.partial(_drawn, cap=0.1)
    register(f"Fid{_sign}", _plain, source=f"{_FF}, eq. {1 if _better > 0 else 2}", family="Fidelity", **_curve)
    register(f"ROAR{_sign}", _plain, source="Hooker et al. 2019", family="ROAR", network="retrained", **_curve)
    register(f"RFid{_sign}", _drawn, source=f"{_FF}, eq. {3 if _better > 0 else 4}", family="R-Fidelity", **_curve)
    register(f"FFid{_sign}", _capped, source=f"{_FF}, eq. 6", family="F-Fidelity", network="fine-tuned", **_curve)

_saco = {"source": f"{_SACO}, section 4.3", "baseline": "mean", "exact": True}
register("SaCo", saco.saco, source=f"{_SACO}, Algorithm 1", baseline="mean", exact=True, chance=0.0, ideal=1.0)
register("AUC", _deletion(deletion.area), output=correct, better=-1, direction="MoRF", **_saco)
register("AOPC", _deletion(deletion.loss), direction="MoRF", **_saco)
register("LOdds", _deletion(deletion.loss, sign=-1), output=log_odds, better=-1, direction="MoRF", **_saco)
register("Comp.", _deletion(deletion.loss, direction="LeRF"), better=-1, direction="LeRF", **_saco)

_trace = {"source": f"{_TRACE}, eq. 1", "output": probability}
register("MoRF", trajectory.morf, better=-1, direction="MoRF", **_trace)
register("LeRF", trajectory.lerf, direction="LeRF", **_trace)
register("LeRF - MoRF", trajectory.lerf_minus_morf, source=f"{_TRACE}, section 3.3", chance=0.0)
register("Insertion", trajectory.inserted, source=f"{_TRACE}, Theorem 3.1")

register(
    "Few-class Fidelity",
    few_class.few_class_fidelity,
    source="Marchadour et al. 2025, eq. 1",
    baseline="perturbed",
    ideal=1.0,
)

_consistency = "Fel and Vigouroux 2020"
_mu = {"output": logit, "chance": 0.0, "ideal": 1.0, "exact": True}
register("µFidelity", mufidelity.mu_fidelity, source=f"{_consistency}, eq. 1", **_mu)
_moved = functools.partial(stability.average_stability, distance=distance.spearman)
register("S_avg", _moved, source=f"{_consistency}, eq. 2", better=-1, needs="neighbours")
_compared = functools.partial(consistency.to_unseen, distance=distance.spearman)
_folds = {"compute": _compared, "ideal": 1.0, "needs": "cross-trained networks"}
_same, _different = {"metric": "S="}, {"metric": "S≠"}
register(
    "MeGe",
    source=f"{_consistency}, eq. 8",
    statistic=stats.Statistic(stats.mege, (_same,), "MeGe", within=(0.0, 1.0)),
    **_folds,
)
_youden = stats.Statistic(stats.youden, (_same, _different), "ReCo", within=(0.0, 1.0))
register("ReCo", source=f"{_consistency}, eq. 7", chance=0.0, statistic=_youden, **_folds)


def load(path: str | os.PathLike) -> ModuleType:
    """Run a file that registers metrics, or has some to be examined; those registered are `own` ones from then on.

    A file is run once in a process, whoever asks for it. It imports the modules beside it, as a script does.

    Raises:
        FileNotFoundError: no such file.
        ValueError: no Python file, or one that does not run.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"{FILES} names {path}, which is no file; give its whole path")
    if path.suffix != ".py":
        raise ValueError(f"expected a file of Python, something.py, but got {path}; rename it")
    if (path := path.resolve()) in _LOADED:
        return _LOADED[path]
    spec = importlib.util.spec_from_file_location(f"faithlab_own_{len(_LOADED)}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    before = set(METRICS)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # behind all others, which it may not hide
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        for name in set(METRICS) - before:  # so that it can be mended and run again
            del METRICS[name]
        raise ValueError(f"{path} does not run: {type(error).__name__}: {error}") from error
    _OWN.update((name, path) for name in METRICS if name not in before)
    return _LOADED.setdefault(path, module)


def own(*tasks: Task) -> dict[str, Metric]:
    """The metrics of a reader's own files, which every trial of the book asks beside those of its paper.

    Args:
        *tasks: what they shall be asked about. A metric that does not apply to one of them is left out.

    Warns:
        UserWarning: which metric was left out, and why.
    """
    found = {name: METRICS[name] for name in _OWN}
    for name, metric in list(found.items()):
        why = [metric.obstacle(task, next(iter(task.retrained), None)) for task in tasks]
        if said := next(filter(None, why), None):
            warnings.warn(f"{name} does not apply here and is left out: {said}", stacklevel=2)
            del found[name]
    return found


def fidelities(
    families: Sequence[str] = ("Fid", "ROAR", "RFid", "FFid"),
    *,
    size_step: float,
    alpha: float,
    beta: float,
    draws: int,
    seed: int,
) -> dict[str, Metric]:
    """The metrics that F-Fidelity compares, from both ends and with the same numbers: "FFid+", "FFid-" and so on.

    Args:
        families: which of them.
        size_step: between the sizes, a share.
        alpha: share of the most relevant that R- and F-Fidelity remove, at random.
        beta: share of all features that F-Fidelity removes at most.
        draws: random subsets of each size.
        seed: of them.
    """
    sizes = [k * size_step for k in range(1, round(1 / size_step))]
    drawn = {"alpha": alpha, "draws": draws, "seed": seed}
    own = {"RFid": drawn, "FFid": {**drawn, "cap": beta}}
    return {of + way: METRICS[of + way].given(sizes=sizes, **own.get(of, {})) for way in "+-" for of in families}


def replacement_curves(steps: int) -> dict[str, Metric]:
    """Few-class Fidelity's two curves, "MIF" and "LIF": the probability at 0, 1/steps, ..., 1 replaced."""
    shares = [k / steps for k in range(steps + 1)]
    return {
        name: METRICS["Few-class Fidelity"].given(
            compute=functools.partial(_replaced, end=end), sizes=shares, direction=end
        )
        for name, end in (("MIF", "MoRF"), ("LIF", "LeRF"))
    }


def _replaced(score: Score, attribution: Tensor, sizes: Tensor, *, end: masks.Direction) -> Tensor:
    return few_class.curve(score, attribution, steps=len(sizes) - 1, direction=end)


for _file in filter(None, os.environ.get(FILES, "").split(os.pathsep)):
    load(_file)
