"""Measures how far the joints of a redundant arm drift while its tool returns to where it was."""

from __future__ import annotations

import numpy as np

from simbridge.ik.callable_solver import CallableSolver
from simbridge.ik.faults import is_custom
from simbridge.ik.solver import Solver
from simbridge.ik.targets import residual
from simbridge.planning.plan import Plan
from simbridge.robot.chain import TASK_ROWS
from simbridge.text import degrees, millimetres

# Ends of a path that are nearer to each other than this, m and rad, are one: the path is closed.
CLOSED = (1e-6, 1e-5)
# Coordinates of each task that an arm can attain within its plane.
PLANAR_ROWS = {"pose": 3, "axis": 2, "position": 2}
# A drift below this, rad (m of a sliding joint), is not mentioned.
LEAST_DRIFT = 1e-3


def posture_note(solver: Solver, plan: Plan) -> str:
    """Return the sentences that a redundant arm drifts along a closed path; "" if it does not.

    If nothing holds its posture, an arm with more joints than its task has rows comes back to
    a pose with other joint positions.

    Args:
        solver: The solver that made the plan.
        plan: The plan.
    """
    robot = solver.robot
    rows = TASK_ROWS[solver.task]
    if robot.planar:
        rows = PLANAR_ROWS[solver.task]
    if robot.n <= rows:
        return ""

    first = plan.targets[0]
    distance, angle = residual(solver.task, first, plan.targets[-1])
    if distance > CLOSED[0] or angle > CLOSED[1]:
        return ""

    drifts = np.abs(plan.solution[-1] - plan.solution[0])
    joint = int(np.argmax(drifts))
    drift = float(drifts[joint])
    if drift < LEAST_DRIFT or _settles(solver, plan):
        return ""
    shown = f"{millimetres(drift)} mm" if robot.prismatic[joint] else f"{degrees(drift)}°"
    return (
        f"The arm is redundant ({robot.n} joints for {rows} task coordinates): this closed path "
        f"leaves {robot.joint_names[joint]} {shown} from where it began, and every repetition "
        "moves it further. To return to one posture, use --solver damped-least-squares "
        "--solver.stiffness 0.1, or --solver constrained."
    )


def _settles(solver: Solver, plan: Plan) -> bool:
    """Return whether a second time along the path ends where the first did.

    A solver that pulls the arm to a posture gets there along the first. A user's solver, which may
    be slow or have a memory, is not asked again.
    """
    if isinstance(solver, CallableSolver) or is_custom(solver):
        return False
    end = plan.solution[-1]
    second_end = solver.track(plan.targets, end)[-1]
    return bool((np.abs(second_end - end) < LEAST_DRIFT).all())
