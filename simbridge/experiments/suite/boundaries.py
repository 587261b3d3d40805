"""Makes motions at the boundaries of an arm: past its workspace's edge, and along a joint limit."""

from __future__ import annotations

import math

import numpy as np

from simbridge.experiments.arm import MIN_DEXTERITY, dexterity, within_limits
from simbridge.experiments.layout import PAPER_SPEED
from simbridge.experiments.suite.stage import Stage, follow, smooth_step
from simbridge.experiments.suite.suite_motion import SuiteMotion
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.text import plain
from simbridge.trajectory.motion_laws import MinimumJerk
from simbridge.trajectory.trace import concatenate, dwell, move

# Distance over which the tool approaches the edge of the workspace, m, on an arm of scale 1.
APPROACH = 0.15
# Distance by which the target goes beyond the edge, m, on an arm of scale 1.
BEYOND = 0.06
# Time that the target waits beyond the edge, s.
WAIT = 1.0
# Number of bisections that find the edge.
BISECTIONS = 24
# Distance of the motions' centre from the axis of the base below which it has no direction, m.
MIN_CENTRE_DISTANCE = 1e-6

# Distance from its limit at which a joint begins, rad or m.
LIMIT_APPROACH = 0.25
# Smallest distance of the joint from its limit, rad or m.
LIMIT_MARGIN = 0.002
# Amplitude of the other joints' motion near the limit, rad or m.
SWAY = 0.08
# Number of cycles of the other joints' motion.
SWAY_CYCLES = 2.0
# Duration of the approach to the limit, and of the way back, s.
APPROACH_TIME = 1.0
# Duration of the motion along the limit, s.
ALONG_TIME = 2.0


def make_boundary_motions(stage: Stage, notes: list[str]) -> list[SuiteMotion]:
    """Return a motion past the edge of the workspace, and one along a joint limit.

    Args:
        stage: The arm.
        notes: List of notes, to which one is appended for each motion that is left out.
    """
    motions = []
    past_the_edge = _make_edge_motion(stage)
    if past_the_edge is None:
        notes.append(
            f"past_the_edge is left out: no edge of the workspace of {stage.robot.name} was found "
            "in front of its motions."
        )
    else:
        motions.append(past_the_edge)

    along_limit = _make_limit_motion(stage)
    if along_limit is None:
        notes.append(
            f"joint_limit is left out: {stage.robot.name} has no joint with a limit to move along."
        )
    else:
        motions.append(along_limit)
    return motions


def _make_edge_motion(stage: Stage) -> SuiteMotion | None:
    """Return a motion beyond the edge of the workspace and back; None if no edge is found."""
    outwards = _find_outwards(stage)
    edge = _find_edge(stage, outwards)
    if edge is None:
        return None

    # The targets: outwards past the edge, a pause there, and back.
    start = _shift_centre(stage, outwards, edge - APPROACH * stage.scale)
    end = _shift_centre(stage, outwards, edge + BEYOND * stage.scale)
    law = MinimumJerk(PAPER_SPEED * stage.scale)
    rate = 1.0 / stage.robot.period
    course = concatenate(
        move(start, end, law, rate=rate),
        dwell(end, WAIT),
        move(end, start, law, rate=rate),
    )
    targets = course.target(stage.instants(course.duration))

    # The arm must be able to follow the targets up to the edge.
    distances = (targets[:, :3] - stage.centre) @ outwards
    in_reach = distances <= edge
    first_beyond = int(np.argmin(in_reach))
    first_joints = stage.solve(start)
    if first_joints is None or follow(stage, targets[:first_beyond], first_joints) is None:
        return None
    return SuiteMotion(
        name="past_the_edge",
        group="tracking",
        description=(
            f"Outwards to {plain(1e3 * BEYOND * stage.scale)} mm beyond the edge of the "
            f"workspace, {WAIT:g} s there, and back."
        ),
        targets=targets,
        start=first_joints,
        in_reach=in_reach,
    )


