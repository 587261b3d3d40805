"""Moves of the emulated arm along a path: movej, movel, movep, movec, and the blends between them.

The speed along a path is a trapezoid, as in URSim's recording of a movej. The others follow UR's
script manual; nothing of them was recorded. A move with a blend radius keeps its speed up to that
distance from its target. Then the next move takes over, by a parabola whose ends have the
velocities of both moves (movep: by an arc at constant speed); if none follows, the move brakes
within the radius.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from simbridge.emulator.arm import EmulatedArm, Unreachable, pose_of
from simbridge.emulator.motions import ArmMotion
from simbridge.robot.pose import Array
from simbridge.servo.speed_profile import SpeedProfile

# Fraction of a path over which its derivative is taken.
DERIVATIVE_STEP = 1e-4
# Tolerance, as a fraction of a path, to which a distance along the path is located.
FRACTION_TOLERANCE = 1e-9
# Fraction of its path at which a move that follows no other begins to blend, if its radius is
# longer than the path.
LATEST_ENTRY = 0.5
# Length that a rotation counts as, m/rad, for the pace of a tool that rotates only.
LENGTH_OF_ROTATION = 0.1
# Singular values of the Jacobian below this fraction of the largest count as zero.
SINGULAR_FRACTION = 1e-3
# A tick that would exceed a joint speed is shortened to this fraction of the limit.
LIMIT_FRACTION = 0.99
# A triangle with sides shorter than this, in proportion, is a line, m^2.
SMALLEST_AREA = 1e-9
# Below this speed a blend has no arc, m/s.
SLOWEST_ARC = 1e-9
# Largest difference of the speeds at both ends of an arc, as a fraction of the speed.
ARC_SPEED_TOLERANCE = 1e-3
# Smallest turn of an arc, and the least by which it falls short of half a turn, rad.
SMALLEST_TURN = 1e-3
# Shortest time of a movej of zero length, s: dividing by it, not by zero, gives no infinity.
SHORTEST_TIME = 1e-300


@dataclass(frozen=True)
class Pace:
    """Speed of a move, and the blend at its end.

    Attributes:
        acceleration: Largest acceleration, rad/s^2 or m/s^2.
        speed: Largest speed, rad/s or m/s.
        duration: Duration, s; above zero it takes precedence over the speed.
        radius: Radius of the blend at its end, m.
    """

    acceleration: float
    speed: float
    duration: float = 0.0
    radius: float = 0.0


class PathMove(ArmMotion):
    """A move along a path. A point of the path is a fraction of it, 0..1.

    Args:
        kind: URScript's function.
        arm: The arm, whose present TCP is moved.
        corner: Joints at the start of the path (n,), rad.

    Attributes:
        kind: URScript's function.
        arm: The arm with the TCP of this move.
        corner: Joints at the start of the path (n,), rad.
        blend: Blend with the move before, at its start; None without one.
        skipped: True if its blend would overlap the one before it: UR's controllers then skip its
            target.
    """

    def __init__(self, kind: str, arm: EmulatedArm, corner: Array) -> None:
        self.kind = kind
        self.arm = arm.snapshot()
        self.corner = corner
        self.blend: Blend | None = None
        self.skipped = False

        # Time since the start, s; it passes more slowly while the move is scaled down.
        self._time = 0.0
        # Fraction of the path at which the blend with the move before ends.
        self._begin = 0.0
        # Fraction of the path at which the next move may take over.
        self._entry = 1.0

    def _plan(
        self,
        length: float,
        pace: Pace,
        *,
        max_speed: float = math.inf,
        previous: PathMove | None,
    ) -> None:
        """Set the speed along the path.

        Args:
            length: Length of the path, rad or m.
            pace: Speed and blend, in the same unit.
            max_speed: Upper limit of the speed whatever the duration.
            previous: The move, still moving, to blend with at its start.
        """
        self._length = length
        begin_speed = 0.0
        if previous is not None and length > 0.0:
            self.blend = Blend(previous, self, max_rate=min(pace.speed, max_speed) / length)
            self._begin = self.blend.end
            begin_speed = self.blend.end_rate * length

        through = 0.0
        if pace.radius > 0.0:
            self._entry = 1.0 - self.fraction_at(pace.radius, from_end=True)
            if self._entry <= self._begin and previous is None:
                # No blend to overlap with: the radius is longer than the path.
                self._entry = LATEST_ENTRY
            self.skipped = self._entry <= self._begin
            through = (self._entry - self._begin) * length

        self._profile = SpeedProfile(
            (1.0 - self._begin) * length,
            pace.acceleration,
            pace.speed,
            duration=pace.duration,
            max_speed=max_speed,
            begin_speed=begin_speed,
            through=through,
        )

    def fraction_at(self, distance: float, *, from_end: bool = False) -> float:
        """Return the fraction of the path at which the TCP is at a distance from an end; at most 1.

        Args:
            distance: Distance in a straight line, m.
            from_end: Measure, and count the fraction, from the end of the path instead of its
                start.
        """

        def position(fraction: float) -> Array:
            return self.position(1.0 - fraction if from_end else fraction)

        origin = position(0.0)
        if np.linalg.norm(position(1.0) - origin) <= distance:
            return 1.0

        low = 0.0
        high = 1.0
        while high - low > FRACTION_TOLERANCE:
            middle = 0.5 * (low + high)
            if np.linalg.norm(position(middle) - origin) > distance:
                high = middle
            else:
                low = middle
        return low

    @property
    def blending(self) -> bool:  # type: ignore[override]
        """True once the next move may take over."""
        if self._entry >= 1.0 or self.done:
            return False
        fraction, _ = self.progress
        return fraction >= self._entry

    @property
    def progress(self) -> tuple[float, float]:
        """Fraction of the path covered, and its rate, 1/s."""
        time = self._time
        if self.blend is not None:
            time -= self.blend.duration
        if time >= self._profile.duration:
            return 1.0, 0.0

        fraction = self._begin + self._profile.distance(time) / self._length
        return fraction, self._profile.speed(time) / self._length

    def step(self, q: Array, qd: Array, *, dt: float, scaling: float) -> Array:
        """See `ArmMotion`."""
        self.speed = None
        if self.done:
            return q

        self._time += dt * scaling
        if self.blend is not None and self._time < self.blend.duration:
            return self.blend.joints(self._time, q)

        fraction, rate = self.progress
        self.done = fraction >= 1.0
        if self.done:
            fraction_reached = 1.0
            scaled_rate = 0.0
        else:
            fraction_reached = fraction
            scaled_rate = scaling * rate
        target = self.joints(fraction_reached, q)
        self.speed = self.speeds(fraction, target, scaled_rate)
        return target

    @abstractmethod
    def joints(self, fraction: float, q: Array) -> Array:
        """Return the joints (n,), rad, at a fraction of the path; q are the present ones."""

    @abstractmethod
    def speeds(self, fraction: float, q: Array, rate: float) -> Array:
        """Return the speeds (n,), rad/s, of joints q at a fraction that changes at a rate, 1/s."""

    @abstractmethod
    def position(self, fraction: float) -> Array:
        """Return the TCP's position (3,), m, at a fraction of the path."""


