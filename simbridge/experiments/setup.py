"""The setup of an experiment: its arm, the place where that does it, and its solvers with the paper's settings.

An experiment does not begin where the arm is singular: the tool cannot move in some direction, and the first step of
every solver would be about that. An arm of few joints cannot bring its tool to any pose. The paper's square is in front
of the base, with the tool down. An arm that cannot follow it gets a square around its tool at home, in the tool's
orientation there, and shrunk until it can follow all of it; the step of experiment B is shortened likewise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from simbridge.errors import InvalidParameter, TargetOutOfReach
from simbridge.experiments import ExperimentParameters, FromHome
from simbridge.ik.callable_solver import named_solver
from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.ik.settings import SOLVERS
from simbridge.ik.solver import Solver
from simbridge.ik.targets import freed
from simbridge.planning.options import Options
from simbridge.robot import pose
from simbridge.robot.chain import TASK_ROWS
from simbridge.robot.home import TASK_WORDS, with_found_home
from simbridge.robot.kinematics import task_jacobians, tool_path
from simbridge.robot.load import load_robot
from simbridge.robot.packages import read_packages
from simbridge.robot.pose import Array
from simbridge.robot.postures import controllable_task, movable_directions, span, task_directions
from simbridge.robot.robot import Robot
from simbridge.text import counted, fixed, pose_residual, significant
from simbridge.trajectory.paper_size import paper_size
from simbridge.trajectory.shapes import CORNERS, square

DT = 0.1
"""The virtual time step of experiments C and D, s."""
SINGULAR = 0.02
"""Smallest over largest singular value, below which an experiment does not begin in a posture. A UR arm's home has 0.14
to 0.2."""
RATE = 100.0
"""Solver steps per second in the paper's experiments, Hz."""
START_TOLERANCE = (1e-8, 1e-8)
"""A start within these, m and rad, will do: a hundredth of the finest difference that an experiment shows."""

# The step of experiment B on a UR10, m.
_STEP = np.array([-0.25, -0.75, 0.35])
# A square counts as followed when no sample is further away than these parts of its side and of a radian.
_FOLLOWED = 0.005
# The directions of a position that a square needs.
_HORIZONTAL = slice(2)
# Sizes to try, each this part of the one before.
_SMALLER, _SIZES = 0.8, 14


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
        return {
            "task": self.robot.task,
            "home": self.robot.home.tolist(),
            "notes": [*self.robot.notes, *self.notes],
        }


def choose_arm(parameters: ExperimentParameters) -> Arm:
    """The arm of an experiment.

    Raises:
        UnknownName, InputFileError, InvalidHome: There is no such robot, or no such home.
        InvalidParameter: The link lengths or the TCP are invalid.
    """
    begins = isinstance(parameters, FromHome)
    home = parameters.home if isinstance(parameters, FromHome) else ()
    robot = load_robot(
        parameters.robot,
        home=home or None,
        lengths=parameters.link_lengths or None,
        base=parameters.base,
        tip=parameters.tip,
        # As for run: with commas, too.
        packages=read_packages(",".join(parameters.package)),
    )
    robot, notes = Options(tcp=parameters.tcp or ()).equipped(robot), []
    if parameters.task is not None:
        robot = replace(robot, task=parameters.task)
    elif (task := controllable_task(robot)) != robot.task:
        overall, at_a_time = task_directions(robot, robot.task)
        notes.append(
            f"The tool of {robot.name} can move in {overall} directions, of which its {counted(robot.n, 'joint')} "
            f"control {at_a_time} at a time: of every target only {TASK_WORDS[task]} is asked for (--task {task})."
        )
        robot = replace(robot, task=task)
    if begins and dexterity(robot, robot.home[None])[0] < SINGULAR:
        if home:
            notes.append(
                f"The given home of {robot.name} is singular: the tool cannot move in some direction, and figures that "
                "begin there describe that posture rather than a solver."
            )
        else:
            found = with_found_home(robot)
            notes.append(f"The home of {robot.name} is singular. {found.notes[-1]}")
            robot = replace(found, file_home=robot.home)
    return Arm(robot, tuple(notes))


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
    return named_solver(
        robot, name, {key: value for key, value in settings.items() if key in known}
    )


def has_gain(name: str) -> bool:
    """Whether a solver has the paper's gain kp."""
    return name in SOLVERS and "kp" in {field.name for field in fields(SOLVERS[name])}


