"""Every explainer under one suite, then each against its definition or against a peer that others trust."""

import functools
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import captum.attr
import numpy as np
import pytest
import pytorch_grad_cam
import scipy.stats
import torch
from torch import nn
from zennit.composites import ExcitationBackprop
from zennit.rules import Pass
from zennit.types import Activation

import literal
from faithlab import engine, explainers, outputs, segments, stats
from faithlab.explainers import cam, explain, perturbation, region
from faithlab.explainers.degrade import degrade
from faithlab.metrics.fidelity import fidelity
from faithstudy.data.sets import TextSet
from faithstudy.networks import models

X = torch.randn(5, 3, 16, 16, generator=torch.Generator().manual_seed(0))
TARGET = torch.tensor([0, 3, 1, 1, 2])
IDENTITIES = torch.tensor([9, 2, 400, 0, 7])
PIXELS = segments.pixels(16, 16)
NETWORKS = ["cnn3", "resnet9"]
OF_TOKENS = ["input-x-gradient-embedding", "integrated-gradients-embedding"]  # explain token ids instead of images
TOKEN_NETWORKS = ["lstm", "transformer"]
LENGTHS = torch.tensor([12, 3, 7, 1, 12])
IDS = torch.randint(1, 30, (5, 12), generator=torch.Generator().manual_seed(0))
IDS = IDS.where(torch.arange(12) < LENGTHS[:, None], TextSet.PADDING)
QUICK = {  # fewer samples where an explainer draws or integrates
    "extremal-perturbation": {"steps": 5, "areas": [0.1, 0.4]},
    "iba": {"steps": 3, "samples": 4},
    "integrated-gradients": {"steps": 8},
    "rise": {"samples": 30, "cells": 4},
    "integrated-gradients-embedding": {"steps": 8},
    "smoothgrad": {"samples": 4},
    "smoothgrad-squared": {"samples": 4},
    "shapley-sampling": {"samples": 3},
    # Grey, so that it suits images of any number of channels.
    "expected-gradients": {"background": torch.randn(6, 1, 16, 16, generator=torch.Generator().manual_seed(3)) * 0.3},
}

TRANSFORMER = {  # what only Vision Transformers have
    "attcat",
    "conservative-lrp",
    "gradcam-vit",
    "lrp",
    "partial-lrp",
    "raw-attention",
    "rollout",
    "transformer-attribution",
    "transformer-mm",
}
WITHOUT_CHANNELS = TRANSFORMER - {"lrp", "conservative-lrp"} | {
    "gradcam",
    "layercam",
    "rise",
    "extremal-perturbation",
    "iba",
}

every_explainer = pytest.mark.parametrize("name", explainers.names())
OF_IMAGES = [name for name in explainers.names() if name not in OF_TOKENS]
every_explainer_of_images = pytest.mark.parametrize("name", OF_IMAGES)


def network(name: str = "cnn3", channels: int = 3) -> nn.Module:
    """A network with BatchNorm statistics of its own; the transformer's weights are such that its layers matter."""
    torch.manual_seed(0)
    if name == "vit":
        model = models.build(name, classes=4, channels=channels, size=16, patch=4, dim=16, depth=3, heads=4)
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=parameter[0].numel() ** -0.5 if parameter.ndim > 1 else 0.3)
        return model.eval()
    model = models.build(name, classes=4, channels=channels, width=4)
    with torch.no_grad():
        for _ in range(3):
            model(torch.randn(16, channels, 16, 16) * 2)
    return model.eval()


def reader(name: str = "lstm") -> nn.Module:
    """A network for texts."""
    torch.manual_seed(0)
    sizes = {"hidden": 8} if name == "lstm" else {"depth": 2, "heads": 2}
    return models.build(name, classes=4, words=30, dim=8, **sizes).eval()


def task(name: str) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """A network, its inputs and their features, of the kind that an explainer explains."""
    if name in OF_TOKENS:
        return reader(), IDS, segments.tokens(12)
    return network("vit" if name in TRANSFORMER else "cnn3"), X, PIXELS


class Smooth(nn.Module):
    """A small network without kinks, in float64, on images [n, 1, 4, 4]."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 3)).double()

    def forward(self, x):
        return self.layers(x)


SMALL = torch.randn(3, 1, 4, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
SMALL_TARGET = torch.tensor([2, 0, 1])
SMALL_PIXELS = segments.pixels(4, 4)


def explained(name, model=None, x=None, some=slice(None), features=None, **options):
    own, inputs, smallest = task(name)
    return explain(
        name,
        own if model is None else model,
        (inputs if x is None else x)[some],
        TARGET[some],
        smallest if features is None else features,
        images=IDENTITIES[some],
        **QUICK.get(name, {}),
        **options,
    )


def precisely(name, **options):
    """In float64: where relevance is divided by sums that nearly cancel, float32's rounding becomes a percent."""
    model, x, _ = task(name)
    return explained(name, model.double(), x.double() if x.is_floating_point() else x, **options)


@functools.cache
def whole(name, how=explained):
    """What an explainer says of all its inputs, at one go: many tests compare with it."""
    return how(name)


