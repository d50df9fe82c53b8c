"""Explainers on models as users write them: each explains what the model computes, or says that it cannot.

A plain network, a layer for each operation, is the definition. The odd ones compute the same function otherwise
written: their explanations must be the plain one's. Models that have none must be errors, never a map.
"""

import copy
import warnings
from functools import cache

import pytest
import timm
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations, parametrize

from faithlab import segments, stats
from faithlab.explainers import explain, region
from faithlab.outputs import Logits
from test_explainers import (
    IDENTITIES,
    IDS,
    OF_IMAGES,
    OF_TOKENS,
    PIXELS,
    QUICK,
    TARGET,
    TRANSFORMER,
    X,
    assert_same,
    network,
    reader,
    task,
)

OF_NETWORKS = [name for name in OF_IMAGES if name not in TRANSFORMER]
CAMS = ["gradcam", "layercam", "iba"]
BY_RULES = ["deconvolution", "excitation-backprop", "lrp", "partial-lrp", "transformer-attribution", "conservative-lrp"]


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


@cache
def of_plain(name: str) -> torch.Tensor:
    """The explanation by which those of odd models are judged."""
    return explained(name, Plain())


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


def with_a_backward_hook():
    """Explanations are of the function; a hook that changes its gradients is none of it."""
    model = Plain()
    model.features.register_full_backward_hook(lambda module, into, out: tuple(2 * slope for slope in into))
    return model


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
        with_a_backward_hook,
    )
}


@pytest.mark.parametrize("name", OF_NETWORKS)
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning")
def test_the_same_function_has_the_same_explanation(name, odd):
    with torch.no_grad():
        torch.testing.assert_close(ODD[odd]().eval()(X), Plain()(X), atol=1e-5, rtol=1e-4)
    assert_same(explained(name, ODD[odd]()), of_plain(name))


# Two branches through one network


class Siamese(nn.Module):
    """The halves of an image through one network, or through a twin of it."""

    def __init__(self, apart: bool, small: bool = False):
        super().__init__()
        one = nn.Sequential(Plain().features) if not small else nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
        self.left, self.right = one, copy.deepcopy(one) if apart else one
        self.head = Head()

    def forward(self, x):
        left, right = x.chunk(2, dim=-1)
        return self.head(self.left(left) + self.right(right).relu())


@pytest.mark.parametrize("name", [name for name in OF_NETWORKS if name not in CAMS])
@pytest.mark.parametrize("small", [False, True])
def test_two_branches_through_one_network_are_two_branches(name, small):
    torch.manual_seed(1)
    together, apart = Siamese(False, small).eval(), Siamese(True, small).eval()
    apart.head = together.head
    apart.left.load_state_dict(together.left.state_dict())
    apart.right.load_state_dict(together.left.state_dict())
    assert_same(explained(name, together), explained(name, apart))


@pytest.mark.parametrize("name", CAMS)
def test_a_class_activation_map_of_a_layer_that_runs_twice_is_an_error(name):
    with pytest.raises(ValueError, match="'left' runs 2 times in a forward"):
        explained(name, Siamese(False).eval(), layer="left")


# Relevance by hand


