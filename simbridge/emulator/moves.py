"""Moves of the emulated arm along a path: movej, movel, movep, movec, and the blends between them.

The speed along a path is a trapezoid, as in URSim's recording of a movej. The others follow UR's script manual; nothing
of them was recorded. A move with a blend radius keeps its speed up to that distance from its target. Then the next move
takes over, by a parabola whose ends have the velocities of both moves (movep: by an arc at constant speed); if none
follows, the move brakes within the radius.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable

import numpy as np
import pinocchio as pin

from simbridge.emulator.arm import Arm, Motion, Trapezoid, Unreachable, joint_speeds, pose_of
from simbridge.robot.pose import Array

_STEP = 1e-4  # of a path, for its derivative


class PathMove(Motion):
    """A move along a path.

    Attributes:
        kind: URScript's function.
        corner: Joints at the start of the path (n,), rad.
        blend: With the move before, at its start.
        skipped: Whether its blend would overlap the one before it: UR's controllers then skip its target.
    """

    kind = ""
    corner: Array
    skipped = False
    _time = 0.0
    blend: Blend | None = None
    _begin = 0.0
    _entry = 1.0

    def _plan(
        self, length: float, acceleration: float, speed: float, duration: float = 0.0, max_speed: float = math.inf,
        *, corner: Array, radius: float, previous: PathMove | None,
    ) -> None:  # fmt: skip
        """Set the speed along the path: of this length in rad or m, from these joints (n,), rad; blended at its end
        within a radius in m, and with the previous move, which is still moving, at its start."""
        self._length, self.corner = length, corner
        begin = 0.0
        if previous is not None and length > 0.0:
            self.blend = Blend(previous, self, min(speed, max_speed) / length)
            self._begin, begin = self.blend.end, self.blend.end_rate * length
        if radius > 0.0:
            self._entry = 1.0 - self.share_at(radius, lambda share: 1.0 - share)
            if self._entry <= self._begin and previous is None:
                self._entry = 0.5  # no blend to overlap with: the radius is longer than the way
            self.skipped = self._entry <= self._begin
        rest, through = (
            (1.0 - self._begin) * length,
            (self._entry - self._begin) * length if radius > 0.0 else 0.0,
        )
        self._profile = Trapezoid(
            rest, acceleration, speed, duration, max_speed, begin=begin, through=through
        )

    def share_at(
        self, distance: float, along: Callable[[float], float] = lambda share: share
    ) -> float:
        """How far along the path, or back from its end, the TCP is so far (m) from where that begins; at most 1."""
        origin, low, high = self.place(along(0.0)), 0.0, 1.0
        if np.linalg.norm(self.place(along(1.0)) - origin) <= distance:
            return 1.0
        while high - low > 1e-9:
            middle = 0.5 * (low + high)
            beyond = np.linalg.norm(self.place(along(middle)) - origin) > distance
            low, high = (low, middle) if beyond else (middle, high)
        return low

    @property
    def blending(self) -> bool:  # type: ignore[override]
        return self._entry < 1.0 and not self.done and self.progress[0] >= self._entry

    @property
    def progress(self) -> tuple[float, float]:
        """Share of the path covered, and its rate, per s."""
        time = self._time - (self.blend.duration if self.blend is not None else 0.0)
        if time >= self._profile.duration:
            return 1.0, 0.0
        return self._begin + self._profile.at(time) / self._length, self._profile.speed(
            time
        ) / self._length

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        self.speed = None
        if self.done:
            return q
        self._time += dt * scaling
        if self.blend is not None and self._time < self.blend.duration:
            return self.blend.at(self._time, q)
        share, rate = self.progress
        self.done = share >= 1.0
        target = self.joints(1.0 if self.done else share, q)
        self.speed = self.speeds(share, target, 0.0 if self.done else scaling * rate)
        return target

    @abstractmethod
    def joints(self, share: float, q: Array) -> Array:
        """The joints (n,), rad, at a share 0..1 of the path; q are the present ones."""

    @abstractmethod
    def speeds(self, share: float, q: Array, rate: float) -> Array:
        """The joints' speeds (n,), rad/s, there, at q, for a rate of the share per s."""

    @abstractmethod
    def place(self, share: float) -> Array:
        """The TCP's position (3,), m, there."""


class JointMove(PathMove):
    """movej: straight in joint space; the joint with the longest way has the acceleration and the speed.

    Args:
        start, goal: Joint positions (n,), rad.
        limits: Maximum joint speeds (n,), rad/s; a move that asks for more takes longer.
        duration: s; above zero it takes precedence over the speed.
        radius: Of the blend at its end, m.
        previous: The move to blend with at its start.
    """

    kind = "movej"

    def __init__(
        self, arm: Arm, start: Array, goal: Array, limits: Array, acceleration: float, speed: float,
        duration: float = 0.0, radius: float = 0.0, previous: PathMove | None = None,
    ) -> None:  # fmt: skip
        self._arm, self._start, self._goal = arm.snapshot(), start.copy(), goal.copy()
        ways = np.abs(goal - start)
        length = float(ways.max())
        max_speed = length / max(float((ways / limits).max()), 1e-300)
        self._plan(
            length,
            acceleration,
            speed,
            duration,
            max_speed,
            corner=self._start,
            radius=radius,
            previous=previous,
        )

    def joints(self, share: float, q: Array) -> Array:
        return self._goal if share == 1.0 else self._start + share * (self._goal - self._start)

    def speeds(self, share: float, q: Array, rate: float) -> Array:
        return rate * (self._goal - self._start)

    def place(self, share: float) -> Array:
        return self._arm.tool(self.joints(share, self._start)).translation


