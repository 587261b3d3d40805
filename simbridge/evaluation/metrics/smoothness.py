"""Smoothness of a motion: spectral arc length and log dimensionless jerk of its speed.

They are SPARC and LDLJ of S. Balasubramanian, A. Melendez-Calderon, A. Roby-Brami and E. Burdet, On
the analysis of movement smoothness, 2015. Both are negative; closer to zero is smoother. Neither
depends on how far or how fast a motion goes. LDLJ is dominated by noise; SPARC ignores what is
above its cut-off frequency. Compare motions of the same shape and length only.
"""

from __future__ import annotations

import math
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.errors import InvalidParameter
from simbridge.evaluation.metrics.samples import column, resample_uniform, rows, stamps
from simbridge.robot.pose import Array

# Cut-off frequency of SPARC, Hz.
CUTOFF = 10.0
# The tail of the spectrum below this part of its maximum does not count.
MIN_AMPLITUDE = 0.05
# The spectrum has 2^4 times the points that the samples need, so that the length of its curve is
# resolved.
PADDING_EXPONENT = 4
# Most points of one transform, which bounds the memory: an hour at 500 Hz takes 2^25 points in all.
MAX_TRANSFORM_POINTS = 1 << 21
# m/s or rad/s: a motion that never exceeds it is at rest, and the smoothness of its noise means
# nothing.
MIN_SPEED = 1e-3
# Fewest samples with a second difference.
MIN_SAMPLES = 3


class ToolSmoothness(TypedDict):
    """SPARC and LDLJ of one speed; None if it cannot be determined, as at rest."""

    sparc: float | None
    ldlj: float | None


class JointSmoothness(TypedDict):
    """SPARC and LDLJ of the velocities of n joints."""

    sparc: list[float | None]
    ldlj: list[float | None]


class Smoothness(TypedDict):
    """SPARC and LDLJ of the tool's speed and of the joint velocities."""

    tool: ToolSmoothness
    joints: JointSmoothness


def smoothness_summary(times: ArrayLike, positions: ArrayLike, velocity: ArrayLike) -> Smoothness:
    """Return SPARC and LDLJ of the speed of the tool and of every joint.

    Args:
        times: Strictly increasing stamps (T,), s.
        positions: Positions of the tool (T, 3), m; its speed is their central difference.
        velocity: Measured joint velocities (T, n), rad/s (m/s for sliding joints).
    """
    t = stamps("times", times)
    x = rows("attained positions", positions, 3, len(t))
    v = np.asarray(velocity, dtype=float)

    tool: ToolSmoothness
    joints: list[ToolSmoothness]
    if len(t) < MIN_SAMPLES:
        tool = {"sparc": None, "ldlj": None}
        joints = [tool] * v.shape[1]
    else:
        period, uniform_positions = resample_uniform(t, x)
        tool_speed = np.linalg.norm(np.gradient(uniform_positions, period, axis=0), axis=1)
        _, uniform_velocity = resample_uniform(t, v)
        tool = _smoothness(tool_speed, 1.0 / period)
        joints = [_smoothness(joint, 1.0 / period) for joint in uniform_velocity.T]

    return {
        "tool": tool,
        "joints": {
            "sparc": [joint["sparc"] for joint in joints],
            "ldlj": [joint["ldlj"] for joint in joints],
        },
    }


def _smoothness(velocity: Array, rate: float) -> ToolSmoothness:
    """Return SPARC and LDLJ of a velocity (T,), sampled uniformly at a rate, Hz."""
    speed = np.abs(velocity)
    if speed.max() < MIN_SPEED:
        return {"sparc": None, "ldlj": None}
    # LDLJ takes the signed velocity: the speed of a joint that reverses has a corner, whose jerk
    # depends on the rate.
    return {
        "sparc": sparc(speed, rate, cutoff=min(CUTOFF, 0.5 * rate)),
        "ldlj": ldlj(velocity, rate),
    }


