"""Where a recording that an arm cannot reach would be in reach: the nearest rotation about z and shift."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from simbridge.errors import PlanRefused, TargetOutOfReach
from simbridge.ik.solver import Solver
from simbridge.planning.options import Options
from simbridge.planning.plan import make_plan
from simbridge.planning.scenario import Scenario
from simbridge.robot import pose
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.trajectory.trajectory import PENDANT_BASE, Trajectory

# Samples that are solved for each placement, and for the one that is suggested.
_FEW, _MANY = 12, 200
_TURNS = tuple(math.radians(degrees) for degrees in (0, 45, -45, 90, -90, 135, -135, 180))
# Where the middle of the motion is tried: distances from the first joint and heights, as parts of the reach.
_DISTANCES, _HEIGHTS = (0.55, 0.45, 0.65), (0.2, 0.35, 0.05, 0.5)
# Placements that are planned, to find one that keeps all limits.
_PLANS = 4
# A shift is shortened until the motion is out of reach, and stays by this much of the way inside.
_MARGIN, _HALVINGS = 0.1, 5


def nearest_placement(robot: Robot, scenario: Scenario, solver: Solver, options: Options) -> Array | None:
    """The smallest rotation about z, and with it the smallest shift found, that bring all of a recording in reach.

    Rotations are multiples of 45 degrees. Of the first placements the one that passes the whole plan check is taken;
    where the check refuses them all, as for a motion that is too fast, the first.

    Args:
        robot, solver, options: As for `make_plan`.
        scenario: Of a file; nothing of it is in reach.

    Returns:
        The transform (7,) from the file's frame to base_link, in place of the options' own, with the shift in whole mm;
        None if none was found, or if the file is placed by --anchor.
    """
    if options.anchor is not None:
        return None
    own = np.array(options.transform or (PENDANT_BASE if options.frame == "base" else pose.IDENTITY))
    placeable = replace(options, transform=(), frame="base_link")
    found = None
    for frame in itertools.islice(_placements(scenario.trajectory, solver.reaching), _PLANS):
        total = pose.compose(frame, own)
        found = total if found is None else found
        moved = replace(scenario, trajectory=scenario.trajectory.transformed(frame))
        with contextlib.suppress(PlanRefused):
            make_plan(robot, moved, solver, placeable)
            return total
    return found


def suggestion(error: TargetOutOfReach, placement: Array | None) -> TargetOutOfReach:
    """The same error with the flag that brings the motion in reach."""
    if placement is None:
        return error
    # On a line of its own, to be copied.
    text = f"{error} The nearest placement in reach:\n--transform {flag_of(placement)}"
    facts = {"sample": error.sample, "time": error.time, "distance": error.distance, "angle": error.angle}
    return TargetOutOfReach(text, every=True, **facts)


def _placements(trajectory: Trajectory, solver: Solver) -> Iterator[Array]:
    """Placements (7,) that bring all of a motion in reach, the smallest rotation first."""
    few, many = (_spread(trajectory.poses, count) for count in (_FEW, _MANY))
    middle = 0.5 * (few[:, :3].min(axis=0) + few[:, :3].max(axis=0))
    for turn in _TURNS:
        rotation = np.array([0.0, 0.0, math.sin(turn / 2.0), math.cos(turn / 2.0)])
        turned = pose.rotate(rotation, middle)
        shifts = (place - turned for place in _places(solver, turned))
        reaching = (shift for shift in shifts if _reaches(solver, few, rotation, shift))
        # The smallest of those to each place that is reached.
        for shift in sorted((_shortened(solver, few, rotation, shift) for shift in reaching), key=np.linalg.norm):
            rounded = np.round(shift, 3)
            if _reaches(solver, many, rotation, rounded):
                yield np.concatenate([rounded, rotation])


def flag_of(placement: Array | tuple[float, ...]) -> str:
    """The values of --transform: x y z in m and the quaternion, with seven decimals."""
    return " ".join(f"{round(float(value), 7) + 0.0:.7g}" for value in placement)


def _spread(poses: Array, count: int) -> Array:
    return poses[np.unique(np.linspace(0, len(poses) - 1, min(count, len(poses))).round().astype(int))]


def _places(solver: Solver, middle: Array) -> list[Array]:
    """Places for the middle of a motion: first those in its own direction, at which an arm reaches most ways."""
    robot = solver.robot
    home = tool_path(robot, robot.home[None])[0, :3]
    bearing = math.atan2(middle[1], middle[0]) if np.hypot(*middle[:2]) > 1e-9 else math.atan2(home[1], home[0])
    places = [
        np.array([distance * math.cos(bearing), distance * math.sin(bearing), height]) * robot.reach
        for distance in _DISTANCES
        for height in _HEIGHTS
    ]
    return [*places, home]


def _shortened(solver: Solver, poses: Array, rotation: Array, shift: Array) -> Array:
    """The shortest part of a shift that still brings the poses in reach, and a margin."""
    short, enough = 0.0, 1.0
    for _ in range(_HALVINGS):
        tried = 0.5 * (short + enough)
        if _reaches(solver, poses, rotation, tried * shift):
            enough = tried
        else:
            short = tried
    return min(enough + _MARGIN, 1.0) * shift


def _reaches(solver: Solver, poses: Array, rotation: Array, shift: Array) -> bool:
    placed = pose.compose(np.concatenate([shift, rotation]), poses)
    # One at a time: a target out of reach takes as long as a hundred in reach, and one is enough.
    start = solver.robot.home
    for k in range(0, len(placed), 4):
        q, _, converged = solver.solve_each(placed[k : k + 4], start)
        if not np.all(converged):
            return False
        start = q[-1]
    return True
