"""The limiter: brings setpoints within the limits of velocity, acceleration and tool speed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin
import ruckig
from numpy.typing import NDArray

from simbridge.planning.plan import CLOCK_SLOPE
from simbridge.robot.kinematics import tool_speeds
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# Just inside, so that rounding does not bring a setpoint past its limit.
_INSIDE = 1.0 - 1e-6
# Of the tool speed limit: chords are a little shorter than their arcs.
_SPEED_MARGIN = 0.98
# A goal whose velocity changes by so many times what the acceleration allows leaps.
_LEAP = 10.0
# How long a limited solution may take to come to rest at its end, s.
_MAX_SETTLING = 30.0
# Bisections towards a tool speed: the twelfth is within 0.03 % of a period's motion.
_BISECTIONS = 12
# By which factor, 0 to 1, a step from joint positions (n,) to others is to be shortened.
Approach = Callable[[Array, Array], float]
# Solution and setpoints (T, n), rad, which setpoints were changed (T,), and their instants on the trajectory (T,), s.
Timed = tuple[Array, Array, NDArray[np.bool_], Array]


class Limiter:
    """Follows desired joint positions, one per period, within position, velocity and acceleration.

    A motion within the limits is passed on unchanged. Otherwise ruckig's time-optimal profile leads back to it, with
    the velocity of the desired motion on arrival, and never so fast that it could not stop before the end of a joint's
    range. A setpoint that is not finite is passed on for the guard to refuse.

    Args:
        robot: Its position, velocity and acceleration limits hold.
        period: Control period, s.
        max_tool_speed: m/s; None where the time of the whole plan is stretched instead.
        max_velocity: Lower limits of velocity (n,), rad/s; the robot's by default.
        max_acceleration: A lower limit, rad/s^2; the robot's by default.
        margin: What is kept from the ends of the joints' ranges, rad: for the overshoot of the arm.
    """

    def __init__(
        self,
        robot: Robot,
        period: float,
        max_tool_speed: float | None = None,
        max_velocity: Array | None = None,
        max_acceleration: float | None = None,
        margin: float = 0.0,
    ) -> None:
        n = robot.n
        self._margin = margin
        acceleration = robot.max_acceleration if max_acceleration is None else max_acceleration
        self._robot, self._period, self._max_tool_speed = robot, period, max_tool_speed
        self._max_velocity = (
            robot.max_velocity if max_velocity is None else max_velocity
        ) * _INSIDE
        self._max_step = acceleration * period * _INSIDE
        self._otg = ruckig.Ruckig(n, period)
        self._acceleration = [0.0] * n
        self._input, self._output = ruckig.InputParameter(n), ruckig.OutputParameter(n)
        self._input.max_velocity = self._max_velocity.tolist()
        # A little less than the limit of the result, which would otherwise be clipped by rounding.
        self._input.max_acceleration = [acceleration * _INSIDE**2] * n
        self._input.max_jerk = [np.inf] * n
        self._data, self._tcp = robot.model.createData(), robot.model.getFrameId("tcp")
        self.reset(robot.home)

    def reset(self, q: Array) -> None:
        """Begin at rest at joint positions q (n,)."""
        self._position = self._before = np.array(q, dtype=float)
        # An arm that rests nearer to an end than the margin may stay there.
        self._low = np.minimum(self._robot.position_min + self._margin, self._position)
        self._high = np.maximum(self._robot.position_max - self._margin, self._position)
        # Mean of the last period, and at its end.
        self._velocity = self._last_velocity = np.zeros(self._robot.n)
        self._goal = self._position
        # How far the goal moved in the last period.
        self._goal_step = np.zeros(self._robot.n)
        self._speed = 1.0

    @property
    def rests(self) -> bool:
        """Whether the last setpoint is the desired one, and the arm may stop there within the velocity jump."""
        return bool(
            np.array_equal(self._position, self._goal)
            and np.all(np.abs(self._velocity) <= self._robot.max_velocity_jump)
        )

    @property
    def velocity(self) -> Array:
        """Velocity (n,), rad/s, of the last setpoint."""
        return self._velocity.copy()

    @property
    def tool_speed(self) -> float:
        """Speed of the TCP in the last period, m/s."""
        return self._tool_speed(self._position, self._before)

    def slowed(self, share: float) -> None:
        """Go on at this share of the velocity: nothing was sent for a while, and the arm has been braked."""
        self._velocity, self._last_velocity = share * self._velocity, share * self._last_velocity
        self._acceleration = [0.0] * self._robot.n

    def brake(self) -> Array:
        """The setpoint (n,) of this period on the way to rest, all joints in proportion; one near its end first."""
        fastest = float(np.abs(self._velocity).max())
        velocity = (
            max(0.0, 1.0 - self._max_step / fastest) * self._velocity if fastest else self._velocity
        )
        up = self._stoppable(self._high - self._position)
        velocity = np.clip(velocity, -self._stoppable(self._position - self._low), up)
        self._before, self._position = self._position, self._position + velocity * self._period
        self._goal, self._goal_step = self._position, velocity * self._period
        self._velocity = self._last_velocity = velocity
        self._acceleration = [0.0] * self._robot.n
        return self._position.copy()

    def next(
        self, desired: Array, speed: float = 1.0, approach: Approach | None = None
    ) -> tuple[Array, bool]:
        """The setpoint (n,), rad, of this period, and whether it differs from the desired one.

        `speed` is the share of the limits of velocity and tool speed that may be used, above 0.
        """
        if not np.isfinite(desired).all():
            return np.array(desired, dtype=float), True
        goal = np.clip(desired, self._low, self._high)
        self._speed = speed
        lowest, highest = self._velocity_bounds()
        velocity = (goal - self._position) / self._period
        # To join the desired motion without overshoot, its velocity must be attained, too.
        joins = np.abs(velocity - (goal - self._goal) / self._period) <= self._max_step
        if np.all((lowest - 1e-9 <= velocity) & (velocity <= highest + 1e-9) & joins):
            position, last_velocity = goal, velocity
        else:
            position, last_velocity = self._toward(goal, lowest, highest)
        slower = position
        if self._max_tool_speed is not None:
            slower = self._within_tool_speed(position, lowest, highest)
        factor = 1.0 if approach is None else approach(self._position, slower)
        if factor < 1.0:
            slower = self._moved(factor * (slower - self._position) / self._period, lowest, highest)
        if slower is not position:
            position = slower
            last_velocity = (position - self._position) / self._period
        self._velocity, self._last_velocity = (
            (position - self._position) / self._period,
            last_velocity,
        )
        self._goal_step, self._goal = goal - self._goal, goal
        self._before, self._position = self._position, position
        return position.copy(), not np.array_equal(position, desired)

    def _velocity_bounds(self) -> tuple[Array, Array]:
        """The lowest and highest velocity (n,) of the next period: within velocity, acceleration and room to stop."""
        up = self._stoppable(self._high - self._position)
        down = self._stoppable(self._position - self._low)
        fastest = self._speed * self._max_velocity
        highest = np.minimum(np.minimum(self._velocity + self._max_step, fastest), up)
        lowest = np.maximum(np.maximum(self._velocity - self._max_step, -fastest), -down)
        if self._speed < 1.0:
            # A speed that was lowered is reached within the acceleration.
            highest = np.maximum(highest, np.minimum(self._velocity - self._max_step, up))
            lowest = np.minimum(lowest, np.maximum(self._velocity + self._max_step, -down))
        return lowest, highest

    def _stoppable(self, room: Array) -> Array:
        """The highest velocity (n,) from which braking ends within `room` (n,), in rad.

        A velocity v covers v T in its own period, (v - a T) T in the next, and so on for k periods more: the sum is
        inverted for v.
        """
        unit = self._max_step * self._period
        within = np.clip(room, 0.0, 1e6)  # joints without limits have infinite room
        k = np.floor(0.5 * (np.sqrt(1.0 + 8.0 * within / unit) - 1.0))
        return within / (self._period * (k + 1.0)) + 0.5 * self._max_step * k

    def _moved(self, velocity: Array, lowest: Array, highest: Array) -> Array:
        position = self._position + np.clip(velocity, lowest, highest) * self._period
        return np.clip(position, self._low, self._high)

    def _toward(self, goal: Array, lowest: Array, highest: Array) -> tuple[Array, Array]:
        """Ruckig's next position and velocity (n,) on the way to the goal."""
        fastest = 0.99 * self._speed * self._max_velocity
        arrival = np.clip((goal - self._goal) / self._period, -fastest, fastest)
        # To arrive with the velocity of a leap would take a run-up, away from the goal.
        arrival[
            np.abs(goal - self._goal - self._goal_step) > _LEAP * self._max_step * self._period
        ] = 0.0
        self._input.max_velocity = (self._speed * self._max_velocity).tolist()
        self._input.current_position = self._position.tolist()
        self._input.current_velocity = self._last_velocity.tolist()
        # With this ruckig continues its profile while the goal stays.
        self._input.current_acceleration = self._acceleration
        self._input.target_position = goal.tolist()
        self._input.target_velocity = arrival.tolist()
        if not self._updated():
            position = self._moved(np.zeros(self._robot.n), lowest, highest)
            return position, (position - self._position) / self._period
        position = np.array(self._output.new_position)
        velocity = (position - self._position) / self._period
        if np.all((lowest <= velocity) & (velocity <= highest)):
            return position, np.clip(
                self._output.new_velocity, -self._max_velocity, self._max_velocity
            )
        position = self._moved(velocity, lowest, highest)
        return position, (position - self._position) / self._period

    def _updated(self) -> bool:
        """Whether ruckig found a profile: with all joints arriving together or, where that fails, each by itself."""
        for synchronization in (ruckig.Synchronization.Time, ruckig.Synchronization.No):
            self._input.synchronization = synchronization
            try:
                self._otg.update(self._input, self._output)
            except ruckig.RuckigError:
                continue
            self._acceleration = self._output.new_acceleration
            return True
        return False

    def _within_tool_speed(self, position: Array, lowest: Array, highest: Array) -> Array:
        """The position (n,), or the nearest to it, towards that of full braking, at which the tool is slow enough."""
        assert self._max_tool_speed is not None
        allowed = self._speed * self._max_tool_speed * _INSIDE
        if self._tool_speed(position, self._position) <= allowed:
            return position
        fastest = max(float(np.abs(self._velocity).max()), self._max_step)
        braked = self._moved((1.0 - self._max_step / fastest) * self._velocity, lowest, highest)
        low, high = 0.0, 1.0
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            slow = (
                self._tool_speed(braked + middle * (position - braked), self._position) <= allowed
            )
            low, high = (middle, high) if slow else (low, middle)
        return braked + low * (position - braked)

    def _tool_speed(self, position: Array, before: Array) -> float:
        return float(np.linalg.norm(self._tool(position) - self._tool(before))) / self._period

    def _tool(self, q: Array) -> Array:
        """Position (3,) of the TCP, m: by pinocchio, a hundred times faster than `tool_path` for one posture."""
        pin.forwardKinematics(self._robot.model, self._data, q)
        position: Array = pin.updateFramePlacement(
            self._robot.model, self._data, self._tcp
        ).translation.copy()
        return position


