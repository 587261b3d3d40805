"""How long the closed form takes for every branch, called from Python, beside the period it is for."""

from __future__ import annotations

import statistics
import time

import pinocchio as pin

_CALLS = 2000
_REPEATS = 9


def branches_time(robot_name: str = "ur10") -> tuple[float, int]:
    """Median time of a call of `ClosedForm.branches` with a `pinocchio.SE3`, s, and how many branches it gives.

    The target is where the robot's home is, which on UR arms all eight branches attain.
    """
    from simbridge.ik.closed_form import ClosedForm
    from simbridge.robot.kinematics import tool_path
    from simbridge.robot.load import load_robot

    robot = load_robot(robot_name)
    solver = ClosedForm(robot)
    target = pin.XYZQUATToSE3(tool_path(robot, robot.home[None])[0])
    count = len(solver.branches(target))
    taken = []
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        for _ in range(_CALLS):
            solver.branches(target)
        taken.append((time.perf_counter() - begin) / _CALLS)
    return statistics.median(taken), count
