"""The papers' own data sets, which only the profile `paper` asks for; `faithstudy.data.datasets` imports this for them.

    cifar100       50 000 / 10 000 photographs, 3 x 32 x 32, 100 classes
    eurosat        21 600 / 5 400 satellite pictures, 3 x 64 x 64, 10 kinds of land
    tiny-imagenet  100 000 / 10 000 photographs, 3 x 64 x 64, 200 classes
    sst2           67 349 / 872 phrases and sentences of GLUE's SST-2, negative or positive; training phrases overlap
    boolq          9 427 / 3 270 questions with a passage that answers them, no or yes
    pam            series of body-worn sensors, 17 channels x 600 steps, 8 activities
    boiler         series of a boiler, 20 channels x 36 steps, fault or none
    imagenet-vehicles  ImageNet's vehicles in three groups, with boxes, from folders of yours
    ct-contrast        slices of chest CT scans with or without a contrast agent, from a folder of yours

PAM and Boiler are those of TimeX (Owen Queen, Thomas Hartvigsen, Teddy Koker, Huan He, Theodoros Tsiligkaridis, Marinka
Zitnik: "Encoding Time-Series Explanations through Self-Supervised Model Behavior Consistency", NeurIPS 2023), whose
files have to be put by hand. Some are pickles, which may run code when they are opened: only those of numbers are.

The CT slices are the medical task of Few-class Fidelity (Marchadour, Soto Vega, Vermet, Hatt, 2025), which takes 2072
slices of LIDC-IDRI and LNDb. Which slices, their labels and the masks of the mediastinum that its authors drew are not
public, and neither collection may be passed on. So the reader names the slices in a table, `slices.csv`, in the folder
that holds the scans:

    file         a DICOM slice (LIDC-IDRI; needs the package pydicom), or a MetaImage header .mhd with its .raw (LNDb)
    slice        of a MetaImage, the number of the slice, from 0; else empty
    contrast     1 or 0; empty: whether the DICOM slice names a contrast agent (tag 0018,0010)
    split        train or test
    mask         an image of the same height and width, not black where the region is; empty: none, in any row
"""

import codecs
import csv
import pickle
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import interpolate

from faithstudy.data import formats, imagenet, texts, vehicles
from faithstudy.data.datasets import publish, register
from faithstudy.data.sets import ImageSet, SeriesSet, TextSet
from faithstudy.data.sources import Archive, Arrays, DatasetUnavailable, Files, Source, site

# The archives

_CIFAR100 = site("md5:03b5dce01913d631647c71ecec9e9cb8", "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz")
_EUROSAT = site(
    "md5:c8fa014336c82ac7804f0398fcb19387",
    "https://madm.dfki.de/files/sentinel/EuroSAT.zip",
    "https://huggingface.co/datasets/torchgeo/eurosat/resolve/c877bcd43f099cd0196738f714544e355477f3fd/EuroSAT.zip",
)
_TINY_IMAGENET = site("md5:90528d7ca1a48142e341f4ef8d21d0de", "http://cs231n.stanford.edu/tiny-imagenet-200.zip")
_SST2 = site("md5:9f81648d4199384278b86e315dac217c", "https://dl.fbaipublicfiles.com/glue/data/SST-2.zip")
_BOOLQ_SITE = "https://storage.googleapis.com/boolq"
_BOOLQ = (
    site("sha256:cc7a79d44479867e8323a7b0c5c1d82edf516ca34912201f9384c3a3d098d8db", f"{_BOOLQ_SITE}/train.jsonl"),
    site("sha256:ebc29ea3808c5c611672384b3de56e83349fe38fc1fe876fd29b674d81d0a80a", f"{_BOOLQ_SITE}/dev.jsonl"),
)

# Images

_CIFAR100_CLASSES = """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can castle
    caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin elephant
    flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree
    motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain plate
    poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake spider
    squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle
    wardrobe whale willow_tree wolf woman worm
"""
publish(
    "cifar100",
    Source("official site", (_CIFAR100,), formats.cifar100),
    classes=tuple(_CIFAR100_CLASSES.split()),
    mean=(0.5071, 0.4865, 0.4409),
    std=(0.2673, 0.2564, 0.2762),
)


