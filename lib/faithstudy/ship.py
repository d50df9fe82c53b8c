"""Networks that ship: put trained ones into ``data/networks``, or train one anew to see how far from it that leads.

``python -m faithstudy.ship add FILE...`` takes files of weights from the cache (``~/.cache/faithlab/weights``).
``python -m faithstudy.ship retrain KEY``, which is ``make retrain NAME=KEY``, trains in the cache, whose network of
this recipe nothing else uses, and goes on where it was killed. ``--keep`` adds what it finds to the network's facts.
"""

import argparse
import copy
import dataclasses
import json
import sys
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from faithlab import stats
from faithlab.explainers import explain
from faithstudy import execute, paths
from faithstudy.data import cache, datasets
from faithstudy.data.sets import LabelledSet
from faithstudy.networks import models, shipped, training
from faithstudy.networks.training import Recipe

LICENCE = "Apache-2.0"
MAPS = 100  # test examples whose explanations are compared
_ABOUT = ("commit", "dirty", "device", "cpu", "torch", "date")


def compare(one: nn.Module, other: nn.Module, data: LabelledSet) -> dict:
    """Compare two networks on a test split, on their device.

    Args:
        one: a network.
        other: another one for the same inputs.
        data: a test split.

    Returns:
        ``accuracy`` and ``loss`` (cross-entropy), both [of one, of the other]; ``agreement``, the share of the examples
        that both put into the same class; ``maps``, explainer -> mean rank correlation (Spearman) of the explanations
        of the true class, feature by feature, of the first ``compared`` examples. A map that is constant has no ranks:
        None.
    """
    x = data.model_inputs()
    answers = [training.logits(network, x).cpu() for network in (one, other)]
    found = {
        "examples": len(data),
        "accuracy": [(z.argmax(1) == data.labels).double().mean().item() for z in answers],
        "loss": [cross_entropy(z.double(), data.labels).item() for z in answers],
        "agreement": (answers[0].argmax(1) == answers[1].argmax(1)).double().mean().item(),
    }
    some, suffix = data.take(slice(MAPS)), "" if x.is_floating_point() else "-embedding"
    correlations = {
        name: _alike(*(_explained(network, f"{name}{suffix}", some) for network in (one, other)), some.present())
        for name in ("input-x-gradient", "integrated-gradients")
    }
    return found | {"compared": len(some), "maps": correlations}


def _explained(network: nn.Module, explainer: str, data: LabelledSet) -> Tensor:
    device = next(network.parameters()).device
    x, y = data.model_inputs().to(device), data.labels.to(device)
    return explain(explainer, network, x, y, data.features()).cpu()


def _alike(one: Tensor, other: Tensor, present: Tensor | None) -> float | None:
    """Mean rank correlation of maps [n, F] over the features that are present."""
    present = torch.ones_like(one, dtype=torch.bool) if present is None else present
    pairs = zip(one, other, present, strict=True)
    mean = torch.stack([stats.spearman(a[own], b[own]) for a, b, own in pairs]).mean().item()
    return None if mean != mean else mean


