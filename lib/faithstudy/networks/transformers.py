"""Vision Transformers of timm with trained weights: ViT-B, ViT-L, DeiT-B and any other, on ImageNet or fine-tuned.

Weights for ImageNet come from timm's own hub. Weights for another data set are a file of the reader's: there is no
official one. `view` makes of a set's images what such a network expects.
"""

from pathlib import Path

import timm
import torch
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor
from torch.nn.functional import interpolate

from faithstudy.data.sets import ImageSet
from faithstudy.data.sources import DatasetUnavailable, fingerprint
from faithstudy.networks import origins

_SUFFIXES = (".safetensors", ".pth", ".pt", ".bin")


def load(name: str, data: str, classes: int, weights: Path | str | None = None) -> VisionTransformer:
    """Return a Vision Transformer in eval mode.

    Args:
        name: of timm's registry, such as vit_base_patch16_224, vit_large_patch16_224 or deit_base_patch16_224.
        data: the data set that it classifies.
        classes: of that set.
        weights: a folder with a file `<name>-<data>.safetensors` (or .pth), a state dict of timm's network; None:
            timm's own weights, which are for ImageNet only.

    Raises:
        ValueError: timm has no such network, or it is no Vision Transformer.
        DatasetUnavailable: no weights; the message says what to put where.
    """
    if name not in timm.list_models():
        raise ValueError(f"timm has no network {name!r}; see timm.list_models('vit_*') and timm.list_models('deit_*')")
    how = f"save its state_dict() as {name}-{data}.safetensors, and give the file's folder as weights."
    if weights is not None:
        folder = Path(weights).expanduser()
        named = [folder / f"{name}-{data}{suffix}" for suffix in _SUFFIXES]
        if (file := next(filter(Path.is_file, named), None)) is None:
            raise DatasetUnavailable(f"there is no {named[0].name} (or {', '.join(_SUFFIXES[1:])}) in {folder}")
        source = f"the file {file.name}"
        network = timm.create_model(name, num_classes=classes, checkpoint_path=str(file))
    elif data.startswith("imagenet"):
        source = "timm's hub"
        try:
            network = timm.create_model(name, pretrained=True)
        except (OSError, RuntimeError) as error:
            raise DatasetUnavailable(
                f"the weights of {name} could not be fetched ({' '.join(str(error).split())[:200]}). Fetch them where "
                f"there is a network with timm.create_model({name!r}, pretrained=True), {how}"
            ) from error
    else:
        raise DatasetUnavailable(
            f"there are no official weights of {name} for {data}. Fine-tune timm's {name} with num_classes={classes} "
            f"on {data}, {how}"
        )
    if not isinstance(network, VisionTransformer):
        raise ValueError(f"{name} is a {type(network).__name__}, not a Vision Transformer of timm")
    checksum = fingerprint(*(tensor.numpy() for tensor in network.state_dict().values()))
    origins.use("pretrained", f"{name}-{data}", source=source, sha256=checksum)
    return network.eval()


def view(images: ImageSet, network: VisionTransformer) -> Tensor:
    """Return images as a network of timm expects them: its size (bilinear) and its mean and deviation, [N, C, H, W]."""
    about = network.pretrained_cfg
    mean, std = (torch.tensor(about[key]).view(-1, 1, 1) for key in ("mean", "std"))
    pixels = images.inputs.float().div_(255)
    if pixels.shape[-2:] != (size := tuple(network.patch_embed.img_size)):
        pixels = interpolate(pixels, size, mode="bilinear", align_corners=False, antialias=True)
    return (pixels - mean) / std
