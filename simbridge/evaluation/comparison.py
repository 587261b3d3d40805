"""Comparison of runs of one scenario: simulation and robot, or one solver and another.

Runs are compared at the same instants of their trajectory, whatever their periods, and wherever a
controller paused one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simbridge.errors import InvalidParameter, UnusableSamples
from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.iso_figures import IsoFigures, iso_figures
from simbridge.evaluation.metrics.delays import delay, motion_through
from simbridge.evaluation.metrics.samples import PoseError
from simbridge.evaluation.metrics.tracking import (
    DELAY_KEYS,
    ERROR_PARTS,
    SOLVER_ERROR,
    TRACKING_ERROR,
    ErrorPart,
    known_parts,
)
from simbridge.evaluation.prediction import PredictionError, increasing_mask, prediction_error
from simbridge.evaluation.run_differences import RunDifferences, find_differences
from simbridge.evaluation.summary import Summary, shown_metrics, summarize
from simbridge.recording.run_directory import repeats_in
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.text import degrees, millimetres, plain

# Two paths whose positions (m), orientations (rad) and durations (s) agree to this are one path.
SAME_PATH = 1e-6
# The plant dominates where its error is this many times the solver's.
DOMINANT_RATIO = 3.0
# Durations that differ by more than this, s, are shown in ms, others in us.
SHOWN_IN_MS = 2e-3

# The keys of each run's summary that `simbridge compare --json` prints.
ERROR_KEYS = tuple(part.key for part in (TRACKING_ERROR, *ERROR_PARTS))
ALL_DELAY_KEYS = tuple(key for keys in DELAY_KEYS.values() for key in keys)
COMPARED_KEYS = (
    "robot",
    "solver",
    "backend",
    "emulated",
    "plant_model",
    "feedforward",
    "period_s",
    "samples",
    "outcome",
    "servo_law",
    *ERROR_KEYS,
    "contour_error",
    "delay_compensated",
    "delay_of",
    *ALL_DELAY_KEYS,
    "along_path_lag",
    "near_singularity",
    "absolute_pose_error",
    "relative_pose_error",
    "joint_effort",
)
# What must be the same for runs to be cycles of one motion on one arm, besides the solver's
# settings.
SETUP_KEYS = ("robot", "backend", "emulated", "servo", "feedforward", "period_s")


class PosesByPlan(NamedTuple):
    """The motion of a run's tool, by instants of the trajectory.

    Attributes:
        times: Strictly increasing instants (K,) of the trajectory, s.
        poses: Attained poses (K, 7).
    """

    times: Array
    poses: Array


class ComparedMetric(NamedTuple):
    """A line of the table of metrics, with a value for each run.

    Attributes:
        name: Name of the metric in `METRICS`.
        values: The values as they are shown, in the order of the runs.
        unit: The unit as it is shown; "" for none.
        meaning: How to read it.
    """

    name: str
    values: tuple[str, ...]
    unit: str
    meaning: str


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """A run of a comparison, with its numbers.

    Attributes:
        name: Differs from that of every other run.
        evaluation: The run, read back.
        summary: The numbers of the run's summary.json.
    """

    name: str
    evaluation: Evaluation
    summary: Summary

    @cached_property
    def by_plan_time(self) -> PosesByPlan:
        """The motion of the tool, by instants of the trajectory."""
        times = self.evaluation.log.plan_time
        is_later = increasing_mask(times)
        return PosesByPlan(times[is_later], self.evaluation.attained[is_later])


@dataclass(frozen=True, eq=False)
class Comparison:
    """Runs of one scenario, compared with the first of them.

    Attributes:
        runs: The runs, in the order in which the user names them.
        warnings: Sentences about differences that affect the comparison.
    """

    runs: tuple[ComparedRun, ...]
    warnings: tuple[str, ...]

    @cached_property
    def differences(self) -> RunDifferences:
        """The settings that differ between the runs, and a label for each run."""
        tables = [run.evaluation.directory.settings_tables() for run in self.runs]
        return find_differences(tables, [run.name for run in self.runs])

    @cached_property
    def main_part(self) -> ErrorPart:
        """The error by which the runs are compared first.

        It is the tracking error; but where only solvers differ and the plant's error hides that,
        the solver's.
        """
        summaries = [run.summary for run in self.runs]
        if not self.differences.only_solvers_differ:
            return TRACKING_ERROR

        for summary in summaries:
            if SOLVER_ERROR not in known_parts(summary):
                return TRACKING_ERROR
            plant = summary["plant_error"]["position_m"]["rms"]
            solver = summary["solver_error"]["position_m"]["rms"]
            if plant < DOMINANT_RATIO * solver:
                return TRACKING_ERROR
        return SOLVER_ERROR

    @property
    def metrics(self) -> list[ComparedMetric]:
        """The lines of `METRICS`, as the terminal and the page show them."""
        tables = [shown_metrics(run.summary) for run in self.runs]

        lines = []
        # Each line has one metric, with a cell for each run.
        for cells in zip(*tables, strict=True):
            name, _, unit, meaning = cells[0]
            values = tuple(value for _, value, _, _ in cells)
            lines.append(ComparedMetric(name, values, unit, meaning))
        return lines

    @cached_property
    def separation(self) -> list[tuple[Array, PoseError] | None]:
        """Separation of each run's tool from that of the first run.

        It is taken at instants (K,) of the trajectory, s, those of the run with fewer samples: the
        first run minus this one. None for the first run and for a run that has no instant in common
        with it.
        """
        separations = [_separation(self.runs[0], run) for run in self.runs[1:]]
        return [None, *separations]

    @cached_property
    def lag(self) -> list[float | None]:
        """Lag of each run behind the first one, s.

        None for the first run and where it cannot be determined.
        """
        lags = [_lag(self.runs[0], run) for run in self.runs[1:]]
        return [None, *lags]

    @cached_property
    def prediction(self) -> list[PredictionError | None]:
        """Prediction error of each run and the first one.

        None unless one of both is simulated and the other measured.
        """
        first = self.runs[0].evaluation
        errors: list[PredictionError | None] = [None]
        for run in self.runs[1:]:
            evaluation = run.evaluation
            if first.is_simulated == evaluation.is_simulated:
                errors.append(None)
            elif first.is_simulated:
                errors.append(prediction_error(first, evaluation))
            else:
                errors.append(prediction_error(evaluation, first))
        return errors

    def as_dict(self) -> dict[str, Any]:
        """Return what `simbridge compare --json` prints (SI units)."""
        runs = []
        for i, run in enumerate(self.runs):
            from_the_first = None
            separation = self.separation[i]
            if separation is not None:
                _, error = separation
                from_the_first = {**error.statistics(), "delay_s": self.lag[i]}

            # The type of a summary allows no keys that are variables.
            summary: Mapping[str, Any] = run.summary
            runs.append(
                {
                    "run": str(run.evaluation.directory.path),
                    "name": run.name,
                    "label": self.differences.labels[i],
                    **{key: summary[key] for key in COMPARED_KEYS},
                    "host_step_time_s": run.evaluation.settings.solver.host_step_time_s,
                    "from_the_first": from_the_first,
                    "prediction_error": self.prediction[i],
                }
            )
        return {
            "scenario": self.runs[0].summary["scenario"],
            "differences": [
                {"setting": setting.name, "values": list(setting.values)}
                for setting in self.differences.settings
            ],
            "warnings": list(self.warnings),
            "runs": runs,
        }


def _separation(first: ComparedRun, second: ComparedRun) -> tuple[Array, PoseError] | None:
    """Return the separation of two tools at the instants (K,), s, of the run with fewer samples.

    None if the runs have no instant of the trajectory in common.
    """
    times, poses = first.by_plan_time
    second_times, second_poses = second.by_plan_time

    begin = max(times[0], second_times[0])
    end = min(times[-1], second_times[-1])
    fewer = times if len(times) <= len(second_times) else second_times
    instants = fewer[(fewer >= begin) & (fewer <= end)]
    if len(instants) == 0:
        return None

    error = PoseError.between(
        pose.interpolate(times, poses, instants),
        pose.interpolate(second_times, second_poses, instants),
    )
    return instants, error


def _lag(first: ComparedRun, second: ComparedRun) -> float | None:
    """Return the lag of the second run behind the first one, s; None if it is not determined."""
    times, poses = first.by_plan_time
    second_times, second_poses = second.by_plan_time
    is_common = (second_times >= times[0]) & (second_times <= times[-1])
    if is_common.sum() < 2:
        return None
    return delay(second_times[is_common], motion_through(times, poses), second_poses[is_common])


def compare_runs(paths: Sequence[Path]) -> Comparison:
    """Read the runs to compare.

    Args:
        paths: Directories of runs; one made by --repeat stands for its runs.

    Raises:
        InvalidParameter: There are fewer than two runs, or they are of different scenarios.
        NotARun: A part of a run is missing or broken.
        LogReadError: A log is broken.
        SimbridgeError: A run has no sample.
    """
    run_paths = [run_path for path in paths for run_path in _runs_in(path)]
    if len(run_paths) < 2:
        raise InvalidParameter("number of runs to compare", len(run_paths), "at least 2")

    runs = []
    for name, path in zip(_distinct_names(run_paths), run_paths, strict=True):
        evaluation = Evaluation.read(path)
        summary = summarize(evaluation, evaluation.outcome)
        runs.append(ComparedRun(name, evaluation, summary))

    warnings = []
    for run in runs[1:]:
        difference = _difference(runs[0], run)
        if difference:
            warnings.append(difference)
    for run in runs:
        outcome = run.summary["outcome"]
        if outcome != "completed":
            warnings.append(f"{run.name} did not complete: {outcome}.")
    return Comparison(tuple(runs), tuple(warnings))


def _runs_in(path: Path) -> list[Path]:
    """Return a run itself, or those that --repeat put into a directory."""
    if (path / "settings.toml").is_file() or not path.is_dir():
        return [path]

    runs = [run.path for run in repeats_in(path)]
    if not runs:
        runs = sorted(child for child in path.iterdir() if (child / "settings.toml").is_file())
    return runs or [path]


def _distinct_names(paths: Sequence[Path]) -> list[str]:
    """Name runs by their directories, or by their paths where two directories have one name.

    Raises:
        InvalidParameter: A run is given twice.
    """
    names = [path.name for path in paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise InvalidParameter("run to compare", repeated, "given only once")
    return names


def _difference(first: ComparedRun, second: ComparedRun) -> str:
    """Return how the motions of two runs differ, as a sentence; "" if they do not.

    Raises:
        InvalidParameter: The runs are of different scenarios.
    """
    reason = _path_difference(first.evaluation, second.evaluation)
    if reason is None:
        return ""

    first_scenario = first.summary["scenario"]
    second_scenario = second.summary["scenario"]
    if first_scenario != second_scenario:
        raise InvalidParameter(
            f"scenario of {second.name}",
            second_scenario,
            f"{first_scenario}, as in {first.name}: {reason}",
        )
    return f"{first.name} and {second.name} have the same scenario name, but {reason}."


def _path_difference(first: Evaluation, second: Evaluation) -> str | None:
    """Return how the trajectories of two runs differ, as a clause; None if they are the same."""
    first_path = first.plan.trajectory
    second_path = second.plan.trajectory
    duration_difference = abs(first_path.duration - second_path.duration)
    if duration_difference > SAME_PATH:
        digits = 3 if duration_difference > SHOWN_IN_MS else 6
        first_duration = plain(round(first_path.duration, digits))
        second_duration = plain(round(second_path.duration, digits))
        return f"one takes {first_duration} s and the other {second_duration} s"

    times = np.union1d(first_path.elapsed, second_path.elapsed)
    is_common = (times <= first_path.elapsed[-1]) & (times <= second_path.elapsed[-1])
    times = times[is_common]
    difference = PoseError.between(first_path.reference(times), second_path.reference(times))
    if difference.distance.max() > SAME_PATH:
        distance = millimetres(float(difference.distance.max()))
        return f"their paths are up to {distance} mm apart"
    if difference.angle.max() > SAME_PATH:
        angle = degrees(float(difference.angle.max()))
        return f"their orientations are up to {angle} degrees apart"
    return None


def iso_figures_of(comparison: Comparison) -> IsoFigures | None:
    """Return ISO 9283-style figures of compared runs.

    None unless they are cycles of one motion on one arm.
    """
    if comparison.warnings:
        return None

    # What the runs have in common, as cycles must.
    setups = []
    for run in comparison.runs:
        summary: Mapping[str, Any] = run.summary
        setup = [summary.get(key) for key in SETUP_KEYS]
        setups.append([run.evaluation.settings.solver, *setup])
    if any(setup != setups[0] for setup in setups[1:]):
        return None

    # Trajectories that differ within the tolerance of a comparison are not one motion.
    try:
        return iso_figures(run.evaluation for run in comparison.runs)
    except UnusableSamples:
        return None
