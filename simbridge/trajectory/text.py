"""Tables of poses as text: with a header or without, and of motion capture. Every error has its line and column."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path

import numpy as np

from simbridge.errors import InputFileError
from simbridge.text import counted
from simbridge.trajectory.columns import (
    MATRIX,
    NEEDED,
    POSITION,
    QUATERNION,
    ROTATION_VECTOR,
    Choice,
    Columns,
    is_bare_header,
    known_columns,
)
from simbridge.trajectory.motion_capture import motion_capture
from simbridge.trajectory.samples import LONG, WALL_CLOCK, Table
from simbridge.trajectory.trajectory import UNIT_TOLERANCE

# A line is a header if no field begins like this; 0,5 is a misprinted number, not a name.
DIGITS = tuple("+-.0123456789")


def parse_text(
    path: str | Path, text: str, choice: Choice, rate: float | None = None, body: str | None = None
) -> Table:
    """Parse the text of a table of poses; see `simbridge.trajectory.files.read_trajectory`.

    Args:
        path: For messages.
        text: The content.
        choice: Which columns are used.
        rate: Samples per s, if the table has no time.
        body: Which rigid body of a motion capture export.

    Raises:
        InputFileError: It is not a table of poses; with line and column.
    """
    # Not str.splitlines, which also splits where editors do not count a line.
    # Some programs put every field in quotation marks.
    lines = text.replace('"', "").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    captured = motion_capture(path, lines, choice, body)
    if captured is None and body is not None:
        raise InputFileError(path, f"a text file has no topic '{body}'; omit --topic")
    columns, first = captured or _layout(path, lines, choice, rate)
    if first >= len(lines):
        raise InputFileError(path, "it has no samples")
    table = _table(path, lines, columns, first)
    if columns.understood == _SEVEN and columns.rate is None and len(table.values) > 1:
        norms = np.linalg.norm(table.values[:, 2:], axis=1)
        if (np.abs(norms - 1.0) < UNIT_TOLERANCE).all():
            raise InputFileError(
                path,
                "7 numbers a line may be t x y z rx ry rz, or x y z qx qy qz qw without time, as the last four are "
                "unit quaternions. If they are, add --rate HZ; else --columns t=1,x=2,y=3,z=4,rx=5,ry=6,rz=7",
                line=table.lines[0],
            )
    return table


def _separator(line: str) -> str | None:
    return next((separator for separator in ";," if separator in line), None)


def _content(line: str) -> str:
    return line.partition("#")[0].strip()


def _layout(path: str | Path, lines: Sequence[str], choice: Choice, rate: float | None) -> tuple[Columns, int]:
    """The columns, and the index of the first line with numbers."""
    header: Columns | None = None
    remark: Columns | None = None
    for number, line in enumerate(lines, start=1):
        content, _, comment = line.partition("#")
        content, comment = content.strip(), comment.strip()
        fields = content.split(_separator(content))
        if not content:
            # A comment that consists of exactly the names, as in files of numpy.savetxt and TUM.
            words = comment.split(_separator(comment))
            if is_bare_header(words):
                remark = known_columns(path, words, choice, where="comment", line=number, rate=rate)
        elif header is None and not any(field.strip().startswith(DIGITS) for field in fields):
            header = known_columns(path, fields, choice, where="header", line=number, rate=rate)
        elif found := header or remark:
            return found, number - 1
        else:
            return _without_header(path, number, fields, choice, rate), number - 1
    raise InputFileError(path, f"it has no samples; it needs lines of {NEEDED}")


# What a line without a header is, by its number of fields and which of them are words (the frames): of
# `ros2 topic echo --csv` sec, nanosec, frame_id (and child_frame_id), and the fields of the message.
_ROS2 = {
    (10, (2,)): ("PoseStamped", 3),
    (46, (2,)): ("PoseWithCovarianceStamped", 3),
    (11, (2, 3)): ("TransformStamped", 4),
    (89, (2, 3)): ("Odometry", 4),
}


def _without_header(path: str | Path, line: int, fields: Sequence[str], choice: Choice, rate: float | None) -> Columns:
    """The columns by the number of fields and the words among them."""
    count = len(fields)
    words = tuple(i for i, field in enumerate(fields) if not field.strip().startswith(DIGITS))
    if choice.columns:
        names = [str(i + 1) for i in range(count)]
        return known_columns(path, names, choice, where="flag --columns", line=line, rate=rate)
    if (count, words) in _ROS2:
        message, start = _ROS2[count, words]
        places, understood = range(start, start + 7), f"ros2 topic echo of {message}"
        return _counted(line, choice, POSITION + QUATERNION, places, (0, 1), count, understood, frame=2)
    if count == 8:
        return _counted(line, choice, POSITION + QUATERNION, range(1, 8), (0,), count, "no header, as TUM")
    if count == 7 and rate is not None:
        roles = POSITION + QUATERNION
        return _counted(line, choice, roles, range(7), (), count, _SEVEN, rate=rate)
    if count == 7:
        return _counted(line, choice, POSITION + ROTATION_VECTOR, range(1, 7), (0,), count, _SEVEN)
    if count == 12 and rate is not None:
        columns = (3, 7, 11, 0, 1, 2, 4, 5, 6, 8, 9, 10)
        return _counted(line, choice, POSITION + MATRIX, columns, (), count, "no header, as KITTI", rate=rate)
    if count == 12:
        reason = "12 numbers a line, as in KITTI's files, have no time: add --rate HZ, the samples per second"
        raise InputFileError(path, reason, line=line)
    among = f", {counted(len(words), 'word')} among them" if words else ""
    raise InputFileError(path, f"{count} columns{among}; {_LAYOUTS}", line=line)


_SEVEN = "no header, 7 numbers"
_LAYOUTS = (
    f"without a header 8 or 7 are expected: {NEEDED}, 12 (KITTI, with --rate HZ), or `ros2 topic echo --csv` of "
    "PoseStamped (10), TransformStamped (11), PoseWithCovarianceStamped (46) or Odometry (89). Add a header, or say "
    "which columns are meant by their numbers: --columns t=1,x=2,y=3,z=4,qx=5,qy=6,qz=7,qw=8"
)


def _counted(
    line: int,
    choice: Choice,
    roles: tuple[str, ...],
    places: Sequence[int],
    times: tuple[int, ...],
    width: int,
    understood: str,
    *,
    frame: int | None = None,
    rate: float | None = None,
) -> Columns:
    """The columns at these places of lines without a header."""
    return Columns(
        roles=roles,
        names=roles,
        indices=tuple(places),
        units=tuple(choice.units.get(role, "") for role in roles),
        times=("t",) if len(times) == 1 else ("sec", "nanosec") if times else (),
        time_indices=times,
        time_unit=choice.units.get("t", ""),
        width=width,
        origin=f"as in line {line}",
        understood=understood,
        frame_index=frame,
        rate=rate,
    )


def _table(path: str | Path, lines: Sequence[str], columns: Columns, first: int) -> Table:
    """The numbers in canonical order, and the line of each row."""
    captured = columns.width is None
    separator = "," if captured else _separator(_content(lines[first]))
    times, frame_index = columns.time_indices, columns.frame_index
    # A stamp of one word that is a plain number is read like the others.
    plain = len(times) == 1 and not _is_long_or_a_date(lines[first], separator, times[0])
    pick = itemgetter(*times, *columns.indices) if plain else itemgetter(*columns.indices)
    longest = max((*times, *columns.indices))
    names = (*columns.times, *columns.names) if plain else columns.names
    # Fast for hundreds of thousands of lines: an error is analysed only when there is one.
    values, left_out = array("d"), 0
    stamps: list[tuple[str, ...]] = []
    numbers: list[int] = []
    frames: dict[str, int] = {}
    for number, line in enumerate(lines[first:], start=first + 1):
        content = line.partition("#")[0].strip()
        if not content:
            if captured and numbers:
                # Vicon writes the markers below the objects.
                break
            continue
        fields = content.split(separator)
        if captured and not (len(fields) > longest and all(map(str.strip, pick(fields)))):
            left_out += 1
            continue
        if not captured and len(fields) != columns.width:
            reason = f"{len(fields)} columns where {columns.width} are expected, {columns.origin}"
            raise InputFileError(path, reason, line=number)
        try:
            values.extend(map(float, pick(fields)))
        except ValueError:
            raise _word(path, number, names, pick(fields)) from None
        if "_" in content and not all(map(_is_number, pick(fields))):
            raise _word(path, number, names, pick(fields))
        if not plain:
            stamps.append(tuple(fields[i].strip().strip("\"'") for i in times))
        if frame_index is not None:
            frames.setdefault(fields[frame_index].strip().strip("\"'"), number)
        numbers.append(number)
    table = np.frombuffer(values).reshape(-1, len(names))
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        row, column = bad[0]
        reason = f"{table[row, column]} is not a finite number"
        raise InputFileError(path, reason, line=numbers[row], field=names[column])
    if len(frames) > 1:
        one, other = list(frames)[:2]
        reason = f"the frame is '{other}' here, '{one}' before; cut the file in two"
        raise InputFileError(path, reason, line=frames[other], field="frame_id")
    frame = next(iter(frames), columns.frame)
    return Table(columns, table[:, 0] if plain else stamps, table[:, 1:] if plain else table, numbers, frame, left_out)


def _is_long_or_a_date(line: str, separator: str | None, place: int) -> bool:
    """Whether a stamp is a time of day, or has more digits than a double should hold."""
    fields = _content(line).split(separator)
    word = fields[place].strip().strip("\"'") if place < len(fields) else ""
    return bool(WALL_CLOCK.match(word)) or (word.isdecimal() and float(word) >= LONG)


def _is_number(word: str) -> bool:
    # float() accepts 1_5 for 15; in a file it is a misprint.
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word


def _word(path: str | Path, number: int, names: Sequence[str], fields: Sequence[str]) -> InputFileError:
    """The error about the first field that is not a number."""
    name, word = next(pair for pair in zip(names, fields, strict=True) if not _is_number(pair[1]))
    word = word.strip()
    reason = f"'{word}' is not a number" if word else "a number is missing"
    if _is_number(word.replace(",", ".", 1)):
        reason += "; write it with a decimal point"
    return InputFileError(path, reason, line=number, field=name)
