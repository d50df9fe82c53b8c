"""Gradients and relevance that a rule of its own hands backwards at every layer, see `faithlab.explainers.relevance`.

The rules replace PyTorch's functions while the model runs, not its modules: a module that is used twice, a ReLU that is
a function or works in place, hooks and parametrised weights are then what they are in the model's own forward.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from faithlab.explainers import gradable, register
from faithlab.explainers.relevance import PASSING, Rule, Rules, elementwise, identity, propagating, redistribute

# Deconvolution

_RELU = (functional.relu, torch.relu, torch.relu_, Tensor.relu, Tensor.relu_)


@register("deconvolution")
def deconvolution(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """Deconvolution (Zeiler, Fergus, 2014), signed, [n, *S]: each ReLU keeps the positive part of its gradient instead.

    Other activations keep their gradients.

    Raises:
        ValueError: the model computes no ReLU whose gradient could be replaced.
    """
    inputs = gradable(x)
    rules = dict.fromkeys(_RELU, elementwise(lambda gradient: gradient.clamp(min=0)))
    with torch.enable_grad():
        with Rules(model, rules, passing=None) as active:
            logits = model(inputs)
        if not active.met:
            raise ValueError(
                "deconvolution replaces the gradient of ReLUs, but the model has none (others, such as ReLU6 or GELU, "
                "are no ReLU); without them it would be the plain gradient"
            )
        return torch.autograd.grad(logits.gather(1, target[:, None]).sum(), inputs)[0]


# Excitation Backprop

_STABLE = 1e-6  # added to what is divided by, zennit's and so the scale below which nothing excites


def _shared(relevance: Tensor, z: Tensor, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Relevance of a linear output z in proportion to what each input adds to it."""
    slopes = torch.autograd.grad(z, inputs, relevance / (z.detach() + torch.where(z < 0, -_STABLE, _STABLE)))
    return tuple(x.detach() * slope for x, slope in zip(inputs, slopes, strict=True))


def _excited(function: Callable, weight: Tensor, *args, **kwargs) -> Callable[..., tuple[Tensor]]:
    """Relevance in proportion to activation times weight where that is positive; biases take none."""

    def rule(relevance: Tensor, x: Tensor) -> tuple[Tensor]:
        up = function(x.clamp(min=0), weight.clamp(min=0), None, *args, **kwargs)
        down = function(x.clamp(max=0), weight.clamp(max=0), None, *args, **kwargs)
        return _shared(relevance, up + down, (x,))

    return rule


def _linear(function: Callable, input: Tensor, weight: Tensor, bias: Tensor | None = None, *args, **kwargs) -> Tensor:
    if weight.requires_grad:
        raise ValueError("the model computes a layer's weights from its input; there is no rule for that")
    value = redistribute(
        function(input, weight, bias, *args, **kwargs), _excited(function, weight, *args, **kwargs), input
    )
    # Standardising this very value, before anything works on it in place, is part of the layer.
    value.layer = (value._version, function, input, weight, args, kwargs)
    return value


