"""Explainers on models as users write them: each explains what the model computes, or says that it cannot.

A plain network, a layer for each operation, is the definition. The odd ones compute the same function otherwise written:
their explanations must be the plain one's. Models that have none must be errors, never a map.
"""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations, parametrize

from faithlab import explainers, segments
from faithlab.explainers import explain
from test_explainers import (
    IDENTITIES,
    OF_IMAGES,
    PIXELS,
    QUICK,
    TARGET,
    TRANSFORMER,
    X,
    assert_same,
)

OF_NETWORKS = [name for name in OF_IMAGES if name not in TRANSFORMER]
CAMS = ["gradcam", "layercam", "iba"]
BY_RULES = ["deconvolution", "excitation-backprop", "lrp", "partial-lrp", "transformer-attribution", "conservative-lrp"]

every_explainer = pytest.mark.parametrize("name", explainers.names())


def explained(name: str, model: nn.Module, x=X, target=TARGET, features=PIXELS, **options):
    images = IDENTITIES[: len(x)]
    return explain(name, model, x, target, features, images=images, **QUICK.get(name, {}) | options)


def own_statistics(model: nn.Module) -> nn.Module:
    """BatchNorm with statistics and weights of its own, of both signs."""
    generator = torch.Generator().manual_seed(5)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor in (module.weight, module.bias, module.running_mean):
                tensor.data = torch.randn(tensor.shape, generator=generator)
            module.running_var.data = torch.rand(module.running_var.shape, generator=generator) + 0.5
    return model.eval()


class Features(nn.Module):
    """Two convolutions with BatchNorm and ReLU, of which the second is applied twice, and a skip connection."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.relu = nn.Conv2d(3, 4, 3, 2, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU()
        self.second, self.second_norm, self.second_relu = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()
        self.third, self.third_norm, self.third_relu = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()

    def forward(self, x):
        x = self.relu(self.norm(self.first(x)))
        y = self.second_relu(self.second_norm(self.second(x)))
        y = self.third_norm(self.third(y))
        return self.third_relu(x + y)


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool, self.flatten, self.linear = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(self.flatten(self.pool(x)))


class Plain(nn.Module):
    """The definition: every operation is a module of its own, none works in place."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.features, self.head = Features(), Head()
        own_statistics(self)
        self.features.third.load_state_dict(self.features.second.state_dict())
        self.features.third_norm.load_state_dict(self.features.second_norm.state_dict())

    def forward(self, x):
        return self.head(self.features(x))


def shared():
    model = Plain()
    one = model.features
    one.third, one.third_norm = one.second, one.second_norm
    one.relu = one.second_relu = one.third_relu
    return model


def in_place():
    model = Plain()
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = True

    def forward(x):
        one = model.features
        x = one.relu(one.norm(one.first(x)))
        y = one.second_relu(one.second_norm(one.second(x)))
        y = one.third_norm(one.third(y))
        y += x
        return one.third_relu(y)

    model.features.forward = forward
    return model


def shared_in_place():
    model = in_place()
    one = model.features
    one.third, one.third_norm = one.second, one.second_norm
    one.relu = one.second_relu = one.third_relu
    return model


def functions():
    model = Plain()
    one, head = model.features, model.head

    def norm(x, of):
        return functional.batch_norm(x, of.running_mean, of.running_var, of.weight, of.bias, eps=of.eps)

    def features(x):
        x = functional.relu(norm(functional.conv2d(x, one.first.weight, stride=2, padding=1), one.norm))
        y = torch.relu(norm(functional.conv2d(x, one.second.weight, one.second.bias, padding=1), one.second_norm))
        y = norm(functional.conv2d(input=y, weight=one.third.weight, bias=one.third.bias, padding=1), one.third_norm)
        return torch.add(x, y).relu_()

    one.forward = features
    head.forward = lambda x: functional.linear(x.mean((2, 3)), head.linear.weight, head.linear.bias)
    return model


def hooked():
    """Channels in reverse order, and put right by a hook of a layer and one before a layer."""
    model = Plain()
    for layer in (model.features.third, model.head.linear):
        layer.weight.data = layer.weight.data.flip(1)
    model.features.second_relu.register_forward_hook(lambda module, args, output: output.flip(1))
    model.head.linear.register_forward_pre_hook(lambda module, args: (args[0].flip(1),))
    return model


def hooked_at_the_root():
    """Classes in reverse order, and put right by a hook."""
    model = Plain()
    for parameter in model.head.linear.parameters():
        parameter.data = parameter.data.flip(0)
    model.register_forward_hook(lambda module, args, output: output.flip(1))
    return model


def parametrised():
    model = Plain()
    parametrizations.weight_norm(model.features.second)
    parametrizations.weight_norm(model.head.linear)
    parametrize.register_parametrization(model.features.first, "weight", nn.Identity())
    return model


@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning")
def old_weight_norm():
    model = Plain()
    nn.utils.weight_norm(model.features.second)
    return model


def patched():
    """A convolution whose own forward was replaced by one that does the same as another layer would."""
    model = Plain()
    weight = model.features.second.weight.detach().clone()
    model.features.second.weight.data.zero_()
    bias = model.features.second.bias
    model.features.second.forward = lambda x: functional.conv2d(x, weight, bias, padding=1)
    return model


def branching():
    model = Plain()
    forward = model.features.forward
    model.features.forward = lambda x: forward(x) if isinstance(x, torch.Tensor) and x.shape[1] == 3 else forward(-x)
    return model


def strides_set_in_forward():
    model = Plain()
    model.features.first.stride = (1, 1)
    forward = model.features.forward

    def setting(x):
        model.features.first.stride = (2, 2)
        return forward(x)

    model.features.forward = setting
    return model


def frozen():
    return Plain().requires_grad_(False)


def training():
    model = Plain()
    model.head.linear = nn.Sequential(nn.Dropout(0.5), model.head.linear)
    return model.train()


def channels_last():
    return Plain().to(memory_format=torch.channels_last)


def a_sequence():
    """Functions between modules: views, slices, concatenation, arithmetic with numbers and buffers."""
    model = Plain()
    model.register_buffer("scale", torch.full((3, 1, 1), 2.0))
    forward = model.features.forward
    model.features.forward = lambda x: torch.cat(torch.split(forward(x / model.scale * 2.0 + 0 - 0), 2, dim=1), 1)
    return model


ODD = {
    f.__name__: f
    for f in (
        shared,
        in_place,
        shared_in_place,
        functions,
        hooked,
        hooked_at_the_root,
        parametrised,
        old_weight_norm,
        patched,
        branching,
        strides_set_in_forward,
        frozen,
        training,
        channels_last,
        a_sequence,
    )
}


@pytest.mark.parametrize("name", OF_NETWORKS)
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning")
def test_the_same_function_has_the_same_explanation(name, odd):
    model = ODD[odd]()
    with torch.no_grad():
        torch.testing.assert_close(copy.copy(model).eval()(X), Plain()(X), atol=1e-5, rtol=1e-4)
    assert_same(explained(name, ODD[odd]()), explained(name, Plain()))
