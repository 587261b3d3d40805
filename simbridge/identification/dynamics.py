"""By how much joints trail their targets; payload and friction, from target_moment and target_current.

target_moment is the controller's own model of the arm (rigid links, the declared payload as a point mass, rotor
inertias; gravity 9.82 m/s^2) at its joint targets. It is linear in the payload's mass, in mass times centre of gravity,
and in the rotor inertias.
"""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin

from simbridge.identification.data import FrictionResult, JointLag, JointServoResult, Measured
from simbridge.identification.servoj import NotIdentified, cauchy, jackknife, spread
from simbridge.robot import pose
from simbridge.robot.kinematics import tool_poses
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# What UR's controllers calculate with, m/s^2.
GRAVITY = 9.82
# A joint that is never faster than this (rad/s) does not show its lag; one standard deviation of one that is given, s.
_MIN_SPEED, _MAX_DEVIATION = 0.05, 1e-4
_LAG_BLOCKS, _LAG_ROUNDS = 10, 30
# Change of a lag in one round after which no other follows, s.
_CONVERGED = 1e-9
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


def fit_joint_servo(target: Array, velocity: Array, actual: Array) -> JointServoResult:
    """The lag with which actual joints (T, n), rad, follow their targets, rad; velocity: of the targets, rad/s.

    Raises:
        NotIdentified: The joints move too little, or do not follow their targets by a delay.
    """
    fast = np.abs(velocity).max(axis=0) > _MIN_SPEED
    if not fast.any():
        raise NotIdentified(f"no joint moves faster than {_MIN_SPEED} rad/s")
    behind = target - actual
    lag, deviation = _delay(velocity[:, fast], behind[:, fast])
    if deviation > _MAX_DEVIATION:
        raise NotIdentified(
            f"the lag is only determined to {1e3 * deviation:.2g} ms by this motion (it would be {1e3 * lag:.2g} ms)"
        )

    each: list[JointLag] = []
    for j, left in enumerate(np.sqrt(np.mean(behind**2, axis=0))):
        own, uncertain = _delay(velocity[:, [j]], behind[:, [j]]) if fast[j] else (0.0, np.inf)
        known = uncertain < _MAX_DEVIATION
        if known:
            left = np.sqrt(np.mean((behind[:, j] - own * velocity[:, j]) ** 2))
        each.append({"lag_s": own if known else None, "residual_rad": {"rms": float(left)}})
    return {
        "lag_s": lag,
        "uncertainty": {"lag_s": deviation},
        "residual_rad": {"rms": float(np.sqrt(np.mean((behind - lag * velocity) ** 2)))},
        "per_joint": each,
    }


def _delay(velocity: Array, behind: Array) -> tuple[float, float]:
    """The delay (s) that explains by how much joints are behind (rad), and one standard deviation."""
    lag = _robust_ratio(velocity, behind)
    blocks = [part for part in np.array_split(np.arange(len(velocity)), _LAG_BLOCKS) if len(part)]
    others = [
        _robust_ratio(np.delete(velocity, part, axis=0), np.delete(behind, part, axis=0), lag)
        for part in blocks
    ]
    return lag, float(np.sqrt(jackknife(others)))


def _robust_ratio(velocity: Array, behind: Array, start: float | None = None) -> float:
    """The delay (s) with Cauchy weights; `start`: a delay near it."""
    weights = np.ones_like(behind) if start is None else _weights(behind - start * velocity)
    lag = np.inf
    for _ in range(_LAG_ROUNDS):
        before, lag = (
            lag,
            float((weights * velocity * behind).sum() / max((weights * velocity**2).sum(), 1e-30)),
        )
        if abs(lag - before) < _CONVERGED:
            break
        weights = _weights(behind - lag * velocity)
    return lag


def _weights(left: Array) -> Array:
    left = np.abs(left)
    return cauchy(left, max(2.0 * float(np.median(left)), 1e-12))


