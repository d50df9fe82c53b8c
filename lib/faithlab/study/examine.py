"""Examine a metric or an explainer of your own: ``python -m faithlab.study.examine --metric path/to/file.py:function``.

The page of the examination is run with it. Its page, its tables and its row as JSON go to a folder of their own in the
build folder; the pages of the book stay as they are.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbconvert
import pandas as pd

from faithlab import segments
from faithlab.metrics import METRICS
from faithlab.study import execute, networks, places, profiles
from faithlab.study.parameters import given as read_parameters
from faithlab.trials import examination, subjects
from faithlab.zoo import datasets

PAGE = "across/examination"


def examine(
    metric: str = "", explainer: str = "", profile: str = "quick", overrides: Mapping[str, Any] | None = None
) -> dict[str, Path]:
    """Run the examination with a metric or an explainer of a reader's own.

    Args:
        metric: "path/to/file.py:function", or nothing.
        explainer: likewise.
        profile: as in `faithlab.study.execute.execute`.
        overrides: parameters of the page that differ from the profile's.

    Returns:
        Where they are: "page" (HTML), "notebook", "tables" (a folder) and "row" (JSON).

    Raises:
        ValueError: neither is given; a file, function, metric or explainer that cannot be examined, before the work
            starts.
        faithlab.study.execute.CellError: a cell of the page raised.
    """
    if not metric and not explainer:
        raise ValueError("expected a metric or an explainer of yours: make examine METRIC=path/to/file.py:function")
    for name in profiles.needs(PAGE).data:
        datasets.fetch(name)
    given = {what: _whole(named) for what, named in {"metric": metric, "explainer": explainer}.items() if named}
    check(**given)
    overrides = {**(overrides or {}), **given}
    label = profiles.label(PAGE, profile, profiles.resolve(PAGE, profile, overrides))
    notebook = execute.execute(PAGE, profile, None, overrides)
    html, _ = nbconvert.HTMLExporter(exclude_input=True).from_filename(str(notebook))
    tables = places.results(PAGE, label)
    row = places.write(tables / "examined.json", json.dumps(summary(tables, **given), indent=2) + "\n")
    page = places.write(notebook.with_suffix(".html"), html)
    return {"page": page, "notebook": notebook, "tables": tables, "row": row}


def check(metric: str = "", explainer: str = "") -> None:
    """Put a metric and an explainer to two images, so that what is wrong with them is said before the work starts.

    Raises:
        ValueError: what is wrong.
    """
    features = segments.patches(32, 32, 4)
    subject = subjects.subject(networks.pair(networks.RESNET9, 0)["original"], 2, features=features)
    if metric:
        name = metric.rpartition(":")[2]
        if name in METRICS:
            raise ValueError(f"there is a metric {name!r} already; give your function another name")
        examination.check({name: examination.yours(metric, "metric")}, subject)
    if explainer:
        name = explainer.rpartition(":")[2]
        chosen = {name: examination.yours(explainer, "explainer"), "random": "random"}
        try:
            attributions = subjects.attributions(subject, chosen)
        except Exception as error:
            raise ValueError(f"the explainer {name!r} fails on two images: {error}") from error
        examination.check_explanations(attributions, subject)


def summary(tables: Path, metric: str = "", explainer: str = "") -> dict[str, Any]:
    """What a run found of a metric and of an explainer: the rows of its tables."""

    def rows(table: str, name: str | None) -> list[dict[str, Any]]:
        frame = pd.read_csv(tables / f"{table}.csv")
        frame = frame if name is None else frame[frame["metric"] == name]
        return json.loads(frame.to_json(orient="records"))

    found: dict[str, Any] = {}
    if metric:
        name = metric.rpartition(":")[2]
        found["metric"] = {"name": name, "trials": rows("trust", name), "price": rows("price", name)}
    if explainer:
        found["explainer"] = {"name": explainer.rpartition(":")[2], "report": rows("report", None)}
    return found


def _whole(named: str) -> str:
    """With the whole path of the file: the page runs in another folder."""
    path, colon, name = named.rpartition(":")
    return f"{Path(path).expanduser().resolve()}{colon}{name}" if colon else named


def main(arguments: list[str] | None = None) -> int:
    """Command line of :func:`examine`."""
    parser = argparse.ArgumentParser(prog="python -m faithlab.study.examine", description=__doc__)
    parser.add_argument("--metric", default="", help="path/to/file.py:function of (score, attribution)")
    parser.add_argument("--explainer", default="", help="path/to/file.py:function of (model, x, target, images)")
    parser.add_argument("--profile", default="quick", choices=profiles.PROFILES)
    execute.add_parameter_option(parser)
    options = parser.parse_args(arguments)
    try:
        made = examine(options.metric, options.explainer, options.profile, read_parameters(options.parameter))
    except (ValueError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    except execute.CellError as error:
        print(error, file=sys.stderr)
        return 1
    said = {"page": "The page", "row": "Its row, as JSON", "tables": "All tables", "notebook": "The notebook"}
    print("\n".join(f"{said[what]}: {made[what]}" for what in said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
