"""What the experiments share: the square, its place for arms of every size, and solvers set as in the paper."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from simbridge import pose
from simbridge.errors import InvalidParameter, TargetOutOfReach
from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.ik.named_function import solver_of_function
from simbridge.ik.parameters import SOLVERS, check_solver, is_function
from simbridge.ik.solver import Array, Solver
from simbridge.ik.task import freed
from simbridge.kinematics import tool_path
from simbridge.robot import Robot
from simbridge.trajectory import TOOL_DOWN, paper_size, square

RATE = 100.0
"""How often the paper's experiments step the solver, Hz."""
DT = 0.1
"""The virtual time step of experiments C and D, s."""
# Where a UR10 is asked to go in experiment B, m.
_OFFSET = np.array([-0.25, -0.75, 0.35])


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


def orientation(robot: Robot) -> Array:
    """How the tool is held on the square (4,): down; on an arm that cannot leave its plane as at home."""
    return tool_path(robot, robot.home[None])[0, 3:] if robot.planar else np.array(TOOL_DOWN)


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
    def of(robot: Robot, speed: float) -> MovingSquare:
        """At `speed` m/s on a UR10, and slower on smaller arms; the edges are made a whole number of samples long."""
        size = paper_size(robot)
        edge = max(1, round(size.side * RATE / (speed * size.scale)))
        length = edge * speed * size.scale / RATE
        path = square(length, size.centre, speed * size.scale, RATE, laps=2, orientation=orientation(robot))
        return MovingSquare(
            speed * size.scale, path.times, path.poses, path.poses[: 4 * edge : edge, :3], slice(4 * edge, 8 * edge + 1)
        )


def step_target(robot: Robot) -> Array:
    """The target (7,) of experiment B, as far from home as the arm is large."""
    target = tool_path(robot, robot.home[None])[0]
    size = paper_size(robot)
    target[:3] += size.scale * _OFFSET * (1.0, 1.0, size.up)
    return target


def posture_at(robot: Robot, target: Array) -> Array:
    """Joint positions (n,), rad, from which an experiment begins: solved from home, whichever solver is tried.

    Raises:
        TargetOutOfReach: There are none.
    """
    found = ForwardDynamics(robot).solve(target)
    if not found.converged:
        place = ", ".join(f"{v:.3f}" for v in target[:3])
        raise TargetOutOfReach(
            f"{robot.name} does not reach the experiment's start at ({place}) m: {1e3 * found.distance:.1f} mm and "
            f"{math.degrees(found.angle):.1f} degrees are left. The experiment is laid out in front of the arm in "
            "proportion to its reach; choose another robot, or one with another home.",
            sample=0,
            time=0.0,
            distance=found.distance,
            angle=found.angle,
        )
    return found.q


def errors(robot: Robot, targets: Array, joints: Array) -> Array:
    """Target minus tool (T, 6): translation in m, Rodrigues vector in rad, of what the arm's task asks for."""
    attained = tool_path(robot, joints)
    return np.hstack(pose.error(freed(robot.task, np.broadcast_to(targets, attained.shape), attained), attained))


def rms(vectors: Array) -> float:
    """Root mean square of the lengths of vectors (T, k)."""
    return float(np.sqrt(np.mean(np.sum(np.square(vectors), axis=-1))))


def is_the_papers(robot: Robot) -> bool:
    """Whether this is the arm whose figures are known: a UR10 with nominal kinematics, no tool on it."""
    return robot.name == "ur10" and robot.calibration is None
