"""Summarizes each solver: medians and worst values over all motions and sets of poses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from simbridge.experiments.suite.results import (
    MotionResult,
    PoseSetResult,
    SuiteResults,
)


@dataclass(frozen=True)
class SolverSummary:
    """The figures of a solver over the whole suite; None for a figure that no result has.

    Attributes:
        solver: Name of the solver.
        time_ratio: Median over the motions of the time per call, relative to the baseline solver.
        median_time_s: Median over the motions of the median time per call, s.
        tracking_error_m: Median over the tracking motions of the RMS error, m.
        stream_error_m: Median over the streams of the RMS error to the ideal motion, m.
        lag_s: Median lag over the motions, s.
        speed: Largest share of a speed limit in any tracking motion whose target does not jump:
            a solver that follows a jump, or a held target, at once has to exceed the limits.
        acceleration: Largest share of the acceleration limit in the same motions.
        jerk: Largest share of the jerk limit in the same motions.
        flips: Number of flips in all motions.
        chatter: Largest chatter in any motion.
        drift_rad: Largest drift in any motion, rad.
        solved: Share of reachable poses that were solved.
        faults: Number of failed calls in all motions, and of poses with a failed call, by kind.
        slow: Number of motions for which the solver was too slow.
    """

    solver: str
    time_ratio: float | None
    median_time_s: float | None
    tracking_error_m: float | None
    stream_error_m: float | None
    lag_s: float | None
    speed: float | None
    acceleration: float | None
    jerk: float | None
    flips: int
    chatter: float | None
    drift_rad: float | None
    solved: float | None
    faults: dict[str, int]
    slow: int


def summarize_solver(results: SuiteResults, solver: str) -> SolverSummary:
    """Return the summary of a solver."""
    motions = [result for result in results.motion_results if result.solver == solver]
    poses = [result for result in results.pose_results if result.solver == solver]
    results_of_solver: list[MotionResult | PoseSetResult] = [*motions, *poses]

    groups = {motion.name: motion.group for motion in results.motions}
    tracking = [result for result in motions if groups[result.motion] == "tracking"]
    streams = [result for result in motions if groups[result.motion] == "stream"]

    # Shares of limits of the tracking motions whose target does not jump.
    jumping = {motion.name for motion in results.motions if motion.jumps}
    without_jump = [result for result in tracking if result.motion not in jumping]
    shares = [result.shares for result in without_jump if result.shares is not None]

    return SolverSummary(
        solver=solver,
        time_ratio=_median(result.times.ratio for result in motions),
        median_time_s=_median(result.times.median_s for result in motions),
        tracking_error_m=_median(result.error.rms_m for result in tracking),
        stream_error_m=_median(map(ideal_error, streams)),
        lag_s=_median(result.lag_s for result in motions),
        speed=_largest(share.speed for share in shares),
        acceleration=_largest(share.acceleration for share in shares),
        jerk=_largest(share.jerk for share in shares),
        flips=sum(result.flips for result in motions),
        chatter=_largest(result.chatter for result in motions),
        drift_rad=_largest(result.drift_rad for result in motions),
        solved=_solved_share(results, poses),
        faults=_count_by_kind(results_of_solver),
        slow=sum(result.too_slow for result in motions),
    )


def ideal_error(result: MotionResult) -> float:
    """Return the RMS error to the ideal motion, m: to the targets, unless they are a stream."""
    error = result.reference_error or result.error
    return error.rms_m


def _solved_share(results: SuiteResults, poses: Sequence[PoseSetResult]) -> float | None:
    """Return the share of poses that were solved, over all sets of reachable poses."""
    reachable = {pose_set.name for pose_set in results.pose_sets if pose_set.reachable}
    reachable_results = [result for result in poses if result.pose_set in reachable]
    pose_count = sum(result.poses for result in reachable_results)
    if not pose_count:
        return None
    return sum(result.solved * result.poses for result in reachable_results) / pose_count


def _count_by_kind(results: Sequence[MotionResult | PoseSetResult]) -> dict[str, int]:
    """Return the number of failures of each kind."""
    counts: dict[str, int] = {}
    for result in results:
        for fault in result.faults:
            counts[fault.kind] = counts.get(fault.kind, 0) + fault.count
    return counts


def _median(values: Iterable[float | None]) -> float | None:
    """Return the median of the values that are known; None without any."""
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


def _largest(values: Iterable[float | None]) -> float | None:
    """Return the largest of the values that are known; None without any."""
    return max((value for value in values if value is not None), default=None)
