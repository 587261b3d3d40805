"""Forces on the tool: pushes, and a table that it can touch; what the force sensor measures of them.

The table is a plane at a height, a spring of 20 N/mm, without friction. The arm itself is rigid: under position control
a force does not move it. Not modelled: the weight of a payload, contact of anything but the TCP, noise.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from simbridge.emulator.state import LARGEST, ControllerState
from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array

STIFFNESS = 20e3  # N/m
CONTACT = 5.0  # N, from which tool_contact reports a contact
_TOUCH = 0.1  # N, at which it counts as begun
_HISTORY = 2000  # ticks


class Contact:
    """The force and torque (6,) at the TCP on the tool, N and N m, with the axes of the pendant's base.

    Args:
        state: Its `tcp_force` is set: what the sensor measures, since it was zeroed.

    Attributes:
        wrench: What acts on the tool (6,).
        from_client: Whether the sensor reads RTDE's `external_force_torque` instead (`ft_rtde_input_enable`).
    """

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self.wrench = np.zeros(6)
        self.from_client = False
        self._push, self._left = np.zeros(6), 0.0
        self._zero = np.zeros(6)
        self._history: deque[Array] = deque(maxlen=_HISTORY)

    def push(self, wrench: Sequence[float], seconds: float) -> None:
        """Push the tool for some seconds; replaces the push before.

        Raises:
            InvalidParameter: It is not six numbers within 1e6, or the time is negative.
        """
        found = np.array(wrench, dtype=float)
        if found.shape != (6,) or not (np.abs(found) <= LARGEST).all():
            raise InvalidParameter("wrench", list(wrench), f"six numbers from {-LARGEST:g} to {LARGEST:g}, N and N m")
        if not 0.0 <= seconds < np.inf:
            raise InvalidParameter("seconds", seconds, "a number, not negative")
        self._push, self._left = found, float(seconds)

    def zero(self) -> None:
        """zero_ftsensor: what is measured now counts as none."""
        self._zero = self._measured().copy()
        self._state.tcp_force = np.zeros(6)

    def _measured(self) -> Array:
        return self._state.external_wrench if self.from_client else self.wrench

    def update(self, table: float | None, period: float) -> None:
        """One tick: a table at this height in the pendant's base, m, or none; the control period, s."""
        s, wrench = self._state, np.zeros(6)
        if self._left > 0.0:
            wrench, self._left = self._push.copy(), self._left - period
        if table is not None and s.actual_tcp_pose[2] < table:
            wrench[2] += STIFFNESS * (table - s.actual_tcp_pose[2])
        self.wrench = wrench
        s.tcp_force = self._measured() - self._zero
        self._history.append(s.tcp_force[:3])

    def ticks_since(self, direction: Array) -> int:
        """tool_contact: ticks since a contact began that stops a motion in this direction (3,), any if it is zero.

        Returns:
            0 without a contact.
        """
        size = float(np.linalg.norm(direction))
        against = -direction / size if size > 0.0 else None

        def felt(force: Array) -> float:
            return float(np.linalg.norm(force) if against is None else force @ against)

        if not self._history or felt(self._history[-1]) < CONTACT:
            return 0
        ticks = 0
        while ticks < len(self._history) and felt(self._history[-1 - ticks]) > _TOUCH:
            ticks += 1
        return ticks
