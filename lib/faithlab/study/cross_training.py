"""k-fold cross-training (ReCo and MeGe, section 3.3 and algorithm 1): where folds, explainers and distances meet."""

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor, nn

from faithlab import segments as segment_maps
from faithlab.explainers import explain
from faithlab.metrics import consistency
from faithlab.metrics.distance import Distance, spearman
from faithlab.zoo import degradation, training
from faithlab.zoo.sets import LabelledSet
from faithlab.zoo.training import Recipe

Explain = Callable[[nn.Module, Tensor, Tensor, Tensor], Tensor]
"""(network, inputs [n, C, H, W], targets [n], identities [n], number of the network) -> relevance [n, H * W]."""


class Family(NamedTuple):
    """The networks of a cross-training.

    Attributes:
        recipes: k, each leaves out another block.
        networks: k.
        accuracies: k, on examples that none of them was trained on.
    """

    recipes: list[Recipe]
    networks: list[nn.Module]
    accuracies: list[float]


def folds(recipe: Recipe, k: int) -> list[Recipe]:
    """The k recipes of a cross-training: recipe i leaves out block i, and starts from weights of its own."""
    return [dataclasses.replace(recipe, fold=(i, k), seed=recipe.seed + i) for i in range(k)]


def train(recipe: Recipe, k: int, test: LabelledSet, *, tolerance: float, attempts: int = 3) -> Family:
    """Train the folds until they are comparable: one whose accuracy is too far from their median starts anew.

    Args:
        recipe: without a fold.
        k: number of folds.
        test: examples that no fold is trained on.
        tolerance: largest distance of a test accuracy from the median of all.
        attempts: how often a fold is trained at most, each time from other weights.

    Raises:
        RuntimeError: some folds are still too far from the others.
    """
    recipes = folds(recipe, k)
    networks = [training.trained(fold) for fold in recipes]
    accuracies = [training.accuracy(network, test) for network in networks]
    for attempt in range(1, attempts + 1):
        middle = statistics.median(accuracies)
        outside = [i for i, accuracy in enumerate(accuracies) if abs(accuracy - middle) > tolerance]
        if not outside:
            return Family(recipes, networks, accuracies)
        if attempt < attempts:
            for i in outside:
                recipes[i] = dataclasses.replace(recipes[i], seed=recipes[i].seed + k)
                networks[i] = training.trained(recipes[i])
                accuracies[i] = training.accuracy(networks[i], test)
    raise RuntimeError(
        f"the {k} folds of {recipe.data}, {recipe.model} are not comparable after {attempts} attempts: accuracies "
        f"{', '.join(f'{a:.1%}' for a in accuracies)}, allowed {tolerance:.1%} around their median; "
        "train longer or on more examples, or raise the tolerance"
    )


def randomised(family: Family, share: float, noise: float, test: LabelledSet) -> Family:
    """The same networks with noise in a share of their layers, see `faithlab.zoo.degradation.randomised`."""
    networks = [
        degradation.randomised(network, share, noise=noise, seed=number)
        for number, network in enumerate(family.networks)
    ]
    return Family(family.recipes, networks, [training.accuracy(network, test) for network in networks])


def unseen(recipes: Sequence[Recipe], examples: Tensor, count: int) -> Tensor:
    """The one network that was not trained on each example, int64 [B].

    Asked of what each recipe sees, not of how the folds were made.

    Args:
        recipes: of the k networks.
        examples: [B] positions in the training split.
        count: examples in the training split.

    Raises:
        ValueError: an example that more or fewer than one network was not trained on.
    """
    trained_on = torch.stack([torch.isin(examples, training.seen(recipe, count)) for recipe in recipes])  # [k, B]
    wrong = (~trained_on).sum(0) != 1
    if bool(wrong.any()):
        raise ValueError(
            f"{int(wrong.sum())} of {len(examples)} examples are not left out by exactly one of the {len(recipes)} "
            f"folds (first: {int(examples[wrong][0])}); explain examples within the limit that all folds share"
        )
    return (~trained_on).long().argmax(0)


class Compared(NamedTuple):
    """What `compare` finds.

    Attributes:
        splits: S= and S!= by explainer.
        unseen_accuracy: share of right predictions of each example's unseen network.
    """

    splits: dict[str, consistency.Split]
    unseen_accuracy: float


