"""Checks of solvers' settings: each returns its value as plain data, or refuses it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from simbridge.errors import InvalidParameter

if TYPE_CHECKING:  # loads NumPy; the command line needs only the settings
    from numpy.typing import NDArray

Numbers: TypeAlias = "float | Sequence[float] | NDArray[Any]"

# Largest number of iterations that is accepted: more would take minutes.
MAX_ITERATIONS = 100_000
# Largest gain that is accepted: with a larger one a force would overflow.
MAX_GAIN = 1e100
# The stiffness of rotation, N m/rad, for a stiffness of translation of 1 N/m (equation 18).
ROTATION_PER_TRANSLATION = 0.1

CLAMP_NEEDS = "positive, or infinite for none"


@dataclass(frozen=True)
class Check:
    """A check of a setting, called with its name and value.

    Attributes:
        convert: Turns name and value into plain data, or refuses the value.
        needed: What the setting must be, for the message of a refusal.
        holds: Whether the plain data is allowed.
    """

    convert: Callable[[str, Any], Any]
    needed: str
    holds: Callable[[Any], bool] = lambda value: True

    def __call__(self, name: str, value: Any) -> Any:
        """Return the value as plain data.

        Raises:
            InvalidParameter: It cannot be converted, or is not allowed.
        """
        plain = self.convert(name, value)
        if not self.holds(plain):
            raise InvalidParameter(f"solver's {name}", plain, self.needed)
        return plain


def as_number(name: str, value: Any) -> float:
    """Return a setting as a number.

    Raises:
        InvalidParameter: It is not a number.
    """
    if not isinstance(value, str):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    raise InvalidParameter(f"solver's {name}", value, "a number")


def as_numbers(name: str, value: Any) -> tuple[float, ...]:
    """Return the numbers of a sequence or an array; a single number makes a sequence of one.

    Raises:
        InvalidParameter: Something else was given.
    """
    # An array without dimensions is iterable by its type, but has nothing to iterate over.
    has_items = getattr(value, "ndim", 1) > 0
    is_sequence = isinstance(value, Iterable) and not isinstance(value, str) and has_items
    items = value if is_sequence else (value,)
    try:
        return tuple(as_number(name, item) for item in items)
    except InvalidParameter as error:
        raise InvalidParameter(error.name, value, "one number, or several") from None


def expand_gain(name: str, value: Numbers) -> tuple[float, ...]:
    """Return six gains, translation first.

    Args:
        name: The setting.
        value: Six numbers; or one, a tenth of which applies to the rotation (equation 18).

    Raises:
        InvalidParameter: It is neither, or a number is negative or too large.
    """
    gains = as_numbers(name, value)
    if len(gains) == 1:
        gains = (gains[0],) * 3 + (ROTATION_PER_TRANSLATION * gains[0],) * 3

    if len(gains) != 6 or not all(0.0 <= gain <= MAX_GAIN for gain in gains):
        needed = f"one number, or six, none of them negative or above {MAX_GAIN:g}"
        raise InvalidParameter(f"solver's {name}", value, needed)
    return gains


def choice_of(*choices: str) -> Check:
    """Return the check that a setting is one of these texts."""
    return Check(lambda _, value: value, " or ".join(choices), choices.__contains__)


def is_not_negative(value: float) -> bool:
    """Return whether a number is finite, and zero or above."""
    return math.isfinite(value) and value >= 0.0


def are_positive(values: Sequence[float]) -> bool:
    """Return whether there are numbers, all of them finite and above zero."""
    return bool(values) and all(math.isfinite(value) and value > 0.0 for value in values)


def _as_gains(name: str, value: Numbers) -> tuple[float, ...]:
    """Return gains as they were given, one or six, if they can be expanded."""
    expand_gain(name, value)
    return as_numbers(name, value)


def _as_whole(name: str, value: Any) -> int:
    """Return a number of iterations."""
    number = as_number(name, value)
    if not (1.0 <= number <= MAX_ITERATIONS and number.is_integer()):
        raise InvalidParameter(f"solver's {name}", value, WHOLE.needed)
    return int(number)


WHOLE = Check(_as_whole, f"a whole number from 1 to {MAX_ITERATIONS}")
POSITIVE = Check(as_number, "a positive number", lambda value: are_positive((value,)))
NOT_NEGATIVE = Check(as_number, "a non-negative number", is_not_negative)
NUMBERS = Check(as_numbers, "one number, or several")
GAINS = Check(_as_gains, "one number, or six, none of them negative")

STEP_CLAMP = Check(as_number, CLAMP_NEEDS, lambda clamp: clamp > 0.0)
TWO_NUMBERS = Check(as_numbers, "two numbers, in m and rad", lambda clamps: len(clamps) == 2)
ERROR_CLAMP = Check(TWO_NUMBERS, CLAMP_NEEDS, lambda clamps: all(clamp > 0.0 for clamp in clamps))