def assert_same(one, other):
    """Equal up to the rounding of float32 at the attribution's own scale."""
    torch.testing.assert_close(one, other, atol=1e-5 * float(other.abs().max()), rtol=1e-4)


# What every explainer must do


@pytest.mark.parametrize(
    ("name", "architecture"),
    [(name, kind) for name in OF_IMAGES for kind in (["vit"] if name in TRANSFORMER else NETWORKS)],
)
@pytest.mark.parametrize("channels", [1, 3], ids=["grey", "RGB"])
def test_gives_a_finite_number_per_feature(name, architecture, channels):
    attribution = explained(name, network(architecture, channels), X[:, :channels])
    assert attribution.shape == (5, 256)
    assert attribution.dtype == torch.float32
    assert attribution.isfinite().all()
    assert not attribution.requires_grad
    varies = attribution.amax(1) > attribution.amin(1)
    # The ReLU of Grad-CAM may leave nothing of an image.
    assert varies.any() if name.startswith("gradcam") else varies.all()


@pytest.mark.parametrize("name", OF_TOKENS)
@pytest.mark.parametrize("architecture", TOKEN_NETWORKS)
def test_gives_a_finite_number_per_token_and_nothing_to_padding(name, architecture):
    attribution = explained(name, reader(architecture))
    assert attribution.shape == (5, 12)
    assert attribution.dtype == torch.float32
    assert attribution.isfinite().all()
    assert not attribution.requires_grad
    present = IDS != TextSet.PADDING
    assert (attribution[~present] == 0).all()
    assert (attribution[present & (IDS != TextSet.MASK)] != 0).all()


@every_explainer
def test_gives_the_same_twice(name):
    assert torch.equal(explained(name), whole(name))


@every_explainer
def test_gives_an_image_the_same_in_any_batch_and_order(name):
    some = torch.tensor([3, 0, 4])
    assert_same(precisely(name, some=some), whole(name, precisely)[some])


@every_explainer
@pytest.mark.parametrize("batch_size", [1, 2])
def test_does_not_depend_on_the_batch_size(name, batch_size):
    assert_same(precisely(name, batch_size=batch_size), whole(name, precisely))


HOOKS = [kind for kind in vars(nn.Module()) if kind.endswith(("hooks", "hooks_with_kwargs", "hooks_always_called"))]


def condition(model: nn.Module) -> dict:
    """All of a model that an explainer could leave changed."""
    return {
        "values": {key: value.clone() for key, value in model.state_dict().items()},
        "layout": {key: value.stride() for key, value in model.state_dict().items()},
        "training": {name: module.training for name, module in model.named_modules()},
        "hooks": {(name, kind): dict(vars(m)[kind]) for name, m in model.named_modules() for kind in HOOKS},
        "attributes": {name: set(vars(module)) for name, module in model.named_modules()},
        "asks": {name: parameter.requires_grad for name, parameter in model.named_parameters()},
        "gradients": {name: parameter.grad for name, parameter in model.named_parameters()},
        "fused": [module.fused_attn for module in model.modules() if hasattr(module, "fused_attn")],
        "own": {name: id(parameter) for name, parameter in model.named_parameters()},
    }


def assert_left_as(model: nn.Module, before: dict):
    after = condition(model)
    values = before["values"]
    assert all(torch.equal(value, values[key]) for key, value in after.pop("values").items())
    gradients = before["gradients"]
    assert all(gradient is gradients[name] for name, gradient in after.pop("gradients").items())
    assert after == {key: value for key, value in before.items() if key in after}


def lived_in(name: str) -> nn.Module:
    """An explainer's task in use: partly frozen and partly training, with gradients, a hook, channels-last."""
    model = task(name)[0]
    for number, parameter in enumerate(model.parameters()):
        parameter.requires_grad_(number % 3 > 0)
        parameter.grad = torch.full_like(parameter, 0.5) if number % 2 else None
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    for number, module in enumerate(model.modules()):
        module.training = number % 2 == 0
    return model


def with_a_listener(model: nn.Module) -> list:
    """Notes each output of the first layer without children, by a hook."""
    first = next(module for module in model.modules() if not list(module.children()))
    heard = []
    first.register_forward_hook(lambda module, args, output: heard.append(output.shape))
    return heard


class BrokenOffError(Exception):
    pass


@every_explainer
def test_leaves_the_model_the_inputs_and_the_random_numbers_alone(name):
    model = lived_in(name)
    heard = with_a_listener(model)
    _, inputs, features = task(name)
    x = inputs.clone()
    before = condition(model)
    kept = {key: gradient.clone() for key, gradient in before["gradients"].items() if gradient is not None}
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    explain(name, model, x, TARGET, features, **QUICK.get(name, {}))
    assert torch.equal(torch.rand(3), expected)
    assert heard
    assert_left_as(model, before)
    assert all(torch.equal(before["gradients"][key], value) for key, value in kept.items())
    assert torch.equal(x, inputs)
    assert not x.requires_grad
    assert x.grad is None


