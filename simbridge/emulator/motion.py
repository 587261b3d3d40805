"""How the emulated arm moves: each motion gives the joints' next target, tick by tick.

The motions are textbook profiles, not UR's own: trapezoids for moves, ramps for speeds and stops. They have not been
validated against URSim or a robot. Blend radii are not modelled: every move ends at its target.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
import pinocchio as pin

from simbridge.emulator.arm import Arm, Unreachable, pose_of
from simbridge.robot.pose import Array
from simbridge.servo.servoj import ServojModel


class Motion(ABC):
    """Something that decides where the joints go next.

    Attributes:
        done: Whether it has ended; its last answer then holds.
        has_path: Whether it can be slowed along a path. One that has none is halted by bringing the joints to rest,
            and told by `moved` where they are.
    """

    done = False
    has_path = True

    @abstractmethod
    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        """The joints' next target (n,), rad.

        Args:
            q, qd: Present targets (n,), rad and rad/s.
            dt: A tick, s.
            scaling: Of the speed, 0..1: a scaled motion takes the same path, slower.

        Raises:
            Unreachable: A tool-space motion has left what the joints can attain.
        """

    def moved(self, q: Array, qd: Array) -> None:  # noqa: B027
        """The joints went to q (n,), rad, with qd (n,), rad/s, without it; it goes on from there."""

    def goal(self) -> Array | None:
        """Where it will end, as the TCP's pose (6,) in the pendant's base; None for a motion without an end."""
        return None


class Hold(Motion):
    """Come to rest, gently, and stay."""

    done = True

    def __init__(self, acceleration: float = 20.0) -> None:
        self._acceleration = acceleration

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        return q + dt * _ramped(qd, np.zeros_like(qd), self._acceleration * dt)


def _ramped(qd: Array, wanted: Array, most: float) -> Array:
    """Velocities (n,) one tick nearer to the wanted ones, all joints in proportion."""
    change = wanted - qd
    largest = float(np.abs(change).max(initial=0.0))
    return wanted if largest <= most else qd + change * (most / largest)


class Trapezoid:
    """The way along a path of a given length, from rest to rest.

    Args:
        length: rad or m.
        acceleration, speed: Per s^2 and s.
        duration: s; above zero it decides, and the speed follows from it.
        fastest: No speed is higher, whatever the duration, per s.
    """

    def __init__(
        self, length: float, acceleration: float, speed: float, duration: float = 0.0, fastest: float = math.inf
    ) -> None:
        self.length = length
        if length <= 0.0:
            self.duration = self._ramp = self._speed = 0.0
            return
        if duration > 0.0:
            # Half the time to gain speed, half to lose it, unless the acceleration allows less.
            root = max(0.0, (acceleration * duration) ** 2 - 4.0 * acceleration * length)
            speed = 0.5 * (acceleration * duration - math.sqrt(root)) if root > 0.0 else 2.0 * length / duration
            acceleration = max(acceleration, 4.0 * length / duration**2)
        speed = min(speed, fastest, math.sqrt(length * acceleration))
        self._speed, self._ramp = speed, speed / acceleration
        self.duration = length / speed + self._ramp

    def at(self, time: float) -> float:
        """Distance gone after `time` s."""
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


class JointMove(Motion):
    """movej: straight in joint space, the joint that goes farthest sets the pace.

    Args:
        start, goal: Joint positions (n,), rad.
        limits: Highest joint speeds (n,), rad/s; a move that asks for more takes longer.
        acceleration, speed: Of the joint that goes farthest, rad/s^2 and rad/s.
        duration: s; above zero it decides.
    """

    def __init__(
        self, start: Array, goal: Array, limits: Array, acceleration: float, speed: float, duration: float = 0.0
    ) -> None:
        self._start, self._goal = start.copy(), goal.copy()
        ways = np.abs(goal - start)
        length = float(ways.max())
        fastest = length / max(float((ways / limits).max()), 1e-300)
        self._profile = Trapezoid(length, acceleration, speed, duration, fastest)
        self._time = 0.0

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        self._time += dt * scaling
        if self._time >= self._profile.duration:
            self.done = True
            return self._goal
        return self._start + (self._profile.at(self._time) / self._profile.length) * (self._goal - self._start)


class ToolMove(Motion):
    """movel: the tool goes straight and turns evenly; the joints follow through inverse kinematics.

    Args:
        arm: Whose kinematics.
        q: Where it begins (n,), rad.
        goal: TCP in the pendant's base.
        acceleration, speed: m/s^2 and m/s; of a pure rotation, of the angle over 10 (rad as if 0.1 m).
    """

    def __init__(
        self, arm: Arm, q: Array, goal: pin.SE3, acceleration: float, speed: float, duration: float = 0.0
    ) -> None:
        self._arm, self._start, self._goal = arm.snapshot(), arm.tool(q), goal
        self._turn = pin.log3(goal.rotation @ self._start.rotation.T)
        self._travel = goal.translation - self._start.translation
        length = max(float(np.linalg.norm(self._travel)), 0.1 * float(np.linalg.norm(self._turn)))
        self._profile = Trapezoid(length, acceleration, speed, duration)
        self._time = 0.0

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        self._time += dt * scaling
        if self._time >= self._profile.duration:
            self.done = True
            return self._arm.joints(self._goal, q)
        share = self._profile.at(self._time) / self._profile.length
        here = pin.SE3(
            pin.exp3(share * self._turn) @ self._start.rotation, self._start.translation + share * self._travel
        )
        return self._arm.joints(here, q)

    def goal(self) -> Array | None:
        return pose_of(self._goal)


class CircleMove(Motion):
    """movec: through a via point to a goal, on the circle through both; the tool turns evenly."""

    def __init__(self, arm: Arm, q: Array, via: pin.SE3, goal: pin.SE3, acceleration: float, speed: float) -> None:
        self._arm, self._start, self._goal = arm.snapshot(), arm.tool(q), goal
        a, b, c = self._start.translation, via.translation, goal.translation
        normal = np.cross(b - a, c - a)
        size = float(np.linalg.norm(normal))
        if size < 1e-9:
            raise Unreachable("start, via point and goal of movec lie on a line")
        ab, ac = b - a, c - a
        to_centre = (np.dot(ac, ac) * np.cross(normal, ab) + np.dot(ab, ab) * np.cross(ac, normal)) / (2.0 * size**2)
        self._centre, self._arm_length = a + to_centre, -to_centre
        self._axis = normal / size
        end = c - self._centre
        angle = math.atan2(np.dot(self._axis, np.cross(self._arm_length, end)), np.dot(self._arm_length, end))
        self._angle = angle if angle > 0.0 else angle + 2.0 * math.pi
        self._turn = pin.log3(goal.rotation @ self._start.rotation.T)
        self._profile = Trapezoid(self._angle * float(np.linalg.norm(to_centre)), acceleration, speed)
        self._time = 0.0

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        self._time += dt * scaling
        self.done = self._time >= self._profile.duration
        share = self._profile.at(self._time) / self._profile.length
        spoke = pin.exp3(share * self._angle * self._axis) @ self._arm_length
        here = pin.SE3(pin.exp3(share * self._turn) @ self._start.rotation, self._centre + spoke)
        return self._arm.joints(here, q)


class JointSpeed(Motion):
    """speedj: ramp to joint speeds and keep them; without end, until another motion follows."""

    has_path = False

    def __init__(self, speeds: Array, acceleration: float) -> None:
        self._speeds, self._acceleration = speeds.copy(), acceleration

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        return q + dt * _ramped(qd, self._speeds * scaling, self._acceleration * dt)


class ToolSpeed(Motion):
    """speedl: ramp to a tool speed (6,) in the pendant's base and keep it."""

    has_path = False

    def __init__(self, arm: Arm, q: Array, qd: Array, period: float, speed: Array, acceleration: float) -> None:
        self._arm, self._period = arm.snapshot(), period
        self.aim(speed, acceleration)
        self.moved(q, qd)

    def moved(self, q: Array, qd: Array) -> None:
        # qd is the way of the last tick over its time: the joints had it halfway.
        self._now = self._arm.jacobian(q - 0.5 * self._period * qd) @ qd

    def aim(self, speed: Array, acceleration: float) -> None:
        """Another speed (6,) from now on."""
        self._wanted, self._acceleration = speed.copy(), acceleration

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        # The rotation ramps in step with the translation.
        change = self._wanted * scaling - self._now
        largest = max(float(np.linalg.norm(change[:3])), float(np.linalg.norm(change[3:])))
        most = self._acceleration * dt
        self._now = self._now + change * (most / largest) if largest > most else self._wanted * scaling
        # The joints' speed halfway through the tick keeps the tool on its line.
        halfway = q + 0.5 * dt * self._joint_speed(q)
        return q + dt * self._joint_speed(halfway)

    def _joint_speed(self, q: Array) -> Array:
        jacobian = self._arm.jacobian(q)
        # Damped, so that the speed stays finite where the arm is stretched.
        normal = jacobian @ jacobian.T + 1e-8 * np.eye(6)
        speed: Array = jacobian.T @ np.linalg.solve(normal, self._now)
        return speed


