"""A sampled Cartesian trajectory: poses and their instants; and the targets that a low-rate, noisy source makes of one.

With a source the smooth path remains the reference, and its samples are the target that a solver is given. Both have
the same first instant and the same clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simbridge.errors import InvalidParameter, InvalidTrajectory, UnknownName
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.text import counted
from simbridge.trajectory.paths import check_not_negative, check_positive

Hold = Literal["linear", "zero-order"]

# Quaternions with three decimals, as in many files, have a norm within this of one.
UNIT_TOLERANCE = 1e-3
# k * period may be below the stamp it means by a rounding error, in s.
INSTANT_TOLERANCE = 1e-9
# Half a turn about z: the pendant's "base" as seen from base_link.
PENDANT_BASE = (0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
# No sampled instant moves by more than this part of the time to its neighbours, so that they keep their order.
_MAX_MOVE = 0.45
COLUMNS = ("x", "y", "z", "qx", "qy", "qz", "qw")


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Poses [x y z qx qy qz qw] from base_link to the TCP and their instants.

    The arrays are copied and read-only. Quaternions keep their signs; interpolation takes the shorter arc between two
    of them. Every method counts an instant `t` from the first sample, also for absolute stamps.

    Attributes:
        times: Strictly increasing stamps (T,) in s.
        poses: Poses (T, 7) in m and unit quaternions. Quaternions within 1e-3 of unit length are normalised.
        source: A file or the name of a shape, for messages.
        epoch_ns: The zero of `times` on the source's clock in whole ns, or 0. Seconds since 1970 as doubles are rounded
            to 0.24 us; exact stamps are the sum in ns.
        read_as: How its file was read, in one line: "400 poses, 50 Hz, header names px.., metres, xyzw"; "" if it is
            from none.

    Raises:
        InvalidTrajectory: No samples, shapes that do not fit, a value that is not finite, a time that does not
            increase, or a quaternion that is zero or not of unit length; with the sample and what is wrong.
    """

    times: Array
    poses: Array
    source: str = ""
    epoch_ns: int = 0
    read_as: str = ""

    def __post_init__(self) -> None:
        times = self._floats(self.times, "time")
        poses = self._floats(self.poses, "pose")
        if times.ndim != 1 or poses.shape != (len(times), 7):
            reason = f"times of shape (T,) and poses of shape (T, 7) are needed; got {times.shape} and {poses.shape}"
            raise self._fault(reason)
        if len(times) == 0:
            raise self._fault("there are no samples; one or more are needed")
        self._check(times, poses)
        poses[:, 3:] = pose.normalized(poses[:, 3:])
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
        """From the first sample to the last, s."""
        return float(self.elapsed[-1])

    @property
    def start(self) -> Array:
        """The first pose (7,)."""
        return self.poses[0]

    def reference(self, t: ArrayLike) -> Array:
        """The continuous path: positions linear, rotations by slerp; the first or last pose outside of the samples.

        Poses (K, 7) at instants (K,) in s, or at one; at the samples' instants the samples, bit for bit.
        """
        return pose.interpolate(self.elapsed, self.poses, np.atleast_1d(np.asarray(t, dtype=float)))

    def target(self, t: ArrayLike, hold: Hold = "linear") -> Array:
        """The target of the solver (K, 7) at instants (K,) in s, or at one.

        With `hold` "linear" it is the reference, with "zero-order" the last sample at or before t, all that a live
        source has.
        """
        if hold == "linear":
            return self.reference(t)
        if hold == "zero-order":
            return self.poses[np.atleast_1d(self.sample_at(t))]
        raise UnknownName("hold", hold, get_args(Hold))

    def sample_at(self, t: ArrayLike) -> NDArray[np.intp]:
        """Indices, in the shape of `t`, of the last sample at or before each instant in s; 0 before the first sample.

        An instant within 1e-9 s before a sample, or within the resolution of the stamps if that is coarser (0.5 us for
        seconds since 1970), counts as the sample's.
        """
        after = np.searchsorted(
            self.elapsed, np.asarray(t, dtype=float) + self._instant_tolerance, side="right"
        )
        return np.asarray(np.maximum(after - 1, 0))

    def transformed(self, frame: ArrayLike) -> Trajectory:
        """The same motion in an outer frame: every pose premultiplied by the pose `frame` (7,)."""
        outer = Trajectory(
            np.zeros(1), np.atleast_2d(np.asarray(frame, dtype=float)), source="the frame"
        ).start
        return replace(self, poses=pose.compose(outer, self.poses))

    def anchored(self, start: ArrayLike) -> Trajectory:
        """The same motion moved as a whole so that its first pose is `start` (7,)."""
        return replace(self, poses=pose.compose(pose.inverse(self.start), self.poses)).transformed(
            start
        )

    def from_pendant_base(self) -> Trajectory:
        """This trajectory of the pendant's "base" in base_link: rotated by exactly pi about z."""
        return self.transformed(PENDANT_BASE)

    def time_scaled(self, scale: float) -> Trajectory:
        """The same path at `scale` times the speed, which is positive: 2 takes half as long. The first stamp stays."""
        if not (math.isfinite(scale) and scale > 0.0):
            raise InvalidParameter("speed scale", scale, "a positive number")
        return replace(self, times=self.times[0] + self.elapsed / scale)

    @cached_property
    def _instant_tolerance(self) -> float:
        # Stamps of seconds since 1970 are rounded to 0.24 us, so two of them may be that far from k * period.
        tolerance = max(INSTANT_TOLERANCE, 2.0 * float(np.spacing(np.abs(self.times).max())))
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

    def _check(self, times: Array, poses: Array) -> None:
        infinite = np.argwhere(~np.isfinite(np.column_stack([times, poses])))
        if len(infinite):
            sample, column = map(int, infinite[0])
            value = times[sample] if column == 0 else poses[sample, column - 1]
            raise self._fault(f"{value} is not a finite number", sample, ("time", *COLUMNS)[column])
        # Compared as they are used, since the first sample: different stamps may be equal after that subtraction.
        elapsed = times - times[0]
        bad = np.flatnonzero(elapsed[1:] <= elapsed[:-1])
        if len(bad):
            before, at = times[bad[0] : bad[0] + 2].tolist()
            reason = f"time {at!r} s is not after {before!r} s of the previous sample; times must increase"
            raise self._fault(reason, int(bad[0]) + 1, "time")
        with np.errstate(over="ignore"):
            norms = np.linalg.norm(poses[:, 3:], axis=1)
        bad = np.flatnonzero(np.abs(norms - 1.0) > UNIT_TOLERANCE)
        if len(bad):
            norm = norms[bad[0]]
            what = "is zero" if norm == 0.0 else f"has the norm {norm:.6g}"
            needed = f"unit length within {UNIT_TOLERANCE:g} is needed, in the order qx qy qz qw"
            raise self._fault(f"the quaternion {what}; {needed}", int(bad[0]), "quaternion")