@pytest.mark.parametrize("name", ["layercam", "iba", "attcat", "integrated-gradients-embedding"])
@pytest.mark.parametrize("lent", [False, True])
def test_leaves_the_model_alone_where_it_breaks_off(name, lent):
    model, x, _ = task(name)
    if lent:  # the copy of such a model would run the model itself
        model.forward = (lambda forward: lambda x: forward(x))(model.forward)
    left = iter(range(2 if lent else 3))  # evaluations at the door

    def interrupt(module, args, output):
        if next(left, None) is None:
            raise BrokenOffError

    last = [module for module in model.modules() if isinstance(module, nn.Linear)][-1]
    last.register_forward_hook(interrupt)
    for number, module in enumerate(model.modules()):
        module.training = number % 2 == 0
    before = condition(model)
    with pytest.raises(BrokenOffError):
        explained(name, model, x)
    assert_left_as(model, before)


@pytest.mark.parametrize("raises", [True, False])
def test_what_an_explainer_of_the_users_leaves_behind_is_taken_away(raises):
    def careless(model, x, target, images):
        x = x.requires_grad_()
        model.train().requires_grad_(False)
        model.head[2].requires_grad_(True)
        model.register_forward_hook(lambda module, args, output: None)
        model.features[0].register_full_backward_hook(lambda module, one, other: None)
        torch.manual_seed(0)
        model(x).sum().backward()
        if raises:
            raise BrokenOffError
        return x.grad

    model = network()
    model.eval()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    before = condition(model)
    x, generator = X.clone(), torch.get_rng_state()
    try:
        explain(careless, model, x, TARGET, PIXELS)
    except BrokenOffError:
        assert raises
    assert_left_as(model, before)
    assert all((parameter.grad == 1).all() for parameter in model.parameters())
    assert torch.equal(torch.get_rng_state(), generator)
    assert not x.requires_grad
    assert x.grad is None


@every_explainer
def test_explains_the_model_in_eval_mode(name):
    training = task(name)[0].train()
    assert torch.equal(explained(name, training), whole(name))
    assert training.training


@every_explainer
def test_of_no_inputs_there_are_no_attributions(name):
    assert explained(name, some=slice(0)).shape == (0, 12 if name in OF_TOKENS else 256)


@every_explainer
def test_of_one_input_it_is_what_it_is_among_others(name):
    assert_same(precisely(name, some=slice(2, 3)), whole(name, precisely)[2:3])


@every_explainer
def test_works_with_frozen_weights_and_where_gradients_are_off(name):
    frozen = task(name)[0].requires_grad_(False)
    assert_same(explained(name, frozen), whole(name))
    with torch.no_grad():
        assert_same(explained(name), whole(name))


@every_explainer
def test_sums_a_features_elements(name):
    larger = torch.arange(12) // 3 if name in OF_TOKENS else segments.patches(16, 16, 4)
    smallest = whole(name)
    expected = torch.stack([smallest[:, larger.flatten() == f].sum(1) for f in range(segments.count(larger))], 1)
    assert_same(explained(name, features=larger), expected)


@every_explainer_of_images
def test_channels_can_be_features_of_their_own(name):
    apart = torch.arange(3 * 256).view(3, 16, 16)
    attribution = explained(name, features=apart)
    assert attribution.shape == (5, 768)
    if name not in WITHOUT_CHANNELS:  # whose maps have no channels: each one has the pixel's value
        assert_same(attribution.view(5, 3, 256).sum(1), whole(name))
    else:
        assert_same(attribution.view(5, 3, 256), whole(name)[:, None].expand(-1, 3, -1))


@pytest.mark.parametrize("shape", [(5, 3, 16), (5, 16, 16), (1, 3, 16, 16), (5, 2, 16, 16)])
@pytest.mark.parametrize("images", [5, 3])
def test_a_relevance_that_does_not_fit_the_input_is_an_error(shape, images, monkeypatch):
    # With as many images as channels, [n, H, W] would broadcast to [n, C, H, W] and mean something else.
    shape = (images if shape[0] == 5 else 1, *shape[1:])
    monkeypatch.setitem(explainers._EXPLAINERS, "odd", lambda model, x, target, identities: torch.rand(shape))
    with pytest.raises(ValueError, match=r"'odd' to give a number per element of \[\d, 3, 16, 16\]"):
        explained("odd", some=slice(images))


def test_a_registered_explainer_is_known_by_its_name(monkeypatch):
    monkeypatch.setattr(explainers, "_EXPLAINERS", dict(explainers._EXPLAINERS))
    explainers.register("brightness")(lambda model, x, target, images: x)
    assert "brightness" in explainers.names()
    assert_same(explained("brightness"), X.sum(1).flatten(1))
    with pytest.warns(UserWarning, match="'brightness' is replaced"):  # a cell of a notebook that is run again
        explainers.register("brightness")(lambda model, x, target, images: -x)
    assert_same(explained("brightness"), -X.sum(1).flatten(1))
    with pytest.raises(ValueError, match="'saliency' is an explainer of faithlab's own"):
        explainers.register("saliency")(lambda model, x, target, images: x)


