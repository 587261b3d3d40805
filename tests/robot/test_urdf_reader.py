"""A user's URDF against pinocchio's own parser."""

# A case a line, however long.
# ruff: noqa: E501
from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge import load_robot
from simbridge.errors import InputFileError, InvalidHome
from simbridge.robot.kinematics import tool_path
from simbridge.robot.urdf_reader import DEFAULT_PERIOD, read_urdf
from tests.properties import few_examples

URDF = Path(__file__).parents[1] / "data" / "urdf"


def full(upper):
    return np.triu(upper) + np.triu(upper, 1).T


def assert_same_arm(robot, text, tip="tool0", base="base_link", samples=20, within=1e-9):
    """FK of the tip and of every moving link, and the mass matrix, as pinocchio reads the same
    text.
    """
    oracle = pin.buildModelFromXML(text)
    assert list(oracle.names)[1:] == list(robot.joint_names)
    data = oracle.createData()
    ours = robot.model.createData()
    frames = [(tip, "tool0"), *((link.name, link.name) for link in robot.links)]
    for turns in np.random.default_rng(3).uniform(-2.0, 2.0, (samples, robot.n)):
        # A continuous joint has two coordinates there: integrate from neutral.
        q = pin.integrate(oracle, pin.neutral(oracle), turns)
        pin.framesForwardKinematics(oracle, data, q)
        pin.framesForwardKinematics(robot.model, ours, turns)
        root = data.oMf[oracle.getFrameId(base)]
        for their_name, our_name in frames:
            expected = root.actInv(data.oMf[oracle.getFrameId(their_name)])
            placement = ours.oMf[
                robot.model.getFrameId(
                    our_name, pin.FrameType.BODY if our_name != "tool0" else pin.FrameType.OP_FRAME
                )
            ]
            np.testing.assert_allclose(
                placement.homogeneous, expected.homogeneous, rtol=0.0, atol=within
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
def test_links_and_masses_are_pinocchios(file, base, tip, within):
    assert_same_arm(
        read_urdf(URDF / file), (URDF / file).read_text(encoding="utf-8"), tip, base, within=within
    )


def test_right_angles_of_ten_digits_are_right_angles(tmp_path):
    rounded = (URDF / "ur10_from_ros.urdf").read_text(encoding="utf-8")
    exact = rounded.replace("1.570796327", repr(np.pi / 2))

    assert exact != rounded
    assert_same_arm(read_urdf(URDF / "ur10_from_ros.urdf"), exact)


def test_the_ros_ur10_is_ours():
    described = read_urdf(URDF / "ur10_from_ros.urdf")

    nominal = load_robot("ur10")

    assert described.joint_names == nominal.joint_names

    q = np.random.default_rng(5).uniform(-np.pi, np.pi, (100, 6))

    np.testing.assert_allclose(tool_path(described, q), tool_path(nominal, q), rtol=0.0, atol=1e-9)

    for posture in q:
        a, b = (
            full(pin.crba(arm.model, arm.model.createData(), posture))
            for arm in (described, nominal)
        )

        np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-9)

    for name in ("position_min", "position_max", "max_velocity", "max_effort"):
        assert np.array_equal(getattr(described, name), getattr(nominal, name))


def test_joint_kinds_and_limits_are_read():
    robot = read_urdf(URDF / "odd_axes.urdf")

    assert list(robot.prismatic) == [False, False, True, False, False]
    assert list(robot.position_min) == [-np.inf, -2.0, -0.1, -3.0, -6.28]
    assert list(robot.position_max) == [np.inf, 1.0, 0.4, 3.0, 6.28]
    assert list(robot.max_velocity) == [1.5, 2.0, 0.5, 3.0, 3.0]
    assert list(robot.max_effort) == [80.0, 60.0, 200.0, 20.0, 10.0]


@pytest.fixture
def without_search(monkeypatch):
    """No better home is searched for, which takes most of the time that reading a robot takes."""
    monkeypatch.setattr("simbridge.robot.load.with_found_home", lambda arm, **_: arm)


def test_home_is_the_middle_by_default(without_search):
    assert list(read_urdf(URDF / "odd_axes.urdf").home) == [
        0.0,
        -0.5,
        pytest.approx(0.15),
        0.0,
        0.0,
    ]

    given_home = [1.0, -1.0, 0.2, 0.5, -0.5]

    assert list(load_robot(URDF / "odd_axes.urdf", home=given_home).home) == given_home


