"""The path that goals of a joint trajectory controller ask for, at the instants of a log."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simbridge.judging.log import TrajectoryGoal
from simbridge.robot.pose import Array


def goal_positions(goals: Sequence[TrajectoryGoal], instants: Array) -> Array:
    """Return where goals want the joints (T, n), rad: NaN before the first goal.

    A goal starts when it is received, and replaces the one before it. After its end its last point
    holds. Between points with velocities the path is cubic, otherwise linear.

    Args:
        goals: The goals, in the order in which they were received.
        instants: Instants (T,), s from the log's beginning.
    """
    joints = goals[0].q.shape[1]
    positions = np.full((len(instants), joints), np.nan)
    ends = [*(goal.received for goal in goals[1:]), np.inf]
    for goal, end in zip(goals, ends, strict=True):
        is_current = (instants >= goal.received) & (instants < end)
        positions[is_current] = _path(goal, instants[is_current] - goal.received)
    return positions


def _path(goal: TrajectoryGoal, since_start: Array) -> Array:
    """Return the positions (T, n), rad, of a goal at times since its start (T,), s."""
    times = goal.times
    if len(times) < 2 or goal.qd is None:
        columns = [np.interp(since_start, times, joint) for joint in goal.q.T]
        return np.stack(columns, axis=1)

    # Cubic Hermite polynomials through positions and velocities of the two points around.
    clipped = np.clip(since_start, times[0], times[-1])
    after = np.clip(np.searchsorted(times, clipped, side="right"), 1, len(times) - 1)
    before = after - 1
    span = (times[after] - times[before])[:, np.newaxis]
    fraction = (clipped - times[before])[:, np.newaxis] / span

    start_weight = (1.0 + 2.0 * fraction) * (1.0 - fraction) ** 2
    start_rate_weight = fraction * (1.0 - fraction) ** 2
    end_weight = fraction**2 * (3.0 - 2.0 * fraction)
    end_rate_weight = fraction**2 * (fraction - 1.0)
    positions: Array = (
        start_weight * goal.q[before]
        + start_rate_weight * span * goal.qd[before]
        + end_weight * goal.q[after]
        + end_rate_weight * span * goal.qd[after]
    )
    return positions
