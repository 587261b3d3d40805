"""How smooth a motion is, from its speed: spectral arc length (SPARC) and log dimensionless jerk (LDLJ).

S. Balasubramanian, A. Melendez-Calderon, A. Roby-Brami and E. Burdet, On the analysis of movement smoothness, 2015.
Both are negative; closer to zero is smoother. Neither depends on how far or how fast a motion goes. LDLJ is dominated
by noise; SPARC ignores what is above its cut-off frequency. Compare motions of the same shape and length only.
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
# The spectrum has 2^4 times the points that the samples need, so that the length of its curve is resolved.
PADDING = 4
# Most points of one transform, which bounds the memory: an hour at 500 Hz takes 2^25 points in all.
BLOCK = 1 << 21
# m/s or rad/s: a motion that never exceeds it is at rest, and the smoothness of its noise means nothing.
MIN_SPEED = 1e-3


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
        raise InvalidParameter("cut-off", f"{cutoff} Hz", f"above 0 and at most half the rate, {0.5 * rate:g} Hz")
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
        "joints": {"sparc": [joint["sparc"] for joint in joints], "ldlj": [joint["ldlj"] for joint in joints]},
    }


def _smoothness(velocity: Array, rate: float) -> ToolSmoothness:
    speed = np.abs(velocity)
    if speed.max() < MIN_SPEED:
        return {"sparc": None, "ldlj": None}
    # LDLJ takes the signed velocity: the speed of a joint that reverses has a corner, whose jerk depends on the rate.
    return {"sparc": sparc(speed, rate, cutoff=min(CUTOFF, 0.5 * rate)), "ldlj": ldlj(velocity, rate)}


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
    while size // hands > BLOCK and size // (2 * hands) >= count:
        hands *= 2
    total = np.zeros(count, dtype=complex)
    for hand in range(hands):
        part = np.fft.rfft(values[hand::hands], size // hands)
        # Of a real signal only half the transform is kept; the rest is its mirror image.
        whole = np.concatenate([part, np.conj(part[-2:0:-1])]) if count > len(part) else part
        total += whole[:count] * np.exp(-2j * np.pi * hand / size * np.arange(count))
    return total
