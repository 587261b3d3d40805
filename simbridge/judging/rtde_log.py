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

# Largest stamp by a controller's clock, s, which counts from the controller's start (three years).
# A larger stamp is a time since 1970.
MAX_CONTROLLER_STAMP = 1e8
# Name of the column with the time by the controller's clock, as RTDE names it.
CONTROLLER_TIME = "timestamp"
# Name of the column that identifies a file of goals.
POINT_TIME = "time_from_start"
# Number of joints if the recording has no joint positions.
DEFAULT_JOINTS = 6


def read_rtde_log(path: Path, names: Sequence[str] = ()) -> ControllerLog:
    """Read a recording.

    Args:
        path: The file.
        names: Names of all columns of a file without a header; empty for a file with a header.

    Raises:
        InputFileError: The file cannot be read, or is not a recording.
    """
    if not names:
        _check_header(path)
    recording = read_rtde(path, names=names, keep_incomplete=True)
    start = float(recording.times[0])
    times = recording.times - start
    positions = recording.columns.get("actual_q", recording.columns.get("target_q"))
    joint_count = DEFAULT_JOINTS if positions is None else positions.shape[1]

    # Columns that may be recorded in some of the rows only.
    signals = {name: _select_recorded(times, values) for name, values in recording.sparse.items()}
    return ControllerLog(
        name=str(path),
        source=LogSource.RTDE,
        clock=_find_clock(recording),
        start=start,
        times=times,
        joint_names=joint_names(joint_count),
        columns=recording.columns,
        attained_poses=_convert_poses(times, recording.columns.get("actual_TCP_pose")),
        position_commands=_as_commands(signals.get("command_q")),
        speed_commands=_as_commands(signals.get("command_qd")),
        speed_scaling=_multiply_speed_scaling(times, recording.sparse),
        robot_mode=signals.get("robot_mode"),
        safety_mode=signals.get("safety_mode"),
        program_state=signals.get("runtime_state"),
        notes=recording.notes,
    )


def _check_header(path: Path) -> None:
    """Refuse a file whose first line does not name a controller's joints, and say what to do.

    Raises:
        InputFileError: The file has no header, is a file of goals, or its header does not say
            whether its joints are measured positions or targets.
    """
    try:
        header = read_header(path)
    except OSError as problem:
        raise InputFileError(path, f"it cannot be read: {problem.strerror}") from problem
    cells = [cell for cell in header if cell]
    if not cells or recorded_fields(path):
        # An empty file is refused later, with its own message.
        return

    # The first line has numbers: there is no header.
    if all(map(is_number, cells)):
        reason = (
            f"it has no header; name its {counted(len(header), 'column')} with --columns, such as "
            "--columns time,actual_q,actual_qd"
        )
        raise InputFileError(path, reason, line=1)
    if POINT_TIME in header:
        reason = "these are trajectories that were sent to an arm, not a log: add them with --goals"
        raise InputFileError(path, reason, field=POINT_TIME)

    # Columns such as q_0 to q_5 may be measured positions or targets.
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


def _find_clock(recording: RtdeRecording) -> Clock:
    """Return whose clock stamped a recording."""
    is_controller = (
        recording.time_name == CONTROLLER_TIME and recording.times[-1] < MAX_CONTROLLER_STAMP
    )
    return Clock.CONTROLLER if is_controller else Clock.HOST


def _select_recorded(times: Array, values: Array) -> Signal:
    """Return the rows of a quantity that were recorded, as a signal.

    Args:
        times: Instants of the rows (T,), s.
        values: The quantity (T, width), nan where it was not recorded; of width 1 for a number.
    """
    is_recorded = np.isfinite(values).all(axis=1)
    rows = values[is_recorded]
    is_number_each = rows.shape[1] == 1
    return Signal(times[is_recorded], rows[:, 0] if is_number_each else rows)


def _as_commands(signal: Signal | None) -> Commands | None:
    """Return a signal as commands, each of which was sent at its instant; None for None."""
    return None if signal is None else Commands(signal.values, signal.times)


def _convert_poses(times: Array, poses: Array | None) -> Signal | None:
    """Return the poses of the TCP over time (K, 7), base_link to TCP; None if not recorded.

    Args:
        times: Instants of the rows (T,), s.
        poses: Poses (T, 6) as UR writes them, in the pendant's base: position, m, and rotation
            vector, rad; nan in rows without a pose. None if they were not recorded.
    """
    if poses is None:
        return None
    recorded = _select_recorded(times, poses)
    quaternion = quaternions(recorded.values[:, 3:])
    in_pendant_base = np.concatenate([recorded.values[:, :3], quaternion], axis=1)
    return Signal(recorded.times, compose(PENDANT_BASE, in_pendant_base))


def _multiply_speed_scaling(times: Array, columns: Mapping[str, Array]) -> Signal | None:
    """Return the fraction of full speed over time: the speed scaling times the speed slider.

    It is None if the speed scaling was not recorded; without the slider, that counts as 1.

    Args:
        times: Instants of the rows (T,), s.
        columns: Recorded columns by RTDE's names, each (T, 1).
    """
    scaling = columns.get("speed_scaling")
    if scaling is None:
        return None
    slider = columns.get("target_speed_fraction", np.ones_like(scaling))
    return _select_recorded(times, scaling * slider)
