"""What `explain` asks of a model and its inputs before an explainer sees them, and how it leaves them.

An explainer trusts that the model is a function of each input alone, gives logits, and can be differentiated. Where
that does not hold, an explanation would be a number without a meaning.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

import torch
from torch import Tensor, nn

from faithlab import segments as segment_maps

_HOOKS = (
    *("_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
    *("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_backward_hooks", "_backward_pre_hooks"),
)
_ROUNDING = 1e-2  # of the largest logit: far above the rounding of a batch, far below what another function does
_ROUNDING_HALF = 0.1


def check_inputs(model: nn.Module, x: Tensor, target: Tensor, segments: Tensor, rows: int) -> int:
    """The number of features, if what is given can be explained at all.

    Raises:
        TypeError: no module, or no tensors.
        ValueError: shapes, types, devices or numbers that do not fit, backward hooks.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"expected a torch.nn.Module, but got a {type(model).__name__}; give a function one as forward")
    for what, value in {"x": x, "target": target, "segments": segments}.items():
        if not isinstance(value, Tensor):
            kind = type(value)
            raise TypeError(
                f"expected {what} to be a tensor, but got a {kind.__module__}.{kind.__name__}; use torch.as_tensor"
            )
    if x.ndim < 2:
        raise ValueError(f"expected inputs [B, *S], but got {tuple(x.shape)}; give a single input a first dimension")
    if x.shape[:1] != target.shape or target.dtype != torch.int64:
        raise ValueError(
            f"expected one int64 target per input, shape {tuple(x.shape[:1])}, but got "
            f"{target.dtype} {tuple(target.shape)}"
        )
    if not isinstance(rows, int) or rows < 1:
        raise ValueError(f"expected at least one image explained at once, but got rows={rows}")
    places = {tensor.device for tensor in chain(model.parameters(), model.buffers())}
    if (places and x.device not in places) or target.device != x.device:
        raise ValueError(
            f"expected the model, x and target on one device, but the model is on {', '.join(map(str, places))}, x on "
            f"{x.device}, target on {target.device}"
        )
    if x.is_floating_point() and not bool(x.isfinite().all()):
        broken = ~x.flatten(1).isfinite().all(1)
        raise ValueError(f"{int(broken.sum())} of {len(x)} inputs hold NaN or infinite numbers; drop or repair them")
    features = segment_maps.count(segments)
    try:
        segments.expand(x.shape[1:])
    except RuntimeError:
        raise ValueError(
            f"segments {tuple(segments.shape)} do not broadcast to the shape of one input {tuple(x.shape[1:])}"
        ) from None
    for name, module in model.named_modules():
        if module._backward_hooks or module._backward_pre_hooks:
            raise ValueError(
                f"the module {name or 'model'!r} has a backward hook, which may change the gradients that explain the "
                "model; remove it first"
            )
    return features


