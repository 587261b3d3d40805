"""Tables of poses as text: with a header or without, and of motion capture. Every error has its line and column."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path

import numpy as np

from simbridge.errors import InputFileError
from simbridge.quoting import quoted, quoted_list
from simbridge.reading_progress import with_progress
from simbridge.text import counted
from simbridge.trajectory.columns import (
    BARE_HEADER_LENGTHS,
    FIRST_ROWS,
    LONG,
    MATRIX,
    NEEDED,
    NO_ROTATION,
    OF_DAY,
    POSITION,
    QUATERNION,
    ROTATION_VECTOR,
    UNIT_NAMES,
    WALL_CLOCK,
    Choice,
    Columns,
    Table,
    bare,
    is_bare_header,
    known_columns,
)
from simbridge.trajectory.trajectory import UNIT_TOLERANCE

# Lines of a file at most: twice as many as poses that fit into memory.
MAX_LINES = 20_000_000
# Characters of a line at most: those of MAX_COLUMNS numbers.
MAX_LINE_LENGTH = 1_000_000
# Comments that are looked at as headers, at most: names are recognised slowly.
MAX_POSSIBLE_HEADERS = 1000
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
    _check_size(path, text)
    # Some programs put every field in quotation marks.
    lines = lines_of(text.replace('"', ""))
    captured = _motion_capture(path, lines, choice, body)
    if captured is None and body is not None:
        raise InputFileError(path, f"a text file has no topic {quoted(body)}; omit --topic")
    try:
        table = _table(path, lines, captured, choice, rate)
    except InputFileError as fault:
        if captured or not any("\t" in line for line in lines):
            raise
        # Between tabs, names and times may have blanks in them.
        try:
            table = _table(path, [line.replace("\t", ";") for line in lines], None, choice, rate)
        except InputFileError as other:
            # Of the reading that came further, or names the field.
            raise max(
                fault, other, key=lambda each: (each.line or 0, each.field is not None)
            ) from None
    columns = table.columns
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


def _check_size(path: str | Path, text: str) -> None:
    """Refuse a text of more lines, or of longer ones, than are read."""
    count = text.count("\n") + text.count("\r") - text.count("\r\n") + 1
    if count > MAX_LINES:
        raise InputFileError(path, f"it has {count:,} lines; at most {MAX_LINES:,} are read")
    if len(text) <= MAX_LINE_LENGTH:
        return
    for number, line in enumerate(lines_of(text), start=1):
        if len(line) > MAX_LINE_LENGTH:
            reason = f"the line has {len(line):,} characters; at most {MAX_LINE_LENGTH:,} are read"
            raise InputFileError(path, reason, line=number)


def lines_of(text: str) -> list[str]:
    """The lines of a text, whatever ends them; str.splitlines would also split where editors count no line."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _separator(line: str) -> str | None:
    return next((separator for separator in ";," if separator in line), None)


def _layout(
    path: str | Path, lines: Sequence[str], choice: Choice, rate: float | None
) -> tuple[Columns, int]:
    """The columns, and the index of the first line with numbers."""
    header: Columns | None = None
    remark: Columns | None = None
    possible_headers = 0
    for number, line in with_progress(path, lines):
        content, comment = (part.strip() for part in line.partition("#")[::2])
        if not content:
            # A comment that consists of exactly the names, as in files of numpy.savetxt and TUM.
            words = comment.split(_separator(comment)) if comment else []
            if len(words) in BARE_HEADER_LENGTHS and possible_headers < MAX_POSSIBLE_HEADERS:
                possible_headers += 1
                if is_bare_header(words):
                    remark = known_columns(
                        path, words, choice, where="comment", line=number, rate=rate
                    )
            continue
        fields = content.split(_separator(content))
        if header is None and not any(field.strip().startswith(DIGITS) for field in fields):
            header = known_columns(path, fields, choice, where="header", line=number, rate=rate)
        else:
            return header or remark or _without_header(
                path, number, fields, choice, rate
            ), number - 1
    raise InputFileError(path, f"it has no samples; it needs lines of {NEEDED}")


