"""The limiter: brings setpoints within the limits of velocity, acceleration and tool speed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pinocchio as pin
import ruckig
from numpy.typing import NDArray

from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# Fraction of a limit that is used: just inside, so that rounding does not bring a setpoint past it.
LIMIT_FRACTION = 1.0 - 1e-6
# Fraction of the velocity limit that a motion may have on arrival.
ARRIVAL_FRACTION = 0.99
# Ratio of a change of the goal's velocity to the change that the acceleration allows, above which
# the goal leaps.
LEAP_RATIO = 10.0
# How long a limited solution may take to come to rest at its end, s.
MAX_SETTLING_S = 30.0
# Bisections towards a tool speed: the twelfth is within 0.03 % of a period's motion.
BISECTIONS = 12
# Joints without limits have infinite room to stop; this much of it is used, rad.
MAX_ROOM = 1e6
# Difference of two velocities that counts as rounding, rad/s.
VELOCITY_ROUNDING = 1e-9

# Returns the factor, 0 to 1, by which a step from joint positions (n,) to others is shortened.
Approach = Callable[[Array, Array], float]


class VelocityBounds(NamedTuple):
    """Velocities of the next period that keep the limits.

    Attributes:
        lowest: Lowest velocity of each joint (n,), rad/s.
        highest: Highest velocity of each joint (n,), rad/s.
    """

    lowest: Array
    highest: Array


class Limiter:
    """Follows desired joint positions, one per period, within position, velocity and acceleration.

    A motion within the limits is passed on unchanged. Otherwise ruckig's time-optimal profile leads
    back to it, with the velocity of the desired motion on arrival, and never so fast that it could
    not stop before the end of a joint's range. A setpoint that is not finite is passed on for the
    guard to refuse.

    Args:
        robot: The arm, whose limits of position, velocity and acceleration hold.
        period: Control period, s.
        max_tool_speed: Largest speed of the TCP, m/s; None if the time of the whole plan is
            stretched instead.
        max_velocity: Lower limits of velocity (n,), rad/s; the robot's by default.
        max_acceleration: A lower limit, rad/s^2; the robot's by default.
        margin: Distance kept from the ends of the joints' ranges, rad, as the arm overshoots.
    """

    def __init__(
        self,
        robot: Robot,
        period: float,
        *,
        max_tool_speed: float | None = None,
        max_velocity: Array | None = None,
        max_acceleration: float | None = None,
        margin: float = 0.0,
    ) -> None:
        velocity_limits = robot.max_velocity if max_velocity is None else max_velocity
        acceleration_limit = robot.max_acceleration
        if max_acceleration is not None:
            acceleration_limit = max_acceleration

        self._robot = robot
        self._period = period
        # Largest speed of the TCP, m/s; None for no limit.
        self._max_tool_speed = max_tool_speed
        # Distance that is kept from the ends of the joints' ranges, rad.
        self._margin = margin
        # Largest velocity of each joint (n,), rad/s.
        self._max_velocity = velocity_limits * LIMIT_FRACTION
        # Largest change of a joint's velocity from one period to the next, rad/s.
        self._max_change = acceleration_limit * period * LIMIT_FRACTION

        # Ruckig computes the profile that leads back to the desired motion, from its input to its
        # output, which is the state one period later.
        self._profile = ruckig.Ruckig(robot.n, period)
        self._input = ruckig.InputParameter(robot.n)
        self._output = ruckig.OutputParameter(robot.n)
        # Acceleration of each joint (n,) on that profile, rad/s^2.
        self._acceleration = [0.0] * robot.n
        self._input.max_velocity = self._max_velocity.tolist()
        # Ruckig's limit is below that of the setpoints (`_max_change`): rounding in its profile
        # then never exceeds it.
        self._input.max_acceleration = [acceleration_limit * LIMIT_FRACTION**2] * robot.n
        # A jerk without limit: the acceleration may step.
        self._input.max_jerk = [np.inf] * robot.n

        # The tool's speed is computed with pinocchio, at the frame of the TCP.
        self._data = robot.model.createData()
        self._tcp = robot.model.getFrameId("tcp")
        self.reset(robot.home)

    def reset(self, q: Array) -> None:
        """Begin at rest.

        Args:
            q: Joint positions (n,), rad.
        """
        # The last setpoint and the one before it (n,), rad.
        self._position = np.array(q, dtype=float)
        self._before = self._position

        # An arm that rests nearer to an end than the margin may stay there.
        self._low = np.minimum(self._robot.position_min + self._margin, self._position)
        self._high = np.maximum(self._robot.position_max - self._margin, self._position)

        # Mean velocity of the last period (n,), and that at its end, rad/s.
        self._velocity = np.zeros(self._robot.n)
        self._end_velocity = self._velocity

        # The last goal (n,), and how far it moved in the last period, rad.
        self._goal = self._position
        self._goal_step = np.zeros(self._robot.n)

        # Fraction of the limits of velocity and tool speed that may be used.
        self._speed = 1.0

    @property
    def rests(self) -> bool:
        """True if the last setpoint is the goal, reached slowly enough to stop there at once."""
        return bool(
            np.array_equal(self._position, self._goal)
            and np.all(np.abs(self._velocity) <= self._robot.max_velocity_jump)
        )

    @property
    def position_min(self) -> Array:
        """Lowest position of each joint (n,), rad, with the margin."""
        return self._low.copy()

    @property
    def position_max(self) -> Array:
        """Highest position of each joint (n,), rad, with the margin."""
        return self._high.copy()

    @property
    def velocity(self) -> Array:
        """Velocity (n,), rad/s, of the last setpoint."""
        return self._velocity.copy()

    @property
    def tool_speed(self) -> float:
        """Speed of the TCP in the last period, m/s."""
        return self._tool_speed(self._position, self._before)

    def scale_speed(self, fraction: float) -> None:
        """Go on at a fraction of the velocity, where nothing was sent and the arm was braked.

        Args:
            fraction: Fraction of the last velocity, 0 to 1.
        """
        self._velocity = fraction * self._velocity
        self._end_velocity = fraction * self._end_velocity
        self._acceleration = [0.0] * self._robot.n

    def brake(self) -> Array:
        """Return the setpoint (n,), rad, of this period on the way to rest.

        All joints brake in proportion, but one near the end of its range first.
        """
        fastest = float(np.abs(self._velocity).max())
        velocity = self._velocity
        if fastest:
            velocity = max(0.0, 1.0 - self._max_change / fastest) * self._velocity

        up = self._stoppable(self._high - self._position)
        down = self._stoppable(self._position - self._low)
        velocity = np.clip(velocity, -down, up)

        self._before = self._position
        self._position = self._position + velocity * self._period
        self._goal = self._position
        self._goal_step = velocity * self._period
        self._velocity = velocity
        self._end_velocity = velocity
        self._acceleration = [0.0] * self._robot.n
        return self._position.copy()

    def next(
        self, desired: Array, speed: float = 1.0, approach: Approach | None = None
    ) -> tuple[Array, bool]:
        """Return the setpoint of this period.

        Args:
            desired: Joint positions (n,), rad.
            speed: Fraction of the limits of velocity and tool speed that may be used, above 0.
            approach: Function that shortens the step near a singularity or an obstacle, if any.

        Returns:
            The setpoint (n,), rad, and whether it differs from the desired one.
        """
        if not np.isfinite(desired).all():
            return np.array(desired, dtype=float), True

        goal = np.clip(desired, self._low, self._high)
        self._speed = speed
        bounds = self._velocity_bounds()

        # Velocity and acceleration.
        if self._can_join(goal, bounds):
            position = goal
            end_velocity = (goal - self._position) / self._period
        else:
            position, end_velocity = self._lead_back(goal, bounds)

        # Tool speed, and distance from dangers. If one of them shortens the step, the velocity at
        # its end is no longer that of the profile.
        slower = self._limit_tool_speed(position, bounds)
        slower = self._limit_approach(slower, bounds, approach)
        if slower is not position:
            position = slower
            end_velocity = (position - self._position) / self._period

        self._velocity = (position - self._position) / self._period
        self._end_velocity = end_velocity
        self._goal_step = goal - self._goal
        self._goal = goal
        self._before = self._position
        self._position = position
        return position.copy(), not np.array_equal(position, desired)

    def _velocity_bounds(self) -> VelocityBounds:
        """Return the velocities of the next period within all limits.

        They are within velocity and acceleration, and leave room to stop.
        """
        up = self._stoppable(self._high - self._position)
        down = self._stoppable(self._position - self._low)
        fastest = self._speed * self._max_velocity

        highest = np.minimum(np.minimum(self._velocity + self._max_change, fastest), up)
        lowest = np.maximum(np.maximum(self._velocity - self._max_change, -fastest), -down)

        if self._speed < 1.0:
            # A speed that was lowered is reached within the acceleration.
            highest = np.maximum(highest, np.minimum(self._velocity - self._max_change, up))
            lowest = np.minimum(lowest, np.maximum(self._velocity + self._max_change, -down))
        return VelocityBounds(lowest, highest)

    def _stoppable(self, room: Array) -> Array:
        """Return the highest velocity (n,), rad/s, from which braking ends within a distance.

        A velocity v covers v T in its own period, (v - a T) T in the next, and so on for k periods
        more: the sum is inverted for v.

        Args:
            room: The distance (n,), rad.
        """
        unit = self._max_change * self._period
        room = np.clip(room, 0.0, MAX_ROOM)
        k = np.floor(0.5 * (np.sqrt(1.0 + 8.0 * room / unit) - 1.0))
        return room / (self._period * (k + 1.0)) + 0.5 * self._max_change * k

    def _can_join(self, goal: Array, bounds: VelocityBounds) -> bool:
        """Return whether the next setpoint may be the goal (n,), rad, itself."""
        velocity = (goal - self._position) / self._period
        is_above = bounds.lowest - VELOCITY_ROUNDING <= velocity
        is_below = velocity <= bounds.highest + VELOCITY_ROUNDING

        # To join the desired motion without overshoot, its velocity must be attained, too.
        goal_velocity = (goal - self._goal) / self._period
        is_attained = np.abs(velocity - goal_velocity) <= self._max_change
        return bool(np.all(is_above & is_below & is_attained))

    def _lead_back(self, goal: Array, bounds: VelocityBounds) -> tuple[Array, Array]:
        """Return the next setpoint on ruckig's profile to the goal, and the velocity at its end.

        Args:
            goal: Joint positions (n,), rad.
            bounds: Bounds of the velocity in this period.

        Returns:
            Joint positions (n,), rad, and velocities (n,), rad/s.
        """
        # Arrive with the velocity of the goal. A joint whose goal leaps arrives at rest: to arrive
        # with the velocity of a leap, it would take a run-up away from the goal.
        fastest = ARRIVAL_FRACTION * self._speed * self._max_velocity
        arrival = np.clip((goal - self._goal) / self._period, -fastest, fastest)
        largest_step_change = LEAP_RATIO * self._max_change * self._period
        leaps = np.abs(goal - self._goal - self._goal_step) > largest_step_change
        arrival[leaps] = 0.0

        self._input.max_velocity = (self._speed * self._max_velocity).tolist()
        self._input.current_position = self._position.tolist()
        self._input.current_velocity = self._end_velocity.tolist()
        # With its own acceleration, ruckig continues its profile while the goal stays.
        self._input.current_acceleration = self._acceleration
        self._input.target_position = goal.tolist()
        self._input.target_velocity = arrival.tolist()

        # Without a profile the arm brakes.
        if not self._update_profile():
            position = self._move(np.zeros(self._robot.n), bounds)
            return position, (position - self._position) / self._period

        # Take the profile's next position, if the step to it is within the bounds.
        position = np.array(self._output.new_position)
        velocity = (position - self._position) / self._period
        if np.all((bounds.lowest <= velocity) & (velocity <= bounds.highest)):
            end_velocity = np.clip(
                self._output.new_velocity, -self._max_velocity, self._max_velocity
            )
            return position, end_velocity

        position = self._move(velocity, bounds)
        return position, (position - self._position) / self._period

    def _update_profile(self) -> bool:
        """Compute ruckig's next step; return whether there is a profile.

        All joints arrive together or, where that fails, each by itself.
        """
        for synchronization in (ruckig.Synchronization.Time, ruckig.Synchronization.No):
            self._input.synchronization = synchronization
            try:
                self._profile.update(self._input, self._output)
            except ruckig.RuckigError:
                continue
            self._acceleration = self._output.new_acceleration
            return True
        return False

    def _limit_tool_speed(self, position: Array, bounds: VelocityBounds) -> Array:
        """Return the next setpoint, shortened towards full braking until the tool is slow enough.

        Args:
            position: The setpoint (n,), rad; it is returned itself if it is slow enough.
            bounds: Bounds of the velocity in this period.
        """
        if self._max_tool_speed is None:
            return position
        max_speed = self._speed * self._max_tool_speed * LIMIT_FRACTION
        if self._tool_speed(position, self._position) <= max_speed:
            return position

        # The setpoint after full braking: all joints in proportion, the fastest one as much as it
        # may.
        fastest = max(float(np.abs(self._velocity).max()), self._max_change)
        braked = self._move((1.0 - self._max_change / fastest) * self._velocity, bounds)

        # Bisect the way from there to the setpoint for the largest fraction that is slow enough.
        slow_fraction = 0.0
        fast_fraction = 1.0
        for _ in range(BISECTIONS):
            fraction = 0.5 * (slow_fraction + fast_fraction)
            candidate = braked + fraction * (position - braked)
            if self._tool_speed(candidate, self._position) <= max_speed:
                slow_fraction = fraction
            else:
                fast_fraction = fraction
        return braked + slow_fraction * (position - braked)

    def _limit_approach(
        self, position: Array, bounds: VelocityBounds, approach: Approach | None
    ) -> Array:
        """Return the next setpoint, shortened towards what the arm approaches.

        Args:
            position: The setpoint (n,), rad; it is returned itself if it need not be shortened.
            bounds: Bounds of the velocity in this period.
            approach: Function that shortens the step, if any.
        """
        factor = 1.0 if approach is None else approach(self._position, position)
        if factor < 1.0:
            return self._move(factor * (position - self._position) / self._period, bounds)
        return position

    def _move(self, velocity: Array, bounds: VelocityBounds) -> Array:
        """Return the next setpoint (n,), rad, at a velocity (n,), rad/s, clipped to the limits."""
        clipped = np.clip(velocity, bounds.lowest, bounds.highest)
        return np.clip(self._position + clipped * self._period, self._low, self._high)

    def _tool_speed(self, position: Array, before: Array) -> float:
        """Return the speed of the TCP between two setpoints (n,), rad, of a period, m/s."""
        return float(np.linalg.norm(self._tool(position) - self._tool(before))) / self._period

    def _tool(self, q: Array) -> Array:
        """Return the position (3,) of the TCP in base_link, m, at joint positions q (n,), rad.

        By pinocchio: a hundred times faster than `tool_path` for one posture.
        """
        pin.forwardKinematics(self._robot.model, self._data, q)
        placement = pin.updateFramePlacement(self._robot.model, self._data, self._tcp)
        position: Array = placement.translation.copy()
        return position


def limit_setpoints(
    robot: Robot, solution: Array, period: float, max_velocity: Array | None = None
) -> tuple[Array, NDArray[np.bool_]]:
    """Bring a whole solution within limits of velocity and acceleration.

    Args:
        robot: The arm, whose limits hold.
        solution: Joint positions (T, n), rad, one a period.
        period: Control period, s.
        max_velocity: Lower limits of velocity (n,), rad/s; the robot's by default.

    Returns:
        Setpoints (S, n), rad, and which of them were changed (S,). S is T or more: the last target
        is held until the setpoints have attained it.
    """
    limiter = Limiter(robot, period, max_velocity=max_velocity)
    limiter.reset(solution[0])
    steps = [limiter.next(q) for q in solution]

    max_steps = len(solution) + int(MAX_SETTLING_S / period)
    while not limiter.rests and len(steps) < max_steps:
        steps.append(limiter.next(solution[-1]))

    setpoints = np.array([setpoint for setpoint, _ in steps])
    is_changed = np.array([changed for _, changed in steps])
    return setpoints, is_changed