def fit_payload(
    robot: Robot, q: Array, qd: Array, qdd: Array, moment: Array, gravity: Array | None
) -> tuple[Measured, float]:
    """The payload that a controller calculates with, and what it leaves of target_moment, RMS, N m.

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
    return {"value": mass, "uncertainty": deviation}, misfit


def moment_misfit(robot: Robot, q: Array, qd: Array, qdd: Array, moment: Array) -> float:
    """What the model of an arm, upright, with the payload that fits best leaves of target_moment, RMS, N m."""
    down = np.array([0.0, 0.0, -1.0])
    return min(
        _misfit(model, *_some(_COMPARED, q, qd, qdd, moment))[0] for model in _models(robot, down)
    )


def _some(most: int, *columns: Array) -> list[Array]:
    rows = spread(len(columns[0]), most)
    return [column[rows] for column in columns]


def _models(robot: Robot, down: Array) -> tuple[pin.Model, pin.Model]:
    """UR's models differ: some have the links' inertia tensors, some only point masses."""
    model = robot.with_gravity(GRAVITY * down).model
    points = model.copy()
    for i in range(1, model.njoints):
        body = model.inertias[i]
        points.inertias[i] = pin.Inertia(body.mass, body.lever, np.zeros((3, 3)))
    return model, points


def _torques(model: pin.Model, q: Array, qd: Array, qdd: Array) -> tuple[Array, Array, Array]:
    """Torques of the arm alone (T, n), N m; per kg and kg m of payload and kg m^2 of rotors (T, n, 4 + n); and
    per kg m^2 of the payload's inertia (T, n, 6), in pinocchio's order.
    """
    data, n = model.createData(), q.shape[1]
    arm = np.array([pin.rnea(model, data, *sample) for sample in zip(q, qd, qdd, strict=True)])
    last = np.array(
        [
            pin.computeJointTorqueRegressor(model, data, *s)[:, -10:]
            for s in zip(q, qd, qdd, strict=True)
        ]
    )
    rotors = np.zeros((len(q), n, n))
    rotors[:, np.arange(n), np.arange(n)] = qdd
    return arm, np.concatenate([last[:, :, :4], rotors], axis=2), last[:, :, 4:]


def _misfit(
    model: pin.Model, q: Array, qd: Array, qdd: Array, moment: Array
) -> tuple[float, float, float]:
    """What the model with the best payload leaves, RMS, N m; its mass (nan where others fit as well) and its standard
    deviation, kg."""
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
    others = [_solved(whole - n, total - s)[0][0] for n, s in zip(normals, sums, strict=True)]
    left = float(np.sqrt(np.mean((right - columns @ found) ** 2)))
    return left, float(found[0]) if seen else math.nan, float(np.sqrt(jackknife(others)))


def _solved(normal: Array, right: Array) -> tuple[Array, bool]:
    """The least-squares solution of normal equations (k, k), and whether it determines the first unknown."""
    size = np.sqrt(np.maximum(np.diag(normal), 1e-18))
    values, directions = np.linalg.eigh(normal / np.outer(size, size))
    kept = values > 1e-11 * values[-1]
    inverse = (directions[:, kept] / values[kept]) @ directions[:, kept].T
    return inverse @ (right / size) / size, bool(
        np.abs(directions[0, ~kept]).max(initial=0.0) < 1e-3
    )


def gravity_direction(
    robot: Robot, q: Array, still: Array, accelerometer: Array | None
) -> Array | None:
    """The direction of gravity (3,) in base_link; None: upright, or not known.

    It is what actual_tool_accelerometer (T, 3), m/s^2, which is -R^T g in the flange's frame, feels in the rows (T,) in
    which the arm is still.
    """
    if accelerometer is None or still.sum() < 10:
        return None
    flange = tool_poses(
        np.array([*(j.placement.homogeneous for j in robot.joints), robot.tool0.homogeneous]),
        robot.prismatic,
        q[still],
    )
    felt = -np.mean(pose.rotate(flange[:, 3:], accelerometer[still]), axis=0)
    size = float(np.linalg.norm(felt))
    if not 0.8 * GRAVITY < size < 1.2 * GRAVITY:
        return None
    return None if np.arccos(np.clip(-felt[2] / size, -1.0, 1.0)) < _TILT else felt / size


def fit_friction(velocity: Array, moment: Array, current: Array) -> FrictionResult:
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
        slides = speed > _SLIDING
        if slides.sum() < 30 or np.ptp(speed[slides]) < 0.05:
            continue
        used = (speed < _STILL) | slides
        coulomb, viscous = np.where(slides, [np.sign(velocity[:, j]), velocity[:, j]], 0.0)
        matrix = np.stack([moment[:, j], coulomb, viscous], axis=1)[used]
        right = current[used, j]
        found = _robust(matrix, right)
        left = float(np.mean((right - matrix @ found) ** 2))
        # Where all blocks agree, from what is left.
        blocks = np.array_split(np.arange(len(right)), _BLOCKS)
        others = jackknife(
            [_robust(np.delete(matrix, b, axis=0), np.delete(right, b)) for b in blocks]
        )
        formal = left * np.diag(np.linalg.pinv(matrix.T @ matrix, rcond=1e-18, hermitian=True))
        terms = _TWO_TERMS * abs(found[1]) * np.array([1.0, 1.0 / np.ptp(speed[slides])])
        deviation = np.sqrt(np.maximum(others, formal)[1:] + terms**2)
        if (
            left > (1.0 - _EXPLAINED) * np.mean(right**2)
            or (found[1:] < -_NEGATIVE * deviation - _ROUNDED).any()
        ):
            unexplained = True
            continue
        bounds = [
            part[0] + part[1] * abs(f)
            for part, f in zip((_COULOMB, _VISCOUS), found[1:], strict=True)
        ]
        if (deviation < bounds).all():
            values[:, j], deviations[:, j] = found[1:], deviation
    if np.isnan(values).all():
        if unexplained:
            raise NotIdentified("the current is not what torque and friction ask for")
        raise NotIdentified(
            "no joint moves at enough different speeds to tell Coulomb from viscous friction"
        )
    coulomb_a, viscous_a, *uncertain = (
        [None if np.isnan(value) else float(value) for value in row]
        for row in (*values, *deviations)
    )
    return {
        "coulomb_a": coulomb_a,
        "viscous_a_s_per_rad": viscous_a,
        "uncertainty": {"coulomb_a": uncertain[0], "viscous_a_s_per_rad": uncertain[1]},
    }


def _robust(matrix: Array, right: Array) -> Array:
    weights = np.ones(len(right))
    for _ in range(15):
        root = np.sqrt(weights)
        found = np.linalg.lstsq(matrix * root[:, None], right * root, rcond=1e-9)[0]
        left = np.abs(right - matrix @ found)
        weights = cauchy(left, max(2.0 * float(np.median(left)), 1e-9))
    return np.asarray(found, dtype=float)
