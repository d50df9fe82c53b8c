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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from faithlab.explainers import attention, gradable, register
from faithlab.explainers.gate import IN_INFERENCE

Rule = Callable[..., Tensor]
"""(function, its arguments ...) -> the function's value, with another derivative."""


class Rules(TorchFunctionMode):
    """While active, functions that have a rule are computed by it.

    Args:
        model: whose forward will run; it is only looked at.
        rules: function -> how it is computed instead.
        passing: functions without a rule whose own derivative is right; None: all.

    Attributes:
        met: which of the rules' functions the forward has called.

    Raises:
        ValueError: a model whose functions cannot be seen: compiled, scripted, or run by several threads.
    """

    def __init__(self, model: nn.Module, rules: dict[Callable, Rule], passing: frozenset[Callable] | None):
        super().__init__()
        for name, module in model.named_modules():
            compiled = "_orig_mod" in module._modules or getattr(module, "_compiled_call_impl", None) is not None
            if compiled or isinstance(module, _UNSEEN):
                raise ValueError(
                    f"the module {name or 'model'!r} is a {type(module).__name__}, compiled, scripted or spread over "
                    "devices, so that its functions cannot get rules; explain the plain module"
                )
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
            name = getattr(function, "__name__", str(function))
            raise ValueError(
                f"the model computes {name!r}, for which this explainer has no rule; explain the model with another "
                "method, or add a rule to faithlab.explainers"
            )
        return result


_UNSEEN = (torch.jit.ScriptModule, nn.DataParallel, nn.parallel.DistributedDataParallel)


@contextmanager
def propagating(model: nn.Module, rules: dict[Callable, Rule], passing: frozenset[Callable] | None) -> Iterator[Rules]:
    """While the context lasts, gradients of what the model computes are relevances by the rules, see `Rules`."""
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if any(parameter.is_inference() for parameter in trainable):
        raise ValueError(IN_INFERENCE)
    try:
        for parameter in trainable:  # what asks for a gradient then is what has relevance: the input's descendants
            parameter.requires_grad_(False)
        with Rules(model, rules, passing) as active:
            yield active
    finally:
        for parameter in trainable:
            parameter.requires_grad_()


# Rules


class _Redistribute(torch.autograd.Function):
    """An operation's value, with a rule for its derivative: ((value,), rule, inputs ...) -> value."""

    @staticmethod
    def forward(ctx, values: tuple[Tensor], rule: Callable[..., tuple[Tensor, ...]], *inputs: Tensor) -> Tensor:
        ctx.rule = rule
        ctx.set_materialize_grads(False)  # of what has no derivative nothing arrives: an error, not a map of zeros
        ctx.save_for_backward(*inputs)
        return values[0]

    @staticmethod
    def backward(ctx, relevance: Tensor | None):
        if relevance is None:
            return None, None, *(None for _ in ctx.saved_tensors)
        with torch.enable_grad():
            return None, None, *ctx.rule(relevance, *(x.detach().requires_grad_() for x in ctx.saved_tensors))


def redistribute(value: Tensor, rule: Callable[..., tuple[Tensor, ...]], *inputs: Tensor) -> Tensor:
    """An operation's new value whose derivative is a rule: (relevance, inputs ...) -> the relevance of each input."""
    # In a tuple, the value is no input of the function, of which its output would be a view.
    return _Redistribute.apply((value.detach(),), rule, *inputs)


class _Elementwise(torch.autograd.Function):
    """An operation on each element, perhaps in place, with another derivative: (x, operation, rule) -> value."""

    @staticmethod
    def forward(ctx, x: Tensor, operation: Callable[[Tensor], Tensor], rule: Callable[[Tensor], Tensor]) -> Tensor:
        value = operation(x)
        if value is x:
            ctx.mark_dirty(x)
        ctx.rule = rule
        ctx.set_materialize_grads(False)
        return value

    @staticmethod
    def backward(ctx, relevance: Tensor | None):
        return None if relevance is None else ctx.rule(relevance), None, None


