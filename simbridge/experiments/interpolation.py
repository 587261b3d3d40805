"""Experiment C: from each corner of a square to the next, with only the corner as target. How straight is the way?

dt = 0.1, Kp = diag(1, 1, 1, 0.1, 0.1, 0.1), N = 50 iterations a step, no clamps; the Jacobian transpose with its alpha.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from simbridge.experiments.arm import arm
from simbridge.experiments.drawing import WANTED, Picture, colour_of
from simbridge.experiments.layout import Layout, layout, posture_at
from simbridge.experiments.outcome import Outcome, Table, between, compared, near, written
from simbridge.experiments.parameters import InterpolationParameters
from simbridge.experiments.setting import DT, distinct, is_the_papers, solver_named
from simbridge.ik.solver import Solver
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import plain
from simbridge.trajectory.shapes import corners

CLOSE = 0.001
"""What counts as arrived, m."""

_KDL = "an independent C++ implementation on Orocos KDL"
EXPECTED = (
    near("forward-dynamics, least deviation, mm", 0.05, 0.006, _KDL),
    near("forward-dynamics, largest deviation, mm", 0.11, 0.005, _KDL),
    between("forward-dynamics, first 1 mm, iterations", 2350, 2450, _KDL),
    between("forward-dynamics, last 1 mm, iterations", 2350, 2450, _KDL),
    near("jacobian-transpose, least deviation, mm", 36.0, 0.5, _KDL),
    near("jacobian-transpose, largest deviation, mm", 97.0, 0.5, _KDL),
    between("jacobian-transpose, first 1 mm, iterations", 36_500, 37_500, _KDL),
    between("jacobian-transpose, last 1 mm, iterations", 44_500, 45_500, _KDL),
)
"""Of a UR10."""


@dataclass(frozen=True)
class Edge:
    """The way of one solver along one edge.

    Attributes:
        start, goal: Corners (3,), m.
        points: The tool before the first and after every step (S + 1, 3), m.
        iterations: A step.
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
        """Iterations after which the tool stays within `CLOSE` of the goal; not a number if it does not get there."""
        away = np.flatnonzero(np.linalg.norm(self.goal - self.points, axis=1) > CLOSE)
        last = int(away[-1]) + 1 if len(away) else 0
        return float(last * self.iterations) if last < len(self.points) else math.nan


def measure(robot: Robot, solvers: Mapping[str, Solver], place: Layout, steps: int = 1000) -> dict[str, list[Edge]]:
    """Every solver along the four edges, each from the same posture at the edge's start.

    Raises:
        TargetOutOfReach: The arm does not reach a corner.
    """
    targets = corners(place.side, place.centre, orientation=place.orientation).poses[:4]
    starts = [posture_at(robot, target) for target in targets]
    edges: dict[str, list[Edge]] = {name: [] for name in solvers}
    for name, solver in solvers.items():
        for corner in range(4):
            goal = targets[(corner + 1) % 4]
            joints = solver.track(np.tile(goal, (steps, 1)), starts[corner])
            points = tool_path(robot, np.vstack([starts[corner], joints]))[:, :3]
            edges[name].append(Edge(targets[corner, :3], goal[:3], points, solver.iterations))
    return edges


def figures(edges: Mapping[str, list[Edge]]) -> dict[str, float]:
    """Least and largest over the four edges."""
    found: dict[str, float] = {}
    for name, four in edges.items():
        deviations = [1e3 * edge.deviation for edge in four]
        arrivals = [edge.arrival for edge in four]
        found[f"{name}, least deviation, mm"] = min(deviations)
        found[f"{name}, largest deviation, mm"] = max(deviations)
        found[f"{name}, first 1 mm, iterations"] = float(np.min(arrivals))
        found[f"{name}, last 1 mm, iterations"] = float(np.max(arrivals))
    return found


def run(parameters: InterpolationParameters) -> Outcome:
    """The command."""
    chosen = arm(parameters)
    robot = chosen.robot
    settings = {"dt": DT, "iterations": parameters.iterations, "kp": (parameters.kp,)}
    solvers = {name: solver_named(robot, name, **settings) for name in distinct(parameters.solver)}
    place = layout(robot)
    edges = measure(robot, solvers, place, parameters.steps)
    found = figures(edges)
    rows = [
        (
            name if number == 1 else "",
            str(number),
            written(1e3 * edge.deviation),
            plain(edge.arrival) if math.isfinite(edge.arrival) else "never",
        )
        for name, four in edges.items()
        for number, edge in enumerate(four, start=1)
    ]
    known = is_the_papers(robot) and (parameters.steps, parameters.iterations, parameters.kp) == (1000, 50, 1.0)
    return Outcome(
        figures=found,
        comparisons=compared(found, EXPECTED, known),
        data={
            "arm": chosen.as_data(),
            "square": place.as_data(),
            "edges": {
                name: [
                    {
                        "deviation_m": edge.deviation,
                        "iterations_to_1_mm": edge.arrival,
                        "points": edge.points.tolist(),
                    }
                    for edge in four
                ]
                for name, four in edges.items()
            },
        },
        tables=[Table("Corner to corner", ("solver", "edge", "off the line, mm", "1 mm after iterations"), rows)],
        pictures={"interpolation.png": _squares(edges)},
        notes=[*chosen.notes, *filter(None, [place.note])],
    )


def _squares(edges: Mapping[str, list[Edge]]) -> Picture:
    """A square a solver, seen from above: a dot a step, so that wide spaces are fast."""

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, len(edges), squeeze=False, sharex=True, sharey=True)[0]
        for axes, (name, four) in zip(panels, edges.items(), strict=True):
            outline = np.array([edge.start for edge in (*four, four[0])])
            axes.plot(outline[:, 0], outline[:, 1], color=WANTED, linewidth=3.0, alpha=0.6)
            for edge in four:
                axes.plot(edge.points[:, 0], edge.points[:, 1], ".", markersize=3.5, color=colour_of(name))
            axes.set_aspect("equal")
            axes.set_title(f"{name}\noff by at most {written(1e3 * max(edge.deviation for edge in four))} mm")
            axes.set_xlabel("x, m")
        panels[0].set_ylabel("y, m")

    return Picture(0.6 + 3.1 * len(edges), 3.9, draw)
