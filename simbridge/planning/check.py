"""The plan check: limits that every sample must keep before the arm moves.

Position, velocity, velocity jump, torque against gravity, tool speed and clearance are limits of
every plan. The acceleration is a limit only where setpoints are limited (`on_limits="limit"`):
elsewhere the velocity jump bounds it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from simbridge.errors import ExceededQuantity, LimitExceeded
from simbridge.planning.plan import CLOCK_SLOPE
from simbridge.robot.collision import Clearance, CollisionModel
from simbridge.robot.kinematics import tool_speeds
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import displayed

# Values planned to a limit may exceed it by this factor, by rounding.
ROUNDING_FACTOR = 1.0 + 1e-6
# Positions may exceed a limit by this rounding, rad or m.
POSITION_ROUNDING = 1e-9
# An instant that is this close to the end of a cycle, as a fraction of it, or to a sample, as a
# fraction of a period, belongs to that cycle or sample.
CYCLE_ROUNDING = 1e-6
# Largest age of the state with which the guard compares a setpoint, s: real links take 4 to 6 ms.
STATE_AGE_S = 0.006

# Fraction of a limit at which an advised speed stays.
ADVISED_FRACTION = 0.95
# The same fraction for a velocity jump, which does not shrink in proportion to the speed.
ADVISED_JUMP_FRACTION = 0.8
# Smallest ratio of a speed to its limit that is used as a divisor.
LEAST_RATIO = 1e-9


@dataclass(frozen=True)
class Peaks:
    """The extreme values of a plan that passed.

    Attributes:
        velocity: Largest velocity of each joint (n,), rad/s.
        velocity_jump: Largest change of each joint's velocity from one period to the next (n,),
            rad/s.
        acceleration: Largest acceleration of each joint between start and stop (n,), rad/s^2.
        tool_speed: Largest speed of the TCP, m/s.
        clearance: Smallest measured clearance; None for an arm without shapes.
        command_lead: Largest distance of a command from the arm with feedforward, rad; None without
            feedforward.
    """

    velocity: Array
    velocity_jump: Array
    acceleration: Array
    tool_speed: float
    clearance: Clearance | None
    command_lead: float | None = None


class Remedies(NamedTuple):
    """Facts of a plan that decide which advice helps against setpoints past a limit.

    Attributes:
        held: Whether the targets are steps of a sampled source, which a lower speed does not make
            smaller.
        limited: Whether setpoints are limited already.
        replayed: Whether the setpoints are those of an earlier run or session.
        range_advice: What helps where a joint would leave its range, as a sentence.
    """

    held: bool = False
    limited: bool = False
    replayed: bool = False
    range_advice: str = "Move the trajectory."

    def advice(self, slower: str, *alternatives: str) -> str:
        """Return what to do, as a sentence; a lower speed is advised only where it helps.

        Args:
            slower: A clause that advises a lower speed.
            alternatives: Clauses that advise something else.
        """
        if self.replayed:
            return (
                "These setpoints are replayed unchanged; those of a live session jump where the "
                "controller paused or stopped the arm."
            )

        choices = [f"{slower} (--speed-scale)", *alternatives]
        reason = ""
        if self.held:
            choices = ["interpolate the target (--hold linear)", "give it more samples"]
            reason = "Each sample is held until the next one, so it is a step at any speed: "
        if not self.limited:
            choices.append("let setpoints be limited (--on-limits limit)")

        *first, last = choices
        if first:
            return f"{reason}{', '.join(first)}, or {last}."
        return f"{reason}{last}."


class SetpointRates(NamedTuple):
    """Rates at which setpoints change.

    Attributes:
        velocity: Joint velocities from each sample to the next (T - 1, n), rad/s.
        jumps: Absolute changes of the velocity at each sample (T, n), rad/s; start and stop
            included.
        tool_speed: Speed of the TCP from each sample to the next (T - 1,), m/s.
    """

    velocity: Array
    jumps: Array
    tool_speed: Array

    @property
    def speed(self) -> Array:
        """Absolute velocities (T - 1, n), rad/s."""
        return np.abs(self.velocity)

    @property
    def max_tool_speed(self) -> float:
        """Largest speed of the TCP, m/s."""
        return float(self.tool_speed.max(initial=0.0))


@dataclass(frozen=True)
class LimitCheck:
    """A quantity of a plan, with its limits, and the refusal where it exceeds them.

    Attributes:
        quantity: Name of the quantity.
        values: Values for each sample and joint (T, n); or for each sample (T,), if the quantity
            does not belong to a joint.
        limits: Limits of the same shape; or one for each joint, or for all.
        exceeds: Which values are refused, of the shape of the values.
        sentence: The problem, as a clause with fields in braces: see `_explain`.
        remedy: What helps, as a sentence.
        samples_before: Number of samples before the first value.
        cycle: Time from one value to the next, s; the control period by default.
    """

    quantity: ExceededQuantity
    values: Array
    limits: Array | float
    exceeds: NDArray[np.bool_]
    sentence: str
    remedy: str
    samples_before: int = 0
    cycle: float | None = None


def check_setpoints(
    robot: Robot,
    setpoints: Array,
    period: float,
    *,
    max_tool_speed: float,
    collisions: CollisionModel,
    remedies: Remedies = Remedies(),  # noqa: B008 (immutable)
    max_acceleration: float | None = None,
) -> Peaks:
    """Refuse setpoints that exceed a limit of the robot.

    The arm is at rest before the first and after the last: this start and stop count as velocity
    jumps.

    Args:
        robot: The arm.
        setpoints: Joint positions (T, n), rad (m for sliding joints), one a period.
        period: Control period, s.
        max_tool_speed: Largest speed of the TCP, m/s.
        collisions: The arm's links and what they must not touch.
        remedies: Facts that decide what the refusal advises.
        max_acceleration: Largest acceleration of a joint, rad/s^2; None if it is not limited.

    Raises:
        PlanRefused: One of its subclasses names sample, time, joint, value and limit.
    """
    check_positions(robot, setpoints, period, remedies)

    rates = _measure_rates(robot, setpoints, period)
    slower = _advise_speed(robot, rates, max_tool_speed)
    advice = remedies.advice(slower, "keep away from singularities")
    _check_velocity(robot, period, rates, advice=advice)
    _check_velocity_jump(robot, period, rates, remedies)
    if max_acceleration is not None:
        _check_acceleration(robot, period, rates, max_acceleration=max_acceleration)
    _check_torque(robot, period, setpoints)

    advice = remedies.advice(slower, "allow more (--max-tool-speed)")
    _check_tool_speed(robot, period, rates, max_tool_speed=max_tool_speed, advice=advice)

    return Peaks(
        velocity=rates.speed.max(axis=0, initial=0.0),
        velocity_jump=rates.jumps.max(axis=0),
        acceleration=rates.jumps[1:-1].max(axis=0, initial=0.0) / period,
        tool_speed=rates.max_tool_speed,
        clearance=collisions.check(setpoints, period),
    )


def check_positions(
    robot: Robot,
    joints: Array,
    period: float,
    remedies: Remedies = Remedies(),  # noqa: B008 (immutable)
) -> None:
    """Refuse setpoints or commands that are not finite, or outside of the joint range.

    Args:
        robot: The arm.
        joints: Joint positions (T, n), rad (m for sliding joints), one a period.
        period: Control period, s.
        remedies: Facts that decide what the refusal advises.

    Raises:
        LimitExceeded: Names sample, time, joint, value and limit.
    """
    is_low = joints < robot.position_min - POSITION_ROUNDING
    is_high = joints > robot.position_max + POSITION_ROUNDING
    limits = np.where(is_low, robot.position_min, robot.position_max)

    not_a_number = LimitCheck(
        quantity="position",
        values=joints,
        limits=limits,
        exceeds=np.isnan(joints),
        sentence="{joint} would be at {value}, which is not a valid position",
        remedy="Use another --solver.",
    )
    _refuse_first(robot, period, not_a_number)

    out_of_range = LimitCheck(
        quantity="position",
        values=joints,
        limits=limits,
        exceeds=is_low | is_high,
        sentence=(
            "{joint} would be at {value:.3f} {unit}{value_degrees}, {excess} past its limit of "
            "{limit:.3f} {unit}{limit_degrees}"
        ),
        remedy=remedies.range_advice,
    )
    _refuse_first(robot, period, out_of_range)


def check_predicted_velocity(
    robot: Robot, velocity: Array, period: float, *, cycle: float, remedies: Remedies
) -> None:
    """Refuse setpoints for which the servo law predicts velocities of the arm past a limit.

    Args:
        robot: The arm.
        velocity: Predicted velocities (N, n), rad/s, for each cycle of the controller.
        period: Control period, s.
        cycle: Cycle of the controller, s.
        remedies: Facts that decide what the refusal advises.

    Raises:
        LimitExceeded: Names sample, time, joint, value and limit.
    """
    speed = np.abs(velocity)
    worst_ratio = float((speed / robot.max_velocity).max())
    advised = ADVISED_FRACTION / max(worst_ratio, LEAST_RATIO)
    check = LimitCheck(
        quantity="velocity",
        values=speed,
        limits=robot.max_velocity,
        exceeds=speed > robot.max_velocity * ROUNDING_FACTOR,
        sentence=(
            "servoj would overshoot: it would move {joint} at {value:.3f} {unit}/s, exceeding its "
            "limit of {limit:.3f} {unit}/s, although the setpoints respect it"
        ),
        remedy=remedies.advice(f"Slow it down to {advised:.2g} times its speed"),
        cycle=cycle,
    )
    _refuse_first(robot, period, check)


def check_predicted_distance(
    robot: Robot, setpoints: Array, period: float, *, q: Array, cycle: float, limits: Array
) -> None:
    """Refuse setpoints that get so far ahead of the arm that the guard would stop it.

    Args:
        robot: The arm.
        setpoints: Joint positions (T, n), rad, one a period.
        period: Control period, s.
        q: Joint targets that the servo law predicts (N, n), rad, at the end of each cycle.
        cycle: Cycle of the controller, s.
        limits: How far each setpoint may be from the arm (T, n), rad.

    Raises:
        LimitExceeded: Names sample, time, joint, value and limit.
    """
    # The state of the arm that the guard has when it checks each setpoint.
    measured_at = np.arange(len(setpoints)) * period - STATE_AGE_S
    cycles_before = np.maximum(np.floor(measured_at / cycle + CYCLE_ROUNDING), 0.0).astype(int)
    measured = np.concatenate([setpoints[:1], q])[cycles_before]

    distance = np.abs(setpoints - measured)
    check = LimitCheck(
        quantity="command lead",
        values=distance,
        limits=limits,
        exceeds=distance > limits,
        sentence=(
            "servoj would leave {joint} {value:.3f} {unit} behind its setpoint, and the guard "
            "stops it at {limit:.3f} {unit}"
        ),
        remedy="Slow it down (--speed-scale), or use a higher gain (--servo-gain).",
    )
    _refuse_first(robot, period, check)


def _measure_rates(robot: Robot, setpoints: Array, period: float) -> SetpointRates:
    """Return how fast setpoints (T, n), rad, change from and to rest."""
    velocity = np.diff(setpoints, axis=0) / period
    rest = np.zeros((1, robot.n))
    jumps = np.abs(np.diff(np.concatenate([rest, velocity, rest]), axis=0))
    return SetpointRates(velocity, jumps, tool_speeds(robot, setpoints, period))


def _worst_velocity_ratio(robot: Robot, rates: SetpointRates) -> float:
    """Return the largest ratio of a velocity to its limit."""
    return float((rates.speed / robot.max_velocity).max(initial=0.0))


def _advise_speed(robot: Robot, rates: SetpointRates, max_tool_speed: float) -> str:
    """Return a clause that advises a lower speed, with a number where one is right."""
    tool_ratio = rates.max_tool_speed / max_tool_speed
    joint_ratio = _worst_velocity_ratio(robot, rates)
    advised = ADVISED_FRACTION / max(joint_ratio, tool_ratio, LEAST_RATIO)

    # Velocity jumps do not shrink in proportion to the speed: if they are too large as well, no
    # number would be right.
    if rates.jumps.max() * advised > ADVISED_JUMP_FRACTION * robot.max_velocity_jump:
        return "Slow it down"
    return f"Slow it down to {advised:.2g} times its speed"


def _check_velocity(robot: Robot, period: float, rates: SetpointRates, *, advice: str) -> None:
    """Refuse joint velocities past the robot's limits."""
    worst_ratio = _worst_velocity_ratio(robot, rates)
    check = LimitCheck(
        quantity="velocity",
        values=rates.speed,
        limits=robot.max_velocity,
        exceeds=rates.speed > robot.max_velocity * ROUNDING_FACTOR,
        sentence=(
            "{joint} would move at {value:.3f} {unit}/s, exceeding its limit of {limit:.3f} "
            f"{{unit}}/s; the worst violation is {worst_ratio:.3g} times the limit"
        ),
        remedy=advice,
        samples_before=1,
    )
    _refuse_first(robot, period, check)


