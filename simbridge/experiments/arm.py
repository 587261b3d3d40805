"""Chooses the arm of an experiment, its solvers with the paper's settings, and its first posture.

An experiment does not begin in a singular posture: there the tool cannot move in some direction,
and results would describe the posture rather than the solvers. An arm with few joints cannot bring
its tool to any pose: only as much of each pose is required as its joints can control.
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
# Smallest dexterity of a posture in which an experiment begins: see `dexterity`. The home of a UR
# arm has 0.14 to 0.2.
MIN_DEXTERITY = 0.02
# Unit of length for the dexterity, as a fraction of the arm's reach.
DEXTERITY_LENGTH = 0.5
# Smallest unit of length for the dexterity, m.
MIN_DEXTERITY_LENGTH = 1e-3
# Largest distance, m, and angle, rad, of a start from its target: a hundredth of the smallest
# difference that an experiment shows.
START_TOLERANCE = (1e-8, 1e-8)


@dataclass(frozen=True)
class ExperimentArm:
    """An arm that can begin an experiment.

    Attributes:
        robot: The arm, with its tool and task, and with the home at which the experiment begins.
        notes: Sentences on what was chosen without a flag, and on a home that is a poor start.
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

    # The arm with its tool.
    robot = load_robot(
        parameters.robot,
        home=home or None,
        lengths=parameters.link_lengths or None,
        base=parameters.base,
        tip=parameters.tip,
        # Values may also be separated by commas, as in the command `run`.
        packages=read_packages(",".join(parameters.package)),
        xacro_args=parameters.xacro_arg,
    )
    robot = Options(tcp=parameters.tcp or ()).equip(robot)

    # A task that its joints can control, and a home that is not singular.
    notes: list[str] = []
    robot = _choose_task(robot, parameters.task, notes)
    if begins_at_home and dexterity(robot, robot.home[None])[0] < MIN_DEXTERITY:
        robot = _choose_home(robot, notes, is_prescribed=bool(home))
    return ExperimentArm(robot, tuple(notes))


def _choose_task(robot: Robot, prescribed: Task | None, notes: list[str]) -> Robot:
    """Return an arm with a prescribed task, or with as much of a pose as its joints control.

    Args:
        robot: The arm.
        prescribed: The task that a flag states; None without the flag.
        notes: List of notes, to which one is appended if the task changes without a flag.
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
        notes: List of notes, to which one is appended.
        is_prescribed: Whether a flag states the home.
    """
    if is_prescribed:
        notes.append(
            f"The given home of {robot.name} is singular: the tool cannot move in some directions "
            "there, and results that start from it describe that posture rather than a solver."
        )
        return robot
    # The last note of the arm says where its new home is.
    robot_at_new_home = with_found_home(robot)
    notes.append(f"The home of {robot.name} is singular. {robot_at_new_home.notes[-1]}")
    return replace(robot_at_new_home, file_home=robot.home)


def is_paper_arm(robot: Robot) -> bool:
    """Return whether this is the arm whose figures are known.

    That is a UR10 which begins at the home of its file, without a tool and without a calibration,
    and whose task is the whole pose.
    """
    is_bare = np.allclose(robot.tcp.homogeneous, np.eye(4), atol=1e-12)
    is_unchanged = robot.file_home is None and robot.calibration is None
    return robot.name == "ur10" and is_unchanged and is_bare and robot.task == "pose"


def dexterity(robot: Robot, joints: Array) -> Array:
    """Return the ratio of the smallest singular value of the task's Jacobian to the largest (T,).

    It is 0 in a singular posture. The unit of length is half the arm's reach, so that translation
    and rotation compare. Directions in which the arm never moves do not count.

    Args:
        robot: The arm.
        joints: Postures (T, n), rad.
    """
    jacobians = task_jacobians(robot.placements, robot.prismatic, joints, robot.task)
    jacobians[:, :3] /= max(DEXTERITY_LENGTH * span(robot), MIN_DEXTERITY_LENGTH)

    # Singular values in descending order; those of directions that never move come last.
    values = np.linalg.svd(jacobians, compute_uv=False)
    direction_count = movable_directions(robot.placements, robot.prismatic, robot.task)
    smallest = min(direction_count, robot.n) - 1
    return np.asarray(values[:, smallest] / values[:, 0])


def make_solver(robot: Robot, name: str, **settings: Any) -> Solver:
    """Make a solver with the settings among those stated that it has, and defaults for the rest.

    If kp is stated, a solver with the paper's gain kp runs as the paper's plain algorithm, without
    clamps. A custom function, `module:function`, has no settings; one call counts as an iteration.

    Args:
        robot: The arm.
        name: Name of the solver, or module:function.
        settings: Values of settings by name.

    Raises:
        UnknownName: There is no such solver.
        ForeignSolverError: The solver is a function that cannot be imported.
        NoClosedForm: The solver is the closed form, and the arm has none.
        UnstableSolver: The settings are at or past the stability bound.
    """
    if has_gain(name) and "kp" in settings:
        settings |= {"error_clamp": (math.inf, math.inf), "step_clamp": math.inf}

    known_names: set[str] = set()
    if name in ALL_SOLVERS:
        known_names = {field.name for field in fields(ALL_SOLVERS[name])}
    changes = {key: value for key, value in settings.items() if key in known_names}
    return build_solver(robot, name, changes)


def has_gain(name: str) -> bool:
    """Return whether a solver has the paper's gain kp."""
    return name in ALL_SOLVERS and "kp" in {field.name for field in fields(ALL_SOLVERS[name])}


def make_solvers(robot: Robot, names: Iterable[str], **settings: Any) -> dict[str, Solver]:
    """Make each of the named solvers once; see `make_solver`."""
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
    """Return whether a solution attains its target precisely enough for a start."""
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

    # Explain why there is no solution.
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
    """Draw joint positions (count, n), rad, within the limits and half a turn from zero.

    Sliding joints, m, are drawn within their limits only.
    """
    half_turn = np.where(robot.prismatic, np.inf, math.pi)
    low = np.maximum(robot.position_min, -half_turn)
    high = np.minimum(robot.position_max, half_turn)
    return random.uniform(low, high, (count, robot.n))


def pose_errors(robot: Robot, targets: Array, joints: Array) -> Array:
    """Return target minus tool (T, 6): translation in m, rotation vector in rad.

    Components of the pose that the arm's task does not require have no error.

    Args:
        robot: The arm.
        targets: Poses (T, 7), or one pose (7,).
        joints: Joint positions (T, n), rad.
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
