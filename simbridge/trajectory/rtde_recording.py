"""Recordings of a UR controller's RTDE outputs as text: UR's field names, one row a sample.

Such files are written by UR's own recorder, by ur_rtde and by spreadsheets: separated by blanks,
commas or semicolons, vectors as `target_q_0` or `target_q[0]`, compressed with gzip or not. Rows
may be doubled (polled faster than the controller sends) or missing, at any rate. All values are in
SI units, stamps in s by the controller's clock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simbridge.errors import InputFileError
from simbridge.robot.pose import Array, Counts, Flags
from simbridge.text import counted, join_words
from simbridge.trajectory.dropped_rows import dropped_rows, lost_samples
from simbridge.trajectory.rtde_table import RtdeTable, find_vectors, read_header

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
# Columns that may be empty in some rows: commands, which are not sent in every cycle, ...
COMMAND_FIELDS = ("command_q", "command_qd")
# ... and the state of the controller, one number a row.
STATE_FIELDS = (
    "speed_scaling",
    "target_speed_fraction",
    "robot_mode",
    "safety_mode",
    "runtime_state",
)
VECTOR_NAMES = (*FIELDS, *COMMAND_FIELDS, *JOINT_POSITIONS)
# What a file may call its stamps, in order of preference.
TIMES = ("timestamp", "time", "t", "stamp")
# The stamps beside the fields, in what is read.
STAMPS = "stamps"
# Fields that show a motion, of which a file may have others than those that are needed.
MOTION_FIELDS = ("actual_TCP_pose", "target_TCP_pose", "actual_q", "target_q")


@dataclass(frozen=True, eq=False)
class RtdeRecording:
    """Samples of a controller's state.

    Attributes:
        times: Stamps (T,) by the controller's clock, s: strictly increasing.
        columns: The recorded ones of FIELDS by name, each (T, width).
        notes: What had to be left out of the file, each a sentence.
        sparse: The recorded ones of COMMAND_FIELDS (T, 6) and STATE_FIELDS (T, 1) by name; nan
            where a row has none.
        time_name: The column of the stamps; "" if a rate makes them.
    """

    times: Array
    columns: Mapping[str, Array]
    notes: tuple[str, ...]
    sparse: Mapping[str, Array]
    time_name: str


def is_rtde_recording(path: Path) -> bool:
    """Return whether a file's first line names a controller's fields."""
    return bool(recorded_fields(path))


def recorded_fields(path: Path) -> list[str]:
    """Return a controller's fields in a file's first line; none if it cannot be read."""
    try:
        names = read_header(path)
    except (InputFileError, OSError):
        return []
    vectors = find_vectors(names, VECTOR_NAMES)
    return [field for field, width in FIELDS.items() if len(vectors.get(field, ())) == width]


def read_rtde(
    path: str | Path,
    needed: Sequence[str] = (),
    *,
    rate: float | None = None,
    names: Sequence[str] = (),
    keep_incomplete: bool = False,
) -> RtdeRecording:
    """Read a recording.

    Args:
        path: The file.
        needed: Fields that it must contain, and without which a sample is lost; empty for all that
            it contains.
        rate: Samples per s of a file without stamps.
        names: Names of all columns of a file without a header; of a file with one, these are used
            instead.
        keep_incomplete: Whether a row in which fields are empty or nan is kept, with nan in these.

    Raises:
        InputFileError: The file cannot be read, has no header, lacks a needed column, has neither
            stamps nor a rate (or both), or has fewer than two samples; names the line.
    """
    table = RtdeTable(Path(path), VECTOR_NAMES, names)
    time_name = next((name for name in TIMES if name in table.scalars), None)
    fields = _find_fields(table)
    sparse_fields = {} if needed else _find_sparse_fields(table)
    has_times = time_name is not None or rate is not None
    _check_columns(table, needed, fields=fields, has_times=has_times)
    if time_name is not None and rate is not None:
        table.refuse(f"it has timestamps ({time_name}); omit --rate")

    values, lines = _read_values(table, time_name, {**fields, **sparse_fields}, rate)
    sparse = {name: values.pop(name) for name in sparse_fields if name in values}
    stamps = values.pop(STAMPS)[:, 0]
    empty = [name for name in needed if name not in values]
    if empty:
        table.refuse(f"its columns of {join_words(empty)} contain no numbers{_advice(values)}")

    # Rows that are whole in the needed fields, and of these the ones with a new stamp.
    if needed:
        values = {name: values[name] for name in needed}
    is_whole = np.isfinite(stamps)
    if not keep_incomplete:
        is_whole &= _are_whole(list(values.values()))
    is_new = np.ones(len(stamps), dtype=bool)
    is_new[is_whole] = _are_new(stamps[is_whole])
    is_used = is_whole & is_new
    notes = [
        *table.notes,
        *lost_samples(lines[~is_whole].tolist()),
        *dropped_rows(
            "row", lines[~is_new].tolist(), detail=("with the timestamp of the previous row")
        ),
    ]

    times = stamps[is_used]
    _check_times(table, times, lines[is_used], time_name)
    return RtdeRecording(
        times=times,
        columns={name: part[is_used] for name, part in values.items()},
        notes=tuple(map(str, notes)),
        sparse={name: part[is_used] for name, part in sparse.items()},
        time_name=time_name or "",
    )


def _read_values(
    table: RtdeTable,
    time_name: str | None,
    fields: Mapping[str, list[int]],
    rate: float | None,
) -> tuple[dict[str, Array], Counts]:
    """Read the stamps and fields of a file.

    Args:
        table: The file.
        time_name: Name of the column of stamps; None if there is none.
        fields: The columns of each field.
        rate: Samples per s of a file without stamps.

    Returns:
        The stamps (T, 1), s, as STAMPS, and each field (T, width) of which a whole row was
        recorded, by name; and the line of each row (T,).
    """
    columns = dict(fields)
    if time_name is not None:
        columns = {STAMPS: [table.scalars[time_name]], **fields}
    values, lines = table.rows([index for indices in columns.values() for index in indices])

    ends = np.cumsum([len(indices) for indices in columns.values()])
    parts = dict(zip(columns, np.split(values, ends[:-1], axis=1), strict=True))
    if rate is not None:
        parts[STAMPS] = np.arange(len(lines))[:, None] / rate
    # A vector of which one element was never recorded has no whole row.
    empty = [
        name
        for name, part in parts.items()
        if name != STAMPS and not np.isfinite(part).all(axis=1).any()
    ]
    incomplete = [name for name in empty if np.isfinite(parts[name]).any()]
    if incomplete:
        table.notes.append(f"{join_words(incomplete)} not read: no row has all elements")
    recorded = {name: part for name, part in parts.items() if name not in empty}
    return recorded, lines


def _check_times(table: RtdeTable, times: Array, lines: Counts, time_name: str | None) -> None:
    """Refuse a file with fewer than two samples, or whose clock goes back."""
    if len(times) < 2:
        table.refuse(f"it has {counted(len(times), 'sample')}; at least two are needed")

    backward = np.flatnonzero(np.diff(times) < 0.0)
    if len(backward):
        line = int(lines[backward[0] + 1])
        reason = "the clock jumps back here; split the file in two"
        raise InputFileError(table.path, reason, line=line, field=time_name)


def _find_fields(table: RtdeTable) -> dict[str, list[int]]:
    """Return the columns of the fields that a file has whole."""
    fields = {}
    for name, width in FIELDS.items():
        indices = table.vectors.get(name, [])
        if len(indices) == width:
            fields[name] = indices
    return fields


def _find_sparse_fields(table: RtdeTable) -> dict[str, list[int]]:
    """Return the columns of commands and of the controller's state that a file has."""
    fields = {}
    for name in COMMAND_FIELDS:
        indices = table.vectors.get(name, [])
        if len(indices) == 6:
            fields[name] = indices
    for name in STATE_FIELDS:
        if name in table.scalars:
            fields[name] = [table.scalars[name]]
    return fields


