"""Repeated runs of one scenario: their common summary.json, typed, and ISO 9283-style figures, each run a cycle.

The figures are "self-reported", computed from the arm's own joint angles, unless the positions of an external
measurement are given.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypedDict, cast, get_type_hints

import msgspec
import numpy as np
from numpy.typing import NDArray

from simbridge.errors import LogReadError, NotARun, UnusableSamples
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.metrics import iso9283, samples
from simbridge.evaluation.metrics.path_features import (
    MIN_REST,
    Stop,
    Visit,
    find_corners,
    find_jumps,
    find_rests,
    find_stops,
)
from simbridge.evaluation.metrics.samples import derivatives, resample_uniform
from simbridge.evaluation.summary import Judgement, Summary, WhatRan, summarize, what_ran
from simbridge.recording.run_directory import RunDirectory, repeats_in
from simbridge.recording.run_record import RunRecord
from simbridge.robot.pose import Array
from simbridge.text import counted
from simbridge.trajectory.trajectory import Hold, Trajectory

# Figures, and sentences about those that are missing.
Found = tuple[Sequence[iso9283.Figure], list[str]]

# Number of planes across the path in which AT and RT are measured, evenly spaced along it.
POINTS = 100
# Part of the planes that every cycle must cross for AT and RT.
MIN_CROSSED = 0.9
# The speed is measured where the commanded velocity does not change for this time before and after, s.
STEADY = 0.1
# Part of the motion that must be at one speed for the velocity figures.
MIN_STEADY = 0.1
# The attained pose is the mean over this time before the target departs, s.
HELD = 0.1
LIMIT_BAND = 1e-4
"""Radius in m about the attained pose within which the arm is settled: the pose repeatability that UR specifies for the
UR10. Three times the scatter at rest if that is more, so that the noise of an external recording is no motion."""


@dataclass(frozen=True)
class Cycle:
    """What the figures need of a run: stamps (T,) of its clock, s; the instants (T,) of the trajectory that are due at
    them, s; attained positions (T, 3), m; and the delay of the arm, s."""

    stamp: Array
    plan_time: Array
    positions: Array
    delay: float

    def due(self, times: Array) -> Array:
        """Instants of the run's clock at which instants of the trajectory are due."""
        return np.interp(times, self.plan_time, self.stamp)

    def attained_at(self, times: Array) -> Array:
        """Instants of the run's clock at which the arm, with its delay, is where instants of the trajectory are."""
        return self.due(times) + self.delay


class IsoFigures(TypedDict):
    """Figures of the cycles of one motion: `iso_9283_style` in summary.json and evaluation.json."""

    witness: Literal["self-reported", "external"]  # who measured the positions
    figures: list[iso9283.Figure]  # figures of the stops, stop by stop, then those of the path
    stops_m: list[list[float]]  # commanded position (3,) of every stop, m
    limit_band_m: (
        float | None
    )  # radius within which the arm counts as settled, m; None without stops
    missing: list[str]  # sentences about figures that are missing or incomplete, and why


def iso_figures(
    cycles: Iterable[Evaluation], attained: Sequence[Array] | None = None
) -> IsoFigures:
    """AP, RP, stabilisation time and OV of every pose at which the target rests; AT and RT of the path; AV, RV and FV
    where it has one speed; CR and CO of its corners.

    Args:
        cycles: Runs of the same trajectory; read one at a time.
        attained: Externally measured positions (T_j, 3) at each run's stamps, in place of the arm's own.

    Raises:
        UnusableSamples: There are no runs, one has no samples, or their trajectories differ.
    """
    plans: list[tuple[Trajectory, Hold]] = []
    runs: list[Cycle] = []
    for run in cycles:
        if not run.has_samples:
            runs = []
            break
        plans.append((run.plan.trajectory, run.plan.hold))
        own = np.ascontiguousarray(run.attained[:, :3])
        runs.append(Cycle(run.log.stamp, run.log.plan_time, own, run.tracking["delay_s"] or 0.0))
    if not runs:
        raise UnusableSamples("cycles", "there are none, or one has no sample.")
    path, hold = plans[0]
    for other, other_hold in plans[1:]:
        same = np.array_equal(other.poses, path.poses) and np.array_equal(
            other.elapsed, path.elapsed
        )
        if not same or other_hold != hold:
            raise UnusableSamples(
                "cycles", "they are not runs of one trajectory with one speed scale."
            )
    if attained is not None:
        runs = [
            replace(run, positions=positions) for run, positions in zip(runs, attained, strict=True)
        ]
    resting, found = find_rests(path, hold), find_stops(path, hold)
    figures, band, missing = stop_figures(found, runs)
    if not found:
        # The only rest that is no stop is the one at the start: the arm arrives there by its approach.
        exception = " except at its start" if resting else ""
        missing.append(
            f"No AP, RP, stabilisation time or OV: the target does not rest anywhere for {MIN_REST:g} s{exception}. "
            "Where it moves, a pose error is mostly delay."
        )
    if find_jumps(path, hold):
        missing.append(
            "No figures of the path: the target jumps between poses, so there is no path."
        )
    else:
        for part in (
            _path(path, runs),
            _velocity(path, runs, resting),
            _corners(path, runs, resting),
        ):
            figures += part[0]
            missing += part[1]
    return {
        "witness": "self-reported" if attained is None else "external",
        "figures": figures,
        "stops_m": [stop.position.tolist() for stop in found],
        "limit_band_m": band,
        "missing": missing,
    }


