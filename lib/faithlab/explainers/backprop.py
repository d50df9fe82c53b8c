"""Gradients and relevance that a rule of its own hands backwards at every layer, see `faithlab.explainers.relevance`.

The rules replace PyTorch's functions while the model runs, not its modules: a module that is used twice, a ReLU that is
a function or works in place, hooks and parametrised weights are then what they are in the model's own forward.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from faithlab.explainers import register
from faithlab.explainers.relevance import (
    PASSING,
    Rule,
    Rules,
    contributions,
    elementwise,
    identity,
    mean,
    positive,
    redistribute,
    with_constant,
)

# Deconvolution

_RELU = (functional.relu, torch.relu, torch.relu_, Tensor.relu, Tensor.relu_)


@register("deconvolution")
def deconvolution(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """Deconvolution (Zeiler, Fergus, 2014), signed, [n, *S]: each ReLU keeps the positive part of its gradient instead.

    Other activations keep their gradients.

    Raises:
        ValueError: the model computes no ReLU whose gradient could be replaced.
    """
    rules = Rules(model, dict.fromkeys(_RELU, elementwise(lambda gradient: gradient.clamp(min=0))), passing=None)
    gradient = rules.gradient(model, x, target)
    if not rules.met:
        raise ValueError("deconvolution replaces the gradient of ReLUs, but the model has none (GELU, say, is none)")
    return gradient


# Excitation Backprop

_STABLE = 1e-6  # added to what is divided by, zennit's and so the scale below which nothing excites


def _shared(relevance: Tensor, z: Tensor, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Relevance of a linear output z in proportion to what each input adds to it."""
    return contributions(z, inputs, relevance / (z.detach() + torch.where(z < 0, -_STABLE, _STABLE)))


def _linear(function: Callable, input: Tensor, weight: Tensor, bias: Tensor | None = None, *args, **kwargs) -> Tensor:
    if weight.requires_grad:
        raise ValueError("the model computes a layer's weights from its input; there is no rule for that")
    rule = positive(_shared, function, weight, *args, **kwargs)
    value = redistribute(lambda x: function(x, weight, bias, *args, **kwargs), rule, input)
    # Standardising this very value, before anything works on it in place, is part of the layer.
    value.layer = (value._version, function, input, weight, args, kwargs)
    return value


def _standardised(
    function: Callable, input: Tensor, mean, var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
) -> Tensor:
    """BatchNorm is part of the layer whose output it standardises; elsewhere it scales, and relevance passes."""
    options = (mean, var, weight, bias, training, momentum, eps)
    version, layer, x, kernel, args, kwargs = getattr(input, "layer", (None,) * 6)
    outputs_first = layer in _CONVOLUTIONS or (layer is functional.linear and input.ndim == 2)
    if version != input._version or not outputs_first:
        return identity(function, input, *options)
    scale = (var + eps).rsqrt()
    scale = scale if weight is None else scale * weight
    kernel = kernel * scale.to(kernel).view(-1, *[1] * (kernel.ndim - 1))
    rule = positive(_shared, layer, kernel, *args, **kwargs)
    return redistribute(lambda _: function(input.detach(), *options), rule, x)


def _added(function: Callable, a, b, **kwargs) -> Tensor:
    """A sum of two branches, perhaps in place; each receives the share that it adds."""
    if kwargs or not all(isinstance(value, Tensor) and value.requires_grad for value in (a, b)):
        return with_constant(function, a, b, **kwargs)
    return redistribute(function, lambda relevance, a, b: _shared(relevance, a + b, (a, b)), a, b)


