"""Where an arm does the experiments: the paper's square, in front of the base with the tool down, if it can follow it.

If it cannot, the square is centred on the tool at home, in the tool's orientation there, and shrunk until the arm can
follow all of it. The step of experiment B is shortened likewise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from simbridge.errors import TargetOutOfReach
from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.ik.targets import freed
from simbridge.robot import pose
from simbridge.robot.chain import TASK_ROWS
from simbridge.robot.kinematics import task_directions, tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import fixed, pose_residual, significant
from simbridge.trajectory.fitted import paper_size
from simbridge.trajectory.shapes import CORNERS, square

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
_ROUNDING = 1e-9
# Sizes to try, each this part of the one before.
_SMALLER, _SIZES = 0.8, 14


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
        return {"scale": self.scale, "centre_m": self.centre.tolist(), "orientation": self.orientation.tolist()}


def choose_layout(robot: Robot) -> Layout:
    """A square that an arm can follow, from its home.

    Raises:
        TargetOutOfReach: It can follow none, not even a small one around its tool.
    """
    size, home = paper_size(robot), tool_path(robot, robot.home[None])[0]
    paper = Layout(size.scale, np.array(size.centre), home[3:] if robot.planar else np.array(size.orientation))
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
    raise _no_layout(robot, home, "follow a square, neither in front of its base nor around its tool", _HORIZONTAL)


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
        return target, "" if full else f"{robot.name} cannot take a step of full size: this one is {length} mm."
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
    if q is None:
        raise _start_out_of_reach(robot, target)
    return q


def pose_errors(robot: Robot, targets: Array, joints: Array) -> Array:
    """Target minus tool (T, 6): translation in m, Rodrigues vector in rad, of what the arm's task asks for."""
    attained = tool_path(robot, joints)
    return np.hstack(pose.error(freed(robot.task, np.broadcast_to(targets, attained.shape), attained), attained))


def rms(vectors: Array) -> float:
    """Root mean square of the lengths of vectors (T, k)."""
    return float(np.sqrt(np.mean(np.sum(np.square(vectors), axis=-1))))


def within_limits(robot: Robot, joints: Array) -> bool:
    """Whether joint positions (..., n) are within the limits."""
    return bool(np.all((joints >= robot.position_min) & (joints <= robot.position_max)))


def _near_home(robot: Robot, target: Array) -> Array | None:
    """Joint positions that a motion from home reaches, without restarts."""
    found = ForwardDynamics(robot).solve_near(target, robot.home, START_TOLERANCE)
    return found.q if found.converged and within_limits(robot, found.q) else None


def _scales(largest: float) -> Iterator[float]:
    return (largest * _SMALLER**k for k in range(_SIZES))


def _follows(robot: Robot, place: Layout, start: Array | None) -> bool:
    """Whether the arm can follow the square within its limits and without a jump, from this posture at its start."""
    if start is None:
        return False
    lap = square(place.side, place.centre, 0.2 * place.scale, RATE, orientation=place.orientation).poses
    joints = ForwardDynamics(robot).track(lap, start)
    errors = np.abs(pose_errors(robot, lap, joints))
    close = errors[:, :3].max() <= _FOLLOWED * place.side and errors[:, 3:].max() <= _FOLLOWED
    return bool(close) and within_limits(robot, joints)


def _start_out_of_reach(robot: Robot, target: Array) -> TargetOutOfReach:
    found = ForwardDynamics(robot).solve(target)
    past = np.maximum(robot.position_min - found.q, found.q - robot.position_max)
    if past.max() > 0.0 and found.distance <= START_TOLERANCE[0] and found.angle <= START_TOLERANCE[1]:
        reason = f"only with {robot.joint_names[int(np.argmax(past))]} beyond its limits does it get there"
    else:
        reason = f"the tool stays {pose_residual(found.distance, found.angle)} away"
    return TargetOutOfReach(
        f"{robot.name} cannot reach the start at ({_coordinates(target)}) m: {reason}.",
        sample=0,
        time=0.0,
        distance=found.distance,
        angle=found.angle,
    )


def _no_layout(robot: Robot, home: Array, what: str, needed: slice) -> TargetOutOfReach:
    """Why an arm cannot do what needs these directions of a position, and what to do."""
    possible = [task for task in TASK_ROWS if len(set(task_directions(robot, task))) == 1]
    weaker = [task for task in list(TASK_ROWS)[list(TASK_ROWS).index(robot.task) + 1 :] if task in possible]
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
        f"{robot.name} cannot {what}: {why}. {advice}", sample=0, time=0.0, distance=math.nan, angle=math.nan
    )


def _coordinates(target: Array) -> str:
    return ", ".join(fixed(value, 3) for value in target[:3])
