"""The error that a joint trajectory controller compares with its tolerances, over a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simbridge.judging.goal_path import goal_positions
from simbridge.judging.log import ControllerLog, TrajectoryGoal
from simbridge.judging.signal_chain import Signals
from simbridge.robot.pose import Array, Counts

# Largest step of a reference at rest between two samples, rad.
REST_STEP = 1e-6
# Shortest rest of a reference between two trajectories, s: within a trajectory it rests for less.
MIN_REST_S = 0.5


@dataclass(frozen=True, eq=False)
class ErrorTrace:
    """A reference of the joints, and the measured joints at the same instants.

    Attributes:
        name: Name of the reference, as a noun phrase: "the setpoints".
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
        rows: Rows of the trace, up to the one before the next trajectory.
        goal: The goal; None if goals were not recorded.
    """

    rows: slice
    goal: TrajectoryGoal | None


def find_trace(log: ControllerLog, signals: Sequence[Signals] = ()) -> ErrorTrace | None:
    """Return the best reference that a log has, with the measured joints; None without any.

    The controller's own comparison is best; then comes what is closest to what the user asked for:
    goals, setpoints, commands, and last the controller's targets.

    Args:
        log: The log.
        signals: Signals of the log's motions, which may have setpoints that the controller's
            targets reveal.
    """
    controller_state = log.reference
    if controller_state is not None:
        return ErrorTrace(
            name="the trajectory controller's reference",
            times=controller_state.times,
            reference=controller_state.q,
            actual=controller_state.actual_q,
            error=controller_state.error,
        )
    if log.actual_q is None:
        return None

    times = log.times
    if log.goals:
        path = goal_positions(log.goals, times)
        return _make_trace("the path of the goals", times, path, log.actual_q)
    if log.setpoints is not None:
        setpoints = newest_positions(log.setpoints.times, log.setpoints.values, times)
        return _make_trace("the setpoints", times, setpoints, log.actual_q)
    commands = log.position_commands
    if commands is not None and commands.times is not None:
        newest_commands = newest_positions(commands.times, commands.values, times)
        return _make_trace("the commands", times, newest_commands, log.actual_q)

    revealed = _find_revealed_setpoints(signals)
    if revealed is not None:
        return revealed
    if log.target_q is not None:
        return _make_trace("the controller's own targets", times, log.target_q, log.actual_q)
    return None


def _make_trace(name: str, times: Array, reference: Array, actual: Array) -> ErrorTrace | None:
    """Return a trace of the rows in which the reference is known; None if there are fewer than two.

    Args:
        name: Name of the reference, as a noun phrase.
        times: Instants (T,), s from the log's beginning.
        reference: Positions of the reference (T, n), rad; NaN where they are not known.
        actual: Measured positions (T, n), rad.
    """
    is_known = np.isfinite(reference).all(axis=1)
    if is_known.sum() < 2:
        return None
    error = (reference - actual)[is_known]
    return ErrorTrace(name, times[is_known], reference[is_known], actual[is_known], error)


def _find_revealed_setpoints(signals: Sequence[Signals]) -> ErrorTrace | None:
    """Return a trace of the setpoints that the controller's targets reveal; None without any."""
    motions = [item for item in signals if {"setpoint", "actual"} <= item.positions.keys()]
    if not motions:
        return None

    # The motions one after the other; successive ones may share the row between them.
    times = np.concatenate([item.times for item in motions])
    is_new = np.concatenate([[True], np.diff(times) > 0.0])
    setpoints = np.concatenate([item.positions["setpoint"] for item in motions])[is_new]
    actual = np.concatenate([item.positions["actual"] for item in motions])[is_new]
    name = "the setpoints that the controller's targets reveal"
    return _make_trace(name, times[is_new], setpoints, actual)


def newest_positions(times: Array, values: Array, instants: Array) -> Array:
    """Return the newest positions (T, n), rad, at some instants; NaN before the first position.

    Args:
        times: Instants of the positions (K,), s, not decreasing.
        values: The positions (K, n), rad.
        instants: Instants at which the newest positions are wanted (T,), s.
    """
    # Index of the newest position at each instant; -1 before the first.
    newest = np.searchsorted(times, instants, side="right") - 1
    is_known = newest >= 0
    positions = values[np.maximum(newest, 0)]
    return np.where(is_known[:, np.newaxis], positions, np.nan)


def find_spans(log: ControllerLog, trace: ErrorTrace) -> list[TrajectorySpan]:
    """Return the spans of a trace that belong to one trajectory each, in order.

    A span begins where a goal was received; without goals, where the reference sets off after a
    rest. Rows before the first goal belong to no span.
    """
    if log.goals:
        received = np.array([goal.received for goal in log.goals])
        begins = np.searchsorted(trace.times, received)
        goals: list[TrajectoryGoal | None] = list(log.goals)
    else:
        begins = _find_departures(trace)
        goals = [None] * len(begins)

    ends = [*begins[1:].tolist(), len(trace.times)]
    return [
        TrajectorySpan(slice(begin, end), goal)
        for begin, end, goal in zip(begins.tolist(), ends, goals, strict=True)
        if end - begin > 1
    ]


def _find_departures(trace: ErrorTrace) -> Counts:
    """Return the first row, and the last row of each rest of the reference."""
    moving = np.flatnonzero(moved_rows(trace.reference))
    if not len(moving):
        return np.zeros(1, dtype=np.int64)

    # Between two successive moving rows the reference may have rested.
    has_rested = np.diff(trace.times[moving]) >= MIN_REST_S
    departures = moving[1:][has_rested] - 1
    return np.concatenate([[0], departures]).astype(np.int64)


def moved_rows(reference: Array) -> Array:
    """Return which rows (K,) of a reference differ from the one before."""
    steps = np.abs(np.diff(reference, axis=0)).max(axis=1)
    return np.concatenate([[False], steps > REST_STEP])


def end_of_trajectory(trace: ErrorTrace, span: TrajectorySpan) -> int | None:
    """Return the row in which the reference of a span comes to rest for good.

    It is None if the reference does not move at all, or does not rest long enough at the span's
    end for an arm to settle.
    """
    moving = np.flatnonzero(moved_rows(trace.reference[span.rows]))
    if not len(moving):
        return None
    last_moving = span.rows.start + int(moving[-1])
    rest_s = trace.times[span.rows.stop - 1] - trace.times[last_moving]
    return last_moving if rest_s >= MIN_REST_S else None
