"""ISO 9283-style figures of repeated runs of one motion, each run a cycle.

The figures are "self-reported", computed from the arm's own joint angles, unless the positions of
an external measurement are given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypedDict

import numpy as np

from simbridge.errors import UnusableSamples
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.iso_corners import corner_figures
from simbridge.evaluation.iso_cycle import Cycle
from simbridge.evaluation.iso_path import path_figures
from simbridge.evaluation.iso_stops import stop_figures
from simbridge.evaluation.iso_velocity import velocity_figures
from simbridge.evaluation.metrics.iso9283 import Figure
from simbridge.evaluation.metrics.path_features import MIN_REST, find_jumps, find_rests, find_stops
from simbridge.robot.pose import Array
from simbridge.trajectory.trajectory import Hold, Trajectory

# What is said of runs without samples.
NO_SAMPLES = "there are none, or one has no sample."


class IsoFigures(TypedDict):
    """Figures of the cycles of one motion: `iso_9283_style` in summary.json and evaluation.json.

    Attributes:
        witness: Who measured the positions.
        figures: Figures of the stops, stop by stop, then those of the path.
        stops_m: Commanded position (3,) of every stop, m.
        limit_band_m: Radius within which the arm counts as settled, m; None without stops.
        missing: Sentences about figures that are missing or incomplete, and why.
    """

    witness: Literal["self-reported", "external"]
    figures: list[Figure]
    stops_m: list[list[float]]
    limit_band_m: float | None
    missing: list[str]


@dataclass(frozen=True)
class RepeatedMotion:
    """A motion, and what the arm made of it in several runs.

    Attributes:
        path: The trajectory of all runs.
        hold: How the motion's samples are held.
        cycles: What the arm attained, run by run.
    """

    path: Trajectory
    hold: Hold
    cycles: list[Cycle]


def iso_figures(runs: Iterable[Evaluation], attained: Sequence[Array] | None = None) -> IsoFigures:
    """Return the ISO 9283-style figures of runs of one motion.

    They are AP, RP, stabilisation time and OV of every pose at which the target rests; AT and RT of
    the path; AV, RV and FV where it has one speed; CR and CO of its corners.

    Args:
        runs: Runs of the same trajectory; read one at a time.
        attained: Externally measured positions (T_j, 3) at each run's stamps, m, in place of the
            arm's own.

    Raises:
        UnusableSamples: There are no runs, a run has no samples, or their trajectories differ.
    """
    motion = _repeated_motion(runs)
    path = motion.path
    cycles = motion.cycles
    if attained is not None:
        pairs = zip(cycles, attained, strict=True)
        cycles = [replace(cycle, positions=positions) for cycle, positions in pairs]

    # The stops.
    target_rests = find_rests(path, motion.hold)
    target_stops = find_stops(path, motion.hold)
    figures, limit_band, missing = stop_figures(target_stops, cycles)
    if not target_stops:
        # Of all rests, only one at the start does not count as a stop: the arm arrives there by its
        # approach.
        exception = " except at its start" if target_rests else ""
        missing.append(
            f"No AP, RP, stabilisation time or OV: the target never rests for {MIN_REST:g} "
            f"s{exception}. Where it moves, a pose error is mostly delay."
        )

    # The path.
    if find_jumps(path, motion.hold):
        missing.append(
            "No figures of the path: the target jumps between poses, so there is no path."
        )
    else:
        for figure_set in (
            path_figures(path, cycles),
            velocity_figures(path, cycles, target_rests),
            corner_figures(path, cycles, target_rests),
        ):
            figures += figure_set.figures
            missing += figure_set.missing

    return {
        "witness": "self-reported" if attained is None else "external",
        "figures": figures,
        "stops_m": [stop.position.tolist() for stop in target_stops],
        "limit_band_m": limit_band,
        "missing": missing,
    }


def _repeated_motion(runs: Iterable[Evaluation]) -> RepeatedMotion:
    """Take what the figures need from runs, read one at a time.

    Raises:
        UnusableSamples: There are no runs, a run has no samples, or their trajectories differ.
    """
    motions: list[tuple[Trajectory, Hold]] = []
    cycles: list[Cycle] = []
    for run in runs:
        if not run.has_samples:
            raise UnusableSamples("cycles", NO_SAMPLES)
        motions.append((run.plan.trajectory, run.plan.hold))
        cycles.append(
            Cycle(
                stamp=run.log.stamp,
                plan_time=run.log.plan_time,
                positions=np.ascontiguousarray(run.attained[:, :3]),
                # None if it is not known, as of an arm that did not move.
                delay=run.tracking["delay_s"] or 0.0,
            )
        )
    if not cycles:
        raise UnusableSamples("cycles", NO_SAMPLES)

    path, hold = motions[0]
    for next_path, next_hold in motions[1:]:
        has_same_poses = np.array_equal(next_path.poses, path.poses)
        has_same_times = np.array_equal(next_path.elapsed, path.elapsed)
        if not (has_same_poses and has_same_times and next_hold == hold):
            raise UnusableSamples(
                "cycles", "they are not runs of one trajectory with one speed scale."
            )
    return RepeatedMotion(path, hold, cycles)
