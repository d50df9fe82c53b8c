"""ViT-S of a package's weights: what is read from its file, what is trained, that its layers are the file's."""

import copy
import dataclasses
import struct

import pytest
import torch
from torch import nn
from torch.nn.functional import gelu, layer_norm, softmax

from faithlab.explainers import explain
from faithlab.segments import pixels
from faithstudy import recipes
from faithstudy.data import datasets
from faithstudy.data.sources import DatasetUnavailable
from faithstudy.networks import models, shipped, training, vit_small
from faithstudy.networks.vit_small import DEPTH, HEADS, WIDTH
from faithstudy.trials import transformers


@pytest.fixture(scope="module")
def drawn() -> list[torch.Tensor]:
    """22 million numbers at random, in the package's shapes."""
    shapes = {"cls_token": (1, 1, WIDTH), "pos_embed": (1, 1 + 37 * 37, WIDTH)}
    shapes |= {"patch_embed.proj.weight": (WIDTH, 3, 14, 14), "patch_embed.proj.bias": (WIDTH,)}
    with torch.device("meta"):
        layers = {name: tuple(p.shape) for name, p in models.build("vit_small").named_parameters()}
    generator = torch.Generator().manual_seed(0)
    return [0.02 * torch.randn(shapes.get(name, layers[name]), generator=generator) for name in vit_small._origins()]


@pytest.fixture
def invented(drawn, monkeypatch):
    """Weights drawn at random, in the place of those that have to be fetched."""
    packaged = dataclasses.replace(vit_small.BACKBONE)
    monkeypatch.setattr(type(packaged), "tensors", lambda self: [tensor.clone() for tensor in drawn])
    monkeypatch.setattr(vit_small, "BACKBONE", packaged)
    return dict(zip(vit_small._origins(), drawn, strict=True))


def field(number, content):
    """A field of a message of protocol buffers, as its documentation has it: bytes, or an integer."""

    def integer(value):
        digits = []
        while True:
            value, low = value >> 7, value & 127
            digits.append(low | 128 if value else low)
            if not value:
                return bytes(digits)

    if isinstance(content, int):
        return integer(number << 3) + integer(content)
    return integer(number << 3 | 2) + integer(len(content)) + content


def test_the_tensors_of_a_model_are_read_by_name_in_their_order():
    long = "a name of more than a hundred and twenty-seven letters, whose length takes two bytes, " + "e" * 60
    tensors = {"b": torch.arange(6.0).view(2, 3), long: torch.tensor([-1.5]), "a": torch.randn(300, 1)}
    graph = field(1, b"a node") + field(2, b"graph")
    for name, tensor in tensors.items():
        content = struct.pack(f"<{tensor.numel()}f", *tensor.flatten().tolist())
        shape = b"".join(field(1, n) for n in tensor.shape)
        # Fixed lengths of 4 and 8 bytes stand between, which are passed over.
        between = bytes([13 << 3 | 5, 1, 2, 3, 4, 14 << 3 | 1, *range(8)])
        graph += field(5, shape + field(2, 1) + between + field(8, name.encode()) + field(9, content))
    model = field(1, 8) + field(2, b"exporter") + field(7, graph) + field(5, b"not of the graph")
    found = vit_small._initialisers(model)
    assert list(found) == list(tensors)
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())


def test_only_what_is_trained_is_the_state(invented):
    network = models.build("vit_small")
    trained = {name for name, p in network.named_parameters() if p.requires_grad}
    assert set(network.state_dict()) == trained
    assert len(trained) == 4 + DEPTH * 10 + 4
    assert sum(value.numel() for value in network.state_dict().values()) < 120_000
    stay = {name: p.clone() for name, p in network.named_parameters() if not p.requires_grad}
    assert len(stay) == 4 * DEPTH
    assert all(torch.equal(value, invented[name]) for name, value in stay.items())

    x, y = torch.randn(2, 3, 32, 32), torch.tensor([0, 1])
    optimiser = torch.optim.AdamW(network.parameters(), lr=0.01, weight_decay=0.1)
    nn.functional.cross_entropy(network(x), y).backward()
    optimiser.step()
    after = dict(network.named_parameters())
    assert all(torch.equal(after[name], value) for name, value in stay.items())
    assert not torch.equal(after["norm.weight"], invented["norm.weight"])

    other = models.build("vit_small")
    other.load_state_dict(network.state_dict())
    assert torch.equal(other.eval()(x), network.eval()(x))
    twin = copy.deepcopy(network).double()
    assert set(twin.state_dict()) == trained
    assert torch.allclose(twin(x.double()).float(), network(x), atol=1e-4)
    whole = nn.Sequential(nn.Identity(), network)
    assert set(whole.state_dict()) == {f"1.{name}" for name in trained}
    nn.Sequential(nn.Identity(), models.build("vit_small")).load_state_dict(whole.state_dict())


