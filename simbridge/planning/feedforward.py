"""Feedforward of a plan: the motion that the arm is to make, and the commands that make it."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

import numpy as np

from simbridge.errors import InvalidParameter, LimitExceeded
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.feedforward import Excess, smoothed, taken_ahead
from simbridge.servo.law import ServojLaw
from simbridge.servo.plant import Plant

# How far the tool's path may be rounded at corners if nothing else is asked for.
CORNER_TOLERANCE = 0.0005  # m
# Rest before and after the motion, in which a corner at its ends is rounded, s; what is not needed is cut off again.
_REST = 0.1
_LIMIT = "let setpoints be limited (--on-limits limit), "


class Feedforward(NamedTuple):
    """Setpoints as the arm is to follow them, with rest at both ends.

    Attributes:
        before, after: How many samples of rest come before and after the setpoints.
        wanted: Joint positions that the arm is to take (T, n), rad, the lag of its joints taken off.
        commands: What makes the controller's targets `wanted` (T, n), rad.
    """

    before: int
    after: int
    wanted: Array
    commands: Array


def feedforward(
    robot: Robot, setpoints: Array, period: float, plant: Plant, corner_tolerance: float, *, limited: bool
) -> Feedforward:
    """The commands with which the arm follows setpoints without lag.

    Args:
        robot: The arm.
        setpoints: Joint positions (K, n), rad, one a period.
        period: Control period, s.
        plant: The servo law's tuning and the lag of the joints.
        corner_tolerance: How far the tool's path may be rounded, m.
        limited: Whether setpoints were limited already, so that a refusal does not advise it.

    Raises:
        InvalidParameter: There is not one setpoint for each cycle of the controller.
        LimitExceeded: A corner cannot be rounded within the tolerance and the limits.
    """
    law = plant.law(robot.period)
    if not abs(period - robot.period) < 1e-9:
        needed = f"the controller's cycle of {robot.period:g} s: feedforward needs a command for each cycle"
        raise InvalidParameter("period", f"{period:g} s", needed)
    rest = round(_REST / period)
    padded = np.pad(setpoints, ((rest, rest), (0, 0)), mode="edge")
    ahead = taken_ahead(padded, law.cycle, plant.joint_lag)
    wanted, excess = smoothed(law, ahead)
    if excess is not None:
        _refuse_excess(robot, rest, law, excess, limited)
    # The arm rests for a sample before it moves, and after it until first its velocity and then its command rest.
    left, arrived = (np.flatnonzero((wanted != wanted[end]).any(axis=1)) for end in (0, -1))
    first = min(int(left[0]) - 1, rest) if len(left) else rest
    last = max(int(arrived[-1]) + 4, rest + len(setpoints)) if len(arrived) else rest + len(setpoints)
    wanted = wanted[first:last]
    _check_rounding(robot, period, rest - first, ahead[first:last], wanted, corner_tolerance, limited)
    return Feedforward(rest - first, last - rest - len(setpoints), wanted, law.commands_for(wanted))


def _check_rounding(
    robot: Robot, period: float, rest: int, ahead: Array, wanted: Array, tolerance: float, limited: bool
) -> None:
    """Refuse a motion (T, n) whose tool path is farther from that of the setpoints than the tolerance, m."""
    changed = np.flatnonzero((ahead != wanted).any(axis=1))
    if not len(changed):
        return
    corner, rounded = (tool_path(robot, q)[:, :3] for q in (ahead, wanted))
    begin, way = corner[:-1], np.diff(corner, axis=0)
    length = np.maximum((way**2).sum(axis=1), 1e-30)
    near = round(_REST / period)
    distances = []
    for k in changed.tolist():
        part = slice(max(k - near, 0), k + near)
        share = np.clip(((rounded[k] - begin[part]) * way[part]).sum(axis=1) / length[part], 0.0, 1.0)
        nearest = begin[part] + share[:, np.newaxis] * way[part]
        distances.append(float(np.linalg.norm(rounded[k] - nearest, axis=1).min()))
    worst = int(np.argmax(distances))
    if distances[worst] > tolerance:
        k, value = int(changed[worst] - rest), distances[worst]
        raise LimitExceeded(
            f"The plan was refused: at sample {k} ({k * period:.3f} s) feedforward would round the path by "
            f"{1e3 * value:.2f} mm; {1e3 * tolerance:.2f} mm are allowed. Slow it down (--speed-scale), round the "
            f"corner, {'' if limited else _LIMIT}or allow more (--corner-tolerance).",
            "rounding",
            sample=k,
            time=k * period,
            value=value,
            limit=tolerance,
            joint=None,
        )


def _refuse_excess(robot: Robot, rest: int, law: ServojLaw, excess: Excess, limited: bool) -> NoReturn:
    k, name = excess.sample - rest, robot.joint_names[excess.joint]
    if excess.quantity == "acceleration":
        what = (
            f"{name} would accelerate at {excess.value:.1f} rad/s^2, and smoothing cannot bring it to {excess.limit:g}"
        )
    else:
        what = (
            f"the command for {name} would lead the arm by {excess.value:.3f} rad; {excess.limit:g} rad are allowed. "
            f"With a lookahead of {law.lookahead:g} s that is a joint at {excess.limit / law.lookahead:.2g} rad/s"
        )
    raise LimitExceeded(
        f"The plan was refused: at sample {k} ({k * law.cycle:.3f} s) {what}. Slow it down (--speed-scale), "
        f"{'' if limited else _LIMIT}use a shorter lookahead (--servo-lookahead), or go without feedforward.",
        excess.quantity,
        sample=k,
        time=k * law.cycle,
        value=excess.value,
        limit=excess.limit,
        joint=name,
    )
