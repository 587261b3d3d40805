"""The URDF that simbridge writes of an arm can be read and planned with."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge import load_robot
from simbridge.cli import run_command
from simbridge.errors import LimitExceeded
from simbridge.planning.check import check_positions
from simbridge.robot.kinematics import tool_path
from simbridge.running.run_setup import prepare

pytestmark = pytest.mark.shares_setup


@pytest.fixture(scope="module")
def ur5e(tmp_path_factory):
    """A UR5e, and the same arm from its URDF."""
    robot = load_robot("ur5e")
    path = tmp_path_factory.mktemp("urdf") / "mine.urdf"
    path.write_text(robot.urdf, encoding="utf-8")
    return robot, load_robot(path, home=robot.home.tolist())


def test_a_written_arm_reads_back(ur5e):
    robot, read = ur5e
    joints = np.random.default_rng(5).uniform(-np.pi, np.pi, (50, 6))

    np.testing.assert_allclose(
        tool_path(read, joints)[:, :3], tool_path(robot, joints)[:, :3], rtol=0.0, atol=1e-12
    )
    assert [link.inertia.mass for link in read.links] == [link.inertia.mass for link in robot.links]
    assert np.array_equal(read.max_velocity, robot.max_velocity)
    assert np.array_equal(read.position_max, robot.position_max)


def test_a_written_arm_is_planned_alike(ur5e, tum, tmp_path, through):
    robot, read = ur5e
    path = tum(tmp_path / "line.tum", through([[0.5, 0.1, 0.25], [0.55, 0.1, 0.25]], [0.0, 0.5]))
    one = prepare(path, robot=robot)
    other = prepare(path, robot=read)

    # A URDF has no period: 8 ms by default, four of the arm's own.
    np.testing.assert_allclose(other.plan.setpoints[0], one.plan.setpoints[0], rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(
        tool_path(read, other.plan.setpoints)[-1],
        tool_path(robot, one.plan.setpoints)[-1],
        rtol=0.0,
        atol=1e-6,
    )


@pytest.mark.python_kernels
def test_a_sliding_joint_is_shown_in_millimetres(scara, line, cli, monkeypatch):
    robot = load_robot(scara)
    # Loaded again, a home would be searched for again, which takes longer than all else.
    monkeypatch.setattr(run_command, "load_robot", lambda *_, **__: robot)

    with pytest.raises(
        LimitExceeded, match=r"to_c would be at 0.250 m, 50.0 mm past its limit of 0.200 m\. "
    ):
        check_positions(robot, np.array([[0.0, 0.5, 0.25, 0.0]]), 0.008)
    with pytest.raises(
        LimitExceeded,
        match=r"to_a would be at 2.600 rad \(149.0 degrees\), 5.73° past its limit of 2.5",
    ):
        check_positions(robot, np.array([[2.6, 0.5, 0.1, 0.0]]), 0.008)

    answer = cli("check", line, "--robot", scara, "--anchor", "start")
    turning, _, sliding = answer.out.partition("peak mm/s")

    assert answer.status == 0
    assert "peak deg/s" in turning
    assert "to_a" in turning
    assert "to_c" in sliding
    assert "to_a" not in sliding
    assert "to_c" not in turning
