"""ImageNet: class names, the standard crop, folders of the user's own images, and Tiny-ImageNet.

Labels are the 1000 classes of ILSVRC 2012 in the order of their WordNet ids (n01440764 tench is 0). Images are
standardised by `MEAN` and `STD`; every network of `faithstudy.networks.pretrained` expects that.
"""

import io
import re
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import IO

import numpy as np
import torch
from PIL import Image

from faithstudy.data.sets import ImageSet
from faithstudy.data.sources import DatasetUnavailable

MEAN = (0.485, 0.456, 0.406)
"""Per channel of the training images, as fractions of 255."""
STD = (0.229, 0.224, 0.225)
"""Likewise."""

_IMAGE = re.compile(r"\.jpe?g$|\.png$", re.IGNORECASE)
_WORDNET_ID = re.compile(r"n\d{8}")

_TINY = """
    n01443537 n01629819 n01641577 n01644900 n01698640 n01742172 n01768244 n01770393 n01774384 n01774750 n01784675
    n01855672 n01882714 n01910747 n01917289 n01944390 n01945685 n01950731 n01983481 n01984695 n02002724 n02056570
    n02058221 n02074367 n02085620 n02094433 n02099601 n02099712 n02106662 n02113799 n02123045 n02123394 n02124075
    n02125311 n02129165 n02132136 n02165456 n02190166 n02206856 n02226429 n02231487 n02233338 n02236044 n02268443
    n02279972 n02281406 n02321529 n02364673 n02395406 n02403003 n02410509 n02415577 n02423022 n02437312 n02480495
    n02481823 n02486410 n02504458 n02509815 n02666196 n02669723 n02699494 n02730930 n02769748 n02788148 n02791270
    n02793495 n02795169 n02802426 n02808440 n02814533 n02814860 n02815834 n02823428 n02837789 n02841315 n02843684
    n02883205 n02892201 n02906734 n02909870 n02917067 n02927161 n02948072 n02950826 n02963159 n02977058 n02988304
    n02999410 n03014705 n03026506 n03042490 n03085013 n03089624 n03100240 n03126707 n03160309 n03179701 n03201208
    n03250847 n03255030 n03355925 n03388043 n03393912 n03400231 n03404251 n03424325 n03444034 n03447447 n03544143
    n03584254 n03599486 n03617480 n03637318 n03649909 n03662601 n03670208 n03706229 n03733131 n03763968 n03770439
    n03796401 n03804744 n03814639 n03837869 n03838899 n03854065 n03891332 n03902125 n03930313 n03937543 n03970156
    n03976657 n03977966 n03980874 n03983396 n03992509 n04008634 n04023962 n04067472 n04070727 n04074963 n04099969
    n04118538 n04133789 n04146614 n04149813 n04179913 n04251144 n04254777 n04259630 n04265275 n04275548 n04285008
    n04311004 n04328186 n04356056 n04366367 n04371430 n04376876 n04398044 n04399382 n04417672 n04456115 n04465501
    n04486054 n04487081 n04501370 n04507155 n04532106 n04532670 n04540053 n04560804 n04562935 n04596742 n04597913
    n06596364 n07579787 n07583066 n07614500 n07615774 n07695742 n07711569 n07715103 n07720875 n07734744 n07747607
    n07749582 n07753592 n07768694 n07871810 n07873807 n07875152 n07920052 n09193705 n09246464 n09256479 n09332890
    n09428293 n12267677
"""
TINY = tuple(_TINY.split())
"""The WordNet ids of Tiny-ImageNet in order."""


@cache
def classes() -> tuple[str, ...]:
    """Return the names of the 1000 classes."""
    from torchvision.models import ResNet18_Weights  # takes a second, and few need it

    return tuple(ResNet18_Weights.DEFAULT.meta["categories"])


@cache
def tiny_classes() -> tuple[str, ...]:
    """Return the names of the 200 classes of Tiny-ImageNet."""
    name = dict(zip(wordnet_ids(), classes(), strict=True))
    return tuple(name[identity] for identity in TINY)