def test_a_urdf_is_named_after_its_file():
    robot = read_urdf(URDF / "gripper.urdf")

    assert robot.name == "gripper"
    assert robot.title == "Arm with gripper"
    assert robot.series == ""
    assert robot.period == DEFAULT_PERIOD
    assert robot.source == URDF / "gripper.urdf"


def test_fixed_links_add_their_mass_to_their_parent():
    upper, lower = read_urdf(URDF / "gripper.urdf").links

    assert upper.inertia.mass == pytest.approx(5.0 + 0.25)
    assert lower.inertia.mass == pytest.approx(2.0 + 0.9 + 0.1)


def test_visuals_are_drawn_and_collisions_checked():
    robot = read_urdf(URDF / "gripper.urdf")
    ball, upper = robot.links[0].shapes

    assert ball.radius == 9.0
    assert ball.drawn
    assert not ball.solid
    assert not upper.drawn
    assert upper.solid
    assert upper.kind == "cylinder"
    assert upper.radius == 0.05
    np.testing.assert_allclose(
        [upper.start, upper.end], [[0.0, 0.0, 0.0], [0.4, 0.0, 0.0]], atol=1e-12
    )

    kinds = [shape.kind for shape in robot.links[1].shapes]

    assert kinds == ["capsule"] * 3
    assert all(shape.solid and shape.drawn for shape in robot.links[1].shapes)


def test_a_box_becomes_its_enclosing_capsule():
    (pedestal,) = read_urdf(URDF / "gripper.urdf").base_shapes
    corners = np.array([[x, y, z] for x in (-0.15, 0.15) for y in (-0.1, 0.1) for z in (0.0, 0.3)])
    start = np.array(pedestal.start)
    end = np.array(pedestal.end)
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

    assert finger.start == finger.end
    assert finger.radius == 0.02
    np.testing.assert_allclose(
        ours.oMf[robot.model.getFrameId("lower")].act(np.array(finger.start)), expected, atol=1e-12
    )


def test_a_moving_tool0_is_the_tool(tmp_path):
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


def test_byte_order_marks_are_accepted(tmp_path):
    text = (URDF / "odd_axes.urdf").read_text(encoding="utf-8")
    path = tmp_path / "odd_axes.urdf"
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())

    assert read_urdf(path).checksum == read_urdf(URDF / "odd_axes.urdf").checksum


@pytest.mark.parametrize(
    ("home", "reason"),
    [
        ([0.0] * 4, "5 joint positions are needed, but 4 were given"),
        ([0.0, 1.5, 0.0, 0.0, 0.0], "1.5 is outside the range of minus_y, -2.0 to 1.0"),
        ([0.0, float("nan"), 0.0, 0.0, 0.0], "nan is outside the range of minus_y"),
        ([float("inf"), 0.0, 0.0, 0.0, 0.0], "inf is outside the range of without_axis"),
    ],
)
def test_an_impossible_home_is_refused(without_search, home, reason):
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
    a = draw(st.integers(1, 100)) / 1000
    b = draw(st.integers(1, 100)) / 1000
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


@pytest.mark.slow
@few_examples(15)
@given(serial_urdfs())
def test_any_chain_is_read_as_by_pinocchio(tmp_path_factory, urdf):
    text, tip = urdf
    path = tmp_path_factory.mktemp("urdf") / "random.urdf"
    path.write_text(text, encoding="utf-8")

    assert_same_arm(read_urdf(path), text, tip, samples=3)


INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
GOOD = f"""\
<?xml version="1.0"?>
<robot name="two_joints">
  <link name="base_link"/>
  <link name="upper">
    <collision>
      <geometry>
        <cylinder radius="0.05" length="0.4"/>
      </geometry>
    </collision>
    <inertial>
      <origin xyz="0.2 0 0" rpy="0 0 0"/>
      <mass value="3"/>
      <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"/>
    </inertial>
  </link>
  <link name="lower">
    {INERTIAL}
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="base_link"/>
    <child link="upper"/>
    <origin xyz="0 0 0.3" rpy="0 0 0"/>
    <axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" velocity="2" effort="50"/>
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="upper"/>
    <child link="lower"/>
    <axis xyz="0 1 0"/>
    <limit velocity="2.5" effort="20"/>
  </joint>
  <link name="tool0"/>
  <joint name="flange" type="fixed">
    <parent link="lower"/>
    <child link="tool0"/>
  </joint>
</robot>
"""


