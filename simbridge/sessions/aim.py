"""The aim of a period, by each kind of input: a target pose for the solver, or joint positions."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from simbridge.robot.pose import Array, align_quaternion
from simbridge.sessions.between_inputs import Chunk, HeldInput
from simbridge.sessions.filters import InputFilter
from simbridge.sessions.inputs import Input, TwistFrame
from simbridge.sessions.options import LiveOptions
from simbridge.sessions.settling import LEVER, SolutionWatch
from simbridge.sessions.spaces import JOINTS, POSES, JointSpace, PoseSpace

# A target that has moved by no more than this, m or rad, has not moved.
SAME_TARGET = 1e-6
# How far a twist's target may run ahead of the setpoint while limits hold the arm, m (angles by
# their lever): it slows down towards this distance, and waits there.
LEASH = 0.02


class Aim:
    """The aim of one kind of input.

    Attributes:
        in_joints: Whether it asks for joint positions.
        is_twist: Whether it integrates a twist.
        has_changed: Whether the target has moved since the solutions for it are watched anew.
    """

    in_joints = False
    is_twist = False
    has_changed = False

    @property
    def final_solution(self) -> Array | None:
        """The solution (n,), rad, nearest to a target that the solver need no longer try."""
        return None

    def begin(self, q: Array, pose: Array) -> None:
        """Go on from the setpoint.

        Args:
            q: The setpoint (n,), rad.
            pose: The TCP's pose (7,) there.
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
            now: The loop's clock, s.
            rate: Fraction of full speed.
            setpoint: The last setpoint (n,), rad.
            timeout: How long the target moves on without a further input, s.
        """
        return None

    def target(self, now: float, rate: float, timeout: float) -> Array:
        """Return the pose (7,) to aim at in this period.

        Args:
            now: The loop's clock, s.
            rate: Fraction of full speed.
            timeout: How long the target moves on without a further input, s.
        """
        raise NotImplementedError

    def follow(self, pose: Array, *, limited: bool, blocked: bool) -> bool:
        """Take note of where the setpoint of this period is.

        Args:
            pose: The TCP's pose (7,) at the setpoint.
            limited: Whether limits keep the setpoint from where the solver wanted it.
            blocked: Whether it was slowed down towards an obstacle or a singularity.

        Returns:
            True if the aim has begun anew at this pose, as the solver then must, too.
        """
        return False

    def settle(self, now: float, solution: Array, residual: tuple[float, float]) -> Array:
        """Return the solution or, once it gets no nearer to the target, the nearest.

        Args:
            now: The loop's clock, s.
            solution: Joint positions (n,), rad.
            residual: How far the solution is from its target, m and rad.
        """
        return solution

    def out_of_reach(self) -> tuple[float, float] | None:
        """Return how far the nearest solution is from a target out of reach, m and rad.

        None if the target is not known to be out of reach.
        """
        return None


class _Followed(Aim):
    """Poses or joint positions, one at a time or a chunk.

    Args:
        options: Hold and filter.
        period: Control period, s.
        engaged_at: The pose (7,) at the engagement, to which relative poses refer.
        space: The space of the values: poses or joint positions.
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
        # The target (m,) whose solutions are watched; None before the first.
        self._watched: Array | None = None
        self._watch = SolutionWatch()

    @property
    def final_solution(self) -> Array | None:
        return self._watch.final

    def begin(self, q: Array, pose: Array) -> None:
        # The value of the last input.
        self._last = q if self.in_joints else pose
        # The last target, after the filter, which begins here, too.
        self._newest = self._last
        self._filter.next(self._last)

    def _value(self, item: Input) -> Array:
        """Return the value of an input, or of a chunk's first row, in the space.

        Of the two quaternions of a pose it has the one that is nearer to the last value's.
        """
        value = item.values[0, 1:] if item.is_chunk else item.values
        if item.relative:
            value = pin.SE3ToXYZQUAT(self._engaged_at * pin.XYZQUATToSE3(value))
        return value if self.in_joints else align_quaternion(value, self._last)

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
        """Return the filtered value of this period, and watch the solutions anew if it has moved.

        Args:
            now: The loop's clock, s.
            timeout: How long the target moves on without a further input, s.
        """
        unfiltered = self._held.at(now, timeout) if self._chunk is None else self._chunk.at(now)
        self._newest = self._filter.next(unfiltered)

        # The value is compared with the one whose solutions are watched, not with the last one: so
        # slow motions count, too.
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

    def out_of_reach(self) -> tuple[float, float] | None:
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
        # The twist of the last input (6,), m/s and rad/s.
        self._twist = np.zeros(6)
        # The frame in whose axes it was given.
        self._frame: TwistFrame = "base_link"

    def begin(self, q: Array, pose: Array) -> None:
        self._begin_at(pose)

    def _begin_at(self, pose: Array) -> None:
        """Let the target go on from a pose (7,)."""
        self._target = pose
        # How far the target is ahead of the setpoint (6,), m and rad.
        self._ahead = np.zeros(6)
        # Whether limits hold the arm, so that the target slows down until it waits.
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
            # The pendant's base is base_link turned by half a turn about z.
            signs = np.array([-1.0, -1.0, 1.0])
            return np.concatenate([signs * linear, signs * angular])
        if self._frame == "tool":
            rotation = pin.Quaternion(self._target[3:]).matrix()
            return np.concatenate([rotation @ linear, rotation @ angular])
        return self._twist

    def follow(self, pose: Array, *, limited: bool, blocked: bool) -> bool:
        self._ahead = POSES.difference(pose, self._target)
        self._waits = limited

        # The scalar product of twist and what the target is ahead, one metre counting as much as
        # one radian. It is negative if the twist leads back to the arm.
        twist = self._in_base_link()
        along_twist = float(self._ahead @ twist)

        # The twist was reversed while the target waits ahead: begin at the arm, which must not
        # first have to catch up with the target.
        if limited and along_twist < 0.0:
            self._begin_at(pose)
            return True

        # A danger holds the arm: only what is ahead in the direction of the present twist is still
        # wanted. That is the projection on it, (a . t) / (t . t) t.
        if blocked and along_twist > 0.0:
            time_ahead = along_twist / float(twist @ twist)
            self._ahead = time_ahead * twist
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
