"""The tasks of few classes: vehicles at known places, ImageNet's with boxes, CT slices, digits in two halves."""

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, generate_uid
from torch.nn.functional import interpolate

from faithstudy.data import datasets, imagenet, papers, vehicles
from faithstudy.data.sets import ImageSet
from faithstudy.data.sources import DatasetUnavailable
from faithstudy.networks import models

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
IMAGES = torch.randint(0, 256, (80, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(80) % 10


def placed(split="test", **options):
    return vehicles.place(IMAGES, LABELS, CLASSES, vehicles.Options(**options), split)


# Vehicles of CIFAR-10


@pytest.mark.parametrize("size", [8, 20, 32])
def test_the_vehicle_is_in_the_mask_and_an_animal_around_it(size):
    images, groups, masks = placed(size=size)
    assert (masks.flatten(1).sum(1) == size**2).all()
    animals = IMAGES[[CLASSES[label] in vehicles._ANIMALS for label in LABELS]]
    kinds = [kind for members in vehicles.GROUPS.values() for kind in members]
    for image, group, mask in zip(images, groups.tolist(), masks, strict=True):
        rows, columns = mask.any(1).nonzero().flatten(), mask.any(0).nonzero().flatten()
        assert len(rows) == len(columns) == size
        inside = image[:, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        members = [CLASSES.index(kind) for kind in tuple(vehicles.GROUPS.values())[group]]
        originals = IMAGES[torch.isin(LABELS, torch.tensor(members))].float()
        small = interpolate(originals, (size, size), mode="bilinear", antialias=True, align_corners=False).round()
        assert (small == inside).flatten(1).all(1).any()
        if size < 32:
            assert (animals[:, :, ~mask] == image[:, ~mask]).flatten(1).all(1).any()
    assert len(kinds) == 4


def test_groups_are_of_equal_size():
    _, groups, _ = placed()
    assert groups.bincount().tolist() == [8, 8, 8]


def test_the_first_images_do_not_depend_on_how_many_are_taken_but_on_seed_and_split():
    whole, some, other, train = placed(), placed(limit=5), placed(seed=1), placed(split="train")
    for one, two in zip(whole, some, strict=True):
        assert torch.equal(one[:5], two)
    assert not torch.equal(whole[2], other[2])
    assert not torch.equal(whole[2], train[2])


@pytest.mark.parametrize("wrong", [{"size": 7}, {"size": 33}])
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        vehicles.Options(**wrong)


def test_what_the_sets_need_is_told():
    for name, needed in (
        ("imagenet-vehicles", "path and boxes"),
        ("ct-contrast", "path"),
        ("imagenet-folder", "path"),
    ):
        assert name in datasets.names()
        with pytest.raises(TypeError, match=f"{name} needs {needed}, where your files lie"):
            datasets.load(name, "test")
    with pytest.raises(TypeError, match="unexpected keyword argument 'sise'"):
        datasets.load("cifar10-vehicles", "test", sise=3)


def test_digits_in_halves_are_colored_mnist_in_two_classes(monkeypatch):
    digits = ImageSet(IMAGES[:20], LABELS[:20], tuple("0123456789"), (0.0,) * 3, (1.0,) * 3, IMAGES[:20, 0] > 99)
    monkeypatch.setattr(datasets, "_colored", lambda split, **options: digits)
    halves = datasets.load("colored-mnist-halves", "test", share=0.2)
    assert halves.classes == ("0-4", "5-9")
    assert halves.labels.tolist() == [int(label > 4) for label in LABELS[:20].tolist()]
    assert torch.equal(halves.inputs, digits.inputs)


# ImageNet's vehicles


def test_the_groups_of_imagenet_are_classes_of_imagenet_and_disjoint():
    groups = vehicles.group_indices()
    flat = [index for group in groups for index in group]
    assert len(flat) == len(set(flat)) == 16
    names = [imagenet.classes()[index] for index in groups[0]]
    assert names == list(vehicles.IMAGENET["private"])


XML = """<annotation><size><width>{w}</width><height>{h}</height><depth>3</depth></size>
<object><name>x</name><bndbox><xmin>{box[0]}</xmin><ymin>{box[1]}</ymin><xmax>{box[2]}</xmax><ymax>{box[3]}</ymax></bndbox>
</object></annotation>"""


@pytest.fixture
def archive(tmp_path):
    """Nine images of two classes; of each a green rectangle is what the box names."""
    (private, *_), (wheels, *_), _ = vehicles.group_indices()
    for identity in (imagenet.wordnet_ids()[private], imagenet.wordnet_ids()[wheels]):
        (tmp_path / "images" / identity).mkdir(parents=True)
        (tmp_path / "boxes" / identity).mkdir(parents=True)
        for number in range(9):
            picture = np.zeros((200, 300, 3), np.uint8)
            box = (120, 60 + number, 180, 140)
            picture[box[1] : box[3], box[0] : box[2], 1] = 255
            name = f"{identity}_{number}"
            Image.fromarray(picture).save(tmp_path / "images" / identity / f"{name}.JPEG", quality=100, subsampling=0)
            (tmp_path / "boxes" / identity / f"{name}.xml").write_text(XML.format(w=300, h=200, box=box))
    return tmp_path


def test_imagenets_boxes_go_where_the_crop_puts_their_object(archive):
    options = {"path": archive / "images", "boxes": archive / "boxes", "size": 56}
    test, train = (datasets.load("imagenet-vehicles", split, **options) for split in ("test", "train"))
    assert (len(test), len(train)) == (2, 16)
    assert test.classes == tuple(vehicles.IMAGENET)
    assert sorted(test.labels.tolist()) == [0, 1]
    for picture, mask in zip(train.inputs, train.masks, strict=True):
        bright = picture[1] > 127
        both, either = (bright & mask).sum(), (bright | mask).sum()
        assert both / either > 0.85  # up to a pixel at each side of a rectangle of about 19 x 25


def test_an_image_without_a_box_is_left_out_and_none_at_all_is_told(archive):
    for file in (archive / "boxes").rglob("*_3.xml"):
        file.unlink()
    options = {"path": archive / "images", "size": 56}
    assert len(datasets.load("imagenet-vehicles", "train", boxes=archive / "boxes", **options)) == 14
    with pytest.raises(DatasetUnavailable, match=r"no vehicles of ImageNet with boxes in .*ILSVRC2012_bbox_train_v2"):
        datasets.load("imagenet-vehicles", "train", boxes=archive, **options)


# CT


@pytest.fixture
def scans(tmp_path):
    """Three slices of a MetaImage, two with a mask, as LNDb has them."""
    units = np.full((3, 20, 30), -1000, "<i2")
    units[1, 5:10] = 600
    units[2] = -200
    units.tofile(tmp_path / "scan.raw")
    (tmp_path / "scan.mhd").write_text(
        "NDims = 3\nDimSize = 30 20 3\nElementType = MET_SHORT\nElementDataFile = scan.raw\n"
    )
    drawn = np.zeros((20, 30), np.uint8)
    drawn[5:10] = 255
    Image.fromarray(drawn).save(tmp_path / "mask.png")
    return tmp_path


def table(folder, *rows):
    columns = ["file", "slice", "contrast", "split", "mask"]
    pd.DataFrame(rows, columns=columns).to_csv(folder / "slices.csv", index=False)


def test_ct_slices_are_read_as_their_table_says(scans):
    table(scans, ("scan.mhd", 1, 1, "test", "mask.png"), ("scan.mhd", 2, 0, "test", "mask.png"))
    read = datasets.load("ct-contrast", "test", path=scans, size=20)
    assert read.inputs.shape == (2, 1, 20, 20)
    assert read.labels.tolist() == [1, 0]
    assert read.classes == papers.CT_CLASSES
    assert read.inputs[0, 0, 7, 10] == 255  # the upper end of the window
    assert read.inputs[0, 0, 15, 10] == 0
    assert read.inputs[1, 0, 7, 10] == round(255 * 800 / 1600)
    assert read.masks.shape == (2, 20, 20)
    assert read.masks[0].nonzero()[:, 0].unique().tolist() == [5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("rows", "error", "complaint"),
    [
        ([("scan.mhd", 1, "", "test", "")], ValueError, "invalid literal"),
        (
            [("scan.mhd", 1, 1, "test", "mask.png"), ("scan.mhd", 2, 1, "test", "")],
            TypeError,
            "NoneType",
        ),
        ([("scan.mhd", 1, 1, "train", "")], DatasetUnavailable, "no slice whose split is 'test'"),
    ],
)
def test_a_table_that_does_not_say_enough_is_told(scans, rows, error, complaint):
    table(scans, *rows)
    with pytest.raises(error, match=complaint):
        datasets.load("ct-contrast", "test", path=scans, size=20)


def test_no_table_says_what_to_fetch_and_where_to_put_it(tmp_path):
    with pytest.raises(DatasetUnavailable, match=r"found no .*slices\.csv\. Fetch LIDC-IDRI .* file, slice, contrast"):
        datasets.load("ct-contrast", "test", path=tmp_path)


def test_dicom_slices_give_hounsfield_units_and_their_contrast_agent(tmp_path):
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = CTImageStorage, generate_uid()
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    data = FileDataset(str(tmp_path / "a.dcm"), {}, file_meta=meta, preamble=b"\0" * 128)
    data.Rows, data.Columns, data.BitsAllocated, data.BitsStored, data.HighBit = 8, 8, 16, 16, 15
    data.SamplesPerPixel, data.PhotometricInterpretation, data.PixelRepresentation = 1, "MONOCHROME2", 0
    data.RescaleSlope, data.RescaleIntercept, data.ContrastBolusAgent = 2, -1024, "iodine"
    data.PixelData = np.full((8, 8), 512, "<u2").tobytes()
    data.save_as(tmp_path / "a.dcm")
    units, contrast = papers.read_dicom(tmp_path / "a.dcm")
    assert units.shape == (8, 8)
    assert (units == 0).all()
    assert contrast
    table(tmp_path, ("a.dcm", "", "", "test", ""))
    read = datasets.load("ct-contrast", "test", path=tmp_path, size=8)
    assert read.labels.tolist() == [1]
    assert (read.inputs == round(255 * 1000 / 1600)).all()
    assert read.masks is None


# Networks


def test_grouped_classes_have_the_summed_probabilities_of_their_members():
    torch.manual_seed(0)
    network = torch.nn.Linear(5, 6)
    groups = [[0, 3], [4], [1, 5]]
    x = torch.randn(4, 5)
    inside = network(x)[:, [0, 3, 4, 1, 5]].softmax(1)
    expected = torch.stack([inside[:, :2].sum(1), inside[:, 2], inside[:, 3:].sum(1)], 1)
    torch.testing.assert_close(models.Grouped(network, groups)(x).softmax(1), expected)


def test_networks_for_photographs_have_relus_that_explainers_can_replace():
    network = models.build("photographs", architecture="resnet18", classes=3, channels=1).eval()
    relus = [module for module in network.modules() if isinstance(module, torch.nn.ReLU)]
    assert relus
    assert not any(module.inplace for module in relus)
    assert network(torch.randn(1, 1, 64, 64)).shape == (1, 3)


def test_a_representation_is_what_the_last_layer_sees():
    torch.manual_seed(0)
    network = models.build("cnn3", classes=3, width=4).eval()
    x = torch.randn(5, 3, 16, 16)
    seen = models.representation(network, x, batch_size=2)
    with torch.no_grad():
        torch.testing.assert_close(network.head[-1](seen), network(x))
    assert not any(module._forward_pre_hooks for module in network.modules())