_SEVEN = "no header, 7 numbers"
_LAYOUTS = (
    f"without a header 8 or 7 are expected: {NEEDED}, 12 (KITTI, with --rate HZ), or `ros2 topic echo --csv` of "
    "PoseStamped (10), TransformStamped (11), PoseWithCovarianceStamped (46) or Odometry (89). Add a header, or say "
    "which columns are meant by their numbers: --columns t=1,x=2,y=3,z=4,qx=5,qy=6,qz=7,qw=8"
)
# What `ros2 topic echo --csv` prints, by the number of fields and which of them are words: sec, nanosec, frame_id (and
# child_frame_id), and the fields of the message.
_ROS2 = {
    (10, (2,)): ("PoseStamped", 3),
    (46, (2,)): ("PoseWithCovarianceStamped", 3),
    (11, (2, 3)): ("TransformStamped", 4),
    (89, (2, 3)): ("Odometry", 4),
}


def _without_header(
    path: str | Path, line: int, fields: Sequence[str], choice: Choice, rate: float | None
) -> Columns:
    """The columns by the number of fields and the words among them."""
    count = len(fields)
    words = tuple(i for i, field in enumerate(fields) if not field.strip().startswith(DIGITS))
    timed = rate is None
    roles: tuple[str, ...]
    places: Sequence[int]
    times: tuple[int, ...] = (0,)
    if choice.columns:
        names = [str(i + 1) for i in range(count)]
        return known_columns(path, names, choice, where="flag --columns", line=line, rate=rate)
    if message := _ROS2.get((count, words)):
        name, start = message
        roles, places, times = POSITION + QUATERNION, range(start, start + 7), (0, 1)
        understood = f"ros2 topic echo of {name}"
    elif count == 8:
        roles, places, understood = POSITION + QUATERNION, range(1, 8), "no header, as TUM"
    elif count == 7 and timed:
        roles, places, understood = POSITION + ROTATION_VECTOR, range(1, 7), _SEVEN
    elif count == 7:
        roles, places, understood, times = POSITION + QUATERNION, range(7), _SEVEN, ()
    elif count == 12 and not timed:
        roles, places, understood, times = POSITION + MATRIX, FIRST_ROWS, "no header, as KITTI", ()
    elif count == 12:
        reason = "12 numbers a line, as in KITTI's files, have no time: add --rate HZ, the samples per second"
        raise InputFileError(path, reason, line=line)
    else:
        among = f", {counted(len(words), 'word')} among them" if words else ""
        more = f". {NO_ROTATION}" if count in (3, 4) else ""
        raise InputFileError(path, f"{count} columns{among}; {_LAYOUTS}{more}", line=line)
    return Columns(
        roles=roles,
        names=roles,
        indices=tuple(places),
        units=tuple(choice.units.get(role, "") for role in roles),
        times=("sec", "nanosec") if message else ("t",) * len(times),
        time_indices=times,
        time_unit=choice.units.get("t", ""),
        width=count,
        origin=f"as in line {line}",
        understood=understood,
        frame_index=2 if message else None,
        rate=None if times else rate,
    )


def _table(
    path: str | Path,
    lines: Sequence[str],
    found: tuple[Columns, int] | None,
    choice: Choice,
    rate: float | None,
) -> Table:
    """The numbers in canonical order, and the line of each row; `found` are columns that are known already."""
    columns, first = found or _layout(path, lines, choice, rate)
    if first >= len(lines):
        raise InputFileError(path, "it has no samples")
    captured = columns.width is None
    separator = "," if captured else _separator(lines[first].partition("#")[0])
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
    for number, line in with_progress(path, lines, first):
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
        if "_" in content and not all(map(is_number, pick(fields))):
            raise _word(path, number, names, pick(fields))
        if not plain:
            stamps.append(tuple(bare(fields[i]) for i in times))
        if frame_index is not None:
            frames.setdefault(bare(fields[frame_index]), number)
        numbers.append(number)
    table = np.frombuffer(values).reshape(-1, len(names))
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        row, column = bad[0]
        reason = f"{table[row, column]} is not a finite number"
        raise InputFileError(path, reason, line=numbers[row], field=names[column])
    if len(frames) > 1:
        one, other = list(frames)[:2]
        reason = f"the frame is {quoted(other)} here, {quoted(one)} before; cut the file in two"
        raise InputFileError(path, reason, line=frames[other], field="frame_id")
    frame = next(iter(frames), columns.frame)
    return Table(
        columns,
        table[:, 0] if plain else stamps,
        table[:, 1:] if plain else table,
        numbers,
        frame,
        left_out,
    )


