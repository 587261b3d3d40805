"""Matches the controller's states with the setpoints that were due at them: the samples of a run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from simbridge.robot.pose import Array
from simbridge.ur.rtde import Package

Record = Callable[[tuple[float, ...], tuple[Array, ...]], None]
_VECTORS = ("actual_q", "actual_qd", "effort", "target_q", "target_qd", "target_qdd")


class Sent(NamedTuple):
    """A setpoint that was sent, and the controller's tick at which it is due."""

    due: int
    sequence: int
    position: float
    sent: float
    command: Array
    scaling: float


class Samples:
    """The setpoints of a motion that wait for their states.

    Args:
        record: Takes each sample (`StateRing.write`); None drops them.

    Attributes:
        missed: Setpoints whose state never arrived.
    """

    def __init__(self, record: Record | None = None) -> None:
        self._record = record
        self._waiting: deque[Sent] = deque()
        self.missed = 0

    @property
    def waiting(self) -> bool:
        """Whether states are still expected."""
        return bool(self._waiting)

    def add(self, sent: Sent) -> None:
        """A setpoint was sent."""
        self._waiting.append(sent)

    def match(self, tick: int, state: Package, arrival: float) -> None:
        """Take a state: its tick, and when it arrived, s."""
        while self._waiting and self._waiting[0].due <= tick:
            sent = self._waiting.popleft()
            if sent.due < tick:
                self.missed += 1
            elif self._record is not None:
                modes = (float(state[name]) for name in ("robot_mode", "safety_mode", "runtime_state"))
                times = (float(sent.sequence), sent.position, sent.sent, arrival, state["timestamp"], sent.scaling)
                self._record((*times, *modes), (*(np.array(state[name]) for name in _VECTORS), sent.command))