def _pixels(paths: Iterable[Path]) -> np.ndarray:
    """Photographs of one size, uint8 [N, 3, H, W]."""
    return np.stack([np.asarray(Image.open(path).convert("RGB")).transpose(2, 0, 1) for path in paths])


_LAND = "AnnualCrop Forest HerbaceousVegetation Highway Industrial Pasture PermanentCrop Residential River SeaLake"
EUROSAT = tuple(_LAND.split())


def eurosat(files: Files, split: str) -> Arrays:
    """Read a split, which the publishers leave to the user: every fifth picture of each class is for testing.

    The classes take turns, so that the first pictures are of all classes.
    """
    found = [re.fullmatch(r"(\w+)_(\d+)\.jpg", name) for name in files]
    pictures = sorted((int(name[2]), EUROSAT.index(name[1]), name[0]) for name in found if name)
    chosen = [picture for picture in pictures if (picture[0] % 5 == 0) == (split == "test")]
    return _pixels(files[name] for *_, name in chosen), np.array([label for _, label, _ in chosen], np.int64)


publish(
    "eurosat",
    Source("the publishers' archive, RGB version", (_EUROSAT,), eurosat),
    classes=EUROSAT,
    # As widely used; unlike those of the other sets they were not derived from the images again.
    mean=(0.3444, 0.3803, 0.4078),
    std=(0.2037, 0.1366, 0.1148),
)

_TINY = """
    1 25 30 32 50 61 69 71 75 76 79 99 105 107 109 113 114 115 122 123 128 145 146 149 151 187 207 208 235 267 281 283
    285 286 291 294 301 308 309 311 313 314 315 319 323 325 329 338 341 345 347 349 353 354 365 367 372 386 387 398 400
    406 411 414 421 424 425 427 430 435 436 437 438 440 445 447 448 457 458 462 463 466 467 470 471 474 480 485 488 492
    496 500 508 509 511 517 525 526 532 542 543 557 562 565 567 568 570 573 576 604 605 612 614 619 621 625 627 635 645
    652 655 675 677 678 682 683 687 704 707 716 720 731 733 734 735 737 739 744 747 758 760 761 765 768 774 779 781 786
    801 806 808 811 815 817 821 826 837 839 842 845 849 850 853 862 866 873 874 877 879 887 888 890 899 900 909 910 917
    923 924 928 929 932 935 938 945 947 950 951 954 957 962 963 964 967 970 972 973 975 978 988
"""
TINY = tuple(map(int, _TINY.split()))
"""The places of the classes of Tiny-ImageNet among the 1000, in order."""


def tiny_imagenet(files: Files, split: str) -> Arrays:
    """Read a split of Tiny-ImageNet; "test" is its validation split: the labels of the test split are not public."""
    number = {imagenet.wordnet_ids()[place]: label for label, place in enumerate(TINY)}
    if split == "train":
        found = filter(None, (re.fullmatch(r"(n\d{8})_(\d+)\.JPEG", name) for name in files))
        labelled = [(name[0], name[1]) for name in sorted(found, key=lambda name: (name[1], int(name[2])))]
    else:
        labelled = [line.split()[:2] for line in files["val_annotations.txt"].read_text().splitlines()]
    labels = np.array([number[identity] for _, identity in labelled], np.int64)
    return _pixels(files[name] for name, _ in labelled), labels


publish(
    "tiny-imagenet",
    Source("official site", (_TINY_IMAGENET,), tiny_imagenet),
    classes=lambda: tuple(imagenet.classes()[place] for place in TINY),
    mean=(0.4802, 0.4481, 0.3975),
    std=(0.2770, 0.2691, 0.2821),
)


