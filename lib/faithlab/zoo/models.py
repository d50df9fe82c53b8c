"""The networks of the study, by name. Every one maps normalised inputs [n, *S] to logits [n, classes]."""

from collections import OrderedDict
from collections.abc import Callable

import timm
from torch import Tensor, nn

_BUILDERS: dict[str, Callable[..., nn.Module]] = {}


def register(builder: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    """Make a function that builds a network available to `build`, under the function's name."""
    _BUILDERS[builder.__name__] = builder
    return builder


def names() -> list[str]:
    """The registered networks."""
    return sorted(_BUILDERS)


def build(name: str, **options) -> nn.Module:
    """A freshly initialised network; torch's global seed decides the weights.

    Raises:
        KeyError: no network of that name.
    """
    if name not in _BUILDERS:
        raise KeyError(f"no network {name!r}; known: {', '.join(names())}; add one with faithlab.zoo.models.register")
    return _BUILDERS[name](**options)


def _convolution(inputs: int, outputs: int, *, pool: bool = False) -> nn.Sequential:
    layers = [
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    ]
    return nn.Sequential(*layers, *([nn.MaxPool2d(2)] if pool else []))


class Residual(nn.Sequential):
    """Layers whose input is added to their output."""

    def forward(self, x: Tensor) -> Tensor:
        """The sum of the input and the layers' output."""
        return x + super().forward(x)


@register
def resnet9(classes: int = 10, channels: int = 3, width: int = 64) -> nn.Module:
    """ResNet-9 as in F-Fidelity (appendix C): width 64 gives 64-128-residual-256-512-residual.

    `features` ends in the last convolutional map (stride 8), which CAM explainers use.
    """
    w = width
    features = nn.Sequential(
        _convolution(channels, w),
        _convolution(w, 2 * w, pool=True),
        Residual(_convolution(2 * w, 2 * w), _convolution(2 * w, 2 * w)),
        _convolution(2 * w, 4 * w, pool=True),
        _convolution(4 * w, 8 * w, pool=True),
        Residual(_convolution(8 * w, 8 * w), _convolution(8 * w, 8 * w)),
    )
    head = nn.Sequential(nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(8 * w, classes))
    return nn.Sequential(OrderedDict(features=features, head=head))


@register
def cnn3(classes: int = 10, channels: int = 3, width: int = 16) -> nn.Module:
    """Three convolutional layers and a linear one, the colored-MNIST model of F-Fidelity (appendix D.8)."""
    w = width
    features = nn.Sequential(
        _convolution(channels, w, pool=True),
        _convolution(w, 2 * w, pool=True),
        _convolution(2 * w, 4 * w),
    )
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * w, classes))
    return nn.Sequential(OrderedDict(features=features, head=head))


@register
def vit(
    classes: int = 10,
    channels: int = 3,
    size: int = 32,
    patch: int = 4,
    dim: int = 128,
    depth: int = 6,
    heads: int = 8,
) -> nn.Module:
    """A small Vision Transformer, by default that of F-Fidelity (appendix C): patch 4, dim 128, depth 6, heads 8."""
    return timm.models.vision_transformer.VisionTransformer(
        img_size=size,
        patch_size=patch,
        in_chans=channels,
        num_classes=classes,
        embed_dim=dim,
        depth=depth,
        num_heads=heads,
        mlp_ratio=2.0,
    )
