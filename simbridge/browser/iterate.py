"""A solver from a start to a goal, one iteration at a time, as the applets of textbooks show it."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from simbridge.browser.setup import StudioSetup
from simbridge.errors import SimbridgeError
from simbridge.ik.solver import Diagnosis, Solver
from simbridge.robot.kinematics import joint_origins, tool_frame
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import millimetres

THRESHOLD = 1e-3
"""Distance from the goal at which the arm halts where none is chosen, m (and rad)."""
LIMIT = 500
"""Iterations after which a run ends where none is chosen."""


class Iterate(NamedTuple):
    """The arm after an iteration.

    Attributes:
        number: 0 is the start.
        q: Joint positions (n,), rad.
        distance, angle: Left to the goal, m and rad, in what the task constrains.
        points: The joints' origins and the TCP (n + 1, 3), m.
        took: Computing time of all iterations until then, s.
    """

    number: int
    q: Array
    distance: float
    angle: float
    points: Array
    took: float


class NotAttained(SimbridgeError, RuntimeError):
    """The iterations ended before the goal was attained.

    Attributes:
        iterations: How many.
        distance: Left to the goal, m.
        least: The least distance on the way, m.
    """

    def __init__(self, iterations: int, distance: float, least: float) -> None:
        self.iterations, self.distance, self.least = iterations, distance, least
        swings = " It swings about the goal" if distance > 1.5 * least else " It has come no nearer"
        super().__init__(
            f"Not attained after {iterations} iterations: {1e3 * distance:.3g} mm are left, at best it was "
            f"{1e3 * least:.3g} mm.{swings}; smaller steps, more damping or a goal in reach may help."
        )


def one_iteration(setup: StudioSetup) -> Solver:
    """The setup's solver, which makes one iteration a step."""
    settings = setup.solver_settings
    if any(own.name == "iterations" for own in fields(settings)):
        settings = replace(settings, iterations=1)
    solver: Solver = settings.build(setup.arm)
    return solver


def iterates(
    solver: Solver, start: Array, goal: pin.SE3, *, threshold: float = THRESHOLD, limit: int = LIMIT
) -> Iterator[Iterate]:
    """The start, and the arm after each iteration, until it is within the threshold of the goal.

    Args:
        solver: See `one_iteration`.
        start: Joint positions (n,), rad.
        goal: In base_link.
        threshold: Of the distance in m, and of the angle in rad.
        limit: Iterations.

    Raises:
        NotAttained: It was not attained within the limit; what was found until then has been yielded.
        SimbridgeError: The solver cannot solve for this goal.
    """
    target, q, took, least = pin.SE3ToXYZQUAT(goal), np.asarray(start, dtype=float), 0.0, np.inf
    solver.reset(q)
    for number in range(limit + 1):
        distance, angle = Diagnosis(solver.robot, q, target, number, solver.task).residual
        yield Iterate(number, q, distance, angle, end_points(solver.robot, q), took)
        least = min(least, distance)
        if distance <= threshold and angle <= threshold:
            return
        begin = time.perf_counter()
        q = solver.step(target)
        took += time.perf_counter() - begin
    raise NotAttained(limit, distance, least)


def iterated(
    setup: StudioSetup, start: Array, goal: pin.SE3, threshold: float, limit: int
) -> tuple[list[Iterate], str]:
    """All iterates of a setup's solver, and how it ended, as a sentence. Arguments: see `iterates`."""
    found: list[Iterate] = []
    try:
        for one in iterates(one_iteration(setup), start, goal, threshold=threshold, limit=limit):
            found.append(one)
    except NotAttained as error:
        return found, str(error)
    last = found[-1]
    left = f"{millimetres(last.distance)} mm are left"
    return found, f"{last.number} iterations in {1e3 * last.took:.2f} ms of computing: {left}."


def end_points(robot: Robot, q: Array) -> Array:
    """The joints' origins and the TCP (n + 1, 3) in base_link, m."""
    origins = joint_origins(robot.placements, robot.prismatic, q[None])[0]
    return np.vstack([origins, tool_frame(robot, q).translation])


def iterations_csv(robot: Robot, found: Sequence[Iterate]) -> str:
    """A row an iteration: joint positions, the end points of the links, and what is left to the goal."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    ends = [f"{name}_end_{axis}_m" for name in robot.joint_names for axis in "xyz"]
    rows.writerow(["iteration", *(f"{name}_rad" for name in robot.joint_names), *ends, "distance_m", "angle_rad"])
    for one in found:
        # The end of a link is where the next joint is, that of the last one the TCP.
        points = one.points[1:].ravel().tolist()
        rows.writerow([one.number, *map(repr, one.q.tolist()), *map(repr, points), repr(one.distance), repr(one.angle)])
    return text.getvalue()


def slow_in_slow_out(count: int) -> Array:
    """Of each of so many frames, how long it is shown, relative to the mean: longer at the beginning and at the end."""
    if count < 2:
        return np.ones(count)
    place = np.linspace(0.0, 1.0, count)
    weights: Array = 1.0 + np.cos(2.0 * np.pi * place)
    return weights / weights.mean() * 0.8 + 0.2
