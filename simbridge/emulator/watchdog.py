"""rtde_set_watchdog: a program's demand that a client updates an RTDE input often enough."""

from __future__ import annotations

from collections.abc import Iterable


class Watchdog:
    """An RTDE input that must be updated; disarmed until a program arms it.

    Attributes:
        action: What follows if it is not updated in time: "pause" or "stop".
    """

    def __init__(self) -> None:
        self._variable = self.action = ""
        self._timeout = 0.0
        self._updates: dict[str, float] = {}

    def set(self, variable: str, frequency: float, action: str, now: float) -> None:
        """Arm it for updates at this frequency, Hz; the action "ignore" disarms it."""
        self.disarm()
        if action.lower() != "ignore" and frequency > 0.0:
            self._variable, self._timeout, self.action = variable, 1.0 / frequency, action.lower()
            self._updates[variable] = now

    def disarm(self) -> None:
        """No program demands anything any more."""
        self._variable = ""

    def updated(self, names: Iterable[str], now: float) -> None:
        """These inputs were updated, at a time of the controller's clock, s."""
        self._updates.update(dict.fromkeys(names, now))

    def expired(self, now: float) -> str:
        """The variable's name if its last update is too long ago; else empty."""
        late = bool(self._variable) and now - self._updates[self._variable] > self._timeout
        return self._variable if late else ""
