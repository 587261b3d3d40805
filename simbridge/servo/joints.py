"""Joints under servoj, one cycle at a time, for commands that arrive while they move."""

from __future__ import annotations

import numpy as np

from simbridge.robot.pose import Array
from simbridge.servo.integration import compiled_integrate, integrate, round_to_single
from simbridge.servo.law import JointMotion, ServojLaw

# Distance, as a fraction of a cycle, up to which a call ends exactly with a cycle.
EDGE_TOLERANCE = 1e-6


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
        # The commands of calls that have not ended (K + 1, n), rad, behind the one before them.
        self._commands = np.stack([round_to_single(self._state[0])] * 2)
        # The beginning of the first of these calls and the ends of all (K,), s after the start of
        # the coming cycle, except for the phase.
        self._begin = -self.law.cycle
        self._ends = np.zeros(1)

        self._motion.q[0] = self._state[0]
        self._motion.qd[0] = self._state[1]
        self._motion.qdd[0] = 0.0

    def command(self, q: Array, call: float | None = None) -> None:
        """Begin a call of servoj.

        It begins with the coming cycle, or inside it, where the call before ends. A call before
        that would outlast the coming cycle is given up.

        Args:
            q: The command (n,), rad.
            call: Duration of the call, s; one cycle by default.
        """
        command = round_to_single(np.asarray(q, dtype=float))
        duration = self.law.cycle if call is None else call
        tolerance = EDGE_TOLERANCE * self.law.cycle

        begin = float(self._ends[-1])
        if begin < -tolerance:
            # Until now the last command was held.
            self._append(self._commands[-1], 0.0)
            begin = 0.0
        elif begin > self.law.cycle - tolerance:
            self._give_up_calls()
            begin = 0.0
        self._append(command, begin + duration)

    def _give_up_calls(self) -> None:
        """End the call under way with the last cycle, and forget those that have not begun."""
        begun = 1 + int(np.count_nonzero(self._ends[:-1] < 0.0))
        self._ends = np.append(self._ends[: begun - 1], 0.0)
        self._commands = self._commands[: begun + 1]

    def _append(self, command: Array, end: float) -> None:
        """Append a call.

        Args:
            command: The command (n,), rad, in single precision.
            end: Its end, s after the start of the coming cycle.
        """
        self._commands = np.concatenate([self._commands, command[np.newaxis]])
        self._ends = np.append(self._ends, end)

    def step(self) -> Array:
        """Advance by one cycle and return the joint targets (n,), rad."""
        begin = self._begin + self._phase
        self._integrate(
            self._commands[1:],
            self._commands[0],
            self._ends + self._phase,
            *self.law.integration_constants(begin),
            self._state,
            *self._motion,
        )

        self._begin -= self.law.cycle
        self._ends = self._ends - self.law.cycle
        self._forget_ended_calls()
        return self.q

    def _forget_ended_calls(self) -> None:
        """Keep the calls that the next cycle has a part of, and the last one."""
        has_ended = self._ends + self._phase <= EDGE_TOLERANCE * self.law.cycle
        ended = min(int(np.count_nonzero(has_ended)), len(self._ends) - 1)
        if ended:
            self._begin = float(self._ends[ended - 1])
            self._ends = self._ends[ended:]
            self._commands = self._commands[ended:]