def _is_long_or_a_date(line: str, separator: str | None, place: int) -> bool:
    """Whether a stamp is a time of day, or has more digits than a double should hold."""
    fields = line.partition("#")[0].strip().split(separator)
    word = bare(fields[place]) if place < len(fields) else ""
    return bool(WALL_CLOCK.match(word)) or (word.isdecimal() and float(word) >= LONG)


def is_number(word: str) -> bool:
    """Whether a word of a file is a number; float() accepts 1_5 for 15, which is a misprint."""
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word


def _word(
    path: str | Path, number: int, names: Sequence[str], fields: Sequence[str]
) -> InputFileError:
    """The error about the first field that is not a number."""
    name, word = next(pair for pair in zip(names, fields, strict=True) if not is_number(pair[1]))
    word = word.strip()
    reason = (
        f"{quoted(word)} is not a number" if word else "a number is missing; leave such rows out"
    )
    if is_number(word.replace(",", ".", 1)):
        reason += "; write it with a decimal point"
    elif ":" in word:
        reason += f"; {OF_DAY}"
    return InputFileError(path, reason, line=number, field=name)


# Motion capture: the headers of several lines of OptiTrack's Motive and of Vicon's Tracker and Nexus, exported as CSV.

_VICON = ("objects", "segments")
_VICON_OTHERS = ("devices", "joints", "model outputs", "trajectories")


def _motion_capture(
    path: str | Path, lines: Sequence[str], choice: Choice, body: str | None
) -> tuple[Columns, int] | None:
    """The columns of an export, and the index of its first line with numbers; None for another kind of file."""
    kind, start = lines[0].split(",")[0].strip().lower(), 0
    rate = lines[1].rstrip(", ") if len(lines) > 1 else ""
    if kind in _VICON_OTHERS and rate.replace(".", "", 1).isdecimal():
        start = next(
            (i for i, line in enumerate(lines) if line.split(",")[0].strip().lower() in _VICON), -1
        )
        if start < 0:
            raise InputFileError(
                path,
                f"Vicon's export has {kind} only: export objects or segments, which have poses",
            )
    begin = [[cell.strip() for cell in line.split(",")] for line in lines[start : start + 12]]
    if kind == "format version":
        return _motive(path, begin, choice, body)
    if (kind in _VICON or start) and len(begin) > 4 and begin[1][0].replace(".", "", 1).isdecimal():
        columns, first = _vicon(path, begin, start, choice, body)
        return columns, start + first
    return None


def _motive(
    path: str | Path, begin: Sequence[Sequence[str]], choice: Choice, body: str | None
) -> tuple[Columns, int]:
    about = dict(zip(begin[0][::2], begin[0][1::2], strict=False))
    kind = about.get("Rotation Type", "Quaternion")
    if kind != "Quaternion":
        reason = f"its rotations are of the type {quoted(kind)}; export it with the type Quaternion"
        raise InputFileError(path, reason, line=1)
    last = next((i for i, cells in enumerate(begin) if cells[0] == "Frame"), None)
    types = next((cells for cells in begin if {"Rigid Body", "Bone"} & set(cells)), None)
    if last is None or types is None:
        raise InputFileError(path, "it has no rigid body: export rigid bodies, with the header")
    names, groups, axes = begin[begin.index(types) + 1], begin[last - 1], begin[last]
    found: dict[str, dict[str, int]] = {}
    for i, (what, name, group, axis) in enumerate(zip(types, names, groups, axes, strict=False)):
        if what in ("Rigid Body", "Bone") and group in ("Rotation", "Position"):
            found.setdefault(name, {})[
                axis.lower() if group == "Position" else f"q{axis.lower()}"
            ] = i
    name = _chosen(path, found, body)
    units = dict.fromkeys(POSITION, UNIT_NAMES.get(about.get("Length Units", "Meters").lower(), ""))
    places = [found[name].get(role) for role in POSITION + QUATERNION]
    # y is up there: the frame must be placed.
    return _captured(
        path, places, QUATERNION, choice, units, f"Motive, '{name}'", "OptiTrack"
    ), last + 1


