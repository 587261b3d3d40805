"""The arm and its error at one instant, as plain numbers for the pages."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.sessions.causes import LiveCause

# The sources of the error between the goal and the arm, in the order of the data.
SOURCES = ("sampling", "solver", "limiter", "servo law", "rest")


class Snapshot(NamedTuple):
    """An arm and its error at one instant.

    Attributes:
        time: Instant on the session's clock, s.
        q: Joint positions of the arm (n,), rad.
        qd: Joint velocities of the arm (n,), rad/s.
        solution: The solver's joint positions (n,), rad.
        target: What the solver was given (7,).
        errors: Distance by source, m: see `SOURCES`.
        distance: Distance between the goal and the arm, m, in what the task constrains.
        angle: Angle between the goal and the arm, rad, in what the task constrains.
        causes: What limits the arm now, the strongest first.
    """

    time: float
    q: Array
    qd: Array
    solution: Array
    target: Array
    errors: tuple[float, ...]
    distance: float
    angle: float
    causes: tuple[LiveCause, ...]


def limit_use(robot: Robot, q: Array, qd: Array) -> tuple[Array, Array]:
    """Return how much of their limits the joints use.

    Args:
        robot: The arm.
        q: Joint positions (..., n), rad.
        qd: Joint velocities (..., n), rad/s.

    Returns:
        Fractions (..., n) of each joint's range, from its middle, and of its velocity limit. A
        joint without ends uses none of its range.
    """
    has_ends = np.isfinite(robot.position_max) & np.isfinite(robot.position_min)
    low = np.where(has_ends, robot.position_min, -1.0)
    high = np.where(has_ends, robot.position_max, 1.0)
    middle = 0.5 * (low + high)
    half_range = 0.5 * (high - low)

    range_use = np.where(has_ends, np.abs(q - middle) / half_range, 0.0)
    velocity_use = np.abs(qd) / robot.max_velocity
    return range_use, velocity_use


def out_of_reach(robot: Robot, point: Array) -> float:
    """Return by how much a point is further from the first joint than the arm is long, m.

    Args:
        robot: The arm.
        point: A point in base_link (3,), m.

    Returns:
        0 for a point within that distance.
    """
    first_joint = robot.placements[0][:3, 3]
    distance = float(np.linalg.norm(np.asarray(point) - first_joint))
    return max(0.0, distance - robot.arm_length)
