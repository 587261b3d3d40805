"""Finds when a joint trajectory controller gave up, or would have, and why.

ROS's joint trajectory controller aborts a goal as soon as the error of a joint exceeds the path
tolerance, or if the joints do not come within the goal tolerance after the trajectory's end. Here
the same comparison is made on a log.
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

# Fraction of the tolerance at which an error is a warning of the violation that follows.
WARNING_FRACTION = 0.5
# Longest time from a violation to the controller's report on it, s, including the difference of the
# clocks that stamp the two.
MAX_REPORT_DELAY_S = 0.5
# Errors of FollowJointTrajectory by the kind of tolerance.
ERROR_KINDS = {"PATH_TOLERANCE_VIOLATED": "path", "GOAL_TOLERANCE_VIOLATED": "goal"}


@dataclass(frozen=True)
class Tolerances:
    """Tolerances that the user names, for every joint.

    Attributes:
        path_rad: Largest error on the way, rad; None for the tolerances that the goals name.
        goal_rad: Largest error at the end, rad; None for the tolerances that the goals name.

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
        kind: Tolerance that was exceeded, "path" or "goal"; "unknown" if the controller gave up
            without a recorded reason.
        at_s: Time of the violation, s from the log's beginning.
        joint: Name of the joint.
        error_rad: Size of the joint's error at the violation, rad.
        tolerance_rad: The tolerance, rad; None if only the controller's report is known.
        warning_s: How long before the violation the error last passed half of the tolerance, s;
            None for an error at a trajectory's end.
        growth_rad_s: Mean rate at which the error grew during that time, rad/s; None for an error
            at a trajectory's end, or without such a time.
        was_reported: Whether the controller itself reported that it gave up.
        report: The controller's report: "PATH_TOLERANCE_VIOLATED (...)"; "" if it did not report,
            or gave no reason.
        cause: Cause of the error.
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
        reference: Reference with which the measured joints were compared, as a noun phrase; "" if
            the log has nothing to compare.
        tolerances: The tolerances that the user named.
        worst: The largest error; None if nothing could be compared.
        violations: The first error beyond a tolerance of each goal or motion, in order.
    """

    reference: str
    tolerances: Tolerances
    worst: WorstError | None
    violations: tuple[Violation, ...]


def compare_tolerances(
    log: ControllerLog, tolerances: Tolerances, signals: Sequence[Signals] = ()
) -> ToleranceReport:
    """Find where a log violates the tolerances of a joint trajectory controller.

    The errors are compared with the user's tolerances, or with those of the goals where the user
    names none; the aborts that the controller reported are added.

    Args:
        log: The log.
        tolerances: The user's tolerances.
        signals: Signals of the log's motions, for a log without a reference or commands.
    """
    trace = find_trace(log, signals)
    if trace is None:
        return ToleranceReport(reference="", tolerances=tolerances, worst=None, violations=())

    violations = []
    for span in find_spans(log, trace):
        violation_in_trace = _find_violation(log, trace, span, tolerances)
        aborts = _find_aborts(log, trace, span)
        violation = _merge_reports(log, trace, span, violation_in_trace, aborts)
        if violation is not None:
            violations.append(violation)
    return ToleranceReport(trace.name, tolerances, _find_worst_error(log, trace), tuple(violations))


def _find_violation(
    log: ControllerLog, trace: ErrorTrace, span: TrajectorySpan, tolerances: Tolerances
) -> Violation | None:
    """Return the first violation of a span: on the way, else at its end; None without any."""
    joint_count = len(log.joint_names)
    goal = span.goal

    path_tolerance = None if goal is None else goal.path_tolerance
    path_limits = _choose_limits(tolerances.path_rad, path_tolerance, joint_count)
    violation = _find_path_violation(log, trace, span, path_limits)
    if violation is not None:
        return violation

    goal_tolerance = None if goal is None else goal.goal_tolerance
    goal_limits = _choose_limits(tolerances.goal_rad, goal_tolerance, joint_count)
    return _find_goal_violation(log, trace, span, goal_limits)


def _choose_limits(
    user_tolerance: float | None, goal_tolerance: Array | None, joint_count: int
) -> Array:
    """Return the tolerances of the joints (n,), rad: infinite where none is known.

    Args:
        user_tolerance: The user's tolerance, rad, which takes precedence; None without one.
        goal_tolerance: The goal's tolerances (n,), rad: 0 for the controller's own, which is not
            known, negative for none. None if the goal names no tolerance.
        joint_count: Number of joints.
    """
    if user_tolerance is not None:
        return np.full(joint_count, user_tolerance)
    if goal_tolerance is None:
        return np.full(joint_count, np.inf)
    return np.where(goal_tolerance > 0.0, goal_tolerance, np.inf)


def _find_path_violation(
    log: ControllerLog, trace: ErrorTrace, span: TrajectorySpan, limits: Array
) -> Violation | None:
    """Return the first error of a span beyond the path tolerances (n,), rad; None without any."""
    ratios = np.abs(trace.error[span.rows]) / limits
    rows_beyond = np.flatnonzero(ratios.max(axis=1) > 1.0)
    if not len(rows_beyond):
        return None
    first = int(rows_beyond[0])
    joint = int(ratios[first].argmax())
    row = span.rows.start + first
    return _make_violation(log, trace, span, row=row, joint=joint, tolerance=float(limits[joint]))


def _make_violation(
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
        trace: Reference and measured joints that were compared.
        span: Span of the trace with the row.
        row: Row of the violation.
        joint: Index of the joint, from 0.
        tolerance: The tolerance, rad; None if it is not known: then half of the error, in place of
            half of the tolerance, is the warning.
    """
    sizes = np.abs(trace.error[: row + 1, joint])
    error = float(sizes[row])

    # The warning is the first row of the last stretch beyond half of the tolerance, which may be
    # the first row of the span.
    threshold = WARNING_FRACTION * (error if tolerance is None else tolerance)
    rows_below = np.flatnonzero(sizes[span.rows.start :] <= threshold)
    warning_row = span.rows.start
    if len(rows_below):
        warning_row += int(rows_below[-1]) + 1

    at_s = float(trace.times[row])
    warning_s = at_s - float(trace.times[warning_row])
    growth = (error - float(sizes[warning_row])) / warning_s if warning_s > 0.0 else None
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
        cause=_explain_error(log, trace, span, row=row, joint=joint, tolerance=tolerance),
    )