def _vicon(
    path: str | Path, begin: Sequence[Sequence[str]], start: int, choice: Choice, body: str | None
) -> tuple[Columns, int]:
    rate = float(begin[1][0])
    last = next((i for i, cells in enumerate(begin) if cells[0] == "Frame"), None)
    if last is None or last + 1 >= len(begin):
        raise InputFileError(
            path, "its header has no line 'Frame,Sub Frame,...', as Vicon's exports have"
        )
    found: dict[str, dict[str, int]] = {}
    name = ""
    titles = [*begin[last - 1], *[""] * len(begin[last])]
    for i, axis in enumerate(begin[last][2:], start=2):
        name = titles[i] or name
        found.setdefault(name, {})[axis.lower()] = i
    name = _chosen(path, found, body)
    own = found[name]
    vector = "rw" not in own
    if vector and not set(ROTATION_VECTOR) <= set(choice.columns):
        reason = (
            "RX RY RZ may be rotation vectors or Euler angles, which the file does not say. If they are rotation "
            "vectors, add --columns rx=RX,ry=RY,rz=RZ; else export quaternions (RX RY RZ RW)"
        )
        raise InputFileError(path, reason, line=start + last + 1)
    roles = ROTATION_VECTOR if vector else QUATERNION
    places = [
        own.get(name) for name in ("tx", "ty", "tz", "rx", "ry", "rz", *([] if vector else ["rw"]))
    ]
    written = [UNIT_NAMES.get(unit.lower(), "") for unit in begin[last + 1]] + [""] * len(
        begin[last]
    )
    units = {
        **dict.fromkeys(POSITION, written[places[2] or 0]),
        **dict.fromkeys(ROTATION_VECTOR, written[places[3] or 0]),
    }
    return _captured(
        path, places, roles, choice, units, f"Vicon, '{name}'", "Vicon", rate
    ), last + 2


def _chosen(path: str | Path, found: dict[str, dict[str, int]], body: str | None) -> str:
    names = quoted_list(found)
    if body is None and len(found) == 1:
        return next(iter(found))
    if body not in found:
        what = (
            f"it has {len(found)} rigid bodies"
            if body is None
            else f"there is no rigid body {quoted(body)}"
        )
        raise InputFileError(path, f"{what}; choose one with --topic: {names}", field="topic")
    return body


def _captured(
    path: str | Path,
    places: Sequence[int | None],
    rotation: tuple[str, ...],
    choice: Choice,
    stated: dict[str, str],
    understood: str,
    frame: str,
    rate: float | None = None,
) -> Columns:
    """Return the columns of a rigid body with these units.

    The column of time is the first where the rate is known, else the second.
    """
    indices = tuple(place for place in places if place is not None)
    roles = POSITION + rotation
    if len(indices) != len(roles):
        raise InputFileError(path, "a rigid body has no position or no rotation: export both")
    return Columns(
        roles=roles,
        names=roles,
        indices=indices,
        units=tuple((stated | dict(choice.units)).get(role, "") for role in roles),
        times=("Frame",) if rate else ("Time",),
        time_indices=(0,) if rate else (1,),
        time_unit="s",
        understood=understood,
        frame=frame,
        rate=rate,
    )