def make_solvers(robot: Robot, names: Iterable[str], **settings: Any) -> dict[str, Solver]:
    """The solvers of these names, as `make_solver` makes them. Errors: see `unique_solvers`."""
    return {name: make_solver(robot, name, **settings) for name in unique_solvers(names)}


def unique_solvers(names: Iterable[str]) -> list[str]:
    """Solver names without repetition, in the order given."""
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


@dataclass(frozen=True)
class Layout:
    """A square for an arm.

    Attributes:
        scale: Of all lengths and speeds; 1 as in the paper.
        centre: Of the square (3,), m, in base_link.
        orientation: Of the tool (4,), a unit quaternion.
        note: What differs from the paper; "" where only the size does.
    """

    scale: float
    centre: Array
    orientation: Array
    note: str = ""

    @property
    def side(self) -> float:
        """Of the square, m."""
        return 0.4 * self.scale

    @property
    def first_target(self) -> Array:
        """The corner at which it begins (7,)."""
        return np.array([*(self.centre + 0.5 * self.side * CORNERS[0]), *self.orientation])

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "scale": self.scale,
            "centre_m": self.centre.tolist(),
            "orientation": self.orientation.tolist(),
        }


@dataclass(frozen=True)
class MovingSquare:
    """A target that moves twice around the square at constant speed: on the second lap the solver has settled.

    Attributes:
        speed: Along the edges, m/s.
        times: Instants (T,), `RATE` a second, s.
        poses: Targets (T, 7).
        corners: (4, 3), m, each of them a target.
        second_lap: Its samples.
    """

    speed: float
    times: Array
    poses: Array
    corners: Array
    second_lap: slice

    @staticmethod
    def of(place: Layout, speed: float = 0.2) -> MovingSquare:
        """At `speed` m/s on a UR10, slower on smaller arms; the edges are made a whole number of samples long."""
        scaled = speed * place.scale
        edge = max(1, round(place.side * RATE / scaled))
        path = square(
            edge * scaled / RATE, place.centre, scaled, RATE, laps=2, orientation=place.orientation
        )
        corners = path.poses[: 4 * edge : edge, :3]
        return MovingSquare(scaled, path.times, path.poses, corners, slice(4 * edge, 8 * edge + 1))


def choose_layout(robot: Robot) -> Layout:
    """A square that an arm can follow, from its home.

    Raises:
        TargetOutOfReach: It can follow none, not even a small one around its tool.
    """
    size, home = paper_size(robot), tool_path(robot, robot.home[None])[0]
    paper = Layout(
        size.scale, np.array(size.centre), home[3:] if robot.planar else np.array(size.orientation)
    )
    if _follows(robot, paper, solve_posture(robot, paper.first_target)):
        return paper
    for scale in _scales(size.scale):
        note = (
            f"{robot.name} cannot follow the paper's square, in front of the base with the tool down: the square is "
            f"centred on the tool at home, in the tool's orientation there; its side is {significant(400 * scale)} mm."
        )
        around = Layout(scale, home[:3], home[3:], note)
        if _follows(robot, around, _near_home(robot, around.first_target)):
            return around
    raise _no_layout(
        robot,
        home,
        "follow a square, neither in front of its base nor around its tool",
        _HORIZONTAL,
    )


def step_target(robot: Robot) -> tuple[Array, str]:
    """The target (7,) of experiment B, its distance in proportion to the arm's size, and a note ("" for none).

    Raises:
        TargetOutOfReach: The arm cannot move in the step's direction.
    """
    size, home = paper_size(robot), tool_path(robot, robot.home[None])[0]
    for scale in _scales(size.scale):
        target = home.copy()
        target[:3] += scale * _STEP * (1.0, 1.0, size.up)
        full = scale == size.scale
        if (solve_posture if full else _near_home)(robot, target) is None:
            continue
        length = significant(1e3 * float(np.linalg.norm(target[:3] - home[:3])))
        return (
            target,
            ""
            if full
            else f"{robot.name} cannot take a step of full size: this one is {length} mm.",
        )
    what = "take the experiment's step, (-0.25, -0.75, 0.35) m or a shorter one"
    raise _no_layout(robot, home, what, slice(3 if size.up else 2))


