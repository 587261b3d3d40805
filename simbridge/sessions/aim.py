"""What each kind of input asks for in a period: a target pose for the solver, or joint positions.

Between two inputs a pose or joint positions are held or moved on; those of a chunk have stamps ahead; all are filtered.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np
import pinocchio as pin

from simbridge.robot.pose import Array
from simbridge.sessions.inputs import Input, TwistFrame
from simbridge.sessions.options import Filter, LiveHold, LiveOptions

# A target that the solution no longer approaches, by 1 % within this time, s, is as near as it gets. Where the rest is
# more than these, m and rad, it is out of reach.
_PATIENCE, _PROGRESS, _REACHED = 0.5, 0.01, (1e-3, 1e-2)
# A target that stays for this long, s, and is then approached neither by this share nor by this much, m, within that
# time, is given up: solvers may creep for minutes, or wander about it.
_SETTLING, _SHARE, _ENOUGH = 3.0, 0.5, 1e-2
# A target that has moved by no more than this, m or rad, is the same.
_SAME = 1e-6
# An angle, rad, counts as much as this distance, m.
_LEVER = 0.2
# How far a twist's target may run ahead of the setpoints, m, beyond what the solver trails: then it waits.
_LEASH = 0.02
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
        if (
            self._hold == "zero-order"
            or self._velocity is None
            or not 0.0 < age <= min(self._input_period, timeout)
        ):
            return self._value
        return self._space.moved(self._value, age * self._velocity)


class Chunk:
    """A chunk with stamps ahead.

    Args:
        begin: Where it is entered from (m,).
        rows: (K, 1 + m): time after its receipt, s, and value.
        received: s.
    """

    def __init__(
        self, begin: Array, rows: Array, received: float, space: PoseSpace | JointSpace
    ) -> None:
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
        return self._space.moved(
            self._values[k], share * self._space.difference(self._values[k], self._values[k + 1])
        )


def filter_delay(kind: Filter, cutoff: float) -> float:
    """How much later a slow motion comes out of a filter of this cutoff, Hz, in s; of one-euro at rest."""
    return {"none": 0.0, "one-euro": 1.0, "butterworth": math.sqrt(2.0)}[kind] / (
        2.0 * math.pi * cutoff
    )


class InputFilter:
    """Filters a value that changes in steps, one control period at a time; for noisy or slow inputs.

    one-euro: Casiez, Roussel and Vogel, "1 euro filter", CHI 2012: a low-pass whose cutoff rises with the speed.
    butterworth: a low-pass of second order, integrated exactly for a value that is held for a period.

    The cutoff is in Hz, the control period in s.
    """

    def __init__(
        self, kind: Filter, cutoff: float, period: float, space: PoseSpace | JointSpace
    ) -> None:
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
        fade, s, c = (
            math.exp(-a * self._period),
            math.sin(a * self._period),
            math.cos(a * self._period),
        )
        error = self._space.difference(value, before)
        after = fade * ((c + s) * error + s / a * self._velocity)
        self._velocity = fade * (-2.0 * a * s * error + (c - s) * self._velocity)
        return self._space.moved(value, after)

    def _one_euro(self, before: Array, value: Array) -> Array:
        error = self._space.difference(before, value)
        distance, angle = self._space.size(self._velocity)
        shares = [
            self._share(self._cutoff + _RISE[0] * distance),
            self._share(self._cutoff + _RISE[1] * angle),
        ]
        parts = (
            np.repeat(shares, 3)
            if isinstance(self._space, PoseSpace)
            else np.full(len(error), shares[1])
        )
        # The speed is that of the filtered value: inputs leap, and between them they rest.
        self._velocity = self._velocity + self._share(_SPEED_CUTOFF) * (
            parts * error / self._period - self._velocity
        )
        return self._space.moved(before, parts * error)

    def _share(self, cutoff: float) -> float:
        return 1.0 - math.exp(-2.0 * math.pi * cutoff * self._period)


class Aim:
    """What one kind of input asks for.

    Attributes:
        in_joints: Whether it asks for joint positions.
        is_twist: Whether it integrates a twist.
        changed: Whether the last `target` is another than the one before.
        given_up: The solution (n,), rad, nearest to a target that the solver need not try any more; None otherwise.
    """

    in_joints = is_twist = changed = False
    given_up: Array | None = None

    def begin(self, q: Array, pose: Array) -> None:
        """Go on from the setpoint, joint positions (n,), rad, whose pose is (7,)."""

    def take(self, now: float, given: Input) -> None:
        """Take an input that was received now, s."""
        raise NotImplementedError

    def jump(self, given: Input) -> tuple[float, float]:
        """How far an input is from the last one, m and rad."""
        return 0.0, 0.0

    def joints(self, now: float, rate: float, setpoint: Array, timeout: float) -> Array | None:
        """The joint positions (n,), rad, that are asked for in this period; None if a pose is."""
        return None

    def target(self, now: float, rate: float, timeout: float) -> Array:
        """The pose (7,) that is asked for in this period."""
        raise NotImplementedError

    def attained(self, pose: Array, limited: bool, blocked: bool) -> bool:
        """Take where the setpoint of this period is (7,).

        Args:
            pose: Of the setpoint.
            limited: Whether it is not where the solver wanted it.
            blocked: Whether it was slowed down towards an obstacle or a singularity.

        Returns:
            Whether the aim begins anew there.
        """
        return False

    def settled(self, now: float, solution: Array, left: tuple[float, float]) -> Array:
        """The solution (n,), rad, which is that far from its target, m and rad; once it gets no nearer, the nearest."""
        return solution

    def out_of_reach(self) -> float | None:
        """How far the nearest solution is from a target that is out of reach, m; None if it is not known to be."""
        return None


class _Followed(Aim):
    """Poses or joint positions, one at a time or a chunk."""

    def __init__(
        self, options: LiveOptions, period: float, engaged_at: Array, space: PoseSpace | JointSpace
    ) -> None:
        self._space, self._engaged_at = space, pin.XYZQUATToSE3(engaged_at)
        self.in_joints = space is JOINTS
        self._held = HeldInput(options.hold, space)
        self._filter = InputFilter(options.filter, options.filter_cutoff, period, space)
        self._chunk: Chunk | None = None
        self._watch(None)

    def _watch(self, target: Array | None) -> None:
        """Begin to watch how near the solver gets to a target."""
        self._tried = target
        # The nearest solution so far: its distance (an angle counts by its lever), its distance in m, and its joints.
        self._best: tuple[float, float, Array] | None = None
        self._best_at = self._since = self._mark_at = 0.0
        self._mark = np.inf
        self._stuck, self.given_up = False, None
        self._left = 0.0

    def begin(self, q: Array, pose: Array) -> None:
        self._last = self._newest = q if self.in_joints else pose
        self._filter.next(self._last)

    def _value(self, given: Input) -> Array:
        if given.is_chunk:
            return given.values[0, 1:]
        if not given.relative:
            return given.values
        absolute: Array = pin.SE3ToXYZQUAT(self._engaged_at * pin.XYZQUATToSE3(given.values))
        return absolute

    def jump(self, given: Input) -> tuple[float, float]:
        begin = self._last if self._chunk is None else self._newest
        return self._space.size(self._space.difference(begin, self._value(given)))

    def take(self, now: float, given: Input) -> None:
        if given.is_chunk:
            self._chunk = Chunk(self._newest, given.values, now, self._space)
            return
        self._last = self._value(given)
        self._held.take(now, self._last)

    def _asked(self, now: float, timeout: float) -> Array:
        asked = self._held.at(now, timeout) if self._chunk is None else self._chunk.at(now)
        self._newest = self._filter.next(asked)
        tried = self._tried
        self.changed = (
            tried is None
            or max(self._space.size(self._space.difference(tried, self._newest))) > _SAME
        )
        if self.changed:
            self._watch(self._newest)
        return self._newest

    def joints(self, now: float, rate: float, setpoint: Array, timeout: float) -> Array | None:
        return self._asked(now, timeout) if self.in_joints else None

    def target(self, now: float, rate: float, timeout: float) -> Array:
        return self._asked(now, timeout)

    def settled(self, now: float, solution: Array, left: tuple[float, float]) -> Array:
        size = left[0] + _LEVER * left[1]
        if self._best is None or size < (1.0 - _PROGRESS) * self._best[0]:
            if self._best is None:
                self._since = self._mark_at = now
            self._best, self._best_at = (size, left[0], solution), now
            self._left = max(left[0] / _REACHED[0], left[1] / _REACHED[1])
        nearest = self._best[2]
        if now - self._mark_at > _PATIENCE:
            slow = self._mark - self._best[0] < min(_SHARE * self._mark, _ENOUGH)
            self.given_up = nearest if slow and now - self._since > _SETTLING else None
            self._mark, self._mark_at = self._best[0], now
        self._stuck = self.given_up is not None or now - self._best_at > _PATIENCE
        return nearest if self._stuck else solution

    def out_of_reach(self) -> float | None:
        return (
            self._best[1] if self._stuck and self._best is not None and self._left > 1.0 else None
        )


class _Jog(Aim):
    """Joint velocities."""

    in_joints = True

    def __init__(self, period: float) -> None:
        self._period = period

    def take(self, now: float, given: Input) -> None:
        self._velocity = given.values

    def joints(self, now: float, rate: float, setpoint: Array, timeout: float) -> Array | None:
        return setpoint + rate * self._period * self._velocity


class _Twist(Aim):
    """A twist of the TCP, integrated to a target that waits where the arm cannot follow."""

    is_twist = True

    def __init__(self, period: float) -> None:
        self._period = period
        self._twist = np.zeros(6)
        self._frame: TwistFrame = "base_link"

    def begin(self, q: Array, pose: Array) -> None:
        self._target = pose
        self._ahead, self._waits = np.zeros(6), False

    def take(self, now: float, given: Input) -> None:
        self._twist, self._frame = given.values, given.frame

    def target(self, now: float, rate: float, timeout: float) -> Array:
        share = 1.0
        if self._waits:
            share = max(
                0.0, 1.0 - sum(np.multiply(POSES.size(self._ahead), (1.0, _LEVER))) / _LEASH
            )
        self._target = POSES.moved(self._target, rate * share * self._period * self._in_base_link())
        return self._target

    def _in_base_link(self) -> Array:
        linear, angular = self._twist[:3], self._twist[3:]
        if self._frame == "base":
            turned = np.array([-1.0, -1.0, 1.0])
            return np.concatenate([turned * linear, turned * angular])
        if self._frame == "tool":
            rotation = pin.Quaternion(self._target[3:]).matrix()
            return np.concatenate([rotation @ linear, rotation @ angular])
        return self._twist

    def attained(self, pose: Array, limited: bool, blocked: bool) -> bool:
        self._ahead, self._waits = POSES.difference(pose, self._target), limited
        # Turned back while the target waits ahead: the arm must not first have to catch up with it.
        twist = self._in_base_link()
        along = float(self._ahead @ twist)
        if limited and along < 0.0:
            self.begin(np.empty(0), pose)
            return True
        if blocked and along > 0.0:
            # What was asked for before, and was prevented, is not asked for any more.
            self._ahead = along / float(twist @ twist) * twist
            self._target = POSES.moved(pose, self._ahead)
        return False


def make_aim(given: Input, options: LiveOptions, period: float, engaged_at: Array) -> Aim:
    """What the kind of an input asks for, each period, s; engaged_at: the pose (7,) at the engagement."""
    if given.kind == "twist":
        return _Twist(period)
    if given.kind == "jog":
        return _Jog(period)
    return _Followed(
        options, period, engaged_at, POSES if given.kind in ("pose", "follow") else JOINTS
    )
