"""Payload and friction from what a controller computes: target_moment and target_current.

target_moment is the controller's own model of the arm (rigid links, the declared payload as a point mass, rotor
inertias; gravity 9.82 m/s^2) at its joint targets. It is linear in the payload's mass, in mass times centre of gravity,
and in the rotor inertias.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from simbridge.evaluation.identification.servoj import NotIdentified
from simbridge.robot import pose
from simbridge.robot.kinematics import tool_poses
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# What UR's controllers calculate with, m/s^2.
GRAVITY = 9.82
_ROWS, _COMPARED, _BLOCKS, _ROUNDS = 400, 80, 8, 4
# Standard deviation of a mass that is still given, kg.
_UNCERTAIN = 0.2
# No mass is known better, kg.
_LEAST_DEVIATION = 0.002
# What may be left of target_moment, RMS, N m: the right model leaves 0.02 and 0.003.
MISFIT, MISFIT_AT_REST = 0.05, 0.008
# A base that is tilted by less is upright: accelerometers are not better, rad.
_TILT = 0.15
# Between rest and this speed (rad/s) friction is neither.
_STILL, _SLIDING = 1e-4, 0.01
# Standard deviations of friction that are still given: A and A s/rad, absolute and relative.
_COULOMB, _VISCOUS = (0.05, 0.15), (0.1, 0.2)
# Real friction is these two terms only to this share of the Coulomb friction, which short motions do not show.
_TWO_TERMS = 0.05
# Share of a current's mean square that torque and friction must explain: real arms reach 0.999, noise 0.01.
_EXPLAINED = 0.8
# Friction below zero by more deviations than this, and by more than rounding (A, A s/rad), is none.
_NEGATIVE, _ROUNDED = 3.0, 1e-3


@dataclass(frozen=True, eq=False)
class Payload:
    """A mass at the flange that the controller knows of.

    Attributes:
        mass: kg.
        deviation: One standard deviation of it, kg.
        misfit: What it leaves of target_moment, RMS, N m.
    """

    mass: float
    deviation: float
    misfit: float


def fit_payload(robot: Robot, q: Array, qd: Array, qdd: Array, moment: Array, gravity: Array | None) -> Payload:
    """The payload that a controller calculates with.

    Args:
        robot: The arm without payload; with its own kinematics if they are known.
        q, qd, qdd: Joint targets (T, n), rad, rad/s and rad/s^2.
        moment: target_moment (T, n), N m.
        gravity: Its direction (3,) in base_link; None: upright.

    Raises:
        NotIdentified: The recording does not determine the mass, or is not of this arm.
    """
    down = np.array([0.0, 0.0, -1.0]) if gravity is None else gravity
    fits = [_misfit(model, *_some(_ROWS, q, qd, qdd, moment)) for model in _models(robot, down)]
    misfit, mass, deviation = min(fits)
    if misfit > (MISFIT if np.abs(qd).max() > 0.01 else MISFIT_AT_REST):
        raise NotIdentified(
            f"target_moment differs by {misfit:.2g} N m RMS from the model of a {robot.title or robot.name} with any "
            "payload: this is another arm, or its base is mounted at another angle"
        )
    # The other model is as plausible where both fit.
    deviation = max(math.hypot(deviation, *(m - mass for _, m, _ in fits)), _LEAST_DEVIATION)
    if not deviation < _UNCERTAIN:
        raise NotIdentified("these postures do not determine the payload's mass")
    return Payload(mass, deviation, misfit)


def moment_misfit(robot: Robot, q: Array, qd: Array, qdd: Array, moment: Array) -> float:
    """What the model of an arm, upright, with the payload that fits best leaves of target_moment, RMS, N m."""
    down = np.array([0.0, 0.0, -1.0])
    return min(_misfit(model, *_some(_COMPARED, q, qd, qdd, moment))[0] for model in _models(robot, down))


def _some(most: int, *columns: Array) -> list[Array]:
    """At most so many rows, spread over all."""
    count = len(columns[0])
    rows = np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))
    return [column[rows] for column in columns]


def _models(robot: Robot, down: Array) -> tuple[pin.Model, pin.Model]:
    """UR's models differ: some have the links' inertia tensors, some only point masses."""
    model = robot.with_gravity(GRAVITY * down).model
    return model, _of_point_masses(model)


def _of_point_masses(model: pin.Model) -> pin.Model:
    point = model.copy()
    for i in range(1, model.njoints):
        body = model.inertias[i]
        point.inertias[i] = pin.Inertia(body.mass, body.lever, np.zeros((3, 3)))
    return point


def _torques(model: pin.Model, q: Array, qd: Array, qdd: Array) -> tuple[Array, Array, Array]:
    """Torques of the arm alone (T, n), N m; per kg and kg m of payload and kg m^2 of rotors (T, n, 4 + n); and
    per kg m^2 of the payload's inertia (T, n, 6), in pinocchio's order.
    """
    data, n = model.createData(), q.shape[1]
    arm = np.array([pin.rnea(model, data, *sample) for sample in zip(q, qd, qdd, strict=True)])
    last = np.array([pin.computeJointTorqueRegressor(model, data, *s)[:, -10:] for s in zip(q, qd, qdd, strict=True)])
    rotors = np.zeros((len(q), n, n))
    rotors[:, np.arange(n), np.arange(n)] = qdd
    return arm, np.concatenate([last[:, :, :4], rotors], axis=2), last[:, :, 4:]


def _misfit(model: pin.Model, q: Array, qd: Array, qdd: Array, moment: Array) -> tuple[float, float, float]:
    """What the model with the best payload leaves, RMS, N m; the payload's mass and its standard deviation, kg.

    The deviation is from blocks of rows that are left out in turn. The mass is nan where others fit as well.
    """
    arm, columns, inertias = _torques(model, q, qd, qdd)
    parts = np.array_split(np.arange(len(q)), min(_BLOCKS, len(q)))
    normals = [np.einsum("rjk,rjl->kl", columns[part], columns[part]) for part in parts]
    right = moment - arm
    for _ in range(_ROUNDS):
        sums = [np.einsum("rjk,rj->k", columns[part], right[part]) for part in parts]
        found, seen = _solved(np.sum(normals, axis=0), np.sum(sums, axis=0))
        # A point mass has an inertia about the joint's frame, which is not linear in the unknowns.
        center = found[1:4] / found[0] if abs(found[0]) > 0.01 else np.zeros(3)
        center = center if np.linalg.norm(center) < 1.0 else np.zeros(3)
        inertia = pin.Inertia(abs(found[0]), center, np.zeros((3, 3))).toDynamicParameters()[4:]
        right = moment - arm - inertias @ inertia
    whole, total = np.sum(normals, axis=0), np.sum(sums, axis=0)
    others = np.array([_solved(whole - n, total - s)[0][0] for n, s in zip(normals, sums, strict=True)])
    deviation = float(np.sqrt((len(parts) - 1) / len(parts) * np.sum((others - others.mean()) ** 2)))
    return float(np.sqrt(np.mean((right - columns @ found) ** 2))), float(found[0]) if seen else math.nan, deviation


def _solved(normal: Array, right: Array) -> tuple[Array, bool]:
    """The least-squares solution of normal equations (k, k), and whether it determines the first unknown."""
    size = np.sqrt(np.maximum(np.diag(normal), 1e-18))
    values, directions = np.linalg.eigh(normal / np.outer(size, size))
    kept = values > 1e-11 * values[-1]
    inverse = (directions[:, kept] / values[kept]) @ directions[:, kept].T
    return inverse @ (right / size) / size, bool(np.abs(directions[0, ~kept]).max(initial=0.0) < 1e-3)


def gravity_direction(robot: Robot, q: Array, still: Array, accelerometer: Array | None) -> Array | None:
    """The direction of gravity (3,) in base_link from the accelerometer at the tool; None: upright, or not known.

    Args:
        robot: The arm.
        q: Joint positions (T, n), rad.
        still: Rows in which the arm does not move (T,).
        accelerometer: actual_tool_accelerometer (T, 3), m/s^2: -R^T g in the flange's frame.
    """
    if accelerometer is None or still.sum() < 10:
        return None
    flange = tool_poses(
        np.array([*(j.placement.homogeneous for j in robot.joints), robot.tool0.homogeneous]), robot.prismatic, q[still]
    )
    felt = -np.mean(pose.rotate(flange[:, 3:], accelerometer[still]), axis=0)
    size = float(np.linalg.norm(felt))
    if not 0.8 * GRAVITY < size < 1.2 * GRAVITY:
        return None
    return None if np.arccos(np.clip(-felt[2] / size, -1.0, 1.0)) < _TILT else felt / size


@dataclass(frozen=True, eq=False)
class Friction:
    """Friction in each joint as current (n,); nan where it is not determined.

    Attributes:
        coulomb, coulomb_deviation: With one standard deviation, A.
        viscous, viscous_deviation: With one standard deviation, A s/rad.
    """

    coulomb: Array
    viscous: Array
    coulomb_deviation: Array
    viscous_deviation: Array


def fit_friction(velocity: Array, moment: Array, current: Array) -> Friction:
    """Friction as what a current has more than its torque: current = moment / K + coulomb sign(qd) + viscous qd.

    Args:
        velocity: Joint velocities (T, n), rad/s.
        moment: target_moment (T, n), N m, with the rotors' inertia.
        current: Of the motors (T, n), A.

    Raises:
        NotIdentified: No joint moves fast enough, or at different enough speeds, or no current is torque and friction.
    """
    n = velocity.shape[1]
    values, deviations = np.full((2, n), np.nan), np.full((2, n), np.nan)
    unexplained = False
    for j in range(n):
        speed = np.abs(velocity[:, j])
        used = (speed < _STILL) | (speed > _SLIDING)
        sliding = np.where(speed > _SLIDING, np.sign(velocity[:, j]), 0.0)
        if (speed > _SLIDING).sum() < 30 or np.ptp(speed[speed > _SLIDING]) < 0.05:
            continue
        matrix = np.stack([moment[:, j], sliding, np.where(speed > _SLIDING, velocity[:, j], 0.0)], axis=1)[used]
        right = current[used, j]
        found = _robust(matrix, right)
        left = float(np.mean((right - matrix @ found) ** 2))
        # From blocks of rows that are left out in turn; where all of them agree, from what is left.
        blocks = np.array_split(np.arange(len(right)), _BLOCKS)
        others = np.array([_robust(np.delete(matrix, b, axis=0), np.delete(right, b)) for b in blocks])
        spread = (_BLOCKS - 1) / _BLOCKS * np.sum((others - others.mean(axis=0)) ** 2, axis=0)
        formal = left * np.diag(np.linalg.pinv(matrix.T @ matrix, rcond=1e-18, hermitian=True))
        terms = _TWO_TERMS * abs(found[1]) * np.array([1.0, 1.0 / np.ptp(speed[speed > _SLIDING])])
        deviation = np.sqrt(np.maximum(spread, formal)[1:] + terms**2)
        if left > (1.0 - _EXPLAINED) * np.mean(right**2) or (found[1:] < -_NEGATIVE * deviation - _ROUNDED).any():
            unexplained = True
            continue
        bounds = [part[0] + part[1] * abs(f) for part, f in zip((_COULOMB, _VISCOUS), found[1:], strict=True)]
        if (deviation < bounds).all():
            values[:, j], deviations[:, j] = found[1:], deviation
    if np.isnan(values).all():
        if unexplained:
            raise NotIdentified("the current is not what torque and friction ask for")
        raise NotIdentified("no joint moves at enough different speeds to tell Coulomb from viscous friction")
    return Friction(*values, *deviations)


def _robust(matrix: Array, right: Array) -> Array:
    weights = np.ones(len(right))
    for _ in range(15):
        root = np.sqrt(weights)
        found = np.linalg.lstsq(matrix * root[:, None], right * root, rcond=1e-9)[0]
        left = np.abs(right - matrix @ found)
        weights = 1.0 / (1.0 + (left / max(2.0 * float(np.median(left)), 1e-9)) ** 2)
    return np.asarray(found, dtype=float)