def test_a_state_that_lacks_what_is_trained_is_refused(invented):
    network = models.build("vit_small")
    state = network.state_dict()
    del state["norm.bias"]
    with pytest.raises(RuntimeError, match=r"norm\.bias"):
        network.load_state_dict(state)


def test_its_layers_are_known_without_its_weights(monkeypatch):
    monkeypatch.setattr(type(vit_small.BACKBONE), "tensors", lambda self: pytest.fail("the weights are not needed"))
    with torch.device("meta"):
        network = models.build("vit_small", classes=3)
    assert network.head.out_features == 3


@pytest.mark.parametrize("explainer", ["transformer-mm", "lrp", "gradcam-vit"])
def test_explainers_of_transformers_explain_it(invented, explainer):
    network = models.build("vit_small").eval()
    attribution = explain(explainer, network, torch.randn(2, 3, 32, 32), torch.tensor([0, 1]), pixels(32, 32))
    assert attribution.shape == (2, 32 * 32)
    assert bool(attribution.isfinite().all())


def test_a_layer_computes_what_its_tensors_are_called_for():
    """The first layer by hand. That the matrices have their right names shows in what the network is right about."""
    try:
        weights = dict(zip(vit_small._origins(), vit_small.BACKBONE.tensors(), strict=True))
    except DatasetUnavailable as error:
        pytest.skip(str(error))
    network = models.build("vit_small").eval()
    x = torch.randn(1, 5, WIDTH, generator=torch.Generator().manual_seed(0))

    def of(name):
        return weights[f"blocks.0.{name}"]

    def linear(z, name):
        return z @ of(f"{name}.weight").T + of(f"{name}.bias")

    z = layer_norm(x, (WIDTH,), of("norm1.weight"), of("norm1.bias"), 1e-6)
    query, key, value = linear(z, "attn.qkv").view(5, 3, HEADS, -1).permute(1, 2, 0, 3)
    mixed = softmax(query @ key.mT / (WIDTH // HEADS) ** 0.5, -1) @ value
    after = x + of("ls1.gamma") * linear(mixed.transpose(0, 1).reshape(1, 5, WIDTH), "attn.proj")
    z = layer_norm(after, (WIDTH,), of("norm2.weight"), of("norm2.bias"), 1e-6)
    after = after + of("ls2.gamma") * linear(gelu(linear(z, "mlp.fc1")), "mlp.fc2")
    with torch.no_grad():
        assert torch.allclose(network.blocks[0](x), after, atol=1e-4)
    # Trained, scales of layers are small numbers of one sign; read from another place they would not be.
    assert 0 < float(of("ls1.gamma").abs().mean()) < 1


def test_the_network_that_ships_recognises_what_it_was_trained_for():
    """Its trained part says nothing without the very matrices around which it was trained."""
    try:
        network, data = training.trained(recipes.VIT_SMALL), datasets.load("cifar10", "test")
    except DatasetUnavailable as error:
        pytest.skip(str(error))
    assert shipped.find(recipes.VIT_SMALL.key()) is not None
    right = training.logits(network, data.model_inputs(slice(30))).argmax(1).cpu() == data.labels[:30]
    assert right.double().mean() > 0.7


def test_networks_explain_images_of_the_data_that_they_were_trained_on():
    other = dataclasses.replace(recipes.VIT, data="cifar100")
    with pytest.raises(ValueError, match=r"expected networks trained on cifar10, .* but got \['cifar100-vit-"):
        transformers.tasks(["vit"], "cifar10", 2, [recipes.VIT_SMALL, other])


def test_a_network_of_others_that_is_unknown_is_told():
    with pytest.raises(ValueError, match="called 'vit'; there are vit-small-patch14"):
        recipes.of_others("vit")
