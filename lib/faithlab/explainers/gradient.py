"""The gradient family. The gradients are captum's; the noise is the counter's, so that no result depends on a batch."""

from typing import Literal

import torch
from captum.attr import (
    InputXGradient,
    IntegratedGradients,
    LayerGradientXActivation,
    LayerIntegratedGradients,
    Saliency,
)
from torch import Tensor, nn

from faithlab import rng
from faithlab.explainers import gradable, register
from faithlab.explainers.refine import smooth


@register("gradient")
def gradient(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """Gradient of the target's logit, signed, [n, *S]."""
    return Saliency(model).attribute(gradable(x), target, abs=False)


@register("saliency")
def saliency(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """Absolute gradient of the target's logit (Simonyan, Vedaldi, Zisserman, 2013), [n, *S]."""
    return gradient(model, x, target, images).abs()


@register("input-x-gradient")
def input_x_gradient(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """Input times gradient (Shrikumar, Greenside, Shcherbina, Kundaje, 2016), signed, [n, *S]."""
    return InputXGradient(model).attribute(gradable(x), target)


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
    gradable(x)
    if steps < 1 or (isinstance(baseline, str) and baseline not in ("min", "max")):
        raise ValueError(
            "expected at least one step and a baseline that is a number, 'min' or 'max', but got "
            f"{steps} and {baseline!r}"
        )
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
    shape = tuple(background.shape)
    fits = len(shape) == x.ndim and all(s in (1, n) for s, n in zip(shape[1:], x.shape[1:], strict=True))
    if not fits or not len(background):
        raise ValueError(
            f"expected at least one background input like {tuple(x.shape[1:])}, but got background {shape}"
        )
    total = torch.zeros_like(x)
    for number, other in enumerate(background.to(x)):
        part = rng.uniform(seed, images, torch.tensor([number]), 1).to(x).view(-1, *[1] * (x.ndim - 1))
        total += (x - other) * gradient(model, other + part * (x - other), target, images)
    return total / len(background)


def _embedding(model: nn.Module, layer: str, x: Tensor) -> nn.Module:
    """The embedding of a model for token ids, by its name among the model's children.

    Raises:
        ValueError: inputs that are no token ids, no such child, or one that does not make each token a vector, once.
    """
    if x.is_floating_point() or x.ndim != 2:
        raise ValueError(f"expected token ids [n, T], integers, but got {x.dtype} {tuple(x.shape)}")
    children = dict(model.named_children())
    if layer not in children:
        raise ValueError(
            f"the model has no child {layer!r}; pass layer= the name of its embedding (its children: "
            f"{', '.join(children)})"
        )
    seen = []
    hook = children[layer].register_forward_hook(lambda module, args, output: seen.append(output))
    try:
        with torch.no_grad():
            model(x)
    finally:
        hook.remove()
    shapes = [tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__ for output in seen]
    if len(seen) != 1 or len(shapes[0]) != 3 or shapes[0][:2] != tuple(x.shape):
        raise ValueError(
            f"expected the layer {layer!r} to make a vector of each token [n, T, D] once in a forward, but for token "
            f"ids {tuple(x.shape)} it ran {len(seen)} times and gave {', '.join(map(str, shapes)) or 'nothing'}"
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
    return LayerGradientXActivation(model, _embedding(model, layer, x)).attribute(x, target).sum(-1)


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
    tokens = _embedding(model, layer, x)
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
