"""A run's samples for other tools: TUM trajectories, a table, and for ROS a bag or one MCAP file.

A new format is one function here, or in a module of its own, and one line in EXPORTERS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from simbridge.errors import OutputError
from simbridge.recording.export_ros import POSES, Errors, export_bag, export_mcap
from simbridge.recording.log import LogColumns
from simbridge.robot.pose import Array
from simbridge.trajectory.text import write_tum

# Rows that are Python numbers at one time.
BLOCK = 10_000
_POSE = ("x", "y", "z", "qx", "qy", "qz", "qw")
_VECTOR = ("x", "y", "z")


def export_tum(folder: Path, log: LogColumns, poses: Mapping[str, Array], errors: Errors, origins: Array) -> list[Path]:
    """Write reference.tum, target.tum, setpoint.tum and attained.tum: full double precision, a line a sample.

    Args, returns and errors as `EXPORTERS`.
    """
    paths = []
    for name in POSES:
        path = folder / f"{name}.tum"
        try:
            write_tum(path, log.stamp, poses[name])
        except OSError as error:
            raise OutputError(folder, f"{path.name}: {error.strerror or error}") from None
        paths.append(path)
    return paths


def export_csv(folder: Path, log: LogColumns, poses: Mapping[str, Array], errors: Errors, origins: Array) -> list[Path]:
    """Write samples.csv: a line a sample (SI units).

    Stamps, poses, the parts of the error, the joints, and the origin of each joint's frame in base_link. A link goes
    from one origin to the next, the last one to `attained`. Args, returns and errors as `EXPORTERS`.
    """
    path = folder / "samples.csv"
    columns: dict[str, Array] = {"stamp_s": log.stamp, "plan_time_s": log.plan_time}
    for name, values in poses.items():
        columns |= {f"{name}_{axis}": values[:, i] for i, axis in enumerate(_POSE)}
    for name, (translation, rotation) in errors.items():
        columns |= {f"{name}_error_{axis}_m": translation[:, i] for i, axis in enumerate(_VECTOR)}
        columns |= {f"{name}_error_r{axis}_rad": rotation[:, i] for i, axis in enumerate(_VECTOR)}
    for name in ("solution", "setpoint", "position", "velocity", "effort"):
        columns |= {f"{joint}_{name}": getattr(log, name)[:, i] for i, joint in enumerate(log.joint_names)}
    for i, joint in enumerate(log.joint_names):
        columns |= {f"{joint}_origin_{axis}_m": origins[:, i, k] for k, axis in enumerate(_VECTOR)}
    columns["limited"] = log.limited.astype(float)
    columns["speed_scaling"] = log.speed_scaling
    columns["host_monotonic_s"] = log.host_monotonic
    table = np.column_stack(list(columns.values()))
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            file.write(",".join(columns) + "\n")
            # repr of a double reads back to the same double.
            for k in range(0, len(table), BLOCK):
                file.writelines(",".join(map(repr, row)) + "\n" for row in table[k : k + BLOCK].tolist())
    except OSError as error:
        raise OutputError(folder, f"{path.name}: {error.strerror or error}") from None
    return [path]


Exporter = Callable[[Path, LogColumns, Mapping[str, Array], Errors, Array], list[Path]]

EXPORTERS: dict[str, Exporter] = {"csv": export_csv, "tum": export_tum, "mcap": export_mcap, "bag": export_bag}
"""Exporters by the name of their format: exporter(folder, log, poses, errors, origins) returns the files it wrote.

Args:
    folder: The run directory.
    log: Its log of T samples.
    poses: reference, target, solution, setpoint and attained (T, 7) in base_link.
    errors: Translation (T, 3), m, and rotation vector (T, 3), rad, of sampling, solver, limiter, plant and tracking.
    origins: Of the joints' frames (T, n, 3) in base_link, m.

Raises:
    OutputError: A file cannot be written.
"""
