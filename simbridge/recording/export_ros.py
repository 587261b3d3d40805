"""A run's samples for ROS and Foxglove: a bag or one MCAP file. No ROS is needed to write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from simbridge.files.writing import replacing
from simbridge.recording import ros_messages
from simbridge.recording.cdr import Layout
from simbridge.recording.sample_table import (
    ALL,
    CONTROLLER_STATES,
    EXPORTED_POSES,
    ReadSamples,
    RunSamples,
)

BAG = "rosbag2"
"""The name of the bag in the run directory."""

MCAP = "samples.mcap"
"""The name of the MCAP file in the run directory, and of rosbags' file in a bag named samples."""


@dataclass(frozen=True)
class BagTopic:
    """A topic with all its messages.

    Attributes:
        name: The topic's name.
        layout: The layout of its messages.
        groups: The numbers (T, k) of each group of a message after the stamp.
        has_stamp: Whether the messages have a header with a stamp.
    """

    name: str
    layout: Layout
    groups: tuple[NDArray[Any], ...]
    has_stamp: bool = True


def export_bag(folder: Path, read_samples: ReadSamples) -> list[Path]:
    """Write rosbag2/, a ROS 2 bag (sqlite3); an earlier one is replaced.

    Topics: `/joint_states` (measured; efforts in N m, or A where the controller gives only
    currents), `/setpoint/joint_states`, `/command/joint_states` (sent one period before its
    stamp), `/controller_target/joint_states` (the controller's own targets), `/reference/pose`,
    `/target/pose`, `/setpoint/pose`, `/attained/pose` (PoseStamped, in base_link), and
    `/error/NAME/translation` (m) and `/error/NAME/rotation` (rotation vector, rad) as
    Vector3Stamped for sampling, solver, limiter, plant and tracking; `/speed_scaling_factor`
    (Float64, 0 to 1), and `/robot_mode`, `/safety_mode` and `/runtime_state` (Int32, in RTDE's
    numbers). Stamps count from the start of the run.
    """
    run = read_samples(ALL)
    target = folder / BAG
    with replacing(target, follow_links=False) as new:
        bag = _write_bag(new.with_name("samples"), run, StoragePlugin.SQLITE3)
        bag.rename(new)
    return [target]


def export_mcap(folder: Path, read_samples: ReadSamples) -> list[Path]:
    """Write samples.mcap: the topics of `export_bag` in one file, for Foxglove and PlotJuggler."""
    run = read_samples(ALL)
    target = folder / MCAP
    with replacing(target, follow_links=False) as new:
        bag = _write_bag(new.with_name("samples"), run, StoragePlugin.MCAP)
        (bag / MCAP).rename(new)
    return [target]


def _topics(run: RunSamples) -> Iterator[BagTopic]:
    """Yield the topics of a run."""
    log = run.log
    frame = log.frame_id
    names = log.joint_names

    measured = ros_messages.joint_state(
        frame, names, "position", velocity="velocity", effort="effort"
    )
    yield BagTopic("/joint_states", measured, (log.position, log.velocity, log.effort))
    positions = ros_messages.joint_state(frame, names, "position")
    yield BagTopic("/setpoint/joint_states", positions, (log.setpoint,))
    yield BagTopic("/command/joint_states", positions, (log.command,))
    motion = ros_messages.joint_state(frame, names, "position", velocity="velocity")
    target = (log.controller_target, log.controller_target_velocity)
    yield BagTopic("/controller_target/joint_states", motion, target)

    for name in EXPORTED_POSES:
        pose = ros_messages.pose_stamped(frame, "pose")
        yield BagTopic(f"/{name}/pose", pose, (run.poses[name],))
    for name, (translation, rotation) in run.errors.items():
        vector = ros_messages.vector_stamped(frame, "vector")
        yield BagTopic(f"/error/{name}/translation", vector, (translation,))
        yield BagTopic(f"/error/{name}/rotation", vector, (rotation,))

    scaling = ros_messages.number("std_msgs/msg/Float64")
    scaling_group = log.speed_scaling[:, np.newaxis]
    yield BagTopic("/speed_scaling_factor", scaling, (scaling_group,), has_stamp=False)
    for name in CONTROLLER_STATES:
        state = ros_messages.number("std_msgs/msg/Int32")
        state_group = getattr(log, name)[:, np.newaxis]
        yield BagTopic(f"/{name}", state, (state_group,), has_stamp=False)


def _write_bag(path: Path, run: RunSamples, storage: StoragePlugin) -> Path:
    """Write a new bag; return its directory."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    # Whole ns since the start of the run.
    times = np.round(run.log.stamp * 1e9).astype(np.int64).tolist()
    topics = list(_topics(run))

    # Version 8 is read from ROS 2 Humble on.
    with Writer(path, version=8, storage_plugin=storage) as writer:
        connections = [
            writer.add_connection(topic.name, topic.layout.message_type, typestore=store)
            for topic in topics
        ]

        # Sample by sample, so that the bag is in the order of time.
        for k, time in enumerate(times):
            # The header's seconds and ns.
            stamp = divmod(time, 10**9)
            for connection, topic in zip(connections, topics, strict=True):
                groups: list[Iterable[float]] = [group[k].tolist() for group in topic.groups]
                if topic.has_stamp:
                    groups.insert(0, stamp)
                writer.write(connection, time, topic.layout.pack(*groups))
    return path
