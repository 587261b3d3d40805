"""Expands the names that a user gives to the columns of a recording without a header."""

from __future__ import annotations

import re

from simbridge.errors import InvalidParameter, UnknownName
from simbridge.trajectory.rtde_recording import COMMAND_FIELDS, FIELDS, STATE_FIELDS, TIMES

# Number of columns of each vector.
WIDTHS = {**FIELDS, **dict.fromkeys(COMMAND_FIELDS, 6)}
# RTDE's names of vectors by their usual symbols in robotics, in which `des` stands for "desired".
SYNONYMS = {
    "q": "actual_q",
    "qd": "actual_qd",
    "i": "actual_current",
    "q_des": "target_q",
    "qd_des": "target_qd",
    "qdd_des": "target_qdd",
    "i_des": "target_current",
    "tau_des": "target_moment",
}
# Name of a column that is not read.
SKIPPED = "skip"
# Largest number of columns that one entry may skip.
MAX_COLUMNS = 10_000

# A name with its number of columns: "actual_q", "skip*3" or "q 6".
_ENTRY = re.compile(r"(?P<name>\S+?)(?:\s*[*:]\s*|\s+|)(?P<count>(?<=[*:\s])\d+)?")
# An element of a vector: "actual_q_3" or "actual_q[3]".
_ELEMENT = re.compile(r"(?P<vector>.+?)_?\[?\d\]?")


def expand_columns(text: str) -> tuple[str, ...]:
    """Return the name of each column: "time,actual_q" names seven.

    Args:
        text: Names of fields, separated by commas; a name stands for all columns of its field.

    Raises:
        UnknownName: A name is not that of a field.
        InvalidParameter: An entry gives its field another number of columns than it has, or a
            field is named twice.
    """
    names: list[str] = []
    for entry in text.split(","):
        names += _expand_entry(entry.strip())

    read_names = [name for name in names if name != SKIPPED]
    repeated = [name for name in dict.fromkeys(read_names) if read_names.count(name) > 1]
    if repeated:
        raise InvalidParameter("--columns", text, f"without {repeated[0]} twice")
    return tuple(names)


def _expand_entry(entry: str) -> list[str]:
    """Return the name of each column that an entry of the list stands for."""
    match = _ENTRY.fullmatch(entry)
    if match is None:
        raise InvalidParameter("--columns", entry, "names, separated by commas")
    name = SYNONYMS.get(match["name"], match["name"])
    # The number of columns that the entry states; None if it states none.
    count = None if match["count"] is None else int(match["count"])

    if name == SKIPPED:
        if count is not None and count > MAX_COLUMNS:
            raise InvalidParameter("--columns", entry, f"at most {MAX_COLUMNS} columns")
        return [SKIPPED] * (1 if count is None else count)

    width = _find_width(name)
    if count not in (None, width):
        raise InvalidParameter("--columns", entry, f"{name} for {width} columns")
    if name in WIDTHS:
        return [f"{name}_{index}" for index in range(width)]
    return [name]


def _find_width(name: str) -> int:
    """Return the number of columns that a name stands for.

    Raises:
        UnknownName: It is neither the name of a field nor that of an element of a vector.
    """
    if name in WIDTHS:
        return WIDTHS[name]
    element = _ELEMENT.fullmatch(name)
    if name in (*TIMES, *STATE_FIELDS) or (element and element["vector"] in WIDTHS):
        return 1
    known = (*TIMES, *WIDTHS, *STATE_FIELDS, *SYNONYMS, SKIPPED)
    raise UnknownName("column", name, known, where="among RTDE's fields")
