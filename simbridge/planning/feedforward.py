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

# How far the tool's path may be rounded at corners if nothing else is asked for, m.
CORNER_TOLERANCE = 0.0005
# Rest before and after the motion, in which a corner at its ends is rounded, s; what is not needed
# is cut off again.
REST_S = 0.1
# Samples from the last one that moves until velocity and command rest, too.
SETTLING_SAMPLES = 4
# Halvings in the search for a speed: the result is within 3 % of the motion's speed.
HALVINGS = 5
# Shortest length of a piece of the tool's path, squared, m^2: the tool may rest.
MIN_SQUARED_LENGTH = 1e-30
# Difference up to which two periods are equal, s.
PERIOD_ROUNDING_S = 1e-9
# Rounding, in samples, that adds no sample to a motion that is resampled.
SAMPLE_ROUNDING = 1e-9
# Fraction of the highest possible speed that is advised: solved again at another speed, a motion
# has other samples at its corners.
ADVISED_FRACTION = 0.95


class Feedforward(NamedTuple):
    """Setpoints as the arm is to follow them, with rest at both ends.

    Attributes:
        before: Number of samples of rest before the setpoints.
        after: Number of samples of rest after the setpoints.
        joint_targets: Joint targets of a law without phase (T, n), rad, ahead by the lag of phase
            and joints.
        commands: Commands (T, n), rad, with which such a law has these targets.
        speed: Fraction of the setpoints' speed: less than 1 where they were slowed down.
    """

    before: int
    after: int
    joint_targets: Array
    commands: Array
    speed: float = 1.0


def compute_feedforward(
    robot: Robot,
    setpoints: Array,
    period: float,
    *,
    plant: Plant,
    corner_tolerance: float,
    slow_down: bool,
) -> Feedforward:
    """Compute the commands with which the arm follows setpoints without lag.

    Args:
        robot: The arm.
        setpoints: Joint positions (K, n), rad, one a period.
        period: Control period, s.
        plant: The arm behind servoj.
        corner_tolerance: How far the tool's path may be rounded, m.
        slow_down: Whether to slow the whole motion down where a limit cannot be kept otherwise,
            rather than to refuse.

    Raises:
        InvalidParameter: There is not one setpoint for each cycle of the controller.
        LimitExceeded: A corner cannot be rounded within the tolerance and the limits; names a speed
            that can.
    """
    law = plant.law(robot.period)
    if not abs(period - robot.period) < PERIOD_ROUNDING_S:
        needed = (
            f"the controller's cycle of {robot.period:g} s: feedforward needs a command for each "
            "cycle"
        )
        raise InvalidParameter("period", f"{period:g} s", needed)

    # Try full speed.
    at_full_speed = _attempt(robot, setpoints, law, plant=plant, corner_tolerance=corner_tolerance)
    if isinstance(at_full_speed, Feedforward):
        return at_full_speed

    # Search the highest speed that keeps the limits, by halving the interval between the highest
    # speed that is known to keep them and the lowest that is known not to.
    slower: Feedforward | None = None
    possible_speed = 0.0
    impossible_speed = 1.0
    for _ in range(HALVINGS):
        speed = 0.5 * (possible_speed + impossible_speed)
        slow_setpoints = resample_at_speed(setpoints, speed)
        attempt = _attempt(
            robot, slow_setpoints, law, plant=plant, corner_tolerance=corner_tolerance
        )
        if isinstance(attempt, Feedforward):
            possible_speed = speed
            slower = attempt._replace(speed=speed)
        else:
            impossible_speed = speed

    # Even if the motion must not be slowed down, the refusal names the speed.
    if slower is None or not slow_down:
        raise _refusal(robot, law, at_full_speed, possible_speed)
    return slower


def resample_at_speed(values: Array, speed: float) -> Array:
    """Return samples of a motion at a fraction of its speed; the last one ends it.

    Args:
        values: Samples (K, ...), one a period.
        speed: Fraction, 0 to 1.
    """
    last = len(values) - 1
    count = math.ceil(last / speed - SAMPLE_ROUNDING) + 1
    instants = np.minimum(np.arange(count) * speed, float(last))

    # Linear between the samples before and after each instant.
    before = np.minimum(instants.astype(int), max(last - 1, 0))
    after = np.minimum(before + 1, last)
    other_axes = (1,) * (values.ndim - 1)
    progress = (instants - before).reshape(-1, *other_axes)
    return values[before] + progress * (values[after] - values[before])


