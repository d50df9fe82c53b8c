"""Explainers of Vision Transformers against a literal transformer: differences of forwards, and relevance by hand."""

import copy

import numpy as np
import pytest
import timm
import torch
from timm.models.deit import VisionTransformerDistilled
from timm.models.vision_transformer import VisionTransformer
from torch import nn

from faithlab import segments
from faithlab.explainers import attention, explain, relevance
from literal_vit import Literal

# Images of 2 x 3 patches, so that no two dimensions are equal, and a network whose layers all matter.

DEPTH, HEADS, PATCH = 2, 2, 2
X = torch.randn(3, 3, 4, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
TARGET = torch.tensor([1, 0, 2])
TRANSFORMER = [
    "attcat",
    "conservative-lrp",
    "gradcam-vit",
    "lrp",
    "partial-lrp",
    "raw-attention",
    "rollout",
    "transformer-attribution",
    "transformer-mm",
]


def randomised(model: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=parameter[0].numel() ** -0.5 if parameter.ndim > 1 else 0.3)
    return model.double().eval()


def small(kind=VisionTransformer, **options) -> nn.Module:
    sizes = {"embed_dim": 8, "depth": DEPTH, "num_heads": HEADS, "mlp_ratio": 2.0, "num_classes": 3}
    return randomised(kind(img_size=(4, 6), patch_size=PATCH, **sizes | options))


def literal() -> Literal:
    return Literal(small().state_dict(), PATCH, HEADS, DEPTH)


def patch_values(name: str, **options) -> np.ndarray:
    """What an explainer gives each patch, before it is enlarged: [3, 2, 3]."""
    seen = []

    def at_patch_size(model, tokens, x):
        seen.append(tokens[:, model.num_prefix_tokens :].detach().unflatten(1, (2, 3)))
        return torch.zeros(len(x), 1, *x.shape[-2:])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "enlarged", at_patch_size)
        explain(name, small(), X, TARGET, segments.pixels(4, 6), **options)
    return torch.cat(seen).numpy()


def literally(of) -> np.ndarray:
    """A literal method, (network, image, target) -> [T], image by image, at the patches: [3, 2, 3]."""
    network, rows = literal(), []
    for image, target in zip(X.numpy(), TARGET.tolist(), strict=True):
        network.forward(image)
        rows.append(of(network, image, target)[1:].reshape(2, 3))
    return np.array(rows)


def assert_close(one, other, rtol=1e-6):
    np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * np.abs(other).max())


# The recorder


def test_the_literal_network_is_the_network():
    with torch.no_grad():
        logits = small()(X).numpy()
    network = literal()
    assert_close([network.forward(image) for image in X.numpy()], logits, rtol=1e-10)


def test_it_records_attention_maps_whose_rows_sum_to_one_and_the_tokens():
    record, _ = attention.forward(small(), X, TARGET)
    network = literal()
    for b, image in enumerate(X.numpy()):
        network.forward(image)
        for layer in range(DEPTH):
            assert_close(record.attention[layer][b].detach().numpy(), network.seen["attention", layer], rtol=1e-10)
            assert_close(record.tokens[layer][b].detach().numpy(), network.seen["tokens", layer], rtol=1e-10)
    for maps in record.attention:
        torch.testing.assert_close(maps.sum(-1), torch.ones_like(maps[..., 0]))


def test_recording_changes_no_answer_and_leaves_the_model_as_it_was():
    model = small()
    model.blocks[0].attn.fused_attn = True
    model.blocks[1].attn.fused_attn = False
    with torch.no_grad(), attention.recorded(model, X):
        recorded = model(X)
    torch.testing.assert_close(recorded, model(X))
    assert [block.attn.fused_attn for block in model.blocks] == [True, False]
    with pytest.raises(KeyError), attention.recorded(model, X):
        raise KeyError
    assert [block.attn.fused_attn for block in model.blocks] == [True, False]
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


@pytest.mark.parametrize("name", TRANSFORMER)
def test_another_network_is_an_error_that_says_what_is_needed(name):
    network = nn.Sequential(nn.Flatten(), nn.Linear(72, 3)).double()
    with pytest.raises(ValueError, match=r"expected a Vision Transformer of timm .* not a Sequential"):
        explain(name, network, X, TARGET, segments.pixels(4, 6))


# From attention


def test_raw_attention_is_the_class_tokens_row_of_the_last_layer():
    assert_close(patch_values("raw-attention"), literally(lambda net, *_: net.seen["attention", DEPTH - 1].mean(0)[0]))


