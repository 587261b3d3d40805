"""The record of a controller: what happened in its latest ticks."""

from __future__ import annotations

import json
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array

RECORD_LENGTH = 200_000
_PIECE, _PAUSE = 250, 0.001  # packages that are converted at once, and the pause after them, s


class Record:
    """What happened; only the latest RECORD_LENGTH ticks and packages are kept.

    Args:
        n: Number of the arm's joints.

    Attributes:
        inputs: Every RTDE input package on arrival: tick, names, values.
    """

    def __init__(self, n: int) -> None:
        self.inputs: deque[tuple[int, tuple[str, ...], tuple[object, ...]]] = deque(maxlen=RECORD_LENGTH)
        self._n, self._count = n, 0
        self._rows = np.zeros((RECORD_LENGTH, 1 + 3 * n))

    def add(self, tick: int, setpoint: Array | None, target_q: Array, actual_q: Array) -> None:
        """A tick: its number, servoj's setpoint in force, target and actual joints (n,), rad."""
        n, row = self._n, self._rows[self._count % RECORD_LENGTH]
        row[0] = tick
        row[1 : n + 1] = np.nan if setpoint is None else setpoint
        row[n + 1 : 2 * n + 1], row[2 * n + 1 :] = target_q, actual_q
        self._count += 1

    def past_q(self, steps: int) -> Array:
        """The actual joints (n,), rad, of an earlier tick: 0 is the latest.

        Raises:
            InvalidParameter: That tick is not in the record.
        """
        most = min(self._count, RECORD_LENGTH) - 1
        if not 0 <= steps <= most:
            raise InvalidParameter("number of steps back", steps, f"from 0 to {most}: as many are recorded")
        past: Array = self._rows[(self._count - 1 - steps) % RECORD_LENGTH, 2 * self._n + 1 :]
        return past

    def ticks(self, after: int = -1) -> dict[str, Array]:
        """The ticks after one: tick (K,), setpoint (nan without servoj), target_q, actual_q (K, n), rad."""
        newest = int(self._rows[(self._count - 1) % RECORD_LENGTH, 0]) if self._count else -1
        wanted = min(self._count, RECORD_LENGTH, max(newest - after, 0))
        rows = self._rows[np.arange(self._count - wanted, self._count) % RECORD_LENGTH]
        setpoint, target_q, actual_q = np.split(rows[:, 1:], 3, axis=1)
        return {"tick": rows[:, 0].astype(np.int64), "setpoint": setpoint, "target_q": target_q, "actual_q": actual_q}


def save(file: Path, ticks: dict[str, Array], inputs: list[Any]) -> None:
    """Write parts of a record as npz: ticks; input_tick and inputs, the latter as JSON.

    In pieces with pauses: one holds Python's lock for a millisecond; and a thread with real-time priority that never
    pauses is stopped by the system, together with all others of that priority.
    """
    texts = []
    for at in range(0, len(inputs), _PIECE):
        texts.append(json.dumps([pair for _, *pair in inputs[at : at + _PIECE]])[1:-1].encode())
        time.sleep(_PAUSE)
    arrays: dict[str, Any] = {
        **ticks,
        "input_tick": np.array([tick for tick, *_ in inputs], dtype=np.int64),
        "inputs": np.frombuffer(b",".join(texts), dtype=np.uint8),
    }
    with file.open("xb") as output:
        np.savez(output, **arrays)


def new_record(path: str) -> Path:
    """The path of a record where one may be written; else a ValueError."""
    file = Path(path)
    folders = [Path(tempfile.gettempdir()).resolve(), Path.cwd().resolve()]
    if file.suffix != ".npz" or not any(file.resolve().is_relative_to(folder) for folder in folders):
        raise ValueError(f"path is {path!r}; a record is a new .npz file under {' or '.join(map(str, folders))}")
    return file.resolve()
