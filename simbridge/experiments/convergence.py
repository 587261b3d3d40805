"""Runs experiment B: one far step of the target, from home. How do the errors decay?

All solvers have the same settings: dt = 1, Kp = diag(1, 1, 1, 0.1, 0.1, 0.1), one iteration per
step, and no clamps. The Jacobian transpose also has the gain alpha, with which it maps force to
acceleration as the conditioned twin does on average.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from simbridge.experiments import KDL, ConvergenceParameters
from simbridge.experiments.arm import (
    choose_arm,
    is_paper_arm,
    make_solvers,
    pose_errors,
)
from simbridge.experiments.layout import step_target
from simbridge.experiments.outcome import (
    Outcome,
    Plot,
    ResultTable,
    arrival_index,
    format_iterations,
    format_number,
    solver_colour,
    within,
)
from simbridge.ik.solver import Solver
from simbridge.report.palette import GRID
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# Distance from the target that counts as arrived, m.
ARRIVED = 0.01
# Number of iterations in the paper.
PAPER_ITERATIONS = 150
# Stiffness of the translation in the paper, N/m.
PAPER_KP = 1.0

_KDL = f"{KDL}, 150 iterations"
# Figures that are known for a UR10.
EXPECTED = (
    within("forward-dynamics, below 10 mm at iteration", 16, 0, _KDL),
    within("forward-dynamics, largest rotation, rad", 0.0002, 0.00005, _KDL),
    within("forward-dynamics, overshoot, mm", 0.0, 0.01, _KDL),
    within("jacobian-transpose, left, mm", 24.0, 0.5, _KDL),
    within("jacobian-transpose, left, degrees", 8.0, 0.1, _KDL),
    within("jacobian-transpose, largest rotation, rad", 0.68, 0.005, _KDL),
)

# Headings of the table of results.
COLUMNS = ("solver", "10 mm at", "left, mm", "left, deg", "rotation, rad", "overshoot, mm")


@dataclass(frozen=True)
class StepResponse:
    """The errors of one solver after a step of the target.

    Attributes:
        errors: Target minus tool before the first and after every iteration (N + 1, 6): translation
            in m, rotation vector in rad.
    """

    errors: Array

    @property
    def arrival(self) -> float:
        """Iteration from which the tool stays within `ARRIVED` of the target, or NaN."""
        return arrival_index(np.linalg.norm(self.errors[:, :3], axis=1), ARRIVED)

    @property
    def residual_distance(self) -> float:
        """Length of the translation after the last iteration, m."""
        return float(np.linalg.norm(self.errors[-1, :3]))

    @property
    def residual_angle(self) -> float:
        """Angle of the rotation after the last iteration, rad."""
        return float(np.linalg.norm(self.errors[-1, 3:]))

    @property
    def largest_rotation(self) -> float:
        """The largest component of the rotation's error, rad."""
        return float(np.abs(self.errors[:, 3:]).max())

    @property
    def overshoot(self) -> float:
        """The largest distance by which a component of the translation passes the target, m."""
        # An error with another sign than at first is beyond the target.
        beyond = -self.errors[:, :3] * np.sign(self.errors[0, :3])
        return max(0.0, float(beyond.max()))

    @property
    def figures(self) -> dict[str, float]:
        """Single numbers, by names that include their unit, in the order of `COLUMNS`."""
        return {
            "below 10 mm at iteration": self.arrival,
            "left, mm": 1e3 * self.residual_distance,
            "left, degrees": math.degrees(self.residual_angle),
            "largest rotation, rad": self.largest_rotation,
            "overshoot, mm": 1e3 * self.overshoot,
        }


def measure(
    robot: Robot, solvers: Mapping[str, Solver], target: Array, iterations: int = PAPER_ITERATIONS
) -> dict[str, StepResponse]:
    """Step every solver from home to a distant target, one iteration per step.

    Args:
        robot: The arm; the solvers begin at its home.
        solvers: Solvers by name, each with one iteration per step.
        target: Pose of the target (7,).
        iterations: Number of iterations.
    """
    targets = np.tile(target, (iterations, 1))
    responses = {}
    for name, solver in solvers.items():
        joints = np.vstack([robot.home, solver.track(targets, robot.home)])
        responses[name] = StepResponse(pose_errors(robot, target, joints))
    return responses


def figures(responses: Mapping[str, StepResponse]) -> dict[str, float]:
    """Return the figures of every solver, by the names of the solver and the figure."""
    values = {}
    for name, response in responses.items():
        for figure, value in response.figures.items():
            values[f"{name}, {figure}"] = value
    return values


def run(parameters: ConvergenceParameters) -> Outcome:
    """Run the experiment."""
    arm = choose_arm(parameters)
    # One number is the stiffness of the translation; the solvers take a tenth of it for the
    # rotation.
    solvers = make_solvers(arm.robot, parameters.solver, dt=1.0, iterations=1, kp=(parameters.kp,))
    target, target_note = step_target(arm.robot)
    responses = measure(arm.robot, solvers, target, parameters.iterations)

    # Figures are known only for the paper's arm with the paper's settings.
    has_paper_settings = parameters.iterations == PAPER_ITERATIONS and parameters.kp == PAPER_KP
    is_known = is_paper_arm(arm.robot) and has_paper_settings
    title = f"One step of the target, {parameters.iterations} iterations"
    rotation_note = (
        "Rotation: the largest component of the rotation error along the way; the "
        "target does not rotate."
    )
    return Outcome(
        figures=figures(responses),
        expected=EXPECTED if is_known else (),
        data={
            "arm": arm.as_data(),
            "target": target.tolist(),
            "errors": {name: response.errors.tolist() for name, response in responses.items()},
        },
        tables=[ResultTable(title, COLUMNS, _rows(responses))],
        plots={"convergence.png": _plot(responses)},
        notes=[rotation_note, *arm.notes, target_note],
    )


def _rows(responses: Mapping[str, StepResponse]) -> list[tuple[str, ...]]:
    """Return the figures of each solver as a row under `COLUMNS`."""
    rows = []
    for name, response in responses.items():
        arrival, *others = response.figures.values()
        rows.append((name, format_iterations(arrival), *map(format_number, others)))
    return rows


def _plot(responses: Mapping[str, StepResponse]) -> Plot:
    """Return a plot with six panels, one for each component of the error."""

    def draw(figure: Figure) -> None:
        """Draw a line per solver in each panel; translation above, rotation below."""
        panels = figure.subplots(2, 3, sharex=True, sharey="row")
        for component, axes in enumerate(panels.flat):
            axes.axhline(0.0, color=GRID, linewidth=1.6)
            for name, response in responses.items():
                axes.plot(response.errors[:, component], color=solver_colour(name), label=name)
            motion = "translation" if component < 3 else "rotation about"
            axes.set_title(f"{motion} {'xyz'[component % 3]}")

        panels[0, 0].set_ylabel("error, m")
        panels[1, 0].set_ylabel("error, rad")
        for axes in panels[1]:
            axes.set_xlabel("iteration")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=4)

    return Plot(8.6, 4.6, draw)
