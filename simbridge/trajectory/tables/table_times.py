"""The instants of a table's rows."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from simbridge.errors import InputFileError
from simbridge.quoting import quoted
from simbridge.robot.pose import Array, Counts
from simbridge.text import plain
from simbridge.trajectory.tables.table import Table
from simbridge.trajectory.tables.unit_rules import time_unit
from simbridge.trajectory.tables.units import UNITS
from simbridge.trajectory.tables.wall_clock import (
    NANOSECONDS_PER_SECOND,
    TIMES_OF_DAY,
    parse_wall_clock,
)


class TableTimes(NamedTuple):
    """The instants of a table's rows.

    Attributes:
        times: (T,), s.
        epoch_ns: Their zero on the file's clock, ns.
        clock: How they were read, in words: "time in ms".
    """

    times: Array
    epoch_ns: int
    clock: str


def times_of(path: str | Path, table: Table, poses: Array, seconds_by: str) -> TableTimes:
    """Return the instants of a table's rows.

    Args:
        path: The file, for messages.
        table: As it was read.
        poses: (T, 7), m and quaternions, by whose speed the unit is judged.
        seconds_by: The format, if it defines seconds.

    Raises:
        InputFileError: A stamp is no time, or the unit is ambiguous.
    """
    columns = table.columns
    rate = columns.rate
    if rate is not None and not columns.time_indices:
        return TableTimes(np.arange(len(poses)) / rate, 0, f"at {plain(rate)} Hz")

    stamps = table.stamps
    if isinstance(stamps, np.ndarray) and stamps.dtype.kind == "f":
        numbers: Array = stamps.astype(float)
        if rate is not None:
            return TableTimes(numbers / rate, 0, f"frames at {plain(rate)} Hz")
        unit = columns.time_unit or time_unit(path, numbers, poses, seconds_by)
        return TableTimes(numbers / UNITS[unit], 0, f"time in {unit}")

    if isinstance(stamps, np.ndarray):
        nanoseconds, clock = _dates_or_durations(path, table, stamps)
    else:
        unit = columns.time_unit
        if not unit and stamps and len(stamps[0]) == 1 and stamps[0][0].isdecimal():
            words = [words[0] for words in stamps]
            whole = [float(word) if word.isdecimal() else np.nan for word in words]
            unit = time_unit(path, np.array(whole), poses, seconds_by)
        nanoseconds, clock = _nanoseconds_of_words(path, table, unit)

    first = int(nanoseconds[0]) if len(nanoseconds) else 0
    return TableTimes((nanoseconds - first) / NANOSECONDS_PER_SECOND, first, clock)


def _dates_or_durations(path: str | Path, table: Table, stamps: np.ndarray) -> tuple[Counts, str]:
    """Return dates or durations (T,) in ns, and the clock in words."""
    is_missing = np.isnat(stamps)
    if is_missing.any():
        raise InputFileError(path, f"row {int(np.argmax(is_missing)) + 1} has no time")
    clock = "wall clock" if stamps.dtype.kind == "M" else "durations"
    return stamps.astype(np.int64), clock


def _nanoseconds_of_words(path: str | Path, table: Table, unit: str) -> tuple[Counts, str]:
    """Return the stamps of words (T,) in ns, and the clock in words."""
    nanoseconds = []
    clock = ""
    for row, words in enumerate(table.stamps):
        try:
            if len(words) == 2 and not table.columns.is_date_and_time:
                nanoseconds.append(int(words[0]) * NANOSECONDS_PER_SECOND + int(words[1]))
                clock = clock or "ROS stamps"
            elif len(words) == 1 and words[0].isdecimal():
                unit_nanoseconds = round(NANOSECONDS_PER_SECOND / UNITS[unit])
                nanoseconds.append(int(words[0]) * unit_nanoseconds)
                clock = clock or f"time in {unit}"
            else:
                nanoseconds.append(parse_wall_clock(" ".join(words)))
                clock = clock or "wall clock"
        except (ValueError, KeyError, OverflowError):
            _refuse_stamp(path, table, row)

    try:
        return np.array(nanoseconds, dtype=np.int64), clock
    except OverflowError:
        reason = "its stamps are later than 2262; state their unit: --columns t[ns]"
        raise InputFileError(path, reason) from None


def _refuse_stamp(path: str | Path, table: Table, row: int) -> NoReturn:
    """Refuse the stamp of a row that is no time, or another kind than the first one."""
    words = " ".join(table.stamps[row])
    expected = f"; {TIMES_OF_DAY}"
    if row:
        expected = f" as in the first row, {quoted(' '.join(table.stamps[0]))}"
    seconds = ""
    if table.columns.is_date_and_time:
        name = table.columns.times[-1]
        seconds = f"; if {name} counts seconds: --columns t={name}"
    reason = f"{quoted(words)} is not a time{expected}{seconds}"
    line = table.line(row)
    raise InputFileError(path, reason, line=line, field=table.columns.times[0]) from None
