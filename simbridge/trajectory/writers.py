"""Trajectories and tables written as text (TUM, CSV), and trajectories as bags of ROS 1 and ROS 2, without ROS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import ArrayLike

from simbridge.errors import InvalidTrajectory, OutputError
from simbridge.files.writing import replacing, write_file
from simbridge.robot.pose import Array, Counts
from simbridge.trajectory.trajectory import Trajectory

POSE = "geometry_msgs/msg/PoseStamped"


def write_tum(
    path: str | Path, times: ArrayLike, poses: ArrayLike, *, follow_links: bool = True
) -> None:
    """Write a TUM file: one line `t x y z qx qy qz qw` a sample; read_trajectory and evo read it back bit for bit.

    Args:
        path: The file; an existing one is replaced.
        times: Stamps (T,), s.
        poses: Positions, m, and unit quaternions (T, 7).
        follow_links: Whether a link at the path is followed, or replaced (see `replacing`).
    """
    text = _lines(path, times, poses, separator=" ")
    write_file(path, text.encode(), follow_links=follow_links)


def write_csv(path: str | Path, times: ArrayLike, poses: ArrayLike) -> None:
    """As `write_tum`, but CSV with a header that names columns and units."""
    header = "t [s],x [m],y [m],z [m],qx,qy,qz,qw\n"
    write_file(path, (header + _lines(path, times, poses, separator=",")).encode())


def write_table(
    path: Path, blocks: Iterable[Mapping[str, Array]], *, follow_links: bool = True
) -> None:
    """Write a table as CSV: a header, and a line a row; each number reads back bit for bit.

    Args:
        path: The file; an existing one is replaced.
        blocks: Columns (K,) by name, block by block of the rows: of each the same columns.
        follow_links: Whether a link at the path is followed, or replaced (see `replacing`).
    """
    with replacing(path, follow_links=follow_links) as new, new.open("wb") as file:
        for number, columns in enumerate(blocks):
            if number == 0:
                file.write((",".join(columns) + "\n").encode())
            rows = np.column_stack([*columns.values()]).astype(float, copy=False)
            if not len(rows):
                continue
            # Twenty times as fast as `repr`, and as exact; what JSON has no number for is null.
            text = orjson.dumps(rows, option=orjson.OPT_SERIALIZE_NUMPY)[2:-2].replace(
                b"],[", b"\n"
            )
            file.write(text if np.isfinite(rows).all() else text.replace(b"null", b"nan"))
            file.write(b"\n")


def _lines(path: str | Path, times: ArrayLike, poses: ArrayLike, separator: str) -> str:
    """A line `t x y z qx qy qz qw` for each sample; the path names the samples in a refusal."""
    t, p = np.asarray(times, dtype=float), np.asarray(poses, dtype=float)
    if t.ndim != 1 or p.shape != (len(t), 7):
        reason = (
            f"times of shape (T,) and poses of shape (T, 7) are needed; got {t.shape} and {p.shape}"
        )
        raise InvalidTrajectory(reason, source=str(path))
    rows = np.column_stack([t, p]).tolist()
    return "".join(separator.join(map(repr, row)) + "\n" for row in rows)


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
        raise InvalidTrajectory(
            "ROS has no negative time", sample=0, field="time", source=trajectory.source
        )
    with replacing(path, overwrite=False) as new:
        # The writer of MCAP makes a directory with the file in it.
        target = new.with_suffix("") if file.suffix == ".mcap" else new
        _write_messages(target, file.suffix, trajectory, stamps, topic, frame_id)
        if file.suffix == ".mcap":
            (target / new.name).rename(new)


def _write_messages(
    path: Path, suffix: str, trajectory: Trajectory, stamps: Counts, topic: str, frame_id: str
) -> None:
    from rosbags import rosbag1, rosbag2, typesys  # noqa: PLC0415 (start-up time: 0.1 s)

    ros1 = suffix == ".bag"
    store = typesys.get_typestore(
        typesys.Stores.ROS1_NOETIC if ros1 else typesys.Stores.ROS2_HUMBLE
    )
    time, header = store.types["builtin_interfaces/msg/Time"], store.types["std_msgs/msg/Header"]
    stamped, pose_type, point, turn = (
        store.types[f"geometry_msgs/msg/{name}"]
        for name in ("PoseStamped", "Pose", "Point", "Quaternion")
    )
    plugin = rosbag2.StoragePlugin.MCAP if suffix == ".mcap" else rosbag2.StoragePlugin.SQLITE3
    writer: Any = (
        rosbag1.Writer(path) if ros1 else rosbag2.Writer(path, version=9, storage_plugin=plugin)
    )
    encode = store.serialize_ros1 if ros1 else store.serialize_cdr
    with writer:
        connection = writer.add_connection(topic, POSE, typestore=store)
        for number, (stamp, values) in enumerate(
            zip(stamps.tolist(), trajectory.poses.tolist(), strict=True)
        ):
            when = time(*divmod(stamp, 1_000_000_000))
            head = header(number, when, frame_id) if ros1 else header(when, frame_id)
            message = stamped(head, pose_type(point(*values[:3]), turn(*values[3:])))
            writer.write(connection, stamp, encode(message, POSE))
