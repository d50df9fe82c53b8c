"""What `explain` asks of a model and its inputs before an explainer sees them, and how it leaves them.

An explainer trusts that the model is a function of each input alone, gives logits, and can be differentiated. Where
that does not hold, an explanation would be a number without a meaning.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from faithlab import engine, preparation, validation
from faithlab import segments as segment_maps

_ROUNDING = 1e-2  # of the logits' spread: far above the rounding of a batch, far below what another function does


def check_inputs(model: nn.Module, x: Tensor, target: Tensor, segments: Tensor, batch_size: int) -> int:
    """The number of features, if what is given can be explained at all.

    Raises:
        TypeError: no module, or no tensors.
        ValueError: shapes, types, devices or numbers that do not fit, backward hooks.
    """
    if isinstance(x, Tensor) and x.layout is torch.strided and not x.is_meta and x.is_floating_point():
        broken = ~x.flatten(1).isfinite().all(1) if x.ndim > 1 else x.new_zeros(0)
        if bool(broken.any()):
            raise ValueError(
                f"{int(broken.sum())} of {len(x)} inputs hold NaN or infinite numbers; drop or repair them"
            )
    engine.check_inputs(x)
    engine.check_targets(target, x)
    preparation.check(model, x)
    validation.whole("batch_size, inputs explained at once,", batch_size, 1)
    features = segment_maps.count_of(segments, x)
    for name, module in model.named_modules():
        if module._backward_hooks or module._backward_pre_hooks:
            raise ValueError(
                f"the module {name or 'model'!r} has a backward hook, which may change the gradients that explain the "
                "model; remove it first"
            )
    return features


@torch.no_grad()
def check_answers(model: nn.Module, x: Tensor, target: Tensor) -> None:
    """Ask the model about the first two inputs, about them again, and about the second one alone.

    Raises:
        ValueError: the answers are not logits [n, C], C does not fit the target, they hold NaN, differ when asked again
            or with another input beside, or the model works on its inputs in place.
    """
    few = x[:2].clone()
    version = few._version
    own = preparation.own_precision(model)
    try:
        answer = model(few)
    except RuntimeError as error:
        if x.is_floating_point() and own not in (None, x.dtype):
            raise ValueError(
                f"the inputs are {x.dtype}, but the model's weights {own}, and it fails ({error}); convert one of them"
            ) from error
        raise
    if few._version != version:
        raise ValueError(
            "the model changes its inputs in place, so that what is explained is not what it was given; set "
            "inplace=False in its first layer, or let its forward begin with x.clone()"
        )
    logits = preparation.checked(answer, len(few)).double()
    engine.check_classes(target, logits.shape[1])
    if bool(logits.isnan().any()):
        raise ValueError("the model answers NaN; check its weights and, in a low precision, its range")
    precisions = [p for p in (own, answer.dtype) if p and p.is_floating_point]
    if torch.is_autocast_enabled(x.device.type):
        precisions.append(torch.get_autocast_dtype(x.device.type))
    coarsest = max(precisions, key=lambda p: torch.finfo(p).eps, default=None)
    scale = preparation.Scale.of(logits)
    for first, relative in ((0, _ROUNDING / 10), (len(few) - 1, _ROUNDING)):
        part = slice(first, len(few))
        again = preparation.checked(model(x[part].clone()), len(few) - first).double()
        if scale.apart(again, logits[part]) > scale.tolerance(coarsest, x.device, relative):
            raise ValueError(
                "the model answers the same input differently when it is asked again, or beside another input (such as "
                "a BatchNorm without running statistics, or dropout that is always on); such an answer has no "
                "explanation"
            )
    if nearly := preparation.nearly_probabilities(model, logits, coarsest):
        warnings.warn(
            f"the model's answers look like probabilities ({nearly}): it is these that are explained; if they are "
            "logits, say so with faithlab.outputs.Logits(model)",
            stacklevel=3,
        )
    if preparation.are_probabilities(model, logits, coarsest):
        warnings.warn(
            "the model's answers look like probabilities (none negative, rows sum to one): it is these that are "
            "explained; to explain their logarithms wrap it in faithlab.outputs.Logits(model, torch.log), and if they "
            "are logits, say so with Logits(model)",
            stacklevel=3,
        )


@contextmanager
def left_alone(model: nn.Module, device: torch.device) -> Iterator[None]:
    """The model in eval mode; afterwards it and all random numbers are as they were, whatever happens meanwhile.

    Put back are what `faithlab.preparation.keeping` knows of (flags, hooks, weights, buffers and other attributes), and
    each parameter's gradient and whether it asks for one.
    """
    parameters = [(parameter, parameter.requires_grad, parameter.grad) for parameter in model.parameters()]
    with preparation.same_random_numbers(device), preparation.evaluating(model, weights=True):
        try:
            for parameter, _, _ in parameters:  # else a backward pass would be added to what is there
                parameter.grad = None
            yield
        finally:
            for parameter, asked, gradient in parameters:
                if parameter.requires_grad != asked:
                    parameter.requires_grad_(asked)
                parameter.grad = gradient


IN_INFERENCE = (
    "the model's weights were made under torch.inference_mode, where nothing has a gradient; make them outside of it"
)
_UNUSED = "the logits do not depend on what is explained: the model detaches it, or does not use it"
_CHECKPOINTS = (
    "the model computes parts of itself a second time for its gradient (gradient checkpointing), which this explainer "
    "cannot follow; turn it off, such as with model.set_grad_checkpointing(False)"
)
_MEANINGS = {
    "torch.utils.checkpoint": _CHECKPOINTS,
    "functorch transforms": "this explainer has rules of its own for the gradient, which torch.vmap cannot follow; run "
    "the model's parts one after another",
    "does not require grad": "no gradient of the logits reaches what is explained: the model computes them under "
    "torch.no_grad, or detaches them",
    "not to have been used in the graph": _UNUSED,
    "appears to not have been used": _UNUSED,
    "modified by an inplace operation": "the model changes in place what its gradient needs; set inplace=False",
    "Inference tensors cannot be saved": IN_INFERENCE,
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
