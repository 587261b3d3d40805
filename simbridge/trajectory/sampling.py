"""The low-rate, noisy targets of teleoperation from a smooth path: rate, jitter, dropout, noise, quantisation.

The smooth path remains the reference; these functions return the target that a solver is given. Both have the same
first instant and the same clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.robot import pose
from simbridge.trajectory.paths import check_not_negative, check_positive
from simbridge.trajectory.trajectory import Trajectory

# No instant moves by more than this part of the time to its neighbours, so that they keep their order.
_MAX_MOVE = 0.45


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
    jitter: float = _field(0.0, "Standard deviation of the instants at which samples are taken, s.", metavar="S")
    dropout: float = _field(0.0, "Probability that a sample is lost, from 0 to below 1.", metavar="P")
    noise: tuple[float, float] = _field(
        (0.0, 0.0),
        "Standard deviation of the samples along and about each axis.",
        metavar="MM DEG",
        units=(1e-3, math.radians(1.0)),
    )
    quantisation: float = _field(
        0.0, "Round the positions of samples to multiples of this; 0 for none.", metavar="MM", units=(1e-3,)
    )
    seed: int = _field(0, "Seed of jitter, dropout and noise.", metavar="N")

    def __post_init__(self) -> None:
        if self.rate is not None:
            check_positive(sample_rate=self.rate)
        check_not_negative(sample_jitter=self.jitter, sample_quantisation=self.quantisation)
        if not 0.0 <= self.dropout < 1.0:
            raise InvalidParameter("sample dropout", self.dropout, "a probability from 0 to below 1")
        if len(self.noise) != 2:
            raise InvalidParameter("sample noise", self.noise, "two numbers, for position and rotation")
        for deviation in self.noise:
            check_not_negative(sample_noise=deviation)
        if not isinstance(self.seed, (int, np.integer)) or self.seed < 0:
            raise InvalidParameter("sample seed", self.seed, "a whole number, not negative")

    def of(self, path: Trajectory) -> Trajectory:
        """The samples that such a source gives of a path; more than ten million are InvalidParameter."""
        if self == Sampling(seed=self.seed):
            return path
        for_jitter, for_dropout, for_noise = (np.random.default_rng([self.seed, stream]) for stream in range(3))
        times, poses = path.times, path.poses
        if self.rate is not None:
            duration, periods = path.duration, path.duration * self.rate
            if periods > 1e7:
                raise InvalidParameter("sample rate", self.rate, f"at most {1e7 / duration:g} Hz for {duration:g} s")
            # k / rate up to the path's duration, and its end.
            instants = np.append(np.arange(math.ceil(periods - 1e-9)) / self.rate, duration)
            times, poses = path.times[0] + instants, path.reference(instants)
        if self.jitter:
            moves = for_jitter.normal(0.0, self.jitter, len(times))
            gaps = np.diff(times)
            moves = np.clip(moves, -_MAX_MOVE * np.append(0.0, gaps), _MAX_MOVE * np.append(gaps, 0.0))
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
            shift, turn = (deviation * for_noise.normal(size=(len(times), 3)) for deviation in self.noise)
            positions, rotations = positions + shift, pose.multiply(pose.quaternions(turn), rotations)
        if self.quantisation:
            positions = self.quantisation * np.round(positions / self.quantisation)
        return replace(sampled, poses=np.column_stack([positions, rotations]))