def imagenet_vehicles(
    split: str, path: Path | str, boxes: Path | str, size: int = 224, limit: int | None = None
) -> ImageSet:
    """Read the vehicles of ILSVRC 2012, with the box round the main object as the mask.

    Every eighth image of a class is for testing, the others are for training. An image without a box, or whose box the
    standard crop cuts off, is left out.

    Args:
        split: "train" or "test".
        path: the folder of the training images, one folder for each WordNet id.
        boxes: the folder of the boxes, `<id>/<image>.xml`, as the archive ILSVRC2012_bbox_train_v2 holds them.
        size: of the square crop, see `faithstudy.data.imagenet.view`.
        limit: only so many images of each class; None: all.

    Raises:
        DatasetUnavailable: no image of these classes has a box there; the message says what to put where.
    """
    path, boxes = Path(path).expanduser(), Path(boxes).expanduser()
    shown = []
    for group, members in enumerate(vehicles.group_indices()):
        for identity in (imagenet.wordnet_ids()[member] for member in members):
            found = imagenet.images(path / identity)
            for file in [f for i, f in enumerate(found) if (i % 8 == 7) == (split == "test")][:limit]:
                mask = _box(boxes / identity / f"{file.stem}.xml", size)
                if mask.any():
                    shown.append((torch.from_numpy(imagenet.read(file, size)), group, mask))
    if not shown:
        raise DatasetUnavailable(
            f"found no vehicles of ImageNet with boxes in {path} and {boxes}. Register at image-net.org, fetch the "
            "training images of ILSVRC 2012 and the archive ILSVRC2012_bbox_train_v2, unpack both into folders named "
            "by WordNet id (n02814533, ...), and give these as path and boxes."
        )
    images, labels, masks = zip(*shown, strict=True)
    about = tuple(vehicles.IMAGENET), imagenet.MEAN, imagenet.STD
    return ImageSet(torch.stack(images), torch.tensor(labels), *about, torch.stack(masks))


def _box(file: Path, size: int) -> Tensor:
    """The first box of an annotation in the standard crop, bool [size, size]; nothing where there is none left."""
    from torchvision.tv_tensors import BoundingBoxes

    mask = torch.zeros(size, size, dtype=torch.bool)
    if file.is_file():
        tree = ElementTree.parse(file)
        corners = [float(tree.findtext(f"object/bndbox/{name}")) for name in ("xmin", "ymin", "xmax", "ymax")]
        shape = tuple(int(tree.findtext(f"size/{side}")) for side in ("height", "width"))
        seen = imagenet.view(BoundingBoxes([corners], format="XYXY", canvas_size=shape), size)
        left, top, right, bottom = seen[0].round().int().tolist()
        mask[top:bottom, left:right] = True
    return mask


register("imagenet-vehicles", imagenet_vehicles)

# CT

CT_CLASSES = ("no contrast agent", "contrast agent")
_WINDOW = (-1000.0, 600.0)  # Hounsfield units that become black and white: air, and dense bone or contrast agent
_TYPES = {"MET_SHORT": "i2", "MET_USHORT": "u2", "MET_INT": "i4", "MET_UCHAR": "u1", "MET_FLOAT": "f4"}


def ct_contrast(split: str, path: Path | str, size: int = 224, limit: int | None = None) -> ImageSet:
    """Read the slices of a split, resized to a square, from a folder with a table `slices.csv`.

    Args:
        split: "train" or "test".
        path: the folder.
        size: height and width in pixels.
        limit: only the first so many slices; None: all.

    Raises:
        DatasetUnavailable: there is no such table, or it has no slice of this split.
        ValueError: a slice's label is neither in the table nor in its file.
        TypeError: only some slices have masks.
    """
    table = Path(path).expanduser() / "slices.csv"
    if not table.is_file():
        raise DatasetUnavailable(
            f"found no {table}. Fetch LIDC-IDRI from cancerimagingarchive.net and LNDb from lndb.grand-challenge.org, "
            "choose axial slices, and list them there with the columns file, slice, contrast, split, mask; see the "
            "documentation of faithstudy.data.papers."
        )
    rows = pd.read_csv(table, dtype=str, keep_default_na=False)
    rows = rows[rows["split"] == split].to_dict("records")[:limit]
    if not rows:
        raise DatasetUnavailable(f"{table} has no slice whose split is {split!r}")
    images, labels, masks = zip(*(_slice(table.parent, row, size) for row in rows), strict=True)
    drawn = torch.stack(masks) if any(row["mask"] for row in rows) else None
    return ImageSet(torch.stack(images), torch.tensor(labels), CT_CLASSES, (0.5,), (0.25,), drawn)


