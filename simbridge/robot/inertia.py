"""Tensors of inertia, and whether a body can have them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from simbridge.robot.pose import Array

# Published tensors are rounded: a moment may exceed the sum of the other two by this fraction.
ROUNDING_FRACTION = 0.01


def inertia_tensor(xx: float, xy: float, xz: float, yy: float, yz: float, zz: float) -> Array:
    """Return the symmetric matrix (3, 3) of six moments of inertia."""
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def inertia_fault(inertia: ArrayLike) -> str | None:
    """Return the reason why no body can have a tensor; None if one can.

    Args:
        inertia: The tensor (3, 3) about the body's centre of mass, kg m^2.
    """
    moments = np.linalg.eigvalsh(np.asarray(inertia, dtype=float))
    shown = ", ".join(f"{moment:.4g}" for moment in moments)
    reason = f"no body has this inertia tensor: of its principal moments, {shown} kg m^2, one"

    if moments[0] < -1e-9 * abs(moments[2]):
        return f"{reason} is negative"
    if moments[2] > (1.0 + ROUNDING_FRACTION) * (moments[0] + moments[1]):
        return f"{reason} exceeds the others' sum"
    return None
