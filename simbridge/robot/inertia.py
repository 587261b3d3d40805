"""Tensors of inertia: whether a body can have them, and whether an arm can be moved with them."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from simbridge.robot.pose import Array

# Published tensors are rounded: a moment may exceed the sum of the other two by this fraction.
ROUNDING_FRACTION = 0.01
# A moment smaller than this fraction of the largest is one of zero, computed with rounding errors.
ZERO_FRACTION = 1e-9
# Postures at which the mass matrix of an arm is tested.
TESTED_POSTURES = 8
# A mass matrix with ones on its diagonal is singular if an eigenvalue is smaller.
SINGULAR = 1e-12


def inertia_tensor(*, xx: float, xy: float, xz: float, yy: float, yz: float, zz: float) -> Array:
    """Return the symmetric matrix (3, 3) of six moments of inertia."""
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def inertia_fault(inertia: ArrayLike) -> str | None:
    """Return the reason why no body can have a tensor; None if one can.

    Args:
        inertia: The tensor (3, 3) about the body's centre of mass, kg m^2.
    """
    moments = np.linalg.eigvalsh(np.asarray(inertia, dtype=float))
    # Moments that differ from zero by rounding are zero.
    rounding = ZERO_FRACTION * np.abs(moments).max()
    moments = np.where(np.abs(moments) < rounding, 0.0, moments)
    shown = ", ".join(f"{moment:.4g}" for moment in moments)
    reason = f"no body has this inertia tensor: of its principal moments, {shown} kg m^2, one"

    if moments[0] < 0.0:
        return f"{reason} is negative"
    if moments[2] > (1.0 + ROUNDING_FRACTION) * (moments[0] + moments[1]):
        return f"{reason} exceeds the others' sum"
    return None


def unusual_inertia(mass: float, inertia: Array) -> str | None:
    """Return what no real body has in common with a mass and a tensor; None if one can have them.

    Args:
        mass: Mass, kg.
        inertia: The tensor (3, 3) about the centre of mass, kg m^2.
    """
    has_moments = bool(np.any(inertia))
    if mass > 0.0 and not has_moments:
        return "its moments of inertia are all zero, as if its mass were in one point"
    if mass == 0.0 and has_moments:
        return "it has moments of inertia without a mass, which no body has"
    return inertia_fault(inertia)


def find_inertialess_joint(model: pin.Model) -> int | None:
    """Find a joint that a torque does not accelerate, or accelerates backwards.

    At a few postures, the mass matrix of an arm that can be moved is positive definite.

    Args:
        model: The arm.

    Returns:
        The index of the joint, from the base; None if all of them can be moved.
    """
    data = model.createData()
    rng = np.random.default_rng(0)
    for q in rng.uniform(-2.0, 2.0, (TESTED_POSTURES, model.nq)):
        mass_matrix = np.triu(pin.crba(model, data, q))
        diagonal = np.diag(mass_matrix)
        if diagonal.min() <= 0.0:
            return int(np.argmin(diagonal))

        # Without units: a joint may turn or slide.
        scale = 1.0 / np.sqrt(diagonal)
        correlations = scale[:, np.newaxis] * mass_matrix * scale
        values, vectors = np.linalg.eigh(correlations, UPLO="U")
        if values[0] <= SINGULAR:
            return int(np.argmax(np.abs(vectors[:, 0])))
    return None
