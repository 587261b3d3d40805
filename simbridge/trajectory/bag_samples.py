"""Samples of a bag's messages in the order of their times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simbridge.errors import InputFileError
from simbridge.robot.pose import Array, Counts, Flags
from simbridge.text import counted
from simbridge.trajectory.dropped_rows import (
    DroppedRows,
    dropped_rows,
    late_rows,
    lost_samples,
)

NANOSECONDS_PER_SECOND = 1_000_000_000
# Samples of one instant that differ less are repetitions.
SAME_VALUE = 1e-12


@dataclass(frozen=True, eq=False)
class BagSamples:
    """Samples in the order of their messages.

    Attributes:
        name: Name of the topic, for messages.
        noun: What the samples are, in the singular: "pose".
        stamps: Stamps of the samples (T,), ns; all zero if there are none.
        recorded: Times of recording (T,), ns.
        values: Numbers of the samples (T, k).
        numbers: The message of each (T,), counted from 1.
        unit: What `numbers` counts: "message", or "pose" where all are of one message.
    """

    name: str
    noun: str
    stamps: Counts
    recorded: Counts
    values: Array
    numbers: Counts
    unit: str = "message"

    @property
    def has_stamps(self) -> bool:
        """True if the messages have stamps of their own."""
        return bool(self.stamps.any())


@dataclass(frozen=True, eq=False)
class SortedSamples:
    """Samples in the order of their times, each instant once.

    Attributes:
        stamps: Times (T,), ns, increasing.
        values: Numbers of the samples (T, k).
        numbers: The message of each (T,); see `BagSamples`.
        unit: What `numbers` counts.
        notes: What was left out, and what was sorted.
    """

    stamps: Counts
    values: Array
    numbers: Counts
    unit: str
    notes: tuple[DroppedRows | str, ...] = ()

    def pick(
        self, is_kept: Flags, values: Array, notes: Sequence[DroppedRows | str]
    ) -> SortedSamples:
        """Return some of the samples.

        Args:
            is_kept: Which of them (T,).
            values: The numbers (T, k) that they have instead.
            notes: What follows the present notes.
        """
        return SortedSamples(
            self.stamps[is_kept],
            values[is_kept],
            self.numbers[is_kept],
            self.unit,
            (*self.notes, *notes),
        )


def sort_samples(path: Path, samples: BagSamples) -> SortedSamples:
    """Return samples in the order of their times, without lost ones and repetitions.

    Args:
        path: The bag, for messages.
        samples: The samples, in the order of their messages.

    Raises:
        InputFileError: A number is not finite, or two samples of one instant differ.
    """
    times = samples.stamps if samples.has_stamps else samples.recorded
    values = samples.values
    numbers = samples.numbers
    unit = samples.unit
    notes: list[DroppedRows | str] = []

    # Nan is what trackers send for a sample that they have lost.
    is_lost: Flags = np.asarray(np.isnan(values).any(axis=1))
    notes += lost_samples(numbers[is_lost], unit=unit)
    times = times[~is_lost]
    values = values[~is_lost]
    numbers = numbers[~is_lost]
    if not len(values):
        count = counted(len(is_lost), "sample")
        reason = f"{samples.name}: all of its {count} are lost (nan)"
        raise InputFileError(path, reason, field=samples.noun)
    not_finite = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(not_finite):
        number = numbers[not_finite[0]]
        reason = f"{samples.name}, {unit} {number} has a non-finite number"
        raise InputFileError(path, reason, field=samples.noun)

    # In the order of their times.
    is_late = times < np.maximum.accumulate(times)
    notes += late_rows(unit, numbers[is_late])
    order = np.argsort(times, kind="stable")
    times = times[order]
    values = values[order]
    numbers = numbers[order]

    # Two samples for one instant must be equal.
    repeated = np.flatnonzero(np.diff(times) == 0) + 1
    differs = (np.abs(values[repeated] - values[repeated - 1]) > SAME_VALUE).any(axis=1)
    if differs.any():
        index = repeated[differs][0]
        first, second = sorted(numbers[index - 1 : index + 1].tolist())
        instant = float(times[index]) / NANOSECONDS_PER_SECOND
        reason = (
            f"{samples.name}, {unit}s {first} and {second} have two {samples.noun}s with the "
            f"same timestamp, {instant!r} s"
        )
        if not samples.has_stamps:
            reason += "; they have no usable timestamps: with --rate HZ they are evenly spaced"
        raise InputFileError(path, reason, field="stamp")

    places = np.sort(numbers[repeated])
    notes += dropped_rows(f"repeated {samples.noun}", places, unit=unit)
    is_kept = np.ones(len(times), dtype=bool)
    is_kept[repeated] = False
    return SortedSamples(times[is_kept], values[is_kept], numbers[is_kept], unit, tuple(notes))
