"""What the servo loop runs against: a connection to a controller, and the host's clock."""

from __future__ import annotations

from typing import Protocol

from simbridge.robot.pose import Array
from simbridge.ur.rtde import Package


class Link(Protocol):
    """The connection to a controller whose control script runs."""

    def states(self, timeout: float) -> list[Package]:
        """The states since the last call, oldest first; waits at most `timeout` s for one."""
        ...

    def keep_alive(self) -> None:
        """Feed the control script's watchdog without a setpoint."""
        ...

    def servo(self, q: Array) -> bool:
        """Send a setpoint (n,), rad; False when the controller no longer accepts any."""
        ...


class Clock(Protocol):
    """The host's clock."""

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...
