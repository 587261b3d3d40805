"""What the servo process and its parent share: mapped memory with the states, and the newest live setpoint.

The servo process must never wait for its parent, so nothing here locks. States go one way, through a ring of rows that
the parent reads at leisure; the live setpoint goes the other way, under a counter that is odd while it is written.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from simbridge.backends.backend import ArmState
from simbridge.errors import GuardViolation
from simbridge.robot.pose import Array

# A ring of two minutes at 500 Hz: a parent that is held up for less misses nothing.
ROWS = 65_536
_SCALARS = ("sequence", "position", "sent", "received", "timestamp", "scaling", "robot_mode", "safety_mode", "runtime")
_VECTORS = ("q", "qd", "effort", "controller_target", "setpoint")
# Head of the file, as 8-byte words: rows written, mailbox counter, when the setpoint was posted, setpoints taken.
_WRITTEN, _COUNTER, _POSTED, _TAKEN, _SETPOINT, _HEAD = 0, 1, 2, 3, 8, 64


class StateRing:
    """A mapped file of states, and a mailbox for one setpoint.

    Args:
        path: The file; made by `create`, opened by the other process.
        joints: n.
        rows: How many states are kept until they are overwritten.
    """

    def __init__(self, path: Path, joints: int, rows: int) -> None:
        self._n, self._capacity, self._width = joints, rows, len(_SCALARS) + len(_VECTORS) * joints
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 8 * (_HEAD + rows * self._width))
        numbers = np.frombuffer(self._map, dtype=np.float64)
        self._counts = np.frombuffer(self._map, dtype=np.int64)[:_HEAD]
        self._head = numbers[:_HEAD]
        self._rows = numbers[_HEAD:].reshape(rows, self._width)
        self._read = 0
        self._newest: tuple[int, Array, float] | None = None

    @staticmethod
    def create(path: Path, joints: int, states: int) -> StateRing:
        """Make the file, large enough for `states` rows or for two minutes, whichever is less."""
        rows = min(states, ROWS)
        width = len(_SCALARS) + len(_VECTORS) * joints
        # Written, not only stretched: no page is made while the arm is servoed.
        path.write_bytes(bytes(8 * (_HEAD + rows * width)))
        return StateRing(path, joints, rows)

    @property
    def rows(self) -> int:
        """How many states are kept."""
        return self._capacity

    @property
    def written(self) -> int:
        """How many states were written so far."""
        return int(self._counts[_WRITTEN])

    def write(self, scalars: tuple[float, ...], vectors: tuple[Array, ...]) -> None:
        """Add a state: the servo process's side."""
        count = int(self._counts[_WRITTEN])
        row = self._rows[count % self._capacity]
        row[: len(_SCALARS)] = scalars
        row[len(_SCALARS) :] = np.concatenate(vectors)
        self._counts[_WRITTEN] = count + 1

    def new_states(self, period: float) -> Iterator[ArmState]:
        """The states since the last call, oldest first: the parent's side. Those overwritten are passed over."""
        while self._read < self.written:
            self._read = max(self._read, self.written - self._capacity + 1)
            row = self._rows[self._read % self._capacity].copy()
            if self._read <= self.written - self._capacity:
                continue  # it was overwritten while it was copied
            self._read += 1
            yield self._state(row, period)

    def _state(self, row: Array, period: float) -> ArmState:
        row.setflags(write=False)
        s = dict(zip(_SCALARS, row[: len(_SCALARS)].tolist(), strict=True))
        v = dict(zip(_VECTORS, row[len(_SCALARS) :].reshape(len(_VECTORS), self._n), strict=True))
        return ArmState(
            sequence=int(s["sequence"]),
            host_monotonic=s["received"],
            host_sent=s["sent"],
            timestamp=s["timestamp"],
            plan_time=s["position"] * period,
            speed_scaling=s["scaling"],
            robot_mode=int(s["robot_mode"]),
            safety_mode=int(s["safety_mode"]),
            runtime_state=int(s["runtime"]),
            **v,
        )

    def post(self, setpoint: Array) -> int:
        """Put a live setpoint (n,) in place of the last: the parent's side.

        Returns:
            Its number; `taken` tells when it was sent.

        Raises:
            GuardViolation: It has another shape; the one before stays. Its values are judged where they leave.
        """
        q = self._joints(setpoint)
        self._counts[_COUNTER] += 1
        self._head[_SETPOINT : _SETPOINT + self._n] = q
        self._head[_POSTED] = time.monotonic()
        self._counts[_COUNTER] += 1
        return self.posted

    def _joints(self, setpoint: Array) -> Array:
        try:
            q = np.asarray(setpoint, dtype=float)
        except (TypeError, ValueError):
            q = np.empty((0, 0))
        if q.shape != (self._n,):
            raise GuardViolation(
                f"A setpoint must be {self._n} joint positions, and {setpoint!r:.80} is not; the arm was stopped.",
                rule="shape",
            )
        return q

    @property
    def posted(self) -> int:
        """Number of the live setpoint that was posted last."""
        return int(self._counts[_COUNTER])

    def newest(self) -> tuple[int, Array, float] | None:
        """The live setpoint's number, the setpoint (n,), and when it was posted; None before the first."""
        before = int(self._counts[_COUNTER])
        setpoint = self._head[_SETPOINT : _SETPOINT + self._n].copy()
        posted = float(self._head[_POSTED])
        # While one is being written, also for ever because the parent was killed there, the one before it holds.
        if before % 2 == 0 and before == int(self._counts[_COUNTER]) and before:
            self._newest = before, setpoint, posted
        return self._newest

    @property
    def taken(self) -> int:
        """Number of the live setpoint that was sent last."""
        return int(self._counts[_TAKEN])

    def take(self, number: int) -> None:
        """Say that a live setpoint was sent: the servo process's side."""
        self._counts[_TAKEN] = number

    def close(self) -> None:
        """Let go of the memory."""
        del self._counts, self._head, self._rows
        self._map.close()
