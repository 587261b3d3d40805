"""Track with a solver of your own: any function of the joint positions and a target."""

import numpy as np
import pinocchio as pin

import simbridge
from simbridge.robot.kinematics import task_jacobian, tool_path
from simbridge.trajectory import square

robot = simbridge.load_robot("ur10")


def newton(q: np.ndarray, target: pin.SE3) -> np.ndarray:
    """Return the next q (n,), rad, one Newton step nearer to a target from base_link."""
    tool = pin.XYZQUATToSE3(tool_path(robot, q[None])[0])
    error = np.concatenate(
        [target.translation - tool.translation, pin.log3(target.rotation @ tool.rotation.T)]
    )
    return q + np.linalg.solve(task_jacobian(robot, q, "pose"), error)


run = simbridge.run(simbridge.Scenario(square(side=0.1)), robot=robot, solver=newton)
print(f"solver error: {1e3 * run.summary['solver_error']['position_m']['rms']:.4f} mm RMS")
