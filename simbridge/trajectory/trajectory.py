"""A sampled Cartesian trajectory: poses and their instants."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.errors import InvalidChoice, InvalidParameter, InvalidTrajectory
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.text import counted

Hold = Literal["linear", "zero-order"]

# Quaternions with three decimals, as in many files, have a norm within this of one.
UNIT_TOLERANCE = 1e-3
# k * period may be below the stamp it means by a rounding error, in s.
INSTANT_TOLERANCE = 1e-9
# Half a turn about z: the pendant's "base" as seen from base_link.
PENDANT_BASE = (0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
# The elements of a pose, as messages name them.
COLUMNS = ("x", "y", "z", "qx", "qy", "qz", "qw")


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Poses [x y z qx qy qz qw] from base_link to the TCP and their instants.

    The arrays are copied and read-only. Quaternions keep their signs; interpolation takes the
    shorter arc between two of them. Every method counts an instant `t` from the first sample, also
    for absolute stamps.

    Attributes:
        times: Strictly increasing stamps (T,) in s.
        poses: Poses (T, 7) in m and unit quaternions. Quaternions within 1e-3 of unit length are
            normalised.
        source: A file or the name of a shape, for messages.
        epoch_ns: The zero of `times` on the source's clock in whole ns, or 0. Seconds since 1970 as
            doubles are rounded to 0.24 us; exact stamps are the sum in ns.
        read_as: How the trajectory's file was read, in one line: "400 poses, 50 Hz, header names
            px.., metres, xyzw"; "" if it is from none.
        joints: Joint positions (T, n), rad or m, of which the poses are the TCP's; None if only
            poses are known.

    Raises:
        InvalidTrajectory: No samples, shapes that do not fit, a value that is not finite, a time
            that does not increase, or a quaternion that is zero or not of unit length; with the
            sample and what is wrong.
    """

    times: Array
    poses: Array
    source: str = ""
    epoch_ns: int = 0
    read_as: str = ""
    joints: Array | None = None

    def __post_init__(self) -> None:
        times = self._floats(self.times, "time")
        poses = self._floats(self.poses, "pose")
        if times.ndim != 1 or poses.shape != (len(times), 7):
            raise self._fault(
                "times of shape (T,) and poses of shape (T, 7) are needed; got "
                f"{times.shape} and {poses.shape}"
            )
        if len(times) == 0:
            raise self._fault("there are no samples; one or more are needed")
        self._check_finite(times, poses)
        self._check_increasing(times)
        self._check_unit_length(poses)

        poses[:, 3:] = pose.normalize(poses[:, 3:])
        arrays = {"times": times, "poses": poses}
        if self.joints is not None:
            arrays["joints"] = self._check_joints(self.joints)
        for name, array in arrays.items():
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
        """From the first sample to the last, s."""
        return float(self.elapsed[-1])

    @property
    def start(self) -> Array:
        """The first pose (7,)."""
        return self.poses[0]

    def reference(self, t: ArrayLike) -> Array:
        """Return the continuous path: positions linear, rotations by slerp.

        Outside of the samples it is the first or last pose.

        Args:
            t: Instants (K,), s, or one.

        Returns:
            Poses (K, 7); at the samples' instants the samples, bit for bit.
        """
        return pose.interpolate(self.elapsed, self.poses, np.atleast_1d(np.asarray(t, dtype=float)))

    def target(self, t: ArrayLike, hold: Hold = "linear") -> Array:
        """Return the target of the solver (K, 7) at instants (K,) in s, or at one.

        With `hold` "linear" it is the reference, with "zero-order" the last sample at or before t,
        all that a live source has.
        """
        if hold == "linear":
            return self.reference(t)
        if hold == "zero-order":
            return self.poses[np.atleast_1d(self.sample_at(t))]
        raise InvalidChoice("hold", hold, get_args(Hold))

    def sample_at(self, t: ArrayLike) -> NDArray[np.intp]:
        """Return the index of the last sample at or before each instant; 0 before the first sample.

        An instant within 1e-9 s before a sample, or within the resolution of the stamps if that is
        coarser (0.5 us for seconds since 1970), counts as the sample's.

        Args:
            t: Instants of any shape, s.

        Returns:
            Indices in the shape of `t`.
        """
        instants = np.asarray(t, dtype=float) + self._instant_tolerance
        after = np.searchsorted(self.elapsed, instants, side="right")
        return np.asarray(np.maximum(after - 1, 0))

    def transform(self, frame: ArrayLike) -> Trajectory:
        """Return the same motion in an outer frame: its poses premultiplied by `frame` (7,).

        Joint positions are left out: they would be others.
        """
        frame_pose = np.atleast_2d(np.asarray(frame, dtype=float))
        outer = Trajectory(np.zeros(1), frame_pose, source="the frame").start
        return replace(self, poses=pose.compose(outer, self.poses), joints=None)

    def anchor_at(self, start: ArrayLike) -> Trajectory:
        """Return the same motion moved as a whole so that its first pose is `start` (7,)."""
        from_start = pose.compose(pose.inverse(self.start), self.poses)
        return replace(self, poses=from_start, joints=None).transform(start)

    def from_pendant_base(self) -> Trajectory:
        """Return this trajectory of the pendant's "base" in base_link: rotated by pi about z."""
        return self.transform(PENDANT_BASE)

    def scale_speed(self, scale: float) -> Trajectory:
        """Return the same path at `scale` times the speed: 2 takes half as long.

        The scale is positive. The first stamp stays.
        """
        if not (math.isfinite(scale) and scale > 0.0):
            raise InvalidParameter("speed scale", scale, "a positive number")
        return replace(self, times=self.times[0] + self.elapsed / scale)

    @cached_property
    def _instant_tolerance(self) -> float:
        """Time by which an instant may precede a sample and still count as the sample's, s."""
        # Stamps of seconds since 1970 are rounded to 0.24 us, so two of them may be that far from
        # k * period.
        resolution = 2.0 * float(np.spacing(np.abs(self.times).max()))
        tolerance = max(INSTANT_TOLERANCE, resolution)
        # Never so large that a sample would count as the next one.
        return min(tolerance, 0.5 * float(np.diff(self.elapsed).min(initial=np.inf)))

    def _fault(
        self, reason: str, sample: int | None = None, field: str | None = None
    ) -> InvalidTrajectory:
        return InvalidTrajectory(reason, sample=sample, field=field, source=self.source)

    def _floats(self, values: ArrayLike, field: str) -> Array:
        try:
            return np.array(values, dtype=float)
        except (TypeError, ValueError) as problem:
            raise self._fault(f"not an array of numbers ({problem})", field=field) from problem

    def _check_joints(self, values: ArrayLike) -> Array:
        joints = self._floats(values, "joints")
        if joints.ndim != 2 or len(joints) != len(self.times):
            raise self._fault(f"joints of shape (T, n) are needed; got {joints.shape}")
        if not np.isfinite(joints).all():
            sample = int(np.argwhere(~np.isfinite(joints))[0][0])
            raise self._fault("a joint position is not a finite number", sample, "joints")
        return joints

    def _check_finite(self, times: Array, poses: Array) -> None:
        infinite = np.argwhere(~np.isfinite(np.column_stack([times, poses])))
        if not len(infinite):
            return

        sample, column = map(int, infinite[0])
        value = times[sample] if column == 0 else poses[sample, column - 1]
        field = ("time", *COLUMNS)[column]
        raise self._fault(f"{value} is not a finite number", sample, field)

    def _check_increasing(self, times: Array) -> None:
        # Compared as they are used, since the first sample: different stamps may be equal after
        # that subtraction.
        elapsed = times - times[0]
        not_after = np.flatnonzero(elapsed[1:] <= elapsed[:-1])
        if not len(not_after):
            return

        first = int(not_after[0])
        previous, time = times[first : first + 2].tolist()
        raise self._fault(
            f"time {time!r} s is not after {previous!r} s of the previous sample; times must "
            "increase",
            first + 1,
            "time",
        )

    def _check_unit_length(self, poses: Array) -> None:
        with np.errstate(over="ignore"):
            norms = np.linalg.norm(poses[:, 3:], axis=1)
        not_unit = np.flatnonzero(np.abs(norms - 1.0) > UNIT_TOLERANCE)
        if not len(not_unit):
            return

        sample = int(not_unit[0])
        norm = norms[sample]
        fault = "is zero" if norm == 0.0 else f"has norm {norm:.6g}"
        needed = f"unit length within {UNIT_TOLERANCE:g} is needed, in the order qx qy qz qw"
        raise self._fault(f"the quaternion {fault}; {needed}", sample, "quaternion")


def describe_reading(trajectory: Trajectory, understood: str, frame: str = "") -> Trajectory:
    """Return the trajectory with the line on how its file was read: "400 poses, 50 Hz, ...".

    Args:
        trajectory: The trajectory, as it was read.
        understood: What was understood of the file.
        frame: Name of the frame of its poses.
    """
    if frame:
        understood += f", in the frame {frame}"
    periods = np.diff(trajectory.elapsed)
    rate = f"{1.0 / float(np.median(periods)):.4g} Hz, " if len(periods) else ""
    noun = "pose" if trajectory.joints is None else "joint position"
    count = counted(len(trajectory.times), noun)
    return replace(trajectory, read_as=f"{count}, {rate}{understood}")
