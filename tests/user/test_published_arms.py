"""The UR arms of robots/ against the tables published for them (tests/data/ur_family*.toml)."""

from __future__ import annotations

import functools
from pathlib import Path

import msgspec
import numpy as np
import pinocchio as pin
import pytest

from simbridge import load_robot
from simbridge.resources import robot_files
from simbridge.robot.collision import MARGIN, CollisionModel
from simbridge.robot.kinematics import tool_path


def published_arms():
    """Return the published values by name of the arm; the UR3e and UR5e have newer tensors."""
    data = Path(__file__).parents[1] / "data"
    arms = msgspec.toml.decode((data / "ur_family.toml").read_text(encoding="utf-8"))
    newer = msgspec.toml.decode((data / "ur_family_2026.toml").read_text(encoding="utf-8"))
    for name in ("ur3e", "ur5e"):
        arms[name] |= newer.pop(f"{name}_measured")
    return arms | newer


PUBLISHED = published_arms()
LINKS = ("shoulder", "upper_arm", "forearm", "wrist_1", "wrist_2", "wrist_3")
ARMS = tuple(PUBLISHED)
CB3 = {"ur3", "ur5", "ur10"}
# Arms whose published offsets are those of the planes between the links, not of the tubes.
OFFSETS_OF_JOINTS = {"ur15", "ur18", "ur8long"}


def test_the_table_names_the_arms_in_robots():
    assert len(ARMS) == 14
    assert {name for name in robot_files() if name.startswith("ur")} == set(ARMS)


loaded = functools.cache(load_robot)


@pytest.fixture(params=ARMS)
def arm(request):
    return request.param, loaded(request.param), PUBLISHED[request.param]


def test_link_lengths_and_offsets_are_the_published_ones(arm):
    _, robot, published = arm
    chain = robot.placements

    assert np.array_equal(chain[1:, 0, 3], published["a"])
    assert np.array_equal(chain[1:, 2, 3], published["d"])
    assert np.all(chain[1:, 1, 3] == 0.0)
    assert np.all(chain[0, :3, 3] == 0.0)


def test_base_link_is_turned_by_half_a_turn(arm):
    _, robot, _ = arm

    assert np.array_equal(robot.placements[0], np.diag([-1.0, -1.0, 1.0, 1.0]))


def test_limits_are_the_published_ones(arm):
    _, robot, published = arm

    assert np.array_equal(robot.position_min, published["position_min"])
    assert np.array_equal(robot.position_max, published["position_max"])
    assert np.array_equal(robot.max_velocity, published["max_velocity"])
    assert np.array_equal(robot.max_effort, published["max_effort"])


def test_masses_and_centres_are_published(arm):
    _, robot, published = arm

    assert [link.inertia.mass for link in robot.links] == published["mass"]
    for link, name, d in zip(robot.links, LINKS, published["d"], strict=True):
        assert link.name == f"{name}_link"
        # The published frame is the joint's times Rz(theta) Tz(d): d above it.
        np.testing.assert_allclose(
            link.inertia.lever,
            np.add(published[name]["center_of_mass"], [0.0, 0.0, d]),
            rtol=0.0,
            atol=1e-16,
        )


def test_inertia_tensors_are_turned_by_their_rpy(arm):
    _, robot, published = arm
    for link, name in zip(robot.links, LINKS, strict=True):
        given = published[name]["inertia"]
        matrix = np.array(
            [[given["i" + "".join(sorted(a + b))] for b in "xyz"] for a in "xyz"], dtype=float
        )
        roll, pitch, yaw = published[name]["inertia_rpy"]
        turn = (
            pin.utils.rotate("z", yaw) @ pin.utils.rotate("y", pitch) @ pin.utils.rotate("x", roll)
        )
        # The published angles have ten digits, ours are exact.
        np.testing.assert_allclose(
            link.inertia.inertia, turn @ matrix @ turn.T, rtol=0.0, atol=1e-9
        )


def test_joints_are_named_as_in_the_ros_descriptions(arm):
    _, robot, _ = arm
    names = ["shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3"]

    assert list(robot.joint_names) == [f"{name}_joint" for name in names]


def test_series_and_control_period_belong_to_the_arm(arm):
    name, robot, _ = arm

    assert (robot.series, robot.period) == (("CB3", 0.008) if name in CB3 else ("e-Series", 0.002))


def test_the_title_is_the_controllers_name(arm):
    name, robot, _ = arm

    assert robot.title == {"ur8long": "UR8 Long"}.get(name, "UR" + name.removeprefix("ur"))


def test_a_ur_arms_task_is_the_pose(arm):
    _, robot, _ = arm

    assert robot.task == "pose"
    assert not robot.planar


def test_forward_kinematics_follow_the_published_table(arm):
    _, robot, published = arm
    joints = np.random.default_rng(7).uniform(-np.pi, np.pi, (50, 6))
    for q, pose in zip(joints, tool_path(robot, joints), strict=True):
        product = np.diag([-1.0, -1.0, 1.0, 1.0])
        for theta, d, a, alpha in zip(
            q,
            published["d"],
            published["a"],
            [np.pi / 2, 0.0, 0.0, np.pi / 2, -np.pi / 2, 0.0],
            strict=True,
        ):
            ct = np.cos(theta)
            st = np.sin(theta)
            ca = np.cos(alpha)
            sa = np.sin(alpha)
            product = product @ [
                [ct, -st * ca, st * sa, a * ct],
                [st, ct * ca, -ct * sa, a * st],
                [0.0, sa, ca, d],
                [0.0, 0.0, 0.0, 1.0],
            ]
        np.testing.assert_allclose(
            pin.XYZQUATToSE3(pose).homogeneous, product, rtol=0.0, atol=1e-12
        )


