"""A tool's TCP and payload, compared within the pendant's rounding, and as text.

This module loads no pinocchio, which the servo process does without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from simbridge.robot.pose import Array
from simbridge.text import fixed
from simbridge.ur.rtde import Package

# TCP and payload are compared within the rounding of what can be entered at the pendant.
# Positions of the TCP, m.
SAME_LENGTH = 1e-4
# Rotations of the TCP, rad.
SAME_ANGLE = 1e-3
# Masses, kg.
SAME_MASS = 0.005
# Centres of gravity, m.
SAME_COG = 1e-3
# Inertias, kg m^2.
SAME_INERTIA = 1e-4


class Payload(NamedTuple):
    """A payload as a controller reports it; None for what its version does not report.

    Attributes:
        mass: Mass, kg.
        cog: Centre of gravity in tool0 (3,), m.
        inertia: Moments and products of inertia about the centre of gravity (6,), kg m^2.
    """

    mass: float | None
    cog: tuple[float, ...] | None
    inertia: tuple[float, ...] | None


def read_payload(state: Package) -> Payload:
    """Return the payload in a controller's state."""
    return Payload(
        mass=state.get("payload"),
        cog=state.get("payload_cog"),
        inertia=state.get("payload_inertia"),
    )


def same_tcp(tcp: Sequence[float] | Array, expected: Sequence[float] | Array) -> bool:
    """Return whether two TCPs [x y z rx ry rz], m and rad, are equal within the rounding."""
    a = np.asarray(tcp, dtype=float)
    b = np.asarray(expected, dtype=float)
    distance = float(np.abs(a[:3] - b[:3]).max())
    angle = _angle_between(a[3:], b[3:])
    return distance <= SAME_LENGTH and angle <= SAME_ANGLE


def _angle_between(rotation: Array, expected: Array) -> float:
    """Return the angle between two rotations, rad.

    Different rotation vectors may stand for one rotation: they are compared as quaternions.

    Args:
        rotation: A rotation vector (3,), rad.
        expected: Another rotation vector (3,), rad.
    """
    a = _quaternion(rotation)
    b = _quaternion(expected)

    # The quaternions b and -b stand for one rotation: the nearer one counts. On the unit sphere of
    # quaternions two rotations are half their angle apart, and a chord is twice the sine of half
    # its arc: angle = 2 arc = 4 asin(chord / 2).
    chord = min(float(np.linalg.norm(a - b)), float(np.linalg.norm(a + b)))
    return 4.0 * float(np.arcsin(min(0.5 * chord, 1.0)))


def _quaternion(rotation: Array) -> Array:
    """Return the unit quaternion (4,), w first, of a rotation vector (3,), rad."""
    angle = float(np.linalg.norm(rotation))
    axis = rotation / angle if angle > 0.0 else rotation
    return np.concatenate([[np.cos(0.5 * angle)], np.sin(0.5 * angle) * axis])


def payload_difference(payload: Payload, expected: Payload) -> tuple[str, str, str] | None:
    """Return the first quantity in which two payloads differ.

    Args:
        payload: The actual payload.
        expected: The payload that is expected.

    Returns:
        Name of the quantity, actual value and expected value, as text; None if no quantity that
        both report differs.
    """
    if payload.mass is not None and expected.mass is not None:
        if abs(payload.mass - expected.mass) > SAME_MASS:
            return "payload", mass_text(payload.mass), mass_text(expected.mass)

    # Without a mass, neither its centre of gravity nor its inertia has an effect.
    if not payload.mass:
        return None

    if payload.cog is not None and expected.cog is not None:
        if not np.allclose(payload.cog, expected.cog, rtol=0.0, atol=SAME_COG):
            return "centre of gravity", position_text(payload.cog), position_text(expected.cog)

    if payload.inertia is not None and expected.inertia is not None:
        if not np.allclose(payload.inertia, expected.inertia, rtol=0.0, atol=SAME_INERTIA):
            return "inertia", _inertia_text(payload.inertia), _inertia_text(expected.inertia)

    return None


def tcp_text(tcp: Sequence[float] | Array) -> str:
    """Return a TCP [x y z rx ry rz], m and rad, as text in mm and rad."""
    rotation = " ".join(fixed(value, 4) for value in tcp[3:])
    return f"{position_text(tcp[:3])}, {rotation} rad"


def mass_text(mass: float | None) -> str:
    """Return a mass, kg, as text."""
    return "unknown" if mass is None else f"{mass:g} kg"


def position_text(position: Sequence[float] | Array | None) -> str:
    """Return a position (3,), m, as text in mm."""
    if position is None:
        return "unknown"
    millimetres = " ".join(fixed(value * 1e3, 1) for value in position)
    return f"{millimetres} mm"


def _inertia_text(inertia: Sequence[float]) -> str:
    """Return an inertia (6,), kg m^2, as text."""
    values = " ".join(fixed(value, 5) for value in inertia)
    return f"{values} kg m^2"
