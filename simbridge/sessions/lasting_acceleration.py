"""Tell inputs that ask for too much acceleration from ordinary starts and stops."""

from __future__ import annotations

from simbridge.sessions.causes import LiveCause

# A shorter pause, s, does not end a time of acceleration: the arm may cross the wanted motion.
MAX_PAUSE_S = 0.02


class LastingAcceleration:
    """Names the limit of acceleration once it has held the arm back for longer than a turn takes.

    A start, a stop or a turn within the limit is part of every motion. Where the limit holds the
    arm back for longer, the inputs ask for more than the arm can do.

    Args:
        longest_turn: Time that a joint takes from full speed in one direction to full speed in the
            other, s.
    """

    def __init__(self, longest_turn: float) -> None:
        self._longest_turn = longest_turn
        # When the limit of acceleration began to hold the arm back, and when it last did, s.
        self._began_at = 0.0
        self._held_at = -float("inf")
        # The largest acceleration of a joint in that time, rad/s^2.
        self._largest = 0.0

    def update(self, now: float, acceleration: float) -> list[LiveCause]:
        """Return the cause, if any, of a period in which only this limit holds the arm back.

        Args:
            now: The loop's clock, s.
            acceleration: The largest acceleration of a joint in this period, rad/s^2.
        """
        if now - self._held_at > MAX_PAUSE_S:
            self._began_at = now
            self._largest = 0.0
        self._held_at = now
        self._largest = max(self._largest, acceleration)

        if now - self._began_at <= self._longest_turn:
            return []
        return [LiveCause.of("acceleration", "", self._largest)]