@torch.no_grad()
def check_answers(model: nn.Module, x: Tensor, target: Tensor) -> None:
    """Ask the model about the first two inputs, and the first one alone.

    Raises:
        ValueError: the answers are not logits [n, C], C does not fit the target, they hold NaN, differ when asked again
            or with another input beside, or the model works on its inputs in place.
    """
    few = x[:2].clone()
    version = few._version
    try:
        logits = model(few)
    except RuntimeError as error:
        formats = {parameter.dtype for parameter in model.parameters() if parameter.is_floating_point()}
        if x.is_floating_point() and formats and x.dtype not in formats:
            raise ValueError(
                f"the inputs are {x.dtype}, but the model's weights {', '.join(map(str, formats))}, and it fails "
                f"({error}); convert one of them"
            ) from error
        raise
    if few._version != version:
        raise ValueError(
            "the model changes its inputs in place, so that what is explained is not what it was given; set "
            "inplace=False in its first layer, or let its forward begin with x.clone()"
        )
    if not isinstance(logits, Tensor):
        raise ValueError(
            f"expected logits [{len(few)}, classes], but the model gave a {type(logits).__name__}; wrap it in a module "
            "that returns the logits alone"
        )
    if logits.ndim != 2 or len(logits) != len(few) or not logits.is_floating_point():
        raise ValueError(
            f"expected logits [{len(few)}, classes], but the model gave {logits.dtype} {tuple(logits.shape)}; wrap it "
            "in a module that returns such logits"
        )
    if logits.shape[1] == 1:
        raise ValueError(
            "the model gives one logit z per input; wrap it in a module that returns those of two classes, "
            "torch.cat([torch.zeros_like(z), z], 1), and explain class 1"
        )
    lowest, highest = int(target.min()), int(target.max())
    if lowest < 0 or highest >= logits.shape[1]:
        raise ValueError(
            f"expected targets 0..{logits.shape[1] - 1} for a model of {logits.shape[1]} classes, but got "
            f"{lowest}..{highest}"
        )
    if bool(logits.isnan().any()):
        raise ValueError("the model answers NaN; check its weights and, in a low precision, its range")
    again = model(x[:1].clone())
    coarse = torch.float32 not in (logits.dtype, again.dtype) and logits.dtype != torch.float64
    coarse |= torch.is_autocast_enabled(x.device.type)
    allowed = (_ROUNDING_HALF if coarse else _ROUNDING) * float(logits[:1].abs().max())
    if float((again - logits[:1]).abs().nan_to_num(torch.inf).max()) > allowed:
        raise ValueError(
            "the model answers the same input differently when it is asked again, or beside another input (such as a "
            "BatchNorm without running statistics, or dropout that is always on); such an answer has no explanation"
        )
    rows = logits.float()
    if bool((rows >= 0).all()) and bool(((rows.sum(1) - 1).abs() < 1e-4).all()):
        warnings.warn(
            "the model's answers look like probabilities (none negative, rows sum to one): it is these that are "
            "explained; to explain logits, let it return them, or the logarithm of the probabilities",
            stacklevel=3,
        )


@contextmanager
def left_alone(model: nn.Module, device: torch.device) -> Iterator[None]:
    """The model in eval mode; afterwards it and torch's random numbers are as they were, whatever happens meanwhile.

    Put back are each module's training flag and hooks, and each parameter's gradient and whether it asks for one.
    """
    modules = [
        (module, module.training, {kind: dict(vars(module)[kind]) for kind in _HOOKS if kind in vars(module)})
        for module in model.modules()
    ]
    parameters = [(parameter, parameter.requires_grad, parameter.grad) for parameter in model.parameters()]
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        try:
            for module, _, _ in modules:
                module.training = False
            for parameter, _, _ in parameters:  # else a backward pass would be added to what is there
                parameter.grad = None
            yield
        finally:
            for module, training, hooks in modules:
                module.training = training
                for kind, before in hooks.items():
                    now = vars(module)[kind]
                    now.clear()
                    now.update(before)
            for parameter, asked, gradient in parameters:
                if parameter.requires_grad != asked:
                    parameter.requires_grad_(asked)
                parameter.grad = gradient


_UNUSED = "the logits do not depend on what is explained: the model detaches it, or does not use it"
_MEANINGS = {
    "does not require grad": "no gradient of the logits reaches what is explained: the model computes them under "
    "torch.no_grad, or detaches them",
    "not to have been used in the graph": _UNUSED,
    "appears to not have been used": _UNUSED,
    "modified by an inplace operation": "the model changes in place what its gradient needs; set inplace=False",
    "Inference tensors cannot be saved": "the model's weights were made under torch.inference_mode, where nothing has "
    "a gradient; make them outside of it",
}


@contextmanager
def said_plainly() -> Iterator[None]:
    """Torch's errors about gradients, in words about the model."""
    try:
        yield
    except RuntimeError as error:
        for part, meaning in _MEANINGS.items():
            if part in str(error):
                raise ValueError(f"{meaning} ({error})") from error
        raise


def check_images(x: Tensor, explainer: str) -> None:
    """Raise a ValueError where inputs are no images [n, C, H, W]."""
    if x.ndim != 4:
        raise ValueError(f"{explainer} explains images [n, C, H, W], but got inputs {tuple(x.shape)}")
