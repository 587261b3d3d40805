"""Gathers a bag's messages on an arm and its controllers in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from simbridge.judging import ros_definitions as ros
from simbridge.judging.bag_rows import JointRows, stamp_of
from simbridge.trajectory.bag_joints import JOINT_STATE
from simbridge.trajectory.bag_reader import Bag

JOINT_TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"
FLOAT = "std_msgs/msg/Float64"
BOOL = "std_msgs/msg/Bool"
INTEGER = "std_msgs/msg/Int32"
ARRAY = "std_msgs/msg/Float64MultiArray"
POSE = "geometry_msgs/msg/PoseStamped"
ROSOUT = "rcl_interfaces/msg/Log"
ROS1_STATUSES = "actionlib_msgs/msg/GoalStatusArray"
ROS2_STATUSES = "action_msgs/msg/GoalStatusArray"

# Types whose messages are read on any topic.
STATE_KINDS = (ros.SAFETY_MODE, ros.ROBOT_MODE, ros.SPEED_SCALING)
FEEDBACK_KINDS = (ros.ROS1_FEEDBACK, ros.ROS2_FEEDBACK)
GOAL_KINDS = (ros.ROS1_GOAL, ros.ROS2_GOAL_EVENT)
RESULT_KINDS = (ros.ROS1_RESULT, ros.ROS2_RESULT_EVENT)
# Name of the action by which a trajectory controller takes goals.
ACTION = "follow_joint_trajectory"
# Types whose messages are read only on topics with one of these texts in their names.
NAMED_TOPICS = {
    FLOAT: ("speed_scaling",),
    BOOL: ("robot_program_running", "robot_running"),
    INTEGER: ("/robot_mode", "/safety_mode", "/runtime_state"),
    ARRAY: ("/command",),
    POSE: ("/reference/pose", "/attained/pose", "/tcp_pose_broadcaster/pose"),
    ROS1_STATUSES: (ACTION,),
    ROS2_STATUSES: (ACTION,),
}

# Beginnings of the messages on /rosout that are kept: `bag_rosout.py` reads them.
LOGGED_BEGINNINGS = ("Aborted due to", "State tolerances failed", "Position Error")
# Vectors of a joint state; a message is of use only with the first.
JOINT_VECTORS = ("position", "velocity", "effort")
# Vectors of a trajectory controller's state; a message is of use only with the first. Each vector
# lies in a point of the message: the names of the point in different versions of the message, the
# newest first, and the field of the point.
STATE_VECTORS = {
    "reference": (("reference", "desired"), "positions"),
    "reference_velocity": (("reference", "desired"), "velocities"),
    "feedback": (("feedback", "actual"), "positions"),
    "error": (("error",), "positions"),
    "output": (("output",), "positions"),
}

Rows = dict[tuple[str, tuple[str, ...]], JointRows]
"""Joint vectors by topic and names of the joints."""


@dataclass(frozen=True, eq=False)
class BagMessage:
    """A message that is kept as it was decoded.

    Attributes:
        topic: Name of its topic.
        kind: Its type.
        recorded: Time of recording, ns.
        content: Its fields.
    """

    topic: str
    kind: str
    recorded: int
    content: Any

    def stamp(self, clock_lead: int) -> int:
        """Return the stamp of the message, ns: of its header, else of its recording.

        Args:
            clock_lead: How far the recorder's clock is ahead of the clock of the stamps, ns.
        """
        header = getattr(self.content, "header", None)
        stamp = 0 if header is None else stamp_of(header.stamp)
        return stamp or self.recorded - clock_lead


@dataclass(frozen=True)
class ControllerScaling:
    """The speed scaling in a trajectory controller's state.

    Attributes:
        factor: Fraction of full speed, 0 to 1.
    """

    factor: float


class BagContents:
    """The messages of a bag that concern an arm.

    Args:
        bag: The bag.
        namespace: Prefix of the names of the topics that are read; "" for all topics.

    Attributes:
        joints: Joint states.
        controllers: States of trajectory controllers.
        feedback: Feedback of trajectory controllers on their goals.
        goals: Goals and trajectories that were sent to controllers, in order.
        results: Results of goals, in order.
        statuses: Statuses of goals, in order.
        states: Speed scaling, modes and program, by topic.
        poses: Poses of the TCP, by topic.
        logged: Messages on /rosout that say why a controller gave up, in order.
        arrays: Commands to forward command controllers, by topic.

    Raises:
        InputFileError: A message cannot be decoded, or has vectors of different lengths.
    """

    def __init__(self, bag: Bag, namespace: str = "") -> None:
        self.joints: Rows = {}
        self.controllers: Rows = {}
        self.feedback: Rows = {}
        self.goals: list[BagMessage] = []
        self.results: list[BagMessage] = []
        self.statuses: list[BagMessage] = []
        self.logged: list[BagMessage] = []
        self.states: dict[str, list[BagMessage]] = {}
        self.poses: dict[str, list[BagMessage]] = {}
        self.arrays: dict[str, list[BagMessage]] = {}
        self._path = str(bag.path)

        kinds = {connection.topic: connection.msgtype for connection in bag.connections}
        topics = {
            topic
            for topic, kind in kinds.items()
            if topic.startswith(namespace) and _is_read(topic, kind)
        }
        for topic, number, recorded, content in bag.messages(topics=topics):
            self._add(BagMessage(topic, kinds[topic], recorded, content), number)

    def _add(self, message: BagMessage, number: int) -> None:
        """Add a message.

        Args:
            message: The message.
            number: Number of the message on its topic, from 1.
        """
        kind = message.kind
        if kind == JOINT_STATE:
            vectors = {name: getattr(message.content, name) for name in JOINT_VECTORS}
            self._add_row(self.joints, message, number, message.content.name, vectors)
        elif kind == ros.STATE:
            self._add_state(self.controllers, message, number, message.content)
            self._add_scaling(message)
        elif kind in FEEDBACK_KINDS:
            # In ROS 1 the feedback is a field of the message, in ROS 2 the message itself.
            feedback = getattr(message.content, "feedback", message.content)
            self._add_state(self.feedback, message, number, feedback)
        elif kind == JOINT_TRAJECTORY or kind in GOAL_KINDS:
            self.goals.append(message)
        elif kind in RESULT_KINDS:
            self.results.append(message)
        elif kind in (ROS1_STATUSES, ROS2_STATUSES):
            self.statuses.append(message)
        elif kind == ROSOUT:
            if message.content.msg.strip().startswith(LOGGED_BEGINNINGS):
                self.logged.append(message)
        elif kind == ARRAY:
            self.arrays.setdefault(message.topic, []).append(message)
        elif kind == POSE:
            self.poses.setdefault(message.topic, []).append(message)
        else:
            self.states.setdefault(message.topic, []).append(message)

    def _add_state(self, rows: Rows, message: BagMessage, number: int, state: Any) -> None:
        """Add the vectors of a trajectory controller's state, or of its feedback.

        Args:
            rows: Joint vectors, to which those of the message are added.
            message: The message.
            number: Number of the message on its topic, from 1.
            state: The state or the feedback in the message.
        """
        vectors = {}
        for vector, (point_names, field) in STATE_VECTORS.items():
            points = [getattr(state, name) for name in point_names if hasattr(state, name)]
            vectors[vector] = getattr(points[0], field) if points else ()
        self._add_row(rows, message, number, state.joint_names, vectors)

    def _add_scaling(self, message: BagMessage) -> None:
        """Add the speed scaling in a trajectory controller's state, where it has one."""
        factor = getattr(message.content, "speed_scaling_factor", None)
        if factor is not None:
            # Only the factor is kept, to save memory: there are hundreds of messages each second.
            scaling = replace(message, content=ControllerScaling(factor))
            self.states.setdefault(message.topic, []).append(scaling)

    def _add_row(
        self,
        rows: Rows,
        message: BagMessage,
        number: int,
        names: Sequence[str],
        vectors: Mapping[str, Sequence[float]],
    ) -> None:
        """Add the vectors of a message to those of its topic and joints.

        Args:
            rows: Joint vectors, to which those of the message are added.
            message: The message.
            number: Number of the message on its topic, from 1.
            names: Names of the joints in the message; a message without any is ignored.
            vectors: Vectors of the message by name, each with a number per joint, or empty.
        """
        joint_names = tuple(names)
        if not joint_names:
            return
        key = (message.topic, joint_names)
        if key not in rows:
            rows[key] = JointRows(self._path, message.topic, joint_names, vectors=list(vectors))
        header = getattr(message.content, "header", None)
        stamp = 0 if header is None else stamp_of(header.stamp)
        rows[key].add(number, stamp=stamp, recorded=message.recorded, vectors=vectors)


def _is_read(topic: str, kind: str) -> bool:
    """Return whether the messages of a topic are read.

    Args:
        topic: Name of the topic.
        kind: Type of its messages.
    """
    if kind in NAMED_TOPICS:
        return any(word in topic for word in NAMED_TOPICS[kind])
    return kind in (
        JOINT_STATE,
        JOINT_TRAJECTORY,
        ROSOUT,
        ros.STATE,
        *FEEDBACK_KINDS,
        *GOAL_KINDS,
        *RESULT_KINDS,
        *STATE_KINDS,
    )
