"""The experiments on arms other than the paper's.

They are a user's URDF, and the flags for its home, tool and task.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from simbridge.errors import TargetOutOfReach
from simbridge.experiments import InterpolationParameters
from simbridge.experiments.arm import MIN_DEXTERITY, choose_arm, dexterity, within_limits
from simbridge.experiments.layout import _make_layout_error, choose_layout, step_target
from simbridge.ik.closed_form import ClosedForm
from simbridge.resources import robot_files
from simbridge.robot.kinematics import tool_path
from simbridge.robot.load import load_robot
from simbridge.trajectory import TOOL_DOWN, corners, paper_size
from tests.experiments.pinocchio_following import follow
from tests.properties import variants

pytestmark = pytest.mark.slow

URDFS = Path(__file__).parents[1] / "data" / "urdf"
SEVEN, ODD, FLAT = (str(URDFS / f"{name}.urdf") for name in ("seven_joints", "odd_axes", "gripper"))


def joint(number, kind, place, limits):
    parent = f"link_{number - 1}" if number > 1 else "base_link"
    return f"""
  <link name="link_{number}">
    <inertial>
      <mass value="1"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/>
    </inertial>
  </link>
  <joint name="joint_{number}" type="{kind}">
    <parent link="{parent}"/><child link="link_{number}"/>
    <origin xyz="{place}"/><axis xyz="0 0 1"/>
    <limit lower="{-limits}" upper="{limits}" velocity="2" effort="100"/>
  </joint>"""


@pytest.fixture
def scara(tmp_path):
    """An arm whose tool always points up.

    It has two links in the plane, a sliding joint, and a rotating one.
    """
    joints = [("revolute", "0 0 0.4", 2.5), ("revolute", "0.4 0 0", 2.5)]
    joints += [("prismatic", "0.3 0 0", 0.2), ("revolute", "0 0 0", 3.0)]
    text = "".join(joint(number, *facts) for number, facts in enumerate(joints, start=1))
    path = tmp_path / "scara.urdf"
    path.write_text(f'<robot name="scara">\n  <link name="base_link"/>{text}\n</robot>\n')
    return str(path)


def assert_corners_within_reach(robot, place):
    """Assert that every corner is within the joint limits, by pinocchio."""
    targets = corners(place.side, place.centre, orientation=place.orientation).poses[:4]
    joints, errors = follow(robot, targets, robot.home, tolerance=5e-9)

    assert errors.max() < 5e-9
    assert within_limits(robot, joints)


@pytest.mark.parametrize("name", robot_files())
def test_the_arms_in_robots_use_the_papers_layout(name):
    chosen = choose_arm(InterpolationParameters(robot=name))
    size = paper_size(chosen.robot)
    layout = choose_layout(chosen.robot)

    assert (chosen.notes, layout.note, step_target(chosen.robot)[1]) == ((), "", "")
    assert chosen.robot.file_home is None
    assert (layout.scale, *layout.centre) == (size.scale, *size.centre)


def test_an_upright_arm_begins_in_another_posture():
    chosen = choose_arm(InterpolationParameters(robot=SEVEN))
    robot = chosen.robot
    layout = choose_layout(chosen.robot)
    middle = 0.5 * (robot.position_min + robot.position_max)

    assert (
        dexterity(robot, middle[None])[0]
        < 1e-9
        < MIN_DEXTERITY
        <= dexterity(robot, robot.home[None])[0]
    )
    (note,) = chosen.as_data()["notes"]
    assert note.startswith("The file defines no home posture")
    assert "--home" in note
    assert layout.side > 0.1
    assert_corners_within_reach(robot, layout)


def test_a_urdf_follows_the_papers_square():
    robot = choose_arm(InterpolationParameters(robot=str(URDFS / "ur10_from_ros.urdf"))).robot
    layout = choose_layout(robot)

    assert (layout.note, layout.scale, *layout.orientation) == ("", 1.0, *TOOL_DOWN)
    assert tool_path(robot, robot.home[None])[0, :3] == pytest.approx(layout.centre, abs=1e-6)


def test_a_tool_keeps_its_only_orientation(scara):
    robot = choose_arm(InterpolationParameters(robot=scara)).robot
    layout = choose_layout(robot)

    assert robot.task == "pose"
    assert abs(layout.orientation @ tool_path(robot, robot.home[None])[0, 3:]) == pytest.approx(1.0)
    assert abs(layout.orientation @ TOOL_DOWN) < 0.1
    assert layout.side > 0.1
    assert_corners_within_reach(robot, layout)


def test_few_joints_get_a_controllable_task():
    chosen = choose_arm(InterpolationParameters(robot=ODD))

    assert chosen.robot.task == "position"
    assert "can follow only part of each target: the position alone" in chosen.robot.notes[0]
    assert_corners_within_reach(chosen.robot, choose_layout(chosen.robot))


def test_a_task_beyond_the_joints_is_refused():
    asked = InterpolationParameters(robot="planar2r", task="pose", home=(0.3, 0.9))

    with pytest.raises(TargetOutOfReach, match="--task axis or position"):
        choose_layout(choose_arm(asked).robot)


def test_only_controllable_tasks_are_advised():
    robot = replace(load_robot(ODD, home=[0.0] * 5), task="pose")
    home = tool_path(robot, robot.home[None])[0]

    error = _make_layout_error(robot, home, "follow a square", slice(2))

    # Its joints cannot control the axis and the position at a time.
    assert "Require less with --task position." in str(error)


@pytest.mark.parametrize("name", variants(["interpolation", "tracking"], "interpolation"))
def test_a_custom_arms_start_is_reported(cli, tmp_path, without_plots, name):
    few = {"interpolation": ("--steps", "20"), "tracking": ("--kp", "50")}
    only = ("--solver", "forward-dynamics", *few[name])
    answer = cli("experiment", name, "--robot", SEVEN, *only, "--out", tmp_path / "out")

    assert answer.status == 0, answer.message

    written = json.loads((tmp_path / "out" / "results.json").read_text())
    assert "The file defines no home posture" in written["arm"]["notes"][0]
    assert len(written["arm"]["home"]) == 7
    assert written["square"]["scale"] > 0.25


# Plots of the paper's arm in test_an_experiment_leaves_tables_and_plots.
@pytest.mark.soak
def test_a_custom_arm_has_plots_of_its_convergence(cli, tmp_path):
    only = ("--solver", "forward-dynamics")
    answer = cli("experiment", "convergence", "--robot", SEVEN, *only, "--out", tmp_path / "out")

    assert answer.status == 0, answer.message
    written = json.loads((tmp_path / "out" / "results.json").read_text())
    assert "The file defines no home posture" in written["arm"]["notes"][0]
    assert (tmp_path / "out" / "convergence.png").is_file()


def test_an_arm_without_a_square_is_refused(cli, tmp_path):
    refused = cli("experiment", "tracking", "--robot", FLAT, "--out", tmp_path / "out")

    assert refused.status == 2
    assert "cannot move its tool in all the directions that this needs" in refused.message


def test_a_singular_home_is_reported(cli, tmp_path, without_plots):
    home = [0.1, -1.2, 1.6, -1.9, -1.5, 0.3]
    answer = cli("experiment", "convergence", "--home", *home, "--out", tmp_path / "out", "--json")

    written = json.loads(answer.out)

    assert written["arm"] == {"task": "pose", "home": home, "notes": []}
    assert written["expected"] == []

    stretched = choose_arm(InterpolationParameters(home=(0.0, -1.5, 0.0, 0.0, 0.0, 0.0)))
    assert "singular" in stretched.notes[0]
    assert stretched.robot.home.tolist() == [0.0, -1.5, 0.0, 0.0, 0.0, 0.0]


def test_link_lengths_tool_and_task_follow_the_flags():
    robot = choose_arm(
        InterpolationParameters(
            robot="planar2r", link_lengths=(0.3, 0.2), tcp=(0.1, 0.0, 0.0, 0.0, 0.0, 0.0)
        )
    ).robot

    assert robot.arm_length == pytest.approx(0.6)
    assert choose_layout(robot).side == pytest.approx(0.4 * paper_size(robot).scale)
    assert choose_arm(InterpolationParameters(task="axis")).robot.task == "axis"


def test_a_long_tool_gets_its_own_square():
    robot = choose_arm(InterpolationParameters(tcp=(0.0, 0.0, 0.9, 0.0, 0.0, 0.0))).robot
    layout = choose_layout(robot)

    assert layout.centre == pytest.approx(tool_path(robot, robot.home[None])[0, :3])

    targets = corners(layout.side, layout.centre, orientation=layout.orientation).poses
    assert all(len(ClosedForm(robot).branches(target)) for target in targets)