def with_joint(kind: str, parent: str = "base_link", link: str = "other") -> str:
    """A further link and joint, inserted before </robot>."""
    return (
        f'  <link name="{link}">{INERTIAL}</link>\n  <joint name="further" type="{kind}">'
        f'<parent link="{parent}"/><child link="{link}"/><limit lower="0" upper="1" velocity="1" effort="1"/></joint>\n</robot>'
    )


FLANGE = GOOD[GOOD.index('  <link name="tool0"/>') : GOOD.index("</robot>")]


BODY_OF_UPPER = GOOD[GOOD.index('<mass value="3"/>') : GOOD.index("    </inertial>")]
BODY_OF_NOTHING = re.sub('"[0-9.]+"', '"0"', BODY_OF_UPPER)


# What is replaced, by what; then the element that is named, the words on the line that is named,
# and the reason.
REFUSED = [
    # not XML, or another kind
    ("</robot>", "", None, None, "this is not well-formed XML: no element found"),
    ('<link name="tool0"/>', '<link name="tool0">', None, "</robot>", "this is not well-formed XML: mismatched tag"),
    ('name="upper">', 'name="upper" name="upper">', None, 'name="upper" name', "duplicate attribute"),
    ('radius="0.05"', "radius=0.05", None, "radius=0.05", "this is not well-formed XML"),
    # missing elements and attributes
    ('<joint name="elbow" ', "<joint ", "<joint> name", '<joint type="cont', "the attribute is missing"),
    (' type="continuous"', "", "<joint name='elbow'> type", 'name="elbow"', "the attribute is missing"),
    ('    <parent link="upper"/>\n', "", "<joint name='elbow'>", 'name="elbow"', "<parent> is missing"),
    ('    <child link="upper"/>\n', "", "<joint name='shoulder'>", 'name="shoulder"', "<child> is missing"),
    ('<child link="lower"/>', "<child/>", "<child> link", "<child/>", "the attribute is missing"),
    ('    <limit velocity="2.5" effort="20"/>\n', "", "<joint name='elbow'>", 'name="elbow"', "<limit> is missing, with velocity"),
    (' lower="-3"', "", "<limit> lower", "<limit", "the attribute is missing"),
    (' velocity="2.5"', "", "<limit> velocity", 'effort="20"', "the attribute is missing"),
    ('      <mass value="3"/>\n', "", "<inertial>", "<inertial>", "<mass> is missing"),
    (' izz="0.04"', "", "<inertia> izz", 'ixx="0.02"', "the attribute is missing"),
    ('radius="0.05" ', "", "<cylinder> radius", "<cylinder", "the attribute is missing"),
    ('<cylinder radius="0.05" length="0.4"/>', "", "<geometry>", "<geometry>", "it contains no shape"),
    ('      <geometry>\n', "", None, "</geometry>", "mismatched tag"),
    # words, counts, infinities
    ('value="3"', 'value="three"', "<mass> value", "three", "'three' is not a finite number"),
    ('value="3"', 'value="1 2"', "<mass> value", "1 2", "'1 2' is not a finite number"),
    ('value="3"', 'value="nan"', "<mass> value", "nan", "'nan' is not a finite number"),
    ('xyz="0 0 0.3"', 'xyz="0 0"', "<origin> xyz", 'xyz="0 0"', "'0 0' is not 3 finite numbers"),
    ('xyz="0 0 0.3"', 'xyz="0 0 x"', "<origin> xyz", "0 0 x", "'0 0 x' is not 3 finite numbers"),
    ('0.3" rpy="0 0 0"', '0.3" rpy="0 0 inf"', "<origin> rpy", "0 0 inf", "is not 3 finite numbers"),
    ('xyz="0 1 0"', 'xyz="y"', "<axis> xyz", 'xyz="y"', "'y' is not 3 finite numbers"),
    ('upper="3"', 'upper="inf"', "<limit> upper", "inf", "'inf' is not a finite number"),
    ('ixy="0" ixz="0" iyy="0.03"', 'ixy="" ixz="0" iyy="0.03"', "<inertia> ixy", 'ixy=""', "the attribute is empty"),
    # impossible numbers
    ('xyz="0 1 0"', 'xyz="0 0 0"', "<joint name='elbow'> axis", 'name="elbow"', "its axis is zero"),
    ('velocity="2.5"', 'velocity="0"', "<limit> velocity", 'velocity="0"', "does not let the joint 'elbow' move"),
    ('effort="50"', 'effort="0.0"', "<limit> effort", 'effort="0.0"', "does not let the joint 'shoulder' move"),
    ('effort="50"', 'effort="-50"', "<limit> effort", 'effort="-50"', "does not let the joint 'shoulder' move"),
    ('lower="-3"', 'lower="3"', "<limit> lower", 'lower="3"', "the lower limit 3.0 of joint 'shoulder' is not below"),
    ('value="3"', 'value="-3"', "<mass> value", 'value="-3"', "a mass of -3.0 kg"),
    (BODY_OF_UPPER, BODY_OF_NOTHING, "<link name='upper'>", 'name="upper"', "its <inertial> has neither"),
    (INERTIAL, "", "<link name='lower'>", 'name="lower"', "a link that moves needs mass and inertia"),
    ('izz="0.04"', 'izz="-4"', "<link name='upper'>", 'name="upper"', "beyond joint 'shoulder' are not physically plausible"),
    ('radius="0.05"', 'radius="0"', "<cylinder> radius", "<cylinder", "this must be positive, not 0.0"),
    ('length="0.4"', 'length="-0.4"', "<cylinder> length", "<cylinder", "this must be positive, not -0.4"),
    ('<cylinder radius="0.05" length="0.4"/>', '<sphere radius="-1"/>', "<sphere> radius", "<sphere", "must be positive"),
    ('<cylinder radius="0.05" length="0.4"/>', '<box size="1 2 0"/>', "<box> size", "<box", "must be positive, not [1.0, 2.0, 0.0]"),
    ('<cylinder radius="0.05" length="0.4"/>', "<cone/>", "<cone>", "<cone/>", "supported are box, cylinder, capsule, sphere and mesh"),
    # names
    ('<link name="base_link"/>', '<link name="base_link"/><link name="base_link"/>', "<link name='base_link'>", "base_link", "another link with this name"),
    ('name="elbow"', 'name="shoulder"', "<joint name='shoulder'>", 'name="shoulder" type="cont', "another joint with this name"),
    ('name="elbow"', 'name="tool0"', "<joint name='tool0'>", 'name="tool0" type="cont', "the name 'tool0' is reserved"),
    ('<parent link="upper"/>', '<parent link="uper"/>', "<joint name='elbow'>", 'name="elbow"', "there is no link 'uper'"),
    ('<child link="lower"/>', '<child link="hand"/>', "<joint name='elbow'>", 'name="elbow"', "there is no link 'hand'"),
    # joints that a serial arm does not have
    ('type="continuous"', 'type="floating"', "<joint name='elbow'> type", 'name="elbow"', "a joint of type 'floating'"),
    ('type="continuous"', 'type="planar"', "<joint name='elbow'> type", 'name="elbow"', "supported are revolute, continuous"),
    ('type="continuous"', 'type="hinge"', "<joint name='elbow'> type", 'name="elbow"', "a joint of type 'hinge'"),
    ('    <axis xyz="0 1 0"/>', '    <mimic joint="shoulder"/>', "<joint name='elbow'> mimic", 'name="elbow"', "mimics 'shoulder', and the joints of an arm's chain must move independently"),
    # links that are not a chain
    (FLANGE, with_joint("fixed").removesuffix("</robot>"), "<robot name='two_joints'>", "<robot", "the tree ends in 2 places (lower, other); choose one, or another link, with --tip LINK"),
    ("</robot>", '  <link name="loose"/>\n</robot>', "<link name='loose'>", "loose", "2 roots, base_link, loose"),
    ("</robot>", with_joint("fixed", "other"), "<joint name='further'>", "further", "link 'other' is its own ancestor"),
    ('<child link="tool0"/>', '<child link="upper"/>', "<joint name='flange'>", 'name="flange"', "'upper' is already the child of joint 'shoulder'"),
    ('<parent link="base_link"/>', '<parent link="tool0"/>', "<joint name='shoulder'>", 'name="shoulder"', "the joints form a loop"),
    ('<link name="base_link"/>', "", "<joint name='shoulder'>", 'name="shoulder"', "there is no link 'base_link'"),
]  # fmt: skip


