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

# What a file may call the velocities of a trajectory's points, and of commands to speedj.
VELOCITIES = ("command_qd", "qd", "velocity", "target_qd")
# Times at which a command was sent, or a goal received, in order of preference.
SENT_TIMES = ("received", "sent", *TIMES)
# Time of a trajectory's point from its start.
POINT_TIME = "time_from_start"
# Number of the goal of a point.
GOAL = "goal"
POSITIONS = ("command_q", *JOINT_POSITIONS)


@dataclass(frozen=True, eq=False)
class _SentRows:
    """The rows of a file.

    Attributes:
        path: The file.
        scalars: Columns of one number by name, each (K,).
        q: Joint positions (K, n), rad; None where the file has none.
        qd: Joint velocities (K, n), rad/s; None where the file has none.
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
            are by the log's clock.

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

    times = _sent_times(rows, log.start)
    if times is not None and _is_apart(log, times):
        # Such as the recording of an earlier motion that was replayed.
        note = f"{path}: its times are not within the log, so only the order of its rows is used"
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
    """Read the rows of a file that are whole.

    Raises:
        InputFileError: It cannot be read, or has no joint positions or velocities.
    """
    table = RtdeTable(path, (*POSITIONS, *VELOCITIES))
    q_columns = _first_vector(table, POSITIONS)
    qd_columns = _first_vector(table, VELOCITIES)
    if not q_columns and not qd_columns:
        table.refuse(
            "it has no six columns of joint positions or velocities: q_0 to q_5, command_q_0 ..., "
            "or command_qd_0 ..."
        )
    names = [name for name in (*SENT_TIMES, POINT_TIME, GOAL) if name in table.scalars]
    indices = [*(table.scalars[name] for name in names), *q_columns, *qd_columns]

    values, lines = table.rows(indices)
    is_whole = np.isfinite(values).all(axis=1)
    if not is_whole.any():
        table.refuse("it has no row of numbers")
    lost = lines[~is_whole].tolist()
    values = values[is_whole]

    end = len(names)
    q_end = end + len(q_columns)
    return _SentRows(
        path=path,
        scalars={name: values[:, i] for i, name in enumerate(names)},
        q=values[:, end:q_end] if q_columns else None,
        qd=values[:, q_end:] if qd_columns else None,
        notes=tuple(map(str, [*table.notes, *lost_samples(lost)])),
    )


def _first_vector(table: RtdeTable, names: Sequence[str]) -> list[int]:
    """Return the columns of the first vector of six that a file has; empty for none."""
    return next(
        (table.vectors[name] for name in names if len(table.vectors.get(name, ())) == 6), []
    )


def _sent_times(rows: _SentRows, start: float) -> Array | None:
    """Return when commands were sent (K,), s from the log's first sample; None where unknown.

    Raises:
        InputFileError: A time is earlier than the one before it.
    """
    name = next((name for name in SENT_TIMES if name in rows.scalars), None)
    if name is None:
        return None
    times = rows.scalars[name] - start
    backward = np.flatnonzero(np.diff(times) < 0.0)
    if len(backward):
        reason = f"command {backward[0] + 2} was sent before the one above it"
        raise InputFileError(rows.path, reason, field=name)
    return times


def _read_goals(rows: _SentRows, start: float) -> tuple[TrajectoryGoal, ...]:
    """Return the goals in a file with a row for each point of a trajectory.

    A new goal begins where its number changes, or where the time from its start goes back.

    Raises:
        InputFileError: It has no positions, or does not say when goals were received.
    """
    if rows.q is None:
        raise InputFileError(rows.path, "its points have no joint positions", field="q_0")
    received = _sent_times(rows, start)
    if received is None:
        reason = (
            "it does not say when the goals were received: add a column received, s by the clock "
            "of the log"
        )
        raise InputFileError(rows.path, reason, field="received")

    since_start = rows.scalars[POINT_TIME]
    numbers = rows.scalars.get(GOAL, received)
    begins = np.flatnonzero((np.diff(numbers) != 0.0) | (np.diff(since_start) < 0.0)) + 1
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
    """Return whether times (K,), s from the log's first sample, cannot be those of the log."""
    return bool(times[-1] < log.times[0] - log.duration or times[0] > log.times[-1])
