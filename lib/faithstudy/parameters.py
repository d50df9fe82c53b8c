"""The values that a notebook's parameters may have, and how people write them on a command line.

What a parameter may be follows from its default in the ``parameters`` cell and from its name, so that a new notebook is
checked without a further word:

- It has the type of its default: a whole number, a number, true or false, text, a list or a mapping of such.
- It may be null, or an empty list, where the default or one of the profiles is.
- A whole number is a count, at least 1; at least 0 where the default or a profile's is 0; any where one is negative.
- The elements of a list differ.
- A number is finite. Its range, and that of some whole numbers, is in `RANGES` by the parameter's name.
- A default that is null or an empty list tells no type: then a profile's value does, or the name, by `UNTOLD`.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import yaml


class ParameterError(ValueError):
    """Parameters that a notebook does not have, or values that they cannot have: one line for each."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows of it: the message, because where it was raised tells a reader nothing."""
        return str(self).splitlines()


class Range(NamedTuple):
    """Numbers from `low` to `high`; `open`: without `low` itself."""

    low: float = -math.inf
    high: float = math.inf
    open: bool = False

    def __contains__(self, value: float) -> bool:
        return (self.low < value if self.open else self.low <= value) and value <= self.high

    def __str__(self) -> str:
        if self.open:
            return f" above {self.low}" + (f", at most {self.high}" if self.high < math.inf else "")
        if self.high < math.inf:
            return f" from {self.low} to {self.high}"
        return f", at least {self.low}" if self.low > -math.inf else ""


ANY = Range()

RANGES = {
    # A part of a whole.
    r"(.+_)?(alpha|beta|share|fraction|area)s?": (float, Range(0, 1)),
    r"masked|largest|longest|randomised|switched|limited": (float, Range(0, 1)),
    # The steps of a grid over such parts; of explanation sizes, at least one must lie between 0 and 1.
    "size_step": (float, Range(0, 0.5, open=True)),
    r"(.+_)?(step|grid)": (float, Range(0, 1, open=True)),
    r"(.+_)?(rate|sigma|scale|radius)": (float, Range(0, open=True)),
    r"(.+_)?(decay|noises?|tolerance)": (float, Range(0)),
    "seeds?": (int, Range(0, 2**32 - 1)),  # as NumPy and torch take them
    # One of them leaves nothing to compare.
    "folds|timed_steps|(.+_)?groups": (int, Range(2)),
    "percentages": (int, Range(1, 99)),
}
"""By a pattern of the whole name: the type it is for, and the range. The first that fits counts."""

CHOICES = {
    "precision|training": ("float32", "bfloat16"),
    "schedule": ("constant", "cycle"),
}
"""By a pattern of the whole name: the texts that it may be."""

UNTOLD = {"(.+_)?limit": 1, "(.+_)?path|weights": "~/folder"}
"""By a pattern of the whole name: a value of the type that a parameter has where no default tells it."""

_TYPES = {
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    bool: ("true or false", "truths"),
    str: ("text", "texts"),
    dict: ("a mapping", "mappings"),
    object: ("any value", "values"),
}
"""What they are called, one and many."""


@dataclass(frozen=True)
class Rule:
    """What a parameter may be.

    Attributes:
        kind: type of the value, or of a list's elements; object: any.
        listed: it is a list.
        null: it may be null.
        empty: a list or mapping may be empty.
        range: of numbers.
        choices: the only texts; none: any.
        example: a value that it may have.
    """

    kind: type
    listed: bool = False
    null: bool = False
    empty: bool = False
    range: Range = ANY
    choices: tuple[str, ...] = ()
    example: Any = None

    def checked(self, value: Any) -> Any:
        """The value, with whole numbers as floats where numbers are asked for.

        Raises:
            ValueError: it may not be this; the message says what it may be.
        """
        if value is None and self.null:
            return None
        if isinstance(value, (list, tuple, dict)) and not value and not self.empty:
            raise ValueError(f"{self}, not empty")
        if not self.listed:
            return self._one(value)
        if not isinstance(value, (list, tuple)):
            raise ValueError(str(self))
        found = type(value)(self._one(element) for element in value)
        if len({repr(element) for element in found}) < len(found):
            raise ValueError(f"{self}, each once")
        return found

    def _one(self, value: Any) -> Any:
        if self.kind is float and type(value) is int:
            value = float(value)
        fits = self.kind is object or type(value) is self.kind
        if fits and type(value) in (int, float):
            fits = math.isfinite(value) and value in self.range
        if not fits or not _finite(value) or (self.choices and value not in self.choices):
            raise ValueError(str(self))
        return value

    def __str__(self) -> str:
        one, many = _TYPES[self.kind]
        named = " or ".join(self.choices)
        if self.listed:
            each = str(self.range).removeprefix(",").strip()
            text = f"a list of {named or many}" + (f", each {each}" if each else "")
        else:
            text = (named or one) + str(self.range)
        text += f", such as {written(self.example)}" if self.example and (self.listed or self.kind is dict) else ""
        return text + (", or null" if self.null else "")


