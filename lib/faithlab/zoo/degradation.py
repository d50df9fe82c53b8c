"""Networks and labels made worse by a known amount (ReCo and MeGe, section 4.4).

The paper's third way, less data, is the `limit` of a recipe.
"""

import copy

import torch
from torch import Tensor, nn

from faithlab import draws, masks

_LABELS = 2  # seed of the switched labels


def switched(labels: Tensor, classes: int, share: float) -> Tensor:
    """Labels of which a share is switched to another class, each equally likely.

    Which labels are switched, and to what, depends on the example's position alone: all models of an experiment see the
    same wrong labels, and a larger share contains a smaller one.

    Args:
        labels: [N] int64, of the whole training split.
        classes: number of classes.
        share: probability that a label is switched.

    Raises:
        ValueError: a share outside [0, 1], or a single class.
    """
    if not 0 <= share <= 1 or classes < 2:
        raise ValueError(f"expected a share between 0 and 1 and two classes or more, but got {share} and {classes}")
    both = draws.uniform(_LABELS, torch.arange(len(labels)), torch.arange(2), 1)[..., 0]  # [N, 2]
    step = 1 + (both[:, 1] * (classes - 1)).long()  # 1 .. classes - 1
    return torch.where(both[:, 0] < share, (labels + step) % classes, labels)


def layers(network: nn.Module) -> list[nn.Module]:
    """The layers that have weights of their own, convolutional and linear ones, from input to output."""
    return [module for module in network.modules() if isinstance(module, (nn.Conv2d, nn.Linear))]


def randomised(network: nn.Module, share: float, *, noise: float = 1.0, seed: int = 0) -> nn.Module:
    """A copy of a network with Gaussian noise added to the weights of a share of its layers, from the output down.

    Args:
        network: is not changed.
        share: of the layers, rounded half up; at least one where it is positive.
        noise: standard deviation of the noise, in that of each layer's own weights.
        seed: of the noise. Of two shares the larger adds the same noise to more layers.

    Raises:
        ValueError: a share outside [0, 1].
    """
    if not 0 <= share <= 1:
        raise ValueError(f"expected a share of the layers between 0 and 1, but got {share}")
    network = copy.deepcopy(network)
    downward = layers(network)[::-1]
    number = max(int(masks.counts([share], len(downward))), int(share > 0))
    for index, layer in enumerate(downward[:number]):
        weight = layer.weight.data
        drawn = draws.normal(seed, torch.tensor([index]), torch.tensor([0]), weight.numel()).view(weight.shape)
        weight += noise * weight.std() * drawn.to(weight)
    return network
