"""ImageNet: class names, the standard crop, and folders of the user's own images.

Labels are the 1000 classes of ILSVRC 2012 in the order of their WordNet ids (n01440764 tench is 0). Images are
standardised by `MEAN` and `STD`; every network of `faithstudy.networks.pretrained` expects that.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from faithstudy.data.sets import ImageSet
from faithstudy.data.sources import Arrays, DatasetUnavailable, Files

MEAN = (0.485, 0.456, 0.406)
"""Per channel of the training images, as fractions of 255."""
STD = (0.229, 0.224, 0.225)
"""Likewise."""

_IMAGE = re.compile(r"\.jpe?g$|\.png$", re.IGNORECASE)
_WORDNET_ID = re.compile(r"n\d{8}")


@cache
def classes() -> tuple[str, ...]:
    """Return the names of the 1000 classes."""
    from torchvision.models import ResNet18_Weights  # takes a second, and few need it

    return tuple(ResNet18_Weights.DEFAULT.meta["categories"])


@cache
def wordnet_ids() -> tuple[str, ...]:
    """Return the WordNet ids of the 1000 classes."""
    from timm.data import ImageNetInfo

    return tuple(ImageNetInfo().label_names())


def view(shown: Any, size: int = 224) -> Any:
    """Return the standard view of an image, or of boxes on it, as torchvision has them.

    The shorter side is resized (bicubic) to size / 0.875, 256 for 224; the middle is kept.
    """
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms.v2 import functional

    resized = functional.resize(shown, [round(size / 0.875)], InterpolationMode.BICUBIC)
    return functional.center_crop(resized, [size])


def read(file: Path, size: int = 224) -> np.ndarray:
    """Return the standard view of a photograph, uint8 [3, size, size]."""
    with Image.open(file) as image:
        return np.ascontiguousarray(np.asarray(view(image.convert("RGB"), size)).transpose(2, 0, 1))


def foolbox(files: Files, split: str) -> Arrays:
    """Read the photographs of the package foolbox, the same in both splits; their names end in their class, `_243.jpg`.

    Returns:
        Inputs uint8 [20, 3, 224, 224] and labels int64 [20].
    """
    found = [re.fullmatch(r"imagenet_\d\d_(\d+)\.jpg", name) for name in sorted(files)]
    inputs = [read(files[name[0]]) for name in found if name]
    return np.stack(inputs), np.array([int(name[1]) for name in found if name], np.int64)


def images(path: Path) -> list[Path]:
    """The images in a folder, at any depth, in the order of their paths."""
    return [file for file in sorted(path.rglob("*")) if _IMAGE.search(file.name) and file.is_file()]


def folder(path: Path | str, size: int = 224, limit: int | None = None, seed: int = 0) -> ImageSet:
    """Read a folder of ImageNet photographs.

    The WordNet id of its class begins an image's file name (`n01440764_tench.JPEG`, as in the training archives), or is
    the name of the folder that it lies in (`val/n01440764/ILSVRC2012_val_00000293.JPEG`, as torchvision expects it).

    Args:
        path: the folder; images are found in it at any depth, in the order of their paths.
        size: of the square crop, see `view`.
        limit: only so many of the images, drawn at random; None: all.
        seed: of that draw.

    Raises:
        DatasetUnavailable: there is no such folder, or it has no image whose class can be told.
    """
    path = Path(path).expanduser()
    found = [(image, _class(image)) for image in images(path)]
    known = {name: label for label, name in enumerate(wordnet_ids())}
    labelled = [(image, known[name]) for image, name in found if name in known]
    if not labelled:
        raise DatasetUnavailable(
            f"found no ImageNet photographs in {path} ({len(found)} images, none with a known WordNet id). Register at "
            "image-net.org, fetch the validation images of ILSVRC 2012, sort them into folders by class "
            "(n01440764, ...), and give their folder as path; or give any folder of images named n01440764_... .JPEG."
        )
    if limit is not None and limit < len(labelled):
        chosen = torch.randperm(len(labelled), generator=torch.Generator().manual_seed(seed))[:limit]
        labelled = [labelled[i] for i in chosen.sort().values.tolist()]
    inputs = np.stack([read(image, size) for image, _ in labelled])
    labels = torch.tensor([label for _, label in labelled])
    return ImageSet(torch.from_numpy(inputs), labels, classes(), MEAN, STD)


def _class(image: Path) -> str | None:
    """The WordNet id in an image's name or, failing that, in those of its folders, the nearest first."""
    return next((found[0] for part in reversed(image.parts) if (found := _WORDNET_ID.match(part))), None)
