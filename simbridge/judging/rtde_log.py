"""Reads a recording of a UR controller's RTDE outputs into a `ControllerLog`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from simbridge.errors import InputFileError
from simbridge.judging.log import Clock, Commands, ControllerLog, LogSource, Signal, joint_names
from simbridge.robot.pose import Array, compose, quaternions
from simbridge.text import counted
from simbridge.trajectory.rtde_recording import (
    JOINT_POSITIONS,
    RtdeRecording,
    read_rtde,
    recorded_fields,
)
from simbridge.trajectory.rtde_table import find_vectors, read_header
from simbridge.trajectory.tables.text_lines import is_number
from simbridge.trajectory.trajectory import PENDANT_BASE

# A controller's clock counts from its start; a larger stamp, s, is a time since 1970.
MAX_CONTROLLER_STAMP = 1e8
# The column in which RTDE sends the controller's clock.
CONTROLLER_TIME = "timestamp"
# The column by which a file of goals is known.
POINT_TIME = "time_from_start"


def read_rtde_log(path: Path, names: Sequence[str] = ()) -> ControllerLog:
    """Read a recording.

    Args:
        path: The file.
        names: Names of all columns, for a file without a header.

    Raises:
        InputFileError: It cannot be read, or is not a recording.
    """
    if not names:
        _check_header(path)
    recording = read_rtde(path, names=names, keep_incomplete=True)
    start = float(recording.times[0])
    times = recording.times - start
    joints = recording.columns.get("actual_q", recording.columns.get("target_q"))
    count = 6 if joints is None else joints.shape[1]

    states = {name: _signal(times, values) for name, values in recording.sparse.items()}
    return ControllerLog(
        name=str(path),
        source=LogSource.RTDE,
        clock=_clock(recording),
        start=start,
        times=times,
        joint_names=joint_names(count),
        columns=recording.columns,
        attained_poses=_poses(times, recording.columns.get("actual_TCP_pose")),
        position_commands=_commands(states, "command_q"),
        speed_commands=_commands(states, "command_qd"),
        speed_scaling=_speed_scaling(times, recording.sparse),
        robot_mode=states.get("robot_mode"),
        safety_mode=states.get("safety_mode"),
        program_state=states.get("runtime_state"),
        notes=recording.notes,
    )


def _check_header(path: Path) -> None:
    """Refuse a file whose first line does not name a controller's joints, with what to do.

    Raises:
        InputFileError: It has no header, is a file of goals, or does not say which joints it has.
    """
    try:
        header = read_header(path)
    except OSError as problem:
        raise InputFileError(path, f"it cannot be read: {problem.strerror}") from problem
    cells = [cell for cell in header if cell]
    if not cells or recorded_fields(path):
        # An empty file has a refusal of its own.
        return

    if all(map(is_number, cells)):
        reason = (
            f"it has no header; name its {counted(len(header), 'column')} with --columns, such as "
            "--columns time,actual_q,actual_qd"
        )
        raise InputFileError(path, reason, line=1)
    if POINT_TIME in header:
        reason = "these are trajectories that were sent to an arm, not a log: add them with --goals"
        raise InputFileError(path, reason, field=POINT_TIME)

    vectors = find_vectors(header, JOINT_POSITIONS)
    joints = next((name for name, columns in vectors.items() if len(columns) == 6), None)
    if joints is not None:
        reason = (
            f"its columns of {joints} may be measured positions or targets: name all "
            f"{counted(len(header), 'column')} with --columns, such as --columns time,actual_q,..."
        )
        raise InputFileError(path, reason, field=joints)
    reason = (
        "it has no joints of a UR controller: actual_q_0 to actual_q_5, or target_q_0 to "
        "target_q_5; if it has them under other names, name all its columns with --columns"
    )
    raise InputFileError(path, reason, line=1)


def _clock(recording: RtdeRecording) -> Clock:
    """Return whose clock stamped a recording."""
    is_controller = (
        recording.time_name == CONTROLLER_TIME and recording.times[-1] < MAX_CONTROLLER_STAMP
    )
    return Clock.CONTROLLER if is_controller else Clock.HOST


def _signal(times: Array, values: Array) -> Signal:
    """Return the rows (T, width) of a column in which there is a number."""
    is_whole = np.isfinite(values).all(axis=1)
    rows = values[is_whole]
    return Signal(times[is_whole], rows[:, 0] if rows.shape[1] == 1 else rows)


def _commands(states: Mapping[str, Signal], name: str) -> Commands | None:
    """Return the commands in a column, each sent at the time of its row."""
    signal = states.get(name)
    return None if signal is None else Commands(signal.values, signal.times)


def _poses(times: Array, poses: Array | None) -> Signal | None:
    """Return UR's poses (T, 6), in the pendant's base, as poses in base_link, where recorded."""
    if poses is None:
        return None
    recorded = _signal(times, poses)
    quaternion = quaternions(recorded.values[:, 3:])
    in_pendant_base = np.concatenate([recorded.values[:, :3], quaternion], axis=1)
    return Signal(recorded.times, compose(PENDANT_BASE, in_pendant_base))


def _speed_scaling(times: Array, columns: Mapping[str, Array]) -> Signal | None:
    """Return the controller's speed scaling times the fraction of the speed slider."""
    scaling = columns.get("speed_scaling")
    if scaling is None:
        return None
    slider = columns.get("target_speed_fraction", np.ones_like(scaling))
    return _signal(times, scaling * slider)
