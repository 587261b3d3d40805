"""The file in which the control socket hands over the record of the emulator, and its contents."""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simbridge.robot.pose import Array

# A package of RTDE inputs: the tick in which it arrived, names, values.
InputPackage = tuple[int, tuple[str, ...], tuple[object, ...]]

# Number of packages that are converted at a time, which holds Python's lock for a millisecond.
PACKAGES_PER_PIECE = 250
# The pause after a piece, s.
PIECE_PAUSE_S = 0.001


@dataclass(frozen=True)
class Recorded:
    """The emulator's record of ticks (K,) and of RTDE input packages (M).

    Attributes:
        tick: Number of each tick (K,).
        setpoint: servoj's setpoint in force (K, n), rad; nan without one.
        target_q: Joint targets at each tick (K, n), rad.
        actual_q: Joint positions at each tick (K, n), rad.
        input_tick: The tick in which each package arrived (M,).
        inputs: Names and values of each package (M).
    """

    tick: Array
    setpoint: Array
    target_q: Array
    actual_q: Array
    input_tick: Array
    inputs: list[tuple[list[str], list[Any]]]


def new_record_path(path: str) -> Path:
    """Return a path as that of a record, if a record may be written there.

    Raises:
        ValueError: It is not an npz file under the temporary directory or the working directory.
    """
    file = Path(path)
    folders = [Path(tempfile.gettempdir()).resolve(), Path.cwd().resolve()]
    is_allowed = any(file.resolve().is_relative_to(folder) for folder in folders)
    if file.suffix != ".npz" or not is_allowed:
        allowed = " or ".join(map(str, folders))
        raise ValueError(f"path is {path!r}; a record is a new .npz file under {allowed}")
    return file.resolve()


def write_record(file: Path, ticks: dict[str, Any], inputs: list[InputPackage]) -> None:
    """Write parts of a record as npz: the ticks; input_tick and inputs, the latter as JSON.

    Packages are converted in pieces with pauses: the system stops a thread with real-time priority
    that never pauses, together with all others of that priority.

    Args:
        file: A new file.
        ticks: Arrays by name: see `Record.ticks`.
        inputs: Input packages of RTDE.

    Raises:
        OSError: The file exists, or cannot be written.
    """
    pieces = []
    for start in range(0, len(inputs), PACKAGES_PER_PIECE):
        packages = inputs[start : start + PACKAGES_PER_PIECE]
        text = json.dumps([(names, values) for _, names, values in packages])
        # Without the brackets: the pieces make one list.
        pieces.append(text[1:-1].encode())
        time.sleep(PIECE_PAUSE_S)

    input_tick = np.array([tick for tick, _, _ in inputs], dtype=np.int64)
    with file.open("xb") as output:
        np.savez(
            output,
            input_tick=input_tick,
            inputs=np.frombuffer(b",".join(pieces), dtype=np.uint8),
            **ticks,
        )


def read_record(path: Path) -> Recorded:
    """Return the contents of a file that `write_record` has written."""
    with np.load(path) as data:
        packages = json.loads(b"[%b]" % data["inputs"].tobytes())
        return Recorded(
            tick=data["tick"],
            setpoint=data["setpoint"],
            target_q=data["target_q"],
            actual_q=data["actual_q"],
            input_tick=data["input_tick"],
            inputs=[(names, values) for names, values in packages],
        )
