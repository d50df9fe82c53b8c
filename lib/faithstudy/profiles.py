"""Profiles: how big a run of a notebook is.

``study`` is the default: what a notebook's ``parameters`` cell says, which is what the recorded runs were made with (to
measure it takes hours on two cores). ``quick`` measures the same on few inputs (minutes), ``smoke`` takes seconds and
serves the tests, ``paper`` holds the papers' own settings. ``notebooks/profiles.yml`` holds what these profiles change,
and what a notebook needs to run::

    f-fidelity/images:
      data: [cifar10]        # fetched before it runs
      papers: [cifar100]     # the paper's own data, fetched before it runs in the profile paper
      pretrained: networks   # the parameter that names pretrained networks; they are fetched before it runs, too
      alone: true            # nothing else runs beside it (timings)
      memory: 8000           # megabytes, for a scheduler
      trains: networks.folds.degraded  # function below faithstudy: parameters -> recipes of its networks
      jobs: {paper: 5}       # so many jobs train them before it runs; else it trains them itself
      parts: {paper: 100}    # so many jobs ask about its images before it runs, where it says `run.table` of tasks
      shares: f-fidelity/other  # it uses networks of that notebook, and does not start before they are trained
      smoke: {images: 8}     # parameters that differ from the notebook's defaults
      paper: {images: 1000}
"""

import ast
import difflib
import functools
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema

from faithstudy import parameters, paths
from faithstudy.parameters import ParameterError

PROFILES = ("smoke", "quick", "study", "paper")


@dataclass(frozen=True)
class Needs:
    """What a notebook needs before and while it runs.

    Attributes:
        data: names of the data sets to fetch first.
        papers: the same in the profile paper alone: the data that the paper is about.
        pretrained: the parameter with the name or the names of pretrained networks, see `study.weights`.
        alone: nothing else may run beside it.
        memory: megabytes to ask a scheduler for.
        trains: `module.function` below `faithstudy` that returns the recipes of its networks, see `faithstudy.train`.
        jobs: profile -> number of jobs that train these networks before it runs.
        parts: profile -> number of blocks of images that it asks about, a job each, see
            `faithstudy.run.Run.table`.
        shares: a notebook with `jobs` whose networks it uses, too: in a build it waits for these jobs, where it would
            otherwise hold a processor and wait for the network.
    """

    data: tuple[str, ...] = ()
    papers: tuple[str, ...] = ()
    pretrained: str = ""
    alone: bool = False
    memory: int = 4000
    trains: str = ""
    jobs: Mapping[str, int] = field(default_factory=dict)
    parts: Mapping[str, int] = field(default_factory=dict)
    shares: str = ""


def defaults(name: str) -> dict[str, Any]:
    """Parameters of a notebook with the values in its ``parameters`` cell.

    Raises:
        FileNotFoundError: no such notebook.
        ValueError: there is no such cell, it does more than assign literals, or it has no ``profile``.
    """
    path = paths.script(name)
    return dict(_defaults(path, path.stat().st_mtime_ns))


_CELL = re.compile(r'^# %%[^\n]*tags=\[[^\]\n]*"parameters"[^\n]*\n(.*?)(?=^# %%|\Z)', re.MULTILINE | re.DOTALL)
"""The cell of a script that jupytext has tagged as its parameters."""


@functools.cache
def _defaults(path: Path, changed: int) -> Mapping[str, Any]:
    """The parameters in a script, read again when it has changed."""
    found = {}
    try:
        (cell,) = _CELL.findall(path.read_text(encoding="utf-8"))
        for line in ast.parse(cell).body:
            (target,) = line.targets if isinstance(line, ast.Assign) else [line.target]
            found[target.id] = ast.literal_eval(line.value)
        return {"profile": found["profile"], **found}
    except (AttributeError, KeyError, ValueError) as error:
        raise ValueError(
            f'{path} needs one cell tagged "parameters", of lines such as  images = 64  and  profile = "study": {error}'
        ) from None


_LIST, _TEXT, _MAPPING = {"type": "array", "items": {"type": "string"}}, {"type": "string"}, {"type": "object"}
_JOBS = {"propertyNames": {"enum": list(PROFILES)}, "additionalProperties": {"type": "integer", "minimum": 1}}
_KNOWN = {"data": _LIST, "papers": _LIST, "pretrained": _TEXT, "trains": _TEXT, "shares": _TEXT}
_KNOWN |= {"jobs": _MAPPING | _JOBS, "parts": _MAPPING | _JOBS, "alone": {"type": "boolean"}}
_KNOWN |= {"memory": {"type": "integer"}, **dict.fromkeys(PROFILES, _MAPPING)}
_ENTRY = {"type": ["object", "null"], "properties": _KNOWN, "additionalProperties": False}
SCHEMA = {"type": "object", "additionalProperties": _ENTRY}
"""Of ``profiles.yml``, in the words of JSON Schema."""


@functools.cache
def _profiles(path: Path, changed: int) -> Mapping[str, Any]:
    """``profiles.yml``, read again when it has changed."""
    try:
        found = parameters.read(path.read_text(encoding="utf-8")) or {}
    except ValueError as error:
        raise ParameterError(f"notebooks/profiles.yml is no YAML: {error}") from None
    if wrong := jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(SCHEMA).iter_errors(found)):
        raise ParameterError(f"notebooks/profiles.yml, {', '.join(map(str, wrong.absolute_path))}: {wrong.message}")
    return found


