"""What settings of solvers are checked for, in terms of their flags."""

from __future__ import annotations

import math
from collections.abc import Sequence

from simbridge.errors import InvalidParameter

Gain = tuple[float, float, float, float, float, float]
# Short of what patience can bear.
MOST_ITERATIONS = 100_000


def expand_gain(name: str, value: float | Sequence[float]) -> Gain:
    """Six gains, translation first, from six numbers or from one, of which the rotation gets a tenth (equation 18)."""
    try:
        numbers = [float(v) for v in (value if isinstance(value, Sequence) else [value])]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) == 1:
        numbers = [numbers[0]] * 3 + [0.1 * numbers[0]] * 3
    if len(numbers) != 6 or not all(math.isfinite(v) and v >= 0.0 for v in numbers):
        raise InvalidParameter(f"solver's {name}", value, "one number, or six, none of them negative")
    return (numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5])


def positive(name: str, value: float) -> None:
    """Refuses what is not a positive, finite number."""
    if not (math.isfinite(value) and value > 0.0):
        raise InvalidParameter(f"solver's {name}", value, "a positive number")