def _standardised(
    function: Callable,
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """BatchNorm is part of the layer whose output it standardises; elsewhere it scales, and relevance passes."""
    options = (running_mean, running_var, weight, bias, training, momentum, eps)
    if training:
        raise ValueError("a BatchNorm without running statistics mixes the inputs of a batch; there is no rule for it")
    version, layer, x, kernel, args, kwargs = getattr(input, "layer", (None,) * 6)
    outputs_first = layer in _CONVOLUTIONS or (layer is functional.linear and input.ndim == 2)
    if version != input._version or not outputs_first:
        return identity(function, input, *options)
    scale = (running_var + eps).rsqrt()
    scale = scale if weight is None else scale * weight
    kernel = kernel * scale.to(kernel).view(-1, *[1] * (kernel.ndim - 1))
    return redistribute(function(input, *options), _excited(layer, kernel, *args, **kwargs), x)


def _mean(function: Callable, input: Tensor, *args, **kwargs) -> Tensor:
    """Each value's part of the mean, or of the sum."""
    return redistribute(
        function(input, *args, **kwargs),
        lambda relevance, x: _shared(relevance, function(x, *args, **kwargs), (x,)),
        input,
    )


def _moving(*values) -> list[bool]:
    return [isinstance(value, Tensor) and value.requires_grad for value in values]


class _Sum(torch.autograd.Function):
    """The sum of two branches, perhaps in place of the first; each receives the share that it adds."""

    @staticmethod
    def forward(ctx, a: Tensor, b: Tensor, function: Callable) -> Tensor:
        before = a.clone()
        value = function(a, b)
        if value is a:
            ctx.mark_dirty(a)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(before, b)
        return value

    @staticmethod
    def backward(ctx, relevance: Tensor | None):
        if relevance is None:
            return None, None, None
        with torch.enable_grad():
            a, b = (x.detach().requires_grad_() for x in ctx.saved_tensors)
            return *_shared(relevance, a + b, (a, b)), None


def _added(function: Callable, a, b, **kwargs) -> Tensor:
    """A sum of two branches; one with a constant hands all to the one input that has relevance."""
    if kwargs or not all(_moving(a, b)):
        return _with_constant(function, a, b, **kwargs)
    return _Sum.apply(a, b, function)


def _with_constant(function: Callable, a, b=None, **kwargs) -> Tensor:
    """A sum with, or a product by, a constant: one input has all of the relevance."""
    others = (b,) if b is not None else ()
    moving = _moving(a, *others)
    name = getattr(function, "__name__", str(function))
    if all(moving) and others:
        raise ValueError(f"the model computes {name!r} of two activations (a gate?); there is no rule for it")
    if moving[0]:
        return identity(lambda a: function(a, *others, **kwargs), a)
    if any(moving) and function in _IN_PLACE:
        raise ValueError(f"the model computes {name!r} in place of a constant; there is no rule for it")
    if any(moving):
        return identity(lambda b: function(a, b, **kwargs), b)
    return function(a, *others, **kwargs)


_ADD = (Tensor.add, Tensor.__add__, Tensor.__radd__, torch.add)
_SCALE = (
    *(Tensor.mul, Tensor.__mul__, Tensor.__rmul__, torch.mul, Tensor.div, Tensor.__truediv__, torch.div),
    *(Tensor.sub, Tensor.__sub__, Tensor.__rsub__, torch.sub, Tensor.neg, torch.neg),
)
_ADD_IN_PLACE = (Tensor.add_, Tensor.__iadd__)
_SCALE_IN_PLACE = (
    *(Tensor.mul_, Tensor.__imul__, Tensor.div_, Tensor.__itruediv__, Tensor.sub_, Tensor.__isub__, Tensor.neg_),
)
_IN_PLACE = {*_ADD_IN_PLACE, *_SCALE_IN_PLACE}
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
    **dict.fromkeys([*_POOLS, Tensor.mean, torch.mean, Tensor.sum, torch.sum], _mean),
    **dict.fromkeys([*_ADD, *_ADD_IN_PLACE], _added),
    **dict.fromkeys([*_SCALE, *_SCALE_IN_PLACE], _with_constant),
}
"""The rules of Excitation Backprop."""

_MOVING = PASSING | {
    *(Tensor.squeeze, Tensor.unsqueeze, Tensor.unflatten, Tensor.chunk, Tensor.split, Tensor.movedim, Tensor.clone),
    *(
        Tensor.to,
        Tensor.float,
        Tensor.double,
        Tensor.half,
        Tensor.expand_as,
        Tensor.view_as,
        Tensor.select,
        Tensor.flip,
    ),
    *(torch.flatten, torch.reshape, torch.permute, torch.transpose, torch.squeeze, torch.unsqueeze, torch.unflatten),
    *(torch.chunk, torch.split, torch.movedim, torch.stack, torch.concat, torch.clone, torch.select, torch.flip),
    *(functional.pad, functional.pixel_shuffle, functional.channel_shuffle),
    *(functional.dropout1d, functional.dropout2d, functional.dropout3d, functional.alpha_dropout),
    *(functional.feature_alpha_dropout,),
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
    inputs = gradable(x)
    with torch.enable_grad():
        with propagating(model, EXCITATION, _MOVING):
            logits = model(inputs)
        return torch.autograd.grad(logits.gather(1, target[:, None]).sum(), inputs)[0]
