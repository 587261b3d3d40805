"""The inverse of the servo law, one cycle at a time: the commands for a desired motion."""

from __future__ import annotations

import numpy as np

from simbridge.robot.pose import Array
from simbridge.servo.law import ServojLaw


class InverseServoj:
    """Computes commands for a desired motion, from rest.

    Args:
        law: The controller's servo law.
        q: Joint positions at rest (n,), rad.
    """

    def __init__(self, law: ServojLaw, q: Array) -> None:
        self.law = law
        self.reset(q)

    def reset(self, q: Array, qd: Array | None = None) -> None:
        """Continue from a position and velocity.

        Args:
            q: Joint positions (n,), rad.
            qd: Joint velocities (n,), rad/s; at rest by default.
        """
        self._q = np.array(q, dtype=float)
        self._qd = np.zeros_like(self._q) if qd is None else np.array(qd, dtype=float)

    def command(self, target: Array) -> Array:
        """Return the command (n,), rad, that brings the joint targets to `target` within a cycle.

        Args:
            target: Joint positions (n,), rad, at the end of the cycle.
        """
        velocity = (target - self._q) / self.law.cycle
        acceleration = (velocity - self._qd) / self.law.cycle
        command = self.law.setpoint(self._q, self._qd, acceleration)

        self._q = np.array(target, dtype=float)
        self._qd = velocity
        return command

    def braking(self, deceleration: float) -> Array:
        """Return a motion (N, n), rad, from here to rest, with the joints in proportion.

        Its last command is where the arm then rests, and may be held.

        Args:
            deceleration: Deceleration of the fastest joint, rad/s^2.
        """
        largest_speed = float(np.abs(self._qd).max(initial=0.0))
        count = int(np.ceil(largest_speed / (deceleration * self.law.cycle)))
        # Fraction of the velocity that remains after each cycle, down to 0.
        remaining = np.append(np.arange(count - 1, -1, -1) / max(count, 1), 0.0)
        return self._q + self.law.cycle * np.cumsum(remaining[:, np.newaxis] * self._qd, axis=0)
