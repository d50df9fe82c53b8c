"""What the library's functions ask of their arguments, checked in one place and said in one way.

A message says what was expected, what came, and what to do where that is another thing.
"""

import math
import operator
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

_DECIMALS = 6  # that a float32 between 0 and 1 is sure to hold
_NEAR = 2**-22  # how far the steps of a float32 range may drift from their decimals: four neighbours


def whole(name: str, value: int, least: int | None = None, most: int | None = None) -> int:
    """A whole number within bounds; neither 2.0 nor True is one.

    Raises:
        ValueError: anything else.
    """
    try:
        found = None if _is_bool(value) else operator.index(value)
    except TypeError:
        found = None
    if found is None or (least is not None and found < least) or (most is not None and found > most):
        bounds = "" if least is None else f" of at least {least}" if most is None else f" from {least} to {most}"
        raise ValueError(f"expected {name} to be a whole number{bounds}, but got {_said(value)}")
    return found


def number(name: str, value: float, expected: str, fits: Callable[[float], bool]) -> float:
    """A finite number that fits; `expected` says in words which do.

    Raises:
        ValueError: anything else.
    """
    try:
        found = math.nan if _is_bool(value) or isinstance(value, str) else float(value)
    except (TypeError, ValueError, RuntimeError):
        found = math.nan
    if not math.isfinite(found) or not fits(found):
        raise ValueError(f"expected {name} {expected}, but got {_said(value)}")
    return found


def share(name: str, value: float) -> float:
    """A fraction between 0 and 1; a float32 stands for its decimals as in `fractions`.

    Raises:
        ValueError: anything else, and a precision that does not tell decimals.
    """
    found = number(name, value, "between 0 and 1", lambda v: 0 <= v <= 1)
    if getattr(value, "dtype", None) in _HALF:
        raise ValueError(f"expected {name} in float64 or float32, but got {value.dtype}, which has too few decimals")
    single = value.dtype if isinstance(value, Tensor | np.generic) else None
    return fractions(torch.tensor([found], dtype=torch.float32)).item() if single in _SINGLE else found


_HALF = (torch.float16, torch.bfloat16, np.dtype("float16"))
_SINGLE = (torch.float32, np.dtype("float32"))


def fractions(given: Tensor | Sequence[float]) -> Tensor:
    """Fractions between 0 and 1 as float64, [K].

    A float32 stands for the decimal number that it prints as. The nearest one to 0.35 is 0.34999999404, which would
    lose a feature wherever 0.35 is a half that is rounded up. So a float32 within rounding of a number of six decimals
    is taken for that number.

    Raises:
        ValueError: not [K] with K of at least 1, numbers outside [0, 1], or a precision that does not tell decimals.
    """
    numbers = given.detach() if isinstance(given, Tensor) else _as_tensor(given)
    if numbers is None or numbers.dtype == torch.bool or numbers.is_complex() or numbers.ndim != 1 or not len(numbers):
        came = _said(given) if numbers is None else f"{numbers.dtype} {tuple(numbers.shape)}"
        raise ValueError(f"expected fractions between 0 and 1, one or more of them as [K], but got {came}")
    if numbers.dtype in (torch.float16, torch.bfloat16):
        raise ValueError(
            f"expected fractions in float64 or float32, but got {numbers.dtype}, which has too few decimals"
        )
    exact = numbers.double()
    if not bool(((exact >= 0) & (exact <= 1)).all()):
        raise ValueError(f"expected fractions between 0 and 1, where 5 % is 0.05, but got {exact.tolist()}")
    if numbers.dtype != torch.float32:
        return exact
    decimal = exact.round(decimals=_DECIMALS)
    return torch.where((decimal - exact).abs() <= _NEAR, decimal, exact)


def attribution(values: Tensor, dimensions: int = 2) -> None:
    """An attribution per feature, [images, ..., features]: finite numbers, integers too.

    Raises:
        ValueError: another type, layout or number of dimensions, no features, a mask, NaN or an infinity.
    """
    if not isinstance(values, Tensor):
        raise ValueError(f"expected an attribution as a torch.Tensor, but got {type(values).__name__}")
    if values.layout is not torch.strided or values.is_meta or values.is_quantized:
        kind = "meta" if values.is_meta else "quantised" if values.is_quantized else str(values.layout)
        raise ValueError(f"expected an attribution as an ordinary dense tensor, but got a {kind} one; make it dense")
    if values.ndim != dimensions or not values.shape[-1]:
        raise ValueError(
            f"expected an attribution per feature, [{'images, ' if dimensions == 2 else 'images, explainers, '}"
            f"features], but got shape {tuple(values.shape)}; pool a map over its segments with faithlab.segments.pool"
        )
    if values.dtype == torch.bool or values.is_complex():
        raise ValueError(
            f"expected an attribution of real numbers, but got {values.dtype}; a mask has no order, so give the scores "
            "that it was made from"
        )
    if values.is_floating_point() and values.element_size() == 1:
        raise ValueError(f"expected an attribution of at least 16 bits a number, but got {values.dtype}; use to()")
    finite("attribution", values, "drop these images and count them, or mend the explainer")


def finite(name: str, values: Tensor, cure: str) -> None:
    """Numbers of images [B, ...], neither NaN nor infinite.

    Raises:
        ValueError: one is; the message names the first image.
    """
    if bool(values.isfinite().all()):
        return
    broken = (~values.isfinite()).reshape(len(values), -1).any(-1).nonzero().flatten().tolist()
    kinds = [word for word, found in (("NaN", values.isnan()), ("infinity", values.isinf())) if bool(found.any())]
    raise ValueError(
        f"the {name} of {len(broken)} of {len(values)} images holds {' and '.join(kinds)} (first: image {broken[0]}); "
        + cure
    )


def present(values: Tensor | None, like: Tensor) -> Tensor | None:
    """Which features each input has, [B, F] bool beside an attribution or order, on its device; None: all.

    Raises:
        ValueError: another type or shape, or an input without a feature.
    """
    if values is None:
        return None
    if not isinstance(values, Tensor) or values.dtype != torch.bool or values.shape != like.shape:
        came = f"{values.dtype} {tuple(values.shape)}" if isinstance(values, Tensor) else _said(values)
        raise ValueError(f"expected present as a boolean mask {tuple(like.shape)}, but got {came}")
    none = (~values.any(-1)).nonzero().flatten().tolist()
    if none:
        raise ValueError(
            f"{len(none)} of {len(values)} inputs have no feature to remove (first: {none[0]}); drop and count them"
        )
    return values.to(like.device)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool | np.bool_) or (isinstance(value, Tensor) and value.dtype == torch.bool)


def _as_tensor(given: object) -> Tensor | None:
    """Numbers of a sequence or an array in their own precision, None where they are no numbers."""
    array = np.asarray(given)
    return torch.from_numpy(array.copy()) if array.dtype.kind in "fiu" else None


def _said(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."
