"""The aim of a period, by each kind of input: a target pose for the solver, or joint positions."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from simbridge.robot.pose import Array
from simbridge.sessions.between_inputs import Chunk, HeldInput
from simbridge.sessions.filters import InputFilter
from simbridge.sessions.inputs import Input, TwistFrame
from simbridge.sessions.options import LiveOptions
from simbridge.sessions.settling import LEVER, SolutionWatch
from simbridge.sessions.spaces import JOINTS, POSES, JointSpace, PoseSpace

# A target that has moved by no more than this, m or rad, is the same.
SAME_TARGET = 1e-6
# How far a twist's target may run ahead of the setpoints, m, beyond what the solver trails: then it
# waits.
LEASH = 0.02


class Aim:
    """The aim of one kind of input.

    Attributes:
        in_joints: Whether it asks for joint positions.
        is_twist: Whether it integrates a twist.
        has_changed: Whether the last `target` is another than the one before.
    """

    in_joints = False
    is_twist = False
    has_changed = False

    @property
    def final_solution(self) -> Array | None:
        """The solution (n,), rad, nearest to a target that the solver need not try any more."""
        return None

    def begin(self, q: Array, pose: Array) -> None:
        """Go on from the setpoint.

        Args:
            q: Its joint positions (n,), rad.
            pose: Its pose (7,).
        """

    def take(self, now: float, item: Input) -> None:
        """Take an input that is received now, s."""
        raise NotImplementedError

    def jump(self, item: Input) -> tuple[float, float]:
        """Return how far an input is from the last one, m and rad."""
        return 0.0, 0.0

    def joints(self, now: float, rate: float, setpoint: Array, timeout: float) -> Array | None:
        """Return the joint positions (n,), rad, to aim at in this period; None if it is a pose.

        Args:
            now: s.
            rate: Fraction of full speed.
            setpoint: The last one (n,), rad.
            timeout: Of the input, s.
        """
        return None

    def target(self, now: float, rate: float, timeout: float) -> Array:
        """Return the pose (7,) to aim at in this period; arguments as of `joints`."""
        raise NotImplementedError

    def follow(self, pose: Array, *, limited: bool, blocked: bool) -> bool:
        """Take where the setpoint of this period is.

        Args:
            pose: Of the setpoint (7,).
            limited: Whether it is not where the solver wanted it.
            blocked: Whether it was slowed down towards an obstacle or a singularity.

        Returns:
            Whether the aim begins anew there.
        """
        return False

    def settle(self, now: float, solution: Array, residual: tuple[float, float]) -> Array:
        """Return the solution or, once it gets no nearer to the target, the nearest.

        Args:
            now: s.
            solution: Joint positions (n,), rad.
            residual: How far it is from its target, m and rad.
        """
        return solution

    def out_of_reach(self) -> float | None:
        """Return how far the nearest solution is from a target that is out of reach, m.

        None where the target is not known to be out of reach.
        """
        return None


class _Followed(Aim):
    """Poses or joint positions, one at a time or a chunk.

    Args:
        options: Hold and filter.
        period: Control period, s.
        engaged_at: The pose (7,) at the engagement, from which relative ones are meant.
        space: Of the values.
    """

    def __init__(
        self, options: LiveOptions, period: float, engaged_at: Array, space: PoseSpace | JointSpace
    ) -> None:
        self.in_joints = space is JOINTS
        self._space = space
        self._engaged_at = pin.XYZQUATToSE3(engaged_at)
        self._held = HeldInput(options.hold, space)
        self._filter = InputFilter(options.filter, options.filter_cutoff, period, space)
        # The chunk that is followed, if any: it stays in force until another kind begins.
        self._chunk: Chunk | None = None
        # The target of which the solutions are watched.
        self._watched: Array | None = None
        self._watch = SolutionWatch()

    @property
    def final_solution(self) -> Array | None:
        return self._watch.final

    def begin(self, q: Array, pose: Array) -> None:
        # The last input, and the last target after the filter.
        self._last = q if self.in_joints else pose
        self._newest = self._last
        self._filter.next(self._last)

    def _value(self, item: Input) -> Array:
        """Return the value of an input, or of a chunk's first row, in the space."""
        if item.is_chunk:
            return item.values[0, 1:]
        if not item.relative:
            return item.values
        absolute: Array = pin.SE3ToXYZQUAT(self._engaged_at * pin.XYZQUATToSE3(item.values))
        return absolute

    def jump(self, item: Input) -> tuple[float, float]:
        begin = self._last if self._chunk is None else self._newest
        return self._space.size(self._space.difference(begin, self._value(item)))

    def take(self, now: float, item: Input) -> None:
        if item.is_chunk:
            self._chunk = Chunk(self._newest, item.values, now, self._space)
            return
        self._last = self._value(item)
        self._held.take(now, self._last)

    def joints(self, now: float, rate: float, setpoint: Array, timeout: float) -> Array | None:
        return self._next(now, timeout) if self.in_joints else None

    def target(self, now: float, rate: float, timeout: float) -> Array:
        return self._next(now, timeout)

    def _next(self, now: float, timeout: float) -> Array:
        """Return the filtered value of this period; watch the solutions anew if it has moved."""
        unfiltered = self._held.at(now, timeout) if self._chunk is None else self._chunk.at(now)
        self._newest = self._filter.next(unfiltered)

        # It has moved if it differs from the value whose solutions are watched, not from the last
        # one: slow motions count, too.
        if self._watched is None:
            self.has_changed = True
        else:
            difference = self._space.difference(self._watched, self._newest)
            self.has_changed = max(self._space.size(difference)) > SAME_TARGET
        if self.has_changed:
            self._watched = self._newest
            self._watch.restart()
        return self._newest

    def settle(self, now: float, solution: Array, residual: tuple[float, float]) -> Array:
        return self._watch.follow(now, solution, residual)

    def out_of_reach(self) -> float | None:
        return self._watch.out_of_reach()


