"""The targets that a low-rate, noisy source makes of a trajectory.

The smooth path remains the reference, and its samples are the targets that a solver gets. Both have
the same first instant and the same clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.trajectory.parameters import check_not_negative, check_positive
from simbridge.trajectory.trajectory import Trajectory

# No sampled instant moves by more than this fraction of the time to its neighbours, so that they
# keep their order.
MAX_SHIFT = 0.45
MAX_SAMPLES = 1e7
# An end that differs from a sample by less is that sample, in samples.
ROUNDING = 1e-9


def _sampling_option(default: Any, help: str, **metadata: Any) -> Any:
    """Describe a field of `Sampling` for the command line."""
    return field(default=default, metadata={"help": help, **metadata})


@dataclass(frozen=True)
class Sampling:
    """A source that samples and degrades a path: rate, jitter, dropout, noise, quantisation.

    They act in this order. The same seed gives the same samples; each part has its own random
    stream, so that changing one part does not change the others. The first sample is never dropped,
    and always at the path's first instant. Values are in SI units; the command line's flags follow
    from these fields (see `planning/options.py`).

    Raises:
        InvalidParameter: One of them is out of its range.
    """

    rate: float | None = _sampling_option(
        None,
        "Sample the targets for the solver at this rate (held between samples, unless --hold is "
        "given); errors are still measured from the path itself.",
        metavar="HZ",
        unset="the trajectory's",
    )
    jitter: float = _sampling_option(
        0.0,
        "Sampling jitter: standard deviation of the instants at which samples are taken, s.",
        metavar="S",
    )
    dropout: float = _sampling_option(
        0.0, "Probability that a sample is lost, from 0 to below 1.", metavar="P"
    )
    noise: tuple[float, float] = _sampling_option(
        (0.0, 0.0),
        "Noise of the samples: standard deviation along and about each axis.",
        metavar="MM DEG",
        units=(1e-3, math.radians(1.0)),
    )
    quantisation: float = _sampling_option(
        0.0,
        "Round sampled positions to multiples of this; 0 for no rounding.",
        metavar="MM",
        units=(1e-3,),
    )
    seed: int = _sampling_option(0, "Seed of jitter, dropout and noise.", metavar="N")

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
                "sample noise", self.noise, "two non-negative numbers, for position and rotation"
            )
        for deviation in self.noise:
            check_not_negative(sample_noise=deviation)
        if not isinstance(self.seed, (int, np.integer)) or self.seed < 0:
            raise InvalidParameter("sample seed", self.seed, "a non-negative integer")

    def of(self, path: Trajectory) -> Trajectory:
        """Return the samples that such a source gives of a path.

        Raises:
            InvalidParameter: The samples are more than ten million.
        """
        if self == Sampling(seed=self.seed):
            return path
        jitter_random = np.random.default_rng([self.seed, 0])
        dropout_random = np.random.default_rng([self.seed, 1])
        noise_random = np.random.default_rng([self.seed, 2])

        times = path.times
        poses = path.poses
        if self.rate is not None:
            instants = self._instants(path.duration, self.rate)
            times = path.times[0] + instants
            poses = path.reference(instants)
        if self.jitter:
            times = self._shift_instants(times, jitter_random)
            poses = path.reference(times - path.times[0])
        if self.dropout:
            is_kept = dropout_random.random(len(times)) >= self.dropout
            is_kept[0] = True
            times = times[is_kept]
            poses = poses[is_kept]

        # A trajectory's quaternions are of unit length: the noise turns those.
        sampled = replace(path, times=times, poses=poses)
        positions = sampled.poses[:, :3]
        rotations = sampled.poses[:, 3:]
        if any(self.noise):
            shift = self.noise[0] * noise_random.normal(size=(len(times), 3))
            rotation_vectors = self.noise[1] * noise_random.normal(size=(len(times), 3))
            positions = positions + shift
            rotations = pose.multiply(pose.quaternions(rotation_vectors), rotations)
        if self.quantisation:
            positions = self.quantisation * np.round(positions / self.quantisation)
        return replace(sampled, poses=np.column_stack([positions, rotations]))

    @staticmethod
    def _instants(duration: float, rate: float) -> Array:
        """Return k / rate up to a duration, s, and its end (T,), s."""
        periods = duration * rate
        if periods > MAX_SAMPLES:
            needed = f"at most {MAX_SAMPLES / duration:g} Hz for {duration:g} s"
            raise InvalidParameter("sample rate", rate, needed)
        return np.append(np.arange(math.ceil(periods - ROUNDING)) / rate, duration)

    def _shift_instants(self, times: Array, random: np.random.Generator) -> Array:
        """Return instants (T,), s, with the jitter; the first one stays."""
        shifts = random.normal(0.0, self.jitter, len(times))
        gaps = np.diff(times)
        earliest = -MAX_SHIFT * np.append(0.0, gaps)
        latest = MAX_SHIFT * np.append(gaps, 0.0)
        shifts = np.clip(shifts, earliest, latest)
        shifts[0] = 0.0
        return times + shifts
