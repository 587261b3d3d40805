"""Experiment B: one far step of the target, from home. How do the errors decay?

All solvers start alike: dt = 1, Kp = diag(1, 1, 1, 0.1, 0.1, 0.1), and for the Jacobian transpose the gain alpha, which
on average maps force to acceleration as the conditioned twin does. One iteration per step, no clamps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from simbridge.experiments import KDL, ConvergenceParameters
from simbridge.experiments.experiment import (
    Outcome,
    Plot,
    Table,
    arrival,
    iterations,
    number,
    solver_colour,
    within,
)
from simbridge.experiments.setup import (
    choose_arm,
    is_paper_arm,
    make_solvers,
    pose_errors,
    step_target,
)
from simbridge.ik.solver import Solver
from simbridge.report.palette import GRID
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

ARRIVED = 0.01
"""Distance from the target that counts as arrived, m."""

_KDL = f"{KDL}, 150 iterations"
EXPECTED = (
    within("forward-dynamics, below 10 mm at iteration", 16, 0, _KDL),
    within("forward-dynamics, largest rotation, rad", 0.0002, 0.00005, _KDL),
    within("forward-dynamics, overshoot, mm", 0.0, 0.01, _KDL),
    within("jacobian-transpose, left, mm", 24.0, 0.5, _KDL),
    within("jacobian-transpose, left, degrees", 8.0, 0.1, _KDL),
    within("jacobian-transpose, largest rotation, rad", 0.68, 0.005, _KDL),
)
"""On a UR10."""


@dataclass(frozen=True)
class Step:
    """The errors of one solver.

    Attributes:
        errors: Before the first and after every iteration (N + 1, 6): translation in m, Rodrigues vector in rad.
    """

    errors: Array

    @property
    def arrival(self) -> float:
        """The iteration from which on the tool stays within `ARRIVED`; not a number if it does not arrive."""
        return arrival(np.linalg.norm(self.errors[:, :3], axis=1), ARRIVED)

    @property
    def residual(self) -> tuple[float, float]:
        """Length of the translation, m, and of the rotation, rad, after the last iteration."""
        return float(np.linalg.norm(self.errors[-1, :3])), float(
            np.linalg.norm(self.errors[-1, 3:])
        )

    @property
    def largest_rotation(self) -> float:
        """The largest component of the rotation's error, rad."""
        return float(np.abs(self.errors[:, 3:]).max())

    @property
    def overshoot(self) -> float:
        """The largest distance by which a component of the translation passes the target, m."""
        beyond = -self.errors[:, :3] * np.sign(self.errors[0, :3])
        return max(0.0, float(beyond.max()))


# The name of a figure, the column of the table, and the value.
_FIGURES: tuple[tuple[str, str, Callable[[Step], float]], ...] = (
    ("below 10 mm at iteration", "10 mm at", lambda step: step.arrival),
    ("left, mm", "left, mm", lambda step: 1e3 * step.residual[0]),
    ("left, degrees", "left, deg", lambda step: math.degrees(step.residual[1])),
    ("largest rotation, rad", "rotation, rad", lambda step: step.largest_rotation),
    ("overshoot, mm", "overshoot, mm", lambda step: 1e3 * step.overshoot),
)


def measure(
    robot: Robot, solvers: Mapping[str, Solver], target: Array, iterations: int = 150
) -> dict[str, Step]:
    """Every solver, one iteration per step, from home to a distant target (7,)."""
    targets = np.tile(target, (iterations, 1))
    steps = {}
    for name, solver in solvers.items():
        joints = np.vstack([robot.home, solver.track(targets, robot.home)])
        steps[name] = Step(pose_errors(robot, target, joints))
    return steps


def figures(steps: Mapping[str, Step]) -> dict[str, float]:
    """The figures of every solver."""
    return {
        f"{name}, {figure}": value(step)
        for name, step in steps.items()
        for figure, _, value in _FIGURES
    }


def run(parameters: ConvergenceParameters) -> Outcome:
    """The command."""
    arm = choose_arm(parameters)
    solvers = make_solvers(arm.robot, parameters.solver, dt=1.0, iterations=1, kp=(parameters.kp,))
    target, note = step_target(arm.robot)
    steps = measure(arm.robot, solvers, target, parameters.iterations)
    known = is_paper_arm(arm.robot) and (parameters.iterations, parameters.kp) == (150, 1.0)
    rows = [
        (name, iterations(step.arrival), *(number(value(step)) for _, _, value in _FIGURES[1:]))
        for name, step in steps.items()
    ]
    columns = ("solver", *(column for _, column, _ in _FIGURES))
    return Outcome(
        figures=figures(steps),
        expected=EXPECTED if known else (),
        data={
            "arm": arm.as_data(),
            "target": target.tolist(),
            "errors": {name: step.errors.tolist() for name, step in steps.items()},
        },
        tables=[
            Table(f"One step of the target, {parameters.iterations} iterations", columns, rows)
        ],
        plots={"convergence.png": _plot(steps)},
        notes=[
            "Rotation: the largest component of its error on the way; the target does not rotate.",
            *arm.notes,
            note,
        ],
    )


def _plot(steps: Mapping[str, Step]) -> Plot:
    """Six panels, one for each component of the error."""

    def draw(figure: Figure) -> None:
        panels = figure.subplots(2, 3, sharex=True, sharey="row")
        for component, axes in enumerate(panels.flat):
            axes.axhline(0.0, color=GRID, linewidth=1.6)
            for name, step in steps.items():
                axes.plot(step.errors[:, component], color=solver_colour(name), label=name)
            axes.set_title(
                f"{'translation' if component < 3 else 'rotation about'} {'xyz'[component % 3]}"
            )
        panels[0, 0].set_ylabel("error, m")
        panels[1, 0].set_ylabel("error, rad")
        for axes in panels[1]:
            axes.set_xlabel("iteration")
        figure.legend(
            *panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4
        )

    return Plot(8.6, 4.6, draw)