def test_deconvolution_where_an_input_goes_on_beside_its_relu():
    # Preactivation: the input of a ReLU is used again, so that its gradient is more than the ReLU's.
    class Preactivated(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(2)
            self.flatten, self.one, self.two, self.out = (
                nn.Flatten(),
                nn.Linear(768, 6),
                nn.Linear(6, 6),
                nn.Linear(6, 4),
            )
            self.relu = nn.ReLU()

        def forward(self, x):
            x = self.one(self.flatten(x))
            return self.out(x + self.two(self.relu(x)))

    model = Preactivated().eval()
    one, two, out = (layer.weight.detach() for layer in (model.one, model.two, model.out))
    above = out[TARGET]  # [5, 6]
    expected = (above + (above @ two).clamp(min=0)) @ one
    assert_same(explained("deconvolution", model), segments.pool(expected.view(5, 3, 16, 16), PIXELS))


def literal_excitation(model: Plain, image: torch.Tensor, target: int) -> torch.Tensor:
    """Neuron by neuron, for a network without a skip connection: shares of what excites, [3, 16, 16] in float64."""
    layers = []
    one, head = model.features, model.head.linear

    def folded(convolution, norm):
        scale = norm.weight / (norm.running_var + norm.eps).sqrt()
        weight = convolution.weight * scale.view(-1, 1, 1, 1)
        bias = 0 if convolution.bias is None else convolution.bias
        return weight, (bias - norm.running_mean) * scale + norm.bias

    def as_matrix(weight, shape, stride):
        """The convolution as a matrix: one unit of the input at a time."""
        units = torch.eye(shape.numel(), dtype=torch.float64).view(-1, *shape)
        return functional.conv2d(units, weight, stride=stride, padding=1).flatten(1).T

    x = image
    for convolution, norm, stride in ((one.first, one.norm, 2), (one.second, one.second_norm, 1)):
        weight, bias = folded(convolution, norm)
        layers.append((as_matrix(weight, x.shape, stride), x.flatten()))
        x = functional.conv2d(x[None], weight, bias, stride, 1)[0].relu()
    places = x[0].numel()
    mean = torch.eye(4, dtype=torch.float64).repeat_interleave(places, 1) / places
    layers += [(mean, x.flatten()), (head.weight, x.mean((1, 2)))]
    relevance = functional.one_hot(torch.tensor(target), 4).double()
    for matrix, activation in reversed(layers):
        # What excites: a positive product of weight and activation.
        products = (matrix * activation).clamp(min=0)
        relevance = (products / (products.sum(1, keepdim=True) + 1e-6) * relevance[:, None]).sum(0)
    return relevance.view(image.shape)


def test_excitation_backprop_is_its_definition_with_batchnorm_as_part_of_the_convolution():
    model = Plain().double()
    model.features.forward = lambda x: model.features.second_relu(
        model.features.second_norm(
            model.features.second(model.features.relu(model.features.norm(model.features.first(x))))
        )
    )
    x = X.double()
    with torch.no_grad():
        expected = torch.stack([literal_excitation(model, image, int(y)) for image, y in zip(x, TARGET, strict=True)])
    assert_same(explained("excitation-backprop", model, x), segments.pool(expected, PIXELS).float())


def test_excitation_backprop_passes_on_all_relevance_behind_a_batchnorm_of_its_own():
    # As in DenseNet: the BatchNorm standardises what several layers made together.
    model = nn.Sequential(
        *(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 4)),
    )
    model[8].weight.data.abs_()
    found = explained("excitation-backprop", own_statistics(model))
    passed = found.sum(1)
    assert torch.equal(passed.round(), passed.sign().clamp(min=0))
    torch.testing.assert_close(passed[passed > 0.5], torch.ones(int((passed > 0.5).sum())), atol=1e-2, rtol=0)
    assert (passed > 0.5).any()


# Models that have no explanation


def one(module: nn.Module, read) -> nn.Module:
    """A plain network whose answer is read otherwise."""
    forward = module.forward
    module.forward = lambda x: read(forward(x))
    return module


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.features, self.head = Plain().features, Head()

    def forward(self, x):
        x = self.features(x)
        return self.head(x * x.mean((2, 3), keepdim=True).sigmoid())


def without_statistics():
    model = Plain().train()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.track_running_stats, module.running_mean, module.running_var = False, None, None
    return model


BAD_MODELS = {
    "a tuple": (lambda: one(Plain(), lambda y: (y, y)), "got tuple; wrap it"),
    "one logit": (lambda: one(Plain(), lambda y: y[:, :1]), r"got \(2, 1\); wrap it"),
    "no class dimension": (lambda: one(Plain(), lambda y: y[:, 0]), r"got \(2,\); wrap it"),
    "NaN": (lambda: one(Plain(), lambda y: y * torch.nan), "the model gives NaN"),
    "too few classes": (lambda: one(Plain(), lambda y: y[:, :3]), "index 3 is out of bounds"),
    "random": (lambda: one(Plain(), lambda y: functional.dropout(y, 0.5)), "on chance"),
    "batch statistics": (without_statistics, "depend on other inputs"),
    "other inputs": (lambda: one(Plain(), lambda y: y - y.mean(0)), "depend on other inputs"),
}