class JointMove(PathMove):
    """movej: straight in joint space; the joint that turns farthest sets the pace.

    Args:
        arm: The arm, whose present TCP is moved.
        start: Joint positions (n,), rad.
        goal: Joint positions (n,), rad.
        limits: Maximum joint speeds (n,), rad/s; a move that asks for more takes longer.
        pace: Speed and blend, in rad/s^2 and rad/s.
        previous: The move to blend with at its start.
    """

    def __init__(
        self,
        arm: EmulatedArm,
        start: Array,
        goal: Array,
        *,
        limits: Array,
        pace: Pace,
        previous: PathMove | None = None,
    ) -> None:
        self._start = start.copy()
        self._goal = goal.copy()
        super().__init__("movej", arm, self._start)

        angles = np.abs(goal - start)
        length = float(angles.max())
        shortest_time = max(float((angles / limits).max()), SHORTEST_TIME)
        self._plan(length, pace, max_speed=length / shortest_time, previous=previous)

    def joints(self, fraction: float, q: Array) -> Array:
        """See `PathMove`."""
        if fraction == 1.0:
            return self._goal
        return self._start + fraction * (self._goal - self._start)

    def speeds(self, fraction: float, q: Array, rate: float) -> Array:
        """See `PathMove`."""
        return rate * (self._goal - self._start)

    def position(self, fraction: float) -> Array:
        """See `PathMove`."""
        return self.arm.tool(self.joints(fraction, self._start)).translation


