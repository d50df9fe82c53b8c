"""Examine what is your own: ``python -m faithstudy.examine --metric path/to/file.py:function``.

A metric, an explainer, and a network with its inputs, each alone or together, are parameters of the page of the
examination, which is run with them. Its tables and rows go to a folder of their own in the build folder.
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbconvert
import nbformat
import pandas as pd

from faithstudy import architectures, execute, parameters, paths, profiles
from faithstudy.trials import checks

PAGE = "across/examination"
TABLES = {"trust": "trials", "price": "price"}
_MARKUP = {
    r"\s*\{cite:\w+\}`[^`]*`": "",
    r"\{[\w:]+\}(`[^`]*`)": r"\1",
    r"\[\]\((?:[^)]*/)?([^)]*)\)": r"“\1”",
    r"\$(\w+)\$": r"*\1*",
}
"""Of the book: what stands in its place elsewhere."""


def examine(profile: str = "quick", overrides: Mapping[str, Any] | None = None, **own: str) -> dict[str, Path]:
    """Run the examination with a metric, an explainer or a network of a reader's own.

    Args:
        profile: as in `faithstudy.execute.execute`.
        overrides: parameters of the page that differ from the profile's.
        **own: metric, explainer, model and data, as in `faithstudy.architectures.loaded`.

    Returns:
        Where they are, by what they are called: the page (HTML), its row (JSON), its tables and the notebook.

    Raises:
        ValueError: what `faithstudy.architectures.check` finds before the work starts.
        faithstudy.execute.CellError: a cell of the page raised.
    """
    own = {what: str(Path(of).expanduser().resolve()) for what, of in own.items() if of}
    overrides = {**(overrides or {}), **own}
    given = profiles.resolve(PAGE, profile, overrides)
    architectures.check(given, **own)
    notebook = execute.execute(PAGE, profile, overrides)
    tables = paths.results(PAGE, profiles.label(PAGE, profile, given, overrides))
    row = paths.write(tables / "examined.json", json.dumps({"profile": profile, **summary(tables, **own)}, indent=2))
    page = paths.write(notebook.with_suffix(".html"), html(nbformat.read(notebook, as_version=4)))
    return {"The page": page, "Its row, as JSON": row, "All tables": tables, "The notebook": notebook}


def html(notebook: nbformat.NotebookNode) -> str:
    """Return an executed page to be read without the book: no code, progress or markup of the book's."""
    for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
        cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    text = nbformat.writes(notebook)
    for markup, words in _MARKUP.items():
        text = re.sub(markup, words, text)
    return nbconvert.HTMLExporter(exclude_input=True).from_notebook_node(nbformat.reads(text, as_version=4))[0]


def summary(tables: Path, **own: str) -> dict[str, Any]:
    """Return what a run's tables say of a reader's own, and the settings of a metric, as JSON takes it."""
    found: dict[str, Any] = {what: {"name": of.rpartition(":")[2]} for what, of in own.items()}
    if "metric" in found:
        made = checks.yours(own["metric"], "metric")
        found["metric"] |= {"reference": made.baseline, "network": made.network, "better": made.better}
        found["metric"]["output"] = getattr(made.output, "__name__", str(made.output))
    for what, table in (("explainer", "report"), *((of, table) for of in ("metric", "model") for table in TABLES)):
        if what in found:
            rows = pd.read_csv(tables / f"{table}.csv").astype(object).replace({float("inf"): "infinite"})
            rows = rows[rows["metric"] == found[what]["name"]] if what == "metric" else rows
            found[what][TABLES.get(table, table)] = json.loads(rows.to_json(orient="records"))
    return found


def main(arguments: list[str] | None = None) -> int:
    """Command line of :func:`examine`."""
    parser = argparse.ArgumentParser(prog="python -m faithstudy.examine", description=__doc__)
    for what in ("metric", "explainer", "model", "data", "params"):
        parser.add_argument(f"--{what}", default="", type=str.strip, help="as make takes it, in capitals")
    parser.add_argument("--profile", default="quick", choices=profiles.PROFILES)
    given = vars(parser.parse_args(arguments))
    try:
        made = examine(overrides=parameters.given(parameters.split(given.pop("params"))), **given)
    except (ValueError, FileNotFoundError, execute.CellError, KeyboardInterrupt) as error:
        print(str(error) or "Interrupted. The same command goes on after the last whole step.", file=sys.stderr)
        return {execute.CellError: 1, KeyboardInterrupt: 130}.get(type(error), 2)
    print("\n".join(f"{what}: {path}" for what, path in made.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
