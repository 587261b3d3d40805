"""The plan check: limits that every sample must keep before the arm moves.

Position, velocity, velocity jump, torque against gravity, tool speed and clearance are limits of every plan. The
acceleration is a limit only where setpoints are limited (`on_limits="limit"`): elsewhere the velocity jump bounds it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from simbridge.errors import LimitExceeded, Quantity
from simbridge.planning.plan import CLOCK_SLOPE
from simbridge.robot.collision import Clearance, CollisionModel
from simbridge.robot.kinematics import tool_speeds
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import displayed

# Values planned to a limit may exceed it by rounding.
_SLACK = 1.0 + 1e-6
# How long ago the state was measured that the guard compares a setpoint with, at most, s: real links take 4 to 6 ms.
_SEEN_LATE = 0.006


@dataclass(frozen=True)
class Peaks:
    """The largest of each quantity over a plan that passed.

    Attributes:
        command_lead: With feedforward: the largest distance of a command from the arm, rad; None without.
    """

    velocity: Array  # of each joint (n,), rad/s
    velocity_jump: Array  # from one period to the next, of each joint (n,), rad/s
    acceleration: Array  # while moving, of each joint (n,), rad/s^2
    tool_speed: float  # m/s
    clearance: Clearance | None  # the smallest that was measured; None for an arm without shapes
    command_lead: float | None = None


class Remedies(NamedTuple):
    """What helps against setpoints that are too fast."""

    held: bool = False  # whether the targets are steps of a sampled source, which a lower speed does not make smaller
    limited: bool = False  # whether setpoints are limited already
    replayed: bool = False  # whether the setpoints are those of an earlier run or session

    def advice(self, slower: str, *others: str) -> str:
        """What to do, as a sentence; a lower speed is advised only where it helps."""
        if self.replayed:
            return (
                "These setpoints are replayed as they were; those of a live session jump where its controller paused "
                "or stopped the arm."
            )
        choices = [f"{slower} (--speed-scale)", *others]
        if self.held:
            choices = ["interpolate the target (--hold linear)", "give it more samples"]
        if not self.limited:
            choices.append("let setpoints be limited (--on-limits limit)")
        *first, last = choices
        text = f"{', '.join(first)}, or {last}." if first else f"{last}."
        held = "Each sample is held until the next one, so it is a step at any speed: "
        return held + text if self.held else text


def check_setpoints(
    robot: Robot,
    setpoints: Array,
    period: float,
    max_tool_speed: float,
    collisions: CollisionModel,
    remedies: Remedies = Remedies(),  # noqa: B008 (immutable)
    max_acceleration: float | None = None,
) -> Peaks:
    """Refuse joint positions (T, n), rad (m for sliding joints), one a period, s, that exceed a limit of the robot.

    The arm is at rest before the first and after the last: this start and stop count as velocity jumps.

    Args:
        max_tool_speed: m/s.
        max_acceleration: rad/s^2; None where it is no limit.

    Raises:
        PlanRefused: One of its subclasses names sample, time, joint, value and limit.
    """
    check_positions(robot, setpoints, period)
    refuse = partial(_refuse_first, robot, period)
    velocity, tool = np.diff(setpoints, axis=0) / period, tool_speeds(robot, setpoints, period)
    rest = np.zeros((1, robot.n))
    jumps = np.abs(np.diff(np.concatenate([rest, velocity, rest]), axis=0))
    speed, fastest = np.abs(velocity), float(tool.max(initial=0.0))
    worst = float((speed / robot.max_velocity).max(initial=0.0))
    enough = 0.95 / max(worst, fastest / max_tool_speed, 1e-9)
    # Velocity jumps do not shrink in proportion: where they are too large as well, no number would be right.
    jumpy = jumps.max() * enough > 0.8 * robot.max_velocity_jump
    slower = "Slow it down" if jumpy else f"Slow it down to {enough:.2g} of its speed"
    what = "{joint} would move at {value:.3f} rad/s, past its limit of {limit:.3f} rad/s; the worst of the plan is "
    what += f"{worst:.2f} times a limit"
    remedy = remedies.advice(slower, "keep away from singularities")
    refuse(
        "velocity",
        speed > robot.max_velocity * _SLACK,
        speed,
        robot.max_velocity,
        what,
        remedy,
        before=1,
    )

    what = "the velocity of {joint} would jump by {value:.3f} rad/s within one period; {limit:.3f} rad/s are allowed"
    remedy = remedies.advice("Slow it down", "round the corner", "lower the solver's kp")
    limit = robot.max_velocity_jump
    refuse("velocity jump", jumps > limit * _SLACK, jumps, limit, what, remedy)

    if max_acceleration is not None:
        # The last period may be cut short by the end of the trajectory: it belongs to the stop, which is a jump.
        acceleration = np.abs(np.diff(velocity[:-1], axis=0)) / period
        # Stretched time passes at a rate that changes: that adds to what the limiter allows.
        allowed = max_acceleration + CLOCK_SLOPE * np.maximum(speed[1:-1], speed[:-2])
        what = (
            "{joint} would accelerate at {value:.1f} rad/s^2, past the limit of {limit:.1f} rad/s^2"
        )
        remedy = "Slow it down (--speed-scale)."
        excess = acceleration > allowed * _SLACK
        refuse("acceleration", excess, acceleration, max_acceleration, what, remedy, before=1)

    data = robot.model.createData()
    torque = np.abs([pin.computeGeneralizedGravity(robot.model, data, q) for q in setpoints])
    what = "{joint} would need {value:.0f} N m to hold the posture; it has {limit:.0f} N m"
    remedy = "Reduce the payload (--payload) or keep the arm closer to its base."
    refuse("torque", torque > robot.max_effort, torque, robot.max_effort, what, remedy)

    what = "the tool would move at {value:.3f} m/s; {limit:.3f} m/s are allowed"
    remedy = remedies.advice(slower, "allow more (--max-tool-speed)")
    refuse(
        "tool speed", tool > max_tool_speed * _SLACK, tool, max_tool_speed, what, remedy, before=1
    )
    return Peaks(
        velocity=speed.max(axis=0, initial=0.0),
        velocity_jump=jumps.max(axis=0),
        acceleration=jumps[1:-1].max(axis=0, initial=0.0) / period,
        tool_speed=fastest,
        clearance=collisions.check(setpoints, period),
    )


def check_positions(robot: Robot, joints: Array, period: float) -> None:
    """Refuse setpoints or commands (T, n), rad, one a period, s, that are not finite or outside of the joint range.

    Raises:
        LimitExceeded: Names sample, time, joint, value and limit.
    """
    low, high = joints < robot.position_min - 1e-9, joints > robot.position_max + 1e-9
    limits = np.where(low, robot.position_min, robot.position_max)
    what = (
        "{joint} would be at {value:.3f} rad{value_degrees}, {excess} past its limit of "
        "{limit:.3f} rad{limit_degrees}"
    )
    unknown = "{joint} would be at {value}, which is no position"
    _refuse_first(
        robot,
        period,
        "position",
        np.isnan(joints),
        joints,
        limits,
        unknown,
        "Use another --solver.",
    )
    remedy = "Begin from another posture (--home) or move the trajectory."
    _refuse_first(robot, period, "position", low | high, joints, limits, what, remedy)


def check_predicted_velocity(
    robot: Robot, velocity: Array, cycle: float, period: float, remedies: Remedies
) -> None:
    """Refuse setpoints, one a period, s, for which the servo law predicts velocities of the arm past a limit.

    Args:
        velocity: Predicted (N, n), rad/s, one for each cycle of the controller, s.

    Raises:
        LimitExceeded: Names sample, time, joint, value and limit.
    """
    speed = np.abs(velocity)
    what = (
        "servoj would overshoot: it would move {joint} at {value:.3f} rad/s, past its limit of {limit:.3f} rad/s, "
        "which the setpoints keep"
    )
    enough = 0.95 / max(float((speed / robot.max_velocity).max()), 1e-9)
    remedy = remedies.advice(f"Slow it down to {enough:.2g} of its speed")
    excess, limits = speed > robot.max_velocity * _SLACK, robot.max_velocity
    _refuse_first(robot, period, "velocity", excess, speed, limits, what, remedy, cycle=cycle)


def check_predicted_distance(
    robot: Robot, setpoints: Array, q: Array, cycle: float, period: float, limits: Array
) -> None:
    """Refuse setpoints (T, n), rad, that get so far ahead of the arm that the guard would stop it.

    Args:
        q: What the servo law predicts of them (N, n), rad, at the end of each cycle of the controller, s.
        limits: How far each setpoint may be from the arm (T, n), rad.

    Raises:
        LimitExceeded: Names sample, time, joint, value and limit.
    """
    ends = np.arange(len(setpoints)) * period - _SEEN_LATE
    seen = np.concatenate([setpoints[:1], q])[
        np.maximum(np.floor(ends / cycle + 1e-6), 0.0).astype(int)
    ]
    distance = np.abs(setpoints - seen)
    what = "servoj would leave {joint} {value:.3f} rad behind its setpoint, and the guard stops it at {limit:.3f} rad"
    remedy = "Slow it down (--speed-scale), or use a higher gain (--servo-gain)."
    _refuse_first(robot, period, "command lead", distance > limits, distance, limits, what, remedy)


def _refuse_first(
    robot: Robot,
    period: float,
    quantity: Quantity,
    excess: NDArray[np.bool_],
    values: Array,
    limits: Array | float,
    what: str,
    remedy: str,
    *,
    before: int = 0,
    cycle: float | None = None,
) -> None:
    """Refuse for the first excess (T, n), or (T,) where it is no joint's.

    Args:
        excess, values, limits: Each (T, n) or (T,); limits may also be one for each joint, or for all.
        what: A sentence with the fields joint, value and limit, the last two in degrees too, and excess; in the units
            of a joint that turns.
        before: How many samples there are before the first value.
        cycle: How far values are apart, s; the period by default.
    """
    if not excess.any():
        return
    row, *column = (int(i) for i in np.argwhere(excess)[0])
    joint = robot.joint_names[column[0]] if column else None
    place = (row, *column)
    value, limit = float(values[place]), float(np.broadcast_to(limits, values.shape)[place])
    k = before + (row if cycle is None else int(row * cycle / period + 1e-6))
    slides = bool(column) and bool(robot.prismatic[column[0]])
    if slides:
        what = what.replace(" rad", " m").replace(" N m", " N")
    in_degrees = {
        f"{name}_degrees": "" if slides else f" ({math.degrees(each):.1f} degrees)"
        for name, each in (("value", value), ("limit", limit))
    }
    excess_text = " ".join(displayed(abs(value - limit), "m" if slides else "rad")).replace(
        " °", "°"
    )
    said = what.format(joint=joint, value=value, limit=limit, excess=excess_text, **in_degrees)
    raise LimitExceeded(
        f"The plan was refused: at sample {k} ({k * period:.3f} s) {said}. {remedy}",
        quantity,
        sample=k,
        time=k * period,
        value=value,
        limit=limit,
        joint=joint,
    )
