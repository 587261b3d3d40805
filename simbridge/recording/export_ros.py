"""A run for ROS 2 tools: a bag, or one MCAP file, with joint states, poses and errors; no ROS is needed to write it."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simbridge.errors import OutputError
from simbridge.evaluation.evaluation import Evaluation
from simbridge.recording import cdr
from simbridge.robot.pose import Array

BAG, MCAP = "rosbag2", "samples.mcap"
"""Their names in the run directory."""

POSES = ("reference", "target", "setpoint", "attained")
ERRORS = ("sampling", "solver", "limiter", "plant", "tracking")


@dataclass(frozen=True, eq=False)
class _Topic:
    """One topic: its layout, and the numbers (T, k) of each group of a message behind the stamp."""

    name: str
    layout: cdr.Layout
    groups: tuple[Array, ...]


def export_bag(evaluation: Evaluation) -> list[Path]:
    """Write rosbag2/, a ROS 2 bag (sqlite3); an earlier one is replaced.

    Topics: `/joint_states` (measured; efforts in N m, or A where the controller gives only currents),
    `/setpoint/joint_states`, `/reference/pose`, `/target/pose`, `/setpoint/pose`, `/attained/pose` (PoseStamped, in
    base_link), and `/error/NAME/translation` (m) and `/error/NAME/rotation` (rotation vector, rad) as Vector3Stamped
    for sampling, solver, limiter, plant and tracking. Stamps count from the start of the run.

    Returns:
        The bag's directory.

    Raises:
        OutputError: It cannot be written.
    """
    target = evaluation.directory.path / BAG
    with _written(evaluation, target, mcap=False) as folder:
        if target.exists():
            shutil.rmtree(target)
        shutil.move(folder, target)
    return [target]


def export_mcap(evaluation: Evaluation) -> list[Path]:
    """Write samples.mcap: the same topics as `export_bag` in one file, for Foxglove and PlotJuggler.

    Returns:
        The file.

    Raises:
        OutputError: It cannot be written.
    """
    target = evaluation.directory.path / MCAP
    with _written(evaluation, target, mcap=True) as folder:
        shutil.move(next(folder.glob("*.mcap")), target)
    return [target]


@contextlib.contextmanager
def _written(evaluation: Evaluation, target: Path, *, mcap: bool) -> Iterator[Path]:
    """The directory that rosbags writes, beside the target: what was there before goes only when this is whole."""
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".export") as folder:
            path = Path(folder) / "samples"
            _write(path, evaluation, mcap=mcap)
            yield path
    except OSError as error:
        raise OutputError(target, str(error.strerror or error)) from None


def _topics(evaluation: Evaluation) -> Iterator[_Topic]:
    log, budget = evaluation.log, evaluation.budget
    frame, names = log.frame_id, log.joint_names
    measured = cdr.joint_state(frame, names, "position", "velocity", "effort")
    yield _Topic("/joint_states", measured, (log.position, log.velocity, log.effort))
    yield _Topic("/setpoint/joint_states", cdr.joint_state(frame, names, "position"), (log.setpoint,))
    for name in POSES:
        yield _Topic(f"/{name}/pose", cdr.pose_stamped(frame, "pose"), (getattr(evaluation, name),))
    for name in ERRORS:
        error = getattr(budget, name)
        yield _Topic(f"/error/{name}/translation", cdr.vector_stamped(frame, "vector"), (error.translation,))
        yield _Topic(f"/error/{name}/rotation", cdr.vector_stamped(frame, "vector"), (error.rotation,))


def _write(path: Path, evaluation: Evaluation, *, mcap: bool) -> None:
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    times = np.round(evaluation.log.stamp * 1e9).astype(np.int64).tolist()
    # Version 8 is read from ROS 2 Humble on.
    with Writer(path, version=8, storage_plugin=StoragePlugin.MCAP if mcap else StoragePlugin.SQLITE3) as writer:
        topics: list[tuple[Any, _Topic]] = [
            (writer.add_connection(topic.name, topic.layout.message_type, typestore=store), topic)
            for topic in _topics(evaluation)
        ]
        for k, time in enumerate(times):
            stamp = divmod(time, 10**9)
            for connection, topic in topics:
                message = topic.layout.pack(stamp, *(group[k].tolist() for group in topic.groups))
                writer.write(connection, time, message)
