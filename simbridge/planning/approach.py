"""The approach: a slow joint motion from the arm's position to the start of a plan, checked like any plan."""

from __future__ import annotations

import numpy as np

from simbridge.planning.check import check_setpoints
from simbridge.robot.collision import BARE_FLOOR, CollisionModel, CollisionScene
from simbridge.robot.kinematics import tool_speeds
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot


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
    """Joint positions (T, n) from start to goal (n,), straight in joint space, with a minimum-jerk profile.

    Joint positions are in rad, one a period, s. The two speed limits, rad/s and m/s, set the duration, so that it never
    exceeds them. Then it is checked like a plan: position, velocity, velocity jump and torque limits, self-collision
    and obstacles.

    Raises:
        PlanRefused: The approach violates a limit or collides.
    """
    farthest = float(np.abs(goal - start).max())
    # A minimum-jerk profile peaks at 15/8 of its mean speed.
    duration = max(1.875 * farthest / max_joint_speed, 0.1)
    setpoints = _profile(start, goal, duration, period)
    # A coarsely sampled profile may miss its peak: lengthen it until the limit holds, by at least one period at a time.
    while (fastest := float(tool_speeds(robot, setpoints, period).max())) > max_tool_speed:
        duration = max(duration * fastest / max_tool_speed, duration + period)
        setpoints = _profile(start, goal, duration, period)
    check_setpoints(robot, setpoints, period, max_tool_speed, CollisionModel(robot, collision_scene))
    return setpoints


def _profile(start: Array, goal: Array, duration: float, period: float) -> Array:
    count = int(np.ceil(duration / period)) + 1
    s = np.linspace(0.0, 1.0, count)
    blend = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    setpoints = start + blend[:, None] * (goal - start)
    setpoints[-1] = goal
    return setpoints
