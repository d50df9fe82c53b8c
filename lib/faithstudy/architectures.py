"""The kinds of network that the examination asks: convolutional, a Vision Transformer, and LSTMs for series and texts.

A network is named by its model and its training seed, such as "resnet9 1". `asked` makes the task, with the
companions and references that the trials need, and says which explainers apply.
"""

import traceback
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from faithlab import baselines, segments, stats
from faithlab.metrics import METRICS, Metric
from faithlab.scores import Scores
from faithlab.task import Task
from faithstudy import recipes, tables
from faithstudy.data import datasets
from faithstudy.data.sets import LabelledSet
from faithstudy.networks.training import Recipe, logits
from faithstudy.trials import checks, tasks
from faithstudy.trials.baselines import perturbed
from faithstudy.trials.chance import RANDOM

LONG = {"japanese-vowels": 10, "rotten-tomatoes": 20}
"""Features of an input that is explained, at least: F-Fidelity removes a tenth of them."""

RECOGNISED = 1000
"""Test examples, at most, on which it is counted how many a network recognises."""


@dataclass(frozen=True)
class Kind:
    """A kind of network.

    Attributes:
        name: what pages call the kind; its networks are judged together.
        network: what tables call the network.
        about: what it is, what it reads, and what a feature is, for a sentence.
        recipe: of the original network.
    """

    name: str
    network: str
    about: str
    recipe: Recipe


KINDS = {
    "resnet9": Kind("images, convolutional", "ResNet-9", "a ResNet-9 on CIFAR-10; squares of pixels", recipes.RESNET9),
    "vit": Kind("images, transformer", "ViT", "a Vision Transformer on CIFAR-10; squares of pixels", recipes.VIT),
    "bilstm": Kind("series, LSTM", "LSTM", "an LSTM on JapaneseVowels, spoken vowels; time steps", recipes.BILSTM),
    "lstm": Kind("text, LSTM", "LSTM", "an LSTM on Rotten Tomatoes, film reviews; words", recipes.LSTM),
}
"""By the model of the recipe."""


@dataclass(frozen=True)
class Asked:
    """A network to be examined.

    Attributes:
        kind: its kind.
        seed: it was trained with.
        task: the inputs, the network and its companions.
        explainers: by name.
        right: counts how many test examples the network recognises, and how many its fine-tuned companion; what is
            known. It takes seconds.
    """

    kind: Kind
    seed: int
    task: Task
    explainers: Mapping[str, tasks.Chosen]
    right: Callable[[], tuple[stats.Estimate, ...]]

    @property
    def row(self) -> dict[str, Any]:
        """What was asked, as a row of a table: the network, what it recognises, and how many inputs and features."""
        found = {"kind": self.kind.name, "network": self.kind.about, "training seed": self.seed}
        right = self.right()
        shares = (*map(tables.share, right), *("not known", "there is none")[len(right) :])
        found |= dict(zip(("recognises", "fine-tuned"), shares, strict=True))
        return found | {"explained": len(self.task.x), "features": segments.count(self.task.segments)}


def named(network: str) -> tuple[str, int]:
    """The model and the seed of "resnet9 1"; without a number the seed is 0.

    Raises:
        ValueError: no such model, or what is no seed.
    """
    model, _, seed = str(network).strip().partition(" ")
    if model not in KINDS or not (seed or "0").isdigit():
        raise ValueError(
            f"expected a model and a training seed, such as 'resnet9 0', with a model of {', '.join(KINDS)}, but got "
            f"{network!r}"
        )
    return model, int(seed or 0)