_ADD = (Tensor.add, Tensor.__add__, Tensor.__radd__, torch.add)
_SCALE = (
    *(Tensor.mul, Tensor.__mul__, Tensor.__rmul__, torch.mul, Tensor.div, Tensor.__truediv__, torch.div),
    *(Tensor.sub, Tensor.__sub__, Tensor.__rsub__, torch.sub, Tensor.neg, torch.neg),
)
_ADD_IN_PLACE = (Tensor.add_, Tensor.__iadd__)
_SCALE_IN_PLACE = (
    *(Tensor.mul_, Tensor.__imul__, Tensor.div_, Tensor.__itruediv__, Tensor.sub_, Tensor.__isub__, Tensor.neg_),
)
_CONVOLUTIONS = (functional.conv1d, functional.conv2d, functional.conv3d)
_TRANSPOSED = (functional.conv_transpose1d, functional.conv_transpose2d, functional.conv_transpose3d)
_POOLS = [
    getattr(functional, f"{kind}_pool{dimensions}d") for kind in ("avg", "adaptive_avg") for dimensions in (1, 2, 3)
]
_ACTIVATIONS = [
    *(functional.celu, functional.elu, functional.gelu, functional.hardsigmoid, functional.hardswish),
    *(functional.hardtanh, functional.leaky_relu, functional.logsigmoid, functional.mish, functional.prelu),
    *(functional.relu6, functional.selu, functional.silu, functional.softplus, functional.softsign),
    *(torch.sigmoid, torch.sigmoid_, Tensor.sigmoid, Tensor.sigmoid_, torch.tanh, torch.tanh_, Tensor.tanh),
    *(Tensor.tanh_, functional.sigmoid, functional.tanh, Tensor.clamp, torch.clamp),
]
EXCITATION: dict[Callable, Rule] = {
    **dict.fromkeys([functional.linear, *_CONVOLUTIONS, *_TRANSPOSED], _linear),
    functional.batch_norm: _standardised,
    **dict.fromkeys([*_RELU, *_ACTIVATIONS], identity),
    **dict.fromkeys([*_POOLS, Tensor.mean, torch.mean, Tensor.sum, torch.sum], mean(_shared)),
    **dict.fromkeys([*_ADD, *_ADD_IN_PLACE], _added),
    **dict.fromkeys([*_SCALE, *_SCALE_IN_PLACE], with_constant),
}
"""The rules of Excitation Backprop."""

_MOVING = PASSING | {
    *(Tensor.squeeze, Tensor.unsqueeze, Tensor.unflatten, Tensor.chunk, Tensor.split, Tensor.movedim, Tensor.clone),
    *(Tensor.to, Tensor.float, Tensor.double, Tensor.half, Tensor.expand_as, Tensor.view_as, Tensor.select),
    *(Tensor.flip, functional.alpha_dropout, functional.feature_alpha_dropout),
    *(torch.flatten, torch.reshape, torch.permute, torch.transpose, torch.squeeze, torch.unsqueeze, torch.unflatten),
    *(torch.chunk, torch.split, torch.movedim, torch.stack, torch.concat, torch.clone, torch.select, torch.flip),
    *(functional.pad, functional.pixel_shuffle, functional.channel_shuffle),
    *(functional.dropout1d, functional.dropout2d, functional.dropout3d),
    # The largest of a window has its relevance.
    *(getattr(functional, f"{kind}_pool{d}d") for kind in ("max", "adaptive_max") for d in (1, 2, 3)),
    *(Tensor.amax, torch.amax, torch.max_pool1d, torch.max_pool2d, torch.max_pool3d),
}


@register("excitation-backprop")
def excitation_backprop(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """Excitation Backprop (Zhang, Bargal, Lin, Brandt, Shen, Sclaroff, 2018) down to the input, signed, [n, *S].

    Each neuron passes its relevance to the neurons that excite it, in proportion to activation times positive weight;
    biases take none. BatchNorm is part of the convolution or the linear layer before it; one that follows another layer
    only scales. What arrives at the input adds up to about one: the relevance of a neuron that no input excites (its
    bias alone did) is lost. In a plain network that makes the sum less than one. Where branches of opposite sign are
    added, as at the skip connections of a ResNet, shares are signed, and where negative relevance is lost the sum is
    more than one (1.006 was seen on a ResNet-18).

    Raises:
        ValueError: the model computes something that has no rule, such as a gate.
    """
    return Rules(model, EXCITATION, _MOVING).gradient(model, x, target)