def _check_velocity_jump(
    robot: Robot, period: float, rates: SetpointRates, remedies: Remedies
) -> None:
    """Refuse changes of a joint's velocity, from one period to the next, past the robot's limit."""
    check = LimitCheck(
        quantity="velocity jump",
        values=rates.jumps,
        limits=robot.max_velocity_jump,
        exceeds=rates.jumps > robot.max_velocity_jump * ROUNDING_FACTOR,
        sentence=(
            "the velocity of {joint} would jump by {value:.3f} {unit}/s within one period; "
            "at most {limit:.3f} {unit}/s is allowed"
        ),
        remedy=remedies.advice("Slow it down", "round the corner", "lower the solver's kp"),
    )
    _refuse_first(robot, period, check)


def _check_acceleration(
    robot: Robot, period: float, rates: SetpointRates, *, max_acceleration: float
) -> None:
    """Refuse accelerations past a limit, rad/s^2."""
    # The last period may be cut short by the end of the trajectory: it belongs to the stop, which
    # is a jump.
    acceleration = np.abs(np.diff(rates.velocity[:-1], axis=0)) / period

    # Accelerations are limited before time is stretched. Stretched time passes at a rate that
    # changes by up to CLOCK_SLOPE a second, which adds this much times the joint's velocity. An
    # acceleration lies between two periods: the faster one counts.
    speed = np.maximum(rates.speed[1:-1], rates.speed[:-2])
    allowed = max_acceleration + CLOCK_SLOPE * speed

    check = LimitCheck(
        quantity="acceleration",
        values=acceleration,
        limits=max_acceleration,
        exceeds=acceleration > allowed * ROUNDING_FACTOR,
        sentence=(
            "{joint} would accelerate at {value:.1f} {unit}/s^2, exceeding the limit of "
            "{limit:.1f} {unit}/s^2"
        ),
        remedy="Slow it down (--speed-scale).",
        samples_before=1,
    )
    _refuse_first(robot, period, check)


