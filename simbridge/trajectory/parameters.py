"""Checks of the parameters of paths, motion laws and trajectories."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array


def check_positive(**parameters: float) -> None:
    """Refuse parameters that are not positive and finite; underscores in their names become blanks.

    Raises:
        InvalidParameter: Names the first such parameter.
    """
    for name, value in parameters.items():
        if not (math.isfinite(value) and value > 0.0):
            raise InvalidParameter(name.replace("_", " "), value, "a positive number")


def check_not_negative(**parameters: float) -> None:
    """Refuse parameters that are negative or not finite; underscores in their names become blanks.

    Raises:
        InvalidParameter: Names the first such parameter.
    """
    for name, value in parameters.items():
        if not (math.isfinite(value) and value >= 0.0):
            raise InvalidParameter(name.replace("_", " "), value, "a non-negative number")


def check_laps(laps: int) -> None:
    """Refuse a number of laps that is not a whole number of 1 or more.

    Raises:
        InvalidParameter: The number is not a whole number of 1 or more.
    """
    if not isinstance(laps, (int, np.integer)) or laps < 1:
        raise InvalidParameter("laps", laps, "an integer of 1 or more")


def vector(name: str, values: ArrayLike, length: int) -> Array:
    """Return the values as an array (length,) of finite numbers.

    Raises:
        InvalidParameter: Their shape is another, or one is not finite.
    """
    array = np.array(values, dtype=float)
    if array.shape != (length,) or not np.isfinite(array).all():
        raise InvalidParameter(name, values, f"{length} finite numbers")
    return array


def direction(name: str, values: ArrayLike) -> Array:
    """Return the unit vector (3,) along three values, not all of them zero.

    Raises:
        InvalidParameter: The values are not a vector, or all are zero.
    """
    array = vector(name, values, 3)
    length = float(np.linalg.norm(array))
    if length == 0.0:
        raise InvalidParameter(name, values, "a non-zero vector")
    return array / length
