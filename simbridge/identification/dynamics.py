"""Identifies the payload that a controller calculates with, from its target_moment.

target_moment holds the joint torques of the controller's model of the arm at its joint targets:
rigid links, the declared payload as a point mass, rotor inertias, and gravity of 9.82 m/s^2. The
torques are linear in the payload's mass, in its mass times centre of gravity, and in the rotor
inertias, so that these are found by least squares.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from simbridge.identification.data import Measured
from simbridge.identification.robust import jackknife_variance, spread_rows
from simbridge.identification.target_motion import NotIdentified
from simbridge.robot import pose
from simbridge.robot.kinematics import tool_poses
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# Gravity that UR's controllers calculate with, m/s^2.
GRAVITY = 9.82
# Direction of gravity in the base of an upright arm.
DOWN = np.array([0.0, 0.0, -1.0])

# Largest RMS difference of target_moment from the right model while the arm moves, N m; the right
# model leaves 0.02.
MAX_MISFIT = 0.05
# Largest RMS difference at rest, N m; the right model leaves 0.003.
MAX_MISFIT_AT_REST = 0.008
# Speed that no joint exceeds in a recording at rest, rad/s.
MAX_REST_SPEED = 0.01
# Largest number of rows that a fit uses.
MAX_FITTED_ROWS = 400
# Largest number of rows that a comparison of arms uses.
MAX_COMPARED_ROWS = 80
# Number of blocks of rows from which deviations are estimated.
BLOCKS = 8
# Number of rounds in which the inertia of the payload is adapted to its centre of gravity.
ROUNDS = 4

# Largest standard deviation of a mass that is reported, kg.
MAX_MASS_DEVIATION = 0.2
# Smallest standard deviation of a mass, kg: no mass is known better.
MIN_MASS_DEVIATION = 0.002
# Smallest mass of a payload whose centre of gravity is determined, kg.
MIN_CENTRED_MASS = 0.01
# Largest distance of a payload's centre of gravity from the last joint's frame, m.
MAX_CENTRE_DISTANCE = 1.0
# Smallest squared size of an unknown's column that is used as a divisor.
LEAST_SQUARED_SIZE = 1e-18
# Eigenvalue below which its direction is not determined, relative to the largest one.
MIN_EIGENVALUE = 1e-11
# Largest component of the first unknown along an undetermined direction with which it still counts
# as determined.
MAX_UNDETERMINED = 1e-3

# Smallest and largest plausible reading of an accelerometer at rest, m/s^2.
LEAST_GRAVITY = 0.8 * GRAVITY
LARGEST_GRAVITY = 1.2 * GRAVITY
# Smallest number of rows at rest for the direction of gravity.
MIN_STILL_ROWS = 10
# Tilt below which a base counts as upright, rad: accelerometers are not more accurate.
MIN_TILT = 0.15


class PayloadFit(NamedTuple):
    """The payload that fits a model of an arm best; fits are compared by their misfit first.

    Attributes:
        misfit: RMS difference of target_moment from the model, N m.
        mass: Mass of the payload, kg; NaN if other masses fit as well.
        deviation: One standard deviation of the mass, kg.
    """

    misfit: float
    mass: float
    deviation: float


class Regression(NamedTuple):
    """The joint torques of an arm, and how they depend on its unknown parameters.

    Attributes:
        arm: Torques of the arm without payload and rotors (T, n), N m.
        columns: Torques (T, n, 4 + n) per unit of each unknown: the payload's mass, kg, its mass
            times centre of gravity (3), kg m, and the rotor inertia of each joint (n), kg m^2.
        inertias: Torques (T, n, 6) per kg m^2 of the payload's rotational inertia, in pinocchio's
            order.
    """

    arm: Array
    columns: Array
    inertias: Array


def fit_payload(
    robot: Robot, *, q: Array, qd: Array, qdd: Array, moment: Array, gravity: Array | None
) -> tuple[Measured, float]:
    """Fit the payload that a controller calculates with.

    Args:
        robot: The arm without payload; with its calibration if that is known.
        q: Joint targets (T, n), rad.
        qd: Velocities of the targets (T, n), rad/s.
        qdd: Accelerations of the targets (T, n), rad/s^2.
        moment: target_moment (T, n), N m.
        gravity: Direction of gravity (3,) in base_link; None for an upright arm.

    Returns:
        The mass with its standard deviation, kg; and the RMS difference of target_moment from the
        model with that payload, N m.

    Raises:
        NotIdentified: The recording does not determine the mass, or is not of this arm.
    """
    rows = spread_rows(len(q), MAX_FITTED_ROWS)
    models = _models(robot, DOWN if gravity is None else gravity)
    fits = [
        _fit_model(model, q[rows], qd[rows], qdd[rows], moment=moment[rows]) for model in models
    ]
    best = min(fits)

    is_moving = np.abs(qd).max() > MAX_REST_SPEED
    if best.misfit > (MAX_MISFIT if is_moving else MAX_MISFIT_AT_REST):
        raise NotIdentified(
            f"target_moment differs by {best.misfit:.2g} N m RMS from the model of a "
            f"{robot.title or robot.name} with any payload: this is another arm, or its base is "
            "mounted at another angle"
        )

    # The controller may use either model, so the difference between their masses adds to the
    # uncertainty.
    differences = [fit.mass - best.mass for fit in fits]
    deviation = max(math.hypot(best.deviation, *differences), MIN_MASS_DEVIATION)
    if not deviation < MAX_MASS_DEVIATION:
        raise NotIdentified("these postures do not determine the payload's mass")
    return {"value": best.mass, "uncertainty": deviation}, best.misfit


def moment_misfit(robot: Robot, *, q: Array, qd: Array, qdd: Array, moment: Array) -> float:
    """Return the RMS difference of target_moment from the model of an upright arm, N m.

    The model has the payload that fits best.

    Args:
        robot: The arm without payload.
        q: Joint targets (T, n), rad.
        qd: Velocities of the targets (T, n), rad/s.
        qdd: Accelerations of the targets (T, n), rad/s^2.
        moment: target_moment (T, n), N m.
    """
    rows = spread_rows(len(q), MAX_COMPARED_ROWS)
    fits = [
        _fit_model(model, q[rows], qd[rows], qdd[rows], moment=moment[rows])
        for model in _models(robot, DOWN)
    ]
    return min(fit.misfit for fit in fits)


def _models(robot: Robot, down: Array) -> tuple[pin.Model, pin.Model]:
    """Return two models of an arm: with its links' inertia tensors, and with point masses instead.

    UR's controllers use the one or the other, depending on the type of arm.
    """
    model = robot.with_gravity(GRAVITY * down).model
    point_masses = model.copy()
    for i in range(1, model.njoints):
        body = model.inertias[i]
        point_masses.inertias[i] = pin.Inertia(body.mass, body.lever, np.zeros((3, 3)))
    return model, point_masses


def _fit_model(model: pin.Model, q: Array, qd: Array, qdd: Array, *, moment: Array) -> PayloadFit:
    """Fit the payload to one model of the arm; see `fit_payload`."""
    # The normal equations of each block of rows.
    arm, columns, inertias = _regression(model, q, qd, qdd)
    blocks = np.array_split(np.arange(len(q)), min(BLOCKS, len(q)))
    normals = [np.einsum("rjk,rjl->kl", columns[block], columns[block]) for block in blocks]

    target = moment - arm
    for _ in range(ROUNDS):
        sums = [np.einsum("rjk,rj->k", columns[block], target[block]) for block in blocks]
        solution, is_determined = _solve_normal(np.sum(normals, axis=0), np.sum(sums, axis=0))
        # A point mass has an inertia about the joint's frame, which is not linear in the unknowns.
        target = moment - arm - inertias @ _point_inertia(solution)

    # The masses without each block in turn, whose scatter gives the standard deviation.
    normal_sum = np.sum(normals, axis=0)
    target_sum = np.sum(sums, axis=0)
    masses = [
        _solve_normal(normal_sum - normal, target_sum - block_sum)[0][0]
        for normal, block_sum in zip(normals, sums, strict=True)
    ]
    misfit = float(np.sqrt(np.mean((target - columns @ solution) ** 2)))
    mass = float(solution[0]) if is_determined else math.nan
    return PayloadFit(misfit, mass, float(np.sqrt(jackknife_variance(masses))))


def _regression(model: pin.Model, q: Array, qd: Array, qdd: Array) -> Regression:
    """Return the torques of a model at joint targets (T, n), and their derivatives."""
    data = model.createData()
    samples = list(zip(q, qd, qdd, strict=True))
    arm = np.array([pin.rnea(model, data, *sample) for sample in samples])
    # Torques per unit of the ten inertial parameters of the last link, which carries the payload:
    # mass, mass times centre of gravity (3), and rotational inertia (6).
    last_body = np.array(
        [pin.computeJointTorqueRegressor(model, data, *sample)[:, -10:] for sample in samples]
    )

    joints = q.shape[1]
    numbers = np.arange(joints)
    rotors = np.zeros((len(q), joints, joints))
    rotors[:, numbers, numbers] = qdd
    columns = np.concatenate([last_body[:, :, :4], rotors], axis=2)
    return Regression(arm, columns, last_body[:, :, 4:])


def _point_inertia(solution: Array) -> Array:
    """Return the rotational inertia (6,) of the payload about the last joint's frame, kg m^2.

    The payload is a point mass.

    Args:
        solution: The unknowns (4 + n,) in the order of `Regression.columns`.

    Returns:
        The inertia in pinocchio's order.
    """
    center = np.zeros(3)
    if abs(solution[0]) > MIN_CENTRED_MASS:
        center = solution[1:4] / solution[0]
    if not np.linalg.norm(center) < MAX_CENTRE_DISTANCE:
        center = np.zeros(3)
    payload = pin.Inertia(abs(solution[0]), center, np.zeros((3, 3)))
    inertia: Array = payload.toDynamicParameters()[4:]
    return inertia


def _solve_normal(normal: Array, target: Array) -> tuple[Array, bool]:
    """Solve normal equations (k, k), leaving out the directions that they do not determine.

    Returns:
        The solution (k,), and whether the equations determine its first element.
    """
    size = np.sqrt(np.maximum(np.diag(normal), LEAST_SQUARED_SIZE))
    values, directions = np.linalg.eigh(normal / np.outer(size, size))
    kept = values > MIN_EIGENVALUE * values[-1]
    inverse = (directions[:, kept] / values[kept]) @ directions[:, kept].T
    undetermined = np.abs(directions[0, ~kept]).max(initial=0.0)
    return inverse @ (target / size) / size, bool(undetermined < MAX_UNDETERMINED)


def gravity_direction(
    robot: Robot, q: Array, still: Array, accelerometer: Array | None
) -> Array | None:
    """Return the direction of gravity (3,) in the base of a tilted arm.

    At rest actual_tool_accelerometer reads -R^T g, with R the rotation of the flange's frame.

    Args:
        robot: The arm.
        q: Joint positions (T, n), rad.
        still: Whether the arm is at rest in each row (T,).
        accelerometer: actual_tool_accelerometer (T, 3), m/s^2; None if it was not recorded.

    Returns:
        The unit vector in base_link; None if the arm is upright, or the recording does not show it.
    """
    if accelerometer is None or still.sum() < MIN_STILL_ROWS:
        return None

    placements = [joint.placement.homogeneous for joint in robot.joints]
    chain = np.array([*placements, robot.tool0.homogeneous])
    flange = tool_poses(chain, robot.prismatic, q[still])
    gravity = -np.mean(pose.rotate(flange[:, 3:], accelerometer[still]), axis=0)
    size = float(np.linalg.norm(gravity))
    if not LEAST_GRAVITY < size < LARGEST_GRAVITY:
        return None

    tilt = np.arccos(np.clip(-gravity[2] / size, -1.0, 1.0))
    return None if tilt < MIN_TILT else gravity / size
