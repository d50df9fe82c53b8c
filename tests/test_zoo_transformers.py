"""Vision Transformers of timm: weights from a folder, images as they expect them, and errors that say what to do."""

import pytest
import timm
import torch
from safetensors.torch import save_file

from faithstudy.data.sets import ImageSet
from faithstudy.data.sources import DatasetUnavailable, fingerprint
from faithstudy.networks import origins, transformers

NAME = "test_vit"  # timm's own small one, 160 x 160


def images(size=32):
    pixels = torch.randint(256, (3, 3, size, size), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    return ImageSet(pixels, torch.tensor([0, 1, 2]), ("a", "b", "c"), (0.5,) * 3, (0.2,) * 3)


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_weights_of_a_folder_are_loaded(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr(origins, "_USED", {})
    torch.manual_seed(0)
    made = timm.create_model(NAME, num_classes=3)
    path = tmp_path / f"{NAME}-mine{suffix}"
    save_file(made.state_dict(), path) if suffix == ".safetensors" else torch.save(made.state_dict(), path)
    found = transformers.load(NAME, "mine", 3, tmp_path)
    assert not found.training
    assert all(torch.equal(found.state_dict()[key], value) for key, value in made.state_dict().items())
    (*_, used) = origins.used()
    assert used == {
        "kind": "pretrained",
        "name": f"{NAME}-mine",
        "source": f"the file {path.name}",
        "sha256": fingerprint(*(value.numpy() for value in made.state_dict().values())),
    }


def test_a_folder_without_the_weights_is_an_error_that_names_the_file(tmp_path):
    with pytest.raises(DatasetUnavailable, match=r"there is no test_vit-cifar10\.safetensors .* in "):
        transformers.load(NAME, "cifar10", 10, tmp_path)


def test_another_data_set_without_a_folder_is_an_error_that_says_what_to_make():
    with pytest.raises(DatasetUnavailable, match=r"Fine-tune timm's test_vit with num_classes=100 on cifar100, save"):
        transformers.load(NAME, "cifar100", 100)


def test_imagenet_without_a_network_is_an_error_that_says_what_to_fetch(monkeypatch):
    def offline(*arguments, **options):
        raise OSError("no route\nto host")

    monkeypatch.setattr(timm, "create_model", offline)
    with pytest.raises(DatasetUnavailable, match=r"\(no route to host\)\. Fetch them .* give the file's folder"):
        transformers.load(NAME, "imagenet-folder", 1000)


def test_a_network_that_is_no_vision_transformer_is_an_error(tmp_path):
    torch.save(timm.create_model("test_resnet", num_classes=3).state_dict(), tmp_path / "test_resnet-mine.pth")
    with pytest.raises(ValueError, match="test_resnet is a ResNet, not a Vision Transformer"):
        transformers.load("test_resnet", "mine", 3, tmp_path)


def test_an_unknown_network_is_an_error():
    with pytest.raises(ValueError, match="timm has no network 'vit_enormous'"):
        transformers.load("vit_enormous", "imagenet-folder", 1000)


def test_images_are_seen_at_the_networks_size_and_scale():
    network = timm.create_model(NAME, num_classes=3)
    whole = transformers.view(images(160), network)
    mean, std = (torch.tensor(network.pretrained_cfg[key]).view(-1, 1, 1) for key in ("mean", "std"))
    torch.testing.assert_close(whole, (images(160).inputs / 255 - mean) / std)
    assert transformers.view(images(32), network).shape == (3, 3, 160, 160)
    grey = torch.full((1, 3, 32, 32), 51, dtype=torch.uint8)  # a fifth of 255
    flat = ImageSet(grey, torch.tensor([0]), ("a",), (0.5,) * 3, (0.2,) * 3)
    torch.testing.assert_close(transformers.view(flat, network)[0].amax((1, 2)), ((0.2 - mean) / std).flatten())
