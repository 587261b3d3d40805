"""--transform and --anchor place poses as pinocchio does."""

from __future__ import annotations

import json

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge import load_robot, load_scenario
from simbridge.errors import InvalidParameter
from simbridge.trajectory import Trajectory, square
from simbridge.trajectory.read_options import ReadOptions

coordinates = st.floats(-2.0, 2.0)


@st.composite
def poses(draw):
    vector = np.array([draw(coordinates) for _ in range(3)])
    turn = pin.Quaternion(pin.exp3(np.array([draw(coordinates) for _ in range(3)])))
    return np.concatenate([vector, turn.normalized().coeffs()])


def se3(values):
    return pin.SE3(
        pin.Quaternion(np.asarray(values[3:])).normalized().matrix(), np.asarray(values[:3])
    )


def same(made, expected):
    for values, wanted in zip(made.poses, expected, strict=True):
        np.testing.assert_allclose(se3(values).homogeneous, wanted.homogeneous, atol=1e-12)


@given(st.lists(poses(), min_size=1, max_size=4), poses())
def test_a_transform_premultiplies_as_pinocchio_does(given_poses, frame):
    recorded = Trajectory(np.arange(float(len(given_poses))), np.array(given_poses))
    placed = ReadOptions(transform=tuple(frame)).place(recorded, recorded.start)
    same(placed, [se3(frame) * se3(values) for values in given_poses])


@given(st.lists(poses(), min_size=1, max_size=4), poses())
def test_an_anchor_keeps_the_motion(given_poses, start):
    recorded = Trajectory(np.arange(float(len(given_poses))), np.array(given_poses))
    placed = ReadOptions(anchor="start").place(recorded, start)
    same(
        placed, [se3(start) * se3(given_poses[0]).inverse() * se3(values) for values in given_poses]
    )


def test_an_anchored_file_begins_at_home(line):
    robot = load_robot("ur10")
    model = robot.model
    data = robot.model.createData()
    pin.framesForwardKinematics(model, data, robot.home)
    start = load_scenario(line, robot, ReadOptions(anchor="start")).trajectory.start

    np.testing.assert_allclose(
        se3(start).homogeneous, data.oMf[model.getFrameId("tcp")].homogeneous, atol=1e-9
    )


def test_a_transform_flag_moves_a_file(cli, tum, tmp_path):
    file = tum(tmp_path / "square.tum", square(side=0.2, centre=(0.0, 0.0, 0.0)))
    half = np.sqrt(0.5)
    # A quarter turn about z brings x to y; then 0.7 m forwards and 0.3 m up.
    answer = cli("inspect", file, "--transform", 0.7, 0, 0.3, 0, 0, half, half, "--json")

    facts = json.loads(answer.out)

    np.testing.assert_allclose(facts["extent_min_m"], [0.6, -0.1, 0.3], atol=1e-12)
    np.testing.assert_allclose(facts["extent_max_m"], [0.8, 0.1, 0.3], atol=1e-12)


@pytest.mark.parametrize(
    "transform", [(1.0,) * 6, (0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0), (np.nan,) + (0.0,) * 5 + (1.0,)]
)
def test_an_invalid_transform_is_refused(transform):
    with pytest.raises(InvalidParameter, match="transform"):
        ReadOptions(transform=transform)


@pytest.mark.parametrize("placement", [{"frame": "base"}, {"anchor": "start"}])
def test_a_transform_together_with_another_placement_is_refused(placement):
    with pytest.raises(InvalidParameter, match="left out with"):
        ReadOptions(transform=(0.0,) * 6 + (1.0,), **placement)
