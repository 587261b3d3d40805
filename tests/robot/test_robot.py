"""The chain, the model, the kinematics, the payload and the TCP of a Robot."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge import load_robot
from simbridge.errors import InvalidParameter
from simbridge.robot.kinematics import tool_path
from simbridge.robot.parts import JointLimits
from tests.properties import few_examples

ARMS = ("ur10", "ur10e")
DH = {
    "ur10": ((0.1273, 0.0, 0.0, 0.163941, 0.1157, 0.0922), (0.0, -0.612, -0.5723, 0.0, 0.0, 0.0)),
    "ur10e": (
        (0.1807, 0.0, 0.0, 0.17415, 0.11985, 0.11655),
        (0.0, -0.6127, -0.57155, 0.0, 0.0, 0.0),
    ),
}


# cos and sin of alpha = [pi/2, 0, 0, pi/2, -pi/2, 0]
TWIST = ((0, 1), (1, 0), (1, 0), (0, 1), (0, -1), (1, 0))


def dh_tool0(name, q):
    """Rz(pi) T_1 ... T_6 (K, 4, 4) at joint positions (K, 6), each factor written out."""
    tool = np.broadcast_to(np.diag([-1.0, -1.0, 1.0, 1.0]), (len(q), 4, 4))
    for d, a, (ca, sa), theta in zip(*DH[name], TWIST, q.T, strict=True):
        c = np.cos(theta)
        s = np.sin(theta)
        step = np.zeros((len(q), 4, 4))
        step[:, 0, 0] = c
        step[:, 0, 1] = -s * ca
        step[:, 0, 2] = s * sa
        step[:, 0, 3] = a * c
        step[:, 1, 0] = s
        step[:, 1, 1] = c * ca
        step[:, 1, 2] = -c * sa
        step[:, 1, 3] = a * s
        step[:, 2, 1] = sa
        step[:, 2, 2] = ca
        step[:, 2, 3] = d
        step[:, 3, 3] = 1.0
        tool = tool @ step
    return tool


def configurations(robot, count, seed=0):
    return np.random.default_rng(seed).uniform(
        robot.position_min, robot.position_max, (count, robot.n)
    )


def placed(robot, data, q, frame):
    pin.framesForwardKinematics(robot.model, data, q)
    return data.oMf[robot.model.getFrameId(frame)]


def mass_matrix(robot, q):
    upper = np.triu(pin.crba(robot.model, robot.model.createData(), q))
    return upper + np.triu(upper, 1).T


@pytest.mark.parametrize("name", ARMS)
def test_tool0_is_the_product_of_dh_transforms(name):
    robot = load_robot(name)
    q = configurations(robot, 1000)
    data = robot.model.createData()
    tool0 = np.array(
        [placed(robot, data, configuration, "tool0").homogeneous for configuration in q]
    )

    np.testing.assert_allclose(tool0, dh_tool0(name, q), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("name", ARMS)
def test_placements_multiply_to_the_dh_transforms(name):
    robot = load_robot(name)
    q = configurations(robot, 1000, seed=1)
    tool = np.broadcast_to(np.eye(4), (len(q), 4, 4))
    for i in range(robot.n):
        turn = np.tile(np.eye(4), (len(q), 1, 1))
        turn[:, 0, 0] = turn[:, 1, 1] = np.cos(q[:, i])
        turn[:, 1, 0] = np.sin(q[:, i])
        turn[:, 0, 1] = -turn[:, 1, 0]
        tool = tool @ robot.placements[i] @ turn

    np.testing.assert_allclose(tool @ robot.placements[-1], dh_tool0(name, q), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("name", ARMS)
def test_the_compiled_path_follows_the_dh_transforms(name):
    robot = load_robot(name)
    q = configurations(robot, 1000, seed=2)
    expected = dh_tool0(name, q)

    poses = tool_path(robot, q)

    np.testing.assert_allclose(poses[:, :3], expected[:, :3, 3], rtol=0.0, atol=1e-12)

    rotations = [pin.Quaternion(quaternion).toRotationMatrix() for quaternion in poses[:, 3:]]

    np.testing.assert_allclose(rotations, expected[:, :3, :3], rtol=0.0, atol=1e-12)


def test_the_model_has_every_frame():
    robot = load_robot("ur10").with_tcp(pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.1])))

    for frame in ("base_link", *(link.name for link in robot.links), "tool0", "tcp"):
        assert robot.model.existFrame(frame)
    assert robot.model.nq == robot.n == 6
    assert list(robot.model.names)[1:] == list(robot.joint_names)


def test_the_model_has_the_robots_limits():
    robot = load_robot("ur10e")

    assert np.array_equal(robot.model.lowerPositionLimit, robot.position_min)
    assert np.array_equal(robot.model.upperPositionLimit, robot.position_max)
    assert np.array_equal(robot.model.upperVelocityLimit, robot.max_velocity)
    assert np.array_equal(robot.model.upperEffortLimit, robot.max_effort)


def test_the_tcp_is_given_in_tool0():
    offset = pin.SE3(pin.rpy.rpyToMatrix(0.3, -0.2, 1.0), np.array([0.01, -0.02, 0.15]))
    bare = load_robot("ur10")
    robot = bare.with_tcp(offset)
    for q in configurations(robot, 20):
        tool0 = placed(bare, bare.model.createData(), q, "tool0")

        tcp = placed(robot, robot.model.createData(), q, "tcp")

        np.testing.assert_allclose(tcp.homogeneous, (tool0 * offset).homogeneous, atol=1e-12)
        np.testing.assert_allclose(tool_path(robot, [q])[0, :3], tcp.translation, atol=1e-12)


@pytest.mark.slow
@few_examples(15)
@given(st.floats(0.0, 20.0), st.integers(0, 2**32 - 1))
def test_a_payload_is_a_point_mass(mass, seed):
    bare = load_robot("ur10").with_tcp(pin.SE3(np.eye(3), np.array([0.05, 0.0, 0.2])))
    robot = bare.with_payload(mass)
    q = configurations(robot, 1, seed)[0]
    data = bare.model.createData()
    frame = bare.model.getFrameId("tcp")
    jacobian = pin.computeFrameJacobian(bare.model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)[:3]

    np.testing.assert_allclose(
        mass_matrix(robot, q),
        mass_matrix(bare, q) + mass * jacobian.T @ jacobian,
        rtol=1e-12,
        atol=1e-12,
    )


@pytest.mark.slow
@few_examples(15)
@given(st.floats(0.1, 20.0), st.integers(0, 2**32 - 1))
def test_an_offset_payload_acts_at_its_centre(mass, seed):
    """It adds its weight, mapped to the joints by the Jacobian of a frame at its centre."""
    rng = np.random.default_rng(seed)
    centre = rng.uniform(-0.2, 0.2, 3)
    gravity = rng.uniform(-10.0, 10.0, 3)
    bare = load_robot("ur10").with_tcp(pin.SE3(np.eye(3), centre)).with_gravity(gravity)
    loaded = load_robot("ur10").with_payload(mass, cog=centre).with_gravity(gravity)
    q = configurations(bare, 1, seed)[0]
    torques = [
        pin.computeGeneralizedGravity(robot.model, robot.model.createData(), q)
        for robot in (bare, loaded)
    ]
    data = bare.model.createData()
    frame = bare.model.getFrameId("tcp")
    jacobian = pin.computeFrameJacobian(bare.model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)[:3]

    np.testing.assert_allclose(
        torques[1] - torques[0], -jacobian.T @ (mass * gravity), rtol=1e-9, atol=1e-9
    )


def test_reversed_gravity_reverses_every_torque():
    robot = load_robot("ur10")
    hanging = robot.with_gravity([0.0, 0.0, 9.81])
    q = configurations(robot, 1)[0]
    up, down = (
        pin.computeGeneralizedGravity(arm.model, arm.model.createData(), q)
        for arm in (hanging, robot)
    )

    np.testing.assert_array_equal(up, -down)
    assert robot.gravity.tolist() == [0.0, 0.0, -9.81]


@pytest.mark.parametrize("vector", [(0.0, 0.0), (0.0, 0.0, float("nan"))])
def test_gravity_and_centre_of_gravity_must_be_vectors(vector):
    with pytest.raises(InvalidParameter, match="gravity"):
        load_robot("ur10").with_gravity(vector)

    with pytest.raises(InvalidParameter, match="payload's centre"):
        load_robot("ur10").with_payload(1.0, cog=vector)


@pytest.mark.parametrize("mass", [-0.1, float("nan"), float("inf")])
def test_an_invalid_payload_is_refused(mass):
    with pytest.raises(InvalidParameter, match="payload"):
        load_robot("ur10").with_payload(mass)


def test_no_posture_reaches_further_than_the_reach():
    robot = load_robot("ur10")
    shoulder = np.zeros(3)
    farthest = np.linalg.norm(
        tool_path(robot, configurations(robot, 5000))[:, :3] - shoulder, axis=1
    ).max()

    assert 0.8 * robot.arm_length < farthest <= robot.arm_length


def test_the_checksum_depends_on_the_kinematics_only():
    robot = load_robot("ur10")

    assert robot.checksum == load_robot("ur10").checksum == robot.with_payload(3.0).checksum
    assert robot.checksum == robot.with_gravity([0.0, 0.0, 9.81]).checksum
    assert robot.checksum != load_robot("ur10e").checksum
    assert robot.checksum != robot.with_tcp(pin.SE3(np.eye(3), np.array([0.0, 0.0, 1e-6]))).checksum


def test_arrays_of_a_robot_are_read_only():
    robot = load_robot("ur10")
    for array in (
        robot.home,
        robot.placements,
        robot.prismatic,
        robot.position_min,
        robot.position_max,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    for array in (robot.max_velocity, robot.max_effort):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


ROBOT = load_robot("ur10e")


def limits(**changes):
    """Wide limits except for the changes."""
    wide = {
        "position_min": -9.0,
        "position_max": 9.0,
        "max_velocity": 9.0,
        "max_acceleration": 40.0,
    }
    return JointLimits(
        **{name: np.array(changes.get(name, [value] * 6)) for name, value in wide.items()}
    )


def test_wider_limits_change_nothing() -> None:
    arm = ROBOT.with_limits(limits())

    assert arm.joints == ROBOT.joints
    assert arm.max_acceleration == ROBOT.max_acceleration
    assert arm.checksum == ROBOT.checksum


def test_the_narrower_of_each_limit_applies() -> None:
    low = [-2.0, -9.0, -9.0, -9.0, -9.0, -9.0]
    high = [9.0, 9.0, 2.5, 9.0, 9.0, 9.0]
    reported = limits(
        position_min=low, position_max=high, max_velocity=[9.0, 9.0, 9.0, 1.0, 9.0, 9.0]
    )

    arm = ROBOT.with_limits(reported)

    assert np.array_equal(arm.position_min, np.maximum(ROBOT.position_min, low))
    assert np.array_equal(arm.position_max, np.minimum(ROBOT.position_max, high))
    assert np.array_equal(arm.max_velocity, np.minimum(ROBOT.max_velocity, reported.max_velocity))
    assert arm.position_min[0] == -2.0
    assert arm.position_max[2] == 2.5
    assert arm.max_velocity[3] == 1.0


def test_the_smallest_acceleration_is_planned_with() -> None:
    arm = ROBOT.with_limits(limits(max_acceleration=[40.0, 40.0, 15.0, 40.0, 14.0, 40.0]))

    assert arm.max_acceleration == 14.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"position_max": [9.0, -1.5, 9.0, 9.0, 9.0, 9.0]}, "range of shoulder_lift_joint"),
        ({"position_min": [9.0] * 6}, "range of shoulder_pan_joint"),
        ({"max_velocity": [9.0, 9.0, 9.0, 9.0, 0.0, 9.0]}, "speed limit of wrist_2_joint"),
        ({"max_acceleration": [0.0] * 6}, "acceleration limit"),
    ],
)
def test_limits_without_motion_name_the_joint(changes, words) -> None:
    with pytest.raises(InvalidParameter, match=words):
        ROBOT.with_limits(limits(**changes))


def test_limits_of_another_number_of_joints_are_refused() -> None:
    seven = np.full(7, 9.0)

    with pytest.raises(InvalidParameter, match="7 joints"):
        ROBOT.with_limits(JointLimits(-seven, seven, seven, seven))
