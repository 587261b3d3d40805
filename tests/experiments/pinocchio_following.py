"""An inverse of pinocchio's kinematics, by which tests judge what an arm can attain."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from simbridge.robot.robot import Robot

# What pinocchio has to attain, m and rad.
TOLERANCE = 1e-5
DAMPING = 1e-9
MAX_STEPS = 100


def task_error(robot: Robot, tool: pin.SE3, goal: pin.SE3) -> np.ndarray:
    """Return the error in the tool's frame: of the position alone where no more is asked for."""
    if robot.task == "position":
        return tool.rotation.T @ (goal.translation - tool.translation)
    return pin.log6(tool.actInv(goal)).vector


def follow(
    robot: Robot, targets: np.ndarray, start: np.ndarray, tolerance: float = TOLERANCE
) -> tuple[np.ndarray, np.ndarray]:
    """Return joint positions (T, n) by pinocchio's kinematics, and the errors that remain (T,)."""
    data = robot.model.createData()
    tcp = robot.model.getFrameId("tcp")
    q = start.copy()
    joints = []
    errors = []
    for target in targets:
        goal = pin.XYZQUATToSE3(target)
        for _ in range(MAX_STEPS):
            pin.framesForwardKinematics(robot.model, data, q)
            error = task_error(robot, data.oMf[tcp], goal)
            if np.abs(error).max() < tolerance:
                break
            jacobian = pin.computeFrameJacobian(robot.model, data, q, tcp)[: len(error)]
            gram = jacobian @ jacobian.T + DAMPING * np.eye(len(error))
            q = q + jacobian.T @ np.linalg.solve(gram, error)
        joints.append(q)
        errors.append(np.abs(error).max())
    return np.array(joints), np.array(errors)
