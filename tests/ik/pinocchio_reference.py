"""Forward dynamics computed with pinocchio alone: what the compiled solver must agree with, and is
faster than.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot


def with_pinocchio(robot: Robot, solver: ForwardDynamics, poses: Array, start: Array) -> Array:
    """Run the plain algorithm on pinocchio, as fast as possible from Python.

    It takes the Jacobian (and with it the tool's frame), log, the twin's crba, and pinocchio's own
    sparse factorisation, which is faster than LAPACK.
    """

    model = robot.model.copy()
    twin = solver.twin
    eye = np.eye(3)
    for joint in range(1, model.njoints):
        model.inertias[joint] = pin.Inertia(twin.link_mass, np.zeros(3), twin.link_inertia * eye)
    at = robot.tool0 * robot.tcp
    model.inertias[model.njoints - 1] += at.act(
        pin.Inertia(twin.tool_mass, np.zeros(3), twin.tool_inertia * eye)
    )
    data = model.createData()
    frame = model.getFrameId("tcp")
    gain = np.array(solver.kp)
    scale = 0.25 * solver.dt**2
    error = np.empty(6)
    q = start.copy()
    for pose in poses:
        target = pin.XYZQUATToSE3(pose)
        for _ in range(solver.iterations):
            jacobian = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)
            tool = data.oMf[frame]
            error[:3] = target.translation - tool.translation
            error[3:] = pin.log3(target.rotation @ tool.rotation.T)
            pin.crba(model, data, q)
            pin.cholesky.decompose(model, data)
            q = q + scale * pin.cholesky.solve(model, data, jacobian.T @ (gain * error))
    return q
