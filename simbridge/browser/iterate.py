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

from simbridge.browser.setup import IterateSettings, StudioSetup
from simbridge.ik.solver import Diagnosis, Solver
from simbridge.robot.kinematics import joint_origins, tool_frame
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import degrees, millimetres

# The last iterations, which show how a run ends.
_LAST = 20


class Iterate(NamedTuple):
    """The arm after an iteration.

    Attributes:
        number: 0 is the start.
        q: Joint positions (n,), rad.
        distance, angle: Left to the goal, m and rad, in what the task constrains.
        points: The joints' origins and the TCP (n + 1, 3) in base_link, m.
        took: Computing time of all iterations until then, s.
    """

    number: int
    q: Array
    distance: float
    angle: float
    points: Array
    took: float


def one_iteration(setup: StudioSetup) -> Solver:
    """The setup's solver, which makes one iteration a step."""
    settings = setup.solver_settings
    if any(own.name == "iterations" for own in fields(settings)):
        settings = replace(settings, iterations=1)
    solver: Solver = settings.build(setup.arm)
    return solver


def iterates(
    solver: Solver, start: Array, goal: pin.SE3, settings: IterateSettings | None = None
) -> Iterator[Iterate]:
    """The start, joint positions (n,), rad, and the arm after each iteration of the solver of `one_iteration`.

    It ends within the threshold of the goal, a pose in base_link, or at the limit of iterations.

    Raises:
        SimbridgeError: The solver cannot solve for this goal.
    """
    settings, robot = settings or IterateSettings(), solver.robot
    target, q, took = pin.SE3ToXYZQUAT(goal), np.asarray(start, dtype=float), 0.0
    solver.reset(q)
    # What is compiled at the first step is no time of an iteration.
    solver.step(target)
    solver.reset(q)
    for number in range(settings.iteration_limit + 1):
        distance, angle = Diagnosis(robot, q, target, number, solver.task).residual
        origins = joint_origins(robot.placements, robot.prismatic, q[None])[0]
        points = np.vstack([origins, tool_frame(robot, q).translation])
        yield Iterate(number, q, distance, angle, points, took)
        if max(distance, angle) <= settings.threshold or number == settings.iteration_limit:
            return
        begin = time.perf_counter()
        q = solver.step(target)
        took += time.perf_counter() - begin


def iterated(
    setup: StudioSetup, start: Array, goal: pin.SE3, settings: IterateSettings
) -> tuple[list[Iterate], str]:
    """All iterates of a setup's solver, and how it ended, as a sentence. Arguments: see `iterates`."""
    found = list(iterates(one_iteration(setup), start, goal, settings))
    last, least = found[-1], min(one.distance for one in found)
    left = f"{millimetres(last.distance)} mm"
    if max(last.distance, last.angle) <= settings.threshold:
        took = f"{last.number} iterations and {1e3 * last.took:.2f} ms of computing"
        return found, f"At the goal after {took}: {left} are left."
    # A turn of 1 rad counts as 1 m.
    steps = np.diff([one.distance + one.angle for one in found[-_LAST:]])
    tiny = 1e-6 * (last.distance + last.angle)
    left += f" and {degrees(last.angle)}°" if last.angle > 0.0 else ""
    ending = _ENDINGS[bool((steps < -tiny).any()), bool((steps > tiny).any())]
    best = f"at best it was {millimetres(least)} mm"
    return found, f"Not attained after {last.number} iterations: {left} are left, {best}. {ending}"


# Whether the error fell in the last iterations, and whether it rose.
_ENDINGS = {
    (
        True,
        True,
    ): "It oscillates: the error fell and rose at the end. Smaller steps or more damping may help.",
    (True, False): "It is still converging: a higher limit may be enough.",
    (False, True): "It moves away from the goal: smaller steps or more damping may help.",
    (
        False,
        False,
    ): "It does not come nearer: the pose may be out of reach, or the solver is stuck.",
}


def iterations_csv(robot: Robot, found: Sequence[Iterate]) -> str:
    """A row an iteration: joint positions, the end points of the links, and what is left to the goal."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    ends = [f"{name}_end_{axis}_m" for name in robot.joint_names for axis in "xyz"]
    rows.writerow(
        [
            "iteration",
            *(f"{name}_rad" for name in robot.joint_names),
            *ends,
            "distance_m",
            "angle_rad",
        ]
    )
    for one in found:
        # The end of a link is where the next joint is, that of the last one the TCP.
        points = one.points[1:].ravel().tolist()
        rows.writerow(
            [
                one.number,
                *map(repr, one.q.tolist()),
                *map(repr, points),
                repr(one.distance),
                repr(one.angle),
            ]
        )
    return text.getvalue()


def slow_in_slow_out(count: int) -> Array:
    """Of each of so many frames, how long it is shown, relative to the mean: longer at the beginning and at the end."""
    if count < 2:
        return np.ones(count)
    weights: Array = 1.0 + np.cos(2.0 * np.pi * np.linspace(0.0, 1.0, count))
    return weights / weights.mean() * 0.8 + 0.2