@pytest.mark.parametrize("bad", BAD_MODELS)
def test_a_model_without_explanations_is_an_error(bad):
    build, message = BAD_MODELS[bad]
    torch.manual_seed(0)
    with pytest.raises((ValueError, RuntimeError), match=message):
        explained("gradient", build())


@pytest.mark.parametrize("name", [name for name in OF_NETWORKS if name != "excitation-backprop"])
def test_of_probabilities_the_explanation_says_so(name):
    with pytest.warns(UserWarning, match="look like probabilities"):
        explained(name, one(Plain(), lambda y: y.softmax(1)))


OF_GRADIENTS = [name for name in OF_NETWORKS if name not in ("random", "rise", "shapley-sampling")]


@pytest.mark.parametrize("name", OF_GRADIENTS)
def test_logits_that_have_no_gradient_are_an_error(name):
    with pytest.raises((RuntimeError, ValueError), match="grad") as error:
        explained(name, one(Plain(), lambda y: y.detach()))
    assert error.type is ValueError or "A model that detaches them" in error.value.__notes__[0]


class Switches(Plain):
    """Another function in training mode, of which no flag tells; it writes down what it does."""

    def __init__(self):
        super().__init__()
        self.scale, self.calls = 3, []
        self.register_buffer("rows", torch.zeros(()))

    def train(self, mode=True):
        self.scale = 3 if mode else 1
        return super().train(mode)

    def forward(self, x):
        self.calls.append(x.shape)
        self.rows += len(x)
        return super().forward(x * self.scale)


@pytest.mark.parametrize("name", OF_NETWORKS)
def test_a_model_is_explained_as_its_own_eval_makes_it_and_put_back(name):
    torch.manual_seed(0)
    model = Switches().train()
    plain = Plain()
    plain.load_state_dict(model.state_dict(), strict=False)
    assert_same(explained(name, model), explained(name, plain))
    assert (model.scale, model.calls, model.rows.item(), model.training) == (3, [], 0, True)


@pytest.mark.parametrize("read", [lambda y: y.softmax(1), lambda y: (y.softmax(1), None)])
def test_logits_say_what_is_explained(read):
    model = Logits(one(Plain(), read), lambda answer: answer if isinstance(answer, torch.Tensor) else answer[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explained("gradient", model)


@pytest.mark.parametrize("name", OF_GRADIENTS)
def test_works_in_inference_mode(name):
    model = Plain()
    with torch.inference_mode():
        found = explained(name, model, X + 0)  # inputs made here, too
    assert not found.is_inference()
    assert_same(found, of_plain(name))


def test_weights_that_were_made_in_inference_mode_are_explained():
    with torch.inference_mode():
        model = Plain()
    assert_same(explained("gradient", model), of_plain("gradient"))


@pytest.mark.parametrize("name", ["gradcam", "excitation-backprop"])
def test_a_compiled_model_is_explained_as_the_plain_one(name):
    model = torch.compile(Plain(), backend="eager")
    assert_same(explained(name, model), of_plain(name))
    if name == "gradcam":
        assert_same(explained(name, model, layer="_orig_mod.features"), of_plain(name))


@pytest.mark.parametrize("name", BY_RULES)
def test_rules_for_functions_that_cannot_be_seen_are_an_error(name):
    model = task(name)[0]
    if name in TRANSFORMER:
        model.blocks[0].mlp = torch.jit.trace(model.blocks[0].mlp, torch.zeros(1, 17, 16))
    else:
        model.features = torch.jit.trace(model.features, X)
    with pytest.raises(ValueError, match="cannot get rules; explain the plain module"):
        explained(name, model)


def test_excitation_backprop_of_what_has_no_rule_is_an_error():
    for model, message in {
        Gated(): "'mul' of two activations",
        one(Plain(), lambda y: y.softmax(1)): "'softmax', for which this explainer has no rule",
        nn.Sequential(Plain().features, nn.GroupNorm(2, 4), Head()): "'group_norm', for which",
        one(
            nn.Sequential(nn.Flatten(2), nn.LSTM(256, 4, batch_first=True)), lambda y: y[0][:, -1]
        ): "'lstm', for which",
    }.items():
        with pytest.raises(ValueError, match=message):
            explained("excitation-backprop", model.eval())


def test_deconvolution_of_relus_that_are_functions_is_that_of_modules_and_without_them_an_error():
    assert_same(explained("deconvolution", functions()), of_plain("deconvolution"))
    model = Plain()
    for module in (model.features, model.features):
        module.relu, module.second_relu, module.third_relu = nn.ReLU6(), nn.GELU(), nn.SiLU()
    with pytest.raises(ValueError, match="the model has none"):
        explained("deconvolution", model)


# Class activation maps


class ChannelsEndLast(nn.Module):
    """A layer whose places come before its channels, as in a Swin Transformer."""

    def __init__(self, width: int):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, width, 4, 4), Moved(), nn.LayerNorm(width))
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        return self.head(self.features(x).mean((1, 2)))


