"""Comparison of two or more runs of one scenario: simulation and robot, or one solver and another.

Runs are compared at the same instants of their trajectory, whatever their periods, and wherever a controller paused one
of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from simbridge.errors import InvalidParameter, UnusableSamples
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.metrics.delays import delay, sampled
from simbridge.evaluation.metrics.samples import PoseError, rms
from simbridge.evaluation.metrics.tracking import DELAY_KEYS, ERROR_PARTS, TRACKING_ERROR
from simbridge.evaluation.iso_figures import IsoFigures, iso_figures
from simbridge.evaluation.summary import Summary, summarize
from simbridge.recording.run_directory import repeats_in
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.text import degrees, millimetres, plain

# Two paths whose positions (m) and orientations (rad) agree to this are one path.
SAME = 1e-6

# What is compared of each summary.
_COMPARED = (
    *("robot", "solver", "backend", "emulated", "plant_model", "feedforward", "period_s"),
    *("samples", "outcome", "servo_law"),
    *(part.key for part in (TRACKING_ERROR, *ERROR_PARTS)),
    *("contour_error", "delay_compensated", "delay_of"),
    *(key for keys in DELAY_KEYS.values() for key in keys),
    *("along_path_lag", "near_singularity", "absolute_pose_error", "relative_pose_error"),
)


class Largest(TypedDict):
    rms: float
    max: float


class Deviations(TypedDict):
    """Of the tool's position, m, its rotation, rad, and of single joints, rad (m where prismatic)."""

    position_m: Largest
    rotation_rad: Largest
    joints_rad: Largest


