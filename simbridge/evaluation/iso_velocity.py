"""Accuracy AV, repeatability RV and fluctuation FV of the velocity of a motion at one speed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simbridge.evaluation.iso_cycle import Cycle, FigureSet, rest_mask
from simbridge.evaluation.metrics import iso9283
from simbridge.evaluation.metrics.samples import derivatives, resample_uniform
from simbridge.robot.pose import Array
from simbridge.trajectory.trajectory import Trajectory

# The speed is measured where the commanded velocity does not change for this time before and
# after, s.
STEADY_S = 0.1
# Part of the motion that must be at one speed.
MIN_STEADY = 0.1
# Instants at which the commanded speed is looked up.
INSTANTS = 1001
# Largest difference of a speed that counts as the commanded one, as a part of it.
MAX_SPEED_DIFFERENCE = 0.01
# Largest change of a velocity that counts as steady, as a part of the commanded speed: on a circle
# the direction changes slowly, at a corner at once.
MAX_VELOCITY_CHANGE = 0.3


def velocity_figures(
    path: Trajectory, cycles: Sequence[Cycle], rests: Sequence[tuple[float, float]]
) -> FigureSet:
    """Return AV, RV and FV at the median speed of the motion.

    Args:
        path: The commanded trajectory.
        cycles: What the arm attained; speeds are smoothed derivatives.
        rests: Begin and end of the target's rests, s.
    """
    no_figures = FigureSet(
        (), ["No AV, RV or FV: the target keeps one velocity for less than a tenth of the motion."]
    )
    if len(path.poses) < 2:
        return no_figures

    # The commanded speed.
    instants = np.linspace(0.0, path.duration, INSTANTS)
    target_speeds = np.linalg.norm(_velocities(path, instants), axis=1)
    is_moving = (target_speeds > 0.0) & ~rest_mask(instants, rests)
    if not is_moving.any():
        return no_figures
    commanded = float(np.median(target_speeds[is_moving]))

    # The attained speeds of each cycle, at samples for which the target keeps the commanded speed.
    speeds = []
    for cycle in cycles:
        if len(cycle.stamp) < 2:
            return no_figures

        period, positions = resample_uniform(cycle.stamp, cycle.positions)
        velocity, _ = derivatives(positions, period)
        # The derivative has no value at the ends.
        first = (len(positions) - len(velocity)) // 2
        stamps = cycle.stamp[0] + period * (first + np.arange(len(velocity)))

        # The time on the plan at which the target was where the arm is at each sample: the arm
        # follows with a delay.
        due = np.interp(stamps - cycle.delay, cycle.stamp, cycle.plan_time)

        # The samples for which the target keeps the commanded speed at that time. At least
        # MIN_STEADY of the samples at which the target moves must remain.
        is_steady = _steady_mask(path, due, commanded) & ~rest_mask(due, rests)
        if is_steady.sum() < MIN_STEADY * is_moving.mean() * len(cycle.stamp):
            return no_figures
        speeds.append(np.linalg.norm(velocity[is_steady], axis=1))
    return FigureSet(iso9283.velocity_figures(commanded, speeds), [])


def _velocities(path: Trajectory, times: Array) -> Array:
    """Return the commanded velocities (K, 3), m/s, of the path's segments at instants (K,), s."""
    velocity = np.diff(path.poses[:, :3], axis=0) / np.diff(path.elapsed)[:, None]
    segment = np.searchsorted(path.elapsed, times, side="right") - 1
    return velocity[np.clip(segment, 0, len(velocity) - 1)]


def _steady_mask(path: Trajectory, times: Array, commanded: float) -> NDArray[np.bool_]:
    """Return around which instants the target keeps the commanded speed and nearly its direction.

    Args:
        path: The commanded trajectory.
        times: Instants on the trajectory (K,), s.
        commanded: The commanded speed, m/s.
    """
    velocity = _velocities(path, times)
    velocity_before = _velocities(path, times - STEADY_S)
    velocity_after = _velocities(path, times + STEADY_S)

    has_neighbours = (times >= STEADY_S) & (times <= path.duration - STEADY_S)
    speed_difference = np.abs(np.linalg.norm(velocity, axis=1) - commanded)
    has_speed = speed_difference <= MAX_SPEED_DIFFERENCE * commanded

    max_change = MAX_VELOCITY_CHANGE * commanded
    was_same = np.linalg.norm(velocity_before - velocity, axis=1) <= max_change
    stays_same = np.linalg.norm(velocity_after - velocity, axis=1) <= max_change
    return np.asarray(has_neighbours & has_speed & was_same & stays_same)
