"""A sampled Cartesian trajectory: poses and the instants at which they are due."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.deprecated import old_method
from simbridge.errors import InvalidParameter, InvalidTrajectory, UnknownName
from simbridge.robot import pose
from simbridge.robot.pose import Array

Hold = Literal["linear", "zero-order"]

# Three decimals, as many files have, leave a norm within this of one.
UNIT_TOLERANCE = 1e-3
# k * period may fall short of the stamp it stands for by a rounding error, in s.
INSTANT_TOLERANCE = 1e-9
# Half a turn about z: the pendant's "base" as seen from base_link.
PENDANT_BASE = (0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
COLUMNS = ("x", "y", "z", "qx", "qy", "qz", "qw")


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Poses [x y z qx qy qz qw] from base_link to the TCP and the instants at which they are due.

    The arrays are copied and read-only. Quaternions keep the sign they are given with; interpolation takes the shorter
    way between two of them whatever their signs. Every method that takes an instant `t` counts it from the first
    sample, so that files with absolute stamps need no care.

    Attributes:
        times: Strictly increasing stamps (T,) in s.
        poses: Poses (T, 7) in m and unit quaternions. Quaternions within 1e-3 of unit length are normalised.
        source: Where the trajectory comes from, for messages: a file, or the name of a shape.
        epoch_ns: From where on its source's clock the times count, in whole ns; 0 where they are that clock's own.
            Seconds since 1970 in doubles are rounded to 0.24 us: what needs them exactly adds them up in ns.

    Raises:
        InvalidTrajectory: No samples, shapes that do not fit, a value that is not finite, a time that does not
            increase, or a quaternion that is zero or not of unit length; with the sample and what is wrong.
    """

    times: Array
    poses: Array
    source: str = ""
    epoch_ns: int = 0

    def __post_init__(self) -> None:
        times = self._floats(self.times, "time")
        poses = self._floats(self.poses, "pose")
        if times.ndim != 1 or poses.ndim != 2 or poses.shape[1] != 7 or len(times) != len(poses):
            raise self._fault(
                f"times of shape (T,) and poses of shape (T, 7) are needed; got {times.shape} and {poses.shape}"
            )
        if len(times) == 0:
            raise self._fault("there are no samples; one or more are needed")
        self._check_finite(times, poses)
        self._check_increasing(times)
        poses[:, 3:] = self._unit(poses[:, 3:])
        for name, array in (("times", times), ("poses", poses)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @cached_property
    def elapsed(self) -> Array:
        """Instants of the samples (T,) in s since the first of them; read-only."""
        elapsed = self.times - self.times[0]
        elapsed.setflags(write=False)
        return elapsed

    @property
    def duration(self) -> float:
        """Time from the first sample to the last, in s."""
        return float(self.elapsed[-1])

    @property
    def start(self) -> Array:
        """The first pose (7,)."""
        return self.poses[0]

    def reference(self, t: ArrayLike) -> Array:
        """The continuous path: linear in position, slerp in rotation; the first or last pose outside of the samples.

        Args:
            t: Instants (K,) or one instant, in s since the first sample.

        Returns:
            Poses (K, 7). At the samples' own instants they are the samples, bit for bit.
        """
        return pose.interpolate(self.elapsed, self.poses, np.atleast_1d(np.asarray(t, dtype=float)))

    def target(self, t: ArrayLike, hold: Hold = "linear") -> Array:
        """What a solver is given at the instants `t`.

        Args:
            t: Instants (K,) or one instant, in s since the first sample.
            hold: "linear" is the reference itself. "zero-order" is the last sample at or before t, which is all that
                a live source can give.

        Returns:
            Poses (K, 7).

        Raises:
            UnknownName: `hold` is neither.
        """
        if hold == "linear":
            return self.reference(t)
        if hold == "zero-order":
            return self.poses[np.atleast_1d(self.sample_at(t))]
        raise UnknownName("hold", hold, get_args(Hold))

    def sample_at(self, t: ArrayLike) -> NDArray[np.intp]:
        """Indices, in the shape of `t`, of the last sample at or before each instant; 0 before the first sample.

        Args:
            t: Instants in s since the first sample. An instant up to 1e-9 s before a sample counts as the sample's, or
                up to the resolution of the stamps where that is coarser (0.5 us for seconds since 1970).
        """
        after = np.searchsorted(self.elapsed, np.asarray(t, dtype=float) + self._instant_tolerance, side="right")
        return np.asarray(np.maximum(after - 1, 0))

    def transformed(self, frame: ArrayLike) -> Trajectory:
        """The same motion given in an outer frame: every pose premultiplied by `frame` (7,).

        Raises:
            InvalidTrajectory: `frame` is not a pose.
        """
        outer = Trajectory(np.zeros(1), np.atleast_2d(np.asarray(frame, dtype=float)), source="the frame").start
        return replace(self, poses=pose.compose(outer, self.poses))

    def anchored(self, start: ArrayLike) -> Trajectory:
        """The same motion relative to its first pose, moved as a whole so that this one is `start` (7,).

        Raises:
            InvalidTrajectory: `start` is not a pose.
        """
        first = self.start
        turn = pose.conjugate(first[3:])
        inverse = np.concatenate([-pose.rotate(turn, first[:3]), turn])
        moved = pose.compose(inverse, self.poses)
        return replace(self, poses=moved).transformed(start)

    def from_pendant_base(self) -> Trajectory:
        """This trajectory, given in the pendant's "base", in base_link: turned by pi about z (exactly)."""
        return self.transformed(PENDANT_BASE)

    def time_scaled(self, scale: float) -> Trajectory:
        """The same path at `scale` times the speed; the first stamp stays.

        Args:
            scale: A positive factor: 0.2 takes five times as long, 2 half as long.

        Raises:
            InvalidParameter: `scale` is not a positive number.
        """
        if not (math.isfinite(scale) and scale > 0.0):
            raise InvalidParameter("speed scale", scale, "a positive number")
        return replace(self, times=self.times[0] + self.elapsed / scale)

    slowed = old_method("simbridge.Trajectory.slowed")

    @cached_property
    def _instant_tolerance(self) -> float:
        # Stamps of seconds since 1970 are rounded to 0.24 us, so two of them may be that far from k * period.
        tolerance = max(INSTANT_TOLERANCE, 2.0 * float(np.spacing(np.abs(self.times).max())))
        # Never so much that a sample would be taken for the one after it.
        return min(tolerance, 0.5 * float(np.diff(self.elapsed).min(initial=np.inf)))

    def _fault(self, reason: str, sample: int | None = None, field: str | None = None) -> InvalidTrajectory:
        return InvalidTrajectory(reason, sample=sample, field=field, source=self.source)

    def _floats(self, values: ArrayLike, field: str) -> Array:
        try:
            return np.array(values, dtype=float)
        except (TypeError, ValueError) as problem:
            raise self._fault(f"not an array of numbers ({problem})", field=field) from problem

    def _check_finite(self, times: Array, poses: Array) -> None:
        bad = np.argwhere(~np.isfinite(np.column_stack([times, poses])))
        if len(bad):
            sample, column = map(int, bad[0])
            value = times[sample] if column == 0 else poses[sample, column - 1]
            raise self._fault(f"{value} is not a finite number", sample, ("time", *COLUMNS)[column])

    def _check_increasing(self, times: Array) -> None:
        # Compared as they are used, since the first sample: stamps may differ and yet not after that subtraction.
        elapsed = times - times[0]
        bad = np.flatnonzero(elapsed[1:] <= elapsed[:-1])
        if len(bad):
            before, at = times[bad[0] : bad[0] + 2].tolist()
            raise self._fault(
                f"time {at!r} s does not come after {before!r} s of the sample before; times must increase",
                int(bad[0]) + 1,
                "time",
            )

    def _unit(self, quaternions: Array) -> Array:
        with np.errstate(over="ignore"):
            norms = np.linalg.norm(quaternions, axis=1)
        off = np.abs(norms - 1.0)
        bad = np.flatnonzero(off > UNIT_TOLERANCE)
        if len(bad):
            sample = int(bad[0])
            what = "is zero" if norms[sample] == 0.0 else f"has the norm {norms[sample]:.6g}"
            raise self._fault(
                f"the quaternion {what}; unit length within {UNIT_TOLERANCE:g} is needed, in the order qx qy qz qw",
                sample,
                "quaternion",
            )
        return pose.normalized(quaternions)
