"""The kinds of network that the examination asks: convolutional, a Vision Transformer, and LSTMs for series and texts.

A network is named by its model and its training seed, such as "resnet9 1". `asked` makes the task, with the
companions and references that the trials need, and says which explainers apply.
"""

import traceback
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from faithlab import baselines, segments, stats
from faithlab.metrics import Metric
from faithlab.scores import Scores
from faithlab.task import Task
from faithstudy import recipes, tables
from faithstudy.data import datasets
from faithstudy.data.sets import LabelledSet
from faithstudy.networks import models
from faithstudy.networks.training import Recipe, logits
from faithstudy.trials import checks, tasks
from faithstudy.trials.baselines import perturbed

LONG = {"japanese-vowels": 10, "rotten-tomatoes": 20}
"""Features of an input that is explained, at least: F-Fidelity removes a tenth of them."""

SQUARE = 4
"""Side of a feature, in pixels, of the images of `sample`."""

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
        count: what gives `right`, which takes seconds and is not asked for everywhere.
    """

    kind: Kind
    seed: int
    task: Task
    explainers: Mapping[str, tasks.Chosen]
    count: Callable[[], tuple[stats.Estimate, ...]]

    @cached_property
    def right(self) -> tuple[stats.Estimate, ...]:
        """How many test examples the network recognises, and how many its fine-tuned companion; what is known."""
        return self.count()

    @property
    def row(self) -> dict[str, Any]:
        """What was asked, as a row of a table: the network, what it recognises, and how many inputs and features."""
        found = {"kind": self.kind.name, "network": self.kind.about, "training seed": self.seed}
        shares = (*map(tables.share, self.right), *("not known", "there is none")[len(self.right) :])
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

    def count() -> tuple[stats.Estimate, ...]:
        return tuple(recognised(of, data, task) for of in (task.model, task.tuned))

    return Asked(kind, seed, task, found, count)


def sample(model: str) -> Task:
    """Two inputs of a kind, and its network with random weights, to see whether what is a reader's own fits them.

    Nothing is trained for it: what the network takes and gives is what a trained one does.

    Args:
        model: a key of `KINDS`.
    """
    recipe = KINDS[model].recipe
    data = datasets.load(recipe.data, "test", **recipe.data_options)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = models.build(recipe.model, **recipe.model_options)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network = network.to(device).eval()
    places = chosen(data, 2, LONG.get(recipe.data, 1))
    x, present = data.model_inputs(places).to(device), data.present(places)
    token = partial(baselines.token, identity=data.ABSENT)
    return Task(
        network,
        x,
        logits(network, x).argmax(1),
        # Squares of one size: a map that says the same of all pixels says the same of all features.
        segments.patches(*x.shape[-2:], SQUARE) if x.ndim == 4 else data.features(),
        dataset=recipe.data,
        network=KINDS[model].about,
        images=places,
        present=None if present is None else present.to(device),
        baselines=baselines.NAMED if x.is_floating_point() else dict.fromkeys(baselines.NAMED, token),
    )


def segments_of(size: int, side: int) -> Tensor:
    """Which of side x side features each pixel of a square picture belongs to, [size, size].

    Raises:
        ValueError: more features than pixels.
    """
    if not 0 < side <= size:
        raise ValueError(f"expected at most {size} features a side, of pictures of {size} pixels, but got {side}")
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
    seen = torch.arange(min(RECOGNISED, len(data)))
    seen = tasks.evenly(torch.arange(len(data)), len(seen))
    x = data.model_inputs(seen).to(task.x.device)
    hits = logits(model, x).argmax(1).cpu() == data.labels[seen]
    return stats.estimate(Scores.of(hits, images=seen, metric="accuracy", **task.labels))


def own(named: str, what: str) -> Callable | Metric:
    """As `faithstudy.trials.checks.yours`; a file that ends the program, as a script does, is an error, too."""
    try:
        return checks.yours(named, what)
    except SystemExit as error:
        raise ValueError(
            f"{named.rpartition(':')[0]} ends the program when it is loaded, SystemExit({error}); put what it does as "
            'a script below  if __name__ == "__main__":'
        ) from None


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


def _made(named: str, what: str) -> Any:
    """What a function of a reader's own returns, or the network that is named itself."""
    found = own(named, what)
    if isinstance(found, nn.Module):
        return found
    try:
        return found()
    except (Exception, SystemExit) as error:
        raise ValueError(f"{named} fails: {said(error, named)}") from error


