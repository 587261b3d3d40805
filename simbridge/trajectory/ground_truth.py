"""The true motion behind noisy samples of it: another recording, by the same clock."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simbridge.errors import InputFileError
from simbridge.quoting import quoted
from simbridge.text import join_words, significant
from simbridge.trajectory.tables.unit_rules import DATES
from simbridge.trajectory.trajectory import Trajectory

# Stamps of seconds since 1970 are doubles, which are 0.24 us apart, s.
STAMP_RESOLUTION = 1e-6
NANOSECONDS_PER_SECOND = 1_000_000_000


def cut_to_samples(truth: Trajectory, samples: Trajectory) -> Trajectory:
    """Return the part of a true motion at the time of samples of it.

    It begins with the first sample and ends with the last one, at poses interpolated there.

    Args:
        truth: The true motion, as it was recorded.
        samples: The samples, as they were recorded.

    Raises:
        InputFileError: The two have different clocks, or the truth does not cover the samples.
    """
    begin = _begin_after(truth, samples)
    end = begin + samples.duration
    _check_cover(truth, samples, begin=begin, end=end)

    inside = np.flatnonzero((truth.elapsed > begin) & (truth.elapsed < end))
    instants = np.concatenate([[begin], truth.elapsed[inside], [end]])
    if len(samples.times) == 1:
        instants = instants[:1]
    poses = truth.reference(instants)
    return replace(truth, times=instants - begin, poses=poses, epoch_ns=0)


def _begin_after(truth: Trajectory, samples: Trajectory) -> float:
    """Return when the first sample is, s after the first pose of the truth.

    Both clocks count from 1970, or both from one zero of their own.
    """
    truth_is_dated = _is_dated(truth)
    if truth_is_dated != _is_dated(samples):
        dated, other = (truth, samples) if truth_is_dated else (samples, truth)
        raise InputFileError(
            truth.source,
            f"the times of {quoted(dated.source)} count from 1970, those of "
            f"{quoted(other.source)} from a zero of its own: --reference needs one clock for both",
            field="time",
        )
    # Whole ns first: seconds since 1970 are longer than a double.
    zeros = (samples.epoch_ns - truth.epoch_ns) / NANOSECONDS_PER_SECOND
    return float(zeros + (samples.times[0] - truth.times[0]))


def _is_dated(trajectory: Trajectory) -> bool:
    """Return whether times count from 1970."""
    first = trajectory.epoch_ns / NANOSECONDS_PER_SECOND + float(trajectory.times[0])
    return DATES.contain(first)


def _check_cover(truth: Trajectory, samples: Trajectory, *, begin: float, end: float) -> None:
    """Refuse a truth that does not cover samples.

    Args:
        truth: The true motion.
        samples: The samples.
        begin: When the first sample is, s after the first pose of the truth.
        end: When the last one is, the same.
    """
    missing = []
    if begin < -STAMP_RESOLUTION:
        missing.append(f"the first {significant(-begin, 4)} s")
    if end > truth.duration + STAMP_RESOLUTION:
        missing.append(f"the last {significant(end - truth.duration, 4)} s")
    if not missing:
        return
    raise InputFileError(
        truth.source,
        f"as --reference it must cover the time of the targets, {significant(samples.duration, 4)} "
        f"s in {quoted(samples.source)}: it lacks {join_words(missing)} of them. Both files must "
        "have one clock",
        field="time",
    )
