"""Recordings of a UR controller's RTDE outputs as text: UR's field names, one row a sample.

Such files are written by UR's own recorder, by ur_rtde and by spreadsheets: separated by blanks, commas or semicolons,
vectors as `target_q_0` or `target_q[0]`, compressed with gzip or not. Rows may be doubled (polled faster than the
controller sends) or missing, at any rate. All values are in SI units, stamps in s by the controller's clock.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np

from simbridge.errors import InputFileError
from simbridge.files.reading import MAX_SAMPLES_TEXT, MIB, open_file, read_bytes
from simbridge.quoting import quoted
from simbridge.robot.pose import Array
from simbridge.text import counted, listed
from simbridge.trajectory.text import is_number, lines_of

# The columns that are read, with their width: a recording has a hundred more.
FIELDS = {
    "target_q": 6,
    "target_qd": 6,
    "target_qdd": 6,
    "target_current": 6,
    "target_moment": 6,
    "actual_q": 6,
    "actual_qd": 6,
    "actual_current": 6,
    "actual_TCP_pose": 6,
    "target_TCP_pose": 6,
    "actual_tool_accelerometer": 3,
}
# What a file of joint positions may call them, in order of preference.
JOINT_POSITIONS = ("target_q", "command", "setpoint", "q", "joint", "position", "actual_q")
_TIMES = ("timestamp", "time", "t")
_ELEMENT = re.compile(r"(.+?)(?:_|\.|)?\[?(\d+)\]?")
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, eq=False)
class RtdeRecording:
    """Samples of a controller's state.

    Attributes:
        times: Stamps (T,) by the controller's clock, s: strictly increasing.
        columns: The recorded ones of FIELDS by name, each (T, width).
        notes: What had to be left out of the file, each a sentence.
    """

    times: Array
    columns: Mapping[str, Array]
    notes: tuple[str, ...]


def is_rtde_recording(path: Path) -> bool:
    """Whether a file's first line names a controller's fields."""
    try:
        with open_file(path) as file:
            data = file.read(100_000)
    except (InputFileError, OSError):
        return False
    text = _decompressed(data, 100_000)[0] if data.startswith(_GZIP) else data
    first = text.decode("utf-8", "replace").lstrip("\ufeff# ").split("\n", 1)[0].split("\r", 1)[0]
    return bool(set(_elements(_fields(first, _separator(first)))) & set(FIELDS))


def read_rtde(path: str | Path, needed: Sequence[str] = ()) -> RtdeRecording:
    """Read a recording that must contain the fields `needed`.

    Raises:
        InputFileError: It cannot be read, has no header, lacks a needed column, or has fewer than two samples; names
            the line.
    """
    table = _Table(Path(path))
    time = next((name for name in _TIMES if name in table.scalars), None)
    known = {
        name: table.vectors[name]
        for name in FIELDS
        if len(table.vectors.get(name, ())) == FIELDS[name]
    }
    missing = [name for name in (*needed, *(() if known else ("target_q",))) if name not in known]
    if time is None or missing:
        wanted = ["timestamp"] if time is None else []
        wanted += [f"{name}_0 to {name}_{FIELDS[name] - 1}" for name in missing]
        others: list[str] = [
            name
            for name in ("actual_TCP_pose", "target_TCP_pose", "actual_q", "target_q")
            if name in known
        ]
        advice = f"; it has {listed(others)}: choose one with --from" if missing and others else ""
        table.refuse(
            f"it has no column{'s' if missing else ''} {listed(wanted)}, which UR's recordings have{advice}"
        )
    values, lines = table.rows(
        [table.scalars[time], *(i for indices in known.values() for i in indices)]
    )
    parts = np.split(
        values, np.cumsum([1, *(len(indices) for indices in known.values())])[:-1], axis=1
    )
    columns = {
        name: part for name, part in zip(known, parts[1:], strict=True) if np.isfinite(part).any()
    }
    whole = np.isfinite(values[:, 0]) & np.all(
        [np.isfinite(part).all(axis=1) for part in columns.values()], axis=0
    )
    times = values[whole, 0]
    notes = list(table.notes)
    if not whole.all():
        notes.append(f"{counted(int((~whole).sum()), 'row')} with a missing value left out")
    new = np.concatenate([[True], np.diff(times) != 0.0]) if len(times) else np.zeros(0, dtype=bool)
    if not new.all():
        notes.append(
            f"{counted(int((~new).sum()), 'row')} with the stamp of the row before left out"
        )
    times = times[new]
    if len(times) < 2:
        table.refuse(f"it has {counted(len(times), 'sample')}; two are needed at least")
    back = np.flatnonzero(np.diff(times) < 0.0)
    if len(back):
        line = int(np.array(lines)[whole][new][back[0] + 1])
        raise InputFileError(
            table.path, "the clock goes back here; cut the file in two", line=line, field=time
        )
    return RtdeRecording(
        times, {name: part[whole][new] for name, part in columns.items()}, tuple(notes)
    )


def read_joint_positions(path: str | Path) -> tuple[Array, tuple[str, ...]]:
    """Joint positions (K, 6), rad, of a file with a header, and what had to be left out of it, each a sentence.

    See JOINT_POSITIONS for the names of their columns. A file without six of one name is refused.
    """
    table = _Table(Path(path))
    name = next((name for name in JOINT_POSITIONS if len(table.vectors.get(name, ())) == 6), None)
    if name is None:
        table.refuse(
            "it has no six columns of joint positions: target_q_0 to target_q_5 (or q_0 to q_5)"
        )
    values, _ = table.rows(table.vectors[name])
    values = values[np.isfinite(values).all(axis=1)]
    if not len(values):
        table.refuse("it has no row of joint positions")
    return values, tuple(table.notes)


class _Table:
    """The text of a file with a header.

    Attributes:
        scalars: Index of each column by its name in lower case.
        vectors: Indices of the columns of each vector by its name, where all of its elements are there.
        notes: What was left out, each a sentence.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []
        data = read_bytes(path, MAX_SAMPLES_TEXT)
        if data.startswith(_GZIP):
            data, whole = _decompressed(data, MAX_SAMPLES_TEXT + 1)
            if len(data) > MAX_SAMPLES_TEXT:
                self.refuse(
                    f"it is larger than {MAX_SAMPLES_TEXT / MIB:g} MiB when it is decompressed; cut it in two"
                )
            if not whole:
                self.notes.append(
                    "the compressed file is cut off or damaged: only what is before that is used"
                )
        if b"\0" in data[:10_000]:
            self.refuse("this is a binary file (or UTF-16), not a text file in UTF-8")
        self._lines = lines_of(data.decode("utf-8-sig", "replace"))
        first = next((i for i, line in enumerate(self._lines) if line.strip().strip("#")), None)
        if first is None:
            self.refuse("it is empty")
        header = self._lines[first].lstrip("# ")
        self._separator = _separator(header)
        names = _fields(header, self._separator)
        if all(map(is_number, names)):
            needed = "timestamp, target_q_0 to target_q_5, target_qd_0 ..., target_qdd_0 ..., actual_q_0 ..."
            self.refuse(
                f"it has no header: the first line must name the columns, such as {needed}",
                line=first + 1,
            )
        self._width, self._first = len(names), first + 1
        self.scalars = {name.lower(): i for i, name in reversed(list(enumerate(names)))}
        self.vectors = _elements(names)

    def refuse(self, reason: str, *, line: int | None = None) -> NoReturn:
        raise InputFileError(self.path, reason, line=line)

    def rows(self, indices: Sequence[int]) -> tuple[Array, list[int]]:
        """The numbers (T, len(indices)) of some columns, and the line of each row; empty fields are nan.

        A last line without a line end may be cut inside of a number: it is left out.
        """
        values, numbers = array("d"), []
        last = max((i for i, line in enumerate(self._lines) if line.strip()), default=0)
        for i in range(self._first, last + 1):
            if not self._lines[i].strip():
                continue
            words = _fields(self._lines[i], self._separator)
            if i == len(self._lines) - 1:
                where = f"line {i + 1}, which has no line end"
                self.notes.append(
                    f"the file may be cut off in {where}: the rows before it are used"
                )
                break
            if len(words) != self._width and i == last:
                self.notes.append(
                    f"the file is cut off in line {i + 1}: the rows before it are used"
                )
                break
            if len(words) != self._width:
                self.refuse(
                    f"{len(words)} columns where the header names {self._width}", line=i + 1
                )
            try:
                values.extend([float(words[k] or "nan") for k in indices])
            except ValueError:
                wrong = next(words[k] for k in indices if words[k] and not is_number(words[k]))
                self.refuse(f"{quoted(wrong)} is not a number", line=i + 1)
            numbers.append(i + 1)
        return np.array(values).reshape(-1, len(indices)), numbers