def asked(network: str, parameters: Mapping[str, Any], *, references: bool = True) -> Asked:
    """A network to be examined, from the parameters of the page.

    Args:
        network: as in `named`.
        parameters: images (how many inputs), side (of an image, in features), beta, precision (for images), steps (of
            Integrated Gradients), and by model: explainers, training, tuning.
        references: with the baselines "perturbed", which takes a search, and "blur", for images.

    Raises:
        ValueError: no such network, or no explainers for it.
    """
    model, seed = named(network)
    kind = KINDS[model]
    if not parameters["explainers"].get(model):
        raise ValueError(f"expected explainers of {model}, such as explainers={{{model}: [saliency, ...]}}")
    changes = {of: parameters[of].get(model, {}) for of in ("training", "tuning")}
    pair = recipes.pair(kind.recipe, seed, beta=parameters["beta"], **changes)
    recipe = pair["original"]
    data = datasets.load(recipe.data, "test", **recipe.data_options)
    options: dict[str, Any] = {"tuned": pair["fine-tuned"], "name": kind.network}
    if data.inputs.ndim == 4:
        options["features"] = segments_of(data.inputs.shape[-1], parameters["side"])
        options["precision"] = parameters["precision"]
    places = chosen(data, parameters["images"], LONG.get(recipe.data, 1))
    task = tasks.task(recipe, places, about="prediction", data=data, **options)
    if data.inputs.ndim == 4 and references:
        task, _ = perturbed(task, data)
        blur = partial(baselines.blur, sigma=data.inputs.shape[-1] / 8)
        task = replace(task, baselines={**task.baselines, "blur": blur})
    found = {name: explainer(name, parameters["steps"]) for name in parameters["explainers"][model]}
    return Asked(kind, seed, task, found, lambda: tuple(recognised(of, data, task) for of in (task.model, task.tuned)))


def segments_of(size: int, side: int) -> Tensor:
    """Which of side x side features each pixel of a square picture belongs to, [size, size]."""
    cells = torch.arange(size) * side // size
    return cells[:, None] * side + cells


def chosen(data: LabelledSet, count: int, least: int) -> Tensor:
    """Which examples are explained, [n]: the first images; series and texts evenly spaced, because they are sorted."""
    if data.inputs.ndim == 4:
        return torch.arange(min(count, len(data)))
    present = data.present()
    features = torch.full((len(data),), segments.count(data.features())) if present is None else present.sum(1)
    return tasks.evenly((features >= least).nonzero().flatten(), count)


def explainer(name: str, steps: int) -> tasks.Chosen:
    """An explainer of `faithlab.explainers`, or `occlusion`; Integrated Gradients with so many steps."""
    if name == "occlusion":
        return occlusion
    return (name, {"steps": steps}) if name.startswith("integrated-gradients") else name