def _slice(folder: Path, row: Mapping[str, str], size: int) -> tuple[Tensor, int, Tensor | None]:
    file, contrast = folder / row["file"], row["contrast"]
    if file.suffix.lower() == ".mhd":
        units = read_metaimage(file)[int(row["slice"])]
    else:
        units, agent = read_dicom(file)
        contrast = contrast or int(agent)
    low, high = _WINDOW
    shown = torch.from_numpy(np.clip((units - low) / (high - low), 0, 1).astype(np.float32))
    resized = interpolate(shown[None, None], (size, size), mode="bilinear", antialias=True, align_corners=False)
    mask = None
    if row["mask"]:
        drawn = torch.from_numpy(np.asarray(Image.open(folder / row["mask"]).convert("L")) > 0)
        mask = interpolate(drawn[None, None].float(), (size, size), mode="nearest-exact")[0, 0] > 0
    return (resized[0] * 255).round().to(torch.uint8), int(contrast), mask


def read_dicom(file: Path) -> tuple[np.ndarray, bool]:
    """Read a DICOM slice: Hounsfield units [H, W], and whether it names a contrast agent."""
    import pydicom  # few need it

    data = pydicom.dcmread(file)
    units = data.pixel_array * float(data.get("RescaleSlope", 1)) + float(data.get("RescaleIntercept", 0))
    return units, bool(str(data.get("ContrastBolusAgent", "")).strip())


def read_metaimage(header: Path) -> np.ndarray:
    """Read an uncompressed MetaImage: Hounsfield units [slices, H, W]."""
    lines = (line.split("=", 1) for line in header.read_text().splitlines() if "=" in line)
    fields = {key.strip(): value.strip() for key, value in lines}
    order = ">" if "True" in (fields.get("BinaryDataByteOrderMSB"), fields.get("ElementByteOrderMSB")) else "<"
    units = np.fromfile(header.with_name(fields["ElementDataFile"]), order + _TYPES[fields["ElementType"]])
    return units.reshape([int(n) for n in reversed(fields["DimSize"].split())])


register("ct-contrast", ct_contrast)

# Texts


def glue(files: Files, split: str) -> Arrays:
    """Read SST-2 of GLUE: tab-separated, a header, a column `label` (0 or 1) and one of the sentences."""
    path = files[{"train": "train.tsv", "test": "dev.tsv"}[split]]  # the labels of the test split are not public
    rows = pd.read_csv(path, sep="\t", quoting=csv.QUOTE_NONE, keep_default_na=False)
    return texts.join(rows.drop(columns="label").iloc[:, 0], rows["label"])


publish(
    "sst2",
    Source("official site", (_SST2,), glue),
    Source("the unpacked files, from wherever you have them", (Archive("train.tsv"), Archive("dev.tsv")), glue),
    kind=TextSet,
    classes=texts.POLARITY,
)


def boolq(files: Files, split: str) -> Arrays:
    """Read a file of BoolQ, a JSON object a line; a text is the question, a question mark and the passage."""
    path = files[{"train": "train.jsonl", "test": "dev.jsonl"}[split]]  # likewise
    rows = pd.read_json(path, lines=True, dtype=False)
    return texts.join(rows["question"] + " ? " + rows["passage"], rows["answer"].astype(int))


publish("boolq", Source("official site", _BOOLQ, boolq), kind=TextSet, classes=("no", "yes"))

# Time series

_RELEASE = "TimeX's release, doi:10.7910/DVN/B0DEQJ on dataverse.harvard.edu"
_PARTS = ("train", "validation", "test")  # of a split, in the order of its file
_STEPS = 6  # measurements of the boiler that one of its series is made of


