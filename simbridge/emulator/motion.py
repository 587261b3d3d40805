"""Motions of the emulated arm: each computes the joints' next target, tick by tick.

The profiles are textbook ones, not UR's own: trapezoids for moves, ramps for speeds and stops. They have not been
validated against URSim or a robot. Blend radii are not modelled: every move stops at its target.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
import pinocchio as pin

from simbridge.emulator.arm import Arm, Unreachable, pose_of
from simbridge.robot.pose import Array
from simbridge.servo.law import ServojJoints, ServojLaw


class Motion(ABC):
    """A motion of the arm.

    Attributes:
        done: Whether it has ended; its last target then holds.
        has_path: Whether it can be slowed along a path. Otherwise it is halted by braking the joints, and `moved`
            passes it their state.
    """

    done = False
    has_path = True

    @abstractmethod
    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        """The joints' next target (n,), rad.

        Args:
            q, qd: Present targets (n,), rad and rad/s.
            dt: Control period, s.
            scaling: Speed factor, 0..1: a scaled motion takes the same path, slower.

        Raises:
            Unreachable: A tool-space motion has left the reach of the arm.
        """

    def moved(self, q: Array, qd: Array) -> None:  # noqa: B027
        """Continue from q (n,), rad, and qd (n,), rad/s: the joints were moved by something else."""

    def goal(self) -> Array | None:
        """The TCP's final pose (6,) in the pendant's base; None for a motion without an end."""
        return None


class Hold(Motion):
    """Brake to rest and stay."""

    done = True

    def __init__(self, acceleration: float = 20.0) -> None:
        self._acceleration = acceleration

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        return q + dt * ramped(qd, np.zeros_like(qd), self._acceleration * dt)


def ramped(qd: Array, target: Array, max_change: float) -> Array:
    """Velocities (n,) one tick closer to the target, all joints in proportion."""
    change = target - qd
    largest = float(np.abs(change).max(initial=0.0))
    return target if largest <= max_change else qd + change * (max_change / largest)


class Trapezoid:
    """Distance over time along a path of a given length, from rest to rest.

    Args:
        length: rad or m.
        acceleration, speed: Per s^2 and s.
        duration: s; above zero it takes precedence, and the speed follows from it.
        max_speed: Upper limit of the speed whatever the duration, per s.
    """

    def __init__(
        self, length: float, acceleration: float, speed: float, duration: float = 0.0, max_speed: float = math.inf
    ) -> None:
        self.length = length
        if length <= 0.0:
            self.duration = self._ramp = self._speed = 0.0
            return
        if duration > 0.0:
            # Half the time to accelerate, half to brake, unless the acceleration allows less.
            root = max(0.0, (acceleration * duration) ** 2 - 4.0 * acceleration * length)
            speed = 0.5 * (acceleration * duration - math.sqrt(root)) if root > 0.0 else 2.0 * length / duration
            acceleration = max(acceleration, 4.0 * length / duration**2)
        speed = min(speed, max_speed, math.sqrt(length * acceleration))
        self._speed, self._ramp = speed, speed / acceleration
        self.duration = length / speed + self._ramp

    def at(self, time: float) -> float:
        """Distance covered after `time` s."""
        if time >= self.duration:
            return self.length
        if time <= 0.0:
            return 0.0
        if time < self._ramp:
            return 0.5 * self._speed * time * time / self._ramp
        if time > self.duration - self._ramp:
            left = self.duration - time
            return self.length - 0.5 * self._speed * left * left / self._ramp
        return self._speed * (time - 0.5 * self._ramp)


class PathMove(Motion):
    """A move along a path with a trapezoidal speed profile, from rest to rest."""

    _profile: Trapezoid
    _time = 0.0

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        if self.done:
            return q
        self._time += dt * scaling
        self.done = self._time >= self._profile.duration
        share = 1.0 if self.done else self._profile.at(self._time) / self._profile.length
        return self._at(share, q)

    @abstractmethod
    def _at(self, share: float, q: Array) -> Array:
        """The joints (n,), rad, at a share 0..1 of the path; q are the present ones."""


class JointMove(PathMove):
    """movej: straight in joint space; the joint with the longest way sets the speed.

    Args:
        start, goal: Joint positions (n,), rad.
        limits: Maximum joint speeds (n,), rad/s; a move that asks for more takes longer.
        acceleration, speed: Of the joint with the longest way, rad/s^2 and rad/s.
        duration: s; above zero it takes precedence over the speed.
    """

    def __init__(
        self, start: Array, goal: Array, limits: Array, acceleration: float, speed: float, duration: float = 0.0
    ) -> None:
        self._start, self._goal = start.copy(), goal.copy()
        ways = np.abs(goal - start)
        length = float(ways.max())
        max_speed = length / max(float((ways / limits).max()), 1e-300)
        self._profile = Trapezoid(length, acceleration, speed, duration, max_speed)

    def _at(self, share: float, q: Array) -> Array:
        return self._goal if share == 1.0 else self._start + share * (self._goal - self._start)


class ToolMove(PathMove):
    """movel: the tool moves in a straight line and rotates evenly; inverse kinematics gives the joints.

    Args:
        arm: Its kinematics.
        q: Joints at the start (n,), rad.
        goal: TCP in the pendant's base.
        acceleration, speed: m/s^2 and m/s; for a pure rotation, of a tenth of the angle (1 rad counts as 0.1 m).
        duration: s; above zero it takes precedence over the speed, and too short a one is exceeded.
        limits: Maximum joint speeds (n,), rad/s, that a given duration does not exceed.
    """

    def __init__(
        self,
        arm: Arm,
        q: Array,
        goal: pin.SE3,
        acceleration: float,
        speed: float,
        duration: float = 0.0,
        limits: Array | None = None,
    ) -> None:
        self._arm, self._start, self._goal = arm.snapshot(), arm.tool(q), goal
        self._rotation = pin.log3(goal.rotation @ self._start.rotation.T)
        self._travel = goal.translation - self._start.translation
        length = max(float(np.linalg.norm(self._travel)), 0.1 * float(np.linalg.norm(self._rotation)))
        self._limits = limits if duration > 0.0 else None
        if self._limits is not None and length > 0.0:
            # A first estimate of how long it takes, from the joint speeds at the start; a triangle's peak is 2 / t.
            twist = np.concatenate([self._travel, self._rotation])
            joints = np.linalg.lstsq(arm.jacobian(q), twist, rcond=1e-3)[0]
            duration = max(duration, 2.0 * float((np.abs(joints) / self._limits).max()))
        self._profile = Trapezoid(length, acceleration, speed, duration)

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        target = super().step(q, qd, dt, scaling)
        if self._limits is None:
            return target
        excess = float((np.abs(target - q) / (dt * self._limits)).max())
        if excess <= 1.0:
            return target
        # As far along the path as the joints can get in this tick.
        self._time -= dt * scaling * (1.0 - 0.99 / excess)
        return super().step(q, qd, 0.0, scaling)

    def _at(self, share: float, q: Array) -> Array:
        if share == 1.0:
            return self._arm.joints(self._goal, q)
        rotation = pin.exp3(share * self._rotation) @ self._start.rotation
        return self._arm.joints(pin.SE3(rotation, self._start.translation + share * self._travel), q)

    def goal(self) -> Array | None:
        return pose_of(self._goal)


class CircleMove(PathMove):
    """movec: through a via point to a goal, on the circle through all three; the tool rotates evenly."""

    def __init__(self, arm: Arm, q: Array, via: pin.SE3, goal: pin.SE3, acceleration: float, speed: float) -> None:
        self._arm, self._start = arm.snapshot(), arm.tool(q)
        a, b, c = self._start.translation, via.translation, goal.translation
        ab, ac = b - a, c - a
        normal = np.cross(ab, ac)
        size = float(np.linalg.norm(normal))
        if size < 1e-9:
            raise Unreachable("start, via point and goal of movec lie on a line")
        to_centre = (np.dot(ac, ac) * np.cross(normal, ab) + np.dot(ab, ab) * np.cross(ac, normal)) / (2.0 * size**2)
        self._centre, self._radius = a + to_centre, -to_centre
        self._axis = normal / size
        end = c - self._centre
        angle = math.atan2(np.dot(self._axis, np.cross(self._radius, end)), np.dot(self._radius, end))
        self._angle = angle if angle > 0.0 else angle + 2.0 * math.pi
        self._rotation = pin.log3(goal.rotation @ self._start.rotation.T)
        self._profile = Trapezoid(self._angle * float(np.linalg.norm(to_centre)), acceleration, speed)

    def _at(self, share: float, q: Array) -> Array:
        radius = pin.exp3(share * self._angle * self._axis) @ self._radius
        rotation = pin.exp3(share * self._rotation) @ self._start.rotation
        return self._arm.joints(pin.SE3(rotation, self._centre + radius), q)


class JointSpeed(Motion):
    """speedj: ramp to joint speeds and keep them until another motion follows."""

    has_path = False

    def __init__(self, speeds: Array, acceleration: float) -> None:
        self._speeds, self._acceleration = speeds.copy(), acceleration

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        return q + dt * ramped(qd, self._speeds * scaling, self._acceleration * dt)


class ToolSpeed(Motion):
    """speedl: ramp to a tool speed (6,) in the pendant's base and keep it."""

    has_path = False

    def __init__(self, arm: Arm, q: Array, qd: Array, period: float, speed: Array, acceleration: float) -> None:
        self._arm, self._period = arm.snapshot(), period
        self.aim(speed, acceleration)
        self.moved(q, qd)

    def moved(self, q: Array, qd: Array) -> None:
        # qd is the mean velocity of the last tick, which the joints had halfway through it.
        self._speed_now = self._arm.jacobian(q - 0.5 * self._period * qd) @ qd

    def aim(self, speed: Array, acceleration: float) -> None:
        """Change the speed (6,)."""
        self._target, self._acceleration = speed.copy(), acceleration

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        # The rotation ramps in step with the translation.
        change = self._target * scaling - self._speed_now
        largest = max(float(np.linalg.norm(change[:3])), float(np.linalg.norm(change[3:])))
        max_change = self._acceleration * dt
        self._speed_now = (
            self._speed_now + change * (max_change / largest) if largest > max_change else self._target * scaling
        )
        # The joint speeds halfway through the tick keep the tool on its line.
        halfway = q + 0.5 * dt * self._joint_speed(q)
        return q + dt * self._joint_speed(halfway)

    def _joint_speed(self, q: Array) -> Array:
        jacobian = self._arm.jacobian(q)
        # Damped, so that the speed stays finite at singularities.
        normal = jacobian @ jacobian.T + 1e-8 * np.eye(6)
        speed: Array = jacobian.T @ np.linalg.solve(normal, self._speed_now)
        return speed


