"""Reads a file of what was sent to an arm: commands one by one, or trajectories as goals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from simbridge.errors import InputFileError
from simbridge.identification.data import sent_commands
from simbridge.judging.log import Commands, ControllerLog, TrajectoryGoal
from simbridge.robot.pose import Array
from simbridge.text import counted
from simbridge.trajectory.dropped_rows import lost_samples
from simbridge.trajectory.rtde_recording import JOINT_POSITIONS, TIMES
from simbridge.trajectory.rtde_table import RtdeTable

# Names of columns with positions of a trajectory's points, or commands to servoj, in order of
# preference.
POSITIONS = ("command_q", *JOINT_POSITIONS)
# Names of columns with velocities of a trajectory's points, or commands to speedj, in order of
# preference.
VELOCITIES = ("command_qd", "qd", "velocity", "target_qd")
# Names of the column with the time at which a command was sent, or a goal received, in order of
# preference.
SENT_TIMES = ("received", "sent", *TIMES)
# Name of the column with the time of a trajectory's point from the trajectory's start.
POINT_TIME = "time_from_start"
# Name of the column with the number of the goal that a point belongs to.
GOAL = "goal"


@dataclass(frozen=True, eq=False)
class _SentRows:
    """The complete rows of a file with what was sent to an arm.

    Attributes:
        path: The file.
        scalars: Times and numbers of goals by the name of their column, each (K,).
        q: Joint positions (K, n), rad; None if the file has none.
        qd: Joint velocities (K, n), rad/s; None if the file has none.
        notes: Sentences about what was left out.
    """

    path: Path
    scalars: dict[str, Array]
    q: Array | None
    qd: Array | None
    notes: tuple[str, ...]


def add_sent(log: ControllerLog, path: str) -> ControllerLog:
    """Return a log with what was sent to its arm.

    Args:
        log: The log.
        path: A file of goals (a row for each point, with its time_from_start), of commands with
            their times, or of commands in order; or the directory of the run that sent them. Times
            in a file are by the log's clock.

    Raises:
        InputFileError: The file cannot be read, or does not fit the log.
        NotARun, LogReadError: The run cannot be read.
    """
    if Path(path).is_dir():
        return replace(log, position_commands=Commands(sent_commands(path)))

    rows = _read_rows(Path(path))
    notes = (*log.notes, *(f"{path}: {note}" for note in rows.notes))
    log = replace(log, notes=notes)
    if POINT_TIME in rows.scalars:
        return _add_goals(log, rows)
    return _add_commands(log, rows)


def _add_goals(log: ControllerLog, rows: _SentRows) -> ControllerLog:
    """Return a log with the goals in a file.

    Raises:
        InputFileError: The goals are of another arm, or were received at another time.
    """
    goals = _read_goals(rows, log.start)
    _check_joints(log, rows.path, goals[0].q)
    received = np.array([goal.received for goal in goals])
    if _is_apart(log, received):
        reason = (
            f"its goals were received from {received[0] + log.start:.6g} s on, but the log is "
            f"from {log.start:.6g} to {log.start + log.duration:.6g} s: they must be by the "
            "same clock"
        )
        raise InputFileError(rows.path, reason, field="received")
    return replace(log, goals=goals)


def _add_commands(log: ControllerLog, rows: _SentRows) -> ControllerLog:
    """Return a log with the commands in a file: positions for servoj, else speeds for speedj.

    Raises:
        InputFileError: The file has no commands, or commands for another number of joints.
    """
    times = _read_sent_times(rows, log.start)
    if times is not None and _is_apart(log, times):
        # The file may be the recording of an earlier motion, which was replayed.
        note = (
            f"{rows.path}: its times are not within the log, so only the order of its rows is used"
        )
        log = replace(log, notes=(*log.notes, note))
        times = None

    if rows.q is not None:
        _check_joints(log, rows.path, rows.q)
        return replace(log, position_commands=Commands(rows.q, times))
    if rows.qd is None:
        raise InputFileError(rows.path, "it has no six columns of joint positions or velocities")
    _check_joints(log, rows.path, rows.qd)
    return replace(log, speed_commands=Commands(rows.qd, times))


def _read_rows(path: Path) -> _SentRows:
    """Read the complete rows of a file.

    Raises:
        InputFileError: It cannot be read, or has no joint positions or velocities.
    """
    table = RtdeTable(path, (*POSITIONS, *VELOCITIES))
    q_columns = _find_first_vector(table, POSITIONS)
    qd_columns = _find_first_vector(table, VELOCITIES)
    if not q_columns and not qd_columns:
        table.refuse(
            "it has no six columns of joint positions or velocities: q_0 to q_5, command_q_0 ..., "
            "or command_qd_0 ..."
        )
    # All columns that matter are read side by side: single numbers, positions, velocities.
    names = [name for name in (*SENT_TIMES, POINT_TIME, GOAL) if name in table.scalars]
    scalar_columns = [table.scalars[name] for name in names]
    values, lines = table.rows([*scalar_columns, *q_columns, *qd_columns])
    is_complete = np.isfinite(values).all(axis=1)
    if not is_complete.any():
        table.refuse("it has no row of numbers")
    lost_lines = lines[~is_complete].tolist()
    values = values[is_complete]

    q_begin = len(names)
    qd_begin = q_begin + len(q_columns)
    return _SentRows(
        path=path,
        scalars={name: values[:, index] for index, name in enumerate(names)},
        q=values[:, q_begin:qd_begin] if q_columns else None,
        qd=values[:, qd_begin:] if qd_columns else None,
        notes=tuple(map(str, [*table.notes, *lost_samples(lost_lines)])),
    )


def _find_first_vector(table: RtdeTable, names: Sequence[str]) -> list[int]:
    """Return the columns of the first vector of six among some names; none if a file has none."""
    for name in names:
        columns = table.vectors.get(name, [])
        if len(columns) == 6:
            return columns
    return []


def _read_sent_times(rows: _SentRows, start: float) -> Array | None:
    """Return when commands were sent (K,), s from the log's first sample; None if not known.

    Args:
        rows: Rows of the file.
        start: Stamp of the log's first sample, s.

    Raises:
        InputFileError: A time is earlier than the one before it.
    """
    names = [name for name in SENT_TIMES if name in rows.scalars]
    if not names:
        return None

    name = names[0]
    times = rows.scalars[name] - start
    backward = np.flatnonzero(np.diff(times) < 0.0)
    if len(backward):
        reason = f"command {backward[0] + 2} was sent before the one above it"
        raise InputFileError(rows.path, reason, field=name)
    return times


def _read_goals(rows: _SentRows, start: float) -> tuple[TrajectoryGoal, ...]:
    """Return the goals in a file with a row for each point of a trajectory.

    A new goal begins where the number of the goal changes, or the time of its reception if goals
    have no numbers, or where the time from the start goes back.

    Args:
        rows: Rows of the file.
        start: Stamp of the log's first sample, s.

    Raises:
        InputFileError: The file has no positions, or does not say when goals were received.
    """
    if rows.q is None:
        raise InputFileError(rows.path, "its points have no joint positions", field="q_0")
    received = _read_sent_times(rows, start)
    if received is None:
        reason = (
            "it does not say when the goals were received: add a column received, s by the clock "
            "of the log"
        )
        raise InputFileError(rows.path, reason, field="received")

    since_start = rows.scalars[POINT_TIME]
    goal_numbers = rows.scalars.get(GOAL, received)
    is_next_goal = (np.diff(goal_numbers) != 0.0) | (np.diff(since_start) < 0.0)
    begins = np.flatnonzero(is_next_goal) + 1

    goals: list[TrajectoryGoal] = []
    for points in np.split(np.arange(len(since_start)), begins):
        goals.append(
            TrajectoryGoal(
                received=float(received[points[0]]),
                times=since_start[points],
                q=rows.q[points],
                qd=None if rows.qd is None else rows.qd[points],
                goal_id=str(len(goals)),
            )
        )
    return tuple(goals)


def _check_joints(log: ControllerLog, path: Path, values: Array) -> None:
    """Refuse positions or velocities (K, n) that have another number of joints than the log."""
    joints = len(log.joint_names)
    if values.shape[1] != joints:
        reason = f"it has {counted(values.shape[1], 'joint')}, but the log has {joints}"
        raise InputFileError(path, reason)


def _is_apart(log: ControllerLog, times: Array) -> bool:
    """Return whether times (K,), s from the log's first sample, cannot belong to the log.

    What was sent may precede the log by as much as the log's own duration.
    """
    ends_too_early = times[-1] < log.times[0] - log.duration
    begins_too_late = times[0] > log.times[-1]
    return bool(ends_too_early or begins_too_late)