@pytest.mark.parametrize("kind", [np.asarray, lambda x: (x,), lambda x: [x.numpy()], torch.Tensor.tolist])
def test_relevance_that_is_no_tensor_is_converted_where_there_is_no_doubt(kind):
    assert_same(explained(lambda model, x, target, images: kind(x)), X.sum(1).flatten(1))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda x: None, "a number per element of .* not NoneType"),
        (lambda x: (x, x), r"a number per element of .* not "),
        (lambda x: x.sum(), r"a number per element of .* not \[\]"),
        (lambda x: x / 0, "gave NaN or infinite relevance"),
        (lambda x: x * torch.nan, "gave NaN or infinite relevance"),
    ],
)
def test_another_answer_of_an_explainer_is_an_error(answer, message):
    with pytest.raises(ValueError, match=message):
        explained(lambda model, x, target, images: answer(x))


@pytest.mark.parametrize("name", ["layercam", "excitation-backprop", "shapley-sampling", "attcat", *OF_TOKENS])
@pytest.mark.parametrize("lent", [False, True])
def test_threads_may_explain_one_model(name, lent):
    model, x, features = task(name)
    if lent:
        model.forward = (lambda forward: lambda x: forward(x))(model.forward)
    alone, before, was = precisely(name), condition(model.double().train()), sys.getswitchinterval()
    x = x.double() if x.is_floating_point() else x
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            parts = [(name, model, x[i : i + 1], TARGET[i : i + 1], features) for i in (0, 1, 2, 3, 4) * 2]
            options = [{"images": IDENTITIES[i : i + 1], **QUICK.get(name, {})} for i in (0, 1, 2, 3, 4) * 2]
            jobs = [pool.submit(explain, *part, **own) for part, own in zip(parts, options, strict=True)]
            assert_same(torch.cat([job.result() for job in jobs]), alone.repeat(2, 1))
    finally:
        sys.setswitchinterval(was)
    assert_left_as(model, before)


# The gradient family


def small(name, **options):
    return explain(name, Smooth(), SMALL, SMALL_TARGET, SMALL_PIXELS, **options)


def differences(step: float = 1e-5) -> torch.Tensor:
    """The gradient of the target's logit by central differences, one pixel of one image at a time: [3, 16]."""
    model, gradient = Smooth(), torch.empty(3, 16, dtype=torch.float64)
    for b in range(3):
        for pixel in range(16):
            shift = torch.zeros(16, dtype=torch.float64)
            shift[pixel] = step
            up, down = (model(SMALL[b : b + 1] + sign * shift.view(1, 1, 4, 4)) for sign in (1, -1))
            gradient[b, pixel] = (up - down)[0, SMALL_TARGET[b]].item() / (2 * step)
    return gradient


def test_saliency_is_the_absolute_gradient():
    torch.testing.assert_close(small("saliency"), differences().abs().float())


def test_input_times_gradient_is_signed():
    torch.testing.assert_close(small("input-x-gradient"), (differences() * SMALL.flatten(1)).float())


@pytest.mark.parametrize("baseline", [0.0, 0.7])
def test_integrated_gradients_add_up_to_what_the_input_adds_to_the_baseline(baseline):
    model = Smooth()
    with torch.no_grad():
        added = (model(SMALL) - model(torch.full_like(SMALL, baseline))).gather(1, SMALL_TARGET[:, None])[:, 0]
    attribution = small("integrated-gradients", steps=32, baseline=baseline)
    torch.testing.assert_close(attribution.sum(1), added.float(), atol=1e-5, rtol=0)


def test_integrated_gradients_of_a_linear_model_are_weight_times_input():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 3)).double()
    expected = model[1].weight[SMALL_TARGET] * SMALL.flatten(1)
    attribution = explain("integrated-gradients", model, SMALL, SMALL_TARGET, SMALL_PIXELS, steps=1)
    torch.testing.assert_close(attribution, expected.detach().float())


# Integrated Gradients on embeddings


class Bag(nn.Module):
    """Linear in the embeddings of its tokens, which are numbers written here: 0 padding, 1 mask, then words."""

    VALUES = torch.tensor([[0.0, 0.0], [1.0, -1.0], [3.0, 0.5], [-2.0, 4.0]])
    WEIGHTS = torch.tensor([[1.0, 10.0], [-2.0, 0.0]])  # [classes, D]

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(self.VALUES)

    def forward(self, ids):
        return self.embedding(ids).sum(1) @ self.WEIGHTS.T


def test_integrated_gradients_of_a_bag_of_embeddings_are_known_on_paper():
    ids, target = torch.tensor([[2, 1, 3, 0], [3, 3, 0, 0]]), torch.tensor([0, 1])
    attribution = explain("integrated-gradients-embedding", Bag(), ids, target, segments.tokens(4), steps=1)
    # Weight times (value - value of the mask), summed over the two dimensions.
    first = [(3 - 1) * 1 + (0.5 + 1) * 10, 0, (-2 - 1) * 1 + (4 + 1) * 10, 0]
    second = [(-2 - 1) * -2, (-2 - 1) * -2, 0, 0]
    torch.testing.assert_close(attribution, torch.tensor([first, second], dtype=torch.float32))
    from_zero = explain(
        "integrated-gradients-embedding", Bag(), ids[:1], target[:1], segments.tokens(4), steps=1, baseline=0
    )
    torch.testing.assert_close(from_zero, torch.tensor([[3 * 1 + 0.5 * 10, 1 - 10, -2 + 4 * 10, 0.0]]))


