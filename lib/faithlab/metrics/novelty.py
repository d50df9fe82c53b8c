"""How unlike the training data an input looks to a model: what a perturbation that is out of distribution gives away.

The measure is the distance to the k-th nearest training example among the model's own normalised features (Sun, Ming,
Zhu, Li: "Out-of-Distribution Detection with Deep Nearest Neighbors", ICML 2022). `detectability` makes of it how well
perturbed inputs can be told from clean ones.
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from faithlab import arguments, stats


def distance(features: Tensor, known: Tensor, neighbours: int = 10) -> Tensor:
    """The distance of each input to its k-th nearest known one, between their features of length one.

    Args:
        features: [B, D], of the inputs.
        known: [R, D], of training examples.
        neighbours: k.

    Returns:
        [B], between 0 and 2, never NaN; an input whose features are all zero is 1 from every other.

    Raises:
        ValueError: features of two widths, NaN or infinite; fewer known examples than neighbours.
    """
    if features.ndim != 2 or known.ndim != 2 or features.shape[1] != known.shape[1]:
        raise ValueError(
            f"expected features [inputs, D] and [known, D], but got {tuple(features.shape)} and {tuple(known.shape)}"
        )
    for name, values in (("features", features), ("known features", known)):
        arguments.finite(name, values, "drop and count these images")
    arguments.whole("neighbours, of the known examples,", neighbours, 1, len(known))
    apart = torch.cdist(normalize(features.float()), normalize(known.float()))
    return apart.kthvalue(neighbours, dim=1).values


def detectability(clean: Tensor, perturbed: Tensor) -> float:
    """The chance that a perturbed input is farther from the training data than a clean one (the AUROC).

    Args:
        clean: [A] distances.
        perturbed: [B] distances.

    Returns:
        1: always farther; 0.5: they cannot be told apart; below: the perturbed ones look more familiar.

    Raises:
        ValueError: no distances, or one that is NaN or infinite.
    """
    for name, values in (("distance", clean), ("perturbed distance", perturbed)):
        if values.ndim != 1 or not len(values):
            raise ValueError(f"expected distances of one input or more, [n], but got shape {tuple(values.shape)}")
        arguments.finite(name, values, "drop and count these images")
    ranks = stats.rank(torch.cat([clean, perturbed]))[len(clean) :]
    number = len(perturbed)
    return ((ranks.sum() - number * (number + 1) / 2) / (number * len(clean))).item()
