"""By how much the joints trail the controller's joint targets: the joint servo behind servoj's law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simbridge.evaluation.identification.servoj import NotIdentified
from simbridge.robot.pose import Array

# A joint that is never faster than this (rad/s) does not show its lag.
MIN_SPEED = 0.05
# One standard deviation of a lag that is still given, s.
MAX_DEVIATION = 1e-4
_BLOCKS, _ROUNDS = 10, 30
# Change of a lag in one round after which no other follows, s.
_CONVERGED = 1e-9


@dataclass(frozen=True, eq=False)
class JointServo:
    """A pure delay from target_q to actual_q.

    Attributes:
        lag: Of all joints together, s.
        deviation: One standard deviation of it, s.
        residual: RMS of what is left between target and actual with the lag removed, rad.
        joints: Lag of each joint (n,), s; nan where it moved too little.
        joint_residuals: The same RMS for each joint with its own lag (n,), rad; without one where it has none.
    """

    lag: float
    deviation: float
    residual: float
    joints: Array
    joint_residuals: Array


def fit_joint_servo(target: Array, velocity: Array, actual: Array) -> JointServo:
    """The lag with which actual joints follow their targets.

    Args:
        target, velocity: The controller's (T, n), rad and rad/s.
        actual: Measured positions (T, n), rad.

    Raises:
        NotIdentified: The joints move too little, or do not follow their targets by a delay.
    """
    fast = np.abs(velocity).max(axis=0) > MIN_SPEED
    if not fast.any():
        raise NotIdentified(f"no joint moves faster than {MIN_SPEED} rad/s")
    behind = target - actual
    lag, deviation = _delay(velocity[:, fast], behind[:, fast])
    if deviation > MAX_DEVIATION:
        raise NotIdentified(
            f"the lag is only determined to {1e3 * deviation:.2g} ms by this motion (it would be {1e3 * lag:.2g} ms)"
        )
    joints, residuals = np.full(target.shape[1], np.nan), np.sqrt(np.mean(behind**2, axis=0))
    for j in np.flatnonzero(fast):
        own, uncertain = _delay(velocity[:, [j]], behind[:, [j]])
        if uncertain < MAX_DEVIATION:
            joints[j] = own
            residuals[j] = np.sqrt(np.mean((behind[:, j] - own * velocity[:, j]) ** 2))
    left = behind - lag * velocity
    return JointServo(lag, deviation, float(np.sqrt(np.mean(left**2))), joints, residuals)


def _delay(velocity: Array, behind: Array) -> tuple[float, float]:
    """The delay (s) that explains by how much joints are behind (rad), and one standard deviation.

    The deviation is from blocks of rows that are left out in turn: what is left over is friction and load, which last.
    """
    lag = _robust_ratio(velocity, behind)
    blocks = [part for part in np.array_split(np.arange(len(velocity)), _BLOCKS) if len(part)]
    others = [_robust_ratio(np.delete(velocity, part, axis=0), np.delete(behind, part, axis=0), lag) for part in blocks]
    spread = np.array(others) - np.mean(others)
    return lag, float(np.sqrt((len(blocks) - 1) / len(blocks) * np.sum(spread**2)))


def _robust_ratio(velocity: Array, behind: Array, start: float | None = None) -> float:
    """The delay (s) with Cauchy weights; `start`: a delay near it."""
    weights = np.ones_like(behind) if start is None else _weights(behind - start * velocity)
    lag = np.inf
    for _ in range(_ROUNDS):
        before, lag = lag, float((weights * velocity * behind).sum() / max((weights * velocity**2).sum(), 1e-30))
        if abs(lag - before) < _CONVERGED:
            break
        weights = _weights(behind - lag * velocity)
    return lag


def _weights(left: Array) -> Array:
    left = np.abs(left)
    return np.asarray(1.0 / (1.0 + (left / max(2.0 * float(np.median(left)), 1e-12)) ** 2))
