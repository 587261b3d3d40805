"""A user's URDF against pinocchio's own parser."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge import load_robot
from simbridge.errors import InvalidHome
from simbridge.robot.kinematics import tool_path
from simbridge.robot.urdf_reader import DEFAULT_PERIOD, read_urdf
from tests.properties import few_examples

URDF = Path(__file__).parents[1] / "data" / "urdf"


def full(upper):
    return np.triu(upper) + np.triu(upper, 1).T


def assert_same_arm(robot, text, tip="tool0", base="base_link", samples=20, within=1e-9):
    """FK of the tip and of every moving link, and the mass matrix, as pinocchio reads the same text."""
    oracle = pin.buildModelFromXML(text)
    assert list(oracle.names)[1:] == list(robot.joint_names)
    data, ours = oracle.createData(), robot.model.createData()
    frames = [(tip, "tool0"), *((link.name, link.name) for link in robot.links)]
    for turns in np.random.default_rng(3).uniform(-2.0, 2.0, (samples, robot.n)):
        # A continuous joint has two coordinates there: integrate from neutral.
        q = pin.integrate(oracle, pin.neutral(oracle), turns)
        pin.framesForwardKinematics(oracle, data, q)
        pin.framesForwardKinematics(robot.model, ours, turns)
        root = data.oMf[oracle.getFrameId(base)]
        for theirs, own in frames:
            expected = root.actInv(data.oMf[oracle.getFrameId(theirs)])
            found = ours.oMf[
                robot.model.getFrameId(
                    own, pin.FrameType.BODY if own != "tool0" else pin.FrameType.OP_FRAME
                )
            ]
            np.testing.assert_allclose(
                found.homogeneous, expected.homogeneous, rtol=0.0, atol=within
            )
        expected = full(pin.crba(oracle, data, q))
        np.testing.assert_allclose(
            full(pin.crba(robot.model, ours, turns)), expected, rtol=0.0, atol=within
        )


@pytest.mark.parametrize(
    ("file", "base", "tip", "within"),
    [
        # The reader snaps an angle of ten digits to the right angle.
        ("ur10_from_ros.urdf", "base_link", "tool0", 1e-8),
        ("odd_axes.urdf", "base_link", "hand", 1e-9),
        ("gripper.urdf", "pedestal", "tool0", 1e-9),
    ],
)
def test_tool_links_and_mass_matrix_are_what_pinocchio_reads(file, base, tip, within):
    assert_same_arm(
        read_urdf(URDF / file), (URDF / file).read_text(encoding="utf-8"), tip, base, within=within
    )


def test_right_angles_of_ten_digits_are_right_angles(tmp_path):
    rounded = (URDF / "ur10_from_ros.urdf").read_text(encoding="utf-8")
    exact = rounded.replace("1.570796327", repr(np.pi / 2))
    assert exact != rounded
    assert_same_arm(read_urdf(URDF / "ur10_from_ros.urdf"), exact)


def test_the_ur10_of_the_ros_descriptions_is_the_ur10_of_robots():
    described, own = read_urdf(URDF / "ur10_from_ros.urdf"), load_robot("ur10")
    assert described.joint_names == own.joint_names
    q = np.random.default_rng(5).uniform(-np.pi, np.pi, (100, 6))
    np.testing.assert_allclose(tool_path(described, q), tool_path(own, q), rtol=0.0, atol=1e-9)
    for posture in q:
        a, b = (
            full(pin.crba(arm.model, arm.model.createData(), posture)) for arm in (described, own)
        )
        np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-9)
    for name in ("position_min", "position_max", "max_velocity", "max_effort"):
        assert np.array_equal(getattr(described, name), getattr(own, name))


def test_joint_kinds_and_limits_are_read():
    robot = read_urdf(URDF / "odd_axes.urdf")
    assert list(robot.prismatic) == [False, False, True, False, False]
    assert list(robot.position_min) == [-np.inf, -2.0, -0.1, -3.0, -6.28]
    assert list(robot.position_max) == [np.inf, 1.0, 0.4, 3.0, 6.28]
    assert list(robot.max_velocity) == [1.5, 2.0, 0.5, 3.0, 3.0]
    assert list(robot.max_effort) == [80.0, 60.0, 200.0, 20.0, 10.0]


def test_home_is_the_middle_of_every_range_unless_given():
    assert list(read_urdf(URDF / "odd_axes.urdf").home) == [
        0.0,
        -0.5,
        pytest.approx(0.15),
        0.0,
        0.0,
    ]
    given_home = [1.0, -1.0, 0.2, 0.5, -0.5]
    assert list(load_robot(URDF / "odd_axes.urdf", home=given_home).home) == given_home


def test_a_urdf_robot_is_named_after_its_file_and_titled_by_its_name():
    robot = read_urdf(URDF / "gripper.urdf")
    assert (robot.name, robot.title, robot.series) == ("gripper", "Arm with gripper", "")
    assert robot.period == DEFAULT_PERIOD
    assert robot.source == URDF / "gripper.urdf"


def test_fixed_links_add_their_mass_to_their_parent():
    upper, lower = read_urdf(URDF / "gripper.urdf").links
    assert upper.inertia.mass == pytest.approx(5.0 + 0.25)
    assert lower.inertia.mass == pytest.approx(2.0 + 0.9 + 0.1)


def test_visual_geometry_is_drawn_and_collision_geometry_is_checked():
    robot = read_urdf(URDF / "gripper.urdf")
    ball, upper = robot.links[0].shapes
    assert (ball.radius, ball.drawn, ball.solid) == (9.0, True, False)
    assert (upper.drawn, upper.solid) == (False, True)
    assert (upper.kind, upper.radius) == ("cylinder", 0.05)
    np.testing.assert_allclose(
        [upper.start, upper.end], [[0.0, 0.0, 0.0], [0.4, 0.0, 0.0]], atol=1e-12
    )
    kinds = [shape.kind for shape in robot.links[1].shapes]
    assert kinds == ["capsule"] * 3
    assert all(shape.solid and shape.drawn for shape in robot.links[1].shapes)


def test_a_box_counts_as_the_capsule_that_encloses_it():
    (pedestal,) = read_urdf(URDF / "gripper.urdf").base_shapes
    corners = np.array([[x, y, z] for x in (-0.15, 0.15) for y in (-0.1, 0.1) for z in (0.0, 0.3)])
    start, end = np.array(pedestal.start), np.array(pedestal.end)
    along = (end - start) / np.linalg.norm(end - start)
    nearest = (
        start
        + np.clip((corners - start) @ along, 0.0, np.linalg.norm(end - start))[:, None] * along
    )
    assert np.linalg.norm(corners - nearest, axis=1).max() <= pedestal.radius + 1e-12


def test_shapes_of_fixed_links_follow_their_parent():
    robot = read_urdf(URDF / "gripper.urdf")
    finger = robot.links[1].shapes[-1]
    oracle = pin.buildModelFromXML((URDF / "gripper.urdf").read_text(encoding="utf-8"))
    data = oracle.createData()
    pin.framesForwardKinematics(oracle, data, np.array([1.0, 0.5]))
    expected = data.oMf[oracle.getFrameId("left_finger")].translation
    ours = robot.model.createData()
    pin.framesForwardKinematics(robot.model, ours, np.array([1.0, 0.5]))
    assert finger.start == finger.end and finger.radius == 0.02
    np.testing.assert_allclose(
        ours.oMf[robot.model.getFrameId("lower")].act(np.array(finger.start)), expected, atol=1e-12
    )


def test_a_link_tool0_that_moves_by_itself_is_the_tool(tmp_path):
    text = """
      <robot name="r">
        <link name="base_link"/>
        <link name="tool0">
          <inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
        </link>
        <joint name="j" type="revolute">
          <parent link="base_link"/><child link="tool0"/><origin xyz="1 2 3"/><axis xyz="0 1 0"/>
          <limit lower="-1" upper="1" velocity="1" effort="1"/>
        </joint>
      </robot>"""
    path = tmp_path / "r.urdf"
    path.write_text(text, encoding="utf-8")
    robot = read_urdf(path)
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, np.zeros(1))
    np.testing.assert_allclose(
        data.oMf[robot.model.getFrameId("tool0")].homogeneous[:3, 3], [1.0, 2.0, 3.0]
    )
    assert [link.name for link in robot.links] == ["tool0_link"]
    assert pin.buildModelFromXML(robot.urdf).existFrame("tool0_link")


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path):
    text = (URDF / "odd_axes.urdf").read_text(encoding="utf-8")
    path = tmp_path / "odd_axes.urdf"
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert read_urdf(path).checksum == load_robot(URDF / "odd_axes.urdf").checksum


@pytest.mark.parametrize(
    ("home", "reason"),
    [
        ([0.0] * 4, "5 joint positions are needed, but there are 4"),
        ([0.0, 1.5, 0.0, 0.0, 0.0], "1.5 is outside of the range of minus_y, -2.0 to 1.0"),
        ([0.0, float("nan"), 0.0, 0.0, 0.0], "nan is outside of the range of minus_y"),
        ([float("inf"), 0.0, 0.0, 0.0, 0.0], "inf is outside of the range of without_axis"),
    ],
)
def test_a_home_that_no_joint_can_take_is_refused(home, reason):
    with pytest.raises(InvalidHome, match=reason):
        load_robot(URDF / "odd_axes.urdf", home=home)


# Thousandths, so that no angle is so near to a right one that the reader takes it for it.
small = st.integers(-3000, 3000).map(lambda k: k / 1000)
vectors = st.tuples(small, small, small)
axes = st.one_of(
    st.sampled_from([(1, 0, 0), (0, -1, 0), (0, 0, -1), (0, 0, 1)]), vectors.filter(any)
)
angles = st.one_of(
    vectors,
    st.sampled_from([(np.pi / 2, 0.0, 0.0), (0.0, np.pi / 2, 0.0), (np.pi, 0.0, -np.pi / 2)]),
)


def words(values):
    return " ".join(repr(float(v)) for v in values)


@st.composite
def inertials(draw):
    # Two moments and a third between their difference and their sum: a physical body.
    a, b = draw(st.integers(1, 100)) / 1000, draw(st.integers(1, 100)) / 1000
    c = abs(a - b) + (a + b - abs(a - b)) * draw(st.integers(1, 99)) / 100
    turn = pin.rpy.rpyToMatrix(*draw(vectors))
    matrix = turn @ np.diag([a, b, c]) @ turn.T
    entries = " ".join(
        f'i{"xyz"[i]}{"xyz"[j]}="{float(matrix[i, j])}"' for i in range(3) for j in range(i, 3)
    )
    mass = draw(st.integers(1, 5000)) / 1000
    return (
        f'<inertial><origin xyz="{words(draw(vectors))}" rpy="{words(draw(angles))}"/>'
        f'<mass value="{mass}"/><inertia {entries}/></inertial>'
    )


@st.composite
def serial_urdfs(draw):
    """URDF text of a chain of 1 to 8 movable joints with fixed joints between them, and its tip."""
    n = draw(st.integers(1, 8))
    moving = [*[False] * draw(st.integers(0, 1))]
    for _ in range(n):
        moving += [True, *[False] * draw(st.integers(0, 2))]
    lines = ['<robot name="random">', '<link name="base_link"/>']
    for i, moves in enumerate(moving):
        parent = f"link_{i - 1}" if i else "base_link"
        kind = draw(st.sampled_from(["revolute", "continuous", "prismatic"])) if moves else "fixed"
        inertial = draw(inertials()) if moves or draw(st.booleans()) else ""
        origin = f'<origin xyz="{words(draw(vectors))}" rpy="{words(draw(angles))}"/>'
        limit = '<limit lower="-3" upper="4" velocity="1" effort="10"/>'
        axis = f'<axis xyz="{words(draw(axes))}"/>' if draw(st.booleans()) else ""
        lines += [
            f'<link name="link_{i}">{inertial}</link>',
            f'<joint name="joint_{i:02}" type="{kind}"><parent link="{parent}"/><child link="link_{i}"/>{origin}',
            f"{axis + limit if moves else ''}</joint>",
        ]
    return "\n".join([*lines, "</robot>"]), f"link_{len(moving) - 1}"


@few_examples(30)
@given(serial_urdfs())
def test_any_serial_chain_is_read_as_pinocchio_reads_it(tmp_path_factory, urdf):
    text, tip = urdf
    path = tmp_path_factory.mktemp("urdf") / "random.urdf"
    path.write_text(text, encoding="utf-8")
    assert_same_arm(read_urdf(path), text, tip, samples=3)
