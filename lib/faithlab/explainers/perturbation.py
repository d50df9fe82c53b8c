"""Explanations that do not look inside the model."""

import torch
from torch import Tensor, nn

from faithlab import draws
from faithlab.explainers import register


@register("random")
def random(model: nn.Module, x: Tensor, target: Tensor, images: Tensor, *, seed: int = 0) -> Tensor:
    """Uniformly random relevance, the floor every explainer must clear; the same for an image in any batch, [n, *S]."""
    return draws.uniform(seed, images, torch.zeros(1, dtype=torch.int64), x[0].numel()).float().view(x.shape)