def rule(name: str, default: Any, others: Iterable[Any] = ()) -> Rule:
    """What the parameter `name` may be.

    Args:
        name: of the parameter.
        default: its value in the parameters cell.
        others: its values in the profiles.
    """
    values = [default, *others]
    telling = [value for value in values if value is not None and value != [] and value != ()]
    telling += [value for pattern, value in UNTOLD.items() if re.fullmatch(pattern, name)]
    example = telling[0] if telling else None
    listed = isinstance(example if telling else default, (list, tuple))
    kind = _kind((example or ()) if listed else [example])
    choices = next((c for pattern, c in CHOICES.items() if kind is str and re.fullmatch(pattern, name)), ())
    return Rule(
        kind=kind,
        listed=listed,
        null=any(value is None for value in values),
        empty=any(isinstance(value, (list, tuple, dict)) and not value for value in values),
        range=_range(name, kind, [one for of in telling for one in (of if listed else [of])] or [example]),
        choices=choices,
        example=example,
    )


def _kind(values: Iterable[Any]) -> type:
    """The one type of some values; whole numbers among numbers are numbers."""
    types = {type(value) for value in values} - {type(None)}
    if types == {int, float}:
        return float
    return next(iter(types)) if len(types) == 1 and types <= _TYPES.keys() else object


def _range(name: str, kind: type, defaults: Iterable[Any]) -> Range:
    """The range of numbers of this name and type."""
    for pattern, (of, found) in RANGES.items():
        if kind is of and re.fullmatch(pattern, name):
            return found
    if kind is not int or min(defaults) < 0:
        return ANY
    return Range(min(1, *defaults))


def _finite(value: Any) -> bool:
    """Whether no number in a value, however deep, is NaN or infinite."""
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


# What people write


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # libyaml, where PyYAML has it: ten times as fast
    """YAML with the numbers, truths and nulls of version 1.2, in which a mapping has each name once.

    PyYAML's are those of version 1.1, where 1e-3 is a text, 010 is 8, 1:30 is 90 and `no` is false. A null may also be
    written None, as in the notebooks.
    """

    yaml_implicit_resolvers = {}  # noqa: RUF012, as PyYAML declares it

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """As PyYAML's, which takes the last of several values."""
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for twice in (name for i, name in enumerate(names) if name in names[:i]):
            raise yaml.constructor.ConstructorError(None, None, f"{twice} is given twice", node.start_mark)
        return super().construct_mapping(node, deep)


for _tag, _pattern, _first in [
    ("null", r"~|null|None|", ["~", "n", "N", ""]),
    ("bool", r"true|True|false|False", "tTfF"),
    ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+|\.inf)|\.nan", "-+.0123456789"),
]:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), list(_first))


def read(text: str) -> Any:
    """Read YAML.

    Raises:
        ValueError: it is none; the message is one line.
    """
    try:
        return yaml.load(text, Loader=_Loader)  # a safe loader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark and "\n" in text.strip() else ""
        raise ValueError(f"{getattr(error, 'problem', None) or error}{where}") from None


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


def written(value: Any) -> str:
    """A value in one short line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def injected(variables: Mapping[str, Any]) -> set[str]:
    """The names that papermill set in a notebook, from the cells that its kernel has run.

    Args:
        variables: the notebook's ``globals()``.
    """
    cells = [cell for cell in variables.get("In", []) if cell.startswith("# Parameters\n")]
    return {match for cell in cells for match in re.findall(r"^([^\W\d]\w*) = ", cell, re.MULTILINE)}
