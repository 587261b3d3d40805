"""Figures of the arm's motion, whatever its target: use of joints and limits, singularities.

Acceleration and jerk are smoothed derivatives of the measured velocity (`samples.derivatives`).

Near a singularity a joint must move fast for a slow tool: a tool velocity of length v may need a
joint velocity of v over the Jacobian's smallest singular value. The product of the singular values
is the manipulability of T. Yoshikawa, Manipulability of robotic mechanisms, 1985. Both mix m with
rad (a radian at the tool counts as a metre), and so they compare postures of one arm and TCP only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.evaluation.metrics.samples import (
    derivatives,
    known_rows,
    resample_uniform,
    rms,
    rows,
)
from simbridge.robot.pose import Array

# Smallest singular value, 1/s per m/s or rad/s, below which a posture is near a singularity: there
# 0.25 m/s may need 2.5 rad/s, more than the limit of most UR10 joints. A UR10 is there with its
# wrist within 15 degrees of straight, or its elbow within 25.
NEAR_SINGULAR = 0.1
# Part of a joint's range at either end that counts as near: 14 degrees of a range of two turns
# either way.
NEAR_END = 0.02
# From this part of a velocity or torque limit on, a value counts as near.
NEAR_LIMIT = 0.9
# Samples that are compared of a longer recording, evenly spaced: shares are exact to 0.001 %.
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
    """Use of the joints in a run; quantities that cannot be computed from the samples are None."""

    velocity: JointUse
    acceleration: JointUse | None
    jerk: JointUse | None
    torque: JointUse | None


class Singularity(TypedDict):
    """The nearness of a run to singularities.

    `share` is the part (0 to 1) of the samples with a singular value below the threshold; the other
    two are the smallest values of the run.
    """

    share: float
    threshold: float
    smallest_singular_value: float
    manipulability: float


class NearLimits(TypedDict):
    """Parts (0 to 1) of the samples in which some joint is near its limit; None without torques."""

    position: float
    velocity: float
    torque: float | None


class JointSize(NamedTuple):
    """The size that a quantity of one joint had in a run.

    Attributes:
        peak: Largest magnitude of the quantity.
        rms: Root mean square of the quantity.
    """

    peak: float
    rms: float


def joint_effort(
    times: ArrayLike,
    velocity: ArrayLike,
    torque: ArrayLike | None,
    *,
    max_velocity: ArrayLike,
    max_acceleration: float | None = None,
    max_torque: ArrayLike | None = None,
) -> JointEffort:
    """Return peak, RMS and limit of every joint's velocity, acceleration, jerk and torque.

    Args:
        times: Strictly increasing stamps (T,) in s.
        velocity: Measured velocities (T, n), rad/s (m/s for sliding joints).
        torque: Torques (T, n), N m (N); samples that are not finite are left out. None if they were
            not measured.
        max_velocity: Limits (n,), rad/s (m/s).
        max_acceleration: One limit for all joints, rad/s^2 (m/s^2).
        max_torque: Limits (n,), N m (N).
    """
    velocity_limit = np.asarray(max_velocity, dtype=float)
    joints = len(velocity_limit)
    v = rows("joint velocities", velocity, joints)
    effort: JointEffort = {
        "velocity": _joint_use(_joint_sizes(v), velocity_limit),
        "acceleration": None,
        "jerk": None,
        "torque": None,
    }

    if len(v) > 1:
        # Joint by joint: the derivatives of an hour of all of them take 0.2 GB.
        accelerations = []
        jerks = []
        for i in range(joints):
            period, uniform = resample_uniform(times, v[:, i : i + 1])
            acceleration, jerk = derivatives(uniform, period)
            accelerations += _joint_sizes(acceleration)
            jerks += _joint_sizes(jerk)

        # A recording shorter than the window has no derivatives: then `_joint_sizes` returned
        # nothing for its joints.
        if len(accelerations) == joints:
            acceleration_limit = None
            if max_acceleration is not None:
                acceleration_limit = np.full(joints, max_acceleration)
            effort["acceleration"] = _joint_use(accelerations, acceleration_limit)
            effort["jerk"] = _joint_use(jerks, None)

    if torque is not None:
        torque_limit = None if max_torque is None else np.asarray(max_torque, dtype=float)
        known_torques = known_rows("joint torques", torque, joints, len(v))
        if len(known_torques):
            effort["torque"] = _joint_use(_joint_sizes(known_torques), torque_limit)

    return effort


def _joint_sizes(values: Array) -> list[JointSize]:
    """Return how large the values (T, n) of each joint are; empty without samples."""
    if len(values) == 0:
        return []
    return [JointSize(float(np.abs(joint).max()), rms(joint)) for joint in values.T]


def _joint_use(sizes: Sequence[JointSize], limit: Array | None) -> JointUse:
    """Return a quantity of n joints beside its limit (n,)."""
    peaks = [size.peak for size in sizes]
    return {
        "peak": peaks,
        "rms": [size.rms for size in sizes],
        "limit": None if limit is None else limit.tolist(),
        "used": None if limit is None else float((np.array(peaks) / limit).max()),
    }


def near_singularity(
    joints: ArrayLike, jacobians: Callable[[Array], Array], *, motions: int | None = None
) -> Singularity:
    """Return the share of samples near a singularity, and the smallest values of the run.

    Args:
        joints: Joint positions (T, n), rad (m), T at least 1.
        jacobians: Function from joint positions (K, n) to Jacobians (K, m, n), with m rows of the
            task. With n < m there are n singular values.
        motions: Number of independent directions in which the arm can move at all; the smaller of m
            and n by default. It is 2 for the position of a planar arm, which can never leave its
            plane: that alone does not make it singular.
    """
    # Refuse what is not (T, n), or not finite. Any number of joints will do.
    q = np.asarray(joints, dtype=float)
    columns = q.shape[1] if q.ndim == 2 else 1
    q = rows("joint positions", q, columns)

    # At most MAX_COMPARED samples, evenly spaced, in blocks that fit the memory.
    stride = math.ceil(len(q) / MAX_COMPARED)
    q = q[::stride]

    blocks = []
    for k in range(0, len(q), BLOCK):
        blocks.append(np.linalg.svd(jacobians(q[k : k + BLOCK]), compute_uv=False))
    singular_values = np.concatenate(blocks)[:, :motions]

    return {
        "share": float(np.mean(singular_values[:, -1] < NEAR_SINGULAR)),
        "threshold": NEAR_SINGULAR,
        "smallest_singular_value": float(singular_values[:, -1].min()),
        "manipulability": float(singular_values.prod(axis=1).min()),
    }


def at_limit(values: Array, limit: Array) -> NDArray[np.bool_]:
    """Return which values (T, n) have the magnitude of their limit (n,), or more; NaN has not."""
    return (values >= limit) | (values <= -limit)


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
    """Return the share of samples in which some joint is near a limit, for each kind of limit.

    Args:
        position: Positions of the joints (T, n), rad (m), T at least 1.
        velocity: Velocities of the joints (T, n), rad/s (m/s).
        torque: Torques of the joints (T, n), N m (N); samples that are not finite are left out.
            None if they were not measured.
        position_min: Lower limits (n,), rad (m); an infinite range has no end to be near.
        position_max: Upper limits (n,), rad (m).
        max_velocity: Limits (n,), rad/s (m/s).
        max_torque: Limits (n,), N m (N); None if they are not known.
    """
    low = np.asarray(position_min, dtype=float)
    high = np.asarray(position_max, dtype=float)
    joints = range(len(low))
    q = rows("joint positions", position, len(low))
    v = rows("joint velocities", velocity, len(low), len(q))

    # Joint by joint, so that no array of all samples and joints is made.
    margin = NEAR_END * np.where(np.isfinite(high - low), high - low, 0.0)
    near_ends = ((q[:, i] < low[i] + margin[i]) | (q[:, i] > high[i] - margin[i]) for i in joints)
    high_velocity = NEAR_LIMIT * np.asarray(max_velocity, dtype=float)
    near_velocities = (np.abs(v[:, i]) >= high_velocity[i] for i in joints)
    shares: NearLimits = {
        "position": _share_of_any(near_ends),
        "velocity": _share_of_any(near_velocities),
        "torque": None,
    }

    if torque is not None and max_torque is not None:
        known_torques = known_rows("joint torques", torque, len(low), len(q))
        high_torque = NEAR_LIMIT * np.asarray(max_torque, dtype=float)
        if len(known_torques):
            near_torques = (np.abs(known_torques[:, i]) >= high_torque[i] for i in joints)
            shares["torque"] = _share_of_any(near_torques)
    return shares


def _share_of_any(masks: Iterable[NDArray[np.bool_]]) -> float:
    """Return the share of samples that are in the mask (T,) of any joint."""
    return float(np.mean(reduce(np.logical_or, masks)))
