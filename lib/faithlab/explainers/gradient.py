"""The gradient family. The gradients are captum's; the noise is the counter's, so that no result depends on a batch."""

import torch
from captum.attr import (
    InputXGradient,
    IntegratedGradients,
    LayerGradientXActivation,
    LayerIntegratedGradients,
    Saliency,
)
from torch import Tensor, nn

from faithlab import draws
from faithlab.explainers import register


@register("saliency")
def saliency(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """Absolute gradient of the target's logit (Simonyan, Vedaldi, Zisserman, 2013), [n, *S]."""
    return Saliency(model).attribute(x.detach().clone().requires_grad_(), target, abs=True)


@register("input-x-gradient")
def input_x_gradient(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """Input times gradient (Shrikumar, Greenside, Shcherbina, Kundaje, 2016), signed, [n, *S]."""
    return InputXGradient(model).attribute(x.detach().clone().requires_grad_(), target)


@register("integrated-gradients")
def integrated_gradients(
    model: nn.Module, x: Tensor, target: Tensor, images: Tensor, *, steps: int = 32, baseline: float = 0.0
) -> Tensor:
    """Integrated Gradients (Sundararajan, Taly, Yan, 2017) from a constant baseline, signed, [n, *S]."""
    return IntegratedGradients(model).attribute(
        x, baseline, target, n_steps=steps, method="gausslegendre", internal_batch_size=max(len(x), 64)
    )


def _embedding(model: nn.Module, layer: str) -> nn.Module:
    """The embedding of a model for token ids, by its name among the model's children."""
    children = dict(model.named_children())
    if layer not in children:
        raise ValueError(
            f"the model has no child {layer!r}; pass layer= the name of its embedding (its children: "
            f"{', '.join(children)})"
        )
    return children[layer]


@register("input-x-gradient-embedding")
def input_x_gradient_embedding(
    model: nn.Module, x: Tensor, target: Tensor, images: Tensor, *, layer: str = "embedding"
) -> Tensor:
    """Input times gradient for token ids: on their embeddings, summed over the embedding dimension, signed, [n, T].

    Raises:
        ValueError: the model has no child called `layer`.
    """
    return LayerGradientXActivation(model, _embedding(model, layer)).attribute(x, target).sum(-1)


@register("integrated-gradients-embedding")
def integrated_gradients_embedding(
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    images: Tensor,
    *,
    steps: int = 32,
    layer: str = "embedding",
    baseline: int = 1,
    padding: int = 0,
) -> Tensor:
    """Integrated Gradients for token ids: on their embeddings, summed over the embedding dimension, signed, [n, T].

    The path leads from the embedding of `baseline`, the mask token, to that of the token. Padding stays padding on the
    whole path, so that a text keeps its length and padding gets exactly 0.

    Raises:
        ValueError: the model has no child called `layer`.
    """
    tokens = _embedding(model, layer)
    start = torch.full_like(x, baseline).where(x != padding, padding)
    relevance = LayerIntegratedGradients(model, tokens).attribute(
        x, start, target, n_steps=steps, method="gausslegendre", internal_batch_size=max(len(x), 64)
    )
    return relevance.sum(-1)


def _noisy_gradients(
    model: nn.Module, x: Tensor, target: Tensor, images: Tensor, samples: int, noise: float, seed: int
):
    """Signed gradients at noisy copies of each input, one sample of all inputs at a time: `samples` x [n, *S]."""
    span = (x.flatten(1).amax(1) - x.flatten(1).amin(1)).view(-1, *[1] * (x.ndim - 1))
    gradient = Saliency(model)
    for draw in range(samples):
        which = torch.tensor([draw])
        shift = draws.normal(seed, images, which, x[0].numel()).view_as(x)
        yield gradient.attribute((x + noise * span * shift).requires_grad_(), target, abs=False)


@register("smoothgrad")
def smoothgrad(
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    images: Tensor,
    *,
    samples: int = 32,
    noise: float = 0.15,
    seed: int = 0,
) -> Tensor:
    """SmoothGrad (Smilkov, Thorat, Kim, Viegas, Wattenberg, 2017): |mean gradient| over noisy copies, [n, *S].

    `noise` is the noise's standard deviation as a fraction of each input's range.
    """
    return sum(_noisy_gradients(model, x, target, images, samples, noise, seed)).abs() / samples


@register("smoothgrad-squared")
def smoothgrad_squared(
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    images: Tensor,
    *,
    samples: int = 32,
    noise: float = 0.15,
    seed: int = 0,
) -> Tensor:
    """SmoothGrad-squared (Hooker, Erhan, Kindermans, Kim, 2019): mean squared gradient over noisy copies, [n, *S]."""
    return sum(g**2 for g in _noisy_gradients(model, x, target, images, samples, noise, seed)) / samples