def _explain_error(
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
        trace: Reference and measured joints that were compared.
        span: Span of the trace with the row.
        row: Row of the violation.
        joint: Index of the joint, from 0.
        tolerance: The tolerance, rad; None if it is not known.
    """
    # After a controller gave up, its reference is no longer the trajectory.
    end = span.rows.stop
    aborted_s = [abort.time for abort in _find_aborts(log, trace, span)]
    if aborted_s:
        end = min(end, int(np.searchsorted(trace.times, min(aborted_s))))
    growth = ErrorGrowth(
        begin=span.rows.start,
        violation=row,
        end=max(end, row + 1),
        joint=joint,
        tolerance=tolerance,
    )
    return find_cause(log, trace, growth)


def _find_goal_violation(
    log: ControllerLog, trace: ErrorTrace, span: TrajectorySpan, limits: Array
) -> Violation | None:
    """Return that the joints did not come within the goal tolerances in time; None if they did.

    They have the time that the goal allows, else until the next trajectory or the log's end.

    Args:
        log: The log.
        trace: Reference and measured joints that were compared.
        span: Span of the trace.
        limits: Goal tolerances of the joints (n,), rad.
    """
    end = end_of_trajectory(trace, span)
    if end is None:
        return None

    # The last row in which the joints may still come within the tolerances.
    last = span.rows.stop - 1
    allowed_s = 0.0 if span.goal is None else span.goal.goal_time_tolerance
    if allowed_s > 0.0:
        deadline = trace.times[end] + allowed_s
        last = min(int(np.searchsorted(trace.times, deadline)), last)

    ratios = np.abs(trace.error[end : last + 1]) / limits
    if (ratios.max(axis=1) <= 1.0).any():
        return None
    joint = int(ratios[-1].argmax())
    tolerance = float(limits[joint])
    return Violation(
        kind="goal",
        at_s=float(trace.times[last]),
        joint=log.joint_names[joint],
        error_rad=abs(float(trace.error[last, joint])),
        tolerance_rad=tolerance,
        warning_s=None,
        growth_rad_s=None,
        was_reported=False,
        report="",
        cause=_explain_error(log, trace, span, row=last, joint=joint, tolerance=tolerance),
    )


def _find_aborts(log: ControllerLog, trace: ErrorTrace, span: TrajectorySpan) -> list[GoalResult]:
    """Return the aborts of a span's goal; if the goal is not known, those during the span."""
    aborts = [result for result in log.results if result.outcome == "aborted"]
    if span.goal is not None and span.goal.goal_id:
        return [result for result in aborts if result.goal_id == span.goal.goal_id]
    begin_s = trace.times[span.rows.start]
    end_s = trace.times[span.rows.stop - 1] + MAX_REPORT_DELAY_S
    return [result for result in aborts if begin_s < result.time <= end_s]


def _merge_reports(
    log: ControllerLog,
    trace: ErrorTrace,
    span: TrajectorySpan,
    violation_in_trace: Violation | None,
    aborts: Sequence[GoalResult],
) -> Violation | None:
    """Return the violation of a span, together with what its controller reported.

    A report that agrees with the violation in the trace completes it. A report that does not, and
    comes first, is a violation itself.

    Args:
        log: The log.
        trace: Reference and measured joints that were compared.
        span: Span of the trace.
        violation_in_trace: The violation that the errors in the trace show; None without any.
        aborts: Aborts of the span's goal that the controller reported.
    """
    for abort in aborts:
        # A goal may also be aborted for reasons other than tolerances.
        if abort.error and abort.error not in ERROR_KINDS:
            continue
        kind = ERROR_KINDS.get(abort.error, "unknown")
        if violation_in_trace is None:
            return _make_reported_violation(log, trace, span, abort, kind)

        is_same_kind = kind in ("unknown", violation_in_trace.kind)
        is_same_time = abs(abort.time - violation_in_trace.at_s) <= MAX_REPORT_DELAY_S
        if is_same_kind and is_same_time:
            return replace(violation_in_trace, was_reported=True, report=describe_result(abort))
        if abort.time < violation_in_trace.at_s:
            return _make_reported_violation(log, trace, span, abort, kind)
    return violation_in_trace


def describe_result(result: GoalResult) -> str:
    """Return the error and the explanation of a result: "PATH_TOLERANCE_VIOLATED (...)"."""
    text = " ".join(result.text.split()).rstrip(".")
    if result.error and text:
        return f"{result.error} ({text})"
    return result.error or text


def _make_reported_violation(
    log: ControllerLog, trace: ErrorTrace, span: TrajectorySpan, abort: GoalResult, kind: str
) -> Violation | None:
    """Return the largest error just before an abort as the violation that the abort reports.

    It is None if the trace has no row just before the abort.

    Args:
        log: The log.
        trace: Reference and measured joints that were compared.
        span: Span of the trace.
        abort: The abort.
        kind: Kind of the tolerance that was exceeded: see `Violation`.
    """
    is_before = (trace.times > abort.time - MAX_REPORT_DELAY_S) & (trace.times <= abort.time)
    rows = np.flatnonzero(is_before)
    rows = rows[(rows >= span.rows.start) & (rows < span.rows.stop)]
    if not len(rows):
        return None
    if kind == "goal":
        # The goal tolerance applies when the time of the joints is over: only the last row counts.
        rows = rows[-1:]
    sizes = np.abs(trace.error[rows])
    row_index, joint = np.unravel_index(int(sizes.argmax()), sizes.shape)
    row = int(rows[row_index])

    tolerance = abort.tolerance_rad
    if tolerance is None:
        tolerance = _find_goal_tolerance(span, kind, int(joint))
    violation = _make_violation(log, trace, span, row=row, joint=int(joint), tolerance=tolerance)
    if kind == "goal":
        violation = replace(violation, warning_s=None, growth_rad_s=None)
    return replace(violation, kind=kind, was_reported=True, report=describe_result(abort))


def _find_goal_tolerance(span: TrajectorySpan, kind: str, joint: int) -> float | None:
    """Return the tolerance that the goal of a span names for a joint, rad; None without one.

    Args:
        span: Span of the trace.
        kind: "goal" for the goal tolerance; the path tolerance for anything else.
        joint: Index of the joint, from 0.
    """
    if span.goal is None:
        return None
    tolerances = span.goal.goal_tolerance if kind == "goal" else span.goal.path_tolerance
    if tolerances is None or tolerances[joint] <= 0.0:
        return None
    return float(tolerances[joint])


def _find_worst_error(log: ControllerLog, trace: ErrorTrace) -> WorstError:
    """Return the largest error of a trace."""
    sizes = np.abs(trace.error)
    row, joint = np.unravel_index(int(sizes.argmax()), sizes.shape)
    return WorstError(
        joint=log.joint_names[int(joint)],
        error_rad=float(sizes[row, joint]),
        at_s=float(trace.times[row]),
    )
