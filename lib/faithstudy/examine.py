"""Examine what is your own: ``python -m faithstudy.examine --metric path/to/file.py:function``.

A metric, an explainer, and a network with its inputs, each alone or together. The page of the examination is run with
it. Its page, its tables and its row as JSON go to a folder of their own in the build folder; the pages of the book stay
as they are.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import nbconvert
import nbformat
import numpy as np
import pandas as pd
from torch import Tensor, nn

from faithlab.explainers import Explainer
from faithlab.metrics import METRICS, Metric
from faithlab.task import Task
from faithstudy import architectures, execute, paths, profiles
from faithstudy.data import datasets
from faithstudy.parameters import given as read_parameters
from faithstudy.parameters import split
from faithstudy.trials import examination, tasks
from faithstudy.trials.chance import RANDOM
from faithstudy.trials.tasks import Chosen

PAGE = "across/examination"

TIMES = 10
"""Explanations of each image, about, that a metric is asked of for each explainer, by all trials together."""

LONG = 600
"""Seconds after which a reader is told how long a metric will take."""


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
        data: the inputs of that network, see `faithstudy.architectures.yours`.
        profile: as in `faithstudy.execute.execute`.
        overrides: parameters of the page that differ from the profile's.

    Returns:
        Where they are: "page" (HTML), "notebook", "tables" (a folder) and "row" (JSON).

    Raises:
        ValueError: nothing is given; a network without inputs, or inputs without a network; a file, function, metric,
            explainer, network or inputs that cannot be examined, before the work starts.
        faithstudy.execute.CellError: a cell of the page raised.
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
    if (seconds := check(parameters=parameters, **given)) > LONG:
        print(
            f"The metric is slow: the page asks it for about {seconds / 3600:.1f} hours, or less where it is "
            'faster with many inputs at once. Fewer inputs: PARAMS="images=4"',
            file=sys.stderr,
        )
    label = profiles.label(PAGE, profile, parameters, overrides)
    notebook = execute.execute(PAGE, profile, overrides)
    tables = paths.results(PAGE, label)
    found = {"profile": profile, **summary(tables, **given)}
    row = paths.write(tables / "examined.json", json.dumps(found, indent=2) + "\n")
    page = paths.write(notebook.with_suffix(".html"), html(nbformat.read(notebook, as_version=4)))
    return {"page": page, "notebook": notebook, "tables": tables, "row": row}


def html(notebook: nbformat.NotebookNode) -> str:
    """An executed page to be read without the book around it: no code, no progress, no markup of the book's."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
            for output in cell.outputs:
                if text := output.get("data", {}).get("text/markdown"):
                    output["data"]["text/markdown"] = _plain(text)
        else:
            cell.source = _plain(cell.source)
    named = {"metadata": {"name": _title(PAGE.rpartition("/")[2])}}
    return nbconvert.HTMLExporter(exclude_input=True).from_notebook_node(notebook, named)[0]


def _plain(text: str) -> str:
    """Markdown of the book as any other: links have words, roles and sources are left out, symbols are in italics."""
    text = re.sub(r"\s*\{cite:\w+\}`[^`]*`", "", text)
    text = re.sub(r"\{[\w:]+\}(`[^`]*`)", r"\1", text)
    text = re.sub(r"\[\]\(([^)]*)\)", lambda link: f"“{_title(link[1])}”", text)
    return re.sub(r"\$(\w+)\$", r"*\1*", text)


def _title(link: str) -> str:
    """The title of a page of the book to which the page of the examination links."""
    path = (paths.script(PAGE).parent / link).resolve()
    for end, heading in ((".md", r"^# (.+)$"), (".py", r"^# # (.+)$")):
        file = path.with_suffix(end)
        if file.is_file() and (found := re.search(heading, file.read_text("utf-8"), re.MULTILINE)):
            return found[1]
    return path.stem


