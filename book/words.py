"""Names and numbers as a reader knows them: the registry's short names never reach a page's box, log or table."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from faithstudy.display_names import NETWORKS, named

LABELS = {
    "1-Lipschitz": NETWORKS["lipschitz"],
    "Lite0": NETWORKS["efficientnet-lite0"],
    "closed form": "networks in closed form",
    "series": NETWORKS["bilstm"],
    "text": NETWORKS["lstm"],
    "three layers": NETWORKS["cnn3"],
}
"""What pages call networks in their long tables, where that is no name for a reader by itself."""
VARIANT = re.compile(
    r"( ?(original|fine-tuned|trained apart|another image|beta [\d.]+|fold \d+|\(seed \d+\)|simulated))+$"
)
"""What ends a network's label, or stands in its place: which of several of one kind it is."""

PARTS = {
    "it costs the fine-tuned network less": "it costs the fine-tuned network less, by",
    "it loses less than a quarter": "of the best it reaches more than three quarters",
}
"""Parts by whose recorded names the number beside them would be read as another one."""

_POWER = re.compile(r"(?<![\w.])(\d(?:\.\d+)?)e([-−+]?)(\d+)(?!\w)")


def plain(text: str) -> str:
    """A text with names that a reader knows, numbers without powers of ten, and a minus where there was a hyphen."""
    return _POWER.sub(_fixed, named(PARTS.get(text, text))).replace(" - ", " − ")


def _fixed(found: re.Match[str]) -> str:
    """A number that was written with a power of ten, without it."""
    digits, sign, power = found.groups()
    if sign in ("", "+"):
        return f"{float(f'{digits}e{power}'):,.0f}"
    return f"{float(f'{digits}e-{power}'):.{int(power) + max(0, len(digits) - 2)}f}"


def label(text: str) -> str:
    """The label of a network with a name that a reader knows, and what else it says."""
    name, comma, more = text.partition(", ")
    return f"{LABELS.get(name) or NETWORKS.get(name) or name}{comma}{more}"


def network(text: str) -> str:
    """The name of the network that a label speaks of; empty where it only says which of several it is."""
    return VARIANT.sub("", label(text).partition(", ")[0])


def networks(labels: Iterable[str], run: Mapping[str, Any] | None = None) -> list[str]:
    """The names of networks, each once; those of a run's own where a label names none."""
    names = [network(text) for text in labels]
    if "" in names:
        names = [*names, *asked(run or {})]
    return [name for name in dict.fromkeys(names) if name]


def asked(run: Mapping[str, Any]) -> list[str]:
    """The names of the networks that a run has noted in its provenance, each once."""
    files = [of["name"] for of in run.get("networks") or () if of["kind"] in ("network", "pretrained")]
    kinds = sorted(NETWORKS, key=len, reverse=True)
    found = [next((kind for kind in kinds if re.search(rf"(?:^|-){kind}(?:-|$)", name)), None) for name in files]
    return list(dict.fromkeys(NETWORKS[kind] for kind in found if kind))
