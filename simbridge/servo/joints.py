"""Joints under servoj, one cycle at a time, for commands that arrive while they move."""

from __future__ import annotations

import numpy as np

from simbridge.robot.pose import Array
from simbridge.servo.integration import compiled_integrate, integrate, round_to_single
from simbridge.servo.law import JointMotion, ServojLaw


class ServojJoints:
    """Joints that follow the servo law.

    Args:
        law: Servo law of the controller.
        q: Joint positions (n,), rad.
        phase: Time from the start of a cycle to that of its calls, s: less than a cycle.
        compiled: Otherwise a cycle takes 20 us instead of 3, but nothing has to be loaded or
            compiled before the first.

    Attributes:
        law: May be replaced between two cycles.
    """

    def __init__(
        self, law: ServojLaw, q: Array, phase: float = 0.0, *, compiled: bool = True
    ) -> None:
        self.law = law
        self._phase = phase
        self._integrate = compiled_integrate() if compiled else integrate
        # The joint targets of the last cycle (1, n).
        self._motion = JointMotion.zeros(1, len(q))
        self.reset(q)

    @property
    def q(self) -> Array:
        """Joint targets (n,), rad."""
        return self._state[0].copy()

    @property
    def qd(self) -> Array:
        """Velocities of the joint targets (n,), rad/s."""
        return self._state[1].copy()

    @property
    def motion(self) -> JointMotion:
        """Joint targets after the last cycle, with velocities and mean accelerations, each (n,)."""
        return JointMotion(
            q=self._motion.q[0].copy(), qd=self._motion.qd[0].copy(), qdd=self._motion.qdd[0].copy()
        )

    def reset(self, q: Array, qd: Array | None = None) -> None:
        """Continue from a position, which counts as the last command.

        Args:
            q: Joint positions (n,), rad.
            qd: Joint velocities (n,), rad/s; at rest by default.
        """
        velocity = np.zeros(len(q)) if qd is None else qd
        # Positions and velocities (2, n).
        self._state = np.stack([q, velocity]).astype(float)
        # The last three commands, oldest first: with a phase, two calls and their ramps share a
        # cycle.
        self._commands = np.stack([round_to_single(self._state[0])] * 3)
        # Duration of the call under way, s.
        self._call = self.law.cycle
        # How long ago it was made, s.
        self._elapsed = 0.0

        self._motion.q[0] = self._state[0]
        self._motion.qd[0] = self._state[1]
        self._motion.qdd[0] = 0.0

    def command(self, q: Array, call: float | None = None) -> None:
        """Begin a call of servoj.

        Args:
            q: The command (n,), rad.
            call: Duration of the call, s; one cycle by default.
        """
        command = round_to_single(np.asarray(q, dtype=float))
        self._commands = np.concatenate([self._commands[1:], command[np.newaxis]])
        self._call = self.law.cycle if call is None else call
        self._elapsed = 0.0

    def step(self) -> Array:
        """Advance by one cycle and return the joint targets (n,), rad."""
        # The first of the three commands only begins the ramp of the second, whose call began one
        # call before the one under way. This is its start, s from the start of this cycle.
        begin = self._phase - self._elapsed - self._call
        constants = self.law.integration_constants(self._call, begin)
        commands = self._commands[1:]
        previous = self._commands[0]
        self._integrate(commands, previous, *constants, self._state, *self._motion)

        self._elapsed += self.law.cycle
        return self.q
