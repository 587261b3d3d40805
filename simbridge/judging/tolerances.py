"""When a joint trajectory controller would have given up, or did, and what brought it there.

ROS's joint trajectory controller aborts a goal as soon as the error of a joint exceeds the path
tolerance, and where the joints do not come within the goal tolerance after the trajectory's end.
Here the same comparison is made on a log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.judging.error_trace import (
    ErrorTrace,
    TrajectorySpan,
    end_of_trajectory,
    find_spans,
    find_trace,
)
from simbridge.judging.log import ControllerLog, GoalResult
from simbridge.judging.signal_chain import Signals
from simbridge.judging.tolerance_causes import Cause, ErrorGrowth, find_cause
from simbridge.robot.pose import Array

# A violation can be seen coming from where the error last passed this fraction of the tolerance.
WARNING_FRACTION = 0.5
# A controller reports a violation at most so long after it, s, and the clocks of a result and of
# the joints differ by at most this.
MAX_REPORT_DELAY_S = 0.5
# Errors of FollowJointTrajectory by the kind of tolerance.
ERROR_KINDS = {"PATH_TOLERANCE_VIOLATED": "path", "GOAL_TOLERANCE_VIOLATED": "goal"}


@dataclass(frozen=True)
class Tolerances:
    """Tolerances that the user names, for every joint.

    Attributes:
        path_rad: Largest error on the way, rad; None for those of the goals.
        goal_rad: Largest error at the end, rad; None for those of the goals.

    Raises:
        InvalidParameter: A tolerance is not a positive number.
    """

    path_rad: float | None = None
    goal_rad: float | None = None

    def __post_init__(self) -> None:
        tolerances = {"--path-tolerance": self.path_rad, "--goal-tolerance": self.goal_rad}
        for name, value in tolerances.items():
            if value is not None and not (np.isfinite(value) and value > 0.0):
                raise InvalidParameter(name, value, "a positive number, rad")


@dataclass(frozen=True)
class Violation:
    """An error beyond a tolerance.

    Attributes:
        kind: "path", "goal", or "unknown" where the controller gave up without a recorded reason.
        at_s: When it happened, s from the log's beginning.
        joint: Name of the joint.
        error_rad: Size of its error then, rad.
        tolerance_rad: The tolerance, rad; None where only the controller's report is known.
        warning_s: Time from where the error last passed half of the tolerance to the violation, s:
            how long before it could be seen coming. None for an error at a trajectory's end.
        growth_rad_s: Mean rate at which the error grew from there, rad/s; None likewise.
        was_reported: Whether the controller itself reported that it gave up.
        report: Its report: "PATH_TOLERANCE_VIOLATED (...)"; "" where it did not report, or gave
            no reason.
        cause: What caused it.
    """

    kind: str
    at_s: float
    joint: str
    error_rad: float
    tolerance_rad: float | None
    warning_s: float | None
    growth_rad_s: float | None
    was_reported: bool
    report: str
    cause: Cause


@dataclass(frozen=True)
class WorstError:
    """The largest error of a log.

    Attributes:
        joint: Name of the joint.
        error_rad: Size of the error, rad.
        at_s: When it was, s from the log's beginning.
    """

    joint: str
    error_rad: float
    at_s: float


@dataclass(frozen=True)
class ToleranceReport:
    """How a log compares with the tolerances of a joint trajectory controller.

    Attributes:
        reference: What the measured joints were compared with, as a noun phrase; "" where the log
            has nothing to compare.
        tolerances: The tolerances that the user named.
        worst: The largest error; None where nothing could be compared.
        violations: The first error beyond a tolerance of each goal or motion, in order.
    """

    reference: str
    tolerances: Tolerances
    worst: WorstError | None
    violations: tuple[Violation, ...]


def compare_tolerances(
    log: ControllerLog, tolerances: Tolerances, signals: Sequence[Signals] = ()
) -> ToleranceReport:
    """Compare a log with the user's tolerances, else with those that its goals name.

    Args:
        log: The log.
        tolerances: The user's tolerances.
        signals: Signals of the log's motions, for a log without a reference or commands.
    """
    trace = find_trace(log, signals)
    if trace is None:
        return ToleranceReport("", tolerances, None, ())

    violations = []
    for span in find_spans(log, trace):
        results = _results_in(log, trace, span)
        found = _find_violation(log, trace, span, tolerances)
        violation = _merge(log, trace, span, found, results)
        if violation is not None:
            violations.append(violation)
    return ToleranceReport(trace.name, tolerances, _worst_error(log, trace), tuple(violations))


def _find_violation(
    log: ControllerLog, trace: ErrorTrace, span: TrajectorySpan, tolerances: Tolerances
) -> Violation | None:
    """Return the first violation of a span: on the way, else at its end; None without any."""
    joints = len(log.joint_names)
    goal = span.goal
    on_way = _limits(tolerances.path_rad, None if goal is None else goal.path_tolerance, joints)
    violation = _path_violation(log, trace, span, on_way)
    if violation is not None:
        return violation
    at_end = _limits(tolerances.goal_rad, None if goal is None else goal.goal_tolerance, joints)
    return _goal_violation(log, trace, span, at_end)


def _limits(named: float | None, of_goal: Array | None, joints: int) -> Array:
    """Return the tolerances of the joints (n,), rad: infinite where none is known.

    Args:
        named: The user's tolerance, rad; None without one.
        of_goal: The goal's tolerances (n,), rad: 0 for the controller's own, which is not known,
            negative for none. None where the goal names none.
        joints: Number of joints.
    """
    if named is not None:
        return np.full(joints, named)
    if of_goal is None:
        return np.full(joints, np.inf)
    return np.where(of_goal > 0.0, of_goal, np.inf)


def _path_violation(
    log: ControllerLog, trace: ErrorTrace, span: TrajectorySpan, limits: Array
) -> Violation | None:
    """Return the first error of a span beyond the path tolerances (n,), rad."""
    ratios = np.abs(trace.error[span.rows]) / limits
    beyond = np.flatnonzero(ratios.max(axis=1) > 1.0)
    if not len(beyond):
        return None
    row = span.rows.start + int(beyond[0])
    joint = int(ratios[beyond[0]].argmax())
    return _path_error_at(log, trace, span, row=row, joint=joint, tolerance=float(limits[joint]))


def _path_error_at(
    log: ControllerLog,
    trace: ErrorTrace,
    span: TrajectorySpan,
    *,
    row: int,
    joint: int,
    tolerance: float | None,
) -> Violation:
    """Return the error of a joint in a row as a violation of the path tolerance.

    Args:
        log: The log.
        trace: What was compared.
        span: The span of the row.
        row: The row.
        joint: Index of the joint, from 0.
        tolerance: The tolerance, rad; None where it is not known: then that of the error itself
            tells when it could be seen coming.
    """
    size = np.abs(trace.error[: row + 1, joint])
    error = float(size[row])
    threshold = WARNING_FRACTION * (error if tolerance is None else tolerance)
    below = np.flatnonzero(size[span.rows.start :] <= threshold)
    # Beyond half of the tolerance from the first row on, it could be seen from the beginning.
    seen = span.rows.start + (int(below[-1]) + 1 if len(below) else 0)

    at_s = float(trace.times[row])
    warning_s = at_s - float(trace.times[seen])
    growth = (error - float(size[seen])) / warning_s if warning_s > 0.0 else None
    return Violation(
        kind="path",
        at_s=at_s,
        joint=log.joint_names[joint],
        error_rad=error,
        tolerance_rad=tolerance,
        warning_s=warning_s,
        growth_rad_s=growth,
        was_reported=False,
        report="",
        cause=_cause(log, trace, span, row=row, joint=joint, tolerance=tolerance),
    )


def _cause(
    log: ControllerLog,
    trace: ErrorTrace,
    span: TrajectorySpan,
    *,
    row: int,
    joint: int,
    tolerance: float | None,
) -> Cause:
    """Return the cause of the error of a joint in a row.

    Args:
        log: The log.
        trace: What was compared.
        span: The span of the row.
        row: The row.
        joint: Index of the joint, from 0.
        tolerance: The tolerance, rad; None where it is not known.
    """
    # Where a controller gave up, its reference is no longer the trajectory.
    gave_up = [result.time for result in _results_in(log, trace, span)]
    end = span.rows.stop
    if gave_up:
        end = min(end, int(np.searchsorted(trace.times, min(gave_up))))
    growth = ErrorGrowth(
        begin=span.rows.start,
        at=row,
        end=max(end, row + 1),
        joint=joint,
        tolerance=tolerance,
    )
    return find_cause(log, trace, growth)


def _goal_violation(
    log: ControllerLog, trace: ErrorTrace, span: TrajectorySpan, limits: Array
) -> Violation | None:
    """Return that the joints did not come within the goal tolerances (n,), rad, in time.

    Without a time in the goal they have until the next trajectory, or the log's end.
    """
    end = end_of_trajectory(trace, span)
    if end is None:
        return None
    allowed_s = 0.0 if span.goal is None else span.goal.goal_time_tolerance
    last = span.rows.stop - 1
    if allowed_s > 0.0:
        deadline = trace.times[end] + allowed_s
        last = min(int(np.searchsorted(trace.times, deadline)), last)

    ratios = np.abs(trace.error[end : last + 1]) / limits
    if (ratios.max(axis=1) <= 1.0).any():
        return None
    joint = int(ratios[-1].argmax())
    return Violation(
        kind="goal",
        at_s=float(trace.times[last]),
        joint=log.joint_names[joint],
        error_rad=abs(float(trace.error[last, joint])),
        tolerance_rad=float(limits[joint]),
        warning_s=None,
        growth_rad_s=None,
        was_reported=False,
        report="",
        cause=_cause(log, trace, span, row=last, joint=joint, tolerance=float(limits[joint])),
    )


def _results_in(log: ControllerLog, trace: ErrorTrace, span: TrajectorySpan) -> list[GoalResult]:
    """Return the results of goals that did not succeed, of the goal of a span or in its time."""
    failed = [result for result in log.results if result.outcome == "aborted"]
    if span.goal is not None and span.goal.goal_id:
        return [result for result in failed if result.goal_id == span.goal.goal_id]
    begin_s = trace.times[span.rows.start]
    end_s = trace.times[span.rows.stop - 1] + MAX_REPORT_DELAY_S
    return [result for result in failed if begin_s < result.time <= end_s]


def _merge(
    log: ControllerLog,
    trace: ErrorTrace,
    span: TrajectorySpan,
    found: Violation | None,
    results: Sequence[GoalResult],
) -> Violation | None:
    """Return the violation of a span, together with what its controller reported.

    Args:
        log: The log.
        trace: What was compared.
        span: The span.
        found: The violation that the errors show; None for none.
        results: The controller's results for the span's goal.
    """
    for result in results:
        # A goal may also be aborted for what is not a matter of tolerances.
        if result.error and result.error not in ERROR_KINDS:
            continue
        kind = ERROR_KINDS.get(result.error, "unknown")
        is_same = (
            found is not None
            and kind in ("unknown", found.kind)
            and abs(result.time - found.at_s) <= MAX_REPORT_DELAY_S
        )
        if found is not None and is_same:
            return replace(found, was_reported=True, report=describe_result(result))
        if found is None or result.time < found.at_s:
            return _reported_violation(log, trace, span, result, kind)
    return found


def describe_result(result: GoalResult) -> str:
    """Return the error and the explanation of a result: "PATH_TOLERANCE_VIOLATED (...)"."""
    text = " ".join(result.text.split()).rstrip(".")
    if result.error and text:
        return f"{result.error} ({text})"
    return result.error or text


def _reported_violation(
    log: ControllerLog, trace: ErrorTrace, span: TrajectorySpan, result: GoalResult, kind: str
) -> Violation | None:
    """Return the largest error just before a result as the violation that it reports.

    None if the log has no sample there.
    """
    before = (trace.times > result.time - MAX_REPORT_DELAY_S) & (trace.times <= result.time)
    rows = np.flatnonzero(before)
    rows = rows[(rows >= span.rows.start) & (rows < span.rows.stop)]
    if not len(rows):
        return None
    if kind == "goal":
        # What counts at the end is where the joints are when their time is over.
        rows = rows[-1:]
    sizes = np.abs(trace.error[rows])
    row_index, joint = np.unravel_index(int(sizes.argmax()), sizes.shape)
    row = int(rows[row_index])

    tolerance = result.tolerance_rad
    if tolerance is None:
        tolerance = _tolerance_of_goal(span, kind, int(joint))
    violation = _path_error_at(log, trace, span, row=row, joint=int(joint), tolerance=tolerance)
    if kind == "goal":
        violation = replace(violation, warning_s=None, growth_rad_s=None)
    return replace(violation, kind=kind, was_reported=True, report=describe_result(result))


def _tolerance_of_goal(span: TrajectorySpan, kind: str, joint: int) -> float | None:
    """Return the tolerance that the goal of a span names for a joint, rad; None without one."""
    if span.goal is None:
        return None
    tolerances = span.goal.goal_tolerance if kind == "goal" else span.goal.path_tolerance
    if tolerances is None or tolerances[joint] <= 0.0:
        return None
    return float(tolerances[joint])


def _worst_error(log: ControllerLog, trace: ErrorTrace) -> WorstError:
    """Return the largest error of a trace."""
    sizes = np.abs(trace.error)
    row, joint = np.unravel_index(int(sizes.argmax()), sizes.shape)
    return WorstError(
        joint=log.joint_names[int(joint)],
        error_rad=float(sizes[row, joint]),
        at_s=float(trace.times[row]),
    )
