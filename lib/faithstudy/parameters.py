"""The parameters of a notebook, as people write them on a command line: ``images=32 seeds=[0, 1]``.

A parameter has the type of its default, or of what a profile gives it; whole numbers fit where numbers do, and null
where one of these is. What a number may be is said by the function that takes it.
"""

import contextlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

SAFE = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml, where PyYAML has it: ten times as fast."""


class ParameterError(ValueError):
    """Parameters that a notebook does not have, or values that they cannot have: one line for each."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows of it: the message, because where it was raised tells a reader nothing."""
        return str(self).splitlines()


def checked(value: Any, known: Iterable[Any]) -> Any:
    """A value of the type of one of those that a parameter has; where these are numbers, as one, also the text 1e-3.

    Raises:
        ValueError: it is of another; the message says which it may be.
    """
    known = list(known)
    told = [one for one in known if one is not None and one not in ([], ())]
    lists = [one for one in told if isinstance(one, (list, tuple))]
    if lists and isinstance(value, (list, tuple)):
        inner = [element for one in lists for element in one]
        return type(value)(checked(element, inner) for element in value)
    kinds = {type(one) for one in told}
    if isinstance(value, int | str) and not isinstance(value, bool) and kinds <= {float, int} and float in kinds:
        with contextlib.suppress(ValueError):
            value = float(value)  # YAML takes 1e-3 for a text
    truth = isinstance(value, bool) and bool not in kinds
    if not told or (value is None and None in known) or (isinstance(value, tuple(kinds)) and not truth):
        return value
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", dict: "a mapping"}
    one = f"a list, such as {lists[0]}" if lists else " or ".join(sorted(names.get(kind, "another") for kind in kinds))
    raise ValueError(f"{one}{' or null' if None in known else ''}, but is {value!r}")


def read(text: str) -> Any:
    """Read YAML; None is null, as in the notebooks.

    Raises:
        ValueError: it is none; the message is one line.
    """
    try:
        found = yaml.load(text, Loader=SAFE)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
    return None if found == "None" else found


def split(text: str) -> list[tuple[str, str]]:
    """Split ``"images=32 seeds=[0, 1]"`` into names and values: a value ends where the next ``name=`` begins.

    Raises:
        ParameterError: something is no ``name=value``.
    """
    words = re.split(r"\s+(?=[^\W\d]\w*\s*=)", text.strip()) if text.strip() else []
    pairs = []
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip().isidentifier():
            raise ParameterError(f"Parameters are written  images=32 seeds=[0,1],  but got  {word}")
        pairs.append((name.strip(), value.strip()))
    return pairs


def given(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The values of parameters from what was written for each.

    Raises:
        ParameterError: a value is no YAML, or a parameter is given twice.
    """
    values = {}
    for name, text in pairs:
        if name in values:
            raise ParameterError(f"The parameter {name} is given twice.")
        try:
            values[name] = read(text)
        except ValueError as error:
            raise ParameterError(
                f"The value of {name} cannot be read:  {text}  ({error}). Lists are written [0, 1], mappings {{a: 1}}."
            ) from None
    return values


def injected(variables: Mapping[str, Any]) -> set[str]:
    """The names that papermill set in a notebook, from the cells that its kernel has run.

    Args:
        variables: the notebook's ``globals()``.
    """
    cells = [cell for cell in variables.get("In", []) if cell.startswith("# Parameters\n")]
    return {match for cell in cells for match in re.findall(r"^([^\W\d]\w*) = ", cell, re.MULTILINE)}