class ToolPath(PathMove):
    """A move along a path of the tool; inverse kinematics gives the joints."""

    @abstractmethod
    def frame(self, fraction: float) -> pin.SE3:
        """Return the TCP in the pendant's base at a fraction of the path."""

    @abstractmethod
    def slope(self, fraction: float) -> Array:
        """Return the TCP's twist (6,) in the pendant's base for a rate of 1/s."""

    def joints(self, fraction: float, q: Array) -> Array:
        """See `PathMove`."""
        return self.arm.joints(self.frame(fraction), q)

    def speeds(self, fraction: float, q: Array, rate: float) -> Array:
        """See `PathMove`."""
        return self.arm.joint_speeds(q, rate * self.slope(fraction))

    def position(self, fraction: float) -> Array:
        """See `PathMove`."""
        return self.frame(fraction).translation


class ToolMove(ToolPath):
    """movel and movep: the tool moves in a straight line and rotates evenly.

    Args:
        arm: The arm, whose present TCP is moved.
        q: Joints at the start (n,), rad.
        goal: Pose of the TCP in the pendant's base.
        pace: Speed and blend, in m/s^2 and m/s. A pure rotation by 1 rad counts as 0.1 m.
            Too short a duration is exceeded.
        limits: Maximum joint speeds (n,), rad/s, that a duration, or an optimovel, does not exceed.
        previous: The move to blend with at its start.
        kind: "movel", "movep" or "optimovel".
    """

    def __init__(
        self,
        arm: EmulatedArm,
        q: Array,
        goal: pin.SE3,
        *,
        pace: Pace,
        limits: Array | None = None,
        previous: PathMove | None = None,
        kind: str = "movel",
    ) -> None:
        super().__init__(kind, arm, q)
        self._start = arm.tool(q)
        self._goal = goal
        self._rotation = pin.log3(goal.rotation @ self._start.rotation.T)
        self._travel = goal.translation - self._start.translation
        rotation_length = LENGTH_OF_ROTATION * float(np.linalg.norm(self._rotation))
        length = max(float(np.linalg.norm(self._travel)), rotation_length)

        # Only timed moves and OptiMove slow down for joint limits; other moves may exceed them.
        self._limits = limits if pace.duration > 0.0 or kind == "optimovel" else None
        if self._limits is not None and pace.duration > 0.0 and length > 0.0:
            # A first estimate of how long the move takes, from the joint speeds at the start: a
            # triangular speed profile peaks at twice its mean.
            twist = np.concatenate([self._travel, self._rotation])
            joints = np.linalg.lstsq(arm.jacobian(q), twist, rcond=SINGULAR_FRACTION)[0]
            shortest_duration = 2.0 * float((np.abs(joints) / self._limits).max())
            pace = replace(pace, duration=max(pace.duration, shortest_duration))
        self._plan(length, pace, previous=previous)

    def step(self, q: Array, qd: Array, *, dt: float, scaling: float) -> Array:
        """See `ArmMotion`. If the joints are too slow, the move takes longer."""
        target = super().step(q, qd, dt=dt, scaling=scaling)
        if self._limits is None:
            return target
        excess = float((np.abs(target - q) / (dt * self._limits)).max())
        if excess <= 1.0:
            return target

        # Go back to the point of the path that the joints can reach in this tick.
        self._time -= dt * scaling * (1.0 - LIMIT_FRACTION / excess)
        self.done = False
        target = super().step(q, qd, dt=0.0, scaling=scaling)
        self.speed = None
        return target

    def frame(self, fraction: float) -> pin.SE3:
        """See `ToolPath`."""
        if fraction == 1.0:
            return self._goal
        rotation = pin.exp3(fraction * self._rotation) @ self._start.rotation
        return pin.SE3(rotation, self._start.translation + fraction * self._travel)

    def slope(self, fraction: float) -> Array:
        """See `ToolPath`."""
        return np.concatenate([self._travel, self._rotation])

    def goal(self) -> Array | None:
        """See `ArmMotion`."""
        return pose_of(self._goal)


