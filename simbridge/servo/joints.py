"""Joints under servoj, one cycle at a time, for commands that arrive while they move."""

from __future__ import annotations

import numpy as np

from simbridge.robot.pose import Array
from simbridge.servo.integration import (
    EDGE_TOLERANCE,
    compiled_integrate,
    integrate,
    round_to_single,
)
from simbridge.servo.law import JointMotion, ServojLaw


class ServojJoints:
    """Joints that follow the servo law.

    All times of calls are kept relative to the start of the coming cycle and without the phase,
    which is added when a cycle is integrated.

    Args:
        law: Servo law of the controller.
        q: Joint positions (n,), rad.
        phase: Time from the start of a cycle to that of its calls, s: less than a cycle.
        compiled: Whether to integrate in compiled code. Otherwise a cycle takes 20 us instead of 3,
            but nothing has to be loaded or compiled before the first.

    Attributes:
        law: The servo law, which may be replaced between two cycles.
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
        # Positions, rad, and velocities, rad/s, of the joint targets (2, n).
        velocity = np.zeros(len(q)) if qd is None else qd
        self._state = np.stack([q, velocity]).astype(float)

        # The command of the last call that has ended, and those of the K calls that have not
        # (K + 1, n), rad. Here both are the position: a call with it ends now.
        self._commands = np.stack([round_to_single(self._state[0])] * 2)
        # When the first of the K calls began, s after the start of the coming cycle.
        self._begin = -self.law.cycle
        # When each of the K calls ends (K,), s after the start of the coming cycle.
        self._ends = np.zeros(1)

        # The motion of the last cycle.
        self._motion.q[0] = self._state[0]
        self._motion.qd[0] = self._state[1]
        self._motion.qdd[0] = 0.0

    def command(self, q: Array, call: float | None = None) -> None:
        """Begin a call of servoj.

        The call begins at the start of the coming cycle; or inside the coming cycle, if the
        previous call ends there. A previous call that would last until the end of the coming cycle,
        or longer, is given up at the start of that cycle.

        Args:
            q: The command (n,), rad.
            call: Duration of the call, s; one cycle by default.
        """
        command = round_to_single(np.asarray(q, dtype=float))
        duration = self.law.cycle if call is None else call
        tolerance = EDGE_TOLERANCE * self.law.cycle

        begin = float(self._ends[-1])
        if begin < -tolerance:
            # The previous call has ended before: until now its command was held, as by a call.
            self._append(self._commands[-1], 0.0)
            begin = 0.0
        elif begin > self.law.cycle - tolerance:
            # The previous call would last until the end of the coming cycle, or longer.
            self._give_up_calls()
            begin = 0.0
        self._append(command, begin + duration)

    def _give_up_calls(self) -> None:
        """End the call under way with the last cycle, and forget those that have not begun."""
        # The first call has begun, and so has each whose previous call has ended.
        begun = 1 + int(np.count_nonzero(self._ends[:-1] < 0.0))
        self._ends = np.append(self._ends[: begun - 1], 0.0)
        # One command more than calls: the first one is that of the last call that has ended.
        self._commands = self._commands[: begun + 1]

    def _append(self, command: Array, end: float) -> None:
        """Append a call.

        Args:
            command: The call's command (n,), rad, in single precision.
            end: When the call ends, s after the start of the coming cycle.
        """
        self._commands = np.concatenate([self._commands, command[np.newaxis]])
        self._ends = np.append(self._ends, end)

    def step(self) -> Array:
        """Advance by one cycle and return the joint targets (n,), rad."""
        # Integrate the coming cycle, which advances the state and fills in the motion.
        previous_command = self._commands[0]
        commands = self._commands[1:]
        begin = self._begin + self._phase
        ends = self._ends + self._phase
        self._integrate(
            commands,
            previous_command,
            ends,
            *self.law.integration_constants(begin),
            self._state,
            *self._motion,
        )

        # From now on, times count from the start of the next cycle.
        self._begin -= self.law.cycle
        self._ends = self._ends - self.law.cycle
        self._forget_ended_calls()
        return self.q

    def _forget_ended_calls(self) -> None:
        """Forget the calls that end before the next cycle, except for the last one."""
        has_ended = self._ends + self._phase <= EDGE_TOLERANCE * self.law.cycle
        ended = min(int(np.count_nonzero(has_ended)), len(self._ends) - 1)
        if ended:
            self._begin = float(self._ends[ended - 1])
            self._ends = self._ends[ended:]
            self._commands = self._commands[ended:]
