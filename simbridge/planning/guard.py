"""The setpoint guard: a pure check of each setpoint right before it is sent to the arm.

The guard is the last of three stages. The plan check refuses a plan that violates position, velocity, velocity jump,
torque or tool speed limits, or collides; with `--on-limits limit`, and for live targets, the limiter first brings the
setpoints within velocity, acceleration and tool speed. The guard then checks four rules on the single setpoint:
position, velocity (the step from the previous setpoint), velocity jump (the change of that step), and distance from the
measured arm; and on what the servo law makes of it the velocity, with feedforward the acceleration, too. Without
feedforward a plan within the velocity jump may exceed that acceleration. Tool speed is no limit of the guard.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simbridge.errors import GuardViolation
from simbridge.robot.pose import Array
from simbridge.servo.feedforward import MAX_ACCELERATION, MAX_LEAD, SCALING_RAMP

if (
    TYPE_CHECKING
):  # loads pinocchio; the servo process, which imports this module, must start quickly
    from simbridge.robot.robot import Robot

# Setpoints planned to a limit may exceed it by rounding.
_SLACK = 1.0 + 1e-5
# Of what the servo law predicts from a state that the plan check did not begin with.
_PREDICTED_SLACK = 1.0 + 1e-3
# How far a setpoint may be from the measured arm, in addition to the normal lag of the servo at speed.
_DISTANCE = 0.2  # rad


@dataclass(frozen=True)
class ArmLimits:
    """The limits that the guard checks, as plain numbers: the servo process has no `Robot`.

    Attributes:
        position_min, position_max: n positions, rad.
    """

    name: str
    joint_names: tuple[str, ...]
    position_min: tuple[float, ...]
    position_max: tuple[float, ...]
    max_velocity: tuple[float, ...]  # n velocities, rad/s
    max_velocity_jump: float  # from one period to the next, rad/s

    @staticmethod
    def of(robot: Robot) -> ArmLimits:
        arrays = robot.position_min, robot.position_max, robot.max_velocity
        low, high, velocity = (tuple(values.tolist()) for values in arrays)
        return ArmLimits(
            robot.name, tuple(robot.joint_names), low, high, velocity, robot.max_velocity_jump
        )


def allowed_distance(velocity: Array, lookahead: float) -> Array:
    """How far a setpoint may be from the measured arm (n,), rad: at rest, and by the servo's lag at rad/s and s."""
    distance: Array = _DISTANCE + 2.0 * lookahead * np.abs(velocity)
    return distance


