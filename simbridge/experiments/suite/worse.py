"""Finds the figures that are worse than in an earlier run of the suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from simbridge.experiments.suite.results import MotionResult, PoseSetResult, SuiteResults
from simbridge.text import displayed, significant, with_unit

# Largest relative growth of a figure that counts as the same.
GROWTH = 0.01
# Largest growth of a distance that counts as the same, m.
LEAST_DISTANCE = 1e-6
# Largest growth of an angle that counts as the same, rad.
LEAST_ANGLE = 1e-5
# Largest growth of a lag that counts as the same, s.
LEAST_TIME = 1e-4
# Largest growth of a share of a limit that counts as the same.
LEAST_SHARE = 1e-3
# Largest relative growth of a ratio of times that counts as the same: times vary from run to run.
TIME_GROWTH = 0.3
# Largest fall of the share of solved poses that counts as the same.
LEAST_SOLVED = 0.02


@dataclass(frozen=True)
class ComparedFigure:
    """A figure of a motion that is compared; less is better.

    Attributes:
        name: Name of the figure for people.
        value: Function that returns the figure of a result; None if the result has none.
        least: Largest growth that counts as the same.
        unit: SI unit of the figure; "" for a mere number.
        growth: Largest relative growth that counts as the same.
    """

    name: str
    value: Callable[[MotionResult], float | None]
    least: float
    unit: str = ""
    growth: float = GROWTH

    def is_worse(self, before: float, now: float) -> bool:
        """Return whether a figure has grown beyond what counts as the same."""
        return now - before > max(self.least, self.growth * abs(before))

    def show(self, value: float) -> str:
        """Return a value with its unit."""
        if not self.unit:
            return significant(value)
        return with_unit(*displayed(value, self.unit))


# Figures of a motion that are compared.
FIGURES = (
    ComparedFigure("RMS error", lambda result: result.error.rms_m, LEAST_DISTANCE, "m"),
    ComparedFigure("largest error", lambda result: result.error.max_m, LEAST_DISTANCE, "m"),
    ComparedFigure("RMS rotation error", lambda result: result.error.rms_rad, LEAST_ANGLE, "rad"),
    ComparedFigure(
        "largest rotation error", lambda result: result.error.max_rad, LEAST_ANGLE, "rad"
    ),
    ComparedFigure("lag", lambda result: result.lag_s, LEAST_TIME, "s"),
    ComparedFigure("speed", lambda result: share_of(result, "speed"), LEAST_SHARE),
    ComparedFigure("acceleration", lambda result: share_of(result, "acceleration"), LEAST_SHARE),
    ComparedFigure("jerk", lambda result: share_of(result, "jerk"), LEAST_SHARE),
    ComparedFigure("position limits", lambda result: result.beyond_limits_rad, LEAST_ANGLE, "rad"),
    ComparedFigure("flips", lambda result: result.flips, 0.0, growth=0.0),
    ComparedFigure("chatter", lambda result: result.chatter, LEAST_SHARE),
    ComparedFigure("drift", lambda result: result.drift_rad, LEAST_ANGLE, "rad"),
    ComparedFigure("failed calls", lambda result: count_faults(result), 0.0, growth=0.0),
    ComparedFigure("steps left out", lambda result: result.steps - result.steps_done, 0.0),
    ComparedFigure("time ratio", lambda result: result.times.ratio, 0.0, growth=TIME_GROWTH),
)


def share_of(result: MotionResult, name: str) -> float | None:
    """Return a share of a limit by its name; None if the result has no shares."""
    if result.shares is None:
        return None
    limit_share: float = getattr(result.shares, name)
    return limit_share


def find_worse(earlier: SuiteResults, results: SuiteResults) -> list[str]:
    """Return a sentence for each figure that is worse than in earlier results.

    Motions and solvers that only one of the two has are not compared.
    """
    # Earlier results by motion or set, and solver.
    earlier_motions = {(item.motion, item.solver): item for item in earlier.motion_results}
    earlier_sets = {(item.pose_set, item.solver): item for item in earlier.pose_results}

    sentences: list[str] = []
    for motion_result in results.motion_results:
        earlier_motion = earlier_motions.get((motion_result.motion, motion_result.solver))
        if earlier_motion is not None:
            sentences += _compare_motion(earlier_motion, motion_result)
    for pose_result in results.pose_results:
        earlier_set = earlier_sets.get((pose_result.pose_set, pose_result.solver))
        if earlier_set is not None:
            sentences += _compare_pose_set(earlier_set, pose_result)
    return sentences


def count_faults(result: MotionResult | PoseSetResult) -> int:
    """Return the number of failed calls of a result."""
    return sum(fault.count for fault in result.faults)


def _compare_motion(before: MotionResult, now: MotionResult) -> Iterator[str]:
    """Yield a sentence for each figure of a motion that is worse than before."""
    for figure in FIGURES:
        earlier_value = figure.value(before)
        value = figure.value(now)
        if earlier_value is None or value is None:
            continue
        if figure.is_worse(earlier_value, value):
            change = f"from {figure.show(earlier_value)} to {figure.show(value)}"
            yield f"Worse: {now.solver} on {now.motion}: {figure.name} {change}."


def _compare_pose_set(before: PoseSetResult, now: PoseSetResult) -> Iterator[str]:
    """Yield a sentence if fewer poses are solved than before, and one if more calls failed."""
    if before.solved - now.solved > LEAST_SOLVED:
        change = f"from {100.0 * before.solved:.0f} % to {100.0 * now.solved:.0f} %"
        yield f"Worse: {now.solver} on {now.pose_set}: poses solved {change}."

    failures = count_faults(now)
    if failures > count_faults(before):
        change = f"from {count_faults(before)} to {failures}"
        yield f"Worse: {now.solver} on {now.pose_set}: poses with a failed call {change}."
