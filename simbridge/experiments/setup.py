"""The setup of an experiment: its arm, with a task and a home that suit it, and its solvers with the paper's settings.

An experiment does not begin where the arm is singular: the tool cannot move in some direction, and the first step of
every solver would be about that. An arm of few joints cannot bring its tool to any pose.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.experiments import ExperimentParameters, FromHome
from simbridge.ik.callable_solver import named_solver
from simbridge.ik.settings import SOLVERS
from simbridge.ik.solver import Solver
from simbridge.planning.options import Options
from simbridge.robot import Task
from simbridge.robot.home import TASK_WORDS, with_found_home
from simbridge.robot.kinematics import controllable_task, movable_directions, span, task_directions, task_jacobians
from simbridge.robot.load import load_robot
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import counted

DT = 0.1
"""The virtual time step of experiments C and D, s."""
SINGULAR = 0.02
"""Smallest over largest singular value, below which an experiment does not begin in a posture. A UR arm's home has 0.14
to 0.2."""


@dataclass(frozen=True)
class Arm:
    """An arm that can begin.

    Attributes:
        robot: With its tool, its task and its home, where the experiment begins.
        notes: Sentences on what was chosen where no flag was given, and on a home that makes a poor start.
    """

    robot: Robot
    notes: tuple[str, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        return {"task": self.robot.task, "home": self.robot.home.tolist(), "notes": [*self.robot.notes, *self.notes]}


def choose_arm(parameters: ExperimentParameters) -> Arm:
    """The arm of an experiment.

    Raises:
        UnknownName, InputFileError, InvalidHome: There is no such robot, or no such home.
        InvalidParameter: The link lengths or the TCP are invalid.
    """
    home = parameters.home if isinstance(parameters, FromHome) else ()
    robot = load_robot(parameters.robot, home=home or None, lengths=parameters.link_lengths or None)
    robot, notes = _with_task(Options(tcp=parameters.tcp or ()).equipped(robot), parameters.task)
    if isinstance(parameters, FromHome):
        robot, more = _with_home(robot, given=bool(home))
        notes += more
    return Arm(robot, notes)


def make_solver(robot: Robot, name: str, **settings: Any) -> Solver:
    """A solver with those of the settings that it has, and its defaults for the rest.

    A solver that has the paper's gains runs as the paper's plain algorithm, without clamps, when gains are given. A
    custom function, `module:function`, has no settings; one call of it counts as an iteration.

    Raises:
        UnknownName: There is no such solver.
        ForeignSolverError: It is a function that cannot be imported.
        NoClosedForm: It is the closed form and the arm has none.
        UnstableSolver: The settings are at or past the stability bound.
    """
    known = {field.name for field in fields(SOLVERS[name])} if name in SOLVERS else set()
    if has_gain(name) and "kp" in settings:
        settings |= {"error_clamp": (math.inf, math.inf), "step_clamp": math.inf}
    return named_solver(robot, name, {key: value for key, value in settings.items() if key in known})


def has_gain(name: str) -> bool:
    """Whether a solver has the paper's gain kp."""
    return name in SOLVERS and "kp" in {field.name for field in fields(SOLVERS[name])}


def make_solvers(robot: Robot, names: Iterable[str], **settings: Any) -> dict[str, Solver]:
    """The solvers of these names, as `make_solver` makes them.

    Raises:
        InvalidParameter: There is none.
    """
    return {name: make_solver(robot, name, **settings) for name in unique_solvers(names)}


def unique_solvers(names: Iterable[str]) -> list[str]:
    """Solver names without repetition, in the order given.

    Raises:
        InvalidParameter: There is none.
    """
    unique = list(dict.fromkeys(names))
    if not unique:
        raise InvalidParameter("solver", "()", f"one or more of {', '.join(SOLVERS)}")
    return unique


def is_paper_arm(robot: Robot) -> bool:
    """Whether this is the arm whose figures are known: a UR10 from its own home, without a tool, for whole poses."""
    bare = np.allclose(robot.tcp.homogeneous, np.eye(4), atol=1e-12)
    unchanged = robot.file_home is None and robot.calibration is None
    return robot.name == "ur10" and unchanged and bare and robot.task == "pose"


def dexterity(robot: Robot, joints: Array) -> Array:
    """Smallest over largest singular value (T,) of the task's Jacobian at postures (T, n): 0 where it is singular.

    The unit of length is half the arm's reach. Directions in which the arm never moves are left out.
    """
    jacobians = task_jacobians(robot.placements, robot.prismatic, joints, robot.task)
    jacobians[:, :3] /= max(0.5 * span(robot), 1e-3)
    values = np.linalg.svd(jacobians, compute_uv=False)
    last = min(movable_directions(robot.placements, robot.prismatic, robot.task), robot.n) - 1
    return np.asarray(values[:, last] / values[:, 0])


def _with_task(robot: Robot, given: Task | None) -> tuple[Robot, tuple[str, ...]]:
    if given is not None:
        return replace(robot, task=given), ()
    task = controllable_task(robot)
    if task == robot.task:
        # Or it does not even control its tool's position: an experiment that needs this refuses with the reason.
        return robot, ()
    overall, at_a_time = task_directions(robot, robot.task)
    return replace(robot, task=task), (
        f"The tool of {robot.name} can move in {overall} directions, of which its {counted(robot.n, 'joint')} "
        f"control {at_a_time} at a time: of every target only {TASK_WORDS[task]} is asked for (--task {task}).",
    )


def _with_home(robot: Robot, given: bool) -> tuple[Robot, tuple[str, ...]]:
    if dexterity(robot, robot.home[None])[0] >= SINGULAR:
        return robot, ()
    if given:
        return robot, (
            f"The given home of {robot.name} is singular: the tool cannot move in some direction, and figures that "
            "begin there describe that posture rather than a solver.",
        )
    found = with_found_home(robot)
    return replace(found, file_home=robot.home), (f"The home of {robot.name} is singular. {found.notes[-1]}",)
