"""Trajectories written as bags of ROS 1 and ROS 2, without ROS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from simbridge.errors import InvalidTrajectory, OutputError
from simbridge.files.writing import replacing
from simbridge.robot.pose import Counts
from simbridge.trajectory.trajectory import Trajectory

POSE_STAMPED = "geometry_msgs/msg/PoseStamped"


def write_bag(
    path: str | Path,
    trajectory: Trajectory,
    *,
    topic: str = "/target_pose",
    frame_id: str = "base_link",
) -> None:
    """Write PoseStamped messages; the format follows from the name.

    Stamps become whole nanoseconds since the trajectory's `epoch_ns`; poses are exact.

    Args:
        path: `name.bag` for ROS 1, `name.mcap` for one MCAP file, anything without a suffix for the
            directory of a ROS 2 bag (sqlite3). It must not exist.
        trajectory: The trajectory to write.
        topic: Name of the topic.
        frame_id: The frame of the poses.

    Raises:
        InvalidTrajectory: A stamp is negative, which ROS does not have.
        OutputError: The name ends otherwise, or the bag cannot be written.
    """
    file = Path(path)
    if file.suffix not in ("", ".bag", ".mcap"):
        raise OutputError(
            path,
            "the name of a bag ends in .bag or .mcap or has no suffix; it cannot end in "
            f"{file.suffix}",
        )
    stamps = trajectory.epoch_ns + np.round(trajectory.times * 1e9).astype(np.int64)
    if stamps[0] < 0:
        raise InvalidTrajectory(
            "ROS does not allow negative times", sample=0, field="time", source=trajectory.source
        )

    with replacing(path, overwrite=False) as new:
        if file.suffix == ".bag":
            _write_ros1(new, trajectory, stamps, topic=topic, frame_id=frame_id)
        elif file.suffix == "":
            _write_ros2(new, trajectory, stamps, topic=topic, frame_id=frame_id, mcap=False)
        else:
            # The writer of MCAP makes a directory with the file in it.
            directory = new.with_suffix("")
            _write_ros2(directory, trajectory, stamps, topic=topic, frame_id=frame_id, mcap=True)
            (directory / new.name).rename(new)


def _write_ros1(
    path: Path, trajectory: Trajectory, stamps: Counts, *, topic: str, frame_id: str
) -> None:
    """Write a bag of ROS 1, with stamps (T,), ns."""
    from rosbags import rosbag1, typesys  # noqa: PLC0415 (start-up time: 0.1 s)

    store = typesys.get_typestore(typesys.Stores.ROS1_NOETIC)
    header = store.types["std_msgs/msg/Header"]
    with rosbag1.Writer(path) as writer:
        connection = writer.add_connection(topic, POSE_STAMPED, typestore=store)
        for number, stamp in enumerate(stamps.tolist()):
            head = header(number, _time(store, stamp), frame_id)
            message = _pose_stamped(store, head, trajectory.poses[number].tolist())
            writer.write(connection, stamp, store.serialize_ros1(message, POSE_STAMPED))


def _write_ros2(
    path: Path, trajectory: Trajectory, stamps: Counts, *, topic: str, frame_id: str, mcap: bool
) -> None:
    """Write a bag of ROS 2, with stamps (T,), ns, as MCAP or sqlite3."""
    from rosbags import rosbag2, typesys  # noqa: PLC0415 (start-up time: 0.1 s)

    store = typesys.get_typestore(typesys.Stores.ROS2_HUMBLE)
    header = store.types["std_msgs/msg/Header"]
    plugin = rosbag2.StoragePlugin.MCAP if mcap else rosbag2.StoragePlugin.SQLITE3
    with rosbag2.Writer(path, version=9, storage_plugin=plugin) as writer:
        connection = writer.add_connection(topic, POSE_STAMPED, typestore=store)
        for number, stamp in enumerate(stamps.tolist()):
            head = header(_time(store, stamp), frame_id)
            message = _pose_stamped(store, head, trajectory.poses[number].tolist())
            writer.write(connection, stamp, store.serialize_cdr(message, POSE_STAMPED))


def _time(store: Any, stamp: int) -> Any:
    """Return a stamp, ns, as a message of ROS."""
    seconds, nanoseconds = divmod(stamp, 1_000_000_000)
    return store.types["builtin_interfaces/msg/Time"](seconds, nanoseconds)


def _pose_stamped(store: Any, header: Any, values: list[float]) -> Any:
    """Return a pose, 7 values, as a message of ROS."""
    position = store.types["geometry_msgs/msg/Point"](*values[:3])
    orientation = store.types["geometry_msgs/msg/Quaternion"](*values[3:])
    pose = store.types["geometry_msgs/msg/Pose"](position, orientation)
    return store.types[POSE_STAMPED](header, pose)
