"""The largest cube agrees with the closed form; the cycle visits the poses in their order."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge import ClosedForm, ForwardDynamics, load_robot
from simbridge.errors import InvalidParameter
from simbridge.trajectory import TOOL_DOWN, IsoCube, Trapezoid, largest_cube

CENTRE = (0.6, 0.1, 0.4)


def attained(robot, cube):
    """Return whether the closed form has a solution for every corner."""
    solver = ClosedForm(robot)
    return all(len(solver.branches(np.concatenate([corner, TOOL_DOWN]))) for corner in cube.corners)


@pytest.mark.parametrize("name", ["ur10", "ur5e"])
def test_the_largest_cube_is_just_attained(name):
    robot = load_robot(name)
    centre = tuple(value * (1.0 if name == "ur10" else 0.65) for value in CENTRE)

    cube = largest_cube(ForwardDynamics(robot), centre, tolerance=0.005)

    assert cube.centre == pytest.approx(centre)
    assert attained(robot, cube)
    assert not attained(robot, IsoCube(cube.centre, cube.edge + 0.006))


def test_no_cube_is_out_of_reach():
    with pytest.raises(InvalidParameter, match="within reach"):
        largest_cube(ForwardDynamics(load_robot("ur10")), (3.0, 0.0, 0.4))


def test_the_cycle_stops_at_each_pose():
    cube = IsoCube(CENTRE, 0.3)
    cycle = cube.cycle(Trapezoid(0.2, 0.8), dwell=0.5, laps=2)
    stops = np.flatnonzero(np.diff(cycle.times) > 0.4)
    order = [
        int(np.argmin(np.linalg.norm(cube.points - cycle.poses[k, :3], axis=1))) + 1 for k in stops
    ]

    assert order == [1, 5, 4, 3, 2, 1, 5, 4, 3, 2, 1]
    np.testing.assert_allclose(np.diff(cycle.times)[stops], 0.5, atol=1e-12)
    np.testing.assert_array_equal(cycle.poses[stops, :3], cycle.poses[stops + 1, :3])


def test_test_poses_lie_in_the_inclined_plane() -> None:
    cube = IsoCube((0.7, 0.1, 0.4), 0.3)

    np.testing.assert_allclose((cube.points - cube.points[0]) @ cube.normal, 0.0, atol=1e-15)


def test_test_poses_are_near_the_corners() -> None:
    cube = IsoCube((0.7, 0.1, 0.4), 0.3)
    diagonal = 0.3 * np.sqrt(3.0)

    gaps = np.linalg.norm(cube.points[1:] - cube.corners[[0, 1, 6, 7]], axis=1)

    np.testing.assert_allclose(gaps, 0.1 * diagonal, rtol=1e-12)
    assert cube.line().length == pytest.approx(0.8 * diagonal)
