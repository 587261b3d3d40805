"""Runs as a ROS 2 bag and as MCAP, read back by rosbags."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

from simbridge.evaluation.evaluation import Evaluation
from simbridge.recording.run_directory import RunDirectory
from simbridge.trajectory.files import read_bag
from tests.program import answer_to

pytestmark = pytest.mark.shares_setup

JOINT_STATES = {
    f"{name}/joint_states" for name in ("", "/setpoint", "/command", "/controller_target")
}
POSES = {f"/{name}/pose" for name in ("reference", "target", "setpoint", "attained")}
ERRORS = {
    f"/error/{part}/{kind}"
    for part in ("sampling", "solver", "limiter", "plant", "servo_law", "rest", "tracking")
    for kind in ("translation", "rotation")
}


@dataclass
class Export:
    """An exported run.

    Attributes:
        evaluation: The run itself.
        path: The bag or the file.
        kinds: The type of each topic's messages.
        stamps: The times of each topic's messages, ns.
        messages: The messages of each topic.
    """

    evaluation: Evaluation
    path: Path
    kinds: dict[str, str]
    stamps: dict[str, list[int]]
    messages: dict[str, list[Any]]


def export(run, kind):
    """Export a run; return the path that the program prints."""
    answer = answer_to("export", run, "--to", kind)
    assert answer.status == 0
    return Path(answer.out.strip())


@pytest.fixture(scope="module", params=["bag", "mcap"])
def exported(request, exported_run):
    path = export(exported_run, request.param)
    stamps: dict[str, list[int]] = {}
    messages: dict[str, list[Any]] = {}
    with AnyReader([path], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as reader:
        kinds = {connection.topic: connection.msgtype for connection in reader.connections}
        for connection, stamp, data in reader.messages():
            message = reader.deserialize(data, connection.msgtype)
            stamps.setdefault(connection.topic, []).append(stamp)
            messages.setdefault(connection.topic, []).append(message)
    evaluation = Evaluation.of(RunDirectory.open(exported_run))
    return Export(evaluation, path, kinds, stamps, messages)


def test_topics_have_their_usual_types(exported):
    topics: dict[str, set[str]] = {}
    for topic, kind in exported.kinds.items():
        topics.setdefault(kind, set()).add(topic)

    assert topics == {
        "sensor_msgs/msg/JointState": JOINT_STATES,
        "geometry_msgs/msg/PoseStamped": POSES,
        "geometry_msgs/msg/Vector3Stamped": ERRORS,
        "std_msgs/msg/Float64": {"/speed_scaling_factor"},
        "std_msgs/msg/Int32": {"/robot_mode", "/safety_mode", "/runtime_state"},
    }


def test_states_of_the_controller_are_those_of_the_log(exported):
    log = exported.evaluation.log

    states = {
        name: [message.data for message in exported.messages[f"/{name}"]]
        for name in ("speed_scaling_factor", "robot_mode", "safety_mode", "runtime_state")
    }

    assert states["speed_scaling_factor"] == log.speed_scaling.tolist()
    assert states["robot_mode"] == log.robot_mode.tolist()
    assert states["safety_mode"] == log.safety_mode.tolist()
    assert states["runtime_state"] == log.runtime_state.tolist()


def test_joint_states_are_those_of_the_log(exported):
    log = exported.evaluation.log

    measured = exported.messages["/joint_states"]
    setpoints = exported.messages["/setpoint/joint_states"]
    commands = exported.messages["/command/joint_states"]
    targets = exported.messages["/controller_target/joint_states"]

    assert measured[0].name == list(log.joint_names)
    assert np.array_equal([message.position for message in measured], log.position)
    assert np.array_equal([message.velocity for message in measured], log.velocity)
    assert np.array_equal([message.effort for message in measured], log.effort)
    assert np.array_equal([message.position for message in setpoints], log.setpoint)
    assert np.array_equal([message.position for message in commands], log.command)
    assert np.array_equal([message.position for message in targets], log.controller_target)


@pytest.mark.parametrize("name", ["reference", "target", "setpoint", "attained"])
def test_poses_are_those_of_the_evaluation(exported, name):
    poses = []
    for message in exported.messages[f"/{name}/pose"]:
        p = message.pose.position
        q = message.pose.orientation
        poses.append([p.x, p.y, p.z, q.x, q.y, q.z, q.w])

    assert np.array_equal(poses, exported.evaluation.poses[name])


@pytest.mark.parametrize("part", ["sampling", "solver", "limiter", "plant", "tracking"])
@pytest.mark.parametrize("kind", ["translation", "rotation"])
def test_errors_are_those_of_the_evaluation(exported, part, kind):
    vectors = []
    for message in exported.messages[f"/error/{part}/{kind}"]:
        vector = message.vector
        vectors.append([vector.x, vector.y, vector.z])

    error = getattr(exported.evaluation.budget, part)
    assert np.array_equal(vectors, getattr(error, kind))


def test_stamps_are_those_of_the_samples(exported):
    expected = np.round(exported.evaluation.log.stamp * 1e9)

    for topic, messages in exported.messages.items():
        assert np.array_equal(exported.stamps[topic], expected), topic
        if hasattr(messages[0], "header"):
            stamps = [message.header.stamp for message in messages]
            header_times = [stamp.sec * 10**9 + stamp.nanosec for stamp in stamps]
            assert np.array_equal(header_times, expected), topic


def test_messages_are_in_base_link(exported):
    for topic, messages in exported.messages.items():
        if hasattr(messages[0], "header"):
            frames = {message.header.frame_id for message in messages}
            assert frames == {"base_link"}, topic


def test_an_exported_path_can_be_replayed(exported):
    trajectory, frame = read_bag(exported.path, "/attained/pose")

    assert frame == "base_link"
    assert np.allclose(trajectory.poses, exported.evaluation.attained, atol=1e-12)


def test_a_second_export_replaces_the_first(exported, exported_run):
    kind = "mcap" if exported.path.suffix else "bag"

    path = export(exported_run, kind)

    assert path == exported.path
    hidden = [child for child in exported_run.iterdir() if child.name.startswith(".")]
    assert hidden == []
