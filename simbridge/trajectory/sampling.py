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
from simbridge.robot.pose import Array
from simbridge.trajectory.checks import check_not_negative, check_positive
from simbridge.trajectory.trajectory import Trajectory


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
        "Sample the targets for the solver at this rate (held, unless --hold is given); errors count from the path.",
        metavar="HZ",
        unset="the trajectory's",
    )
    # Instants keep their order: none is moved by more than 0.45 of the time to its neighbours.
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
        """The samples that such a source gives of a path.

        Raises:
            InvalidParameter: The rate gives more than ten million samples.
        """
        random = [np.random.default_rng([self.seed, stream]) for stream in range(3)]
        sampled = path if self.rate is None else resampled(path, self.rate)
        sampled = jittered(path, sampled.times, self.jitter, random[0]) if self.jitter else sampled
        sampled = drop_samples(sampled, self.dropout, random[1]) if self.dropout else sampled
        sampled = noisy(sampled, self.noise, random[2]) if any(self.noise) else sampled
        return quantised(sampled, self.quantisation) if self.quantisation else sampled


def resampled(path: Trajectory, rate: float) -> Trajectory:
    """The path at k / rate from its first instant, and at its last.

    Raises:
        InvalidParameter: The rate is not positive, or gives more than ten million samples.
    """
    check_positive(sample_rate=rate)
    periods = path.duration * rate
    if periods > 1e7:
        raise InvalidParameter("sample rate", rate, f"at most {1e7 / path.duration:g} Hz for {path.duration:g} s")
    instants = np.append(np.arange(math.ceil(periods - 1e-9)) / rate, path.duration)
    return replace(path, times=path.times[0] + instants, poses=path.reference(instants))


def jittered(path: Trajectory, stamps: Array, deviation: float, random: np.random.Generator) -> Trajectory:
    """The path at instants scattered about the given stamps (T,), the first of them kept.

    Args:
        path: The sampled path.
        stamps: Strictly increasing, in the path's own time, s.
        deviation: s; no instant moves by more than 0.45 of the time to its neighbours.
        random: The source of random numbers.
    """
    moves = random.normal(0.0, deviation, len(stamps))
    gaps = np.diff(stamps)
    before, after = np.append(0.0, gaps), np.append(gaps, 0.0)
    moves = np.clip(moves, -0.45 * before, 0.45 * after)
    moves[0] = 0.0
    instants = stamps + moves
    return replace(path, times=instants, poses=path.reference(instants - path.times[0]))


def drop_samples(path: Trajectory, dropout: float, random: np.random.Generator) -> Trajectory:
    """The samples that remain if each except the first is lost with a probability of `dropout`."""
    kept = random.random(len(path.times)) >= dropout
    kept[0] = True
    return replace(path, times=path.times[kept], poses=path.poses[kept])


def noisy(path: Trajectory, deviations: tuple[float, float], random: np.random.Generator) -> Trajectory:
    """The samples with normally distributed noise on each axis of position (m) and of the rotation vector (rad)."""
    count = len(path.times)
    shift, turn = (deviation * random.normal(size=(count, 3)) for deviation in deviations)
    rotations = pose.multiply(pose.quaternions(turn), path.poses[:, 3:])
    return replace(path, poses=np.column_stack([path.poses[:, :3] + shift, rotations]))


def quantised(path: Trajectory, step: float) -> Trajectory:
    """The samples with positions rounded to whole multiples of `step`, m."""
    check_positive(sample_quantisation=step)
    positions = step * np.round(path.poses[:, :3] / step)
    return replace(path, poses=np.column_stack([positions, path.poses[:, 3:]]))
