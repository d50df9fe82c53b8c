"""The checks of `explain`, and the private copy of the model that explainers work on."""

import copy
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from faithlab import engine, validation
from faithlab import segments as segment_maps
from faithlab.outputs import Logits
from faithlab.prepare import evaluating

ADVICE = (
    "Explainers by gradients differentiate the model's logits with respect to the input. A model that detaches them, "
    "changes its inputs in place or computes parts of itself again (gradient checkpointing) has no such explanation. "
    "Token ids are explained by the explainers whose names end in -embedding."
)
_ROUNDING = 0.05  # of the largest logit: far above rounding in any precision, below what batch statistics change
_LOCK = threading.RLock()


def features_of(model: nn.Module, x: Tensor, target: Tensor, segments: Tensor, batch_size: int) -> int:
    """Check the arguments of `explain` and return the number of features."""
    engine.check_inputs(x, target)
    validation.whole("batch_size, inputs explained at once,", batch_size, 1)
    return segment_maps.count_of(segments, x)


@torch.no_grad()
def check_logits(model: nn.Module, x: Tensor, target: Tensor) -> None:
    """Evaluate the model on two inputs and on the second alone: it must give logits that depend on one input each."""
    few = x[:2]
    logits, alone = (model(part.clone()) for part in (few, few[-1:]))
    shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != len(few) or logits.shape[1] < 2:
        raise ValueError(f"expected logits [{len(few)}, classes], but got {shape}; wrap it in faithlab.outputs.Logits")
    tolerance = _ROUNDING * float(logits.double().nan_to_num(0, 0, 0).abs().amax())
    if not torch.isclose(alone.double(), logits[-1:].double(), rtol=_ROUNDING, atol=tolerance).all():
        raise ValueError("the model gives NaN, or outputs that depend on other inputs or on chance (dropout)")
    if not isinstance(model, Logits) and bool((logits >= 0).all() and ((logits.sum(1) - 1).abs() < 1e-3).all()):
        warnings.warn(
            "the model's outputs look like probabilities, and these are explained; wrap the model in "
            "faithlab.outputs.Logits(model, torch.log) to explain their logarithms, or in Logits(model) if they are "
            "logits",
            stacklevel=3,
        )


def check_relevance(name: object, relevance: object, x: Tensor) -> Tensor:
    """The relevance that an explainer returned for inputs [n, *S], as a tensor that broadcasts to them."""
    if isinstance(relevance, tuple | list) and len(relevance) == 1 and isinstance(relevance[0], Tensor | np.ndarray):
        (relevance,) = relevance  # as captum returns it
    try:
        found = torch.as_tensor(relevance, device=x.device).detach()
    except (TypeError, ValueError, RuntimeError):
        found = None
    # Broadcasting would also take [n, H, W] for [n, C, H, W] where a batch happens to have C images.
    fits = found is not None and found.ndim == x.ndim and len(found) == len(x) and not found.is_complex()
    if not fits or any(size not in (1, wanted) for size, wanted in zip(found.shape[1:], x.shape[1:], strict=True)):
        came = type(relevance).__name__ if found is None else [*found.shape]
        raise ValueError(f"expected {name!r} to give a number per element of {[*x.shape]}, not {came}")
    return found.float()


class _Alone(TorchFunctionMode):
    """Stop a copy of a model at the first function that it calls with weights or buffers of the model itself."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self._tensors = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(id(leaf) in self._tensors for leaf in tree_leaves((args, kwargs))):
            raise RuntimeError("the copy of the model runs parts of the model itself")
        return function(*args, **kwargs)


def _copied(model: nn.Module, x: Tensor) -> nn.Module | None:
    """A copy in eval mode, with frozen weights and not compiled; None if it would run parts of the model itself."""
    try:
        twin = copy.deepcopy(model)
        for module in list(twin.modules()):
            module._backward_hooks.clear()  # which may change gradients
            module._backward_pre_hooks.clear()
            for name, child in module.named_children():
                setattr(module, name, getattr(child, "_orig_mod", child))
        twin = getattr(twin, "_orig_mod", twin).eval().requires_grad_(False)
        with torch.no_grad(), _Alone(model):
            twin(x[:1].clone())
    except Exception:  # an error of the model's own comes again when it is run itself
        return None
    return twin


@contextmanager
def private(model: nn.Module, x: Tensor) -> Iterator[nn.Module]:
    """The model for explainers to work on: a copy in eval mode whose weights need no gradient.

    A model that cannot be copied (by old `weight_norm`, or a patched `forward` that refers to the model itself) is lent
    itself, to one thread at a time, and put back. Torch's random numbers are put back, too.
    """
    with torch.random.fork_rng([x.device] if x.is_cuda else []):
        with _LOCK:
            if not (twin := _copied(model, x)):
                needed = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
                with evaluating(model):
                    try:
                        yield model.requires_grad_(False)
                    finally:
                        for parameter, was in needed:
                            parameter.requires_grad_(was)
                return
        yield twin
