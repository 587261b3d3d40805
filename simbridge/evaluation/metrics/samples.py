"""What the metrics ask of their arrays, checked once at the door.

A sample that is missing or not a number would not crash the arithmetic: it would turn every statistic into NaN, or,
worse, be broadcast into a plausible one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from simbridge.errors import UnusableSamples
from simbridge.robot.pose import Array


def rows(name: str, values: ArrayLike, columns: int, count: int | None = None) -> Array:
    """The values as finite rows (T, columns).

    Args:
        name: What they are, for the message.
        values: The array.
        columns: How many numbers a sample has.
        count: How many samples there must be; None leaves it open.

    Raises:
        UnusableSamples: For another shape or a number that is not finite.
    """
    array = np.asarray(values, dtype=float)
    expected = (len(array) if count is None and array.ndim > 0 else count, columns)
    if array.shape != expected:
        rule = f"({'T' if count is None else count}, {columns})"
        raise UnusableSamples(name, f"their shape is {array.shape}, and {rule} is needed: one row for every stamp.")
    _all_finite(name, array)
    return array


def known_rows(name: str, values: ArrayLike, columns: int, count: int) -> Array:
    """Of rows (count, columns), those that are finite: for what a sensor does not always tell.

    Raises:
        UnusableSamples: For another shape.
    """
    array = np.asarray(values, dtype=float)
    finite = np.isfinite(array)
    rows(name, np.where(finite, array, 0.0), columns, count)
    return np.asarray(array[finite.all(axis=1)])


def stamps(name: str, values: ArrayLike) -> Array:
    """The values as finite, strictly increasing instants (T,) in s, at least one.

    Raises:
        UnusableSamples: If they are anything else.
    """
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or len(array) == 0:
        raise UnusableSamples(name, f"their shape is {array.shape}, and (T,) with at least one instant is needed.")
    _all_finite(name, array)
    late = np.flatnonzero(np.diff(array) <= 0.0)
    if len(late):
        k = int(late[0]) + 1
        raise UnusableSamples(
            name,
            f"sample {k} ({array[k]:g} s) is not later than sample {k - 1} ({array[k - 1]:g} s). "
            "Sort the samples and leave out repeated ones.",
            index=k,
        )
    return array


def _all_finite(name: str, array: Array) -> None:
    finite = np.isfinite(array)
    if not finite.all():
        bad = np.flatnonzero(~finite.all(axis=tuple(range(1, array.ndim))))
        raise UnusableSamples(
            name,
            f"sample {bad[0]} is not finite, {len(bad)} of {len(array)} in all. "
            "Leave out the samples that have no value, at every place of the pipeline alike.",
            index=int(bad[0]),
        )
