"""ImageNet, Tiny-ImageNet, CIFAR-100 and EuroSAT: small files of the official formats, written here and read back."""

import hashlib
import io
import tarfile
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from faithstudy.data import cache, datasets, imagenet, papers, sources
from faithstudy.data.sources import DatasetUnavailable

GENERATOR = np.random.default_rng(0)


def picture(colour, size=(64, 64), mode="RGB"):
    """The bytes of a JPEG of one colour; such a picture survives compression and resizing."""
    stream = io.BytesIO()
    Image.new(mode, size, colour).save(stream, "JPEG", quality=95)
    return stream.getvalue()


def put_by_hand(monkeypatch, tmp_path, name, content):
    """Make an archive the one official archive of a collection, put into the cache by hand."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    (source,) = datasets.COLLECTIONS[name].sources
    (archive,) = source.archives
    placed = sources.by_hand(name)
    placed.mkdir(parents=True)
    (placed / archive.name).write_bytes(content)
    archive = replace(archive, checksum=f"sha256:{hashlib.sha256(content).hexdigest()}")
    collection = replace(datasets.COLLECTIONS[name], sources=(replace(source, archives=(archive,)),))
    monkeypatch.setitem(datasets.COLLECTIONS, name, collection)


def test_cifar100_reads_records_with_a_coarse_and_a_fine_label(monkeypatch, tmp_path):
    inputs = GENERATOR.integers(0, 256, (5, 3, 32, 32), dtype=np.uint8)
    coarse, fine = np.arange(5, dtype=np.uint8), np.array([99, 0, 7, 41, 7], np.uint8)
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, part in (("train", slice(0, 3)), ("test", slice(3, 5))):
            data = np.concatenate([coarse[part, None], fine[part, None], inputs[part].reshape(-1, 3072)], 1).tobytes()
            member = tarfile.TarInfo(f"cifar-100-binary/{name}.bin")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    put_by_hand(monkeypatch, tmp_path, "cifar100", stream.getvalue())
    train, test = datasets.load("cifar100"), datasets.load("cifar100", "test")
    np.testing.assert_array_equal(torch.cat([train.inputs, test.inputs]).numpy(), inputs)
    assert train.labels.tolist() + test.labels.tolist() == fine.tolist()
    assert len(train.classes) == 100
    assert [train.classes[i] for i in (0, 41, 99)] == ["apple", "lawn_mower", "worm"]
    assert list(train.classes) == sorted(train.classes)
    assert datasets.load("cifar100").model_inputs().shape == (3, 3, 32, 32)  # the second time from the cache


def eurosat_archive(size=(64, 64)):
    """Five pictures of each class; the colour tells the class and the number."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for place, name in enumerate(papers.EUROSAT):
            for number in range(1, 6):
                data = picture((20 * place, 40 * number, 128), size)
                archive.writestr(f"2750/{name}/{name}_{number}.jpg", data)
    return stream.getvalue()


