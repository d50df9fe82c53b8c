"""Explainers by name, families by file. Every one returns an attribution per feature, [B, F]."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from faithlab import draws
from faithlab import segments as segment_maps

Explainer = Callable[..., Tensor]
"""(model, x [n, *S], target [n], images [n], **options) -> relevance per element, broadcastable to [n, *S]."""

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


def explain(
    name: str,
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    segments: Tensor,
    *,
    images: Tensor | None = None,
    rows: int = 128,
    **options,
) -> Tensor:
    """The attribution of each feature to the target's logit.

    Args:
        name: one of `names()`.
        model: maps inputs [n, *S] to logits [n, C]; put in eval mode.
        x: inputs [B, *S].
        target: [B] int64.
        segments: which elements form one feature; an explainer's values are summed over a feature's elements.
        images: [B] identities of the images, for explainers that draw random numbers; None: 0..B-1.
        rows: images explained at once. The result does not depend on it.
        **options: of the explainer.

    Returns:
        [B, F] float32, higher = more relevant.

    Raises:
        KeyError: no explainer of that name.
        ValueError: the explainer gave a result that does not fit the input.
    """
    if name not in _EXPLAINERS:
        raise KeyError(f"no explainer {name!r}; known: {', '.join(names())}; add one with faithlab.explainers.register")
    model.eval()
    identities = draws.identities(len(x), images, x.device)
    parts = []
    for part in torch.arange(len(x), device=x.device).split(rows):
        relevance = _EXPLAINERS[name](model, x[part], target[part], identities[part], **options)
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
    return torch.cat(parts)


def _broadcasts(shape: Sequence[int], target: Sequence[int]) -> bool:
    return all(size in (1, wanted) for size, wanted in zip(shape, target, strict=True))


# They register themselves.
from faithlab.explainers import attention, backprop, cam, gradient, perturbation, region  # noqa: E402, F401
from faithlab.explainers import relevance as _  # noqa: E402, F401
