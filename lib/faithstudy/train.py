"""Train a notebook's networks before it runs: ``python -m faithstudy.train reco-mege/degraded --profile paper``.

A notebook trains what it needs itself. Where that takes hours, `jobs` in ``notebooks/profiles.yml`` cuts the networks
of a profile into so many jobs of the pipeline, one for each fold of a cross-training for example. They run side by
side, on one machine or a cluster, and each goes on where it was killed; the notebook then finds the weights in the
cache. Networks that ship with the repository need no job.
"""

import argparse
import pkgutil
import sys
from collections.abc import Mapping
from typing import Any

from faithstudy import execute, parameters, profiles


def recipes(name: str, parameters: Mapping[str, Any]) -> list:
    """The recipes of a notebook's networks: what the function says that `trains` names in ``profiles.yml``.

    Raises:
        ValueError: nothing is named there.
    """
    named = profiles.needs(name).trains
    if not named:
        raise ValueError(f"notebooks/profiles.yml does not say what {name} trains. Add  trains: module.function.")
    return pkgutil.resolve_name(f"faithstudy.{named}")(parameters)


def waiting(name: str, parameters: Mapping[str, Any], parts: int) -> list[int]:
    """List those of so many parts of a notebook's networks that hold one that does not ship and has to be trained."""
    from faithstudy.networks import shipped  # it brings torch

    asked = recipes(name, parameters)
    return [part for part in range(parts) if any(shipped.find(recipe.key()) is None for recipe in asked[part::parts])]


def main(arguments: list[str] | None = None) -> int:
    """Command line: train one part of a notebook's networks, or all."""
    parser = argparse.ArgumentParser(prog="python -m faithstudy.train", description=__doc__)
    parser.add_argument("name", help="notebook, for example reco-mege/degraded")
    parser.add_argument("--profile", default="study", choices=profiles.PROFILES)
    parser.add_argument(
        "--part", nargs=2, type=int, default=(0, 1), metavar=("I", "N"), help="every N-th network from the I-th on"
    )
    execute.add_parameter_option(parser)
    options = parser.parse_args(arguments)
    first, parts = options.part
    with execute.gpu():
        from faithstudy.networks import shipped, training  # once a GPU has been chosen

        try:
            if not 0 <= first < parts:
                raise ValueError(f"--part takes I and N with 0 <= I < N, but got {first} {parts}.")
            chosen = profiles.resolve(options.name, options.profile, parameters.given(options.parameter))
            profiles.require_files({options.name: chosen})
            asked = recipes(options.name, chosen)[first::parts]
        except (ValueError, FileNotFoundError) as error:
            print(error, file=sys.stderr)
            return 2
        for number, recipe in enumerate(asked, start=1):
            print(f"{options.name}  {number}/{len(asked)}  {recipe.key()}", file=sys.stderr)
            if shipped.find(recipe.key()) is None:
                training.trained(recipe)
    return 0


if __name__ == "__main__":
    sys.exit(main())