def test_rollout_multiplies_attention_and_skip_connections():
    def product(net, *_):
        layers = [(np.eye(7) + net.seen["attention", layer].mean(0)) / 2 for layer in range(DEPTH)]
        np.testing.assert_allclose((layers[1] @ layers[0]).sum(1), 1)
        return (layers[1] @ layers[0])[0]

    assert_close(patch_values("rollout"), literally(product))


def test_every_row_of_a_rollout_sums_to_one():
    for options in KINDS.values():
        record, _ = attention.forward(small(**options), X, TARGET)
        rolled = attention.chain([maps.mean(1) for maps in record.attention]) / 2**DEPTH
        assert (rolled >= 0).all()
        torch.testing.assert_close(rolled.sum(-1), torch.ones_like(rolled[..., 0]))


def test_rollout_of_the_last_layer_is_raw_attention_of_the_patches():
    assert_close(patch_values("rollout", layers=1), patch_values("raw-attention") / 2)


@pytest.mark.parametrize("layers", [0, 3])
def test_more_layers_than_there_are_is_an_error(layers):
    for name in ("rollout", "transformer-mm", "transformer-attribution"):
        with pytest.raises(ValueError, match=f"layers to be a whole number from 1 to 2, but got {layers}"):
            explain(name, small(), X, TARGET, segments.pixels(4, 6), layers=layers)


def slopes(net, image, target) -> list[np.ndarray]:
    """The derivative of the target's logit by every entry of every attention map."""
    maps = [net.seen["attention", layer] for layer in range(DEPTH)]
    found = [
        net.slope(lambda at, layer=layer: net.forward(image, attention={layer: at}), maps[layer], image, target)
        for layer in range(DEPTH)
    ]
    net.forward(image)
    return found


@pytest.mark.parametrize("layers", [None, 1])
def test_transformer_mm_is_its_update_with_gradients_by_differences(layers):
    def update(net, image, target):
        R = np.eye(7)
        for layer, slope in enumerate(slopes(net, image, target)):
            if layers is None or layer >= DEPTH - layers:
                R = R + np.maximum(slope * net.seen["attention", layer], 0).mean(0) @ R
        return R[0]

    assert_close(patch_values("transformer-mm", layers=layers), literally(update))


def test_gradcam_weighs_the_heads_by_their_mean_gradient_over_the_patches():
    def cam(net, image, target):
        maps, slope = net.seen["attention", DEPTH - 1], slopes(net, image, target)[-1]
        return np.maximum(sum(m[0] * s[0, 1:].mean() for m, s in zip(maps, slope, strict=True)) / HEADS, 0)

    expected = literally(cam)
    assert (expected > 0).any()
    assert_close(patch_values("gradcam-vit"), expected)


def test_attcat_is_attention_times_token_times_gradient_by_differences():
    def cat(net, image, target):
        tokens = [net.seen["tokens", layer] for layer in range(DEPTH)]
        total = 0
        for layer in range(DEPTH):
            slope = net.slope(
                lambda at, layer=layer: net.forward(image, tokens={layer: at}), tokens[layer], image, target
            )
            net.forward(image)
            total = total + net.seen["attention", layer].mean((0, 1)) * (slope * tokens[layer]).sum(1)
        return total

    assert_close(patch_values("attcat"), literally(cat))


def test_two_tokens_rolled_out_by_hand():
    first, second = torch.tensor([[0.5, 0.5], [0.2, 0.8]]), torch.tensor([[0.6, 0.4], [0.3, 0.7]])
    # (I + second)(I + first): the first row is 1.6 * 1.5 + 0.4 * 0.2 and 1.6 * 0.5 + 0.4 * 1.8, over 4.
    rolled = attention.chain([first[None], second[None]])[0] / 4
    torch.testing.assert_close(rolled[0], torch.tensor([0.62, 0.38]))
    torch.testing.assert_close(rolled.sum(1), torch.ones(2))


# Two tokens, the class token and one patch; two layers, one head. The logit is linear in maps and tokens, so that its
# gradients are the numbers written here.
FIRST, SECOND = [[0.5, 0.5], [0.2, 0.8]], [[0.6, 0.4], [0.3, 0.7]]
OF_FIRST, OF_SECOND = [[1.0, 2.0], [-5.0, 10.0]], [[-1.0, 5.0], [0.0, 1.0]]
TOKENS, OF_TOKENS = (
    [[[1.0, 0.0], [2.0, -1.0]], [[0.0, 3.0], [1.0, 1.0]]],
    [[[1.0, 1.0], [3.0, 2.0]], [[1.0, 1.0], [-1.0, 4.0]]],
)


