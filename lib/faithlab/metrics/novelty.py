"""How unlike the training data an input looks to a model: what a perturbation that is out of distribution gives away.

The measure is the distance to the k-th nearest training example among the model's own normalised features (Sun, Ming,
Zhu, Li: "Out-of-Distribution Detection with Deep Nearest Neighbors", ICML 2022). How well it tells perturbed inputs
from clean ones, says `faithlab.stats.told_apart`.
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize


def distance(features: Tensor, known: Tensor, neighbours: int = 10) -> Tensor:
    """Return the distance of each input to its k-th nearest known one, between their features of length one.

    Args:
        features: [B, D], of the inputs.
        known: [R, D], of training examples.
        neighbours: k.

    Returns:
        [B], between 0 and 2, never NaN; an input whose features are all zero is 1 from every other.

    Raises:
        ValueError: features that are NaN or infinite.
    """
    apart = torch.cdist(normalize(features.float()), normalize(known.float()))
    return apart.kthvalue(neighbours, dim=1).values
