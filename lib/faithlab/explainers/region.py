"""Regions that are optimised for each image: the region that suffices, and an information bottleneck."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, interpolate

from faithlab import baselines, rng, validation
from faithlab.explainers import register
from faithlab.explainers.cam import enlarge, forward_at
from faithlab.outputs import logit


@register("extremal-perturbation")
def extremal_perturbation(
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    images: Tensor,
    *,
    areas: Sequence[float] = (0.05, 0.1, 0.2, 0.4, 0.6),
    steps: int = 40,
    cells: int = 7,
    rate: float = 0.1,
    weights: tuple[float, float] = (0.1, 10.0),
) -> Tensor:
    """Extremal perturbations (Fong, Patrick, Vedaldi, 2019): the smooth region of each area that suffices best.

    For each area a mask is sought under which the image keeps the highest logit, the rest of it blurred: gradient
    ascent on the logit minus the distance of the sorted mask from an ideal one of that area, whose weight grows from
    step to step. The masks of all areas are added, so that a pixel that is in the small ones comes first.

    Args:
        model: the network.
        x: images [n, C, H, W].
        target: [n] the class.
        images: not used; nothing is random.
        areas: fractions of the image.
        steps: of the ascent; the authors take 800.
        cells: the mask is the smooth maximum of `cells` x `cells` round bumps.
        rate: how far the largest change of a bump moves in a step.
        weights: of the area at the first and at the last step, where 1 makes it as strong as the logit.

    Returns:
        [n, 1, H, W], between 0 and the number of areas.
    """
    validation.whole("steps", steps, 1)
    areas = [validation.share("areas", area) for area in areas]
    n, a = len(x), len(areas)
    hidden = baselines.blur(x, 0.1 * min(x.shape[-2:])).repeat_interleave(a, 0)
    shown, classes = x.repeat_interleave(a, 0), target.repeat_interleave(a)
    bumps = _bumps(cells, x)  # [V, P]
    points = bumps.shape[1]
    # The ideal sorted mask of an area: nothing, then everything.
    ideal = torch.stack([(torch.arange(points) >= (1 - area) * points).to(x) for area in areas]).repeat(n, 1)
    height = torch.full((n * a, cells**2), 0.5, dtype=x.dtype, device=x.device)
    speed = torch.zeros_like(height)
    for weight in torch.logspace(*(math.log10(w) for w in weights), steps).tolist():
        height = height.detach().requires_grad_()
        mask = _smooth_maximum(height, bumps)  # [n * a, P]
        spread = _at_size(mask, cells, x)
        found = logit(model(spread * shown + (1 - spread) * hidden), classes).sum()
        miss = ((mask.sort(1).values - ideal.to(mask)) ** 2).mean(1).sum()
        toward, away = (torch.autograd.grad(v, height, retain_graph=v is found)[0] for v in (found, miss))
        # Each of unit size, so that neither the scale of the logits nor that of the area decides.
        speed = 0.9 * speed + _unit(toward) - weight * _unit(away)
        height = (height + rate * _unit(speed)).clamp(0, 1)
    masks = _at_size(_smooth_maximum(height.detach(), bumps), cells, x)
    return masks.view(n, a, 1, *x.shape[-2:]).sum(1)


def _bumps(cells: int, x: Tensor) -> Tensor:
    """A round bump around each cell, [cells^2, P], on P points, four to a cell but no finer than the pixels."""
    rows, columns = _points(cells, x)
    centre = (torch.arange(cells, dtype=x.dtype, device=x.device) + 0.5) / cells
    squared = [
        (centre[:, None] - (torch.arange(side, dtype=x.dtype, device=x.device) + 0.5) / side) ** 2
        for side in (rows, columns)
    ]  # [cells, rows], [cells, columns]
    distance = squared[0][:, None, :, None] + squared[1][None, :, None, :]  # [cells, cells, rows, columns]
    return (-distance * cells**2).exp().flatten(2).flatten(0, 1)


def _smooth_maximum(height: Tensor, bumps: Tensor, sharpness: float = 20.0) -> Tensor:
    """Over bumps of a height [m, V] the smooth maximum at each point, [m, P]."""
    values = height[:, :, None] * bumps  # [m, V, P]
    return ((sharpness * values).softmax(1) * values).sum(1)


def _points(cells: int, x: Tensor) -> list[int]:
    """The numbers of points of the mask down and across."""
    return [min(4 * cells, side) for side in x.shape[-2:]]


def _at_size(mask: Tensor, cells: int, x: Tensor) -> Tensor:
    grid = mask.view(len(mask), 1, *_points(cells, x))
    return interpolate(grid, x.shape[-2:], mode="bilinear", align_corners=False)


def _unit(change: Tensor) -> Tensor:
    """Each row scaled to a largest entry of 1; a row of zeros stays."""
    return change / change.abs().amax(1, keepdim=True).clamp(min=torch.finfo(change.dtype).tiny)


@register("iba")
def iba(
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    images: Tensor,
    *,
    layer: str = "features",
    examples: Tensor | None = None,
    weight: float = 10.0,
    steps: int = 10,
    samples: int = 10,
    rate: float = 1.0,
    seed: int = 0,
) -> Tensor:
    """Information bottleneck attribution (Schulz, Sixt, Tombari, Landgraf, 2020), per sample: [n, 1, H, W] in bits.

    Noise is mixed into the activations of a layer, as much at each place as leaves the class recognised: Adam minimises
    the cross-entropy plus `weight` times the information that still gets by. What gets by is the relevance.

    Args:
        model: the network.
        x: images [n, C, H, W].
        target: [n] the class.
        images: [n] identities, of the noise.
        layer: whose output is the bottleneck.
        examples: images [m, C, H, W] whose activations say what the noise of each channel and place is like; None:
            each image's own activations, per channel.
        weight: of the information (the paper's beta).
        steps: of Adam; the authors take 10.
        samples: noises per image and step; the authors take 10.
        rate: learning rate.
        seed: of the noise.
    """
    clean = _activation(model, layer, x)  # [n, c, h, w]
    if examples is None:
        mean, std = clean.mean((2, 3), keepdim=True), clean.std((2, 3), keepdim=True)
    else:
        seen = torch.cat([_activation(model, layer, part) for part in examples.split(max(1, len(x)))])
        mean, std = seen.mean(0, keepdim=True), seen.std(0, keepdim=True)
    std = std.nan_to_num(0.0).clamp(min=0.01)  # a channel without variation, or of one place
    openness = torch.full_like(clean, 5.0)  # before the sigmoid: at first nearly everything gets by
    optimiser = torch.optim.Adam([openness], lr=rate)
    validation.whole("steps", steps, 1)
    for step in range(steps):
        noise = rng.normal(seed, images, step * samples + torch.arange(samples), clean[0].numel())
        noise = noise.view(len(x), samples, *clean.shape[1:]).to(clean)
        openness.requires_grad_()
        share = _blurred(openness.sigmoid())
        mixed = share[:, None] * clean[:, None] + (1 - share[:, None]) * (mean[:, None] + std[:, None] * noise)
        _, logits = forward_at(model, layer, x, instead=mixed.flatten(0, 1))  # [n * samples, classes]
        if not logits.requires_grad:  # the information alone has a gradient, too
            raise ValueError(f"no gradient of the logits reaches the layer {layer!r}: the model detaches them")
        wrong = cross_entropy(logits, target.repeat_interleave(samples), reduction="none").view(len(x), samples)
        cost = wrong.mean(1) + weight * _information(share, clean, mean, std).flatten(1).mean(1)
        (openness.grad,) = torch.autograd.grad(cost.sum(), openness)
        optimiser.step()
    nats = _information(_blurred(openness.detach().sigmoid()), clean, mean, std).sum(1, keepdim=True)
    return enlarge(nats / math.log(2), x)


@torch.no_grad()
def _activation(model: nn.Module, layer: str, x: Tensor) -> Tensor:
    """The output of a layer."""
    return forward_at(model, layer, x)[0]


def _blurred(share: Tensor) -> Tensor:
    """Neighbouring places share what they let by, so that no grid shows."""
    return baselines.blur(share, 1.0) if min(share.shape[-2:]) > 1 else share


def _information(share: Tensor, clean: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """What gets by at each element, in nats: the divergence of the mixture from the noise alone (their eq. 6)."""
    centre, variance = share * (clean - mean) / std, (1 - share) ** 2
    return 0.5 * (centre**2 + variance - 1 - variance.clamp(min=1e-12).log())