def _attempt(
    robot: Robot, setpoints: Array, law: ServojLaw, *, plant: Plant, corner_tolerance: float
) -> Feedforward | Excess:
    """Return the commands for setpoints at their speed, or the limit that these cannot keep."""
    # Rest before and after the motion.
    rest = round(REST_S / law.cycle)
    padded = np.pad(setpoints, ((rest, rest), (0, 0)), mode="edge")

    # The joint targets are the setpoints, taken ahead by the arm's lag and smoothed at corners. The
    # delay that the phase adds to the lag also makes the commands lead the arm by more, which
    # `smooth_motion` counts where it limits their lead.
    delay = plant.phase_lag(law.cycle)
    ahead = advance_setpoints(padded, law.cycle, plant.joint_lag + delay)
    joint_targets, excess = smooth_motion(law, ahead, delay)
    if excess is None:
        excess = _check_rounding(
            robot, law.cycle, ahead, joint_targets=joint_targets, tolerance=corner_tolerance
        )
    if excess is not None:
        sample = min(max(excess.sample - rest, 0), len(setpoints) - 1)
        return excess._replace(sample=sample)

    # Cut off the rest that is not needed. One sample of rest stays before the motion. After it so
    # much rest stays that velocity and command come to rest, too. The setpoints are never cut.
    first = rest
    end = rest + len(setpoints)
    not_at_start = np.flatnonzero((joint_targets != joint_targets[0]).any(axis=1))
    if len(not_at_start):
        first = min(int(not_at_start[0]) - 1, rest)
    not_at_end = np.flatnonzero((joint_targets != joint_targets[-1]).any(axis=1))
    if len(not_at_end):
        end = max(int(not_at_end[-1]) + SETTLING_SAMPLES, end)

    joint_targets = joint_targets[first:end]
    return Feedforward(
        before=rest - first,
        after=end - rest - len(setpoints),
        joint_targets=joint_targets,
        commands=law.commands_for(joint_targets),
    )


def _check_rounding(
    robot: Robot, period: float, ahead: Array, *, joint_targets: Array, tolerance: float
) -> Excess | None:
    """Return where a motion leaves the setpoints' tool path by most, if by more than allowed.

    Args:
        robot: The arm.
        period: Time from one sample to the next, s.
        ahead: The setpoints, taken ahead (T, n), rad.
        joint_targets: The smoothed setpoints (T, n), rad.
        tolerance: How far the tool may leave its path, m.
    """
    changed = np.flatnonzero((ahead != joint_targets).any(axis=1))
    if not len(changed):
        return None

    # Pieces of the tool's path: where they begin, and where they lead.
    path = tool_path(robot, ahead)[:, :3]
    rounded = tool_path(robot, joint_targets)[:, :3]
    begin = path[:-1]
    piece = np.diff(path, axis=0)
    squared_length = np.maximum((piece**2).sum(axis=1), MIN_SQUARED_LENGTH)

    # Distance of each changed sample from the pieces around it.
    reach = round(REST_S / period)
    distances = []
    for k in changed.tolist():
        near = slice(max(k - reach, 0), k + reach)
        along = ((rounded[k] - begin[near]) * piece[near]).sum(axis=1)
        fraction = np.clip(along / squared_length[near], 0.0, 1.0)
        nearest = begin[near] + fraction[:, np.newaxis] * piece[near]
        distances.append(float(np.linalg.norm(rounded[k] - nearest, axis=1).min()))

    worst = int(np.argmax(distances))
    if distances[worst] <= tolerance:
        return None
    return Excess("rounding", int(changed[worst]), None, distances[worst], tolerance)


def _refusal(robot: Robot, law: ServojLaw, excess: Excess, speed: float) -> LimitExceeded:
    """Return the error for a limit that cannot be kept.

    Args:
        robot: The arm.
        law: The controller's servo law; it takes one sample a cycle.
        excess: The limit.
        speed: Fraction of its speed at which the motion keeps the limits; 0 if there is none.
    """
    joint = None if excess.joint is None else robot.joint_names[excess.joint]

    if excess.quantity == "rounding":
        rounding = f"{1e3 * excess.value:.2f} mm"
        allowed = f"{1e3 * excess.limit:.2f} mm"
        problem = f"feedforward would round the path by {rounding}; at most {allowed} is allowed"
        remedy = "round the corner, allow more (--corner-tolerance)"
    elif excess.quantity == "acceleration":
        problem = (
            f"{joint} would accelerate at {excess.value:.1f} rad/s^2, and smoothing cannot bring "
            f"it to {excess.limit:g}"
        )
        remedy = "round the corner"
    else:
        problem = (
            f"the command for {joint} would lead the arm by {excess.value:.3f} rad; at most "
            f"{excess.limit:g} rad is allowed. Commands lead by the lookahead times the velocity: "
            f"with {law.lookahead:g} s a joint may move at {excess.limit / law.lookahead:.2g} "
            "rad/s at most"
        )
        remedy = "use a shorter lookahead (--servo-lookahead)"

    advice = f"{remedy}, or turn feedforward off."
    if speed:
        # Rounded down to two digits.
        advised = math.floor(100.0 * ADVISED_FRACTION * speed) / 100.0
        advice = f"slow it down to {advised:g} times its speed (--speed-scale), {advice}"

    time = excess.sample * law.cycle
    return LimitExceeded(
        f"The plan was refused: at sample {excess.sample} ({time:.3f} s) {problem}. "
        f"{advice[0].upper()}{advice[1:]}",
        excess.quantity,
        sample=excess.sample,
        time=time,
        value=excess.value,
        limit=excess.limit,
        joint=joint,
    )
