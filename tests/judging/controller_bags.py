"""Bags of a joint trajectory controller by rosbags' own writer, with every generation of messages.

The definitions are written out here once more, from control_msgs: they check those of the package.
"""

from __future__ import annotations

import functools
from types import SimpleNamespace

import numpy as np
from rosbags import rosbag1, rosbag2
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

JOINTS = (
    "shoulder_pan_joint",
    "shoulder_lift_joint",
    "elbow_joint",
    "wrist_1_joint",
    "wrist_2_joint",
    "wrist_3_joint",
)
STATE = "control_msgs/msg/JointTrajectoryControllerState"
POINT = "trajectory_msgs/JointTrajectoryPoint"
MULTI_DOF_POINT = "trajectory_msgs/MultiDOFJointTrajectoryPoint"
# Points of the state, and whether it has those of several degrees of freedom and a scaling factor.
GENERATIONS = {
    "desired": (("desired", "actual", "error"), (), False),
    "desired and multi-dof": (
        ("desired", "actual", "error"),
        ("desired", "actual", "error"),
        False,
    ),
    "humble": (
        ("reference", "feedback", "error", "output", "desired", "actual"),
        ("reference", "feedback", "error", "output", "desired", "actual"),
        False,
    ),
    "jazzy": (
        ("reference", "feedback", "error", "output"),
        ("reference", "feedback", "error", "output"),
        False,
    ),
    "kilted": (
        ("reference", "feedback", "error", "output"),
        ("reference", "feedback", "error", "output"),
        True,
    ),
}
# As the ROS 1 packages define them.
ROS1_ACTION = {
    "control_msgs/msg/JointTolerance": (
        "string name\nfloat64 position\nfloat64 velocity\nfloat64 acceleration\n"
    ),
    "control_msgs/msg/FollowJointTrajectoryGoal": (
        "trajectory_msgs/JointTrajectory trajectory\n"
        "control_msgs/JointTolerance[] path_tolerance\n"
        "control_msgs/JointTolerance[] goal_tolerance\n"
        "duration goal_time_tolerance\n"
    ),
    "control_msgs/msg/FollowJointTrajectoryActionGoal": (
        "std_msgs/Header header\nactionlib_msgs/GoalID goal_id\n"
        "control_msgs/FollowJointTrajectoryGoal goal\n"
    ),
    "control_msgs/msg/FollowJointTrajectoryResult": "int32 error_code\nstring error_string\n",
    "control_msgs/msg/FollowJointTrajectoryActionResult": (
        "std_msgs/Header header\nactionlib_msgs/GoalStatus status\n"
        "control_msgs/FollowJointTrajectoryResult result\n"
    ),
}
DASHBOARD = {
    "ur_dashboard_msgs/msg/SafetyMode": "uint8 mode\n",
    "ur_dashboard_msgs/msg/RobotMode": "int8 mode\n",
}
EPOCH = 1_764_097_182_000_000_000


# A store generates the code that writes a kind of message when that is first written.
@functools.cache
def store_of(ros1: bool, generation: str):
    """Return the store of the messages of one version of ROS, with a generation of the state."""
    store = get_typestore(Stores.ROS1_NOETIC if ros1 else Stores.ROS2_HUMBLE)
    store.register(get_types_from_msg(state_definition(generation), STATE))
    for name, text in {**DASHBOARD, **(ROS1_ACTION if ros1 else {})}.items():
        store.register(get_types_from_msg(text, name))
    return store


def state_definition(generation: str) -> str:
    points, multi_dof, has_scaling = GENERATIONS[generation]
    lines = ["std_msgs/Header header", "string[] joint_names"]
    lines += [f"{POINT} {name}" for name in points]
    if multi_dof:
        lines.append("string[] multi_dof_joint_names")
        lines += [f"{MULTI_DOF_POINT} multi_dof_{name}" for name in multi_dof]
    if has_scaling:
        lines.append("float64 speed_scaling_factor")
    return "\n".join(lines) + "\n"


