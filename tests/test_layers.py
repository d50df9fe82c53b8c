"""Imports point downward only."""

import ast
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[1] / "lib" / "faithlab"

# Rooms from the bottom up. A room may use those below it, except the ones it must not know.
ORDER = [
    "arguments",
    "segments",
    "references",
    "readouts",
    "folding",
    "preparation",
    "draws",
    "masks",
    "scores",
    "stats",
    "engine",
    "subject",
    "explainers",
    "zoo",
    "metrics",
    "search",
    "claims",
    "trials",
    "study",
]
UNKNOWN = {
    "explainers": {"subject"},
    "zoo": {"explainers", "subject"},
    "metrics": {"explainers", "zoo"},
    "search": {"explainers", "zoo"},
    "claims": {"engine", "subject", "explainers", "zoo", "metrics", "search"},
}


def rooms_imported(path: Path, library: Path = LIBRARY) -> set[str]:
    """Rooms that a file imports, wherever in the file."""
    package = ["faithlab", *path.relative_to(library).parent.parts]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, [base, node.module]))
            names = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("faithlab.")}
    return found


def violations(room: str, imported: set[str]) -> set[str]:
    """Those of the imported rooms that the room may not use."""
    below = set(ORDER[: ORDER.index(room)]) - UNKNOWN.get(room, set())
    return {other for other in imported - {room} if other not in below}


@pytest.mark.parametrize("path", sorted(LIBRARY.rglob("*.py")), ids=lambda path: str(path.relative_to(LIBRARY)))
def test_a_file_imports_only_from_rooms_below_its_own(path):
    parts = path.relative_to(LIBRARY).with_suffix("").parts
    if parts == ("__init__",):
        assert not rooms_imported(path), "import faithlab must stay light: it loads no room"
        return
    assert parts[0] in ORDER, f"{parts[0]} is a new room: give it its place in ORDER"
    assert not violations(parts[0], rooms_imported(path))


def test_the_rule_sees_an_upward_import(tmp_path):
    (tmp_path / "metrics").mkdir()
    path = tmp_path / "metrics" / "bad.py"
    path.write_text("def f():\n    from faithlab.zoo import datasets\n    from ..study import results\n")
    assert violations("metrics", rooms_imported(path, tmp_path)) == {"zoo", "study"}
    assert violations("engine", {"masks", "metrics"}) == {"metrics"}
