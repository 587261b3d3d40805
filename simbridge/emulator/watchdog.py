"""rtde_set_watchdog: what a program demands of an RTDE client."""

from __future__ import annotations

from collections.abc import Iterable


class Watchdog:
    """An RTDE input that a client must update often enough; disarmed until a program arms it.

    Attributes:
        action: Consequence if it is not updated in time: "pause" or "stop".
    """

    def __init__(self) -> None:
        self.action = ""
        # Name of the input; "" while it is disarmed.
        self._variable = ""
        # Longest time between two updates, s.
        self._timeout = 0.0
        # When inputs were updated last, s of the controller's clock, by name.
        self._updates: dict[str, float] = {}

    def set(self, variable: str, frequency: float, *, action: str, now: float) -> None:
        """Arm the watchdog.

        Args:
            variable: Name of the input.
            frequency: Least rate of its updates, Hz; 0 disarms it.
            action: "pause" or "stop"; "ignore" disarms it.
            now: Present time on the controller's clock, s.
        """
        self.disarm()
        if action.lower() == "ignore" or not frequency > 0.0:
            return

        self._variable = variable
        self._timeout = 1.0 / frequency
        self.action = action.lower()
        # Only this one counts from now on: a program may name others without end.
        self._updates = {variable: now}

    def disarm(self) -> None:
        """Disarm the watchdog."""
        self._variable = ""

    def note_updates(self, names: Iterable[str], now: float) -> None:
        """Note that inputs were updated, at a time of the controller's clock, s."""
        self._updates.update(dict.fromkeys(names, now))

    def expired(self, now: float) -> str:
        """Return the input's name if its last update is too long ago; else an empty text.

        Args:
            now: Present time on the controller's clock, s.
        """
        if not self._variable:
            return ""
        is_late = now - self._updates[self._variable] > self._timeout
        return self._variable if is_late else ""
