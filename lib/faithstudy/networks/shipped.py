"""Networks that ship with the repository, so that every machine explains the same ones.

The folder ``data/networks`` holds two files of each, by the key of its recipe: ``<key>.safetensors``, the weights, and
``<key>.json``, what is known of them: recipe, sha256, accuracy, and where and with which code they were trained.
`faithstudy.ship` writes them.

Parameters are stored in bfloat16, buffers as they are. Whoever loads a network gets the rounded parameters as float32:
these are the network, not an approximation of it. Buffers are the statistics of batch normalisation, counts, the
vectors of a spectral norm: of a ResNet-9 they are 0.3 % of the numbers, and to round them would move its answers as
much again as rounding all of its parameters does.
"""

import dataclasses
import hashlib
import json
import os
from pathlib import Path

import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from faithstudy.data import cache
from faithstudy.networks import origins

VARIABLE = "FAITHLAB_NETWORKS"
"""The environment variable that names the folder; set to nothing, no network ships."""


@dataclasses.dataclass(frozen=True)
class Shipped:
    """A network that ships.

    Attributes:
        path: the file of its weights.
        facts: what its JSON file says.
    """

    path: Path
    facts: dict

    def weights(self) -> dict[str, Tensor]:
        """The weights, with float32 parameters.

        Raises:
            ValueError: the file is not there, or not the one that was committed.
        """
        content = self.path.read_bytes() if self.path.is_file() else b""
        if (found := hashlib.sha256(content).hexdigest()) != self.facts["sha256"]:
            raise ValueError(
                f"{self.path} is not the network that ships: expected sha256 {self.facts['sha256']}, but got {found}. "
                f"Restore it: git checkout -- {self.path}; or remove it and its JSON file, and it is trained here"
            )
        tensors = load(content)
        return {name: value.float() if value.dtype == torch.bfloat16 else value for name, value in tensors.items()}


def folder() -> Path | None:
    """The folder of the networks that ship; None where there is none.

    FAITHLAB_NETWORKS names it, else it is ``data/networks`` of the repository: of FAITHLAB_ROOT where that is set, else
    of the first one upwards from this file, or upwards from the working directory.

    Raises:
        FileNotFoundError: FAITHLAB_NETWORKS names what is no folder.
    """
    if (named := os.environ.get(VARIABLE)) == "":
        return None
    if named:
        path = Path(named).expanduser().absolute()
        if not path.is_dir():
            raise FileNotFoundError(f"{VARIABLE} is {named}, which is no folder")
        return path
    path = (found := origins.repository()) and found / "data" / "networks"
    return path if path and path.is_dir() else None


def find(key: str) -> Shipped | None:
    """The network that ships for the key of a recipe; None: none does."""
    if (place := folder()) is None or not (path := place / f"{key}.json").exists():
        return None
    return Shipped(path.with_suffix(".safetensors"), json.loads(path.read_text(encoding="utf-8")))


def every() -> list[Shipped]:
    """Every network that ships, by key."""
    place = folder()
    return [find(path.stem) for path in sorted(place.glob("*.json"))] if place else []


def rounded(network: nn.Module) -> dict[str, Tensor]:
    """The state of a network as it ships: parameters in bfloat16, buffers as they are."""
    parameters = {name for name, _ in network.named_parameters(remove_duplicate=False)}
    return {
        name: (value.to(torch.bfloat16) if name in parameters else value).cpu().contiguous()
        for name, value in network.state_dict().items()
    }


def write(place: Path, facts: dict, weights: dict[str, Tensor]) -> Shipped:
    """Put a network into a folder of networks that ship.

    Args:
        place: the folder.
        facts: what is known, with its `key`; `sha256` and `bytes` of the file are added.
        weights: as `rounded` gives them.
    """
    content = save(weights)
    facts = facts | {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    with cache.write_atomically(place / f"{facts['key']}.safetensors") as path:
        path.write_bytes(content)
    return update(Shipped(place / f"{facts['key']}.safetensors", facts))


def update(network: Shipped, **facts: object) -> Shipped:
    """Write what is known of a network that ships, with what is new."""
    network = dataclasses.replace(network, facts=network.facts | facts)
    with cache.write_atomically(network.path.with_suffix(".json")) as path:
        path.write_text(json.dumps(network.facts, indent=2) + "\n", encoding="utf-8")
    return network