class CircleMove(ToolPath):
    """movec: from joints, through a via point to a goal, on the circle through all three.

    Args:
        arm: The arm, whose present TCP is moved.
        q: Joints at the start (n,), rad.
        via: TCP in the pendant's base, of which the position is used.
        goal: TCP in the pendant's base.
        pace: Speed and blend, in m/s^2 and m/s.
        fixed: Keep the orientation to the tangent of the circle; otherwise the tool rotates evenly
            to its goal.
        previous: The move to blend with at its start.

    Raises:
        Unreachable: The three points lie on a line.
    """

    def __init__(
        self,
        arm: EmulatedArm,
        q: Array,
        via: pin.SE3,
        *,
        goal: pin.SE3,
        pace: Pace,
        fixed: bool = False,
        previous: PathMove | None = None,
    ) -> None:
        super().__init__("movec", arm, q)
        self._start = arm.tool(q)

        # The centre of the circle through three points.
        start = self._start.translation
        to_via = via.translation - start
        to_goal = goal.translation - start
        normal = np.cross(to_via, to_goal)
        area = float(np.linalg.norm(normal))
        if area < SMALLEST_AREA:
            raise Unreachable("start, via point and goal of movec lie on a line")
        weighted_via = np.dot(to_goal, to_goal) * np.cross(normal, to_via)
        weighted_goal = np.dot(to_via, to_via) * np.cross(to_goal, normal)
        to_centre = (weighted_via + weighted_goal) / (2.0 * area**2)
        self._centre = start + to_centre
        self._radius = -to_centre
        self._axis = normal / area

        # The angle from the start to the goal, in the direction of the via point.
        end = goal.translation - self._centre
        sine = np.dot(self._axis, np.cross(self._radius, end))
        angle = math.atan2(sine, np.dot(self._radius, end))
        self._angle = angle if angle > 0.0 else angle + 2.0 * math.pi

        if fixed:
            self._rotation = self._angle * self._axis
        else:
            self._rotation = pin.log3(goal.rotation @ self._start.rotation.T)

        # A part of the tool's acceleration, v^2 / r, bends its path.
        length = self._angle * float(np.linalg.norm(to_centre))
        fastest = math.sqrt(pace.acceleration * length / self._angle)
        self._plan(length, replace(pace, speed=min(pace.speed, fastest)), previous=previous)

    def frame(self, fraction: float) -> pin.SE3:
        """See `ToolPath`."""
        radius = pin.exp3(fraction * self._angle * self._axis) @ self._radius
        rotation = pin.exp3(fraction * self._rotation) @ self._start.rotation
        return pin.SE3(rotation, self._centre + radius)

    def slope(self, fraction: float) -> Array:
        """See `ToolPath`."""
        radius = pin.exp3(fraction * self._angle * self._axis) @ self._radius
        return np.concatenate([np.cross(self._angle * self._axis, radius), self._rotation])


class Arc(NamedTuple):
    """The arc of a blend between two movep.

    Attributes:
        start: Position of the TCP at its start (3,), m.
        tangent: A vector as long as the radius along the first path (3,), m.
        inward: A vector from the start to the centre (3,), m.
        angle: Angle by which it turns, rad.
    """

    start: Array
    tangent: Array
    inward: Array
    angle: float

    def position(self, fraction: float) -> Array:
        """Return the position of the TCP (3,), m, at a fraction of the arc."""
        turn = fraction * self.angle
        along = math.sin(turn) * self.tangent
        return self.start + along + (1.0 - math.cos(turn)) * self.inward