class Moved(nn.Module):
    def forward(self, x):
        return x.permute(0, 2, 3, 1)


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.features, self.head = nn.Sequential(nn.Conv2d(3, 8, 4, 4), nn.Flatten(2)), nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.features(x).mean(2))


class Unused(Plain):
    def __init__(self):
        super().__init__()
        self.idle = nn.Conv2d(3, 4, 3)


@pytest.mark.parametrize("name", CAMS)
@pytest.mark.parametrize(
    ("build", "layer", "message"),
    [
        (lambda: ChannelsEndLast(8), "features", r"'features' gives \(5, 4, 4, 8\), no map \[n, c, h, w\]"),
        (lambda: ChannelsEndLast(32), "features", r"gives \(5, 4, 4, 32\), no map"),
        (Tokens, "features", r"'features' gives \(5, 8, 16\), no map \[n, c, h, w\]"),
        (Plain, "head", r"'head' gives \(5, 4\), no map"),
        (Plain, "", r"gives \(5, 4\), no map"),
        (Unused, "idle", "'idle' runs 0 times"),
    ],
)
def test_a_class_activation_map_of_what_is_no_map_is_an_error(name, build, layer, message):
    torch.manual_seed(0)
    with pytest.raises(ValueError, match=message):
        explained(name, build().eval(), layer=layer)


@pytest.mark.parametrize("name", CAMS)
def test_a_class_activation_map_is_of_the_layers_output_before_others_change_it_in_place(name):
    # As in torchvision's DenseNet, whose last ReLU works in place on its features; here by an operation that matters.
    class Changed(Plain):
        def forward(self, x):
            return self.head(self.features(x).add_(1).mul_(-2))

    class Unchanged(Plain):
        def forward(self, x):
            return self.head((self.features(x) + 1) * -2)

    assert_same(explained(name, Changed()), explained(name, Unchanged()))


# Vision Transformers and texts


def vit(**options) -> nn.Module:
    torch.manual_seed(0)
    sizes = {"img_size": 16, "patch_size": 4, "embed_dim": 16, "depth": 2, "num_heads": 4, "num_classes": 4}
    return timm.models.vision_transformer.VisionTransformer(**sizes | options).eval()


def repeated() -> nn.Module:
    model = vit()
    model.blocks = nn.Sequential(*[model.blocks[0]] * 2)
    return model


def repeated_apart() -> nn.Module:
    model = vit()
    model.blocks = nn.Sequential(*[copy.deepcopy(model.blocks[0]) for _ in range(2)])
    return model


@pytest.mark.parametrize("name", sorted(TRANSFORMER))
def test_a_transformer_whose_layers_are_one_is_like_one_whose_layers_are_equal(name):
    assert_same(explained(name, repeated()), explained(name, repeated_apart()))


