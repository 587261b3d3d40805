"""Reads the table of an exported run, samples.csv or samples.parquet, into a `ControllerLog`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from simbridge.errors import InputFileError
from simbridge.judging.log import Clock, Commands, ControllerLog, LogSource, Signal
from simbridge.recording.sample_table import POSE_PARTS
from simbridge.robot.pose import Array
from simbridge.trajectory.rtde_table import RtdeTable, read_header
from simbridge.trajectory.tables.array_files import read_arrays

# The columns by which the table is known: the stamps, and the positions of joints.
STAMP = "stamp_s"
POSITION_SUFFIX = "_position_rad"
PARQUET = ".parquet"


def is_exported_table(path: Path) -> bool:
    """Return whether a file is the table of an exported run."""
    if path.suffix.lower() == PARQUET:
        return True
    try:
        names = read_header(path)
    except (InputFileError, OSError):
        return False
    return STAMP in names and any(name.endswith(POSITION_SUFFIX) for name in names)


def read_exported_table(path: Path) -> ControllerLog:
    """Read the table of an exported run.

    Raises:
        InputFileError: It cannot be read, or is not such a table.
    """
    table = _read_columns(path)
    names = [name.removesuffix(POSITION_SUFFIX) for name in table if name.endswith(POSITION_SUFFIX)]
    if STAMP not in table or not names:
        reason = f"it is not an exported run: it has no columns {STAMP} and JOINT{POSITION_SUFFIX}"
        raise InputFileError(path, reason)

    stamps = table[STAMP]
    # A paused controller repeats its stamp.
    is_new = np.isfinite(stamps) & np.concatenate([[True], np.diff(stamps) > 0.0])
    if is_new.sum() < 2:
        raise InputFileError(path, "it has fewer than two samples", field=STAMP)
    table = {name: values[is_new] for name, values in table.items()}
    times = table[STAMP] - table[STAMP][0]

    def joints(quantity: str, unit: str = "rad") -> Array | None:
        """Return a quantity of all joints (T, n); None where it is not whole."""
        return _whole(table, [f"{name}_{quantity}_{unit}" for name in names])

    def poses(name: str) -> Signal | None:
        """Return the poses of a name over time."""
        values = _whole(table, [f"{name}_{part}" for part in POSE_PARTS])
        return None if values is None else Signal(times, values)

    actual_q = joints("position")
    if actual_q is None:
        raise InputFileError(path, "its joint positions have gaps", field=f"*{POSITION_SUFFIX}")
    columns = {
        "target_q": joints("controller_target"),
        "target_qd": joints("controller_target_velocity", "rad_per_s"),
        "target_qdd": joints("controller_target_acceleration", "rad_per_s2"),
        "actual_q": actual_q,
        "actual_qd": joints("velocity", "rad_per_s"),
    }
    setpoints = joints("setpoint")
    commands = joints("command")

    def states(name: str) -> Signal | None:
        """Return a state of the controller over time."""
        values = _whole(table, [name])
        return None if values is None else Signal(times, values[:, 0])

    # A command leaves one period before the stamp of its sample.
    period = float(np.median(np.diff(times)))
    return ControllerLog(
        name=str(path),
        source=LogSource.EXPORT,
        clock=Clock.CONTROLLER,
        start=float(table[STAMP][0]),
        times=times,
        joint_names=tuple(names),
        columns={name: values for name, values in columns.items() if values is not None},
        setpoints=None if setpoints is None else Signal(times, setpoints),
        reference_poses=poses("reference"),
        attained_poses=poses("attained"),
        position_commands=None if commands is None else Commands(commands, times - period),
        speed_scaling=states("speed_scaling"),
        robot_mode=states("robot_mode"),
        safety_mode=states("safety_mode"),
        program_state=states("runtime_state"),
    )


def _read_columns(path: Path) -> dict[str, Array]:
    """Read the columns of numbers (T,) of a table by their names.

    Raises:
        InputFileError: It cannot be read.
    """
    if path.suffix.lower() == PARQUET:
        arrays = read_arrays(path)
        return {
            name: np.asarray(values, dtype=float)
            for name, values in arrays.items()
            if values.ndim == 1
        }

    table = RtdeTable(path, ())
    names = read_header(path)
    values, _ = table.rows(range(len(names)))
    return dict(zip(names, values.T, strict=True))


def _whole(table: Mapping[str, Array], names: Sequence[str]) -> Array | None:
    """Return columns (T, k) if all of them are there, with numbers in each row; else None."""
    if any(name not in table for name in names):
        return None
    values = np.column_stack([table[name] for name in names])
    return values if np.isfinite(values).all() else None
