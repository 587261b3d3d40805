"""Where an arm does the experiments: the paper's place, in front of the base with the tool down, if it gets there.

If it does not, the square is laid around the tool where the arm begins, in the orientation that the tool has there, and
made smaller until the whole of it can be followed. So is the step of experiment B.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from simbridge.errors import TargetOutOfReach
from simbridge.ik.forward_dynamics import ForwardDynamics, restart_postures
from simbridge.ik.task import TASKS, freed
from simbridge.robot import pose
from simbridge.robot.kinematics import task_jacobians, tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import away, significant
from simbridge.trajectory.orientation import TOOL_DOWN
from simbridge.trajectory.paper import paper_size
from simbridge.trajectory.shapes import CORNERS, square

# Where a UR10 is asked to go in experiment B, m.
_OFFSET = np.array([-0.25, -0.75, 0.35])
START = (1e-8, 1e-8)
"""A start within these, m and rad, will do: a hundredth of the finest difference that an experiment shows."""
# A square counts as followed when no sample is off by more than these parts of its side and of a radian.
_FOLLOWED = 0.005
# The directions of a position that a square needs.
_HORIZONTAL = slice(2)
_ROUNDING = 1e-9
# Sizes to try, each this part of the one before.
_SMALLER, _SIZES = 0.8, 14
_AROUND = "in the middle of the square is the tool where the arm begins, in the orientation that it has there"


@dataclass(frozen=True)
class Layout:
    """A square for an arm.

    Attributes:
        scale: Of all lengths and speeds; 1 as in the paper.
        centre: Of the square (3,), m, from base_link.
        orientation: In which the tool is held (4,), a unit quaternion.
        note: What is not as in the paper; "" where only the size is the arm's own.
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
    def first(self) -> Array:
        """The corner at which it begins, as a target (7,)."""
        return np.array([*(self.centre + 0.5 * self.side * CORNERS[0]), *self.orientation])

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        return {"scale": self.scale, "centre_m": self.centre.tolist(), "orientation": self.orientation.tolist()}


def layout(robot: Robot) -> Layout:
    """A square that an arm can follow, from its home.

    Raises:
        TargetOutOfReach: It can follow none, not even a small one around its tool.
    """
    size, here = paper_size(robot), tool_path(robot, robot.home[None])[0]
    papers = Layout(size.scale, np.array(size.centre), here[3:] if robot.planar else np.array(TOOL_DOWN))
    if _follows(robot, papers, posture_for(robot, papers.first)):
        return papers
    for scale in _scales(size.scale):
        note = (
            f"No way was found for {robot.name} around the paper's square, in front of the base with the tool down: "
            f"{_AROUND}; its side is {significant(400.0 * scale)} mm."
        )
        around = Layout(scale, here[:3], here[3:], note)
        if _follows(robot, around, _nearby(robot, around.first)):
            return around
    raise _refusal(robot, here, "follow a square, be it in front of its base or around its tool", _HORIZONTAL)


def step_target(robot: Robot) -> tuple[Array, str]:
    """The target (7,) of experiment B, as far from home as the arm is large, and what is to be said of it.

    Raises:
        TargetOutOfReach: The arm gets no way at all in the step's direction.
    """
    size, here = paper_size(robot), tool_path(robot, robot.home[None])[0]
    for scale in _scales(size.scale):
        target = here.copy()
        target[:3] += scale * _OFFSET * (1.0, 1.0, size.up)
        full = scale == size.scale
        if (posture_for if full else _nearby)(robot, target) is None:
            continue
        far = significant(1e3 * float(np.linalg.norm(target[:3] - here[:3])))
        return target, "" if full else f"No way was found for {robot.name} to a step of full size: this is {far} mm."
    what = "take the experiment's step, (-0.25, -0.75, 0.35) m or less of it"
    raise _refusal(robot, here, what, slice(3 if size.up else 2))


def posture_for(robot: Robot, target: Array) -> Array | None:
    """Joint positions (n,), rad, solved from home with restarts, whichever solver is tried; None if there are none."""
    found = ForwardDynamics(robot).solve(target)
    close = found.distance <= START[0] and found.angle <= START[1]
    return found.q if found.converged or (close and within(robot, found.q)) else None