def elementwise(rule: Callable[[Tensor], Tensor]) -> Rule:
    """The rule of an operation on each element that hands what its output receives to its input, by a function."""
    return lambda function, x, *args, **kwargs: _Elementwise.apply(x, lambda x: function(x, *args, **kwargs), rule)


identity = elementwise(lambda relevance: relevance)
"""Relevance passes unchanged: softmax, GELU, LayerNorm, and what scales its input."""


def _ratio(a: Tensor, b: Tensor) -> Tensor:
    """Divide, and 0 where b is 0: what contributes nothing receives nothing."""
    return torch.where(b == 0, 0, a / torch.where(b == 0, 1, b))


def _contributions(relevance: Tensor, z: Tensor, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """x_j * sum over i of dz_i/dx_j * R_i / z_i, for each of the inputs of z."""
    slopes = torch.autograd.grad(z, inputs, _ratio(relevance, z.detach()))
    return tuple(x.detach() * slope for x, slope in zip(inputs, slopes, strict=True))


def _scaled(function: Callable, a: Tensor, b) -> Tensor:
    """A product with constants scales: relevance passes unchanged. A product of two that have relevance has no rule."""
    moving = [v for v in (a, b) if isinstance(v, Tensor) and v.requires_grad]
    if len(moving) > 1:
        raise ValueError("the model multiplies two activations element by element (a gate); there is no rule for it")
    value = function(a, b)
    return redistribute(value, lambda relevance, x: (relevance,), moving[0]) if moving else value


def _linear(function: Callable, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Positive contributions only, without the bias: z = x^+ w^+ + x^- w^- (eq. 4; the alpha-beta rule with beta 0)."""

    def rule(relevance: Tensor, x: Tensor) -> tuple[Tensor]:
        up, down = x.clamp(min=0), x.clamp(max=0)
        z = functional.linear(up, weight.clamp(min=0)) + functional.linear(down, weight.clamp(max=0))
        # x is one of its two parts, the other is 0: what both receive is x's.
        return _contributions(relevance, z, (x,))

    return redistribute(function(x, weight, bias), rule, x)


def _pixels(function: Callable, x: Tensor, weight: Tensor, bias: Tensor | None = None, *args) -> Tensor:
    """The zB rule for pixels between an image's low and high: z = x w - low w^+ - high w^- (Montavon et al., 2017)."""
    if not x.is_leaf:
        raise ValueError("the model has a second convolution; there is only a rule for one that sees the pixels")

    def rule(relevance: Tensor, x: Tensor) -> tuple[Tensor]:
        image = x.detach().flatten(1)
        low, high = (
            edge.view(-1, *[1] * (x.ndim - 1)).expand_as(x).contiguous().requires_grad_()
            for edge in (image.amin(1), image.amax(1))
        )
        z = (
            functional.conv2d(x, weight, None, *args)
            - functional.conv2d(low, weight.clamp(min=0), None, *args)
            - functional.conv2d(high, weight.clamp(max=0), None, *args)
        )
        return (sum(_contributions(relevance, z, (x, low, high))),)

    return redistribute(function(x, weight, bias, *args), rule, x)


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
        received = _contributions(relevance, function(*wide), tuple(wide))
        sums = [own.flatten(1).sum(1) for own in received]
        whole = relevance.flatten(1).sum(1)
        shares = [_ratio(s.abs(), sums[0].abs() + sums[1].abs()) * whole for s in sums]
        factors = [_ratio(share, s) if part is None else part for share, s in zip(shares, sums, strict=True)]
        scaled = [(own.transpose(0, -1) * f).transpose(0, -1) for own, f in zip(received, factors, strict=True)]
        return tuple(own.sum_to_size(v.shape) for own, v in zip(scaled, (a, b), strict=True))

    return redistribute(function(a, b), rule, a, b)


def _mean(function: Callable, x: Tensor, *args, **kwargs) -> Tensor:
    """Each value's part of the mean."""

    def rule(relevance: Tensor, x: Tensor) -> tuple[Tensor]:
        return _contributions(relevance, x.mean(*args, **kwargs), (x,))

    return redistribute(function(x, *args, **kwargs), rule, x)


_SUMS, _PRODUCTS = (Tensor.add, Tensor.__add__, Tensor.__radd__), (Tensor.matmul, Tensor.__matmul__)
RULES: dict[Callable, Rule] = {
    functional.linear: _linear,
    functional.conv2d: _pixels,
    **dict.fromkeys([functional.layer_norm, functional.gelu, functional.relu, Tensor.softmax], identity),
    **dict.fromkeys([Tensor.mul, Tensor.__mul__, Tensor.__rmul__, Tensor.div, Tensor.__truediv__], _scaled),
    **dict.fromkeys([*_SUMS, *_PRODUCTS], _pair),
    Tensor.mean: _mean,
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
    """A forward under `propagating`: its record, its input in the graph, and the sum of the targets' logits.

    The gradient of the sum with respect to anything in the record, or to the input, is relevance: 1 at the logit.

    All of it is in float64. Relevance is divided by sums that cancel, and what float32 rounds away there makes another
    map on another processor: of sixteen images, the two maps of one had a rank correlation of 0.92.

    Raises:
        ValueError: half precision, in which the sums that relevance is divided by cancel to noise.
    """
    low = torch.is_autocast_enabled(x.device.type)
    if low or torch.finfo(gradable(x).dtype).eps > torch.finfo(torch.float32).eps:
        raise ValueError(
            f"LRP divides by sums that cancel, of which {'autocast' if low else x.dtype} leaves noise; explain the "
            "model in float32: model.float(), x.float()"
        )
    if any(parameter.is_inference() for parameter in model.parameters()):
        raise ValueError(IN_INFERENCE)
    Rules(model, rules, PASSING)  # of a copy less is known: it is an error where functions cannot be seen
    # A copy: torch.func.functional_call leaves its weights in a model that uses a layer twice.
    model, x = copy.deepcopy(model).double(), gradable(x.double())
    with torch.enable_grad():
        with attention.recorded(model, x) as record, propagating(model, rules, PASSING):
            logits = model(x)
        return record, x, logits.gather(1, target[:, None]).sum()


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

    `layers` is how many of the last layers are multiplied; None: all.
    """
    record, _, logit = relevances(model, x, target)
    relevance = torch.autograd.grad(logit, attention.last(record.attention, layers))
    plain, logit = attention.forward(model, x, target)
    gradients = torch.autograd.grad(logit, attention.last(plain.attention, layers))
    weighted = [(dA * R).relu().mean(1) for R, dA in zip(relevance, gradients, strict=True)]
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


def _check_norms(model: nn.Module) -> None:
    for name, module in model.named_modules():
        if "norm" in type(module).__name__.lower() and not isinstance(module, nn.LayerNorm):
            raise ValueError(
                f"the module {name!r} is a {type(module).__name__}; conservative-lrp has a rule for LayerNorm only"
            )


@register("conservative-lrp")
def conservative_lrp(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """Conservative LRP (Ali et al., ICML 2022): input x gradient, signed, [n, C, H, W].

    Attention weights and LayerNorm's divisors are constants to the gradient; both would otherwise break conservation.
    """
    x = gradable(x)
    softmaxes = [Tensor.softmax, torch.softmax, functional.softmax]
    rules = {**dict.fromkeys(softmaxes, _detached), functional.layer_norm: _normalised}
    with torch.enable_grad():
        with attention.recorded(model, x), Rules(model, rules, passing=None):
            _check_norms(model)
            logits = model(x)
        (gradient,) = torch.autograd.grad(logits.gather(1, target[:, None]).sum(), x)
    return x.detach() * gradient
