"""Motions of the emulated arm: speeds, stops and servoj. Moves along a path are in `moves.py`.

A motion computes the joints' next target, tick by tick. Speeds and stops of the joints obey the law
of speedj (`simbridge.servo.speedj`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import pinocchio as pin

from simbridge.emulator.arm import EmulatedArm
from simbridge.robot.pose import Array
from simbridge.servo.joints import ServojJoints
from simbridge.servo.law import ServojLaw
from simbridge.servo.speedj import approach_velocity, step_speedj

# Deceleration of joints that brake and stay, rad/s^2.
HOLD_DECELERATION = 20.0
# Time after which the orientation of speedl is integrated anew, s.
ORIENTATION_RENEWAL_S = 0.5


class ArmMotion(ABC):
    """A motion of the arm.

    Attributes:
        done: True once it has ended; its last target then holds.
        has_path: True if it can be slowed along a path. Otherwise it is halted by braking the
            joints, and `resume_from` passes it their state.
        blending: True while the next move may take over, within the blend radius of this one.
        carries_over: True if the next program may take over at the present speed.
        speed: The joints' speeds (n,), rad/s, at the end of the last tick; None if they are that
            tick's mean.
    """

    done = False
    has_path = True
    blending = False
    carries_over = False
    speed: Array | None = None

    @abstractmethod
    def step(self, q: Array, qd: Array, *, dt: float, scaling: float) -> Array:
        """Return the joints' next target (n,), rad.

        Args:
            q: Present targets (n,), rad.
            qd: Velocities of the joints (n,), rad/s.
            dt: Control period, s.
            scaling: Speed factor, 0..1: a scaled motion takes the same path, slower.

        Raises:
            Unreachable: A tool-space motion has left the reach of the arm.
        """

    def resume_from(self, q: Array, qd: Array) -> None:  # noqa: B027
        """Continue where something else has moved the joints.

        Args:
            q: Joint targets (n,), rad.
            qd: Velocities of the joints (n,), rad/s.
        """

    def goal(self) -> Array | None:
        """Return the TCP's final pose (6,) in the pendant's base; None if there is no end."""
        return None


class HoldMotion(ArmMotion):
    """Brake to rest and stay.

    Args:
        deceleration: Deceleration of the joints, rad/s^2.
    """

    done = True

    def __init__(self, deceleration: float = HOLD_DECELERATION) -> None:
        self._deceleration = deceleration

    def step(self, q: Array, qd: Array, *, dt: float, scaling: float) -> Array:
        """See `ArmMotion`. Braking does not depend on the scaling."""
        return q + dt * approach_velocity(qd, np.zeros_like(qd), self._deceleration * dt)


class Ramp(ArmMotion):
    """A ramp to target speeds, which it keeps; or to rest, where it ends.

    Args:
        target_speeds: Speeds of the joints, rad/s, or of the tool, m/s and rad/s (6,).
        stops: Whether it ends once it has attained them.
    """

    def __init__(self, target_speeds: Array, stops: bool) -> None:
        self._target_speeds = target_speeds.copy()
        self._stops = stops
        self.carries_over = not stops
        # The commanded speed (6,), before it is scaled; None until the first tick.
        self._commanded: Array | None = None

    @property
    def is_attained(self) -> bool:
        """True if the commanded speed is the target speed."""
        return self._commanded is not None and bool((self._commanded == self._target_speeds).all())

    def resume_from(self, q: Array, qd: Array) -> None:
        """See `ArmMotion`."""
        self._commanded = None

    def _previous_command(self, speed: Array, scaling: float) -> Array:
        """Return the commanded speed so far.

        Args:
            speed: The present speed (6,). In the first tick the command is this speed before
                scaling.
            scaling: Speed factor, 0..1.
        """
        if self._commanded is not None:
            return self._commanded
        return speed / scaling if scaling > 0.0 else np.zeros_like(speed)

    def _command_speed(self, speed: Array) -> None:
        """Command a speed (6,); end the ramp if it stops at this speed."""
        self._commanded = speed
        self.done = self._stops and self.is_attained


class JointSpeed(Ramp):
    """speedj, and stopj, which ends at rest.

    Args:
        speeds: Target speeds of the joints (n,), rad/s.
        acceleration: Acceleration of the joint with the largest change, rad/s^2.
        stops: Whether it ends once it has attained them.
    """

    def __init__(self, speeds: Array, acceleration: float, stops: bool = False) -> None:
        super().__init__(speeds, stops)
        self._acceleration = acceleration

    def step(self, q: Array, qd: Array, *, dt: float, scaling: float) -> Array:
        """See `ArmMotion`."""
        before = self._previous_command(qd, scaling)
        displacement, after = step_speedj(
            before, self._target_speeds, acceleration=self._acceleration, duration=dt
        )
        self._command_speed(after)
        self.speed = scaling * after
        return q + scaling * displacement


class ToolSpeed(Ramp):
    """speedl, and stopl, which ends at rest.

    From the call on, the tool's orientation is the exponential of the integral of its angular
    velocity. If the axis changes, that differs from the integral of the rotation, by 9 mrad after a
    second in the recordings. These have a call every half second, so what a longer call does is not
    known; here the integration begins anew after half a second.

    Args:
        arm: The arm, whose present TCP is moved.
        speed: Target speed of the tool (6,), m/s and rad/s, in the pendant's base.
        acceleration: Acceleration of the linear velocity, m/s^2.
        angular_acceleration: Acceleration of the angular velocity, rad/s^2; both velocities change
            in step.
        stops: Whether it ends once it has attained the speed.
    """

    def __init__(
        self,
        arm: EmulatedArm,
        speed: Array,
        *,
        acceleration: float,
        angular_acceleration: float,
        stops: bool = False,
    ) -> None:
        super().__init__(speed, stops)
        self._arm = arm.snapshot()
        self._acceleration = acceleration
        self._angular_acceleration = angular_acceleration
        # Time until the orientation is integrated anew, s.
        self._renewal_in = 0.0
        # The TCP where the integration began, and the integral of the twist (6,) since, m and rad.
        self._start = pin.SE3.Identity()
        self._integral = np.zeros(6)

    def resume_from(self, q: Array, qd: Array) -> None:
        """See `ArmMotion`."""
        self._commanded = None
        self._renewal_in = 0.0

    def step(self, q: Array, qd: Array, *, dt: float, scaling: float) -> Array:
        """See `ArmMotion`."""
        # Begin the integration anew where the tool is, when that is due.
        if self._renewal_in < 0.5 * dt:
            self._renewal_in = ORIENTATION_RENEWAL_S
            self._start = self._arm.tool(q)
            self._integral = np.zeros(6)
        self._renewal_in -= dt

        # The tool's speed at the start and at the end of this tick, before scaling: both velocities
        # take the time that the slower one needs to reach the target.
        start_speed = self._previous_command(self._arm.jacobian(q) @ qd, scaling)
        change = self._target_speeds - start_speed
        linear_time = np.linalg.norm(change[:3]) / self._acceleration
        angular_time = np.linalg.norm(change[3:]) / self._angular_acceleration
        ticks = max(linear_time, angular_time) / dt
        end_speed = self._target_speeds if ticks <= 1.0 else start_speed + change / ticks
        self._command_speed(end_speed)

        # The tool moves by the mean of both; the joints follow by inverse kinematics.
        self._integral = self._integral + 0.5 * dt * scaling * (start_speed + end_speed)
        rotation = pin.exp3(self._integral[3:]) @ self._start.rotation
        translation = self._start.translation + self._integral[:3]
        target = self._arm.joints(pin.SE3(rotation, translation), q)
        self.speed = self._arm.joint_speeds(target, scaling * end_speed)
        return target


class ServojMotion(ArmMotion):
    """servoj: the servo law of UR's controllers, until another motion follows.

    Args:
        q: Joint targets at the start (n,), rad.
        qd: Velocities of the joints (n,), rad/s.
        period: Control period, s.
        follows_slider: Whether its time passes slower with the speed scaling.

    Attributes:
        setpoint: Setpoint of the call under way (n,), rad.
    """

    has_path = False
    carries_over = True

    def __init__(self, q: Array, qd: Array, period: float, *, follows_slider: bool = False) -> None:
        self._joints = ServojJoints(ServojLaw(period), q, compiled=False)
        self._follows_slider = follows_slider
        self.setpoint = q.copy()
        self.resume_from(q, qd)

    def resume_from(self, q: Array, qd: Array) -> None:
        """See `ArmMotion`."""
        self._joints.reset(q, qd)
        # Joint targets (n,), rad, at the start and at the end of the law's cycle under way.
        self._cycle_begin = q
        self._cycle_end = q
        # Fraction of that cycle which has passed.
        self._progress = 1.0

    def aim(self, setpoint: Array, duration: float, *, lookahead: float, gain: float) -> None:
        """Begin a call.

        Args:
            setpoint: Joint positions (n,), rad.
            duration: Duration of the call, s.
            lookahead: Lookahead of servoj, s.
            gain: Gain of servoj, 1/s^2.
        """
        law = self._joints.law
        if (law.gain, law.lookahead) != (gain, lookahead):
            self._joints.law = ServojLaw(law.cycle, gain, lookahead)
        self._joints.command(setpoint, duration)
        self.setpoint = setpoint

    def step(self, q: Array, qd: Array, *, dt: float, scaling: float) -> Array:
        """See `ArmMotion`."""
        if not self._follows_slider:
            return self._joints.step()

        self._progress += scaling
        if self._progress > 1.0:
            self._progress -= 1.0
            self._cycle_begin = self._cycle_end
            self._cycle_end = self._joints.step()
        return self._cycle_begin + self._progress * (self._cycle_end - self._cycle_begin)
