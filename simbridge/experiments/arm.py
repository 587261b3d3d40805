"""The arm of an experiment, its solvers with the paper's settings, and the posture to begin with.

An experiment does not begin where the arm is singular: the tool cannot move in some direction, and
the first step of every solver would be about that. An arm of few joints cannot bring its tool to
any pose: it is asked for as much of a pose as its joints can control.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from simbridge.errors import InvalidParameter, TargetOutOfReach
from simbridge.experiments import ExperimentParameters, FromHome
from simbridge.ik.callable_solver import build_solver
from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.ik.settings import ALL_SOLVERS
from simbridge.ik.solver import Solution, Solver
from simbridge.ik.targets import adopt_free_components
from simbridge.planning.options import Options
from simbridge.robot import Task, pose
from simbridge.robot.home import TASK_WORDS, with_found_home
from simbridge.robot.kinematics import task_jacobians, tool_path
from simbridge.robot.load import load_robot
from simbridge.robot.packages import read_packages
from simbridge.robot.pose import Array
from simbridge.robot.postures import controllable_task, movable_directions, span, task_directions
from simbridge.robot.robot import Robot
from simbridge.text import counted, fixed, pose_residual

# The virtual time step of experiments C and D, s.
DT = 0.1
# Smallest over largest singular value, below which an experiment does not begin in a posture. A UR
# arm's home has 0.14 to 0.2.
MIN_DEXTERITY = 0.02
# A start within these will do, m and rad: a hundredth of the finest difference that an experiment
# shows.
START_TOLERANCE = (1e-8, 1e-8)


@dataclass(frozen=True)
class ExperimentArm:
    """An arm that can begin an experiment.

    Attributes:
        robot: The arm, with its tool, its task and its home, where the experiment begins.
        notes: Sentences on what was chosen where no flag was given, and on a home that makes a poor
            start.
    """

    robot: Robot
    notes: tuple[str, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Return task, home and notes for JSON."""
        return {
            "task": self.robot.task,
            "home": self.robot.home.tolist(),
            "notes": [*self.robot.notes, *self.notes],
        }


def choose_arm(parameters: ExperimentParameters) -> ExperimentArm:
    """Return the arm of an experiment.

    Raises:
        UnknownName, InputFileError, InvalidHome: There is no such robot, or no such home.
        InvalidParameter: The link lengths or the TCP are invalid.
    """
    begins_at_home = isinstance(parameters, FromHome)
    home = parameters.home if isinstance(parameters, FromHome) else ()
    robot = load_robot(
        parameters.robot,
        home=home or None,
        lengths=parameters.link_lengths or None,
        base=parameters.base,
        tip=parameters.tip,
        # As for `run`, values may be separated by commas, too.
        packages=read_packages(",".join(parameters.package)),
        xacro_args=parameters.xacro_arg,
    )
    robot = Options(tcp=parameters.tcp or ()).equip(robot)

    notes: list[str] = []
    robot = _choose_task(robot, parameters.task, notes)
    if begins_at_home and dexterity(robot, robot.home[None])[0] < MIN_DEXTERITY:
        robot = _choose_home(robot, notes, is_prescribed=bool(home))
    return ExperimentArm(robot, tuple(notes))


def _choose_task(robot: Robot, prescribed: Task | None, notes: list[str]) -> Robot:
    """Return an arm with a prescribed task, or with as much of a pose as its joints control.

    Args:
        robot: The arm.
        prescribed: The task that a flag gives, if any.
        notes: A sentence is added where the task changes without a flag.
    """
    if prescribed is not None:
        return replace(robot, task=prescribed)
    task = controllable_task(robot)
    if task == robot.task:
        return robot

    overall, simultaneous = task_directions(robot, robot.task)
    joints = counted(robot.n, "joint")
    notes.append(
        f"The tool of {robot.name} can move in {overall} directions, of which its {joints} "
        f"control {simultaneous} at a time: only {TASK_WORDS[task]} of each target is required "
        f"(--task {task})."
    )
    return replace(robot, task=task)


def _choose_home(robot: Robot, notes: list[str], *, is_prescribed: bool) -> Robot:
    """Return an arm whose home is not singular, unless that home was prescribed.

    Args:
        robot: The arm, with a singular home.
        notes: A sentence is added.
        is_prescribed: Whether a flag gives the home.
    """
    if is_prescribed:
        notes.append(
            f"The given home of {robot.name} is singular: the tool cannot move in some directions "
            "there, and results that start from it describe that posture rather than a solver."
        )
        return robot
    replaced = with_found_home(robot)
    notes.append(f"The home of {robot.name} is singular. {replaced.notes[-1]}")
    return replace(replaced, file_home=robot.home)


def is_paper_arm(robot: Robot) -> bool:
    """Return whether this is the arm whose figures are known.

    It is a UR10 from its own home, without a tool, for whole poses.
    """
    is_bare = np.allclose(robot.tcp.homogeneous, np.eye(4), atol=1e-12)
    is_unchanged = robot.file_home is None and robot.calibration is None
    return robot.name == "ur10" and is_unchanged and is_bare and robot.task == "pose"


