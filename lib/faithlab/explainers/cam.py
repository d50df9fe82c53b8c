"""Class activation maps: weights on the activations of a convolutional layer, interpolated to the input."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, interpolate

from faithlab.explainers import gradable, layer_of, register
from faithlab.outputs import logit


def enlarge(maps: Tensor, x: Tensor) -> Tensor:
    """A map per image [n, 1, h, w] at the input's size, [n, 1, H, W]."""
    return interpolate(maps, x.shape[-2:], mode="bilinear", align_corners=False)


def output_at(model: nn.Module, name: str, x: Tensor, instead: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Evaluate a model; return the output of a layer, and the logits.

    What goes on from the layer is `instead`, or a copy of its output, which later operations may change in place.

    Raises:
        ValueError: no such layer, or one that does not run exactly once.
    """
    seen = []

    def look(module: nn.Module, args: tuple, output: Tensor) -> Tensor | None:
        seen.append(output)
        return instead if instead is not None else output.clone() if isinstance(output, Tensor) else None

    hook = layer_of(model, name).register_forward_hook(look)
    try:
        logits = model(x.clone())
    finally:
        hook.remove()
    if len(seen) != 1:
        raise ValueError(f"the layer {name!r} runs {len(seen)} times in a forward; pass layer= one that runs once")
    return seen[0], logits


def forward_at(model: nn.Module, name: str, x: Tensor, instead: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """As `output_at`, of a layer whose output is a map of the image, [n, c, h, w].

    Raises:
        ValueError: a layer whose output is no such map.
    """
    activation, logits = output_at(model, name, x, instead)
    shape = getattr(activation, "shape", ())
    # Where channels come last, as in a Swin Transformer, it is the two dimensions before them that are like the image.
    if len(shape) != 4 or len(activation) != len(x) or (not _alike(shape[2:], x) and _alike(shape[1:3], x)):
        raise ValueError(f"layer {name!r} gives {tuple(shape)}, no map [n, c, h, w]; pass layer= its last convolution")
    return activation, logits


def _alike(sides: Sequence[int], x: Tensor) -> bool:
    """Whether a map of these sides is not larger than the images and, up to a cell, of their proportions."""
    height, width = x.shape[-2:]
    inside = sides[0] <= height and sides[1] <= width
    return inside and abs(sides[0] * width - sides[1] * height) <= max(height, width)


@torch.no_grad()
def through(maps: Tensor, model: nn.Module, layer: str, x: Tensor) -> Tensor:
    """Maps of inputs [n, H, W] as a class activation map sees them: means over the layer's grid, interpolated back.

    The most that such a map can reach is how well the true region is found by that.

    Args:
        maps: such as regions.
        model: the network.
        layer: whose activations are weighted.
        x: inputs [n, C, H, W], of which the first is evaluated.

    Raises:
        ValueError: as `forward_at`.
    """
    activation, _ = forward_at(model, layer, x[:1])
    return enlarge(adaptive_avg_pool2d(maps[:, None].double(), activation.shape[2:]), x)[:, 0]


def _gradient_at(model: nn.Module, layer: str, x: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """A layer's activation and the gradient of the target's logit there, each [n, c, h, w]."""
    activation, logits = forward_at(model, layer, gradable(x))
    (gradient,) = torch.autograd.grad(logit(logits, target).sum(), activation)
    return activation.detach(), gradient


@register("gradcam")
def gradcam(model: nn.Module, x: Tensor, target: Tensor, images: Tensor, *, layer: str = "features") -> Tensor:
    """Grad-CAM (Selvaraju et al., 2017): ReLU of the activations weighted by their mean gradients, [n, 1, H, W]."""
    activation, gradient = _gradient_at(model, layer, x, target)
    maps = (gradient.mean((2, 3), keepdim=True) * activation).sum(1, keepdim=True).relu()
    return enlarge(maps, x)


@register("layercam")
def layercam(model: nn.Module, x: Tensor, target: Tensor, images: Tensor, *, layer: str = "features") -> Tensor:
    """LayerCAM (Jiang et al., 2021): ReLU of the channels' sum of ReLU(gradient) x activation, [n, 1, H, W]."""
    activation, gradient = _gradient_at(model, layer, x, target)
    maps = (gradient.relu() * activation).sum(1, keepdim=True).relu()
    return enlarge(maps, x)