def compare(
    family: Family,
    data: LabelledSet,
    examples: Tensor,
    explainers: Mapping[str, Explain],
    *,
    distance: Distance = spearman,
    rows: int = 500,
) -> Compared:
    """S= and S!= of every explainer (algorithm 1). Each network explains the class that it predicts itself.

    Args:
        family: the networks.
        data: the training split, with the right labels.
        examples: [B] positions in it.
        explainers: by name, see `explainers`.
        distance: between two explanations.
        rows: examples at a time; one map of each from each network is held.
    """
    own = unseen(family.recipes, examples, len(data))
    for network in family.networks:
        network.to(memory_format=torch.channels_last)
    device = next(family.networks[0].parameters()).device
    right, found = [], {name: [] for name in explainers}
    for part in torch.arange(len(examples)).split(rows):
        x, y = data.model_inputs(examples[part]).to(device), data.labels[examples[part]].to(device)
        predicted = [training.logits(network, x).argmax(1) for network in family.networks]
        right.append(torch.stack([classes == y for classes in predicted], 1).cpu())  # [b, k]
        for name, explain_with in explainers.items():
            maps = torch.stack(
                [
                    explain_with(network, x, predicted[number], examples[part].to(device), number)
                    for number, network in enumerate(family.networks)
                ]
            ).unflatten(-1, x.shape[-2:])  # [k, b, H, W]
            found[name].append(consistency.to_unseen(maps, own[part], distance).cpu())
    right = torch.cat(right)
    splits = {name: consistency.split(torch.cat(parts), right, own) for name, parts in found.items()}
    return Compared(splits, right.gather(1, own[:, None]).double().mean().item())


def explainers(
    names: Sequence[str],
    shape: Sequence[int],
    *,
    steps: int,
    samples: int,
    patch: int = 4,
    permutations: int = 1,
    signed: bool = False,
    seed: int = 0,
) -> dict[str, Explain]:
    """The explainers of the paper (section 4.1), by its abbreviations, and "Random" as their floor.

    Args:
        names: which.
        shape: of one input, [C, H, W].
        steps: points on the path of Integrated Gradients; the paper has 60.
        samples: noisy copies in SmoothGrad; the paper has 60.
        patch: side of the patches of SHAP.
        permutations: of SHAP.
        signed: keep the sign of the relevance; else its absolute value says how much a pixel matters, either way.
        seed: of what is drawn.
    """
    pixels = segment_maps.pixels(*shape[-2:])
    options = {
        "Saliency": ("saliency", {}),
        "GradientxInput": ("input-x-gradient", {}),
        "IG": ("integrated-gradients", {"steps": steps, "rule": "riemann_trapezoid"}),
        "SG": ("smoothgrad", {"samples": samples, "noise": 0.2, "seed": seed}),
        "GradCAM": ("gradcam", {}),
        "SHAP": ("shapley-sampling", {"patch": patch, "samples": permutations, "seed": seed}),
        "Random": ("random", {"seed": seed}),
    }

    def named(name: str) -> Explain:
        key, chosen = options[name]

        def explain_with(network: nn.Module, x: Tensor, target: Tensor, images: Tensor, number: int) -> Tensor:
            # The same random maps for all networks would be perfectly consistent.
            own = {"seed": seed + number} if key == "random" else {}
            relevance = explain(key, network, x, target, pixels, images=images, **chosen | own)
            return relevance if signed else relevance.abs()

        return explain_with

    return {name: named(name) for name in names}


def scores(splits: Mapping[str, consistency.Split]) -> pd.DataFrame:
    """MeGe and ReCo of every explainer.

    Returns:
        Tidy: explainer, MeGe, ReCo, ReCo_printed, ReCo_AUC, same and different (their sizes), missing (pairs without a
        distance).
    """
    rows = [
        (
            name,
            consistency.mege(of.same) if len(of.same) else float("nan"),
            consistency.reco(of.same, of.different),
            consistency.reco(of.same, of.different, "printed"),
            consistency.reco_auc(of.same, of.different),
            len(of.same),
            len(of.different),
            of.missing,
        )
        for name, of in splits.items()
    ]
    return pd.DataFrame(
        rows, columns=["explainer", "MeGe", "ReCo", "ReCo_printed", "ReCo_AUC", "same", "different", "missing"]
    )


def histograms(splits: Mapping[str, consistency.Split], bins: int = 40) -> pd.DataFrame:
    """How the distances of S= and S!= are spread over [0, 1]: explainer, set, distance (bin centre), share."""
    rows = []
    for name, of in splits.items():
        for which, values in (("S=", of.same), ("S≠", of.different)):
            counts = torch.histc(values, bins, 0, 1)
            centres = (torch.arange(bins) + 0.5) / bins
            rows.extend(
                (name, which, *point)
                for point in zip(centres.tolist(), (counts / max(len(values), 1)).tolist(), strict=True)
            )
    return pd.DataFrame(rows, columns=["explainer", "set", "distance", "share"])
