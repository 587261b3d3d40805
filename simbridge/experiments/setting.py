"""What the experiments share: the moving square, errors, and solvers set as in the paper."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.experiments.layout import Layout
from simbridge.ik.settings import SOLVERS, check_solver, is_function
from simbridge.ik.solver import Solver
from simbridge.ik.solver_import import solver_of_function
from simbridge.ik.task import freed
from simbridge.robot import pose
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.trajectory.shapes import square

RATE = 100.0
"""How often the paper's experiments step the solver, Hz."""
DT = 0.1
"""The virtual time step of experiments C and D, s."""


def solver_named(robot: Robot, name: str, **settings: Any) -> Solver:
    """A solver with those of the settings that it has; the others are its defaults.

    A solver that has the paper's gains runs as the paper's plain algorithm, without clamps, when gains are given. A
    function of one's own, `module:function`, has no settings; one call of it counts as an iteration.

    Raises:
        UnknownName: There is no such solver.
        ForeignSolverError: It is a function that cannot be had.
        NoClosedForm: It is the closed form and the arm has none.
        UnstableSolver: The settings are at or past the stability bound.
    """
    check_solver(name)
    if is_function(name):
        return solver_of_function(robot, name)
    kind = SOLVERS[name]
    known = {field.name for field in fields(kind)}
    if "kp" in known and "kp" in settings:
        settings |= {"error_clamp": (math.inf, math.inf), "step_clamp": math.inf}
    return kind(**{key: value for key, value in settings.items() if key in known}).build(robot)


def has_gain(name: str) -> bool:
    """Whether a solver has the paper's gain kp."""
    return name in SOLVERS and "kp" in {field.name for field in fields(SOLVERS[name])}


def distinct(names: Iterable[str]) -> list[str]:
    """Solver names, each once, in the order given.

    Raises:
        InvalidParameter: There is none.
    """
    once = list(dict.fromkeys(names))
    if not once:
        raise InvalidParameter("solver", "()", f"one or more of {', '.join(SOLVERS)}")
    return once


@dataclass(frozen=True)
class MovingSquare:
    """A target that moves around the square at constant speed, twice: on the second lap the solver has settled.

    Attributes:
        speed: Along the edges, m/s.
        times: Instants (T,), `RATE` a second, s.
        poses: Targets (T, 7).
        corners: (4, 3), m, each of them a target.
        second: The samples of the second lap.
    """

    speed: float
    times: Array
    poses: Array
    corners: Array
    second: slice

    @staticmethod
    def of(place: Layout, speed: float = 0.2) -> MovingSquare:
        """At `speed` m/s on a UR10, and slower on smaller arms; the edges are made a whole number of samples long."""
        edge = max(1, round(place.side * RATE / (speed * place.scale)))
        length = edge * speed * place.scale / RATE
        path = square(length, place.centre, speed * place.scale, RATE, laps=2, orientation=place.orientation)
        return MovingSquare(
            speed * place.scale,
            path.times,
            path.poses,
            path.poses[: 4 * edge : edge, :3],
            slice(4 * edge, 8 * edge + 1),
        )


def errors(robot: Robot, targets: Array, joints: Array) -> Array:
    """Target minus tool (T, 6): translation in m, Rodrigues vector in rad, of what the arm's task asks for."""
    attained = tool_path(robot, joints)
    return np.hstack(pose.error(freed(robot.task, np.broadcast_to(targets, attained.shape), attained), attained))


def rms(vectors: Array) -> float:
    """Root mean square of the lengths of vectors (T, k)."""
    return float(np.sqrt(np.mean(np.sum(np.square(vectors), axis=-1))))


def is_the_papers(robot: Robot) -> bool:
    """Whether this is the arm whose figures are known: a UR10 from its own home, no tool on it, for whole poses."""
    bare = np.allclose(robot.tcp.homogeneous, np.eye(4), atol=1e-12)
    own = robot.file_home is None and robot.calibration is None
    return robot.name == "ur10" and own and bare and robot.task == "pose"
