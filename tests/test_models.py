"""The networks are the papers': their sizes, their layers, what they accept."""

import itertools

import pytest
import torch
import torchvision
from torch import nn

from faithstudy.data.sets import TextSet
from faithstudy.networks import models

SMALL = {
    "resnet9": {"width": 4},
    "cnn3": {"width": 4},
    "resnet18": {"width": 4},
    "strided": {"width": 4},
    "lipschitz": {"size": 16, "width": 4},
    "unbounded": {"size": 16, "width": 4},
    "vit": {"size": 16, "dim": 16, "depth": 2, "heads": 2},
}
OF_TOKENS = {
    "lstm": {"words": 30, "dim": 6, "hidden": 5},
    "transformer": {"words": 30, "dim": 8, "depth": 2, "heads": 2},
}
OF_SERIES = ["bilstm", "cnn1d"]  # in test_series.py
BY_NAME = ["photographs"]  # timm's, in test_vehicles.py
WITH_WEIGHTS = ["pretrained", "vit_small"]  # in files of their own; known once their modules are imported


def test_every_network_has_a_small_version_here():
    assert set(models.names()) - set(WITH_WEIGHTS) == {*SMALL, *OF_TOKENS, *OF_SERIES, *BY_NAME}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("channels", [1, 3])
def test_a_network_gives_a_logit_per_class(name, channels):
    network = models.build(name, classes=7, channels=channels, **SMALL[name]).eval()
    x = torch.randn(2, channels, 16, 16)
    logits = network(x)
    assert logits.shape == (2, 7)
    assert logits.isfinite().all()
    torch.testing.assert_close(network(x[1:]), logits[1:], atol=1e-5, rtol=1e-4)


def texts(lengths: list[int], longest: int) -> torch.Tensor:
    """Token ids without a mask or padding inside, padded at the end."""
    ids = torch.randint(2, 30, (len(lengths), longest), generator=torch.Generator().manual_seed(0))
    return ids.where(torch.arange(longest) < torch.tensor(lengths)[:, None], TextSet.PADDING)


def reader(name: str, **options) -> nn.Module:
    torch.manual_seed(0)
    return models.build(name, **OF_TOKENS[name], **options).eval()