def dexterity(robot: Robot, joints: Array) -> Array:
    """Return smallest over largest singular value of the task's Jacobian (T,): 0 if singular.

    The unit of length is half the arm's reach. Directions in which the arm never moves are left
    out.

    Args:
        robot: The arm.
        joints: Postures (T, n), rad.
    """
    jacobians = task_jacobians(robot.placements, robot.prismatic, joints, robot.task)
    jacobians[:, :3] /= max(0.5 * span(robot), 1e-3)
    values = np.linalg.svd(jacobians, compute_uv=False)
    last = min(movable_directions(robot.placements, robot.prismatic, robot.task), robot.n) - 1
    return np.asarray(values[:, last] / values[:, 0])


def make_solver(robot: Robot, name: str, **settings: Any) -> Solver:
    """Make a solver with those of the settings that it has, and its defaults for the rest.

    A solver that has the paper's gains runs as the paper's plain algorithm, without clamps, when
    gains are given. A custom function, `module:function`, has no settings; one call of it counts as
    an iteration.

    Raises:
        UnknownName: There is no such solver.
        ForeignSolverError: It is a function that cannot be imported.
        NoClosedForm: It is the closed form and the arm has none.
        UnstableSolver: The settings are at or past the stability bound.
    """
    known = {field.name for field in fields(ALL_SOLVERS[name])} if name in ALL_SOLVERS else set()
    if has_gain(name) and "kp" in settings:
        settings |= {"error_clamp": (math.inf, math.inf), "step_clamp": math.inf}
    changes = {key: value for key, value in settings.items() if key in known}
    return build_solver(robot, name, changes)


def has_gain(name: str) -> bool:
    """Return whether a solver has the paper's gain kp."""
    return name in ALL_SOLVERS and "kp" in {field.name for field in fields(ALL_SOLVERS[name])}


def make_solvers(robot: Robot, names: Iterable[str], **settings: Any) -> dict[str, Solver]:
    """Make the solvers of these names; see `make_solver` and `unique_solvers`."""
    return {name: make_solver(robot, name, **settings) for name in unique_solvers(names)}


def unique_solvers(names: Iterable[str]) -> list[str]:
    """Return solver names without repetition, in the same order.

    Raises:
        InvalidParameter: There are no names.
    """
    unique = list(dict.fromkeys(names))
    if not unique:
        raise InvalidParameter("solver", "()", f"one or more of {', '.join(ALL_SOLVERS)}")
    return unique


def solve_posture(robot: Robot, target: Array) -> Array | None:
    """Solve for joint positions (n,), rad, from home with restarts; None if there is no solution.

    They are the same for every solver of an experiment.

    Args:
        robot: The arm.
        target: Pose (7,).
    """
    solution = ForwardDynamics(robot).solve(target)
    if solution.converged:
        return solution.q
    if _is_close(solution) and within_limits(robot, solution.q):
        return solution.q
    return None


def _is_close(solution: Solution) -> bool:
    max_distance, max_angle = START_TOLERANCE
    return solution.distance <= max_distance and solution.angle <= max_angle


def start_posture(robot: Robot, target: Array) -> Array:
    """Return the joint positions (n,), rad, from which an experiment begins.

    Args:
        robot: The arm.
        target: Pose (7,) at the start.

    Raises:
        TargetOutOfReach: No joint positions within the limits attain the target.
    """
    q = solve_posture(robot, target)
    if q is not None:
        return q

    solution = ForwardDynamics(robot).solve(target)
    excess = np.maximum(robot.position_min - solution.q, solution.q - robot.position_max)
    if excess.max() > 0.0 and _is_close(solution):
        joint = robot.joint_names[int(np.argmax(excess))]
        reason = f"it gets there only with {joint} beyond its limits"
    else:
        reason = (
            f"the closest reachable pose is {pose_residual(solution.distance, solution.angle)} away"
        )
    raise TargetOutOfReach(
        f"{robot.name} cannot reach the start at ({format_position(target)}) m: {reason}.",
        sample=0,
        time=0.0,
        distance=solution.distance,
        angle=solution.angle,
    )


def random_joints(robot: Robot, count: int, random: np.random.Generator) -> Array:
    """Draw joint positions (count, n) within the limits and half a turn from zero."""
    half_turn = np.where(robot.prismatic, np.inf, math.pi)
    low = np.maximum(robot.position_min, -half_turn)
    high = np.minimum(robot.position_max, half_turn)
    return random.uniform(low, high, (count, robot.n))


def pose_errors(robot: Robot, targets: Array, joints: Array) -> Array:
    """Return target minus tool (T, 6), of what the arm's task asks for.

    Args:
        robot: The arm.
        targets: Poses (T, 7), or one (7,).
        joints: Joint positions (T, n), rad.

    Returns:
        Translation in m, Rodrigues vector in rad.
    """
    attained = tool_path(robot, joints)
    comparable_targets = adopt_free_components(
        robot.task, np.broadcast_to(targets, attained.shape), attained
    )
    return np.hstack(pose.error(comparable_targets, attained))


def rms(vectors: Array) -> float:
    """Return the root mean square of the lengths of vectors (T, k)."""
    return float(np.sqrt(np.mean(np.sum(np.square(vectors), axis=-1))))


def within_limits(robot: Robot, joints: Array) -> bool:
    """Return whether joint positions (..., n) are within the limits."""
    return bool(np.all((joints >= robot.position_min) & (joints <= robot.position_max)))


def format_position(target: Array) -> str:
    """Return the position of a pose (7,), m, as text."""
    return ", ".join(fixed(value, 3) for value in target[:3])