def test_eurosat_reads_its_archive_and_every_fifth_picture_of_a_class_is_for_testing(monkeypatch, tmp_path):
    put_by_hand(monkeypatch, tmp_path, "eurosat", eurosat_archive())
    train, test = datasets.load("eurosat"), datasets.load("eurosat", "test")
    assert (len(train), len(test)) == (40, 10)
    assert train.classes == papers.EUROSAT
    for part, number in ((train, torch.arange(40) // 10 + 1), (test, torch.full((10,), 5))):
        colours = torch.stack([20 * part.labels, 40 * number, torch.full_like(number, 128)], 1).float()
        assert torch.allclose(part.inputs.float().mean((2, 3)), colours, atol=4)
    assert train.labels[:10].tolist() == list(range(10))  # the classes take turns
    plain = datasets.load("eurosat", standardised=False)
    assert torch.equal(plain.model_inputs(), train.inputs.float() / 255)


def tiny_archive(train, val):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in train.items():
            wordnet_id = name.split("_")[0]
            archive.writestr(f"tiny-imagenet-200/train/{wordnet_id}/images/{name}", data)
            archive.writestr(f"tiny-imagenet-200/train/{wordnet_id}/{name}_boxes.txt", "0 0 1 1")
        for name, (_, data) in val.items():
            archive.writestr(f"tiny-imagenet-200/val/images/{name}", data)
        lines = "".join(f"{name}\t{wordnet_id}\t0\t0\t1\t1\n" for name, (wordnet_id, _) in val.items())
        archive.writestr("tiny-imagenet-200/val/val_annotations.txt", lines)
        archive.writestr("tiny-imagenet-200/test/images/test_0.JPEG", picture(0))
    return stream.getvalue()


def test_tiny_imagenet_reads_its_archive(monkeypatch, tmp_path):
    train = {
        "n12267677_0.JPEG": picture((200, 0, 0)),
        "n01443537_10.JPEG": picture((0, 100, 0)),
        "n01443537_9.JPEG": picture((0, 0, 50)),
        "n01443537_2.JPEG": picture(80, mode="L"),  # some of its images are grey
    }
    val = {
        "val_1.JPEG": ("n01443537", picture((10, 20, 30))),
        "val_0.JPEG": ("n02504458", picture((240, 240, 240))),
    }
    put_by_hand(monkeypatch, tmp_path, "tiny-imagenet", tiny_archive(train, val))
    found = datasets.load("tiny-imagenet")
    assert found.inputs.shape == (4, 3, 64, 64)
    assert found.labels.tolist() == [0, 0, 0, 199]
    assert [found.classes[i] for i in found.labels] == ["goldfish"] * 3 + ["acorn"]
    colours = found.inputs.float().mean((2, 3))
    expected = torch.tensor([[80, 80, 80], [0, 0, 50], [0, 100, 0], [200, 0, 0]])  # images 2, 9, 10 in this order
    assert torch.allclose(colours, expected.float(), atol=3)
    test = datasets.load("tiny-imagenet", "test")
    assert [test.classes[i] for i in test.labels] == ["goldfish", "African elephant"]  # in the order of the list
    assert torch.allclose(test.inputs.float().mean((1, 2, 3)), torch.tensor([20.0, 240.0]), atol=3)


def test_tiny_imagenet_refuses_a_class_that_it_does_not_have(monkeypatch, tmp_path):
    val = {"val_0.JPEG": ("n01443537", picture(0))}
    put_by_hand(monkeypatch, tmp_path, "tiny-imagenet", tiny_archive({"n99999999_0.JPEG": picture(0)}, val))
    with pytest.raises(DatasetUnavailable, match="KeyError: 'n99999999'"):
        datasets.load("tiny-imagenet")


def test_classes_are_in_the_order_of_their_wordnet_ids():
    known = dict(zip(imagenet.wordnet_ids(), imagenet.classes(), strict=True))
    assert list(known) == sorted(known)
    assert len(known) == 1000
    assert (known["n01440764"], known["n02123045"], known["n13133613"]) == ("tench", "tabby", "ear")
    assert len(set(papers.TINY)) == 200
    assert list(papers.TINY) == sorted(papers.TINY)


def test_the_standard_crop_keeps_the_middle(tmp_path):
    image = Image.new("RGB", (600, 300), "white")
    image.paste((255, 0, 0), (150, 0, 450, 300))  # the middle square, 300 wide, of which 262.5 are kept
    image.save(tmp_path / "a.png")
    view = imagenet.read(tmp_path / "a.png")
    assert view.shape == (3, 224, 224)
    assert view.dtype == np.uint8
    assert (view[0] == 255).all()
    assert (view[1:] == 0).all()
    image.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "b.png")
    tall = imagenet.read(tmp_path / "b.png", size=112)
    assert tall.shape == (3, 112, 112)
    assert (tall[1:] == 0).all()


@pytest.fixture
def photographs(tmp_path):
    """Two layouts in one folder: the id in the file's name, and in the folder's."""
    (tmp_path / "n01443537").mkdir()
    (tmp_path / "n01443537" / "ILSVRC2012_val_00000293.JPEG").write_bytes(picture((0, 90, 0), (300, 260)))
    (tmp_path / "n13133613_ear.JPEG").write_bytes(picture((90, 0, 0), (260, 300)))
    (tmp_path / "n01440764_tench.jpg").write_bytes(picture(60, (256, 256), "L"))
    (tmp_path / "n99999999_unknown.JPEG").write_bytes(picture(0))
    (tmp_path / "holiday.png").write_bytes(b"not even opened")
    (tmp_path / "README.md").write_text("n01440764")
    return tmp_path


def test_a_folder_of_photographs(photographs):
    found = datasets.load("imagenet-folder", path=str(photographs))
    assert found.inputs.shape == (3, 3, 224, 224)
    assert [found.classes[i] for i in found.labels] == ["tench", "goldfish", "ear"]
    assert torch.allclose(found.inputs.float().mean((2, 3))[0], torch.tensor([60.0]), atol=3)
    assert (found.mean, found.std) == (imagenet.MEAN, imagenet.STD)
    some = datasets.load("imagenet-folder", "test", path=photographs, size=56, limit=2, seed=1)
    assert some.inputs.shape == (2, 3, 56, 56)
    assert torch.equal(some.labels, datasets.load("imagenet-folder", path=photographs, limit=2, seed=1).labels)


def test_a_folder_without_photographs_is_told(tmp_path):
    with pytest.raises(DatasetUnavailable, match=r"no ImageNet photographs in .*nowhere \(0 images"):
        datasets.load("imagenet-folder", path=tmp_path / "nowhere")
    (tmp_path / "cat.jpg").write_bytes(picture(0))
    with pytest.raises(DatasetUnavailable, match="1 images, none with a known WordNet id"):
        datasets.load("imagenet-folder", path=tmp_path)
    with pytest.raises(TypeError, match="imagenet-folder needs path"):
        datasets.load("imagenet-folder")


def test_the_twenty_photographs_of_foolbox():
    try:
        photos = datasets.load("imagenet-foolbox", "test")
    except DatasetUnavailable as error:
        pytest.skip(str(error))
    assert photos.inputs.shape == (20, 3, 224, 224)
    assert len(photos.classes) == 1000
    named = [photos.classes[i] for i in photos.labels]
    assert named.count("jeep") == 2
    assert {"dalmatian", "bald eagle", "strawberry", "prayer rug"} < set(named)
    assert photos.model_inputs().mean().abs() < 0.5