def written(tmp_path, text):
    path = tmp_path / "arm.urdf"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_template_of_the_cases_is_valid(tmp_path):
    robot = load_robot(written(tmp_path, GOOD))

    assert robot.joint_names == ("shoulder", "elbow")
    assert [link.name for link in robot.links] == ["upper", "lower"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "field", "words", "reason"), REFUSED, ids=[f"{c[2]}: {c[4]}" for c in REFUSED]
)
def test_the_error_names_file_element_and_line(tmp_path, old, new, field, words, reason):
    assert old in GOOD

    text = GOOD.replace(old, new, 1)
    path = written(tmp_path, text)

    with pytest.raises(InputFileError, match=re.escape(reason)) as caught:
        load_robot(path)

    line = text.count("\n") + 1 if words is None else text[: text.index(words)].count("\n") + 1

    assert caught.value.path == path
    assert caught.value.field == field
    assert caught.value.line == line
    assert str(caught.value).startswith(f"{path}, line {line}")


@pytest.mark.parametrize("text", ["", "\n", "no xml at all", "<?xml version='1.0'?>"])
def test_a_file_without_an_element_is_refused(tmp_path, text):
    with pytest.raises(InputFileError, match="this is not well-formed XML") as caught:
        load_robot(written(tmp_path, text))

    assert caught.value.line is not None


