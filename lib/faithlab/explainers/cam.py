"""Class activation maps: weights on the activations of a convolutional layer, interpolated to the input."""

import torch
from captum.attr import LayerGradCam
from torch import Tensor, nn
from torch.nn.functional import interpolate

from faithlab.explainers import register


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


@register("gradcam")
def gradcam(model: nn.Module, x: Tensor, target: Tensor, images: Tensor, *, layer: str = "features") -> Tensor:
    """Grad-CAM (Selvaraju et al., 2017): ReLU of the activations weighted by their mean gradients, [n, 1, H, W]."""
    maps = LayerGradCam(model, _layer(model, layer)).attribute(x, target, relu_attributions=True)
    return _enlarge(maps, x)


@register("layercam")
def layercam(model: nn.Module, x: Tensor, target: Tensor, images: Tensor, *, layer: str = "features") -> Tensor:
    """LayerCAM (Jiang et al., 2021): ReLU of the channels' sum of ReLU(gradient) x activation, [n, 1, H, W]."""
    seen = []
    hook = _layer(model, layer).register_forward_hook(lambda module, args, output: seen.append(output))
    try:
        with torch.enable_grad():
            # The input asks for gradients, so that a model with frozen weights has a graph too.
            logits = model(x.detach().clone().requires_grad_()).gather(1, target[:, None])
            (activation,) = seen
            (gradient,) = torch.autograd.grad(logits.sum(), activation)
    finally:
        hook.remove()
    maps = (gradient.relu() * activation).sum(1, keepdim=True).relu()
    return _enlarge(maps.detach(), x)
