"""The poses in the messages of a bag."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from simbridge.errors import InputFileError
from simbridge.quoting import quoted
from simbridge.trajectory.bag_samples import NANOSECONDS_PER_SECOND, BagSamples

POSE_ARRAY = "geometry_msgs/msg/PoseArray"
PATH = "nav_msgs/msg/Path"
TF_TYPES = ("tf2_msgs/msg/TFMessage", "tf/msg/tfMessage")
# Messages with one pose; those without a stamp are at the times when they were recorded.
STAMPLESS_TYPES = (
    "geometry_msgs/msg/Pose",
    "geometry_msgs/msg/PoseWithCovariance",
    "geometry_msgs/msg/Transform",
)
SINGLE_TYPES = (
    *STAMPLESS_TYPES,
    "geometry_msgs/msg/PoseStamped",
    "geometry_msgs/msg/TransformStamped",
    "geometry_msgs/msg/PoseWithCovarianceStamped",
    "nav_msgs/msg/Odometry",
)
POSE_TYPES = (*SINGLE_TYPES, POSE_ARRAY, PATH)
# Stands for the header of a message that has none.
UNSTAMPED = SimpleNamespace(stamp=SimpleNamespace(sec=0, nanosec=0), frame_id="")

# Two stamps, a number and a pose, 80 bytes each: some 800 MB, and hours at any rate a robot takes.
MAX_POSES = 10_000_000


class StampedPose(NamedTuple):
    """A pose of a message.

    Attributes:
        child: Child frame of a transform in tf; index of a pose in a PoseArray or Path; else "".
        header: Header of the message, with stamp and frame.
        translation: An object with x, y, z.
        rotation: An object with x, y, z, w.
    """

    child: str
    header: Any
    translation: Any
    rotation: Any


class Poses:
    """Poses in the order of their messages.

    Args:
        path: The bag, for messages.
        name: Name of the topic.
        advice: What follows the error when the frame changes.

    Attributes:
        path: The bag.
        name: Name of the topic.
        stamps: Stamps of the poses, ns.
        recorded: Times of recording, ns.
        numbers: Numbers of their messages, from 1.
        values: x, y, z, qx, qy, qz, qw of each pose.
        frame: The frame of all of them.
        one_message: Whether all of them are of one message.
    """

    def __init__(self, path: Path, name: str, advice: str = "") -> None:
        self.path = path
        self._advice = advice
        self.name = name
        self.stamps = array("q")
        self.recorded = array("q")
        self.numbers = array("q")
        self.values = array("d")
        self.frame = ""
        self.one_message = False

    def add(self, number: int, recorded: int, stamped: StampedPose) -> None:
        """Add a pose.

        Args:
            number: Number of its message.
            recorded: Time of recording, ns.
            stamped: The pose.
        """
        frame = bare_name(stamped.header.frame_id)
        if not self.stamps:
            self.frame = frame
        elif frame != self.frame:
            reason = (
                f"{self.name}, message {number} is in the frame {quoted(frame)}, earlier ones in "
                f"{quoted(self.frame)}"
            )
            raise InputFileError(self.path, reason + self._advice, field="frame_id")

        stamp = stamped.header.stamp
        translation = stamped.translation
        rotation = stamped.rotation
        self.stamps.append(stamp.sec * NANOSECONDS_PER_SECOND + stamp.nanosec)
        self.recorded.append(recorded)
        self.numbers.append(number)
        self.values.extend((translation.x, translation.y, translation.z))
        self.values.extend((rotation.x, rotation.y, rotation.z, rotation.w))
        if len(self.stamps) > MAX_POSES:
            reason = f"{self.name} has more than {MAX_POSES:,} poses; split the bag"
            raise InputFileError(self.path, reason)

    def extend(self, poses: Poses) -> None:
        """Add poses of another topic."""
        self.stamps.extend(poses.stamps)
        self.recorded.extend(poses.recorded)
        self.numbers.extend(poses.numbers)
        self.values.extend(poses.values)

    @property
    def has_stamps(self) -> bool:
        """True if the messages have stamps of their own."""
        return any(self.stamps)

    @property
    def samples(self) -> BagSamples:
        """The poses as arrays; of one message they are counted instead of messages."""
        numbers = np.array(self.numbers, dtype=np.int64)
        if self.one_message:
            numbers = np.arange(len(numbers)) + 1
        return BagSamples(
            name=self.name,
            noun="pose",
            stamps=np.array(self.stamps, dtype=np.int64),
            recorded=np.array(self.recorded, dtype=np.int64),
            values=np.array(self.values).reshape(-1, 7),
            numbers=numbers,
            unit="pose" if self.one_message else "message",
        )

    def put_at_rate(self, rate: float) -> None:
        """Give the poses even stamps, at a rate in samples per s."""
        instants = np.arange(len(self.stamps)) * NANOSECONDS_PER_SECOND / rate
        self.stamps = array("q", instants.round().astype(np.int64).tolist())
        self.recorded = self.stamps


def bare_name(frame: str) -> str:
    """Return the name of a frame without the slash that tf of ROS 1 put before it."""
    return frame.lstrip("/")


def stamped_poses(message: Any) -> Iterator[StampedPose]:
    """Iterate over the poses of a message."""
    if hasattr(message, "transforms"):
        for transform in message.transforms:
            values = transform.transform
            child = bare_name(transform.child_frame_id)
            yield StampedPose(child, transform.header, values.translation, values.rotation)
    elif hasattr(message, "poses"):
        for index, element in enumerate(message.poses):
            element_pose = getattr(element, "pose", element)
            header = getattr(element, "header", message.header)
            if not header.frame_id:
                # The poses of a Path may leave their frames to it.
                header = SimpleNamespace(stamp=header.stamp, frame_id=message.header.frame_id)
            yield StampedPose(str(index), header, element_pose.position, element_pose.orientation)
    else:
        # With a covariance, the pose is one level deeper.
        values = getattr(message, "transform", getattr(message, "pose", message))
        values = getattr(values, "pose", values)
        header = getattr(message, "header", UNSTAMPED)
        if hasattr(values, "translation"):
            yield StampedPose("", header, values.translation, values.rotation)
        else:
            yield StampedPose("", header, values.position, values.orientation)
