"""A cell as data.

Gravity from its mounting, its collision scene, and the same errors from Python.
"""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.errors import InvalidParameter
from simbridge.planning.options import Options
from simbridge.robot import load_robot
from simbridge.robot.cell import Cell
from simbridge.robot.obstacles import Box, CollisionScene, Plane


@pytest.mark.parametrize(
    ("mounting", "gravity"),
    [
        (None, (0.0, 0.0, -9.81)),
        ("floor", (0.0, 0.0, -9.81)),
        ("ceiling", (0.0, 0.0, 9.81)),
        ("wall", (0.0, 9.81, 0.0)),
        ((0.0, math.pi / 2.0, 0.0), (9.81, 0.0, 0.0)),
    ],
)
def test_mountings_have_the_documented_gravity(mounting, gravity):
    assert np.array_equal(Cell(mounting=mounting).gravity, gravity)


def test_the_wall_is_the_controllers_quarter_turn():
    """set_gravity([0, 9.82 sin(tilt), 9.82 cos(tilt)]) points up, in the pendant's base; ours down,
    in base_link.
    """
    tilt = math.pi / 2.0
    upwards = np.array([0.0, math.sin(tilt), math.cos(tilt)])

    base = pin.utils.rotate("z", math.pi)

    np.testing.assert_allclose(Cell(mounting="wall").gravity / 9.81, -(base @ upwards), atol=1e-12)


@given(st.tuples(*[st.floats(-3.0, 3.0)] * 3))
def test_in_the_world_frame_gravity_points_straight_down(rotation):
    in_world = pin.exp3(np.array(rotation)) @ Cell(mounting=rotation).gravity

    np.testing.assert_allclose(in_world, [0.0, 0.0, -9.81], atol=1e-7)


@pytest.mark.parametrize(
    ("floor", "height"),
    [(None, 0.0), ("none", None), (-0.8, -0.8)],
    ids=["left out", "none", "lower"],
)
def test_its_collision_scene_has_its_obstacles(floor, height):
    box = Box("a", (1.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    plane = Plane("b", (2.0, 0.0, 0.0), (-1.0, 0.0, 0.0))

    cell = Cell(floor=floor, keep_out_boxes=(box,), keep_out_planes=(plane,))

    assert cell.collision_scene == CollisionScene(height, (box,), (plane,), ())
    assert Options(cell=cell).collision_scene == cell.collision_scene


@pytest.mark.parametrize(("floor", "height"), [(None, 0.0), ("none", None), (0.3, 0.3)])
def test_the_floor_is_given_without_a_cell(floor, height):
    assert Options(floor=floor).collision_scene == CollisionScene(height)


def test_an_invalid_cell_is_refused_in_python_too():
    with pytest.raises(InvalidParameter) as caught:
        Cell(keep_out_boxes=(Box("a", (0.0, 0.0, 0.0), (1.0, -1.0, 1.0)),))

    assert caught.value.name == "keep_out_boxes[0].size"


def test_a_cell_changes_only_what_it_defines():
    robot = load_robot("ur10").with_payload(1.0).with_gravity((0.0, 0.0, -1.6))

    assert Options(cell=Cell()).equip(robot) is robot

    cell = Cell(
        tcp=(0.0, 0.0, 0.1, 0.0, 0.0, 1.0),
        payload=2.0,
        payload_cog=(0.0, 0.01, 0.02),
        mounting="wall",
    )

    arm = Options(cell=cell).equip(robot)

    np.testing.assert_allclose(arm.tcp.translation, [0.0, 0.0, 0.1])
    np.testing.assert_allclose(pin.log3(arm.tcp.rotation), [0.0, 0.0, 1.0], atol=1e-12)
    assert arm.payload == 2.0
    assert arm.payload_cog.tolist() == [0.0, 0.01, 0.02]
    assert arm.gravity.tolist() == [0.0, 9.81, 0.0]


def test_another_arms_cell_is_refused():
    with pytest.raises(InvalidParameter, match="ur10e"):
        Options(cell=Cell(robot="ur10e")).equip(load_robot("ur10"))


def test_the_host_is_the_cells():
    assert Options(cell=Cell(host="10.0.0.2")).host == "10.0.0.2"
    assert Options(cell=Cell(), host="10.0.0.3").host == "10.0.0.3"

    with pytest.raises(InvalidParameter, match=r"10\.0\.0\.2"):
        Options(cell=Cell(host="10.0.0.2"), host="10.0.0.3")
