"""Motion laws, tool orientations along a path, and the trajectories that they make of paths.

A motion law is defined by its largest speed and fits every path: `law.over(length)` is the motion over that length. It
rises monotonically from 0 to `length`.

Everything here raises InvalidParameter for a parameter out of its range, and InvalidTrajectory for a quaternion that is
not of unit length.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from simbridge.errors import InvalidParameter
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.robot.workspace import TOOL_DOWN
from simbridge.trajectory.paths import Path, check_laps, check_positive, direction, line, vector
from simbridge.trajectory.trajectory import Trajectory

# With a smaller angle (its sine) between two axes the direction of x is undefined.
_PARALLEL = 1e-6


@dataclass(frozen=True)
class Motion:
    """A motion of this duration, s: arc lengths (K,) in m at instants (K,) from 0 to the duration."""

    duration: float
    travelled: Callable[[Array], Array]


class MotionLaw(ABC):
    """A relation between arc length and time."""

    @abstractmethod
    def over(self, length: float) -> Motion:
        """The motion over a length, m."""


@dataclass(frozen=True)
class ConstantSpeed(MotionLaw):
    """Constant speed, m/s; starts and stops are velocity jumps."""

    speed: float

    def __post_init__(self) -> None:
        check_positive(speed=self.speed)

    def over(self, length: float) -> Motion:
        return Motion(length / self.speed, lambda t: self.speed * t)


@dataclass(frozen=True)
class Trapezoid(MotionLaw):
    """Constant acceleration, m/s^2, up to a speed, m/s, and the same deceleration; a triangle over a short length."""

    speed: float
    acceleration: float

    def __post_init__(self) -> None:
        check_positive(speed=self.speed, acceleration=self.acceleration)

    def over(self, length: float) -> Motion:
        peak = min(self.speed, math.sqrt(self.acceleration * length))
        ramp = peak / self.acceleration
        duration = ramp + length / peak

        def travelled(t: Array) -> Array:
            rising = 0.5 * self.acceleration * np.minimum(t, ramp) ** 2
            level = peak * np.clip(t - ramp, 0.0, duration - 2.0 * ramp)
            left = np.maximum(duration - t, 0.0)
            falling = 0.5 * self.acceleration * (ramp**2 - np.minimum(left, ramp) ** 2)
            return rising + level + falling

        return Motion(duration, travelled)


@dataclass(frozen=True)
class MinimumJerk(MotionLaw):
    """10 x^3 - 15 x^4 + 6 x^5: minimum jerk from rest to rest (Flash and Hogan 1985).

    The speed, m/s, is the largest, in the middle; 15/8 of the mean.
    """

    speed: float

    def __post_init__(self) -> None:
        check_positive(speed=self.speed)

    def over(self, length: float) -> Motion:
        duration = 1.875 * length / self.speed

        def travelled(t: Array) -> Array:
            x = np.clip(t / duration, 0.0, 1.0)
            return length * x**3 * (10.0 + x * (6.0 * x - 15.0))

        return Motion(duration, travelled)


@dataclass(frozen=True)
class SlowInSlowOut(MotionLaw):
    """An animator's slow-in and slow-out: speed in proportion to the distance from the nearer end, within bounds.

    After J. Haynes, "Exploring Inverse Kinematics" (University of Bath, 2017), section 3.5, where the number of
    interpolated frames between two key frames is inversely proportional to the tool's distance from the target, and
    bounded to 30 to 100: a speed between 0.3 and 1 of the largest. Haynes uses the straight distance, so the arm also
    slows down wherever its path passes near an end; here the distance is along the path, and both ends are treated
    alike. In both, the motion begins and ends at the slowest speed, not at rest.

    Attributes:
        speed: The largest, m/s.
        slowest: Speed at the ends as a share of the largest, above 0 and at most 1.
        ramp: Share of the length over which the speed would rise from zero to the largest, above 0, at most a half.
    """

    speed: float
    slowest: float = 0.3
    ramp: float = 0.5

    def __post_init__(self) -> None:
        check_positive(speed=self.speed, slowest=self.slowest, ramp=self.ramp)
        if self.slowest > 1.0:
            raise InvalidParameter("slowest", self.slowest, "at most 1")
        if self.ramp > 0.5:
            raise InvalidParameter("ramp", self.ramp, "at most a half, as both ends have one")

    def over(self, length: float) -> Motion:
        rise = self.ramp * length
        # The slowest speed up to `slow`, exponential from there to `rise`, the largest up to the middle.
        slow, lowest, growth = self.slowest * rise, self.slowest * self.speed, self.speed / rise
        leave = slow / lowest
        level = leave - math.log(self.slowest) / growth
        half = level + (0.5 * length - rise) / self.speed

        def first_half(t: Array) -> Array:
            grown = slow * np.exp(growth * (np.clip(t, leave, level) - leave))
            return np.where(
                t < leave, lowest * t, np.where(t < level, grown, rise + self.speed * (t - level))
            )

        def travelled(t: Array) -> Array:
            return np.where(t <= half, first_half(t), length - first_half(2.0 * half - t))

        return Motion(2.0 * half, travelled)


class Orientation(ABC):
    """A tool orientation for every position on a path."""

    @abstractmethod
    def of(self, positions: Array, tangents: Array) -> Array:
        """Unit quaternions (K, 4), continuous in sign, at positions (K, 3) in m with unit tangents (K, 3)."""


@dataclass(frozen=True)
class ConstantOrientation(Orientation):
    """One orientation for the whole path: a unit quaternion (4,) in base_link."""

    quaternion: ArrayLike

    def of(self, positions: Array, tangents: Array) -> Array:
        return np.tile(vector("orientation", self.quaternion, 4), (len(positions), 1))


@dataclass(frozen=True)
class PathTangent(Orientation):
    """The tool's x axis along the path, its z axis as close to `approach` (3,), in base_link, as possible.

    A path that runs along `approach` is InvalidParameter in use.
    """

    approach: ArrayLike = (0.0, 0.0, -1.0)

    def __post_init__(self) -> None:
        direction("approach", self.approach)

    def of(self, positions: Array, tangents: Array) -> Array:
        approach = direction("approach", self.approach)
        z = approach - (tangents @ approach)[:, None] * tangents
        return _frames(tangents, z, "approach", self.approach, "nowhere along the path")


@dataclass(frozen=True)
class LookAt(Orientation):
    """The tool's z axis towards a point (3,), in base_link, m, its x axis as close to `upright` (3,) as possible.

    A path through the point, or through its line along `upright`, is InvalidParameter in use.
    """

    point: ArrayLike
    upright: ArrayLike = (1.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        vector("point", self.point, 3)
        direction("upright", self.upright)

    def of(self, positions: Array, tangents: Array) -> Array:
        away = vector("point", self.point, 3) - positions
        distance = np.linalg.norm(away, axis=1, keepdims=True)
        if distance.min() < 1e-9:
            raise InvalidParameter("point", self.point, "a point that is not on the path")
        z = away / distance
        upright = direction("upright", self.upright)
        x = upright - (z @ upright)[:, None] * z
        return _frames(
            x, z, "upright", self.upright, "nowhere along the line from the path to the point"
        )


def _frames(x: Array, z: Array, name: str, given: ArrayLike, needed: str) -> Array:
    """Quaternions of the frames with these x and z axes, which are perpendicular and of any length."""
    lengths = [np.linalg.norm(axis, axis=1, keepdims=True) for axis in (x, z)]
    if min(length.min() for length in lengths) < _PARALLEL:
        raise InvalidParameter(name, given, needed)
    x, z = x / lengths[0], z / lengths[1]
    rotations = np.stack([x, np.cross(z, x), z], axis=2)
    return continuous(np.array([pin.Quaternion(rotation).coeffs() for rotation in rotations]))


def continuous(quaternions: Array) -> Array:
    """The same rotations (K, 4) with continuous signs."""
    turns = np.sum(quaternions[1:] * quaternions[:-1], axis=1) < 0.0
    signs = np.concatenate([[1.0], np.where(np.cumsum(turns) % 2, -1.0, 1.0)])
    return pose.normalized(quaternions * signs[:, None])


def trace(
    path: Path,
    law: MotionLaw,
    rate: float = 100.0,
    orientation: Orientation | ArrayLike = TOOL_DOWN,
    laps: int = 1,
    source: str = "path",
) -> Trajectory:
    """Sample a path with a motion law, over the whole length of all laps, and an orientation.

    Samples are at k / rate (Hz); the last one is the end of the path at the instant it is reached, also between two
    such instants. A corner between two samples is cut by the interpolation. A quaternion (4,) is a constant
    orientation, tool down by default. More than one lap needs a closed path.
    """
    check_positive(rate=rate)
    check_laps(laps)
    if laps > 1 and not path.closed:
        raise InvalidParameter("laps", laps, "1, as the path does not end at its start")
    motion = law.over(laps * path.length)
    periods = motion.duration * rate
    # An end that differs from a sample by rounding only is that sample.
    times = np.append(np.arange(math.ceil(periods - 1e-9), dtype=float) / rate, motion.duration)
    travelled = np.clip(motion.travelled(times), 0.0, laps * path.length)
    travelled[-1] = laps * path.length
    within = travelled - path.length * np.minimum(np.floor(travelled / path.length), laps - 1)
    positions = path.position(within)
    if path.closed:
        positions[-1] = path.position(np.zeros(1))[0]
    turning = (
        orientation if isinstance(orientation, Orientation) else ConstantOrientation(orientation)
    )
    rotations = turning.of(positions, path.tangent(within))
    return Trajectory(times, np.column_stack([positions, rotations]), source=source)


def move(
    start: ArrayLike, end: ArrayLike, law: MotionLaw, rate: float = 100.0, source: str = "move"
) -> Trajectory:
    """A straight line between poses (7,) at different positions; the tool rotates in proportion to the distance."""
    ends = Trajectory(
        np.array([0.0, 1.0]), np.stack([vector("start", start, 7), vector("end", end, 7)]), source
    )
    path = line(ends.poses[0, :3], ends.poses[1, :3])
    straight = trace(path, law, rate, ConstantOrientation(ends.start[3:]), source=source)
    share = np.linalg.norm(straight.poses[:, :3] - ends.start[:3], axis=1) / path.length
    rotations = pose.interpolate(ends.times, ends.poses, share)[:, 3:]
    return Trajectory(
        straight.times, np.column_stack([straight.poses[:, :3], rotations]), source=source
    )


def dwell(at: ArrayLike, duration: float) -> Trajectory:
    """Stay at one pose `at` (7,) for `duration` s."""
    check_positive(duration=duration)
    return Trajectory(
        np.array([0.0, duration]), np.tile(vector("pose", at, 7), (2, 1)), source="still"
    )


def concatenate(*parts: Trajectory, source: str = "joined") -> Trajectory:
    """Trajectories one after another, each beginning within 1 um and 1e-6 rad of the last pose of the previous one."""
    if not parts:
        raise InvalidParameter("parts", "none", "one trajectory or more")
    times, poses = [parts[0].elapsed], [parts[0].poses]
    for index, part in enumerate(parts[1:], start=1):
        end, start = poses[-1][-1], part.start
        distance = float(np.linalg.norm(end[:3] - start[:3]))
        angle = 2.0 * float(np.arccos(min(1.0, abs(end[3:] @ start[3:]))))
        if distance > 1e-6 or angle > 1e-6:
            where = f"{distance * 1e3:.3g} mm and {math.degrees(angle):.3g} degrees from the end of the previous one"
            raise InvalidParameter(f"start of part {index}", where, "that end")
        times.append(times[-1][-1] + part.elapsed[1:])
        poses.append(part.poses[1:])
    return Trajectory(np.concatenate(times), np.concatenate(poses), source=source)
