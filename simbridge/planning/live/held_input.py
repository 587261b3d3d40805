"""What a pose or joint positions mean between two inputs: held, or moved on; or a chunk with stamps ahead."""

from __future__ import annotations

from collections import deque

import numpy as np

from simbridge.planning.live.options import LiveHold
from simbridge.planning.live.spaces import Space
from simbridge.robot.pose import Array

# The input period is the longest of so many intervals, because inputs jitter, but at most so many times their mean,
# because a gap is none.
_INTERVALS, _MOST = 5, 2.0


class HeldInput:
    """The newest value, and what it is between two inputs.

    Args:
        hold: See `LiveOptions.hold`.
        space: Of the values.
    """

    def __init__(self, hold: LiveHold, space: Space) -> None:
        self._hold, self._space = hold, space
        self.reset()

    def reset(self) -> None:
        """Forget everything: the next input is the first."""
        self._value: Array | None = None
        self._at = 0.0
        self._velocity: Array | None = None
        self._input_period = 0.0
        self._intervals: deque[float] = deque(maxlen=_INTERVALS)

    def take(self, now: float, value: Array) -> None:
        """An input (m,) was received, at s."""
        if self._value is not None and now > self._at:
            self._intervals.append(now - self._at)
            mean = sum(self._intervals) / len(self._intervals)
            self._input_period = min(max(self._intervals), _MOST * mean)
            # Of two inputs in a burst one was late: their distance is that of a whole interval.
            self._velocity = self._space.difference(self._value, value) / max(now - self._at, mean)
        self._value, self._at = value, now

    def at(self, now: float, timeout: float) -> Array:
        """The target (m,) at an instant, s, after an input; it moves on for no longer than `timeout`, s."""
        assert self._value is not None
        age = now - self._at
        if self._hold == "zero-order" or self._velocity is None or not 0.0 < age <= min(self._input_period, timeout):
            return self._value
        return self._space.moved(self._value, age * self._velocity)


class Chunk:
    """A chunk with stamps ahead.

    Args:
        begin: Where it is entered from (m,).
        rows: (K, 1 + m): time after its receipt, s, and value.
        received: s.
        space: Of the values.
    """

    def __init__(self, begin: Array, rows: Array, received: float, space: Space) -> None:
        lead_in = rows[0, 0] > 0.0
        self._times = rows[:, 0] if not lead_in else np.concatenate([[0.0], rows[:, 0]])
        self._values = rows[:, 1:] if not lead_in else np.vstack([begin, rows[:, 1:]])
        self._received, self._space = received, space

    @property
    def end(self) -> float:
        """When its last value is due, s."""
        return self._received + float(self._times[-1])

    @property
    def last(self) -> Array:
        """Its last value (m,)."""
        return np.asarray(self._values[-1])

    def at(self, now: float) -> Array:
        """The target (m,) at an instant, s: linear between stamps, and the last value after its end."""
        elapsed = now - self._received
        k = int(np.searchsorted(self._times, elapsed, side="right")) - 1
        if k < 0:
            return np.asarray(self._values[0])
        if k >= len(self._times) - 1:
            return self.last
        share = (elapsed - self._times[k]) / (self._times[k + 1] - self._times[k])
        return self._space.moved(self._values[k], share * self._space.difference(self._values[k], self._values[k + 1]))
