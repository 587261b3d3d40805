"""Experiment C: from each corner of a square to the next, with only the corner as target. How straight is the path?

dt = 0.1, Kp = diag(1, 1, 1, 0.1, 0.1, 0.1), N = 50 iterations per step, no clamps; the Jacobian transpose with its
alpha.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from simbridge.experiments import KDL, InterpolationParameters
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
    DT,
    Layout,
    choose_arm,
    choose_layout,
    is_paper_arm,
    make_solvers,
    start_posture,
)
from simbridge.ik.solver import Solver
from simbridge.report.palette import REFERENCE
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.trajectory.shapes import corners

ARRIVED = 0.001
"""Distance from the goal that counts as arrived, m."""

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
"""On a UR10."""


@dataclass(frozen=True)
class Edge:
    """The path of one solver along one edge.

    Attributes:
        start, goal: Corners (3,), m.
        points: The tool before the first and after every step (S + 1, 3), m.
        iterations: Per step.
    """

    start: Array
    goal: Array
    points: Array
    iterations: int

    @property
    def deviation(self) -> float:
        """The largest distance from the straight line between the corners, m."""
        along = (self.goal - self.start) / np.linalg.norm(self.goal - self.start)
        offset = self.points - self.start
        across = offset - (offset @ along)[:, None] * along
        return float(np.linalg.norm(across, axis=1).max())

    @property
    def arrival(self) -> float:
        """Iterations after which the tool stays within `ARRIVED` of the goal; not a number if it does not arrive."""
        return self.iterations * arrival(np.linalg.norm(self.goal - self.points, axis=1), ARRIVED)


def measure(
    robot: Robot, solvers: Mapping[str, Solver], place: Layout, steps: int = 1000
) -> dict[str, list[Edge]]:
    """Every solver along the four edges, each from the same posture at the edge's start.

    Raises:
        TargetOutOfReach: The arm does not reach a corner.
    """
    targets = corners(place.side, place.centre, orientation=place.orientation).poses[:4]
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
    """Smallest and largest over the four edges of every solver."""
    found: dict[str, float] = {}
    for name, four in edges.items():
        deviations, arrivals = (
            [1e3 * edge.deviation for edge in four],
            [edge.arrival for edge in four],
        )
        found[f"{name}, least deviation, mm"] = min(deviations)
        found[f"{name}, largest deviation, mm"] = max(deviations)
        found[f"{name}, first 1 mm, iterations"] = float(np.min(arrivals))
        found[f"{name}, last 1 mm, iterations"] = float(np.max(arrivals))
    return found


def run(parameters: InterpolationParameters) -> Outcome:
    """The command."""
    arm = choose_arm(parameters)
    settings = {"dt": DT, "iterations": parameters.iterations, "kp": (parameters.kp,)}
    solvers = make_solvers(arm.robot, parameters.solver, **settings)
    place = choose_layout(arm.robot)
    edges = measure(arm.robot, solvers, place, parameters.steps)
    known = is_paper_arm(arm.robot) and (
        parameters.steps,
        parameters.iterations,
        parameters.kp,
    ) == (1000, 50, 1.0)
    rows = [
        (
            name if index == 1 else "",
            str(index),
            number(1e3 * edge.deviation),
            iterations(edge.arrival),
        )
        for name, four in edges.items()
        for index, edge in enumerate(four, start=1)
    ]
    return Outcome(
        figures=figures(edges),
        expected=EXPECTED if known else (),
        data={
            "arm": arm.as_data(),
            "square": place.as_data(),
            "edges": {
                name: [
                    {
                        "deviation_m": e.deviation,
                        "iterations_to_1_mm": e.arrival,
                        "points": e.points.tolist(),
                    }
                    for e in four
                ]
                for name, four in edges.items()
            },
        },
        tables=[
            Table(
                "Corner to corner", ("solver", "edge", "deviation, mm", "iterations to 1 mm"), rows
            )
        ],
        plots={"interpolation.png": _plot(edges)},
        notes=[*arm.notes, place.note],
    )


def _plot(edges: Mapping[str, list[Edge]]) -> Plot:
    """A square per solver, seen from above, with a dot per step: the further apart, the faster."""

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, len(edges), squeeze=False, sharex=True, sharey=True)[0]
        for axes, (name, four) in zip(panels, edges.items(), strict=True):
            outline = np.array([edge.start for edge in (*four, four[0])])
            axes.plot(outline[:, 0], outline[:, 1], color=REFERENCE, linewidth=3.0, alpha=0.6)
            for edge in four:
                axes.plot(
                    edge.points[:, 0],
                    edge.points[:, 1],
                    ".",
                    markersize=3.5,
                    color=solver_colour(name),
                )
            axes.set_aspect("equal")
            axes.set_title(
                f"{name}\nmax deviation {number(1e3 * max(edge.deviation for edge in four))} mm"
            )
            axes.set_xlabel("x, m")
        panels[0].set_ylabel("y, m")

    return Plot(0.6 + 3.1 * len(edges), 3.9, draw)
