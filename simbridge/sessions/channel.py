"""Memory that a live loop shares with its parent: a mailbox for inputs, a ring of periods.

Neither locks. The parent writes an input into one of four slots in turn and then publishes its
count; the loop reads the newest, and reads again if it was overwritten meanwhile. So neither the
parent's garbage collector nor its interpreter lock can hold the loop up.

The memory is an array of numbers of 64 bits:

    head     HEAD_WORDS: count of inputs, count of periods (both int64), whether the solver is at
             work; the others are not used
    slots    SLOT_COUNT, each: how many numbers its input has, and these (`Input.row`)
    rows     ROW_COUNT, each a period: SCALARS, MAX_CAUSES causes of NUMBERS_PER_CAUSE numbers
             (`cause_rows`), target (7), solution (n), setpoint (n)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simbridge.backends.mapped_memory import map_numbers
from simbridge.robot.pose import Array
from simbridge.sessions.causes import (
    MAX_CAUSES,
    NUMBERS_PER_CAUSE,
    LiveCause,
    cause_of_row,
    cause_rows,
)
from simbridge.sessions.inputs import Fate, Input, longest_row
from simbridge.sessions.phases import LivePhase, Order

# Numbers of the head that are counts.
COUNT_WORDS = 2
# Numbers of the head.
HEAD_WORDS = 8
# Slots for inputs.
SLOT_COUNT = 4
# Periods kept for the record: more than two minutes at 500 Hz.
ROW_COUNT = 65_536
# The fields of a period that are one number, in the order of its row -> their types.
SCALARS: dict[str, Callable[..., Any]] = {
    "index": int,
    "now": float,
    "rate": float,
    "engagement": int,
    "order": Order,
    "number": int,
    "fate": Fate,
    "phase": LivePhase,
    "speed": float,
    "solver": float,
}
# Numbers of a period's causes.
CAUSE_NUMBERS = MAX_CAUSES * NUMBERS_PER_CAUSE
# Numbers of a pose.
POSE_NUMBERS = 7


@dataclass(frozen=True)
class Period:
    """One period of a live loop, as recorded.

    Attributes:
        index: Counts the periods of a loop, from 0.
        now: The loop's clock, s.
        rate: Fraction of full speed: see `LiveMotion.step`.
        engagement: Number of the engagement.
        order: The order that was taken in this period.
        number: Number of the input that was taken in this period; 0 if none was.
        fate: What became of that input.
        phase: The phase after the period.
        speed: Fraction of the wanted step that was made.
        solver: How long solver, limiter and checks took, s; nan if that does not count.
        causes: What slowed the arm down; the first three causes.
        target: Pose (7,) towards which the solver was stepped.
        solution: Joint positions that the solver found (n,), rad.
        setpoint: Joint positions that are sent (n,), rad.
    """

    index: int
    now: float
    rate: float
    engagement: int
    order: Order
    number: int
    fate: Fate
    phase: LivePhase
    speed: float
    solver: float
    causes: tuple[LiveCause, ...]
    target: Array
    solution: Array
    setpoint: Array


def _length(n: int) -> int:
    """Return how many numbers are in the memory for n joints."""
    slot = 1 + longest_row(n)
    row = len(SCALARS) + CAUSE_NUMBERS + POSE_NUMBERS + n + n
    return HEAD_WORDS + SLOT_COUNT * slot + ROW_COUNT * row


class LiveChannel:
    """The shared memory of a live session.

    Args:
        path: The file, made by `create`; None for memory of this process alone.
        n: Number of joints.

    Attributes:
        solving: Whether the solver is at work (1,): see `LiveMotion.solving`; the loop writes it.
        overwritten: Number of periods that were overwritten before the parent read them, since it
            set this to 0.
    """

    def __init__(self, path: Path | None, n: int) -> None:
        self._n = n
        numbers = map_numbers(path, _length(n))

        # The parts of the memory, as the module describes them.
        self._counts = numbers[:COUNT_WORDS].view(np.int64)
        self.solving = numbers[COUNT_WORDS : COUNT_WORDS + 1]
        slots_end = HEAD_WORDS + SLOT_COUNT * (1 + longest_row(n))
        self._slots = numbers[HEAD_WORDS:slots_end].reshape(SLOT_COUNT, -1)
        self._rows = numbers[slots_end:].reshape(ROW_COUNT, -1)

        # How many periods the parent has read.
        self._read = 0
        self.overwritten = 0

    @staticmethod
    def create(path: Path, n: int) -> LiveChannel:
        """Make the file, in full, so that no page has to be allocated later."""
        path.write_bytes(bytes(8 * _length(n)))
        return LiveChannel(path, n)

    def post(self, item: Input) -> None:
        """Replace the newest input (called by the parent, from one thread at a time)."""
        count = int(self._counts[0]) + 1
        row = item.row()
        slot = self._slots[count % SLOT_COUNT]
        slot[0] = len(row)
        slot[1 : 1 + len(row)] = row
        self._counts[0] = count

    def newest(self) -> Input | None:
        """Return the newest input; None before the first (called by the loop)."""
        while True:
            count = int(self._counts[0])
            if not count:
                return None
            slot = self._slots[count % SLOT_COUNT]
            row = slot[1 : 1 + int(slot[0])].copy()
            # The fourth input from here is written into the same slot, before it is counted. While
            # fewer than three have been counted, that has not begun.
            if int(self._counts[0]) < count + SLOT_COUNT - 1:
                return Input.of(row)

    def write(self, period: Period, subjects: dict[str, int]) -> None:
        """Record a period (called by the loop).

        Args:
            period: The period; more than `MAX_CAUSES` causes are cut off.
            subjects: The index of each name that subjects of causes may have.
        """
        # Fill the row in: scalars, causes, arrays.
        count = int(self._counts[1])
        row = self._rows[count % ROW_COUNT]
        scalars_end = len(SCALARS)
        causes_end = scalars_end + CAUSE_NUMBERS
        row[:scalars_end] = [getattr(period, name) for name in SCALARS]
        row[scalars_end:causes_end] = np.ravel(cause_rows(period.causes, subjects))
        row[causes_end:] = np.concatenate([period.target, period.solution, period.setpoint])

        # Publish it last: the parent reads only rows that are counted.
        self._counts[1] = count + 1

    def periods(self, subjects: tuple[str, ...]) -> Iterator[Period]:
        """Yield the periods since the last call, oldest first (called by the parent).

        Periods that were overwritten meanwhile are counted in `overwritten`.

        Args:
            subjects: The names that subjects of causes may have.
        """
        while True:
            written = int(self._counts[1])
            if self._read >= written:
                return

            # Skip what was overwritten; the row of the oldest period may be being written.
            oldest = written - ROW_COUNT + 1
            if self._read < oldest:
                self.overwritten += oldest - self._read
                self._read = oldest

            # A row that was overwritten while it was copied is skipped, too.
            row = self._rows[self._read % ROW_COUNT].copy()
            if self._read <= int(self._counts[1]) - ROW_COUNT:
                continue
            self._read += 1
            yield self._period(row, subjects)

    def last(self, subjects: tuple[str, ...]) -> Period | None:
        """Return the newest period; None before the first."""
        count = int(self._counts[1])
        if not count:
            return None
        return self._period(self._rows[(count - 1) % ROW_COUNT].copy(), subjects)

    def _period(self, row: Array, subjects: tuple[str, ...]) -> Period:
        """Return the period of a row, as `write` fills it in.

        Args:
            row: The numbers of the row.
            subjects: The names that subjects of causes may have.
        """
        # Take the row apart.
        causes_start = len(SCALARS)
        target_start = causes_start + CAUSE_NUMBERS
        solution_start = target_start + POSE_NUMBERS
        setpoint_start = solution_start + self._n
        starts = (causes_start, target_start, solution_start, setpoint_start)
        scalars, cause_numbers, target, solution, setpoint = np.split(row, starts)

        # The scalars in their types: a row holds all of them as floats.
        fields = {}
        for (name, kind), value in zip(SCALARS.items(), scalars.tolist(), strict=True):
            fields[name] = kind(value)

        causes = []
        for cause_row in cause_numbers.reshape(MAX_CAUSES, NUMBERS_PER_CAUSE).tolist():
            cause = cause_of_row(cause_row, subjects)
            if cause is not None:
                causes.append(cause)

        return Period(
            **fields, causes=tuple(causes), target=target, solution=solution, setpoint=setpoint
        )
