"""What a pose or joint positions are between two inputs: held, or moved on; a chunk with stamps ahead; and filtered."""

from __future__ import annotations

import math
from collections import deque

import numpy as np
import pinocchio as pin

from simbridge.planning.live.options import Filter, LiveHold
from simbridge.robot.pose import Array

# The input period is the longest of so many intervals, because inputs jitter, but at most so many times their mean,
# because a gap is none.
_INTERVALS, _MOST = 5, 2.0
# one-euro: rise of the cutoff with the speed, Hz per m/s and Hz per rad/s, and cutoff of that speed's own filter, Hz.
_RISE = (20.0, 5.0)
_SPEED_CUTOFF = 5.0


class PoseSpace:
    """Poses (7,); a difference is a translation, m, and a rotation vector, rad (6,), both in base_link's axes."""

    def difference(self, begin: Array, end: Array) -> Array:
        """What leads from one value to another."""
        turn = pin.log3(_rotation(end) @ _rotation(begin).T)
        return np.concatenate([end[:3] - begin[:3], turn])

    def moved(self, value: Array, by: Array) -> Array:
        """The value to which a difference leads from this one."""
        turned = pin.Quaternion(pin.exp3(by[3:]) @ _rotation(value)).coeffs()
        return np.concatenate([value[:3] + by[:3], turned])

    def size(self, difference: Array) -> tuple[float, float]:
        """A difference as a distance, m, and an angle, rad."""
        return float(np.linalg.norm(difference[:3])), float(np.linalg.norm(difference[3:]))


class JointSpace:
    """Joint positions (n,), rad; methods as of `PoseSpace`, and the angle is that of the joint that differs most."""

    def difference(self, begin: Array, end: Array) -> Array:
        return np.asarray(end - begin)

    def moved(self, value: Array, by: Array) -> Array:
        return np.asarray(value + by)

    def size(self, difference: Array) -> tuple[float, float]:
        return 0.0, float(np.abs(difference).max())


POSES, JOINTS = PoseSpace(), JointSpace()


def _rotation(pose: Array) -> Array:
    matrix: Array = pin.Quaternion(pose[3:]).matrix()
    return matrix


class HeldInput:
    """The newest value, and what it is between two inputs (see `LiveOptions.hold`)."""

    def __init__(self, hold: LiveHold, space: PoseSpace | JointSpace) -> None:
        self._hold, self._space = hold, space
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
    """

    def __init__(self, begin: Array, rows: Array, received: float, space: PoseSpace | JointSpace) -> None:
        lead_in = rows[0, 0] > 0.0
        self._times = rows[:, 0] if not lead_in else np.concatenate([[0.0], rows[:, 0]])
        self._values = rows[:, 1:] if not lead_in else np.vstack([begin, rows[:, 1:]])
        self._received, self._space = received, space

    def at(self, now: float) -> Array:
        """The target (m,) at an instant, s: linear between stamps, and the last value after its end."""
        elapsed = now - self._received
        k = int(np.searchsorted(self._times, elapsed, side="right")) - 1
        if not 0 <= k < len(self._times) - 1:
            return np.asarray(self._values[0 if k < 0 else -1])
        share = (elapsed - self._times[k]) / (self._times[k + 1] - self._times[k])
        return self._space.moved(self._values[k], share * self._space.difference(self._values[k], self._values[k + 1]))


def filter_delay(kind: Filter, cutoff: float) -> float:
    """How much later a slow motion comes out of a filter of this cutoff, Hz, in s; of one-euro at rest."""
    return {"none": 0.0, "one-euro": 1.0, "butterworth": math.sqrt(2.0)}[kind] / (2.0 * math.pi * cutoff)


class InputFilter:
    """Filters a value that changes in steps, one control period at a time; for noisy or slow inputs.

    one-euro: Casiez, Roussel and Vogel, "1 euro filter", CHI 2012: a low-pass whose cutoff rises with the speed.
    butterworth: a low-pass of second order, integrated exactly for a value that is held for a period.

    The cutoff is in Hz, the control period in s.
    """

    def __init__(self, kind: Filter, cutoff: float, period: float, space: PoseSpace | JointSpace) -> None:
        self._kind, self._cutoff, self._period, self._space = kind, cutoff, period, space
        self._value: Array | None = None
        self._velocity = np.empty(0)

    def next(self, value: Array) -> Array:
        """The filtered value (m,) of this period."""
        if self._kind == "none":
            return value
        if self._value is None:
            self._value = value
            self._velocity = np.zeros_like(self._space.difference(value, value))
        step = self._one_euro if self._kind == "one-euro" else self._butterworth
        self._value = step(self._value, value)
        return self._value

    def _butterworth(self, before: Array, value: Array) -> Array:
        a = math.sqrt(2.0) * math.pi * self._cutoff
        fade, s, c = math.exp(-a * self._period), math.sin(a * self._period), math.cos(a * self._period)
        error = self._space.difference(value, before)
        after = fade * ((c + s) * error + s / a * self._velocity)
        self._velocity = fade * (-2.0 * a * s * error + (c - s) * self._velocity)
        return self._space.moved(value, after)

    def _one_euro(self, before: Array, value: Array) -> Array:
        error = self._space.difference(before, value)
        distance, angle = self._space.size(self._velocity)
        shares = [self._share(self._cutoff + _RISE[0] * distance), self._share(self._cutoff + _RISE[1] * angle)]
        parts = np.repeat(shares, 3) if isinstance(self._space, PoseSpace) else np.full(len(error), shares[1])
        # The speed is that of the filtered value: inputs leap, and between them they rest.
        self._velocity = self._velocity + self._share(_SPEED_CUTOFF) * (parts * error / self._period - self._velocity)
        return self._space.moved(before, parts * error)

    def _share(self, cutoff: float) -> float:
        return 1.0 - math.exp(-2.0 * math.pi * cutoff * self._period)
