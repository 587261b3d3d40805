"""The names that a user gives to the columns of a recording without a header."""

from __future__ import annotations

import re

from simbridge.errors import InvalidParameter, UnknownName
from simbridge.trajectory.rtde_recording import COMMAND_FIELDS, FIELDS, STATE_FIELDS, TIMES

# Number of columns of each vector.
WIDTHS = {**FIELDS, **dict.fromkeys(COMMAND_FIELDS, 6)}
# Names of vectors in identification and control, where `des` marks what the controller wants.
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
# Stands for a column that is not read.
SKIPPED = "skip"
MAX_COLUMNS = 10_000

# A name with its number of columns: "actual_q", "skip*3" or "q 6".
_ENTRY = re.compile(r"(?P<name>\S+?)(?:\s*[*:]\s*|\s+|)(?P<count>(?<=[*:\s])\d+)?")
# An element of a vector: "actual_q_3" or "actual_q[3]".
_ELEMENT = re.compile(r"(?P<vector>.+?)_?\[?\d\]?")


def expand_columns(text: str) -> tuple[str, ...]:
    """Return the name of each column: "time,actual_q" names seven.

    Args:
        text: Names of fields, separated by commas, each for all columns of the field.

    Raises:
        UnknownName: A name is not that of a field.
        InvalidParameter: The number of columns of a field is another one, or a field is named
            twice.
    """
    names: list[str] = []
    for entry in text.split(","):
        names += _expand_entry(entry.strip())

    fields = [name for name in names if name != SKIPPED]
    repeated = [name for name in dict.fromkeys(fields) if fields.count(name) > 1]
    if repeated:
        raise InvalidParameter("--columns", text, f"without {repeated[0]} twice")
    return tuple(names)


def _expand_entry(entry: str) -> list[str]:
    """Return the name of each column that an entry of the list stands for."""
    parts = _ENTRY.fullmatch(entry)
    if parts is None:
        raise InvalidParameter("--columns", entry, "names, separated by commas")
    name = SYNONYMS.get(parts["name"], parts["name"])
    count = None if parts["count"] is None else int(parts["count"])

    if name == SKIPPED:
        if count is not None and count > MAX_COLUMNS:
            raise InvalidParameter("--columns", entry, f"at most {MAX_COLUMNS} columns")
        return [SKIPPED] * (1 if count is None else count)

    width = _width(name)
    if count not in (None, width):
        raise InvalidParameter("--columns", entry, f"{name} for {width} columns")
    if name in WIDTHS:
        return [f"{name}_{i}" for i in range(width)]
    return [name]


def _width(name: str) -> int:
    """Return the number of columns that a name stands for.

    Raises:
        UnknownName: It is not the name of a field, nor of an element of a vector.
    """
    if name in WIDTHS:
        return WIDTHS[name]
    element = _ELEMENT.fullmatch(name)
    if name in (*TIMES, *STATE_FIELDS) or (element and element["vector"] in WIDTHS):
        return 1
    known = (*TIMES, *WIDTHS, *STATE_FIELDS, *SYNONYMS, SKIPPED)
    raise UnknownName("column", name, known, where="among RTDE's fields")
