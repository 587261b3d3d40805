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

PLANAR = StudioSetup("planar3r", "damped-least-squares")
START = np.array([-0.6, 1.4, 0.8])


def goal(x, y):
    return pin.SE3(np.eye(3), np.array([x, y, 0.0]))


def test_it_ends_within_the_threshold_and_each_iterate_is_the_solvers_step():
    found = list(
        iterate(single_step_solver(PLANAR), START, goal(-0.6, 0.7), IterateSettings(threshold=1e-4))
    )
    assert found[0].number == 0 and np.array_equal(found[0].q, START)
    assert found[-1].distance <= 1e-4 < found[-2].distance
    solver = single_step_solver(PLANAR)
    solver.reset(START)
    again = [solver.step(pin.SE3ToXYZQUAT(goal(-0.6, 0.7))) for _ in found[1:]]
    assert np.array_equal(again, [one.q for one in found[1:]])


def test_the_largest_change_of_a_joint_holds_in_each_iteration():
    solver = single_step_solver(PLANAR.with_value("solver.step_clamp", 0.05))
    found = np.array([one.q for one in iterate(solver, START, goal(-0.6, 0.7))])
    assert np.abs(np.diff(found, axis=0)).max() == pytest.approx(0.05)


@pytest.mark.parametrize(("setup", "ending"), [
    (PLANAR.with_value("solver.damping", 1.0), "is still converging"),
    # Without a largest change of the joints, and with too large a gain.
    (StudioSetup("planar3r", "jacobian-transpose", {"solver.alpha": 20.0, "solver.step_clamp": np.inf}), "oscillates"),
])  # fmt: skip
def test_at_the_limit_of_iterations_a_sentence_says_what_is_left_and_how_it_ends(setup, ending):
    found, words = iterate_to_end(
        setup, START, goal(-0.6, 0.7), IterateSettings(iteration_limit=12)
    )
    assert [one.number for one in found] == list(range(13))
    assert (
        "Not attained after 12 iterations" in words and f"{1e3 * found[-1].distance:.3g}" in words
    )
    assert ending in words


@pytest.mark.parametrize(("setting", "value"), [
    ("threshold", 0.0), ("iteration_limit", 0), ("frame_time", -1.0), ("slow_in_slow_out", "maybe"),
])  # fmt: skip
def test_settings_of_iterations_that_make_no_sense_are_refused(setting, value):
    with pytest.raises(InvalidParameter, match=setting):
        IterateSettings(**{setting: value})


def test_the_file_holds_joint_positions_and_the_end_points_of_the_links():
    solver = single_step_solver(PLANAR)
    found = list(iterate(solver, START, goal(-0.6, 0.7)))
    rows = list(csv.DictReader(io.StringIO(iterations_csv(solver.robot, found))))
    assert len(rows) == len(found)
    last = [float(rows[-1][f"joint_3_end_{axis}_m"]) for axis in "xyz"]
    assert last == pytest.approx(tool_frame(solver.robot, found[-1].q).translation)
    assert [float(rows[3][f"joint_{i}_rad"]) for i in (1, 2, 3)] == found[3].q.tolist()


def test_slow_in_slow_out_shows_the_ends_longer_and_takes_as_long():
    weights = slow_in_slow_out(41)
    assert weights.mean() == pytest.approx(1.0)
    assert (
        weights[0] == weights.max()
        and weights[20] == weights.min()
        and weights[0] > 4.0 * weights[20]
    )