def _path(path: Trajectory, runs: Sequence[Cycle]) -> Found:
    """AT and RT."""
    points, directions, times = _planes(path)
    if len(points) == 0:
        return (), ["No figures of the path: its length is zero."]
    crossed = np.array(
        [
            iso9283.plane_crossings(
                points, directions, run.attained_at(times), run.stamp, run.positions
            )
            for run in runs
        ]
    )
    through = int(np.isfinite(crossed).all(axis=(0, 2)).sum())
    planes = f"{through} of {POINTS} planes across the path are crossed by every run at about the expected time"
    if through < MIN_CROSSED * POINTS:
        return (), [f"No AT or RT: only {planes}."]
    return iso9283.path_figures(points, crossed), [] if through == POINTS else [
        f"AT and RT are incomplete: {planes}."
    ]


def _planes(path: Trajectory) -> tuple[Array, Array, Array]:
    """Evenly spaced points (m, 3) of a path, its directions (m, 3) and instants (m,) there."""
    steps = np.diff(path.poses[:, :3], axis=0)
    lengths = np.linalg.norm(steps, axis=1)
    along = np.concatenate([[0.0], np.cumsum(lengths)])
    if along[-1] == 0.0:
        return np.empty((0, 3)), np.empty((0, 3)), np.empty(0)
    at = (np.arange(POINTS) + 0.5) / POINTS * along[-1]
    segment = np.searchsorted(along, at, side="right") - 1
    part = (at - along[segment]) / lengths[segment]
    points = path.poses[segment, :3] + part[:, None] * steps[segment]
    times = path.elapsed[segment] + part * np.diff(path.elapsed)[segment]
    return points, steps[segment] / lengths[segment, None], times


def _velocities(path: Trajectory, times: Array) -> Array:
    """Commanded velocities (K, 3) of the path's segments at instants (K,)."""
    velocity = np.diff(path.poses[:, :3], axis=0) / np.diff(path.elapsed)[:, None]
    return velocity[
        np.clip(np.searchsorted(path.elapsed, times, side="right") - 1, 0, len(velocity) - 1)
    ]


def _velocity(
    path: Trajectory, runs: Sequence[Cycle], resting: Sequence[tuple[float, float]]
) -> Found:
    """AV, RV and FV at the most common speed of the motion; speeds are smoothed derivatives."""
    none = ["No AV, RV or FV: the target keeps one velocity for less than a tenth of the motion."]
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
        period, positions = resample_uniform(run.stamp, run.positions)
        velocity, _ = derivatives(positions, period)
        # The derivative has no value at the ends.
        first = (len(positions) - len(velocity)) // 2
        at = run.stamp[0] + period * (first + np.arange(len(velocity)))
        due = np.interp(at - run.delay, run.stamp, run.plan_time)
        steady = _steady(path, due, commanded) & ~_within(due, resting)
        if steady.sum() < MIN_STEADY * moving.mean() * len(run.stamp):
            return (), none
        found.append(np.linalg.norm(velocity[steady], axis=1))
    return iso9283.velocity_figures(commanded, found), []


def _steady(path: Trajectory, times: Array, commanded: float) -> NDArray[np.bool_]:
    """Mask of the instants around which the target keeps the commanded speed and nearly its direction."""
    now, before, after = (_velocities(path, times + shift) for shift in (0.0, -STEADY, STEADY))
    within = (times >= STEADY) & (times <= path.duration - STEADY)
    right = np.abs(np.linalg.norm(now, axis=1) - commanded) <= 0.01 * commanded
    # On a circle the direction changes slowly, at a corner at once.
    kept = [np.linalg.norm(other - now, axis=1) <= 0.3 * commanded for other in (before, after)]
    return np.asarray(within & right & kept[0] & kept[1])


