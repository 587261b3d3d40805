"""Runs experiment C: from each corner of a square to the next. How straight is the path?

Only the next corner is the target. All solvers have the same settings: dt = 0.1,
Kp = diag(1, 1, 1, 0.1, 0.1, 0.1), 50 iterations per step, and no clamps. The Jacobian transpose
also has its gain alpha.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from simbridge.experiments import KDL, InterpolationParameters
from simbridge.experiments.arm import DT, choose_arm, is_paper_arm, make_solvers, start_posture
from simbridge.experiments.layout import SquareLayout, choose_layout
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
from simbridge.report.palette import REFERENCE
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.trajectory.shapes import corners

# Distance from the goal at which the tool has arrived, m.
ARRIVED = 0.001
# Number of steps from corner to corner in the paper.
PAPER_STEPS = 1000
# Number of iterations per step in the paper.
PAPER_ITERATIONS = 50
# Stiffness of the translation in the paper, N/m.
PAPER_KP = 1.0

# Figures that are known for a UR10.
EXPECTED = (
    within("forward-dynamics, least deviation, mm", 0.05, 0.006, KDL),
    within("forward-dynamics, largest deviation, mm", 0.11, 0.005, KDL),
    within("forward-dynamics, first 1 mm, iterations", 2400, 50, KDL),
    within("forward-dynamics, last 1 mm, iterations", 2400, 50, KDL),
    within("jacobian-transpose, least deviation, mm", 36.0, 0.5, KDL),
    within("jacobian-transpose, largest deviation, mm", 97.0, 0.5, KDL),
    within("jacobian-transpose, first 1 mm, iterations", 37_000, 500, KDL),
    within("jacobian-transpose, last 1 mm, iterations", 45_000, 500, KDL),
)

# Width of the plot for each solver, width of its labels on the left, and height, inches.
SOLVER_WIDTH = 3.1
LABEL_WIDTH = 0.6
PLOT_HEIGHT = 3.9
# Headings of the table of results.
COLUMNS = ("solver", "edge", "deviation, mm", "iterations to 1 mm")


@dataclass(frozen=True)
class Edge:
    """The path of one solver along one edge.

    Attributes:
        start: Corner at which it begins (3,), m.
        goal: Corner at which it should end (3,), m.
        points: Position of the tool before the first and after every step (S + 1, 3), m.
        iterations: Number of iterations per step.
    """

    start: Array
    goal: Array
    points: Array
    iterations: int

    @property
    def deviation(self) -> float:
        """The largest distance from the straight line between the corners, m."""
        direction = (self.goal - self.start) / np.linalg.norm(self.goal - self.start)
        offsets = self.points - self.start
        # The part of each offset across the line: without its projection on the direction.
        along = (offsets @ direction)[:, None] * direction
        return float(np.linalg.norm(offsets - along, axis=1).max())

    @property
    def arrival(self) -> float:
        """Iterations after which the tool stays within `ARRIVED` of the goal, or NaN."""
        distances = np.linalg.norm(self.goal - self.points, axis=1)
        return self.iterations * arrival_index(distances, ARRIVED)


def measure(
    robot: Robot, solvers: Mapping[str, Solver], layout: SquareLayout, steps: int = PAPER_STEPS
) -> dict[str, list[Edge]]:
    """Move every solver along the four edges, each from the same posture at the edge's start.

    Args:
        robot: The arm.
        solvers: Solvers by name.
        layout: The square.
        steps: Number of steps from corner to corner.

    Raises:
        TargetOutOfReach: The arm does not reach a corner.
    """
    targets = corners(layout.side, layout.centre, orientation=layout.orientation).poses[:4]
    starts = [start_posture(robot, target) for target in targets]

    edges: dict[str, list[Edge]] = {name: [] for name in solvers}
    for name, solver in solvers.items():
        for corner in range(4):
            goal = targets[(corner + 1) % 4]
            joints = solver.track(np.tile(goal, (steps, 1)), starts[corner])
            points = tool_path(robot, np.vstack([starts[corner], joints]))[:, :3]
            edges[name].append(Edge(targets[corner, :3], goal[:3], points, solver.iterations))
    return edges


def figures(edges: Mapping[str, list[Edge]]) -> dict[str, float]:
    """Return the smallest and the largest values over the four edges of each solver, by name."""
    values: dict[str, float] = {}
    for name, solver_edges in edges.items():
        deviations = [1e3 * edge.deviation for edge in solver_edges]
        arrivals = [edge.arrival for edge in solver_edges]
        values[f"{name}, least deviation, mm"] = min(deviations)
        values[f"{name}, largest deviation, mm"] = max(deviations)
        values[f"{name}, first 1 mm, iterations"] = float(np.min(arrivals))
        values[f"{name}, last 1 mm, iterations"] = float(np.max(arrivals))
    return values


def run(parameters: InterpolationParameters) -> Outcome:
    """Run the experiment."""
    arm = choose_arm(parameters)
    # A single kp is the stiffness of the translation; a tenth of it applies to the rotation.
    settings = {"dt": DT, "iterations": parameters.iterations, "kp": (parameters.kp,)}
    solvers = make_solvers(arm.robot, parameters.solver, **settings)

    # Move every solver along the edges of a square that the arm can follow.
    layout = choose_layout(arm.robot)
    edges = measure(arm.robot, solvers, layout, parameters.steps)

    # Figures are known only for the paper's arm with the paper's settings.
    has_paper_settings = (
        parameters.steps == PAPER_STEPS
        and parameters.iterations == PAPER_ITERATIONS
        and parameters.kp == PAPER_KP
    )
    is_known = is_paper_arm(arm.robot) and has_paper_settings
    return Outcome(
        figures=figures(edges),
        expected=EXPECTED if is_known else (),
        data={
            "arm": arm.as_data(),
            "square": layout.as_data(),
            "edges": {name: _edge_data(solver_edges) for name, solver_edges in edges.items()},
        },
        tables=[ResultTable("Corner to corner", COLUMNS, _rows(edges))],
        plots={"interpolation.png": _plot(edges)},
        notes=[*arm.notes, layout.note],
    )


def _edge_data(edges: list[Edge]) -> list[dict[str, object]]:
    """Return the edges of a solver for JSON."""
    return [
        {
            "deviation_m": edge.deviation,
            "iterations_to_1_mm": edge.arrival,
            "points": edge.points.tolist(),
        }
        for edge in edges
    ]


def _rows(edges: Mapping[str, list[Edge]]) -> list[tuple[str, ...]]:
    """Return a row under `COLUMNS` for each edge; the first row of a solver has its name."""
    rows: list[tuple[str, ...]] = []
    for name, solver_edges in edges.items():
        for edge_number, edge in enumerate(solver_edges, start=1):
            rows.append(
                (
                    name if edge_number == 1 else "",
                    str(edge_number),
                    format_number(1e3 * edge.deviation),
                    format_iterations(edge.arrival),
                )
            )
    return rows


def _plot(edges: Mapping[str, list[Edge]]) -> Plot:
    """Return a plot with a square for each solver, seen from above.

    It has a dot for each step: the farther apart the dots, the faster the tool.
    """

    def draw(figure: Figure) -> None:
        """Draw the outline of the square and the path of each solver."""
        panels = figure.subplots(1, len(edges), squeeze=False, sharex=True, sharey=True)[0]
        for axes, (name, solver_edges) in zip(panels, edges.items(), strict=True):
            # The first corner again closes the outline.
            outline = np.array([edge.start for edge in (*solver_edges, solver_edges[0])])
            axes.plot(outline[:, 0], outline[:, 1], color=REFERENCE, linewidth=3.0, alpha=0.6)
            for edge in solver_edges:
                x = edge.points[:, 0]
                y = edge.points[:, 1]
                axes.plot(x, y, ".", markersize=3.5, color=solver_colour(name))

            deviation = max(edge.deviation for edge in solver_edges)
            axes.set_title(f"{name}\nmax deviation {format_number(1e3 * deviation)} mm")
            axes.set_aspect("equal")
            axes.set_xlabel("x, m")
        panels[0].set_ylabel("y, m")

    return Plot(LABEL_WIDTH + SOLVER_WIDTH * len(edges), PLOT_HEIGHT, draw)