def _check_columns(
    table: RtdeTable, needed: Sequence[str], *, fields: Mapping[str, list[int]], has_times: bool
) -> None:
    """Refuse a file without stamps, or without fields that are needed.

    Args:
        table: The file.
        needed: Names of the needed fields.
        fields: Fields that it has.
        has_times: Whether its instants are known.
    """
    # Without any field, the first thing to ask for is the target positions.
    expected = needed if fields else (*needed, "target_q")
    missing = [name for name in expected if name not in fields]
    if not missing and has_times:
        return

    columns = [] if has_times else ["timestamp"]
    columns += [f"{name}_0 to {name}_{FIELDS[name] - 1}" for name in missing]
    advice = _advice(fields) if missing else ""
    # Without needed fields it is identified, which takes no rate: that needs the stamps.
    if not has_times and needed:
        advice += "; if its rate is known, add --rate HZ"
    if not has_times:
        advice += f"; times, in s, may also be named {', '.join(TIMES[1:])}"
    noun = "columns" if missing else "column"
    table.refuse(f"it has no {noun} {join_words(columns)}, which UR's recordings have{advice}")


def _advice(fields: Collection[str]) -> str:
    """Return how to choose one of the fields that show a motion; "" if there is none."""
    alternatives = [name for name in MOTION_FIELDS if name in fields]
    if not alternatives:
        return ""
    return f"; it has {join_words(alternatives)}: choose one with --from"


def _are_whole(parts: Sequence[Array]) -> Flags:
    """Return which rows (T,) of all parts (T, width) have only finite numbers."""
    return np.asarray(np.all([np.isfinite(part).all(axis=1) for part in parts], axis=0))


def _are_new(times: Array) -> Flags:
    """Return which stamps (T,) differ from the one before."""
    if not len(times):
        return np.zeros(0, dtype=bool)
    return np.concatenate([[True], np.diff(times) != 0.0])


def read_joint_positions(path: str | Path) -> tuple[Array, tuple[str, ...]]:
    """Read a file of joint positions with a header.

    Args:
        path: The file; see JOINT_POSITIONS for the names of its columns.

    Returns:
        Joint positions (K, 6), rad, and what had to be left out, each a sentence.

    Raises:
        InputFileError: The file cannot be read, or has no six columns of one name.
    """
    table = RtdeTable(Path(path), VECTOR_NAMES)
    names = [name for name in JOINT_POSITIONS if len(table.vectors.get(name, ())) == 6]
    if not names:
        table.refuse(
            "it has no six columns of joint positions: target_q_0 to target_q_5 (or q_0 to q_5)"
        )

    values, lines = table.rows(table.vectors[names[0]])
    is_whole = _are_whole([values])
    if not is_whole.any():
        table.refuse("it has no row of joint positions")
    notes = [*table.notes, *lost_samples(lines[~is_whole].tolist())]
    return values[is_whole], tuple(map(str, notes))
