"""The motion of an arm in a live session is judged by its controller's joint targets."""

from __future__ import annotations

import numpy as np

from simbridge.backends.servo_loop import AHEAD_S
from simbridge.robot.collision import CollisionModel
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.law import ServojLaw

# Commands are single precision, which is 0.3 rad/s^2 at 500 Hz.
_SLACK = 1.02
# How long after a late or missing command the arm may accelerate by more than in normal motion, s.
_EXCUSED = 0.3
# A good input moves one joint by this much, rad.
_GOOD = 0.1


def late_acceleration(robot: Robot, law: ServojLaw) -> float:
    """Return the acceleration that late commands may cause, rad/s^2.

    Those of its fastest motion stop, or come all at once.
    """
    ramp = np.minimum(np.arange(1000), 500)[:, np.newaxis] * law.cycle
    stopped = float(np.abs(law.follow(ramp).qdd[500:]).max())
    fastest = float(robot.max_velocity.max()) / law.velocity_gain().of_any_motion
    return robot.max_acceleration + fastest * max(stopped, law.gain * AHEAD_S)


def arm_violations(
    robot: Robot, targets: Array, setpoints: Array, law: ServojLaw
) -> tuple[list[str], float]:
    """Return what must not be in a controller's record.

    Args:
        robot: The arm.
        targets: The controller's joint targets (T, n), rad, one a cycle.
        setpoints: Setpoints of servoj in force (T, n), rad; nan without one.
        law: The law of servoj.

    Returns:
        The violations, and the share of the cycles that were excused because a command was late.
    """
    wrong = []
    period = law.cycle
    velocity = np.diff(targets, axis=0) / period
    share = np.abs(velocity) / robot.max_velocity
    if share.max(initial=0.0) > 1.0 + 1e-3:
        wrong.append(f"{_where(robot, share)} moved at {share.max():.4f} of its velocity limit")
    beyond = np.maximum(robot.position_min - targets, targets - robot.position_max)
    if beyond.max(initial=0.0) > 1e-4:
        wrong.append(f"{_where(robot, beyond)} was {beyond.max():.5f} rad beyond its range")
    acceleration = np.abs(np.diff(velocity, axis=0)) / period
    # Between servoj and a script's own stop the controller brakes by itself.
    sent = np.isfinite(setpoints).all(axis=1)
    acceleration[~(sent[2:] & sent[:-2])] = 0.0
    excused = _after(late_commands(robot, setpoints, period), round(_EXCUSED / period))[2:]
    most = acceleration[~excused].max(initial=0.0)
    if most > _SLACK * robot.max_acceleration:
        wrong.append(
            f"{_where(robot, acceleration * ~excused[:, None])} accelerated by {most:.2f} rad/s^2"
        )
    most = acceleration[excused].max(initial=0.0)
    if most > _SLACK * late_acceleration(robot, law):
        wrong.append(
            f"{_where(robot, acceleration * excused[:, None])} accelerated by {most:.2f} rad/s^2 "
            "after a late command"
        )
    return wrong, float(excused.mean()) if len(excused) else 0.0


def late_commands(robot: Robot, setpoints: Array, period: float) -> Array:
    """Return where a command was late or missing (T,): steps that no limiter makes show it."""
    step = np.abs(np.diff(np.nan_to_num(setpoints), n=2, axis=0)).max(axis=1, initial=0.0)
    known = np.isfinite(setpoints).all(axis=1)
    late = np.zeros(len(setpoints), dtype=bool)
    late[2:] = (step > 1.01 * robot.max_acceleration * period**2 + 1e-6) | ~known[2:] | ~known[:-2]
    return late


def setpoint_violations(
    robot: Robot, setpoints: Array, rates: Array, index: Array, period: float
) -> list[str]:
    """Return what must not be in a session's log.

    Args:
        robot: The arm.
        setpoints: Setpoints (T, n), rad.
        rates: Rates of the loop (T,): where one falls at once, the arm has been braked.
        index: Numbers of the loop's periods (T,): samples may be missing.
        period: Control period, s.
    """
    velocity = np.diff(setpoints, axis=0) / period
    acceleration = np.abs(np.diff(velocity, axis=0)) / period
    follows = (np.diff(index) == 1)[1:] & (np.diff(index) == 1)[:-1]
    steady = np.abs(np.diff(rates))[1:] < 0.01
    acceleration = acceleration[follows & steady]
    most = acceleration.max(initial=0.0)
    if most > _SLACK * robot.max_acceleration:
        return [f"the setpoint of {_where(robot, acceleration)} accelerated by {most:.2f} rad/s^2"]
    return []


def good_joints(robot: Robot, collisions: CollisionModel, q: Array) -> Array:
    """Return joint positions (n,), rad, near q (n,) that an arm at rest there must reach.

    They lead away from all obstacles.
    """
    choices = [sign * _GOOD * axis for axis in np.eye(robot.n) for sign in (-1.0, 1.0)]
    free = [
        min(float(collisions.distances(q + share * choice).min()) for share in (0.25, 0.5, 1.0))
        if ((robot.position_min < q + choice) & (q + choice < robot.position_max)).all()
        else -np.inf
        for choice in choices
    ]
    return np.asarray(q + choices[int(np.argmax(free))])


def _after(flags: Array, count: int) -> Array:
    """Return where one of these (T,) flags is set in the last `count` cycles."""
    counts = np.convolve(flags, np.ones(count + 1))[: len(flags)]
    return np.asarray(counts > 0.5)


def _where(robot: Robot, values: Array) -> str:
    cycle, joint = np.unravel_index(int(np.argmax(values)), values.shape)
    return f"{robot.joint_names[int(joint)]} in cycle {cycle} of {len(values)}"
