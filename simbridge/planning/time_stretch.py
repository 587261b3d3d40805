"""Time stretching: a joint path is passed more slowly wherever the tool would be too fast."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simbridge.planning.plan import CLOCK_SLOPE
from simbridge.robot.kinematics import tool_speeds
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# Fraction of the tool speed limit that is aimed for: chords are a little shorter than their arcs.
TOOL_SPEED_FRACTION = 0.98
# Largest number of times that time is stretched until the tool keeps its limit.
MAX_STRETCHES = 10
# Rounding, in periods, that adds no sample to a motion.
PERIOD_ROUNDING = 1e-9
# Smallest speed of the tool that is used as a divisor, m/s.
LEAST_SPEED = 1e-12


class TimedSetpoints(NamedTuple):
    """A solution and its setpoints, with the time at which they pass the trajectory.

    Attributes:
        solution: The solver's joint positions (T, n), rad.
        setpoints: Joint positions to send (T, n), rad.
        changed: Which setpoints the limiter changed (T,).
        times: The instant on the trajectory to which each sample belongs (T,), s.
    """

    solution: Array
    setpoints: Array
    changed: NDArray[np.bool_]
    times: Array


def stretch_time(
    robot: Robot, motion: TimedSetpoints, period: float, *, max_tool_speed: float
) -> TimedSetpoints:
    """Follow the same joint path, with its time stretched wherever the tool would be too fast.

    Args:
        robot: The arm.
        motion: The motion, one sample a period.
        period: Control period, s.
        max_tool_speed: Largest speed of the TCP, m/s.

    Returns:
        A motion of as many samples or more. If the tool is still too fast after MAX_STRETCHES, the
        check of the plan refuses it.
    """
    original = np.arange(len(motion.setpoints), dtype=float) * period
    # Instants of the unstretched motion to which the setpoints belong.
    instants = original
    path = motion.setpoints

    for _ in range(MAX_STRETCHES):
        if len(path) < 2 or tool_speeds(robot, path, period).max() <= max_tool_speed:
            break

        # Pass each setpoint when it is due, and take one sample a period of this slower motion.
        due_times = find_due_times(robot, path, period, max_tool_speed)
        count = int(np.ceil(due_times[-1] / period - PERIOD_ROUNDING)) + 1
        sample_times = np.minimum(np.arange(count) * period, due_times[-1])
        instants = np.interp(sample_times, due_times, instants)
        path = _interpolate(instants, original, motion.setpoints)

    if instants is original:
        return motion
    # A sample between a changed one and another counts as changed.
    return TimedSetpoints(
        solution=_interpolate(instants, original, motion.solution),
        setpoints=path,
        changed=np.interp(instants, original, motion.changed.astype(float)) > 0.0,
        times=np.interp(instants, original, motion.times),
    )


def find_due_times(robot: Robot, setpoints: Array, period: float, max_tool_speed: float) -> Array:
    """Return when each setpoint is due so that the tool keeps within its speed, s (T,).

    Time slows down smoothly before an interval that is too fast, and speeds up after it.

    Args:
        robot: The arm.
        setpoints: Joint positions (T, n), rad, one a period.
        period: Control period, s.
        max_tool_speed: Largest speed of the TCP, m/s.
    """
    speeds = tool_speeds(robot, setpoints, period)
    nonzero_speeds = np.maximum(speeds, LEAST_SPEED)
    rate = np.minimum(1.0, TOOL_SPEED_FRACTION * max_tool_speed / nonzero_speeds)

    # The rate changes by this much within a period at most, forwards and backwards.
    slope = CLOCK_SLOPE * period
    for k in range(1, len(rate)):
        rate[k] = min(rate[k], rate[k - 1] + slope)
    for k in range(len(rate) - 2, -1, -1):
        rate[k] = min(rate[k], rate[k + 1] + slope)

    return np.concatenate([[0.0], np.cumsum(period / rate)])


def _interpolate(instants: Array, times: Array, joints: Array) -> Array:
    """Return joint positions (K, n), rad, at instants (K,), s, from samples (T, n)."""
    return np.stack([np.interp(instants, times, joint) for joint in joints.T], axis=1)
