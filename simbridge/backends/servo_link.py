"""The connection to a controller, as the servo loop sees it."""

from __future__ import annotations

from typing import Protocol

from simbridge.robot.pose import Array
from simbridge.ur.rtde import Package


class ServoLink(Protocol):
    """The connection to a controller whose control script runs.

    The loop does not know which one it has: ur_rtde's (ur_rtde_link.py), simbridge's own
    (rtde_link.py), or a simulated controller in tests.
    """

    def states(self, timeout: float) -> list[Package]:
        """Return the states since the last call, oldest first.

        Args:
            timeout: How long to wait for one, s.
        """

    def keep_alive(self) -> None:
        """Feed the control script's watchdog without a setpoint."""

    def servo(self, q: Array) -> bool:
        """Send a setpoint (n,), rad; return False when the controller no longer accepts any."""