def check(
    metric: str = "",
    explainer: str = "",
    model: str = "",
    data: str = "",
    *,
    parameters: Mapping[str, Any] | None = None,
) -> float:
    """Put what is a reader's own to two inputs, so that what is wrong with it is said before the work starts.

    Files and functions that are not there are said first of all, all at once: before data are fetched or a network is
    built.

    Args:
        metric: as in `examine`.
        explainer: as in `examine`.
        model: as in `examine`.
        data: as in `examine`.
        parameters: of the page; None: those of the profile quick.

    Returns:
        Seconds for which the page will ask the metric, about, by how long it took here; 0 without one.

    Raises:
        ValueError: what is wrong.
    """
    given = parameters or profiles.resolve(PAGE, "quick")
    parameters = {**given, "images": 2}
    name, called = metric.rpartition(":")[2], explainer.rpartition(":")[2]
    if metric and name in METRICS:  # before its file is loaded, which may register it by this name
        raise ValueError(f"there is a metric {name!r} already; give your function another name")
    found = _loaded({"metric": metric, "explainer": explainer, "model": model, "data": data})
    asked = ["yours"] if model else list(dict.fromkeys(architectures.named(one)[0] for one in parameters["networks"]))
    there = {RANDOM, *(one for of in asked for one in parameters["explainers"].get(of, []))}
    if explainer and called in there:
        raise ValueError(
            f"there is an explainer {called!r} on the page already, beside which yours is put; give your function "
            f"another name than {', '.join(sorted(there))}"
        )
    mine = {called: _looked_at(found["explainer"])} if explainer else {}
    if not model:
        for of in profiles.needs(PAGE).data:
            datasets.fetch(of)
    print("Asking it of a few inputs first", file=sys.stderr)
    if model:
        one = architectures.yours(model, data, parameters)
        samples = {"yours": (one.task, {**mine, **one.explainers})}
    else:
        samples = {of: (architectures.sample(of), mine) for of in asked}
    failed: dict[str, ValueError] = {}
    slow = 0.0
    for of, (task, explainers) in samples.items():
        try:
            if metric:
                began = time.perf_counter()
                _ask({name: found["metric"]}, task, metric)
                slow = max(slow, (time.perf_counter() - began) / examination.CHECKED / len(task.x))
            for one, chosen in explainers.items():
                _explain({one: chosen}, task, explainer)
        except ValueError as error:
            failed[of] = error
    for of, error in failed.items():
        if len(samples) == 1:
            raise error
        rest = [one for one in parameters["networks"] if architectures.named(one)[0] not in failed]
        fits = f'; the others may be examined without it: PARAMS="networks=[{", ".join(rest)}]"' if rest else ""
        raise ValueError(f"{error} (asked of {architectures.KINDS[of].about.partition(';')[0]}{fits})") from error
    images, networks = given["images"], 1 if model else len(given["networks"])
    return slow * images * networks * TIMES * (len(given["explainers"][asked[0]]) + len(mine))


def _loaded(named: Mapping[str, str]) -> dict[str, Callable | Metric]:
    """The metric, the explainer and the network of a reader's own files, by what they are; inputs are looked for.

    Raises:
        ValueError: what is missing or does not run, a line for each.
    """
    found: dict[str, Callable | Metric] = {}
    wrong = []
    for what, one in named.items():
        try:
            if one and what == "data":
                architectures.source(one)
            elif one:
                found[what] = architectures.own(one, what)
        except ValueError as error:
            wrong.append(str(error))
    if wrong:
        raise ValueError("\n".join(dict.fromkeys(wrong)))
    return found


def _ask(metrics: Mapping[str, Metric], task: Task, named: str) -> None:
    """As `examination.check`, of a metric of a reader's own: it says where in the file it failed."""
    try:
        examination.check(metrics, task)
    except ValueError as error:
        if not error.__cause__:
            raise
        why, cause = architectures.said(error.__cause__, named), error.__cause__
    except SystemExit as error:
        why, cause = architectures.said(error, named), error
    else:
        return
    raise ValueError(
        f"the metric {next(iter(metrics))!r} fails on a random explanation of a few inputs: {why}"
    ) from cause


def _explain(explainers: Mapping[str, Chosen], task: Task, named: str) -> None:
    """Look at explanations of a task, of explainers that may be a reader's own."""
    try:
        attributions = tasks.attributions(task, {**explainers, RANDOM: "random"})
    except (Exception, SystemExit) as error:
        why = architectures.said(error, named)
        raise ValueError(f"the explainer {next(iter(explainers))!r} fails on two inputs: {why}") from error
    examination.check_explanations(attributions, task)


