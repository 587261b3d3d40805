"""The way from where the arm is to where a plan begins: a slow joint move, checked like any plan."""

from __future__ import annotations

import numpy as np

from simbridge.planning.check import check_setpoints
from simbridge.planning.limiter import tool_speeds
from simbridge.robot.collision import CollisionModel
from simbridge.robot.obstacles import BARE_FLOOR, CollisionScene
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

    Args:
        robot: The arm.
        start, goal: Joint positions (n,), rad.
        period: Control period, s.
        max_joint_speed: rad/s, for every joint.
        max_tool_speed: m/s.
        surroundings: What it must not touch.

    Raises:
        PlanRefused: The way there breaks a limit or touches something.
    """
    farthest = float(np.abs(goal - start).max())
    # A minimum-jerk profile peaks at 15/8 of its mean speed.
    duration = max(1.875 * farthest / max_joint_speed, 0.1)
    setpoints = _profile(start, goal, duration, period)
    # A coarse profile hides its peak: slower is found in a few rounds, each of at least one period more.
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
