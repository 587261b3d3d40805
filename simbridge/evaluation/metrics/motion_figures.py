"""How the arm moved, whatever its target was: use of the joints and their limits, singularities, smoothness.

Acceleration and jerk are smoothed derivatives of the measured velocity (`samples.derivatives`).

Near a singularity a joint must move fast for a slow tool: a tool velocity of length v may need a joint velocity of v
over the Jacobian's smallest singular value. The product of the singular values is the manipulability of T. Yoshikawa,
Manipulability of robotic mechanisms, 1985. Both mix m with rad (a radian at the tool counts as a metre), and so they
compare postures of one arm and TCP only.

Smoothness is that of a speed: spectral arc length (SPARC) and log dimensionless jerk (LDLJ) of S. Balasubramanian, A.
Melendez-Calderon, A. Roby-Brami and E. Burdet, On the analysis of movement smoothness, 2015. Both are negative; closer
to zero is smoother. Neither depends on how far or how fast a motion goes. LDLJ is dominated by noise; SPARC ignores
what is above its cut-off frequency. Compare motions of the same shape and length only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.errors import InvalidParameter
from simbridge.evaluation.metrics.samples import (
    column,
    derivatives,
    known_rows,
    resample_uniform,
    rms,
    rows,
    stamps,
)
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
# Cut-off frequency of SPARC, Hz.
CUTOFF = 10.0
# The tail of the spectrum below this part of its maximum does not count.
MIN_AMPLITUDE = 0.05
# The spectrum has 2^4 times the points that the samples need, so that the length of its curve is resolved.
PADDING = 4
# Most points of one transform, which bounds the memory: an hour at 500 Hz takes 2^25 points in all.
TRANSFORM = 1 << 21
# m/s or rad/s: a motion that never exceeds it is at rest, and the smoothness of its noise means nothing.
MIN_SPEED = 1e-3


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


class ToolSmoothness(TypedDict):
    """None where it cannot be determined, as at rest."""

    sparc: float | None
    ldlj: float | None


class JointSmoothness(TypedDict):
    """Of n joints."""

    sparc: list[float | None]
    ldlj: list[float | None]


class Smoothness(TypedDict):
    """Of the tool's speed and of the joint velocities."""

    tool: ToolSmoothness
    joints: JointSmoothness


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
    found: JointEffort = {
        "velocity": _use(v, limit),
        "acceleration": None,
        "jerk": None,
        "torque": None,
    }
    if len(v) > 1:
        # Joint by joint: the derivatives of an hour of all of them take 0.2 GB.
        used = []
        for i in range(len(limit)):
            period, uniform = resample_uniform(times, v[:, i : i + 1])
            used += [_peak_and_rms(part) for part in derivatives(uniform, period)]
        if None not in used:
            highest = None if max_acceleration is None else np.full(len(limit), max_acceleration)
            found["acceleration"], found["jerk"] = (
                _joint_use(used[::2], highest),
                _joint_use(used[1::2], None),
            )
    if torque is not None:
        highest = None if max_torque is None else np.asarray(max_torque, dtype=float)
        known = known_rows("joint torques", torque, len(limit), len(v))
        found["torque"] = _use(known, highest) if len(known) else None
    return found


def _use(values: Array, limit: Array | None) -> JointUse:
    return _joint_use([_peak_and_rms(column) for column in values.T], limit)


def _peak_and_rms(values: Array) -> tuple[float, float] | None:
    """Of one joint; None without values."""
    return (float(np.abs(values).max()), rms(values)) if len(values) else None


def _joint_use(used: Sequence[tuple[float, float] | None], limit: Array | None) -> JointUse:
    peak, root = zip(*(each for each in used if each is not None), strict=True)
    return {
        "peak": list(peak),
        "rms": list(root),
        "limit": None if limit is None else limit.tolist(),
        "used": None if limit is None else float((np.array(peak) / limit).max()),
    }


