"""How unlike the training data an input looks to a model: what a perturbation that is out of distribution gives away.

The measure is the distance to the k-th nearest training example among the model's own normalised features (Sun, Ming,
Zhu, Li: "Out-of-Distribution Detection with Deep Nearest Neighbors", ICML 2022). `detectability` makes of it how well
perturbed inputs can be told from clean ones.
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from faithlab import stats


def distance(features: Tensor, known: Tensor, neighbours: int = 10) -> Tensor:
    """The distance of each input to its k-th nearest known one, between their features of length one.

    Args:
        features: [B, D], of the inputs.
        known: [R, D], of training examples.
        neighbours: k.

    Returns:
        [B], between 0 and 2.

    Raises:
        ValueError: fewer known examples than neighbours.
    """
    if not 1 <= neighbours <= len(known):
        raise ValueError(f"expected between 1 and {len(known)} neighbours, the known examples, but got {neighbours}")
    apart = torch.cdist(normalize(features.float()), normalize(known.float()))
    return apart.kthvalue(neighbours, dim=1).values


def detectability(clean: Tensor, perturbed: Tensor) -> float:
    """The chance that a perturbed input is farther from the training data than a clean one (the AUROC).

    Args:
        clean: [A] distances.
        perturbed: [B] distances.

    Returns:
        1: always farther; 0.5: they cannot be told apart; below: the perturbed ones look more familiar.
    """
    ranks = stats.rank(torch.cat([clean, perturbed]))[len(clean) :]
    number = len(perturbed)
    return ((ranks.sum() - number * (number + 1) / 2) / (number * len(clean))).item()
