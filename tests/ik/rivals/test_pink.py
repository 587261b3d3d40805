"""Pink as a solver equals a loop around Pink."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from simbridge.ik.rivals.pink import PinkParameters
from simbridge.robot import load_robot
from simbridge.robot.kinematics import tool_path

DT = 0.002


def test_it_equals_a_loop_around_pink():
    pink = pytest.importorskip("pink")
    pytest.importorskip("daqp")
    robot = load_robot("ur5e")
    targets = np.tile(tool_path(robot, robot.home[None])[0], (100, 1))
    # Faster than the limits of velocity allow at the end.
    targets[:, 1] += 0.1 * np.linspace(0.0, 1.0, 100) ** 2
    targets[50:, 2] += 0.2
    # The arm as Pink's users load it: from a URDF.
    model = pin.buildModelFromXML(robot.urdf)
    configuration = pink.Configuration(model, model.createData(), robot.home)
    pose = pink.FrameTask("tcp", position_cost=1.0, orientation_cost=1.0, lm_damping=1.0)
    posture = pink.PostureTask(cost=1e-3)
    posture.set_target(robot.home)
    expected = []
    for target in targets:
        pose.set_target(pin.XYZQUATToSE3(target))
        velocity = pink.solve_ik(configuration, [pose, posture], DT, solver="daqp")
        configuration.integrate_inplace(velocity, DT)
        expected.append(configuration.q)

    solver = PinkParameters().build(robot)
    solver.period = DT
    joints = solver.track(targets, robot.home)

    np.testing.assert_allclose(joints, expected, rtol=0.0, atol=1e-9)
