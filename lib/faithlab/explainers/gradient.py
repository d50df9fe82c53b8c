"""The gradient family. The gradients are captum's; the noise is the counter's, so that no result depends on a batch."""

import warnings
from typing import Literal

import torch
from captum.attr import (
    Deconvolution,
    InputXGradient,
    IntegratedGradients,
    LayerGradientXActivation,
    LayerIntegratedGradients,
    Saliency,
)
from torch import Tensor, nn

from faithlab import draws
from faithlab.explainers import register
from faithlab.explainers.refine import smooth


@register("gradient")
def gradient(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """Gradient of the target's logit, signed, [n, *S]."""
    return Saliency(model).attribute(x.detach().clone().requires_grad_(), target, abs=False)


@register("saliency")
def saliency(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """Absolute gradient of the target's logit (Simonyan, Vedaldi, Zisserman, 2013), [n, *S]."""
    return gradient(model, x, target, images).abs()


@register("input-x-gradient")
def input_x_gradient(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """Input times gradient (Shrikumar, Greenside, Shcherbina, Kundaje, 2016), signed, [n, *S]."""
    return InputXGradient(model).attribute(x.detach().clone().requires_grad_(), target)


@register("deconvolution")
def deconvolution(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """Deconvolution (Zeiler, Fergus, 2014), signed, [n, *S]: each ReLU keeps the positive part of its gradient instead.

    Raises:
        ValueError: the model has no nn.ReLU module whose gradient could be replaced.
    """
    if not any(isinstance(module, nn.ReLU) for module in model.modules()):
        raise ValueError(
            "deconvolution replaces the gradient of nn.ReLU modules, but the model has none (captum does not see ReLU6 "
            "or functional ReLUs); without them it would be the plain gradient"
        )
    with warnings.catch_warnings():
        # captum announces each time that it sets hooks, and removes them itself.
        warnings.filterwarnings("ignore", "Setting backward hooks", UserWarning)
        return Deconvolution(model).attribute(x.detach().clone().requires_grad_(), target)


@register("integrated-gradients")
def integrated_gradients(
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    images: Tensor,
    *,
    steps: int = 32,
    baseline: float | Literal["min", "max"] = 0.0,
    rule: str = "gausslegendre",
) -> Tensor:
    """Integrated Gradients (Sundararajan, Taly, Yan, 2017) from a constant baseline, signed, [n, *S].

    The baseline is a number, or the lowest or highest value of each input, as in Few-class Fidelity. `rule` is captum's
    name of the quadrature, such as "riemann_trapezoid".
    """
    if isinstance(baseline, str):
        lowest, highest = x.flatten(1).aminmax(dim=1)
        value = {"min": lowest, "max": highest}[baseline]
        baseline = value.view(-1, *[1] * (x.ndim - 1)).expand_as(x)
    return IntegratedGradients(model).attribute(
        x, baseline, target, n_steps=steps, method=rule, internal_batch_size=max(len(x), 64)
    )


@register("expected-gradients")
def expected_gradients(
    model: nn.Module, x: Tensor, target: Tensor, images: Tensor, *, background: Tensor, seed: int = 0
) -> Tensor:
    """Expected Gradients (Erion, Janizek, Sturmfels, Lundberg, Lee, 2021), signed, [n, *S].

    The mean over background inputs b of (x - b) times the gradient at b + a (x - b), with a random a in 0..1 for each
    pair of input and b.

    Args:
        model: maps inputs [n, *S] to logits.
        x: inputs.
        target: [n].
        images: [n] identities of the inputs, which their draws belong to.
        background: [R, *S] training inputs; Few-class Fidelity takes 200.
        seed: of the draws.
    """
    total = torch.zeros_like(x)
    for number, other in enumerate(background.to(x)):
        part = draws.uniform(seed, images, torch.tensor([number]), 1).to(x).view(-1, *[1] * (x.ndim - 1))
        total += (x - other) * gradient(model, other + part * (x - other), target, images)
    return total / len(background)


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
    return smooth(gradient, samples=samples, noise=noise, seed=seed)(model, x, target, images).abs()


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
    return smooth(gradient, moment=2, samples=samples, noise=noise, seed=seed)(model, x, target, images)