def test_input_times_gradient_of_a_bag_of_embeddings_is_known_on_paper():
    ids, target = torch.tensor([[2, 1, 3, 0], [3, 3, 0, 0]]), torch.tensor([0, 1])
    attribution = explain("input-x-gradient-embedding", Bag(), ids, target, segments.tokens(4))
    expected = [[3 * 1 + 0.5 * 10, 1 - 10, -2 + 4 * 10, 0.0], [4.0, 4.0, 0.0, 0.0]]
    torch.testing.assert_close(attribution, torch.tensor(expected))


@pytest.mark.parametrize("architecture", TOKEN_NETWORKS)
def test_integrated_gradients_of_tokens_add_up_to_what_the_text_adds_to_its_masked_self(architecture):
    model = reader(architecture)
    masked = torch.full_like(IDS, TextSet.MASK).where(IDS != TextSet.PADDING, TextSet.PADDING)
    with torch.no_grad():
        added = (model(IDS) - model(masked)).gather(1, TARGET[:, None])[:, 0]
    assert added.abs().max() > 1e-3
    attribution = explain("integrated-gradients-embedding", model, IDS, TARGET, segments.tokens(12), steps=64)
    torch.testing.assert_close(attribution.sum(1), added, atol=1e-3 * float(added.abs().max()), rtol=0)


@pytest.mark.parametrize("architecture", TOKEN_NETWORKS)
def test_more_padding_changes_no_tokens_relevance(architecture):
    model = reader(architecture)
    longer = nn.functional.pad(IDS, (0, 5), value=TextSet.PADDING)
    attribution = explain("integrated-gradients-embedding", model, longer, TARGET, segments.tokens(17), steps=8)
    assert_same(attribution[:, :12], explained("integrated-gradients-embedding", model))
    assert (attribution[:, 12:] == 0).all()


def test_smoothgrad_without_noise_is_the_gradient_and_its_square():
    saliency = small("saliency")
    torch.testing.assert_close(small("smoothgrad", noise=0.0, samples=3), saliency)
    torch.testing.assert_close(small("smoothgrad-squared", noise=0.0, samples=3), saliency**2)


@pytest.mark.parametrize(("name", "peer"), [("smoothgrad", "smoothgrad"), ("smoothgrad-squared", "smoothgrad_sq")])
def test_smoothgrad_is_captums_up_to_sampling(name, peer):
    samples, noise = 1000, 0.2
    ours = small(name, samples=samples, noise=noise).double()
    torch.manual_seed(0)
    theirs = torch.cat(
        [
            captum.attr.NoiseTunnel(captum.attr.Saliency(Smooth())).attribute(
                x[None],
                nt_type=peer,
                nt_samples=samples,
                nt_samples_batch_size=500,
                stdevs=noise * float(x.max() - x.min()),
                target=int(y),
                abs=False,
            )
            for x, y in zip(SMALL, SMALL_TARGET, strict=True)
        ]
    )
    theirs = theirs.detach().abs().flatten(1)
    plain = small("saliency").double() ** (2 if name.endswith("squared") else 1)
    # Two independent means of 1000 samples: some percent apart, while the noise itself moves them much further.
    assert (ours - theirs).norm() < 0.03 * theirs.norm()
    assert (plain - theirs).norm() > 0.1 * theirs.norm()


def test_more_samples_and_other_seeds_are_other_noise():
    assert not torch.equal(explained("smoothgrad", seed=0), explained("smoothgrad", seed=1))
    assert not torch.equal(small("smoothgrad", samples=2), small("smoothgrad", samples=3))


# Class activation maps

CAMS = pytest.mark.parametrize(
    ("name", "peer"), [("gradcam", pytorch_grad_cam.GradCAM), ("layercam", pytorch_grad_cam.LayerCAM)]
)


def peers_maps(peer, model, layer):
    """The peer's own maps: scaled to 0..1 in each image, at the input's size."""
    targets = [pytorch_grad_cam.utils.model_targets.ClassifierOutputTarget(int(y)) for y in TARGET]
    with peer(model=model, target_layers=[model.get_submodule(layer)]) as cam:
        return torch.from_numpy(np.asarray(cam(input_tensor=X, targets=targets))).flatten(1)


@CAMS
def test_a_cam_at_full_size_is_the_peers(name, peer):
    # The first block keeps the image's size, so that no interpolation comes between.
    layer = "features.0"
    model = network("resnet9")
    ours = explained(name, model, layer=layer)
    low, high = ours.amin(1, keepdim=True), ours.amax(1, keepdim=True)
    assert (high > low).any()
    scaled = (ours - low) / (high - low).clamp(min=1e-30)
    torch.testing.assert_close(scaled, peers_maps(peer, network("resnet9"), layer), atol=1e-4, rtol=0)


