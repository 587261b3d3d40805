"""The paper's scenarios on every arm of robots/: unaltered on a UR10, and within reach of all
others.
"""

from __future__ import annotations

import itertools

import numpy as np
import pinocchio as pin
import pytest

from simbridge import load_robot, load_scenario
from simbridge.resources import robot_files
from simbridge.robot.calibration import calibrate, nominal_dh
from simbridge.robot.kinematics import tool_path
from simbridge.robot.parts import DhTable
from simbridge.running.run_setup import prepare
from simbridge.trajectory import corners, square, step
from simbridge.trajectory.paper_size import paper_size
from tests.properties import variants

pytestmark = pytest.mark.slow

UR_ARMS = [name for name in robot_files() if name.startswith("ur")]


@pytest.mark.parametrize("name", ["ur10", "ur10e", "ur20", "ur30"])
def test_large_arms_have_the_papers_paths(name):
    robot = load_robot(name)
    centre = (0.75, 0.164, 0.30)
    home = tool_path(robot, robot.home[None])[0]
    expected = {
        "square_tracking": square(side=0.4, centre=centre, speed=0.2, rate=100.0, laps=2),
        "square_corners": corners(side=0.4, centre=centre, dwell=2.0),
        "step": step(home, offset=(-0.25, -0.75, 0.35), at=0.5, duration=4.0),
    }
    for scenario, trajectory in expected.items():
        made = load_scenario(scenario, robot).trajectory

        assert np.array_equal(made.times, trajectory.times)
        assert np.array_equal(made.poses, trajectory.poses)


@pytest.mark.parametrize(
    ("name", "scale"), [("ur3", 0.45), ("ur3e", 0.45), ("ur5", 0.7), ("ur5e", 0.7), ("ur16e", 0.75)]
)
def test_a_small_arm_shrinks_lengths_and_speeds(name, scale):
    size = paper_size(load_robot(name))

    assert size.scale == scale
    assert size.side / size.speed == pytest.approx(2.0)
    assert size.centre == pytest.approx((0.75 * scale, 0.164 * scale, 0.30 * scale))


@pytest.mark.parametrize("name", variants(UR_ARMS, "ur3e", "ur10", "ur16e", "ur30"))
def test_small_changes_keep_the_paths(name):
    robot = load_robot(name)
    nominal = paper_size(robot)
    table = nominal_dh(robot)
    for sign in (-1.0, 1.0):
        longer = tuple(a + sign * 0.002 * np.sign(a) for a in table.a)

        assert (
            paper_size(calibrate(robot, DhTable(table.theta, longer, table.d, table.alpha)))
            == nominal
        )

    assert paper_size(load_robot(name, home=[0.3, -1.0, 1.5, -2.0, -1.5, 0.2])) == nominal
    assert paper_size(robot.with_tcp(pin.SE3(np.eye(3), np.array([0.0, 0.1, 0.3])))) == nominal


TESTED = (("ur3e", "square_corners"), ("ur30", "step"))


@pytest.mark.parametrize(
    ("name", "scenario"),
    [
        pytest.param(*case, marks=[pytest.mark.soak] * (case not in TESTED))
        for case in itertools.product(UR_ARMS, ("square_tracking", "square_corners", "step"))
    ],
)
def test_every_arm_fits_the_papers_scenarios(name, scenario):
    prepared = prepare(scenario, robot=name)

    assert prepared.peaks.clearance.distance > 0.005
    assert np.all(prepared.peaks.velocity <= prepared.robot.max_velocity * (1.0 + 1e-6))


@pytest.mark.parametrize("name", ["planar2r", "planar3r"])
def test_planar_paths_stay_in_plane_and_reach(name):
    for lengths in (None, (0.1, 0.08, 0.05)[: load_robot(name).n]):
        robot = load_robot(name, lengths=lengths)
        for scenario in ("square_tracking", "square_corners", "step"):
            points = load_scenario(scenario, robot).trajectory.poses[:, :3]

            assert np.all(points[:, 2] == 0.0)
            assert np.linalg.norm(points, axis=1).max() < 0.95 * robot.arm_length
