"""Memory that a live loop shares with its parent: a mailbox for inputs, a ring of periods.

Neither locks. The parent writes an input into one of four slots in turn and then publishes its
count; the loop reads the newest, and reads again if it was overwritten meanwhile. So neither the
parent's garbage collector nor its interpreter lock can hold the loop up.
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

# The memory begins with the counts of inputs and periods, and whether the solver is at work.
COUNT_WORDS = 2
HEAD_WORDS = 8
SLOT_COUNT = 4
# Periods kept for the record: more than two minutes at 500 Hz.
ROW_COUNT = 65_536
# The fields of a period that are one number, at the begin of its row, and their types.
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
# The numbers of a period's causes, which follow in its row.
CAUSE_NUMBERS = MAX_CAUSES * NUMBERS_PER_CAUSE
# The numbers of a pose, of which one follows the causes: the target.
POSE_NUMBERS = 7


@dataclass(frozen=True)
class Period:
    """One period of a live loop, as recorded.

    Attributes:
        index: Counts the periods of a loop, from 0.
        now: The loop's clock, s.
        rate: Fraction of full speed: see `LiveMotion.step`.
        engagement: Its number.
        order: What was asked besides inputs.
        number: Number of the input taken in this period; 0 if none was.
        fate: What became of that input.
        phase: After the period.
        speed: Fraction of the wanted step that was made.
        solver: How long solver, limiter and checks took, s; nan where that does not count.
        causes: What slowed the arm down; the first three.
        target: Pose (7,).
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
    """Return how many numbers are in the memory for n joints: counts, slots and rows."""
    slots = SLOT_COUNT * (1 + longest_row(n))
    # Target, then solution and setpoint of n joints each.
    row = len(SCALARS) + CAUSE_NUMBERS + POSE_NUMBERS + 2 * n
    rows = ROW_COUNT * row
    return HEAD_WORDS + slots + rows


class LiveChannel:
    """The shared memory of a live session.

    Args:
        path: The file, made by `create`; None for memory of this process alone.
        n: Number of joints.

    Attributes:
        solving: (1,): see `LiveMotion.solving`; written by the loop.
        overwritten: Periods that were overwritten before the parent read them, since it set this
            to 0.
    """

    def __init__(self, path: Path | None, n: int) -> None:
        self._n = n
        numbers = map_numbers(path, _length(n))

        # How many inputs were posted, and how many periods were written.
        self._counts = numbers[:COUNT_WORDS].view(np.int64)
        self.solving = numbers[COUNT_WORDS : COUNT_WORDS + 1]

        # A slot holds how many numbers its input has, and these.
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
            # The slot is written again only for the fourth input from here.
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

        Overwritten ones are counted.
        """
        while True:
            written = int(self._counts[1])
            if self._read >= written:
                return

            oldest = written - ROW_COUNT + 1
            if self._read < oldest:
                self.overwritten += oldest - self._read
                self._read = oldest
            row = self._rows[self._read % ROW_COUNT].copy()
            if self._read <= int(self._counts[1]) - ROW_COUNT:
                # It was overwritten while it was copied.
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
        """Return the period of a row of numbers."""
        scalars_end = len(SCALARS)
        causes_end = scalars_end + CAUSE_NUMBERS

        fields = {}
        for (name, kind), value in zip(SCALARS.items(), row[:scalars_end].tolist(), strict=True):
            fields[name] = kind(value)

        causes = []
        cause_numbers = row[scalars_end:causes_end].reshape(MAX_CAUSES, NUMBERS_PER_CAUSE)
        for numbers in cause_numbers.tolist():
            name_index, subject_index, value = numbers
            cause = cause_of_row((name_index, subject_index, value), subjects)
            if cause is not None:
                causes.append(cause)

        array_ends = (POSE_NUMBERS, POSE_NUMBERS + self._n)
        target, solution, setpoint = np.split(row[causes_end:], array_ends)
        return Period(
            **fields, causes=tuple(causes), target=target, solution=solution, setpoint=setpoint
        )
