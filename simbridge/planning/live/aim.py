"""What each kind of input asks for in a period: a target pose for the solver, or joint positions."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from simbridge.planning.live.between_inputs import JOINTS, POSES, Chunk, HeldInput, InputFilter, JointSpace, PoseSpace
from simbridge.planning.live.messages import Input, TwistFrame
from simbridge.planning.live.options import LiveOptions
from simbridge.robot.pose import Array

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

    def __init__(self, options: LiveOptions, period: float, engaged_at: Array, space: PoseSpace | JointSpace) -> None:
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
        self.changed = tried is None or max(self._space.size(self._space.difference(tried, self._newest))) > _SAME
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
        return self._best[1] if self._stuck and self._best is not None and self._left > 1.0 else None


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
            share = max(0.0, 1.0 - sum(np.multiply(POSES.size(self._ahead), (1.0, _LEVER))) / _LEASH)
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
    return _Followed(options, period, engaged_at, POSES if given.kind in ("pose", "follow") else JOINTS)
