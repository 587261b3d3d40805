"""Iterations of a solver from a start to a goal, as textbooks show them."""

from __future__ import annotations

import csv
import io

import numpy as np
import pinocchio as pin
import pytest

from simbridge.browser.iterate import (
    IterateSettings,
    iterate,
    iterate_to_end,
    iterations_csv,
    single_step_solver,
    slow_in_slow_out,
)
from simbridge.browser.setup import StudioSetup
from simbridge.errors import InvalidParameter
from simbridge.robot.kinematics import tool_frame

pytestmark = pytest.mark.python_kernels

PLANAR = StudioSetup("planar3r", "damped-least-squares")
# Too much damping, and too large a gain without a largest change of the joints.
SLOW = PLANAR.with_value("solver.damping", 1.0)
WILD = StudioSetup(
    "planar3r",
    "jacobian-transpose",
    values={"solver.alpha": 20.0, "solver.step_clamp": np.inf},
)
START = np.array([-0.6, 1.4, 0.8])
GOAL = pin.SE3(np.eye(3), np.array([-0.6, 0.7, 0.0]))


def test_it_ends_within_the_threshold():
    settings = IterateSettings(threshold=1e-4)

    iterates = list(iterate(single_step_solver(PLANAR), START, GOAL, settings))

    assert iterates[0].number == 0
    assert np.array_equal(iterates[0].q, START)
    assert iterates[-1].distance <= 1e-4 < iterates[-2].distance


def test_each_iterate_is_a_step_of_the_solver():
    solver = single_step_solver(PLANAR)
    iterates = list(iterate(solver, START, GOAL, IterateSettings(threshold=1e-4)))

    solver.reset(START)
    steps = [solver.step(pin.SE3ToXYZQUAT(GOAL)) for _ in iterates[1:]]

    assert np.array_equal(steps, [item.q for item in iterates[1:]])


def test_the_largest_change_of_a_joint_holds():
    solver = single_step_solver(PLANAR.with_value("solver.step_clamp", 0.05))

    postures = np.array([item.q for item in iterate(solver, START, GOAL)])

    assert np.abs(np.diff(postures, axis=0)).max() == pytest.approx(0.05)


@pytest.mark.parametrize(("setup", "ending"), [(SLOW, "is still converging"), (WILD, "oscillates")])
def test_a_missed_goal_is_explained(setup, ending):
    iterates, sentence = iterate_to_end(setup, START, GOAL, IterateSettings(iteration_limit=12))

    assert [item.number for item in iterates] == list(range(13))
    assert "Not reached after 12 iterations" in sentence
    assert f"{1e3 * iterates[-1].distance:.3g}" in sentence
    assert ending in sentence


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("threshold", 0.0),
        ("iteration_limit", 0),
        ("frame_time", -1.0),
        ("slow_in_slow_out", "maybe"),
    ],
)
def test_settings_without_sense_are_refused(setting, value):
    with pytest.raises(InvalidParameter, match=setting):
        IterateSettings(**{setting: value})


def test_the_file_holds_joints_and_link_ends():
    solver = single_step_solver(PLANAR)
    iterates = list(iterate(solver, START, GOAL))

    rows = list(csv.DictReader(io.StringIO(iterations_csv(solver.robot, iterates))))

    assert len(rows) == len(iterates)
    last_end = [float(rows[-1][f"joint_3_end_{axis}_m"]) for axis in "xyz"]
    assert last_end == pytest.approx(tool_frame(solver.robot, iterates[-1].q).translation)
    joints = [float(rows[3][f"joint_{number}_rad"]) for number in (1, 2, 3)]
    assert joints == iterates[3].q.tolist()


def test_slow_in_slow_out_shows_the_ends_longer():
    weights = slow_in_slow_out(41)

    assert weights.mean() == pytest.approx(1.0)
    assert weights[0] == weights.max()
    assert weights[20] == weights.min()
    assert weights[0] > 4.0 * weights[20]
