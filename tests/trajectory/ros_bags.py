"""Bags of poses and transforms by rosbags' own writer."""

from __future__ import annotations

from rosbags import rosbag1, rosbag2
from rosbags.typesys import Stores, get_typestore

POSE = "geometry_msgs/msg/PoseStamped"


TF = "tf2_msgs/msg/TFMessage"


def write_rosbag(path, messages, ros1: bool = False):
    """A bag by rosbags' own writer."""
    fill(rosbag1.Writer(path) if ros1 else rosbag2.Writer(path, version=9), messages, ros1)
    return path


def fill(writer, messages, ros1: bool) -> None:
    """Messages are (topic, stamp ns, frame, x) for a pose, with a child frame for a transform."""
    store = get_typestore(Stores.ROS1_NOETIC if ros1 else Stores.ROS2_HUMBLE)
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
