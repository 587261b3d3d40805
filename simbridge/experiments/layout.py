"""Lays out an experiment: a square that the arm can follow, or a step that it can take.

The paper's square is in front of the base, with the tool down. An arm that cannot follow it gets a
square around its tool at home, in the tool's orientation there, which is shrunk until the arm can
follow all of it. The step of experiment B is shortened in the same way.
"""

from __future__ import annotations

import math
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
# Side of the square on a UR10, m.
PAPER_SIDE = 0.4
# Speed along the square on a UR10, m/s.
PAPER_SPEED = 0.2
# The step of experiment B on a UR10, along x, y and z of base_link, m.
PAPER_STEP = np.array([-0.25, -0.75, 0.35])

# Largest distance of the tool from a square that it follows, as a fraction of the side, and largest
# angle between tool and target, rad.
MAX_DEVIATION = 0.005
# Ratio of each size that is tried to the size before.
SHRINKING = 0.8
# Largest number of sizes that are tried.
MAX_SIZES = 14
# The components x and y of a position, which a motion along a square needs.
HORIZONTAL = slice(2)


@dataclass(frozen=True)
class SquareLayout:
    """A horizontal square for an arm.

    Attributes:
        scale: Factor of all lengths and speeds; 1 for those of the paper.
        centre: Centre of the square (3,), m, in base_link.
        orientation: Orientation of the tool in base_link (4,), a unit quaternion.
        note: Sentence on what differs from the paper; "" if only the size does.
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
        """Pose of the tool at the corner where the motion begins (7,), in base_link."""
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
    """A target that moves twice around a square at constant speed.

    By the second lap a solver has settled.

    Attributes:
        speed: Speed along the edges, m/s.
        times: Instants of the targets (T,), s, at the rate `RATE`.
        poses: Targets (T, 7), in base_link.
        corners: Positions of the corners (4, 3), m, each of which is that of a target.
        second_lap: Samples of the second lap.
    """

    speed: float
    times: Array
    poses: Array
    corners: Array
    second_lap: slice

    @staticmethod
    def of(layout: SquareLayout, speed: float = PAPER_SPEED) -> MovingSquare:
        """Return the target that moves around a square.

        The edges are changed slightly, to be a whole number of samples long.

        Args:
            layout: The square.
            speed: Speed on a UR10, m/s; the target is proportionally slower on smaller arms.
        """
        scaled_speed = speed * layout.scale
        edge_samples = max(1, round(layout.side * RATE / scaled_speed))
        path = square(
            edge_samples * scaled_speed / RATE,
            layout.centre,
            scaled_speed,
            RATE,
            laps=2,
            orientation=layout.orientation,
        )
        corners = path.poses[: 4 * edge_samples : edge_samples, :3]
        # The second lap ends at the corner where it began.
        second_lap = slice(4 * edge_samples, 8 * edge_samples + 1)
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

    # Smaller and smaller squares around the tool at home.
    for scale in _list_scales(size.scale):
        side = significant(1e3 * PAPER_SIDE * scale)
        note = (
            f"{robot.name} cannot follow the paper's square, in front of the base with the tool "
            "down: the square is centred on the tool at home, in the tool's orientation there; its "
            f"side is {side} mm."
        )
        layout = SquareLayout(scale, home[:3], home[3:], note)
        if _can_follow(robot, layout, _solve_near_home(robot, layout.first_target)):
            return layout

    motion = "follow a square, either in front of its base or around its tool"
    raise _make_layout_error(robot, home, motion, HORIZONTAL)


def step_target(robot: Robot) -> tuple[Array, str]:
    """Return the target of experiment B, at a distance in proportion to the arm's size.

    An arm that cannot take the full step gets a shorter one in the same direction.

    Returns:
        The pose (7,), in base_link, and a sentence on a shorter step; "" for the full step.

    Raises:
        TargetOutOfReach: The arm cannot move in the step's direction.
    """
    size = paper_size(robot)
    home = tool_path(robot, robot.home[None])[0]
    full_scale, *smaller_scales = _list_scales(size.scale)
    # `up` is 0 on an arm that cannot leave its plane: its step has no component along z.
    step = PAPER_STEP * (1.0, 1.0, size.up)

    # The full step may end in a posture that no motion from home leads to.
    target = _shift_pose(home, full_scale * step)
    if solve_posture(robot, target) is not None:
        return target, ""

    # A shorter step must be attained by a motion from home.
    for scale in smaller_scales:
        target = _shift_pose(home, scale * step)
        if _solve_near_home(robot, target) is not None:
            length = significant(1e3 * float(np.linalg.norm(target[:3] - home[:3])))
            note = f"{robot.name} cannot take a step of full size: this one is {length} mm."
            return target, note

    # Say why not even a short step is possible. It needs x and y, and z unless it stays level.
    shifts = ", ".join(f"{shift:g}" for shift in PAPER_STEP)
    motion = f"take the experiment's step, ({shifts}) m or a shorter one"
    components = slice(3) if size.up else HORIZONTAL
    raise _make_layout_error(robot, home, motion, components)


def _shift_pose(start: Array, offset: Array) -> Array:
    """Return a pose (7,) that is shifted by an offset (3,), m."""
    return np.concatenate([start[:3] + offset, start[3:]])


def _solve_near_home(robot: Robot, target: Array) -> Array | None:
    """Return joint positions (n,) that a motion from home attains; None if it needs restarts."""
    solution = ForwardDynamics(robot).solve(target)
    return solution.q if solution.converged and solution.restarts == 0 else None


def _list_scales(largest: float) -> list[float]:
    """Return the sizes that are tried, the largest first."""
    return [largest * SHRINKING**index for index in range(MAX_SIZES)]


def _can_follow(robot: Robot, layout: SquareLayout, start: Array | None) -> bool:
    """Return whether the arm can follow a square once within its limits and without a jump.

    Args:
        robot: The arm.
        layout: The square.
        start: Joint positions at the square's first corner (n,), rad; None if there are none.
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


def _make_layout_error(robot: Robot, home: Array, motion: str, needed: slice) -> TargetOutOfReach:
    """Return the error that says why an arm cannot take part, and what to do.

    Args:
        robot: The arm.
        home: Pose of the tool at home (7,), in base_link.
        motion: The motion that the arm cannot make, as a phrase that begins with a verb.
        needed: The components of a position that the motion needs.
    """
    # The tasks whose directions the joints control all at a time, and those among them that require
    # less than the arm's own task.
    tasks = list(TASK_ROWS)
    possible = []
    for task in tasks:
        overall, simultaneous = task_directions(robot, task)
        if overall == simultaneous:
            possible.append(task)
    weaker = [task for task in tasks[tasks.index(robot.task) + 1 :] if task in possible]
    less = f"require less with --task {' or '.join(weaker)}"

    _, movable = task_directions(robot, "position", needed)
    if not possible or movable < needed.stop:
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
        f"{robot.name} cannot {motion}: {reason}. {advice}",
        sample=0,
        time=0.0,
        distance=math.nan,
        angle=math.nan,
    )
