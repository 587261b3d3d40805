"""UR's own file of a controller, calibration.conf: differences from the nominal table of its model.

A controller keeps it in its folder .urcontrol. The Denavit-Hartenberg table of the arm is the
nominal table plus the differences, row by row.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simbridge.errors import InputFileError
from simbridge.files.reading import read_text
from simbridge.quoting import quoted
from simbridge.robot.calibration import nominal_dh, with_dh
from simbridge.robot.calibration_file import ROWS
from simbridge.robot.parts import DhTable
from simbridge.robot.robot import Robot
from simbridge.text import join_words

# The columns of the table, by the names of the fields of `DhTable`; the file's entries are called
# delta_theta and so on.
COLUMNS = ("theta", "a", "d", "alpha")
# The meaning of `calibration_status`, as the file's own comment states it.
STATUS = {0: "not initialized", 1: "not linearised", 2: "linearised"}
LINEARISED = 2
WHAT_IT_IS = "UR's file of differences from the nominal table (delta_theta, delta_a, ...)"

# `name = value`; a list in brackets may go on in the next lines, up to another `name =`.
_ENTRY = re.compile(
    r"""
    ^[ \t]* (\w+) [ \t]*=[ \t]*
    ( \[ [^]\n]* (?: \n (?![ \t]*\w+[ \t]*=) [^]\n]* )* \]? | [^\n]* )
    """,
    re.MULTILINE | re.VERBOSE,
)
# A comment, to the end of its line.
_COMMENT = re.compile(r"[#;][^\n]*")
_DIFFERENCES = re.compile(r"^[ \t]*delta_(theta|a|d|alpha)[ \t]*=", re.MULTILINE)


@dataclass(frozen=True)
class ControllerCalibration:
    """The calibration of one individual arm as its controller keeps it.

    Attributes:
        differences: Differences from the nominal table (6 rows), rad and m.
        checksum: Checksums of the joints' own calibrations (6); empty if the file has none.
    """

    differences: DhTable
    checksum: tuple[int, ...]


def is_controller_calibration(path: Path) -> bool:
    """Return whether a file is UR's calibration.conf, by the end of its name or its content.

    Raises:
        InputFileError: The file cannot be read.
    """
    return path.suffix.lower() == ".conf" or _DIFFERENCES.search(read_text(path)) is not None


@dataclass(frozen=True)
class _Entry:
    """An entry of a file.

    Attributes:
        value: Text of the entry to the right of the equals sign.
        line: Line of the entry's name.
    """

    value: str
    line: int


def read_controller_calibration(path: Path) -> ControllerCalibration:
    """Read UR's calibration.conf.

    Raises:
        InputFileError: The file cannot be read, a difference is missing or no number, or the
            controller had not finished its calibration; names the entry and its line.
    """
    entries = _read_entries(path)
    _check_differences_present(path, entries)
    _check_finished(path, entries)

    columns = {}
    for column in COLUMNS:
        name = f"delta_{column}"
        entry = entries[name]
        columns[column] = _read_numbers(path, entry.value, name=name, line=entry.line)

    checksum: tuple[int, ...] = ()
    if "joint_checksum" in entries:
        entry = entries["joint_checksum"]
        checksum = _read_checksum(path, entry.value, line=entry.line)
    return ControllerCalibration(DhTable(**columns), checksum)


def _read_entries(path: Path) -> dict[str, _Entry]:
    """Return the entries of a file by name; refuse a name that occurs twice."""
    text = _COMMENT.sub("", read_text(path))
    entries: dict[str, _Entry] = {}
    for match in _ENTRY.finditer(text):
        name = match[1]
        line = text.count("\n", 0, match.start(1)) + 1
        if name in entries:
            raise InputFileError(path, f"{name} occurs twice", line=line, field=name)
        entries[name] = _Entry(match[2].strip(), line)
    return entries


def _check_differences_present(path: Path, entries: dict[str, _Entry]) -> None:
    """Refuse a file that lacks the differences of a column."""
    missing = [f"delta_{column}" for column in COLUMNS if f"delta_{column}" not in entries]
    if not missing:
        return
    verb = "is" if len(missing) == 1 else "are"
    names = f"{join_words(missing)} {verb} missing"
    if len(missing) < len(COLUMNS):
        reason = f"{names} in {WHAT_IT_IS}"
    else:
        reason = f"this is not {WHAT_IT_IS}: {names}"
    raise InputFileError(path, reason, field=missing[0])


def _check_finished(path: Path, entries: dict[str, _Entry]) -> None:
    """Refuse the differences of a calibration that the controller had not finished."""
    entry = entries.get("calibration_status")
    if entry is None or entry.value == str(LINEARISED):
        return
    meaning = next((STATUS[code] for code in STATUS if str(code) == entry.value), "unknown")
    reason = (
        f"this is {entry.value} ({meaning}): only the differences of a finished calibration, "
        f"{LINEARISED} ({STATUS[LINEARISED]}), describe the arm"
    )
    raise InputFileError(path, reason, line=entry.line, field="calibration_status")


def add_to_nominal(path: Path, calibration: ControllerCalibration, robot: Robot) -> DhTable:
    """Return the table of an individual arm: the nominal one plus the differences of a file.

    Args:
        path: The file.
        calibration: Content of the file.
        robot: The nominal arm.

    Raises:
        InputFileError: The arm has no Denavit-Hartenberg table of six rows.
    """
    nominal = nominal_dh(robot)
    is_table = np.allclose(
        with_dh(robot, nominal).placements, robot.placements, rtol=0.0, atol=1e-9
    )
    if robot.n != ROWS or robot.prismatic.any() or not is_table:
        reason = (
            f"this is {WHAT_IT_IS}, and {robot.name} has no such table of six rows; choose the "
            "arm by its name (--robot ur5e)"
        )
        raise InputFileError(path, reason)

    return nominal.plus(calibration.differences)


def _read_numbers(path: Path, value: str, *, name: str, line: int) -> tuple[float, ...]:
    """Return the six finite numbers of an entry; refuse any other."""
    try:
        numbers = tuple(float(word) for word in _split(value))
    except ValueError:
        numbers = ()
    if len(numbers) != ROWS or not all(map(math.isfinite, numbers)):
        reason = f"{quoted(value)} is not a list of {ROWS} finite numbers"
        raise InputFileError(path, reason, line=line, field=name)
    return numbers


def _read_checksum(path: Path, value: str, *, line: int) -> tuple[int, ...]:
    """Return the six 32-bit numbers of a checksum, decimal or hexadecimal."""
    try:
        words = tuple(int(word, 0) for word in _split(value))
    except ValueError:
        words = ()
    if len(words) != ROWS or not all(0 <= word < 2**32 for word in words):
        reason = f"{quoted(value)} is not a list of {ROWS} 32-bit numbers"
        raise InputFileError(path, reason, line=line, field="joint_checksum")
    return words


def _split(value: str) -> list[str]:
    """Return the elements of a list in brackets."""
    if not (value.startswith("[") and value.endswith("]")):
        raise ValueError(value)
    return [word.strip() for word in value[1:-1].strip().rstrip(",").split(",")]