def occlusion(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """What the logit loses without each step of a series [n, T, C], or each token [n, T]: [n, T, 1] or [n, T].

    A step becomes zero, the mean of the training series; a token becomes the mask token.
    """
    T, absent = x.shape[1], 0.0 if x.is_floating_point() else 1
    without = x[:, None].repeat(1, T, *(1 for _ in x.shape[1:]))  # [n, T, *S]
    without[:, torch.arange(T), torch.arange(T)] = absent
    with torch.no_grad():
        left = model(without.flatten(0, 1)).unflatten(0, (len(x), T)).gather(2, target.view(-1, 1, 1).expand(-1, T, 1))
        lost = model(x).gather(1, target[:, None]) - left[..., 0]
    return lost.view(len(x), T, *(1 for _ in x.shape[2:]))


def recognised(model: nn.Module, data: LabelledSet, task: Task) -> stats.Estimate:
    """How many of the first test examples a network recognises."""
    seen = tasks.evenly(torch.arange(len(data)), min(RECOGNISED, len(data)))
    x = data.model_inputs(seen).to(task.x.device)
    hits = logits(model, x).argmax(1).cpu() == data.labels[seen]
    return stats.estimate(Scores.of(hits, images=seen, metric="accuracy", **task.labels))


def said(error: BaseException, named: str) -> str:
    """What an error says, with its type unless it is a ValueError, and the line of the reader's own file it came from.

    Args:
        error: raised by a function of a reader's own, or by what it called.
        named: "path/to/file.py:function".
    """
    text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    path = Path(named.rpartition(":")[0]).expanduser().resolve()
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{text} ({path.name}, line {lines[-1]})" if lines else text


def loaded(metric: str = "", explainer: str = "", model: str = "", data: str = "") -> dict[str, Callable | Metric]:
    """Return what is a reader's own from its files, by what it is; none of it is called.

    Args:
        metric: "path/to/file.py:function", or nothing.
        explainer: likewise.
        model: likewise, a function without arguments that returns the network, or the network.
        data: likewise, a function without arguments that returns x, or x and labels; or an .npz file with an array x,
            and y where there are labels. x are images [B, C, H, W] or series [B, T, C] as the network takes them.

    Raises:
        ValueError: nothing is given, or one of model and data alone; and what is missing or does not run, a line each.
    """
    if not (metric or explainer or model):
        raise ValueError(
            "expected a metric, an explainer or a network of yours: make examine METRIC=path/to/file.py:function, "
            "EXPLAINER=path/to/file.py:function, or MODEL=path/to/file.py:function DATA=path/to/inputs.npz"
        )
    if bool(model) != bool(data):
        raise ValueError("expected MODEL and DATA together: a network of yours, and inputs that it takes")
    found, wrong = {}, []
    for what, named in {"metric": metric, "explainer": explainer, "model": model, "data": data}.items():
        try:
            if named:
                found[what] = _arrays(named) if named.lower().endswith(".npz") else checks.yours(named, what)
        except ValueError as error:
            wrong.append(str(error))
    if wrong:
        raise ValueError("\n".join(wrong))
    return found


def _arrays(path: str) -> Callable[[], tuple[np.ndarray, ...]]:
    try:
        with np.load(Path(path).expanduser()) as file:
            arrays = (file["x"], file["y"]) if "y" in file else (file["x"],)
    except (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read as numpy.savez(path, x=x, y=y) writes it: {error}") from None
    return lambda: arrays


def check(parameters: Mapping[str, Any], metric: str = "", explainer: str = "", **network: str) -> None:
    """Evaluate what is a reader's own on two inputs of each kind of network, so that a fault is said before the work.

    Args:
        parameters: of the page.
        metric: as in `loaded`.
        explainer: likewise.
        **network: model and data, likewise.

    Raises:
        ValueError: what is wrong.
    """
    if metric and (name := metric.rpartition(":")[2]) in METRICS:  # before its file, which may register it, is loaded
        raise ValueError(f"there is a metric {name!r} already; give your function another name")
    mine = loaded(metric, explainer, **network)
    few = {**parameters, "images": 2, "training": {}, "tuning": {}}  # networks that ship
    first = {named(one)[0]: one for one in reversed(parameters["networks"])}  # of each kind
    book = () if network else (asked(one, few, references=False) for one in first.values())
    for one in book or [yours(**network, parameters=few)]:
        if explainer and (name := explainer.rpartition(":")[2]) in {*one.explainers, RANDOM}:
            raise ValueError(f"there is an explainer {name!r} on the page already; give your function another name")
        for of, path in {"metric": metric, "explainer": explainer}.items():
            try:
                if of == "metric" and path:
                    checks.check({path.rpartition(":")[2]: mine[of]}, one.task)
                elif path:
                    explained = {path.rpartition(":")[2]: mine[of], RANDOM: "random"}
                    checks.check_explanations(tasks.attributions(one.task, explained), one.task)
            except (Exception, SystemExit) as error:
                about = said(error.__cause__ or error, path)
                raise ValueError(f"{path} fails on two inputs of {one.kind.about}: {about}") from error


def _made(named: str, what: Callable | nn.Module) -> Any:
    """What a function of a reader's own returns, or the network that is named itself."""
    try:
        return what if isinstance(what, nn.Module) else what()
    except (Exception, SystemExit) as error:
        raise ValueError(f"{named} fails: {said(error, named)}") from error


def yours(model: str, data: str, parameters: Mapping[str, Any]) -> Asked:
    """A network of a reader's own, with its inputs, on which a removed feature becomes 0, the mean or a blur.

    Args:
        model: as in `loaded`.
        data: as in `loaded`.
        parameters: as in `asked`.

    Raises:
        ValueError: files, networks or inputs that do not fit.
    """
    mine = loaded(model=model, data=data)
    network, (x, y) = _made(model, mine["model"]), inputs(data, _made(data, mine["data"]))
    weights = next(network.parameters(), None) if isinstance(network, nn.Module) else None
    if weights is None:
        raise ValueError(f"{model}: expected a torch.nn.Module with parameters, but it gave {type(network).__name__}")
    x = x[: parameters["images"]].to(weights.device)
    try:
        scores = logits(network.eval(), x)
    except Exception as error:
        raise ValueError(f"{model} fails on inputs of {data}, float32 {tuple(x.shape)}: {error}") from error
    if scores.ndim != 2 or len(scores) != len(x) or scores.shape[1] < 2 or not bool(scores.isfinite().all()):
        raise ValueError(f"{model}: expected finite logits [{len(x)}, 2 or more], but it gave {tuple(scores.shape)}")
    if y is not None and not 0 <= int(y.min()) <= int(y.max()) < scores.shape[1]:
        raise ValueError(f"{data}: expected labels of 0 to {scores.shape[1] - 1}, but got {y.unique().tolist()}")
    named = {"zero": baselines.zero, "mean": baselines.mean}
    if x.ndim == 4:
        named["blur"] = partial(baselines.blur, sigma=min(x.shape[-2:]) / 8)
        features = segments_of(x.shape[-1], min(parameters["side"], x.shape[-1]))
    else:
        features = segments.time_steps(x.shape[1])
    name = model.rpartition(":")[2]
    predicted = scores.argmax(1)
    task = Task(network, x, predicted, features, Path(data.rpartition(":")[0] or data).stem, name, baselines=named)
    right = ()
    if y is not None:
        hits = predicted.cpu() == y[: len(x)]
        right = (stats.estimate(Scores.of(hits, images=task.images, metric="accuracy", **task.labels)),)
    about = f"{name} of yours; {'squares of pixels' if x.ndim == 4 else 'time steps'}"
    known = {n: explainer(n, parameters["steps"]) for n in parameters["explainers"]["yours"]}
    return Asked(Kind("yours", name, about, recipes.RESNET9), 0, task, known, lambda: right)


def inputs(data: str, given: Any) -> tuple[Tensor, Tensor | None]:
    """Inputs of a reader's own, and their labels where there are some.

    Args:
        data: where they come from.
        given: x, or x and y, as tensors or arrays.

    Raises:
        ValueError: what are no inputs.
    """
    try:
        x, *labels = map(torch.as_tensor, given if isinstance(given, tuple | list) else (given,))
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{data}: expected tensors or arrays of numbers: {error}") from None
    fits = (x.ndim == 4 and x.shape[-1] == x.shape[-2] > 1) or (x.ndim == 3 and x.shape[1] > 1)
    if not (fits and len(x) > 1 and x.is_floating_point() and bool(x.isfinite().all())):
        raise ValueError(
            f"{data}: expected two or more square images [B, C, H, W] or series [B, T, C] of finite floating-point "
            f"numbers, with two features or more, but got {x.dtype} {tuple(x.shape)}"
        )
    if len(labels) > 1 or any(y.shape != x.shape[:1] or y.is_floating_point() or y.dtype == torch.bool for y in labels):
        came = ", ".join(f"{y.dtype} {tuple(y.shape)}" for y in labels)
        raise ValueError(f"{data}: expected a whole number as label of each of the {len(x)} inputs, but got {came}")
    return x.detach().float(), labels[0].long() if labels else None


def by_kind(found: Sequence[Asked]) -> dict[str, list[Asked]]:
    """Networks by the name of their kind, in order of appearance.

    Raises:
        ValueError: one of them is there twice.
    """
    kinds: dict[str, list[Asked]] = {}
    for one in found:
        if one.seed in [other.seed for other in kinds.get(one.kind.name, [])]:
            raise ValueError(f"the network {one.kind.network}, seed {one.seed}, is named twice; name it once")
        kinds.setdefault(one.kind.name, []).append(one)
    return kinds
