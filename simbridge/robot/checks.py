"""What every arm must fulfil, whichever kind of file it is read from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.errors import InputFileError

# Names that every model of an arm has, and pinocchio's name for the world.
RESERVED = frozenset({"base_link", "tool0", "tcp", "universe"})

# Angles of pi/2 and pi in a table are meant exactly; a double cannot say so.
_SNAP = 1e-9
# Published tensors are rounded: a moment may exceed the sum of the other two by this fraction.
_ROUNDING = 0.01


def snapped(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """A rotation matrix whose entries within 1e-9 of 0 and +-1 are 0 and +-1."""
    nearest = np.round(matrix)
    return np.where(np.abs(matrix - nearest) < _SNAP, nearest, matrix)


def tensor(xx: float, xy: float, xz: float, yy: float, yz: float, zz: float) -> NDArray[np.float64]:
    """The symmetric matrix (3, 3) of six moments of inertia."""
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def inertia_fault(inertia: ArrayLike) -> str | None:
    """Why no body can have this tensor (3, 3) in kg m^2 about its centre of mass; None when one can."""
    moments = np.linalg.eigvalsh(np.asarray(inertia, dtype=float))
    listed = ", ".join(f"{moment:.4g}" for moment in moments)
    if moments[0] < -1e-9 * abs(moments[2]):
        return f"no body has this inertia tensor: of its principal moments, {listed} kg m^2, one is negative"
    if moments[2] > (1.0 + _ROUNDING) * (moments[0] + moments[1]):
        return (
            f"no body has this inertia tensor: of its principal moments, {listed} kg m^2, one exceeds the others' sum"
        )
    return None


def first_repeated(names: Iterable[str]) -> int | None:
    """The index of the first name that was there before."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            return index
        seen.add(name)
    return None


def checked_home(
    path: Path, home: Sequence[float], low: Sequence[float], high: Sequence[float], names: Sequence[str]
) -> NDArray[np.float64]:
    """The joint positions (n,) from which plans start, read-only.

    Raises:
        InputFileError: They are not one finite position within the limits for each joint; names the joint.
    """
    if len(home) != len(names):
        raise InputFileError(path, f"{len(names)} joint positions are needed, but there are {len(home)}", field="home")
    for i, (q, lower, upper) in enumerate(zip(home, low, high, strict=True)):
        if not (np.isfinite(q) and lower <= q <= upper):
            reason = f"{q} is outside of the range of {names[i]}, {lower} to {upper}"
            raise InputFileError(path, reason, field=f"home[{i}]")
    positions = np.array(home, dtype=float)
    positions.setflags(write=False)
    return positions
