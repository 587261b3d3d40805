"""Runs as a ROS 2 bag and as MCAP, read back by rosbags; and the keyframes in the CSV."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

from simbridge.evaluation.evaluation import Evaluation
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot import load_robot
from simbridge.trajectory.files import read_bag

JOINT_STATES = {"/joint_states", "/setpoint/joint_states"}
POSES = {f"/{name}/pose" for name in ("reference", "target", "setpoint", "attained")}
ERRORS = {
    f"/error/{part}/{kind}"
    for part in ("sampling", "solver", "limiter", "plant", "servo_law", "rest", "tracking")
    for kind in ("translation", "rotation")
}


@pytest.fixture(scope="module", params=["bag", "mcap"])
def exported(request, line_run, cli_once):
    """The run, and every message of its export by topic."""
    path = Path(cli_once("export", line_run, "--to", request.param).strip())
    found: dict[str, list] = {}
    with AnyReader([path], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as reader:
        kinds = {connection.topic: connection.msgtype for connection in reader.connections}
        for connection, stamp, data in reader.messages():
            found.setdefault(connection.topic, []).append(
                (stamp, reader.deserialize(data, connection.msgtype))
            )
    return Evaluation.of(RunDirectory.open(line_run)), kinds, found, path


@pytest.fixture(scope="module")
def cli_once():
    """Calls the program and returns its output."""
    import contextlib
    import io

    from simbridge.cli.command_line import main

    def call(*arguments):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert main([str(argument) for argument in arguments]) == 0
        return out.getvalue()

    return call


def test_topics_have_their_usual_types(exported):
    _, kinds, _, _ = exported
    assert {
        topic for topic, kind in kinds.items() if kind == "sensor_msgs/msg/JointState"
    } == JOINT_STATES
    assert {
        topic for topic, kind in kinds.items() if kind == "geometry_msgs/msg/PoseStamped"
    } == POSES
    assert {
        topic for topic, kind in kinds.items() if kind == "geometry_msgs/msg/Vector3Stamped"
    } == ERRORS
    assert set(kinds) == JOINT_STATES | POSES | ERRORS


def test_joint_states_are_those_of_the_log(exported):
    evaluation, _, found, _ = exported
    log = evaluation.log
    messages = [message for _, message in found["/joint_states"]]
    assert messages[0].name == list(log.joint_names)
    for name in ("position", "velocity", "effort"):
        assert np.array_equal([getattr(message, name) for message in messages], getattr(log, name))
    assert np.array_equal([m.position for _, m in found["/setpoint/joint_states"]], log.setpoint)


def test_poses_and_errors_are_those_of_the_evaluation(exported):
    evaluation, _, found, _ = exported
    for name in ("reference", "target", "setpoint", "attained"):
        poses = [
            [getattr(m.pose.position, k) for k in "xyz"]
            + [getattr(m.pose.orientation, k) for k in "xyzw"]
            for _, m in found[f"/{name}/pose"]
        ]
        assert np.array_equal(poses, evaluation.poses[name])
    for part in ("sampling", "solver", "limiter", "plant", "tracking"):
        error = getattr(evaluation.budget, part)
        for kind in ("translation", "rotation"):
            vectors = [
                [m.vector.x, m.vector.y, m.vector.z] for _, m in found[f"/error/{part}/{kind}"]
            ]
            assert np.array_equal(vectors, getattr(error, kind))


def test_stamps_are_those_of_the_samples_in_base_link(exported):
    evaluation, _, found, _ = exported
    expected = np.round(evaluation.log.stamp * 1e9)
    for messages in found.values():
        assert np.array_equal([stamp for stamp, _ in messages], expected)
        headers = [m.header for _, m in messages]
        assert np.array_equal([h.stamp.sec * 10**9 + h.stamp.nanosec for h in headers], expected)
        assert {h.frame_id for h in headers} == {"base_link"}


def test_an_exported_path_can_be_replayed(exported):
    evaluation, _, _, path = exported
    trajectory, frame = read_bag(path, "/attained/pose")
    assert frame == "base_link"
    assert np.allclose(trajectory.poses, evaluation.attained, atol=1e-12)


def test_a_second_export_replaces_the_first(exported, cli_once, line_run):
    path = exported[3]
    kind = "mcap" if path.suffix else "bag"
    assert Path(cli_once("export", line_run, "--to", kind).strip()) == path
    assert not [child for child in line_run.iterdir() if child.name.startswith(".")]


def test_the_csv_has_the_origin_of_every_joint_as_pinocchio_has_it(line_run, cli_once):
    path = cli_once("export", line_run, "--to", "csv").strip()
    with open(path, newline="") as file:
        row = list(csv.DictReader(file))[-1]
    robot = load_robot("ur10")
    data = robot.model.createData()
    q = np.array([float(row[f"{name}_position_rad"]) for name in robot.joint_names])
    pin.forwardKinematics(robot.model, data, q)
    for i, name in enumerate(robot.joint_names):
        origin = [float(row[f"{name}_origin_{axis}_m"]) for axis in "xyz"]
        assert np.allclose(origin, data.oMi[i + 1].translation, atol=1e-12)
