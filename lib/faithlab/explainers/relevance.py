"""Layer-wise relevance propagation (LRP) through Vision Transformers.

A rule says how the relevance R of an operation's output is handed to its inputs. All rules here are one formula with
another decomposition z of the output (Chefer, Gur, Wolf, CVPR 2021, eq. 2):

    R_j = sum over i of  x_j * dz_i/dx_j * R_i / z_i

Here an operation keeps its value and gets its rule as its derivative, so that the gradient of a logit *is* the
relevance, wherever in the network it is taken. The rules replace PyTorch's functions while the model runs; the model is
not touched, and an operation without a rule is an error, not a wrong map.

Own code, for want of a library: zennit has no rules for attention or skip connections; lxt has those of another paper
(AttnLRP), and needs a dozen large packages.
"""

import copy
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from faithlab.explainers import attention, gradable, register
from faithlab.outputs import logit

Rule = Callable[..., Tensor]
"""(function, its arguments ...) -> the function's value, with another derivative."""
Share = Callable[[Tensor, Tensor, tuple[Tensor, ...]], tuple[Tensor, ...]]
"""(relevance of z, z, inputs of z) -> the relevance of each input."""


class Rules(TorchFunctionMode):
    """Compute functions that have a rule by it, in this thread, while the context lasts.

    Args:
        model: whose forward will run, with frozen weights: what requires a gradient then is what has relevance.
        rules: function -> how it is computed instead.
        passing: functions without a rule whose own derivative is right; None: all.

    Attributes:
        met: the functions with a rule that the forward has called.

    Raises:
        ValueError: a model whose functions cannot be seen: compiled, scripted, or run by several threads.
    """

    def __init__(self, model: nn.Module, rules: dict[Callable, Rule], passing: frozenset[Callable] | None):
        super().__init__()
        for name, module in model.named_modules():
            if "_orig_mod" in module._modules or isinstance(module, _UNSEEN):
                raise ValueError(f"the functions of {name!r} cannot get rules; explain the plain module")
        self._rules, self._passing = rules, passing
        self.met: set[Callable] = set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function in self._rules:
            self.met.add(function)
            return self._rules[function](function, *args, **kwargs)
        result = function(*args, **kwargs)
        if self._passing is None or function in self._passing:
            return result
        results = result if isinstance(result, tuple | list) else [result]
        if any(isinstance(part, Tensor) and part.requires_grad for part in results):
            raise ValueError(f"the model computes {_named(function)}, for which this explainer has no rule")
        return result

    def gradient(self, model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
        """The derivative by these rules of the target's logit with respect to the input, [n, *S]."""
        inputs = gradable(x)
        with self:
            logits = model(inputs)
        return torch.autograd.grad(logit(logits, target).sum(), inputs)[0]


_UNSEEN = (torch.jit.ScriptModule, nn.DataParallel, nn.parallel.DistributedDataParallel)


def _named(function: Callable) -> str:
    return repr(getattr(function, "__name__", str(function)))


# Rules


class _Ruled(torch.autograd.Function):
    """An operation's value, perhaps in place of its first input, with a rule for its derivative.

    (operation, rule, whether the rule needs the inputs, inputs ...) -> value
    """

    @staticmethod
    def forward(ctx, operation: Callable[..., Tensor], rule: Callable[..., tuple], needed: bool, *inputs: Tensor):
        before = inputs[0].clone() if needed else None
        value = operation(*inputs)
        if value is inputs[0]:
            ctx.mark_dirty(value)
            inputs = (before, *inputs[1:])
        ctx.rule = rule
        ctx.set_materialize_grads(False)  # of what has no derivative nothing arrives: an error, not a map of zeros
        ctx.save_for_backward(*(inputs if needed else ()))
        ctx.count = len(inputs)
        return value

    @staticmethod
    def backward(ctx, relevance: Tensor | None):
        if relevance is None:
            return None, None, None, *[None] * ctx.count
        with torch.enable_grad():
            return None, None, None, *ctx.rule(relevance, *(x.detach().requires_grad_() for x in ctx.saved_tensors))


def redistribute(operation: Callable[..., Tensor], rule: Callable[..., tuple], *inputs: Tensor) -> Tensor:
    """An operation's value whose derivative is a rule: (relevance, inputs ...) -> the relevance of each input."""
    return _Ruled.apply(operation, rule, True, *inputs)


def elementwise(rule: Callable[[Tensor], Tensor]) -> Rule:
    """The rule of an operation on each element: a function from the relevance of its output to that of its input."""
    return lambda function, x, *args, **kwargs: _Ruled.apply(
        lambda x: function(x, *args, **kwargs), lambda relevance: (rule(relevance),), False, x
    )


identity = elementwise(lambda relevance: relevance)
"""Relevance passes unchanged: softmax, GELU, LayerNorm, and what scales its input."""


def with_constant(function: Callable, a, b=None, **kwargs) -> Tensor:
    """A sum with, or a product by, a constant: one input has all of the relevance."""
    others = (b,) if b is not None else ()
    moving = [isinstance(value, Tensor) and value.requires_grad for value in (a, *others)]
    if sum(moving) > 1:
        raise ValueError(f"the model computes {_named(function)} of two activations (a gate?); there is no rule for it")
    if moving[0]:
        return identity(lambda a: function(a, *others, **kwargs), a)
    if any(moving):
        return identity(lambda b: function(a, b, **kwargs), b)
    return function(a, *others, **kwargs)


def _ratio(a: Tensor, b: Tensor) -> Tensor:
    """Divide, and 0 where b is 0: what contributes nothing receives nothing."""
    return torch.where(b == 0, 0, a / torch.where(b == 0, 1, b))


def contributions(z: Tensor, inputs: tuple[Tensor, ...], ratio: Tensor) -> tuple[Tensor, ...]:
    """x_j * sum over i of dz_i/dx_j * ratio_i, for each of the inputs of z; the ratio is R_i / z_i."""
    slopes = torch.autograd.grad(z, inputs, ratio)
    return tuple(x.detach() * slope for x, slope in zip(inputs, slopes, strict=True))


def _exactly(relevance: Tensor, z: Tensor, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return contributions(z, inputs, _ratio(relevance, z.detach()))


def positive(share: Share, function: Callable, weight: Tensor, *args, **kwargs) -> Callable[..., tuple[Tensor]]:
    """Positive products of activation and weight only, without the bias: z = x^+ w^+ + x^- w^-.

    Eq. 4 of Chefer, Gur, Wolf; the alpha-beta rule with beta 0.
    """

    def rule(relevance: Tensor, x: Tensor) -> tuple[Tensor]:
        up = function(x.clamp(min=0), weight.clamp(min=0), None, *args, **kwargs)
        down = function(x.clamp(max=0), weight.clamp(max=0), None, *args, **kwargs)
        return share(relevance, up + down, (x,))

    return rule


def mean(share: Share) -> Rule:
    """Each value's part of the mean, or of the sum."""
    return lambda function, input, *args, **kwargs: redistribute(
        lambda x: function(x, *args, **kwargs), lambda R, x: share(R, function(x, *args, **kwargs), (x,)), input
    )


def _linear(function: Callable, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return redistribute(lambda x: function(x, weight, bias), positive(_exactly, function, weight), x)


def _pixels(function: Callable, x: Tensor, weight: Tensor, bias: Tensor | None = None, *args) -> Tensor:
    """The zB rule for pixels between an image's low and high: z = x w - low w^+ - high w^- (Montavon et al., 2017)."""
    if not x.is_leaf:
        raise ValueError("the model has a second convolution; there is only a rule for one that sees the pixels")

    def rule(relevance: Tensor, x: Tensor) -> tuple[Tensor]:
        low, high = (
            edge.view(-1, *[1] * (x.ndim - 1)).expand_as(x).contiguous().requires_grad_()
            for edge in x.detach().flatten(1).aminmax(dim=1)
        )
        z = (
            function(x, weight, None, *args)
            - function(low, weight.clamp(min=0), None, *args)
            - function(high, weight.clamp(max=0), None, *args)
        )
        return (sum(_exactly(relevance, z, (x, low, high))),)

    return redistribute(lambda x: function(x, weight, bias, *args), rule, x)


def _pair(function: Callable, a: Tensor, b: Tensor, *, part: float | None = None) -> Tensor:
    """Two inputs, a sum (skip connection) or a matrix product (attention): eq. 8, normalised as in eq. 9 and 10.

    Each side's share of the relevance, in every image, is its part of |sum of R_a| + |sum of R_b|. So the total stays,
    which in a product would double and in a sum be lost to cancellation. Given `part`, each side receives so much of
    what eq. 8 says instead.
    """
    if not isinstance(b, Tensor) or not (a.requires_grad or b.requires_grad):
        return function(a, b)

    def rule(relevance: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        # Constants that every image shares (position embeddings) take their share in each image.
        wide = [v.expand(len(relevance), *v.shape[1:]) for v in (a, b)]
        received = _exactly(relevance, function(*wide), tuple(wide))
        sums = [own.flatten(1).sum(1) for own in received]
        whole = relevance.flatten(1).sum(1)
        shares = [_ratio(s.abs(), sums[0].abs() + sums[1].abs()) * whole for s in sums]
        factors = [_ratio(share, s) if part is None else part for share, s in zip(shares, sums, strict=True)]
        scaled = [(own.transpose(0, -1) * f).transpose(0, -1) for own, f in zip(received, factors, strict=True)]
        return tuple(own.sum_to_size(v.shape) for own, v in zip(scaled, (a, b), strict=True))

    return redistribute(function, rule, a, b)


_SUMS, _PRODUCTS = (Tensor.add, Tensor.__add__, Tensor.__radd__), (Tensor.matmul, Tensor.__matmul__)
RULES: dict[Callable, Rule] = {
    functional.linear: _linear,
    functional.conv2d: _pixels,
    **dict.fromkeys([functional.layer_norm, functional.gelu, functional.relu, Tensor.softmax], identity),
    **dict.fromkeys([Tensor.mul, Tensor.__mul__, Tensor.__rmul__, Tensor.div, Tensor.__truediv__], with_constant),
    **dict.fromkeys([*_SUMS, *_PRODUCTS], _pair),
    Tensor.mean: mean(_exactly),
}
"""The rules of LRP, Partial LRP and Transformer Attribution."""

PLAIN: dict[Callable, Rule] = {
    **RULES,
    **dict.fromkeys(_SUMS, partial(_pair, part=1.0)),
    **dict.fromkeys(_PRODUCTS, partial(_pair, part=0.5)),
}
"""The rules by which Chefer, Gur and Wolf run LRP and Partial LRP as rivals: a sum hands on what eq. 8 says, however
much of it cancels, and each side of a product receives half."""

PASSING: frozenset[Callable] = frozenset(
    {
        *(Tensor.reshape, Tensor.view, Tensor.flatten, Tensor.permute, Tensor.transpose, Tensor.unbind, Tensor.expand),
        *(Tensor.__getitem__, Tensor.contiguous, torch.cat, functional.dropout),
    }
)
"""What moves values without changing them (dropout does nothing outside training): its gradient moves relevance."""


# Explainers


def relevances(
    model: nn.Module, x: Tensor, target: Tensor, rules: dict[Callable, Rule] = RULES
) -> tuple[attention.Record, Tensor, Tensor]:
    """A forward under `Rules`: its record, its input in the graph, and the sum of the targets' logits.

    The gradient of the sum with respect to anything in the record, or to the input, is relevance: 1 at the logit.

    All of it is in float64. Relevance is divided by sums that cancel, and what float32 rounds away there makes another
    map on another processor: of sixteen images, the two maps of one had a rank correlation of 0.92.
    """
    model, x = copy.deepcopy(model).double().requires_grad_(False), gradable(x.double())
    exactly = torch.autocast(x.device.type, enabled=False)
    with exactly, attention.recorded(model, x) as record, Rules(model, rules, PASSING):
        logits = model(x)
    return record, x, logit(logits, target).sum()


@register("lrp")
def lrp(model: nn.Module, x: Tensor, target: Tensor, images: Tensor, *, normalised: bool = True) -> Tensor:
    """LRP (Bach et al., 2015; Binder et al., 2016) down to the pixels, by `RULES`, [n, C, H, W].

    `normalised` False: by the rules `PLAIN`.
    """
    _, pixels, logit = relevances(model, x, target, RULES if normalised else PLAIN)
    (relevance,) = torch.autograd.grad(logit, pixels)
    return relevance.to(x.dtype)


@register("partial-lrp")
def partial_lrp(model: nn.Module, x: Tensor, target: Tensor, images: Tensor, *, normalised: bool = True) -> Tensor:
    """Partial LRP (Voita et al., 2019): the relevance of the last layer's attention, mean over heads, [n, 1, H, W].

    Negative relevance is left out, as in the implementation of Chefer, Gur, Wolf (CVPR 2021). `normalised` False: by
    the rules `PLAIN`.
    """
    record, _, logit = relevances(model, x, target, RULES if normalised else PLAIN)
    (relevance,) = torch.autograd.grad(logit, record.attention[-1])
    return attention.enlarged(model, attention.read(model, relevance.relu().mean(1)), x).to(x.dtype)


@register("transformer-attribution")
def transformer_attribution(
    model: nn.Module, x: Tensor, target: Tensor, images: Tensor, *, layers: int | None = None
) -> Tensor:
    """Transformer Attribution (Chefer, Gur, Wolf, CVPR 2021, eq. 13 and 14): gradient x relevance, all layers.

    R = product of (I + mean over heads of (dA_l * relevance of A_l)^+), the last layer leftmost, [n, 1, H, W].

    `layers` is the number of last layers that are multiplied; None: all.
    """
    slopes = [
        torch.autograd.grad(logit, attention.last(record.attention, layers))
        for record, logit in (relevances(model, x, target)[::2], attention.forward(model, x, target))
    ]
    weighted = [(dA * R).relu().mean(1) for R, dA in zip(*slopes, strict=True)]
    return attention.enlarged(model, attention.read(model, attention.chain(weighted)), x).to(x.dtype)


def _detached(function: Callable, x: Tensor, *args, **kwargs) -> Tensor:
    """A softmax whose weights are constants to the gradient."""
    return function(x, *args, **kwargs).detach()


def _normalised(function: Callable, x: Tensor, shape, weight=None, bias=None, eps: float = 1e-5) -> Tensor:
    """A LayerNorm whose standard deviation is a constant to the gradient."""
    dims = tuple(range(-len(shape), 0))
    deviation = (x.var(dims, correction=0, keepdim=True) + eps).sqrt().detach()
    y = (x - x.mean(dims, keepdim=True)) / deviation
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


CONSERVATIVE: dict[Callable, Rule] = {
    **dict.fromkeys([Tensor.softmax, torch.softmax, functional.softmax], _detached),
    functional.layer_norm: _normalised,
}
"""The rules of Conservative LRP."""


@register("conservative-lrp")
def conservative_lrp(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """Conservative LRP (Ali et al., ICML 2022): input x gradient, signed, [n, C, H, W].

    Attention weights and LayerNorm's divisors are constants to the gradient; both would otherwise break conservation.
    """
    with attention.recorded(model, x):
        gradient = Rules(model, CONSERVATIVE, passing=None).gradient(model, x, target)
    others = {type(m).__name__ for m in model.modules() if "norm" in type(m).__name__.lower()} - {"LayerNorm"}
    if others:
        raise ValueError(f"the model has {others}, but conservative-lrp has a rule for LayerNorm only")
    return x * gradient
