"""Measure during a motion whether a controller's states arrive often enough for it.

Setpoints are sent at most 8 ms ahead of the newest state (servo_loop.py). States that arrive in
bursts, as through Wi-Fi or a tunnel, therefore leave periods in which nothing can be sent. A few
extend the motion. Where half of all periods are like that, the motion is no longer the planned one,
and ends.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from simbridge.ur.errors import LateStates

# The time over which periods are counted.
WINDOW_S = 2.0
# The fraction of periods without a setpoint at which a motion ends.
MAX_UNSENT_FRACTION = 0.5
# States that are read within this fraction of a period have arrived together: the loop does not
# look all the time.
TOGETHER_FRACTION = 0.5


class StateSupply:
    """Counts the latest control periods, and how many of them lacked a state.

    A period lacks a state if nothing could be sent in it because the newest state was too old.

    Args:
        host: The controller, for the message.
        period: Control period, s.
    """

    def __init__(self, host: str, period: float) -> None:
        self._host = host
        self._period = period
        # Whether each of the latest periods lacked a state.
        self._lacking: deque[bool] = deque(maxlen=round(WINDOW_S / period))
        # How many of them did.
        self._lacking_count = 0
        # When states arrived within the window, s (host clock).
        self._arrivals: deque[float] = deque(maxlen=round(2.0 * WINDOW_S / period))

    def add_arrival(self, now: float) -> None:
        """Note that states have arrived.

        Args:
            now: When, s (host clock).
        """
        if self._arrivals and now - self._arrivals[-1] < TOGETHER_FRACTION * self._period:
            return

        self._arrivals.append(now)
        while now - self._arrivals[0] > WINDOW_S:
            self._arrivals.popleft()

    def count(self, *, lacks_state: bool) -> None:
        """Count a period of the motion.

        Args:
            lacks_state: Whether nothing could be sent in it because the newest state was too old. A
                period in which nothing was sent for another reason does not lack a state.

        Raises:
            LateStates: In half of the periods of the last two seconds nothing could be sent.
        """
        # The oldest period makes room for this one.
        if len(self._lacking) == self._lacking.maxlen:
            self._lacking_count -= self._lacking[0]
        self._lacking.append(lacks_state)
        self._lacking_count += lacks_state

        unsent_fraction = self._lacking_count / len(self._lacking)
        is_full = len(self._lacking) == self._lacking.maxlen
        if is_full and unsent_fraction >= MAX_UNSENT_FRACTION:
            raise self._late_states_error(unsent_fraction)

    def _late_states_error(self, unsent_fraction: float) -> LateStates:
        """Return the error for states that come too late, with the intervals at which they came.

        Args:
            unsent_fraction: The fraction of periods in which nothing could be sent.
        """
        gaps = np.diff(self._arrivals)
        mean_gap = float(gaps.mean()) if len(gaps) else WINDOW_S
        longest_gap = float(gaps.max(initial=0.0))
        return LateStates(
            self._host,
            fraction=unsent_fraction,
            window=WINDOW_S,
            interval=mean_gap,
            longest_interval=longest_gap,
            period=self._period,
        )
