"""The networks of the study, by name. Every one maps normalised inputs [n, *S] to logits [n, classes]."""

from collections import OrderedDict
from collections.abc import Callable

import timm
from deel import torchlip
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


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions with a shortcut, the block of ResNet-18."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Identity()
        if stride > 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.last = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """The sum of both ways, rectified."""
        return self.last(self.shortcut(x) + self.body(x))


@register
def resnet18(classes: int = 10, channels: int = 3, width: int = 64, dropout: float = 0.0) -> nn.Module:
    """ResNet-18 for small images, as in ReCo and MeGe (appendix A.3): `width` base filters, doubled at each depth.

    The first convolution is 3 x 3 without stride or pooling, as is usual for images of 32 pixels; dropout comes before
    the classifier. `features` ends in the last convolutional map (stride 8), which CAM explainers use.
    """
    layers = [_convolution(channels, width)]
    inputs = width
    for depth in range(4):
        outputs = width * 2**depth
        layers += [BasicBlock(inputs, outputs, stride=2 if depth else 1), BasicBlock(outputs, outputs, stride=1)]
        inputs = outputs
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(dropout), nn.Linear(inputs, classes))
    return nn.Sequential(OrderedDict(features=nn.Sequential(*layers), head=head))


class Scale(nn.Module):
    """Multiplies by a constant."""

    def __init__(self, factor: float):
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        """The product."""
        return self.factor * x

    def extra_repr(self) -> str:
        """The constant, as part of the network's description."""
        return f"factor={self.factor}"


@register
def lipschitz(
    classes: int = 10, channels: int = 3, size: int = 32, width: int = 48, dropout: float = 0.2, scale: float = 10.0
) -> nn.Module:
    """The 1-Lipschitz network of ReCo and MeGe (Table 6), from the spectrally normalised layers of deel-torchlip.

    Its logits are multiplied by `scale` at the end: those of a 1-Lipschitz network differ so little that cross-entropy
    learns nothing from them. The network is `scale`-Lipschitz then, and no explanation's order changes.

    `features` ends in the last convolutional map (stride 4), which CAM explainers use.

    Raises:
        ValueError: an image side that three poolings do not divide.
    """
    if size % 8:
        raise ValueError(f"expected images whose side is a multiple of 8, but got {size}")

    def convolution(inputs: int, outputs: int) -> nn.Module:
        return torchlip.SpectralConv2d(inputs, outputs, 3, padding=1, eps_bjorck=None)

    def rest() -> list[nn.Module]:
        return [torchlip.LPReLU(), torchlip.ScaledAvgPool2d(2), nn.Dropout(dropout)]

    features = nn.Sequential(
        convolution(channels, width),
        *rest(),
        convolution(width, 2 * width),
        *rest(),
        convolution(2 * width, 2 * width),
    )
    head = nn.Sequential(
        torchlip.ScaledAvgPool2d(2),
        nn.Flatten(),
        torchlip.SpectralLinear(2 * width * (size // 8) ** 2, classes, eps_bjorck=None),
        Scale(scale),
    )
    return nn.Sequential(OrderedDict(features=features, head=head))
