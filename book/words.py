"""Names as a reader knows them: the registry's short names never reach a page's box or table."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from faithstudy.display_names import NETWORKS, named
from faithstudy.numbers import number

LABELS = {
    "1-Lipschitz": NETWORKS["lipschitz"],
    "Lite0": NETWORKS["efficientnet-lite0"],
    "closed form": "networks in closed form",
    "series": NETWORKS["bilstm"],
    "text": NETWORKS["lstm"],
    "three layers": NETWORKS["cnn3"],
}
"""Names of networks in long tables that are no names for a reader."""
PARTS = {
    "it costs the fine-tuned network less": "it costs the fine-tuned network less, by",
    "it loses less than a quarter": "of the best it reaches more than three quarters",
}
"""Names of recorded parts beside which a number would be read as another one, and how they are shown."""


_POWER = re.compile(r"[-−]?(?<![\w.])\d(?:\.\d+)?e[-−+]?\d+(?!\w)")


def plain(text: str) -> str:
    """A text with names that a reader knows, numbers without powers of ten, and a minus where there was a hyphen."""
    text = _POWER.sub(lambda found: number(float(found[0].replace("−", "-"))), named(PARTS.get(text, text)))
    return text.replace(" - ", " − ")


def label(text: str) -> str:
    """The label of one or several networks with names that a reader knows."""
    told = (one.partition(", ") for one in text.split(" and "))
    return " and ".join(f"{LABELS.get(name) or NETWORKS.get(name) or name}{comma}{more}" for name, comma, more in told)


def markdown(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as a Markdown table whose columns are the keys of the first; numbers are texts already."""
    rows = list(rows)
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return "".join(f"| {' | '.join(map(str, cells))} |\n" for cells in lines)
