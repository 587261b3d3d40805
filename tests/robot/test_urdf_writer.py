"""The URDF text of a robot, read by PyBullet and by pinocchio's own parser."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge import load_robot
from simbridge.backends.pybullet import import_pybullet
from simbridge.robot import Joint, Link, Robot, Shape
from tests.properties import few_examples

pytestmark = pytest.mark.slow

ARMS = ("ur10", "ur10e")
TCP = pin.SE3(pin.rpy.rpyToMatrix(0.1, 0.2, 0.3), np.array([0.01, 0.02, 0.12]))


def dressed(name, payload):
    robot = load_robot(name)
    return robot.with_tcp(TCP).with_payload(payload) if payload else robot


def configurations(robot, count):
    return np.random.default_rng(7).uniform(-np.pi, np.pi, (count, robot.n))


def mass_matrix(model, q):
    upper = np.triu(pin.crba(model, model.createData(), q))
    return upper + np.triu(upper, 1).T


def frame_pose(model, q, frame):
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    return data.oMf[model.getFrameId(frame)]


@pytest.fixture
def bullet(tmp_path):
    """PyBullet without a window, and a function that loads a robot into it."""
    pytest.importorskip("pybullet")
    b = import_pybullet()
    client = b.connect(b.DIRECT)

    def load(robot):
        path = tmp_path / "robot.urdf"
        path.write_text(robot.urdf, encoding="utf-8")
        return b.loadURDF(
            str(path), useFixedBase=True, flags=b.URDF_USE_INERTIA_FROM_FILE, physicsClientId=client
        )

    yield b, client, load
    b.disconnect(physicsClientId=client)


@pytest.mark.parametrize("payload", [0.0, 5.0])
@pytest.mark.parametrize("name", ARMS)
def test_pybullet_agrees_on_tool0_and_tcp(bullet, name, payload):
    b, client, load = bullet
    robot = dressed(name, payload)
    body = load(robot)
    links = {
        b.getJointInfo(body, i, client)[12].decode(): i for i in range(b.getNumJoints(body, client))
    }
    for q in configurations(robot, 50):
        for joint, position in enumerate(q):
            b.resetJointState(body, joint, position, physicsClientId=client)
        for frame in ("tool0", "tcp"):
            state = b.getLinkState(
                body, links[frame], computeForwardKinematics=True, physicsClientId=client
            )

            placement = pin.SE3(
                pin.Quaternion(np.array(state[5])).toRotationMatrix(), np.array(state[4])
            )

            np.testing.assert_allclose(
                placement.homogeneous,
                frame_pose(robot.model, q, frame).homogeneous,
                rtol=0.0,
                atol=1e-6,
            )


@pytest.mark.parametrize("payload", [0.0, 5.0])
@pytest.mark.parametrize("name", ARMS)
def test_pybullet_has_the_models_mass_matrix(bullet, name, payload):
    b, client, load = bullet
    robot = dressed(name, payload)
    body = load(robot)
    for q in configurations(robot, 50):
        masses = b.calculateMassMatrix(body, list(q), physicsClientId=client)

        np.testing.assert_allclose(masses, mass_matrix(robot.model, q), rtol=0.0, atol=1e-9)


def test_pybullet_finds_joints_and_limits(bullet):
    b, client, load = bullet
    robot = load_robot("ur10")
    body = load(robot)
    infos = [b.getJointInfo(body, i, client) for i in range(robot.n)]

    assert [info[1].decode() for info in infos] == list(robot.joint_names)
    np.testing.assert_allclose([info[8] for info in infos], robot.position_min)
    np.testing.assert_allclose([info[9] for info in infos], robot.position_max)
    np.testing.assert_allclose([info[10] for info in infos], robot.max_effort)
    np.testing.assert_allclose([info[11] for info in infos], robot.max_velocity)


def test_pybullet_shows_every_shape_in_its_color(bullet):
    b, client, load = bullet
    robot = load_robot("ur10")
    seen = b.getVisualShapeData(load(robot), physicsClientId=client)
    shapes = [*robot.base_shapes, *(shape for link in robot.links for shape in link.shapes)]
    # A capsule is a cylinder and two spheres.
    expected = [shape.color for shape in shapes for _ in range(3 if shape.kind == "capsule" else 1)]

    np.testing.assert_allclose([shape[7][:3] for shape in seen], expected)


@pytest.mark.parametrize("payload", [0.0, 5.0])
@pytest.mark.parametrize("name", ARMS)
def test_pinocchios_own_parser_reads_the_same_arm(name, payload):
    robot = dressed(name, payload)

    parsed = pin.buildModelFromXML(robot.urdf)

    assert list(parsed.names)[1:] == list(robot.joint_names)
    for q in configurations(robot, 50):
        for frame in ("tool0", "tcp"):
            np.testing.assert_allclose(
                frame_pose(parsed, q, frame).homogeneous,
                frame_pose(robot.model, q, frame).homogeneous,
                atol=1e-12,
            )
        np.testing.assert_allclose(
            mass_matrix(parsed, q), mass_matrix(robot.model, q), rtol=0.0, atol=1e-12
        )


def any_robot(seed, n):
    """A chain of random joints, some at the angles where roll and yaw of an rpy triple are
    ambiguous.
    """
    rng = np.random.default_rng(seed)

    def placement():
        turn = pin.exp3(rng.uniform(-3.0, 3.0, 3))
        if rng.random() < 0.5:
            turn = pin.rpy.rpyToMatrix(*rng.choice([-1.0, 0.0, 1.0, 2.0], 3) * np.pi / 2)
        return pin.SE3(turn, rng.uniform(-0.5, 0.5, 3))

    joints = []
    links = []
    for i in range(n):
        kind = "prismatic" if rng.random() < 0.3 else "revolute"
        low, high = (-np.inf, np.inf) if rng.random() < 0.3 else (-2.0, 2.0)
        joints.append(Joint(f'joint & "{i}"', kind, placement(), low, high, 1.0, 10.0))
        turn = pin.exp3(rng.uniform(-3.0, 3.0, 3))
        inertia = pin.Inertia(
            rng.uniform(0.1, 5.0),
            rng.uniform(-0.2, 0.2, 3),
            turn @ np.diag([2e-2, 3e-2, 4e-2]) @ turn.T,
        )
        shapes = (
            Shape("capsule", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.05),
            Shape("cylinder", (0, 0, 0), (0, 0.1, 0), 0.05),
        )
        links.append(Link(f"link <{i}>", placement(), inertia, shapes))
    return Robot(
        "any & all", "", "", 0.008, tuple(joints), tuple(links), (), placement(), np.zeros(n)
    )


@few_examples(20)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_any_arm_reads_back_the_same(seed, n):
    robot = any_robot(seed, n)

    parsed = pin.buildModelFromXML(robot.urdf)

    assert list(parsed.names)[1:] == list(robot.joint_names)
    for q in configurations(robot, 3):
        np.testing.assert_allclose(
            frame_pose(parsed, q, "tcp").homogeneous,
            frame_pose(robot.model, q, "tcp").homogeneous,
            atol=1e-9,
        )
        np.testing.assert_allclose(
            mass_matrix(parsed, q), mass_matrix(robot.model, q), rtol=0.0, atol=1e-9
        )


def test_an_unlimited_joint_gets_a_large_range():
    robot = load_robot("ur10")
    free = replace(
        robot,
        joints=tuple(replace(j, position_min=-np.inf, position_max=np.inf) for j in robot.joints),
    )

    parsed = pin.buildModelFromXML(free.urdf)

    assert np.all(parsed.lowerPositionLimit <= -1e5)
    assert np.all(parsed.upperPositionLimit >= 1e5)