def _within(times: Array, resting: Sequence[tuple[float, float]]) -> NDArray[np.bool_]:
    inside = np.zeros(len(times), dtype=bool)
    for begin, end in resting:
        inside |= (times >= begin) & (times <= end)
    return inside


def _corners(
    path: Trajectory, runs: Sequence[Cycle], resting: Sequence[tuple[float, float]]
) -> Found:
    """CR and CO, each of the corner with the largest value, measured between the middles of its legs."""
    every, ambiguous = find_corners(path.elapsed, path.poses[:, :3])
    found = [corner for corner in every if not _within(np.array([corner.time]), resting).any()]
    each = []
    for corner in found:
        cut = []
        for run in runs:
            low, high = np.searchsorted(
                run.stamp, run.attained_at(np.array([corner.begin, corner.end]))
            )
            cut.append(run.positions[low:high])
        if all(len(positions) for positions in cut):
            each.append(
                iso9283.corner_figures(corner.position, corner.arriving, corner.leaving, cut)
            )
    reasons = []
    if left_out := len(found) - len(each):
        reasons.append(f"{counted(left_out, 'corner')} without a sample")
    if ambiguous:
        reasons.append(
            f"{counted(ambiguous, 'sharp turn')} next to others, as in a coarsely sampled arc or noise"
        )
    if not each:
        why = (
            f"only {' and '.join(reasons)}"
            if reasons
            else "the path has no sharp corner without a stop"
        )
        return (), [f"No CR or CO: {why}."]
    kinds = zip(*each, strict=True)
    omitted = [f"CR and CO omit {' and '.join(reasons)}."] if reasons else []
    return [max(kind, key=lambda figure: figure["value"] or 0.0) for kind in kinds], omitted


@dataclass(frozen=True)
class _Stay:
    """One visit of a stop in one run: stamps (K,), positions (K, 3), the attained position (3,), its scatter and drift,
    all in s and m."""

    stamp: Array
    positions: Array
    attained: Array
    scatter: float
    drift: float

    def at_rest(self, band: float) -> bool:
        """Whether the tool has stopped with its last sample in the limit band: settling is measured up to it."""
        return (
            self.drift <= band and float(np.linalg.norm(self.positions[-1] - self.attained)) <= band
        )

    @staticmethod
    def of(run: Cycle, visit: Visit) -> _Stay:
        begin, _, departure = run.due(np.array([visit.begin, visit.arrival, visit.departure]))
        low, high = np.searchsorted(run.stamp, [begin, departure + 1e-9])
        # If the period is longer than the rest there is one sample.
        low = min(low, high - 1)
        stamp, positions = run.stamp[low:high], run.positions[low:high]
        last = positions[stamp >= stamp[-1] - HELD]
        earlier, later = np.array_split(last, 2)
        drift = (
            float(np.linalg.norm(later.mean(axis=0) - earlier.mean(axis=0)))
            if len(last) > 1
            else 0.0
        )
        around = np.concatenate(
            [half - half.mean(axis=0) for half in (earlier, later) if len(half)]
        )
        scatter = float(np.sqrt(np.mean((around**2).sum(axis=1))))
        return _Stay(stamp, positions, last.mean(axis=0), scatter, drift)


def stop_figures(
    stops: Sequence[Stop], runs: Sequence[Cycle]
) -> tuple[list[iso9283.Figure], float | None, list[str]]:
    """AP, RP, stabilisation time and OV of every stop; each visit in each run is a cycle.

    Also the limit band in m, and sentences about stops without figures, because the arm still moved when the target
    departed.
    """
    stays = [[_Stay.of(run, visit) for run in runs for visit in stop.visits] for stop in stops]
    if not stays:
        return [], None, []
    settled = [
        stay.scatter
        for visits in stays
        for stay in visits
        if stay.drift <= LIMIT_BAND + stay.scatter
    ]
    band = max([LIMIT_BAND, *(3.0 * scatter for scatter in settled)])
    figures: list[iso9283.Figure] = []
    unsettled = []
    for number, (stop, visits) in enumerate(zip(stops, stays, strict=True), start=1):
        moving = sum(not stay.at_rest(band) for stay in visits)
        if moving:
            unsettled.append(
                f"No figures of stop {number}: the arm still moved at the end of the rest in {moving} of "
                f"{counted(len(visits), 'cycle')}. Use a longer rest."
            )
            continue
        attained = np.array([stay.attained for stay in visits])
        approaches = [(stay.stamp, stay.positions) for stay in visits]
        found = (
            *iso9283.pose_figures(stop.position, attained),
            *iso9283.stabilisation_figures(approaches, band, attained),
        )
        figures += [{**figure, "stop": number} for figure in found]
    return figures, band, unsettled


