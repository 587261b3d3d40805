"""Predict where the commands so far bring the joint targets of a controller."""

from __future__ import annotations

import numpy as np

from simbridge.robot.pose import Array
from simbridge.servo.law import JointMotion, ServojLaw

# Largest number of cycles without a command that are predicted: by then the arm is at rest, and the
# script has ended. More would need a compiler, which the servo process may not load.
MAX_PREDICTED_CYCLES = 100


class PredictedTargets:
    """The joint targets that servoj makes of the commands, cycle by cycle.

    The link's delay is left out: it shifts the whole motion without deforming it.

    Args:
        law: The controller's servoj.

    Attributes:
        q: Joint targets (n,), rad, after the newest command.
        qd: Velocities of the joint targets (n,), rad/s.
        due: The controller's tick at which the newest command is due; -1 before the first.
    """

    def __init__(self, law: ServojLaw) -> None:
        self._law = law
        self.q: Array = np.empty(0)
        self.qd: Array = np.empty(0)
        self.due = -1
        # The newest command (n,), rad.
        self._command: Array = np.empty(0)

    def rest(self, q: Array) -> None:
        """Begin at rest, with a command that holds the arm at q (n,), rad."""
        self.stop(q)
        self._command = q

    def stop(self, q: Array) -> None:
        """Take the targets to rest at q (n,), rad: the controller itself has stopped them there."""
        self.q = q
        self.qd = np.zeros_like(q)

    def until(self, due: int) -> tuple[Array, Array]:
        """Return the targets (n,), rad, and their velocities (n,), rad/s, before a tick.

        Until then the newest command holds.

        Args:
            due: The controller's tick at which the next command will be due.
        """
        missed = min(due - self.due - 1, MAX_PREDICTED_CYCLES)
        if missed < 1 or self.due < 0:
            return self.q, self.qd

        held = np.repeat(self._command[np.newaxis], missed, axis=0)
        motion = self._law.follow(held, q=self.q, qd=self.qd)
        return motion.q[-1], motion.qd[-1]

    def predict(self, command: Array, due: int) -> JointMotion:
        """Return the motion of one cycle that a command would make.

        Args:
            command: Joint positions (n,), rad.
            due: The controller's tick at which it will be due.
        """
        q, qd = self.until(due)
        return self._law.follow(command[np.newaxis], q=q, qd=qd)

    def advance(self, command: Array, due: int, motion: JointMotion) -> None:
        """Take a command that was sent, with the motion that was predicted of it."""
        self.q = motion.q[0]
        self.qd = motion.qd[0]
        self.due = due
        self._command = command