def _check_torque(robot: Robot, period: float, setpoints: Array) -> None:
    """Refuse setpoints (T, n), rad, that a joint cannot hold against gravity."""
    data = robot.model.createData()
    torque = np.abs([pin.computeGeneralizedGravity(robot.model, data, q) for q in setpoints])
    check = LimitCheck(
        quantity="torque",
        values=torque,
        limits=robot.max_effort,
        exceeds=torque > robot.max_effort,
        sentence=(
            "{joint} would need {value:.0f} {effort_unit} to hold the posture; its limit is "
            "{limit:.0f} {effort_unit}"
        ),
        remedy="Reduce the payload (--payload) or keep the arm closer to its base.",
    )
    _refuse_first(robot, period, check)


def _check_tool_speed(
    robot: Robot, period: float, rates: SetpointRates, *, max_tool_speed: float, advice: str
) -> None:
    """Refuse speeds of the TCP past a limit, m/s."""
    check = LimitCheck(
        quantity="tool speed",
        values=rates.tool_speed,
        limits=max_tool_speed,
        exceeds=rates.tool_speed > max_tool_speed * ROUNDING_FACTOR,
        sentence="the tool would move at {value:.3f} m/s; at most {limit:.3f} m/s is allowed",
        remedy=advice,
        samples_before=1,
    )
    _refuse_first(robot, period, check)


