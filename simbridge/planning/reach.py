"""Whether an arm can reach all targets, and where a recording that it cannot reach would be in reach."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

import numpy as np

from simbridge.errors import PlanRefused, TargetOutOfReach
from simbridge.ik.solver import Solver
from simbridge.robot import pose
from simbridge.robot.collision import CollisionModel
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import fixed, pose_residual
from simbridge.trajectory.trajectory import Trajectory

# Poses that are all farther away than this many times the arm's reach are most likely in another unit.
_FARTHEST = 20.0
# Samples that are solved for each placement, and for the one that is suggested.
_FEW, _MANY = 12, 200
_TURNS = tuple(math.radians(degrees) for degrees in (0, 45, -45, 90, -90, 135, -135, 180))
# Where the middle of the motion is tried: distances from the first joint and heights, as parts of the reach.
_DISTANCES, _HEIGHTS = (0.55, 0.45, 0.65), (0.2, 0.35, 0.05, 0.5)
# Placements that are shortened for each rotation.
_TRIED = 3
# A shift is shortened until the motion is out of reach, and stays by this much of the way inside.
_MARGIN, _HALVINGS = 0.1, 5


def check_reach(solver: Solver, trajectory: Trajectory, times: Array, targets: Array, start: Array) -> None:
    """Refuse targets (T, 7), at instants of their trajectory (T,), s, that no posture attains.

    Each is solved to a tolerance, starting at the solution before it, the first at joint positions `start` (n,), rad.

    Raises:
        TargetOutOfReach: Names the first, and says so when all are (most likely in another unit).
    """
    poses = np.concatenate([trajectory.poses, targets]) if len(targets) > 1 else targets
    instants = np.concatenate([trajectory.elapsed, times]) if len(targets) > 1 else times
    order = np.argsort(instants, kind="stable")
    # In chunks: a solve that fails takes as long as a hundred that succeed, and only the first failure is reported.
    for begin in range(0, len(order), 64):
        chunk = order[begin : begin + 64]
        q, residuals, converged = solver.solve_each(poses[chunk], start)
        if not np.all(converged):
            first = int(np.argmin(converged))
            _refuse(solver, trajectory, float(instants[chunk[first]]), poses[chunk[first]], residuals[first])
        start = q[-1]


def _refuse(solver: Solver, trajectory: Trajectory, time: float, target: Array, residual: Array) -> NoReturn:
    """Refuse for the first target that is out of reach."""
    sample = int(trajectory.sample_at(time))
    distance, angle = float(residual[0]), float(residual[1])
    first = f"the first is sample {sample} at {time:.3f} s, which stays {pose_residual(distance, angle)} away"
    few = np.unique(np.linspace(0, len(trajectory.poses) - 1, 25).astype(int))
    _, residuals, attained = solver.solve_each(trajectory.poses[few], solver.robot.home)
    # The first is only just out of reach; the worst shows how far the motion leaves the workspace.
    worst = int(np.argmax(np.where(attained, -1.0, residuals[:, 0])))
    if residuals[worst, 0] > 2.0 * distance and not attained[worst]:
        first += f"; the farthest is sample {few[worst]}, {pose_residual(*residuals[worst])} away"
    every = not attained.any()
    if every:
        slip = "; are these millimetres? Positions are in metres, unless --columns x[mm] says so"
        slip = slip if in_another_unit(trajectory, solver.robot) else ""
        message = (
            f"every target is out of reach{slip}; {first}. The arm reaches at most "
            f"{solver.robot.reach:.2f} m from its first joint; check units, frame (--frame base for pendant poses) and "
            "TCP."
        )
    else:
        place = ", ".join(fixed(v, 3) for v in target[:3])
        message = (
            f"targets are out of reach; {first} (the first target is {place} m). Move or shrink the trajectory, or "
            "choose a longer arm (--robot)."
        )
    if trajectory.read_as:
        message += f" The file was read as {trajectory.read_as}."
    message = f"The plan was refused: {message}"
    raise TargetOutOfReach(message, sample=sample, time=time, distance=distance, angle=angle, every=every)


def in_another_unit(trajectory: Trajectory, robot: Robot) -> bool:
    """Whether positions are most likely not in metres: all of them are far out of the arm's reach."""
    return float(np.linalg.norm(trajectory.poses[:, :3], axis=1).min()) > _FARTHEST * robot.reach