class ToolPath(PathMove):
    """A move along a path of the tool; inverse kinematics gives the joints."""

    _arm: Arm

    @abstractmethod
    def frame(self, share: float) -> pin.SE3:
        """The TCP in the pendant's base at a share 0..1 of the path."""

    @abstractmethod
    def slope(self, share: float) -> Array:
        """The TCP's twist (6,) in the pendant's base for a share of one per s."""

    def joints(self, share: float, q: Array) -> Array:
        return self._arm.joints(self.frame(share), q)

    def speeds(self, share: float, q: Array, rate: float) -> Array:
        return joint_speeds(self._arm, q, rate * self.slope(share))

    def place(self, share: float) -> Array:
        return self.frame(share).translation


class ToolMove(ToolPath):
    """movel and movep: the tool moves in a straight line and rotates evenly, from joints q (n,), rad, to a goal of the
    TCP in the pendant's base.

    Args:
        acceleration, speed: m/s^2 and m/s; for a pure rotation, of a tenth of the angle (1 rad counts as 0.1 m).
        duration: s; above zero it takes precedence over the speed, and too short a one is exceeded.
        limits: Maximum joint speeds (n,), rad/s, that a given duration, or an optimovel, does not exceed.
        radius, previous: As of JointMove.
        kind: "movel", "movep" or "optimovel".
    """

    def __init__(
        self, arm: Arm, q: Array, goal: pin.SE3, acceleration: float, speed: float,
        duration: float = 0.0, limits: Array | None = None, radius: float = 0.0, previous: PathMove | None = None,
        kind: str = "movel",
    ) -> None:  # fmt: skip
        self._arm, self._start, self._goal, self.kind = arm.snapshot(), arm.tool(q), goal, kind
        self._rotation = pin.log3(goal.rotation @ self._start.rotation.T)
        self._travel = goal.translation - self._start.translation
        length = max(
            float(np.linalg.norm(self._travel)), 0.1 * float(np.linalg.norm(self._rotation))
        )
        self._limits = limits if duration > 0.0 or kind == "optimovel" else None
        if self._limits is not None and duration > 0.0 and length > 0.0:
            # A first estimate of how long it takes, from the joint speeds at the start; a triangle's peak is 2 / t.
            twist = np.concatenate([self._travel, self._rotation])
            joints = np.linalg.lstsq(arm.jacobian(q), twist, rcond=1e-3)[0]
            duration = max(duration, 2.0 * float((np.abs(joints) / self._limits).max()))
        self._plan(
            length, acceleration, speed, duration, corner=q, radius=radius, previous=previous
        )

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        target = super().step(q, qd, dt, scaling)
        if self._limits is None:
            return target
        excess = float((np.abs(target - q) / (dt * self._limits)).max())
        if excess <= 1.0:
            return target
        # As far along the path as the joints can get in this tick.
        self._time -= dt * scaling * (1.0 - 0.99 / excess)
        self.done = False
        target, self.speed = super().step(q, qd, 0.0, scaling), None
        return target

    def frame(self, share: float) -> pin.SE3:
        if share == 1.0:
            return self._goal
        rotation = pin.exp3(share * self._rotation) @ self._start.rotation
        return pin.SE3(rotation, self._start.translation + share * self._travel)

    def slope(self, share: float) -> Array:
        return np.concatenate([self._travel, self._rotation])

    def goal(self) -> Array | None:
        return pose_of(self._goal)