class PredictionError(Deviations):
    """Simulated minus measured, at the same instants of the trajectory.

    `delay_s` is by how much the measured arm trails the simulated one; None if it cannot be determined. `delay_removed`
    is what is left without it.
    """

    delay_s: float | None
    delay_removed: Deviations


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """One of the runs, under a name of its own, with its numbers."""

    name: str
    evaluation: Evaluation
    summary: Summary

    @cached_property
    def by_plan_time(self) -> tuple[Array, Array]:
        """Strictly increasing instants (K,) of the trajectory, s, and the poses (K, 7) attained at them."""
        times = self.evaluation.log.plan_time
        kept = _increasing(times)
        return times[kept], self.evaluation.attained[kept]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Runs of one scenario, in the given order, and sentences about differences that affect the comparison."""

    runs: tuple[ComparedRun, ...]
    warnings: tuple[str, ...]

    @cached_property
    def separation(self) -> list[tuple[Array, PoseError] | None]:
        """Separation of each run's tool from that of the first run, at the same instants of the trajectory.

        Instants (K,) of the run with fewer samples, s, and the first run minus this one; None for the first run and for
        a run that has no instant in common with it.
        """
        return [None, *(_separation(self.runs[0], run) for run in self.runs[1:])]

    @cached_property
    def lag(self) -> list[float | None]:
        """Lag of each run behind the first one, s; None for the first run and if it cannot be determined."""
        found: list[float | None] = [None]
        for run in self.runs[1:]:
            (times, poses), (t, attained) = self.runs[0].by_plan_time, run.by_plan_time
            inside = (t >= times[0]) & (t <= times[-1])
            found.append(
                delay(t[inside], sampled(times, poses), attained[inside])
                if inside.sum() > 1
                else None
            )
        return found

    @cached_property
    def prediction(self) -> list[PredictionError | None]:
        """The prediction error of each run and the first one, where one of both is simulated and the other measured."""
        first = self.runs[0].evaluation
        found: list[PredictionError | None] = [None]
        for run in self.runs[1:]:
            other = run.evaluation
            pair = (first, other) if first.is_simulated else (other, first)
            found.append(
                prediction_error(*pair) if first.is_simulated != other.is_simulated else None
            )
        return found

    def as_dict(self) -> dict[str, Any]:
        """What `simbridge compare --json` prints (SI units)."""
        runs = []
        every = zip(self.runs, self.separation, self.lag, self.prediction, strict=True)
        for run, separation, lag, prediction in every:
            numbers: Mapping[str, Any] = run.summary
            apart = None if separation is None else {**separation[1].statistics(), "delay_s": lag}
            runs.append(
                {
                    "run": str(run.evaluation.directory.path),
                    "name": run.name,
                    **{key: numbers[key] for key in _COMPARED},
                    "from_the_first": apart,
                    "prediction_error": prediction,
                }
            )
        return {
            "scenario": self.runs[0].summary["scenario"],
            "warnings": list(self.warnings),
            "runs": runs,
        }


def _separation(first: ComparedRun, other: ComparedRun) -> tuple[Array, PoseError] | None:
    (times, poses), (t, attained) = first.by_plan_time, other.by_plan_time
    fewer = times if len(times) <= len(t) else t
    fewer = fewer[(fewer >= max(times[0], t[0])) & (fewer <= min(times[-1], t[-1]))]
    if len(fewer) == 0:
        return None
    return fewer, PoseError.between(
        pose.interpolate(times, poses, fewer), pose.interpolate(t, attained, fewer)
    )


def prediction_error(simulated: Evaluation, measured: Evaluation) -> PredictionError | None:
    """How far attained poses and joints of a simulated run are from the measured ones.

    None if the runs have no two instants of the trajectory in common.
    """
    path, arm = (run.log.plan_time[_increasing(run.log.plan_time)] for run in (simulated, measured))
    common = (arm >= path[0]) & (arm <= path[-1])
    if common.sum() < 2:
        return None
    (poses, joints), (attained, position) = (
        (run.attained[kept], run.log.position[kept])
        for run, kept in ((run, _increasing(run.log.plan_time)) for run in (simulated, measured))
    )
    motion, times = sampled(path, poses), arm[common]
    lag = delay(times, motion, attained[common])

    def deviations(shift: float) -> Deviations:
        at = times - shift
        kept = (at >= path[0]) & (at <= path[-1])
        error = PoseError.between(motion(at[kept]), attained[common][kept])
        predicted = np.stack([np.interp(at[kept], path, joint) for joint in joints.T], axis=1)
        return {
            "position_m": _largest(error.distance),
            "rotation_rad": _largest(error.angle),
            "joints_rad": _largest(predicted - position[common][kept]),
        }

    return {**deviations(0.0), "delay_s": lag, "delay_removed": deviations(lag or 0.0)}


def _largest(values: Array) -> Largest:
    return {"rms": rms(values), "max": float(np.abs(values).max())}


def _increasing(times: Array) -> Array:
    """Which of some instants (T,) of the trajectory are later than all before: it waits where a controller does."""
    return np.concatenate([[True], times[1:] > np.maximum.accumulate(times)[:-1]])


def compare_runs(paths: Sequence[Path]) -> Comparison:
    """Read the runs to compare; a directory made by --repeat stands for its runs.

    Raises:
        InvalidParameter: There are fewer than two runs, or they are of different scenarios.
        NotARun, LogReadError: A part of a run is missing or broken.
        SimbridgeError: A run has no sample.
    """
    found = [run for path in paths for run in _runs_of(path)]
    if len(found) < 2:
        raise InvalidParameter("number of runs to compare", len(found), "at least 2")
    names = [path.name for path in found]
    if len(set(names)) < len(names):
        names = [str(path) for path in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidParameter("run to compare", twice, "a different one: this one is given twice")
    named = zip(names, map(Evaluation.read, found), strict=True)
    runs = tuple(ComparedRun(name, run, summarize(run, run.outcome)) for name, run in named)
    early = [run for run in runs if run.summary["outcome"] != "completed"]
    ended = [f"{run.name} did not complete: {run.summary['outcome']}." for run in early]
    differences = [words for run in runs[1:] if (words := _difference(runs[0], run))]
    return Comparison(runs, (*differences, *ended))


def _runs_of(path: Path) -> list[Path]:
    """The run itself, or those that --repeat put into it."""
    if (path / "settings.toml").is_file() or not path.is_dir():
        return [path]
    inside = [run.path for run in repeats_in(path)]
    inside = inside or sorted(
        child for child in path.iterdir() if (child / "settings.toml").is_file()
    )
    return inside or [path]


def _difference(first: ComparedRun, other: ComparedRun) -> str:
    """How the motions of two runs differ, as a sentence; "" if they do not.

    Raises:
        InvalidParameter: They are runs of different scenarios.
    """
    wanted, scenario = first.summary["scenario"], other.summary["scenario"]
    why = _path_difference(first.evaluation, other.evaluation)
    if why is None:
        return ""
    if wanted != scenario:
        raise InvalidParameter(
            f"scenario of {other.name}", scenario, f"{wanted}, as in {first.name}: {why}"
        )
    return f"{first.name} and {other.name} have the same scenario name, but {why}."


def _path_difference(one: Evaluation, two: Evaluation) -> str | None:
    """How two trajectories differ, as a clause; None if they are the same."""
    first, second = one.plan.trajectory, two.plan.trajectory
    if abs(first.duration - second.duration) > SAME:
        digits = 3 if abs(first.duration - second.duration) > 2e-3 else 6
        one_s, two_s = (plain(round(each.duration, digits)) for each in (first, second))
        return f"one takes {one_s} s and the other {two_s} s"
    times = np.union1d(first.elapsed, second.elapsed)
    times = times[(times <= first.elapsed[-1]) & (times <= second.elapsed[-1])]
    a, b = first.reference(times), second.reference(times)
    off = PoseError.between(a, b)
    if off.distance.max() > SAME:
        return f"their paths are up to {millimetres(float(off.distance.max()))} mm apart"
    if off.angle.max() > SAME:
        return f"their orientations are up to {degrees(float(off.angle.max()))} degrees apart"
    return None


def iso_figures_of(comparison: Comparison) -> IsoFigures | None:
    """ISO 9283-style figures if the runs are cycles of one motion on one arm; None otherwise."""
    names = ("robot", "backend", "emulated", "servo", "feedforward", "period_s")
    ran = [
        [run.evaluation.settings.solver, *map(run.summary.get, names)] for run in comparison.runs
    ]
    if ran != ran[:1] * len(ran) or comparison.warnings:
        return None
    try:
        return iso_figures(run.evaluation for run in comparison.runs)
    except UnusableSamples:
        return None