def described(trajectory: Trajectory, understood: str, frame: str = "") -> Trajectory:
    """The trajectory with the line that says how its file was read: "400 poses, 50 Hz, ..."."""
    understood += f", in the frame {frame}" if frame else ""
    steps = np.diff(trajectory.elapsed)
    rate = f"{1.0 / float(np.median(steps)):.4g} Hz, " if len(steps) else ""
    return replace(
        trajectory, read_as=f"{counted(len(trajectory.times), 'pose')}, {rate}{understood}"
    )


def _field(default: Any, help: str, **metadata: Any) -> Any:
    return field(default=default, metadata={"help": help, **metadata})


@dataclass(frozen=True)
class Sampling:
    """How a source samples and degrades a path: in this order rate, jitter, dropout, noise, quantisation.

    The same seed gives the same samples; each part has its own random stream, so that changing one part does not change
    the others. The first sample is never dropped, and always at the path's first instant.

    Raises:
        InvalidParameter: One of them is out of its range.
    """

    # In SI units; the command line's flags follow from these fields (see `planning/options.py`).
    rate: float | None = _field(
        None,
        "Sample the targets for the solver at this rate (held, unless --hold is given); errors are measured from the "
        "path itself.",
        metavar="HZ",
        unset="the trajectory's",
    )
    jitter: float = _field(
        0.0, "Standard deviation of the instants at which samples are taken, s.", metavar="S"
    )
    dropout: float = _field(
        0.0, "Probability that a sample is lost, from 0 to below 1.", metavar="P"
    )
    noise: tuple[float, float] = _field(
        (0.0, 0.0),
        "Standard deviation of the samples along and about each axis.",
        metavar="MM DEG",
        units=(1e-3, math.radians(1.0)),
    )
    quantisation: float = _field(
        0.0,
        "Round the positions of samples to multiples of this; 0 for none.",
        metavar="MM",
        units=(1e-3,),
    )
    seed: int = _field(0, "Seed of jitter, dropout and noise.", metavar="N")

    def __post_init__(self) -> None:
        if self.rate is not None:
            check_positive(sample_rate=self.rate)
        check_not_negative(sample_jitter=self.jitter, sample_quantisation=self.quantisation)
        if not 0.0 <= self.dropout < 1.0:
            raise InvalidParameter(
                "sample dropout", self.dropout, "a probability from 0 to below 1"
            )
        if len(self.noise) != 2:
            raise InvalidParameter(
                "sample noise", self.noise, "two numbers, for position and rotation"
            )
        for deviation in self.noise:
            check_not_negative(sample_noise=deviation)
        if not isinstance(self.seed, (int, np.integer)) or self.seed < 0:
            raise InvalidParameter("sample seed", self.seed, "a whole number, not negative")

    def of(self, path: Trajectory) -> Trajectory:
        """The samples that such a source gives of a path; more than ten million are InvalidParameter."""
        if self == Sampling(seed=self.seed):
            return path
        for_jitter, for_dropout, for_noise = (
            np.random.default_rng([self.seed, stream]) for stream in range(3)
        )
        times, poses = path.times, path.poses
        if self.rate is not None:
            duration, periods = path.duration, path.duration * self.rate
            if periods > 1e7:
                raise InvalidParameter(
                    "sample rate", self.rate, f"at most {1e7 / duration:g} Hz for {duration:g} s"
                )
            # k / rate up to the path's duration, and its end.
            instants = np.append(np.arange(math.ceil(periods - 1e-9)) / self.rate, duration)
            times, poses = path.times[0] + instants, path.reference(instants)
        if self.jitter:
            moves = for_jitter.normal(0.0, self.jitter, len(times))
            gaps = np.diff(times)
            moves = np.clip(
                moves, -_MAX_MOVE * np.append(0.0, gaps), _MAX_MOVE * np.append(gaps, 0.0)
            )
            moves[0] = 0.0
            times = times + moves
            poses = path.reference(times - path.times[0])
        if self.dropout:
            kept = for_dropout.random(len(times)) >= self.dropout
            kept[0] = True
            times, poses = times[kept], poses[kept]
        # A trajectory's quaternions are of unit length: the noise turns those.
        sampled = replace(path, times=times, poses=poses)
        positions, rotations = sampled.poses[:, :3], sampled.poses[:, 3:]
        if any(self.noise):
            shift, turn = (
                deviation * for_noise.normal(size=(len(times), 3)) for deviation in self.noise
            )
            positions, rotations = (
                positions + shift,
                pose.multiply(pose.quaternions(turn), rotations),
            )
        if self.quantisation:
            positions = self.quantisation * np.round(positions / self.quantisation)
        return replace(sampled, poses=np.column_stack([positions, rotations]))