def test_another_kind_of_xml_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="line 1, <sdf>: a URDF begins with <robot>"):
        load_robot(written(tmp_path, '<sdf version="1.7"><model name="arm"/></sdf>'))


def test_a_robot_without_links_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="line 2, <robot name='r'>: there is no <link>"):
        load_robot(written(tmp_path, "<?xml version='1.0'?>\n<robot name='r'/>"))


def test_an_arm_without_a_movable_joint_is_refused(tmp_path):
    text = GOOD.replace('type="continuous"', 'type="fixed"').replace(
        'type="revolute"', 'type="fixed"'
    )

    with pytest.raises(
        InputFileError,
        match="line 2, <robot name='two_joints'>: the chain from 'base_link' to 'tool0' has no movable",
    ):
        load_robot(written(tmp_path, text))


def test_a_single_link_is_refused(tmp_path):
    with pytest.raises(
        InputFileError, match="the chain from 'base_link' to 'base_link' has no movable joint"
    ):
        load_robot(written(tmp_path, '<robot name="r"><link name="base_link"/></robot>'))


def test_all_faults_come_in_one_refusal(tmp_path):
    text = (
        GOOD.replace(INERTIAL, "", 1)
        .replace('effort="50"', 'effort="0"')
        .replace('velocity="2.5"', 'velocity="0"')
    )

    with pytest.raises(InputFileError) as caught:
        load_robot(written(tmp_path, text))

    for words in (
        "3 errors",
        "let the joint 'shoulder' move",
        "let the joint 'elbow' move",
        "<link name='lower'>",
    ):
        assert words in str(caught.value)


def test_each_missing_number_is_reported(tmp_path):
    text = (
        GOOD.replace(' velocity="2" effort="50"', "")
        .replace('<limit velocity="2.5" effort="20"/>', "")
        .replace('<mass value="3"/>', "")
        .replace('iyy="0.03" ', "")
        .replace('xyz="0 0 0.3"', 'xyz="0 0"')
        .replace('xyz="0 1 0"', 'xyz="0 0 0"')
    )

    with pytest.raises(InputFileError) as caught:
        load_robot(written(tmp_path, text))

    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'arm.urdf'}, line 10: 7 errors. ")
    for fault in (
        "<limit> velocity: the attribute is missing",
        "<limit> effort: the attribute is missing",
        "<joint name='elbow'>: <limit> is missing",
        "<joint name='elbow'> axis: its axis is zero",
        "<inertial>: <mass> is missing",
        "<inertia> iyy: the attribute is missing",
        "<origin> xyz: '0 0' is not 3 finite numbers",
    ):
        assert fault in message


