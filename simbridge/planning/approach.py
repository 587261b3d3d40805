"""The approach: a slow motion from where the arm is to where a plan begins, checked like a plan."""

from __future__ import annotations

import numpy as np

from simbridge.planning.check import check_setpoints
from simbridge.robot.collision import CollisionModel
from simbridge.robot.kinematics import tool_speeds
from simbridge.robot.obstacles import BARE_FLOOR, CollisionScene
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# Ratio of the highest speed of a minimum-jerk profile to its mean speed: 15/8.
PEAK_RATIO = 1.875
# Duration of the shortest approach, s.
MIN_DURATION_S = 0.1


def plan_approach(
    robot: Robot,
    start: Array,
    goal: Array,
    period: float,
    *,
    max_joint_speed: float,
    max_tool_speed: float,
    collision_scene: CollisionScene = BARE_FLOOR,
) -> Array:
    """Plan a slow motion from the arm to a plan's start: straight in joint space, minimum jerk.

    The two speed limits set the duration, so that it never exceeds them. Then it is checked like a
    plan: position, velocity, velocity jump and torque limits, self-collision and obstacles.

    Args:
        robot: The arm.
        start: Present joint positions (n,), rad.
        goal: Joint positions (n,), rad, at which the plan begins.
        period: Control period, s.
        max_joint_speed: Largest velocity of a joint, rad/s.
        max_tool_speed: Largest speed of the TCP, m/s.
        collision_scene: The obstacles.

    Returns:
        Joint positions (T, n), rad, one a period.

    Raises:
        PlanRefused: The approach violates a limit or collides.
    """
    largest_distance = float(np.abs(goal - start).max())
    duration = max(PEAK_RATIO * largest_distance / max_joint_speed, MIN_DURATION_S)
    setpoints = _minimum_jerk(start, goal, duration, period)

    # A coarsely sampled profile may miss its peak: lengthen it until the limit holds, by at least
    # one period at a time.
    fastest = float(tool_speeds(robot, setpoints, period).max())
    while fastest > max_tool_speed:
        duration = max(duration * fastest / max_tool_speed, duration + period)
        setpoints = _minimum_jerk(start, goal, duration, period)
        fastest = float(tool_speeds(robot, setpoints, period).max())

    collisions = CollisionModel(robot, collision_scene)
    check_setpoints(robot, setpoints, period, max_tool_speed=max_tool_speed, collisions=collisions)
    return setpoints


def _minimum_jerk(start: Array, goal: Array, duration: float, period: float) -> Array:
    """Return joint positions (T, n), rad, one a period, on a minimum-jerk profile."""
    count = int(np.ceil(duration / period)) + 1
    s = np.linspace(0.0, 1.0, count)
    blend = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    setpoints = start + blend[:, None] * (goal - start)
    setpoints[-1] = goal
    return setpoints
