"""The true motion behind noisy samples of it: another recording, by the same clock."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simbridge.errors import InputFileError
from simbridge.quoting import quoted
from simbridge.text import join_words, plain, significant
from simbridge.trajectory.tables.unit_rules import DATES
from simbridge.trajectory.trajectory import Trajectory

# Stamps of seconds since 1970 are doubles, which are 0.24 us apart, s.
STAMP_RESOLUTION = 1e-6
NANOSECONDS_PER_SECOND = 1_000_000_000


def cut_to_samples(
    truth: Trajectory, samples: Trajectory, offset: float | None = None
) -> Trajectory:
    """Return the part of a true motion at the time of samples of it.

    It begins with the first sample and ends with the last one, at poses interpolated there.

    Args:
        truth: The true motion, as it was recorded.
        samples: The samples, as they were recorded.
        offset: Time to add to the stamps of the true motion, s; None if both have one clock.

    Raises:
        InputFileError: The two have different clocks, or the truth does not cover the samples.
    """
    begin = _begin_after(truth, samples)
    if offset is None:
        _check_clocks(truth, samples, begin)
    else:
        begin -= offset
    end = begin + samples.duration
    _check_cover(truth, samples, begin=begin, offset=offset or 0.0)

    inside = np.flatnonzero((truth.elapsed > begin) & (truth.elapsed < end))
    instants = np.concatenate([[begin], truth.elapsed[inside], [end]])
    if len(samples.times) == 1:
        instants = instants[:1]
    poses = truth.reference(instants)
    return replace(truth, times=instants - begin, poses=poses, epoch_ns=0)


def _begin_after(truth: Trajectory, samples: Trajectory) -> float:
    """Return when the first sample is, s after the first pose of the truth, by their stamps."""
    # Whole ns first: seconds since 1970 are longer than a double.
    zeros = (samples.epoch_ns - truth.epoch_ns) / NANOSECONDS_PER_SECOND
    return float(zeros + (samples.times[0] - truth.times[0]))


def _check_clocks(truth: Trajectory, samples: Trajectory, begin: float) -> None:
    """Refuse times of which some count from 1970 and others from a zero of their own."""
    truth_is_dated = _is_dated(truth)
    if truth_is_dated == _is_dated(samples):
        return
    dated, other = (truth, samples) if truth_is_dated else (samples, truth)
    raise InputFileError(
        truth.source,
        f"the times of {quoted(dated.source)} count from 1970, those of {quoted(other.source)} "
        "from their own zero: --reference needs the same clock for "
        f"both{_offset_advice(truth, samples, begin)}",
        field="time",
    )


def _first_time(trajectory: Trajectory) -> float:
    """Return the first stamp, s by the clock of the file."""
    return trajectory.epoch_ns / NANOSECONDS_PER_SECOND + float(trajectory.times[0])


def _is_dated(trajectory: Trajectory) -> bool:
    """Return whether times count from 1970."""
    return DATES.contain(_first_time(trajectory))


def _check_cover(truth: Trajectory, samples: Trajectory, *, begin: float, offset: float) -> None:
    """Refuse a truth that does not cover samples.

    Args:
        truth: The true motion.
        samples: The samples.
        begin: Instant of the first sample, s after the first pose of the truth.
        offset: Time that was added to the stamps of the truth, s.
    """
    end = begin + samples.duration
    is_apart = begin > truth.duration or end < 0.0
    missing = []
    if begin < -STAMP_RESOLUTION:
        missing.append(f"the first {significant(-begin, 4)} s")
    if end > truth.duration + STAMP_RESOLUTION:
        missing.append(f"the last {significant(end - truth.duration, 4)} s")
    if not missing:
        return

    lack = "all of it" if is_apart else join_words(missing)
    shift = f" with --reference-offset {plain(offset)}" if offset else ""
    raise InputFileError(
        truth.source,
        f"as --reference, it must cover the whole time of the targets, but lacks {lack}. "
        f"{quoted(samples.source)} is at {_time_range(samples)}, the reference at "
        f"{_time_range(truth, offset)}{shift}{_offset_advice(truth, samples, begin + offset)}",
        field="time",
    )


def _time_range(trajectory: Trajectory, offset: float = 0.0) -> str:
    """Return the first and the last stamp, s by the clock of the file plus an offset."""
    first = _first_time(trajectory) + offset
    return f"{first:.3f} to {first + trajectory.duration:.3f} s"


def _offset_advice(truth: Trajectory, samples: Trajectory, begin: float) -> str:
    """Return how to state the offset of a clock, with that between the beginnings as a guess.

    Args:
        truth: The true motion.
        samples: The samples.
        begin: Time from the first stamp of the truth to the first of the samples, s.
    """
    if samples.duration > truth.duration + STAMP_RESOLUTION:
        durations = f"{significant(truth.duration, 4)} s, {significant(samples.duration, 4)} s"
        return f". It is shorter than the targets ({durations}), so no offset can help"
    return (
        f". If the two clocks differ, give the offset: --reference-offset {begin:.6f} (a guess "
        "that assumes both recordings start at the same instant)"
    )
