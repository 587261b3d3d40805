"""Joint metrics: velocity, acceleration, jerk and torque compared with their limits; distance from singularities.

Acceleration and jerk are smoothed derivatives of the measured velocity (`samples.derivatives`).

Near a singularity a joint must move fast for a slow tool: a tool velocity of length v may need a joint velocity of v
over the Jacobian's smallest singular value. The product of the singular values is the manipulability of T. Yoshikawa,
Manipulability of robotic mechanisms, 1985. Both mix m with rad (a radian at the tool counts as a metre), and so they
compare postures of one arm and TCP only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.evaluation.metrics.samples import derivatives, known_rows, resample_uniform, rms, rows
from simbridge.robot.pose import Array

NEAR_SINGULAR = 0.1
"""Smallest singular value, 1/s per m/s or rad/s: below it 0.25 m/s may need 2.5 rad/s, more than the limit of most UR10
joints. A UR10 is there with its wrist within 15 degrees of straight, or its elbow within 25."""

# Part of a joint's range at either end that counts as near: 14 degrees of a range of two turns either way.
NEAR_END = 0.02
# From this part of a velocity or torque limit on, a value counts as near.
NEAR_LIMIT = 0.9
# Of a longer recording this many evenly spaced samples are compared: shares are exact to 0.001 %.
MAX_COMPARED = 100_000
# Jacobians computed at once.
BLOCK = 10_000


class JointUse(TypedDict):
    """One quantity of n joints; `used` is the largest peak divided by its limit."""

    peak: list[float]
    rms: list[float]
    limit: list[float] | None
    used: float | None


class JointEffort(TypedDict):
    """Quantities that cannot be computed from the samples are None."""

    velocity: JointUse
    acceleration: JointUse | None
    jerk: JointUse | None
    torque: JointUse | None


class Singularity(TypedDict):
    """Share (0 to 1) of samples with a singular value below the threshold; smallest values of the run."""

    share: float
    threshold: float
    smallest_singular_value: float
    manipulability: float


class NearLimits(TypedDict):
    """Shares (0 to 1) of samples in which some joint is near its limit; None without torques."""

    position: float
    velocity: float
    torque: float | None


def joint_effort(
    times: ArrayLike,
    velocity: ArrayLike,
    torque: ArrayLike | None,
    *,
    max_velocity: ArrayLike,
    max_acceleration: float | None = None,
    max_torque: ArrayLike | None = None,
) -> JointEffort:
    """Peak, RMS and limit of every joint's velocity, acceleration, jerk and torque.

    Args:
        times: Strictly increasing stamps (T,) in s.
        velocity: Measured velocities (T, n), rad/s (m/s for sliding joints).
        torque: Torques (T, n), N m (N); samples that are not finite are left out. None if they were not measured.
        max_velocity, max_torque: (n,).
        max_acceleration: One limit for all joints.
    """
    limit = np.asarray(max_velocity, dtype=float)
    v = rows("joint velocities", velocity, len(limit))
    found: JointEffort = {"velocity": _use(v, limit), "acceleration": None, "jerk": None, "torque": None}
    if len(v) > 1:
        # Joint by joint: the derivatives of an hour of all of them take 0.2 GB.
        used = []
        for i in range(len(limit)):
            period, uniform = resample_uniform(times, v[:, i : i + 1])
            used += [_peak_and_rms(part) for part in derivatives(uniform, period)]
        if None not in used:
            highest = None if max_acceleration is None else np.full(len(limit), max_acceleration)
            found["acceleration"], found["jerk"] = _joint_use(used[::2], highest), _joint_use(used[1::2], None)
    if torque is not None:
        highest = None if max_torque is None else np.asarray(max_torque, dtype=float)
        known = known_rows("joint torques", torque, len(limit), len(v))
        found["torque"] = _use(known, highest) if len(known) else None
    return found


def _use(values: Array, limit: Array | None) -> JointUse:
    return _joint_use([_peak_and_rms(column) for column in values.T], limit)


def _peak_and_rms(values: Array) -> tuple[float, float] | None:
    """Of one joint; None without values."""
    return (float(np.abs(values).max()), float(rms(values))) if len(values) else None


def _joint_use(used: Sequence[tuple[float, float] | None], limit: Array | None) -> JointUse:
    peak, root = zip(*(each for each in used if each is not None), strict=True)
    return {
        "peak": list(peak),
        "rms": list(root),
        "limit": None if limit is None else limit.tolist(),
        "used": None if limit is None else float((np.array(peak) / limit).max()),
    }


def near_singularity(
    joints: ArrayLike,
    jacobians: Callable[[Array], Array],
    *,
    threshold: float = NEAR_SINGULAR,
    motions: int | None = None,
) -> Singularity:
    """Share of samples near a singularity, and the smallest singular value and manipulability.

    Args:
        joints: Joint positions (T, n), T at least 1.
        jacobians: Maps joint positions (K, n) to Jacobians (K, m, n), m being the rows of the task. With n < m there
            are n singular values.
        threshold: A sample is near a singularity if its smallest singular value is below this.
        motions: Number of independent directions in which the arm can move at all: 2 for the position of a planar arm,
            which is not singular because it cannot leave its plane. The smaller of m and n by default.
    """
    q = np.asarray(joints, dtype=float)
    q = evenly_spaced(rows("joint positions", q, q.shape[1] if q.ndim == 2 else 1))
    values = np.concatenate(
        [np.linalg.svd(jacobians(q[k : k + BLOCK]), compute_uv=False) for k in range(0, len(q), BLOCK)]
    )
    values = values[:, :motions]
    return {
        "share": float(np.mean(values[:, -1] < threshold)),
        "threshold": threshold,
        "smallest_singular_value": float(values[:, -1].min()),
        "manipulability": float(values.prod(axis=1).min()),
    }


def at_limit(values: Array, limit: Array) -> NDArray[np.bool_]:
    """Which values (T, n) have the magnitude of their limit (n,), or more; NaN has not."""
    return (values >= limit) | (values <= -limit)


def evenly_spaced(samples: Array) -> Array:
    """At most MAX_COMPARED of samples (T, n), a copy; all of a shorter recording."""
    return samples[:: max(1, -(-len(samples) // MAX_COMPARED))].copy()


def near_limits(
    position: ArrayLike,
    velocity: ArrayLike,
    torque: ArrayLike | None,
    *,
    position_min: ArrayLike,
    position_max: ArrayLike,
    max_velocity: ArrayLike,
    max_torque: ArrayLike | None,
) -> NearLimits:
    """Share of samples in which some joint is near a position, velocity or torque limit.

    Args:
        position, velocity: (T, n), T at least 1.
        torque: (T, n); samples that are not finite are left out. None if they were not measured.
        position_min, position_max, max_velocity, max_torque: Limits (n,); an infinite range has no end to be near.
    """
    low, high = np.asarray(position_min, dtype=float), np.asarray(position_max, dtype=float)
    q = rows("joint positions", position, len(low))
    v = rows("joint velocities", velocity, len(low), len(q))
    margin = NEAR_END * np.where(np.isfinite(high - low), high - low, 0.0)
    shares: NearLimits = {
        "position": _share((q < low + margin) | (q > high - margin)),
        "velocity": _share(np.abs(v) >= NEAR_LIMIT * np.asarray(max_velocity, dtype=float)),
        "torque": None,
    }
    if torque is not None and max_torque is not None:
        known = known_rows("joint torques", torque, len(low), len(q))
        near = np.abs(known) >= NEAR_LIMIT * np.asarray(max_torque, dtype=float)
        shares["torque"] = _share(near) if len(known) else None
    return shares


def _share(near: NDArray[np.bool_]) -> float:
    return float(np.mean(near.any(axis=1)))
