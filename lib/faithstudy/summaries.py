"""Words of sentences that several pages share."""

from collections.abc import Mapping, Sequence

from faithstudy import numbers

FAMILIES = {"Fid": "Fidelity", "ROAR": "ROAR", "RFid": "R-Fidelity", "FFid": "F-Fidelity"}
"""What F-Fidelity's families of metrics are called, by what their names begin with."""


def listed(words: Sequence[str]) -> str:
    """Words with an "and" before the last."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def of_each(found: Mapping[str, float], digits: int = 2) -> str:
    """A number of each of several, with its name behind it, for a sentence."""
    return listed([f"{numbers.number(value, digits)} ({name})" for name, value in found.items()])