def by_hand(name: str, monkeypatch, **options) -> float:
    """What an explainer says of the patch."""

    def forward(model, x, target):
        maps = [torch.tensor([[values]]).requires_grad_() for values in (FIRST, SECOND)]
        tokens = [torch.tensor([values]).requires_grad_() for values in TOKENS]
        gradients = [torch.tensor(values) for values in (OF_FIRST, OF_SECOND, *OF_TOKENS)]
        logit = sum((of * gradient).sum() for of, gradient in zip((*maps, *tokens), gradients, strict=True))
        return attention.Record(maps, tokens), logit

    monkeypatch.setattr(attention, "forward", forward)
    model = timm.models.VisionTransformer(img_size=2, patch_size=2, embed_dim=4, depth=2, num_heads=1, num_classes=2)
    (value,) = explain(name, model, torch.zeros(1, 3, 2, 2), torch.tensor([0]), segments.patches(2, 2, 2), **options)[0]
    return value.item() / 4  # of its four equal pixels


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("raw-attention", 0.4),
        # (I + second)(I + first): 1.6 * 0.5 + 0.4 * 1.8, over 4.
        ("rollout", 0.38),
        # (gradient * map)^+ is [[0.5, 1], [0, 8]], then [[0, 2], [0, 0.7]]. With I added, the
        # second's first row is [1, 2], the first's last column [1, 9].
        ("transformer-mm", 19.0),
        # The class token's gradient at the patch is 5, its attention 0.4.
        ("gradcam-vit", 2.0),
        # Attention received, mean over rows: 0.65, then 0.55. Token times gradient: 6 - 2 = 4, then -1 + 4 = 3.
        ("attcat", 0.65 * 4 + 0.55 * 3),
    ],
)
def test_two_tokens_by_hand(name, expected, monkeypatch):
    assert by_hand(name, monkeypatch) == pytest.approx(expected)


def test_patches_are_enlarged_bilinearly():
    tokens = torch.tensor([[9.0, 0, 1, 2, 3, 4, 5]])  # the class token is left out
    model = small()
    double = attention.enlarged(model, tokens, torch.zeros(1, 3, 4, 6))[0, 0]
    torch.testing.assert_close(double[0], torch.tensor([0, 0.25, 0.75, 1.25, 1.75, 2]))
    torch.testing.assert_close(double[:, 0], torch.tensor([0, 0.75, 2.25, 3]))


# From gradients at the pixels


def test_integrated_gradients_of_a_transformer_add_up_to_the_difference_of_two_forwards():
    model = small()
    with torch.no_grad():
        added = (model(X) - model(torch.zeros_like(X))).gather(1, TARGET[:, None])[:, 0].float()
    summed = explain("integrated-gradients", model, X, TARGET, segments.pixels(4, 6), steps=64).sum(1)
    torch.testing.assert_close(summed, added, atol=1e-3 * float(added.abs().max()), rtol=0)
    plain = explain("input-x-gradient", model, X, TARGET, segments.pixels(4, 6)).sum(1)
    assert ((plain - added).abs() > 0.1 * added.abs()).any()  # one step would not have been enough


# Relevance


def test_a_linear_layer_hands_relevance_to_positive_products_only():
    x = torch.tensor([[1.0, -2.0, 3.0]], requires_grad=True)
    weight = torch.tensor([[4.0, -1.0, -5.0], [1.0, 1.0, 1.0]])
    with relevance.Rules(nn.Identity(), relevance.RULES, relevance.PASSING):
        y = nn.functional.linear(x, weight, torch.tensor([7.0, 7.0]))
    assert y.tolist() == [[-2.0, 9.0]]  # the value is the layer's
    # Output 0 receives 4, 2 and nothing (-15); output 1 receives 1, nothing (-2) and 3.
    (received,) = torch.autograd.grad(y, x, torch.tensor([[6.0, 8.0]]))
    torch.testing.assert_close(received, torch.tensor([[4.0 + 2, 2.0, 6.0]]))