@CAMS
@pytest.mark.parametrize("architecture", NETWORKS)
def test_an_enlarged_cam_is_the_peers_up_to_its_scale(name, peer, architecture):
    # The peer scales the small map, then enlarges it; both are linear, so the maps are equal up to scale and shift.
    ours = explained(name, network(architecture))
    theirs = peers_maps(peer, network(architecture), "features")
    correlation = stats.pearson(ours, theirs)
    nothing = (ours == 0).all(1)  # Grad-CAM's ReLU may leave nothing of an image, for the peer as for us
    assert not nothing.all()
    assert (correlation[~nothing] > 1 - 1e-5).all()
    assert (theirs[nothing] == 0).all()


def test_a_region_is_seen_through_a_layer_as_the_means_of_its_cells():
    model = nn.Sequential(nn.AvgPool2d(4), nn.Flatten())
    region = torch.zeros(2, 8, 8, dtype=torch.bool)
    region[:, :4, :4] = True  # a cell of the layer
    region[1, 0, 0] = False
    found = cam.through(region, model, "0", torch.rand(2, 3, 8, 8))
    assert found.shape == (2, 8, 8)
    torch.testing.assert_close(found[:, 0, 0], torch.tensor([1.0, 15 / 16]).double())
    torch.testing.assert_close(found[:, 7, 7], torch.zeros(2).double())
    assert 0 < found[0, 3, 3] < 1  # interpolated between cells


# Backpropagated relevance


@pytest.mark.parametrize("architecture", NETWORKS)
def test_excitation_backprop_passes_on_all_relevance_and_no_more(architecture):
    # Also where two branches meet: each takes its share of what there is.
    attribution = explained("excitation-backprop", network(architecture))
    torch.testing.assert_close(attribution.sum(1), torch.ones(5), atol=1e-3, rtol=0)


def test_excitation_backprop_is_zennits_where_each_operation_is_a_module_and_used_once():
    model = nn.Sequential(
        *(nn.Conv2d(3, 6, 3, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 8, 3, groups=2, padding=1), nn.LeakyReLU()),
        *(nn.AvgPool2d(3), nn.Flatten(), nn.Linear(8, 6), nn.GELU(), nn.Linear(6, 4)),
    )
    composite = ExcitationBackprop(layer_map=[(Activation, Pass())], zero_params=["bias"])
    with composite.context(model):
        x = X.clone().requires_grad_()
        (theirs,) = torch.autograd.grad(model(x), x, nn.functional.one_hot(TARGET, 4).float())
    assert theirs.abs().max() > 0
    assert_same(explained("excitation-backprop", model), segments.pool(theirs, PIXELS))


def test_excitation_backprop_passes_through_the_standardisation_of_inputs():
    class Standardised(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.tensor([3.0, 2.0, 5.0]).view(3, 1, 1))
            self.register_buffer("shift", torch.tensor([0.5, -0.1, 0.3]).view(3, 1, 1))
            self.network = network("resnet9")

        def forward(self, x):
            return self.network(x * self.scale + self.shift)

    model = Standardised()
    inside = explained("excitation-backprop", model.network, X * model.scale + model.shift)
    assert_same(explained("excitation-backprop", model), inside)


def test_excitation_backprop_of_one_layer_is_its_share_of_the_positive_contributions():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 3)).double()
    attribution = explain("excitation-backprop", model, SMALL, SMALL_TARGET, SMALL_PIXELS)
    exciting = (model[1].weight[SMALL_TARGET] * SMALL.flatten(1)).clamp(min=0)
    torch.testing.assert_close(attribution, (exciting / exciting.sum(1, keepdim=True)).detach().float())


def test_excitation_backprop_follows_the_branch_that_is_taken():
    class Branching(nn.Module):
        def forward(self, x):
            return x.flatten(1)[:, :4] if x.sum() > 0 else x.flatten(1)[:, 4:8]

    found = explained("excitation-backprop", Branching())
    assert_same(found, torch.zeros(5, 256).scatter(1, TARGET[:, None] + (4 if X.sum() <= 0 else 0), 1))


# Perturbations and regions


class Looks(nn.Module):
    """Sees the mean of rows 4..7 and columns 8..11 of the image and nothing else."""

    def forward(self, x):
        seen = x[:, :, 4:8, 8:12].mean((1, 2, 3))
        return torch.stack([4 * seen, -4 * seen], 1)


LOOKED_AT = torch.zeros(16, 16, dtype=torch.bool)
LOOKED_AT[4:8, 8:12] = True


def test_rise_is_the_mean_answer_where_a_pixel_is_kept():
    samples, x = 300, torch.ones(1, 1, 16, 16)
    masks = perturbation._grids(3, IDENTITIES[:1], torch.arange(samples), 4, (16, 16))[0] < 0.5
    with torch.no_grad():
        answers = Looks()(masks.view(samples, 1, 16, 16).float()).softmax(1)[:, 0]
    expected = [answers[masks[:, pixel]].mean().item() for pixel in range(256)]
    found = explain(
        "rise", Looks(), x, torch.tensor([0]), PIXELS, images=IDENTITIES[:1], samples=samples, cells=4, seed=3
    )
    assert found[0].tolist() == pytest.approx(expected, abs=1e-6)
    assert found[0, LOOKED_AT.flatten()].min() > found[0, ~LOOKED_AT.flatten()].mean()


