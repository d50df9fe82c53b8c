"""Checks that the public functions share: whole numbers, fractions, attributions.

Each raises a ValueError that says what was expected, what came, and what to do where that is another thing.
"""

import math
import operator
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

_REAL = {torch.float16, torch.bfloat16, torch.float32, torch.float64}
_REAL |= {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}


def whole(name: str, value: int, least: float = -math.inf, most: float = math.inf) -> int:
    """Return a whole number within bounds; neither 2.0 nor True is one."""
    found = operator.index(value) if hasattr(value, "__index__") and not isinstance(value, bool) else math.nan
    if not least <= found <= most:
        raise ValueError(f"expected {name} to be a whole number from {least} to {most}, but got {value!r:.100}")
    return found


def share(name: str, value: float) -> float:
    """Return a number between 0 and 1, see `fractions`."""
    return fractions(np.atleast_1d(value), name).item()


def fractions(given: Tensor | Sequence[float], name: str = "fractions") -> Tensor:
    """Return numbers between 0 and 1 as float64, [K], on the CPU.

    A float32 within rounding of a number of six decimals stands for that number: the float32 nearest to 0.35 is
    0.34999999404, which would lose a feature wherever 0.35 is a half that is rounded up. Float16 has too few decimals.
    """
    numbers = np.asarray(given.detach().cpu() if isinstance(given, Tensor) else given)
    known = numbers.dtype in (np.float32, np.float64) or numbers.dtype.kind in "iu"
    if not (known and numbers.ndim == 1 and numbers.size and ((numbers >= 0) & (numbers <= 1)).all()):
        raise ValueError(f"expected {name} between 0 and 1, in float64 or float32, but got {given!r:.100}")
    exact = torch.from_numpy(numbers.astype(np.float64))
    decimal = exact.round(decimals=6)
    near = (decimal - exact).abs() <= (2**-22 if numbers.dtype == np.float32 else 0)
    return torch.where(near, decimal, exact)


def attribution(values: Tensor, name: str = "attribution", dimensions: Sequence[int] = (2,)) -> None:
    """Check an attribution [images, ..., features]: finite real numbers, integers too, as a dense tensor."""
    known = isinstance(values, Tensor) and values.layout is torch.strided and values.dtype in _REAL
    if not known or values.ndim not in dimensions or not values.shape[-1]:
        came = f"{values.dtype} {tuple(values.shape)}" if isinstance(values, Tensor) else type(values).__name__
        raise ValueError(f"expected {name} as a dense tensor of real numbers, [images, features], but got {came}")
    finite(name, values, "drop these images and count them, or mend the explainer")


def finite(name: str, values: Tensor, cure: str) -> None:
    """Check that numbers of images [B, ...] are neither NaN nor infinite."""
    if not bool(values.isfinite().all()):
        broken = (~values.isfinite()).reshape(len(values), -1).any(1).nonzero().flatten().tolist()
        raise ValueError(f"the {name} of images {broken} holds NaN or infinity; {cure}")


def present(values: Tensor | None, like: Tensor) -> Tensor | None:
    """Return which features each input has, [B, F] bool on the device of an attribution; None: all."""
    if values is None:
        return None
    known = isinstance(values, Tensor) and values.dtype == torch.bool and values.shape == like.shape
    if not (known and bool(values.any(-1).all())):
        raise ValueError(f"expected present as bool {tuple(like.shape)} a feature in every row, not {values!r:.60}")
    return values.to(like.device)