def flag_of(placement: Array | tuple[float, ...]) -> str:
    """The values of --transform: x y z in m and the quaternion, with seven decimals."""
    return " ".join(f"{round(float(value), 7) + 0.0:.7g}" for value in placement)


class AttainableSpace(NamedTuple):
    """What an arm can attain without a collision."""

    solver: Solver
    collisions: CollisionModel

    def holds(self, poses: Array, rotation: Array, shift: Array) -> bool:
        """Whether it holds all of the poses, once they are placed."""
        robot, placed = self.solver.robot, pose.compose(np.concatenate([shift, rotation]), poses)
        start, found = robot.home, []
        # A few at a time: a target out of reach takes as long as a hundred in reach, and one is enough.
        for k in range(0, len(placed), 4):
            q, _, converged = self.solver.solve_each(placed[k : k + 4], start)
            if not np.all(converged) or (q < robot.position_min).any() or (q > robot.position_max).any():
                return False
            start = q[-1]
            found.append(q)
        try:
            self.collisions.check(np.concatenate(found), robot.period)
        except PlanRefused:
            return False
        return True

    def places(self, middle: Array) -> list[Array]:
        """Places for the middle of a motion, in its own direction, at which an arm attains most rotations."""
        robot = self.solver.robot
        home = tool_path(robot, robot.home[None])[0, :3]
        x, y = middle[:2] if np.hypot(*middle[:2]) > 1e-9 else home[:2]
        outwards = np.array([x, y]) / max(math.hypot(x, y), 1e-9)
        rings = itertools.product(_DISTANCES, _HEIGHTS)
        return [*(robot.reach * np.array([*(distance * outwards), height]) for distance, height in rings), home]


def placements(trajectory: Trajectory, space: AttainableSpace) -> Iterator[Array]:
    """Placements (7,) that bring all of a motion in reach, the smallest rotation first."""
    few, many = (_spread(trajectory.poses, count) for count in (_FEW, _MANY))
    middle = 0.5 * (few[:, :3].min(axis=0) + few[:, :3].max(axis=0))
    for turn in _TURNS:
        rotation = np.array([0.0, 0.0, math.sin(turn / 2.0), math.cos(turn / 2.0)])
        turned = pose.rotate(rotation, middle)
        whole = [place - turned for place in space.places(turned)]
        whole = [shift for shift in whole if space.holds(few, rotation, shift)][:_TRIED]
        short = sorted((_shortened(space, few, rotation, shift) for shift in whole), key=np.linalg.norm)
        # Close to the edge of the reach joints are fast: where the nearest is refused for that, a whole shift may do.
        for shift in (*short[:2], *whole[:2]):
            rounded = np.round(shift, 3)
            if space.holds(many, rotation, rounded):
                yield np.concatenate([rounded, rotation])


def _spread(poses: Array, count: int) -> Array:
    return poses[np.unique(np.linspace(0, len(poses) - 1, min(count, len(poses))).round().astype(int))]


def _shortened(space: AttainableSpace, poses: Array, rotation: Array, shift: Array) -> Array:
    """The shortest part of a shift that still brings the poses in reach, and a margin."""
    short, enough = 0.0, 1.0
    for _ in range(_HALVINGS):
        tried = 0.5 * (short + enough)
        if space.holds(poses, rotation, tried * shift):
            enough = tried
        else:
            short = tried
    return min(enough + _MARGIN, 1.0) * shift
