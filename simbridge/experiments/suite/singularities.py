"""Lines past the singularities of an arm: of its shoulder, its elbow and its wrist.

A singular posture is found by turning joints of the arm's home until the Jacobian loses a
direction. Exactly through such a posture the joints may move on smoothly; close to it they have to
turn far over a short distance. So a line passes through the pose *next to* the singular one, with a
constant orientation of the tool. Where the arm cannot go on beyond it, as where it is stretched
out, the line ends there and leads back.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from simbridge.experiments.arm import dexterity
from simbridge.experiments.layout import PAPER_SPEED
from simbridge.experiments.suite.motion import Motion
from simbridge.experiments.suite.shapes import SIZES
from simbridge.experiments.suite.stage import Stage, follow
from simbridge.robot.kinematics import task_jacobian, tool_path
from simbridge.robot.pose import Array
from simbridge.robot.postures import movable_directions
from simbridge.robot.robot import Robot
from simbridge.text import plain, significant
from simbridge.trajectory.motion_laws import MinimumJerk
from simbridge.trajectory.trace import concatenate, move

# Length of a line of scale 1, m.
LINE_LENGTH = 0.4
# Angles to which a joint is turned in search of a singular posture.
TRIED_ANGLES = 721
# Smallest over largest singular value, up to which a posture counts as singular.
SINGULAR = 0.01
# How far the joints are from the singular posture where the line comes nearest to it, rad: as near
# as the arm can follow.
DISTANCES = (0.05, 0.1, 0.2)
# Part of the dexterity at the ends of a line to which it falls at least.
FALL = 0.5
# How often the joints of a part of the arm are turned one after the other.
SWEEPS = 5
# Horizontal part of the unit direction that is lost, m, from which on it is one of translation.
MIN_LOST_TRANSLATION = 0.3


@dataclass(frozen=True)
class SingularLine:
    """A straight line that comes near a singularity.

    Attributes:
        nearest: Pose (7,) at which it is nearest.
        shift: Vector (3,) from there to its start, m.
        leads_back: Whether it turns there, and leads back to its start, instead of going on.
    """

    nearest: Array
    shift: Array
    leads_back: bool

    def targets(self, stage: Stage) -> Array:
        """Return the targets (T, 7), one per control period, with minimum jerk."""
        law = MinimumJerk(PAPER_SPEED * stage.scale)
        rate = 1.0 / stage.robot.period
        start = _shift(self.nearest, self.shift)
        if self.leads_back:
            there = move(start, self.nearest, law, rate=rate)
            back = move(self.nearest, start, law, rate=rate)
            line = concatenate(there, back)
        else:
            line = move(start, _shift(self.nearest, -self.shift), law, rate=rate)
        return line.target(stage.instants(line.duration))

    def approach(self, stage: Stage) -> Array:
        """Return the targets (T, 7) from where it is nearest to its start."""
        law = MinimumJerk(PAPER_SPEED * stage.scale)
        start = _shift(self.nearest, self.shift)
        return move(self.nearest, start, law, rate=1.0 / stage.robot.period).poses


def make_singular_lines(stage: Stage, notes: list[str]) -> list[Motion]:
    """Return a line past a singularity of each part of the arm that has one.

    Args:
        stage: The arm.
        notes: A sentence is added for each part without such a line.
    """
    motions = []
    for part, joints in _parts(stage.robot.n).items():
        motion = _line_past(stage, part, joints)
        if motion is None:
            notes.append(
                f"{part}_singularity is left out: no line was found along which "
                f"{stage.robot.name} passes a singularity of its {part}."
            )
        else:
            motions.append(motion)
    return motions


def _parts(joints: int) -> dict[str, range]:
    """Return the indices of the joints whose angles make an arm singular, by the arm's part.

    The first joint moves the arm as a whole, which makes nothing singular. An arm of fewer than six
    joints has an elbow only.
    """
    if joints < 6:
        return {"elbow": range(1, joints)}
    first_of_wrist = joints - 3
    return {
        "wrist": range(first_of_wrist, joints),
        "elbow": range(2, first_of_wrist),
        "shoulder": range(1, 2),
    }


def _line_past(stage: Stage, part: str, joints: range) -> Motion | None:
    """Return a line past a singularity of a part of the arm, or None.

    Args:
        stage: The arm.
        part: Name of the part.
        joints: Indices of its joints.
    """
    for singular in _singular_postures(stage.robot, joints):
        for distance in DISTANCES:
            posture = _homewards(stage.robot, singular, distance)
            for line in _candidate_lines(stage, posture):
                start = _start_of(stage, line, posture)
                if start is not None:
                    return _motion_along(stage, part, line, start=start, distance=distance)
    return None


def _motion_along(
    stage: Stage, part: str, line: SingularLine, *, start: Array, distance: float
) -> Motion:
    """Return the motion along a line.

    Args:
        stage: The arm.
        part: Name of the part of the arm that is singular.
        line: The line.
        start: Joint positions (n,) at its start.
        distance: How near it comes to the singular posture, rad.
    """
    targets = line.targets(stage)
    length = float(np.linalg.norm(line.shift))
    course = "and back" if line.leads_back else "and on beyond it"
    return Motion(
        name=f"{part}_singularity",
        group="tracking",
        description=(
            f"A straight line over {plain(1e3 * length)} mm to where the nearest singular posture "
            f"of the {part} is {significant(math.degrees(distance), 2)} degrees away, {course}."
        ),
        targets=targets,
        start=start,
        in_reach=np.ones(len(targets), dtype=bool),
    )


def _singular_postures(robot: Robot, joints: range) -> list[Array]:
    """Return singular postures (n,) that differ from home by some joints, nearest first.

    Args:
        robot: The arm.
        joints: Indices of these joints; sliding ones make nothing singular.
    """
    turning = [joint for joint in joints if not robot.prismatic[joint]]
    minima = [_least_dexterous(robot, robot.home, joint) for joint in turning]
    postures = [posture for tried in minima for posture in tried if _is_singular(robot, posture)]
    if not postures:
        # A redundant arm is singular only where several joints are.
        for tried in minima:
            posture = tried[0]
            for joint in turning * SWEEPS:
                posture = _least_dexterous(robot, posture, joint)[0]
            if _is_singular(robot, posture):
                postures.append(posture)

    return sorted(postures, key=lambda posture: float(np.abs(posture - robot.home).max()))


def _is_singular(robot: Robot, posture: Array) -> bool:
    return bool(dexterity(robot, posture[None])[0] < SINGULAR)


def _least_dexterous(robot: Robot, posture: Array, joint: int) -> list[Array]:
    """Return the postures (n,) in which turning a joint leaves the least dexterity.

    They are the minima over its angle, the lowest first.

    Args:
        robot: The arm.
        posture: Joint positions (n,).
        joint: Index of the joint, which is turned over at most a turn.
    """
    low = max(robot.position_min[joint], robot.home[joint] - math.pi)
    high = min(robot.position_max[joint], robot.home[joint] + math.pi)
    tried = np.tile(posture, (TRIED_ANGLES, 1))
    tried[:, joint] = np.linspace(low, high, TRIED_ANGLES)

    ratios = dexterity(robot, tried)
    before = np.concatenate([[np.inf], ratios[:-1]])
    after = np.concatenate([ratios[1:], [np.inf]])
    minima = np.flatnonzero((ratios <= before) & (ratios <= after))
    return list(tried[minima[np.argsort(ratios[minima])]])


def _homewards(robot: Robot, singular: Array, distance: float) -> Array:
    """Return the joint positions (n,) on the way from a singular posture to home.

    Args:
        robot: The arm.
        singular: The posture (n,).
        distance: How far the joint that moves most has moved, rad.
    """
    way = robot.home - singular
    return singular + way * min(1.0, distance / np.abs(way).max())


def _candidate_lines(stage: Stage, posture: Array) -> Iterator[SingularLine]:
    """Yield lines near a posture (n,), in the order in which they are to be tried.

    Long ones come first; of equally long ones those that go on past the posture.
    """
    nearest = tool_path(stage.robot, posture[None])[0]
    directions = _line_directions(stage, posture)
    for size in SIZES:
        length = LINE_LENGTH * stage.scale * size
        for direction in directions:
            yield SingularLine(nearest, -0.5 * length * direction, leads_back=False)
        for direction in directions:
            yield SingularLine(nearest, -0.5 * length * direction, leads_back=True)
            yield SingularLine(nearest, 0.5 * length * direction, leads_back=True)


def _line_directions(stage: Stage, posture: Array) -> list[Array]:
    """Return the directions (3,) of lines near a posture (n,), in order of preference.

    First comes the horizontal direction across the one in which the arm can hardly move its tool:
    along it the arm passes the singularity. Where only a rotation is lost, it is the one across the
    direction from the base to the tool.
    """
    robot = stage.robot
    jacobian = task_jacobian(robot, posture, robot.task)
    moves, _, _ = np.linalg.svd(jacobian)
    rows = movable_directions(robot.placements, robot.prismatic, robot.task)
    lost = moves[:3, min(rows, robot.n) - 1]
    tool = tool_path(robot, posture[None])[0, :3]
    away = lost if np.hypot(lost[0], lost[1]) > MIN_LOST_TRANSLATION else tool

    upwards = np.array([0.0, 0.0, 1.0])
    across = np.cross(upwards, away)
    across /= np.linalg.norm(across)
    outwards = np.cross(across, upwards)
    return [across, outwards, upwards] if stage.lift else [across, outwards]


def _start_of(stage: Stage, line: SingularLine, posture: Array) -> Array | None:
    """Return the joint positions (n,) at the start of a line that suits the suite, else None.

    The arm has to be able to follow it, and its dexterity has to fall on the way.

    Args:
        stage: The arm.
        line: The line.
        posture: Joint positions (n,) where it is nearest to the singularity.
    """
    targets = line.targets(stage)
    to_start = follow(stage, line.approach(stage), posture)
    if to_start is None:
        return None

    # The same posture, as exact as the starts of other motions.
    start = stage.solver.solve(targets[0], to_start[-1])
    if not start.converged or start.restarts > 0:
        return None
    joints = follow(stage, targets, start.q)
    if joints is None:
        return None
    ratios = dexterity(stage.robot, joints)
    return start.q if ratios.min() <= FALL * min(ratios[0], ratios[-1]) else None


def _shift(pose: Array, offset: Array) -> Array:
    """Return a pose (7,) shifted by a vector (3,), m."""
    return np.concatenate([pose[:3] + offset, pose[3:]])
