"""Examine what is your own: ``python -m faithlab.study.examine --metric path/to/file.py:function``.

A metric, an explainer, and a network with its inputs, each alone or together. The page of the examination is run with
it. Its page, its tables and its row as JSON go to a folder of their own in the build folder; the pages of the book stay
as they are.
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
from faithlab.study import execute, kinds, networks, places, profiles
from faithlab.study.parameters import given as read_parameters
from faithlab.trials import examination, subjects
from faithlab.zoo import datasets

PAGE = "across/examination"


def examine(
    metric: str = "",
    explainer: str = "",
    model: str = "",
    data: str = "",
    profile: str = "quick",
    overrides: Mapping[str, Any] | None = None,
) -> dict[str, Path]:
    """Run the examination with a metric, an explainer or a network of a reader's own.

    Args:
        metric: "path/to/file.py:function", or nothing.
        explainer: likewise.
        model: likewise; in place of the networks of the page.
        data: the inputs of that network, see `faithlab.study.kinds.yours`.
        profile: as in `faithlab.study.execute.execute`.
        overrides: parameters of the page that differ from the profile's.

    Returns:
        Where they are: "page" (HTML), "notebook", "tables" (a folder) and "row" (JSON).

    Raises:
        ValueError: nothing is given; a network without inputs, or inputs without a network; a file, function, metric,
            explainer, network or inputs that cannot be examined, before the work starts.
        faithlab.study.execute.CellError: a cell of the page raised.
    """
    if not metric and not explainer and not model:
        raise ValueError(
            "expected a metric, an explainer or a network of yours: make examine METRIC=path/to/file.py:function, "
            "EXPLAINER=path/to/file.py:function, or MODEL=path/to/file.py:function DATA=path/to/inputs.npz"
        )
    if bool(model) != bool(data):
        raise ValueError("expected MODEL and DATA together: a network of yours, and inputs that it takes")
    named = {"metric": metric, "explainer": explainer, "model": model, "data": data}
    given = {what: _whole(name) for what, name in named.items() if name}
    overrides = {**(overrides or {}), **given}
    parameters = profiles.resolve(PAGE, profile, overrides)
    if not model:
        for name in profiles.needs(PAGE).data:
            datasets.fetch(name)
    check(parameters=parameters, **given)
    label = profiles.label(PAGE, profile, parameters)
    notebook = execute.execute(PAGE, profile, None, overrides)
    html, _ = nbconvert.HTMLExporter(exclude_input=True).from_filename(str(notebook))
    tables = places.results(PAGE, label)
    row = places.write(tables / "examined.json", json.dumps(summary(tables, **given), indent=2) + "\n")
    page = places.write(notebook.with_suffix(".html"), html)
    return {"page": page, "notebook": notebook, "tables": tables, "row": row}


def check(
    metric: str = "",
    explainer: str = "",
    model: str = "",
    data: str = "",
    *,
    parameters: Mapping[str, Any] | None = None,
) -> None:
    """Put what is a reader's own to two inputs, so that what is wrong with it is said before the work starts.

    Args:
        metric: as in `examine`.
        explainer: as in `examine`.
        model: as in `examine`.
        data: as in `examine`.
        parameters: of the page; None: those of the profile quick.

    Raises:
        ValueError: what is wrong.
    """
    parameters = {**(parameters or profiles.resolve(PAGE)), "images": 2}
    own = {what: named for what, named in {"metric": metric, "explainer": explainer}.items() if named}
    found = {what: examination.yours(named, what) for what, named in own.items()}  # before a network is trained
    name = metric.rpartition(":")[2]
    if metric and name in METRICS:
        raise ValueError(f"there is a metric {name!r} already; give your function another name")
    if model:
        one = kinds.yours(model, data, parameters)
        subject, others = one.subject, dict(one.explainers)
    else:
        features = segments.patches(32, 32, 4)
        subject = subjects.subject(networks.pair(networks.RESNET9, 0)["original"], 2, features=features)
        others = {"random": "random"}
    if metric:
        examination.check({name: found["metric"]}, subject)
    if explainer or model:
        mine = {explainer.rpartition(":")[2]: found["explainer"]} if explainer else {}
        for name, chosen in {**mine, **others}.items():
            try:
                attributions = subjects.attributions(subject, {name: chosen, "random ": "random"})
            except Exception as error:
                raise ValueError(f"the explainer {name!r} fails on two inputs: {error}") from error
            examination.check_explanations(attributions, subject)


def summary(tables: Path, metric: str = "", explainer: str = "", model: str = "", data: str = "") -> dict[str, Any]:
    """What a run found of a metric, of an explainer, and of all metrics on a network: the rows of its tables."""

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
    if model:
        own = {"name": model.rpartition(":")[2], "data": data}
        found["model"] = {**own, "trials": rows("trust", None), "price": rows("price", None)}
    return found


def _whole(named: str) -> str:
    """With the whole path of the file: the page runs in another folder."""
    path, colon, name = (named, "", "") if named.endswith(".npz") else named.rpartition(":")
    return f"{Path(path).expanduser().resolve()}{colon}{name}" if path else named


def main(arguments: list[str] | None = None) -> int:
    """Command line of :func:`examine`."""
    parser = argparse.ArgumentParser(prog="python -m faithlab.study.examine", description=__doc__)
    parser.add_argument("--metric", default="", help="path/to/file.py:function of (score, attribution)")
    parser.add_argument("--explainer", default="", help="path/to/file.py:function of (model, x, target, images)")
    parser.add_argument("--model", default="", help="path/to/file.py:function that returns a network")
    parser.add_argument("--data", default="", help="path/to/inputs.npz with x and y, or path/to/file.py:function")
    parser.add_argument("--profile", default="quick", choices=profiles.PROFILES)
    execute.add_parameter_option(parser)
    options = parser.parse_args(arguments)
    try:
        given = {what: getattr(options, what).strip() for what in ("metric", "explainer", "model", "data")}
        made = examine(**given, profile=options.profile, overrides=read_parameters(options.parameter))
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
