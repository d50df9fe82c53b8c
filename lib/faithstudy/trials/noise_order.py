"""Order (F-Fidelity, section 5): of two shares of noise in an explanation, the smaller is better."""

import itertools
from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from faithlab.explainers.degrade import degrade
from faithlab.task import Task

SHUFFLED = "shuffled"
"""The variant of explanations with noise in the long table."""


def rows(task: Task, attributions: Mapping[str, Tensor], levels: Sequence[float], seeds: Sequence[int]) -> list:
    """Labels and attributions: of each seed and explainer the shares of noise, [B, F].

    Args:
        task: the inputs.
        attributions: by explainer, [B, F].
        levels: shares of noise, increasing.
        seeds: of the noise.
    """
    options = {"images": task.images, "present": task.present}
    return [
        (
            {"explainer": explainer, "variant": SHUFFLED, "level": level, "noise_seed": seed},
            degrade(attribution, level, seed=seed, **options),
        )
        for seed, (explainer, attribution), level in itertools.product(seeds, attributions.items(), levels)
    ]


def pairs(base: Sequence[dict], found: Callable[..., list[dict]]) -> list[tuple[dict, dict]]:
    """Neighbouring shares of noise, from none upwards; arguments of `faithstudy.trials.concordance.cells`."""
    noisy, steps = found(variant=SHUFFLED), []
    levels, seeds = (sorted({cell[name] for cell in noisy}) for name in ("level", "noise_seed"))
    for own, seed in itertools.product(base, seeds):
        line = ({**own, "variant": SHUFFLED, "level": level, "noise_seed": seed} for level in levels)
        steps += itertools.pairwise([own, *line])
    return steps