def posture_at(robot: Robot, target: Array) -> Array:
    """Joint positions (n,), rad, from which an experiment begins.

    Raises:
        TargetOutOfReach: There are none.
    """
    found = posture_for(robot, target)
    if found is None:
        raise _out_of_reach(robot, target)
    return found


def within(robot: Robot, joints: Array) -> bool:
    """Whether joint positions (..., n) are within the limits."""
    return bool(np.all((joints >= robot.position_min) & (joints <= robot.position_max)))


def directions(robot: Robot, task: str, rows: slice = slice(6)) -> tuple[int, int]:
    """In how many directions of a task (of those of its rows) the tool can go at all, and in how many at a time."""
    jacobians = task_jacobians(robot.placements, robot.prismatic, restart_postures(robot, 8), task)[:, rows]
    at_all = np.linalg.matrix_rank(np.concatenate(list(jacobians), axis=1), tol=_ROUNDING)
    return int(at_all), int(np.linalg.matrix_rank(jacobians, tol=_ROUNDING).max())


def _nearby(robot: Robot, target: Array) -> Array | None:
    """The same without restarts: by a motion from home."""
    found = ForwardDynamics(robot).solve_near(target, robot.home, START)
    return found.q if found.converged and within(robot, found.q) else None


def _scales(largest: float) -> Iterator[float]:
    return (largest * _SMALLER**k for k in range(_SIZES))


def _follows(robot: Robot, place: Layout, first: Array | None) -> bool:
    """Whether the arm gets around within its limits and without a leap, from these positions at the first corner."""
    if first is None:
        return False
    lap = square(place.side, place.centre, 0.2 * place.scale, 100.0, orientation=place.orientation).poses
    joints = ForwardDynamics(robot).track(lap, first)
    attained = tool_path(robot, joints)
    off, turned = pose.error(freed(robot.task, lap, attained), attained)
    near = np.abs(off).max() <= _FOLLOWED * place.side and np.abs(turned).max() <= _FOLLOWED
    return bool(near) and within(robot, joints)


def _out_of_reach(robot: Robot, target: Array) -> TargetOutOfReach:
    found = ForwardDynamics(robot).solve(target)
    place = ", ".join(f"{v:.3f}" for v in target[:3])
    past = np.maximum(robot.position_min - found.q, found.q - robot.position_max)
    if past.max() > 0.0 and found.distance <= START[0] and found.angle <= START[1]:
        reason = f"it gets there only with {robot.joint_names[int(np.argmax(past))]} beyond its limits"
    else:
        reason = f"{away(found.distance, found.angle)} are left"
    return TargetOutOfReach(
        f"{robot.name} does not reach the start at ({place}) m: {reason}.",
        sample=0,
        time=0.0,
        distance=found.distance,
        angle=found.angle,
    )


def _refusal(robot: Robot, here: Array, what: str, needed: slice) -> TargetOutOfReach:
    """Why an arm cannot do what is asked, which needs these directions of a position, and what to do."""
    possible = [task for task in TASKS if len(set(directions(robot, task))) == 1]
    weaker = [task for task in list(TASKS)[list(TASKS).index(robot.task) + 1 :] if task in possible]
    less = f"ask for less with --task {' or '.join(weaker)}"
    if not possible or directions(robot, "position", needed)[1] < needed.stop:
        why = "its joints cannot move its tool in all the directions that this needs"
        advice = "Experiments that need no path, homogenization and the random poses of solvers, are open to it."
    elif robot.task not in possible:
        free, chosen = directions(robot, robot.task)
        why = f"of its task ({robot.task}) its tool can go in {free} directions, of which its joints choose {chosen}"
        advice = f"{less.capitalize()}."
    else:
        place = ", ".join(f"{v:.3f}" for v in here[:3])
        why = f"its joints' limits or a singular posture are in the way, from where its tool begins, ({place}) m"
        advice = "Begin elsewhere with --home" + (f", or {less}." if weaker else ".")
    return TargetOutOfReach(
        f"{robot.name} cannot {what}: {why}. {advice}", sample=0, time=0.0, distance=math.nan, angle=math.nan
    )