def test_a_skip_connection_shares_by_the_sums_of_both_sides():
    a, b = (torch.tensor([values], requires_grad=True) for values in ([3.0, 1.0], [1.0, -2.0]))
    with relevance.Rules(nn.Identity(), relevance.RULES, relevance.PASSING):
        y = a + b  # 4, -1
    # By value: a receives 3/4 and -1 of its relevance 1 each, b 1/4 and 2; in sum -0.25 and 2.25, of 2 in all.
    of_a, of_b = torch.autograd.grad(y, (a, b), torch.ones(1, 2))
    torch.testing.assert_close(of_a, torch.tensor([[0.75, -1.0]]) * (0.25 / 2.5 * 2 / -0.25))
    torch.testing.assert_close(of_b, torch.tensor([[0.25, 2.0]]) * (2.25 / 2.5 * 2 / 2.25))
    assert (of_a.sum() + of_b.sum()).item() == pytest.approx(2)


def test_attention_and_values_receive_half_each_by_hand():
    attended, values = torch.tensor([[[0.25, 0.75]]]), torch.tensor([[[4.0], [8.0]]])  # 1 + 6
    attended.requires_grad_(), values.requires_grad_()
    with relevance.Rules(nn.Identity(), relevance.RULES, relevance.PASSING):
        y = attended @ values
    of_map, of_values = torch.autograd.grad(y, (attended, values), torch.full((1, 1, 1), 14.0))
    torch.testing.assert_close(of_map, torch.tensor([[[1.0, 6.0]]]))
    torch.testing.assert_close(of_values, torch.tensor([[[1.0], [6.0]]]))


def test_every_layers_relevance_is_the_literal_one():
    record, pixels, logit = relevance.relevances(small(), X, TARGET)
    found = torch.autograd.grad(logit, [*record.attention, *record.tokens, pixels])
    network = literal()
    for b, (image, target) in enumerate(zip(X.numpy(), TARGET.tolist(), strict=True)):
        network.forward(image)
        expected = network.relevance(image, target)
        for layer in range(DEPTH):
            assert_close(found[layer][b].numpy(), expected["attention", layer])
            assert_close(found[DEPTH + layer][b].numpy(), expected["tokens", layer])
        assert_close(network.patches(found[-1][b].numpy()), expected["pixels"])


@pytest.mark.parametrize("name", ["lrp", "partial-lrp", "transformer-attribution"])
def test_relevance_of_a_network_in_float32_is_what_exact_sums_give(name):
    rounded = small().float()
    found = explain(name, rounded, X.float(), TARGET, segments.pixels(4, 6))
    exact = explain(name, copy.deepcopy(rounded).double(), X.float().double(), TARGET, segments.pixels(4, 6))
    assert found.dtype == torch.float32
    # The gradients of Transformer Attribution stay in the network's own precision.
    tolerance = 1e-5 if name == "transformer-attribution" else 2e-7
    torch.testing.assert_close(found, exact.float(), rtol=tolerance, atol=tolerance * float(exact.abs().max()))


def of_the_last_layer(net, image, target):
    return np.maximum(net.relevance(image, target)["attention", DEPTH - 1], 0).mean(0)[0]


def test_partial_lrp_is_read_off_the_literal_relevance():
    assert_close(patch_values("partial-lrp"), literally(of_the_last_layer))


@pytest.mark.parametrize("layers", [None, 1])
def test_transformer_attribution_is_read_off_the_literal_relevance(layers):
    def attribution(net, image, target):
        relevances, R = net.relevance(image, target), np.eye(7)
        for layer, slope in enumerate(slopes(net, image, target)):
            if layers is None or layer >= DEPTH - layers:
                R = (np.eye(7) + np.maximum(slope * relevances["attention", layer], 0).mean(0)) @ R
        return R[0]

    assert_close(patch_values("transformer-attribution", layers=layers), literally(attribution))


def test_the_rules_of_the_rivals_are_the_literal_ones(monkeypatch):
    normalised = patch_values("partial-lrp")
    monkeypatch.setattr(Literal, "plain", True)
    plain = patch_values("partial-lrp", normalised=False)
    assert_close(plain, literally(of_the_last_layer))
    assert not np.allclose(plain, normalised)
    network = literal()
    received = explain("lrp", small(), X, TARGET, segments.pixels(4, 6), normalised=False)
    for b, (image, target) in enumerate(zip(X.numpy(), TARGET.tolist(), strict=True)):
        network.forward(image)
        expected = network.relevance(image, target)["pixels"].reshape(2, 3, 3, PATCH, PATCH).sum(2)
        assert_close(received[b].view(2, PATCH, 3, PATCH).transpose(1, 2).numpy(), expected, rtol=1e-5)


