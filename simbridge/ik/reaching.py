"""The solver that decides what can be reached: the chosen one, or a reliable one in its place."""

from __future__ import annotations

from simbridge.ik.selectively_damped import SelectivelyDampedParameters
from simbridge.ik.solver import Solver
from simbridge.robot.robot import Robot


def fallback_solver(robot: Robot, task: str) -> Solver:
    """Return a solver that finds what can be reached, and needs no tuning."""
    return SelectivelyDampedParameters(task=task).build(robot)


def reaching_solver(solver: Solver) -> Solver:
    """Return the solver that decides which targets can be reached.

    It also finds the first joint positions of a plan. It is the given one where that is `reliable`,
    else another for the same task.
    """
    if solver.reliable:
        return solver
    return fallback_solver(solver.robot, solver.task)
