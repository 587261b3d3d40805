"""Bring setpoints within velocity, acceleration and tool speed when the targets ask for more than the arm can do."""

from __future__ import annotations

import numpy as np
import ruckig
from numpy.typing import NDArray

from simbridge.kinematics import tool_path
from simbridge.robot import Robot
from simbridge.robot.robot import Array

# Just inside, so that rounding does not carry a setpoint over the limit it was planned for.
_INSIDE = 1.0 - 1e-6
# Of the tool speed limit: chords are a little shorter than the arcs they are cut from.
_SPEED_MARGIN = 0.98
_STRETCHES = 20


class Limiter:
    """Follows desired joint positions, one a period, within velocity and acceleration.

    A position that can be had at once is passed on untouched. Otherwise ruckig's time-optimal profile leads there, with
    the desired motion's own velocity as the velocity on arrival.

    Args:
        robot: Its position, velocity and acceleration limits hold.
        period: Control period, s.
        max_tool_speed: In m/s; None where the whole plan's time is stretched instead.
    """

    def __init__(self, robot: Robot, period: float, max_tool_speed: float | None = None) -> None:
        n = robot.n
        self._robot, self._period, self._max_tool_speed = robot, period, max_tool_speed
        self._max_velocity = robot.max_velocity * _INSIDE
        self._max_step = robot.max_acceleration * period * _INSIDE
        self._otg = ruckig.Ruckig(n, period)
        self._input, self._output = ruckig.InputParameter(n), ruckig.OutputParameter(n)
        self._input.max_velocity = self._max_velocity.tolist()
        self._input.max_acceleration = [robot.max_acceleration * _INSIDE] * n
        self._input.max_jerk = [np.inf] * n
        self._input.synchronization = ruckig.Synchronization.Time
        self.reset(robot.home)

    def reset(self, q: Array) -> None:
        """Stand still at joint positions q (n,)."""
        self._position = np.array(q, dtype=float)
        self._velocity = np.zeros(self._robot.n)
        self._desired = self._position.copy()

    def next(self, desired: Array) -> tuple[Array, bool]:
        """The setpoint (n,) of this period, and whether it differs from the desired one."""
        goal = np.clip(desired, self._robot.position_min, self._robot.position_max)
        velocity = (goal - self._position) / self._period
        feasible = np.all(np.abs(velocity) <= self._max_velocity) and np.all(
            np.abs(velocity - self._velocity) <= self._max_step
        )
        position = goal if feasible else self._toward(goal)
        if self._max_tool_speed is not None:
            position = self._slowed(position)
        self._velocity = (position - self._position) / self._period
        self._position = position
        self._desired = goal
        return position.copy(), not np.array_equal(position, desired)

    def _toward(self, goal: Array) -> Array:
        arrival = np.clip((goal - self._desired) / self._period, -0.99 * self._max_velocity, 0.99 * self._max_velocity)
        self._input.current_position = self._position.tolist()
        self._input.current_velocity = np.clip(self._velocity, -self._max_velocity, self._max_velocity).tolist()
        self._input.target_position = goal.tolist()
        self._input.target_velocity = arrival.tolist()
        self._otg.update(self._input, self._output)
        return np.clip(self._output.new_position, self._robot.position_min, self._robot.position_max)

    def _slowed(self, position: Array) -> Array:
        fastest = float(tool_speeds(self._robot, np.stack([self._position, position]), self._period)[0])
        allowed = (self._max_tool_speed or 0.0) * _INSIDE
        return position if fastest <= allowed else self._position + (allowed / fastest) * (position - self._position)


def tool_speeds(robot: Robot, setpoints: Array, period: float) -> Array:
    """Speed of the TCP (T - 1,) in m/s between joint positions (T, n) one period apart."""
    points = tool_path(robot, setpoints)[:, :3]
    return np.linalg.norm(np.diff(points, axis=0), axis=1) / period


def limited(robot: Robot, solution: Array, period: float) -> tuple[Array, NDArray[np.bool_]]:
    """A whole solution (T, n) brought within velocity and acceleration, and which of its setpoints changed (T,)."""
    limiter = Limiter(robot, period)
    limiter.reset(solution[0])
    steps = [limiter.next(q) for q in solution]
    return np.array([q for q, _ in steps]), np.array([changed for _, changed in steps])


def stretched_times(robot: Robot, setpoints: Array, period: float, max_tool_speed: float) -> Array:
    """When each setpoint (T, n) is due so that the tool keeps within its speed, s (T,).

    The clock slows smoothly before a stretch that is too fast and picks up after it.
    """
    speeds = tool_speeds(robot, setpoints, period)
    rate = np.minimum(1.0, _SPEED_MARGIN * max_tool_speed / np.maximum(speeds, 1e-12))
    # At most this much change of the clock's rate per period, so that slowing adds little acceleration of its own.
    slope = 2.0 * period
    for k in range(1, len(rate)):
        rate[k] = min(rate[k], rate[k - 1] + slope)
    for k in range(len(rate) - 2, -1, -1):
        rate[k] = min(rate[k], rate[k + 1] + slope)
    return np.concatenate([[0.0], np.cumsum(period / rate)])