class CircleMove(ToolPath):
    """movec: from joints q (n,), rad, through a via point to a goal, on the circle through all three.

    Args:
        via, goal: TCP in the pendant's base; of the via point, the position.
        acceleration, speed: m/s^2 and m/s.
        fixed: Keep the orientation to the tangent of the circle; otherwise the tool rotates evenly to its goal.
        radius, previous: As of JointMove.
    """

    kind = "movec"

    def __init__(
        self, arm: Arm, q: Array, via: pin.SE3, goal: pin.SE3, acceleration: float, speed: float,
        fixed: bool = False, radius: float = 0.0, previous: PathMove | None = None,
    ) -> None:  # fmt: skip
        self._arm, self._start = arm.snapshot(), arm.tool(q)
        a, b, c = self._start.translation, via.translation, goal.translation
        ab, ac = b - a, c - a
        normal = np.cross(ab, ac)
        size = float(np.linalg.norm(normal))
        if size < 1e-9:
            raise Unreachable("start, via point and goal of movec lie on a line")
        to_centre = (
            np.dot(ac, ac) * np.cross(normal, ab) + np.dot(ab, ab) * np.cross(ac, normal)
        ) / (2.0 * size**2)
        self._centre, self._radius = a + to_centre, -to_centre
        self._axis = normal / size
        end = c - self._centre
        angle = math.atan2(
            np.dot(self._axis, np.cross(self._radius, end)), np.dot(self._radius, end)
        )
        self._angle = angle if angle > 0.0 else angle + 2.0 * math.pi
        self._rotation = (
            self._angle * self._axis if fixed else pin.log3(goal.rotation @ self._start.rotation.T)
        )
        length = self._angle * float(np.linalg.norm(to_centre))
        # The tool's acceleration also bends its way: v^2 / r of it.
        speed = min(speed, math.sqrt(acceleration * length / self._angle))
        self._plan(length, acceleration, speed, corner=q, radius=radius, previous=previous)

    def frame(self, share: float) -> pin.SE3:
        radius = pin.exp3(share * self._angle * self._axis) @ self._radius
        return pin.SE3(
            pin.exp3(share * self._rotation) @ self._start.rotation, self._centre + radius
        )

    def slope(self, share: float) -> Array:
        radius = pin.exp3(share * self._angle * self._axis) @ self._radius
        return np.concatenate([np.cross(self._angle * self._axis, radius), self._rotation])


class Blend:
    """From one move into the next: the cubic through the places and velocities at both ends.

    Between straight lines that is UR's parabola; between two movep with equal legs it is an arc at constant speed.
    Moves of the tool are blended in its space, others in the joints'.

    Args:
        max_rate: Of the move after it, as a share of its path per s.

    Attributes:
        duration: s.
        end, end_rate: Where the blend ends on the second path, and how fast: a share, and that per s.
    """

    def __init__(self, before: PathMove, after: PathMove, max_rate: float) -> None:
        share, rate = before.progress
        leg = float(np.linalg.norm(before.place(share) - before.place(1.0)))
        self.duration = 2.0 * (1.0 - share) / rate
        # Evenly accelerated from rest at the corner to the end of the blend, as seen along the second path.
        self.end = min(after.share_at(leg), 0.5 * max_rate * self.duration)
        self.end_rate = 2.0 * self.end / self.duration
        self._near, self._origin = after.corner, pin.SE3.Identity()
        self._arm = (
            before._arm if isinstance(before, ToolPath) and isinstance(after, ToolPath) else None
        )
        if self._arm is not None:
            self._origin = before.frame(share)  # type: ignore[attr-defined]
        self._ends = self._place(before, share), self._place(after, self.end)
        self._speeds = (
            rate * self._slope(before, share),
            self.end_rate * self._slope(after, self.end),
        )
        self._arc: tuple[Array, Array, Array, float] | None = None
        if before.kind == after.kind == "movep":
            self._make_arc(leg)

    def _place(self, move: PathMove, share: float) -> Array:
        """The joints (n,), or the TCP's position and its rotation since the blend began (6,)."""
        if self._arm is None:
            return move.joints(share, self._near)
        frame = move.frame(share)  # type: ignore[attr-defined]
        return np.concatenate(
            [frame.translation, pin.log3(frame.rotation @ self._origin.rotation.T)]
        )

    def _slope(self, move: PathMove, share: float) -> Array:
        return (self._place(move, share + _STEP) - self._place(move, share - _STEP)) / (2.0 * _STEP)

    def _make_arc(self, leg: float) -> None:
        """A circle through both ends, tangent to both moves."""
        v, w = self._speeds[0][:3], self._speeds[1][:3]
        speed = float(np.linalg.norm(v))
        if speed < 1e-9 or abs(np.linalg.norm(w) - speed) > 1e-3 * speed:
            return
        v, w = v / speed, w / speed
        angle = math.acos(min(max(float(v @ w), -1.0), 1.0))
        if 1e-3 < angle < math.pi - 1e-3:
            radius = leg / math.tan(0.5 * angle)
            inward = (w - math.cos(angle) * v) / math.sin(angle)
            self._arc = radius * v, radius * inward, self._ends[0][:3], angle
            longer = radius * angle / speed / self.duration
            self.duration *= longer

    def at(self, time: float, q: Array) -> Array:
        """The joints (n,), rad, after `time` s; q are the present ones."""
        s = time / self.duration
        (a, b), (v, w) = self._ends, self._speeds
        cubic = (1.0 + 2.0 * s) * (1.0 - s) ** 2 * a + s * s * (3.0 - 2.0 * s) * b
        x = cubic + self.duration * (s * (1.0 - s) ** 2 * v - s * s * (1.0 - s) * w)
        if self._arm is None:
            return x
        if self._arc is not None:
            along, inward, start, angle = self._arc
            x[:3] = start + math.sin(s * angle) * along + (1.0 - math.cos(s * angle)) * inward
        return self._arm.joints(pin.SE3(pin.exp3(x[3:]) @ self._origin.rotation, x[:3]), q)
