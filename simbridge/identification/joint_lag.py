"""Identifies the lag with which joints follow their targets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simbridge.identification.data import JointLag, JointServoResult
from simbridge.identification.robust import cauchy_weights, jackknife_variance
from simbridge.identification.target_motion import NotIdentified
from simbridge.robot.pose import Array, Flags

# Speed that a joint must exceed at some time to show its lag, rad/s.
MIN_SPEED = 0.05
# Largest standard deviation of a lag that is reported, s.
MAX_DEVIATION_S = 1e-4
# Number of blocks of rows from which deviations are estimated.
BLOCKS = 10
# Largest number of rounds of reweighting.
MAX_ROUNDS = 30
# Change of the lag below which the rounds end, s.
CONVERGED_S = 1e-9
# Smallest sum of squared velocities that is used as a divisor, rad^2/s^2.
LEAST_SQUARE_SUM = 1e-30
# Smallest residual that scales weights, rad.
LEAST_RESIDUAL = 1e-12


class CommonLag(NamedTuple):
    """The lag of all joints behind their targets.

    Attributes:
        lag: The lag, s.
        deviation: One standard deviation of the lag, s.
        residual_rms: RMS distance of all joints from their targets once the lag is removed, rad.
    """

    lag: float
    deviation: float
    residual_rms: float


def fit_common_lag(target: Array, velocity: Array, actual: Array) -> CommonLag:
    """Fit one lag with which all joints follow their targets: target - actual = lag * velocity.

    Args:
        target: Joint targets (T, n), rad.
        velocity: Velocities of the targets (T, n), rad/s.
        actual: Joint positions (T, n), rad.

    Raises:
        NotIdentified: The joints move too little, or do not follow their targets with a lag.
    """
    is_fast = _fast_joints(velocity)
    if not is_fast.any():
        raise NotIdentified(f"no joint moves faster than {MIN_SPEED} rad/s")

    distance = target - actual
    lag, deviation = _fit_lag(velocity[:, is_fast], distance[:, is_fast])
    if deviation > MAX_DEVIATION_S:
        raise NotIdentified(
            f"this motion determines the lag only to within {1e3 * deviation:.2g} ms (the "
            f"estimate is {1e3 * lag:.2g} ms)"
        )
    residual_rms = float(np.sqrt(np.mean((distance - lag * velocity) ** 2)))
    return CommonLag(lag, deviation, residual_rms)


def fit_joint_servo(target: Array, velocity: Array, actual: Array) -> JointServoResult:
    """Fit the lag with which joints follow their targets: of all joints together, and of each.

    Args:
        target: Joint targets (T, n), rad.
        velocity: Velocities of the targets (T, n), rad/s.
        actual: Joint positions (T, n), rad.

    Raises:
        NotIdentified: The joints move too little, or do not follow their targets with a lag.
    """
    common = fit_common_lag(target, velocity, actual)
    is_fast = _fast_joints(velocity)
    distance = target - actual

    # Fit each joint alone. The residual is what its lag does not explain, or the whole distance if
    # its lag is not known.
    joints: list[JointLag] = []
    distance_rms = np.sqrt(np.mean(distance**2, axis=0))
    for j, rms in enumerate(distance_rms):
        joint_lag: float | None = None
        residual_rms = rms
        if is_fast[j]:
            candidate, uncertainty = _fit_lag(velocity[:, [j]], distance[:, [j]])
            if uncertainty < MAX_DEVIATION_S:
                joint_lag = candidate
                residual = distance[:, j] - candidate * velocity[:, j]
                residual_rms = np.sqrt(np.mean(residual**2))
        joints.append({"lag_s": joint_lag, "residual_rad": {"rms": float(residual_rms)}})

    return {
        "lag_s": common.lag,
        "uncertainty": {"lag_s": common.deviation},
        "residual_rad": {"rms": common.residual_rms},
        "per_joint": joints,
    }


def _fast_joints(velocity: Array) -> Flags:
    """Return which joints (n,) are at some time fast enough to show their lag."""
    return np.asarray(np.abs(velocity).max(axis=0) > MIN_SPEED)


def _fit_lag(velocity: Array, distance: Array) -> tuple[float, float]:
    """Return the lag that explains the distances from the targets, s, and its standard deviation.

    Args:
        velocity: Velocities of the targets (T, m), rad/s.
        distance: Targets minus positions (T, m), rad.
    """
    lag = _divide_robustly(distance, velocity)
    rows = np.arange(len(velocity))
    blocks = [block for block in np.array_split(rows, BLOCKS) if len(block)]
    lags = [
        _divide_robustly(
            np.delete(distance, block, axis=0), np.delete(velocity, block, axis=0), start=lag
        )
        for block in blocks
    ]
    return lag, float(np.sqrt(jackknife_variance(lags)))


def _divide_robustly(distance: Array, velocity: Array, start: float | None = None) -> float:
    """Return the ratio of distance to velocity, s, by least squares with Cauchy weights.

    Args:
        distance: Targets minus positions (T, m), rad.
        velocity: Velocities of the targets (T, m), rad/s.
        start: Lag whose residuals give the first weights, s; None for equal first weights.
    """
    weights = np.ones_like(distance)
    if start is not None:
        weights = _residual_weights(distance - start * velocity)

    lag = np.inf
    for _ in range(MAX_ROUNDS):
        lag_before = lag
        numerator = (weights * velocity * distance).sum()
        denominator = max((weights * velocity**2).sum(), LEAST_SQUARE_SUM)
        lag = float(numerator / denominator)
        if abs(lag - lag_before) < CONVERGED_S:
            break
        weights = _residual_weights(distance - lag * velocity)
    return lag


def _residual_weights(residuals: Array) -> Array:
    """Return Cauchy weights, scaled by twice the median magnitude of the residuals."""
    size = np.abs(residuals)
    return cauchy_weights(size, max(2.0 * float(np.median(size)), LEAST_RESIDUAL))
