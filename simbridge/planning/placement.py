"""Where a recording that an arm cannot reach would be in reach: the nearest rotation about z and shift."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from simbridge.errors import PlanRefused, TargetOutOfReach
from simbridge.ik.solver import Solver
from simbridge.planning.check import Peaks
from simbridge.planning.options import Options, StartChoice
from simbridge.planning.plan import Plan
from simbridge.planning.planner import make_plan
from simbridge.planning.scenario import Scenario
from simbridge.robot import pose
from simbridge.robot.collision import CollisionModel
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.trajectory.trajectory import PENDANT_BASE, Trajectory

# Samples that are solved for each placement, and for the one that is suggested.
_FEW, _MANY = 12, 200
_TURNS = tuple(math.radians(degrees) for degrees in (0, 45, -45, 90, -90, 135, -135, 180))
# Where the middle of the motion is tried: distances from the first joint and heights, as parts of the reach.
_DISTANCES, _HEIGHTS = (0.55, 0.45, 0.65), (0.2, 0.35, 0.05, 0.5)
# Placements that are shortened for each rotation, and those that are planned, to find one that keeps all limits.
_TRIED, _PLANS = 3, 6
# A shift is shortened until the motion is out of reach, and stays by this much of the way inside.
_MARGIN, _HALVINGS = 0.1, 5
# As parts of the reach.
_FARTHEST = 20.0


def plan_or_suggestion(
    robot: Robot,
    scenario: Scenario,
    solver: Solver,
    options: Options,
    *,
    replay: Plan | None = None,
    start: StartChoice = "auto",
) -> tuple[Plan, Peaks]:
    """`make_plan`; where nothing of a file is in reach, its refusal ends with the flag that brings it in reach.

    Raises:
        PlanRefused: As `make_plan`.
    """
    try:
        return make_plan(robot, scenario, solver, options, replay=replay, start=start)
    except TargetOutOfReach as error:
        file = error.every and scenario.trajectory.read_as
        placement = nearest_placement(robot, scenario, solver, options) if file else None
        if placement is None:
            raise
        # On a line of its own, to be copied.
        text = f"{error} The nearest placement in reach:\n--transform {flag_of(placement)}"
        facts = {"sample": error.sample, "time": error.time, "distance": error.distance, "angle": error.angle}
        raise TargetOutOfReach(text, every=True, **facts) from None


def nearest_placement(robot: Robot, scenario: Scenario, solver: Solver, options: Options) -> Array | None:
    """The smallest rotation about z, and with it the smallest shift found, that bring all of a recording in reach.

    Rotations are multiples of 45 degrees. Of the first few placements the one that passes the whole plan check is
    taken; where the check refuses them all, as for a motion that is too fast, the first.

    Args:
        robot, solver, options: As for `make_plan`.
        scenario: Of a file; nothing of it is in reach.

    Returns:
        The transform (7,) from the file's frame to base_link, in place of the options' own, with the shift in whole mm;
        None if none was found.
    """
    distance = float(np.linalg.norm(scenario.trajectory.poses[:, :3], axis=1).min())
    # Poses that are far away are in another unit, and an anchored motion begins in reach.
    if options.anchor is not None or distance > _FARTHEST * robot.reach:
        return None
    own = np.array(options.transform or (PENDANT_BASE if options.frame == "base" else pose.IDENTITY))
    placeable = replace(options, transform=(), frame="base_link")
    space = _Space(solver.reaching, CollisionModel(robot, options.collision_scene))
    found = None
    for frame in itertools.islice(_placements(scenario.trajectory, space), _PLANS):
        total = pose.compose(frame, own)
        found = total if found is None else found
        moved = replace(scenario, trajectory=scenario.trajectory.transformed(frame))
        with contextlib.suppress(PlanRefused):
            make_plan(robot, moved, solver, placeable)
            return total
    return found


def flag_of(placement: Array | tuple[float, ...]) -> str:
    """The values of --transform: x y z in m and the quaternion, with seven decimals."""
    return " ".join(f"{round(float(value), 7) + 0.0:.7g}" for value in placement)


class _Space(NamedTuple):
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


def _placements(trajectory: Trajectory, space: _Space) -> Iterator[Array]:
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


def _shortened(space: _Space, poses: Array, rotation: Array, shift: Array) -> Array:
    """The shortest part of a shift that still brings the poses in reach, and a margin."""
    short, enough = 0.0, 1.0
    for _ in range(_HALVINGS):
        tried = 0.5 * (short + enough)
        if space.holds(poses, rotation, tried * shift):
            enough = tried
        else:
            short = tried
    return min(enough + _MARGIN, 1.0) * shift
