"""Makes lines past the singularities of an arm: those of its shoulder, its elbow and its wrist.

A singular posture is found by turning joints, beginning at home, until the Jacobian loses a
direction. Exactly through such a posture the joints may move smoothly; close to it they have to
turn far over a short distance. So a line passes through a pose *next to* the singular one, with a
constant orientation of the tool. If the arm cannot go on beyond that pose, because it is stretched
out, for example, the line leads back from there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from simbridge.experiments.arm import dexterity
from simbridge.experiments.layout import PAPER_SPEED
from simbridge.experiments.suite.shapes import SIZES
from simbridge.experiments.suite.stage import Stage, follow
from simbridge.experiments.suite.suite_motion import SuiteMotion
from simbridge.robot.kinematics import task_jacobian, tool_path
from simbridge.robot.pose import Array
from simbridge.robot.postures import movable_directions
from simbridge.robot.robot import Robot
from simbridge.text import plain, significant
from simbridge.trajectory.motion_laws import MinimumJerk
from simbridge.trajectory.trace import concatenate, move

# Length of a line, m, on an arm of scale 1.
LINE_LENGTH = 0.4
# Number of angles to which a joint is turned in search of a singular posture.
TRIED_ANGLES = 721
# Largest dexterity of a posture that counts as singular: see `dexterity`.
SINGULAR = 0.01
# Distances of the joints from the singular posture at the nearest pose of a line, rad. The first
# one that the arm can follow is chosen.
DISTANCES = (0.05, 0.1, 0.2)
# Ratio to the dexterity at the ends of a line to which it must fall on the way.
FALL = 0.5
# Number of times that the joints of a part of the arm are turned one after the other.
SWEEPS = 5
# Smallest horizontal part of the lost direction, a unit vector of translation, m, and rotation,
# rad, with which it counts as one of translation.
MIN_LOST_TRANSLATION = 0.3


@dataclass(frozen=True)
class SingularLine:
    """A straight line that comes near a singularity.

    Attributes:
        nearest: Pose (7,) of the line that is nearest to the singularity.
        shift: Vector (3,) from that pose to the start of the line, m.
        leads_back: Whether the line leads back to its start from that pose, instead of going on.
    """

    nearest: Array
    shift: Array
    leads_back: bool

    def targets(self, stage: Stage) -> Array:
        """Return the targets along the line (T, 7), one per control period, with minimum jerk."""
        law = MinimumJerk(PAPER_SPEED * stage.scale)
        rate = 1.0 / stage.robot.period
        start = _shift_pose(self.nearest, self.shift)
        if self.leads_back:
            outward = move(start, self.nearest, law, rate=rate)
            back = move(self.nearest, start, law, rate=rate)
            line = concatenate(outward, back)
        else:
            end = _shift_pose(self.nearest, -self.shift)
            line = move(start, end, law, rate=rate)
        return line.target(stage.instants(line.duration))

    def retreat(self, stage: Stage) -> Array:
        """Return targets (T, 7) that lead from the nearest pose to the start of the line."""
        law = MinimumJerk(PAPER_SPEED * stage.scale)
        start = _shift_pose(self.nearest, self.shift)
        return move(self.nearest, start, law, rate=1.0 / stage.robot.period).poses


def make_singular_lines(stage: Stage, notes: list[str]) -> list[SuiteMotion]:
    """Return a line past a singularity of each part of the arm that has one.

    Args:
        stage: The arm.
        notes: List of notes, to which one is appended for each part without such a line.
    """
    motions = []
    for part, joints in _list_parts(stage.robot.n).items():
        motion = _find_line(stage, part, joints)
        if motion is None:
            notes.append(
                f"{part}_singularity is left out: no line was found along which "
                f"{stage.robot.name} passes a singularity of its {part}."
            )
        else:
            motions.append(motion)
    return motions


def _list_parts(joint_count: int) -> dict[str, range]:
    """Return the parts of an arm that can be singular, with the indices of their joints.

    The first joint only moves the arm as a whole, which makes nothing singular. An arm with fewer
    than six joints has only an elbow.
    """
    if joint_count < 6:
        return {"elbow": range(1, joint_count)}
    first_of_wrist = joint_count - 3
    return {
        "wrist": range(first_of_wrist, joint_count),
        "elbow": range(2, first_of_wrist),
        "shoulder": range(1, 2),
    }


def _find_line(stage: Stage, part: str, joints: range) -> SuiteMotion | None:
    """Return a motion along a line past a singularity of a part of the arm, or None.

    Args:
        stage: The arm.
        part: Name of the part.
        joints: Indices of the part's joints.
    """
    for singular in _find_singular_postures(stage.robot, joints):
        for distance in DISTANCES:
            posture = _move_towards_home(stage.robot, singular, distance)
            for line in _list_candidate_lines(stage, posture):
                start = _find_start(stage, line, posture)
                if start is not None:
                    return _make_motion(stage, part, line, start=start, distance=distance)
    return None


def _make_motion(
    stage: Stage, part: str, line: SingularLine, *, start: Array, distance: float
) -> SuiteMotion:
    """Return the motion along a line, all of which the arm can follow.

    Args:
        stage: The arm.
        part: Name of the part of the arm that is singular.
        line: The line.
        start: Joint positions at the start of the line (n,), rad or m.
        distance: Distance of the joints from the singular posture at the nearest pose, rad.
    """
    targets = line.targets(stage)
    length_to_nearest = float(np.linalg.norm(line.shift))
    continuation = "and back" if line.leads_back else "and on beyond it"
    return SuiteMotion(
        name=f"{part}_singularity",
        group="tracking",
        description=(
            f"A straight line over {plain(1e3 * length_to_nearest)} mm to where the nearest "
            f"singular posture of the {part} is {significant(math.degrees(distance), digits=2)} "
            f"degrees away, {continuation}."
        ),
        targets=targets,
        start=start,
        in_reach=np.ones(len(targets), dtype=bool),
    )


def _find_singular_postures(robot: Robot, joints: range) -> list[Array]:
    """Return singular postures (n,) that differ from home in some joints, the nearest first.

    Args:
        robot: The arm.
        joints: Indices of the joints that may differ; sliding ones make nothing singular.
    """
    # Turn one joint alone.
    turning = [joint for joint in joints if not robot.prismatic[joint]]
    minima = [_minimize_dexterity(robot, robot.home, joint) for joint in turning]
    postures = [
        posture
        for postures_of_joint in minima
        for posture in postures_of_joint
        if _is_singular(robot, posture)
    ]

    # A redundant arm is singular only with several joints turned: turn one after the other.
    if not postures:
        for postures_of_joint in minima:
            posture = postures_of_joint[0]
            for joint in turning * SWEEPS:
                posture = _minimize_dexterity(robot, posture, joint)[0]
            if _is_singular(robot, posture):
                postures.append(posture)

    return sorted(postures, key=lambda posture: float(np.abs(posture - robot.home).max()))


def _is_singular(robot: Robot, posture: Array) -> bool:
    """Return whether a posture (n,) is singular."""
    return bool(dexterity(robot, posture[None])[0] < SINGULAR)


def _minimize_dexterity(robot: Robot, posture: Array, joint: int) -> list[Array]:
    """Return the postures (n,) with the local minima of dexterity over one joint, lowest first.

    Args:
        robot: The arm.
        posture: Joint positions (n,) with the positions of all other joints.
        joint: Index of the joint, which is turned by up to half a turn to either side of home.
    """
    low = max(robot.position_min[joint], robot.home[joint] - math.pi)
    high = min(robot.position_max[joint], robot.home[joint] + math.pi)
    tried = np.tile(posture, (TRIED_ANGLES, 1))
    tried[:, joint] = np.linspace(low, high, TRIED_ANGLES)

    # A minimum is no larger than the values beside it.
    ratios = dexterity(robot, tried)
    before = np.concatenate([[np.inf], ratios[:-1]])
    after = np.concatenate([ratios[1:], [np.inf]])
    minima = np.flatnonzero((ratios <= before) & (ratios <= after))
    lowest_first = minima[np.argsort(ratios[minima])]
    return list(tried[lowest_first])


def _move_towards_home(robot: Robot, singular: Array, distance: float) -> Array:
    """Return the joint positions (n,) at some distance from a singular posture towards home.

    Args:
        robot: The arm.
        singular: The singular posture (n,).
        distance: Motion of the joint that moves farthest, rad.
    """
    difference = robot.home - singular
    fraction = min(1.0, distance / np.abs(difference).max())
    return singular + difference * fraction


def _list_candidate_lines(stage: Stage, posture: Array) -> Iterator[SingularLine]:
    """Yield lines near a posture (n,), in the order in which they are tried.

    Longer lines come first; of equally long ones those that go on past the posture.
    """
    nearest = tool_path(stage.robot, posture[None])[0]
    directions = _choose_directions(stage, posture)
    for size in SIZES:
        length = LINE_LENGTH * stage.scale * size
        for direction in directions:
            yield SingularLine(nearest, -0.5 * length * direction, leads_back=False)
        for direction in directions:
            yield SingularLine(nearest, -0.5 * length * direction, leads_back=True)
            yield SingularLine(nearest, 0.5 * length * direction, leads_back=True)


def _choose_directions(stage: Stage, posture: Array) -> list[Array]:
    """Return the directions (3,) of lines near a posture (n,), in order of preference.

    First comes the horizontal direction at right angles to the one in which the arm can hardly move
    its tool: along it the arm passes the singularity. If only a rotation is lost, the first
    direction is at right angles to the one from the base to the tool.
    """
    # The lost direction belongs to the smallest singular value of those that the arm can have.
    robot = stage.robot
    jacobian = task_jacobian(robot, posture, robot.task)
    tool_directions, _, _ = np.linalg.svd(jacobian)
    direction_count = movable_directions(robot.placements, robot.prismatic, robot.task)
    lost = tool_directions[:3, min(direction_count, robot.n) - 1]

    tool_position = tool_path(robot, posture[None])[0, :3]
    is_translation = np.hypot(lost[0], lost[1]) > MIN_LOST_TRANSLATION
    avoided = lost if is_translation else tool_position

    upwards = np.array([0.0, 0.0, 1.0])
    across = np.cross(upwards, avoided)
    across /= np.linalg.norm(across)
    outwards = np.cross(across, upwards)
    return [across, outwards, upwards] if stage.lift else [across, outwards]


def _find_start(stage: Stage, line: SingularLine, posture: Array) -> Array | None:
    """Return the joint positions (n,) at the start of a line; None if the line does not serve.

    The arm must be able to follow the line, and its dexterity must fall on the way.

    Args:
        stage: The arm.
        line: The line.
        posture: Joint positions (n,) at the pose nearest to the singularity.
    """
    # The posture is known at the nearest pose: from there the arm goes back to the start.
    targets = line.targets(stage)
    joints_to_start = follow(stage, line.retreat(stage), posture)
    if joints_to_start is None:
        return None

    # Solve the start once more, to be as exact as the starts of other motions. A solution after a
    # restart may be another posture than the one from which the arm came: it does not serve.
    start = stage.solver.solve(targets[0], joints_to_start[-1])
    if not start.converged or start.restarts > 0:
        return None

    # Follow the line itself.
    joints = follow(stage, targets, start.q)
    if joints is None:
        return None

    ratios = dexterity(stage.robot, joints)
    dexterity_falls = ratios.min() <= FALL * min(ratios[0], ratios[-1])
    return start.q if dexterity_falls else None


def _shift_pose(pose: Array, offset: Array) -> Array:
    """Return a pose (7,) that is shifted by a vector (3,), m."""
    return np.concatenate([pose[:3] + offset, pose[3:]])