@pytest.mark.parametrize("name", OF_TOKENS)
def test_a_network_for_texts_gives_a_logit_per_class_whatever_stands_beside_a_text(name):
    network, ids = reader(name, classes=3), texts([9, 1, 4], 9)
    logits = network(ids)
    assert logits.shape == (3, 3)
    assert logits.isfinite().all()
    assert logits.std(0).min() > 0
    torch.testing.assert_close(network(ids[1:]), logits[1:], atol=1e-6, rtol=1e-4)
    # Less padding, or more, is the same text.
    torch.testing.assert_close(network(ids[2:, :4]), logits[2:], atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(network(nn.functional.pad(ids, (0, 6))), logits, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("name", OF_TOKENS)
def test_a_network_for_texts_reads_words_in_their_order_and_sees_a_mask(name):
    network, ids = reader(name), texts([6, 6], 6)
    logits = network(ids)
    assert (network(ids.flip(1)) - logits).abs().max() > 1e-4
    masked = ids.clone()
    masked[:, 2] = TextSet.MASK
    assert (network(masked) - logits).abs().amin() > 1e-6


@pytest.mark.parametrize("name", OF_TOKENS)
def test_padding_is_never_learnt(name):
    network = reader(name).train()
    before = network.embedding.weight.detach().clone()
    network(texts([5, 2], 7)).sum().backward()
    assert (network.embedding.weight.grad[TextSet.PADDING] == 0).all()
    assert (before[TextSet.PADDING] == 0).all()
    assert before[1:].norm(dim=1).mean().item() == pytest.approx(1, abs=0.15)


def test_the_lstm_of_the_paper_has_one_layer_of_128_units():
    network = models.build("lstm")
    assert (network.lstm.num_layers, network.lstm.hidden_size, network.lstm.bidirectional) == (1, 128, False)
    assert network.head.out_features == 2


@pytest.mark.parametrize(("depth", "heads"), [(2, 4), (4, 8)], ids=["SST-2", "BoolQ"])
def test_the_transformer_of_the_paper_has_dimension_512(depth, heads):
    with torch.device("meta"):
        network = models.build("transformer", depth=depth, heads=heads)
    assert network.embedding.embedding_dim == 512
    assert len(network.blocks) == depth
    assert all(block.attn.num_heads == heads for block in network.blocks)


@pytest.mark.parametrize("name", SMALL | OF_TOKENS)
def test_torchs_seed_decides_the_weights(name):
    def weights(seed):
        torch.manual_seed(seed)
        return nn.utils.parameters_to_vector(models.build(name, **(SMALL | OF_TOKENS)[name]).parameters())

    assert torch.equal(weights(0), weights(0))
    assert not torch.equal(weights(0), weights(1))


def convolutions(network: nn.Module) -> list[tuple[int, int]]:
    return [(m.in_channels, m.out_channels) for m in network.modules() if isinstance(m, nn.Conv2d)]


def test_resnet9_is_64_128_residual_256_512_residual():
    network = models.build("resnet9")
    assert convolutions(network) == [(3, 64), (64, 128), *[(128, 128)] * 2, (128, 256), (256, 512), *[(512, 512)] * 2]
    assert sum(isinstance(m, models.Residual) for m in network.modules()) == 2
    # Without biases a 3 x 3 convolution from a to b channels has 9ab weights; BatchNorm 2b; the head 512 * 10 + 10.
    pairs = convolutions(network)
    expected = sum(9 * a * b + 2 * b for a, b in pairs) + 512 * 10 + 10
    assert sum(p.numel() for p in network.parameters()) == expected
    assert network.features(torch.randn(1, 3, 32, 32)).shape == (1, 512, 4, 4)


def test_a_residual_block_adds_its_input():
    block = models.Residual(nn.Conv2d(2, 2, 1), nn.ReLU())
    x = torch.randn(1, 2, 3, 3)
    torch.testing.assert_close(block(x), x + block[1](block[0](x)))


def test_cnn3_has_three_convolutions():
    network = models.build("cnn3", channels=3, width=16)
    assert convolutions(network) == [(3, 16), (16, 32), (32, 64)]
    assert network.features(torch.randn(1, 3, 28, 28)).shape == (1, 64, 7, 7)


def test_vit_has_patch_4_dim_128_depth_6_heads_8_and_a_hidden_layer_of_256():
    network = models.build("vit")
    assert network.patch_embed.proj.kernel_size == (4, 4)
    assert network.pos_embed.shape == (1, 1 + 64, 128)
    assert len(network.blocks) == 6
    assert all(block.attn.num_heads == 8 and block.mlp.fc1.out_features == 256 for block in network.blocks)


def test_an_unknown_network_is_an_error_that_lists_the_known():
    with pytest.raises(KeyError, match=r"no network 'vgg'; known: .*cnn3, .*vit"):
        models.build("vgg")


def test_a_registered_network_is_known_by_its_functions_name(monkeypatch):
    monkeypatch.setattr(models, "_BUILDERS", dict(models._BUILDERS))

    @models.register
    def perceptron(classes=2):
        return nn.Linear(4, classes)

    assert "perceptron" in models.names()
    assert models.build("perceptron", classes=3).out_features == 3


@pytest.mark.parametrize("width", [26, 46, 32], ids=["Fashion-MNIST", "EuroSAT", "CIFAR"])
def test_resnet18_has_the_base_filters_it_is_asked_for(width):
    network = models.build("resnet18", width=width, dropout=0.25)
    depths = [width * 2**depth for depth in range(4)]
    expected = [(3, width), *[(width, width)] * 4]
    for a, b in itertools.pairwise(depths):
        expected += [(a, b), (b, b), (a, b), (b, b), (b, b)]  # the third is the shortcut
    assert convolutions(network) == expected
    assert [m.p for m in network.modules() if isinstance(m, nn.Dropout)] == [0.25]
    assert network.features(torch.randn(1, 3, 32, 32)).shape == (1, 8 * width, 4, 4)


def test_resnet18_with_64_filters_is_torchvisions_but_for_its_stem():
    ours, theirs = models.build("resnet18", classes=1000), torchvision.models.resnet18()
    assert convolutions(ours)[1:] == convolutions(theirs)[1:]
    number = sum(p.numel() for p in theirs.parameters()) - 64 * 3 * (49 - 9)  # 3 x 3 in the place of 7 x 7
    assert sum(p.numel() for p in ours.parameters()) == number


def test_a_block_adds_its_shortcut():
    block = models.BasicBlock(2, 4, stride=2).eval()
    x = torch.randn(1, 2, 6, 6)
    torch.testing.assert_close(block(x), (block.body(x) + block.shortcut(x)).relu())


def test_the_lipschitz_network_is_the_papers():
    network = models.build("lipschitz")
    assert convolutions(network) == [(3, 48), (48, 96), (96, 96)]
    kinds = [type(m).__name__.removeprefix("Parametrized") for m in [*network.features, *network.head]]
    pooled = ["LPReLU", "ScaledAvgPool2d", "Dropout"]
    assert kinds == [
        *["SpectralConv2d", *pooled, "SpectralConv2d", *pooled, "SpectralConv2d"],
        *["ScaledAvgPool2d", "Flatten", "SpectralLinear", "Scale"],
    ]
    assert [m.p for m in network.modules() if isinstance(m, nn.Dropout)] == [0.2, 0.2]
    assert network(torch.randn(2, 3, 32, 32)).shape == (2, 10)


def test_the_lipschitz_network_keeps_its_bound_after_training():
    torch.manual_seed(0)
    network = models.build("lipschitz", size=16, width=6, scale=10.0)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.03)
    x, y = torch.randn(32, 3, 16, 16), torch.randint(10, (32,))
    first = None
    for _ in range(40):
        loss = nn.functional.cross_entropy(network(x), y)
        first = first or loss.item()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.8 * first  # the weights have moved
    network.eval()
    a, b = torch.randn(200, 3, 16, 16), torch.randn(200, 3, 16, 16)
    b[100:] = a[100:] + 0.01 * b[100:]
    moved = (network(a) - network(b)).norm(dim=1) / (a - b).flatten(1).norm(dim=1)
    assert moved.max() <= 10.0 * 1.001
    a.requires_grad_()
    for c in range(10):
        (gradient,) = torch.autograd.grad(network(a)[:, c].sum(), a)
        assert gradient.flatten(1).norm(dim=1).max() <= 10.0 * 1.001


def test_the_lipschitz_networks_scale_changes_no_order():
    torch.manual_seed(0)
    one = models.build("lipschitz", size=16, width=6, scale=1.0).eval()
    ten = models.build("lipschitz", size=16, width=6, scale=10.0).eval()
    ten.load_state_dict(one.state_dict())
    x = torch.randn(3, 3, 16, 16)
    torch.testing.assert_close(ten(x), 10 * one(x))


def test_the_unbounded_network_has_the_lipschitz_networks_layers_and_no_bound():
    bounded, network = models.build("lipschitz"), models.build("unbounded")
    assert convolutions(network) == convolutions(bounded)
    kinds = [type(m).__name__ for m in [*network.features, *network.head]]
    pooled = ["PReLU", "AvgPool2d", "Dropout"]
    assert kinds == ["Conv2d", *pooled, "Conv2d", *pooled, "Conv2d", "AvgPool2d", "Flatten", "Linear"]
    x = torch.randn(2, 3, 32, 32)
    assert network.features(x).shape == bounded.features(x).shape
    assert network(x).shape == (2, 10)
    with torch.no_grad():
        network.head[-1].weight.mul_(1e5)  # a bounded network would divide by that
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(network.eval()(x)[:, 0].sum(), x)
    assert gradient.flatten(1).norm(dim=1).min() > 10


@pytest.mark.parametrize("name", ["lipschitz", "unbounded"])
def test_an_image_side_that_three_poolings_do_not_divide_is_an_error(name):
    with pytest.raises(ValueError, match="a multiple of 8, but got 28"):
        models.build(name, size=28)
