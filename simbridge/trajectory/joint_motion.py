"""Joint positions between the samples of a recording."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from simbridge.robot.pose import Array


def interpolate_joints(times: Array, positions: Array, instants: ArrayLike) -> Array:
    """Return joint positions between samples, by cubic Hermite interpolation.

    At a sample the velocity is that of the parabola through it and its two neighbours, so that
    positions and velocities are continuous. At a sample's instant the result is the sample, bit for
    bit; before the first and after the last sample it is that sample.

    Args:
        times: Instants of the samples (T,), s, strictly increasing.
        positions: Joint positions (T, n), rad or m.
        instants: The instants (K,), s.

    Returns:
        Joint positions (K, n), rad or m.
    """
    clipped = np.clip(np.asarray(instants, dtype=float), times[0], times[-1])
    if len(times) == 1:
        return np.repeat(positions, len(clipped), axis=0)

    velocities = _velocities(times, positions)
    before = np.clip(np.searchsorted(times, clipped, side="right") - 1, 0, len(times) - 2)
    after = before + 1
    duration = (times[after] - times[before])[:, None]
    fraction = (clipped - times[before])[:, None] / duration

    # The Hermite polynomial: a smooth step between the positions, bent by the velocities at both
    # ends.
    blend = fraction**2 * (3.0 - 2.0 * fraction)
    start_bend = fraction * (1.0 - fraction) ** 2 * duration * velocities[before]
    end_bend = fraction**2 * (fraction - 1.0) * duration * velocities[after]
    between = positions[before] + blend * (positions[after] - positions[before])
    joints = between + start_bend + end_bend
    return np.where(fraction == 1.0, positions[after], joints)


def _velocities(times: Array, positions: Array) -> Array:
    """Return the velocities (T, n) at samples: of the parabola through three of them."""
    steps = np.diff(times)[:, None]
    slopes = np.diff(positions, axis=0) / steps
    if len(slopes) == 1:
        return np.repeat(slopes, 2, axis=0)

    inner = (steps[1:] * slopes[:-1] + steps[:-1] * slopes[1:]) / (steps[:-1] + steps[1:])
    # The parabolas of the first and of the last three samples, at their ends.
    first = 2.0 * slopes[0] - inner[0]
    last = 2.0 * slopes[-1] - inner[-1]
    return np.vstack([first, inner, last])
