"""Values of users as arrays of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array


def floats(values: Any) -> Array:
    """Return values as an array of floats; an array of floats is returned itself.

    Raises:
        ValueError: They are not real numbers, or not of one shape, or too large for a float.
    """
    # Objects of other libraries convert themselves, and may fail in any way.
    try:
        array = np.asarray(values)
        is_real = array.dtype.kind not in "cSU"
        converted = np.asarray(array, dtype=float) if is_real else None
    except Exception as error:
        raise ValueError(str(error)) from None
    if converted is None:
        raise ValueError("complex numbers or text")
    return converted


def vector(name: str, values: Any, length: int) -> Array:
    """Return values as a new array (length,).

    Args:
        name: Name of the parameter, for the error.
        values: The numbers.
        length: Required number of values.

    Raises:
        InvalidParameter: They are not that many finite numbers.
    """
    try:
        array = floats(values).copy()
    except ValueError:
        array = np.empty((0, 0))
    if array.shape != (length,) or not np.isfinite(array).all():
        raise InvalidParameter(name, values, f"{length} finite numbers")
    return array