@cache
def wordnet_ids() -> tuple[str, ...]:
    """Return the WordNet ids of the 1000 classes."""
    from timm.data import ImageNetInfo

    return tuple(ImageNetInfo().label_names())


def crop(image: Image.Image, size: int = 224) -> np.ndarray:
    """Return the standard view of a photograph, uint8 [3, size, size].

    The shorter side is resized (bicubic) to size / 0.875, 256 for 224; the middle is kept.
    """
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms.v2 import functional

    resized = functional.resize(image.convert("RGB"), round(size / 0.875), InterpolationMode.BICUBIC)
    return functional.pil_to_tensor(functional.center_crop(resized, size)).numpy()


def numbered(paths: list[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Read photographs whose file names end in their class, `..._243.jpg`, as the package foolbox names them.

    Returns:
        Inputs uint8 [N, 3, 224, 224] and labels int64 [N].
    """
    labels = [int(path.stem.rsplit("_", 1)[1]) for path in paths]
    return np.stack([_read(path, crop) for path in paths]), np.array(labels, np.int64)


def images(path: Path) -> list[Path]:
    """The images in a folder, at any depth, in the order of their paths."""
    return [file for file in sorted(path.rglob("*")) if _IMAGE.search(file.name) and file.is_file()]


def folder(path: Path | str, size: int = 224, limit: int | None = None, seed: int = 0) -> ImageSet:
    """Read a folder of ImageNet photographs.

    The WordNet id of its class begins an image's file name (`n01440764_tench.JPEG`, as in the training archives), or is
    the name of the folder that it lies in (`val/n01440764/ILSVRC2012_val_00000293.JPEG`, as torchvision expects it).

    Args:
        path: the folder; images are found in it at any depth, in the order of their paths.
        size: of the square crop, see `crop`.
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
    inputs = np.stack([_read(image, lambda picture: crop(picture, size)) for image, _ in labelled])
    labels = torch.tensor([label for _, label in labelled])
    return ImageSet(torch.from_numpy(inputs), labels, classes(), MEAN, STD)


def tiny(paths: list[Path], split: str) -> tuple[np.ndarray, np.ndarray]:
    """Read a split of Tiny-ImageNet from the path of its official archive, tiny-imagenet-200.zip.

    "test" is the official validation split, because the labels of the test split were not published.
    """
    (path,) = paths
    number = {name: label for label, name in enumerate(TINY)}
    with zipfile.ZipFile(path) as archive:
        names = [info.filename for info in archive.infolist()]
        if split == "train":
            images = [name for name in names if "/train/" in name and _IMAGE.search(name)]
            labelled = [(name, _class(Path(name))) for name in sorted(images, key=_natural)]
        else:
            (annotations,) = (name for name in names if name.endswith("/val/val_annotations.txt"))
            lines = archive.read(annotations).decode().splitlines()
            parent = annotations.rsplit("/", 1)[0]
            labelled = [(f"{parent}/images/{file}", name) for file, name, *_ in map(str.split, lines)]
        labels = np.array([number[name] for _, name in labelled], np.int64)
        inputs = np.stack([_read(io.BytesIO(archive.read(name)), _pixels) for name, _ in labelled])
    return inputs, labels


def _class(image: Path) -> str | None:
    """The WordNet id in an image's name or, failing that, in those of its folders, the nearest first."""
    for part in reversed(image.parts):
        if found := _WORDNET_ID.match(part):
            return found[0]
    return None


def _natural(name: str) -> list:
    """Sort key in which image 10 comes after image 9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def _pixels(image: Image.Image) -> np.ndarray:
    return np.asarray(image.convert("RGB")).transpose(2, 0, 1)


def _read(file: Path | IO[bytes], view: Callable[[Image.Image], np.ndarray]) -> np.ndarray:
    with Image.open(file) as image:
        return np.ascontiguousarray(view(image))
