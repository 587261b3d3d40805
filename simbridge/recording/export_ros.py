"""A run for ROS 2 tools: a bag, or one MCAP file, with joint states, poses and errors; no ROS is needed to write it."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from simbridge.errors import OutputError
from simbridge.recording import cdr
from simbridge.recording.log import LogColumns
from simbridge.robot.pose import Array

BAG, MCAP = "rosbag2", "samples.mcap"
"""Their names in the run directory."""

POSES = ("reference", "target", "setpoint", "attained")
"""The poses that are exported as trajectories."""

Errors = Mapping[str, tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class _Topic:
    """One topic: its layout, and the numbers (T, k) of each group of a message after the stamp."""

    name: str
    layout: cdr.Layout
    groups: tuple[Array, ...]


def export_bag(folder: Path, log: LogColumns, poses: Mapping[str, Array], errors: Errors, origins: Array) -> list[Path]:
    """Write rosbag2/, a ROS 2 bag (sqlite3); an earlier one is replaced.

    Topics: `/joint_states` (measured; efforts in N m, or A where the controller gives only currents),
    `/setpoint/joint_states`, `/reference/pose`, `/target/pose`, `/setpoint/pose`, `/attained/pose` (PoseStamped, in
    base_link), and `/error/NAME/translation` (m) and `/error/NAME/rotation` (rotation vector, rad) as Vector3Stamped
    for sampling, solver, limiter, plant and tracking. Stamps count from the start of the run. Args, returns and errors
    as `simbridge.recording.export.EXPORTERS`.
    """
    target = folder / BAG
    with _written(target, _topics(log, poses, errors), log.stamp, StoragePlugin.SQLITE3) as bag:
        if target.exists():
            shutil.rmtree(target)
        shutil.move(bag, target)
    return [target]


def export_mcap(
    folder: Path, log: LogColumns, poses: Mapping[str, Array], errors: Errors, origins: Array
) -> list[Path]:
    """Write samples.mcap: the same topics as `export_bag` in one file, for Foxglove and PlotJuggler."""
    target = folder / MCAP
    with _written(target, _topics(log, poses, errors), log.stamp, StoragePlugin.MCAP) as bag:
        shutil.move(next(bag.glob("*.mcap")), target)
    return [target]


@contextlib.contextmanager
def _written(target: Path, topics: Iterator[_Topic], stamps: Array, storage: StoragePlugin) -> Iterator[Path]:
    """The complete bag in a temporary directory: an earlier target is replaced only by a complete one."""
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".export") as folder:
            path = Path(folder) / "samples"
            _write(path, topics, stamps, storage)
            yield path
    except OSError as error:
        raise OutputError(target, str(error.strerror or error)) from None


def _topics(log: LogColumns, poses: Mapping[str, Array], errors: Errors) -> Iterator[_Topic]:
    frame, names = log.frame_id, log.joint_names
    measured = cdr.joint_state(frame, names, "position", "velocity", "effort")
    yield _Topic("/joint_states", measured, (log.position, log.velocity, log.effort))
    yield _Topic("/setpoint/joint_states", cdr.joint_state(frame, names, "position"), (log.setpoint,))
    for name in POSES:
        yield _Topic(f"/{name}/pose", cdr.pose_stamped(frame, "pose"), (poses[name],))
    for name, (translation, rotation) in errors.items():
        yield _Topic(f"/error/{name}/translation", cdr.vector_stamped(frame, "vector"), (translation,))
        yield _Topic(f"/error/{name}/rotation", cdr.vector_stamped(frame, "vector"), (rotation,))


def _write(path: Path, topics: Iterator[_Topic], stamps: Array, storage: StoragePlugin) -> None:
    store = get_typestore(Stores.ROS2_HUMBLE)
    times = np.round(stamps * 1e9).astype(np.int64).tolist()
    # Version 8 is read from ROS 2 Humble on.
    with Writer(path, version=8, storage_plugin=storage) as writer:
        connections: list[tuple[Any, _Topic]] = [
            (writer.add_connection(topic.name, topic.layout.message_type, typestore=store), topic) for topic in topics
        ]
        for k, time in enumerate(times):
            stamp = divmod(time, 10**9)
            for connection, topic in connections:
                message = topic.layout.pack(stamp, *(group[k].tolist() for group in topic.groups))
                writer.write(connection, time, message)
