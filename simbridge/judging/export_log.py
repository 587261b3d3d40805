"""Reads the table of an exported run, samples.csv or samples.parquet, into a `ControllerLog`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simbridge.errors import InputFileError
from simbridge.judging.log import Clock, Commands, ControllerLog, LogSource, Signal
from simbridge.recording.sample_table import POSE_PARTS
from simbridge.robot.pose import Array
from simbridge.trajectory.rtde_table import RtdeTable, read_header
from simbridge.trajectory.tables.array_files import read_arrays

# Name of the column of the samples' stamps.
STAMP = "stamp_s"
# End of the name of a column of joint positions, after the joint's name.
POSITION_SUFFIX = "_position_rad"
# Suffix of a file that is a table in Parquet, not in CSV.
PARQUET = ".parquet"


@dataclass(frozen=True, eq=False)
class _ExportedTable:
    """The samples of an exported run.

    Attributes:
        columns: Columns of numbers by name, each (T,).
        joint_names: Names of the n joints, from the base.
        times: Stamps of the samples from the first (T,), s.
    """

    columns: dict[str, Array]
    joint_names: tuple[str, ...]
    times: Array

    def joints(self, quantity: str, unit: str = "rad") -> Array | None:
        """Return a quantity of all joints (T, n) in its unit; None unless it is complete."""
        return self._complete([f"{joint}_{quantity}_{unit}" for joint in self.joint_names])

    def joint_signal(self, quantity: str) -> Signal | None:
        """Return positions of all joints (T, n), rad, over time; None unless they are complete."""
        positions = self.joints(quantity)
        return None if positions is None else Signal(self.times, positions)

    def poses(self, name: str) -> Signal | None:
        """Return poses of the TCP (T, 7), base_link to TCP; None unless they are complete."""
        values = self._complete([f"{name}_{part}" for part in POSE_PARTS])
        return None if values is None else Signal(self.times, values)

    def state(self, name: str) -> Signal | None:
        """Return a state of the controller (T,) over time; None unless it is complete."""
        values = self._complete([name])
        return None if values is None else Signal(self.times, values[:, 0])

    def _complete(self, names: Sequence[str]) -> Array | None:
        """Return columns side by side (T, k); None if one is missing, or has a gap."""
        if any(name not in self.columns for name in names):
            return None
        values = np.column_stack([self.columns[name] for name in names])
        return values if np.isfinite(values).all() else None


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
    table = _read_table(path)
    actual_q = table.joints("position")
    if actual_q is None:
        raise InputFileError(path, "its joint positions have gaps", field=f"*{POSITION_SUFFIX}")
    columns = {
        "target_q": table.joints("controller_target"),
        "target_qd": table.joints("controller_target_velocity", "rad_per_s"),
        "target_qdd": table.joints("controller_target_acceleration", "rad_per_s2"),
        "actual_q": actual_q,
        "actual_qd": table.joints("velocity", "rad_per_s"),
    }

    # A command is sent one period before the stamp of its sample.
    command_positions = table.joints("command")
    commands: Commands | None = None
    if command_positions is not None:
        period = float(np.median(np.diff(table.times)))
        commands = Commands(command_positions, table.times - period)

    return ControllerLog(
        name=str(path),
        source=LogSource.EXPORT,
        clock=Clock.CONTROLLER,
        start=float(table.columns[STAMP][0]),
        times=table.times,
        joint_names=table.joint_names,
        columns={name: values for name, values in columns.items() if values is not None},
        setpoints=table.joint_signal("setpoint"),
        reference_poses=table.poses("reference"),
        attained_poses=table.poses("attained"),
        position_commands=commands,
        speed_scaling=table.state("speed_scaling"),
        robot_mode=table.state("robot_mode"),
        safety_mode=table.state("safety_mode"),
        program_state=table.state("runtime_state"),
    )


def _read_table(path: Path) -> _ExportedTable:
    """Read the samples of a table; of samples with the same stamp the first one is kept.

    Raises:
        InputFileError: It cannot be read, is not an exported run, or has fewer than two samples.
    """
    columns = _read_columns(path)
    joint_names = tuple(
        name.removesuffix(POSITION_SUFFIX) for name in columns if name.endswith(POSITION_SUFFIX)
    )
    if STAMP not in columns or not joint_names:
        reason = f"it is not an exported run: it has no columns {STAMP} and JOINT{POSITION_SUFFIX}"
        raise InputFileError(path, reason)

    # A paused controller repeats its stamp.
    stamps = columns[STAMP]
    is_new = np.isfinite(stamps) & np.concatenate([[True], np.diff(stamps) > 0.0])
    if is_new.sum() < 2:
        raise InputFileError(path, "it has fewer than two samples", field=STAMP)
    new_columns = {name: values[is_new] for name, values in columns.items()}
    new_stamps = new_columns[STAMP]
    return _ExportedTable(new_columns, joint_names, times=new_stamps - new_stamps[0])


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
