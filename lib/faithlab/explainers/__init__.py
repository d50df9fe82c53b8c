"""Explainers by name, families by file. Every one returns an attribution per feature, [B, F]."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from faithlab import require, rng
from faithlab import segments as segment_maps
from faithlab.explainers import gate

require("explainers", "captum", "skimage", "timm", "torchvision")


class Explainer(Protocol):
    """How relevant each element of some inputs is to their target's logit: any function with these arguments.

    Args:
        model: in eval mode, inputs [n, *S] to logits [n, C]; `explain` puts back what an explainer changes of it.
        x: inputs [n, *S].
        target: [n] int64, the class that is explained.
        images: [n] int64, identities of the inputs, which random numbers belong to, see `faithlab.rng`.
        **options: what else it can be told, by name and with a default.

    Returns:
        A number for each element, [n, *S] or broadcastable to it, as [n, 1, H, W] for images; higher = more relevant,
        NaN where it has nothing to say.
    """

    def __call__(self, model: nn.Module, x: Tensor, target: Tensor, images: Tensor, **options: Any) -> Tensor:
        """Explain."""


_EXPLAINERS: dict[str, Explainer] = {}


def register(name: str) -> Callable[[Explainer], Explainer]:
    """Make an explainer available to `explain` under a name."""

    def add(explainer: Explainer) -> Explainer:
        _EXPLAINERS[name] = explainer
        return explainer

    return add


def names() -> list[str]:
    """The registered explainers."""
    return sorted(_EXPLAINERS)


def find(name: str | Explainer) -> Explainer:
    """The explainer of a name; one that is not registered, such as those of `faithlab.explainers.refine`, as it is.

    Raises:
        KeyError: no explainer of that name.
    """
    if callable(name):
        return name
    if name not in _EXPLAINERS:
        raise KeyError(f"no explainer {name!r}; known: {', '.join(names())}; add one with faithlab.explainers.register")
    return _EXPLAINERS[name]


def gradable(x: Tensor) -> Tensor:
    """A copy of inputs that asks for gradients.

    Raises:
        ValueError: integers, which have none.
    """
    if not x.is_floating_point():
        raise ValueError(
            f"a gradient needs floating-point inputs, but got {x.dtype}; token ids are explained on their embeddings, "
            "by the explainers whose names end in -embedding"
        )
    return x.detach().clone().requires_grad_()


def explain(
    name: str | Explainer,
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    segments: Tensor,
    *,
    images: Tensor | None = None,
    batch_size: int = 128,
    trusted: bool = False,
    **options,
) -> Tensor:
    """The attribution of each feature to the target's logit.

    Args:
        name: one of `names()`, or an explainer itself.
        model: maps inputs [n, *S] to logits [n, C], each row from its input alone. It is explained in eval mode, and
            left as it was.
        x: inputs [B, *S], finite, on the model's device.
        target: [B] int64, the class whose logit is explained.
        segments: which elements form one feature; an explainer's values are summed over a feature's elements.
        images: [B] identities of the images, for explainers that draw random numbers; None: 0..B-1. Torch's own
            generators are left as they were.
        batch_size: inputs explained at once. The result does not depend on it.
        trusted: the model's answers to these inputs were found in order a moment ago, and are not looked at again.
        **options: of the explainer.

    Returns:
        [B, F] float32, higher = more relevant; NaN where an explainer has nothing to say.

    Raises:
        KeyError: no explainer of that name.
        TypeError: no module, or no tensors.
        ValueError: inputs, target or segments that do not fit, a model that the explainer cannot explain (see also
            `faithlab.explainers.gate`), or an explainer whose result does not fit the input.

    Warns:
        UserWarning: the model's answers look like probabilities.
    """
    explainer = find(name)
    features = gate.check_inputs(model, x, target, segments, batch_size)
    # Ordinary tensors, also where the caller is in inference mode: nothing has a gradient there.
    with torch.inference_mode(False), gate.left_alone(model, x.device), gate.said_plainly():
        x, segments = x.detach(), segments.to(x.device)
        identities = rng.identities(len(x), images, x.device)
        parts = [torch.zeros(0, features, dtype=torch.float32, device=x.device)]
        if len(x) and not trusted:
            gate.check_answers(model, x, target)
        for part in torch.arange(len(x), device=x.device).split(batch_size) if len(x) else ():
            relevance = explainer(model, x[part], target[part], identities[part], **options)
            n, *shape = x[part].shape
            # Broadcasting would also take [n, H, W] for [n, C, H, W] where a batch happens to have C images.
            if relevance.shape[:1] != (n,) or relevance.ndim != x.ndim or not _broadcasts(relevance.shape[1:], shape):
                raise ValueError(
                    f"explainer {name!r} gave shape {tuple(relevance.shape)} for inputs {tuple(x[part].shape)}; "
                    "expected a value per element, or one per element with broadcast channels"
                )
            # A map without channels belongs to each channel where the channels are features of their own.
            relevance = relevance.expand(n, *torch.broadcast_shapes(relevance.shape[1:], segments.shape))
            parts.append(segment_maps.pool(relevance.detach().float(), segments))
            if bool(parts[-1].isinf().any()):
                raise ValueError(
                    f"explainer {name!r} gave infinite relevance; the model's gradients overflow, in a low precision "
                    "or by its weights"
                )
        return torch.cat(parts)


def _broadcasts(shape: Sequence[int], target: Sequence[int]) -> bool:
    return all(size in (1, wanted) for size, wanted in zip(shape, target, strict=True))


# They register themselves.
from faithlab.explainers import attention, backprop, cam, gradient, perturbation, region  # noqa: E402, F401
from faithlab.explainers import relevance as _  # noqa: E402, F401