def yours(model: str, data: str, parameters: Mapping[str, Any]) -> Asked:
    """A network of a reader's own, with inputs of a reader's own, checked before the work starts.

    Args:
        model: "path/to/file.py:function", a function without arguments that returns the network, or the network.
        data: "path/to/file.py:function", a function without arguments that returns x, or x and labels; or an .npz file
            with an array x, and y where there are labels. x are images [B, C, H, W] or series [B, T, C] as the network
            takes them, on which a removed feature becomes 0, the mean or a blur.
        parameters: as in `asked`.

    Raises:
        ValueError: files, networks or inputs that do not fit.
    """
    found = _made(model, "model")
    if not isinstance(found, nn.Module):
        raise ValueError(
            f"{model}: expected a function that returns a torch.nn.Module, but it gave {type(found).__name__}"
        )
    weights = next(found.parameters(), None)
    if weights is None:
        raise ValueError(
            f"{model}: expected a network with weights, which the trial Own model draws anew, but it has no "
            "parameters; a module counts as part of another where it is an attribute of it, self.part = ..."
        )
    x, y = inputs(data)
    x = x.to(weights.device)
    try:
        with torch.no_grad():
            first = found.eval()(x[:2])
    except Exception as error:
        raise ValueError(f"{model} fails on two inputs of {data}, float32 {tuple(x[:2].shape)}: {error}") from error
    if not isinstance(first, Tensor) or first.ndim != 2 or first.shape[0] != 2 or first.shape[1] < 2:
        came = tuple(first.shape) if isinstance(first, Tensor) else type(first).__name__
        raise ValueError(
            f"{model}: expected logits [2, classes] of two inputs, two classes or more, but it gave {came}"
        )
    if not bool(first.isfinite().all()):
        raise ValueError(f"{model}: its logits of the first two inputs are not finite")
    if y is not None and not 0 <= int(y.min()) <= int(y.max()) < first.shape[1]:
        raise ValueError(
            f"{data}: expected labels of 0 to {first.shape[1] - 1}, but got {int(y.min())} to {int(y.max())}"
        )
    x = x[: parameters["images"]]
    predicted = logits(found, x).argmax(1)
    named = {"zero": baselines.zero, "mean": baselines.mean}
    if x.ndim == 4:
        named["blur"] = partial(baselines.blur, sigma=min(x.shape[-2:]) / 8)
        size = x.shape[-1]
        if x.shape[-2] != size:
            raise ValueError(f"{data}: expected square images, but got {x.shape[-2]} x {size}; cut or pad them")
        features = segments_of(size, min(parameters["side"], size))
    else:
        features = segments.time_steps(x.shape[1])
    if (count := segments.count(features)) < 2:
        raise ValueError(
            f"{data}: expected inputs of two features or more, to be ordered, but {tuple(x.shape)} has {count}; a "
            f"feature is {'a square of pixels' if x.ndim == 4 else 'a time step'}"
        )
    name = model.rpartition(":")[2]
    task = Task(found, x, predicted, features, Path(data.rpartition(":")[0] or data).stem, name, baselines=named)
    right = ()
    if y is not None:
        hits = predicted.cpu() == y[: len(x)]
        right = (stats.estimate(Scores.of(hits, images=task.images, metric="accuracy", **task.labels)),)
    about = f"{name} of yours; {'squares of pixels' if x.ndim == 4 else 'time steps'}"
    known = {n: explainer(n, parameters["steps"]) for n in parameters["explainers"]["yours"]}
    return Asked(Kind("yours", name, about, recipes.RESNET9), 0, task, known, lambda: right)


def source(data: str) -> Callable | None:
    """The function of a reader's own that gives inputs; None of an .npz file, which is there and not read.

    Raises:
        ValueError: no such file or function.
    """
    if not data:
        raise ValueError("expected inputs for your network: DATA=path/to/inputs.npz or DATA=path/to/file.py:function")
    if data.lower().endswith(".npz"):
        if not Path(data).expanduser().is_file():
            raise ValueError(f"{data} cannot be read: there is no such file")
        return None
    if ":" not in data:
        raise ValueError(
            f"expected DATA=path/to/inputs.npz or DATA=path/to/file.py:function, but got {data!r}; numpy.savez("
            "'inputs.npz', x=x, y=y) makes such a file of arrays"
        )
    return own(data, "data")


def inputs(data: str) -> tuple[Tensor, Tensor | None]:
    """The inputs of a reader's own, and their labels where there are some; see `yours`.

    Raises:
        ValueError: no such file, or what are no inputs.
    """
    if source(data) is None:
        try:
            file = np.load(Path(data).expanduser(), allow_pickle=False)
            if isinstance(file, np.ndarray):
                raise ValueError(
                    "it holds one array without a name, as numpy.save writes it; use numpy.savez(..., x=x)"
                )
            with file:
                given = tuple(file[name] for name in ("x", "y") if name in file)
                names = list(file)
        except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
            raise ValueError(f"{data} cannot be read: {error}") from None
        if "x" not in names:
            raise ValueError(
                f"{data}: expected an array x, and y where there are labels, but it has {', '.join(names)}"
            )
    else:
        given = _made(data, "data")
        given = tuple(given) if isinstance(given, tuple | list) else (given,)
    if not 1 <= len(given) <= 2:
        raise ValueError(f"{data}: expected inputs, or inputs and labels, but it gave {len(given)} things")
    try:
        x, *y = (torch.as_tensor(part).detach().clone() for part in given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{data}: expected tensors or arrays of numbers: {error}") from None
    if x.ndim not in (3, 4) or not x.is_floating_point() or len(x) < 2:
        raise ValueError(
            f"{data}: expected two or more images [B, C, H, W] or series [B, T, C] of floating-point numbers, as the "
            f"network takes them, but got {x.dtype} {tuple(x.shape)}"
        )
    if not bool(x.isfinite().all()):
        where = (~x.isfinite()).flatten(1).any(1).nonzero().flatten().tolist()
        raise ValueError(f"{data}: NaN or infinity in {len(where)} of {len(x)} inputs, the first is number {where[0]}")
    if y and (y[0].shape != (len(x),) or y[0].is_floating_point() or y[0].dtype == torch.bool):
        raise ValueError(
            f"{data}: expected whole numbers as labels, one for each of the {len(x)} inputs, but got {y[0].dtype} "
            f"{tuple(y[0].shape)}"
        )
    return x.float(), y[0].long() if y else None


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