def _entry(name: str) -> Mapping[str, Any]:
    """What ``profiles.yml`` says about a notebook."""
    path = paths.root() / "notebooks" / "profiles.yml"
    return _profiles(path, path.stat().st_mtime_ns).get(name) or {}


def needs(name: str) -> Needs:
    """What a notebook needs to run, from ``profiles.yml``."""
    entry = {key: value for key, value in _entry(name).items() if key not in PROFILES}
    return Needs(**entry | {key: tuple(entry[key]) for key in ("data", "papers") if key in entry})


def resolve(name: str, profile: str = "study", overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """All parameters of a run: the notebook's defaults, then the profile's, then ``overrides``.

    Raises:
        ParameterError: an unknown profile, a parameter which the notebook does not have, or a value which it cannot
            have; see `faithstudy.parameters`.
    """
    return _checked(name, profile, {**(_entry(name).get(profile) or {}), **(overrides or {})})


def given(name: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a notebook that runs, whoever started it.

    Args:
        name: the notebook.
        variables: its ``globals()``, or any mapping that holds every name of its parameters cell.

    Raises:
        KeyError: a parameter of the notebook is not among the variables.
        ParameterError: as in :func:`resolve`; also where papermill was given a parameter that the notebook does not
            have.
    """
    found = {key: variables[key] for key in [*defaults(name), *parameters.injected(variables)]}
    return _checked(name, found.pop("profile"), found)


def _checked(name: str, profile: str, changed: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters, with those that are changed; a line of a ParameterError for each that cannot be."""
    if profile not in PROFILES:
        raise ParameterError(f"Unknown profile {profile!r}. Known: {', '.join(PROFILES)}.")
    known, profiled = defaults(name), [_entry(name).get(of) or {} for of in PROFILES]
    del known["profile"]
    found, lines = dict(known), []
    for key, value in changed.items():
        if key not in known:
            close = [f"Did you mean {of!r}? " for of in difflib.get_close_matches(key, known, 1)]
            lines.append(f"{name} has no parameter {key!r}. {''.join(close)}Known: {', '.join(known)}.")
            continue
        others = [of[key] for of in profiled if key in of]
        kinds = [known[key], *(one for one in others if one is None or known[key] in (None, [], ()))]
        try:
            found[key] = parameters.checked(value, kinds)
        except ValueError as error:
            lines.append(f"{name}: {key} must be {error}.")
    if lines:
        raise ParameterError("\n".join(lines))
    return found | {"profile": profile}


def require_files(chosen: Mapping[str, Mapping[str, Any]]) -> None:
    """Look for the files of the reader's own that notebooks will read, before anything else is done.

    A set of `faithstudy.data.sources.OWN` that is the value of a parameter such as ``photographs`` lies where
    ``photographs_options`` say, or ``photographs_path``, or ``path``. A ``folder`` is one of ImageNet's photographs.

    Args:
        chosen: notebook -> all its parameters.

    Raises:
        ParameterError: some are missing. Each set has one line, which says for which notebooks it is and what to do.
    """
    from faithstudy.data import sources  # only here: Snakemake reads profiles many times

    wanted: dict[tuple[str, str], list[str]] = {}
    for name, values in chosen.items():
        for key, value in values.items():
            own, place = value, key
            if key == "folder" and value:
                own = "imagenet-folder"
            elif isinstance(value, str) and value in sources.OWN:
                place = next((p for p in (f"{key}_options", f"{key}_path", "path") if values.get(p)), f"{key}_path")
            else:
                continue
            options = values[place] if place.endswith("_options") else {"path": values.get(place)}
            wanted.setdefault((own, json.dumps(options)), []).append(f"{name} ({place})")
    if not wanted:
        return
    from faithstudy.data import datasets, photographs  # they bring torch

    lines = []
    for (own, options), who in wanted.items():
        if reason := datasets.missing(own, **json.loads(options)):
            lacking = photographs.are_lacking(json.loads(options).get("path"))
            how = f"{photographs.HOW}, and without them: " if lacking else ""
            lines.append(f"Missing: {own}, for {', '.join(who)}: {how}{reason}")
    if lines:
        raise ParameterError("\n".join(lines))


_PLAIN = re.compile(r"(?!(?:None|True|False)$)[a-zA-Z_][\w.=-]*")
"""Texts that stay as they are in the name of a folder and look like no other value; "+" parts parameters there."""


def label(name: str, profile: str, parameters: Mapping[str, Any], by_hand: Iterable[str] = ()) -> str:
    """Folder of a run in the build folder: ``quick``, or ``quick+images=32`` where a parameter was given by hand.

    So what the book shows of a profile is always that profile. What does not fit into a name as it is, such as a path
    or a list, has a hash of all that was changed at the end of the name.
    """
    # As JSON: in it a tuple of a notebook and a list of a command are the same.
    expected, written = (
        {k: json.dumps(v, default=str) for k, v in of.items()} for of in (resolve(name, profile), parameters)
    )
    changed = {key: parameters[key] for key in written if key in by_hand or written[key] != expected.get(key)}
    folder = re.sub(r"[^\w.+=-]+", "_", "+".join([profile, *(f"{key}={value}" for key, value in changed.items())]))
    plain = all(v is None or isinstance(v, int | float) or _PLAIN.fullmatch(str(v)) for v in changed.values())
    if len(folder) <= 80 and plain:
        return folder
    return f"{folder[:70]}-{hashlib.sha256(json.dumps(changed, default=str).encode()).hexdigest()[:8]}"
