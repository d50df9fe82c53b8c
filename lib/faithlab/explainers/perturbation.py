"""Explanations that do not look inside the model."""

import torch
from captum.attr import ShapleyValueSampling
from torch import Tensor, nn

from faithlab import draws, segments
from faithlab.explainers import register


@register("random")
def random(model: nn.Module, x: Tensor, target: Tensor, images: Tensor, *, seed: int = 0) -> Tensor:
    """Uniformly random relevance, the floor every explainer must clear; the same for an image in any batch, [n, *S]."""
    return draws.uniform(seed, images, torch.zeros(1, dtype=torch.int64), x[0].numel()).float().view(x.shape)


@register("shapley-sampling")
@torch.no_grad()
def shapley_sampling(
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    images: Tensor,
    *,
    patch: int = 4,
    samples: int = 8,
    baseline: float = 0.0,
    seed: int = 0,
) -> Tensor:
    """Shapley values of square patches by sampled permutations (Castro, Gomez, Tejada, 2009), [n, *S].

    Each pixel has the value of its patch divided by the number of its elements, so that pooling gives the value back.

    Args:
        model: see `faithlab.explainers`, like the following three.
        x: images [n, C, H, W].
        target: [n].
        images: not needed: all images share the permutations.
        patch: side of the patches, which divides the image's sides.
        samples: permutations.
        baseline: what replaces a patch that is absent.
        seed: of the permutations.
    """
    players = segments.patches(*x.shape[-2:], patch).to(x.device)
    with torch.random.fork_rng(range(torch.cuda.device_count())):  # captum draws from the global generator
        torch.manual_seed(seed)
        values = ShapleyValueSampling(model).attribute(
            x, baseline, target, feature_mask=players[None, None], n_samples=samples
        )
    return values / (patch**2 * x.shape[1])