def test_the_grids_of_rise_are_shifted_squares_kept_alike():
    masks = perturbation._grids(0, IDENTITIES, torch.arange(2000), 4, (16, 16)) < 0.5
    assert masks.double().mean().item() == pytest.approx(0.5, abs=0.01)
    grid = masks.view(-1, 16, 16)
    # Neighbours differ at the edge of a square only, one place in four, and there half of the time.
    assert (grid[:, 1:] != grid[:, :-1]).double().mean().item() == pytest.approx(1 / 8, abs=0.01)
    edges = (grid[:, 1:] != grid[:, :-1]).double().mean((0, 2))
    assert edges.std() < 0.01


@pytest.mark.parametrize("name", ["rise", "extremal-perturbation"])
def test_a_perturbation_finds_what_the_model_looks_at(name):
    options = {"samples": 400, "cells": 4} if name == "rise" else {"steps": 30, "cells": 8, "areas": [0.05, 0.1, 0.2]}
    # A grey image with one bright square, so that a blur hides it.
    x = LOOKED_AT.float().expand(1, 1, 16, 16).clone()
    found = explain(name, Looks(), x, torch.tensor([0]), PIXELS, **options)[0]
    inside, outside = found[LOOKED_AT.flatten()], found[~LOOKED_AT.flatten()]
    assert inside.mean() > outside.mean() + 3 * outside.std()


def test_extremal_masks_have_their_areas():
    for area in (0.1, 0.3, 0.6):
        options = {"steps": 30, "cells": 8, "areas": [area]}
        mask = explain("extremal-perturbation", network(), X, TARGET, PIXELS, **options)
        assert (mask >= 0).all()
        assert (mask <= 1).all()
        torch.testing.assert_close(mask.mean(1), torch.full((5,), area), atol=0.1, rtol=0)


def test_the_information_of_a_bottleneck_is_the_divergence_from_its_noise():
    share, clean = torch.tensor(0.7), torch.tensor(1.5)
    mean, std = torch.tensor(0.2), torch.tensor(0.8)
    mixture = torch.distributions.Normal(share * clean + (1 - share) * mean, (1 - share) * std)
    expected = torch.distributions.kl_divergence(mixture, torch.distributions.Normal(mean, std))
    torch.testing.assert_close(region._information(share, clean, mean, std), expected)
    assert region._information(torch.tensor(0.0), clean, mean, std) == 0


def test_a_bottleneck_lets_by_less_the_more_it_costs():
    bits = [
        explain("iba", network(), X, TARGET, PIXELS, steps=20, samples=4, weight=weight).sum(1)
        for weight in (0.001, 0.1, 10.0)
    ]
    assert (bits[0] > 1.2 * bits[1]).all()
    assert (bits[1] > 1.2 * bits[2]).all()


def test_the_noise_of_a_bottleneck_can_come_from_other_images():
    torch.manual_seed(0)
    others = torch.randn(20, 3, 16, 16)
    one, other = (explained("iba", examples=others[part]) for part in (slice(20), slice(10)))
    assert one.isfinite().all()
    assert not torch.equal(one, other)


# Random and degraded explanations


def test_random_differs_between_seeds_and_images_and_looks_at_nothing():
    one = explained("random")
    assert not torch.equal(one, explained("random", seed=1))
    assert len(one.unique(dim=0)) == 5
    assert torch.equal(one, explained("random", network("resnet9"), X * 3))


def attribution(images=40, features=50):
    return torch.randn(images, features, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_degrading_permutes_the_scores_of_exactly_the_share(share):
    good = attribution()
    worse = degrade(good, share, seed=3)
    assert torch.equal(worse.sort(1).values, good.sort(1).values)
    moved = worse != good
    for image in range(40):
        chosen = literal.random_order(literal.stream("degrade", 3), image, 0, 50)[: literal.size(share, 50)]
        assert set(moved[image].nonzero().flatten().tolist()) <= set(chosen)
    # A random permutation leaves one of its elements in place, on average; the variance is one, too.
    if share:
        assert moved.sum(1).double().mean().item() == pytest.approx(share * 50 - 1, abs=4.5 / 40**0.5)


def test_degrading_by_nothing_changes_nothing():
    assert torch.equal(degrade(attribution(), 0.0), attribution())


def test_a_share_that_is_half_a_feature_is_rounded_up():
    scores = torch.arange(20.0).expand(50, -1)
    # 0.225 of 20 is 4.5; in float32 it is a little less.
    assert (degrade(scores, 0.225) != scores).sum(1).max() == 5


def test_a_larger_share_contains_the_smaller_one():
    chosen = [
        set(literal.random_order(literal.stream("degrade", 0), 0, 0, 50)[: literal.size(share, 50)])
        for share in (0.2, 0.6)
    ]
    assert chosen[0] < chosen[1]
    kept = torch.tensor(sorted(set(range(50)) - chosen[1]))
    for share in (0.2, 0.6):
        assert torch.equal(degrade(attribution(1), share)[:, kept], attribution(1)[:, kept])


def test_every_permutation_of_the_share_is_equally_likely():
    many = torch.arange(6000)
    worse = degrade(torch.arange(4.0).expand(6000, -1), 0.75, images=many)
    kinds, seen = worse.unique(dim=0, return_counts=True)
    # 3 of 4 chosen, then permuted: 4 * 6 = 24 ways, of which those with fixed points coincide between choices.
    moved = (kinds != torch.arange(4.0)).sum(1)
    for image_moves, ways in ((0, 4), (2, 2), (3, 1)):  # as many choices leave this many in place
        here = seen[moved == image_moves].tolist()
        expected = [6000 * ways / 24] * len(here)
        rest = [6000 - sum(here)], [6000 - sum(expected)]
        assert scipy.stats.chisquare([*here, *rest[0]], [*expected, *rest[1]]).pvalue > 1e-4


def test_more_degradation_leaves_less_of_the_order():
    good = attribution()
    agreement = [stats.spearman(degrade(good, share), good).mean().item() for share in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)]
    assert agreement == sorted(agreement, reverse=True)
    assert agreement[0] == pytest.approx(1)
    assert abs(agreement[-1]) < 0.1