KINDS = {
    "ViT": {},
    "mean of the patches": {"class_token": False, "global_pool": "avg"},
    "registers": {"reg_tokens": 2},
    "positions of patches only": {"no_embed_class": True},
    "layer scale": {"init_values": 0.5},
    "normalised queries": {"qk_norm": True},
    "ReLU": {"act_layer": nn.ReLU},
    "DeiT, distilled": {"kind": VisionTransformerDistilled},
}


@pytest.mark.parametrize("kind", KINDS)
def test_relevance_is_conserved_from_the_logit_to_every_layer(kind):
    # An output without one positive product has nobody to hand its relevance to; in layers this wide there is none.
    model, embedded = small(embed_dim=48, **KINDS[kind]), []
    model.patch_embed.register_forward_hook(lambda module, inputs, output: embedded.append(output))
    record, pixels, logit = relevance.relevances(model, X, TARGET)
    for received in torch.autograd.grad(logit, record.tokens, retain_graph=True):
        torch.testing.assert_close(received.flatten(1).sum(1), torch.ones(3, dtype=torch.float64))
    # Class token and positions keep their part; what the patches have goes to the pixels.
    of_patches, of_pixels = (of.flatten(1).sum(1) for of in torch.autograd.grad(logit, (*embedded, pixels)))
    torch.testing.assert_close(of_pixels, of_patches)
    assert ((of_pixels - 1).abs() > 0.01).any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TRANSFORMER)
def test_every_kind_of_timms_transformers_is_explained(name, kind):
    found = explain(name, small(**KINDS[kind]), X, TARGET, segments.pixels(4, 6))
    assert found.isfinite().all()
    assert (found.amax(1) > found.amin(1)).any()


def test_transformers_of_timms_registry_are_explained():
    for known in ("vit_tiny_patch16_224", "deit_tiny_patch16_224", "deit_tiny_distilled_patch16_224"):
        model = randomised(timm.create_model(known, num_classes=3, img_size=32, depth=2))
        x = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        for name in TRANSFORMER:
            found = explain(name, model, x, torch.tensor([0, 2]), segments.pixels(32, 32))
            assert found.isfinite().all(), (known, name)


def test_an_operation_without_a_rule_is_an_error_that_names_it():
    with pytest.raises(ValueError, match=r"the model computes 'silu', for which .* has no rule"):
        explain("lrp", small(act_layer=nn.SiLU), X, TARGET, segments.pixels(4, 6))


def test_a_gate_has_no_rule():
    class Gated(nn.GELU):
        def forward(self, x):
            return super().forward(x) * x

    with pytest.raises(ValueError, match="'mul' of two activations"):
        explain("lrp", small(act_layer=Gated), X, TARGET, segments.pixels(4, 6))


# Conservative LRP


def homogeneous() -> nn.Module:
    """A transformer without constants: no biases, no positions, no class token, ReLU."""
    model = small(class_token=False, global_pool="avg", act_layer=nn.ReLU, fc_norm=False)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias") or name == "pos_embed":
                parameter.zero_()
    return model


def test_conservative_lrp_adds_up_to_the_logit_where_no_constant_takes_part():
    model = homogeneous()
    logits = model(X).gather(1, TARGET[:, None])[:, 0].float()
    summed = explain("conservative-lrp", model, X, TARGET, segments.pixels(4, 6)).sum(1)
    torch.testing.assert_close(summed, logits)
    plain = explain("input-x-gradient", model, X, TARGET, segments.pixels(4, 6)).sum(1)
    assert ((plain - logits).abs() > 0.1 * logits.abs()).any()  # which is why it is needed


def test_conservative_lrp_is_input_times_difference_with_attention_and_divisors_held():
    found = explain("conservative-lrp", small(), X, TARGET, segments.pixels(4, 6)).double()
    network = literal()
    for b, (image, target) in enumerate(zip(X.numpy(), TARGET.tolist(), strict=True)):
        deviations = {}
        network.forward(image, deviations=deviations)
        held = {layer: network.seen["attention", layer] for layer in range(DEPTH)}

        def at(changed, held=held, deviations=deviations):
            return network.forward(changed, attention=held, deviations=dict(deviations))

        expected = (image * network.slope(at, image, image, target)).sum(0).ravel()
        assert_close(found[b].numpy(), expected, rtol=1e-5)
