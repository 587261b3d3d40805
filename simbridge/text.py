"""Numbers as people read them: millimetres, degrees, milliseconds, and no more digits than they carry."""

from __future__ import annotations

import math

# Twelve orders below a metre there is only the rounding of doubles.
ROUNDING = 1e-9
NO_BREAK = "\u00a0"
MINUS = "\u2212"


def significant(value: float | None, digits: int = 3, decimals: int = 6) -> str:
    """A number with so many significant digits, never with an exponent.

    Args:
        value: What to write; None or a number that is not finite is a dash.
        digits: Significant digits.
        decimals: No more than so many after the point. What is smaller still is "<0.000001".
    """
    if value is None or not math.isfinite(value):
        return "–"
    if abs(value) < ROUNDING:
        return "0"
    places = _places(value, digits, decimals)
    # 0.9996 is written as 1.00: rounding may add a digit before the point.
    places = _places(round(value, places) or value, digits, decimals)
    text = f"{abs(value):.{places}f}"
    if float(text) == 0.0:
        return f"<{10.0**-decimals:.{decimals}f}" if value > 0.0 else "0"
    return (MINUS if value < 0.0 else "") + text


def _places(value: float, digits: int, decimals: int) -> int:
    return min(max(digits - 1 - math.floor(math.log10(abs(value))), 0), decimals)


def millimetres(metres: float | None) -> str:
    """Three significant digits, without the unit."""
    return significant(None if metres is None else metres * 1e3)


def degrees(radians: float | None) -> str:
    """Three significant digits, without the unit."""
    return significant(None if radians is None else math.degrees(radians))


def milliseconds(seconds: float | None) -> str:
    """Without the unit; a delay is known to some 0.01 ms, and so two decimals are the most."""
    return significant(None if seconds is None else seconds * 1e3, decimals=2)


def plain(value: float) -> str:
    """A number that somebody chose, as they would write it."""
    return f"{value:.10g}".replace("-", MINUS)


def with_unit(number: str, unit: str) -> str:
    """The two, never broken across lines; a degree sign stands close."""
    return f"{number}°" if unit == "°" else f"{number}{NO_BREAK}{unit}"


def counted(count: int, noun: str) -> str:
    """ "1 sample", "2 samples"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(parts: list[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def away(distance: float, angle: float) -> str:
    """A residual (m, rad) for people, with as many digits as it takes to tell it from none."""
    length = f"{millimetres(distance)} mm" if distance >= 1e-4 else f"{millimetres(1e3 * distance)} µm"
    return f"{length} and {degrees(angle)} degrees"
