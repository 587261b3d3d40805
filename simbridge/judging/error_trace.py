"""The error that a joint trajectory controller compares with its tolerances, over a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simbridge.judging.goal_path import goal_positions
from simbridge.judging.log import ControllerLog, TrajectoryGoal
from simbridge.judging.signal_chain import Signals
from simbridge.robot.pose import Array, Counts

# The reference rests where it moves by no more than this between two samples, rad.
REST_STEP = 1e-6
# A reference that rests for at least this long has come to the end of a trajectory, s.
MIN_REST_S = 0.5


@dataclass(frozen=True, eq=False)
class ErrorTrace:
    """A reference of the joints, and the measured joints beside it.

    Attributes:
        name: What the reference is, as a noun phrase.
        times: Instants (K,), s from the log's beginning, strictly increasing.
        reference: Positions of the reference (K, n), rad.
        actual: Measured positions (K, n), rad.
        error: Reference minus measured positions (K, n), rad.
    """

    name: str
    times: Array
    reference: Array
    actual: Array
    error: Array


@dataclass(frozen=True, eq=False)
class TrajectorySpan:
    """The part of a trace that belongs to one trajectory: to a goal, or to a motion.

    Attributes:
        rows: Rows of the trace, to the one before the next trajectory.
        goal: The goal; None where goals were not recorded.
    """

    rows: slice
    goal: TrajectoryGoal | None


def find_trace(log: ControllerLog, signals: Sequence[Signals] = ()) -> ErrorTrace | None:
    """Return the first reference that a log has, with the measured joints; None without any.

    Args:
        log: The log.
        signals: Signals of its motions, which may have setpoints that the controller's targets
            reveal.
    """
    state = log.reference
    if state is not None:
        name = "the trajectory controller's reference"
        return ErrorTrace(name, state.times, state.q, state.actual_q, state.error)
    if log.actual_q is None:
        return None

    times = log.times
    if log.goals:
        return _trace(
            "the path of the goals", times, goal_positions(log.goals, times), log.actual_q
        )
    if log.setpoints is not None:
        setpoints = newest_positions(log.setpoints.times, log.setpoints.values, times)
        return _trace("the setpoints", times, setpoints, log.actual_q)
    commands = log.position_commands
    if commands is not None and commands.times is not None:
        sent = newest_positions(commands.times, commands.values, times)
        return _trace("the commands", times, sent, log.actual_q)

    revealed = _revealed_trace(signals)
    if revealed is not None:
        return revealed
    if log.target_q is not None:
        return _trace("the controller's own targets", times, log.target_q, log.actual_q)
    return None


def _trace(name: str, times: Array, reference: Array, actual: Array) -> ErrorTrace | None:
    """Return a trace of the rows in which the reference is known; None without any."""
    is_known = np.isfinite(reference).all(axis=1)
    if is_known.sum() < 2:
        return None
    error = (reference - actual)[is_known]
    return ErrorTrace(name, times[is_known], reference[is_known], actual[is_known], error)


def _revealed_trace(signals: Sequence[Signals]) -> ErrorTrace | None:
    """Return the setpoints that the controller's targets reveal; None where they do not."""
    motions = [item for item in signals if {"setpoint", "actual"} <= item.positions.keys()]
    if not motions:
        return None
    times = np.concatenate([item.times for item in motions])
    # Successive motions may share the row between them.
    is_new = np.concatenate([[True], np.diff(times) > 0.0])
    setpoints = np.concatenate([item.positions["setpoint"] for item in motions])[is_new]
    actual = np.concatenate([item.positions["actual"] for item in motions])[is_new]
    name = "the setpoints that the controller's targets reveal"
    return _trace(name, times[is_new], setpoints, actual)


def newest_positions(times: Array, values: Array, instants: Array) -> Array:
    """Return the newest positions (T, n) at instants (T,), s; NaN before the first.

    Args:
        times: Instants of the positions (K,), s, not decreasing.
        values: The positions (K, n), rad.
        instants: The instants.
    """
    index = np.searchsorted(times, instants, side="right") - 1
    newest = values[np.maximum(index, 0)]
    return np.where((index >= 0)[:, np.newaxis], newest, np.nan)


def find_spans(log: ControllerLog, trace: ErrorTrace) -> list[TrajectorySpan]:
    """Return the spans of a trace, in order.

    A span begins where a goal was received; without goals, where the reference sets off after a
    rest. What comes before the first one belongs to none.
    """
    if log.goals:
        received = np.array([goal.received for goal in log.goals])
        begins = np.searchsorted(trace.times, received)
        goals: list[TrajectoryGoal | None] = list(log.goals)
    else:
        begins = _departures(trace)
        goals = [None] * len(begins)

    ends = [*begins[1:].tolist(), len(trace.times)]
    return [
        TrajectorySpan(slice(begin, end), goal)
        for begin, end, goal in zip(begins.tolist(), ends, goals, strict=True)
        if end - begin > 1
    ]


def _departures(trace: ErrorTrace) -> Counts:
    """Return the rows in which the reference sets off after a rest, and the first row."""
    moving = np.flatnonzero(moved_rows(trace.reference))
    if not len(moving):
        return np.zeros(1, dtype=np.int64)
    has_rested = np.diff(trace.times[moving]) >= MIN_REST_S
    departures = moving[1:][has_rested] - 1
    return np.concatenate([[0], departures]).astype(np.int64)


def moved_rows(reference: Array) -> Array:
    """Return which rows (K,) of a reference differ from the one before."""
    steps = np.abs(np.diff(reference, axis=0)).max(axis=1)
    return np.concatenate([[False], steps > REST_STEP])


def end_of_trajectory(trace: ErrorTrace, span: TrajectorySpan) -> int | None:
    """Return the row in which the reference of a span comes to its end.

    None if it moves until the span's end, or rests too briefly for an arm to settle.
    """
    moving = np.flatnonzero(moved_rows(trace.reference[span.rows]))
    if not len(moving):
        return None
    last = span.rows.start + int(moving[-1])
    rest = trace.times[span.rows.stop - 1] - trace.times[last]
    return last if rest >= MIN_REST_S else None