def sparc(speed: ArrayLike, rate: float, *, cutoff: float = CUTOFF) -> float | None:
    """Return the spectral arc length of a speed: -integral_0^wc sqrt((1/wc)^2 + (dV/dw)^2) dw.

    V is the spectrum of the speed over its maximum; wc is the last frequency up to the cut-off at
    which V is at least 0.05.

    Args:
        speed: The speed (T,), 0 or more, sampled uniformly.
        rate: Sampling rate, Hz.
        cutoff: Highest frequency that counts, Hz.

    Returns:
        A negative number without unit, or None for fewer than 3 samples, for no motion, or if all
        content is below the resolution of the spectrum.

    Raises:
        InvalidParameter: Rate or cut-off is not positive, or the cut-off beyond half the rate.
    """
    v = _check_speeds(speed, rate)
    if not 0.0 < cutoff <= 0.5 * rate:
        needed = f"above 0 and at most half the rate, {0.5 * rate:g} Hz"
        raise InvalidParameter("cut-off", f"{cutoff} Hz", needed)
    if len(v) < MIN_SAMPLES or not v.any():
        return None

    # The number of values with padding: the next power of two, doubled PADDING_EXPONENT times.
    size = 1 << (math.ceil(math.log2(len(v))) + PADDING_EXPONENT)
    count = int(cutoff * size / rate) + 1
    amplitude = np.abs(_spectrum(v, size, count))
    # A speed is never negative, so its spectrum is largest at zero.
    amplitude /= amplitude[0]

    last = int(np.flatnonzero(amplitude >= MIN_AMPLITUDE)[-1])
    if last == 0:
        return None
    return -float(np.hypot(1.0 / last, np.diff(amplitude[: last + 1])).sum())


def ldlj(speed: ArrayLike, rate: float) -> float | None:
    """Return the log dimensionless jerk of a speed: -ln[(T^3 / v_peak^2) integral (d2v/dt2)^2 dt].

    The derivative is a second difference. Differences amplify the sensor's noise, the more the
    higher the rate.

    Args:
        speed: The speed (T,), sampled uniformly, and signed if the motion reverses.
        rate: Sampling rate, Hz.

    Returns:
        None for fewer than 3 samples or a constant rate of change (no jerk at all).

    Raises:
        InvalidParameter: The rate is not positive.
    """
    v = _check_speeds(speed, rate)
    if len(v) < MIN_SAMPLES:
        return None

    duration = len(v) / rate
    peak = float(np.abs(v).max())
    jerk = np.diff(v, 2) * rate**2
    integral = float((jerk**2).sum()) / rate
    if integral == 0.0:
        return None
    return -math.log(duration**3 / peak**2 * integral)


def _check_speeds(speed: ArrayLike, rate: float) -> Array:
    """Return the speeds as finite numbers (T,).

    Raises:
        InvalidParameter: The rate is not positive.
    """
    if not (math.isfinite(rate) and rate > 0.0):
        raise InvalidParameter("rate", f"{rate} Hz", "positive")
    return column("speeds", speed)


def _spectrum(values: Array, size: int, count: int) -> NDArray[np.complex128]:
    """Return the first points of the Fourier transform of values, padded with zeros.

    The samples are split into several short transforms (the first step of Cooley and Tukey): few
    points are needed, and one long transform would take much memory.

    Args:
        values: The values (T,).
        size: Number of values with the padding, a power of two.
        count: Number of points.
    """
    # As many short transforms as the memory demands, but none with fewer points than are needed.
    transforms = 1
    while size // transforms > MAX_TRANSFORM_POINTS and size // (2 * transforms) >= count:
        transforms *= 2

    total = np.zeros(count, dtype=complex)
    for offset in range(transforms):
        transform = np.fft.rfft(values[offset::transforms], size // transforms)
        if count > len(transform):
            # Only half the transform is kept: that of a real signal is symmetric.
            transform = np.concatenate([transform, np.conj(transform[-2:0:-1])])
        # The samples of this transform come later than those of the first, by their offset.
        phase = np.exp(-2j * np.pi * offset / size * np.arange(count))
        total += transform[:count] * phase
    return total