def solve_posture(robot: Robot, target: Array) -> Array | None:
    """Joint positions (n,), rad, solved from home with restarts, the same for every solver; None if there are none."""
    found = ForwardDynamics(robot).solve(target)
    close = found.distance <= START_TOLERANCE[0] and found.angle <= START_TOLERANCE[1]
    return found.q if found.converged or (close and within_limits(robot, found.q)) else None


def start_posture(robot: Robot, target: Array) -> Array:
    """Joint positions (n,), rad, from which an experiment begins.

    Raises:
        TargetOutOfReach: There are none.
    """
    q = solve_posture(robot, target)
    if q is not None:
        return q
    found = ForwardDynamics(robot).solve(target)
    past = np.maximum(robot.position_min - found.q, found.q - robot.position_max)
    if (
        past.max() > 0.0
        and found.distance <= START_TOLERANCE[0]
        and found.angle <= START_TOLERANCE[1]
    ):
        reason = f"only with {robot.joint_names[int(np.argmax(past))]} beyond its limits does it get there"
    else:
        reason = f"the tool stays {pose_residual(found.distance, found.angle)} away"
    raise TargetOutOfReach(
        f"{robot.name} cannot reach the start at ({_coordinates(target)}) m: {reason}.",
        sample=0,
        time=0.0,
        distance=found.distance,
        angle=found.angle,
    )


def pose_errors(robot: Robot, targets: Array, joints: Array) -> Array:
    """Target minus tool (T, 6): translation in m, Rodrigues vector in rad, of what the arm's task asks for."""
    attained = tool_path(robot, joints)
    return np.hstack(
        pose.error(freed(robot.task, np.broadcast_to(targets, attained.shape), attained), attained)
    )


def rms(vectors: Array) -> float:
    """Root mean square of the lengths of vectors (T, k)."""
    return float(np.sqrt(np.mean(np.sum(np.square(vectors), axis=-1))))


def within_limits(robot: Robot, joints: Array) -> bool:
    """Whether joint positions (..., n) are within the limits."""
    return bool(np.all((joints >= robot.position_min) & (joints <= robot.position_max)))


def _near_home(robot: Robot, target: Array) -> Array | None:
    """Joint positions that a motion from home reaches, without restarts."""
    found = ForwardDynamics(robot).solve(target)
    return found.q if found.converged and found.restarts == 0 else None


def _scales(largest: float) -> Iterator[float]:
    return (largest * _SMALLER**k for k in range(_SIZES))


def _follows(robot: Robot, place: Layout, start: Array | None) -> bool:
    """Whether the arm can follow the square within its limits and without a jump, from this posture at its start."""
    if start is None:
        return False
    lap = square(
        place.side, place.centre, 0.2 * place.scale, RATE, orientation=place.orientation
    ).poses
    joints = ForwardDynamics(robot).track(lap, start)
    errors = np.abs(pose_errors(robot, lap, joints))
    close = errors[:, :3].max() <= _FOLLOWED * place.side and errors[:, 3:].max() <= _FOLLOWED
    return bool(close) and within_limits(robot, joints)


def _no_layout(robot: Robot, home: Array, what: str, needed: slice) -> TargetOutOfReach:
    """Why an arm cannot do what needs these directions of a position, and what to do."""
    possible = [task for task in TASK_ROWS if len(set(task_directions(robot, task))) == 1]
    weaker = [
        task
        for task in list(TASK_ROWS)[list(TASK_ROWS).index(robot.task) + 1 :]
        if task in possible
    ]
    less = f"ask for less with --task {' or '.join(weaker)}"
    if not possible or task_directions(robot, "position", needed)[1] < needed.stop:
        why = "its joints cannot move its tool in all the directions that this needs"
        advice = "Experiments that need no path still work: homogenization, and the random poses of solvers."
    elif robot.task not in possible:
        overall, at_a_time = task_directions(robot, robot.task)
        why = f"its task ({robot.task}) has {overall} directions, of which its joints control {at_a_time} at a time"
        advice = f"{less.capitalize()}."
    else:
        why = f"from its home, tool at ({_coordinates(home)}) m, joint limits or a singular posture block the way"
        advice = "Begin elsewhere with --home" + (f", or {less}." if weaker else ".")
    return TargetOutOfReach(
        f"{robot.name} cannot {what}: {why}. {advice}",
        sample=0,
        time=0.0,
        distance=math.nan,
        angle=math.nan,
    )


def _coordinates(target: Array) -> str:
    return ", ".join(fixed(value, 3) for value in target[:3])
