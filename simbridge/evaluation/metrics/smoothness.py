"""How smooth a motion is, from its speed: spectral arc length (SPARC) and log dimensionless jerk (LDLJ).

S. Balasubramanian, A. Melendez-Calderon, A. Roby-Brami and E. Burdet, On the analysis of movement smoothness, 2015.
Both are negative, and nearer to zero the smoother. Neither knows how far or how fast a motion goes; LDLJ knows noise
above all, SPARC only what is below its cut-off. Numbers compare motions of one shape and length, not a square with a
line.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.errors import InvalidParameter
from simbridge.evaluation.metrics.samples import rows
from simbridge.robot.pose import Array

CUTOFF = 10.0
"""Hz; faster content does not count in SPARC."""

MIN_AMPLITUDE = 0.05
"""Part of the spectrum's maximum below which its tail does not count."""

PADDING = 4
"""The spectrum has 2^4 times the points that the samples need, so that its length is that of a curve."""

BLOCK = 1 << 21
"""A transform is of at most so many points, which bounds the memory: an hour at 500 Hz takes 2^25 in all."""


def sparc(speed: ArrayLike, rate: float, *, cutoff: float = CUTOFF) -> float | None:
    """Spectral arc length: -integral_0^wc sqrt((1/wc)^2 + (dV/dw)^2) dw, V the spectrum of the speed over its maximum.

    wc is the last frequency up to the cut-off at which V is at least 0.05.

    Args:
        speed: Evenly sampled speeds (T,), 0 or more, in any unit.
        rate: Samples a second, Hz.
        cutoff: Hz.

    Returns:
        A negative number without unit, or None for fewer than 3 samples, no motion, or one whose content is all below
        the spectrum's resolution.

    Raises:
        UnusableSamples: A speed is not finite.
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

    Args:
        speed: Evenly sampled speeds (T,), in any unit; signed, where the motion turns back. Differences amplify noise:
            it is the sensor's as well as the motion's, and grows with the rate.
        rate: Samples a second, Hz.

    Returns:
        A number without unit, or None for fewer than 3 samples or a constant rate of change (no jerk at all).

    Raises:
        UnusableSamples: A speed is not finite.
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


def _speeds(speed: ArrayLike, rate: float) -> Array:
    if not (math.isfinite(rate) and rate > 0.0):
        raise InvalidParameter("rate", f"{rate} Hz", "positive")
    return rows("speeds", np.asarray(speed, dtype=float)[..., None], 1)[:, 0]


def _spectrum(values: Array, size: int, count: int) -> NDArray[np.complex128]:
    """The first `count` points of the Fourier transform of values (T,) padded to `size`, a power of two.

    The samples are dealt out to several short transforms (the first step of Cooley and Tukey), for the points that are
    needed are few and the long transform would be large.
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
