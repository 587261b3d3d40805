"""The flags that a refused table of poses gets: each reads it at once, with nothing to fill in.

The names leave one or several readings: of which body, in which order of a quaternion, by which
time. Each of them is one `--columns`.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from simbridge.quoting import quoted, quoted_list
from simbridge.trajectory.tables.column_names import strip_quotes
from simbridge.trajectory.tables.header import Header
from simbridge.trajectory.tables.pose_candidates import CandidateColumns, find_pose_candidates
from simbridge.trajectory.tables.roles import POSITION, QUATERNION, ROTATION_VECTOR
from simbridge.trajectory.tables.time_candidates import NO_TIME_FLAG, find_time_candidates

# The readings of which a refusal has the flag, at most.
MAX_FLAGS = 6
# The names of further readings, at most.
MAX_FURTHER_NAMES = 20


class FlaggedReading(NamedTuple):
    """A way to read a table.

    Attributes:
        label: Text that distinguishes it from the others, such as "hand, w last"; "" without one.
        flag: The flags that read the table so.
    """

    label: str
    flag: str


@dataclass(frozen=True)
class KnownColumns:
    """The columns whose roles follow without doubt from their names or from `--columns`.

    Attributes:
        columns: The index of each role's column, for roles of which there is one column.
        chosen: The roles that `--columns` chooses.
        time_candidates: The columns that may be the time, by their names; empty if one is, or none
            may be.
        has_time: Whether the time is known: from one column, from two, or from a rate.
    """

    columns: Mapping[str, int]
    chosen: Mapping[str, int]
    time_candidates: Sequence[int]
    has_time: bool

    @classmethod
    def of_time(
        cls,
        times: Sequence[int],
        rate: float | None,
        *,
        chosen: Mapping[str, int] | None = None,
        is_pair: bool = False,
    ) -> KnownColumns:
        """Return what is known of a table of which only the time may be known.

        Args:
            times: The columns that may be the time.
            rate: Samples per s; None if it is not known.
            chosen: The column of the time under its role, if `--columns` chooses it.
            is_pair: Whether two columns are the time together.
        """
        return cls(
            columns={"t": times[0]} if len(times) == 1 else {},
            chosen=chosen or {},
            time_candidates=times if len(times) > 1 else (),
            has_time=is_pair or len(times) == 1 or (rate is not None and not times),
        )


class PartialReading(NamedTuple):
    """A way to read some columns: those of the pose, of the joints, or of the time.

    Attributes:
        label: What tells it from its alternatives.
        columns: The index of each role's column that the flag has to choose.
    """

    label: str
    columns: dict[str, int]


def find_readings(header: Header, known: KnownColumns) -> list[FlaggedReading]:
    """Find the ways in which a table of poses may be read; none if its names show no whole pose.

    Args:
        header: The names of the table.
        known: What is known of its columns.
    """
    poses = _pose_parts(header, known)
    if not poses:
        return []

    # Keep the columns that the user has chosen: the new flag replaces the old one.
    whole = [
        PartialReading(part.label, _in_order({**known.chosen, **part.columns})) for part in poses
    ]
    return complete_readings(header, known, whole)


def complete_readings(
    header: Header, known: KnownColumns, parts: Sequence[PartialReading]
) -> list[FlaggedReading]:
    """Return the flags of alternatives, each with the time if that is not known.

    Args:
        header: The names of the table.
        known: What is known of its columns.
        parts: The alternatives, without or with the time.
    """
    # The time may be any column that none of the alternatives uses.
    used_columns = set(known.columns.values())
    for part in parts:
        used_columns.update(part.columns.values())
    times = time_parts(header, known, used_columns)

    # Each alternative without time is combined with each time. Labels name what there are several
    # of.
    readings = []
    for part in parts:
        has_time = "t" in part.columns
        part_times = [PartialReading("", {})] if has_time else times
        for time in part_times:
            labels = [part.label] if len(parts) > 1 else []
            if len(part_times) > 1:
                labels.append(time.label)
            flags = _flags_of(header, known, {**time.columns, **part.columns})
            readings.append(FlaggedReading(", ".join(labels), flags))
    return readings


def _flags_of(header: Header, known: KnownColumns, columns: Mapping[str, int]) -> str:
    """Return the flags that choose columns, with the rate of a table without time."""
    flags = [header.flag(columns)] if columns else []
    if "t" not in columns and not known.has_time:
        flags.append(NO_TIME_FLAG)
    return " ".join(flags)


def _in_order(columns: Mapping[str, int]) -> dict[str, int]:
    """Return columns in the order of their roles, those of a quaternion as they are in the file."""
    quaternion = sorted((role for role in QUATERNION if role in columns), key=columns.__getitem__)
    roles = ("t", *POSITION, *quaternion, *ROTATION_VECTOR)
    return {role: columns[role] for role in roles if role in columns}


def join_readings(readings: Sequence[FlaggedReading]) -> str:
    """Return the flags of readings in a sentence, and how many more there are."""
    if len(readings) == 1:
        return readings[0].flag
    parts = [f"{label}: {flag}" if label else flag for label, flag in readings[:MAX_FLAGS]]
    text = "; ".join(parts)
    further = readings[MAX_FLAGS:]
    if further:
        names = quoted_list([label for label, _ in further if label], MAX_FURTHER_NAMES)
        text += f"; and {len(further)} more{f' in the same way: {names}' if names else ''}"
    return text


def _pose_parts(header: Header, known: KnownColumns) -> list[PartialReading]:
    """Return the ways to read the pose: pairs of a position and a rotation.

    Args:
        header: The names of the table.
        known: What is known of its columns.
    """
    candidates = find_pose_candidates(header.names)
    positions = _alternatives(candidates.positions, [POSITION], known)
    rotations = _alternatives(candidates.rotations, [QUATERNION, ROTATION_VECTOR], known)
    pairs = [
        (position, rotation)
        for position in positions
        for rotation in rotations
        if position.body == rotation.body
    ]
    # If no position has a rotation of the same body, names of different bodies may belong together.
    pairs = pairs or list(itertools.product(positions, rotations))

    parts = []
    for position, rotation in pairs:
        # Only the columns that would not be read like this anyway need a flag.
        columns = {**position.columns, **rotation.columns}
        uncertain = {
            role: index for role, index in columns.items() if known.columns.get(role) != index
        }
        bodies = [" ".join(position.body)]
        if rotation.body != position.body:
            bodies.append(" ".join(rotation.body))
        label = ", ".join(filter(None, (*bodies, rotation.order)))
        if not label and uncertain:
            label = _first_name(header, uncertain)
        parts.append(PartialReading(label, uncertain))
    return _without_repetition(parts)


def _alternatives(
    candidates: Sequence[CandidateColumns],
    vectors: Sequence[Sequence[str]],
    known: KnownColumns,
) -> list[CandidateColumns]:
    """Return what a vector may be: the one that is known, or else all candidates.

    Args:
        candidates: The candidates that the names show.
        vectors: The roles of the vector, in one or several forms.
        known: What is known of the columns.
    """
    for roles in vectors:
        if not all(role in known.columns for role in roles):
            continue
        columns = {role: known.columns[role] for role in roles}
        same = [candidate for candidate in candidates if candidate.columns == columns]
        if same:
            return same[:1]
        if set(roles) <= known.chosen.keys():
            return [CandidateColumns((), columns)]
    return list(candidates)


def _without_repetition(parts: Sequence[PartialReading]) -> list[PartialReading]:
    """Return parts without those whose columns are those of one before."""
    different: list[PartialReading] = []
    for part in parts:
        if all(part.columns != other.columns for other in different):
            different.append(part)
    return different


def _first_name(header: Header, columns: Mapping[str, int]) -> str:
    """Return the name of the first column of a reading, to tell it from others."""
    return strip_quotes(header.names[min(columns.values())])


def time_parts(
    header: Header, known: KnownColumns, in_use: Collection[int]
) -> list[PartialReading]:
    """Return what the time may be; one part without columns if it is known, or is not there."""
    if known.has_time:
        return [PartialReading("", {})]
    candidates = [index for index in known.time_candidates if index not in in_use]
    candidates = candidates or find_time_candidates(header.names, in_use)
    parts = [
        PartialReading(
            f"time {quoted(strip_quotes(header.names[index]) or index + 1)}", {"t": index}
        )
        for index in candidates
    ]
    return parts or [PartialReading("", {})]
