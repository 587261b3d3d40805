"""What a program passes to a built-in function, checked; and what it gets back, as URScript's values."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable
from typing import Any

import numpy as np

from simbridge.emulator.urscript.values import Pose
from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array

Wait = Generator[None, None, Any]  # what a function that blocks returns: it yields once a tick until it is done


def numbers(what: str, values: Any, count: int) -> Array:
    """So many finite numbers.

    Raises:
        InvalidParameter: They are not.
    """
    array = np.array(values, dtype=float) if isinstance(values, Iterable) else np.zeros(0)
    if array.shape != (count,) or not np.isfinite(array).all():
        raise InvalidParameter(what, values, f"{count} finite numbers")
    return array


def positive(name: str, value: Any) -> float:
    """A positive number.

    Raises:
        InvalidParameter: It is not.
    """
    if not isinstance(value, (int, float)) or not (math.isfinite(value) and value > 0.0):
        raise InvalidParameter(name, value, "a positive number")
    return float(value)


def not_negative(name: str, value: Any) -> float:
    """A number that is not negative.

    Raises:
        InvalidParameter: It is not.
    """
    if not isinstance(value, (int, float)) or not (math.isfinite(value) and value >= 0.0):
        raise InvalidParameter(name, value, "a number, not negative")
    return float(value)


def register(value: Any, count: int) -> int:
    """The number of a register, 0 to count - 1.

    Raises:
        InvalidParameter: There is no such register.
    """
    if not isinstance(value, int) or not 0 <= value < count:
        raise InvalidParameter("register", value, f"a whole number from 0 to {count - 1}")
    return value


def as_list(values: Array) -> list[float]:
    """A list of numbers."""
    return [float(v) for v in values]


def as_pose(values: Array) -> Pose:
    """A pose of six numbers."""
    return Pose(as_list(values))