def limited(
    robot: Robot, solution: Array, period: float, max_velocity: Array | None = None
) -> tuple[Array, NDArray[np.bool_]]:
    """A whole solution (T, n) within limits of velocity (n,), rad/s and acceleration, and which setpoints were changed.

    Returns:
        Setpoints and flags, T of each or more: the last target is held until the setpoints have attained it.
    """
    limiter = Limiter(robot, period, max_velocity=max_velocity)
    limiter.reset(solution[0])
    steps = [limiter.next(q) for q in solution]
    longest = len(solution) + int(_MAX_SETTLING / period)
    while not limiter.rests and len(steps) < longest:
        steps.append(limiter.next(solution[-1]))
    return np.array([q for q, _ in steps]), np.array([changed for _, changed in steps])


def stretched(
    robot: Robot,
    solution: Array,
    setpoints: Array,
    changed: NDArray[np.bool_],
    times: Array,
    period: float,
    max_tool_speed: float,
) -> Timed:
    """The same joint path, with its time stretched wherever the tool would be too fast."""
    before = np.arange(len(setpoints), dtype=float) * period
    # Instants of the unstretched motion to which the setpoints belong.
    instants, path = before, setpoints
    for _ in range(10):
        if len(path) < 2 or tool_speeds(robot, path, period).max() <= max_tool_speed:
            break
        due = stretched_times(robot, path, period, max_tool_speed)
        count = int(np.ceil(due[-1] / period - 1e-9)) + 1
        instants = np.interp(np.minimum(np.arange(count) * period, due[-1]), due, instants)
        path = _at(instants, before, setpoints)
    if instants is before:
        return solution, setpoints, changed, times
    changed = np.interp(instants, before, changed.astype(float)) > 0.0
    return _at(instants, before, solution), path, changed, np.interp(instants, before, times)


def _at(instants: Array, times: Array, joints: Array) -> Array:
    return np.stack([np.interp(instants, times, joint) for joint in joints.T], axis=1)


def stretched_times(robot: Robot, setpoints: Array, period: float, max_tool_speed: float) -> Array:
    """When each setpoint (T, n) is due so that the tool keeps within its speed, s (T,).

    Time slows down smoothly before an interval that is too fast, and speeds up after it.
    """
    speeds = tool_speeds(robot, setpoints, period)
    rate = np.minimum(1.0, _SPEED_MARGIN * max_tool_speed / np.maximum(speeds, 1e-12))
    slope = CLOCK_SLOPE * period
    for k in range(1, len(rate)):
        rate[k] = min(rate[k], rate[k - 1] + slope)
    for k in range(len(rate) - 2, -1, -1):
        rate[k] = min(rate[k], rate[k + 1] + slope)
    return np.concatenate([[0.0], np.cumsum(period / rate)])
