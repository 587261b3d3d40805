"""The forces that act on the tool: pushes, and contact with a table.

The table is a plane at a height, a spring of 20 N/mm, without friction. The arm itself is rigid:
under position control a force does not move it. Not modelled: the weight of a payload, contact of
anything but the TCP, noise.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from simbridge.emulator.state import MAX_QUANTITY, ControllerState
from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array

# Stiffness of the table, N/m.
STIFFNESS = 20e3
# Force from which tool_contact reports a contact, N.
CONTACT_FORCE = 5.0
# Force at which a contact counts as begun, N.
TOUCH_FORCE = 0.1
# Number of forces that are kept for tool_contact.
HISTORY_TICKS = 2000


class Contact:
    """Force and torque (6,) at the TCP on the tool, N and N m, with the axes of the pendant's base.

    Args:
        state: The controller's state. Its `tcp_force` is set to the measured force and torque, less
            those at which the sensor was zeroed.

    Attributes:
        wrench: Force and torque that act on the tool (6,), N and N m.
        from_client: Whether the sensor reads RTDE's `external_force_torque` instead
            (`ft_rtde_input_enable`).
    """

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self.wrench = np.zeros(6)
        self.from_client = False

        # Force and torque of the push under way (6,), and its remaining time, s.
        self._push = np.zeros(6)
        self._push_remaining = 0.0
        # Force and torque at which the sensor was zeroed (6,).
        self._zero = np.zeros(6)
        # Measured forces (3,), N, the latest one last.
        self._history: deque[Array] = deque(maxlen=HISTORY_TICKS)

    def push(self, wrench: Sequence[float], seconds: float) -> None:
        """Push the tool for some seconds, replacing any previous push.

        Args:
            wrench: Force and torque at the TCP (6,), N and N m.
            seconds: Duration, s.

        Raises:
            InvalidParameter: The wrench is not six numbers within 1e6, or the time is negative.
        """
        values = np.array(wrench, dtype=float)
        if values.shape != (6,) or not (np.abs(values) <= MAX_QUANTITY).all():
            needed = f"six numbers from {-MAX_QUANTITY:g} to {MAX_QUANTITY:g}, N and N m"
            raise InvalidParameter("wrench", list(wrench), needed)
        if not 0.0 <= seconds < np.inf:
            raise InvalidParameter("seconds", seconds, "a non-negative number")

        self._push = values
        self._push_remaining = float(seconds)

    def zero(self) -> None:
        """Take the present measurement as zero, as zero_ftsensor does."""
        self._zero = self._measured().copy()
        self._state.tcp_force = np.zeros(6)

    def _measured(self) -> Array:
        """Return the measured force and torque (6,), as if the sensor were never zeroed."""
        return self._state.external_wrench if self.from_client else self.wrench

    def update(self, table: float | None, period: float) -> None:
        """Find the force and torque that act on the tool in this tick.

        Args:
            table: Height of a table in the pendant's base, m; None without one.
            period: Control period, s.
        """
        state = self._state
        wrench = np.zeros(6)
        if self._push_remaining > 0.0:
            wrench = self._push.copy()
            self._push_remaining -= period
        if table is not None and state.actual_tcp_pose[2] < table:
            wrench[2] += STIFFNESS * (table - state.actual_tcp_pose[2])

        self.wrench = wrench
        state.tcp_force = self._measured() - self._zero
        self._history.append(state.tcp_force[:3])

    def ticks_since(self, direction: Array) -> int:
        """Return the number of ticks since the contact of tool_contact began; 0 without one.

        Args:
            direction: Direction of the motion that the contact stops (3,); any if it is zero.
        """
        size = float(np.linalg.norm(direction))
        against = -direction / size if size > 0.0 else None

        def strength(force: Array) -> float:
            return float(np.linalg.norm(force) if against is None else force @ against)

        if not self._history or strength(self._history[-1]) < CONTACT_FORCE:
            return 0

        ticks = 0
        while ticks < len(self._history) and strength(self._history[-1 - ticks]) > TOUCH_FORCE:
            ticks += 1
        return ticks
