"""A solver from a start to a goal, one iteration at a time, as the applets of textbooks show it."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, NamedTuple

import numpy as np
import pinocchio as pin

from simbridge.browser.setup import StudioSetup
from simbridge.ik.checks import POSITIVE, WHOLE, choice_of
from simbridge.ik.diagnosis import Diagnosis
from simbridge.ik.parameters import setting
from simbridge.ik.settings import is_function
from simbridge.ik.solver import Solver
from simbridge.robot.kinematics import joint_origins, tool_frame
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import degrees, millimetres

# How many iterations at the end show how a run ends.
ENDING_ITERATIONS = 20
# Relative to the error, a smaller change of it counts as none.
MIN_CHANGE = 1e-6


@dataclass(frozen=True)
class IterateSettings:
    """The end of iterations, and how they are shown."""

    # One number for both: m for the distance, rad for the angle. The page shows it in mm.
    threshold: float = setting(1e-3, POSITIVE, unit="mm", scale=1e-3)
    """The arm halts within this distance of the goal, in mm (rotation: the same number of mrad)."""
    iteration_limit: int = setting(500, WHOLE)
    """A run that has not come this close stops after this many iterations."""
    frame_time: float = setting(0.06, POSITIVE, slider=(0.01, 1.0), unit="ms", scale=1e-3)
    """How long each posture is shown."""
    slow_in_slow_out: Literal["on", "off"] = setting("on", choice_of("on", "off"))
    """on: the first and last postures are shown longer, those in between shorter."""

    def __post_init__(self) -> None:
        for item in fields(self):
            item.metadata["check"](item.name, getattr(self, item.name))


class Iterate(NamedTuple):
    """The arm after an iteration.

    Attributes:
        number: 0 is the start.
        q: Joint positions (n,), rad.
        distance: Remaining to the goal, m, in what the task constrains.
        angle: Remaining to the goal, rad, in what the task constrains.
        points: The joints' origins and the TCP (n + 1, 3) in base_link, m.
        duration: Computing time of all iterations until then, s.
    """

    number: int
    q: Array
    distance: float
    angle: float
    points: Array
    duration: float

    def is_within(self, threshold: float) -> bool:
        """Return whether the distance, m, and the angle, rad, are both within a threshold."""
        return max(self.distance, self.angle) <= threshold


def single_step_solver(setup: StudioSetup) -> Solver:
    """Return the setup's solver, which makes one iteration a step."""
    settings = setup.solver_settings
    if is_function(setup.solver):
        return setup.make_solver(setup.arm)
    if any(item.name == "iterations" for item in fields(settings)):
        settings = replace(settings, iterations=1)
    solver: Solver = settings.build(setup.arm)
    return solver


def iterate(
    solver: Solver, start: Array, goal: pin.SE3, settings: IterateSettings | None = None
) -> Iterator[Iterate]:
    """Yield the arm at the start and after each iteration.

    It ends within the threshold of the goal, or at the limit of iterations.

    Args:
        solver: A solver that `single_step_solver` has made.
        start: Joint positions (n,), rad.
        goal: The goal, in base_link.
        settings: Settings of the iteration, which say when it ends.

    Raises:
        SimbridgeError: The solver cannot solve for this goal.
    """
    settings = settings or IterateSettings()
    robot = solver.robot
    target = pin.SE3ToXYZQUAT(goal)
    q = np.asarray(start, dtype=float)
    duration = 0.0

    # Compiling at the first step does not count as the time of an iteration.
    solver.reset(q)
    solver.step(target)
    solver.reset(q)

    for number in range(settings.iteration_limit + 1):
        distance, angle = Diagnosis(robot, q, target, number, solver.task).residual
        origins = joint_origins(robot.placements, robot.prismatic, q[None])[0]
        points = np.vstack([origins, tool_frame(robot, q).translation])
        current = Iterate(number, q, distance, angle, points, duration)
        yield current

        if current.is_within(settings.threshold) or number == settings.iteration_limit:
            return
        begin = time.perf_counter()
        q = solver.step(target)
        duration += time.perf_counter() - begin


def iterate_to_end(
    setup: StudioSetup, start: Array, goal: pin.SE3, settings: IterateSettings
) -> tuple[list[Iterate], str]:
    """Return all iterates of a setup's solver, and how it ended, as a sentence.

    Args:
        setup: The solver and the arm.
        start: Joint positions (n,), rad.
        goal: The goal, in base_link.
        settings: Settings of the iteration, which say when it ends.
    """
    iterates = list(iterate(single_step_solver(setup), start, goal, settings))
    last = iterates[-1]
    remaining = f"{millimetres(last.distance)} mm"

    if last.is_within(settings.threshold):
        effort = f"{last.number} iterations and {1e3 * last.duration:.2f} ms of computing"
        return iterates, f"Reached the goal after {effort}: {remaining} remaining."

    if last.angle > 0.0:
        remaining += f" and {degrees(last.angle)}°"
    shortest = min(item.distance for item in iterates)
    best = f"at best it was {millimetres(shortest)} mm"
    sentence = (
        f"Not reached after {last.number} iterations: {remaining} remaining, {best}. "
        f"{_explain_ending(iterates)}"
    )
    return iterates, sentence


def _explain_ending(iterates: Sequence[Iterate]) -> str:
    """Return what the error of the last iterations means, for a run that missed the goal."""
    # A turn of 1 rad counts as 1 m.
    errors = [item.distance + item.angle for item in iterates[-ENDING_ITERATIONS:]]
    changes = np.diff(errors)
    # Smaller changes count as none.
    min_change = MIN_CHANGE * errors[-1]
    falls = bool((changes < -min_change).any())
    rises = bool((changes > min_change).any())

    if falls and rises:
        return (
            "It oscillates: the error fell and rose at the end. "
            "Smaller steps or more damping may help."
        )
    if falls:
        return "It is still converging: a higher iteration limit may be enough."
    if rises:
        return "It is moving away from the goal: smaller steps or more damping may help."
    return "It does not get any closer: the pose may be out of reach, or the solver is stuck."


def iterations_csv(robot: Robot, iterates: Sequence[Iterate]) -> str:
    """Return a row for each iteration.

    A row has the joint positions, the end points of the links, and what remains to the goal.
    """
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")

    header = ["iteration"]
    header += [f"{name}_rad" for name in robot.joint_names]
    header += [f"{name}_end_{axis}_m" for name in robot.joint_names for axis in "xyz"]
    header += ["distance_m", "angle_rad"]
    rows.writerow(header)

    for item in iterates:
        # The end of a link is where the next joint is, that of the last one the TCP.
        end_points = item.points[1:].ravel().tolist()
        numbers = [*item.q.tolist(), *end_points, item.distance, item.angle]
        rows.writerow([item.number, *map(repr, numbers)])
    return text.getvalue()


def slow_in_slow_out(count: int) -> Array:
    """Return how long each of several frames is shown (count,), relative to the mean.

    The first and the last ones are shown longer.
    """
    if count < 2:
        return np.ones(count)
    weights: Array = 1.0 + np.cos(2.0 * np.pi * np.linspace(0.0, 1.0, count))
    return weights / weights.mean() * 0.8 + 0.2