@pytest.mark.parametrize("name", sorted(TRANSFORMER))
@pytest.mark.parametrize(
    ("build", "message"),
    [
        (Plain, "expected a Vision Transformer of timm .* not a Plain"),
        (lambda: vit(global_pool="map"), "not a VisionTransformer with 'map'"),
        (lambda: vit(block_fn=timm.models.vision_transformer.ParallelThingsBlock), "expected a Vision Transformer"),
    ],
)
def test_a_transformer_that_cannot_be_explained_is_an_error(name, build, message):
    with pytest.raises(ValueError, match=message):
        explained(name, build())


@pytest.mark.parametrize("name", sorted(TRANSFORMER))
def test_a_transformer_for_images_of_another_size_is_explained_at_their_patches(name):
    dynamic, fixed = vit(img_size=8, dynamic_img_size=True), vit(img_size=16)
    weights = dynamic.state_dict()
    with torch.no_grad():
        shown = dynamic.patch_embed(X).flatten(1, 2)
        positions = dynamic._pos_embed(dynamic.patch_embed(X))[:1, 1:] - shown[:1]
    weights["pos_embed"] = torch.cat([weights["pos_embed"][:, :1], positions], 1)
    fixed.load_state_dict(weights)
    found, expected = (explained(name, model.double(), X.double()) for model in (dynamic, fixed))
    assert_same(found, expected)


def test_conservative_lrp_of_another_normalisation_is_an_error():
    with pytest.raises(ValueError, match=r"the model has \{'RmsNorm'\}, but conservative-lrp .* LayerNorm only"):
        explained("conservative-lrp", vit(norm_layer=timm.layers.RmsNorm))