class ToolStop(ToolSpeed):
    """stopl: ramp the tool's speed to rest, straight on."""

    def __init__(self, arm: Arm, q: Array, qd: Array, period: float, deceleration: float) -> None:
        super().__init__(arm, q, qd, period, np.zeros(6), deceleration)

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        target = super().step(q, qd, dt, scaling)
        self.done = not self._speed_now.any()
        return target


class JointStop(JointSpeed):
    """stopj: ramp to rest."""

    def __init__(self, deceleration: float) -> None:
        super().__init__(np.zeros(()), deceleration)

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        target = super().step(q, qd, dt, scaling)
        self.done = bool((target == q).all())
        return target


class Servo(Motion):
    """servoj: the servo law of UR's controllers, until another motion follows.

    Args:
        q, qd: Joint targets at the start (n,), rad and rad/s.
        period: Of the controller, s.
        slowed: Whether its time passes slower with the speed scaling.
    """

    has_path = False

    def __init__(self, q: Array, qd: Array, period: float, slowed: bool = False) -> None:
        self._joints, self._slowed = ServojJoints(ServojLaw(period), q, compiled=False), slowed
        self.setpoint = q.copy()
        self.moved(q, qd)

    def moved(self, q: Array, qd: Array) -> None:
        self._joints.reset(q, qd)
        self._before = self._after = q
        self._share = 1.0  # of the law's cycle from `_before` to `_after`

    def aim(self, setpoint: Array, duration: float, lookahead: float, gain: float) -> None:
        """Begin a call with a setpoint (n,), rad, that lasts `duration` s."""
        law = self._joints.law
        if (law.gain, law.lookahead) != (gain, lookahead):
            self._joints.law = ServojLaw(law.cycle, gain, lookahead)
        self._joints.command(setpoint, duration)
        self.setpoint = setpoint

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        if not self._slowed:
            return self._joints.step()
        self._share += scaling
        if self._share > 1.0:
            self._share -= 1.0
            self._before, self._after = self._after, self._joints.step()
        return self._before + self._share * (self._after - self._before)
