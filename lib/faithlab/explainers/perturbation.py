"""Explanations that do not look inside the model."""

import torch
from captum.attr import ShapleyValueSampling
from torch import Tensor, nn

from faithlab import engine, masks, outputs, rng, validation
from faithlab import segments as segment_maps
from faithlab.explainers import register


@register("random")
def random(model: nn.Module, x: Tensor, target: Tensor, images: Tensor, *, seed: int = 0) -> Tensor:
    """Uniformly random relevance, the floor every explainer must clear; the same for an image in any batch, [n, *S]."""
    return rng.uniform(seed, images, torch.zeros(1, dtype=torch.int64), x[0].numel()).float().view(x.shape)


@register("rise")
def rise(
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    images: Tensor,
    *,
    samples: int = 400,
    cells: int = 7,
    keep: float = 0.5,
    precision: torch.dtype = torch.float32,
    seed: int = 0,
) -> Tensor:
    """RISE (Petsiuk, Das, Saenko, 2018): the mean probability over random masks that keep a pixel, [n, 1, H, W].

    A mask is a grid of `cells` x `cells` squares, each kept with probability `keep`, shifted by less than a square.
    Here a pixel is kept or removed, as by the engine; the original fades the squares into each other.

    """
    _, _, height, width = x.shape
    validation.whole("samples", samples, 1)
    score = engine.scorer(
        model,
        x,
        target,
        segments=segment_maps.pixels(height, width),
        output=outputs.probability,
        precision=x.dtype if x.dtype == torch.float64 else precision,
    )
    total = torch.zeros(len(x), height * width, dtype=torch.float64, device=x.device)
    times = torch.zeros_like(total)
    for draw in torch.arange(samples, device=x.device).split(max(1, masks.BUDGET // x[:, 0].numel())):
        kept = _grids(seed, images, draw, cells, (height, width)) < keep  # [n, N, H * W]
        total += torch.einsum("nm,nmp->np", score(kept).double(), kept.double())
        times += kept.sum(1)
    return (total / times.clamp(min=1)).float().view(-1, 1, height, width)


def _grids(seed: int, images: Tensor, draw: Tensor, cells: int, shape: tuple[int, int]) -> Tensor:
    """A uniform number per square of a randomly shifted grid, spread over the pixels: [n, N, H * W]."""
    squares = rng.uniform(seed, images, draw, (cells + 1) ** 2 + 2)  # the last two shift
    places = []
    for side, shift in zip(shape, squares[..., -2:].unbind(-1), strict=True):
        size = -(-side // cells)
        start = (shift * size).long()[..., None]  # [n, N, 1]
        places.append((start + torch.arange(side, device=draw.device)) // size)  # [n, N, side] of 0..cells
    square = places[0][..., :, None] * (cells + 1) + places[1][..., None, :]  # [n, N, H, W]
    return squares.gather(-1, square.flatten(-2))


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
    _, _, height, width = x.shape
    players = segment_maps.patches(height, width, patch).to(x.device)
    # The model gets copies, as it may work on its inputs in place; captum would draw from the global generator.
    sampling, generator = ShapleyValueSampling(lambda x: model(x.clone())), torch.Generator().manual_seed(seed)
    sampling.permutation_generator = lambda players, samples: (
        torch.randperm(players, generator=generator).tolist() for _ in range(samples)
    )
    values = sampling.attribute(x, baseline, target, feature_mask=players[None, None], n_samples=samples)
    return values / (patch**2 * x.shape[1])
