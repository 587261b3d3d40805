"""Recognizes freedrive, in which the joint targets follow the measured joints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simbridge.judging.delays import fit_lag
from simbridge.robot.pose import Array

# Smallest ratio of the time by which targets trail the joints to its standard deviation.
MIN_DEVIATIONS = 5.0
# Shortest time by which targets trail the joints in freedrive, s: half a cycle of an e-Series.
MIN_TRAIL_S = 0.001
# Longest time by which targets trail the joints in freedrive, s: a cycle of a CB3, and half of one.
MAX_TRAIL_S = 0.012


@dataclass(frozen=True)
class FreedriveEvidence:
    """The joint targets of an arm that is moved by hand.

    Attributes:
        trail_s: How long the joint targets trail the measured joints, s: one cycle.
        residual_rad: RMS difference that remains when that time is removed, rad.
    """

    trail_s: float
    residual_rad: float


def find_freedrive(
    times: Array, target: Array, actual: Array, acceleration: Array | None
) -> FreedriveEvidence | None:
    """Return how joint targets follow the joints; None if the joints follow the targets.

    Args:
        times: Instants of a motion (T,), s.
        target: Joint targets (T, n), rad.
        actual: Measured positions (T, n), rad.
        acceleration: Accelerations of the targets (T, n), rad/s^2, which are zero in freedrive;
            None if they were not recorded.
    """
    if acceleration is not None and np.any(acceleration):
        return None
    lag = fit_lag(times, actual, times, target)
    if lag is None or not MIN_TRAIL_S < lag.lag_s <= MAX_TRAIL_S:
        return None
    if lag.lag_s < MIN_DEVIATIONS * lag.uncertainty_s:
        return None
    return FreedriveEvidence(lag.lag_s, lag.remaining_rms_rad)