def transform(rotation, x=0.0, y=0.0, z=0.0):
    """Return a homogeneous transform (4, 4)."""
    matrix = np.eye(4)
    matrix[:3, :3] = rotation
    matrix[:3, 3] = (x, y, z)
    return matrix


def published_joint_frames(published):
    """Return the six joint transforms of UR's descriptions, as its kinematics files have them.

    Each is given by x, y, z and by roll, pitch and yaw, here with exact right angles.
    """
    d1, _, _, d4, d5, d6 = published["d"]
    a2, a3 = published["a"][1:3]
    quarter_turn = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
    # Roll pi/2, pitch pi, yaw pi: Rz(pi) Ry(pi) is Rx(pi).
    last_turn = np.diag([1.0, -1.0, -1.0]) @ quarter_turn
    return (
        transform(np.eye(3), z=d1),
        transform(quarter_turn),
        transform(np.eye(3), x=a2),
        transform(np.eye(3), x=a3, z=d4),
        transform(quarter_turn, y=-d5),
        transform(last_turn, y=d6),
    )


def test_forward_kinematics_follow_the_published_joint_frames(arm):
    _, robot, published = arm
    frames = published_joint_frames(published)
    postures = np.random.default_rng(41).uniform(-2.0 * np.pi, 2.0 * np.pi, (200, 6))

    for q, pose in zip(postures, tool_path(robot, postures), strict=True):
        # base_link to base_link_inertia is a yaw of pi; flange and tool0 keep wrist 3's frame.
        expected = np.diag([-1.0, -1.0, 1.0, 1.0])
        for frame, angle in zip(frames, q, strict=True):
            expected = expected @ frame @ transform(pin.utils.rotate("z", angle))
        np.testing.assert_allclose(
            pin.XYZQUATToSE3(pose).homogeneous, expected, rtol=0.0, atol=1e-12
        )


def posed(*angles):
    """Home with some joints moved: pairs of a joint's number and its angle in degrees."""
    return [(joint, np.radians(angle)) for joint, angle in angles]


# Postures an arm of any size is often in, and postures in which its body is folded into itself.
FREE = [
    posed(),
    posed((1, -90.0), (2, 0.0), (3, -90.0)),
    posed((1, -90.0), (2, 90.0), (3, -90.0)),
    posed((0, 120.0)),
    posed((1, -120.0), (2, 100.0), (3, -70.0), (4, -90.0)),
    posed((4, 90.0), (3, 60.0)),
]
FOLDED = [posed((2, 172.0)), posed((2, -172.0)), posed((1, 60.0))]


def at(robot, changes):
    q = robot.home.copy()
    for joint, angle in changes:
        q[joint] = angle
    return q


def test_usual_postures_touch_nothing(arm):
    _, robot, _ = arm
    model = CollisionModel(robot)

    for changes in FREE:
        assert model.clearance(at(robot, changes)).distance > MARGIN


def test_folded_or_on_the_floor_it_does(arm):
    _, robot, _ = arm
    model = CollisionModel(robot)

    for changes in FOLDED:
        assert model.clearance(at(robot, changes)).distance < 0.0


def test_only_neighbouring_links_touch_at_home(arm):
    # The collision model never tests links that touch at home.
    _, robot, _ = arm
    solid = [
        sum(shape.solid for shape in shapes)
        for shapes in (robot.base_shapes, *(k.shapes for k in robot.links))
    ]
    apart = sum(solid[i] * solid[j] for i in range(7) for j in range(i + 2, 7))

    on_the_floor = sum(solid[2:])

    assert CollisionModel(robot).pairs == apart + on_the_floor


def test_shapes_cover_every_link(arm):
    # A point between two joint centres outside of every solid shape would be a hole in the arm.
    arm_name, robot, published = arm
    for number, name in ((1, "upper_arm"), (2, "forearm")):
        offset = published["shoulder_offset" if name == "upper_arm" else "elbow_offset"]
        if arm_name in OFFSETS_OF_JOINTS:
            offset = next(s for s in robot.links[number].shapes if s.kind == "capsule").start[2]
        axis = np.linspace([0.0, 0.0, offset], [published["a"][number], 0.0, offset], 40)
        solid = [shape for shape in robot.links[number].shapes if shape.solid]
        assert all(any(inside(shape, point) for shape in solid) for point in axis)


def inside(shape, point):
    start = np.array(shape.start)
    end = np.array(shape.end)
    along = np.clip((point - start) @ (end - start) / ((end - start) @ (end - start)), 0.0, 1.0)
    return np.linalg.norm(point - start - along * (end - start)) <= shape.radius


def test_home_is_far_from_every_singularity(arm):
    _, robot, published = arm
    data = robot.model.createData()
    jacobian = pin.computeFrameJacobian(
        robot.model, data, robot.home, robot.model.getFrameId("tool0"), pin.LOCAL_WORLD_ALIGNED
    )
    # Rows of translation in units of the arm's length, for arms of every size to compare.
    jacobian[:3] /= -published["a"][1] - published["a"][2]

    assert np.linalg.svd(jacobian, compute_uv=False)[-1] > 0.2


def test_at_home_the_tool_points_down(arm):
    _, robot, _ = arm
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, robot.home)
    tool = data.oMf[robot.model.getFrameId("tool0")]

    np.testing.assert_allclose(tool.rotation[:, 2], [0.0, 0.0, -1.0], atol=1e-4)

    size = robot.arm_length
    assert 0.3 * size < tool.translation[0] < 0.6 * size
    assert abs(tool.translation[1]) < 0.2 * size
    assert 0.1 < tool.translation[2] < 0.8
