"""Checks of the arguments of built-in functions, and conversions of their results.

Arguments for the controller are refused by InvalidParameter, which names the parameter; those of
the library, by RuntimeFault.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from simbridge.emulator.errors import RuntimeFault
from simbridge.emulator.urscript.functions import CALL_COST
from simbridge.emulator.urscript.values import COPY_COST_SHIFT, Pose, kind_of, short, to_text
from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array


def numbers(name: str, values: Any, count: int, most: float = 1e6) -> Array:
    """Return numbers as an array (count,).

    Args:
        name: Name of the parameter, for the message.
        values: A list or a pose.
        count: Required number of values.
        most: The largest magnitude: results of larger ones do not stay finite.

    Raises:
        InvalidParameter: It is not a list of that many numbers.
    """
    try:
        array = np.array(values, dtype=float) if isinstance(values, Iterable) else np.zeros(0)
    except (TypeError, ValueError):
        # Texts, or lists of different lengths.
        array = np.zeros(0)

    if array.shape != (count,) or not (np.abs(array) <= most).all():
        allowed = f"{count} finite numbers, from {-most:g} to {most:g}"
        raise InvalidParameter(name, short(values), allowed)
    return array


def number(
    name: str, value: Any, least: float = -math.inf, needed: str = "a finite number"
) -> float:
    """Return a finite number.

    Args:
        name: Name of the parameter, for the message.
        value: The argument.
        least: The smallest allowed number.
        needed: Description of the allowed values, for the message.

    Raises:
        InvalidParameter: It is not such a number.
    """
    if not isinstance(value, (int, float)) or not (math.isfinite(value) and value >= least):
        raise InvalidParameter(name, short(value), needed)
    return float(value)


def not_negative(name: str, value: Any) -> float:
    """Return a number of 0 or more; see `number`."""
    return number(name, value, 0.0, needed="a non-negative number")


def positive(name: str, value: Any) -> float:
    """Return a number above 0; see `number`."""
    if number(name, value, 0.0, needed="a positive number") == 0.0:
        raise InvalidParameter(name, short(value), "a positive number")
    return float(value)


def fraction(name: str, value: Any) -> float:
    """Return a number above 0 and up to 1; see `number`."""
    if positive(name, value) > 1.0:
        raise InvalidParameter(name, short(value), "a fraction, above 0 and up to 1")
    return float(value)


def matrix_rows(matrix: Any) -> Array:
    """Return a matrix as an array (rows, columns).

    Raises:
        InvalidParameter: It is not a list of lists of finite numbers, all of one length.
    """
    array = np.array(matrix, dtype=float) if isinstance(matrix, tuple) else np.zeros(0)
    if array.ndim != 2 or not np.isfinite(array).all():
        allowed = "a list of lists of finite numbers, all of one length"
        raise InvalidParameter("matrix", short(matrix), allowed)
    return array


def as_float(value: Any) -> float:
    """Return a number as a real one.

    Raises:
        RuntimeFault: It is not a number.
    """
    if type(value) in (int, float):
        return float(value)
    raise RuntimeFault(f"A number is needed, not {kind_of(value)}.")


def as_integer(value: Any) -> int:
    """Return a whole number as an integer.

    Raises:
        RuntimeFault: It is not a whole number.
    """
    real = as_float(value)
    if not real.is_integer():
        raise RuntimeFault(f"An integer is needed, not {real}.")
    return int(real)


def text_of(thread: Any, value: Any) -> str:
    """Return a value as text.

    Args:
        thread: The calling thread. It is charged for a long text; a short one is part of what the
            call costs.
        value: Any value.
    """
    text = to_text(value)
    cost = len(text) >> COPY_COST_SHIFT if type(value) is str else len(text)
    if cost > CALL_COST:
        thread.charge(cost)
    return text


def as_list(values: Array) -> list[float]:
    """Return an array (n,) as a list of URScript."""
    return [float(value) for value in values]


def as_pose(values: Array) -> Pose:
    """Return an array (6,) as a pose of URScript."""
    return Pose(as_list(values))