class Guard:
    """Passes a setpoint on only if the arm may receive it now; the first violation latches.

    Args:
        robot: The arm, with its position and velocity limits.
        period: Control period, s: the time between setpoints.
        lookahead: The servo's lookahead, s; the arm may lag behind a moving setpoint by twice that.

    Attributes:
        max_velocity: The joints' velocity limits (n,), rad/s.
    """

    def __init__(self, robot: Robot | ArmLimits, period: float, lookahead: float = 0.03) -> None:
        self._robot = robot
        self._period = period
        self._lookahead = lookahead
        self._low, self._high = np.asarray(robot.position_min), np.asarray(robot.position_max)
        self._max_velocity = np.asarray(robot.max_velocity)
        self.max_velocity: tuple[float, ...] = tuple(self._max_velocity.tolist())
        self._jump = robot.max_velocity_jump
        # A changing speed slider changes the velocity as well.
        self._max_jump = self._jump + SCALING_RAMP * period * self._max_velocity
        self._previous: Array | None = None
        self._velocity: Array | None = None
        self._violated = False

    def reset(self, q: Array) -> None:
        """Unlatch; the next setpoint is checked against an arm at rest at q (n,), rad."""
        self._previous, self._velocity = np.array(q, dtype=float), None
        self._violated = False

    def expect(self, q: Array) -> None:
        """Check the next setpoint against an arm at rest at q (n,), rad; a latched guard stays latched."""
        if not self._violated:
            self.reset(q)

    def check(self, setpoint: Array, measured: Array) -> Array:
        """Check a setpoint (n,), rad, right before it is sent, with the arm's joint positions (n,), rad.

        Returns:
            A read-only copy of the setpoint (n,).

        Raises:
            GuardViolation: The violated rule, the joint, the value and the limit. Every later setpoint is refused.
        """
        if self._violated:
            raise GuardViolation(
                "An earlier setpoint was refused and the arm has been stopped; call recover() first.",
                rule="latched",
            )
        q, at = self._numbers(setpoint, "setpoint"), self._numbers(measured, "measured position")
        self._check_range(q)
        velocity = (q - (at if self._previous is None else self._previous)) / self._period
        self._check("velocity", velocity, self._max_velocity, "its velocity", "rad/s")
        jump = velocity - (velocity if self._velocity is None else self._velocity)
        self._check(
            "velocity jump",
            jump,
            self._max_jump,
            "the change of its velocity within a period",
            "rad/s",
        )
        allowed = allowed_distance(velocity, self._lookahead)
        self._check("distance", q - at, allowed, "its distance from the measured arm", "rad", 1.0)
        # The first setpoint is where the motion begins, from rest: the step to it is no velocity.
        self._previous, self._velocity = q, 0.0 * q if self._velocity is None else velocity
        return q

    def slowed(self, rate: float) -> None:
        """Take the velocity of the setpoints as this share of what it was: 0 while none are in force."""
        self._velocity = None if self._velocity is None else rate * self._velocity

    def joined(self, setpoint: Array) -> Array:
        """A live setpoint (n,), rad, or the nearest within the velocity jump and the joint range.

        A caller that is late leaves the setpoint where it was, and has moved on by more than a step when it is back:
        the arm catches up. What is farther away than two steps is left for `check` to refuse.
        """
        if self._previous is None or self._velocity is None:
            return setpoint
        velocity = (setpoint - self._previous) / self._period
        near = np.clip(velocity, -self._max_velocity, self._max_velocity)
        near = np.clip(near, self._velocity - self._jump, self._velocity + self._jump)
        far = not (np.abs(velocity) <= 2.0 * self._max_velocity).all()
        return (
            setpoint
            if far or (near == velocity).all()
            else self.within_range(self._previous + near * self._period)
        )

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
        q = self._numbers(command, "command")
        self._check_range(q)
        self._check(
            "lead", q - wanted, np.full(len(q), MAX_LEAD), "the lead of its command", "rad", 1.0
        )
        return q

    def check_predicted(self, qd: Array) -> None:
        """Check the velocities qd (n,), rad/s, that the servo law predicts of the arm.

        Raises:
            GuardViolation: servoj would overshoot a limit, at which the controller stops the arm.
        """
        what = "the velocity that servoj makes of it"
        self._check("predicted velocity", qd, self._max_velocity, what, "rad/s", _PREDICTED_SLACK)

    def check_acceleration(self, qdd: Array) -> None:
        """Check the accelerations qdd (n,), rad/s^2, that the servo law predicts of the arm, with feedforward.

        Raises:
            GuardViolation: One is beyond the limit: the motion asks for it, or commands were late for too long.
        """
        limits = np.full_like(qdd, MAX_ACCELERATION)
        self._check(
            "acceleration", qdd, limits, "its predicted acceleration", "rad/s^2", _PREDICTED_SLACK
        )

    def towards(self, q: Array) -> Array:
        """The setpoint (n,), rad, that is nearest to q (n,), rad, and within one step of the last one, from rest."""
        if self._previous is None:
            return q
        step = np.minimum(self._max_velocity, self._jump) * self._period
        return np.clip(q, self._previous - step, self._previous + step)

    def within_range(self, command: Array) -> Array:
        """A command (n,), rad, as near to it as the joint range allows: for braking, which must not be refused."""
        return np.clip(command, self._low, self._high)

    def _numbers(self, given: Array, name: str) -> Array:
        try:
            q = np.array(given, dtype=float)
        except Exception:  # conversion of an arbitrary object may fail in any way
            kind = type(given).__name__
            raise self._violation(
                f"A {name} must be numbers, not {kind}; the arm was stopped.", rule="shape"
            ) from None
        refused = "was refused and the arm stopped"
        if q.shape != (len(self._low),):
            has = f"{self._robot.name} has {len(self._low)} joints"
            raise self._violation(f"A {name} of shape {q.shape} {refused}: {has}.", rule="shape")
        if not np.isfinite(q).all():
            raise self._violation(
                f"A {name} that is not finite {refused}: {q.tolist()}.", rule="finite"
            )
        q.setflags(write=False)
        return q

    def _check_range(self, q: Array) -> None:
        outside = np.maximum(self._low - q, q - self._high)
        if (outside > 1e-9).any():
            i = int(np.argmax(outside))
            bound = self._low[i] if q[i] < self._low[i] else self._high[i]
            raise self._past_limit("position", i, q[i], bound, "its position", "rad")

    def _check(
        self, rule: str, values: Array, limits: Array, what: str, unit: str, slack: float = _SLACK
    ) -> None:
        shares = np.abs(values) / limits
        # Written so that a step from an unknown position (nan) is refused, too.
        if not (shares <= slack).all():
            i = int(np.argmax(shares))
            raise self._past_limit(rule, i, abs(values[i]), limits[i], what, unit)

    def _past_limit(
        self, rule: str, i: int, value: float, limit: float, what: str, unit: str
    ) -> GuardViolation:
        name = self._robot.joint_names[i]
        return self._violation(
            f"A setpoint was refused and the arm stopped: {name}: {what} would be {value:.4g} {unit}, "
            f"the limit is {limit:.4g} {unit}.",
            rule=rule,
            joint=name,
            value=float(value),
            limit=float(limit),
        )

    def _violation(self, message: str, **facts: Any) -> GuardViolation:
        """Latch; the error to raise."""
        self._violated = True
        return GuardViolation(message, **facts)
