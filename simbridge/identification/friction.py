"""Friction of joints, from what their currents have more than their torques ask for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simbridge.identification.data import FrictionResult
from simbridge.identification.robust import cauchy_weights, jackknife_variance
from simbridge.identification.target_motion import NotIdentified
from simbridge.robot.pose import Array

# Between rest and sliding friction is neither, rad/s.
MAX_REST_SPEED = 1e-4
MIN_SLIDING_SPEED = 0.01
# Rows in which a joint slides, and the range of its speeds in them, rad/s, at least.
MIN_SLIDING_ROWS = 30
MIN_SPEED_RANGE = 0.05

# Standard deviations that are accepted: absolute, A and A s/rad, ...
MAX_COULOMB_DEVIATION = 0.05
MAX_VISCOUS_DEVIATION = 0.1
# ... and what is added to them, relative to the friction.
MAX_COULOMB_FRACTION = 0.15
MAX_VISCOUS_FRACTION = 0.2
# Real friction is these two terms only to this fraction of the Coulomb friction, which short
# motions do not show.
TWO_TERMS_FRACTION = 0.05
# Fraction of a current's mean square that torque and friction must explain: real arms reach 0.999,
# noise 0.01.
MIN_EXPLAINED = 0.8
# Friction below zero by more deviations than this, and by more than rounding (A, A s/rad), is none.
NEGATIVE_DEVIATIONS = 3.0
ROUNDING = 1e-3

# Blocks of rows from which deviations are estimated.
BLOCKS = 8
# Rounds of reweighting.
ROUNDS = 15


class JointFriction(NamedTuple):
    """Friction of one joint.

    Attributes:
        values: Coulomb friction, A, and viscous friction, A s/rad (2,).
        deviation: One standard deviation of both (2,).
        is_explained: Whether torque and friction explain the current.
    """

    values: Array
    deviation: Array
    is_explained: bool

    @property
    def is_certain(self) -> bool:
        """True if the deviations are small enough for the values to be reported."""
        coulomb, viscous = np.abs(self.values)
        max_deviation = [
            MAX_COULOMB_DEVIATION + MAX_COULOMB_FRACTION * coulomb,
            MAX_VISCOUS_DEVIATION + MAX_VISCOUS_FRACTION * viscous,
        ]
        return bool((self.deviation < max_deviation).all())


def fit_friction(velocity: Array, moment: Array, current: Array) -> FrictionResult:
    """Fit friction as what a current has more than its torque.

    current = moment / K + coulomb sign(qd) + viscous qd

    Args:
        velocity: Joint velocities (T, n), rad/s.
        moment: target_moment (T, n), N m, with the rotors' inertia.
        current: Currents of the motors (T, n), A.

    Raises:
        NotIdentified: No joint moves fast enough, or at different enough speeds, or no current is
            torque and friction.
    """
    joints = velocity.shape[1]
    values = np.full((2, joints), np.nan)
    deviations = np.full((2, joints), np.nan)
    any_unexplained = False
    for j in range(joints):
        friction = _fit_joint(velocity[:, j], moment[:, j], current[:, j])
        if friction is None:
            continue
        if not friction.is_explained:
            any_unexplained = True
        elif friction.is_certain:
            values[:, j] = friction.values
            deviations[:, j] = friction.deviation

    if np.isnan(values).all():
        if any_unexplained:
            raise NotIdentified("the current does not match the joint torque and friction")
        raise NotIdentified(
            "no joint moves at enough different speeds to separate Coulomb from viscous friction"
        )
    return {
        "coulomb_a": _known_values(values[0]),
        "viscous_a_s_per_rad": _known_values(values[1]),
        "uncertainty": {
            "coulomb_a": _known_values(deviations[0]),
            "viscous_a_s_per_rad": _known_values(deviations[1]),
        },
    }


def _fit_joint(velocity: Array, moment: Array, current: Array) -> JointFriction | None:
    """Fit the friction of one joint; None if it does not move enough.

    The model is current = a moment + coulomb sign(velocity) + viscous velocity, in which both terms
    of friction count only while the joint slides.

    Args:
        velocity: Velocity of the joint (T,), rad/s.
        moment: Moment that the arm's model needs at the joint (T,), N m.
        current: Current of the joint's motor (T,), A.
    """
    speed = np.abs(velocity)
    slides = speed > MIN_SLIDING_SPEED
    if slides.sum() < MIN_SLIDING_ROWS or np.ptp(speed[slides]) < MIN_SPEED_RANGE:
        return None

    used = (speed < MAX_REST_SPEED) | slides
    coulomb, viscous = np.where(slides, [np.sign(velocity), velocity], 0.0)
    matrix = np.stack([moment, coulomb, viscous], axis=1)[used]
    target = current[used]
    solution = _solve_robustly(matrix, target)
    residual_square = float(np.mean((target - matrix @ solution) ** 2))

    # Standard deviations come from leaving out blocks of rows or, where all blocks agree, from the
    # residuals.
    blocks = np.array_split(np.arange(len(target)), BLOCKS)
    by_blocks = jackknife_variance(
        [
            _solve_robustly(np.delete(matrix, block, axis=0), np.delete(target, block))
            for block in blocks
        ]
    )
    covariance = np.linalg.pinv(matrix.T @ matrix, rcond=1e-18, hermitian=True)
    by_residuals = residual_square * np.diag(covariance)
    speed_range = np.ptp(speed[slides])
    model_error = TWO_TERMS_FRACTION * abs(solution[1]) * np.array([1.0, 1.0 / speed_range])
    deviation = np.sqrt(np.maximum(by_blocks, by_residuals)[1:] + model_error**2)

    values = solution[1:]
    leaves_much = residual_square > (1.0 - MIN_EXPLAINED) * np.mean(target**2)
    is_negative = (values < -NEGATIVE_DEVIATIONS * deviation - ROUNDING).any()
    return JointFriction(values, deviation, is_explained=not (leaves_much or is_negative))


def _solve_robustly(matrix: Array, target: Array) -> Array:
    """Return the solution (m,) of matrix (T, m) x = target (T,) with Cauchy weights."""
    weights = np.ones(len(target))
    for _ in range(ROUNDS):
        root = np.sqrt(weights)
        solution = np.linalg.lstsq(matrix * root[:, None], target * root, rcond=1e-9)[0]
        residuals = np.abs(target - matrix @ solution)
        weights = cauchy_weights(residuals, max(2.0 * float(np.median(residuals)), 1e-9))
    return np.asarray(solution, dtype=float)


def _known_values(values: Array) -> list[float | None]:
    """Return values of joints (n,), with None for NaN."""
    return [None if np.isnan(value) else float(value) for value in values]
