"""The record of a controller: what happened in the latest ticks."""

from __future__ import annotations

import json
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from simbridge.robot.pose import Array

RECORD_LENGTH = 200_000
_PIECE, _PAUSE = 250, 0.001  # rows of a record that are converted at once, and the pause after them, s


@dataclass
class Record:
    """What happened; only the latest entries are kept.

    Attributes:
        inputs: Every RTDE input package on arrival: tick, names, values.
        ticks: Every tick: number, servoj setpoint in force (or None), target joints, actual joints.
    """

    inputs: deque[tuple[int, tuple[str, ...], tuple[object, ...]]] = field(
        default_factory=lambda: deque(maxlen=RECORD_LENGTH)
    )
    ticks: deque[tuple[int, Array | None, Array, Array]] = field(default_factory=lambda: deque(maxlen=RECORD_LENGTH))

    def copy(self) -> Record:
        """What is recorded up to now."""
        return Record(self.inputs.copy(), self.ticks.copy())

    def save(self, file: Path) -> None:
        """Write it as npz: tick, setpoint (nan without servoj), target_q, actual_q; input_tick, inputs."""
        n = len(self.ticks[0][2]) if self.ticks else 0
        none = np.full(n, np.nan)
        texts = [json.dumps([pair for _, *pair in piece])[1:-1].encode() for piece in _pieces(list(self.inputs))]
        arrays: dict[str, Any] = {
            "tick": _array([t for t, *_ in self.ticks]),
            "setpoint": _array([none if s is None else s for _, s, _, _ in self.ticks]),
            "target_q": _array([q for _, _, q, _ in self.ticks]),
            "actual_q": _array([q for *_, q in self.ticks]),
            "input_tick": _array([t for t, _, _ in self.inputs]),
            "inputs": np.frombuffer(b",".join(texts), dtype=np.uint8),
        }
        with file.open("xb") as output:
            np.savez(output, **arrays)


def _pieces(rows: list[Any]) -> Iterator[list[Any]]:
    """A list in pieces with pauses. A piece holds Python's lock for a millisecond; and a thread with real-time priority
    that never pauses is stopped by the system, together with all others of that priority."""
    for at in range(0, len(rows), _PIECE):
        yield rows[at : at + _PIECE]
        time.sleep(_PAUSE)


def _array(rows: list[Any]) -> Array:
    """As np.array, in pieces."""
    return np.concatenate([np.array(piece) for piece in _pieces(rows)] or [np.empty(0)])


def new_record(path: str) -> Path:
    """The path of a record where one may be written; else a ValueError."""
    file = Path(path)
    folders = [Path(tempfile.gettempdir()).resolve(), Path.cwd().resolve()]
    if file.suffix != ".npz" or not any(file.resolve().is_relative_to(folder) for folder in folders):
        raise ValueError(f"path is {path!r}; a record is a new .npz file under {' or '.join(map(str, folders))}")
    return file.resolve()
