"""robots/*.toml against the table published for the arms (tests/data/ur_family.toml)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pinocchio as pin
import pytest

from simbridge import load_robot
from simbridge.resources import robot_files

PUBLISHED = msgspec.toml.decode((Path(__file__).parents[1] / "data" / "ur_family.toml").read_text(encoding="utf-8"))
LINKS = ("shoulder", "upper_arm", "forearm", "wrist_1", "wrist_2", "wrist_3")
ARMS = ("ur10", "ur10e")


def test_every_arm_in_robots_is_compared_here():
    assert set(robot_files()) == set(ARMS)


@pytest.fixture(params=ARMS)
def arm(request):
    return request.param, load_robot(request.param), PUBLISHED[request.param]


def test_link_lengths_and_offsets_are_the_published_ones(arm):
    _, robot, published = arm
    chain = robot.placements
    assert np.array_equal(chain[1:, 0, 3], published["a"])
    assert np.array_equal(chain[1:, 2, 3], published["d"])
    assert np.all(chain[1:, 1, 3] == 0.0) and np.all(chain[0, :3, 3] == 0.0)


def test_the_first_joint_sits_in_base_link_turned_by_half_a_turn(arm):
    _, robot, _ = arm
    assert np.array_equal(robot.placements[0], np.diag([-1.0, -1.0, 1.0, 1.0]))


def test_limits_are_the_published_ones(arm):
    _, robot, published = arm
    assert np.array_equal(robot.position_min, published["position_min"])
    assert np.array_equal(robot.position_max, published["position_max"])
    assert np.array_equal(robot.max_velocity, published["max_velocity"])
    assert np.array_equal(robot.max_effort, published["max_effort"])


def test_masses_and_centres_of_mass_are_the_published_ones(arm):
    _, robot, published = arm
    assert [link.inertia.mass for link in robot.links] == published["mass"]
    for link, name, d in zip(robot.links, LINKS, published["d"], strict=True):
        assert link.name == f"{name}_link"
        # The published frame is where Rz(theta) Tz(d) leads: d above the joint's.
        np.testing.assert_allclose(
            link.inertia.lever, np.add(published[name]["center_of_mass"], [0.0, 0.0, d]), rtol=0.0, atol=1e-16
        )


def test_inertia_tensors_are_the_published_ones_turned_by_their_rpy(arm):
    _, robot, published = arm
    for link, name in zip(robot.links, LINKS, strict=True):
        given = published[name]["inertia"]
        matrix = np.array([[given["i" + "".join(sorted(a + b))] for b in "xyz"] for a in "xyz"], dtype=float)
        roll, pitch, yaw = published[name]["inertia_rpy"]
        turn = pin.utils.rotate("z", yaw) @ pin.utils.rotate("y", pitch) @ pin.utils.rotate("x", roll)
        # The published angles have ten digits, ours are exact.
        np.testing.assert_allclose(link.inertia.inertia, turn @ matrix @ turn.T, rtol=0.0, atol=1e-9)


def test_joints_are_named_as_in_the_ros_descriptions(arm):
    _, robot, _ = arm
    names = ["shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3"]
    assert list(robot.joint_names) == [f"{name}_joint" for name in names]


def test_series_and_control_period_belong_to_the_arm():
    assert (load_robot("ur10").series, load_robot("ur10").period) == ("CB3", 0.008)
    assert (load_robot("ur10e").series, load_robot("ur10e").period) == ("e-Series", 0.002)


def test_at_home_the_tool_points_down_in_front_of_the_base(arm):
    _, robot, _ = arm
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, robot.home)
    tool = data.oMf[robot.model.getFrameId("tool0")]
    np.testing.assert_allclose(tool.rotation[:, 2], [0.0, 0.0, -1.0], atol=1e-4)
    assert 0.5 < tool.translation[0] < 1.0 and abs(tool.translation[1]) < 0.3 and 0.1 < tool.translation[2] < 0.8
