"""Motions along the boundaries of what an arm can do: the edge of its workspace, a joint limit."""

from __future__ import annotations

import math

import numpy as np

from simbridge.experiments.arm import MIN_DEXTERITY, dexterity, within_limits
from simbridge.experiments.layout import PAPER_SPEED
from simbridge.experiments.suite.motion import Motion
from simbridge.experiments.suite.stage import Stage, follow, smooth_step
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.text import plain
from simbridge.trajectory.motion_laws import MinimumJerk
from simbridge.trajectory.trace import concatenate, dwell, move

# Distances of scale 1 over which the tool approaches the edge of the workspace, and goes beyond, m.
APPROACH = 0.15
BEYOND = 0.06
# Time that the target waits beyond the edge, s.
WAIT = 1.0
# Halvings of the distance in which the edge is.
BISECTIONS = 24

# How far from its limit a joint begins, and how near it comes, rad or m.
LIMIT_APPROACH = 0.25
LIMIT_MARGIN = 0.002
# Amplitude by which the other joints move meanwhile, rad or m; and how often.
SWAY = 0.08
SWAY_CYCLES = 2.0
# Durations of the approach to the limit and of the motion along it, s.
APPROACH_TIME = 1.0
ALONG_TIME = 2.0


def make_boundary_motions(stage: Stage, notes: list[str]) -> list[Motion]:
    """Return a motion past the edge of the workspace, and one along a joint limit.

    Args:
        stage: The arm.
        notes: A sentence is added for each motion that is left out.
    """
    motions = []
    past_the_edge = _past_the_edge(stage)
    if past_the_edge is None:
        notes.append(
            f"past_the_edge is left out: no edge of the workspace of {stage.robot.name} was found "
            "in front of its motions."
        )
    else:
        motions.append(past_the_edge)

    along_limit = _along_limit(stage)
    if along_limit is None:
        notes.append(
            f"joint_limit is left out: {stage.robot.name} has no joint with a limit to move along."
        )
    else:
        motions.append(along_limit)
    return motions


def _past_the_edge(stage: Stage) -> Motion | None:
    """Return a motion beyond the edge of the workspace and back; None where no edge is found."""
    outwards = _outwards(stage)
    edge = _distance_to_edge(stage, outwards)
    if edge is None:
        return None

    start = _along(stage, outwards, edge - APPROACH * stage.scale)
    end = _along(stage, outwards, edge + BEYOND * stage.scale)
    law = MinimumJerk(PAPER_SPEED * stage.scale)
    rate = 1.0 / stage.robot.period
    course = concatenate(
        move(start, end, law, rate=rate),
        dwell(end, WAIT),
        move(end, start, law, rate=rate),
    )
    targets = course.target(stage.instants(course.duration))

    in_reach = (targets[:, :3] - stage.centre) @ outwards <= edge
    first_joints = stage.solve(start)
    first_beyond = int(np.argmin(in_reach))
    if first_joints is None or follow(stage, targets[:first_beyond], first_joints) is None:
        return None
    return Motion(
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


def _outwards(stage: Stage) -> Array:
    """Return the horizontal direction (3,) from the base to the centre of the motions, or x."""
    distance = math.hypot(stage.centre[0], stage.centre[1])
    if distance < 1e-6:
        return np.array([1.0, 0.0, 0.0])
    return np.array([stage.centre[0], stage.centre[1], 0.0]) / distance


def _along(stage: Stage, direction: Array, distance: float) -> Array:
    """Return the central pose (7,), shifted along a unit vector (3,) by a distance, m."""
    shifted = stage.central_pose
    shifted[:3] += distance * direction
    return shifted


def _distance_to_edge(stage: Stage, direction: Array) -> float | None:
    """Return the distance from the centre to the last pose that can be attained, m.

    Args:
        stage: The arm.
        direction: Unit vector (3,).

    Returns:
        None where even a pose twice the arm's length away can be attained.
    """
    attained = 0.0
    missed = 2.0 * stage.robot.arm_length
    if not math.isfinite(missed) or stage.solve(_along(stage, direction, missed)) is not None:
        return None
    for _ in range(BISECTIONS):
        distance = 0.5 * (attained + missed)
        if stage.solve(_along(stage, direction, distance)) is None:
            missed = distance
        else:
            attained = distance
    return attained


def _along_limit(stage: Stage) -> Motion | None:
    """Return a motion of the tool while a joint is at its limit; None without such a joint.

    The targets are where the tool is in a motion of the joints, so that they can be attained. The
    last joint that allows for it goes to its limit.
    """
    robot = stage.robot
    for joint in reversed(range(robot.n)):
        for limit, inwards in ((robot.position_max[joint], -1.0), (robot.position_min[joint], 1.0)):
            if not math.isfinite(limit):
                continue
            joints = _joint_motion(stage, joint, limit + inwards * LIMIT_MARGIN, inwards)
            is_clear = dexterity(robot, joints).min() > MIN_DEXTERITY
            if is_clear and within_limits(robot, joints):
                targets = tool_path(robot, joints)
                return Motion(
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


def _joint_motion(stage: Stage, joint: int, end: float, inwards: float) -> Array:
    """Return joint positions (T, n) with which a joint goes to a position, stays, and comes back.

    Args:
        stage: The arm, with all joints at home except this one.
        joint: Index of the joint.
        end: Position to which it goes, rad or m.
        inwards: Sign of the direction away from its limit.
    """
    robot = stage.robot
    times = stage.instants(2.0 * APPROACH_TIME + ALONG_TIME)
    leaves = times - APPROACH_TIME - ALONG_TIME
    nearness = smooth_step(times / APPROACH_TIME) - smooth_step(leaves / APPROACH_TIME)
    phase = 2.0 * math.pi * SWAY_CYCLES * (times - APPROACH_TIME) / ALONG_TIME

    joints = robot.home + SWAY * (nearness * np.sin(phase))[:, None]
    joints[:, joint] = end + inwards * LIMIT_APPROACH * (1.0 - nearness)
    return joints


def _unit(stage: Stage, joint: int) -> str:
    """Return the unit of a joint's position."""
    return "m" if stage.robot.prismatic[joint] else "rad"
