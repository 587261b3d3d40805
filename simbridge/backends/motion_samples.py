"""Match the setpoints of a motion with the controller's states at which they were due."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from simbridge.robot.pose import Array
from simbridge.ur.rtde import Package

# Takes the numbers and the vectors (n,) of a sample, in the order of a row of `StateRing`.
Record = Callable[[tuple[float, ...], tuple[Array, ...]], None]

# The modes that a sample takes from a state.
MODES = ("robot_mode", "safety_mode", "runtime_state")
# The vectors (n,) that a sample takes from a state.
VECTORS = ("actual_q", "actual_qd", "effort", "target_q", "target_qd", "target_qdd")


class SentSetpoint(NamedTuple):
    """A setpoint that was sent.

    Attributes:
        due: The controller's tick at which it is due.
        sequence: Index of the setpoint in the motion, from 0.
        position: Position of the setpoint in the plan, in periods.
        sent: When the setpoint was sent, s (host clock).
        command: The command (n,), rad, that was sent for it: with feedforward it differs.
        scaling: The controller's speed scaling at the time.
    """

    due: int
    sequence: int
    position: float
    sent: float
    command: Array
    scaling: float


class MotionSamples:
    """Matches the controller's states with the setpoints of a motion that were due at them.

    Args:
        record: Takes each sample (`StateRing.write`); None drops them.

    Attributes:
        waiting: Setpoints whose state is still expected.
        missed: Number of setpoints whose state never arrived.
    """

    def __init__(self, record: Record | None = None) -> None:
        self._record = record
        self.waiting: deque[SentSetpoint] = deque()
        self.missed = 0

    def match(self, tick: int, state: Package, arrival: float) -> None:
        """Record the sample that a state completes, if a setpoint was due at it.

        Args:
            tick: The controller's tick of the state.
            state: The state.
            arrival: When the state arrived, s (host clock).
        """
        # Setpoints wait in the order in which they are due: take all that are due by this state.
        while self.waiting and self.waiting[0].due <= tick:
            setpoint = self.waiting.popleft()

            # The state of an earlier one would have come before this one.
            if setpoint.due < tick:
                self.missed += 1
                continue

            # The numbers and vectors in the order of a row of `StateRing`.
            if self._record is not None:
                numbers = (
                    float(setpoint.sequence),
                    setpoint.position,
                    setpoint.sent,
                    arrival,
                    state["timestamp"],
                    setpoint.scaling,
                    *(float(state[name]) for name in MODES),
                )
                vectors = (*(np.array(state[name]) for name in VECTORS), setpoint.command)
                self._record(numbers, vectors)
