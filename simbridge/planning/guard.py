"""The setpoint guard: a pure check of each setpoint right before it is sent to the arm.

The guard is the last of three stages. The plan check refuses a plan that violates position, velocity, velocity jump,
torque or tool speed limits, or collides; with `--on-limits limit`, and for live targets, the limiter first brings the
setpoints within velocity, acceleration and tool speed. The guard then checks three rules on the single setpoint:
position, velocity (the step from the previous setpoint) and distance from the measured arm. Acceleration and tool speed
are no limits of the guard.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from simbridge.errors import GuardViolation
from simbridge.robot.pose import Array
from simbridge.servo.feedforward import MAX_ACCELERATION, MAX_LEAD

if TYPE_CHECKING:  # loads pinocchio; the servo process, which imports this module, must start quickly
    from simbridge.robot.robot import Robot

# Setpoints planned to a limit may exceed it by rounding.
_SLACK = 1.0 + 1e-5
# How far a setpoint may be from the measured arm, in addition to the normal lag of the servo at speed.
_DISTANCE = 0.2  # rad


@dataclass(frozen=True)
class ArmLimits:
    """The limits that the guard checks, as plain numbers: the servo process has no `Robot`.

    Attributes:
        name: The arm's.
        joint_names: n names.
        position_min, position_max: n positions, rad.
        max_velocity: n velocities, rad/s.
    """

    name: str
    joint_names: tuple[str, ...]
    position_min: tuple[float, ...]
    position_max: tuple[float, ...]
    max_velocity: tuple[float, ...]

    @staticmethod
    def of(robot: Robot) -> ArmLimits:
        """The limits of a robot."""
        low, high, velocity = (
            tuple(values.tolist()) for values in (robot.position_min, robot.position_max, robot.max_velocity)
        )
        return ArmLimits(robot.name, tuple(robot.joint_names), low, high, velocity)


class Guard:
    """Passes a setpoint on only if the arm may receive it now; the first violation latches.

    Args:
        robot: The arm, with its position and velocity limits.
        period: Control period, s: the time between setpoints.
        lookahead: The servo's lookahead, s; the arm may lag behind a moving setpoint by twice that.
    """

    def __init__(self, robot: Robot | ArmLimits, period: float, lookahead: float = 0.03) -> None:
        self._robot = robot
        self._period = period
        self._lookahead = lookahead
        self._low, self._high = np.asarray(robot.position_min), np.asarray(robot.position_max)
        self._max_velocity = np.asarray(robot.max_velocity)
        self._max_step = self._max_velocity * period * _SLACK
        self._previous: Array | None = None
        self._violated = False

    def reset(self, q: Array) -> None:
        """Unlatch; the next setpoint is checked against an arm at rest at q (n,), rad."""
        self._previous = np.array(q, dtype=float)
        self._violated = False

    def expect(self, q: Array) -> None:
        """Check the next setpoint against an arm at rest at q (n,), rad; a latched guard stays latched."""
        if not self._violated:
            self.reset(q)

    def check(self, setpoint: Array, measured: Array) -> Array:
        """Check a setpoint.

        Args:
            setpoint: The setpoint that is about to be sent (n,), rad.
            measured: The arm's joint positions (n,), rad.

        Returns:
            A read-only copy of the setpoint (n,).

        Raises:
            GuardViolation: The violated rule, the joint, the value and the limit. Every later setpoint is refused.
        """
        if self._violated:
            raise GuardViolation(
                "An earlier setpoint was refused and the arm has been stopped; call recover() first.", rule="latched"
            )
        try:
            q = self._numbers(setpoint, "setpoint")
            self._check_limits(q, self._numbers(measured, "measured position"))
        except GuardViolation:
            self._violated = True
            raise
        self._previous = q
        return q

    def check_command(self, command: Array, wanted: Array) -> Array:
        """Check what is sent to bring the arm to a checked setpoint, with feedforward.

        Args:
            command: Joint positions (n,), rad. They may step where the arm does not.
            wanted: The setpoint (n,), rad, as `check` returned it.

        Returns:
            The command, read-only.

        Raises:
            GuardViolation: It is not finite, outside of the joint range, or too far from the arm.
        """
        try:
            q = self._numbers(command, "command")
            self._check_range(q)
            lead = np.abs(q - wanted)
            if (lead > MAX_LEAD).any():
                i = int(np.argmax(lead))
                raise self._violation("lead", i, lead[i], MAX_LEAD, "the lead of its command", "rad")
        except GuardViolation:
            self._violated = True
            raise
        return q

    def check_acceleration(self, qdd: Array) -> None:
        """Check the accelerations qdd (n,), rad/s^2, that the servo law predicts of the arm, with feedforward.

        Raises:
            GuardViolation: One is beyond the limit: the motion asks for it, or commands were late for too long.
        """
        if (np.abs(qdd) > MAX_ACCELERATION * (1.0 + 1e-3)).any():
            self._violated = True
            i = int(np.argmax(np.abs(qdd)))
            raise self._violation(
                "acceleration", i, abs(qdd[i]), MAX_ACCELERATION, "its predicted acceleration", "rad/s^2"
            )

    def towards(self, q: Array) -> Array:
        """The setpoint (n,), rad, that is nearest to q (n,), rad, and within one step of the last one."""
        if self._previous is None:
            return q
        step = self._max_velocity * self._period
        return np.clip(q, self._previous - step, self._previous + step)

    def within_range(self, command: Array) -> Array:
        """A command (n,), rad, as near to it as the joint range allows: for braking, which must not be refused."""
        return np.clip(command, self._low, self._high)

    def _numbers(self, given: Array, name: str) -> Array:
        try:
            q = np.array(given, dtype=float)
        except Exception:  # conversion of an arbitrary object may fail in any way
            raise GuardViolation(
                f"A {name} must be numbers, not {type(given).__name__}; the arm was stopped.", rule="shape"
            ) from None
        if q.shape != (len(self._low),):
            raise GuardViolation(
                f"A {name} of shape {q.shape} was refused and the arm stopped: {self._robot.name} has "
                f"{len(self._low)} joints.",
                rule="shape",
            )
        if not np.isfinite(q).all():
            raise GuardViolation(
                f"A {name} that is not finite was refused and the arm stopped: {q.tolist()}.", rule="finite"
            )
        q.setflags(write=False)
        return q

    def _check_range(self, q: Array) -> None:
        outside = np.maximum(self._low - q, q - self._high)
        if (outside > 1e-9).any():
            i = int(np.argmax(outside))
            bound = self._low[i] if q[i] < self._low[i] else self._high[i]
            raise self._violation("position", i, q[i], bound, "its position", "rad")

    def _check_limits(self, q: Array, measured: Array) -> None:
        self._check_range(q)
        step = np.abs(q - (measured if self._previous is None else self._previous))
        # Written so that a step from an unknown position (nan) is refused, too.
        if not (step <= self._max_step).all():
            i = int(np.argmax(step / self._max_step))
            speed, limit = step[i] / self._period, self._max_velocity[i]
            raise self._violation("velocity", i, speed, limit, "its velocity", "rad/s")
        allowed = _DISTANCE + 2.0 * self._lookahead * step / self._period
        distance = np.abs(q - measured)
        if (distance > allowed).any():
            i = int(np.argmax(distance - allowed))
            raise self._violation("distance", i, distance[i], allowed[i], "its distance from the measured arm", "rad")

    def _violation(self, rule: str, i: int, value: float, limit: float, what: str, unit: str) -> GuardViolation:
        name = self._robot.joint_names[i]
        return GuardViolation(
            f"A setpoint was refused and the arm stopped: {name}: {what} would be {value:.4g} {unit}, "
            f"the limit is {limit:.4g} {unit}.",
            rule=rule,
            joint=name,
            value=float(value),
            limit=float(limit),
        )