@pytest.mark.parametrize(
    ("old", "new", "fault", "missing_link"),
    [
        ('<link name="base_link"/>', "<link/>", "<link> name: the attribute is missing", "base_link"),
        ('<link name="base_link"/>', '<link name=""/>', "<link> name: the attribute is empty", "base_link"),
        ('<link name="lower">', '<link name="upper">', "<link name='upper'>: there is another link", "lower"),
    ],
)  # fmt: skip
def test_a_misnamed_link_leaves_joints_without_it(tmp_path, old, new, fault, missing_link):
    with pytest.raises(InputFileError) as caught:
        load_robot(written(tmp_path, GOOD.replace(old, new)))

    assert fault in str(caught.value)
    assert f"there is no link '{missing_link}'" in str(caught.value)


def test_broken_names_and_ends_come_together(tmp_path):
    text = (
        GOOD.replace('<parent link="upper"/>', '<parent link="uper"/>')
        .replace('<child link="upper"/>', "")
        .replace(' type="fixed"', "")
    )

    with pytest.raises(InputFileError) as caught:
        load_robot(written(tmp_path, text))

    message = str(caught.value)
    assert "3 errors" in message
    assert "<joint name='elbow'>: there is no link 'uper'" in message
    assert "<joint name='shoulder'>: <child> is missing" in message
    assert "<joint name='flange'> type: the attribute is missing" in message


def test_of_many_faults_the_first_are_described(tmp_path):
    joints = ""
    for number in range(25):
        joints += (
            f'<link name="l{number}">{INERTIAL}</link><joint name="j{number}" type="revolute">'
        )
        parent = f"l{number - 1}" if number else "base_link"
        joints += f'<parent link="{parent}"/><child link="l{number}"/></joint>'

    with pytest.raises(InputFileError, match=r"25 errors.*; and 5 more"):
        load_robot(written(tmp_path, f'<robot name="a"><link name="base_link"/>{joints}</robot>'))


def test_both_empty_limits_are_named(tmp_path):
    text = re.sub(r'(effort|velocity)="[^"]+"', r'\1="0"', GOOD)

    with pytest.raises(
        InputFileError,
        match=r"velocity and effort: a limit of 0.0 and 0.0 does not let the joint 'elbow'",
    ):
        load_robot(written(tmp_path, text))


@pytest.mark.parametrize(
    "moments",
    [
        # As in UFACTORY's xArm6 in PyBullet's own data.
        {"izz": "0.06"},
        {"izz": "40"},
        {"ixx": "-0.02"},
        dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), "1e-10"),
    ],
)
def test_an_impossible_inertia_is_used_with_a_note(tmp_path, moments):
    begin, end, rest = GOOD.partition('<inertia ixx="0.02"')
    tensor, *others = (end + rest).split("/>", 1)
    for name, value in moments.items():
        tensor = re.sub(f'{name}="[^"]*"', f'{name}="{value}"', tensor)
    text = f"{begin}{tensor}/>{others[0]}"

    robot = load_robot(written(tmp_path, text))

    (note,) = [note for note in robot.notes if "inertia tensor" in note]
    assert note.startswith("upper: no body has this inertia tensor")
    assert note.endswith("The inertia is used as it is.")
    assert_same_arm(robot, text)


@pytest.mark.parametrize(
    ("old", "new", "note"),
    [
        (
            'ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"',
            'ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"',
            "upper: its moments of inertia are all zero, as if its mass were in one point. ",
        ),
        (
            '<mass value="3"/>',
            '<mass value="0"/>',
            "upper: it has moments of inertia without a mass, which no body has. ",
        ),
    ],
)
def test_zeros_of_an_inertia_are_used_with_a_note(tmp_path, old, new, note):
    text = GOOD.replace(old, new)

    robot = load_robot(written(tmp_path, text))

    assert f"{note}The inertia is used as it is." in robot.notes
    assert_same_arm(robot, text)


def test_an_unmovable_joint_is_reported_with_other_faults(tmp_path):
    point = re.sub(r'ixx.*izz="1"', 'ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"', INERTIAL)
    text = GOOD.replace(INERTIAL, point).replace('effort="50"', 'effort="0"')

    with pytest.raises(InputFileError) as caught:
        load_robot(written(tmp_path, text))

    assert "beyond joint 'elbow' are not physically plausible" in str(caught.value)
    assert "does not let the joint 'shoulder' move" in str(caught.value)


