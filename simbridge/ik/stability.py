"""Stability of forward dynamics: the gains that the twin's masses allow."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from simbridge.errors import UnstableSolver
from simbridge.ik.twin import Twin
from simbridge.robot.pose import Array

# Smallest kappa = dt^2 kp/m with which iterations diverge.
KAPPA_BOUND = 8.0
# Largest kappa with which iterations do not overshoot.
KAPPA_WITHOUT_OVERSHOOT = 4.0
# Smallest dt kd/m with which iterations diverge.
DAMPING_BOUND = 4.0
# Fraction of the velocity that is kept in an iteration of velocity accumulation.
VELOCITY_KEPT = 0.9
# Rounding in the factor by which an error changes in an iteration.
ROUNDING = 1e-9


class Gains(NamedTuple):
    """The settings that an iteration's gain depends on.

    Attributes:
        dt: Virtual time step, s.
        kp: Stiffness (6,), translation first, N/m and N m/rad.
        kd: Damping (6,), N s/m and N m s/rad.
        masses: Mass (kg) and inertia (kg m^2) that the tool has at least.
        rows: The number of components that the task constrains.
    """

    dt: float
    kp: Sequence[float]
    kd: Sequence[float]
    masses: tuple[float, float]
    rows: int


def check_stability(gains: Gains, twin: Twin) -> float:
    """Refuse gains at or past the stability bound of Algorithm 1, and warn of overshoot.

    Algorithm 1 is that of the paper in docs/paper.md.

    Returns:
        The largest kappa = dt^2 kp/m.

    Raises:
        UnstableSolver: kappa + 2 dt kd/m is 8 or more, or dt kd/m 4 or more, with the masses that
            would suffice.
    """
    kappa, damping = load_ratios(gains)
    largest_kappa = float(np.max(kappa))

    excess = np.maximum((kappa + 2.0 * damping) / KAPPA_BOUND, damping / DAMPING_BOUND)
    worst = int(np.argmax(excess))
    if excess[worst] >= 1.0:
        raise UnstableSolver(
            float(kappa[worst]),
            float(damping[worst]),
            needed=_least_masses(gains),
            lacks_tool_mass=0.0 in (twin.tool_mass, twin.tool_inertia),
        )

    if largest_kappa > KAPPA_WITHOUT_OVERSHOOT:
        warnings.warn(
            f"kappa = dt^2 kp/m is {largest_kappa:.3g}: above 4 iterations overshoot "
            "(8 is the stability bound).",
            stacklevel=4,
        )
    return largest_kappa


def check_accumulation(gains: Gains) -> float:
    """Refuse gains at or past the stability bound of velocity accumulation.

    Returns:
        The largest kappa = dt^2 kp/m.

    Raises:
        UnstableSolver: An error does not decay.
    """
    kappa, damping = load_ratios(gains)
    radius = [accumulated_radius(k, d) for k, d in zip(kappa, damping, strict=True)]
    worst = int(np.argmax(radius))

    # Without stiffness an error is constant, which is not unstable.
    is_constant = kappa[worst] == 0.0 and radius[worst] <= 1.0 + ROUNDING
    if radius[worst] >= 1.0 and not is_constant:
        raise UnstableSolver(float(kappa[worst]), float(damping[worst]), accumulating=True)
    return float(np.max(kappa))


def load_ratios(gains: Gains) -> tuple[Array, Array]:
    """Return kappa = dt^2 kp/m and dt kd/m, translation first, of the components of the task."""
    six_masses = np.maximum(np.repeat(gains.masses, 3), np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        kappa = gains.dt**2 * np.array(gains.kp) / six_masses
        damping = gains.dt * np.array(gains.kd) / six_masses
    return kappa[: gains.rows], damping[: gains.rows]


def _least_masses(gains: Gains) -> tuple[float, float]:
    """Return mass (kg) and inertia (kg m^2) at the tool above which the gains are stable."""
    kp = np.reshape(gains.kp, (2, 3)).max(axis=1)
    kd = np.reshape(gains.kd, (2, 3)).max(axis=1)
    for_both = (gains.dt**2 * kp + 2.0 * gains.dt * kd) / KAPPA_BOUND
    for_damping = gains.dt * kd / DAMPING_BOUND
    mass, inertia = np.maximum(for_both, for_damping)
    return float(mass), float(inertia)


def accumulated_radius(kappa: float, damping: float) -> float:
    """Return the factor by which an error finally grows in an iteration of velocity accumulation.

    It is the spectral radius of the iteration of (e, dt v, dt v before), with e+ = e - dt v and
    v+ = 0.9 (v + (kappa e - damping dt v before)/dt). Stable below 1; without damping that is a
    kappa below 1/9.
    """
    if not math.isfinite(kappa + damping):
        return math.inf
    step = [
        [1.0, -1.0, 0.0],
        [VELOCITY_KEPT * kappa, VELOCITY_KEPT, -VELOCITY_KEPT * damping],
        [0.0, 1.0, 0.0],
    ]
    return float(np.abs(np.linalg.eigvals(step)).max())
