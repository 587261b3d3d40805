"""A home that is found for an arm whose file has none; base, tip and what is off the chain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simbridge import load_robot
from simbridge.planning.options import Options
from simbridge.resources import scenario_files
from simbridge.robot import pose
from simbridge.robot.kinematics import joint_origins, tool_path
from simbridge.robot.urdf_reader import read_urdf
from simbridge.robot.workspace import TOOL_DOWN
from simbridge.running.run_setup import prepare
from simbridge.trajectory.paper_size import paper_size
from tests.properties import variants
from tests.robot.test_urdf_reader import GOOD, INERTIAL

URDF = Path(__file__).parents[1] / "data" / "urdf"
# Those for arms of six joints, and the one that is to be refused.
OTHERS = {"elbow_singularity", "shoulder_singularity", "wrist_singularity", "past_the_edge"}


@pytest.fixture(scope="module")
def seven():
    return load_robot(URDF / "seven_joints.urdf")


@pytest.fixture(scope="module")
def ur10_from_ros():
    return load_robot(URDF / "ur10_from_ros.urdf")


@pytest.mark.shares_setup
def test_a_ur10_from_urdf_has_ur_home(ur10_from_ros):
    robot = ur10_from_ros
    tool = tool_path(robot, robot.home[None])[0]

    assert tool[:3] == pytest.approx([0.75, 0.164, 0.3], abs=1e-9)
    assert abs(tool[3:] @ TOOL_DOWN) == pytest.approx(1.0)

    origins = joint_origins(robot.placements, robot.prismatic, robot.home[None])[0]

    # The elbow is above the line from the shoulder to the wrist.
    assert origins[2, 2] > 0.5 * (origins[1, 2] + origins[3, 2])


@pytest.mark.shares_setup
@pytest.mark.slow
@pytest.mark.parametrize(("arm", "scale"), [("seven", 0.5), ("ur10_from_ros", 1.0)])
def test_a_found_home_places_the_paths(request, arm, scale):
    robot = request.getfixturevalue(arm)
    size = paper_size(robot)
    tool = tool_path(robot, robot.home[None])[0]

    assert size.scale == scale
    assert tool[:3] == pytest.approx(size.centre, abs=1e-3)
    assert abs(tool[3:] @ size.orientation) == pytest.approx(1.0, abs=1e-6)
    assert pose.rotate(tool[3:], [0.0, 0.0, 1.0]) == pytest.approx([0.0, 0.0, -1.0], abs=1e-3)


@pytest.mark.shares_setup
@pytest.mark.slow
def test_a_note_names_the_home_that_was_found(seven):
    flag = seven.notes[-1].partition("--home ")[2].partition(". ")[0]

    assert [float(q) for q in flag.split()] == pytest.approx(seven.home.tolist(), abs=1e-3)


# test_a_given_home_moves_no_scenario finds the same workspace again.
@pytest.mark.soak
def test_the_search_repeats_itself(seven):
    again = load_robot(URDF / "seven_joints.urdf")

    assert np.array_equal(again.home, seven.home)
    assert again.workspace == seven.workspace


@pytest.mark.shares_setup
@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario",
    variants(
        sorted(set(scenario_files()) - OTHERS - {"square_corners", "lissajous"}),
        "pick_and_place",
        "step",
    ),
)
def test_every_scenario_fits_a_seven_joint_arm(seven, scenario):
    prepared = prepare(scenario, robot=seven, options=Options(on_limits="limit"))

    assert prepared.plan.samples > 1


@pytest.mark.shares_setup
@pytest.mark.slow
def test_a_given_home_moves_no_scenario(seven):
    home = seven.home + 0.1

    reloaded = load_robot(URDF / "seven_joints.urdf", home=home)

    assert reloaded.home == pytest.approx(home)
    assert reloaded.workspace == seven.workspace
    # Nor is it said that another home is used.
    assert reloaded.notes[-1].startswith("Built-in scenarios are scaled to ")


def test_gravity_follows_a_tilted_base(tmp_path):
    path = tmp_path / "wall.urdf"
    wall = (
        '<link name="wall"/><joint name="m" type="fixed"><parent link="wall"/>'
        '<child link="base_link"/>'
    )
    path.write_text(
        GOOD.replace("</robot>", f'{wall}<origin rpy="0 1.5707963267948966 0"/></joint></robot>')
    )

    robot = read_urdf(path)

    # The base's x axis points down, along the root's -z.
    assert robot.gravity == pytest.approx([9.81, 0.0, 0.0], abs=1e-9)
    assert "tilted" in robot.notes[-1]


def test_base_and_tip_cut_out_an_arm(tmp_path):
    path = tmp_path / "two.urdf"
    finger = (
        f'<link name="finger">{INERTIAL}</link><joint name="grip" type="prismatic">'
        '<parent link="tool0"/>'
        '<child link="finger"/><axis xyz="0 1 0"/>'
        '<limit lower="0.01" upper="0.04" velocity="1" effort="1"/></joint>'
        f'<link name="other">{INERTIAL}</link><joint name="follower" type="prismatic">'
        '<parent link="tool0"/>'
        '<child link="other"/><axis xyz="0 1 0"/>'
        '<limit lower="0" upper="1" velocity="1" effort="1"/>'
        '<mimic joint="grip" multiplier="-2" offset="0.005"/></joint></robot>'
    )
    path.write_text(GOOD.replace("</robot>", finger))

    whole = read_urdf(path)

    assert "grip at 0.01 m and follower at -0.015 m (mimics grip)" in whole.notes[0]
    assert whole.joint_names == ("shoulder", "elbow")
    assert whole.links[-1].inertia.mass == pytest.approx(3.0)

    upper = read_urdf(path, tip="upper")

    assert upper.joint_names == ("shoulder",)
    assert "elbow at 0 rad" in upper.notes[0]

    lower = read_urdf(path, base="upper", tip="finger")

    assert lower.joint_names == ("elbow", "grip")


@pytest.mark.slow
def test_an_arm_may_keep_its_orientation(scara):
    robot = load_robot(scara)

    assert robot.task == "pose"
    assert robot.workspace is not None
    assert pose.rotate(robot.workspace.orientation, [0.0, 0.0, 1.0]) == pytest.approx(
        [0.0, 0.0, 1.0]
    )
    assert prepare("circle", robot=robot).plan.samples > 1
