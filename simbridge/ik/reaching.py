"""Which solver decides what can be reached: a solver itself, or a reliable one in its place."""

from __future__ import annotations

from simbridge.ik.selectively_damped import SelectivelyDampedParameters
from simbridge.ik.solver import Solver
from simbridge.robot.robot import Robot


def fallback_solver(robot: Robot, task: str) -> Solver:
    """A solver that finds what can be reached, and needs no tuning."""
    return SelectivelyDampedParameters(task=task).build(robot)


def reaching_solver(solver: Solver) -> Solver:
    """The solver that decides which targets can be reached, and finds the first joint positions of a plan.

    It is the given one where that is `reliable`, else another for the same task.
    """
    return solver if solver.reliable else fallback_solver(solver.robot, solver.task)
