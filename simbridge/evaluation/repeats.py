"""ISO 9283-style figures of several runs of one scenario: each run is a cycle.

They are the arm's own word, "self-reported", unless the positions given are an outside witness's, "external".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import UnusableSamples
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.metrics.corners import corners, unclear_turns
from simbridge.evaluation.metrics.effort import derivatives, evenly
from simbridge.evaluation.metrics.iso9283 import Figure, corner_figures, path_figures, plane_crossings, velocity_figures
from simbridge.evaluation.metrics.stops import MIN_REST, jumps, rests, stops
from simbridge.evaluation.pose_repeatability import Cycle, stop_figures
from simbridge.robot.pose import Array
from simbridge.text import counted
from simbridge.trajectory.trajectory import Trajectory

POINTS = 100
"""Planes across the path in which AT and RT are measured, evenly spread over its length."""

MIN_CROSSED = 0.9
"""Part of the planes that every cycle must cross, or there is no AT or RT."""

STEADY = 0.1
"""Seconds on either side of an instant over which the commanded velocity must not change for the speed to be judged."""

MIN_STEADY = 0.1
"""Part of the motion that must be at one speed, or no velocity figure is made."""


@dataclass(frozen=True)
class IsoFigures:
    """What cycles of one motion tell.

    Attributes:
        witness: Whose word it is.
        figures: Those of the stops, stop by stop, then those of the path.
        stops: The commanded position (3,) of every stop, m.
        limit_band: Within which the arm counts as settled, m; None without stops.
        missing: Why some figures are not there, and what others leave out, as sentences.
    """

    witness: Literal["self-reported", "external"]
    figures: tuple[Figure, ...]
    stops: tuple[tuple[float, float, float], ...]
    limit_band: float | None
    missing: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """As summary.json and evaluation.json hold it."""
        return {
            "witness": self.witness,
            "figures": [asdict(figure) for figure in self.figures],
            "stops_m": [list(position) for position in self.stops],
            "limit_band_m": self.limit_band,
            "missing": list(self.missing),
        }


def iso_figures(cycles: Iterable[Evaluation], attained: Sequence[Array] | None = None) -> IsoFigures:
    """AP, RP, stabilisation time and OV of every pose at which the target rests; AT and RT of the path; AV, RV and FV
    where it has one speed; CR and CO of its corners.

    Args:
        cycles: Runs of one and the same trajectory; taken one at a time.
        attained: Positions (T_j, 3) at each run's stamps from an outside witness, in place of the arm's own.

    Raises:
        UnusableSamples: There are no runs, one has no samples, or they are not of one trajectory.
    """
    plans, runs = [], []
    for run in cycles:
        if len(run.log.stamp) == 0:
            break
        plans.append((run.plan.trajectory, run.plan.hold))
        own = np.ascontiguousarray(run.attained[:, :3])
        runs.append(Cycle(run.log.stamp, run.log.plan_time, own, run.tracking["delay_s"] or 0.0))
    else:
        if runs:
            return _figures(plans, runs, attained)
    raise UnusableSamples("cycles", "there are none, or one has no sample.")


def _figures(
    plans: Sequence[tuple[Trajectory, Any]], runs: Sequence[Cycle], attained: Sequence[Array] | None
) -> IsoFigures:
    path, hold = plans[0]
    for other, other_hold in plans[1:]:
        same = np.array_equal(other.poses, path.poses) and np.array_equal(other.elapsed, path.elapsed)
        if not same or other_hold != hold:
            raise UnusableSamples("cycles", "they are not runs of one trajectory, with one speed scale.")
    if attained is not None:
        runs = [replace(run, positions=positions) for run, positions in zip(runs, attained, strict=True)]
    resting, found = rests(path, hold), stops(path, hold)
    figures, band, missing = stop_figures(found, runs)
    if not found:
        # A rest that is no stop is the one at the start: the arm comes there by its approach.
        besides = " but at its start" if resting else ""
        missing.append(
            f"No AP, RP, stabilisation time or OV: the path comes nowhere to a rest of {MIN_REST:g} s{besides}, and "
            "where the target moves a pose error is mostly delay."
        )
    if jumps(path, hold):
        missing.append("No figures of the path: the target jumps from pose to pose, and there is no path in between.")
    else:
        for part in (_path(path, runs), _velocity(path, runs, resting), _corners(path, runs, resting)):
            figures += part[0]
            missing += part[1]
    return IsoFigures(
        "self-reported" if attained is None else "external",
        tuple(figures),
        tuple((float(x), float(y), float(z)) for x, y, z in (stop.position for stop in found)),
        band,
        tuple(missing),
    )


_Found = tuple[Sequence[Figure], list[str]]


def _path(path: Trajectory, runs: Sequence[Cycle]) -> _Found:
    points, directions, times = _planes(path)
    if len(points) == 0:
        return (), ["No figures of the path: it has no length."]
    crossed = np.array(
        [plane_crossings(points, directions, _late(run, times), run.stamp, run.positions) for run in runs]
    )
    through = int(np.isfinite(crossed).all(axis=(0, 2)).sum())
    planes = f"{through} of {POINTS} planes across the path are crossed by every run near the time when it is due"
    if through < MIN_CROSSED * POINTS:
        return (), [f"No AT or RT: only {planes}."]
    return path_figures(points, crossed), [] if through == POINTS else [f"AT and RT leave places out: {planes}."]


def _late(run: Cycle, times: Array) -> Array:
    """Instants of a run's clock at which the arm is at the places of the trajectory's instants, its delay included."""
    return run.due(times) + run.delay


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


def _velocity(path: Trajectory, runs: Sequence[Cycle], resting: Sequence[tuple[float, float]]) -> _Found:
    """AV, RV and FV of the speed that most of the motion has, by the derivative that joint effort is measured with."""
    none = ["No AV, RV or FV: for less than a tenth of the motion the target keeps one velocity."]
    if len(path.poses) < 2:
        return (), none
    instants = np.linspace(0.0, path.duration, 1001)
    speeds = np.linalg.norm(_velocities(path, instants), axis=1)
    moving = (speeds > 0.0) & ~_within(instants, resting)
    if not moving.any():
        return (), none
    commanded, found = float(np.median(speeds[moving])), []
    for run in runs:
        if len(run.stamp) < 2:
            return (), none
        period, positions = evenly(run.stamp, run.positions)
        velocity, _ = derivatives(positions, period)
        # The derivative has no value at the ends.
        first = (len(positions) - len(velocity)) // 2
        at = run.stamp[0] + period * (first + np.arange(len(velocity)))
        due = np.interp(at - run.delay, run.stamp, run.plan_time)
        steady = _steady(path, due, commanded) & ~_within(due, resting)
        if steady.sum() < MIN_STEADY * moving.mean() * len(run.stamp):
            return (), none
        found.append(np.linalg.norm(velocity[steady], axis=1))
    return velocity_figures(commanded, found), []


def _steady(path: Trajectory, times: Array, commanded: float) -> NDArray[np.bool_]:
    """Where the commanded velocity has the commanded speed and keeps it, and its direction nearly, for a while."""
    now, before, after = (_velocities(path, times + shift) for shift in (0.0, -STEADY, STEADY))
    within = (times >= STEADY) & (times <= path.duration - STEADY)
    right = np.abs(np.linalg.norm(now, axis=1) - commanded) <= 0.01 * commanded
    # A circle turns meanwhile; a corner turns at once.
    kept = [np.linalg.norm(other - now, axis=1) <= 0.3 * commanded for other in (before, after)]
    return np.asarray(within & right & kept[0] & kept[1])


def _within(times: Array, resting: Sequence[tuple[float, float]]) -> NDArray[np.bool_]:
    inside = np.zeros(len(times), dtype=bool)
    for begin, end in resting:
        inside |= (times >= begin) & (times <= end)
    return inside


def _corners(path: Trajectory, runs: Sequence[Cycle], resting: Sequence[tuple[float, float]]) -> _Found:
    """CR and CO of the corner that has the most of each, from the middles of its two legs."""
    found = [
        corner
        for corner in corners(path.elapsed, path.poses[:, :3])
        if not _within(np.array([corner.time]), resting).any()
    ]
    each = []
    for corner in found:
        cut = []
        for run in runs:
            low, high = np.searchsorted(run.stamp, _late(run, np.array([corner.begin, corner.end])))
            cut.append(run.positions[low:high])
        if all(len(positions) for positions in cut):
            each.append(corner_figures(corner.position, corner.arriving, corner.leaving, cut))
    left_out, unclear = len(found) - len(each), unclear_turns(path.elapsed, path.poses[:, :3])
    reasons = []
    if left_out:
        reasons.append(f"{counted(left_out, 'corner')} without a sample")
    if unclear:
        reasons.append(f"{counted(unclear, 'sharp turn')} beside others, as an arc of few samples or noise has them")
    if not each:
        why = f"only {' and '.join(reasons)}" if reasons else "the path has no sharp corner that it does not stop at"
        return (), [f"No CR or CO: {why}."]
    kinds = zip(*each, strict=True)
    told = [f"CR and CO leave out {' and '.join(reasons)}."] if reasons else []
    return [max(kind, key=lambda figure: figure.value or 0.0) for kind in kinds], told
