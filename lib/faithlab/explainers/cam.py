"""Class activation maps: weights on the activations of a convolutional layer, interpolated to the input."""

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, interpolate

from faithlab.explainers import gradable, register
from faithlab.explainers.gate import check_images


def _layer(model: nn.Module, name: str) -> nn.Module:
    try:
        return model.get_submodule(name)
    except AttributeError:
        known = [n for n, _ in model.named_children()]
        raise ValueError(
            f"the model has no layer {name!r}; pass layer= the name of its last convolutional block "
            f"(its children: {', '.join(known)})"
        ) from None


def _enlarge(maps: Tensor, x: Tensor) -> Tensor:
    """A map per image [n, 1, h, w] at the input's size, [n, 1, H, W]."""
    return interpolate(maps, x.shape[-2:], mode="bilinear", align_corners=False)


def forward_at(model: nn.Module, name: str, x: Tensor, instead: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """A forward, with what a layer puts out [n, c, h, w], and the logits; `instead` goes on in its place.

    What goes on is a copy, so that a layer that works in place afterwards does not change what was seen.

    Raises:
        ValueError: no such layer, or one that runs more than once or whose output is no map of the image.
    """
    check_images(x, "a class activation map")
    seen = []
    place = _layer(model, name)

    def look(module: nn.Module, args: tuple, output: Tensor) -> Tensor | None:
        seen.append(output)
        if instead is not None:
            return instead
        return output.clone() if isinstance(output, Tensor) else None

    hook = place.register_forward_hook(look)
    try:
        logits = model(x)
    finally:
        hook.remove()
    if len(seen) != 1:
        raise ValueError(
            f"the layer {name!r} runs {len(seen)} times in a forward, but has a class activation map only if it runs "
            "once; pass layer= the name of one that does"
        )
    (activation,) = seen
    shape = tuple(activation.shape) if isinstance(activation, Tensor) else type(activation).__name__
    if not isinstance(activation, Tensor) or activation.ndim != 4 or len(activation) != len(x):
        raise ValueError(
            f"the layer {name!r} gives {shape}, no map [n, c, h, w] of the image; pass layer= the name of its last "
            "convolutional block"
        )
    # Where a layer ends in channels, as in a Swin Transformer, its places would be taken for channels.
    widths = {m.normalized_shape[-1] for m in place.modules() if isinstance(m, nn.LayerNorm)}
    last = shape[-1] in widths and shape[1] not in widths
    if last or shape[2] > x.shape[2] or shape[3] > x.shape[3]:
        raise ValueError(
            f"the layer {name!r} gives {shape} for images {tuple(x.shape)}: its channels seem to come last, but a "
            "class activation map needs [n, c, h, w]; pass layer= the name of a layer that gives that"
        )
    return activation, logits


def through(maps: Tensor, model: nn.Module, layer: str, x: Tensor) -> Tensor:
    """Maps of inputs [n, H, W] as a class activation map sees them: means over the layer's grid, interpolated back.

    How well the true region is found by that is the most that such a map can reach.

    Args:
        maps: such as regions.
        model: the network.
        layer: whose activations are weighed.
        x: inputs, of which one is asked, [n, C, H, W].

    Raises:
        ValueError: as `forward_at`.
    """
    with torch.no_grad():
        activation, _ = forward_at(model, layer, x[:1])
    return _enlarge(adaptive_avg_pool2d(maps[:, None].double(), activation.shape[2:]), x)[:, 0]


def _gradient_at(model: nn.Module, layer: str, x: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """A layer's activation and the gradient of the target's logit there, each [n, c, h, w]."""
    with torch.enable_grad():
        # The input asks for gradients, so that a model with frozen weights has a graph too.
        activation, logits = forward_at(model, layer, gradable(x))
        (gradient,) = torch.autograd.grad(logits.gather(1, target[:, None]).sum(), activation)
    return activation.detach(), gradient


@register("gradcam")
def gradcam(model: nn.Module, x: Tensor, target: Tensor, images: Tensor, *, layer: str = "features") -> Tensor:
    """Grad-CAM (Selvaraju et al., 2017): ReLU of the activations weighted by their mean gradients, [n, 1, H, W]."""
    activation, gradient = _gradient_at(model, layer, x, target)
    maps = (gradient.mean((2, 3), keepdim=True) * activation).sum(1, keepdim=True).relu()
    return _enlarge(maps, x)


@register("layercam")
def layercam(model: nn.Module, x: Tensor, target: Tensor, images: Tensor, *, layer: str = "features") -> Tensor:
    """LayerCAM (Jiang et al., 2021): ReLU of the channels' sum of ReLU(gradient) x activation, [n, 1, H, W]."""
    activation, gradient = _gradient_at(model, layer, x, target)
    maps = (gradient.relu() * activation).sum(1, keepdim=True).relu()
    return _enlarge(maps, x)