def _find_outwards(stage: Stage) -> Array:
    """Return the horizontal unit vector (3,) from the base to the centre of the motions.

    If the centre is above the base, it is the x axis of base_link.
    """
    x, y, _ = stage.centre
    distance = math.hypot(x, y)
    if distance < MIN_CENTRE_DISTANCE:
        return np.array([1.0, 0.0, 0.0])
    return np.array([x, y, 0.0]) / distance


def _shift_centre(stage: Stage, direction: Array, distance: float) -> Array:
    """Return the central pose (7,), shifted along a unit vector (3,) by a distance, m."""
    shifted = stage.central_pose
    shifted[:3] += distance * direction
    return shifted


def _find_edge(stage: Stage, direction: Array) -> float | None:
    """Return the distance from the centre to the last pose that can be attained, m, by bisection.

    It is None if the arm attains even a pose at twice its length, or has no finite length.

    Args:
        stage: The arm.
        direction: Unit vector (3,) along which the edge is searched.
    """
    attained = 0.0
    missed = 2.0 * stage.robot.arm_length
    if not math.isfinite(missed):
        return None
    if stage.solve(_shift_centre(stage, direction, missed)) is not None:
        return None

    for _ in range(BISECTIONS):
        distance = 0.5 * (attained + missed)
        if stage.solve(_shift_centre(stage, direction, distance)) is None:
            missed = distance
        else:
            attained = distance
    return attained


def _make_limit_motion(stage: Stage) -> SuiteMotion | None:
    """Return a motion of the tool while a joint is at its limit; None without such a joint.

    It is the last joint, from the base, that can go there without a singularity. The targets are
    the poses of the tool in a motion of the joints, so that they can all be attained.
    """
    robot = stage.robot
    for joint in reversed(range(robot.n)):
        # Each limit, with the sign of the direction away from it.
        limits = ((robot.position_max[joint], -1.0), (robot.position_min[joint], 1.0))
        for limit, inwards in limits:
            if not math.isfinite(limit):
                continue
            nearest = limit + inwards * LIMIT_MARGIN
            joints = _move_to_limit(stage, joint, nearest, inwards)
            is_regular = dexterity(robot, joints).min() > MIN_DEXTERITY
            if is_regular and within_limits(robot, joints):
                targets = tool_path(robot, joints)
                return SuiteMotion(
                    name="joint_limit",
                    group="tracking",
                    description=(
                        f"The tool moves while {robot.joint_names[joint]} is "
                        f"{plain(1e3 * LIMIT_MARGIN)} m{_unit(stage, joint)} from its limit."
                    ),
                    targets=targets,
                    start=joints[0],
                    in_reach=np.ones(len(targets), dtype=bool),
                )
    return None


def _move_to_limit(stage: Stage, joint: int, nearest: float, inwards: float) -> Array:
    """Return joint positions (T, n) with which a joint goes to its limit, stays, and comes back.

    All other joints sway about home while the joint is near its limit.

    Args:
        stage: The arm.
        joint: Index of the joint.
        nearest: Position of the joint at its limit, rad or m.
        inwards: Sign of the direction away from the limit.
    """
    robot = stage.robot
    times = stage.instants(2.0 * APPROACH_TIME + ALONG_TIME)

    # The nearness rises from 0 to 1, stays there, and falls to 0 again.
    since_return = times - APPROACH_TIME - ALONG_TIME
    nearness = smooth_step(times / APPROACH_TIME) - smooth_step(since_return / APPROACH_TIME)
    phase = 2.0 * math.pi * SWAY_CYCLES * (times - APPROACH_TIME) / ALONG_TIME

    joints = robot.home + SWAY * (nearness * np.sin(phase))[:, None]
    joints[:, joint] = nearest + inwards * LIMIT_APPROACH * (1.0 - nearness)
    return joints


def _unit(stage: Stage, joint: int) -> str:
    """Return the unit of a joint's position."""
    return "m" if stage.robot.prismatic[joint] else "rad"
