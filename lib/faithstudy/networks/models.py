"""The networks of the study, by name. Every one maps inputs as a data set gives them, [n, *S], to logits [n, classes].

Networks for texts take token ids, int64 [n, T]. Padding (id 0) changes nothing, and a child `embedding` makes the ids
vectors.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial

import torch
from deel import torchlip
from torch import Tensor, nn

from faithstudy.data.sets import TextSet

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
        raise KeyError(
            f"no network {name!r}; known: {', '.join(names())}; add one with faithstudy.networks.models.register"
        )
    return _BUILDERS[name](**options)


def _convolution(inputs: int, outputs: int, *, pool: bool = False, stride: int = 1) -> nn.Sequential:
    layers = [nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, *([nn.MaxPool2d(2)] if pool else []))


class Residual(nn.Sequential):
    """Layers whose input is added to their output."""

    def forward(self, x: Tensor) -> Tensor:
        """The sum of the input and the layers' output."""
        return x + super().forward(x)


def _parts(features: nn.Module, *head: nn.Module) -> nn.Sequential:
    """A network whose children `features` and `head` are known to explainers."""
    return nn.Sequential(OrderedDict(features=features, head=nn.Sequential(*head)))


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
    return _parts(features, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(8 * w, classes))


def _three_layers(channels: int, w: int, classes: int, *options: dict) -> nn.Module:
    sizes = ((channels, w), (w, 2 * w), (2 * w, 4 * w))
    layers = [_convolution(*size, **own) for size, own in zip(sizes, options, strict=True)]
    return _parts(nn.Sequential(*layers), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * w, classes))


@register
def cnn3(classes: int = 10, channels: int = 3, width: int = 16) -> nn.Module:
    """Three convolutional layers and a linear one, the colored-MNIST model of F-Fidelity (appendix D.8)."""
    return _three_layers(channels, width, classes, {"pool": True}, {"pool": True}, {})


@register
def strided(classes: int = 10, channels: int = 3, width: int = 16) -> nn.Module:
    """Three convolutional layers of stride 2 and a linear one: for searches with millions of model evaluations."""
    return _three_layers(channels, width, classes, *[{"stride": 2}] * 3)


@register
def vit(
    classes: int = 10, channels: int = 3, size: int = 32, patch: int = 4, dim: int = 128, depth: int = 6, heads: int = 8
) -> nn.Module:
    """A small Vision Transformer, by default that of F-Fidelity (appendix C): patch 4, dim 128, depth 6, heads 8."""
    import timm  # with torchvision it takes two seconds, which most pages save

    shape = {"img_size": size, "patch_size": patch, "in_chans": channels, "num_classes": classes, "embed_dim": dim}
    return timm.models.vision_transformer.VisionTransformer(**shape, depth=depth, num_heads=heads, mlp_ratio=2.0)


@register
def vit_small(classes: int = 10) -> nn.Module:
    """A larger Vision Transformer for images of 32 pixels, trained on photographs: `faithstudy.networks.vit_small`."""
    from faithstudy.networks.vit_small import Adapted

    return Adapted(classes)


@register
def photographs(architecture: str, classes: int = 1000, channels: int = 3) -> nn.Module:
    """A network for photographs by its name in timm, untrained: resnet18, resnet50, densenet121, legacy_xception, ...

    Its ReLUs do not work in place, so that explainers can replace their gradients.
    """
    import timm

    network = timm.create_model(architecture, num_classes=classes, in_chans=channels)
    for module in network.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = False
    return network


class Grouped(nn.Module):
    """A network whose classes are groups of another's: the softmax over the classes of all groups, summed in each.

    Args:
        network: [n, *S] -> logits [n, C].
        groups: for each new class the indices of the old ones; classes in no group are left out.
    """

    def __init__(self, network: nn.Module, groups: Sequence[Sequence[int]]):
        super().__init__()
        self.network = network
        self.groups = [list(group) for group in groups]

    def forward(self, x: Tensor) -> Tensor:
        """Logits [n, groups]."""
        logits = self.network(x)
        return torch.stack([logits[:, group].logsumexp(1) for group in self.groups], dim=1)


