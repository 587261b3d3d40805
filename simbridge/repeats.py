"""ISO 9283-style figures of several runs of one scenario: each run is a cycle.

They are the arm's own word, "self-reported", unless the positions given are an outside witness's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import UnusableSamples
from simbridge.evaluation import Array, Evaluation
from simbridge.metrics.iso9283 import (
    Figure,
    corner_figures,
    path_figures,
    plane_crossings,
    pose_figures,
    velocity_figures,
)
from simbridge.trajectory import Trajectory

POINTS = 100
"""Planes across the path in which AT and RT are measured, evenly spread over its length."""

SHARP = np.deg2rad(30.0)
"""A turn of the path within one sample by more than this is a corner."""

STEADY = 0.1
"""Seconds on either side of an instant over which the commanded velocity must not change for the speed to be judged."""

LEAST_STEADY = 0.1
"""Part of the motion that must be at one speed, or no velocity figure is made."""


@dataclass(frozen=True)
class _Cycle:
    """What the figures need of a run: its positions (T, 3) at its stamps (T,), plan times (T,) and its delay, s."""

    path: Trajectory
    stamp: Array
    plan_time: Array
    positions: Array
    delay: float

    @staticmethod
    def of(run: Evaluation) -> _Cycle:
        if len(run.log.stamp) == 0:
            raise UnusableSamples("cycles", "there are none, or one has no sample.")
        positions = np.ascontiguousarray(run.attained[:, :3])
        return _Cycle(run.plan.trajectory, run.log.stamp, run.log.plan_time, positions, run.tracking["delay_s"] or 0.0)


def iso_figures(cycles: Iterable[Evaluation], attained: Sequence[Array] | None = None) -> list[Figure]:
    """AP and RP of the last pose, AT and RT of the path; AV, RV and FV where it has one speed; CR and CO of its first
    corner.

    Args:
        cycles: Runs of one and the same trajectory; taken one at a time.
        attained: Positions (T_j, 3) at each run's stamps, in place of the arm's own.

    Raises:
        UnusableSamples: There are no runs, one has no samples, or they are not of one trajectory.
    """
    runs = [_Cycle.of(run) for run in cycles]
    if not runs:
        raise UnusableSamples("cycles", "there are none, or one has no sample.")
    path = runs[0].path
    for run in runs[1:]:
        if not (np.array_equal(run.path.poses, path.poses) and np.array_equal(run.path.elapsed, path.elapsed)):
            raise UnusableSamples("cycles", "they are not runs of one trajectory, with one speed scale.")
    if attained is not None:
        runs = [replace(run, positions=positions) for run, positions in zip(runs, attained, strict=True)]
    last = path.poses[-1, :3]
    figures = [*pose_figures(last, np.array([run.positions[-1] for run in runs]))]
    points, directions, times = _planes(path)
    if len(points) == 0:
        return figures
    crossed = [plane_crossings(points, directions, _due(run, times), run.stamp, run.positions) for run in runs]
    figures += path_figures(points, np.array(crossed))
    figures += _velocity(path, runs)
    figures += _corner(path, runs)
    return figures


def _due(run: _Cycle, times: Array) -> Array:
    """Instants of a run's clock at which the arm is at the places of the trajectory's instants, its delay included."""
    return np.interp(times, run.plan_time, run.stamp) + run.delay


def _planes(path: Trajectory) -> tuple[Array, Array, Array]:
    """Points (m, 3) evenly along a path, its directions (m, 3) and its instants (m,) there."""
    steps = np.diff(path.poses[:, :3], axis=0)
    lengths = np.linalg.norm(steps, axis=1)
    along = np.concatenate([[0.0], np.cumsum(lengths)])
    if along[-1] == 0.0:
        return np.empty((0, 3)), np.empty((0, 3)), np.empty(0)
    at = (np.arange(POINTS) + 0.5) / POINTS * along[-1]
    piece = np.searchsorted(along, at, side="right") - 1
    part = (at - along[piece]) / lengths[piece]
    points = path.poses[piece, :3] + part[:, None] * steps[piece]
    times = path.elapsed[piece] + part * np.diff(path.elapsed)[piece]
    return points, steps[piece] / lengths[piece, None], times


def _velocities(path: Trajectory, times: Array) -> Array:
    """The commanded velocity (K, 3) from each instant's piece of the path."""
    velocity = np.diff(path.poses[:, :3], axis=0) / np.diff(path.elapsed)[:, None]
    return velocity[np.clip(np.searchsorted(path.elapsed, times, side="right") - 1, 0, len(velocity) - 1)]


def _velocity(path: Trajectory, runs: Sequence[_Cycle]) -> tuple[Figure, ...]:
    speeds = np.linalg.norm(_velocities(path, np.linspace(0.0, path.duration, 1001)), axis=1)
    commanded = float(np.median(speeds))
    if commanded == 0.0:
        return ()
    found = []
    for run in runs:
        due = np.interp(run.stamp - run.delay, run.stamp, run.plan_time)
        steady = _steady(path, due, commanded)
        if len(due) < 3 or np.mean(steady) < LEAST_STEADY:
            return ()
        speed = np.linalg.norm(np.gradient(run.positions, run.stamp, axis=0), axis=1)
        found.append(speed[steady])
    return velocity_figures(commanded, found)


def _steady(path: Trajectory, times: Array, commanded: float) -> NDArray[np.bool_]:
    """Where the commanded velocity has the commanded speed and keeps it, and its direction nearly, for a while."""
    now, before, after = (_velocities(path, times + shift) for shift in (0.0, -STEADY, STEADY))
    within = (times >= STEADY) & (times <= path.duration - STEADY)
    right = np.abs(np.linalg.norm(now, axis=1) - commanded) <= 0.01 * commanded
    # A circle turns meanwhile; a corner turns at once.
    kept = [np.linalg.norm(other - now, axis=1) <= 0.3 * commanded for other in (before, after)]
    return np.asarray(within & right & kept[0] & kept[1])


def _corner(path: Trajectory, runs: Sequence[_Cycle]) -> tuple[Figure, ...]:
    """CR and CO of the first corner, from the half second on either side of it."""
    steps = np.diff(path.poses[:, :3], axis=0)
    lengths = np.linalg.norm(steps, axis=1)
    moving = lengths > 0.0
    cosines = np.einsum("ij,ij->i", steps[:-1], steps[1:]) / np.where(
        moving[:-1] & moving[1:], lengths[:-1] * lengths[1:], np.inf
    )
    sharp = np.flatnonzero(moving[:-1] & moving[1:] & (cosines < np.cos(SHARP)))
    if len(sharp) == 0:
        return ()
    k = int(sharp[0]) + 1
    around = np.array([path.elapsed[k] - 0.5, path.elapsed[k] + 0.5])
    if len(sharp) > 1:
        around[1] = min(around[1], 0.5 * (path.elapsed[k] + path.elapsed[int(sharp[1]) + 1]))
    cut = []
    for run in runs:
        low, high = np.searchsorted(run.stamp, _due(run, around))
        cut.append(run.positions[low:high])
    return corner_figures(path.poses[k, :3], steps[k - 1], steps[k], cut)