class RepeatedRun(TypedDict):
    """What the common summary takes over from each run's summary; None where that has nothing, as without a sample.

    `run` is the name of its directory.
    """

    run: str
    outcome: str
    samples: int | None
    duration_s: float | None
    tracking_error: samples.PoseStatistics | None
    contour_error: samples.PositionStatistics | None
    delay_s: float | None
    loop: dict[str, float | None] | None
    passed: bool | None


_OF_A_RUN = tuple(name for name in RepeatedRun.__annotations__ if name != "run")


class RepeatsSummary(WhatRan, Judgement):
    """The common summary.json of repeated runs.

    `outcome` is "completed" or that of the last run; `repeats` is the number of runs requested; `passed` says whether
    all runs were made and passed, None without a tolerance.
    """

    outcome: str
    repeats: int
    completed: int
    runs: list[RepeatedRun]
    iso_9283_style: IsoFigures


def summarize_repeats(
    whole: RunDirectory, runs: Sequence[RunDirectory], count: int
) -> RepeatsSummary:
    """Measure runs of one plan together, from their directories, and write the common summary.json.

    A run without a summary was killed: it is measured from its log, as far as the log goes. `count` is how many runs
    were requested.
    """
    settings = runs[0].settings()
    summaries = [run_summary(run) for run in runs]
    completed = [
        run
        for run, summary in zip(runs, summaries, strict=True)
        if summary["outcome"] == "completed"
    ]
    outcome = summaries[-1]["outcome"]
    if outcome == "completed" and len(runs) < count:
        outcome = "no further run was begun: the repeats were ended or killed, or still go on"
    try:
        # One run at a time: only what the figures need stays in memory.
        iso = iso_figures(Evaluation.of(run) for run in completed)
    except UnusableSamples as error:
        iso = {
            "witness": "self-reported",
            "figures": [],
            "stops_m": [],
            "limit_band_m": None,
            "missing": [str(error)],
        }
    verdicts = [summary["passed"] for summary in summaries]
    common: RepeatsSummary = {
        **what_ran(settings),
        "tolerance": None
        if settings.tolerance is None
        else msgspec.structs.asdict(settings.tolerance),
        "outcome": outcome,
        "repeats": count,
        "completed": len(completed),
        "runs": [
            cast(
                RepeatedRun,
                {"run": run.path.name, **{name: summary.get(name) for name in _OF_A_RUN}},
            )
            for run, summary in zip(runs, summaries, strict=True)
        ],
        "iso_9283_style": iso,
        "passed": None if None in verdicts else all(verdicts) and len(completed) == count,
    }
    whole.write_summary(common)
    return common


def run_summary(run: RunDirectory) -> Mapping[str, Any]:
    """The content of a run's summary.json; it is computed if the file is missing, or its evaluation was interrupted."""
    earlier: dict[str, Any] = {}
    with contextlib.suppress(NotARun):
        earlier = run.summary(Summary)
    # A run that was killed has none, and one whose evaluation was interrupted only says how it ended.
    if earlier.keys() >= {"samples", "outcome", "passed"}:
        return earlier
    tolerance = run.settings().tolerance
    try:
        evaluation = Evaluation.of(run)
        return summarize(
            evaluation, evaluation.outcome, loop=earlier.get("loop"), tolerance=tolerance
        )
    except (NotARun, LogReadError) as error:
        passed = None if tolerance is None else False
        return {
            "outcome": str(error).rstrip("."),
            "tolerance": None if tolerance is None else msgspec.structs.asdict(tolerance),
            "passed": passed,
        }


def common_summary(path: Path) -> RepeatsSummary:
    """The content of the summary.json in a directory of repeats; computed and written if they were killed before that.

    Raises:
        NotARun: summary.json or the first run's settings.toml is broken.
        OutputError: Something cannot be written.
    """
    whole, runs = RunDirectory(path), repeats_in(path)
    # One computed while the repeats went on is out of date: a run without a summary may have got further.
    if whole.summary_file.is_file() and all(run.summary_file.is_file() for run in runs):
        summary = whole.summary(RepeatsSummary)
        if len(summary.get("runs", ())) == len(runs):
            missing = [name for name in get_type_hints(RepeatsSummary) if name not in summary]
            if missing:
                raise NotARun(path, whole.summary_file.name, f"{missing[0]} is missing")
            return cast(RepeatsSummary, summary)
    # Runs that were put side by side by hand do not say how many were requested.
    record = runs[-1].settings()
    count = len(runs)
    if isinstance(record, RunRecord) and record.repeats is not None:
        count = record.repeats.count
    return summarize_repeats(whole, runs, count)