class _Jog(Aim):
    """Joint velocities.

    Args:
        period: Control period, s.
    """

    in_joints = True

    def __init__(self, period: float) -> None:
        self._period = period

    def take(self, now: float, item: Input) -> None:
        self._velocity = item.values

    def joints(self, now: float, rate: float, setpoint: Array, timeout: float) -> Array | None:
        return setpoint + rate * self._period * self._velocity


class _Twist(Aim):
    """A twist of the TCP, integrated to a target that waits where the arm cannot follow.

    Args:
        period: Control period, s.
    """

    is_twist = True

    def __init__(self, period: float) -> None:
        self._period = period
        # The last input (6,), m/s and rad/s, and its axes.
        self._twist = np.zeros(6)
        self._frame: TwistFrame = "base_link"

    def begin(self, q: Array, pose: Array) -> None:
        self._target = pose
        # How far the target is ahead of the setpoint (6,), m and rad; whether it waits for the arm.
        self._ahead = np.zeros(6)
        self._waits = False

    def take(self, now: float, item: Input) -> None:
        self._twist = item.values
        self._frame = item.frame

    def target(self, now: float, rate: float, timeout: float) -> Array:
        speed = 1.0
        if self._waits:
            distance, angle = POSES.size(self._ahead)
            speed = max(0.0, 1.0 - (distance + angle * LEVER) / LEASH)
        step = rate * speed * self._period * self._in_base_link()
        self._target = POSES.add(self._target, step)
        return self._target

    def _in_base_link(self) -> Array:
        """Return the twist (6,) in base_link's axes."""
        linear = self._twist[:3]
        angular = self._twist[3:]
        if self._frame == "base":
            # Turned by half a turn about z.
            signs = np.array([-1.0, -1.0, 1.0])
            return np.concatenate([signs * linear, signs * angular])
        if self._frame == "tool":
            rotation = pin.Quaternion(self._target[3:]).matrix()
            return np.concatenate([rotation @ linear, rotation @ angular])
        return self._twist

    def follow(self, pose: Array, *, limited: bool, blocked: bool) -> bool:
        self._ahead = POSES.difference(pose, self._target)
        self._waits = limited
        twist = self._in_base_link()
        along = float(self._ahead @ twist)

        # Turned back while the target waits ahead: the arm must not first have to catch up with it.
        if limited and along < 0.0:
            self.begin(np.empty(0), pose)
            return True

        # What was asked for before, and was prevented, is not asked for any more.
        if blocked and along > 0.0:
            self._ahead = along / float(twist @ twist) * twist
            self._target = POSES.add(pose, self._ahead)
        return False


def make_aim(item: Input, options: LiveOptions, period: float, engaged_at: Array) -> Aim:
    """Return the aim for the kind of an input.

    Args:
        item: The input.
        options: Hold and filter.
        period: Control period, s.
        engaged_at: The pose (7,) at the engagement.
    """
    if item.kind == "twist":
        return _Twist(period)
    if item.kind == "jog":
        return _Jog(period)
    space: PoseSpace | JointSpace = POSES if item.kind in ("pose", "follow") else JOINTS
    return _Followed(options, period, engaged_at, space)