def test_degrading_belongs_to_the_image_not_to_the_batch():
    good, images = attribution(4), torch.tensor([5, 0, 8, 3])
    some = torch.tensor([2, 0])
    assert torch.equal(degrade(good[some], 0.5, images=images[some]), degrade(good, 0.5, images=images)[some])
    assert not torch.equal(degrade(good, 0.5, images=images, seed=1), degrade(good, 0.5, images=images))


# Together: a network trained to look at one patch, and the explanation known


def patch_images(count: int, seed: int):
    """Noise with one 4 x 4 patch in the colour of the class, and where it is: x, target, patch [n]."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 3, 16, 16, generator=generator) * 0.3
    target, patch = (torch.randint(n, (count,), generator=generator) for n in (3, 16))
    inside = (segments.patches(16, 16, 4) == patch[:, None, None])[:, None]  # [n, 1, H, W]
    colour = torch.eye(3)[target][..., None, None]
    return torch.where(inside, x + 2 * colour, x), target, patch


@pytest.fixture(scope="module")
def trained():
    torch.manual_seed(0)
    model = models.build("cnn3", classes=3, width=4)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for step in range(60):
        x, target, _ = patch_images(64, step)
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x), target).backward()
        optimiser.step()
    return model.eval()


def test_on_a_trained_network_the_oracle_beats_every_explainer_and_they_beat_chance(trained):
    x, target, patch = patch_images(64, 1000)
    patches = segments.patches(16, 16, 4)
    score = engine.scorer(trained, x, target, segments=patches, output=outputs.correct)
    everything = torch.ones(64, 1, 16, dtype=torch.bool)
    assert score(everything).mean() > 0.95

    def loss(attribution) -> float:
        return fidelity(score, attribution, [1 / 16]).value.mean().item()

    oracle = loss(nn.functional.one_hot(patch, 16).float())
    chance = loss(explain("random", trained, x, target, patches))
    assert oracle > 0.5
    assert chance < 0.2
    for name in OF_IMAGES:
        if name != "random" and name not in TRANSFORMER:
            assert chance < loss(explain(name, trained, x, target, patches, **QUICK.get(name, {}))) <= oracle, name


def test_explaining_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in explainers.names():
            explained(name)


# Shapley values


class Product(nn.Module):
    """Logits that depend on two patches together: class 1 is the product of the means of the first and the last."""

    def forward(self, x):
        patches = nn.functional.avg_pool2d(x.mean(1, keepdim=True), 8).flatten(1)  # [n, 4]
        return torch.stack([patches.sum(1), patches[:, 0] * patches[:, 3]], 1)


def test_shapley_sampling_finds_the_shapley_values():
    x, target, patches = X[:, :1] + 2, torch.ones(5, dtype=torch.int64), segments.patches(16, 16, 8)
    means = nn.functional.avg_pool2d(x, 8).flatten(1)
    found = explain("shapley-sampling", Product(), x, target, patches, patch=8, samples=400)
    half = means[:, 0] * means[:, 3] / 2  # each of the two is worth half of what they make together
    expected = torch.stack([half, 0 * half, 0 * half, half], 1)
    assert (found - expected).abs().max() < 0.1 * half.abs().max()
    assert_same(found.sum(1), 2 * half)  # efficiency, exact in every sample
    additive = explain("shapley-sampling", Product(), x, 0 * target, patches, patch=8, samples=1)
    assert_same(additive, means)


def test_shapley_sampling_leaves_the_callers_random_numbers_alone():
    model = network()
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    explain("shapley-sampling", model, X, TARGET, PIXELS, samples=2)
    assert torch.equal(torch.rand(3), expected)


def test_integrated_gradients_takes_the_quadrature_of_the_paper():
    one = explained("integrated-gradients", rule="riemann_trapezoid")
    peer = captum.attr.IntegratedGradients(network()).attribute(X, 0, TARGET, n_steps=8, method="riemann_trapezoid")
    assert_same(one, segments.pool(peer, PIXELS).float())
