"""What a motion asks of the joints: peak and RMS of velocity, acceleration, jerk and torque, against the limits.

Acceleration and jerk are the first and second derivative, at its middle, of the parabola fitted to the measured
velocity over WINDOW seconds (A. Savitzky and M. J. E. Golay, Smoothing and differentiation of data by simplified least
squares procedures, 1964): plain differences of a 500 Hz velocity would show its noise and nothing else. The fit is
exact for a velocity of second degree, and leaves 1 - (w h)^2/10 of the acceleration of a vibration with w rad/s, h half
the window.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from simbridge.errors import UnusableSamples
from simbridge.evaluation.metrics.samples import known_rows, rows, stamps
from simbridge.robot.pose import Array

WINDOW = 0.02
"""Seconds of velocity under one parabola: from 10 ms before to 10 ms after; never fewer than five samples."""


def evenly(times: ArrayLike, values: ArrayLike) -> tuple[float, Array]:
    """The period in s, and the values (T, n) at T even instants; those of missing stamps are interpolated.

    The period is the median one, so that T grows by the samples that are missing.

    Raises:
        UnusableSamples: Fewer than two samples, or they do not belong together.
    """
    t = stamps("times", times)
    v = np.asarray(values, dtype=float)
    v = rows("values", v, v.shape[1] if v.ndim == 2 else 1, len(t))
    if len(t) < 2:
        raise UnusableSamples("times", "there is one, and a rate needs two.")
    steps = np.diff(t)
    period = float(np.median(steps))
    # Rounding of the stamps alone: nothing is missing and nothing is late.
    if np.abs(steps - period).max() <= 1e-3 * period:
        return float(t[-1] - t[0]) / (len(t) - 1), v
    count = round((t[-1] - t[0]) / period) + 1
    grid = np.linspace(t[0], t[-1], count)
    return float(grid[1] - grid[0]), np.column_stack([np.interp(grid, t, column) for column in v.T])


def derivatives(values: ArrayLike, period: float) -> tuple[Array, Array]:
    """First and second derivative of evenly sampled values (T, n) by a moving parabola.

    Returns:
        Two arrays (T - 2 m, n), m the samples on either side: where the parabola would look past the ends there is
        none.
    """
    v = np.asarray(values, dtype=float)
    m = max(2, round(0.5 * WINDOW / period))
    if len(v) <= 2 * m:
        return np.empty((0, v.shape[1])), np.empty((0, v.shape[1]))
    k = np.arange(-m, m + 1, dtype=float)
    k2 = k**2 - np.mean(k**2)
    # Convolution runs backwards: the odd kernel changes its sign.
    slope, bend = -k / (k @ k) / period, 2.0 * k2 / (k2 @ k2) / period**2
    first, second = ([np.convolve(column, kernel, "valid") for column in v.T] for kernel in (slope, bend))
    return np.column_stack(first), np.column_stack(second)


def joint_effort(
    times: ArrayLike,
    velocity: ArrayLike,
    torque: ArrayLike | None,
    *,
    max_velocity: ArrayLike,
    max_acceleration: float | None = None,
    max_torque: ArrayLike | None = None,
) -> dict[str, Any]:
    """Peak, RMS and limit of every joint's velocity, acceleration, jerk and torque.

    Args:
        times: Strictly increasing stamps (T,) in s.
        velocity: Measured velocities (T, n), rad/s (m/s for sliding joints).
        torque: Torques (T, n), N m (N); samples that are not finite are left out. None where they were not measured.
        max_velocity: (n,).
        max_acceleration: One limit for all joints, or None.
        max_torque: (n,), or None.

    Returns:
        `velocity`, `acceleration`, `jerk`, `torque`: each `{peak: [n], rms: [n], limit: [n] or None, used: the largest
        peak as a part of its limit, or None}`. None where the samples are too few or there is no torque.

    Raises:
        UnusableSamples: The arrays do not belong together or a value is not finite.
    """
    limit = np.asarray(max_velocity, dtype=float)
    v = rows("joint velocities", velocity, len(limit))
    found: dict[str, Any] = {"velocity": _use(v, limit), "acceleration": None, "jerk": None, "torque": None}
    if len(v) > 1:
        period, even = evenly(times, v)
        acceleration, jerk = derivatives(even, period)
        if len(acceleration):
            most = None if max_acceleration is None else np.full(len(limit), max_acceleration)
            found |= {"acceleration": _use(acceleration, most), "jerk": _use(jerk, None)}
    if torque is not None:
        most = None if max_torque is None else np.asarray(max_torque, dtype=float)
        known = known_rows("joint torques", torque, len(limit), len(v))
        found["torque"] = _use(known, most) if len(known) else None
    return found


def _use(values: Array, limit: Array | None) -> dict[str, Any]:
    peak = np.abs(values).max(axis=0)
    return {
        "peak": peak.tolist(),
        "rms": np.sqrt(np.mean(values**2, axis=0)).tolist(),
        "limit": None if limit is None else limit.tolist(),
        "used": None if limit is None else float((peak / limit).max()),
    }