def add(file: Path) -> shipped.Shipped:
    """Put a network of the cache into the folder of those that ship, rounded, with what is known of it.

    Args:
        file: its weights, as `faithstudy.networks.training.weights` names them.

    Raises:
        ValueError: there is no such folder; the file is not whole; nobody knows which code trained it, or that code
            was never committed; or a network of this recipe ships already.
    """
    if (place := shipped.folder()) is None:
        raise ValueError(f"there is no folder of networks that ship: set {shipped.VARIABLE} to one, or unset it")
    if (found := training.kept(Path(file))) is None:
        raise ValueError(f"{file} is not a whole file of weights of the cache with its checksum beside it")
    state, about = found
    recipe = Recipe.read(json.loads(about["recipe"]))
    if not about["commit"] or about["dirty"] != "false":
        why = "differed from its commit" if about["commit"] else "was in no repository"
        raise ValueError(f"{file} cannot ship: the code that trained it {why}. Commit the code and train it again")
    if shipped.find(key := recipe.key()):
        raise ValueError(f"a network of {key} ships already; to replace it, remove its two files first")
    exact = models.build(recipe.model, **recipe.model_options).eval()
    exact.load_state_dict(state)
    weights = shipped.rounded(exact)
    network = copy.deepcopy(exact)
    network.load_state_dict(weights)  # into float32
    facts = {
        "key": key,
        "recipe": dataclasses.asdict(recipe),
        # A start without a checksum is that of the training itself, before any rounding.
        "start": recipe.start and {"key": recipe.start.key(), "sha256": about.get("start") or None},
        **{name: about[name] for name in _ABOUT},
        "seconds": float(about["seconds"]),
        "parameters": sum(p.numel() for p in exact.parameters() if p.requires_grad),  # others do not ship
        "rounding": compare(exact, network, _test_split(recipe)),
        "retrained": [],
        "licence": LICENCE,
    }
    return shipped.write(place, facts, weights)


def retrain(key: str, keep: bool = False) -> dict:
    """Train the network of a recipe that ships anew, and compare it, unrounded, with the one that ships.

    Args:
        key: of the recipe.
        keep: add what comes out to the facts of the network that ships.

    Returns:
        As `compare` (the shipped network is the first), with where and when it was trained.

    Raises:
        ValueError: no network of that key ships.
    """
    if (network := shipped.find(key)) is None:
        raise ValueError(f"no network {key!r} ships; there are {', '.join(one.path.stem for one in shipped.every())}")
    recipe = Recipe.read(network.facts["recipe"])
    cache.remove(file := training.weights(recipe))  # of an earlier call; a training that was killed is resumed
    one, other = training.trained(recipe), training.trained(recipe, ships=False)
    _, about = training.kept(file)
    found = {name: about[name] for name in _ABOUT} | {"seconds": float(about["seconds"])}
    found |= compare(one, other, _test_split(recipe))
    paths.write(paths.build() / "retrained" / f"{key}.json", json.dumps(found, indent=2) + "\n")
    if keep:
        shipped.update(network, retrained=[*network.facts["retrained"], found])
    return found


def _test_split(recipe: Recipe) -> LabelledSet:
    return datasets.load(recipe.data, "test", **recipe.data_options)


def _said(found: dict) -> str:
    """The result of `compare` as a sentence."""
    (first, second), n = found["accuracy"], found["examples"]
    maps = ", ".join(f"{name} {'-' if r is None else f'{r:.3f}'}" for name, r in found["maps"].items())
    return (
        f"accuracy {first:.2%} and {second:.2%} of {n} test examples, loss {found['loss'][0]:.4f} and "
        f"{found['loss'][1]:.4f}; the same class in {found['agreement']:.2%}; mean rank correlation of the maps of "
        f"{found['compared']} examples: {maps}"
    )


def main(arguments: list[str] | None = None) -> int:
    """Command line of `add` and `retrain`."""
    parser = argparse.ArgumentParser(prog="python -m faithstudy.ship", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("add", help="put networks of the cache into data/networks, to be committed")
    command.add_argument("files", nargs="+", type=Path, metavar="FILE")
    command = commands.add_parser("retrain", help="train a network that ships anew, and compare")
    command.add_argument("key", metavar="KEY")
    command.add_argument("--keep", action="store_true", help="add what comes out to the facts of the network")
    options = parser.parse_args(arguments)
    try:
        if options.command == "add":
            for file in tqdm(options.files, disable=len(options.files) == 1):
                network = add(file)
                print(f"{network.path}: {network.facts['bytes'] / 1e6:.2f} MB; unrounded and rounded:")
                print(f"  {_said(network.facts['rounding'])}")
        else:
            with execute.gpu():
                print(f"shipped and anew: {_said(retrain(options.key, options.keep))}")
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