@torch.inference_mode()
def representation(network: nn.Module, x: Tensor, batch_size: int = 256) -> Tensor:
    """Inputs of the last linear layer of a network, for inputs [N, *S] of its own: [N, D]."""
    *_, last = (module for module in network.modules() if isinstance(module, nn.Linear))
    seen = []
    with last.register_forward_pre_hook(lambda module, args: seen.append(args[0])):
        for part in x.split(batch_size):
            network(part)
    return torch.cat(seen)


class States(nn.LSTM):
    """LSTM layers without the memory they end with: inputs [n, T, C] to the last layer's states [n, T, hidden]."""

    def forward(self, steps: Tensor) -> Tensor:
        """The states, with gradients in eval mode too."""
        # cuDNN has no gradients of recurrent layers in eval mode, which explainers ask for.
        with torch.backends.cudnn.flags(enabled=self.training or not torch.is_grad_enabled()):
            states, _ = super().forward(steps)
        return states


class BidirectionalLSTM(States):
    """LSTM layers that read a series [n, T, C] in both directions; their mean state over time, [n, hidden of both]."""

    def forward(self, series: Tensor) -> Tensor:
        """The mean over all steps of the last layer's states."""
        return super().forward(series).mean(dim=1)


@register
def bilstm(classes: int = 4, channels: int = 6, width: int = 128, layers: int = 3) -> nn.Module:
    """The LSTM for time series of F-Fidelity (appendix C), which is TimeX's: three bidirectional layers.

    `width` counts both directions together, as in TimeX: 128 is 64 each. The mean over time goes into a hidden layer.
    """
    features = BidirectionalLSTM(channels, width // 2, layers, batch_first=True, bidirectional=True)
    return _parts(features, *_hidden_layer(width, classes))


class TimeLast(nn.Module):
    """Swaps steps and channels: convolutions want [n, C, T]."""

    def forward(self, series: Tensor) -> Tensor:
        """Series [n, T, C] to [n, C, T]."""
        return series.transpose(1, 2)


@register
def cnn1d(classes: int = 4, channels: int = 6, width: int = 128) -> nn.Module:
    """TimeX's convolutional network for time series: three layers, each halving the steps, and their mean over time.

    F-Fidelity's appendix D.1 has "a CNN" and gives no layers.
    """

    def layer(inputs: int, size: int) -> list[nn.Module]:
        return [nn.Conv1d(inputs, width, size, padding=size // 2), nn.ReLU(), nn.MaxPool1d(2)]

    features = nn.Sequential(TimeLast(), *layer(channels, 7), *layer(width, 3), *layer(width, 3))
    return _parts(features, nn.AdaptiveAvgPool1d(1), nn.Flatten(), *_hidden_layer(width, classes))


def _hidden_layer(width: int, classes: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, classes))


class Recurrent(nn.Module):
    """An LSTM over the embedded tokens of a text; the mean of its states goes into a linear layer."""

    def __init__(self, classes: int, words: int, dim: int, hidden: int):
        super().__init__()
        self.embedding = _embedding(words, dim)
        self.lstm = States(dim, hidden, batch_first=True)
        self.head = nn.Linear(hidden, classes)

    def forward(self, ids: Tensor) -> Tensor:
        """Token ids [n, T] to logits [n, classes]."""
        states = self.lstm(self.embedding(ids))  # padding comes last, so that no token's state has seen it
        return self.head(_mean_of_tokens(states, ids))


class Attentive(nn.Module):
    """A Transformer encoder over the embedded tokens of a text; the mean of its outputs goes into a linear layer."""

    def __init__(self, classes: int, words: int, dim: int, depth: int, heads: int):
        from timm.models.vision_transformer import Block

        super().__init__()
        self.embedding = _embedding(words, dim)
        self.blocks = nn.ModuleList(Block(dim, heads, qkv_bias=True) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, ids: Tensor) -> Tensor:
        """Token ids [n, T] to logits [n, classes]."""
        tokens = self.embedding(ids)
        tokens = tokens + _places(tokens)
        seen = (ids != TextSet.PADDING)[:, None, None]  # [n, heads, queries, keys]
        for block in self.blocks:
            tokens = block(tokens, attn_mask=seen)
        return self.head(_mean_of_tokens(self.norm(tokens), ids))


def _embedding(words: int, dim: int) -> nn.Embedding:
    """Vectors of the token ids, of length 1 on average before training; that of padding is zero and stays zero."""
    embedding = nn.Embedding(words, dim, padding_idx=TextSet.PADDING)
    with torch.no_grad():
        embedding.weight.mul_(dim**-0.5)  # from torch's longer ones small sets are learnt by heart
    return embedding


def _mean_of_tokens(vectors: Tensor, ids: Tensor) -> Tensor:
    """The mean over the places that hold a token: vectors [n, T, D], ids [n, T] -> [n, D]."""
    own = (ids != TextSet.PADDING)[..., None]
    return vectors.where(own, 0).sum(1) / own.sum(1).clamp(min=1)


def _places(tokens: Tensor) -> Tensor:
    """Sines and cosines that tell the places of tokens [n, T, D] apart (Vaswani et al., 2017): [T, D].

    Their length is nearly that of a new embedding, as in that paper, which instead lengthens the embeddings.
    """
    _, T, D = tokens.shape
    rates = 10_000 ** -(torch.arange(0, D, 2, device=tokens.device) / D)
    angles = torch.arange(T, device=tokens.device)[:, None] * rates  # [T, D / 2]
    return torch.cat([angles.sin(), angles.cos()], dim=1).to(tokens.dtype) * D**-0.5


@register
def lstm(classes: int = 2, words: int = 10_000, dim: int = 128, hidden: int = 128) -> nn.Module:
    """The LSTM for texts of F-Fidelity (appendix C): one layer of 128 units.

    The paper does not say how wide the embedding is, nor what of the states is classified: here 128, and their mean.
    """
    return Recurrent(classes, words, dim, hidden)


@register
def transformer(classes: int = 2, words: int = 10_000, dim: int = 512, depth: int = 2, heads: int = 4) -> nn.Module:
    """The Transformer of F-Fidelity (appendix C): dimension 512; 2 layers of 4 heads for SST-2, 4 of 8 for BoolQ.

    What the paper leaves open: the layers are timm's (normalised before attention, hidden layer of 4 x dim), places are
    told by sines and cosines, and the mean of the outputs is classified.
    """
    return Attentive(classes, words, dim, depth, heads)


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions with a shortcut, the block of ResNet-18."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.body = nn.Sequential(
            *_convolution(inputs, outputs, stride=stride),
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
    head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(dropout), nn.Linear(inputs, classes)
    return _parts(nn.Sequential(*layers), *head)


class Scale(nn.Module):
    """Multiplies by a constant."""

    def __init__(self, factor: float):
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        """The product."""
        return self.factor * x


def _shallow(
    sizes: tuple[int, int, int, int], convolution: Callable, between: Callable, linear: Callable
) -> nn.Sequential:
    """Three convolutions and a linear layer; `between` makes what follows a convolution, the pooling second.

    The sizes are channels, width, side of the images, classes.

    Raises:
        ValueError: an image side that three poolings do not divide.
    """
    channels, width, size, classes = sizes
    if size % 8:
        raise ValueError(f"expected images whose side is a multiple of 8, but got {size}")
    layers = [convolution(channels, width), *between(), convolution(width, 2 * width), *between()]
    features = nn.Sequential(*layers, convolution(2 * width, 2 * width))
    return _parts(features, between()[1], nn.Flatten(), linear(2 * width * (size // 8) ** 2, classes))


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
    network = _shallow(
        (channels, width, size, classes),
        convolution=partial(torchlip.SpectralConv2d, kernel_size=3, padding=1, eps_bjorck=None),
        between=lambda: [torchlip.LPReLU(), torchlip.ScaledAvgPool2d(2), nn.Dropout(dropout)],
        linear=partial(torchlip.SpectralLinear, eps_bjorck=None),
    )
    network.head.append(Scale(scale))
    return network


@register
def unbounded(classes: int = 10, channels: int = 3, size: int = 32, width: int = 48, dropout: float = 0.2) -> nn.Module:
    """The layers of `lipschitz` without its bound: shows what the bound does beyond what so few layers do.

    `features` ends where that of `lipschitz` does.

    Raises:
        ValueError: an image side that three poolings do not divide.
    """
    return _shallow(
        (channels, width, size, classes),
        convolution=partial(nn.Conv2d, kernel_size=3, padding=1),
        between=lambda: [nn.PReLU(), nn.AvgPool2d(2), nn.Dropout(dropout)],
        linear=nn.Linear,
    )