class ToolStop(ToolSpeed):
    """stopl: ramp the tool's speed to rest, straight on."""

    def __init__(self, arm: Arm, q: Array, qd: Array, period: float, deceleration: float) -> None:
        super().__init__(arm, q, qd, period, np.zeros(6), deceleration)

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        goes_to = super().step(q, qd, dt, scaling)
        self.done = not self._now.any()
        return goes_to


class JointStop(Motion):
    """stopj: ramp to rest."""

    has_path = False

    def __init__(self, deceleration: float) -> None:
        self._deceleration = deceleration

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        slower = _ramped(qd, np.zeros_like(qd), self._deceleration * dt)
        self.done = not slower.any()
        return q + dt * slower


class Servo(Motion):
    """servoj: the documented model, towards the last setpoint; without end, until another motion follows."""

    has_path = False

    def __init__(self, q: Array, qd: Array, period: float) -> None:
        self.model = ServojModel(q, period)
        self.moved(q, qd)
        self.setpoint = q.copy()

    def moved(self, q: Array, qd: Array) -> None:
        self.model.reset(q, qd)

    def aim(self, setpoint: Array, lookahead: float, gain: float) -> None:
        """A new setpoint (n,), rad."""
        if (lookahead, gain) != (self.model.lookahead, self.model.gain):
            self.model.tune(lookahead, gain)
        self.setpoint = setpoint

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        return self.model.step(self.setpoint)