class TwoTexts(nn.Module):
    """The halves of a text, each through the same embedding."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.head = nn.Embedding(30, 4), nn.Linear(4, 4)

    def forward(self, ids):
        one, other = ids.chunk(2, dim=1)
        return self.head(self.embedding(one).sum(1) - self.embedding(other).sum(1))


class ByFunction(TwoTexts):
    def forward(self, ids):
        return self.head(functional.embedding(ids, self.embedding.weight).sum(1))


class Bags(TwoTexts):
    def __init__(self):
        super().__init__()
        self.embedding = nn.EmbeddingBag(30, 4)

    def forward(self, ids):
        return self.head(self.embedding(ids))


@pytest.mark.parametrize("name", OF_TOKENS)
@pytest.mark.parametrize(
    ("build", "message"),
    [
        (TwoTexts, "'embedding' runs 2 times in a forward"),
        (ByFunction, "'embedding' runs 0 times"),
        (Bags, r"a number per element of \[5, 12\]"),
    ],
)
def test_token_ids_without_one_vector_each_are_an_error(name, build, message):
    with pytest.raises(ValueError, match=message):
        explained(name, build(), IDS, features=segments.tokens(12))


@pytest.mark.parametrize("name", OF_TOKENS)
def test_an_embedding_below_a_wrapper_is_found_by_its_name(name):
    model = Logits(reader(), lambda answer: answer)
    found = explained(name, model, IDS, features=segments.tokens(12), layer="model.embedding")
    assert_same(found, explained(name, reader(), IDS, features=segments.tokens(12)))


# Inputs that have no explanation


def spoilt(x: torch.Tensor, number: float) -> torch.Tensor:
    x = x.clone()
    x[1].view(-1)[3] = number
    return x


BAD_INPUTS = {
    "numpy inputs": {"x": X.numpy()},
    "numpy targets": {"target": TARGET.numpy()},
    "NaN": {"x": spoilt(X, torch.nan)},
    "infinity": {"x": spoilt(X, -torch.inf)},
    "one input alone": {"x": X[0, 0, 0]},
    "targets out of range": {"target": TARGET + 1},
    "negative targets": {"target": TARGET - 1},
    "other targets": {"target": TARGET.int()},
    "one-hot targets": {"target": functional.one_hot(TARGET)},
    "fewer targets": {"target": TARGET[:1]},
    "other segments": {"segments": segments.pixels(8, 8)},
    "gaps in segments": {"segments": PIXELS * 2},
    "float segments": {"segments": PIXELS.float()},
    "fewer identities": {"images": torch.arange(3)},
    "no input at a time": {"batch_size": 0},
    "another device": {"x": X.to("meta")},
    "targets elsewhere": {"target": TARGET.to("meta")},
}


@pytest.mark.parametrize("name", ["saliency", "rise", "lrp"])  # it is said before an explainer sees it
@pytest.mark.parametrize("bad", BAD_INPUTS)
def test_an_input_without_an_explanation_is_an_error(name, bad):
    arguments = {"x": X, "target": TARGET, "segments": PIXELS, **QUICK.get(name, {})} | BAD_INPUTS[bad]
    with pytest.raises(
        (ValueError, RuntimeError, AttributeError), match=r"expected|NaN|broadcast|identity|bounds|[Mm]eta"
    ):
        explain(name, network(), **arguments)


@pytest.mark.parametrize("name", OF_IMAGES)
def test_inputs_in_channels_last_have_the_same_explanation(name):
    model, x = task(name)[0].double(), X.double()  # see `precisely`; the layout is the same
    assert_same(explained(name, model, x.to(memory_format=torch.channels_last)), explained(name, model, x))


LRP = ["lrp", "partial-lrp", "transformer-attribution"]


@cache
def of_subject(name: str) -> torch.Tensor:
    return explained(name, task(name)[0])


@pytest.mark.parametrize("name", OF_IMAGES)
@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float16, torch.float64])
def test_a_model_in_another_precision_has_nearly_the_same_explanation(name, precision):
    exact = of_subject(name)
    options = {"background": QUICK[name]["background"].to(precision)} if name == "expected-gradients" else {}
    model, x = task(name)[0].to(precision), X.to(precision)
    found = explained(name, model, x, **options)
    assert found.dtype == torch.float32
    # Eight bits, through some layers and steps of an optimiser: the order stays by and large.
    if name in LRP and precision != torch.float64:
        return  # which divides by sums that cancel: rounded weights are another network
    least = 0.9 if precision != torch.float64 or name == "extremal-perturbation" else 0.99
    assert stats.pearson(found, exact)[exact.amax(1) > exact.amin(1)].mean() > least


# Options


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("expected-gradients", {"background": X[0]}, "expanded size of the tensor"),
        ("expected-gradients", {"background": X[:0]}, "gave NaN"),
        ("smoothgrad", {"samples": 0}, "division by zero|expected a number per element"),
        ("rise", {"samples": 0}, "samples.* whole number"),
        ("shapley-sampling", {"patch": 5}, "patch size that divides the sides"),
        ("extremal-perturbation", {"areas": [5, 10]}, "areas between 0 and 1, .* got .*5"),
        ("extremal-perturbation", {"steps": 0}, "steps.* whole number"),
        ("iba", {"steps": 0}, "steps.* whole number"),
    ],
)
def test_options_without_a_meaning_are_an_error(name, options, message):
    with pytest.raises((ValueError, RuntimeError, ZeroDivisionError), match=message):
        explained(name, network(), **options)


@pytest.mark.parametrize("name", CAMS)
def test_what_is_no_image_is_an_error(name):
    model = nn.Sequential(nn.Flatten(), nn.Linear(48, 4))
    with pytest.raises(ValueError, match=r"no map \[n, c, h, w\]"):
        explained(name, model, torch.rand(5, 16, 3), features=segments.time_steps(16), layer="0")


def test_masks_of_oblong_images_are_not_turned():
    # 64 x 16 points, which are as many as 32 x 32.
    x = torch.zeros(1, 1, 64, 16)
    points = torch.rand(1, 64 * 16, generator=torch.Generator().manual_seed(0))
    assert torch.equal(region._at_size(points, 16, x), points.view(1, 1, 64, 16))
