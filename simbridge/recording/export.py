"""A run's samples for other tools: TUM trajectories, a table, and for ROS a bag or one MCAP file.

A new format is one function and one line in EXPORTERS. No ROS is needed to write its bags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from simbridge.recording import cdr
from simbridge.recording.log import LogColumns
from simbridge.robot.output_file import replacing
from simbridge.robot.pose import Array
from simbridge.trajectory.text_writer import write_table, write_tum

BAG, MCAP = "rosbag2", "samples.mcap"
"""Their names in the run directory."""

POSES = ("reference", "target", "setpoint", "attained")
"""The poses that are exported as trajectories."""

Errors = Mapping[str, tuple[Array, Array]]

_POSE = ("x", "y", "z", "qx", "qy", "qz", "qw")
_VECTOR = ("x", "y", "z")


def export_tum(folder: Path, log: LogColumns, poses: Mapping[str, Array], errors: Errors, origins: Array) -> list[Path]:
    """Write reference.tum, target.tum, setpoint.tum and attained.tum: full double precision, one line per sample.

    Args, returns and errors as `EXPORTERS`.
    """
    paths = [folder / f"{name}.tum" for name in POSES]
    for name, path in zip(POSES, paths, strict=True):
        write_tum(path, log.stamp, poses[name])
    return paths


def export_csv(folder: Path, log: LogColumns, poses: Mapping[str, Array], errors: Errors, origins: Array) -> list[Path]:
    """Write samples.csv: one line per sample (SI units).

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
    write_table(path, columns)
    return [path]


# Name, layout, and the numbers (T, k) of each group of a message after the stamp.
_Topic = tuple[str, cdr.Layout, tuple[Array, ...]]


def export_bag(folder: Path, log: LogColumns, poses: Mapping[str, Array], errors: Errors, origins: Array) -> list[Path]:
    """Write rosbag2/, a ROS 2 bag (sqlite3); an earlier one is replaced.

    Topics: `/joint_states` (measured; efforts in N m, or A where the controller gives only currents),
    `/setpoint/joint_states`, `/reference/pose`, `/target/pose`, `/setpoint/pose`, `/attained/pose` (PoseStamped, in
    base_link), and `/error/NAME/translation` (m) and `/error/NAME/rotation` (rotation vector, rad) as Vector3Stamped
    for sampling, solver, limiter, plant and tracking. Stamps count from the start of the run. Args, returns and errors
    as `EXPORTERS`.
    """
    target = folder / BAG
    with replacing(target) as new:
        _write(new.with_name("samples"), _topics(log, poses, errors), log.stamp, StoragePlugin.SQLITE3).rename(new)
    return [target]


def export_mcap(
    folder: Path, log: LogColumns, poses: Mapping[str, Array], errors: Errors, origins: Array
) -> list[Path]:
    """Write samples.mcap: the same topics as `export_bag` in one file, for Foxglove and PlotJuggler."""
    target = folder / MCAP
    with replacing(target) as new:
        bag = _write(new.with_name("samples"), _topics(log, poses, errors), log.stamp, StoragePlugin.MCAP)
        (bag / MCAP).rename(new)
    return [target]


def _topics(log: LogColumns, poses: Mapping[str, Array], errors: Errors) -> Iterator[_Topic]:
    frame, names = log.frame_id, log.joint_names
    measured = cdr.joint_state(frame, names, "position", "velocity", "effort")
    yield "/joint_states", measured, (log.position, log.velocity, log.effort)
    yield "/setpoint/joint_states", cdr.joint_state(frame, names, "position"), (log.setpoint,)
    for name in POSES:
        yield f"/{name}/pose", cdr.pose_stamped(frame, "pose"), (poses[name],)
    for name, (translation, rotation) in errors.items():
        yield f"/error/{name}/translation", cdr.vector_stamped(frame, "vector"), (translation,)
        yield f"/error/{name}/rotation", cdr.vector_stamped(frame, "vector"), (rotation,)


def _write(path: Path, topics: Iterator[_Topic], stamps: Array, storage: StoragePlugin) -> Path:
    store = get_typestore(Stores.ROS2_HUMBLE)
    times = np.round(stamps * 1e9).astype(np.int64).tolist()
    # Version 8 is read from ROS 2 Humble on.
    with Writer(path, version=8, storage_plugin=storage) as writer:
        connections = [
            (writer.add_connection(name, layout.message_type, typestore=store), layout, groups)
            for name, layout, groups in topics
        ]
        for k, time in enumerate(times):
            stamp = divmod(time, 10**9)
            for connection, layout, groups in connections:
                writer.write(connection, time, layout.pack(stamp, *(group[k].tolist() for group in groups)))
    return path


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
