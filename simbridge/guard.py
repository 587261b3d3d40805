"""The setpoint guard: the last, pure look at a setpoint before it leaves for the arm."""

from __future__ import annotations

import numpy as np

from simbridge.errors import GuardViolation
from simbridge.robot import Robot
from simbridge.robot.robot import Array

# Setpoints planned to a limit may pass it by rounding.
_SLACK = 1.0 + 1e-5
# How far a setpoint may be from the measured arm: this, plus what a healthy servo trails behind at speed.
_DISTANCE = 0.2  # rad


class Guard:
    """Lets a setpoint out only if it is one the arm may be given now; the first violation latches.

    Args:
        robot: Its position and velocity limits hold.
        period: Control period, s: setpoints are this far apart in time.
        lookahead: The servo's lookahead, s; the arm may trail twice that behind a moving setpoint.
    """

    def __init__(self, robot: Robot, period: float, lookahead: float = 0.03) -> None:
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

    def check(self, setpoint: Array, measured: Array) -> Array:
        """Pass a setpoint on.

        Args:
            setpoint: What is about to be sent (n,), rad.
            measured: Where the arm is (n,), rad.

        Returns:
            The setpoint as an array of its own (n,).

        Raises:
            GuardViolation: Names the rule, the joint, the value and the limit. Nothing passes after it.
        """
        if self._violated:
            raise GuardViolation(
                "An earlier setpoint was refused and the arm has been stopped; call recover() first.", rule="latched"
            )
        try:
            q = self._judged(setpoint, measured)
        except GuardViolation:
            self._violated = True
            raise
        self._previous = q
        return q

    def _judged(self, setpoint: Array, measured: Array) -> Array:
        try:
            q = np.array(setpoint, dtype=float)
        except (TypeError, ValueError):
            raise GuardViolation(f"A setpoint must be numbers, not {setpoint!r}; the arm was stopped.", rule="shape") from None
        if q.shape != (self._robot.n,):
            raise GuardViolation(
                f"A setpoint of shape {q.shape} was refused: {self._robot.name} has {self._robot.n} joints.", rule="shape"
            )
        if not np.isfinite(q).all():
            raise GuardViolation(f"A setpoint that is not finite was refused: {q}; the arm was stopped.", rule="finite")
        outside = np.maximum(self._low - q, q - self._high)
        if (outside > 1e-9).any():
            i = int(np.argmax(outside))
            bound = self._low[i] if q[i] < self._low[i] else self._high[i]
            raise self._violation("position", i, q[i], bound, "its position", "rad")
        step = np.abs(q - (measured if self._previous is None else self._previous))
        if (step > self._max_step).any():
            i = int(np.argmax(step / self._max_step))
            raise self._violation("velocity", i, step[i] / self._period, self._robot.max_velocity[i], "its velocity", "rad/s")
        allowed = _DISTANCE + 2.0 * self._lookahead * step / self._period
        distance = np.abs(q - measured)
        if (distance > allowed).any():
            i = int(np.argmax(distance - allowed))
            raise self._violation("distance", i, distance[i], allowed[i], "its distance from the measured arm", "rad")
        return q

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