class ControllerBag:
    """Messages of an arm's controllers, and the bag of them.

    Args:
        ros1: Whether it is of ROS 1.
        generation: Key of GENERATIONS.
    """

    def __init__(self, ros1: bool = False, generation: str = "jazzy") -> None:
        self.ros1 = ros1
        self.points, self.multi_dof, self.has_scaling = GENERATIONS[generation]
        self.store = store_of(ros1, generation)
        self.messages: list[tuple[float, str, str, object]] = []

    def of(self, kind: str, *values):
        return self.store.types[kind](*values)

    def time(self, seconds: float, kind: str = "Time"):
        nanoseconds = round(seconds * 1e9) + (EPOCH if kind == "Time" else 0)
        return self.of(f"builtin_interfaces/msg/{kind}", *divmod(nanoseconds, 10**9))

    def header(self, seconds: float):
        number = (0,) if self.ros1 else ()
        return self.of("std_msgs/msg/Header", *number, self.time(seconds), "base_link")

    def point(self, positions=(), velocities=(), at: float = 0.0):
        vectors = [np.array(values, dtype=float) for values in (positions, velocities, (), ())]
        kind = "trajectory_msgs/msg/JointTrajectoryPoint"
        return self.of(kind, *vectors, self.time(at, "Duration"))

    def add(self, seconds: float, topic: str, kind: str, content) -> None:
        self.messages.append((seconds, topic, kind, content))

    def joint_state(self, seconds, q, names=JOINTS, topic="/joint_states", qd=()) -> None:
        vectors = [np.array(values, dtype=float) for values in (q, qd, ())]
        kind = "sensor_msgs/msg/JointState"
        message = self.of(kind, self.header(seconds), list(names), *vectors)
        self.add(seconds, topic, kind, message)

    def state(
        self,
        seconds,
        reference,
        actual,
        names=JOINTS,
        topic="/joint_trajectory_controller/state",
        qd=(),
        scaling=1.0,
    ) -> None:
        reference = np.asarray(reference)
        actual = np.asarray(actual)
        points = {
            "reference": self.point(reference, qd),
            "feedback": self.point(actual),
            "error": self.point(reference - actual),
            "output": self.point(reference),
        }
        points |= {"desired": points["reference"], "actual": points["feedback"]}
        values = [self.header(seconds), list(names), *(points[name] for name in self.points)]
        if self.multi_dof:
            empty = self.of(
                "trajectory_msgs/msg/MultiDOFJointTrajectoryPoint",
                [],
                [],
                [],
                self.time(0.0, "Duration"),
            )
            values += [[], *(empty for _ in self.multi_dof)]
        if self.has_scaling:
            values.append(scaling)
        self.add(seconds, topic, STATE, self.of(STATE, *values))

    def value(self, seconds, topic, kind, value) -> None:
        self.add(seconds, topic, kind, self.of(kind, value))

    def array(self, seconds, topic, values) -> None:
        layout = self.of("std_msgs/msg/MultiArrayLayout", [], 0)
        kind = "std_msgs/msg/Float64MultiArray"
        self.add(seconds, topic, kind, self.of(kind, layout, np.array(values, dtype=float)))

    def logged(self, seconds, text, name="joint_trajectory_controller") -> None:
        """A message of a controller on /rosout of ROS 2."""
        kind = "rcl_interfaces/msg/Log"
        message = self.of(kind, self.time(seconds), 30, name, text, "", "", 0)
        self.add(seconds, "/rosout", kind, message)

    def ros2_status(self, seconds, statuses) -> None:
        """Statuses of goals by the first byte of their identity."""
        entries = []
        for number, status in statuses.items():
            uuid = np.zeros(16, dtype=np.uint8)
            uuid[0] = number
            identity = self.of("unique_identifier_msgs/msg/UUID", uuid)
            info = self.of("action_msgs/msg/GoalInfo", identity, self.time(seconds))
            entries.append(self.of("action_msgs/msg/GoalStatus", info, status))
        kind = "action_msgs/msg/GoalStatusArray"
        topic = "/arm_controller/follow_joint_trajectory/_action/status"
        self.add(seconds, topic, kind, self.of(kind, entries))

    def ros1_goal(self, seconds, goal_id, points, path_tolerance=0.0, names=JOINTS) -> None:
        trajectory = self.of(
            "trajectory_msgs/msg/JointTrajectory",
            self.header(seconds),
            list(names),
            [self.point(q, at=at) for at, q in points],
        )
        tolerances = [
            self.of("control_msgs/msg/JointTolerance", name, path_tolerance, 0.0, 0.0)
            for name in names
        ]
        goal = self.of(
            "control_msgs/msg/FollowJointTrajectoryGoal",
            trajectory,
            tolerances,
            [],
            self.time(0.5, "Duration"),
        )
        kind = "control_msgs/msg/FollowJointTrajectoryActionGoal"
        identity = self.of("actionlib_msgs/msg/GoalID", self.time(seconds), goal_id)
        topic = "/arm_controller/follow_joint_trajectory/goal"
        self.add(seconds, topic, kind, self.of(kind, self.header(seconds), identity, goal))

    def ros1_result(self, seconds, goal_id, status, error, text="") -> None:
        identity = self.of("actionlib_msgs/msg/GoalID", self.time(seconds), goal_id)
        result = self.of("control_msgs/msg/FollowJointTrajectoryResult", error, text)
        kind = "control_msgs/msg/FollowJointTrajectoryActionResult"
        status_message = self.of("actionlib_msgs/msg/GoalStatus", identity, status, text)
        topic = "/arm_controller/follow_joint_trajectory/result"
        message = self.of(kind, self.header(seconds), status_message, result)
        self.add(seconds, topic, kind, message)

    def write(self, path):
        """The bag's path; that of ROS 2 is in SQLite."""
        if self.ros1:
            writer = rosbag1.Writer(path)
        else:
            writer = rosbag2.Writer(path, version=9)
        encode = self.store.serialize_ros1 if self.ros1 else self.store.serialize_cdr
        with writer:
            connections = {}
            for seconds, topic, kind, message in sorted(self.messages, key=lambda item: item[0]):
                if topic not in connections:
                    connections[topic] = writer.add_connection(topic, kind, typestore=self.store)
                stamp = EPOCH + round(seconds * 1e9)
                writer.write(connections[topic], stamp, encode(message, kind))
        return path


def moving(count: int = 20, period: float = 0.01, lag: float = 0.03) -> SimpleNamespace:
    """Times (T,), and a sine with its copy `lag` seconds later (T, 6)."""
    times = period * np.arange(count)
    scale = np.linspace(0.2, 1.0, 6)
    return SimpleNamespace(
        times=times,
        reference=np.sin(times)[:, None] * scale,
        actual=np.sin(times - lag)[:, None] * scale,
        actual_qd=np.cos(times - lag)[:, None] * scale,
    )
