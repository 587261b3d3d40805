"""Samples the path that the goals of a joint trajectory controller ask for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simbridge.judging.log import TrajectoryGoal
from simbridge.robot.pose import Array


def goal_positions(goals: Sequence[TrajectoryGoal], instants: Array) -> Array:
    """Return where goals want the joints (T, n), rad: NaN before the first goal.

    A goal starts when it is received, and replaces the one before it. After a goal's end the joints
    stay at its last point. Between points with velocities the path is cubic, otherwise linear.

    Args:
        goals: The goals, in the order in which they were received.
        instants: Instants (T,), s from the log's beginning.
    """
    joints = goals[0].q.shape[1]
    positions = np.full((len(instants), joints), np.nan)
    ends = [*(goal.received for goal in goals[1:]), np.inf]
    for goal, end in zip(goals, ends, strict=True):
        is_current = (instants >= goal.received) & (instants < end)
        positions[is_current] = _sample_goal(goal, instants[is_current] - goal.received)
    return positions


def _sample_goal(goal: TrajectoryGoal, since_start: Array) -> Array:
    """Return the positions (T, n), rad, of a goal at times since its start (T,), s."""
    times = goal.times
    if len(times) < 2 or goal.qd is None:
        columns = [np.interp(since_start, times, joint) for joint in goal.q.T]
        return np.stack(columns, axis=1)

    # The points before and after each time, and the fraction of the span between them.
    clipped = np.clip(since_start, times[0], times[-1])
    after = np.clip(np.searchsorted(times, clipped, side="right"), 1, len(times) - 1)
    before = after - 1
    span = (times[after] - times[before])[:, np.newaxis]
    fraction = (clipped - times[before])[:, np.newaxis] / span

    # The basis functions of cubic Hermite interpolation, which attains the positions and the
    # velocities of both points.
    position_weight_before = (1.0 + 2.0 * fraction) * (1.0 - fraction) ** 2
    velocity_weight_before = fraction * (1.0 - fraction) ** 2
    position_weight_after = fraction**2 * (3.0 - 2.0 * fraction)
    velocity_weight_after = fraction**2 * (fraction - 1.0)
    positions: Array = (
        position_weight_before * goal.q[before]
        + velocity_weight_before * span * goal.qd[before]
        + position_weight_after * goal.q[after]
        + velocity_weight_after * span * goal.qd[after]
    )
    return positions
