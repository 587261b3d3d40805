"""The setpoint guard: the last, pure look at a setpoint before it leaves for the arm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simbridge.errors import GuardViolation
from simbridge.robot.pose import Array

if TYPE_CHECKING:
    from simbridge.robot.robot import Robot


# Setpoints planned to a limit may pass it by rounding.
_SLACK = 1.0 + 1e-5
# How far a setpoint may be from the measured arm: this, plus what a healthy servo trails behind at speed.
_DISTANCE = 0.2  # rad


@dataclass(frozen=True)
class ArmLimits:
    """All the guard knows of an arm: a `Robot` has it, and a process without one can be told.

    Attributes:
        name: The arm's.
        joint_names: n names.
        position_min, position_max: (n,) rad.
        max_velocity: (n,) rad/s.
    """

    name: str
    joint_names: tuple[str, ...]
    position_min: Array
    position_max: Array
    max_velocity: Array

    @staticmethod
    def of(
        name: str,
        joint_names: list[str],
        position_min: list[float],
        position_max: list[float],
        max_velocity: list[float],
    ) -> ArmLimits:
        """From plain lists."""
        return ArmLimits(
            name, tuple(joint_names), np.array(position_min), np.array(position_max), np.array(max_velocity)
        )

    @staticmethod
    def told(robot: Robot) -> dict[str, Any]:
        """A robot's limits as plain lists, as `of` takes them."""
        return {
            "name": robot.name,
            "joint_names": list(robot.joint_names),
            "position_min": robot.position_min.tolist(),
            "position_max": robot.position_max.tolist(),
            "max_velocity": robot.max_velocity.tolist(),
        }


class Guard:
    """Lets a setpoint out only if it is one the arm may be given now; the first violation latches.

    Args:
        robot: Its position and velocity limits hold.
        period: Control period, s: setpoints are this far apart in time.
        lookahead: The servo's lookahead, s; the arm may trail twice that behind a moving setpoint.
    """

    def __init__(self, robot: Robot | ArmLimits, period: float, lookahead: float = 0.03) -> None:
        self._robot = robot
        self._period = period
        self._lookahead = lookahead
        self._low, self._high = robot.position_min, robot.position_max
        self._max_step = robot.max_velocity * period * _SLACK
        self._previous: Array | None = None
        self._violated = False

    def reset(self, q: Array) -> None:
        """Unlatch; the next setpoint is judged against an arm that stands at q (n,)."""
        self._previous = np.array(q, dtype=float)
        self._violated = False

    def expect(self, q: Array) -> None:
        """Judge the next setpoint against an arm that stands at q (n,); a latched guard stays latched."""
        if not self._violated:
            self.reset(q)

    def check(self, setpoint: Array, measured: Array) -> Array:
        """Pass a setpoint on.

        Args:
            setpoint: What is about to be sent (n,), rad.
            measured: Where the arm is (n,), rad.

        Returns:
            The setpoint as a read-only array of its own (n,).

        Raises:
            GuardViolation: Names the rule, the joint, the value and the limit. Nothing passes after it.
        """
        if self._violated:
            raise GuardViolation(
                "An earlier setpoint was refused and the arm has been stopped; call recover() first.", rule="latched"
            )
        try:
            q = self._numbers(setpoint, "setpoint")
            self._judge(q, self._numbers(measured, "measured position"))
        except GuardViolation:
            self._violated = True
            raise
        self._previous = q
        return q

    def _numbers(self, given: Array, name: str) -> Array:
        try:
            q = np.array(given, dtype=float)
        except Exception:  # whatever it is and however it fails, it is no setpoint
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

    def _judge(self, q: Array, measured: Array) -> None:
        outside = np.maximum(self._low - q, q - self._high)
        if (outside > 1e-9).any():
            i = int(np.argmax(outside))
            bound = self._low[i] if q[i] < self._low[i] else self._high[i]
            raise self._violation("position", i, q[i], bound, "its position", "rad")
        step = np.abs(q - (measured if self._previous is None else self._previous))
        # Worded so that a step from an unknown position (nan) is refused too.
        if not (step <= self._max_step).all():
            i = int(np.argmax(step / self._max_step))
            speed, limit = step[i] / self._period, self._robot.max_velocity[i]
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