def pam(files: Files, split: str) -> Arrays:
    """Read a part of PAM: activities by body-worn sensors, 17 channels x 600 steps, 8 classes.

    Standardised as TimeX does: per channel by the positive values of the training series, the others are missing and
    become 0.

    Returns:
        Inputs float32 [N, 600, 17] and labels int64 [N].
    """
    values, outcomes, parts = (_npy(files[name]) for name in _PAM)
    parts = dict(zip(_PARTS, map(_places, parts), strict=True))
    values = np.where(values > 0, values, np.nan).astype(np.float64)
    mean, std = (of(values[parts["train"]], (0, 1)) for of in (np.nanmean, np.nanstd))
    inputs = np.nan_to_num((values[parts[split]] - mean) / std.clip(1e-7), nan=0).astype(np.float32)
    return inputs, np.asarray(outcomes)[parts[split], -1].astype(np.int64)


def boiler(files: Files, split: str) -> Arrays:
    """Read a part of Boiler: blow-down valve faults from 20 sensors, 36 steps, 2 classes.

    A series ends at a measurement of full.csv: its last 1, 2, ... 6 measurements one after the other, each filled up
    with zeros to six steps. Values are left as they are.

    Returns:
        Inputs float32 [N, 36, C] and labels int64 [N].
    """
    table, parts = (files[name] for name in _BOILER)
    rows = pd.read_csv(table).to_numpy()[:, 2:]  # without number and time; the label comes last
    places = _places(_pt(parts)[_PARTS.index(split)])
    windows = np.lib.stride_tricks.sliding_window_view(rows[:, :-1], _STEPS, axis=0)[places]  # [N, C, 6]
    windows = windows.astype(np.float32).transpose(0, 2, 1)
    blocks = np.zeros((len(places), _STEPS, *windows.shape[1:]), np.float32)  # [N, 6, 6, C]
    for block in range(_STEPS):
        blocks[:, block, : block + 1] = windows[:, _STEPS - 1 - block :]
    return blocks.reshape(len(places), -1, windows.shape[2]), rows[_STEPS - 1 :, -1][places].astype(np.int64)


class _Numbers(pickle.Unpickler):
    """Opens pickles of arrays of numbers, and refuses all others before anything of them runs."""

    def find_class(self, module: str, name: str) -> Any:
        arrays = module.startswith("numpy.") or module in ("numpy", "_codecs")
        if not arrays or name not in ("_reconstruct", "scalar", "ndarray", "dtype", "encode"):
            raise ValueError(f"it holds {module}.{name}, which is no array of numbers; it was not opened")
        return super().find_class(module, name)


def _npy(path: Path) -> np.ndarray:
    """An array of a .npy file, also one of arrays, which numpy pickles after a header of one line."""
    try:
        return np.load(path)
    except ValueError:  # it is pickled
        with path.open("rb") as file:
            file.readline()
            return _Numbers(file).load()


def _pt(path: Path) -> Any:
    """Read what torch saved, if it is made of tensors, arrays and Python's numbers and lists."""
    rebuild = [number.__reduce__()[0] for number in (np.zeros(1), np.int64(0))]  # numpy 2 has renamed its core
    known = [(of, f"numpy.{core}.multiarray.{of.__name__}") for of in rebuild for core in ("core", "_core")]
    known += [np.ndarray, np.dtype, codecs.encode, *(type(np.dtype(kind)) for kind in (np.int32, np.int64))]
    with torch.serialization.safe_globals(known):
        return torch.load(path, map_location="cpu", weights_only=True)


def _places(indices: Any) -> np.ndarray:
    return np.asarray(indices).astype(np.int64).reshape(-1)


_PAM = ("PTdict_list.npy", "arr_outcomes.npy", "PAMAP2_split_1.npy")  # values, labels, the first of five random splits
publish(
    "pam",
    Source(_RELEASE, tuple(map(Archive, _PAM)), pam),
    kind=SeriesSet,
    classes=tuple(f"activity {number}" for number in range(1, 9)),
    mean=(0.0,) * 17,  # standardised as TimeX does
    std=(1.0,) * 17,
)

_BOILER = ("full.csv", "split=1.pt")  # measurements, and the first of five random splits
publish(
    "boiler",
    Source(_RELEASE, tuple(map(Archive, _BOILER)), boiler),
    kind=SeriesSet,
    classes=("no fault", "fault"),
    mean=(0.0,) * 20,  # left as they are, as TimeX does
    std=(1.0,) * 20,
)