def test_an_unclear_tool_is_reported_with_other_faults(tmp_path):
    text = GOOD.replace(FLANGE, with_joint("fixed").removesuffix("</robot>"))
    text = text.replace('effort="50"', 'effort="0"')

    with pytest.raises(InputFileError) as caught:
        load_robot(written(tmp_path, text))

    assert "the tree ends in 2 places (lower, other)" in str(caught.value)
    assert "does not let the joint 'shoulder' move" in str(caught.value)


def test_placeholders_of_a_gripper_are_one_note(tmp_path):
    placeholder = (
        '<inertial><mass value="1"/><inertia ixx="1E-10" ixy="1E-10" ixz="1E-10" '
        'iyy="1E-10" iyz="1E-10" izz="1E-10"/></inertial>'
    )
    pads = ""
    for name in ("left", "right"):
        pads += f'<link name="{name}">{placeholder}</link><joint name="to_{name}" type="fixed">'
        pads += f'<parent link="lower"/><child link="{name}"/></joint>'

    robot = load_robot(written(tmp_path, GOOD.replace("</robot>", f"{pads}</robot>")))

    (note,) = [note for note in robot.notes if "inertia tensor" in note]
    assert note.startswith("left and right: no body has this inertia tensor")
    assert robot.links[1].inertia.mass == 3.0


def test_a_point_mass_on_the_last_axis_is_refused(tmp_path):
    point = re.sub(r'ixx.*izz="1"', 'ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"', INERTIAL)

    with pytest.raises(InputFileError, match="beyond joint 'elbow' are not physically plausible"):
        load_robot(written(tmp_path, GOOD.replace(INERTIAL, point)))


def test_unknown_base_and_tip_are_named_together(tmp_path):
    with pytest.raises(InputFileError) as caught:
        load_robot(written(tmp_path, GOOD), base="bas_link", tip="too0")

    assert "no link 'bas_link' for --base; Did you mean 'base_link'?" in str(caught.value)
    assert "no link 'too0' for --tip; Did you mean 'tool0'?" in str(caught.value)


def test_a_tool0_off_the_chain_is_refused(tmp_path):
    text = GOOD.replace('<parent link="lower"/>', '<parent link="world"/>').replace(
        "</robot>",
        '<link name="world"/><joint name="up" type="fixed"><parent link="world"/><child link="base_link"/></joint></robot>',
    )

    with pytest.raises(
        InputFileError, match="no chain of joints leads from 'base_link' to 'tool0'"
    ):
        load_robot(written(tmp_path, text))


def test_fixed_links_without_mass_are_allowed_anywhere(tmp_path):
    robot = load_robot(written(tmp_path, GOOD.replace("</robot>", with_joint("fixed", "upper"))))

    assert robot.links[0].inertia.mass == 4.0


def test_unreadable_files_are_refused(tmp_path):
    with pytest.raises(InputFileError, match="file not found"):
        load_robot(tmp_path / "nowhere.urdf")

    (tmp_path / "directory.urdf").mkdir()

    with pytest.raises(InputFileError, match="this is a directory"):
        load_robot(tmp_path / "directory.urdf")

    (tmp_path / "mesh.urdf").write_bytes(b"\x89\xff\x00")

    with pytest.raises(InputFileError, match="not a text file in UTF-8"):
        load_robot(tmp_path / "mesh.urdf")


def test_a_path_without_suffix_is_a_urdf(tmp_path):
    path = tmp_path / "robot_description"
    path.write_text(GOOD, encoding="utf-8")

    assert load_robot(path).n == 2


@few_examples(25)
@given(
    st.integers(0, len(GOOD)),
    st.integers(0, 30),
    st.sampled_from(
        [
            "",
            "nan",
            "-1",
            "1e999",
            "<",
            "/>",
            "<link/>",
            '"',
            "\n",
            "base_link",
            "fixed",
            "&",
            "é",
            "\0",
        ]
    ),
)
def test_a_damaged_file_is_read_or_refused(tmp_path_factory, begin, length, junk):
    path = tmp_path_factory.getbasetemp() / "damaged.urdf"
    path.write_text(GOOD[:begin] + junk + GOOD[begin + length :], encoding="utf-8")
    try:
        robot = load_robot(path)
    except InputFileError as error:
        assert error.path == path
        assert error.line is not None or error.field is not None
    else:
        assert robot.n in (1, 2)
