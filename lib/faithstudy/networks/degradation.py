"""Networks and labels made worse by a known amount (ReCo and MeGe, section 4.4).

The paper's third way, less data, is the `limit` of a recipe.
"""

import copy

import torch
from torch import Tensor, nn

from faithlab import masks, rng

_LABELS = 2  # seed of the switched labels


def switched(labels: Tensor, classes: int, share: float) -> Tensor:
    """Labels of which a share is switched to another class, each equally likely.

    Which labels are switched, and to what, depends on the example's position alone: all models of an experiment see the
    same wrong labels, and a larger share contains a smaller one.

    Args:
        labels: [N] int64, of the whole training split.
        classes: number of classes.
        share: probability that a label is switched.
    """
    both = rng.uniform(_LABELS, torch.arange(len(labels)), torch.arange(2), 1)[..., 0]  # [N, 2]
    step = 1 + (both[:, 1] * (classes - 1)).long()  # 1 .. classes - 1
    return torch.where(both[:, 0] < share, (labels + step) % classes, labels)


def layers(network: nn.Module) -> list[nn.Module]:
    """The layers that have weights of their own, from input to output: convolutional, linear, recurrent, embeddings."""
    return [module for module in network.modules() if _weights(module)]


def _weights(module: nn.Module) -> list[nn.Parameter]:
    """A layer's matrices; biases, and the factors of a normalisation, are none."""
    return [own for own in module.parameters(recurse=False) if own.ndim > 1 and own.is_floating_point()]


def randomised(network: nn.Module, share: float, *, noise: float = 1.0, keep: bool = True, seed: int = 0) -> nn.Module:
    """A copy of a network with Gaussian noise in the weights of a share of its layers, from the output down.

    Args:
        network: is not changed.
        share: of the layers, rounded half up; at least one where it is positive.
        noise: standard deviation of the noise, in that of each layer's own weights.
        keep: the noise is added to what a layer has learned (ReCo and MeGe, section 4.4); False puts it in its place
            (Adebayo et al., 2018).
        seed: of the noise. Of two shares the larger draws the same noise for more layers.

    Raises:
        ValueError: a share outside [0, 1].
    """
    network = copy.deepcopy(network)
    downward = layers(network)[::-1]
    number = max(int(masks.counts([share], len(downward))), int(share > 0))
    for index, layer in enumerate(downward[:number]):
        for of, weight in enumerate(own.data for own in _weights(layer)):
            drawn = rng.normal(seed, torch.tensor([index]), torch.tensor([of]), weight.numel()).view(weight.shape)
            drawn = noise * weight.std() * drawn.to(weight)
            weight.copy_(weight + drawn if keep else drawn)
    return network
