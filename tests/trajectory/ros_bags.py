"""Bags of poses and transforms by rosbags' own writer."""

from __future__ import annotations

import functools

import numpy as np
from rosbags import rosbag1, rosbag2
from rosbags.typesys import Stores, get_typestore

POSE = "geometry_msgs/msg/PoseStamped"


TF = "tf2_msgs/msg/TFMessage"


# A store generates the code that writes a kind of message when that is first written.
@functools.cache
def store_of(ros1: bool):
    """Return the store of the messages of one version of ROS."""
    store = get_typestore(Stores.ROS1_NOETIC if ros1 else Stores.ROS2_HUMBLE)
    if ros1:
        # As in tf2_msgs of ROS 1, which is not among the types of its core.
        store.register({TF: get_typestore(Stores.ROS2_HUMBLE).fielddefs[TF]})
    return store


def write_rosbag(path, messages, ros1: bool = False):
    """A bag by rosbags' own writer."""
    fill(rosbag1.Writer(path) if ros1 else rosbag2.Writer(path, version=9), messages, ros1)
    return path


def fill(writer, messages, ros1: bool) -> None:
    """Messages are (topic, stamp ns, frame, x) for a pose, with a child frame for a transform."""
    store = store_of(ros1)
    types = store.types
    encode = store.serialize_ros1 if ros1 else store.serialize_cdr
    time = types["builtin_interfaces/msg/Time"]
    point = types["geometry_msgs/msg/Point"]
    turn = types["geometry_msgs/msg/Quaternion"]
    header = types["std_msgs/msg/Header"]
    with writer:
        connections = {}
        for number, (topic, stamp, frame, x, *child) in enumerate(messages):
            kind = TF if child else POSE
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=store)
            when = time(*divmod(stamp, 10**9))
            head = header(number, when, frame) if ros1 else header(when, frame)
            rotation = turn(0.0, 0.0, 0.0, 1.0)
            if child:
                move = types["geometry_msgs/msg/Transform"](
                    types["geometry_msgs/msg/Vector3"](x, 0.0, 0.0), rotation
                )
                message = types[TF](
                    [types["geometry_msgs/msg/TransformStamped"](head, child[0], move)]
                )
            else:
                message = types[POSE](
                    head, types["geometry_msgs/msg/Pose"](point(x, 0.0, 0.0), rotation)
                )
            writer.write(connections[topic], number, encode(message, kind))


def pose_messages(topic="/a", frame="base_link", stamps=(0, 10**7, 2 * 10**7)):
    return [(topic, stamp, frame, 0.1 * k) for k, stamp in enumerate(stamps)]


EPOCH = 1_764_097_182_000_000_000
STEP = 20_000_000


class Maker:
    """Builds messages of one version of ROS."""

    def __init__(self, ros1: bool = False) -> None:
        self.ros1 = ros1
        self.store = store_of(ros1)

    def of(self, kind: str, *values):
        return self.store.types[kind](*values)

    def header(self, stamp: int, frame: str):
        when = self.of("builtin_interfaces/msg/Time", *divmod(stamp, 10**9))
        return self.of("std_msgs/msg/Header", *((0,) if self.ros1 else ()), when, frame)

    def turn(self):
        return self.of("geometry_msgs/msg/Quaternion", 0.0, 0.0, 0.0, 1.0)

    def pose(self, x: float):
        return self.of(
            "geometry_msgs/msg/Pose", self.of("geometry_msgs/msg/Point", x, 0.1, 0.3), self.turn()
        )

    def stamped(self, stamp: int, x: float, frame: str = "base_link"):
        return self.of("geometry_msgs/msg/PoseStamped", self.header(stamp, frame), self.pose(x))

    def odometry(self, stamp: int, x: float):
        zero = np.zeros(36)
        vector = self.of("geometry_msgs/msg/Vector3", 0.0, 0.0, 0.0)
        twist = self.of("geometry_msgs/msg/Twist", vector, vector)
        return self.of(
            "nav_msgs/msg/Odometry",
            self.header(stamp, "odom"),
            "tool",
            self.of("geometry_msgs/msg/PoseWithCovariance", self.pose(x), zero),
            self.of("geometry_msgs/msg/TwistWithCovariance", twist, zero),
        )

    def transforms(self, *links: tuple[int, str, str, tuple[float, ...]]):
        transforms = []
        for stamp, parent, child, values in links:
            place = self.of("geometry_msgs/msg/Vector3", *values[:3])
            rotation = self.of("geometry_msgs/msg/Quaternion", *values[3:])
            transform = self.of("geometry_msgs/msg/Transform", place, rotation)
            transforms.append(
                self.of(
                    "geometry_msgs/msg/TransformStamped",
                    self.header(stamp, parent),
                    child,
                    transform,
                )
            )
        return self.of("tf2_msgs/msg/TFMessage", transforms)

    def write(self, path, messages):
        """A bag of (topic, message), recorded 1 ms apart."""
        writer = rosbag1.Writer(path) if self.ros1 else rosbag2.Writer(path, version=9)
        encode = self.store.serialize_ros1 if self.ros1 else self.store.serialize_cdr
        connections = {}
        with writer:
            for number, (topic, message) in enumerate(messages):
                kind = message.__msgtype__
                if topic not in connections:
                    connections[topic] = writer.add_connection(topic, kind, typestore=self.store)
                writer.write(connections[topic], EPOCH + number * 10**6, encode(message, kind))
        return path