class Blend:
    """The transition between two moves: a cubic through positions and velocities at both ends.

    Between straight lines that is UR's parabola; between two movep with equal legs it is an arc at
    constant speed. Moves of the tool are blended in its space, others in the joints'.

    Args:
        before: The move that is ending.
        after: The move that begins.
        max_rate: Largest rate of the move after it, as a fraction of its path per s.

    Attributes:
        duration: Duration of the blend, s.
        end: End of the blend on the second path, as a fraction of it.
        end_rate: Rate at that end, as a fraction of the path per s.
    """

    def __init__(self, before: PathMove, after: PathMove, max_rate: float) -> None:
        # The blend begins where the first move is now, and ends at the same distance after the
        # corner.
        fraction, rate = before.progress
        leg = float(np.linalg.norm(before.position(fraction) - before.position(1.0)))
        # The first path slows down evenly, to rest at the corner: at half of its rate on average.
        self.duration = 2.0 * (1.0 - fraction) / rate
        # Evenly accelerated from rest at the corner to the end of the blend, as seen along the
        # second path.
        self.end = min(after.fraction_at(leg), 0.5 * max_rate * self.duration)
        self.end_rate = 2.0 * self.end / self.duration

        # The arm of a blend in tool space, for its inverse kinematics; None in joint space.
        self._arm: EmulatedArm | None = None
        # The TCP's frame at the start of the blend, from which rotations count in tool space.
        self._origin = pin.SE3.Identity()
        # The joints at the corner (n,), rad: the seed for the inverse kinematics of a tool path
        # that is blended in joint space.
        self._seed = after.corner
        if isinstance(before, ToolPath) and isinstance(after, ToolPath):
            self._arm = before.arm
            self._origin = before.frame(fraction)

        # Coordinates at both ends, and their velocities per s: see `_coordinates`.
        self._first = self._coordinates(before, fraction)
        self._last = self._coordinates(after, self.end)
        self._first_velocity = rate * self._slope(before, fraction)
        self._last_velocity = self.end_rate * self._slope(after, self.end)

        # The path of the TCP between two movep, in place of the cubic's positions.
        self._arc: Arc | None = None
        if before.kind == after.kind == "movep":
            self._make_arc(leg)

    def _coordinates(self, move: PathMove, fraction: float) -> Array:
        """Return the coordinates in which a blend is a cubic, at a fraction of a move's path.

        In joint space they are the joints (n,), rad. In tool space (6,) they are the position of
        the TCP, m, and its rotation vector since the start of the blend, rad, in the pendant's
        base.
        """
        if self._arm is None:
            return move.joints(fraction, self._seed)

        assert isinstance(move, ToolPath)
        frame = move.frame(fraction)
        rotation = pin.log3(frame.rotation @ self._origin.rotation.T)
        return np.concatenate([frame.translation, rotation])

    def _slope(self, move: PathMove, fraction: float) -> Array:
        """Return the derivative of the coordinates by the fraction of a move's path."""
        after = self._coordinates(move, fraction + DERIVATIVE_STEP)
        before = self._coordinates(move, fraction - DERIVATIVE_STEP)
        return (after - before) / (2.0 * DERIVATIVE_STEP)

    def _make_arc(self, leg: float) -> None:
        """Make the blend an arc of a circle, if both moves are equally fast and turn a corner.

        The arc passes through both ends of the blend, tangent to the moves. Otherwise the blend
        stays as it is.

        Args:
            leg: Distance from each end of the blend to the corner, m.
        """
        first_velocity = self._first_velocity[:3]
        last_velocity = self._last_velocity[:3]
        speed = float(np.linalg.norm(first_velocity))
        difference = abs(np.linalg.norm(last_velocity) - speed)
        if speed < SLOWEST_ARC or difference > ARC_SPEED_TOLERANCE * speed:
            return

        # The angle between the directions of the moves.
        first = first_velocity / speed
        last = last_velocity / speed
        angle = math.acos(min(max(float(first @ last), -1.0), 1.0))
        if not SMALLEST_TURN < angle < math.pi - SMALLEST_TURN:
            return

        # The arc turns by this angle, from the direction of the first move towards the unit vector
        # to its centre.
        radius = leg / math.tan(0.5 * angle)
        inward = (last - math.cos(angle) * first) / math.sin(angle)
        self._arc = Arc(self._first[:3], radius * first, radius * inward, angle)

        # The blend lasts as long as its arc takes at this speed.
        stretch = radius * angle / speed / self.duration
        self.duration *= stretch

    def joints(self, time: float, q: Array) -> Array:
        """Return the joints (n,), rad, at a time since the start of the blend.

        Args:
            time: The time, s.
            q: Present joints (n,), rad: in tool space, the seed of the inverse kinematics.
        """
        fraction = time / self.duration
        coordinates = self._cubic(fraction)
        if self._arm is None:
            return coordinates

        position = coordinates[:3]
        if self._arc is not None:
            position = self._arc.position(fraction)
        rotation = pin.exp3(coordinates[3:]) @ self._origin.rotation
        return self._arm.joints(pin.SE3(rotation, position), q)

    def _cubic(self, s: float) -> Array:
        """Return the coordinates at a fraction s of the duration, on a cubic Hermite curve.

        It has the coordinates and the velocities of both moves at its ends.
        """
        positions = (1.0 + 2.0 * s) * (1.0 - s) ** 2 * self._first
        positions = positions + s * s * (3.0 - 2.0 * s) * self._last
        velocities = s * (1.0 - s) ** 2 * self._first_velocity
        velocities = velocities - s * s * (1.0 - s) * self._last_velocity
        return positions + self.duration * velocities