def near_singularity(
    joints: ArrayLike, jacobians: Callable[[Array], Array], *, motions: int | None = None
) -> Singularity:
    """Share of samples near a singularity, and the smallest singular value and manipulability.

    Args:
        joints: Joint positions (T, n), T at least 1.
        jacobians: Maps joint positions (K, n) to Jacobians (K, m, n), m being the rows of the task. With n < m there
            are n singular values.
        motions: Number of independent directions in which the arm can move at all: 2 for the position of a planar arm,
            which is not singular because it cannot leave its plane. The smaller of m and n by default.
    """
    q = np.asarray(joints, dtype=float)
    q = rows("joint positions", q, q.shape[1] if q.ndim == 2 else 1)
    q = q[:: -(-len(q) // MAX_COMPARED)]
    values = np.concatenate(
        [
            np.linalg.svd(jacobians(q[k : k + BLOCK]), compute_uv=False)
            for k in range(0, len(q), BLOCK)
        ]
    )
    values = values[:, :motions]
    return {
        "share": float(np.mean(values[:, -1] < NEAR_SINGULAR)),
        "threshold": NEAR_SINGULAR,
        "smallest_singular_value": float(values[:, -1].min()),
        "manipulability": float(values.prod(axis=1).min()),
    }


def at_limit(values: Array, limit: Array) -> NDArray[np.bool_]:
    """Which values (T, n) have the magnitude of their limit (n,), or more; NaN has not."""
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
    joints, fastest = range(len(low)), NEAR_LIMIT * np.asarray(max_velocity, dtype=float)
    shares: NearLimits = {
        "position": _share(
            (q[:, i] < low[i] + margin[i]) | (q[:, i] > high[i] - margin[i]) for i in joints
        ),
        "velocity": _share(np.abs(v[:, i]) >= fastest[i] for i in joints),
        "torque": None,
    }
    if torque is not None and max_torque is not None:
        known = known_rows("joint torques", torque, len(low), len(q))
        strongest = NEAR_LIMIT * np.asarray(max_torque, dtype=float)
        shares["torque"] = (
            _share(np.abs(known[:, i]) >= strongest[i] for i in joints) if len(known) else None
        )
    return shares


def _share(near: Iterable[NDArray[np.bool_]]) -> float:
    """The share of samples in which some joint is near its limit, of each joint's samples (T,)."""
    return float(np.mean(reduce(np.logical_or, near)))


def sparc(speed: ArrayLike, rate: float, *, cutoff: float = CUTOFF) -> float | None:
    """Spectral arc length: -integral_0^wc sqrt((1/wc)^2 + (dV/dw)^2) dw, V the spectrum of the speed over its maximum.

    wc is the last frequency up to the cut-off at which V is at least 0.05. Speeds (T,), 0 or more, are sampled at a
    uniform rate, Hz. It is a negative number without unit, or None for fewer than 3 samples, for no motion, or if all
    content is below the resolution of the spectrum.

    Raises:
        InvalidParameter: Rate or cut-off is not positive, or the cut-off beyond half the rate.
    """
    v = _speeds(speed, rate)
    if not 0.0 < cutoff <= 0.5 * rate:
        raise InvalidParameter(
            "cut-off", f"{cutoff} Hz", f"above 0 and at most half the rate, {0.5 * rate:g} Hz"
        )
    if len(v) < 3 or not v.any():
        return None
    size = 1 << (math.ceil(math.log2(len(v))) + PADDING)
    amplitude = np.abs(_spectrum(v, size, int(cutoff * size / rate) + 1))
    # A speed is never negative, so its spectrum is largest at zero.
    amplitude /= amplitude[0]
    last = int(np.flatnonzero(amplitude >= MIN_AMPLITUDE)[-1])
    if last == 0:
        return None
    return -float(np.hypot(1.0 / last, np.diff(amplitude[: last + 1])).sum())


def ldlj(speed: ArrayLike, rate: float) -> float | None:
    """Log dimensionless jerk of a speed: -ln[(T^3 / v_peak^2) integral (d2v/dt2)^2 dt], by second differences.

    Speeds (T,) are sampled uniformly at a rate, Hz, and signed if the motion reverses. Differences amplify the sensor's
    noise, the more the higher the rate. None for fewer than 3 samples or a constant rate of change (no jerk at all).

    Raises:
        InvalidParameter: The rate is not positive.
    """
    v = _speeds(speed, rate)
    if len(v) < 3:
        return None
    jerk = np.diff(v, 2) * rate**2
    duration, peak = len(v) / rate, float(np.abs(v).max())
    integral = float((jerk**2).sum()) / rate
    if integral == 0.0:
        return None
    return -math.log(duration**3 / peak**2 * integral)


def smoothness_summary(times: ArrayLike, positions: ArrayLike, velocity: ArrayLike) -> Smoothness:
    """SPARC and LDLJ of the speed of the tool and of every joint, at stamps (T,) in s.

    The speed of the tool is the central difference of its positions (T, 3), m; those of the joints (T, n) are measured.
    """
    t = stamps("times", times)
    x = rows("attained positions", positions, 3, len(t))
    v = np.asarray(velocity, dtype=float)
    if len(t) < 3:
        found: list[ToolSmoothness] = [{"sparc": None, "ldlj": None}] * (1 + v.shape[1])
    else:
        period, uniform = resample_uniform(t, x)
        tool = np.linalg.norm(np.gradient(uniform, period, axis=0), axis=1)
        _, joints_uniform = resample_uniform(t, v)
        found = [_smoothness(velocity, 1.0 / period) for velocity in (tool, *joints_uniform.T)]
    tool_smoothness, *joints = found
    return {
        "tool": tool_smoothness,
        "joints": {
            "sparc": [joint["sparc"] for joint in joints],
            "ldlj": [joint["ldlj"] for joint in joints],
        },
    }


def _smoothness(velocity: Array, rate: float) -> ToolSmoothness:
    speed = np.abs(velocity)
    if speed.max() < MIN_SPEED:
        return {"sparc": None, "ldlj": None}
    # LDLJ takes the signed velocity: the speed of a joint that reverses has a corner, whose jerk depends on the rate.
    return {
        "sparc": sparc(speed, rate, cutoff=min(CUTOFF, 0.5 * rate)),
        "ldlj": ldlj(velocity, rate),
    }


def _speeds(speed: ArrayLike, rate: float) -> Array:
    if not (math.isfinite(rate) and rate > 0.0):
        raise InvalidParameter("rate", f"{rate} Hz", "positive")
    return column("speeds", speed)


def _spectrum(values: Array, size: int, count: int) -> NDArray[np.complex128]:
    """The first `count` points of the Fourier transform of values (T,) padded to `size`, a power of two.

    The samples are split into several short transforms (the first step of Cooley and Tukey): few points are needed, and
    one long transform would take much memory.
    """
    hands = 1
    while size // hands > TRANSFORM and size // (2 * hands) >= count:
        hands *= 2
    total = np.zeros(count, dtype=complex)
    for hand in range(hands):
        part = np.fft.rfft(values[hand::hands], size // hands)
        # Of a real signal only half the transform is kept; the rest is its mirror image.
        whole = np.concatenate([part, np.conj(part[-2:0:-1])]) if count > len(part) else part
        total += whole[:count] * np.exp(-2j * np.pi * hand / size * np.arange(count))
    return total
