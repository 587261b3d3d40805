"""The place of an experiment: a square that the arm can follow, or a step that it can take.

The paper's square is in front of the base, with the tool down. An arm that cannot follow it gets a
square around its tool at home, in the tool's orientation there, and shrunk until it can follow all
of it; the step of experiment B is shortened likewise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from simbridge.errors import TargetOutOfReach
from simbridge.experiments.arm import format_position, pose_errors, solve_posture, within_limits
from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.robot.chain import TASK_ROWS
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.postures import task_directions
from simbridge.robot.robot import Robot
from simbridge.text import significant
from simbridge.trajectory.paper_size import paper_size
from simbridge.trajectory.shapes import CORNERS, square

# Solver steps per second in the paper's experiments, Hz.
RATE = 100.0
# Side of the square, m, and speed along it, m/s, on a UR10.
PAPER_SIDE = 0.4
PAPER_SPEED = 0.2
# The step of experiment B on a UR10, m.
PAPER_STEP = np.array([-0.25, -0.75, 0.35])

# A square counts as followed when no sample is further away than these parts of its side and of a
# radian.
MAX_DEVIATION = 0.005
# Each size that is tried is this part of the one before; and how many are tried.
SHRINKING = 0.8
MAX_SIZES = 14
# The directions of a position that a square needs.
HORIZONTAL = slice(2)


@dataclass(frozen=True)
class SquareLayout:
    """A square for an arm.

    Attributes:
        scale: Factor of all lengths and speeds; 1 as in the paper.
        centre: Centre of the square (3,), m, in base_link.
        orientation: Orientation of the tool (4,), a unit quaternion.
        note: What differs from the paper; "" where only the size does.
    """

    scale: float
    centre: Array
    orientation: Array
    note: str = ""

    @property
    def side(self) -> float:
        """Length of an edge, m."""
        return PAPER_SIDE * self.scale

    @property
    def first_target(self) -> Array:
        """The corner at which it begins (7,)."""
        return np.array([*(self.centre + 0.5 * self.side * CORNERS[0]), *self.orientation])

    def as_data(self) -> dict[str, Any]:
        """Return size and place for JSON."""
        return {
            "scale": self.scale,
            "centre_m": self.centre.tolist(),
            "orientation": self.orientation.tolist(),
        }


@dataclass(frozen=True)
class MovingSquare:
    """A target that moves twice around the square at constant speed.

    On the second lap the solver has settled.

    Attributes:
        speed: Along the edges, m/s.
        times: Instants (T,), `RATE` a second, s.
        poses: Targets (T, 7).
        corners: Corners (4, 3), m, each of them a target.
        second_lap: Its samples.
    """

    speed: float
    times: Array
    poses: Array
    corners: Array
    second_lap: slice

    @staticmethod
    def of(layout: SquareLayout, speed: float = PAPER_SPEED) -> MovingSquare:
        """Make a target of a square, whose edges become a whole number of samples long.

        Args:
            layout: The square.
            speed: On a UR10, m/s; proportionally slower on smaller arms.
        """
        scaled_speed = speed * layout.scale
        edge = max(1, round(layout.side * RATE / scaled_speed))
        path = square(
            edge * scaled_speed / RATE,
            layout.centre,
            scaled_speed,
            RATE,
            laps=2,
            orientation=layout.orientation,
        )
        corners = path.poses[: 4 * edge : edge, :3]
        second_lap = slice(4 * edge, 8 * edge + 1)
        return MovingSquare(scaled_speed, path.times, path.poses, corners, second_lap)


def choose_layout(robot: Robot) -> SquareLayout:
    """Return a square that an arm can follow, from its home.

    Raises:
        TargetOutOfReach: The arm cannot follow any square, not even a small one around its tool.
    """
    size = paper_size(robot)
    home = tool_path(robot, robot.home[None])[0]

    # The paper's square, in front of the base.
    orientation = home[3:] if robot.planar else np.array(size.orientation)
    paper = SquareLayout(size.scale, np.array(size.centre), orientation)
    if _can_follow(robot, paper, solve_posture(robot, paper.first_target)):
        return paper

    # Smaller and smaller squares around the tool.
    for scale in _scales(size.scale):
        side = significant(1e3 * PAPER_SIDE * scale)
        note = (
            f"{robot.name} cannot follow the paper's square, in front of the base with the tool "
            "down: the square is centred on the tool at home, in the tool's orientation there; its "
            f"side is {side} mm."
        )
        layout = SquareLayout(scale, home[:3], home[3:], note)
        if _can_follow(robot, layout, _solve_near_home(robot, layout.first_target)):
            return layout

    what = "follow a square, either in front of its base or around its tool"
    raise _no_layout(robot, home, what, HORIZONTAL)


def step_target(robot: Robot) -> tuple[Array, str]:
    """Return the target of experiment B, its distance in proportion to the arm's size.

    Returns:
        The pose (7,), and a note ("" for none).

    Raises:
        TargetOutOfReach: The arm cannot move in the step's direction.
    """
    size = paper_size(robot)
    home = tool_path(robot, robot.home[None])[0]
    for scale in _scales(size.scale):
        target = home.copy()
        target[:3] += scale * PAPER_STEP * (1.0, 1.0, size.up)

        if scale == size.scale:
            if solve_posture(robot, target) is not None:
                return target, ""
        elif _solve_near_home(robot, target) is not None:
            length = significant(1e3 * float(np.linalg.norm(target[:3] - home[:3])))
            note = f"{robot.name} cannot take a step of full size: this one is {length} mm."
            return target, note

    what = "take the experiment's step, (-0.25, -0.75, 0.35) m or a shorter one"
    # x and y, and z unless the step stays at its height.
    directions = slice(3) if size.up else slice(2)
    raise _no_layout(robot, home, what, directions)


def _solve_near_home(robot: Robot, target: Array) -> Array | None:
    """Return joint positions that a motion from home reaches, without restarts."""
    solution = ForwardDynamics(robot).solve(target)
    return solution.q if solution.converged and solution.restarts == 0 else None


def _scales(largest: float) -> Iterator[float]:
    """Yield the sizes to try, the largest first."""
    return (largest * SHRINKING**k for k in range(MAX_SIZES))


def _can_follow(robot: Robot, layout: SquareLayout, start: Array | None) -> bool:
    """Return whether the arm can follow the square within its limits and without a jump.

    Args:
        robot: The arm.
        layout: The square.
        start: Posture at its start (n,), rad; None if there is none.
    """
    if start is None:
        return False
    speed = PAPER_SPEED * layout.scale
    path = square(layout.side, layout.centre, speed, RATE, orientation=layout.orientation)
    joints = ForwardDynamics(robot).track(path.poses, start)

    errors = np.abs(pose_errors(robot, path.poses, joints))
    is_close = errors[:, :3].max() <= MAX_DEVIATION * layout.side
    is_aligned = errors[:, 3:].max() <= MAX_DEVIATION
    return bool(is_close and is_aligned) and within_limits(robot, joints)


def _no_layout(robot: Robot, home: Array, what: str, needed: slice) -> TargetOutOfReach:
    """Return the error that says why an arm cannot do something, and what to do.

    Args:
        robot: The arm.
        home: The tool at home (7,).
        what: It cannot do.
        needed: The directions of a position that this needs.
    """
    tasks = list(TASK_ROWS)
    possible = [task for task in tasks if len(set(task_directions(robot, task))) == 1]
    weaker = [task for task in tasks[tasks.index(robot.task) + 1 :] if task in possible]
    less = f"require less with --task {' or '.join(weaker)}"

    if not possible or task_directions(robot, "position", needed)[1] < needed.stop:
        reason = "its joints cannot move its tool in all the directions that this needs"
        advice = (
            "Experiments that do not need a path still work: homogenization, and the random poses "
            "of solvers."
        )
    elif robot.task not in possible:
        overall, simultaneous = task_directions(robot, robot.task)
        reason = (
            f"its task ({robot.task}) has {overall} directions, of which its joints control "
            f"{simultaneous} at a time"
        )
        advice = f"{less.capitalize()}."
    else:
        reason = (
            f"from its home (tool at ({format_position(home)}) m), joint limits or a singular "
            "posture block the way"
        )
        advice = "Start elsewhere with --home"
        advice += f", or {less}." if weaker else "."
    return TargetOutOfReach(
        f"{robot.name} cannot {what}: {reason}. {advice}",
        sample=0,
        time=0.0,
        distance=math.nan,
        angle=math.nan,
    )
