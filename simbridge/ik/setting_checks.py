"""Checks of single settings, in terms of their flags; each returns the setting as plain data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from simbridge.errors import InvalidParameter

if TYPE_CHECKING:  # loads NumPy; the command line needs only the settings
    from numpy.typing import NDArray

Numbers: TypeAlias = "float | Sequence[float] | NDArray[Any]"
"""One number, or several."""

# Takes a setting's name and value; returns the value as plain data.
Check = Callable[[str, Any], Any]
Gain = tuple[float, float, float, float, float, float]
# More would take minutes.
MAX_ITERATIONS = 100_000
# Beyond it a force would overflow.
_LARGEST_GAIN = 1e100


def number(name: str, value: Any) -> float:
    """Refuses what is no number."""
    try:
        if not isinstance(value, str):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidParameter(f"solver's {name}", value, "a number")


def numbers(name: str, value: Any) -> tuple[float, ...]:
    """One number, or those of a sequence or an array."""
    several = isinstance(value, Iterable) and not isinstance(value, str) and getattr(value, "ndim", 1) > 0
    try:
        return tuple(number(name, part) for part in (value if several else (value,)))
    except InvalidParameter as error:
        raise InvalidParameter(error.name, value, "one number, or several") from None


def expand_gain(name: str, value: Numbers) -> Gain:
    """Six gains, translation first, from six numbers or from one, of which the rotation gets a tenth (equation 18)."""
    gains = numbers(name, value)
    if len(gains) == 1:
        gains = (gains[0],) * 3 + (0.1 * gains[0],) * 3
    if len(gains) != 6 or not all(0.0 <= gain <= _LARGEST_GAIN for gain in gains):
        raise InvalidParameter(
            f"solver's {name}", value, f"one number, or six, none of them negative nor above {_LARGEST_GAIN:g}"
        )
    return (gains[0], gains[1], gains[2], gains[3], gains[4], gains[5])


def whole(name: str, value: float, most: int = MAX_ITERATIONS) -> int:
    """Refuses what is not a whole number from 1 to `most`."""
    checked = number(name, value)
    if not (1.0 <= checked <= most and checked.is_integer()):
        raise InvalidParameter(f"solver's {name}", value, f"from 1 to {most}, a whole number")
    return int(checked)


def gains(name: str, value: Numbers) -> tuple[float, ...]:
    """One gain or six: see `expand_gain`."""
    expand_gain(name, value)
    return numbers(name, value)


class only_if:
    """A check that also refuses what `holds` is not true of; `needed` says what the setting must be."""

    def __init__(self, check: Check, holds: Callable[[Any], bool], needed: str) -> None:
        self._check, self._holds, self.needed = check, holds, needed

    def __call__(self, name: str, value: Any) -> Any:
        result = self._check(name, value)
        if not self._holds(result):
            raise InvalidParameter(f"solver's {name}", result, self.needed)
        return result


def one_of(*choices: str) -> Check:
    """Refuses every other text."""
    return only_if(lambda _, value: value, choices.__contains__, " or ".join(choices))


def requirement(check: Check | None) -> str:
    """What a check lets pass, in words; "" where there is none."""
    known: dict[Any, str] = {
        number: "a number",
        numbers: "one number, or several",
        whole: f"from 1 to {MAX_ITERATIONS}, a whole number",
        gains: "one number, or six, none of them negative",
    }
    return check.needed if isinstance(check, only_if) else "" if check is None else known.get(check, "")


positive = only_if(number, lambda value: math.isfinite(value) and value > 0.0, "a positive number")

_CLAMP = "positive, or infinite for none"
step_clamp = only_if(number, lambda clamp: clamp > 0.0, _CLAMP)
_two = only_if(numbers, lambda clamps: len(clamps) == 2, "two numbers: m and rad")
error_clamp = only_if(_two, lambda clamps: all(clamp > 0.0 for clamp in clamps), _CLAMP)
"""Error clamps: m and rad."""
