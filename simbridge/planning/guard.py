"""The setpoint guard: a pure check of each setpoint right before it is sent to the arm.

The guard is the last of three stages. The plan check refuses a plan that violates position,
velocity, velocity jump, torque or tool speed limits, or collides; with `--on-limits limit`, and for
live targets, the limiter first brings the setpoints within velocity, acceleration and tool speed.
The guard then checks four rules on the single setpoint: position, velocity (the step from the
previous setpoint), velocity jump (the change of that step), and distance from the measured arm. It
also checks what the servo law makes of the setpoint: its velocity and, with feedforward, its
acceleration. Without feedforward a plan within the velocity jump may exceed that acceleration. The
guard does not limit the speed of the tool.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simbridge.errors import GuardViolation
from simbridge.robot.pose import Array
from simbridge.servo.feedforward import MAX_ACCELERATION, MAX_LEAD, SCALING_RAMP

# It loads pinocchio; the servo process, which imports this module, must start quickly.
if TYPE_CHECKING:
    from simbridge.robot.robot import Robot

# Setpoints planned to a limit may exceed it by this factor, by rounding.
ROUNDING_FACTOR = 1.0 + 1e-5
# What the servo law predicts may exceed a limit by this factor: the state that the prediction
# begins with is not the one of the plan check.
PREDICTION_FACTOR = 1.0 + 1e-3
# Positions may exceed the joint range by this rounding, rad.
POSITION_ROUNDING = 1e-9
# How far a setpoint may be from the measured arm, in addition to the normal lag of the servo at
# speed, rad.
MAX_DISTANCE = 0.2


@dataclass(frozen=True)
class ArmLimits:
    """The limits that the guard checks, as plain numbers: the servo process has no `Robot`.

    Attributes:
        name: Name of the arm.
        joint_names: Names of the n joints.
        position_min: Lowest positions (n), rad.
        position_max: Highest positions (n), rad.
        max_velocity: Largest velocities (n), rad/s.
        max_velocity_jump: Largest change of velocity from one period to the next, rad/s.
    """

    name: str
    joint_names: tuple[str, ...]
    position_min: tuple[float, ...]
    position_max: tuple[float, ...]
    max_velocity: tuple[float, ...]
    max_velocity_jump: float

    @staticmethod
    def of(robot: Robot) -> ArmLimits:
        """Return the limits of a robot."""
        return ArmLimits(
            name=robot.name,
            joint_names=tuple(robot.joint_names),
            position_min=tuple(robot.position_min.tolist()),
            position_max=tuple(robot.position_max.tolist()),
            max_velocity=tuple(robot.max_velocity.tolist()),
            max_velocity_jump=robot.max_velocity_jump,
        )


def allowed_distance(velocity: Array, lookahead: float) -> Array:
    """Return how far a setpoint may be from the measured arm (n,), rad.

    Args:
        velocity: Velocity of the setpoints (n,), rad/s: the arm lags behind them.
        lookahead: Lookahead of servoj, s.
    """
    distance: Array = MAX_DISTANCE + 2.0 * lookahead * np.abs(velocity)
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

        self._low = np.asarray(robot.position_min)
        self._high = np.asarray(robot.position_max)
        self._max_velocity = np.asarray(robot.max_velocity)
        self.max_velocity: tuple[float, ...] = tuple(self._max_velocity.tolist())
        self._velocity_jump = robot.max_velocity_jump
        # A changing speed slider changes the velocity as well.
        self._max_jump = self._velocity_jump + SCALING_RAMP * period * self._max_velocity

        # The last setpoint (n,), rad, and its velocity (n,), rad/s; None before there is one.
        self._previous: Array | None = None
        self._velocity: Array | None = None
        # Whether a setpoint was refused: then all are.
        self._violated = False

    def reset(self, q: Array) -> None:
        """Unlatch; the next setpoint is checked against an arm at rest at q (n,), rad."""
        self._previous = np.array(q, dtype=float)
        self._velocity = None
        self._violated = False

    def expect(self, q: Array) -> None:
        """Check the next setpoint against an arm at rest at q (n,), rad, unless latched."""
        if not self._violated:
            self.reset(q)

    def check(self, setpoint: Array, measured: Array) -> Array:
        """Check a setpoint right before it is sent.

        Args:
            setpoint: Joint positions (n,), rad.
            measured: The arm's joint positions (n,), rad.

        Returns:
            A read-only copy of the setpoint (n,).

        Raises:
            GuardViolation: The violated rule, the joint, the value and the limit. Every later
                setpoint is refused.
        """
        if self._violated:
            raise GuardViolation(
                "An earlier setpoint was refused and the arm has been stopped; call recover() "
                "first.",
                rule="latched",
            )
        q = self._as_numbers(setpoint, "setpoint")
        measured_q = self._as_numbers(measured, "measured position")
        self._check_range(q)

        # Before the first setpoint, the step is counted from the measured arm.
        previous = measured_q if self._previous is None else self._previous
        velocity = (q - previous) / self._period
        self._check("velocity", velocity, self._max_velocity, what="its velocity", unit="rad/s")

        # Before the first setpoint there is no velocity that could jump.
        previous_velocity = velocity if self._velocity is None else self._velocity
        jump = velocity - previous_velocity
        what = "the change of its velocity within a period"
        self._check("velocity jump", jump, self._max_jump, what=what, unit="rad/s")

        distance = q - measured_q
        allowed = allowed_distance(velocity, self._lookahead)
        what = "its distance from the measured arm"
        self._check("distance", distance, allowed, what=what, unit="rad", factor=1.0)

        # The motion begins at the first setpoint from rest: the step to it does not count as a
        # velocity.
        self._previous = q
        self._velocity = 0.0 * q if self._velocity is None else velocity
        return q

    def scale_speed(self, fraction: float) -> None:
        """Take the velocity of the setpoints as a fraction of what it was.

        Args:
            fraction: 0 to 1; 0 while no setpoints are in force.
        """
        if self._velocity is not None:
            self._velocity = fraction * self._velocity

    def check_command(self, command: Array, setpoint: Array) -> Array:
        """Check what is sent to bring the arm to a checked setpoint, with feedforward.

        Args:
            command: Joint positions (n,), rad. They may step where the arm does not.
            setpoint: The setpoint (n,), rad, as `check` returned it.

        Returns:
            The command, read-only.

        Raises:
            GuardViolation: The command is not finite, outside of the joint range, or too far from
                the arm.
        """
        q = self._as_numbers(command, "command")
        self._check_range(q)
        limits = np.full(len(q), MAX_LEAD)
        what = "the lead of its command"
        self._check("lead", q - setpoint, limits, what=what, unit="rad", factor=1.0)
        return q

    def check_predicted(self, qd: Array) -> None:
        """Check the velocities qd (n,), rad/s, that the servo law predicts of the arm.

        Raises:
            GuardViolation: servoj would overshoot a limit, at which the controller stops the arm.
        """
        self._check(
            "predicted velocity",
            qd,
            self._max_velocity,
            what="the velocity that servoj makes of it",
            unit="rad/s",
            factor=PREDICTION_FACTOR,
        )

    def check_acceleration(self, qdd: Array) -> None:
        """Check the accelerations qdd (n,), rad/s^2, that the servo law predicts, with feedforward.

        Raises:
            GuardViolation: An acceleration is beyond the limit: the motion asks for it, or commands
                were late for too long.
        """
        self._check(
            "acceleration",
            qdd,
            np.full_like(qdd, MAX_ACCELERATION),
            what="its predicted acceleration",
            unit="rad/s^2",
            factor=PREDICTION_FACTOR,
        )

    def towards(self, q: Array) -> Array:
        """Return the setpoint nearest to q that an arm at rest may receive after the last one.

        Args:
            q: Joint positions (n,), rad.
        """
        if self._previous is None:
            return q
        step = np.minimum(self._max_velocity, self._velocity_jump) * self._period
        return np.clip(q, self._previous - step, self._previous + step)

    def within_range(self, command: Array) -> Array:
        """Return a command (n,), rad, or the nearest to it within the joint range.

        It is for braking, which must not be refused.
        """
        return np.clip(command, self._low, self._high)

    def _as_numbers(self, values: Array, name: str) -> Array:
        """Return a read-only copy of joint positions (n,); refuse any other value."""
        try:
            q = np.array(values, dtype=float)
        except Exception:  # conversion of an arbitrary object may fail in any way
            kind = type(values).__name__
            message = f"A {name} must be numbers, not {kind}; the arm was stopped."
            raise self._violation(message, rule="shape") from None

        refused = "was refused and the arm stopped"
        joints = len(self._low)
        if q.shape != (joints,):
            has = f"{self._robot.name} has {joints} joints"
            raise self._violation(f"A {name} of shape {q.shape} {refused}: {has}.", rule="shape")
        if not np.isfinite(q).all():
            message = f"A {name} with values that are not finite {refused}: {q.tolist()}."
            raise self._violation(message, rule="finite")

        q.setflags(write=False)
        return q

    def _check_range(self, q: Array) -> None:
        """Refuse joint positions (n,), rad, outside of the joint range; name the worst joint."""
        excess = np.maximum(self._low - q, q - self._high)
        if (excess > POSITION_ROUNDING).any():
            joint = int(np.argmax(excess))
            limit = self._low[joint] if q[joint] < self._low[joint] else self._high[joint]
            raise self._past_limit(
                "position", joint, value=q[joint], limit=limit, what="its position", unit="rad"
            )

    def _check(
        self,
        rule: str,
        values: Array,
        limits: Array,
        *,
        what: str,
        unit: str,
        factor: float = ROUNDING_FACTOR,
    ) -> None:
        """Refuse values (n,) of more than a factor times their limits (n,).

        Args:
            rule: Name of the rule.
            values: Values in the unit.
            limits: Limits in the unit.
            what: The quantity, as a noun phrase.
            unit: The unit, as it is printed.
            factor: Above 1 by what is allowed for rounding.
        """
        ratios = np.abs(values) / limits
        # Written so that a step from an unknown position (nan) is refused, too.
        if not (ratios <= factor).all():
            joint = int(np.argmax(ratios))
            value = abs(values[joint])
            raise self._past_limit(
                rule, joint, value=value, limit=limits[joint], what=what, unit=unit
            )

    def _past_limit(
        self, rule: str, joint: int, *, value: float, limit: float, what: str, unit: str
    ) -> GuardViolation:
        """Latch, and return the error for a joint past a limit."""
        name = self._robot.joint_names[joint]
        return self._violation(
            f"A setpoint was refused and the arm stopped: {name}: {what} would be {value:.4g} "
            f"{unit}, the limit is {limit:.4g} {unit}.",
            rule=rule,
            joint=name,
            value=float(value),
            limit=float(limit),
        )

    def _violation(self, message: str, **facts: Any) -> GuardViolation:
        """Latch, and return the error to raise."""
        self._violated = True
        return GuardViolation(message, **facts)
