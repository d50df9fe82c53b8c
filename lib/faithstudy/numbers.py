"""Numbers as a reader sees them: a minus that is one, commas between thousands, no powers of ten and no −0."""

import math

ROUNDING = 1e-6
"""A smaller number is 0 where its digits are significant ones: the rounding of sums."""


def number(value: float, digits: int | None = None, *, plus: bool = False) -> str:
    """A number as text; ``–`` where there is none.

    Args:
        value: the number; NaN: there is none.
        digits: after the point; None: three significant ones, without zeros at the end.
        plus: a number above 0 has its sign, too.

    >>> number(-1234.5), number(0.05, 1), number(-0.001, 2), number(0.00045412), number(0.25, plus=True)
    ('−1,234', '0.1', '0.00', '0.000454', '+0.25')
    """
    value = float(value)
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    places = digits
    if digits is None:
        value = 0.0 if abs(value) < ROUNDING else value
        places = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:{'+' if plus else ''},.{places}f}"
    if digits is None and "." in text:
        text = text.rstrip("0").rstrip(".")
    return (text if text.strip("+-0.,") else text.lstrip("+-")).replace("-", "−")


def places(low: float, high: float) -> int | None:
    """Digits after the point with which half an interval's width has two significant ones; None: it has no width.

    >>> places(0.0114, 0.0158), places(1.7, 2), places(0.5, 0.5)
    (4, 2, None)
    """
    width = (high - low) / 2
    return max(0, 1 - math.floor(math.log10(width))) if ROUNDING < width < math.inf else None


def interval(
    value: float,
    low: float = math.nan,
    high: float = math.nan,
    digits: int | None = None,
    *,
    unit: str = "",
    plus: bool = False,
) -> str:
    """A number with its interval, where it has one; `unit` stands behind the number, such as " %".

    Args:
        value: the number.
        low: where its interval begins; NaN: it has none.
        high: where its interval ends.
        digits: after the point; None: as `places` says, else three significant ones.
        unit: behind the number.
        plus: numbers above 0 have their sign, too.

    >>> interval(0.3489, 0.30, 0.4012), interval(36.84, 34.1, 40, 1, unit=" %"), interval(2)
    ('0.349 [0.300, 0.401]', '36.8 % [34.1, 40.0]', '2')
    """
    digits = places(low, high) if digits is None else digits
    said = number(value, digits, plus=plus) + (unit if not math.isnan(value) else "")
    if math.isnan(value) or math.isnan(low):
        return said
    return f"{said} [{number(low, digits, plus=plus)}, {number(high, digits, plus=plus)}]"
