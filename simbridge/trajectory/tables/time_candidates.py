"""Columns that may be the time, whatever it is called: for flags that refusals offer."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from simbridge.trajectory.tables.aliases import NO_TIMES, TIMES, UNCLEAR_TIMES
from simbridge.trajectory.tables.column_names import parse_column_name, strip_quotes
from simbridge.trajectory.tables.joint_aliases import OTHER_QUANTITIES
from simbridge.trajectory.tables.units import ROLE_UNITS, UNIT_SPELLINGS

# What a table without a column of time needs; its value is not in the file.
NO_TIME_FLAG = "--rate HZ"
# Words of names of lengths of time, which are not stamps: "frame_time", "cycle_time".
LENGTHS_OF_TIME = {
    "frame",
    "exposure",
    "delta",
    "cycle",
    "step",
    "processing",
    "latency",
    "delay",
    "execution",
    "duration",
    "period",
}
# Words by which a name may be that of a time: "stamp", "time", "clock". Words such as "since" are
# in the names of times, too, but say nothing by themselves.
TIME_WORDS = {
    *(word for name in (*TIMES, *UNCLEAR_TIMES) for word in name.split()),
    "clock",
    "uptime",
    "epoch",
    "timecode",
} - {"s", "since", "from", "start", "begin", "beginning", "index", "system", "sim", "rel"}


def find_time_candidates(names: Sequence[str], in_use: Collection[int]) -> list[int]:
    """Find the columns that may be the time: by a word of their names, or as the first one.

    Args:
        names: The names of the columns, as the table has them.
        in_use: Columns that are something else.
    """
    free = [index for index in range(len(names)) if index not in in_use]
    named = [index for index in find_named_times(names) if index in free]
    if named:
        return named
    # A column without a name, or the first one, is the time more often than not.
    nameless = [index for index in free if not strip_quotes(names[index])]
    if nameless:
        return nameless[:1]
    return [index for index in free if index == 0 and _may_be_time(names[0])]


def find_named_times(names: Sequence[str]) -> list[int]:
    """Find the columns with a word of a time in their names."""
    return [index for index, name in enumerate(names) if _has_time_word(name)]


def _has_time_word(name: str) -> bool:
    """Return whether a word, or the unit, of a name is that of a time."""
    parsed = parse_column_name(name)
    if not _may_be_time(name):
        return False
    terms = set(parsed.words)
    unit = UNIT_SPELLINGS.get(parsed.unit, "")
    return bool(terms & TIME_WORDS) or unit in ROLE_UNITS["t"]


def _may_be_time(name: str) -> bool:
    """Return whether an unknown name may be that of a time."""
    parsed = parse_column_name(name)
    if parsed.element is not None:
        # An element of an array of something else.
        return False
    terms = set(parsed.words)
    return not terms & {*OTHER_QUANTITIES, *LENGTHS_OF_TIME} and not _counts_rows(name)


def _counts_rows(name: str) -> bool:
    """Return whether a name is that of a counter or a label, not of a time: "frame", "seq_id"."""
    return parse_column_name(name).words[-1:] in {(word,) for word in NO_TIMES}
