"""Slices of chest CT scans with or without a contrast agent, the medical task of Few-class Fidelity, from your files.

The paper (Marchadour, Soto Vega, Vermet, Hatt, 2025) takes 2072 slices of LIDC-IDRI and LNDb. Which slices, their
labels and the masks of the mediastinum that its authors drew are not public, and neither collection may be passed on.
So the reader names the slices in a table, `slices.csv`, in the folder that holds the scans:

    file         a DICOM slice (LIDC-IDRI), or a MetaImage header .mhd with its .raw beside it (LNDb)
    slice        of a MetaImage, the number of the slice, from 0; else empty
    contrast     1 or 0; empty: whether the DICOM slice names a contrast agent (tag 0018,0010)
    split        train or test
    mask         an image of the same height and width, not black where the region is; empty: none
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import interpolate

from faithstudy.data.sets import ImageSet
from faithstudy.data.sources import DatasetUnavailable

CLASSES = ("no contrast agent", "contrast agent")
WINDOW = (-1000.0, 600.0)
"""Hounsfield units that become black and white: air, and dense bone or contrast agent."""

_COLUMNS = ("file", "slice", "contrast", "split", "mask")
_TYPES = {"MET_SHORT": "<i2", "MET_USHORT": "<u2", "MET_INT": "<i4", "MET_UCHAR": "u1", "MET_FLOAT": "<f4"}


def load(split: str, path: Path | str, size: int = 224, limit: int | None = None) -> ImageSet:
    """Read the slices of a split, resized to a square, from a folder with a table `slices.csv`.

    Args:
        split: "train" or "test".
        path: the folder.
        size: height and width in pixels.
        limit: only the first so many slices; None: all.

    Raises:
        DatasetUnavailable: there is no such table, or it has no slice of this split.
        ValueError: the table lacks a column; a slice's label is neither in the table nor in its file; only some slices
            have masks.
    """
    path = Path(path).expanduser()
    table = path / "slices.csv"
    if not table.is_file():
        raise DatasetUnavailable(
            f"found no {table}. Fetch LIDC-IDRI from cancerimagingarchive.net and LNDb from lndb.grand-challenge.org, "
            "choose axial slices, and list them there with the columns file, slice, contrast, split, mask; see the "
            "documentation of faithstudy.data.ct."
        )
    rows = pd.read_csv(table, dtype=str, keep_default_na=False)
    if lacking := [column for column in _COLUMNS if column not in rows]:
        raise ValueError(f"{table} lacks the columns {', '.join(lacking)}; see the documentation of faithstudy.data.ct")
    rows = rows[rows["split"] == split].to_dict("records")[:limit]
    if not rows:
        raise DatasetUnavailable(f"{table} has no slice whose split is {split!r}")
    images, labels, masks = zip(*(_read(path, row, size) for row in rows), strict=True)
    known = [mask is not None for mask in masks]
    if any(known) and not all(known):
        raise ValueError(
            f"{table}: {sum(known)} of {len(known)} slices of {split} have a mask; give one to all, or none"
        )
    return ImageSet(
        torch.stack(images), torch.tensor(labels), CLASSES, (0.5,), (0.25,), torch.stack(masks) if all(known) else None
    )


def _read(folder: Path, row: Mapping[str, str], size: int) -> tuple[Tensor, int, Tensor | None]:
    file = folder / row["file"]
    if file.suffix.lower() == ".mhd":
        units, contrast = read_metaimage(file)[int(row["slice"])], None
    else:
        units, contrast = read_dicom(file)
    contrast = bool(int(row["contrast"])) if row["contrast"] else contrast
    if contrast is None:
        raise ValueError(f"{file}: its column contrast is empty, and a MetaImage does not say it; give 0 or 1")
    low, high = WINDOW
    shown = torch.from_numpy(np.clip((units - low) / (high - low), 0, 1).astype(np.float32))
    resized = interpolate(shown[None, None], (size, size), mode="bilinear", antialias=True, align_corners=False)
    mask = None
    if row["mask"]:
        with Image.open(folder / row["mask"]) as image:
            drawn = torch.from_numpy(np.asarray(image.convert("L")) > 0)
        mask = interpolate(drawn[None, None].float(), (size, size), mode="nearest-exact")[0, 0] > 0
    return (resized[0] * 255).round().to(torch.uint8), int(contrast), mask


def read_dicom(file: Path) -> tuple[np.ndarray, bool]:
    """Read a DICOM slice: Hounsfield units [H, W], and whether it names a contrast agent.

    Raises:
        DatasetUnavailable: the package pydicom is not installed.
    """
    try:
        import pydicom  # few need it
    except ImportError as error:
        raise DatasetUnavailable(
            f"reading the DICOM slice {file} needs the package pydicom: pip install pydicom"
        ) from error

    data = pydicom.dcmread(file)
    units = data.pixel_array * float(data.get("RescaleSlope", 1)) + float(data.get("RescaleIntercept", 0))
    return units, bool(str(data.get("ContrastBolusAgent", "")).strip())


def read_metaimage(header: Path) -> np.ndarray:
    """Read an uncompressed MetaImage: Hounsfield units [slices, H, W].

    Raises:
        ValueError: a compressed image, or a type of numbers that CT scans do not have.
    """
    lines = (line.split("=", 1) for line in header.read_text().splitlines() if "=" in line)
    fields = {key.strip(): value.strip() for key, value in lines}
    if fields.get("CompressedData", "False") == "True" or fields["ElementType"] not in _TYPES:
        raise ValueError(f"{header}: expected an uncompressed MetaImage of {', '.join(_TYPES)}, but got {fields}")
    shape = tuple(int(n) for n in reversed(fields["DimSize"].split()))
    numbers = np.dtype(_TYPES[fields["ElementType"]])
    if fields.get("BinaryDataByteOrderMSB", fields.get("ElementByteOrderMSB", "False")) == "True":
        numbers = numbers.newbyteorder(">")
    return np.fromfile(header.with_name(fields["ElementDataFile"]), numbers).reshape(shape)
