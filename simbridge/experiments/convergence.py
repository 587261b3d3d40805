"""Experiment B: one far step of the target, from home. Where do the errors go on their way to zero?

The solvers begin alike: dt = 1, Kp = diag(1, 1, 1, 0.1, 0.1, 0.1), and for the Jacobian transpose the gain alpha, which
on average maps force to acceleration as the conditioned twin does. One iteration a step, no clamps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from simbridge.experiments.arm import arm
from simbridge.experiments.drawing import Picture, colour_of
from simbridge.experiments.layout import step_target
from simbridge.experiments.outcome import Outcome, Table, compared, near, written
from simbridge.experiments.parameters import ConvergenceParameters
from simbridge.experiments.setting import distinct, errors, is_the_papers, solver_named
from simbridge.ik.solver import Solver
from simbridge.report.palette import GRID
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import plain

CLOSE = 0.01
"""What counts as arrived, m."""

_KDL = "an independent C++ implementation on Orocos KDL, 150 iterations"
EXPECTED = (
    near("forward-dynamics, below 10 mm at iteration", 16, 0, _KDL),
    near("forward-dynamics, largest rotation, rad", 0.0002, 0.00005, _KDL),
    near("forward-dynamics, overshoot, mm", 0.0, 0.01, _KDL),
    near("jacobian-transpose, left, mm", 24.0, 0.5, _KDL),
    near("jacobian-transpose, left, degrees", 8.0, 0.1, _KDL),
    near("jacobian-transpose, largest rotation, rad", 0.68, 0.005, _KDL),
)
"""Of a UR10."""


@dataclass(frozen=True)
class Step:
    """The errors of one solver.

    Attributes:
        errors: Before the first and after every iteration (N + 1, 6): translation in m, Rodrigues vector in rad.
    """

    errors: Array

    @property
    def distances(self) -> Array:
        """What is left of the translation (N + 1,), m."""
        return np.linalg.norm(self.errors[:, :3], axis=1)

    @property
    def angles(self) -> Array:
        """What is left of the rotation (N + 1,), rad."""
        return np.linalg.norm(self.errors[:, 3:], axis=1)

    @property
    def arrival(self) -> float:
        """The iteration from which on the tool is within `CLOSE`; not a number if it does not get there."""
        away = np.flatnonzero(self.distances > CLOSE)
        last = int(away[-1]) + 1 if len(away) else 0
        return float(last) if last < len(self.errors) else math.nan

    @property
    def largest_rotation(self) -> float:
        """The largest component of the rotation's error, rad."""
        return float(np.abs(self.errors[:, 3:]).max())

    @property
    def overshoot(self) -> float:
        """How far a component of the translation gets past the target, m."""
        beyond = -self.errors[:, :3] * np.sign(self.errors[0, :3])
        return max(0.0, float(beyond.max()))


def measure(robot: Robot, solvers: Mapping[str, Solver], target: Array, iterations: int = 150) -> dict[str, Step]:
    """Every solver, one iteration a step, from home to a distant target (7,)."""
    targets = np.tile(target, (iterations, 1))
    steps = {}
    for name, solver in solvers.items():
        joints = np.vstack([robot.home, solver.track(targets, robot.home)])
        steps[name] = Step(errors(robot, target, joints))
    return steps


def figures(steps: Mapping[str, Step]) -> dict[str, float]:
    """The numbers of the table."""
    found: dict[str, float] = {}
    for name, step in steps.items():
        found[f"{name}, below 10 mm at iteration"] = step.arrival
        found[f"{name}, left, mm"] = 1e3 * float(step.distances[-1])
        found[f"{name}, left, degrees"] = math.degrees(step.angles[-1])
        found[f"{name}, largest rotation, rad"] = step.largest_rotation
        found[f"{name}, overshoot, mm"] = 1e3 * step.overshoot
    return found


def run(parameters: ConvergenceParameters) -> Outcome:
    """The command."""
    chosen = arm(parameters)
    robot = chosen.robot
    settings = {"dt": 1.0, "iterations": 1, "kp": (parameters.kp,)}
    solvers = {name: solver_named(robot, name, **settings) for name in distinct(parameters.solver)}
    target, about_target = step_target(robot)
    steps = measure(robot, solvers, target, parameters.iterations)
    found = figures(steps)
    rows = [
        (
            name,
            plain(step.arrival) if math.isfinite(step.arrival) else "never",
            written(1e3 * float(step.distances[-1])),
            written(math.degrees(step.angles[-1])),
            written(step.largest_rotation),
            written(1e3 * step.overshoot),
        )
        for name, step in steps.items()
    ]
    columns = ("solver", "10 mm at", "left, mm", "left, deg", "rotation, rad", "overshoot, mm")
    known = is_the_papers(robot) and (parameters.iterations, parameters.kp) == (150, 1.0)
    return Outcome(
        figures=found,
        comparisons=compared(found, EXPECTED, known),
        data={
            "arm": chosen.as_data(),
            "target": target.tolist(),
            "errors": {name: step.errors.tolist() for name, step in steps.items()},
        },
        tables=[Table(f"One step of the target, {parameters.iterations} iterations", columns, rows)],
        pictures={"convergence.png": _curves(steps)},
        notes=[
            "Rotation: the largest component of its error on the way; the target is not turned.",
            *chosen.notes,
            *filter(None, [about_target]),
        ],
    )


def _curves(steps: Mapping[str, Step]) -> Picture:
    """Six panels, one for each component of the error."""

    def draw(figure: Figure) -> None:
        panels = figure.subplots(2, 3, sharex=True, sharey="row")
        for component, axes in enumerate(panels.flat):
            axes.axhline(0.0, color=GRID, linewidth=1.6)
            for name, step in steps.items():
                axes.plot(step.errors[:, component], color=colour_of(name), label=name)
            axes.set_title(f"{'translation' if component < 3 else 'rotation about'} {'xyz'[component % 3]}")
        panels[0, 0].set_ylabel("error, m")
        panels[1, 0].set_ylabel("error, rad")
        for axes in panels[1]:
            axes.set_xlabel("iteration")
        figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)

    return Picture(8.6, 4.6, draw)
