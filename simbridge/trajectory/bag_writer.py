"""Trajectories written as ROS bags, without ROS: ROS 1 (.bag), ROS 2 (a directory) and MCAP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rosbags import rosbag1, rosbag2
from rosbags.typesys import Stores, get_typestore

from simbridge.errors import InvalidTrajectory, OutputError
from simbridge.robot.files import replacing
from simbridge.trajectory.bags import POSE
from simbridge.trajectory.trajectory import Trajectory


def write_bag(
    path: str | Path, trajectory: Trajectory, *, topic: str = "/target_pose", frame_id: str = "base_link"
) -> None:
    """Write PoseStamped messages; the format follows from the name.

    Stamps become whole nanoseconds since the trajectory's `epoch_ns`; poses are exact.

    Args:
        path: `name.bag` for ROS 1, `name.mcap` for one MCAP file, anything without a suffix for the directory of a
            ROS 2 bag (sqlite3). It must not exist.
        trajectory: What to write.
        topic: Its name.
        frame_id: The frame of the poses.

    Raises:
        InvalidTrajectory: A stamp is negative, which ROS does not have.
        OutputError: It exists, cannot be written, or has another suffix.
    """
    file = Path(path)
    if file.suffix not in ("", ".bag", ".mcap"):
        raise OutputError(path, f"a bag ends in .bag, .mcap or nothing, not in {file.suffix}")
    stamps = trajectory.epoch_ns + np.round(trajectory.times * 1e9).astype(np.int64)
    if stamps[0] < 0:
        raise InvalidTrajectory("ROS has no negative time", sample=0, field="time", source=trajectory.source)
    with replacing(path, overwrite=False) as new:
        if file.suffix == ".mcap":
            # The writer makes a directory with the file in it.
            _write(new.with_suffix(""), trajectory, stamps, topic, frame_id, mcap=True)
            (new.with_suffix("") / new.name).rename(new)
        else:
            _write(new, trajectory, stamps, topic, frame_id, mcap=False)


def _write(
    path: Path, trajectory: Trajectory, stamps: NDArray[np.int64], topic: str, frame_id: str, *, mcap: bool
) -> None:
    ros1 = path.suffix == ".bag"
    store = get_typestore(Stores.ROS1_NOETIC if ros1 else Stores.ROS2_HUMBLE)
    made = store.types
    time, point, turn = (
        made[n] for n in ("builtin_interfaces/msg/Time", "geometry_msgs/msg/Point", "geometry_msgs/msg/Quaternion")
    )
    pose_type, stamped = made["geometry_msgs/msg/Pose"], made[POSE]
    header = made["std_msgs/msg/Header"]
    plugin = rosbag2.StoragePlugin.MCAP if mcap else rosbag2.StoragePlugin.SQLITE3
    writer: Any = rosbag1.Writer(path) if ros1 else rosbag2.Writer(path, version=9, storage_plugin=plugin)
    encode = store.serialize_ros1 if ros1 else store.serialize_cdr
    with writer:
        connection = writer.add_connection(topic, POSE, typestore=store)
        for number, (stamp, values) in enumerate(zip(stamps.tolist(), trajectory.poses.tolist(), strict=True)):
            when = time(*divmod(stamp, 1_000_000_000))
            head = header(number, when, frame_id) if ros1 else header(when, frame_id)
            message = stamped(head, pose_type(point(*values[:3]), turn(*values[3:])))
            writer.write(connection, stamp, encode(message, POSE))
