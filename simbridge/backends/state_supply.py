"""Measure during a motion whether a controller's states arrive often enough for it.

Setpoints are sent at most 8 ms ahead of the newest state (servo_loop.py). States that arrive in bursts, as through
Wi-Fi or a tunnel, therefore leave periods in which nothing can be sent. A few extend the motion. Where half of all
periods are like that, the motion is no longer the planned one, and ends.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from simbridge.ur.errors import LateStates

# Over how much time periods are counted, s.
WINDOW_S = 2.0
# The share of periods without a setpoint at which a motion ends.
MAX_UNSENT_FRACTION = 0.5
# States that are read within this fraction of a period have arrived together: the loop does not look all the time.
_TOGETHER = 0.5


class StateSupply:
    """Counts the latest control periods, and in how many of them nothing could be sent for want of states.

    Args:
        host: The controller, for the message.
        period: Control period, s.
    """

    def __init__(self, host: str, period: float) -> None:
        self._host = host
        self._period = period
        # Of each counted period, whether nothing could be sent in it.
        self._unsent: deque[bool] = deque(maxlen=round(WINDOW_S / period))
        self._unsent_count = 0
        # When states arrived within the window, s (host clock).
        self._arrivals: deque[float] = deque(maxlen=round(2.0 * WINDOW_S / period))

    def add_arrival(self, now: float) -> None:
        """States have arrived together, at a time of the host's clock, s."""
        if self._arrivals and now - self._arrivals[-1] < _TOGETHER * self._period:
            return
        self._arrivals.append(now)
        while now - self._arrivals[0] > WINDOW_S:
            self._arrivals.popleft()

    def count(self, *, sent: bool) -> None:
        """Count a period in which a setpoint was sent, or could not be for want of states.

        Raises:
            LateStates: In half of the periods of the last two seconds nothing could be sent.
        """
        if len(self._unsent) == self._unsent.maxlen:
            self._unsent_count -= self._unsent[0]
        self._unsent.append(not sent)
        self._unsent_count += not sent

        share = self._unsent_count / len(self._unsent)
        if len(self._unsent) == self._unsent.maxlen and share >= MAX_UNSENT_FRACTION:
            gaps = np.diff(self._arrivals)
            interval = float(gaps.mean()) if len(gaps) else WINDOW_S
            longest = float(gaps.max(initial=0.0))
            raise LateStates(self._host, share, WINDOW_S, interval, longest, self._period)
