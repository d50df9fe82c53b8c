"""Explanations of Vision Transformers from their attention maps. `recorded` is the one place that looks at them.

With A_l the attention map of layer l, [heads, T, T] over T tokens (rows attend to columns), dA_l the gradient of the
target's logit with respect to it, and mean_h the mean over heads:

    raw attention     mean_h A of the last layer
    rollout           R = product of (I + mean_h A_l) / 2, the last layer leftmost
    transformer-mm    R = I, then R <- R + mean_h (dA_l * A_l)^+ R, from the first layer to the last
    Grad-CAM          (mean_h w_h A_h)^+ of the last layer, w_h the mean of dA_h over the patches
    ATTCAT            sum over l of (mean over heads and rows of A_l) * (d h_l * h_l summed over channels), h_l the
                      tokens that enter layer l

The class token's row of a matrix is the explanation (of a model that averages its tokens, the mean of the patches'
rows), at the patches' columns; it is enlarged to the input's size bilinearly, as the SaCo paper does.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from faithlab import validation
from faithlab.explainers import gradable, register
from faithlab.outputs import logit

if TYPE_CHECKING:
    from timm.models.vision_transformer import VisionTransformer


class Record(NamedTuple):
    """What a Vision Transformer did, layer by layer; filled by the forward under `recorded`.

    Attributes:
        attention: attention maps, each [n, heads, T, T].
        tokens: the tokens that entered each layer, each [n, T, D].
    """

    attention: list[Tensor]
    tokens: list[Tensor]


@contextmanager
def recorded(model: nn.Module, x: Tensor) -> Iterator[Record]:
    """Record every layer's attention map and tokens, in the graph of the forward on x, while the context lasts.

    Fused attention, which never forms the map, is off meanwhile.

    Raises:
        ValueError: the model is no Vision Transformer of timm, or one whose attention or pooling is of another kind.
    """
    from timm.models.vision_transformer import VisionTransformer  # with torchvision it takes two seconds

    blocks = list(dict.fromkeys(getattr(model, "blocks", ())))  # a layer that is used twice gets one hook
    layers = [block.attn for block in blocks if hasattr(getattr(block, "attn", None), "fused_attn")]
    kind = f"{type(model).__name__} with {getattr(model, 'global_pool', None)!r}"
    known = isinstance(model, VisionTransformer) and model.global_pool in ("token", "avg")
    if not known or len(layers) < len(blocks):
        raise ValueError(
            f"expected a Vision Transformer of timm with attention maps, pooling 'token' or 'avg', not a {kind}"
        )
    record, fused = Record([], []), [layer.fused_attn for layer in layers]
    hooks = [
        block.register_forward_pre_hook(lambda module, inputs: record.tokens.append(inputs[0])) for block in blocks
    ] + [
        # The dropout of the map sees it between its softmax and its use.
        layer.attn_drop.register_forward_hook(lambda module, inputs, output: record.attention.append(output))
        for layer in layers
    ]
    try:
        for layer in layers:
            layer.fused_attn = False
        yield record
    finally:
        for hook in hooks:
            hook.remove()
        for layer, was in zip(layers, fused, strict=True):
            layer.fused_attn = was


def forward(model: nn.Module, x: Tensor, target: Tensor) -> tuple[Record, Tensor]:
    """The record of a forward and the sum of the targets' logits, whose graph reaches the record and the input."""
    with recorded(model, x) as record:
        return record, logit(model(gradable(x)), target).sum()


