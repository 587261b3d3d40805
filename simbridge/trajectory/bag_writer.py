"""Trajectories written as ROS bags, without ROS: ROS 1 (.bag), ROS 2 (a directory) and MCAP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rosbags import rosbag1, rosbag2
from rosbags.typesys import Stores, get_typestore

from simbridge.errors import InvalidTrajectory, OutputError
from simbridge.robot.files import replacing
from simbridge.robot.pose import Counts
from simbridge.trajectory.trajectory import Trajectory

POSE = "geometry_msgs/msg/PoseStamped"


def write_bag(
    path: str | Path, trajectory: Trajectory, *, topic: str = "/target_pose", frame_id: str = "base_link"
) -> None:
    """Write PoseStamped messages; the format follows from the name.

    Stamps become whole nanoseconds since the trajectory's `epoch_ns`; poses are exact.

    Args:
        path: `name.bag` for ROS 1, `name.mcap` for one MCAP file, anything without a suffix for the directory of a
            ROS 2 bag (sqlite3). It must not exist.
        trajectory: What to write; a negative stamp, which ROS does not have, is InvalidTrajectory.
        topic: Its name.
        frame_id: The frame of the poses.
    """
    file = Path(path)
    if file.suffix not in ("", ".bag", ".mcap"):
        raise OutputError(path, f"a bag ends in .bag, .mcap or nothing, not in {file.suffix}")
    stamps = trajectory.epoch_ns + np.round(trajectory.times * 1e9).astype(np.int64)
    if stamps[0] < 0:
        raise InvalidTrajectory("ROS has no negative time", sample=0, field="time", source=trajectory.source)
    with replacing(path, overwrite=False) as new:
        # The writer of MCAP makes a directory with the file in it.
        target = new.with_suffix("") if file.suffix == ".mcap" else new
        _write(target, file.suffix, trajectory, stamps, topic, frame_id)
        if file.suffix == ".mcap":
            (target / new.name).rename(new)


def _write(path: Path, suffix: str, trajectory: Trajectory, stamps: Counts, topic: str, frame_id: str) -> None:
    ros1 = suffix == ".bag"
    store = get_typestore(Stores.ROS1_NOETIC if ros1 else Stores.ROS2_HUMBLE)
    time, header = store.types["builtin_interfaces/msg/Time"], store.types["std_msgs/msg/Header"]
    stamped, pose_type, point, turn = (
        store.types[f"geometry_msgs/msg/{name}"] for name in ("PoseStamped", "Pose", "Point", "Quaternion")
    )
    plugin = rosbag2.StoragePlugin.MCAP if suffix == ".mcap" else rosbag2.StoragePlugin.SQLITE3
    writer: Any = rosbag1.Writer(path) if ros1 else rosbag2.Writer(path, version=9, storage_plugin=plugin)
    encode = store.serialize_ros1 if ros1 else store.serialize_cdr
    with writer:
        connection = writer.add_connection(topic, POSE, typestore=store)
        for number, (stamp, values) in enumerate(zip(stamps.tolist(), trajectory.poses.tolist(), strict=True)):
            when = time(*divmod(stamp, 1_000_000_000))
            head = header(number, when, frame_id) if ros1 else header(when, frame_id)
            message = stamped(head, pose_type(point(*values[:3]), turn(*values[3:])))
            writer.write(connection, stamp, encode(message, POSE))
