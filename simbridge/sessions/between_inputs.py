"""The target between two inputs: held, moved on by velocity, or between rows of a chunk."""

from __future__ import annotations

from collections import deque

import numpy as np

from simbridge.robot.pose import Array
from simbridge.sessions.options import LiveHold
from simbridge.sessions.spaces import JointSpace, PoseSpace

# The input period is the longest of this many intervals, because inputs jitter, ...
INTERVAL_COUNT = 5
# ... but no longer than this many times their mean, because a gap must not count as an interval.
MAX_MEANS = 2.0


class HeldInput:
    """The newest input, and its value until the next (see `LiveOptions.hold`).

    Args:
        hold: Whether its value is kept, or moves on.
        space: The space of the values.
    """

    def __init__(self, hold: LiveHold, space: PoseSpace | JointSpace) -> None:
        self._hold = hold
        self._space = space
        # The newest input (m,); None before the first.
        self._value: Array | None = None
        # When the newest input was received, s.
        self._received = 0.0
        # The velocity between the last two inputs, as a difference per second; None before the
        # second.
        self._velocity: Array | None = None
        # How long the target moves on after an input, s.
        self._input_period = 0.0
        # The latest intervals between inputs, s.
        self._intervals: deque[float] = deque(maxlen=INTERVAL_COUNT)

    def take(self, now: float, value: Array) -> None:
        """Take an input (m,) that is received at a time, s."""
        if self._value is not None and now > self._received:
            interval = now - self._received
            self._intervals.append(interval)
            mean = sum(self._intervals) / len(self._intervals)
            self._input_period = min(max(self._intervals), MAX_MEANS * mean)

            # Two inputs that come in a burst were given an interval apart; one of them was late. So
            # their difference is that of a mean interval at least.
            duration = max(interval, mean)
            self._velocity = self._space.difference(self._value, value) / duration
        self._value = value
        self._received = now

    def at(self, now: float, timeout: float) -> Array:
        """Return the target (m,) at a time after an input.

        Args:
            now: The time, s.
            timeout: How long after an input the target moves on at most, s.
        """
        assert self._value is not None
        age = now - self._received
        moves_on = 0.0 < age <= min(self._input_period, timeout)
        if self._hold == "zero-order" or self._velocity is None or not moves_on:
            return self._value
        return self._space.add(self._value, age * self._velocity)


class Chunk:
    """A chunk with stamps ahead.

    Args:
        begin: The target (m,) from which the chunk is entered.
        rows: Rows (K, 1 + m) of a time after its receipt, s, and a value.
        received: When the chunk was received, s.
        space: The space of the values.
    """

    def __init__(
        self, begin: Array, rows: Array, received: float, space: PoseSpace | JointSpace
    ) -> None:
        self._times = rows[:, 0]
        self._values = rows[:, 1:]

        # A straight line leads to a first row that is due later.
        if rows[0, 0] > 0.0:
            self._times = np.concatenate([[0.0], self._times])
            self._values = np.vstack([begin, self._values])
        self._received = received
        self._space = space

    def at(self, now: float) -> Array:
        """Return the target (m,) at a time, s.

        It is linear between stamps, and the last value after the end.
        """
        # Index of the last row that is due.
        elapsed = now - self._received
        k = int(np.searchsorted(self._times, elapsed, side="right")) - 1
        if k < 0:
            return np.asarray(self._values[0])
        if k >= len(self._times) - 1:
            return np.asarray(self._values[-1])

        progress = (elapsed - self._times[k]) / (self._times[k + 1] - self._times[k])
        step = self._space.difference(self._values[k], self._values[k + 1])
        return self._space.add(self._values[k], progress * step)