def enlarged(model: "VisionTransformer", tokens: Tensor, x: Tensor) -> Tensor:
    """A value per token [n, T] as a map: the patches' values at the input's size, bilinear, [n, 1, H, W]."""
    rows, columns = (side // size for side, size in zip(x.shape[-2:], model.patch_embed.patch_size, strict=True))
    grid = tokens[:, model.num_prefix_tokens :].unflatten(1, (rows, columns))[:, None]
    return interpolate(grid.detach(), x.shape[-2:], mode="bilinear", align_corners=False)


def read(model: "VisionTransformer", matrix: Tensor) -> Tensor:
    """Attention of the classified token to each token: matrices [n, T, T] (rows attend to columns) -> [n, T]."""
    if model.global_pool == "token":
        return matrix[:, 0]
    return matrix[:, model.num_prefix_tokens :].mean(1)


def chain(layers: list[Tensor]) -> Tensor:
    """The product (I + M_L) ... (I + M_1) of matrices M_l [n, T, T] in the order of the layers, [n, T, T]."""
    product = torch.eye(layers[0].shape[-1], dtype=layers[0].dtype, device=layers[0].device).expand_as(layers[0])
    for layer in layers:
        product = product + layer @ product
    return product


def last(layers: list[Tensor], number: int | None) -> list[Tensor]:
    """The last `number` of the layers; None: all.

    Raises:
        ValueError: fewer than one, or more than there are.
    """
    return layers if number is None else layers[-validation.whole("layers", number, 1, len(layers)) :]


@register("raw-attention")
def raw_attention(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """Raw Attention (Jain, Wallace, 2019): the last layer's attention, mean over the heads, [n, 1, H, W]."""
    record, _ = forward(model, x, target)
    return enlarged(model, read(model, record.attention[-1].mean(1)), x)


@register("rollout")
def rollout(model: nn.Module, x: Tensor, target: Tensor, images: Tensor, *, layers: int | None = None) -> Tensor:
    """Rollout (Abnar, Zuidema, 2020): attention and skip connection of all layers multiplied, [n, 1, H, W].

    `layers` is the number of last layers that are multiplied; None: all.
    """
    record, _ = forward(model, x, target)
    maps = [attention.mean(1) for attention in last(record.attention, layers)]
    return enlarged(model, read(model, chain(maps)) / 2 ** len(maps), x)


@register("transformer-mm")
def transformer_mm(model: nn.Module, x: Tensor, target: Tensor, images: Tensor, *, layers: int | None = None) -> Tensor:
    """Transformer-MM (Chefer, Gur, Wolf, ICCV 2021, eq. 5 and 6): positive gradient x attention, [n, 1, H, W].

    `layers` is the number of last layers that are aggregated; None: all.
    """
    record, logit = forward(model, x, target)
    maps = last(record.attention, layers)
    gradients = torch.autograd.grad(logit, maps)
    weighted = [(dA * A).relu().mean(1) for A, dA in zip(maps, gradients, strict=True)]
    return enlarged(model, read(model, chain(weighted)), x)


@register("gradcam-vit")
def gradcam_vit(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """Grad-CAM on the last layer's attention, as Chefer, Gur, Wolf (CVPR 2021) adapt it to transformers, [n, 1, H, W].

    Each head's attention of the class token to the patches is weighted by the mean gradient over that map.
    """
    record, logit = forward(model, x, target)
    attention = record.attention[-1]
    (gradient,) = torch.autograd.grad(logit, attention)
    heads, slopes = (read(model, of.flatten(0, 1)).unflatten(0, of.shape[:2]) for of in (attention, gradient))
    weight = slopes[..., model.num_prefix_tokens :].mean(-1, keepdim=True)  # [n, heads, 1]
    return enlarged(model, (weight * heads).mean(1).relu(), x)


@register("attcat")
def attcat(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
    """ATTCAT (Qiang et al., NeurIPS 2022): attentive class activation of the tokens, signed, [n, 1, H, W]."""
    record, logit = forward(model, x, target)
    gradients = torch.autograd.grad(logit, record.tokens)
    activations = [(h * dh).sum(-1) for h, dh in zip(record.tokens, gradients, strict=True)]
    attended = [attention.mean((1, 2)) for attention in record.attention]
    return enlarged(model, sum(a * c for a, c in zip(attended, activations, strict=True)), x)
