"""The instants of a table's rows."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from simbridge.errors import InputFileError
from simbridge.quoting import quoted
from simbridge.robot.pose import Array, Counts
from simbridge.text import plain
from simbridge.trajectory.tables.choice import columns_flag
from simbridge.trajectory.tables.column_roles import fraction_unit
from simbridge.trajectory.tables.table import Table
from simbridge.trajectory.tables.unit_comments import commented_unit
from simbridge.trajectory.tables.unit_rules import check_stated_unit, implausible_times, time_unit
from simbridge.trajectory.tables.units import UNITS
from simbridge.trajectory.tables.wall_clock import (
    NANOSECONDS_PER_SECOND,
    TIMES_OF_DAY,
    parse_wall_clock,
)


class TableTimes(NamedTuple):
    """The instants of a table's rows.

    Attributes:
        times: Instants of the rows (T,), s: as the file counts them, or, where stamps are exact,
            since the first one.
        epoch_ns: The instant on the file's clock at which `times` is zero, ns: 0, or the first of
            exact stamps.
        clock: How the times were read, in words: "time in ms".
    """

    times: Array
    epoch_ns: int
    clock: str


def times_of(path: str | Path, table: Table, poses: Array, seconds_by: str) -> TableTimes:
    """Return the instants of a table's rows.

    They follow from the rate, from frame numbers and the rate, from dates, from exact stamps, or
    from numbers. The unit of numbers is that of their name, of `--columns` or of a comment; else
    the one in which the tool moves at a plausible speed.

    Args:
        path: The file, for messages.
        table: The numbers and stamps of the file.
        poses: Poses of the rows (T, 7), m and unit quaternions, for the speed of the tool.
        seconds_by: Name of the format that defines seconds; "" if none does.

    Raises:
        InputFileError: A stamp is not a time, or the unit is ambiguous.
    """
    # The rate of rows, if there is no column of times.
    columns = table.columns
    if columns.rate is not None and not columns.time_indices:
        clock = f"at {plain(columns.rate)} Hz"
        return TableTimes(table.rows / columns.rate, epoch_ns=0, clock=clock)

    # Stamps that are words, such as dates in text; and dates of an array file.
    if not isinstance(table.stamps, np.ndarray):
        return _times_of_words(path, table, poses, seconds_by)
    if table.stamps.dtype.kind != "f":
        return _times_of_dates(table.stamps)

    # Numbers of frames.
    numbers = table.stamps.astype(float)
    if columns.rate is not None:
        clock = f"frames at {plain(columns.rate)} Hz"
        return TableTimes(numbers / columns.rate, epoch_ns=0, clock=clock)

    # Numbers in a unit that is stated, or that the motion shows.
    unit = columns.time_unit or commented_unit(
        path, columns.commented_units.get("time"), "t", implausible=implausible_times(numbers)
    )
    if unit:
        check_stated_unit(path, numbers, unit)
    else:
        unit = time_unit(path, numbers, poses, seconds_by)
    return TableTimes(numbers / UNITS[unit], epoch_ns=0, clock=f"time in {unit}")


def _since_first(nanoseconds: Counts, clock: str) -> TableTimes:
    """Return exact stamps (T,), ns, as times since the first one."""
    first = int(nanoseconds[0]) if len(nanoseconds) else 0
    return TableTimes((nanoseconds - first) / NANOSECONDS_PER_SECOND, first, clock)


def _times_of_dates(stamps: np.ndarray) -> TableTimes:
    """Return the instants of dates or durations (T,)."""
    clock = "wall clock" if stamps.dtype.kind == "M" else "durations"
    return _since_first(stamps.astype(np.int64), clock)


def _times_of_words(path: str | Path, table: Table, poses: Array, seconds_by: str) -> TableTimes:
    """Return the instants of stamps that are words; see `times_of`."""
    unit = table.columns.time_unit
    first_words = next(iter(table.stamps), ())
    if not unit and len(first_words) == 1 and first_words[0].isdecimal():
        stamps = [stamp for stamp, *_ in table.stamps]
        whole = [float(stamp) if stamp.isdecimal() else np.nan for stamp in stamps]
        unit = time_unit(path, np.array(whole), poses, seconds_by)
    nanoseconds, clock = _nanoseconds_of_words(path, table, unit)
    return _since_first(nanoseconds, clock)


def _nanoseconds_of_words(path: str | Path, table: Table, unit: str) -> tuple[Counts, str]:
    """Return the stamps of words (T,) in ns, and the clock in words."""
    nanoseconds = []
    clock = ""
    fraction = ""
    if len(table.columns.times) == 2 and not table.columns.is_date_and_time:
        fraction = fraction_unit(table.columns.times[1])
    for row, words in enumerate(table.stamps):
        try:
            if len(words) == 2 and not table.columns.is_date_and_time:
                nanoseconds.append(_join_stamp(words[0], words[1], fraction))
                clock = clock or ("ROS stamps" if fraction == "ns" else f"time in s and {fraction}")
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
        reason = "its timestamps are later than the year 2262; state their unit: --columns t[ns]"
        raise InputFileError(path, reason) from None


def _join_stamp(seconds: str, fraction: str, unit: str) -> int:
    """Return the ns of a stamp in two columns.

    Args:
        seconds: The whole seconds.
        fraction: The rest, which is less than a second.
        unit: The unit of the rest: "ms", "us" or "ns".

    Raises:
        ValueError: One of them is not a whole number, or the rest is a second or more.
    """
    per_second = round(UNITS[unit])
    rest = _whole_number(fraction)
    if not 0 <= rest < per_second:
        raise ValueError(fraction)
    return _whole_number(seconds) * NANOSECONDS_PER_SECOND + rest * (
        NANOSECONDS_PER_SECOND // per_second
    )


def _whole_number(word: str) -> int:
    """Return a whole number, also where it is written as "5.0"."""
    if word.lstrip("-").isdecimal():
        return int(word)
    number = float(word)
    if not number.is_integer():
        raise ValueError(word)
    return int(number)


def _refuse_stamp(path: str | Path, table: Table, row: int) -> NoReturn:
    """Refuse the stamp of a row that is not a time, or not of the first one's kind."""
    columns = table.columns
    stamp = " ".join(table.stamps[row])
    line = table.line(row)
    if len(columns.times) == 2 and not columns.is_date_and_time:
        flags = " or ".join(
            columns_flag(["t"], [name], [index])
            for name, index in zip(columns.times, columns.time_indices, strict=True)
        )
        reason = (
            f"{quoted(stamp)} is not a timestamp of whole seconds and a fraction below one "
            f"second. If one of the columns alone is the time, choose it: {flags}"
        )
        raise InputFileError(path, reason, line=line, field=columns.times[0]) from None

    expected = f"; {TIMES_OF_DAY}"
    if row:
        expected = f" as in the first row, {quoted(' '.join(table.stamps[0]))}"
    seconds = ""
    if columns.is_date_and_time:
        name = columns.times[-1]
        seconds = f"; if {name} counts seconds: --columns t={name}"
    reason = f"{quoted(stamp)} is not a time{expected}{seconds}"
    raise InputFileError(path, reason, line=line, field=columns.times[0]) from None
