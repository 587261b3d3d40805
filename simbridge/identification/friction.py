"""Identifies the friction of joints from the motor currents that their torques do not explain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simbridge.identification.data import FrictionResult
from simbridge.identification.robust import cauchy_weights, jackknife_variance
from simbridge.identification.target_motion import NotIdentified
from simbridge.robot.pose import Array

# Speed up to which a joint is at rest, rad/s.
MAX_REST_SPEED = 1e-4
# Speed from which on a joint slides, rad/s. Rows between the two speeds are not used.
MIN_SLIDING_SPEED = 0.01
# Smallest number of rows in which a joint slides.
MIN_SLIDING_ROWS = 30
# Smallest range of speeds in these rows, rad/s.
MIN_SPEED_RANGE = 0.05

# Largest standard deviation of Coulomb friction that is reported: this, A, ...
MAX_COULOMB_DEVIATION = 0.05
# ... plus this fraction of the friction.
MAX_COULOMB_FRACTION = 0.15
# Largest standard deviation of viscous friction that is reported: this, A s/rad, ...
MAX_VISCOUS_DEVIATION = 0.1
# ... plus this fraction of the friction.
MAX_VISCOUS_FRACTION = 0.2
# Error of the model with two terms, as a fraction of the Coulomb friction: real friction is more
# complicated, which short motions do not show.
TWO_TERMS_FRACTION = 0.05
# Smallest fraction of a current's mean square that torque and friction must explain: real arms
# reach 0.999, noise 0.01.
MIN_EXPLAINED = 0.8
# Friction may be negative by this many standard deviations ...
NEGATIVE_DEVIATIONS = 3.0
# ... plus this rounding, A and A s/rad.
ROUNDING = 1e-3

# Number of blocks of rows from which deviations are estimated.
BLOCKS = 8
# Rounds of reweighting.
ROUNDS = 15
# Smallest residual that scales weights, A.
LEAST_RESIDUAL = 1e-9
# Singular values of the equations up to this fraction of the largest count as zero.
LEAST_SINGULAR_VALUE = 1e-9
# Eigenvalue of the normal equations up to which a direction is left out, relative to the largest.
LEAST_EIGENVALUE = 1e-18


class JointFriction(NamedTuple):
    """Friction of one joint.

    Attributes:
        values: Coulomb friction, A, and viscous friction, A s/rad (2,).
        deviation: One standard deviation of both (2,), in the same units.
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
    """Fit the friction of each joint to the current of its motor.

    The model is current = moment / K + coulomb sign(qd) + viscous qd, with the motor's torque
    constant K.

    Args:
        velocity: Joint velocities (T, n), rad/s.
        moment: target_moment (T, n), N m, with the rotors' inertia.
        current: Currents of the motors (T, n), A.

    Raises:
        NotIdentified: No joint moves fast enough and at different enough speeds, or torque and
            friction explain no joint's current.
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
    """Fit the friction of one joint.

    The model is current = a moment + coulomb sign(velocity) + viscous velocity, in which both terms
    of friction are zero while the joint is at rest.

    Args:
        velocity: Velocity of the joint (T,), rad/s.
        moment: Torque of the arm's model at the joint (T,), N m.
        current: Current of the joint's motor (T,), A.

    Returns:
        The friction; None if the joint does not move enough.
    """
    speed = np.abs(velocity)
    slides = speed > MIN_SLIDING_SPEED
    if slides.sum() < MIN_SLIDING_ROWS or np.ptp(speed[slides]) < MIN_SPEED_RANGE:
        return None

    used = (speed < MAX_REST_SPEED) | slides
    coulomb, viscous = np.where(slides, [np.sign(velocity), velocity], 0.0)
    matrix = np.stack([moment, coulomb, viscous], axis=1)[used]
    target = current[used]
    # The solution is a, the Coulomb friction and the viscous friction.
    solution = _solve_robustly(matrix, target)
    residual_square = float(np.mean((target - matrix @ solution) ** 2))

    # Estimate variances by leaving out blocks of rows, and from the residuals. The larger one
    # counts, and the error of the model with two terms is added.
    blocks = np.array_split(np.arange(len(target)), BLOCKS)
    by_blocks = jackknife_variance(
        [
            _solve_robustly(np.delete(matrix, block, axis=0), np.delete(target, block))
            for block in blocks
        ]
    )
    covariance = np.linalg.pinv(matrix.T @ matrix, rcond=LEAST_EIGENVALUE, hermitian=True)
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
        root_weights = np.sqrt(weights)
        weighted_matrix = matrix * root_weights[:, None]
        weighted_target = target * root_weights
        solution = np.linalg.lstsq(weighted_matrix, weighted_target, rcond=LEAST_SINGULAR_VALUE)[0]
        residuals = np.abs(target - matrix @ solution)
        weights = cauchy_weights(residuals, max(2.0 * float(np.median(residuals)), LEAST_RESIDUAL))
    return np.asarray(solution, dtype=float)


def _known_values(values: Array) -> list[float | None]:
    """Return values of joints (n,), with None for NaN."""
    return [None if np.isnan(value) else float(value) for value in values]