def _looked_at(explainer: Explainer) -> Explainer:
    """An explainer whose answers are looked at: tensors of real numbers, in the shape of the inputs."""

    def looked(model: nn.Module, x: Tensor, target: Tensor, images: Tensor) -> Tensor:
        relevance = explainer(model, x, target, images)
        shape, channels = tuple(x.shape), {4: 1, 3: 2}.get(x.ndim)  # of images and series
        wanted = f"a tensor of relevance for each element of the inputs, {shape}"
        shared = tuple(1 if axis == channels else size for axis, size in enumerate(shape))
        if channels is not None:
            wanted += f", or {shared} where the channels share it"
        if not isinstance(relevance, Tensor):
            todo = "; torch.from_numpy makes one of an array" if isinstance(relevance, np.ndarray) else ""
            raise ValueError(f"expected {wanted}, but it gave {type(relevance).__name__}{todo}")
        if relevance.is_complex():
            raise ValueError(f"expected {wanted}, but it gave complex numbers; take their .abs() or .real")
        came = tuple(relevance.shape)
        if channels is not None and came == shape[:channels] + shape[channels + 1 :]:
            axis = "relevance[:, None]" if channels == 1 else "relevance[..., None]"
            raise ValueError(f"expected {wanted}, but it gave {came}; give it the axis of the channels, {axis}")
        if len(came) != len(shape) or came[0] != shape[0] or not all(map(_fits, came, shape)):
            raise ValueError(f"expected {wanted}, but it gave {came}")
        if count := int(relevance.isinf().sum()):
            raise ValueError(f"expected {wanted}, but it gave infinity for {count} of them")
        return relevance

    return looked


def _fits(size: int, wanted: int) -> bool:
    return size in (1, wanted)


def summary(tables: Path, metric: str = "", explainer: str = "", model: str = "", data: str = "") -> dict[str, Any]:
    """What a run found of a metric, of an explainer, and of all metrics on a network: the rows of its tables.

    As JSON takes it: what is not defined is None, what has no bound "infinite". Of a metric also how it was asked.
    """

    def rows(table: str, name: str | None) -> list[dict[str, Any]]:
        frame = pd.read_csv(tables / f"{table}.csv")
        frame = frame if name is None else frame[frame["metric"] == name]
        # Infinity is no number of JSON, and null is what is not known.
        frame = frame.astype(object).replace({np.inf: "infinite", -np.inf: "-infinite"})
        return json.loads(frame.to_json(orient="records"))

    found: dict[str, Any] = {}
    if metric:
        name, own = metric.rpartition(":")[2], architectures.own(metric, "metric")
        output = getattr(own.output, "__name__", str(own.output))
        asked = {"output": output, "reference": own.baseline, "network": own.network, "better": own.better}
        found["metric"] = {"name": name, **asked, "trials": rows("trust", name), "price": rows("price", name)}
    if explainer:
        found["explainer"] = {"name": explainer.rpartition(":")[2], "report": rows("report", None)}
    if model:
        own = {"name": model.rpartition(":")[2], "data": data}
        found["model"] = {**own, "trials": rows("trust", None), "price": rows("price", None)}
    return found


def _whole(named: str) -> str:
    """With the whole path of the file: the page runs in another folder."""
    path, colon, name = (named, "", "") if named.lower().endswith(".npz") else named.rpartition(":")
    return f"{Path(path).expanduser().resolve()}{colon}{name}" if path else named


def main(arguments: list[str] | None = None) -> int:
    """Command line of :func:`examine`."""
    parser = argparse.ArgumentParser(prog="python -m faithstudy.examine", description=__doc__)
    parser.add_argument("--metric", default="", help="path/to/file.py:function of (score, attribution)")
    parser.add_argument("--explainer", default="", help="path/to/file.py:function of (model, x, target, images)")
    parser.add_argument("--model", default="", help="path/to/file.py:function that returns a network")
    parser.add_argument("--data", default="", help="path/to/inputs.npz with x and y, or path/to/file.py:function")
    parser.add_argument("--profile", default="quick", choices=profiles.PROFILES)
    parser.add_argument("--params", default="", help='parameters of the page, such as "images=50 seeds=[0,1]"')
    execute.add_parameter_option(parser)
    options = parser.parse_args(arguments)
    try:
        given = {what: getattr(options, what).strip() for what in ("metric", "explainer", "model", "data")}
        overrides = read_parameters([*split(options.params), *options.parameter])
        made = examine(**given, profile=options.profile, overrides=overrides)
    except (ValueError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    except execute.CellError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted. The same command goes on after the last whole step.", file=sys.stderr)
        return 130
    said = {"page": "The page", "row": "Its row, as JSON", "tables": "All tables", "notebook": "The notebook"}
    print("\n".join(f"{said[what]}: {made[what]}" for what in said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
