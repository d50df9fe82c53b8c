"""Explainers by name, families by file. Each gives an attribution per feature, [B, F]."""

import importlib
import pkgutil
import warnings
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from faithlab import require, rng
from faithlab import segments as segment_maps
from faithlab.explainers import gate

require("explainers", "captum", "skimage", "timm", "torchvision")


class Explainer(Protocol):
    """The relevance of each element of some inputs for their target's logit: any function with these arguments.

    Args:
        model: in eval mode, with frozen weights, inputs [n, *S] to logits [n, C]; a copy that belongs to the explainer.
        x: inputs [n, *S].
        target: [n] int64, the class that is explained.
        images: [n] int64, identities of the inputs, which random numbers belong to, see `faithlab.rng`.
        **options: by name and with a default.

    Returns:
        A number for each element, [n, *S] or broadcastable to it, as [n, 1, H, W] for images; higher = more relevant.
    """

    def __call__(self, model: nn.Module, x: Tensor, target: Tensor, images: Tensor, **options: Any) -> Tensor:
        """Explain."""


_EXPLAINERS: dict[str, Explainer] = {}


def register(name: str) -> Callable[[Explainer], Explainer]:
    """Make an explainer available to `explain` under a name. A second one of that name replaces it, with a warning.

    Raises:
        ValueError: (when an explainer is added) the name of one of faithlab's own.
    """

    def add(explainer: Explainer) -> Explainer:
        old = _EXPLAINERS.get(name)
        if old and old.__module__.startswith(__name__) and old.__module__ != explainer.__module__:
            raise ValueError(f"{name!r} is an explainer of faithlab's own; register yours under another name")
        if old:
            warnings.warn(f"the explainer {name!r} is replaced by another one", stacklevel=2)
        _EXPLAINERS[name] = explainer
        return explainer

    return add


def names() -> list[str]:
    """The registered explainers."""
    return sorted(_EXPLAINERS)


def find(name: str | Explainer) -> Explainer:
    """The explainer of a name; an explainer itself, such as those of `faithlab.explainers.refine`, as it is.

    Raises:
        KeyError: no explainer of that name.
    """
    if callable(name):
        return name
    return _EXPLAINERS[name]


def gradable(x: Tensor) -> Tensor:
    """A copy of inputs that requires gradients."""
    return x.detach().clone().requires_grad_()


def layer_of(model: nn.Module, name: str) -> nn.Module:
    """The layer of a model by its name, such as "encoder.embedding"; an AttributeError where there is none."""
    return model.get_submodule(name.replace("_orig_mod.", ""))  # as it is called in a compiled model


def explain(
    name: str | Explainer,
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    segments: Tensor,
    *,
    images: Tensor | None = None,
    batch_size: int = 128,
    **options,
) -> Tensor:
    """The attribution of each feature to the target's logit.

    The model is left as it was: explainers work on a copy of it, so several threads may explain one model.

    Args:
        name: one of `names()`, or an explainer itself.
        model: maps inputs [n, *S] to logits [n, C], each row from its input alone. It is explained in eval mode.
        x: inputs [B, *S], finite, on the model's device.
        target: [B] int64, the class whose logit is explained.
        segments: which elements form one feature; an explainer's values are summed over a feature's elements.
        images: [B] identities of the images, for explainers that draw random numbers; None: 0..B-1.
        batch_size: inputs explained at once. The result does not depend on it.
        **options: of the explainer.

    Returns:
        [B, F] float32, higher = more relevant.

    Raises:
        KeyError: no explainer of that name.
        TypeError: no module, or no tensors.
        ValueError: inputs, target or segments that do not fit, a model whose outputs are no logits or differ from
            evaluation to evaluation or with the batch, and an explainer's result that does not fit the input or holds
            NaN or infinite numbers.

    Warns:
        UserWarning: the model's outputs look like probabilities.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2, bias=False))
    >>> _ = nn.init.ones_(model[1].weight)
    >>> x, target = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), torch.tensor([1])
    >>> explain("input-x-gradient", model, x, target, segment_maps.pixels(2, 2))
    tensor([[1., 2., 3., 4.]])
    """
    explainer = find(name)
    features = gate.features_of(model, x, target, segments, batch_size)
    identities = rng.identities(len(x), images, x.device)
    if not len(x):
        return torch.zeros(0, features, device=x.device)
    parts = []
    # Ordinary tensors also where the caller is in inference mode, in which nothing has a gradient.
    with torch.inference_mode(False), gate.private(model, x.detach()) as model:
        x, segments = x.detach(), segments.to(x.device)
        gate.check_logits(model, x, target)
        for part in torch.arange(len(x), device=x.device).split(batch_size):
            try:
                relevance = explainer(model, x[part], target[part], identities[part], **options)
            except RuntimeError as error:
                error.add_note(gate.ADVICE)
                raise
            relevance = gate.check_relevance(name, relevance, x[part])
            # A map without channels belongs to each channel where the channels are features of their own.
            shape = torch.broadcast_shapes(relevance.shape[1:], segments.shape)
            parts.append(segment_maps.pool(relevance.expand(len(part), *shape), segments))
            if not (parts[-1].isfinite().all() and x[part].isfinite().all()):
                raise ValueError(f"explainer {name!r} gave NaN or infinite relevance, or was given such inputs")
        return torch.cat(parts)


for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)  # the families of this folder register themselves
