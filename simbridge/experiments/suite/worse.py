"""What got worse since an earlier run of the suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from simbridge.experiments.suite.results import MotionResult, PoseSetResult, SuiteResults
from simbridge.text import displayed, significant, with_unit

# A figure is worse if it has grown by more than this part ...
GROWTH = 0.01
# ... and by more than these, m, rad, s, or a share of a limit: below them is rounding.
LEAST_DISTANCE = 1e-6
LEAST_ANGLE = 1e-5
LEAST_TIME = 1e-4
LEAST_SHARE = 1e-3
# Times vary from run to run: their ratios must have grown by more than this part.
TIME_GROWTH = 0.3
# The share of poses that are solved must have fallen by more than this.
LEAST_SOLVED = 0.02


@dataclass(frozen=True)
class Figure:
    """A figure of a motion that is compared; the lower, the better.

    Attributes:
        name: Its name for people.
        value: Returns it from a result; None where the result has none.
        least: Growth up to which it counts as the same.
        unit: Its SI unit, "" for a number.
        growth: Relative growth up to which it counts as the same.
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


FIGURES = (
    Figure("RMS error", lambda result: result.error.rms_m, LEAST_DISTANCE, "m"),
    Figure("largest error", lambda result: result.error.max_m, LEAST_DISTANCE, "m"),
    Figure("RMS rotation error", lambda result: result.error.rms_rad, LEAST_ANGLE, "rad"),
    Figure("largest rotation error", lambda result: result.error.max_rad, LEAST_ANGLE, "rad"),
    Figure("lag", lambda result: result.lag_s, LEAST_TIME, "s"),
    Figure("speed", lambda result: share_of(result, "speed"), LEAST_SHARE),
    Figure("acceleration", lambda result: share_of(result, "acceleration"), LEAST_SHARE),
    Figure("jerk", lambda result: share_of(result, "jerk"), LEAST_SHARE),
    Figure("position limits", lambda result: result.beyond_limits_rad, LEAST_ANGLE, "rad"),
    Figure("flips", lambda result: result.flips, 0.0, growth=0.0),
    Figure("chatter", lambda result: result.chatter, LEAST_SHARE),
    Figure("drift", lambda result: result.drift_rad, LEAST_ANGLE, "rad"),
    Figure("failed calls", lambda result: count_faults(result), 0.0, growth=0.0),
    Figure("steps left out", lambda result: result.steps - result.steps_done, 0.0),
    Figure("time ratio", lambda result: result.times.ratio, 0.0, growth=TIME_GROWTH),
)


def share_of(result: MotionResult, name: str) -> float | None:
    """Return a share of a limit by its name; None where the result has no shares."""
    if result.shares is None:
        return None
    share: float = getattr(result.shares, name)
    return share


def find_worse(earlier: SuiteResults, results: SuiteResults) -> list[str]:
    """Return a sentence for each figure that is worse than in earlier results.

    Motions and solvers that only one of the two has are not compared.
    """
    motions = {(result.motion, result.solver): result for result in earlier.motion_results}
    pose_sets = {(result.pose_set, result.solver): result for result in earlier.pose_results}

    sentences: list[str] = []
    for motion_result in results.motion_results:
        before = motions.get((motion_result.motion, motion_result.solver))
        if before is not None:
            sentences += _worse_in_motion(before, motion_result)
    for pose_result in results.pose_results:
        solved_before = pose_sets.get((pose_result.pose_set, pose_result.solver))
        if solved_before is not None:
            sentences += _worse_in_pose_set(solved_before, pose_result)
    return sentences


def count_faults(result: MotionResult | PoseSetResult) -> int:
    """Return the number of failed calls of a result."""
    return sum(fault.count for fault in result.faults)


def _worse_in_motion(before: MotionResult, now: MotionResult) -> Iterator[str]:
    for figure in FIGURES:
        earlier_value = figure.value(before)
        value = figure.value(now)
        if earlier_value is None or value is None:
            continue
        if figure.is_worse(earlier_value, value):
            change = f"from {figure.show(earlier_value)} to {figure.show(value)}"
            yield f"Worse: {now.solver} on {now.motion}: {figure.name} {change}."


def _worse_in_pose_set(before: PoseSetResult, now: PoseSetResult) -> Iterator[str]:
    if before.solved - now.solved > LEAST_SOLVED:
        change = f"from {100.0 * before.solved:.0f} % to {100.0 * now.solved:.0f} %"
        yield f"Worse: {now.solver} on {now.pose_set}: poses solved {change}."

    failures = count_faults(now)
    if failures > count_faults(before):
        change = f"from {count_faults(before)} to {failures}"
        yield f"Worse: {now.solver} on {now.pose_set}: poses with a failed call {change}."
