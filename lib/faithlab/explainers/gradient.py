"""The gradient family. The gradients are captum's; the noise is the counter's, so that no result depends on a batch."""

from typing import Literal

import torch
from captum import attr
from torch import Tensor, nn

from faithlab import rng
from faithlab.explainers import gradable, layer_of, register
from faithlab.explainers.cam import output_at
from faithlab.explainers.refine import smooth


@register("gradient")
def gradient(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """Gradient of the target's logit, signed, [n, *S]."""
    return attr.Saliency(model).attribute(gradable(x), target, abs=False)


@register("saliency")
def saliency(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """Absolute gradient of the target's logit (Simonyan, Vedaldi, Zisserman, 2013), [n, *S]."""
    return gradient(model, x, target, images).abs()


@register("input-x-gradient")
def input_x_gradient(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """Input times gradient (Shrikumar, Greenside, Shcherbina, Kundaje, 2016), signed, [n, *S]."""
    return attr.InputXGradient(model).attribute(gradable(x), target)


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
        value = getattr(x.flatten(1), f"a{baseline}")(1)
        baseline = value.view(-1, *[1] * (x.ndim - 1)).expand_as(x)
    return attr.IntegratedGradients(model).attribute(
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
    for number, other in enumerate(background.to(x).expand(-1, *x.shape[1:])):
        part = rng.uniform(seed, images, torch.tensor([number]), 1).to(x).view(-1, *[1] * (x.ndim - 1))
        total += (x - other) * gradient(model, other + part * (x - other), target, images)
    return total / len(background)


def _once(model: nn.Module, layer: str, x: Tensor) -> nn.Module:
    """A layer that runs once: captum would explain one of the runs."""
    output_at(model, layer, x)
    return layer_of(model, layer)


@register("input-x-gradient-embedding")
def input_x_gradient_embedding(
    model: nn.Module, x: Tensor, target: Tensor, images: Tensor, *, layer: str = "embedding"
) -> Tensor:
    """Input times gradient for token ids: on their embeddings, summed over the embedding dimension, signed, [n, T].

    Raises:
        ValueError: the model has no layer called `layer`, or it runs more than once.
    """
    return attr.LayerGradientXActivation(model, _once(model, layer, x)).attribute(x, target).sum(-1)


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
        ValueError: the model has no layer called `layer`, or it runs more than once.
    """
    tokens = _once(model, layer, x)
    start = torch.full_like(x, baseline).where(x != padding, padding)
    relevance = attr.LayerIntegratedGradients(model, tokens).attribute(
        x, start, target, n_steps=steps, method="gausslegendre", internal_batch_size=max(len(x), 64)
    )
    return relevance.sum(-1)


@register("smoothgrad")
def smoothgrad(model: nn.Module, x: Tensor, target: Tensor, images: Tensor, **options) -> Tensor:
    """SmoothGrad (Smilkov, Thorat, Kim, Viegas, Wattenberg, 2017): |mean gradient| over noisy copies, [n, *S].

    `options` are the samples, noise and seed of `faithlab.explainers.refine.smooth`.
    """
    return smooth(gradient, **options)(model, x, target, images).abs()


@register("smoothgrad-squared")
def smoothgrad_squared(model: nn.Module, x: Tensor, target: Tensor, images: Tensor, **options) -> Tensor:
    """SmoothGrad-squared (Hooker, Erhan, Kindermans, Kim, 2019): mean squared gradient over noisy copies, [n, *S].

    `options` are the samples, noise and seed of `faithlab.explainers.refine.smooth`.
    """
    return smooth(gradient, moment=2, **options)(model, x, target, images)