def _refuse_first(robot: Robot, period: float, check: LimitCheck) -> None:
    """Refuse a plan for the first value that exceeds its limit, if there is one.

    Raises:
        LimitExceeded: Names sample, time, joint, value and limit.
    """
    if not check.exceeds.any():
        return

    # The index of the value: its row, and its joint if the quantity belongs to a joint.
    index = tuple(int(i) for i in np.argwhere(check.exceeds)[0])
    row = index[0]
    joint = index[1] if len(index) > 1 else None

    # The sample of the row, which may belong to a cycle of the controller.
    sample = row
    if check.cycle is not None:
        sample = int(row * check.cycle / period + CYCLE_ROUNDING)
    sample += check.samples_before
    time = sample * period

    value = float(check.values[index])
    limit = float(np.broadcast_to(check.limits, check.values.shape)[index])
    problem = _explain(robot, check.sentence, joint, value=value, limit=limit)
    raise LimitExceeded(
        f"The plan was refused: at sample {sample} ({time:.3f} s) {problem}. {check.remedy}",
        check.quantity,
        sample=sample,
        time=time,
        value=value,
        limit=limit,
        joint=None if joint is None else robot.joint_names[joint],
        remedy=check.remedy,
    )


def _explain(robot: Robot, sentence: str, joint: int | None, *, value: float, limit: float) -> str:
    """Fill in the sentence of a check, in the units of the joint.

    Its fields are: joint, the joint's name; value and limit; unit, that of the joint's positions;
    effort_unit, that of its torque or force; value_degrees and limit_degrees, value and limit in
    parentheses for a joint that turns, and nothing for one that slides; and excess, the difference
    of value and limit with its unit.

    Args:
        robot: The arm.
        sentence: The sentence, as `LimitCheck` describes it.
        joint: Index of the joint; None if the quantity does not belong to a joint.
        value: The value, in rad for a joint that turns, in m for one that slides.
        limit: The limit, in the same unit.
    """
    if joint is not None and robot.prismatic[joint]:
        unit = "m"
        effort_unit = "N"
        value_degrees = ""
        limit_degrees = ""
    else:
        unit = "rad"
        effort_unit = "N m"
        value_degrees = f" ({math.degrees(value):.1f} degrees)"
        limit_degrees = f" ({math.degrees(limit):.1f} degrees)"

    # Degrees are written without a blank before their sign.
    excess = " ".join(displayed(abs(value - limit), unit)).replace(" °", "°")
    return sentence.format(
        joint=None if joint is None else robot.joint_names[joint],
        value=value,
        limit=limit,
        unit=unit,
        effort_unit=effort_unit,
        excess=excess,
        value_degrees=value_degrees,
        limit_degrees=limit_degrees,
    )
