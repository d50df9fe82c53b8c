"""Fetch pretrained networks before the jobs that use them: ``python -m faithstudy.weights vit_base_patch16_224``.

Which a notebook uses, the parameter says that `pretrained` names in ``notebooks/profiles.yml``.
"""

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from faithstudy import profiles

OWN = "vit"
"""In such a list: the small network that the study trains itself."""


def named(name: str, parameters: Mapping[str, Any]) -> list[str]:
    """The pretrained networks of a run of a notebook; none where they are in files of the reader's own.

    Args:
        name: the notebook.
        parameters: all its parameters.
    """
    found = parameters.get(profiles.needs(name).pretrained) or []
    found = [found] if isinstance(found, str) else found
    return [] if parameters.get("weights") else [network for network in found if network != OWN]


def main(arguments: list[str] | None = None) -> int:
    """Command line: fetch networks into the cache."""
    parser = argparse.ArgumentParser(prog="python -m faithstudy.weights", description=__doc__)
    parser.add_argument("networks", nargs="+", metavar="NETWORK", help="as faithstudy.networks or timm calls it")
    from faithstudy.data.cache import CacheUnavailable
    from faithstudy.data.sources import DatasetUnavailable
    from faithstudy.networks import pretrained, transformers, vit_small  # they bring torch

    for network in parser.parse_args(arguments).networks:
        try:
            if network in pretrained.names():
                pretrained.load(network)
            elif network == vit_small.BACKBONE.name:
                vit_small.BACKBONE.tensors()
            else:
                transformers.load(network, "imagenet", 1000)
        except (CacheUnavailable, DatasetUnavailable, ValueError) as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
