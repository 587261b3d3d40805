"""Pinocchio's CLIK as a solver equals the example of Pinocchio."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from simbridge.ik.rivals.pinocchio_clik import PinocchioClikParameters
from simbridge.robot import load_robot
from simbridge.robot.kinematics import tool_path


def test_it_equals_the_example_of_pinocchio():
    robot = load_robot("ur10")
    goal = pin.XYZQUATToSE3(tool_path(robot, robot.home[None] + 0.1)[0])
    # The example, which moves the last joint's frame.
    model = robot.model
    data = model.createData()
    in_joint = (robot.tool0 * robot.tcp).inverse()
    desired = goal * in_joint
    q = robot.home.copy()
    for _ in range(1000):
        pin.forwardKinematics(model, data, q)
        error = pin.log(data.oMi[robot.n].actInv(desired))
        jacobian = pin.computeJointJacobian(model, data, q, robot.n)
        jacobian = -pin.Jlog6(data.oMi[robot.n].actInv(desired).inverse()) @ jacobian
        if np.linalg.norm(error.vector) < 1e-10:
            break
        damped = jacobian @ jacobian.T + 1e-12 * np.eye(6)
        q = pin.integrate(model, q, -0.1 * jacobian.T @ np.linalg.solve(damped, error.vector))

    joints = PinocchioClikParameters(tolerance=1e-10).build(robot).step(goal)

    np.testing.assert_allclose(joints, q, rtol=0.0, atol=1e-8)
