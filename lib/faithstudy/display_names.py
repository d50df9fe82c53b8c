"""Data sets and networks as a reader knows them: the registry's short names reach no figure, box, log or table."""

import re

from faithstudy import published

SETS = published.SETS | {
    "arrow-head": "ArrowHead",
    "basic-motions": "BasicMotions",
    "boiler": "Boiler",
    "boolq": "BoolQ",
    "cifar10-vehicles": "CIFAR-10 vehicles",
    "colored-mnist": "coloured digits",
    "colored-mnist-halves": "two-class coloured digits",
    "ct-contrast": "CT slices",
    "eurosat": "EuroSAT",
    "fashion-mnist": "Fashion-MNIST",
    "gun-point": "GunPoint",
    "imagenet-folder": "photographs of a folder",
    "imagenet-foolbox": "ImageNet photographs",
    "imagenet-vehicles": "ImageNet vehicles",
    "japanese-vowels": "JapaneseVowels",
    "mnist": "MNIST",
    "pam": "PAM",
    "rotten-tomatoes": "Rotten Tomatoes",
    "sst2": "SST-2",
}
"""Data sets of `faithstudy.data.datasets`."""
NETWORKS = {
    "bilstm": "LSTM",
    "cnn1d": "CNN",
    "cnn3": "three-layer CNN",
    "efficientnet-lite0": "EfficientNet-Lite0",
    "efficientnet-lite1": "EfficientNet-Lite1",
    "efficientnet-lite2": "EfficientNet-Lite2",
    "lipschitz": "1-Lipschitz three-layer CNN",
    "lstm": "LSTM",
    "resnet9": "ResNet-9",
    "resnet18": "ResNet-18",
    "transformer": "Transformer",
    "vit": "ViT",
    "vit_small": "ViT-S",
}
"""Networks of `faithstudy.networks`, by the kind that is named in a file of theirs."""

_NAMED = SETS | {name: of for name, of in NETWORKS.items() if name not in ("lipschitz", "transformer")}
_SHORT = re.compile(rf"(?<![\w/.-])({'|'.join(sorted(_NAMED, key=len, reverse=True))})(?![\w-]|\.\w)")


def named(text: str) -> str:
    """A text with the names that a reader knows."""
    return _SHORT.sub(lambda found: _NAMED[found[1]], text)


def plain(text: str) -> str:
    """A text in which no character has a meaning in Markdown."""
    return re.sub(r"[\\`*_<>|$~{}]|(?<=\])\(", r"\\\g<0>", text)
