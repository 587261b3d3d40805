"""Feedforward of a plan: the motion that the arm is to make, and the commands that make it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from simbridge.errors import InvalidParameter, LimitExceeded
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.feedforward import Excess, advance_setpoints, smooth_motion
from simbridge.servo.law import ServojLaw
from simbridge.servo.plant import Plant

# How far the tool's path may be rounded at corners if nothing else is asked for.
CORNER_TOLERANCE = 0.0005  # m
# Rest before and after the motion, in which a corner at its ends is rounded, s; what is not needed is cut off again.
_REST = 0.1
# Halvings in the search for a speed: the result is within 3 % of the motion's speed.
_HALVINGS = 5


class Feedforward(NamedTuple):
    """Setpoints as the arm is to follow them, with rest at both ends.

    Attributes:
        before, after: How many samples of rest come before and after the setpoints.
    """

    before: int
    after: int
    wanted: Array  # joint targets of a law without phase (T, n), rad, ahead by the lag of phase and joints
    commands: Array  # what makes the targets of such a law `wanted` (T, n), rad
    speed: float = 1.0  # of the setpoints' speed: less than 1 where they were slowed down


def feedforward(
    robot: Robot,
    setpoints: Array,
    period: float,
    plant: Plant,
    corner_tolerance: float,
    *,
    slow_down: bool,
) -> Feedforward:
    """The commands with which the arm follows setpoints without lag.

    Args:
        setpoints: Joint positions (K, n), rad, one a period, s.
        corner_tolerance: How far the tool's path may be rounded, m.
        slow_down: Whether to slow the whole motion down where a limit cannot be kept otherwise, rather than to refuse.

    Raises:
        InvalidParameter: There is not one setpoint for each cycle of the controller.
        LimitExceeded: A corner cannot be rounded within the tolerance and the limits; names a speed that can.
    """
    law = plant.law(robot.period)
    if not abs(period - robot.period) < 1e-9:
        needed = f"the controller's cycle of {robot.period:g} s: feedforward needs a command for each cycle"
        raise InvalidParameter("period", f"{period:g} s", needed)
    found = _attempt(robot, setpoints, law, plant, corner_tolerance)
    if isinstance(found, Feedforward):
        return found
    slower: Feedforward | None = None
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        speed = 0.5 * (low + high)
        attempt = _attempt(robot, at_speed(setpoints, speed), law, plant, corner_tolerance)
        if isinstance(attempt, Feedforward):
            low, slower = speed, attempt._replace(speed=speed)
        else:
            high = speed
    if slower is None or not slow_down:
        raise _refusal(robot, law, found, low)
    return slower


def at_speed(values: Array, speed: float) -> Array:
    """Values (K, ...), one a period, of a motion at this share of its speed; the last one ends it."""
    count = math.ceil((len(values) - 1) / speed - 1e-9) + 1
    instants = np.minimum(np.arange(count) * speed, len(values) - 1.0)
    first = np.minimum(instants.astype(int), max(len(values) - 2, 0))
    part = (instants - first).reshape(-1, *(1,) * (values.ndim - 1))
    return values[first] + part * (values[np.minimum(first + 1, len(values) - 1)] - values[first])


def _attempt(
    robot: Robot, setpoints: Array, law: ServojLaw, plant: Plant, corner_tolerance: float
) -> Feedforward | Excess:
    rest = round(_REST / law.cycle)
    padded = np.pad(setpoints, ((rest, rest), (0, 0)), mode="edge")
    delay = plant.phase_lag(law.cycle)
    ahead = advance_setpoints(padded, law.cycle, plant.joint_lag + delay)
    wanted, excess = smooth_motion(law, ahead, delay)
    if excess is None:
        excess = _rounding(robot, law.cycle, ahead, wanted, corner_tolerance)
    if excess is not None:
        return excess._replace(sample=min(max(excess.sample - rest, 0), len(setpoints) - 1))
    # The arm rests for a sample before it moves, and after it until first its velocity and then its command rest.
    left, arrived = (np.flatnonzero((wanted != wanted[end]).any(axis=1)) for end in (0, -1))
    first = min(int(left[0]) - 1, rest) if len(left) else rest
    last = (
        max(int(arrived[-1]) + 4, rest + len(setpoints)) if len(arrived) else rest + len(setpoints)
    )
    wanted = wanted[first:last]
    return Feedforward(rest - first, last - rest - len(setpoints), wanted, law.commands_for(wanted))


def _rounding(
    robot: Robot, period: float, ahead: Array, wanted: Array, tolerance: float
) -> Excess | None:
    """Where a motion (T, n) leaves the setpoints' tool path by most, if by more than the tolerance, m."""
    changed = np.flatnonzero((ahead != wanted).any(axis=1))
    if not len(changed):
        return None
    corner, rounded = (tool_path(robot, q)[:, :3] for q in (ahead, wanted))
    begin, way = corner[:-1], np.diff(corner, axis=0)
    length = np.maximum((way**2).sum(axis=1), 1e-30)
    near = round(_REST / period)
    distances = []
    for k in changed.tolist():
        part = slice(max(k - near, 0), k + near)
        share = np.clip(
            ((rounded[k] - begin[part]) * way[part]).sum(axis=1) / length[part], 0.0, 1.0
        )
        nearest = begin[part] + share[:, np.newaxis] * way[part]
        distances.append(float(np.linalg.norm(rounded[k] - nearest, axis=1).min()))
    worst = int(np.argmax(distances))
    if distances[worst] <= tolerance:
        return None
    return Excess("rounding", int(changed[worst]), None, distances[worst], tolerance)


def _refusal(robot: Robot, law: ServojLaw, excess: Excess, speed: float) -> LimitExceeded:
    """The error for an excess; at this share of its speed the motion is within the limits; 0 if at none."""
    k, name = excess.sample, None if excess.joint is None else robot.joint_names[excess.joint]
    # Solved again at that speed, the motion has other samples at its corners: some room is left for that.
    slower = (
        f"slow it down to {math.floor(95.0 * speed) / 100.0:g} of its speed (--speed-scale), "
        if speed
        else ""
    )
    if excess.quantity == "rounding":
        rounding = f"{1e3 * excess.value:.2f} mm"
        allowed = f"{1e3 * excess.limit:.2f} mm"
        what = f"feedforward would round the path by {rounding}; {allowed} are allowed"
        remedy = "round the corner, allow more (--corner-tolerance)"
    elif excess.quantity == "acceleration":
        what = (
            f"{name} would accelerate at {excess.value:.1f} rad/s^2, and smoothing cannot bring it "
            f"to {excess.limit:g}"
        )
        remedy = "round the corner"
    else:
        what = (
            f"the command for {name} would lead the arm by {excess.value:.3f} rad; {excess.limit:g} rad are allowed. "
            f"Commands lead by the lookahead times the velocity: with {law.lookahead:g} s a joint may move at "
            f"{excess.limit / law.lookahead:.2g} rad/s at most"
        )
        remedy = "use a shorter lookahead (--servo-lookahead)"
    advice = f"{slower}{remedy}, or go without feedforward."
    return LimitExceeded(
        f"The plan was refused: at sample {k} ({k * law.cycle:.3f} s) {what}. {advice[0].upper()}{advice[1:]}",
        excess.quantity,
        sample=k,
        time=k * law.cycle,
        value=excess.value,
        limit=excess.limit,
        joint=name,
    )
