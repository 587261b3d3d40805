"""The ring of states that the servo process and its parent share.

The servo process must never wait for its parent, so nothing here locks. States go to the parent
through a ring of rows that the parent reads when it has time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from simbridge.backends.backend import ArmState
from simbridge.backends.mapped_memory import map_numbers
from simbridge.robot.pose import Array

# The largest number of states that are kept, two minutes at 500 Hz: a parent that is delayed by
# less misses none.
MAX_ROWS = 65_536

# A row holds the numbers of an `ArmState`, then its vectors (n,), all as 8-byte floats. The time in
# the plan is in periods there.
NUMBERS = (
    "sequence",
    "plan_time",
    "host_sent",
    "host_monotonic",
    "timestamp",
    "speed_scaling",
    "robot_mode",
    "safety_mode",
    "runtime_state",
)
# The numbers of a row that an `ArmState` has as integers.
INTEGERS = (
    "sequence",
    "robot_mode",
    "safety_mode",
    "runtime_state",
)
VECTORS = (
    "q",
    "qd",
    "effort",
    "controller_target",
    "controller_target_velocity",
    "controller_target_acceleration",
    "command",
)

# Number of words of 8 bytes at the start of the file, before the first row.
HEAD_WORDS = 64
# Index of the word among them that counts the rows written.
WRITTEN_WORD = 0


class StateRing:
    """A mapped file with a ring of states.

    Args:
        path: The file, made by `create`; None for memory of this process alone.
        joints: Number of joints n.
        rows: Number of states kept until they are overwritten.

    Attributes:
        rows: Number of states kept until they are overwritten.
    """

    def __init__(self, path: Path | None, joints: int, rows: int) -> None:
        self._joints = joints
        self.rows = rows

        # The head, whose words are counts, and the rows.
        words = map_numbers(path, _word_count(joints, rows))
        self._rows = words[HEAD_WORDS:].reshape(rows, -1)
        self._counts = words[:HEAD_WORDS].view(np.int64)
        # Number of states that this process has read.
        self._read = 0

    @staticmethod
    def create(path: Path, joints: int, states: int) -> StateRing:
        """Make the file, large enough for all states or for two minutes, whichever is less.

        Args:
            path: The path of the file.
            joints: Number of joints n.
            states: Number of states that will be written.
        """
        # It is written in full, so that no page has to be allocated while the arm is servoed.
        rows = min(states, MAX_ROWS)
        path.write_bytes(bytes(8 * _word_count(joints, rows)))
        return StateRing(path, joints, rows)

    @property
    def written(self) -> int:
        """Number of states written so far."""
        return int(self._counts[WRITTEN_WORD])

    @property
    def last_timestamp(self) -> float:
        """The controller's clock at the newest state, s; 0 before the first."""
        newest = self._rows[(self.written - 1) % self.rows]
        return float(newest[NUMBERS.index("timestamp")])

    def write(self, numbers: tuple[float, ...], vectors: tuple[Array, ...]) -> None:
        """Add a state; it is called by the servo process.

        Args:
            numbers: The numbers in the order of `NUMBERS`.
            vectors: The vectors, each (n,), in the order of `VECTORS`.
        """
        count = int(self._counts[WRITTEN_WORD])
        row = self._rows[count % self.rows]
        row[: len(NUMBERS)] = numbers
        row[len(NUMBERS) :] = np.concatenate(vectors)

        # Count it last: the parent reads only rows that are counted.
        self._counts[WRITTEN_WORD] = count + 1

    def new_states(self, period: float) -> Iterator[ArmState]:
        """Yield the states since the last call, oldest first, without overwritten ones.

        It is called by the parent.

        Args:
            period: Control period, s.
        """
        while self._read < self.written:
            # Skip what was overwritten; the row of the oldest state may be being written.
            self._read = max(self._read, self.written - self.rows + 1)
            row = self._rows[self._read % self.rows].copy()

            # The writer may have reached this row while it was copied: the copy may then be a mix
            # of two states, and is skipped, too.
            if self._read <= self.written - self.rows:
                continue
            self._read += 1
            yield self._state(row, period)

    def _state(self, row: Array, period: float) -> ArmState:
        """Return the state that a row holds.

        Args:
            row: The numbers and vectors of the state, whose vectors become views of it.
            period: Control period, s.
        """
        row.setflags(write=False)
        numbers = row[: len(NUMBERS)].tolist()
        vectors = row[len(NUMBERS) :].reshape(len(VECTORS), self._joints)

        # A row holds integers as floats, and the time in the plan in periods.
        fields: dict[str, Any] = dict(zip(NUMBERS, numbers, strict=True))
        for name in INTEGERS:
            fields[name] = int(fields[name])
        fields["plan_time"] *= period
        fields.update(zip(VECTORS, vectors, strict=True))
        return ArmState(**fields)


def _word_count(joints: int, rows: int) -> int:
    """Return the size of the file in words of 8 bytes."""
    return HEAD_WORDS + rows * (len(NUMBERS) + len(VECTORS) * joints)