def _decompressed(data: bytes, largest: int) -> tuple[bytes, bool]:
    """The content of a gzip file as far as it is there and no longer than `largest`, and whether it is not damaged."""
    content = bytearray()
    with gzip.open(io.BytesIO(data)) as file:
        try:
            while len(content) < largest and (
                piece := file.read1(min(1 << 16, largest - len(content)))
            ):
                content += piece
        except (OSError, EOFError, zlib.error):
            return bytes(content), False
    return bytes(content), True


def _separator(line: str) -> str | None:
    return next((separator for separator in ";,\t" if separator in line), None)


def _fields(line: str, separator: str | None) -> list[str]:
    return [word.strip().strip("\"'") for word in line.strip("\n").split(separator)]


def _elements(names: Sequence[str]) -> dict[str, list[int]]:
    """The columns of each vector, in order: numbered from 0, or from 1."""
    known = {name.lower(): name for name in (*FIELDS, *JOINT_POSITIONS)}
    found: dict[str, dict[int, int]] = {}
    for index, name in enumerate(names):
        parts = _ELEMENT.fullmatch(name)
        if parts and parts[1].lower() in known:
            found.setdefault(known[parts[1].lower()], {}).setdefault(int(parts[2]), index)
    return {
        name: [columns[i] for i in sorted(columns)]
        for name, columns in found.items()
        if sorted(columns) in (list(range(len(columns))), list(range(1, len(columns) + 1)))
    }
